"""Files of records, as commands take them."""

import argparse
import os

from pisti_env.commands.screen import note
from pisti_env.quote import shorten
from pisti_env.record import EVERYONE, Record, read_records

LARGE_FILE = 2**22  # bytes, which take two seconds to read


def add_file(command: argparse.ArgumentParser) -> None:
    """Give a command the argument FILE, the option --record and the option --deal."""
    command.add_argument("file", metavar="FILE", help="of records, as `pisti watch` writes them")
    command.add_argument(
        "--record", type=int, default=0, metavar="N", help="its number in the file, from 0"
    )
    command.add_argument(
        "--deal", type=int, default=0, metavar="N", help="its number in the record, from 0"
    )


def read(path: str) -> list[Record]:
    """Return the records of a file, and say that it is read if that takes long. Raises `OSError`
    and `ValueError`, also if there are none."""
    if os.path.isfile(path) and os.path.getsize(path) > LARGE_FILE:
        note(f"reading {shorten(path)}, {os.path.getsize(path) / 1e6:.0f} MB")
    try:
        records = read_records(path)
    except OSError as error:
        raise OSError(f"{shorten(path)} cannot be read: {error.strerror or error}") from None
    if not records:
        raise ValueError(f"{shorten(path)} has no records")
    return records


def read_one(path: str, number: int) -> Record:
    """Return a record of a file, played by the rules. Raises `ValueError` if it is not there or
    wrong, `OSError` if the file cannot be read."""
    records = read(path)
    if not 0 <= number < len(records):
        raise ValueError(
            f"record is {number}; expected a number from 0 to {len(records) - 1}, since that is "
            f"the last one of {shorten(path)}"
        )
    records[number].check()
    return records[number]


def viewer(text: str) -> int | str:
    """Return the viewer that an option names: a seat's number or everyone."""
    if text == EVERYONE:
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{shorten(text)!r} is no seat; expected its number, from 0, or {EVERYONE}"
        ) from None
