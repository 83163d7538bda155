"""The layouts that `describe` tells, and the numbers in them."""

import hashlib
import inspect

import numba
import numpy as np
import pytest
from places import (
    ENCODINGS,
    Places,
    choose,
    counted,
    decode,
    is_jack,
    random_moments,
    random_table,
    seeded,
)
from referee import random_rules

from pisti_env import Rules, game, observation, pisti_v0
from pisti_env.cards import NO_CARD
from pisti_env.compiled_rules import COMPILED_RULES, compiled_rules
from pisti_env.observation import (
    LAYOUT,
    MAX_NUMBERS,
    PIECES,
    Encoder,
    describe,
    encoder,
    state_encoder,
    write,
)
from pisti_env.observation.pieces import GROUPS, STATE
from pisti_env.vector import DealBatch

INTERPRETED = bool(numba.config.DISABLE_JIT)
LAYOUTS = (*ENCODINGS, "state")
DEAR = 10**9  # the most that an option in points may be

NO_POINTS = {
    "ace_points": 0,
    "jack_points": 0,
    "two_of_clubs_points": 0,
    "ten_of_diamonds_points": 0,
    "pisti_points": 0,
    "jack_pisti_points": 0,
    "majority_points": 0,
}

# Where numbers could leave their bounds.
EXTREME_RULES = (
    {},
    {"players": 6, "packs": 2},
    {"packs": 2, "players": 2, "jack_takes_single_points": 50, "last_card_pisti": True},
    {"ranks": 3, "copies": 3, "packs": 2, "hand_size": 1, "pisti_points": 0},
    {"ranks": 2, "copies": 4, "hand_size": 2, "majority_points": 0, "ace_points": 0},
    {"ranks": 13, "copies": 1, "hand_size": 1},
    {"players": 3, "ranks": 5, "copies": 3, "hand_size": 3, "ace_points": DEAR},
    {"pisti_points": DEAR, "jack_pisti_points": DEAR, "jack_takes_single_points": DEAR},
    {"target": 1, "players": 4, "starters_seen_by": "all"},
    {"target": DEAR, "players": 5, "ten_of_diamonds_pisti_bonus": DEAR},
    {"target": 151, "win_by": DEAR},
    NO_POINTS,
    {"starter_jack": "stock_bottom", "packs": 2, "ranks": 3, "hand_size": 2},
    {"bottom_card_shown": True, "packs": 2, "ranks": 3, "hand_size": 2},
)


@pytest.mark.parametrize("encoding", LAYOUTS)
def test_layouts_have_no_gaps(encoding):
    rng = seeded("layouts", encoding)
    for _ in range(100):
        rules = Rules(**random_rules(rng))
        layout = pisti_v0.describe(encoding, rules)
        names = [row.name for row in layout]
        assert len(set(names)) == len(names)
        end = 0
        for row in layout:
            assert row.slice.start == end < row.slice.stop and row.slice.step is None
            assert row.meaning and row.scale
            end = row.slice.stop
        assert end == layout.size
        if encoding == "state":
            space = pisti_v0.raw_env(rules=rules).state_space
        else:
            env = pisti_v0.raw_env(rules=rules, observation=encoding, mask_in="info")
            space = env.observation_space("player_0")
        assert space.shape == (end,) and space.dtype == np.float32
        assert (space.low == 0).all() and (space.high == 1).all()
        lines = str(layout).splitlines()
        assert len(lines) == len(layout) + 2
        for row, line in zip(layout, lines[2:], strict=True):
            assert f"`{row.name}`" in line and row.meaning in line


@pytest.mark.parametrize("encoding", LAYOUTS)
def test_a_layout_does_not_depend_on_the_target(encoding):
    rng = seeded("target", encoding)
    for _ in range(50):
        fields = random_rules(rng)
        fields.pop("target", None)
        layouts = [
            pisti_v0.describe(encoding, **fields, target=target) for target in (None, 1, 151)
        ]
        assert layouts[0] == layouts[1] == layouts[2]


