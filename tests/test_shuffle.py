"""Seeded decks: the same for ever, each as likely as any other.

The same generator stands here a second time, as plainly as Python can say it.
"""

import numba
import numpy as np
import pytest

from pisti_env import Rules, pisti_v0
from pisti_env.cards import card_names
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
TABLES = 500 if INTERPRETED else 40_000

# A change here breaks every published seed: bump the environment's version if it must be.
GOLDEN = {
    0: "TC KH 5D 4H QH 4C KS TS 5C QS 2C 8S 7H JC AD 6C 2H 6D 3C 2S 4S 7S 3H AS 6H KC "
    "QC AH KD 3S 2D TH 5H 7D 9C JD 9D 9S 8H 7C TD 9H 8C 4D 5S 8D AC 6S JS 3D JH QD 0",
    1: "2D 6D 2H 9H 9S 5S JS TS 8C 8D 3C QH TD KH KS 4C 4S JD 5H 6H 9C 3H 7D 6C 5C QD "
    "4D AC JH TH 9D TC KD 6S 4H QS 7H 3D 5D 7C 3S KC QC 2C 2S 8H AS AH AD 7S 8S JC 1",
    2**64 - 1: "JH 7C JC 6S 2H KS 3H TS 5S 2D AS 7S 5D 6H 4C 3S 9S TD 6D KC TC 7H 9D AC KH 6C "
    "TH AH 8S 8H QS QD AD 8C 2C JS 9H 7D 5C 4D 9C 5H QH 3C 2S 4S 4H QC KD JD 8D 3D 0",
}

TWO_64 = 2**64
GAMMA = 0x9E3779B97F4A7C15  # SplitMix64's odd increment, 2**64 over the golden ratio


def mixed(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % TWO_64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % TWO_64
    return z ^ (z >> 31)


class Stream:
    """SplitMix64 from a state that is made of four numbers, each mixed in in turn."""

    def __init__(self, seed, table, deal, purpose):
        self.state = 0
        for number in (seed, table, deal, purpose):
            self.state = mixed((self.state + number + GAMMA) % TWO_64)

    def next_32_bits(self):
        self.state = (self.state + GAMMA) % TWO_64
        return mixed(self.state) >> 32

    def below(self, bound):
        """Lemire's draw: a multiplication, and a rejection that makes it exact."""
        while True:
            product = self.next_32_bits() * bound
            if product % 2**32 >= 2**32 % bound:
                return product // 2**32


def shuffled(pack, seed, table, deal, attempt=0):
    stream, deck = Stream(seed, table, deal, attempt), sorted(pack)
    for place in range(len(deck) - 1, 0, -1):
        other = stream.below(place + 1)
        deck[place], deck[other] = deck[other], deck[place]
    return deck


def can_turn_up(deck):
    return not all(card % 13 == 10 for card in deck[:4])


def expected_deal(rules, seed, table, deal):
    """The deck: drawn again while the starters are all jacks."""
    attempt = 0
    while True:
        deck = shuffled(rules.deck_cards(), seed, table, deal, attempt)
        if can_turn_up(deck):
            return deck, Stream(seed, table, deal, 2**32).below(rules.players)
        attempt += 1


def test_the_generator_is_splitmix64():
    """The published first numbers of seed 1234567 (Vigna's splitmix64.c)."""
    state, numbers = 1234567, []
    for _ in range(3):
        state = (state + GAMMA) % TWO_64
        numbers.append(mixed(state))
    assert numbers == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", GOLDEN)
def test_golden_decks(seed):
    env = pisti_v0.raw_env()
    env.reset(seed=seed)
    assert f"{card_names(env.deck)} {env.dealer}" == GOLDEN[seed]


@pytest.mark.parametrize(
    "fields",
    [{}, {"players": 5}, {"players": 3, "ranks": 7, "copies": 3}, {"ranks": 2, "hand_size": 1}],
    ids=str,
)
@pytest.mark.parametrize("seed", [0, 1, 12345, 2**63, 2**64 - 1])
def test_decks_and_dealers_agree_with_the_second_implementation(seed, fields):
    rules = Rules(**fields)
    batch = DealBatch(7, rules, seed=seed)
    for deal in range(2 if INTERPRETED else 6):
        for table in range(7):
            deck, dealer = expected_deal(rules, seed, table, deal)
            assert batch.decks[table].tolist() == deck
            assert batch.dealers[table] == dealer
        batch.reset()
    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=seed)
    assert (env.deck, env.dealer) == expected_deal(rules, seed, 0, 0)


