"""RLlib: what its environment tells, what it learns, a league, and a node that is lost."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import ray
import torch
from ray.cluster_utils import Cluster
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from pisti_env import Rules
from pisti_env.agents.policy import PolicyAgent
from pisti_env.single import PistiVectorEnv
from training import rllib_ppo as script
from training import runs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("rules", ["standard", "players=3", "players=4"])
def test_every_seat_hears_all_that_its_side_earns(rules):
    env = script.PistiMultiAgent({"rules": rules, "reward_scale": 0.5})
    rng = np.random.default_rng(1)
    observations, _ = env.reset(seed=2)
    total, over = dict.fromkeys(env.possible_agents, 0.0), False
    while not over:
        [(agent, shown)] = observations.items()
        assert env.observation_spaces[agent].contains(shown)
        action = rng.choice(np.flatnonzero(shown["action_mask"]))
        observations, rewards, terminations, truncations, _ = env.step({agent: action})
        over = terminations["__all__"]
        assert set(observations) == set(rewards) and not truncations["__all__"]
        for one, reward in rewards.items():
            total[one] += reward
    assert set(observations) == set(env.possible_agents)
    score = [side["points"] for side in env.table.score()]
    for seat, agent in enumerate(env.possible_agents):
        side = seat % len(score)
        margin = score[side] - np.mean(np.delete(score, side))
        assert total[agent] == pytest.approx(margin / 2)
    assert env.table.illegal_actions == 0


def test_the_same_seed_again_goes_on_to_other_decks():
    env = script.PistiMultiAgent({"rules": "standard", "reward_scale": 1.0})
    decks = []
    for _ in range(5):
        env.reset(seed=3)
        decks.append(tuple(env.table.deck))
    assert len(set(decks)) == 5
    same = script.PistiMultiAgent({"rules": "standard", "reward_scale": 1.0})
    same.reset(seed=3)
    assert tuple(same.table.deck) == decks[0]


def test_illegal_actions_have_no_probability_and_the_export_is_the_network():
    config = {"rules": "standard", "reward_scale": 1.0}
    env = script.PistiMultiAgent(config)
    module = script.MaskedPolicy(
        observation_space=env.observation_spaces["player_0"],
        action_space=env.action_spaces["player_0"],
        model_config={"hidden": (16, 8)},
    )
    [shown] = env.reset(seed=0)[0].values()
    waiting = {**shown, "action_mask": np.zeros_like(shown["action_mask"])}
    batch = {
        name: torch.from_numpy(np.stack([shown[name], waiting[name]]))
        for name in ("observation", "action_mask")
    }
    with torch.no_grad():
        masked = module._forward({Columns.OBS: batch})[Columns.ACTION_DIST_INPUTS]
        logits = module.policy_net(batch["observation"])[0].numpy()
    probabilities = masked.softmax(1)
    assert torch.isfinite(probabilities).all()
    assert (probabilities[0][shown["action_mask"] == 0] == 0).all()
    policy = PolicyAgent(runs.policy_of(module.policy_net, script.Settings()))
    assert policy.rules == Rules()
    assert np.allclose(policy.logits(shown["observation"][np.newaxis])[0], logits, atol=1e-5)


def test_a_league_seats_former_selves_in_every_second_episode():
    class Episode:
        def __init__(self, number):
            self.id_ = str(number)

    counts = {"alone": 0, "together": 0}
    seen = set()
    for number in range(400):
        seats = [
            script.seat_policy(f"player_{seat}", Episode(number), players=3, league=2)
            for seat in range(3)
        ]
        past = [name for name in seats if name != "main"]
        assert len(past) in (0, 2) and len(set(past)) <= 1
        seen |= set(past)
        counts["alone" if past else "together"] += 1
    assert seen == {"past_0", "past_1"} and min(counts.values()) > 150


def test_illegal_actions_end_their_episode_and_are_counted(monkeypatch):
    env = script.PistiMultiAgent({"rules": "standard", "reward_scale": 0.5})
    [(agent, shown)] = env.reset(seed=0)[0].items()
    observations, rewards, terminations, _, _ = env.step(
        {agent: int(shown["action_mask"].argmin())}
    )
    assert terminations["__all__"] and set(observations) == set(env.possible_agents)
    assert rewards[agent] == -env.table.most_to_lose / 2
    # RLlib adds the counts up, from before they could be lost with the runner.
    monkeypatch.setattr(script, "ILLEGAL", 0.0)
    config = script.make_config(script.Settings(num_envs_per_env_runner=1))
    runner = MultiAgentEnvRunner(config=config, worker_index=1)
    for _ in range(3):
        [episode] = runner.sample()
        assert episode.env_t < 48
        assert int(runner.get_metrics()[script.ILLEGAL_ACTIONS].peek()) == 1


def test_an_update_hardly_waits_for_lost_runners():
    config = script.make_config(script.Settings())
    assert config.restart_failed_env_runners
    assert config.env_runner_health_probe_timeout_s <= 1
    assert config.env_runner_restore_timeout_s <= 1


def test_an_update_without_runners_adds_nothing():
    assert script.total({}, "steps") == script.total({"env_runners": {}}, "steps") == 0
    assert script.total({"env_runners": {"steps": math.nan}}, "steps") == 0
    assert script.total({"env_runners": {"steps": 3.0}}, "steps") == 3


def refusal(monkeypatch, *arguments):
    """Return the one line with which the script ends, before it has made anything of its own."""
    monkeypatch.setattr(sys, "argv", ["rllib_ppo", *map(str, arguments)])
    monkeypatch.setattr(script, "make_config", lambda settings: pytest.fail("not refused"))
    with pytest.raises(SystemExit) as told:
        script.main()
    assert not ray.is_initialized()
    return told.value.code


def test_matches_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    told = refusal(monkeypatch, "--rules", "short", "--run", folder)
    assert told == (
        "training.rllib_ppo: target is 101; expected single deals, since RLlib would learn from "
        "too few long matches: add target=none to --rules"
    )
    assert not folder.exists()


def run(*arguments, **options):
    """Run the script as a user does."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}
    environment["RAY_worker_niceness"] = "0"  # or a busy machine takes minutes
    command = [sys.executable, "-m", "training.rllib_ppo", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, **options
    )


