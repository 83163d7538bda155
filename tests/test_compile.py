"""Compiled and interpreted the same; and importing and compiling do no harm."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from numba.core import event

from pisti_env import compile

pytestmark = pytest.mark.compiled  # in one run; these set for themselves how they are compiled

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"

# Prints a hash of everything that shows in some deals under random rules.
PLAY = """
import hashlib
import random

import numpy as np
from places import ENCODINGS, choose, random_table

from pisti_env.vector import DealBatch

def digest_of(case):
    digest, rng = hashlib.sha256(), random.Random(case)
    env, places = random_table(rng, rewards=["difference", "terminal", "win"][case % 3])
    for _ in range(min(env.rules.num_plays, 24)):
        for agent in env.possible_agents[:3]:
            for encoding in ENCODINGS:
                for array in env.observe_as(agent, encoding).values():
                    digest.update(array.tobytes())
        digest.update(env.state().tobytes())
        digest.update(repr([env.view(None), env.score(), env.rewards, env.deals]).encode())
        card = choose(places, rng, 0.5)
        env.step(card)
        places.play(card)
    batch = DealBatch(3, env.rules, seed=case, observation="full")
    for _ in range(min(2 * env.rules.num_plays, 20)):
        rewards, ended = batch.step(batch.action_masks.argmax(axis=1))
        for array in (batch.observations, batch.states(), batch.final_scores, rewards, ended):
            digest.update(array.tobytes())
    return digest.hexdigest()

print(*[digest_of(case) for case in range(CASES)], sep="\\n")
"""

# Compiles a few functions only, which is quick, and shows that they work.
DEAL = """
import numpy as np
from pisti_env.rules import Rules
from pisti_env.tables import Tables

