"""Which settings self-play can be trained with."""

import itertools
import math
from typing import TYPE_CHECKING

import torch

from pisti_env.agents.checkpoint import MAX_FILE_BYTES, layout_of
from pisti_env.arena import MAX_DECKS
from pisti_env.observation import ENCODINGS, check_encoding
from pisti_env.quote import quote, shorten
from pisti_env.rules import Rules, parse_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import REWARDS
from training.runs import first_line

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Settings

MATMUL_PRECISIONS = ("highest", "high", "medium")  # those of PyTorch
MAX_THREADS = 1024  # far more end the process, without a word
MAX_INT = 10**18
MAX_HEADER_BYTES = 2**16  # of a policy's file; a few thousand are usual


def check_settings(settings: "Settings") -> Rules:
    """Return the rules of the settings; raise `ValueError` for one that is wrong."""

    def check(name: str, fine: bool, expected: str) -> None:
        if not fine:
            value = getattr(settings, name)
            raise ValueError(f"{name.replace('_', '-')} is {quote(value)}; expected {expected}")

    for name in ("num_tables", "minibatch_size", "epochs", "pool_size", "snapshot_every"):
        check(name, 1 <= getattr(settings, name) <= MAX_INT, "an int of 1 or more, up to 10**18")
    threads = settings.threads
    check(
        "threads", threads is None or 1 <= threads <= MAX_THREADS, f"an int from 1 to {MAX_THREADS}"
    )
    check(
        "matmul_precision",
        settings.matmul_precision in MATMUL_PRECISIONS,
        f"one of {', '.join(MATMUL_PRECISIONS)}",
    )
    check("evaluate_every", settings.evaluate_every >= 0, "an int of 0 or more")
    check(
        "evaluation_decks",
        2 <= settings.evaluation_decks <= MAX_DECKS,
        f"an int from 2, since one deck has no interval, to {MAX_DECKS}",
    )
    for name in (
        "learning_rate", "final_learning_rate", "entropy_coef", "final_entropy_coef", "value_coef",
        "save_seconds",
    ):  # fmt: skip
        check(name, 0 <= getattr(settings, name) < math.inf, "a number of 0 or more")
    for name in ("clip", "max_grad_norm", "reward_scale"):
        check(name, 0 < getattr(settings, name) < math.inf, "a number above 0")
    for name in ("pool_share", "pool_baseline_share", "pool_partner_share"):
        check(name, 0 <= getattr(settings, name) <= 1, "a number from 0 to 1")
    check(
        "pool_baselines",
        bool(settings.pool_baselines) or settings.pool_baseline_share == 0,
        "an agent, or a pool-baseline-share of 0",
    )
    check("gae_lambda", 0 <= settings.gae_lambda <= 1, "a number from 0 to 1")
    check("hidden", min(settings.hidden, default=0) >= 1, "one or more ints above 0")
    check("rewards", settings.rewards in REWARDS, f"one of {', '.join(REWARDS)}")
    steps = settings.steps
    check("steps", steps is None or 1 <= steps <= MAX_INT, "an int of 1 or more, up to 10**18")
    check(
        "minutes", settings.minutes is None or 0 < settings.minutes < math.inf, "a number above 0"
    )
    if settings.steps is not None and settings.minutes is not None:
        raise ValueError("steps and minutes are both given; give one of them, the budget")
    check_seed(settings.seed)
    check_encoding(settings.observation)
    try:
        torch.zeros(1, device=settings.device).item()
    except Exception as error:  # PyTorch has many ways to say that there is no such device
        reason = f"device is {quote(settings.device)}; PyTorch says: {shorten(first_line(error))}"
        raise ValueError(reason) from None
    rules = parse_rules(settings.rules)
    inputs = layout_of(settings.observation, rules)[-1][2]
    sizes = (inputs, *settings.hidden, ENCODINGS[settings.observation][0] + 1)
    size = 4 * sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(sizes))
    room = MAX_FILE_BYTES - MAX_HEADER_BYTES
    check("hidden", size <= room, f"a network of {room} bytes or less; this one has {size}")
    return rules
