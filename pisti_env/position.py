"""Positions in one line of text, as FEN is for chess: what a seat or a spectator knows of a table.

    pisti1 players=3,target=151 0 1 12:40:0 2S - - - 2HKS AD2D2C8H4D9C9H - #da30fb28

Twelve fields and a check, separated by single blanks; `-` stands for nothing:

1. `pisti1`, the format;
2. the rules: fields that differ from the standard game, or `standard`;
3. the viewer's seat, `-` for a spectator;
4. the dealer's seat;
5. the match scores before the deal, one per side;
6. the turned-up starter;
7. the jacks that were turned up before it, in order;
8. the bottom card that was shown;
9. the face-down starters in deal order, where the viewer knows them;
10. the viewer's hand, sorted;
11. every play of the deal in order, `/` between packets;
12. the last finished deal of the episode, before this one: for each side points, cards, pistis and
    jack pistis;
13. `#` and the CRC-32 of what stands before it, so that no damaged line is taken for another one.

All else that a view has follows from these by the rules, and is worked out by playing the plays.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pisti_env import game
from pisti_env.cards import CARD_NAMES, JACK, NUM_RANKS, TEN_OF_DIAMONDS, card_names, parse_card
from pisti_env.checks import find_decided
from pisti_env.compiled_rules import compiled_rules
from pisti_env.knowledge import (
    Contradiction,
    Known,
    View,
    deal_unknown,
    deck_of,
    fill_in,
    known_of_view,
    make_view,
    start_from,
)
from pisti_env.observation import encoder
from pisti_env.quote import quote
from pisti_env.rules import MAX_MATCH_POINTS, NUM_STARTERS, Rules, parse_rules, rules_text
from pisti_env.tables import Tables

MAX_LINE = 4096  # characters, more than twice as many as the longest line has

FORMAT = "pisti1"
NOTHING = "-"
FIELDS = (
    "format",
    "rules",
    "viewer",
    "dealer",
    "scores",
    "starter",
    "jacks",
    "bottom",
    "starters",
    "hand",
    "plays",
    "last",
    "check",
)

_ONE = np.zeros(1, np.int64)  # the rows of the only table


@dataclass(frozen=True)
class Position:
    """A view that a line of text holds, and a table at which that is what the viewer sees."""

    view: View
    games: np.ndarray = field(compare=False, repr=False)
    """The record of that table, (1,) game.GAME, read-only; what the viewer does not know is filled
    in from the lowest card. `knowledge.deal_unknown` deals it anew at copies of it."""

    def observe(self, encoding: str) -> dict[str, np.ndarray]:
        """Return what the viewer observes, as the environment does with its default arguments:
        `"observation"` (d,) float32 and `"action_mask"` (a,) int8, all zero if the viewer is not to
        act. Raises `ValueError` for an unknown encoding, or if the viewer is a spectator."""
        if self.view.viewer is None:
            raise ValueError("viewer is None, a spectator; expected a seat, which observes")
        numbers = encoder(encoding, self.view.rules)
        observation = np.zeros((1, numbers.size), np.float32)
        mask = np.zeros((1, numbers.num_actions), np.int8)
        games = self.games.copy()  # compiled code takes writable arrays
        numbers.encode(games, _ONE, np.array([self.view.viewer]), observation)
        if self.view.viewer == self.view.to_play:
            numbers.mask(games, _ONE, mask)
        return {"observation": observation[0], "action_mask": mask[0]}

    def start(self, tables: Tables, rows: np.ndarray, deck: list[int] | None = None) -> None:
        """Begin an episode at one of `tables`, the only one of `rows`, which goes on from here.
        The deck is one that `check_deck_fits`; without one, what the viewer does not know is drawn
        from the table's stream of deals."""
        view = self.view
        if deck is None:
            games = self.games.copy()
            deal_unknown(games, view.rules, view.viewer, int(tables.random_seeds(rows)[0]))
            deck = deck_of(games, view.rules)
        start_from(known_of_view(view), deck, tables, rows)

    def check_deck_fits(self, deck: list[int]) -> None:
        """Raise `ValueError` unless a deck, in dealing order, leads to this position."""
        view, tables = self.view, Tables(self.view.rules, 1)
        try:
            start_from(known_of_view(view), deck, tables, _ONE)
            last = None if view.last_deal is None else list(view.last_deal)
            fits = make_view(tables.games, view.rules, view.viewer, last) == view
        except Contradiction:
            fits = False
        if not fits:
            raise ValueError(
                f"deck is {quote(card_names(deck))}; expected one with which all is as the viewer "
                "of the position sees it"
            )


