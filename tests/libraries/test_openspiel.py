"""Pişti as OpenSpiel's game: the same game, exact chances, no leaks; and the script runs on it."""

# ruff: noqa: E402 - what needs the library is imported once it is known to be there

import itertools
import json
from collections import Counter, defaultdict

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")
pytest.importorskip("tree", reason="OpenSpiel's agents need dm-tree")

from open_spiel.python.algorithms import (
    exploitability,
    external_sampling_mccfr,
    generate_playthrough,
)
from open_spiel.python.policy import UniformRandomPolicy

from pisti_env import Rules, loops, pisti_v0
from pisti_env import game as engine
from pisti_env.agents import load
from pisti_env.agents.checkpoint import read_checkpoint
from pisti_env.agents.policy import PolicyAgent
from pisti_env.cards import JACK, KIND_OF_CARD
from pisti_env.compiled_rules import compiled_rules
from pisti_env.openspiel import ask, deal_out
from pisti_env.openspiel.deal import hands_by_next_kind
from pisti_env.rules import PRESETS, parse_rules
from training import openspiel as script

SMALL = "ranks=3,copies=3,hand_size=2"
# Small packs under the rules that decide what is dealt, and who sees it.
SMALL_RULES = (
    SMALL,
    "ranks=3,copies=2,hand_size=1",
    "ranks=2,hand_size=2",
    "ranks=2,hand_size=1,starter_jack=stock_bottom",
    "ranks=2,hand_size=1,starter_jack=stock_middle",
    "ranks=2,hand_size=1,bottom_card_shown=True",
    "ranks=2,hand_size=1,starters_seen_by=all",
    "ranks=2,hand_size=1,starters_seen_by=nobody",
    "ranks=3,copies=3,hand_size=1,players=3,leftovers=burn",
)


def load_game(rules="standard"):
    return pyspiel.load_game("python_pisti", {"rules": rules})


def states_of(state):
    """Yield every state from here on."""
    states = [state]
    while states:
        state = states.pop()
        yield state
        states += [state.child(kind) for kind in state.legal_actions()]


def random_states(game, rng, deals=1):
    """Yield the states of random deals, players' turns only."""
    for _ in range(deals):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                kinds, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choice(kinds, p=chances))
            else:
                yield state.clone()
                state.apply_action(rng.choice(state.legal_actions()))


# The game.


# Every preset with every number of players that it can have.
PRESET_GAMES = [
    f"{preset},target=None,players={players}"
    for preset in PRESETS
    for players in range(2, 7)
    if not (preset == "bottom_shown" and players in (5, 6) and Rules(players=players).num_leftovers)
]
OTHER_GAMES = [
    "players=4,partners=False,starters_seen_by=all",
    "players=4,starters_seen_by=side",
    "starter_jack=stock_middle,players=3",
    "starter_jack=stock_bottom,players=4",
    "players=5,packs=1,majority=27",
    "players=5,packs=1,leftovers=burn",
    SMALL,
]


@pytest.mark.parametrize("rules", [*PRESET_GAMES, *OTHER_GAMES])
def test_openspiels_own_simulation_passes(rules):
    pyspiel.random_sim_test(load_game(rules), num_sims=2, serialize=True, verbose=False)


@pytest.mark.parametrize("rules", [*PRESET_GAMES, *OTHER_GAMES])
def test_openspiels_playthrough_is_written(rules):
    name = str(load_game(rules))
    text = generate_playthrough.playthrough(name, [], seed=1)
    assert "IsTerminal() = True" in text and "PublicObservationString()" in text


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_no_history_is_longer_than_the_game_says(rules):
    game = load_game(rules)
    chances, plays, nodes = 0, 0, [(game.new_initial_state(), 0, 0)]
    while nodes:
        state, drawn, played = nodes.pop()
        chances, plays = max(chances, drawn), max(plays, played)
        if not state.is_terminal():
            by_chance = state.is_chance_node()
            after = (drawn + by_chance, played + (not by_chance))
            nodes += [(state.child(kind), *after) for kind in state.legal_actions()]
    assert plays == game.max_game_length()
    assert chances <= game.max_chance_nodes_in_history()
    assert game.max_move_number() == plays + game.max_chance_nodes_in_history()


