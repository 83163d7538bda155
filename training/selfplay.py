"""Learn to play by self-play: PPO, one policy for all seats.

Each update plays one whole deal at every table, all of them in lockstep, and then learns from it.
The seats of a deal play in strict rotation: play t belongs to round t // players and to the seat at
position t % players, counted from the leader. So what belongs to decisions has, reshaped, the shape
(rounds, players, tables), and each of its columns is one seat's own trajectory.

A run lies in a folder: its settings, the policy, the state to go on from, and its figures as CSV
and for TensorBoard. Everything drawn is a function of the seed and of the number of the update, so
a run that was interrupted and resumed is the run that was not.
"""

# PPO: Schulman et al., "Proximal Policy Optimization Algorithms" (2017). Advantages: Schulman et
# al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2015). A critic
# that sees more than the policy: Pinto et al., "Asymmetric Actor Critic for Image-Based Robot
# Learning" (2017).

import contextlib
import csv
import dataclasses
import datetime
import importlib.metadata
import itertools
import json
import math
import platform
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import tyro
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import (
    HEADER_KEY,
    MAX_FILE_BYTES,
    Checkpoint,
    layout_of,
    make_checkpoint,
    pack,
    read_checkpoint,
    write_checkpoint,
    write_file,
)
from pisti_env.agents.hosting import Pool, ask_each
from pisti_env.agents.policy import PolicyAgent
from pisti_env.arena import MAX_DECKS, evaluate, revision
from pisti_env.observation import ENCODINGS, check_encoding
from pisti_env.rules import Rules, parse_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import REWARDS
from pisti_env.vector import DealBatch
from training.credit import seat_rewards
from training.network import Network, draw, entropy_of, masked_log_probs

