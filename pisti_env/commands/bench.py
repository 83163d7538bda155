"""`pisti bench`: speed and memory."""

import argparse
from typing import Any

from pisti_env.commands.arguments import add_json
from pisti_env.commands.screen import check_files, tell_and_write


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, what `add_subparsers` returns."""
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
    add_json(command)
    command.set_defaults(run=run_bench)


def run_bench(options: argparse.Namespace) -> None:
    """Measure speed and memory; print the results and perhaps write them."""
    from pisti_env import bench

    if not 0 < options.seconds < float("inf"):
        raise ValueError(f"seconds is {options.seconds}; expected a number above 0")
    if options.rounds < 1:
        raise ValueError(f"rounds is {options.rounds}; expected an int of 1 or more")
    check_files(options.json)
    benchmark = bench.run(options.seconds, options.rounds)
    tell_and_write(bench.report(benchmark), options.json, benchmark)
