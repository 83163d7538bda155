"""What a seat knows, as numbers: an observation is an ordered list of named pieces.

`PIECES` declares them, `ENCODINGS` says which of them an encoding has, `describe` where they are,
and one compiled function per group of pieces writes them.
Everything is relative to the observer: seat 0 of a piece is the observer, seat 1 the next seat, and
sides likewise.

Every card that a seat has seen is in exactly one of its pieces hand, played, known_starters, shown
and bottom_card. So the cards it has not seen are the deck less those.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pisti_env import game
from pisti_env.cards import (
    CARD_NAMES,
    JACK,
    KIND_NAMES,
    KIND_OF_CARD,
    NO_CARD,
    NUM_CARDS,
    NUM_KINDS,
    NUM_RANKS,
)
from pisti_env.compile import at, compiled, inlined, quick
from pisti_env.counts import (
    KIND_BITS,
    ONE_OF_CARD,
    count_of,
    number,
    present,
    write_eight,
    write_fifteen,
)
from pisti_env.game import (
    FACE_DOWN,
    MAX_HAND,
    NOBODY,
    PILE,
    STARTER,
    is_jack,
    lowest_card,
    next_seat,
    pile_size,
    play_table,
    side_of,
)
from pisti_env.quote import quote
from pisti_env.rules import NUM_STARTERS, Rules, RulesLike, resolve_rules


class Scale(NamedTuple):
    """What 1.0 stands for in a piece: in words, and as the number that counts are divided by."""

    text: str
    unit: Callable[[Rules], int]


# Of equal cards there are as many as packs, of a kind at most packs * copies.
ONE = Scale("1", lambda rules: 1)
PACKS = Scale("packs", lambda rules: rules.num_packs)
PACKS_TIMES_COPIES = Scale("packs * copies", lambda rules: rules.num_packs * rules.copies)
FACES = Scale("52", lambda rules: NUM_CARDS)
KINDS = Scale("15", lambda rules: NUM_KINDS)
PLAYERS = Scale("players", lambda rules: rules.players)
HAND_SIZE = Scale("hand_size", lambda rules: rules.hand_size)
DECK = Scale("deck", lambda rules: rules.deck_size)
PACKETS = Scale("packets", lambda rules: rules.num_packets)
PISTI_PLAYS = Scale("plays // 2", lambda rules: max(1, rules.num_plays // 2))
DEAL_POINTS = Scale("max_deal_points", lambda rules: max(1, rules.max_deal_points))
MATCH_POINTS = Scale(
    "target + max_deal_points", lambda rules: max(1, (rules.target or 0) + rules.max_deal_points)
)


class Piece(NamedTuple):
    """One named part of an observation. Sizes may depend on the rules and on the number of
    actions: 52, where cards are told apart by their faces, or 15, where they are by their kinds."""

    name: str
    meaning: str
    size: Callable[[Rules, int], int]
    scale: Scale
    scale_of_kinds: Scale | None = None  # where it is another one with 15 actions


def _number(rules: Rules, actions: int) -> int:
    return 1


def _cards(rules: Rules, actions: int) -> int:
    return actions


def _players(rules: Rules, actions: int) -> int:
    return rules.players


def _sides(rules: Rules, actions: int) -> int:
    return rules.sides


def _plays(rules: Rules, actions: int) -> int:
    return rules.num_plays


def _counted(name: str, meaning: str) -> Piece:
    return Piece(name, meaning, _cards, PACKS, PACKS_TIMES_COPIES)


def _named(name: str, meaning: str, size: Callable[[Rules, int], int]) -> Piece:
    return Piece(name, f"{meaning}: action + 1, 0 for none", size, FACES, KINDS)


PIECES = (
    _counted("hand", "own hand"),
    Piece("top", "top card, one-hot", _cards, ONE),
    _counted("pile", "face-up part of the pile"),
    _counted("played", "cards put face up so far: the turned-up starter and every play"),
    _counted("known_starters", "the face-down starters, once the observer knows them"),
    Piece(
        "shown",
        "jacks turned up before the starter, unless in hand, played or known_starters; "
        "by suit (faces) or in all (kinds)",
        lambda rules, actions: rules.copies if actions == NUM_CARDS else 1,
        PACKS,
        PACKS_TIMES_COPIES,
    ),
    Piece(
        "bottom_card",
        "the shown bottom card while in the stock or in another hand, one-hot",
        lambda rules, actions: actions if rules.bottom_card_shown else 0,
        ONE,
    ),
    _counted("packet_pile", "face-up part of the pile when the packet was dealt"),
    _named("packet_top", "top card then", _number),
    _named(
        "packet_plays",
        "plays of the packet, for each seat in its order",
        lambda rules, actions: rules.packet_size,
    ),
    Piece("hand_sizes", "cards in each hand", _players, HAND_SIZE),
    Piece(
        "exposed_in_hands",
        "cards of each other hand that everyone knows to be there",
        lambda rules, actions: (
            rules.players if rules.bottom_card_shown or rules.starter_jack != "pile" else 0
        ),
        HAND_SIZE,
    ),
    Piece("pile_size", "cards on the table, face-down ones included", _number, DECK),
    Piece("stock_size", "cards in the stock", _number, DECK),
    Piece("captured", "cards captured by each side", _sides, DECK),
    Piece("public_points", "public points of each side", _sides, DEAL_POINTS),
    Piece("pistis", "pişti by equal rank, of each side", _sides, PISTI_PLAYS),
    Piece("jack_pistis", "pişti of jack on jack, of each side", _sides, PISTI_PLAYS),
    Piece("last_capturer", "who captured last, one-hot, all 0 for nobody", _players, ONE),
    Piece("dealer", "who dealt, one-hot", _players, ONE),
    Piece("packet", "number of the packet, from 1", _number, PACKETS),
    Piece("match_scores", "match points of each side, clipped at 1", _sides, MATCH_POINTS),
    Piece("target", "target of the match, 0 for none", _number, MATCH_POINTS),
    Piece(
        "jacks_seen",
        "jacks that the observer has seen, anywhere",
        _number,
        PACKS_TIMES_COPIES,
    ),
    _named("starter", "the turned-up starter", _number),
    _named("starter_order", "known_starters in deal order", lambda rules, actions: FACE_DOWN),
    _named(
        "jack_order",
        "jacks turned up before the starter",
        lambda rules, actions: rules.num_packs * rules.copies,
    ),
    _named(
        "bottom_card_of_deal",
        "the shown bottom card, wherever it is",
        lambda rules, actions: 1 if rules.bottom_card_shown else 0,
    ),
    Piece(
        "history_seats",
        "who made each play of the deal: relative seat + 1, 0 for none",
        _plays,
        PLAYERS,
    ),
    _named("history_cards", "what each play of the deal was", _plays),
    Piece(
        "hands",
        "every hand, seat after seat",
        lambda rules, actions: rules.players * actions,
        PACKS,
        PACKS_TIMES_COPIES,
    ),
    _counted("starters", "the face-down starters"),
    _named(
        "stock",
        "the stock in order, what has been dealt left out",
        lambda rules, actions: rules.deck_size - NUM_STARTERS,
    ),
    Piece("points", "points of each side, face-down starters included", _sides, DEAL_POINTS),
    Piece("to_play", "whose turn it is, one-hot", _players, ONE),
)

_NUMBER_OF = {piece.name: number for number, piece in enumerate(PIECES)}

# No encoding has more numbers, under any rules.
MAX_NUMBERS = 1024

# The dtypes of an observation, and the largest count that each can hold. Counts are scaled in
# float32 alone. Only points can be more than 255, and no other number is more than 104.
MOST = {"float32": np.iinfo(np.int64).max, "uint8": np.iinfo(np.uint8).max}

# An encoding for the compiled functions: where each piece begins, ABSENT if it is not in it, by the
# piece's name; and what belongs to cards and to numbers. Of each dtype.
ABSENT = -1
LAYOUTS = {
    dtype: np.dtype(
        (
            np.record,
            [
                *((piece.name, np.int64) for piece in PIECES),
                ("numbers", np.int64),  # of an observation; `size` is an attribute of any record
                ("faces", np.int64),  # 1 with 52 actions, 0 with 15
                ("num_actions", np.int64),
                ("most", np.int64),  # see MOST
                ("action_of", np.int64, (NUM_CARDS,)),
                ("named", dtype, (NUM_CARDS + 1,)),  # the number that names a card, or NO_CARD
                ("scales", dtype, (MAX_NUMBERS,)),
            ],
        )
    )
    for dtype in MOST
}

# For the arguments of `play_and_observe` that are not needed.
NO_NUMBERS = np.zeros(0, np.int64)
NO_SEATS = np.zeros(0, np.int8)
NOTHING_PLAYED = (
    np.zeros((0, 0), np.int64),
    np.zeros((0, 0), np.float32),
    np.zeros(0, np.bool_),
    np.zeros(0, np.bool_),
    np.zeros((0, 0)),
)
NO_MASKS = np.zeros((0, 0), np.int8)
NOT_OBSERVED = (NO_SEATS, NO_NUMBERS, np.zeros((0, 0), np.float32), NO_MASKS)

_BASIC = ("hand", "top", "pile_size", "jacks_seen")
_PUBLIC_COUNTS = (
    "pile_size",
    "stock_size",
    "captured",
    "public_points",
    "pistis",
    "jack_pistis",
    "last_capturer",
    "dealer",
    "packet",
    "match_scores",
    "target",
)
_FULL = (
    "hand",
    "top",
    "pile",
    "played",
    "known_starters",
    "shown",
    "bottom_card",
    "packet_pile",
    "packet_top",
    "packet_plays",
    "hand_sizes",
    "exposed_in_hands",
    *_PUBLIC_COUNTS,
)
_HISTORY = (
    *_FULL,
    "starter",
    "starter_order",
    "jack_order",
    "bottom_card_of_deal",
    "history_seats",
    "history_cards",
)
_STATE = ("hands", "top", "pile", "played", "starters", "stock", "hand_sizes", *_PUBLIC_COUNTS)

# Of each encoding: the number of actions, and its pieces in order.
ENCODINGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "basic": (NUM_CARDS, _BASIC),
    "full": (NUM_CARDS, _FULL),
    "kinds": (NUM_KINDS, _FULL),
    "history": (NUM_CARDS, _HISTORY),
    "kinds_history": (NUM_KINDS, _HISTORY),
}
# What `state()` has: all that the rest of the deal depends on, hidden cards included, from seat 0.
# Never an observation.
STATE = (NUM_CARDS, (*_STATE, "points", "to_play"))

# One function writes all pieces of a group, so an encoding has all of them or none.
GROUPS = (
    ("known_starters", "shown"),
    ("packet_pile", "packet_top", "packet_plays"),
    ("hand_sizes", *(name for name in _PUBLIC_COUNTS if name != "pile_size")),
    ("starter", "starter_order", "jack_order", "history_seats", "history_cards"),
    ("hands", "starters", "stock", "points", "to_play"),
)


class LayoutRow(NamedTuple):
    """Where a piece is in an observation, what it means, and what 1.0 in it stands for."""

    name: str
    slice: slice
    meaning: str
    scale: str


class Layout(tuple[LayoutRow, ...]):
    """The rows of an encoding, in order; printed, they are a table."""

    @property
    def size(self) -> int:
        """Numbers in an observation."""
        return self[-1].slice.stop

    def __str__(self) -> str:
        lines = ["| numbers | name | meaning | 1.0 is |", "|---|---|---|---|"]
        for row in self:
            numbers = f"{row.slice.start}-{row.slice.stop - 1}"
            if row.slice.stop == row.slice.start + 1:
                numbers = f"{row.slice.start}"
            lines.append(f"| {numbers} | `{row.name}` | {row.meaning} | {row.scale} |")
        return "\n".join(lines)


class Encoder:
    """An encoding under some rules: its sizes, and the functions that fill arrays with it.

    Attributes: `size` numbers in an observation, of a `dtype`; the `scales` (size,) float32 that
    make float32 numbers of counts; `layout`; `num_actions`, 52 or 15, and their `action_names`;
    `action_of_card` (52,) int64; for compiled functions `layouts` (1,), and `play_and_observe` as
    it is compiled for the dtype.
    """

    def __init__(
        self, rules: Rules, num_actions: int, pieces: tuple[str, ...], dtype: str = "float32"
    ):
        for group in GROUPS:
            if 0 < len(set(group) & set(pieces)) < len(group):
                raise ValueError(f"an encoding has all of {', '.join(group)}, or none of them")
        self._made_of = (rules, num_actions, pieces, dtype)
        self.dtype = dtype
        self.num_actions = num_actions
        self.action_names = CARD_NAMES if num_actions == NUM_CARDS else KIND_NAMES
        faces = np.arange(NUM_CARDS, dtype=np.int64)
        self.action_of_card = faces if num_actions == NUM_CARDS else KIND_OF_CARD.astype(np.int64)
        self._table_rules = game.table_rules(rules)
        self.play_and_observe = PLAY_AND_OBSERVE[dtype]
        self.layouts = np.zeros(1, LAYOUTS[dtype])
        rows: list[LayoutRow] = []
        divisors: list[int] = []
        for piece in PIECES:
            self.layouts[piece.name] = ABSENT
        for name in pieces:
            piece = PIECES[_NUMBER_OF[name]]
            size = piece.size(rules, num_actions)
            if size:
                start, scale = len(divisors), piece.scale
                if num_actions == NUM_KINDS and piece.scale_of_kinds is not None:
                    scale = piece.scale_of_kinds
                self.layouts[name] = start
                rows.append(LayoutRow(name, slice(start, start + size), piece.meaning, scale.text))
                divisors += [scale.unit(rules)] * size
        self.size = len(divisors)
        after = self.size - self.layouts["packet_plays"][0] - rules.packet_size
        if num_actions == NUM_KINDS and "packet_plays" in pieces and after < 8 - rules.hand_size:
            raise ValueError(f"{after} numbers follow packet_plays, too few; see `write_packet`")
        self.scales = (1 / np.array(divisors)).astype(np.float32)
        self.layout = Layout(rows)
        self.layouts["numbers"] = self.size
        self.layouts["faces"] = num_actions == NUM_CARDS
        self.layouts["num_actions"] = num_actions
        self.layouts["most"] = MOST[dtype]
        self.layouts["action_of"] = self.action_of_card
        one = np.float32(1 / num_actions) if dtype == "float32" else np.uint8(1)
        self.layouts["named"][0, :NUM_CARDS] = (self.action_of_card + 1).astype(dtype) * one
        self.layouts["scales"][0, : self.size] = self.scales if dtype == "float32" else 1
        self.layouts.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder, self._made_of

    def encode(
        self,
        games: np.ndarray,
        rows: np.ndarray,
        seats: np.ndarray,
        observations: np.ndarray,
        action_masks: np.ndarray | None = None,
    ) -> None:
        """Fill `observations` (k, size), contiguous and of this dtype, with what `seats` (k,) know
        at `games[rows]`, and `action_masks` as `mask` does."""
        masks = NO_MASKS if action_masks is None else action_masks
        self._observe(games, rows, seats, observations, masks)

    def mask(self, games: np.ndarray, rows: np.ndarray, action_masks: np.ndarray) -> None:
        """Fill `action_masks` (k, num_actions) int8 with the plays of the seats whose turn it is at
        `games[rows]`, all 0 where the deal is over."""
        nothing = np.zeros((0, 0), self.dtype)
        self._observe(games, rows, np.zeros_like(rows), nothing, action_masks)

    def _observe(
        self,
        games: np.ndarray,
        rows: np.ndarray,
        seats: np.ndarray,
        observations: np.ndarray,
        masks: np.ndarray,
    ) -> None:
        quick(self.play_and_observe)(
            games,
            self._table_rules,
            self.layouts,
            rows,
            NO_NUMBERS,  # no actions
            *NOTHING_PLAYED,
            seats,
            NO_SEATS,
            NO_NUMBERS,
            observations,
            masks,
        )


def check_encoding(observation: str) -> str:
    """Return the name of an encoding; raise `ValueError` if there is none of that name."""
    if not isinstance(observation, str) or observation not in ENCODINGS:
        raise ValueError(
            f"observation is {quote(observation)}; expected one of {', '.join(ENCODINGS)}"
        )
    return observation


def check_dtype(dtype: Any) -> str:
    """Return the name of a dtype of observations; raise `ValueError` if it is none."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in MOST:
        raise ValueError(f"dtype is {quote(dtype)}; expected one of {', '.join(MOST)}")
    return name


