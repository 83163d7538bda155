"""How fast the library is next to others: the same kind of loop on each, in one run.

Each plays for a fixed time in turn, round after round, since the speed of a machine drifts; medians
are quoted. Actions are drawn by one sampler, uniformly from what is legal in the form in which a
library tells it: a mask, or a list. Observations are made for every play. What is not installed, or
fails, is named in the table, and the rest goes on. `make bench-peers` installs all of them.
"""

import argparse
import contextlib
import json
import os
import statistics
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from tqdm import tqdm

from benchmarks import yardstick
from benchmarks.games import BATCH, GROUPS, Peer, all_peers
from pisti_env.bench import (
    Play,
    machine,
    measure,
    plural,
)
from pisti_env.bench import version as package_version
from pisti_env.files import check_can_write, write_file

# Measuring.


class Result(NamedTuple):
    """What a peer did."""

    peer: Peer
    speeds: list[float]
    """Plays per second, a number per round."""
    failure: str
    """Why there are none, in a sentence; empty if there are."""

    @property
    def speed(self) -> float | None:
        """The median, None for a peer that failed."""
        return None if self.failure else statistics.median(self.speeds)


def measure_all(peers: Sequence[Peer], seconds: float, rounds: int) -> list[Result]:
    """Measure the peers in turns, `rounds` times `seconds` each."""
    failures: dict[Peer, str] = {}
    plays: dict[Peer, Play] = {}
    speeds: dict[Peer, list[float]] = {peer: [] for peer in peers}

    @contextlib.contextmanager
    def noting_failure(peer: Peer) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever a peer raises, the others go on
            failures[peer] = sentence(peer, error)

    with tqdm(total=len(peers) * (rounds + 1), unit="turn", disable=None) as progress:
        for number in range(rounds + 1):
            for peer in peers:
                progress.set_description(f"round {number} of {rounds}: {peer.name}"[:60])
                if peer not in failures:
                    with noting_failure(peer):
                        if number == 0:
                            plays[peer] = peer.start()
                            plays[peer]()  # what is compiled on first use is compiled now
                        else:
                            speeds[peer].append(measure(plays[peer], seconds))
                progress.update()
    return [Result(peer, speeds[peer], failures.get(peer, "")) for peer in peers]


def sentence(peer: Peer, error: Exception) -> str:
    """Say why a peer did not run."""
    if isinstance(error, ImportError):
        return f"not installed ({error})"
    return f"failed ({type(error).__name__}: {' '.join(str(error).split())})"


def references(results: Sequence[Result]) -> dict[str, float]:
    """Return our own speed in every group, the best where there are several."""
    ours = [(result.peer.group, result.speed) for result in results if result.peer.ours]
    best: dict[str, float] = {}
    for group, speed in ours:
        if speed is not None:
            best[group] = max(speed, best.get(group, 0.0))
    return best


# Telling.


def version(package: str) -> str:
    """Return the version of an installed package, or of the C compiler."""
    return yardstick.compiler_version() if package == "cc" else package_version(package)


OTHER_PACKAGES = ("gymnasium", "jax", "numba", "numpy", "stable-baselines3", "torch")


def versions(peers: Sequence[Peer]) -> dict[str, str]:
    """Return the versions of all that matters."""
    packages = {peer.package for peer in peers} | set(OTHER_PACKAGES)
    return {package: version(package) for package in sorted(packages)}


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table."""
    ours = references(results)
    lines = ["| | version | plays a second | pisti-env is … times as fast |", "|---|---|--:|--:|"]
    for group in GROUPS:
        members = [result for result in results if result.peer.group == group]
        if members:
            lines.append(f"| **{group}** | | | |")
        for peer, speed, failure in ((r.peer, r.speed, r.failure) for r in members):
            times = f"{ours[group] / speed:,.2f}" if speed and group in ours else ""
            told = failure.replace("|", "/") if speed is None else f"{speed:,.0f}"
            lines.append(f"| {peer.name} | {version(peer.package)} | {told} | {times} |")
    return "\n".join(lines)


def as_json(results: Sequence[Result], seconds: float, rounds: int) -> str:
    """Return the results as JSON."""
    ours = references(results)
    peers = [result.peer for result in results]
    entries = [
        {
            "name": peer.name,
            "group": peer.group,
            "package": peer.package,
            "version": version(peer.package),
            "plays_per_second": speed,
            "ours_to_it": ours[peer.group] / speed if speed and peer.group in ours else None,
            "rounds": speeds,
            "failure": failure or None,
        }
        for (peer, speeds, failure), speed in ((result, result.speed) for result in results)
    ]
    everything = {
        "machine": machine(),
        "versions": versions(peers),
        "seconds": seconds,
        "rounds": rounds,
        "results": entries,
    }
    return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


def draw_chart(results: Sequence[Result], path: Path) -> None:
    """Draw the medians as bars on one logarithmic scale, a panel per group; of our batch the best
    number of tables for each number of threads."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "pisti-env"  # the same file from the same figures
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    from matplotlib import pyplot

    bars = [bar for bar in chart_bars(results) if bar]
    if not bars:
        raise ValueError("chart has no bar: nothing that was measured ran")
    heights = [len(bar) for bar in bars]
    figure, panels = pyplot.subplots(
        len(bars),
        sharex=True,
        squeeze=False,
        figsize=(8, 0.26 * sum(heights) + 0.4 * len(heights) + 0.3),
        height_ratios=heights,
        layout="constrained",
    )
    for axes, group in zip(panels[:, 0], bars, strict=True):
        speeds = [result.speed or 0.0 for result in group]
        colours = [OURS_COLOUR if result.peer.ours else THEIRS_COLOUR for result in group]
        drawn = axes.barh([result.peer.name for result in group], speeds, color=colours)
        axes.bar_label(drawn, [short(speed) for speed in speeds], padding=3, fontsize=8)
        axes.set_title(group[0].peer.group, loc="left", fontsize=9, fontweight="bold")
        axes.set_xscale("log")
        axes.set_ylim(len(group) - 0.4, -0.6)  # the first on top, all of the same height
        axes.tick_params(axis="y", length=0, labelsize=8)
        axes.tick_params(axis="x", which="both", length=0, labelsize=8)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
    everything = [result.speed for group in bars for result in group if result.speed]
    panels[-1, 0].set_xlim(min(everything) / 2, max(everything) * 3)
    panels[-1, 0].set_xlabel("plays a second", fontsize=8)
    plain = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=150, metadata=plain)
    pyplot.close(figure)


