"""The PettingZoo environment: the interface's own tests, and what they miss.

They look at one episode only, never at two in a row, and never at what follows an illegal move.
"""

import copy
import pickle
import random
import re
import threading

import gymnasium
import numba
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import (
    api_test,
    parallel_api_test,
    render_test,
    seed_test,
    state_test,
)
from pettingzoo.utils.conversions import turn_based_aec_to_parallel
from places import ENCODINGS, seeded

import pisti_env
from pisti_env import Rules, pisti_v0

INTERPRETED = bool(numba.config.DISABLE_JIT)
PLAYERS = [2, 3, 4, 5, 6]
MASKS = ["observation", "info"]
KINDS_OF_REWARD = ["difference", "terminal", "win"]


# PettingZoo's own tests.


@pytest.mark.parametrize("mask_in", MASKS)
@pytest.mark.parametrize("players", PLAYERS)
class TestPettingZoo:
    def test_api(self, players, mask_in, recwarn):
        api_test(pisti_v0.env(players=players, mask_in=mask_in), num_cycles=1000)
        api_test(pisti_v0.raw_env(players=players, mask_in=mask_in), num_cycles=1000)
        if mask_in == "info":  # it warns of every observation that is a dict
            assert not [str(warning.message) for warning in recwarn]

    @pytest.mark.filterwarnings("ignore:Observation:UserWarning")  # a dict is not an array
    def test_api_of_a_match(self, players, mask_in):
        env = pisti_v0.env(players=players, mask_in=mask_in, target=21, observation="kinds")
        api_test(env, num_cycles=20 if INTERPRETED else 1000)

    def test_seed(self, players, mask_in):
        seed_test(lambda: pisti_v0.env(players=players, mask_in=mask_in))

    def test_state(self, players, mask_in, recwarn):
        env = pisti_v0.env(players=players, mask_in=mask_in)
        state_test(env, turn_based_aec_to_parallel(pisti_v0.env(players=players)), 100)
        # Random actions are soon illegal; the raw environment's legal ones are tried elsewhere.
        assert not [str(warning.message) for warning in recwarn]

    def test_render(self, players, mask_in, monkeypatch):
        """It begins with "human", which opens no window here."""
        for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(variable, raising=False)

        def make(**kwargs):
            return pisti_v0.env(players=players, mask_in=mask_in, **kwargs)

        shows_table = {
            "ansi": lambda text: "Pişti" in text,
            "human": lambda none: none is None,
            "rgb_array": lambda frame: frame.shape == (360, 480, 3) and frame.std() > 10,
        }
        render_test(make, custom_tests=shows_table)

    def test_parallel_api(self, players, mask_in):
        env = pisti_v0.env(players=players, mask_in=mask_in)
        parallel_api_test(turn_based_aec_to_parallel(env), num_cycles=300)


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="the registry is new in 1.27")
def test_registration():
    env = pettingzoo.make("aec", "pisti/pisti-v0", players=3, target=101, mask_in="info")
    env.reset(seed=1)
    assert env.unwrapped.rules == Rules(players=3, target=101)
    same = pisti_v0.env(players=3, target=101, mask_in="info")
    same.reset(seed=1)
    assert env.unwrapped.deck == same.unwrapped.deck
    assert (env.last()[0] == same.last()[0]).all()
    assert pisti_env.pisti_v0 is pisti_v0


# Playing.


def mask_of(env):
    return env.infos[env.agent_selection]["action_mask"]


def pick(mask, rng):
    return int(rng.choice(np.flatnonzero(mask)))


def play_episode(env, rng, steps=None):
    """Play through `last()`; returns what was seen on the way, arrays as bytes."""
    record = []
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        parts = observation if isinstance(observation, dict) else {"observation": observation}
        arrays = {name: array.tobytes() for name, array in {**parts, **info}.items()}
        record.append((agent, arrays, reward, termination, truncation, dict(env.rewards)))
        action = None if termination or truncation else pick(info["action_mask"], rng)
        env.step(action)
        if steps is not None and len(record) == steps:
            break
    return record


def snapshot(env):
    """All that shows of an environment between two calls."""
    raw = env.unwrapped
    seats = range(raw.rules.players)
    return {
        "views": [raw.view(seat) for seat in (None, *seats)],
        "observations": [
            raw.observe_as(agent, encoding)["observation"].tobytes()
            if raw.mask_in == "observation"
            else raw.observe_as(agent, encoding).tobytes()
            for agent in raw.possible_agents
            for encoding in ENCODINGS
        ],
        "state": raw.state().tobytes(),
        "score": raw.score(),
        "deals": copy.deepcopy(raw.deals),
        "deck": (raw.deck, raw.dealer),
        "turn": (raw.agent_selection, list(raw.agents)),
        "rewards": (dict(raw.rewards), dict(raw._cumulative_rewards)),
        "ends": (dict(raw.terminations), dict(raw.truncations)),
        "masks": {agent: info["action_mask"].tobytes() for agent, info in raw.infos.items()},
    }


def make(wrapped, **kwargs):
    return (pisti_v0.env if wrapped else pisti_v0.raw_env)(**kwargs)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("target", [None, 31])
