"""The plays that an update learns from, and what a match leaves to the next update.

An update learns one deal. A match goes on after it: only in the next deal is it known what follows
the last round, so that round is carried over and learned with the next deal.
"""

import torch
from torch import Tensor

from pisti_env.vector import DealBatch
from training.critic import num_hidden


class Buffers:
    """What was seen and done in each play, `plays` of (plays, n, …). What was `seen` is what the
    critic is shown, or without a critic of its own the observation.

    In a match the first round of the buffers is the one that was carried over. `carried_rewards`
    (players, n) are what its seats have earned since, and `carried_goes_on` (n,) is 1.0 where the
    match went on, else 0.0. Both are None before the first deal, and if there are no matches.
    """

    def __init__(self, batch: DealBatch, device: torch.device, all_seeing_critic: bool = False):
        rules = batch.rules
        tables, inputs = batch.observations.shape
        self.players = rules.players
        self.carried = 0 if rules.target is None else rules.players
        shape = (self.carried + rules.num_plays, tables)
        actions = batch.action_masks.shape[1]
        self.inputs = inputs
        hidden = num_hidden(rules, actions) if all_seeing_critic else 0
        self.plays = {
            "seen": torch.zeros((*shape, inputs + hidden), device=device),
            "masks": torch.zeros((*shape, actions), device=device),
            "actions": torch.zeros(shape, dtype=torch.int64, device=device),
            "log_probs": torch.zeros(shape, device=device),
            "values": torch.zeros(shape, device=device),
            "own_play": torch.zeros(shape, dtype=torch.bool, device=device),
        }
        self.carried_rewards: Tensor | None = None
        self.carried_goes_on: Tensor | None = None

    def of_deal(self) -> dict[str, Tensor]:
        """Return the buffers without the round that was carried over."""
        return {name: buffer[self.carried :] for name, buffer in self.plays.items()}

    def carry(self) -> None:
        """Move the last round to the first. The next seat deals, so the seat that was second to
        play leads now."""
        for buffer in self.plays.values():
            buffer[: self.carried] = buffer[-self.carried :].roll(-1, dims=0)


def rounds_of(
    buffers: Buffers, rewards_after: Tensor, rewards_before: Tensor, goes_on: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `gae` takes, of the rounds of which it is known by now what follows: rewards,
    values and has_next. Takes what `seat_rewards` and `play_deal` return."""
    values = buffers.plays["values"].view(-1, *rewards_before.shape)
    has_next = torch.ones_like(rewards_after[:, :1])
    if buffers.carried == 0:
        has_next[-1] = 0
        return rewards_after, torch.cat([values, torch.zeros_like(values[:1])]), has_next
    # The last round is left to the next deal, and the one that was left to this deal comes first.
    rewards = rewards_after[:-1]
    if buffers.carried_rewards is None or buffers.carried_goes_on is None:
        has_next = has_next[1:]
    else:
        has_next[0] = buffers.carried_goes_on
        first = buffers.carried_rewards + buffers.carried_goes_on * rewards_before
        rewards = torch.cat([first[None], rewards])
    buffers.carried_rewards, buffers.carried_goes_on = rewards_after[-1].roll(-1, dims=0), goes_on
    return rewards, values[-len(rewards) - 1 :], has_next
