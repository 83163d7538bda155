"""Records: written, read back, damaged, replayed; and what one viewer saw of them."""

import contextlib
import copy
import datetime
import pickle
import random
import re
import time
import tomllib
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
from places import random_moments
from record_forms import Formatter
from referee import Referee, complete, match_winners, number, numbers, random_rules, text
from test_observation import EXTREME_RULES

from pisti_env import Rules, pisti_v0
from pisti_env.cards import CARD_NAMES, NO_CARD
from pisti_env.knowledge import deal_unknown, deck_of
from pisti_env.record import (
    EVERYONE,
    Comment,
    parse_records,
    read_records,
    records_text,
    write_records,
)

SLOW = numba.config.DISABLE_JIT
NUM_DEALS = 100 if SLOW else 10_000
NUM_MATCHES = 16 if SLOW else 500
NUM_DAMAGED = 300 if SLOW else 10_000
NUM_SEEN = 16 if SLOW else 300
CASES = 8  # so that the work can be spread
ROOT = Path(__file__).resolve().parents[1]
DAY = datetime.date(2026, 12, 1)


def played(rng, rules, most_plays=10_000, seed=None):
    """The record of a random episode, perhaps broken off after `most_plays`."""
    env = pisti_v0.raw_env(rules)
    env.reset(seed=rng.randrange(2**64) if seed is None else seed)
    for _ in range(most_plays):
        if env.terminations[env.agent_selection]:
            break
        mask = env.infos[env.agent_selection]["action_mask"]
        env.step(rng.choice(mask.nonzero()[0].tolist()))
    names = [rng.choice('ağç"#]=🂡') + str(seat) for seat in range(env.rules.players)]
    return env.record(names, DAY)


def without_target(rng):
    return Rules(**{**random_rules(rng), "target": None})


def with_target(rng):
    return Rules(**{**random_rules(rng), "target": rng.choice([1, 20, 60])})


@pytest.mark.parametrize("case", range(CASES))
def test_random_deals_are_read_as_they_were_written(case, tmp_path):
    rng = random.Random(case)
    records = []
    while len(records) < NUM_DEALS // CASES:
        rules = without_target(rng)
        records += [played(rng, rules) for _ in range(5)]
    write_records(tmp_path / "deals.toml", records)
    again = read_records(tmp_path / "deals.toml")
    assert again == records
    for one in again:
        one.check()
    assert records_text(again) == (tmp_path / "deals.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", range(CASES))
