"""The players that everything is measured against: `Random`, `Greedy` and `Counting`.

They never change, so that figures of different years can be compared. Each sees the observation and
the mask, nothing else: what it needs it reads from pieces of the observation by name, and the cards
that it may play from the mask.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pisti_env.agents.player import Player
from pisti_env.cards import ACE, JACK, NUM_CARDS, NUM_RANKS
from pisti_env.compile import announce_compilation, compiled, inlined, quick
from pisti_env.observation import ENCODINGS, describe
from pisti_env.rules import Rules


class Random(Player):
    """Plays each card of the hand with equal probability; of two equal cards it sees one. All cards
    have the score 0."""

    observation = "basic"  # the cheapest encoding whose actions are cards
    draws = True

    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        choose_random(masks, self._draw(len(rows), seeds), actions)

    def _scores(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return np.where(masks, 0.0, -np.inf)

    def _probabilities(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        legal = masks != 0
        return legal / legal.sum(axis=1, keepdims=True)


class Greedy(Player):
    """Captures by rank if it can, else by a jack, else plays its cheapest card. The scores: 2, 1,
    and for the others from 0 for the cheapest card of the deck down to -1 for the dearest."""

    observation = "basic"

    def __init__(self, rules: Rules, seed: int = 0):
        super().__init__(rules, seed)
        # Place of each card in the order in which it gives cards away: fewest points, no jack,
        # rank in the order 2 … K, A, lowest id.
        order = sorted(
            range(NUM_CARDS),
            key=lambda card: (
                rules.card_points(card),
                card % NUM_RANKS == JACK,
                card % NUM_RANKS if card % NUM_RANKS != ACE else NUM_RANKS,
                card,
            ),
        )
        self._places = np.argsort(order)

    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        choose_greedy(rows, masks, self._pieces["top"][0], self._places, actions)

    def _scores(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        top = rows[:, slice(*self._pieces["top"])]
        top_ranks = np.where(top.any(axis=1), top.argmax(axis=1) % NUM_RANKS, -1)[:, np.newaxis]
        ranks = np.arange(NUM_CARDS) % NUM_RANKS
        scores = np.where((ranks == JACK) & (top_ranks >= 0), 1.0, -self._places / NUM_CARDS)
        scores = np.where(ranks == top_ranks, 2.0, scores)
        return np.where(masks, scores, -np.inf)


class Counting(Player):
    """Counts the cards that it has not seen, and weighs what a play gains and what it may give.

    With n the pile's size, v the points that lie face up in it, p those of the card itself, u the
    copies of its rank that the seat has not seen, it plays the card with the highest score, the
    lowest id on ties:

    - capturing by rank: 100 + v + 0.2 n + p, and 10 more if n = 1;
    - a jack on another rank: -5 if n ≤ 2 and v = 0, else 97 + v + 0.5 n + p;
    - a jack on an empty table: -60 - 4 u - p;
    - any other card: -4 u - p on an empty table, else -u (v + 0.3 n + 1) - p.
    """

    observation = "full"

    def __init__(self, rules: Rules, seed: int = 0):
        super().__init__(rules, seed)
        copies = np.zeros(NUM_RANKS, np.int64)
        np.add.at(copies, np.array(rules.deck_cards()) % NUM_RANKS, 1)
        self._deck = Deck(
            rules.deck_size,
            rules.num_packs,
            np.array([rules.card_points(card) for card in range(NUM_CARDS)]),
            copies,
        )
        start = {name: first for name, (first, _) in self._pieces.items()}
        self._places = Places(
            top=start["top"],
            pile=start["pile"],
            pile_size=start["pile_size"],
            hand=start["hand"],
            played=start["played"],
            known_starters=start["known_starters"],
            shown=self._pieces["shown"],
            bottom_card=self._pieces.get("bottom_card", (0, 0)),
        )

    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        unseen, legal = np.empty(NUM_RANKS, np.float32), np.empty(NUM_CARDS, np.int64)
        choose = quick(choose_counting)
        choose(rows, masks, self._places, self._deck, unseen, legal, actions)

    def _scores(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        unseen, scores = np.empty(NUM_RANKS, np.float32), np.full(masks.shape, -np.inf)
        score_counting(rows, masks, self._places, self._deck, unseen, scores)
        return scores


class Places(NamedTuple):
    """Where the pieces that `Counting` reads begin in an observation, or begin and end."""

    top: int
    pile: int
    pile_size: int
    # Every card that a seat has seen is in exactly one of the other pieces.
    hand: int
    played: int
    known_starters: int
    shown: tuple[int, int]
    bottom_card: tuple[int, int]


class Deck(NamedTuple):
    """What `Counting` knows of the deck."""

    size: int
    num_packs: int
    card_points: np.ndarray
    """(52,) int64."""
    copies: np.ndarray
    """(13,) int64: cards of each rank."""


BASELINES: dict[str, Callable[[Rules, int], Player]] = {
    "random": Random,
    "greedy": Greedy,
    "counting": Counting,
}


@functools.cache
def warm_up() -> None:
    """Have the three compiled, once in a process, saying so if that takes a while."""
    with announce_compilation():
        rules = Rules()
        for make in BASELINES.values():
            player = make(rules, 0)
            num_actions, _ = ENCODINGS[player.observation]
            numbers = np.zeros((1, describe(player.observation, rules).size))
            player.act(numbers, np.ones((1, num_actions), np.int8))


@compiled
def choose_random(masks, numbers, actions):
    """Choose one of each row's legal cards by a random number (n,) uint64."""
    high_half, half = np.uint64(32), np.uint64(0xFFFFFFFF)
    for i in range(len(masks)):
        legal = 0
        for card in range(NUM_CARDS):
            legal += masks[i, card] != 0
        # Lemire's multiplication; without rejection it is off by less than 52 / 2**32.
        left = np.int64(((numbers[i] & half) * np.uint64(legal)) >> high_half)
        actions[i] = -1
        for card in range(NUM_CARDS):
            if masks[i, card] != 0:
                if left == 0:
                    actions[i] = card
                    break
                left -= 1


