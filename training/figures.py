"""How a run goes: its figures in files, and on the screen."""

import contextlib
import csv
import datetime
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from pisti_env.files import read_file, write_file
from pisti_env.quote import quote
from training.runs import METRICS, tell
from training.settings import first_line

if TYPE_CHECKING:  # the trainer imports this file
    from training.selfplay import Learner, Settings

MAX_METRICS_BYTES = 2**30
COLUMNS = (
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
WHOLE = ("update", "plays")

Write = Callable[[Mapping[str, Any], Mapping[str, float], "Learner"], None]


def read_metrics(path: Path, columns: Collection[str]) -> list[dict[str, str]]:
    """Return the rows of a file of metrics, of which the last may be torn: each a dict of texts,
    empty where there is no figure. Raises `ValueError` naming the file if it is no such file, or
    has not all `columns`; and line and column of what is no figure or has no place there."""
    try:
        text = read_file(path, MAX_METRICS_BYTES).decode()
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {first_line(error)}") from None
    lines = text.split("\n")
    names = lines[0].split(",")
    for column in columns:
        if column not in names:
            raise ValueError(f"{path} has no column {column!r} in its first line")
    rows, before = [], 0
    for number, line in enumerate(lines[1:-1], 2):
        values = line.split(",")
        if len(values) != len(names):
            raise ValueError(
                f"{path}, line {number} has {len(values)} figures; expected {len(names)}"
            )
        row = dict(zip(names, values, strict=True))
        for column in columns:
            whole = column in WHOLE
            if (whole or row[column]) and not is_figure(row[column], whole):
                kind = "a whole number" if whole else "a number or nothing"
                raise ValueError(
                    f"{path}, line {number}: {column} is {quote(row[column])}; expected {kind}"
                )
        if "update" in columns:
            if int(row["update"]) <= before:
                raise ValueError(
                    f"{path}, line {number}: update is {row['update']}; expected more than {before}"
                )
            before = int(row["update"])
        rows.append(row)
    return rows


def is_figure(text: str, whole: bool) -> bool:
    """Return whether a text is a number, or a whole one."""
    if whole:
        return text.isascii() and text.isdigit() and len(text) < 20
    try:
        float(text)
    except ValueError:
        return False
    return True


def rows_until(folder: Path, update: int) -> list[dict[str, str]]:
    """Return the rows of a run's metrics up to an update. There may be more: a run that was killed
    may be ahead of its state. Raises `ValueError` as `read_metrics` does, and changes nothing."""
    path = folder / METRICS
    if not path.exists():
        if update > 0:
            tell(f"{path} is not there; a new one begins after update {update:,}")
        return []
    rows = read_metrics(path, COLUMNS)
    return [{name: row[name] for name in COLUMNS} for row in rows if int(row["update"]) <= update]


@contextlib.contextmanager
def written(folder: Path, rows: list[dict[str, str]], settings: "Settings") -> Iterator[Write]:
    """Yield a function that writes the metrics of an update, after the `rows` of those before. It
    takes the status after the update, its other figures, and the learner, of which a deal is drawn
    for TensorBoard at some of the measurements."""
    from torch.utils.tensorboard import SummaryWriter  # slow to import

    from training import drawn, state  # which the picture of a curve does not need

    path = folder / METRICS
    lines = [COLUMNS, *(row.values() for row in rows)]
    write_file(path, "".join(f"{','.join(line)}\n" for line in lines).encode())
    update = int(rows[-1]["update"]) if rows else 0
    board = SummaryWriter(folder / "tensorboard", purge_step=update + 1)
    notes = set()

    with open(path, "a", encoding="utf-8", newline="") as file, contextlib.closing(board):
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")

        def write(
            status: Mapping[str, Any], metrics: Mapping[str, float], learner: "Learner"
        ) -> None:
            progress = {name: status[name] for name in ("update", "plays", "seconds")}
            writer.writerow({**progress, **metrics})
            file.flush()
            del progress["update"]
            for name, value in {**progress, **metrics}.items():
                board.add_scalar(name, value, status["update"])
            if "over_counting" in metrics and drawn.is_due(settings, status["update"]):
                policy = state.player_of(learner, settings, status)
                note = drawn.add_deal(board, policy, learner.batch.rules, status["update"])
                if note and note not in notes:
                    notes.add(note)
                    tell(note)

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


def show(bar: Any, fraction: float, status: Mapping[str, Any], speed: float) -> None:
    """Show on the bar how far a run is, and plays a second."""
    bar.update(fraction - bar.n)
    bar.set_postfix_str(f"{speed:,.0f} plays/s, {over_counting(status)}", refresh=False)


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
