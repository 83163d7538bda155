"""Asking agents: each is shown what it wants to see, and what it answers is checked.

An agent sees the observation and the mask of the seat whose turn it is, in the encoding that it
names, and nothing else. Its answer becomes a card of that seat's hand: of a kind the lowest one.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from pisti_env import game, loops
from pisti_env.agents.player import Agent
from pisti_env.compile import quick
from pisti_env.observation import ENCODINGS, Encoder, encoder
from pisti_env.observation.encode import as_numbers
from pisti_env.quote import quote
from pisti_env.rules import Rules
from pisti_env.vector import DealBatch

_ONE = np.zeros(1, np.int64)  # the rows of the only table
_PARTS = ("act", "observation", "rules")


def ask(env: Any, agent: Agent) -> int:
    """Return the action of `env`, a legal one, that an agent chooses for the seat whose turn it is.

    `env` is a PettingZoo environment of this package or `Pisti-v0`, in wrappers or not, with any
    observation; the agent sees its own. Where it plays a kind and `env` takes cards, the action is
    the lowest card of that kind in the hand; where it plays a card and `env` takes kinds, the
    card's kind.

    Raises `ValueError` for what is no such environment or no agent, and for an illegal answer;
    `gymnasium.error.ResetNeeded` if it is nobody's turn.
    """
    check_agent("agent", agent)
    bare = getattr(env, "unwrapped", env)
    if not hasattr(bare, "moment"):
        raise ValueError(
            f"env is {quote(env)}; expected an environment of pisti_v0, or Pisti-v0 of Gymnasium"
        )
    games, encoding = bare.moment()
    if len(games) != 1:
        raise ValueError(f"env is {quote(env)} with {len(games)} tables; expected one table")
    if games["to_play"][0] == game.NOBODY:
        raise gymnasium.error.ResetNeeded("the episode is over; call reset() first")
    return int(encoding.action_of_card[choose_card(agent, bare.rules, games)])


def ask_each(
    agents: Sequence[Agent],
    batch: DealBatch,
    who: np.ndarray,
    actions: np.ndarray,
    seeds: np.ndarray | None = None,
) -> None:
    """Write into `actions` (n,) what the agent with number `who` (n,) plays at each table of a
    batch, as its actions; tables where that is negative are left alone. An agent that occurs twice
    is asked once. `seeds` (n,) uint64 are for what agents draw. Raises `ValueError` for an illegal
    answer."""
    games, encoding = batch.moment()
    cards = np.empty(len(games), np.int64)
    for agent in {id(agent): agent for agent in agents}.values():
        numbers = [number for number, other in enumerate(agents) if other is agent]
        rows = np.flatnonzero(np.isin(who, numbers))
        if len(rows):
            own = encoder(agent.observation, batch.rules)
            choose_cards(agent, own, games, rows, None if seeds is None else seeds[rows], cards)
            actions[rows] = encoding.action_of_card[cards[rows]]


def choose_card(agent: Agent, rules: Rules, games: np.ndarray) -> int:
    """Return the card that an agent plays at the one table of `games` (1,), for the seat whose turn
    it is; raise `ValueError` for an illegal answer."""
    own, card = encoder(agent.observation, rules), np.empty(1, np.int64)
    observations, masks = observe(own, games, _ONE)
    answer = np.asarray(agent.act(observations[0], masks[0]))
    read_answers(agent, own, games, _ONE, answer[np.newaxis], card)
    return int(card[0])


def choose_cards(
    agent: Agent,
    own: Encoder,
    games: np.ndarray,
    rows: np.ndarray,
    seeds: np.ndarray | None,
    cards: np.ndarray,
) -> None:
    """Write into `cards` (n,) int64, at `rows` (k,), the cards that an agent plays at those tables
    of `games` (n,) for the seats whose turn it is. `own` is the agent's encoder, `seeds` (k,) are
    for what it draws. Raises `ValueError` for an illegal answer."""
    observations, masks = observe(own, games, rows)
    answers = np.asarray(agent.act(observations, masks, seeds))
    read_answers(agent, own, games, rows, answers, cards)


def observe(own: Encoder, games: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the seats to play at the tables `rows` (k,) see, new arrays: observations (k, d)
    float32 and masks (k, a) int8."""
    observations = np.empty((len(rows), own.size), np.float32)
    masks = np.empty((len(rows), own.num_actions), np.int8)
    own.encode(games, rows, games["to_play"][rows].astype(np.int64), observations, masks)
    return observations, masks