def encoder(observation: str, rules: Rules, dtype: str = "float32") -> Encoder:
    """Return the encoder of an encoding's name, for observations of a dtype."""
    return _encoder(check_encoding(observation), rules, check_dtype(dtype))


@functools.lru_cache(maxsize=256)
def _encoder(observation: str, rules: Rules, dtype: str) -> Encoder:
    return Encoder(rules, *ENCODINGS[observation], dtype)


@functools.lru_cache(maxsize=256)
def state_encoder(rules: Rules) -> Encoder:
    """Return the encoder of the full state."""
    return Encoder(rules, *STATE)


def describe(observation: str = "full", rules: RulesLike = "standard", **fields: Any) -> Layout:
    """Return the layout of an encoding, or of ``"state"``, under some rules.

    Each row has a name, a slice, a meaning and a scale; printed, the layout is a table.
    """
    rules = resolve_rules(rules, **fields)
    return (state_encoder(rules) if observation == "state" else encoder(observation, rules)).layout


def play_and_observe(
    games,
    table,
    layouts,
    rows,
    actions,
    gains,
    margins,
    scored,
    over,
    shares,
    observers,
    seats,
    legal,
    observations,
    masks,
):
    """Play `actions` (n,) at the tables `rows` (k,), which sets `gains` to `shares` as `play_table`
    has it. Then, but where the deal is scored now, observe:

    - if `observers` (k,) are given, set `observations` (k, d) to what they know, and `masks` (k, a)
      to the actions of the seat to play;
    - if not, the seat to play observes: set `seats` (n,) to it, `observations` (n, d) and `masks`
      (n, a) at `rows`, and `legal` (n,) to the mask as bits.

    Without `actions` nothing is played, without `observations` or `masks` these are not written.
    One function for all that, since it takes seconds to compile. It goes from table to table, so
    that what is read and written of one stays in the processor's cache meanwhile.
    """
    rules, layout = table[0], layouts[0]
    for k in range(len(rows)):
        i = at(rows[k])
        game = games[i]
        if len(actions) > 0:
            card = lowest_card(game, actions[i], layout.action_of)
            play_table(game, rules, card, i, gains, margins, scored, over, shares)
            if scored[i]:
                continue
        place, me = i, np.int64(game.to_play)
        if len(observers) > 0:
            place, me = at(k), observers[k]
        if len(observations) > 0:
            write_row(game, rules, layout, me, observations[place])
        if len(masks) > 0:
            bits = write_mask(game, layout, masks[place])
            if len(observers) == 0:
                seats[i], legal[i] = me, bits


