"""The part of a view that all else follows from, and a table at which the viewer knows just that.

`fill_in` puts every known card where it must lie, fills the rest in from the lowest, and plays what
was played. The viewer cannot tell that table from the one that it sits at; `deal_unknown` makes of
it as many others, at random.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from pisti_env import game
from pisti_env.cards import CARD_NAMES, JACK, NO_CARD, NUM_CARDS, NUM_RANKS, card_names
from pisti_env.checks import find_decided
from pisti_env.compiled_rules import compiled_rules
from pisti_env.knowledge.unknown import last_jack_place
from pisti_env.knowledge.view import View
from pisti_env.observation import decode
from pisti_env.rules import NUM_STARTERS, Rules
from pisti_env.tables import Tables

_ONE = np.zeros(1, np.int64)  # the rows of the only table
_FACES = np.arange(NUM_CARDS)


class Known(NamedTuple):
    """What a viewer knows of a deal; a view follows from it by the rules."""

    rules: Rules
    viewer: int | None
    """A seat, or None for what everyone knows."""
    dealer: int
    """The seat that dealt."""
    scores: tuple[int, ...]
    """The match scores before the deal, per side."""
    starter: int
    """The starter that was turned up and stayed so."""
    jacks: tuple[int, ...]
    """Jacks turned up before it, in that order."""
    bottom: int | None
    """The card shown at the stock's bottom."""
    starters: tuple[int, ...]
    """The face-down starters in deal order, if the viewer knows them; else empty."""
    hand: tuple[int, ...]
    """The viewer's cards; empty for a spectator."""
    plays: tuple[int, ...]
    """Every card played in the deal, in order."""


class Contradiction(ValueError):
    """What is said to be known cannot be: `field` of `Known` is not as `expected`."""

    def __init__(self, field: str, expected: str):
        super().__init__(f"{field} cannot be so; expected {expected}")
        self.field = field
        self.expected = expected


def known_of_view(view: View) -> Known:
    """Return what a view follows from."""
    points = view.public_points if view.to_play is None else (0,) * view.rules.sides
    return Known(
        rules=view.rules,
        viewer=view.viewer,
        dealer=view.dealer,
        scores=tuple(np.subtract(view.match_scores, points).tolist()),
        starter=view.starter,
        jacks=view.shown_jacks,
        bottom=view.bottom_card,
        starters=view.known_starters,
        hand=view.hand or (),
        plays=tuple(card for _, card in view.plays),
    )


def known_of_history(observation: np.ndarray, rules: Rules) -> Known:
    """Return what an observation (d,) of the encoding `"history"` tells. Who observes sits in seat
    0 there, and the others follow, since an observation does not tell who sits where.

    Match scores that the encoding clips are clipped here too. Raises `ValueError` for an array of
    another shape.
    """
    told = decode(observation, "history", rules)

    def cards(piece: str) -> tuple[int, ...]:
        named = told.get(piece, np.zeros(0, np.int64))
        return tuple((named[named > 0] - 1).tolist())

    plays = cards("history_cards")
    scores = told["match_scores"]
    if len(plays) == rules.num_plays:
        scores = scores - told["public_points"]
    return Known(
        rules=rules,
        viewer=0,
        dealer=int(told["dealer"].argmax()),
        scores=tuple(scores.tolist()),
        starter=cards("starter")[0],
        jacks=cards("jack_order"),
        bottom=next(iter(cards("bottom_card_of_deal")), None),
        starters=cards("starter_order"),
        hand=tuple(np.repeat(_FACES, told["hand"]).tolist()),
        plays=plays,
    )


def fill_in(known: Known) -> Tables:
    """Return a table, the only one of its `Tables`, at which this is what the viewer knows.

    Raises `Contradiction` if there is no such table.
    """
    rules, tables = known.rules, Tables(known.rules, 1)
    _check_cards(known)
    deck = _fill_in_deck(known)
    if rules.target is not None:
        scores = np.array([known.scores], np.int64)
        if find_decided(rules, scores) >= 0:
            raise Contradiction("scores", "a match that is not decided before the deal")
    start_from(known, deck, tables, _ONE)
    _check_starters_are_known(known, tables)
    return tables


