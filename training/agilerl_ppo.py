"""Learn to play with AgileRL: PPO for one seat, baselines for the others.

    python -m training.agilerl_ppo --minutes 5 --run runs/agilerl

The tables are one batch, Gymnasium's `make_vec("Pisti-v0", …)`, with the masks in the infos. They
are played here and not by AgileRL's `collect_rollouts`, which notes where a deal ends one decision
late: the last reward would reach the last decision alone.

The run's folder gets `policy.safetensors`, which `pisti evaluate` plays without AgileRL, and
`result.json`.
"""

import dataclasses
import sys
from typing import Any

import gymnasium
import numpy as np
import torch
import tyro
from agilerl.algorithms import PPO
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import TransformReward

import pisti_env  # noqa: F401, registers Pisti-v0
from pisti_env.rules import parse_rules
from training import runs

PACKAGES = ("agilerl", "torch", "gymnasium")


@dataclasses.dataclass(frozen=True)
class Settings(runs.LibrarySettings):
    """What a run is made of."""

    opponents: tuple[str, ...] = ("greedy", "counting")
    """Who plays the other seats, one of them drawn for each deal."""
    num_envs: int = 256
    """Tables played at once. An update follows when the learner has played a deal at each."""
    batch_size: int = 1024
    """Decisions in a step of the optimizer."""
    epochs: int = 2
    """How often an update learns from each decision."""
    hidden: tuple[int, int, int] = (256, 256, 64)
    """Sizes of the hidden layers; AgileRL calls the first two encoder, the third head."""
    learning_rate: float = 5e-4
    """Adam's learning rate."""
    entropy_coef: float = 0.01
    """Weight of the entropy in the loss."""
    gae_lambda: float = 0.8
    """How far advantages look ahead before they trust the value."""
    reward_scale: float = 0.1
    """What points are multiplied by."""


def make_envs(settings: Settings) -> Any:
    """Return the tables, as one batch."""
    envs = gymnasium.make_vec(
        "Pisti-v0",
        num_envs=settings.num_envs,
        opponent=list(settings.opponents),
        rules=parse_rules(settings.rules),
        autoreset_mode=AutoresetMode.SAME_STEP,  # no decision is lost, and deals stay together
    )
    return TransformReward(envs, lambda rewards: rewards * settings.reward_scale)


def make_agent(envs: Any, settings: Settings) -> PPO:
    """Return PPO with a plain network, which the project's checkpoints can hold: ReLU after every
    hidden layer, and neither layer norms nor a share in the critic's layers."""
    rules = parse_rules(settings.rules)
    first, second, third = settings.hidden
    plain = {"activation": "ReLU", "layer_norm": False}
    return PPO(
        envs.single_observation_space,
        envs.single_action_space,
        net_config={
            "latent_dim": second,
            "max_latent_dim": second,
            "encoder_config": {**plain, "hidden_size": [first], "output_activation": "ReLU"},
            "head_config": {**plain, "hidden_size": [third]},
        },
        batch_size=settings.batch_size,
        lr=settings.learning_rate,
        learn_step=settings.num_envs * rules.num_plays // rules.players,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy_coef,
        update_epochs=settings.epochs,
        share_encoders=False,
        num_envs=settings.num_envs,
    )


@dataclasses.dataclass
class Moment:
    """Where the tables are."""

    observations: np.ndarray
    masks: np.ndarray
    begins: np.ndarray
    """(n,) bool: whether the next decision is the first of its deal."""


def play(agent: PPO, envs: Any, moment: Moment) -> float:
    """Play a deal at every table, fill the agent's buffer, and work out advantages.

    Moves `moment` on. Returns the mean reward of a deal.
    """
    buffer, total = agent.rollout_buffer, 0.0
    buffer.reset()
    for _ in range(agent.learn_step // agent.num_envs):
        actions, log_probs, _, values = agent.get_action(moment.observations, moment.masks)
        observations, rewards, ended, _, infos = envs.step(actions)
        buffer.add(
            obs=moment.observations,
            action=actions,
            reward=rewards,
            done=moment.begins,  # the buffer means: whether the decision before was a deal's last
            value=values,
            log_prob=log_probs,
            action_mask=moment.masks,
        )
        total += rewards.mean()
        moment.observations, moment.masks, moment.begins = observations, infos["action_mask"], ended
    _, _, _, values = agent.get_action(moment.observations, moment.masks)
    buffer.compute_returns_and_advantages(last_value=values, last_done=moment.begins)
    return total


def train(settings: Settings, envs: Any, budget: runs.Budget) -> tuple[PPO, int]:
    """Learn until the budget is used up; return the agent and its decisions."""
    agent, steps = make_agent(envs, settings), 0
    observations, infos = envs.reset(seed=settings.seed)
    moment = Moment(observations, infos["action_mask"], np.ones(settings.num_envs, np.bool_))
    while budget.used(steps) < 1:
        points = play(agent, envs, moment) / settings.reward_scale
        steps += agent.learn_step
        agent.learn()
        budget.tell(steps, f"{points:+.2f} points a deal over its opponents")
    return agent, steps


def main() -> None:
    """Train as the command line says."""
    settings = tyro.cli(Settings, prog="python -m training.agilerl_ppo", description=__doc__)
    try:
        with runs.new_run("agilerl", PACKAGES, settings) as folder:
            np.random.seed(settings.seed)  # noqa: NPY002, AgileRL draws from it
            torch.manual_seed(settings.seed)
            envs = make_envs(settings)
            budget = runs.Budget(settings)
            with budget.used_up_by_signals():
                agent, steps = train(settings, envs, budget)
            policy = runs.policy_of(agent.actor.modules(), settings)
            illegal = envs.unwrapped.illegal_actions
            runs.finish(folder, policy, PACKAGES, steps, budget, illegal, settings.deals)
    except (OSError, ValueError) as error:
        sys.exit(f"training.agilerl_ppo: {error}")


if __name__ == "__main__":
    main()
