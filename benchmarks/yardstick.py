"""The engine against plain C, side by side: the same decks, the same cards played, the same scores.

`yardstick.c` is the two-player standard game written for speed. It and the engine play the same
deals; a checksum of all final scores, which must agree, proves it. Rules only: no observation.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from pisti_env.bench import RandomTables
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import warm_up

SOURCE = Path(__file__).with_name("yardstick.c")
COMPILER_FLAGS = ("-O3", "-march=native")
CANNOT_RUN = 2
NOT_EQUAL = 1


class Played(NamedTuple):
    """What came of a number of steps at a number of tables."""

    plays_per_second: float
    checksum: int
    """Of the final scores of every deal that ended, in any order."""
    points: tuple[int, int]
    """Of each seat, in all of those deals."""


class CannotRunError(Exception):
    """There is no C compiler, or what it made does not run."""


# The engine.


def run_engine(num_tables: int, steps: int, seed: int) -> Played:
    """Play on the engine. The time is that of the steps, with a next deal at every table each time
    that one ends; the first one is dealt before."""
    tables = RandomTables(num_tables, 0, seed)
    begun = time.perf_counter()
    tables.play(steps)
    taken = time.perf_counter() - begun
    first, second = tables.points.tolist()
    return Played(num_tables * steps / taken, int(tables.checksum[0]), (first, second))


# The C program.


def compiler() -> str | None:
    """Return the C compiler's path, None if there is none: the environment variable CC, else cc."""
    return shutil.which(os.environ.get("CC") or "cc")


def compiler_version() -> str:
    """Return what the C compiler says that it is; "none" if there is none."""
    c_compiler = compiler()
    if c_compiler is None:
        return "none"
    done = subprocess.run([c_compiler, "--version"], capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), "unknown")


def build(folder: Path) -> Path:
    """Compile the C program into a folder; raise `CannotRunError` if that cannot be done."""
    program, c_compiler = folder / "yardstick", compiler()
    if c_compiler is None:
        raise CannotRunError(
            f"no C compiler is called {os.environ.get('CC') or 'cc'}; install one, or name it in "
            "the environment variable CC"
        )
    command = [c_compiler, *COMPILER_FLAGS, "-o", str(program), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = next(iter(done.stderr.splitlines()), "it says nothing")
        raise CannotRunError(f"{c_compiler} does not compile {SOURCE.name}: {reason}")
    return program


def run_c(program: Path, num_tables: int, steps: int, seed: int) -> Played:
    """Play in the C program that `build` made."""
    command = [str(program), str(num_tables), str(steps), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotRunError(f"{program.name} failed: {done.stderr.strip() or done.returncode}")
    lines = (line.split() for line in done.stdout.splitlines())
    found = {name: values for name, *values in lines}
    first, second = map(int, found["points"])
    return Played(
        float(found["plays_per_second"][0]), int(found["checksum"][0], 16), (first, second)
    )


# Side by side.


def compare(num_tables: int, steps: int, seed: int, rounds: int) -> list[tuple[Played, Played]]:
    """Play in C and on the engine in turns; return both of each time. Raises `CannotRunError`
    without a C compiler, and `ValueError` if the two do not play the same."""
    warm_up()
    run_engine(1, 2 * Rules().num_plays, seed)  # compiles what is compiled here
    results = []
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for _ in range(rounds):
            c = run_c(program, num_tables, steps, seed)
            engine = run_engine(num_tables, steps, seed)
            check_equal(c, engine)
            results.append((c, engine))
    return results


def check_equal(c: Played, engine: Played) -> None:
    """Raise `ValueError` unless the final scores are the same."""
    if (c.checksum, c.points) != (engine.checksum, engine.points):
        raise ValueError(
            f"the engine's checksum is {engine.checksum:016x}, points {engine.points}; expected "
            f"that of {SOURCE.name}, {c.checksum:016x}, points {c.points}: one of the two does not "
            "play by the rules"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure as the command line says."""
    parser = Parser(prog="python -m benchmarks.yardstick", description=__doc__)
    parser.add_argument("--tables", type=int, default=4096, help="default: %(default)s")
    parser.add_argument(
        "--steps", type=int, default=1920, help="plays at each table (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the decks (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=9, help="how often each plays (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    for name in ("tables", "steps", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"{name} is {getattr(options, name)}; expected an int of 1 or more")
    try:
        check_seed(options.seed)
    except ValueError as error:
        parser.error(str(error))
    try:
        results = compare(options.tables, options.steps, options.seed, options.rounds)
    except CannotRunError as error:
        parser.error(str(error))
    except ValueError as error:
        parser.exit(NOT_EQUAL, f"{parser.prog}: {error}\n")
    print_results(results)


def print_results(results: list[tuple[Played, Played]]) -> None:
    """Print the medians, and how the ratio spreads."""
    for name, side in zip(("C", "engine"), zip(*results, strict=True), strict=True):
        median = statistics.median(played.plays_per_second for played in side)
        print(f"{name:8}{median:14,.0f} plays/s")
    ratios = [engine.plays_per_second / c.plays_per_second for c, engine in results]
    print(
        f"{'ratio':8}{statistics.median(ratios):14.1%}   {min(ratios):.1%} to {max(ratios):.1%} "
        f"in {len(ratios)} turns"
    )
    print(f"{'scores':8}  {results[0][0].checksum:016x} in both")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one plain line."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(CANNOT_RUN, f"{self.prog}: {message}\n")


if __name__ == "__main__":
    main()
