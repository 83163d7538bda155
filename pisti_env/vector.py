"""Many deals at once: `DealBatch`, what trainers and evaluations step.

```python
from pisti_env.vector import DealBatch

batch = DealBatch(num_envs=4096, rules="standard", observation="kinds", seed=0)
actions = batch.action_masks.argmax(axis=1)  # the lowest legal kind at every table
rewards, ended = batch.step(actions)
```
"""

import copy
import os
import secrets
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import gymnasium
import numpy as np

from pisti_env.checks import (
    check_actions,
    check_dealers,
    check_decks,
    check_range,
    check_row,
    check_state,
    check_viewer,
    is_int,
    refusal,
)
from pisti_env.knowledge import View, hand_of, make_view
from pisti_env.observation import Encoder, encoder, state_encoder
from pisti_env.position import write_position
from pisti_env.quote import quote
from pisti_env.rules import MAX_MATCH_POINTS, RulesLike, check_keywords, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import Tables, ToPlay, own_arrays, warm_up

FEWEST_TABLES = 4096  # for each thread: with half as many, two made 0.95 of the plays of one

# Whether one thread or all of them are faster is tried out: a trial is TRIAL_STEPS steps with each,
# in turns. The pause between two trials is of so many steps; it doubles with every trial that ends
# as the one before, up to the longest.
TRIAL_STEPS = 5
FIRST_PAUSE, LONGEST_PAUSE = 64, 1024

_SCORES = ("points", "cards", "pistis", "jack_pistis")  # of a side in `_last_deals`


