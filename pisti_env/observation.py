"""What a seat knows, as numbers: an observation is an ordered list of named pieces.

`PIECES` declares them, `ENCODINGS` says which of them an encoding has, `describe` prints the
layout, and one compiled function per group of pieces writes them. Everything is relative to the
observer: seat 0 of a piece is the observer, seat 1 the next seat, and sides likewise.

Every card that a seat has seen is in exactly one of its pieces hand, played, known_starters, shown
and bottom_card. So the cards it has not seen are the deck less those.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pisti_env import game
from pisti_env.cards import JACK, KIND_OF_CARD, NO_CARD, NUM_CARDS, NUM_KINDS, NUM_RANKS
from pisti_env.compile import compiled
from pisti_env.game import FACE_DOWN, NOBODY, PILE, SEEN_BY, STARTER
from pisti_env.rules import NUM_STARTERS, Rules

SEEN_BY_CAPTURER, SEEN_BY_SIDE, SEEN_BY_ALL, _ = range(len(SEEN_BY))


class Piece(NamedTuple):
    """One named part of an observation."""

    name: str
    meaning: str
    scale: str
    size: Callable[[Rules, int], int]  # of the rules and of the number of classes, 52 or 15
    unit: Callable[[Rules, int], int]  # what a count is divided by


def _classes(rules: Rules, classes: int) -> int:
    return classes


def _equal_cards(rules: Rules, classes: int) -> int:
    return rules.num_packs * (rules.copies if classes == NUM_KINDS else 1)


def _one(rules: Rules, classes: int) -> int:
    return 1


def _players(rules: Rules, classes: int) -> int:
    return rules.players


def _sides(rules: Rules, classes: int) -> int:
    return rules.sides


def _deck(rules: Rules, classes: int) -> int:
    return rules.deck_size


def _points(rules: Rules, classes: int) -> int:
    return max(1, rules.max_deal_points)


def _pistis(rules: Rules, classes: int) -> int:
    return max(1, rules.num_plays // 2)


def _jacks(rules: Rules, classes: int) -> int:
    return rules.num_packs * rules.copies


def _match_points(rules: Rules, classes: int) -> int:
    return max(1, (rules.target or 0) + rules.max_deal_points)


def _counted(name: str, meaning: str) -> Piece:
    return Piece(name, meaning, "all equal cards", _classes, _equal_cards)


PIECES = (
    _counted("hand", "own hand"),
    Piece("top", "top card, one-hot", "1", _classes, _one),
    _counted("pile", "face-up part of the pile"),
    _counted("played", "cards put face up so far: the turned-up starter and every play"),
    _counted("known_starters", "the face-down starters, once the observer knows them"),
    Piece(
        "shown",
        "jacks turned up before the starter, unless in hand, played or known_starters; "
        "by suit (faces) or in all (kinds)",
        "all equal cards",
        lambda rules, classes: rules.copies if classes == NUM_CARDS else 1,
        _equal_cards,
    ),
    Piece(
        "bottom_card",
        "the shown bottom card while in the stock or in another hand, one-hot",
        "1",
        lambda rules, classes: classes if rules.bottom_card_shown else 0,
        _one,
    ),
    _counted("packet_pile", "face-up part of the pile when the packet was dealt"),
    Piece("packet_top", "top card then: class + 1, 0 for none", "classes", _one, _classes),
    Piece(
        "packet_plays",
        "plays of the packet, for each seat in its order: class + 1, 0 for none yet",
        "classes",
        lambda rules, classes: rules.packet_size,
        _classes,
    ),
    Piece("hand_sizes", "cards in each hand", "hand_size", _players, lambda r, c: r.hand_size),
    Piece(
        "exposed_in_hands",
        "cards of each other hand that everyone knows to be there",
        "hand_size",
        lambda r, c: r.players if r.bottom_card_shown or r.starter_jack != "pile" else 0,
        lambda r, c: r.hand_size,
    ),
    Piece("pile_size", "cards on the table, face-down ones included", "deck", _one, _deck),
    Piece("stock_size", "cards in the stock", "deck", _one, _deck),
    Piece("captured", "cards captured by each side", "deck", _sides, _deck),
    Piece("public_points", "public points of each side", "max_deal_points", _sides, _points),
    Piece("pistis", "pişti by equal rank, of each side", "plays // 2", _sides, _pistis),
    Piece("jack_pistis", "pişti of jack on jack, of each side", "plays // 2", _sides, _pistis),
    Piece("last_capturer", "who captured last, one-hot, all 0 for nobody", "1", _players, _one),
    Piece("dealer", "who dealt, one-hot", "1", _players, _one),
    Piece("packet", "number of the packet, from 1", "packets", _one, lambda r, c: r.num_packets),
    Piece(
        "match_scores",
        "match points of each side, clipped at 1",
        "target + max_deal_points",
        _sides,
        _match_points,
    ),
    Piece(
        "target", "target of the match, 0 for none", "itself + max_deal_points", _one, _match_points
    ),
    Piece("jacks_seen", "jacks that the observer has seen, anywhere", "jacks", _one, _jacks),
    Piece("starter", "the turned-up starter: class + 1", "classes", _one, _classes),
    Piece(
        "starter_order",
        "known_starters in deal order: class + 1",
        "classes",
        lambda r, c: 3,
        _classes,
    ),
    Piece(
        "jack_order", "jacks turned up before the starter: class + 1", "classes", _jacks, _classes
    ),
    Piece(
        "bottom_card_of_deal",
        "the shown bottom card, wherever it is: class + 1, 0 for none",
        "classes",
        lambda rules, classes: 1 if rules.bottom_card_shown else 0,
        _classes,
    ),
    Piece(
        "history_seats",
        "who made each play of the deal: relative seat + 1, 0 for not yet",
        "players",
        lambda rules, classes: rules.num_plays,
        _players,
    ),
    Piece(
        "history_cards",
        "what each play of the deal was: class + 1, 0 for not yet",
        "classes",
        lambda rules, classes: rules.num_plays,
        _classes,
    ),
    Piece(
        "hands",
        "every hand, seat after seat",
        "packs",
        lambda rules, classes: rules.players * classes,
        _equal_cards,
    ),
    _counted("starters", "the face-down starters"),
    Piece(
        "stock",
        "the stock in order: class + 1, 0 for cards that have been dealt",
        "classes",
        lambda rules, classes: rules.deck_size - NUM_STARTERS,
        _classes,
    ),
    Piece(
        "points",
        "points of each side, face-down starters included",
        "max_deal_points",
        _sides,
        _points,
    ),
    Piece("to_play", "whose turn it is, one-hot", "1", _players, _one),
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

# Of each encoding: the number of classes of cards, and its pieces in order.
ENCODINGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "basic": (NUM_CARDS, _BASIC),
    "full": (NUM_CARDS, _FULL),
    "kinds": (NUM_KINDS, _FULL),
    "history": (NUM_CARDS, _HISTORY),
    "kinds_history": (NUM_KINDS, _HISTORY),
}
# What `state()` has: all that is hidden too, seen from seat 0. Never an observation.
STATE = (NUM_CARDS, (*_STATE, "points", "to_play"))


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


def check_encoding(observation: str) -> str:
    """Return the name of an encoding; raise `ValueError` if there is none of that name."""
    if observation not in ENCODINGS:
        raise ValueError(f"observation is {observation!r}; expected one of {', '.join(ENCODINGS)}")
    return observation


class Encoder:
    """An encoding under some rules: its sizes, and the functions that fill arrays with it.

    Attributes: `size` numbers in an observation, `num_actions` 52 or 15, `classes` (52,) int64 the
    action of each card, `layout`.
    """

    def __init__(self, rules: Rules, num_classes: int, pieces: tuple[str, ...]):
        self._made_of = (rules, num_classes, pieces)
        self.num_actions = num_classes
        faces = np.arange(NUM_CARDS, dtype=np.int64)
        self.classes = faces if num_classes == NUM_CARDS else KIND_OF_CARD.astype(np.int64)
        self._table_rules = game.table_rules(rules)
        self._starts = np.full(len(PIECES), -1, np.int64)
        rows, scales, start = [], [], 0
        for number in (_NUMBER_OF[name] for name in pieces):
            piece = PIECES[number]
            size = piece.size(rules, num_classes)
            if size:
                self._starts[number] = start
                scales += [1 / piece.unit(rules, num_classes)] * size
                rows.append(
                    LayoutRow(piece.name, slice(start, start + size), piece.meaning, piece.scale)
                )
                start += size
        self.size = start
        self._scales = np.array(scales, np.float32)
        self.layout = Layout(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder, self._made_of

    def encode(self, games: np.ndarray, seats: np.ndarray, observations: np.ndarray) -> None:
        """Fill `observations` (n, size) float32 with what `seats` (n,) know at `games` (n,)."""
        encode_all(
            games,
            self._table_rules,
            self._starts,
            self._scales,
            self.classes,
            seats,
            observations,
        )

    def mask(self, games: np.ndarray, action_masks: np.ndarray) -> None:
        """Fill `action_masks` (n, num_actions) int8 with the plays of the seat whose turn it is."""
        mask_all(games, self.classes, action_masks)


@functools.lru_cache(maxsize=256)
def encoder(observation: str, rules: Rules) -> Encoder:
    """Return the encoder of an encoding's name."""
    return Encoder(rules, *ENCODINGS[check_encoding(observation)])


