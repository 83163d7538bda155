"""What an agent is, and what the players of this package have in common: what `act` takes, and what
they draw with."""

import abc
from typing import Protocol

import numpy as np

from pisti_env.observation import ENCODINGS, describe
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed, random_numbers


class Agent(Protocol):
    """Anything with these three is an agent.

    It sees the observation and the mask and nothing else. Whoever hosts it observes in the encoding
    that it names, and turns a kind that it plays into the lowest card of that kind in the hand.
    """

    observation: str
    """The encoding that it wants."""
    rules: Rules
    """The rules that it was made for."""

    def act(
        self, observation: np.ndarray, action_mask: np.ndarray, seeds: np.ndarray | None = None
    ) -> int | np.ndarray:
        """Return an int for one observation (d,) and its mask (a,), int64 (n,) for (n, d), (n, a).

        With `seeds`, uint64 (n,), it draws from nothing else, so that what it plays does not depend
        on the batch.
        """


class Player(abc.ABC):
    """Takes one observation or a batch, and checks it before and its actions after.

    Attributes: `observation`, the encoding that `act` takes; `rules`, those that it was made for;
    `draws`, whether it leaves to chance what it plays. `seed` is for what it draws when it is given
    no seeds.
    """

    observation: str
    draws = False

    def __init__(self, rules: Rules, seed: int = 0):
        self.rules = rules
        self.seed = check_seed(seed)
        layout = describe(self.observation, rules)
        self._size, self._num_actions = layout.size, ENCODINGS[self.observation][0]
        # Where each piece starts and ends in an observation.
        self._pieces = {row.name: (row.slice.start, row.slice.stop) for row in layout}
        self._numbers_used = 0  # numbers drawn so far without seeds

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, observation={self.observation!r}, {self.rules!r}>"

    def act(
        self, observation: np.ndarray, action_mask: np.ndarray, seeds: np.ndarray | None = None
    ) -> int | np.ndarray:
        """Return an action: an int for one observation (d,) and mask (a,), int64 (n,) for (n, d)
        and (n, a).

        With `seeds`, uint64 (n,), what is drawn depends on them alone. Raises `ValueError` for
        arrays that do not fit, and a mask without a legal action.
        """
        rows, masks = self._read(observation, action_mask)
        number = len(rows)
        if seeds is not None:
            seeds = np.atleast_1d(seeds)
            if seeds.shape != (number,) or seeds.dtype.kind not in "iu" or (seeds < 0).any():
                raise ValueError(
                    f"seeds has shape {seeds.shape} and dtype {seeds.dtype}; expected ({number},), "
                    "ints from 0 to 2**64 - 1"
                )
        actions = np.empty(number, np.int64)
        self._choose(rows, masks, seeds, actions)
        legal = masks[np.arange(number), actions] != 0
        if not legal.all():
            raise ValueError(f"mask {int(legal.argmin())} has no legal action")
        return actions if np.ndim(action_mask) == 2 else int(actions[0])

    def probabilities(self, observation: np.ndarray, action_mask: np.ndarray) -> np.ndarray:
        """Return how likely the player finds each action, float32: (a,) for one observation (d,)
        and its mask (a,), (n, a) for (n, d) and (n, a). They are 0 for illegal ones, and add up
        to 1.

        A policy with `sample` draws from them, and without plays the most likely action; of the
        baselines, `random` draws, and the others play one card with probability 1. Raises
        `ValueError` as `act` does.
        """
        rows, masks = self._read_legal(observation, action_mask)
        probabilities = self._probabilities(rows, masks).astype(np.float32)
        return probabilities if np.ndim(action_mask) == 2 else probabilities[0]

    def scores(self, observation: np.ndarray, action_mask: np.ndarray) -> np.ndarray:
        """Return what the player ranks actions by, float64 of the shape of `action_mask`: -inf for
        illegal ones. It plays the one with the highest score, the lowest on ties, unless it draws.
        A policy's are its logits; the baselines tell in their docstrings what theirs are.

        Raises `ValueError` as `act` does.
        """
        rows, masks = self._read_legal(observation, action_mask)
        scores = self._scores(rows, masks)
        return scores if np.ndim(action_mask) == 2 else scores[0]

    def value(self, observation: np.ndarray) -> float | np.ndarray | None:
        """Return what the player expects of the rest of the deal, in points that its side gains
        more than the mean of the others: a float for one observation (d,), float64 (n,) for
        (n, d). None from a player that estimates none, as the baselines do not.

        Raises `ValueError` for an array that does not fit.
        """
        rows = np.ascontiguousarray(np.atleast_2d(observation), np.float32)
        if rows.shape != (len(rows), self._size):
            raise ValueError(
                f"observation has shape {np.shape(observation)}; expected that of the encoding "
                f"{self.observation!r} under these rules, ({self._size},), or a batch of them"
            )
        values = self._value(rows)
        if values is None or np.ndim(observation) == 2:
            return values
        return float(values[0])

    def _read(
        self, observation: np.ndarray, action_mask: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return observations (n, d) float32 and masks (n, a) int8, of which one has a row."""
        rows = np.ascontiguousarray(np.atleast_2d(observation), np.float32)
        masks = np.ascontiguousarray(np.atleast_2d(action_mask), np.int8)
        if rows.shape != (len(masks), self._size) or masks.shape[1:] != (self._num_actions,):
            raise ValueError(
                f"observation and mask have shapes {np.shape(observation)} and "
                f"{np.shape(action_mask)}; expected those of the encoding {self.observation!r} "
                f"under these rules, ({self._size},) and ({self._num_actions},), or a batch of them"
            )
        return rows, masks

    def _read_legal(
        self, observation: np.ndarray, action_mask: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what `_read` does; raise `ValueError` for a mask without a legal action."""
        rows, masks = self._read(observation, action_mask)
        legal = masks.any(axis=1)
        if not legal.all():
            raise ValueError(f"mask {int(legal.argmin())} has no legal action")
        return rows, masks

    def _probabilities(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return (n, a): 1 for the action that is played, in a player that draws nothing."""
        chosen = self._scores(rows, masks).argmax(axis=1)
        return np.eye(self._num_actions)[chosen]

    def _value(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the values (n,), None in a player that has none."""
        return None

    @abc.abstractmethod
    def _scores(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return the scores (n, a), -inf where `masks` is 0."""

    @abc.abstractmethod
    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        """Fill `actions` (n,) int64, with an illegal one where none is legal."""

    def _draw(self, number: int, seeds: np.ndarray | None) -> np.ndarray:
        """Return random numbers (n,) uint64, each a function of its seed alone if there are any."""
        if seeds is not None:
            return random_numbers(0, seeds)
        self._numbers_used += number
        return random_numbers(self.seed, np.arange(self._numbers_used - number, self._numbers_used))
