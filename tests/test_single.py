"""One learner with Gymnasium: one table, many tables, and the PettingZoo environment agree."""

import copy
import pickle
import random
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numba
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FlattenObservation
from gymnasium.wrappers import vector as wrappers

from pisti_env import Rules, pisti_v0
from pisti_env.agents import load
from pisti_env.agents.hosting import Pool
from pisti_env.agents.policy import PolicyAgent
from pisti_env.single import PistiEnv, PistiVectorEnv
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
KINDS_OF_REWARD = ["difference", "terminal", "win"]

# Every number of players, partners, matches, pools, rewards, encodings, forms of the mask.
SETUPS = {
    "two": {"opponent": "counting"},
    "two, dict": {"opponent": "greedy", "mask_in": "observation", "rewards": "terminal"},
    "three, match": {"opponent": "random", "players": 3, "target": 31, "rewards": "win"},
    "four, pool": {"opponent": ["greedy", "random"], "players": 4, "seat": 2},
    "four, partner, match": {
        "opponent": ["random", "greedy"],
        "partner": ["greedy", "counting"],
        "players": 4,
        "target": 21,
        "observation": "full",
    },
    "five": {"opponent": "random", "players": 5, "rewards": "terminal", "mask_in": "observation"},
    "six, match": {"opponent": ["counting"], "players": 6, "target": 41, "rewards": "difference"},
    "istanbul": {"opponent": "random", "rules": "istanbul", "target": 30, "observation": "basic"},
}
setups = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


class Lowest:
    """Plays the lowest legal action of an encoding, and counts what it is asked."""

    def __init__(self, observation="kinds", rules=None):
        self.observation, self.rules = observation, rules or Rules()
        self.calls, self.asked = 0, 0

    def act(self, observations, masks, seeds=None):
        self.calls += 1
        self.asked += len(masks)
        return masks.argmax(axis=1)


def make(**setup):
    return PistiEnv(**setup)


def mask_of(observation, info):
    """The mask, which the observation has too if it is a dict."""
    if isinstance(observation, dict):
        assert observation["action_mask"].tobytes() == info["action_mask"].tobytes()
        assert not np.shares_memory(observation["action_mask"], info["action_mask"])
    assert info["action_mask"].dtype == np.int8
    return info["action_mask"]


def same(one, two):
    """Whether two structures are equal to the last bit, types and keys too."""
    assert type(one) is type(two)
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        return all(same(one[key], two[key]) for key in one)
    if isinstance(one, np.ndarray) and one.dtype == object:
        assert one.shape == two.shape
        return all(same(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape) == (two.dtype, two.shape) and one.tobytes() == two.tobytes()
    return one == two


def choose(mask, rng):
    return int(np.argmax(mask * (1 + rng.random(len(mask)))))


def episode(env, rng, **reset):
    """All that an episode shows, and its rewards."""
    observation, info = env.reset(**reset)
    record, rewards, over = [(observation, info)], [], False
    while not over:
        action = choose(mask_of(observation, info), rng)
        observation, reward, over, truncated, info = env.step(action)
        assert type(reward) is float and type(over) is bool and truncated is False
        record.append((observation, reward, over, info))
        rewards.append(reward)
    return record, rewards


def records_agree(one, two):
    return len(one) == len(two) and all(
        same(a, b)
        for step, other in zip(one, two, strict=True)
        for a, b in zip(step, other, strict=True)
    )


# Gymnasium's own checks and form.


@pytest.mark.compiled
@setups
def test_gymnasium_checks_it_without_a_word(setup):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("Pisti-v0", **setup).unwrapped)
        check_env(gymnasium.make("Pisti-v0", **setup).unwrapped, skip_render_check=True)
        check_env(make(**setup), skip_render_check=True)


@pytest.mark.compiled
@setups
@pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.name)
def test_many_tables_are_what_gymnasium_makes_of_single_ones(setup, mode):
    """Gymnasium's own loop, in every autoreset mode: every number, key, shape and dtype."""
    ours = gymnasium.make_vec("Pisti-v0", num_envs=3, autoreset_mode=mode, **setup)
    theirs = gymnasium.make_vec(
        "Pisti-v0",
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **setup,
    )
    assert isinstance(ours, PistiVectorEnv) and ours.num_envs == 3
    assert ours.metadata["autoreset_mode"] is ours.autoreset_mode is mode
    for name in ("single_observation_space", "observation_space", "action_space"):
        assert getattr(ours, name) == getattr(theirs, name)
    rng = np.random.default_rng(5)
    ended = 0
    one, two = ours.reset(seed=[7, 8, 9]), theirs.reset(seed=[7, 8, 9])
    assert same(one[0], two[0]) and same(one[1], two[1])
    for step in range(130):
        if mode == AutoresetMode.DISABLED and step and one[2].any():
            shown, infos = ours.reset(options={"reset_mask": one[2]})
            expected, _ = theirs.reset(options={"reset_mask": one[2]})
            assert same(shown, expected)
            one = (shown, infos)
        masks = one[-1]["action_mask"]
        assert one[0] in ours.observation_space
        actions = np.array([choose(mask, rng) for mask in masks])
        if step % 19 == 3:
            actions[step % 3] = np.argmin(masks[step % 3])  # illegal
        one, two = ours.step(actions), theirs.step(actions)
        assert all(same(a, b) for a, b in zip(one, two, strict=True)), step
        ended += one[2].sum()
    assert ended > 6
    ours.close()
    assert ours.closed


