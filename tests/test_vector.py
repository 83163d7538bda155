"""Many tables at once are many times one table."""

import copy
import os
import pickle
import signal
import threading
import time
import warnings

import gymnasium
import numba
import numpy as np
import pytest
from places import ENCODINGS, seeded
from referee import complete, numbers, random_deck, random_rules

from pisti_env import Rules, pisti_v0, vector
from pisti_env.cards import KIND_OF_CARD
from pisti_env.compile import compiled
from pisti_env.compiled_rules import compiled_rules
from pisti_env.game import finish_turn, play_card
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
KINDS_OF_REWARD = ["difference", "terminal", "win"]
PLAYERS = [2, 3, 4, 5, 6]


def choose(batch, rng):
    """Random legal actions."""
    return (batch.action_masks * (1 + rng.random(batch.action_masks.shape))).argmax(axis=1)


class OneByOne:
    """AEC environments that follow the tables of a batch, given its decks and dealers."""

    def __init__(self, batch, observation, rewards):
        self.batch, self.rules = batch, batch.rules
        self.envs = [
            pisti_v0.raw_env(rules=batch.rules, observation=observation, rewards=rewards)
            for _ in range(batch.num_envs)
        ]
        for table in range(batch.num_envs):
            self.begin(table)

    def begin(self, table, scores=None):
        batch = self.batch
        options = {"deck": batch.decks[table], "dealer": batch.dealers[table]}
        if scores is not None:
            options["scores"] = scores
        self.envs[table].reset(options=options)

    def compare(self):
        batch = self.batch
        for table, env in enumerate(self.envs):
            observation = env.observe(env.agent_selection)
            assert batch.observations[table].tobytes() == observation["observation"].tobytes()
            assert batch.action_masks[table].tobytes() == observation["action_mask"].tobytes()
            assert batch.seats[table] == int(env.agent_selection[-1])
            assert batch.decks[table].tolist() == env.deck
            assert batch.dealers[table] == env.dealer


@pytest.mark.parametrize("rewards", KINDS_OF_REWARD)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("players", PLAYERS)
def test_a_table_is_an_environment(players, encoding, rewards):
    """One deal after the other, every number of every step."""
    rng = np.random.default_rng(players)
    num_envs = 2 if INTERPRETED else 3
    batch = DealBatch(num_envs, players=players, observation=encoding, rewards=rewards, seed=1)
    one_by_one = OneByOne(batch, encoding, rewards)
    for _ in range(10 if INTERPRETED else 2 * batch.rules.num_plays):
        one_by_one.compare()
        actions = choose(batch, rng)
        paid, ended = batch.step(actions)
        assert paid.dtype == np.float32 and paid.shape == (num_envs, batch.rules.sides)
        assert ended.dtype == np.bool_ and (ended == batch.deal_ended).all()
        for table, env in enumerate(one_by_one.envs):
            env.step(int(actions[table]))
            by_side = [env.rewards[f"player_{side}"] for side in range(batch.rules.sides)]
            assert paid[table].tolist() == by_side
            assert ended[table] == all(env.terminations.values())
            if ended[table]:
                points = [side["points"] for side in env.score()]
                assert batch.final_scores[table].tolist() == points
                one_by_one.begin(table)


@pytest.mark.parametrize("case", range(4))
def test_tables_under_random_rules(case):
    """Matches too: their later deals are given to the environment with the scores so far."""
    rng = seeded("vector", case)
    numpy_rng = np.random.default_rng(case)
    for _ in range(1 if INTERPRETED else 8):
        rules, rewards = Rules(**random_rules(rng)), rng.choice(KINDS_OF_REWARD[:2])
        encoding = rng.choice(ENCODINGS)
        batch = DealBatch(3, rules, observation=encoding, rewards=rewards)
        batch.reset(seed=rng.randrange(2**31))
        one_by_one = OneByOne(batch, encoding, rewards)
        episode_points = np.zeros((3, rules.sides))
        for _ in range(10 if INTERPRETED else 2 * rules.num_plays + 3):
            one_by_one.compare()
            states = batch.states()
            actions = choose(batch, numpy_rng)
            paid, ended = batch.step(actions)
            for table, env in enumerate(one_by_one.envs):
                assert states[table].tobytes() == env.state().tobytes()
                deals = len(env.deals)
                env.step(int(actions[table]))
                assert batch.deal_ended[table] == (len(env.deals) > deals)
                if not batch.deal_ended[table]:
                    assert not ended[table]
                    assert paid[table].tolist() == [
                        env.rewards[f"player_{side}"] for side in range(rules.sides)
                    ]
                    continue
                points = [side["points"] for side in env.deals[-1]]
                assert batch.final_scores[table].tolist() == points
                assert ended[table] == all(env.terminations.values())
                episode_points[table] += points
                if rewards == "terminal":
                    others = episode_points[table].sum() - episode_points[table]
                    expected = episode_points[table] - others / (rules.sides - 1)
                    assert paid[table] == pytest.approx(expected if ended[table] else 0, abs=0.01)
                else:
                    assert paid[table].tolist() == [
                        env.rewards[f"player_{side}"] for side in range(rules.sides)
                    ]
                scores = None
                if ended[table]:
                    episode_points[table] = 0
                elif rules.target is not None:
                    scores = [side["match_points"] for side in env.deals[-1]]
                one_by_one.begin(table, scores)