def _for_dtype(dtype: str) -> Any:
    """Return `play_and_observe` as a compiled function of its own: `quick` has no look at types,
    and files of compiled code are shared by functions of one name."""
    name = f"{play_and_observe.__name__}_{dtype}"
    copy = types.FunctionType(play_and_observe.__code__, globals(), name)
    copy.__qualname__ = name
    return compiled(copy)


PLAY_AND_OBSERVE = {dtype: _for_dtype(dtype) for dtype in MOST}


@compiled
def find_illegal(actions, legal, layouts):
    """Return the first place where `actions` (n,) has none of those that `legal` (n,) has as bits,
    see `write_mask`; -1 for none."""
    bits = 1 if layouts[0].faces else KIND_BITS
    for i in range(len(actions)):
        action = actions[i]
        if action < 0 or action >= layouts[0].num_actions or (legal[i] >> (action * bits)) & 1 == 0:
            return i
    return -1


@inlined
def write_row(game, rules, layout, me, row):
    """Set an observation, `row` (d,), to what the seat `me` knows.

    Cards by face are counted one by one, from zero. A row with 15 actions is not cleared before:
    there every piece has all of its numbers written, in the order of these calls.
    """
    if layout.faces:
        clear(row, 0, layout.numbers)
    write_hand(game, layout, me, row)
    write_table(game, layout, row)
    write_packet(game, rules, layout, me, row)  # before what comes after it in the row
    write_seen(game, rules, layout, me, row)
    write_sizes(game, rules, layout, me, row)
    write_sides(game, rules, layout, me, row)
    if layout.jacks_seen != ABSENT:
        write(jacks_seen(game, rules, me), layout.jacks_seen, layout, row)
    if layout.history_seats != ABSENT:
        write_history(game, rules, layout, me, row)
    if layout.stock != ABSENT:
        write_hidden(game, rules, layout, row)