@setups
def test_a_list_of_seeds(setup):
    """Table i with seed s is the single environment with seed s, episode after episode."""
    seeds = [11, 0, 2**64 - 1]
    envs = PistiVectorEnv(3, **setup, autoreset_mode=AutoresetMode.SAME_STEP)
    singles = [make(**setup) for _ in seeds]
    observations, infos = envs.reset(seed=seeds)
    rows = [env.reset(seed=seed) for env, seed in zip(singles, seeds, strict=True)]
    rng = np.random.default_rng(0)

    def row(data, table):
        if isinstance(data, dict):
            return {key: value[table] for key, value in data.items()}
        return data[table]

    for _ in range(3 if INTERPRETED else 90):
        for table, (observation, info) in enumerate(rows):
            assert same(row(observations, table), observation)
            assert same(infos["action_mask"][table], info["action_mask"])
            assert envs.seats[table] == singles[table].seat
        actions = np.array([choose(mask, rng) for mask in infos["action_mask"]])
        observations, rewards, ended, truncated, infos = envs.step(actions)
        assert rewards.dtype == np.float64 and not truncated.any()
        assert ("final_obs" in infos) == ended.any()
        for table, env in enumerate(singles):
            observation, reward, over, _, info = env.step(int(actions[table]))
            assert (rewards[table], ended[table]) == (reward, over)
            if over:
                assert same(infos["final_obs"][table], observation)
                assert not info["action_mask"].any()
                observation, info = env.reset()
            rows[table] = observation, info


@pytest.mark.compiled
def test_a_table_is_the_same_in_any_batch():
    records = []
    for num_envs in (1, 5, 40):
        envs = PistiVectorEnv(num_envs, ["random", "greedy"], players=3, target=40)
        _, infos = envs.reset(seed=3)
        record = []
        for _ in range(100):
            observations, rewards, ended, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
            record.append((observations[0], rewards[0], ended[0], infos["action_mask"][0]))
        records.append(record)
    assert records_agree(records[0], records[1]) and records_agree(records[0], records[2])


def decks_of(envs, seed):
    """The decks of a seed's first two deals at every table, as a DealBatch says them."""
    decks = []
    for number in range(2):
        envs.reset(seed=seed if number == 0 else None)
        decks.append(envs._core.tables.decks.copy())
    return decks


def test_neighbouring_seeds_share_no_deck_and_a_batch_has_the_same():
    tables = 16 if INTERPRETED else 512
    seen = set()
    for seed in range(3):
        decks = decks_of(PistiVectorEnv(tables, "random"), seed)
        batch = DealBatch(tables, seed=seed)
        assert (batch.decks == decks[0]).all()
        batch.reset()
        assert (batch.decks == decks[1]).all()
        seen |= {deck.tobytes() for deck in np.concatenate(decks)}
    assert len(seen) == 3 * 2 * tables
    env = make(opponent="random")  # one table is the first of many
    env.reset(seed=2)
    assert env._core.tables.decks[0].tobytes() == DealBatch(1, seed=2).decks[0].tobytes()


def test_every_call_returns_new_arrays():
    envs = PistiVectorEnv(2, "greedy", mask_in="observation", players=2)
    seen = [envs.reset(seed=0)]
    for _ in range(3):
        seen.append(envs.step(seen[-1][-1]["action_mask"].argmax(axis=1)))
    kept = copy.deepcopy(seen)
    envs.step(seen[-1][-1]["action_mask"].argmax(axis=1))
    for before, after in zip(kept, seen, strict=True):
        assert all(same(a, b) for a, b in zip(before, after, strict=True))
    masks = seen[0][0]["action_mask"], seen[0][1]["action_mask"]
    assert not np.shares_memory(*masks)


# Gymnasium's wrappers of many tables.

OBSERVATION_WRAPPERS = {
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float64),
    "FilterObservation": lambda envs: wrappers.FilterObservation(envs, ["observation"]),
    "FlattenObservation": wrappers.FlattenObservation,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "RescaleObservation": lambda envs: wrappers.RescaleObservation(
        envs, np.float32(-1), np.float32(1)
    ),
    "ReshapeObservation": lambda envs: wrappers.ReshapeObservation(envs, (4, 30)),
    "TransformObservation": lambda envs: wrappers.TransformObservation(envs, lambda o: o / 2),
    "VectorizeTransformObservation": lambda envs: wrappers.VectorizeTransformObservation(
        envs, FlattenObservation
    ),
}
OF_PICTURES = {"GrayscaleObservation", "ResizeObservation"}


