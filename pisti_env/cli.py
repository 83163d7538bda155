"""The command `pisti`."""

import argparse
import ast
import codecs
import contextlib
import dataclasses
import errno
import inspect
import io
import itertools
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pisti_env import __version__, arena, bench
from pisti_env.agents import load, shipped_checkpoints
from pisti_env.agents.baselines import BASELINES
from pisti_env.cluster import playing_on_ray
from pisti_env.files import check_can_write, write_file
from pisti_env.observation import ENCODINGS, describe
from pisti_env.plain import plain
from pisti_env.quote import shorten
from pisti_env.rules import PRESETS, Rules, parse_rules, rules_text

USER_MISTAKE = 2
INTERRUPTED = 130  # what shells report for Ctrl-C
BROKEN_PIPE = 141  # and for a program whose output nobody reads any more


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one plain line."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(USER_MISTAKE, f"{self.prog}: {shorten(message, 500)}\n")

    def print_help(self, file: Any = None) -> None:
        """Print the help, which argparse does not notice to fail."""
        tell(self.format_help().rstrip())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; end the program with a status that is not zero if it fails."""
    make_streams_take_every_letter()
    parser, name = make_parser(), "pisti"
    try:
        options = parser.parse_args(arguments)
        if options.version:
            tell(f"pisti-env {__version__}")
        elif options.command is None:
            parser.print_help()
        else:
            name = f"pisti {options.command}"
            options.run(options)
    except (ValueError, OSError, MemoryError) as error:
        reason = shorten(" ".join(str(error).split()), 1000) or "out of memory"
        parser.exit(USER_MISTAKE, f"{name}: {reason}\n")
    except KeyboardInterrupt:
        parser.exit(INTERRUPTED, f"{name}: interrupted\n")


def make_streams_take_every_letter() -> None:
    """Have streams whose encoding lacks a letter show a plainer one: "s" for "ş"."""
    codecs.register_error("pisti_plain", plainer)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="pisti_plain")


def plainer(error: UnicodeError) -> tuple[str, int]:
    """Return what to write in place of letters that an encoding lacks, and where to go on."""
    assert isinstance(error, UnicodeEncodeError)
    return plain(error.object[error.start : error.end]), error.end


# What comes on the screen.


def tell(text: str) -> None:
    """Print a command's answer. Where nobody reads it any more, the program ends without a word;
    raises `OSError` where it cannot be written."""
    try:
        print(text, flush=True)
    except OSError as error:
        _print_no_more()
        if error.errno in (errno.EPIPE, errno.EINVAL):  # the second is Windows' word for it
            raise SystemExit(BROKEN_PIPE) from None
        raise OSError(f"standard output cannot be written: {error.strerror}") from None


def tell_and_write(text: str, path: Path | None, data: object) -> None:
    """Write data as JSON if there is a path, then print a command's answer, even if that failed:
    where the file or the screen fails, the other still has the result."""
    try:
        if path is not None:
            write_file(path, (json.dumps(data, indent=2, allow_nan=False) + "\n").encode())
            text += f"\n\nwritten to {path}"
    finally:
        tell(text)


def warn(text: str) -> None:
    """Print a line to stderr if that can be written."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"warning: {text}", file=sys.stderr)


def _print_no_more() -> None:
    """Keep Python from trying once more, when it ends, to write what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# The commands.


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="pisti", description="Pişti for machine learning.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    command = commands.add_parser(
        "evaluate",
        help="measure agents against each other on mirrored deals",
        description="Play every deck in all seatings and print points a deal with a 95 % interval, "
        "deals won, drawn and lost, and the chance to win a match. As many agents as sides play at "
        "one table; of any other number every pair plays, the first on one side, the second on all "
        "others.",
    )
    names = ", ".join([*BASELINES, *sorted(shipped_checkpoints())])
    command.add_argument(
        "agents",
        nargs="+",
        metavar="AGENT",
        help=f"{names}, a checkpoint, a training run's folder, or MODULE:NAME, an agent's class in "
        "a module that can be imported from here",
    )
    command.add_argument(
        "--first-only",
        action="store_true",
        help="play the first agent against each of the others, and not those against each other",
    )
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
    check_file(options.json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(importing_from_here())
        if rules is None:
            policies = [name for name in options.agents if name not in BASELINES]
            rules = load(policies[0]).rules if policies else Rules()
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
            first_only=options.first_only,
            progress=True,
            play=play,
        )
    for note in evaluation.notes:
        warn(note)
    text = (
        f"{evaluation.deals:,} decks, each in {rules.sides} seatings; "
        f"rules {rules_text(rules)} ({rules.hash}); seed {evaluation.seed}\n\n{evaluation}"
    )
    tell_and_write(text, options.json, evaluation.to_dict())


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


def check_file(path: Path | None) -> None:
    """Raise `OSError` now, rather than after a long computation, if a file cannot be written."""
    if path is None:
        return
    for stream in (1, 2):  # text for the screen would go to the file that is replaced, and be lost
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(stream), os.stat(path)):
                raise ValueError(f"{path} cannot be written: what is printed goes there already")
    check_can_write(path)


# pisti bench


def run_bench(options: argparse.Namespace) -> None:
    """Measure speed and memory; print the results and perhaps write them."""
    if not 0 < options.seconds < float("inf"):
        raise ValueError(f"seconds is {options.seconds}; expected a number above 0")
    if options.rounds < 1:
        raise ValueError(f"rounds is {options.rounds}; expected an int of 1 or more")
    check_file(options.json)
    benchmark = bench.run(options.seconds, options.rounds)
    tell_and_write(bench.report(benchmark), options.json, benchmark)


# pisti rules, pisti describe


def list_rules(options: argparse.Namespace) -> None:
    """Print presets, options and what follows from them."""
    rules = parse_rules(options.rules)
    lines = ["Presets:"]
    lines += [f"  {name:<13} {rules_text(Rules.preset(name))}" for name in PRESETS]
    lines += ["", f"Options, as in {options.rules}:"]
    meanings = option_meanings()
    for name, value in rules.to_dict().items():
        lines.append(f"  {name:<27} {value!s:<11} {meanings[name]}")
    lines += [
        "",
        f"{rules.players} players, {rules.sides} sides, a deck of {rules.deck_size} cards, "
        f"{rules.num_plays} plays a deal, hash {rules.hash}",
    ]
    tell("\n".join(lines))


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
    tell(str(describe(options.encoding, parse_rules(options.rules))))
