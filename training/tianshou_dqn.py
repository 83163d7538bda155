"""Learn to play with Tianshou: double DQN for one seat, baselines for the others.

    python -m training.tianshou_dqn --minutes 5 --run runs/tianshou

The environments are Gymnasium's `Pisti-v0`, one seat's view of the game. Tianshou has an interface
for PettingZoo, but it gives an agent only the reward of its own step: what the others do next, a
pişti above all, would never reach it.

The run's folder gets `policy.safetensors`, which `pisti evaluate` plays without Tianshou, and
`result.json`.
"""

import dataclasses
import sys
from typing import Any

import gymnasium
import numpy as np
import torch
import tyro
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net
from tianshou.utils.torch_utils import policy_within_training_step

import pisti_env  # noqa: F401, registers Pisti-v0
from pisti_env.rules import parse_rules
from pisti_env.shuffle import derive_seed
from training import runs

PACKAGES = ("tianshou", "torch", "gymnasium")


@dataclasses.dataclass(frozen=True)
class Settings(runs.LibrarySettings):
    """What a run is made of."""

    opponents: tuple[str, ...] = ("greedy", "counting")
    """Who plays the other seats, one of them drawn for each deal."""
    num_envs: int = 32
    """Environments, played in turns in one process."""
    buffer_size: int = 200_000
    """Decisions that are kept to learn from."""
    batch_size: int = 512
    """Decisions in a step of the optimizer."""
    decisions_per_step: int = 16
    """Decisions that are made between two steps of the optimizer."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers."""
    learning_rate: float = 5e-4
    """Adam's learning rate."""
    horizon: int = 3
    """Decisions ahead whose rewards count before the value is trusted."""
    target_update: int = 500
    """Steps of the optimizer between two copies to the target network."""
    exploration: float = 0.5
    """Share of random plays at the start; it falls to a twentieth by the middle of the budget."""
    reward_scale: float = 0.1
    """What points are multiplied by."""


class TianshouNames(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations with the two names that Tianshou's DQN looks for, and scaled rewards."""

    def __init__(self, env: gymnasium.Env[Any, Any], reward_scale: float):
        super().__init__(env)
        self._reward_scale = reward_scale

    def reset(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode; return the observation and the info."""
        observation, _ = self.env.reset(**kwargs)
        return self._named(observation), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play a card; return the observation, the reward, whether it is over, and the info."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        reward = float(reward) * self._reward_scale
        return self._named(observation), reward, terminated, truncated, {}

    def _named(self, observation: dict[str, Any]) -> dict[str, Any]:
        return {"obs": observation["observation"], "mask": observation["action_mask"] != 0}


def make_envs(settings: Settings) -> list[Any]:
    """Return the environments."""
    rules = parse_rules(settings.rules)
    return [
        TianshouNames(
            gymnasium.make(
                "Pisti-v0",
                opponent=list(settings.opponents),
                rules=rules,
                mask_in="observation",
                disable_env_checker=True,
            ),
            settings.reward_scale,
        )
        for _ in range(settings.num_envs)
    ]


def make_algorithm(env: Any, settings: Settings) -> DQN[Any]:
    """Return double DQN with a plain network, which the project's checkpoints can hold."""
    net = Net(
        state_shape=env.observation_space["observation"].shape,
        action_shape=env.action_space.n,
        hidden_sizes=settings.hidden,
        activation=torch.nn.ReLU,
    )
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space)
    return DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=settings.learning_rate),
        gamma=1.0,
        n_step_return_horizon=settings.horizon,
        target_update_freq=settings.target_update,
        is_double=True,
    )


def train(settings: Settings, envs: list[Any], budget: runs.Budget) -> tuple[DQN[Any], int]:
    """Learn until the budget is used up; return the algorithm and its decisions."""
    algorithm = make_algorithm(envs[0], settings)
    vector = DummyVectorEnv([lambda env=env: env for env in envs])
    # From an int Tianshou makes neighbouring seeds, which runs with neighbouring seeds would share.
    vector.seed([derive_seed(f"table {table}", settings.seed) for table in range(len(envs))])
    buffer = VectorReplayBuffer(settings.buffer_size, len(envs))
    collector = Collector[Any](algorithm, vector, buffer, exploration_noise=True)
    collector.reset()
    steps, losses = 0, [0.0]
    while (used := budget.used(steps)) < 1:
        algorithm.policy.set_eps_training(settings.exploration * max(0.05, 1 - 2 * used))
        with policy_within_training_step(algorithm.policy):
            steps += collector.collect(n_step=4 * len(envs)).n_collected_steps
            if steps >= 10 * settings.batch_size:
                for _ in range(4 * len(envs) // settings.decisions_per_step):
                    losses.append(algorithm.update(buffer, settings.batch_size).loss)
        losses = losses[-100:]
        budget.tell(steps, f"loss {np.mean(losses):.3f}")
    return algorithm, steps


def main() -> None:
    """Train as the command line says."""
    settings = tyro.cli(Settings, prog="python -m training.tianshou_dqn", description=__doc__)
    try:
        with runs.new_run("tianshou", PACKAGES, settings) as folder:
            np.random.seed(settings.seed)  # noqa: NPY002, Tianshou draws from it
            torch.manual_seed(settings.seed)
            envs = make_envs(settings)
            budget = runs.Budget(settings)
            with budget.used_up_by_signals():
                algorithm, steps = train(settings, envs, budget)
            policy = runs.policy_of(algorithm.policy.model.modules(), settings)
            illegal = sum(env.unwrapped.illegal_actions for env in envs)
            runs.finish(folder, policy, PACKAGES, steps, budget, illegal, settings.deals)
    except (OSError, ValueError) as error:
        sys.exit(f"training.tianshou_dqn: {error}")


if __name__ == "__main__":
    main()
