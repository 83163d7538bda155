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
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.extending import register_jitable

from pisti_env.quote import shorten

# Makes an index of a number that is not negative. Of one with a sign, Numba looks whether it counts
# from the end; where the compiler cannot know better and it is done often, that is worth avoiding.
at = np.uint64

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile on first use and keep the result on disk, in Numba's cache. Whatever is wrong with
    that costs time alone: the function is compiled in every process then, with one warning.

    Who can write into the cache's folder can have any code run, as with Python's own `__pycache__`.
    With ``NUMBA_DISABLE_JIT=1`` the function stays plain Python.
    """
    try:
        dispatcher = numba.njit(function, cache=True, **_OPTIONS)
        if dispatcher is not function:
            # Numba looks at the function's own file; what is inlined into it may be of another.
            index = dispatcher._cache._cache_file
            index._source_stamp = (index._source_stamp, _sources())
            dispatcher._cache = Cache(dispatcher._cache)
        return dispatcher
    except RuntimeError:  # "no locator available": neither the package's nor the user's folder
        warn_of_cache(
            "no folder for compiled code is writable, so every process compiles it again "
            "(some seconds); set NUMBA_CACHE_DIR to a writable folder to avoid that"
        )
    except AttributeError as error:  # the names with an underscore are Numba's own
        warn_of_cache(
            f"Numba {numba.__version__} keeps compiled code in a way that is not known here "
            f"({error}), so every process compiles it again (some seconds); use Numba 0.68"
        )
    return numba.njit(function, **_OPTIONS)


class Cache:
    """Numba's cache of one function, of which a damaged file or a full disk is no error."""

    def __init__(self, numbas: Any):
        self._numbas = numbas

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numbas, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code for these types; None if there is none, or none that can be read."""
        try:
            return self._numbas.load_overload(signature, target_context)
        except Exception as error:  # a damaged pickle may raise anything
            if not isinstance(error, (AttributeError, ImportError)):
                # Those two come from code of an earlier version, whose names are not here now.
                warn_of_cache(
                    f"compiled code in {self._numbas.cache_path} cannot be read "
                    f"({_kind_of(error)}), so it is compiled again (some seconds); if that comes "
                    "again, delete that folder"
                )
            with contextlib.suppress(Exception):
                self._numbas.flush()  # forget what is there, so that the new code can be kept
            return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep the code for these types, if that can be done."""
        try:
            self._numbas.save_overload(signature, code)
        except Exception as error:
            warn_of_cache(
                f"compiled code cannot be kept in {self._numbas.cache_path} ({_kind_of(error)}), "
                "so every process compiles it again (some seconds); make room there, or set "
                "NUMBA_CACHE_DIR to another folder"
            )


_warned = False


def warn_of_cache(message: str) -> None:
    """Warn once in a process: what is wrong with one function's code is so with others'."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def _kind_of(error: Exception) -> str:
    """Return what kind of error it is, and what it says, on one line and not at length."""
    return shorten(f"{type(error).__name__}: {error}")


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


LONG = 1.0  # seconds of compiling of which something is said

_said = False


class _Stopwatch(event.Listener):
    """Hears of every compiling, and says once in a process that it takes long, when it does."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.depth = 0  # a function may have another one compiled

    def on_start(self, event: Any) -> None:
        """Begin to count."""
        self.depth += 1
        if self.depth == 1:
            self.started = time.perf_counter()
            self.timer = threading.Timer(max(0.0, LONG - self.spent), _say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Stop counting, until the next one."""
        self.depth -= 1
        if self.depth == 0:
            self.timer.cancel()
            self.spent += time.perf_counter() - self.started


def _say() -> None:
    global _said
    if not _said and sys.stderr is not None:  # a program without a console has none
        _said = True
        with contextlib.suppress(OSError, ValueError):  # or one that is closed
            print(
                "pisti_env: compiling the rules for this machine; later runs start at once",
                file=sys.stderr,
                flush=True,
            )


@contextlib.contextmanager
def announce_compilation() -> Iterator[None]:
    """Say on stderr that code is being compiled, if that takes more than a second of the block:
    what comes from the cache is not compiled, however long it takes. Once in a process."""
    with event.install_listener("numba:compile", _Stopwatch()):
        yield