def test_all_of_gymnasium_s_observation_wrappers_are_tried():
    theirs = {name for name in wrappers.__all__ if name.endswith("Observation")}
    assert theirs - OF_PICTURES == set(OBSERVATION_WRAPPERS)


@pytest.mark.compiled
@pytest.mark.parametrize("name", OBSERVATION_WRAPPERS)
def test_an_observation_wrapper_over_two_deals(name):
    in_dict = {"mask_in": "observation"} if name == "FilterObservation" else {}
    envs = gymnasium.make_vec("Pisti-v0", num_envs=4, opponent="greedy", **in_dict)
    envs = wrappers.RecordEpisodeStatistics(OBSERVATION_WRAPPERS[name](envs))
    observations, infos = envs.reset(seed=0)
    for _ in range(50):
        assert observations in envs.observation_space or name == "NormalizeObservation"
        observations, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
    assert envs.episode_count == 8 and list(envs.length_queue) == [24] * 8
    assert envs.unwrapped.illegal_actions == 0


# The same game as with PettingZoo.

PLAYERS = [
    pytest.param(2, None, id="2"),
    pytest.param(2, 30, id="2 to 30"),
    pytest.param(3, None, id="3", marks=pytest.mark.compiled),
    pytest.param(4, 21, id="4 to 21", marks=pytest.mark.compiled),
    pytest.param(5, None, id="5", marks=pytest.mark.compiled),
    pytest.param(6, 50, id="6 to 50", marks=pytest.mark.compiled),
]


@pytest.mark.parametrize("encoding", ["kinds", "full"])
@pytest.mark.parametrize("rewards", KINDS_OF_REWARD)
@pytest.mark.parametrize(("players", "target"), PLAYERS)
def test_the_learner_sees_and_earns_what_its_seat_does(players, target, rewards, encoding):
    """Two episodes: the same seed's decks, the same agents, every decision and every point.

    What it sees is what `observe_as` gives to its seat, and nothing more.
    """
    if INTERPRETED and (rewards, encoding) != ("difference", "kinds"):
        pytest.skip("one of them is enough")
    rules = Rules(players=players, target=target)
    opponent, partner = load("counting", rules), load("greedy", rules)
    env = make(
        opponent=opponent,
        partner=partner if rules.pairs else None,
        rules=rules,
        observation=encoding,
        rewards=rewards,
    )
    aec = pisti_v0.raw_env(rules=rules, observation=encoding, rewards=rewards, mask_in="info")
    rng = np.random.default_rng(players)
    for number in range(2):
        seed = 8 if number == 0 else None
        observation, info = env.reset(seed=seed)
        aec.reset(seed=seed)
        me = f"player_{env.seat}"
        partner_seat = (env.seat + rules.sides) % players if rules.pairs else None
        paid, earned, unpaid, over = 0.0, 0.0, 0.0, False
        while not over:
            for _ in aec.agent_iter():
                if aec.agent_selection == me or aec.terminations[me]:
                    break
                seat = int(aec.agent_selection[-1])
                agent = partner if seat == partner_seat else opponent
                seen = aec.observe_as(aec.agent_selection, agent.observation)
                card = agent.act(seen, mask_as(aec, agent.observation))
                aec.step(card if encoding == "full" else kind_of(card))
                unpaid += aec.rewards[me]
            assert observation.tobytes() == aec.observe_as(me, encoding).tobytes()
            assert info["action_mask"].tobytes() == aec.infos[me]["action_mask"].tobytes()
            action = choose(info["action_mask"], rng)
            aec.step(action)
            unpaid += aec.rewards[me]
            observation, reward, over, _, info = env.step(action)
            # The others' plays after it, on a copy, since they belong to this reward already.
            after = copy.deepcopy(aec)
            while not after.terminations[me] and after.agent_selection != me:
                seat = int(after.agent_selection[-1])
                agent = partner if seat == partner_seat else opponent
                seen = after.observe_as(after.agent_selection, agent.observation)
                card = agent.act(seen, mask_as(after, agent.observation))
                after.step(card if encoding == "full" else kind_of(card))
                unpaid += after.rewards[me]
            aec = after
            assert reward == pytest.approx(unpaid, abs=1e-4)
            assert over == aec.terminations[me]
            paid, earned, unpaid = paid + reward, earned + unpaid, 0.0
        assert observation.tobytes() == aec.observe_as(me, encoding).tobytes()
        assert paid == pytest.approx(margin(aec, rules, rewards, env.seat), abs=1e-3)