def test_a_match_played_by_both():
    """Whole matches: the same deals in `deals`, and the end at the same play."""
    rules = Rules(players=3, target=41)
    batch = DealBatch(1, rules, observation="full", rewards="win", seed=12)
    env = pisti_v0.raw_env(rules=rules, rewards="win")
    env.reset(seed=12)  # table 0's decks
    rng = np.random.default_rng(0)
    matches, points = 0, []
    while matches < 2 and not (INTERPRETED and len(points) > 1):
        assert batch.decks[0].tolist() == env.deck and batch.dealers[0] == env.dealer
        actions = choose(batch, rng)
        paid, ended = batch.step(actions)
        env.step(int(actions[0]))
        assert paid[0].tolist() == [env.rewards[f"player_{side}"] for side in range(3)]
        if batch.deal_ended[0]:
            points.append(batch.final_scores[0].tolist())
            assert ended[0] == all(env.terminations.values())
        if ended[0]:
            matches += 1
            assert [[side["points"] for side in deal] for deal in env.deals] == points
            assert paid.max() > 0 and paid.sum() == pytest.approx(0, abs=1e-6)
            points = []
            env.reset()


def play(batch, steps, seed=0):
    """A record of a batch whose actions depend on the cards and the table alone."""
    record = []
    for step in range(steps):
        noise = (np.arange(batch.action_masks.shape[1]) * 7 + step * 3 + seed) % 11
        actions = (batch.action_masks * (1 + noise)).argmax(axis=1)
        before = (batch.observations.copy(), batch.action_masks.copy(), batch.seats.copy())
        paid, ended = batch.step(actions)
        record.append(
            [*before, paid, ended, batch.deal_ended.copy(), batch.decks, batch.dealers]
            + [np.where(batch.deal_ended[:, None], batch.final_scores, 0), batch.states()]
        )
    return record


@pytest.mark.parametrize("target", [None, 21])
@pytest.mark.parametrize(("num_envs", "threads"), [(1, 1), (5, 1), (16, 3), (13, 13), (16, 50)])
def test_a_table_is_the_same_in_any_batch(threads_always, num_envs, threads, target):
    steps = 4 if INTERPRETED else 150
    largest = DealBatch(16, target=target, seed=3)
    other = DealBatch(num_envs, target=target, seed=3, threads=threads)
    records = play(largest, steps), play(other, steps)
    for one, two in zip(*records, strict=True):
        for a, b in zip(one, two, strict=True):
            assert a[:num_envs].tobytes() == b.tobytes()
    for batch in (largest, other):
        batch.reset()  # goes on
    assert largest.decks[:num_envs].tolist() == other.decks.tolist()
    for encoding in ENCODINGS:
        one, two = largest.observe_as(encoding), other.observe_as(encoding)
        assert one[:num_envs].tobytes() == two.tobytes()
    other.close()


def test_seeds():
    batch = DealBatch(64, seed=0)
    assert len({tuple(deck) for deck in batch.decks.tolist()}) == 64
    first = batch.decks.tolist()
    batch.reset()
    second = batch.decks.tolist()
    assert not {tuple(deck) for deck in first} & {tuple(deck) for deck in second}
    batch.reset(seed=0)  # zero is a seed
    assert batch.decks.tolist() == first
    batch.reset()
    assert batch.decks.tolist() == second
    batch.reset(seed=1)
    assert batch.decks.tolist() != first
    assert DealBatch(64).decks.tolist() != DealBatch(64).decks.tolist()  # unpredictable


def test_restarted_tables_go_on_with_their_own_decks():
    """Decks are drawn by table and deal, whatever was played."""
    batch = DealBatch(8, seed=2)
    play(batch, 48)
    after = batch.decks.tolist()
    again = DealBatch(8, seed=2)
    again.reset()
    assert again.decks.tolist() == after


