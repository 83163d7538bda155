"""Arguments that several commands have."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pisti_env.agents import load, shipped_checkpoints
from pisti_env.agents.baselines import BASELINES
from pisti_env.rules import Rules, parse_rules
from pisti_env.search.name import is_search, read_name


def agent_names() -> str:
    """Return, for a help, what an agent can be called."""
    names = ", ".join([*BASELINES, *sorted(shipped_checkpoints())])
    return (
        f"{names}, a checkpoint, a training run's folder, search:AGENT, which thinks with one of "
        "these before it plays, or MODULE:NAME, an agent's class in a module that can be imported "
        "from here"
    )


def add_rules(
    command: argparse.ArgumentParser,
    default: str | None = "standard",
    default_text: str = "%(default)s",
) -> None:
    """Give a command the option --rules."""
    command.add_argument(
        "--rules",
        default=default,
        metavar="RULES",
        help=f"a preset, fields, or both: istanbul,players=4 (default: {default_text})",
    )


def rules_of(text: str | None, agents: Sequence[str]) -> Rules:
    """Return the rules that --rules names; without it those of the first agent that is a policy
    or thinks with one, or the standard ones if none is."""
    if text is not None:
        return parse_rules(text)
    thinks_with = [read_name(name)[0] if is_search(name) else name for name in agents]
    policies = [name for name in thinks_with if name not in BASELINES]
    return load(policies[0]).rules if policies else Rules()


def add_json(command: argparse.ArgumentParser) -> None:
    """Give a command the option --json."""
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")


@contextlib.contextmanager
def importing_from_here() -> Iterator[None]:
    """Let MODULE:NAME be in a file of the current folder, as `python -m` does; modules that are
    installed come first."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)