@inlined
def clear(row, first, stop):
    """Set the numbers from `first` to before `stop` to 0."""
    for place in range(first, stop):
        row[at(place)] = 0


@inlined
def write(count, place, layout, row):
    """Write a count at a place."""
    row[at(place)] = number(count, layout.scales[at(place)], row)


@inlined
def write_kinds(kinds, start, layout, row):
    """Write how many there are of each kind."""
    write_fifteen(kinds, layout.scales[at(start)], row, start)


@inlined
def add(place, layout, row):
    """Count one more at a place."""
    row[at(place)] += layout.scales[at(place)]


@inlined
def write_cards(game, with_starter, first, stop, start, layout, row):
    """Count cards by face: the plays from `first` to before `stop`, and perhaps the starter."""
    scale = layout.scales[start]
    if with_starter:
        row[at(start + game.deck[STARTER])] += scale
    for k in range(first, stop):
        row[at(start + game.plays[at(k)])] += scale


@inlined
def relative(seat, me, players):
    """Return how many seats after `me` a seat is, 0 to players - 1; `seat` may be `players`.

    Far quicker than a remainder, which is most of the cost of a row otherwise.
    """
    ahead = seat - me
    if ahead < 0:
        return ahead + players
    return ahead if ahead < players else ahead - players


@inlined
def write_mask(game, layout, mask):
    """Set `mask` (a,) int8 to the legal actions of the seat whose turn it is. Return them as bits:
    bit a for action a of 52, bit KIND_BITS * a for action a of 15."""
    legal, seat = np.int64(0), game.to_play
    if layout.faces:
        clear(mask, 0, NUM_CARDS)
        if seat != NOBODY:
            for held in range(game.hand_sizes[at(seat)]):
                card = np.int64(game.hands[at(seat), held])
                mask[at(card)] = 1
                legal |= 1 << card
        return legal
    if seat != NOBODY:
        legal = present(hand_kinds(game, seat))
    write_fifteen(legal, np.int8(1), mask, 0)
    return legal