@pytest.mark.parametrize("encoding", ["kinds", "full"])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_illegal_action_is_refused_before_anything_is_played(threads_always, encoding, threads):
    batch = DealBatch(9, observation=encoding, players=3, seed=5, threads=threads)
    same = DealBatch(9, observation=encoding, players=3, seed=5)
    rng = np.random.default_rng(0)
    for _ in range(5 if INTERPRETED else 40):
        for wrong in (-1, 52, 10**12, None):
            actions = choose(batch, rng)
            table = int(rng.integers(9))
            illegal = int(np.flatnonzero(batch.action_masks[table] == 0)[0])
            actions[table] = illegal if wrong is None else wrong
            state = batch.states(), batch.observations.copy(), batch.decks
            with pytest.raises(ValueError) as caught:
                batch.step(actions)
            text, seat = str(caught.value), int(batch.seats[table])
            assert f"table {table} " in text and f"seat {seat}" in text
            assert str(actions[table]) in text
            hand = batch.observe_as("full", np.array([table]))[0, :52].nonzero()[0]
            cards = ["A23456789TJQK"[card % 13] + "CDHS"[card // 13] for card in hand.tolist()]
            assert all(card in text for card in cards)
            for before, after in zip(
                state, (batch.states(), batch.observations, batch.decks), strict=True
            ):
                assert before.tobytes() == after.tobytes()
        actions = choose(batch, rng)
        one, two = batch.step(actions), same.step(actions)
        assert one[0].tobytes() == two[0].tobytes() and one[1].tobytes() == two[1].tobytes()
        assert batch.states().tobytes() == same.states().tobytes()
    batch.close()


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(3),
        np.zeros(3, bool),
        np.zeros(2, int),
        np.zeros((3, 1), int),
        [None, 1, 2],
        "abc",
        5,
        [[1], [2, 3], [4]],
    ],
    ids=str,
)
def test_actions_of_a_wrong_form(actions):
    batch = DealBatch(3, seed=0)
    before = batch.states()
    with pytest.raises(ValueError, match="actions"):
        batch.step(actions)
    assert batch.states().tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_actions_of_any_integer_type(dtype):
    batch, same = DealBatch(4, seed=0), DealBatch(4, seed=0)
    actions = batch.action_masks.argmax(axis=1)
    batch.step(actions.astype(dtype))
    same.step(actions.tolist())
    assert batch.states().tobytes() == same.states().tobytes()


def test_given_decks_and_dealers():
    rng = seeded("decks")
    for _ in range(3 if INTERPRETED else 30):
        fields = random_rules(rng)
        fields.pop("target", None)
        rules = Rules(**fields)
        decks = []
        while len(decks) < 4:
            deck = list(numbers(random_deck(complete(fields), rng)))
            env = pisti_v0.raw_env(rules=rules)
            try:
                env.reset(options={"deck": deck})
            except ValueError:
                continue
            decks.append(deck)
        dealers = [rng.randrange(rules.players) for _ in range(4)]
        batch = DealBatch(4, rules, seed=1)
        batch.reset(decks=decks, dealers=dealers)
        assert batch.decks.tolist() == decks and batch.dealers.tolist() == dealers
        for table in range(4):
            env.reset(options={"deck": decks[table], "dealer": dealers[table]})
            assert batch.states()[table].tobytes() == env.state().tobytes()
        # The later deals are as they would have been, and the dealers of the others are drawn.
        plain = DealBatch(4, rules, seed=1)
        plain.reset()
        batch.reset(seed=1, decks=decks)
        assert batch.dealers.tolist() == DealBatch(4, rules, seed=1).dealers.tolist()
        batch.reset()
        assert batch.decks.tolist() == plain.decks.tolist()
        assert batch.dealers.tolist() == plain.dealers.tolist()


