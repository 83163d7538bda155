"""The command `pisti`."""

import argparse
import ast
import contextlib
import dataclasses
import inspect
import io
import itertools
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pisti_env import __version__, arena, bench
from pisti_env.agents import load, shipped_checkpoints
from pisti_env.agents.baselines import BASELINES
from pisti_env.agents.checkpoint import write_file
from pisti_env.cluster import playing_on_ray
from pisti_env.observation import ENCODINGS, describe
from pisti_env.rules import PRESETS, Rules, parse_rules, rules_text

USER_MISTAKE = 2
INTERRUPTED = 130  # what shells report for Ctrl-C


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one plain line."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(USER_MISTAKE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; end the program with a status that is not zero if it fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every encoding has a "ş"
    parser = make_parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError, MemoryError) as error:
        reason = " ".join(str(error).split()) or "out of memory"
        parser.exit(USER_MISTAKE, f"pisti {options.command}: {reason}\n")
    except KeyboardInterrupt:
        parser.exit(INTERRUPTED, f"pisti {options.command}: interrupted\n")


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="pisti", description="Pişti for machine learning.")
    parser.add_argument("--version", action="version", version=f"pisti-env {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser(
        "evaluate",
        help="measure agents against each other on mirrored deals",
        description="Play every deck in all seatings and print points a deal with a 95 % interval, "
        "deals won, drawn and lost, and the chance to win a match. As many agents as sides play at "
        "one table; of any other number every pair plays, the first on one side, the second on all "
        "others.",
    )
    names = ", ".join([*BASELINES, *sorted(shipped_checkpoints())])
    command.add_argument("agents", nargs="+", metavar="AGENT", help=f"{names}, or a checkpoint")
    command.add_argument("--deals", type=int, default=10_000, help="decks (default: %(default)s)")
    add_rules(command, default=None, default_text="those of the first policy, else standard")
    command.add_argument("--seed", type=int, default=0, help="of the decks (default: %(default)s)")
    command.add_argument(
        "--sample", action="store_true", help="policies draw a card instead of taking their best"
    )
    command.add_argument(
        "--strict", action="store_true", help="refuse a policy that was trained under other rules"
    )
    command.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="play on a Ray cluster: the one at HOST:PORT; without ADDRESS that of RAY_ADDRESS, or "
        "all cores of this machine",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    command.set_defaults(run=evaluate)

    command = commands.add_parser(
        "bench",
        help="measure speed and memory",
        description="Print plays a second of the environments and of many tables, and bytes per "
        "table.",
    )
    command.add_argument(
        "--seconds", type=float, default=0.3, help="of each turn (default: %(default)s)"
    )
    command.add_argument(
        "--rounds", type=int, default=5, help="turns of each (default: %(default)s)"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    command.set_defaults(run=run_bench)

    command = commands.add_parser(
        "rules",
        help="list presets and options",
        description="List the presets, and every option with its value under --rules.",
    )
    add_rules(command)
    command.set_defaults(run=list_rules)

    command = commands.add_parser(
        "describe",
        help="print the layout of an observation",
        description="Print what each number of an observation means, as a table.",
    )
    command.add_argument("encoding", help=f"{', '.join(ENCODINGS)}, or state")
    add_rules(command)
    command.set_defaults(run=print_layout)
    return parser


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


# pisti evaluate


def evaluate(options: argparse.Namespace) -> None:
    """Measure agents; print the results and perhaps write them."""
    rules = None if options.rules is None else parse_rules(options.rules)
    if options.json is not None:
        check_can_write(options.json)
    if rules is None:
        policies = [name for name in options.agents if name not in BASELINES]
        rules = load(policies[0]).rules if policies else Rules()
    with contextlib.ExitStack() as stack:
        play = None
        if options.ray is not None:
            play = stack.enter_context(playing_on_ray(options.ray or None))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", UserWarning)  # they are in `evaluation.notes` too
        evaluation = arena.evaluate(
            options.agents,
            rules,
            options.deals,
            options.seed,
            sample=options.sample or None,
            strict=options.strict,
            progress=True,
            play=play,
        )
    for note in evaluation.notes:
        print(f"warning: {note}", file=sys.stderr)
    print(
        f"{evaluation.deals:,} decks, each in {rules.sides} seatings; "
        f"rules {rules_text(rules)} ({rules.hash}); seed {evaluation.seed}\n\n{evaluation}"
    )
    if options.json is not None:
        text = json.dumps(evaluation.to_dict(), indent=2, allow_nan=False) + "\n"
        write_file(options.json, text.encode())
        print(f"\nwritten to {options.json}")


def check_can_write(path: Path) -> None:
    """Raise `OSError` now, rather than after a long computation, if a file cannot be written."""
    if path.is_symlink() or (path.exists() and not path.is_file()):  # /dev/stdout is both
        raise OSError(f"{path} cannot be written: it is there and is not a plain file")
    neighbour = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        neighbour.touch()
        neighbour.unlink()
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror}") from None


# pisti bench


def run_bench(options: argparse.Namespace) -> None:
    """Measure speed and memory; print the results and perhaps write them."""
    if not 0 < options.seconds < float("inf"):
        raise ValueError(f"seconds is {options.seconds}; expected a number above 0")
    if options.rounds < 1:
        raise ValueError(f"rounds is {options.rounds}; expected an int of 1 or more")
    if options.json is not None:
        check_can_write(options.json)
    benchmark = bench.run(options.seconds, options.rounds)
    print(bench.report(benchmark))
    if options.json is not None:
        write_file(options.json, (json.dumps(benchmark, indent=1) + "\n").encode())
        print(f"\nwritten to {options.json}")


# pisti rules, pisti describe


def list_rules(options: argparse.Namespace) -> None:
    """Print presets, options and what follows from them."""
    rules = parse_rules(options.rules)
    print("Presets:")
    for name in PRESETS:
        print(f"  {name:<13} {rules_text(Rules.preset(name))}")
    print(f"\nOptions, as in {options.rules}:")
    meanings = option_meanings()
    for name, value in rules.to_dict().items():
        print(f"  {name:<27} {value!s:<11} {meanings[name]}")
    print(
        f"\n{rules.players} players, {rules.sides} sides, a deck of {rules.deck_size} cards, "
        f"{rules.num_plays} plays a deal, hash {rules.hash}"
    )


def option_meanings() -> dict[str, str]:
    """Return the sentence under each field of `Rules`, read from its source."""
    [definition] = ast.parse(inspect.getsource(Rules)).body
    assert isinstance(definition, ast.ClassDef)
    meanings = dict.fromkeys((field.name for field in dataclasses.fields(Rules)), "")
    for field, below in itertools.pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                meanings[name] = " ".join(text.split())
    return meanings


def print_layout(options: argparse.Namespace) -> None:
    """Print the layout of an encoding."""
    print(describe(options.encoding, parse_rules(options.rules)))
