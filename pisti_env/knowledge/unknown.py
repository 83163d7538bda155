"""What a seat does not know, dealt at random: in compiled code, thousands of tables a second.

The cards that a seat cannot place (other hands, the stock, face-down starters) are shuffled over
the places where they may lie. Every deal that fits what the seat has seen is equally likely:
nothing is concluded from why somebody played a card. A shown bottom card needs care, see `redeal`.

A search deals the unknown at copies of its table, plays them on and counts. The table may be the
true one or any that `fill_in` makes of what the seat knows: what is dealt is the same.

```python
import numpy as np
from pisti_env import pisti_v0
from pisti_env.compile import compiled
from pisti_env.compiled_rules import compiled_rules
from pisti_env.game import play
from pisti_env.knowledge import deal_unknown, fill_in, known_of_view

@compiled
def play_out(games, compiled_rules, side):  # a side's mean gain, if all play their first card
    points = 0
    for i in range(len(games)):
        points -= games[i].public_points[side]
        while not games[i].scored:
            play(games[i], compiled_rules[0], games[i].hands[games[i].to_play, 0])
        points += games[i].public_points[side]
    return points / len(games)

env = pisti_v0.raw_env()
env.reset(seed=1)
view = env.view(0)
games = np.repeat(fill_in(known_of_view(view)).games, 1000)  # copying a table copies its record
deal_unknown(games, view.rules, view.viewer, seed=7)
print(play_out(games, compiled_rules(view.rules), view.rules.side(0)))
```
"""

from typing import Any

import numpy as np

from pisti_env import game as engine
from pisti_env.cards import NO_CARD, NUM_CARDS
from pisti_env.compile import compiled, inlined
from pisti_env.compiled_rules import PILE, STOCK_MIDDLE, compiled_rules
from pisti_env.game import FACE_DOWN, MAX_DECK, MAX_JACKS, NOBODY, is_jack, next_seat
from pisti_env.quote import quote
from pisti_env.rules import NUM_STARTERS, Rules
from pisti_env.shuffle import check_seed, random_below, stream

# What `redeal` needs room for: the places where unknown cards lie, then how many of each there are.
SCRATCH_SIZE = MAX_DECK + NUM_CARDS


def deal_unknown(games: np.ndarray, rules: Rules, viewer: int | None, seed: int) -> None:
    """Deal anew, in place, what `viewer` (a seat, or None for a spectator) does not know at each
    of the tables `games` (n,) GAME, which are tables of these rules at any moments.

    What is dealt at table i is a function of the seed, of i and of what the viewer knows there.
    Match points stay, and so does all that the viewer sees. Raises `ValueError`, and changes
    nothing, for a wrong viewer, seed or array, and for a record that is no table of these rules.
    """
    seats = range(rules.players)
    if viewer is not None and viewer not in seats:
        raise ValueError(f"viewer is {quote(viewer)}; expected None or one of {list(seats)}")
    games, seed = check_records(games), check_seed(seed)
    wrong = find_unsound(games, compiled_rules(rules), _counts(rules))
    if wrong >= 0:
        raise ValueError(
            f"table {wrong} of games is in no moment of a deal of these rules; expected copies of "
            "records that were dealt and played with them"
        )
    with np.errstate(over="ignore"):  # interpreted, integers that wrap around are a warning
        _redeal_all(
            games,
            compiled_rules(rules),
            NOBODY if viewer is None else int(viewer),
            np.uint64(seed),
            np.zeros(SCRATCH_SIZE, np.int64),
        )


def check_records(games: Any) -> np.ndarray:
    """Return an array of tables, for compiled code; raise `ValueError` for anything else."""
    form = (getattr(games, "dtype", None), getattr(games, "ndim", None))
    if not isinstance(games, np.ndarray) or form != (engine.GAME, 1) or not games.flags.carray:
        raise ValueError(
            f"games has shape {np.shape(games)} and dtype {quote(form[0])}; expected a writable "
            "array (n,) of records game.GAME"
        )
    return np.asarray(games)  # of a subclass too


def _counts(rules: Rules) -> np.ndarray:
    """Return how many of each card the deck has, (52,) int64."""
    return np.bincount(rules.deck_cards(), minlength=NUM_CARDS)


@compiled
def find_unsound(games, compiled_rules, left):
    """Return the first of `games` (n,) that is no table of these rules, -1 if all are. `left` (52,)
    is how many of each card the deck has, and is overwritten."""
    for i in range(len(games)):
        if not is_sound(games[i], compiled_rules[0], left):
            return i
    return -1


