"""Trained policies as files, `NAME.safetensors`: tensors, and the rest as JSON in the header.

The tensors, all float32: ``layers.0.weight`` (out, in), ``layers.0.bias`` (out,), and so on to the
last layer, which gives a logit for each action; and perhaps ``value.weight`` (1, in) and
``value.bias`` (1,), which estimate the rewards still to come from the last hidden layer. The
header's one entry ``pisti_env`` is a JSON object with the keys of `_FIELDS`.

Reading runs no code from the file, and checks all of it before anything is used. What cannot be
used raises `ValueError` with the path and the reason.
"""

import dataclasses
import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from pisti_env.files import read_file
from pisti_env.files import write_file as write_file
from pisti_env.observation import ENCODINGS, check_encoding, describe
from pisti_env.quote import quote, shorten
from pisti_env.rules import Rules, RulesLike, resolve_rules

# Raised when a field is added or changes its meaning, or when a piece of an observation does.
FORMAT_VERSION = 1

MAX_FILE_BYTES = 64 * 2**20
MAX_HEADER_BYTES = 2**20
MAX_LAYERS = 64
HEADER_KEY = "pisti_env"
ACTIVATIONS = ("relu",)

# The header's fields: the types that JSON gives them.
_FIELDS: dict[str, tuple[type, ...]] = {
    "format_version": (int,),
    "rules": (dict,),
    "observation": (str,),
    "layout": (list,),  # of [name, start, stop]
    "network": (dict,),  # sizes, from the observation's to the number of actions; activation
    "training": (dict,),  # the trainer's settings, and how far it got
    "seed": (int, type(None)),
    "revision": (str, type(None)),  # of the code that trained it
    "strength": (dict, type(None)),  # measured: points a deal over each opponent
}


@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained policy: a network, and the rules and the observation that it was made for."""

    rules: Rules
    observation: str
    layout: tuple[tuple[str, int, int], ...]
    """Name, start and stop of each piece of the observation."""
    sizes: tuple[int, ...]
    """Numbers in the observation, in each hidden layer, and actions."""
    activation: str
    weights: list[np.ndarray]
    """Of each layer, (out, in) float32."""
    biases: list[np.ndarray]
    """Of each layer, (out,) float32."""
    value: tuple[np.ndarray, np.ndarray] | None = None
    """Weight (1, in) and bias (1,) of the value, or None."""
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The rest of the header: format_version, training, seed, revision, strength."""
    path: str = "this checkpoint"
    """Where it was read from, for messages."""


def layout_of(observation: str, rules: Rules) -> tuple[tuple[str, int, int], ...]:
    """Return name, start and stop of each piece of an encoding."""
    return tuple((r.name, r.slice.start, r.slice.stop) for r in describe(observation, rules))


# Reading.


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Return the policy in a file; raise `ValueError`, naming it, for one that cannot be used."""
    told = shorten(str(path))
    try:
        return _parse(read_file(path, MAX_FILE_BYTES), str(path))
    except FileNotFoundError:
        raise ValueError(f"checkpoint {told} cannot be used: there is no such file") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"checkpoint {told} cannot be read: {reason}") from None
    except ValueError as error:
        raise ValueError(f"checkpoint {told} cannot be used: {error}") from None


def _parse(data: bytes, path: str) -> Checkpoint:
    """Return the policy that the bytes of a file hold; raise `ValueError` with what is wrong."""
    header = _parse_header(header_text(data))
    rules = Rules.from_dict(header["rules"])
    layout = _check_layout(header["observation"], header["layout"], rules)
    sizes = _check_network(header["network"], layout[-1][2], header["observation"])
    tensors = _parse_tensors(data, _tensor_shapes(sizes))
    layers = range(len(sizes) - 1)
    has_value = "value.bias" in tensors
    return Checkpoint(
        rules=rules,
        observation=header["observation"],
        layout=layout,
        sizes=sizes,
        activation=header["network"]["activation"],
        weights=[tensors[f"layers.{layer}.weight"] for layer in layers],
        biases=[tensors[f"layers.{layer}.bias"] for layer in layers],
        value=(tensors["value.weight"], tensors["value.bias"]) if has_value else None,
        metadata={
            name: header[name]
            for name in ("format_version", "training", "seed", "revision", "strength")
        },
        path=path,
    )


def header_text(data: bytes) -> str | None:
    """Return this package's entry of a safetensors header, None if it has none."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or len(data) < 8 + size:
        raise ValueError("it is not a safetensors file, or a part of one")
    if size > MAX_HEADER_BYTES:
        raise ValueError(f"its header has {size} bytes; expected at most {MAX_HEADER_BYTES}")
    try:
        entries = json.loads(data[8 : 8 + size])
        return entries.get("__metadata__", {}).get(HEADER_KEY)
    except (ValueError, RecursionError, AttributeError):
        raise ValueError("it is not a safetensors file: its header is damaged") from None


