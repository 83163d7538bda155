"""Runs: they can be stopped and resumed anywhere, and nothing in their folders is believed."""

import bisect
import dataclasses
import errno
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")
pytest.importorskip("tyro")

from safetensors.numpy import load_file  # noqa: E402
from small_runs import (  # noqa: E402
    POOL,
    ROOT,
    TINY,
    new_run,
    refused,
    rows_of,
    run_for,
    same,
    selfplay_command,
    tensors_of,
    wait_for_updates,
)

from pisti_env import Rules  # noqa: E402
from pisti_env.agents import load, shipped_checkpoints  # noqa: E402
from pisti_env.agents.checkpoint import layout_of, make_checkpoint, read_checkpoint  # noqa: E402
from pisti_env.agents.policy import PolicyAgent  # noqa: E402
from pisti_env.rules import parse_rules  # noqa: E402
from pisti_env.vector import DealBatch  # noqa: E402
from training import opponents, runs, selfplay, state, threads  # noqa: E402
from training.network import Network, masked_log_probs  # noqa: E402
from training.selfplay import (  # noqa: E402
    Settings,
)
from training.settings import check_settings, read_settings  # noqa: E402

ONE_ROUND = "players=6,packs=1,ranks=5,copies=2,hand_size=1,target=9"


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def network_for(batch, hidden=(16,)):
    network = Network(batch.observations.shape[1], batch.action_masks.shape[1], hidden)
    network.initialise(generator())
    return network


# Runs.


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rules": "players=3,target=40"},
        {"rules": ONE_ROUND, "steps": 8 * 6 * 6},  # nothing to learn from in the first update
        POOL,
        {**POOL, "rules": "players=4,target=40"},
        {"all_seeing_critic": False, "rules": "players=3"},
        {"all_seeing_critic": False, "rules": "players=3,target=40"},
    ],
)
def test_stopped_and_resumed_equals_not_stopped(tmp_path, changes):
    settings = dataclasses.replace(TINY, **changes)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run_for(settings, whole)["update"] == 6
    assert run_for(settings, parts, updates=1)["update"] == 1
    assert run_for(settings, parts, updates=2)["update"] == 3
    assert run_for(settings, parts)["update"] == 6
    assert same(tensors_of(whole), tensors_of(parts))
    assert same(tensors_of(whole, "policy"), tensors_of(parts, "policy"))
    assert rows_of(whole) == rows_of(parts)
    assert [row["update"] for row in rows_of(parts)] == list("123456")


def test_a_run_starts_from_the_network_of_another(tmp_path, monkeypatch):
    first, second, rest = tmp_path / "first", tmp_path / "second", tmp_path / "rest"
    run_for(TINY, first)
    tiny = ["--num-tables", "8", "--hidden", "16", "--threads", "1", "--evaluate-every", "0"]

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["selfplay", *map(str, arguments), *tiny])
        selfplay.main()

    # With no steps that change anything, it is the same network, and its critic's.
    slow = ["--learning-rate", "1e-12", "--final-learning-rate", "1e-12", "--steps", 400]
    start("--start-from", first, "--run", second, *slow)
    before, after = tensors_of(first), tensors_of(second)
    names = [name for name in before if name.startswith("network.")]
    assert any(name.startswith("network.critic.") for name in names)
    assert all(np.allclose(before[name], after[name], atol=1e-6) for name in names)
    training = read_checkpoint(second / "policy.safetensors").metadata["training"]
    assert training["start_from"] == "first"
    assert read_settings(Settings, second, {}).start_from == first
    with pytest.raises(SystemExit, match=r"start-from is .* which has neither"):
        start("--start-from", tmp_path, "--run", rest)
    with pytest.raises(SystemExit, match="made for players=2 and cannot play players=3"):
        start("--start-from", first, "--run", rest, "--rules", "players=3")
    assert not rest.exists()


