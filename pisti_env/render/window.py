"""A window that shows a table: what `render_mode="human"` opens, where there is a screen."""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from pisti_env.knowledge import View
from pisti_env.render.raster import frame, need
from pisti_env.render.text import as_text, show

WIDTH = 720  # pixels
_WAKE_MS = 40  # so often the window answers while a picture is looked at
_NO_SCREEN = ("offscreen", "dummy")  # what SDL takes where there is no screen


class Window:
    """Shows one picture after the other, each for a while; it opens with the first one.

    Without a screen the table is printed as text, with one warning. Once its user has closed it,
    nothing is shown any more. A copy, or a window read from a pickle, is one that is not open yet.
    Raises `gymnasium.error.DependencyNotInstalled` where the extra `window` is missing.
    """

    def __init__(self, pictures_a_second: float):
        self.pictures_a_second = pictures_a_second
        self._window: Any = None  # None: not open
        self._closed_by_user = False
        self._prints = False  # there is no screen

    def __getstate__(self) -> dict[str, Any]:
        return {"pictures_a_second": self.pictures_a_second}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def show(self, view: View, reveal: Iterable[View] | None = None) -> None:
        """Show the picture of a view, until it is time for the next one."""
        reveal = None if reveal is None else list(reveal)
        with contextlib.redirect_stdout(io.StringIO()):  # it greets whoever imports it
            pygame = need("pygame", "window")
        if self._window is None and not self._prints and not self._closed_by_user:
            self._open(pygame)
        if self._prints:
            show(as_text(view, reveal))
        elif not self._closed_by_user:
            self._draw(pygame, frame(view, WIDTH, reveal))

    def _open(self, pygame: Any) -> None:
        chosen = "SDL_VIDEODRIVER" in os.environ  # then it is to have no screen
        try:
            pygame.display.init()
            if pygame.display.get_driver() not in _NO_SCREEN or chosen:
                self._window = pygame.Window("Pişti", (WIDTH, WIDTH * 3 // 4))
                return
        except pygame.error:
            pass
        self._prints = True
        _say_that_it_prints()

    def _draw(self, pygame: Any, pixels: np.ndarray) -> None:
        surface = pygame.surfarray.make_surface(pixels.swapaxes(0, 1))
        self._window.get_surface().blit(surface, (0, 0))
        self._window.flip()
        until = pygame.time.get_ticks() + 1000 / self.pictures_a_second
        while not self._closed_by_user and pygame.time.get_ticks() < until:
            for event in pygame.event.get():
                ours = getattr(event, "window", self._window) is self._window
                if event.type == pygame.QUIT or (event.type == pygame.WINDOWCLOSE and ours):
                    self.close()
                    self._closed_by_user = True
            pygame.time.wait(_WAKE_MS)

    def close(self) -> None:
        """Close the window, if it is open; the next picture opens another one."""
        if self._window is not None:
            self._window.destroy()
            self._window = None


@functools.cache
def _say_that_it_prints() -> None:
    """Say it once in a process. No warning of Python's: checkers of environments take those for
    faults, and to have no screen is none."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(
                "pisti_env: there is no screen to open a window on, so the table is printed; "
                "render_mode='rgb_array' gives its picture",
                file=sys.stderr,
            )