@pytest.mark.parametrize("players", PLAYERS)
def test_a_seed_decides_several_episodes(players, target, wrapped):
    one, other = (make(wrapped, players=players, target=target) for _ in range(2))
    other.reset(seed=99)  # what was before does not matter
    play_episode(other, random.Random(3), steps=20)
    decks = set()
    for episode in range(1 if INTERPRETED else 3):
        for env in (one, other):
            env.reset(seed=7 if episode == 0 else None)
        decks.add(tuple(one.unwrapped.deck))
        rngs = random.Random(episode), random.Random(episode)
        assert play_episode(one, rngs[0]) == play_episode(other, rngs[1])
        assert one.unwrapped.deals == other.unwrapped.deals
    assert len(decks) == (1 if INTERPRETED else 3)


def test_seeds():
    env = pisti_v0.env()

    def deck(**kwargs):
        env.reset(**kwargs)
        return tuple(env.unwrapped.deck)

    assert deck(seed=0) == deck(seed=0)  # zero is a seed
    assert len({deck(seed=seed) for seed in range(50)}) == 50
    assert deck(seed=np.int64(5)) == deck(seed=5)
    assert deck(seed=2**64 - 1) == deck(seed=2**64 - 1)
    first = deck(seed=1)
    stream = [deck() for _ in range(20)]
    assert len({first, *stream}) == 21
    assert deck(seed=1) == first and [deck() for _ in range(20)] == stream
    # Unseeded from the start: unpredictable.
    unseeded = set()
    for _ in range(5):
        fresh = pisti_v0.raw_env()
        fresh.reset()
        unseeded.add(tuple(fresh.deck))
    assert len(unseeded) == 5


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True, [1]])
def test_a_wrong_seed_is_refused(seed):
    env = pisti_v0.raw_env()
    env.reset(seed=3)
    env.step(pick(mask_of(env), random.Random(0)))
    before, clone = snapshot(env), copy.deepcopy(env)
    with pytest.raises(ValueError, match="seed is " + re.escape(repr(seed))):
        env.reset(seed=seed)
    assert snapshot(env) == before
    env.reset()
    clone.reset()
    assert env.deck == clone.deck


def test_global_random_numbers_are_left_alone():
    def states():
        return pickle.dumps((random.getstate(), np.random.get_state()))  # noqa: NPY002

    before = states()
    env = pisti_v0.env(players=4, target=51)
    env.reset()
    env.reset(seed=4)
    play_episode(env, random.Random(1))
    assert states() == before
    decks = []
    for global_seed in (1, 2):
        random.seed(global_seed)
        np.random.seed(global_seed)  # noqa: NPY002
        env.reset(seed=4)
        decks.append(env.unwrapped.deck)
    assert decks[0] == decks[1]
    # Unseeded environments do not follow a global seed either.
    fresh = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        raw = pisti_v0.raw_env()
        raw.reset()
        fresh.append(raw.deck)
    assert fresh[0] != fresh[1]


@pytest.mark.parametrize("mask_in", MASKS)
@pytest.mark.parametrize("players", PLAYERS)
def test_raw_equals_wrapped(players, mask_in):
    records = []
    for wrapped in (False, True):
        env = make(wrapped, players=players, mask_in=mask_in, target=11)
        env.reset(seed=players)
        records.append(play_episode(env, random.Random(0)))
    assert records[0] == records[1]


# Masks and spaces.


@pytest.mark.parametrize("encoding", ["full", "kinds"])
@pytest.mark.parametrize("mask_in", MASKS)
@pytest.mark.parametrize("players", PLAYERS)
def test_masks(players, mask_in, encoding):
    env = pisti_v0.raw_env(players=players, mask_in=mask_in, observation=encoding)
    rng = seeded("masks", players, mask_in)
    for deal in range(2 if INTERPRETED else 50):
        env.reset(seed=deal)
        assert env.action_space("player_0").n == (15 if encoding == "kinds" else 52)
        while not env.terminations[env.agent_selection]:
            mask = mask_of(env)
            assert type(mask) is np.ndarray and mask.dtype == np.int8 and mask.flags.c_contiguous
            legal = np.flatnonzero(mask).tolist()
            assert mask.max() == 1 and 1 <= len(legal) <= 4
            if rng.random() < 0.05:  # the rest is slow
                hand = env.view(int(env.agent_selection[-1])).hand
                faces = {1: 13, 22: 14} if encoding == "kinds" else {}
                classes = 13 if encoding == "kinds" else 52
                assert legal == sorted({faces.get(card, card % classes) for card in hand})
                for agent in env.agents:
                    info = env.infos[agent]
                    assert set(info) == {"action_mask"}
                    idle = agent != env.agent_selection
                    assert not idle or not info["action_mask"].any()
                    observation = env.observe(agent)
                    assert env.observation_space(agent).contains(observation)
                    if mask_in == "observation":
                        shown = observation["action_mask"]
                        assert shown.dtype == np.int8 and shown.flags.c_contiguous
                        assert shown.tolist() == info["action_mask"].tolist()
                        assert not np.shares_memory(shown, info["action_mask"])
                        observation = observation["observation"]
                    assert observation.dtype == np.float32 and observation.flags.c_contiguous
                sampled = env.action_space(env.agent_selection).sample(mask)
                assert sampled in legal
                env.step(sampled)
            else:
                env.step(rng.choice(legal))
        assert not any(info["action_mask"].any() for info in env.infos.values())


