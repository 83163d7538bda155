"""The picture of a view, as SVG: a table from above.

The viewer sits at the bottom, a spectator behind seat 0, and the next seats follow
counter-clockwise, as they play. Every seat has a plate (name, points, whose turn it is, who dealt),
a hand and, where it keeps its side's captured cards, the pile of those, with a card laid crosswise
for every pişti. In the middle lie the stock and the pile, or what the last play has taken from it,
and below them one sentence on the last play. At the end a sheet of the score takes their place.

Lengths are in a picture of 480 by 360.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pisti_env.checks import is_int
from pisti_env.knowledge import View
from pisti_env.quote import quote
from pisti_env.render import card
from pisti_env.render.text import as_text, seat_names, tell_play

WIDTH, HEIGHT = 480, 360
SMALLEST, LARGEST = 120, 4096  # of a picture's width, in pixels

FONT = "Inter Semi Bold"  # in the file beside this one, for pixels; browsers take what they have

_STYLE = (
    f"text{{font-family:'{FONT}',Inter,'Segoe UI',Roboto,system-ui,sans-serif;font-weight:600}}"
    ".pisti-rank{font-size:15px;text-anchor:middle}"
    ".pisti-felt{fill:#1f6e4c}.pisti-rim{fill:none;stroke:#174f38;stroke-width:6}"
    ".pisti-well{fill:#195c40}.pisti-slot{fill:none;stroke:#5fa585;stroke-dasharray:4 3}"
    ".pisti-plate{fill:#0f3a29}.pisti-turn{fill:#f6c945}"
    ".pisti-light{fill:#fff}.pisti-dark{fill:#1b1604}.pisti-soft{fill:#bfe0cf}"
    ".pisti-gold{fill:none;stroke:#ffcf3f;stroke-width:2.6}"
    ".pisti-side0{fill:#8fd3ff}.pisti-side1{fill:#ffb98a}"
    ".pisti-sheet{fill:#0f3a29}.pisti-best{fill:#f6c945}"
)
_DARK = (
    ".pisti-felt{fill:#153f2e}.pisti-rim{stroke:#0d291e}.pisti-well{fill:#113526}"
    ".pisti-slot{stroke:#3f7059}"
)

# A seat's box, before it is scaled: a plate, and below it the hand and the captured cards.
_PLATE = 17
_CARD = 30  # the width of a card in a hand
_HAND_TOP = _PLATE + 4
_BOX_HEIGHT = _HAND_TOP + _CARD * card.HEIGHT / card.WIDTH
_STACK = 28  # the room for captured cards, and the gap before it
_GAP = 7


class Box(NamedTuple):
    """Where a seat's things are drawn."""

    x: float
    """The left edge."""
    y: float
    scale: float
    step: float
    """How far a card of the hand is from the one before it, when there are four."""

    @property
    def width(self) -> float:
        """Before it is scaled."""
        return _CARD + 3 * self.step + _GAP + _STACK


def _centred(x: float, y: float, scale: float, step: float) -> Box:
    box = Box(0, y, scale, step)
    return box._replace(x=x - box.width * scale / 2)


_OWN = _centred(240, 257, 1.5, 25)
_LEFT, _RIGHT = Box(7, 118, 1, 11), Box(375, 118, 1, 11)
# The others in playing order, from the viewer's right.
_OTHERS = {
    2: (_centred(240, 7, 1.3, 22),),
    3: (_centred(357, 7, 1.3, 18), _centred(123, 7, 1.3, 18)),
    4: (_RIGHT, _centred(240, 7, 1.2, 18), _LEFT),
    5: (_RIGHT, _centred(350, 7, 1.12, 14), _centred(130, 7, 1.12, 14), _LEFT),
    6: (_RIGHT, Box(371, 7, 1, 12), _centred(240, 7, 1, 12), Box(6, 7, 1, 12), _LEFT),
}

# The middle.
_STOCK = (122, 136)
_PILE_LEFT, _PILE_RIGHT, _PILE_TOP, _PILE_CARD = 172, 366, 130, 43
_PILE_BOTTOM = _PILE_TOP + _PILE_CARD * card.HEIGHT / card.WIDTH
_FANNED = 9  # the newest cards of a pile, which can be read; of older ones the edges are seen
_CAPTION = 238  # where the sentence on the last play stands