def mask_as(aec, encoding):
    """The mask of the seat to play over the 52 cards, which all baselines play."""
    hand = aec.view(int(aec.agent_selection[-1])).hand
    mask = np.zeros(52, np.int8)
    mask[list(hand)] = 1
    return mask


def kind_of(card):
    return {1: 13, 22: 14}.get(card, card % 13)


def margin(aec, rules, rewards, seat):
    """What a side has in the end less the others' mean, from the scores."""
    if rewards == "win":
        totals = np.array([side["match_points"] for side in aec.score()])
        amounts = (totals == totals.max()) / (totals == totals.max()).sum()
    else:
        amounts = np.array([[side["points"] for side in deal] for deal in aec.deals]).sum(axis=0)
    side = seat % rules.sides
    return amounts[side] - (amounts.sum() - amounts[side]) / (rules.sides - 1)


# Seats, decks, who plays.


def test_the_seat_is_drawn_anew_or_given():
    envs = PistiVectorEnv(60 if INTERPRETED else 600, "greedy", players=3)
    envs.reset(seed=0)
    first = envs.seats
    assert np.bincount(first, minlength=3).min() > len(first) / 5
    envs.reset()
    assert (envs.seats != first).any()
    envs.reset(options={"seat": 2})
    assert (envs.seats == 2).all()
    fixed = make(opponent="greedy", seat=1)
    assert {fixed.reset(seed=seed) and fixed.seat for seed in range(8)} == {1}
    fixed.reset(options={"seat": 0})
    assert fixed.seat == 0
    fixed.reset()
    assert fixed.seat == 1


def test_a_given_deck():
    """As `pisti_v0` is dealt it."""
    deck = [*range(51, -1, -1)]
    env, aec = make(opponent="greedy", target=151, observation="full"), pisti_v0.raw_env(target=151)
    env.reset(seed=1, options={"deck": deck, "dealer": 1, "scores": [30, 7], "seat": 0})
    aec.reset(options={"deck": deck, "dealer": 1, "scores": [30, 7]})
    assert aec.agent_selection == "player_0"
    observation, _ = env._observe()
    assert observation.tobytes() == aec.observe("player_0")["observation"].tobytes()


def test_a_seed_decides_everything():
    """Episode after episode, whatever the global generators do; without one it goes on."""
    setup = {"opponent": ["random", "greedy"], "players": 3}
    records = []
    for global_seed in (1, 2):
        random.seed(global_seed)
        np.random.seed(global_seed)  # noqa: NPY002
        state = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
        env, rng = make(**setup), np.random.default_rng(0)
        records.append([episode(env, rng, seed=seed)[0] for seed in (0, None, None)])
        assert state == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    assert all(records_agree(*pair) for pair in zip(*records, strict=True))
    assert not records_agree(records[0][0], records[0][1])
    again = episode(env, np.random.default_rng(0), seed=0)[0]  # zero is a seed
    assert records_agree(again[:1], records[0][0][:1])
    starts = [make(**setup).reset()[0].tobytes() for _ in range(4)]
    assert len(set(starts)) > 1  # unpredictable


def test_opponents_are_drawn_by_their_weights():
    one, two, never = Lowest(), Lowest("full"), Lowest("basic")
    envs = PistiVectorEnv(40, Pool({one: 3.0, two: 1.0, never: 0.0}))
    _, infos = envs.reset(seed=0)
    for _ in range(2 if INTERPRETED else 100):
        _, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
    assert never.calls == 0 and two.asked > 0
    if not INTERPRETED:
        assert 2 < one.asked / two.asked < 4


def test_a_partner_has_the_seat_opposite():
    rules = Rules(players=4)
    opponent, partner = Lowest("kinds", rules), Lowest("full", rules)
    envs = PistiVectorEnv(5, opponent, partner, rules=rules)
    _, infos = envs.reset(seed=0)
    steps = 2 if INTERPRETED else rules.num_plays // 4
    for _ in range(steps):
        _, _, ended, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
    if not INTERPRETED:
        assert ended.all()
        # Whole deals, but for the plays that lead to the first turns of the next.
        assert 5 * 24 <= opponent.asked <= 5 * 26 and 5 * 12 <= partner.asked <= 5 * 13
    both = Lowest("kinds", rules)
    envs = PistiVectorEnv(5, both, both, rules=rules)  # one agent, asked once for all
    _, infos = envs.reset(seed=0)
    before = both.calls
    envs.step(infos["action_mask"].argmax(axis=1))
    assert both.calls == before + 3