def test_every_encoding_is_tested():
    assert list(observation.ENCODINGS) == list(ENCODINGS)


def test_describe_takes_rules_in_every_form():
    one = pisti_v0.describe("kinds", Rules(players=4))
    assert one == pisti_v0.describe("kinds", players=4)
    assert one == pisti_v0.describe("kinds", "standard", players=4)
    assert one == pisti_v0.describe("kinds", {"players": 4})
    assert one == pisti_v0.describe(observation="kinds", rules=Rules(), players=4)
    with pytest.raises(ValueError, match="everything"):
        pisti_v0.describe("everything")


def test_basic_holds_nothing_else():
    for fields in ({}, {"players": 4, "target": 151}, {"bottom_card_shown": True}):
        layout = pisti_v0.describe("basic", **fields)
        assert [row.name for row in layout] == ["hand", "top", "pile_size", "jacks_seen"]
        assert layout.size == 106


@pytest.mark.parametrize("case", range(4))
def test_basic_counts_the_jacks_that_the_seat_has_seen(case):
    rng = seeded("basic", case)
    for env, places in random_moments(rng, 10 if INTERPRETED else 30, 3):
        seat = rng.randrange(env.rules.players)
        observation = env.observe_as(f"player_{seat}", "basic")["observation"]
        pieces = decode(observation, "basic", env.rules)
        known = [places.cards[place] for place in places.known(seat)]
        assert pieces["jacks_seen"] == [sum(map(is_jack, known))]
        view = env.view(seat)
        assert [card for card in range(52) for _ in range(pieces["hand"][card])] == list(view.hand)
        assert [card for card in range(52) if pieces["top"][card]] == list(view.pile[-1:])
        assert pieces["pile_size"] == [view.pile_size]


@pytest.mark.parametrize("fields", EXTREME_RULES, ids=str)
def test_numbers_stay_within_bounds(fields):
    """At thousands of positions, the end of a deal included."""
    rules = Rules(**fields)
    num_envs = 4 if INTERPRETED else 64
    batches = {encoding: DealBatch(num_envs, rules, encoding, seed=1) for encoding in ENCODINGS}
    rng = np.random.default_rng(1)
    batch = batches["history"]
    for step in range(min(rules.num_plays, 8) if INTERPRETED else 2 * rules.num_plays):
        for encoding in ENCODINGS:
            numbers = batch.observe_as(encoding)
            assert numbers.dtype == np.float32 and np.isfinite(numbers).all()
            assert numbers.min() >= 0 and numbers.max() <= 1, (encoding, step)
        states = batch.states()
        assert states.min() >= 0 and states.max() <= 1
        noise = rng.random(batch.action_masks.shape)
        batch.step((batch.action_masks * (1 + noise)).argmax(axis=1))


@pytest.mark.parametrize("players", [2, 5])
@pytest.mark.parametrize("encoding", ["full", "kinds"])
def test_what_is_full_is_one(encoding, players):
    """At the end of a deal all equal cards have been played, but for the face-down starters."""
    env = pisti_v0.raw_env(players=players, observation=encoding)
    layout = pisti_v0.describe(encoding, env.rules)
    where = {row.name: row.slice for row in layout}
    classes = 15 if encoding == "kinds" else 52
    # As many kinds of two and of ten as there are of other ranks would be.
    whole = 4 * env.rules.num_packs if encoding == "kinds" else env.rules.num_packs
    held = np.array(counted(env.rules.deck_cards(), classes))
    for seed in range(3):
        env.reset(seed=seed)
        while not env.terminations[env.agent_selection]:
            env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
        view = env.view(0)
        assert len(view.known_starters) == 3 and view.stock_size == 0
        numbers = env.observe("player_0")["observation"]
        down = np.array(counted(view.known_starters, classes))
        assert numbers[where["played"]] == pytest.approx((held - down) / whole)
        assert numbers[where["known_starters"]] == pytest.approx(down / whole)
        assert (numbers[where["played"]] == 1).sum() == ((held == whole) & (down == 0)).sum() > 0