def _parse_tensors(data: bytes, shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Return the tensors by name; raise unless they are all there, in float32 and these shapes,
    and finite. Those of the value may be missing."""
    try:
        stored = dict(deserialize(data))  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ValueError(shorten(str(error))) from None
    tensors = {}
    for name, shape in shapes.items():
        if name in stored:
            tensors[name] = _check_tensor(name, stored.pop(name), shape)
        elif not name.startswith("value."):
            raise ValueError(f"its tensor {name!r} is missing")
    if stored:
        raise ValueError(f"its tensor {quote(min(stored))} is unknown")
    if len(tensors.keys() & {"value.weight", "value.bias"}) == 1:
        raise ValueError("it has one of value.weight and value.bias; expected both or neither")
    return tensors


def _check_tensor(name: str, stored: dict[str, Any], shape: list[int]) -> np.ndarray:
    """Return a stored tensor as an array; raise unless it is float32 of the shape and finite."""
    if stored["dtype"] != "F32":
        raise ValueError(f"its tensor {name!r} has dtype {stored['dtype']}; expected F32")
    if stored["shape"] != shape:
        raise ValueError(
            f"its tensor {name!r} has shape {quote(stored['shape'])}; expected {shape}"
        )
    numbers = np.frombuffer(stored["data"], "<f4").reshape(shape).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError(f"its tensor {name!r} has numbers that are not finite")
    return numbers


def _parse_header(text: str | None) -> dict[str, Any]:
    """Return the header's JSON object, every field there and of the right type."""
    if text is None:
        raise ValueError(f"its header has no {HEADER_KEY!r}, so it is not a policy of this package")
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({shorten(str(error))})") from None
    if not isinstance(header, dict):
        raise ValueError(f"its header is {_kind(header)}; expected a JSON object")
    # First, since a newer format may have other fields.
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its format_version is {quote(version)}; expected an int of 1 or more")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"its format version is {version} and this pisti_env reads up to {FORMAT_VERSION}; "
            "a newer pisti_env can read it"
        )
    for name, types in _FIELDS.items():
        if name not in header:
            raise ValueError(f"its header has no {name!r}")
        if type(header[name]) not in types:
            expected = " or ".join(_JSON_NAMES[one] for one in types)
            raise ValueError(f"its {name!r} is {_kind(header[name])}; expected {expected}")
    unknown = sorted(set(header) - set(_FIELDS))
    if unknown:
        raise ValueError(f"its header has an unknown field {quote(unknown[0])}")
    return header


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_JSON_NAMES = {
    int: "an int",
    float: "a number",
    bool: "a bool",
    str: "text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _kind(value: Any) -> str:
    return _JSON_NAMES[type(value)]


def _check_layout(
    observation: str, stored: list[Any], rules: Rules
) -> tuple[tuple[str, int, int], ...]:
    """Return today's layout of the observation; raise unless the file's is the same."""
    if observation not in ENCODINGS:
        raise ValueError(
            f"its observation is {quote(observation)}; this version has {', '.join(ENCODINGS)}"
        )
    layout = layout_of(observation, rules)
    for ours, theirs in itertools.zip_longest(layout, stored):
        if ours is None or theirs != list(ours):
            raise ValueError(
                f"its layout of {quote(observation)} is not this version's: it has "
                f"{shorten(json.dumps(theirs))} where this version has {json.dumps(ours)}"
            )
    return layout


def _check_network(network: dict[str, Any], inputs: int, observation: str) -> tuple[int, ...]:
    """Return the sizes of the layers; raise unless they fit the observation and its actions."""
    if set(network) != {"sizes", "activation"}:
        raise ValueError(f"its network has {quote(sorted(network))}; expected activation and sizes")
    if network["activation"] not in ACTIVATIONS:
        raise ValueError(
            f"its activation is {quote(network['activation'])}; expected {', '.join(ACTIVATIONS)}"
        )
    sizes, actions = network["sizes"], ENCODINGS[observation][0]
    if (
        not isinstance(sizes, list)
        or len(sizes) < 2
        or any(type(size) is not int or size < 1 for size in sizes)
    ):
        raise ValueError(
            f"its sizes are {quote(sizes)}; expected a list of two or more ints above 0"
        )
    if (sizes[0], sizes[-1]) != (inputs, actions):
        raise ValueError(
            f"its sizes are {quote(sizes)}; expected {inputs} first, the numbers of the "
            f"observation, and {actions} last, the actions"
        )
    if len(sizes) > MAX_LAYERS + 1:
        raise ValueError(f"it has {len(sizes) - 1} layers; expected at most {MAX_LAYERS}")
    size = 4 * sum(math.prod(shape) for shape in _tensor_shapes(tuple(sizes)).values())
    if size > MAX_FILE_BYTES:
        raise ValueError(
            f"its sizes are {quote(sizes)}, of which the tensors have more than the "
            f"{MAX_FILE_BYTES} bytes that a policy may have"
        )
    return tuple(sizes)


def _tensor_shapes(sizes: tuple[int, ...]) -> dict[str, list[int]]:
    """Return the shape of every tensor that a file may have."""
    shapes = {}
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        shapes[f"layers.{layer}.weight"] = [outputs, inputs]
        shapes[f"layers.{layer}.bias"] = [outputs]
    return {**shapes, "value.weight": [1, sizes[-2]], "value.bias": [1]}


# Playing under other rules.

# What must agree. The rest changes what the same cards are worth, not who holds how many.
_MUST_AGREE = ("players", "partners", "packs", "ranks", "copies", "hand_size")


def check_fit(
    who: str, made_for: Rules, asked: Rules, encoding: str, strict: bool = False
) -> str | None:
    """Return None if an agent was made for the rules asked of it, or one line of warning if it may
    play them all the same. Raise `ValueError` if it may not; if `strict`, at any difference."""
    ours, theirs = made_for.in_force(), asked.in_force()
    different = [name for name in ours if ours[name] != theirs[name]]
    if not different:
        return None
    for name in _MUST_AGREE:
        if name in different:
            raise ValueError(
                f"{who} was made for {name}={ours[name]!r} and cannot play {name}={theirs[name]!r}"
            )
    differences = ", ".join(f"{name} {ours[name]!r} -> {theirs[name]!r}" for name in different)
    if layout_of(encoding, made_for) != layout_of(encoding, asked):
        raise ValueError(
            f"{who} was made for rules whose observation has another layout ({differences})"
        )
    note = f"{who} was made for other rules ({differences})"
    if strict:
        raise ValueError(f"{note}, which strict refuses")
    return note


# Making and writing.


def make_checkpoint(
    layers: Sequence[tuple[Any, Any]],
    rules: RulesLike = "standard",
    observation: str = "kinds",
    training: Mapping[str, Any] | None = None,
    seed: int | None = None,
    revision: str | None = None,
    strength: Mapping[str, Any] | None = None,
    value: tuple[Any, Any] | None = None,
) -> Checkpoint:
    """Return a policy made of a network's `layers`, whatever trained it: `write_checkpoint` makes
    a file of it, `PolicyAgent` a player.

    `layers` are pairs of weight (out, in) and bias (out,), arrays that NumPy takes; between them is
    ReLU, and the last gives a logit for each action. `value`: weight (1, in) and bias (1,) on top
    of the last hidden layer, if there is one. `training`, `seed`, `revision` and `strength` go into
    the file as they are, for readers. Arrays are copied, as float32.

    Raises `ValueError` for unknown rules or encodings, and for layers that do not fit them or each
    other or have numbers that are not finite.
    """
    rules, observation = resolve_rules(rules), check_encoding(observation)
    pairs = [*layers] if value is None else [*layers, value]
    arrays = [(np.array(weight, np.float32), np.array(bias, np.float32)) for weight, bias in pairs]
    dimensions = [(weight.ndim, bias.ndim) for weight, bias in arrays]
    if not layers or any(pair != (2, 1) for pair in dimensions):
        raise ValueError(
            f"layers have dimensions {dimensions}; expected (2, 1), a weight and a bias, for each"
        )
    sizes = [arrays[0][0].shape[1], *(len(bias) for _, bias in arrays[: len(layers)])]
    layout = layout_of(observation, rules)
    _check_network({"sizes": sizes, "activation": "relu"}, layout[-1][2], observation)
    shapes = list(_tensor_shapes(tuple(sizes)).items())
    named = [array for pair in arrays for array in pair]
    for array, (name, shape) in zip(named, shapes, strict=False):
        if list(array.shape) != shape:
            raise ValueError(f"{name} has shape {list(array.shape)}; expected {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
    return Checkpoint(
        rules=rules,
        observation=observation,
        layout=layout,
        sizes=tuple(sizes),
        activation="relu",
        weights=[weight for weight, _ in arrays[: len(layers)]],
        biases=[bias for _, bias in arrays[: len(layers)]],
        value=None if value is None else arrays[-1],
        metadata={
            "training": dict(training or {}),
            "seed": seed,
            "revision": revision,
            "strength": None if strength is None else dict(strength),
        },
    )


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a policy to a file, all of it or nothing; see `write_file`.

    Raises `ValueError` for one that `read_checkpoint` would refuse, and writes nothing then.
    """
    tensors: dict[str, np.ndarray] = {}
    for layer, (weight, bias) in enumerate(zip(checkpoint.weights, checkpoint.biases, strict=True)):
        tensors[f"layers.{layer}.weight"] = weight
        tensors[f"layers.{layer}.bias"] = bias
    if checkpoint.value is not None:
        tensors["value.weight"], tensors["value.bias"] = checkpoint.value
    header = {
        "rules": checkpoint.rules.to_dict(),
        "observation": checkpoint.observation,
        "layout": checkpoint.layout,
        "network": {"sizes": checkpoint.sizes, "activation": checkpoint.activation},
        "training": {},
        "seed": None,
        "revision": None,
        "strength": None,
        **checkpoint.metadata,
        "format_version": FORMAT_VERSION,
    }
    try:
        data = pack(tensors, header)
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(f"it would have {len(data)} bytes; expected at most {MAX_FILE_BYTES}")
        _parse(data, str(path))
    except (TypeError, ValueError, RecursionError, SafetensorError) as error:  # no data of JSON
        raise ValueError(
            f"checkpoint {shorten(str(path))} was not written, since it could not be read again: "
            f"{shorten(str(error))}"
        ) from None
    write_file(path, data)


def pack(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """Return the bytes of a safetensors file with JSON in its header."""
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    return save(arrays, {HEADER_KEY: json.dumps(header, allow_nan=False)})
