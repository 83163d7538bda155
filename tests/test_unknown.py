"""What a seat does not know, dealt at random: never from what is hidden, and as likely as it is."""

import itertools
import math
from collections import Counter

import numba
import numpy as np
import pytest
from places import random_moments, seeded

from pisti_env import Rules, game, loops, pisti_v0
from pisti_env.compiled_rules import compiled_rules
from pisti_env.knowledge import deal_unknown, deck_of, fill_in, known_of_view, make_view, unknown
from pisti_env.tables import Tables

INTERPRETED = bool(numba.config.DISABLE_JIT)
DRAWS = 500 if INTERPRETED else 40_000
TABLES = 3 if INTERPRETED else 60


def dealt_anew(games, rules, viewer, number, seed=0):
    """Copies of a table at which the unknown has been dealt anew."""
    copies = np.repeat(games, number)
    deal_unknown(copies, rules, viewer, seed)
    return copies


def table_of(env):
    return env._tables.games


@pytest.mark.parametrize("case", range(6))
def test_the_viewer_sees_no_difference(case):
    rng = seeded("dealt anew", case)
    for env, _ in random_moments(rng, TABLES, 2):
        viewer = rng.choice([None, *range(env.rules.players)])
        view = env.view(viewer)
        for copy in dealt_anew(table_of(env), env.rules, viewer, 3).reshape(3, 1):
            seen = make_view(copy, env.rules, viewer, None if not env.deals else env.deals[-1])
            assert seen == view
            deck = sorted(copy["deck"][0, : env.rules.deck_size].tolist())
            assert tuple(deck) == env.rules.deck_cards()


@pytest.mark.parametrize("case", range(6))
def test_nothing_hidden_has_a_say_in_what_is_dealt(case):
    """The true table and one filled in from what the viewer knows give the same worlds."""
    rng = seeded("nothing hidden", case)
    for env, _ in random_moments(rng, TABLES, 2):
        rules, viewer = env.rules, rng.choice([None, *range(env.rules.players)])
        true = dealt_anew(table_of(env), rules, viewer, 5, seed=case)
        filled = dealt_anew(fill_in(known_of_view(env.view(viewer))).games, rules, viewer, 5, case)
        assert hands_of(true, rules) == hands_of(filled, rules)
        assert (true["deck"] == filled["deck"])[:, : rules.deck_size].all()


def hands_of(games, rules):
    return [
        [sorted(one["hands"][seat, : one["hand_sizes"][seat]]) for seat in range(rules.players)]
        for one in games
    ]


def test_a_deck_leads_back_to_the_table():
    rng = seeded("deck back")
    for env, places in random_moments(rng, TABLES, 1):
        viewer = rng.choice([None, *range(env.rules.players)])
        [world] = dealt_anew(table_of(env), env.rules, viewer, 1).reshape(1, 1)
        other = pisti_v0.raw_env(rules=env.rules)
        other.reset(options={"deck": deck_of(world, env.rules), "dealer": env.dealer})
        for place in places.played:
            other.step(places.cards[place])
        assert hands_of(table_of(other), env.rules) == hands_of(world, env.rules)
        stock = slice(int(world["stock_start"][0]), env.rules.deck_size)
        assert (table_of(other)["deck"][0, stock] == world["deck"][0, stock]).all()
        assert (table_of(other)["deck"][0, :4] == world["deck"][0, :4]).all()


# As likely as they are: against all decks of small packs.

SIX_CARDS = (
    "ranks=3,copies=2,hand_size=1",
    "ranks=3,copies=2,hand_size=1,starters_seen_by=all",
    "ranks=3,copies=2,hand_size=1,bottom_card_shown=True",
    "ranks=3,copies=2,hand_size=1,starter_jack=stock_bottom",
    "ranks=3,copies=2,hand_size=1,starter_jack=stock_middle",
    "ranks=3,copies=1,packs=2,hand_size=1,starter_jack=stock_bottom",
    "ranks=3,copies=1,packs=2,hand_size=1,bottom_card_shown=True",
)
EIGHT_CARDS = (
    "ranks=2,hand_size=2",
    "ranks=2,hand_size=1,bottom_card_shown=True",
    "ranks=2,hand_size=2,bottom_card_shown=True",
    "ranks=2,hand_size=1,players=4",
    "ranks=4,copies=2,hand_size=2,bottom_card_shown=True",
    "ranks=2,copies=2,packs=2,hand_size=2,bottom_card_shown=True",
    "ranks=2,copies=2,packs=2,hand_size=2,starter_jack=stock_bottom",
    "ranks=2,copies=2,packs=2,hand_size=2,starter_jack=stock_middle",
    "ranks=4,copies=2,hand_size=2,starter_jack=stock_middle",
)


