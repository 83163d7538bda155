"""From what a seat observes to tables: one that it cannot tell from its own, and worlds, many of
those, dealt at random.

All of it follows from observations of the encoding "history", so nothing hidden can reach a search.
"""

from typing import NamedTuple

import numpy as np

from pisti_env.cards import NO_CARD, NUM_CARDS
from pisti_env.game import NOBODY
from pisti_env.knowledge import (
    before_turning_up,
    deal_unknown,
    fill_in_deck,
    known_of_history,
    lay_out,
)
from pisti_env.rules import Rules
from pisti_env.tables import Tables

_FACES = np.arange(NUM_CARDS)


class Moments(NamedTuple):
    """Moments of deals, at which seat 0 observes."""

    games: np.ndarray
    """Records of tables (n,)."""
    begun: np.ndarray
    """The same tables when the packet was dealt, records (n,)."""


def moments_of(observations: np.ndarray, rules: Rules) -> Moments:
    """Return tables at which seat 0 observes `observations` (n, d) of the encoding "history"; cards
    that it does not know are filled in from the lowest. Raises `ValueError` for an observation
    that no seat can have."""
    try:
        return _deal_and_play(observations, rules)
    except (ValueError, IndexError, StopIteration) as error:
        raise ValueError(
            "observation is none that a seat can have under these rules; expected what the "
            'encoding "history" shows it'
        ) from error


def _deal_and_play(observations: np.ndarray, rules: Rules) -> Moments:
    number = len(observations)
    plays = np.full((number, rules.num_plays), NO_CARD, np.int64)
    decks = np.empty((number, rules.deck_size), np.int8)
    dealers = np.empty(number, np.int64)
    scores = np.empty((number, rules.sides), np.int64)
    for row, observation in enumerate(observations):
        known = known_of_history(observation, rules)
        deck = fill_in_deck(rules, lay_out(known))
        decks[row] = before_turning_up(rules, deck, list(known.jacks))
        if sorted(decks[row].tolist()) != sorted(rules.deck_cards()):
            raise ValueError("it has other cards than the deck")
        plays[row, : len(known.plays)] = known.plays
        dealers[row], scores[row] = known.dealer, known.scores
    tables = Tables(rules, number)
    tables.start(tables.all_rows, decks, dealers, scores)
    if (tables.games["packet"] == 0).any():
        raise ValueError("no starter could be turned up")
    counts = (plays != NO_CARD).sum(axis=1)
    begins = counts // rules.packet_size * rules.packet_size
    begun = tables.games.copy()
    for play in range(counts.max(initial=0)):
        begun[begins == play] = tables.games[begins == play]
        rows = np.flatnonzero(counts > play)
        if tables.find_cards(plays[rows, play], _FACES, rows) >= 0:
            raise ValueError("a card was played that was in no hand")
        tables.play(rows)
    now = begins == counts
    begun[now] = tables.games[now]
    return Moments(tables.games, begun)


def random_worlds(games: np.ndarray, rules: Rules, number: int, seeds: np.ndarray) -> np.ndarray:
    """Return records (n * number,): each of `games` (n,) so many times, with what seat 0 does not
    know there dealt at random from the table's own of `seeds` (n,) uint64."""
    worlds = np.repeat(games, number)
    for table, seed in enumerate(seeds):
        deal_unknown(worlds[table * number : (table + 1) * number], rules, 0, int(seed))
    return worlds


def when_dealt(begun: np.ndarray, worlds: np.ndarray, rules: Rules) -> np.ndarray:
    """Return the `worlds` (n,) as they were when the packet was dealt, new records. `begun` (n,)
    are tables at that moment which differ from these only in what seat 0 does not know."""
    start = begun.copy()
    start["deck"] = worlds["deck"]
    first = begun["stock_start"].astype(np.int64) - rules.packet_size
    rows = np.arange(len(start))
    for turn in range(rules.players):
        seats = (begun["dealer"] + 1 + turn) % rules.players
        for held in range(rules.hand_size):
            places = first + turn * rules.hand_size + held
            start["hands"][rows, seats, held] = start["deck"][rows, places]
    return start


def is_over(games: np.ndarray) -> np.ndarray:
    """Return at which tables (n,) the deal is over."""
    return np.asarray(games["to_play"] == NOBODY)
