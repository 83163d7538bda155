"""How fast it is here: plays a second of the environments and of many tables, and bytes per table.

What is measured takes turns, round after round, since the speed of a machine drifts; medians are
quoted. The cards are drawn by samplers of this file, the same for all and cheap: a space's `sample`
costs more than a step of most of these.
"""

import functools
import importlib.metadata
import itertools
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from tqdm import tqdm

from pisti_env import __version__, pisti_v0, single
from pisti_env.compile import at, compiled
from pisti_env.compiled_rules import compiled_rules
from pisti_env.game import GAME, play
from pisti_env.observation import ENCODINGS
from pisti_env.rules import Rules
from pisti_env.shuffle import GAMMA, mix, random_numbers
from pisti_env.tables import Tables
from pisti_env.vector import DealBatch

SEED = 0
NUM_TABLES = (1, 64, 4096, 65_536)
THREADS = (1, 2)
ENCODING = "kinds"
ENCODING_TABLES = 4096
LEARNER_TABLES = 1024
PLAYS_AT_ONCE = 4096  # of a batch, before the clock is looked at

ONE_TABLE, RULES, OBSERVED, LEARNER = GROUPS = (
    "One table, PettingZoo",
    "Many tables, rules alone",
    "Many tables, observations and masks",
    "One learner, Gymnasium",
)

SAMPLER_DEAL = 2**63  # for what draws the cards, in the place of a deal that never is

# Plays for a short while and returns how many plays those were.
Play = Callable[[], int]


class Case(NamedTuple):
    """One thing to measure."""

    name: str
    group: str
    start: Callable[[], Play]
    """Make everything ready."""


def cases() -> Iterator[Case]:
    """Yield all that is measured."""
    yield Case("raw_env", ONE_TABLE, lambda: play_aec(pisti_v0.raw_env()))
    yield Case("env, in PettingZoo's wrappers", ONE_TABLE, lambda: play_aec(pisti_v0.env()))
    for tables, threads in itertools.product(NUM_TABLES, THREADS):
        name = f"{plural(tables, 'table')}, {plural(threads, 'thread')}"
        if threads <= tables:
            yield Case(name, RULES, functools.partial(play_rules, tables, threads))
            start = functools.partial(play_batch, tables, threads)
            yield Case(f"{ENCODING}, {name}", OBSERVED, start)
    for encoding in ENCODINGS:
        if encoding != ENCODING:
            name = f"{encoding}, {plural(ENCODING_TABLES, 'table')}, 1 thread"
            yield Case(name, OBSERVED, functools.partial(play_batch, ENCODING_TABLES, 1, encoding))
    yield Case("Pisti-v0 against counting, decisions", LEARNER, play_single)
    name = f"the same, {plural(LEARNER_TABLES, 'table')}, decisions"
    yield Case(name, LEARNER, play_learners)


def plural(number: int, noun: str) -> str:
    """Write a number of things: 1 table, 4,096 tables."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


# What is played.


def play_aec(env: Any) -> Play:
    """Play a PettingZoo environment, in the loop of PettingZoo's documentation."""
    pick = picker(SEED)
    env.reset(seed=SEED)

    def play_episode() -> int:
        env.reset()
        plays = 0
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
            else:
                env.step(int(pick(observation["action_mask"].nonzero()[0])))
                plays += 1
        return plays

    return play_episode


