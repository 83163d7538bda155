"""A player that thinks: from what its seat knows alone, and as worked out step by step."""

import gymnasium
import numba
import numpy as np
import pytest
from places import random_moments, seeded

from pisti_env import Rules, pisti_v0
from pisti_env.agents import ask, load
from pisti_env.agents.hosting import choose_cards, observe
from pisti_env.arena import evaluate, mean_with_interval
from pisti_env.cards import KIND_OF_CARD
from pisti_env.commands.arguments import rules_of
from pisti_env.knowledge import deal_unknown, deck_of, fill_in, known_of_view
from pisti_env.observation import encoder
from pisti_env.search import RESTRAINED, Search, read_name
from pisti_env.search.moment import moments_of, random_worlds
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
TABLES = 2 if INTERPRETED else 12
ONE = np.zeros(1, np.int64)
SMALL = RESTRAINED._replace(samples=3 if INTERPRETED else 12)
BOLD = SMALL._replace(least_gain=0.0, least_errors=0.0)
MATCHING = [(2, False, "pisti-2p"), (3, False, "pisti-3p"), (4, True, "pisti-4p")]


def seen(games, rules):
    """What the seat to play at the one table of `games` sees."""
    return observe(encoder("history", rules), games, ONE)


def search_for(rules, rng, settings=BOLD):
    """A search with a baseline, or with the policy that was trained for such rules."""
    names = ["greedy", "counting", "random"]
    policy = load(rng.choice(names), rules)
    for players, partners, name in MATCHING:
        if (rules.players, rules.partners) == (players, partners) and rules == Rules(
            players=players, partners=partners
        ):
            policy = load(name, rules)
    return Search(policy, rules, settings=settings)


# What it knows.


@pytest.mark.parametrize("case", range(4))
def test_what_is_hidden_changes_nothing(case):
    rng = seeded("search, twins", case)
    for env, _ in random_moments(rng, TABLES, 2):
        rules, viewer = env.rules, env._tables.games["to_play"][0]
        search = search_for(rules, rng)
        true = env._tables.games
        filled = fill_in(known_of_view(env.view(int(viewer)))).games
        twin = np.repeat(true, 1)
        deal_unknown(twin, rules, int(viewer), seed=case)
        seeds = np.array([case + 5], np.uint64)
        tables = (true, filled, twin)
        answers = [search.act(*seen(games, rules), seeds).tolist() for games in tables]
        assert answers[0] == answers[1] == answers[2]
        worths = [
            search.think(*seen(games, rules), seeds)[0].worth.tolist() for games in (true, twin)
        ]
        assert worths[0] == worths[1]


@pytest.mark.parametrize("case", range(2))
def test_a_table_is_rebuilt_from_what_is_observed(case):
    rng = seeded("search, rebuilt", case)
    for env, _ in random_moments(rng, TABLES, 2):
        rules, games = env.rules, env._tables.games
        observations, masks = seen(games, rules)
        again = moments_of(observations, rules)
        assert (seen(again.games, rules)[0] == observations).all()
        assert (seen(again.games, rules)[1] == masks).all()
        assert again.begun["packet"][0] == again.games["packet"][0]
        assert again.begun["num_plays"][0] % rules.packet_size == 0
        worlds = random_worlds(again.games, rules, 3, np.array([7], np.uint64))
        for world in worlds.reshape(3, 1):
            assert (seen(world, rules)[0] == observations).all()


def test_what_no_seat_can_observe_is_refused():
    search = Search(load("greedy"), Rules(), settings=BOLD)
    observation, mask = seen(dealt(Rules(), 1).moment()[0], Rules())
    with pytest.raises(ValueError, match="none that a seat can have"):
        search.act(np.zeros_like(observation[0]), mask[0])
    with pytest.raises(ValueError, match="no legal action"):
        search.act(observation[0], np.zeros_like(mask[0]))


def dealt(rules, tables, plays=0, seed=0):
    batch = DealBatch(tables, rules, observation="history", seed=seed)
    for _ in range(plays):
        batch.step(batch.action_masks.argmax(axis=1))
    return batch


# What it plays.


@pytest.mark.parametrize("case", range(3))
def test_plays_are_legal_and_do_not_depend_on_the_batch(case):
    rng = seeded("search, batch", case)
    for env, _ in random_moments(rng, 2 if INTERPRETED else 5, 1):
        rules = env.rules
        batch = dealt(rules, 5, rng.randrange(rules.num_plays - 1), seed=case)
        search = search_for(rules, rng)
        seeds = np.array([rng.randrange(2**64) for _ in range(5)], np.uint64)
        observations, masks = batch.observations.copy(), batch.action_masks.copy()
        actions = search.act(observations, masks, seeds)
        assert (masks[np.arange(5), actions] == 1).all()
        order = np.array([3, 1, 4, 0, 2])
        assert (search.act(observations[order], masks[order], seeds[order]) == actions[order]).all()
        for row in range(5):
            assert search.act(observations[row], masks[row], seeds[row : row + 1]) == actions[row]