class Shown(NamedTuple):
    """What is drawn: a view, and what is revealed beyond it."""

    view: View
    hands: tuple[tuple[int, ...] | None, ...]
    """Per seat; None lies face down."""
    starters: tuple[int, ...]
    """The face-down starters, if they are shown."""
    names: tuple[str, ...]
    """Per seat."""


def svg(
    view: View,
    size: int = 480,
    reveal: Iterable[View] | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """Return the picture of a view as SVG, `size` pixels wide and three quarters as high.

    Shown is what the view holds and nothing else; `reveal` has the views of other seats at the same
    moment, whose hands and known starters are shown too. `names` are to be written on the plates in
    place of "seat 0", "seat 1", …, a text per seat. The picture refers to nothing outside itself;
    where its reader asks for dark colours, it is darker.

    Raises `ValueError` for a size that is no int from 120 to 4096, and for views or names that do
    not belong to this table.
    """
    shown = check_shown(view, reveal, names)
    if not is_int(size) or not SMALLEST <= size <= LARGEST:
        raise ValueError(
            f"size is {quote(size)}; expected an int from {SMALLEST} to {LARGEST}, the width in "
            "pixels"
        )
    title = f"Pişti, {view.rules.players} players, packet {view.packet}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{size}" '
        f'height="{size * HEIGHT // WIDTH}" role="img">',
        f"<title>{title}</title><desc>{_escaped(as_text(view, reveal, names))}</desc>",
        f"<style>{_STYLE}{card.STYLE}@media (prefers-color-scheme:dark){{{_DARK}"
        f"{card.DARK_STYLE}}}</style><defs>{card.definitions()}</defs>",
        f'<rect class="pisti-felt" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<rect class="pisti-rim" x="3" y="3" width="{WIDTH - 6}" height="{HEIGHT - 6}"/>',
        *(_seat(shown, seat, box) for seat, box in _boxes(view).items()),
        _sheet(shown) if view.to_play is None else _middle(shown),
        _caption(shown),
        "</svg>",
    ]
    return "".join(parts)


def check_shown(view: View, reveal: Iterable[View] | None, names: Sequence[str] | None) -> Shown:
    """Return what is to be drawn; raise `ValueError` for what is no view, and for other views and
    names that are not of its table."""
    if not isinstance(view, View):
        raise ValueError(f"view is {quote(view)}; expected a View, as view(seat) returns it")
    hands: list[tuple[int, ...] | None] = [None] * view.rules.players
    starters: tuple[int, ...] = ()
    for one in (view, *(() if reveal is None else reveal)):
        same = isinstance(one, View) and (one.rules, one.dealer, one.starter, one.plays) == (
            view.rules,
            view.dealer,
            view.starter,
            view.plays,
        )
        if not same:
            raise ValueError(
                f"reveal has {quote(one)}; expected views of other seats at the same moment of the "
                "same deal"
            )
        if one.viewer is not None:
            hands[one.viewer] = one.hand
        starters = starters or one.known_starters
    return Shown(view, tuple(hands), starters, seat_names(view.rules, names))


def _boxes(view: View) -> dict[int, Box]:
    """Return where each seat is drawn."""
    players, first = view.rules.players, view.viewer or 0
    boxes = (_OWN, *_OTHERS[players])
    return {(first + place) % players: box for place, box in enumerate(boxes)}


# A seat.


def _seat(shown: Shown, seat: int, box: Box) -> str:
    """Draw a seat's plate, hand and captured cards."""
    view = shown.view
    side = view.rules.side(seat)
    parts = [_plate(shown, seat, box), _hand(shown, seat, box)]
    if seat == side:  # of partners, the first keeps what both have captured
        parts.append(_captured(view, side, box))
    return (
        f'<g transform="translate({box.x:g} {box.y:g}) scale({box.scale:g})">{"".join(parts)}</g>'
    )


