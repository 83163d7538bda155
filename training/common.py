"""What the scripts for other libraries have in common: a budget, a run's folder, the last word.

Each script trains with its library alone, and ends with a policy that `pisti evaluate` plays with
nothing else installed.
"""

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from pisti_env.agents.checkpoint import Checkpoint, make_checkpoint, write_checkpoint, write_file
from pisti_env.arena import evaluate
from pisti_env.rules import parse_rules

POLICY, RESULT, SETTINGS = "policy.safetensors", "result.json", "settings.json"
REPORT_SECONDS = 10.0
ENCODING = "kinds"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What every script's run is made of."""

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
        self.stopped = False
        """Whether a signal to stop has come."""

    @contextlib.contextmanager
    def used_up_by_signals(self) -> Iterator[None]:
        """Have Ctrl-C or SIGTERM use the budget up, so that training ends as usual and what was
        learned is kept. The second one stops at once."""

        def catch(number: int, frame: Any) -> None:
            self.stopped = True
            signal.signal(number, signal.SIG_DFL)

        before = {n: signal.signal(n, catch) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

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


def open_run(name: str, settings: Settings) -> Path:
    """Make the folder of a new run, with its settings; return it. Raises `ValueError` if it exists
    or the settings are wrong, and leaves nothing then."""
    parse_rules(settings.rules)
    Budget(settings)  # for its checks
    folder = settings.run or Path("runs") / f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    if folder.exists():
        raise ValueError(f"run {folder} exists; name another")
    torch.set_num_threads(settings.threads)
    folder.mkdir(parents=True)
    write_file(folder / SETTINGS, json.dumps(without_folders(settings), indent=2).encode())
    return folder


def read_settings(given: Any, own: Iterable[str]) -> Any:
    """Return the settings of the run in the folder `given.resume`, but for those named in `own`,
    which are as given now."""
    known = json.loads((given.resume / SETTINGS).read_text(encoding="utf-8"))
    known = {name: tuple(v) if isinstance(v, list) else v for name, v in known.items()}
    return type(given)(**known | {name: getattr(given, name) for name in ("resume", *own)})


def without_folders(settings: Settings) -> dict[str, Any]:
    """Return settings as data, but for folders, which are the machine's."""
    data = dataclasses.asdict(settings)
    return {name: None if isinstance(v, Path) else v for name, v in data.items()}


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages, by name."""
    return {name: importlib.metadata.version(name) for name in packages}


def policy_of(
    layers: Iterable[torch.nn.Module], settings: Settings, training: dict[str, Any] | None = None
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
        "versions": versions(packages),
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
