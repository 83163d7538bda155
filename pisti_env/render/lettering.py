"""Text in a picture."""

from typing import Any

WIDEST, NARROW = 0.62, 0.56  # a letter's width by its size: of digits, of a sentence on the average


def lettered(x: float, y: float, text: str, colour: str, size: float, anchor: str = "start") -> str:
    """Return a line of text in a colour of the picture's style."""
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return (
        f'<text class="pisti-{colour}" x="{x:.4g}" y="{y:.4g}" font-size="{size:.3g}"{placed}>'
        f"{escaped(text)}</text>"
    )


def cut(text: str, longest: int) -> str:
    """Return the beginning of a text that is too long, with a mark."""
    return text if len(text) <= longest else f"{text[: max(1, longest - 1)].rstrip()}…"


def escaped(text: Any) -> str:
    """Return text as XML takes it, without the characters that XML cannot have."""
    kept = "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        kept = kept.replace(letter, entity)
    return kept
