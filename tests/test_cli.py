"""The command `pisti`: what it prints and writes, and how it refuses."""

import contextlib
import errno
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from gymnasium.error import DependencyNotInstalled

import pisti_env
from pisti_env import Rules, arena, cli
from pisti_env.commands.rules import option_meanings
from pisti_env.observation import describe
from pisti_env.record import read_records
from pisti_env.rules import PRESETS

ROOT = Path(__file__).resolve().parents[1]
EVALUATE = ["evaluate", "greedy", "random", "--deals", "3"]


@pytest.fixture(autouse=True)
def quick_matches(monkeypatch):
    monkeypatch.setattr(arena, "MATCHES", 2**6)
    monkeypatch.setattr(arena, "RESAMPLED_MATCHES", 2**4)
    monkeypatch.setattr(arena, "RESAMPLES", 5)


@pytest.fixture
def pisti(capsys):
    """Run a command in this process; what it printed, and its exit status."""

    def run(*arguments):
        status = 0
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code or 0
        printed = capsys.readouterr()
        return SimpleNamespace(status=status, out=printed.out, err=printed.err)

    return run


def refused(ran, *words, command="evaluate"):
    assert ran.status == 2 and ran.out == ""
    [line] = ran.err.splitlines()
    assert line.startswith(f"pisti {command}: "), line
    assert all(word in line for word in words), line


@pytest.fixture
def nothing_is_played(monkeypatch):
    def evaluate(*arguments, **keywords):
        raise AssertionError("played before everything was checked")

    monkeypatch.setattr(arena, "evaluate", evaluate)


def test_evaluate_prints_what_it_did(pisti):
    ran = pisti(*EVALUATE, "--rules", "players=4,target=60", "--seed", 5)
    assert ran.status == 0 and ran.err == ""
    rules = Rules(players=4, target=60)
    first, _, header, row = ran.out.splitlines()
    assert first == f"3 decks, each in 2 seatings; rules players=4,target=60 ({rules.hash}); seed 5"
    assert "match to 60" in header and row.startswith("greedy against random")


def test_every_pair_has_a_row(pisti):
    ran = pisti("evaluate", "counting", "greedy", "random", "--deals", 2)
    rows = [line.split("  ")[0] for line in ran.out.splitlines()[3:]]
    assert rows == ["counting against greedy", "counting against random", "greedy against random"]


def test_evaluate_writes_json(pisti, tmp_path):
    file = tmp_path / "out.json"
    file.write_text("old")
    ran = pisti(*EVALUATE, "--json", file, "--rules", "istanbul")
    assert ran.status == 0 and ran.out.endswith(f"written to {file}\n")
    assert list(tmp_path.iterdir()) == [file]
    data = json.loads(file.read_text())
    assert data == arena.evaluate(["greedy", "random"], "istanbul", 3).to_dict()


def test_evaluate_keeps_deals(pisti, tmp_path):
    file = tmp_path / "deals.toml"
    ran = pisti(*EVALUATE, "--record", file, "--record-every", 2, "--json", tmp_path / "json")
    assert ran.status == 0 and f"\ndeals written to {file}\n" in ran.out
    assert len(read_records(file)) == 2 * 2
    refused(pisti(*EVALUATE, "--record", file, "--json", f"{tmp_path}/./{file.name}"), "twice")
    refused(pisti(*EVALUATE, "--record", file, "--record-every", 0), "record_every is 0")


def test_a_full_disk_for_deals_leaves_the_results(pisti, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    ran = pisti(*EVALUATE, "--record", tmp_path / "deals")
    assert ran.status == 2 and "greedy against random" in ran.out
    assert len(ran.err.splitlines()) == 1 and "No space left on device" in ran.err


def test_exploit_tells_what_is_won_at_least(pisti, tmp_path):
    told = tmp_path / "bound.json"
    arguments = [
        "exploit",
        "greedy",
        "--samples",
        4,
        "--deals",
        3,
        "--rules",
        "ranks=4,hand_size=3",
    ]
    ran = pisti(*arguments, "--json", told)
    data = json.loads(told.read_text())
    [result] = data["results"]
    assert ran.status == 0 and f"wins {result['mean']:+.2f}" in ran.out
    assert (result["a"], result["b"]) == ("best response", "greedy") and data["samples"] == 4
    assert result["low"] < result["mean"] < result["high"]
    refused(pisti("exploit", "greedy", "--samples", "none"), "samples is 'none'", command="exploit")
    refused(pisti("exploit", "nobody"), "'nobody'", command="exploit")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["greedy", "nobody"], ["'nobody'", "random, greedy, counting"]),
        (["greedy", "search:nobody"], ["'nobody'"]),
        (["greedy"], ["two or more"]),
        ([], ["AGENT"]),
        (["greedy", "random", "--deals", "0"], ["deals is 0"]),
        (["greedy", "random", "--deals", "10000000000000"], ["deals is 10000000000000"]),
        (["greedy", "random", "--deals", "99999999999999999999"], ["deals is 9999999", "from 1"]),
        (["greedy", "random", "--deals", "many"], ["--deals", "'many'"]),
        (["greedy", "random", "--seed", "-1"], ["seed is -1"]),
        (["greedy", "random", "--rules", "nonsense"], ["'nonsense'", "standard"]),
        (["greedy", "random", "--rules", "players=7"], ["players is 7"]),
        (["greedy", "random", "--rules", "speed=7"], ["'speed'"]),
        (["greedy", "random", "--rules", "istanbul,players"], ["'players'", "FIELD=VALUE"]),
        (["greedy", "random", "--json", "no/such/folder/x.json"], ["no/such/folder/x.json"]),
    ],
)
def test_a_mistake_is_one_plain_line(pisti, arguments, words):
    refused(pisti("evaluate", *arguments), *words)


