"""An encoding under some rules: its layout, and arrays filled with it."""

import functools
from typing import Any

import numpy as np

from pisti_env.cards import CARD_NAMES, KIND_NAMES, KIND_OF_CARD, NUM_CARDS, NUM_KINDS
from pisti_env.compile import quick
from pisti_env.compiled_rules import compiled_rules
from pisti_env.counts import COUNTS_OF_BYTE
from pisti_env.observation.pieces import (
    _NUMBER_OF,
    ABSENT,
    ENCODINGS,
    GROUPS,
    LAYOUT,
    PACKS_TIMES_COPIES,
    PIECES,
    STATE,
    Layout,
    LayoutRow,
    check_encoding,
)
from pisti_env.observation.write import encode_rows, mask_rows
from pisti_env.quote import quote
from pisti_env.rules import Rules, RulesLike, resolve_rules


class Encoder:
    """An encoding under some rules: its sizes, and the functions that fill arrays with it.

    Attributes: `size` numbers in an observation, float32; `layout`; `num_actions`, 52 or 15, and
    their `action_names`; `units` (size,) float64, what counts are divided by; `action_of_card`
    (52,) int64; `layouts` (1,) for compiled functions.
    """

    def __init__(self, rules: Rules, num_actions: int, pieces: tuple[str, ...]):
        for group in GROUPS:
            if 0 < len(set(group) & set(pieces)) < len(group):
                raise ValueError(f"an encoding has all of {', '.join(group)}, or none of them")
        self._made_of = (rules, num_actions, pieces)
        self.num_actions = num_actions
        self.action_names = CARD_NAMES if num_actions == NUM_CARDS else KIND_NAMES
        faces = np.arange(NUM_CARDS, dtype=np.int64)
        self.action_of_card = faces if num_actions == NUM_CARDS else KIND_OF_CARD.astype(np.int64)
        self._compiled_rules = compiled_rules(rules)
        self.layouts = np.zeros(1, LAYOUT)
        rows: list[LayoutRow] = []
        divisors: list[int] = []
        for piece in PIECES:
            self.layouts[piece.name] = ABSENT
        for name in pieces:
            piece = PIECES[_NUMBER_OF[name]]
            size = piece.size(rules, num_actions)
            if size:
                start, scale = len(divisors), piece.scale
                if num_actions == NUM_KINDS and piece.scale_of_kinds is not None:
                    scale = piece.scale_of_kinds
                self.layouts[name] = start
                rows.append(LayoutRow(name, slice(start, start + size), piece.meaning, scale.text))
                divisors += [scale.unit(rules)] * size
        self.size = len(divisors)
        self.layout = Layout(rows)
        self.layouts["numbers"] = self.size
        self.layouts["faces"] = num_actions == NUM_CARDS
        self.layouts["num_actions"] = num_actions
        self.layouts["action_of"] = self.action_of_card
        names = (self.action_of_card + 1).astype(np.float32)
        self.layouts["named"][0, :NUM_CARDS] = names * np.float32(1 / num_actions)
        self.units = np.array(divisors, np.float64)
        self.units.setflags(write=False)
        self.layouts["scales"][0, : self.size] = (1 / self.units).astype(np.float32)
        one = np.float32(1 / PACKS_TIMES_COPIES.unit(rules))
        self.layouts["of_byte"] = COUNTS_OF_BYTE.astype(np.float32) * one
        self.layouts.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder, self._made_of

    def encode(
        self,
        games: np.ndarray,
        rows: np.ndarray,
        seats: np.ndarray,
        observations: np.ndarray,
        action_masks: np.ndarray | None = None,
    ) -> None:
        """Fill `observations` (k, size), contiguous float32, with what `seats` (k,) know
        at `games[rows]`, and `action_masks` as `mask` does."""
        rows, seats = as_numbers(rows), as_numbers(seats)
        _check_output("observations", observations, (len(rows), self.size), np.float32)
        quick(encode_rows)(games, self._compiled_rules, self.layouts, rows, seats, observations)
        if action_masks is not None:
            self.mask(games, rows, action_masks)

    def mask(self, games: np.ndarray, rows: np.ndarray, action_masks: np.ndarray) -> None:
        """Fill `action_masks` (k, num_actions) int8 with the plays of the seats whose turn it is at
        `games[rows]`, all 0 where the deal is over."""
        rows = as_numbers(rows)
        _check_output("action_masks", action_masks, (len(rows), self.num_actions), np.int8)
        quick(mask_rows)(games, self.layouts, rows, action_masks)


def as_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of tables, seats or actions as compiled code takes them, which looks at no
    type."""
    return np.ascontiguousarray(numbers, np.int64)


def _check_output(name: str, output: np.ndarray, shape: tuple[int, int], dtype: Any) -> None:
    """Raise `ValueError` for an array that compiled code cannot fill."""
    if output.shape != shape or output.dtype != dtype or not output.flags.carray:
        raise ValueError(
            f"{name} has shape {output.shape} and dtype {output.dtype}; expected an array of shape "
            f"{shape} and dtype {np.dtype(dtype)}, contiguous and writable"
        )


def encoder(observation: str, rules: Rules) -> Encoder:
    """Return the encoder of an encoding's name."""
    return _encoder(check_encoding(observation), rules)


@functools.lru_cache(maxsize=256)
def _encoder(observation: str, rules: Rules) -> Encoder:
    return Encoder(rules, *ENCODINGS[observation])


@functools.lru_cache(maxsize=256)
def state_encoder(rules: Rules) -> Encoder:
    """Return the encoder of the full state."""
    return Encoder(rules, *STATE)


def describe(observation: str = "full", rules: RulesLike = "standard", **fields: Any) -> Layout:
    """Return the layout of an encoding, or of ``"state"``, under some rules.

    Each row has a name, a slice, a meaning and a scale; printed, the layout is a table.
    """
    rules = resolve_rules(rules, **fields)
    return (state_encoder(rules) if observation == "state" else encoder(observation, rules)).layout


def decode(
    numbers: np.ndarray,
    observation: str = "full",
    rules: RulesLike = "standard",
    **fields: Any,
) -> dict[str, np.ndarray]:
    """Return what an observation (d,), or several (…, d), tells: counts, int64 arrays (size,) or
    (…, size), by the name of the piece.

    `observation` and the rules are as for `describe`, whose scales are taken back: of two equal
    cards 0.5 is one again, and a card's name is its action + 1. Exact for all that a game comes to
    (counts up to a million); but match scores beyond their scale were clipped. Raises `ValueError`
    for numbers that are not as many as the encoding has.
    """
    rules = resolve_rules(rules, **fields)
    encodes = state_encoder(rules) if observation == "state" else encoder(observation, rules)
    numbers = np.asarray(numbers)
    if numbers.ndim == 0 or numbers.shape[-1] != encodes.size:
        raise ValueError(
            f"numbers has shape {numbers.shape}; expected (…, {encodes.size}), which is what "
            f"{quote(observation)} has under these rules"
        )
    counts = np.rint(numbers * encodes.units).astype(np.int64)
    return {row.name: counts[..., row.slice] for row in encodes.layout}
