"""Draw how strong a policy was while it trained: points a deal over `counting`, from its run.

```bash
python -m training.curve runs/first first.svg
```
"""

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import tyro

from training.figures import read_metrics
from training.runs import METRICS

COLOUR = "#c0392b"


class Measurement(NamedTuple):
    """One measurement of a run: points a deal over `counting`, and their 95 % interval."""

    plays: int
    mean: float
    low: float
    high: float


def read_measurements(folder: Path) -> list[Measurement]:
    """Return a run's measurements in order; raise `ValueError` if it has none."""
    path = folder / METRICS
    if not path.exists():
        raise ValueError(f"run {folder} has no {path.name}; expected the folder of a training run")
    names = ("over_counting", "over_counting_low", "over_counting_high")
    rows = read_metrics(path, ("plays", *names))
    measured = [row for row in rows if all(row[name] for name in names)]
    if not measured:
        raise ValueError(f"{path} has no measurement; train with evaluate-every above 0")
    return [Measurement(int(row["plays"]), *(float(row[n]) for n in names)) for row in measured]


def draw(measurements: list[Measurement], title: str, path: Path) -> None:
    """Write a picture of the measurements."""
    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "pisti-env"}
    from matplotlib import pyplot

    plays = [one.plays / 1e6 for one in measurements]
    figure, axes = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
    lows, highs = [one.low for one in measurements], [one.high for one in measurements]
    means = [one.mean for one in measurements]
    if len(measurements) > 1:
        axes.fill_between(plays, lows, highs, color=COLOUR, alpha=0.2, linewidth=0)
        axes.plot(plays, means, color=COLOUR)
    else:  # no line and no area has one point
        below, above = means[0] - lows[0], highs[0] - means[0]
        axes.errorbar(plays, means, [[below], [above]], fmt="o", color=COLOUR, capsize=4)
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set(title=title, xlabel="million plays", ylabel="points a deal over counting")
    axes.grid(color="0.92")
    axes.spines[:].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def main(run: tyro.conf.Positional[Path], picture: tyro.conf.Positional[Path]) -> None:
    """Draw how strong a policy was while it trained.

    Args:
        run: Folder of the run.
        picture: What to write, .svg or .png.
    """
    try:
        draw(read_measurements(run), picture.stem, picture)
    except (OSError, ValueError) as error:
        sys.exit(f"training.curve: {error}")


if __name__ == "__main__":
    tyro.cli(main)