@inlined
def is_sound(game, rules, left):
    """Return whether all that `redeal` goes by can be so: how far the deal is, whose cards are
    where, what everyone saw. `left` (52,) stays as it was, if so."""
    return (
        has_sizes(game, rules)
        and has_cards(game, rules, left)
        and has_hands(game, rules, left)
        and has_seen(game, rules)
    )


@inlined
def has_sizes(game, rules):
    """Return whether numbers of plays, packets and cards fit each other."""
    played, size = np.int64(game.num_plays), packet_size(rules)
    if not (0 <= game.dealer < rules.players and 0 <= played <= rules.num_plays):
        return False
    scored = played == rules.num_plays
    packet = (played - scored) // size + 1
    dealt = NUM_STARTERS + packet * size
    swept = scored and game.stock_start == rules.deck_size
    if game.packet != packet or not (game.stock_start == dealt or swept):
        return False
    seat, turns = game.dealer, played - (packet - 1) * size
    for turn in range(rules.players):
        seat = next_seat(seat, rules)
        own_turns = (turns - turn + rules.players - 1) // rules.players
        if game.hand_sizes[seat] != rules.hand_size - own_turns:
            return False
    return True


@inlined
def has_cards(game, rules, left):
    """Return whether the deck has its cards; then `left` is all 0."""
    there = True
    for place in range(rules.deck_size):
        there = there and take_one(game.deck[place], left)
    return there


@inlined
def has_hands(game, rules, left):
    """Return whether what was played from each hand, and is held, is what was dealt; then `left`
    is what the deck has again."""
    first, size = NUM_STARTERS, packet_size(rules)
    for packet in range(game.packet):
        seat, plays_end = game.dealer, min(game.num_plays, (packet + 1) * size)
        for turn in range(rules.players):
            seat = next_seat(seat, rules)
            for place in range(first, first + rules.hand_size):
                left[game.deck[place]] += 1
            for number in range(packet * size + turn, plays_end, rules.players):
                if not take_one(game.plays[number], left):
                    return False
            if packet + 1 == game.packet:
                for held in range(game.hand_sizes[seat]):
                    if not take_one(game.hands[seat, held], left):
                        return False
            first += rules.hand_size
    for place in range(rules.deck_size):
        left[game.deck[place]] += 1
    return True


@inlined
def take_one(card, left):
    """Return whether there is such a card left, and count it off."""
    if not 0 <= card < NUM_CARDS or left[card] == 0:
        return False
    left[card] -= 1
    return True


@inlined
def has_seen(game, rules):
    """Return whether what everyone saw lie in the stock is there, or in the hands."""
    shown, exposed = game.num_shown_jacks, game.num_exposed
    room = FACE_DOWN if rules.starter_jack == PILE else MAX_JACKS
    if not (0 <= shown <= room and 0 <= exposed <= MAX_JACKS):
        return False
    if game.bottom_card != NO_CARD:
        if not rules.bottom_card_shown or game.bottom_card != game.deck[rules.deck_size - 1]:
            return False
    for k in range(shown):
        place = last_jack_place(rules) - shown + 1 + k
        if rules.starter_jack == PILE:
            place = FACE_DOWN - 1 - k
        if game.deck[place] != game.shown_jacks[k]:
            return False
    for k in range(exposed):
        place, holder = game.exposed_places[k], game.exposed_holders[k]
        if not (NUM_STARTERS <= place < rules.deck_size and NOBODY <= holder < rules.players):
            return False
        if holder == NOBODY:
            if place < game.stock_start or game.deck[place] != game.exposed[k]:
                return False
        else:
            others = 0  # of the exposed cards that this seat is to have in its hand
            for other in range(exposed):
                others += game.exposed_holders[other] == holder
            in_hand = False
            for held in range(game.hand_sizes[holder]):
                in_hand = in_hand or game.hands[holder, held] == game.exposed[k]
            if others > game.hand_sizes[holder] or not in_hand:
                return False
    return True


@compiled
def _redeal_all(games, compiled_rules, viewer, seed, scratch):
    for i in range(len(games)):
        redeal(games[i], compiled_rules[0], viewer, stream(seed, i, 0, 0), scratch)


@inlined
def redeal(game, rules, viewer, state, scratch):
    """Deal anew what a seat, or NOBODY for a spectator, does not know at one table; return the next
    state of the stream of random numbers. `scratch` (SCRATCH_SIZE,) int64 is overwritten.

    Shuffled are places, but what should be equally likely are deals; what stands for fewer deals
    than something else is kept as much more seldom, see `keep_by_chance`.
    """
    jacks = 0
    for place in range(rules.deck_size):
        jacks += is_jack(game.deck[place])
    sort_hand(game, viewer)
    while True:
        lay_out_hands(game, rules)
        unknown = find_unknown(game, rules, viewer, scratch)
        unknown_jacks = sort_unknown(game, unknown, scratch)
        if rules.bottom_card_shown and game.bottom_card == NO_CARD:  # the stock is all jacks
            state = shuffle_places(game, unknown - unknown_jacks, unknown, state, scratch)
            starters = num_unknown_starters(game, rules, viewer)
            state = shuffle_places(game, 0, starters, state, scratch)
        else:
            state = shuffle_places(game, 0, unknown, state, scratch)
        pick_up_hands(game, rules, viewer)
        state, kept = keep_by_chance(game, rules, viewer, jacks, state)
        if kept:
            return state