@functools.lru_cache(maxsize=256)
def state_encoder(rules: Rules) -> Encoder:
    """Return the encoder of the full state."""
    return Encoder(rules, *STATE)


def describe(observation: str, rules: Rules) -> Layout:
    """Return the layout of an encoding, row after row: name, slice, meaning, scale. It prints as a
    table. ``"state"`` describes the full state."""
    if observation == "state":
        return state_encoder(rules).layout
    return encoder(observation, rules).layout


@compiled
def mask_all(games, classes, masks):
    """Set `masks` (n, a) int8: 1 for the class of each card of the hand to play; 0 at the end."""
    masks[:] = 0
    for i in range(len(games)):
        game = games[i]
        if game.to_play != NOBODY:
            for held in range(game.hand_sizes[game.to_play]):
                masks[i, classes[game.hands[game.to_play, held]]] = 1


@compiled
def encode_all(games, table, starts, scales, classes, seats, rows):
    """Write the pieces that have a start into each table's row, as counts, and scale them."""
    rules = table[0]
    faces = classes[NUM_CARDS - 1] == NUM_CARDS - 1
    num_classes = NUM_CARDS if faces else NUM_KINDS
    for i in range(len(games)):
        game, me, row = games[i], seats[i], rows[i]
        row[:] = 0
        write_hand(game, starts, classes, me, row)
        write_table(game, starts, classes, row)
        write_seen(game, rules, starts, classes, faces, me, row)
        write_packet(game, rules, starts, classes, me, row)
        write_counts(game, rules, starts, me, row)
        if starts[JACKS_SEEN] >= 0:
            row[starts[JACKS_SEEN]] = jacks_seen(game, rules, me)
        if starts[HISTORY_SEATS] >= 0:
            write_history(game, rules, starts, classes, me, row)
        if starts[STOCK] >= 0:
            write_hidden(game, rules, starts, classes, num_classes, row)
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
def write_hand(game, starts, classes, me, row):
    """Hand."""
    if starts[HAND] >= 0:
        for held in range(game.hand_sizes[me]):
            row[starts[HAND] + classes[game.hands[me, held]]] += 1


