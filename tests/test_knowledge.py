"""A seat knows all that a perfect memory would, and nothing else.

The twin of a deal is the same to one seat: all that it cannot know is dealt anew, and the same
cards are played. If the seat is shown any difference, something has leaked.
"""

import dataclasses

import numba
import numpy as np
import pytest
from places import (
    ENCODINGS,
    JACK,
    KNOWN_PLACES,
    Places,
    choose,
    counted,
    decode,
    is_jack,
    kind,
    random_moments,
    random_table,
    seeded,
)
from places import rank as rank_of

from pisti_env import Rules, pisti_v0
from pisti_env.knowledge import fill_in, known_of_history
from pisti_env.observation import encoder

INTERPRETED = bool(numba.config.DISABLE_JIT)
CASES = 8  # so that the work can be spread
TABLES = 4 if INTERPRETED else 40
MOMENTS = 3


def all_that_is_shown(env, seat):
    """Every observation, mask, info and view that a seat (None: a spectator) can get hold of."""
    shown = {"public view": env.view(None), "drawing": env.draw(None), "turn": env.agent_selection}
    # A match's earlier deals are in neither observation nor deck, so they need not be the same.
    shown["public view"] = dataclasses.replace(shown["public view"], last_deal=None)
    shown["ends"] = (env.terminations, env.truncations, env.agents)
    if seat is None:
        return shown
    agent = env.possible_agents[seat]
    shown["view"] = dataclasses.replace(env.view(seat), last_deal=None)
    shown["drawing of the seat"] = env.draw(seat)
    for encoding in ENCODINGS:
        for name, array in env.observe_as(agent, encoding).items():
            shown[f"{encoding} {name}"] = array.tobytes()
    for name, array in env.observe(agent).items():
        shown[f"own {name}"] = array.tobytes()
    shown["info"] = {name: value.tolist() for name, value in env.infos[agent].items()}
    return shown


def replay(env, places, deck, dealer, scores):
    """The same plays over another deck; returns all rewards on the way."""
    options = {"deck": deck, "dealer": dealer}
    if env.rules.target is not None:
        options["scores"] = scores
    env.reset(options=options)
    rewards = [dict(env.rewards)]
    for place in places.played:
        env.step(places.cards[place])
        rewards.append(dict(env.rewards))
    return rewards


def name_differences(one, other):
    return [name for name in one if one[name] != other[name]]


@pytest.mark.parametrize("case", range(CASES))
def test_a_seat_cannot_tell_a_deal_from_its_twin(case):
    """§8.4"""
    rng = seeded("twin", case)
    twins = different = 0
    for _ in range(TABLES):
        kwargs = {"rewards": rng.choice(["difference", "difference", "terminal", "win"])}
        for env, places in random_moments(rng, 1, MOMENTS, deals=2, **kwargs):
            scores = env.view(None).match_scores
            twin = pisti_v0.raw_env(rules=env.rules, **kwargs)
            rewards = replay(twin, places, env.deck, env.dealer, scores)
            for seat in rng.sample([None, *range(env.rules.players)], 2):
                shown = all_that_is_shown(env, seat)
                deck = places.twin(seat, rng)
                twin_rewards = replay(twin, places, deck, env.dealer, scores)
                note = (env.rules, env.deck, deck, env.dealer, env.view(seat))
                leaks = name_differences(shown, all_that_is_shown(twin, seat))
                assert not leaks, (seat, leaks, note)
                assert twin_rewards == rewards, (seat, note)
                twins += 1
                different += twin.state().tobytes() != env.state().tobytes()
    # Small packs leave little to deal anew.
    assert different > (0.2 if INTERPRETED else 0.6) * twins


@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("seen_by", ["capturer", "side", "all", "nobody"])
def test_twins_of_whole_packs(players, seen_by):
    """§8.4. Where the random rules rarely come: every packet of the games that people play."""
    rng = seeded("packs", players, seen_by)
    rules = Rules(players=players, starters_seen_by=seen_by)
    env, twin = pisti_v0.raw_env(rules=rules), pisti_v0.raw_env(rules=rules)
    twins = different = 0
    for deal in range(1 if INTERPRETED else 3):
        env.reset(seed=deal)
        places = Places(rules, env.deck, env.dealer)
        while not places.over:
            if rng.random() < 0.1:
                seat = rng.randrange(players)
                shown = all_that_is_shown(env, seat)
                replay(twin, places, places.twin(seat, rng), env.dealer, None)
                assert not name_differences(shown, all_that_is_shown(twin, seat)), (deal, seat)
                twins += 1
                different += twin.state().tobytes() != env.state().tobytes()
            card = choose(places, rng, 0.7)
            env.step(card)
            places.play(card)
    # All the same where all is known: in a last packet of two players.
    assert different > 0.5 * twins


