"""A learner at many tables."""

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from pisti_env.checks import check_actions, check_row, is_int, is_row
from pisti_env.knowledge import View
from pisti_env.observation import Encoder
from pisti_env.quote import quote
from pisti_env.render import NO_RENDER_MODE, check_render_mode, frame
from pisti_env.rules import RulesLike, check_keywords, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.single.arguments import (
    RESET_OPTIONS,
    Arguments,
    read_options,
    spec_for_json,
)
from pisti_env.single.learner import LearnerTables, ignore
from pisti_env.tables import own_arrays

_RESET_MASK = "reset_mask"


class PistiVectorEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """Many tables, `gymnasium.make_vec("Pisti-v0", num_envs=n, …)`.

    `pisti_env.single` is the manual.
    """

    # An environment's own has its "autoreset_mode" besides.
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 2,
    }

    # More than eight, for each is an option that Gymnasium takes by keyword.
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        reveal: bool = False,
        **fields: Any,
    ):
        check_keywords(PistiVectorEnv.__init__, fields)
        if not is_int(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs is {quote(num_envs)}; expected an int of 1 or more")
        check_render_mode(render_mode, self.metadata)
        self.num_envs = int(num_envs)
        self.rules = resolve_rules(rules, **fields)
        arguments = Arguments(opponent, partner, observation, mask_in, rewards, seat, illegal)
        self._core = LearnerTables(self.rules, self.num_envs, arguments)
        self.autoreset_mode = read_mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.reveal = bool(reveal)
        self.single_observation_space = self._core.space
        self.single_action_space = spaces.Discrete(self._core.encoder.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._over = np.zeros(self.num_envs, np.bool_)  # and has not restarted yet
        self._spec: EnvSpec | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))

    def __copy__(self) -> "PistiVectorEnv":
        return copy.deepcopy(self)

    @property
    def spec(self) -> EnvSpec | None:
        """How Gymnasium made it; `to_json()` writes it, unless agents themselves were given."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = spec_for_json(spec)

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
        # An int is the seed of all tables, whose numbers differ; in a list, each has its own.
        numbers = self._core.all_rows if is_int(seed) else np.zeros(self.num_envs, np.int64)
        with core.tables.one_thread():
            if len(rows) < self.num_envs:
                core.check_under_way()
            core.under_way = False
            super().reset(seed=seeds[0] if is_int(seed) else None)
            seeded = np.array([row for row in rows if seeds[row] is not None], np.int64)
            core.reseed(seeded, [seeds[row] for row in seeded], numbers[seeded])
            core.begin(rows, **given)
            core.play_on(rows, ignore)
            self._over[rows] = False
            core.under_way = True
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
        return np.flatnonzero(mask)

    def _read_seeds(self, seed: Any) -> list[int | None]:
        """Return every table's seed, None where there is none."""
        if seed is None:
            return [None] * self.num_envs
        if is_int(seed):
            return [check_seed(seed)] * self.num_envs
        if not is_row(seed) or len(seed) != self.num_envs:
            raise ValueError(
                f"seed is {quote(seed)}; expected an int, or a list of one per table, "
                f"{self.num_envs}"
            )
        return [None if one is None else check_seed(one) for one in seed]

    def step(
        self, actions: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play the learner's card at every table, and the others' until it is its turn everywhere.
        What happens where an episode is over is told by the autoreset mode.

        Takes actions (n,) of an integer dtype. Returns observations (n, d) float32, or a dict of
        arrays, rewards (n,) float64, terminations and truncations (n,) bool, and infos: all new.
        Raises `ValueError` for actions of another form, and with `illegal="raise"`, before any card
        is played, for one that is not in its hand. Where an agent fails, what it raised is raised,
        and only a `reset()` of all tables goes on.
        """
        core = self._core
        with core.tables.one_thread():
            core.check_under_way()
            actions = check_actions(actions, self.num_envs)
            if self.autoreset_mode == AutoresetMode.DISABLED and self._over.any():
                raise gymnasium.error.ResetNeeded(
                    f"the episode of table {self._over.argmax()} is over; call reset with the "
                    "option reset_mask first"
                )
            rows = np.flatnonzero(~self._over)
            illegal = core.choose(rows, actions[rows])
            if len(illegal) and core.illegal == "raise":
                table = int(illegal[0])
                raise core.refusal(table, int(actions[table]), f"action of table {table}")
            core.under_way = False
            played = self._play(rows, illegal)
            core.under_way = True
            return played

    def _play(
        self, rows: np.ndarray, illegal: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play the cards that were chosen at `rows`, but end the episode at those of them where the
        action is `illegal`; restart the other tables. Returns what `step` does."""
        core = self._core
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        rewards, ended = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        finals: list[tuple[np.ndarray, np.ndarray]] = []

        def end(rows: np.ndarray) -> None:
            ended[rows], rewards[rows] = True, core.gained[rows]
            if same_step:
                finals.append((rows, core.observe(rows)[0]))
                core.begin(rows)

        if self._over.any():
            core.begin(np.flatnonzero(self._over))
        if len(illegal):
            end(illegal)
            rewards[illegal] = -core.tables.most_to_lose
        core.play(rows[~ended[rows]], end)
        # Where an illegal action has ended the episode, nobody plays on.
        core.play_on(core.all_rows if same_step else np.setdiff1d(core.all_rows, illegal), end)
        # What others did at a table that has restarted belongs to its next reward.
        going_on = ~ended & ~self._over
        rewards[going_on] = core.gained[going_on]
        core.gained[going_on] = 0.0
        self._over = np.zeros_like(ended) if same_step else ended.copy()
        observations, infos = self._observe()
        if finals:
            self._add_finals(infos, ended, finals)
        return observations, rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        """Return what the learner observes at all tables, in the form of its space, and infos."""
        core = self._core
        observations, masks = core.observe(core.all_rows)
        masks[self._over] = 0  # an illegal action may have ended it
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
        self._core.check_under_way()
        return self._core.seats.copy()

    def action_masks(self) -> np.ndarray:
        """Return whether each action is legal, (n, a) bool; none is where the episode is over."""
        self._core.check_under_way()
        masks = self._core.action_masks(self._core.all_rows) != 0
        masks[self._over] = False
        return masks

    def view(self, table: int, seat: int | None) -> View:
        """Return what a seat of a table knows, or with None what everyone there does."""
        return self._core.view(check_row(table, self.num_envs), seat)

    def score(self, table: int) -> list[dict[str, int]]:
        """Return a dict per side of a table, seat 0's first: points (face-down starters included),
        cards, pistis, jack_pistis, match_points. Not an observation: for tests, logs, displays."""
        return self._core.score(check_row(table, self.num_envs))

    def deals(self, table: int) -> list[list[dict[str, int]]]:
        """Return the finished deals of a table's episode, each as `score` tells it."""
        return self._core.deals(check_row(table, self.num_envs))

    def position(self, table: int, seat: int | None = None) -> str:
        """Return what a seat of a table, or a spectator, knows as one line of text; see
        `position.py`."""
        return self._core.position(check_row(table, self.num_envs), seat)

    def moment(self) -> tuple[np.ndarray, Encoder]:
        """Return a copy of the tables' records (n,), and the encoder of the observations:
        what `pisti_env.agents.hosting` asks agents with."""
        return self._core.moment()

    def render(self) -> tuple[Any, ...] | None:
        """Return the learner's view of every table, as text ("ansi") or as a picture ("rgb_array"),
        (360, 480, 3) uint8; with `reveal` all hands are seen."""
        if self.render_mode is None:
            gymnasium.logger.warn(NO_RENDER_MODE)
            return None
        tables = range(self.num_envs)
        if self.render_mode == "ansi":
            return tuple(self._core.draw(table, self.reveal) for table in tables)
        shown = (self._core.shown(table, self.reveal) for table in tables)
        return tuple(frame(view, reveal=reveal) for view, reveal in shown)


def read_mode(mode: Any) -> AutoresetMode:
    """Return an autoreset mode from itself or from its text; raise `ValueError` if it is none."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        values = ", ".join(repr(one.value) for one in AutoresetMode)
        raise ValueError(
            f"autoreset_mode is {quote(mode)}; expected one of Gymnasium's AutoresetMode, or its "
            f"value: {values}"
        ) from None
