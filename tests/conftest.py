"""Where the tests keep compiled code, and how many threads they use.

Numba's cache does not see a change of its own flags: it would go on with the old code. So the cache
lies in a folder named by a hash of our sources and of Numba's settings.
"""

import hashlib
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def cache_name() -> str:
    digest = hashlib.sha256()
    for source in sorted((ROOT / "pisti_env").rglob("*.py")):
        digest.update(source.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(source.read_bytes() + b"\0")
    for name, value in sorted(os.environ.items()):
        if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR":
            digest.update(f"{name}={value}\0".encode())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    # Not the system's temporary folder: a cache is code, and others may write there.
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or ROOT / ".pytest_cache" / "numba")
    # Workers of pytest-xdist inherit the folder of the process that starts them. Each has one of
    # its own: two processes that save two signatures of one function at once can mix them up.
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return base / worker if worker else base / cache_name()


# Numba reads this when it is imported.
assert "numba" not in sys.modules, "numba was imported before its cache folder was chosen"
os.environ["NUMBA_CACHE_DIR"] = str(cache_folder())

# Test processes run side by side; more threads in each would only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def everything_is_compiled():
    """No test is the one that waits for the compiler, and is told so."""
    from pisti_env import tables
    from pisti_env.agents import baselines

    tables.warm_up()
    baselines.warm_up()
