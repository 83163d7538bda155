"""The README's code runs, and the commands that it names exist.

A comment before a Python block, `<!-- in tests: 300 -> 2 -->`, makes its budget small.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from pisti_env import Rules
from pisti_env.rules import PRESETS

pytestmark = pytest.mark.compiled  # in one run; 1024 tables are too many without

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUDGET = re.compile(r"<!-- in tests: (\S+) -> (\S+) -->")
CLI = "from pisti_env.cli import main; main()"
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


@cache
def run(*command: str) -> str:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
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


@pytest.mark.parametrize("command", commands())
def test_command_exists(command):
    program, *arguments = shlex.split(command, comments=True)
    flags = {argument for argument in arguments if argument.startswith("--")}
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        for target in (argument for argument in arguments if "=" not in argument):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        for variable in (argument.split("=")[0] for argument in arguments if "=" in argument):
            assert re.search(rf"^{variable} [?:]=", makefile, re.MULTILINE)
    elif program == "pisti":
        subcommand = arguments[0]
        text = run(sys.executable, "-c", CLI, subcommand, "--help")
        assert not {flag for flag in flags if flag not in text}
    elif arguments[:1] == ["-m"] and arguments[1].startswith("training."):
        text = run(sys.executable, "-m", arguments[1], "--help")
        assert not {flag for flag in flags if flag not in text}
    else:
        # Installing and activating is for the reader; .ci/run does it through make.
        assert program in {"pip", "python3", "source"}, command


@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
def test_make_train_begins_a_run_of_its_own():
    """Named by the time, and measured in the same folder even if the clock has gone on."""
    folders = re.findall(r"runs/[\w-]+", run("make", "--dry-run", "train", "PYTHON=python3"))
    assert len(folders) == 2 and len(set(folders)) == 1
    assert re.fullmatch(r"runs/\d{8}-\d{6}", folders[0])
    given = run("make", "--dry-run", "train", "PYTHON=python3", "RUN=runs/long")
    assert re.findall(r"runs/[\w-]+", given) == ["runs/long", "runs/long"]


def test_nothing_is_left_to_fill_in():
    assert "<!-- fill" not in README


# The tables of options and of presets.


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


def value_of(text: str) -> object:
    """A default as the README writes it."""
    text = text.strip("` ")
    if text.startswith("by "):  # None, for what follows from another option
        return None
    words = {"None": None, "True": True, "False": False}
    return words[text] if text in words else int(text) if text.isdigit() else text.strip('"')


def test_options_are_those_of_rules():
    told = {}
    for names, defaults, _ in table("option", "default"):
        fields = re.findall(r"`(\w+)`", names)
        values = [value_of(default) for default in defaults.split(",")]
        told |= dict(zip(fields, values, strict=True))
    assert {name: repr(value) for name, value in told.items()} == {
        name: repr(value) for name, value in Rules().to_dict().items()
    }


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
