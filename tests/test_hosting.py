"""Agents at the tables of a batch, and pools of them."""

import gymnasium
import numpy as np
import pytest

from pisti_env import Rules, pisti_v0
from pisti_env.agents import ask, load
from pisti_env.agents.hosting import Pool, ask_each
from pisti_env.cards import KIND_OF_CARD, NUM_CARDS
from pisti_env.observation import describe
from pisti_env.vector import DealBatch


class Lowest:
    """Plays the lowest legal action of an encoding."""

    def __init__(self, observation, rules=None):
        self.observation, self.rules = observation, rules or Rules()
        self.asked = 0

    def act(self, observations, masks, seeds=None):
        self.asked += len(masks)
        return masks.argmax(axis=1)


def play(agent, batch, rows, seeds=None):
    """What an agent plays at the tables `rows`."""
    who, actions = np.full(batch.num_envs, -1), np.zeros(batch.num_envs, np.int64)
    who[rows] = 0
    ask_each([agent], batch, who, actions, seeds)
    return actions[rows]


def test_a_kind_is_the_lowest_card_of_it_and_a_card_its_kind():
    faces, kinds = DealBatch(300, observation="basic", seed=5), DealBatch(300, seed=5)
    rows = np.arange(300)
    cards = play(Lowest("kinds"), faces, rows)
    for card, hand in zip(cards, faces.action_masks, strict=True):
        held = np.flatnonzero(hand)
        lowest_kind = KIND_OF_CARD[held].min()
        assert card == held[KIND_OF_CARD[held] == lowest_kind].min()
    assert (play(Lowest("kinds"), kinds, rows) == kinds.action_masks.argmax(axis=1)).all()
    as_kinds = play(Lowest("basic"), kinds, rows)
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
        play(Wrong("kinds"), DealBatch(10, seed=0), np.arange(10))


def test_seeds_go_with_their_tables():
    batch = DealBatch(50, observation="basic", seed=0)
    seeds = np.arange(50, dtype=np.uint64)
    agent = load("random")
    some = np.array([40, 3, 17])
    assert (play(agent, batch, some, seeds) == play(agent, batch, np.arange(50), seeds)[some]).all()


def test_a_pool_draws_in_proportion_to_the_weights():
    pool = Pool({Lowest("kinds"): 3.0, Lowest("full"): 0.0, Lowest("basic"): 1.0})
    drawn = pool.sample(np.linspace(0, 1, 1000, endpoint=False))
    assert np.bincount(drawn, minlength=3).tolist() == [750, 0, 250]
    assert pool.sample(np.array([np.nextafter(1.0, 0)])).tolist() == [2]


def test_a_pool_needs_somebody():
    with pytest.raises(ValueError, match="at least one agent"):
        Pool([])
    with pytest.raises(ValueError, match="weight above 0"):
        Pool({Lowest("kinds"): 0.0})


def test_cards_stay_cards():
    batch = DealBatch(20, observation="basic", seed=0)
    assert batch.action_masks.shape[1] == NUM_CARDS
    assert (play(Lowest("full"), batch, np.arange(20)) == batch.action_masks.argmax(axis=1)).all()


# One call asks any agent for a legal action of any environment.

ENVIRONMENTS = {
    "aec, cards": lambda: pisti_v0.env(observation="basic", players=3),
    "aec, kinds": lambda: pisti_v0.env(observation="kinds", players=3, mask_in="info"),
    "bare": lambda: pisti_v0.raw_env(players=3),
    "gymnasium, kinds": lambda: gymnasium.make("Pisti-v0", players=3),
    "gymnasium, cards": lambda: gymnasium.make("Pisti-v0", observation="full", players=3),
}


class Highest(Lowest):
    """Plays the highest legal action of its encoding, asked about one observation or many."""

    def act(self, observations, masks, seeds=None):
        assert observations.shape[-1] == describe(self.observation, self.rules).size
        return masks.shape[-1] - 1 - masks[..., ::-1].argmax(axis=-1)


