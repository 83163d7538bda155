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
# al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2015).

import contextlib
import csv
import dataclasses
import datetime
import importlib.metadata
import json
import math
import platform
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
    Checkpoint,
    layout_of,
    pack,
    read_checkpoint,
    write_checkpoint,
    write_file,
)
from pisti_env.agents.hosting import Pool, ask_each
from pisti_env.agents.policy import PolicyAgent
from pisti_env.arena import evaluate, revision
from pisti_env.observation import check_encoding
from pisti_env.rules import Rules, parse_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import REWARDS
from pisti_env.vector import DealBatch
from training.network import Network, draw, entropy_of, masked_log_probs

DEFAULT_MINUTES = 5.0
SNAPSHOTS = "snapshots"
MEASURING_SEED = 1  # 0 is what published figures are measured with
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
    seed: int = 0
    """Decides all that is drawn. With steps and equal threads, two runs on a CPU are equal."""
    device: str = "cpu"
    """Where the network is: cpu, cuda, …"""
    threads: int = 2
    """Threads of the network."""
    observation: str = "kinds"
    """Encoding of what a seat sees."""
    rewards: str = "difference"
    """What is learned: difference of points as they come, terminal, or win."""
    num_tables: int = 1024
    """Tables played at once, a whole deal each per update."""
    minibatch_size: int = 6144
    """Decisions in a step of the optimizer."""
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
    gae_lambda: float = 0.95
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
    """Decks of a measurement, each played in all seatings."""
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
    for name in ("evaluate_every", "evaluation_decks"):
        check(name, getattr(settings, name) >= 0, "an int of 0 or more")
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
        torch.empty(1, device=settings.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device is {settings.device!r}; PyTorch says: {reason}") from None
    return parse_rules(settings.rules)


# Playing.


class Buffers:
    """What was seen and done in each play, `plays` of (plays, n, …).

    A match goes on after a deal, so the last round's advantages are known only in the next deal:
    there the buffers have room for one more round, the first, to carry the last one over. `earned`
    (players, n) and `goes_on` (n,) are then what those seats have earned since, and whether the
    match goes on; None before the first deal, and where a deal is all.
    """

    def __init__(self, batch: DealBatch, device: torch.device):
        rules = batch.rules
        tables, inputs = batch.observations.shape
        self.players = rules.players
        self.carried = 0 if rules.target is None else rules.players
        shape = (self.carried + rules.num_plays, tables)
        actions = batch.action_masks.shape[1]
        self.plays = {
            "observations": torch.zeros((*shape, inputs), device=device),
            "masks": torch.zeros((*shape, actions), device=device),
            "actions": torch.zeros(shape, dtype=torch.int64, device=device),
            "log_probs": torch.zeros(shape, device=device),
            "values": torch.zeros(shape, device=device),
            "learns": torch.zeros(shape, dtype=torch.bool, device=device),
        }
        self.earned: Tensor | None = None
        self.goes_on: Tensor | None = None

    def carry(self) -> None:
        """Move the last round to the first. The next seat deals, so the seat that was second to
        play leads now."""
        for buffer in self.plays.values():
            buffer[: self.carried] = buffer[-self.carried :].roll(-1, dims=0)


class Opponents:
    """Who plays where the policy does not: baselines, and snapshots of the policy's own past.

    Snapshots lie in the run's folder, so that a resumed run has the same.
    """

    def __init__(self, settings: Settings, rules: Rules, folder: Path, update: int):
        self._settings = settings
        self._folder = folder / SNAPSHOTS
        self._folder.mkdir(exist_ok=True)
        self._baselines = [load(name, rules) for name in settings.pool_baselines]
        self._snapshots: dict[int, PolicyAgent] = {}
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
    position, and whether the match goes on (n,).
    """
    shape = (batch.rules.num_plays, batch.num_envs)
    uniform = torch.rand(shape, generator=generator, device=generator.device)
    if opponents is not None:
        pool, who = opponents.seat(batch, generator)
        seeds = torch.randint(2**62, shape, generator=generator, device=generator.device)
    tables = np.arange(batch.num_envs)
    to = buffers.plays
    rewards: list[Tensor] = []
    sides: list[Tensor] = []
    for play, numbers in enumerate(uniform, buffers.carried):
        observations, masks = to["observations"][play], to["masks"][play]
        observations.copy_(torch.from_numpy(batch.observations))
        masks.copy_(torch.from_numpy(batch.action_masks))
        if len(sides) < buffers.players:
            sides.append(torch.from_numpy(batch.seats.astype(np.int64) % batch.rules.sides))
        logits, values = network(observations)
        log_probs = masked_log_probs(logits, masks)
        actions = draw(log_probs, numbers)
        to["actions"][play] = actions
        to["log_probs"][play] = log_probs.gather(1, actions[:, None])[:, 0]
        to["values"][play] = values
        chosen = actions.cpu().numpy()
        if opponents is None:
            to["learns"][play] = True
        else:
            agents = who[tables, batch.seats]
            to["learns"][play] = torch.from_numpy(agents < 0)
            decision = play - buffers.carried
            ask_each(pool.agents, batch, agents, chosen, seeds[decision].cpu().numpy())
        reward, ended = batch.step(chosen)
        rewards.append(torch.from_numpy(reward))
    goes_on = torch.from_numpy((~ended).astype(np.float32))
    device = uniform.device
    return torch.stack(rewards).to(device), torch.stack(sides).to(device), goes_on.to(device)


# Advantages.


def seat_rewards(rewards: Tensor, sides: Tensor) -> tuple[Tensor, Tensor]:
    """Sum up what each seat's side earns between the seat's own decisions.

    Takes every side's rewards (plays, n, sides) and the side (players, n) of the seat at each
    position. Returns (rounds, players, n), from a decision to just before the seat's next one or
    the end of the deal, and (players, n), from the start of the deal to the seat's first decision.
    """
    players, tables = sides.shape
    before, since = [], []
    for position in range(players):
        own = rewards.gather(2, sides[position].expand(len(rewards), tables)[..., None])[..., 0]
        rest = torch.cat([own[position:], own.new_zeros(position, tables)])
        before.append(own[:position].sum(0))
        since.append(rest.view(-1, players, tables).sum(1))
    return torch.stack(since, 1), torch.stack(before)


def advantages_of(rewards: Tensor, values: Tensor, goes_on: Tensor, gae_lambda: float) -> Tensor:
    """Return the advantage of every decision (rounds, players, n), undiscounted.

    Takes rewards (rounds, players, n) from a decision to the same seat's next, values (rounds + 1,
    players, n), and goes_on, of a shape that broadcasts to the rewards': whether there is a next.
    """
    goes_on = goes_on.expand_as(rewards)
    advantages = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for k in reversed(range(len(rewards))):
        delta = rewards[k] + goes_on[k] * values[k + 1] - values[k]
        following = delta + gae_lambda * goes_on[k] * following
        advantages[k] = following
    return advantages


def decide(
    network: Network,
    batch: DealBatch,
    buffers: Buffers,
    settings: Settings,
    decks: int,
    generator: torch.Generator,
    opponents: Opponents | None = None,
) -> dict[str, Tensor]:
    """Play a deal at every table; return its decisions, (m, …), with advantages and returns."""
    players, matches = buffers.players, batch.rules.target is not None
    if not matches:
        batch.reset(seed=decks)  # so a resumed run needs nothing of the tables
    elif buffers.earned is not None:
        buffers.carry()
    rewards, sides, goes_on = play_deal(network, batch, buffers, generator, opponents)
    since, before = seat_rewards(rewards * settings.reward_scale, sides)
    values = buffers.plays["values"].view(-1, players, batch.num_envs)
    first, has_next = 0, since.new_ones(len(since), 1, batch.num_envs)
    if not matches:
        values = torch.cat([values, torch.zeros_like(values[:1])])
        has_next[-1] = 0
    else:
        # The last round waits for the next deal, the one of the deal before has its next now.
        pending, ongoing = buffers.earned, buffers.goes_on
        buffers.earned, buffers.goes_on = since[-1].roll(-1, dims=0), goes_on
        if pending is None or ongoing is None:
            first, has_next, since = 1, has_next[1:], since[:-1]
        else:
            has_next[0] = ongoing
            since = torch.cat([(pending + ongoing * before)[None], since[:-1]])
    values = values[first:]
    advantages = advantages_of(since, values, has_next, settings.gae_lambda)
    returns = advantages + values[:-1]
    plays = slice(first * players, (first + len(since)) * players)
    decisions = {name: buffer[plays].flatten(0, 1) for name, buffer in buffers.plays.items()}
    decisions |= {"advantages": advantages.flatten(), "returns": returns.flatten()}
    learns = decisions.pop("learns")
    if opponents is not None:
        rows = learns.nonzero()[:, 0]
        decisions = {name: tensor.index_select(0, rows) for name, tensor in decisions.items()}
    advantages = decisions["advantages"]
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
    """Go over the decisions, each (m, …), in shuffled minibatches; return the mean figures."""
    size = len(decisions["actions"])
    num_minibatches = max(1, round(size / settings.minibatch_size))
    parameters = list(network.parameters())
    figures = []
    for _ in range(settings.epochs):
        order = torch.randperm(size, generator=generator, device=generator.device)
        for rows in order.tensor_split(num_minibatches):
            b = {name: tensor.index_select(0, rows) for name, tensor in decisions.items()}
            logits, values = network(b["observations"])
            log_probs = masked_log_probs(logits, b["masks"])
            log_ratio = log_probs.gather(1, b["actions"][:, None])[:, 0] - b["log_probs"]
            ratio = log_ratio.exp()
            policy_loss = policy_loss_of(ratio, b["advantages"], settings.clip)
            value_loss = 0.5 * (values - b["returns"]).square().mean()
            entropy = entropy_of(log_probs).mean()
            loss = policy_loss - entropy_coef * entropy + settings.value_coef * value_loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            optimizer.step()
            with torch.no_grad():
                approx_kl = (ratio - 1 - log_ratio).mean()
                clipped = ((ratio - 1).abs() > settings.clip).float().mean()
                figures.append(torch.stack([policy_loss, value_loss, entropy, approx_kl, clipped]))
    names = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
    means = dict(zip(names, torch.stack(figures).mean(0).tolist(), strict=True))
    returns, unexplained = decisions["returns"], decisions["returns"] - decisions["values"]
    return {**means, "explained_variance": 1 - (unexplained.var() / returns.var()).item()}


def generators_of(seed: int, update: int, device: torch.device) -> tuple[int, torch.Generator]:
    """Return the seed of an update's decks, and the generator of all else that it draws."""
    decks, rest = np.random.SeedSequence((seed, update)).generate_state(2, np.uint64).tolist()
    return decks, torch.Generator(device).manual_seed(rest)


