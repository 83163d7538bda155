"""A run: its folder, the signals that stop it, and its budget.

Every trainer here uses it, the scripts for other libraries too. It knows nothing of how anything is
learned.
"""

import contextlib
import dataclasses
import datetime
import errno
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tqdm import tqdm

from pisti_env.agents import POLICY as POLICY
from pisti_env.agents.checkpoint import Checkpoint, make_checkpoint, write_checkpoint
from pisti_env.arena import evaluate, revision
from pisti_env.files import is_temporary, write_file
from pisti_env.quote import shorten
from pisti_env.rules import parse_rules
from training.settings import SETTINGS, first_line, read_json, read_settings, typed

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Settings

STATE, VERSIONS, METRICS, RESULT = (
    "state.safetensors",
    "versions.json",
    "metrics.csv",
    "result.json",
)
FILES = (POLICY, STATE, SETTINGS, VERSIONS, METRICS, RESULT)
SNAPSHOTS = "snapshots"  # a folder in it
PACKAGES = ("torch", "numpy", "numba", "safetensors", "gymnasium", "pettingzoo")
DEFAULT_MINUTES = 5.0
REPORT_SECONDS = 10.0
ENCODING = "kinds"  # of the scripts for other libraries


# The folder.


def make_folder(settings: Any, name: str, packages: Iterable[str]) -> Path:
    """Make the folder of a new run, `settings.run` or, without it, one in runs/ with the time and a
    name; return it. It gets the settings and the versions of what the run is made with."""
    started = datetime.datetime.now()
    folder: Path = settings.run or Path("runs") / f"{started:%Y%m%d-%H%M%S}-{name}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        resumable = hasattr(settings, "resume") and (folder / SETTINGS).is_file()
        other = f", or go on with it by --resume {folder}" if resumable else ""
        raise ValueError(f"run {folder} exists; name another{other}") from None
    with removed_if_it_fails(folder):
        write_json(folder / VERSIONS, versions(packages))
        write_settings(folder, settings)
    return folder


@contextlib.contextmanager
def removed_if_it_fails(folder: Path, saved: str | None = None) -> Iterator[None]:
    """Remove the folder of a new run if what follows fails, unless a file of the name `saved` is
    there by then."""
    try:
        yield
    except BaseException:
        if saved is None or not (folder / saved).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def write_settings(folder: Path, settings: Any) -> None:
    """Write the settings of a run to its folder."""
    write_json(folder / SETTINGS, dataclasses.asdict(settings))


