"""Ctrl-C at any moment: all is as before, or as after, or a reset is asked for; and that works."""

import sys

import gymnasium
import numba
import pytest

from pisti_env import pisti_v0
from pisti_env.single import PistiEnv, PistiVectorEnv
from pisti_env.vector import DealBatch

# Interpreted, there are thousands of moments.
EVERY = 97 if numba.config.DISABLE_JIT else 1


def interrupt(moment, use):
    """Call `use()`, in which Ctrl-C comes at a moment: the first one is 0, and so on. Moments are
    those at which Python looks whether it came: a function begins, or one of C has returned.
    Returns whether there were so many."""
    moments_left = moment

    def look(frame, event, argument):
        nonlocal moments_left
        if event in ("call", "c_return"):
            moments_left -= 1
            if moments_left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        use()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return moments_left < 0


def a_batch():
    batch = DealBatch(4, seed=1, target=31)
    for _ in range(47):  # the next play ends the deals
        batch.step(batch.action_masks.argmax(axis=1))
    return batch


def a_table():
    env = pisti_v0.raw_env(target=31)
    env.reset(seed=1)
    for _ in range(47):
        env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    return env


def a_learner():
    env = PistiEnv("counting", target=31)
    env.reset(seed=1)
    for _ in range(23):
        env.step(int(env.action_masks().argmax()))
    return env


def many_learners():
    envs = PistiVectorEnv(4, "counting")
    envs.reset(seed=1)
    for _ in range(23):
        envs.step(envs.action_masks().argmax(axis=1))
    return envs


OTHER_STATE = DealBatch(4, seed=2, target=31).get_state()


@pytest.mark.parametrize(
    ("make", "see", "use"),
    [
        (a_batch, DealBatch.states, lambda batch: batch.step(batch.action_masks.argmax(axis=1))),
        (a_batch, DealBatch.states, lambda batch: batch.reset(seed=3)),
        (a_batch, DealBatch.states, lambda batch: batch.set_state(OTHER_STATE)),
        (a_batch, DealBatch.states, lambda batch: batch.copy_table(1, [0, 2])),
        (
            a_table,
            pisti_v0.raw_env.state,
            lambda env: env.step(int(env.infos[env.agent_selection]["action_mask"].argmax())),
        ),
        (a_table, pisti_v0.raw_env.state, lambda env: env.reset(seed=3)),
        (
            a_learner,
            lambda env: env.position(env.seat).encode(),
            lambda env: env.step(int(env.action_masks().argmax())),
        ),
        (a_learner, lambda env: env.position(env.seat).encode(), lambda env: env.reset(seed=3)),
        (
            many_learners,
            PistiVectorEnv.action_masks,
            lambda envs: envs.step(envs.action_masks().argmax(axis=1)),
        ),
        (many_learners, PistiVectorEnv.action_masks, lambda envs: envs.reset(seed=3)),
    ],
)
def test_ctrl_c_at_any_moment(make, see, use):
    def seen(env):
        try:
            return memoryview(see(env)).tobytes()
        except gymnasium.error.ResetNeeded:
            return None

    done, anew = make(), make()
    before = seen(done)
    use(done)
    after = seen(done)
    anew.reset(seed=5)
    moment, interrupted = 0, True
    while interrupted:
        env = make()
        interrupted = interrupt(moment, lambda: use(env))  # noqa: B023
        assert seen(env) in ((before, after, None) if interrupted else (after,))
        env.reset(seed=5)
        assert seen(env) == seen(anew)
        moment += EVERY
    assert moment > 5 * EVERY
