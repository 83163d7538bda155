"""Records as text. The same records are the same text, byte for byte."""

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from pisti_env.files import write_file
from pisti_env.record.fields import Deal, cards_text
from pisti_env.record.record import Record
from pisti_env.rules import NUM_STARTERS, Rules

FORMAT = "pisti-records"
VERSION = 1

MAX_TOML_INT = 2**63 - 1  # a reader of TOML need not take greater ones


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write records as one file, whole or not at all. Raises `OSError` if that fails."""
    write_file(path, records_text(records).encode())


def records_text(records: Iterable[Record]) -> str:
    """Return records as the text of a file, which `parse_records` reads."""
    lines = [f"format = {_string(FORMAT)}", f"version = {VERSION}"]
    for record in records:
        lines += ["", *_record_lines(record)]
    return "\n".join(lines) + "\n"


def _record_lines(record: Record) -> Iterator[str]:
    yield "[[records]]"
    yield f"rules = {_rules(record.rules)}"
    if record.agents:
        yield f"agents = {_array(map(_string, record.agents))}"
    if record.date is not None:
        yield f"date = {record.date.isoformat()}"
    if record.viewer is not None:
        yield f"viewer = {_value(record.viewer)}"
    if record.seed is not None:
        yield f"seed = {_value(record.seed if record.seed <= MAX_TOML_INT else str(record.seed))}"
    if any(record.scores):
        yield f"scores = {_array(map(str, record.scores))}"
    if record.comments:
        yield from _long_array("comments", map(_string, record.comments))
    for deal in record.deals:
        yield ""
        yield from _deal_lines(deal, record.rules)


def _deal_lines(deal: Deal, rules: Rules) -> Iterator[str]:
    yield "[[records.deals]]"
    yield f"dealer = {deal.dealer}"
    starters, stock = deal.deck[:NUM_STARTERS], deal.deck[NUM_STARTERS:]
    yield from _long_array("deck", map(_cards, [starters, *_packets(stock, rules)]))
    yield from _long_array("plays", map(_cards, _packets(deal.plays, rules)))
    if deal.scores is not None:
        yield f"scores = {_array(map(str, deal.scores))}"
    if deal.comments:
        told = (f"{{play = {play}, text = {_string(text)}}}" for play, text in deal.comments)
        yield from _long_array("comments", told)


def _packets(cards: tuple[int, ...], rules: Rules) -> Iterator[tuple[int, ...]]:
    size = rules.packet_size
    return (cards[start : start + size] for start in range(0, len(cards), size))


def _rules(rules: Rules) -> str:
    """Return the fields that differ from the standard game as an inline table."""
    standard = Rules().to_dict()
    changed = [
        f"{name} = {_value(value)}"
        for name, value in rules.to_dict().items()
        if value != standard[name]
    ]
    return f"{{{', '.join(changed)}}}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else str(value)


def _cards(cards: tuple[int, ...]) -> str:
    return f'"{cards_text(cards)}"'


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # what JSON escapes, TOML reads


def _array(elements: Iterable[str]) -> str:
    return f"[{', '.join(elements)}]"


def _long_array(name: str, elements: Iterable[str]) -> Iterator[str]:
    """Yield the lines of an array with an element a line."""
    lines = [f"    {element}," for element in elements]
    if not lines:
        yield f"{name} = []"
        return
    yield f"{name} = ["
    yield from lines
    yield "]"
