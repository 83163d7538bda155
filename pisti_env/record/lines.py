"""On which line of a TOML text something stands: `tomllib` reads the values and forgets the lines.

What is followed is only what a text that `tomllib` reads can look like; where that ends, so do the
lines. Inside of inline tables nothing is placed.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pisti_env.record.fields import Path, path_text

MOST_PARTS = 8  # of a dotted key; this format has three, and a million take tomllib minutes

_NOTHING = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_STRING = r'"(?:[^"\\\n]|\\.)*+"|' + r"'[^'\n]*+'"
_LONG_STRING = r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|' + r"'''(?:[^']|'(?!''))*+'{3,5}"
_KEY_PART = re.compile(rf"[ \t]*+(?:({_STRING})|([A-Za-z0-9_-]++))[ \t]*+(\.?)")
_VALUE_PART = re.compile(
    r"(?P<newline>\n)|(?P<blank>[ \t\r]++|#[^\n]*+)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)"
    rf"|{_LONG_STRING}|{_STRING}|[^\s\[\]{{}},#\"']++",
    re.DOTALL,
)


class Place(NamedTuple):
    """Where something begins."""

    path: Path
    line: int
    """From 1."""
    start: int
    """Index of its line's first character that is not blank."""


class TooManyParts(ValueError):
    """A key has more parts than any key of this format, at `line`."""

    def __init__(self, line: int):
        super().__init__(f"line {line}: a key has more than {MOST_PARTS} parts between dots")
        self.line = line


@dataclass(frozen=True)
class Source:
    """The text that a record was read from."""

    file: str
    """Its name, empty if it was no file."""
    number: int
    """Which of the text's records it is, from 0."""
    text: str
    """The record's part of the text; all of it, where the records are inline tables."""
    first_line: int
    """The line on which that begins."""

    def where(self, path: Path) -> str:
        """Return file, line and name of a field, or of what is nearest around it, for a message."""
        number = self.number if self.first_line == 1 else 0
        wanted: Path = ("records", number, *path)
        nearest, line = 0, 1
        for place in places(self.text):
            shared = _num_shared(place.path, wanted)
            if shared > nearest:  # `rules.players = 4` is where `rules` is, if nothing is nearer
                nearest, line = shared, place.line
        line += self.first_line - 1
        file = f"{self.file}, " if self.file else ""
        return f"{file}line {line}: {path_text(('records', self.number, *path))}"


def _num_shared(path: Path, other: Path) -> int:
    """Return how many parts two paths have in common before they part."""
    number = 0
    for part, other_part in zip(path, other, strict=False):
        if part != other_part:
            break
        number += 1
    return number


def places(text: str) -> Iterator[Place]:
    """Yield the place of every header, key and element of an array, as far as the text is TOML.
    Raises `TooManyParts`."""
    reader = _Reader(text)
    table: Path = ()
    newest: dict[Path, int] = {}  # of arrays of tables: the number of the table begun last
    while reader.skip_nothing():
        line, start = reader.line, reader.at
        if text.startswith("[", start):
            brackets = 2 if text.startswith("[[", start) else 1
            reader.at += brackets
            table = ()
            keys = reader.keys()
            for number, key in enumerate(keys, 1):
                table = (*table, key)
                if number == len(keys) and brackets == 2:
                    newest[table] = newest.get(table, -1) + 1
                if table in newest:
                    table = (*table, newest[table])
            if not keys or not text.startswith("]" * brackets, reader.at):
                return
            reader.at += brackets
            yield Place(table, line, start)
        else:
            path = (*table, *reader.keys())
            if path == table or not text.startswith("=", reader.at):
                return
            reader.at += 1
            yield Place(path, line, start)
            yield from reader.elements(path)


class _Reader:
    """A place in a text, and its line."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.line = 1

    def skip_nothing(self) -> bool:
        """Go past blanks, comments and line ends; return whether anything follows."""
        match = _NOTHING.match(self.text, self.at)
        if match:
            self._pass(match)
        return self.at < len(self.text)

    def _pass(self, match: re.Match[str]) -> None:
        self.line += match.group().count("\n")
        self.at = match.end()

    def keys(self) -> list[str]:
        """Read a key, of several parts if it has dots; none if there is none."""
        parts: list[str] = []
        while match := _KEY_PART.match(self.text, self.at):
            self._pass(match)
            quoted, bare, dot = match.groups()
            parts.append(bare or _unquote(quoted))
            if len(parts) > MOST_PARTS:
                raise TooManyParts(self.line)
            if not dot:
                break
        return parts

    def elements(self, path: Path) -> Iterator[Place]:
        """Go past a value and the rest of its line; yield the places of its elements, if it is an
        array. Raises `TooManyParts` for a key in it."""
        depth, number, is_array, expected = 0, 0, False, False
        dots = 0  # since the last comma or bracket; those of text are not counted
        while match := _VALUE_PART.match(self.text, self.at):
            kind = match.lastgroup
            if kind == "newline" and depth == 0:
                return
            if expected and depth == 1 and kind not in ("newline", "blank", "close"):
                expected = False
                yield Place((*path, number), self.line, self.at)
            if kind in ("open", "close", "comma"):
                dots = 0
            elif kind is None and depth > 0 and match.group()[0] not in "\"'":
                dots += match.group().count(".")
                if dots > MOST_PARTS:
                    raise TooManyParts(self.line)
            if kind == "open":
                depth += 1
                if depth == 1:
                    is_array = expected = match.group() == "["
            elif kind == "close":
                depth -= 1
            elif kind == "comma" and depth == 1 and is_array:
                number, expected = number + 1, True
            self._pass(match)


def _unquote(text: str) -> str:
    if "\\" not in text or text.startswith("'"):
        return text[1:-1]
    try:
        return str(tomllib.loads(f"text = {text}")["text"])
    except tomllib.TOMLDecodeError:
        return text
