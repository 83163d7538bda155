"""Counts of kinds in one number, and what of an observation is written by LLVM's own words."""

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from pisti_env.cards import KIND_OF_CARD, NO_CARD, NUM_CARDS, NUM_KINDS
from pisti_env.compile import compiled
from pisti_env.counts import ONE_OF_CARD, count_of, number, present, write_eight


@compiled
def write_numbers(counts, scale, row):
    for k in range(len(counts)):
        row[k] = number(counts[k], scale[0], row)


@compiled
def write_row(kinds, scale, row, start):
    write_eight(kinds, scale[0], row, start)


def test_every_card_is_one_of_its_kind():
    for card in range(NUM_CARDS):
        counts = [count_of(kind, ONE_OF_CARD[card]) for kind in range(NUM_KINDS)]
        assert counts == [kind == KIND_OF_CARD[card] for kind in range(NUM_KINDS)]
    assert ONE_OF_CARD[NO_CARD] == 0


def test_present_is_one_wherever_there_are_any():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.integers(9, size=NUM_KINDS) * rng.integers(2, size=NUM_KINDS)
        shown = present(sum(int(count) << 4 * kind for kind, count in enumerate(counts)))
        assert [count_of(kind, shown) for kind in range(NUM_KINDS)] == (counts > 0).tolist()


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT or numba.config.BOUNDSCHECK), reason="written one by one"
)
def test_eight_are_not_written_into_what_is_not_meant():
    for row in (np.zeros(9), np.zeros((9, 2), np.float32)[:, 0]):
        with pytest.raises(TypingError):
            write_row(np.int64(1), np.ones(1, np.float32), row, 0)


SCALES = [np.float32(1 / 3), np.float32(1), np.uint8(1), np.int8(1)]


@pytest.mark.parametrize("scale", SCALES, ids=repr)
def test_counts_are_written_in_the_dtype_of_the_row(scale):
    counts = np.array([0, 1, 2, 100, 127], np.int64)
    for dtype in (np.int8, np.int16, np.int64):
        row = np.zeros(5, scale.dtype)
        write_numbers(counts.astype(dtype), np.array([scale]), row)
        assert row.tolist() == (counts.astype(scale.dtype) * scale).tolist()


@pytest.mark.parametrize("scale", SCALES, ids=repr)
def test_eight_are_written_and_nothing_else(scale):
    rng = np.random.default_rng(0)
    for start in range(5):
        counts = rng.integers(16, size=16)
        kinds = sum(int(count) << 4 * kind for kind, count in enumerate(counts[:15]))
        row = np.full(12, 7, scale.dtype)
        write_row(np.int64(kinds), np.array([scale]), row, start)
        expected = np.full(12, 7, scale.dtype)
        expected[start : start + 8] = counts[:8].astype(scale.dtype) * scale
        assert row.tolist() == expected.tolist()
