"""The game at many tables: compiled loops that deal and play at the rows of arrays of tables.

How one table is played is in `game.py`; nothing here knows a rule. `games` (n,) are the tables'
records, of `game.GAME`, and `rows` (k,) int64 the numbers of those that are dealt or played at.
"""

from typing import NamedTuple

import numpy as np

from pisti_env.cards import NO_CARD, NUM_CARDS
from pisti_env.compile import compiled, inlined
from pisti_env.game import MAX_HAND, NOBODY, deal, match_over, play, share_win


class Played(NamedTuple):
    """What came of a play: arrays with a row for each table, rewritten in place."""

    gains: np.ndarray
    """(n, sides) int64: what each side's public points gained: what everyone saw at once, and the
    rest when the play ended the deal and scored it."""
    margins: np.ndarray
    """(n, sides) float32: each side's gain less the mean gain of the others."""
    scored: np.ndarray
    """(n,) bool: whether the deal is over."""
    over: np.ndarray
    """(n,) bool: whether the match is over, too."""
    shares: np.ndarray
    """(n, sides) float64: if it is, each side's share of the win."""


@compiled
def deal_rows(games, compiled_rules, rows, decks, dealers, dealt):
    """Deal `decks` (n, deck_size), dealt by `dealers` (n,), at the tables `rows` (k,); `dealt` (n,)
    bool is False there where no starter could be turned up."""
    for i in rows:
        dealt[i] = deal(games[i], compiled_rules[0], decks[i], dealers[i])


@compiled
def play_rows(games, compiled_rules, rows, cards, played):
    """Play `cards` (n,) at the tables `rows` (k,), and set what was `played` there."""
    for i in rows:
        play_table(games[i], compiled_rules[0], cards[i], i, played)


@compiled
def choose_cards(games, rows, actions, action_of, cards):
    """Find the card of every action (k,) at the tables `rows` (k,): the lowest of the hand to play
    that has this action.

    `action_of` (52,) maps a card to its action. `cards` (n,) receives the cards there. Returns the
    index in `rows` of the first table whose action is no card of the hand, -1 if there is none.
    """
    for i in range(len(rows)):
        card = lowest_card(games[rows[i]], actions[i], action_of)
        if card == NO_CARD:
            return i
        cards[rows[i]] = card
    return -1


@inlined
def lowest_card(game, action, action_of):
    """Return the lowest card of the hand to play that has this action, NO_CARD if none has."""
    if game.to_play == NOBODY:
        return NO_CARD
    lowest, size = NUM_CARDS, game.hand_sizes[game.to_play]
    for held in range(MAX_HAND):
        card = game.hands[game.to_play, held]
        if held < size and action_of[card] == action:
            lowest = min(lowest, card)
    return lowest if lowest < NUM_CARDS else NO_CARD


@inlined
def play_table(game, rules, card, i, played):
    """Play a card at a table, number `i`, and set what was `played` there."""
    gains, margins = played.gains[i], played.margins[i]
    for side in range(rules.sides):
        gains[side] = -game.public_points[side]
    play(game, rules, card)
    total = 0
    for side in range(rules.sides):
        gains[side] += game.public_points[side]
        total += gains[side]
    for side in range(rules.sides):
        margins[side] = gains[side] - (total - gains[side]) / (rules.sides - 1)
    played.scored[i] = game.scored == 1
    played.over[i] = game.scored == 1 and match_over(game.match_points, rules)
    if played.over[i]:
        share_win(game.match_points, rules, played.shares[i])


@compiled
def find_decided(totals, compiled_rules, over):
    """Tell which matches would be over with these points (n, sides) int64 after a deal."""
    for i in range(len(totals)):
        over[i] = match_over(totals[i], compiled_rules[0])