def test_agents_draw_with_numbers_of_their_own():
    """No two of them at any tables, plays, episodes; the same again with the same seeds."""

    class Recorder(Lowest):
        def act(self, observations, masks, seeds=None):
            assert seeds.dtype == np.uint64 and seeds.shape == (len(masks),)
            drawn.extend(seeds.tolist())
            return masks.argmax(axis=1)

    records = []
    for seed in (0, 0, 1):
        drawn = []
        envs = PistiVectorEnv(4, Recorder("kinds", Rules(players=3)), players=3)
        _, infos = envs.reset(seed=seed)
        for _ in range(4 if INTERPRETED else 50):
            _, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
        assert len(set(drawn)) == len(drawn) > 20
        records.append(drawn)
    assert records[0] == records[1] and not set(records[0]) & set(records[2])


@pytest.mark.compiled
@pytest.mark.parametrize("opponent", ["pisti-2p", ["pisti-2p", "greedy"]], ids=str)
def test_a_policy_is_called_once_a_turn(opponent, monkeypatch):
    """One network call for all tables where it is to play."""
    calls, act = [], PolicyAgent.act

    def counted(self, observations, masks, seeds=None):
        calls.append(len(masks))
        return act(self, observations, masks, seeds)

    monkeypatch.setattr(PolicyAgent, "act", counted)
    envs = PistiVectorEnv(50, opponent, autoreset_mode="SameStep")
    _, infos = envs.reset(seed=0)
    assert len(calls) == 1
    for decision in range(48):
        calls.clear()
        _, _, ended, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
        assert ended.any() == ended.all() == (decision % 24 == 23)
        if not ended.any():
            assert len(calls) == 1  # each learner plays, then each opponent
            assert opponent != "pisti-2p" or calls == [50]
        else:
            assert len(calls) <= 2  # the last card of the old episode, the first of the new


def test_an_illegal_answer_of_an_opponent_is_refused():
    class Wrong(Lowest):
        def act(self, observations, masks, seeds=None):
            return masks.argmin(axis=1)

    class Short(Lowest):
        def act(self, observations, masks, seeds=None):
            return masks.argmax(axis=1)[1:]

    with pytest.raises(ValueError, match=r"Wrong\.act chose \d+, which its mask forbids"):
        PistiVectorEnv(20, Wrong()).reset(seed=0)
    with pytest.raises(ValueError, match=r"Short\.act returned an array of shape"):
        PistiVectorEnv(20, Short()).reset(seed=0)


@pytest.mark.filterwarnings("error")
def test_an_agent_of_other_rules_is_told_of():
    with pytest.warns(UserWarning, match="Greedy was made for other rules"):
        make(opponent=load("greedy"), target=151)
    with pytest.raises(ValueError, match="players=2 and cannot play players=3"):
        make(opponent="pisti-2p", players=3)
    with pytest.raises(ValueError, match="players=2 and cannot play players=3"):
        make(opponent=load("greedy"), players=3)
    make(opponent="greedy", rules="istanbul", target=20)


# Illegal actions.


@pytest.mark.parametrize("rewards", KINDS_OF_REWARD)
@pytest.mark.parametrize("wrong", [None, -1, 15, 2**70])
def test_an_illegal_action_ends_the_episode(wrong, rewards):
    env = make(opponent="greedy", rewards=rewards, players=3)
    observation, info = env.reset(seed=4)
    action = int(np.argmin(info["action_mask"])) if wrong is None else wrong
    shown, reward, over, truncated, info = env.step(action)
    most = 1 if rewards == "win" else env.rules.max_deal_points
    assert (reward, over, truncated) == (-most / 2, True, False)
    assert shown.tobytes() == observation.tobytes() and not info["action_mask"].any()
    assert not env.action_masks().any()
    assert env.illegal_actions == 1
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(0)
    # The next episode is as if the first had been played to its end.
    other = make(opponent="greedy", rewards=rewards, players=3)
    episode(other, np.random.default_rng(0), seed=4)
    assert same(env.reset()[0], other.reset()[0])


@pytest.mark.parametrize("encoding", ["kinds", "full"])
def test_an_illegal_action_is_refused_if_asked(encoding):
    env = make(opponent="greedy", illegal="raise", observation=encoding)
    other = make(opponent="greedy", illegal="raise", observation=encoding)
    _, info = env.reset(seed=4)
    other.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(4):
        illegal = int(np.argmin(info["action_mask"]))
        before = pickle.dumps(env._core.tables.get_state())
        with pytest.raises(ValueError) as caught:
            env.step(illegal)
        assert f"action is {illegal} (" in str(caught.value)
        assert f"hand of seat {env.seat}, " in str(caught.value)
        assert pickle.dumps(env._core.tables.get_state()) == before
        for no_int in (1.0, None, "3", True, [1]):
            with pytest.raises(ValueError, match=r"action is .*; expected an int"):
                env.step(no_int)
        action = choose(info["action_mask"], rng)
        one, two = env.step(np.int64(action)), other.step(action)
        assert all(same(a, b) for a, b in zip(one, two, strict=True))
        info = one[-1]