def test_spaces():
    rules = {"players": 3, "ranks": 5, "hand_size": 2}
    for encoding in ENCODINGS:
        env = pisti_v0.env(**rules, observation=encoding)
        size = pisti_v0.describe(encoding, **rules).size
        for agent in env.possible_agents:
            space = env.observation_space(agent)  # before any reset
            assert space is env.observation_space(agent)
            assert env.action_space(agent) is env.action_space(agent)
            assert set(space.spaces) == {"observation", "action_mask"}
            assert space["observation"].shape == (size,)
            assert (space["observation"].low == 0).all() and (space["observation"].high == 1).all()
            # The sizes for small packs are those for whole ones.
            classes = 15 if "kinds" in encoding else 52
            assert env.action_space(agent).n == classes
            assert space["action_mask"].shape == (classes,)
            assert space["action_mask"].dtype == np.int8
        assert env.possible_agents == ["player_0", "player_1", "player_2"]
    bare = pisti_v0.raw_env(**rules, mask_in="info")
    assert bare.observation_space("player_0").shape == (pisti_v0.describe("full", **rules).size,)


@pytest.mark.parametrize("mask_in", MASKS)
def test_every_call_returns_fresh_arrays(mask_in):
    env = pisti_v0.raw_env(players=3, mask_in=mask_in)
    env.reset(seed=1)
    before = snapshot(env)

    def spoil(value):
        for array in value.values() if isinstance(value, dict) else [value]:
            array[:] = 7

    for agent in env.agents:
        spoil(env.observe(agent))
        spoil(env.observe_as(agent, "kinds"))
    spoil(env.last()[0])
    spoil(env.state())
    env.deck[:] = [0]
    env.score()[0]["points"] = 99
    assert snapshot(env) == before
    # Later calls do not change what was returned earlier, nor does anyone's own change count.
    rng = random.Random(0)
    kept = [(env.last()[0], env.infos, env.rewards, env.terminations)]
    copies = copy.deepcopy(kept)
    for _ in range(30):
        mask = mask_of(env).copy()
        spoil(mask_of(env))
        env.step(pick(mask, rng))
        copies[-1][1][env.possible_agents[(env.unwrapped.view(None).to_play + 2) % 3]][
            "action_mask"
        ][:] = 7
        kept.append((env.last()[0], env.infos, env.rewards, env.terminations))
        copies.append(copy.deepcopy(kept[-1]))
    for was, is_now in zip(copies, kept, strict=True):
        np.testing.assert_equal(is_now, was)


@pytest.mark.parametrize("mask_in", MASKS)
@pytest.mark.parametrize("players", PLAYERS)
def test_anyone_observes_at_any_time(players, mask_in):
    env = pisti_v0.env(players=players, mask_in=mask_in)
    env.reset(seed=2)
    rng = random.Random(2)

    def observe_all():
        for agent in env.possible_agents:
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            if mask_in == "observation":
                mask = observation["action_mask"]
                assert bool(mask.any()) == (agent == env.agent_selection and not over)
        assert env.state_space.contains(env.state())

    over = False
    while env.agents:
        observe_all()
        over = env.terminations[env.agent_selection]
        env.step(None if over else pick(mask_of(env), rng))
        over = not env.agents or env.terminations[env.agent_selection]
    observe_all()
    assert env.unwrapped.view(0).to_play is None


# Illegal actions.


def another_card(env):
    """A card that is not in the hand to play."""
    return int(np.flatnonzero(mask_of(env) == 0)[-1])


NO_ACTIONS = [-1, 52, 10**9, None, "TD", 1.0, True, [1], np.float32(3), np.array([1])]


@pytest.mark.parametrize("encoding", ["full", "kinds"])
def test_the_raw_environment_refuses_and_changes_nothing(encoding):
    env = pisti_v0.raw_env(players=3, observation=encoding)
    env.reset(seed=5)
    same = copy.deepcopy(env)
    rng = seeded("illegal", encoding)
    while not env.terminations[env.agent_selection]:
        agent, seat = env.agent_selection, env.view(None).to_play
        wrong = (another_card(env), rng.choice(NO_ACTIONS))
        for action in wrong if rng.random() < (0.1 if INTERPRETED else 0.5) else ():
            before = snapshot(env)
            with pytest.raises(ValueError, match="action of " + agent) as caught:
                env.step(action)
            assert snapshot(env) == before
            assert repr(action) in str(caught.value)
            hand = [pisti_env.cards.card_name(card) for card in env.view(seat).hand]
            assert all(card in str(caught.value) for card in hand)
        action = pick(mask_of(env), rng)
        env.step(action)
        same.step(action)
    assert snapshot(env) == snapshot(same)
    env.reset()
    same.reset()
    assert env.deck == same.deck and env.dealer == same.dealer


def test_the_refusal_names_the_card():
    env = pisti_v0.raw_env()
    env.reset(options={"deck": list(range(52)), "dealer": 1})
    with pytest.raises(ValueError, match=r"player_0 is 51 \(KS\).* 5C 6C 7C 8C"):
        env.step(51)