def _plate(shown: Shown, seat: int, box: Box) -> str:
    """Draw who sits there, whether it is to play and has dealt, and the side's points."""
    view = shown.view
    side, turn = view.rules.side(seat), seat == view.to_play
    text = "pisti-dark" if turn else "pisti-light"
    points = str(view.public_points[side])
    parts = [
        f'<rect class="{"pisti-turn" if turn else "pisti-plate"}" width="{box.width:g}" '
        f'height="{_PLATE}" rx="8.5"/>'
    ]
    left = 7.0
    if turn:
        parts.append(f'<path class="{text}" d="M{left:g} 4.5v8l6.5-4z"/>')
        left += 10
    if view.rules.pairs:
        parts.append(_side_mark(side, left, turn))
        left += 11
    right = box.width - 7
    if seat == side:
        parts.append(_text(right, 12.2, points, text, 10.5, "end"))
        right -= 7 * len(points) + 2
    if seat == view.dealer:
        parts.append(
            f'<circle class="pisti-light" cx="{right - 7:g}" cy="8.5" r="6"/>'
            + _text(right - 7, 11.6, "D", "pisti-dark", 8.5, "middle")
        )
        right -= 15
    room = int((right - left) / 5.3)
    parts.append(_text(left, 12, _cut(shown.names[seat], room), text, 9.5))
    return "".join(parts)


def _side_mark(side: int, x: float, on_light: bool) -> str:
    """Draw the mark of a side of partners: a triangle or a square."""
    colour = "pisti-dark" if on_light else f"pisti-side{side}"
    shape = f"M{x:g} 12.5l4-8 4 8z" if side == 0 else f"M{x:g} 5h7.5v7.5h-7.5z"
    return f'<path class="{colour}" d="{shape}"/>'


def _hand(shown: Shown, seat: int, box: Box) -> str:
    """Draw a hand, face up where it is known."""
    hand, count = shown.hands[seat], shown.view.hand_sizes[seat]
    step = box.step * min(1, 3 / max(1, count - 1))
    places = [(place * step, _HAND_TOP) for place in range(count)]
    if hand is None:
        return "".join(card.back(x, y, _CARD) for x, y in places)
    return "".join(card.face(c, x, y, _CARD) for c, (x, y) in zip(hand, places, strict=True))


def _captured(view: View, side: int, box: Box) -> str:
    """Draw the captured cards of a side: a pile with its size, and a card crosswise for each
    pişti, with a J for one of jack on jack."""
    width, height = 20, 28
    x, y = box.width - 24, _BOX_HEIGHT - height
    if not view.captured[side]:
        return (
            f'<rect class="pisti-slot" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'
        )
    marks = ["J"] * view.jack_pistis[side] + ["P"] * view.pistis[side]
    marks, more = marks[:3], len(marks) - 3
    parts = []
    for place, mark in reversed(list(enumerate(marks))):
        top = y - 4.5 * (place + 1)
        parts.append(
            f'<rect class="pisti-face" x="{x - 4}" y="{top:g}" width="28" height="20" rx="3"/>'
            f'<rect class="pisti-turn" x="{x - 2.5}" y="{top + 1.5:g}" width="25" height="3"/>'
        )
        if mark == "J":
            parts.append(f'<circle class="pisti-red" cx="{x + 20.5}" cy="{top + 3:g}" r="2.2"/>')
    if more > 0:
        parts.append(_text(x + 10, y - 15.5, f"+{more}", "pisti-light", 7, "middle"))
    last = view.last_capturer
    parts.append(card.back(x, y, width))
    parts.append(
        f'<rect class="pisti-plate" x="{x + 2.5}" y="{y + 8}" width="15" height="12" rx="3"/>'
        + _text(x + 10, y + 17.2, str(view.captured[side]), "pisti-light", 9, "middle")
    )
    if last is not None and view.rules.side(last) == side:
        parts.append(
            f'<rect class="pisti-gold" x="{x}" y="{y}" width="{width}" height="{height}" rx="3" '
            'stroke-width="1.6"/>'
        )
    return "".join(parts)


# The middle of the table.


