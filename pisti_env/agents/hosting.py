"""Seating agents at the tables of a batch: each is asked in its own encoding.

An agent sees the observation and the mask that `ask` gives it and nothing else. `Pool` is who may
sit there, and how often.
"""

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from pisti_env.agents import Agent
from pisti_env.cards import KIND_OF_CARD, NUM_CARDS
from pisti_env.vector import DealBatch


def ask(
    agent: Agent, batch: DealBatch, rows: np.ndarray, seeds: np.ndarray | None = None
) -> np.ndarray:
    """Return what an agent plays at the tables `rows` (k,), as actions (k,) int64 of the batch.

    A kind becomes the lowest card of that kind in the hand, and a card its kind, where the batch
    plays the other. Raises `ValueError` if the agent does not answer with legal actions.
    """
    observations, masks = observe(batch, agent.observation, rows)
    actions = query(agent, observations, masks, None if seeds is None else seeds[rows])
    inside = actions.clip(0, masks.shape[1] - 1)
    legal = (inside == actions) & (masks[np.arange(len(rows)), inside] != 0)
    if not legal.all():
        refuse(agent, actions[int(np.argmin(legal))])
    num_actions = batch.action_masks.shape[1]
    if masks.shape[1] == num_actions:
        return actions.astype(np.int64)
    if num_actions == NUM_CARDS:
        hands = batch.action_masks[rows]
        return (hands & (actions[:, np.newaxis] == KIND_OF_CARD)).argmax(axis=1)
    return KIND_OF_CARD[actions]


def query(
    agent: Agent, observations: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None
) -> np.ndarray:
    """Return what an agent answers, as actions (k,) of an integer type; raise `ValueError` if they
    are not of this form. Whether they are legal is for the caller to find out."""
    actions = np.asarray(agent.act(observations, masks, seeds))
    if actions.shape != (len(masks),) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"{type(agent).__name__}.act returned an array of shape {actions.shape} and dtype "
            f"{actions.dtype}; expected {len(masks)} ints"
        )
    return actions


def refuse(agent: Agent, action: int) -> NoReturn:
    """Raise for an agent's illegal answer."""
    raise ValueError(
        f"{type(agent).__name__}.act chose {action}, which its mask forbids; expected a legal one"
    )


def observe(batch: DealBatch, encoding: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return observations, float32, and masks of the seats to play at the tables `rows` in an
    encoding."""
    if encoding == batch.observation and batch.observations.dtype == np.float32:
        return batch.observations[rows], batch.action_masks[rows]
    return batch.observe_as(encoding, rows), batch.action_masks_as(encoding, rows)


def ask_each(
    agents: Sequence[Agent],
    batch: DealBatch,
    who: np.ndarray,
    actions: np.ndarray,
    seeds: np.ndarray | None = None,
) -> None:
    """Write into `actions` (n,) what the agent with number `who` (n,) plays at each table; tables
    where that is negative are left alone. An agent that occurs twice is asked once."""
    for agent in {id(agent): agent for agent in agents}.values():
        numbers = [number for number, other in enumerate(agents) if other is agent]
        rows = np.flatnonzero(np.isin(who, numbers))
        if len(rows):
            actions[rows] = ask(agent, batch, rows, seeds)


class Pool:
    """Agents to play against, each drawn in proportion to its weight.

    `agents` is a list of agents, or a dict of agents and weights. `draw` says who sits at a table;
    `ask_each(pool.agents, …)` has them play.
    """

    def __init__(self, agents: Sequence[Agent] | Mapping[Agent, float]):
        self.agents = list(agents)
        weights = list(agents.values()) if isinstance(agents, Mapping) else [1.0] * len(agents)
        if not self.agents or min(weights) < 0 or sum(weights) <= 0:
            raise ValueError(
                f"pool has {len(self.agents)} agents with weights {weights}; expected at least one "
                "agent with a weight above 0"
            )
        reached = np.cumsum(weights)
        self._reached = reached / reached[-1]

    def draw(self, uniform: np.ndarray) -> np.ndarray:
        """Return the number of an agent for each uniform number (n,) in [0, 1)."""
        return np.searchsorted(self._reached, uniform, side="right")
