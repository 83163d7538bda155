"""How many threads the network has: as many as are fastest here and now.

On cores that nobody else uses, two threads are nearly twice as fast as one. Where other programs
use them too, each product of matrices waits for the thread whose core was taken away, and one may
be faster. So numbers of threads are tried in turns, on steps like those of the optimizer.
"""

import math
import os
import statistics
import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pisti_env.agents.checkpoint import layout_of
from pisti_env.observation import ENCODINGS
from pisti_env.rules import Rules
from training.critic import num_hidden
from training.network import Network
from training.runs import tell

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Settings

ROWS = 1024  # of a trial's minibatch: enough to be like a real one, and soon done
TURNS = 7  # at most, of each number of threads
ENOUGH_SECONDS = 0.5  # a trial that has taken so long ends with its turn, if that is the third
REST = 20  # times as long as a trial has taken there is no other
CLEARLY = 1.5  # who takes so many times as long in two turns gets no third one
BETTER = 0.95  # the part of the present time that another number must stay below
SOONEST, LATEST = 5.0, 40.0  # seconds to the next trial; it doubles while nothing changes
SLOWER = 1.3  # an update that takes so many times as long as the last one is reason for a trial


class Threads:
    """Tries numbers of threads now and then, and sets the fastest.

    Trials have a network of their own, of the same sizes as the one that learns, and draw nothing,
    so that training goes on as if there had been none.
    """

    def __init__(self, settings: "Settings", rules: Rules):
        inputs = layout_of(settings.observation, rules)[-1][2]
        num_actions = ENCODINGS[settings.observation][0]
        self._networks = [Network(inputs, num_actions, settings.hidden)]
        if settings.all_seeing_critic:
            inputs += num_hidden(rules, num_actions)
            self._networks.append(Network(inputs, 0, settings.hidden))
        self._numbers = numbers_of_threads() if settings.device == "cpu" else [1]
        self._wait, self._rest, self._tried, self._update_seconds = SOONEST, 0.0, 0.0, math.inf
        self.number = 1
        """How many threads there are."""
        self.try_numbers()

    def after_update(self, seconds: float) -> None:
        """Try again, if the last trial is a while ago or if updates have become slower: this one
        took so many seconds."""
        since = time.monotonic() - self._tried
        slower = seconds > SLOWER * self._update_seconds
        self._update_seconds = seconds
        if since >= max(self._rest, SOONEST if slower else self._wait):
            self.try_numbers()

    def try_numbers(self) -> None:
        """Set the number of threads that is fastest now: the present one, or the next lower or
        higher one, and so on from there."""
        before, medians, begun = self.number, {1: math.nan}, time.monotonic()
        for _ in self._numbers:
            place = self._numbers.index(self.number)
            near = self._numbers[max(0, place - 1) : place + 2]
            if len(near) > 1:
                medians = self._measure(near)
                medians[self.number] *= BETTER
            fastest = min(medians, key=medians.__getitem__)
            if fastest == self.number:
                break
            self.number = fastest
        torch.set_num_threads(self.number)
        self._wait = SOONEST if self.number != before else min(2 * self._wait, LATEST)
        self._tried = time.monotonic()
        self._rest = REST * (self._tried - begun)
        if self.number != before or self._update_seconds == math.inf:
            threads = "1 thread is" if self.number == 1 else f"{self.number} threads are"
            tell(f"{threads} fastest here now; --threads sets a number for good")

    def _measure(self, numbers: list[int]) -> dict[int, float]:
        """Return the median seconds of a step with each number of threads, tried in turns."""
        seconds: dict[int, list[float]] = {number: [] for number in numbers}
        for turn in range(1, TURNS + 1):
            for number in numbers:
                torch.set_num_threads(number)
                begun = time.perf_counter()
                self._step()
                seconds[number].append(time.perf_counter() - begun)
            medians = {number: statistics.median(taken) for number, taken in seconds.items()}
            fastest, second, *_ = sorted(medians.values())
            if turn >= 2 and second > CLEARLY * fastest:
                break
            if turn >= 3 and sum(map(sum, seconds.values())) > ENOUGH_SECONDS:
                break
        return medians

    def _step(self) -> None:
        """Do what a step of the optimizer takes most of its time for."""
        for network in self._networks:
            logits, values = network(torch.ones(ROWS, network.num_inputs))
            total: Tensor = logits.sum() + values.sum()
            torch.autograd.grad(total, list(network.parameters()))


def numbers_of_threads() -> list[int]:
    """Return the numbers of threads to try: powers of two up to the cores of this process."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # on macOS and Windows
        cores = os.cpu_count() or 1
    return sorted({min(2**power, cores) for power in range(cores.bit_length() + 1)})
