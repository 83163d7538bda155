"""The picture of a view as pixels, by libraries that are an extra and imported when they are used.

resvg draws the SVG; it takes one font, which lies beside this file, so that a picture is the same
on every machine.
"""

import io
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from pisti_env.knowledge import View
from pisti_env.render.picture import FONT, svg

FONT_FILE = Path(__file__).with_name("Inter-SemiBold.otf")


def need(module: str, extra: str) -> Any:
    """Return a module that an extra brings; raise `DependencyNotInstalled` with what to install."""
    try:
        return import_module(module)
    except ImportError:
        raise gymnasium.error.DependencyNotInstalled(
            f'{module} is not installed; pip install "pisti-env[{extra}]" installs what is needed'
        ) from None


def png(
    view: View,
    size: int = 480,
    reveal: Iterable[View] | None = None,
    names: Sequence[str] | None = None,
) -> bytes:
    """Return the picture that `svg` makes of its arguments, as a PNG file."""
    return _png(svg(view, size, reveal, names))


def frame(
    view: View,
    size: int = 480,
    reveal: Iterable[View] | None = None,
    names: Sequence[str] | None = None,
) -> np.ndarray:
    """Return the picture that `svg` makes of its arguments as pixels, (size * 3 // 4, size, 3)
    uint8.

    Raises `gymnasium.error.DependencyNotInstalled` where the extra `render` is missing.
    """
    image = need("PIL.Image", "render")
    with image.open(io.BytesIO(png(view, size, reveal, names))) as picture:
        return np.array(picture.convert("RGB"))


def gif(frames: Sequence[np.ndarray], seconds: Sequence[float]) -> bytes:
    """Return an animation of frames (h, w, 3) uint8 as a GIF file that begins anew at its end;
    `seconds` are how long each is shown."""
    image = need("PIL.Image", "render")
    pictures = [image.fromarray(one) for one in frames]
    # One palette for all: what does not change from one frame to the next is then left out.
    some = frames[:: len(frames) // 8 + 1]
    palette = image.fromarray(np.concatenate(some)).quantize(128)
    first, *rest = [one.quantize(palette=palette, dither=image.Dither.NONE) for one in pictures]
    file = io.BytesIO()
    durations = [round(1000 * one) for one in seconds]
    first.save(file, "GIF", save_all=True, append_images=rest, duration=durations, loop=0)
    return file.getvalue()


def _png(text: str) -> bytes:
    resvg = need("resvg_py", "render")
    drawn = resvg.svg_to_bytes(
        svg_string=text, skip_system_fonts=True, font_files=[str(FONT_FILE)], font_family=FONT
    )
    return bytes(drawn)
