"""The tables that both environments are made of: a learner has one seat, agents have the others."""

import functools
import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import check_fit
from pisti_env.agents.hosting import Pool, check_agent, choose_cards
from pisti_env.checks import check_viewer, refusal
from pisti_env.compile import announce_compilation, compiled, quick
from pisti_env.game import NOBODY
from pisti_env.knowledge import View, hand_of, make_view
from pisti_env.observation import Encoder, encoder
from pisti_env.plain import printable
from pisti_env.position import Position, write_position
from pisti_env.quote import quote
from pisti_env.render import as_text
from pisti_env.rules import Rules
from pisti_env.shuffle import derive_seed, random_numbers_at
from pisti_env.single.arguments import Arguments, check_arguments
from pisti_env.tables import Tables, own_arrays
from pisti_env.tables import warm_up as warm_up_tables

# What a number is drawn for, beside a play of the deal, which is its own purpose.
_SEAT_PURPOSE, *_AGENT_PURPOSES = range(1000, 1003)  # these for the opponent, the partner

_LEARNER = -1  # among the numbers of agents, who has a seat

_SCORES = ("public_points", "captured", "pistis", "jack_pistis", "match_points")  # once scored
_SCORE_NAMES = ("points", "cards", "pistis", "jack_pistis", "match_points")


