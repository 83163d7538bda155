"""`pisti replay`: a record in the terminal, as a page, an animation or a picture."""

import argparse
from pathlib import Path
from typing import Any

from pisti_env.commands.records import add_file, read_one, viewer
from pisti_env.commands.screen import check_files, on_terminal, tell
from pisti_env.files import write_file
from pisti_env.progress import progress_bar
from pisti_env.quote import quote
from pisti_env.record import Record

SIZE, PAGE_SIZE = 480, 800  # pixels
HELP = "Enter or n: next play, b: back, a number: that play, d and a number: that deal, q: quit"


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, what `add_subparsers` returns."""
    command = commands.add_parser(
        "replay",
        help="step through a record, or make a page or pictures of it",
        description="Step through a record in the terminal, all hands face up, or write a page or "
        "pictures. Where standard input or output is no terminal, all plays are printed.",
    )
    add_file(command)
    command.add_argument(
        "--play", type=int, default=0, metavar="N", help="begin after N plays of the deal"
    )
    command.add_argument(
        "--seat",
        type=viewer,
        metavar="SEAT",
        help="show only what this seat knew, or what everyone did (default: all that is recorded)",
    )
    command.add_argument(
        "--html", type=Path, metavar="OUT", help="write a page with all deals, for any browser"
    )
    command.add_argument("--gif", type=Path, metavar="OUT", help="write an animation of the deal")
    command.add_argument("--svg", type=Path, metavar="OUT", help="write the picture at --play")
    command.add_argument(
        "--size",
        type=int,
        metavar="PIXELS",
        help=f"width of pictures, from 120 (default: {SIZE}, on a page {PAGE_SIZE})",
    )
    command.set_defaults(run=replay)


def replay(options: argparse.Namespace) -> None:
    """Show a record, or write what is asked for."""
    from pisti_env.replay import check_moment

    check_files(options.html, options.gif, options.svg, read=[options.file])
    record = read_one(options.file, options.record)
    check_moment(record, options.deal, options.play)
    if options.seat is not None:
        record = record.seen_by(options.seat)
    if options.html or options.gif or options.svg:
        write(record, options)
    elif on_terminal():
        step_through(record, options.deal, options.play)
    else:
        print_all(record, options.deal, options.play)


def write(record: Record, options: argparse.Namespace) -> None:
    """Write page, animation and picture, as far as they are asked for."""
    from pisti_env.replay import animation, page, picture

    deal, play = options.deal, options.play
    size = SIZE if options.size is None else options.size
    if options.svg:
        write_file(options.svg, picture(record, deal, play, size).encode())
        tell(f"written to {options.svg}")
    if options.gif:
        with progress_bar(len(record.deals[deal].plays) + 1, "pictures") as bar:
            data = animation(record, deal, size, bar.update)
        write_file(options.gif, data)
        tell(f"written to {options.gif}")
    if options.html:
        pictures = sum(len(one.plays) + 1 for one in record.deals)
        with progress_bar(pictures, "pictures") as bar:
            width = PAGE_SIZE if options.size is None else options.size
            text = page(record, deal, play, width, bar.update)
        write_file(options.html, text.encode())
        tell(f"written to {options.html}")


def print_all(record: Record, deal: int, play: int) -> None:
    """Print every moment from a play on."""
    from pisti_env.replay import moments, text, title_of

    _tell_head(record, title_of(record))
    for number in range(deal, len(record.deals)):
        for moment in moments(record, number):
            if number > deal or moment.play >= play:
                tell("\n" + text(record, moment))


def step_through(record: Record, deal: int, play: int) -> None:
    """Show one moment after the other, as is asked for on standard input."""
    from pisti_env.replay import check_moment, moment, text, title_of

    _tell_head(record, title_of(record))
    tell(HELP)
    while True:
        tell("\n" + text(record, moment(record, deal, play)))
        while True:  # until something else is to be shown
            try:
                asked = input("> ").strip().lower()
            except EOFError:
                return
            if asked in ("q", "quit"):
                return
            try:
                going = _going(record, deal, play, asked)
                check_moment(record, *going)
            except ValueError as error:
                tell(str(error))
                continue
            deal, play = going
            break


def _going(record: Record, deal: int, play: int, asked: str) -> tuple[int, int]:
    """Return the deal and the play that an answer leads to, there or not."""
    if asked in ("", "n"):
        if play < len(record.deals[deal].plays):
            return deal, play + 1
        if deal + 1 == len(record.deals):
            raise ValueError("this is the end; q quits")
        return deal + 1, 0
    if asked == "b":
        if play > 0:
            return deal, play - 1
        if deal == 0:
            raise ValueError("this is the beginning")
        return deal - 1, len(record.deals[deal - 1].plays)
    number = asked.removeprefix("d").strip()
    if number.isdecimal() and len(number) < 10:
        return (int(number), 0) if asked.startswith("d") else (deal, int(number))
    raise ValueError(f"{quote(asked)} is unknown; {HELP}")


def _tell_head(record: Record, title: str) -> None:
    tell(title)
    for comment in record.comments:
        tell(f"comment: {comment}")
