"""TorchRL: what its environment tells, advantages of each seat, and what is exported."""

import json
import sys

import numpy as np
import pytest
import torch
from torchrl.envs import ActionMask, TransformedEnv
from torchrl.envs.utils import check_env_specs

from pisti_env import Rules
from pisti_env.agents.policy import PolicyAgent
from pisti_env.rules import parse_rules
from pisti_env.vector import DealBatch
from training import runs
from training import torchrl_ppo as script
from training.credit import seat_rewards

TINY = script.Settings(
    minutes=5, steps=600, threads=1, num_tables=16, batch_size=64, hidden=(16, 8)
)


def tables(rules, scale=1.0, num_tables=5):
    return script.PistiTables(num_tables, rules, scale, seed=3)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torchrl_finds_the_environment_right():
    check_env_specs(TransformedEnv(tables(Rules(players=3)), ActionMask()))


@pytest.mark.parametrize("rules", ["standard", "players=3", "players=4"])
def test_a_seat_hears_all_that_its_side_earns(rules):
    rules = parse_rules(rules)
    env, same = tables(rules, 0.5), DealBatch(5, rules, seed=3)
    deals = TransformedEnv(env, ActionMask()).rollout(rules.num_plays)
    assert deals.batch_size == (5, rules.num_plays)
    assert deals["next", "done"][:, -1].all() and not deals["next", "done"][:, :-1].any()
    assert torch.allclose(deals["next", "reward"].sum(2), torch.zeros(()), atol=1e-5)
    sides = deals["side"][:, : rules.players, 0]
    rewards, before = seat_rewards(deals["next", "reward"].transpose(0, 1), sides.t())
    assert rewards.shape == (rules.num_plays // rules.players, rules.players, 5)
    for play in range(rules.num_plays):
        if play < rules.players:
            assert np.array_equal(same.seats % rules.sides, sides[:, play])
        same.step(deals["action"][:, play].numpy())
    for table in range(5):
        points = same.final_scores[table]
        for position in range(rules.players):
            side = int(sides[table, position])
            margin = (points[side] - np.delete(points, side).mean()) / 2
            heard = rewards[:, position, table].sum() + before[position, table]
            assert heard == pytest.approx(margin, abs=1e-4)


def test_advantages_with_a_long_horizon_are_what_is_to_come_less_the_value():
    env = tables(Rules(players=3))
    actor, critic = script.make_networks(env, TINY)
    deals = env.rollout(48, actor)
    script.add_advantages(deals, critic, 3, 1.0)
    by_play, sides = deals["next", "reward"].transpose(0, 1), deals["side"][:, :3, 0].t()
    to_come = seat_rewards(by_play, sides)[0].flip(0).cumsum(0).flip(0).permute(2, 0, 1)
    to_come = to_come.reshape(5, 48, 1)
    assert torch.allclose(deals["value_target"], to_come, atol=1e-4)
    with torch.no_grad():
        values = critic(deals)["state_value"]
    assert torch.allclose(deals["advantage"], to_come - values, atol=1e-4)


def test_the_exported_policy_is_the_library_s():
    env = tables(Rules(), num_tables=16)
    actor, steps = script.train(TINY, env, runs.Budget(TINY))
    assert steps > 0 and env.tables.illegal_actions == 0
    policy = PolicyAgent(runs.policy_of(actor.modules(), TINY))
    shown = env.reset()
    with torch.no_grad():
        logits = actor(shown.clone())["logits"].numpy()
    rows, masks = shown["observation"].numpy(), shown["action_mask"].numpy()
    # MaskedCategorical has put -inf where an action is illegal.
    assert np.allclose(policy.logits(rows)[masks], logits[masks], atol=1e-5)
    best = np.where(masks, logits, -np.inf).argmax(axis=1)
    assert np.array_equal(policy.act(rows, masks.astype(np.int8)), best)


def test_half_a_minute_beats_random_without_an_illegal_action(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["--minutes", "0.4", "--threads", "1", "--run", str(folder), "--deals", "1000"]
    monkeypatch.setattr(sys, "argv", ["torchrl_ppo", *arguments])
    script.main()
    result = json.loads((folder / "result.json").read_text())
    assert result["illegal_actions"] == 0 and result["steps"] > 1000
    assert result["results"][0]["results"][0]["low"] > 0
    assert "0 illegal actions" in capsys.readouterr().out


def test_matches_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["torchrl_ppo", "--rules", "target=101"])
    with pytest.raises(SystemExit, match="target is 101; expected single deals"):
        script.main()
