"""Mirrored deals, hosting and intervals, held against play by hand and against known chances."""

import dataclasses
import itertools
import json
import math

import numba
import numpy as np
import pytest

from pisti_env import Rules, arena, pisti_v0
from pisti_env.agents import load
from pisti_env.arena import (
    MatchFinals,
    decision_seeds,
    evaluate,
    find_lineups,
    hash_decks,
    mean_with_interval,
    play_decks,
    random_decks,
)
from pisti_env.cards import KIND_OF_CARD
from pisti_env.observation import ENCODINGS, describe
from pisti_env.record import read_records
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
DECKS = 5 if INTERPRETED else 37


@pytest.fixture
def quick_matches(monkeypatch):
    monkeypatch.setattr(arena, "MATCHES", 2**8)
    monkeypatch.setattr(arena, "RESAMPLED_MATCHES", 2**6)
    monkeypatch.setattr(arena, "RESAMPLES", 10)
    monkeypatch.setattr(arena, "MAX_DEALS", 50)


class Lowest:
    """Plays its lowest action in some encoding; remembers what it was asked."""

    def __init__(self, rules, observation="kinds"):
        self.rules, self.observation = rules, observation
        self.asked = []

    def act(self, observations, masks, seeds=None):
        self.asked.append((observations.copy(), masks.copy(), seeds.copy()))
        return masks.argmax(axis=1)


# Decks.


@pytest.mark.parametrize("fields", [{}, {"players": 5, "target": 60}, {"ranks": 3, "copies": 4}])
def test_deck_k_is_the_first_deal_of_table_k(fields):
    rules = Rules(**fields)
    decks, dealers = random_decks(rules, seed=4, deals=1_030)
    batch = DealBatch(1_030, rules, seed=4)
    assert (decks == batch.decks).all() and (dealers == batch.dealers).all()
    fewer, _ = random_decks(rules, seed=4, deals=7)
    assert (fewer == decks[:7]).all()
    assert (random_decks(rules, seed=5, deals=7)[0] != fewer).any()


def test_the_same_seed_plays_the_same_decks_whoever_plays():
    quick = {"deals": 5, "match": False}
    hashes = {
        evaluate(agents, seed=1, **quick).deck_hash
        for agents in (["greedy", "random"], ["counting", "greedy", "random"])
    }
    assert hashes == {hash_decks(*random_decks(Rules(), 1, 5))}
    assert evaluate(["greedy", "random"], seed=2, **quick).deck_hash not in hashes
    assert (
        evaluate(["greedy", "random"], rules={"target": 151}, seed=1, **quick).deck_hash in hashes
    )


# Hosting.


def play_by_hand(entrants, rules, deck, dealer, number, seed, seating):
    """The points of each entrant, played card by card in the PettingZoo environment."""
    env = pisti_v0.raw_env(rules=dataclasses.replace(rules, target=None))
    env.reset(options={"deck": deck.tolist(), "dealer": int(dealer)})
    for play in range(rules.num_plays):
        name = env.agent_selection
        side = rules.side(env.possible_agents.index(name))
        agent = entrants[(side - seating) % rules.sides]
        shown = env.observe_as(name, agent.observation)
        seeds = decision_seeds(seed, np.array([number]), play)
        action = agent.act(shown["observation"][None], shown["action_mask"][None], seeds)[0]
        hand = env.view(env.possible_agents.index(name)).hand
        kinds = len(shown["action_mask"]) == 15
        env.step(min(card for card in hand if (KIND_OF_CARD[card] if kinds else card) == action))
    points = [score["points"] for score in env.score()]
    return [points[(entrant + seating) % rules.sides] for entrant in range(rules.sides)]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ["counting", "random"]),
        ({"players": 3}, ["counting", "random", "lowest"]),
        ({"players": 3}, ["random", "greedy", "greedy"]),
        ({"players": 4}, ["lowest", "counting"]),
        ({"players": 4, "partners": False}, ["greedy", "random", "random", "lowest"]),
        ({"players": 5, "packs": 2}, ["counting", "lowest", "lowest", "lowest", "lowest"]),
    ],
)
def test_the_arena_plays_what_is_played_by_hand(fields, names):
    rules = Rules(**fields)
    by_name = {name: Lowest(rules) if name == "lowest" else load(name, rules) for name in names}
    entrants = [by_name[name] for name in names]
    decks, dealers = random_decks(rules, seed=9, deals=4)
    points = play_decks(entrants, rules, decks, dealers, seed=9).points
    for deck, seating in itertools.product(range(4), range(rules.sides)):
        expected = play_by_hand(entrants, rules, decks[deck], dealers[deck], deck, 9, seating)
        assert points[deck, seating].tolist() == expected


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_agent_is_shown_what_its_seat_observes_and_nothing_else(encoding):
    rules = Rules(players=3)
    agent, other = Lowest(rules, encoding), Lowest(rules, "basic")
    decks, dealers = random_decks(rules, seed=2, deals=6)
    play_decks([agent, other, other], rules, decks, dealers, seed=2)
    assert len(agent.asked) == rules.num_plays
    observations, masks, seeds = agent.asked[0]
    assert observations.dtype == np.float32 and masks.dtype == np.int8 and seeds.dtype == np.uint64
    batch = DealBatch(6, rules, observation=encoding, seed=0)
    batch.reset(decks=decks, dealers=dealers)
    # Each deck is led by this agent in one of its three seatings.
    assert (observations == batch.observations).all()
    assert (masks == batch.action_masks).all()
    assert (seeds == decision_seeds(2, np.arange(6), 0)).all()


