"""What commands print, and how they write files beside it."""

import contextlib
import errno
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from pisti_env.files import check_can_write, write_file

BROKEN_PIPE = 141  # what shells report for a program whose output nobody reads any more


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
    """Print a warning to stderr if that can be written."""
    note(f"warning: {text}")


def note(text: str) -> None:
    """Print a line to stderr if that can be written."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr)


def on_terminal() -> bool:
    """Return whether somebody reads standard output on a terminal and answers there."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


@contextlib.contextmanager
def telling_warnings() -> Iterator[None]:
    """Print what agents warn of (`UserWarning`) to stderr afterwards, each once and on a line."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(str(warning.message) for warning in warned):
        warn(text)


def _is_file(name: str, path: Path) -> bool:
    """Return whether a name is that of a file, this one."""
    try:
        return os.path.samefile(name, path)
    except (OSError, ValueError):  # there is none, or it is no name of a file
        return False


def _print_no_more() -> None:
    """Keep Python from trying once more, when it ends, to write what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_files(*paths: Path | None, read: Iterable[str | None] = ()) -> None:
    """Raise `OSError` now, rather than after a long computation, if a file cannot be written, and
    `ValueError` if one is given twice, is one of those that are `read`, or is where text for the
    screen goes. None is no file, and what is read may have names that are no files'."""
    given = [path for path in paths if path is not None]
    for number, path in enumerate(given):
        if any(name is not None and _is_file(name, path) for name in read):
            raise ValueError(f"{path} is read and would be overwritten; expected another name")
        if os.path.realpath(path) in map(os.path.realpath, given[:number]):
            raise ValueError(f"{path} is given twice; expected a file for each thing to be written")
        for stream in (1, 2):  # it would go to the file that is replaced, and be lost
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(stream), os.stat(path)):
                    raise ValueError(
                        f"{path} cannot be written: what is printed goes there already"
                    )
        check_can_write(path)
