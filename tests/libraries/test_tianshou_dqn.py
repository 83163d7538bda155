"""Tianshou: what its environments tell, what it learns, and what is exported."""

import json
import sys

import numpy as np
import pytest
import torch
from tianshou.data import Batch

from pisti_env import Rules
from pisti_env.agents.policy import PolicyAgent
from training import runs
from training import tianshou_dqn as script

TINY = script.Settings(minutes=5, steps=600, threads=1, num_envs=4, batch_size=32, hidden=(16, 8))


@pytest.mark.parametrize("rules", ["standard", "players=3", "players=4"])
def test_rewards_of_a_deal_are_its_score(rules):
    [env, *_] = script.make_envs(script.Settings(rules=rules, num_envs=1, reward_scale=0.5))
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=3)
    total, over = 0.0, False
    while not over:
        assert set(observation) == {"obs", "mask"} and observation["mask"].dtype == np.bool_
        observation, reward, over, truncated, _ = env.step(
            rng.choice(np.flatnonzero(observation["mask"]))
        )
        assert not truncated
        total += reward
    points = [side["points"] for side in env.unwrapped.score()]
    own = points.pop(env.unwrapped.seat % len(points))
    assert total == pytest.approx((own - np.mean(points)) / 2)


def test_the_exported_policy_is_the_library_s():
    envs = script.make_envs(TINY)
    algorithm, steps = script.train(TINY, envs, runs.Budget(TINY))
    assert steps > 0
    policy = PolicyAgent(runs.policy_of(algorithm.policy.model.modules(), TINY))
    assert policy.rules == Rules()
    shown = [env.reset(seed=seed)[0] for seed, env in enumerate(envs)]
    rows, masks = (np.stack([one[name] for one in shown]) for name in ("obs", "mask"))
    with torch.no_grad():
        values = algorithm.policy.model(rows)[0]
        chosen = algorithm.policy(Batch(obs=Batch(obs=rows, mask=masks), info=Batch())).act
    assert np.allclose(policy.logits(rows), values, atol=1e-5)
    assert np.array_equal(policy.act(rows, masks.astype(np.int8)), chosen)


def test_half_a_minute_beats_random_without_an_illegal_action(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["--minutes", "0.5", "--threads", "1", "--run", str(folder), "--deals", "1000"]
    monkeypatch.setattr(sys, "argv", ["tianshou_dqn", *arguments])
    script.main()
    result = json.loads((folder / "result.json").read_text())
    assert result["illegal_actions"] == 0 and result["steps"] > 1000
    assert result["results"][0]["results"][0]["low"] > 0
    assert "0 illegal actions" in capsys.readouterr().out