@pytest.mark.parametrize(("players", "partners", "name"), MATCHING)
def test_worths_and_weights_are_those_of_a_second_opinion(players, partners, name):
    """Every play in the same worlds, by an environment and step by step."""
    rules = Rules(players=players, partners=partners)
    search = Search(load(name, rules), rules, settings=BOLD)
    search.policy = load(name, rules)  # 64 bits, as in the second opinion
    rng = seeded("second opinion", name)
    checked = 0
    for _ in range(2 if INTERPRETED else 6):
        plays = rng.randrange(rules.num_plays - 1)
        batch = dealt(rules, 1, plays, seed=rng.randrange(1000))
        seeds = np.array([rng.randrange(2**64)], np.uint64)
        [thoughts] = search.think(batch.observations, batch.action_masks, seeds)
        moments = moments_of(batch.observations, rules)
        worlds = search._deal(moments, seeds)
        weights = np.array([likelihood(search, worlds[w : w + 1]) for w in range(len(worlds))])
        assert np.allclose(thoughts.weights, weights / weights.sum(), rtol=1e-4)
        for card, worth in zip(thoughts.cards, thoughts.worth, strict=True):
            for world in range(len(worlds)):
                expected = worth_of(search, worlds[world : world + 1], int(card))
                assert worth[world] == pytest.approx(expected, abs=1e-6)
                checked += 1
        means = thoughts.means()
        assert means[thoughts.choose(BOLD)] == means.max()
    assert checked


def env_of(world, rules, plays):
    """An environment in which this world was dealt, after so many plays."""
    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=0, options={"deck": deck_of(world, rules), "dealer": int(world["dealer"][0])})
    for card in world["plays"][0, :plays].tolist():
        env.step(card)
    return env


def asked(search, env):
    """What the policy thinks and expects at the seat to play of an environment."""
    own = encoder(search.policy.observation, env.rules)
    observations, masks = observe(own, env._tables.games, ONE)
    return search.policy.probabilities(observations[0], masks[0]), observations[0]


