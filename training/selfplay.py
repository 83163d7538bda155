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

import dataclasses
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__" and "OMP_WAIT_POLICY" not in os.environ:
    # PyTorch's threads wait for each other awake. Where other programs use the cores too, they had
    # better sleep soon. OpenMP reads this when PyTorch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "100000")

import numpy as np
import torch
import tyro
from torch import Tensor

from pisti_env.rules import Rules
from pisti_env.vector import DealBatch
from training import figures, runs, state
from training.buffers import Buffers, rounds_of
from training.credit import seat_rewards
from training.critic import observations_in, value_all_cards
from training.network import Network, entropy_of, masked_log_probs, sample
from training.opponents import Opponents
from training.settings import check_settings, first_line, resumed
from training.threads import Threads

MAX_LOGIT = 1e6  # far beyond any that is learned, and far less than what masks out an action


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
    """Folder of a run to go on with, under its own settings. With steps or minutes, which count
    from the beginning of the run, it gets this budget from now on."""
    start_from: Path | None = None
    """What a new run begins with instead of a random network: the folder of another run, the file
    of a policy, or the name of one that comes with the package, such as pisti-2p. Observation and
    hidden layers must be the same. A critic is taken along if there is one."""
    seed: int = 0
    """Decides all that is drawn. With steps and equal threads, two runs on a CPU are equal."""
    device: str = "cpu"
    """Where the network is: cpu, cuda, …"""
    threads: int | None = None
    """Threads of the network. Without it, the number that is fastest here and now: with minutes it
    is tried again and again, with steps only when the run begins."""
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


# Playing.


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
    position, and (n,) 1.0 where the match goes on, else 0.0.
    """
    shape = (batch.rules.num_plays, batch.num_envs)
    uniform = torch.rand(shape, generator=generator, device=generator.device)
    seating = None if opponents is None else opponents.seat(batch, generator)
    plays = buffers.of_deal()
    rewards: list[Tensor] = []
    sides: list[Tensor] = []
    for play, numbers in enumerate(uniform):
        observations = observations_in(plays["seen"][play], buffers.inputs)
        observations.copy_(torch.from_numpy(batch.observations))
        masks = plays["masks"][play]
        masks.copy_(torch.from_numpy(batch.action_masks))
        if len(sides) < buffers.players:
            sides.append(torch.from_numpy(batch.seats.astype(np.int64) % batch.rules.sides))
        logits, values = network(observations)
        log_probs = masked_log_probs(logits, masks)
        actions = sample(log_probs, numbers)
        plays["actions"][play] = actions
        plays["log_probs"][play] = log_probs.gather(1, actions[:, None])[:, 0]
        plays["values"][play] = values
        chosen = actions.cpu().numpy()
        plays["own_play"][play] = True
        if seating is not None:
            others = seating.choose(batch, play, chosen)
            plays["own_play"][play] = torch.from_numpy(~others)
        reward, ended = batch.step(chosen)
        rewards.append(torch.from_numpy(reward))
    goes_on = torch.from_numpy((~ended).astype(np.float32))
    device = uniform.device
    return torch.stack(rewards).to(device), torch.stack(sides).to(device), goes_on.to(device)


# Advantages.


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

    In a match a deal's last round is returned with the next deal, when what follows it is known. So
    a run's first deal gives one round less, which is nothing if a deal has only one.
    """
    if batch.rules.target is None:
        batch.reset(seed=decks)  # so a resumed run needs nothing of the tables
    elif buffers.carried_rewards is not None:
        buffers.carry()
    rewards, sides, goes_on = play_deal(network, batch, buffers, generator, opponents)
    if network.critic is not None:
        value_all_cards(network.critic, buffers.of_deal(), batch.rules)
    after, before = seat_rewards(rewards * settings.reward_scale, sides)
    rewards, values, has_next = rounds_of(buffers, after, before, goes_on)
    advantages = gae(rewards, values, has_next, settings.gae_lambda)
    returns = advantages + values[:-1]

    # All rounds that have rewards; in a match the last one is left to the next deal.
    stop = len(buffers.plays["values"]) - buffers.carried
    plays = slice(stop - buffers.players * len(rewards), stop)
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
            logits, values = network(observations_in(b["seen"], network.num_inputs))
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
        if settings.threads is not None:
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


