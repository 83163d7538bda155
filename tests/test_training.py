"""Self-play: advantages, masks, and runs that can be stopped and resumed anywhere."""

import bisect
import csv
import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")
pytest.importorskip("tyro")

from safetensors.numpy import load_file  # noqa: E402

from pisti_env import Rules, pisti_v0  # noqa: E402
from pisti_env.agents.checkpoint import read_checkpoint  # noqa: E402
from pisti_env.agents.policy import PolicyAgent  # noqa: E402
from pisti_env.arena import evaluate  # noqa: E402
from pisti_env.cards import parse_card  # noqa: E402
from pisti_env.rules import parse_rules  # noqa: E402
from pisti_env.vector import DealBatch  # noqa: E402
from training import curve, runs, selfplay, state  # noqa: E402
from training.buffers import Buffers  # noqa: E402
from training.credit import seat_rewards  # noqa: E402
from training.critic import hidden_cards_of, observations_in  # noqa: E402
from training.network import Network, draw, entropy_of, masked_log_probs  # noqa: E402
from training.opponents import Opponents  # noqa: E402
from training.selfplay import (  # noqa: E402
    Settings,
    collect,
    gae,
    generators_of,
    learn,
)
from training.settings import check_settings  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")
TINY = Settings(
    num_tables=8,
    minibatch_size=100,
    hidden=(16,),
    steps=8 * 48 * 6,
    threads=1,
    evaluate_every=0,
    save_seconds=0,
)


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


# Advantages.


def test_rewards_between_own_decisions_of_three_seats():
    # Two rounds of three, led by seat 1: positions 0, 1, 2 are sides 1, 2, 0.
    sides = torch.tensor([[1], [2], [0]])
    plays = torch.tensor(
        [[-2, 4, -2], [0, 0, 0], [6, -3, -3], [0, 0, 0], [-5, -5, 10], [2, -1, -1]]
    )
    after, before = seat_rewards(plays[:, None].float(), sides)
    # Side 1 from play 0: 4 + 0 - 3; from play 3: 0 - 5 - 1. Side 2 from play 1: 0 - 3 + 0; from
    # play 4: 10 - 1. Side 0 from play 2: 6 + 0 - 5; from play 5: 2.
    assert after[..., 0].tolist() == [[1, -3, 1], [-6, 9, 2]]
    # Before their first decisions: nothing, play 0, plays 0 and 1.
    assert before[:, 0].tolist() == [0, -2, -2]


def test_advantages_of_three_seats_by_hand():
    rewards = torch.tensor([[1.0, -3, 1], [-6, 9, 2]])[..., None]
    values = torch.tensor([[1.0, 0, 2], [-2, 4, 1], [0, 0, 0]])[..., None]
    has_next = torch.tensor([1.0, 0])[:, None, None]
    advantages = gae(rewards, values, has_next, gae_lambda=0.5)
    # Last decisions: -6 - (-2) = -4, 9 - 4 = 5, 2 - 1 = 1. First ones: 1 - 2 - 1 = -2, -3 + 4 - 0
    # = 1, 1 + 1 - 2 = 0, each and half of what follows.
    assert advantages[..., 0].tolist() == [[-4, 3.5, 0.5], [-4, 5, 1]]


class Recording(DealBatch):
    """Remembers every play: observations, seats, rewards, whether the match ended."""

    def __init__(self, *args, **fields):
        self.record = []
        super().__init__(*args, **fields)

    def step(self, actions):
        before = self.observations.copy(), self.seats.copy()
        rewards, ended = super().step(actions)
        self.record.append((*before, rewards, ended))
        return rewards, ended


