"""Players: `load` makes one from a name or a checkpoint.

```python
from pisti_env.agents import load

agent = load("greedy")
card = agent.act(observation, action_mask)          # one decision
cards = agent.act(observations, action_masks)       # a batch of them
```
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pisti_env.agents import baselines
from pisti_env.rules import Rules, resolve_rules

__all__ = ["Agent", "load", "shipped_checkpoints"]

SUFFIX = ".safetensors"
# Where shipped policies lie in an installed wheel, and in a checkout.
_PACKAGE = Path(__file__).resolve().parents[1]
CHECKPOINT_FOLDERS = (_PACKAGE / "checkpoints", _PACKAGE.parent / "checkpoints")


class Agent(Protocol):
    """Anything with these three is an agent.

    It sees the observation and the mask and nothing else. Whoever hosts it observes in the encoding
    that it names, and turns a kind that it plays into the lowest card of that kind in the hand.
    """

    observation: str
    """The encoding that it wants."""
    rules: Rules
    """The rules that it was made for."""

    def act(
        self, observation: np.ndarray, action_mask: np.ndarray, seeds: np.ndarray | None = None
    ) -> Any:
        """Return an int for one observation (d,) and its mask (a,), int64 (n,) for (n, d), (n, a).

        With `seeds`, uint64 (n,), it draws from nothing else, so that what it plays does not depend
        on the batch.
        """


def load(
    name: str | Path,
    rules: Rules | str | Mapping[str, Any] | None = None,
    seed: int = 0,
    sample: bool | None = None,
    device: str = "cpu",
) -> Agent:
    """Return an agent: "random", "greedy", "counting", a checkpoint's path, or the name of a policy
    that comes with the package.

    `rules` are those that it is to play; by default a policy's own, or the standard game.
    `sample=True` draws from a policy, False and None take its best card; `seed` is for what it
    draws when it is given no seeds. Agents play on the CPU, the only `device` there is so far.

    Raises `ValueError` if there is no such agent or it cannot play these rules. A policy that was
    trained under other rules, but can play these, warns.
    """
    if rules is not None:
        rules = resolve_rules(rules)
    text = str(name)
    if device != "cpu":
        raise ValueError(f"device is {device!r}; expected 'cpu', where all agents play")
    if text in baselines.BASELINES:
        baselines.warm_up()
        return baselines.BASELINES[text](rules or Rules(), seed)
    if text == "search" or text.startswith("search:"):
        raise ValueError(
            f"agent is {text!r}; this name is kept for a player that does not exist yet"
        )
    path = _find_checkpoint(text)
    from pisti_env.agents.checkpoint import read_checkpoint  # the baselines need neither
    from pisti_env.agents.policy import PolicyAgent

    return PolicyAgent(read_checkpoint(path), rules, seed, sample)


def shipped_checkpoints() -> dict[str, Path]:
    """Return the policies that come with the package, by name."""
    files = [file for folder in CHECKPOINT_FOLDERS for file in sorted(folder.glob(f"*{SUFFIX}"))]
    return {file.name.removesuffix(SUFFIX): file for file in reversed(files)}


def _find_checkpoint(name: str) -> Path:
    """Return the file of a checkpoint's path or of a shipped one's name."""
    shipped = shipped_checkpoints()
    if name in shipped:
        return shipped[name]
    if Path(name).is_file():
        return Path(name)
    names = ", ".join([*baselines.BASELINES, *sorted(shipped)])
    raise ValueError(f"agent is {name!r}; expected one of {names}, or the path of a checkpoint")
