"""The README's code runs, and so do the commands that it names.

A comment before a Python block, `<!-- in tests: 300 -> 2 -->`, makes its budget small.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pisti_env import arena, cli
from pisti_env.rules import PRESETS

pytestmark = pytest.mark.compiled  # in one run; 1024 tables are too many without

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUDGET = re.compile(r"<!-- in tests: (\S+) -> (\S+) -->")
PYTHON = re.compile(r"((?:<!-- in tests: .*? -->\n)?)```python\n(.*?)```", re.DOTALL)
SHELL = re.compile(r"```bash\n(.*?)```", re.DOTALL)


def python_blocks() -> list[str]:
    blocks = []
    for comment, code in PYTHON.findall(README):
        if comment:
            budget = BUDGET.match(comment)
            assert budget, comment
            assert budget[1] in code, f"{comment}not in the block that follows"
            code = code.replace(budget[1], budget[2])
        blocks.append(code)
    return blocks


def commands() -> list[str]:
    lines = "\n".join(SHELL.findall(README)).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


def run(*command: str, cwd: Path = ROOT) -> str:
    # What `make test` hands down to us is not meant for a make that is tested.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "PYTHON")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{shlex.join(command)}: {result.stderr}"
    return result.stdout


def test_every_budget_belongs_to_a_block():
    assert len(BUDGET.findall(README)) == sum(
        bool(comment) for comment, _ in PYTHON.findall(README)
    )


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_python_block_runs(number, tmp_path):
    script = tmp_path / "readme.py"
    script.write_text(python_blocks()[number], encoding="utf-8")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )


# With these in the end, a command does what it says in little time.
SMALL = {
    "evaluate": ["--deals", "2"],
    "coach": ["--samples", "3"],
    "bench": ["--seconds", "0.001", "--rounds", "1"],
    "training.selfplay": "--minutes 0.02 --num-tables 8 --minibatch-size 64 --hidden 8".split(),
}


def test_every_command_runs_in_order(tmp_path, monkeypatch):
    """As a reader who pastes them, in one folder, with a run there as `make train` leaves it. What
    installs is checked without installing, what `make` does without doing it."""
    (tmp_path / "runs" / "five").mkdir(parents=True)
    shipped = ROOT / "checkpoints" / "pisti-2p.safetensors"
    shutil.copy(shipped, tmp_path / "runs" / "five" / "policy.safetensors")
    for code in python_blocks():
        if name := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / name[1]).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arena, "MATCHES", 2**6)
    monkeypatch.setattr(arena, "RESAMPLED_MATCHES", 2**4)
    monkeypatch.setattr(arena, "RESAMPLES", 5)
    for command in commands():
        check_command(command, *shlex.split(command, comments=True))


def check_command(command: str, program: str, *arguments: str) -> None:
    if program == "pisti":
        small = SMALL.get(arguments[0], []) if arguments else []
        try:
            cli.main([*arguments, *small])
        except SystemExit as stop:
            pytest.fail(f"{command}: ended with {stop.code}")
    elif program == "make":
        if shutil.which("make"):
            run("make", "--dry-run", *arguments, f"PYTHON={sys.executable}")
    elif program == "pip":
        assert arguments[0] == "install"
        for extra in re.findall(r"\[(\w+)\]", arguments[1]):
            assert extra in PROJECT["optional-dependencies"]
    elif program == "source":
        assert Path(arguments[0]).is_file() or os.name == "nt"
    elif arguments[:2] == ("-m", "venv"):
        run(sys.executable, *arguments, "--without-pip", cwd=Path.cwd())
    else:
        assert program == "python" and arguments[0] == "-m", command
        run(sys.executable, *arguments, *SMALL[arguments[1]], cwd=Path.cwd())


def test_the_coached_play_is_what_the_commands_beside_it_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.main(["watch", "--seed", "27", "--record", "deal.toml"])
    capsys.readouterr()
    cli.main(["coach", "deal.toml", "--seat", "1", "--play", "19"])
    assert f"```text\n{capsys.readouterr().out}```" in README


@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
def test_make_train_begins_a_run_of_its_own():
    """Named by the time, and measured in the same folder even if the clock has gone on."""
    folders = re.findall(r"runs/[\w-]+", run("make", "--dry-run", "train", "PYTHON=python3"))
    assert len(folders) == 2 and len(set(folders)) == 1
    assert re.fullmatch(r"runs/\d{8}-\d{6}", folders[0])
    given = run("make", "--dry-run", "train", "PYTHON=python3", "RUN=runs/long")
    assert re.findall(r"runs/[\w-]+", given) == ["runs/long", "runs/long"]


def test_nothing_is_left_to_fill_in():
    assert "<!-- fill" not in README and "@@" not in README


def test_tables_are_narrow_enough_for_a_phone():
    """A cell that has blanks is broken there; a word of code is not."""
    for line in README.splitlines():
        if line.startswith("|"):
            cells = line.strip("|").split("|")
            assert len(cells) <= 4 and all(len(cell) < 90 for cell in cells), line
            assert sum(max(map(len, cell.split() or [""])) for cell in cells) < 60, line


# The table of presets.


def table(*head: str) -> list[list[str]]:
    """The cells of the one table whose header begins so."""
    lines = README.splitlines()
    [start] = [
        number for number, line in enumerate(lines) if line.startswith(f"| {' | '.join(head)} |")
    ]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def fields_told(text: str, presets: dict[str, dict]) -> dict[str, object]:
    """The fields of a preset from its words: another preset's name, and a phrase for each field."""
    fields = {}
    for name, others in presets.items():
        if f"`{name}`" in text:
            fields |= others
    for phrase, name, value in (
        (r"matches to (\d+)", "target", None),
        (r"last card can make a pişti", "last_card_pisti", True),
        (r"(\d+) more for a pişti with the ten of diamonds", "ten_of_diamonds_pisti_bonus", None),
        (r"(\d+) for a jack that takes a lone card", "jack_takes_single_points", None),
        (r"stock's last card lies open", "bottom_card_shown", True),
    ):
        said = re.search(phrase, text)
        if said:
            fields[name] = int(said[1]) if value is None else value
    return fields


def test_presets_are_those_of_rules():
    told: dict[str, dict] = {}
    for name, text in table("preset", "what differs"):
        told[name.strip("`")] = fields_told(text, told)
    assert told == PRESETS


def test_what_it_names_is_there_after_import_pisti_env_alone():
    named = sorted(set(re.findall(r"`(?:help\()?(pisti_env(?:\.[a-z_]\w*)+)", README)))
    assert {"pisti_env.single", "pisti_env.arena.evaluate", "pisti_env.agents.ask"} <= set(named)
    code = "import pisti_env\n" + "\n".join(named)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
