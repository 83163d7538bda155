"""What a seat knows, as numbers: an observation is an ordered list of named pieces.

`PIECES` declares them, `ENCODINGS` says which of them an encoding has, `describe` where they are,
and one compiled function per group of pieces writes them, as counts that are scaled at the end.
Everything is relative to the observer: seat 0 of a piece is the observer, seat 1 the next seat, and
sides likewise.

Every card that a seat has seen is in exactly one of its pieces hand, played, known_starters, shown
and bottom_card. So the cards it has not seen are the deck less those.

What `game.py` has too (the top card, the pile's size) is here again in small: a compiled function
calls only functions of its own file, see `compile.py`.
"""

import functools
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
from pisti_env.compile import compiled
from pisti_env.game import FACE_DOWN, NOBODY, PILE, STARTER
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

HAND = _NUMBER_OF["hand"]
TOP = _NUMBER_OF["top"]
PILE_CARDS = _NUMBER_OF["pile"]
PLAYED = _NUMBER_OF["played"]
KNOWN_STARTERS = _NUMBER_OF["known_starters"]
SHOWN = _NUMBER_OF["shown"]
BOTTOM_CARD = _NUMBER_OF["bottom_card"]
PACKET_PILE = _NUMBER_OF["packet_pile"]
PACKET_TOP = _NUMBER_OF["packet_top"]
PACKET_PLAYS = _NUMBER_OF["packet_plays"]
HAND_SIZES = _NUMBER_OF["hand_sizes"]
EXPOSED_IN_HANDS = _NUMBER_OF["exposed_in_hands"]
PILE_SIZE = _NUMBER_OF["pile_size"]
STOCK_SIZE = _NUMBER_OF["stock_size"]
CAPTURED = _NUMBER_OF["captured"]
PUBLIC_POINTS = _NUMBER_OF["public_points"]
PISTIS = _NUMBER_OF["pistis"]
JACK_PISTIS = _NUMBER_OF["jack_pistis"]
LAST_CAPTURER = _NUMBER_OF["last_capturer"]
DEALER = _NUMBER_OF["dealer"]
PACKET = _NUMBER_OF["packet"]
MATCH_SCORES = _NUMBER_OF["match_scores"]
TARGET = _NUMBER_OF["target"]
JACKS_SEEN = _NUMBER_OF["jacks_seen"]
STARTER_CARD = _NUMBER_OF["starter"]
STARTER_ORDER = _NUMBER_OF["starter_order"]
JACK_ORDER = _NUMBER_OF["jack_order"]
BOTTOM_CARD_OF_DEAL = _NUMBER_OF["bottom_card_of_deal"]
HISTORY_SEATS = _NUMBER_OF["history_seats"]
HISTORY_CARDS = _NUMBER_OF["history_cards"]
HANDS = _NUMBER_OF["hands"]
STARTERS = _NUMBER_OF["starters"]
STOCK = _NUMBER_OF["stock"]
POINTS = _NUMBER_OF["points"]
TO_PLAY = _NUMBER_OF["to_play"]

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

    Attributes: `size` numbers in an observation; `layout`; `num_actions`, 52 or 15, and their
    `action_names`; `action_of_card` (52,) int64.
    """

    def __init__(self, rules: Rules, num_actions: int, pieces: tuple[str, ...]):
        for group in GROUPS:
            if 0 < len(set(group) & set(pieces)) < len(group):
                raise ValueError(f"an encoding has all of {', '.join(group)}, or none of them")
        self._made_of = (rules, num_actions, pieces)
        self.num_actions = num_actions
        self.action_names = CARD_NAMES if num_actions == NUM_CARDS else KIND_NAMES
        faces = np.arange(NUM_CARDS, dtype=np.int64)
        self.action_of_card = faces if num_actions == NUM_CARDS else KIND_OF_CARD.astype(np.int64)
        self._table_rules = game.table_rules(rules)
        self._starts = np.full(len(PIECES), -1, np.int64)
        rows: list[LayoutRow] = []
        divisors: list[int] = []
        for name in pieces:
            piece = PIECES[_NUMBER_OF[name]]
            size = piece.size(rules, num_actions)
            if size:
                start, scale = len(divisors), piece.scale
                if num_actions == NUM_KINDS and piece.scale_of_kinds is not None:
                    scale = piece.scale_of_kinds
                self._starts[_NUMBER_OF[name]] = start
                rows.append(LayoutRow(name, slice(start, start + size), piece.meaning, scale.text))
                divisors += [scale.unit(rules)] * size
        self.size = len(divisors)
        self.layout = Layout(rows)
        self._scales = (1 / np.array(divisors)).astype(np.float32)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder, self._made_of

    def encode(self, games: np.ndarray, seats: np.ndarray, observations: np.ndarray) -> None:
        """Fill `observations` (n, size) float32 with what `seats` (n,) know at `games` (n,)."""
        encode_all(
            games,
            self._table_rules,
            self._starts,
            self._scales,
            self.action_of_card,
            seats,
            observations,
        )

    def mask(self, games: np.ndarray, action_masks: np.ndarray) -> None:
        """Fill `action_masks` (n, num_actions) int8 with the plays of the seat whose turn it is."""
        mask_all(games, self.action_of_card, action_masks)


def check_encoding(observation: str) -> str:
    """Return the name of an encoding; raise `ValueError` if there is none of that name."""
    if not isinstance(observation, str) or observation not in ENCODINGS:
        raise ValueError(f"observation is {observation!r}; expected one of {', '.join(ENCODINGS)}")
    return observation


def encoder(observation: str, rules: Rules) -> Encoder:
    """Return the encoder of an encoding's name."""
    return _encoder(check_encoding(observation), rules)


