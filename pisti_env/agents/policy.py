"""A trained policy as a player: a small network, in NumPy."""

import warnings

import numpy as np

from pisti_env.agents.checkpoint import Checkpoint, check_fit
from pisti_env.agents.player import Player
from pisti_env.rules import Rules


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
        # 64 bits: in 32, the last bits of a sum depend on how many rows are multiplied at once, and
        # of two cards that are nearly equal it would choose one alone and the other in a batch.
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
            actions[:] = draw(logits, uniform)
        else:
            actions[:] = logits.argmax(axis=1)

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Return the logits (n, a) float64 of observations (n, d), of illegal actions too."""
        hidden = observations.astype(np.float64)
        for weight, bias in self._layers[:-1]:
            hidden = hidden @ weight
            hidden += bias
            np.maximum(hidden, 0, out=hidden)
        weight, bias = self._layers[-1]
        return np.asarray(hidden @ weight + bias)


def draw(logits: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return actions (n,) drawn by softmax from logits (n, a), -inf for illegal ones, with one
    uniform number in [0, 1) each."""
    with np.errstate(invalid="ignore"):  # a row without a legal action
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    reached = weights.cumsum(axis=1)
    total = reached[:, -1:]
    actions = (reached <= uniform[:, None] * total).sum(axis=1)
    # Rounded up to the total, a number would be past the end.
    last = (reached < total).sum(axis=1)
    return np.minimum(actions, last)
