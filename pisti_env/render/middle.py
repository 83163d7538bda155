"""The middle of the table: stock, pile, what the last play has taken, and the score at the end."""

from typing import NamedTuple

import numpy as np

from pisti_env.checks import find_decided
from pisti_env.knowledge import LastPlay, View
from pisti_env.render import card
from pisti_env.render.lettering import cut, lettered, width_of
from pisti_env.render.shown import Shown
from pisti_env.render.text import tell_play

STYLE = (
    ".pisti-well{fill:#1a6244}.pisti-sheet{fill:#10402d}.pisti-best{fill:#f7c948}"
    ".pisti-ring{fill:none;stroke:#f7c948;stroke-width:2.8}"
)
DARK_STYLE = ".pisti-well{fill:#12382a}"

_TOP = 110
_CAPTION = 233.5  # where the sentence on the last play begins
_DEAR = ("pisti", "jack_pisti", "jack_takes_single")  # reasons of points that are made much of
_EDGE, _EDGES = 2.2, 36  # what is seen of an older card in a long pile, and of all


class Middle(NamedTuple):
    """The room between the seats."""

    left: float
    right: float
    card_width: float
    """Of the pile's cards."""

    @property
    def pile_left(self) -> float:
        """Where the pile begins, on the right of the stock."""
        return self.left + self.card_width + 26

    @property
    def card_height(self) -> float:
        """Of the pile's cards."""
        return self.card_width * card.HEIGHT / card.WIDTH

    @property
    def room(self) -> float:
        """How long the pile can be."""
        return self.right - self.pile_left


_WIDE, _NARROW = Middle(62, 412, 57), Middle(122, 345, 50)


def draw_middle(shown: Shown) -> str:
    """Draw what lies between the seats, and the sentence on the last play."""
    view = shown.view
    middle = _WIDE if view.rules.players <= 3 else _NARROW
    if view.to_play is None:
        return _sheet(shown, middle) + _caption(shown)
    return _stock(view, middle) + _table(shown, middle) + _caption(shown)


