"""Whether another revision plays the same: everything that may not change, compared bit for bit.

    python -m benchmarks.same main

plays the same deals, under random rules and in every encoding, with this tree and with a revision
of git, and compares digests of the observations, masks, rewards, states, scores, decks, layouts,
position lines and hashes of rules, and of what the baselines and the shipped policies do. It tells
the first difference, and ends with status 1 if there is one.
"""

import argparse
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pisti_env import Rules, pisti_v0
from pisti_env.agents import load
from pisti_env.rules import PRESETS, resolve_rules
from pisti_env.vector import DealBatch

ROOT = Path(__file__).resolve().parents[1]
ENCODINGS = ("basic", "full", "kinds", "history", "kinds_history")
REWARDS = ("difference", "terminal", "win")
BASELINES = ("random", "greedy", "counting")
POLICIES = ("pisti-2p", "pisti-4p")
NUM_TABLES = 5
DIFFERENT = 1

# Of each option, what is tried beside its default. What is wrong together is drawn again.
CHOICES: dict[str, Sequence[Any]] = {
    "players": range(2, 7),
    "packs": (1, 2),
    "partners": (False, True),
    "target": range(1, 61),
    "win_by": (2, 5),
    "tie_at_target": ("shared",),
    "ace_points": (0, 2),
    "jack_points": (2, 3),
    "two_of_clubs_points": (0, 3),
    "ten_of_diamonds_points": (0, 4),
    "pisti_points": (0, 5),
    "jack_pisti_points": (10, 30),
    "jack_takes_single_points": (7, 20),
    "ten_of_diamonds_pisti_bonus": (3, 300),
    "last_card_pisti": (True,),
    "majority_points": (0, 4),
    "majority": ("more_than_half", *range(1, 30)),
    "starter_jack": ("stock_bottom", "stock_middle"),
    "starters_seen_by": ("side", "all", "nobody"),
    "bottom_card_shown": (True,),
    "leftovers": ("burn",),
    "ranks": range(2, 13),
    "copies": range(1, 4),
    "hand_size": range(1, 4),
}


def random_rules(number: int) -> list[dict[str, Any]]:
    """Return the fields of every preset and of random rules, `number` in all; the same each time.

    A deck that is all jacks has no starter to turn up, and too few others make one rare.
    """
    rng, drawn = random.Random(0), [Rules.preset(name).to_dict() for name in PRESETS]
    while len(drawn) < number:
        fields = {
            name: rng.choice(values) for name, values in CHOICES.items() if rng.random() < 0.25
        }
        try:
            rules = Rules(**fields)
        except ValueError:
            continue
        if rules.ranks > 2 or rules.starter_jack == "pile":
            drawn.append(fields)
    return drawn[:number]


# What one tree does.


class Digest:
    """Takes arrays and texts, and is one short text of all of them."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *values: Any) -> None:
        """Take arrays with their shape and dtype, and whatever has a faithful `repr`."""
        for value in values:
            if isinstance(value, np.ndarray):
                self._hash.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
            else:
                self._hash.update(repr(value).encode())

    def __str__(self) -> str:
        return self._hash.hexdigest()[:16]


def digests(fields: dict[str, Any], seed: int) -> Iterator[tuple[str, str]]:
    """Yield the digest of each thing that is compared under some rules, with its name."""
    rules = resolve_rules(fields)
    yield "hash of the rules", rules.hash
    for encoding in (*ENCODINGS, "state"):
        rows = [tuple(row) for row in pisti_v0.describe(encoding, rules)]
        yield f"layout {encoding}", digest_of(lambda digest, rows=rows: digest.add(rows))
    for encoding in ENCODINGS:
        rewards = REWARDS[seed % len(REWARDS)]
        yield (
            f"batch {encoding} {rewards}",
            digest_of(lambda digest, *of: play_batch(digest, rules, *of), encoding, rewards, seed),
        )
    yield "environment", digest_of(lambda digest: play_environment(digest, rules, seed))
    for name in BASELINES:
        yield name, digest_of(lambda digest, name=name: ask(digest, rules, name, seed))


def digest_of(play: Callable[..., None], *arguments: Any) -> str:
    """Return the digest of what `play` adds to it."""
    digest = Digest()
    play(digest, *arguments)
    return str(digest)


def play_batch(digest: Digest, rules: Rules, encoding: str, rewards: str, seed: int) -> None:
    """Play a batch a little beyond the first deals, at random."""
    batch, rng = DealBatch(NUM_TABLES, rules, encoding, rewards, seed), np.random.default_rng(seed)
    for _ in range(rules.num_plays + rules.packet_size + 1):
        digest.add(batch.observations, batch.action_masks, batch.seats, batch.states())
        digest.add(batch.observe_as("full"), batch.action_masks_as("kinds"))
        digest.add(batch.decks, batch.dealers)
        paid, ended = batch.step(sample_legal(batch.action_masks, rng))
        digest.add(paid, ended, batch.deal_ended)
        digest.add(batch.final_scores[batch.deal_ended])


def sample_legal(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random legal action of each row."""
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def play_environment(digest: Digest, rules: Rules, seed: int) -> None:
    """Play two episodes of the PettingZoo environment at random, or the beginning of two matches,
    and look at them from every seat in every encoding."""
    env, rng = pisti_v0.raw_env(rules=rules), np.random.default_rng(seed)
    for episode_seed in (seed, None):
        env.reset(seed=episode_seed)
        for play in range(rules.num_plays + rules.packet_size + 1):
            if play % 5 == 0:
                for agent in env.possible_agents:
                    for encoding in ENCODINGS:
                        seen = env.observe_as(agent, encoding)
                        digest.add(seen["observation"], seen["action_mask"])
                digest.add(env.state(), env.score())
                digest.add(*(env.position(seat) for seat in (None, *range(rules.players))))
            digest.add(env.deck, env.dealer, env.agent_selection, env.rewards, env.deals)
            digest.add(env.terminations, env.truncations)
            if any(env.terminations.values()):
                break
            mask = env.observe(env.agent_selection)["action_mask"]
            env.step(int(rng.choice(np.flatnonzero(mask))))
        digest.add(env.state(), env.score(), env.deals)


