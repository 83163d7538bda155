"""Records from text, of which nothing is believed: every error names line and field."""

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from pisti_env.cards import CARD_NAMES, NO_CARD
from pisti_env.files import read_file
from pisti_env.quote import quote, shorten
from pisti_env.record.fields import Comment, Deal, Path, Wrong
from pisti_env.record.lines import Place, Source, TooManyParts, places
from pisti_env.record.record import Record
from pisti_env.record.write import FORMAT, VERSION
from pisti_env.rules import Rules, parse_rules

MAX_FILE = 2**28  # bytes

_OF_FILE = ("format", "version", "records")
_OF_RECORD = ("rules", "agents", "date", "viewer", "seed", "scores", "comments", "deals")
_OF_DEAL = ("dealer", "deck", "plays", "scores", "comments")
_OF_COMMENT = ("play", "text")

_CARD_OF_TEXT = {**{name: card for card, name in enumerate(CARD_NAMES)}, "??": NO_CARD}


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Return the records of a file.

    Raises `ValueError` with one sentence that names the file, the line and the field if it is no
    file of records, and `OSError` if it cannot be read. Whether the deals can have been played so
    is not looked at here: `Record.check` plays them.
    """
    name = shorten(str(path))
    try:
        data = read_file(path, MAX_FILE)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}, line {line}: {error.reason}; expected UTF-8") from None
    return _read(text, name)


def parse_records(text: str) -> list[Record]:
    """Return the records of a text, as `read_records` does those of a file."""
    if not isinstance(text, str):
        raise ValueError(f"text is {quote(text)}; expected the text of a file of records")
    return _read(text, "")


def _read(text: str, file: str) -> list[Record]:
    where = f"{file}, " if file else ""
    try:
        lines, headers = _lines_and_headers(text)
        document = tomllib.loads(text)
    except TooManyParts as error:
        raise ValueError(f"{where}{error}") from None
    except RecursionError:
        raise ValueError(
            f"{where or 'text '}has values nested too deep; expected those of a file of records"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}{_with_line_first(str(error))}") from None
    except ValueError:  # of Python, which has no ints of thousands of digits
        raise ValueError(
            f"{where or 'text '}has a number of thousands of digits; expected that of a file of "
            "records"
        ) from None
    try:
        tables = _read_document(document)
    except Wrong as error:
        raise ValueError(f"{where}line {lines.get(error.path[0], 1)}: {error}") from None
    ends = [header.start for header in headers[1:]] + [len(text)]
    records = []
    for number, table in enumerate(tables):
        source = Source(file, number, text, 1)
        if len(headers) == len(tables):
            header = headers[number]
            source = Source(file, number, text[header.start : ends[number]], header.line)
        try:
            record = _read_record(table)
        except Wrong as error:
            raise ValueError(f"{source.where(error.path)} {error.told}") from None
        object.__setattr__(record, "source", source)
        records.append(record)
    return records


def _lines_and_headers(text: str) -> tuple[dict[str | int, int], list[Place]]:
    """Return on which lines the names of the file begin, and where each `[[records]]` stands."""
    lines: dict[str | int, int] = {}
    headers = []
    for place in places(text):
        name, *inner = place.path
        lines.setdefault(name, place.line)
        if name == "records" and len(inner) == 1 and text.startswith("[[", place.start):
            headers.append(place)
    return lines, headers


def _with_line_first(message: str) -> str:
    """Return what `tomllib` says as one sentence that begins with the line."""
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    told = shorten(message[: found.start()] if found else message)
    line = f"line {found[1]}: " if found and found[1] else "at its end: " if found else ""
    return f"{line}this is no TOML: {told}"


def _read_document(document: Mapping[str, Any]) -> list[Any]:
    """Return the tables of the records, after a look at what stands before them."""
    if "format" not in document:
        raise Wrong(("format",), f"is missing; expected format = {FORMAT!r}")
    if document["format"] != FORMAT:
        raise Wrong(("format",), f"is {quote(document['format'])}; expected {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        told = quote(version) if "version" in document else "missing"
        raise Wrong(
            ("version",), f"is {told}; expected {VERSION}, the only one that this release reads"
        )
    _check_keys((), document, _OF_FILE)
    return _list(("records",), document.get("records", []), "tables")


def _read_record(table: Any) -> Record:
    _check_keys((), table, _OF_RECORD, needed=("rules", "deals"))
    return Record(
        rules=_rules(table["rules"]),
        agents=tuple(_list(("agents",), table.get("agents", []), "names")),
        date=table.get("date"),
        viewer=table.get("viewer"),
        seed=_seed(table.get("seed")),
        scores=_numbers(("scores",), table["scores"]) if "scores" in table else (),
        comments=tuple(_list(("comments",), table.get("comments", []), "texts")),
        deals=tuple(
            _deal(("deals", number), deal)
            for number, deal in enumerate(_list(("deals",), table["deals"], "tables"))
        ),
    )


def _deal(path: Path, table: Any) -> Deal:
    _check_keys(path, table, _OF_DEAL, needed=("dealer", "deck", "plays"))
    scores = (*path, "scores")
    return Deal(
        dealer=table["dealer"],
        deck=_cards((*path, "deck"), table["deck"]),
        plays=_cards((*path, "plays"), table["plays"]),
        scores=_numbers(scores, table["scores"]) if "scores" in table else None,
        comments=tuple(
            _comment((*path, "comments", number), comment)
            for number, comment in enumerate(
                _list((*path, "comments"), table.get("comments", []), "tables")
            )
        ),
    )


def _comment(path: Path, table: Any) -> Comment:
    _check_keys(path, table, _OF_COMMENT, needed=_OF_COMMENT)
    return Comment(table["play"], table["text"])


def _rules(value: Any) -> Rules:
    try:
        if isinstance(value, str):
            return parse_rules(value)
        if isinstance(value, dict):
            return Rules.from_dict(value)
    except ValueError as error:
        raise Wrong(("rules",), f"is wrong: {error}") from None
    raise Wrong(
        ("rules",), f"is {quote(value)}; expected a table of fields or a text such as 'istanbul'"
    )


def _seed(value: Any) -> Any:
    """Return the number that a text of digits is: TOML's own end at 2**63 - 1."""
    if isinstance(value, str) and len(value) < 21 and value.isascii() and value.isdigit():
        return int(value)
    return value