def returns_one_by_one(record, table, value_of, players, settings):
    """observation: return, of each decision at a table but the last round's, the plain way.

    A λ-return ends where its deal's learning does: at the last round of each deal.
    """
    plays_of = {seat: [] for seat in range(players)}
    for play, (observations, seats, _, _) in enumerate(record):
        plays_of[int(seats[table])].append((play, observations[table]))
    plays_per_deal = settings["plays_per_deal"]
    returns = {}
    for seat, plays in plays_of.items():
        side = settings["rules"].side(seat)
        following = 0.0
        for number in range(len(plays) - 2, -1, -1):
            (play, observation), (upcoming, after) = plays[number], plays[number + 1]
            reward, ended = 0.0, False
            for between in range(play, upcoming):
                if not ended:
                    reward += settings["scale"] * record[between][2][table, side]
                    ended = bool(record[between][3][table])
            last_of_update = (play + players) % plays_per_deal >= plays_per_deal - players
            if last_of_update:
                following = 0.0
            value = value_of(observation)
            goes_on = not ended
            delta = reward + goes_on * value_of(after) - value
            following = delta + settings["lambda"] * goes_on * following
            returns[observation.tobytes()] = following + value
    return returns


ONE_ROUND = "players=6,packs=1,ranks=5,copies=2,hand_size=1,target=9"


@pytest.mark.parametrize(
    "rules", ["players=2,target=25", "players=3,target=25", "players=4,target=25", ONE_ROUND]
)
def test_matches_are_learned_across_deals(rules):
    rules = parse_rules(rules)
    players = rules.players
    settings = dataclasses.replace(TINY, num_tables=6)
    batch = Recording(6, rules, seed=3)
    network, buffers = network_for(batch), Buffers(batch, CPU)
    with torch.no_grad():
        network.split_head(network.head.weight)[1].mul_(3)

    def value_of(observation):
        with torch.no_grad():
            return network(torch.from_numpy(observation)[None])[1].item()

    got = [{} for _ in range(6)]
    for update in range(1, 6):
        decisions = collect(network, batch, buffers, settings, 0, generators_of(3, update, CPU)[1])
        size = len(decisions["returns"])
        assert size == (rules.num_plays - players * (update == 1)) * 6
        for row in range(size):
            observation = observations_in(decisions["seen"][row], buffers.inputs).numpy().tobytes()
            assert observation not in got[row % 6]
            got[row % 6][observation] = decisions["returns"][row].item()
    assert any(ended.any() for _, _, _, ended in batch.record)
    assert any(
        not ended[table]
        for _, _, _, ended in batch.record[rules.num_plays - 1 :: rules.num_plays]
        for table in range(6)
    )
    for table in range(6):
        expected = returns_one_by_one(
            batch.record,
            table,
            value_of,
            players,
            {
                "rules": rules,
                "plays_per_deal": rules.num_plays,
                "scale": settings.reward_scale,
                "lambda": settings.gae_lambda,
            },
        )
        assert len(expected) == len(got[table])
        for observation, value in expected.items():
            assert got[table][observation] == pytest.approx(value, abs=1e-5)


def test_one_deal_is_learned_whole():
    rules, settings = Rules(players=3), dataclasses.replace(TINY, num_tables=2, gae_lambda=1.0)
    batch = DealBatch(2, rules, seed=0)
    network, buffers = network_for(batch), Buffers(batch, CPU)
    decisions = collect(network, batch, buffers, settings, 5, generator())
    # With λ = 1 a return is what the seat's side earns from its decision to the end. Replayed:
    batch.reset(seed=5)
    actions = decisions["actions"].view(-1, 2)
    assert len(actions) == rules.num_plays
    earned, sides = [], []
    for action in actions:
        sides.append(batch.seats % rules.sides)
        earned.append(batch.step(action.numpy())[0])
    for play in range(rules.num_plays):
        for table in range(2):
            to_come = sum(rewards[table, sides[play][table]] for rewards in earned[play:])
            result = decisions["returns"].view(-1, 2)[play, table].item()
            assert result == pytest.approx(settings.reward_scale * to_come, abs=1e-5)


