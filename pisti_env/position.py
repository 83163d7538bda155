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
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from pisti_env import game
from pisti_env.cards import CARD_NAMES, NO_CARD, parse_card
from pisti_env.knowledge import View, make_view
from pisti_env.quote import quote
from pisti_env.rules import MAX_MATCH_POINTS, NUM_STARTERS, Rules, parse_rules, rules_text
from pisti_env.tables import Tables

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


class Position(NamedTuple):
    """A view, and whose it is (None: a spectator's) under which rules."""

    rules: Rules
    seat: int | None
    view: View


def write_position(rules: Rules, seat: int | None, view: View) -> str:
    """Return a view of `seat` (None: a spectator's) as one line of text."""
    over = view.to_play is None
    scores = [
        total - points if over else total
        for total, points in zip(view.match_scores, view.public_points, strict=True)
    ]
    plays = [card for _, card in view.plays]
    packets = [
        _cards(plays[start : start + rules.packet_size])
        for start in range(0, len(plays), rules.packet_size)
    ]
    last = view.last_deal if not over else None
    fields = (
        FORMAT,
        rules_text(rules),
        NOTHING if seat is None else str(seat),
        str(view.dealer),
        ":".join(map(str, scores)),
        CARD_NAMES[view.starter],
        _cards(view.shown_jacks) or NOTHING,
        NOTHING if view.bottom_card is None else CARD_NAMES[view.bottom_card],
        _cards(view.known_starters) or NOTHING,
        _cards(view.hand or ()) or NOTHING,
        "/".join(packets) or NOTHING,
        NOTHING if last is None else ":".join(_side_text(side) for side in last),
    )
    return _with_check(" ".join(fields))


def read_position(line: str) -> Position:
    """Return the position that a line of `write_position` holds.

    Raises `ValueError` naming the field, the character and what was expected.
    """
    if not isinstance(line, str):
        raise ValueError(f"position is {quote(line)}; expected a line of text")
    texts = line.removesuffix("\n").split(" ")
    if len(texts) != len(FIELDS):
        raise ValueError(
            f"position has {len(texts)} fields between single blanks; expected {len(FIELDS)}: "
            f"{', '.join(FIELDS)}"
        )
    field = {name: Field(name, text, line) for name, text in zip(FIELDS, texts, strict=True)}
    if texts[0] != FORMAT:
        raise field["format"].error(FORMAT)
    position = _rebuild(field)
    body = line.removesuffix("\n").rpartition(" ")[0]
    expected = _with_check(body)
    if texts[-1] != expected.rpartition(" ")[2]:
        raise field["check"].error(
            f"{expected.rpartition(' ')[2]} for what stands before it (if you wrote that by hand, "
            "end it so; if not, the line is damaged)"
        )
    if write_position(*position) != expected:
        raise ValueError(
            f"position {quote(body)} is not as it is written: {write_position(*position)!r}"
        )
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

    def cards(self, counts: tuple[int, ...]) -> list[int]:
        """Return the cards that the text is; how many there are is one of `counts`."""
        text = "" if self.text == NOTHING else self.text
        names = [text[start : start + 2] for start in range(0, len(text), 2)]
        if len(names) not in counts or not all(name in CARD_NAMES for name in names):
            allowed = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            raise self.error(f"{allowed} cards such as 9HTD, or {NOTHING} for none")
        return [parse_card(name) for name in names]


