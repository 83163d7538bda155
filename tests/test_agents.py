"""The baselines play as they are defined: held against the definitions written a second time, from
what a `View` shows and a model of who knows what, in exact fractions."""

import pickle
import sys
from collections import Counter
from fractions import Fraction

import gymnasium
import numba
import numpy as np
import pytest
from places import choose, random_table, rank, seeded

from pisti_env import Rules
from pisti_env.agents import Agent, load, shipped_checkpoints
from pisti_env.agents.baselines import BASELINES
from pisti_env.arena import evaluate
from pisti_env.cards import parse_card
from pisti_env.observation import describe
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
CASES = 8  # so that the work can be spread
TABLES = 3 if INTERPRETED else 30
JACK = 10
GIVEN_AWAY = [*range(1, 13), 0]  # ranks in the order 2 … K, A


def greedy_card(view, rules):
    if view.pile:
        equal = [card for card in view.hand if rank(card) == rank(view.pile[-1])]
        jacks = [card for card in view.hand if rank(card) == JACK]
        for captures in (equal, jacks):
            if captures:
                return min(captures)
    return min(
        view.hand,
        key=lambda card: (
            rules.card_points(card),
            rank(card) == JACK,
            GIVEN_AWAY.index(rank(card)),
            card,
        ),
    )


def counting_scores(view, rules, seen):
    """The score of each card of the hand, as a fraction; and which case of the definition it is."""
    n = view.pile_size
    v = sum(rules.card_points(card) for card in view.pile)
    scores = {}
    for card in view.hand:
        p = rules.card_points(card)
        u = sum(rank(other) == rank(card) for other in rules.deck_cards())
        u -= sum(rank(other) == rank(card) for other in seen)
        if view.pile and rank(card) == rank(view.pile[-1]):
            score = 100 + v + Fraction(2, 10) * n + p + (10 if n == 1 else 0)
            case = "pisti" if n == 1 else "equal rank"
        elif view.pile and rank(card) == JACK:
            if n <= 2 and v == 0:
                score, case = Fraction(-5), "jack kept"
            else:
                score, case = 97 + v + Fraction(5, 10) * n + p, "jack"
        elif rank(card) == JACK:
            score, case = Fraction(-60 - 4 * u - p), "jack on an empty table"
        elif not view.pile:
            score, case = Fraction(-4 * u - p), "empty table"
        else:
            score, case = -u * (v + Fraction(3, 10) * n + 1) - p, "no capture"
        scores[card] = (score, case)
    return scores


def decisions(rng, tables):
    """Yield every decision at random tables: environment, rules, the seat's view, cards seen."""
    for _ in range(tables):
        env, places = random_table(rng)
        eagerness = rng.choice([0, 0.5, 1])
        while not places.over:
            seat = places.to_play
            seen = [places.cards[place] for place in places.known(seat)]
            yield env, places.rules, env.view(seat), seen
            card = choose(places, rng, eagerness)
            env.step(card)
            places.play(card)


def ask(agent, env):
    """An agent's action for the seat to play."""
    shown = env.observe_as(env.agent_selection, agent.observation)
    return agent.act(shown["observation"], shown["action_mask"])


@pytest.mark.parametrize("case", range(CASES))
def test_greedy_and_counting_play_as_defined(case):
    agents, decided = {}, 0
    for env, rules, view, seen in decisions(seeded("agents", case), TABLES):
        if rules not in agents:
            agents[rules] = [load(name, rules) for name in ("greedy", "counting")]
        greedy, counting = agents[rules]
        assert ask(greedy, env) == greedy_card(view, rules), (rules, view)
        scores = counting_scores(view, rules, seen)
        best = min(scores, key=lambda card: (-scores[card][0], card))
        assert ask(counting, env) == best, (rules, view, scores)
        shown = env.observe_as(env.agent_selection, "full")
        told = counting.scores(shown["observation"], shown["action_mask"])
        assert {card: told[card] for card in view.hand} == {
            card: float(score) for card, (score, _) in scores.items()
        }
        decided += 1
    assert decided > 10 * TABLES


@pytest.mark.parametrize("name", ["greedy", "counting"])
def test_the_best_score_is_what_a_baseline_plays(name):
    for env, rules, _, _ in decisions(seeded("scores", name), TABLES):
        agent = load(name, rules)
        shown = env.observe_as(env.agent_selection, agent.observation)
        observation, mask = shown["observation"], shown["action_mask"]
        scores = agent.scores(observation, mask)
        assert (np.isfinite(scores) == (mask != 0)).all()
        assert scores.argmax() == agent.act(observation, mask)
        probabilities = agent.probabilities(observation, mask)
        assert probabilities[scores.argmax()] == 1 and probabilities.sum() == 1
        assert agent.value(observation) is None