def test_random_matches_are_read_as_they_were_written(case, tmp_path):
    rng = random.Random(case)
    records = [played(rng, with_target(rng)) for _ in range(NUM_MATCHES // CASES)]
    write_records(tmp_path / "matches.toml", records)
    again = read_records(tmp_path / "matches.toml")
    assert again == records
    assert max(len(one.deals) for one in again) > 1
    for one in again:
        one.check()


@pytest.mark.parametrize("fields", EXTREME_RULES, ids=str)
def test_a_deal_under_extreme_rules_is_read_as_it_was_written(fields):
    rng = random.Random(str(fields))
    rules = Rules(**fields)
    whole = played(rng, rules, most_plays=3 * rules.num_plays)
    for one in (whole, *map(whole.seen_by, [EVERYONE, *range(rules.players)])):
        written = records_text([one])
        [again] = parse_records(written)
        again.check()
        assert again == one
        assert records_text([again]) == written


def random_text(rng, others):
    """Text that a record can have, with all that is special in TOML."""
    letters = [*"\"'\\#[]{}=,.\u00e7\u015f \u200d\u00a0\ufeff\ue000\U0001f0a1\U0010fffd", *others]
    letters += ['"""', "'''", "\\u0041", "\\n", "[[records]]", "??"]
    letters += [chr(rng.randrange(0x3000)) for _ in range(5)]
    letters = [letter for letter in letters if letter in others or not is_refused(letter)]
    return "".join(rng.choices(letters, k=rng.randrange(30)))


def is_refused(letters):
    """Whether these are characters that would do something to a screen."""
    return any(
        ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 or 0x2028 <= ord(letter) <= 0x202E
        or 0x2066 <= ord(letter) <= 0x2069
        for letter in letters
    )  # fmt: skip


def test_any_name_and_comment_is_read_as_it_was_written(tmp_path):
    rng = random.Random(9)
    bare = played(rng, Rules(), most_plays=7)
    for _ in range(100 if SLOW else 1_000):
        told = [Comment(rng.randrange(8), random_text(rng, "\n\t")) for _ in range(3)]
        one = replace(
            bare,
            agents=(random_text(rng, ""), random_text(rng, "")),
            comments=(random_text(rng, "\n\t"),),
            deals=(replace(bare.deals[0], comments=tuple(told)),),
        )
        written = records_text([one, one])
        assert parse_records(written) == [one, one]
        assert records_text(parse_records(written)) == written
    write_records(tmp_path / "names.toml", [one])
    assert read_records(tmp_path / "names.toml") == [one]


@pytest.mark.parametrize("seed", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_any_seed_is_read_as_it_was_written(seed):
    one = played(random.Random(1), Rules(), seed=seed)
    [again] = parse_records(records_text([one]))
    assert again.seed == seed
    again.check()


# What is damaged.


def damage(text, rng):
    """The text with one thing wrong, or by chance as it was."""
    kind = rng.randrange(6)
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    if kind == 0:
        return "\n".join(lines[:place] + lines[place + 1 :])  # a line lost
    if kind == 1:
        return "\n".join([*lines[:place], lines[place], *lines[place:]])  # a line twice
    place = rng.randrange(len(text))
    before, here, after = text[:place], text[place], text[place + 1 :]
    other = rng.choice("0123456789-[]{}=\"',.#\\\nAJQKTCDHS abcdefé\x00")
    return [before + after, before + other + after, before + after[:1] + here + after[1:], before][
        kind - 2
    ]


def is_another_right_one(again, whole):
    """Whether what was read is a record that nothing is wrong with: names, dates and comments may
    be anything, other rules may give the same scores, decks need no seed, and a match that was
    broken off after a deal is one too."""
    if len(again) != 1:
        return not again
    return (
        again[0].rules != whole.rules
        or again[0].seed is None
        or again[0].deals == whole.deals[: len(again[0].deals)]
    )


@pytest.mark.parametrize("case", range(CASES))
def test_a_damaged_file_is_one_clear_error(case, tmp_path):
    rng = random.Random(case)
    file = tmp_path / "damaged.toml"
    told = []
    while len(told) < NUM_DAMAGED // CASES:
        whole = played(rng, replace(Rules(), target=rng.choice([None, 20])))
        if any(len(set(deal.scores)) == 1 for deal in whole.deals):
            continue  # had the other seat dealt, the score would be the same
        text = records_text([whole])
        for _ in range(50):
            file.write_text(damage(text, rng), encoding="utf-8")
            try:
                again = read_records(file)
                for one in again:
                    one.check()
            except ValueError as error:
                told.append(str(error))
            else:
                assert is_another_right_one(again, whole), file.read_text(encoding="utf-8")
    form = rf"{re.escape(str(file))}, (line \d+|at its end): [^\n]{{10,600}}"
    assert [message for message in told if not re.fullmatch(form, message)] == []


# What one viewer saw.


def random_record(rng):
    """A record of a deal or a match under random rules, whole or broken off."""
    rules = Rules(**random_rules(rng))
    plays = rng.choice([10_000, rng.randrange(2 * rules.num_plays)])
    return played(rng, rules, plays)


@pytest.mark.parametrize("case", range(CASES))
def test_a_record_of_one_viewer_has_what_it_saw_and_nothing_else(case):
    rng = random.Random(case)
    for _ in range(NUM_SEEN // CASES):
        whole = random_record(rng)
        for viewer in [EVERYONE, *range(whole.rules.players)]:
            seat = None if viewer == EVERYONE else viewer
            seen = whole.seen_by(viewer)
            seen.check()
            text = records_text([seen])
            assert parse_records(text) == [seen]
            assert seen.seed is None
            for place, deal in enumerate(whole.deals):
                for play in {0, len(deal.plays), rng.randrange(len(deal.plays) + 1)}:
                    assert seen.view(place, play, seat) == whole.view(place, play, seat)
            twin = with_other_hidden_cards(whole, seat, rng)
            assert records_text([twin.seen_by(viewer)]) == text


def with_other_hidden_cards(whole, seat, rng):
    """The record of deals in which a seat saw the same, but what it never saw lay elsewhere."""
    deals = []
    for place, deal in enumerate(whole.deals):
        one = replace(whole, deals=(deal,), scores=whole.scores_before(place), seed=None)
        games = table_at_the_end(one)
        deal_unknown(games, whole.rules, seat, rng.randrange(2**64))
        deals.append(replace(deal, deck=tuple(deck_of(games, whole.rules))))
    twin = replace(whole, deals=tuple(deals), seed=None)
    twin.check()
    return twin


def table_at_the_end(one):
    """The table at which the only deal of a record was played."""
    env = one.replay(0, 0)
    tables = env._tables
    for card in one.deals[0].plays:
        tables.cards[0] = card
        tables.play()
    return tables.games


def test_hidden_cards_stand_nowhere_in_what_a_seat_saw():
    env = pisti_v0.raw_env()
    env.reset(seed=0, options={"dealer": 1})
    for _ in range(2):
        env.step(env.view(env._tables.games["to_play"][0]).hand[0])
    seen = env.record().seen_by(0)
    view = env.view(0)
    played_cards = {card for _, card in view.plays}
    known = {*view.hand, *played_cards, *view.known_starters, view.starter}
    assert {card for card in seen.deals[0].deck if card != NO_CARD} == known
    text = records_text([seen])
    for card, name in enumerate(CARD_NAMES):
        assert (name in text) == (card in known), name


@pytest.mark.parametrize("case", range(CASES))
def test_a_record_has_what_its_viewer_knows_by_another_model_of_knowledge(case):
    """Held against `Places`: the same cards are told, and a deal of which the viewer saw the same
    until now is the same text. All that it saw before is seen in the record too, play by play."""
    rng = random.Random(case)
    num_twins = 0
    for env, places in random_moments(rng, 2 if SLOW else 20, 2):
        whole, rules = env.record(), env.rules
        for seat in [None, *range(rules.players)]:
            seen = whole.seen_by(EVERYONE if seat is None else seat)
            told = [card for card in seen.deals[0].deck if card != NO_CARD]
            assert Counter(told) == Counter(places.cards[place] for place in places.known(seat))
            moment = len(whole.deals[0].plays)
            assert seen.replay(0, moment, rng.randrange(2**64)).view(seat) == env.view(seat)
            for play in range(0, moment + 1, 7 if SLOW else 1):
                assert seen.view(0, play, seat) == whole.view(0, play, seat)
            deal = replace(whole.deals[0], deck=tuple(places.twin(seat, rng)))
            twin = replace(whole, deals=(deal,), seed=None)
            try:
                twin.check()
            except ValueError:  # another seat would have played a card that it did not hold
                continue
            assert records_text([twin.seen_by(seen.viewer)]) == records_text([seen])
            num_twins += 1
    assert num_twins > (5 if SLOW else 60)


def test_what_one_viewer_saw_keeps_nothing_of_the_record_that_it_was_made_of():
    [whole] = parse_records(records_text([played(random.Random(5), Rules(), most_plays=9)]))
    [twin] = parse_records(records_text([with_other_hidden_cards(whole, 0, random.Random(1))]))
    assert twin != whole
    seen, twin_seen = whole.seen_by(0), twin.seen_by(0)
    seen.check()
    twin_seen.check()
    assert seen.source is None
    assert pickle.dumps(twin_seen) == pickle.dumps(seen)
    assert repr(twin_seen) == repr(seen)


def test_a_hand_lies_in_the_order_in_which_it_was_played_and_then_sorted():
    """As the page on records says; with two packs too, where a hand may have a card twice."""
    rng, orders = random.Random(3), 0
    for _ in range(40 if SLOW else 400):
        rules = Rules(packs=2, ranks=3, hand_size=4, players=rng.choice([2, 3]))
        whole = played(rng, rules, most_plays=rng.randrange(rules.num_plays))
        deal, view = whole.deals[0], whole.view(0, len(whole.deals[0].plays), 0)
        if view.shown_jacks:
            continue
        packet, turns = divmod(len(deal.plays), rules.packet_size)
        leader = (deal.dealer + 1) % rules.players
        for turn in range(rules.players):
            first = 4 + packet * rules.packet_size + turn * rules.hand_size
            hand = whole.seen_by(0).deals[0].deck[first : first + rules.hand_size]
            made = deal.plays[packet * rules.packet_size + turn :][: max(0, turns - turn)]
            expected = [*made[:: rules.players]]
            expected += sorted(view.hand) if (leader + turn) % rules.players == 0 else []
            assert hand == (*expected, *[NO_CARD] * (rules.hand_size - len(expected)))
            orders += len(set(made[:: rules.players])) > 1
    assert orders > (1 if SLOW else 10)


def test_what_is_left_out_must_be_what_the_viewer_did_not_know():
    whole = played(random.Random(1), Rules(), most_plays=9)
    seen = whole.seen_by(0)
    deal = seen.deals[0]
    shown = replace(deal, deck=(*deal.deck[:-1], whole.deals[0].deck[-1]))
    told = rf"deals\[0\]\.deck has {CARD_NAMES[shown.deck[-1]]} as card 52; expected \?\?"
    with pytest.raises(ValueError, match=told):
        replace(seen, deals=(shown,)).check()
    hidden = replace(deal, deck=tuple([NO_CARD] * 52))
    with pytest.raises(ValueError, match=r"deals\[0\]\.plays has .* in which this one cannot be"):
        replace(seen, deals=(hidden,)).check()
    with pytest.raises(ValueError, match=r"deals\[0\]\.deck\[51\] is \?\?; expected a card"):
        replace(whole, deals=(replace(whole.deals[0], deck=(*whole.deals[0].deck[:-1], NO_CARD)),))
    with pytest.raises(ValueError, match="seed is 5; expected none, since it tells"):
        replace(seen, seed=5)


def test_a_record_of_one_viewer_has_no_other_view():
    seen = played(random.Random(1), Rules()).seen_by(1)
    assert seen.view(0, 3, 1).viewer == 1
    assert seen.view(0, 3).viewer is None
    with pytest.raises(ValueError, match="only what seat 1 saw; expected 1 or None"):
        seen.view(0, 3, 0)
    with pytest.raises(ValueError, match="only what seat 1 saw"):
        seen.seen_by(0)
    assert seen.seen_by(1) == seen
    assert seen.seen_by(EVERYONE).viewer == EVERYONE


def test_comments_are_left_out_since_they_may_tell_what_was_hidden():
    whole = played(random.Random(1), Rules())
    told = (Comment(3, "seat 1 holds KD"),)
    whole = replace(
        whole, comments=("KD is in the stock",), deals=(replace(whole.deals[0], comments=told),)
    )
    assert parse_records(records_text([whole])) == [whole]
    seen = whole.seen_by(0)
    assert seen.comments == ()
    assert seen.deals[0].comments == ()


# Replayed.


@pytest.mark.parametrize("encoding", ["full", "kinds"])
def test_an_environment_goes_on_from_any_play_as_the_first_one_did(encoding):
    """With kinds too, though a step with a kind plays the lowest such card of the hand."""
    rng = random.Random(3)
    for _ in range(5):
        whole = played(rng, Rules(**{**random_rules(rng), "target": 40}))
        for deal, here in enumerate(whole.deals):
            play = rng.randrange(len(here.plays) + 1)
            env = whole.replay(deal, play, observation=encoding)
            again = env.record(whole.agents, DAY)
            if play < len(here.plays):  # after the last one the next deal has been dealt
                assert [d.plays for d in again.deals] == [
                    *(d.plays for d in whole.deals[:deal]),
                    here.plays[:play],
                ]
                assert env.view(0) == whole.view(deal, play, 0)
            assert again.seed == whole.seed
            assert [d.deck for d in again.deals] == [
                d.deck for d in whole.deals[: len(again.deals)]
            ]
            again.check()


def test_a_match_goes_on_with_the_decks_of_the_record_and_then_of_its_seed():
    whole = played(random.Random(2), Rules(target=151), most_plays=60, seed=4)
    assert len(whole.deals) == 2
    first, again = pisti_v0.raw_env(target=151), whole.replay(0, 10)
    first.reset(seed=4)
    decks = []
    for env in (first, again):
        while len(env.deals) < 3:
            env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
        decks.append([deal.deck for deal in env.record().deals])
    assert decks[0] == decks[1]
    assert again.record().seed == 4


def test_what_one_seat_did_not_see_is_drawn_at_a_replay():
    whole = played(random.Random(1), Rules(), most_plays=9)
    seen = whole.seen_by(0)
    decks = {tuple(seen.replay(0, 9, seed).deck) for seed in range(5)}
    assert len(decks) == 5
    assert tuple(seen.replay(0, 9, 3).deck) in decks
    for seed in range(5):
        assert seen.replay(0, 9, seed).view(0) == whole.view(0, 9, 0)


def test_there_is_no_other_moment():
    whole = played(random.Random(1), Rules(), most_plays=9)
    for use in (whole.view, whole.replay):
        with pytest.raises(ValueError, match="deal is 1; expected an int from 0 to 0"):
            use(1, 0)
        with pytest.raises(ValueError, match="play is 10; expected an int from 0 to 9"):
            use(0, 10)
        with pytest.raises(ValueError, match="play is -1; expected an int from 0 to 9"):
            use(0, -1)
    with pytest.raises(ValueError, match="seat is 2; expected"):
        whole.view(0, 0, 2)
    with pytest.raises(ValueError, match="viewer is 'all'; expected"):
        whole.seen_by("all")


def test_a_deal_is_not_replayed_where_those_before_it_cannot_have_been():
    whole = replace(played(random.Random(6), Rules(target=31)), seed=None)
    first, second = whole.deals
    short = replace(first, plays=first.plays[:-3])
    for changes, told in [
        ({"deals": (short, second)}, r"deals\[0\]\.scores is .* since 3 plays are missing"),
        ({"deals": (first, replace(second, dealer=first.dealer))}, r"deals\[1\]\.dealer is"),
        ({"deals": (replace(first, scores=(3, 4)), second)}, r"deals\[0\]\.scores is \[3, 4\]"),
        ({"rules": Rules(target=1)}, r"deals\[1\] is one too many"),
        ({"scores": (31, 0)}, r"scores is \[31, 0\]; expected a match that is not decided"),
    ]:
        with pytest.raises(ValueError, match=told):
            replace(whole, **changes).replay(1, 5)
    with pytest.raises(ValueError, match="since 3 plays are missing"):
        replace(whole, deals=(short, second)).view(1, 5, 0)


# An environment records itself.


def test_an_environment_records_itself_in_every_moment():
    rng = random.Random(4)
    for env, _ in random_moments(rng, 4 if SLOW else 60, 2, deals=2):
        again = pisti_v0.raw_env(env.rules, observation="kinds")
        again.reset(options={"position": env.position(rng.choice([None, 0, 1]))})
        copies = [copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
        for one in (env, again, *copies):
            record = one.record()
            record.check()
            last = len(record.deals) - 1
            replayed = record.replay(last, len(record.deals[last].plays))
            assert replayed.record() == record
            for seat in range(env.rules.players):
                assert replace(replayed.view(seat), last_deal=None) == replace(
                    one.view(seat), last_deal=None
                )
        assert [one.record() for one in copies] == [env.record()] * 3


def test_a_record_has_the_seed_only_if_its_decks_follow_from_it():
    env = pisti_v0.raw_env()
    env.reset(seed=7)
    assert env.record().seed == 7
    deck = env.deck
    env.reset()
    assert env.record().seed is None
    env.reset(seed=7, options={"deck": deck[::-1]})
    assert env.record().seed is None
    env.reset(seed=8, options={"dealer": 1})
    assert env.record().seed == 8
    env.record().check()


def test_a_record_is_of_the_deals_since_the_reset():
    env = pisti_v0.raw_env(target=31)
    env.reset(seed=1, options={"scores": [10, 5]})
    for _ in range(60):
        env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    one = env.record(("left", "right"), DAY)
    assert [len(deal.plays) for deal in one.deals] == [48, 12]
    assert one.scores == (10, 5)
    assert one.deals[1].scores is None
    assert one.scores_before(1) == env.view(None).match_scores
    one.check()
    position = env.position(0)
    env.reset(options={"position": position})
    again = env.record()
    assert [deal.plays for deal in again.deals] == [one.deals[1].plays]
    assert again.scores == one.scores_before(1)
    again.check()


def test_a_record_of_an_episode_that_an_illegal_action_ended():
    env = pisti_v0.env()
    env.reset(seed=1)
    mask = env.observe(env.agent_selection)["action_mask"]
    env.step(int(mask.argmax()))
    mask = env.observe(env.agent_selection)["action_mask"]
    env.step(int(mask.argmin()))
    one = env.unwrapped.record()
    assert len(one.deals[0].plays) == 1
    one.check()


def is_right_by_the_referee(one):
    """Whether the second reading of the rules allows all of a record with nothing left out."""
    rules = complete(one.rules.to_dict())
    if rules.target is not None and match_winners(rules, one.scores):
        return False
    referee = None
    for deal in one.deals:
        deck = [text(card) for card in deal.deck]
        try:
            if referee is None:
                referee = Referee(rules, deck, deal.dealer, one.scores)
            elif referee.match_over or deal.dealer != (referee.dealer + 1) % rules.players:
                return False
            else:
                referee.next_deal(deck)
        except ValueError:  # nothing but jacks to turn up
            return False
        for card in deal.plays:
            if text(card) not in referee.legal():
                return False
            referee.play(text(card))
        points = [referee.points(side) for side in range(referee.sides)]
        if deal.scores != (tuple(points) if referee.deal_over else None):
            return False
    return True


def changed(one, rng):
    """A record with something else in it, perhaps against the rules; None if it is no record."""
    number = rng.randrange(len(one.deals))
    deal, deals = one.deals[number], list(one.deals)
    kind = rng.choice(["rules", "scores", "deck", "plays", "twin", "dealer", "points", "deals"])
    fields = one.rules.to_dict()
    cards = list(deal.plays if kind == "plays" else deal.deck)
    if kind in ("plays", "deck") and len(cards) > 1:
        here = rng.randrange(min(8, len(cards))) if rng.random() < 0.5 else len(cards) - 1
        there = rng.randrange(len(cards))
        cards[here], cards[there] = cards[there], cards[here]
    changes = {}
    if kind == "rules":
        name = rng.choice([*fields, "tie_at_target", "win_by", "target"])
        other = {**Rules().to_dict(), **random_rules(rng)}[name]
        changes["rules"] = {**fields, name: other}
    elif kind == "scores":
        changes["scores"] = tuple(rng.randrange(70) for _ in one.scores)
    elif kind == "deck":
        deals[number] = replace(deal, deck=tuple(cards))
    elif kind == "plays":
        deals[number] = replace(deal, plays=tuple(cards))
    elif kind == "twin":
        deals[number] = replace(deal, plays=tuple(sorted(deal.plays, key=lambda _: rng.random())))
    elif kind == "dealer":
        deals[number] = replace(deal, dealer=rng.randrange(one.rules.players))
    elif kind == "points" and deal.scores:
        deals[number] = replace(deal, scores=tuple(p + rng.randrange(2) for p in deal.scores))
    elif kind == "deals":
        deals = rng.choice([[*deals, deals[0]], deals[1:], deals[:-1], [*deals, deals[-1]]])
    try:
        rules = Rules(**changes.pop("rules", fields))
        return replace(one, rules=rules, deals=tuple(deals), seed=None, **changes)
    except ValueError:
        return None


@pytest.mark.parametrize("case", range(CASES))
def test_a_record_is_right_where_the_referee_says_so(case):
    rng = random.Random(f"referee {case}")
    right = Counter()
    while right.total() < (40 if SLOW else 2_000) // CASES:
        rules = with_target(rng) if rng.random() < 0.6 else Rules(**random_rules(rng))
        whole = played(rng, rules, rng.choice([10_000, rng.randrange(1, 150)]))
        for one in [whole, *(changed(whole, rng) for _ in range(9))]:
            if one is None:
                continue
            expected = is_right_by_the_referee(one)
            right[expected] += 1
            with contextlib.nullcontext() if expected else pytest.raises(ValueError):
                one.check()
    assert min(right[True], right[False]) > right.total() // 5


# What is wrong.


def text_of_a_deal():
    return records_text([played(random.Random(5), Rules(), seed=11)])


def read_and_check(text):
    for one in parse_records(text):
        one.check()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("format = ", "formal = ", r"line 1: format is missing; expected format = "),
        ("version = 1", "version = 2", r"line 2: version is 2; expected 1, the only one"),
        ("agents", "agent", r"line 6: records\[0\]\.agent is unknown; expected rules, agents"),
        ("{}", "{player = 2}", r"line 5: records\[0\]\.rules is wrong: .*'player'"),
        ("2026-12-01", "12", r"line 7: records\[0\]\.date is 12; expected a date"),
        ("2026-12-01", "2026-12-01T00:00:00", r"line 7: records\[0\]\.date is datetime"),
        ("seed = 11", "seed = 12", r"line 8: records\[0\]\.seed is 12, from which another"),
        ("seed = 11", "seed = 1e5", r"line 8: records\[0\]\.seed is 100000\.0; expected a wh"),
        ("dealer = ", "dealer = 2", r"line 11: records\[0\]\.deals\[0\]\.dealer is 2\d; exp"),
        ("scores = [", "scores = [1", r"line 29: .*scores is \[1\d+, \d+\]; expected \[\d+, "),
    ],
)
def test_an_error_names_line_and_field(old, new, told):
    text = text_of_a_deal()
    assert text.count(old) == 1
    with pytest.raises(ValueError, match=told):
        read_and_check(text.replace(old, new))


def test_the_line_of_a_wrong_play_and_of_a_wrong_card():
    lines = text_of_a_deal().splitlines()
    place = lines.index("plays = [") + 1
    cards = lines[place].split('"')[1].split()
    told = rf"^line {place + 1}: records\[0\]\.deals\[0\]\.plays\[0\] has 'XX'; expected cards"
    with pytest.raises(ValueError, match=told):
        read_and_check("\n".join(lines).replace(f'"{cards[0]} {cards[1]}', f'"XX {cards[1]}'))
    told = (
        rf"^line {place}: records\[0\]\.deals\[0\]\.plays has {cards[0]} as play 3 of packet 1, "
        r"where seat \d is to play; expected a card of its hand, ([2-9AJQKT][CDHS] ?){3}$"
    )
    twice = [cards[0], cards[1], cards[0], *cards[3:]]
    with pytest.raises(ValueError, match=told):
        read_and_check("\n".join(lines).replace(" ".join(cards), " ".join(twice)))


def test_lines_are_counted_in_files_that_other_programs_write(tmp_path):
    """With another order, other quotes, comments, inline tables, CRLF and a byte order mark."""
    one = played(random.Random(5), Rules(), most_plays=5)
    deal = one.deals[0]
    deck, plays = (
        " ".join(CARD_NAMES[card] for card in cards) for cards in (deal.deck, deal.plays)
    )
    text = f"""version = 1 # [[records]]
'format' = \"\"\"pisti-records\"\"\"
# [[records.deals]]

[[records]]
agents = ['''a
b''', "c"]
rules = "standard"
deals = [ {{dealer = {deal.dealer}, deck = "{deck}", plays = "{plays}"}} ]
"""
    with pytest.raises(ValueError, match=r"^line 6: records\[0\]\.agents\[0\] has the character"):
        parse_records(text)
    right = text.replace("'''a\nb'''", "'''ab'''")
    assert parse_records(right)[0].deals == one.deals
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf" + right.replace("\n", "\r\n").encode())
    assert read_records(file)[0].deals == one.deals
    wrong = right.replace("dealer = ", "dealer = 1")
    with pytest.raises(
        ValueError, match=r"^line 8: records\[0\]\.deals\[0\]\.dealer is 1\d; expected"
    ):
        parse_records(wrong)


WRONG_VALUES = {
    "dealer": ["-1", "true", "0.0", "nan", "[]", "99999999999999999999", "2026-12-01T10:00:00Z"],
    "deck": ["[]", "{}", "52", '"XX"', '["AS", 3]', '"A\u017f"', '"\\u001b[2J"'],
    "plays": ['"10H"', "true", '["AS", ["AS"]]', '"??"'],
    "scores": ["[]", "[1]", "[true, 1]", "[-1, 1]", "[0.0, 1.0]", "{}", "inf", "[[], []]"],
    "agents": ['["a"]', '["a", 1]', '["a\\u202E", "b"]', '["\\t", "b"]', '"ab"'],
    "date": ["12", '"2026-12-01"', "2026-12-01T00:00:00", "10:00:00", "true"],
    "viewer": ["true", "-1", "2", "0.0", '"nobody"', "[]", "2026-12-01"],
    "seed": ["-1", "18446744073709551616", "true", "1e3", '"1 "', '"\u0663"'],
    "rules": ["2", '"stanbul"', "{player = 2}", "{players = true}", "[]"],
    "comments": ['["\\u0000"]', "{}", "[3]", '"text"'],
    "other": ["1", "[]"],
}


def test_an_error_names_the_line_on_which_the_field_is_written():
    """In thousands of files, each written in another way, with one wrong value."""
    rng = random.Random(12)
    records = [played(rng, Rules(**more), 60) for more in ({}, {"target": 500}, {"target": 500})]
    records = [
        replace(
            one,
            comments=("[[records]]", "two"),
            deals=tuple(replace(d, comments=(Comment(1, "#"), Comment(2, "b"))) for d in one.deals),
        )
        for one in records
    ]
    document = tomllib.loads(records_text(records))
    for _ in range(50 if SLOW else 1_000):
        number = rng.randrange(3)
        deal = rng.choice([None, *range(len(records[number].deals))])
        names = ("dealer", "deck", "plays", "scores", "comments", "other")
        name = rng.choice(names if deal is not None else [*set(WRONG_VALUES) - set(names[:3])])
        path = ("records", number, *(() if deal is None else ("deals", deal)), name)
        value = rng.choice(WRONG_VALUES[name])
        if path[-1] == "scores" and deal is None and records[number].rules.target is None:
            value = "[true, 1]"
        written = Formatter(rng, path, value)
        text = written.file(document)
        with pytest.raises(ValueError, match="line") as caught:
            parse_records(text)
        line, told = re.fullmatch(r"line (\d+): ([^\n]{10,600})", str(caught.value)).groups()
        field = told.split(" ")[0]
        plain = f"records[{number}]" + ("" if deal is None else f".deals[{deal}]") + f".{name}"
        assert field.startswith(plain), told
        assert told.isprintable(), told
        deeper = re.findall(r"\w+", field)
        deeper = tuple(int(part) if part.isdigit() else part for part in deeper)
        assert int(line) == written.line_of(deeper), (str(caught.value), text)
        right = Formatter(rng)
        assert parse_records(right.file(document)) == records


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('"\\u001b[2J" = 1', r"line 3: '\\x1b\[2J' is unknown; expected format, version, records"),
        ('"\u202e" = 1', r"line 3: '\\u202e' is unknown"),
        ('"" = 1', "line 3: '' is unknown"),
        ("k" * 5_000 + " = 1", r"line 3: 'kk[^\n]{100,300} is unknown"),
        ("a.b = 1", "line 3: a is unknown"),
        ('"\\U00000061".b = 1', "line 3: a is unknown"),
    ],
    ids=lambda text: text[:20],
)
def test_a_name_that_no_field_has_is_quoted(line, told):
    with pytest.raises(ValueError, match=f"^{told}"):
        parse_records(f"format = 'pisti-records'\nversion = 1\n{line}\n")


HOSTILE = {  # a beginning, what is repeated, an end
    "dots": ("", "b.", "b = 1"),
    "dots in an inline table": ("a = {", "b.", "b = 1}"),
    "quoted dots": ("a = [{", '"b" . ', "b = 1}]"),
    "quotes": ('a = """', '""a', '"""'),
    "no end of a text": ("a = '''", "''a", ""),
    "backslashes": ('a = "', r"\\", '"'),
    "hashes": ("", "#", ""),
    "lines": ("a = [", "\n", "]"),
    "records": ("", "[[records]]\n", ""),
    "elements": ("records = [", "{}, ", "]"),
    "cards": ("records = [{rules = {}, deals = [{dealer=0, plays='', deck='", "AS ", "'}]}]"),
    "arrays of tables": ("", "[[a%d]]\n", ""),
}


@pytest.mark.compiled
@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_no_faster_than_a_file(kind):
    begin, repeated, end = HOSTILE[kind]

    def cost(n):
        middle = "".join(repeated.replace("%d", str(k)) for k in range(n // len(repeated)))
        text = f"format = 'pisti-records'\nversion = 1\n{begin}{middle}{end}"
        began = time.process_time()
        with contextlib.suppress(ValueError):
            parse_records(text)
        return time.process_time() - began

    small, large = min(cost(20_000) for _ in range(3)), cost(200_000)
    assert large < 40 * small + 0.1  # 100 times, if it grew with the square


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("plays = [", f'plays = ["{"AS " * 40_000}",', "plays has 40048 cards; expected at most"),
        ("agents = [", f"agents = [{'1, ' * 40_000}", "agents has 40002 names; expected 2"),
        ("format = ", f"a = [{'1, ' * 40_000}]\nformat = ", "a is unknown"),
    ],
    ids=["cards", "elements", "elements of the file"],
)
def test_what_has_no_end_takes_little_more_memory_than_its_text(old, new, told):
    text = text_of_a_deal().replace(old, new)
    tracemalloc.start()
    with pytest.raises(ValueError, match=told):
        parse_records(text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = " + "[" * 100_000,
        "a = " + "{b = " * 5_000,
        "a" + ".a" * 100_000 + " = 1",
        "a = " + "9" * 5_000,
        "a = {" + "b." * 9 + "b = 1}",
        "a = [[{" + "'b'." * 9 + "b = 1}]]",
        "format = 'pisti-records'\nversion = true\nrecords = 5",
        "format = 'pisti-records'\nversion = 1\nrecords = 5",
        "format = 'pisti-records'\nversion = 1\nrecords = [5]",
        "format = 'pisti-records'\nversion = 1\n[[records]]\nrules = {}\ndeals = []",
        "format = 'pisti-records'\nversion = 1\n[[records]]\nrules = {}\ndeals = [[]]",
        "format = 'pisti-records'\nversion = 1\n[records]\nrules = {}",
        "format = 'pisti-records'\nversion = 1\n[[records]]\nrules = {}\n[records.deals]\ndealer=0",
    ],
    ids=lambda text: text[:30] + text[-20:],
)
def test_what_is_no_file_of_records_is_one_sentence(text):
    with pytest.raises(ValueError, match=r"^(line \d+:|at its end:|text) .{10,400}$"):
        parse_records(text)


def test_a_file_that_cannot_be_read(tmp_path):
    file = tmp_path / "records.toml"
    file.write_bytes(b"format = 'pisti-records'\n\xff")
    with pytest.raises(ValueError, match=r"records\.toml, line 2: .*; expected UTF-8"):
        read_records(file)
    with pytest.raises(ValueError, match="it is not a plain file"):
        read_records(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_records(tmp_path / "none.toml")


def test_what_is_no_record_is_not_made():
    one = played(random.Random(5), Rules())
    deal = one.deals[0]
    for changes, told in [
        ({"rules": "standard"}, "rules is 'standard'; expected a Rules"),
        ({"agents": ("a",)}, "agents has 1 names; expected 2, one for each seat"),
        ({"agents": ("a\x1b[2J", "b")}, r"agents\[0\] has the character '\\x1b'; expected text"),
        ({"agents": ("a", "b\u2066")}, r"agents\[1\] has the character '\\u2066'; expected text"),
        ({"comments": ("\ud800",)}, r"comments\[0\] has the character '\\ud800'; expected text"),
        ({"deals": ()}, "deals is empty; expected at least one deal"),
        ({"deals": (deal, deal)}, r"deals\[1\] is one too many; expected a single deal"),
        ({"viewer": 2}, "viewer is 2; expected a seat from 0 to 1 or 'everyone'"),
        ({"viewer": True}, "viewer is True; expected"),
        ({"scores": (1, 0)}, r"scores is \(1, 0\); expected none, without a target"),
        ({"deals": (replace(deal, dealer=np.int64(1)),)}, r"deals\[0\]\.dealer is .*1.*; expected"),
        ({"deals": (replace(deal, deck=deal.deck[1:]),)}, r"deals\[0\]\.deck has 51 cards; exp"),
        ({"deals": (replace(deal, deck=(*deal.deck[1:], deal.deck[1])),)}, "more often than"),
        ({"deals": (replace(deal, comments=(Comment(49, "late"),)),)}, "plays from 0 to 48"),
    ]:
        with pytest.raises(ValueError, match=told):
            replace(one, **changes)


def test_a_match_must_follow_from_its_deals():
    whole = played(random.Random(6), Rules(target=31))
    assert len(whole.deals) == 2
    first, second = whole.deals[:2]
    for deals, scores, told in [
        ((first, replace(second, dealer=first.dealer)), (0, 0), r"deals\[1\]\.dealer is \d; exp"),
        ((*whole.deals, first), (0, 0), rf"deals\[{len(whole.deals)}\] is one too many"),
        ((first,), (31, 0), r"scores is \[31, 0\]; expected a match that is not decided"),
        ((replace(first, scores=(1, 1)),), (0, 0), r"deals\[0\]\.scores is \[1, 1\]; expected \["),
        ((replace(first, plays=first.plays[:-1]),), (0, 0), "expected none, since 1 plays are"),
        ((replace(first, scores=None),), (0, 0), r"deals\[0\]\.scores is missing; expected \["),
    ]:
        one = replace(whole, deals=deals, scores=scores, seed=None)
        with pytest.raises(ValueError, match=told):
            one.check()


def test_the_text_is_what_any_reader_of_toml_reads():
    one = played(random.Random(5), Rules(players=4, target=20), seed=2**64 - 1)
    document = tomllib.loads(records_text([one]))
    [record_] = document["records"]
    assert document["format"] == "pisti-records"
    assert record_["rules"] == {"players": 4, "target": 20}
    assert record_["date"] == DAY
    assert record_["seed"] == str(2**64 - 1)
    assert len(record_["deals"]) == len(one.deals)
    packets = record_["deals"][0]["plays"]
    assert len(packets) == 3
    assert numbers(packets[0].split()) == tuple(one.deals[0].plays[:16])
    assert number(record_["deals"][0]["deck"][0].split()[0]) == one.deals[0].deck[0]


def test_the_page_on_records_has_a_right_example():
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    whole, seen = parse_records(text)
    whole.check()
    seen.check()
    assert records_text([whole, seen]) == text
    [deal] = whole.deals
    begun = replace(deal, plays=deal.plays[:10], scores=None, comments=())
    assert replace(whole, deals=(begun,)).seen_by(0) == seen


def test_the_code_of_the_page_on_records_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    assert names["env"].view(1) == names["view"]
    assert names["mine"].viewer == 0
