"""The rules of the game, one test per sentence; §4.2 is a paragraph of docs/rules.md.

Every deal is written as it is played: the four starters in dealing order (the last one is turned
up) and then the cards in the order in which they are played. Without other words there are two
players and seat 0 leads. The expected piles and points were worked out by hand.
"""

import random

import numba
import numpy as np
import pytest
from referee import card_points, complete, full_deck, number, numbers, text

from pisti_env import Rules, game, loops, pisti_v0
from pisti_env.cards import JACK, NO_CARD
from pisti_env.compiled_rules import STARTER_JACK_TO, compiled_rules

STANDARD = complete({})
CARD_WORTH = {number(card): card_points(STANDARD, card) for card in full_deck(STANDARD)}
INTERPRETED = bool(numba.config.DISABLE_JIT)


# Helpers


def deck_for(starters, line, last="", **fields):
    """A deck in which these cards can be played in this order; `last` lies at its very end."""
    rules = complete(fields)
    starters, line, last = starters.split(), line.split(), last.split()
    rest = full_deck(rules)
    for card in starters + line + last:
        rest.remove(card)
    packet = rules.players * rules.hand_size
    cards = line + rest + last
    plays = len(cards) // packet * packet
    deck = list(starters)
    for start in range(0, plays, packet):
        for seat in range(rules.players):  # counted from the leader
            deck += cards[start : start + packet][seat :: rules.players]
    return deck + cards[plays:]


def stacked(top, bottom="", **fields):
    """A deck with these cards on top and those at the bottom."""
    rest = full_deck(complete(fields))
    for card in f"{top} {bottom}".split():
        rest.remove(card)
    return top.split() + rest + bottom.split()


def deal(deck=None, dealer=None, scores=None, seed=None, rewards="difference", **fields):
    """An environment with this deck; seat 0 leads unless a dealer is given."""
    env = pisti_v0.raw_env(rules=fields, rewards=rewards)
    options = {"dealer": len(env.possible_agents) - 1 if dealer is None else dealer}
    if deck is not None:
        options["deck"] = deck.split() if isinstance(deck, str) else deck
    if scores is not None:
        options["scores"] = scores
    env.reset(seed=seed, options=options)
    return env


def play(env, line):
    for card in line.split():
        env.step(number(card))
    return env


def played(starters, line, last="", dealer=None, scores=None, rewards="difference", **fields):
    """An environment in which the line has been played."""
    deck = deck_for(starters, line, last, **fields)
    return play(deal(deck, dealer, scores, rewards=rewards, **fields), line)


def over(env):
    return all(env.terminations.values())


def of_score(env, entry):
    return [side[entry] for side in env.unwrapped.score()]


def points(env):
    return of_score(env, "points")


def ids(cards):
    return numbers(cards.split())


def pile(env):
    return " ".join(text(card) for card in env.unwrapped.view(None).pile)


def view(env, seat=None):
    return env.unwrapped.view(seat)


def mask(env, agent=None):
    return env.infos[agent or env.agent_selection]["action_mask"]


def legal(env):
    return mask(env).nonzero()[0].tolist()


def play_at_random(env, rng):
    while not over(env):
        env.step(rng.choice(legal(env)))


# Whole deals of a pack of A, 2 and J: 12 cards, four starters and one packet.
TINY = {"ranks": 3}
TINY_STARTERS = "AC AD AH 2C"

# Seat 0: JC takes the starters (five cards; three aces, 2C and the jack: 6 points).
# Seat 1: JD 2D JH (two jacks), AS JS (an ace and a jack), 2H 2S with the very last card, on a lone
# card: no pişti. Seven cards, so most: 4 + 3 = 7 points.
LAST_CARD_LINE = "JC JD 2D JH AS JS 2H 2S"

# Seat 0: 2D takes the starters, JC takes AS: seven cards, four aces, 2C, a jack, most: 10 points.
# Seat 1: JH takes JD 2H, and JS 2S, left on the table, go to seat 1 too: five cards, 3 points.
SWEPT_LINE = "2D AS JC JD 2H JH JS 2S"


# Players


