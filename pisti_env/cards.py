"""Cards as ints and as text.

A card is ``suit * 13 + rank`` with suits ``C D H S`` = 0-3 and ranks ``A 2 … 9 T J Q K`` = 0-12;
its text is rank then suit: ``"TD"`` is 22. A *kind* is one of the 15 classes of cards that are
interchangeable in play: the thirteen ranks (0-12), the two of clubs (13), the ten of diamonds (14).
"""

from collections.abc import Iterable

import numpy as np

from pisti_env.quote import quote

RANKS = "A23456789TJQK"
SUITS = "CDHS"
NUM_RANKS = 13
NUM_CARDS = 52
NUM_KINDS = 15

ACE = 0
JACK = 10
TWO_OF_CLUBS = 1
TEN_OF_DIAMONDS = 22
TWO_OF_CLUBS_KIND = 13
TEN_OF_DIAMONDS_KIND = 14

NO_CARD = -1

RANK_OF_CARD = np.arange(NUM_CARDS, dtype=np.int8) % NUM_RANKS
RANK_OF_CARD.setflags(write=False)
KIND_OF_CARD = np.arange(NUM_CARDS) % NUM_RANKS
KIND_OF_CARD[TWO_OF_CLUBS] = TWO_OF_CLUBS_KIND
KIND_OF_CARD[TEN_OF_DIAMONDS] = TEN_OF_DIAMONDS_KIND
KIND_OF_CARD.setflags(write=False)

CARD_NAMES = tuple(RANKS[card % NUM_RANKS] + SUITS[card // NUM_RANKS] for card in range(NUM_CARDS))
KIND_NAMES = (*RANKS, "2C", "TD")

_CARD_OF_NAME = {name: card for card, name in enumerate(CARD_NAMES)}


def card_name(card: int) -> str:
    """Return the text of a card, ``"TD"`` for 22."""
    if not 0 <= card < NUM_CARDS:
        raise ValueError(f"card is {quote(card)}; expected an int from 0 to {NUM_CARDS - 1}")
    return CARD_NAMES[card]


def card_names(cards: Iterable[int]) -> str:
    """Return several cards as text, separated by blanks."""
    return " ".join(card_name(card) for card in cards)


def parse_card(card: int | str) -> int:
    """Return a card's id from its id or its text (``"TD"``, case does not matter)."""
    if isinstance(card, str):
        if card.upper() in _CARD_OF_NAME:
            return _CARD_OF_NAME[card.upper()]
    elif isinstance(card, (int, np.integer)) and not isinstance(card, bool):
        if 0 <= card < NUM_CARDS:
            return int(card)
    raise ValueError(
        f"card is {quote(card)}; expected an int from 0 to {NUM_CARDS - 1} or a rank of {RANKS} "
        f'and a suit of {SUITS}, such as "TD"'
    )


def pack_cards(ranks: int, copies: int) -> tuple[int, ...]:
    """Return the cards of one pack, sorted: the jack and the first ``ranks - 1`` other ranks, each
    in the first ``copies`` of the suits C D H S."""
    others = [rank for rank in range(NUM_RANKS) if rank != JACK]
    kept = {JACK, *others[: ranks - 1]}
    return tuple(card for card in range(copies * NUM_RANKS) if card % NUM_RANKS in kept)
