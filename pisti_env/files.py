"""Files: each is written whole or not at all, and nothing but a plain file is read or replaced."""

import contextlib
import os
import re
import stat
from pathlib import Path

from pisti_env.quote import shorten


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """Return what a file holds. Raises `ValueError` if it is no plain file (a folder, a pipe, a
    device) or has more than `most` bytes, and `OSError` if it cannot be read."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
        raise ValueError("it is not a plain file")
    if status.st_size > most:
        raise ValueError(f"it has {status.st_size} bytes; expected at most {most}")
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:  # it has grown meanwhile
        raise ValueError(f"it has more than {most} bytes")
    return data


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, all of it or nothing: to a neighbour first, which then takes its place. Where
    `path` is a symbolic link, the file that it points to is written.

    Raises `OSError` with one sentence if that fails or something else than a plain file is there;
    what was there before is still there then.
    """
    target = _check_target(path)
    temporary = target.with_name(
        f"{target.name}.{os.getpid()}.tmp"
    )  # two processes do not share it
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(
            f"{shorten(str(path))} ({len(data)} bytes) could not be written: {_reason(error)}; "
            "nothing was changed"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def is_temporary(file: Path, name: str) -> bool:
    """Return whether `write_file` has left a file behind, in a process that was killed while it
    wrote a file of this `name`."""
    return re.fullmatch(rf"{re.escape(name)}\.\d+\.tmp", file.name) is not None


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` now, rather than after a long computation, if `write_file` would fail."""
    target = _check_target(path)
    neighbour = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        neighbour.touch()
        neighbour.unlink()
    except OSError as error:
        raise OSError(f"{shorten(str(path))} cannot be written: {_reason(error)}") from None


def _check_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that is to be written, links followed; raise `OSError` if it cannot be."""
    told = shorten(str(path))
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):  # the writing itself says what is missing
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:  # links in a circle, a name that no file can have
        raise OSError(f"{told} cannot be written: {_reason(error)}") from None
    if not stat.S_ISREG(status.st_mode):  # /dev/stdout, a pipe, a folder
        raise OSError(f"{told} cannot be written: it is there and is not a plain file")
    if not os.access(path, os.W_OK):
        raise OSError(f"{told} cannot be written: it is there and is write-protected")
    return Path(os.path.realpath(path))


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
