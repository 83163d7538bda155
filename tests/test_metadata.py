"""What the metadata says is so."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pisti_env

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements}


def imported_packages(folder: Path) -> set[str]:
    tops = set()
    for source in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                tops |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                tops.add(node.module.split(".")[0])
    return tops - sys.stdlib_module_names - {"pisti_env", "training"}


# Of the scripts for other libraries: the extra that brings a module, and the package there.
MODULES_OF = {
    "agilerl": ("agilerl", "agilerl"),
    "open_spiel": ("openspiel", "open-spiel"),
    "pyspiel": ("openspiel", "open-spiel"),
    "ray": ("rllib", "ray"),
    "sb3_contrib": ("sb3", "sb3-contrib"),
    "stable_baselines3": ("sb3", "stable-baselines3"),
    "tensordict": ("torchrl", "tensordict"),
    "tianshou": ("tianshou", "tianshou"),
    "torchrl": ("torchrl", "torchrl"),
}


def test_one_version_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    cited_date = re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)
    newest = re.search(r"^## \[(\d\S*)\] - (\S+)$", changelog, re.MULTILINE)
    assert cited and cited_date and newest
    assert pisti_env.__version__ == cited[1] == newest[1]
    assert cited_date[1] == newest[2]


@pytest.mark.parametrize("name", sorted(names(PROJECT["dependencies"])))
def test_dependencies_import(name):
    importlib.import_module(name)


def test_the_package_imports_what_it_declares():
    imported = imported_packages(ROOT / "pisti_env")
    # These two only in pisti_env.openspiel, and for `pisti evaluate --ray`.
    assert imported == names(PROJECT["dependencies"]) | {"pyspiel", "ray"}


def test_training_imports_what_it_declares():
    core = names(PROJECT["dependencies"])
    train = names(PROJECT["optional-dependencies"]["train"])
    assert imported_packages(ROOT / "training") <= core | train | set(MODULES_OF)


@pytest.mark.parametrize("module", MODULES_OF)
def test_libraries_are_declared(module):
    extra, package = MODULES_OF[module]
    assert package in names(PROJECT["optional-dependencies"][extra])


def test_pythons_that_are_allowed():
    versions = [
        found[1]
        for line in PROJECT["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    ]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    # README says the same, and which of them the tests run on.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {versions[0]} or newer" in readme
    [tested] = re.findall(r"^\| Python \| (.*) \|$", readme, re.MULTILINE)
    assert set(re.findall(r"3\.\d+", tested)) <= set(versions)


@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
def test_make_takes_the_python_that_it_is_told(tmp_path):
    """An environment with another Python is made anew; without PYTHON=... any is kept."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (tmp_path / ".venv" / "set-up").touch()
    # What `make test PYTHON=...` hands down to us is not meant for the make that is tested.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "PYTHON")}

    def anew(*arguments):
        command = ["make", "--dry-run", "setup", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return "rm -rf .venv" in done.stdout

    python.write_text("#!/bin/sh\necho another\n", encoding="utf-8")
    python.chmod(0o755)
    assert anew(f"PYTHON={sys.executable}")
    assert not anew()
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n", encoding="utf-8")
    assert not anew(f"PYTHON={sys.executable}")


def test_what_docs_tell_to_change_is_there():
    """Files, and names in them where a step says `file`: `name`, …"""
    text = (ROOT / "docs" / "changing.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`([\w/]+(?:\.py|\.md|/))`", text)) - {"checks.py", "game.py"}
    assert len(paths) > 20
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    tests = set(re.findall(r"`(test_\w+)`", text))
    assert [name for name in sorted(tests) if not (ROOT / "tests" / f"{name}.py").exists()] == []
    sources = "".join(
        source.read_text(encoding="utf-8")
        for folder in ("pisti_env", "training", "benchmarks", "tests")
        for source in (ROOT / folder).rglob("*.py")
    )
    examples = {"ace_pisti_bonus", "observation"}
    names = set(re.findall(r"`([a-z_]{6,}|[A-Z_]{4,})`", text)) - examples - tests
    assert [name for name in sorted(names) if name not in sources] == []
