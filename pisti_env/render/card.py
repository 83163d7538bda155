"""One card as SVG: drawn by us, on a sheet of 40 by 56.

Suits are told apart by their shapes, and not by colour alone. Rank and suit stand in two corners,
so that a card of which the next one leaves only a strip can still be read.
"""

from pisti_env.cards import NUM_RANKS, RANKS, SUITS

WIDTH, HEIGHT = 40, 56

# On a square of 20 by 20.
_SHAPES = {
    "C": '<circle cx="10" cy="5.4" r="4.5"/><circle cx="5.2" cy="12" r="4.5"/>'
    '<circle cx="14.8" cy="12" r="4.5"/><path d="M8.6 8h2.8c0 5 .6 9 2.6 11H6c2-2 2.6-6 2.6-11z"/>',
    "D": '<path d="M10 .6Q13 5.6 17.4 10 13 14.4 10 19.4 7 14.4 2.6 10 7 5.6 10 .6z"/>',
    "H": '<path d="M10 18.8C4.6 13.8 1 10.4 1 6.4 1 3.4 3.2 1.4 5.8 1.4c1.8 0 3.4 1 4.2 2.6.8-1.6 '
    '2.4-2.6 4.2-2.6 2.6 0 4.8 2 4.8 5 0 4-3.6 7.4-9 12.4z"/>',
    "S": '<path d="M10 .8c4.6 4.8 9 7.6 9 11.4 0 2.4-1.8 4-4 4-1.6 0-3-.8-3.9-2.2.2 2.2.9 3.8 2.5 '
    '5H6.4c1.6-1.2 2.3-2.8 2.5-5C8 15.4 6.6 16.2 5 16.2c-2.2 0-4-1.6-4-4C1 8.4 5.4 5.6 10 .8z"/>',
}

STYLE = (
    ".pisti-face{fill:#fffdf7;stroke:#27332d;stroke-width:.7}"
    ".pisti-black{fill:#17211c}.pisti-red{fill:#c4162a}"
    ".pisti-back{fill:#27488c;stroke:#f4f1e6;stroke-width:1.4}"
    ".pisti-weave{fill:none;stroke:#8fa9dd;stroke-width:1.1}"
)
DARK_STYLE = ".pisti-face{fill:#e7e3d8}.pisti-back{fill:#1f3a73;stroke:#cfcabb}"


def definitions() -> str:
    """Return what `face` and `back` refer to, for the `<defs>` of a picture."""
    suits = "".join(f'<g id="pisti-{suit}">{shape}</g>' for suit, shape in _SHAPES.items())
    return (
        f'{suits}<g id="pisti-down"><rect class="pisti-back" x=".7" y=".7" width="38.6" '
        'height="54.6" rx="4"/><path class="pisti-weave" d="M6 28 20 8l14 20-14 20z'
        'M13 28 20 18l7 10-7 10zM6 8h6M28 8h6M6 48h6M28 48h6"/></g>'
    )


def face(card: int, x: float, y: float, width: float, more: str = "") -> str:
    """Return a card face up, its upper left corner at (x, y); `more` is drawn upon it."""
    rank, suit = RANKS[card % NUM_RANKS], SUITS[card // NUM_RANKS]
    colour = "pisti-red" if suit in "DH" else "pisti-black"
    text = "10" if rank == "T" else rank
    # Two digits are set closer, or the strip that the next card leaves would cut them.
    close = ' letter-spacing="-1.6"' if text == "10" else ""
    corner = (
        f'<text class="pisti-rank" x="9" y="15.5"{close}>{text}</text>'
        f'<use href="#pisti-{suit}" transform="translate(3.4 18) scale(.56)"/>'
    )
    return _placed(
        f'<rect class="pisti-face" x=".35" y=".35" width="39.3" height="55.3" rx="4"/>'
        f'<g class="{colour}">{corner}<g transform="rotate(180 20 28)">{corner}</g>'
        f'<use href="#pisti-{suit}" transform="translate(11.6 19.6) scale(.84)"/></g>{more}',
        x,
        y,
        width,
        f' data-card="{RANKS[card % NUM_RANKS]}{suit}"',
    )


def back(x: float, y: float, width: float) -> str:
    """Return a card face down, its upper left corner at (x, y)."""
    return _placed('<use href="#pisti-down"/>', x, y, width)


def _placed(drawn: str, x: float, y: float, width: float, attributes: str = "") -> str:
    return (
        f'<g transform="translate({x:g} {y:g}) scale({width / WIDTH:.4g})"{attributes}>{drawn}</g>'
    )