def test_illegal_actions_at_some_tables():
    envs = PistiVectorEnv(4, "greedy", illegal="raise")
    other = PistiVectorEnv(4, "greedy", autoreset_mode=AutoresetMode.SAME_STEP)
    _, infos = envs.reset(seed=0)
    other.reset(seed=0)
    actions = infos["action_mask"].argmax(axis=1)
    wrong = actions.copy()
    wrong[[1, 3]] = infos["action_mask"][[1, 3]].argmin(axis=1)
    before = pickle.dumps(envs._core.tables.get_state())
    with pytest.raises(ValueError, match=r"action of table 1 is \d+ \(.*hand of seat \d, "):
        envs.step(wrong)
    assert pickle.dumps(envs._core.tables.get_state()) == before
    envs.step(actions)
    seats = other.seats
    _, rewards, ended, _, infos = other.step(wrong)
    assert ended.tolist() == [False, True, False, True] == infos["_final_obs"].tolist()
    assert (rewards[ended] == -envs.rules.max_deal_points).all()
    assert (infos["action_mask"].sum(axis=1) > 0).all()
    assert [obs is not None for obs in infos["final_obs"]] == ended.tolist()
    assert (other.seats[~ended] == seats[~ended]).all()
    assert (envs.illegal_actions, other.illegal_actions) == (2, 2)


# Some tables restart.


@setups
def test_a_reset_mask(setup):
    envs, other = PistiVectorEnv(4, **setup), PistiVectorEnv(4, **setup)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        envs.reset(options={"reset_mask": np.array([True, False, False, False])})
    _, infos = envs.reset(seed=3)
    other.reset(seed=3)
    actions = infos["action_mask"].argmax(axis=1)
    observations, _, _, _, infos = envs.step(actions)
    other.step(actions)
    mask = np.array([False, True, False, True])
    options = {"reset_mask": mask}
    shown, now = envs.reset(seed=[None, 9, 9, 9], options=options)
    assert options == {"reset_mask": mask}
    box = (lambda data: data["observation"]) if isinstance(shown, dict) else (lambda data: data)
    assert same(box(shown)[~mask], box(observations)[~mask])
    assert same(box(shown)[1], box(shown)[3])
    alone = make(**setup)
    observation, info = alone.reset(seed=9)
    assert same(box(shown)[1], box(observation))
    assert same(now["action_mask"][1], info["action_mask"]) and now["_action_mask"].all()
    assert same(now["action_mask"][~mask], infos["action_mask"][~mask])
    # The others go on as if nothing had happened.
    actions = now["action_mask"].argmax(axis=1)
    one = envs.step(actions)
    actions[mask] = other._core.action_masks(other._core.all_rows)[mask].argmax(axis=1)
    two = other.step(actions)
    assert same(box(one[0])[~mask], box(two[0])[~mask]) and same(one[1][~mask], two[1][~mask])


# Copies.


@setups
def test_copies_go_on_identically(setup):
    env = make(**setup)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=2)
    for _ in range(3):
        _, _, _, _, info = env.step(choose(info["action_mask"], rng))
    for copied in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        mine = copy.deepcopy(env)
        for _ in range(3 if INTERPRETED else 30):
            action = choose(mine.action_masks(), rng)
            one, two = mine.step(action), copied.step(action)
            assert all(same(a, b) for a, b in zip(one, two, strict=True))
            if one[2]:
                one, two = mine.reset(), copied.reset()
                assert same(one[0], two[0])
    envs = PistiVectorEnv(3, **setup)
    envs.reset(seed=2)
    for copied in (copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))):
        mine = copy.deepcopy(envs)
        for _ in range(2 if INTERPRETED else 30):
            actions = mine.action_masks().argmax(axis=1)
            one, two = mine.step(actions), copied.step(actions)
            assert all(same(a, b) for a, b in zip(one, two, strict=True))


# What the user sees.


def test_the_learner_sees_its_own_hand():
    env = make(opponent="greedy", render_mode="ansi", seat=1, players=3)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.render()
    env.reset(seed=0)
    aec = pisti_v0.raw_env(players=3)
    aec.reset(seed=0)
    for _ in range(env._core.tables.games["num_plays"][0]):
        seen = aec.observe_as(aec.agent_selection, "basic")["observation"]
        aec.step(load("greedy", aec.rules).act(seen, mask_as(aec, "basic")))
    assert env.render() == aec.draw(1)
    envs = PistiVectorEnv(2, "greedy", render_mode="ansi", seat=1, players=3)
    envs.reset(seed=0)
    assert envs.render()[0] == env.render() and len(envs.render()) == 2


def test_the_mask_as_bools():
    env = gymnasium.make("Pisti-v0", opponent="greedy")
    _, info = env.reset(seed=0)
    masks = env.unwrapped.action_masks()
    assert masks.dtype == np.bool_ and (masks == info["action_mask"]).all()


