"""Who plays where the policy does not: baselines, and snapshots of the policy's own past."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from pisti_env.agents.hosting import Pool, ask_each
from pisti_env.agents.policy import PolicyAgent
from pisti_env.rules import Rules
from pisti_env.vector import DealBatch
from training.runs import SNAPSHOTS
from training.settings import first_line

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Settings


class Opponents:
    """A pool of baselines and snapshots, and who of them sits where.

    Snapshots lie in the run's folder, so that a resumed run has the same.
    """

    def __init__(self, settings: "Settings", rules: Rules):
        self._settings = settings
        self._folder = Path()
        self._baselines = [load(name, rules) for name in settings.pool_baselines]
        self._snapshots: dict[int, PolicyAgent] = {}

    def use_folder(self, folder: Path, update: int) -> None:
        """Keep snapshots in a run's folder, and take up those from before an update. Raises
        `ValueError` naming the file if one of them is missing or cannot be used."""
        self._folder = folder / SNAPSHOTS
        self._folder.mkdir(exist_ok=True)
        numbers = range(0, update, self._settings.snapshot_every)
        for number in numbers[-self._settings.pool_size :]:
            self._take_up(number, read_checkpoint(self._path(number)))

    def add(self, update: int, checkpoint: Checkpoint) -> None:
        """Make a snapshot of the policy as it is before an update."""
        write_checkpoint(self._path(update), checkpoint)
        self._take_up(update, checkpoint)

    def _path(self, update: int) -> Path:
        return self._folder / f"{update:08}.safetensors"

    def _take_up(self, update: int, checkpoint: Checkpoint) -> None:
        self._snapshots[update] = PolicyAgent(checkpoint, sample=True)
        for old in sorted(self._snapshots)[: -self._settings.pool_size]:
            del self._snapshots[old]

    def seat(self, batch: DealBatch, generator: torch.Generator) -> "Seating":
        """Draw who plays each seat for a deal. On the first tables the policy plays one side, or
        with partners one seat of it, and agents of the pool the rest."""
        settings, rules = self._settings, batch.rules
        share = settings.pool_baseline_share
        weights: dict[Agent, float] = {}
        weights |= {agent: share / len(self._baselines) for agent in self._baselines}
        weights |= {agent: (1 - share) / len(self._snapshots) for agent in self._snapshots.values()}
        pool, device = Pool(weights), generator.device
        tables = round(settings.pool_share * batch.num_envs)
        drawn = torch.rand(3, tables, generator=generator, device=device).cpu().numpy()
        agents = pool.sample(drawn[0])[:, np.newaxis]
        own_side = (drawn[1] * rules.sides).astype(np.int64)[:, np.newaxis]
        seats = np.arange(rules.players)
        others = seats % rules.sides != own_side
        if rules.pairs:
            partners = (seats >= rules.sides) & (drawn[2] < settings.pool_partner_share)[:, None]
            others |= partners
        who = np.full((batch.num_envs, rules.players), -1)
        who[:tables] = np.where(others, agents, -1)
        shape = (rules.num_plays, batch.num_envs)
        seeds = torch.randint(2**62, shape, generator=generator, device=device)
        return Seating(pool, who, seeds.cpu().numpy())


class Seating(NamedTuple):
    """Who plays where in a deal."""

    pool: Pool
    who: np.ndarray
    """(n, players): the number of an agent of the pool, -1 where the policy plays."""
    seeds: np.ndarray
    """(plays, n): what the agents draw from."""

    def choose(self, batch: DealBatch, play: int, actions: np.ndarray) -> np.ndarray:
        """Write into `actions` (n,) what agents of the pool play at their tables; return where
        (n,) they do."""
        agents = self.who[np.arange(batch.num_envs), batch.seats]
        try:
            ask_each(self.pool.agents, batch, agents, actions, self.seeds[play])
        except Exception as error:  # what an agent raises is its own matter
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise ValueError(f"an agent of the pool failed, so training ends: {reason}") from error
        return agents >= 0
