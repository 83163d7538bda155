"""`Rules`: defaults, allowed values, presets, text in and out."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys

import pytest
from referee import DEFAULTS

from pisti_env import Rules, pisti_v0

# Each field with values that are allowed, and some that are not, for two players and one pack.
ALLOWED = {
    "players": [2, 3, 4, 5, 6],
    "packs": [None, 1, 2],
    "partners": [None, False],
    "target": [None, 1, 101, 151, 1000],
    "win_by": [1, 2, 50],
    "tie_at_target": ["extra_deal", "shared"],
    "ace_points": [0, 1, 5],
    "jack_points": [0, 1, 5],
    "two_of_clubs_points": [0, 2, 3],
    "ten_of_diamonds_points": [0, 3, 4],
    "pisti_points": [0, 5, 10],
    "jack_pisti_points": [0, 10, 20, 30],
    "jack_takes_single_points": [0, 20],
    "ten_of_diamonds_pisti_bonus": [0, 3],
    "last_card_pisti": [False, True],
    "majority_points": [0, 3, 4],
    "majority": ["most", "more_than_half", 1, 26, 27, 52],
    "starter_jack": ["pile", "stock_bottom", "stock_middle"],
    "starters_seen_by": ["capturer", "side", "all", "nobody"],
    "bottom_card_shown": [False, True],
    "leftovers": ["sweep", "burn"],
    "ranks": [3, 7, 13],
    "copies": [1, 2, 4],
    "hand_size": [1, 2, 3, 4],
}
REFUSED = {
    "players": [1, 7, 0, -2, 2.0, "2", None, True],
    "packs": [0, 3, "1", 1.0, True],
    "partners": [True, 0, 1, "no"],
    "target": [0, -1, 151.0, "151", False, True],
    "win_by": [0, -1, 1.5, None, True],
    "tie_at_target": ["share", "", None, True],
    "ace_points": [-1, 0.5, None, True],
    "jack_points": [-1, 0.5, None, True],
    "two_of_clubs_points": [-1, 0.5, None, True],
    "ten_of_diamonds_points": [-1, 0.5, None, True],
    "pisti_points": [-10, 0.5, None, True],
    "jack_pisti_points": [-20, 0.5, None, True],
    "jack_takes_single_points": [-1, 0.5, None, True],
    "ten_of_diamonds_pisti_bonus": [-3, 0.5, None, True],
    "last_card_pisti": [0, 1, None, "yes"],
    "majority_points": [-3, 0.5, None, True],
    "majority": ["half", 0, 53, -1, 26.5, None, True],
    "starter_jack": ["bottom", None, True],
    "starters_seen_by": ["everybody", None, 0],
    "bottom_card_shown": [0, 1, None, "yes"],
    "leftovers": ["keep", None, False],
    "ranks": [1, 14, 13.0, None, True],
    "copies": [0, 5, 4.0, None, True],
    "hand_size": [0, 5, 4.0, None, True],
}
CHOICES = {  # what the message has to offer; points can be 0 and more
    "partners": ["False"],
    "tie_at_target": ["extra_deal", "shared"],
    "majority": ["most", "more_than_half", "1", "52"],
    "starter_jack": ["pile", "stock_bottom", "stock_middle"],
    "starters_seen_by": ["capturer", "side", "all", "nobody"],
    "leftovers": ["sweep", "burn"],
    "players": ["2", "6"],
    "packs": ["1", "2"],
    "ranks": ["2", "13"],
    "copies": ["1", "4"],
    "hand_size": ["1", "4"],
    "win_by": ["1"],
    "target": ["1"],
    "last_card_pisti": ["True", "False"],
    "bottom_card_shown": ["True", "False"],
}


def pairs(values):
    return [(field, value) for field in values for value in values[field]]


def refusal(**fields):
    with pytest.raises(ValueError) as caught:
        Rules(**fields)
    return str(caught.value)


def test_defaults_are_the_standard_game():
    """§7.1"""
    rules = Rules()
    assert {name: getattr(rules, name) for name in DEFAULTS} == DEFAULTS
    assert {field.name for field in dataclasses.fields(Rules)} == set(DEFAULTS)
    assert set(ALLOWED) == set(REFUSED) == set(DEFAULTS)


@pytest.mark.parametrize(("field", "value"), pairs(ALLOWED))
def test_allowed_values_stay_as_given(field, value):
    """§7.1"""
    rules = Rules(**{field: value})
    assert getattr(rules, field) == value
    assert type(getattr(rules, field)) is type(value)


@pytest.mark.parametrize(("field", "value"), pairs(REFUSED))
def test_other_values_are_refused_with_field_value_and_what_is_allowed(field, value):
    """§7.1"""
    message = refusal(**{field: value})
    assert field in message
    assert repr(value) in message
    rest = message.replace(repr(value), "", 1)
    assert all(choice in rest for choice in CHOICES.get(field, ["0"]))


def test_rules_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rules().players = 3


def test_partners_need_four_players():
    """§7.2"""
    assert Rules(players=4, partners=True).pairs
    for players in (2, 3, 5, 6):
        message = refusal(players=players, partners=True)
        assert "partners" in message and "True" in message


def test_two_places_for_the_bottom_card_are_refused():
    """§7.15"""
    # Both options would put a known card at the bottom of the stock.
    for starter_jack in ("stock_bottom", "stock_middle"):
        message = refusal(bottom_card_shown=True, starter_jack=starter_jack)
        assert "bottom_card_shown" in message and starter_jack in message


@pytest.mark.parametrize("leftovers", ["sweep", "burn"])
@pytest.mark.parametrize(
    "fields",
    [{"bottom_card_shown": True}, {"starter_jack": "stock_bottom"}]
    + [{"starter_jack": "stock_middle"}],
)
def test_known_places_are_refused_with_left_over_cards(fields, leftovers):
    """§7.13, §7.15"""
    # Two packs for two players leave four cards over: nobody would get the last card.
    message = refusal(packs=2, leftovers=leftovers, **fields)
    assert next(iter(fields)) in message
    # Three packets for four players and one pack leave none.
    assert Rules(players=4, leftovers=leftovers, **fields).num_packs == 1


def test_the_first_packet_must_fit_after_the_starters():
    """§7.17"""
    # A, 2, J in four suits are 12 cards: 4 starters and 8 for two hands of four.
    assert Rules(ranks=3, hand_size=4).players == 2
    # Three hands of four do not fit, three hands of two do.
    message = refusal(players=3, ranks=3, hand_size=4)
    assert "ranks" in message and "3" in message and "16" in message
    assert Rules(players=3, ranks=3, hand_size=2).hand_size == 2
    # Two such packs have 24 cards.
    assert Rules(players=3, ranks=3, packs=2).packs == 2


def test_majority_counts_up_to_the_cards_of_the_deck():
    """§7.10"""
    assert Rules(packs=2, majority=104).majority == 104
    assert "104" in refusal(packs=2, majority=105)
    assert Rules(ranks=3, majority=12).majority == 12
    assert "12" in refusal(ranks=3, majority=13)


def test_a_target_needs_points_that_come_with_every_deal():
    """§7.5"""
    worthless = dict.fromkeys(
        ("ace_points", "jack_points", "two_of_clubs_points", "ten_of_diamonds_points"), 0
    )
    assert Rules(majority_points=0, **worthless).target is None
    message = refusal(majority_points=0, target=151, **worthless)
    assert "target" in message and "151" in message
    assert Rules(target=151, **worthless).majority_points == 3
    for field in worthless:
        assert Rules(majority_points=0, target=151, **{**worthless, field: 1}).target == 151
    # A, 2, J only: the ten of diamonds is not there to be captured.
    assert "target" in refusal(
        majority_points=0, target=151, ranks=3, **{**worthless, "ten_of_diamonds_points": 3}
    )


# What follows from the fields


@pytest.mark.parametrize(("players", "packs"), [(2, 1), (3, 1), (4, 1), (5, 2), (6, 2)])
def test_packs_follow_the_players(players, packs):
    """§1.1, §7.2"""
    rules = Rules(players=players)
    assert rules.packs is None and rules.num_packs == packs
    for given in (1, 2):
        assert Rules(players=players, packs=given).num_packs == given


def test_sides():
    """§1.2, §1.3"""
    for players in (2, 3, 5, 6):
        rules = Rules(players=players)
        assert not rules.pairs and rules.sides == players
        assert [rules.side(seat) for seat in range(players)] == list(range(players))
    rules = Rules(players=4)
    assert rules.partners is None and rules.pairs and rules.sides == 2
    assert [rules.side(seat) for seat in range(4)] == [0, 1, 0, 1]
    rules = Rules(players=4, partners=False)
    assert not rules.pairs and rules.sides == 4
    assert [rules.side(seat) for seat in range(4)] == [0, 1, 2, 3]


def test_replacing_the_players_does_what_one_expects():
    """§7.2"""
    rules = dataclasses.replace(Rules(players=4, target=151), players=5)
    assert (rules.players, rules.num_packs, rules.pairs, rules.sides) == (5, 2, False, 5)
    assert rules.target == 151
    assert dataclasses.replace(rules, players=4) == Rules(players=4, target=151)
    with pytest.raises(ValueError, match="partners"):  # those were asked for
        dataclasses.replace(Rules(players=4, partners=True), players=5)


# Presets, dicts, unknown fields

PRESETS = {
    "standard": {},
    "text_a": {"last_card_pisti": True, "target": 151},
    "text_b": {"target": 151},
    "loose": {"jack_takes_single_points": 20},
    "istanbul": {"last_card_pisti": True, "target": 151, "ten_of_diamonds_pisti_bonus": 3},
    "short": {"target": 101},
    "bottom_shown": {"bottom_card_shown": True},
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name):
    """§7.18"""
    assert Rules.preset(name).to_dict() == {**DEFAULTS, **PRESETS[name]}
    assert Rules.preset(name, players=4) == Rules(players=4, **PRESETS[name])
    # A field given overrides the preset.
    assert Rules.preset(name, target=33).target == 33


def test_unknown_presets_and_fields():
    with pytest.raises(ValueError, match="ankara") as caught:
        Rules.preset("ankara")
    assert all(name in str(caught.value) for name in PRESETS)
    with pytest.raises(TypeError):
        Rules(player=3)
    with pytest.raises(ValueError, match="player"):
        Rules.preset("standard", player=3)
    with pytest.raises(ValueError, match="player"):
        Rules.from_dict({"player": 3})


@pytest.mark.parametrize(
    "fields", [{}, {"players": 4, "partners": False}, {"majority": 27, "target": 101, "packs": 2}]
)
def test_dicts_there_and_back(fields):
    rules = Rules(**fields)
    plain = rules.to_dict()
    assert type(plain) is dict and plain == {**DEFAULTS, **fields}
    assert Rules.from_dict(plain) == rules
    assert Rules.from_dict(json.loads(json.dumps(plain))) == rules
    assert Rules.from_dict(fields) == rules  # what is not there is at its default
    assert pickle.loads(pickle.dumps(rules)) == rules
    plain["players"] = 3  # a copy: the rules do not change with it
    assert rules.players == fields.get("players", 2)


def test_dicts_are_checked():
    with pytest.raises(ValueError, match="players"):
        Rules.from_dict({"players": 9})


# Hash


def test_hash_is_eight_hex_digits_that_tell_games_apart():
    same_game = {("packs", 1), ("partners", False)}  # what None stands for with two players
    games = [Rules()] + [
        Rules(**{field: value})
        for field, value in pairs(ALLOWED)
        if value != DEFAULTS[field] and (field, value) not in same_game
    ]
    hashes = {rules.hash for rules in games}
    assert len(hashes) == len(games) > 40
    assert all(len(code) == 8 and set(code) <= set("0123456789abcdef") for code in hashes)


def test_published_hashes_stay():
    """Results and checkpoints quote them: where one changes, the change is wrong, not this."""
    assert {name: Rules.preset(name).hash for name in PRESETS} == {
        "standard": "e1021c32",
        "text_a": "2eb9877a",
        "text_b": "19015eea",
        "loose": "c60f37b0",
        "istanbul": "34ade194",
        "short": "cf649aa0",
        "bottom_shown": "2943debe",
    }
    assert Rules(players=3).hash == "bf081d08"
    assert Rules(players=4, target=151).hash == "43aa9378"


def test_an_option_that_is_added_changes_no_hash_but_where_it_is_used():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Later(Rules):
        ace_pisti_points: int = 10

    for fields in ({}, {"players": 4, "target": 151}):
        assert Later(**fields).hash == Rules(**fields).hash
        assert Later(**fields, ace_pisti_points=15).hash != Rules(**fields).hash


def test_hash_does_not_depend_on_how_the_rules_were_made():
    fields = {"target": 151, "last_card_pisti": True}
    backwards = Rules.from_dict(dict(reversed(Rules(**fields).to_dict().items())))
    assert Rules.preset("text_a").hash == Rules(**fields).hash == backwards.hash


def test_hash_is_the_same_in_another_process():
    code = "from pisti_env import Rules; print(Rules.preset('istanbul', players=4).hash)"
    here = Rules.preset("istanbul", players=4).hash
    for hash_seed in ("1", "2"):  # str hashes differ between the two
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", code],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert there.stdout.strip() == here


# Wherever rules are taken


def rules_of(**arguments):
    """What game `raw_env` makes of its arguments: players, and whether a bottom card is shown."""
    env = pisti_v0.raw_env(**arguments)
    env.reset(seed=0)
    return len(env.possible_agents), env.unwrapped.view(None).bottom_card is not None


def test_an_environment_takes_rules_a_name_a_dict_and_flat_fields():
    assert rules_of() == (2, False)
    assert rules_of(rules=Rules(players=3)) == (3, False)
    assert rules_of(rules="bottom_shown") == (2, True)
    assert rules_of(rules={"players": 4, "bottom_card_shown": True}) == (4, True)
    assert rules_of(players=6) == (6, False)
    assert rules_of(rules="bottom_shown", players=3) == (3, True)
    assert rules_of(rules=Rules(players=3), players=4) == (4, False)
    assert rules_of(rules={"players": 3}, bottom_card_shown=True) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [{"rules": "ankara"}, {"rules": {"player": 3}}, {"player": 3}, {"players": 7}, {"rules": 7}],
)
def test_an_environment_refuses_unknown_rules(arguments):
    with pytest.raises((ValueError, TypeError)):
        pisti_v0.raw_env(**arguments)


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        (Rules(), "Rules()"),
        (Rules(players=4), "Rules(players=4)"),
        (Rules.preset("istanbul", majority="more_than_half"), None),
        (Rules(players=4, partners=False, packs=2, last_card_pisti=True), None),
    ],
)
def test_rules_show_what_differs_and_can_be_read_again(rules, shown):
    assert shown in (None, repr(rules))
    assert eval(repr(rules), {"Rules": Rules}) == rules