@pytest.mark.parametrize("mask_in", MASKS)
@pytest.mark.parametrize("rewards", KINDS_OF_REWARD)
@pytest.mark.parametrize("players", PLAYERS)
def test_an_illegal_action_ends_the_episode(players, rewards, mask_in):
    env = pisti_v0.env(players=players, rewards=rewards, mask_in=mask_in)
    same = pisti_v0.env(players=players, rewards=rewards, mask_in=mask_in)
    rules, rng = env.unwrapped.rules, random.Random(players)
    most = 1 if rewards == "win" else rules.max_deal_points
    # By hand: 13 points a pack and 3 for the majority, and in every second play a jack pişti.
    assert (
        rules.max_deal_points == {48: 16 + 20 * 24, 100: 29 + 1000, 96: 29 + 960}[rules.num_plays]
    )
    for episode, steps in enumerate((0, 9) if INTERPRETED else (0, 1, 9, 30)):
        for each in (env, same):
            each.reset(seed=11 if episode == 0 else None)
            play_episode(each, random.Random(episode), steps) if steps else None
        assert snapshot(env) == snapshot(same)
        offender, card = env.agent_selection, another_card(env)
        if rng.random() < 0.5:
            env.last()  # it need not have been looked at
            env.observe(env.possible_agents[(env.possible_agents.index(offender) + 1) % players])
        pending = {agent: env.unwrapped._cumulative_rewards[agent] for agent in env.agents}
        env.step(card)
        assert all(env.terminations.values()) and all(env.truncations.values())
        assert len(env.terminations) == players
        penalty = -most / (rules.sides - 1)
        assert env.rewards == {a: penalty if a == offender else 0 for a in env.possible_agents}
        received = {}
        for agent in env.agent_iter():
            observation, reward, termination, truncation, info = env.last()
            assert termination and truncation
            assert info["action_mask"].dtype == np.int8 and not info["action_mask"].any()
            if mask_in == "observation":
                assert not observation["action_mask"].any()
            assert env.observation_space(agent).contains(observation)
            received[agent] = reward
            env.step(None)
        pending[offender] = penalty
        assert received == pytest.approx(pending)
        # The next episodes are as if nothing had happened.
    for episode in range(1 if INTERPRETED else 2):
        env.reset()
        same.reset()
        rngs = random.Random(episode), random.Random(episode)
        assert play_episode(env, rngs[0]) == play_episode(same, rngs[1])


def test_truncations_mean_an_illegal_action():
    env = pisti_v0.env(target=51)
    env.reset(seed=0)
    assert not any(step[4] for step in play_episode(env, random.Random(0)))
    assert env.unwrapped.illegal_actions == 0


@pytest.mark.filterwarnings("ignore:.*Illegal move")
def test_illegal_actions_are_counted_in_every_episode():
    env, bare = pisti_v0.env(), pisti_v0.raw_env()
    for count in (1, 2):
        env.reset(seed=count)
        env.step(another_card(env.unwrapped))
        for _ in env.agent_iter():
            env.step(None)
        assert env.unwrapped.illegal_actions == count
        bare.reset(seed=count)
        with pytest.raises(ValueError, match="not in its hand"):
            bare.step(another_card(bare))
        bare.step(pick(mask_of(bare), random.Random(0)))
        assert bare.illegal_actions == count


# Rewards and matches.


def shares(amounts):
    """Each side's amount less the mean of the others'."""
    return [amount - (sum(amounts) - amount) / (len(amounts) - 1) for amount in amounts]


@pytest.mark.parametrize("target", [None, 11 if INTERPRETED else 41])
@pytest.mark.parametrize("kind", KINDS_OF_REWARD)
@pytest.mark.parametrize(
    "fields", [{"players": p} for p in PLAYERS] + [{"players": 4, "partners": False}], ids=str
)
def test_rewards_add_up(fields, kind, target):
    env = pisti_v0.env(rewards=kind, target=target, **fields)
    rules, raw = env.unwrapped.rules, env.unwrapped
    for episode in range(1 if INTERPRETED else 2):
        env.reset(seed=3 if episode == 0 else None)
        rng = random.Random(episode)
        through_last = dict.fromkeys(env.possible_agents, 0.0)
        through_rewards = dict.fromkeys(env.possible_agents, 0.0)
        for agent in env.agent_iter():
            _, reward, termination, truncation, info = env.last()
            through_last[agent] += reward
            live = not (termination or truncation)
            env.step(pick(info["action_mask"], rng) if live else None)
            if live:
                assert set(env.rewards) == set(env.possible_agents)
                per_side = [env.rewards[f"player_{side}"] for side in range(rules.sides)]
                assert sum(per_side) == pytest.approx(0, abs=1e-3)
                for name, value in env.rewards.items():
                    assert type(value) is float
                    assert value == per_side[rules.side(int(name[-1]))]
                    through_rewards[name] += value
                if kind != "difference" and env.agents and not all(env.terminations.values()):
                    assert not any(env.rewards.values())
        totals = [sum(deal[side]["points"] for deal in raw.deals) for side in range(rules.sides)]
        assert [side["match_points"] for side in raw.score()] == totals
        if kind == "win":
            winners = totals.count(max(totals))
            totals = [(total == max(totals)) / winners for total in totals]
        expected = shares(totals)
        for agent in env.possible_agents:
            side = rules.side(int(agent[-1]))
            assert through_last[agent] == pytest.approx(expected[side], abs=1e-2)
            assert through_rewards[agent] == pytest.approx(expected[side], abs=1e-2)


