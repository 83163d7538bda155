"""What a view looks like: as text, for a terminal."""

from pisti_env.cards import CARD_NAMES, card_names
from pisti_env.knowledge import View
from pisti_env.plain import printable


def as_text(view: View) -> str:
    """Return a view as text: the match, the table, every seat, and the viewer's hand."""
    rules, lines = view.rules, [_heading(view), _table(view)]
    for seat, cards in enumerate(view.hand_sizes):
        side = rules.side(seat)
        marks = [word for word, is_it in _marks(view, seat) if is_it]
        lines.append(
            f"  seat {seat}{' (side ' + str(side) + ')' if rules.pairs else ''}: "
            f"{'▒' * cards or '-':<4}  captured {view.captured[side]:>2}, "
            f"{view.public_points[side]:>3} points, "
            f"{view.pistis[side]} pişti, {view.jack_pistis[side]} jack pişti"
            f"{'  ← ' + ', '.join(marks) if marks else ''}"
        )
    if view.plays:
        seat, card = view.plays[-1]
        lines.append(f"  last play: {CARD_NAMES[card]} by seat {seat}")
    if view.hand is not None:
        lines.append(f"  hand: {card_names(view.hand) or '-'}")
    return "\n".join(lines)


def show(text: str) -> None:
    """Print a drawing, in plain letters where the terminal lacks some."""
    print(printable(text), flush=True)


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
