"""The one-line text of positions: written, read back, damaged, and gone on from."""

import random
import zlib

import numba
import pytest
from places import ENCODINGS, random_moments, seeded
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


def test_the_table_of_a_position_is_read_only():
    """Compiled code reads it when the viewer observes."""
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    position = read_position(env.position(0))
    with pytest.raises(ValueError, match="read-only"):
        position.games["hand_sizes"] = 100


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


# Lines that an earlier revision wrote.

WRITTEN = """
pisti1 standard 0 0 0:0 4H - - - QC6H TS2CQH5C4C8SKSQS/7H6DJC2S6C3CAD2H/7SAH3HKCAS - #3090919b
pisti1 players=4,target=151,starters_seen_by=side 2 1 15:1 9D - - QDJSJD 8D \
QH7C2S3C3H6DKHADJC4H6H3S 15.48.0.0:1.4.0.0 #020b5ce4
pisti1 bottom_card_shown=True 0 0 0:0 4H - QD TCKH5D 9H TSQS4C8SKS5CQH2C/6C6DAD2S7H3CJC2H/\
3HAH7SKC4SQCAS6H/TH5H2DJDKD9C3S7D/9DTD8H4D9S8C - #3e895590
pisti1 players=3,target=20,starter_jack=stock_bottom 1 2 0:7:9 5C - - - 4C8C4S5S \
9D3H5HKH3C9S7D4HTS2CKDKC 0.0.0.0:7.25.0.0:9.27.0.0 #7a12617d
pisti1 starter_jack=stock_middle 0 0 0:0 3S JS - - JD 2DTSJC6D3D5S7CQH/KC5D4DTD4S8CAC9H/\
QS5H2SJS4H9C - #f8a4736d
pisti1 packs=2,starter_jack=stock_bottom,ranks=3,hand_size=2 0 0 0:0 2C JS - - JC \
JHAD2C2H/AC2HJDAH/ADJCJD2D/2D2S2S - #e39c9877
pisti1 players=5,packs=1,leftovers=burn 1 0 0:0:0:0:0 4H - - - KC \
KS8S7H3CAS4CQSJC6D4STS5CAD2H7SQH2C6C2S3H/AHTH7D9S9H6H3S5H9D4DQC - #2033456a
"""


@pytest.mark.parametrize("line", WRITTEN.replace("\\\n", "").split("\n")[1:-1])
def test_lines_of_earlier_revisions_are_read_and_written_as_they_were(line):
    assert write_position(read_position(line).view) == line


# Positions that there cannot be.


def checked(body):
    return f"{body} #{zlib.crc32(body.encode()):08x}"


MATCH = "pisti1 target=151 0 1 {} 4H - - - 2C3C4C5C - {}"
SCORED = MATCH.format("19:17", "19.30.1.0:17.22.1.0")


def test_the_lines_that_are_made_impossible_below_are_possible():
    for body in (SCORED, MATCH.format("0:0", "-"), MATCH.format("19:14", "-")):
        assert read_position(checked(body)).view.viewer == 0


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("scores", MATCH.format("160:20", "-")),  # the match is over
        ("scores", MATCH.format("151:150", "-")),
        ("scores", SCORED.replace("target=151", "standard")),
        (
            "last",
            MATCH.format("0:0", "-").replace("target=151", "standard")[:-1] + "0.52.0.0:0.0.0.0",
        ),
        ("last", MATCH.format("19:16", "19.30.1.0:17.22.1.0")),  # more points than the match has
        ("last", MATCH.format("19:17", "19.31.1.0:17.22.1.0")),  # 53 cards
        ("last", MATCH.format("19:17", "19.29.1.0:17.22.1.0")),  # 51 cards
        ("last", MATCH.format("19:16", "19.30.1.0:16.22.1.0")),  # a point is missing
        ("last", MATCH.format("20:17", "20.30.1.0:17.22.1.0")),  # one too many
        ("last", MATCH.format("9:27", "9.30.1.0:27.22.1.0")),  # a pişti is worth more
        ("last", MATCH.format("140:123", "140.26.13.0:123.26.12.0")),  # 25 pişti of 24 pairs
        ("last", MATCH.format("73:3", "73.30.0.3:3.22.0.0")),  # three pairs of jacks
        ("last", MATCH.format("23:23", "23.50.1.0:23.2.2.0")),  # four cards in two captures of two
        ("last", MATCH.format("147:146", "147.26.12.1:146.26.12.1")),  # no starters among them
        ("last", MATCH.format("16:300", "16.52.0.0:0.0.0.0")),
        ("starter", MATCH.format("0:0", "-").replace(" 4H ", " JH ")),
        ("jacks", MATCH.format("0:0", "-").replace("4H - ", "4H 9C ")),
        ("jacks", MATCH.format("0:0", "-").replace("4H - ", "4H JCJDJHJS ")),
        ("bottom", MATCH.format("0:0", "-").replace("4H - -", "4H - 9S")),
        ("bottom", MATCH.format("0:0", "-").replace("target=151", "bottom_card_shown=True")),
        (
            "bottom",
            MATCH.format("0:0", "-")
            .replace("target=151", "bottom_card_shown=True")
            .replace("4H - -", "4H - JC"),
        ),
        ("starters", MATCH.format("0:0", "-").replace("4H - - -", "4H - - 7C7D7H")),
        ("hand", MATCH.format("0:0", "-").replace("2C3C4C5C", "2C3C4C")),
        ("hand", MATCH.format("0:0", "-").replace("2C3C4C5C", "2C3C4C4H")),  # 4H twice
        ("hand", MATCH.format("0:0", "-").replace("2C3C4C5C", "3C2C4C5C")),  # not sorted
        ("plays", MATCH.format("0:0", "-").replace("2C3C4C5C -", "2C3C4C 5C5C")),
        ("plays", MATCH.format("0:0", "-").replace("2C3C4C5C -", "2C3C4C 5C/6C")),
        ("dealer", MATCH.format("0:0", "-").replace("151 0 1", "151 0 2")),
    ],
)
def test_what_no_match_can_come_to_is_refused_by_field(field, body):
    with pytest.raises(ValueError, match=f"^position field {field} .* expected "):
        read_position(checked(body))


