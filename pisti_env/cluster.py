"""Decks spread over a Ray cluster, for `arena.evaluate` on more than one machine.

```python
from pisti_env.arena import evaluate
from pisti_env.cluster import playing_on_ray

with playing_on_ray("10.0.0.1:6379") as play:
    print(evaluate(["pisti-2p", "counting"], deals=1_000_000, play=play))
```

Agents travel to the nodes with the tasks, so the nodes need this package, and no files. Decks are
played in the same blocks as in one process, so the result is the same, number for number, if the
machines are of one kind.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pisti_env.agents import Agent
from pisti_env.arena import BLOCK, Played, play_decks
from pisti_env.rules import Rules

SHARD = 4 * BLOCK  # decks of a task


@contextlib.contextmanager
def playing_on_ray(address: str | None = None) -> Iterator[Callable[..., Played]]:
    """Join the Ray cluster at `address`, HOST:PORT or "auto"; give what `evaluate` takes as `play`,
    and leave again.

    None, and what it raises: as for `start_ray`.
    """
    ray = start_ray(address)

    def play(
        entrants: Sequence[Agent],
        rules: Rules,
        decks: np.ndarray,
        dealers: np.ndarray,
        seed: int,
        on_play: Callable[[int], Any],
    ) -> Played:
        """Do as `arena.play_decks` does."""
        shared = ray.put(list(entrants))
        play_shard = ray.remote(play_decks)
        firsts = {}
        for first in range(0, len(decks), SHARD):
            shard = slice(first, first + SHARD)
            task = play_shard.remote(shared, rules, decks[shard], dealers[shard], seed, first)
            firsts[task] = first
        played = Played.empty(rules, len(decks))
        left = list(firsts)
        while left:
            done, left = ray.wait(left)
            first, part = firsts[done[0]], ray.get(done[0])
            played.put(slice(first, first + len(part.points)), part)
            on_play(part.plays.size)
        return played

    try:
        yield play
    finally:
        ray.shutdown()


def start_ray(address: str | None, num_cpus: int | None = None) -> Any:
    """Join the Ray cluster at `address`, HOST:PORT or "auto"; return the module `ray`.

    None: the cluster that the environment variable RAY_ADDRESS names, or without it a Ray of this
    process alone, with `num_cpus` cores. Raises `ValueError` if Ray is not installed, and
    `ConnectionError` if there is no such cluster, or it does not let this process in.
    """
    try:
        import ray
    except ImportError:
        raise ValueError(
            'Ray is asked for, but not installed; pip install "ray[rllib]" installs it'
        ) from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        # Without "local", a cluster that happens to run on this machine would be joined.
        ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **options)
    else:
        if address is not None:
            _check_address(address)
        try:
            ray.init(address=address, **options)
        except (ConnectionError, ray.exceptions.AuthenticationError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ConnectionError(
                f"the Ray cluster at {address or os.environ['RAY_ADDRESS']} cannot be joined "
                f"({reason}); if it asks for a token, set RAY_AUTH_MODE=token and put the token in "
                "~/.ray/auth_token"
            ) from None
    return ray


def _check_address(address: str) -> None:
    """Raise `ConnectionError` if nobody listens at HOST:PORT, which Ray takes minutes to find."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:  # auto, local, ray://…
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(
            f"no Ray cluster answers at {address} ({error}); ray start --head starts one"
        ) from None
