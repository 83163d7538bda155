"""A record's moments as pictures."""

from collections.abc import Callable
from typing import Any

from pisti_env.quote import quote
from pisti_env.record import Record
from pisti_env.render import frame, gif, svg
from pisti_env.replay.moments import moment, moments, names_of

LARGEST_ANIMATION = 1600  # pixels; all its frames lie in memory at once
SECONDS, LAST_SECONDS = 1.2, 4.0


def picture(record: Record, deal: int, play: int, size: int) -> str:
    """Return a moment as SVG, `size` pixels wide."""
    shown = moment(record, deal, play)
    return svg(shown.view, size, shown.reveal, names_of(record))


def animation(
    record: Record, deal: int, size: int, on_frame: Callable[[int], Any] = lambda frames: None
) -> bytes:
    """Return a deal as an animated GIF, `size` pixels wide, with a frame before the first play and
    one after each. `on_frame` is told of every one that is drawn.

    Raises `gymnasium.error.DependencyNotInstalled` where the extra `render` is missing.
    """
    if size > LARGEST_ANIMATION:
        raise ValueError(
            f"size is {quote(size)}; expected at most {LARGEST_ANIMATION} for an animation"
        )
    names, frames = names_of(record), []
    for shown in moments(record, deal):
        frames.append(frame(shown.view, size, shown.reveal, names))
        on_frame(1)
    return gif(frames, [SECONDS] * (len(frames) - 1) + [LAST_SECONDS])