def _stock(view: View, middle: Middle) -> str:
    """Draw the stock with its size, the card shown at its bottom, and the packet's number."""
    width, size = middle.card_width * 0.76, view.stock_size
    x, y, height = middle.left + 12, _TOP + 4, width * card.HEIGHT / card.WIDTH
    parts = []
    if size and view.bottom_card is not None:
        parts.append(card.face(view.bottom_card, x - width * card.STRIP, y + 3, width))
    if size:
        parts += [card.back(x + lift, y - lift, width) for lift in (0, 1.5, 3)[: (size + 7) // 8]]
    else:
        parts.append(
            f'<rect class="pisti-slot" x="{x:g}" y="{y}" width="{width:g}" height="{height:g}" '
            'rx="4"/>'
        )
    below, centre = y + height, x + width / 2
    packet = f"packet {view.packet} of {view.rules.num_packets}"
    parts.append(lettered(centre, below + 15, f"stock {size}", "light", 10.5, "middle"))
    parts.append(lettered(centre, below + 28, packet, "soft", 9.5, "middle"))
    if view.rules.target is not None:
        target = f"match to {view.rules.target}"
        parts.append(lettered(centre, below + 40, target, "soft", 9.5, "middle"))
    return "".join(parts)


def _table(shown: Shown, middle: Middle) -> str:
    """Draw where the pile lies: the pile, or what the last play has taken from there."""
    view, last = shown.view, shown.view.last_play
    parts = [
        f'<rect class="pisti-well" x="{middle.pile_left - 9:g}" y="{_TOP - 8}" '
        f'width="{middle.room + 18:g}" height="{middle.card_height + 16:g}" rx="9"/>'
    ]
    if view.pile_size:
        parts.append(_pile(shown, middle))
        hidden = view.pile_size - len(view.pile)
        told = _cards(view.pile_size) + (f", {hidden} face down" if hidden else "")
    elif last is not None and last.captured_size:
        parts.append(_taken(last, middle))
        told = f"{_cards(last.captured_size)} taken"
    else:
        told = "no cards"
    y = _TOP + middle.card_height + 22
    jacks = view.shown_jacks
    if not jacks:
        centre = middle.pile_left + middle.room / 2
        parts.append(lettered(centre, y, told, "light", 10.5, "middle"))
        return "".join(parts)
    parts.append(lettered(middle.pile_left - 5, y, told.split(",")[0], "light", 10.5))
    left = middle.right + 9 - 18 - 9 * (len(jacks) - 1)
    parts.append(lettered(left - 5, y, "turned up first", "soft", 9.5, "end"))
    parts += [card.face(jack, left + 9 * place, y - 13, 18) for place, jack in enumerate(jacks)]
    return "".join(parts)


def _pile(shown: Shown, middle: Middle) -> str:
    """Draw the pile from left to right: cards face down, the edges of older cards, the newest so
    that they can be read, and on top the last one."""
    view, width = shown.view, middle.card_width
    hidden, strip = view.pile_size - len(view.pile), width * card.STRIP
    known = shown.starters[:hidden]
    lower: list[int | None] = list(known) if known else [None] * hidden
    steps = [strip if known else 6.0] * hidden
    room = middle.room - width - sum(steps)
    newest = len(view.pile)
    if (newest - 1) * strip > room:  # then of the oldest, only edges
        newest = 1 + int((room - min(_EDGES, _EDGE * newest)) / strip)
    older = len(view.pile) - newest
    edge = min(_EDGE, _EDGES / max(1, older))
    steps += [edge] * older
    room -= edge * older
    steps += [min(width * 0.6, room / max(1, newest - 1))] * newest
    x = middle.pile_left + (middle.room - sum(steps[:-1]) - width) / 2
    parts = []
    for one, step in zip([*lower, *view.pile], steps, strict=True):
        parts.append(card.back(x, _TOP, width) if one is None else card.face(one, x, _TOP, width))
        x += step
    if view.last_play is not None:  # it lies on top, where it has taken nothing
        parts.append(_ring(x - steps[-1], _TOP, width))
    return "".join(parts)


def _taken(last: LastPlay, middle: Middle) -> str:
    """Draw the cards that the last play took, smaller, with the card that took them last."""
    width = middle.card_width * 0.74
    strip, height = width * card.STRIP, width * card.HEIGHT / card.WIDTH
    hidden = last.captured_size - len(last.captured)
    room, gap = middle.room - width - 14, 6.0  # before the card that took them
    *below, taker = last.captured
    below = below[-int(room / strip) :]  # the newest, as many as can be read
    step = min(width * 0.6, room / max(1, len(below)))
    length = min(hidden, 3) * 4 + step * len(below) + gap + width
    x, y = middle.pile_left + (middle.room - length) / 2, _TOP + (middle.card_height - height) / 2
    parts = []
    for _ in range(min(hidden, 3)):
        parts.append(card.back(x, y, width))
        x += 4
    for one in below:
        parts.append(card.face(one, x, y, width))
        x += step
    drawn = f'<g opacity=".8">{"".join(parts)}</g>' if parts else ""
    return drawn + card.face(taker, x + gap, y, width) + _ring(x + gap, y, width)


def _ring(x: float, y: float, width: float) -> str:
    """Mark the card that was played last."""
    height = width * card.HEIGHT / card.WIDTH
    return (
        f'<rect class="pisti-ring" x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" '
        f'height="{height:.4g}" rx="{width / 9:.3g}"/>'
    )


def _cards(count: int) -> str:
    return f"{count} card{'' if count == 1 else 's'}"


def _sheet(shown: Shown, middle: Middle) -> str:
    """Draw the score of the last deal: who wins it, or the match that it has decided, and a line
    for each side."""
    view = shown.view
    if view.last_deal is None:
        return ""
    match, pairs = view.rules.target is not None, view.rules.pairs
    heads = ("cards", "pişti", "points") + (("match",) if match else ())
    over = match and find_decided(view.rules, np.array([view.match_scores])) >= 0
    what = "match" if over else "deal"
    points = [side["match_points" if over else "points"] for side in view.last_deal]
    winners = [side for side, count in enumerate(points) if count == max(points)]
    title = f"the {what} has no single winner"
    if len(winners) == 1:
        name = shown.side_name(winners[0])
        title = f"{cut(name, 12.5, 125)} win{'s' * (not pairs)} the {what}"
    line = 32 if pairs else 17 if len(points) > 4 else 19
    left, width, height = 123, 234, 45 + line * len(points)
    top = 158 - height / 2
    parts = [
        f'<rect class="pisti-sheet" x="{left}" y="{top:g}" width="{width}" height="{height}" '
        'rx="9"/>',
        lettered(240, top + 19, title, "best", 12.5, "middle"),
    ]
    places = [left + width - 11 - 38 * place for place in reversed(range(len(heads)))]
    for head, x in zip(heads, places, strict=True):
        parts.append(lettered(x, top + 36, head, "soft", 9.5, "end"))
    room = places[0] - 27 - left - 11
    for side, score in enumerate(view.last_deal):
        y = top + 53 + line * side
        colour = "best" if side in winners else "light"
        pistis = score["pistis"] + score["jack_pistis"]
        numbers = [score["cards"], pistis, score["points"]]
        numbers += [score["match_points"]] if match else []
        for below, seat in enumerate(range(side, view.rules.players, view.rules.sides)):
            name = cut(shown.names[seat], 11, room)
            parts.append(lettered(left + 11, y + 13 * below, name, colour, 11))
        for number, x in zip(numbers, places, strict=True):
            parts.append(lettered(x, y, str(number), colour, 11, "end"))
    scale = 1.25 if middle is _WIDE else 1  # about its own centre
    return (
        f'<g transform="translate({240 * (1 - scale):g} {158 * (1 - scale):g}) scale({scale})">'
        f"{''.join(parts)}</g>"
    )


def _caption(shown: Shown) -> str:
    """Draw the sentence on the last play; at the start of a later deal, how the one before went."""
    view = shown.view
    text = tell_play(view, shown.names)
    if not text and view.last_deal is not None:
        points = " : ".join(str(side["points"]) for side in view.last_deal)
        text = f"the deal before ended {points}"
    if not text:
        return ""
    last = view.last_play
    scores = last is not None and any(gain.reason in _DEAR for gain in last.gains)
    lines, room = [text], 440
    size = min(12.0, room / width_of(text, 1))
    if size < 10.5:
        lines = _halves(text)
        size = max(9.0, min(11.0, room / max(width_of(line, 1) for line in lines)))
    lines = [cut(line, size, room) for line in lines]
    width, height = max(width_of(line, size) for line in lines) + 28, 6 + 15 * len(lines)
    colour, pill = ("dark", "turn") if scores else ("light", "plate")
    parts = [
        f'<rect class="pisti-{pill}" x="{240 - width / 2:.4g}" y="{_CAPTION}" '
        f'width="{width:.4g}" height="{height}" rx="10.5"/>'
    ]
    for number, line in enumerate(lines):
        y = _CAPTION + 10.5 + 0.34 * size + 15 * number
        parts.append(lettered(240, y, line, colour, size, "middle"))
    return "".join(parts)


def _halves(text: str) -> list[str]:
    """Return a text as two lines, each as long as the other or nearly so."""
    words = text.split(" ")
    cuts = [(" ".join(words[:n]), " ".join(words[n:])) for n in range(1, len(words))]
    return list(min(cuts, key=lambda lines: max(map(len, lines)), default=(text,)))
