"""Players: `load` makes one from a name or a checkpoint.

```python
from pisti_env.agents import load

agent = load("greedy")
card = agent.act(observation, action_mask)          # one decision
cards = agent.act(observations, action_masks)       # a batch of them
```
"""

import os
from pathlib import Path
from typing import Protocol

import numpy as np

from pisti_env.agents import baselines
from pisti_env.agents.checkpoint import read_checkpoint
from pisti_env.agents.policy import PolicyAgent
from pisti_env.quote import quote
from pisti_env.rules import Rules, RulesLike, resolve_rules

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
    ) -> int | np.ndarray:
        """Return an int for one observation (d,) and its mask (a,), int64 (n,) for (n, d), (n, a).

        With `seeds`, uint64 (n,), it draws from nothing else, so that what it plays does not depend
        on the batch.
        """


def load(
    name: str | Path,
    rules: RulesLike | None = None,
    seed: int = 0,
    sample: bool | None = None,
    device: str = "cpu",
    strict: bool = False,
) -> Agent:
    """Return an agent: "random", "greedy", "counting", a checkpoint's path, or the name of a policy
    that comes with the package (`shipped_checkpoints` lists them).

    `rules` are those that it is to play: a `Rules`, a preset's name or a dict of fields. None: a
    policy's own; for the others, the standard game. `seed` is for what it draws when `act` gets no
    seeds. `sample=True` draws from a policy, False and None take its best card. `device` is "cpu",
    where all agents play.

    A policy that was trained under other rules than `rules`, but can play them, warns
    (`UserWarning`), and its `agent.rules` stay those that it was trained under; with `strict` it is
    refused. Raises `ValueError` with the reason for what cannot be loaded or cannot play `rules`.
    """
    if rules is not None:
        rules = resolve_rules(rules)
    text = str(name)
    if device != "cpu":
        raise ValueError(f"device is {quote(device)}; expected 'cpu', where all agents play")
    if text in baselines.BASELINES:
        baselines.warm_up()
        return baselines.BASELINES[text](rules or Rules(), seed)
    if text == "search" or text.startswith("search:"):
        raise ValueError(
            f"agent is {quote(text)}; this name is kept for a player that does not exist yet"
        )
    return PolicyAgent(read_checkpoint(_find_checkpoint(text)), rules, seed, sample, strict)


def shipped_checkpoints() -> dict[str, Path]:
    """Return the policies that come with the package, by name."""
    files = [file for folder in CHECKPOINT_FOLDERS for file in sorted(folder.glob(f"*{SUFFIX}"))]
    return {file.name.removesuffix(SUFFIX): file for file in reversed(files)}


def _find_checkpoint(name: str) -> Path:
    """Return the file of a checkpoint's path or of a shipped one's name."""
    shipped = shipped_checkpoints()
    if name in shipped:
        return shipped[name]
    if os.path.isfile(name):  # unlike Path's, False for a name that no file can have
        return Path(name)
    names = ", ".join([*baselines.BASELINES, *sorted(shipped)])
    raise ValueError(
        f"agent is {quote(name)}; expected one of {names}, or the path of a checkpoint"
    )