@pytest.mark.parametrize("players", PLAYERS)
def test_a_match(players):
    env = pisti_v0.raw_env(players=players, target=61)
    sides = env.rules.sides
    env.reset(seed=players, options={"scores": [20, *[0] * (sides - 1)], "dealer": 1})
    assert env.view(None).match_scores == (20, *[0] * (sides - 1))
    rng, dealer, decks, totals = random.Random(players), 1, [], [20] + [0] * (sides - 1)
    while not any(env.terminations.values()):
        decks.append(tuple(env.deck))
        deals = len(env.deals)
        assert env.dealer == dealer
        assert env.agent_selection == f"player_{(dealer + 1) % players}"
        assert env.view(None).last_deal == (tuple(env.deals[-1]) if env.deals else None)
        # Not won yet: nobody has the target, or the highest total is shared.
        assert max(totals) < 61 or totals.count(max(totals)) > 1
        for _ in range(env.rules.num_plays):
            assert not any(env.terminations.values())
            env.step(pick(mask_of(env), rng))
        assert len(env.deals) == deals + 1
        points = [side["points"] for side in env.deals[-1]]
        totals = [a + b for a, b in zip(totals, points, strict=True)]
        assert [side["match_points"] for side in env.deals[-1]] == totals
        assert env.view(None).match_scores == tuple(totals)
        dealer = (dealer + 1) % players
    assert len(set(decks)) == len(decks) > 1
    assert max(totals) >= 61 and totals.count(max(totals)) == 1
    assert all(env.terminations.values()) and not any(env.truncations.values())
    # The last deal stays on show while the agents leave.
    shown = env.score(), env.view(None), env.deck, env.dealer
    for _ in range(players):
        env.step(None)
    assert env.agents == []
    assert (env.score(), env.view(None), env.deck, env.dealer) == shown
    assert env.score() == env.deals[-1]
    view = env.view(0)
    assert view.to_play is None and view.pile == () and view.hand == ()
    assert view.public_points == tuple(side["points"] for side in env.deals[-1])
    assert len(view.known_starters) == 3
    env.reset()
    assert env.deals == [] and set(env.view(None).match_scores) == {0}
    assert env.view(None).last_deal is None


# Given decks, dealers and scores.


def all_decks(env, episodes, rng):
    """The decks and dealers of some episodes, played by anyone."""
    decks = []
    for _ in range(episodes):
        while not any(env.terminations.values()):
            decks.append((tuple(env.deck), env.dealer))
            for _ in range(env.rules.num_plays):
                env.step(pick(mask_of(env), rng))
        env.reset()
    return decks


def test_a_given_deck_leaves_the_later_ones_as_they_were():
    given = list(range(52))
    random.Random(0).shuffle(given)
    streams, deals = {}, 2 if INTERPRETED else 6
    for name, options in {
        "nothing": None,
        "dealer": {"dealer": 1},
        "deck": {"deck": given, "dealer": 1},
        "text": {"deck": [pisti_env.cards.card_name(card).lower() for card in given], "dealer": 1},
        "scores": {"scores": [0, 0], "dealer": 1},
        "array": {"deck": np.array(given, np.int16), "dealer": np.int32(1)},
    }.items():
        env = pisti_v0.raw_env(target=60 if INTERPRETED else 400)
        env.reset(seed=8, options=options)
        # So many deals are in every stream.
        streams[name] = all_decks(env, 1, random.Random(0))[:deals]
        assert len(streams[name]) == deals
    decks = {name: [deck for deck, _ in stream] for name, stream in streams.items()}
    assert decks["dealer"] == decks["nothing"] == decks["scores"]
    for name in ("deck", "text", "array"):
        assert decks[name][0] == tuple(given)
        assert decks[name][1:] == decks["nothing"][1:]
        assert [dealer for _, dealer in streams[name]] == [1, 0, 1, 0, 1, 0][:deals]


def test_dealers_are_drawn():
    env = pisti_v0.raw_env(players=3)
    env.reset(seed=1)
    dealers = []
    for _ in range(100):
        env.reset()
        dealers.append(env.dealer)
    assert set(dealers) == {0, 1, 2}
    env.reset(seed=1)
    again = []
    for _ in range(100):
        env.reset()
        again.append(env.dealer)
    assert again == dealers


WHOLE = list(range(52))
WRONG_OPTIONS = [
    ({"deck": WHOLE[:51]}, {}, ["deck", "KS"]),
    ({"deck": [*WHOLE, 3]}, {}, ["deck", "4C"]),
    ({"deck": [*WHOLE[:51], 3]}, {}, ["deck", "KS", "4C"]),
    ({"deck": [*WHOLE[:51], 52]}, {}, ["deck", "52"]),
    ({"deck": [*WHOLE[:51], "1S"]}, {}, ["deck", "1S"]),
    ({"deck": [*WHOLE[:51], 51.0]}, {}, ["deck", "51.0"]),
    ({"deck": [*WHOLE[:51], None]}, {}, ["deck", "None"]),
    ({"deck": [*WHOLE[:51], True]}, {}, ["deck", "True"]),
    ({"deck": 5}, {}, ["deck"]),
    ({"deck": "TD"}, {}, ["deck"]),
    ({"deck": []}, {}, ["deck"]),
    ({"deck": WHOLE}, {"players": 5}, ["deck", "KS"]),
    ({"deck": WHOLE}, {"ranks": 12}, ["deck", "KC"]),
    ({"deck": [10, 23, 36, 49, *[c for c in WHOLE if c % 13 != 10]]}, {}, ["deck", "JC JD JH JS"]),
    ({"dealer": 2}, {}, ["dealer", "2"]),
    ({"dealer": -1}, {}, ["dealer", "-1"]),
    ({"dealer": 1.0}, {}, ["dealer", "1.0"]),
    ({"dealer": True}, {}, ["dealer", "True"]),
    ({"dealer": "player_1"}, {}, ["dealer", "player_1"]),
    ({"scores": [0, 0]}, {}, ["scores"]),  # no target
    ({"scores": [0]}, {"target": 51}, ["scores", "[0]"]),
    ({"scores": [0, 0, 0]}, {"target": 51}, ["scores", "[0, 0, 0]"]),
    ({"scores": [0, 0, 0, 0]}, {"target": 51, "players": 4}, ["scores", "[0, 0, 0, 0]"]),
    ({"scores": [-1, 0]}, {"target": 51}, ["scores", "-1"]),
    ({"scores": [1.5, 0]}, {"target": 51}, ["scores", "1.5"]),
    ({"scores": [True, 0]}, {"target": 51}, ["scores", "True"]),
    ({"scores": [51, 0]}, {"target": 51}, ["scores", "51"]),
    ({"scores": [55, 55]}, {"target": 51, "tie_at_target": "shared"}, ["scores", "55"]),
    ({"scores": 5}, {"target": 51}, ["scores", "5"]),
    ({"scores": np.array(5)}, {"target": 51}, ["scores", "5"]),
    ({"scores": {0: 5, 1: 7}}, {"target": 51}, ["scores", "{0: 5, 1: 7}"]),
    ({"scores": {5, 7}}, {"target": 51}, ["scores"]),
    ({"scores": b"12"}, {"target": 151}, ["scores"]),
    ({"scores": "12"}, {"target": 51}, ["scores", "12"]),
    ({"decks": [WHOLE]}, {}, ["decks"]),
    ({"dealer": 1, "seed": 3}, {}, ["seed"]),
    ({3: 4}, {}, ["3"]),
]