def high_scorer(places, rng):
    """Piştis wherever possible."""
    legal = places.legal()
    top = places.cards[places.pile[-1]] if places.pile else None
    same = [card for card in legal if top is not None and card % 13 == top % 13]
    return rng.choice(same or legal)


@pytest.mark.parametrize("fields", EXTREME_RULES, ids=str)
def test_spaces_contain_states_and_observations_at_the_end_too(fields):
    env = pisti_v0.raw_env(rules=Rules(**fields), observation="history")
    rng = seeded("end", fields)
    for seed in range(1 if INTERPRETED else 5):
        env.reset(seed=seed)
        for _ in range(2 if env.rules.target else 1):
            places = Places(env.rules, env.deck, env.dealer)
            while not places.over:
                card = high_scorer(places, rng)
                env.step(card)
                places.play(card)
            if any(env.terminations.values()):
                break
        assert env.state_space.contains(env.state())
        for agent in env.possible_agents:
            assert env.observation_space(agent).contains(env.observe(agent))
            for encoding in ENCODINGS:
                numbers = env.observe_as(agent, encoding)["observation"]
                assert numbers.min() >= 0 and numbers.max() <= 1


def test_the_most_that_a_side_can_score():
    """Equal ranks dealt so that every second play is a pişti: still within the bound.

    Not reached in a real deal, since the starters are no pişti and jacks are few.
    """
    pairs = [rank + 13 * suit for rank in range(13) if rank != 10 for suit in range(4)]
    jacks = [10, 23, 36, 49]
    # Seat 0 lays a card down and seat 1 takes it, again and again.
    stock = [*pairs[4:], *jacks]
    deck = pairs[:4]
    for packet in range(6):
        cards = stock[8 * packet : 8 * packet + 8]
        deck += cards[0::2] + cards[1::2]
    env = pisti_v0.raw_env(observation="full", last_card_pisti=True)
    env.reset(options={"deck": deck, "dealer": 1})
    for turn in range(48):
        env.step(stock[turn])
    score = env.score()
    assert score[1]["pistis"] >= 20
    assert max(side["points"] for side in score) <= env.rules.max_deal_points
    points = decode(env.observe("player_1")["observation"], "full", env.rules)["public_points"]
    assert points[0] == score[1]["points"]


def test_two_equal_cards():
    """One of two is 0.5, both are 1."""
    env = pisti_v0.raw_env(players=2, packs=2, observation="full")
    rest = sorted([*range(52), *range(52)])
    first = [26, 27, 28, 29]
    hand = [33, 33, 34, 35]
    for card in first + hand:
        rest.remove(card)
    env.reset(options={"deck": [*first, *hand, *rest], "dealer": 1})
    layout = {row.name: row.slice for row in pisti_v0.describe("full", packs=2)}
    numbers = env.observe("player_0")["observation"]
    assert numbers[layout["hand"]][[33, 34, 35, 36]].tolist() == [1, 0.5, 0.5, 0]
    assert numbers[layout["top"]][29] == 1
    env.step(33)
    for agent, left in (("player_0", 0.5), ("player_1", 0)):
        numbers = env.observe(agent)["observation"]
        assert numbers[layout["hand"]][33] == left
        assert numbers[layout["played"]][[33, 29]].tolist() == [0.5, 0.5]
        assert numbers[layout["pile"]][[33, 29]].tolist() == [0.5, 0.5]
    kinds = {row.name: row.slice for row in pisti_v0.describe("kinds", packs=2)}
    numbers = env.observe_as("player_0", "kinds")["observation"]
    assert numbers[kinds["hand"]][[7, 8, 9, 10]].tolist() == [1 / 8, 1 / 8, 1 / 8, 0]


