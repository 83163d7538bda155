"""Self-play: advantages, masks, the critic that sees all cards, and learning."""

import dataclasses
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")
pytest.importorskip("tyro")

from small_runs import ROOT, TINY, run_for, selfplay_command  # noqa: E402

from pisti_env import Rules, pisti_v0  # noqa: E402
from pisti_env.agents.checkpoint import read_checkpoint  # noqa: E402
from pisti_env.agents.policy import PolicyAgent  # noqa: E402
from pisti_env.arena import evaluate  # noqa: E402
from pisti_env.cards import parse_card  # noqa: E402
from pisti_env.rules import parse_rules  # noqa: E402
from pisti_env.vector import DealBatch  # noqa: E402
from training import selfplay  # noqa: E402
from training.buffers import Buffers  # noqa: E402
from training.credit import seat_rewards  # noqa: E402
from training.critic import hidden_cards_of, observations_in  # noqa: E402
from training.network import Network, entropy_of, masked_log_probs, sample  # noqa: E402
from training.opponents import Opponents  # noqa: E402
from training.selfplay import (  # noqa: E402
    collect,
    gae,
    generators_of,
    learn,
)

CPU = torch.device("cpu")


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
    actions = sample(log_probs[rows], uniform)
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