@torch.inference_mode()
def is_finite(learner: Learner) -> bool:
    """Return whether all numbers of a learner are finite, and its logits such as can be masked."""
    buffers = learner.buffers
    observations = observations_in(buffers.plays["seen"][-1], buffers.inputs)
    logits, values = learner.network(observations)
    numbers = [values, *state.tensors_of(learner).values()]
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
        opponents.add(update, state.policy_of(network, batch.rules, settings, status))
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


# A run.


def train(
    settings: Settings, learner: Learner, folder: Path, caught: list[int], threads: Threads | None
) -> dict[str, Any]:
    """Train until the budget is used up or a signal has come; return how far it got. `threads`
    chooses their number anew now and then."""
    plays_per_update = learner.batch.rules.num_plays * learner.batch.num_envs
    status = state.go_on(folder, learner)
    fraction = runs.budget_used(settings, plays_per_update, status)
    if fraction >= 1:
        runs.tell(runs.used_up(folder, settings))
        return status
    rows = figures.rows_until(folder, status["update"])
    runs.write_settings(folder, settings)  # a run that goes on may have another budget
    state.save(folder, settings, learner, status)
    saved = time.monotonic()
    started = saved - status["seconds"]
    with figures.written(folder, rows, settings) as write, figures.progress_bar(fraction) as bar:
        while not caught and fraction < 1:
            begun = time.monotonic()
            metrics = run_update(settings, learner, status, fraction)
            now = time.monotonic()
            status["update"] += 1
            status["plays"] += plays_per_update
            status["seconds"] = now - started
            speed = plays_per_update / (now - begun)
            fraction = runs.budget_used(settings, plays_per_update, status)
            last, every = fraction >= 1 or bool(caught), settings.evaluate_every
            if every and (last or status["update"] % every == 0):
                status["strength"] = state.measure(learner, settings, status)
                metrics |= figures.measured(status["strength"])
                runs.say(figures.summary(status, speed))
            write(status, {**metrics, "plays_per_second": speed}, learner)
            if time.monotonic() - saved >= settings.save_seconds:
                state.save(folder, settings, learner, status)
                saved = time.monotonic()
            figures.show(bar, fraction, status, speed)
            if threads is not None:
                threads.after_update(now - begun)
        state.save(folder, settings, learner, status)
    learner.batch.close()
    return status


def main() -> None:
    """Train as the command line says."""
    runs.open_missing_streams()
    given = tyro.cli(Settings, prog="python -m training.selfplay", description=__doc__)
    try:
        with runs.catching_signals() as caught:
            rules, settings = check_settings(given), given
            if given.resume is not None:
                rules, settings = resumed(given)
            threads = Threads(settings, rules) if settings.threads is None else None
            if threads is not None and settings.steps is not None:
                settings = dataclasses.replace(settings, threads=threads.number)
                threads = None  # one number to the end, so that the run can be repeated
            learner = make_learner(settings, rules)
            if given.resume is None and settings.start_from is not None:
                state.start_from(settings.start_from, settings, learner)
            with runs.opened(settings, given.resume, f"seed{settings.seed}") as folder:
                status = train(settings, learner, folder, caught, threads)
    except (OSError, ValueError, MemoryError, torch.OutOfMemoryError) as error:
        sys.exit(f"training.selfplay: {first_line(error)}")
    done = f"{status['update']:,} updates, {figures.over_counting(status)}"
    runs.say(f"{folder / runs.POLICY}: {done}")
    if caught:
        runs.say(f"stopped by a signal; python -m training.selfplay --resume {folder} goes on")
        sys.exit(128 + caught[0])


if __name__ == "__main__":
    main()
