"""The seats around the table: who sits there, a hand, and what the side has captured."""

from typing import NamedTuple

from pisti_env.knowledge import View
from pisti_env.render import card
from pisti_env.render.lettering import cut, lettered
from pisti_env.render.shown import Shown

STYLE = (
    ".pisti-plate{fill:#10402d}.pisti-turn{fill:#f7c948}.pisti-chip{fill:#fff;stroke:#10402d}"
    ".pisti-side0{fill:#8fd3ff}.pisti-side1{fill:#ffb07c}"
    ".pisti-slot{fill:none;stroke:#4f9474;stroke-dasharray:4 3}"
)

_PLATE_HEIGHT = 31
_PILE = 22  # the width of a pile of captured cards
_END, _NEXT_END = 13, 9.5  # what a crosswise card shows at the pile's left, and of the one below


class Spot(NamedTuple):
    """Where a seat's things are drawn."""

    plate: tuple[float, float]
    plate_width: float
    """In lengths of the plate, which `scale` makes larger."""
    hand: tuple[float, float]
    """The upper left corner of the room for four cards."""
    card_width: float
    step: float
    """How far a card of the hand is from the one before it."""
    pile: tuple[float, float]
    """The upper left corner of the captured cards."""
    scale: float
    """Of the plate."""
    pile_scale: float
    """Of the captured cards."""


def _row(y: float, plate_scale: float, card_width: float, pile_scale: float) -> Spot:
    """A plate, a hand and the captured cards, side by side."""
    step = card_width + 5
    left = 240 - (3 * step + card_width) / 2
    right = 480 - left
    height = card_width * card.HEIGHT / card.WIDTH
    plate_width = 100
    return Spot(
        plate=(
            left - 10 - plate_width * plate_scale,
            y + (height - _PLATE_HEIGHT * plate_scale) / 2,
        ),
        plate_width=plate_width,
        hand=(left, y),
        card_width=card_width,
        step=step,
        pile=(right + 14 + _END * pile_scale, y + (height - 30.8 * pile_scale) / 2),
        scale=plate_scale,
        pile_scale=pile_scale,
    )


def _block(x: float, y: float, scale: float) -> Spot:
    """A plate, and below it a hand and the captured cards."""
    width, below = 106, y + (_PLATE_HEIGHT + 5) * scale
    return Spot(
        plate=(x, y),
        plate_width=width,
        hand=(x, below),
        card_width=28 * scale,
        step=12.5 * scale,
        pile=(x + (width - _PILE - 1) * scale, below + 4 * scale),
        scale=scale,
        pile_scale=scale,
    )


_OWN = _row(276, 1.1, 52, 1.6)
_OPPOSITE = _row(11, 1.1, 41, 1.4)
_LEFT, _RIGHT = _block(8, 104, 1.04), _block(361.8, 104, 1.04)
# The others in playing order, from the viewer's right.
_OTHERS = {
    2: (_OPPOSITE,),
    3: (_block(289, 9, 1.15), _block(69, 9, 1.15)),
    4: (_RIGHT, _OPPOSITE, _LEFT),
    5: (_RIGHT, _block(262, 9, 1.12), _block(99, 9, 1.12), _LEFT),
    6: (_RIGHT, _block(361.8, 9, 1.04), _block(184.9, 9, 1.04), _block(8, 9, 1.04), _LEFT),
}


def draw_seats(shown: Shown) -> str:
    """Draw every seat: the viewer's at the bottom, the next ones counter-clockwise."""
    view = shown.view
    players, first = view.rules.players, view.viewer or 0
    parts = []
    for place, spot in enumerate((_OWN, *_OTHERS[players])):
        seat = (first + place) % players
        keeps = place < view.rules.sides  # of partners, the first keeps what both have captured
        parts += [_plate(shown, seat, spot, keeps), _hand(shown, seat, spot)]
        if keeps:
            parts.append(_captured(view, view.rules.side(seat), spot))
    return "".join(parts)


