"""What each seat is credited with, in a deal whose seats play in rotation."""

import torch
from torch import Tensor


def seat_rewards(rewards: Tensor, sides: Tensor) -> tuple[Tensor, Tensor]:
    """Sum up what each seat's side earns between the seat's own decisions.

    Takes every side's rewards (plays, n, sides) and the side (players, n) of the seat at each
    position. Returns (rounds, players, n), from a decision to just before the seat's next one or
    the end of the deal, and (players, n), from the start of the deal to the seat's first decision.
    """
    players, tables = sides.shape
    before, after = [], []
    for position in range(players):
        own = rewards.gather(2, sides[position].expand(len(rewards), tables)[..., None])[..., 0]
        rest = torch.cat([own[position:], own.new_zeros(position, tables)])
        before.append(own[:position].sum(0))
        after.append(rest.view(-1, players, tables).sum(1))
    return torch.stack(after, 1), torch.stack(before)