def likelihood(search, world):
    rules, count = search.rules, int(world["num_plays"][0])
    product = 1.0
    for play in range(count // rules.packet_size * rules.packet_size, count):
        if (world["dealer"][0] + 1 + play) % rules.players == 0:
            continue
        env, card = env_of(world, rules, play), int(world["plays"][0, play])
        chances, _ = asked(search, env)
        action_of = encoder(search.policy.observation, rules).action_of_card
        twins = [face for face in range(52) if KIND_OF_CARD[face] == KIND_OF_CARD[card]]
        same = {int(action_of[face]) for face in twins}
        kinds = {int(KIND_OF_CARD[other]) for other in env.view(env.view(None).to_play).hand}
        by_policy = max(sum(chances[action] for action in same), 1e-9)
        surprise = search.settings.surprise
        product *= (1 - surprise) * by_policy + surprise / len(kinds)
    return product


def worth_of(search, world, card):
    rules = search.rules
    env = env_of(world, rules, int(world["num_plays"][0]))
    before, packet = env.view(None).public_points, env.view(None).packet
    env.step(card)
    while env.view(None).to_play is not None and env.view(None).packet == packet:
        chosen = np.empty(1, np.int64)
        own = encoder(search.policy.observation, rules)
        choose_cards(search.policy, own, env._tables.games, ONE, None, chosen)
        env.step(int(chosen[0]))
    gains = np.subtract(env.view(None).public_points, before)
    worth = gains[0] - gains[1:].mean()
    leader = env.view(None).to_play
    if leader is not None:
        value = search.policy.value(asked(search, env)[1])
        worth += value if leader % rules.sides == 0 else -value / (rules.sides - 1)
    return worth


def test_a_play_is_left_only_for_a_clearly_better_one():
    search = Search(load("pisti-2p"), Rules(), settings=BOLD)
    batch = dealt(Rules(), 40, 4)
    seeds = np.arange(40).astype(np.uint64)
    thoughts = search.think(batch.observations, batch.action_masks, seeds)
    stays = RESTRAINED._replace(least_gain=1000.0)
    assert all(thought.choose(stays) == thought.own for thought in thoughts)
    own = search.policy.act(*observe(encoder("kinds", Rules()), batch.moment()[0], np.arange(40)))
    found = [KIND_OF_CARD[thought.cards[thought.own]] for thought in thoughts]
    assert search.policy.observation == "kinds" and found == own.tolist()
    assert any(thought.choose(BOLD) != thought.own for thought in thoughts)


def test_a_name_says_policy_and_worlds():
    assert read_name("search") == ("counting", RESTRAINED)
    assert read_name("search:pisti-2p") == ("pisti-2p", RESTRAINED)
    assert read_name("search@9:a/b.safetensors")[1].samples == 9
    assert read_name("search@9") == ("counting", RESTRAINED._replace(samples=9))
    assert load("search:pisti-3p").rules == load("pisti-3p").rules
    assert rules_of(None, ["search", "counting", "search@2:pisti-3p"]).players == 3
    with pytest.raises(ValueError, match="samples is 'x'"):
        read_name("search@x:greedy")


def test_it_plays_wherever_agents_do():
    env = gymnasium.make("Pisti-v0", opponent="search@2", rules={"ranks": 4, "hand_size": 3})
    env.reset(seed=2)
    over = False
    while not over:
        _, _, over, _, _ = env.step(int(env.unwrapped.action_masks().argmax()))
    search = load("search@2", {"ranks": 4, "hand_size": 3})
    raw = pisti_v0.raw_env(rules=search.rules)
    raw.reset(seed=3)
    assert raw.observe(raw.agent_selection)["action_mask"][ask(raw, search)] == 1
    assert search.probabilities(*seen(raw._tables.games, search.rules)).sum() == 1
    assert search.value(seen(raw._tables.games, search.rules)[0][0]) is None  # counting has none
    policy, games = load("pisti-2p"), dealt(Rules(), 1, 5).moment()[0]
    [value] = load("search:pisti-2p").value(seen(games, Rules())[0])
    own, _ = observe(encoder(policy.observation, Rules()), games, ONE)
    assert value == pytest.approx(policy.value(own[0]), abs=1e-4)


# How strong it is.


class Shown(Search):
    """The same search in the true world, which no seat knows: what a leak would look like."""

    batch = None

    def _deal(self, moments, seeds):
        true, _ = self.batch.moment()
        worlds = moments.games.copy()
        rows, players = self.asked_at, self.rules.players
        worlds["deck"] = true["deck"][rows]
        for seat in range(players):
            seats = (true["to_play"][rows] + seat) % players
            worlds["hands"][:, seat] = true["hands"][rows, seats]
        return worlds


@pytest.mark.compiled
def test_a_leak_would_be_seen():
    rules, decks = Rules(), 200
    shown = Shown(load("pisti-2p"), rules, settings=BOLD._replace(samples=1))
    counting = load("counting", rules)
    batch = DealBatch(2 * decks, rules, observation="history", seed=1)
    dealt_once = DealBatch(decks, rules, seed=1)
    batch.reset(
        decks=np.repeat(dealt_once.decks, 2, axis=0), dealers=np.repeat(dealt_once.dealers, 2)
    )
    shown.batch = batch
    seatings = np.tile([0, 1], decks)
    cards = np.empty(2 * decks, np.int64)
    for _ in range(rules.num_plays):
        games, _ = batch.moment()
        mine = np.flatnonzero(batch.seats == seatings)
        theirs = np.flatnonzero(batch.seats != seatings)
        choose_cards(counting, encoder("full", rules), games, theirs, None, cards)
        masks = batch.action_masks[mine]
        kinds = [len(set(KIND_OF_CARD[np.flatnonzero(mask)])) for mask in masks]
        shown.asked_at = mine[np.array(kinds) > 1]  # the others are no decision
        cards[mine] = shown.act(batch.observations[mine], masks)
        batch.step(cards)
    points = batch.final_scores
    lead = points[np.arange(2 * decks), seatings] - points[np.arange(2 * decks), 1 - seatings]
    _, low, _ = mean_with_interval(lead.reshape(decks, 2).mean(axis=1))
    assert low > 10


@pytest.mark.compiled
def test_thinking_pays():
    """Over counting alone: by 1.4 a deal, and not by so much that it must have read hands."""
    agents = ["search@16", "counting"]
    [result] = evaluate(agents, deals=150, seed=4, match=False).results
    assert result.low > 0.3 and result.high < 3


def test_samples_are_told_by_the_name_or_beside_it():
    assert load("search@9:greedy").settings.samples == 9
    assert load("search:greedy", samples=9).settings.samples == 9
    for name, samples, told in [
        ("greedy", 9, "samples is 9; expected none for 'greedy'"),
        ("search:greedy", 0, "samples is 0; expected an int from 1"),
        ("search@", None, "samples is ''; expected an int from 1"),
        ("search@9:search", None, "expected a search with a policy, not a search"),
    ]:
        with pytest.raises(ValueError, match=told):
            load(name, samples=samples)
