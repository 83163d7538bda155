"""Pişti for one learner: Gymnasium environments in which agents play all other seats.

```python
import gymnasium
import pisti_env

env = gymnasium.make("Pisti-v0", opponent="counting")
observation, info = env.reset(seed=42)
terminated = False
while not terminated:
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

envs = gymnasium.make_vec("Pisti-v0", num_envs=256, opponent="greedy")
```

| | |
|---|---|
| Action space | `Discrete(15)`, a kind of card; with the face encodings `Discrete(52)`, a card |
| Observation space | `Box(0, 1, (d,), float32)`, or a `Dict` of it and of `action_mask` |
| Infos | `action_mask`, (a,) int8: 1 for each legal action; all zero at the end |

A step plays the learner's card, and then the others' until it is the learner's turn again or the
episode is over. An episode is a deal, or with a `target` a match: then the next deal is dealt
within a step. What an observation holds is told in `pisti_env.pisti_v0`, and by its `describe`.

### Arguments

- `opponent`: who plays the other seats. `"counting"` (default), `"greedy"`, `"random"`, the name of
  a policy that comes with the package, a checkpoint's path, an agent (anything with `act`,
  `observation` and `rules`); or several to draw from: a list of these, each as likely, or a
  `pisti_env.agents.hosting.Pool` with weights. One is drawn for each table and episode, and has all
  the seats there.
- `partner`: who plays the seat opposite the learner where there are partners, in any of these
  forms. None: as the opponent at the table.
- `rules`, and single fields of them: `rules="istanbul", players=4`.
- `observation`: the encoding, `"kinds"` by default.
- `mask_in`: `"info"` (default), or `"observation"`: there too, in a `Dict`.
- `rewards`: what the learner's side gains less the mean gain of the other sides: `"difference"`
  (default), `"terminal"` or `"win"`, each as in `pisti_v0`.
- `seat`: the learner's; None (default): drawn anew in every episode.
- `illegal`: what an action does that is not in the hand. `"end"` (default): it ends the episode,
  which counts as terminated, and the reward is minus the most that a side can lose in a deal (for
  `"win"`, by losing). `"raise"`: `ValueError`, and nothing changes.
- `render_mode`: None; `"ansi"`, `render()` returns the learner's view as text; `"human"`, it is
  printed after every step (not for many tables).

### Rewards

A reward is all that the learner's side has gained less what the others have, since the learner's
last decision: by its own card and by everyone's after it. What the others do before the learner's
first decision is part of the first reward. So the rewards of an episode add up to what its side has
in the end, less the others' mean.

### Reset

`reset(seed=…, options={"deck": […], "dealer": i, "scores": […], "seat": i})`, each optional. `seat`
is the learner's in this episode; the rest, and what is refused, is as in `pisti_v0.reset`. A seed
decides this episode and all that follow until the next seed: decks, dealers, the learner's seats,
which opponents are drawn and what they draw. The decks and dealers are those of `pisti_v0.env` with
this seed. Seeds are ints from 0 to 2**64 - 1; before the first seed the stream is an unpredictable
one.

### Many tables

`gymnasium.make_vec("Pisti-v0", num_envs=n, …)` plays n tables at once, with the same arguments: an
opponent is asked once for all tables where it is to play, so a network is called once. Table i with
`reset(seed=[s_0, …])` plays the same episodes, number for number, as the single environment with
seed s_i; `reset(seed=s)` is `[s, s + 1, …]`, as in Gymnasium, so table i is the same whatever n.

A table whose episode is over restarts in the same step (`AutoresetMode.SAME_STEP`): observations
and `infos["action_mask"]` (n, a) show the next episode, `infos["final_obs"]` (n,) holds the last
observations of the old one, None elsewhere, and `infos["final_info"]` their infos; `_final_obs` and
`_final_info` (n,) bool say where. With `illegal="raise"` every action is checked before any card is
played. `reset(options={"reset_mask": (n,) bool})` begins an episode at those tables alone;
observations and masks are of all.

### Beside the Gymnasium interface

`env.unwrapped.action_masks()` returns the legal actions as bools; `env.unwrapped.seat` (of many
tables, `seats`) is the learner's seat; `env.unwrapped.illegal_actions` counts illegal actions, in
all episodes so far. `copy.deepcopy` and `pickle` give an environment that goes
on identically, in mid-episode too, if the agents can be copied.
"""

