"""One learner at one table."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from pisti_env.checks import is_int
from pisti_env.quote import quote
from pisti_env.render import show
from pisti_env.rules import RulesLike, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.single.learner import (
    RESET_OPTIONS,
    LearnerTables,
    check_render_mode,
    ignore,
    read_options,
)


class PistiEnv(gymnasium.Env[Any, Any]):
    """One table, `gymnasium.make("Pisti-v0", …)`. `pisti_env.single` is the manual."""

    # Gymnasium does not call it a class variable.
    metadata: dict[str, Any] = {"render_modes": ["human", "ansi"], "render_fps": 2}  # noqa: RUF012

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
        **fields: Any,
    ):
        check_render_mode(render_mode, self.metadata)
        self.rules = resolve_rules(rules, **fields)
        self._core = LearnerTables(
            1, opponent, partner, self.rules, observation, mask_in, rewards, seat, illegal
        )
        self.render_mode = render_mode
        self.observation_space = self._core.space
        self.action_space = spaces.Discrete(self._core.encoder.num_actions)
        self._action = np.zeros(1, np.int64)
        self._started = False
        self._over = False

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
            core.reseed(core.all_rows, [seed])
        super().reset(seed=seed)
        core.begin(core.all_rows, **given)
        core.play_on(core.all_rows, ignore)
        self._started, self._over = True, False
        if self.render_mode == "human":
            self.render()
        return self._observe()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's card, and the others' until it is its turn again.

        Returns the observation, the reward, whether the episode is over, False (nothing truncates
        it), and the info with the mask. Raises `ValueError`, and changes nothing, for an action
        that is no int, and with `illegal="raise"` for one that is not in the hand.
        """
        core = self._core
        self._check_started()
        if self._over:
            raise gymnasium.error.ResetNeeded("the episode is over; call reset()")
        if not is_int(action):
            raise ValueError(f"action is {quote(action)}; expected an int")
        self._action[0] = min(max(int(action), -1), core.encoder.num_actions)  # to fit 64 bits
        if len(core.choose(self._action)):
            if core.illegal == "raise":
                raise core.refusal(0, int(action), "action")
            self._over, reward = True, -core.tables.most_to_lose
        else:
            core.play(core.all_rows, ignore)
            core.play_on(core.all_rows, ignore)
            self._over, reward = bool(core.tables.over[0]), float(core.gained[0])
        core.gained[0] = 0.0
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
        self._check_started()
        masks = self._core.action_masks(self._core.all_rows)
        return (masks[0] != 0) & (not self._over)

    @property
    def illegal_actions(self) -> int:
        """How many illegal actions there were so far, in all episodes."""
        return self._core.illegal_actions

    @property
    def seat(self) -> int:
        """The learner's seat."""
        self._check_started()
        return int(self._core.seats[0])

    def _check_started(self) -> None:
        if not self._started:
            raise gymnasium.error.ResetNeeded("no deal has been dealt yet; call reset() first")

    def render(self) -> str | None:
        """Return the learner's view as text ("ansi") or print it ("human")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='ansi' or 'human'; it is None")
            return None
        self._check_started()
        text = self._core.draw(0)
        if self.render_mode == "ansi":
            return text
        show(text)
        return None
