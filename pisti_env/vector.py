"""Many deals at once: `DealBatch`, what trainers and evaluations step.

```python
from pisti_env.vector import DealBatch

batch = DealBatch(num_envs=4096, rules="standard", observation="kinds", seed=0)
actions = batch.action_masks.argmax(axis=1)  # the lowest legal kind at every table
rewards, ended = batch.step(actions)
```
"""

import itertools
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pisti_env.cards import card_names
from pisti_env.observation import encoder, state_encoder
from pisti_env.rules import RulesLike, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import Tables, check_dealers, check_decks, is_int, warm_up
from pisti_env.view import hand_of


class DealBatch:
    """`num_envs` tables of the same rules, played in lockstep; a table that ends restarts at once.

    The buffers are rewritten in place by each step; copy what is to be kept:

    - `observations` (n, d) float32 in [0, 1]: what the seat to play observes at each table;
    - `action_masks` (n, a) int8: its legal actions;
    - `seats` (n,) int8: which seat that is;
    - `deal_ended` (n,) bool: the last step ended the table's deal;
    - `final_scores` (n, sides) int64: the points of that deal, valid where `deal_ended`.

    `rules` (and single fields of them), `observation` and `rewards` are as in `pisti_v0`. `seed`
    decides the decks; without one they are unpredictable. `threads` share the tables; a table plays
    the same deals whatever `num_envs` and `threads`. The first episodes begin at once. Raises
    `ValueError` for a wrong argument.
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
                raise ValueError(f"{name} is {value!r}; expected an int of 1 or more")
        self.num_envs = num_envs
        self.rules = resolve_rules(rules, **fields)
        self.observation = observation
        self._encoder = encoder(observation, self.rules)
        warm_up()
        self.observations = np.zeros((num_envs, self._encoder.size), np.float32)
        self.action_masks = np.zeros((num_envs, self._encoder.num_actions), np.int8)
        self.seats = np.zeros(num_envs, np.int8)
        self.deal_ended = np.zeros(num_envs, np.bool_)
        self.final_scores = np.zeros((num_envs, self.rules.sides), np.int64)
        bounds = np.linspace(0, num_envs, min(threads, num_envs) + 1).astype(int).tolist()
        self._shards = [slice(*pair) for pair in itertools.pairwise(bounds)]
        self._tables = [
            Tables(self.rules, shard.stop - shard.start, shard.start, rewards)
            for shard in self._shards
        ]
        self._pool = ThreadPoolExecutor(len(self._shards)) if len(self._shards) > 1 else None
        self.reset(secrets.randbits(64) if seed is None else seed)

    @property
    def decks(self) -> np.ndarray:
        """The current deals' decks, (n, deck_size) int8, before a jack or bottom card is moved."""
        return np.concatenate([tables.decks for tables in self._tables])

    @property
    def dealers(self) -> np.ndarray:
        """The seats that dealt the current deals, (n,) int64."""
        return self._all_games()["dealer"].astype(np.int64)

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

        def start(tables: Tables, shard: slice) -> None:
            if seed is not None:
                tables.reseed(seed)
            tables.start(
                np.arange(len(tables.games)),
                None if decks is None else decks[shard],
                None if dealers is None else dealers[shard],
            )
            self._observe(tables, shard)

        self._on_shards(start)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play one card at every table; a table whose episode is over begins the next one at once.

        Takes actions (n,) of an integer dtype. Returns rewards (n, sides) float32, every side's for
        this play, and ended (n,) bool, whether the episode is over; both are new arrays.

        Raises `ValueError`, before any card is played, if an action is not in the hand to play.
        """
        try:
            actions = np.asarray(actions)
        except ValueError:
            raise ValueError(f"actions is {actions!r}; expected {self.num_envs} ints") from None
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions has shape {actions.shape} and dtype {actions.dtype}; expected "
                f"{self.num_envs} ints, one per table"
            )
        actions = actions.astype(np.int64, copy=False)
        rewards = np.empty((self.num_envs, self.rules.sides), np.float32)
        ended = np.empty(self.num_envs, np.bool_)

        def choose(tables: Tables, shard: slice) -> int:
            row = tables.find_cards(actions[shard], self._encoder.action_of_card)
            return row if row < 0 else shard.start + row

        def play(tables: Tables, shard: slice) -> None:
            tables.play()
            rewards[shard], ended[shard] = tables.rewards, tables.over
            self.deal_ended[shard] = tables.scored
            if tables.scored.any():
                self._restart(tables, shard)
            self._observe(tables, shard)

        illegal = [table for table in self._on_shards(choose) if table >= 0]
        if illegal:
            self._refuse(illegal[0], int(actions[illegal[0]]))
        self._on_shards(play)
        return rewards, ended

    def observe_as(self, encoding: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return what the seats to play observe in another encoding, a new (n, d) float32 array.

        With `rows` (k,), indices of tables (or a mask of them), only those tables' (k, d); raises
        `IndexError` for one that is not there.
        """
        other = encoder(encoding, self.rules)

        def encode(games: np.ndarray, observations: np.ndarray) -> None:
            other.encode(games, games["to_play"].astype(np.int64), observations)

        return self._fill(encode, other.size, np.float32, rows)

    def action_masks_as(self, encoding: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the action masks of another encoding, a new (n, a) int8 array, or of `rows`."""
        other = encoder(encoding, self.rules)
        return self._fill(other.mask, other.num_actions, np.int8, rows)

    def states(self) -> np.ndarray:
        """Return every table's full state, a new (n, s) float32 array; never an observation."""
        everything = state_encoder(self.rules)

        def encode(games: np.ndarray, states: np.ndarray) -> None:
            everything.encode(games, np.zeros(len(games), np.int64), states)

        return self._fill(encode, everything.size, np.float32, None)

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that the tables go on from, as arrays (n, …), whatever the threads."""
        parts = [tables.get_state() for tables in self._tables]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

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

        def restore(tables: Tables, shard: slice) -> None:
            tables.set_state({name: array[shard] for name, array in state.items()})
            self._observe(tables, shard)

        self.deal_ended[:] = False
        self._on_shards(restore)

    def __getstate__(self) -> dict[str, Any]:
        """A pool of threads cannot be copied; the copy gets its own."""
        return {**self.__dict__, "_pool": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pool = ThreadPoolExecutor(len(self._shards)) if len(self._shards) > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _on_shards(self, function: Callable[[Tables, slice], Any]) -> list[Any]:
        """Call `function(tables, shard)` for every shard of tables, each in a thread of its own."""
        if self._pool is None:
            return [function(self._tables[0], self._shards[0])]
        return list(self._pool.map(function, self._tables, self._shards))

    def _fill(
        self,
        fill: Callable[[np.ndarray, np.ndarray], None],
        size: int,
        dtype: Any,
        rows: np.ndarray | None,
    ) -> np.ndarray:
        """Return a new array (n, size), or (k, size) for `rows`, filled by `fill(games, array)`."""
        if rows is None:
            array = np.zeros((self.num_envs, size), dtype)
            self._on_shards(lambda tables, shard: fill(tables.games, array[shard]))
            return array
        games = self._tables[0].games if self._pool is None else self._all_games()
        games = games[rows]
        array = np.zeros((len(games), size), dtype)
        fill(games, array)
        return array

    def _restart(self, tables: Tables, shard: slice) -> None:
        """Note the scores of the deals that ended, and begin the next deals and episodes."""
        points = tables.games["public_points"][:, : self.rules.sides]
        self.final_scores[shard][tables.scored] = points[tables.scored]
        over = np.flatnonzero(tables.over)
        goes_on = np.flatnonzero(tables.scored & ~tables.over)
        tables.start(over)
        tables.next_deals(goes_on)

    def _observe(self, tables: Tables, shard: slice) -> None:
        """Rewrite the buffers of a shard."""
        to_play = tables.games["to_play"].astype(np.int64)
        self.seats[shard] = to_play
        self._encoder.encode(tables.games, to_play, self.observations[shard])
        self._encoder.mask(tables.games, self.action_masks[shard])

    def _all_games(self) -> np.ndarray:
        """Return every table's record, in one array."""
        return np.concatenate([tables.games for tables in self._tables])

    def _refuse(self, table: int, action: int) -> None:
        """Raise for an illegal action."""
        seat = int(self.seats[table])
        shard = next(i for i, shard in enumerate(self._shards) if table < shard.stop)
        row = table - self._shards[shard].start
        hand = hand_of(self._tables[shard].games[row : row + 1], seat)
        names = self._encoder.action_names
        name = f" ({names[action]})" if 0 <= action < len(names) else ""
        raise ValueError(
            f"action of table {table} is {action}{name}, which is not in the hand of seat {seat}, "
            f"{card_names(hand)}; play one of those"
        )
