"""The ways to render that environments have, and what they say of another one."""

from typing import Any

from pisti_env.quote import quote
from pisti_env.rules import ArgumentError

NO_RENDER_MODE = "render() needs a render_mode, 'ansi' or 'rgb_array' or 'human'; it is None"


def check_render_mode(render_mode: Any, metadata: dict[str, Any]) -> None:
    """Raise `ArgumentError` if there is no such way to render."""
    modes = metadata["render_modes"]
    if render_mode not in (None, *modes):
        raise ArgumentError(
            f"render_mode is {quote(render_mode)}; expected one of "
            f"{', '.join(map(repr, (None, *modes)))}"
        )
