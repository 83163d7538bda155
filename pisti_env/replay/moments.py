"""The moments of a record, each with what is to be shown of it."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pisti_env.knowledge import View
from pisti_env.quote import quote
from pisti_env.record import EVERYONE, Record


class Moment(NamedTuple):
    """A deal after some plays."""

    deal: int
    """Its number, from 0."""
    play: int
    """How many plays have been made."""
    view: View
    """What the record's viewer knows; with everything face up, a spectator's view."""
    reveal: tuple[View, ...] | None
    """The views of all seats, with everything face up."""
    comments: tuple[str, ...]
    """Those of this moment."""


def check_moment(record: Record, deal: int, play: int) -> None:
    """Raise `ValueError` if a record has no such deal, or that has fewer plays."""
    if not 0 <= deal < len(record.deals):
        raise ValueError(
            f"deal is {quote(deal)}; expected a number from 0 to {len(record.deals) - 1}, since "
            "that is the record's last"
        )
    most = len(record.deals[deal].plays)
    if not 0 <= play <= most:
        raise ValueError(
            f"play is {quote(play)}; expected a number from 0 to {most}, the plays of deal {deal}"
        )


def moment(record: Record, deal: int, play: int) -> Moment:
    """Return a moment of a record. Raises `ValueError` if there is none, or at an illegal play."""
    check_moment(record, deal, play)
    seat = record.viewer if isinstance(record.viewer, int) else None
    reveal = None
    if record.viewer is None:
        reveal = tuple(record.view(deal, play, other) for other in range(record.rules.players))
    told = tuple(text for number, text in record.deals[deal].comments if number == play)
    return Moment(deal, play, record.view(deal, play, seat), reveal, told)


def moments(record: Record, deal: int) -> Iterator[Moment]:
    """Yield the moments of a deal: before the first play, and after each."""
    for play in range(len(record.deals[deal].plays) + 1):
        yield moment(record, deal, play)


def names_of(record: Record) -> tuple[str, ...]:
    """Return what to call each seat: who sat there, with the seat's number where one name occurs
    more than once."""
    if not record.agents:
        return tuple(f"seat {seat}" for seat in range(record.rules.players))
    times = Counter(record.agents)
    return tuple(
        name if times[name] == 1 else f"{name} {seat}" for seat, name in enumerate(record.agents)
    )


def sides_of(record: Record) -> list[str]:
    """Return who plays for each side; an agent that has all of a side, and nothing else, is named
    once."""
    rules, names = record.rules, names_of(record)
    sides = []
    for side in range(rules.sides):
        seats = [seat for seat in range(rules.players) if rules.side(seat) == side]
        told = " and ".join(names[seat] for seat in seats)
        if record.agents:
            agent = record.agents[seats[0]]
            if [seat for seat, other in enumerate(record.agents) if other == agent] == seats:
                told = agent
        sides.append(told)
    return sides


def title_of(record: Record) -> str:
    """Return who plays, and whose record it is."""
    title = " against ".join(sides_of(record))
    if record.viewer is None:
        return title
    who = EVERYONE if record.viewer == EVERYONE else f"seat {record.viewer}"
    return f"{title}, as {who} saw it"
