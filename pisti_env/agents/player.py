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

    Attributes: `observation`, the encoding that `act` takes; `rules`, those that it was made for.
    `seed` is for what it draws when it is given no seeds.
    """

    observation: str

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
        rows = np.ascontiguousarray(np.atleast_2d(observation), np.float32)
        masks = np.ascontiguousarray(np.atleast_2d(action_mask), np.int8)
        number = len(rows)
        if rows.shape != (len(masks), self._size) or masks.shape != (number, self._num_actions):
            raise ValueError(
                f"observation and mask have shapes {np.shape(observation)} and "
                f"{np.shape(action_mask)}; expected those of the encoding {self.observation!r} "
                f"under these rules, ({self._size},) and ({self._num_actions},), or a batch of them"
            )
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
