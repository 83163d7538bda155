"""What is measured beside each other, of this library and of its peers, each a `Peer`.

The loops and the draw of cards are the same for all. What is not installed is imported only when
its turn begins.
"""

import functools
import importlib
import importlib.metadata
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from benchmarks import yardstick
from pisti_env import pisti_v0
from pisti_env.bench import (
    LEARNER_TABLES,
    Play,
    picker,
    play_aec,
    play_batch,
    play_learners,
    play_rules,
    play_single,
    plural,
)

SEED = 0
THREADS = 2
PGX_TABLES = 4096
BATCH_TABLES = (1, 64, 4096, 16_384, 65_536)
PPO_ENVS = 8
RULES_TABLES = 4096
C_PLAYS = 20_000_000  # far more than it takes to start a process

BARE, WRAPPED, RULES, BATCH, LEARNER, TRAINING = GROUPS = (
    "One table, bare",
    "One table, in PettingZoo's standard wrappers",
    "Many tables, rules alone, one thread",
    "Many tables, with observations and masks",
    "One learner, Gymnasium, decisions",
    "Training, PPO with two layers of 256",
)


class Peer(NamedTuple):
    """One thing to measure."""

    name: str
    group: str
    package: str
    """Whose version is quoted."""
    start: Callable[[], Play]
    """Make everything ready."""

    @property
    def ours(self) -> bool:
        """Whether it is this library."""
        return self.package == "pisti-env"


# PettingZoo, and what has its interface.


def aec(make: Callable[[], Any]) -> Callable[[], Play]:
    """Play a turn-based environment of PettingZoo's."""
    return lambda: play_aec(make())


def pettingzoo_game(module: str, function: str) -> Callable[[], Play]:
    """Play one of PettingZoo's classic games."""
    return aec(lambda: getattr(importlib.import_module(f"pettingzoo.classic.{module}"), function)())


class EmptyAEC(AECEnv):
    """An environment with the spaces and the length of a deal of ours, in which nothing happens:
    what is left is the price of the interface."""

    metadata: ClassVar[dict[str, Any]] = {"name": "empty_v0", "render_modes": []}
    num_plays = 48

    def __init__(self) -> None:
        super().__init__()
        ours = pisti_v0.raw_env()
        self.possible_agents = ours.possible_agents[:]
        self.observation_spaces = ours.observation_spaces
        self.action_spaces = ours.action_spaces
        self.render_mode = None
        space: Any = ours.observation_space(ours.possible_agents[0])
        self._size = space["observation"].shape
        self._num_actions = space["action_mask"].shape

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the same space as ours."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the same space as ours."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin again."""
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._plays = 0
        self.agent_selection = self.agents[0]

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """Return fresh arrays in which nothing stands, with every action legal."""
        return {
            "observation": np.zeros(self._size, np.float32),
            "action_mask": np.ones(self._num_actions, np.int8),
        }

    def step(self, action: int | None) -> None:
        """Give the turn to the next agent."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._plays += 1
        if self._plays == self.num_plays:
            self.terminations = dict.fromkeys(self.agents, True)
        self._cumulative_rewards[agent] = 0.0
        self.agent_selection = self.possible_agents[self._plays % len(self.possible_agents)]
        self._accumulate_rewards()


# RLCard and OpenSpiel.


def rlcard_game(name: str) -> Callable[[], Play]:
    """Play one of RLCard's games; its state holds the observation and the legal actions."""

    def start() -> Play:
        import rlcard

        env, pick = rlcard.make(name, config={"seed": SEED}), picker(SEED)

        def play_game() -> int:
            state, _ = env.reset()
            plays = 0
            while not env.is_over():
                state, _ = env.step(pick(list(state["legal_actions"])))
                plays += 1
            return plays

        return play_game

    return start


