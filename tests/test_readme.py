"""The README's code runs, and the commands that it names exist.

A comment before a Python block, `<!-- in tests: 300 -> 2 -->`, makes its budget small.
"""

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

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
            assert re.search(rf"^{variable} \?=", makefile, re.MULTILINE)
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
