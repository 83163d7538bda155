"""Tables of one set of rules, as arrays: they draw decks, deal, play, reward and keep matches.

What the PettingZoo environment (one table) and the batch (thousands) have in common. A finished
deal stays as it is until `next_deals` or `start` is called for its table.
"""

import functools
import secrets
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pisti_env import game, loops, shuffle
from pisti_env.cards import CARD_NAMES, NO_CARD, NUM_CARDS
from pisti_env.checks import (
    check_decks,
    check_range,
    check_starters,
    check_state,
    find_decided,
)
from pisti_env.compile import announce_compilation, compiled, quick
from pisti_env.compiled_rules import compiled_rules
from pisti_env.observation import Encoder, encoder
from pisti_env.observation.encode import as_numbers
from pisti_env.observation.write import Seen, find_illegal, observe_rows, play_and_observe
from pisti_env.quote import quote
from pisti_env.rules import MAX_MATCH_POINTS, Rules

# All that a table is made of, arrays with a row for each.
_OF_EACH_TABLE = (
    *("games", "decks", "rewards", "scored", "over", "deals_dealt"),
    *("_numbers", "_seeds", "_dealers", "_earned", "_gains", "_shares"),
)

REWARDS = ("difference", "terminal", "win")


@functools.cache
def warm_up() -> None:
    """Have everything compiled, once in a process, saying so if that takes a while."""
    with announce_compilation():
        rules, row = Rules(), np.zeros(1, np.int64)
        encoding = encoder("full", rules)
        tables = Tables(rules, 1)
        check_starters(rules, np.array([rules.deck_cards()], np.int8), ["deck"])
        tables.start(row)
        masks = np.zeros((1, encoding.num_actions), np.int8)
        encoding.mask(tables.games, row, masks)
        encoding.encode(tables.games, row, row, np.zeros((1, encoding.size), np.float32), masks)
        tables.find_cards(masks.argmax(axis=1), encoding.action_of_card)
        tables.play()
        to_play = ToPlay(encoding, 1)
        tables.observe(to_play, row)
        to_play.actions[:] = to_play.masks.argmax(axis=1)
        to_play.find_illegal()
        tables.play_on(to_play)