def test_the_twin_test_can_fail():
    """True points and another seat's hand differ between twins: what shows them would be found."""
    rng = seeded("teeth")
    points = hands = 0
    for env, places in random_moments(rng, TABLES, MOMENTS):
        twin = pisti_v0.raw_env(rules=env.rules)
        seat = rng.randrange(env.rules.players)
        scores = env.view(None).match_scores
        replay(twin, places, places.twin(seat, rng), env.dealer, scores)
        points += twin.score() != env.score()
        other = (seat + 1) % env.rules.players
        hands += twin.view(other) != env.view(other)
    assert points > 0 and hands > TABLES


# From an observation alone, rebuild what the seat knows.


def turned(rows, seat):
    """Pieces per seat or side begin with the observer's own; put seat or side 0 first."""
    by = len(rows)
    return tuple(rows[(i - seat) % by] for i in range(by))


def seat_of(one_hot, seat):
    """The seat that a one-hot piece tells, None if it tells none."""
    assert sorted(one_hot)[-2:] in ([0, 1], [0, 0])
    return (one_hot.index(1) + seat) % len(one_hot) if any(one_hot) else None


def rebuild(pieces, rules, seat):
    """The view of a seat from the pieces of a "history" observation; in it are neither
    `last_deal` nor what follows from the rest."""
    players, sides = rules.players, rules.sides
    plays = [
        ((number - 1 + seat) % players, card - 1)
        for number, card in zip(pieces["history_seats"], pieces["history_cards"], strict=True)
        if number
    ]
    assert len(plays) == sum(1 for card in pieces["history_cards"] if card)
    starter = pieces["starter"][0] - 1
    pile, captures, last_capturer = [starter], [], None
    for player, card in plays:
        if pile and (is_jack(card) or rank_of(card) == rank_of(pile[-1])):
            captures.append((player, len(pile) + 1 + (0 if captures else 3)))
            pile, last_capturer = [], player
        else:
            pile.append(card)
    # What the plays tell must be what the counts tell.
    captured = turned(pieces["captured"], seat % sides)
    hand_sizes = turned(pieces["hand_sizes"], seat)
    over = not any(hand_sizes)
    if not over:
        assert captured == tuple(
            sum(cards for player, cards in captures if player % sides == side)
            for side in range(sides)
        )
        assert counted(pile, 52) == pieces["pile"]
        assert pieces["top"] == counted(pile[-1:], 52)
    assert seat_of(pieces["last_capturer"], seat) == last_capturer
    dealer = seat_of(pieces["dealer"], seat)
    assert all(
        player == (dealer + 1 + number) % players for number, (player, _) in enumerate(plays)
    )
    known_starters = tuple(card - 1 for card in pieces["starter_order"] if card)
    assert counted(known_starters, 52) == pieces["known_starters"]
    bottom_card = pieces.get("bottom_card_of_deal", [0])[0] - 1
    return {
        "hand": tuple(card for card in range(52) for _ in range(pieces["hand"][card])),
        "pile": () if over else tuple(pile),
        "pile_size": pieces["pile_size"][0],
        "stock_size": pieces["stock_size"][0],
        "hand_sizes": hand_sizes,
        "captured": captured,
        "public_points": turned(pieces["public_points"], seat % sides),
        "pistis": turned(pieces["pistis"], seat % sides),
        "jack_pistis": turned(pieces["jack_pistis"], seat % sides),
        "known_starters": known_starters,
        "shown_jacks": tuple(card - 1 for card in pieces["jack_order"] if card),
        "bottom_card": None if bottom_card < 0 else bottom_card,
        "last_capturer": last_capturer,
        "dealer": dealer,
        "to_play": None if over else (dealer + 1 + len(plays)) % players,
        "packet": pieces["packet"][0],
        "plays": tuple(plays),
        "match_scores": turned(pieces["match_scores"], seat % sides),
        "starter": starter,
    }


def test_rebuilding_covers_the_whole_view():
    env = pisti_v0.raw_env(observation="history")
    env.reset(seed=0)
    pieces = decode(env.observe("player_0")["observation"], "history", env.rules)
    fields = {field.name for field in dataclasses.fields(env.view(0))}
    assert fields - {"last_deal", "last_play", "rules", "viewer"} == set(
        rebuild(pieces, env.rules, 0)
    )