def test_kinds():
    """Thirteen ranks without the two point cards, which have a kind each."""
    env = pisti_v0.raw_env(observation="kinds")
    hand = [1, 14, 22, 9]  # 2C 2D TD TC
    first = [26, 27, 28, 29]
    rest = [card for card in range(52) if card not in (*hand, *first)]
    env.reset(options={"deck": [*first, *hand, *rest], "dealer": 1})
    observation = env.observe("player_0")
    assert np.flatnonzero(observation["action_mask"]).tolist() == [1, 9, 13, 14]
    layout = {row.name: row.slice for row in pisti_v0.describe("kinds")}
    counts = observation["observation"][layout["hand"]]
    assert np.flatnonzero(counts).tolist() == [1, 9, 13, 14] and set(counts.tolist()) == {0, 0.25}
    env.step(14)
    assert env.view(None).plays == ((0, 22),)


def test_a_kind_plays_its_lowest_card():
    env = pisti_v0.raw_env(observation="kinds")
    hand = [46, 20, 33, 7]  # four eights, the highest first
    first = [26, 27, 28, 29]
    rest = [card for card in range(52) if card not in (*hand, *first)]
    env.reset(options={"deck": [*first, *hand, *rest], "dealer": 1})
    for expected in (7, 20, 33, 46):
        env.step(7)
        assert env.view(None).plays[-1] == (0, expected)
        env.step(int(env.infos["player_1"]["action_mask"].argmax()))


@pytest.mark.parametrize("encoding", ["full", "kinds", "history", "kinds_history"])
def test_everything_is_relative_to_the_observer(encoding):
    """The same deal with everybody moved one seat on shows each the same."""
    rng = seeded("relative", encoding)
    for _ in range(2 if INTERPRETED else 20):
        env, places = random_table(rng)
        rules = env.rules
        moved = pisti_v0.raw_env(rules=rules)
        options = {"deck": env.deck, "dealer": (env.dealer + 1) % rules.players}
        if rules.target is not None:
            scores = list(env.view(None).match_scores)
            options["scores"] = scores[-1:] + scores[:-1]
        moved.reset(options=options)
        for _ in range(rng.randrange(rules.num_plays)):
            card = choose(places, rng, 0.5)
            for each in (env, moved):
                each.step(card)
            places.play(card)
        for seat in range(rules.players):
            here = env.observe_as(f"player_{seat}", encoding)
            there = moved.observe_as(f"player_{(seat + 1) % rules.players}", encoding)
            for name, array in here.items():
                assert array.tobytes() == there[name].tobytes(), (rules, seat, name)


def test_the_state_tells_everything():
    """Hands, starters, stock in order and true points, decoded and compared."""
    rng = seeded("state")
    for env, places in random_moments(rng, 3 if INTERPRETED else 60, 3):
        rules = env.rules
        pieces = decode(env.state(), "state", rules)
        for seat in range(rules.players):
            counts = pieces["hands"][52 * seat : 52 * seat + 52]
            hand = [card for card in range(52) for _ in range(counts[card])]
            assert hand == sorted(places.cards[place] for place in places.hands[seat])
        starters = [card for card in range(52) for _ in range(pieces["starters"][card])]
        assert starters == sorted(places.cards[:3])
        stock = [card - 1 for card in pieces["stock"] if card]
        assert stock == places.cards[places.dealt :]
        assert pieces["points"] == [side["points"] for side in env.score()]
        assert pieces["to_play"].index(1) == env.view(None).to_play


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_starters_that_lie_face_down_may_be_unknown(encoding):
    """Those of OpenSpiel's game are drawn when somebody sees them."""
    env = pisti_v0.raw_env(observation=encoding)
    env.reset(seed=0)
    before = env.observe("player_0")["observation"]
    env._tables.games["deck"][0, :3] = NO_CARD
    assert (env.observe("player_0")["observation"] == before).all()


@pytest.mark.parametrize("encoding", LAYOUTS)
def test_all_of_a_row_is_written(encoding):
    """Rows are written over others."""
    rng = seeded("stale", encoding)
    for env, _ in random_moments(rng, 4 if INTERPRETED else 40, 2):
        rules, games = env.rules, env._tables.games
        encodes = state_encoder(rules) if encoding == "state" else encoder(encoding, rules)
        for seat in range(rules.players):
            results = []
            for stale in (0, 7):
                # As the middle one of three rows, of which the others stay as they are.
                numbers = np.full((3, encodes.size), stale, np.float32)
                masks = np.full((3, encodes.num_actions), stale, np.int8)
                row, seats = np.zeros(1, np.int64), np.array([seat])
                encodes.encode(games, row, seats, numbers[1:2], masks[1:2])
                assert (numbers[[0, 2]] == stale).all() and (masks[[0, 2]] == stale).all()
                results.append((numbers[1].tolist(), masks[1].tolist()))
            assert results[0] == results[1]


