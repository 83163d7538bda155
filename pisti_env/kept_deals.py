"""The deals of an evaluation, kept as records."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pisti_env.checks import is_int
from pisti_env.progress import progress_bar
from pisti_env.quote import quote
from pisti_env.record import Deal, Record, write_records
from pisti_env.record.fields import LONGEST_NAME
from pisti_env.rules import Rules

MOST_RECORDS = 100_000  # of a file, which then has some 150 MB


class _Kept(NamedTuple):
    """What is kept of a lineup: every so many decks, with the seatings that `Played` has."""

    lineup: tuple[int, ...]
    decks: np.ndarray
    dealers: np.ndarray
    points: np.ndarray
    plays: np.ndarray


class KeptDeals:
    """Deals that are to be written as records: those of every `every`-th of `decks` decks, in all
    seatings, of each of `lineups` tables. Raises `ValueError` if these are too many."""

    def __init__(
        self,
        rules: Rules,
        seed: int,
        decks: int,
        names: Sequence[str],
        lineups: int,
        every: int,
    ):
        if not is_int(every) or every < 1:
            raise ValueError(f"record_every is {quote(every)}; expected an int of 1 or more")
        number = lineups * rules.sides * len(range(0, decks, every))
        if number > MOST_RECORDS:
            raise ValueError(
                f"record_every is {every}, which keeps {number} deals; expected a greater one, "
                f"which keeps at most {MOST_RECORDS}"
            )
        self._rules, self._seed, self._every, self._number = rules, seed, every, number
        self._names = [name_for_record(name) for name in names]
        self._kept: list[_Kept] = []

    def add(
        self,
        lineup: tuple[int, ...],
        decks: np.ndarray,
        dealers: np.ndarray,
        points: np.ndarray,
        plays: np.ndarray,
    ) -> None:
        """Keep what the agents `lineup` played: the decks (n, deck_size) and their dealers (n,),
        and the points and plays of all seatings, as `arena.Played` has them."""
        every = slice(None, None, self._every)
        self._kept.append(
            _Kept(lineup, decks[every], dealers[every], points[every].copy(), plays[every].copy())
        )

    def write(self, path: str | Path, progress: bool) -> None:
        """Write the file. Raises `OSError` if that fails."""
        with progress_bar(self._number, "records", progress) as bar:
            write_records(path, self._records(bar.update))

    def _records(self, on_record: Callable[[int], Any]) -> Iterator[Record]:
        today = datetime.datetime.now(datetime.UTC).date()
        rules = self._rules
        for kept in self._kept:
            for index in range(len(kept.decks)):
                for seating in range(rules.sides):
                    on_record(1)
                    yield self._record(kept, index, seating, today)

    def _record(self, kept: _Kept, index: int, seating: int, date: datetime.date) -> Record:
        rules = self._rules
        entrants = [(side - seating) % rules.sides for side in range(rules.sides)]
        by_side = [kept.lineup[entrant] for entrant in entrants]
        deal = Deal(
            deck=tuple(kept.decks[index].tolist()),
            dealer=int(kept.dealers[index]),
            plays=tuple(kept.plays[index, seating].tolist()),
            scores=tuple(kept.points[index, seating, entrants].tolist()),
        )
        return Record(
            rules=rules,
            deals=(deal,),
            agents=tuple(self._names[by_side[rules.side(seat)]] for seat in range(rules.players)),
            date=date,
            comments=(f"deck {index * self._every} of seed {self._seed}, seating {seating}",),
        )


def name_for_record(name: str) -> str:
    """Return a name as a record can have it: without what no screen shows, and not too long."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    if len(shown) <= LONGEST_NAME:
        return shown
    return f"{shown[: LONGEST_NAME // 2 - 1]} … {shown[len(shown) - LONGEST_NAME // 2 + 2 :]}"