class ToPlay:
    """What the seats to play observe at `num_tables` tables, as `Tables` rewrites it, and what they
    do then: buffers that compiled code gets as they are made here, without a look at their types.

    Attributes: `encoder`; `seats` (n,) int8; `observations` (n, d) float32; `masks` (n, a) int8;
    `legal` (n,) int64, the masks as bits; `observation` (d,) and `mask` (a,) of the first table;
    `actions` (n,) int64, to be written before `Tables.play_on`.
    """

    def __init__(self, encoder: Encoder, num_tables: int):
        self.encoder = encoder
        self.seats = np.zeros(num_tables, np.int8)
        self.observations = np.zeros((num_tables, encoder.size), np.float32)
        self.masks = np.zeros((num_tables, encoder.num_actions), np.int8)
        self.legal = np.zeros(num_tables, np.int64)
        self.actions = np.zeros(num_tables, np.int64)
        self._set_views()

    def _set_views(self) -> None:
        """Set what shows the buffers in another form."""
        self.observation, self.mask = self.observations[0], self.masks[0]
        self.seen = Seen(self.seats, self.legal, self.observations, self.masks)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what `_set_views` sets: copied, it would show arrays of its own."""
        views = ("observation", "mask", "seen")
        return {name: value for name, value in self.__dict__.items() if name not in views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))
        self._set_views()

    def find_illegal(self) -> int:
        """Return the first table where the action is an illegal one, -1 for none."""
        return find_illegal(self.actions, self.legal, self.encoder.layouts)


class Tables:
    """`num_tables` tables. What a table is dealt is a function of its seed, its number (i for table
    i, if no `numbers` (n,) are given) and how many deals it was dealt before.

    Attributes: `games` (n,) records of `game.GAME`; `decks` (n, deck_size) int8 in dealing order,
    before a jack or bottom card is moved; `rewards` (n, sides) float32 of the last play; `scored`
    and `over` (n,) bool: whether the deal, the episode has ended; `cards` (n,) int64, what `play`
    plays; `deals_dealt` (n,) int64 of the seed. Who offers tables to users does so `with
    tables.one_thread():`.
    """

    def __init__(
        self,
        rules: Rules,
        num_tables: int,
        numbers: np.ndarray | None = None,
        rewards: str = "difference",
    ):
        if rewards not in REWARDS:
            raise ValueError(f"rewards is {quote(rewards)}; expected one of {', '.join(REWARDS)}")
        self.rules = rules
        self.all_rows = np.arange(num_tables)
        self.games = np.zeros(num_tables, game.GAME)
        self.decks = np.zeros((num_tables, rules.deck_size), np.int8)
        self.rewards = np.zeros((num_tables, rules.sides), np.float32)
        self.scored = np.zeros(num_tables, np.bool_)
        self.over = np.zeros(num_tables, np.bool_)
        self.reward_kind = rewards
        self._pack = np.array(rules.deck_cards(), np.int8)
        self._numbers = np.arange(num_tables) if numbers is None else numbers.astype(np.int64)
        self._seeds = np.zeros(num_tables, np.uint64)
        self.deals_dealt = np.zeros(num_tables, np.int64)
        self._dealers = np.zeros(num_tables, np.int64)
        self._dealt = np.zeros(num_tables, np.bool_)
        self.cards = np.zeros(num_tables, np.int64)
        self._gains = np.zeros((num_tables, rules.sides), np.int64)
        self._earned = np.zeros((num_tables, rules.sides))  # in the episode so far
        self._shares = np.zeros((num_tables, rules.sides))
        self._set_arguments()
        self.reseed(secrets.randbits(64))

    def _set_arguments(self) -> None:
        """Set what compiled functions take beside the arrays of the tables, and a lock of one's
        own."""
        self._lock = threading.Lock()
        self._compiled_rules = compiled_rules(self.rules)
        self._streams = shuffle.Streams(self._seeds, self._numbers, self.deals_dealt)
        self._played = loops.Played(self._gains, self.rewards, self.scored, self.over, self._shares)
        self._play_and_observe = quick(play_and_observe)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what `_set_arguments` sets: copied, it would be arrays of their own."""
        arguments = ("_lock", "_compiled_rules", "_streams", "_played", "_play_and_observe")
        return {name: value for name, value in self.__dict__.items() if name not in arguments}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))
        self._set_arguments()

    def one_thread(self) -> threading.Lock:
        """Return a lock: `with` it, one thread uses the tables, and another one is refused here.
        Compiled code runs beside other threads, and two that change a table would spoil memory.

        The lock itself is what `with` takes, since Ctrl-C cannot come between its being locked and
        the block that unlocks it, as it can in a method that locks it.
        """
        if self._lock.locked():
            raise RuntimeError(
                "another thread is using these tables at this moment; let one thread at a time do "
                "so, or give each its own copy (copy.deepcopy)"
            )
        return self._lock

    def reseed(self, seed: int) -> None:
        """Go to the seed's first deal; until the first call, the seed is an unpredictable one."""
        self.reseed_each(self.all_rows, np.uint64(shuffle.check_seed(seed)))

    def reseed_each(
        self,
        rows: np.ndarray,
        seeds: np.ndarray | np.uint64,
        numbers: np.ndarray | None = None,
    ) -> None:
        """Go to the first deal of `seeds` (k,) uint64 at the tables `rows` (k,); with
        `numbers` (k,) int64, these are the tables' numbers from now on."""
        self._seeds[rows] = seeds
        if numbers is not None:
            self._numbers[rows] = numbers
        self.deals_dealt[rows] = 0

    def start(
        self,
        rows: np.ndarray,
        decks: np.ndarray | None = None,
        dealers: np.ndarray | None = None,
        scores: np.ndarray | None = None,
    ) -> None:
        """Begin an episode at the tables `rows`. `decks` (len(rows), deck_size), `dealers`
        (len(rows),) and `scores` (sides,) are for what else is drawn or zero, and must be right:
        see `checks.py`.
        """
        if dealers is not None:
            self._dealers[rows] = dealers
        else:
            random_dealers = quick(shuffle.random_dealers)
            random_dealers(self._streams, as_numbers(rows), self.rules.players, self._dealers)
        self._earned[rows] = 0
        self.games["match_points"][rows] = 0
        if decks is not None:
            self.decks[rows] = decks
        self._deal(rows, draw=decks is None)
        if scores is not None:
            self.games["match_points"][rows, : self.rules.sides] = scores

    def random_seeds(self, rows: np.ndarray) -> np.ndarray:
        """Return a random number (k,) uint64 for each of the tables `rows` (k,), for what is drawn
        in place of the deck that would be the table's next one."""
        return shuffle.random_numbers_at(rows, self._seeds, self._numbers, self.deals_dealt[rows])

    def next_deals(self, rows: np.ndarray, decks: np.ndarray | None = None) -> None:
        """Begin the match's next deal at the tables `rows`: the next seat deals. `decks` as for
        `start`."""
        self._dealers[rows] = (self._dealers[rows] + 1) % self.rules.players
        if decks is not None:
            self.decks[rows] = decks
        self._deal(rows, draw=decks is None)

    def _deal(self, rows: np.ndarray, draw: bool) -> None:
        """Deal the tables' decks at `rows`. Those to `draw` are drawn before, and once more where
        no starter can be turned up."""
        shuffle_rows, deal_rows = quick(shuffle.shuffle_rows), quick(loops.deal_rows)
        attempt, left = 0, as_numbers(rows)
        while len(left):
            if draw:
                shuffle_rows(self._streams, left, self._pack, attempt, self.decks)
            deal_rows(
                self.games, self._compiled_rules, left, self.decks, self._dealers, self._dealt
            )
            attempt, left = attempt + 1, left[~self._dealt[left]] if draw else left[:0]
        self.deals_dealt[rows] += 1
        self.scored[rows] = False
        self.over[rows] = False

    def copy_tables(self, rows: np.ndarray, source: "Tables", source_rows: np.ndarray) -> None:
        """Make the tables `rows` (k,) what those of `source` at `source_rows` (k,), or the one at
        (1,), are: the same cards, and the same deals to come. Both have the same rules; `source`
        may be these tables themselves.

        Compiled code that copies a table's record, `games[i] = games[j]`, plays its deal on.
        """
        for name in _OF_EACH_TABLE:
            getattr(self, name)[rows] = getattr(source, name)[source_rows]

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that the tables go on from, new arrays (n, …): how each deal was dealt, and
        its `plays` (n, num_plays) so far, NO_CARD for those to come."""
        rules, games = self.rules, self.games
        played = np.arange(rules.num_plays) < games["num_plays"][:, np.newaxis]
        return {
            "decks": self.decks.copy(),
            "dealers": self._dealers.copy(),
            "match_points": games["match_points"][:, : rules.sides].copy(),
            "plays": np.where(played, games["plays"][:, : rules.num_plays], np.int8(NO_CARD)),
            "deals_dealt": self.deals_dealt.copy(),
            "earned": self._earned.copy(),
            "seeds": self._seeds.copy(),
            "numbers": self._numbers.copy(),
        }

    def rebuild(self, state: Mapping[str, np.ndarray]) -> "Tables":
        """Return new tables that go on from what `get_state` returned, by dealing and playing all
        of it anew.

        Raises `ValueError` naming field and table for what no tables of these rules can have come
        to in the middle of their deals.
        """
        rules, num_tables = self.rules, len(self.games)
        given = check_state(state, self.get_state())
        check_range("dealers", given["dealers"], 0, rules.players - 1)
        most = 0 if rules.target is None else MAX_MATCH_POINTS
        check_range("match_points", given["match_points"], 0, most)
        decided = -1 if rules.target is None else find_decided(rules, given["match_points"])
        if decided >= 0:
            raise ValueError(
                f"match_points of table {decided} is {given['match_points'][decided].tolist()}; "
                "expected a match that is not decided yet"
            )
        check_range("deals_dealt", given["deals_dealt"], 1, MAX_MATCH_POINTS)
        check_range("earned", given["earned"], 0, MAX_MATCH_POINTS)
        check_range("numbers", given["numbers"], 0, MAX_MATCH_POINTS)
        tables = Tables(rules, num_tables, given["numbers"], self.reward_kind)
        decks = check_decks(rules, given["decks"], num_tables)
        tables.start(self.all_rows, decks, given["dealers"])
        tables.games["match_points"][:, : rules.sides] = given["match_points"]
        tables.play_all(given["plays"])
        tables.deals_dealt[:] = given["deals_dealt"]
        tables._earned[:] = given["earned"]
        tables._seeds[:] = given["seeds"]
        return tables

    def play_all(self, plays: np.ndarray) -> None:
        """Play the cards `plays` (n, num_plays), table by table in their order up to NO_CARD; raise
        `ValueError` for one that is not in the hand, and if they are all of the deal."""
        faces = np.arange(NUM_CARDS)
        for number in range(plays.shape[1]):
            rows = np.flatnonzero((plays[:, number:] != NO_CARD).any(axis=1))
            cards = plays[rows, number].astype(np.int64)
            illegal = self.find_cards(cards, faces, rows)
            if illegal >= 0:
                card = int(cards[illegal])
                name = CARD_NAMES[card] if 0 <= card < NUM_CARDS else str(card)
                raise ValueError(
                    f"plays of table {rows[illegal]} has {name} as play {number}; expected a card "
                    "of the hand to play"
                )
            self.play(rows)
        if self.scored.any():
            raise ValueError(
                f"plays of table {np.argmax(self.scored)} is a whole deal; expected one that goes "
                "on"
            )

    def find_cards(
        self, actions: np.ndarray, action_of_card: np.ndarray, rows: np.ndarray | None = None
    ) -> int:
        """Choose the card of each of `actions` (k,) int64 at the tables `rows` (k,), without them
        at all tables; return the index of the first action that is no card of the hand to play, -1
        if all are. `action_of_card` (52,) int64 tells; of several cards the lowest is chosen."""
        rows = self.all_rows if rows is None else rows
        return loops.choose_cards(self.games, rows, actions, action_of_card, self.cards)

    def play(self, rows: np.ndarray | None = None) -> None:
        """Play the cards that were chosen for these tables; set their `rewards`, `scored`
        and `over`."""
        rows = self.all_rows if rows is None else as_numbers(rows)
        quick(loops.play_rows)(self.games, self._compiled_rules, rows, self.cards, self._played)
        if self.reward_kind != "difference":
            self._pay(rows)

    def play_on(self, to_play: ToPlay, rows: np.ndarray | None = None) -> None:
        """Play the actions of `to_play`, which must be legal, at `rows` (or at all tables, without)
        as `play` does, and rewrite `to_play` there, but where the deal is scored now."""
        rows = self.all_rows if rows is None else as_numbers(rows)
        self._play_and_observe(
            self.games,
            self._compiled_rules,
            to_play.encoder.layouts,
            rows,
            to_play.actions,
            self._played,
            to_play.seen,
        )
        if self.reward_kind != "difference":
            self._pay(rows)

    def observe(self, to_play: ToPlay, rows: np.ndarray) -> None:
        """Rewrite `to_play` at `rows`, where it is someone's turn."""
        layouts = to_play.encoder.layouts
        quick(observe_rows)(
            self.games, self._compiled_rules, layouts, as_numbers(rows), to_play.seen
        )

    def _pay(self, rows: np.ndarray) -> None:
        """Set rewards that are paid at the end of the episode."""
        if self.reward_kind == "terminal":
            self._earned[rows] += self._gains[rows]
            pay_at_the_end(rows, self.over, self._earned, self.rewards)
        else:
            pay_at_the_end(rows, self.over, self._shares, self.rewards)

    @property
    def most_to_lose(self) -> float:
        """The most that a side can lose in a deal (or, paid for wins, in an episode)."""
        most = 1 if self.reward_kind == "win" else self.rules.max_deal_points
        return most / (self.rules.sides - 1)

    def score(self, row: int) -> list[dict[str, int]]:
        """Return each side's score of a table's deal, what is hidden included."""
        here = self.games[row : row + 1]
        fields = ("captured", "pistis", "jack_pistis", "match_points")
        cards, pistis, jack_pistis, match_points = (here[field][0].tolist() for field in fields)
        points = here["public_points"][0].tolist()
        taker = int(here["starters_taker"][0])
        if taker != game.NOBODY and not here["scored"][0]:
            face_down = here["deck"][0, : game.FACE_DOWN].tolist()
            points[self.rules.side(taker)] += sum(map(self.rules.card_points, face_down))
        return [
            {
                "points": points[side],
                "cards": cards[side],
                "pistis": pistis[side],
                "jack_pistis": jack_pistis[side],
                "match_points": match_points[side],
            }
            for side in range(self.rules.sides)
        ]