@pytest.mark.parametrize("recall", [False, True], ids=["observation", "information state"])
@pytest.mark.parametrize("rules", ["standard", "players=4,starters_seen_by=all", "bottom_shown"])
def test_public_and_private_parts_are_what_they_are_called(rules, recall):
    game, rng = load_game(rules), np.random.default_rng(6)
    single, none = pyspiel.PrivateInfoType.SINGLE_PLAYER, pyspiel.PrivateInfoType.NONE
    public, private, all_of_it = (
        game.make_py_observer(pyspiel.IIGObservationType(*parts))
        for parts in ((True, recall, none), (False, recall, single), (True, recall, single))
    )
    everything = pyspiel.PrivateInfoType.ALL_PLAYERS
    assert game.make_py_observer(pyspiel.IIGObservationType(True, recall, everything)) is None
    assert game.make_py_observer(pyspiel.IIGObservationType(False, recall, none)) is None
    wholes, parts = {}, {}
    for state in random_states(game, rng, deals=3):
        player = state.current_player()
        twin = state.resample_from_infostate(player, rng.random)
        seen = []
        for other in range(game.num_players()):
            public.set_from(state, other)
            private.set_from(state, other)
            all_of_it.set_from(state, other)
            seen.append((public.tensor.tobytes(), public.string_from(state, other)))
            for name, piece in private.dict.items():
                if name == "hand" or not state.deal.starters_are_public:
                    assert (piece == all_of_it.dict[name]).all()
            # The parts tell the whole: whoever has the same parts has the same whole.
            key = (other, public.tensor.tobytes(), private.tensor.tobytes())
            whole = all_of_it.tensor.tobytes()
            assert wholes.setdefault(key, whole) == whole
            key = (other, public.string_from(state, other), private.string_from(state, other))
            text = all_of_it.string_from(state, other)
            assert parts.setdefault(key, text) == text
        assert len(set(seen)) == 1
        public.set_from(twin, player)
        assert public.tensor.tobytes() == seen[0][0]
        assert "hand" in private.dict and "hand" not in public.dict


def test_a_wrong_answer_or_draw_leaves_the_state_as_it_is():
    class Stubborn:
        rules, observation = Rules(), "kinds"

        def act(self, observation, mask, seeds=None):
            return int(np.argmin(mask))

    class Broken(Stubborn):
        def act(self, observation, mask, seeds=None):
            raise RuntimeError("no idea")

    state = next(random_states(load_game(), np.random.default_rng(0)))
    before = str(state), state.history()
    for agent, error in ((Stubborn(), ValueError), (Broken(), RuntimeError)):
        with pytest.raises(error):
            ask(agent, state)
        assert (str(state), state.history()) == before
    kind = next(kind for kind in range(15) if kind not in state.legal_actions())
    with pytest.raises(ValueError, match="not in the hand"):
        state.deal.play(kind)
    assert str(state) == before[0]
    chance = load_game("ranks=3,copies=3,hand_size=2").new_initial_state()
    with pytest.raises(ValueError, match="action is 5; expected one of"):
        chance.deal.deal_kind(5)
    assert chance.chance_outcomes() == load_game(SMALL).new_initial_state().chance_outcomes()


def test_rules_in_parameters_and_in_names():
    game = load_game("loose,players=3,majority=27")
    again = pyspiel.load_game("python_pisti(rules=loose+players:3+majority:27)")
    assert game.rules == again.rules == parse_rules("loose,players=3,majority=27")
    assert pyspiel.load_game(str(game)).rules == game.rules
    assert pyspiel.load_game("python_pisti").rules == parse_rules("standard")


