"""The one-line text of positions: written, read back, and damaged."""

import dataclasses
import random

import numba
import pytest

from pisti_env import Rules, pisti_v0
from pisti_env.position import read_position, write_position
from tests.referee import random_rules

NUM_VIEWS = 200 if numba.config.DISABLE_JIT else 10_000
CASES = 10


def random_positions(seed, number):
    """Yield (rules, seat, view) of random moments of random deals and matches."""
    rng = random.Random(seed)
    while number > 0:
        env = pisti_v0.raw_env(random_rules(rng))
        env.reset(seed=rng.randrange(2**32))
        episodes = 0
        while env.agents and episodes < 150:
            if rng.random() < 0.2 or env.unwrapped.view(None).to_play is None:
                seat = rng.choice([None, *range(env.rules.players)])
                yield env.rules, seat, env.view(seat)
                number -= 1
                if number == 0:
                    return
            mask = env.infos[env.agent_selection]["action_mask"]
            if not mask.any():
                break
            env.step(rng.choice(mask.nonzero()[0].tolist()))
            episodes += 1


@pytest.mark.parametrize("seed", range(CASES))
def test_random_views_are_read_as_they_were_written(seed):
    for rules, seat, view in random_positions(seed, NUM_VIEWS // CASES):
        line = write_position(rules, seat, view)
        position = read_position(line)
        assert position == (rules, seat, view), line


@pytest.mark.parametrize("seed", range(CASES))
def test_damaged_lines_are_refused(seed):
    rng = random.Random(seed)
    for rules, seat, view in random_positions(seed + 1000, NUM_VIEWS // CASES):
        line = write_position(rules, seat, view)
        place = rng.randrange(len(line))
        other = rng.choice("0123456789:./-#abcdefAJQKTCDHS =,_")
        damaged = rng.choice(
            [
                line[:place] + line[place + 1 :],  # a character lost
                line[:place] + other + line[place:],  # one too many
                line[:place] + other + line[place + 1 :],  # another one
                line[:place],  # cut off
                line[:place] + line[place : place + 2][::-1] + line[place + 2 :],  # two swapped
            ]
        )
        if damaged != line:
            with pytest.raises(ValueError, match=r"^position .* expected "):
                read_position(damaged)


def test_a_line_reads_like_the_table():
    env = pisti_v0.raw_env()
    deck = "4S 5S 6S 9H 2C AS JS 9S 3H 4H 5H 6H".split()
    rest = [card for card in Rules().deck_cards() if card not in map(_card, deck)]
    env.reset(options={"deck": [*map(_card, deck), *rest], "dealer": 1})
    env.step(_card("9S"))
    line = write_position(env.rules, 0, env.view(0))
    assert line.startswith("pisti1 standard 0 1 0:0 9H - - 4S5S6S 2CASJS 9S - #")
    assert read_position(line).view.captured == (5, 0)


def test_an_error_names_the_field_and_the_place():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    line = write_position(env.rules, None, env.view(None))
    place = line.index(" standard") + 1
    with pytest.raises(ValueError, match=f"field rules at character {place + 1} is 'standart'"):
        read_position(line.replace("standard", "standart"))


def test_another_viewer_cannot_be_read_into_a_line():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    line = write_position(env.rules, 0, env.view(0))
    hidden = dataclasses.replace(env.view(0), hand=None)
    assert write_position(env.rules, None, hidden) != line


def _card(text):
    return "CDHS".index(text[1]) * 13 + "A23456789TJQK".index(text[0])
