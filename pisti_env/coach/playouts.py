"""Playouts: the rest of a deal, played by an agent in every seat, at many tables side by side."""

from collections.abc import Sequence

import numpy as np

from pisti_env import loops
from pisti_env.agents import Agent
from pisti_env.agents.hosting import choose_cards
from pisti_env.compile import quick
from pisti_env.compiled_rules import compiled_rules
from pisti_env.observation import encoder
from pisti_env.rules import Rules
from pisti_env.shuffle import derive_seed, random_numbers

TABLES_AT_ONCE = 1024  # so that what they take through a network stays in a core's own cache


def play_out(
    agent: Agent, rules: Rules, worlds: np.ndarray, cards: Sequence[int], seed: int
) -> np.ndarray:
    """Return what each of `cards` is worth in each world, (cards, worlds) float64: the points that
    the side to play gains from here to the end of the deal, less the mean of what the others gain,
    if the card is played now and the agent plays in every seat from then on.

    `worlds` (n,) are records of tables of these rules at one moment of a deal, before the play of a
    seat that holds all of `cards`; they stay as they are. What the agent draws depends on `seed`,
    the world and the number of the play, and not on the card: cards are compared at equal luck.
    """
    worth = np.empty((len(cards), len(worlds)))
    at_once = max(1, TABLES_AT_ONCE // len(cards))
    for first in range(0, len(worlds), at_once):
        block = worlds[first : first + at_once]
        games = np.tile(block, len(cards))
        numbers = np.tile(np.arange(first, first + len(block)), len(cards))
        chosen = np.repeat(np.array(cards, np.int64), len(block))
        margins = _play_on(agent, rules, games, chosen, numbers, seed)
        worth[:, first : first + len(block)] = margins.reshape(len(cards), len(block))
    return worth


def _play_on(
    agent: Agent,
    rules: Rules,
    games: np.ndarray,
    cards: np.ndarray,
    numbers: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Play `cards` (n,) at the tables `games` (n,), and then what the agent chooses; return the
    margins (n,) of the side that began. `numbers` (n,) tell apart what the agent draws."""
    own, rows, played = (
        encoder(agent.observation, rules),
        np.arange(len(games)),
        _played(games, rules),
    )
    play_rows, as_numbers = quick(loops.play_rows), compiled_rules(rules)
    side, first = rules.side(int(games["to_play"][0])), int(games["num_plays"][0])
    before = games["public_points"][:, : rules.sides].copy()
    key = derive_seed("playouts", seed)
    play_rows(games, as_numbers, rows, cards, played)
    for play in range(first + 1, rules.num_plays):
        choose_cards(agent, own, games, rows, random_numbers(key, numbers, play), cards)
        play_rows(games, as_numbers, rows, cards, played)
    gains = games["public_points"][:, : rules.sides] - before
    mine = gains[:, side]
    return np.asarray(mine - (gains.sum(axis=1) - mine) / (rules.sides - 1))


def _played(games: np.ndarray, rules: Rules) -> loops.Played:
    """Return arrays for `play_rows` to write in."""
    number = len(games)
    return loops.Played(
        gains=np.zeros((number, rules.sides), np.int64),
        margins=np.zeros((number, rules.sides), np.float32),
        scored=np.zeros(number, np.bool_),
        over=np.zeros(number, np.bool_),
        shares=np.zeros((number, rules.sides)),
    )
