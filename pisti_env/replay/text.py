"""A record's moments as text for a terminal."""

from collections.abc import Sequence

from pisti_env.record import Record
from pisti_env.render import as_text
from pisti_env.replay.moments import Moment, names_of, sides_of


def text(record: Record, shown: Moment) -> str:
    """Return a moment as text: which it is, the table, comments, and at a deal's end the score."""
    most = len(record.deals[shown.deal].plays)
    lines = [f"deal {shown.deal}, play {shown.play} of {most}"]
    lines.append(as_text(shown.view, shown.reveal, names_of(record)))
    for comment in shown.comments:
        told = comment.replace("\n", "\n    ")
        lines.append(f"  comment: {told}")
    if shown.play == most and record.deals[shown.deal].scores is not None:
        lines += ["", f"score: {score_text(record, shown.deal)}"]
    return "\n".join(lines)


def score_text(record: Record, deal: int) -> str:
    """Return what each side scored in a deal, and where a match stands after it."""
    sides, scores = sides_of(record), record.deals[deal].scores
    if scores is None:
        return "not played to its end"
    told = _points(sides, scores)
    if record.rules.target is not None:
        after = _points(sides, record.scores_before(deal + 1))
        told += f"\nmatch to {record.rules.target}: {after}"
    return told


def _points(sides: Sequence[str], points: Sequence[int]) -> str:
    return ", ".join(f"{who} {number}" for who, number in zip(sides, points, strict=True))
