"""Text in a picture."""

import unicodedata
from typing import Any

# How wide letters are, by the size of the text, in Inter and about so in what browsers take for it.
_WIDTHS = {
    **dict.fromkeys("iljtfrI.,:;'|!()[] -", 0.33),
    **dict.fromkeys("mwMW@%…", 0.92),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ", 0.72),
}


def lettered(x: float, y: float, text: str, colour: str, size: float, anchor: str = "start") -> str:
    """Return a line of text in a colour of the picture's style."""
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return (
        f'<text class="pisti-{colour}" x="{x:.4g}" y="{y:.4g}" font-size="{size:.3g}"{placed}>'
        f"{escaped(text)}</text>"
    )


def width_of(text: str, size: float) -> float:
    """Return about how wide a line of text is."""
    wide = ("W", "F")  # Chinese letters and the like
    return size * sum(
        1.05 if unicodedata.east_asian_width(letter) in wide else _WIDTHS.get(letter, 0.61)
        for letter in text
    )


def cut(text: str, size: float, width: float) -> str:
    """Return the beginning of a text that is too wide, with a mark."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def escaped(text: Any) -> str:
    """Return text as XML takes it, without the characters that XML cannot have."""
    kept = "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        kept = kept.replace(letter, entity)
    return kept
