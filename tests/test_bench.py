"""What `pisti bench` measures is what it says."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from pisti_env import bench, cli, pisti_v0
from pisti_env.shuffle import random_numbers

pytestmark = pytest.mark.compiled  # what is measured is compiled


@pytest.fixture
def few_tables(monkeypatch):
    monkeypatch.setattr(bench, "NUM_TABLES", (1, 8))
    monkeypatch.setattr(bench, "ENCODING_TABLES", 8)
    monkeypatch.setattr(bench, "LEARNER_TABLES", 8)
    monkeypatch.setattr(bench, "PLAYS_AT_ONCE", 16)


def test_everything_is_measured_and_told(few_tables, capsys, tmp_path):
    path = tmp_path / "bench.json"
    cli.main(["bench", "--seconds", "0.001", "--rounds", "2", "--json", str(path)])
    benchmark = json.loads(path.read_text())
    results = benchmark["results"]
    assert {result["group"] for result in results} == set(bench.GROUPS)
    assert all(len(result["rounds"]) == 2 and min(result["rounds"]) > 0 for result in results)
    said = capsys.readouterr().out
    assert all(f"| {result['name']} |" in said for result in results)
    assert f"{benchmark['bytes']['table']} bytes a table" in said


@pytest.mark.parametrize("tables", [1, 5])
def test_plays_are_counted(tables):
    plays = bench.play_batch(tables, 1)()
    assert plays == bench.PLAYS_AT_ONCE // tables * tables
    assert bench.play_aec(pisti_v0.raw_env())() == 48  # a deal
    assert bench.play_single()() == 24  # half of it


def test_random_tables_do_not_depend_on_how_often_they_are_asked():
    whole, parts = bench.RandomTables(6, 0, 1), bench.RandomTables(6, 0, 1)
    whole.play(150)
    for steps in (1, 47, 50, 52):
        parts.play(steps)
    shares = bench.RandomTables(2, 0, 1), bench.RandomTables(4, 2, 1)
    for share in shares:
        share.play(150)
    assert whole.checksum[0] == parts.checksum[0] != 0
    with np.errstate(over="ignore"):
        assert whole.checksum[0] == shares[0].checksum[0] + shares[1].checksum[0]
    # Three whole deals at six tables: 16 points each but for ties and piştis.
    assert 13 * 18 <= whole.points.sum() <= 60 * 18


def test_every_legal_action_is_drawn_as_often():
    masks = np.tile(np.array([0, 1, 0, 0, 1, 1, 0], np.int8), (30_000, 1))
    actions = np.zeros(len(masks), np.int64)
    samplers = random_numbers(3, np.arange(len(masks)))
    with np.errstate(over="ignore"):
        bench.sample_legal(masks, samplers, actions)
    counts = np.bincount(actions, minlength=7)
    assert not counts[[0, 2, 3, 6]].any()
    assert abs(counts[[1, 4, 5]] - 10_000).max() < 5 * 82  # five standard deviations


FAR_QUICKER = """
from pisti_env import bench, pisti_v0

starts = [lambda: bench.play_aec(pisti_v0.raw_env()), lambda: bench.play_batch(4096, 1)]
one, many = bench.measure_all(starts, seconds=0.2, rounds=5)
print(max(b / a for a, b in zip(one, many, strict=True)))
"""


def test_many_tables_at_once_are_far_quicker_than_one():
    """As users have them: not with the bounds checks of `make test-bounds`, which cost many tables
    half their speed."""
    ours = ("NUMBA_BOUNDSCHECK", "NUMBA_CACHE_DIR")
    users = {name: value for name, value in os.environ.items() if name not in ours}
    command = [sys.executable, "-c", FAR_QUICKER]
    done = subprocess.run(command, env=users, capture_output=True, text=True, check=True)
    # By turns, since other tests run beside it.
    assert float(done.stdout) > 40


def test_a_table_is_small():
    assert bench.GAME.itemsize <= bench.bytes_per_table(None) < 1024


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", "0"], "seconds is 0.0; expected a number above 0"),
        (["--rounds", "0"], "rounds is 0; expected an int of 1 or more"),
    ],
)
def test_wrong_arguments(arguments, words, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["bench", *arguments])
    assert exit.value.code == cli.USER_MISTAKE
    assert words in capsys.readouterr().err