def play_rules(num_tables: int, threads: int) -> Play:
    """Play the rules alone, a compiled loop in each thread."""
    shares = np.array_split(np.arange(num_tables), threads)
    all_tables = [RandomTables(len(share), share[0], SEED) for share in shares]
    pool = ThreadPoolExecutor(threads)
    deal = Rules().num_plays
    steps = max(deal, PLAYS_AT_ONCE // num_tables // deal * deal)

    def play() -> int:
        list(pool.map(lambda tables: tables.play(steps), all_tables))
        return steps * num_tables

    return play


class RandomTables:
    """Tables of the two-player standard game, from number `first` on, where random cards are
    played, one at each table in turn and deal after deal.

    Attributes: `checksum` (1,) uint64 of the final scores of every deal that ended, in any order,
    and `points` (2,) int64 of each seat in all of them.
    """

    def __init__(self, num_tables: int, first: int, seed: int):
        rules, numbers = Rules(), np.arange(first, first + num_tables)
        self._tables = Tables(rules, num_tables, numbers)
        self._compiled_rules = compiled_rules(rules)
        self._tables.reseed(seed)
        self._tables.start(self._tables.all_rows)
        self._samplers = random_numbers(seed, numbers, SAMPLER_DEAL)
        self._numbers = numbers
        self._left = self._num_plays = rules.num_plays
        self.checksum, self.points = np.zeros(1, np.uint64), np.zeros(2, np.int64)

    def play(self, steps: int) -> None:
        """Play `steps` cards at every table. All deals end at once: then the next are dealt."""
        tables = self._tables
        with np.errstate(over="ignore"):  # interpreted, integers that wrap around are a warning
            while steps:
                now = min(steps, self._left)
                play_random(tables.games, self._compiled_rules, self._samplers, now)
                self._left -= now
                steps -= now
                if self._left == 0:
                    add_scores(
                        tables.games, self._numbers, tables.deals_dealt, self.checksum, self.points
                    )
                    tables.start(tables.all_rows)
                    self._left = self._num_plays


@compiled
def play_random(
    games: np.ndarray, compiled_rules: np.ndarray, samplers: np.ndarray, steps: int
) -> None:
    """Play `steps` cards of the hands to play at all `games` (n,), each card equally likely."""
    rules = compiled_rules[0]
    for _ in range(steps):
        for i in range(len(games)):
            game = games[i]
            samplers[i] = samplers[i] * _MULTIPLIER + _INCREMENT
            size = np.uint64(game.hand_sizes[at(game.to_play)])
            slot = (samplers[i] >> _S32) * size >> _S32
            play(game, rules, game.hands[at(game.to_play), slot])


@compiled
def add_scores(
    games: np.ndarray,
    numbers: np.ndarray,
    deals: np.ndarray,
    checksum: np.ndarray,
    points: np.ndarray,
) -> None:
    """Add the final scores of all `games` (n,), whose tables have `numbers` (n,) and were dealt
    `deals` (n,), to the `checksum` (1,) and to the `points` (2,) of the seats."""
    for i in range(len(games)):
        game = games[i]
        state = mix(np.uint64(numbers[i]) + GAMMA)
        state = mix(state + np.uint64(deals[i]))
        for seat in range(2):
            state = mix(state + np.uint64(game.public_points[seat]))
            state = mix(state + np.uint64(game.captured[seat]))
            state = mix(state + np.uint64(game.pistis[seat]))
            state = mix(state + np.uint64(game.jack_pistis[seat]))
            points[seat] += game.public_points[seat]
        checksum[0] += state


def play_batch(num_tables: int, threads: int, encoding: str = ENCODING) -> Play:
    """Play a `DealBatch`, with an observation and a mask for every play."""
    batch = DealBatch(num_tables, observation=encoding, seed=SEED, threads=threads)
    samplers = random_numbers(SEED, np.arange(num_tables))
    actions = np.zeros(num_tables, np.int64)

    shares = np.array_split(np.arange(num_tables), threads)
    spans = [slice(share[0], share[-1] + 1) for share in shares]
    pool = ThreadPoolExecutor(threads)

    def sample(span: slice) -> None:
        sample_legal(batch.action_masks[span], samplers[span], actions[span])

    steps = max(1, PLAYS_AT_ONCE // num_tables)

    def play() -> int:
        for _ in range(steps):
            if threads == 1:
                sample(spans[0])
            else:
                list(pool.map(sample, spans))
            batch.step(actions)
        return steps * num_tables

    return play


def play_single() -> Play:
    """Play the learner of a Gymnasium environment."""
    env, pick = single.PistiEnv(), picker(SEED)
    env.reset(seed=SEED)

    def play_episode() -> int:
        _, info = env.reset()
        decisions, terminated = 0, False
        while not terminated:
            action = int(pick(info["action_mask"].nonzero()[0]))
            _, _, terminated, _, info = env.step(action)
            decisions += 1
        return decisions

    return play_episode


def play_learners() -> Play:
    """Play the learners of a Gymnasium vector environment."""
    # In the same step, so that every action is a decision.
    envs = gymnasium.make_vec(
        "Pisti-v0", num_envs=LEARNER_TABLES, autoreset_mode=AutoresetMode.SAME_STEP
    )
    _, infos = envs.reset(seed=SEED)
    samplers = random_numbers(SEED, np.arange(LEARNER_TABLES))
    actions = np.zeros(LEARNER_TABLES, np.int64)

    def play() -> int:
        nonlocal infos
        for _ in range(Rules().num_plays // 2):
            sample_legal(infos["action_mask"], samplers, actions)
            infos = envs.step(actions)[-1]
        return Rules().num_plays // 2 * LEARNER_TABLES

    return play


# What draws the cards.

# Many tables: a congruential generator for each (Knuth, MMIX), of whose state the high half counts.
_MULTIPLIER = np.uint64(6364136223846793005)
_INCREMENT = np.uint64(1442695040888963407)
_S32 = np.uint64(32)


def picker(seed: int) -> Callable[[Sequence[int]], int]:
    """Return a function that picks one of the actions it is given, each equally likely."""
    number = random.Random(seed).random

    def pick(actions: Sequence[int]) -> int:
        return actions[int(number() * len(actions))]

    return pick


@compiled
def sample_legal(masks: np.ndarray, samplers: np.ndarray, actions: np.ndarray) -> None:
    """Set `actions` (n,) to a legal one of each row of `masks` (n, a) int8, each equally likely, by
    the `samplers` (n,) uint64. Without a branch: which actions are legal cannot be guessed."""
    for i in range(len(masks)):
        samplers[i] = samplers[i] * _MULTIPLIER + _INCREMENT
        count = 0
        for action in range(masks.shape[1]):
            count += masks[i, action]
        left = np.int64((samplers[i] >> _S32) * np.uint64(count) >> _S32)
        chosen, passed = 0, 0
        for action in range(masks.shape[1]):
            passed += masks[i, action]
            chosen += passed <= left
        actions[i] = chosen


# Measuring.


def measure_all(
    starts: Sequence[Callable[[], Play]], seconds: float, rounds: int, progress: bool = False
) -> list[list[float]]:
    """Measure in turns, `rounds` times `seconds` each; return plays per second, each time."""
    speeds: list[list[float]] = [[] for _ in starts]
    plays = []
    with tqdm(total=len(starts) * (rounds + 1), disable=None if progress else True) as bar:
        for start in starts:
            play = start()
            play()  # what is compiled on first use is compiled now
            plays.append(play)
            bar.update()
        for _ in range(rounds):
            for play, measured in zip(plays, speeds, strict=True):
                measured.append(measure(play, seconds))
                bar.update()
    return speeds


def measure(play: Play, seconds: float) -> float:
    """Return plays per second, over `seconds` or a little more."""
    plays, taken, begun = 0, 0.0, time.perf_counter()
    while taken < seconds:
        plays += play()
        taken = time.perf_counter() - begun
    return plays / taken


def bytes_per_table(encoding: str | None) -> int:
    """Return the memory that a batch has for each table, perhaps with observations and masks."""
    few, many = 1024, 2048
    if encoding is None:
        sizes = [memory_of(Tables(Rules(), n)) for n in (few, many)]
    else:
        batches = [DealBatch(n, observation=encoding) for n in (few, many)]
        sizes = [memory_of(b, b._tables, b._to_play) for b in batches]
    return (sizes[1] - sizes[0]) // (many - few)


def memory_of(*owners: Any) -> int:
    """Return the bytes of all arrays among objects' attributes, each counted once, views not."""
    arrays = {}
    for value in (value for owner in owners for value in vars(owner).values()):
        if isinstance(value, np.ndarray):
            whole = value.base if isinstance(value.base, np.ndarray) else value
            arrays[id(whole)] = whole.nbytes
    return sum(arrays.values())


# Telling.


def run(seconds: float, rounds: int) -> dict[str, Any]:
    """Measure everything; return it as it goes into JSON."""
    measured = list(cases())
    speeds = measure_all([case.start for case in measured], seconds, rounds, progress=True)
    results = [
        {
            "name": case.name,
            "group": case.group,
            "plays_per_second": statistics.median(rounds),
            "rounds": rounds,
        }
        for case, rounds in zip(measured, speeds, strict=True)
    ]
    memory = {
        "record": GAME.itemsize,
        "table": bytes_per_table(None),
        f"table_with_{ENCODING}": bytes_per_table(ENCODING),
    }
    return {
        "machine": machine(),
        "versions": {name: version(name) for name in PACKAGES},
        "seconds": seconds,
        "results": results,
        "bytes": memory,
    }


PACKAGES = ("pisti-env", "numpy", "numba", "pettingzoo", "gymnasium")


def report(benchmark: dict[str, Any]) -> str:
    """Return a benchmark as text: a Markdown table, the memory, the machine."""
    results = benchmark["results"]
    first = results[0]["plays_per_second"]
    lines = [f"| | plays a second | times `{results[0]['name']}` |", "|---|--:|--:|"]
    for group in GROUPS:
        lines.append(f"| **{group}** | | |")
        for result in results:
            if result["group"] == group:
                speed = result["plays_per_second"]
                lines.append(f"| {result['name']} | {speed:,.0f} | {speed / first:,.2f} |")
    size = benchmark["bytes"]
    observed = size[f"table_with_{ENCODING}"]
    lines += [
        "",
        f"Memory: {size['table']:,} bytes a table, {observed:,} with observations of {ENCODING} "
        f"and masks; a million tables take {observed / 1e3:,.2f} GB.",
        ", ".join(f"{name} {value}" for name, value in benchmark["machine"].items()),
        ", ".join(f"{name} {value}" for name, value in benchmark["versions"].items()),
        f"Medians of {plural(len(results[0]['rounds']), 'round')} of "
        f"{benchmark['seconds']:g} s each, in turns.",
    ]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Return what all of it ran on."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def version(package: str) -> str:
    """Return the version of an installed package, this one's wherever it comes from."""
    if package == "pisti-env":
        return __version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