def test_importing_registers_and_loads_nothing_of_it():
    code = """
import sys, gymnasium, pisti_env
assert "Pisti-v0" in gymnasium.registry
assert "pisti_env.single" not in sys.modules and "pisti_env.agents" not in sys.modules
assert not {"torch", "ray", "pyspiel", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("players", [2, 4])
def test_what_is_known_and_what_it_came_to_is_told_as_by_pettingzoo(players):
    """A match, the same cards in both: views, scores, finished deals, positions of every seat."""
    rules = Rules(players=players, target=21)
    env = make(opponent=Lowest("kinds", rules), rules=rules, seat=1)
    envs = PistiVectorEnv(3, Lowest("kinds", rules), rules=rules, seat=1)
    aec = pisti_v0.raw_env(rules=rules, observation="kinds")
    aec.reset(seed=5)
    _, info = env.reset(seed=5)
    envs.reset(seed=5)
    over = False
    for _ in range(6 if INTERPRETED else 10**9):
        while aec.agent_selection != "player_1" and not aec.terminations["player_1"]:
            aec.step(int(aec.infos[aec.agent_selection]["action_mask"].argmax()))
        assert (env.score(), env.deals) == (aec.score(), aec.deals)
        assert (envs.score(0), envs.deals(0)) == (aec.score(), aec.deals)
        for seat in [None, *range(players)]:
            assert env.view(seat) == envs.view(0, seat) == aec.view(seat)
            assert env.position(seat) == envs.position(0, seat) == aec.position(seat)
        if over:
            break
        action = int(info["action_mask"].argmax())
        aec.step(action)
        _, _, over, _, info = env.step(action)
        envs.step(envs.action_masks().argmax(axis=1))
    assert INTERPRETED or len(env.deals) > 1
    for wrong in (-1, 3, "0", True):
        with pytest.raises(ValueError, match=r"table is .*; expected an int from 0 to 2"):
            envs.view(wrong, 0)
    with pytest.raises(ValueError, match="seat is 7"):
        env.view(7)


@pytest.mark.parametrize("encoding", ["kinds", "full"])
def test_it_goes_on_from_a_position(encoding):
    """The learner gets the viewer's seat and sees what the position says; with the deck, the rest
    of the deal is that of the deal which the position is of."""
    rules = Rules(players=3, target=21)
    first = make(opponent="greedy", rules=rules, observation=encoding)
    observation, info = first.reset(seed=3, options={"scores": [4, 0, 9]})
    for _ in range(2 if INTERPRETED else 19):  # into the second deal
        observation, _, _, _, info = first.step(int(info["action_mask"].argmax()))
    seat, line = first.seat, first.position(first.seat)
    deck = first._core.tables.decks[0].tolist()
    env = make(opponent="greedy", rules=rules, observation=encoding)
    envs = PistiVectorEnv(4, opponent="greedy", rules=rules, observation=encoding)
    shown, given = env.reset(seed=1, options={"position": line, "deck": deck})
    rows, infos = envs.reset(seed=1, options={"position": line})
    assert env.seat == seat and (envs.seats == seat).all()
    assert same(shown, observation) and all(same(row, observation) for row in rows)
    assert same(given["action_mask"], info["action_mask"])
    assert (infos["action_mask"] == info["action_mask"]).all()
    assert env.deals == first.deals[-1:] == envs.deals(3)
    assert len({envs._core.tables.decks[table].tobytes() for table in range(4)}) == 4
    while first.view(seat).stock_size or len(first.view(seat).hand) > 1:  # to the deal's last step
        action = int(env.action_masks().argmax())
        assert all(same(a, b) for a, b in zip(env.step(action), first.step(action), strict=True))
    for wrong, words in [
        ({"position": line, "dealer": 0}, "dealer is 0; expected none with a position"),
        ({"position": line, "scores": [0, 0, 0]}, "expected none with a position"),
        ({"position": line, "deck": deck[::-1]}, "deck is"),
        ({"position": line + " "}, "position"),
        ({"position": 5}, "position"),
    ]:
        with pytest.raises(ValueError, match=words):
            env.reset(options=wrong)
    with pytest.raises(ValueError, match="position has the rules"):
        make(opponent="greedy", players=3).reset(options={"position": line})


def test_how_it_was_made_is_written_as_json():
    path = Path(__file__).resolve().parents[1] / "checkpoints" / "pisti-2p.safetensors"
    setup = {"opponent": [path, "greedy"], "rules": Rules(), "ace_points": 1}
    env = gymnasium.make("Pisti-v0", **setup)
    spec = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert spec.kwargs["opponent"] == [str(path), "greedy"]
    assert gymnasium.make(spec).unwrapped.rules == Rules()
    mode = AutoresetMode.DISABLED
    envs = gymnasium.make_vec("Pisti-v0", num_envs=2, autoreset_mode=mode, **setup)
    again = gymnasium.make_vec(gymnasium.envs.registration.EnvSpec.from_json(envs.spec.to_json()))
    assert again.unwrapped.autoreset_mode is mode and again.num_envs == 2


# What is refused, in one sentence.

ARGUMENTS = [
    ({"opponent": "nobody"}, ["agent", "'nobody'", "counting"]),
    ({"opponent": 5}, ["opponent is 5", "no act and no observation and no rules"]),
    ({"opponent": None}, ["opponent is None"]),
    ({"opponent": Lowest}, ["opponent is"]),
    ({"opponent": []}, ["opponent is []", "at least one"]),
    ({"opponent": ["greedy", 3]}, ["opponent is 3"]),
    ({"partner": "greedy"}, ["partner is 'greedy'", "no partners"]),
    ({"partner": 5, "players": 4}, ["partner is 5"]),
    ({"rules": "nowhere"}, ["nowhere"]),
    ({"gamma": 1}, ["gamma"]),
    ({"observation": "all"}, ["observation is 'all'", "kinds"]),
    ({"mask_in": "mask"}, ["mask_in is 'mask'", "'info'"]),
    ({"rewards": "money"}, ["rewards is 'money'", "win"]),
    ({"seat": 2}, ["seat is 2", "0 to 1"]),
    ({"seat": True}, ["seat is True"]),
    ({"illegal": "ignore"}, ["illegal is 'ignore'", "'raise'"]),
    ({"render_mode": "rgb"}, ["render_mode is 'rgb'", "'ansi'", "'rgb_array'"]),
    ({"seats": 1}, ["__init__() got an unexpected keyword argument 'seats'; did you mean 'seat'?"]),
    ({"opponents": "greedy"}, ["did you mean 'opponent'?"]),
    ({"player": 3}, ["did you mean 'players'?"]),
]


@pytest.mark.parametrize(("arguments", "words"), ARGUMENTS, ids=str)
def test_a_wrong_argument_is_named(arguments, words):
    for kind in (PistiEnv, PistiVectorEnv):
        with pytest.raises(ValueError) as caught:
            kind(**arguments)
        assert all(word in str(caught.value) for word in words), caught.value
        probed = "render_mode" in arguments or "unexpected keyword" in str(caught.value)
        assert isinstance(caught.value, TypeError) == probed  # so that others can go on
        assert "\n" not in str(caught.value)


RESETS = [
    ({"seed": -1}, ["seed is -1"]),
    ({"seed": 1.5}, ["seed is 1.5"]),
    ({"seed": "1"}, ["seed is '1'"]),
    ({"options": ["seat"]}, ["options is ['seat']", "dict"]),
    (
        {"options": {"decks": 1}},
        ["reset option is 'decks'", "deck, dealer, scores, seat, position"],
    ),
    ({"options": {"seat": 2}}, ["seat is 2", "0 to 1"]),
    ({"options": {"dealer": 2}}, ["dealer is 2"]),
    ({"options": {"scores": [1, 2]}}, ["scores is [1, 2]", "no target"]),
    ({"options": {"deck": [1, 2]}}, ["deck has 2 cards"]),
]
OF_MANY = [
    ({"seed": [1]}, ["seed is [1]", "2"]),
    ({"seed": [1, -4]}, ["seed is -4"]),
    ({"seed": 2**64}, [f"seed is {2**64}"]),
    ({"options": {"reset_mask": [True, False]}}, ["reset_mask is [True, False]", "bools"]),
    ({"options": {"reset_mask": np.zeros(2, bool)}}, ["reset_mask", "one or more True"]),
    ({"options": {"reset_mask": np.ones(3, bool)}}, ["reset_mask has shape (3,)", "(2,)"]),
]


@pytest.mark.parametrize(("arguments", "words"), RESETS + OF_MANY, ids=str)
def test_a_wrong_reset_is_named_and_changes_nothing(arguments, words):
    envs = [PistiVectorEnv(2, "greedy")]
    if (arguments, words) in RESETS:
        envs.append(make(opponent="greedy"))
    for env in envs:
        env.reset(seed=1)
        before = pickle.dumps(env._core.tables.get_state())
        with pytest.raises(ValueError) as caught:
            env.reset(**arguments)
        assert all(word in str(caught.value) for word in words), caught.value
        assert pickle.dumps(env._core.tables.get_state()) == before


@pytest.mark.parametrize(
    "actions", [np.zeros(2), np.zeros(3, int), [[1], [1, 2]], "ab", None, 1], ids=str
)
def test_actions_of_a_wrong_form(actions):
    envs = PistiVectorEnv(2, "greedy")
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        envs.step(actions)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="actions"):
        envs.step(actions)


def test_a_step_before_the_first_reset():
    env = make(opponent="greedy")
    for call in (lambda: env.step(0), env.action_masks, lambda: env.seat):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            call()
    with pytest.raises(ValueError, match="num_envs is 0"):
        PistiVectorEnv(0)