def test_a_match_rule_shows_the_first_deal_of_a_match():
    rules = Rules(target=151)
    agent = Lowest(rules, "full")
    evaluate([agent, "random"], rules, deals=3, match=False)
    layout = {row.name: row.slice for row in describe("full", rules)}
    for observations, _, _ in agent.asked:
        assert (observations[:, layout["target"]] > 0).all()
        assert (observations[:, layout["match_scores"]] == 0).all()


def test_seeds_depend_on_seed_deck_and_play_alone():
    first, second = Lowest(Rules()), Lowest(Rules())
    decks, dealers = random_decks(Rules(), seed=3, deals=5)
    play_decks([first, second], Rules(), decks, dealers, seed=3)
    for play in range(Rules().num_plays):
        # Both play each deck once at every play, in one of its two seatings.
        assert (np.sort(first.asked[play][2]) == np.sort(second.asked[play][2])).all()
    numbers = np.arange(1000)
    seeds = [decision_seeds(seed, numbers, play) for seed in (0, 1) for play in range(48)]
    assert len(np.unique(seeds)) == 2 * 48 * 1000


def test_a_forbidden_action_is_refused():
    class Wrong(Lowest):
        def act(self, observations, masks, seeds=None):
            return self.choice(masks)

    wrong = Wrong(Rules())
    for choice, message in [
        (lambda masks: masks.argmin(axis=1), "which its mask forbids"),
        (lambda masks: masks.argmax(axis=1) + 52, "which its mask forbids"),
        (lambda masks: masks.argmax(axis=1) - 99, "which its mask forbids"),
        (lambda masks: masks.argmax(axis=1)[1:], "expected 3 ints"),
        (lambda masks: masks.argmax(axis=1).astype(float), "expected 3 ints"),
    ]:
        for wrong.observation in ("kinds", "full"):
            wrong.choice = choice
            with pytest.raises(ValueError, match=f"Wrong.act .*{message}"):
                evaluate([wrong, "greedy"], deals=3, match=False)


# Seatings.


def test_lineups():
    assert list(find_lineups(2, 2)) == [(0, 1)]
    assert list(find_lineups(3, 3)) == [(0, 1, 2)]
    assert list(find_lineups(2, 3)) == [(0, 1, 1)]
    assert list(find_lineups(3, 2)) == [(0, 1), (0, 2), (1, 2)]
    assert list(find_lineups(3, 4)) == [(0, 1, 1, 1), (0, 2, 2, 2), (1, 2, 2, 2)]


def test_every_agent_sits_everywhere_equally_often():
    rules = Rules(players=4, partners=False)
    agents = [Lowest(rules, encoding) for encoding in ("basic", "full", "kinds", "history")]
    decks, dealers = random_decks(rules, seed=0, deals=3)
    play_decks(agents, rules, decks, dealers, seed=0)
    asked = [[len(seeds) for _, _, seeds in agent.asked] for agent in agents]
    assert asked == [[3] * rules.num_plays] * 4  # of 12 tables, at every play


