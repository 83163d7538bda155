"""docs/rules.md: every paragraph has a test, and what it says of options is so.

A test names the paragraphs that it tests in its docstring, as §4.2.
"""

import ast
import re
from pathlib import Path

from pisti_env import Rules
from pisti_env.rules import PRESETS

TESTS = Path(__file__).resolve().parent
BOOK = (TESTS.parent / "docs" / "rules.md").read_text(encoding="utf-8")
PARAGRAPHS = re.findall(r"^\*\*(\d+\.\d+)\*\*", BOOK, re.MULTILINE)
CHAPTERS = re.findall(r"^## (\d+)\. ", BOOK, re.MULTILINE)
NOT_OF_RULES = {"test_rules_book.py"}


def named(text: str) -> set[str]:
    return set(re.findall(r"§(\d+\.\d+)", text))


def named_in_tests() -> dict[str, set[str]]:
    """The paragraphs that each test names in its docstring."""
    paragraphs = {}
    for source in sorted(TESTS.rglob("test_*.py")):
        if source.name in NOT_OF_RULES:
            continue
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                paragraphs[f"{source.name}::{node.name}"] = named(ast.get_docstring(node) or "")
    return paragraphs


def table(*head: str) -> list[list[str]]:
    """The cells of the one table whose header begins so."""
    lines = BOOK.splitlines()
    [start] = [
        number for number, line in enumerate(lines) if line.startswith(f"| {' | '.join(head)} |")
    ]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" `") for cell in line.strip("|").split("|")])
    return rows


def value_of(text: str) -> object:
    words = {"None": None, "True": True, "False": False}
    return words[text] if text in words else int(text) if text.isdigit() else text.strip('"')


def test_paragraphs_are_numbered_in_order():
    count = dict.fromkeys(CHAPTERS, 0)
    assert list(count) == [str(number + 1) for number in range(len(CHAPTERS))]
    for paragraph in PARAGRAPHS:
        chapter = paragraph.split(".")[0]
        count[chapter] += 1
        assert paragraph == f"{chapter}.{count[chapter]}"
    assert sorted(PARAGRAPHS, key=lambda text: [int(n) for n in text.split(".")]) == PARAGRAPHS
    assert all(count.values())


def test_every_paragraph_has_a_test():
    tested = set().union(*named_in_tests().values())
    assert [paragraph for paragraph in PARAGRAPHS if paragraph not in tested] == []


def test_every_paragraph_that_is_named_is_there():
    for name, paragraphs in {"docs/rules.md": named(BOOK), **named_in_tests()}.items():
        assert paragraphs <= set(PARAGRAPHS), name


def test_every_test_of_the_rules_of_play_names_its_paragraph():
    unnamed = [
        name
        for name, paragraphs in named_in_tests().items()
        if name.startswith("test_rules_of_play.py") and not paragraphs
    ]
    assert unnamed == ["test_rules_of_play.py::test_a_card_that_is_not_known_is_no_jack"]


def test_options_are_those_of_rules():
    rows = table("option", "default", "allowed", "paragraph")
    defaults = {name: value_of(default) for name, default, _, _ in rows}
    assert {name: repr(value) for name, value in defaults.items()} == {
        name: repr(value) for name, value in Rules().to_dict().items()
    }
    for name, _, _, told in rows:
        texts = [re.split(rf"^\*\*{n}\*\*", BOOK, flags=re.MULTILINE)[1] for n in named(told)]
        assert texts, name
        about = "".join(text.split("\n**")[0] for text in texts)
        assert f"`{name}" in about or name in ("players", "target"), name


def test_options_allow_what_the_table_says():
    for name, _, allowed, _ in table("option", "default", "allowed", "paragraph"):
        for choice in re.findall(r'"(\w+)"', allowed):
            assert getattr(Rules(**{name: choice}), name) == choice
        for low, high in re.findall(r"^(\d+) to (\d+)$", allowed):
            assert refused(name, int(low) - 1) and refused(name, int(high) + 1)
            assert not refused(name, int(high))
        for low in re.findall(r"^(\d+) or more", allowed):
            assert refused(name, int(low) - 1) and not refused(name, int(low))
            assert not refused(name, 1000)


def refused(name: str, value: int) -> bool:
    """Whether this option is refused; where little is left of the pack, two packs are played."""
    try:
        Rules(**{"packs": 2, "hand_size": 1, name: value})
    except ValueError:
        return True
    return False


def test_presets_are_those_of_rules():
    told = {}
    for name, options in table("preset", "options"):
        fields = re.findall(r"(\w+)=(\w+)", options)
        told[name] = {field: value_of(value) for field, value in fields}
    assert told == PRESETS
