"""On which line of a TOML text something stands: `tomllib` reads the values and forgets the lines.

What is followed is only what a text that `tomllib` reads can look like; where that ends, so do the
lines. Inside of inline tables nothing is placed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pisti_env.record.fields import Path, path_text

MOST_PARTS = 8  # of a dotted key; this format has three, and thousands take tomllib hours

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
        number = self.number if self.first_line == 1 and self.number else 0
        lines: dict[Path, int] = {}
        for place in places(self.text):
            lines.setdefault(place.path, place.line)
        around: Path = ("records", number, *path)
        while around and around not in lines:
            around = around[:-1]
        line = lines.get(around, 1) + self.first_line - 1
        file = f"{self.file}, " if self.file else ""
        return f"{file}line {line}: {path_text(('records', self.number, *path))}"


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
            for inner in [path for path in newest if len(path) > len(table)]:
                if brackets == 2 and inner[: len(table) - 1] == table[:-1]:
                    del newest[inner]
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
        array."""
        depth, number, is_array, expected = 0, 0, False, False
        while match := _VALUE_PART.match(self.text, self.at):
            kind = match.lastgroup
            if kind == "newline" and depth == 0:
                return
            if expected and depth == 1 and kind not in ("newline", "blank", "close"):
                expected = False
                yield Place((*path, number), self.line, self.at)
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
    try:
        return str(json.loads(text)) if text.startswith('"') else text[1:-1]
    except ValueError:
        return text