def mirrored(result):
    def less(value, whole=0):
        return None if value is None else whole - value

    return dataclasses.replace(
        result,
        a=result.b,
        b=result.a,
        mean=-result.mean,
        low=less(result.high),
        high=less(result.low),
        wins=result.losses,
        losses=result.wins,
        match_win=less(result.match_win, 1),
        match_win_low=less(result.match_win_high, 1),
        match_win_high=less(result.match_win_low, 1),
    )


@pytest.mark.parametrize("deals", [1, DECKS])
@pytest.mark.parametrize("rules", ["standard", {"players": 4, "target": 60, "win_by": 5}, "loose"])
def test_a_against_b_is_exactly_minus_b_against_a(rules, deals, quick_matches):
    for a, b in itertools.combinations(["random", "greedy", "counting"], 2):
        one = evaluate([a, b], rules, deals, seed=6).results[0]
        other = evaluate([b, a], rules, deals, seed=6).results[0]
        assert other == mirrored(one)


@pytest.mark.parametrize("name", ["random", "counting"])
def test_an_agent_against_itself_is_exactly_level(name, quick_matches):
    [result] = evaluate([name, name], deals=20).results
    assert (result.mean, result.low, result.high) == (0, 0, 0)
    assert result.wins == result.losses and result.match_win == 0.5


def test_three_agents_at_a_table_of_three(quick_matches):
    rules, names = Rules(players=3), ["counting", "greedy", "random"]
    evaluation = evaluate(names, rules, deals=30)
    points = play_decks(
        [load(name, rules) for name in names], rules, *random_decks(rules, 0, 30), 0
    ).points
    assert [(result.a, result.b) for result in evaluation.results] == list(
        itertools.combinations(names, 2)
    )
    for result, (a, b) in zip(evaluation.results, itertools.combinations(range(3), 2), strict=True):
        lead = points[:, :, a] - points[:, :, b]
        assert result.mean == pytest.approx(lead.mean())
        assert [result.wins, result.draws, result.losses] == [
            (lead > 0).sum(),
            (lead == 0).sum(),
            (lead < 0).sum(),
        ]


def test_one_seat_against_all_others(quick_matches):
    rules = Rules(players=3)
    [result] = evaluate(["greedy", "random"], rules, deals=30).results
    greedy, random = load("greedy", rules), load("random", rules)
    points = play_decks([greedy, random, random], rules, *random_decks(rules, 0, 30), 0).points
    mine, best = points[:, :, 0], points[:, :, 1:].max(axis=2)
    assert result.mean == pytest.approx((mine - points[:, :, 1:].mean(axis=2)).mean())
    assert (result.wins, result.draws) == ((mine > best).sum(), (mine == best).sum())
    assert result.wins + result.draws + result.losses == 90


# Blocks.


def test_any_number_of_shards_gives_the_same_result(monkeypatch):
    monkeypatch.setattr(arena, "BLOCK", 3)
    rules, agents = Rules(), [load("random"), Lowest(Rules())]
    decks, dealers = random_decks(rules, seed=1, deals=17)
    whole = play_decks(agents, rules, decks, dealers, seed=1).points
    sizes = [len(seeds) for _, _, seeds in agents[1].asked]
    for shards in (2, 3, 6):
        bounds = [3 * round(bound) for bound in np.linspace(0, 6, shards + 1)]
        agents[1].asked.clear()
        parts = [
            play_decks(agents, rules, decks[a:b], dealers[a:b], seed=1, first=a).points
            for a, b in itertools.pairwise(bounds)
        ]
        assert (np.concatenate(parts) == whole).all()
        # In batches of the same sizes, so that sums in floats are rounded the same way.
        assert [len(seeds) for _, _, seeds in agents[1].asked] == sizes
    monkeypatch.setattr(arena, "BLOCK", 17)
    assert (play_decks(agents, rules, decks, dealers, seed=1).points == whole).all()


