"""How a run goes: its figures in files, and on the screen."""

import contextlib
import csv
import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from pisti_env.agents.checkpoint import write_file

METRICS = (
    "update",
    "plays",
    "seconds",
    "plays_per_second",
    "learning_rate",
    "entropy_coef",
    "entropy",
    "policy_loss",
    "value_loss",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "over_counting",
    "over_counting_low",
    "over_counting_high",
)


@contextlib.contextmanager
def metrics_of(folder: Path, update: int) -> Iterator[Any]:
    """Yield a function that writes metrics of an update, after those of the first `update` ones."""
    path = folder / "metrics.csv"
    kept = [",".join(METRICS)]
    if path.exists():
        # A run that was killed may be ahead of its state, and its last line be torn.
        lines = path.read_text(encoding="utf-8").split("\n")[1:-1]
        kept += [line for line in lines if line and int(line.split(",")[0]) <= update]
    write_file(path, ("\n".join(kept) + "\n").encode())
    board = SummaryWriter(folder / "tensorboard", purge_step=update + 1)

    with open(path, "a", encoding="utf-8", newline="") as file, contextlib.closing(board):
        rows = csv.DictWriter(file, METRICS, lineterminator="\n")

        def write(metrics: Mapping[str, float]) -> None:
            rows.writerow(metrics)
            file.flush()
            for name, value in metrics.items():
                if name != "update":
                    board.add_scalar(name, value, int(metrics["update"]))

        yield write


def measured(strength: Mapping[str, Any]) -> dict[str, float]:
    """Return what a measurement adds to the metrics of its update."""
    return {
        "over_counting": strength["points_a_deal"],
        "over_counting_low": strength["low"],
        "over_counting_high": strength["high"],
    }


def progress_bar(fraction: float) -> Any:
    """Return a bar that shows which part of the budget is used up, if anyone is watching."""
    return tqdm(
        total=1.0,
        initial=fraction,
        disable=None,
        bar_format="{percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}",
    )


def over_counting(status: Mapping[str, Any]) -> str:
    """Return the last measurement as text."""
    strength = status["strength"]
    if strength is None:
        return "not measured yet"
    half = (strength["high"] - strength["low"]) / 2
    return f"{strength['points_a_deal']:+.2f} ± {half:.2f} over counting"


def summary(status: Mapping[str, Any], speed: float) -> str:
    """Return one line on how far a run is."""
    clock = str(datetime.timedelta(seconds=round(status["seconds"])))
    return (
        f"{clock}  update {status['update']:,}  {status['plays']:,} plays  "
        f"{speed:,.0f} plays/s  {over_counting(status)}"
    )
