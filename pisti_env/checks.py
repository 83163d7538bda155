"""What users give, checked at the border: the rest of the package believes it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pisti_env import game, loops
from pisti_env.cards import card_names, parse_card
from pisti_env.compiled_rules import compiled_rules
from pisti_env.quote import quote
from pisti_env.rules import MAX_POINTS, Rules


def check_deck(rules: Rules, deck: Any) -> np.ndarray:
    """Return a deck of ints or text as (deck_size,) int8; raise `ValueError` if it is wrong."""
    if not is_row(deck):
        raise ValueError(f"deck is {quote(deck)}; expected a list of cards in dealing order")
    try:
        cards = [parse_card(card) for card in deck]
    except ValueError as error:
        raise ValueError(f"deck is wrong: {error}") from None
    missing, extra = Counter(rules.deck_cards()), Counter(cards)
    missing, extra = missing - extra, extra - missing
    if missing or extra:
        raise ValueError(
            f"deck has {len(cards)} cards, too many of: {card_names(sorted(extra)) or 'none'}; "
            f"missing: {card_names(sorted(missing)) or 'none'}; expected the {rules.deck_size} "
            "cards of these rules in dealing order"
        )
    return check_starters(rules, np.array([cards], np.int8), ["deck"])[0]


def check_starters(rules: Rules, decks: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return `decks` (n, deck_size); raise `ValueError`, with its name of `names`, if in one of
    them no starter can be turned up that is not a jack. Tried out at tables of their own."""
    num_decks = len(decks)
    dealt = np.zeros(num_decks, np.bool_)
    loops.deal_rows(
        np.zeros(num_decks, game.GAME),
        compiled_rules(rules),
        np.arange(num_decks),
        decks,
        np.zeros(num_decks, np.int64),
        dealt,
    )
    if not dealt.all():
        wrong = int(np.argmin(dealt))
        raise ValueError(
            f"{names[wrong]} is {card_names(decks[wrong])}; expected one with a card to turn up "
            "that is not a jack"
        )
    return decks


def check_decks(rules: Rules, decks: Any, num_decks: int) -> np.ndarray:
    """Return `decks` (num_decks, deck_size) of ints as int8; raise `ValueError` if one is wrong."""
    try:
        decks = np.asarray(decks)
    except ValueError:
        raise ValueError(f"decks is {quote(decks)}; expected rows of equal length") from None
    if decks.shape != (num_decks, rules.deck_size) or decks.dtype.kind not in "iu":
        raise ValueError(
            f"decks has shape {decks.shape} and dtype {decks.dtype}; expected ints of shape "
            f"{(num_decks, rules.deck_size)}"
        )
    wrong = (np.sort(decks, axis=1) != rules.deck_cards()).any(axis=1)
    if wrong.any():
        table = int(np.argmax(wrong))
        try:
            check_deck(rules, decks[table].tolist())
        except ValueError as error:
            raise ValueError(f"decks[{table}]: {error}") from None
    names = [f"decks[{table}]" for table in range(num_decks)]
    return check_starters(rules, decks.astype(np.int8), names)


def check_dealers(rules: Rules, dealers: Any, num_dealers: int) -> np.ndarray:
    """Return `dealers` (num_dealers,) as int64; raise `ValueError` naming a wrong one."""
    try:
        shape = np.shape(dealers)
    except ValueError:  # rows of different lengths
        shape = ()
    if shape != (num_dealers,):
        raise ValueError(
            f"dealers is {quote(dealers)}; expected a seat for each of the {num_dealers} tables"
        )
    return np.array([check_dealer(rules, dealer) for dealer in dealers], np.int64)


def check_dealer(rules: Rules, dealer: Any) -> int:
    """Return a dealer's seat as an int; raise `ValueError` if it is none."""
    if is_int(dealer) and 0 <= dealer < rules.players:
        return int(dealer)
    raise ValueError(f"dealer is {quote(dealer)}; expected a seat from 0 to {rules.players - 1}")


def check_viewer(rules: Rules, seat: Any) -> int | None:
    """Return a seat as an int, None for a spectator; raise `ValueError` for anything else."""
    if seat is None or (is_int(seat) and 0 <= seat < rules.players):
        return None if seat is None else int(seat)
    raise ValueError(
        f"seat is {quote(seat)}; expected None or an int from 0 to {rules.players - 1}"
    )