@pytest.mark.parametrize(("options", "fields", "words"), WRONG_OPTIONS, ids=str)
def test_wrong_options_are_named_and_change_nothing(options, fields, words):
    env = pisti_v0.raw_env(**fields)
    env.reset(seed=6)
    for _ in range(9):
        env.step(pick(mask_of(env), random.Random(6)))
    before, clone = snapshot(env), copy.deepcopy(env)
    with pytest.raises(ValueError) as caught:
        env.reset(seed=1, options=options)
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)
    assert snapshot(env) == before
    env.reset()
    clone.reset()
    assert snapshot(env) == snapshot(clone)


def test_starting_scores_that_are_not_decided():
    cases = [
        ({"target": 51}, [50, 0]),
        ({"target": 51}, [60, 60]),  # another deal
        ({"target": 51, "win_by": 5}, [54, 51]),
        ({"target": 51}, (np.int64(3), 4)),
        ({"target": 51}, np.array([3, 4])),
        ({"target": 51, "players": 3}, [50, 50, 50]),
    ]
    for fields, scores in cases:
        env = pisti_v0.raw_env(**fields)
        env.reset(options={"scores": scores})
        assert env.view(None).match_scores == tuple(scores)
        assert [side["match_points"] for side in env.score()] == list(scores)
        assert env.deals == []


def test_a_jack_on_top_and_its_replacements():
    """The deck is told before a jack is moved, and the same deck deals the same again."""
    for rule in ("pile", "stock_bottom", "stock_middle"):
        env = pisti_v0.raw_env(starter_jack=rule)
        deck = [card for card in WHOLE if card not in (10, 23)]
        deck = [*deck[:2], 23, 10, *deck[2:]]
        env.reset(options={"deck": deck, "dealer": 0})
        assert env.deck == deck
        views = [env.view(seat) for seat in range(2)]
        env.reset(options={"deck": env.deck, "dealer": 0})
        assert [env.view(seat) for seat in range(2)] == views
        assert views[0].shown_jacks == ((10, 23) if rule == "pile" else (10,))


def test_wrong_arguments():
    for arguments, words in (
        ({"observation": "everything"}, "observation is 'everything'"),
        ({"mask_in": "state"}, "mask_in is 'state'"),
        ({"rewards": "sparse"}, "rewards is 'sparse'"),
        ({"render_mode": "rgb"}, "render_mode is 'rgb'"),
        ({"rules": "texas"}, "'texas'"),
        ({"rules": 7}, "rules is 7"),
        ({"colour": "red"}, "colour"),
        ({"players": 7}, "players is 7"),
        ({"rules": {"colour": 1}}, "colour"),
    ):
        for constructor in (pisti_v0.env, pisti_v0.raw_env):
            with pytest.raises((ValueError, TypeError), match=re.escape(words)):
                constructor(**arguments)
    env = pisti_v0.raw_env()
    env.reset()
    for seat in (2, -1, "player_0", 0.0, True):
        with pytest.raises(ValueError, match="seat is"):
            env.view(seat)
    with pytest.raises(ValueError, match="observation is 'all'"):
        env.observe_as("player_0", "all")


def test_fields_override_rules():
    assert pisti_v0.env(rules="istanbul", players=4).unwrapped.rules == Rules.preset(
        "istanbul", players=4
    )
    assert pisti_v0.raw_env(rules=Rules(players=3), target=51).rules == Rules(players=3, target=51)
    assert pisti_v0.raw_env(rules={"players": 3}, target=51).rules == Rules(players=3, target=51)
    rules = Rules(players=5, target=60)
    env = pisti_v0.raw_env(rules=rules)
    for seed in range(3):
        env.reset(seed=seed, options={"scores": [1, 2, 3, 4, 5]})
    assert env.rules == rules == Rules(players=5, target=60)