def test_mistakes_outside_a_command(pisti):
    for arguments in (["play"], ["--nonsense"], [*EVALUATE, "--nonsense"]):
        ran = pisti(*arguments)
        assert ran.status == 2 and ran.out == "" and len(ran.err.splitlines()) == 1


def test_a_file_that_cannot_be_written_is_found_out_first(pisti, tmp_path, nothing_is_played):
    file = tmp_path / "file"
    file.write_text("kept")
    for path in (tmp_path, file / "x.json", tmp_path / "no" / "x.json", "/dev/null"):
        refused(pisti(*EVALUATE, "--json", path), str(path), "cannot be written")
    assert list(tmp_path.iterdir()) == [file] and file.read_text() == "kept"


def test_a_full_disk_leaves_what_was_there(pisti, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    file = tmp_path / "out.json"
    file.write_text("old")
    monkeypatch.setattr("os.fsync", full)
    ran = pisti(*EVALUATE, "--json", file)
    assert ran.status == 2 and "greedy against random" in ran.out  # the results are not lost
    assert len(ran.err.splitlines()) == 1 and "No space left on device" in ran.err
    assert list(tmp_path.iterdir()) == [file] and file.read_text() == "old"


def test_a_file_that_is_no_checkpoint(pisti, tmp_path, nothing_is_played):
    file = tmp_path / "policy.safetensors"
    file.write_bytes(b"nonsense")
    refused(pisti("evaluate", file, "greedy"), str(file), "cannot be used")


class Foreign:
    """An agent that was made for other rules."""

    observation = "basic"
    rules = Rules(target=101)

    def act(self, observations, masks, seeds=None):
        return masks.argmax(axis=1)


def test_other_rules_are_noted_or_refused(pisti, tmp_path, monkeypatch):
    monkeypatch.setattr(arena, "load", lambda *arguments, **keywords: Foreign())
    file = tmp_path / "out.json"
    ran = pisti(*EVALUATE, "--json", file)
    difference = "was made for other rules (target 101 -> None)"
    notes = [f"greedy {difference}", f"random {difference}"]
    assert ran.status == 0 and ran.err == "".join(f"warning: {note}\n" for note in notes)
    assert json.loads(file.read_text())["notes"] == notes
    file.unlink()
    refused(pisti(*EVALUATE, "--json", file, "--strict"), notes[0], "strict")
    assert not list(tmp_path.iterdir())


def test_sample_and_strict_are_passed_on(pisti, monkeypatch):
    asked, load = [], arena.load

    def spy(name, rules, seed, sample, strict):
        asked.append((sample, strict))
        return load(name, rules, seed, sample, strict=strict)

    monkeypatch.setattr(arena, "load", spy)
    pisti(*EVALUATE)
    pisti(*EVALUATE, "--sample", "--strict")
    assert asked == [(None, False)] * 2 + [(True, True)] * 2


def test_interrupting_is_quiet(pisti, monkeypatch):
    def evaluate(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(arena, "evaluate", evaluate)
    ran = pisti(*EVALUATE)
    assert (ran.status, ran.out, ran.err) == (130, "", "pisti evaluate: interrupted\n")


def test_too_little_memory_is_one_plain_line(pisti, monkeypatch):
    def evaluate(*arguments, **keywords):
        raise MemoryError

    monkeypatch.setattr(arena, "evaluate", evaluate)
    refused(pisti(*EVALUATE), "out of memory")


def test_a_missing_extra_is_one_plain_line(pisti, monkeypatch):
    def evaluate(*arguments, **keywords):
        raise DependencyNotInstalled("nothing to draw with")

    monkeypatch.setattr(arena, "evaluate", evaluate)
    refused(pisti(*EVALUATE), "nothing to draw with")


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp1252", "cp1254"])
@pytest.mark.parametrize("arguments", [["--help"], ["rules"], ["describe", "full"], EVALUATE])
def test_an_output_that_cannot_show_every_letter(monkeypatch, encoding, arguments):
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding, write_through=True))
    with contextlib.suppress(SystemExit):
        cli.main(arguments)
    shown = output.getvalue().decode(encoding)
    assert shown and "?" not in shown
    if arguments == ["--help"]:
        name = "Pişti" if encoding == "cp1254" else "Pisti"
        assert f"{name} for machine learning" in shown


