"""What an observation is made of: an ordered list of named pieces.

`PIECES` declares them, and `ENCODINGS` says which of them an encoding has.
Everything is relative to the observer: seat 0 of a piece is the observer, seat 1 the next seat, and
sides likewise.

Every card that a seat has seen is in exactly one of its pieces hand, played, known_starters, shown
and bottom_card. So the cards it has not seen are the deck less those.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pisti_env.cards import NUM_CARDS, NUM_KINDS
from pisti_env.game import FACE_DOWN
from pisti_env.plain import printable
from pisti_env.quote import quote
from pisti_env.rules import NUM_STARTERS, Rules


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

# An encoding for the compiled functions: where each piece begins, ABSENT if it is not in it, by the
# piece's name; and what belongs to cards and to numbers.
ABSENT = -1
LAYOUT = np.dtype(
    (
        np.record,
        [
            *((piece.name, np.int64) for piece in PIECES),
            ("numbers", np.int64),  # of an observation; `size` is an attribute of any record
            ("faces", np.int64),  # 1 with 52 actions, 0 with 15
            ("num_actions", np.int64),
            ("action_of", np.int64, (NUM_CARDS,)),
            ("named", np.float32, (NUM_CARDS + 1,)),  # the number that names a card, or NO_CARD
            # Two counts of kinds as numbers, by the byte that has both; see `counts.py`.
            ("of_byte", np.float32, (256, 2)),
            ("scales", np.float32, (MAX_NUMBERS,)),
        ],
    )
)

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
    ("known_starters", "shown", "bottom_card", "exposed_in_hands"),
    ("packet_pile", "packet_top", "packet_plays"),
    ("hand_sizes", *(name for name in _PUBLIC_COUNTS if name != "pile_size")),
    (
        *("starter", "starter_order", "jack_order", "bottom_card_of_deal"),
        *("history_seats", "history_cards"),
    ),
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
        return printable("\n".join(lines))


def check_encoding(observation: str) -> str:
    """Return the name of an encoding; raise `ValueError` if there is none of that name."""
    if not isinstance(observation, str) or observation not in ENCODINGS:
        raise ValueError(
            f"observation is {quote(observation)}; expected one of {', '.join(ENCODINGS)}"
        )
    return observation