# Records.


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (Rules(), ["counting", "greedy", "random"]),
        (Rules(players=3, ace_points=2), ["counting", "greedy", "random"]),
        (Rules(players=4, target=101), ["greedy", "random"]),
        (Rules(players=5, packs=2), ["greedy", "random"]),
    ],
)
def test_deals_that_are_kept_are_those_that_were_played(quick_matches, tmp_path, rules, names):
    file = tmp_path / "deals.toml"
    given = {"rules": rules, "deals": 5, "seed": 3}
    evaluation = evaluate(names, **given, record=file, record_every=2)
    assert evaluation == evaluate(names, **given)
    records = read_records(file)
    lineups = list(arena.find_lineups(len(names), rules.sides))
    assert len(records) == len(lineups) * 3 * rules.sides  # decks 0, 2 and 4
    decks, dealers = random_decks(rules, 3, 5)
    left = iter(records)
    for lineup, deck, seating in itertools.product(lineups, (0, 2, 4), range(rules.sides)):
        record, entrants = next(left), [load(names[agent], rules, 3) for agent in lineup]
        record.check()  # its scores too
        [deal] = record.deals
        assert (list(deal.deck), deal.dealer) == (decks[deck].tolist(), dealers[deck])
        assert record.comments == (f"deck {deck} of seed 3, seating {seating}",)
        assert record.agents == tuple(
            names[lineup[(rules.side(seat) - seating) % rules.sides]]
            for seat in range(rules.players)
        )
        points = play_by_hand(entrants, rules, decks[deck], dealers[deck], deck, 3, seating)
        by_entrant = [deal.scores[(e + seating) % rules.sides] for e in range(rules.sides)]
        assert by_entrant == points


def test_a_file_of_deals_that_cannot_be_written_is_found_out_first(tmp_path):
    with pytest.raises(OSError, match="cannot be written"):
        evaluate(["greedy", Refusing()], deals=2, record=tmp_path / "no" / "deals.toml")
    for every, words in ((0, "record_every is 0"), (True, "record_every is True")):
        with pytest.raises(ValueError, match=words):
            evaluate(["greedy", Refusing()], record=tmp_path / "deals", record_every=every)
    with pytest.raises(ValueError, match="keeps 200002 deals"):
        evaluate(["greedy", Refusing()], deals=100_001, record=tmp_path / "deals")


class Refusing:
    """An agent that is not to be asked."""

    observation, rules = "basic", Rules()

    def act(self, observations, masks, seeds=None):
        raise AssertionError("played before everything was checked")


