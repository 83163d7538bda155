"""How the fast parts are compiled: Numba, cached on disk, one thread, no interpreter lock.

`compiled` is for functions that Python calls; they take arrays, never records or generators (those
cost microseconds to pass). `inlined` is for the functions that they are made of; these take records
and numbers, since passing an array counts its references, which costs more than most of them do.
Both call only functions of their own file: Numba's cache does not see edits in others.
"""

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numba

_no_cache_warned = False


def compiled(function: Callable[..., Any]) -> Any:
    """Compile on first use and keep the result on disk; where no folder for it is writable, compile
    anew in every process, with one warning. With ``NUMBA_DISABLE_JIT=1`` it stays plain Python."""
    global _no_cache_warned
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # "no locator available": neither the package's nor the user's folder
        if not _no_cache_warned:
            _no_cache_warned = True
            warnings.warn(
                "no folder for compiled code is writable, so every process compiles it again "
                "(some seconds); set NUMBA_CACHE_DIR to a writable folder to avoid that",
                RuntimeWarning,
                stacklevel=3,
            )
        return numba.njit(function, nogil=True)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into every compiled function that calls this one. Not cached by itself: what comes
    from the cache could only be called."""
    return numba.njit(function, nogil=True, forceinline=True)


_entries: dict[Any, Callable[..., Any]] = {}


def quick(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function without Numba's look at the types of all arguments, which takes
    longer than a play: they must be those of its first call. Before that call, and in plain Python,
    it is the function itself."""
    entry = _entries.get(function)
    if entry is None:
        overloads = getattr(function, "overloads", {})
        if len(overloads) != 1:
            return function
        [compiled_once] = overloads.values()
        entry = _entries[function] = compiled_once.entry_point
    return entry


def _say(message: str) -> None:
    if sys.stderr is not None:  # a program without a console has none
        print(message, file=sys.stderr, flush=True)


@contextlib.contextmanager
def announce_compilation() -> Iterator[None]:
    """Say on stderr that code is being compiled, if the block takes over a second."""
    message = "pisti_env: compiling the rules for this machine; later runs start at once"
    timer = threading.Timer(1.0, _say, args=(message,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
