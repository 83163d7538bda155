"""AgileRL: what its environments tell, what it learns, and what is exported."""

import dataclasses
import json
import sys

import numpy as np
import pytest
import torch

from pisti_env import Rules
from pisti_env.agents.policy import PolicyAgent
from pisti_env.single import PistiVectorEnv
from training import agilerl_ppo as script
from training import runs

TINY = script.Settings(
    minutes=5,
    steps=600,
    threads=1,
    num_envs=16,
    batch_size=64,
    hidden=(16, 12, 8),
    opponents=("greedy",),
)


@pytest.mark.parametrize("rules", ["standard", "players=3", "players=4"])
def test_rewards_of_a_deal_are_its_score(rules):
    settings = script.Settings(rules=rules, num_envs=4, opponents=("greedy",), reward_scale=0.5)
    envs = script.make_envs(settings)
    rng, total, played = np.random.default_rng(0), np.zeros(4), []
    _, infos = envs.reset(seed=4)
    ended = np.zeros(4, bool)
    while not ended.any():
        masks = infos["action_mask"] != 0
        played.append((masks * rng.random(masks.shape)).argmax(axis=1))
        _, rewards, ended, _, infos = envs.step(played[-1])
        total += rewards
    assert ended.all()
    again = PistiVectorEnv(4, "greedy", rules=envs.unwrapped.rules)
    again.reset(seed=4)
    for actions in played:
        again.step(actions)
    for table in range(4):
        points = [side["points"] for side in again.score(table)]
        own = points.pop(again.seats[table] % len(points))
        assert total[table] == pytest.approx((own - np.mean(points)) / 2)


def test_the_last_reward_reaches_every_decision_of_its_deal():
    settings = dataclasses.replace(TINY, gae_lambda=1.0)
    envs = script.make_envs(settings)
    agent = script.make_agent(envs, settings)
    observations, infos = envs.reset(seed=0)
    moment = script.Moment(observations, infos["action_mask"], np.ones(16, bool))
    for _ in range(2):
        script.play(agent, envs, moment)
        assert moment.begins.all()
        buffer = agent.rollout_buffer.buffer
        rewards = buffer["rewards"].numpy().reshape(24, 16)
        to_come = rewards[::-1].cumsum(0)[::-1]
        assert np.allclose(buffer["returns"].numpy().reshape(24, 16), to_come, atol=1e-4)


def test_the_exported_policy_is_the_library_s():
    envs = script.make_envs(TINY)
    agent, steps = script.train(TINY, envs, runs.Budget(TINY))
    assert steps > 0
    policy = PolicyAgent(runs.policy_of(agent.actor.modules(), TINY))
    assert policy.rules == Rules()
    assert policy.checkpoint.sizes[1:] == (16, 12, 8, 15)
    rows, infos = envs.reset(seed=0)
    with torch.no_grad():
        latent = agent.actor.extract_features(torch.from_numpy(rows))
        logits = agent.actor.head_net.wrapped(latent)
    assert np.allclose(policy.logits(rows), logits, atol=1e-5)
    masked = np.where(infos["action_mask"] != 0, logits, -np.inf)
    assert np.array_equal(policy.act(rows, infos["action_mask"]), masked.argmax(axis=1))


def test_half_a_minute_beats_random_without_an_illegal_action(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["--minutes", "0.4", "--threads", "1", "--run", str(folder), "--deals", "1000"]
    monkeypatch.setattr(sys, "argv", ["agilerl_ppo", *arguments])
    script.main()
    result = json.loads((folder / "result.json").read_text())
    assert result["illegal_actions"] == 0 and result["steps"] > 1000
    assert result["results"][0]["results"][0]["low"] > 0
    assert "0 illegal actions" in capsys.readouterr().out