@pytest.mark.parametrize("text", SIX_CARDS if INTERPRETED else SIX_CARDS + EIGHT_CARDS)
def test_every_deal_that_fits_is_equally_likely(text):
    rules = Rules.from_dict(dict(field_of(part) for part in text.split(",")))
    decks = np.array(list(itertools.permutations(rules.deck_cards())), np.int8)
    rng, compared = seeded("equally likely", text), 0
    for _ in range(2 if INTERPRETED else 6):
        env = pisti_v0.raw_env(rules=rules)
        env.reset(seed=rng.randrange(2**32), options={"dealer": rng.randrange(rules.players)})
        for _ in range(rng.randrange(rules.num_plays)):
            env.step(rng.choice(env.view(env.view(None).to_play).hand))
        viewer = rng.choice([None, *range(rules.players)])
        expected = hidden_in_all(decks, env, viewer)
        worlds = dealt_anew(table_of(env), rules, viewer, DRAWS, seed=7)
        found = Counter(hidden_cards(worlds, rules))
        assert found.keys() <= expected.keys()
        compared += len(expected) > 1
        for hidden, count in expected.items():
            p = count / expected.total()
            tolerance = 5 * math.sqrt(p * (1 - p) / DRAWS)
            assert abs(found[hidden] / DRAWS - p) <= tolerance, (text, env.view(viewer), hidden)
    assert compared


def field_of(part):
    name, value = part.split("=")
    return name, (
        value == "True" if value in ("True", "False") else int(value) if value.isdigit() else value
    )


def hidden_in_all(decks, env, viewer):
    """What all decks have where the viewer sees what it sees now, each as often as it is so."""
    rules, view = env.rules, env.view(viewer)
    rows = np.arange(len(decks))
    games, dealt = np.zeros(len(decks), game.GAME), np.zeros(len(decks), np.bool_)
    dealers = np.full(len(decks), view.dealer)
    loops.deal_rows(games, compiled_rules(rules), rows, decks, dealers, dealt)
    tables = Tables(rules, len(decks))
    tables.games = games
    rows = rows[dealt & (games["deck"][:, game.STARTER] == view.starter)]
    for _, card in view.plays:
        seats = games["to_play"][rows]
        held = np.arange(game.MAX_HAND) < games["hand_sizes"][rows, seats][:, np.newaxis]
        rows = rows[((games["hands"][rows, seats] == card) & held).any(axis=1)]
        assert tables.find_cards(np.full(len(rows), card), np.arange(52), rows) == -1
        tables.play(rows)
    if viewer is not None:
        hands = np.sort(games["hands"][rows, viewer, : len(view.hand)], axis=1)
        rows = rows[(hands == view.hand).all(axis=1)]
    games = games[rows]
    one = np.zeros(1, game.GAME)
    fits = []
    for row in range(len(games)):
        one[:] = games[row]
        fits.append(make_view(one, rules, viewer, None) == view)
    return Counter(hidden_cards(games[np.array(fits)], rules))


def hidden_cards(games, rules):
    """What there is to know of each table: hands, the stock in order, the starters in order."""
    hands = np.where(
        np.arange(game.MAX_HAND) < games["hand_sizes"][:, :, np.newaxis], games["hands"], -1
    )[:, : rules.players]
    start, hands = int(games["stock_start"][0]), np.sort(hands, axis=2).reshape(len(games), -1)
    stock = games["deck"][:, start : rules.deck_size]
    rows = np.concatenate([games["deck"][:, : game.STARTER], stock, hands], axis=1)
    return list(map(bytes, np.ascontiguousarray(rows)))


# Marginals of the whole pack.


@pytest.mark.parametrize(
    ("players", "plays"), [(2, 0), (2, 11), (3, 20), (4, 37)], ids=lambda number: str(number)
)
def test_cards_of_a_rank_in_another_hand_are_hypergeometric(players, plays):
    env = pisti_v0.raw_env(players=players)
    env.reset(seed=5)
    for _ in range(plays):
        env.step(env.view(env.view(None).to_play).hand[0])
    viewer, other = 0, 1
    view, rank = env.view(viewer), 4
    size = view.hand_sizes[other]
    seen = [*view.hand, view.starter, *view.known_starters, *(card for _, card in view.plays)]
    unseen, of_rank = 52 - len(seen), 4 - sum(card % 13 == rank for card in seen)
    worlds = dealt_anew(table_of(env), env.rules, viewer, DRAWS)
    held = (worlds["hands"][:, other, :size] % 13 == rank).sum(axis=1)
    for number in range(min(size, of_rank) + 1):
        p = math.comb(of_rank, number) * math.comb(unseen - of_rank, size - number)
        p /= math.comb(unseen, size)
        assert abs((held == number).mean() - p) <= 5 * math.sqrt(p * (1 - p) / DRAWS)
    assert of_rank > 0


