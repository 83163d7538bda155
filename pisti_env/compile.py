"""How the fast parts are compiled: Numba, cached on disk, one thread, no interpreter lock.

`compiled` is for functions that Python calls; they take arrays and numbers, never records or
generators (those cost microseconds to pass). `inlined` is for the functions that they are made of.

Neither makes an array. So Numba need not count references to arrays (`_nrt=False`), which would
cost more than much of what these functions do, in the call from Python too. And a way in for C
(`no_cfunc_wrapper`), or for Python where nothing calls, would only cost time to compile.
"""

import contextlib
import functools
import hashlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

# Makes an index of a number that is not negative. Of one with a sign, Numba looks whether it counts
# from the end; where the compiler cannot know better and it is done often, that is worth avoiding.
at = np.uint64

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True}

_no_cache_warned = False


def compiled(function: Callable[..., Any]) -> Any:
    """Compile on first use and keep the result on disk; where no folder for it is writable, compile
    anew in every process, with one warning. With ``NUMBA_DISABLE_JIT=1`` it stays plain Python."""
    global _no_cache_warned
    try:
        dispatcher = numba.njit(function, cache=True, **_OPTIONS)
    except RuntimeError:  # "no locator available": neither the package's nor the user's folder
        if not _no_cache_warned:
            _no_cache_warned = True
            warnings.warn(
                "no folder for compiled code is writable, so every process compiles it again "
                "(some seconds); set NUMBA_CACHE_DIR to a writable folder to avoid that",
                RuntimeWarning,
                stacklevel=3,
            )
        return numba.njit(function, **_OPTIONS)
    if dispatcher is not function:
        # Numba's cache sees edits in the function's own file; what is inlined may be of another.
        with contextlib.suppress(AttributeError):  # these names are Numba's own
            index = dispatcher._cache._cache_file
            index._source_stamp = (index._source_stamp, _sources())
    return dispatcher


@functools.cache
def _sources() -> str:
    """Return a hash of the package's sources."""
    folder, digest = Path(__file__).parent, hashlib.sha256()
    for source in sorted(folder.rglob("*.py")):
        with contextlib.suppress(OSError):  # an editor's lock, perhaps
            text = source.read_bytes()
            digest.update(source.relative_to(folder).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into every compiled function that calls this one; in Python it stays what it is. Not
    cached by itself: what comes from the cache could only be called."""
    return register_jitable(forceinline=True, **_OPTIONS)(function)


_entries: dict[Any, Callable[..., Any]] = {}


def quick(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function without Numba's look at the types of all arguments, which takes
    longer than a play: they must be those of its first call, arrays of the same dtype, contiguous
    and writable as they were, or memory is spoilt. Before that call, and in plain Python, it is the
    function itself."""
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
