"""How far something is that takes long."""

import sys

from tqdm import tqdm


def progress_bar(total: int | None, unit: str, show: bool = True) -> tqdm:
    """Return a bar on stderr for `total` of a `unit`, to be updated and closed; it shows itself
    after two seconds, and leaves nothing behind. In a log, which needs few lines, it is renewed
    every ten seconds."""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(
        total=total,
        disable=not show or sys.stderr is None,
        delay=2,
        mininterval=0.5 if on_terminal else 10,
        leave=False,
        unit=f" {unit}",
        unit_scale=True,
    )
