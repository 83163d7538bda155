"""Many deals at once: `DealBatch`, what trainers and evaluations step.

```python
from pisti_env.vector import DealBatch

batch = DealBatch(num_envs=4096, rules="standard", observation="kinds", seed=0)
actions = batch.action_masks.argmax(axis=1)  # the lowest legal kind at every table
rewards, ended = batch.step(actions)
```
"""

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pisti_env.cards import card_names
from pisti_env.checks import check_actions, check_dealers, check_decks, is_int
from pisti_env.knowledge import hand_of
from pisti_env.observation import encoder, state_encoder
from pisti_env.quote import quote
from pisti_env.rules import RulesLike, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import Tables, ToPlay, warm_up, writable


class DealBatch:
    """`num_envs` tables of the same rules, played in lockstep; a table that ends restarts at once.

    The buffers are rewritten in place by each step; copy what is to be kept:

    - `observations` (n, d): what the seat to play observes at each table, float32 in [0, 1];
    - `action_masks` (n, a) int8: its legal actions;
    - `seats` (n,) int8: which seat that is;
    - `deal_ended` (n,) bool: the last step ended the table's deal;
    - `final_scores` (n, sides) int64: the points of that deal, valid where `deal_ended`.
    - `illegal_actions`: how many steps were refused for one.

    `rules` (and single fields of them), `observation` and `rewards` are as in `pisti_v0`. `seed`
    decides the decks; without one they are unpredictable. `threads` share the tables; a table plays
    the same deals whatever `num_envs` and `threads`. The first episodes begin at once.
    Raises `ValueError` for a wrong argument.
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
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if not is_int(value) or value < 1:
                raise ValueError(f"{name} is {quote(value)}; expected an int of 1 or more")
        self.num_envs = num_envs
        self.rules = resolve_rules(rules, **fields)
        self.observation = observation
        encoding = encoder(observation, self.rules)
        warm_up()
        self._to_play = ToPlay(encoding, num_envs)
        self._show_buffers()
        self.deal_ended = np.zeros(num_envs, np.bool_)
        self.final_scores = np.zeros((num_envs, self.rules.sides), np.int64)
        self.illegal_actions = 0
        self._tables = Tables(self.rules, num_envs, rewards=rewards)
        self._shares = np.array_split(self._tables.all_rows, min(threads, num_envs))
        self._pool = self._make_pool()
        self.reset(secrets.randbits(64) if seed is None else seed)

    def _show_buffers(self) -> None:
        self.observations = self._to_play.observations
        self.action_masks = self._to_play.masks
        self.seats = self._to_play.seats

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
        self.deal_ended[:] = False
        if seed is not None:
            self._tables.reseed(seed)

        def start(rows: np.ndarray) -> None:
            self._tables.start(
                rows,
                None if decks is None else decks[rows],
                None if dealers is None else dealers[rows],
            )
            self._tables.observe(self._to_play, rows)

        self._in_shares(start)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play one card at every table; a table whose episode is over begins the next one at once.

        Takes actions (n,) of an integer dtype. Returns rewards (n, sides) float32, every side's for
        this play, and ended (n,) bool, whether the episode is over; both are new arrays.

        Raises `ValueError`, before any card is played, if an action is not in the hand to play.
        """
        actions = check_actions(actions, self.num_envs)
        illegal = self._to_play.find_illegal(actions)
        if illegal >= 0:
            self._refuse(illegal, int(actions[illegal]))
        tables, ended = self._tables, np.empty(self.num_envs, np.bool_)

        def play(rows: np.ndarray) -> None:
            tables.play_on(actions, self._to_play, rows)
            share = slice(rows[0], rows[-1] + 1)
            ended[share], self.deal_ended[share] = tables.over[share], tables.scored[share]
            if tables.scored[share].any():
                self._restart(rows[tables.scored[share]])

        self._in_shares(play)
        return tables.rewards.copy(), ended

    def observe_as(self, encoding: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return what the seats to play observe in another encoding, a new (n, d) float32 array.

        With `rows` (k,), indices of tables (or a mask or slice), only those tables' (k, d); raises
        `IndexError` for one that is not there, and `ValueError` for rows of another form.
        """
        other, games, rows = encoder(encoding, self.rules), self._tables.games, self._rows(rows)
        observations = np.empty((len(rows), other.size), np.float32)
        other.encode(games, rows, games["to_play"][rows].astype(np.int64), observations)
        return observations

    def action_masks_as(self, encoding: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the action masks of another encoding, a new (n, a) int8 array, or of `rows`."""
        other, rows = encoder(encoding, self.rules), self._rows(rows)
        action_masks = np.empty((len(rows), other.num_actions), np.int8)
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
        everything.encode(self._tables.games, rows, np.zeros_like(rows), states)
        return states

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that the tables go on from, as arrays (n, …), whatever the threads."""
        return self._tables.get_state()

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from what `get_state` returned, with the same rules, rewards and number of tables.

        Raises `ValueError`, and changes nothing, for arrays of other names, shapes or dtypes.
        """
        for name, ours in self.get_state().items():
            theirs = state.get(name)
            if theirs is None or theirs.shape != ours.shape or theirs.dtype != ours.dtype:
                raise ValueError(
                    f"state of the tables has no {name} of shape {ours.shape} and dtype "
                    f"{ours.dtype}; give what get_state() returned with as many tables"
                )

        self.deal_ended[:] = False
        self._tables.set_state(state)
        self._in_shares(lambda rows: self._tables.observe(self._to_play, rows))

    def __getstate__(self) -> dict[str, Any]:
        """A pool of threads cannot be copied; the copy gets its own."""
        return {**self.__dict__, "_pool": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(writable(state))
        self._show_buffers()
        self._pool = self._make_pool()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _make_pool(self) -> ThreadPoolExecutor | None:
        others = len(self._shares) - 1
        return ThreadPoolExecutor(others) if others else None

    def _in_shares(self, function: Callable[[np.ndarray], None]) -> None:
        """Call `function(rows)` for every thread's share of the tables, in that thread; the first
        one's is this."""
        first, *others = self._shares
        waiting = [self._pool.submit(function, rows) for rows in others] if self._pool else []
        function(first)
        for share in waiting:
            share.result()

    def _restart(self, scored: np.ndarray) -> None:
        """Note the scores of the deals that ended, and begin the next deals and episodes."""
        tables = self._tables
        self.final_scores[scored] = tables.games["public_points"][scored, : self.rules.sides]
        over = tables.over[scored]
        tables.start(scored[over])
        tables.next_deals(scored[~over])
        tables.observe(self._to_play, scored)

    def _refuse(self, table: int, action: int) -> None:
        """Raise for an illegal action."""
        self.illegal_actions += 1
        seat = int(self.seats[table])
        hand = hand_of(self._tables.games[table : table + 1], seat)
        names = self._to_play.encoder.action_names
        name = f" ({names[action]})" if 0 <= action < len(names) else ""
        raise ValueError(
            f"action of table {table} is {action}{name}, which is not in the hand of seat {seat}, "
            f"{card_names(hand)}; play one of those"
        )
