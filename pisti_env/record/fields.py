"""What a record is made of, and which values its fields may have.

Here every value is looked at by itself; whether the deals can have been played so is found out by
`Record.check`, which plays them.
"""

import datetime
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from pisti_env.cards import CARD_NAMES, NO_CARD, NUM_CARDS, card_names
from pisti_env.quote import quote
from pisti_env.rules import MAX_POINTS, Rules
from pisti_env.shuffle import MAX_SEED

EVERYONE = "everyone"
"""The viewer of a record that has what everyone saw, as a spectator does."""

LONGEST_NAME = 200  # characters
LONGEST_COMMENT = 10_000

# Characters after which a screen shows text in another order.
_TURNS_TEXT = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))

Path = tuple[str | int, ...]
"""Where in a record something is: `("deals", 0, "dealer")`."""


class Comment(NamedTuple):
    """What somebody wrote about a deal."""

    play: int
    """How many plays had been made: 0 is before the first."""
    text: str


@dataclass(frozen=True)
class Deal:
    """One deal of a record. Cards and seats are ints."""

    deck: tuple[int, ...]
    """Every card in dealing order, as `reset` takes it; NO_CARD (-1) for one that is left out."""
    dealer: int
    """The seat that dealt."""
    plays: tuple[int, ...] = ()
    """Every card played, in order; the seat after the dealer leads."""
    scores: tuple[int, ...] | None = None
    """The points of each side in this deal; None if it was not played to its end."""
    comments: tuple[Comment, ...] = ()
    """In any order."""


class Wrong(ValueError):
    """A field is not what it should be. `path` is where, `told` what is wrong with it."""

    def __init__(self, path: Path, told: str):
        super().__init__(f"{path_text(path)} {told}")
        self.path = path
        self.told = told

    def __reduce__(self) -> Any:
        return Wrong, (self.path, self.told)


def path_text(path: Path) -> str:
    """Return a path as in Python, ``deals[0].dealer``; a name that no field has is quoted."""
    return "".join(map(_part_text, path)).removeprefix(".")