def parts():
    """The smallest encodings that there can be: each group, and each piece of none."""
    grouped = {name for group in GROUPS for name in group}
    return [*GROUPS, *((piece.name,) for piece in PIECES if piece.name not in grouped)]


@pytest.mark.parametrize("part", parts(), ids=lambda part: part[0])
def test_an_encoding_may_have_any_pieces(part):
    """Each part alone is what it is among others, and writes nowhere else."""
    rng = seeded("part", *part)
    for env, _ in random_moments(rng, 4 if INTERPRETED else 40, 2):
        games, row = env._tables.games, np.zeros(1, np.int64)
        for actions, encoding in ((52, "history"), (15, "kinds_history")):
            _, history = observation.ENCODINGS[encoding]
            pieces = tuple(dict.fromkeys((*history, "jacks_seen", *part)))
            hidden = not set(part) <= set(history) and set(part) <= set(STATE[1])
            whole = Encoder(env.rules, actions, STATE[1] if hidden else pieces)
            alone = Encoder(env.rules, actions, part)
            for seat in range(env.rules.players):
                numbers = np.full((3, alone.size), 7, np.float32)
                expected = np.zeros((1, whole.size), np.float32)
                alone.encode(games, row, np.array([seat]), numbers[1:2])
                whole.encode(games, row, np.array([seat]), expected)
                assert (numbers[[0, 2]] == 7).all()
                places = {piece.name: piece.slice for piece in whole.layout}
                for piece in alone.layout:
                    there = expected[0, places[piece.name]]
                    assert (numbers[1, piece.slice] == there).all(), (piece.name, env.rules)


@pytest.mark.parametrize("encoding", observation.ENCODINGS)
def test_an_encoding_begins_with_the_hand(encoding):
    """There a critic in training reads what each seat held."""
    actions, pieces = observation.ENCODINGS[encoding]
    assert describe(encoding)[0].slice == slice(0, actions) and pieces[0] == "hand"


FROZEN_UNDER = (
    {},
    {"players": 4, "target": 151},
    {"players": 6},
    {"bottom_card_shown": True},
    {"packs": 2, "starter_jack": "stock_middle", "ranks": 5, "hand_size": 3},
)
FROZEN = {
    "basic": "8a0edef19372460c",
    "full": "bd67dade4d5df5bd",
    "kinds": "7415eabbf2804d7a",
    "history": "fdef066246530dea",
    "kinds_history": "3bdb204de1ce086f",
    "state": "0b7cc66dd62db46c",
}


@pytest.mark.parametrize("encoding", FROZEN)
def test_published_encodings_are_frozen(encoding):
    rows = [
        (row.name, row.slice.start, row.slice.stop, row.scale)
        for fields in FROZEN_UNDER
        for row in describe(encoding, **fields)
    ]
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
    assert digest == FROZEN[encoding], (
        f"{encoding!r} is published: trained policies and others' code read it by place, so leave "
        "it as it was, and add a new encoding to ENCODINGS"
    )


@pytest.mark.parametrize("encoding", LAYOUTS)
def test_decoding_gives_the_counts_back(encoding):
    """Against the units that the tests have of their own, and scaled again they are the numbers."""
    rng = seeded("decode", encoding)
    for env, _ in random_moments(rng, 3 if INTERPRETED else 30, 2):
        encodes = state_encoder(env.rules) if encoding == "state" else encoder(encoding, env.rules)
        for seat in range(env.rules.players):
            numbers = np.zeros((1, encodes.size), np.float32)
            games, row = env._tables.games, np.zeros(1, np.int64)
            encodes.encode(games, row, np.array([seat]), numbers)
            pieces = pisti_v0.decode(numbers[0], encoding, env.rules)
            assert {n: c.tolist() for n, c in pieces.items()} == decode(
                numbers[0], encoding, env.rules
            )
            counts = np.concatenate(list(pieces.values())).astype(np.float32)
            assert np.allclose(counts / encodes.units, numbers[0], rtol=1e-6, atol=0)
            twice = pisti_v0.decode(numbers.repeat(2, axis=0), encoding, env.rules)
            assert all((twice[name] == pieces[name]).all() for name in pieces)


