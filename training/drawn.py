"""A deal of the policy against `counting`, drawn for TensorBoard while it trains.

It is of the same deck every time, so that one sees how the policy's play changes. Nothing of it
touches what is learned.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from pisti_env import pisti_v0
from pisti_env.agents import Agent, ask, load
from pisti_env.knowledge import View
from pisti_env.render import frame, tell_play
from pisti_env.rules import Rules

if TYPE_CHECKING:  # the trainer imports this file, by way of its figures
    from training.selfplay import Settings

DECK_SEED = 7
MOMENTS = 6
IN_A_ROW = 3
SIZE = 420  # pixels that a table is wide


def is_due(settings: "Settings", update: int) -> bool:
    """Return whether the deal is to be drawn at the measurement after this update: at the first, at
    the second, fourth, eighth and so on, and at one out of turn, which a run ends with."""
    number, out_of_turn = divmod(update, settings.evaluate_every)
    return out_of_turn > 0 or number & (number - 1) == 0


def names_of(rules: Rules) -> list[str]:
    """Return who plays in each seat: the policy for the first side."""
    return ["policy" if rules.side(seat) == 0 else "counting" for seat in range(rules.players)]


def deal_of(policy: Agent, rules: Rules) -> list[list[View]]:
    """Play a deal; return what every seat knew, at the start and after each play."""
    rules = dataclasses.replace(rules, target=None)  # one deal, of a match too
    agents = {"policy": policy, "counting": load("counting", rules)}
    players = [agents[name] for name in names_of(rules)]
    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=DECK_SEED)

    def views() -> list[View]:
        return [env.view(seat) for seat in range(rules.players)]

    deal = [views()]
    while (seat := deal[-1][0].to_play) is not None:
        env.step(ask(env, players[seat]))
        deal.append(views())
    return deal


def moments_of(deal: Sequence[Sequence[View]]) -> list[int]:
    """Return which moments of a deal are drawn, in order: the start, the end, and between them
    those after the plays that brought most points, the earlier of equal ones."""

    def points(moment: int) -> int:
        last = deal[moment][0].last_play
        return 0 if last is None else sum(gain.points for gain in last.gains)

    between = sorted(range(1, len(deal) - 1), key=points, reverse=True)
    return sorted({0, *between[: MOMENTS - 2], len(deal) - 1})


def sheet_of(deal: Sequence[Sequence[View]]) -> np.ndarray:
    """Return the moments of a deal with all hands face up, (height, width, 3) uint8, three in a
    row. Raises `gymnasium.error.DependencyNotInstalled` where the extra `render` is missing."""
    names = names_of(deal[0][0].rules)
    frames = [
        frame(deal[moment][0], SIZE, reveal=deal[moment][1:], names=names)
        for moment in moments_of(deal)
    ]
    height, width, _ = frames[0].shape
    sheet = np.full((-(-len(frames) // IN_A_ROW) * height, IN_A_ROW * width, 3), 255, np.uint8)
    for number, picture in enumerate(frames):
        top, left = number // IN_A_ROW * height, number % IN_A_ROW * width
        sheet[top : top + height, left : left + width] = picture
    return sheet


def told(deal: Sequence[Sequence[View]]) -> str:
    """Return what every play of a deal did, a line each."""
    names = names_of(deal[0][0].rules)
    return "\n".join(tell_play(views[0], names) for views in deal[1:])


def add_deal(board: Any, policy: Agent, rules: Rules, update: int) -> str:
    """Add a deal of the policy to TensorBoard, as text and as a picture. Returns why there is no
    picture, or nothing."""
    deal = deal_of(policy, rules)
    lines = told(deal).splitlines()
    board.add_text("deal", "".join(f"    {line}\n" for line in lines), update)  # as Markdown's code
    try:
        board.add_image("deal", sheet_of(deal), update, dataformats="HWC")
    except gymnasium.error.DependencyNotInstalled as error:
        return f"the deal is not drawn for TensorBoard: {error}"
    return ""
