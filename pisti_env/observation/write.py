"""How the pieces of an observation are written: one compiled function for each group of them."""

from typing import NamedTuple

import numpy as np

from pisti_env.cards import JACK, NO_CARD, NUM_KINDS, NUM_RANKS
from pisti_env.compile import at, compiled, inlined
from pisti_env.compiled_rules import PILE
from pisti_env.counts import KIND_BITS, ONE_OF_CARD, count_of
from pisti_env.game import (
    FACE_DOWN,
    MAX_HAND,
    NOBODY,
    STARTER,
    is_jack,
    next_seat,
    pile_size,
    side_of,
)
from pisti_env.loops import lowest_card, play_table
from pisti_env.observation.pieces import ABSENT
from pisti_env.rules import NUM_STARTERS


class Seen(NamedTuple):
    """What the seats to play observe: arrays with a row for each table, rewritten in place."""

    seats: np.ndarray
    """(n,) int8: who is to play."""
    legal: np.ndarray
    """(n,) int64: the legal actions, bit a for action a."""
    observations: np.ndarray
    """(n, d) float32."""
    masks: np.ndarray
    """(n, a) int8: the legal actions."""


@compiled
def encode_rows(games, compiled_rules, layouts, rows, seats, observations):
    """Set `observations` (k, d) to what `seats` (k,) know at the tables `rows` (k,)."""
    for k in range(len(rows)):
        write_row(
            games[rows[k]], compiled_rules[0], layouts[0], np.int64(seats[k]), observations[k]
        )


@compiled
def mask_rows(games, layouts, rows, masks):
    """Set `masks` (k, a) to the legal actions at the tables `rows` (k,)."""
    for k in range(len(rows)):
        write_mask(games[rows[k]], layouts[0], masks[k])


@compiled
def observe_rows(games, compiled_rules, layouts, rows, seen):
    """Rewrite what is `seen` at the tables `rows` (k,), where it is someone's turn."""
    for i in rows:
        observe_table(games[at(i)], compiled_rules[0], layouts[0], at(i), seen)


@compiled
def play_and_observe(games, compiled_rules, layouts, rows, actions, played, seen):
    """Play `actions` (n,), which are legal, at the tables `rows` (k,); then rewrite what is `seen`
    there, but where the deal is scored now.

    One table after the other, so that what is read and written of it stays in the processor's cache
    meanwhile.
    """
    rules, layout = compiled_rules[0], layouts[0]
    for row in rows:
        i = at(row)
        card = lowest_card(games[i], actions[i], layout.action_of)
        play_table(games[i], rules, card, i, played)
        if not played.scored[i]:
            observe_table(games[i], rules, layout, i, seen)


@inlined
def observe_table(game, rules, layout, i, seen):
    """Rewrite what is seen at a table, number `i`."""
    seen.seats[i] = game.to_play
    write_row(game, rules, layout, np.int64(game.to_play), seen.observations[i])
    seen.legal[i] = write_mask(game, layout, seen.masks[i])


@compiled
def find_illegal(actions, legal, layouts):
    """Return the first place where `actions` (n,) has none of those that `legal` (n,) has as bits,
    see `write_mask`; -1 for none."""
    for i in range(len(actions)):
        action = actions[i]
        if action < 0 or action >= layouts[0].num_actions or (legal[i] >> action) & 1 == 0:
            return i
    return -1


@inlined
def write_row(game, rules, layout, me, row):
    """Set an observation, `row` (d,), to what the seat `me` knows."""
    clear(row, 0, layout.numbers)
    write_hand(game, layout, me, row)
    write_table(game, layout, row)
    write_packet(game, rules, layout, me, row)
    write_seen(game, rules, layout, me, row)
    write_sizes(game, rules, layout, me, row)
    write_sides(game, rules, layout, me, row)
    if layout.jacks_seen != ABSENT:
        write(jacks_seen(game, rules, me), layout.jacks_seen, layout, row)
    if layout.history_seats != ABSENT:
        write_history(game, rules, layout, me, row)
    if layout.stock != ABSENT:
        write_hidden(game, rules, layout, row)


@inlined
def clear(row, first, stop):
    """Set the numbers from `first` to before `stop` to 0."""
    for place in range(first, stop):
        row[at(place)] = 0


@inlined
def write(count, place, layout, row):
    """Write a count at a place."""
    row[at(place)] = np.float32(count) * layout.scales[at(place)]