def _middle(shown: Shown) -> str:
    view = shown.view
    parts = [_stock(view), _turned_up(view)]
    last = view.last_play
    if view.pile_size:
        parts.append(_pile(shown))
    elif last is not None and last.captured_size:
        parts.append(_taken(last.captured, last.captured_size))
    else:
        parts.append(_well())
    return "".join(parts)


def _stock(view: View) -> str:
    """Draw the stock with its size, the card shown at its bottom, and the packet's number."""
    x, y = _STOCK
    parts, size = [], view.stock_size
    if size and view.bottom_card is not None:
        parts.append(card.face(view.bottom_card, x - 12, y, 32))
    if size:
        parts += [card.back(x + lift, y - lift, 32) for lift in (0, 1.4, 2.8)[: (size + 7) // 8]]
    else:
        parts.append(f'<rect class="pisti-slot" x="{x}" y="{y}" width="32" height="44.8" rx="4"/>')
    return "".join(parts) + (
        _text(x + 17, y + 59, f"stock {size}", "pisti-light", 9.5, "middle")
        + _text(
            x + 17,
            y + 71,
            f"packet {view.packet}/{view.rules.num_packets}",
            "pisti-soft",
            8.5,
            "middle",
        )
        + (
            _text(x + 17, y - 10, f"to {view.rules.target}", "pisti-soft", 8.5, "middle")
            if view.rules.target is not None
            else ""
        )
    )


def _turned_up(view: View) -> str:
    """Draw the jacks that were turned up before the starter."""
    jacks = view.shown_jacks
    if not jacks:
        return ""
    left = _PILE_RIGHT - 15 * len(jacks)
    return _text(left - 5, 116, "turned up before", "pisti-soft", 8.5, "end") + "".join(
        card.face(jack, left + 15 * place, 102, 14) for place, jack in enumerate(jacks)
    )


def _pile(shown: Shown) -> str:
    """Draw the pile from left to right: cards face down, the edges of older cards, the newest so
    that they can be read, and on top the last one."""
    view = shown.view
    hidden = view.pile_size - len(view.pile)
    older, newest = view.pile[:-_FANNED], view.pile[-_FANNED:]
    down = list(shown.starters) if shown.starters and hidden else [None] * hidden
    steps = [5.0 if one is None else 14.0 for one in down]
    steps += [min(2.0, 20 / max(1, len(older)))] * len(older)
    room = _PILE_RIGHT - _PILE_LEFT - _PILE_CARD - sum(steps)
    steps += [min(21.0, room / max(1, len(newest) - 1))] * len(newest)
    length = sum(steps[:-1]) + _PILE_CARD
    x = (_PILE_LEFT + _PILE_RIGHT - length) / 2
    parts = []
    for one, step in zip([*down, *older, *newest], steps, strict=True):
        parts.append(
            card.back(x, _PILE_TOP, _PILE_CARD)
            if one is None
            else card.face(one, x, _PILE_TOP, _PILE_CARD)
        )
        x += step
    if view.last_play is not None:  # it lies on top, where it has taken nothing
        height = _PILE_BOTTOM - _PILE_TOP
        parts.append(
            f'<rect class="pisti-gold" x="{x - steps[-1]:g}" y="{_PILE_TOP}" '
            f'width="{_PILE_CARD}" height="{height:g}" rx="4.5"/>'
        )
    return "".join(parts) + _under_pile(_cards(view.pile_size))


def _taken(captured: Sequence[int], size: int) -> str:
    """Draw the cards that the last play took, small and faint, the card that took them last."""
    width = 30
    hidden, fanned = size - len(captured), captured[-8:]
    step = min(17.0, (_PILE_RIGHT - _PILE_LEFT - 24 - width) / max(1, len(fanned)))
    length = width + step * (len(fanned) - 1) + (8 if hidden else 0)
    x, top = (_PILE_LEFT + _PILE_RIGHT - length) / 2, _PILE_TOP + 9
    parts = []
    for _ in range(min(2, hidden)):
        parts.append(card.back(x, top, width))
        x += 4
    for one in fanned:
        parts.append(card.face(one, x, top, width))
        x += step
    return (
        _well()
        + f'<g opacity=".62">{"".join(parts)}</g>'
        + _under_pile(f"took {_cards(size)}, the table is empty")
    )


def _well() -> str:
    """Draw where the pile lies when there is one."""
    return (
        f'<rect class="pisti-well" x="{_PILE_LEFT}" y="{_PILE_TOP - 3}" '
        f'width="{_PILE_RIGHT - _PILE_LEFT}" height="{_PILE_BOTTOM - _PILE_TOP + 6:g}" rx="8"/>'
    )


def _under_pile(text: str) -> str:
    x = (_PILE_LEFT + _PILE_RIGHT) / 2
    return _text(x, _PILE_BOTTOM + 15, text, "pisti-light", 9.5, "middle")


def _cards(count: int) -> str:
    return f"{count} card{'' if count == 1 else 's'}"


def _sheet(shown: Shown) -> str:
    """Draw the score of the last deal: a line for each side."""
    view = shown.view
    if view.last_deal is None:
        return ""
    match = view.rules.target is not None
    heads = ("cards", "pişti", "points") + (("match",) if match else ())
    points = [side["match_points" if match else "points"] for side in view.last_deal]
    height = 26 + 14 * len(points)
    top = 156 - height / 2
    parts = [
        f'<rect class="pisti-sheet" x="110" y="{top:g}" width="260" height="{height + 6:g}" '
        'rx="8"/>',
        _text(118, top + 15, "end of the match" if match else "end of the deal", "pisti-soft", 8.5),
    ]
    places = [362 - 42 * place for place in reversed(range(len(heads)))]
    for head, x in zip(heads, places, strict=True):
        parts.append(_text(x, top + 15, head, "pisti-soft", 8.5, "end"))
    for side, score in enumerate(view.last_deal):
        y = top + 31 + 14 * side
        best = points[side] == max(points)
        colour = "pisti-best" if best else "pisti-light"
        name = " and ".join(
            shown.names[seat] for seat in range(view.rules.players) if view.rules.side(seat) == side
        )
        wins = " wins" if best and points.count(max(points)) == 1 else ""
        pistis = score["pistis"] + score["jack_pistis"]
        numbers = [score["cards"], pistis, score["points"]] + (
            [score["match_points"]] if match else []
        )
        room = 17 if match else 24
        parts.append(_text(118, y, _cut(name, room - len(wins)) + wins, colour, 9.5))
        for number, x in zip(numbers, places, strict=True):
            parts.append(_text(x, y, str(number), colour, 9.5, "end"))
    return "".join(parts)


def _caption(shown: Shown) -> str:
    """Draw the sentence on the last play, below the middle; the match scores where it is new."""
    text = tell_play(shown.view, shown.names)
    if not text and shown.view.last_deal is not None and shown.view.rules.target is not None:
        text = "match " + " : ".join(map(str, shown.view.match_scores))
    if not text:
        return ""
    size = min(11.0, 11 * 76 / max(1, len(text)))
    text = _cut(text, 110) if size < 7.5 else text
    size = max(size, 7.5)
    width = min(468, len(text) * size * 0.56 + 22)
    return (
        f'<rect class="pisti-plate" x="{240 - width / 2:g}" y="{_CAPTION - 12.5}" '
        f'width="{width:g}" height="18" rx="9" opacity=".85"/>'
        + _text(240, _CAPTION, text, "pisti-light", size, "middle")
    )


# Text.


def _text(x: float, y: float, text: str, colour: str, size: float, anchor: str = "start") -> str:
    return (
        f'<text class="{colour}" x="{x:g}" y="{y:g}" font-size="{size:g}" '
        f'text-anchor="{anchor}">{_escaped(text)}</text>'
    )


def _cut(text: str, longest: int) -> str:
    """Return the beginning of a text that is too long, with a mark."""
    return text if len(text) <= longest else f"{text[: max(1, longest - 1)]}…"


def _escaped(text: Any) -> str:
    """Return text as XML takes it, without the characters that XML cannot have."""
    kept = "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        kept = kept.replace(letter, entity)
    return kept