@inlined
def sort_hand(game, viewer):
    """Sort the viewer's cards, so that what is dealt does not depend on their order."""
    if viewer == NOBODY:
        return
    for held in range(1, game.hand_sizes[viewer]):
        for place in range(held, 0, -1):
            card, before = game.hands[viewer, place], game.hands[viewer, place - 1]
            if card < before:
                game.hands[viewer, place], game.hands[viewer, place - 1] = before, card


@inlined
def lay_out_hands(game, rules):
    """Let every hand that was dealt lie in the deck with the cards first that were played from it,
    in order, and those last that are held. Where everyone saw a card lie, it stays."""
    place = NUM_STARTERS
    for packet in range(game.packet):
        seat = game.dealer
        plays_end = min(game.num_plays, (packet + 1) * packet_size(rules))
        for turn in range(rules.players):
            seat = next_seat(seat, rules)
            here, seen = place, 0  # the next place to fill; bits for places that everyone saw
            for number in range(packet * packet_size(rules) + turn, plays_end, rules.players):
                here, seen = put_into_hand(game, rules, game.plays[number], place, here, seen)
            if packet + 1 == game.packet:
                for held in range(game.hand_sizes[seat]):
                    card = game.hands[seat, held]
                    here, seen = put_into_hand(game, rules, card, place, here, seen)
            place += rules.hand_size


@inlined
def packet_size(rules):
    """Return how many cards are dealt in a packet."""
    return rules.players * rules.hand_size


@inlined
def put_into_hand(game, rules, card, first, here, seen):
    """Put a card of the hand that lies from `first` on into its place; return `here` and `seen`."""
    for place in range(first, first + rules.hand_size):
        bit = 1 << (place - first)
        if was_seen_to_lie(game, rules, place) and game.deck[place] == card and not seen & bit:
            return here, seen | bit
    while was_seen_to_lie(game, rules, here):
        here += 1
    game.deck[here] = card
    return here + 1, seen


@inlined
def was_seen_to_lie(game, rules, place):
    """Return whether everyone saw, when the deal began, which card lies at this place of the stock:
    the bottom card, or a jack that was turned up."""
    if rules.starter_jack == PILE:
        return game.bottom_card != NO_CARD and place == rules.deck_size - 1
    last = last_jack_place(rules)
    return last - game.num_shown_jacks < place and place <= last


