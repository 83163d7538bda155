"""How Pişti is played: one record per table, and the functions that change it.

Read `deal`, `play` and `score_deal` first; they are the rule book. The functions run compiled
(Numba) or as plain Python with the same result. They do not check what they are given: a play must
be legal (who calls them finds out), a deck must be one of the rules' (`checks.py` sees to that).

The pile is not stored: its face-up cards are the plays since the last capture, and below them,
until the first capture, the four starters. Nor is who played what: seats take turns strictly.
"""

import numpy as np

from pisti_env.cards import JACK, NO_CARD, RANK_OF_CARD, TEN_OF_DIAMONDS
from pisti_env.compile import at, inlined
from pisti_env.compiled_rules import ALL, CAPTURER, PILE, SIDE, STOCK_MIDDLE
from pisti_env.counts import ONE_OF_CARD
from pisti_env.rules import NUM_STARTERS

MAX_PLAYERS = 6
MAX_HAND = 4
MAX_DECK = 104
MAX_JACKS = 8
MAX_PLAYS = MAX_DECK - NUM_STARTERS

NOBODY = -1
FACE_DOWN = NUM_STARTERS - 1
STARTER = NUM_STARTERS - 1  # the turned-up starter's place in the deck, above the face-down ones

# One table. What every play touches comes first and together, since the memory is what costs time.
# int16 wherever there is arithmetic among them: in plain Python int8 would overflow.
GAME = np.dtype(
    (
        np.record,
        [
            ("to_play", np.int16),  # seat, or NOBODY once the deal is scored
            ("dealer", np.int16),  # seat
            ("num_plays", np.int16),  # in this deal so far
            ("top", np.int16),  # card, or NO_CARD on an empty table
            ("pile_start", np.int16),  # the first play that lies on the pile
            ("starters_down", np.int16),  # 1 while the four starters lie under the pile
            ("last_capturer", np.int16),  # seat or NOBODY
            ("num_exposed", np.int16),  # see `exposed`
            ("pile_points", np.int64),  # card points of the pile's face-up part
            # How many of each kind, see `counts.py`: played in the deal; on the pile; on the pile
            # when the packet was dealt. All face up, the starter included.
            ("played_kinds", np.int64),
            ("pile_kinds", np.int64),
            ("packet_kinds", np.int64),
            ("stock_start", np.int16),  # place in the deck of the next card to deal
            ("packet", np.int16),  # from 1
            ("packet_top", np.int16),  # top when the packet was dealt
            ("scored", np.int16),  # 1 once the deal is over and all of it public
            ("hand_sizes", np.int8, (MAX_PLAYERS,)),
            ("starters_taker", np.int16),  # the seat that captured the starters, or NOBODY
            ("hands", np.int8, (MAX_PLAYERS, MAX_HAND)),  # the first hand_sizes[seat] count
            ("captured", np.int16, (MAX_PLAYERS,)),  # cards, per side
            ("pistis", np.int16, (MAX_PLAYERS,)),  # by equal rank, no jacks; per side
            ("jack_pistis", np.int16, (MAX_PLAYERS,)),  # jack on jack; per side
            ("bottom_card", np.int16),  # shown at the stock's bottom, or NO_CARD
            ("num_shown_jacks", np.int16),
            ("public_points", np.int64, (MAX_PLAYERS,)),  # per side; without face-down starters
            ("match_points", np.int64, (MAX_PLAYERS,)),  # per side, every scored deal
            ("packet_pile_start", np.int16),  # pile_start when the packet was dealt
            ("packet_starters_down", np.int16),  # starters_down when the packet was dealt
            ("knows_starters", np.int16, (MAX_PLAYERS,)),  # per seat: 1 if it knows those face down
            ("deck", np.int8, (MAX_DECK,)),  # face-down starters, starter, stock, once turned up
            ("plays", np.int8, (MAX_PLAYS,)),  # cards, in order
            ("shown_jacks", np.int8, (MAX_JACKS,)),  # turned up before the starter, in order
            # Cards that everyone knows to be in the stock or a hand: the bottom card, or jacks that
            # were turned up and went into the stock. They leave the list when they are played.
            ("exposed", np.int8, (MAX_JACKS,)),
            ("exposed_places", np.int16, (MAX_JACKS,)),  # their places in the deck
            ("exposed_holders", np.int16, (MAX_JACKS,)),  # their seats, NOBODY while in the stock
        ],
    )
)