def _cards(path: Path, value: Any) -> tuple[int, ...]:
    """Return the cards of a text, or of a list of texts."""
    texts = [value] if isinstance(value, str) else _list(path, value, "texts of cards")
    cards: list[int] = []
    for number, text in enumerate(texts):
        here = path if isinstance(value, str) else (*path, number)
        if not isinstance(text, str):
            raise Wrong(here, f"is {quote(text)}; expected a text of cards such as '9H TD'")
        for found in re.finditer(r"\S+", text):  # one at a time: a file may have millions
            name = found.group()
            card = _CARD_OF_TEXT.get(name.upper()) if name.isascii() else None
            if card is None:
                raise Wrong(here, f"has {quote(name)}; expected cards such as 9H or TD")
            cards.append(card)
    return tuple(cards)


def _numbers(path: Path, value: Any) -> tuple[Any, ...]:
    if value == []:
        raise Wrong(path, "is []; expected points, one for each side")
    return tuple(_list(path, value, "points"))


def _list(path: Path, value: Any, of_what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Wrong(path, f"is {quote(value)}; expected an array of {of_what}")
    return value


def _check_keys(
    path: Path, table: Any, allowed: tuple[str, ...], needed: tuple[str, ...] = ()
) -> None:
    if not isinstance(table, dict):
        raise Wrong(path, f"is {quote(table)}; expected a table")
    for name in table:
        if name not in allowed:
            raise Wrong((*path, name), f"is unknown; expected {', '.join(allowed)}")
    for name in needed:
        if name not in table:
            raise Wrong((*path, name), "is missing")