def test_matches_and_unknown_rules_are_refused():
    with pytest.raises(ValueError, match="target is 151, but python_pisti plays one deal"):
        load_game("istanbul")
    assert load_game("istanbul,target=None").rules.ten_of_diamonds_pisti_bonus == 3
    with pytest.raises(ValueError, match="rules field is 'colour'"):
        load_game("colour=1")


@pytest.mark.parametrize(
    "rules",
    [
        "standard",
        "istanbul,target=None,players=3",
        "players=4",
        "players=4,partners=False",
        "players=5,packs=1",
        "loose,players=6,starters_seen_by=nobody",
        "starter_jack=stock_bottom",
        "bottom_shown",
        SMALL,
    ],
)
def test_equals_the_environment_given_its_deck(rules):
    game, rng = load_game(rules), np.random.default_rng(1)
    env = pisti_v0.raw_env(rules=game.rules, observation="kinds_history")
    # Where everyone knows a card to be in a hand, its suit decides whether it is played first.
    suits_matter = game.rules.bottom_card_shown or game.rules.starter_jack != "pile"
    for seed in range(4):
        env.reset(seed=seed)
        env.reset(options={"deck": starters_in_order(env), "dealer": game.num_players() - 1})
        turned, deck = as_dealt(env)
        state, totals = deal_out(game, turned, deck, []), np.zeros(game.num_players())
        while not state.is_terminal():
            seat = state.current_player()
            assert env.agent_selection == f"player_{seat}"
            mask = env.infos[env.agent_selection]["action_mask"]
            assert state.legal_actions_mask(seat) == mask.tolist()
            for player, agent in enumerate(env.agents if not suits_matter else []):
                seen = np.array(state.information_state_tensor(player), np.float32)
                assert (seen == env.observe(agent)["observation"]).all()
                seen = np.array(state.observation_tensor(player), np.float32)
                assert (seen == env.observe_as(agent, "kinds")["observation"]).all()
            kind = int(rng.choice(state.legal_actions()))
            env.step(kind)
            totals += list(env.rewards.values())
            state.apply_action(kind)
            while state.is_chance_node():
                state.apply_action(state.deal.next_of(turned, deck))
        assert env.terminations["player_0"]
        points = [side["points"] for side in env.score()]
        margins = [2 * own - sum(points) for own in points]
        if game.rules.sides == 2:
            assert [state.returns()[side] for side in range(2)] == margins
        assert state.returns() == pytest.approx(totals, abs=1e-3)
        assert sum(state.returns()) == pytest.approx(0, abs=1e-9)


def starters_in_order(env):
    """Return the environment's deck, those starters sorted whose order OpenSpiel's game lacks."""
    jacks = len(env.view(None).shown_jacks) if env.rules.starter_jack == "pile" else 0
    unseen = engine.FACE_DOWN - jacks
    return sorted(env.deck[:unseen], key=lambda card: KIND_OF_CARD[card]) + env.deck[unseen:]


def as_dealt(env):
    """Return what the environment has dealt as `deal_out` takes it."""
    view = env.view(None)
    turned = [JACK] * len(view.shown_jacks) + [KIND_OF_CARD[view.starter]]
    if env.rules.bottom_card_shown:
        kinds = KIND_OF_CARD[env.deck[4:]][::-1].tolist()
        turned += kinds[: next(n for n, kind in enumerate(kinds) if kind != JACK) + 1]
    return turned, KIND_OF_CARD[env._tables.games["deck"][0, : env.rules.deck_size]]


def test_copies_go_on_by_themselves():
    for state in random_states(load_game(), np.random.default_rng(0)):
        before, copy = str(state), state.clone()
        assert str(copy) == before
        copy.apply_action(copy.legal_actions()[-1])
        assert str(state) == before and (copy.is_chance_node() or str(copy) != before)
        assert state.history() == copy.history()[:-1]


# Chance.