DEFAULT_MINUTES = 5.0
MATMUL_PRECISIONS = ("highest", "high", "medium")  # those of PyTorch
MAX_THREADS = 1024  # far more end the process, without a word
SNAPSHOTS = "snapshots"
MEASURING_SEED = 1  # 0 is what published figures are measured with
MAX_HEADER_BYTES = 2**16  # of a policy's file; a few thousand are usual
MAX_LOGIT = (
    1e6  # far beyond any that is learned, and far less than what masks out an illegal action
)
POLICY, STATE, SETTINGS, VERSIONS = (
    "policy.safetensors",
    "state.safetensors",
    "settings.json",
    "versions.json",
)
METRICS = (
    "update",
    "plays",
    "seconds",
    "plays_per_second",
    "learning_rate",
    "entropy_coef",
    "entropy",
    "policy_loss",
    "value_loss",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "over_counting",
    "over_counting_low",
    "over_counting_high",
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run is made of."""

    rules: str = "standard"
    """The rules to learn: a preset and fields, as in istanbul,players=4."""
    steps: int | None = None
    """Budget in plays, rounded up to whole updates."""
    minutes: float | None = None
    """Budget in minutes; without it and without steps: 5."""
    run: Path | None = None
    """Folder of the run, which must not exist yet; default: runs/ and the time and the seed."""
    resume: Path | None = None
    """Folder of an interrupted run to go on with, under its own settings."""
    start_from: Path | None = None
    """Folder of another run, whose network to begin with instead of a random one: to learn on under
    other settings. Rules, observation, hidden layers and critic must be of the same sizes."""
    seed: int = 0
    """Decides all that is drawn. With steps and equal threads, two runs on a CPU are equal."""
    device: str = "cpu"
    """Where the network is: cpu, cuda, …"""
    threads: int = 2
    """Threads of the network. On a shared machine, the environment variable
    OMP_WAIT_POLICY=PASSIVE keeps idle ones from spinning."""
    matmul_precision: str = "highest"
    """How exact products of matrices are: highest, high or medium. Where the hardware has something
    for the lower ones (a CPU bfloat16 with AMX, a GPU TF32), they are faster."""
    observation: str = "kinds"
    """Encoding of what a seat sees."""
    rewards: str = "difference"
    """What is learned: difference of points as they come, terminal, or win."""
    num_tables: int = 1024
    """Tables played at once, a whole deal each per update."""
    minibatch_size: int = 3072
    """Decisions in a step of the optimizer."""
    all_seeing_critic: bool = True
    """Whether a network of its own, which sees all cards, estimates the values that a play's
    advantage is taken from. Only in training: the policy that is saved sees what a seat sees."""
    epochs: int = 2
    """How often an update learns from each decision."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers."""
    learning_rate: float = 1e-3
    """Adam's learning rate at the start."""
    final_learning_rate: float = 1e-5
    """Adam's learning rate when the budget is used up."""
    entropy_coef: float = 0.02
    """Weight of the entropy in the loss at the start."""
    final_entropy_coef: float = 0.002
    """Weight of the entropy when the budget is used up."""
    value_coef: float = 0.5
    """Weight of the value's loss."""
    clip: float = 0.2
    """How far from 1 a ratio of probabilities still counts."""
    max_grad_norm: float = 0.5
    """Longer gradients are shortened to this."""
    gae_lambda: float = 0.6
    """How fast an advantage stops looking ahead, in decisions of the same seat; 1: never."""
    reward_scale: float = 0.1
    """What a point counts for the network."""
    pool_share: float = 0.0
    """Share of the tables where the other sides are played by agents of a pool, not the policy."""
    pool_baselines: tuple[str, ...] = ("counting",)
    """Agents of the pool that stay: names as for pisti evaluate."""
    pool_baseline_share: float = 0.5
    """Share of the pool's tables that they play at; at the rest play snapshots of the policy."""
    pool_partner_share: float = 0.25
    """Share of the pool's tables where, if there are partners, the policy's is of the pool too."""
    pool_size: int = 8
    """How many snapshots there are, the newest ones."""
    snapshot_every: int = 50
    """Updates between snapshots."""
    evaluate_every: int = 25
    """Updates between measurements against counting; 0: never."""
    evaluation_decks: int = 500
    """Decks of a measurement, 2 or more, each played in all seatings."""
    save_seconds: float = 10.0
    """Seconds between saves; 0: after every update."""


def check_settings(settings: Settings) -> Rules:
    """Return the rules of the settings; raise `ValueError` for one that is wrong."""

    def check(name: str, fine: bool, expected: str) -> None:
        if not fine:
            value = getattr(settings, name)
            raise ValueError(f"{name.replace('_', '-')} is {value!r}; expected {expected}")

    for name in (
        "threads", "num_tables", "minibatch_size", "epochs", "pool_size", "snapshot_every",
    ):  # fmt: skip
        check(name, getattr(settings, name) >= 1, "an int of 1 or more")
    check("threads", settings.threads <= MAX_THREADS, f"an int from 1 to {MAX_THREADS}")
    check(
        "matmul_precision",
        settings.matmul_precision in MATMUL_PRECISIONS,
        f"one of {', '.join(MATMUL_PRECISIONS)}",
    )
    check("evaluate_every", settings.evaluate_every >= 0, "an int of 0 or more")
    check(
        "evaluation_decks",
        2 <= settings.evaluation_decks <= MAX_DECKS,
        f"an int from 2, since one deck has no interval, to {MAX_DECKS}",
    )
    for name in (
        "learning_rate", "final_learning_rate", "entropy_coef", "final_entropy_coef", "value_coef",
        "save_seconds",
    ):  # fmt: skip
        check(name, 0 <= getattr(settings, name) < math.inf, "a number of 0 or more")
    for name in ("clip", "max_grad_norm", "reward_scale"):
        check(name, 0 < getattr(settings, name) < math.inf, "a number above 0")
    for name in ("pool_share", "pool_baseline_share", "pool_partner_share"):
        check(name, 0 <= getattr(settings, name) <= 1, "a number from 0 to 1")
    check(
        "pool_baselines",
        bool(settings.pool_baselines) or settings.pool_baseline_share == 0,
        "an agent, or a pool-baseline-share of 0",
    )
    check("gae_lambda", 0 <= settings.gae_lambda <= 1, "a number from 0 to 1")
    check("hidden", min(settings.hidden, default=0) >= 1, "one or more ints above 0")
    check("rewards", settings.rewards in REWARDS, f"one of {', '.join(REWARDS)}")
    check("steps", settings.steps is None or settings.steps >= 1, "an int of 1 or more")
    check(
        "minutes", settings.minutes is None or 0 < settings.minutes < math.inf, "a number above 0"
    )
    if settings.steps is not None and settings.minutes is not None:
        raise ValueError("steps and minutes are both given; give one of them, the budget")
    check_seed(settings.seed)
    check_encoding(settings.observation)
    try:
        torch.zeros(1, device=settings.device).item()
    except (RuntimeError, AssertionError) as error:
        reason = first_line(error)
        raise ValueError(f"device is {settings.device!r}; PyTorch says: {reason}") from None
    rules = parse_rules(settings.rules)
    inputs = layout_of(settings.observation, rules)[-1][2]
    sizes = (inputs, *settings.hidden, ENCODINGS[settings.observation][0] + 1)
    size = 4 * sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(sizes))
    room = MAX_FILE_BYTES - MAX_HEADER_BYTES
    check("hidden", size <= room, f"a network of {room} bytes or less; this one has {size}")
    return rules


# Playing.


