"""Stable-Baselines3: what its environment hears, what it learns, and what is exported."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from pisti_env import Rules
from pisti_env.agents import load
from pisti_env.agents.policy import PolicyAgent
from pisti_env.single import PistiVectorEnv
from training import sb3_maskable_ppo as script

ROOT = Path(__file__).resolve().parents[2]
TINY = script.Settings(minutes=60, threads=1, num_envs=32, batch_size=128, hidden=(16, 8))


def tables(number, rules="standard", autoreset_mode=AutoresetMode.SAME_STEP):
    return PistiVectorEnv(number, "greedy", rules=rules, autoreset_mode=autoreset_mode)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["sb3_maskable_ppo", *map(str, arguments)])
    script.main()


@pytest.mark.parametrize("rules", [Rules(), Rules(players=3), Rules(players=4)])
def test_the_tables_are_those_of_gymnasium_and_rewards_are_whole(rules):
    envs = script.PistiVecEnv(tables(8, rules), reward_scale=0.5)
    same = tables(8, rules)
    envs.seed(4)
    assert np.array_equal(envs.reset(), same.reset(seed=4)[0])
    rng, total, played = np.random.default_rng(0), np.zeros(8), []
    decisions = rules.num_plays // rules.players
    for decision in range(decisions):
        masks = np.stack(envs.env_method("action_masks"))
        assert np.array_equal(masks, same.action_masks())
        actions = (masks * rng.random(masks.shape)).argmax(axis=1)
        observations, rewards, dones, infos = envs.step(actions)
        expected, points, ended, _, _ = same.step(actions)
        assert np.array_equal(observations, expected)
        assert rewards.dtype == np.float32 and np.allclose(rewards, points / 2)
        assert dones.tolist() == ended.tolist() == [decision == decisions - 1] * 8
        assert [("terminal_observation" in info) for info in infos] == dones.tolist()
        total += rewards
        played.append(actions)
    # What it heard in a whole deal is what the score says in the end.
    again = tables(8, rules, AutoresetMode.DISABLED)
    again.reset(seed=4)
    for actions in played:
        again.step(actions)
    for table in range(8):
        points = [side["points"] for side in again.score(table)]
        own = points.pop(again.seats[table] % rules.sides)
        assert total[table] == pytest.approx((own - np.mean(points)) / 2, abs=1e-5)


def test_the_exported_policy_is_the_library_s():
    envs = script.PistiVecEnv(tables(64))
    model = script.make_model(envs, TINY)
    model.learn(2 * 24 * 64, log_interval=None)
    policy = PolicyAgent(script.policy_of(model, TINY))
    observations = envs.reset()
    masks = np.stack(envs.env_method("action_masks"))
    with torch.no_grad():
        tensors = torch.from_numpy(observations)
        logits = model.policy.action_net(model.policy.mlp_extractor.forward_actor(tensors))
    assert np.allclose(policy.logits(observations), logits, atol=1e-5)
    expected = model.predict(observations, deterministic=True, action_masks=masks)[0]
    assert np.array_equal(policy.act(observations, masks.astype(np.int8)), expected)


def test_half_a_minute_beats_random_without_an_illegal_action(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "run"
    run(monkeypatch, "--minutes", 0.4, "--threads", 1, "--run", folder, "--deals", 1000)
    result = json.loads((folder / "result.json").read_text())
    assert result["illegal_actions"] == 0
    assert result["steps"] > 10_000
    random, greedy = (evaluation["results"][0] for evaluation in result["results"])
    assert (random["b"], greedy["b"]) == ("random", "greedy")
    assert random["low"] > 0
    assert "0 illegal actions" in capsys.readouterr().out
    assert load(folder / "policy.safetensors").rules == Rules()
    # A run goes on from where it was.
    run(monkeypatch, "--resume", folder, "--minutes", 0.5, "--deals", 100)
    assert json.loads((folder / "result.json").read_text())["steps"] > result["steps"]


def test_a_run_that_exists_is_not_overwritten(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="exists; name another"):
        run(monkeypatch, "--run", tmp_path)
    with pytest.raises(SystemExit, match=r"has no settings\.json"):
        run(monkeypatch, "--resume", tmp_path)
    with pytest.raises(SystemExit, match="bridge"):
        run(monkeypatch, "--run", tmp_path / "new", "--rules", "bridge")
    assert not (tmp_path / "new").exists()


def test_a_run_that_is_stopped_keeps_what_it_learned(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "training.sb3_maskable_ppo", "--threads", "1", "--run"]
    process = subprocess.Popen([*command, folder], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert " left" in process.stdout.readline()
    process.terminate()
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and f"--resume {folder} goes on" in printed
    assert load(folder / "policy.safetensors").rules == Rules()
    result = json.loads((folder / "result.json").read_text())
    assert result["results"] == [] and result["illegal_actions"] == 0
    assert (folder / "model.zip").is_file()


def test_what_would_never_end_is_refused(monkeypatch, tmp_path):
    for option in ("--batch-size", "--threads", "--num-envs"):
        with pytest.raises(SystemExit, match="is 0; expected an int of 1 or more"):
            run(monkeypatch, "--run", tmp_path / "run", option, 0)
    with pytest.raises(SystemExit, match="nobody"):
        run(monkeypatch, "--run", tmp_path / "run", "--baselines", "nobody")
    assert not (tmp_path / "run").exists()


def test_masks_are_asked_for():
    envs = script.PistiVecEnv(tables(4))
    assert envs.has_attr("action_masks") and not envs.has_attr("other")
    with pytest.raises(AttributeError, match="other"):
        envs.env_method("other")
