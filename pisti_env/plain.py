"""Text for screens whose encoding lacks some letters: plainer ones stand for them."""

import sys
import unicodedata

_PLAINER = str.maketrans(
    {
        "ı": "i",
        "−": "-",
        "–": "-",
        "×": "x",
        "’": "'",
        "…": "...",
        "→": "->",
        "←": "<-",
        "▒": "#",
    }
)


def plain(text: str) -> str:
    """Return text in ASCII: "Pisti" for "Pişti", "#" for a card face down."""
    letters = unicodedata.normalize("NFKD", text.translate(_PLAINER))
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return kept.encode("ascii", "replace").decode()


def printable(text: str) -> str:
    """Return text that can be printed: plain, where the encoding of standard output lacks any of
    its letters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return plain(text)
    return text