def test_one_decision_can_be_learned_from():
    batch = DealBatch(1, Rules(ranks=2, copies=3, hand_size=1), seed=0)
    network, buffers = network_for(batch), Buffers(batch, CPU)
    optimizer = torch.optim.Adam(network.parameters())
    settings = dataclasses.replace(TINY, num_tables=1, pool_share=1.0, pool_baseline_share=1.0)
    opponents = Opponents(settings, batch.rules)
    d = collect(network, batch, buffers, settings, 0, generator(), opponents)
    assert len(d["advantages"]) == 1
    assert torch.isfinite(d["advantages"]).all()
    metrics = learn(network, optimizer, d, settings, 0.01, generator())
    assert all(np.isfinite(value) for value in metrics.values())
    assert all(torch.isfinite(parameter).all() for parameter in network.parameters())


# A critic that sees all cards.


@pytest.mark.parametrize("observation", ["kinds", "full"])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_critic_is_shown_what_was_hidden(players, observation):
    rules, rng = Rules(players=players), np.random.default_rng(players)
    env = pisti_v0.raw_env(rules=rules, observation=observation)
    env.reset(seed=players)
    size = env.action_space("player_0").n
    hands, seats = [], []  # of all seats, before each play; who plays
    while env.view(None).to_play is not None:
        seats.append(env.view(None).to_play)
        hands.append([env.observe(agent)["observation"][:size] for agent in env.possible_agents])
        env.step(rng.choice(env.infos[env.agent_selection]["action_mask"].nonzero()[0]))
    hands, packet = np.array(hands), players * rules.hand_size
    expected = []
    for play, seat in enumerate(seats):
        order = (seat + np.arange(players)) % players
        dealt = hands[packet * (play // packet + 1) :: packet, order]  # in packets to come
        pieces = [hands[play, order[1:]], *dealt[:1], dealt[1:].sum(0)]
        if len(dealt) == 0:
            pieces.insert(1, np.zeros((players, size)))
        expected.append(np.concatenate(pieces).ravel())
    own = torch.tensor(hands[np.arange(len(seats)), seats])[:, None]
    hidden = hidden_cards_of(own, players, rules.hand_size)[:, 0]
    np.testing.assert_allclose(hidden, expected, atol=1e-6)


def test_the_critic_gives_the_values_and_nothing_to_the_policy(tmp_path):
    rules, settings = Rules(players=3), TINY
    learner = selfplay.make_learner(settings, rules)
    network, buffers = learner.network, learner.buffers
    d = collect(network, learner.batch, buffers, settings, 1, generator())
    with torch.no_grad():
        observations = observations_in(d["seen"], network.num_inputs)
        assert torch.allclose(network.critic(d["seen"])[1], d["values"], atol=1e-6)
        assert not torch.allclose(network(observations)[1], d["values"], atol=1e-2)
    before = [parameter.clone() for parameter in network.critic.parameters()]
    learn(network, torch.optim.Adam(network.parameters()), d, settings, 0.01, generator())
    changed = [(a != b).any() for a, b in zip(before, network.critic.parameters(), strict=True)]
    assert all(changed)
    run_for(dataclasses.replace(settings, rules="players=3"), tmp_path / "run", updates=1)
    checkpoint = read_checkpoint(tmp_path / "run" / "policy.safetensors")
    assert checkpoint.sizes == (network.num_inputs, 16, 15)


# Masks.


def test_ratio_is_one_before_the_first_update():
    batch = DealBatch(16, "standard", seed=0)
    network, buffers = network_for(batch), Buffers(batch, CPU)
    d = collect(network, batch, buffers, TINY, 1, generator())
    log_probs = masked_log_probs(network(d["seen"])[0], d["masks"])
    ratio = (log_probs.gather(1, d["actions"][:, None])[:, 0] - d["log_probs"]).exp()
    assert torch.allclose(ratio, torch.ones(()), atol=1e-5)
    assert (d["masks"].gather(1, d["actions"][:, None]) == 1).all()


def test_illegal_logits_have_no_gradient():
    logits = torch.randn(64, 15, generator=generator(), requires_grad=True)
    masks = torch.rand(64, 15, generator=generator(1)) < 0.3
    masks[:, 7] = True
    log_probs = masked_log_probs(logits, masks)
    (log_probs[:, 7].sum() + entropy_of(log_probs).sum()).backward()
    assert (logits.grad[~masks] == 0).all()
    assert (logits.grad[masks] != 0).any()
    assert (log_probs.exp()[~masks] == 0).all()


def test_one_legal_action_has_no_entropy():
    masks = torch.zeros(1, 15, dtype=torch.bool)
    masks[0, 3] = True
    log_probs = masked_log_probs(torch.randn(1, 15, generator=generator()), masks)
    assert entropy_of(log_probs).item() == 0
    assert log_probs[0, 3].item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [0.0, 1e4])
def test_huge_logits_give_numbers(dtype, size):
    logits = (size * torch.randn(200, 15, generator=generator()).sign()).to(dtype)
    logits.requires_grad_()
    masks = torch.rand(200, 15, generator=generator(1)) < 0.3
    masks[:, 0] = True
    masks[:10] = False  # a seat that is not to act
    log_probs = masked_log_probs(logits, masks)
    (entropy_of(log_probs).sum() + log_probs[:, 0].sum()).backward()
    assert torch.isfinite(log_probs.exp()).all()
    assert torch.isfinite(entropy_of(log_probs)).all()
    assert torch.isfinite(logits.grad).all()


def test_a_million_draws_are_legal_and_as_likely_as_said():
    size = 1_000_000
    masks = torch.rand(1000, 15, generator=generator()) < 0.3
    masks[torch.arange(1000), torch.arange(1000) % 15] = True
    log_probs = masked_log_probs(3 * torch.randn(1000, 15, generator=generator(1)), masks)
    rows = torch.arange(size) % 1000
    uniform = torch.rand(size, generator=generator(2))
    uniform[:1000], uniform[1000:2000] = 0, 1 - 2**-24
    actions = draw(log_probs[rows], uniform)
    assert masks[rows, actions].all()
    # An action is drawn as often as the mean of its probabilities says, within 5 standard errors.
    expected = log_probs.exp().mean(0)
    seen = torch.bincount(actions, minlength=15) / size
    assert ((seen - expected).abs() < 5 * (expected / size).sqrt() + 1e-4).all()


# Learning.


class FixedDeck(DealBatch):
    """Deals one deck, and seat 1 leads in it."""

    def reset(self, seed=None, decks=None, dealers=None):
        deck = [parse_card(card) for card in self.deck]
        super().reset(seed, np.tile(deck, (self.num_envs, 1)), np.zeros(self.num_envs, np.int64))


class DenyPisti(FixedDeck):
    # Starters jacks, a 3 and an ace on top. The leader has an ace and a 2, the other a 2 and a 3.
    # When the leader's ace has taken the pile, its 2 is left: a 2 put down now is a pişti for it,
    # and a 3 is none and lets the other's 2 take the last two cards.
    deck = ("JC", "JD", "3D", "AC", "AD", "2C", "2D", "3C")


def test_denying_a_pisti_is_learned():
    rules = Rules(ranks=4, copies=2, hand_size=2)
    settings = dataclasses.replace(TINY, num_tables=64, minibatch_size=128)
    batch = DenyPisti(64, rules, seed=0)
    network, buffers = network_for(batch, (32,)), Buffers(batch, CPU)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, eps=1e-5)
    for update in range(50):
        d = collect(network, batch, buffers, settings, 0, generators_of(0, update, CPU)[1])
        learn(network, optimizer, d, settings, 0.01, generators_of(1, update, CPU)[1])
    batch.reset()
    ace, two, three = 0, 1, 2
    batch.step(np.full(64, ace))
    logits = network(torch.from_numpy(batch.observations))[0]
    masks = torch.from_numpy(batch.action_masks).bool()
    assert set(torch.nonzero(masks[0])[:, 0].tolist()) == {two, three}
    assert masked_log_probs(logits, masks).exp()[0, three] > 0.95


