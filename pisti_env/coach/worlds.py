"""Worlds: tables at which a seat would know what it knows now, and nothing else.

Every deal that fits what the seat has seen is equally likely: nothing is concluded from why
somebody played a card. Late in a deal there are few of them, and all are listed; else they are
drawn.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pisti_env.cards import NO_CARD
from pisti_env.game import FACE_DOWN
from pisti_env.knowledge import (
    Known,
    View,
    before_turning_up,
    deal_unknown,
    exposed_places,
    fill_in,
    known_of_view,
    lay_out,
)
from pisti_env.rules import NUM_STARTERS
from pisti_env.tables import Tables


class Group(NamedTuple):
    """Places of the deck whose cards count together, in whatever order they lie: a hand, the
    face-down starters, or what is never dealt."""

    holes: tuple[int, ...]
    """Places of cards that the viewer does not know."""
    others: tuple[int, ...]
    """Cards that it knows of the group, but not how they lie among those."""


def random_worlds(view: View, number: int, seed: int) -> np.ndarray:
    """Return records of tables (number,), each equally likely given what the viewer knows."""
    games = np.repeat(fill_in(known_of_view(view)).games, number)
    deal_unknown(games, view.rules, view.viewer, seed)
    return games


def all_worlds(view: View, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return all worlds there are, records (n,), and how likely each is, (n,) float64; None if
    there are more than `most`, or if cards are still to be dealt. Where a bottom card was shown,
    below which jacks may have lain (see `keep_by_chance`), only a single world is listed.

    Worlds differ in who holds which cards. A world's weight is the number of orders of the deck
    that lead to it, since each order is equally likely.
    """
    rules, known = view.rules, known_of_view(view)
    if view.packet < rules.num_packets:
        return None
    deck = lay_out(known)
    groups = find_groups(known, deck)
    unknown = Counter(rules.deck_cards())
    unknown.subtract(card for card in deck if card != NO_CARD)
    ways = list(itertools.islice(ways_to_fill(groups, unknown), most + 1))
    if len(ways) > most or (len(ways) > 1 and view.bottom_card is not None):
        return None
    decks = np.tile(np.array(deck, np.int8), (len(ways), 1))
    holes = [hole for group in groups for hole in group.holes]
    for row, (cards, _) in enumerate(ways):
        decks[row, holes] = cards
    weights = np.array([weight for _, weight in ways], np.float64)
    return deal_worlds(known, decks), weights / weights.sum()


def find_groups(known: Known, deck: Sequence[int]) -> list[Group]:
    """Return the groups with holes of a deck as `lay_out` gives it, in the last packet."""
    rules, fixed = known.rules, exposed_places(known)
    end = NUM_STARTERS + rules.num_plays
    hands = [range(p, p + rules.hand_size) for p in range(NUM_STARTERS, end, rules.hand_size)]
    groups = []
    for places in (range(FACE_DOWN), *hands, range(end, rules.deck_size)):
        holes = tuple(place for place in places if deck[place] == NO_CARD)
        others = tuple(
            deck[place] for place in places if deck[place] != NO_CARD and place not in fixed
        )
        if holes:  # outside of hands, it is known where known cards lie
            groups.append(Group(holes, others if places in hands else ()))
    return groups


def ways_to_fill(
    groups: Sequence[Group], unknown: Counter[int]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the cards of all holes, group by group, for every way to deal the `unknown` cards out
    to groups; and in how many orders the cards of the groups can have lain then."""
    if not groups:
        yield (), 1
        return
    first, *rest = groups
    for cards in choices(unknown, len(first.holes)):
        left = unknown - Counter(cards)
        orders = num_orders((*cards, *first.others))
        for others, weight in ways_to_fill(rest, left):
            yield (*cards, *others), orders * weight


def choices(cards: Counter[int], number: int) -> Iterator[tuple[int, ...]]:
    """Yield every choice of so many of these cards, sorted, each once."""
    faces = sorted(card for card in cards if cards[card] > 0)

    def choose(start: int, number: int) -> Iterator[tuple[int, ...]]:
        if number == 0:
            yield ()
        for place in range(start, len(faces)):
            most = min(number, cards[faces[place]])
            for times in range(most, 0, -1):
                for rest in choose(place + 1, number - times):
                    yield (faces[place],) * times + rest

    yield from choose(0, number)


def num_orders(cards: Sequence[int]) -> int:
    """Return in how many orders these cards can lie, equal ones not told apart."""
    orders = math.factorial(len(cards))
    for times in Counter(cards).values():
        orders //= math.factorial(times)
    return orders


def deal_worlds(known: Known, decks: np.ndarray) -> np.ndarray:
    """Return the records (n,) of tables at which `decks` (n, deck_size), as `lay_out` gives them,
    were dealt, and what was played was played."""
    rules, number = known.rules, len(decks)
    tables = Tables(rules, number)
    jacks = list(known.jacks)
    dealt = [before_turning_up(rules, deck, jacks) for deck in decks.tolist()]
    scores = np.array(known.scores, np.int64)
    tables.start(tables.all_rows, np.array(dealt, np.int8), np.full(number, known.dealer), scores)
    for card in known.plays:
        tables.cards[:] = card
        tables.play()
    return tables.games