class LearnerTables:
    """Tables at which the learner has one seat and agents have the others.

    Both environments are made of one: `begin`, then `play_on`, until it is the learner's turn at
    each table or its episode is over; then `choose` and `play` the learner's cards, and `play_on`.
    While they do, and after one of them has failed, `under_way` is False and nothing is shown: in
    the middle of a step the tables show the agents' cards.

    Attributes: `tables`; `all_rows` (n,); `encoder`, of the learner's observations; `seats` (n,)
    int64, the learner's; `gained` (n,) float64, what its side has gained less the others' mean,
    that it has not been paid for yet; `illegal_actions`, how many it tried so far; `space`, of one
    table's observations.
    """

    def __init__(self, rules: Rules, num_tables: int, arguments: Arguments):
        check_arguments(rules, arguments)
        self.rules = rules
        self.mask_in = arguments.mask_in
        self.illegal = arguments.illegal
        self._seat = arguments.seat
        self.encoder = encoder(arguments.observation, rules)
        self.tables = Tables(rules, num_tables, rewards=arguments.rewards)
        self.all_rows = self.tables.all_rows
        self._read_agents(arguments.opponent, arguments.partner)
        warm_up()
        self.seats = np.zeros(num_tables, np.int64)
        self.gained = np.zeros(num_tables)
        self._sides = np.zeros(num_tables, np.int64)  # the learner's
        self._who = np.full((num_tables, rules.players), _LEARNER)  # numbers of agents, by seat
        self._random_seeds = np.zeros(num_tables, np.uint64)  # of all that is not decks and dealers
        self._deals: list[list[np.ndarray]] = [[] for _ in range(num_tables)]  # see `deals`
        self.illegal_actions = 0
        self.under_way = False
        self.reseed(self.all_rows, [secrets.randbits(64)] * num_tables, self.all_rows)

        self.space: spaces.Space[Any] = spaces.Box(0.0, 1.0, (self.encoder.size,), np.float32)
        if self.mask_in == "observation":
            mask_box = spaces.Box(0, 1, (self.encoder.num_actions,), np.int8)
            self.space = spaces.Dict({"observation": self.space, "action_mask": mask_box})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))

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

    def reseed(self, rows: np.ndarray, seeds: Sequence[Any], numbers: np.ndarray) -> None:
        """Go to the first episode at the tables `rows` (k,). What is played there is a function of
        a seed and of a number, of `seeds` (k,) and `numbers` (k,); number 0 is what the single
        environment plays."""
        self.tables.reseed_each(rows, np.array(seeds, np.uint64), numbers)
        # Agents get numbers that follow from these, and must not learn the seed of the decks.
        random_seeds = [
            derive_seed(f"opponents of table {number}" if number else "opponents", seed)
            for seed, number in zip(seeds, numbers.tolist(), strict=True)
        ]
        self._random_seeds[rows] = np.array(random_seeds, np.uint64)

    def begin(
        self,
        rows: np.ndarray,
        deck: np.ndarray | None = None,
        dealer: int | None = None,
        scores: np.ndarray | None = None,
        seat: int | None = None,
        position: Position | None = None,
    ) -> None:
        """Begin an episode at the tables `rows`, with what is given, checked before, at each."""
        self.gained[rows] = 0.0
        for row in rows.tolist():
            self._deals[row] = []
        self._seat_everyone(rows, self._seat if seat is None else seat)
        if position is not None:
            self._begin_from(rows, position, None if deck is None else deck.tolist())
            return
        self.tables.start(
            rows,
            None if deck is None else np.broadcast_to(deck, (len(rows), len(deck))),
            None if dealer is None else np.full(len(rows), dealer),
            scores,
        )

    def _begin_from(self, rows: np.ndarray, position: Position, deck: list[int] | None) -> None:
        """Go on from a position at the tables `rows`, with a deck that fits it or drawn ones."""
        last_deal = position.view.last_deal
        for row in rows.tolist():
            position.start(self.tables, np.array([row]), deck)
            if last_deal is not None:
                scores = [[side[name] for name in _SCORE_NAMES] for side in last_deal]
                self._deals[row] = [np.array(scores)]

    def _seat_everyone(self, rows: np.ndarray, seat: int | None) -> None:
        """Give the learner its seat at the tables `rows`, drawn if it is None, and draw agents."""
        players, sides = self.rules.players, self.rules.sides
        if seat is None:
            seats = (self._random_uniform(rows, _SEAT_PURPOSE) * players).astype(np.int64)
        else:
            seats = np.full(len(rows), seat)
        self.seats[rows] = seats
        self._sides[rows] = seats % sides
        opponents, *partners = (
            numbers[pool.sample(self._random_uniform(rows, purpose))]
            for (pool, numbers), purpose in zip(self._pools, _AGENT_PURPOSES, strict=False)
        )
        self._who[rows] = opponents[:, np.newaxis]
        for agents in partners:
            self._who[rows, (seats + sides) % players] = agents
        self._who[rows, seats] = _LEARNER

    def _random_uniform(self, rows: np.ndarray, purpose: int) -> np.ndarray:
        """Return a number in [0, 1) for each of `rows` (k,), for their episodes to come."""
        purposes = np.full(len(rows), purpose)
        drawn = random_numbers_at(rows, self._random_seeds, self.tables.deals_dealt, purposes)
        return (drawn >> np.uint64(11)) * 2.0**-53

    def choose(self, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Choose the learner's `actions` (k,) int64 at the tables `rows` (k,) where they are legal;
        return the other rows."""
        action_of_card = self.encoder.action_of_card
        if self.tables.find_cards(actions, action_of_card, rows) < 0:
            return rows[:0]
        inside = actions.clip(0, self.encoder.num_actions - 1)
        masks = self.action_masks(rows)
        legal = (inside == actions) & (masks[np.arange(len(rows)), inside] != 0)
        self.tables.find_cards(actions[legal], action_of_card, rows[legal])
        self.illegal_actions += len(rows) - int(np.count_nonzero(legal))
        return rows[~legal]

    def refusal(self, row: int, action: int, what: str) -> ValueError:
        """Return what to raise for an illegal action."""
        seat = int(self.seats[row])
        hand = hand_of(self.tables.games[row : row + 1], seat)
        return refusal(what, action, self.encoder.action_names, f"the hand of seat {seat}", hand)

    def play(self, rows: np.ndarray, on_over: Callable[[np.ndarray], None]) -> None:
        """Play the cards that were chosen at the tables `rows`, and deal the next deal of a match.
        `on_over(rows)` is told of the episodes that are over, and may begin the next ones."""
        tables = self.tables
        tables.play(rows)
        quick(add_gains)(tables.rewards, rows, self._sides, self.gained)
        scored = rows[tables.scored[rows]]
        if len(scored):
            self._note_scores(scored)
            over = tables.over[scored]
            tables.next_deals(scored[~over])
            if over.any():
                on_over(scored[over])

    def _note_scores(self, rows: np.ndarray) -> None:
        """Note the scores of the deals at `rows`, which have just been scored."""
        games, sides = self.tables.games, self.rules.sides
        scores = np.stack([games[field][rows, :sides] for field in _SCORES], axis=-1)
        for row, of_deal in zip(rows.tolist(), scores, strict=True):
            self._deals[row].append(of_deal)

    def play_on(self, rows: np.ndarray, on_over: Callable[[np.ndarray], None]) -> None:
        """At the tables `rows`, have the agents play until it is the learner's turn or the episode
        is over; `on_over` as for `play`."""
        while True:
            waiting = np.empty(len(rows), np.int64)
            count = quick(find_waiting)(self.tables.games, rows, self.seats, waiting)
            if count == 0:
                return
            rows = waiting[:count]
            self._ask_each(rows)
            self.play(rows, on_over)

    def _ask_each(self, rows: np.ndarray) -> None:
        """Have the agents choose a card at the tables `rows`, where it is their turn."""
        if len(self._agents) == 1:
            self._ask(0, rows)
            return
        who = self._who[rows, self.tables.games["to_play"][rows]]
        for number in range(len(self._agents)):
            theirs = who == number
            if theirs.any():
                self._ask(number, rows[theirs])

    def _ask(self, number: int, rows: np.ndarray) -> None:
        """Have one agent choose a card at the tables `rows`, where its seat is to play."""
        tables = self.tables
        plays = tables.games["num_plays"][rows].astype(np.int64)
        seeds = random_numbers_at(rows, self._random_seeds, tables.deals_dealt, plays)
        agent, encoder = self._agents[number], self._encoders[number]
        choose_cards(agent, encoder, tables.games, rows, seeds, tables.cards)

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

    def check_under_way(self) -> None:
        """Raise `ResetNeeded` where there is nothing to show or to go on with."""
        if not self.under_way:
            raise gymnasium.error.ResetNeeded(
                "no deal is under way: none was dealt yet, or the last step or reset failed in the "
                "middle; call reset() first"
            )

    def moment(self) -> tuple[np.ndarray, Encoder]:
        """Return a copy of the tables' records (n,), and the encoder of the learner's observations:
        what `pisti_env.agents.ask` asks agents with."""
        self.check_under_way()
        return self.tables.games.copy(), self.encoder

    def view(self, row: int, seat: int | None) -> View:
        """Return what a seat of a table knows, or with None what everyone there does."""
        self.check_under_way()
        seat, deals = check_viewer(self.rules, seat), self.deals(row)
        last_deal = deals[-1] if deals else None
        return make_view(self.tables.games[row : row + 1], self.rules, seat, last_deal)

    def score(self, row: int) -> list[dict[str, int]]:
        """Return a dict per side of a table, as `raw_env.score` does."""
        self.check_under_way()
        return self.tables.score(row)

    def deals(self, row: int) -> list[list[dict[str, int]]]:
        """Return the scores of a table's finished deals of the episode."""
        self.check_under_way()
        return [
            [dict(zip(_SCORE_NAMES, side, strict=True)) for side in scores.tolist()]
            for scores in self._deals[row]
        ]

    def position(self, row: int, seat: int | None) -> str:
        """Return what a seat of a table, or a spectator, knows as one line of text."""
        return write_position(self.view(row, seat))

    def draw(self, row: int, reveal: bool) -> str:
        """Return the learner's view of a table as text, with `reveal` all hands; in plain letters
        where standard output lacks others."""
        return printable(as_text(*self.shown(row, reveal)))

    def shown(self, row: int, reveal: bool) -> tuple[View, list[View] | None]:
        """Return what is drawn of a table: the learner's view, and with `reveal` all others'."""
        seats = range(self.rules.players)
        others = [self.view(row, seat) for seat in seats] if reveal else None
        return self.view(row, int(self.seats[row])), others

    def in_form(self, observations: np.ndarray, masks: np.ndarray) -> Any:
        """Return observations in the form of their space; the masks are copied."""
        if self.mask_in == "info":
            return observations
        return {"observation": observations, "action_mask": masks.copy()}


def ignore(rows: np.ndarray) -> None:
    """Let episodes that are over stay so."""


# Who plays.


def make_pool(name: str, given: Any, rules: Rules) -> Pool:
    """Return a pool of agents from the argument `name`; raise `ValueError` if it is none, or if one
    cannot play the rules, and warn (`UserWarning`) if it was made for others."""
    if isinstance(given, Pool):
        for agent in given.agents:
            make_agent(name, agent, rules)
        return given
    if not isinstance(given, (list, tuple)):
        given = [given]
    if not given:
        raise ValueError(f"{name} is {quote(given)}; expected at least one agent")
    return Pool([make_agent(name, one, rules) for one in given])


def make_agent(name: str, given: Any, rules: Rules) -> Agent:
    """Return an agent from its name or path, or itself, which is checked."""
    if isinstance(given, (str, Path)):
        return load(given, rules)
    check_agent(name, given)
    note = check_fit(type(given).__name__, given.rules, rules, given.observation)
    if note is not None:
        warnings.warn(note, stacklevel=2)
    agent: Agent = given
    return agent


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
        random_numbers_at(row, np.zeros(1, np.uint64), row, row)


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