@inlined
def hand_kinds(game, seat):
    """Return how many of each kind a seat holds."""
    kinds, size = 0, game.hand_sizes[at(seat)]
    for held in range(MAX_HAND):
        if held < size:
            kinds += ONE_OF_CARD[at(game.hands[at(seat), held])]
    return kinds


@inlined
def write_hand(game, layout, me, row):
    """Hand."""
    if layout.hand == ABSENT:
        return
    if layout.faces:
        for held in range(game.hand_sizes[at(me)]):
            add(layout.hand + game.hands[at(me), held], layout, row)
    else:
        write_kinds(hand_kinds(game, me), layout.hand, layout, row)


@inlined
def write_table(game, layout, row):
    """Top, pile and played."""
    if layout.faces:
        if game.top != NO_CARD:
            row[at(layout.top + game.top)] = 1
    else:
        write_kinds(ONE_OF_CARD[game.top], layout.top, layout, row)
    if layout.pile != ABSENT:
        if layout.faces:
            first, stop = game.pile_start, game.num_plays
            write_cards(game, game.starters_down, first, stop, layout.pile, layout, row)
        else:
            write_kinds(game.pile_kinds, layout.pile, layout, row)
    if layout.played != ABSENT:
        if layout.faces:
            write_cards(game, 1, 0, game.num_plays, layout.played, layout, row)
        else:
            write_kinds(game.played_kinds, layout.played, layout, row)