GOOD = np.stack([np.arange(52), np.arange(52)[::-1]])
JACKS = np.array([10, 23, 36, 49, *[card for card in range(52) if card % 13 != 10]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"decks": GOOD[:1]}, ["decks", "(1, 52)", "(2, 52)"]),
        ({"decks": GOOD[:, :51]}, ["decks", "(2, 51)"]),
        ({"decks": GOOD.astype(float)}, ["decks", "float64"]),
        ({"decks": [GOOD[0], [*range(51), 3]]}, ["decks[1]", "KS", "4C"]),
        ({"decks": [GOOD[0], [*range(51), 307]]}, ["decks[1]", "307"]),  # 51 in int8
        ({"decks": [GOOD[0], [-1, *range(51)]]}, ["decks[1]", "-1"]),
        ({"decks": [GOOD[0], JACKS]}, ["deck", "not a jack"]),
        ({"decks": [[1, 2], [3]]}, ["decks"]),
        ({"decks": "decks"}, ["decks"]),
        ({"dealers": [0]}, ["dealers"]),
        ({"dealers": 1}, ["dealers"]),
        ({"dealers": [0, 2]}, ["dealer", "2"]),
        ({"dealers": [0, -1]}, ["dealer", "-1"]),
        ({"dealers": [0, 1.0]}, ["dealer", "1.0"]),
        ({"dealers": [0, True]}, ["dealer", "True"]),
        ({"dealers": [[1], [0, 1]]}, ["dealers"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"seed": 1.5}, ["seed", "1.5"]),
        ({"seed": 3, "dealers": [0, 9]}, ["dealer", "9"]),
    ],
    ids=str,
)
def test_a_wrong_reset_is_named_and_changes_nothing(arguments, words):
    batch, same = DealBatch(2, seed=7), DealBatch(2, seed=7)
    for each in (batch, same):
        play(each, 5)
    before = batch.states(), batch.observations.copy(), batch.decks, batch.deal_ended.copy()
    with pytest.raises(ValueError) as caught:
        batch.reset(**arguments)
    assert all(word in str(caught.value) for word in words), caught.value
    after = batch.states(), batch.observations, batch.decks, batch.deal_ended
    assert [array.tobytes() for array in before] == [array.tobytes() for array in after]
    for each in (batch, same):
        each.reset()
    assert batch.decks.tolist() == same.decks.tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"num_envs": 2.0}, "num_envs is 2.0"),
        ({"num_envs": 2, "threads": 0}, "threads is 0"),
        ({"num_envs": 2, "observation": "all"}, "observation is 'all'"),
        ({"num_envs": 2, "rewards": "sparse"}, "rewards is 'sparse'"),
        ({"num_envs": 2, "rules": "texas"}, "'texas'"),
        ({"num_envs": 2, "colour": 1}, "colour"),
        ({"num_envs": 2, "seed": -5}, "seed is -5"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        DealBatch(**arguments)


def test_buffers_are_rewritten_in_place_and_results_are_not():
    batch = DealBatch(4, seed=0)
    buffers = {
        name: getattr(batch, name)
        for name in ("observations", "action_masks", "seats", "deal_ended", "final_scores")
    }
    assert buffers["observations"].dtype == np.float32
    assert buffers["action_masks"].dtype == np.int8 and buffers["seats"].dtype == np.int8
    rng = np.random.default_rng(0)
    kept, copies = [], []
    for step in range(100 if not INTERPRETED else 5):
        old = buffers["observations"].copy()
        kept.append((*batch.step(choose(batch, rng)), batch.decks, batch.dealers, batch.states()))
        copies.append([array.copy() for array in kept[-1]])
        assert all(getattr(batch, name) is buffer for name, buffer in buffers.items())
        assert (old != buffers["observations"]).any()
        if step % 40 == 39:
            batch.reset()
            assert all(getattr(batch, name) is buffer for name, buffer in buffers.items())
            assert not batch.deal_ended.any()
    for arrays, were in zip(kept, copies, strict=True):
        assert [a.tobytes() for a in arrays] == [w.tobytes() for w in were]


@pytest.mark.parametrize("threads", [1, 3])
def test_other_encodings_of_some_rows(threads_always, threads):
    batch = DealBatch(7, players=3, observation="kinds", seed=1, threads=threads)
    rng = np.random.default_rng(1)
    for _ in range(10):
        batch.step(choose(batch, rng))
    for encoding in ENCODINGS:
        layout = pisti_v0.describe(encoding, players=3)
        whole, masks = batch.observe_as(encoding), batch.action_masks_as(encoding)
        assert whole.shape == (7, layout.size) and whole.dtype == np.float32
        assert masks.shape == (7, 15 if "kinds" in encoding else 52) and masks.dtype == np.int8
        same = DealBatch(7, players=3, observation=encoding, seed=1)
        rows_of = [
            np.array([2]),
            np.array([6, 0, 3]),
            np.array([], dtype=int),
            np.array([1, 1, 1, 5, 5, 1, 1, 0, 2, 3]),  # more rows than tables
            np.array([-1, 0]),
            np.array([True, False, True, True, False, False, True]),
            slice(None, None, 2),
            slice(None, None, -1),
        ]
        for rows in rows_of:
            assert batch.observe_as(encoding, rows).tobytes() == whole[rows].tobytes()
            assert batch.observe_as(encoding, rows).shape == whole[rows].shape
            assert batch.action_masks_as(encoding, rows).tobytes() == masks[rows].tobytes()
        for rows in (np.array([7]), np.array([-8]), np.zeros((2, 2), np.int64)):
            with pytest.raises((ValueError, IndexError)):
                batch.observe_as(encoding, rows)
        whole[:] = 7  # fresh arrays
        assert batch.observe_as(encoding).max() <= 1
        assert same.observations.shape == whole.shape
    kinds = batch.observe_as("kinds")
    assert kinds.tobytes() == batch.observations.tobytes()
    assert batch.action_masks_as("kinds").tobytes() == batch.action_masks.tobytes()
    with pytest.raises(ValueError, match="observation is 'all'"):
        batch.observe_as("all")
    batch.close()


@pytest.mark.parametrize(
    "form",
    [
        lambda actions: np.stack([actions, actions + 1], axis=1)[:, 0],
        lambda actions: actions.repeat(3)[::3],
        lambda actions: actions[::-1].copy()[::-1],
        lambda actions: np.frombuffer(actions.tobytes(), actions.dtype),
    ],
    ids=["column", "strided", "reversed", "read-only"],
)
def test_actions_may_lie_anywhere_in_memory(form):
    batch, same = DealBatch(9, seed=2), DealBatch(9, seed=2)
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = choose(batch, rng).astype(np.int64)
        rewards, _ = batch.step(form(actions))
        assert rewards.tobytes() == same.step(actions)[0].tobytes()
        assert batch.observations.tobytes() == same.observations.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_from_memory_that_is_read_only_goes_on(threads_always, threads):
    """As a worker gets it that shares its memory with others."""
    batch = DealBatch(5, target=51, seed=3, threads=threads)
    buffers = []
    pickled = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    other = pickle.loads(pickled, buffers=[bytes(buffer.raw()) for buffer in buffers])
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = choose(batch, rng)
        assert other.step(actions)[0].tobytes() == batch.step(actions)[0].tobytes()
        assert other.observations.tobytes() == batch.observations.tobytes()
    other.close()


def test_states_are_those_of_the_environment():
    batch = DealBatch(3, players=5, seed=4)
    envs = []
    for table in range(3):
        env = pisti_v0.raw_env(players=5, observation="kinds")
        env.reset(options={"deck": batch.decks[table], "dealer": batch.dealers[table]})
        envs.append(env)
    rng = np.random.default_rng(0)
    for _ in range(5 if INTERPRETED else 99):
        actions = choose(batch, rng)
        batch.step(actions)
        states = batch.states()
        for table, env in enumerate(envs):
            env.step(int(actions[table]))
            assert states[table].tobytes() == env.state().tobytes()


def test_rewards_of_all_sides_add_up_to_the_margin():
    """ "difference" over a deal is the margin of the deal, at every table."""
    for players in PLAYERS:
        batch = DealBatch(2 if INTERPRETED else 50, players=players, seed=8)
        rng = np.random.default_rng(players)
        total = np.zeros((batch.num_envs, batch.rules.sides))
        for _ in range(batch.rules.num_plays):
            total += batch.step(choose(batch, rng))[0]
        assert batch.deal_ended.all()
        scores, sides = batch.final_scores, batch.rules.sides
        others = (scores.sum(axis=1, keepdims=True) - scores) / (sides - 1)
        assert total == pytest.approx(scores - others, abs=1e-3)
        assert total.sum(axis=1) == pytest.approx(0, abs=1e-3)
        # Every card and every point of the packs is in it.
        cards = 13 * batch.rules.num_packs
        assert (scores.sum(axis=1) >= cards).all()


# What else may come to a batch: states, threads, copies, and writing into what it hands out.


@pytest.fixture
def threads_always(monkeypatch):
    """Few tables share threads too, in every second step: a trial that never ends."""
    monkeypatch.setattr(vector, "FEWEST_TABLES", 1)
    monkeypatch.setattr(vector, "TRIAL_STEPS", 10**9)


def in_the_middle(case):
    """A batch of matches under random rules, some steps on, and random numbers."""
    rng = seeded("state", case)
    rules = Rules(**{**random_rules(rng), "target": rng.choice([None, 21, 151])})
    batch = DealBatch(3, rules, rewards=rng.choice(KINDS_OF_REWARD), seed=case)
    numpy_rng = np.random.default_rng(case)
    for _ in range(rng.randrange(5 if INTERPRETED else 3 * rules.num_plays)):
        batch.step(choose(batch, numpy_rng))
    return batch, numpy_rng


def shown(batch):
    """All that shows of a batch."""
    tables = range(batch.num_envs)
    seats = (None, *range(batch.rules.players))
    return (
        [array.tobytes() for array in (batch.states(), batch.observations, batch.action_masks)],
        [batch.position(table, seat) for table in tables for seat in seats],
        [(batch.score(table), batch.view(table, 0)) for table in tables],
    )


@pytest.mark.parametrize("case", range(2 if INTERPRETED else 30))
def test_a_batch_goes_on_from_a_state(case):
    batch, rng = in_the_middle(case)
    other = DealBatch(3, batch.rules, rewards=batch._tables.reward_kind, seed=case + 1)
    other.set_state(batch.get_state())
    assert shown(other) == shown(batch)
    for _ in range(3 if INTERPRETED else 2 * batch.rules.num_plays):
        actions = choose(batch, rng)
        one, two = batch.step(actions), other.step(actions)
        assert [a.tobytes() for a in one] == [a.tobytes() for a in two]
    assert shown(other) == shown(batch)


def damage(state, rng):
    """Something wrong with one array of a state, most often some bits of it."""
    name = rng.choice(sorted(state))
    array = state[name]
    kind = rng.integers(10)
    if kind == 0:
        state[name] = array[:, np.newaxis]
    elif kind == 1:
        state[name] = array.astype(np.float32)
    elif kind == 2:
        del state[name]
    elif kind == 3:
        state[name] = rng.integers(0, 256, array.nbytes).astype(np.uint8).view(array.dtype)
        state[name] = state[name].reshape(array.shape)
    elif kind == 4 and array.dtype == np.float64:
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -1e300])
    else:
        raw = array.reshape(-1).view(np.uint8)
        for _ in range(5):
            raw[rng.integers(raw.size)] ^= np.uint8(1 << rng.integers(8))
    return name


