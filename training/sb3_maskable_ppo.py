"""Learn to play with Stable-Baselines3: MaskablePPO for one seat, agents for the others.

At first the opponents are baselines; then snapshots of the policy's own past join them.

    python -m training.sb3_maskable_ppo --minutes 5 --run runs/sb3
    python -m training.sb3_maskable_ppo --resume runs/sb3 --minutes 10

The run's folder gets `policy.safetensors`, which `pisti evaluate` plays without Stable-Baselines3;
`model.zip`, which is Stable-Baselines3's own and only for `--resume` (it holds pickled Python: take
it from nobody); and `result.json`. Ctrl-C ends training after the current update and saves all of
this, unmeasured.
"""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from gymnasium.vector import AutoresetMode
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv

from pisti_env.agents import load
from pisti_env.agents.checkpoint import Checkpoint, write_checkpoint
from pisti_env.rules import parse_rules
from pisti_env.shuffle import derive_seed
from pisti_env.single import PistiVectorEnv
from training import runs

PACKAGES = ("stable-baselines3", "sb3-contrib", "torch", "gymnasium")
MODEL = "model.zip"


@dataclasses.dataclass(frozen=True)
class Settings(runs.LibrarySettings):
    """What a run is made of."""

    resume: Path | None = None
    """Folder of a run to go on with, under its own settings but for minutes, steps and deals."""
    num_envs: int = 512
    """Tables played at once. An update follows when the learner has played a deal at each."""
    batch_size: int = 1536
    """Decisions in a step of the optimizer."""
    epochs: int = 2
    """How often an update learns from each decision."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers, of the policy and of the value each."""
    learning_rate: float = 1e-3
    """Adam's learning rate at the start; it falls to a hundredth."""
    entropy_coef: float = 0.02
    """Weight of the entropy in the loss at the start; it falls to a tenth."""
    gae_lambda: float = 0.8
    """How far advantages look ahead before they trust the value."""
    reward_scale: float = 0.1
    """What points are multiplied by."""
    baselines: tuple[str, ...] = ("greedy", "counting")
    """Who plays the other seats at first."""
    snapshot_minutes: float = 0.5
    """How often a snapshot joins the opponents."""
    pool_size: int = 8
    """Snapshots that are kept; the newest stay."""


class PistiVecEnv(VecEnv):
    """`PistiVectorEnv` in Stable-Baselines3's form, which does not take Gymnasium's own. A table
    whose episode is over has to restart in the same step."""

    def __init__(self, envs: PistiVectorEnv, reward_scale: float = 1.0):
        self.envs = envs  # first: VecEnv asks for attributes at once
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.reward_scale = reward_scale
        self._masks = np.zeros((envs.num_envs, 0), np.bool_)
        self._actions = np.zeros(envs.num_envs, np.int64)
        self._seed: int | None = None

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Note the seed of all tables, for the next reset; the tables' decks differ by their
        numbers, so that those of another seed are all others."""
        self._seed = seed
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        """Begin an episode at every table; `seed` tells which."""
        observations, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self._masks = infos["action_mask"] != 0
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Note the actions (n,)."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play; return observations (n, d), rewards (n,), dones (n,) and infos."""
        observations, rewards, ended, _, given = self.envs.step(self._actions)
        self._masks = given["action_mask"] != 0
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for table in np.flatnonzero(ended):
            infos[table]["terminal_observation"] = given["final_obs"][table]
        return observations, (rewards * self.reward_scale).astype(np.float32), ended, infos

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Answer MaskablePPO's question for `action_masks`; there are no other methods."""
        if name != "action_masks":
            raise AttributeError(f"a table has no method {name!r}; expected 'action_masks'")
        return list(self._masks)

    def has_attr(self, name: str) -> bool:
        """Return whether `env_method` knows the name."""
        return name == "action_masks"

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector environment, once for each table asked for."""
        return [getattr(self.envs, name)] * len(list(self._get_indices(indices)))

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        """Tables have nothing that can be set."""
        raise AttributeError(f"{name!r} cannot be set; make another environment")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return that no table is in a wrapper."""
        return [False] * len(list(self._get_indices(indices)))

    def close(self) -> None:
        """Nothing is held open."""


# The policy.


def make_model(envs: PistiVecEnv, settings: Settings) -> MaskablePPO:
    """Return MaskablePPO at the start of a run: ReLU, and nothing shared with the value."""
    rules = envs.envs.rules
    return MaskablePPO(
        "MlpPolicy",
        envs,
        learning_rate=settings.learning_rate,
        n_steps=rules.num_plays // rules.players,
        batch_size=settings.batch_size,
        n_epochs=settings.epochs,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy_coef,
        policy_kwargs={
            "activation_fn": torch.nn.ReLU,
            "net_arch": {"pi": list(settings.hidden), "vf": list(settings.hidden)},
        },
        seed=settings.seed,
        device="cpu",
    )


def policy_of(model: MaskablePPO, settings: Settings) -> Checkpoint:
    """Return the policy as it is now, as `pisti_env` plays it."""
    layers = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    baselines = [Path(name).name for name in settings.baselines]
    return runs.policy_of(
        layers, settings, {"library_steps": model.num_timesteps, "baselines": baselines}
    )


# Training.


