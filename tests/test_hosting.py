"""Agents at the tables of a batch, and pools of them."""

import numpy as np
import pytest

from pisti_env import Rules
from pisti_env.agents import load
from pisti_env.agents.hosting import Pool, ask_each
from pisti_env.cards import KIND_OF_CARD, NUM_CARDS
from pisti_env.vector import DealBatch


class Lowest:
    """Plays the lowest legal action of an encoding."""

    def __init__(self, observation, rules=None):
        self.observation, self.rules = observation, rules or Rules()
        self.asked = 0

    def act(self, observations, masks, seeds=None):
        self.asked += len(masks)
        return masks.argmax(axis=1)


def ask(agent, batch, rows, seeds=None):
    """What an agent plays at the tables `rows`."""
    who, actions = np.full(batch.num_envs, -1), np.zeros(batch.num_envs, np.int64)
    who[rows] = 0
    ask_each([agent], batch, who, actions, seeds)
    return actions[rows]


def test_a_kind_is_the_lowest_card_of_it_and_a_card_its_kind():
    faces, kinds = DealBatch(300, observation="basic", seed=5), DealBatch(300, seed=5)
    rows = np.arange(300)
    cards = ask(Lowest("kinds"), faces, rows)
    for card, hand in zip(cards, faces.action_masks, strict=True):
        held = np.flatnonzero(hand)
        lowest_kind = KIND_OF_CARD[held].min()
        assert card == held[KIND_OF_CARD[held] == lowest_kind].min()
    assert (ask(Lowest("kinds"), kinds, rows) == kinds.action_masks.argmax(axis=1)).all()
    as_kinds = ask(Lowest("basic"), kinds, rows)
    assert (as_kinds == KIND_OF_CARD[faces.action_masks.argmax(axis=1)]).all()


def test_each_agent_is_asked_only_where_it_sits():
    batch = DealBatch(100, seed=0)
    agents = [Lowest("kinds"), Lowest("full")]
    agents.append(agents[0])
    who = np.arange(100) % 4 - 1
    actions = np.full(100, -7)
    ask_each(agents, batch, who, actions)
    assert [agent.asked for agent in agents[:2]] == [50, 25]
    assert (actions[who < 0] == -7).all() and (actions[who >= 0] >= 0).all()


def test_an_illegal_answer_is_refused():
    class Wrong(Lowest):
        def act(self, observations, masks, seeds=None):
            return masks.argmin(axis=1)

    with pytest.raises(ValueError, match=r"Wrong\.act chose \d+, which its mask forbids"):
        ask(Wrong("kinds"), DealBatch(10, seed=0), np.arange(10))


def test_seeds_go_with_their_tables():
    batch = DealBatch(50, observation="basic", seed=0)
    seeds = np.arange(50, dtype=np.uint64)
    agent = load("random")
    some = np.array([40, 3, 17])
    assert (ask(agent, batch, some, seeds) == ask(agent, batch, np.arange(50), seeds)[some]).all()


def test_a_pool_draws_in_proportion_to_the_weights():
    pool = Pool({Lowest("kinds"): 3.0, Lowest("full"): 0.0, Lowest("basic"): 1.0})
    drawn = pool.draw(np.linspace(0, 1, 1000, endpoint=False))
    assert np.bincount(drawn, minlength=3).tolist() == [750, 0, 250]
    assert pool.draw(np.array([np.nextafter(1.0, 0)])).tolist() == [2]


def test_a_pool_needs_somebody():
    with pytest.raises(ValueError, match="at least one agent"):
        Pool([])
    with pytest.raises(ValueError, match="weight above 0"):
        Pool({Lowest("kinds"): 0.0})


def test_cards_stay_cards():
    batch = DealBatch(20, observation="basic", seed=0)
    assert batch.action_masks.shape[1] == NUM_CARDS
    assert (ask(Lowest("full"), batch, np.arange(20)) == batch.action_masks.argmax(axis=1)).all()