class Buffers:
    """What was seen and done in each play, `plays` of (plays, n, …). What was `seen` is the
    observation, and for an all-seeing critic behind it what was hidden.

    A match goes on after a deal, so the last round's advantages are known only in the next deal:
    there the buffers have room for one more round, the first, to carry the last one over.
    `carried_rewards` (players, n) and `carried_goes_on` (n,) are then what those seats have earned
    since, and 1.0 where the match goes on or 0.0; None before the first deal, and where a deal is
    all.
    """

    def __init__(self, batch: DealBatch, device: torch.device, all_seeing_critic: bool = False):
        rules = batch.rules
        tables, inputs = batch.observations.shape
        self.players = rules.players
        self.carried = 0 if rules.target is None else rules.players
        shape = (self.carried + rules.num_plays, tables)
        actions = batch.action_masks.shape[1]
        self.inputs = inputs
        hidden = (3 * rules.players - 1) * actions if all_seeing_critic else 0
        self.plays = {
            "seen": torch.zeros((*shape, inputs + hidden), device=device),
            "masks": torch.zeros((*shape, actions), device=device),
            "actions": torch.zeros(shape, dtype=torch.int64, device=device),
            "log_probs": torch.zeros(shape, device=device),
            "values": torch.zeros(shape, device=device),
            "own_play": torch.zeros(shape, dtype=torch.bool, device=device),
        }
        self.carried_rewards: Tensor | None = None
        self.carried_goes_on: Tensor | None = None

    def carry(self) -> None:
        """Move the last round to the first. The next seat deals, so the seat that was second to
        play leads now."""
        for buffer in self.plays.values():
            buffer[: self.carried] = buffer[-self.carried :].roll(-1, dims=0)


class Opponents:
    """Who plays where the policy does not: baselines, and snapshots of the policy's own past.

    Snapshots lie in the run's folder, so that a resumed run has the same.
    """

    def __init__(self, settings: Settings, rules: Rules):
        self._settings = settings
        self._folder = Path()
        self._baselines = [load(name, rules) for name in settings.pool_baselines]
        self._snapshots: dict[int, PolicyAgent] = {}

    def use_folder(self, folder: Path, update: int) -> None:
        """Keep snapshots in a run's folder, and take up those from before an update."""
        self._folder = folder / SNAPSHOTS
        self._folder.mkdir(exist_ok=True)
        for path in sorted(self._folder.glob("*.safetensors")):
            if int(path.stem) < update:
                self._take_up(int(path.stem), read_checkpoint(path))

    def add(self, update: int, checkpoint: Checkpoint) -> None:
        """Make a snapshot of the policy as it is before an update."""
        write_checkpoint(self._folder / f"{update:08}.safetensors", checkpoint)
        self._take_up(update, checkpoint)

    def _take_up(self, update: int, checkpoint: Checkpoint) -> None:
        self._snapshots[update] = PolicyAgent(checkpoint, sample=True)
        for old in sorted(self._snapshots)[: -self._settings.pool_size]:
            del self._snapshots[old]

    def seat(self, batch: DealBatch, generator: torch.Generator) -> tuple[Pool, np.ndarray]:
        """Draw who plays each seat for a deal: numbers (n, players) of agents of the pool, -1 where
        the policy plays. On the first tables it plays one side, or with partners one seat of it."""
        settings, rules = self._settings, batch.rules
        share = settings.pool_baseline_share
        weights: dict[Agent, float] = {}
        weights |= {agent: share / len(self._baselines) for agent in self._baselines}
        weights |= {agent: (1 - share) / len(self._snapshots) for agent in self._snapshots.values()}
        pool = Pool(weights)
        tables = round(settings.pool_share * batch.num_envs)
        drawn = torch.rand(3, tables, generator=generator, device=generator.device).cpu().numpy()
        agents = pool.draw(drawn[0])[:, np.newaxis]
        own_side = (drawn[1] * rules.sides).astype(np.int64)[:, np.newaxis]
        seats = np.arange(rules.players)
        others = seats % rules.sides != own_side
        if rules.pairs:
            partners = (seats >= rules.sides) & (drawn[2] < settings.pool_partner_share)[:, None]
            others |= partners
        who = np.full((batch.num_envs, rules.players), -1)
        who[:tables] = np.where(others, agents, -1)
        return pool, who