def compare_with_view(env, seat):
    """The "history" observation of a seat against its view."""
    observation = env.observe_as(f"player_{seat}", "history")["observation"]
    pieces = decode(observation, "history", env.rules)
    rebuilt = rebuild(pieces, env.rules, seat)
    view = env.view(seat)
    highest = (env.rules.target or 0) + env.rules.max_deal_points
    for name, value in rebuilt.items():
        expected = getattr(view, name)
        if name == "match_scores":
            expected = tuple(min(score, highest) for score in expected)
        assert value == expected, (name, value, expected, env.rules, env.deck, view)


@pytest.mark.parametrize("case", range(CASES))
def test_a_history_tells_all_that_the_seat_knows(case):
    """§8.1, §8.3"""
    rng = seeded("history", case)
    for env, _ in random_moments(rng, TABLES, MOMENTS, deals=2):
        compare_with_view(env, rng.randrange(env.rules.players))


@pytest.mark.parametrize("case", range(CASES // 2))
def test_a_table_filled_in_from_a_history_looks_the_same(case):
    """To whoever observed it, in every encoding."""
    rng = seeded("filled in", case)
    for env, _ in random_moments(rng, TABLES, 2, deals=2):
        rules, agent = env.rules, f"player_{rng.randrange(env.rules.players)}"
        if max(env.view(None).match_scores) > (rules.target or 0) + rules.max_deal_points:
            continue  # scores that the encoding clips
        history = env.observe_as(agent, "history")["observation"]
        games = fill_in(known_of_history(history, rules)).games
        for encoding in ENCODINGS:
            encodes = encoder(encoding, rules)
            observation = np.zeros((1, encodes.size), np.float32)
            encodes.encode(games, np.zeros(1, np.int64), np.zeros(1, np.int64), observation)
            expected = env.observe_as(agent, encoding)["observation"]
            assert observation[0].tobytes() == expected.tobytes(), (encoding, rules)


def play_out(env, rng):
    while not env.terminations[env.agent_selection]:
        hand = env.view(env.view(None).to_play).hand
        env.step(rng.choice(hand))


def test_a_history_tells_all_at_the_end_too():
    """§8.6"""
    rng = seeded("end")
    for _ in range(TABLES):
        env, _ = random_table(rng)
        if env.rules.target is not None:
            continue
        play_out(env, rng)
        for seat in range(env.rules.players):
            compare_with_view(env, seat)
            assert env.view(seat) == dataclasses.replace(env.view(None), viewer=seat, hand=())
        score = env.score()
        assert env.view(0).public_points == tuple(side["points"] for side in score)
        assert env.view(0).pile == () and env.view(0).pile_size == 0


@pytest.mark.parametrize("encoding", ["full", "kinds"])
@pytest.mark.parametrize("case", range(CASES // 2))
def test_what_full_and_kinds_tell(case, encoding):
    rng = seeded("full", case, encoding)
    classes = 15 if encoding == "kinds" else 52

    def class_of(card):
        return kind(card) if classes == 15 else card

    for env, places in random_moments(rng, TABLES, MOMENTS):
        rules, seat = env.rules, rng.randrange(env.rules.players)
        view, sides, players = env.view(seat), env.rules.sides, env.rules.players
        observation = env.observe_as(f"player_{seat}", encoding)["observation"]
        pieces = decode(observation, encoding, rules)
        known_starters = [places.cards[place] for place in range(3)]
        expected = {
            "hand": counted(view.hand, classes),
            "pile": counted(view.pile, classes),
            "top": counted(view.pile[-1:], classes),
            "played": counted([places.cards[3], *(card for _, card in view.plays)], classes),
            "known_starters": counted(
                known_starters if places.knows_starters(seat) else [], classes
            ),
        }
        for name, value in expected.items():
            assert pieces[name] == value, (name, rules, env.deck, view)
        for name in ("hand_sizes", "captured", "public_points", "pistis", "jack_pistis"):
            by = players if name == "hand_sizes" else sides
            assert turned(pieces[name], seat % by) == getattr(view, name), (name, rules, view)
        assert pieces["pile_size"] == [view.pile_size]
        assert pieces["stock_size"] == [view.stock_size]
        assert pieces["packet"] == [view.packet]
        assert seat_of(pieces["last_capturer"], seat) == view.last_capturer
        assert seat_of(pieces["dealer"], seat) == view.dealer
        assert pieces["target"] == [rules.target or 0]
        assert turned(pieces["match_scores"], seat % sides) == view.match_scores
        # The table when the packet was dealt, and who has played what since.
        first = (view.packet - 1) * rules.packet_size
        pile = pile_after(places, first)
        assert pieces["packet_pile"] == counted(pile, classes)
        assert pieces["packet_top"] == ([class_of(pile[-1]) + 1] if pile else [0])
        since = [0] * rules.packet_size
        for number, (player, card) in enumerate(view.plays[first:]):
            turn = number // players
            since[(player - seat) % players * rules.hand_size + turn] = class_of(card) + 1
        assert pieces["packet_plays"] == since


def pile_after(places, number_of_plays):
    """The face-up part of the pile after the first so many plays."""
    pile = [places.cards[3]]
    for place in places.played[:number_of_plays]:
        card = places.cards[place]
        if pile and (is_jack(card) or rank_of(card) == rank_of(pile[-1])):
            pile = []
        else:
            pile.append(card)
    return pile


def compare_parts(env, places, seat, encoding):
    """hand, played, known_starters, shown and bottom_card share out what the seat has seen."""
    rules, classes = env.rules, 15 if "kinds" in encoding else 52
    observation = env.observe_as(f"player_{seat}", encoding)["observation"]
    pieces = decode(observation, encoding, rules)
    parts = [0] * classes
    for name in ("hand", "played", "known_starters", "bottom_card"):
        for card, count in enumerate(pieces.get(name, [])):
            parts[card] += count
    for suit, count in enumerate(pieces["shown"]):
        parts[JACK + 13 * suit] += count
    known = [places.cards[place] for place in places.known(seat)]
    assert parts == counted(known, classes), (rules, env.deck, env.view(seat))
    exposed = [len(places.exposed & hand) for hand in places.hands]
    exposed[seat] = 0
    told = turned(pieces.get("exposed_in_hands", [0] * rules.players), seat)
    assert told == tuple(exposed), (rules, env.deck, env.view(seat))
    return any(exposed)


@pytest.mark.parametrize("encoding", ["full", "kinds", "history", "kinds_history"])
def test_every_card_seen_is_in_one_piece(encoding):
    rng = seeded("parts", encoding)
    for env, places in random_moments(rng, TABLES, MOMENTS):
        compare_parts(env, places, rng.randrange(env.rules.players), encoding)


@pytest.mark.parametrize("fields", KNOWN_PLACES, ids=str)
def test_cards_that_everyone_knows_are_followed(fields):
    """§8.5. From the stock into a hand and out of it again."""
    rng = seeded("followed", fields)
    in_hands = 0
    for _ in range(1 if INTERPRETED else 6):
        env, places = random_table(rng, fields=fields)
        while not places.over:
            seat = rng.randrange(env.rules.players)
            in_hands += compare_parts(env, places, seat, rng.choice(ENCODINGS[1:]))
            card = choose(places, rng, 0.5)
            env.step(card)
            places.play(card)
    assert INTERPRETED or in_hands


def test_nobody_is_shown_whose_starters_they_are():
    """§8.2. Points at the table do not move with the face-down starters, whoever may know them."""
    ordinary = ["3H", "4H", "5H", "6H"]
    rich = ["TD", "AC", "AD", "6H"]
    for seen_by in ("capturer", "side", "all", "nobody"):
        env = pisti_v0.raw_env(players=4, starters_seen_by=seen_by)
        rewards = []
        for starters in (ordinary, rich):
            rest = [c for c in names() if c not in (*ordinary, *rich, "6C", "6D")]
            rest += [c for c in (*ordinary, *rich) if c not in starters and c != "6H"]
            env.reset(options={"deck": [*starters, "6C", *rest[:3], *rest[3:], "6D"], "dealer": 3})
            env.step(5)  # the six of clubs takes the starters
            rewards.append(env.rewards)
            assert env.view(0).public_points == (0, 0)
            assert env.score()[0]["points"] == (0 if starters is ordinary else 5)
            knows = {"capturer": [0], "side": [0, 2], "all": [0, 1, 2, 3], "nobody": []}[seen_by]
            assert [seat for seat in range(4) if env.view(seat).known_starters] == knows
            assert bool(env.view(None).known_starters) == (seen_by == "all")
        assert rewards[0] == rewards[1]


def names():
    return [rank + suit for suit in "CDHS" for rank in "A23456789TJQK"]
