"""What a view looks like as text, for a terminal, and what its last play did as a sentence."""

from collections.abc import Iterable, Sequence

from pisti_env.cards import CARD_NAMES, card_names
from pisti_env.knowledge import View
from pisti_env.plain import printable
from pisti_env.render.shown import check_shown, seat_names
from pisti_env.rules import Rules

_LONGEST_LABEL = 32  # characters to which the seats' names are filled up, so that all are in line

_REASONS = {
    "cards": "card points",
    "pisti": "pişti",
    "jack_pisti": "jack pişti",
    "jack_takes_single": "jack takes a lone card",
    "ten_of_diamonds": "with the ten of diamonds",
    "sweep": "what lay there",
    "starters": "starters",
    "majority": "most cards",
}


def as_text(
    view: View,
    reveal: Iterable[View] | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """Return a view as text: the match, the table, every seat, and the viewer's hand. `reveal` has
    views of other seats at the same moment, whose hands are shown too; `names` a text per seat.

    Raises `ValueError` for views or names that do not belong to this table.
    """
    shown = check_shown(view, reveal, names)
    rules, lines = view.rules, [_heading(view), _table(view)]
    labels = [
        f"{name}{' (side ' + str(rules.side(seat)) + ')' if rules.pairs else ''}:"
        for seat, name in enumerate(shown.names)
    ]
    width = min(_LONGEST_LABEL, max(map(len, labels)))
    for seat, label in enumerate(labels):
        side, cards = rules.side(seat), view.hand_sizes[seat]
        marks = [word for word, is_it in _marks(view, seat) if is_it]
        known = None if reveal is None else shown.hands[seat]  # one's own has a line of its own
        hand = "▒" * cards if known is None else card_names(known)
        lines.append(
            f"  {label:<{width}} "
            f"{hand or '-':<{4 if reveal is None else 11}}  captured {view.captured[side]:>2}, "
            f"{view.public_points[side]:>3} points, "
            f"{view.pistis[side]} pişti, {view.jack_pistis[side]} jack pişti"
            f"{'  ← ' + ', '.join(marks) if marks else ''}"
        )
    if view.last_play is not None:
        lines.append(f"  last play: {tell_play(view, names)}")
    if view.hand is not None:
        lines.append(f"  hand: {card_names(view.hand) or '-'}")
    return "\n".join(lines)


def tell_play(view: View, names: Sequence[str] | None = None) -> str:
    """Return what the last play did, as the viewer knows it: "seat 1 plays KS and takes 5 cards:
    pişti +10, card points +1"; empty before the first play. `names`: a text per seat."""
    last = view.last_play
    if last is None:
        return ""
    rules, told = view.rules, seat_names(view.rules, names)
    text = f"{told[last.seat]} plays {CARD_NAMES[last.card]}"
    if last.captured_size:
        text += f" and takes {last.captured_size} cards"
    own = rules.side(last.seat)
    gains = []
    for gain in last.gains:
        side = "" if gain.side == own else f" for {_side_name(rules, told, gain.side)}"
        gains.append(f"{_REASONS[gain.reason]} {gain.points:+}{side}")
    return text + (f": {', '.join(gains)}" if gains else "")


def show(text: str) -> None:
    """Print a drawing, in plain letters where the terminal lacks some."""
    print(printable(text), flush=True)


def _side_name(rules: Rules, names: Sequence[str], side: int) -> str:
    return " and ".join(names[seat] for seat in range(rules.players) if rules.side(seat) == side)


def _heading(view: View) -> str:
    rules, match = view.rules, ""
    if rules.target is not None:
        match = f", match {' : '.join(map(str, view.match_scores))} to {rules.target}"
    return (
        f"Pişti, {rules.players} players, packet {view.packet} of {rules.num_packets}, "
        f"{view.stock_size} in stock{match}"
    )


def _table(view: View) -> str:
    hidden = view.pile_size - len(view.pile)
    text = f"  table: {'▒ ' * hidden}{card_names(view.pile)}".rstrip()
    if not view.pile_size:
        text += " empty"
    if view.shown_jacks:
        text += f"   (turned up before: {card_names(view.shown_jacks)})"
    if view.bottom_card is not None:
        text += f"   (bottom card: {CARD_NAMES[view.bottom_card]})"
    return text


def _marks(view: View, seat: int) -> list[tuple[str, bool]]:
    return [
        ("to play", seat == view.to_play),
        ("dealt", seat == view.dealer),
        ("captured last", seat == view.last_capturer),
    ]