def write_json(path: Path, data: Any) -> None:
    """Write data as JSON, paths as text."""
    write_file(path, json.dumps(data, indent=2, default=str).encode())


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
    """Keep a second process out of a run's folder, where the system can; raise `ValueError` if
    there is one."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    path = folder / VERSIONS  # a file that is never replaced
    if path.exists() and not path.is_file():  # opening a pipe would wait for ever
        raise ValueError(f"{path} cannot be used: it is not a plain file")
    with open(path, "ab") as file:  # over NFS, only a file that can be written can be locked
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
                raise ValueError(f"run {folder} is being trained by another process") from None
            tell(
                f"run {folder} cannot be locked ({error.strerror}): do not train it in two "
                "processes at once"
            )
        yield


def remove_temporaries(folder: Path) -> None:
    """Remove what a process that was killed had begun to write, and nothing else."""
    snapshots = (re.sub(r"\.\d+\.tmp$", "", path.name) for path in (folder / SNAPSHOTS).glob("*"))
    written = {folder: FILES, folder / SNAPSHOTS: {n for n in snapshots if is_snapshot(n)}}
    for where, names in written.items():
        for path in where.glob("*.tmp"):
            if any(is_temporary(path, name) for name in names):
                path.unlink()


def is_snapshot(name: str) -> bool:
    """Return whether a file is called as snapshots of a policy are: by the number of an update."""
    return re.fullmatch(r"\d+\.safetensors", name) is not None


@contextlib.contextmanager
def opened(
    settings: Any, resumed: Path | None, name: str, packages: Iterable[str] = PACKAGES
) -> Iterator[Path]:
    """Yield the folder of a run, locked: the one that goes on, or a new one, which is removed if
    what follows fails before there is anything to go on from."""
    folder = resumed or make_folder(settings, name, packages)
    unfinished = contextlib.nullcontext() if resumed else removed_if_it_fails(folder, STATE)
    with unfinished, locked(folder):
        remove_temporaries(folder)
        yield folder


# The screen.


def tell(text: str) -> None:
    """Print a line to who is watching, above a bar if there is one."""
    with contextlib.suppress(OSError):
        tqdm.write(text, file=sys.stderr)


def say(text: object) -> None:
    """Print a line to standard output. If that fails (a full disk, a pipe that nobody reads any
    more), nothing more is printed: what was learned is worth more than what is shown."""
    try:
        tqdm.write(str(text), file=sys.stdout)  # above a bar if there is one
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def open_missing_streams() -> None:
    """Give a program that was started without standard output or error, as `pythonw` is, one that
    goes nowhere. Otherwise a file of the run would be opened in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


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
        fraction = status["update"] / -(-settings.steps // plays_per_update)
    else:
        fraction = status["seconds"] / (60 * minutes_of(settings))
    return min(1.0, fraction)


def minutes_of(settings: "Settings") -> float:
    """Return a budget in minutes."""
    return DEFAULT_MINUTES if settings.minutes is None else settings.minutes


def used_up(folder: Path, settings: "Settings") -> str:
    """Return the sentence for a run that has nothing left to do."""
    if settings.steps is not None:
        budget, more = f"{settings.steps:,} plays", f"--steps {2 * settings.steps}"
    else:
        minutes = minutes_of(settings)
        budget, more = f"{minutes:g} minutes", f"--minutes {2 * minutes:g}"
    return (
        f"run {folder} has used up its budget of {budget}; a greater one goes on with it, such as "
        f"--resume {folder} {more}"
    )


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
        say(f"{clock}  {speed}  {text}  {left_clock} left")


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


@contextlib.contextmanager
def new_run(name: str, packages: Iterable[str], settings: LibrarySettings) -> Iterator[Path]:
    """Yield the folder of a new run, which is removed if what follows fails before it has a
    policy. Raises `ValueError` as `open_run` does."""
    folder = open_run(name, packages, settings)
    with removed_if_it_fails(folder, POLICY):
        yield folder


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


def read_result(folder: Path, needed: str) -> dict[str, Any]:
    """Return what the last save of a run that is to go on wrote as its result: `steps`, `seconds`
    and `illegal_actions` are numbers. Raises `ValueError` naming the file that is wrong, or that is
    missing: what is `needed` to go on, by its name in the folder."""
    for name in (RESULT, needed):
        if not (folder / name).exists():
            raise ValueError(
                f"run {folder} has no {name}, so it cannot go on, and is left as it is; train anew"
            )
    result = read_json(folder / RESULT)
    for name, kind in (("steps", int), ("seconds", float), ("illegal_actions", int)):
        if name not in result:
            raise ValueError(f"{folder / RESULT} has no {name!r}; restore the file, or train anew")
        result[name] = typed(f"{name!r} in {folder / RESULT}", result[name], kind)
    return result


@contextlib.contextmanager
def going_on(path: Path) -> Iterator[None]:
    """Have a library read what it has saved; raise `ValueError` naming it, whatever it says."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {shorten(first_line(error))}"
        raise ValueError(f"{path} cannot be used, so the run cannot go on: {reason}") from error


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
        results.append(evaluation.to_dict())
        write_result(folder, packages, steps, seconds, illegal_actions, results)
        say(evaluation)
    speed = f"{steps:,} steps, {steps / seconds:,.0f} steps/s"
    say(f"{path}: {speed}, {illegal_actions} illegal actions")