@pytest.mark.parametrize("case", range(2 if INTERPRETED else 10))
def test_a_damaged_state_is_refused_or_a_state_that_can_be(case):
    """Bits of a seed, say, are as good as others; what is taken plays on whole deals."""
    batch, rng = in_the_middle(case)
    good, refused = batch.get_state(), []
    for _ in range(2 if INTERPRETED else 40):
        before = shown(batch)
        state = {name: array.copy() for name, array in good.items()}
        name = damage(state, rng)
        try:
            batch.set_state(state)
        except ValueError as error:
            refused.append((name, str(error)))
            assert shown(batch) == before
        for _ in range(2 if INTERPRETED else batch.rules.num_plays + 1):
            batch.step(choose(batch, rng))
        batch.set_state(good)
    assert all(name in message and "\n" not in message for name, message in refused)
    assert refused or INTERPRETED


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("decks", (1, 0), 77, "decks[1]"),
        ("decks", (1, 0), -128, "decks[1]"),
        ("dealers", 2, 2, "dealers of table 2 has 2"),
        ("dealers", 0, -1, "dealers of table 0 has -1"),
        ("match_points", (1, 0), 151, "match_points of table 1 is [151, "),
        ("match_points", (1, 1), -1, "match_points of table 1 has -1"),
        ("match_points", (1, 1), 2**62, "match_points of table 1 has"),
        ("plays", (2, 3), -1, "plays of table 2 has -1 as play 3"),
        ("plays", (2, 3), 99, "plays of table 2 has 99 as play 3"),
        ("plays", (2, 40), 5, "plays of table 2 has -1 as play 7"),
        ("deals_dealt", 1, -5, "deals_dealt of table 1"),
        ("earned", (0, 1), np.nan, "earned of table 0 has nan"),
        ("last_deals", (0, 0, 0), 5, "last_deals of table 0 has -1"),
        ("numbers", 1, -5, "numbers of table 1"),
    ],
)
def test_a_state_out_of_range_is_named(name, place, value, words):
    batch = DealBatch(3, target=151, seed=0)
    play(batch, 7)
    state, before = batch.get_state(), shown(batch)
    state[name][place] = value
    with pytest.raises(ValueError) as caught:
        batch.set_state(state)
    assert words in str(caught.value)
    assert shown(batch) == before