def test_what_is_no_observation_is_not_decoded():
    size = describe("kinds").size
    for shape in ((), (size - 1,), (size, 1)):
        with pytest.raises(ValueError, match=f"numbers has shape .*{size}"):
            pisti_v0.decode(np.zeros(shape), "kinds")


def test_arrays_that_compiled_code_cannot_fill_are_refused():
    encodes, row = encoder("basic", Rules()), np.zeros(1, np.int64)
    games = pisti_v0.raw_env()._tables.games
    good = np.zeros((1, encodes.size), np.float32)
    read_only = good.copy()
    read_only.setflags(write=False)
    for wrong in (good[:0], good[:, 1:], good.astype(np.float64), good.T, read_only):
        with pytest.raises(ValueError, match="observations has shape"):
            encodes.encode(games, row, row, wrong)
    with pytest.raises(ValueError, match="action_masks has shape"):
        encodes.mask(games, row, np.zeros((2, 52), np.int8))
    encodes.encode(games, row.astype(np.int8), row.astype(np.uint16), good)


# The first piece of each is in every encoding that has any of them.
WRITTEN_BY = {
    write.write_hand: ("hand",),
    write.write_table: ("top", "pile", "played"),
    write.write_packet: ("packet_pile", "packet_top", "packet_plays"),
    write.write_seen: ("known_starters", "shown", "bottom_card", "exposed_in_hands"),
    write.write_sizes: (
        *("pile_size", "stock_size", "hand_sizes", "last_capturer", "dealer", "packet", "target"),
    ),
    write.write_sides: ("captured", "public_points", "pistis", "jack_pistis", "match_scores"),
    write.write_history: (
        *("starter", "starter_order", "jack_order", "bottom_card_of_deal"),
        *("history_seats", "history_cards"),
    ),
    write.write_hidden: ("hands", "starters", "stock", "points", "to_play"),
}


@pytest.mark.parametrize("encoding", LAYOUTS)
def test_no_piece_is_written_over_another(encoding):
    rng = seeded("pieces", encoding)
    for env, _ in random_moments(rng, 4 if INTERPRETED else 20, 2):
        encodes = state_encoder(env.rules) if encoding == "state" else encoder(encoding, env.rules)
        slices = {row.name: row.slice for row in encodes.layout}
        before = np.arange(1000, 1000 + encodes.size, dtype=np.float32)
        for function, names in WRITTEN_BY.items():
            if names[0] in slices:
                row = before.copy()
                given = {
                    "game": env._tables.games[0],
                    "rules": compiled_rules(env.rules)[0],
                    "layout": encodes.layouts[0],
                    "me": rng.randrange(env.rules.players),
                    "row": row,
                }
                function(*(given[name] for name in inspect.signature(function).parameters))
                for name in slices.keys() & names:
                    row[slices[name]] = before[slices[name]]
                assert (row == before).all(), (function, env.rules)


@pytest.mark.parametrize("record", [game.GAME, COMPILED_RULES, LAYOUT])
def test_no_field_is_hidden_by_an_attribute_of_every_record(record):
    """In plain Python `record.size` is not a field of this name."""
    assert not set(record.names) & set(dir(np.void))


@pytest.mark.parametrize("encoding", LAYOUTS)
@pytest.mark.parametrize("fields", [{"players": 6}, {"players": 4, "packs": 2, "target": 151}])
def test_no_observation_is_larger_than_its_row(fields, encoding):
    assert describe(encoding, **fields).size <= MAX_NUMBERS
