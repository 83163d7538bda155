"""Players: `load` makes one from a name or a checkpoint, `ask` has it choose an action.

```python
from pisti_env.agents import ask, load

agent = load("greedy")
card = agent.act(observation, action_mask)          # one decision
cards = agent.act(observations, action_masks)       # a batch of them
action = ask(env, agent)                            # in any environment, whatever it observes
```

Anything with `act`, `observation` and `rules` is an agent. This is one that plays its lowest card;
in a file `mymodule.py`, it is `load("mymodule:Lowest")` here and `mymodule:Lowest` on the command
line:

```python
from pisti_env import Rules


class Lowest:
    observation = "full"                            # the encoding that it wants to see

    def __init__(self, rules=None, seed=0):
        self.rules = rules or Rules()               # the rules that it was made for

    def act(self, observation, action_mask, seeds=None):
        return action_mask.argmax(axis=-1)          # of one mask (a,), or of many (n, a)
```
"""

import importlib
import inspect
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pisti_env.agents import baselines
from pisti_env.agents.checkpoint import read_checkpoint
from pisti_env.agents.hosting import ask, check_agent
from pisti_env.agents.player import Agent
from pisti_env.agents.policy import PolicyAgent
from pisti_env.quote import quote, shorten
from pisti_env.rules import Rules, RulesLike, resolve_rules

if TYPE_CHECKING:
    from pisti_env.search import Search

__all__ = ["Agent", "ask", "load", "shipped_checkpoints"]

SUFFIX = ".safetensors"
POLICY = f"policy{SUFFIX}"  # in the folder of a training run
# Where shipped policies lie in an installed wheel, and in a checkout.
_PACKAGE = Path(__file__).resolve().parents[1]
CHECKPOINT_FOLDERS = (_PACKAGE / "checkpoints", _PACKAGE.parent / "checkpoints")


def load(
    name: str | Path,
    rules: RulesLike | None = None,
    seed: int = 0,
    sample: bool | None = None,
    device: str = "cpu",
    strict: bool = False,
    samples: int | None = None,
) -> Agent:
    """Return an agent: "random", "greedy", "counting", the path of a checkpoint or of a training
    run's folder, the name of a policy that comes with the package (`shipped_checkpoints` lists
    them), "search:" and one of these, or "module:name".

    "search:pisti-2p" thinks before it plays, with that policy in every seat (see `Search`), and
    "search" alone with "counting". `samples`, or the name "search@128:pisti-2p", says in how many
    worlds.

    Any other name with a colon is imported: what `name` is in `module` is an agent, or makes one
    when it is called, with `rules` and `seed` if it has such arguments.

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
    if samples is not None and not text.startswith("search"):
        raise ValueError(f"samples is {quote(samples)}; expected none for {quote(text)}")
    if text in baselines.BASELINES:
        baselines.warm_up()
        return baselines.BASELINES[text](rules or Rules(), seed)
    if re.match(r"search(?![^@:])", text):
        player = _load_search(text, rules, seed, sample, strict)
        return player if samples is None else player.in_worlds(samples)
    if _is_import(text):
        return _import_agent(text, rules or Rules(), seed)
    return PolicyAgent(read_checkpoint(_find_checkpoint(text)), rules, seed, sample, strict)


def _load_search(
    name: str, rules: Rules | None, seed: int, sample: bool | None, strict: bool
) -> "Search":
    """Return the player that a name of the form `search@number:policy` says."""
    from pisti_env.search import Search, read_name  # it needs what is here, so not at the top

    policy_name, settings = read_name(name)
    policy = load(policy_name, rules, seed, sample, strict=strict)
    return Search(policy, rules or policy.rules, seed, settings)


def _is_import(name: str) -> bool:
    """Return whether a name is of the form `package.module:name`, and no file's."""
    module, colon, attribute = name.partition(":")
    words = [*module.split("."), attribute]
    return bool(colon) and all(map(str.isidentifier, words)) and not os.path.isfile(name)


def _import_agent(name: str, rules: Rules, seed: int) -> Agent:
    """Return the agent that a name of the form `package.module:name` says where to find."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
        if isinstance(found, type) or not hasattr(found, "act"):
            arguments = inspect.signature(found).parameters
            given = {"rules": rules, "seed": seed}
            found = found(**{key: given[key] for key in given if key in arguments})
    except Exception as error:
        raise ValueError(
            f"agent is {quote(name)}, which cannot be made: "
            f"{shorten(f'{type(error).__name__}: {error}')}"
        ) from error
    check_agent(name, found)
    agent: Agent = found
    return agent


def shipped_checkpoints() -> dict[str, Path]:
    """Return the policies that come with the package, by name."""
    files = [file for folder in CHECKPOINT_FOLDERS for file in sorted(folder.glob(f"*{SUFFIX}"))]
    return {file.name.removesuffix(SUFFIX): file for file in reversed(files)}


def _find_checkpoint(name: str) -> Path:
    """Return the file of a checkpoint's path, of a training run's folder or of a shipped one's
    name."""
    shipped = shipped_checkpoints()
    if name in shipped:
        return shipped[name]
    if name.endswith(".py"):
        module = Path(name).stem
        raise ValueError(
            f"agent is {quote(name)}, a module's file; expected the module and its agent, as in "
            f"{shorten(module)}:Agent"
        )
    for path in (name, os.path.join(name, POLICY)):  # a file, or a run's folder
        if os.path.isfile(path):  # unlike Path's, False for a name that no file can have
            return Path(path)
    names = ", ".join([*baselines.BASELINES, *sorted(shipped)])
    raise ValueError(
        f"agent is {quote(name)}; expected one of {names}, or the path of a checkpoint or of a "
        "training run, or module:name"
    )