def test_a_state_of_a_whole_deal_is_refused():
    batch = DealBatch(2, seed=0)
    play(batch, batch.rules.num_plays - 1)
    state = batch.get_state()
    state["plays"][1, -1] = batch.view(1, int(batch.seats[1])).hand[0]
    with pytest.raises(ValueError, match="plays of table 1 is a whole deal"):
        batch.set_state(state)
    for nothing in (None, 5, [state]):
        with pytest.raises(ValueError, match="expected a dict"):
            batch.set_state(nothing)


@pytest.mark.parametrize("case", range(1 if INTERPRETED else 8))
def test_a_table_shows_what_the_environment_does(case):
    rng, numpy_rng = seeded("shows", case), np.random.default_rng(case)
    rules = Rules(**{**random_rules(rng), "target": rng.choice([None, 31])})
    batch = DealBatch(1, rules, seed=case)
    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=case)
    for _ in range(5 if INTERPRETED else 3 * rules.num_plays):
        for seat in (None, *range(rules.players)):
            assert batch.view(0, seat) == env.view(seat)
            assert batch.position(0, seat) == env.position(seat)
        assert batch.score(0) == env.score()
        actions = choose(batch, numpy_rng)
        of_kind = actions[0] == KIND_OF_CARD
        card = np.flatnonzero(batch.action_masks_as("full")[0] & of_kind)[0]
        env.step(int(card))
        if batch.step(actions)[1][0]:
            env.reset()


@pytest.mark.parametrize("use", ["view", "score", "position"])
@pytest.mark.parametrize("table", [-1, 3, 1.0, None, "0", True])
def test_a_table_that_is_not_there(use, table):
    batch = DealBatch(3, seed=0)
    with pytest.raises(ValueError, match=r"table is .*; expected an int from 0 to 2"):
        getattr(batch, use)(table, *([0] if use == "view" else []))
    with pytest.raises(ValueError, match="seat is 2"):
        batch.view(0, 2)


