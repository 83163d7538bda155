"""The critic that sees all cards: what is hidden from a seat, and what a deal was worth to it.

What it is shown is the observation and, behind it, what was hidden from that seat. Only this file
knows where the one ends and the other begins; the policy is shown the observation alone.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from pisti_env.rules import Rules
from training.network import Network


def num_hidden(rules: Rules, num_actions: int) -> int:
    """Return how many numbers stand behind an observation: the hands of all other seats, and what
    every seat is dealt in the next packet and in all later ones."""
    return (rules.players - 1 + 2 * rules.players) * num_actions


def observations_in(seen: Tensor, num_inputs: int) -> Tensor:
    """Return what a seat saw, (…, num_inputs), of what its critic is shown."""
    return seen[..., :num_inputs]


def hidden_cards_of(hands: Tensor, players: int, hand_size: int) -> Tensor:
    """Return what a seat could not see at each play of a deal, (plays, n, num_hidden).

    Takes the hand (plays, n, a) of who played, before each play. Every other seat's hand comes
    first, then what each seat is dealt in the next packet, and then in all later ones: always in
    the order of the seats, from the one that plays. None of it depends on the play.
    """
    packets = hands.view(-1, players * hand_size, *hands.shape[1:])
    plays = packets.shape[1]
    # Nobody draws before a packet is over, so who plays next holds now what it holds then.
    padded = torch.cat([packets, torch.zeros_like(packets[:, : players - 1])], 1)
    pieces = [padded[:, ahead : ahead + plays] for ahead in range(1, players)]
    dealt = packets[:, :players]
    in_next = torch.cat([dealt[1:], torch.zeros_like(dealt[:1])])
    in_later = dealt.flip(0).cumsum(0).flip(0) - dealt - in_next
    for cards in (in_next, in_later):
        pieces += [
            cards.roll(-ahead, 1).repeat(1, hand_size, *([1] * (cards.dim() - 2)))
            for ahead in range(players)
        ]
    return torch.cat(pieces, -1).flatten(0, 1)


@torch.inference_mode()
def value_all_cards(critic: Network, plays: Mapping[str, Tensor], rules: Rules) -> None:
    """Show the critic all cards of a deal that has been played, and put its values in the buffers
    in place of those of the policy's own network.

    Of `plays`, the buffers (plays, n, …) of the deal, `seen` gets what was hidden, behind the
    observations.
    """
    seen, num_actions = plays["seen"], plays["masks"].shape[-1]
    hands = seen[..., :num_actions]  # every encoding begins with the hand
    hidden = hidden_cards_of(hands, rules.players, rules.hand_size)
    seen[..., critic.num_inputs - hidden.shape[-1] :] = hidden
    for shown, values in zip(seen, plays["values"], strict=True):
        values.copy_(critic(shown)[1])