def write_position(view: View) -> str:
    """Return a view as one line of text."""
    known = known_of_view(view)
    packet = view.rules.packet_size
    packets = [
        _cards(known.plays[start : start + packet]) for start in range(0, len(known.plays), packet)
    ]
    last = view.last_deal if view.to_play is not None else None
    fields = (
        FORMAT,
        rules_text(view.rules),
        NOTHING if known.viewer is None else str(known.viewer),
        str(known.dealer),
        ":".join(map(str, known.scores)),
        CARD_NAMES[known.starter],
        _cards(known.jacks) or NOTHING,
        NOTHING if known.bottom is None else CARD_NAMES[known.bottom],
        _cards(known.starters) or NOTHING,
        _cards(known.hand) or NOTHING,
        "/".join(packets) or NOTHING,
        NOTHING if last is None else ":".join(_side_text(side) for side in last),
    )
    return _with_check(" ".join(fields))


def read_position(line: str) -> Position:
    """Return the position that a line of `write_position` holds.

    Raises `ValueError` naming the field, the character and what was expected, also if no deal or
    match can come to this position.
    """
    if not isinstance(line, str):
        raise ValueError(f"position is {quote(line)}; expected a line of text")
    texts = line[: MAX_LINE + 1].removesuffix("\n").split(" ")
    if len(line) > MAX_LINE or len(texts) != len(FIELDS):
        raise ValueError(
            f"position is {quote(line)}; expected {len(FIELDS)} fields between single blanks: "
            f"{', '.join(FIELDS)}"
        )
    fields = {name: Field(name, text, line) for name, text in zip(FIELDS, texts, strict=True)}
    if texts[0] != FORMAT:
        raise fields["format"].error(FORMAT)
    position = _rebuild(fields)
    expected = write_position(position.view).split(" ")
    for name, text, written in zip(FIELDS[:-1], texts, expected, strict=False):
        if text != written:
            raise fields[name].error(f"{written}, as such a position is written")
    check = _with_check(" ".join(texts[:-1])).rpartition(" ")[2]
    if texts[-1] != check:
        raise fields["check"].error(
            f"{check} for what stands before it (if you wrote that by hand, end it so; if not, the "
            "line is damaged)"
        )
    return position


def check_position(rules: Rules, position: Any) -> Position:
    """Return a position, given as one or as a line, from which an environment of these rules can go
    on; raise `ValueError` if it cannot."""
    if not isinstance(position, Position):
        position = read_position(position)
    view = position.view
    if view.rules.in_force() != rules.in_force():
        raise ValueError(
            f"position has the rules {rules_text(view.rules)}; expected those of the environment, "
            f"{rules_text(rules)}"
        )
    if view.to_play is None:
        raise ValueError("position is over; expected one in which a seat is to play")
    return position


class Field(NamedTuple):
    """One field of a line, and where it is."""

    name: str
    text: str
    line: str

    def error(self, expected: str) -> ValueError:
        """Return what to raise when the field is not what was expected."""
        place = sum(len(text) + 1 for text in self.line.split(" ")[: FIELDS.index(self.name)]) + 1
        return ValueError(
            f"position field {self.name} at character {place} is {quote(self.text)}; "
            f"expected {expected}"
        )

    def whole_number(self, text: str, low: int, high: int) -> int:
        """Return the number that a text is."""
        if text.isascii() and text.isdigit() and len(text) < 20 and text == str(int(text)):
            if low <= int(text) <= high:
                return int(text)
        raise self.error(f"a whole number from {low} to {high}")

    def cards(self, counts: range | tuple[int, ...]) -> tuple[int, ...]:
        """Return the cards that the text is; how many there are is one of `counts`."""
        text = "" if self.text == NOTHING else self.text
        names = [text[start : start + 2] for start in range(0, len(text), 2)]
        if len(names) not in counts or not all(name in CARD_NAMES for name in names):
            allowed = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            raise self.error(f"{allowed} cards such as 9HTD, or {NOTHING} for none")
        return tuple(parse_card(name) for name in names)


def _rebuild(fields: dict[str, Field]) -> Position:
    """Read every field, fill in a table at which the viewer knows that, and view it."""
    known = _read_known(fields)
    last = _read_last(fields["last"], known)
    try:
        tables = fill_in(known)
    except Contradiction as error:
        raise fields[error.field].error(error.expected) from None
    if tables.scored[0]:
        if not tables.over[0]:
            raise fields["plays"].error(
                "fewer plays, or scores with which this deal ends the match: where it goes on, the "
                "next deal is dealt at once"
            )
        last = tables.score(0)
    view = make_view(tables.games, known.rules, known.viewer, last)
    tables.games.setflags(write=False)
    return Position(view, tables.games)


def _read_known(fields: dict[str, Field]) -> Known:
    rules = _read_rules(fields["rules"])
    viewer, dealer, plays = fields["viewer"], fields["dealer"], fields["plays"]
    seats = rules.players - 1
    return Known(
        rules=rules,
        viewer=None if viewer.text == NOTHING else viewer.whole_number(viewer.text, 0, seats),
        dealer=dealer.whole_number(dealer.text, 0, seats),
        scores=_read_scores(fields["scores"], rules),
        starter=fields["starter"].cards((1,))[0],
        jacks=fields["jacks"].cards(range(rules.num_packs * rules.copies + 1)),
        bottom=next(iter(fields["bottom"].cards((0, 1))), None),
        starters=fields["starters"].cards((0, game.FACE_DOWN)),
        hand=fields["hand"].cards(range(rules.hand_size + 1)),
        plays=plays._replace(text=plays.text.replace("/", "")).cards(range(rules.num_plays + 1)),
    )


