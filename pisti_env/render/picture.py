"""The picture of a view, as SVG: a table from above.

The viewer sits at the bottom, a spectator behind seat 0, and the next seats follow
counter-clockwise, as they play. Every seat has a plate (name, points, whose turn it is, who dealt),
a hand and, where it keeps its side's captured cards, the pile of those, with a card laid crosswise
for every pişti. In the middle lie the stock and the pile, or what the last play has taken from it,
and below them one sentence on the last play. At the end a sheet of the score takes their place.

Lengths are in a picture of 480 by 360.
"""

from collections.abc import Iterable, Sequence

from pisti_env.checks import is_int
from pisti_env.knowledge import View
from pisti_env.quote import quote
from pisti_env.render import card, middle, seats
from pisti_env.render.lettering import escaped
from pisti_env.render.shown import check_shown
from pisti_env.render.text import as_text

WIDTH, HEIGHT = 480, 360
SMALLEST, LARGEST = 120, 4096  # of a picture's width, in pixels

FONT = "Inter Semi Bold"  # in the file beside this one, for pixels; browsers take what they have

# All pictures on a page share these names, so they say the same in each.
_STYLE = (
    f".pisti{{font-family:'{FONT}',Inter,'Segoe UI',Roboto,system-ui,sans-serif;font-weight:600}}"
    ".pisti-rank{font-size:18px}"
    ".pisti-rim{fill:#174f38}.pisti-felt{fill:#21724f}"
    ".pisti-light{fill:#fff}.pisti-soft{fill:#b9dccb}.pisti-dark,.pisti-ink{fill:#1d1704}"
    f"{card.STYLE}{seats.STYLE}{middle.STYLE}.pisti-jack{{fill:#f7c948}}"
)
_DARK_STYLE = (
    ".pisti-rim{fill:#0b2119}.pisti-felt{fill:#174332}.pisti-plate,.pisti-sheet{fill:#0b261b}"
    f"{card.DARK_STYLE}{middle.DARK_STYLE}.pisti-jack{{fill:#f7c948}}"
)


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
    reveal = list(reveal) if isinstance(reveal, Iterable) else reveal
    shown = check_shown(view, reveal, names)
    if not is_int(size) or not SMALLEST <= size <= LARGEST:
        raise ValueError(
            f"size is {quote(size)}; expected an int from {SMALLEST} to {LARGEST}, the width in "
            "pixels"
        )
    title = f"Pişti, {view.rules.players} players, packet {view.packet}"
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="pisti" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{size}" height="{size * HEIGHT // WIDTH}" role="img">',
            f"<title>{title}</title><desc>{escaped(as_text(view, reveal, names))}</desc>",
            f"<style>{_STYLE}@media (prefers-color-scheme:dark){{{_DARK_STYLE}}}</style>",
            f"<defs>{card.definitions()}</defs>",
            f'<rect class="pisti-rim" width="{WIDTH}" height="{HEIGHT}"/><rect class="pisti-felt" '
            f'x="4" y="4" width="{WIDTH - 8}" height="{HEIGHT - 8}" rx="8"/>',
            seats.draw_seats(shown),
            middle.draw_middle(shown),
            "</svg>",
        ]
    )
