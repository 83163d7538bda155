"""Learn to play with TorchRL: PPO by self-play, one policy for all seats.

    python -m training.torchrl_ppo --minutes 5 --run runs/torchrl

TorchRL's wrapper for PettingZoo steps one table in Python. This script gives TorchRL the compiled
batch instead, as an environment of its own kind: a step is the play of whoever is to play at each
table. Advantages are each seat's own, from its decision to its next one.

The run's folder gets `policy.safetensors`, which `pisti evaluate` plays without TorchRL, and
`result.json`.
"""

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import torch
import tyro
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule
from torch import Tensor
from torchrl.collectors import Collector
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value.functional import generalized_advantage_estimate

from pisti_env.rules import Rules, parse_rules
from pisti_env.vector import DealBatch
from training import runs
from training.credit import seat_rewards

PACKAGES = ("torchrl", "tensordict", "torch")


@dataclasses.dataclass(frozen=True)
class Settings(runs.LibrarySettings):
    """What a run is made of."""

    num_tables: int = 512
    """Tables played at once. An update follows when a deal has been played at each."""
    batch_size: int = 1536
    """Decisions in a step of the optimizer."""
    epochs: int = 2
    """How often an update learns from each decision."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers, of the policy and of the value each."""
    learning_rate: float = 1e-3
    """Adam's learning rate at the start; it falls to a hundredth."""
    entropy_coef: float = 0.01
    """Weight of the entropy in the loss."""
    gae_lambda: float = 0.8
    """How far advantages look ahead before they trust the value."""
    reward_scale: float = 0.1
    """What points are multiplied by."""


class PistiTables(EnvBase):
    """Many tables, as TorchRL's environment of batch size (n,).

    Observations: `observation` (n, d) and `action_mask` (n, a) of who is to play, and the `side`
    (n, 1) of that seat. `reward` (n, sides) is every side's. A table is done when its deal is over,
    and has dealt the next one by then.
    """

    def __init__(self, num_tables: int, rules: Rules, reward_scale: float, seed: int):
        super().__init__(device="cpu", batch_size=[num_tables])
        self.rules, self.reward_scale = rules, reward_scale
        self.tables = DealBatch(num_tables, rules, observation=runs.ENCODING, seed=seed)
        inputs, actions = self.tables.observations.shape[1], self.tables.action_masks.shape[1]
        self.observation_spec = Composite(
            observation=Bounded(0.0, 1.0, (num_tables, inputs)),
            action_mask=Binary(actions, (num_tables, actions), dtype=torch.bool),
            side=Categorical(rules.sides, (num_tables, 1)),
            shape=[num_tables],
        )
        self.action_spec = Categorical(actions, (num_tables,))
        self.reward_spec = Unbounded((num_tables, rules.sides))
        self.done_spec = Categorical(2, (num_tables, 1), dtype=torch.bool)

    def _observe(self) -> dict[str, Tensor]:
        side = torch.from_numpy(self.tables.seats).long() % self.rules.sides
        return {
            "observation": torch.from_numpy(self.tables.observations.copy()),
            "action_mask": torch.from_numpy(self.tables.action_masks != 0),
            "side": side[:, None],
        }

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDict:
        return TensorDict(self._observe(), [*self.batch_size])

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        rewards, ended = self.tables.step(tensordict["action"].numpy())
        done = torch.from_numpy(ended.copy())[:, None]
        reward = torch.from_numpy(rewards * self.reward_scale)
        return TensorDict(
            {**self._observe(), "reward": reward, "done": done, "terminated": done.clone()},
            [*self.batch_size],
        )

    def _set_seed(self, seed: int | None) -> None:
        self.tables.reset(seed=seed)