@pytest.mark.parametrize(("players", "cards"), [(2, 52), (3, 52), (4, 52), (5, 104), (6, 104)])
def test_up_to_four_play_with_one_pack_and_more_with_two(players, cards):
    """§1.1"""
    env = deal(seed=1, players=players)
    assert env.possible_agents == [f"player_{seat}" for seat in range(players)]
    deck = list(env.unwrapped.deck)
    assert sorted(deck) == sorted(list(range(52)) * (cards // 52))


@pytest.mark.parametrize("players", [2, 3, 5, 6])
def test_each_plays_for_himself(players):
    """§1.3"""
    # Seat 1 takes the starters with JD on 7C: 3C 4C 5C 6C 7C JD.
    env = played("3C 4C 5C 6C", "7C JD", players=players)
    assert of_score(env, "cards") == [0, 6] + [0] * (players - 2)


def test_of_four_players_those_who_sit_opposite_pool_what_they_capture():
    """§1.2"""
    # Seat 1 takes 6 cards, seat 2 leaves 8C, seat 3 takes it: 2 more for the same side.
    env = played("3C 4C 5C 6C", "7C JD 8C 8D", players=4)
    assert of_score(env, "cards") == [0, 8]
    # A pişti (10) and a jack (1).
    assert points(env) == [0, 11]


def test_four_may_play_each_for_himself():
    """§1.3, §7.2"""
    env = played("3C 4C 5C 6C", "7C JD 8C 8D", players=4, partners=False)
    assert of_score(env, "cards") == [0, 6, 0, 2]
    assert points(env) == [0, 1, 0, 10]


def test_partners_share_captures_not_information():
    """§1.4"""
    env = played("3C 4C 5C 6C", "6D", players=4)
    assert view(env, 0).known_starters == ids("3C 4C 5C")
    assert view(env, 2).known_starters == ()


# Dealer


def test_the_first_dealer_is_drawn_at_random():
    """§2.1"""
    env = pisti_v0.raw_env(players=3)
    dealers = []
    for seed in range(300):
        env.reset(seed=seed)
        dealers.append(env.unwrapped.dealer)
    # 100 each in the mean, with a standard deviation of 8.
    assert all(60 < dealers.count(seat) < 140 for seat in range(3))


@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_then_the_next_seat_deals(players):
    """§2.1"""
    env = deal(dealer=1, seed=3, players=players, target=100_000)
    rng = random.Random(3)
    for deals in range(players + 1):
        assert len(env.unwrapped.deals) == deals
        assert env.unwrapped.dealer == view(env).dealer == (1 + deals) % players
        assert env.agent_selection == f"player_{(2 + deals) % players}"
        while len(env.unwrapped.deals) == deals:
            env.step(rng.choice(legal(env)))


@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_the_seat_after_the_dealer_leads_every_packet_and_play_goes_round(players):
    """§2.2"""
    rng = random.Random(players)
    for dealer in range(players):
        env = deal(dealer=dealer, seed=dealer, players=players)
        for count in range(4 * players * 2):
            assert env.agent_selection == f"player_{(dealer + 1 + count) % players}"
            assert view(env).packet == 1 + count // (4 * players)
            env.step(rng.choice(legal(env)))


# The deal


def test_three_starters_face_down_and_the_last_one_turned_up():
    """§2.3"""
    env = deal(stacked("3C 4D 5H 6S"))
    for seat in (None, 0, 1):
        assert view(env, seat).pile == (number("6S"),)
        assert view(env, seat).pile_size == 4
        assert view(env, seat).known_starters == view(env, seat).shown_jacks == ()


@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_then_four_cards_to_each_seat_starting_with_the_leader(players):
    """§2.4"""
    env = deal(dealer=0, seed=9, players=players)
    deck = list(env.unwrapped.deck)
    for i in range(players):
        seat = (1 + i) % players
        assert view(env, seat).hand == tuple(sorted(deck[4 + 4 * i : 8 + 4 * i]))
    assert view(env).hand_sizes == (4,) * players
    assert view(env).stock_size == len(deck) - 4 - 4 * players
    assert view(env).hand is None


# A jack turned up


def test_a_jack_turned_up_goes_among_the_face_down_starters_and_another_is_turned():
    """§2.5, §8.2"""
    env = deal(deck_for("3C 4C 5C JH", "5D"))
    for seat in (None, 0, 1):  # everyone has seen it
        assert view(env, seat).pile == (number("5C"),)
        assert view(env, seat).pile_size == 4
        assert view(env, seat).shown_jacks == (number("JH"),)
    # It is captured with the others: 3C 4C JH 5C and 5D, one point for the jack.
    play(env, "5D")
    assert of_score(env, "cards") == [5, 0]
    assert points(env) == [1, 0]
    assert view(env).public_points == (0, 0)  # it lies among the face-down starters
    assert view(env, 0).known_starters == ids("3C 4C JH")


def test_until_one_is_not_a_jack():
    """§2.5"""
    env = deal(stacked("3C 4C JD JH"))
    assert pile(env) == "4C" and view(env).shown_jacks == ids("JH JD")
    env = deal(stacked("3C JS JD JH"))
    assert pile(env) == "3C" and view(env).shown_jacks == ids("JH JD JS")
    # A jack below is neither turned nor seen.
    env = deal(stacked("JS JD 3C JH"))
    assert pile(env) == "3C" and view(env).shown_jacks == ids("JH")


def test_four_jacks_are_no_deal():
    """§2.6"""
    with pytest.raises(ValueError, match="deck"):
        deal(stacked("JC JD JH JS"))


def test_four_jacks_are_dealt_again_by_the_same_dealer():
    """§2.6"""
    # Four aces and four jacks: one deck in 70 has four jacks on top.
    fields = {"ranks": 2, "hand_size": 2, "target": 100_000}
    env = deal(dealer=0, seed=1, **fields)
    for deals in range(40 if INTERPRETED else 700):
        assert not all(text(card)[0] == "J" for card in list(env.unwrapped.deck)[:4])
        assert env.unwrapped.dealer == deals % 2
        for _ in range(4):
            env.step(legal(env)[0])


# A turn


def test_exactly_one_card_is_played_face_up():
    """§3.1"""
    env = deal(deck_for("3C 4C 5C 6C", "7C 8C"))
    play(env, "7C")
    assert view(env).plays == ((0, number("7C")),)
    assert view(env).hand_sizes == (3, 4)
    assert number("7C") not in view(env, 0).hand
    assert env.agent_selection == "player_1"


def test_any_card_of_the_hand_may_be_played_and_no_other():
    """§3.2"""
    # Seat 0 holds a card that captures, 6D, and need not play it.
    deck = deck_for("3C 4C 5C 6C", "6D 7C 8C 9C TC QC KC 2D")
    env = deal(deck)
    assert legal(env) == sorted(ids("6D 8C TC KC"))
    assert mask(env, "player_1").sum() == 0
    for card in ("8C", "TC", "KC"):
        env = play(deal(deck), card)
        assert pile(env) == f"6C {card}"
    env = deal(deck)
    with pytest.raises(ValueError, match="7C"):
        env.step(number("7C"))
    assert legal(env) == sorted(ids("6D 8C TC KC"))
    assert view(env).plays == ()


def test_equal_rank_captures_the_whole_pile_with_the_starters_under_it():
    """§3.3"""
    # 3C 4C 5C under 6C, 8C on top, 8D.
    env = played("3C 4C 5C 6C", "8C 8D")
    assert of_score(env, "cards") == [0, 6]
    assert view(env).captured == (0, 6)
    assert view(env).pile == () and view(env).pile_size == 0
    assert view(env).last_capturer == 1


def test_only_the_top_card_counts():
    """§3.4"""
    env = played("3C 4C 5C 6C", "8C 6D")
    assert pile(env) == "6C 8C 6D"
    assert view(env).pile_size == 6
    assert of_score(env, "cards") == [0, 0]


@pytest.mark.parametrize("top", ["9C", "AS", "TD", "KH"])
def test_a_jack_captures_whatever_the_top_card_is(top):
    """§3.5"""
    env = played("3C 4C 5C 6C", f"{top} JD")
    assert of_score(env, "cards") == [0, 6]
    assert view(env).pile_size == 0


def test_a_jack_captures_the_starters_alone_too():
    """§3.5"""
    env = played("3C 4C 5C 6C", "JD")
    assert of_score(env, "cards") == [5, 0]


def test_a_jack_on_an_empty_table_stays_there_alone():
    """§3.6"""
    env = deal(deck_for("3C 4C 5C 6C", "6D JC 9C"))
    play(env, "6D JC")
    assert pile(env) == "JC" and view(env).pile_size == 1
    assert of_score(env, "cards") == [5, 0]
    play(env, "9C")  # another rank lies on it as on any other card
    assert pile(env) == "JC 9C" and view(env).pile_size == 2


def test_otherwise_the_card_is_the_new_top_card():
    """§3.7"""
    env = played("3C 4C 5C 6C", "7C 8C 9C TD")
    assert pile(env) == "6C 7C 8C 9C TD"
    assert view(env).pile_size == 8


def test_a_capture_gives_no_extra_turn():
    """§3.8"""
    env = deal(deck_for("3C 4C 5C 6C", "6D 7C"))
    play(env, "6D")
    assert env.agent_selection == "player_1"
    play(env, "7C")
    assert env.agent_selection == "player_0"


# Pişti


def test_pisti_is_capturing_a_lone_card_by_equal_rank():
    """§4.1"""
    # 6D takes the starters; 9D takes the lone 9C.
    env = played("3C 4C 5C 6C", "6D 9C 9D")
    assert points(env) == [10, 0]
    assert of_score(env, "pistis") == [1, 0]
    assert of_score(env, "jack_pistis") == [0, 0]
    assert of_score(env, "cards") == [7, 0]


def test_a_pile_of_two_is_no_pisti():
    """§4.4"""
    env = played("3C 4C 5C 6C", "6D 9C 8D 8C")
    assert points(env) == [0, 0]
    assert of_score(env, "pistis") == [0, 0]
    assert of_score(env, "cards") == [5, 3]


def test_jack_on_a_lone_jack_is_worth_twenty():
    """§4.2"""
    # And a point for each of the two jacks.
    env = played("3C 4C 5C 6C", "6D JC JD")
    assert points(env) == [22, 0]
    assert of_score(env, "pistis") == [0, 0]
    assert of_score(env, "jack_pistis") == [1, 0]


def test_a_jack_taking_a_lone_card_of_another_rank_is_a_plain_capture():
    """§4.3"""
    env = played("3C 4C 5C 6C", "6D 9C JD")
    assert points(env) == [1, 0]  # the jack
    assert of_score(env, "pistis") == of_score(env, "jack_pistis") == [0, 0]
    assert of_score(env, "cards") == [7, 0]


def test_a_pisti_counts_for_the_side_that_captures():
    """§4.1"""
    # Seat 0: 6D takes the starters, 9D the lone 9C. Seat 1: 9H takes 8C 9S, 7D the lone 7C.
    env = played("3C 4C 5C 6C", "6D 9C 9D 8C 9S 9H 7C 7D")
    assert of_score(env, "pistis") == [1, 1]
    assert points(env) == [10, 10]


# Never a pişti


@pytest.mark.parametrize("starters", ["3C 4C 5C 6C", "3C 4C 6C JS", "6C JC JS JH"])
def test_the_capture_of_the_starters_is_no_pisti(starters):
    """§4.4"""
    # Whatever lies face down: jacks that were shown count as cards of the pile too.
    jacks = starters.count("J")
    env = played(starters, "6D")
    assert of_score(env, "cards") == [5, 0]
    assert points(env) == [jacks, 0]
    assert of_score(env, "pistis") == [0, 0]


def test_the_very_last_card_of_the_deal_scores_no_pisti():
    """§4.5"""
    env = played(TINY_STARTERS, LAST_CARD_LINE, **TINY)
    assert over(env)
    assert of_score(env, "pistis") == [0, 0]
    assert of_score(env, "cards") == [5, 7]  # it captures all the same
    assert points(env) == [6, 7]
    assert view(env).last_capturer == 1


def test_the_last_card_but_one_does():
    """§4.5"""
    # JC takes the starters, JD takes 2D AS 2H, and the seventh of eight plays, JS, the lone JH.
    # 2S, left on the table, goes to seat 0 too, which has all: 4 + 2 + 4 + 20 + 3.
    env = played(TINY_STARTERS, "JC 2D AS 2H JD JH JS 2S", **TINY)
    assert over(env)
    assert of_score(env, "jack_pistis") == [1, 0]
    assert points(env) == [33, 0]


# Packets


def test_when_every_hand_is_empty_four_more_to_each_and_none_to_the_middle():
    """§2.7"""
    env = played("3C 4C 5C 6C", "7C 8C 9C TC QC KC 2D 3D")
    assert view(env).hand_sizes == (4, 4)
    assert view(env).packet == 2
    assert view(env).stock_size == 52 - 4 - 16
    # The pile stays as it is, in its order.
    assert pile(env) == "6C 7C 8C 9C TC QC KC 2D 3D"
    assert view(env).pile_size == 12


def test_no_card_is_dealt_before_every_hand_is_empty():
    """§2.7"""
    env = played("3C 4C 5C 6C", "7C 8C 9C TC QC KC 2D")
    assert view(env).hand_sizes == (0, 1)
    assert view(env).packet == 1
    assert view(env).stock_size == 52 - 4 - 8


def test_later_packets_go_to_the_leader_first_too():
    """§2.7"""
    env = deal(dealer=1, seed=4, players=3)
    deck = list(env.unwrapped.deck)
    for _ in range(12):
        env.step(legal(env)[0])
    assert view(env, 2).hand == tuple(sorted(deck[16:20]))
    assert view(env, 0).hand == tuple(sorted(deck[20:24]))
    assert view(env, 1).hand == tuple(sorted(deck[24:28]))


PACKETS = [
    # players, packs, packets, cards left over
    (2, 1, 6, 0), (3, 1, 4, 0), (4, 1, 3, 0), (5, 1, 2, 8), (6, 1, 2, 0),
    (2, 2, 12, 4), (3, 2, 8, 4), (4, 2, 6, 4), (5, 2, 5, 0), (6, 2, 4, 4),
]  # fmt: skip


@pytest.mark.parametrize(("players", "packs", "packets", "left_over"), PACKETS)
def test_packets_and_cards_left_over(players, packs, packets, left_over):
    """§2.8, §5.1"""
    env = deal(seed=players, players=players, packs=packs)
    stock = []
    while not over(env):
        stock.append(view(env).stock_size)
        env.step(legal(env)[0])
    assert view(env).packet == packets
    assert len(view(env).plays) == packets * players * 4
    assert stock[-1] == left_over
    assert sum(of_score(env, "cards")) == 52 * packs


# The end of the deal


def test_what_lies_on_the_table_goes_to_the_last_capturer():
    """§5.2"""
    deck = deck_for(TINY_STARTERS, SWEPT_LINE, **TINY)
    *first, last = SWEPT_LINE.split()
    env = play(deal(deck, **TINY), " ".join(first))
    # Seat 0 played last and left its jack there, but seat 1 is the last capturer.
    assert pile(env) == "JS" and view(env).last_capturer == 1
    assert of_score(env, "cards") == [7, 3]
    assert points(env) == [7, 2]
    play(env, last)
    assert over(env)
    assert pile(env) == "" and view(env).pile_size == 0
    assert of_score(env, "cards") == [7, 5]
    assert points(env) == [10, 3]
    assert view(env).last_capturer == 1


def test_a_seat_stays_last_capturer_until_another_seat_captures():
    """§5.2"""
    env = deal(deck_for(TINY_STARTERS, SWEPT_LINE, **TINY), **TINY)
    seen = [view(env).last_capturer]
    for card in SWEPT_LINE.split():
        seen.append(view(play(env, card)).last_capturer)
    # 2D and JC capture for seat 0, JH for seat 1; JS stays on the table.
    assert seen == [None, 0, 0, 0, 0, 0, 1, 1, 1]


# 12 cards, A 2 3 J in three suits, hands of three: one packet of six, two cards left over.
SMALL = {"ranks": 4, "copies": 3, "hand_size": 3}
# Seat 0: 2D takes the starters AC AD AH 2C, JC takes 3C: seven cards, 3 + 2 + 1 and 3 for most.
# Seat 1: JD takes 2H 3D with the last card played: three cards, a jack.
SMALL_LINE = "2D 3C JC 2H 3D JD"


def test_cards_left_over_go_to_the_last_capturer_even_on_an_empty_table():
    """§5.3"""
    env = played(TINY_STARTERS, SMALL_LINE, last="3H JH", **SMALL)
    assert over(env)
    assert of_score(env, "cards") == [7, 5]
    assert points(env) == [9, 2]
    assert view(env).stock_size == 0


def test_cards_left_over_may_be_burnt():
    """§7.16"""
    env = played(TINY_STARTERS, SMALL_LINE, last="3H JH", leftovers="burn", **SMALL)
    assert over(env)
    assert of_score(env, "cards") == [7, 3]
    assert points(env) == [9, 1]


@pytest.mark.parametrize(("leftovers", "cards"), [("sweep", [6, 6]), ("burn", [4, 6])])
def test_burning_leaves_the_table_to_the_last_capturer(leftovers, cards):
    """§7.16"""
    # Seat 1: 3D takes the starters and 3C, six cards. Seat 0: JC takes 2D 3H, and 2H, left on
    # the table, is swept: four cards, and the two left over if they are swept too.
    env = played(TINY_STARTERS, "3C 3D 2D 3H JC 2H", last="JD JH", leftovers=leftovers, **SMALL)
    assert of_score(env, "cards") == cards


def test_taking_what_is_left_is_never_a_pisti():
    """§5.4"""
    # Nine cards, one left over. 2H takes the starters, JD the lone JC (20) for seat 0. JH lies
    # there alone, and AH, left over, is added: seat 0 gets all nine cards. Three aces, three
    # jacks, 2C, one jack pişti, most.
    fields = {"ranks": 3, "copies": 3, "hand_size": 2}
    fields |= {"last_card_pisti": True, "jack_takes_single_points": 20}
    env = played("AC AD 2C 2D", "2H JC JD JH", last="AH", **fields)
    assert over(env)
    assert of_score(env, "cards") == [9, 0]
    assert of_score(env, "jack_pistis") == [1, 0]
    assert points(env) == [3 + 3 + 2 + 20 + 3, 0]


# One suit, so that nothing but the jack captures, and the jack lies face down.
ONE_SUIT = {"copies": 1}
ONE_SUIT_LINE = "4C 5C 6C 7C 8C 9C TC QC"


@pytest.mark.parametrize("dealer", [0, 1])
@pytest.mark.parametrize(("leftovers", "cards"), [("sweep", 13), ("burn", 12)])
def test_if_nobody_has_captured_the_side_of_the_dealer_takes_all(dealer, leftovers, cards):
    """§5.5"""
    fields = {**ONE_SUIT, "leftovers": leftovers}
    env = played("AC 2C JC 3C", ONE_SUIT_LINE, last="KC", dealer=dealer, **fields)
    assert over(env)
    assert of_score(env, "cards")[dealer] == cards
    # An ace, a jack, 2C and most.
    assert points(env)[dealer] == 1 + 1 + 2 + 3
    assert of_score(env, "cards")[1 - dealer] == points(env)[1 - dealer] == 0
    assert view(env).last_capturer is None


def test_if_nobody_has_captured_the_partner_of_the_dealer_shares_it():
    """§5.5"""
    fields = {**ONE_SUIT, "players": 4, "hand_size": 2}
    env = played("AC 2C JC 3C", ONE_SUIT_LINE, last="KC", dealer=2, **fields)
    assert over(env)
    assert of_score(env, "cards") == [13, 0]
    assert points(env) == [7, 0]


def test_five_players_with_one_pack_may_capture_nothing():
    """§5.5, §9.5"""
    # 12 ranks without the jack, suit after suit: no two neighbours are equal. Four jacks and four
    # other cards are left over.
    ranks = "A23456789TQK"
    line = [rank + suit for suit in "CDHS" for rank in ranks]
    starters, line, last = line[:4], line[4:44], [*line[44:], "JC", "JD", "JH", "JS"]
    words = [" ".join(cards) for cards in (starters, line, last)]
    env = played(*words, players=5, packs=1)
    assert over(env)
    assert view(env).last_capturer is None
    assert of_score(env, "cards") == [0, 0, 0, 0, 52]  # seat 4 dealt
    assert points(env) == [0, 0, 0, 0, 13 + 3]


# The score of a deal


CARD_POINTS = [
    *[(card, "ace_points", 1) for card in ("AC", "AD", "AH", "AS")],
    *[(card, "jack_points", 1) for card in ("JC", "JD", "JH", "JS")],
    ("2C", "two_of_clubs_points", 2),
    ("TD", "ten_of_diamonds_points", 3),
]


@pytest.mark.parametrize(("card", "field", "worth"), CARD_POINTS)
def test_card_points(card, field, worth):
    """§5.6, §7.5"""
    starters = f"3C {card} 5C 6C"
    assert points(played(starters, "6D")) == [worth, 0]
    assert points(played(starters, "6D", **{field: 7})) == [7, 0]
    assert points(played(starters, "6D", **{field: 0})) == [0, 0]


@pytest.mark.parametrize("card", ["AC", "AS", "2C", "TD"])
def test_a_card_is_worth_as_much_when_it_lies_open(card):
    """§5.6"""
    worth = {"AC": 1, "AS": 1, "2C": 2, "TD": 3}[card]
    assert points(played("3C 4C 5C 6C", f"{card} 8C 8D")) == [worth, 0]


@pytest.mark.parametrize("card", ["2D", "2H", "2S", "TC", "TH", "TS", "KD", "QC", "9H"])
def test_other_cards_are_worth_nothing(card):
    """§5.6"""
    assert points(played(f"3C {card} 5C 6C", "6D")) == [0, 0]


# A whole deal of 52 cards. JC JD 3C lie face down, 4C is turned up.
WORKED_STARTERS = "JC JD 3C 4C"
WORKED_LINE = " ".join(
    [
        "5C 6C 7C 8C 8D",  # seat 0 takes 9 cards: two jacks
        "9C 9D",  # seat 0: pişti, 2 cards
        "AC KC KD",  # seat 1: 3 cards, an ace
        "TD AD 2D AH 3D 4D 5D 6D 7D TC QC 2H 3H 4H 5H 6H 7H 8H JH",  # seat 0: 19 cards
        "2C QD 9H TH QH KH AS 2S 3S 4S 5S 6S 7S 8S 9S TS QS KS JS",  # seat 1: 19 cards
    ]
)


def test_worked_score():
    """§5.8"""
    # Seat 0: 30 cards, three jacks, two aces, TD, one pişti: 3 + 2 + 3 + 3 + 10.
    # Seat 1: 22 cards, one jack, two aces, 2C: 1 + 2 + 2.
    env = played(WORKED_STARTERS, WORKED_LINE)
    assert over(env)
    assert of_score(env, "cards") == [30, 22]
    assert of_score(env, "pistis") == [1, 0]
    assert points(env) == [21, 5]


# A tie: JC takes AC AD AH 2C AS for seat 1 (six cards: 4 + 2 + 1). Seat 0: JH takes JD 2D, JS
# takes 2H, and 2S, left on the table, is the sixth card: three jacks.
TIE_LINE = "AS JC JD 2D JH 2H JS 2S"


@pytest.mark.parametrize("majority", ["most", "more_than_half", 1, 6])
def test_nobody_gets_the_majority_on_a_tie(majority):
    """§5.7, §7.10"""
    env = played(TINY_STARTERS, TIE_LINE, majority=majority, **TINY)
    assert over(env)
    assert of_score(env, "cards") == [6, 6]
    assert points(env) == [3, 7]


def test_the_sweep_counts_for_the_majority():
    """§5.4, §5.7"""
    # Before 2S is swept, seat 1 has six cards against five.
    deck = deck_for(TINY_STARTERS, TIE_LINE, **TINY)
    env = play(deal(deck, **TINY), TIE_LINE[:-3])
    assert of_score(env, "cards") == [5, 6]
    assert points(env) == [3, 7]  # and no majority is paid before the end


# The match. In every deal of SWEPT_LINE seat 0 makes 10 points and seat 1 makes 3.


def match(scores, **fields):
    """The first deal of a match with target 151, which seat 0 wins by 10 to 3."""
    fields = {**TINY, "target": 151, **fields}
    return played(TINY_STARTERS, SWEPT_LINE, scores=scores, rewards="win", **fields)


def winners(env):
    """Rewards of the last step if the match is over (split evenly if several win)."""
    return [env.rewards[agent] for agent in env.possible_agents] if over(env) else None


def test_deals_are_added_up_until_a_side_has_the_target():
    """§6.2"""
    env = match([140, 0])  # 150
    assert winners(env) is None
    assert of_score(env, "match_points") == [150, 3]
    assert len(env.unwrapped.deals) == 1
    assert view(env).match_scores == (150, 3)
    assert points(env) == [0, 0] and view(env).plays == ()  # the next deal
    env = match([141, 0])  # 151
    assert winners(env) == [1, -1]
    assert of_score(env, "match_points") == [151, 3]


def test_short_match():
    """§6.2"""
    assert winners(match([90, 0], target=101)) is None
    assert winners(match([91, 0], target=101)) == [1, -1]


def test_the_target_counts_at_the_end_of_a_deal():
    """§6.2"""
    # Seat 0 has 150 and takes the starters at once, but seat 1 may still overtake it.
    fields = {**TINY, "target": 151}
    env = deal(deck_for(TINY_STARTERS, SWEPT_LINE, **TINY), scores=[150, 149], **fields)
    play(env, SWEPT_LINE[:-3])
    assert points(env) == [7, 2] and not any(env.terminations.values())
    assert of_score(env, "match_points") == [150, 149]


def test_if_several_have_the_target_the_highest_total_wins():
    """§6.3"""
    assert winners(match([145, 150])) == [1, -1]  # 155 against 153
    assert winners(match([142, 150])) == [-1, 1]  # 152 against 153
    assert winners(match([0, 150])) == [-1, 1]  # 10 against 153


def test_a_shared_highest_total_is_followed_by_another_deal():
    """§6.4"""
    env = match([143, 150])  # 153 each
    assert winners(env) is None
    assert env.unwrapped.dealer == 0  # seat 1 dealt
    assert winners(match([133, 140])) is None  # 143 each, below the target


def test_or_the_sides_that_tie_share_the_win():
    """§7.4"""
    assert winners(match([143, 150], tie_at_target="shared")) == [0, 0]
    # Nobody shares below the target.
    assert winners(match([133, 140], tie_at_target="shared")) is None


def test_win_by():
    """§7.3"""
    # 151 against 150: alone past the target, but one point ahead.
    assert winners(match([141, 147], win_by=2)) is None
    assert winners(match([141, 147], win_by=1)) == [1, -1]
    # 151 against 149.
    assert winners(match([141, 146], win_by=2)) == [1, -1]
    assert winners(match([141, 146], win_by=3)) is None


def test_an_exact_tie_follows_tie_at_target_whatever_win_by():
    """§7.4"""
    assert winners(match([143, 150], win_by=2, tie_at_target="shared")) == [0, 0]
    assert winners(match([143, 150], win_by=2, tie_at_target="extra_deal")) is None
    # A lead that is too small is no tie: 154 against 153.
    assert winners(match([144, 150], win_by=2, tie_at_target="shared")) is None


def test_scores_to_start_with():
    """§6.5"""
    for scores in ([151, 0], [0, 160], [152, 151]):  # decided
        with pytest.raises(ValueError, match="scores"):
            match(scores)
    with pytest.raises(ValueError, match="scores"):  # shared
        match([160, 160], tie_at_target="shared")
    assert of_score(match([160, 160]), "match_points") == [170, 163]
    assert of_score(match([152, 151], win_by=20), "match_points") == [162, 154]
    for scores in ([-1, 0], [0], [0, 0, 0], [0.5, 0]):
        with pytest.raises(ValueError, match="scores"):
            match(scores)
    with pytest.raises(ValueError, match="scores"):
        match([0, 0], target=None)


def test_without_a_target_most_points_in_the_deal_win():
    """§6.1"""
    assert winners(match(None, target=None)) == [1, -1]
    # The options of a match have no say.
    assert winners(match(None, target=None, win_by=50)) == [1, -1]
    # With jacks at 3 and no majority: four aces, 2C and a jack are 9 points, three jacks too.
    equal = {"target": None, "jack_points": 3, "majority_points": 0}
    for tie_at_target in ("extra_deal", "shared"):
        env = match(None, tie_at_target=tie_at_target, **equal)
        assert points(env) == [9, 9]
        assert winners(env) == [0, 0]


# Three players, 16 cards of A 2 3 J. Seat 0: 2D takes AC AD AH 2C, JC takes 3H: seven cards,
# 3 + 2 + 1. Seat 1: pişti with 2S on 2H, JH takes 3S, JS, left on the table, is swept: five cards,
# 10 + 2. Seat 2: pişti with 3D on 3C, JD takes AS: four cards, 10 + 2.
THREE = {"players": 3, "ranks": 4}
THREE_LINE = "2D 3C 3D 2H 2S 3H JC AS JD 3S JH JS"


def test_several_with_most_points_share_the_win_of_a_deal():
    """§6.1"""
    env = played(TINY_STARTERS, THREE_LINE, rewards="win", **THREE)
    assert of_score(env, "cards") == [7, 5, 4]
    assert points(env) == [6 + 3, 12, 12]
    # Half a win each; less the mean of the others: 0.5 − (0 + 0.5) / 2, and 0 − 0.5.
    assert winners(env) == [-0.5, 0.25, 0.25]


def test_of_three_sides_the_highest_wins_though_others_have_the_target_and_tie():
    """§6.3, §7.4"""
    fields = {**THREE, "target": 20}
    # 28, 22, 22.
    env = played(TINY_STARTERS, THREE_LINE, scores=[19, 10, 10], rewards="win", **fields)
    assert winners(env) == [1, -0.5, -0.5]
    # 27, 27, 22: the two share.
    fields["tie_at_target"] = "shared"
    env = played(TINY_STARTERS, THREE_LINE, scores=[18, 15, 10], rewards="win", **fields)
    assert winners(env) == [0.25, 0.25, -0.5]


# Options: points


def test_points_of_a_pisti():
    """§7.6"""
    line = "6D 9C 9D"
    assert points(played("3C 4C 5C 6C", line, pisti_points=5)) == [5, 0]
    assert points(played("3C 4C 5C 6C", line, pisti_points=0)) == [0, 0]
    assert of_score(played("3C 4C 5C 6C", line, pisti_points=0), "pistis") == [1, 0]
    assert points(played("3C 4C 5C 6C", line, jack_pisti_points=7)) == [10, 0]


@pytest.mark.parametrize("worth", [0, 10, 30])
def test_points_of_a_jack_pisti(worth):
    """§7.6"""
    env = played("3C 4C 5C 6C", "6D JC JD", jack_pisti_points=worth)
    assert points(env) == [worth + 2, 0]


def test_a_jack_taking_a_lone_card_may_score():
    """§7.7"""
    env = played("3C 4C 5C 6C", "6D 9C JD", jack_takes_single_points=20)
    assert points(env) == [20 + 1, 0]
    # It is neither by equal rank nor jack on jack.
    assert of_score(env, "pistis") == of_score(env, "jack_pistis") == [0, 0]
    # A jack on a jack is what it was.
    env = played("3C 4C 5C 6C", "6D JC JD", jack_takes_single_points=7)
    assert points(env) == [20 + 2, 0]
    # A pile of two is no lone card, nor are the starters.
    assert points(played("3C 4C 5C 6C", "6D 9C 8D JD", jack_takes_single_points=20)) == [0, 1]
    assert points(played("3C 4C 5C 6C", "JD", jack_takes_single_points=20)) == [1, 0]


def test_ten_of_diamonds_bonus():
    """§7.8"""
    # Card points of TD 3, a pişti 10.
    for line in ("6D TC TD", "6D TD TC"):
        assert points(played("3C 4C 5C 6C", line)) == [13, 0]
        assert points(played("3C 4C 5C 6C", line, ten_of_diamonds_pisti_bonus=3)) == [16, 0]
    # Another ten, another capture: none.
    for line, worth in (("6D TC TH", 10), ("6D TC 9C TD", 0), ("7C TC TD", 3)):
        env = played("3C 4C 5C 6C", line, ten_of_diamonds_pisti_bonus=3)
        assert max(points(env)) == worth
    # A jack taking the ten is no pişti by rank: 20, the jack and TD.
    fields = {"jack_takes_single_points": 20, "ten_of_diamonds_pisti_bonus": 3}
    assert points(played("3C 4C 5C 6C", "6D TD JC", **fields)) == [24, 0]


def test_ten_of_diamonds_bonus_comes_once_even_if_both_cards_are_it():
    """§7.8"""
    fields = {"packs": 2, "ten_of_diamonds_pisti_bonus": 3}
    assert points(played("3C 4C 5C 6C", "6D TD TD", **fields)) == [10 + 3 + 6, 0]


def test_last_card_pisti():
    """§7.9"""
    env = played(TINY_STARTERS, LAST_CARD_LINE, last_card_pisti=True, **TINY)
    assert of_score(env, "pistis") == [0, 1]
    assert points(env) == [6, 17]


def test_last_card_pisti_of_a_jack():
    """§7.7, §7.9"""
    # Seat 1: JD AS JH, 2S takes the lone 2D (pişti), and JS the lone 2H with the last card: seven
    # cards, an ace, three jacks, 10 and most: 17.
    line = "JC JD AS JH 2D 2S 2H JS"
    assert points(played(TINY_STARTERS, line, **TINY)) == [6, 17]
    loose = {**TINY, "jack_takes_single_points": 20}
    assert points(played(TINY_STARTERS, line, **loose)) == [6, 17]
    assert points(played(TINY_STARTERS, line, last_card_pisti=True, **loose)) == [6, 37]
    # The strict rule: a jack on a lone card of another rank is no pişti anyway.
    assert points(played(TINY_STARTERS, line, last_card_pisti=True, **TINY)) == [6, 17]


def test_the_last_card_of_a_packet_is_not_the_last_of_the_deal():
    """§4.5"""
    # The eighth play takes a lone card, and a second packet comes.
    env = played("3C 4C 5C 6C", "6D 9C JC 8C 7C 7D 5D 5H")
    assert view(env).packet == 2
    # Seat 1: 7D takes 8C 7C; 5H the lone 5D.
    assert of_score(env, "pistis") == [0, 1]


# Options: the majority


def test_majority_points():
    """§7.10"""
    # Without them 6 and 4, see LAST_CARD_LINE.
    for worth in (0, 3, 4):
        env = played(TINY_STARTERS, LAST_CARD_LINE, majority_points=worth, **TINY)
        assert points(env) == [6, 4 + worth]


@pytest.mark.parametrize(
    ("majority", "given"),
    [("most", True), ("more_than_half", True), (7, True), (8, False), (1, True), (12, False)],
)
def test_majority_of_seven_cards_in_twelve(majority, given):
    """§7.10"""
    env = played(TINY_STARTERS, LAST_CARD_LINE, majority=majority, **TINY)
    assert points(env) == [6, 4 + 3 * given]


@pytest.mark.parametrize(
    ("majority", "given"),
    [("most", True), ("more_than_half", False), (7, True), (8, False), (4, True), (1, True)],
)
def test_majority_of_seven_cards_in_sixteen_only_for_the_one_side_with_most(majority, given):
    """§7.10, §9.6"""
    # Seats 1 and 2 have five and four cards, which is enough for 4 and 1, but not most.
    env = played(TINY_STARTERS, THREE_LINE, majority=majority, **THREE)
    assert points(env) == [6 + 3 * given, 12, 12]


@pytest.mark.parametrize(
    ("majority", "given"), [("most", True), ("more_than_half", False), (6, True), (7, False)]
)
def test_burnt_cards_count_among_those_to_have_half_of(majority, given):
    """§7.10"""
    # Seat 1: 3D takes the starters and 3C, six of twelve cards, more than half of the ten that are
    # captured: 3 + 2. Seat 0: JC takes 2D 3H, and 2H is swept: four cards, a jack.
    fields = {**SMALL, "leftovers": "burn", "majority": majority}
    env = played(TINY_STARTERS, "3C 3D 2D 3H JC 2H", last="JD JH", **fields)
    assert of_score(env, "cards") == [4, 6]
    assert points(env) == [1, 5 + 3 * given]


# Options: a jack turned up


def steps(env, count):
    for _ in range(count):
        env.step(legal(env)[0])


def test_a_jack_may_go_under_the_stock():
    """§7.11"""
    # The stock's top card, 7C, takes its place, and the dealer gets JH as the very last card.
    deck = stacked("3C 4C 5C JH 7C")
    env = deal(deck, starter_jack="stock_bottom")
    for seat in (None, 0, 1):
        assert view(env, seat).pile == ids("7C")
        assert view(env, seat).pile_size == 4
        assert view(env, seat).shown_jacks == ids("JH")
    assert [text(card) for card in env.unwrapped.deck] == deck  # before the jack was moved
    assert view(env, 0).hand == tuple(sorted(numbers(deck[5:9])))
    assert view(env, 1).hand == tuple(sorted(numbers(deck[9:13])))
    steps(env, 40)
    assert view(env).stock_size == 0
    assert view(env, 0).hand == tuple(sorted(numbers(deck[45:49])))
    assert view(env, 1).hand == tuple(sorted(numbers(deck[49:] + ["JH"])))


def test_further_jacks_go_under_the_last():
    """§7.11"""
    # JH, then JD and JS from the stock; 7C is turned. JH JD JS lie at the bottom in this order:
    # with hands of two the dealer gets JD and JS, and JH is the second card of the leader.
    deck = stacked("3C 4C 5C JH JD JS 7C")
    env = deal(deck, starter_jack="stock_bottom", hand_size=2)
    assert pile(env) == "7C" and view(env).shown_jacks == ids("JH JD JS")
    steps(env, 44)
    assert view(env, 0).hand == tuple(sorted(numbers([deck[-1], "JH"])))
    assert view(env, 1).hand == ids("JD JS")


def test_a_jack_may_go_to_the_middle_of_the_stock():
    """§7.12"""
    # 7C takes its place; of the 47 cards left, JH goes before number 23 (from 0), so it is the
    # last card of the third packet: the dealer's.
    deck = stacked("3C 4C 5C JH 7C")
    left = deck[5:]
    env = deal(deck, starter_jack="stock_middle")
    assert pile(env) == "7C" and view(env).shown_jacks == ids("JH")
    steps(env, 16)
    assert view(env, 0).hand == tuple(sorted(numbers(left[16:20])))
    assert view(env, 1).hand == tuple(sorted(numbers(left[20:23] + ["JH"])))
    steps(env, 8)
    assert view(env, 0).hand == tuple(sorted(numbers(left[23:27])))


def test_two_jacks_in_the_middle_of_the_stock():
    """§7.12"""
    # JH goes before number 23 of 47. JD, which takes its place, is a jack as well: 7C does, JH has
    # moved up to number 22 of the 47 left, and JD goes before number 23: right behind JH.
    deck = stacked("3C 4C 5C JH JD 7C")
    left = deck[6:]
    env = deal(deck, starter_jack="stock_middle")
    assert pile(env) == "7C" and view(env).shown_jacks == ids("JH JD")
    steps(env, 16)
    assert view(env, 1).hand == tuple(sorted(numbers(left[20:22] + ["JH", "JD"])))


@pytest.mark.parametrize("starter_jack", ["stock_bottom", "stock_middle"])
def test_jacks_among_the_other_starters_stay_there(starter_jack):
    """§7.11, §7.12"""
    env = deal(stacked("JC JD JH 4C"), starter_jack=starter_jack)
    assert pile(env) == "4C" and view(env).shown_jacks == ()


@pytest.mark.parametrize("starter_jack", ["stock_bottom", "stock_middle"])
def test_a_jack_that_comes_up_again_is_no_deal(starter_jack):
    """§7.13"""
    # A and J in three suits, a stock of two jacks.
    deck = "AC AD AH JC JD JH"
    fields = {"ranks": 2, "copies": 3, "hand_size": 1}
    with pytest.raises(ValueError, match="deck"):
        deal(deck, starter_jack=starter_jack, **fields)
    # With the jacks put back among the starters it is one.
    assert pile(deal(deck, **fields)) == "AH"
    # Without a deck given it is dealt again.
    for seed in range(20 if INTERPRETED else 200):
        env = deal(seed=seed, starter_jack=starter_jack, **fields)
        assert pile(env)[0] == "A"


def test_a_jack_in_the_middle_of_a_stock_of_one_comes_up_again():
    """§7.13"""
    # JC is turned, JD takes its place, JC goes before number 0 of the one card left: on top. JD
    # is a jack too, and JC comes up again. Under the stock, it would have been AH's turn.
    deck = "AC AD JH JC JD AH"
    fields = {"ranks": 2, "copies": 3, "hand_size": 1}
    with pytest.raises(ValueError, match="deck"):
        deal(deck, starter_jack="stock_middle", **fields)
    env = deal(deck, starter_jack="stock_bottom", **fields)
    assert pile(env) == "AH" and view(env).shown_jacks == ids("JC JD")
    assert (view(env, 0).hand, view(env, 1).hand) == (ids("JC"), ids("JD"))


# Options: who sees the starters


@pytest.mark.parametrize(
    ("option", "knowing"),
    [("capturer", {1}), ("side", {1, 3}), ("all", {None, 0, 1, 2, 3}), ("nobody", set())],
)
def test_who_learns_the_face_down_starters(option, knowing):
    """§7.14, §8.2, §8.3, §8.6"""
    fields = {"players": 4, "hand_size": 1, "ranks": 5, "starters_seen_by": option}
    starters = "4C AD 2C 3C"
    env = deal(deck_for(starters, "4D JD", **fields), **fields)
    play(env, "4D")
    everyone = (None, 0, 1, 2, 3)
    assert all(view(env, seat).known_starters == () for seat in everyone)
    play(env, "JD")
    known = ids("4C AD 2C")
    for seat in everyone:
        assert view(env, seat).known_starters == (known if seat in knowing else ())
        # Public are 3C 4D JD: a jack, and how many cards there were.
        assert view(env, seat).public_points == (0, 1)
        assert view(env, seat).captured == (0, 6)
    assert points(env) == [0, 1 + 1 + 2]  # not public: AD and 2C
    play_at_random(env, random.Random(0))
    for seat in everyone:  # once the deal is scored
        assert view(env, seat).known_starters == known
        assert list(view(env, seat).public_points) == points(env)


def test_a_side_of_one_is_its_capturer():
    """§7.14"""
    env = played("4C AD 2C 3C", "3D", players=3, starters_seen_by="side")
    assert [len(view(env, seat).known_starters) for seat in (0, 1, 2)] == [3, 0, 0]


# Options: the bottom card


def test_the_lowest_card_that_is_no_jack_may_lie_at_the_bottom_face_up():
    """§7.15"""
    # The stock ends in 9S JS JH: 9S goes below the jacks.
    deck = stacked("3C 4C 5C 6C", "9S JS JH")
    env = deal(deck, bottom_card_shown=True)
    for seat in (None, 0, 1):
        assert view(env, seat).bottom_card == number("9S")
        assert view(env, seat).shown_jacks == ()  # the jacks are not shown
    assert [text(card) for card in env.unwrapped.deck] == deck  # before it was moved
    steps(env, 40)
    # It goes to the dealer with the last packet.
    assert view(env).stock_size == 0
    assert view(env, 1).hand == tuple(sorted(numbers([deck[-4], "JS", "JH", "9S"])))


def test_a_bottom_card_that_is_no_jack_stays_where_it_is():
    """§7.15"""
    env = deal(stacked("3C 4C 5C 6C", "JS 9S 8S"), bottom_card_shown=True)
    assert view(env).bottom_card == number("8S")
    steps(env, 40)
    assert set(ids("JS 9S 8S")) < set(view(env, 1).hand)


def test_no_bottom_card_by_default():
    """§7.15"""
    assert view(deal(seed=0)).bottom_card is None


def test_the_first_packet_belongs_to_the_stock():
    """§7.15"""
    # The stock is AH JH, one card for each seat: AH is moved to its bottom, so the dealer gets it.
    fields = {"ranks": 2, "copies": 3, "hand_size": 1, "bottom_card_shown": True}
    env = deal("AC JC JD AD AH JH", **fields)
    assert view(env).bottom_card == number("AH")
    assert (view(env, 0).hand, view(env, 1).hand) == (ids("JH"), ids("AH"))


def test_a_stock_of_jacks_shows_no_bottom_card():
    """§7.15"""
    fields = {"ranks": 2, "copies": 3, "hand_size": 1, "bottom_card_shown": True}
    env = deal("AC JC AH AD JD JH", **fields)
    assert view(env).bottom_card is None
    assert (view(env, 0).hand, view(env, 1).hand) == (ids("JD"), ids("JH"))


# Small packs


@pytest.mark.parametrize(
    ("fields", "pack"),
    [
        ({"ranks": 3}, "AC 2C JC AD 2D JD AH 2H JH AS 2S JS"),
        ({"ranks": 5, "copies": 2}, "AC 2C 3C 4C JC AD 2D 3D 4D JD"),
        ({"copies": 1}, "AC 2C 3C 4C 5C 6C 7C 8C 9C TC JC QC KC"),
        ({"ranks": 12, "copies": 1}, "AC 2C 3C 4C 5C 6C 7C 8C 9C TC JC QC"),
    ],
)
def test_small_packs(fields, pack):
    """§7.17"""
    for packs in (1, 2):
        env = deal(seed=0, packs=packs, hand_size=2, **fields)
        assert sorted(env.unwrapped.deck) == sorted(numbers(pack.split()) * packs)


def test_a_small_pack_has_the_points_of_its_cards():
    """§7.17"""
    # A, 2, J in all suits: four aces, four jacks, 2C, most.
    env = deal(seed=3, majority_points=0, pisti_points=0, jack_pisti_points=0, **TINY)
    play_at_random(env, random.Random(1))
    assert sum(points(env)) == 10


@pytest.mark.parametrize("hand_size", [1, 2, 3, 4])
def test_hands_may_be_smaller(hand_size):
    """§7.17"""
    env = deal(seed=1, hand_size=hand_size)
    assert view(env).hand_sizes == (hand_size, hand_size)
    assert view(env).pile_size == 4
    for _ in range(2 * hand_size):
        assert view(env).packet == 1
        env.step(legal(env)[0])
    assert view(env).packet == 2


# What the leader does not know


@pytest.mark.parametrize(
    ("players", "unknown"),
    [(2, [47, 39, 31, 23, 15, 7]), (3, [47, 35, 23, 11]), (4, [47, 31, 15])],
)
def test_cards_unknown_to_the_leader_at_its_first_decision_of_a_packet(players, unknown):
    """§8.7"""
    rng = random.Random(players)
    seen_starters = 0
    for seed in range(4 if INTERPRETED else 40):
        env = deal(seed=seed, players=players)
        if view(env).shown_jacks:
            continue
        for packet, cards in enumerate(unknown):
            known = view(env, 0)
            assert known.packet == packet + 1
            seen = {env.unwrapped.deck[3], *known.hand, *(card for _, card in known.plays)}
            assert 52 - len(seen) == cards
            seen |= set(known.known_starters)
            assert 52 - len(seen) == cards - 3 * bool(known.known_starters)
            seen_starters += bool(known.known_starters)
            if players == 2 and known.known_starters and cards == 7:
                assert set(range(52)) - seen == set(view(env, 1).hand)
            for _ in range(4 * players):
                env.step(rng.choice(legal(env)))
    assert seen_starters > 0


# Facts


@pytest.mark.parametrize("packs", [1, 2])
@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_cards_and_points_are_neither_lost_nor_made(players, packs):
    """§9.1, §9.5"""
    rng = random.Random(f"{players} {packs}")
    env = pisti_v0.raw_env(players=players, packs=packs)
    for seed in range(4 if INTERPRETED else 100):
        env.reset(seed=seed)
        play_at_random(env, rng)
        cards, sides = of_score(env, "cards"), env.unwrapped.score()
        pistis = sum(10 * side["pistis"] + 20 * side["jack_pistis"] for side in sides)
        majority = 3 if cards.count(max(cards)) == 1 else 0
        assert sum(cards) == 52 * packs
        assert sum(points(env)) == 13 * packs + pistis + majority
        assert sum(view(env).captured) == 52 * packs
        assert len(view(env).plays) == (52 * packs - 4) // (4 * players) * 4 * players
        if packs == Rules(players=players).num_packs and players != 5:
            assert view(env).last_capturer is not None


def test_burnt_cards_are_all_that_is_missing():
    """§7.16, §9.1"""
    rng = random.Random(8)
    env = pisti_v0.raw_env(players=5, packs=1, leftovers="burn")
    for seed in range(4 if INTERPRETED else 100):
        env.reset(seed=seed)
        play_at_random(env, rng)
        assert sum(of_score(env, "cards")) == 44
        burnt = env.unwrapped.deck[-8:]
        worth = sum(CARD_WORTH[card] for card in burnt)
        cards, sides = of_score(env, "cards"), env.unwrapped.score()
        pistis = sum(10 * side["pistis"] + 20 * side["jack_pistis"] for side in sides)
        majority = 3 if cards.count(max(cards)) == 1 else 0
        assert sum(points(env)) == 13 - worth + pistis + majority


@pytest.mark.parametrize(
    ("fields", "total"), [({}, 16), ({"two_of_clubs_points": 3, "ten_of_diamonds_points": 4}, 18)]
)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_points_of_a_deal_without_pistis(fields, total, players):
    """§9.2"""
    rng = random.Random(5)
    env = pisti_v0.raw_env(players=players, **fields)
    seen = set()
    for seed in range(30 if INTERPRETED else 100):
        env.reset(seed=seed)
        play_at_random(env, rng)
        if not sum(of_score(env, "pistis") + of_score(env, "jack_pistis")):
            cards = of_score(env, "cards")
            tie = cards.count(max(cards)) > 1
            assert sum(points(env)) == total - 3 * tie
            seen.add(tie)
    assert False in seen


@pytest.mark.parametrize(("players", "plays"), [(2, 48), (3, 48), (4, 48), (5, 100), (6, 96)])
def test_plays_of_a_deal(players, plays):
    """§9.3"""
    env = deal(seed=2, players=players)
    for _ in range(plays):
        assert not over(env)
        env.step(legal(env)[-1])
    assert over(env)


@pytest.mark.parametrize("players", [2, 4])
def test_with_two_sides_and_one_pack_27_cards_are_most_and_more_than_half(players):
    """§9.6"""
    rng = random.Random(players)
    options = ("most", "more_than_half", 27)
    envs = [pisti_v0.raw_env(players=players, majority=majority) for majority in options]
    for seed in range(3 if INTERPRETED else 60):
        for env in envs:
            env.reset(seed=seed)
        while not over(envs[0]):
            card = rng.choice(legal(envs[0]))
            for env in envs:
                env.step(card)
        scores = [env.unwrapped.score() for env in envs]
        assert scores[0] == scores[1] == scores[2]


def test_two_cards_of_one_kind_are_interchangeable():
    """§9.4"""
    # The worked deal with cards of three kinds changed for one another: the same score.
    swaps = {"9H": "9S", "9S": "9H", "AD": "AH", "AH": "AD", "2D": "2S", "2S": "2D"}
    starters, line = (
        " ".join(swaps.get(card, card) for card in cards.split())
        for cards in (WORKED_STARTERS, WORKED_LINE)
    )
    assert line != WORKED_LINE
    env = played(starters, line)
    assert points(env) == [21, 5]


# How often things happen


def captures_by_rank_then_by_jack(hand, top, rng):
    """Else the cheapest card: fewest points, a jack last, ties at random."""
    if top is not None:
        for wanted in (top % 13, 10):
            for card in hand:
                if card % 13 == wanted:
                    return card
    return min(hand, key=lambda card: (card % 13 == 10, CARD_WORTH[card], rng.random()))


def plays_at_random(hand, top, rng):
    return rng.choice(hand)


def count_things(choose, deals):
    """For each deal: what happened in it."""
    rng = random.Random(12)
    env = pisti_v0.raw_env(observation="basic")
    for seed in range(deals):
        env.reset(seed=seed, options={"dealer": 1})
        top, size = view(env).pile[0], 4
        jacks_on_lone = 0
        first_capture = None  # the size of its pile
        while not over(env):
            card = choose(legal(env), top, rng)
            captures = top is not None and card % 13 in (top % 13, 10)
            if captures:
                first_capture = first_capture or size
                jacks_on_lone += size == 1 and card % 13 == 10 != top % 13
            top, size = (None, 0) if captures else (card, size + 1)
            env.step(card)
        counts = of_score(env, "cards")
        earlier = list(counts)  # before the sweep
        earlier[view(env).last_capturer] -= size
        leads = [(pair[0] > pair[1]) - (pair[0] < pair[1]) for pair in (earlier, counts)]
        yield {
            "pistis": sum(of_score(env, "pistis")),
            "jack pistis": sum(of_score(env, "jack_pistis")),
            "jacks on a lone card": jacks_on_lone,
            "first capture on the untouched starters": first_capture == 4,
            "cards left at the end": size,
            "sweep changes who has most": leads[0] != leads[1],
            "tie for most": leads[1] == 0,
            "leader ahead": points(env)[0] - points(env)[1],
        }


FREQUENCIES = {
    captures_by_rank_then_by_jack: [1.35, 0.001, 1.03, 0.45, 4.8, 0.12, 0.038, 2.1],
    plays_at_random: [0.31, 0.019, 0.36, 0.14, 5.9, 0.10, 0.023, 0],
}


@pytest.mark.parametrize("choose", FREQUENCIES)
def test_how_often_things_happen(choose):
    """§9.7"""
    deals = 50 if INTERPRETED else 2000
    seen = list(count_things(choose, deals))
    for name, expected in zip(seen[0], FREQUENCIES[choose], strict=True):
        values = [deal[name] for deal in seen]
        mean = sum(values) / deals
        deviation = (sum((value - mean) ** 2 for value in values) / deals) ** 0.5
        # Four standard errors, and a few per cent for the rounding of the expected value. What
        # is rare may not have happened at all: then its deviation is that of what is expected.
        deviation = max(deviation, expected**0.5 if expected < 0.2 else 0)
        allowed = 4 * deviation / deals**0.5 + 0.04 * expected
        assert abs(mean - expected) < allowed, f"{name}: {mean:.4f}, expected {expected}"


@pytest.mark.parametrize("starter_jack", STARTER_JACK_TO)
def test_a_card_that_is_not_known_is_no_jack(starter_jack):
    """What lays out cards one by one (OpenSpiel's game) asks so if a starter can be turned up."""
    rules = Rules(starter_jack=starter_jack)
    deck = np.full((1, rules.deck_size), NO_CARD, np.int8)
    deck[0, game.STARTER] = JACK
    dealt, row = np.zeros(1, np.bool_), np.zeros(1, np.int64)
    games = np.zeros(1, game.GAME)
    loops.deal_rows(games, compiled_rules(rules), row, deck, row, dealt)
    assert dealt[0] and games["num_shown_jacks"][0] == 1
