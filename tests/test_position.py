"""The one-line text of positions: written, read back, and damaged."""

import random
import zlib

import numba
import pytest
from referee import number, numbers, random_rules

from pisti_env import Rules, pisti_v0
from pisti_env.position import read_position, write_position

NUM_VIEWS = 300 if numba.config.DISABLE_JIT else 10_000
CASES = 8  # so that the work can be spread
MOST_PLAYS = 150  # of a match: then it is left unfinished


def random_positions(rng, number):
    """Yield the views of some seats at random moments of random deals and matches."""
    while True:
        env = pisti_v0.raw_env(random_rules(rng))
        seats = [None, *range(env.rules.players)]
        env.reset(seed=rng.randrange(2**32))
        for _ in range(MOST_PLAYS):
            over = env.terminations[env.agent_selection]
            if over or rng.random() < 0.3:
                for seat in rng.sample(seats, 2):
                    yield env.view(seat)
                    number -= 1
                    if number == 0:
                        return
            if over:
                break
            mask = env.infos[env.agent_selection]["action_mask"]
            env.step(rng.choice(mask.nonzero()[0].tolist()))


def damage(line, rng):
    """The line with one thing wrong, or by chance as it was."""
    place = rng.randrange(len(line))
    before, here, after = line[:place], line[place], line[place + 1 :]
    other = rng.choice("0123456789:./-#abcdefAJQKTCDHS =,_")
    return rng.choice(
        [
            before + after,  # a character lost
            before + other + here + after,  # one too many
            before + other + after,  # another one
            before,  # cut off
            before + after[:1] + here + after[1:],  # two swapped
        ]
    )


@pytest.mark.parametrize("case", range(CASES))
def test_random_views_are_read_as_they_were_written_and_refused_when_damaged(case):
    rng = random.Random(case)
    for view in random_positions(rng, NUM_VIEWS // CASES):
        line = write_position(view)
        assert read_position(line).view == view, line
        damaged = damage(line, rng)
        while damaged == line:
            damaged = damage(line, rng)
        with pytest.raises(ValueError, match=r"^position .* expected "):
            read_position(damaged)


def test_a_line_reads_like_the_table():
    env = pisti_v0.raw_env()
    deck = numbers("4S 5S 6S 9H 2C AS JS 9S 3H 4H 5H 6H".split())
    rest = [card for card in Rules().deck_cards() if card not in deck]
    env.reset(options={"deck": [*deck, *rest], "dealer": 1})
    env.step(number("9S"))
    line = env.position(0)
    assert line.startswith("pisti1 standard 0 1 0:0 9H - - 4S5S6S 2CASJS 9S - #")
    assert read_position(line).view.captured == (5, 0)


def test_an_error_names_the_field_and_the_place():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    line = env.position()
    place = line.index(" standard") + 1
    with pytest.raises(ValueError, match=f"field rules at character {place + 1} is 'standart'"):
        read_position(line.replace("standard", "standart"))


@pytest.mark.parametrize("viewer", ["1", "2", "-"])
def test_another_viewer_does_not_fit_the_hand(viewer):
    """Even with the check renewed: the leader has played, the others have not."""
    env = pisti_v0.raw_env(players=3)
    env.reset(seed=0, options={"dealer": 2})
    env.step(env.view(0).hand[0])
    fields = env.position(0).split()[:-1]
    assert fields[2] == "0"
    fields[2] = viewer
    body = " ".join(fields)
    with pytest.raises(ValueError, match=r"^position field hand .* expected "):
        read_position(f"{body} #{zlib.crc32(body.encode()):08x}")
