"""A deal whose cards are drawn one by one, as chance nodes need it; and what all deals of a game
have in common."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb
from typing import Any

import numpy as np

from pisti_env import game as engine
from pisti_env import loops
from pisti_env.cards import JACK, KIND_OF_CARD, NO_CARD, NUM_KINDS
from pisti_env.compiled_rules import compiled_rules
from pisti_env.game import FACE_DOWN, STARTER
from pisti_env.knowledge import deal_unknown
from pisti_env.observation import Encoder, encoder
from pisti_env.rules import NUM_STARTERS, Rules
from pisti_env.tables import Tables, pay_at_the_end, warm_up

Outcomes = tuple[tuple[int, float], ...]

_ONE = np.zeros(1, np.int64)  # the rows of the only table
_OVER = np.ones(1, np.bool_)
# Cards to kinds, as bytes; and kinds to letters, for the strings of information states.
_KINDS = bytes(KIND_OF_CARD.tolist()).ljust(256, b"\xff")
_LETTERS = b"A23456789TJQKcd".ljust(256, b"?")


def encoding_of(rules: Rules, perfect_recall: bool) -> Encoder:
    """Return the encoding of information states (perfect recall) or of observations."""
    return encoder("kinds_history" if perfect_recall else "kinds", rules)


class Table:
    """What all states of a game share: rules, cards, and a table for the engine to play at."""

    def __init__(self, rules: Rules):
        warm_up()
        self.rules = rules
        self.cards_of: list[list[int]] = [[] for _ in range(NUM_KINDS)]
        for card in rules.deck_cards():
            self.cards_of[KIND_OF_CARD[card]].append(card)
        # Cards of one block are drawn together: the starters, a hand, or what is left over.
        hands, places = rules.num_plays // rules.hand_size, range(rules.deck_size - NUM_STARTERS)
        self.block_of = [-1] * NUM_STARTERS + [min(k // rules.hand_size, hands) for k in places]
        self._action_of_card = encoding_of(rules, True).action_of_card
        self._tables = Tables(rules, 1)
        self.too_many_jacks = self._count_too_many_jacks()

    def _count_too_many_jacks(self) -> int:
        """Return after how many jacks turned up it is dealt again; more than there are if never."""
        jacks = self.cards_of[JACK]
        for count in range(1, len(jacks) + 1):
            if self.lay_out(jacks[:count], [])["packet"][0] == 0:
                return count
        return len(jacks) + 1

    def lay_out(self, turned: Sequence[int], bottom: Sequence[int]) -> np.ndarray:
        """Return a deal's record, (1,) GAME, in which only the cards turned up and those at the
        bottom of the stock, from below, are not NO_CARD. If it is dealt again, there is no packet
        in it."""
        size = self.rules.deck_size
        deck = np.full(size, NO_CARD, np.int8)
        step = -1 if self.rules.starter_jack == "pile" else 1
        deck[[STARTER + step * k for k in range(len(turned))]] = turned
        deck[size - len(bottom) :] = bottom[::-1]
        games, dealt = np.zeros(1, engine.GAME), np.zeros(1, np.bool_)
        rules, dealers = compiled_rules(self.rules), np.array([self.rules.players - 1])
        loops.deal_rows(games, rules, _ONE, deck[np.newaxis], dealers, dealt)
        return games

    def play(self, games: np.ndarray, kind: int) -> np.ndarray:
        """Return the record, (1,) GAME, after the seat whose turn it is has played a kind."""
        tables = self._tables
        tables.games = _copy(games)
        if tables.find_cards(np.array([kind]), self._action_of_card) >= 0:
            raise ValueError(f"action is {kind}, which is not in the hand")
        tables.play()
        return tables.games


class Deal:
    """A deal whose cards are drawn when somebody gets to see them. Until then they are NO_CARD in
    the engine's record, which is otherwise as it always is.

    Attributes: `games` (1,) GAME, what has happened for the players, all zero before the first
    packet; `outcomes`, kinds to draw next and their probabilities, empty if it is a player's turn.
    Nothing in here is changed in place, so a copy costs next to nothing.
    """

    def __init__(self, table: Table):
        self.games = np.zeros(1, engine.GAME)
        self.outcomes: Outcomes = ()
        self._table = table
        self._left = tuple(len(cards) for cards in table.cards_of)  # of each kind, not drawn yet
        self._turned: tuple[int, ...] = ()  # cards turned up: jacks, then the starter
        self._bottom: tuple[int, ...] = ()  # of the stock, from below: jacks, then the one shown
        self._coming: np.ndarray | None = None  # the next `games`, while it lacks cards
        self._last_play: int | None = None  # the kind played then, if it cannot be scored yet
        self._places: tuple[int, ...] = ()  # of the deck, where `_coming` lacks cards
        self._drawn: tuple[int, ...] = ()  # kinds of the present block, in order
        self._settle()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Deal":
        copy = object.__new__(Deal)
        copy.__dict__.update(self.__dict__)
        return copy

    @property
    def is_dealt(self) -> bool:
        """Whether the players have hands, or had."""
        return bool(self.games["packet"][0] > 0)

    @property
    def to_play(self) -> int:
        """The seat whose turn it is, NOBODY once the deal is scored."""
        return int(self.games["to_play"][0])

    def legal_kinds(self) -> list[int]:
        """Return the kinds in the hand to play, sorted."""
        return sorted(set(self.hand(self.to_play)))

    def plays(self) -> list[int]:
        """Return the kinds that were played, in order."""
        return list(self._played())

    def margins(self) -> list[float]:
        """Return, for every seat, its side's points less the mean of the other sides'."""
        rules = self._table.rules
        points = self.games["public_points"][:, : rules.sides].astype(np.float64)
        margins = np.zeros_like(points)
        pay_at_the_end(_ONE, _OVER, points, margins)
        return [float(margins[0, rules.side(seat)]) for seat in range(rules.players)]

    @property
    def starters_are_public(self) -> bool:
        """Whether everyone knows the face-down starters."""
        return self._know_starters(range(self._table.rules.players))

    def text(self, seats: Sequence[int], public: bool = True) -> str:
        """Return what some seats know: their hands, the starter, jacks turned up before it, a shown
        bottom card, face-down starters, plays. `c` is the two of clubs, `d` the ten of diamonds.

        Without seats it is what is public; with `public` False, only what is not."""
        if not self.is_dealt:
            return ""
        hands = [f"p{seat} {_letters(sorted(self.hand(seat)))}" for seat in seats]
        deck = self.games["deck"][0]
        told = self.starters_are_public or any(self._know_starters([seat]) for seat in seats)
        starters = deck[:FACE_DOWN].tobytes().translate(_KINDS) if told else b""
        if not public:
            return " ".join([*hands, _letters(b"" if self.starters_are_public else starters)])
        jacks, bottom = int(self.games["num_shown_jacks"][0]), int(self.games["bottom_card"][0])
        bottom_kind = [] if bottom == NO_CARD else [KIND_OF_CARD[bottom]]
        known = ([KIND_OF_CARD[deck[STARTER]]], [JACK] * jacks, bottom_kind, starters)
        return " ".join([*hands, *map(_letters, known), _letters(self._played())])

    def _know_starters(self, seats: Sequence[int]) -> bool:
        return bool(self.games["knows_starters"][0, seats].all())

    def play(self, kind: int) -> None:
        """Play a kind of the hand to play; what it brings to light is drawn next."""
        after = self._table.play(self.games, kind)
        self._coming, self._places = after, _unknown_places(after)
        if after["scored"][0] and self._places:  # scored without what is drawn now
            self._coming, self._last_play = self.games, kind
        self._settle()

    def deal_kind(self, kind: int) -> None:
        """Deal a kind, one of `outcomes`; raise `ValueError` if it is none."""
        if kind not in dict(self.outcomes):
            raise ValueError(f"action is {kind}; expected one of {sorted(dict(self.outcomes))}")
        self._put(kind)
        self._settle()

    def _settle(self) -> None:
        """Find the outcomes of the next draw. If there is but one, draw it; if there is nothing to
        draw, let the players see what came."""
        while True:
            weights = self._weights()
            if len(weights) != 1:
                break
            self._put(next(iter(weights)))
        total = sum(weights.values())
        self.outcomes = tuple((kind, weight / total) for kind, weight in weights.items())
        if not weights and self._coming is not None:
            self.games, self._coming = self._coming, None
            if self._last_play is not None:
                self.games = self._table.play(self.games, self._last_play)
                self._last_play = None

    def _weights(self) -> dict[int, float]:
        """Return the kinds that can be drawn next, each as often as is proportional."""
        left = self._left
        if self._coming is None:
            weights: dict[int, float] = dict(enumerate(left))
            if not self._starter_is_up():  # what is dealt again counts for nothing
                weights[JACK] *= 1 - self._chance_of_dealing_again(left)
        elif self._places:
            blocks = [self._table.block_of[place] for place in self._places]
            size = blocks.count(blocks[0])
            weights = hands_by_next_kind(left, self._drawn, size)
        else:
            weights = {}
        return {kind: weight for kind, weight in weights.items() if weight}

    def _starter_is_up(self) -> bool:
        return bool(self._turned) and KIND_OF_CARD[self._turned[-1]] != JACK

    def _chance_of_dealing_again(self, left: Sequence[int]) -> float:
        """Return the chance that only jacks are turned up, if the next card is one."""
        more = self._table.too_many_jacks - len(self._turned) - 1
        return comb(left[JACK] - 1, more) / comb(sum(left) - 1, more) if left[JACK] else 0.0

    def _put(self, kind: int) -> None:
        """Put the next card of a kind where a card is lacking first."""
        of_kind = self._table.cards_of[kind]
        card = of_kind[len(of_kind) - self._left[kind]]
        self._left = (*self._left[:kind], self._left[kind] - 1, *self._left[kind + 1 :])
        if self._coming is None:
            self._put_first(card)
            return
        place, *rest = self._places
        self._coming = _with_card(self._coming, self._table.rules, place, card)
        self._places = tuple(rest)
        block_of = self._table.block_of
        done = not rest or block_of[rest[0]] != block_of[place]
        self._drawn = () if done else (*self._drawn, kind)

    def _put_first(self, card: int) -> None:
        """Turn a card up, or find it at the bottom of the stock; deal after the last such card."""
        rules = self._table.rules
        if not self._starter_is_up():
            self._turned += (card,)
        else:
            self._bottom += (card,)
        if self._starter_is_up():
            end = self._bottom and KIND_OF_CARD[self._bottom[-1]] != JACK
            whole_stock = len(self._bottom) == rules.deck_size - NUM_STARTERS
            if end or whole_stock or not rules.bottom_card_shown:
                self._coming = self._table.lay_out(self._turned, self._bottom)
                self._places = _unknown_places(self._coming)

    def hand(self, seat: int) -> bytes:
        """Return the kinds in a hand."""
        size = self.games["hand_sizes"][0, seat]
        return self.games["hands"][0, seat, :size].tobytes().translate(_KINDS)

    def _played(self) -> bytes:
        return self.games["plays"][0, : self.games["num_plays"][0]].tobytes().translate(_KINDS)

    def next_of(self, turned: Sequence[int], deck: np.ndarray) -> int:
        """Return the kind to draw next, of `outcomes`, if this is what is dealt; see `redeal`."""
        if self._coming is None:
            return turned[len(self._turned) + len(self._bottom)]
        block = np.equal(self._table.block_of, self._table.block_of[self._places[0]])
        there = self._coming["deck"][0, : len(deck)][block].tobytes().translate(_KINDS)
        return min(Counter(deck[block].tolist()) - Counter(there))  # NO_CARD is none of the kinds

    def redeal(self, seat: int, rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
        """Deal the cards that a seat has not seen anew: the kinds turned up, with those at the
        bottom of the stock, and the kinds of the whole deck in the engine's order. Each deal that
        the seat cannot rule out is equally likely."""
        rules, games = self._table.rules, _copy(self.games)
        deck = games["deck"][0, : rules.deck_size]
        undrawn = Counter(rules.deck_cards()) - Counter(deck.tolist())  # NO_CARD is none of them
        deck[deck == NO_CARD] = list(undrawn.elements())
        deal_unknown(games, rules, seat, int(rng.integers(2**63)))
        kinds, below = KIND_OF_CARD[deck], KIND_OF_CARD[list(self._bottom)].tolist()
        if below and below[-1] != JACK:
            # The card shown came from below any number of the jacks that lie next to it now.
            stock = kinds[NUM_STARTERS:-1][::-1].tolist()
            jacks = next((n for n, kind in enumerate(stock) if kind != JACK), len(stock))
            below = [JACK] * int(rng.integers(jacks + 1)) + below[-1:]
        return KIND_OF_CARD[list(self._turned)].tolist() + below, kinds


def hands_by_next_kind(left: Sequence[int], drawn: Sequence[int], size: int) -> dict[int, float]:
    """Return how many hands there are whose lowest kinds are `drawn`, by the kind that comes next.

    The hand gets `size` more cards; `left` are the cards of each kind that are not drawn yet.
    """
    lowest = drawn[-1] if drawn else 0
    held = drawn.count(lowest)
    of_lowest, above = left[lowest] + held, sum(left[lowest + 1 :])
    more = range(1, size + 1)
    hands: dict[int, float] = {
        lowest: sum(comb(of_lowest, held + n) * comb(above, size - n) for n in more)
    }
    for kind in range(lowest + 1, NUM_KINDS):
        above_kind = above - left[kind]
        hands[kind] = comb(of_lowest, held) * (comb(above, size) - comb(above_kind, size))
        above = above_kind
    return hands


def _unknown_places(games: np.ndarray) -> tuple[int, ...]:
    """Return the places of the deck whose cards somebody gets to see, but which are NO_CARD yet."""
    first = 0 if games["knows_starters"][0].any() else NUM_STARTERS
    deck = games["deck"][0, : games["stock_start"][0]]
    return tuple((first + np.flatnonzero(deck[first:] == NO_CARD)).tolist())


def _with_card(games: np.ndarray, rules: Rules, place: int, card: int) -> np.ndarray:
    """Return a record with a card at a place of the deck, and in the hand if just dealt there."""
    games = _copy(games)
    games["deck"][0, place] = card
    if 0 <= place - games["stock_start"][0] + rules.packet_size < rules.packet_size:
        hand, held = divmod(place - NUM_STARTERS, rules.hand_size)
        games["hands"][0, hand % rules.players, held] = card
    return games


def _copy(games: np.ndarray) -> np.ndarray:
    """Return a copy of a record; as bytes, which is twenty times as fast as by fields."""
    return games.view(np.uint8).copy().view(engine.GAME)


def _letters(kinds: Iterable[int]) -> str:
    """Return kinds as text, `-` for none."""
    return bytes(kinds).translate(_LETTERS).decode() or "-"