@pytest.mark.learning
@pytest.mark.compiled
def test_four_million_plays_beat_greedy(tmp_path):
    run = tmp_path / "run"
    command = selfplay_command(
        *("--steps", 4_000_000, "--threads", 1, "--evaluate-every", 0, "--run", run)
    )
    subprocess.run(command, cwd=ROOT, check=True)
    agent = PolicyAgent(read_checkpoint(run / "policy.safetensors"))
    assert evaluate([agent, "greedy"], deals=2000, match=False).results[0].low > 0


# Runs.


def new_run(settings):
    """Make the folder of a run and nothing in it but the settings."""
    return runs.make_folder(settings, "test", ())


def run_for(settings, folder, updates=None):
    """Train in `folder`, for all of the budget or until a signal after some updates."""
    caught, learned = [], selfplay.learn

    def learn_and_count(*args):
        metrics = learned(*args)
        nonlocal updates
        if updates is not None:
            updates -= 1
            if updates == 0:
                caught.append(signal.SIGTERM)
        return metrics

    if not folder.exists():
        new_run(dataclasses.replace(settings, run=folder))
    learner = selfplay.make_learner(settings, parse_rules(settings.rules))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selfplay, "learn", learn_and_count)
        return selfplay.train(settings, learner, folder, caught)