@inlined
def last_jack_place(rules):
    """Return where in the deck the last jack lies that was turned up and went into the stock; those
    before it lie just above, in the order turned up."""
    left = rules.deck_size - NUM_STARTERS - 1
    return NUM_STARTERS + (left // 2 if rules.starter_jack == STOCK_MIDDLE else left)


@inlined
def num_unknown_starters(game, rules, viewer):
    """Return how many face-down starters, the first ones, the viewer does not know."""
    knows = True
    for seat in range(rules.players):
        if seat == viewer or viewer == NOBODY:
            knows = knows and game.knows_starters[seat] == 1
    if knows:
        return 0
    return FACE_DOWN - (game.num_shown_jacks if rules.starter_jack == PILE else 0)


@inlined
def num_unknown_in_hand(game, seat):
    """Return how many cards of another's hand not everyone knows to be there."""
    unknown = game.hand_sizes[seat]
    for k in range(game.num_exposed):
        unknown -= game.exposed_holders[k] == seat
    return unknown


@inlined
def find_unknown(game, rules, viewer, scratch):
    """Set the first of `scratch` to the places in the deck of cards that the viewer does not know,
    return how many there are. Hands lie as `lay_out_hands` leaves them."""
    found = 0
    for place in range(num_unknown_starters(game, rules, viewer)):
        scratch[found] = place
        found += 1
    seat, after = game.dealer, NUM_STARTERS + (game.packet - 1) * packet_size(rules)
    for _ in range(rules.players):
        seat = next_seat(seat, rules)
        after += rules.hand_size
        if seat != viewer:
            place = after
            for _ in range(num_unknown_in_hand(game, seat)):
                place = place_before(game, rules, place)
                scratch[found] = place
                found += 1
    for place in range(game.stock_start, rules.deck_size):
        if not was_seen_to_lie(game, rules, place):
            scratch[found] = place
            found += 1
    return found


@inlined
def place_before(game, rules, place):
    """Return the place before this one of which not everyone saw the card."""
    place -= 1
    while was_seen_to_lie(game, rules, place):
        place -= 1
    return place


@inlined
def sort_unknown(game, unknown, scratch):
    """Sort the cards at the first `unknown` places of `scratch`, jacks last, so that nothing is
    left of how they lay; return how many jacks there are."""
    for card in range(NUM_CARDS):
        scratch[MAX_DECK + card] = 0
    for k in range(unknown):
        there = np.int64(game.deck[scratch[k]])  # in plain Python, a sum with int8 would overflow
        scratch[MAX_DECK + there] += 1
    filled, jacks = 0, 0
    for jacks_now in range(2):
        for card in range(NUM_CARDS):
            if is_jack(card) == (jacks_now == 1):
                for _ in range(scratch[MAX_DECK + card]):
                    game.deck[scratch[filled]] = card
                    filled += 1
                    jacks += jacks_now
    return jacks


@inlined
def shuffle_places(game, first, end, state, scratch):
    """Shuffle the cards at the places from the first to before the end; return the next state."""
    for k in range(end - 1, first, -1):
        state, other = random_below(state, np.uint64(k - first + 1))
        swap(game, scratch[k], scratch[first + np.int64(other)])
    return state


@inlined
def swap(game, place, other):
    """Swap two cards of the deck."""
    card = game.deck[place]
    game.deck[place] = game.deck[other]
    game.deck[other] = card


@inlined
def pick_up_hands(game, rules, viewer):
    """Let the others hold what lies for them in the deck now."""
    seat, after = game.dealer, NUM_STARTERS + (game.packet - 1) * packet_size(rules)
    for _ in range(rules.players):
        seat = next_seat(seat, rules)
        after += rules.hand_size
        if seat != viewer:
            place, unknown, held = after, num_unknown_in_hand(game, seat), 0
            for _ in range(unknown):
                place = place_before(game, rules, place)
                game.hands[seat, held] = game.deck[place]
                held += 1
            for k in range(game.num_exposed):
                if game.exposed_holders[k] == seat:
                    game.hands[seat, held] = game.exposed[k]
                    held += 1


@inlined
def keep_by_chance(game, rules, viewer, jacks, state):
    """Decide whether to keep what was dealt; return the stream's next state and the decision.

    - A hand from which a card was played and whose holder has that card's twin from the other pack
      still came in half as many orders as if it had any other card: kept every second time.
    - A shown bottom card may have come from below any of the jacks that lie next to it now. So an
      order of the deck with k jacks there stands for k + 1 deals, of up to `jacks` + 1.
    """
    for _ in range(num_twins(game, rules, viewer)):
        state, coin = random_below(state, np.uint64(2))
        if coin == 0:
            return state, False
    if game.bottom_card == NO_CARD:
        return state, True
    state = mix_hands(game, rules, state)
    state, number = random_below(state, np.uint64(jacks + 1))
    return state, number <= jacks_above_bottom(game, rules)


@inlined
def num_twins(game, rules, viewer):
    """Return how many cards that were played have a twin, unknown to the viewer, in the same hand.
    Hands lie as `lay_out_hands` leaves them."""
    twins = 0
    seat, after = game.dealer, NUM_STARTERS + (game.packet - 1) * packet_size(rules)
    for _ in range(rules.players):
        seat = next_seat(seat, rules)
        first, after = after, after + rules.hand_size
        if seat != viewer:
            held = after
            for _ in range(num_unknown_in_hand(game, seat)):
                held = place_before(game, rules, held)
            for place in range(first, held):
                for other in range(held, after):
                    if was_seen_to_lie(game, rules, place) or was_seen_to_lie(game, rules, other):
                        continue
                    twins += game.deck[place] == game.deck[other]
    return twins


@inlined
def mix_hands(game, rules, state):
    """Shuffle within every hand that was dealt, since nobody knows in which order its cards lay,
    but for a shown bottom card; return the next state."""
    for first in range(NUM_STARTERS, game.stock_start, rules.hand_size):
        size = min(rules.hand_size, rules.deck_size - 1 - first)
        for k in range(size - 1, 0, -1):
            state, other = random_below(state, np.uint64(k + 1))
            swap(game, first + k, first + np.int64(other))
    return state


@inlined
def jacks_above_bottom(game, rules):
    """Return how many jacks lie next to the bottom card."""
    place = rules.deck_size - 2
    while place >= NUM_STARTERS and is_jack(game.deck[place]):
        place -= 1
    return rules.deck_size - 2 - place
