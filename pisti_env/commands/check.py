"""`pisti check`: records played anew by the rules."""

import argparse
from typing import Any

from pisti_env.commands.records import read
from pisti_env.commands.screen import tell
from pisti_env.progress import progress_bar
from pisti_env.quote import shorten


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, what `add_subparsers` returns."""
    command = commands.add_parser(
        "check",
        help="play a file of records by the rules",
        description="Play all records of a file by the rules. The first thing that is wrong is "
        "told with its line, and the status is 2.",
    )
    command.add_argument("file", metavar="FILE", help="of records, as `pisti watch` writes them")
    command.set_defaults(run=check)


def check(options: argparse.Namespace) -> None:
    """Check a file; print how much is in it."""
    records = read(options.file)
    with progress_bar(len(records), "records") as bar:
        for record in records:
            record.check()
            bar.update()
    deals = [deal for record in records for deal in record.deals]
    counts = [
        _count(len(records), "record"),
        _count(len(deals), "deal"),
        _count(sum(len(deal.plays) for deal in deals), "play"),
    ]
    told = f"{shorten(options.file)}: {', '.join(counts)}, all by the rules"
    seen = sum(record.viewer is not None for record in records)
    if seen:
        told += f"; {_count(seen, 'record')} without what the viewer did not see"
    tell(told)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
