"""What users give by mistake: one clear sentence, and nothing changed."""

import copy
import os
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from pisti_env import Rules, pisti_v0, single
from pisti_env.agents import load
from pisti_env.position import read_position
from pisti_env.vector import DealBatch


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: pisti_v0.raw_env(observation=[]), "observation"),
        (lambda: pisti_v0.describe({}), "observation"),
        (lambda: Rules.preset([]), "preset"),
        (lambda: Rules.from_dict(None), "rules"),
        (lambda: Rules(majority=np.array([1, 2])), "majority"),
        (lambda: Rules(tie_at_target=np.array([1, 2])), "tie_at_target"),
        (lambda: pisti_v0.raw_env().reset(options=5), "options"),
        (lambda: read_position(None), "position"),
    ],
)
def test_wrong_types_are_named(make, word):
    with pytest.raises(ValueError, match=word) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda env: env.view(0),
        lambda env: env.score(),
        lambda env: env.state(),
        lambda env: env.deck,
        lambda env: env.dealer,
        lambda env: env.draw(),
        lambda env: env.position(),
    ],
)
def test_before_the_first_reset_there_is_nothing_to_tell(use):
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
        use(pisti_v0.raw_env())


@pytest.mark.parametrize("make", [pisti_v0.raw_env, pisti_v0.env])
def test_an_array_of_no_dimensions_is_an_action(make):
    env = make()
    env.reset(seed=1)
    card = env.infos[env.agent_selection]["action_mask"].argmax()
    env.step(np.array(card))
    assert env.unwrapped.view(None).plays[0][1] == card


def test_a_batch_with_threads_can_be_copied():
    batch = DealBatch(10, seed=0, threads=3)
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        actions = batch.action_masks.argmax(axis=1)
        assert (other.action_masks.argmax(axis=1) == actions).all()
        rewards, _ = other.step(actions)
        assert rewards.shape == (10, 2)


@pytest.mark.parametrize("viewer", ["00", "0" * 20 + "99", "0" * 20 + "9" * 30, "-1", "٣"])
def test_numbers_of_a_position_are_read_strictly(viewer):
    env = pisti_v0.raw_env()
    env.reset(seed=0)
    line = env.position()
    with pytest.raises(ValueError, match="viewer"):
        read_position(line.replace("standard -", f"standard {viewer}"))


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "cp1254", "cp437", "ascii"])
def test_whatever_is_drawn_can_be_printed(encoding):
    program = """
import gymnasium, pisti_env
from pisti_env import pisti_v0
env = pisti_v0.env(render_mode="ansi", players=4)
env.reset(seed=1)
print(env.render())
print(env.unwrapped.draw(0))
print(pisti_v0.describe("full"))
learner = gymnasium.make("Pisti-v0", render_mode="ansi")
learner.reset(seed=1)
print(learner.render())
"""
    variables = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    shown = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True)
    assert shown.returncode == 0, shown.stderr
    text = shown.stdout.decode(encoding)
    if encoding == "utf-8":
        assert "Pişti, 4 players" in text and "▒▒▒▒" in text
    else:
        assert "Pisti, 4 players" in text and "####" in text and "<- to play" in text
        assert "?" not in text


def test_what_cannot_be_printed_is_replaced(monkeypatch):
    class Ascii:
        encoding = "ascii"

        def __init__(self):
            self.text = ""

        def write(self, text):
            self.text += text.encode("ascii").decode()

        def flush(self):
            pass

    screen = Ascii()
    monkeypatch.setattr("sys.stdout", screen)
    env = pisti_v0.raw_env(render_mode="human")
    env.reset(seed=0)
    assert "to play" in screen.text


def test_two_processes_write_the_same_file(tmp_path):
    program = (
        "import sys; from pisti_env.files import write_file\n"
        "for _ in range(60): write_file(sys.argv[1], sys.argv[2].encode() * 50_000)"
    )
    path = tmp_path / "file"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(path), letter]) for letter in "ab"
    ]
    assert [process.wait() for process in processes] == [0, 0]
    assert path.read_bytes() in (b"a" * 50_000, b"b" * 50_000)
    assert list(tmp_path.iterdir()) == [path]


# Copies, in every way.


def out_of_band(thing):
    """Pickled as Ray and joblib do it: arrays lie in memory that is read-only, anywhere."""
    buffers = []
    pickled = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    memory = [memoryview(b"." + buffer.raw().tobytes())[1:] for buffer in buffers]
    return pickle.loads(pickled, buffers=memory)


def play_one(env):
    rewards = []
    for _ in range(40):
        _, reward, over, *_ = env.step(int(env.action_masks().argmax()))
        rewards.append(reward)
        if over:
            env.reset()
    return rewards


def play_many(envs):
    return [envs.step(envs.action_masks().argmax(axis=1))[1].tolist() for _ in range(40)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, out_of_band])
@pytest.mark.parametrize(
    ("make", "play"), [(single.PistiEnv, play_one), (single.PistiVectorEnv, play_many)]
)
def test_a_copy_of_a_learners_environment_goes_on_by_itself(make, play, copied):
    env = make(opponent=["greedy", "counting"], players=3)
    env.reset(seed=1)
    play(env)
    twin = copied(env)
    assert play(twin) == play(env)


@pytest.mark.parametrize("name", ["random", "greedy", "counting", "pisti-2p"])
def test_a_copy_of_an_agent_plays(name):
    agent = load(name, seed=0)
    batch = DealBatch(5, observation=agent.observation, seed=0)
    seen, seeds = (batch.observations, batch.action_masks), np.arange(5, dtype=np.uint64)
    twin = out_of_band(agent)
    assert (twin.act(*seen, seeds) == agent.act(*seen, seeds)).all()
    assert twin.act(seen[0][0], seen[1][0]) == agent.act(seen[0][0], seen[1][0])


def test_what_an_agent_is_asked_with_is_a_copy():
    env, batch = pisti_v0.raw_env(), DealBatch(2, seed=0)
    env.reset(seed=0)
    for table in (env, batch):
        before = table.get_state() if table is batch else table.position(0)
        table.moment()[0].view(np.uint8)[:] = 200
        after = table.get_state() if table is batch else table.position(0)
        np.testing.assert_equal(after, before)
