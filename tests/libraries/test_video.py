"""Libraries that ask an environment for pictures, where there is no screen."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVideos
from moviepy import VideoFileClip
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecVideoRecorder

import pisti_env  # noqa: F401, registers Pisti-v0

DECISIONS = 24  # of a deal


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(variable, raising=False)


def frames_of(folder):
    """The frames of the one video in a folder."""
    [path] = folder.glob("*.mp4")
    with VideoFileClip(str(path)) as clip:
        return list(clip.iter_frames())


def check_frames(frames, pictures):
    """There is a frame for every picture, in that order, which compression has changed a little."""
    assert len(frames) == len(pictures)
    pictures = np.array(pictures, np.int16)
    for number, frame in enumerate(frames):
        differences = np.abs(pictures - frame).mean(axis=(1, 2, 3))
        assert differences.argmin() == number and differences[number] < 6  # of 255


# Stable-Baselines3.


def test_sb3_asks_for_pictures_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a render mode that is not there, say
        envs = make_vec_env("Pisti-v0", 4, seed=0)
    assert isinstance(envs, DummyVecEnv) and envs.get_attr("render_mode") == ["rgb_array"] * 4
    envs.reset()
    pictures = envs.get_images()
    assert [picture.shape for picture in pictures] == [(360, 480, 3)] * 4
    assert len({picture.tobytes() for picture in pictures}) == 4  # each shows its own table
    two_by_two = np.block([[[pictures[0]], [pictures[1]]], [[pictures[2]], [pictures[3]]]])
    assert (envs.render(mode="rgb_array") == two_by_two).all()
    envs.close()


@pytest.mark.parametrize(
    ("start", "name"), [("fork", "Pisti-v0"), ("spawn", "pisti_env:Pisti-v0")], ids=str
)
def test_sb3_gets_pictures_from_processes(start, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        envs = make_vec_env(
            name,
            2,
            seed=0,
            env_kwargs={"opponent": "greedy"},
            vec_env_cls=SubprocVecEnv,
            vec_env_kwargs={"start_method": start},
        )
    here = gymnasium.make("Pisti-v0", opponent="greedy", render_mode="rgb_array")
    try:
        assert envs.get_attr("render_mode") == ["rgb_array"] * 2
        envs.reset()
        pictures = envs.get_images()
        for number, picture in enumerate(pictures):
            here.reset(seed=number)
            assert picture.shape == (360, 480, 3) and picture.std() > 10
            assert (picture == here.render()).all()
        assert (envs.render(mode="rgb_array") == np.concatenate(pictures)).all()  # in a column
    finally:
        envs.close()


def test_sb3_records_a_video(tmp_path):
    envs = make_vec_env("Pisti-v0", 2, seed=0)
    recorder = VecVideoRecorder(
        envs, str(tmp_path), record_video_trigger=lambda step: step == 0, video_length=6
    )
    recorder.reset()
    pictures = [envs.render(mode="rgb_array")]
    for _ in range(8):
        masks = recorder.env_method("action_masks")
        recorder.step(np.array([mask.argmax() for mask in masks]))
        pictures.append(envs.render(mode="rgb_array"))
    recorder.close()
    check_frames(frames_of(tmp_path), pictures[: 1 + 6])  # the start, and after each step


# Gymnasium.


@pytest.mark.parametrize("rules", ["standard", "istanbul"], ids=str)
def test_record_video(tmp_path, rules):
    env = gymnasium.make("Pisti-v0", render_mode="rgb_array", rules=rules, target=None)
    recorded = RecordVideo(env, str(tmp_path / "videos"), episode_trigger=lambda episode: True)
    recorded.reset(seed=0)
    pictures = [env.render()]
    for _ in range(DECISIONS):
        recorded.step(int(env.unwrapped.action_masks().argmax()))
        pictures.append(env.render())
    recorded.close()
    assert pictures[0].shape == (360, 480, 3)
    check_frames(frames_of(tmp_path / "videos"), pictures)


def test_record_videos_of_many_tables(tmp_path):
    envs = gymnasium.make_vec("Pisti-v0", 3, opponent="greedy", render_mode="rgb_array")
    recorded = RecordVideos(
        envs, str(tmp_path / "videos"), episode_trigger=lambda episode: episode == 0
    )
    _, infos = recorded.reset(seed=0)
    pictures = [np.hstack(envs.render())]  # the three side by side
    for _ in range(DECISIONS):
        _, _, _, _, infos = recorded.step(infos["action_mask"].argmax(axis=1))
        pictures.append(np.hstack(envs.render()))
    recorded.step(np.zeros(3, int))  # resets, and so ends the video of the first deal
    recorded.close()
    assert pictures[0].shape == (360, 1440, 3)
    check_frames(frames_of(tmp_path / "videos"), pictures)