class Trainer:
    """A run: the model, its opponents, its budget and its folder."""

    def __init__(self, settings: Settings, folder: Path):
        self.settings, self.folder, self.rules = settings, folder, parse_rules(settings.rules)
        self.baselines = [load(name, self.rules) for name in settings.baselines]
        self.past_illegal_actions, seconds = 0, 0.0
        self.envs = self.make_envs()
        if settings.resume is None:
            self.model = make_model(self.envs, settings)
        else:
            figures = runs.read_result(folder, MODEL)
            with runs.going_on(folder / MODEL):
                self.model = MaskablePPO.load(folder / MODEL, self.envs, device="cpu")
            self.past_illegal_actions, seconds = figures["illegal_actions"], figures["seconds"]
        self.budget = runs.Budget(settings, seconds)

    def make_envs(self) -> PistiVecEnv:
        """Return new tables, with the baselines and the newest snapshots as opponents, each as
        likely."""
        snapshots = sorted((self.folder / runs.SNAPSHOTS).glob("*.safetensors"))
        newest = snapshots[-self.settings.pool_size :]
        pool = [*self.baselines, *(load(path, self.rules, sample=True) for path in newest)]
        envs = PistiVectorEnv(
            self.settings.num_envs,
            pool,
            rules=self.rules,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        return PistiVecEnv(envs, self.settings.reward_scale)

    def train(self) -> None:
        """Learn until the budget is used up; now and then save, and renew the pool."""
        self.envs.seed(self.seed_now())
        begun = self.budget.seconds
        while self.budget.used(self.model.num_timesteps) < 1:
            if self.budget.seconds - begun >= 60 * self.settings.snapshot_minutes:
                begun = self.budget.seconds
                self.save()
                self.renew_pool()
            self.update()
        self.save()

    def update(self) -> None:
        """Play a deal at every table and learn from it."""
        left = 1 - self.budget.used(self.model.num_timesteps)
        rate = self.settings.learning_rate * (0.01 + 0.99 * left)
        self.model.lr_schedule = lambda _: rate
        self.model.ent_coef = self.settings.entropy_coef * (0.1 + 0.9 * left)
        # The least that it can do is one update. A callback that stops it in the middle of one, as
        # is usual, has it throw away what was played.
        self.model.learn(1, log_interval=None, reset_num_timesteps=False)
        entropy = -self.model.logger.name_to_value["train/entropy_loss"]
        self.budget.tell(self.model.num_timesteps, f"entropy {entropy:.2f}")

    def renew_pool(self) -> None:
        """Go on at new tables, with the newest snapshots. Between updates every deal is over, so
        only matches are lost."""
        self.past_illegal_actions = self.illegal_actions
        self.envs = self.make_envs()
        self.envs.seed(self.seed_now())
        self.model.set_env(self.envs)

    def seed_now(self) -> int:
        """Return a seed for the tables that begin now, which no other moment or run has."""
        return derive_seed(f"tables after step {self.model.num_timesteps}", self.settings.seed)

    @property
    def illegal_actions(self) -> int:
        """How many illegal actions there were in the whole run."""
        return self.past_illegal_actions + self.envs.envs.illegal_actions

    def save(self) -> None:
        """Write a snapshot of the policy, and what to go on from."""
        steps = self.model.num_timesteps
        (self.folder / runs.SNAPSHOTS).mkdir(exist_ok=True)
        path = self.folder / runs.SNAPSHOTS / f"{steps:012}.safetensors"
        write_checkpoint(path, policy_of(self.model, self.settings))
        self.model.save(self.folder / "new.zip")
        os.replace(self.folder / "new.zip", self.folder / MODEL)
        runs.write_result(self.folder, PACKAGES, steps, self.budget.seconds, self.illegal_actions)


def check_settings(settings: Settings) -> None:
    """Raise `ValueError` for a number that Stable-Baselines3 would take and never end with."""
    for name in ("threads", "num_envs", "batch_size", "epochs", "pool_size"):
        if getattr(settings, name) < 1:
            value = getattr(settings, name)
            raise ValueError(f"{name.replace('_', '-')} is {value}; expected an int of 1 or more")


def open_trainer(settings: Settings) -> Trainer:
    """Return the trainer of a new run or of one that goes on. A new one's folder is left only if
    everything could be made."""
    if settings.resume is not None:
        folder = settings.resume
        settings = runs.resumed_settings(settings, ("minutes", "steps", "deals"))
        check_settings(settings)
        torch.set_num_threads(settings.threads)
        return Trainer(settings, folder)
    check_settings(settings)
    folder = runs.open_run("sb3", PACKAGES, settings)
    with runs.removed_if_it_fails(folder):
        return Trainer(settings, folder)


def main() -> None:
    """Train as the command line says."""
    settings = tyro.cli(Settings, prog="python -m training.sb3_maskable_ppo", description=__doc__)
    try:
        trainer = open_trainer(settings)
        settings, budget = trainer.settings, trainer.budget
        with budget.used_up_by_signals():
            trainer.train()
        runs.finish(
            trainer.folder,
            policy_of(trainer.model, settings),
            PACKAGES,
            trainer.model.num_timesteps,
            budget,
            trainer.illegal_actions,
            settings.deals,
        )
    except (OSError, ValueError) as error:
        sys.exit(f"training.sb3_maskable_ppo: {error}")
    if budget.stopped:
        runs.say(f"stopped; python -m training.sb3_maskable_ppo --resume {trainer.folder} goes on")


if __name__ == "__main__":
    main()