import functools
import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import check_fit
from pisti_env.agents.hosting import Pool, query, refuse
from pisti_env.cards import card_names
from pisti_env.checks import check_actions, check_dealer, check_deck, check_scores, is_int, is_row
from pisti_env.compile import announce_compilation, compiled
from pisti_env.game import NOBODY
from pisti_env.knowledge import hand_of, make_view
from pisti_env.observation import encoder
from pisti_env.quote import quote
from pisti_env.render import draw, show
from pisti_env.rules import Rules, RulesLike, resolve_rules
from pisti_env.shuffle import check_seed, derive_seed, draw_numbers_at
from pisti_env.tables import Tables
from pisti_env.tables import warm_up as warm_up_tables

__all__ = ["PistiEnv", "PistiVectorEnv"]

_RESET_OPTIONS = ("deck", "dealer", "scores", "seat")
_RESET_MASK = "reset_mask"

# What a number is drawn for, beside a play of the deal, which is its own purpose.
_SEAT_PURPOSE, *_AGENT_PURPOSES = range(1000, 1003)  # these for the opponent, the partner

_LEARNER = -1  # among the numbers of agents, who has a seat


class LearnerTables:
    """Tables at which the learner has one seat and agents have the others.

    Both environments are made of one: `begin`, then `play_on`, until it is the learner's turn at
    each table or its episode is over; then `choose` and `play` the learner's cards, and `play_on`.

    Attributes: `tables`; `all_rows` (n,); `encoder`, of the learner's observations; `seats` (n,)
    int64, the learner's; `gained` (n,) float64, what its side has gained less the others' mean,
    that it has not been paid for yet; `illegal_actions`, how many it tried so far; `space`, of one
    table's observations.
    """

    def __init__(
        self,
        num_tables: int,
        opponent: Any,
        partner: Any,
        rules: Rules,
        observation: str,
        mask_in: str,
        rewards: str,
        seat: int | None,
        illegal: str,
    ):
        if mask_in not in ("observation", "info"):
            raise ValueError(f"mask_in is {quote(mask_in)}; expected 'observation' or 'info'")
        if illegal not in ("end", "raise"):
            raise ValueError(f"illegal is {quote(illegal)}; expected 'end' or 'raise'")
        self.rules = rules
        self.mask_in = mask_in
        self.illegal = illegal
        self._seat = None if seat is None else check_seat(rules, seat)
        self.encoder = encoder(observation, rules)
        # The streams of the tables differ by their seeds alone.
        self.tables = Tables(rules, num_tables, np.zeros(num_tables, np.int64), rewards)
        self.all_rows = self.tables.all_rows
        self._read_agents(opponent, partner)
        warm_up()
        self.seats = np.zeros(num_tables, np.int64)
        self.gained = np.zeros(num_tables)
        self._sides = np.zeros(num_tables, np.int64)  # the learner's
        self._who = np.full((num_tables, rules.players), _LEARNER)  # numbers of agents, by seat
        self._draws = np.zeros(num_tables, np.uint64)  # seeds of what is drawn beside the decks
        self.illegal_actions = 0
        random = np.frombuffer(secrets.token_bytes(16 * num_tables), np.uint64)
        self.tables.reseed_each(self.all_rows, random[:num_tables])
        self._draws[:] = random[num_tables:]

        self.space: spaces.Space[Any] = spaces.Box(0.0, 1.0, (self.encoder.size,), np.float32)
        if mask_in == "observation":
            mask_box = spaces.Box(0, 1, (self.encoder.num_actions,), np.int8)
            self.space = spaces.Dict({"observation": self.space, "action_mask": mask_box})

    def _read_agents(self, opponent: Any, partner: Any) -> None:
        """Note who may sit at the tables: all different agents, and pools with their numbers."""
        if partner is not None and not self.rules.pairs:
            raise ValueError(
                f"partner is {quote(partner)}; expected None, since these rules have no partners"
            )
        pools = [make_pool("opponent", opponent, self.rules)]
        if partner is not None:
            pools.append(make_pool("partner", partner, self.rules))
        everyone = [agent for pool in pools for agent in pool.agents]
        self._agents = list({id(agent): agent for agent in everyone}.values())
        self._encoders = [encoder(agent.observation, self.rules) for agent in self._agents]
        number_of = {id(agent): number for number, agent in enumerate(self._agents)}
        self._pools = [(p, np.array([number_of[id(agent)] for agent in p.agents])) for p in pools]

    def reseed(self, rows: np.ndarray, seeds: Sequence[Any]) -> None:
        """Go to the first episode of `seeds` (k,) at the tables `rows` (k,)."""
        self.tables.reseed_each(rows, np.array(seeds, np.uint64))
        draws = [derive_seed("opponents", seed) for seed in seeds]  # an agent gets numbers of them
        self._draws[rows] = np.array(draws, np.uint64)

    def begin(
        self,
        rows: np.ndarray,
        deck: np.ndarray | None = None,
        dealer: int | None = None,
        scores: np.ndarray | None = None,
        seat: int | None = None,
    ) -> None:
        """Begin an episode at the tables `rows`, with what is given, checked before, at each."""
        self.gained[rows] = 0.0
        self._seat_everyone(rows, self._seat if seat is None else seat)
        self.tables.start(
            rows,
            None if deck is None else np.broadcast_to(deck, (len(rows), len(deck))),
            None if dealer is None else np.full(len(rows), dealer),
            scores,
        )

    def _seat_everyone(self, rows: np.ndarray, seat: int | None) -> None:
        """Give the learner its seat at the tables `rows`, drawn if it is None, and draw agents."""
        players, sides = self.rules.players, self.rules.sides
        if seat is None:
            seats = (self._draw_uniform(rows, _SEAT_PURPOSE) * players).astype(np.int64)
        else:
            seats = np.full(len(rows), seat)
        self.seats[rows] = seats
        self._sides[rows] = seats % sides
        opponents, *partners = (
            numbers[pool.draw(self._draw_uniform(rows, purpose))]
            for (pool, numbers), purpose in zip(self._pools, _AGENT_PURPOSES, strict=False)
        )
        self._who[rows] = opponents[:, np.newaxis]
        for agents in partners:
            self._who[rows, (seats + sides) % players] = agents
        self._who[rows, seats] = _LEARNER

    def _draw_uniform(self, rows: np.ndarray, purpose: int) -> np.ndarray:
        """Return a number in [0, 1) for each of `rows` (k,), for their episodes to come."""
        purposes = np.full(len(rows), purpose)
        drawn = draw_numbers_at(rows, self._draws, self.tables.deals_dealt, purposes)
        return (drawn >> np.uint64(11)) * 2.0**-53

    def choose(self, actions: np.ndarray) -> np.ndarray:
        """Choose the learner's `actions` (n,) int64 where they are legal; return the other rows."""
        action_of_card = self.encoder.action_of_card
        if self.tables.find_cards(actions, action_of_card) < 0:
            return self.all_rows[:0]
        inside = actions.clip(0, self.encoder.num_actions - 1)
        masks = self.action_masks(self.all_rows)
        legal = (inside == actions) & (masks[self.all_rows, inside] != 0)
        rows = np.flatnonzero(legal)
        self.tables.find_cards(actions[rows], action_of_card, rows)
        self.illegal_actions += len(actions) - len(rows)
        return np.flatnonzero(~legal)

    def refusal(self, row: int, action: int, what: str) -> ValueError:
        """Return what to raise for an illegal action."""
        seat, names = int(self.seats[row]), self.encoder.action_names
        name = f" ({names[action]})" if 0 <= action < len(names) else ""
        hand = hand_of(self.tables.games[row : row + 1], seat)
        return ValueError(
            f"{what} is {action}{name}, which is not in the hand of seat {seat}, "
            f"{card_names(hand)}; play one of those"
        )

    def play(self, rows: np.ndarray, on_over: Callable[[np.ndarray], None]) -> None:
        """Play the cards that were chosen at the tables `rows`, and deal the next deal of a match.
        `on_over(rows)` is told of the episodes that are over, and may begin the next ones."""
        tables = self.tables
        tables.play(rows)
        add_gains(tables.rewards, rows, self._sides, self.gained)
        scored = rows[tables.scored[rows]]
        if len(scored):
            over = tables.over[scored]
            tables.next_deals(scored[~over])
            if over.any():
                on_over(scored[over])

    def play_on(self, rows: np.ndarray, on_over: Callable[[np.ndarray], None]) -> None:
        """At the tables `rows`, have the agents play until it is the learner's turn or the episode
        is over; `on_over` as for `play`."""
        while True:
            waiting = np.empty(len(rows), np.int64)
            count = find_waiting(self.tables.games, rows, self.seats, waiting)
            if count == 0:
                return
            rows = waiting[:count]
            self._ask_each(rows)
            self.play(rows, on_over)

    def _ask_each(self, rows: np.ndarray) -> None:
        """Have the agents choose a card at the tables `rows`, where it is their turn."""
        seats = self.tables.games["to_play"][rows].astype(np.int64)
        if len(self._agents) == 1:
            self._ask(0, rows, seats)
            return
        who = self._who[rows, seats]
        for number in range(len(self._agents)):
            theirs = who == number
            if theirs.any():
                self._ask(number, rows[theirs], seats[theirs])

    def _ask(self, number: int, rows: np.ndarray, seats: np.ndarray) -> None:
        """Have one agent choose a card at the tables `rows`, where `seats` (k,) are to play."""
        agent, encoder, games = self._agents[number], self._encoders[number], self.tables.games
        observations = np.empty((len(rows), encoder.size), np.float32)
        masks = np.empty((len(rows), encoder.num_actions), np.int8)
        encoder.encode(games, rows, seats, observations, masks)
        plays = games["num_plays"][rows].astype(np.int64)
        seeds = draw_numbers_at(rows, self._draws, self.tables.deals_dealt, plays)
        actions = query(agent, observations, masks, seeds).astype(np.int64, copy=False)
        illegal = self.tables.find_cards(actions, encoder.action_of_card, rows)
        if illegal >= 0:
            refuse(agent, int(actions[illegal]))

    def observe(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the learner observes at the tables `rows` (k,) and its legal actions, new
        arrays (k, d) float32 and (k, a) int8."""
        observations = np.empty((len(rows), self.encoder.size), np.float32)
        masks = np.empty((len(rows), self.encoder.num_actions), np.int8)
        self.encoder.encode(self.tables.games, rows, self.seats[rows], observations, masks)
        return observations, masks

    def action_masks(self, rows: np.ndarray) -> np.ndarray:
        """Return the legal actions at the tables `rows` (k,), a new (k, a) int8 array."""
        masks = np.empty((len(rows), self.encoder.num_actions), np.int8)
        self.encoder.mask(self.tables.games, rows, masks)
        return masks

    def draw(self, row: int) -> str:
        """Return the learner's view of a table as text."""
        games = self.tables.games[row : row + 1]
        return draw(make_view(games, self.rules, int(self.seats[row]), None), self.rules)

    def in_form(self, observations: np.ndarray, masks: np.ndarray) -> Any:
        """Return observations in the form of their space; the masks are copied."""
        if self.mask_in == "info":
            return observations
        return {"observation": observations, "action_mask": masks.copy()}


class PistiEnv(gymnasium.Env[Any, Any]):
    """One table, `gymnasium.make("Pisti-v0", …)`. See this module's manual."""

    # Gymnasium does not call it a class variable.
    metadata: dict[str, Any] = {"render_modes": ["human", "ansi"], "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        opponent: Any = "counting",
        partner: Any = None,
        rules: RulesLike = "standard",
        observation: str = "kinds",
        mask_in: str = "info",
        rewards: str = "difference",
        seat: int | None = None,
        illegal: str = "end",
        render_mode: str | None = None,
        **fields: Any,
    ):
        check_render_mode(render_mode, self.metadata)
        self.rules = resolve_rules(rules, **fields)
        self._core = LearnerTables(
            1, opponent, partner, self.rules, observation, mask_in, rewards, seat, illegal
        )
        self.render_mode = render_mode
        self.observation_space = self._core.space
        self.action_space = spaces.Discrete(self._core.encoder.num_actions)
        self._action = np.zeros(1, np.int64)
        self._started = False
        self._over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return the learner's first observation, and the info with its mask.

        Raises `ValueError`, and changes nothing, for a wrong seed or option.
        """
        core = self._core
        given = read_options(self.rules, options, _RESET_OPTIONS)
        if seed is not None:
            seed = check_seed(seed)
            core.reseed(core.all_rows, [seed])
        super().reset(seed=seed)
        core.begin(core.all_rows, **given)
        core.play_on(core.all_rows, ignore)
        self._started, self._over = True, False
        if self.render_mode == "human":
            self.render()
        return self._observe()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's card, and the others' until it is its turn again.

        Returns the observation, the reward, whether the episode is over, False (nothing truncates
        it), and the info with the mask. Raises `ValueError`, and changes nothing, for an action
        that is no int, and with `illegal="raise"` for one that is not in the hand.
        """
        core = self._core
        self._check_started()
        if self._over:
            raise gymnasium.error.ResetNeeded("the episode is over; call reset()")
        if not is_int(action):
            raise ValueError(f"action is {quote(action)}; expected an int")
        self._action[0] = min(max(int(action), -1), core.encoder.num_actions)  # to fit 64 bits
        if len(core.choose(self._action)):
            if core.illegal == "raise":
                raise core.refusal(0, int(action), "action")
            self._over, reward = True, -core.tables.most_to_lose
        else:
            core.play(core.all_rows, ignore)
            core.play_on(core.all_rows, ignore)
            self._over, reward = bool(core.tables.over[0]), float(core.gained[0])
        core.gained[0] = 0.0
        if self.render_mode == "human":
            self.render()
        observation, info = self._observe()
        return observation, reward, self._over, False, info

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        """Return what the learner observes, in the form of its space, and the info."""
        core = self._core
        observations, masks = core.observe(core.all_rows)
        if self._over:
            masks[:] = 0  # an illegal action ended it
        return core.in_form(observations[0], masks[0]), {"action_mask": masks[0]}

    def action_masks(self) -> np.ndarray:
        """Return whether each action is legal, (a,) bool; none is once the episode is over."""
        self._check_started()
        masks = self._core.action_masks(self._core.all_rows)
        return (masks[0] != 0) & (not self._over)

    @property
    def illegal_actions(self) -> int:
        """How many illegal actions there were so far, in all episodes."""
        return self._core.illegal_actions

    @property
    def seat(self) -> int:
        """The learner's seat."""
        self._check_started()
        return int(self._core.seats[0])

    def _check_started(self) -> None:
        if not self._started:
            raise gymnasium.error.ResetNeeded("no deal has been dealt yet; call reset() first")

    def render(self) -> str | None:
        """Return the learner's view as text ("ansi") or print it ("human")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='ansi' or 'human'; it is None")
            return None
        self._check_started()
        text = self._core.draw(0)
        if self.render_mode == "ansi":
            return text
        show(text)
        return None


class PistiVectorEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """Many tables, `gymnasium.make_vec("Pisti-v0", num_envs=n, …)`. See this module's manual."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        opponent: Any = "counting",
        partner: Any = None,
        rules: RulesLike = "standard",
        observation: str = "kinds",
        mask_in: str = "info",
        rewards: str = "difference",
        seat: int | None = None,
        illegal: str = "end",
        render_mode: str | None = None,
        **fields: Any,
    ):
        if not is_int(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs is {quote(num_envs)}; expected an int of 1 or more")
        check_render_mode(render_mode, self.metadata)
        self.num_envs = int(num_envs)
        self.rules = resolve_rules(rules, **fields)
        self._core = LearnerTables(
            num_envs, opponent, partner, self.rules, observation, mask_in, rewards, seat, illegal
        )
        self.render_mode = render_mode
        self.single_observation_space = self._core.space
        self.single_action_space = spaces.Discrete(self._core.encoder.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._started = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | np.ndarray | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at every table, or at those of `options["reset_mask"]`; return all
        tables' observations (n, d) float32, or a dict of arrays, and infos.

        Raises `ValueError`, and changes nothing, for a wrong seed or option.
        """
        core = self._core
        given = read_options(self.rules, options, (*_RESET_OPTIONS, _RESET_MASK))
        rows = self._read_mask((options or {}).get(_RESET_MASK))
        seeds = self._read_seeds(seed)
        super().reset(seed=seeds[0] if is_int(seed) else None)
        seeded = np.array([row for row in rows if seeds[row] is not None], np.int64)
        if len(seeded):
            core.reseed(seeded, [seeds[row] for row in seeded])
        core.begin(rows, **given)
        core.play_on(rows, ignore)
        self._started = True
        return self._observe()

    def _read_mask(self, mask: Any) -> np.ndarray:
        """Return the rows of a reset mask, (k,); all without one."""
        if mask is None:
            return self._core.all_rows
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(
                f"reset_mask is {quote(mask)}; expected an array of bools, one or more True"
            )
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"reset_mask has shape {mask.shape}; expected ({self.num_envs},), one per table"
            )
        if not self._started:
            raise gymnasium.error.ResetNeeded("reset_mask is given; call reset() without it first")
        return np.flatnonzero(mask)

    def _read_seeds(self, seed: Any) -> list[int | None]:
        """Return every table's seed, None where there is none."""
        if seed is None:
            return [None] * self.num_envs
        if is_int(seed):
            first = check_seed(seed)
            return [check_seed(first + table) for table in range(self.num_envs)]
        if not is_row(seed) or len(seed) != self.num_envs:
            raise ValueError(
                f"seed is {quote(seed)}; expected an int, or a list of one per table, "
                f"{self.num_envs}"
            )
        return [None if one is None else check_seed(one) for one in seed]

    def step(
        self, actions: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play the learner's card at every table, and the others' until it is its turn everywhere;
        a table whose episode is over restarts at once.

        Takes actions (n,) of an integer dtype. Returns observations (n, d) float32, or a dict of
        arrays, rewards (n,) float64, terminations and truncations (n,) bool, and infos: all new.
        Raises `ValueError` for actions of another form, and with `illegal="raise"`, before any card
        is played, for one that is not in its hand.
        """
        if not self._started:
            raise gymnasium.error.ResetNeeded("no deal has been dealt yet; call reset() first")
        core = self._core
        actions = check_actions(actions, self.num_envs)
        rewards = np.zeros(self.num_envs)
        ended = np.zeros(self.num_envs, np.bool_)
        finals: list[tuple[np.ndarray, np.ndarray]] = []

        def restart(rows: np.ndarray) -> None:
            finals.append((rows, core.observe(rows)[0]))
            ended[rows], rewards[rows] = True, core.gained[rows]
            core.begin(rows)

        rows, illegal = core.all_rows, core.choose(actions)
        if len(illegal):
            if core.illegal == "raise":
                table = int(illegal[0])
                raise core.refusal(table, int(actions[table]), f"action of table {table}")
            restart(illegal)
            rewards[illegal] = -core.tables.most_to_lose
            rows = np.flatnonzero(~ended)
        core.play(rows, restart)
        core.play_on(core.all_rows, restart)
        # What others did at a table that has restarted belongs to its next reward.
        rewards = np.where(ended, rewards, core.gained)
        core.gained[~ended] = 0.0
        observations, infos = self._observe()
        if finals:
            self._add_finals(infos, ended, finals)
        return observations, rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        """Return what the learner observes at all tables, in the form of its space, and infos."""
        core = self._core
        observations, masks = core.observe(core.all_rows)
        infos = {"action_mask": masks, "_action_mask": np.ones(self.num_envs, np.bool_)}
        return core.in_form(observations, masks), infos

    def _add_finals(
        self,
        infos: dict[str, Any],
        ended: np.ndarray,
        finals: list[tuple[np.ndarray, np.ndarray]],
    ) -> None:
        """Add the last observations and infos of the episodes that ended, in Gymnasium's form."""
        no_action = np.zeros(self._core.encoder.num_actions, np.int8)
        final_obs = np.full(self.num_envs, None, object)
        for rows, observations in finals:
            for row, observation in zip(rows.tolist(), observations, strict=True):
                final_obs[row] = self._core.in_form(observation, no_action)
        infos["final_obs"], infos["_final_obs"] = final_obs, ended.copy()
        infos["final_info"] = {
            "action_mask": np.zeros((self.num_envs, len(no_action)), np.int8),
            "_action_mask": ended.copy(),
        }
        infos["_final_info"] = ended.copy()

    @property
    def illegal_actions(self) -> int:
        """How many illegal actions there were so far, at all tables and in all episodes."""
        return self._core.illegal_actions

    @property
    def seats(self) -> np.ndarray:
        """The learner's seat at each table, (n,) int64."""
        return self._core.seats.copy()

    def action_masks(self) -> np.ndarray:
        """Return whether each action is legal, (n, a) bool."""
        return self._core.action_masks(self._core.all_rows) != 0

    def render(self) -> tuple[str, ...] | None:
        """Return the learner's view of every table as text ("ansi")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='ansi'; it is None")
            return None
        return tuple(self._core.draw(table) for table in range(self.num_envs))


def ignore(rows: np.ndarray) -> None:
    """Let episodes that are over stay so."""


# Who plays.


def make_pool(name: str, given: Any, rules: Rules) -> Pool:
    """Return a pool of agents from the argument `name`; raise `ValueError` if it is none."""
    if isinstance(given, Pool):
        for agent in given.agents:
            check_agent(name, agent, rules)
        return given
    if not isinstance(given, (list, tuple)):
        given = [given]
    if not given:
        raise ValueError(f"{name} is {quote(given)}; expected at least one agent")
    return Pool([make_agent(name, one, rules) for one in given])


def make_agent(name: str, given: Any, rules: Rules) -> Agent:
    """Return an agent from its name or path, or itself."""
    if isinstance(given, (str, Path)):
        return load(given, rules)
    check_agent(name, given, rules)
    agent: Agent = given
    return agent


def check_agent(name: str, agent: Any, rules: Rules) -> None:
    """Raise `ValueError` for what is no agent, or cannot play the rules; warn (`UserWarning`) if it
    was made for others."""
    if isinstance(agent, type) or not all(
        hasattr(agent, needed) for needed in ("act", "observation", "rules")
    ):
        raise ValueError(
            f"{name} is {quote(agent)}; expected an agent's name, a checkpoint's path, an agent "
            "(it has act, observation and rules), a list of them or a Pool"
        )
    note = check_fit(type(agent).__name__, agent.rules, rules, agent.observation)
    if note is not None:
        warnings.warn(note, stacklevel=2)


# What users give, checked at the border.


def check_seat(rules: Rules, seat: Any) -> int:
    """Return a learner's seat as an int; raise `ValueError` if it is none."""
    if is_int(seat) and 0 <= seat < rules.players:
        return int(seat)
    raise ValueError(
        f"seat is {quote(seat)}; expected None or an int from 0 to {rules.players - 1}"
    )


def check_render_mode(render_mode: Any, metadata: dict[str, Any]) -> None:
    """Raise `ValueError` if there is no such way to render."""
    modes = metadata["render_modes"]
    if render_mode not in (None, *modes):
        raise ValueError(
            f"render_mode is {quote(render_mode)}; expected None or {' or '.join(map(repr, modes))}"
        )


def read_options(rules: Rules, options: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """Return what `reset` was given, checked, as arguments for `LearnerTables.begin`."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise ValueError(f"options is {quote(options)}; expected a dict or None")
    for name in options:
        if name not in known:
            raise ValueError(f"reset option is {quote(name)}; expected one of {', '.join(known)}")
    checks = (check_deck, check_dealer, check_scores, check_seat)
    return {
        name: check(rules, options[name])
        for name, check in zip(_RESET_OPTIONS, checks, strict=True)
        if options.get(name) is not None
    }


# What is compiled.


@functools.cache
def warm_up() -> None:
    """Have everything compiled, once in a process, saying so if that takes a while."""
    warm_up_tables()
    with announce_compilation():
        row = np.zeros(1, np.int64)
        tables = Tables(Rules(), 1)
        tables.start(row)
        add_gains(tables.rewards, row, row, np.zeros(1))
        find_waiting(tables.games, row, row, np.zeros(1, np.int64))
        draw_numbers_at(row, np.zeros(1, np.uint64), row, row)


@compiled
def add_gains(rewards, rows, sides, gained):
    """Add to `gained` (n,), at `rows`, the `rewards` (n, sides) of the side there, `sides` (n,)."""
    for i in rows:
        gained[i] += rewards[i, sides[i]]


@compiled
def find_waiting(games, rows, seats, waiting):
    """Put those of `rows` (k,) in `waiting` (k,) where another seat is to play than the learner's,
    `seats` (n,); return how many they are."""
    count = 0
    for i in rows:
        game = games[i]
        if game.to_play != NOBODY and game.to_play != seats[i]:
            waiting[count] = i
            count += 1
    return count
