"""A trained policy as a player: a small network, in compiled code of its own.

NumPy's products would be quicker by a little on a quiet machine. But they start a thread on every
core, which wait for each other without sleeping: where other programs run, an evaluation took seven
times as long. And the last bits of their sums depend on how many rows are multiplied at once.
"""

import copy
import math
import warnings
from typing import Any

import numba
import numpy as np

from pisti_env.agents.checkpoint import Checkpoint, check_fit
from pisti_env.agents.player import Player
from pisti_env.compile import compiled
from pisti_env.rules import Rules

ROWS_AT_ONCE = 64  # what they take through the network stays in a core's own cache


class PolicyAgent(Player):
    """Plays a checkpoint: its best card, the lowest id on ties; with `sample`, one drawn from it.

    `rules` are those that it is to play, by default its own. It warns (`UserWarning`) if they
    differ, and raises `ValueError` if it cannot play them or `strict` is set.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        rules: Rules | None = None,
        seed: int = 0,
        sample: bool | None = None,
        strict: bool = False,
    ):
        self.checkpoint = checkpoint
        self.observation = checkpoint.observation
        super().__init__(checkpoint.rules, seed)
        self.draws = self.sample = bool(sample)
        if rules is not None:
            note = check_fit(checkpoint.path, self.rules, rules, self.observation, strict)
            if note is not None:
                warnings.warn(note, stacklevel=2)
        self._reward_scale = reward_scale(checkpoint)
        self._use(np.float64)

    def _use(self, dtype: Any) -> None:
        """Set the type of the network's numbers. With 64 bits rounding does not decide between two
        cards."""

        def layer(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.ascontiguousarray(weight.T, dtype), bias.astype(dtype)

        stored = self.checkpoint
        *self._hidden, self._head = map(layer, stored.weights, stored.biases)
        self._value_head = None if stored.value is None else layer(*stored.value)

    def with_32_bits(self) -> "PolicyAgent":
        """Return the same player at twice the speed: its network has numbers of 32 bits, so once in
        thousands of decisions it plays the other of two cards that it finds equally good."""
        other = copy.copy(self)
        other._use(np.float32)
        return other

    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        logits = self._scores(rows, masks)
        if self.sample:
            uniform = (self._draw(len(rows), seeds) >> np.uint64(11)) * 2.0**-53
            actions[:] = sample(logits, uniform)
        else:
            actions[:] = logits.argmax(axis=1)

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Return the logits (n, a) float64 of observations (n, d), of illegal actions too."""
        return self._run(observations, self._head)

    def _scores(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return np.where(masks, self.logits(rows), -np.inf)

    def _probabilities(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        weights = softmax_weights(self._scores(rows, masks))
        return weights / weights.sum(axis=1, keepdims=True)

    def _value(self, rows: np.ndarray) -> np.ndarray | None:
        if self._value_head is None:
            return None
        return self._run(rows, self._value_head)[:, 0] / self._reward_scale

    def _run(self, rows: np.ndarray, head: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return what a head gives (n, out) float64 on top of the last hidden layer."""
        outputs = np.empty((len(rows), len(head[1])))
        for first in range(0, len(rows), ROWS_AT_ONCE):
            block = slice(first, first + ROWS_AT_ONCE)
            hidden = rows[block].astype(head[0].dtype)
            for weight, bias in self._hidden:
                hidden = multiply(hidden, weight, bias)
                np.maximum(hidden, 0, out=hidden)
            outputs[block] = multiply(hidden, *head)
        return outputs


def reward_scale(checkpoint: Checkpoint) -> float:
    """Return what the points of a deal were multiplied by as rewards in training, as far as the
    checkpoint tells: the unit of its value."""
    told = checkpoint.metadata.get("training", {}).get("reward_scale", 1.0)
    is_scale = type(told) in (int, float) and math.isfinite(told) and told > 0
    return float(told) if is_scale else 1.0


def multiply(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return a layer's outputs (n, out) of its inputs `rows` (n, in), with `weight` (in, out) and
    `bias` (out,), all of one type."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # as plain Python it takes minutes
        return np.asarray(rows @ weight + bias)
    outputs = np.empty((len(rows), len(bias)), rows.dtype)
    _multiply(rows, weight, bias, outputs, np.empty(len(weight), np.int64))
    return outputs


@compiled
def _multiply(
    rows: np.ndarray, weight: np.ndarray, bias: np.ndarray, outputs: np.ndarray, used: np.ndarray
) -> None:
    """Fill `outputs`; see `multiply`. `used` (in,) int64 is overwritten.

    Most of the inputs are zero, and those cost nothing. The others are taken four at a time: a sum
    is then read and written once for four of them, which is most of the work. The order in which
    it is summed up stays that of the inputs.
    """
    for row in range(len(rows)):
        sums, number = outputs[row], 0
        for output in range(len(bias)):
            sums[output] = bias[output]
        for place in range(len(weight)):  # without an if, which the processor would guess wrong
            used[number] = place
            number += rows[row, place] != 0
        for first in range(0, number - 3, 4):
            a, b, c, d = used[first], used[first + 1], used[first + 2], used[first + 3]
            of_a, of_b, of_c, of_d = weight[a], weight[b], weight[c], weight[d]
            in_a, in_b, in_c, in_d = rows[row, a], rows[row, b], rows[row, c], rows[row, d]
            for output in range(len(bias)):
                total = sums[output] + in_a * of_a[output]
                total = total + in_b * of_b[output]
                total = total + in_c * of_c[output]
                sums[output] = total + in_d * of_d[output]
        for last in range(number - number % 4, number):
            place = used[last]
            for output in range(len(bias)):
                sums[output] += rows[row, place] * weight[place, output]


def softmax_weights(logits: np.ndarray) -> np.ndarray:
    """Return what is in proportion to the softmax of each row of logits (n, a), -inf for illegal
    actions; a row without a legal one becomes NaN."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(logits - logits.max(axis=1, keepdims=True)))


def sample(logits: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return actions (n,) sampled by softmax from logits (n, a), -inf for illegal ones, with one
    uniform number in [0, 1) each."""
    reached = softmax_weights(logits).cumsum(axis=1)
    total = reached[:, -1:]
    actions = (reached <= uniform[:, None] * total).sum(axis=1)
    # Rounded up to the total, a number would be past the end.
    last = (reached < total).sum(axis=1)
    return np.minimum(actions, last)
