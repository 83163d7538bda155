"""How much of the network's own speed training reaches, measured side by side."""

import dataclasses
import operator
import statistics
import sys
import time
from collections.abc import Callable

import torch
import tyro
from torch import Tensor

from training.selfplay import Settings, collect, generators_of, learn, make_learner
from training.settings import check_settings
from training.threads import Threads


@dataclasses.dataclass(frozen=True)
class BenchSettings:
    """What is measured."""

    training: tyro.conf.OmitArgPrefixes[Settings]
    rounds: int = 10
    """How often the two are measured, in turns, 2 or more; the medians count."""


def bench(settings: Settings, rounds: int) -> None:
    """Print how fast training is and how fast the network alone, on the same batches."""
    rules, device = check_settings(settings), torch.device(settings.device)
    if settings.threads is None:
        settings = dataclasses.replace(settings, threads=Threads(settings, rules).number)
    batch, network, optimizer, buffers, _ = make_learner(settings, rules)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    updates = iter(range(1, 10**9))

    def train() -> None:
        decks, generator = generators_of(settings.seed, next(updates), device)
        decisions = collect(network, batch, buffers, settings, decks, generator)
        learn(network, optimizer, decisions, settings, 0.01, generator)

    inputs = batch.observations.shape[1]
    sizes = (inputs,) if network.critic is None else (inputs, network.critic.num_inputs)
    # What the network is shown, and what its critic is.
    rollouts = [torch.rand(rules.num_plays, settings.num_tables, n).to(device) for n in sizes]
    count = max(1, round(rules.num_plays * settings.num_tables / settings.minibatch_size))
    minibatches = [rollout.flatten(0, 1).tensor_split(count) for rollout in rollouts]

    def forward(*shown: Tensor) -> tuple[Tensor, ...]:
        outputs = network(shown[0])
        return outputs if network.critic is None else (*outputs, network.critic(shown[1])[1])

    def network_alone() -> None:
        with torch.inference_mode():
            for shown in zip(*rollouts, strict=True):
                forward(*shown)
        for shown in list(zip(*minibatches, strict=True)) * settings.epochs:
            outputs = forward(*shown)
            optimizer.zero_grad()
            torch.autograd.backward(outputs, tuple(torch.ones_like(o) for o in outputs))
            optimizer.step()

    plays = rules.num_plays * settings.num_tables
    training, alone = measure_in_turns([train, network_alone], rounds, device)
    print(f"training       {plays / statistics.median(training):10,.0f} plays/s")
    print(f"network alone  {plays / statistics.median(alone):10,.0f} plays/s")
    # Turn by turn, since the speed of a shared machine drifts.
    low, ratio, high = statistics.quantiles(map(operator.truediv, alone, training), n=4)
    print(f"ratio          {ratio:10.1%}   half of the turns: {low:.1%} to {high:.1%}")


def measure_in_turns(
    functions: list[Callable[[], None]], rounds: int, device: torch.device
) -> list[list[float]]:
    """Return each function's seconds of every call, in turns; a first call is not counted."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds + 1):
        for function, taken in zip(functions, seconds, strict=True):
            begun = time.perf_counter()
            function()
            if device.type == "cuda":
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - begun)
    return [taken[1:] for taken in seconds]


def main() -> None:
    """Measure as the command line says."""
    settings = tyro.cli(BenchSettings, prog="python -m training.bench", description=__doc__)
    try:
        bench(settings.training, settings.rounds)
    except ValueError as error:
        sys.exit(f"training.bench: {error}")


if __name__ == "__main__":
    main()