def _part_text(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if re.fullmatch(r"[\w-]{1,40}", part, re.ASCII) else f".{quote(part)}"


def check_fields(record: Any) -> None:
    """Raise `Wrong` for the first field of a `Record` that has a wrong type or value."""
    if not isinstance(record.rules, Rules):
        raise Wrong(("rules",), f"is {quote(record.rules)}; expected a Rules")
    rules: Rules = record.rules
    _check_agents(record.agents, rules)
    _check_date(record.date)
    if record.viewer is not None:
        check_viewer_of_record(rules, record.viewer)
    _check_seed(record.seed, record.viewer)
    _check_starting_scores(record.scores, rules)
    _check_tuple(("comments",), record.comments, "texts")
    for number, comment in enumerate(record.comments):
        _check_text(("comments", number), comment, LONGEST_COMMENT, lines=True)
    _check_tuple(("deals",), record.deals, "deals")
    if not record.deals:
        raise Wrong(("deals",), "is empty; expected at least one deal")
    if rules.target is None and len(record.deals) > 1:
        raise Wrong(("deals", 1), "is one too many; expected a single deal, without a target")
    for number, deal in enumerate(record.deals):
        path: Path = ("deals", number)
        if not isinstance(deal, Deal):
            raise Wrong(path, f"is {quote(deal)}; expected a Deal")
        _check_deal(path, deal, rules, hidden=record.viewer is not None)
        if deal.scores is None and number + 1 < len(record.deals):
            raise Wrong((*path, "scores"), "is missing; expected points, since a deal follows")


def _check_deal(path: Path, deal: Deal, rules: Rules, hidden: bool) -> None:
    """Check one deal; where something is `hidden`, cards may be left out of its deck."""
    _check_deck((*path, "deck"), deal.deck, rules, hidden)
    if not _is_number(deal.dealer, 0, rules.players - 1):
        raise Wrong(
            (*path, "dealer"),
            f"is {quote(deal.dealer)}; expected a seat from 0 to {rules.players - 1}",
        )
    _check_plays((*path, "plays"), deal.plays, rules)
    if deal.scores is not None:
        _check_scores((*path, "scores"), deal.scores, rules.sides, rules.max_deal_points)
    _check_tuple((*path, "comments"), deal.comments, "comments")
    for number, comment in enumerate(deal.comments):
        here = (*path, "comments", number)
        if not isinstance(comment, Comment):
            raise Wrong(here, f"is {quote(comment)}; expected a Comment")
        most = len(deal.plays)
        if not _is_number(comment.play, 0, most):
            raise Wrong(
                (*here, "play"),
                f"is {quote(comment.play)}; expected a number of plays from 0 to {most}",
            )
        _check_text((*here, "text"), comment.text, LONGEST_COMMENT, lines=True)


def _check_deck(path: Path, deck: Any, rules: Rules, hidden: bool) -> None:
    _check_cards(path, deck, hidden)
    if len(deck) != rules.deck_size:
        raise Wrong(path, f"has {len(deck)} cards; expected the {rules.deck_size} of these rules")
    _check_counts(path, [card for card in deck if card != NO_CARD], rules)


def _check_plays(path: Path, plays: Any, rules: Rules) -> None:
    _check_cards(path, plays, hidden=False)
    if len(plays) > rules.num_plays:
        raise Wrong(path, f"has {len(plays)} cards; expected at most {rules.num_plays}")


def _check_cards(path: Path, cards: Any, hidden: bool) -> None:
    _check_tuple(path, cards, "cards")
    for place, card in enumerate(cards):
        if _is_number(card, 0, NUM_CARDS - 1) or (hidden and type(card) is int and card == NO_CARD):
            continue
        if type(card) is int and card == NO_CARD:
            raise Wrong(
                (*path, place), "is ??; expected a card, since nothing is left out without a viewer"
            )
        raise Wrong(
            (*path, place), f"is {quote(card)}; expected a card, an int from 0 to {NUM_CARDS - 1}"
        )


def _check_counts(path: Path, cards: list[int], rules: Rules) -> None:
    """Raise `Wrong` if there are more of a card than the deck has."""
    extra = Counter(cards) - Counter(rules.deck_cards())
    if extra:
        raise Wrong(
            path,
            f"has {card_names(sorted(extra))} more often than the deck of these rules; expected "
            "each of its cards once a pack",
        )


def _check_agents(agents: Any, rules: Rules) -> None:
    _check_tuple(("agents",), agents, "names")
    if len(agents) not in (0, rules.players):
        raise Wrong(
            ("agents",), f"has {len(agents)} names; expected {rules.players}, one for each seat"
        )
    for seat, name in enumerate(agents):
        _check_text(("agents", seat), name, LONGEST_NAME, lines=False)


def _check_date(date: Any) -> None:
    if date is not None and type(date) is not datetime.date:  # a datetime is a date too
        raise Wrong(("date",), f"is {quote(date)}; expected a date such as 2026-12-01")


def check_viewer_of_record(rules: Rules, viewer: Any) -> None:
    """Raise `Wrong` unless this is a seat or everyone."""
    is_everyone = isinstance(viewer, str) and viewer == EVERYONE
    if not is_everyone and not _is_number(viewer, 0, rules.players - 1):
        raise Wrong(
            ("viewer",),
            f"is {quote(viewer)}; expected a seat from 0 to {rules.players - 1} or {EVERYONE!r}",
        )


def _check_seed(seed: Any, viewer: Any) -> None:
    if seed is None:
        return
    if viewer is not None:
        raise Wrong(("seed",), f"is {quote(seed)}; expected none, since it tells what is left out")
    if not _is_number(seed, 0, MAX_SEED):
        raise Wrong(("seed",), f"is {quote(seed)}; expected a whole number from 0 to 2**64 - 1")


def _check_starting_scores(scores: Any, rules: Rules) -> None:
    _check_scores(("scores",), scores, rules.sides, MAX_POINTS)
    if rules.target is None and any(scores):
        raise Wrong(("scores",), f"is {quote(scores)}; expected none, without a target")


def _check_scores(path: Path, scores: Any, sides: int, most: int) -> None:
    _check_tuple(path, scores, "points")
    if len(scores) != sides or not all(_is_number(points, 0, most) for points in scores):
        raise Wrong(
            path,
            f"is {quote(list(scores))}; expected {sides} whole numbers from 0 to {most}, one for "
            "each side",
        )


def _check_tuple(path: Path, value: Any, of_what: str) -> None:
    if type(value) is not tuple:
        raise Wrong(path, f"is {quote(value)}; expected a tuple of {of_what}")


def _check_text(path: Path, text: Any, longest: int, lines: bool) -> None:
    """Raise `Wrong` for what is no text, or would do more on a screen than be read."""
    if not isinstance(text, str):
        raise Wrong(path, f"is {quote(text)}; expected text")
    if len(text) > longest:
        raise Wrong(path, f"has {len(text)} characters; expected at most {longest}")
    for character in text:
        if character.isprintable() or (lines and character in "\n\t"):
            continue
        category = unicodedata.category(character)
        if category in ("Cc", "Cs", "Zl", "Zp") or character in _TURNS_TEXT:
            raise Wrong(path, f"has the character {character!r}; expected text without it")


def _is_number(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def cards_text(cards: tuple[int, ...]) -> str:
    """Return cards as text, ``??`` for those that are left out."""
    return " ".join("??" if card == NO_CARD else CARD_NAMES[card] for card in cards)
