"""Which settings self-play can be trained with, and reading a run's settings from its folder."""

import itertools
import json
import math
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pisti_env.agents import shipped_checkpoints
from pisti_env.agents.checkpoint import MAX_FILE_BYTES, layout_of
from pisti_env.arena import MAX_DECKS
from pisti_env.files import read_file
from pisti_env.observation import ENCODINGS, check_encoding
from pisti_env.quote import quote, shorten
from pisti_env.rules import Rules, parse_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import REWARDS

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Settings

MATMUL_PRECISIONS = ("highest", "high", "medium")  # those of PyTorch
MAX_THREADS = 1024  # far more end the process, without a word
SETTINGS = "settings.json"
MAX_JSON_BYTES = 2**20
MAX_INT = 10**18
MAX_HEADER_BYTES = 2**16  # of a policy's file; a few thousand are usual


def check_settings(settings: "Settings") -> Rules:
    """Return the rules of the settings; raise `ValueError` for one that is wrong."""

    def check(name: str, fine: bool, expected: str) -> None:
        if not fine:
            value = getattr(settings, name)
            raise ValueError(f"{name.replace('_', '-')} is {quote(value)}; expected {expected}")

    for name in ("num_tables", "minibatch_size", "epochs", "pool_size", "snapshot_every"):
        check(name, 1 <= getattr(settings, name) <= MAX_INT, "an int of 1 or more, up to 10**18")
    threads = settings.threads
    check(
        "threads", threads is None or 1 <= threads <= MAX_THREADS, f"an int from 1 to {MAX_THREADS}"
    )
    check(
        "matmul_precision",
        settings.matmul_precision in MATMUL_PRECISIONS,
        f"one of {', '.join(MATMUL_PRECISIONS)}",
    )
    check("evaluate_every", settings.evaluate_every >= 0, "an int of 0 or more")
    check(
        "evaluation_decks",
        2 <= settings.evaluation_decks <= MAX_DECKS,
        f"an int from 2, since one deck has no interval, to {MAX_DECKS}",
    )
    for name in (
        "learning_rate", "final_learning_rate", "entropy_coef", "final_entropy_coef", "value_coef",
        "save_seconds",
    ):  # fmt: skip
        check(name, 0 <= getattr(settings, name) < math.inf, "a number of 0 or more")
    for name in ("clip", "max_grad_norm", "reward_scale"):
        check(name, 0 < getattr(settings, name) < math.inf, "a number above 0")
    for name in ("pool_share", "pool_baseline_share", "pool_partner_share"):
        check(name, 0 <= getattr(settings, name) <= 1, "a number from 0 to 1")
    check(
        "pool_baselines",
        bool(settings.pool_baselines) or settings.pool_baseline_share == 0,
        "an agent, or a pool-baseline-share of 0",
    )
    check("gae_lambda", 0 <= settings.gae_lambda <= 1, "a number from 0 to 1")
    check("hidden", min(settings.hidden, default=0) >= 1, "one or more ints above 0")
    check("rewards", settings.rewards in REWARDS, f"one of {', '.join(REWARDS)}")
    steps = settings.steps
    check("steps", steps is None or 1 <= steps <= MAX_INT, "an int of 1 or more, up to 10**18")
    check(
        "minutes", settings.minutes is None or 0 < settings.minutes < math.inf, "a number above 0"
    )
    if settings.steps is not None and settings.minutes is not None:
        raise ValueError("steps and minutes are both given; give one of them, the budget")
    check_seed(settings.seed)
    check_encoding(settings.observation)
    try:
        torch.zeros(1, device=settings.device).item()
    except Exception as error:  # PyTorch has many ways to say that there is no such device
        reason = f"device is {quote(settings.device)}; PyTorch says: {shorten(first_line(error))}"
        raise ValueError(reason) from None
    rules = parse_rules(settings.rules)
    inputs = layout_of(settings.observation, rules)[-1][2]
    sizes = (inputs, *settings.hidden, ENCODINGS[settings.observation][0] + 1)
    size = 4 * sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(sizes))
    room = MAX_FILE_BYTES - MAX_HEADER_BYTES
    check("hidden", size <= room, f"a network of {room} bytes or less; this one has {size}")
    return rules


def read_settings(kind: type[Any], folder: Path, renewed: Mapping[str, Any]) -> Any:
    """Return the settings, a dataclass of the given kind, of the run in a folder, but for those
    that are `renewed`. Raises `ValueError` naming the file, and the field that is wrong."""
    path = folder / SETTINGS
    if not path.exists():
        raise ValueError(f"run {folder} has no {SETTINGS}, so there is nothing to resume")
    stored, hints = read_json(path), typing.get_type_hints(kind)
    settings = {}
    for name, hint in hints.items():
        if name not in stored:
            raise ValueError(f"{path} has no {name!r}; restore the file, or train anew")
        settings[name] = typed(f"{name!r} in {path}", stored.pop(name), hint)
    if stored:
        raise ValueError(f"{path} has an unknown field {quote(next(iter(stored)))}")
    return kind(**{**settings, **renewed})


def resumed(given: "Settings") -> tuple[Rules, "Settings"]:
    """Return rules and settings of the run that is to go on, with the budget given now if there is
    one. Raises `ValueError` for other settings than that, and for what is no run."""
    folder = given.resume
    assert folder is not None
    if given != type(given)(resume=folder, steps=given.steps, minutes=given.minutes):
        raise ValueError(
            "resume takes its settings from the run; give no others with it than steps or minutes"
        )
    if folder.is_file() or str(folder) in shipped_checkpoints():
        raise ValueError(
            f"resume is {folder}, which is no run's folder; a new run can begin with a policy: "
            f"--start-from {folder}"
        )
    renewed: dict[str, Any] = {"run": folder}
    if given.steps is not None or given.minutes is not None:
        renewed |= {"steps": given.steps, "minutes": given.minutes}
    settings: Settings = read_settings(type(given), folder, renewed)
    try:
        return check_settings(settings), settings
    except ValueError as error:
        raise ValueError(f"{folder / SETTINGS} cannot be used: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of JSON; raise `ValueError` naming the file if it is none."""
    try:
        data = json.loads(read_file(path, MAX_JSON_BYTES))
        if not isinstance(data, dict):
            raise ValueError(f"it is {quote(data)}; expected a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be used: {shorten(str(error))}") from None
    return data


def typed(name: str, value: Any, hint: Any) -> Any:
    """Return a value of JSON as a field with this type has it; raise `ValueError` if it cannot."""
    for kind in _kinds(hint):
        if typing.get_origin(kind) is tuple and isinstance(value, list):
            item, *more = typing.get_args(kind)
            if more == [...] or len(value) == 1 + len(more):
                return tuple(typed(f"an entry of {name}", entry, item) for entry in value)
        if kind is Path and isinstance(value, str):
            return Path(value)
        if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
            return float(value)
        if type(value) is kind:
            return value
    expected = " or ".join(_JSON_NAMES[typing.get_origin(kind) or kind] for kind in _kinds(hint))
    raise ValueError(f"{name} is {quote(value)}; expected {expected}")


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types that a field may have."""
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


_JSON_NAMES = {
    int: "an int",
    float: "a number",
    bool: "true or false",
    str: "text",
    Path: "text",
    tuple: "a list",
    types.NoneType: "null",
}


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or what kind of error it is."""
    return next(iter(str(error).splitlines()), type(error).__name__)