def test_what_is_written_into_the_buffers_decides_nothing():
    batch, same = DealBatch(5, seed=3), DealBatch(5, seed=3)
    rng = np.random.default_rng(0)
    for step in range(5 if INTERPRETED else 60):
        actions = choose(same, rng)
        masks = same.action_masks.copy()
        for buffer in (batch.action_masks, batch.observations, batch.final_scores):
            buffer[:] = step % 2
        batch.seats[:], batch.deal_ended[:] = 100, True
        wrong = actions.copy()
        wrong[2] = np.flatnonzero(masks[2] == 0)[0]
        with pytest.raises(ValueError, match=f"seat {same.seats[2]}"):
            batch.step(wrong)
        for buffer in (batch.action_masks, batch.observations, batch.seats):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # from NumPy 2.5 on it says not to
                buffer.shape = -1  # as a user may
        results = batch.step(actions), same.step(actions)
        assert results[0][0].tobytes() == results[1][0].tobytes()
        for name in ("observations", "action_masks", "seats", "deal_ended"):
            assert getattr(batch, name).tobytes() == getattr(same, name).tobytes()


@pytest.mark.parametrize(
    "use",
    [
        lambda batch: batch.step(batch.action_masks.argmax(axis=1)),
        lambda batch: batch.reset(),
        lambda batch: batch.observe_as("full"),
        lambda batch: batch.action_masks_as("full"),
        lambda batch: batch.states(),
        lambda batch: batch.view(0, None),
        lambda batch: batch.score(0),
        lambda batch: batch.get_state(),
        lambda batch: batch.set_state({}),
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
    ],
)
def test_a_second_thread_is_refused(use, monkeypatch):
    """The first one is in the middle of a step meanwhile."""
    batch, same = DealBatch(3, seed=0), DealBatch(3, seed=0)
    play_on, refused = batch._tables.play_on, []

    def meanwhile(*arguments):
        def second():
            with pytest.raises(
                RuntimeError, match="another thread is using these tables"
            ) as caught:
                use(batch)
            refused.append(caught.value)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        play_on(*arguments)

    monkeypatch.setattr(batch._tables, "play_on", meanwhile)
    actions = batch.action_masks.argmax(axis=1)
    batch.step(actions)
    same.step(actions)
    assert len(refused) == 1
    monkeypatch.undo()
    assert shown(batch) == shown(same)


@pytest.mark.parametrize("after", [False, True])
def test_a_step_that_is_broken_off_asks_for_a_reset(after, monkeypatch):
    batch, same = DealBatch(4, seed=1), DealBatch(4, seed=1)
    tables = batch._tables
    play_on = tables.play_on

    def broken_off(*arguments):
        if after:
            play_on(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "play_on", broken_off)
    actions = batch.action_masks.argmax(axis=1)
    with pytest.raises(KeyboardInterrupt):
        batch.step(actions)
    monkeypatch.undo()
    for use in (
        lambda: batch.step(actions),
        lambda: batch.observe_as("full"),
        lambda: batch.view(0, 0),
        batch.states,
        batch.get_state,
    ):
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
            use()
    for each in (batch, same):
        each.reset(seed=5)
    assert shown(batch) == shown(same)


