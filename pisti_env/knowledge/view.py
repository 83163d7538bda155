"""A view holds all that the perfect memory of a seat, or a spectator, has kept of the deal, and
nothing else. Every display is drawn from one."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pisti_env import game as engine
from pisti_env.cards import NO_CARD
from pisti_env.compiled_rules import compiled_rules
from pisti_env.game import FACE_DOWN, NOBODY, STARTER
from pisti_env.rules import NUM_STARTERS, Rules


class Gain(NamedTuple):
    """Points that a side has gained, and for what."""

    side: int
    points: int
    reason: str
    """`"cards"`: card points of the pile's face-up part and the card that captured it; `"pisti"`,
    `"jack_pisti"`, `"jack_takes_single"`: a pişti by equal rank, of jack on jack, of a jack on
    another card; `"ten_of_diamonds"`: the bonus for a pişti with that card; and in the score of the
    deal `"sweep"`: card points of what lay there at the end; `"starters"`: those of the face-down
    starters; `"majority"`: most cards."""


@dataclass(frozen=True)
class LastPlay:
    """What the deal's last play did, as far as the viewer knows."""

    seat: int
    """Who played."""
    card: int
    """What was played."""
    captured: tuple[int, ...]
    """The captured cards that the viewer knows: face-down starters in deal order, then the pile
    from bottom to top, then the card played; empty if the play captured nothing."""
    captured_size: int
    """How many cards were captured, those included that the viewer does not know."""
    gains: tuple[Gain, ...]
    """The public points that the play brought, and if it ended the deal, those of the score."""


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
    rules: Rules
    """The rules that are played."""
    viewer: int | None
    """Whose view this is: a seat, or None for what everyone knows."""
    last_play: LastPlay | None
    """What the last play of this deal did, None before the first."""

    def _repr_svg_(self) -> str:
        """Return the picture of this view, for a notebook."""
        from pisti_env.render import svg  # which draws views, so it imports this module

        return svg(self)


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
    known_starters = tuple(deck[:FACE_DOWN].tolist()) if knows else ()
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
        known_starters=known_starters,
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
        rules=rules,
        viewer=seat,
        last_play=_last_play(games, rules, known_starters),
    )


def hand_of(games: np.ndarray, seat: int) -> list[int]:
    """Return a seat's cards at the one table of `games`, sorted."""
    return sorted(games["hands"][0, seat, : games["hand_sizes"][0, seat]].tolist())


def _last_play(games: np.ndarray, rules: Rules, known_starters: tuple[int, ...]) -> LastPlay | None:
    """Return what the last play did at the one table of `games`, None if there was none."""
    plays = games["plays"][0, : games["num_plays"][0]].tolist()
    if not plays:
        return None
    *earlier, card = plays
    seat = (int(games["dealer"][0]) + len(plays)) % rules.players
    pile, starters_down = _pile_after(int(games["deck"][0, STARTER]), earlier)
    captured: list[int] = []
    captured_size = 0
    gains: list[Gain] = []
    if pile and engine.captures(card, pile[-1]):
        captured = [*(known_starters if starters_down else ()), *pile, card]
        captured_size = len(pile) + 1 + (FACE_DOWN if starters_down else 0)
        side = rules.side(seat)
        gains.append(Gain(side, sum(map(rules.card_points, [*pile, card])), "cards"))
        gains += _pisti(rules, seat, plays, pile[-1], captured_size - 1)
        pile = []
    else:
        pile = [*pile, card]
    if games["scored"][0]:
        gains += _score(games, rules, pile)
    gains = [gain for gain in gains if gain.points]
    return LastPlay(seat, card, tuple(captured), captured_size, tuple(gains))


def _pile_after(starter: int, plays: list[int]) -> tuple[list[int], bool]:
    """Return the face-up part of the pile after some plays, bottom to top, and whether the starters
    lie under it."""
    pile, starters_down = [starter], True
    for card in plays:
        if pile and engine.captures(card, pile[-1]):
            pile, starters_down = [], False
        else:
            pile.append(card)
    return pile, starters_down


def _pisti(rules: Rules, seat: int, plays: list[int], top: int, size: int) -> list[Gain]:
    """Return what the last of the plays has gained, which captured a pile of this size, beyond the
    points of the cards."""
    side, game = rules.side(seat), np.zeros(1, engine.GAME)[0]
    game.num_plays = len(plays)
    engine.score_pisti(game, compiled_rules(rules)[0], seat, plays[-1], top, size)
    points = int(game.public_points[side])
    if game.pistis[side]:
        bonus = points - rules.pisti_points
        return [Gain(side, rules.pisti_points, "pisti"), Gain(side, bonus, "ten_of_diamonds")]
    return [Gain(side, points, "jack_pisti" if game.jack_pistis[side] else "jack_takes_single")]


def _score(games: np.ndarray, rules: Rules, pile: list[int]) -> list[Gain]:
    """Return what the score of the finished deal has added, the pile being what lay there."""
    deck, last, taker = games["deck"][0], games["last_capturer"][0], games["starters_taker"][0]
    sweeper = rules.side(int(games["dealer"][0] if last == NOBODY else last))
    swept = list(pile)
    if rules.leftovers == "sweep":
        swept += deck[NUM_STARTERS + rules.num_plays : rules.deck_size].tolist()
    gains = [Gain(sweeper, sum(map(rules.card_points, swept)), "sweep")]
    starters = sum(map(rules.card_points, deck[:FACE_DOWN].tolist()))
    gains.append(Gain(rules.side(int(taker)), starters, "starters"))
    after = games.copy()[0]
    before = after.public_points.tolist()
    engine.score_majority(after, compiled_rules(rules)[0])
    return gains + [
        Gain(side, int(points) - before[side], "majority")
        for side, points in enumerate(after.public_points)
    ]