def test_hands_are_as_likely_as_they_should_be():
    left = [3, 0, 2, 0, 1] + [0] * 10
    cards = [kind for kind in range(15) for _ in range(left[kind])]
    hands = Counter(itertools.combinations(cards, 3))
    for hand, count in hands.items():
        chance, undrawn = 1.0, left[:]
        for place, kind in enumerate(hand):
            ways = hands_by_next_kind(undrawn, hand[:place], 3 - place)
            chance *= ways[kind] / sum(ways.values())
            undrawn[kind] -= 1
        assert chance == pytest.approx(count / hands.total())


@pytest.mark.parametrize("pick", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("rules", SMALL_RULES)
def test_deals_are_as_likely_as_in_a_shuffled_pack(rules, pick):
    game = load_game(rules)
    found, nodes = Counter(), [(game.new_initial_state(), 1.0)]
    while nodes:
        state, chance = nodes.pop()
        if state.is_terminal():
            found[in_any_order(game.rules, state.deal.games)] += chance
        elif state.is_chance_node():
            outcomes = state.chance_outcomes()
            assert sum(p for _, p in outcomes) == pytest.approx(1) and len(outcomes) > 1
            nodes += [(state.child(kind), chance * p) for kind, p in outcomes]
        else:
            nodes.append((state.child(state.legal_actions()[pick]), chance))
    expected = every_deal(game.rules)
    assert sum(found.values()) == pytest.approx(1)
    assert found.keys() == expected.keys()
    for deal, count in expected.items():
        assert found[deal] == pytest.approx(count / expected.total())


def every_deal(rules):
    """Return how many orders of the pack's kinds give each deal, those left out that give none."""
    cards = rules.deck_cards()
    orders = {tuple(KIND_OF_CARD[list(order)]) for order in orders_of(cards)}
    decks = np.zeros((len(orders), len(cards)), np.int8)
    for deck, order in zip(decks, orders, strict=True):
        suits = {kind: [c for c in cards if KIND_OF_CARD[c] == kind] for kind in set(order)}
        deck[:] = [suits[kind].pop(0) for kind in order]
    games, dealt = np.zeros(len(decks), engine.GAME), np.zeros(len(decks), np.bool_)
    rows, dealers = np.arange(len(decks)), np.zeros(len(decks), np.int64)
    loops.deal_rows(games, compiled_rules(rules), rows, decks, dealers, dealt)
    return Counter(in_any_order(rules, games[row : row + 1]) for row in rows[dealt])


def orders_of(cards):
    """Yield the orders of cards that differ in kinds, each once."""
    if not cards:
        yield ()
    for first in {KIND_OF_CARD[card]: card for card in cards}.values():
        rest = list(cards)
        rest.remove(first)
        for order in orders_of(tuple(rest)):
            yield (first, *order)


def in_any_order(rules, games):
    """Return the kinds of a deal: starter, jacks turned up, and the rest in sets. Cards that are
    left over and burnt are nobody's."""
    deck = KIND_OF_CARD[games["deck"][0, : rules.deck_size]].tolist()
    starters, plays, size = deck[: engine.FACE_DOWN], rules.num_plays, rules.hand_size
    hands = [tuple(sorted(deck[4 + k : 4 + k + size])) for k in range(0, plays, size)]
    left_over = sorted(deck[4 + plays :]) if rules.leftovers == "sweep" else ()
    jacks, bottom = int(games["num_shown_jacks"][0]), int(games["bottom_card"][0])
    return (deck[engine.STARTER], jacks, bottom >= 0 and KIND_OF_CARD[bottom]) + tuple(
        map(tuple, (sorted(starters), hands, left_over))
    )


# Who knows what.


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_information_states_are_exact_and_recall_everything(rules):
    game = load_game(rules)
    tensors, legal, pasts = {}, {}, {}
    nodes = [(game.new_initial_state(), ((),) * game.num_players())]
    while nodes:
        state, past = nodes.pop()
        if state.is_chance_node():
            nodes += [(state.child(kind), past) for kind, _ in state.chance_outcomes()]
        elif not state.is_terminal():
            player, text = state.current_player(), state.information_state_string()
            tensor = tuple(state.information_state_tensor())
            assert tensors.setdefault(text, tensor) == tensor
            assert legal.setdefault(text, state.legal_actions()) == state.legal_actions()
            assert pasts.setdefault(text, past[player]) == past[player]  # its states and plays
            for kind in state.legal_actions():
                after = list(past)
                after[player] = (*past[player], (text, kind))
                nodes.append((state.child(kind), tuple(after)))
    assert len(set(tensors.values())) == len(tensors)


@pytest.mark.parametrize(
    "rules", ["standard", "players=3", "players=4", "bottom_shown", "starter_jack=stock_middle"]
)
def test_twins_look_the_same(rules):
    rng, different = np.random.default_rng(2), 0
    for state in random_states(load_game(rules), rng):
        player = state.current_player()
        twin = state.resample_from_infostate(player, rng.random)
        for look in ("information_state_string", "observation_string"):
            assert getattr(twin, look)(player) == getattr(state, look)(player)
        for look in ("information_state_tensor", "observation_tensor"):
            assert getattr(twin, look)(player) == getattr(state, look)(player)
        assert twin.legal_actions() == state.legal_actions()
        assert len(twin.history()) > 0 and twin.current_player() == player
        different += str(twin) != str(state)
    assert different > 20


@pytest.mark.parametrize(
    "rules", [SMALL, "ranks=2,hand_size=1,bottom_card_shown=True", "ranks=2,hand_size=2"]
)
def test_what_a_player_has_not_seen_is_dealt_anew_as_likely_as_it_is(rules):
    # Likely if all cards (not kinds) of a hand are equally likely plays.
    chances, examples = defaultdict(Counter), {}
    nodes = [(load_game(rules).new_initial_state(), 1.0)]
    while nodes:
        state, chance = nodes.pop()
        if state.is_chance_node():
            nodes += [(state.child(kind), chance * p) for kind, p in state.chance_outcomes()]
        elif not state.is_terminal():
            text, hand = state.information_state_string(), state.deal.hand(state.current_player())
            chances[text][str(state)] += chance
            examples[text] = state
            for kind in state.legal_actions():
                nodes.append((state.child(kind), chance * hand.count(kind) / len(hand)))
    rng, draws = np.random.default_rng(3), 600
    for text in sorted(chances, key=lambda text: len(chances[text]))[-5:]:
        state, total = examples[text], chances[text].total()
        player = state.current_player()
        drawn = Counter(
            str(state.resample_from_infostate(player, rng.random)) for _ in range(draws)
        )
        assert drawn.keys() <= chances[text].keys()
        for twin, chance in chances[text].items():
            p = chance / total
            assert abs(drawn[twin] / draws - p) < 5 * (p * (1 - p) / draws) ** 0.5


# The algorithms.


@pytest.mark.parametrize("rules", ["ranks=2,hand_size=2", "ranks=2,hand_size=1"])
def test_the_written_tree_is_the_game(rules):
    game = load_game(rules)
    tree = script.Tree(game, {"random": load("random", game.rules)})
    expected = exploitability.nash_conv(game, UniformRandomPolicy(game))
    assert pyspiel.nash_conv(tree.game, tree.policy_of("random")) == pytest.approx(expected)
    assert tree.nodes == sum(1 for _ in states_of(game.new_initial_state()))
    assert tree.deals == len(every_deal(game.rules))


def test_cfr_solves_a_small_pack(tmp_path):
    result = script.run(script.Cfr(rules=SMALL, steps=64, run=tmp_path / "run"))
    first, last = result["nash_conv"][0][1], result["nash_conv"][-1][1]
    assert first > 1 and last < 0.01
    assert result["agents"]["random"] > result["agents"]["greedy"] > last
    policy = json.loads((tmp_path / "run" / "policy.json").read_text())
    assert len(policy) == result["information_states"]
    assert all(sum(kinds.values()) == pytest.approx(1) for kinds in policy.values())


def test_openspiels_python_mccfr_runs():
    game = load_game("ranks=2,hand_size=2")
    before = exploitability.nash_conv(game, UniformRandomPolicy(game))
    np.random.seed(0)  # noqa: NPY002 - the solver draws from it
    solver = external_sampling_mccfr.ExternalSamplingSolver(game)
    for _ in range(300):
        solver.iteration()
    assert exploitability.nash_conv(game, solver.average_policy()) < before / 3


def test_too_large_a_tree_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "MAX_NODES", 1000)
    with pytest.raises(ValueError, match="more than 1,000 nodes"):
        script.run(script.Cfr(rules=SMALL, run=tmp_path / "run"))


