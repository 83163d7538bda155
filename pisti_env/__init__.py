"""Pişti, Turkey's fishing card game, for machine learning.

`pisti_v0` is the PettingZoo environment, `Rules` the options of the game. Many tables at once are
in `vector`, players in `agents`, and `arena` measures them. `gymnasium.make("Pisti-v0")` is one
learner's environment, in which they play the other seats: `single`.
"""

import importlib
from typing import Any

import gymnasium
import pettingzoo

from pisti_env import pisti_v0
from pisti_env.rules import Rules

__all__ = ["Rules", "__version__", "agents", "arena", "pisti_v0", "single", "vector"]
__version__ = "0.1.0"

gymnasium.register(
    "Pisti-v0",
    entry_point="pisti_env.single:PistiEnv",
    vector_entry_point="pisti_env.single:PistiVectorEnv",
)
if hasattr(pettingzoo, "register"):  # new in PettingZoo 1.27
    pettingzoo.register("aec", "pisti/pisti-v0", entry_point="pisti_env.pisti_v0:env")

_ON_DEMAND = ("agents", "arena", "single", "vector")


def __getattr__(name: str) -> Any:
    """Import a module of the package when it is first asked for, and not before."""
    if name in _ON_DEMAND:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
