"""Checkpoints: a round trip, every kind of damage, other rules, a full disk; playing them."""

import contextlib
import dataclasses
import errno
import itertools
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from pisti_env import Rules, arena, files
from pisti_env import agents as players
from pisti_env.agents import checkpoint as checkpoints
from pisti_env.agents.checkpoint import (
    FORMAT_VERSION,
    HEADER_KEY,
    Checkpoint,
    check_fit,
    layout_of,
    make_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from pisti_env.agents.policy import PolicyAgent, multiply, sample
from pisti_env.files import check_can_write, is_temporary, write_file
from pisti_env.vector import DealBatch

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = sorted(ROOT.glob("checkpoints/*.safetensors"))


def make(rules=None, observation="kinds", hidden=(8, 6), seed=0, **metadata):
    rules = rules or Rules()
    layout = layout_of(observation, rules)
    sizes = (layout[-1][2], *hidden, 15 if observation.startswith("kinds") else 52)
    generator = np.random.default_rng(seed)

    def random_array(*shape):
        return generator.normal(scale=0.3, size=shape).astype(np.float32)

    return Checkpoint(
        rules=rules,
        observation=observation,
        layout=layout,
        sizes=sizes,
        activation="relu",
        weights=[random_array(o, i) for i, o in itertools.pairwise(sizes)],
        biases=[random_array(o) for o in sizes[1:]],
        value=(random_array(1, sizes[-2]), random_array(1)),
        metadata=metadata,
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "policy.safetensors"
    write_checkpoint(path, make())
    return path


def tampered(path, change=lambda tensors, header: None, text=None):
    """Rewrite a file after `change(tensors, header)`, or with `text` for its header."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][HEADER_KEY])
    tensors = load(data)
    change(tensors, header)
    path.write_bytes(save(tensors, {HEADER_KEY: text or json.dumps(header)}))


def reason(path):
    with pytest.raises(ValueError) as error:
        read_checkpoint(path)
    text = str(error.value)
    assert str(path) in text
    assert "\n" not in text
    return text


# Reading and writing.


@pytest.mark.parametrize("observation", ["basic", "full", "kinds", "kinds_history"])
@pytest.mark.parametrize("rules", [Rules(), Rules(players=5, target=151), Rules(partners=None)])
def test_round_trip(tmp_path, rules, observation):
    path = tmp_path / "policy.safetensors"
    training = {"steps": 5, "hidden": [8, 6]}
    strength = {"opponent": "counting", "points_a_deal": 1.5}
    ours = make(rules, observation, seed=3, training=training, revision="abc", strength=strength)
    ours.metadata["seed"] = 7
    write_checkpoint(path, ours)
    theirs = read_checkpoint(path)
    for name in ("rules", "observation", "layout", "sizes", "activation"):
        assert getattr(ours, name) == getattr(theirs, name)
    for mine, other in zip(
        [*ours.weights, *ours.biases, *ours.value],
        [*theirs.weights, *theirs.biases, *theirs.value],
        strict=True,
    ):
        assert mine.dtype == other.dtype == np.float32
        assert np.array_equal(mine, other)
    assert theirs.metadata == {
        "format_version": FORMAT_VERSION,
        "training": training,
        "seed": 7,
        "revision": "abc",
        "strength": strength,
    }
    assert theirs.path == str(path)


def test_the_value_may_be_missing(tmp_path):
    path = tmp_path / "policy.safetensors"
    write_checkpoint(path, dataclasses.replace(make(), value=None))
    assert read_checkpoint(path).value is None


def test_no_file(tmp_path):
    assert "no such file" in reason(tmp_path / "none.safetensors")
    assert "not a plain file" in reason(tmp_path)


def test_no_tensors(path):
    data = path.read_bytes()
    for damage in (
        b"",
        b"x",
        data[:7],
        data[:-1],
        data + b"x",
        b"\x80\x04\x95pickled",
        b"\xff" * 8 + data[8:],
    ):
        path.write_bytes(damage)
        reason(path)


def test_every_byte_of_the_header_may_be_damaged(path):
    data = path.read_bytes()
    generator = np.random.default_rng(0)
    length = int.from_bytes(data[:8], "little")
    for _ in range(300):  # of most it says what is wrong; a digit of the settings may be another
        place = int(generator.integers(8 + length))
        damage = bytearray(data)
        damage[place] = int(generator.integers(256))
        path.write_bytes(damage)
        with contextlib.suppress(ValueError):
            read_checkpoint(path)


def test_too_large(path, monkeypatch):
    monkeypatch.setattr(checkpoints, "MAX_FILE_BYTES", 1000)
    assert "at most 1000" in reason(path)


def test_a_header_is_not_read_at_any_length(path):
    length = checkpoints.MAX_HEADER_BYTES + 1
    path.write_bytes(length.to_bytes(8, "little") + b" " * length)
    assert f"header has {length} bytes" in reason(path)


def test_long_names_are_not_quoted_whole(path):
    name = "x" * 500_000
    tampered(path, lambda tensors, header: tensors.update({name: np.zeros(2, np.float32)}))
    assert "is unknown" in reason(path) and len(reason(path)) < 1000
    with pytest.raises(ValueError, match="File name too long") as error:
        read_checkpoint(name)
    assert len(str(error.value)) < 1000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a plain file" in reason(tmp_path / "pipe")


def test_unreadable(path, monkeypatch):
    def refuse(*args, **fields):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files, "open", refuse, raising=False)
    assert "Permission denied" in reason(path)


def test_not_a_policy(path):
    path.write_bytes(save({"layers.0.weight": np.zeros((2, 2), np.float32)}))
    assert "not a policy" in reason(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("NaN", "NaN"),
        ("[]", "expected a JSON object"),
        ("{}", "format_version"),
        ('{"format_version": true}', "format_version is True"),
        ('{"format_version": 0}', "format_version is 0"),
        ('{"format_version": 999, "new": 1}', "newer pisti_env"),
        ('{"format_version": 1}', "no 'rules'"),
    ],
)
def test_wrong_header(path, text, expected):
    tampered(path, text=text)
    assert expected in reason(path)


HEADERS = {
    "rules": [
        ([], "'rules' is a list"),
        ({"players": 9}, "players is 9"),
        ({"seats": 2}, "'seats'"),
        ({"players": 3}, "layout"),
    ],
    "observation": [(3, "'observation' is an int"), ("faces", "'faces'"), ("full", "layout")],
    "layout": [
        ({}, "'layout' is an object"),
        ([], "layout"),
        ([["hand", 0, 15]], "layout"),
        ([["hand", 0, 15], 3], "layout"),
    ],
    "network": [
        ([], "'network' is a list"),
        ({}, "activation and sizes"),
        ({"sizes": [120, 8, 6, 15], "activation": "gelu"}, "'gelu'"),
        ({"sizes": [120, 8, 6, 15], "activation": []}, "activation"),
        ({"sizes": "many", "activation": "relu"}, "'many'"),
        ({"sizes": [15], "activation": "relu"}, "two or more"),
        ({"sizes": [120, -8, 6, 15], "activation": "relu"}, "above 0"),
        ({"sizes": [120, 8.0, 6, 15], "activation": "relu"}, "above 0"),
        ({"sizes": [119, 8, 6, 15], "activation": "relu"}, "120 first"),
        ({"sizes": [120, 8, 6, 52], "activation": "relu"}, "15 last"),
        ({"sizes": [120, 8, 15], "activation": "relu"}, "shape"),
        ({"sizes": [120, 8, 6, 15, 15], "activation": "relu"}, "missing"),
        ({"sizes": [120, 2**60, 6, 15], "activation": "relu"}, "more than"),
        ({"sizes": [120, *[1] * 64, 15], "activation": "relu"}, "65 layers; expected at most 64"),
        ({"sizes": [1] * 200_000, "activation": "relu"}, "120 first"),
        ({"sizes": [120, *[1] * 200_000, 15], "activation": "relu"}, "200001 layers"),
        ({"sizes": "x" * 500_000, "activation": "relu"}, "(500002 characters)"),
    ],
    "training": [(None, "'training' is null")],
    "seed": [("one", "'seed' is text"), (1.5, "'seed' is a number"), (True, "'seed' is a bool")],
    "revision": [(1, "'revision' is an int")],
    "strength": [([], "'strength' is a list")],
    "more": [(1, "unknown field 'more'")],
}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [(name, value, expected) for name, cases in HEADERS.items() for value, expected in cases],
)
def test_wrong_field(path, name, value, expected):
    tampered(path, lambda tensors, header: header.update({name: value}))
    assert expected in reason(path)


@pytest.mark.parametrize("name", [name for name in HEADERS if name != "more"])
def test_missing_field(path, name):
    tampered(path, lambda tensors, header: header.pop(name))
    assert f"no '{name}'" in reason(path)


def test_missing_and_unknown_tensors(path):
    tampered(path, lambda tensors, header: tensors.update(extra=np.zeros(2, np.float32)))
    assert "'extra' is unknown" in reason(path)
    write_checkpoint(path, make())
    tampered(path, lambda tensors, header: tensors.pop("value.bias"))
    assert "value.weight and value.bias" in reason(path)
    write_checkpoint(path, make())
    tampered(path, lambda tensors, header: tensors.pop("layers.1.bias"))
    assert "'layers.1.bias' is missing" in reason(path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(8, np.float64), "dtype F64"),
        (np.zeros(8, np.float16), "dtype F16"),
        (np.zeros(8, np.int32), "dtype I32"),
        (np.zeros(7, np.float32), "shape [7]"),
        (np.zeros((8, 1), np.float32), "shape [8, 1]"),
        (np.array(0, np.float32), "shape []"),
        (np.full(8, np.nan, np.float32), "not finite"),
        (np.full(8, -np.inf, np.float32), "not finite"),
    ],
)
def test_wrong_tensor(path, value, expected):
    tampered(path, lambda tensors, header: tensors.update({"layers.0.bias": value}))
    text = reason(path)
    assert expected in text
    assert "'layers.0.bias'" in text


# Full disks.


class FullFile:
    """A file that takes some bytes, as a disk does before it is full."""

    def __init__(self, path, mode):
        self.file = open(path, mode)  # noqa: SIM115

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        self.file.write(data[:100])
        self.file.flush()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(files, "open", FullFile, raising=False)
    with pytest.raises(OSError, match="No space left on device") as error:
        write_checkpoint(path, make(seed=1))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_full_disk_leaves_nothing_new(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "open", FullFile, raising=False)
    with pytest.raises(OSError, match="No space left"):
        write_checkpoint(tmp_path / "new.safetensors", make())
    assert not list(tmp_path.iterdir())


def test_no_folder_to_write_to(tmp_path):
    with pytest.raises(OSError, match="could not be written"):
        write_file(tmp_path / "none" / "policy.safetensors", b"")


@pytest.mark.parametrize("what", ["a folder", "a pipe", "a link to a device"])
def test_only_a_plain_file_is_replaced(tmp_path, what):
    path = tmp_path / "policy.safetensors"
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(OSError, match="not a plain file"):
        write_checkpoint(path, make())
    with pytest.raises(OSError, match="not a plain file"):
        check_can_write(path)
    assert list(tmp_path.iterdir()) == [path] and not path.is_file()


def test_a_link_is_followed(tmp_path, path):
    folder = tmp_path / "folder"
    folder.mkdir()
    link = folder / "link.safetensors"
    link.symlink_to(path)
    before, mode = path.read_bytes(), path.stat().st_mode
    write_checkpoint(link, make(seed=1))
    assert link.is_symlink() and path.read_bytes() != before and path.stat().st_mode == mode
    assert sorted(folder.iterdir()) == [link]


def test_a_link_to_nothing_makes_what_it_points_to(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "new")
    check_can_write(link)
    write_file(link, b"data")
    assert link.is_symlink() and (tmp_path / "new").read_bytes() == b"data"


def test_links_in_a_circle_and_names_that_cannot_be(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(link)
    for path in (link, tmp_path / ("x" * 1000), f"{tmp_path}/a\0b"):
        for write in (check_can_write, lambda path: write_file(path, b"")):
            with pytest.raises(OSError, match="written") as error:
                write(path)
            assert len(str(error.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == [link]


def test_an_interrupted_writer_leaves_nothing(path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    before = path.read_bytes()
    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(path, make(seed=1))
    assert list(path.parent.iterdir()) == [path] and path.read_bytes() == before


def wide():
    """A network of 64 MiB and more."""
    inputs = layout_of("kinds", Rules())[-1][2]
    return dataclasses.replace(
        make(),
        sizes=(inputs, 2**18, 15),
        weights=[np.zeros((2**18, inputs), np.float32), np.zeros((15, 2**18), np.float32)],
        biases=[np.zeros(2**18, np.float32), np.zeros(15, np.float32)],
        value=None,
    )


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        (lambda: make_with(seed="x"), "'seed' is text"),
        (lambda: make_with(revision=5), "'revision' is an int"),
        (lambda: make_with(training=[]), "'training' is a list"),
        (lambda: make_with(training={"rate": float("nan")}), "NaN|float"),
        (lambda: make_with(training={"path": Path("x")}), "not JSON serializable"),
        (lambda: make_with(training={"notes": "x" * 2**20}), "header has"),
        (lambda: make_with(more=1), "unknown field 'more'"),
        (lambda: dataclasses.replace(make(), sizes=(120, 9, 6, 15)), "shape"),
        (lambda: dataclasses.replace(make(), activation="gelu"), "'gelu'"),
        (lambda: dataclasses.replace(make(), observation="full"), "layout"),
        (
            lambda: dataclasses.replace(make(), biases=[b.astype("f8") for b in make().biases]),
            "F64",
        ),
        (lambda: dataclasses.replace(make(), biases=[b * np.nan for b in make().biases]), "finite"),
        (wide, "more than|at most"),
    ],
)
def test_nothing_is_written_that_would_not_be_read(path, checkpoint, said):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=said) as error:
        write_checkpoint(path, checkpoint())
    assert str(path) in str(error.value) and len(str(error.value).splitlines()) == 1
    assert list(path.parent.iterdir()) == [path] and path.read_bytes() == before


def make_with(**metadata):
    made = make()
    made.metadata.update(metadata)
    return made


def test_what_a_killed_writer_left_is_no_obstacle(path):
    left = path.with_name(f"{path.name}.1.tmp")
    assert is_temporary(left, path.name) and not is_temporary(left, "policy")
    assert not is_temporary(path.with_name("mine.tmp"), path.name)
    left.write_bytes(b"half")
    write_checkpoint(path, make(seed=1))
    assert sorted(path.parent.iterdir()) == [path, left]
    read_checkpoint(path)


# Other rules.


@pytest.mark.parametrize(
    "rules",
    [
        Rules(target=151),
        Rules(pisti_points=5),
        Rules(last_card_pisti=True),
        Rules(majority="more_than_half"),
        Rules(starters_seen_by="all"),
    ],
)
def test_rules_that_a_policy_may_play(path, rules):
    line = check_fit(str(path), Rules(), rules, "kinds")
    assert line is not None and "\n" not in line
    with pytest.warns(UserWarning, match="made for other rules") as caught:
        agent = players.load(path, rules)
    assert [str(warning.message) for warning in caught] == [line]
    assert agent.rules == Rules()
    with pytest.raises(ValueError, match="made for other rules"):
        players.load(path, rules, strict=True)
    with pytest.warns(UserWarning, match="made for other rules"):
        evaluation = arena.evaluate([path, "greedy"], rules, deals=2, match=False)
    assert evaluation.notes == (line,)


def test_by_default_a_policy_plays_its_own_rules(tmp_path, monkeypatch):
    monkeypatch.setattr(players, "CHECKPOINT_FOLDERS", (tmp_path,))
    rules = Rules(players=4, target=60)
    write_checkpoint(tmp_path / "four.safetensors", make(rules))
    assert players.load("four", strict=True).rules == rules


@pytest.mark.parametrize("rules", [Rules(), Rules(packs=1), Rules(partners=False)])
def test_the_same_rules_written_otherwise(path, rules):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PolicyAgent(read_checkpoint(path), rules, strict=True)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(players=3), "players=2"),
        (Rules(packs=2), "packs=1"),
        (Rules(ranks=12), "ranks=13"),
        (Rules(copies=3), "copies=4"),
        (Rules(hand_size=3), "hand_size=4"),
        (Rules(bottom_card_shown=True), "another layout"),
        (Rules(starter_jack="stock_bottom"), "another layout"),
    ],
)
def test_rules_that_a_policy_may_not_play(path, rules, expected):
    with pytest.raises(ValueError, match=expected) as error:
        PolicyAgent(read_checkpoint(path), rules)
    assert "\n" not in str(error.value)


def test_partners_are_not_opponents():
    with pytest.raises(ValueError, match="partners=True and cannot play partners=False"):
        check_fit("it", Rules(players=4), Rules(players=4, partners=False), "kinds")


# Playing.


def moments(observation="kinds", tables=200, plays=2):
    batch = DealBatch(tables, observation=observation, seed=0)
    for _ in range(plays):
        batch.step(batch.action_masks.argmax(axis=1))
    return batch.observations, batch.action_masks


@pytest.mark.parametrize("observation", ["kinds", "full"])
def test_it_plays_its_best_card(observation):
    checkpoint = make(observation=observation)
    observations, masks = moments(observation)
    hidden = observations.astype(np.float64)
    for weight, bias in zip(checkpoint.weights[:-1], checkpoint.biases[:-1], strict=True):
        hidden = np.maximum(hidden @ weight.T + bias, 0)
    logits = hidden @ checkpoint.weights[-1].T + checkpoint.biases[-1]
    best = np.where(masks == 1, logits, -np.inf).argmax(axis=1)
    agent = PolicyAgent(checkpoint)
    assert agent.observation == observation
    assert agent.rules == Rules()
    actions = agent.act(observations, masks)
    assert actions.dtype == np.int64
    assert np.array_equal(actions, best)
    for row in range(20):
        action = agent.act(observations[row], masks[row])
        assert type(action) is int
        assert action == best[row]


@pytest.mark.compiled  # plain Python leaves products to NumPy
def test_a_row_gives_the_same_numbers_alone_and_among_many():
    """To the last bit, which NumPy's products on several threads do not."""
    agent = PolicyAgent(make(hidden=(256, 256)))
    observations, _ = moments(tables=300)
    together = agent.logits(observations)
    for row in range(0, 300, 7):
        assert np.array_equal(agent.logits(observations[row : row + 1])[0], together[row])
    assert np.array_equal(agent.logits(observations[3:201]), together[3:201])
    assert agent.logits(observations[:0]).shape == (0, 15)


def test_the_lowest_of_equals():
    checkpoint = make()
    checkpoint.weights[-1][:] = 0
    checkpoint.biases[-1][:] = 0
    observations, masks = moments()
    actions = PolicyAgent(checkpoint).act(observations, masks)
    assert np.array_equal(actions, masks.argmax(axis=1))


def test_draws_depend_on_their_seeds_alone():
    observations, masks = moments()
    seeds = np.random.default_rng(0).integers(2**64, size=len(masks), dtype=np.uint64)
    agent = PolicyAgent(make(), sample=True, seed=1)
    actions = agent.act(observations, masks, seeds)
    other = PolicyAgent(make(), sample=True, seed=2)
    order = np.random.default_rng(1).permutation(len(masks))
    assert np.array_equal(
        other.act(observations[order], masks[order], seeds[order]), actions[order]
    )
    for row in range(30):
        assert agent.act(observations[row], masks[row], seeds[row : row + 1]) == actions[row]
        assert agent.act(observations[row], masks[row], seeds[row]) == actions[row]


def test_draws_without_seeds():
    observations, masks = moments()
    agent, again, other = (PolicyAgent(make(), sample=True, seed=seed) for seed in (1, 1, 2))
    actions = agent.act(observations, masks)
    assert np.array_equal(actions, again.act(observations, masks))
    assert not np.array_equal(actions, agent.act(observations, masks))
    assert not np.array_equal(actions, other.act(observations, masks))


def test_draws_are_legal_and_as_likely_as_said():
    observations, masks = moments(tables=1)
    size = 100_000
    seeds = np.arange(size, dtype=np.uint64)
    agent = PolicyAgent(make(), sample=True)
    actions = agent.act(observations.repeat(size, axis=0), masks.repeat(size, axis=0), seeds)
    weights = np.exp(agent.logits(observations)[0]) * masks[0]
    expected = weights / weights.sum()
    seen = np.bincount(actions, minlength=15) / size
    assert seen[masks[0] == 0].sum() == 0
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected / size) + 1e-9).all()


