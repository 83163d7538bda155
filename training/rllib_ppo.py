"""Learn to play with RLlib: PPO by self-play, on one machine or a Ray cluster.

    python -m training.rllib_ppo --minutes 10 --run runs/rllib
    python -m training.rllib_ppo --resume runs/rllib --minutes 20
    python -m training.rllib_ppo --address 10.0.0.1:6379 --num-env-runners 32 --num-learners 2

One policy, `main`, plays all seats. With `--league N` half of the episodes have it in one seat
alone, and one of its N latest selves in all others. `--address` joins a running Ray cluster, every
node of which has this checkout installed. Env runners that are lost with their node are started
again on another, and training goes on; of illegal actions, those are counted that a runner has told
of before it is lost. Only rules without a target can be learned.

The run's folder gets `policy.safetensors`, which `pisti evaluate` plays without Ray; `rllib/`,
which is RLlib's own and only for `--resume` (it holds pickled Python: take it from nobody); and
`result.json`.
"""

import dataclasses
import functools
import itertools
import math
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import ray
import torch
import tyro
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from pisti_env import pisti_v0
from pisti_env.agents.checkpoint import Checkpoint
from pisti_env.cluster import start_ray
from pisti_env.rules import parse_rules
from training import runs

PACKAGES = ("ray", "torch", "gymnasium")
MAIN = "main"
SAVED = "rllib"
ILLEGAL_ACTIONS = "illegal_actions"
LOST_SECONDS = 1.0  # how long an update waits for a lost env runner that may be back
ILLEGAL = -1e9  # added to logits; finite, so that a row without a legal action gives no NaN
SAVE_SECONDS = 60.0
# Settings that a resumed run takes from the command line.
RENEWED = ("minutes", "steps", "deals", "address", "num_env_runners", "num_learners", "threads")


@dataclasses.dataclass(frozen=True)
class Settings(runs.LibrarySettings):
    """What a run is made of."""

    resume: Path | None = None
    """Folder of a run to go on with, under its own settings but for minutes, steps, deals, threads,
    address and the numbers of runners and learners."""
    address: str | None = None
    """A running Ray cluster to join, HOST:PORT or auto; None: that of RAY_ADDRESS, or without it a
    Ray of its own on this machine."""
    num_env_runners: int = 1
    """Processes that play; 0: the one that learns plays too."""
    num_envs_per_env_runner: int = 16
    """Tables of each."""
    num_learners: int = 0
    """Processes that learn, beside the driver; 0: the driver learns."""
    league: int = 0
    """How many of its former selves to play against; 0: self-play alone."""
    league_updates: int = 10
    """Updates between two snapshots for the league."""
    plays_per_update: int = 2048
    """Plays of all seats that an update learns from."""
    batch_size: int = 256
    """Decisions in a step of the optimizer."""
    epochs: int = 3
    """How often an update learns from each decision."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers, of the policy and of the value each."""
    learning_rate: float = 1e-3
    """Adam's learning rate."""
    entropy_coef: float = 0.01
    """Weight of the entropy in the loss."""
    gae_lambda: float = 0.8
    """How far advantages look ahead before they trust the value."""
    reward_scale: float = 0.1
    """What points are multiplied by."""


