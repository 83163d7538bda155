"""What a view looks like: one picture, as SVG and as pixels, and text for a terminal.

```python
from pisti_env import pisti_v0
from pisti_env.render import svg

env = pisti_v0.raw_env()
env.reset(seed=7)
picture = svg(env.view(0))  # what seat 0 knows
open_table = svg(env.view(0), size=1200, reveal=[env.view(1)])  # with the other hand face up
```

Whatever shows a table shows this: `render()`, notebooks, replay pages. `svg` and the text need no
other library; pixels need the extra `render`, a window the extra `window`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pisti_env.render.modes import NO_RENDER_MODE, check_render_mode
    from pisti_env.render.picture import svg
    from pisti_env.render.raster import frame, gif, png
    from pisti_env.render.text import as_text, show, tell_play
    from pisti_env.render.window import Window

__all__ = [
    "NO_RENDER_MODE",
    "Window",
    "as_text",
    "check_render_mode",
    "frame",
    "gif",
    "png",
    "show",
    "svg",
    "tell_play",
]

_MODULES = {
    "modes": ("NO_RENDER_MODE", "check_render_mode"),
    "picture": ("svg",),
    "raster": ("frame", "gif", "png"),
    "text": ("as_text", "show", "tell_play"),
    "window": ("Window",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what draws when it is first asked for: most runs never draw, and import this."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