# Copies.


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize(("players", "rewards"), [(2, "difference"), (4, "terminal"), (5, "win")])
def test_copies_go_on_identically(players, rewards, copy_of, wrapped):
    target = 11 if INTERPRETED else 61
    env = make(wrapped, players=players, target=target, rewards=rewards, observation="history")
    env.reset(seed=4)
    play_episode(env, random.Random(4), steps=31 if INTERPRETED else 61)
    twin = copy_of(env)
    before = snapshot(env)
    assert snapshot(twin) == before
    assert twin.unwrapped.rules == env.unwrapped.rules
    for episode in range(2):
        assert play_episode(env, random.Random(episode)) == play_episode(
            twin, random.Random(episode)
        )
        assert snapshot(env) == snapshot(twin)
        env.reset()
        twin.reset()
    # And apart: a play in one is none in the other.
    shown = snapshot(twin)
    env.step(pick(mask_of(env), random.Random(1)))
    assert snapshot(twin) == shown != snapshot(env)


def test_a_copy_before_the_first_reset():
    for copy_of in (copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))):
        env = copy_of(pisti_v0.env(players=3))
        env.reset(seed=1)
        same = pisti_v0.env(players=3)
        same.reset(seed=1)
        assert snapshot(env) == snapshot(same)


# To look at.


@pytest.mark.parametrize("players", PLAYERS)
def test_a_spectator_sees_no_hand(players):
    env = pisti_v0.env(players=players, render_mode="ansi")
    env.reset(seed=players)
    rng = random.Random(players)
    hand_seen = False
    while not all(env.terminations.values()):
        text, raw = env.render(), env.unwrapped
        view = raw.view(None)
        assert isinstance(text, str) and view.hand is None
        public = {*view.pile, *view.shown_jacks, *(card for _, card in view.plays)}
        shown = set(re.findall(r"\b[A2-9TJQK][CDHS]\b", text))
        assert shown <= {pisti_env.cards.card_name(card) for card in public}
        seat = rng.randrange(players)
        for card in raw.view(seat).hand:
            hand_seen = True
            assert pisti_env.cards.card_name(card) in raw.draw(seat)
        env.step(pick(mask_of(env), rng))
    assert hand_seen


def test_the_manual_has_the_table_of_describe():
    table = str(pisti_v0.describe("full", Rules()))
    assert table in pisti_v0.__doc__
    assert str(pisti_v0.describe()) == table
    # No other row of a table with numbers like these is in it.
    rows = re.findall(r"^\| [0-9]+(?:-[0-9]+)? \|.*$", pisti_v0.__doc__, re.MULTILINE)
    assert rows == table.splitlines()[2:]
    assert re.search(r"^\* v0", pisti_v0.__doc__, re.MULTILINE)


def test_turn_based_conversion_plays_whole_matches():
    """Its rewards add up too."""
    env = turn_based_aec_to_parallel(pisti_v0.env(players=3, target=31))
    rng = random.Random(0)
    for episode in range(2):
        observations, _ = env.reset(seed=1 if episode == 0 else None)
        totals = dict.fromkeys(env.possible_agents, 0.0)
        while env.agents:
            actions = {
                agent: pick(observations[agent]["action_mask"], rng)
                if observations[agent]["action_mask"].any()
                else None
                for agent in env.agents
            }
            observations, rewards, _, truncations, _ = env.step(actions)
            assert not any(truncations.values())
            for agent, reward in rewards.items():
                totals[agent] += reward
        points = [side["match_points"] for side in env.unwrapped.score()]
        assert list(totals.values()) == pytest.approx(shares(points), abs=1e-2)


def test_nothing_is_observed_before_the_first_reset():
    for mask_in in MASKS:
        env = pisti_v0.raw_env(mask_in=mask_in)
        for look in (lambda e: e.observe("player_0"), lambda e: e.observe_as("player_0", "kinds")):
            with pytest.raises(gymnasium.error.ResetNeeded):
                look(env)


def test_nothing_is_legal_for_an_agent_that_others_have_stopped():
    """As wrappers do that limit the steps."""
    for flags in ("terminations", "truncations"):
        env = pisti_v0.raw_env()
        env.reset(seed=1)
        agent = env.agent_selection
        assert env.observe(agent)["action_mask"].any()
        setattr(env, flags, dict.fromkeys(env.agents, True))
        assert not env.observe(agent)["action_mask"].any()
        assert not env.observe_as(agent, "kinds")["action_mask"].any()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_mask_that_is_written_into_in_a_copy_spoils_no_other(copied):
    env = pisti_v0.raw_env()
    env.reset(seed=1)
    other = copied(env)
    waiting = other.possible_agents[1 - other.possible_agents.index(other.agent_selection)]
    other.infos[waiting]["action_mask"][:] = 1
    for table in (env, other):
        assert not table.observe(waiting)["action_mask"].any()
        table.reset()
        assert not table.infos[waiting]["action_mask"].any() or table.agent_selection == waiting