@compiled
def write_table(game, starts, classes, row):
    """Top, pile and played."""
    if starts[TOP] >= 0:
        if game.num_plays > game.pile_start:
            row[starts[TOP] + classes[game.plays[game.num_plays - 1]]] = 1
        elif game.starters_down:
            row[starts[TOP] + classes[game.deck[STARTER]]] = 1
    if starts[PILE_CARDS] >= 0:
        if game.starters_down:
            row[starts[PILE_CARDS] + classes[game.deck[STARTER]]] += 1
        for k in range(game.pile_start, game.num_plays):
            row[starts[PILE_CARDS] + classes[game.plays[k]]] += 1
    if starts[PLAYED] >= 0:
        row[starts[PLAYED] + classes[game.deck[STARTER]]] += 1
        for k in range(game.num_plays):
            row[starts[PLAYED] + classes[game.plays[k]]] += 1


@compiled
def knows_starters(game, rules, seat):
    """Return whether a seat knows the face-down starters (NOBODY: whether everyone does)."""
    if game.scored:
        return True
    if game.starters_taker == NOBODY:
        return False
    if rules.starters_seen_by == SEEN_BY_CAPTURER:
        return seat == game.starters_taker
    if rules.starters_seen_by == SEEN_BY_SIDE:
        return seat != NOBODY and seat % rules.sides == game.starters_taker % rules.sides
    return rules.starters_seen_by == SEEN_BY_ALL


