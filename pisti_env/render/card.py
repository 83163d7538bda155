"""One card as SVG: drawn by us, on a sheet of 40 by 56.

Suits are told apart by their shapes, and not by colour alone. Rank and suit stand in the upper left
corner, so that a card of which the next one leaves only a strip can still be read; below lies the
suit once more, large, and court cards wear a crown, a coronet or a feathered cap.
"""

from pisti_env.cards import ACE, CARD_NAMES, NUM_RANKS, RANKS, SUITS

WIDTH, HEIGHT = 40, 56
STRIP = 0.39  # of a card's width: with so much of it to be seen, it can be read

# On a square of 20 by 20.
_SHAPES = {
    "C": '<circle cx="10" cy="5.2" r="4.7"/><circle cx="4.9" cy="11.9" r="4.7"/>'
    '<circle cx="15.1" cy="11.9" r="4.7"/><path d="M8.4 8h3.2c0 5 .7 9.2 3 11.4H5.4c2.3-2.2 3-6.4 '
    '3-11.4z"/>',
    "D": '<path d="M10 .2q3.2 5.4 7.6 9.8-4.4 4.4-7.6 9.8Q6.8 14.4 2.4 10 6.8 5.6 10 .2z"/>',
    "H": '<path d="M10 19C4.4 13.9.6 10.4.6 6.2.6 3.2 2.9 1 5.6 1 7.5 1 9.2 2 10 3.7 10.8 2 '
    '12.5 1 14.4 1c2.7 0 5 2.2 5 5.2C19.4 10.4 15.6 13.9 10 19z"/>',
    "S": '<path d="M10 .4c4.8 5 9.3 7.8 9.3 11.7 0 2.5-1.9 4.2-4.2 4.2-1.6 '
    "0-3-.8-3.9-2.1.2 2.2 1 4 2.7 5.4H6.1c1.7-1.4 2.5-3.2 2.7-5.4-.9 "
    '1.3-2.3 2.1-3.9 2.1-2.3 0-4.2-1.7-4.2-4.2C.7 8.2 5.2 5.4 10 .4z"/>',
}

# What court cards wear, above the large suit; on a sheet of 20 by 10.
_HATS = {
    "K": "M1 10 0 1l5.5 4L10 0l4.5 5L20 1l-1 9z",
    "Q": "M2 10 .5 4A1.6 1.6 0 1 1 2.4 3.6L6.5 6 9 2.6a1.6 1.6 0 1 1 2 0L13.5 6l4.1"
    "-2.4A1.6 1.6 0 1 1 19.5 4L18 10z",
    "J": "M4 7.4C4 4.2 6.6 2.4 10 2.4c.7 0 1.3.1 1.9.2C13.2.9 16.2-.4 19.8-.1c-.5 2.4-2.2 4.1-4.7 "
    "4.7.6.8.9 1.7.9 2.8zM1.5 8.2h17V10h-17z",
}

STYLE = (
    ".pisti-face{fill:#fffdf6;stroke:#74827b;stroke-width:.7}"
    ".pisti-black{fill:#18211d}.pisti-red{fill:#c8102e}.pisti-hat{fill:#d99a12}"
    ".pisti-back{fill:#2b4c94;stroke:#f6f3ea;stroke-width:1.6}"
    ".pisti-weave{fill:none;stroke:#8eabe4;stroke-width:1}"
)
DARK_STYLE = ".pisti-face{fill:#e9e5da}.pisti-back{fill:#223f7c;stroke:#d3cebf}"


def definitions() -> str:
    """Return what `face` and `back` refer to, for the `<defs>` of a picture."""
    suits = "".join(f'<g id="pisti-{suit}">{shape}</g>' for suit, shape in _SHAPES.items())
    hats = "".join(f'<path id="pisti-{rank}" d="{shape}"/>' for rank, shape in _HATS.items())
    return (
        f'{suits}{hats}<g id="pisti-down"><rect class="pisti-back" x=".8" y=".8" width="38.4" '
        'height="54.4" rx="4.2"/><path class="pisti-weave" d="M5 5h30v46H5zM5 16.5 12.5 5 35 '
        "39.5 27.5 51 5 16.5M5 39.5 27.5 5 35 16.5 12.5 51 5 39.5M12.5 28 20 "
        '16.5l7.5 11.5-7.5 11.5z"/></g>'
    )


def face(card: int, x: float, y: float, width: float) -> str:
    """Return a card face up, its upper left corner at (x, y)."""
    rank, suit = RANKS[card % NUM_RANKS], SUITS[card // NUM_RANKS]
    # Two digits are narrower, or the strip that the next card leaves would cut them.
    text = ' letter-spacing="-.6" transform="scale(.76 1)">10' if rank == "T" else f">{rank}"
    hat, size = "", 22 if card % NUM_RANKS != ACE else 25
    if rank in _HATS:
        hat, size = f'<use class="pisti-hat" href="#pisti-{rank}" transform="{_HAT_PLACE}"/>', 19
    return _placed(
        '<rect class="pisti-face" x=".4" y=".4" width="39.2" height="55.2" rx="4.2"/>'
        f'<g class="{"pisti-red" if suit in "DH" else "pisti-black"}">'
        f'<text class="pisti-rank" x="2.8" y="16.2"{text}</text>'
        f'<use href="#pisti-{suit}" transform="translate(3.4 19.4) scale(.58)"/>'
        f'<use href="#pisti-{suit}" transform="translate({37 - size} {53 - size}) '
        f'scale({size / 20:g})"/></g>{hat}',
        x,
        y,
        width,
        f' data-card="{CARD_NAMES[card]}"',
    )


_HAT_PLACE = "translate(19.5 23.5) scale(.8)"


def back(x: float, y: float, width: float) -> str:
    """Return a card face down, its upper left corner at (x, y)."""
    return _placed('<use href="#pisti-down"/>', x, y, width)


def _placed(drawn: str, x: float, y: float, width: float, attributes: str = "") -> str:
    return (
        f'<g transform="translate({x:.4g} {y:.4g}) scale({width / WIDTH:.4g})"{attributes}>'
        f"{drawn}</g>"
    )