@pytest.mark.parametrize("encoding", ["full", "kinds"])
@pytest.mark.parametrize("mask_in", MASKS)
@pytest.mark.parametrize("written", [0, 1])
@pytest.mark.filterwarnings("ignore:.*Illegal move")
def test_what_is_written_into_a_mask_decides_nothing(written, mask_in, encoding):
    """A legal play stays one, and an illegal one ends the episode."""

    def spoil(env):
        observation, *_, info = env.last()
        if mask_in == "observation":
            observation["action_mask"][:] = written
        info["action_mask"][:] = written
        env.infos[env.agent_selection]["action_mask"][:] = written

    env = pisti_v0.env(mask_in=mask_in, observation=encoding)
    env.reset(seed=1)
    for step in range(20):
        raw, mask = env.unwrapped, mask_of(env).copy()
        spoil(env)
        if step < 19:
            env.step(pick(mask, random.Random(step)))
            assert len(raw.view(None).plays) == step + 1 and not any(env.truncations.values())
            continue
        before = raw.view(None)
        illegal = int(np.flatnonzero(mask == 0)[0])
        with pytest.raises(ValueError, match="not in its hand"):
            raw.step(illegal)
        env.step(illegal)
        assert all(env.truncations.values()) and raw.view(None).plays == before.plays


def test_masks_of_those_who_wait_are_their_own():
    """Fresh arrays that may be written into, as torch.from_numpy wants them."""
    env = pisti_v0.raw_env(players=4)
    env.reset(seed=1)
    masks = [info["action_mask"] for info in env.infos.values()]
    for mask in masks:
        assert mask.flags.writeable and mask.flags.owndata
        mask[:] = 1
    env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
    assert sum(info["action_mask"].any() for info in env.infos.values()) == 1


# Threads, copies, pickles, and what is broken off.

LOOKS = [
    lambda env: env.observe_as(env.agent_selection, "kinds"),
    lambda env: env.observe(env.possible_agents[1 - int(env.agent_selection[-1])]),
    lambda env: env.state(),
]


@pytest.mark.parametrize("use", [lambda env: env.step(0), lambda env: env.reset(), *LOOKS])
def test_a_second_thread_is_refused(use, monkeypatch):
    """The first one is in the middle of a step meanwhile."""
    env, same = pisti_v0.raw_env(), pisti_v0.raw_env()
    for each in (env, same):
        each.reset(seed=0)
    play_on, refused = env._tables.play_on, []

    def meanwhile(*arguments):
        def second():
            with pytest.raises((RuntimeError, gymnasium.error.ResetNeeded)):
                use(env)
            refused.append(True)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        play_on(*arguments)

    monkeypatch.setattr(env._tables, "play_on", meanwhile)
    action = pick(mask_of(env), random.Random(0))
    env.step(action)
    same.step(action)
    assert refused
    monkeypatch.undo()
    assert snapshot(env) == snapshot(same)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("at", ["play_on", "observe", "_give_turn"])
def test_what_is_broken_off_asks_for_a_reset(at, wrapped, monkeypatch):
    """Ctrl-C in the middle of a step or a reset, before or after the play."""
    env, same = make(wrapped), make(wrapped)
    for each in (env, same):
        each.reset(seed=0)
    raw = env.unwrapped
    owner = raw if at == "_give_turn" else raw._tables
    inner = getattr(owner, at)

    def broken_off(*arguments):
        inner(*arguments)
        raise KeyboardInterrupt

    action, agent = pick(mask_of(env), random.Random(0)), env.agent_selection
    monkeypatch.setattr(owner, at, broken_off)
    with pytest.raises(KeyboardInterrupt):
        env.reset() if at == "observe" else env.step(action)
    monkeypatch.undo()
    for use in (
        env.last,
        env.state,
        raw.score,
        lambda: env.step(action),
        lambda: env.observe(agent),
        lambda: raw.observe_as(agent, "kinds"),
        lambda: raw.view(0),
        lambda: raw.deck,
    ):
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
            use()
    for each in (env, same):
        each.reset(seed=3)
    assert snapshot(env) == snapshot(same)


def out_of_band(env):
    """Pickled as Ray and joblib do it: arrays lie in memory that is read-only, anywhere."""
    buffers = []
    pickled = pickle.dumps(env, protocol=5, buffer_callback=buffers.append)
    memory = [memoryview(b"." + buffer.raw().tobytes())[1:] for buffer in buffers]
    return pickle.loads(pickled, buffers=memory)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("copied", [copy.copy, out_of_band])
def test_other_copies_go_on_by_themselves(copied, wrapped):
    env, same = make(wrapped, target=31), make(wrapped, target=31)
    for each in (env, same):
        each.reset(seed=1)
        play_episode(each, random.Random(0), steps=9)
    twin = copied(env)
    assert snapshot(twin) == snapshot(same)
    steps = 10 if INTERPRETED else None
    record = play_episode(twin, random.Random(1), steps)
    assert snapshot(env) == snapshot(same)
    assert play_episode(same, random.Random(1), steps) == record
    twin.reset()


# In a wrong order, and of unknown names.


@pytest.mark.parametrize(
    "use", [lambda env: env.step(0), lambda env: env.last(), lambda env: env.observe("player_0")]
)
def test_before_the_first_reset(use):
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
        use(pisti_v0.raw_env())


def test_after_the_end():
    env = pisti_v0.raw_env()
    env.reset(seed=1)
    play_episode(env, random.Random(0))
    assert env.agents == []
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"the episode is over; call reset\(\)"):
        env.step(0)


@pytest.mark.parametrize("agent", ["player_2", "", None, 0, [1]], ids=repr)
@pytest.mark.parametrize("method", ["observe", "observe_as", "observation_space", "action_space"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_unknown_agent_is_named(wrapped, method, agent):
    env = make(wrapped)
    env.reset(seed=1)
    arguments = ["kinds"] if method == "observe_as" else []
    with pytest.raises(ValueError, match=r"agent is .*; expected one of player_0, player_1"):
        getattr(env, method)(agent, *arguments)
