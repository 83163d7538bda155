"""What draws every card in these benchmarks, the same for all and cheap: a space's `sample` costs
more than a step of many environments."""

import random
from collections.abc import Callable, Sequence

import numpy as np

from pisti_env.compile import compiled

# Many tables: a congruential generator for each (Knuth, MMIX), of whose state the high half counts.
_MULTIPLIER = np.uint64(6364136223846793005)
_INCREMENT = np.uint64(1442695040888963407)
_S32 = np.uint64(32)


def picker(seed: int) -> Callable[[Sequence[int]], int]:
    """Return a function that picks one of the actions it is given, each equally likely."""
    number = random.Random(seed).random

    def pick(actions: Sequence[int]) -> int:
        return actions[int(number() * len(actions))]

    return pick


@compiled
def draw_legal(masks: np.ndarray, samplers: np.ndarray, actions: np.ndarray) -> None:
    """Set `actions` (n,) to a legal one of each row of `masks` (n, a) int8, each equally likely, by
    the `samplers` (n,) uint64. Without a branch: which action it will be cannot be guessed."""
    for i in range(len(masks)):
        samplers[i] = samplers[i] * _MULTIPLIER + _INCREMENT
        num_legal = 0
        for action in range(masks.shape[1]):
            num_legal += masks[i, action]
        left = np.int64((samplers[i] >> _S32) * np.uint64(num_legal) >> _S32)
        drawn, passed = 0, 0
        for action in range(masks.shape[1]):
            passed += masks[i, action]
            drawn += passed <= left
        actions[i] = drawn


@compiled
def draw_cards(games: np.ndarray, samplers: np.ndarray, cards: np.ndarray) -> None:
    """Set `cards` (n,) to one of each hand to play of the records `games` (n,), each equally
    likely, by the `samplers` (n,) uint64."""
    for i in range(len(games)):
        samplers[i] = samplers[i] * _MULTIPLIER + _INCREMENT
        seat = games[i].to_play
        slot = (samplers[i] >> _S32) * np.uint64(games[i].hand_sizes[seat]) >> _S32
        cards[i] = games[i].hands[seat, np.int64(slot)]
