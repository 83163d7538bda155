"""SuperSuit's wrappers, over the environment with the masks in the infos."""

import random

import numpy as np
import pytest
import supersuit

from pisti_env import pisti_v0

WRAPPERS = {
    "frame_stack": lambda env: supersuit.frame_stack_v1(env, 3),
    "dtype": lambda env: supersuit.dtype_v0(env, np.float64),
    "flatten": supersuit.flatten_v0,
    "normalize_obs": lambda env: supersuit.normalize_obs_v0(env, 0, 1),
    "agent_indicator": supersuit.agent_indicator_v0,
    "pad_observations": supersuit.pad_observations_v0,
    "pad_action_space": supersuit.pad_action_space_v0,
    "delay_observations": lambda env: supersuit.delay_observations_v0(env, 1),
    "clip_reward": lambda env: supersuit.clip_reward_v0(env, -1, 1),
    "reward_lambda": lambda env: supersuit.reward_lambda_v0(env, lambda reward: reward / 2),
}


def play(env, seed, legal, steps):
    """Play a deal, every card drawn from the mask in the info; return each agent's rewards. Notes
    the legal cards, and the bare environment's rewards of each step."""
    rng = random.Random(seed)
    env.reset(seed=seed)
    total = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        assert not truncation
        assert env.observation_space(agent).contains(observation)
        total[agent] += reward
        cards = np.flatnonzero(info["action_mask"]).tolist()
        assert bool(cards) != termination
        legal.append(cards)
        env.step(None if termination else rng.choice(cards))
        if not termination:
            steps.append(dict(env.unwrapped.rewards))
    return total


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_deal_in_a_wrapper(name, players):
    plain = pisti_v0.env(players=players, mask_in="info")
    wrapped = WRAPPERS[name](pisti_v0.env(players=players, mask_in="info"))
    seen, seen_wrapped, steps = [], [], []
    total, wrapped_total = play(plain, 5, seen, steps), play(wrapped, 5, seen_wrapped, [])
    assert seen == seen_wrapped
    assert wrapped.unwrapped.illegal_actions == 0
    assert plain.unwrapped.score() == wrapped.unwrapped.score()
    if name == "reward_lambda":
        assert wrapped_total == pytest.approx({a: total[a] / 2 for a in total})
    elif name == "clip_reward":
        clipped = {a: sum(np.clip(step[a], -1, 1) for step in steps) for a in total}
        assert wrapped_total == pytest.approx(clipped) and clipped != total
    else:
        assert wrapped_total == pytest.approx(total)


def test_a_dict_is_what_it_cannot_wrap():
    # So says the documentation. Should this fail one day, the documentation can say less.
    with pytest.raises(AssertionError):
        supersuit.frame_stack_v1(pisti_v0.env(), 3).reset(seed=0)
