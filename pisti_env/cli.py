"""The command `pisti`: finds what is asked for, and says in one line why it failed."""

import argparse
import codecs
import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gymnasium.error import DependencyNotInstalled

from pisti_env import __version__
from pisti_env.commands import COMMANDS
from pisti_env.commands.screen import tell
from pisti_env.plain import plain
from pisti_env.quote import shorten

USER_MISTAKE = 2
INTERRUPTED = 130  # what shells report for Ctrl-C


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
    except (ValueError, OSError, MemoryError, DependencyNotInstalled) as error:
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


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="pisti", description="Pişti for machine learning.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