def read_answers(
    agent: Agent,
    own: Encoder,
    games: np.ndarray,
    rows: np.ndarray,
    answers: np.ndarray,
    cards: np.ndarray,
) -> None:
    """Write into `cards` (n,), at `rows` (k,), the cards that an agent's answers (k,) mean; raise
    `ValueError` for answers of another form, and for one that is not in the hand."""
    if answers.shape != (len(rows),) or answers.dtype.kind not in "iu":
        raise ValueError(
            f"{type(agent).__name__}.act returned an array of shape {answers.shape} and dtype "
            f"{answers.dtype}; expected {len(rows)} ints, one for each observation"
        )
    actions = as_numbers(answers)
    illegal = quick(loops.choose_cards)(games, rows, actions, own.action_of_card, cards)
    if illegal >= 0:
        raise ValueError(
            f"{type(agent).__name__}.act chose {answers[illegal]}, which its mask forbids; "
            "expected a legal one"
        )


def check_agent(name: str, agent: Any) -> None:
    """Raise `ValueError` for what is no agent, and name what it lacks; `name` is what it is given
    as."""
    expected = (
        "; expected an agent's name, a checkpoint's path or an agent, which has act(observation, "
        "action_mask, seeds), observation and rules"
    )
    if isinstance(agent, type):
        raise ValueError(f"{name} is {quote(agent)}, a class and not an agent made of it{expected}")
    missing = [part for part in _PARTS if not hasattr(agent, part)]
    if missing:
        raise ValueError(
            f"{name} is {quote(agent)}, which has no {' and no '.join(missing)}{expected}"
        )
    if not isinstance(agent.observation, str) or agent.observation not in ENCODINGS:
        raise ValueError(
            f"{name}.observation is {quote(agent.observation)}; expected one of "
            f"{', '.join(ENCODINGS)}"
        )
    if not isinstance(agent.rules, Rules):
        raise ValueError(
            f"{name}.rules is {quote(agent.rules)}; expected the Rules that it was made for"
        )
    if not callable(agent.act) or not _takes_three(agent.act):
        raise ValueError(
            f"{name}.act is {quote(agent.act)}; expected a method that takes observation, "
            "action_mask and seeds"
        )


def _takes_three(act: Any) -> bool:
    """Return whether a method can be called with three arguments, as far as can be told."""
    try:
        inspect.signature(act).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # nothing is known of its arguments
        return True
    return True


class Pool:
    """Agents to play against, each sampled in proportion to its weight.

    `agents` is a list of agents, or a dict of agents and weights. `sample` says who sits where, and
    `ask_each(pool.agents, …)` has them play. Raises `ValueError` for what is no agent, for weights
    that are not finite numbers of 0 or more, and if none is above 0.
    """

    def __init__(self, agents: Sequence[Agent] | Mapping[Agent, float]):
        self.agents = list(agents)
        for agent in self.agents:
            check_agent("agent of a pool", agent)
        weights = list(agents.values()) if isinstance(agents, Mapping) else [1.0] * len(agents)
        for weight in weights:
            if not _is_weight(weight):
                raise ValueError(
                    f"weight of a pool is {quote(weight)}; expected a finite number of 0 or more"
                )
        if not 0 < sum(weights) < math.inf:
            raise ValueError(
                f"pool has {len(self.agents)} agents with weights {quote(weights)}; expected at "
                "least one agent with a weight above 0"
            )
        reached = np.cumsum(weights)
        self._reached = reached / reached[-1]

    def sample(self, uniform: np.ndarray) -> np.ndarray:
        """Return the number of an agent for each uniform number (n,) in [0, 1)."""
        return np.searchsorted(self._reached, uniform, side="right")


def _is_weight(weight: Any) -> bool:
    is_number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
    return is_number and math.isfinite(weight) and weight >= 0