def _rebuild(field: dict[str, Field]) -> Position:
    """Read every field, play the plays at a table whose hidden cards are filled in, and view it."""
    rules = _read_rules(field["rules"])
    seats = rules.players - 1
    seat = None
    if field["viewer"].text != NOTHING:
        seat = field["viewer"].whole_number(field["viewer"].text, 0, seats)
    dealer = field["dealer"].whole_number(field["dealer"].text, 0, seats)
    scores = _read_scores(field["scores"], rules)
    plays = field["plays"]._replace(text=field["plays"].text.replace("/", ""))
    played = plays.cards(tuple(range(rules.num_plays + 1)))
    known = KnownCards(
        starter=field["starter"].cards((1,))[0],
        jacks=field["jacks"].cards(tuple(range(rules.num_packs * rules.copies + 1))),
        bottom=field["bottom"].cards((0, 1)),
        starters=field["starters"].cards((0, 3)),
        hand=field["hand"].cards(tuple(range(rules.hand_size + 1))),
        plays=played,
    )
    tables = Tables(rules, 1)
    row = np.zeros(1, np.int64)
    deck = fill_in_deck(rules, seat, dealer, known, field)
    tables.start(row, np.array([deck], np.int8), np.array([dealer]), scores)
    faces = np.arange(len(CARD_NAMES))
    for card in played:
        if tables.find_cards(np.array([card]), faces) >= 0:
            raise plays.error(f"cards of the hands; {CARD_NAMES[card]} is in none whose turn it is")
        tables.play()
    last_deal = _read_last(field["last"], rules, scores)
    if tables.scored[0]:
        last_deal = tables.score(0)
    return Position(rules, seat, make_view(tables.games, rules, seat, last_deal))


class KnownCards(NamedTuple):
    """The cards that a viewer knows, by how it knows them."""

    starter: int
    jacks: list[int]
    bottom: list[int]
    starters: list[int]
    hand: list[int]
    plays: list[int]


def fill_in_deck(
    rules: Rules, seat: int | None, dealer: int, known: KnownCards, field: dict[str, Field]
) -> list[int]:
    """Return a deck, in dealing order, of which the viewer sees what it knows; other cards are
    filled in from the lowest."""
    laid_out: list[int] = [NO_CARD] * rules.deck_size
    laid_out[game.STARTER] = known.starter
    face_down = known.starters
    if not face_down and rules.starter_jack == "pile":
        face_down = known.jacks[::-1]
    if len(face_down) > game.FACE_DOWN:
        raise field["jacks"].error(f"at most {game.FACE_DOWN} jacks")
    laid_out[game.FACE_DOWN - len(face_down) : game.FACE_DOWN] = face_down
    fixed = _exposed(rules, known)
    for block, cards in _hands(rules, seat, dealer, known, field).items():
        _put_hand(laid_out, block, cards, {p: c for p, c in fixed.items() if p in block}, field)
    for place, card in fixed.items():
        laid_out[place] = card
    missing = Counter(rules.deck_cards())
    missing.subtract(card for card in laid_out if card != NO_CARD)
    if min(missing.values()) < 0:
        card = min(missing, key=lambda card: missing[card])
        raise ValueError(
            f"position has {CARD_NAMES[card % len(CARD_NAMES)]} {-missing[card]} times more often "
            "than the deck of its rules; expected each card in one place"
        )
    fill = iter(sorted(missing.elements()))
    laid_out = [next(fill) if card == NO_CARD else card for card in laid_out]
    return _before_turning_up(rules, laid_out, known.jacks, field)


def _exposed(rules: Rules, known: KnownCards) -> dict[int, int]:
    """Return the cards whose places in the laid-out deck everyone knows, by place."""
    if rules.starter_jack == "pile":
        return {rules.deck_size - 1: known.bottom[0]} if known.bottom else {}
    places: list[int] = []
    for _ in known.jacks:
        place = _jack_place(rules)
        places = [earlier - (earlier <= place) for earlier in places]
        places.append(place)
    return dict(zip(places, known.jacks, strict=True))