def test_the_deals_of_a_match_are_of_one_stream():
    rules = Rules(target=200)
    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=9)
    dealer = expected_deal(rules, 9, 0, 0)[1]
    for deal in range(3):
        assert env.deck == expected_deal(rules, 9, 0, deal)[0]
        assert env.dealer == (dealer + deal) % 2
        for _ in range(48):
            env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))


def test_all_jacks_are_dealt_again():
    """Ranks 2: half the cards are jacks, so this is common."""
    rules = Rules(ranks=2, hand_size=1)
    again = sum(not can_turn_up(shuffled(rules.deck_cards(), 3, table, 0)) for table in range(300))
    assert again > 2
    batch = DealBatch(300, rules, seed=3)
    assert [deck.tolist() for deck in batch.decks] == [
        expected_deal(rules, 3, table, 0)[0] for table in range(300)
    ]


# Chi-square: with so many degrees of freedom nearly normal, so five standard deviations.


def chi_square(counts):
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum()


def assert_uniform(counts, freedom):
    assert abs(chi_square(counts) - freedom) < 5 * (2 * freedom) ** 0.5


def counts_of(pairs, size):
    return np.bincount(pairs, minlength=size)


@pytest.fixture(scope="module")
def decks():
    return DealBatch(TABLES, seed=0).decks.astype(np.int64)


def test_every_card_is_as_likely_everywhere(decks):
    where = np.stack([np.bincount(decks[:, place], minlength=52) for place in range(52)])
    assert_uniform(where, 51 * 51)


def test_neighbours_are_independent(decks):
    """Which card follows which: all 52 times 51 ordered pairs."""
    for gap in (1, 2, 26):
        pairs = (decks[:, :-gap] * 52 + decks[:, gap:]).ravel()
        counts = counts_of(pairs, 52 * 52).reshape(52, 52)
        assert not counts.diagonal().any()
        assert_uniform(counts[~np.eye(52, dtype=bool)], 52 * 51 - 1)


def test_deals_and_tables_are_independent():
    """A table's next deal and the next table's deal have nothing to do with this one."""
    batch = DealBatch(TABLES, seed=1)
    first = batch.decks[:, 51].astype(np.int64)
    batch.reset()
    second = batch.decks[:, 51].astype(np.int64)
    other_seed = DealBatch(TABLES, seed=2).decks[:, 51].astype(np.int64)
    for one, other in ((first, second), (first[:-1], first[1:]), (first, other_seed)):
        assert_uniform(counts_of(one * 52 + other, 52 * 52), 52 * 52 - 1)


def test_small_packs_reach_every_order():
    """The first four cards of thirteen: all 24 orders of their ids."""
    rules = Rules(ranks=13, copies=1, hand_size=1)
    decks = DealBatch(TABLES, rules, seed=5).decks.astype(np.int64)
    order = np.argsort(np.argsort(decks[:, :4], axis=1), axis=1)
    pattern = order @ np.array([64, 16, 4, 1])
    counts = np.unique(pattern, return_counts=True)[1]
    assert len(counts) == 24
    assert_uniform(counts, 23)


@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_dealers_are_as_likely(players):
    batch = DealBatch(TABLES, players=players, seed=4)
    assert_uniform(counts_of(batch.dealers, players), players - 1)
    # The dealer tells nothing of the deck.
    top = batch.decks[:, 3].astype(np.int64)
    top[top % 13 == 10] = 52  # the deck is dealt again if all four are jacks
    pairs = counts_of(batch.dealers * 53 + top, 53 * players).reshape(players, 53)[:, :52]
    ordinary = pairs[:, np.arange(52) % 13 != 10]
    assert_uniform(ordinary, ordinary.size - 1)


def test_jacks_turned_up_are_as_many_as_they_should():
    """4 in 52 decks have a jack on top, 1 in 221 two."""
    batch = DealBatch(TABLES, seed=6)
    jacks = batch.decks[:, :4] % 13 == 10
    one = jacks[:, 3].mean()
    assert one == pytest.approx(1 / 13, abs=5 * (12 / 169 / TABLES) ** 0.5)
    two = (jacks[:, 3] & jacks[:, 2]).mean()
    assert two == pytest.approx(1 / 221, abs=5 * (1 / 221 / TABLES) ** 0.5)
