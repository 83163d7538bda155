"""What is saved of a run: the policy, to play with, and the state, to go on from."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pisti_env.agents.checkpoint import (
    HEADER_KEY,
    Checkpoint,
    make_checkpoint,
    pack,
    write_checkpoint,
    write_file,
)
from pisti_env.agents.policy import PolicyAgent
from pisti_env.arena import evaluate, revision
from pisti_env.rules import Rules
from training.network import Network
from training.runs import POLICY, first_line

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Learner, Settings

STATE = "state.safetensors"
MEASURING_SEED = 1  # 0 is what published figures are measured with


def policy_of(
    network: Network, rules: Rules, settings: "Settings", status: Mapping[str, Any]
) -> Checkpoint:
    """Return the policy as it is now; `status` says how far it got and how strong it was then."""

    def array(tensor: Tensor) -> np.ndarray:
        return tensor.detach().cpu().numpy().copy()

    *hidden, head = network.layers()
    weights, biases = network.split_head(head.weight), network.split_head(head.bias)
    logits, value = (
        (array(weight), array(bias)) for weight, bias in zip(weights, biases, strict=True)
    )
    training = dataclasses.asdict(settings)
    training |= {name: status[name] for name in ("update", "plays", "seconds")}
    # Folders are the machine's, not the policy's.
    del training["run"], training["resume"]
    training["start_from"] = settings.start_from and settings.start_from.name
    training["pool_baselines"] = [Path(name).name for name in settings.pool_baselines]
    return make_checkpoint(
        [*((array(layer.weight), array(layer.bias)) for layer in hidden), logits],
        rules,
        settings.observation,
        training,
        settings.seed,
        status["revision"],
        status["strength"],
        value=value,
    )


def measure(learner: "Learner", settings: "Settings", status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy's points a deal over `counting`, on decks that no training deals."""
    rules = learner.batch.rules
    agent = PolicyAgent(policy_of(learner.network, rules, settings, status))
    evaluation = evaluate(
        [agent, "counting"],
        rules=rules,
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


def tensors_of(learner: "Learner") -> dict[str, Tensor]:
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


def save(folder: Path, settings: "Settings", learner: "Learner", status: Mapping[str, Any]) -> None:
    """Write the policy, and the state to go on from."""
    batch = learner.batch
    write_checkpoint(folder / POLICY, policy_of(learner.network, batch.rules, settings, status))
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors_of(learner).items()}
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


def go_on(folder: Path, learner: "Learner") -> dict[str, Any]:
    """Take up what the run in a folder saved last, if it has saved anything; return its status: how
    far it got, and how strong it was when it was measured last."""
    status: dict[str, Any] = {"update": 0, "plays": 0, "seconds": 0.0, "strength": None}
    if (folder / STATE).exists():
        status = load_state(folder, learner)
    if learner.opponents is not None:
        learner.opponents.use_folder(folder, status["update"])
    return status | {"revision": revision()}


def load_state(folder: Path, learner: "Learner") -> dict[str, Any]:
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
