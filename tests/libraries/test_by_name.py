"""Each library's own way to an environment that it knows by name alone."""

import warnings

import gymnasium
import numpy as np
import pytest
import supersuit
from gymnasium.vector import AutoresetMode
from pettingzoo.utils.conversions import turn_based_aec_to_parallel
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from tianshou.env import DummyVectorEnv, SubprocVectorEnv
from torchrl.envs import ActionMask, GymEnv, GymWrapper, TransformedEnv
from torchrl.envs.utils import check_env_specs

import pisti_env  # noqa: F401, registers Pisti-v0
from pisti_env import pisti_v0

DECISIONS = 24  # of a deal


# Stable-Baselines3.


def test_the_first_line_that_most_type_into_sb3():
    envs = make_vec_env("Pisti-v0", 4)
    assert isinstance(envs, DummyVecEnv)
    assert envs.reset().shape == (4, 120)
    model = MaskablePPO("MlpPolicy", "Pisti-v0", n_steps=48, batch_size=24, seed=0)
    model.learn(96)
    assert model.env.get_attr("illegal_actions") == [0]


@pytest.mark.parametrize(
    ("start", "name"), [("fork", "Pisti-v0"), ("spawn", "pisti_env:Pisti-v0")], ids=str
)
def test_sb3_in_processes(start, name):
    """A process that is spawned has imported nothing, so the name says what to import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        envs = make_vec_env(
            name,
            2,
            seed=0,
            env_kwargs={"opponent": "greedy"},
            vec_env_cls=SubprocVecEnv,
            vec_env_kwargs={"start_method": start},
        )
    try:
        model = MaskablePPO("MlpPolicy", envs, n_steps=24, batch_size=24, seed=0)
        model.learn(48)
        assert envs.get_attr("illegal_actions") == [0, 0]
    finally:
        envs.close()


# TorchRL.


def test_torchrl_by_name():
    env = GymEnv("Pisti-v0", opponent="greedy")
    assert env.rollout(3)["observation"].shape[1:] == (120,)
    check_env_specs(env)
    env = GymEnv(
        "Pisti-v0", opponent="greedy", mask_in="observation", categorical_action_encoding=True
    )
    played = TransformedEnv(env, ActionMask()).rollout(2 * DECISIONS, break_when_any_done=False)
    assert played["next", "done"].sum() == 2 and env._env.unwrapped.illegal_actions == 0


def test_torchrl_wraps_one_table_and_many():
    one = GymWrapper(gymnasium.make("Pisti-v0"))
    assert one.rollout(1).shape == (1,)
    for mode, mask_in in [("SameStep", "info"), ("Disabled", "info"), ("Disabled", "observation")]:
        envs = gymnasium.make_vec("Pisti-v0", num_envs=3, autoreset_mode=mode, mask_in=mask_in)
        many = GymWrapper(envs, categorical_action_encoding=True)
        if mask_in == "observation":
            many = TransformedEnv(many, ActionMask())
        played = many.rollout(2 * DECISIONS, break_when_any_done=False)
        assert played.shape == (3, 2 * DECISIONS)
        if mask_in == "observation":
            assert played["next", "done"].sum() == 6 and envs.illegal_actions == 0
    with pytest.raises(RuntimeError, match="SAME_STEP or DISABLED"):  # TorchRL says what it wants
        GymWrapper(gymnasium.make_vec("Pisti-v0", num_envs=3))


# SuperSuit.


def test_supersuit_s_vector_environments():
    env = gymnasium.make("Pisti-v0")
    for envs in (
        supersuit.gym_vec_env_v0(env, 2),
        supersuit.stable_baselines3_vec_env_v0(env, 2, multiprocessing=False),
    ):
        envs.reset()
        observations, rewards, *_ = envs.step(np.zeros(2, int))
        assert observations.shape == (2, 120) and rewards.shape == (2,)
    seats = supersuit.pettingzoo_env_to_vec_env_v1(
        turn_based_aec_to_parallel(pisti_v0.env(mask_in="info"))
    )
    envs = supersuit.concat_vec_envs_v1(seats, 2, num_cpus=1, base_class="gymnasium")
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (4, 345)  # two seats of two tables
    assert envs.step(np.zeros(4, int))[1].shape == (4,)


# Tianshou.


def make_for_tianshou():
    return gymnasium.make("pisti_env:Pisti-v0", opponent="greedy", mask_in="observation")


@pytest.mark.parametrize("kind", [DummyVectorEnv, SubprocVectorEnv])
def test_tianshou_s_vector_environments(kind):
    envs = kind([make_for_tianshou] * 3)
    try:
        shown, _ = envs.reset(seed=0)
        for decision in range(DECISIONS):
            actions = np.array([one["action_mask"].argmax() for one in shown])
            shown, _, terminated, truncated, _ = envs.step(actions)
            assert terminated.tolist() == [decision == DECISIONS - 1] * 3 and not truncated.any()
    finally:
        envs.close()


# Gymnasium's own processes.


def test_gymnasium_s_processes():
    envs = gymnasium.make_vec("pisti_env:Pisti-v0", num_envs=2, vectorization_mode="async")
    try:
        _, infos = envs.reset(seed=0)
        for _ in range(DECISIONS + 1):
            _, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    finally:
        envs.close()
