"""How messages quote what a user gave: as Python writes it, on one line, cut where it is long."""

import re

LONGEST = 200  # characters


def quote(value: object) -> str:
    """Return a value's `repr` for a message."""
    try:
        return shorten(repr(value))
    except Exception:  # another's class; lists nested too deep; an int of thousands of digits
        if isinstance(value, int):
            return f"an int of about {round(value.bit_length() * 0.30103)} digits"
        return f"a {type(value).__name__} that cannot be shown"


def shorten(text: str, longest: int = LONGEST) -> str:
    """Return text on one line, without its middle if it is longer than `longest` characters."""
    if len(text) > longest:  # cut first: to look for lines in millions of blanks takes hours
        half = longest // 2
        text = f"{text[:half]} … {text[-half:]} ({len(text)} characters)"
    return re.sub(r"\s*[\r\n]\s*", " ", text)
