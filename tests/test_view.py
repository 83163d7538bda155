"""What a view tells of the last play: what it captured, the points it made, and what for."""

import pytest
from places import random_table, seeded
from referee import numbers

from pisti_env import Rules, pisti_v0
from pisti_env.knowledge import Gain


def after(plays, starters="3H 4H 5H 6H", hands="", rules=None, **fields):
    """The environment after some plays; seat 0 leads, and the deck begins as given."""
    rules = rules or Rules(**fields)
    first = numbers((starters + " " + hands).split())
    rest = list(rules.deck_cards())
    for card in first:
        rest.remove(card)
    env = pisti_v0.raw_env(rules=rules)
    env.reset(options={"deck": [*first, *rest], "dealer": rules.players - 1})
    for card in numbers(plays.split()):
        env.step(card)
    return env


def test_before_the_first_play_there_is_none():
    assert after("").view(None).last_play is None


def test_a_card_laid_down_captures_nothing():
    play = after("9S", hands="9S 9H TD 2C KS KH QS QH").view(1).last_play
    assert (play.seat, play.card, play.captured, play.captured_size) == (0, *numbers(["9S"]), (), 0)
    assert play.gains == ()


def test_only_who_sees_the_starters_is_told_of_them():
    env = after("6S", starters="AH TD 5H 6H", hands="6S 9H 8D 2C KS KH QS QH")
    six, five = numbers(["6H", "6S"]), numbers(["AH", "TD", "5H"])
    assert env.view(0).last_play.captured == (*five, *six)
    assert env.view(1).last_play.captured == env.view(None).last_play.captured == tuple(six)
    for seat in (0, 1, None):
        play = env.view(seat).last_play
        assert play.captured_size == 5 and play.gains == ()  # until the deal is scored


@pytest.mark.parametrize(
    ("plays", "fields", "gains"),
    [
        # Seat 1's jack takes the starters; then the table is empty.
        ("9S JH 9H", {}, []),
        ("9S JH 9H 9D", {}, [(1, 10, "pisti")]),
        ("9S JH TD TC", {}, [(1, 3, "cards"), (1, 10, "pisti")]),
        (
            "9S JH TD TC",
            {"ten_of_diamonds_pisti_bonus": 3},
            [(1, 3, "cards"), (1, 10, "pisti"), (1, 3, "ten_of_diamonds")],
        ),
        ("9S JH JC JD", {}, [(1, 2, "cards"), (1, 20, "jack_pisti")]),
        ("9S JH 9H JD", {}, [(1, 1, "cards")]),
        (
            "9S JH 9H JD",
            {"jack_takes_single_points": 20},
            [(1, 1, "cards"), (1, 20, "jack_takes_single")],
        ),
    ],
)
def test_points_have_reasons(plays, fields, gains):
    env = after(plays, hands="9S 9H TD JC JH 9D TC JD", **fields)
    assert env.view(None).last_play.gains == tuple(Gain(*gain) for gain in gains)


def test_the_last_play_of_a_deal_brings_its_score():
    # Four aces and four jacks, hands of two: AC lies up; JC takes it, JD stays, AH takes nothing.
    rules = Rules(ranks=2, hand_size=2)
    env = after("JC AH JD JH", starters="AD AS JS AC", hands="JC JD AH JH", rules=rules)
    play = env.view(None).last_play
    # JC: AC and itself. Then AH lies alone, JD takes it, JH is swept to seat 0.
    assert play.gains == (Gain(0, 1, "sweep"), Gain(0, 3, "starters"), Gain(0, 3, "majority"))
    assert env.view(None).public_points == (4 + 1 + 3 + 3, 0)


@pytest.mark.parametrize("case", range(8))
def test_gains_and_captures_add_up(case):
    rng = seeded("gains", case)
    for _ in range(12):
        env, _ = random_table(rng)
        viewer = rng.choice([None, *range(env.rules.players)])
        before = env.view(viewer)
        while before.to_play is not None:
            env.step(rng.choice(env.view(before.to_play).hand))
            view = env.view(viewer)
            if not view.plays:  # the match's next deal
                break
            play = view.last_play
            assert (play.seat, play.card) == view.plays[-1]
            gained = [0] * env.rules.sides
            for gain in play.gains:
                gained[gain.side] += gain.points
                assert gain.points > 0
            then = zip(view.public_points, before.public_points, strict=True)
            assert gained == [now - earlier for now, earlier in then]
            if play.captured_size:
                assert play.captured_size == before.pile_size + 1
                seen = (*before.pile, play.card)
                starters = view.known_starters if before.pile_size > len(before.pile) else ()
                assert play.captured == (*starters, *seen)
            else:
                assert play.captured == () and (view.to_play is None or view.pile[-1] == play.card)
            before = view
