"""What an evaluation found: figures for each pair of agents, as a table and as plain data."""

import dataclasses
import html
from collections.abc import Sequence
from typing import Any

from pisti_env.quote import shorten
from pisti_env.rules import Rules

DEFAULT_TARGET = 151  # of a match, where the rules name none


@dataclasses.dataclass(frozen=True)
class Result:
    """Agent a against agent b. Intervals hold 95 %; they are None where one deck cannot tell."""

    a: str
    b: str
    mean: float
    """Points a deal of a's side, less those of b's (of several, their mean)."""
    low: float | None
    high: float | None
    wins: int
    """Deals in which a's side had more points than each of b's."""
    draws: int
    """Deals in which a's side had as many as the best of b's."""
    losses: int
    match_win: float | None
    """Chance that a is ahead of b when a match is over; with two sides, that it wins it."""
    match_win_low: float | None
    match_win_high: float | None


@dataclasses.dataclass(frozen=True, repr=False)
class Evaluation:
    """What `arena.evaluate` found, and all that is needed to find it again. Shows itself as a
    table."""

    agents: tuple[str, ...]
    rules: Rules
    deals: int
    """Decks; each was played in as many seatings as there are sides."""
    seed: int
    deck_hash: str
    """Sixteen hex digits of the decks and dealers."""
    revision: str
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    """A line for each agent that was made for other rules than these."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        notes = {"notes": list(self.notes)} if self.notes else {}
        return {
            "agents": list(self.agents),
            "rules": self.rules.to_dict(),
            "rules_hash": self.rules.hash,
            "deals": self.deals,
            "seed": self.seed,
            "deck_hash": self.deck_hash,
            "revision": self.revision,
            "results": [dataclasses.asdict(result) for result in self.results],
            **notes,
        }

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table, row by row, its head first."""
        target = self.rules.target or DEFAULT_TARGET
        head = ("", "points a deal", "95 %", "won", "drawn", "lost", f"match to {target}", "95 %")
        return [head, *map(_row, self.results)]

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        head, *body = self._rows()
        rows = [_html_row("th", head), *(_html_row("td", row) for row in body)]
        return f"<table>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in rows
        ]
        return "\n".join(lines)


def _html_row(tag: str, cells: Sequence[str]) -> str:
    """Return cells as a row of an HTML table."""
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _row(result: Result) -> tuple[str, ...]:
    """Return a result as the cells of a table."""
    played = result.wins + result.draws + result.losses
    points = match_cell = match_interval = "-"
    if result.low is not None and result.high is not None:
        points = f"{result.low:+.2f} to {result.high:+.2f}"
    if result.match_win is not None:
        match_cell = f"{result.match_win:.1%}"
    if result.match_win_low is not None and result.match_win_high is not None:
        match_interval = f"{result.match_win_low:.1%} to {result.match_win_high:.1%}"
    return (
        f"{shorten(result.a)} against {shorten(result.b)}",
        f"{result.mean:+.2f}",
        points,
        *(f"{count / played:.1%}" for count in (result.wins, result.draws, result.losses)),
        match_cell,
        match_interval,
    )