def ask(digest: Digest, rules: Rules, name: str, seed: int) -> None:
    """Have an agent play every seat of a batch."""
    agent = load(name, rules=rules, seed=seed)
    batch = DealBatch(NUM_TABLES, rules, agent.observation, seed=seed)
    for play in range(rules.num_plays):
        seeds = np.arange(NUM_TABLES, dtype=np.uint64) + np.uint64(play)
        actions = np.asarray(agent.act(batch.observations, batch.action_masks, seeds))
        digest.add(actions)
        batch.step(actions)


def print_digests(given: str) -> None:
    """Print a line for each thing that is compared, as JSON, for a list of fields of rules."""
    for seed, fields in enumerate(json.loads(given)):
        for name, digest in digests(fields, seed):
            print(json.dumps([fields, name, digest]), flush=True)
    for name in POLICIES:
        rules = load(name).rules
        digest = digest_of(lambda digest, *of: ask(digest, *of), rules, name, 0)
        print(json.dumps([rules.to_dict(), name, digest]), flush=True)


# Two trees.


def unpack(revision: str, folder: Path) -> None:
    """Put a revision's files into a folder."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", revision]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{revision} is no revision here: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def start(tree: Path, rules: list[dict[str, Any]]) -> "subprocess.Popen[str]":
    """Have the code of a tree play, by this file. What it compiles is its own."""
    settings = {**os.environ, "PYTHONPATH": str(tree)}
    if tree != ROOT:
        settings["NUMBA_CACHE_DIR"] = str(tree / "compiled")
    code = (
        "import runpy, sys, pisti_env\n"
        "path, tree, rules = sys.argv[1:]\n"
        "assert pisti_env.__file__.startswith(tree), pisti_env.__file__\n"
        "runpy.run_path(path)['print_digests'](rules)\n"
    )
    command = [sys.executable, "-c", code, __file__, str(tree), json.dumps(rules)]
    return subprocess.Popen(command, cwd=tree, env=settings, stdout=subprocess.PIPE, text=True)


def compare(tree: Path, rules: list[dict[str, Any]]) -> tuple[int, str]:
    """Compare this tree with another; return how many things were the same, and what was the first
    that was not, "" if all were."""
    ours, theirs = processes = [start(each, rules) for each in (ROOT, tree)]
    same = 0
    try:
        for mine, other in zip(read(ours), read(theirs), strict=True):
            if mine != other:
                fields, name, _ = json.loads(mine)
                return same, f"{name} under {fields}"
            same += 1
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return same, ""


def read(process: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield the lines that a process prints; raise if it fails."""
    assert process.stdout is not None
    yield from process.stdout
    if process.wait() != 0:
        raise SystemExit(f"it ended with status {process.returncode}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same", description=__doc__)
    parser.add_argument("revision", help="of git: a commit, a tag or a branch")
    parser.add_argument("--rules", type=int, default=220, help="how many (default: %(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        unpack(options.revision, Path(folder))
        same, different = compare(Path(folder), random_rules(options.rules))
    print(f"{same:,} things are as in {options.revision}, under {options.rules} rules")
    if different:
        print(f"not so: {different}")
        raise SystemExit(DIFFERENT)


if __name__ == "__main__":
    main()