def test_the_probabilities_are_those_of_draws_and_of_the_best_card():
    observations, masks = moments()
    agent = PolicyAgent(make())
    probabilities = agent.probabilities(observations, masks)
    weights = np.exp(agent.logits(observations)) * masks
    assert probabilities.dtype == np.float32
    assert np.allclose(probabilities, weights / weights.sum(axis=1, keepdims=True))
    assert (probabilities[masks == 0] == 0).all()
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(probabilities.argmax(axis=1), agent.act(observations, masks))
    assert np.array_equal(
        agent.scores(observations, masks)[masks != 0], agent.logits(observations)[masks != 0]
    )
    one = agent.probabilities(observations[3], masks[3])
    assert one.shape == (15,) and np.allclose(one, probabilities[3])
    with pytest.raises(ValueError, match="mask 0 has no legal action"):
        agent.probabilities(observations, masks * 0)


def test_the_value_is_in_points():
    observations, _ = moments()
    checkpoint = make()
    hidden = observations.astype(np.float64)
    for weight, bias in zip(checkpoint.weights[:-1], checkpoint.biases[:-1], strict=True):
        hidden = np.maximum(hidden @ weight.T + bias, 0)
    value = np.random.default_rng(0).normal(size=(1, hidden.shape[1])).astype(np.float32)
    expected = (hidden @ value.T)[:, 0] + 0.5
    head = (value, np.array([0.5], np.float32))
    for scale, told in [(0.1, 0.1), (1.0, None), (1.0, "much"), (1.0, 0), (1.0, True)]:
        training = {} if told is None else {"reward_scale": told}
        metadata = {**checkpoint.metadata, "training": training}
        agent = PolicyAgent(dataclasses.replace(checkpoint, value=head, metadata=metadata))
        assert np.allclose(agent.value(observations), expected / scale)
    assert type(agent.value(observations[0])) is float
    without = PolicyAgent(dataclasses.replace(checkpoint, value=None))
    assert without.value(observations) is None