def test_a_killed_run_goes_on_from_its_last_save(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_for(TINY, whole)
    run_for(TINY, killed, updates=2)
    kept = [(killed / name).read_bytes() for name in ("state.safetensors", "policy.safetensors")]
    run_for(TINY, killed, updates=2)
    # As if killed while it noted the figures of update 5 and wrote its state.
    (killed / "state.safetensors").write_bytes(kept[0])
    (killed / "policy.safetensors").write_bytes(kept[1])
    (killed / "state.safetensors.123.tmp").write_bytes(kept[0][:1000])
    (killed / "notes.tmp").write_text("the user's own")
    with open(killed / "metrics.csv", "a", encoding="utf-8") as file:
        file.write("5,19")
    with runs.opened(TINY, killed, "test", ()):
        run_for(TINY, killed)
    assert same(tensors_of(whole), tensors_of(killed))
    assert rows_of(whole) == rows_of(killed)
    assert [path.name for path in killed.glob("*.tmp")] == ["notes.tmp"]


def test_same_seed_same_weights(tmp_path):
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    run_for(TINY, first, updates=2)
    run_for(TINY, again, updates=2)
    run_for(dataclasses.replace(TINY, seed=1), other, updates=2)
    assert same(tensors_of(first), tensors_of(again))
    assert not same(tensors_of(first), tensors_of(other))


@pytest.mark.parametrize(
    "rules",
    ["players=3", "players=4", "players=4,partners=false", "players=5", "players=6", "short"],
)
def test_every_number_of_players(tmp_path, rules):
    settings = dataclasses.replace(TINY, rules=rules, steps=1, evaluate_every=1, evaluation_decks=4)
    status = run_for(settings, tmp_path / "run")
    checkpoint = read_checkpoint(tmp_path / "run" / "policy.safetensors")
    assert checkpoint.rules == parse_rules(rules)
    assert checkpoint.metadata["strength"] == status["strength"]
    assert status["strength"]["opponent"] == "counting"
    assert checkpoint.metadata["training"]["plays"] == checkpoint.rules.num_plays * 8


def test_the_saved_policy_plays_as_the_network(tmp_path):
    run_for(TINY, tmp_path / "run", updates=3)
    agent = PolicyAgent(read_checkpoint(tmp_path / "run" / "policy.safetensors"))
    batch = DealBatch(300, seed=1)
    network = network_for(batch)
    state = tensors_of(tmp_path / "run")
    network.load_state_dict(
        {
            name.removeprefix("network."): torch.from_numpy(tensor)
            for name, tensor in state.items()
            if name.startswith("network.") and not name.startswith("network.critic.")
        }
    )
    for _ in range(10):
        actions = agent.act(batch.observations, batch.action_masks)
        with torch.no_grad():
            logits = network(torch.from_numpy(batch.observations))[0]
        assert np.allclose(agent.logits(batch.observations), logits, atol=1e-5)
        masks = torch.from_numpy(batch.action_masks).bool()
        best, second = masked_log_probs(logits, masks).topk(2).values.T
        chosen = masked_log_probs(logits, masks).argmax(1)
        assert ((chosen == torch.from_numpy(actions)) | (best - second < 1e-5)).all()
        batch.step(actions)


def test_policies_name_no_folder_of_the_machine(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    run_for(TINY, tmp_path / "first", updates=1)
    own = (tmp_path / "first" / "policy.safetensors").rename(folder / "own.safetensors")
    settings = dataclasses.replace(TINY, **POOL, pool_baselines=("counting", str(own)))
    run_for(settings, tmp_path / "run", updates=1)
    for path in (tmp_path / "run").rglob("*.safetensors"):
        assert str(tmp_path).encode() not in path.read_bytes()
    training = read_checkpoint(tmp_path / "run" / "policy.safetensors").metadata["training"]
    assert training["pool_baselines"] == ["counting", "own.safetensors"]


def test_settings_are_shown():
    text = subprocess.run(
        selfplay_command("--help"), cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for field in dataclasses.fields(Settings):
        assert re.search(rf"--{field.name.replace('_', '-')}[ ,]", text), field.name
    assert "Budget in plays" in text


def test_killed_and_terminated_processes_can_be_resumed(tmp_path):
    run = tmp_path / "run"
    command = selfplay_command(
        *("--run", run, "--num-tables", 64, "--hidden", 32, "--threads", 1, "--evaluate-every", 0),
        *("--minibatch-size", 500, "--save-seconds", 0, "--minutes", 5),
    )
    process = subprocess.Popen(command, cwd=ROOT)
    wait_for_updates(process, run, 3)
    process.kill()
    process.wait()
    read_checkpoint(run / "policy.safetensors")
    so_far = len(rows_of(run))

    process = subprocess.Popen(
        selfplay_command("--resume", run), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    wait_for_updates(process, run, so_far + 3)
    process.terminate()
    output = process.communicate()[0]
    assert process.returncode == 128 + signal.SIGTERM
    assert f"--resume {run}" in output.splitlines()[-1]
    read_checkpoint(run / "policy.safetensors")
    updates = [int(row["update"]) for row in rows_of(run)]
    assert updates == list(range(1, len(updates) + 1))


@pytest.mark.learning
@pytest.mark.compiled
def test_twenty_kills_change_nothing(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = dataclasses.replace(
        TINY, **POOL, rules="players=2,target=60", num_tables=4, hidden=(8,), steps=4 * 48 * 250
    )
    run_for(settings, whole)
    new_run(dataclasses.replace(settings, run=killed))
    command, rng = selfplay_command("--resume", killed), np.random.default_rng(0)
    for kill in range(20):
        so_far = len(rows_of(killed)) if kill else 0
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        # One in five while it starts, the others while it trains and saves.
        if kill % 5 == 4:
            time.sleep(rng.uniform(0, 2))
        else:
            wait_for_updates(process, killed, so_far + 1)
            time.sleep(rng.uniform(0, 0.1))
        assert process.poll() is None
        process.send_signal((signal.SIGKILL, signal.SIGTERM)[kill % 2])
        process.wait()
        for path in killed.rglob("*.safetensors"):
            load_file(path)
    subprocess.run(command, cwd=ROOT, check=True)
    assert not list(killed.rglob("*.tmp"))
    assert same(tensors_of(whole), tensors_of(killed))
    assert same(tensors_of(whole, "policy"), tensors_of(killed, "policy"))
    assert rows_of(whole) == rows_of(killed)


# Mistakes.


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--threads", 0], "threads is 0"),
        (["--threads", 100_000], "from 1 to 1024"),
        (["--minutes", -1], "minutes is -1"),
        (["--steps", 0], "steps is 0"),
        (["--steps", 5, "--minutes", 1], "both given"),
        (["--rules", "players=9"], "players is 9"),
        (["--rules", "bridge"], "rules preset is 'bridge'"),
        (["--observation", "faces"], "observation is 'faces'"),
        (["--rewards", "money"], "rewards is 'money'"),
        (["--device", "abacus"], "device is 'abacus'"),
        *(
            (["--device", name], f"device is '{name}'")
            for name in ("meta", "hpu", "mps", "cuda:99")
        ),
        (["--steps", "9" * 400], "steps is"),
        (["--start-from", "nobody"], "start-from is 'nobody'; expected the folder of a run"),
        (["--start-from", ROOT], "has neither state.safetensors nor policy.safetensors"),
        (["--start-from", "pisti-3p"], "was made for players=3"),
        (["--start-from", "pisti-2p", "--hidden", 8], "give --hidden "),
        (["--start-from", "pisti-2p", "--observation", "full"], "give --observation kinds"),
        (["--evaluation-decks", 0], "evaluation-decks is 0"),
        (["--evaluation-decks", 1], "evaluation-decks is 1"),
        (["--evaluation-decks", 10**9], f"evaluation-decks is {10**9}"),
        (["--evaluate-every", -1], "evaluate-every is -1"),
        (["--pool-share", 0.5, "--pool-baselines", "nobody"], "agent is 'nobody'"),
        (["--hidden", 4096, 4096], "hidden is (4096, 4096)"),
        (["--hidden", 10**7], "hidden is (10000000,)"),
        (["--num-tables", 10**18], f"{10**18}"),
        (["--seed", -1], "seed is -1"),
        (["--hidden", 0], "hidden is"),
        (["--learning-rate", "nan"], "learning-rate is nan"),
        (["--matmul-precision", "low"], "matmul-precision is 'low'; expected one of highest"),
    ],
)
def test_wrong_settings_are_refused(monkeypatch, tmp_path, arguments, reason):
    run = tmp_path / "run"
    assert reason in refused(monkeypatch, *arguments, "--run", run)
    assert not run.exists()


def test_matrices_are_multiplied_as_exactly_as_is_said():
    rules = parse_rules(TINY.rules)
    for precision in ("medium", "high", "highest"):
        settings = dataclasses.replace(TINY, matmul_precision=precision)
        selfplay.make_learner(settings, rules)
        assert torch.get_float32_matmul_precision() == precision


def test_tables_that_do_not_fit_in_memory(monkeypatch, tmp_path):
    def full(*args, **fields):
        raise MemoryError

    monkeypatch.setattr(selfplay, "DealBatch", full)
    run = tmp_path / "run"
    text = refused(monkeypatch, "--num-tables", 10**6, "--run", run)
    assert "1000000 tables" in text and "MemoryError" in text
    assert not run.exists()


def test_the_largest_network_that_is_trained_can_be_read(tmp_path):
    def accepted(width):
        try:
            check_settings(dataclasses.replace(TINY, hidden=(width,)))
        except ValueError:
            return False
        return True

    width = bisect.bisect(range(10**6), False, key=lambda width: width > 0 and not accepted(width))
    width -= 1
    assert accepted(width) and not accepted(width + 1)
    settings = dataclasses.replace(TINY, hidden=(width,), pool_baselines=("greedy",) * 100)
    batch = DealBatch(1)
    status = {"update": 0, "plays": 0, "seconds": 0.0, "strength": None, "revision": "x" * 50}
    checkpoint = state.policy_of(network_for(batch, (width,)), batch.rules, settings, status)
    state.write_checkpoint(tmp_path / "policy.safetensors", checkpoint)
    read_checkpoint(tmp_path / "policy.safetensors")


@pytest.mark.parametrize("minibatch_size", [100, 10**6])
@pytest.mark.parametrize("learning_rate", [1e10, 1e38])
def test_a_run_whose_numbers_overflow_stops(monkeypatch, tmp_path, learning_rate, minibatch_size):
    run = tmp_path / "run"
    settings = dataclasses.replace(TINY, run=run, minibatch_size=minibatch_size, epochs=1)
    new_run(dataclasses.replace(settings, learning_rate=learning_rate))
    text = refused(monkeypatch, "--resume", run)
    assert "update 1" in text and f"learning rate of {learning_rate:g}" in text
    assert tensors_of(run)["network.head.bias"].max() == 0  # as it was at first
    read_checkpoint(run / "policy.safetensors")
    assert not rows_of(run)


def test_nothing_is_left_of_a_run_that_could_not_be_made(monkeypatch, tmp_path):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refused(monkeypatch, "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_runs_do_not_share_a_folder(monkeypatch, tmp_path):
    run = tmp_path / "run"
    new_run(dataclasses.replace(TINY, run=run))
    assert "exists" in refused(monkeypatch, "--run", run)
    with runs.locked(run):
        assert "another process" in refused(monkeypatch, "--resume", run)


def test_what_cannot_be_resumed(monkeypatch, tmp_path):
    assert "nothing to resume" in refused(monkeypatch, "--resume", tmp_path / "none")
    assert "--start-from" in refused(monkeypatch, "--resume", __file__)
    run = tmp_path / "run"
    run_for(TINY, run, updates=1)
    assert "no others" in refused(monkeypatch, "--resume", run, "--seed", 3)
    for damage in (b"", b"no tensors at all", (run / "policy.safetensors").read_bytes()):
        (run / "state.safetensors").write_bytes(damage)
        assert "cannot be used" in refused(monkeypatch, "--resume", run)
    (run / "settings.json").write_text('{"seed": 1}')
    assert "settings.json" in refused(monkeypatch, "--resume", run)


def test_a_full_disk_keeps_the_last_save(monkeypatch, tmp_path):
    run = tmp_path / "run"
    run_for(TINY, run, updates=2)
    kept = {name: tensors_of(run, name) for name in ("state", "policy")}

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert "No space left on device" in refused(patch, "--resume", run)
    assert not list(run.glob("*.tmp"))
    for name, tensors in kept.items():
        assert same(tensors, tensors_of(run, name))
    run_for(TINY, run)


# Going on, and beginning with what was learned before.


def test_a_trained_policy_is_not_overwritten_by_one_that_has_learned_less(monkeypatch, tmp_path):
    run = tmp_path / "run"
    run_for(TINY, run, updates=2)
    behind = (run / "state.safetensors").read_bytes()
    run_for(TINY, run, updates=2)
    (run / "state.safetensors").write_bytes(behind)
    before = contents(run)
    assert "4 updates and state.safetensors from 2" in refused(monkeypatch, "--resume", run)
    (run / "state.safetensors").unlink()
    del before[Path("state.safetensors")]
    assert f"--start-from {run}" in refused(monkeypatch, "--resume", run)
    assert contents(run) == before
    (run / "policy.safetensors").unlink()
    assert "has metrics.csv and no state" in refused(monkeypatch, "--resume", run)


def trained(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["selfplay", *map(str, arguments)])
    selfplay.main()


def test_a_run_goes_on_with_a_greater_budget(monkeypatch, tmp_path, capsys):
    run, plays = tmp_path / "run", 8 * 48
    run_for(dataclasses.replace(TINY, steps=2 * plays), run)
    before = contents(run)
    trained(monkeypatch, "--resume", run)
    assert "has used up its budget of 768 plays" in capsys.readouterr().err
    assert contents(run) == before
    trained(monkeypatch, "--resume", run, "--steps", 4 * plays)
    assert [row["update"] for row in rows_of(run)] == list("1234")
    trained(monkeypatch, "--resume", run)  # its budget is the new one now
    assert "budget of 1,536 plays" in capsys.readouterr().err
    assert "steps or minutes" in refused(monkeypatch, "--resume", run, "--epochs", 3)
    assert "both given" in refused(monkeypatch, "--resume", run, "--steps", 9, "--minutes", 9)


@pytest.mark.parametrize("source", ["name", "file", "folder"])
def test_training_begins_with_a_policy(monkeypatch, tmp_path, source):
    shipped = shipped_checkpoints()["pisti-2p"]
    (tmp_path / "old").mkdir()
    shutil.copy(shipped, tmp_path / "old" / "policy.safetensors")
    start_from = {"name": "pisti-2p", "file": shipped, "folder": tmp_path / "old"}[source]
    policy, settings = (
        read_checkpoint(shipped),
        dataclasses.replace(TINY, start_from=Path(start_from)),
    )
    settings = dataclasses.replace(settings, hidden=policy.sizes[1:-1])
    learner = selfplay.make_learner(settings, policy.rules)
    critic = [parameter.clone() for parameter in learner.network.critic.parameters()]
    state.start_from(settings.start_from, settings, learner)
    status = {"update": 0, "plays": 0, "seconds": 0.0, "strength": None, "revision": None}
    begun = state.policy_of(learner.network, policy.rules, settings, status)
    for ours, theirs in zip(
        begun.weights + begun.biases, policy.weights + policy.biases, strict=True
    ):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(begun.value[0], policy.value[0])
    after = learner.network.critic.parameters()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(critic, after, strict=True))


def test_a_runs_folder_is_an_agent(tmp_path):
    run_for(TINY, tmp_path / "run", updates=1)
    assert load(tmp_path / "run").rules == parse_rules(TINY.rules)


# What the system and others do.


@pytest.mark.parametrize(
    "name", ["EBADF", "ENOSYS", "ENOLCK", "EOPNOTSUPP", "EWOULDBLOCK", "EACCES"]
)
def test_a_lock_that_the_system_cannot_give_is_a_warning(monkeypatch, tmp_path, capsys, name):
    fcntl = pytest.importorskip("fcntl")
    new_run(dataclasses.replace(TINY, run=tmp_path / "run"))

    def flock(file, operation):
        raise OSError(getattr(errno, name), "said the system")

    monkeypatch.setattr(fcntl, "flock", flock)
    if name in ("EWOULDBLOCK", "EACCES"):
        with pytest.raises(ValueError, match="by another process"), runs.locked(tmp_path / "run"):
            raise AssertionError
    else:
        with runs.locked(tmp_path / "run"):
            assert "cannot be locked (said the system)" in capsys.readouterr().err


def test_no_folder_is_left_of_a_run_that_could_not_begin(monkeypatch, tmp_path):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "save", full)
    assert "No space" in refused(monkeypatch, "--run", tmp_path / "run", "--threads", 1)
    assert not (tmp_path / "run").exists()


def test_a_program_without_standard_error_trains(tmp_path):
    command = selfplay_command(
        *("--run", tmp_path / "run", "--num-tables", 8, "--hidden", 16, "--steps", 800),
        *("--threads", 1, "--evaluate-every", 1, "--evaluation-decks", 2),
    )
    closed = ["bash", "-c", '"$@" 1>&- 2>&-', "bash", *command]
    assert subprocess.run(closed, cwd=ROOT).returncode == 0
    assert [row["update"] for row in rows_of(tmp_path / "run")] == list("123")


class Failing:
    observation, rules = "kinds", parse_rules("standard")

    def __init__(self, plays):
        self.plays = plays

    def act(self, observation, action_mask, seeds=None):
        self.plays -= 1
        if self.plays < 0:
            raise KeyError("mood")
        return action_mask.argmax(axis=1)


def test_an_opponent_that_fails_leaves_the_run_whole(monkeypatch, tmp_path):
    run = tmp_path / "run"
    settings = dataclasses.replace(TINY, **POOL, run=run)
    run_for(settings, run, updates=2)
    before = contents(run)
    monkeypatch.setattr(opponents, "load", lambda name, rules: Failing(60))
    assert "an agent of the pool failed" in refused(monkeypatch, "--resume", run)
    assert state.read_state(run / "state.safetensors")[0]["update"] >= 2
    read_checkpoint(run / "policy.safetensors")
    assert set(before) <= set(contents(run))
    monkeypatch.undo()
    assert run_for(settings, run)["update"] == 6


def test_the_fastest_number_of_threads_is_found(monkeypatch, capsys):
    seconds, clock = {1: 4.0, 2: 2.0, 4: 1.9, 8: 5.0}, [0.0]
    monkeypatch.setattr(threads, "numbers_of_threads", lambda: list(seconds))
    monkeypatch.setattr(
        threads.Threads, "_measure", lambda self, near: {n: seconds[n] for n in near}
    )
    monkeypatch.setattr(threads.time, "monotonic", lambda: clock[0])
    chosen = threads.Threads(TINY, parse_rules(TINY.rules))
    assert chosen.number == 2  # four are not faster by a twentieth
    assert "2 threads are fastest" in capsys.readouterr().err
    seconds[2] = seconds[4] = 40.0  # other programs come
    clock[0] += 1
    chosen.after_update(1.0)
    assert chosen.number == 2  # too soon
    clock[0] += 5
    chosen.after_update(1.5)
    assert (chosen.number, torch.get_num_threads()) == (1, 1)
    assert "1 thread is fastest" in capsys.readouterr().err
    seconds[2] = 1.0  # and go
    clock[0] += 100
    chosen.after_update(1.5)
    assert chosen.number == 2


def test_a_budget_in_steps_keeps_the_threads_it_began_with(monkeypatch, tmp_path):
    numbers = iter([1, 2])
    monkeypatch.setattr(
        selfplay.Threads, "try_numbers", lambda self: setattr(self, "number", next(numbers))
    )
    run = tmp_path / "run"
    trained(
        monkeypatch,
        "--run",
        run,
        "--num-tables",
        8,
        "--hidden",
        16,
        "--steps",
        384,
        "--evaluate-every",
        0,
    )
    assert json.loads((run / "settings.json").read_text())["threads"] == 1
    trained(monkeypatch, "--resume", run, "--steps", 768)
    assert json.loads((run / "settings.json").read_text())["threads"] == 1


# Damaged runs.


def signed(folder, arrays, status):
    """Write a state whose checksum is right, whatever it says."""
    header = state.header_of(arrays, status)
    (folder / "state.safetensors").write_bytes(state.pack(arrays, header))


def changed(array, number):
    """The array with another first number."""
    array = array.copy()
    array.flat[0] = number
    return array


def damaged_states(status, arrays):
    """Words that are expected, status and arrays of states in which one thing is wrong."""
    rng = random.Random(0)
    ours = sorted(name for name in arrays if not name.startswith("tables."))
    for name in rng.sample(ours, 25):
        array, field = arrays[name], repr(name)
        yield field, status, {n: a for n, a in arrays.items() if n != name}
        yield field, status, arrays | {name: np.ones(1, np.float32)[:, None, None]}
        yield field, status, arrays | {name: array.astype(np.float64)}
        if array.dtype == np.float32:
            yield field, status, arrays | {name: changed(array, rng.choice([np.nan, np.inf]))}
    for name in (n for n in ours if n.endswith((".step", ".exp_avg_sq", ".goes_on", ".masks"))):
        yield repr(name), status, arrays | {name: changed(arrays[name], -1)}
    for action in (-1, 15, 2**62):
        name = "carried.actions"
        yield repr(name), status, arrays | {name: changed(arrays[name], action)}
    for name in (n for n in arrays if n.startswith("tables.")):
        field, array = name.removeprefix("tables."), arrays[name]
        yield field, status, {n: a for n, a in arrays.items() if n != name}
        yield field, status, arrays | {name: array[:-1]}
        yield field, status, arrays | {name: array.astype(np.int16)}
        if field in ("decks", "dealers", "match_points", "plays"):
            yield field, status, arrays | {name: changed(array, 111)}
    yield "'optimizer.nothing'", status, arrays | {"optimizer.nothing": np.ones(3)}
    for name, wrong in {
        "update": [-1, 1.0, "3", None, True, 2**70],
        "plays": [0, "many", None],
        "seconds": [-1.0, "1", None, []],
        "revision": [5, {}],
        "strength": [5, "strong"],
    }.items():
        for value in wrong:
            yield f"its {name} is", status | {name: value}, arrays
        yield f"no {name!r}", {n: v for n, v in status.items() if n != name}, arrays
    for word, strength in {
        "no 'opponent'": {},
        "no 'decks'": {"opponent": "counting"},
        "its opponent is 1": {"opponent": 1},
        "its low is": {"opponent": "a", "decks": 2, "points_a_deal": 1, "low": [], "high": 2},
    }.items():
        yield word, status | {"strength": strength}, arrays
    yield "'mood'", status | {"mood": "good"}, arrays
    yield "status", [], arrays


def damaged_settings(settings):
    """Words that are expected, and the bytes of settings in which one thing is wrong."""
    for name, value in settings.items():
        wrong = 5 if isinstance(value, (str, list)) else {"is": "wrong"}
        yield repr(name), json.dumps(settings | {name: wrong}).encode()
        yield repr(name), json.dumps({n: v for n, v in settings.items() if n != name}).encode()
    yield "'mood'", json.dumps(settings | {"mood": 1}).encode()
    for name, wrong in {
        "threads": 0, "hidden": [0], "pool_baselines": ["nobody"], "rules": "bridge",
        "num_tables": 10**400, "learning_rate": -1, "device": "abacus", "seed": -1, "clip": 10**400,
    }.items():  # fmt: skip
        word = "agent" if name == "pool_baselines" else name.replace("_", "-")
        yield word if name != "clip" else "clip", json.dumps(settings | {name: wrong}).encode()
    for data in (b"", b"{", b"[]", b"5", b"\xff\xfe", b"[" * 10**5, b" " * 2**21):
        yield "settings.json", data


def damaged_metrics(lines):
    """Words that are expected, and lines of metrics in which one thing is wrong."""
    first, *rows = lines
    yield "'update'", [first.removeprefix("update,"), *rows]
    yield "'entropy'", [first.replace("entropy,", "entropie,"), *rows]
    yield "line 2", [first, rows[0] + ",5", *rows[1:]]
    yield "line 3", [first, rows[0], rows[1][:10], *rows[2:]]
    yield "line 3: update", [first, rows[0], rows[0], *rows[1:]]
    for number, column in ((0, "update"), (1, "plays"), (4, "learning_rate"), (9, "approx_kl")):
        for wrong in ("x", "1.2.3", "--1"):
            row = rows[1].split(",")
            row[number] = wrong
            yield f"line 3: {column}", [first, rows[0], ",".join(row), *rows[2:]]
    yield "metrics.csv", ["\0" * 50, *rows]


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_damaged_runs_are_refused_and_left_as_they_are(monkeypatch, tmp_path):
    run = tmp_path / "run"
    settings = dataclasses.replace(TINY, **POOL, rules="players=3,target=40")
    run_for(settings, run, updates=4)
    status, arrays = state.read_state(run / "state.safetensors")
    whole, refusals = contents(run), 0

    def refuses(file, word=""):
        nonlocal refusals
        before = contents(run)
        text = refused(monkeypatch, "--resume", run)
        assert str(file) in text and word in text, (file, word, text)
        assert contents(run) == before, (file, word)
        for name, data in whole.items():
            if data is not None and before.get(name) != data:
                (run / name).unlink(missing_ok=True)
                (run / name).write_bytes(data)
        refusals += 1

    for word, other_status, other_arrays in damaged_states(status, arrays):
        signed(run, other_arrays, other_status)
        refuses("state.safetensors", word)
    rng = random.Random(1)
    data = whole[Path("state.safetensors")]
    for _ in range(60):
        bit = rng.randrange(8 * len(data))
        flipped = data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
        (run / "state.safetensors").write_bytes(flipped)
        refuses("state.safetensors")
    for length in (0, 7, 8, 100, len(data) - 1):
        (run / "state.safetensors").write_bytes(data[:length])
        refuses("state.safetensors")
    for word, text in damaged_settings(json.loads(whole[Path("settings.json")])):
        (run / "settings.json").write_bytes(text)
        refuses("settings.json" if word != "agent" else "", word)
    for word, lines in damaged_metrics(whole[Path("metrics.csv")].decode().split("\n")[:-1]):
        (run / "metrics.csv").write_text("\n".join([*lines, ""]))
        refuses("metrics.csv", word)
    for name in ("state.safetensors", "settings.json", "snapshots/00000002.safetensors"):
        (run / name).unlink()
        refuses(name)
    for name in (
        "state.safetensors", "settings.json", "versions.json", "metrics.csv", "policy.safetensors",
        "snapshots/00000002.safetensors",
    ):  # fmt: skip
        (run / name).unlink()
        os.mkfifo(run / name)
        refuses(name)
    assert refusals > 250
    assert contents(run) == whole
    assert run_for(settings, run, updates=1)["update"] == 5


@pytest.mark.compiled  # plays all matches of an evaluation
@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC])
def test_a_screen_that_takes_nothing_costs_no_training(tmp_path, monkeypatch, number):
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError(number, "the screen is gone")

    monkeypatch.setattr("sys.stdout", Broken())
    budget = runs.Budget(types.SimpleNamespace(minutes=1.0, steps=None))
    monkeypatch.setattr(runs, "REPORT_SECONDS", 0.0)
    budget.tell(5, "half way")
    policy = make_checkpoint([(np.zeros((15, layout_of("kinds", Rules())[-1][2])), np.zeros(15))])
    runs.finish(tmp_path, policy, ["numpy"], 5, budget, 0, deals=2)
    assert (tmp_path / runs.POLICY).is_file()
    results = json.loads((tmp_path / runs.RESULT).read_text(encoding="utf-8"))["results"]
    assert [result["agents"][1] for result in results] == ["random", "greedy"]