def test_random_finds_every_card_equally_likely():
    agent, masks = load("random"), np.zeros((2, 52), np.int8)
    masks[0, [3, 17, 40, 51]] = masks[1, 5] = 1
    observations = np.zeros((2, describe("basic", agent.rules).size), np.float32)
    probabilities = agent.probabilities(observations, masks)
    assert probabilities[0, [3, 17, 40, 51]].tolist() == [0.25] * 4
    assert probabilities[1, 5] == 1 and probabilities.sum() == 2
    assert agent.value(observations) is None


@pytest.mark.parametrize("name", BASELINES)
def test_what_a_player_thinks_is_refused_as_a_decision_is(name):
    agent = load(name)
    observation = np.zeros(describe(agent.observation, agent.rules).size, np.float32)
    for think in (agent.probabilities, agent.scores):
        with pytest.raises(ValueError, match="mask 0 has no legal action"):
            think(observation, np.zeros(52, np.int8))
        with pytest.raises(ValueError, match=r"shapes \(1,\) and \(52,\); expected"):
            think(np.zeros(1), np.ones(52, np.int8))
    with pytest.raises(ValueError, match=r"observation has shape \(1,\); expected"):
        agent.value(np.zeros(1))


def test_every_case_of_counting_comes_up():
    cases = Counter()
    for _, rules, view, seen in decisions(seeded("cases"), 20):
        scores = counting_scores(view, rules, seen)
        best = max(scores, key=lambda card: scores[card][0])
        cases[scores[best][1]] += 1
    assert len(cases) == 7, cases


@pytest.mark.parametrize(
    ("hand", "top", "pile_size", "card"),
    [
        ("3C 7D 7C JC", "7S", 0.1, "7C"),  # equal rank, the lowest id
        ("3C 8D JH JD", "7S", 0.1, "JD"),  # no equal rank: the lowest jack
        ("3C JC JH 8D", "JS", 0.1, "JC"),
        ("3C 8D JH 2D", "", 0, "2D"),  # nothing to capture: no points, then 2 before 3
        ("AC JC 2C TD", "", 0, "AC"),  # a point each: not the jack
        ("AC 2C TD KS", "4H", 0.1, "KS"),
        ("2C TD JC", "", 0, "JC"),
        ("KC KD 3S 3H", "4H", 0.1, "3H"),
    ],
)
def test_greedy_by_hand(hand, top, pile_size, card):
    agent = load("greedy")
    layout = {row.name: row.slice for row in describe("basic", agent.rules)}
    observation = np.zeros(layout["jacks_seen"].stop, np.float32)
    mask = np.zeros(52, np.int8)
    for held in map(parse_card, hand.split()):
        observation[layout["hand"]][held] = mask[held] = 1
    if top:
        observation[layout["top"]][parse_card(top)] = 1
        observation[layout["pile_size"]] = pile_size
    assert agent.act(observation, mask) == parse_card(card)


def test_points_are_those_of_the_agents_rules():
    observation = np.zeros(describe("basic", Rules()).size, np.float32)
    mask = np.zeros(52, np.int8)
    mask[[parse_card("AC"), parse_card("KC")]] = 1
    assert load("greedy").act(observation, mask) == parse_card("KC")
    assert load("greedy", {"ace_points": 0}).act(observation, mask) == parse_card("KC")
    mask[parse_card("KC")], mask[parse_card("2C")] = 0, 1
    assert load("greedy").act(observation, mask) == parse_card("AC")
    worthless = {"two_of_clubs_points": 0}
    assert load("greedy", worthless).act(observation, mask) == parse_card("2C")


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(
    "fields", [{}, {"players": 5}, {"players": 4, "bottom_card_shown": True}, {"packs": 2}]
)
def test_a_batch_is_many_single_decisions(name, fields):
    agent = load(name, fields, seed=3)
    batch = DealBatch(40, fields, observation=agent.observation, seed=5)
    for play in range(30):
        observations, masks = batch.observations.copy(), batch.action_masks.copy()
        seeds = np.arange(40, dtype=np.uint64) + np.uint64(1000 * play)
        actions = agent.act(observations, masks, seeds)
        assert actions.dtype == np.int64 and actions.shape == (40,)
        assert (masks[np.arange(40), actions] == 1).all()
        for i in range(0, 40, 7):
            single = agent.act(observations[i], masks[i], seeds[i])
            assert type(single) is int and single == actions[i]
        order = np.arange(40)[::-1]
        assert (agent.act(observations[order], masks[order], seeds[order]) == actions[order]).all()
        as_bools = agent.act(observations.astype(np.float64), masks.astype(bool), seeds)
        assert (as_bools == actions).all()
        assert (observations == batch.observations).all() and (masks == batch.action_masks).all()
        batch.step(actions)


