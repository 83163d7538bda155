"""The benchmarks: what is compared plays the same, and what cannot run says so."""

import errno
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import games, peers, same, yardstick
from pisti_env import tables

ROOT = Path(__file__).resolve().parents[1]
NUM_TABLES, STEPS, SEED = 50, 5 * 48 + 7, 3


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if yardstick.compiler() is None:
        pytest.skip("there is no C compiler")
    return yardstick.build(tmp_path_factory.mktemp("yardstick"))


def test_c_and_the_engine_play_the_same_deals(program):
    c = yardstick.run_c(program, NUM_TABLES, STEPS, SEED)
    engine = yardstick.run_engine(NUM_TABLES, STEPS, SEED)
    yardstick.check_equal(c, engine)
    # Five whole deals at each table: 16 points each but for ties and piştis.
    assert 13 * 5 * NUM_TABLES < sum(engine.points) < 40 * 5 * NUM_TABLES


def test_another_seed_has_another_checksum(program):
    c = yardstick.run_c(program, NUM_TABLES, STEPS, SEED + 1)
    with pytest.raises(ValueError, match="one of the two does not play by the rules"):
        yardstick.check_equal(c, yardstick.run_engine(NUM_TABLES, STEPS, SEED))


def test_other_decks_have_another_checksum(program, monkeypatch):
    start = tables.Tables.start

    def start_tampered(self, rows):
        """In every deck, the last card of either hand of the last packet goes to the other."""
        start(self, rows)
        decks = self.decks[rows]
        decks[:, [-1, -5]] = decks[:, [-5, -1]]
        start(self, rows, decks, self.games["dealer"][rows])

    c = yardstick.run_c(program, NUM_TABLES, 48, SEED)
    assert yardstick.run_engine(NUM_TABLES, 48, SEED).checksum == c.checksum
    monkeypatch.setattr(tables.Tables, "start", start_tampered)
    assert yardstick.run_engine(NUM_TABLES, 48, SEED).checksum != c.checksum


def test_without_a_c_compiler_it_says_so(monkeypatch, capsys):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(SystemExit) as exit:
        yardstick.main(["--tables", "1", "--steps", "1"])
    assert exit.value.code == yardstick.CANNOT_RUN
    assert "no C compiler is called no-such-compiler" in capsys.readouterr().err


def test_peers_that_are_not_installed_are_named_and_the_rest_goes_on():
    def not_there():
        raise ModuleNotFoundError("No module named 'such_a_game'")

    there = games.Peer("pisti-env", games.BARE, "pisti-env", games.aec(games.EmptyAEC))
    missing = games.Peer("Such a Game", games.BARE, "such-a-game", not_there)
    results = peers.measure_all([missing, there], seconds=0.01, rounds=2)
    assert results[0].speed is None and len(results[1].speeds) == 2
    text = peers.table(results)
    assert "| Such a Game | none | not installed (No module named 'such_a_game') |" in text
    assert "| 1.00 |" in text


def test_help_needs_no_peers():
    script = (
        "import sys\n"
        "for name in ('jax', 'matplotlib', 'pgx', 'pyspiel', 'rlcard', 'sb3_contrib', 'torch'):\n"
        "    sys.modules[name] = None\n"  # importing it raises
        "from benchmarks.peers import main\n"
        "main(['--help'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "--chart" in done.stdout, done.stderr


def test_another_tree_is_the_same_until_a_rule_is_not(tmp_path):
    for part in ("pisti_env", "checkpoints"):
        shutil.copytree(ROOT / part, tmp_path / part)
    rules = [{}, {"players": 3, "ranks": 6}]
    things, different = same.compare(tmp_path, rules)
    assert things > 30 and different == ""
    game = tmp_path / "pisti_env" / "game.py"
    text = game.read_text()
    assert text.count("winner, tied = cards, side, False") == 1
    game.write_text(text.replace("side, False", "side, side == 1"))  # seat 1 never has most cards
    _, different = same.compare(tmp_path, rules)
    assert different.startswith("batch basic difference under {")


def test_rules_to_compare_are_many_and_the_same_each_time():
    rules = same.random_rules(200)
    assert rules == same.random_rules(200)
    assert len({repr(fields) for fields in rules}) > 190


def test_figures_are_written_even_if_nobody_reads_the_table(monkeypatch, tmp_path):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    only = [games.Peer("nothing", games.BARE, "pisti-env", games.aec(games.EmptyAEC))]
    monkeypatch.setattr(peers, "all_peers", lambda: iter(only))
    monkeypatch.setattr("sys.stdout", Closed())
    file = tmp_path / "figures.json"
    with pytest.raises(SystemExit):
        peers.main(["--seconds", "0.01", "--rounds", "1", "--json", str(file)])
    assert json.loads(file.read_text("utf-8"))["results"][0]["name"] == "nothing"
