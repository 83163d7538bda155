"""A run: its folder, the signals that stop it, and its budget.

Every trainer here uses it, the scripts for other libraries too. It knows nothing of how anything is
learned.
"""

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import math
import platform
import shutil
import signal
import sys
import time
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pisti_env.agents.checkpoint import Checkpoint, make_checkpoint, write_checkpoint, write_file
from pisti_env.arena import evaluate, revision
from pisti_env.rules import parse_rules

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Settings

POLICY, SETTINGS, VERSIONS, RESULT = (
    "policy.safetensors",
    "settings.json",
    "versions.json",
    "result.json",
)
MAX_JSON_BYTES = 2**20
MAX_QUOTED = 100  # characters of a value in a message
DEFAULT_MINUTES = 5.0
REPORT_SECONDS = 10.0
ENCODING = "kinds"  # of the scripts for other libraries


# The folder.


def make_folder(settings: Any, name: str, packages: Iterable[str]) -> Path:
    """Make the folder of a new run, `settings.run` or, without it, one in runs/ with the time and a
    name; return it. It gets the settings and the versions of what the run is made with."""
    started = datetime.datetime.now()
    folder: Path = settings.run or Path("runs") / f"{started:%Y%m%d-%H%M%S}-{name}"
    files = {SETTINGS: dataclasses.asdict(settings), VERSIONS: versions(packages)}
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(
            f"run {folder} exists; go on with it by --resume {folder}, or name another"
        ) from None
    try:
        for file, data in files.items():
            write_file(folder / file, json.dumps(data, indent=2, default=str).encode())
    except OSError:
        shutil.rmtree(folder)
        raise
    return folder


def read_settings(kind: type[Any], folder: Path, renewed: Mapping[str, Any]) -> Any:
    """Return the settings, a dataclass of the given kind, of the run in a folder, but for those
    that are `renewed`. Raises `ValueError` naming the file, and the field that is wrong."""
    path = folder / SETTINGS
    if not path.is_file():
        raise ValueError(f"run {folder} has no {SETTINGS}, so there is nothing to resume")
    stored, hints = read_json(path), typing.get_type_hints(kind)
    settings = {}
    for name, hint in hints.items():
        if name not in stored:
            raise ValueError(f"{path} has no {name!r}; restore the file, or train anew")
        settings[name] = _typed(f"{name!r} in {path}", stored.pop(name), hint)
    if stored:
        raise ValueError(f"{path} has an unknown field {shortened(next(iter(stored)))}")
    return kind(**{**settings, **renewed})


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of JSON; raise `ValueError` naming the file if it is none."""
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path} has more than {MAX_JSON_BYTES} bytes; expected a small file")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {first_line(error)}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} is {shortened(data)}; expected a JSON object")
    return data


def _typed(name: str, value: Any, hint: Any) -> Any:
    """Return a value of JSON as a field with this type has it; raise `ValueError` if it cannot."""
    for kind in _kinds(hint):
        if typing.get_origin(kind) is tuple and isinstance(value, list):
            item, *more = typing.get_args(kind)
            if more == [...] or len(value) == 1 + len(more):
                return tuple(_typed(f"an entry of {name}", entry, item) for entry in value)
        if kind is Path and isinstance(value, str):
            return Path(value)
        if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
            return float(value)
        if type(value) is kind:
            return value
    expected = " or ".join(_JSON_NAMES[typing.get_origin(kind) or kind] for kind in _kinds(hint))
    raise ValueError(f"{name} is {shortened(value)}; expected {expected}")


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


def shortened(value: Any) -> str:
    """Return a value as text, for a message; a long one's beginning."""
    text = repr(value)
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or what kind of error it is."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def versions(packages: Iterable[str]) -> dict[str, Any]:
    """Return what a run is made with."""
    return {
        "command": sys.argv,
        "revision": revision(),
        "started": datetime.datetime.now().isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: importlib.metadata.version(name) for name in packages},
    }


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second process out of a run's folder, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with open(folder / SETTINGS, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"run {folder} is being trained by another process") from None
        yield


def remove_temporaries(folder: Path) -> None:
    """Remove what was being written when a process was killed."""
    for left in folder.rglob("*.tmp"):
        left.unlink()


# Signals and budgets.


@contextlib.contextmanager
def catching_signals() -> Iterator[list[int]]:
    """Yield a list of the signals to stop that have come. The second one stops at once."""
    caught: list[int] = []

    def catch(number: int, frame: Any) -> None:
        caught.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, catch) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def budget_used(settings: "Settings", plays_per_update: int, status: Mapping[str, Any]) -> float:
    """Return which part of the budget is used up, 0 to 1."""
    if settings.steps is not None:
        fraction = status["update"] / math.ceil(settings.steps / plays_per_update)
    else:
        minutes = DEFAULT_MINUTES if settings.minutes is None else settings.minutes
        fraction = status["seconds"] / (60 * minutes)
    return min(1.0, fraction)