@pytest.mark.compiled
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_value_of_a_shipped_policy_is_what_deals_bring(file):
    """On average, early and late: the slope of points over value is 1."""
    agent = players.load(file)
    batch = DealBatch(2_000, agent.rules, observation=agent.observation, seed=1)
    values, sides, gains = [], [], []
    for _ in range(agent.rules.num_plays):
        values.append(agent.value(batch.observations))
        sides.append(batch.seats % agent.rules.sides)
        gained, _ = batch.step(agent.act(batch.observations, batch.action_masks))
        gains.append(gained.copy())
    rest = np.cumsum(gains[::-1], axis=0)[::-1]  # from a play on
    brought = np.take_along_axis(rest, np.array(sides)[:, :, np.newaxis], axis=2)[:, :, 0]
    for plays in (slice(None, 8), slice(-8, None)):
        slope = np.polyfit(np.ravel(values[plays]), brought[plays].ravel(), 1)[0]
        assert 0.85 < slope < 1.2


def test_with_32_bits_a_policy_plays_the_same_cards_but_for_equals():
    observations, masks = moments(tables=2_000)
    agent = PolicyAgent(make(hidden=(64, 64)))
    other = agent.with_32_bits()
    assert np.allclose(other.logits(observations), agent.logits(observations), atol=1e-4)
    same = other.act(observations, masks) == agent.act(observations, masks)
    assert same.mean() > 0.999
    assert agent.logits(observations[:1]).dtype == np.float64


