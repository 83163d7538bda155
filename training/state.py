"""What is saved of a run: the policy, to play with, and the state, to go on from.

A state is a safetensors file: the tensors of the network and of its optimizer, what a match carries
over, and where the tables of a match are. Its header says, as JSON, how far the run is (the status)
and the SHA-256 of all this. Nothing in it is believed: before anything is taken up, every tensor is
compared with the learner's own in name, shape, dtype and range.
"""

import dataclasses
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from torch import Tensor

from pisti_env.agents import shipped_checkpoints
from pisti_env.agents.checkpoint import (
    Checkpoint,
    check_fit,
    header_text,
    make_checkpoint,
    pack,
    read_checkpoint,
    write_checkpoint,
)
from pisti_env.agents.policy import PolicyAgent
from pisti_env.arena import evaluate, revision
from pisti_env.files import read_file, write_file
from pisti_env.quote import quote, shorten
from pisti_env.rules import Rules
from training.network import Network
from training.runs import METRICS, POLICY, STATE

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Learner, Settings

STATE_FORMAT = 2
MEASURING_SEED = 1  # 0 is what published figures are measured with
MAX_HEADER_BYTES = 2**20
MAX_STATE_BYTES = 2**34
MAX_ADAM_STEPS = 2**24  # Adam counts in float32

Status = dict[str, Any]


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


def player_of(learner: "Learner", settings: "Settings", status: Mapping[str, Any]) -> PolicyAgent:
    """Return the policy as it is now, as an agent."""
    return PolicyAgent(policy_of(learner.network, learner.batch.rules, settings, status))


