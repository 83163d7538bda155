"""A trained policy as a player: a small network, in compiled code of its own.

NumPy's products would be quicker by a little on a quiet machine. But they start a thread on every
core, which wait for each other without sleeping: where other programs run, an evaluation took seven
times as long. And the last bits of their sums depend on how many rows are multiplied at once.
"""

import warnings

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
        self.sample = bool(sample)
        if rules is not None:
            note = check_fit(checkpoint.path, self.rules, rules, self.observation, strict)
            if note is not None:
                warnings.warn(note, stacklevel=2)
        # 64 bits, so that rounding cannot decide between two cards.
        self._layers = [
            (np.ascontiguousarray(weight.T, np.float64), bias.astype(np.float64))
            for weight, bias in zip(checkpoint.weights, checkpoint.biases, strict=True)
        ]

    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        logits = np.where(masks, self.logits(rows), -np.inf)
        if self.sample:
            uniform = (self._draw(len(rows), seeds) >> np.uint64(11)) * 2.0**-53
            actions[:] = sample(logits, uniform)
        else:
            actions[:] = logits.argmax(axis=1)

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Return the logits (n, a) float64 of observations (n, d), of illegal actions too."""
        logits = np.empty((len(observations), len(self._layers[-1][1])))
        for first in range(0, len(observations), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            hidden = observations[rows].astype(np.float64)
            for weight, bias in self._layers[:-1]:
                hidden = multiply(hidden, weight, bias)
                np.maximum(hidden, 0, out=hidden)
            logits[rows] = multiply(hidden, *self._layers[-1])
        return logits


def multiply(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return a layer's outputs (n, out) of its inputs `rows` (n, in), with `weight` (in, out) and
    `bias` (out,), all float64."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # as plain Python it takes minutes
        return np.asarray(rows @ weight + bias)
    outputs = np.empty((len(rows), len(bias)))
    _multiply(rows, weight, bias, outputs)
    return outputs


@compiled
def _multiply(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray, outputs: np.ndarray) -> None:
    """Fill `outputs`; see `multiply`. Most of the inputs are zero, and those cost nothing."""
    for row in range(len(rows)):
        for output in range(len(bias)):
            outputs[row, output] = bias[output]
        for number in range(len(weight)):
            value = rows[row, number]
            if value != 0:
                for output in range(len(bias)):
                    outputs[row, output] += value * weight[number, output]


def sample(logits: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return actions (n,) sampled by softmax from logits (n, a), -inf for illegal ones, with one
    uniform number in [0, 1) each."""
    with np.errstate(invalid="ignore"):  # a row without a legal action
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    reached = weights.cumsum(axis=1)
    total = reached[:, -1:]
    actions = (reached <= uniform[:, None] * total).sum(axis=1)
    # Rounded up to the total, a number would be past the end.
    last = (reached < total).sum(axis=1)
    return np.minimum(actions, last)
