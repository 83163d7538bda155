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
    """The frames of every video in a folder, by its name."""
    clips = {path.name: VideoFileClip(str(path)) for path in sorted(folder.glob("*.mp4"))}
    try:
        return {name: list(clip.iter_frames()) for name, clip in clips.items()}
    finally:
        for clip in clips.values():
            clip.close()


def play(env, steps):
    """Legal actions, until so many are played; the frames that `render` gave are RecordVideo's."""
    env.reset(seed=0)
    for _ in range(steps):
        env.step(int(env.unwrapped.action_masks().argmax()))


def test_sb3_asks_for_pictures_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a render mode that is not there, say
        envs = make_vec_env("Pisti-v0", 4)
    assert isinstance(envs, DummyVecEnv) and envs.get_attr("render_mode") == ["rgb_array"] * 4
    envs.seed(0)
    envs.reset()
    pictures = envs.get_images()
    assert [picture.shape for picture in pictures] == [(360, 480, 3)] * 4
    assert len({picture.tobytes() for picture in pictures}) == 4  # each shows its own table
    envs.close()


@pytest.mark.parametrize(
    ("start", "name"), [("fork", "Pisti-v0"), ("spawn", "pisti_env:Pisti-v0")], ids=str
)
def test_sb3_gets_pictures_from_processes(start, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        envs = make_vec_env(
            name,
            2,
            seed=0,
            env_kwargs={"opponent": "greedy", "render_mode": "rgb_array"},
            vec_env_cls=SubprocVecEnv,
            vec_env_kwargs={"start_method": start},
        )
    here = gymnasium.make("Pisti-v0", opponent="greedy", render_mode="rgb_array")
    try:
        envs.reset()
        pictures = envs.get_images()
        for number, picture in enumerate(pictures):
            here.reset(seed=number)
            assert (picture == here.render()).all()
        assert envs.render().shape == (720, 480, 3)  # one below the other
    finally:
        envs.close()


def test_sb3_records_a_video(tmp_path):
    envs = make_vec_env("Pisti-v0", 2, seed=0)
    recorder = VecVideoRecorder(
        envs, str(tmp_path), record_video_trigger=lambda step: step == 0, video_length=6
    )
    recorder.reset()
    for _ in range(8):
        masks = recorder.env_method("action_masks")
        recorder.step(np.array([mask.argmax() for mask in masks]))
    recorder.close()
    [frames] = frames_of(tmp_path).values()
    assert len(frames) >= 6 and frames[0].shape == (720, 480, 3)


@pytest.mark.parametrize("rules", ["standard", "istanbul"], ids=str)
def test_record_video(tmp_path, rules):
    env = gymnasium.make("Pisti-v0", render_mode="rgb_array", rules=rules, target=None)
    recorded = RecordVideo(env, str(tmp_path), episode_trigger=lambda episode: True)
    play(recorded, DECISIONS)
    recorded.close()
    [frames] = frames_of(tmp_path).values()
    assert len(frames) == DECISIONS + 1  # the first deal's start, and after each play
    assert frames[0].shape == (360, 480, 3)
    env = gymnasium.make("Pisti-v0", render_mode="rgb_array", rules=rules, target=None)
    env.reset(seed=0)
    shown = env.render().astype(int)
    assert np.abs(shown - frames[0]).mean() < 6  # of 255: the video is compressed
    env.close()


def test_record_videos_of_many_tables(tmp_path):
    envs = gymnasium.make_vec("Pisti-v0", 4, opponent="greedy", render_mode="rgb_array")
    recorded = RecordVideos(envs, str(tmp_path), episode_trigger=lambda episode: episode == 0)
    _, infos = recorded.reset(seed=0)
    for _ in range(DECISIONS + 1):
        _, _, _, _, infos = recorded.step(infos["action_mask"].argmax(axis=1))
    recorded.close()
    [frames] = frames_of(tmp_path).values()
    assert len(frames) >= DECISIONS and frames[0].shape == (720, 960, 3)  # two by two
