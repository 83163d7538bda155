"""A learner at many tables."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from pisti_env.checks import check_actions, is_int, is_row
from pisti_env.quote import quote
from pisti_env.rules import RulesLike, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.single.learner import (
    RESET_OPTIONS,
    LearnerTables,
    check_render_mode,
    ignore,
    read_options,
)

_RESET_MASK = "reset_mask"


class PistiVectorEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """Many tables, `gymnasium.make_vec("Pisti-v0", num_envs=n, …)`.

    `pisti_env.single` is the manual.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        opponent: Any = "counting",
        partner: Any = None,
        rules: RulesLike = "standard",
        observation: str = "kinds",
        mask_in: str = "info",
        rewards: str = "difference",
        seat: int | None = None,
        illegal: str = "end",
        render_mode: str | None = None,
        **fields: Any,
    ):
        if not is_int(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs is {quote(num_envs)}; expected an int of 1 or more")
        check_render_mode(render_mode, self.metadata)
        self.num_envs = int(num_envs)
        self.rules = resolve_rules(rules, **fields)
        self._core = LearnerTables(
            num_envs, opponent, partner, self.rules, observation, mask_in, rewards, seat, illegal
        )
        self.render_mode = render_mode
        self.single_observation_space = self._core.space
        self.single_action_space = spaces.Discrete(self._core.encoder.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._started = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | np.ndarray | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at every table, or at those of `options["reset_mask"]`; return all
        tables' observations (n, d) float32, or a dict of arrays, and infos.

        Raises `ValueError`, and changes nothing, for a wrong seed or option.
        """
        core = self._core
        given = read_options(self.rules, options, (*RESET_OPTIONS, _RESET_MASK))
        rows = self._read_mask((options or {}).get(_RESET_MASK))
        seeds = self._read_seeds(seed)
        super().reset(seed=seeds[0] if is_int(seed) else None)
        seeded = np.array([row for row in rows if seeds[row] is not None], np.int64)
        if len(seeded):
            core.reseed(seeded, [seeds[row] for row in seeded])
        core.begin(rows, **given)
        core.play_on(rows, ignore)
        self._started = True
        return self._observe()

    def _read_mask(self, mask: Any) -> np.ndarray:
        """Return the rows of a reset mask, (k,); all without one."""
        if mask is None:
            return self._core.all_rows
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(
                f"reset_mask is {quote(mask)}; expected an array of bools, one or more True"
            )
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"reset_mask has shape {mask.shape}; expected ({self.num_envs},), one per table"
            )
        if not self._started:
            raise gymnasium.error.ResetNeeded("reset_mask is given; call reset() without it first")
        return np.flatnonzero(mask)

    def _read_seeds(self, seed: Any) -> list[int | None]:
        """Return every table's seed, None where there is none."""
        if seed is None:
            return [None] * self.num_envs
        if is_int(seed):
            first = check_seed(seed)
            return [check_seed(first + table) for table in range(self.num_envs)]
        if not is_row(seed) or len(seed) != self.num_envs:
            raise ValueError(
                f"seed is {quote(seed)}; expected an int, or a list of one per table, "
                f"{self.num_envs}"
            )
        return [None if one is None else check_seed(one) for one in seed]

    def step(
        self, actions: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play the learner's card at every table, and the others' until it is its turn everywhere;
        a table whose episode is over restarts at once.

        Takes actions (n,) of an integer dtype. Returns observations (n, d) float32, or a dict of
        arrays, rewards (n,) float64, terminations and truncations (n,) bool, and infos: all new.
        Raises `ValueError` for actions of another form, and with `illegal="raise"`, before any card
        is played, for one that is not in its hand.
        """
        if not self._started:
            raise gymnasium.error.ResetNeeded("no deal has been dealt yet; call reset() first")
        core = self._core
        actions = check_actions(actions, self.num_envs)
        rewards = np.zeros(self.num_envs)
        ended = np.zeros(self.num_envs, np.bool_)
        finals: list[tuple[np.ndarray, np.ndarray]] = []

        def restart(rows: np.ndarray) -> None:
            finals.append((rows, core.observe(rows)[0]))
            ended[rows], rewards[rows] = True, core.gained[rows]
            core.begin(rows)

        rows, illegal = core.all_rows, core.choose(actions)
        if len(illegal):
            if core.illegal == "raise":
                table = int(illegal[0])
                raise core.refusal(table, int(actions[table]), f"action of table {table}")
            restart(illegal)
            rewards[illegal] = -core.tables.most_to_lose
            rows = np.flatnonzero(~ended)
        core.play(rows, restart)
        core.play_on(core.all_rows, restart)
        # What others did at a table that has restarted belongs to its next reward.
        rewards = np.where(ended, rewards, core.gained)
        core.gained[~ended] = 0.0
        observations, infos = self._observe()
        if finals:
            self._add_finals(infos, ended, finals)
        return observations, rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        """Return what the learner observes at all tables, in the form of its space, and infos."""
        core = self._core
        observations, masks = core.observe(core.all_rows)
        infos = {"action_mask": masks, "_action_mask": np.ones(self.num_envs, np.bool_)}
        return core.in_form(observations, masks), infos

    def _add_finals(
        self,
        infos: dict[str, Any],
        ended: np.ndarray,
        finals: list[tuple[np.ndarray, np.ndarray]],
    ) -> None:
        """Add the last observations and infos of the episodes that ended, in Gymnasium's form."""
        no_action = np.zeros(self._core.encoder.num_actions, np.int8)
        final_obs = np.full(self.num_envs, None, object)
        for rows, observations in finals:
            for row, observation in zip(rows.tolist(), observations, strict=True):
                final_obs[row] = self._core.in_form(observation, no_action)
        infos["final_obs"], infos["_final_obs"] = final_obs, ended.copy()
        infos["final_info"] = {
            "action_mask": np.zeros((self.num_envs, len(no_action)), np.int8),
            "_action_mask": ended.copy(),
        }
        infos["_final_info"] = ended.copy()

    @property
    def illegal_actions(self) -> int:
        """How many illegal actions there were so far, at all tables and in all episodes."""
        return self._core.illegal_actions

    @property
    def seats(self) -> np.ndarray:
        """The learner's seat at each table, (n,) int64."""
        return self._core.seats.copy()

    def action_masks(self) -> np.ndarray:
        """Return whether each action is legal, (n, a) bool."""
        return self._core.action_masks(self._core.all_rows) != 0

    def render(self) -> tuple[str, ...] | None:
        """Return the learner's view of every table as text ("ansi")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='ansi'; it is None")
            return None
        return tuple(self._core.draw(table) for table in range(self.num_envs))