# Measuring and saving.


def checkpoint_of(
    network: Network, rules: Rules, settings: Settings, done: Mapping[str, Any]
) -> Checkpoint:
    """Return the policy as it is now; `done` says how far it got and how strong it was then."""

    def array(tensor: Tensor) -> np.ndarray:
        return tensor.detach().cpu().numpy().copy()

    weights = [array(layer.weight) for layer in network.layers()]
    biases = [array(layer.bias) for layer in network.layers()]
    value = weights[-1][-1:], biases[-1][-1:]
    weights[-1], biases[-1] = weights[-1][:-1], biases[-1][:-1]
    folders = ("run", "resume")  # of the machine, not of the policy
    training = {n: v for n, v in dataclasses.asdict(settings).items() if n not in folders}
    training |= {name: done[name] for name in ("update", "plays", "seconds")}
    return Checkpoint(
        rules=rules,
        observation=settings.observation,
        layout=layout_of(settings.observation, rules),
        sizes=(weights[0].shape[1], *(len(bias) for bias in biases)),
        activation="relu",
        weights=weights,
        biases=biases,
        value=value,
        metadata={
            "training": {
                **training,
                **{name: done[name] for name in ("update", "plays", "seconds")},
            },
            "seed": settings.seed,
            "revision": done["revision"],
            "strength": done["strength"],
        },
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


def state_tensors(
    network: Network, optimizer: torch.optim.Optimizer, buffers: Buffers
) -> dict[str, Tensor]:
    """Return the tensors that a run goes on from, by name."""
    tensors = {}
    for name, parameter in network.named_parameters():
        tensors[f"network.{name}"] = parameter.data
        for key, tensor in optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = tensor
    if buffers.earned is not None and buffers.goes_on is not None:
        tensors["carried.earned"], tensors["carried.goes_on"] = buffers.earned, buffers.goes_on
        for name, buffer in buffers.plays.items():
            tensors[f"carried.{name}"] = buffer[-buffers.carried :]
    return tensors


def save_state(
    folder: Path, done: Mapping[str, Any], tensors: Mapping[str, Tensor], batch: DealBatch
) -> None:
    """Write the state to go on from."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    if batch.rules.target is not None:
        arrays |= {f"tables.{name}": array for name, array in batch.get_state().items()}
    write_file(folder / STATE, pack(arrays, done))


def load_state(
    folder: Path,
    network: Network,
    optimizer: torch.optim.Optimizer,
    buffers: Buffers,
    batch: DealBatch,
) -> dict[str, Any]:
    """Take up the state that `save_state` wrote; return how far it had got."""
    path = folder / STATE
    try:
        with safe_open(path, framework="numpy") as file:
            done = json.loads(file.metadata()[HEADER_KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name, parameter in network.named_parameters():
            keys = ("step", "exp_avg", "exp_avg_sq") if done["update"] else ()
            optimizer.state[parameter] = {
                key: torch.from_numpy(arrays[f"optimizer.{name}.{key}"]).to(
                    parameter.device if key != "step" else "cpu"
                )
                for key in keys
            }
            parameter.data.copy_(torch.from_numpy(arrays[f"network.{name}"]))
        if "carried.earned" in arrays:
            device = buffers.plays["values"].device
            buffers.earned = torch.from_numpy(arrays["carried.earned"]).to(device)
            buffers.goes_on = torch.from_numpy(arrays["carried.goes_on"]).to(device)
            for name, buffer in buffers.plays.items():
                buffer[-buffers.carried :] = torch.from_numpy(arrays[f"carried.{name}"])
        if batch.rules.target is not None:
            prefix = "tables."
            batch.set_state(
                {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            )
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be used, so the run cannot go on: {error}") from None
    return dict(done)


# The run's folder.


def make_run(settings: Settings) -> Path:
    """Make the folder of a new run; return it."""
    started = datetime.datetime.now()
    folder = settings.run or Path("runs") / f"{started:%Y%m%d-%H%M%S}-seed{settings.seed}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(
            f"run {folder} exists; go on with it by --resume {folder}, or name another"
        ) from None
    text = json.dumps(dataclasses.asdict(settings), indent=2, default=str)
    write_file(folder / VERSIONS, json.dumps(versions(), indent=2).encode())
    write_file(folder / SETTINGS, text.encode())
    return folder


def read_settings(folder: Path) -> Settings:
    """Return the settings of the run in a folder."""
    path = folder / SETTINGS
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored |= {name: tuple(stored[name]) for name in ("hidden", "pool_baselines")}
        return Settings(**{**stored, "run": folder})
    except FileNotFoundError:
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
def figures_of(folder: Path, update: int) -> Iterator[Any]:
    """Yield a function that notes figures of an update, after those of the first `update` ones."""
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

        def note(figures: Mapping[str, float]) -> None:
            rows.writerow(figures)
            file.flush()
            for name, value in figures.items():
                if name != "update":
                    board.add_scalar(name, value, int(figures["update"]))

        yield note


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


def train(settings: Settings, rules: Rules, folder: Path, caught: list[int]) -> dict[str, Any]:
    """Train until the budget is used up or a signal has come; return how far it got."""
    device = torch.device(settings.device)
    decks, generator = generators_of(settings.seed, 0, torch.device("cpu"))
    batch = DealBatch(
        settings.num_tables,
        rules,
        settings.observation,
        settings.rewards,
        seed=decks,
    )
    network = Network(batch.observations.shape[1], batch.action_masks.shape[1], settings.hidden)
    network.initialise(generator)
    network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), eps=1e-5, fused=True)
    buffers = Buffers(batch, device)
    plays_per_update = rules.num_plays * settings.num_tables
    done: dict[str, Any] = {"update": 0, "plays": 0, "seconds": 0.0, "strength": None}
    if (folder / STATE).exists():
        done = load_state(folder, network, optimizer, buffers, batch)
    done["revision"] = revision()
    opponents = None
    if settings.pool_share > 0:
        opponents = Opponents(settings, rules, folder, done["update"])

    def save() -> float:
        write_checkpoint(folder / POLICY, checkpoint_of(network, rules, settings, done))
        save_state(folder, done, state_tensors(network, optimizer, buffers), batch)
        return time.monotonic()

    saved, started = save(), time.monotonic() - done["seconds"]
    bar = tqdm(
        total=1.0,
        initial=progress(settings, plays_per_update, done),
        disable=None,
        bar_format="{percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}",
    )
    with bar, figures_of(folder, done["update"]) as note:
        while not caught and (used := progress(settings, plays_per_update, done)) < 1:
            begun = time.monotonic()
            learning_rate = anneal(settings.learning_rate, settings.final_learning_rate, used)
            entropy_coef = anneal(settings.entropy_coef, settings.final_entropy_coef, used)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate
            decks, generator = generators_of(settings.seed, done["update"] + 1, device)
            if opponents is not None and done["update"] % settings.snapshot_every == 0:
                opponents.add(done["update"], checkpoint_of(network, rules, settings, done))
            decisions = decide(network, batch, buffers, settings, decks, generator, opponents)
            figures = learn(network, optimizer, decisions, settings, entropy_coef, generator)

            done["update"] += 1
            done["plays"] += plays_per_update
            done["seconds"] = time.monotonic() - started
            speed = plays_per_update / (time.monotonic() - begun)
            used = progress(settings, plays_per_update, done)
            last = used >= 1 or bool(caught)
            if settings.evaluate_every and (last or done["update"] % settings.evaluate_every == 0):
                strength = measure(checkpoint_of(network, rules, settings, done), settings)
                done["strength"] = strength
                figures |= {
                    "over_counting": strength["points_a_deal"],
                    "over_counting_low": strength["low"],
                    "over_counting_high": strength["high"],
                }
                tqdm.write(summary(done, speed))
            note(
                {
                    **{name: done[name] for name in ("update", "plays", "seconds")},
                    "plays_per_second": speed,
                    "learning_rate": learning_rate,
                    "entropy_coef": entropy_coef,
                    **figures,
                }
            )
            if last or time.monotonic() - saved >= settings.save_seconds:
                saved = save()
            bar.update(used - bar.n)
            bar.set_postfix_str(f"{speed:,.0f} plays/s, {over_counting(done)}", refresh=False)
    batch.close()
    return done


def progress(settings: Settings, plays_per_update: int, done: Mapping[str, Any]) -> float:
    """Return which part of the budget is used up, 0 to 1."""
    if settings.steps is not None:
        used = done["update"] / math.ceil(settings.steps / plays_per_update)
    else:
        minutes = DEFAULT_MINUTES if settings.minutes is None else settings.minutes
        used = done["seconds"] / (60 * minutes)
    return min(1.0, used)


def anneal(start: float, end: float, used: float) -> float:
    """Return what lies between the two when a part of the budget is used up."""
    return start + (end - start) * used


def over_counting(done: Mapping[str, Any]) -> str:
    """Return the last measurement as text."""
    strength = done["strength"]
    if strength is None:
        return "not measured yet"
    half = (strength["high"] - strength["low"]) / 2
    return f"{strength['points_a_deal']:+.2f} ± {half:.2f} over counting"


def summary(done: Mapping[str, Any], speed: float) -> str:
    """Return one line on how far a run is."""
    clock = str(datetime.timedelta(seconds=round(done["seconds"])))
    return (
        f"{clock}  update {done['update']:,}  {done['plays']:,} plays  "
        f"{speed:,.0f} plays/s  {over_counting(done)}"
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
            folder = folder or make_run(settings)
            torch.set_num_threads(settings.threads)
            with locked(folder):
                done = train(settings, rules, folder, caught)
    except (OSError, ValueError) as error:
        sys.exit(f"training.selfplay: {error}")
    print(f"{folder / POLICY}: {done['update']:,} updates, {over_counting(done)}")
    if caught:
        print(f"stopped by a signal; python -m training.selfplay --resume {folder} goes on")
        sys.exit(128 + caught[0])


if __name__ == "__main__":
    main()