@inlined
def write_kinds(kinds, start, layout, row):
    """Write how many there are of each kind, two at a time."""
    for pair in range(NUM_KINDS // 2):
        byte = at((kinds >> (2 * KIND_BITS * pair)) & 255)
        row[at(start + 2 * pair)] = layout.of_byte[byte, 0]
        row[at(start + 2 * pair + 1)] = layout.of_byte[byte, 1]
    last = NUM_KINDS - 1
    row[at(start + last)] = layout.of_byte[at(count_of(last, kinds)), 0]


@inlined
def add(place, layout, row):
    """Count one more at a place."""
    row[at(place)] += layout.scales[at(place)]


@inlined
def write_cards(game, with_starter, first, stop, start, layout, row):
    """Count cards by face: the plays from `first` to before `stop`, and perhaps the starter."""
    scale = layout.scales[start]
    if with_starter:
        row[at(start + game.deck[STARTER])] += scale
    for k in range(first, stop):
        row[at(start + game.plays[at(k)])] += scale


@inlined
def relative(seat, me, players):
    """Return how many seats after `me` a seat is, 0 to players - 1; `seat` may be `players`.

    Far quicker than a remainder, which is most of the cost of a row otherwise.
    """
    ahead = seat - me
    if ahead < 0:
        return ahead + players
    return ahead if ahead < players else ahead - players


@inlined
def write_mask(game, layout, mask):
    """Set `mask` (a,) int8 to the legal actions of the seat whose turn it is. Return them as bits,
    bit a for action a."""
    clear(mask, 0, layout.num_actions)
    legal, seat = np.int64(0), game.to_play
    if seat != NOBODY:
        size = game.hand_sizes[at(seat)]
        for held in range(MAX_HAND):
            if held < size:
                action = layout.action_of[at(game.hands[at(seat), held])]
                mask[at(action)] = 1
                legal |= 1 << action
    return legal


@inlined
def hand_kinds(game, seat):
    """Return how many of each kind a seat holds."""
    kinds, size = 0, game.hand_sizes[at(seat)]
    for held in range(MAX_HAND):
        if held < size:
            kinds += ONE_OF_CARD[at(game.hands[at(seat), held])]
    return kinds


@inlined
def write_hand(game, layout, me, row):
    """Write what the observer holds."""
    if layout.hand == ABSENT:
        return
    if layout.faces:
        for held in range(game.hand_sizes[at(me)]):
            add(layout.hand + game.hands[at(me), held], layout, row)
    else:
        write_kinds(hand_kinds(game, me), layout.hand, layout, row)


@inlined
def write_table(game, layout, row):
    """Write the top card, the face-up pile, and what was put face up so far."""
    if layout.top != ABSENT and game.top != NO_CARD:
        row[at(layout.top + layout.action_of[at(game.top)])] = 1
    if layout.pile != ABSENT:
        if layout.faces:
            first, stop = game.pile_start, game.num_plays
            write_cards(game, game.starters_down, first, stop, layout.pile, layout, row)
        else:
            write_kinds(game.pile_kinds, layout.pile, layout, row)
    if layout.played != ABSENT:
        if layout.faces:
            write_cards(game, 1, 0, game.num_plays, layout.played, layout, row)
        else:
            write_kinds(game.played_kinds, layout.played, layout, row)


@inlined
def write_seen(game, rules, layout, me, row):
    """Write the cards seen elsewhere: the face-down starters once they are known, jacks that were
    shown and the bottom card, unless the observer holds them or they have been played."""
    if layout.known_starters == ABSENT:
        return
    knows = game.knows_starters[at(me)]
    if layout.faces:
        for place in range(FACE_DOWN * knows):
            add(layout.known_starters + game.deck[place], layout, row)
    else:
        kinds = 0
        for place in range(FACE_DOWN):
            kinds += ONE_OF_CARD[game.deck[place]] * knows  # NO_CARD, where nobody knows it yet
        write_kinds(kinds, layout.known_starters, layout, row)
    if not knows and rules.starter_jack == PILE:
        for k in range(game.num_shown_jacks):
            add_shown(game.shown_jacks[k], layout, row)
    for k in range(game.num_exposed):
        holder = game.exposed_holders[k]
        if holder != me:
            card = game.exposed[k]
            if rules.bottom_card_shown:
                row[layout.bottom_card + layout.action_of[at(card)]] = 1
            else:
                add_shown(card, layout, row)
            if holder != NOBODY:
                add(layout.exposed_in_hands + relative(holder, me, rules.players), layout, row)


@inlined
def add_shown(jack, layout, row):
    """Count a shown jack, by suit or in all."""
    add(layout.shown + (jack // NUM_RANKS if layout.faces else 0), layout, row)


@inlined
def jacks_seen(game, rules, me):
    """Return how many jacks a seat has seen: in hand, played, turned up, in known starters."""
    seen = count_of(JACK, game.played_kinds)
    for held in range(game.hand_sizes[at(me)]):
        seen += is_jack(game.hands[at(me), held])
    if game.knows_starters[at(me)]:
        for place in range(FACE_DOWN):
            seen += is_jack(game.deck[place])
    elif rules.starter_jack == PILE:
        seen += game.num_shown_jacks
    for k in range(game.num_exposed):
        if game.exposed_holders[k] != me:
            seen += is_jack(game.exposed[k])
    return seen


@inlined
def write_packet(game, rules, layout, me, row):
    """Write the table as it was when the packet was dealt, and the plays since."""
    if layout.packet_pile == ABSENT:
        return
    down, pile_start = game.packet_starters_down, game.packet_pile_start
    first = (game.packet - 1) * rules.players * rules.hand_size
    if layout.faces:
        write_cards(game, down, pile_start, first, layout.packet_pile, layout, row)
    else:
        write_kinds(game.packet_kinds, layout.packet_pile, layout, row)
    row[at(layout.packet_top)] = layout.named[game.packet_top]
    leader = relative(game.dealer + 1, me, rules.players)
    seat, turn = leader, 0
    for k in range(first, game.num_plays):
        place = layout.packet_plays + seat * rules.hand_size + turn
        row[at(place)] = layout.named[at(game.plays[at(k)])]
        seat = next_seat(seat, rules)
        turn += seat == leader


@inlined
def write_sizes(game, rules, layout, me, row):
    """Write how many cards lie where, who captured last, who dealt, the packet, the target."""
    if layout.pile_size != ABSENT:
        write(pile_size(game), layout.pile_size, layout, row)
    if layout.stock_size == ABSENT:
        return
    write(rules.deck_size - game.stock_start, layout.stock_size, layout, row)
    seat = me
    for ahead in range(rules.players):
        write(game.hand_sizes[at(seat)], layout.hand_sizes + ahead, layout, row)
        row[at(layout.last_capturer + ahead)] = seat == game.last_capturer
        row[at(layout.dealer + ahead)] = seat == game.dealer
        seat = next_seat(seat, rules)
    write(game.packet, layout.packet, layout, row)
    write(rules.target, layout.target, layout, row)


@inlined
def write_sides(game, rules, layout, me, row):
    """Write what each side has, in this deal and in the match."""
    if layout.captured == ABSENT:
        return
    side = side_of(me, rules)
    most = rules.target + rules.max_deal_points
    for ahead in range(rules.sides):
        write(game.captured[at(side)], layout.captured + ahead, layout, row)
        write(game.public_points[at(side)], layout.public_points + ahead, layout, row)
        write(game.pistis[at(side)], layout.pistis + ahead, layout, row)
        write(game.jack_pistis[at(side)], layout.jack_pistis + ahead, layout, row)
        match_points = min(game.match_points[at(side)], most)
        write(match_points, layout.match_scores + ahead, layout, row)
        side = side + 1 if side + 1 < rules.sides else 0


@inlined
def write_history(game, rules, layout, me, row):
    """Write what was turned up, in order, and every play of the deal."""
    row[at(layout.starter)] = layout.named[game.deck[STARTER]]
    if game.knows_starters[at(me)]:
        for place in range(FACE_DOWN):
            row[at(layout.starter_order + place)] = layout.named[game.deck[place]]
    for k in range(game.num_shown_jacks):
        row[at(layout.jack_order + k)] = layout.named[game.shown_jacks[k]]
    if rules.bottom_card_shown:
        row[at(layout.bottom_card_of_deal)] = layout.named[game.bottom_card]
    seat = relative(game.dealer + 1, me, rules.players)
    for k in range(game.num_plays):
        write(seat + 1, layout.history_seats + k, layout, row)
        seat = next_seat(seat, rules)
        row[at(layout.history_cards + k)] = layout.named[at(game.plays[at(k)])]


@inlined
def write_hidden(game, rules, layout, row):
    """Write what no seat knows: every hand, the face-down starters, the stock, true points."""
    for seat in range(rules.players):
        start = layout.hands + seat * layout.num_actions
        for held in range(game.hand_sizes[seat]):
            add(start + layout.action_of[at(game.hands[seat, held])], layout, row)
    for place in range(FACE_DOWN):
        add(layout.starters + layout.action_of[at(game.deck[place])], layout, row)
    for place in range(game.stock_start, rules.deck_size):
        row[at(layout.stock + place - NUM_STARTERS)] = layout.named[game.deck[place]]
    hidden = game.starters_taker != NOBODY and not game.scored
    for side in range(rules.sides):
        points = game.public_points[side]
        if hidden and side_of(game.starters_taker, rules) == side:
            for place in range(FACE_DOWN):
                points += rules.card_points[game.deck[place]]
        write(points, layout.points + side, layout, row)
    if game.to_play != NOBODY:
        row[layout.to_play + game.to_play] = 1