def start_from(known: Known, deck: list[int], tables: Tables, rows: np.ndarray) -> None:
    """Begin an episode at one of `tables`, the only one of `rows`, with a deck in dealing order,
    and play what was played. Raises `Contradiction` if it cannot be played."""
    scores = np.array(known.scores, np.int64)
    tables.start(rows, np.array([deck], np.int8), np.array([known.dealer]), scores)
    if tables.games["packet"][rows[0]] == 0:
        raise Contradiction("jacks", "fewer jacks, since with these the cards are dealt again")
    for card in known.plays:
        if tables.find_cards(np.array([card]), _FACES, rows) >= 0:
            raise Contradiction(
                "plays", f"cards of the hands; {CARD_NAMES[card]} is in none whose turn it is"
            )
        tables.play(rows)


def deck_of(games: np.ndarray, rules: Rules) -> list[int]:
    """Return the deck, in dealing order, that is dealt as the one table of `games` was: before
    jacks were turned up and put away."""
    deck = games["deck"][0, : rules.deck_size].tolist()
    jacks = games["shown_jacks"][0, : games["num_shown_jacks"][0]].tolist()
    return before_turning_up(rules, deck, jacks)


def _check_cards(known: Known) -> None:
    """Raise `Contradiction` where a card cannot have been turned up or shown."""
    rules = known.rules
    if _is_jack(known.starter):
        raise Contradiction("starter", "a card that is not a jack")
    if not all(map(_is_jack, known.jacks)):
        raise Contradiction("jacks", "jacks only")
    if rules.starter_jack == "pile" and len(known.jacks) > game.FACE_DOWN:
        raise Contradiction("jacks", f"at most {game.FACE_DOWN} jacks")
    if known.bottom is not None:
        if not rules.bottom_card_shown:
            raise Contradiction("bottom", "none, since these rules show no card")
        if _is_jack(known.bottom):
            raise Contradiction("bottom", "a card that is not a jack")
    elif rules.bottom_card_shown:
        num_jacks = sum(map(_is_jack, rules.deck_cards()))
        if num_jacks < rules.deck_size - NUM_STARTERS:
            raise Contradiction("bottom", "a card, since the stock cannot be all jacks")


def _check_starters_are_known(known: Known, tables: Tables) -> None:
    """Raise `Contradiction` unless the face-down starters are given just where the viewer knows
    them."""
    knowing = tables.games["knows_starters"][0, : known.rules.players]
    knows = knowing.all() if known.viewer is None else knowing[known.viewer]
    if knows and not known.starters:
        raise Contradiction("starters", "three cards, since the viewer has seen them")
    if known.starters and not knows:
        raise Contradiction("starters", "none, since the viewer has not seen them")


def seen_deck(known: Known) -> list[int]:
    """Return the deck, in dealing order, as far as the viewer knows it: NO_CARD for other cards. In
    what order a hand's cards lay nobody knows; first come those that were played from it."""
    return before_turning_up(known.rules, lay_out(known), list(known.jacks))


def fill_in_deck(rules: Rules, deck: list[int]) -> list[int]:
    """Return a deck, as `seen_deck` returns it, with other cards filled in from the lowest. It must
    not have more of a card than the rules' deck has."""
    missing = Counter(rules.deck_cards())
    missing.subtract(card for card in deck if card != NO_CARD)
    rest = sorted(missing.elements())
    if rules.bottom_card_shown and (deck[-1] == NO_CARD or _is_jack(deck[-1])):
        rest.sort(key=_is_jack)  # no bottom card was shown, so the stock is all jacks
    fill = iter(rest)
    return [next(fill) if card == NO_CARD else card for card in deck]


def _fill_in_deck(known: Known) -> list[int]:
    """Return a deck, in dealing order, of which the viewer sees what it knows; other cards are
    filled in from the lowest."""
    rules, laid_out = known.rules, lay_out(known)
    counts = Counter(rules.deck_cards())
    counts.subtract(card for card in laid_out if card != NO_CARD)
    for card, count in counts.items():
        if count < 0:
            raise Contradiction(_field_with(card, known), _too_often(card, -count, rules))
    laid_out = fill_in_deck(rules, laid_out)
    if not all(map(_is_jack, laid_out[NUM_STARTERS:])):
        if rules.bottom_card_shown and known.bottom is None:
            raise Contradiction("bottom", "a card, since the stock was not all jacks")
    return before_turning_up(rules, laid_out, list(known.jacks))