@functools.lru_cache(maxsize=256)
def _encoder(observation: str, rules: Rules) -> Encoder:
    return Encoder(rules, *ENCODINGS[observation])


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


@compiled
def mask_all(games, action_of, masks):
    """Set `masks` (n, a) int8: 1 for each card of the hand to play; all 0 at the end."""
    masks[:] = 0
    for i in range(len(games)):
        game = games[i]
        if game.to_play != NOBODY:
            for held in range(game.hand_sizes[game.to_play]):
                masks[i, action_of[game.hands[game.to_play, held]]] = 1


@compiled
def encode_all(games, table, starts, scales, action_of, seats, rows):
    """Write the pieces that have a start into each table's row, as counts, and scale them."""
    rules = table[0]
    faces = action_of[NUM_CARDS - 1] == NUM_CARDS - 1
    num_actions = NUM_CARDS if faces else NUM_KINDS
    for i in range(len(games)):
        game, me, row = games[i], seats[i], rows[i]
        row[:] = 0
        write_hand(game, starts, action_of, me, row)
        write_table(game, starts, action_of, row)
        write_seen(game, rules, starts, action_of, faces, me, row)
        write_packet(game, rules, starts, action_of, me, row)
        write_counts(game, rules, starts, me, row)
        if starts[JACKS_SEEN] >= 0:
            row[starts[JACKS_SEEN]] = jacks_seen(game, rules, me)
        if starts[HISTORY_SEATS] >= 0:
            write_history(game, rules, starts, action_of, me, row)
        if starts[STOCK] >= 0:
            write_hidden(game, rules, starts, action_of, num_actions, row)
        for k in range(len(row)):
            row[k] *= scales[k]


@compiled
def relative(seat, me, players):
    """Return how many seats after `me` a seat is, 0 to players - 1; `seat` may be `players`.

    Far quicker than a remainder, which is most of the cost of a row otherwise.
    """
    ahead = seat - me
    if ahead < 0:
        return ahead + players
    return ahead if ahead < players else ahead - players


@compiled
def write_hand(game, starts, action_of, me, row):
    """Hand."""
    if starts[HAND] >= 0:
        for held in range(game.hand_sizes[me]):
            row[starts[HAND] + action_of[game.hands[me, held]]] += 1


@compiled
def write_table(game, starts, action_of, row):
    """Top, pile and played."""
    if starts[TOP] >= 0:
        if game.num_plays > game.pile_start:
            row[starts[TOP] + action_of[game.plays[game.num_plays - 1]]] = 1
        elif game.starters_down:
            row[starts[TOP] + action_of[game.deck[STARTER]]] = 1
    if starts[PILE_CARDS] >= 0:
        if game.starters_down:
            row[starts[PILE_CARDS] + action_of[game.deck[STARTER]]] += 1
        for k in range(game.pile_start, game.num_plays):
            row[starts[PILE_CARDS] + action_of[game.plays[k]]] += 1
    if starts[PLAYED] >= 0:
        row[starts[PLAYED] + action_of[game.deck[STARTER]]] += 1
        for k in range(game.num_plays):
            row[starts[PLAYED] + action_of[game.plays[k]]] += 1