@pytest.mark.parametrize("rules", ["standard", "players=3"])
def test_every_agent_is_paid_in_full(rules):
    class Recorder:
        def __init__(self, player):
            self.player, self.paid = player, []

        def step(self, step):
            self.paid.append(step.rewards[self.player])
            if not step.last():
                assert step.current_player() == self.player
                self.action = step.observations["legal_actions"][self.player][0]
            return self

    game = load_game(rules)
    players = game.num_players()
    env, _ = script.make_learners(script.Nfsp(reservoir=10, replay=10), game)
    for seats in itertools.permutations(range(players)):
        agents = [Recorder(player) for player in range(players)]
        script.play_episode(env, agents, np.array(seats), 0.1)
        returns = env.get_state.returns()
        assert any(returns)
        for agent, seat in zip(agents, seats, strict=True):
            assert sum(agent.paid) == pytest.approx(0.1 * returns[seat])
            assert len(agent.paid) == 48 // players + 1


@pytest.mark.compiled
def test_nfsp_beats_random(tmp_path):
    settings = script.Nfsp(
        steps=9_600,
        minutes=3,
        threads=1,
        anticipatory=0.5,
        learn_every=16,
        games=10,
        deals=1000,
        run=tmp_path / "run",
    )
    result = script.run(settings)
    assert result["steps"] == 9_600 and result["episodes"] == 200
    [against_random] = result["results"]["random"]["results"]
    assert against_random["low"] > 0
    assert read_checkpoint(tmp_path / "run" / "policy.safetensors").observation == "kinds"