OURS_COLOUR, THEIRS_COLOUR = "#c0392b", "#95a5a6"


def chart_bars(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the results of each group that have a bar, the fastest first."""
    for group in GROUPS:
        ran = [result for result in results if result.peer.group == group and result.speed]
        ran.sort(key=lambda result: result.speed or 0.0, reverse=True)
        if group == BATCH:
            ours = [result for result in ran if result.peer.ours]
            best = {threads_of(result): result for result in reversed(ours)}
            ran = [result for result in ran if not result.peer.ours or result in best.values()]
        yield ran


def threads_of(result: Result) -> str:
    """Return the threads of a batch of ours."""
    return result.peer.name.rpartition(", ")[2]


def short(speed: float) -> str:
    """Write a number with three digits and a letter: 25.3M."""
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if speed >= limit:
            return f"{speed / limit:.3g}{letter}"
    return f"{speed:.3g}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure as the command line says."""
    parser = Parser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of each turn (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=7, help="turns of each peer (default: %(default)s)"
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only peers with this in their name or group"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument(
        "--chart", type=Path, metavar="FILE", help="draw a bar chart there, .svg or .png"
    )
    options = parser.parse_args(arguments)
    if not 0 < options.seconds < float("inf"):
        parser.error(f"seconds is {options.seconds}; expected a number above 0")
    if options.rounds < 1:
        parser.error(f"rounds is {options.rounds}; expected an int of 1 or more")
    if options.chart and options.chart.suffix not in (".svg", ".png"):
        parser.error(f"chart is {options.chart}; expected a name that ends in .svg or .png")
    text = options.only.lower()
    peers = [peer for peer in all_peers() if text in f"{peer.group} {peer.name}".lower()]
    if not peers:
        parser.error(f"only is {options.only!r}; expected a part of a name, such as pgx or bare")
    try:
        for file in (options.json, options.chart):
            if file:
                check_can_write(file)
        prepare()
        results = measure_all(peers, options.seconds, options.rounds)
        try:  # files first: the screen may be a pipe that nobody reads any more
            if options.json:
                figures = as_json(results, options.seconds, options.rounds)
                write_file(options.json, figures.encode())
            if options.chart:
                draw_chart(results, options.chart)
        finally:
            print(report(results, options.seconds, options.rounds), flush=True)
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))


def report(results: Sequence[Result], seconds: float, rounds: int) -> str:
    """Return the results as text, and on what they were measured."""
    ran_on, peers = machine(), [result.peer for result in results]
    return (
        f"{table(results)}\n\n"
        f"{ran_on['processor']}, {ran_on['cores']} cores, {ran_on['system']}\n"
        f"Python {ran_on['python']}, {', '.join(map(' '.join, versions(peers).items()))}\n"
        f"Medians of {plural(rounds, 'round')} of {seconds:g} s, in turns."
    )


def prepare() -> None:
    """Set what the libraries look at when they are loaded."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # Threads of torch that wait would otherwise spin, and slow down whoever has the next turn.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    warnings.filterwarnings("ignore")  # what others warn of is not for our users


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one plain line."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(2, f"{self.prog}: {message}\n")


if __name__ == "__main__":
    main()