class PistiMultiAgent(MultiAgentEnv):
    """The bare PettingZoo environment in RLlib's form: only who is to play is shown anything, and
    is told what its side has gained since its last play. At the end all are told.

    An illegal action ends the episode at its seat's cost, and is counted. If it raised, RLlib would
    take the runner for a lost one, and start it again without its count.
    """

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        self.table = pisti_v0.raw_env(rules=parse_rules(config["rules"]), observation=runs.ENCODING)
        self.reward_scale = config["reward_scale"]
        self._runner = getattr(config, "worker_index", 0)
        self._seeded = False
        self.possible_agents = self.agents = self.table.possible_agents
        space: Any = self.table.observation_space(self.agents[0])
        actions: Any = self.table.action_space(self.agents[0])
        mask = gymnasium.spaces.Box(0.0, 1.0, (actions.n,), np.float32)
        shown = gymnasium.spaces.Dict({"observation": space["observation"], "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.agents, shown)
        self.action_spaces = dict.fromkeys(self.agents, actions)

    def _observe(self, agent: str) -> dict[str, np.ndarray]:
        observation = self.table.observe(agent)
        mask = observation["action_mask"].astype(np.float32)
        return {"observation": observation["observation"], "action_mask": mask}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Begin an episode; return the leader's observation, and no infos.

        Only the first seed counts: RLlib gives the same again before every sample, so that the same
        decks would be played for ever; and those of two runners overlap.
        """
        first = None if seed is None or self._seeded else seed
        self._seeded |= first is not None
        if first is not None:
            drawn = np.random.SeedSequence((first, self._runner)).generate_state(1, np.uint64)
            first = int(drawn[0])
        self.table.reset(seed=first)
        agent = self.table.agent_selection
        return {agent: self._observe(agent)}, {}

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        """Play; return observations, rewards, terminations, truncations and infos by agent."""
        table = self.table
        [(actor, action)] = actions.items()
        earned = table._cumulative_rewards
        try:
            table.step(int(action))
            over = table.terminations[table.agent_selection]
        except ValueError:  # illegal: the table has counted it, and is as it was
            over, earned = True, {**earned, actor: -table.most_to_lose}
        told = self.possible_agents if over else [table.agent_selection]
        observations = {agent: self._observe(agent) for agent in told}
        rewards = {agent: earned[agent] * self.reward_scale for agent in told}
        terminations = dict.fromkeys(told, over) | {"__all__": over}
        return observations, rewards, terminations, {"__all__": False}, {}


class MaskedPolicy(TorchRLModule, ValueFunctionAPI):
    """A policy and a value, plain networks with ReLU; illegal actions have probability 0."""

    def setup(self) -> None:
        """Make the networks."""
        inputs = self.observation_space["observation"].shape[0]
        hidden = self.model_config["hidden"]
        self.policy_net = make_mlp((inputs, *hidden, self.action_space.n))
        self.value_net = make_mlp((inputs, *hidden, 1))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        shown = batch[Columns.OBS]
        logits = self.policy_net(shown["observation"]) + (1 - shown["action_mask"]) * ILLEGAL
        return {Columns.ACTION_DIST_INPUTS: logits}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Return values (n,)."""
        values: torch.Tensor = self.value_net(batch[Columns.OBS]["observation"])
        return values.squeeze(-1)


def make_mlp(sizes: tuple[int, ...]) -> torch.nn.Sequential:
    """Return linear layers with ReLU between them."""
    layers: list[torch.nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def seat_policy(agent: str, episode: Any, players: int, league: int, **kwargs: Any) -> str:
    """Return which policy has a seat in an episode: `main`, or in every second one, if there is a
    league, a former self of it in all seats but one."""
    drawn = random.Random(episode.id_)  # the same for all seats of an episode
    alone, seat, past = drawn.random(), drawn.randrange(players), drawn.random()
    if not league or alone < 0.5 or agent == f"player_{seat}":
        return MAIN
    return past_name(int(past * league))


def past_name(number: int) -> str:
    """Return the name of a former self."""
    return f"past_{number}"


def make_config(settings: Settings) -> PPOConfig:
    """Return RLlib's configuration."""
    env_config = {"rules": settings.rules, "reward_scale": settings.reward_scale}
    env = PistiMultiAgent(env_config)
    spec = RLModuleSpec(
        module_class=MaskedPolicy,
        observation_space=env.observation_spaces["player_0"],
        action_space=env.action_spaces["player_0"],
        model_config={"hidden": settings.hidden},
    )
    names = [MAIN, *map(past_name, range(settings.league))]
    return (
        PPOConfig()
        # Its check plays illegal actions, and says something else of what follows.
        .environment(PistiMultiAgent, env_config=env_config, disable_env_checking=True)
        .framework("torch")
        .env_runners(
            num_env_runners=settings.num_env_runners,
            num_envs_per_env_runner=settings.num_envs_per_env_runner,
            batch_mode="complete_episodes",
        )
        .learners(num_learners=settings.num_learners)
        .multi_agent(
            policies=set(names),
            policy_mapping_fn=functools.partial(
                seat_policy, players=len(env.possible_agents), league=settings.league
            ),
            policies_to_train=[MAIN],
        )
        .rl_module(
            rl_module_spec=MultiRLModuleSpec(
                rl_module_specs={name: dataclasses.replace(spec) for name in names}
            )
        )
        .training(
            train_batch_size_per_learner=settings.plays_per_update,
            minibatch_size=settings.batch_size,
            num_epochs=settings.epochs,
            lr=settings.learning_rate,
            gamma=1.0,
            lambda_=settings.gae_lambda,
            entropy_coeff=settings.entropy_coef,
            clip_param=0.2,
            vf_clip_param=float("inf"),
            vf_loss_coeff=0.5,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .callbacks(on_episode_end=note_illegal)
        # Before every update RLlib waits for an answer of each lost runner, by default up to 30 s.
        .fault_tolerance(
            restart_failed_env_runners=True,
            env_runner_health_probe_timeout_s=LOST_SECONDS,
            env_runner_restore_timeout_s=LOST_SECONDS,
        )
        .debugging(seed=settings.seed, log_level="ERROR")
    )


def policy_of(algorithm: Any, settings: Settings) -> Checkpoint:
    """Return the policy with the weights that were learned last, as `pisti_env` plays it."""
    module = algorithm.get_module(MAIN)
    module.set_state(weights_of_main(algorithm))
    return runs.policy_of(module.policy_net, settings)


def weights_of_main(algorithm: Any) -> Any:
    """Return the weights of `main` that were learned last."""
    return algorithm.learner_group.get_weights([MAIN])[MAIN]


def take_snapshot(algorithm: Any, number: int) -> None:
    """Make a former self equal to `main`."""
    weights = weights_of_main(algorithm)
    algorithm.set_state({"learner_group": {"learner": {"rl_module": {past_name(number): weights}}}})
    algorithm.env_runner_group.sync_weights(
        from_worker_or_learner_group=algorithm.learner_group, policies=[past_name(number)]
    )


def note_illegal(*, env: Any, env_index: int, metrics_logger: Any, **kwargs: Any) -> None:
    """Move a table's count of illegal actions to RLlib's figures, where those of all runners are
    added: what an update was told of is not lost with a runner. Called when an episode ends."""
    table = env.envs[env_index].unwrapped.table
    metrics_logger.log_value(ILLEGAL_ACTIONS, table.illegal_actions, reduce="sum")
    table.illegal_actions = 0


class Progress(NamedTuple):
    """How far a run is, in the names of its `result.json`."""

    steps: int = 0
    seconds: float = 0.0
    illegal_actions: int = 0


def read_progress(folder: Path) -> Progress:
    """Return how far the run in a folder is."""
    figures = runs.read_result(folder, SAVED)
    return Progress(*(figures[name] for name in Progress._fields))


def total(figures: dict[str, Any], name: str) -> int:
    """Return what all env runners have added up in an update: 0 if all of them are lost."""
    value = figures.get("env_runners", {}).get(name, 0)
    return 0 if math.isnan(value) else int(value)


def save(algorithm: Any, folder: Path, progress: Progress) -> None:
    """Write what to go on from."""
    algorithm.save_to_path(str((folder / SAVED).resolve()))
    runs.write_result(folder, PACKAGES, *progress)


def train(
    settings: Settings, folder: Path, algorithm: Any, budget: runs.Budget, before: Progress
) -> Progress:
    """Learn until the budget is used up; return how far the run is then."""
    steps, saved, illegal = before
    for update in itertools.count(1):
        figures = algorithm.train()
        steps += total(figures, "num_env_steps_sampled")
        illegal += total(figures, ILLEGAL_ACTIONS)
        entropy = figures.get("learners", {}).get(MAIN, {}).get("entropy", float("nan"))
        healthy = algorithm.env_runner_group.num_healthy_remote_workers()
        budget.tell(steps, f"entropy {float(entropy):.2f}  {healthy} env runners")
        if settings.league and update % settings.league_updates == 0:
            take_snapshot(algorithm, update // settings.league_updates % settings.league)
        if budget.used(steps) >= 1:
            break
        if budget.seconds - saved >= SAVE_SECONDS:
            saved = budget.seconds
            save(algorithm, folder, Progress(steps, saved, illegal))
    progress = Progress(steps, budget.seconds, illegal)
    save(algorithm, folder, progress)
    return progress


def check_target(settings: Settings) -> None:
    """Raise `ValueError` for rules with a target. A runner plays until as many episodes are over as
    it has tables, and throws away what is not over then: deals are of one length, but of matches
    the long ones would be missing."""
    target = parse_rules(settings.rules).target
    if target is not None:
        raise ValueError(
            f"target is {target}; expected single deals, since RLlib would learn from too few long "
            "matches: add target=none to --rules"
        )


def check_cores(settings: Settings) -> None:
    """Raise `ValueError` if the cluster has too few cores, which Ray would wait for without end."""
    runners, learners = settings.num_env_runners, settings.num_learners
    cores = ray.cluster_resources().get("CPU", 0)
    if cores < runners + learners:
        raise ValueError(
            f"{runners} env runners and {learners} learners ask for {runners + learners} CPUs, and "
            f"the Ray cluster has {cores:g}; join more nodes, or lower --num-env-runners or "
            "--num-learners"
        )


def main() -> None:
    """Train as the command line says."""
    settings = tyro.cli(Settings, prog="python -m training.rllib_ppo", description=__doc__)
    try:
        before = Progress()
        if settings.resume is not None:
            before = read_progress(settings.resume)
            settings = runs.resumed_settings(settings, RENEWED)
        check_target(settings)
        start_ray(settings.address, 1 + settings.num_env_runners + settings.num_learners)
        try:
            check_cores(settings)
            folder = settings.resume or runs.open_run("rllib", PACKAGES, settings)
            torch.set_num_threads(settings.threads)
            algorithm = make_config(settings).build_algo()
            if settings.resume is not None:
                with runs.going_on(folder / SAVED):
                    algorithm.restore_from_path(str((folder / SAVED).resolve()))
            budget = runs.Budget(settings, before.seconds)
            with budget.used_up_by_signals():
                steps, _, illegal = train(settings, folder, algorithm, budget, before)
            policy = policy_of(algorithm, settings)
            algorithm.stop()
        finally:
            ray.shutdown()
        runs.finish(folder, policy, PACKAGES, steps, budget, illegal, settings.deals)
    except (OSError, ValueError) as error:
        sys.exit(f"training.rllib_ppo: {error}")


if __name__ == "__main__":
    main()