@pytest.mark.compiled
@pytest.mark.parametrize("inputs", range(1, 14))
def test_a_sum_is_in_the_order_of_its_inputs(inputs):
    """To the last bit, however many of them are taken at a time."""
    random = np.random.default_rng(inputs)
    rows = random.normal(size=(5, inputs)) * (random.random((5, inputs)) < 0.8)
    weight, bias = random.normal(size=(inputs, 3)), random.normal(size=3)
    for row, outputs in zip(rows, multiply(rows, weight, bias), strict=True):
        for output in range(3):
            total = bias[output]
            for number in range(inputs):
                if row[number] != 0:
                    total = total + row[number] * weight[number, output]
            assert outputs[output] == total


def test_extremes_are_drawn_from_too():
    logits = np.array([[-np.inf, 1e4, -1e4, -np.inf], [-np.inf, -1e4, -1e4, -np.inf]])
    for number in (0.0, 0.5, 1 - 2.0**-53):
        actions = sample(logits, np.full(2, number))
        assert actions[0] == 1
        assert actions[1] in (1, 2)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda o, m: (o[:, :-1], m), "expected those of the encoding 'kinds'"),
        (lambda o, m: (o, m[:, :-1]), "expected those of the encoding 'kinds'"),
        (lambda o, m: (o[:-1], m), "expected those of the encoding 'kinds'"),
        (lambda o, m: (o, m * 0), "mask 0 has no legal action"),
    ],
)
def test_wrong_arrays_are_refused(change, expected, sample):
    with pytest.raises(ValueError, match=expected):
        PolicyAgent(make(), sample=sample).act(*change(*moments()))