def test_results_are_not_lost_with_the_deals(quick_matches, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as failed:
        evaluate(["greedy", "random"], deals=2, record=tmp_path / "deals")
    assert failed.value.__notes__ == [str(evaluate(["greedy", "random"], deals=2))]
    assert not list(tmp_path.iterdir())


def test_any_name_can_be_kept(quick_matches, tmp_path):
    names = ["a\nb\x1b[2J\udc80\u2028", "ş" * 10_000]
    evaluate(["greedy", "random"], deals=1, names=names, record=tmp_path / "deals")
    first, second = read_records(tmp_path / "deals")[0].agents
    assert first == "a?b?[2J??"
    assert second.startswith("şş") and " … " in second and len(second) == 200


# Intervals.


def test_the_interval_of_a_mean_covers_it():
    rng = np.random.default_rng(0)
    covered = 0
    for values in rng.exponential(2.0, (2_000, 300)):
        mean, low, high = mean_with_interval(values)
        assert low < mean < high
        covered += low <= 2 <= high
    # 95 % less what skewness costs; its standard deviation is 0.5 %.
    assert 0.93 < covered / 2_000 < 0.965
    assert mean_with_interval(np.array([3.0])) == (3.0, None, None)


def toy_points(rng, decks, chance):
    """Deals that end a match at once, won by entrant 0 with some chance, in both seatings alike."""
    won = rng.random(decks) < chance
    return np.stack([won, ~won], axis=1)[:, np.newaxis].repeat(2, axis=1) * 151


@pytest.mark.compiled
def test_the_interval_of_a_match_covers_the_chance(monkeypatch):
    monkeypatch.setattr(arena, "RESAMPLED_MATCHES", 2**8)
    monkeypatch.setattr(arena, "RESAMPLES", 50)
    rng, covered, widths = np.random.default_rng(1), 0, []
    toys = 20 if INTERPRETED else 200
    for toy in range(toys):
        finals = MatchFinals(toy_points(rng, 100, 0.7), Rules(), seed=toy)
        chance, low, high = finals.chance(0, [1])
        covered += low <= 0.7 <= high
        widths.append(high - low)
        assert finals.chance(1, [0])[0] == 1 - chance
    # The chance is a mean of 100 decks, each won or lost.
    assert np.mean(widths) == pytest.approx(2 * 1.96 * math.sqrt(0.7 * 0.3 / 100), rel=0.1)
    assert covered / toys > 0.9


@pytest.mark.compiled
def test_the_chance_of_a_match_of_several_deals():
    """Each deal gives 51 points to one of the two: the first to win three of them wins."""
    rng = np.random.default_rng(2)
    points = toy_points(rng, 5_000, 0.6) // 151 * 51
    won = (points[:, 0, 0] > 0).mean()
    expected = sum(math.comb(2 + lost, lost) * won**3 * (1 - won) ** lost for lost in range(3))
    assert MatchFinals(points, Rules(), 0).chance(0, [1])[0] == pytest.approx(expected, abs=0.02)
    # To 101 two are enough.
    expected = won**2 * (1 + 2 * (1 - won))
    short = MatchFinals(points, Rules(target=101), 0)
    assert short.chance(0, [1])[0] == pytest.approx(expected, abs=0.02)


def test_match_rules_decide_matches(quick_matches):
    # Both have 151 after each deal; every third deal entrant 0 has 3 more.
    points = np.full((3, 2, 2), 151)
    points[2, :, 0] += 3
    shared = MatchFinals(points, Rules(tie_at_target="shared"), 0).chance(0, [1])[0]
    assert 0.5 < shared < 0.8  # a third of the first deals is won, the others are shared
    assert MatchFinals(points, Rules(), 0).chance(0, [1])[0] == 1  # ties play on until it leads
    assert MatchFinals(points, Rules(win_by=6), 0).chance(0, [1])[0] == 1


def test_matches_that_never_end_are_cut_off(quick_matches):
    for points in (np.zeros((4, 2, 2), int), np.full((4, 2, 2), 151)):
        assert MatchFinals(points, Rules(), 0).chance(0, [1]) == (0.5, 0.5, 0.5)
    # Rules in which a pişti is all that scores.
    nothing = {"ace_points": 0, "jack_points": 0, "majority_points": 0}
    rules = Rules(**nothing, two_of_clubs_points=0, ten_of_diamonds_points=0)
    assert evaluate(["greedy", "random"], rules, deals=5).results[0].match_win > 0.5


def test_shares_of_a_win():
    finals = np.array([[[9, 5, 1]], [[5, 9, 1]], [[9, 9, 1]], [[9, 9, 9]]])
    assert arena.share_of_win(finals, 0, [1]).tolist() == [1, 0, 0.5, 0.5]
    assert arena.share_of_win(finals, 0, [1, 2]).tolist() == [1, 0, 0.5, 1 / 3]


# The whole.


@pytest.mark.compiled
def test_the_baselines_are_as_far_apart_as_published():
    """Measured on an independent trial of the same definitions."""
    [over_random] = evaluate(["greedy", "random"], match=False).results
    [over_greedy] = evaluate(["counting", "greedy"], match=False).results
    assert over_random.mean == pytest.approx(10.7, abs=0.4)
    assert over_greedy.mean == pytest.approx(4.3, abs=0.3)
    assert over_random.high - over_random.low == pytest.approx(0.4, abs=0.05)


def test_results_as_json(quick_matches):
    evaluation = evaluate(["counting", "greedy"], "istanbul", deals=4, seed=8)
    data = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert list(data) == [
        "agents",
        "rules",
        "rules_hash",
        "deals",
        "seed",
        "deck_hash",
        "revision",
        "results",
    ]
    assert data["agents"] == ["counting", "greedy"]
    assert Rules.from_dict(data["rules"]) == Rules.preset("istanbul")
    assert data["rules_hash"] == Rules.preset("istanbul").hash
    assert (data["deals"], data["seed"]) == (4, 8)
    assert list(data["results"][0]) == [
        "a",
        "b",
        "mean",
        "low",
        "high",
        "wins",
        "draws",
        "losses",
        "match_win",
        "match_win_low",
        "match_win_high",
    ]
    result = data["results"][0]
    assert (result["a"], result["b"]) == ("counting", "greedy")
    assert result["low"] < result["mean"] < result["high"]
    assert result["wins"] + result["draws"] + result["losses"] == 8
    assert 0 <= result["match_win_low"] <= result["match_win"] <= result["match_win_high"] <= 1
    assert evaluate(["counting", "greedy"], "istanbul", deals=4, seed=8) == evaluation


def test_results_as_text(quick_matches):
    text = str(evaluate(["greedy", "random"], {"target": 60}, deals=4))
    header, row = text.splitlines()
    assert "match to 60" in header and row.startswith("greedy against random ")
    assert "-" in str(evaluate(["greedy", "random"], deals=1, match=False))


def test_an_evaluation_shows_itself_as_a_table():
    evaluation = evaluate(["greedy", "random"], deals=2, names=["<b>", "it & I"], match=False)
    assert repr(evaluation) == str(evaluation) and "<b> against it & I" in repr(evaluation)
    table = evaluation._repr_html_()
    assert table.count("<tr>") == 2 and "<td>&lt;b&gt; against it &amp; I</td>" in table


def test_the_first_agent_alone_meets_each_of_the_others():
    assert list(find_lineups(4, 2)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert list(find_lineups(4, 2, first_only=True)) == [(0, 1), (0, 2), (0, 3)]
    assert list(find_lineups(3, 3)) == [(0, 1, 2)]
    assert list(find_lineups(3, 3, first_only=True)) == [(0, 1, 1), (0, 2, 2)]


def test_one_deck_has_no_interval(quick_matches):
    [result] = evaluate(["greedy", "random"], deals=1).results
    assert result.low is result.high is result.match_win_low is result.match_win_high is None
    assert result.match_win is not None


def test_revision_is_of_the_checkout_or_the_version(tmp_path, monkeypatch):
    import pisti_env

    assert arena.revision()
    monkeypatch.setattr(arena, "__file__", str(tmp_path / "pisti_env" / "arena.py"))
    assert arena.revision() == pisti_env.__version__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": ["greedy"]}, "number of agents is 1"),
        ({"agents": "greedy"}, "agents is 'greedy'; expected a list"),
        ({"agents": ["greedy", 5]}, "which has no act and no observation and no rules"),
        ({"agents": ["greedy", Lowest]}, "a class and not an agent"),
        ({"agents": ["greedy", None]}, "agent is None"),
        ({"deals": 0}, "deals is 0"),
        ({"deals": 2.0}, "deals is 2.0"),
        ({"deals": 10**13}, "deals is 10000000000000; expected an int from 1 to"),
        ({"seed": -1}, "seed is -1"),
        ({"rules": "nonsense"}, "rules preset is 'nonsense'"),
        ({"agents": ["greedy", "nobody"]}, "agent is 'nobody'"),
        ({"names": ["one"]}, "names are 1"),
        ({"agents": ["greedy", Lowest(Rules(players=3))]}, "made for players=3"),
        ({"agents": ["greedy", Lowest(Rules(packs=2))]}, "made for packs=2"),
        ({"agents": ["greedy", Lowest(Rules(hand_size=2))]}, "made for hand_size=2"),
    ],
)
def test_what_is_wrong_is_said(arguments, message):
    with pytest.raises(ValueError) as raised:
        evaluate(**{"agents": ["greedy", "random"], "deals": 2, **arguments})
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_an_agent_made_for_other_rules_is_noted_or_refused():
    agent = Lowest(Rules(starter_jack="stock_bottom"), "full")
    quick = {"deals": 2, "match": False}
    with pytest.raises(ValueError, match="another layout"):
        evaluate([agent, "greedy"], **quick)
    agent.observation = "basic"
    note = "it was made for other rules (starter_jack 'stock_bottom' -> 'pile')"
    evaluation = evaluate([agent, agent], names=["it", "it"], **quick)
    assert evaluation.notes == (note,) and evaluation.to_dict()["notes"] == [note]
    with pytest.raises(ValueError) as raised:
        evaluate([agent, "greedy"], names=["it", "greedy"], strict=True, **quick)
    assert str(raised.value).startswith(note)
    assert evaluate(["greedy", "random"], strict=True, **quick).notes == ()