@inlined
def write_seen(game, rules, layout, me, row):
    """Known starters, shown jacks and the bottom card, but for those in hand or played."""
    if layout.known_starters == ABSENT:
        return
    knows = game.knows_starters[at(me)]
    if layout.faces:
        for place in range(FACE_DOWN * knows):
            add(layout.known_starters + game.deck[place], layout, row)
    else:
        kinds = 0
        for place in range(FACE_DOWN):
            kinds += ONE_OF_CARD[game.deck[place]] * knows  # NO_CARD, where nobody knows it yet
        write_kinds(kinds, layout.known_starters, layout, row)
        row[at(layout.shown)] = 0
        if rules.bottom_card_shown:
            write_kinds(0, layout.bottom_card, layout, row)
        if layout.exposed_in_hands != ABSENT:
            clear(row, layout.exposed_in_hands, layout.exposed_in_hands + rules.players)
    if not knows and rules.starter_jack == PILE:
        for k in range(game.num_shown_jacks):
            add_shown(game.shown_jacks[k], layout, row)
    for k in range(game.num_exposed):
        holder = game.exposed_holders[k]
        if holder != me:
            card = game.exposed[k]
            if rules.bottom_card_shown:
                row[layout.bottom_card + layout.action_of[at(card)]] = 1
            else:
                add_shown(card, layout, row)
            if holder != NOBODY:
                add(layout.exposed_in_hands + relative(holder, me, rules.players), layout, row)