# The deal.


@inlined
def deal(game, rules, deck, dealer):
    """Lay out four starters, turn one up, deal the first packet; match points stay as they are.

    Returns False if no starter can be turned up that is not a jack: deal again.
    """
    clear_table(game, rules)
    game.dealer = dealer
    game.to_play = next_seat(dealer, rules)
    for place in range(rules.deck_size):
        game.deck[place] = deck[place]
    game.stock_start = NUM_STARTERS
    if not turn_up_starter(game, rules):
        return False
    if rules.bottom_card_shown:
        show_bottom_card(game, rules)
    game.starters_down = 1
    game.top = game.deck[STARTER]
    game.pile_points = rules.card_points[game.deck[STARTER]]
    game.played_kinds = ONE_OF_CARD[game.deck[STARTER]]
    game.pile_kinds = game.played_kinds
    deal_packet(game, rules)
    return True


@inlined
def clear_table(game, rules):
    """Begin a deal with nothing on the table and nobody holding or having anything."""
    game.num_plays = 0
    game.pile_start = 0
    game.packet = 0
    game.last_capturer = NOBODY
    game.starters_taker = NOBODY
    game.scored = 0
    game.bottom_card = NO_CARD
    game.num_shown_jacks = 0
    game.num_exposed = 0
    for side in range(rules.sides):
        game.captured[side] = 0
        game.pistis[side] = 0
        game.jack_pistis[side] = 0
        game.public_points[side] = 0
    for seat in range(rules.players):
        game.knows_starters[seat] = 0


@inlined
def turn_up_starter(game, rules):
    """Turn up the last starter; while it is a jack, show it, put it away and turn another."""
    if rules.starter_jack == PILE:
        return turn_up_from_starters(game)
    return turn_up_from_stock(game, rules)


@inlined
def turn_up_from_starters(game):
    """A jack turned up goes among the face-down starters, and the one before it is turned."""
    for place in range(STARTER, -1, -1):
        card = game.deck[place]
        if not is_jack(card):
            for later in range(place, STARTER):
                game.deck[later] = game.deck[later + 1]
            game.deck[STARTER] = card
            return True
        show_jack(game, card)
    return False


