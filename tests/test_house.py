"""Imports run downward only.

A module may import from lower floors, and from its own floor where PEERS says so.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pisti_env"

FLOORS = {
    "files": 0,  # files written whole or not at all
    "plain": 0,  # text for screens that lack some letters
    "progress": 0,  # how far something is
    "quote": 0,  # how messages quote what a user gave
    "cards": 0,  # card ids, text in and out
    "rules": 0,  # which rules are played
    "shuffle": 0,  # seeded decks
    "compile": 0,  # how functions are compiled and cached
    "counts": 0,  # how many of each kind, as one number
    "compiled_rules": 1,  # the rules as numbers
    "game": 1,  # how the rules are played
    "loops": 1,  # the game at many tables
    "checks": 2,  # what users give, checked at the border
    "tables": 2,  # decks, deals and plays of many tables
    "observation": 2,  # what a seat knows, as numbers
    "knowledge": 2,  # what a seat knows
    "render": 2,  # what a view looks like
    "position": 2,  # a view as one line of text
    "pisti_v0": 3,  # the PettingZoo environment
    "record": 3,  # deals and matches as files
    "vector": 3,  # many tables at once
    "agents": 4,  # they see observation and mask
    "search": 4,  # a player that thinks before it plays
    "replay": 4,  # records on a screen, a page, in pictures
    "kept_deals": 4,  # deals of the arena as records
    "results": 4,  # what the arena found
    "arena": 5,  # mirrored deals, intervals
    "coach": 5,  # what a policy thinks, what each play cost
    "openspiel": 5,  # the game for OpenSpiel, and agents in it
    "single": 5,  # one learner against agents, with Gymnasium
    "bench": 6,  # how fast it is here
    "cluster": 6,  # the arena on many machines
    "commands": 6,  # what `pisti` does
    "cli": 6,
    "__main__": 6,
    "": 7,  # pisti_env/__init__.py: offers what lies below, so nothing below imports from it
}

PEERS = {
    ("cards", "quote"),
    ("compile", "quote"),
    ("files", "quote"),
    ("rules", "quote"),
    ("shuffle", "quote"),
    ("rules", "cards"),
    ("counts", "cards"),
    ("counts", "compile"),
    ("shuffle", "compile"),
    ("game", "compiled_rules"),
    ("loops", "game"),
    ("tables", "checks"),
    ("tables", "observation"),
    ("knowledge", "checks"),
    ("knowledge", "observation"),
    ("knowledge", "tables"),
    ("position", "checks"),
    ("position", "knowledge"),
    ("position", "observation"),
    ("position", "tables"),
    ("render", "checks"),
    ("render", "knowledge"),
    ("knowledge", "render"),  # notebooks ask a view itself for its picture
    ("commands", "bench"),
    ("commands", "cluster"),
    ("cli", "commands"),
    ("search", "agents"),
    ("agents", "search"),  # `load` makes one
    ("record", "pisti_v0"),
    ("pisti_v0", "record"),  # an environment makes a record of itself
    ("__main__", "cli"),
}

SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULES = [source.relative_to(ROOT).as_posix() for source in SOURCES]


def module_parts(source: Path) -> list[str]:
    """pisti_env/agents/greedy.py: ["pisti_env", "agents", "greedy"]."""
    parts = list(source.relative_to(ROOT).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(source: Path) -> Iterator[str]:
    """The full name of everything that a file imports, inside functions too."""
    package = module_parts(source)
    if source.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from pisti_env import game` names a module, `from pisti_env.game import …` a thing.
            yield from (f"{module}.{alias.name}" for alias in node.names)


def room(parts: list[str]) -> str:
    """Which entry of FLOORS a name under pisti_env belongs to."""
    name = parts[1] if len(parts) > 1 else ""
    is_module = (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    return name if is_module else ""


def test_reading_imports():
    assert "pisti_env.rules.Rules" in imports(PACKAGE / "__init__.py")
    assert room(["pisti_env", "rules", "Rules"]) == "rules"
    assert room(["pisti_env", "Rules"]) == ""


def test_nothing_has_a_floor_that_is_not_there():
    assert set(FLOORS) == {room(module_parts(source)) for source in SOURCES}
    assert {name for peers in PEERS for name in peers} <= set(FLOORS)


@pytest.mark.parametrize("source", SOURCES, ids=MODULES)
def test_imports_run_downward(source):
    here = room(module_parts(source))
    assert here in FLOORS, f"place {here} on a floor (FLOORS in {Path(__file__).name})"
    for name in imports(source):
        parts = name.split(".")
        if parts[0] != "pisti_env" or name == "pisti_env.__version__":  # data, of no floor
            continue
        there = room(parts)
        assert there in FLOORS, f"place {there} on a floor (FLOORS in {Path(__file__).name})"
        assert FLOORS[there] < FLOORS[here] or there == here or (here, there) in PEERS, (
            f"{here or 'pisti_env'} (floor {FLOORS[here]}) imports {name} (floor {FLOORS[there]})"
        )


@pytest.mark.parametrize("source", SOURCES, ids=MODULES)
def test_playing_needs_no_torch(source):
    tops = {name.split(".")[0] for name in imports(source)}
    assert not tops & {"torch", "training", "tests"}


def test_the_game_knows_no_learning():
    tops = {name.split(".")[0] for name in imports(PACKAGE / "game.py")}
    assert not tops & {"gymnasium", "pettingzoo", "random"}


def test_the_referee_is_a_second_opinion():
    assert not any(name.startswith("pisti_env.game") for name in imports(ROOT / "tests/referee.py"))