def test_a_deal_that_is_over_must_have_ended_the_match():
    env = pisti_v0.raw_env(target=1)
    env.reset(seed=0)
    while not env.terminations[env.agent_selection]:
        env.step(env.view(env.view(None).to_play).hand[0])
    line = env.position()
    assert read_position(line).view == env.view(None)
    with pytest.raises(ValueError, match=r"^position field plays .* is dealt at once"):
        read_position(checked(line.rpartition(" ")[0].replace("target=1 ", "target=1000 ")))


@pytest.mark.parametrize(
    "line",
    [
        "9" * 10_000_000,
        " " * 10_000_000,
        "pisti1 " + "x" * 10_000_000 + " - " * 6,
        "\n" * 5_000_000,
    ],
    ids=["digits", "blanks", "fields", "lines"],
)
def test_messages_about_lines_without_end_are_short(line):
    with pytest.raises(ValueError, match=r"^position .* expected ") as raised:
        read_position(line)
    assert len(str(raised.value)) < 1000 and "\n" not in str(raised.value)


# Observations and environments from positions.


@pytest.mark.parametrize("case", range(4))
def test_a_position_observes_what_the_environment_did(case):
    rng = seeded("position observes", case)
    for env, _ in random_moments(rng, 4 if numba.config.DISABLE_JIT else 40, 2, deals=2):
        seat = rng.randrange(env.rules.players)
        position = read_position(env.position(seat))
        for encoding in ENCODINGS:
            expected = env.observe_as(f"player_{seat}", encoding)
            observed = position.observe(encoding)
            assert observed.keys() == expected.keys()
            for name, array in expected.items():
                assert observed[name].tobytes() == array.tobytes(), (encoding, name, env.rules)
                assert observed[name].dtype == array.dtype


def test_a_spectator_observes_nothing():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="viewer is None, a spectator; expected a seat"):
        read_position(env.position()).observe("full")


@pytest.mark.parametrize("case", range(4))
def test_an_environment_goes_on_from_a_position(case):
    rng = seeded("goes on", case)
    for env, _ in random_moments(rng, 4 if numba.config.DISABLE_JIT else 30, 1, deals=2):
        seat = rng.choice([None, *range(env.rules.players)])
        line, view = env.position(seat), env.view(seat)
        drawn, again, given = (pisti_v0.raw_env(rules=env.rules) for _ in range(3))
        drawn.reset(seed=case, options={"position": line})
        again.reset(seed=case, options={"position": read_position(line)})
        assert drawn.view(seat) == view and drawn.position(seat) == line
        assert again.state().tobytes() == drawn.state().tobytes() and again.deck == drawn.deck
        assert drawn.agent_selection == f"player_{view.to_play}"
        given.reset(options={"position": line, "deck": env.deck})
        for other in (None, *range(env.rules.players)):
            assert given.view(other) == env.view(other)
        assert given.state().tobytes() == env.state().tobytes()
        for _ in range(env.rules.num_plays - len(view.plays)):
            drawn.step(rng.choice(drawn.view(drawn.view(None).to_play).hand))
        if env.rules.target is None:
            assert drawn.terminations["player_0"]


def test_seeds_draw_different_cards_and_the_stream_goes_on():
    env, states = pisti_v0.raw_env(), set()
    env.reset(seed=0)
    line = env.position(0)
    for seed in (0, 1, None, None):
        env.reset(seed=seed, options={"position": line})
        assert env.position(0) == line
        states.add(env.state().tobytes())
    assert len(states) == 4


def test_positions_that_do_not_fit_change_nothing():
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    line, state = env.position(0), env.state().tobytes()
    other = pisti_v0.raw_env(players=3)
    other.reset(seed=0)
    deck = env.deck[::-1]
    for options, message in (
        ({"position": other.position(0)}, "position has the rules players=3; expected those of"),
        ({"position": 3}, "position is 3; expected a line of text"),
        ({"position": line, "dealer": 0}, "dealer is 0; expected none with a position"),
        ({"position": line, "deck": deck}, "deck is .* as the viewer of the position sees it"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            env.reset(options=options)
        assert env.state().tobytes() == state
    while not env.terminations[env.agent_selection]:
        env.step(env.view(env.view(None).to_play).hand[0])
    with pytest.raises(ValueError, match="position is over; expected one in which a seat is to"):
        env.reset(options={"position": env.position(0)})