def test_a_reset_waits_for_what_other_threads_still_play(threads_always, monkeypatch):
    """Ctrl-C comes to the thread that waits for them."""
    batch, same = DealBatch(8, seed=1, threads=2), DealBatch(8, seed=1)
    tables, main = batch._tables, threading.current_thread()
    play_on, played = tables.play_on, []
    batch.step(batch.action_masks.argmax(axis=1))  # in one thread, the next one in two

    def slow(*arguments):
        if threading.current_thread() is not main:
            time.sleep(0.3)
            played.append(True)
        play_on(*arguments)

    def ctrl_c(shares):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "play_on", slow)
    monkeypatch.setattr(vector, "wait", ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        batch.step(batch.action_masks.argmax(axis=1))
    assert not played
    monkeypatch.undo()
    for each in (batch, same):
        each.reset(seed=5)
    assert played
    assert shown(batch) == shown(same)
    batch.close()


def test_a_state_of_copied_tables_is_dealt_the_same_in_another_batch():
    batch, other = DealBatch(4, seed=1), DealBatch(4, seed=2)
    batch.copy_table(1, [0, 2])
    other.set_state(batch.get_state())
    for each in (batch, other):
        play(each, batch.rules.num_plays)
    assert shown(batch) == shown(other)


def test_after_a_reset_copies_of_a_table_have_decks_of_their_own():
    batch, same = DealBatch(4, seed=1), DealBatch(4, seed=1)
    batch.copy_table(1, [0, 2])
    for each in (batch, same):
        each.reset(seed=5)
    assert shown(batch) == shown(same)


def test_a_copy_is_a_copy():
    batch, same = DealBatch(4, seed=1, target=31), DealBatch(4, seed=1, target=31)
    rng = np.random.default_rng(0)
    for other in (copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        before = shown(batch)
        for _ in range(2 if INTERPRETED else 70):
            other.step(choose(other, rng))
        assert shown(batch) == before == shown(same)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # what is tried here
def test_a_forked_child_has_threads_of_its_own(threads_always):
    batch, same = DealBatch(8, seed=1, threads=2), DealBatch(8, seed=1)
    play(batch, 4), play(same, 6)
    child = os.fork()
    if child == 0:
        play(batch, 2)
        os._exit(0 if batch.decks.tobytes() == same.decks.tobytes() else 1)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0
    play(batch, 2)
    assert batch.decks.tobytes() == same.decks.tobytes()
    batch.close()


class Clock:
    """Time that only passes as work is done: `costs` seconds with so many threads."""

    def __init__(self, costs):
        self.costs, self.now, self.steps = costs, 0.0, []

    def perf_counter(self):
        return self.now

    def work(self, function, number):
        self.now += self.costs[number]
        self.steps.append(number)


@pytest.mark.parametrize("faster", [1, 4])
def test_threads_are_used_where_they_are_faster(faster, monkeypatch):
    clock = Clock({faster: 1.0, 5 - faster: 10.0})
    monkeypatch.setattr(vector.time, "perf_counter", clock.perf_counter)
    threads = vector.Threads(100_000, 4)
    monkeypatch.setattr(threads, "_share_out", clock.work)
    for _ in range(20_000):
        threads.run_and_time(lambda rows: None)
    assert clock.now < 1.1 * 20_000  # a tenth more than with the better one alone
    # And it is noticed when that changes.
    clock.costs = {number: 11.0 - cost for number, cost in clock.costs.items()}
    clock.steps.clear()
    for _ in range(3_000):
        threads.run_and_time(lambda rows: None)
    assert clock.steps[1500:].count(5 - faster) > 1400


def test_few_tables_are_never_shared_out(monkeypatch):
    monkeypatch.setattr(vector, "ThreadPoolExecutor", None)
    play(DealBatch(64, seed=0, threads=8), 2 if INTERPRETED else 60)


def test_a_copied_table_goes_on_as_the_other_does():
    rules = Rules(players=3, target=60, ranks=6)
    batch = DealBatch(6, rules, rewards="terminal", seed=4)
    for step in range(150):
        if step == 31:
            batch.copy_table(4, [0, 2])
            assert batch.get_state()["decks"][0].tolist() == batch.get_state()["decks"][4].tolist()
        if step >= 31:
            for array in (batch.observations, batch.action_masks, batch.seats, batch.states()):
                assert (array[[0, 2]] == array[4]).all()
            assert batch.position(0) == batch.position(2) == batch.position(4)
            assert batch.position(1) != batch.position(4)
        rewards, ended = batch.step(batch.action_masks.argmax(axis=1))
        if step >= 31:
            assert (rewards[[0, 2]] == rewards[4]).all() and (ended[[0, 2]] == ended[4]).all()
    for table, copies in ((6, [0]), (0, [6])):
        with pytest.raises((ValueError, IndexError)):
            batch.copy_table(table, copies)


@compiled
def play_packets_out(games, compiled_rules, copies):
    """At a copy of each of `games` (n,), play the lowest card in hand until the packet ends."""
    for i in range(len(games)):
        copies[i] = games[i]
        game = copies[i]
        while game.hand_sizes[game.to_play] > 0:
            play_card(game, compiled_rules[0], game.hands[game.to_play, 0])


@compiled
def finish_turns(games, compiled_rules):
    for i in range(len(games)):
        finish_turn(games[i], compiled_rules[0])


def test_a_search_copies_tables_and_stops_where_the_packet_ends():
    batch = DealBatch(5, players=3, seed=1)
    rules, array = batch.rules, compiled_rules(batch.rules)
    for _ in range(7):
        batch.step(batch.action_masks.argmax(axis=1))
    games = batch._tables.games
    before, copies = games.copy(), np.zeros_like(games)
    play_packets_out(games, array, copies)
    assert games.tobytes() == before.tobytes()
    assert (copies["num_plays"] == rules.packet_size).all() and (copies["packet"] == 1).all()
    assert not copies["hand_sizes"][:, : rules.players].any()
    finish_turns(copies, array)
    assert (copies["packet"] == 2).all()
    assert (copies["hand_sizes"][:, : rules.players] == rules.hand_size).all()