class PlayedDeal(NamedTuple):
    """A deal as it was played: the first three are what all else follows from."""

    deck: tuple[int, ...]
    """In dealing order, as `Tables.start` takes it."""
    dealer: int
    """The seat that dealt."""
    plays: tuple[int, ...]
    """The cards played, in order."""
    points: tuple[int, ...] | None
    """What each side scored; None before the end of the deal."""

    @classmethod
    def of(cls, rules: Rules, record: bytes, deck: bytes) -> "PlayedDeal":
        """Return the deal of a table from its record, of `game.GAME`, and its deck, of int8."""
        here = np.frombuffer(record, game.GAME)[0]
        return cls(
            deck=tuple(np.frombuffer(deck, np.int8).tolist()),
            dealer=int(here["dealer"]),
            plays=tuple(here["plays"][: here["num_plays"]].tolist()),
            points=tuple(here["public_points"][: rules.sides].tolist()) if here["scored"] else None,
        )


def own_arrays(state: dict[str, Any]) -> dict[str, Any]:
    """Return an object's state as it was pickled, with copies of arrays that compiled code cannot
    use: those pickled out of band may be read-only, or lie anywhere in memory."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) and not value.flags.carray else value
        for name, value in state.items()
    }


@compiled
def pay_at_the_end(rows, over, amounts, rewards):
    """Set `rewards` (n, sides) at `rows`: where the episode is over, a side's of the `amounts` (n,
    sides) less the others' mean, elsewhere 0."""
    sides = rewards.shape[1]
    for i in rows:
        total = amounts[i].sum()
        for side in range(sides):
            margin = amounts[i, side] - (total - amounts[i, side]) / (sides - 1)
            rewards[i, side] = margin if over[i] else 0
