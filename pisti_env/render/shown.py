"""What a picture shows: a view, what is revealed beyond it, and who sits where."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pisti_env.knowledge import View
from pisti_env.quote import quote
from pisti_env.rules import Rules


class Shown(NamedTuple):
    """What is drawn."""

    view: View
    hands: tuple[tuple[int, ...] | None, ...]
    """Per seat; None lies face down."""
    starters: tuple[int, ...]
    """The face-down starters, if they are shown."""
    names: tuple[str, ...]
    """Per seat."""

    def side_name(self, side: int) -> str:
        """Return who plays for a side."""
        rules = self.view.rules
        return " and ".join(
            self.names[seat] for seat in range(rules.players) if rules.side(seat) == side
        )


def check_shown(view: View, reveal: Iterable[View] | None, names: Sequence[str] | None) -> Shown:
    """Return what is to be drawn; raise `ValueError` for what is no view, and for other views and
    names that are not of its table."""
    if not isinstance(view, View):
        raise ValueError(f"view is {quote(view)}; expected a View, as view(seat) returns it")
    if reveal is not None and not isinstance(reveal, Iterable):
        raise ValueError(f"reveal is {quote(reveal)}; expected views of other seats, or None")
    hands: list[tuple[int, ...] | None] = [None] * view.rules.players
    starters: tuple[int, ...] = ()
    for one in (view, *(() if reveal is None else reveal)):
        same = isinstance(one, View) and (one.rules, one.dealer, one.starter, one.plays) == (
            view.rules,
            view.dealer,
            view.starter,
            view.plays,
        )
        if not same:
            raise ValueError(
                f"reveal has {quote(one)}; expected views of other seats at the same moment of the "
                "same deal"
            )
        if one.viewer is not None:
            hands[one.viewer] = one.hand
        starters = starters or one.known_starters
    return Shown(view, tuple(hands), starters, seat_names(view.rules, names))


def seat_names(rules: Rules, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return what to call each seat; raise `ValueError` unless there is a text for each."""
    if names is None:
        return tuple(f"seat {seat}" for seat in range(rules.players))
    if not isinstance(names, (list, tuple)) or len(names) != rules.players:
        raise ValueError(f"names is {quote(names)}; expected {rules.players} texts, one per seat")
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"names is {quote(names)}; expected a text for each seat")
    return tuple(names)