@inlined
def add_shown(jack, layout, row):
    """Count a shown jack, by suit or in all."""
    add(layout.shown + (jack // NUM_RANKS if layout.faces else 0), layout, row)


@inlined
def jacks_seen(game, rules, me):
    """Return how many jacks a seat has seen: in hand, played, turned up, in known starters."""
    seen = count_of(JACK, game.played_kinds)
    for held in range(game.hand_sizes[at(me)]):
        seen += is_jack(game.hands[at(me), held])
    if game.knows_starters[at(me)]:
        for place in range(FACE_DOWN):
            seen += is_jack(game.deck[place])
    elif rules.starter_jack == PILE:
        seen += game.num_shown_jacks
    for k in range(game.num_exposed):
        if game.exposed_holders[k] != me:
            seen += is_jack(game.exposed[k])
    return seen


@inlined
def write_packet(game, rules, layout, me, row):
    """The table when the packet was dealt, and the plays since."""
    if layout.packet_pile == ABSENT:
        return
    down, pile_start = game.packet_starters_down, game.packet_pile_start
    first = (game.packet - 1) * rules.players * rules.hand_size
    if layout.faces:
        write_cards(game, down, pile_start, first, layout.packet_pile, layout, row)
    else:
        write_kinds(game.packet_kinds, layout.packet_pile, layout, row)
    row[at(layout.packet_top)] = layout.named[game.packet_top]
    if layout.faces:
        leader = relative(game.dealer + 1, me, rules.players)
        seat, turn = leader, 0
        for k in range(first, game.num_plays):
            place = layout.packet_plays + seat * rules.hand_size + turn
            row[at(place)] = layout.named[at(game.plays[at(k)])]
            seat = next_seat(seat, rules)
            turn += seat == leader
    else:
        # Eight numbers are more than a hand. The rest are zeros, over what is written later: the
        # next seat's plays, and after the last seat's what comes behind them in the row.
        seat, place = me, layout.packet_plays
        for _ in range(rules.players):
            before = MAX_HAND - rules.hand_size + game.hand_sizes[at(seat)]
            played = np.int64(game.last_kinds[at(seat)]) >> (KIND_BITS * before)
            write_eight(played, layout.scales[at(place)], row, place)
            seat, place = next_seat(seat, rules), place + rules.hand_size


@inlined
def write_sizes(game, rules, layout, me, row):
    """Sizes, who captured last, who dealt, the packet, the target."""
    if layout.pile_size != ABSENT:
        write(pile_size(game), layout.pile_size, layout, row)
    if layout.stock_size == ABSENT:
        return
    write(rules.deck_size - game.stock_start, layout.stock_size, layout, row)
    seat = me
    for ahead in range(rules.players):
        write(game.hand_sizes[at(seat)], layout.hand_sizes + ahead, layout, row)
        row[at(layout.last_capturer + ahead)] = seat == game.last_capturer
        row[at(layout.dealer + ahead)] = seat == game.dealer
        seat = next_seat(seat, rules)
    write(game.packet, layout.packet, layout, row)
    write(min(rules.target, layout.most), layout.target, layout, row)


@inlined
def write_sides(game, rules, layout, me, row):
    """What each side has, in this deal and in the match."""
    if layout.captured == ABSENT:
        return
    side = side_of(me, rules)
    most = min(rules.target + rules.max_deal_points, layout.most)
    for ahead in range(rules.sides):
        write(game.captured[at(side)], layout.captured + ahead, layout, row)
        points = min(game.public_points[at(side)], layout.most)
        write(points, layout.public_points + ahead, layout, row)
        write(game.pistis[at(side)], layout.pistis + ahead, layout, row)
        write(game.jack_pistis[at(side)], layout.jack_pistis + ahead, layout, row)
        match_points = min(game.match_points[at(side)], most)
        write(match_points, layout.match_scores + ahead, layout, row)
        side = side + 1 if side + 1 < rules.sides else 0


@inlined
def write_history(game, rules, layout, me, row):
    """What was turned up, in order, and every play of the deal."""
    clear(row, layout.starter, layout.numbers)
    row[at(layout.starter)] = layout.named[game.deck[STARTER]]
    if game.knows_starters[at(me)]:
        for place in range(FACE_DOWN):
            row[at(layout.starter_order + place)] = layout.named[game.deck[place]]
    for k in range(game.num_shown_jacks):
        row[at(layout.jack_order + k)] = layout.named[game.shown_jacks[k]]
    if rules.bottom_card_shown:
        row[at(layout.bottom_card_of_deal)] = layout.named[game.bottom_card]
    seat = relative(game.dealer + 1, me, rules.players)
    for k in range(game.num_plays):
        write(seat + 1, layout.history_seats + k, layout, row)
        seat = next_seat(seat, rules)
        row[at(layout.history_cards + k)] = layout.named[at(game.plays[at(k)])]


@inlined
def write_hidden(game, rules, layout, row):
    """What no seat knows: every hand, the face-down starters, the stock, true points."""
    for seat in range(rules.players):
        start = layout.hands + seat * layout.num_actions
        for held in range(game.hand_sizes[seat]):
            add(start + layout.action_of[at(game.hands[seat, held])], layout, row)
    for place in range(FACE_DOWN):
        add(layout.starters + layout.action_of[at(game.deck[place])], layout, row)
    for place in range(game.stock_start, rules.deck_size):
        row[at(layout.stock + place - NUM_STARTERS)] = layout.named[game.deck[place]]
    hidden = game.starters_taker != NOBODY and not game.scored
    for side in range(rules.sides):
        points = game.public_points[side]
        if hidden and side_of(game.starters_taker, rules) == side:
            for place in range(FACE_DOWN):
                points += rules.card_points[game.deck[place]]
        write(points, layout.points + side, layout, row)
    if game.to_play != NOBODY:
        row[layout.to_play + game.to_play] = 1