@compiled
def find_knowing(games, table, seats, known):
    """Set `known` (n,) bool: whether `seats` (n,) know their tables' face-down starters."""
    for i in range(len(games)):
        known[i] = knows_starters(games[i], table[0], seats[i])


@compiled
def write_seen(game, rules, starts, classes, faces, me, row):
    """Known starters, shown jacks and the bottom card, but for those in hand or played."""
    if starts[KNOWN_STARTERS] < 0:
        return
    if knows_starters(game, rules, me):
        for place in range(FACE_DOWN):
            row[starts[KNOWN_STARTERS] + classes[game.deck[place]]] += 1
    elif rules.starter_jack == PILE:
        for k in range(game.num_shown_jacks):
            row[starts[SHOWN] + (game.shown_jacks[k] // NUM_RANKS if faces else 0)] += 1
    for known in range(game.num_exposed):
        holder = game.exposed_holders[known]
        if holder != me:
            card = game.exposed[known]
            if rules.bottom_card_shown:
                row[starts[BOTTOM_CARD] + classes[card]] = 1
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
    if knows_starters(game, rules, me):
        for place in range(FACE_DOWN):
            seen += game.deck[place] % NUM_RANKS == JACK
    elif rules.starter_jack == PILE:
        seen += game.num_shown_jacks
    for known in range(game.num_exposed):
        if game.exposed_holders[known] != me:
            seen += game.exposed[known] % NUM_RANKS == JACK
    return seen


@compiled
def write_packet(game, rules, starts, classes, me, row):
    """The table when the packet was dealt, and the plays since."""
    if starts[PACKET_PILE] < 0:
        return
    first = (game.packet - 1) * rules.players * rules.hand_size
    top = NO_CARD
    if game.packet_starters_down:
        top = classes[game.deck[STARTER]]
        row[starts[PACKET_PILE] + top] += 1
    for k in range(game.packet_pile_start, first):
        top = classes[game.plays[k]]
        row[starts[PACKET_PILE] + top] += 1
    row[starts[PACKET_TOP]] = top + 1
    leader = relative(game.dealer + 1, me, rules.players)
    seat, turn = leader, 0
    for k in range(first, game.num_plays):
        place = seat * rules.hand_size + turn
        row[starts[PACKET_PLAYS] + place] = classes[game.plays[k]] + 1
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
def write_history(game, rules, starts, classes, me, row):
    """What was turned up, in order, and every play of the deal."""
    row[starts[STARTER_CARD]] = classes[game.deck[STARTER]] + 1
    if knows_starters(game, rules, me):
        for place in range(FACE_DOWN):
            row[starts[STARTER_ORDER] + place] = classes[game.deck[place]] + 1
    for k in range(game.num_shown_jacks):
        row[starts[JACK_ORDER] + k] = classes[game.shown_jacks[k]] + 1
    if rules.bottom_card_shown and game.bottom_card != NO_CARD:
        row[starts[BOTTOM_CARD_OF_DEAL]] = classes[game.bottom_card] + 1
    seat = relative(game.dealer + 1, me, rules.players)
    for k in range(game.num_plays):
        row[starts[HISTORY_SEATS] + k] = seat + 1
        seat = seat + 1 if seat + 1 < rules.players else 0
        row[starts[HISTORY_CARDS] + k] = classes[game.plays[k]] + 1


@compiled
def write_hidden(game, rules, starts, classes, num_classes, row):
    """What no seat knows: every hand, the face-down starters, the stock, true points."""
    for seat in range(rules.players):
        for held in range(game.hand_sizes[seat]):
            row[starts[HANDS] + seat * num_classes + classes[game.hands[seat, held]]] += 1
    for place in range(FACE_DOWN):
        row[starts[STARTERS] + classes[game.deck[place]]] += 1
    for place in range(game.stock_start, rules.deck_size):
        row[starts[STOCK] + place - NUM_STARTERS] = classes[game.deck[place]] + 1
    for side in range(rules.sides):
        row[starts[POINTS] + side] = game.public_points[side]
    if game.starters_taker != NOBODY and not game.scored:
        side = game.starters_taker % rules.sides
        for place in range(FACE_DOWN):
            row[starts[POINTS] + side] += rules.card_points[game.deck[place]]
    if game.to_play != NOBODY:
        row[starts[TO_PLAY] + game.to_play] = 1