@torch.inference_mode()
def play_deal(
    network: Network,
    batch: DealBatch,
    buffers: Buffers,
    generator: torch.Generator,
    opponents: Opponents | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Play one deal at every table, and fill the buffers after what they carry.

    Returns every side's rewards (plays, n, sides), the side (players, n) of the seat at each
    position, and 1.0 where the match goes on or 0.0 (n,).
    """
    shape = (batch.rules.num_plays, batch.num_envs)
    uniform = torch.rand(shape, generator=generator, device=generator.device)
    if opponents is not None:
        pool, who = opponents.seat(batch, generator)
        seeds = torch.randint(2**62, shape, generator=generator, device=generator.device)
    tables = np.arange(batch.num_envs)
    plays = buffers.plays
    rewards: list[Tensor] = []
    sides: list[Tensor] = []
    for play, numbers in enumerate(uniform, buffers.carried):
        observations, masks = plays["seen"][play, :, : buffers.inputs], plays["masks"][play]
        observations.copy_(torch.from_numpy(batch.observations))
        masks.copy_(torch.from_numpy(batch.action_masks))
        if len(sides) < buffers.players:
            sides.append(torch.from_numpy(batch.seats.astype(np.int64) % batch.rules.sides))
        logits, values = network(observations)
        log_probs = masked_log_probs(logits, masks)
        actions = draw(log_probs, numbers)
        plays["actions"][play] = actions
        plays["log_probs"][play] = log_probs.gather(1, actions[:, None])[:, 0]
        plays["values"][play] = values
        chosen = actions.cpu().numpy()
        if opponents is None:
            plays["own_play"][play] = True
        else:
            agents = who[tables, batch.seats]
            plays["own_play"][play] = torch.from_numpy(agents < 0)
            decision = play - buffers.carried
            ask_each(pool.agents, batch, agents, chosen, seeds[decision].cpu().numpy())
        reward, ended = batch.step(chosen)
        rewards.append(torch.from_numpy(reward))
    goes_on = torch.from_numpy((~ended).astype(np.float32))
    device = uniform.device
    return torch.stack(rewards).to(device), torch.stack(sides).to(device), goes_on.to(device)


def hidden_cards_of(hands: Tensor, players: int, hand_size: int) -> Tensor:
    """Return what a seat could not see at each play of a deal, (plays, n, (3 * players - 1) * a).

    Takes the hand (plays, n, a) of who played, before each play. Every other seat's hand comes
    first, then what each seat is dealt in the next packet, and then in all later ones: always in
    the order of the seats, from the one that plays. None of it depends on the play.
    """
    packets = hands.view(-1, players * hand_size, *hands.shape[1:])
    plays = packets.shape[1]
    # Nobody draws before a packet is over, so who plays next holds now what it holds then.
    padded = torch.cat([packets, torch.zeros_like(packets[:, : players - 1])], 1)
    pieces = [padded[:, ahead : ahead + plays] for ahead in range(1, players)]
    dealt = packets[:, :players]
    in_next = torch.cat([dealt[1:], torch.zeros_like(dealt[:1])])
    in_later = dealt.flip(0).cumsum(0).flip(0) - dealt - in_next
    for cards in (in_next, in_later):
        pieces += [
            cards.roll(-ahead, 1).repeat(1, hand_size, *([1] * (cards.dim() - 2)))
            for ahead in range(players)
        ]
    return torch.cat(pieces, -1).flatten(0, 1)


@torch.inference_mode()
def value_all_cards(critic: Network, buffers: Buffers, rules: Rules) -> None:
    """Show the critic all cards of a deal that has been played, and put its values in the buffers
    in place of those of the policy's own network."""
    plays = {name: buffer[buffers.carried :] for name, buffer in buffers.plays.items()}
    hands = plays["seen"][..., : plays["masks"].shape[-1]]  # every encoding begins with the hand
    hidden_cards = hidden_cards_of(hands, rules.players, rules.hand_size)
    plays["seen"][..., buffers.inputs :] = hidden_cards
    for seen, values in zip(plays["seen"], plays["values"], strict=True):
        values.copy_(critic(seen)[1])


# Advantages.


def carry_over(
    buffers: Buffers, rewards_after: Tensor, rewards_before: Tensor, goes_on: Tensor
) -> tuple[Tensor, Tensor]:
    """Leave a deal's last round to the next deal, and take up the one that was left to this deal.

    Takes what `seat_rewards` and `play_deal` return; returns what `gae` takes, of the rounds whose
    next decision is known by now. A run's first deal has one round less, for none was left to it.
    """
    carried_rewards, carried_goes_on = buffers.carried_rewards, buffers.carried_goes_on
    buffers.carried_rewards, buffers.carried_goes_on = rewards_after[-1].roll(-1, dims=0), goes_on
    has_next = torch.ones_like(rewards_after[:, :1])
    if carried_rewards is None or carried_goes_on is None:
        return rewards_after[:-1], has_next[1:]
    has_next[0] = carried_goes_on
    first = carried_rewards + carried_goes_on * rewards_before
    return torch.cat([first[None], rewards_after[:-1]]), has_next


def gae(rewards: Tensor, values: Tensor, has_next: Tensor, gae_lambda: float) -> Tensor:
    """Return the advantage of every decision (rounds, players, n), undiscounted.

    Takes rewards (rounds, players, n) from a decision to the same seat's next, values (rounds + 1,
    players, n), and has_next, 1.0 or 0.0, of a shape that broadcasts to the rewards'.
    """
    has_next = has_next.expand_as(rewards)
    advantages = torch.zeros_like(rewards)
    last_advantage = torch.zeros_like(values[0])
    for k in reversed(range(len(rewards))):
        delta = rewards[k] + has_next[k] * values[k + 1] - values[k]
        last_advantage = delta + gae_lambda * has_next[k] * last_advantage
        advantages[k] = last_advantage
    return advantages


def collect(
    network: Network,
    batch: DealBatch,
    buffers: Buffers,
    settings: Settings,
    decks: int,
    generator: torch.Generator,
    opponents: Opponents | None = None,
) -> dict[str, Tensor]:
    """Play a deal at every table; return its decisions, (m, …), with advantages and returns.

    There are none at all in the first deal of a match if that is one round.
    """
    players, matches = buffers.players, batch.rules.target is not None
    if not matches:
        batch.reset(seed=decks)  # so a resumed run needs nothing of the tables
    elif buffers.carried_rewards is not None:
        buffers.carry()
    rewards, sides, goes_on = play_deal(network, batch, buffers, generator, opponents)
    if network.critic is not None:
        value_all_cards(network.critic, buffers, batch.rules)
    rewards, rewards_before = seat_rewards(rewards * settings.reward_scale, sides)
    values = buffers.plays["values"].view(-1, players, batch.num_envs)
    if matches:
        rewards, has_next = carry_over(buffers, rewards, rewards_before, goes_on)
        values = values[-len(rewards) - 1 :]
    else:
        values = torch.cat([values, torch.zeros_like(values[:1])])
        has_next = torch.ones_like(rewards[:, :1])
        has_next[-1] = 0
    advantages = gae(rewards, values, has_next, settings.gae_lambda)
    returns = advantages + values[:-1]

    # All rounds that have rewards; in a match the last one is left to the next deal.
    stop = len(buffers.plays["values"]) - buffers.carried
    plays = slice(stop - players * len(rewards), stop)
    decisions = {name: buffer[plays].flatten(0, 1) for name, buffer in buffers.plays.items()}
    decisions |= {"advantages": advantages.flatten(), "returns": returns.flatten()}
    own_play = decisions.pop("own_play")
    if opponents is not None:
        rows = own_play.nonzero()[:, 0]
        decisions = {name: tensor.index_select(0, rows) for name, tensor in decisions.items()}
    advantages = decisions["advantages"]
    if len(advantages) > 1:
        decisions["advantages"] = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return decisions


# Learning.


def policy_loss_of(ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """Return PPO's clipped loss."""
    return -torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()


def learn(
    network: Network,
    optimizer: torch.optim.Optimizer,
    decisions: Mapping[str, Tensor],
    settings: Settings,
    entropy_coef: float,
    generator: torch.Generator,
) -> dict[str, float]:
    """Go over the decisions, each (m, …), in shuffled minibatches; return the mean metrics."""
    size = len(decisions["actions"])
    if size == 0:
        return {}
    num_minibatches = max(1, round(size / settings.minibatch_size))
    parameters = list(network.parameters())
    metrics = []
    for _ in range(settings.epochs):
        order = torch.randperm(size, generator=generator, device=generator.device)
        for rows in order.tensor_split(num_minibatches):
            b = {name: tensor.index_select(0, rows) for name, tensor in decisions.items()}
            logits, values = network(b["seen"][:, : network.num_inputs])
            log_probs = masked_log_probs(logits, b["masks"])
            log_ratio = log_probs.gather(1, b["actions"][:, None])[:, 0] - b["log_probs"]
            ratio = log_ratio.exp()
            policy_loss = policy_loss_of(ratio, b["advantages"], settings.clip)
            value_loss = 0.5 * (values - b["returns"]).square().mean()
            if network.critic is not None:
                value_loss += 0.5 * (network.critic(b["seen"])[1] - b["returns"]).square().mean()
            entropy = entropy_of(log_probs).mean()
            loss = policy_loss - entropy_coef * entropy + settings.value_coef * value_loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            optimizer.step()
            with torch.no_grad():
                approx_kl = (ratio - 1 - log_ratio).mean()
                clipped = ((ratio - 1).abs() > settings.clip).float().mean()
                metrics.append(torch.stack([policy_loss, value_loss, entropy, approx_kl, clipped]))
    names = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
    means = dict(zip(names, torch.stack(metrics).mean(0).tolist(), strict=True))
    if size > 1:
        returns, errors = decisions["returns"], decisions["returns"] - decisions["values"]
        means["explained_variance"] = 1 - (errors.var() / returns.var()).item()
    return means


def generators_of(seed: int, update: int, device: torch.device) -> tuple[int, torch.Generator]:
    """Return the seed of an update's decks, and the generator of all else that it draws."""
    decks, rest = np.random.SeedSequence((seed, update)).generate_state(2, np.uint64).tolist()
    return decks, torch.Generator(device).manual_seed(rest)


# An update.


class Learner(NamedTuple):
    """All that an update changes, and the agents that it plays against."""

    batch: DealBatch
    network: Network
    optimizer: torch.optim.Optimizer
    buffers: Buffers
    opponents: Opponents | None


def make_learner(settings: Settings, rules: Rules) -> Learner:
    """Return a learner as at the start of a run; raise `ValueError` if it cannot be made."""
    decks, generator = generators_of(settings.seed, 0, torch.device("cpu"))
    opponents = Opponents(settings, rules) if settings.pool_share > 0 else None
    try:
        torch.set_num_threads(settings.threads)
        torch.set_float32_matmul_precision(settings.matmul_precision)
        batch = DealBatch(
            settings.num_tables, rules, settings.observation, settings.rewards, seed=decks
        )
        buffers = Buffers(batch, torch.device(settings.device), settings.all_seeing_critic)
        inputs, actions = batch.observations.shape[1], batch.action_masks.shape[1]
        critic_inputs = buffers.plays["seen"].shape[-1] if settings.all_seeing_critic else 0
        network = Network(inputs, actions, settings.hidden, critic_inputs)
        network.initialise(generator)
        network.to(settings.device)
        optimizer = torch.optim.Adam(network.parameters(), eps=1e-5, fused=True)
    except (ValueError, MemoryError, OverflowError, RuntimeError) as error:
        reason = first_line(error)
        raise ValueError(f"{settings.num_tables} tables cannot be set up: {reason}") from None
    return Learner(batch, network, optimizer, buffers, opponents)


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or what kind of error it is."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@torch.inference_mode()
def is_finite(learner: Learner) -> bool:
    """Return whether all numbers of a learner are finite, and its logits such as can be masked."""
    buffers = learner.buffers
    logits, values = learner.network(buffers.plays["seen"][-1, :, : buffers.inputs])
    numbers = [values, *state_tensors(learner).values()]
    return bool((logits.abs() < MAX_LOGIT).all()) and all(n.isfinite().all() for n in numbers)


def run_update(
    settings: Settings, learner: Learner, status: Mapping[str, Any], fraction: float
) -> dict[str, float]:
    """Play a deal at every table and learn from it, when a part of the budget is used up."""
    batch, network, optimizer, buffers, opponents = learner
    learning_rate = anneal(settings.learning_rate, settings.final_learning_rate, fraction)
    entropy_coef = anneal(settings.entropy_coef, settings.final_entropy_coef, fraction)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    update, device = status["update"], torch.device(settings.device)
    decks, generator = generators_of(settings.seed, update + 1, device)
    if opponents is not None and update % settings.snapshot_every == 0:
        opponents.add(update, checkpoint_of(network, batch.rules, settings, status))
    decisions = collect(network, batch, buffers, settings, decks, generator, opponents)
    metrics = learn(network, optimizer, decisions, settings, entropy_coef, generator)
    if not is_finite(learner):
        raise ValueError(
            f"update {update + 1}, with a learning rate of {learning_rate:g}, gave numbers that "
            "are not finite or too large; what was saved last stays, and a lower learning rate "
            "in a new run may help"
        )
    return {"learning_rate": learning_rate, "entropy_coef": entropy_coef, **metrics}


def anneal(start: float, end: float, fraction: float) -> float:
    """Return what lies between the two when a part of the budget is used up."""
    return start + (end - start) * fraction


# Measuring and saving.


def checkpoint_of(
    network: Network, rules: Rules, settings: Settings, status: Mapping[str, Any]
) -> Checkpoint:
    """Return the policy as it is now; `status` says how far it got and how strong it was then."""

    def array(tensor: Tensor) -> np.ndarray:
        return tensor.detach().cpu().numpy().copy()

    *layers, head = [(array(layer.weight), array(layer.bias)) for layer in network.layers()]
    weight, bias = head  # the actions' logits and, last, the value
    training = dataclasses.asdict(settings)
    training |= {name: status[name] for name in ("update", "plays", "seconds")}
    # Folders are the machine's, not the policy's.
    del training["run"], training["resume"]
    training["start_from"] = settings.start_from and settings.start_from.name
    training["pool_baselines"] = [Path(name).name for name in settings.pool_baselines]
    return make_checkpoint(
        [*layers, (weight[:-1], bias[:-1])],
        rules,
        settings.observation,
        training,
        settings.seed,
        status["revision"],
        status["strength"],
        value=(weight[-1:], bias[-1:]),
    )


def measure(checkpoint: Checkpoint, settings: Settings) -> dict[str, Any]:
    """Return the policy's points a deal over `counting`, on decks that no training deals."""
    agent = PolicyAgent(checkpoint)
    evaluation = evaluate(
        [agent, "counting"],
        rules=checkpoint.rules,
        deals=settings.evaluation_decks,
        seed=MEASURING_SEED,
        names=["policy", "counting"],
        match=False,
    )
    result = evaluation.results[0]
    return {
        "opponent": "counting",
        "points_a_deal": result.mean,
        "low": result.low,
        "high": result.high,
        "decks": settings.evaluation_decks,
    }


def state_tensors(learner: Learner) -> dict[str, Tensor]:
    """Return the tensors that a run goes on from, by name."""
    tensors, buffers = {}, learner.buffers
    for name, parameter in learner.network.named_parameters():
        tensors[f"network.{name}"] = parameter.data
        for key, tensor in learner.optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = tensor
    if buffers.carried_rewards is not None and buffers.carried_goes_on is not None:
        tensors["carried.rewards"] = buffers.carried_rewards
        tensors["carried.goes_on"] = buffers.carried_goes_on
        for name, buffer in buffers.plays.items():
            tensors[f"carried.{name}"] = buffer[-buffers.carried :]
    return tensors


def save(folder: Path, settings: Settings, learner: Learner, status: Mapping[str, Any]) -> None:
    """Write the policy, and the state to go on from."""
    batch = learner.batch
    policy = checkpoint_of(learner.network, batch.rules, settings, status)
    write_checkpoint(folder / POLICY, policy)
    arrays = {
        name: tensor.detach().cpu().numpy() for name, tensor in state_tensors(learner).items()
    }
    if batch.rules.target is not None:
        arrays |= {f"tables.{name}": array for name, array in batch.get_state().items()}
    write_file(folder / STATE, pack(arrays, status))


def load_network(folder: Path, network: Network) -> None:
    """Give the network the weights, of its critic too, that a run saved last."""
    path = folder / STATE
    try:
        with safe_open(path, framework="numpy") as file:
            for name, parameter in network.named_parameters():
                tensor = torch.from_numpy(file.get_tensor(f"network.{name}"))
                if tensor.shape != parameter.shape:
                    raise ValueError(
                        f"its {name} has shape {tuple(tensor.shape)}; expected "
                        f"{tuple(parameter.shape)}"
                    )
                parameter.data.copy_(tensor)
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be started from: {first_line(error)}") from None


def load_state(folder: Path, learner: Learner) -> dict[str, Any]:
    """Take up the state that `save` wrote; return its status."""
    batch, network, optimizer, buffers, _ = learner
    path = folder / STATE
    try:
        with safe_open(path, framework="numpy") as file:
            status = json.loads(file.metadata()[HEADER_KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        has_learned = any(name.startswith("optimizer.") for name in arrays)
        for name, parameter in network.named_parameters():
            keys = ("step", "exp_avg", "exp_avg_sq") if has_learned else ()
            optimizer.state[parameter] = {
                key: torch.from_numpy(arrays[f"optimizer.{name}.{key}"]).to(
                    parameter.device if key != "step" else "cpu"
                )
                for key in keys
            }
            parameter.data.copy_(torch.from_numpy(arrays[f"network.{name}"]))
        if "carried.rewards" in arrays:
            device = buffers.plays["values"].device
            buffers.carried_rewards = torch.from_numpy(arrays["carried.rewards"]).to(device)
            buffers.carried_goes_on = torch.from_numpy(arrays["carried.goes_on"]).to(device)
            for name, buffer in buffers.plays.items():
                buffer[-buffers.carried :] = torch.from_numpy(arrays[f"carried.{name}"])
        if batch.rules.target is not None:
            prefix = "tables."
            batch.set_state(
                {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            )
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be used, so the run cannot go on: {error}") from None
    return dict(status)


# The run's folder.


def make_run(settings: Settings) -> Path:
    """Make the folder of a new run; return it."""
    started = datetime.datetime.now()
    folder = settings.run or Path("runs") / f"{started:%Y%m%d-%H%M%S}-seed{settings.seed}"
    files = {SETTINGS: dataclasses.asdict(settings), VERSIONS: versions()}
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(
            f"run {folder} exists; go on with it by --resume {folder}, or name another"
        ) from None
    try:
        for name, data in files.items():
            write_file(folder / name, json.dumps(data, indent=2, default=str).encode())
    except OSError:
        shutil.rmtree(folder)
        raise
    return folder


def read_settings(folder: Path) -> Settings:
    """Return the settings of the run in a folder."""
    path = folder / SETTINGS
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored |= {name: tuple(stored[name]) for name in ("hidden", "pool_baselines")}
        if stored.get("start_from") is not None:
            stored["start_from"] = Path(stored["start_from"])
        return Settings(**{**stored, "run": folder})
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"run {folder} has no {SETTINGS}, so there is nothing to resume") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} cannot be used: {error}") from None


def versions() -> dict[str, Any]:
    """Return what a run was made with."""
    packages = ("torch", "numpy", "numba", "safetensors", "gymnasium", "pettingzoo")
    return {
        "command": sys.argv,
        "revision": revision(),
        "started": datetime.datetime.now().isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: importlib.metadata.version(name) for name in packages},
    }


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second process out of a run's folder, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with open(folder / SETTINGS, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"run {folder} is being trained by another process") from None
        yield


@contextlib.contextmanager
def metrics_of(folder: Path, update: int) -> Iterator[Any]:
    """Yield a function that writes metrics of an update, after those of the first `update` ones."""
    path = folder / "metrics.csv"
    kept = [",".join(METRICS)]
    if path.exists():
        # A run that was killed may be ahead of its state, and its last line be torn.
        lines = path.read_text(encoding="utf-8").split("\n")[1:-1]
        kept += [line for line in lines if line and int(line.split(",")[0]) <= update]
    write_file(path, ("\n".join(kept) + "\n").encode())
    board = SummaryWriter(folder / "tensorboard", purge_step=update + 1)

    with open(path, "a", encoding="utf-8", newline="") as file, contextlib.closing(board):
        rows = csv.DictWriter(file, METRICS, lineterminator="\n")

        def write(metrics: Mapping[str, float]) -> None:
            rows.writerow(metrics)
            file.flush()
            for name, value in metrics.items():
                if name != "update":
                    board.add_scalar(name, value, int(metrics["update"]))

        yield write


@contextlib.contextmanager
def catching_signals() -> Iterator[list[int]]:
    """Yield a list of the signals to stop that have come. The second one stops at once."""
    caught: list[int] = []

    def catch(number: int, frame: Any) -> None:
        caught.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, catch) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Training.


def train(settings: Settings, learner: Learner, folder: Path, caught: list[int]) -> dict[str, Any]:
    """Train until the budget is used up or a signal has come; return how far it got."""
    batch, network, _, _, opponents = learner
    plays_per_update = batch.rules.num_plays * batch.num_envs
    status: dict[str, Any] = {"update": 0, "plays": 0, "seconds": 0.0, "strength": None}
    if (folder / STATE).exists():
        status = load_state(folder, learner)
    status["revision"] = revision()
    if opponents is not None:
        opponents.use_folder(folder, status["update"])
    save(folder, settings, learner, status)
    saved = time.monotonic()
    started = saved - status["seconds"]
    fraction = budget_used(settings, plays_per_update, status)
    bar = tqdm(
        total=1.0,
        initial=fraction,
        disable=None,
        bar_format="{percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}",
    )
    with bar, metrics_of(folder, status["update"]) as write_metrics:
        while not caught and fraction < 1:
            begun = time.monotonic()
            metrics = run_update(settings, learner, status, fraction)
            now = time.monotonic()
            status["update"] += 1
            status["plays"] += plays_per_update
            status["seconds"] = now - started
            speed = plays_per_update / (now - begun)
            fraction = budget_used(settings, plays_per_update, status)
            last, every = fraction >= 1 or bool(caught), settings.evaluate_every
            if every and (last or status["update"] % every == 0):
                policy = checkpoint_of(network, batch.rules, settings, status)
                strength = status["strength"] = measure(policy, settings)
                metrics["over_counting"] = strength["points_a_deal"]
                metrics["over_counting_low"] = strength["low"]
                metrics["over_counting_high"] = strength["high"]
                tqdm.write(summary(status, speed))
            metrics |= {name: status[name] for name in ("update", "plays", "seconds")}
            write_metrics({**metrics, "plays_per_second": speed})
            if time.monotonic() - saved >= settings.save_seconds:
                save(folder, settings, learner, status)
                saved = time.monotonic()
            bar.update(fraction - bar.n)
            bar.set_postfix_str(f"{speed:,.0f} plays/s, {over_counting(status)}", refresh=False)
        save(folder, settings, learner, status)
    batch.close()
    return status


def budget_used(settings: Settings, plays_per_update: int, status: Mapping[str, Any]) -> float:
    """Return which part of the budget is used up, 0 to 1."""
    if settings.steps is not None:
        fraction = status["update"] / math.ceil(settings.steps / plays_per_update)
    else:
        minutes = DEFAULT_MINUTES if settings.minutes is None else settings.minutes
        fraction = status["seconds"] / (60 * minutes)
    return min(1.0, fraction)


def over_counting(status: Mapping[str, Any]) -> str:
    """Return the last measurement as text."""
    strength = status["strength"]
    if strength is None:
        return "not measured yet"
    half = (strength["high"] - strength["low"]) / 2
    return f"{strength['points_a_deal']:+.2f} ± {half:.2f} over counting"


def summary(status: Mapping[str, Any], speed: float) -> str:
    """Return one line on how far a run is."""
    clock = str(datetime.timedelta(seconds=round(status["seconds"])))
    return (
        f"{clock}  update {status['update']:,}  {status['plays']:,} plays  "
        f"{speed:,.0f} plays/s  {over_counting(status)}"
    )


def main() -> None:
    """Train as the command line says."""
    settings = tyro.cli(Settings, prog="python -m training.selfplay", description=__doc__)
    try:
        with catching_signals() as caught:
            if settings.resume is None:
                rules, folder = check_settings(settings), None
            elif settings != Settings(resume=settings.resume):
                raise ValueError("resume takes all settings from the run; give no others with it")
            else:
                folder = settings.resume
                settings = read_settings(folder)
                rules = check_settings(settings)
            learner = make_learner(settings, rules)  # first, for it may fail
            if folder is None and settings.start_from is not None:
                load_network(settings.start_from, learner.network)
            folder = folder or make_run(settings)
            with locked(folder):
                for left in folder.rglob("*.tmp"):  # by a process that was killed
                    left.unlink()
                status = train(settings, learner, folder, caught)
    except (OSError, ValueError, MemoryError, torch.OutOfMemoryError) as error:
        sys.exit(f"training.selfplay: {first_line(error)}")
    print(f"{folder / POLICY}: {status['update']:,} updates, {over_counting(status)}")
    if caught:
        print(f"stopped by a signal; python -m training.selfplay --resume {folder} goes on")
        sys.exit(128 + caught[0])


if __name__ == "__main__":
    main()