def tensors_of(folder, name="state"):
    return load_file(folder / f"{name}.safetensors")


def same(ours, theirs):
    assert set(ours) == set(theirs)
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


def rows_of(folder):
    with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    clock = {"seconds", "plays_per_second"}
    return [{name: text for name, text in row.items() if name not in clock} for row in rows]


POOL = {"pool_share": 0.5, "pool_size": 2, "snapshot_every": 2}


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
    assert runs.read_settings(Settings, second, {}).start_from == first
    with pytest.raises(SystemExit, match=r"cannot be started from"):
        start("--start-from", tmp_path, "--run", rest)
    with pytest.raises(SystemExit, match=r"hidden\.0\.weight has shape .* expected"):
        start("--start-from", first, "--run", rest, "--rules", "players=3")
    assert not rest.exists()


def test_a_killed_run_goes_on_from_its_last_save(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_for(TINY, whole)
    run_for(TINY, killed, updates=2)
    kept = (killed / "state.safetensors").read_bytes()
    run_for(TINY, killed, updates=2)
    # As if killed while it noted the figures of update 5 and wrote its state.
    (killed / "state.safetensors").write_bytes(kept)
    (killed / "state.safetensors.tmp").write_bytes(kept[:1000])
    with open(killed / "metrics.csv", "a", encoding="utf-8") as file:
        file.write("5,19")
    run_for(TINY, killed)
    assert same(tensors_of(whole), tensors_of(killed))
    assert rows_of(whole) == rows_of(killed)


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


def selfplay_command(*arguments):
    return [sys.executable, "-m", "training.selfplay", *map(str, arguments)]


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


def wait_for_updates(process, run, updates):
    deadline = time.monotonic() + 120
    while not (run / "metrics.csv").exists() or len(rows_of(run)) < updates:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


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


def refused(monkeypatch, *arguments):
    """Return the one line with which a command is refused."""
    monkeypatch.setattr(sys, "argv", ["selfplay", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        selfplay.main()
    assert stop.value.code not in (0, None)
    text = str(stop.value.code)
    assert "\n" not in text
    return text


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
        (["--device", "meta"], "device is 'meta'"),
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
    assert "nothing to resume" in refused(monkeypatch, "--resume", __file__)
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


def test_a_run_is_drawn(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    names = ("plays", "over_counting", "over_counting_low", "over_counting_high")
    rows = [",".join(names), "1000,,,", "2000,-1.5,-2,-1", "3000,0.5,0.25,0.75"]
    (run / "metrics.csv").write_text("\n".join(rows) + "\n")
    measured = curve.read_measurements(run)
    assert measured == [(2000, -1.5, -2.0, -1.0), (3000, 0.5, 0.25, 0.75)]
    curve.draw(measured, "a-policy", tmp_path / "a-policy.svg")
    assert "a-policy" in (tmp_path / "a-policy.svg").read_text()


@pytest.mark.parametrize(
    ("text", "words"), [(None, "has no metrics.csv"), ("plays,over_counting\n1,\n", "has no meas")]
)
def test_a_run_without_figures_is_not_drawn(text, words, tmp_path):
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        curve.read_measurements(tmp_path)