@pytest.mark.parametrize("encoding", ["kinds", "full"])
@pytest.mark.parametrize("make", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_any_agent_is_asked_for_a_legal_action_of_any_environment(make, encoding):
    """What it means is worked out here from the hand alone."""
    env, agent = make(), Highest(encoding, Rules(players=3))
    env.reset(seed=3)
    bare = env.unwrapped
    for _ in range(4):
        seat = bare.view(None).to_play
        hand = bare.view(seat).hand
        card = max(hand)
        if encoding == "kinds":
            kind = max(KIND_OF_CARD[card] for card in hand)
            card = min(card for card in hand if KIND_OF_CARD[card] == kind)
        plays_cards = bare.moment()[1].num_actions == NUM_CARDS
        action = ask(env, agent)
        assert action == (card if plays_cards else KIND_OF_CARD[card])
        env.step(action)
        assert (seat, card) in bare.view(None).plays


def test_two_agents_of_different_encodings_at_one_table():
    env = pisti_v0.env()
    env.reset(seed=0)
    players = dict(zip(env.possible_agents, (load("pisti-2p"), load("counting")), strict=True))
    for agent in env.agent_iter():
        over = env.terminations[agent]
        env.step(None if over else ask(env, players[agent]))
    assert env.unwrapped.illegal_actions == 0
    assert sum(side["cards"] for side in env.unwrapped.score()) == 52


def test_asking_where_it_is_nobody_s_turn():
    agent = load("greedy")
    for env in (pisti_v0.raw_env(), gymnasium.make("Pisti-v0")):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            ask(env, agent)
    ended = gymnasium.make("Pisti-v0")
    _, info = ended.reset(seed=0)
    ended.step(int(info["action_mask"].argmin()))  # illegal
    wrapped = pisti_v0.env()
    wrapped.reset(seed=0)
    wrapped.step(int(wrapped.last()[0]["action_mask"].argmin()))
    for env in (ended, wrapped):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            ask(env, agent)
    for other in (None, 5, gymnasium.make("CartPole-v1"), DealBatch(3)):
        with pytest.raises(ValueError, match="env is "):
            ask(other, agent)


# What an agent lacks is named.


def lacking(part):
    agent = Lowest("kinds")
    delattr(agent, part)
    return agent


class Unasked:
    observation, rules = "kinds", Rules()


class TakesNoSeeds(Unasked):
    def act(self, observation, action_mask):
        return action_mask.argmax(axis=-1)


WRONG_AGENTS = [
    (5, ["is 5, which has no act and no observation and no rules"]),
    (Lowest, ["a class and not an agent"]),
    (lacking("rules"), ["Lowest", "no rules"]),
    (lacking("observation"), ["no observation"]),
    (Unasked(), ["no act"]),
    (Lowest("everything"), ["observation is 'everything'", "kinds_history"]),
    (Lowest(["kinds"]), ["observation is ['kinds']"]),
    (Lowest("kinds", "standard"), ["rules is 'standard'", "Rules"]),
    (TakesNoSeeds(), ["takes observation, action_mask and seeds"]),
]


@pytest.mark.parametrize(("agent", "words"), WRONG_AGENTS, ids=range(len(WRONG_AGENTS)))
def test_what_an_agent_lacks_is_named(agent, words):
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    for use in (
        lambda: ask(env, agent),
        lambda: Pool([agent]),
        lambda: gymnasium.make("Pisti-v0", opponent=agent),
        lambda: gymnasium.make("Pisti-v0", opponent=[agent, "greedy"]),
    ):
        with pytest.raises(ValueError) as caught:
            use()
        assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    "weight", [float("nan"), float("inf"), -1, None, "1", True, 1 + 0j], ids=str
)
def test_a_weight_that_is_none(weight):
    with pytest.raises(ValueError, match=r"weight of a pool is .*finite number of 0 or more"):
        Pool({Lowest("kinds"): 1.0, Lowest("full"): weight})
