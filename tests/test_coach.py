"""What a policy thinks and what plays cost, against playouts written a second time with `step`."""

import itertools
import json
import random
import re
from collections import Counter

import numba
import numpy as np
import pytest
from places import choose, random_table, seeded

from pisti_env import Rules, cli, pisti_v0
from pisti_env.agents import ask, load
from pisti_env.agents.hosting import observe
from pisti_env.arena import play_decks, random_decks
from pisti_env.cards import CARD_NAMES, KIND_OF_CARD
from pisti_env.coach import coach, explain
from pisti_env.coach.appraise import appraise, tell_apart
from pisti_env.coach.playouts import play_out
from pisti_env.coach.worlds import all_worlds, random_worlds
from pisti_env.knowledge import deal_unknown, deck_of, fill_in, known_of_view, make_view
from pisti_env.observation import encoder
from pisti_env.record import Deal, Record, write_records

SLOW = numba.config.DISABLE_JIT
CASES = 4  # so that the work can be spread
LAST_PACKETS = 8 if SLOW else 200
TABLES = 4 if SLOW else 40
MOST_WAYS = 35  # to deal what a seat does not know, in a naive enumeration


def margin_of(card, deck, view, agent):
    """What a play of the view's seat is worth with this deck, if the agent plays on in every seat:
    what `play_out` returns, by the environment's steps."""
    rules = view.rules
    env = pisti_v0.raw_env(rules=rules)
    env.reset(options={"deck": list(deck), "dealer": view.dealer})
    for _, made in view.plays:
        env.step(made)
    before = env.view(None).public_points
    env.step(card)
    while not env.terminations[env.agent_selection]:
        env.step(ask(env, agent))
    gains = [one["points"] - was for one, was in zip(env.score(), before, strict=True)]
    mine = gains.pop(rules.side(view.viewer))
    return mine - sum(gains) / len(gains)


def views_to_play(rng, tables, wanted=lambda view: True, **fields):
    """Yield views of the seats to play at some moments of random deals."""
    while tables > 0:
        env, places = random_table(rng, **fields)
        if env.rules.target is not None:
            continue
        moments = []
        while not places.over:
            moments.append(env.view(places.to_play))
            card = choose(places, rng, 0.5)
            env.step(card)
            places.play(card)
        moments = [view for view in moments if wanted(view)]
        if moments:
            tables -= 1
            yield rng.choice(moments)


