"""The network that plays, and the one distribution over legal actions that everything uses."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

# What is added to the logit of an illegal action. Finite, so that a row without a legal action (a
# seat that is not to act) gives numbers and not NaN; so low that beside any legal one its
# probability is exactly 0.
ILLEGAL = -1e9

Arrays = tuple[np.ndarray, np.ndarray]  # weight (out, in) and bias (out,) of a layer


class Network(nn.Module):
    """Hidden layers with ReLU, then one layer that gives a logit per action and, last, a value.

    With `critic_inputs` there is a critic too, a network of its own that is shown something else
    and gives a value and no logits. Only training uses it.
    """

    def __init__(
        self, num_inputs: int, num_actions: int, hidden: tuple[int, ...], critic_inputs: int = 0
    ):
        super().__init__()
        self.num_inputs = num_inputs
        sizes = (num_inputs, *hidden)
        self.hidden = nn.ModuleList(
            nn.Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(sizes)
        )
        self.head = nn.Linear(sizes[-1], num_actions + 1)
        self.critic = Network(critic_inputs, 0, hidden) if critic_inputs else None

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights: orthogonal; the policy's near 0, so that at first it plays anything."""
        for layer in self.layers():
            nn.init.orthogonal_(layer.weight, 2**0.5, generator)
            nn.init.zeros_(layer.bias)
        policy, value = self.split_head(self.head.weight.data)
        nn.init.orthogonal_(policy, 0.01, generator)
        nn.init.orthogonal_(value, 1.0, generator)
        if self.critic is not None:
            self.critic.initialise(generator)

    def layers(self) -> list[nn.Linear]:
        """Return every layer but the critic's, the head last."""
        return [*(layer for layer in self.hidden if isinstance(layer, nn.Linear)), self.head]

    def split_head(self, outputs: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
        """Return what belongs to the logits and what belongs to the value, of anything that has one
        row (or, along `dim`, one entry) for each output of the head."""
        logits, value = torch.split(outputs, [self.head.out_features - 1, 1], dim)
        return logits, value

    def take_up(self, layers: Sequence[Arrays], value: Arrays | None) -> None:
        """Copy the weight and bias of every layer, of which the last gives the logits, and those of
        the value, which without them stays as it is."""
        *hidden, head = self.layers()
        weights, biases = self.split_head(head.weight.data), self.split_head(head.bias.data)
        own = [(layer.weight.data, layer.bias.data) for layer in hidden]
        own += zip(weights, biases, strict=True)
        given = [*layers] if value is None else [*layers, value]
        for tensors, arrays in zip(own, given, strict=value is not None):
            for tensor, array in zip(tensors, arrays, strict=True):
                tensor.copy_(torch.tensor(array))

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (n, a), of illegal actions too, and values (n,) for observations (n, d)."""
        hidden = observations
        for layer in self.hidden:
            hidden = torch.relu_(layer(hidden))
        logits, values = self.split_head(self.head(hidden), dim=1)
        return logits, values[:, 0]


def masked_log_probs(logits: Tensor, masks: Tensor) -> Tensor:
    """Return the log-probabilities (n, a) of actions from logits (n, a) and masks (n, a), 0 or 1.

    Illegal actions have probability 0, and their logits no gradient.
    """
    masked = logits.float() + (1 - masks.float()) * ILLEGAL
    # Transposed, since softmax along a short last dimension is slow on a CPU.
    return torch.log_softmax(masked.t(), 0).t()


def probs_of(log_probs: Tensor) -> Tensor:
    """Return probabilities (n, a) from their logarithms."""
    # exp is slow on a CPU where numbers are so low that the result is 0; exp2 is not.
    return (log_probs / math.log(2)).exp2()


def entropy_of(log_probs: Tensor) -> Tensor:
    """Return the entropy (n,) of log-probabilities (n, a)."""
    return -(probs_of(log_probs) * log_probs).sum(-1)


def sample(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Return actions (n,), each sampled with a number (n,) from [0, 1); never an illegal one."""
    reached = probs_of(log_probs).cumsum(-1)
    total = reached[:, -1:]
    actions = torch.searchsorted(reached, uniform[:, None] * total, right=True)
    # Rounded up to the total, a number would be past the end.
    return torch.minimum(actions, torch.searchsorted(reached, total.contiguous()))[:, 0]