def openspiel_game(name: str) -> Callable[[], Play]:
    """Play one of OpenSpiel's games, with its information state as a tensor, or if it has none with
    its observation. What chance does is no play; in these games all of it is equally likely."""

    def start() -> Play:
        import pyspiel

        game, pick = pyspiel.load_game(name), picker(SEED)
        informs = game.get_type().provides_information_state_tensor

        def play_game() -> int:
            state = game.new_initial_state()
            plays = 0
            while not state.is_terminal():
                if not state.is_chance_node():
                    state.information_state_tensor() if informs else state.observation_tensor()
                    plays += 1
                state.apply_action(pick(state.legal_actions()))
            return plays

        return play_game

    return start


# Many tables.


def start_c() -> Play:
    """Play the yardstick in C, a process each time."""
    folder = tempfile.TemporaryDirectory()
    program = yardstick.build(Path(folder.name))
    steps = C_PLAYS // RULES_TABLES

    def play(folder: Any = folder) -> int:  # which stays as long as the function
        yardstick.run_c(program, RULES_TABLES, steps, SEED)
        return steps * RULES_TABLES

    return play


def pgx_game(name: str) -> Callable[[], Play]:
    """Play one of Pgx's games at many tables that begin anew by themselves."""

    def start() -> Play:
        import jax
        import jax.numpy as jnp
        import pgx
        from pgx.experimental import auto_reset

        env = pgx.make(name)
        step = jax.vmap(auto_reset(env.step, env.init))
        tables = jnp.arange(PGX_TABLES, dtype=jnp.uint32)

        def play_once(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            """As in `sample_legal`, but that JAX has 32 bits where it is not told otherwise."""
            state, samplers = carry
            samplers = samplers * jnp.uint32(1664525) + jnp.uint32(1013904223)
            masks = state.legal_action_mask
            left = (samplers >> 16) * masks.sum(axis=1, dtype=jnp.uint32) >> 16
            passed = masks.cumsum(axis=1, dtype=jnp.uint32)
            actions = (passed <= left[:, None]).sum(axis=1, dtype=jnp.int32)
            return step(state, actions, jnp.stack([samplers, tables], axis=1)), samplers

        steps = 8
        play_all = jax.jit(lambda carry: jax.lax.fori_loop(0, steps, play_once, carry))
        keys = jax.random.split(jax.random.PRNGKey(SEED), PGX_TABLES)
        carry = jax.jit(jax.vmap(env.init))(keys), keys[:, 0]

        def play() -> int:
            nonlocal carry
            carry = jax.block_until_ready(play_all(carry))
            return steps * PGX_TABLES

        return play

    return start


# Training.


def maskable_ppo(threads: int) -> Callable[[], Play]:
    """Train SB3's MaskablePPO against `greedy`, with our trainer's network and as much learning
    from each decision. Only the learner's decisions count as plays, not the opponent's."""

    def start() -> Play:
        import gymnasium
        import torch
        from sb3_contrib import MaskablePPO
        from stable_baselines3.common.vec_env import DummyVecEnv

        from training.selfplay import Settings

        settings = Settings()
        make = [lambda: gymnasium.make("Pisti-v0", opponent="greedy")] * PPO_ENVS
        steps = settings.minibatch_size // PPO_ENVS
        model = MaskablePPO(
            "MlpPolicy",
            DummyVecEnv(make),
            learning_rate=settings.learning_rate,
            n_steps=steps,
            batch_size=settings.minibatch_size,
            n_epochs=settings.epochs,
            policy_kwargs=shared_layers(settings.hidden),
            device="cpu",
            seed=SEED,
        )

        def play() -> int:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision("highest")
            model.learn(steps * PPO_ENVS, reset_num_timesteps=False)
            return steps * PPO_ENVS

        return play

    return start


def shared_layers(hidden: Sequence[int]) -> dict[str, Any]:
    """Have policy and value share hidden layers, as in our network; SB3 gives each its own."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Trunk(BaseFeaturesExtractor):
        def __init__(self, space: spaces.Box):
            super().__init__(space, hidden[-1])
            layers: list[torch.nn.Module] = []
            for inputs, outputs in itertools.pairwise((space.shape[0], *hidden)):
                layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, observations: torch.Tensor) -> Any:
            return self.layers(observations)

    return {"features_extractor_class": Trunk, "net_arch": []}


def start_trainer(all_seeing_critic: bool, matmul_precision: str) -> Play:
    """Train with our trainer as it is without arguments, or with one network, as SB3 has here."""
    import torch

    from training.selfplay import Settings, collect, generators_of, learn, make_learner
    from training.settings import check_settings

    settings = Settings(
        threads=THREADS,
        seed=SEED,
        all_seeing_critic=all_seeing_critic,
        matmul_precision=matmul_precision,
    )
    rules, device = check_settings(settings), torch.device(settings.device)
    batch, network, optimizer, buffers, _ = make_learner(settings, rules)
    updates = itertools.count(1)

    def play() -> int:
        torch.set_num_threads(THREADS)
        torch.set_float32_matmul_precision(matmul_precision)
        decks, generator = generators_of(settings.seed, next(updates), device)
        decisions = collect(network, batch, buffers, settings, decks, generator)
        learn(network, optimizer, decisions, settings, settings.entropy_coef, generator)
        return rules.num_plays * settings.num_tables

    return play


# All of them.

PETTINGZOO_GAMES = {
    "tictactoe": "tictactoe_v3",
    "connect_four": "connect_four_v3",
    "leduc_holdem": "leduc_holdem_v4",
    "texas_holdem": "texas_holdem_v4",
}


def all_peers() -> Iterator[Peer]:
    """Every peer, ours first in each group."""
    yield Peer("pisti-env", BARE, "pisti-env", aec(pisti_v0.raw_env))
    yield Peer("empty environment with our spaces", BARE, "pettingzoo", aec(EmptyAEC))
    for game, module in PETTINGZOO_GAMES.items():
        yield Peer(f"PettingZoo {game}", BARE, "pettingzoo", pettingzoo_game(module, "raw_env"))
    for game in ("leduc-holdem", "uno", "gin-rummy"):
        yield Peer(f"RLCard {game}", BARE, "rlcard", rlcard_game(game))
    for game in ("leduc_poker", "gin_rummy", "crazy_eights"):
        yield Peer(f"OpenSpiel {game}", BARE, "open-spiel", openspiel_game(game))

    yield Peer("pisti-env", WRAPPED, "pisti-env", aec(pisti_v0.env))
    for game, module in PETTINGZOO_GAMES.items():
        yield Peer(f"PettingZoo {game}", WRAPPED, "pettingzoo", pettingzoo_game(module, "env"))

    name = f"pisti-env, {plural(RULES_TABLES, 'table')}"
    yield Peer(name, RULES, "pisti-env", lambda: play_rules(RULES_TABLES, 1))
    yield Peer(f"plain C, {plural(RULES_TABLES, 'table')}", RULES, "cc", start_c)

    for tables, threads in itertools.product(BATCH_TABLES, range(1, THREADS + 1)):
        if threads <= tables:
            name = f"pisti-env, {plural(tables, 'table')}, {plural(threads, 'thread')}"
            start = functools.partial(play_batch, tables, threads)
            yield Peer(name, BATCH, "pisti-env", start)
    for game in ("tic_tac_toe", "leduc_holdem", "sparrow_mahjong"):
        yield Peer(f"Pgx {game}, {PGX_TABLES:,} tables", BATCH, "pgx", pgx_game(game))

    name = f"pisti-env, {plural(LEARNER_TABLES, 'table')} against counting"
    yield Peer(name, LEARNER, "pisti-env", play_learners)
    yield Peer("pisti-env, 1 table against counting", LEARNER, "pisti-env", play_single)

    for critic, of_what in ((False, "one network"), (True, "with its critic")):
        for precision, exactly in (("highest", ""), ("medium", ", bfloat16 products")):
            name = f"pisti-env's trainer, {of_what}{exactly}, {plural(THREADS, 'thread')}"
            start = functools.partial(start_trainer, critic, precision)
            yield Peer(name, TRAINING, "pisti-env", start)
    for threads in range(1, THREADS + 1):
        name = f"SB3 MaskablePPO, {PPO_ENVS} environments, {plural(threads, 'thread')}"
        yield Peer(name, TRAINING, "sb3-contrib", maskable_ppo(threads))