def test_the_policy_written_is_nfsps_average_policy():
    game, settings = load_game(), script.Nfsp(reservoir=10, replay=10)
    env, agents = script.make_learners(settings, game)
    policy = PolicyAgent(script.average_policy(agents[0], settings, game))
    step = env.reset()
    for _ in range(10):
        seat = step.current_player()
        observation = np.array(step.observations["info_state"][seat], np.float32)
        mask = np.array(env.get_state.legal_actions_mask(), np.int8)
        with agents[0].temp_mode_as(script.MODE.AVERAGE_POLICY):
            seated = script.as_seated(step, np.array([seat, 1 - seat]), 0, np.zeros(2))
            probabilities = agents[0].step(seated, is_evaluation=True).probs
        logits = np.where(mask, policy.logits(observation[np.newaxis])[0], -np.inf)
        expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert np.allclose(probabilities, expected, atol=1e-5)
        step = env.step([int(np.argmax(probabilities))])


def test_search_plays_legal_cards_and_is_measured(tmp_path):
    settings = script.Ismcts(rules=SMALL, steps=30, simulations=10, run=tmp_path / "run")
    result = script.run(settings)
    assert result["results"]["random"]["deals"] == 30
    assert result["results"]["random"]["mean"] > 0


def test_agents_answer_with_kinds():
    game = load_game()
    agents = [load(name, game.rules) for name in ("random", "greedy", "counting")]
    for state in random_states(game, np.random.default_rng(4)):
        assert all(ask(agent, state) in state.legal_actions() for agent in agents)
