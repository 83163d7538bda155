"""A trained policy as a player: a small network, in NumPy."""

import warnings
from typing import Any

import numpy as np

from pisti_env.agents.checkpoint import Checkpoint, check_fit
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed, mix_all


class PolicyAgent:
    """Plays a checkpoint: its best card, the lowest id on ties; with `sample`, one drawn from it.

    Attributes: `observation`, the encoding that `act` takes; `rules`, those that it plays under;
    `warning`, one line if it was made for other rules than these, else None (it is also issued as
    a `UserWarning`). Raises `ValueError` if it cannot play under them or, if `strict`, was made for
    other ones.
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
        self.rules = checkpoint.rules if rules is None else rules
        self.sample = bool(sample)
        self.seed = check_seed(seed)
        self._drawn = 0  # numbers drawn so far without seeds
        self.warning = check_fit(checkpoint, self.rules, strict)
        if self.warning is not None:
            warnings.warn(self.warning, stacklevel=2)
        # 64 bits: in 32, the last bits of a sum depend on how many rows are multiplied at once, and
        # of two cards that are nearly equal it would choose one alone and the other in a batch.
        self._layers = [
            (np.ascontiguousarray(weight.T, np.float64), bias.astype(np.float64))
            for weight, bias in zip(checkpoint.weights, checkpoint.biases, strict=True)
        ]

    def act(
        self, observation: np.ndarray, action_mask: np.ndarray, seeds: np.ndarray | None = None
    ) -> Any:
        """Return an action: an int for one observation (d,) and mask (a,), int64 (n,) for (n, d)
        and (n, a).

        With `seeds`, uint64 (n,), what is drawn depends on them alone.
        """
        batch = np.ndim(action_mask) == 2
        rows, masks = np.atleast_2d(observation), np.atleast_2d(action_mask).astype(bool)
        inputs, num_actions = self.checkpoint.sizes[0], self.checkpoint.sizes[-1]
        if rows.shape != (len(masks), inputs) or masks.shape != (len(rows), num_actions):
            raise ValueError(
                f"observation and mask have shapes {np.shape(observation)} and "
                f"{np.shape(action_mask)}; expected those of the encoding {self.observation!r} "
                f"under these rules, ({inputs},) and ({num_actions},), or a batch of them"
            )
        if not masks.any(axis=1).all():
            raise ValueError(f"mask {int(masks.any(axis=1).argmin())} has no legal action")
        logits = np.where(masks, self.logits(rows), -np.inf)
        if self.sample:
            actions = draw(logits, self._uniform(len(rows), seeds))
        else:
            actions = logits.argmax(axis=1)
        return actions if batch else int(actions[0])

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Return the logits (n, a) float64 of observations (n, d), of illegal actions too."""
        hidden = observations.astype(np.float64)
        for weight, bias in self._layers[:-1]:
            hidden = hidden @ weight
            hidden += bias
            np.maximum(hidden, 0, out=hidden)
        weight, bias = self._layers[-1]
        return np.asarray(hidden @ weight + bias)

    def _uniform(self, rows: int, seeds: np.ndarray | None) -> np.ndarray:
        """Return (rows,) float64 in [0, 1), each a function of its seed alone if there are any."""
        nothing, numbers = np.zeros(rows, np.uint64), np.empty(rows, np.uint64)
        if seeds is None:
            order = np.arange(self._drawn, self._drawn + rows, dtype=np.uint64)
            self._drawn += rows
            firsts, seed = order, self.seed
        else:
            firsts, seed = np.atleast_1d(np.asarray(seeds, np.uint64)), 0
            if firsts.shape != (rows,):
                raise ValueError(f"seeds has shape {np.shape(seeds)}; expected ({rows},)")
        with np.errstate(over="ignore"):  # interpreted, integers that wrap around are a warning
            mix_all(np.uint64(seed), firsts, nothing, numbers)
        return (numbers >> np.uint64(11)) * 2.0**-53


def draw(logits: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return actions (n,) drawn by softmax from logits (n, a), -inf for illegal ones, with one
    uniform number in [0, 1) each."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    reached = weights.cumsum(axis=1)
    total = reached[:, -1:]
    actions = (reached <= uniform[:, None] * total).sum(axis=1)
    # Rounded up to the total, a number would be past the end.
    last = (reached < total).sum(axis=1)
    return np.minimum(actions, last)
