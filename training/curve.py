"""Draw how runs went: points a deal over `counting`, the policy's entropy, and plays a second.

```bash
python -m training.curve runs/first first.svg
python -m training.curve runs/seed0 runs/seed1 runs/seed2 runs/wider three-and-one.svg
```

Runs with the same settings but for the seed are one curve: their mean, in a band from the lowest to
the highest of them, as far as all of them are. A run alone has the 95 % interval of its
measurements as its band. Other settings make other curves, named by the settings that differ. A run
that is being trained is drawn as far as it is.
"""

import io
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro

from pisti_env.files import write_file
from pisti_env.quote import quote, shorten
from training.figures import read_metrics
from training.runs import METRICS
from training.settings import SETTINGS, read_json

MARGIN = ("over_counting", "over_counting_low", "over_counting_high")
# Settings that change nothing in what is learned, but for the seed.
OWN = {
    "seed", "run", "resume", "threads", "save_seconds", "evaluate_every", "evaluation_decks",
}  # fmt: skip
# Those of Okabe and Ito, which the colour-blind tell apart; in greys, lines and marks do.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LINES = ("-", "--", "-.", ":", (0, (8, 2)))
MARKS = ("o", "s", "^", "D", "v", "P")
MAX_POINTS = 40
MAX_NAME = 60


class Curve(NamedTuple):
    """A figure of a run, at millions of plays."""

    plays: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Run(NamedTuple):
    """What is drawn of a run, and its settings."""

    folder: Path
    settings: dict[str, Any]
    margin: Curve
    entropy: Curve
    speed: Curve


def read_run(folder: Path) -> Run:
    """Return a run's figures in order; raise `ValueError` naming the file if it has none."""
    path = folder / METRICS
    for name in (METRICS, SETTINGS):
        if not (folder / name).exists():
            raise ValueError(f"run {folder} has no {name}; expected the folder of a training run")
    columns = ("update", "plays", *MARGIN, "entropy", "plays_per_second")
    rows = read_metrics(path, columns)
    for before, row in itertools.pairwise(rows):
        if int(row["plays"]) <= int(before["plays"]):
            raise ValueError(
                f"{path} has {row['plays']} plays at update {row['update']}; expected more than "
                f"{before['plays']}"
            )
    margin, *bounds = (_figures(path, rows, name) for name in MARGIN)
    if not len(margin):
        raise ValueError(f"{path} has no measurement; train with evaluate-every above 0")
    if any(len(bound) != len(margin) or (bound[:, 0] != margin[:, 0]).any() for bound in bounds):
        raise ValueError(f"{path} has a measurement without its interval; restore the file")
    low, high = (bound[:, 1] for bound in bounds)
    if (low > margin[:, 1]).any() or (margin[:, 1] > high).any():
        raise ValueError(f"{path} has a measurement outside its interval; restore the file")
    return Run(
        folder,
        read_json(folder / SETTINGS),
        Curve(margin[:, 0], margin[:, 1], low, high),
        _thinned(_figures(path, rows, "entropy")),
        _thinned(_figures(path, rows, "plays_per_second")),
    )


def _figures(path: Path, rows: list[dict[str, str]], name: str) -> np.ndarray:
    """Return (n, 2) millions of plays, and the figure of a column, where there is one."""
    given = [(int(row["plays"]) / 1e6, float(row[name])) for row in rows if row[name]]
    figures = np.array(given).reshape(-1, 2)
    if not np.isfinite(figures).all():
        raise ValueError(f"{path} has a figure in {name} that is not finite; restore the file")
    return figures


def _thinned(figures: np.ndarray) -> Curve:
    """Return a curve of at most `MAX_POINTS` means of neighbouring updates, and their range."""
    parts = np.array_split(figures, min(len(figures), MAX_POINTS)) if len(figures) else []
    plays, mean = np.array([part.mean(0) for part in parts]).reshape(-1, 2).T
    low = np.array([part[:, 1].min() for part in parts])
    high = np.array([part[:, 1].max() for part in parts])
    return Curve(plays, mean, low, high)


def grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs that differ in nothing but the seed, by the settings that they do not share
    with the others; by an empty name if there are no others."""
    groups: list[tuple[dict[str, Any], list[Run]]] = []
    for run in runs:
        shared = {name: value for name, value in run.settings.items() if name not in OWN}
        same = [members for settings, members in groups if settings == shared]
        if same:
            same[0].append(run)
        else:
            groups.append((shared, [run]))
    names = list(dict.fromkeys(name for settings, _ in groups for name in settings))
    first = groups[0][0]
    differ = [n for n in names if any(s.get(n) != first.get(n) for s, _ in groups)]
    named: dict[str, list[Run]] = {}
    for settings, members in groups:
        told = ", ".join(_told(name, settings.get(name)) for name in differ)
        label = told if len(told) <= MAX_NAME else told[: MAX_NAME - 1] + "…"
        if label in named or (not label and len(groups) > 1):
            label = f"{label} {members[0].folder.name}".strip()
        named[label] = members
    return named


def _told(name: str, value: Any) -> str:
    """Return a setting as on the command line, without the dashes before it."""
    name = shorten(name.replace("_", "-"))
    if value is None or isinstance(value, bool):
        return name if value else f"no {name}"
    values = value if isinstance(value, list) else [value]
    return f"{name} {' '.join(shorten(v) if isinstance(v, str) else quote(v) for v in values)}"


def joined(curves: Sequence[Curve]) -> Curve:
    """Return the mean of curves and their range, where all of them are; between measurements they
    are straight. One curve stays what it is."""
    if len(curves) == 1:
        return curves[0]
    if not all(len(curve.plays) for curve in curves):
        return Curve(*np.zeros((4, 0)))
    plays = np.unique(np.concatenate([curve.plays for curve in curves]))
    begin = max(curve.plays[0] for curve in curves)
    end = min(curve.plays[-1] for curve in curves)
    plays = plays[(begin <= plays) & (plays <= end)]
    means = np.array([np.interp(plays, curve.plays, curve.mean) for curve in curves])
    return Curve(plays, means.mean(0), means.min(0), means.max(0))


def _draw_panel(axes: Any, kind: str, groups: dict[str, list[Run]]) -> None:
    for number, (name, runs) in enumerate(groups.items()):
        colour, line = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
        curves: list[Curve] = [getattr(run, kind) for run in runs]
        curve = joined(curves)
        plays, mean, low, high = curve
        style: dict[str, Any] = {
            "color": colour,
            "linestyle": line,
            "marker": MARKS[number % len(MARKS)],
        }
        style |= {"markersize": 4, "markevery": max(1, len(plays) // 8), "linewidth": 1.6}
        label = name or (runs[0].folder.resolve().name if len(runs) == 1 else "mean")
        label += f" ({len(runs)} seeds)" if len(runs) > 1 else ""
        label = label.lstrip("_") or "run"  # matplotlib hides a name that begins with one
        if len(plays) == 1:  # no area has one point
            axes.errorbar(plays, mean, [mean - low, high - mean], capsize=4, label=label, **style)
        else:
            axes.fill_between(plays, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(plays, mean, label=label, **style)
        for one in curves if len(curves) > 1 else ():
            axes.plot(one.plays, one.mean, color=colour, alpha=0.35, linewidth=0.7)


def draw(runs: Sequence[Run], title: str, path: Path) -> None:
    """Write a picture of the runs, whole or not at all. The same figures give the same SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"picture is {path}; expected a name that ends in .svg or .png")
    groups = grouped(runs)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # and not what the user has at home
        matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "pisti-env"}
        matplotlib.rcParams["text.parse_math"] = False  # a $ in a name is a $
        figure = Figure(figsize=(6.4, 4.8), layout="constrained", facecolor="white")
        panels = figure.subplot_mosaic(
            [["margin", "margin"], ["entropy", "speed"]], height_ratios=[2, 1], sharex=True
        )
        titles = {
            "margin": "points a deal over counting",
            "entropy": "entropy of the policy, nats",
            "speed": "thousand plays a second",
        }
        for kind, axes in panels.items():
            _draw_panel(axes, kind, groups)
            axes.set_title(titles[kind], loc="left", fontsize=10)
            axes.grid(color="0.9", linewidth=0.8)
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, colors="0.25", labelbottom=True)
            if kind != "margin":
                axes.set_xlabel("million plays")
                axes.set_ylim(bottom=0)
        panels["speed"].yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
        panels["margin"].axhline(0, color="0.45", linewidth=0.9)
        panels["margin"].legend(loc="best", fontsize=9, edgecolor="none", framealpha=0.7)
        figure.suptitle(title, fontsize=12)
        figure.supxlabel(_band(groups), fontsize=8, color="0.35")
        written = io.BytesIO()
        kind = path.suffix[1:]
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(written, format=kind, dpi=200, metadata=metadata)
    write_file(path, written.getvalue())


def _band(groups: dict[str, list[Run]]) -> str:
    """Return what the bands are."""
    several = any(len(runs) > 1 for runs in groups.values())
    alone = any(len(runs) == 1 for runs in groups.values())
    parts = ["lowest to highest seed"] if several else []
    if alone:
        parts.append(("one run: " if several else "") + "95 % interval over decks (above)")
        parts.append("range of neighbouring updates (below)")
    return f"bands: {', '.join(parts)}"


def main(runs: tyro.conf.Positional[tuple[Path, ...]], picture: tyro.conf.Positional[Path]) -> None:
    """Draw how runs went: how strong the policy was, its entropy, and plays a second. Runs that
    differ only in the seed are one curve with a band.

    Args:
        runs: Folders of the runs.
        picture: What to write, .svg or .png.
    """
    try:
        if not runs:
            raise ValueError(f"there is only {picture}; expected runs and the picture to write")
        seen = {}
        for run in runs:
            if run.resolve() in seen:
                raise ValueError(f"run {run} is given twice; name each run once")
            seen[run.resolve()] = read_run(run)
        draw(list(seen.values()), picture.stem, picture)
    except (OSError, ValueError) as error:
        sys.exit(f"training.curve: {error}")


if __name__ == "__main__":
    tyro.cli(main, prog="python -m training.curve")