# Its arguments, and the manual.


def test_what_is_dealt_depends_on_the_seed_and_the_number_alone():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    many = dealt_anew(table_of(env), env.rules, 0, 8, seed=1)
    few = dealt_anew(table_of(env), env.rules, 0, 3, seed=1)
    other = dealt_anew(table_of(env), env.rules, 0, 3, seed=2)
    assert many[:3].tobytes() == few.tobytes() != other.tobytes()
    assert len({bytes(world) for world in many["deck"]}) == 8


def test_wrong_arguments_are_refused():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    games = table_of(env).copy()
    with pytest.raises(ValueError, match="viewer is 2; expected None or one of"):
        deal_unknown(games, env.rules, 2, 0)
    with pytest.raises(ValueError, match="seed is -1"):
        deal_unknown(games, env.rules, 0, -1)
    with pytest.raises(ValueError, match="expected a writable array"):
        deal_unknown(None, env.rules, 0, 0)
    with pytest.raises(ValueError, match="expected a writable array"):
        deal_unknown(games.view(np.uint8), env.rules, 0, 0)
    games.setflags(write=False)
    with pytest.raises(ValueError, match="expected a writable array"):
        deal_unknown(games, env.rules, 0, 0)


def damaged(game_bytes, rng):
    """A table of which some fields, or all, are something else."""
    table = np.frombuffer(game_bytes, game.GAME).copy()
    raw = table.view(np.uint8)
    how = rng.randrange(4)
    if how == 0:  # some bits
        for _ in range(rng.randrange(1, 4)):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    elif how == 1:  # a number of one field
        field = table[rng.choice(game.GAME.names)].reshape(-1)
        field[rng.randrange(len(field))] = rng.choice([-2, -1, 0, 1, 4, 7, 52, 100, 104, 127])
    elif how == 2:  # from one place on, all of it
        start = rng.randrange(len(raw))
        raw[start:] = list(rng.randbytes(len(raw) - start))
    else:  # cards exchanged, between hands, stock and what was played
        cards = [raw[game.GAME.fields[field][1] :] for field in ("hands", "deck", "plays")]
        one, two = (rng.choice(cards)[:24] for _ in range(2))
        here, there = rng.randrange(24), rng.randrange(24)
        one[here], two[there] = two[there], one[here]
    return table


@pytest.mark.parametrize("case", range(10))
def test_a_damaged_table_is_refused_and_spoils_no_memory(case):
    rng = seeded("damaged tables", case)
    refused = 0
    for env, _ in random_moments(rng, TABLES, 1):
        seat = rng.choice([None, *range(env.rules.players)])
        table = damaged(table_of(env).tobytes(), rng)
        before = table.tobytes()
        for seed in range(2):  # what was dealt may be refused too
            error = None
            try:
                deal_unknown(table, env.rules, seat, seed)
            except ValueError as caught:
                error = str(caught)
            if error is not None and seed == 0:
                assert error.startswith("table 0 of games is in no moment of a deal")
                assert table.tobytes() == before
                refused += 1
    assert refused > TABLES / 5


def test_tables_of_other_rules_are_refused():
    for env, _ in random_moments(seeded("other rules", 0), TABLES, 1):
        other = Rules(players=6) if env.rules.players != 6 else Rules()
        with pytest.raises(ValueError, match="table 1 of games is in no moment"):
            deal_unknown(np.append(fresh(other).games, table_of(env)), other, 0, 0)


def fresh(rules):
    tables = Tables(rules, 1)
    tables.start(np.zeros(1, np.int64))
    return tables


@pytest.mark.compiled
def test_the_manuals_search_runs(capsys, tmp_path, monkeypatch):
    code = unknown.__doc__.split("```python\n")[1].split("```")[0]
    # In a file, since that is where Numba's cache looks.
    (tmp_path / "search_as_shown.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    __import__("search_as_shown")
    mean = float(capsys.readouterr().out)
    assert 0 < mean < 30
