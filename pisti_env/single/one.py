"""One learner at one table."""

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from pisti_env.checks import is_int
from pisti_env.knowledge import View
from pisti_env.observation import Encoder
from pisti_env.quote import quote
from pisti_env.render import NO_RENDER_MODE, Window, check_render_mode, frame
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


class PistiEnv(gymnasium.Env[Any, Any]):
    """One table, `gymnasium.make("Pisti-v0", …)`. `pisti_env.single` is the manual."""

    # Gymnasium does not call it a class variable.
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["human", "ansi", "rgb_array"],
        "render_fps": 2,
    }

    # More than eight, for each is an option that Gymnasium takes by keyword.
    def __init__(
        self,
        opponent: Any = "counting",
        partner: Any = None,
        rules: RulesLike = "standard",
        observation: str = "kinds",
        mask_in: str = "info",
        rewards: str = "difference",
        seat: int | None = None,
        illegal: str = "end",
        render_mode: str | None = None,
        reveal: bool = False,
        **fields: Any,
    ):
        check_keywords(PistiEnv.__init__, fields)
        check_render_mode(render_mode, self.metadata)
        self.rules = resolve_rules(rules, **fields)
        arguments = Arguments(opponent, partner, observation, mask_in, rewards, seat, illegal)
        self._core = LearnerTables(self.rules, 1, arguments)
        self.render_mode = render_mode
        self.reveal = bool(reveal)
        self._window = Window(self.metadata["render_fps"])
        self.observation_space = self._core.space
        self.action_space = spaces.Discrete(self._core.encoder.num_actions)
        self._action = np.zeros(1, np.int64)
        self._over = False
        self._spec: EnvSpec | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))

    def __copy__(self) -> "PistiEnv":
        return copy.deepcopy(self)

    @property
    def spec(self) -> EnvSpec | None:
        """How Gymnasium made it; `to_json()` writes it, unless agents themselves were given."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = spec_for_json(spec)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return the learner's first observation, and the info with its mask.

        Raises `ValueError`, and changes nothing, for a wrong seed or option.
        """
        core = self._core
        given = read_options(self.rules, options, RESET_OPTIONS)
        if seed is not None:
            seed = check_seed(seed)
        with core.tables.one_thread():
            core.under_way = False
            if seed is not None:
                core.reseed(core.all_rows, [seed], core.all_rows)
            super().reset(seed=seed)
            core.begin(core.all_rows, **given)
            core.play_on(core.all_rows, ignore)
            core.under_way, self._over = True, False
            if self.render_mode == "human":
                self.render()
            return self._observe()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's card, and the others' until it is its turn again.

        Returns the observation, the reward, whether the episode is over, False (nothing truncates
        it), and the info with the mask. Raises `ValueError`, and changes nothing, for an action
        that is no int, and with `illegal="raise"` for one that is not in the hand. Where an agent
        fails, what it raised is raised, and only `reset()` goes on.
        """
        core = self._core
        with core.tables.one_thread():
            core.check_under_way()
            if self._over:
                raise gymnasium.error.ResetNeeded("the episode is over; call reset()")
            if not is_int(action):
                raise ValueError(f"action is {quote(action)}; expected an int")
            self._action[0] = min(max(int(action), -1), core.encoder.num_actions)  # to fit 64 bits
            if len(core.choose(core.all_rows, self._action)):
                if core.illegal == "raise":
                    raise core.refusal(0, int(action), "action")
                self._over, reward = True, -core.tables.most_to_lose
            else:
                core.under_way = False
                core.play(core.all_rows, ignore)
                core.play_on(core.all_rows, ignore)
                self._over, reward = bool(core.tables.over[0]), float(core.gained[0])
            core.gained[0] = 0.0
            core.under_way = True
            if self.render_mode == "human":
                self.render()
            observation, info = self._observe()
            return observation, reward, self._over, False, info

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        """Return what the learner observes, in the form of its space, and the info."""
        core = self._core
        observations, masks = core.observe(core.all_rows)
        if self._over:
            masks[:] = 0  # an illegal action ended it
        return core.in_form(observations[0], masks[0]), {"action_mask": masks[0]}

    def action_masks(self) -> np.ndarray:
        """Return whether each action is legal, (a,) bool; none is once the episode is over."""
        self._core.check_under_way()
        masks = self._core.action_masks(self._core.all_rows)
        return (masks[0] != 0) & (not self._over)

    @property
    def illegal_actions(self) -> int:
        """How many illegal actions there were so far, in all episodes."""
        return self._core.illegal_actions

    @property
    def seat(self) -> int:
        """The learner's seat."""
        self._core.check_under_way()
        return int(self._core.seats[0])

    def view(self, seat: int | None) -> View:
        """Return what a seat knows, or with None what everyone does."""
        return self._core.view(0, seat)

    def score(self) -> list[dict[str, int]]:
        """Return a dict per side, seat 0's first: points (face-down starters included), cards,
        pistis, jack_pistis, match_points. Not an observation: for tests, logs and displays."""
        return self._core.score(0)

    @property
    def deals(self) -> list[list[dict[str, int]]]:
        """The finished deals of the episode, each as `score` tells it."""
        return self._core.deals(0)

    def position(self, seat: int | None = None) -> str:
        """Return what a seat, or a spectator, knows as one line of text; see `position.py`."""
        return self._core.position(0, seat)

    def moment(self) -> tuple[np.ndarray, Encoder]:
        """Return a copy of the table's record (1,), and the encoder of the observations: what
        `pisti_env.agents.ask` asks agents with. Raises `ResetNeeded` once it is over."""
        games, encoder = self._core.moment()
        if self._over:
            raise gymnasium.error.ResetNeeded("the episode is over; call reset() first")
        return games, encoder

    def render(self) -> str | np.ndarray | None:
        """Return the learner's view as text ("ansi") or as a picture ("rgb_array"), (360, 480, 3)
        uint8, or show it ("human"); with `reveal` all hands are seen."""
        if self.render_mode is None:
            gymnasium.logger.warn(NO_RENDER_MODE)
            return None
        self._core.check_under_way()
        if self.render_mode == "ansi":
            return self._core.draw(0, self.reveal)
        view, reveal = self._core.shown(0, self.reveal)
        if self.render_mode == "rgb_array":
            return frame(view, reveal=reveal)
        self._window.show(view, reveal)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()