@pytest.mark.parametrize("sample", [False, True])
def test_wrong_seeds_are_refused(sample):
    observations, masks = moments()
    for seeds in (np.zeros(3, np.uint64), np.full(len(masks), -1)):
        with pytest.raises(ValueError, match="seeds has shape"):
            PolicyAgent(make(), sample=sample).act(observations, masks, seeds)


def test_playing_needs_no_torch(path):
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from pisti_env.arena import evaluate\n"
        "from pisti_env.agents import load\n"
        "evaluate([load(sys.argv[1]), 'greedy'], deals=3, match=False)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(path)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_policy_has_a_card(file):
    card, checkpoint = file.with_suffix(".md").read_text(encoding="utf-8"), read_checkpoint(file)
    assert checkpoint.rules.hash in card and checkpoint.metadata["revision"] in card
    assert f"({file.stem}.svg)" in card and file.with_suffix(".svg").is_file()
    for opponent in ("counting", "greedy", "random"):
        assert f"| `{opponent}` | +" in card


@pytest.mark.compiled
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_policy_is_strong(file):
    """Its card has what 10,000 decks gave; 300 can tell that from nothing learned."""
    rules = read_checkpoint(file).rules
    evaluation = arena.evaluate([str(file), "greedy"], rules, deals=300)
    # Three sides share what two do, so their points lie closer together.
    assert evaluation.results[0].low > (2 if rules.sides == 2 else 1)