def measure(learner: "Learner", settings: "Settings", status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy's points a deal over `counting`, on decks that no training deals."""
    evaluation = evaluate(
        [player_of(learner, settings, status), "counting"],
        rules=learner.batch.rules,
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
    """Write the state to go on from, and then the policy, which so is never ahead of the state."""
    write_file(folder / STATE, pack(arrays := arrays_of(learner), header_of(arrays, status)))
    policy = policy_of(learner.network, learner.batch.rules, settings, status)
    write_checkpoint(folder / POLICY, policy)


def arrays_of(learner: "Learner") -> dict[str, np.ndarray]:
    """Return all that a run goes on from, by name."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors_of(learner).items()}
    if learner.batch.rules.target is not None:  # else an update begins at new tables
        tables = learner.batch.get_state()
        arrays |= {f"tables.{name}": array for name, array in tables.items()}
    return arrays


def header_of(arrays: Mapping[str, np.ndarray], status: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the header of a state says."""
    return {"format": STATE_FORMAT, "status": status, "sha256": digest(arrays, status)}


def digest(arrays: Mapping[str, np.ndarray], status: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a state: of its status, and of name, dtype, shape and numbers of each
    array."""
    hashed = hashlib.sha256(json.dumps(status, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        hashed.update(f"{name} {array.dtype.str} {arrays[name].shape}".encode())
        hashed.update(array.data)
    return hashed.hexdigest()


# Going on.


def go_on(folder: Path, learner: "Learner") -> Status:
    """Take up what the run in a folder saved last, if it has saved anything; return its status: how
    far it got, and how strong it was when it was measured last.

    Raises `ValueError` if that cannot be used, or if what was learned would be overwritten by what
    has learned less; no file has been changed then.
    """
    path = folder / STATE
    status: Status = {"update": 0, "plays": 0, "seconds": 0.0, "strength": None}
    if path.exists():
        size = sum(array.nbytes for array in arrays_of(learner).values())
        # The optimizer has twice the network's numbers, and at first none.
        status, arrays = read_state(path, 4 * size + MAX_HEADER_BYTES)
        try:
            check_status(status, learner)
            check_arrays(arrays, status, learner)
            take_up(arrays, learner)
        except ValueError as error:
            raise ValueError(f"{path} cannot be used, so the run cannot go on: {error}") from None
        check_policy(folder, status)
    else:
        for name in (POLICY, METRICS):
            if (folder / name).exists():
                raise ValueError(
                    f"run {folder} has {name} and no {STATE}, so it cannot go on, and is left as "
                    f"it is; a new run can begin with its policy: --start-from {folder}"
                )
    if learner.opponents is not None:
        learner.opponents.use_folder(folder, status["update"])
    return status | {"revision": revision()}


def read_state(path: Path, most: int = MAX_STATE_BYTES) -> tuple[Status, dict[str, np.ndarray]]:
    """Return status and arrays of a state, as they were written. Whether they fit a learner is not
    checked here. Raises `ValueError` naming the file, of at most `most` bytes."""
    try:
        data = read_file(path, most)
        text = header_text(data)
        header = json.loads(text or "null")
        if not isinstance(header, dict) or set(header) != {"format", "status", "sha256"}:
            raise ValueError("it is no state that this version of the trainer has written")
        if header["format"] != STATE_FORMAT:
            raise ValueError(f"its format is {quote(header['format'])}; expected {STATE_FORMAT}")
        arrays = parse_tensors(data)
        if header["sha256"] != digest(arrays, header["status"]):
            raise ValueError("it is damaged: its SHA-256 is not the one that its header says")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be used: {shorten(str(error))}") from None
    return header["status"], arrays


def check_policy(folder: Path, status: Status) -> None:
    """Raise `ValueError` if the policy in a run's folder has learned more than its state."""
    if (folder / POLICY).exists():
        training = read_checkpoint(folder / POLICY).metadata["training"]
        learned = training.get("update")
        if type(learned) is not int or learned > status["update"]:
            raise ValueError(
                f"{folder / POLICY} has learned from {quote(learned)} updates and {STATE} from "
                f"{status['update']}; going on would overwrite it, so move it away first"
            )


def check_status(status: Any, learner: "Learner") -> None:
    """Raise `ValueError` naming a field of the status that is wrong."""

    def check(name: str, fine: Callable[[Any], bool], expected: str, of: Any = status) -> None:
        if not isinstance(of, dict) or name not in of:
            raise ValueError(f"its status has no {name!r}")
        if not fine(of[name]):
            raise ValueError(f"its {name} is {quote(of[name])}; expected {expected}")

    def is_count(value: Any) -> bool:
        return type(value) is int and 0 <= value < 2**63

    def is_number(value: Any) -> bool:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max

    def is_text(value: Any) -> bool:
        return value is None or type(value) is str

    check("update", is_count, "an int of 0 or more")
    plays = status["update"] * learner.batch.rules.num_plays * learner.batch.num_envs
    check("plays", lambda value: type(value) is int and value == plays, f"{plays}")
    check("seconds", lambda v: is_number(v) and v >= 0, "a number of 0 or more")
    check("revision", is_text, "text or null")
    check("strength", lambda v: v is None or isinstance(v, dict), "an object or null")
    strength = status["strength"]
    if strength is not None:
        check("opponent", lambda value: type(value) is str, "text", strength)
        check("decks", is_count, "an int of 0 or more", strength)
        for name in ("points_a_deal", "low", "high"):
            check(name, is_number, "a number", strength)
    unknown = status.keys() - {"update", "plays", "seconds", "revision", "strength"}
    if unknown:
        raise ValueError(f"its status has an unknown field {quote(min(unknown))}")


def check_arrays(
    arrays: Mapping[str, np.ndarray], status: Mapping[str, Any], learner: "Learner"
) -> None:
    """Raise `ValueError` naming a tensor that is not as the learner's own; those of the tables are
    checked where they are taken up."""
    expected = expected_arrays(arrays, status, learner)
    for name, (shape, dtype) in expected.items():
        check_array(name, arrays.get(name), shape, dtype)
    unknown = arrays.keys() - expected.keys()
    if unknown:
        raise ValueError(f"its tensor {quote(min(unknown))} is unknown")
    num_actions = learner.batch.action_masks.shape[1]
    for name, array in arrays.items():
        last = name.rsplit(".", 1)[-1]
        if name.startswith("optimizer.") and last == "step":
            check_range(name, array, 1, MAX_ADAM_STEPS, whole=True)
        elif name.startswith("optimizer.") and last == "exp_avg_sq":
            check_range(name, array, 0, math.inf)
        elif name == "carried.actions":
            check_range(name, array, 0, num_actions - 1)
        elif name in ("carried.masks", "carried.goes_on"):
            check_range(name, array, 0, 1, whole=True)


def check_array(name: str, array: np.ndarray | None, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise `ValueError` for a tensor that is missing, or of another shape or dtype, or has numbers
    that are not finite."""
    if array is None:
        raise ValueError(f"its tensor {name!r} is missing")
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"its tensor {name!r} has shape {array.shape} and dtype {array.dtype}; expected "
            f"{shape} and {np.dtype(dtype)}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"its tensor {name!r} has numbers that are not finite")


def check_range(name: str, array: np.ndarray, low: float, high: float, whole: bool = False) -> None:
    """Raise `ValueError` unless all numbers of a tensor are from `low` to `high`."""
    fine = (array >= low) & (array <= high)
    if whole:
        fine &= array == np.floor(array)
    if not fine.all():
        wrong = array[~fine].flat[0]
        kind = "whole numbers" if whole else "numbers"
        raise ValueError(f"its tensor {name!r} has {wrong}; expected {kind} from {low} to {high}")


def expected_arrays(
    arrays: Mapping[str, np.ndarray], status: Mapping[str, Any], learner: "Learner"
) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and dtype, by name, of what a state must have. Before a run has learned, it has
    nothing of the optimizer; before it has played, it carries nothing over."""
    batch, buffers = learner.batch, learner.buffers
    optimized = any(name.startswith("optimizer.") for name in arrays)
    expected: dict[str, tuple[tuple[int, ...], Any]] = {}
    for name, parameter in learner.network.named_parameters():
        shape = tuple(parameter.shape)
        expected[f"network.{name}"] = shape, np.float32
        # A match's first update may have nothing to learn from.
        if status["update"] > 1 or optimized:
            expected[f"optimizer.{name}.step"] = (), np.float32
            expected[f"optimizer.{name}.exp_avg"] = shape, np.float32
            expected[f"optimizer.{name}.exp_avg_sq"] = shape, np.float32
    if batch.rules.target is not None:
        if status["update"] > 0:
            tables = (batch.num_envs,)
            expected["carried.rewards"] = (buffers.players, *tables), np.float32
            expected["carried.goes_on"] = tables, np.float32
            for name, buffer in buffers.plays.items():
                last = buffer[-buffers.carried :].cpu().numpy()
                expected[f"carried.{name}"] = last.shape, last.dtype
        for name, array in batch.get_state().items():
            expected[f"tables.{name}"] = array.shape, array.dtype
    return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in expected.items()}


def take_up(arrays: Mapping[str, np.ndarray], learner: "Learner") -> None:
    """Have the learner go on from arrays that were checked; raise `ValueError`, before anything is
    changed, for tables that nobody can have played to."""
    batch, network, optimizer, buffers, _ = learner
    if batch.rules.target is not None:
        prefix = "tables."
        batch.set_state(
            {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        )
    for name, parameter in network.named_parameters():
        parameter.data.copy_(torch.tensor(arrays[f"network.{name}"]))
        optimizer.state[parameter] = {
            key: torch.tensor(arrays[f"optimizer.{name}.{key}"]).to(parameter.device)
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"optimizer.{name}.{key}" in arrays
        }
    if "carried.rewards" in arrays:
        device = buffers.plays["values"].device
        buffers.carried_rewards = torch.tensor(arrays["carried.rewards"]).to(device)
        buffers.carried_goes_on = torch.tensor(arrays["carried.goes_on"]).to(device)
        for name, buffer in buffers.plays.items():
            buffer[-buffers.carried :] = torch.tensor(arrays[f"carried.{name}"])


# Starting from what was learned before.


def start_from(source: Path, settings: "Settings", learner: "Learner") -> None:
    """Give a new run's network the weights of another run, of a policy's file or of a policy that
    comes with the package. A critic that is not there, or not asked for, stays as it is.

    Raises `ValueError` for anything else, and for what does not fit the settings.
    """
    folder, network, shipped = source, learner.network, shipped_checkpoints()
    if source.is_dir():
        if not (folder / STATE).exists() and not (folder / POLICY).exists():
            raise ValueError(f"start-from is {source}, which has neither {STATE} nor {POLICY}")
        source = folder / POLICY
    elif str(source) in shipped:
        source = shipped[str(source)]
    elif not source.exists():
        raise ValueError(
            f"start-from is {quote(str(source))}; expected the folder of a run, the file of a "
            f"policy, or one of {', '.join(sorted(shipped))}"
        )
    if source.exists():
        policy = read_checkpoint(source)
        check_start(policy, settings, learner.batch.rules)
        network.take_up([*zip(policy.weights, policy.biases, strict=True)], policy.value)
    if folder.is_dir() and (folder / STATE).exists():  # it has the critic too
        try:
            weights = read_state(folder / STATE)[1]
        except ValueError as error:
            alone = f"--start-from {folder / POLICY} begins with the policy alone"
            raise ValueError(f"{error}; {alone}") from None
        for name, parameter in network.named_parameters():
            array = weights.get(f"network.{name}")
            if array is None and name.startswith("critic."):
                continue
            try:
                check_array(f"network.{name}", array, tuple(parameter.shape), np.float32)
            except ValueError as error:
                raise ValueError(f"{folder / STATE} cannot be started from: {error}") from None
            parameter.data.copy_(torch.tensor(array))


def check_start(policy: Checkpoint, settings: "Settings", rules: Rules) -> None:
    """Raise `ValueError` if a network of these settings cannot begin with a policy; tell if the
    policy was made for other rules."""
    if policy.observation != settings.observation:
        raise ValueError(
            f"observation is {settings.observation!r} and {policy.path} was made for "
            f"{policy.observation!r}; give --observation {policy.observation}"
        )
    note = check_fit(policy.path, policy.rules, rules, policy.observation)
    hidden = policy.sizes[1:-1]
    if hidden != settings.hidden:
        raise ValueError(
            f"hidden is {settings.hidden} and {policy.path} has {hidden}; give --hidden "
            f"{' '.join(map(str, hidden))}"
        )
    if note is not None:
        print(note, file=sys.stderr)