def check_row(table: Any, num_tables: int) -> int:
    """Return a table's number as an int; raise `ValueError` if there is none of that number."""
    if is_int(table) and 0 <= table < num_tables:
        return int(table)
    raise ValueError(f"table is {quote(table)}; expected an int from 0 to {num_tables - 1}")


def check_scores(rules: Rules, scores: Any) -> np.ndarray:
    """Return starting scores as (sides,) int64; raise `ValueError` if they cannot be played on."""
    if rules.target is None:
        raise ValueError(
            f"scores is {quote(scores)}; expected none, since these rules have no target"
        )
    expected = f"{rules.sides} ints from 0 to {MAX_POINTS}, one per side"
    if (
        not is_row(scores)
        or len(scores) != rules.sides
        or not all(is_int(score) and 0 <= score <= MAX_POINTS for score in scores)
    ):
        raise ValueError(f"scores is {quote(scores)}; expected {expected}")
    totals = np.array(scores, np.int64)
    if find_decided(rules, totals[np.newaxis]) >= 0:
        raise ValueError(f"scores is {quote(scores)}; expected a match that is not decided yet")
    return totals


def find_decided(rules: Rules, totals: np.ndarray) -> int:
    """Return the first of the matches with match points `totals` (n, sides) int64 that is decided
    already, -1 if none is."""
    over = np.zeros(len(totals), np.bool_)
    loops.find_decided(totals, compiled_rules(rules), over)
    return int(np.argmax(over)) if over.any() else -1


def check_actions(actions: Any, num_tables: int) -> np.ndarray:
    """Return actions, one per table, as a new array (num_tables,) int64, which nobody can change
    after they were found to be legal; raise `ValueError` for another form."""
    try:
        actions = np.asarray(actions)
    except ValueError:
        raise ValueError(f"actions is {quote(actions)}; expected {num_tables} ints") from None
    if actions.shape != (num_tables,) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"actions has shape {actions.shape} and dtype {actions.dtype}; expected "
            f"{num_tables} ints, one per table"
        )
    return np.array(actions, np.int64)


def refusal(what: str, action: Any, names: Sequence[str], whose: str, hand: Any) -> ValueError:
    """Return what to raise for an illegal action: `what` it is called, the `names` of all actions,
    `whose` hand it is played from ("its hand", "the hand of seat 1"), and the `hand`'s cards."""
    name = f" ({names[action]})" if is_int(action) and 0 <= action < len(names) else ""
    return ValueError(
        f"{what} is {quote(action)}{name}, which is not in {whose}, {card_names(hand)}; "
        "play one of those"
    )


def check_state(state: Any, ours: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return copies of the arrays of a state of the tables, which have the names, shapes and dtypes
    of `ours`; raise `ValueError` naming one that has not."""
    if not isinstance(state, Mapping):
        raise ValueError(
            f"state of the tables is {quote(state)}; expected a dict, as get_state() returns it"
        )
    copies = {}
    for name, mine in ours.items():
        theirs = state.get(name)
        if not isinstance(theirs, np.ndarray) or (theirs.shape, theirs.dtype) != (
            mine.shape,
            mine.dtype,
        ):
            raise ValueError(
                f"state of the tables has no {name} of shape {mine.shape} and dtype {mine.dtype}; "
                "give what get_state() returned with as many tables"
            )
        copies[name] = np.array(theirs, order="C")
    return copies


def check_range(name: str, numbers: np.ndarray, low: float, high: float) -> None:
    """Raise `ValueError` naming the table, the first index, of a number that is not from `low` to
    `high`."""
    within = (numbers >= low) & (numbers <= high)  # False for what is no number
    if not within.all():
        place = tuple(np.argwhere(~within)[0].tolist())
        raise ValueError(
            f"{name} of table {place[0]} has {numbers[place].item()!r}; expected numbers from "
            f"{low} to {high}"
        )


def is_row(value: Any) -> bool:
    """Return whether a value is a list, tuple or one-dimensional array: things in an order."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def is_int(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy, an array of none dimensions too;
    bools are not."""
    if type(value) is int:  # what most are, and quickest to see
        return True
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