@pytest.mark.parametrize("case", range(CASES))
def test_a_playout_is_the_rest_of_the_deal_by_steps(case):
    rng = seeded("playouts", case)
    for view in views_to_play(rng, TABLES // CASES):
        agent = load(rng.choice(["greedy", "counting"]), view.rules)
        worlds = random_worlds(view, 3, seed=case)
        kept = worlds.copy()
        cards = [cards[0] for cards in tell_apart(view)]
        worth = play_out(agent, view.rules, worlds, cards, seed=0)
        assert (worlds == kept).all()
        for number in range(3):
            deck = deck_of(worlds[number : number + 1], view.rules)
            for card, row in zip(cards, worth, strict=True):
                assert row[number] == pytest.approx(margin_of(card, deck, view, agent), abs=1e-9)


@pytest.mark.compiled  # more worlds than are played out at once
def test_all_plays_are_played_out_in_the_same_worlds_and_at_equal_luck():
    env = pisti_v0.raw_env()
    env.reset(seed=3)
    view = env.view(int(env.agent_selection[-1]))
    worlds = random_worlds(view, 700, seed=1)
    agent = load("random")
    first, second, again = view.hand[0], view.hand[1], view.hand[0]
    worth = play_out(agent, view.rules, worlds, [first, second, again], seed=5)
    assert (worth[0] == worth[2]).all() and (worth[0] != worth[1]).any()
    assert (play_out(agent, view.rules, worlds, [first], seed=5)[0] == worth[0]).all()
    assert (play_out(agent, view.rules, worlds, [first], seed=6)[0] != worth[0]).any()


# The end of a deal, where every world can be listed.


def ways_to_deal(view):
    """Every deck, of one pack, that fits what a seat has seen of the last packet: all equally
    likely. None if there are more than MOST_WAYS."""
    rules = view.rules
    seen = {view.starter, *view.hand, *view.known_starters, *(card for _, card in view.plays)}
    unknown = [card for card in rules.deck_cards() if card not in seen]
    starters = 0 if view.known_starters else 3
    sizes = [0 if seat == view.viewer else size for seat, size in enumerate(view.hand_sizes)]
    ways = list(itertools.islice(partitions(unknown, [*sizes, starters]), MOST_WAYS + 1))
    if len(ways) > MOST_WAYS:
        return None
    decks = []
    for *hands, down, left in ways:
        hands[view.viewer] = view.hand
        packets = [[] for _ in range(rules.num_packets)]
        for packet, dealt in enumerate(packets):
            for turn in range(rules.players):
                seat = (view.dealer + 1 + turn) % rules.players
                first, end = packet * rules.packet_size, (packet + 1) * rules.packet_size
                dealt += [card for who, card in view.plays[first:end] if who == seat]
                dealt += hands[seat] if packet + 1 == rules.num_packets else []
        stock = [card for dealt in packets for card in dealt]
        decks.append([*(down or view.known_starters), view.starter, *stock, *left])
    return decks


def partitions(cards, sizes):
    """Every way to deal cards out to groups of these sizes, and what is left then."""
    if not sizes:
        yield (tuple(cards),)
        return
    for group in itertools.combinations(cards, sizes[0]):
        rest = [card for card in cards if card not in group]
        yield from ((group, *others) for others in partitions(rest, sizes[1:]))


SETTINGS = [
    ("pisti-2p", {}),
    ("counting", {"leftovers": "burn", "ranks": 12}),
    ("greedy", {"players": 3}),
    ("counting", {"players": 4, "partners": True}),
]


@pytest.mark.parametrize("case", range(len(SETTINGS)))
def test_the_best_play_of_the_last_packet_is_that_of_a_naive_enumeration(case):
    name, fields = SETTINGS[case]
    rng, agent, ways, done = seeded("last packets", case), load(name, fields), Counter(), 0
    while done < LAST_PACKETS // len(SETTINGS):
        env = pisti_v0.raw_env(rules=agent.rules)
        env.reset(seed=rng.randrange(2**32))
        stop = rng.randint(1, min(8, env.rules.packet_size))
        while env.rules.num_plays - len(env.view(None).plays) > stop:
            env.step(int(rng.choice(np.flatnonzero(env.infos[env.agent_selection]["action_mask"]))))
        view = env.view(int(env.agent_selection[-1]))
        decks = None if view.shown_jacks else ways_to_deal(view)
        if decks is None:
            continue
        explanation = explain(view, agent)
        assert explanation.is_exact
        means = {
            choice.cards: np.mean([margin_of(choice.cards[0], deck, view, agent) for deck in decks])
            for choice in explanation.choices
        }
        for choice in explanation.choices:
            assert choice.worth.mean == pytest.approx(means[choice.cards], abs=1e-9)
            assert choice.worth.within == choice.loss.within == 0
        assert means[explanation.choices[0].cards] == pytest.approx(max(means.values()), abs=1e-9)
        done += 1
        ways[len(decks) > 1] += 1
    assert ways[True] >= done // 5, ways


def orders_of_the_deck(view, deck):
    """How often each way to deal occurs among all orders of the deck that fit what a seat has seen
    of the last packet, and a deck of each: {way: (orders, deck)}. `deck` is one that fits. None if
    there are more than 7 places where an unknown card may lie."""
    rules, size = view.rules, view.rules.hand_size
    first = 4 + (rules.num_packets - 1) * rules.packet_size
    places = [] if view.known_starters else [0, 1, 2]
    hands = {}
    for turn in range(rules.players):
        seat = (view.dealer + 1 + turn) % rules.players
        hands[seat] = range(first + turn * size, first + (turn + 1) * size)
        places += [] if seat == view.viewer else hands[seat]
    places += range(4 + rules.num_plays, rules.deck_size)
    if len(places) > 7:
        return None
    played = {seat: Counter() for seat in hands}
    for seat, card in view.plays[first - 4 :]:
        played[seat][card] += 1
    ways = {}
    for cards in set(itertools.permutations([deck[place] for place in places])):
        order = list(deck)
        for place, card in zip(places, cards, strict=True):
            order[place] = card
        dealt = {seat: Counter(order[place] for place in hands[seat]) for seat in hands}
        if all(played[seat] <= dealt[seat] for seat in hands):
            way = (*(tuple(sorted(dealt[seat].elements())) for seat in hands), *sorted(order[:3]))
            ways[way] = (ways.get(way, (0, 0))[0] + 1, order)
    return ways


TWINS = [
    {"players": 2, "ranks": 4, "copies": 2, "hand_size": 2},
    {"players": 2, "ranks": 3, "copies": 3, "hand_size": 3, "starters_seen_by": "all"},
    {"players": 3, "ranks": 4, "copies": 2, "hand_size": 2},
    {"players": 4, "partners": True, "ranks": 5, "copies": 2, "hand_size": 2},
]


@pytest.mark.parametrize("fields", TWINS)
def test_with_twins_the_worths_are_means_over_all_orders_of_the_deck(fields):
    """Of two packs, so a card may be one of two equal ones, and some ways to deal are likelier."""
    rules = Rules(packs=2, **fields)
    rng, uneven = seeded("orders", fields["players"], fields["ranks"]), 0
    for _ in range(4 if SLOW else 25):
        agent, ways = load(rng.choice(["greedy", "counting"]), rules), None
        while ways is None or len(ways) < 2:
            env = pisti_v0.raw_env(rules=rules)
            env.reset(seed=rng.randrange(2**32))
            for _ in range(rules.num_plays - rng.randint(1, rules.packet_size)):
                mask = env.infos[env.agent_selection]["action_mask"]
                env.step(int(rng.choice(np.flatnonzero(mask))))
            view = view_to_play(env)
            ways = None if view.shown_jacks else orders_of_the_deck(view, env.deck)
        explanation = explain(view, agent)
        assert explanation.is_exact and explanation.worlds == len(ways)
        numbers = [number for number, _ in ways.values()]
        uneven += len(set(numbers)) > 1
        for choice in explanation.choices:
            margins = [margin_of(choice.cards[0], deck, view, agent) for _, deck in ways.values()]
            assert choice.worth.mean == pytest.approx(np.average(margins, weights=numbers))
    assert uneven > 0


def world_of(game, rules):
    """What tells a world from others that fit the same view: who holds what, in no order."""
    hands = tuple(
        tuple(sorted(game["hands"][seat, : game["hand_sizes"][seat]].tolist()))
        for seat in range(rules.players)
    )
    return hands, tuple(sorted(game["deck"][:3].tolist()))


@pytest.mark.compiled
@pytest.mark.parametrize("case", range(CASES))
def test_worlds_that_are_listed_are_as_likely_as_those_that_are_drawn(case):
    """With twins of two packs, and jacks that were turned up and went into hands."""
    rng, drawn, done, twins = seeded("weights", case), 20_000, 0, 0
    while done < 6 or not twins:
        [view] = views_to_play(rng, 1, lambda v: v.packet == v.rules.num_packets and v.hand)
        listed = all_worlds(view, 40)
        if listed is None or len(listed[0]) < 2:
            continue
        games, weights = listed
        assert weights.sum() == pytest.approx(1)
        for game in games:
            seen = make_view(game[np.newaxis], view.rules, view.viewer, None)
            assert (seen.hand, seen.plays, seen.pile) == (view.hand, view.plays, view.pile)
        expected = Counter()
        for game, weight in zip(games, weights, strict=True):
            expected[world_of(game, view.rules)] += weight * drawn
        counts = Counter(world_of(game, view.rules) for game in random_worlds(view, drawn, case))
        assert set(counts) <= set(expected)
        for world, number in expected.items():
            assert abs(counts[world] - number) < 5 * max(number, 1) ** 0.5, (view, world)
        done += 1
        twins += len(set(np.round(weights, 12))) > 1


# Explanations.


def begun(seed=1, plays=0, **fields):
    """An environment in the middle of a deal."""
    env = pisti_v0.raw_env(**fields)
    env.reset(seed=seed)
    for _ in range(plays):
        env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    return env


def view_to_play(env):
    return env.view(env.possible_agents.index(env.agent_selection))


@pytest.mark.parametrize("name", ["pisti-2p", "counting", "random"])
@pytest.mark.parametrize("plays", [0, 17])
def test_the_probabilities_are_what_the_agent_plays_by(name, plays):
    env, agent = begun(plays=plays), load(name)
    view = view_to_play(env)
    explanation = explain(view, agent, samples=8)
    shown = env.observe_as(env.agent_selection, agent.observation)
    by_action = agent.probabilities(shown["observation"], shown["action_mask"])
    actions = KIND_OF_CARD if agent.observation == "kinds" else np.arange(52)
    for choice in explanation.choices:
        assert choice.probability == pytest.approx(
            by_action[np.unique(actions[list(choice.cards)])].sum()
        )
    assert sum(choice.probability for choice in explanation.choices) == pytest.approx(1)
    if name != "random":
        likeliest = max(explanation.choices, key=lambda choice: choice.probability)
        assert ask(env, agent) in likeliest.cards
    value = agent.value(shown["observation"])
    assert explanation.value == (None if value is None else pytest.approx(value))


def test_one_that_tells_no_probabilities_is_asked_what_it_plays():
    class Highest:
        observation, rules = "full", Rules()

        def act(self, observation, action_mask, seeds=None):
            return 51 - action_mask[..., ::-1].argmax(axis=-1)

    view = view_to_play(begun())
    explanation = explain(view, Highest(), samples=8)
    assert explanation.agent == "Highest" and explanation.value is None
    for choice in explanation.choices:
        assert choice.probability == (max(view.hand) in choice.cards)


def test_cards_that_no_rule_tells_apart_are_one_play():
    hand = [CARD_NAMES.index(name) for name in ("3C", "3D", "TD", "TC")]
    first, *rest = (card for card in Rules().deck_cards() if card not in hand)
    env = pisti_v0.raw_env()
    env.reset(options={"deck": [*rest[:3], first, *hand, *rest[3:]], "dealer": 1})
    explanation = explain(env.view(0), "greedy", samples=5)
    assert {tuple(CARD_NAMES[card] for card in choice.cards) for choice in explanation.choices} == {
        ("3C", "3D"),
        ("TC",),
        ("TD",),
    }


def test_what_a_play_takes_at_once_is_told_and_nothing_hidden():
    rng = random.Random(4)
    env = pisti_v0.raw_env()
    env.reset(seed=4)
    takes = Counter()
    while not env.terminations[env.agent_selection]:
        view = view_to_play(env)
        card = rng.choice(view.hand)
        choices = explain(view, "greedy", samples=1).choices
        [choice] = [choice for choice in choices if card in choice.cards]
        env.step(card)
        after = env.view(None)
        if len(env.deals) or after.to_play is None:
            break
        assert choice.captured_size == after.last_play.captured_size
        assert choice.gains == after.last_play.gains
        takes[choice.captured_size > 0] += 1
    assert min(takes.values()) > 3


@pytest.mark.parametrize("plays", [0, 30, 42])
def test_an_explanation_follows_from_what_the_seat_knows_alone(plays):
    env = begun(plays=plays)
    view = view_to_play(env)
    games = env.moment()[0]
    deal_unknown(games, env.rules, view.viewer, seed=9)
    other = pisti_v0.raw_env()
    other.reset(options={"deck": deck_of(games, env.rules), "dealer": env.dealer})
    for _, card in view.plays:
        other.step(card)
    explanations = [
        explain(position, "pisti-2p", samples=5 if SLOW else 50)
        for position in (view, env.position(view.viewer), other.position(view.viewer))
    ]
    assert other.deck != env.deck
    assert explanations[0] == explanations[1] == explanations[2]


@pytest.mark.compiled
def test_what_is_drawn_follows_from_the_seed():
    view = view_to_play(begun())
    state = random.getstate()
    one, again, other = (explain(view, "greedy", samples=600, seed=seed) for seed in (1, 1, 2))
    assert one == again and one != other
    assert random.getstate() == state
    assert one.worlds == 600 and not one.is_exact
    first = appraise(view, load("greedy"), 512, seed=1).worth
    assert (appraise(view, load("greedy"), 600, seed=1).worth[:, :512] == first).all()


@pytest.mark.compiled
@pytest.mark.parametrize("plays", [0, 24])
def test_without_a_number_playouts_go_on_until_they_are_close(plays):
    explanation = explain(view_to_play(begun(plays=plays)), "greedy")
    assert max(choice.worth.within for choice in explanation.choices) < 0.5
    assert 512 < explanation.worlds <= 16_384


class Drawing:
    """Greedy, as one that might draw: so no worlds are listed, but drawn."""

    def __init__(self):
        self.greedy = load("greedy")
        self.observation, self.rules = self.greedy.observation, self.greedy.rules

    def act(self, observation, action_mask, seeds=None):
        return self.greedy.act(observation, action_mask, seeds)


@pytest.mark.compiled
def test_intervals_hold_as_often_as_they_say():
    """Held against the worths of all worlds, at the end of deals."""
    rng, held, number = seeded("intervals"), 0, 0
    while number < 300:
        view = rng.choice([view_to_play(begun(rng.randrange(2**32), plays)) for plays in (40, 41)])
        exact = explain(view, "greedy")
        drawn = explain(view, Drawing(), samples=200, seed=number)
        assert exact.is_exact and not drawn.is_exact
        worths = {choice.cards: choice.worth.mean for choice in exact.choices}
        for choice in drawn.choices:
            if choice.worth.within:  # else there is one world
                number += 1
                held += abs(choice.worth.mean - worths[choice.cards]) <= choice.worth.within
    assert 0.90 < held / number < 0.99


@pytest.mark.compiled
def test_an_explanation_is_read_as_text_and_as_json():
    explanation = explain(view_to_play(begun(plays=2)), "pisti-2p", samples=200)
    text = str(explanation)
    assert text.count("best\n") == 2  # the heading, and the best play
    told = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert [choice["worth"]["mean"] for choice in told["choices"]] == sorted(
        (choice.worth.mean for choice in explanation.choices), reverse=True
    )
    assert explain(told["position"], "pisti-2p", samples=200).choices == explanation.choices


@pytest.mark.parametrize("samples", [1, 40])
def test_the_text_of_an_explanation_has_92_columns_and_its_json_no_infinity(samples):
    """With a long pile too, and after a single playout, which tells nothing of its error."""
    for view in views_to_play(seeded("texts"), TABLES // 4, lambda view: len(view.pile) > 14):
        explanation = explain(view, "greedy", samples)
        text = str(explanation)
        assert max(map(len, text.splitlines())) <= 92
        assert text.count("±") == sum(
            0 if explanation.is_exact else 1 + (choice is not explanation.choices[0])
            for choice in explanation.choices
        )
        told = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        is_told = explanation.is_exact or samples > 1
        assert all((one["worth"]["within"] is not None) == is_told for one in told["choices"])


def test_what_cannot_be_explained_is_told_in_a_sentence():
    env = begun()
    to_play = env.possible_agents.index(env.agent_selection)
    for position, told in [
        (5, "position is 5; expected a line of text"),
        (env.view(1 - to_play), rf"what seat {1 - to_play} knows, and seat {to_play} is to play"),
        (env.view(None), f"what a spectator knows, and seat {to_play} is to play"),
        ("pisti1", "position is 'pisti1'; expected 13 fields"),
    ]:
        with pytest.raises(ValueError, match=told):
            explain(position, "greedy")
    view = env.view(to_play)
    for arguments, told in [
        ((view, "nobody"), "agent is 'nobody'; expected one of"),
        ((view, object()), "which has no act"),
        ((view, "pisti-3p"), "cannot play players=2"),
        ((view, "greedy", 0), "samples is 0; expected an int from 1 to 16384"),
        ((view, "greedy", True), "samples is True; expected"),
        ((view, "greedy", 5, -1), "seed is -1; expected"),
    ]:
        with pytest.raises(ValueError, match=told):
            explain(*arguments)


# The coach.


def a_match(seed=5, agents=("greedy", "counting"), **fields):
    """The record of a match between agents."""
    env = pisti_v0.raw_env(**fields)
    env.reset(seed=seed)
    players = [load(name, env.rules) for name in agents]
    while not env.terminations[env.agent_selection]:
        env.step(ask(env, players[env.possible_agents.index(env.agent_selection)]))
    return env.record(agents)


@pytest.mark.compiled
def test_the_coach_judges_every_play_of_the_seat():
    record = a_match(target=31)
    coaching = coach(record, 1, "counting", samples=20)
    assert coaching.who == "counting" and coaching.agent == "counting"
    judged = {(one.deal, one.play): one for one in coaching.plays}
    made = {
        (deal, play): card
        for deal, dealt in enumerate(record.deals)
        for play, card in enumerate(dealt.plays)
        if (dealt.dealer + 1 + play) % 2 == 1
    }
    assert {moment: one.card for moment, one in judged.items()} == made
    losses = [one.loss.mean for one in coaching.plays]
    assert losses == sorted(losses, reverse=True) and losses[-1] >= 0
    for one in coaching.plays:
        assert one.card in one.chosen and one.loss_to_agent == (0, 0)
        assert (one.card in one.best) == (one.loss.mean == 0) or one.loss.mean == 0
    assert coaching.loss.mean == pytest.approx(sum(losses))
    assert coaching.loss_to_agent.mean == 0
    only = coach(record, 1, "counting", samples=20, deal=1)
    assert set(only.plays) == {one for one in coaching.plays if one.deal == 1}


@pytest.mark.compiled
def test_the_coach_says_what_explain_says():
    record = a_match()
    coaching = coach(record, 0, "greedy", samples=64)
    one = coaching.plays[0]
    view = record.view(one.deal, one.play, 0)
    choices = {card: c for c in explain(view, "greedy", samples=2_000).choices for card in c.cards}
    assert abs(choices[one.card].worth.mean - one.worth.mean) < 3 * one.worth.within + 0.5


@pytest.mark.compiled
def test_the_coach_sees_what_the_seat_saw():
    """A record of what a seat saw is judged as the whole one, and that of another seat not at
    all."""
    record = a_match(players=3, agents=("greedy", "counting", "random"))
    whole = coach(record, 2, "counting", samples=20)
    assert coach(record.seen_by(2), 2, "counting", samples=20) == whole
    with pytest.raises(ValueError, match="only what seat 1 saw; expected a record of what seat 2"):
        coach(record.seen_by(1), 2, "counting")
    with pytest.raises(ValueError, match="only what everyone saw"):
        coach(record.seen_by("everyone"), 2, "counting")


@pytest.mark.compiled
@pytest.mark.parametrize("policy", ["pisti-2p", "counting"])
def test_in_the_true_deals_what_plays_cost_is_the_margin(policy):
    """The performance difference lemma (Kakade and Langford, 2002), deal by deal: where every play
    is judged in the deal as it lay, the sum is exactly what was lost against the policy's own
    result in the same seat."""
    rules, seed, deals = Rules(), 3, 12
    coached, judge = load("greedy"), load(policy)
    decks, dealers = random_decks(rules, seed, deals)
    versus = play_decks([coached, judge], rules, decks, dealers, seed)
    itself = play_decks([judge, judge], rules, decks, dealers, seed)
    for deal, seat in np.ndindex(deals, 2):
        lost = 0.0
        plays = tuple(versus.plays[deal, seat].tolist())
        record = Record(
            rules=rules, deals=(Deal(tuple(decks[deal].tolist()), int(dealers[deal]), plays),)
        )
        for play, card in enumerate(plays):
            if (dealers[deal] + 1 + play) % 2 == seat:
                env = record.replay(0, play)
                worlds, own = env.moment()[0], ask(env, judge)
                worth = play_out(judge, rules, worlds, [own, card], seed=0)[:, 0]
                lost += worth[0] - worth[1]
        margins = [played.points[deal, seat] @ [1, -1] for played in (itself, versus)]
        assert lost == margins[0] - margins[1]


def test_what_cannot_be_coached_is_told_in_a_sentence():
    record = a_match()
    for arguments, told in [
        (("deals.toml", 0, "greedy"), "record is 'deals.toml'; expected a Record"),
        ((record, 2, "greedy"), "seat is 2; expected"),
        ((record, None, "greedy"), "seat is None; expected an int from 0 to 1"),
        ((record, 0, "greedy", 0), "samples is 0; expected"),
    ]:
        with pytest.raises(ValueError, match=told):
            coach(*arguments)
    with pytest.raises(ValueError, match="deal is 1; expected an int from 0 to 0"):
        coach(record, 0, "greedy", deal=1)


# The commands.


def test_explain_on_the_command_line(tmp_path, capsys):
    env = begun(plays=3)
    line = env.position(env.possible_agents.index(env.agent_selection))
    file = tmp_path / "position.txt"
    file.write_text(line + "\n", encoding="utf-8")
    told = []
    for position in (line, str(file)):
        cli.main(["explain", position, "--samples", "20", "--json", str(tmp_path / "told.json")])
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].startswith(str(explain(line, "pisti-2p", 20)))
    written = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert written == explain(line, "pisti-2p", 20).to_dict()


@pytest.mark.compiled
def test_coach_on_the_command_line(tmp_path, capsys):
    file, record = tmp_path / "deals.toml", a_match(target=31)
    write_records(file, [a_match(), record])
    arguments = ["coach", str(file), "--record", "1", "--seat", "0", "--agent", "greedy"]
    cli.main([*arguments, "--samples", "10"])
    assert capsys.readouterr().out.strip() == str(coach(record, 0, "greedy", 10))
    play = next(one.play for one in coach(record, 0, "greedy", 1, deal=1).plays)
    cli.main([*arguments, "--samples", "10", "--deal", "1", "--play", str(play)])
    expected = explain(record.view(1, play, 0), "greedy", 10)
    assert capsys.readouterr().out.strip() == str(expected)


@pytest.mark.parametrize(
    ("rules", "agent"),
    [
        ({}, "pisti-2p"),
        ({"players": 3}, "pisti-3p"),
        ({"players": 4, "partners": True}, "pisti-4p"),
        ({"players": 5}, "counting"),
        ({"target": 151}, "pisti-2p"),
    ],
)
def test_without_a_name_a_policy_that_can_play_the_rules_explains(rules, agent, capsys):
    env = begun(**rules)
    line = env.position(env.possible_agents.index(env.agent_selection))
    cli.main(["explain", line, "--samples", "2"])
    assert re.search(rf"^{agent} plays on", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explain", "nonsense"], "pisti explain: position is 'nonsense'; expected"),
        (["coach", "none.toml", "--seat", "0"], "pisti coach: "),
        (["coach", "deals.toml", "--seat", "5"], "pisti coach: seat is 5; expected"),
        (["coach", "deals.toml", "--seat", "0", "--play", "99"], "pisti coach: play is 99; exp"),
        (["coach", "deals.toml", "--seat", "0", "--record", "7"], "pisti coach: record is 7; exp"),
    ],
)
def test_a_mistake_is_one_line(arguments, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_records("deals.toml", [a_match()])
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(told)


def test_a_search_tells_what_it_makes_of_its_worlds():
    env = pisti_v0.raw_env()
    env.reset(seed=5)
    for _ in range(3):
        env.step(int(env.view(env.view(None).to_play).hand[0]))
    view = env.view(env.view(None).to_play)
    search = load("search:pisti-2p")
    told = explain(view, search, samples=16, seed=9)
    own = encoder("history", view.rules)
    games = fill_in(known_of_view(view)).games
    seen = observe(own, games, np.zeros(1, np.int64))
    [thoughts] = search.in_worlds(16).think(*seen, np.array([9], np.uint64))
    means = dict(zip(thoughts.cards.tolist(), thoughts.means().tolist(), strict=True))
    assert {choice.cards[0]: choice.worth.mean for choice in told.choices} == pytest.approx(means)
    assert told.worlds == 16 and not told.is_exact
    assert all(0 < choice.worth.within < 100 for choice in told.choices)