def _read_rules(field: Field) -> Rules:
    try:
        rules = parse_rules(field.text)
    except ValueError as error:
        raise field.error(f"rules; {error}") from None
    if rules_text(rules) != field.text:
        raise field.error(rules_text(rules))
    return rules


def _read_scores(field: Field, rules: Rules) -> tuple[int, ...]:
    parts = field.text.split(":")
    if len(parts) != rules.sides:
        raise field.error(f"{rules.sides} numbers, one per side, such as 0:0")
    scores = tuple(field.whole_number(part, 0, MAX_MATCH_POINTS) for part in parts)
    if rules.target is None and any(scores):
        raise field.error("zeros, since these rules have no target")
    return scores


def _read_last(field: Field, known: Known) -> list[dict[str, int]] | None:
    if field.text == NOTHING:
        return None
    sides = [side.split(".") for side in field.text.split(":")]
    if len(sides) != known.rules.sides or any(len(side) != 4 for side in sides):
        raise field.error("points.cards.pistis.jackpistis for each side")
    names = ("points", "cards", "pistis", "jack_pistis")
    last = []
    for side, total in zip(sides, known.scores, strict=True):
        numbers = [field.whole_number(text, 0, MAX_MATCH_POINTS) for text in side]
        last.append({**dict(zip(names, numbers, strict=True)), "match_points": total})
    for expected in _faults_of_score(known.rules, last):
        raise field.error(expected)
    return last


def _faults_of_score(rules: Rules, score: list[dict[str, int]]) -> Iterator[str]:
    """Yield what is to be expected instead where a finished deal's score, in a match that goes on,
    cannot be so."""
    if rules.target is None:
        yield f"{NOTHING}, since with these rules a deal comes after no other"
    before = np.array([side["match_points"] - side["points"] for side in score])
    if before.min() < 0:
        yield "no more points than the match scores"
    elif find_decided(rules, before[np.newaxis]) >= 0:
        yield "points with which the match was not decided before that deal"
    cards = [side["cards"] for side in score]
    captured = rules.deck_size - (rules.num_leftovers if rules.leftovers == "burn" else 0)
    if sum(cards) != captured:
        yield f"captured cards that add up to {captured}"
    num_jacks = sum(card % NUM_RANKS == JACK for card in rules.deck_cards())
    most_pistis = (rules.deck_size - num_jacks) // 2
    if sum(side["pistis"] for side in score) > most_pistis:
        yield f"at most {most_pistis} pişti, for which there are cards"
    if sum(side["jack_pistis"] for side in score) > num_jacks // 2:
        yield f"at most {num_jacks // 2} pişti of jacks, for which there are cards"
    in_pistis = [2 * (side["pistis"] + side["jack_pistis"]) for side in score]
    others = np.subtract(cards, in_pistis)
    if others.min() < 0 or others.max() < NUM_STARTERS:
        yield "two captured cards for each pişti, and the starters beside them"
    if not _can_be_made(rules, score):
        yield "points that cards, pişti and the majority can make"


def _can_be_made(rules: Rules, score: list[dict[str, int]]) -> bool:
    """Return whether a finished deal's points can be those of its piştis, the majority, the cards,
    bonuses for the ten of diamonds and jacks that took a single card. Of the last two a score does
    not tell how many there were."""
    scored = np.zeros(1, game.GAME)[0]
    for number, side in enumerate(score):
        scored.captured[number] = side["cards"]
    game.score_majority(scored, compiled_rules(rules)[0])
    rest = [
        side["points"]
        - int(scored.public_points[number])
        - side["pistis"] * rules.pisti_points
        - side["jack_pistis"] * rules.jack_pisti_points
        for number, side in enumerate(score)
    ]
    values = sorted(map(rules.card_points, rules.deck_cards()))
    least, most = sum(values), sum(values)
    if rules.leftovers == "burn" and rules.num_leftovers:
        least = sum(values[: -rules.num_leftovers])
        most = sum(values[rules.num_leftovers :])
    deck = rules.deck_cards()
    tens = min(deck.count(TEN_OF_DIAMONDS), sum(side["pistis"] for side in score))
    jacks = sum(card % NUM_RANKS == JACK for card in deck)
    extras = {
        bonuses * rules.ten_of_diamonds_pisti_bonus + singles * rules.jack_takes_single_points
        for bonuses in range(tens + 1)
        for singles in range(jacks + 1)
    }
    return min(rest) >= 0 and any(least <= sum(rest) - extra <= most for extra in extras)


def _cards(cards: Iterable[int]) -> str:
    return "".join(CARD_NAMES[card] for card in cards)


def _side_text(side: dict[str, int]) -> str:
    return f"{side['points']}.{side['cards']}.{side['pistis']}.{side['jack_pistis']}"


def _with_check(body: str) -> str:
    return f"{body} #{zlib.crc32(body.encode()):08x}"
