"""Seeded decks: deal k of table i is a function of (seed, i, k) alone.

A small counter-based generator inside compiled code, so that the same seed gives the same decks on
every machine, in every NumPy, for any number of tables. SplitMix64: Steele, Lea & Flood, "Fast
splittable pseudorandom number generators" (2014). Bounded draws: Lemire, "Fast random integer
generation in an interval" (2019). Shuffle: Fisher-Yates.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pisti_env.compile import at, compiled, inlined
from pisti_env.quote import quote

MAX_SEED = 2**64 - 1

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)
_TWO_32 = np.uint64(1 << 32)
_S27, _S30, _S31, _S32 = (np.uint64(bits) for bits in (27, 30, 31, 32))

# What a number is drawn for: attempt a of a deal's deck is purpose a.
DEALER_PURPOSE = 1 << 32


def check_seed(seed: int) -> int:
    """Return the seed as an int; raise `ValueError` unless it is an int from 0 to 2**64 - 1."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= seed <= MAX_SEED:
        return int(seed)
    raise ValueError(f"seed is {quote(seed)}; expected an int from 0 to 2**64 - 1")


def wrapping_around(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function in which integers wrap around without a word: in plain Python NumPy warns
    of it. A compiled one does so anyhow, and gets no context, which takes longer than a draw."""
    is_compiled = hasattr(function, "overloads")
    return function if is_compiled else np.errstate(over="ignore")(function)


@inlined
def mix(state):
    """Scramble 64 bits (SplitMix64's output function)."""
    state = (state ^ (state >> _S30)) * _MIX_1
    state = (state ^ (state >> _S27)) * _MIX_2
    return state ^ (state >> _S31)


@inlined
def stream(seed, table, deal, purpose):
    """Return the start of the stream of numbers that belongs to these four numbers alone."""
    state = mix(seed + GAMMA)
    state = mix(state + np.uint64(table) + GAMMA)
    state = mix(state + np.uint64(deal) + GAMMA)
    return mix(state + np.uint64(purpose) + GAMMA)


@inlined
def random_below(state, bound):
    """Return the stream's next state and a number below `bound`, each equally likely."""
    while True:
        state += GAMMA
        product = (mix(state) >> _S32) * bound
        low = product & _LOW_32
        # The remainder is slow, and below `bound`: seldom is `low` so small that it matters.
        if low >= bound or low >= (_TWO_32 - bound) % bound:
            return state, product >> _S32


class Streams(NamedTuple):
    """Where the tables' random numbers begin: arrays with a number for each. Deal k of a table is a
    function of its seed, its number and k."""

    seeds: np.ndarray
    """(n,) uint64."""
    numbers: np.ndarray
    """(n,) int64."""
    deals: np.ndarray
    """(n,) int64: the deal they are for, from 0."""


@wrapping_around
@compiled
def shuffle_rows(streams, rows, pack, attempt, decks):
    """Shuffle `pack` (m,) into `decks` (n, m) at `rows` (k,), as it is dealt at this attempt."""
    for i in rows:
        state = stream(streams.seeds[i], streams.numbers[i], streams.deals[i], attempt)
        shuffle(pack, state, decks[i])


@inlined
def shuffle(pack, state, deck):
    """Shuffle `pack` (m,) into `deck` (m,) by the numbers that follow a state."""
    for place in range(len(pack)):
        deck[at(place)] = pack[at(place)]
    for place in range(len(pack) - 1, 0, -1):
        state, other = random_below(state, np.uint64(place + 1))
        card = deck[at(place)]
        deck[at(place)] = deck[other]
        deck[other] = card


@wrapping_around
@compiled
def random_dealers(streams, rows, players, dealers):
    """Set `dealers` (n,) at `rows` (k,) to the seats that deal."""
    for i in rows:
        state = stream(streams.seeds[i], streams.numbers[i], streams.deals[i], DEALER_PURPOSE)
        _, dealers[i] = random_below(state, np.uint64(players))


def random_numbers(seed: int, firsts: np.ndarray, second: int = 0) -> np.ndarray:
    """Return a random number (n,) uint64 for each of `firsts` (n,) ints, a function of the seed, of
    it and of `second`."""
    numbers = np.empty(len(firsts), np.uint64)
    fill_numbers(np.uint64(seed), firsts.astype(np.uint64), np.uint64(second), numbers)
    return numbers


@wrapping_around
@compiled
def fill_numbers(seed, firsts, second, numbers):
    """Set `numbers` (n,) as `random_numbers` does."""
    for i in range(len(numbers)):
        numbers[i] = stream(seed, firsts[i], second, 0)


def random_numbers_at(
    rows: np.ndarray, seeds: np.ndarray, firsts: np.ndarray, seconds: np.ndarray
) -> np.ndarray:
    """Return a random number (k,) uint64 for each of `rows` (k,), a function of what the row has in
    `seeds` (n,) uint64 and `firsts` (n,) int64, and of its own in `seconds` (k,) int64."""
    numbers = np.empty(len(rows), np.uint64)
    fill_numbers_at(rows, seeds, firsts, seconds, numbers)
    return numbers


@wrapping_around
@compiled
def fill_numbers_at(rows, seeds, firsts, seconds, numbers):
    """Set `numbers` (k,) as `random_numbers_at` does."""
    for k in range(len(rows)):
        i = rows[k]
        numbers[k] = stream(seeds[i], firsts[i], seconds[k], 0)


def derive_seed(purpose: str, seed: int) -> int:
    """Return a seed for a purpose. One-way: what is drawn with it tells nothing of the decks."""
    digest = hashlib.sha256(f"{purpose}, seed {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
