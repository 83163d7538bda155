"""Counts of kinds in one number."""

from pisti_env.cards import KIND_OF_CARD, NO_CARD, NUM_CARDS, NUM_KINDS
from pisti_env.counts import COUNTS_OF_BYTE, KIND_BITS, ONE_OF_CARD, count_of


def test_every_card_is_one_of_its_kind():
    for card in range(NUM_CARDS):
        counts = [count_of(kind, ONE_OF_CARD[card]) for kind in range(NUM_KINDS)]
        assert counts == [kind == KIND_OF_CARD[card] for kind in range(NUM_KINDS)]
    assert ONE_OF_CARD[NO_CARD] == 0


def test_a_byte_has_two_counts():
    assert len({tuple(pair) for pair in COUNTS_OF_BYTE.tolist()}) == 256
    for byte, (first, second) in enumerate(COUNTS_OF_BYTE.tolist()):
        assert first + (second << KIND_BITS) == byte
        assert [count_of(0, byte), count_of(1, byte)] == [first, second]