tables = Tables(Rules(), 1)
tables.reseed(1)
tables.start(np.zeros(1, np.int64))
print(tables.decks.tolist())
"""


def python(code, settings=None, command=(), **kwargs):
    """A process of its own; `settings` for its environment, None takes one away."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)])}
    for name, value in (settings or {}).items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = str(value)
    return subprocess.Popen(
        [*command, sys.executable, "-c", textwrap.dedent(code)],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


def output_of(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def run(code, settings=None, command=(), **kwargs):
    return output_of(python(code, settings, command, **kwargs))


def test_compiled_equals_interpreted():
    code = f"CASES = 12\n{PLAY}"
    both = [python(code, {"NUMBA_DISABLE_JIT": jit}) for jit in "01"]
    (compiled, _), (interpreted, warnings) = [output_of(process) for process in both]
    assert len(set(compiled.split())) == 12
    assert compiled == interpreted
    assert "Warning" not in warnings  # such as integers that wrap around


def test_an_edit_in_another_file_is_seen(tmp_path):
    """`play_and_observe`, in observation/write.py, is made of functions of game.py, too."""
    code = """
    import numpy as np
    from pisti_env.observation import encoder
    from pisti_env.rules import Rules
    from pisti_env.tables import Tables, ToPlay

    row = np.zeros(1, np.int64)
    tables, to_play = Tables(Rules(), 1), ToPlay(encoder("kinds", Rules()), 1)
    tables.start(row)
    tables.observe(to_play, row)
    to_play.actions[:] = to_play.masks.argmax(axis=1)
    tables.play_on(to_play)
    print(tables.games["num_plays"][0])
    """
    shutil.copytree(ROOT / "pisti_env", tmp_path / "pisti_env")
    settings = {"PYTHONPATH": tmp_path, "NUMBA_CACHE_DIR": tmp_path / "cache"}
    settings["NUMBA_DISABLE_JIT"] = None
    assert run(code, settings, cwd=tmp_path)[0].split() == ["1"]
    rules = tmp_path / "pisti_env" / "game.py"
    text = rules.read_text()
    assert text.count("game.num_plays += 1") == 1
    rules.write_text(text.replace("game.num_plays += 1", "game.num_plays += 2"))
    (tmp_path / "pisti_env" / ".#game.py").symlink_to("nowhere")  # as editors leave behind
    assert run(code, settings, cwd=tmp_path)[0].split() == ["2"]


# For when the tests run as root, who may write anywhere, and that right cannot be given up.
REFUSE_WRITING = """
import os, tempfile
import numba.core.caching

def refuse(*args, **kwargs):
    raise PermissionError(13, "Permission denied")

tempfile.TemporaryFile = os.makedirs = refuse
"""


def without_rights():
    """What to put before a command, and before its code, to write only where one may."""
    if os.geteuid() != 0:
        return (), ""
    modes_count = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    if shutil.which("setpriv") and subprocess.run([*modes_count, "true"]).returncode == 0:
        return modes_count, ""
    return (), REFUSE_WRITING


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users here")
def test_nowhere_to_write():
    """A package that others own and no home: it works, with one warning that says what to do."""
    folder = Path(tempfile.mkdtemp())  # others may not look into pytest's own folder
    try:
        package = folder / "pisti_env"
        shutil.copytree(ROOT / "pisti_env", package, ignore=shutil.ignore_patterns("__pycache__"))
        for path in [folder, package, *package.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        command, first = without_rights()
        settings = {
            "NUMBA_CACHE_DIR": None,
            "NUMBA_DISABLE_JIT": None,
            "HOME": folder / "home",
            "XDG_CACHE_HOME": None,
            "PYTHONPATH": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        code = f"{first}\nimport pisti_env; print(pisti_env.__file__)\n{DEAL}"
        out, err = run(code, settings, command, cwd="/")
        path, deck = out.splitlines()
        assert path.startswith(str(folder))
        assert deck == run(DEAL)[0].strip()
        assert err.count("Warning") == 1 and "NUMBA_CACHE_DIR" in err
        assert not list(folder.rglob("__pycache__")) and not (folder / "home").exists()
    finally:
        for path in [folder, folder / "pisti_env", *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(folder)


def test_two_processes_compile_at_once(tmp_path):
    settings = {"NUMBA_CACHE_DIR": tmp_path, "NUMBA_DISABLE_JIT": None}
    outputs = [output_of(process) for process in [python(DEAL, settings) for _ in range(2)]]
    # What they have left there is right.
    outputs.append(run(DEAL, settings))
    assert list(tmp_path.rglob("*.nbi"))
    assert len({out for out, _ in outputs}) == 1
    assert {err for _, err in outputs} == {""}


# A function of its own, which is compiled in a moment; whatever takes LONG is said.
KERNEL = """
import sys
import pisti_env.compile
pisti_env.compile.LONG = 0.0
from kernel import double
with pisti_env.compile.announce_compilation():
    print(double(21))
    print(double(21.0))
"""


@pytest.fixture
def kernel(tmp_path):
    """Runs KERNEL in a process, with a cache of its own; returns what that printed, the cache."""
    source = "from pisti_env.compile import compiled\n@compiled\ndef double(x):\n    return x + x\n"
    (tmp_path / "kernel.py").write_text(source)
    cache = tmp_path / "cache"
    cache.mkdir()

    def run_kernel(before="", command=()):
        settings = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]),
            "NUMBA_CACHE_DIR": cache,
            "NUMBA_DISABLE_JIT": None,
        }
        out, err = run(f"{textwrap.dedent(before)}\n{KERNEL}", settings, command)
        assert out.split() == ["42", "42.0"]
        return err

    return run_kernel, cache


SAID = "pisti_env: compiling the rules for this machine"


def test_compiling_is_said_once_and_not_of_what_is_cached(kernel):
    run_kernel, cache = kernel
    assert run_kernel().count(SAID) == 1  # of two signatures
    assert len(list(cache.rglob("*.nbc"))) == 2
    assert run_kernel() == ""


def test_nothing_is_said_of_what_is_quick(monkeypatch, capsys):
    """The limit is of the time that is spent on compiling."""
    monkeypatch.setattr(compile, "_said", False)
    for long, times in ((1000.0, 0), (0.0, 1)):
        monkeypatch.setattr(compile, "LONG", long)
        with compile.announce_compilation():
            for _ in range(2):
                with event.trigger_event("numba:compile"):
                    deadline = time.monotonic() + 10
                    while long == 0 and not compile._said and time.monotonic() < deadline:
                        time.sleep(0.01)
        assert capsys.readouterr().err.count(SAID) == times


def zero(path):
    path.write_bytes(bytes(path.stat().st_size))


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def fill(path):
    path.write_bytes(b"\x80\x04garbage" * 1000)


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("files", "damage"),
    [
        ("*.nbi", zero),
        ("*.nbi", truncate),
        ("*.nbi", lambda path: path.write_bytes(b"")),
        ("*.nbi", replace_by_folder),
        ("*.nbc", fill),
        ("*.nbc", truncate),
    ],
)
def test_a_damaged_cache_costs_time(files, damage, kernel):
    run_kernel, cache = kernel
    run_kernel()
    for path in list(cache.rglob(files)):
        damage(path)
    said = run_kernel()
    assert SAID in said
    if damage is not replace_by_folder:  # then the code is compiled anew, and kept
        assert said.count("Warning") == 1 and str(cache) in said and "Traceback" not in said
        assert run_kernel() == ""


def test_a_full_disk_costs_time(kernel):
    """No file may grow to what compiled code takes."""
    run_kernel, cache = kernel
    said = run_kernel(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        """
    )
    assert said.count("Warning") == 1 and str(cache) in said and SAID in said
    assert not list(cache.rglob("*.nbc"))
    assert "Warning" not in run_kernel()


def test_where_numba_has_other_names_nothing_is_cached(kernel):
    """An edit would go unseen otherwise."""
    run_kernel, cache = kernel
    said = run_kernel(
        """
        from numba.core import caching
        caching.IndexDataCacheFile.__init__ = lambda self, **names: None
        """
    )
    assert said.count("Warning") == 1 and "Numba" in said
    assert not list(cache.rglob("*.nb*"))


def test_importing_is_harmless():
    """No pictures, no compiling, no threads, no random state and no settings changed."""
    code = """
    import os, pickle, random, sys, threading, time
    import numpy as np
    import numba, gymnasium, pettingzoo
    def state():
        return pickle.dumps((random.getstate(), np.random.get_state())), dict(os.environ)
    before, threads, modules = state(), threading.active_count(), set(sys.modules)
    limit = numba.get_num_threads()
    options = np.get_printoptions()
    import pisti_env
    from pisti_env import pisti_v0
    import pisti_env.vector
    assert state() == before
    assert threading.active_count() == threads
    assert numba.get_num_threads() == limit
    assert np.get_printoptions() == options
    new = set(sys.modules) - modules
    assert not any(name.split(".")[0] in ("pygame", "matplotlib")
                   for name in sys.modules), sorted(sys.modules)
    from numba.core.registry import CPUDispatcher
    from pisti_env import loops, shuffle, tables
    from pisti_env.observation import write
    compiled = [f for module in (loops, write, shuffle, tables)
                for f in vars(module).values() if isinstance(f, CPUDispatcher)]
    assert not any(f.signatures for f in compiled)
    print(*{f.__name__ for f in compiled})
    env = pisti_v0.env()
    env.reset(seed=1)
    time.sleep(0.1)  # the thread that would have announced compiling is on its way out
    assert threading.active_count() == threads
    """
    out, err = run(code, {"NUMBA_DISABLE_JIT": None})
    assert set(out.split()) == {
        "choose_cards",
        "deal_rows",
        "encode_rows",
        "fill_numbers",
        "fill_numbers_at",
        "find_decided",
        "find_illegal",
        "mask_rows",
        "observe_rows",
        "pay_at_the_end",
        "play_and_observe",
        "play_rows",
        "random_dealers",
        "shuffle_rows",
    }
    assert "Warning" not in err


def test_drawing_needs_no_display():
    code = """
    from pisti_env import pisti_v0
    env = pisti_v0.env(render_mode="ansi")
    env.reset(seed=0)
    assert "Pişti" in env.render()
    """
    run(code, {"DISPLAY": None, "PYTHONIOENCODING": "utf-8"})


def test_spawned_workers_play():
    """The start method of two platforms; nothing may be done at import that a child repeats."""
    code = """
    import multiprocessing
    from places import ENCODINGS
    from pisti_env.vector import DealBatch

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            theirs = pool.apply(DealBatch.states, (DealBatch(2, seed=1),))
        assert theirs.tobytes() == DealBatch(2, seed=1).states().tobytes()
        print("same")
    """
    out, _ = run(code)
    assert out.strip() == "same"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_after_compiling_plays_on():
    """Compiled code that starts threads of its own would hang here."""
    code = """
    import os
    from pisti_env import pisti_v0
    from pisti_env.vector import DealBatch
    batch = DealBatch(64, seed=1)
    batch.step(batch.action_masks.argmax(axis=1))
    child = os.fork()
    batch.step(batch.action_masks.argmax(axis=1))
    if child == 0:
        os._exit(0 if batch.decks.any() else 1)
    _, status = os.waitpid(child, 0)
    print(status)
    """
    out, _ = run(code)
    assert out.strip() == "0"


def test_torch_is_not_needed():
    """Everything but `training` works where it is not installed."""
    code = """
    import sys
    class Refuse:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("torch", "tensorboard", "pygame", "tyro", "ray", "pyspiel"):
                raise ImportError(name + " is not there")
    sys.meta_path.insert(0, Refuse())
    import pisti_env, pkgutil, importlib
    for module in pkgutil.walk_packages(pisti_env.__path__, "pisti_env."):
        if not module.name.endswith(("__main__", ".openspiel")):
            importlib.import_module(module.name)
    """ + DEAL.replace("\n", "\n    ")
    run(code)