@inlined
def turn_up_from_stock(game, rules):
    """A jack turned up goes under or into the stock, whose top card takes its place."""
    top = NUM_STARTERS
    while is_jack(game.deck[STARTER]):
        for k in range(game.num_exposed):
            if game.exposed_places[k] == top:  # a jack that was turned up already
                return False
        jack = game.deck[STARTER]
        show_jack(game, jack)
        game.deck[STARTER] = game.deck[top]
        left = rules.deck_size - top - 1
        place = top + (left // 2 if rules.starter_jack == STOCK_MIDDLE else left)
        for earlier in range(top, place):
            game.deck[earlier] = game.deck[earlier + 1]
        game.deck[place] = jack
        for k in range(game.num_exposed):
            if game.exposed_places[k] <= place:
                game.exposed_places[k] -= 1
        expose(game, jack, place)
    return True


@inlined
def show_jack(game, jack):
    """Everyone sees a jack that is turned up before the starter."""
    game.shown_jacks[game.num_shown_jacks] = jack
    game.num_shown_jacks += 1


@inlined
def show_bottom_card(game, rules):
    """Move the stock's lowest card that is not a jack to its bottom, face up; none if all are."""
    bottom = rules.deck_size - 1
    place = bottom
    while place >= NUM_STARTERS and is_jack(game.deck[place]):
        place -= 1
    if place >= NUM_STARTERS:
        card = game.deck[place]
        for later in range(place, bottom):
            game.deck[later] = game.deck[later + 1]
        game.deck[bottom] = card
        game.bottom_card = card
        expose(game, card, bottom)


@inlined
def expose(game, card, place):
    """From now on everyone knows that this card lies at this place of the deck."""
    game.exposed[game.num_exposed] = card
    game.exposed_places[game.num_exposed] = place
    game.exposed_holders[game.num_exposed] = NOBODY
    game.num_exposed += 1


@inlined
def deal_packet(game, rules):
    """A hand to each seat, starting with the leader; the pile stays as it is."""
    game.packet += 1
    game.packet_pile_start = game.pile_start
    game.packet_starters_down = game.starters_down
    game.packet_kinds = game.pile_kinds
    game.packet_top = game.top
    seat = game.dealer
    for _ in range(rules.players):
        seat = next_seat(seat, rules)
        for held in range(rules.hand_size):
            game.hands[seat, held] = game.deck[game.stock_start + held]
        game.hand_sizes[seat] = rules.hand_size
        game.stock_start += rules.hand_size
        for k in range(game.num_exposed):
            if game.exposed_holders[k] == NOBODY:
                if game.exposed_places[k] < game.stock_start:
                    game.exposed_holders[k] = seat


# The play.


@inlined
def play(game, rules, card):
    """Play a card of the hand of the seat whose turn it is; then the next seat, packet or score."""
    play_card(game, rules, card)
    finish_turn(game, rules)


@inlined
def play_card(game, rules, card):
    """Put a card of the hand to play on the pile, which it may capture; then the next seat has its
    turn. Where that one's hand is empty the packet is over, and `finish_turn` is still to come."""
    seat = game.to_play
    take_from_hand(game, seat, card)
    top, size = game.top, pile_size(game)
    lay_on_pile(game, rules, card)
    if captures(card, top):
        score_pisti(game, rules, seat, card, top, size)
        take_pile(game, rules, seat)
        game.last_capturer = seat
    game.to_play = next_seat(seat, rules)


@inlined
def finish_turn(game, rules):
    """After the last play of a packet deal the next one, after the last of the deal score it."""
    if game.num_plays == rules.num_plays:
        score_deal(game, rules)
    elif game.hand_sizes[game.to_play] == 0:
        deal_packet(game, rules)


@inlined
def next_seat(seat, rules):
    """Return the seat that is next in turn."""
    return seat + 1 if seat + 1 < rules.players else 0


@inlined
def side_of(seat, rules):
    """Return a seat's side: opposite seats are partners, or each seat is a side of its own."""
    return seat if seat < rules.sides else seat - rules.sides


@inlined
def take_from_hand(game, seat, card):
    """Take one such card out of the hand; if everyone knew one there, it is that one."""
    last = game.hand_sizes[at(seat)] - 1
    held = last
    for earlier in range(MAX_HAND - 1, -1, -1):
        if game.hands[at(seat), earlier] == card:
            held = earlier
    game.hands[at(seat), at(held)] = game.hands[at(seat), at(last)]
    game.hand_sizes[at(seat)] = last
    for k in range(game.num_exposed):
        if game.exposed[k] == card and game.exposed_holders[k] == seat:
            last = game.num_exposed - 1
            game.exposed[k] = game.exposed[last]
            game.exposed_places[k] = game.exposed_places[last]
            game.exposed_holders[k] = game.exposed_holders[last]
            game.num_exposed = last
            break


@inlined
def pile_size(game):
    """Return how many cards lie on the table, face-down ones included."""
    return game.num_plays - game.pile_start + NUM_STARTERS * game.starters_down


@inlined
def is_jack(card):
    """Return whether a card is a jack."""
    return RANK_OF_CARD[card] == JACK  # of NO_CARD too, where a deck is not known yet


@inlined
def captures(card, top):
    """A card of the top card's rank captures, and a jack does on a pile that is not empty."""
    rank = RANK_OF_CARD[at(card)]
    return top != NO_CARD and (rank == JACK or rank == RANK_OF_CARD[at(top)])


@inlined
def score_pisti(game, rules, seat, card, top, size):
    """Score the capture of a lone card, but for the very last card of the deal."""
    if size != 1 or (game.num_plays == rules.num_plays and not rules.last_card_pisti):
        return
    side = side_of(seat, rules)
    if not is_jack(card):
        game.pistis[side] += 1
        game.public_points[side] += rules.pisti_points
        if card == TEN_OF_DIAMONDS or top == TEN_OF_DIAMONDS:
            game.public_points[side] += rules.ten_of_diamonds_pisti_bonus
    elif is_jack(top):
        game.jack_pistis[side] += 1
        game.public_points[side] += rules.jack_pisti_points
    else:
        game.public_points[side] += rules.jack_takes_single_points


@inlined
def lay_on_pile(game, rules, card):
    """The card is the new top card, for a moment even if it captures."""
    game.plays[at(game.num_plays)] = card
    game.num_plays += 1
    game.top = card
    game.pile_points += rules.card_points[at(card)]
    game.played_kinds += ONE_OF_CARD[at(card)]
    game.pile_kinds += ONE_OF_CARD[at(card)]


@inlined
def take_pile(game, rules, seat):
    """The seat captures the whole pile for its side, the face-down starters included."""
    side = side_of(seat, rules)
    game.captured[side] += pile_size(game)
    game.public_points[side] += game.pile_points
    if game.starters_down:
        game.starters_taker = seat
        show_starters(game, rules, seat)
    game.pile_start = game.num_plays
    game.starters_down = 0
    game.top = NO_CARD
    game.pile_points = 0
    game.pile_kinds = 0


@inlined
def show_starters(game, rules, taker):
    """Let those see the face-down starters who may when they are captured."""
    for seat in range(rules.players):
        if rules.starters_seen_by == CAPTURER:
            sees = seat == taker
        elif rules.starters_seen_by == SIDE:
            sees = side_of(seat, rules) == side_of(taker, rules)
        else:
            sees = rules.starters_seen_by == ALL
        game.knows_starters[seat] = sees


# The score.


@inlined
def score_deal(game, rules):
    """What lies there goes to the last capturer, the starters are counted, then the majority."""
    sweep(game, rules)
    score_starters(game, rules)
    score_majority(game, rules)
    for side in range(rules.sides):
        game.match_points[side] += game.public_points[side]
    game.scored = 1
    game.to_play = NOBODY


@inlined
def sweep(game, rules):
    """The last capturer takes the pile and the left-over stock, the dealer if nobody captured.

    Taking them is no capture: no pişti, and the last capturer stays who it was.
    """
    seat = game.last_capturer if game.last_capturer != NOBODY else game.dealer
    take_pile(game, rules, seat)
    if rules.sweep_leftovers:
        side = side_of(seat, rules)
        for place in range(game.stock_start, rules.deck_size):
            game.captured[side] += 1
            game.public_points[side] += rules.card_points[game.deck[place]]
        game.stock_start = rules.deck_size


@inlined
def score_starters(game, rules):
    """Turn the face-down starters over, for everyone to see, and count them."""
    side = side_of(game.starters_taker, rules)
    for place in range(FACE_DOWN):
        game.public_points[side] += rules.card_points[game.deck[place]]
    for seat in range(rules.players):
        game.knows_starters[seat] = 1


@inlined
def score_majority(game, rules):
    """Points for the one side that captured most cards, if they are enough; nobody on a tie."""
    most, winner, tied = -1, NOBODY, False
    for side in range(rules.sides):
        cards = game.captured[side]
        if cards > most:
            most, winner, tied = cards, side, False
        elif cards == most:
            tied = True
    if not tied and most >= rules.majority_cards:
        game.public_points[winner] += rules.majority_points


@inlined
def match_over(match_points, rules):
    """After a deal: whether a side has won, by reaching the target with lead enough or a tie."""
    if rules.target == 0:
        return True
    best, second = -1, -1
    for side in range(rules.sides):
        total = match_points[side]
        if total > best:
            best, second = total, best
        elif total > second:
            second = total
    if best < rules.target:
        return False
    if best == second:
        return bool(rules.shared_win)
    return best - second >= rules.win_by


@inlined
def share_win(match_points, rules, shares):
    """When a match is over: set the sides' `shares` of the win, one in all, those with most."""
    best, winners = match_points[0], 0
    for side in range(rules.sides):
        best = max(best, match_points[side])
    for side in range(rules.sides):
        winners += match_points[side] == best
    for side in range(rules.sides):
        shares[side] = (match_points[side] == best) / winners