def test_a_librarys_run_without_what_it_saved_cannot_go_on(tmp_path):
    def refusal():
        with pytest.raises(ValueError) as refused:
            runs.read_result(tmp_path, "model.zip")
        return str(refused.value)

    assert "has no result.json" in refusal()
    (tmp_path / "result.json").write_text('{"steps": 5, "seconds": 1.5}')
    assert "has no model.zip" in refusal()
    (tmp_path / "model.zip").write_bytes(b"damaged")
    assert "has no 'illegal_actions'" in refusal()
    (tmp_path / "result.json").write_text('{"steps": "5", "seconds": 1, "illegal_actions": 0}')
    assert "'steps' in" in refusal() and "expected an int" in refusal()
    refused = pytest.raises(ValueError, match=r"model\.zip cannot be used.*KeyError")
    with refused, runs.going_on(tmp_path / "model.zip"):
        raise KeyError("weights")


def test_a_librarys_run_that_fails_leaves_a_folder_only_with_a_policy(tmp_path):
    settings = runs.LibrarySettings(run=tmp_path / "run")

    def fail(trained):
        with runs.new_run("test", (), settings) as folder:
            if trained:
                (folder / "policy.safetensors").touch()
            raise OSError("full")

    for trained in (False, True):
        with pytest.raises(OSError, match="full"):
            fail(trained)
        assert settings.run.exists() == trained