def test_a_minute_beats_random_without_an_illegal_action(tmp_path):
    folder = tmp_path / "run"
    one_runner = ["--num-env-runners", 0, "--deals", 1000]
    process = run("--minutes", 0.8, "--run", folder, *one_runner, "--threads", 1, "--league", 2)
    printed, _ = process.communicate(timeout=400)
    assert process.returncode == 0, printed
    result = json.loads((folder / "result.json").read_text())
    assert result["illegal_actions"] == 0 and result["steps"] > 1000
    assert result["results"][0]["results"][0]["low"] > 0
    assert "0 illegal actions" in printed
    # It goes on from RLlib's own checkpoint, and from its count of illegal actions.
    (folder / "result.json").write_text(json.dumps(result | {"illegal_actions": 7}))
    process = run("--resume", folder, "--minutes", 0.9, *one_runner)
    printed, _ = process.communicate(timeout=400)
    assert process.returncode == 0, printed
    resumed = json.loads((folder / "result.json").read_text())
    assert resumed["steps"] > result["steps"] and resumed["illegal_actions"] == 7


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster of one node with one core."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_cluster_with_too_few_cores_is_refused(cluster, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    asked = ("--num-env-runners", 2, "--num-learners", 1)
    told = refusal(monkeypatch, "--address", cluster.address, *asked, "--run", folder)
    assert told == (
        "training.rllib_ppo: 2 env runners and 1 learners ask for 3 CPUs, and the Ray cluster has "
        "1; join more nodes, or lower --num-env-runners or --num-learners"
    )
    assert not folder.exists()


def test_training_goes_on_when_a_node_is_lost(cluster, tmp_path):
    second = cluster.add_node(num_cpus=1)
    folder = tmp_path / "run"
    process = run(
        *("--address", cluster.address, "--num-env-runners", 2, "--minutes", 5),
        *("--run", folder, "--threads", 1),
    )
    assert process.stdout is not None
    lines, alone = [], []
    for line in process.stdout:
        lines.append(line)
        if "2 env runners" in line:
            cluster.remove_node(second, allow_graceful=False)
        elif "1 env runners" in line:
            alone.append(line)
            if len(alone) == 2:
                process.send_signal(signal.SIGINT)
    assert process.wait(timeout=400) == 0, "".join(lines)
    assert len(alone) >= 2, "".join(lines)
    result = json.loads((folder / "result.json").read_text())
    assert result["illegal_actions"] == 0 and result["steps"] > 0


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_rllib_counts_every_episode_of_an_environment_that_it_knows_by_name(mode):
    """Held against what the environment told it. Actions are random, so most episodes are short."""
    config = (
        PPOConfig()
        .environment("pisti_env:Pisti-v0", env_config={"opponent": "greedy"})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4, gym_env_vectorize_mode=mode)
        .debugging(seed=0, log_level="ERROR")
    )
    runner = SingleAgentEnvRunner(config=config)
    envs, told = runner.env.unwrapped, []

    def step(actions, step=envs.step):
        told.append(step(actions))
        return told[-1]

    envs.step = step
    assert isinstance(envs, PistiVectorEnv) == (mode == "vector_entry_point")
    episodes = runner.sample(num_timesteps=600, random_actions=True)
    ended = sum(int(terminated.sum()) for _, _, terminated, _, _ in told)
    assert ended > 100
    assert sum(episode.is_done for episode in episodes) == ended
    assert runner.get_metrics()["num_episodes"].peek() == ended
    paid = sum(rewards.sum() for _, rewards, *_ in told)
    assert sum(episode.get_return() for episode in episodes) == pytest.approx(paid)
