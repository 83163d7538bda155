"""Small runs of the trainer, for tests."""

import csv
import dataclasses
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pisti_env.rules import parse_rules
from training import runs, selfplay
from training.selfplay import Settings

ROOT = Path(__file__).resolve().parents[1]
TINY = Settings(
    num_tables=8,
    minibatch_size=100,
    hidden=(16,),
    steps=8 * 48 * 6,
    threads=1,
    evaluate_every=0,
    save_seconds=0,
)


def new_run(settings):
    """Make the folder of a run and nothing in it but the settings."""
    return runs.make_folder(settings, "test", ())


def run_for(settings, folder, updates=None):
    """Train in `folder`, for all of the budget or until a signal after some updates."""
    caught, learned = [], selfplay.learn

    def learn_and_count(*args):
        metrics = learned(*args)
        nonlocal updates
        if updates is not None:
            updates -= 1
            if updates == 0:
                caught.append(signal.SIGTERM)
        return metrics

    if not folder.exists():
        new_run(dataclasses.replace(settings, run=folder))
    learner = selfplay.make_learner(settings, parse_rules(settings.rules))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selfplay, "learn", learn_and_count)
        return selfplay.train(settings, learner, folder, caught, None)


def tensors_of(folder, name="state"):
    return load_file(folder / f"{name}.safetensors")


def same(ours, theirs):
    assert set(ours) == set(theirs)
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


def rows_of(folder):
    with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    clock = {"seconds", "plays_per_second"}
    return [{name: text for name, text in row.items() if name not in clock} for row in rows]


POOL = {"pool_share": 0.5, "pool_size": 2, "snapshot_every": 2}


def selfplay_command(*arguments):
    return [sys.executable, "-m", "training.selfplay", *map(str, arguments)]


def wait_for_updates(process, run, updates):
    deadline = time.monotonic() + 120
    while not (run / "metrics.csv").exists() or len(rows_of(run)) < updates:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def refused(monkeypatch, *arguments):
    """Return the one line with which a command is refused."""
    monkeypatch.setattr(sys, "argv", ["selfplay", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        selfplay.main()
    assert stop.value.code not in (0, None)
    text = str(stop.value.code)
    assert "\n" not in text
    return text