def _plate(shown: Shown, seat: int, spot: Spot, keeps: bool) -> str:
    """Draw who sits there, whether it is to play and has dealt, and the side's points."""
    view = shown.view
    side, turn, width = view.rules.side(seat), seat == view.to_play, spot.plate_width
    strong, soft = ("dark", "dark") if turn else ("light", "soft")
    parts = [
        f'<rect class="pisti-{"turn" if turn else "plate"}" width="{width}" '
        f'height="{_PLATE_HEIGHT}" rx="6"/>'
    ]
    left = 7.0
    if turn:
        parts.append(f'<path class="pisti-{strong}" d="M{left} 5.2v8.600l7.5-4.3z"/>')
        left += 11
    if view.rules.pairs:
        shape = f"M{left} 13.5l4.5-9 4.5 9z" if side == 0 else f"M{left} 5.2h8v8h-8z"
        parts.append(f'<path class="pisti-{"dark" if turn else f"side{side}"}" d="{shape}"/>')
        left += 12
    dealt = seat == view.dealer
    name = cut(shown.names[seat], 10.5, width - left - (18 if dealt else 6))
    parts.append(lettered(left, 13.2, name, strong, 10.5))
    if dealt:
        parts.append(
            f'<circle class="pisti-chip" cx="{width - 10}" cy="9.5" r="6.5"/>'
            + lettered(width - 10, 12.7, "D", "dark", 9, "middle")
        )
    count = view.public_points[side]
    match = view.rules.target is not None
    points = f"{count} {'pts' if match else 'point' if count == 1 else 'points'}"
    parts.append(lettered(7, 26, points if keeps else "partner", soft, 9.5))
    if keeps and match:
        score = f"match {view.match_scores[side]}"
        parts.append(lettered(width - 6, 26, score, soft, 9.5, "end"))
    return _at(spot.plate, spot.scale, "".join(parts))


def _hand(shown: Shown, seat: int, spot: Spot) -> str:
    """Draw a hand, face up where it is known."""
    hand, count = shown.hands[seat], shown.view.hand_sizes[seat]
    (x, y), width = spot.hand, spot.card_width
    if spot.step > width:  # in a row of its own, in the middle
        x += (4 - count) * spot.step / 2
    places = [x + place * spot.step for place in range(count)]
    if hand is None:
        return "".join(card.back(place, y, width) for place in places)
    return "".join(card.face(one, x, y, width) for one, x in zip(hand, places, strict=True))


def _captured(view: View, side: int, spot: Spot) -> str:
    """Draw the captured cards of a side: a pile with its size, and a card laid crosswise
    under it for each pişti, with the points that it brought; one of jack on jack is golden."""
    height = _PILE * card.HEIGHT / card.WIDTH
    if not view.captured[side]:
        slot = f'<rect class="pisti-slot" width="{_PILE}" height="{height:g}" rx="3"/>'
        return _at(spot.pile, spot.pile_scale, slot)
    rules = view.rules
    marks = [("jack", rules.jack_pisti_points)] * view.jack_pistis[side]
    marks += [("rank", rules.pisti_points)] * view.pistis[side]
    laid = marks[:3]
    bottom = min(height, (height + 17 + _NEXT_END * (len(laid) - 1)) / 2) - 17
    parts = []
    for place, (kind, points) in enumerate(laid):
        y = bottom - _NEXT_END * (len(laid) - 1 - place)
        golden = " pisti-jack" if kind == "jack" else ""
        parts.append(
            f'<rect class="pisti-face{golden}" data-pisti="{kind}" x="-{_END}" y="{y:.4g}" '
            f'width="30" height="17" rx="2.2"/>'
            + lettered(1 - _END, y + 8, str(points), "ink", 8 if points < 100 else 6)
        )
    if len(marks) > len(laid):
        parts.append(lettered(-_END, height + 9, f"+{len(marks) - len(laid)}", "light", 8.5))
    parts.append(
        card.back(0, 0, _PILE)
        + f'<rect class="pisti-plate" x="2.5" y="{height / 2 - 7:.4g}" width="17" height="14" '
        'rx="3.5"/>'
        + lettered(_PILE / 2, height / 2 + 3.7, str(view.captured[side]), "light", 10, "middle")
    )
    return _at(spot.pile, spot.pile_scale, "".join(parts))


def _at(place: tuple[float, float], scale: float, drawn: str) -> str:
    return f'<g transform="translate({place[0]:.4g} {place[1]:.4g}) scale({scale:g})">{drawn}</g>'
