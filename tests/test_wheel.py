"""The wheel is complete, works on its own, and holds nothing else."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiled  # in one run: it is the same in all

ROOT = Path(__file__).resolve().parents[1]


def build(target: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the source distribution, as an index's users get it."""
    folder = tmp_path_factory.mktemp("build")
    with tarfile.open(build("sdist", ROOT, folder / "sdist")) as archive:
        archive.extractall(folder / "source", filter="data")
    [source] = (folder / "source").iterdir()
    return build("wheel", source, folder / "wheel")


def test_the_wheel_holds_the_package_and_the_checkpoints(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pisti_env").rglob("*.py")}
    policies = {
        f"pisti_env/checkpoints/{path.name}" for path in ROOT.glob("checkpoints/*.safetensors")
    }
    font = {f"pisti_env/render/Inter-{name}" for name in ("SemiBold.otf", "LICENSE.txt")}
    others = {"pisti_env/py.typed", "pisti_env/replay/page.html"}
    assert held == package | policies | font | others


def test_the_wheel_works_without_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    script = (
        "import sys, pisti_env; from pisti_env import pisti_v0; from pisti_env.agents import load\n"
        "assert pisti_env.__file__.startswith(sys.argv[1]), pisti_env.__file__\n"
        "pisti_v0.env().reset(seed=0)\n"
        "for name in sys.argv[2:]: load(name)\n"
    )
    shipped = [path.stem for path in ROOT.glob("checkpoints/*.safetensors")]
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "site"), "greedy", *shipped],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path / "site"),
            "NUMBA_DISABLE_JIT": "1",  # compiling it all again would show nothing more
        },
        check=True,
    )