def test_random_draws_every_legal_card_equally_often():
    agent, number = load("random", seed=1), 40_000
    masks = np.zeros((number, 52), np.int8)
    hand = [3, 17, 40, 51]
    masks[:, hand] = 1
    observations = np.zeros((number, describe("basic", agent.rules).size), np.float32)
    for seeds in (None, np.arange(number, dtype=np.uint64)):
        counts = np.bincount(agent.act(observations, masks, seeds), minlength=52)
        assert counts.sum() == counts[hand].sum() == number
        # Standard deviation 87.
        assert (np.abs(counts[hand] - number / 4) < 5 * 87).all(), counts[hand]


def test_random_draws_from_seeds_alone_or_from_a_stream_of_its_own():
    masks = np.ones((500, 52), np.int8)
    observations = np.zeros((500, describe("basic", Rules()).size), np.float32)
    seeds = np.arange(500, dtype=np.uint64)
    one, other = load("random", seed=1), load("random", seed=2)
    given = one.act(observations, masks, seeds)
    assert (given == other.act(observations, masks, seeds)).all()
    assert (given == one.act(observations, masks, seeds)).all()
    first, second = (one.act(observations, masks) for _ in range(2))
    assert (first != second).any() and (first != other.act(observations, masks)).any()
    # The same stream one by one, and from a copy.
    again = load("random", seed=1)
    singles = [again.act(observations[i], masks[i]) for i in range(500)]
    assert singles == first.tolist()
    assert (pickle.loads(pickle.dumps(again)).act(observations, masks) == second).all()


def test_global_generators_are_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    agent = load("random")
    size = describe("basic", agent.rules).size
    agent.act(np.zeros((9, size), np.float32), np.ones((9, 52), np.int8))
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


@pytest.mark.parametrize("name", BASELINES)
def test_what_does_not_fit_is_refused(name):
    agent = load(name)
    size = describe(agent.observation, agent.rules).size
    observations, masks = np.zeros((3, size), np.float32), np.ones((3, 52), np.int8)
    for wrong in (observations[:, :-1], observations[:2], observations[0]):
        with pytest.raises(ValueError, match="observation and mask have shapes"):
            agent.act(wrong, masks)
    with pytest.raises(ValueError, match="observation and mask have shapes"):
        agent.act(observations, masks[:, :15])
    with pytest.raises(ValueError, match="seeds has shape"):
        agent.act(observations, masks, np.zeros(2, np.uint64))
    for wrong in ([0, 1, -1], [0, 1, 2**64], [0.0, 1.0, 2.0]):
        with pytest.raises(ValueError, match="ints from 0 to 2"):
            agent.act(observations, masks, wrong)
    masks[1, :-1] = masks[2] = 0
    with pytest.raises(ValueError, match="mask 2 has no legal action"):
        agent.act(observations, masks)
    assert len(agent.act(observations[:0], masks[:0])) == 0


# load


