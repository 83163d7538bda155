"""The tables that both environments are made of: a learner has one seat, agents have the others."""

import functools
import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import check_fit
from pisti_env.agents.hosting import Pool, query, refuse
from pisti_env.cards import card_names
from pisti_env.checks import check_dealer, check_deck, check_scores, is_int
from pisti_env.compile import announce_compilation, compiled
from pisti_env.game import NOBODY
from pisti_env.knowledge import hand_of, make_view
from pisti_env.observation import encoder
from pisti_env.quote import quote
from pisti_env.render import as_text
from pisti_env.rules import Rules
from pisti_env.shuffle import derive_seed, draw_numbers_at
from pisti_env.tables import Tables
from pisti_env.tables import warm_up as warm_up_tables

RESET_OPTIONS = ("deck", "dealer", "scores", "seat")

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
        return as_text(make_view(games, self.rules, int(self.seats[row]), None))

    def in_form(self, observations: np.ndarray, masks: np.ndarray) -> Any:
        """Return observations in the form of their space; the masks are copied."""
        if self.mask_in == "info":
            return observations
        return {"observation": observations, "action_mask": masks.copy()}


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
        for name, check in zip(RESET_OPTIONS, checks, strict=True)
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