COMMANDS = [[], ["--help"], ["--version"], ["evaluate", "--help"], ["rules"], ["describe", "kinds"]]


def run_with_stdout(stdout, arguments):
    return subprocess.run(
        [sys.executable, "-m", "pisti_env", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_screen_that_takes_nothing_is_told_of(arguments):
    with open("/dev/full", "wb") as full:
        ran = run_with_stdout(full, arguments)
    [line] = ran.stderr.splitlines()
    assert ran.returncode == 2 and "standard output cannot be written: No space left" in line


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_pipe_that_nobody_reads_is_no_news(arguments):
    read, write = os.pipe()
    os.close(read)
    ran = run_with_stdout(write, arguments)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (141, "")


class Broken(io.StringIO):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    ("stdout", "status", "said"),
    [
        (Broken(errno.ENOSPC), 2, "No space left on device"),
        (Broken(errno.EPIPE), 141, ""),
        (None, 0, ""),
    ],
)
def test_results_are_written_before_they_are_shown(
    pisti, monkeypatch, tmp_path, stdout, status, said
):
    file = tmp_path / "out.json"
    monkeypatch.setattr("sys.stdout", stdout)
    ran = pisti(*EVALUATE, "--json", file)
    assert json.loads(file.read_text())["agents"] == ["greedy", "random"]
    assert ran.status == status and said in ran.err and bool(said) == bool(ran.err)


@pytest.mark.compiled  # all matches of an evaluation are played
@pytest.mark.skipif(os.name == "nt", reason="streams are closed in a shell of Unix")
@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&- 0<&-"])
def test_a_program_without_streams(tmp_path, closed):
    file = tmp_path / "out.json"
    command = [sys.executable, "-m", "pisti_env", *EVALUATE, "--json", str(file)]
    ran = subprocess.run(f"{shlex.join(command)} {closed}", shell=True, cwd=ROOT, check=False)
    assert ran.returncode == 0 and json.loads(file.read_text())["deals"] == 3


def test_bare_pisti_prints_the_help(pisti):
    bare = pisti()
    assert bare.status == 0 and bare.err == "" and bare.out == pisti("--help").out
    assert "evaluate" in bare.out


def test_the_first_agent_alone_can_be_measured(pisti, tmp_path):
    file = tmp_path / "out.json"
    command = ["evaluate", "counting", "greedy", "random", "--deals", 2, "--json", file]
    pisti(*command)
    every = json.loads(file.read_text())["results"]
    pisti(*command, "--first-only")
    assert json.loads(file.read_text())["results"] == every[:2]
    assert [result["b"] for result in every[:2]] == ["greedy", "random"]


def test_an_agent_is_found_in_a_file_of_the_current_folder(pisti, tmp_path, monkeypatch):
    (tmp_path / "agent_of_this_folder.py").write_text(
        "from pisti_env import Rules\n"
        "class Lowest:\n"
        "    observation, rules = 'basic', Rules()\n"
        "    def act(self, observations, masks, seeds=None):\n"
        "        return masks.argmax(axis=-1)\n"
    )
    command = ["evaluate", "agent_of_this_folder:Lowest", "greedy", "--deals", 2]
    monkeypatch.chdir(ROOT)
    refused(pisti(*command), "'agent_of_this_folder:Lowest'", "No module named")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    ran = pisti(*command)
    assert ran.status == 0 and "agent_of_this_folder:Lowest against greedy" in ran.out
    assert sys.path == before


def test_long_values_are_not_quoted_whole(pisti):
    for option in ("--deals", "--seed", "--rules", "--nonsense"):
        ran = pisti(*EVALUATE, option, "9" * 100_000)
        assert ran.status == 2 and len(ran.err) < 1000 and len(ran.err.splitlines()) == 1


def test_rules_lists_presets_and_options(pisti):
    ran = pisti("rules")
    assert ran.status == 0
    for name in [*PRESETS, *Rules().to_dict()]:
        assert f"\n  {name} " in ran.out
    assert all(len(meaning) > 20 for meaning in option_meanings().values())
    assert set(option_meanings()) == set(Rules().to_dict())
    ran = pisti("rules", "--rules", "short,players=3")
    assert "3 players, 3 sides, a deck of 52 cards, 48 plays a deal, hash" in ran.out
    refused(pisti("rules", "--rules", "no"), "'no'", command="rules")


def test_describe_prints_a_layout(pisti):
    assert pisti("describe", "kinds").out == f"{describe('kinds', Rules())}\n"
    four = pisti("describe", "full", "--rules", "players=4").out
    assert four == f"{describe('full', Rules(players=4))}\n"
    refused(pisti("describe", "nothing"), "'nothing'", command="describe")


def test_version_and_help(pisti):
    assert pisti("--version").out == f"pisti-env {pisti_env.__version__}\n"
    text = pisti("--help").out
    for command in ("evaluate", "rules", "describe"):
        assert command in text and pisti(command, "--help").status == 0


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "pisti_env", "evaluate", "greedy", "nobody"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 2 and ran.stdout == "" and len(ran.stderr.splitlines()) == 1