@pytest.mark.parametrize("name", BASELINES)
def test_load_makes_agents(name):
    agent: Agent = load(name, "istanbul", seed=7)
    assert agent.rules == Rules.preset("istanbul")
    assert agent.observation == ("full" if name == "counting" else "basic")
    assert isinstance(agent, BASELINES[name])
    assert load(name).rules == load(name, None).rules == Rules()
    assert load(name, {"players": 3}).rules.players == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "greddy"}, "agent is 'greddy'; expected one of random, greedy, counting"),
        ({"name": "no/such.safetensors"}, "or the path of a checkpoint"),
        ({"name": ""}, "agent is ''"),
        ({"name": "x" * 5000}, "or the path of a checkpoint"),
        ({"name": "x\0"}, "or the path of a checkpoint"),
        ({"name": "search:nobody"}, "agent is 'nobody'; expected one of"),
        ({"name": "search:"}, "expected search:POLICY"),
        ({"name": "search:search:greedy"}, "not a search"),
        ({"name": "search@0:greedy"}, "samples is '0'; expected an int from 1"),
        ({"name": "greedy", "rules": "nonsense"}, "rules preset is 'nonsense'"),
        ({"name": "greedy", "seed": -1}, "seed is -1"),
        ({"name": "greedy", "device": "cuda"}, "device is 'cuda'"),
    ],
)
def test_load_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError) as raised:
        load(**arguments)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_shipped_checkpoints_are_found_by_name(tmp_path, monkeypatch):
    installed, checkout = tmp_path / "installed", tmp_path / "checkout"
    monkeypatch.setattr("pisti_env.agents.CHECKPOINT_FOLDERS", (installed, checkout))
    assert shipped_checkpoints() == {}
    checkout.mkdir()
    (checkout / "one.v2.safetensors").write_bytes(b"")
    assert shipped_checkpoints() == {"one.v2": checkout / "one.v2.safetensors"}
    installed.mkdir()
    (installed / "one.v2.safetensors").write_bytes(b"")
    assert shipped_checkpoints() == {"one.v2": installed / "one.v2.safetensors"}
    for name in ("one.v2", str(checkout / "one.v2.safetensors"), checkout / "one.v2.safetensors"):
        with pytest.raises(ValueError, match="cannot be used"):  # so it was found
            load(name)
    with pytest.raises(ValueError, match=r"counting, one\.v2, or"):
        load("one")


def test_every_shipped_checkpoint_plays():
    for name in shipped_checkpoints():
        agent = load(name, None)
        batch = DealBatch(8, agent.rules, observation=agent.observation, seed=0)
        for _ in range(10):
            batch.step(agent.act(batch.observations, batch.action_masks))


# One's own agent, by the name of its module.

MODULE = """
from pisti_env import Rules

class Lowest:
    observation = "full"
    def __init__(self, rules=None, seed=0):
        self.rules, self.seed = rules or Rules(), seed
    def act(self, observation, action_mask, seeds=None):
        return action_mask.argmax(axis=-1)

def make(seed):
    return Lowest(seed=seed)

made = Lowest(seed=5)
number = 5

def broken():
    raise RuntimeError("my own\\nmistake")

class NoRules:
    observation = "full"
    act = Lowest.act
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_agents_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_agents_of_a_test"
    sys.modules.pop("own_agents_of_a_test", None)


def test_an_agent_of_one_s_own_is_found_by_its_module(own_module):
    rules = Rules(players=3)
    of_class = load(f"{own_module}:Lowest", rules, seed=3)
    assert (of_class.rules, of_class.seed) == (rules, 3)
    assert load(f"{own_module}:make", seed=4).seed == 4
    assert load(f"{own_module}:made") is load(f"{own_module}:made")
    env = gymnasium.make("Pisti-v0", opponent=f"{own_module}:Lowest", players=3)
    assert env.reset(seed=0)[1]["action_mask"].any()
    result = evaluate([f"{own_module}:Lowest", "random"], deals=2, match=False)
    assert result.agents[0] == f"{own_module}:Lowest"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Lowst", ["no attribute 'Lowst'"]),
        ("number", ["own_agents_of_a_test:number", "cannot be made"]),
        ("broken", ["RuntimeError: my own mistake"]),
        ("NoRules", ["own_agents_of_a_test:NoRules", "no rules"]),
    ],
)
def test_what_is_wrong_with_an_agent_of_one_s_own(own_module, name, words):
    with pytest.raises(ValueError) as caught:
        load(f"{own_module}:{name}")
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["own_agents_of_a_test", "antigravity", "C:/antigravity", ":x", "a:"]
)
def test_nothing_is_imported_from_a_name_without_a_module_and_a_colon(own_module, name):
    with pytest.raises(ValueError, match="or module:name"):
        load(name)
    assert not {"own_agents_of_a_test", "antigravity"} & set(sys.modules)


def test_a_module_that_is_not_there():
    with pytest.raises(ValueError, match="No module named 'no_such_module'"):
        load("no_such_module:Agent")


def test_a_modules_file_is_answered_with_how_to_name_its_agent(tmp_path):
    (tmp_path / "mymodule.py").write_text("class Agent: ...\n")
    with pytest.raises(ValueError, match=r"mymodule\.py'.*expected .* as in mymodule:Agent"):
        load(str(tmp_path / "mymodule.py"))