@inlined
def find_top(row, start):
    """Return the rank of the top card from the one-hot piece at `start`, -1 on an empty table.

    A sum over all cards: to stop at the one that is there would be slower, here and below, since
    the processor cannot foresee where that is.
    """
    place = np.int32(0)  # from 1
    for card in range(NUM_CARDS):
        place += np.int32(row[start + card]) * np.int32(card + 1)
    return (place - 1) % NUM_RANKS if place > 0 else -1


@compiled
def choose_greedy(rows, masks, top_start, places, actions):
    """Choose as `Greedy` does; `places` (52,) is the order in which it gives cards away."""
    for i in range(len(rows)):
        top = find_top(rows[i], top_start)
        equal, jack, cheapest = -1, -1, -1
        for card in range(NUM_CARDS):
            if masks[i, card] == 0:
                continue
            rank = card % NUM_RANKS
            if equal < 0 and rank == top:
                equal = card
            if jack < 0 and rank == JACK and top >= 0:
                jack = card
            if cheapest < 0 or places[card] < places[cheapest]:
                cheapest = card
        actions[i] = equal if equal >= 0 else jack if jack >= 0 else cheapest


@compiled
def choose_counting(rows, masks, places, deck, unseen, legal, actions):
    """Choose as `Counting` does. `unseen` (13,) float32 and `legal` (52,) int64 are for it to write
    in."""
    for i in range(len(rows)):
        top, size, points = look_at_table(rows[i], places, deck, unseen)
        best, best_score = -1, np.int64(0)
        for k in range(find_legal(masks[i], legal)):
            card = legal[k]
            rank = card % NUM_RANKS
            score = score_times_ten(
                rank, top, size, points, deck.card_points[card], np.int64(unseen[rank])
            )
            if best < 0 or score > best_score:
                best, best_score = card, score
        actions[i] = best


@compiled
def score_counting(rows, masks, places, deck, unseen, scores):
    """Set `scores` (n, 52) of legal cards to what `Counting` ranks them by. `unseen` (13,) float32
    is for it to write in."""
    for i in range(len(rows)):
        top, size, points = look_at_table(rows[i], places, deck, unseen)
        for card in range(NUM_CARDS):
            if masks[i, card] != 0:
                rank = card % NUM_RANKS
                own_points, left = deck.card_points[card], np.int64(unseen[rank])
                scores[i, card] = score_times_ten(rank, top, size, points, own_points, left) / 10


@inlined
def look_at_table(row, places, deck, unseen):
    """Return the top card's rank, -1 on an empty table, the pile's size, and the points that lie
    face up in it; set `unseen` (13,) as `count_unseen` does."""
    top = find_top(row, places.top)
    size = to_count(row[places.pile_size], deck.size)
    points = np.int64(0)
    for card in range(NUM_CARDS):
        points += to_count(row[places.pile + card], deck.num_packs) * deck.card_points[card]
    count_unseen(row, places, deck, unseen)
    return top, size, points


@inlined
def find_legal(mask, legal):
    """Put the legal cards of a mask (52,), in order, at the start of `legal` (52,); return how many
    they are."""
    count = 0
    for card in range(NUM_CARDS):
        legal[count] = card
        count += mask[card] != 0
    return count


@inlined
def to_count(number, unit):
    """Return the count that a scaled number stands for; a cast, since `rint` is a slow call."""
    return np.int64(number * unit + 0.5)


@inlined
def count_unseen(row, places, deck, unseen):
    """Set `unseen` (13,) float32 to how many cards of each rank the observer has not seen.

    Counts are halves or wholes here, so the sums are exact.
    """
    for rank in range(NUM_RANKS):
        count = np.float32(0)
        for card in range(rank, NUM_CARDS, NUM_RANKS):
            count += row[places.hand + card] + row[places.played + card]
            count += row[places.known_starters + card]
        unseen[rank] = count
    for place in range(places.shown[0], places.shown[1]):
        unseen[JACK] += row[place]
    for rank in range(NUM_RANKS):
        unseen[rank] = deck.copies[rank] - unseen[rank] * deck.num_packs
    for place in range(places.bottom_card[0], places.bottom_card[1]):
        if row[place] != 0:
            unseen[(place - places.bottom_card[0]) % NUM_RANKS] -= 1


@inlined
def score_times_ten(rank, top, size, points, own_points, unseen):
    """Return ten times the score of a card, an int: scores are compared exactly."""
    if top < 0:
        return -40 * unseen - 10 * own_points - (600 if rank == JACK else 0)
    if rank == top:
        return 1000 + 10 * points + 2 * size + 10 * own_points + (100 if size == 1 else 0)
    if rank == JACK:
        if size <= 2 and points == 0:
            return -50
        return 970 + 10 * points + 5 * size + 10 * own_points
    return -unseen * (10 * points + 3 * size + 10) - 10 * own_points
