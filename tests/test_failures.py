"""Agents that fail in the middle of a step: nothing of another seat is shown, a reset goes on."""

import gymnasium
import numpy as np
import pytest

from pisti_env import Rules, pisti_v0
from pisti_env.agents import ask
from pisti_env.agents.hosting import ask_each
from pisti_env.single import PistiEnv, PistiVectorEnv
from pisti_env.vector import DealBatch


class Failing:
    """Plays the lowest legal kind, but at the call `fails_at` does what `fail(masks)` does."""

    observation = "kinds"

    def __init__(self, fail, fails_at):
        self.rules = Rules()
        self.fail, self.calls_left = fail, fails_at

    def act(self, observations, masks, seeds=None):
        self.calls_left -= 1
        if self.calls_left == -1:
            return self.fail(masks)
        return masks.argmax(axis=-1)


def raising(error):
    def fail(masks):
        raise error

    return fail


def any_card_is_legal(masks):
    illegal = masks.argmin(axis=-1)
    masks[:] = 1
    return illegal


FAILURES = {
    "ValueError": raising(ValueError("mine")),
    "RuntimeError": raising(RuntimeError("mine")),
    "MemoryError": raising(MemoryError()),
    "StopIteration": raising(StopIteration()),
    "GeneratorExit": raising(GeneratorExit()),
    "KeyboardInterrupt": raising(KeyboardInterrupt()),
    "SystemExit": raising(SystemExit(1)),
    "an illegal card": lambda masks: masks.argmin(axis=-1),
    "an illegal card, the mask overwritten": any_card_is_legal,
    "a negative card": lambda masks: masks.argmax(axis=-1) - 99,
    "a card that is none": lambda masks: masks.argmax(axis=-1) + 99,
    "a number of seventy bits": lambda masks: [2**70] * len(masks),
    "nothing": lambda masks: None,
    "no answers": lambda masks: [],
    "an answer too few": lambda masks: masks.argmax(axis=-1)[1:],
    "an answer too many": lambda masks: [*masks.argmax(axis=-1), 0],
    "rows of answers": lambda masks: masks,
    "answers of different lengths": lambda masks: [[1], [1, 2]],
    "floats": lambda masks: masks.argmax(axis=-1) * 1.0,
    "bools": lambda masks: masks.argmax(axis=-1) > 0,
    "text": lambda masks: "4C",
    "a dict": lambda masks: {0: 1},
}
failures = pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)


def shows_nothing(env, table):
    """Every way to see something or to play on asks for a reset. `table` are arguments that name
    the table, none of the single environment."""
    deals = (lambda: env.deals(*table)) if table else (lambda: env.deals)
    actions = np.zeros(env.num_envs, int) if table else 0
    for look in [
        lambda: env.action_masks(),
        lambda: env.view(*table, 0),
        lambda: env.view(*table, None),
        lambda: env.score(*table),
        lambda: env.position(*table, 1),
        lambda: env.seats if table else env.seat,
        lambda: env.render(),
        lambda: ask(env, Failing(None, 9)),
        lambda: env.step(actions),
        deals,
    ]:
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            look()


@failures
@pytest.mark.parametrize("fails_at", [0, 3])
def test_one_table_shows_nothing_after_an_agent_has_failed(fail, fails_at):
    """In the first call, which is part of a reset, and in a later one."""
    env = PistiEnv(Failing(fail, fails_at), seat=0, render_mode="ansi")
    twin = PistiEnv(Failing(None, 999), seat=0)
    dealt = {"seed": 3, "options": {"dealer": 0}}  # so the agent leads
    twin.reset(**dealt)

    def play():
        env.reset(**dealt)
        for _ in range(9):
            env.step(int(env.action_masks().argmax()))

    with pytest.raises(BaseException) as caught:
        play()
    assert not isinstance(caught.value, gymnasium.error.ResetNeeded)
    shows_nothing(env, ())
    observation, info = env.reset()
    assert observation.tobytes() == twin.reset()[0].tobytes()  # the stream goes on
    for _ in range(3):
        one, two = (e.step(int(info["action_mask"].argmax())) for e in (env, twin))
        assert one[0].tobytes() == two[0].tobytes() and one[1:3] == two[1:3]
        info = one[-1]


@failures
@pytest.mark.parametrize("fails_at", [0, 3])
def test_many_tables_show_nothing_after_an_agent_has_failed(fail, fails_at):
    envs = PistiVectorEnv(7, Failing(fail, fails_at), render_mode="ansi")
    twin = PistiVectorEnv(7, Failing(None, 999))
    twin.reset(seed=3)

    def play():
        envs.reset(seed=3)
        for _ in range(9):
            envs.step(envs.action_masks().argmax(axis=1))

    with pytest.raises(BaseException) as caught:
        play()
    assert not isinstance(caught.value, gymnasium.error.ResetNeeded)
    shows_nothing(envs, (0,))
    with pytest.raises(gymnasium.error.ResetNeeded):  # of some tables, not of all
        envs.reset(options={"reset_mask": np.arange(7) > 3})
    assert envs.reset()[0].tobytes() == twin.reset()[0].tobytes()


def test_an_agent_that_looks_about_sees_nothing():
    """In its turn the table shows its own hand to whoever asks for the learner's."""
    seen = []

    class Curious(Failing):
        def act(self, observations, masks, seeds=None):
            for look in (env.action_masks, env.render, env.score, lambda: env.view(0)):
                try:
                    seen.append(look())
                except gymnasium.error.ResetNeeded:
                    seen.append(None)
            return masks.argmax(axis=-1)

    env = PistiEnv(Curious(None, 0), render_mode="ansi")
    env.reset(seed=0)
    env.step(int(env.action_masks().argmax()))
    assert len(seen) >= 4 and set(seen) == {None}


@failures
def test_who_asks_at_a_batch_or_a_table_changes_nothing(fail):
    """Asking is apart from playing: after a failure the table is as it was."""
    batch, actions = DealBatch(7, seed=0), np.zeros(7, np.int64)
    env = pisti_v0.env(observation="basic")
    env.reset(seed=0)
    before = {name: array.tobytes() for name, array in batch.get_state().items()}
    position = env.unwrapped.position(0)
    with pytest.raises(BaseException) as caught:
        ask_each([Failing(fail, 0)], batch, np.zeros(7, int), actions)
    assert caught.value is not None
    assert before == {name: array.tobytes() for name, array in batch.get_state().items()}
    if fail is not FAILURES["an answer too few"]:  # of one answer, without one, nothing is left
        with pytest.raises(BaseException):  # noqa: B017
            ask(env, Failing(fail, 0))
    assert env.unwrapped.position(0) == position


def test_an_illegal_action_that_raises_changes_nothing():
    env = PistiEnv("greedy", illegal="raise")
    _, info = env.reset(seed=0)
    for _ in range(5):
        position = env.position(env.seat)
        with pytest.raises(ValueError, match="not in the hand"):
            env.step(int(info["action_mask"].argmin()))
        assert env.position(env.seat) == position
        info = env.step(int(info["action_mask"].argmax()))[-1]