class Budget:
    """The time and the steps that a run has, and how much of them is used up."""

    def __init__(self, settings: Any, seconds: float = 0.0):
        """Take `minutes` and `steps` from the settings; `seconds` is what the run has had before.
        Raises `ValueError` unless they are above 0."""
        if not settings.minutes > 0 or (settings.steps is not None and settings.steps < 1):
            given = f"minutes is {settings.minutes}, steps is {settings.steps}"
            raise ValueError(f"{given}; expected numbers above 0")
        self._minutes, self._steps = settings.minutes, settings.steps
        self._begun = time.monotonic() - seconds
        self._told = seconds
        self._caught: list[int] = []

    @contextlib.contextmanager
    def used_up_by_signals(self) -> Iterator[None]:
        """Have Ctrl-C or SIGTERM use the budget up, so that training ends as usual and what was
        learned is kept. The second one stops at once."""
        with catching_signals() as self._caught:
            yield

    @property
    def stopped(self) -> bool:
        """Whether a signal to stop has come."""
        return bool(self._caught)

    @property
    def seconds(self) -> float:
        """Seconds that the run has taken, those before it was resumed included."""
        return time.monotonic() - self._begun

    def used(self, steps: int) -> float:
        """Return the share that is used up after `steps`, 0 to 1; 1 once a signal has come."""
        if self.stopped:
            return 1.0
        share = self.seconds / (60 * self._minutes)
        return min(1.0, max(share, steps / self._steps if self._steps else 0.0))

    def tell(self, steps: int, text: str) -> None:
        """Print a line on how far the run is, if the last one is a while ago."""
        seconds = self.seconds
        if seconds - self._told < REPORT_SECONDS:
            return
        self._told = seconds
        left = seconds / max(self.used(steps), 1e-9) - seconds
        clock, left_clock = (str(datetime.timedelta(seconds=round(s))) for s in (seconds, left))
        speed = f"{steps:,} steps  {steps / seconds:,.0f} steps/s"
        print(f"{clock}  {speed}  {text}  {left_clock} left", flush=True)


# Scripts for other libraries.


@dataclasses.dataclass(frozen=True)
class LibrarySettings:
    """What the run of a script for another library is made of."""

    rules: str = "standard"
    """The rules to learn: a preset and fields, as in istanbul,players=4."""
    minutes: float = 5.0
    """Budget in minutes; of a resumed run, in all."""
    steps: int | None = None
    """Budget in the learner's decisions, if that is used up first."""
    seed: int = 0
    """Decides what is drawn."""
    threads: int = 1
    """Threads of the network."""
    run: Path | None = None
    """Folder of the run, which must not exist yet; default: runs/ and the time."""
    deals: int = 10_000
    """Decks that the policy is measured on in the end, each in all seatings; 0: it is not."""


def open_run(name: str, packages: Iterable[str], settings: LibrarySettings) -> Path:
    """Make the folder of a new run, with its settings; return it. Raises `ValueError` if it exists
    or the settings are wrong, and leaves nothing then."""
    parse_rules(settings.rules)
    Budget(settings)  # for its checks
    torch.set_num_threads(settings.threads)
    return make_folder(settings, name, packages)


def resumed_settings(given: Any, own: Iterable[str]) -> Any:
    """Return the settings of the run in the folder `given.resume`, but for those named in `own`,
    which are as given now."""
    renewed = {name: getattr(given, name) for name in ("resume", *own)}
    return read_settings(type(given), given.resume, renewed)


def without_folders(settings: LibrarySettings) -> dict[str, Any]:
    """Return settings as data, but for folders, which are the machine's."""
    data = dataclasses.asdict(settings)
    return {name: None if isinstance(v, Path) else v for name, v in data.items()}


def policy_of(
    layers: Iterable[torch.nn.Module],
    settings: LibrarySettings,
    training: dict[str, Any] | None = None,
) -> Checkpoint:
    """Return the policy whose linear layers are those among `layers`, with ReLU between them.
    `training` is what else to note in the file."""
    arrays = [
        (layer.weight.detach().cpu().numpy(), layer.bias.detach().cpu().numpy())
        for layer in layers
        if isinstance(layer, torch.nn.Linear)
    ]
    noted = without_folders(settings) | (training or {})
    return make_checkpoint(arrays, parse_rules(settings.rules), ENCODING, noted, settings.seed)


def write_result(
    folder: Path,
    packages: Iterable[str],
    steps: int,
    seconds: float,
    illegal_actions: int,
    results: Iterable[dict[str, Any]] = (),
) -> None:
    """Write a run's figures."""
    figures = {
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "steps": steps,
        "seconds": seconds,
        "steps_per_second": steps / seconds,
        "illegal_actions": illegal_actions,
        "results": list(results),
    }
    write_file(folder / RESULT, json.dumps(figures, indent=2).encode())


def finish(
    folder: Path,
    policy: Checkpoint,
    packages: Iterable[str],
    steps: int,
    budget: Budget,
    illegal_actions: int,
    deals: int,
) -> None:
    """Write a run's policy, measure it against the weaker baselines, unless `deals` is 0 or the run
    was stopped, and tell."""
    packages, path, seconds = tuple(packages), folder / POLICY, budget.seconds
    write_checkpoint(path, policy)
    write_result(folder, packages, steps, seconds, illegal_actions)
    results = []
    for opponent in ("random", "greedy") if deals and not budget.stopped else ():
        names = ["policy", opponent]
        evaluation = evaluate([path, opponent], policy.rules, deals, names=names, progress=True)
        print(evaluation, flush=True)
        results.append(evaluation.to_dict())
    write_result(folder, packages, steps, seconds, illegal_actions, results)
    speed = f"{steps:,} steps, {steps / seconds:,.0f} steps/s"
    print(f"{path}: {speed}, {illegal_actions} illegal actions")