class DealBatch:
    """`num_envs` tables of the same rules, played in lockstep; a table that ends restarts at once.

    The buffers are rewritten in place by each step; copy what is to be kept. What is written into
    them changes nothing else: which actions are legal is decided by the tables.

    - `observations` (n, d): what the seat to play observes at each table, float32 in [0, 1];
    - `action_masks` (n, a) int8: its legal actions;
    - `seats` (n,) int8: which seat that is;
    - `deal_ended` (n,) bool: the last step ended the table's deal;
    - `final_scores` (n, sides) int64: the points of that deal, valid where `deal_ended`;
    - `illegal_actions`: how many steps were refused for one.

    `rules` (and single fields of them), `observation` and `rewards` are as in `pisti_v0`. `seed`
    decides the decks; without one they are unpredictable. At most `threads` share the tables: one
    plays alone where tables are few or more threads are slower, which is tried out now and then. A
    table plays the same deals whatever `num_envs` and `threads`. The first episodes begin at once.
    Raises `ValueError` for a wrong argument.

    One Python thread at a time may use a batch; another one's call meanwhile is a `RuntimeError`.
    A step that was broken off (by Ctrl-C) leaves no deal under way: `reset()` begins anew.
    """

    def __init__(
        self,
        num_envs: int,
        rules: RulesLike = "standard",
        observation: str = "kinds",
        rewards: str = "difference",
        seed: int | None = None,
        threads: int = 1,
        **fields: Any,
    ):
        check_keywords(DealBatch.__init__, fields)
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if not is_int(value) or value < 1:
                raise ValueError(f"{name} is {quote(value)}; expected an int of 1 or more")
        self.num_envs = int(num_envs)
        self.rules = resolve_rules(rules, **fields)
        self.observation = observation
        encoding = encoder(observation, self.rules)
        warm_up()
        self._to_play = ToPlay(encoding, self.num_envs)
        self._deal_ended = np.zeros(self.num_envs, np.bool_)
        self._final_scores = np.zeros((self.num_envs, self.rules.sides), np.int64)
        self._show_buffers()
        self.illegal_actions = 0
        self._tables = Tables(self.rules, self.num_envs, rewards=rewards)
        # Of the deal before this one of a match: `_SCORES` of each side, -1 where there is none.
        self._last_deals = np.full((self.num_envs, self.rules.sides, len(_SCORES)), -1)
        self._under_way = False  # whether all is as the last reset or step leaves it
        self._threads = Threads(self.num_envs, int(threads))
        self.reset(secrets.randbits(64) if seed is None else seed)

    def _show_buffers(self) -> None:
        """Hand out views, so that a change of a buffer's own shape or dtype is the user's alone."""
        self.observations = self._to_play.observations[:]
        self.action_masks = self._to_play.masks[:]
        self.seats = self._to_play.seats[:]
        self.deal_ended = self._deal_ended[:]
        self.final_scores = self._final_scores[:]

    @property
    def decks(self) -> np.ndarray:
        """The current deals' decks, (n, deck_size) int8, before a jack or bottom card is moved."""
        return self._tables.decks.copy()

    @property
    def dealers(self) -> np.ndarray:
        """The seats that dealt the current deals, (n,) int64."""
        return self._tables.games["dealer"].astype(np.int64)

    def reset(self, seed: int | None = None, decks: Any = None, dealers: Any = None) -> None:
        """Begin an episode at every table. A seed begins its stream of deals; without one the
        stream goes on. `decks` (n, deck_size) ints and `dealers` (n,) are for the first deals.

        Raises `ValueError`, and changes nothing, for a wrong seed, deck or dealer.
        """
        if decks is not None:
            decks = check_decks(self.rules, decks, self.num_envs)
        if dealers is not None:
            dealers = check_dealers(self.rules, dealers, self.num_envs)
        if seed is not None:
            check_seed(seed)

        def start(rows: np.ndarray) -> None:
            self._tables.start(
                rows,
                None if decks is None else decks[rows],
                None if dealers is None else dealers[rows],
            )
            self._tables.observe(self._to_play, rows)

        with self._tables.one_thread():
            self._break_off()
            if seed is not None:  # copies of a table have decks of their own again
                rows = self._tables.all_rows
                self._tables.reseed_each(rows, np.uint64(seed), rows)
            self._deal_ended[:] = False
            self._last_deals[:] = -1
            self._threads.run(start)
            self._under_way = True

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play one card at every table; a table whose episode is over begins the next one at once.

        Takes actions (n,) of an integer dtype. Returns rewards (n, sides) float32, every side's for
        this play, and ended (n,) bool, whether the episode is over; both are new arrays.

        Raises `ValueError`, before any card is played, if an action is not in the hand to play.
        """
        actions = check_actions(actions, self.num_envs)
        tables, ended = self._tables, np.empty(self.num_envs, np.bool_)

        def play(rows: np.ndarray) -> None:
            tables.play_on(self._to_play, rows)
            share = slice(rows[0], rows[-1] + 1)
            ended[share], self._deal_ended[share] = tables.over[share], tables.scored[share]
            if tables.scored[share].any():
                self._restart(rows[tables.scored[share]])

        with tables.one_thread():
            self._check_under_way()
            self._to_play.actions[:] = actions
            illegal = self._to_play.find_illegal()
            if illegal >= 0:
                self._refuse(illegal, int(actions[illegal]))
            self._under_way = False  # until all of it is played: it may be broken off
            self._threads.run_and_time(play)
            self._under_way = True
            return tables.rewards.copy(), ended

    def _check_under_way(self) -> None:
        if not self._under_way:
            raise gymnasium.error.ResetNeeded(
                "the last step or reset was broken off, so no deal is under way; call reset() first"
            )

    def _break_off(self) -> None:
        """Leave the deals that are under way. Where a step was broken off, wait for what the other
        threads still do of it."""
        if not self._under_way:
            self._threads.close()
        self._under_way = False

    def observe_as(self, encoding: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return what the seats to play observe in another encoding, a new (n, d) float32 array.

        With `rows` (k,), indices of tables (or a mask or slice), only those tables' (k, d); raises
        `IndexError` for one that is not there, and `ValueError` for rows of another form.
        """
        other, games, rows = encoder(encoding, self.rules), self._tables.games, self._rows(rows)
        observations = np.empty((len(rows), other.size), np.float32)
        with self._tables.one_thread():
            self._check_under_way()
            other.encode(games, rows, games["to_play"][rows].astype(np.int64), observations)
        return observations

    def action_masks_as(self, encoding: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the action masks of another encoding, a new (n, a) int8 array, or of `rows`."""
        other, rows = encoder(encoding, self.rules), self._rows(rows)
        action_masks = np.empty((len(rows), other.num_actions), np.int8)
        with self._tables.one_thread():
            self._check_under_way()
            other.mask(self._tables.games, rows, action_masks)
        return action_masks

    def _rows(self, rows: Any) -> np.ndarray:
        """Return the numbers (k,) of the tables that an index names, of all without one."""
        if rows is None:
            return self._tables.all_rows
        rows = np.array(self._tables.all_rows[rows])
        if rows.ndim != 1:
            raise ValueError(f"rows has {rows.ndim} dimensions; expected indices or a mask (k,)")
        return rows

    def states(self) -> np.ndarray:
        """Return every table's full state, a new (n, s) float32 array; never an observation."""
        everything = state_encoder(self.rules)
        states = np.empty((self.num_envs, everything.size), np.float32)
        rows = self._tables.all_rows
        with self._tables.one_thread():
            self._check_under_way()
            everything.encode(self._tables.games, rows, np.zeros_like(rows), states)
        return states

    def view(self, table: int, seat: int | None) -> View:
        """Return what a seat of a table knows, or with None what everyone there does."""
        row, seat = check_row(table, self.num_envs), check_viewer(self.rules, seat)
        with self._tables.one_thread():
            self._check_under_way()
            return make_view(
                self._tables.games[row : row + 1], self.rules, seat, self._last_deal(row)
            )

    def score(self, table: int) -> list[dict[str, int]]:
        """Return a dict per side of a table, seat 0's first: points (face-down starters included),
        cards, pistis, jack_pistis, match_points. Not an observation: for tests, logs, displays."""
        row = check_row(table, self.num_envs)
        with self._tables.one_thread():
            self._check_under_way()
            return self._tables.score(row)

    def position(self, table: int, seat: int | None = None) -> str:
        """Return what a seat of a table, or a spectator, knows as one line of text; see
        `position.py`."""
        return write_position(self.view(table, seat))

    def _last_deal(self, row: int) -> list[dict[str, int]] | None:
        """Return the scores of the deal before this one of a table's match, None if there is none,
        as `deals` of an environment has them."""
        match_points = self._tables.games["match_points"][row].tolist()
        sides = self._last_deals[row].tolist()
        if sides[0][0] < 0:
            return None
        return [
            {**dict(zip(_SCORES, scores, strict=True)), "match_points": match_points[side]}
            for side, scores in enumerate(sides)
        ]

    def moment(self) -> tuple[np.ndarray, Encoder]:
        """Return a copy of the tables' records (n,), and the encoder of the observations: what
        `pisti_env.agents.hosting` asks agents with."""
        with self._tables.one_thread():
            self._check_under_way()
            return self._tables.games.copy(), self._to_play.encoder

    def copy_table(self, table: int, copies: Any) -> None:
        """Make other tables of the batch copies of one: `copies` (k,) are their numbers (or a mask
        or slice). They have the same cards, and are dealt the same deals after this one.

        Raises `ValueError` or `IndexError` for tables that are not there.
        """
        row, rows = check_row(table, self.num_envs), self._rows(copies)
        with self._tables.one_thread():
            self._check_under_way()
            self._break_off()
            self._tables.copy_tables(rows, self._tables, np.array([row]))
            for buffer in (self._deal_ended, self._final_scores, self._last_deals):
                buffer[rows] = buffer[row]
            self._tables.observe(self._to_play, rows)
            self._under_way = True

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that the tables go on from, as arrays (n, …), whatever the threads."""
        with self._tables.one_thread():
            self._check_under_way()
            return {**self._tables.get_state(), "last_deals": self._last_deals.copy()}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from what `get_state` returned, with the same rules, rewards and number of tables.

        Everything is dealt and played anew. Raises `ValueError`, and changes nothing, for arrays of
        other names, shapes or dtypes, and, naming field and table, for what no table can be in.
        """
        tables = self._tables
        with tables.one_thread():
            last_deals = check_state(state, {"last_deals": self._last_deals})["last_deals"]
            none = (last_deals < 0).all(axis=(1, 2), keepdims=True)
            check_range("last_deals", np.where(none, 0, last_deals), 0, MAX_MATCH_POINTS)
            rebuilt = tables.rebuild(state)
            self._break_off()
            tables.copy_tables(tables.all_rows, rebuilt, tables.all_rows)
            self._last_deals[:] = last_deals
            self._deal_ended[:] = False
            self._threads.run(lambda rows: tables.observe(self._to_play, rows))
            self._under_way = True

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the views of the buffers: copied, they would be arrays of their own. All else
        is copied here, so that no other thread plays on before all of it is."""
        views = ("observations", "action_masks", "seats", "deal_ended", "final_scores")
        with self._tables.one_thread():
            return copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in views})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))
        self._show_buffers()

    def __copy__(self) -> "DealBatch":
        return copy.deepcopy(self)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def _restart(self, scored: np.ndarray) -> None:
        """Note the scores of the deals that ended, and begin the next deals and episodes."""
        tables, sides = self._tables, self.rules.sides
        over = tables.over[scored]
        ended, going_on = scored[over], scored[~over]
        self._final_scores[scored] = tables.games["public_points"][scored, :sides]
        if len(going_on):
            for number, field in enumerate(("public_points", "captured", "pistis", "jack_pistis")):
                self._last_deals[going_on, :, number] = tables.games[field][going_on, :sides]
        self._last_deals[ended] = -1
        tables.start(ended)
        tables.next_deals(going_on)
        tables.observe(self._to_play, scored)

    def _refuse(self, table: int, action: int) -> None:
        """Raise for an illegal action."""
        self.illegal_actions += 1
        here = self._tables.games[table : table + 1]
        seat = int(here["to_play"][0])
        names, hand = self._to_play.encoder.action_names, hand_of(here, seat)
        raise refusal(f"action of table {table}", action, names, f"the hand of seat {seat}", hand)


class Threads:
    """Works at tables: in one thread, or in as many as may share the tables, at most `most`,
    whichever was faster of late."""

    def __init__(self, num_tables: int, most: int):
        self._made_of = (num_tables, most)
        self._most = max(1, min(most, num_tables // FEWEST_TABLES))
        all_rows = np.arange(num_tables)
        self._shares = {number: np.array_split(all_rows, number) for number in (1, self._most)}
        self._number = 1  # of the threads that were faster of late
        self._pause, self._steps_to_trial = FIRST_PAUSE, 0
        self._seconds: dict[int, list[float]] = {number: [] for number in self._shares}
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0  # whose threads the pool's are

    def __reduce__(self) -> tuple[Any, ...]:
        """Threads cannot be copied; a copy makes its own."""
        return Threads, self._made_of

    def run(self, function: Callable[[np.ndarray], None]) -> None:
        """Call `function(rows)` for all tables' rows, in shares."""
        self._share_out(function, self._number)

    def run_and_time(self, function: Callable[[np.ndarray], None]) -> None:
        """As `run`, and now and then try out how many threads are faster at this."""
        if self._most == 1 or self._steps_to_trial > 0:
            self._steps_to_trial -= 1
            self.run(function)
            return
        number = min(self._seconds, key=lambda number: len(self._seconds[number]))  # in turns
        start = time.perf_counter()
        self._share_out(function, number)
        self._seconds[number].append(time.perf_counter() - start)
        if min(map(len, self._seconds.values())) == TRIAL_STEPS:
            self._decide()

    def _decide(self) -> None:
        """End a trial: go on with what was faster, until the next one."""
        medians = {number: statistics.median(self._seconds[number]) for number in self._seconds}
        before, self._number = self._number, min(medians, key=lambda number: medians[number])
        same = self._number == before
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if same else FIRST_PAUSE
        self._steps_to_trial = self._pause
        for seconds in self._seconds.values():
            seconds.clear()

    def _share_out(self, function: Callable[[np.ndarray], None], number: int) -> None:
        """Call `function(rows)` in `number` threads, each with its share of the rows; one of them
        is this thread. Returns, or raises, when all are done."""
        first, *others = self._shares[number]
        pool = self._our_pool() if others else None
        shares = [pool.submit(function, rows) for rows in others] if pool else []
        try:
            function(first)
        finally:
            wait(shares)
        for share in shares:
            share.result()

    def _our_pool(self) -> ThreadPoolExecutor:
        """Return a pool of this process: a forked child has its parent's without the threads."""
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(self._most - 1), os.getpid()
        return self._pool

    def close(self) -> None:
        """End the threads; what is done later starts new ones."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None