def add_advantages(deals: TensorDict, critic: ValueOperator, players: int, lmbda: float) -> None:
    """Add `advantage` and `value_target` (n, plays, 1) to one deal's plays (n, plays) at n tables.

    The seats play in rotation, so play t is by the seat at position t % players, whose reward is
    all that its side earns until its next play.
    """
    tables, plays = deals.batch_size
    with torch.no_grad():
        values = critic(deals)["state_value"].view(tables, plays // players, players)
    by_play, sides = deals["next", "reward"].transpose(0, 1), deals["side"][:, :players, 0].t()
    rewards = seat_rewards(by_play, sides)[0].permute(2, 0, 1)
    done = torch.zeros_like(rewards, dtype=torch.bool)
    done[:, -1] = True
    next_values = torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], 1)
    advantage, target = generalized_advantage_estimate(
        1.0, lmbda, values, next_values, rewards, done, done, time_dim=1
    )
    deals["advantage"] = advantage.reshape(tables, plays, 1)
    deals["value_target"] = target.reshape(tables, plays, 1)


def make_networks(env: PistiTables, settings: Settings) -> tuple[ProbabilisticActor, ValueOperator]:
    """Return the policy and the value, plain networks with ReLU."""
    inputs = env.observation_spec["observation"].shape[-1]
    shape = {"num_cells": list(settings.hidden), "activation_class": torch.nn.ReLU}
    logits = MLP(inputs, env.action_spec.n, **shape)
    actor = ProbabilisticActor(
        TensorDictModule(logits, ["observation"], ["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    return actor, ValueOperator(MLP(inputs, 1, **shape), ["observation"])


def minibatches(plays: TensorDict, settings: Settings) -> Iterator[TensorDict]:
    """Yield the decisions in shuffled minibatches, once an epoch."""
    for _ in range(settings.epochs):
        order = torch.randperm(len(plays))
        for start in range(0, len(plays), settings.batch_size):
            yield plays[order[start : start + settings.batch_size]]


def train(
    settings: Settings, env: PistiTables, budget: runs.Budget
) -> tuple[ProbabilisticActor, int]:
    """Learn until the budget is used up; return the policy and its decisions."""
    actor, critic = make_networks(env, settings)
    loss = ClipPPOLoss(
        actor, critic, entropy_coeff=settings.entropy_coef, critic_coeff=0.5, loss_critic_type="l2"
    )
    optimizer = torch.optim.Adam(loss.parameters(), eps=1e-5)
    plays = env.rules.num_plays * settings.num_tables
    collector = Collector(
        env,
        actor,
        frames_per_batch=plays,
        total_frames=-1,
        auto_register_policy_transforms=False,  # the policy needs none, and silence warns
    )
    steps = 0
    for deals in collector:
        steps += plays
        add_advantages(deals, critic, env.rules.players, settings.gae_lambda)
        advantage = deals["advantage"]
        deals["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        left = 1 - budget.used(steps)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (0.01 + 0.99 * left)
        for minibatch in minibatches(deals.flatten(), settings):
            losses = loss(minibatch)
            total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
            optimizer.zero_grad()
            total.backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            optimizer.step()
        budget.tell(steps, f"entropy {losses['entropy'].item():.2f}")
        if budget.used(steps) >= 1:
            break
    collector.shutdown()
    return actor, steps


def main() -> None:
    """Train as the command line says."""
    settings = tyro.cli(Settings, prog="python -m training.torchrl_ppo", description=__doc__)
    try:
        rules = parse_rules(settings.rules)
        if rules.target is not None:
            raise ValueError(f"target is {rules.target}; expected single deals, without a target")
        with runs.new_run("torchrl", PACKAGES, settings) as folder:
            torch.manual_seed(settings.seed)
            env = PistiTables(settings.num_tables, rules, settings.reward_scale, settings.seed)
            budget = runs.Budget(settings)
            with budget.used_up_by_signals():
                actor, steps = train(settings, env, budget)
            policy = runs.policy_of(actor.modules(), settings)
            illegal = env.tables.illegal_actions
            runs.finish(folder, policy, PACKAGES, steps, budget, illegal, settings.deals)
    except (OSError, ValueError) as error:
        sys.exit(f"training.torchrl_ppo: {error}")


if __name__ == "__main__":
    main()
