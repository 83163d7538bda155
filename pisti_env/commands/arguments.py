"""Arguments that several commands have."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pisti_env.agents import shipped_checkpoints
from pisti_env.agents.baselines import BASELINES


def agent_names() -> str:
    """Return, for a help, what an agent can be called."""
    names = ", ".join([*BASELINES, *sorted(shipped_checkpoints())])
    return (
        f"{names}, a checkpoint, a training run's folder, or MODULE:NAME, an agent's class in a "
        "module that can be imported from here"
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
