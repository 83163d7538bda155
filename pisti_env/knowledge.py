"""What a seat, or a spectator, knows of a table: `View`.

A view holds all that a perfect memory has kept of the deal and nothing else. Every display is drawn
from one.
"""

from dataclasses import dataclass

import numpy as np

from pisti_env.cards import NO_CARD
from pisti_env.game import FACE_DOWN, NOBODY, STARTER
from pisti_env.rules import Rules


@dataclass(frozen=True)
class View:
    """What one seat knows; with hand None, what everyone knows. Cards are ints, seats too."""

    hand: tuple[int, ...] | None
    """Own cards, sorted."""
    pile: tuple[int, ...]
    """The face-up part, bottom to top."""
    pile_size: int
    """Cards on the table, face-down ones included."""
    stock_size: int
    """Cards not yet dealt."""
    hand_sizes: tuple[int, ...]
    """Per seat."""
    captured: tuple[int, ...]
    """Captured cards, per side."""
    public_points: tuple[int, ...]
    """Per side, without the three face-down starters until the deal is scored."""
    pistis: tuple[int, ...]
    """By equal rank, no jacks; per side."""
    jack_pistis: tuple[int, ...]
    """Jack on jack; per side."""
    known_starters: tuple[int, ...]
    """The three face-down starters in deal order, once the viewer knows them; else empty."""
    shown_jacks: tuple[int, ...]
    """Jacks turned up before the starter, in that order."""
    bottom_card: int | None
    """The card shown at the stock's bottom at the start of the deal."""
    last_capturer: int | None
    """The seat that captured last in this deal."""
    dealer: int
    """The seat that dealt."""
    to_play: int | None
    """The seat whose turn it is, None once the episode is over."""
    packet: int
    """Number of the packet, from 1."""
    plays: tuple[tuple[int, int], ...]
    """Every play of the deal in order: seat and card."""
    match_scores: tuple[int, ...]
    """Per side: starting scores and every scored deal."""
    last_deal: tuple[dict[str, int], ...] | None
    """The score of the newest finished deal of the episode, per side."""
    starter: int
    """The starter that was turned up and stayed so."""


def make_view(
    games: np.ndarray,
    rules: Rules,
    seat: int | None,
    last_deal: list[dict[str, int]] | None,
) -> View:
    """Return what `seat` (None: everyone) knows at the one table of `games`."""

    def number(field: str) -> int:
        return int(games[field][0])  # an attribute of the record would take ten times as long

    def per_side(field: str) -> tuple[int, ...]:
        return tuple(games[field][0, : rules.sides].tolist())

    deck = games["deck"][0]
    leader = number("dealer") + 1
    plays = games["plays"][0, : number("num_plays")].tolist()
    pile = plays[number("pile_start") :]
    starters_down = number("starters_down")
    if starters_down:
        pile.insert(0, int(deck[STARTER]))
    knowing = games["knows_starters"][0, : rules.players]
    knows = knowing.all() if seat is None else knowing[seat]  # no side alone knows less than all
    bottom_card, last_capturer, to_play = map(number, ("bottom_card", "last_capturer", "to_play"))
    return View(
        hand=None if seat is None else tuple(hand_of(games, seat)),
        pile=tuple(pile),
        pile_size=len(pile) + FACE_DOWN * starters_down,
        stock_size=rules.deck_size - number("stock_start"),
        hand_sizes=tuple(games["hand_sizes"][0, : rules.players].tolist()),
        captured=per_side("captured"),
        public_points=per_side("public_points"),
        pistis=per_side("pistis"),
        jack_pistis=per_side("jack_pistis"),
        known_starters=tuple(deck[:FACE_DOWN].tolist()) if knows else (),
        shown_jacks=tuple(games["shown_jacks"][0, : number("num_shown_jacks")].tolist()),
        bottom_card=None if bottom_card == NO_CARD else bottom_card,
        last_capturer=None if last_capturer == NOBODY else last_capturer,
        dealer=number("dealer"),
        to_play=None if to_play == NOBODY else to_play,
        packet=number("packet"),
        plays=tuple(((leader + turn) % rules.players, card) for turn, card in enumerate(plays)),
        match_scores=per_side("match_points"),
        last_deal=None if last_deal is None else tuple(dict(side) for side in last_deal),
        starter=int(deck[STARTER]),
    )


def hand_of(games: np.ndarray, seat: int) -> list[int]:
    """Return a seat's cards at the one table of `games`, sorted."""
    return sorted(games["hands"][0, seat, : games["hand_sizes"][0, seat]].tolist())