@compiled
def write_seen(game, rules, starts, action_of, faces, me, row):
    """Known starters, shown jacks and the bottom card, but for those in hand or played."""
    if starts[KNOWN_STARTERS] < 0:
        return
    if game.knows_starters[me]:
        for place in range(FACE_DOWN):
            row[starts[KNOWN_STARTERS] + action_of[game.deck[place]]] += 1
    elif rules.starter_jack == PILE:
        for k in range(game.num_shown_jacks):
            row[starts[SHOWN] + (game.shown_jacks[k] // NUM_RANKS if faces else 0)] += 1
    for k in range(game.num_exposed):
        holder = game.exposed_holders[k]
        if holder != me:
            card = game.exposed[k]
            if rules.bottom_card_shown:
                row[starts[BOTTOM_CARD] + action_of[card]] = 1
            else:
                row[starts[SHOWN] + (card // NUM_RANKS if faces else 0)] += 1
            if holder != NOBODY:
                row[starts[EXPOSED_IN_HANDS] + relative(holder, me, rules.players)] += 1


@compiled
def jacks_seen(game, rules, me):
    """Return how many jacks a seat has seen: in hand, played, turned up, in known starters."""
    seen = 0
    for held in range(game.hand_sizes[me]):
        seen += game.hands[me, held] % NUM_RANKS == JACK
    for k in range(game.num_plays):
        seen += game.plays[k] % NUM_RANKS == JACK
    if game.knows_starters[me]:
        for place in range(FACE_DOWN):
            seen += game.deck[place] % NUM_RANKS == JACK
    elif rules.starter_jack == PILE:
        seen += game.num_shown_jacks
    for k in range(game.num_exposed):
        if game.exposed_holders[k] != me:
            seen += game.exposed[k] % NUM_RANKS == JACK
    return seen


@compiled
def write_packet(game, rules, starts, action_of, me, row):
    """The table when the packet was dealt, and the plays since."""
    if starts[PACKET_PILE] < 0:
        return
    first = (game.packet - 1) * rules.players * rules.hand_size
    top = NO_CARD
    if game.packet_starters_down:
        top = action_of[game.deck[STARTER]]
        row[starts[PACKET_PILE] + top] += 1
    for k in range(game.packet_pile_start, first):
        top = action_of[game.plays[k]]
        row[starts[PACKET_PILE] + top] += 1
    row[starts[PACKET_TOP]] = top + 1
    leader = relative(game.dealer + 1, me, rules.players)
    seat, turn = leader, 0
    for k in range(first, game.num_plays):
        place = seat * rules.hand_size + turn
        row[starts[PACKET_PLAYS] + place] = action_of[game.plays[k]] + 1
        seat = seat + 1 if seat + 1 < rules.players else 0
        turn += seat == leader


@compiled
def write_counts(game, rules, starts, me, row):
    """Sizes, points, who captured last, who dealt, the match."""
    if starts[PILE_SIZE] >= 0:
        size = game.num_plays - game.pile_start + NUM_STARTERS * game.starters_down
        row[starts[PILE_SIZE]] = size
    if starts[STOCK_SIZE] < 0:
        return
    row[starts[STOCK_SIZE]] = rules.deck_size - game.stock_start
    for seat in range(rules.players):
        row[starts[HAND_SIZES] + relative(seat, me, rules.players)] = game.hand_sizes[seat]
    own_side = me % rules.sides
    most = rules.target + rules.max_deal_points
    for side in range(rules.sides):
        place = relative(side, own_side, rules.sides)
        row[starts[CAPTURED] + place] = game.captured[side]
        row[starts[PUBLIC_POINTS] + place] = game.public_points[side]
        row[starts[PISTIS] + place] = game.pistis[side]
        row[starts[JACK_PISTIS] + place] = game.jack_pistis[side]
        row[starts[MATCH_SCORES] + place] = min(game.match_points[side], most)
    if game.last_capturer != NOBODY:
        row[starts[LAST_CAPTURER] + relative(game.last_capturer, me, rules.players)] = 1
    row[starts[DEALER] + relative(game.dealer, me, rules.players)] = 1
    row[starts[PACKET]] = game.packet
    row[starts[TARGET]] = rules.target


@compiled
def write_history(game, rules, starts, action_of, me, row):
    """What was turned up, in order, and every play of the deal."""
    row[starts[STARTER_CARD]] = action_of[game.deck[STARTER]] + 1
    if game.knows_starters[me]:
        for place in range(FACE_DOWN):
            row[starts[STARTER_ORDER] + place] = action_of[game.deck[place]] + 1
    for k in range(game.num_shown_jacks):
        row[starts[JACK_ORDER] + k] = action_of[game.shown_jacks[k]] + 1
    if rules.bottom_card_shown and game.bottom_card != NO_CARD:
        row[starts[BOTTOM_CARD_OF_DEAL]] = action_of[game.bottom_card] + 1
    seat = relative(game.dealer + 1, me, rules.players)
    for k in range(game.num_plays):
        row[starts[HISTORY_SEATS] + k] = seat + 1
        seat = seat + 1 if seat + 1 < rules.players else 0
        row[starts[HISTORY_CARDS] + k] = action_of[game.plays[k]] + 1


@compiled
def write_hidden(game, rules, starts, action_of, num_actions, row):
    """What no seat knows: every hand, the face-down starters, the stock, true points."""
    for seat in range(rules.players):
        for held in range(game.hand_sizes[seat]):
            row[starts[HANDS] + seat * num_actions + action_of[game.hands[seat, held]]] += 1
    for place in range(FACE_DOWN):
        row[starts[STARTERS] + action_of[game.deck[place]]] += 1
    for place in range(game.stock_start, rules.deck_size):
        row[starts[STOCK] + place - NUM_STARTERS] = action_of[game.deck[place]] + 1
    for side in range(rules.sides):
        row[starts[POINTS] + side] = game.public_points[side]
    if game.starters_taker != NOBODY and not game.scored:
        side = game.starters_taker % rules.sides
        for place in range(FACE_DOWN):
            row[starts[POINTS] + side] += rules.card_points[game.deck[place]]
    if game.to_play != NOBODY:
        row[starts[TO_PLAY] + game.to_play] = 1