def lay_out(known: Known) -> list[int]:
    """Return the deck once jacks and a bottom card have been moved, as far as the viewer knows it;
    NO_CARD for other cards."""
    rules = known.rules
    laid_out: list[int] = [NO_CARD] * rules.deck_size
    laid_out[game.STARTER] = known.starter
    face_down = known.starters
    if not face_down and rules.starter_jack == "pile":
        face_down = known.jacks[::-1]
    laid_out[game.FACE_DOWN - len(face_down) : game.FACE_DOWN] = face_down
    fixed = exposed_places(known)
    for places, cards in _hands(known).items():
        _put_hand(laid_out, places, cards, {p: c for p, c in fixed.items() if p in places})
    for place, card in fixed.items():
        laid_out[place] = card
    return laid_out


def _field_with(card: int, known: Known) -> str:
    """Return the last field, in the order of a line of text, that has a card."""
    for field in ("plays", "hand", "starters", "bottom", "jacks"):
        value = getattr(known, field)
        if card == value or (isinstance(value, tuple) and card in value):
            return field
    return "starter"


def _too_often(card: int, times: int, rules: Rules) -> str:
    if card not in rules.deck_cards():
        return f"cards of these rules' deck, which has no {CARD_NAMES[card]}"
    return (
        f"each card in one place; {CARD_NAMES[card]} is in {times} more than the deck of these "
        "rules has of it"
    )


def exposed_places(known: Known) -> dict[int, int]:
    """Return the cards whose places in the laid-out deck everyone knows, by place."""
    rules = known.rules
    if rules.starter_jack == "pile":
        return {} if known.bottom is None else {rules.deck_size - 1: known.bottom}
    after = _last_jack_place(rules) + 1
    return dict(zip(range(after - len(known.jacks), after), known.jacks, strict=True))


def _last_jack_place(rules: Rules) -> int:
    return int(last_jack_place(compiled_rules(rules)[0]))


def _hands(known: Known) -> dict[range, list[int]]:
    """Return the known cards of every hand that is ever dealt, by the hand's places."""
    rules, plays = known.rules, known.plays
    hands: dict[range, list[int]] = {}
    for place in range(NUM_STARTERS, NUM_STARTERS + rules.num_plays, rules.hand_size):
        hands[range(place, place + rules.hand_size)] = []
    blocks = list(hands)
    for number, card in enumerate(plays):
        packet, turn = divmod(number, rules.packet_size)
        hands[blocks[packet * rules.players + turn % rules.players]].append(card)
    if known.viewer is not None and len(plays) < rules.num_plays:
        packet = len(plays) // rules.packet_size
        turn = (known.viewer - known.dealer - 1) % rules.players
        own = hands[blocks[packet * rules.players + turn]]
        if len(own) + len(known.hand) != rules.hand_size:
            raise Contradiction("hand", f"{rules.hand_size - len(own)} cards")
        own += known.hand
    elif known.hand:
        raise Contradiction("hand", "none, since nobody sees one")
    return hands


def _put_hand(laid_out: list[int], places: range, cards: list[int], fixed: dict[int, int]) -> None:
    """Put a hand's known cards into its places, those with fixed places where they belong."""
    rest = list(cards)
    for card in fixed.values():
        if card in rest:
            rest.remove(card)
    free = [place for place in places if place not in fixed]
    if len(rest) > len(free):
        raise Contradiction(
            "plays", "plays that leave room in the hands for the cards that everyone knows there"
        )
    for place, card in zip(free, rest, strict=False):
        laid_out[place] = card


def before_turning_up(rules: Rules, laid_out: list[int], jacks: list[int]) -> list[int]:
    """Return the deck as it was dealt, before jacks were turned up and put away."""
    starters, stock = laid_out[:NUM_STARTERS], laid_out[NUM_STARTERS:]
    if rules.starter_jack == "pile":
        place = NUM_STARTERS - 1 - len(jacks)
        if starters[place:-1] != jacks[::-1]:
            raise Contradiction(
                "starters", f"the jacks turned up, {card_names(jacks[::-1])}, as the last of them"
            )
        return [*starters[:place], starters[-1], *starters[place:-1], *stock]
    for jack in reversed(jacks):
        stock.pop(_last_jack_place(rules) - NUM_STARTERS)
        stock.insert(0, starters[-1])
        starters[-1] = jack
    return starters + stock


def _is_jack(card: int) -> bool:
    return card % NUM_RANKS == JACK