def _jack_place(rules: Rules) -> int:
    """Return the place in the deck where a jack goes that is turned up."""
    left = rules.deck_size - NUM_STARTERS - 1
    return NUM_STARTERS + (left // 2 if rules.starter_jack == "stock_middle" else left)


def _hands(
    rules: Rules, seat: int | None, dealer: int, known: KnownCards, field: dict[str, Field]
) -> dict[range, list[int]]:
    """Return the known cards of every hand that has been dealt, by the hand's places."""
    hands: dict[range, list[int]] = {}
    stock_dealt = range(NUM_STARTERS, NUM_STARTERS + rules.num_plays, rules.hand_size)
    for place in stock_dealt:
        hands[range(place, place + rules.hand_size)] = []
    blocks = list(hands)
    for number, card in enumerate(known.plays):
        packet, turn = divmod(number, rules.packet_size)
        hands[blocks[packet * rules.players + turn % rules.players]].append(card)
    if seat is not None and len(known.plays) < rules.num_plays:
        packet = len(known.plays) // rules.packet_size
        own = hands[blocks[packet * rules.players + (seat - dealer - 1) % rules.players]]
        if len(own) + len(known.hand) != rules.hand_size:
            raise field["hand"].error(f"{rules.hand_size - len(own)} cards")
        own += known.hand
    elif known.hand:
        raise field["hand"].error(f"{NOTHING}, since nobody sees one")
    return hands


def _put_hand(
    laid_out: list[int],
    places: range,
    cards: list[int],
    fixed: dict[int, int],
    field: dict[str, Field],
) -> None:
    """Put a hand's known cards into its places, those with fixed places where they belong."""
    rest = Counter(cards) - Counter(fixed.values())
    free = [place for place in places if place not in fixed]
    if rest.total() > len(free):
        raise field["plays"].error(
            "plays that leave room in the hands for the cards that everyone knows to be there"
        )
    for place, card in zip(free, rest.elements(), strict=False):
        laid_out[place] = card


def _before_turning_up(
    rules: Rules, laid_out: list[int], jacks: list[int], field: dict[str, Field]
) -> list[int]:
    """Return the deck as it was dealt, before jacks were turned up and put away."""
    starters, stock = laid_out[:NUM_STARTERS], laid_out[NUM_STARTERS:]
    if rules.starter_jack == "pile":
        place = NUM_STARTERS - 1 - len(jacks)
        if starters[place:-1] != jacks[::-1]:
            raise field["starters"].error(f"the jacks turned up, {_cards(jacks)}, in deal order")
        return [*starters[:place], starters[-1], *starters[place:-1], *stock]
    for jack in reversed(jacks):
        stock.pop(_jack_place(rules) - NUM_STARTERS)
        stock.insert(0, starters[-1])
        starters[-1] = jack
    return starters + stock


def _read_rules(field: Field) -> Rules:
    try:
        rules = parse_rules(field.text)
    except ValueError as error:
        raise field.error(f"rules; {error}") from None
    if rules_text(rules) != field.text:
        raise field.error(rules_text(rules))
    return rules


def _read_scores(field: Field, rules: Rules) -> np.ndarray:
    parts = field.text.split(":")
    if len(parts) != rules.sides:
        raise field.error(f"{rules.sides} numbers, one per side, such as 0:0")
    scores = np.array([field.whole_number(part, 0, MAX_MATCH_POINTS) for part in parts])
    if rules.target is None and scores.any():
        raise field.error("zeros, since these rules have no target")
    return scores


def _read_last(field: Field, rules: Rules, scores: np.ndarray) -> list[dict[str, int]] | None:
    if field.text == NOTHING:
        return None
    sides = [side.split(".") for side in field.text.split(":")]
    if len(sides) != rules.sides or any(len(side) != 4 for side in sides):
        raise field.error("points.cards.pistis.jackpistis for each side")
    names = ("points", "cards", "pistis", "jack_pistis")
    last = []
    for side, total in zip(sides, scores.tolist(), strict=True):
        numbers = [field.whole_number(text, 0, MAX_MATCH_POINTS) for text in side]
        last.append({**dict(zip(names, numbers, strict=True)), "match_points": total})
    return last


def _cards(cards: Any) -> str:
    return "".join(CARD_NAMES[card] for card in cards)


def _side_text(side: dict[str, int]) -> str:
    return f"{side['points']}.{side['cards']}.{side['pistis']}.{side['jack_pistis']}"


def _with_check(body: str) -> str:
    return f"{body} #{zlib.crc32(body.encode()):08x}"
