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

import numpy as np

from pisti_env.bench import draw_cards
from pisti_env.cards import NUM_CARDS
from pisti_env.compile import compiled
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed, draw_numbers
from pisti_env.tables import Tables, warm_up

SOURCE = Path(__file__).with_name("yardstick.c")
COMPILER_FLAGS = ("-O3", "-march=native")
CANNOT_RUN = 2
NOT_EQUAL = 1

_SAMPLER_DEAL = 2**63  # for what draws the cards to play, in the place of a deal that never is

# SplitMix64, as in `pisti_env/shuffle.py`; compiled code calls only functions of its own file.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = (np.uint64(bits) for bits in (27, 30, 31))


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
    tables, rows = Tables(Rules(), num_tables), np.arange(num_tables)
    tables.reseed(seed)
    tables.start(rows)
    samplers = draw_numbers(seed, rows, _SAMPLER_DEAL)
    deals = np.ones(num_tables, np.int64)
    cards = np.zeros(num_tables, np.int64)
    checksum, points = np.zeros(1, np.uint64), np.zeros(2, np.int64)

    def step() -> None:
        draw_cards(tables.games, samplers, cards)
        play_cards(tables, cards)
        if tables.scored.any():
            add_scores(tables.games, tables.scored, deals, checksum, points)
            tables.start(np.flatnonzero(tables.scored))

    with np.errstate(over="ignore"):  # interpreted, integers that wrap around are a warning
        begun = time.perf_counter()
        for _ in range(steps):
            step()
        taken = time.perf_counter() - begun
    return Played(num_tables * steps / taken, int(checksum[0]), (int(points[0]), int(points[1])))


_ACTION_OF_CARD = np.arange(NUM_CARDS)


def play_cards(tables: Tables, cards: np.ndarray) -> None:
    """Play a card of the hand at every table."""
    wrong = tables.find_cards(cards, _ACTION_OF_CARD)
    assert wrong < 0, f"card {cards[wrong]} drawn at table {wrong} is not in the hand"
    tables.play()


@compiled
def add_scores(
    games: np.ndarray,
    scored: np.ndarray,
    deals: np.ndarray,
    checksum: np.ndarray,
    points: np.ndarray,
) -> None:
    """Add the final scores of the `scored` (n,) tables to the `checksum` (1,) and the `points` (2,)
    of the seats; `deals` (n,) are how many each table has been dealt, which is one more then."""
    for i in range(len(games)):
        if scored[i]:
            game = games[i]
            state = mix(np.uint64(i) + _GAMMA)
            state = mix(state + np.uint64(deals[i]))
            for seat in range(2):
                state = mix(state + np.uint64(game.public_points[seat]))
                state = mix(state + np.uint64(game.captured[seat]))
                state = mix(state + np.uint64(game.pistis[seat]))
                state = mix(state + np.uint64(game.jack_pistis[seat]))
                points[seat] += game.public_points[seat]
            checksum[0] += state
            deals[i] += 1


@compiled
def mix(state: np.uint64) -> np.uint64:
    """Scramble 64 bits (SplitMix64's output function)."""
    state = (state ^ (state >> _S30)) * _MIX_1
    state = (state ^ (state >> _S27)) * _MIX_2
    return state ^ (state >> _S31)


# The C program.


def compiler() -> str | None:
    """Return the C compiler's path, None if there is none: the environment variable CC, else cc."""
    return shutil.which(os.environ.get("CC") or "cc")


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
