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

from pisti_env.render.modes import NO_RENDER_MODE, check_render_mode
from pisti_env.render.raster import frame, gif, png
from pisti_env.render.svg import svg
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
