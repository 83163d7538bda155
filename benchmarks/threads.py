"""The trainer's choice of threads against fixed ones, with and without other busy programs.

```bash
python -m benchmarks.threads                # ten runs of 40 seconds, and again, and again
python -m benchmarks.threads --rounds 1 --seconds 20 --busy 0 4
```

All settings are measured in turns, each in a process of its own: plays a second after the first
updates, the median of the rounds.
"""

import argparse
import contextlib
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHOSEN = "chosen by the trainer"
# Name: environment variables, and arguments of the trainer. 300,000 is what OpenMP does by itself.
SETTINGS: dict[str, tuple[dict[str, str], list[str]]] = {
    CHOSEN: ({}, []),
    "one thread": ({}, ["--threads", "1"]),
    "two threads": ({"GOMP_SPINCOUNT": "300000"}, ["--threads", "2"]),
    "two, GOMP_SPINCOUNT=100000": ({"GOMP_SPINCOUNT": "100000"}, ["--threads", "2"]),
    "two, OMP_WAIT_POLICY=PASSIVE": ({"OMP_WAIT_POLICY": "PASSIVE"}, ["--threads", "2"]),
}
UNCOUNTED = 2  # updates at the start


@contextlib.contextmanager
def busy_programs(number: int) -> Iterator[None]:
    """Run so many programs that do nothing but use a core."""
    loop = [sys.executable, "-c", "while True: pass"]
    programs = [subprocess.Popen(loop) for _ in range(number)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def measure(name: str, seconds: float) -> float:
    """Return the plays a second of a run with the settings of this name."""
    variables, arguments = SETTINGS[name]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "training.selfplay", "--run", str(run), *arguments]
        command += ["--minutes", str(seconds / 60), "--evaluate-every", "0"]
        subprocess.run(
            command, env=inherited | variables, check=True, capture_output=True, text=True
        )
        with open(run / "metrics.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    begun = {"plays": 0, "seconds": 0} if len(rows) <= UNCOUNTED else rows[UNCOUNTED - 1]
    plays, taken = (float(rows[-1][name]) - float(begun[name]) for name in ("plays", "seconds"))
    return plays / taken


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each run")
    parser.add_argument(
        "--busy", type=int, nargs="+", default=[0, 2], help="numbers of busy programs beside it"
    )
    given = parser.parse_args()
    try:
        compare(given.rounds, given.seconds, given.busy)
    except subprocess.CalledProcessError as error:
        sys.exit(f"benchmarks.threads: {error}")


def compare(rounds: int, seconds: float, numbers: list[int]) -> None:
    """Measure all settings in turns, beside each number of busy programs, and print it."""
    speeds: dict[tuple[int, str], list[float]] = {}
    for number in range(rounds):
        for busy in numbers:
            with busy_programs(busy):
                for name in SETTINGS:
                    speed = measure(name, seconds)
                    speeds.setdefault((busy, name), []).append(speed)
                    print(f"round {number + 1}, {busy} busy: {name:30} {speed:9,.0f}", flush=True)
    for busy in numbers:
        print(f"\nplays a second with {busy} busy programs, median of {rounds}")
        medians = {name: statistics.median(speeds[busy, name]) for name in SETTINGS}
        for name, median in medians.items():
            print(f"  {name:30} {median:9,.0f}")
        best = max(median for name, median in medians.items() if name != CHOSEN)
        print(f"  {CHOSEN}, of the best other: {medians[CHOSEN] / best:.2f}")


if __name__ == "__main__":
    main()