# Made of any network's layers.


def layers_of(sizes):
    generator = np.random.default_rng(0)
    return [
        (generator.normal(size=(outputs, inputs)), generator.normal(size=outputs))
        for inputs, outputs in itertools.pairwise(sizes)
    ]


def test_a_network_of_any_library_becomes_a_file_that_plays(tmp_path):
    inputs = layout_of("kinds", Rules())[-1][2]
    layers = layers_of((inputs, 8, 4, 15))
    made = make_checkpoint(layers, training={"library": "any"}, seed=3)
    write_checkpoint(tmp_path / "made.safetensors", made)
    read = read_checkpoint(tmp_path / "made.safetensors")
    assert (read.sizes, read.rules, read.value) == ((inputs, 8, 4, 15), Rules(), None)
    assert read.metadata["training"] == {"library": "any"}
    rows = np.random.default_rng(1).random((5, inputs), np.float32)
    hidden = rows.astype(np.float64)
    for weight, bias in layers[:-1]:
        hidden = np.maximum(hidden @ weight.T + bias, 0)
    np.testing.assert_allclose(
        PolicyAgent(read).logits(rows), hidden @ layers[-1][0].T + layers[-1][1], rtol=1e-4
    )


@pytest.mark.parametrize(
    ("sizes", "said"),
    [((3, 15), "sizes are"), ((None, 8, 52), "sizes are"), ((), "dimensions")],
)
def test_layers_that_do_not_fit_are_refused(sizes, said):
    inputs = layout_of("kinds", Rules())[-1][2]
    with pytest.raises(ValueError, match=said):
        make_checkpoint(layers_of([size or inputs for size in sizes]))


def test_layers_that_do_not_fit_each_other_or_are_not_finite_are_refused():
    inputs = layout_of("kinds", Rules())[-1][2]
    first, last = layers_of((inputs, 8, 15))
    with pytest.raises(ValueError, match=r"layers\.1\.weight has shape"):
        make_checkpoint([first, (last[0].T, last[1])])
    with pytest.raises(ValueError, match="finite"):
        make_checkpoint([first, (last[0] * np.inf, last[1])])
    with pytest.raises(ValueError, match=r"value\.weight has shape"):
        make_checkpoint([first, last], value=(np.zeros((2, 8)), np.zeros(1)))
    with pytest.raises(ValueError, match="dimensions"):
        make_checkpoint([first, (last[0], 1.0)])
