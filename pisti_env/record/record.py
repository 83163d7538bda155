"""An episode as data, and what can be made of it: a check, a view, an environment."""

import datetime
import functools
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pisti_env.cards import CARD_NAMES, NO_CARD, NUM_CARDS, card_names
from pisti_env.checks import check_starters, check_viewer, find_decided, is_int
from pisti_env.knowledge import (
    Contradiction,
    View,
    deal_unknown,
    deck_of,
    fill_in_deck,
    hand_of,
    known_of_view,
    make_view,
    seen_deck,
)
from pisti_env.pisti_v0 import raw_env
from pisti_env.quote import quote
from pisti_env.record.fields import (
    EVERYONE,
    Deal,
    Path,
    Wrong,
    check_fields,
    check_viewer_of_record,
)
from pisti_env.record.lines import Source
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed, derive_seed
from pisti_env.tables import PlayedDeal, Tables

_ONE = np.zeros(1, np.int64)  # the rows of the only table
_FACES = np.arange(NUM_CARDS)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A deal or a match, as far as it was played. Its fields are checked when it is made, and a
    wrong one raises `ValueError`; `check` finds out whether it can have been played so."""

    rules: Rules
    """The rules that were played."""
    deals: tuple[Deal, ...]
    """The deals in order: one, or with a target those of a match. The last may be unfinished."""
    agents: tuple[str, ...] = ()
    """Who sat in each seat; empty if that is not told."""
    date: datetime.date | None = None
    """The day on which it was played."""
    viewer: int | str | None = None
    """Whose record it is: None, nothing is left out; a seat, or `"everyone"`: what these did not
    know is left out of the decks."""
    seed: int | None = None
    """The seed that the decks are drawn from, as `raw_env.reset(seed)` draws them."""
    scores: tuple[int, ...] = ()
    """The match scores before the first deal, one for each side; zeros if they are not given."""
    comments: tuple[str, ...] = ()
    """What somebody wrote about all of it."""
    source: Source | None = field(default=None, init=False, compare=False, repr=False)
    """Where it was read, if it was."""

    def __post_init__(self) -> None:
        if self.scores == () and isinstance(self.rules, Rules):
            object.__setattr__(self, "scores", (0,) * self.rules.sides)
        check_fields(self)

    # What is in it.

    def scores_before(self, deal: int) -> tuple[int, ...]:
        """Return the match scores before a deal, one for each side; after the last one with the
        number of deals, if that was scored."""
        if not is_int(deal) or not 0 <= deal <= len(self.deals):
            raise ValueError(f"deal is {quote(deal)}; expected an int from 0 to {len(self.deals)}")
        return self._totals[deal]

    @functools.cached_property
    def _totals(self) -> list[tuple[int, ...]]:
        """The match scores before every deal, and after the last one."""
        points = [deal.scores or (0,) * self.rules.sides for deal in self.deals]
        return list(
            itertools.accumulate(
                points,
                lambda before, gains: tuple(map(operator.add, before, gains)),
                initial=self.scores,
            )
        )

    def view(self, deal: int, play: int, seat: int | None = None) -> View:
        """Return what a seat knew, or with None what everyone did, in deal number `deal` (from 0)
        after `play` plays. After the last play of a deal that was played to its end, that deal is
        shown, scored.

        Raises `ValueError` if there is no such moment, if the record leaves out what the seat knew,
        at a play that is illegal, or if the deal before was not scored so.
        """
        self._check_moment(deal, play)
        seat = check_viewer(self.rules, seat)
        if self.viewer is not None and seat not in (self.viewer, None):
            raise ValueError(
                f"seat is {seat}, and the record has only what {_who(self.viewer)} saw; "
                f"expected {'None' if self.viewer == EVERYONE else f'{self.viewer} or None'}"
            )
        last_deal = None
        if deal > 0:
            before = self._play(deal - 1, self._deck(deal - 1), self.deals[deal - 1].plays)
            self._check_score(deal - 1, before)
            last_deal = before.score(0)
        tables = self._play(deal, self._deck(deal), self.deals[deal].plays[:play])
        if tables.scored[0]:
            last_deal = tables.score(0)
        return make_view(tables.games, self.rules, seat, last_deal)

    def replay(self, deal: int, play: int, seed: int = 0, **arguments: Any) -> raw_env:
        """Return an environment in deal number `deal` (from 0) after `play` plays, made with these
        rules and any other `arguments` of `raw_env`.

        It goes on with the record's decks, if it is a match; those after the record's last one are
        drawn from the record's seed, or from `seed` if it has none. What a record of one viewer
        leaves out is drawn from `seed`, so that each deal that fits what was seen is equally
        likely. After the last play of a deal that did not end the match, the next one has been
        dealt.

        Raises `ValueError` if there is no such moment, or where something up to it is against the
        rules.
        """
        self._check_moment(deal, play)
        seed = check_seed(seed)
        env = raw_env(rules=self.rules, **arguments)
        decks = [self._deck_to_replay(number, seed) for number in range(len(self.deals))]
        plays: list[int] = []
        over = False
        for number, here in enumerate(self.deals[: deal + 1]):
            self._check_beginning(number, over)
            made = here.plays if number < deal else here.plays[:play]
            tables = self._play(number, decks[number], made)
            if number < deal:
                self._check_score(number, tables)
            over = bool(tables.over[0])
            plays += made
        dealer = self.deals[0].dealer
        env.go_on_from(decks, dealer, self.scores, plays, seed if self.seed is None else self.seed)
        return env

    def check(self) -> None:
        """Play all of it by the rules. Raises `ValueError` with the first field that is wrong, and
        its line if the record was read from a file."""
        over = False
        for number, deal in enumerate(self.deals):
            self._check_beginning(number, over)
            tables = self._play(number, self._deck(number), deal.plays)
            self._check_deck_is_seen(number, tables)
            self._check_score(number, tables)
            over = bool(tables.over[0])
        if self.seed is not None:
            self._check_seed(self.seed)

    def seen_by(self, viewer: int | str) -> "Record":
        """Return a record of what one seat saw, or `"everyone"`: the decks without the cards that
        it did not know by the end, and with each hand in an order that tells nothing; no seed, and
        no comments, since these may tell what was hidden.

        Raises `ValueError` if the record leaves out what the viewer knew.
        """
        check_viewer_of_record(self.rules, viewer)
        if self.viewer not in (None, viewer) and viewer != EVERYONE:
            raise ValueError(
                f"viewer is {quote(viewer)}; expected {quote(self.viewer)} or {EVERYONE!r}, since "
                f"the record has only what {_who(self.viewer)} saw"
            )
        deals = []
        for number, deal in enumerate(self.deals):
            tables = self._play(number, self._deck(number), deal.plays)
            deck = self._seen_deck(number, tables, viewer)
            deals.append(Deal(deck, deal.dealer, deal.plays, deal.scores))
        return Record(
            rules=self.rules,
            deals=tuple(deals),
            agents=self.agents,
            date=self.date,
            viewer=viewer,
            scores=self.scores,
        )

    # How that is done.

    def _check_moment(self, deal: int, play: int) -> None:
        if not is_int(deal) or not 0 <= deal < len(self.deals):
            raise ValueError(
                f"deal is {quote(deal)}; expected an int from 0 to {len(self.deals) - 1}"
            )
        most = len(self.deals[deal].plays)
        if not is_int(play) or not 0 <= play <= most:
            raise ValueError(f"play is {quote(play)}; expected an int from 0 to {most}")

    def _wrong(self, path: Path, told: str) -> ValueError:
        """Return what to raise where a field is wrong."""
        if self.source is None:
            return Wrong(path, told)
        return ValueError(f"{self.source.where(path)} {told}")

    def _deck(self, number: int) -> tuple[int, ...]:
        """Return a deal's deck, filled in where cards are left out."""
        deck = self.deals[number].deck
        if NO_CARD not in deck:
            return deck
        return tuple(fill_in_deck(self.rules, list(deck)))

    def _deck_to_replay(self, number: int, seed: int) -> tuple[int, ...]:
        """Return a deal's deck; where cards are left out, one that fits all that the viewer saw."""
        deck = self._deck(number)
        if deck == self.deals[number].deck:
            return deck
        tables = self._play(number, deck, self.deals[number].plays)
        seat = _seat(self.viewer)
        random_seed = derive_seed(f"what is left out of deal {number}", seed)
        deal_unknown(tables.games, self.rules, seat, random_seed)
        return tuple(deck_of(tables.games, self.rules))

    def _play(self, number: int, deck: tuple[int, ...], plays: tuple[int, ...]) -> Tables:
        """Return a table, the only one of its `Tables`, at which a deal was dealt with this deck,
        and these plays were made."""
        path, tables = ("deals", number), Tables(self.rules, 1)
        decks = np.array([deck], np.int8)
        try:
            check_starters(self.rules, decks, ["deck"])
        except ValueError:
            raise self._wrong(
                (*path, "deck"), "has no card to turn up that is not a jack; expected one"
            ) from None
        dealer = np.array([self.deals[number].dealer])
        tables.start(_ONE, decks, dealer, np.array(self.scores_before(number), np.int64))
        cards = np.array(plays, np.int64)
        for index in range(len(plays)):
            if tables.find_cards(cards[index : index + 1], _FACES) >= 0:
                raise self._wrong(
                    (*path, "plays"), self._illegal(number, plays[: index + 1], tables)
                )
            tables.play()
        return tables

    def _illegal(self, number: int, plays: tuple[int, ...], tables: Tables) -> str:
        """Return what is wrong with the last of these plays of a deal, which are made at the table
        but for that one."""
        packet, turn = divmod(len(plays) - 1, self.rules.packet_size)
        seat = int(tables.games["to_play"][0])
        told = (
            f"has {CARD_NAMES[plays[-1]]} as play {turn + 1} of packet {packet + 1}, where seat "
            f"{seat} is to play; expected a card of its hand"
        )
        if NO_CARD in self.deals[number].deck:  # what is filled in tells nothing
            return f"{told}, in which this one cannot be"
        return f"{told}, {card_names(hand_of(tables.games, seat))}"

    def _check_beginning(self, number: int, over: bool) -> None:
        """Raise if a deal cannot have begun: the match was `over` then, or another seat deals."""
        rules, path = self.rules, ("deals", number)
        if number == 0:
            if rules.target is not None and find_decided(rules, np.array([self.scores])) >= 0:
                told = f"is {quote(list(self.scores))}; expected a match that is not decided"
                raise self._wrong(("scores",), told)
            return
        if over:
            raise self._wrong(path, "is one too many, for the match was decided before it")
        dealer, expected = self.deals[number].dealer, self.deals[number - 1].dealer + 1
        expected %= rules.players
        if dealer != expected:
            told = f"is {dealer}; expected {expected}, the seat after the last dealer"
            raise self._wrong((*path, "dealer"), told)

    def _check_score(self, number: int, tables: Tables) -> None:
        """Raise if a deal's scores do not follow from it."""
        deal, path = self.deals[number], ("deals", number, "scores")
        told = None if deal.scores is None else list(deal.scores)
        points = None
        if tables.scored[0]:
            points = [side["points"] for side in tables.score(0)]
        if told == points:
            return
        if points is None:
            left = self.rules.num_plays - len(deal.plays)
            raise self._wrong(path, f"is {told}; expected none, since {left} plays are missing")
        raise self._wrong(path, f"is {told or 'missing'}; expected {points}")

    def _check_deck_is_seen(self, number: int, tables: Tables) -> None:
        """Raise unless what the deck tells is what the viewer saw."""
        if self.viewer is None:
            return
        deck, path = self.deals[number].deck, ("deals", number, "deck")
        expected = self._seen_deck(number, tables, self.viewer)
        for place, (card, seen) in enumerate(zip(deck, expected, strict=True)):
            if card != seen:
                told, right = ("??" if c == NO_CARD else CARD_NAMES[c] for c in (card, seen))
                raise self._wrong(
                    path,
                    f"has {told} as card {place + 1}; expected {right}, as the viewer has seen it",
                )

    def _seen_deck(self, number: int, tables: Tables, viewer: int | str) -> tuple[int, ...]:
        """Return what a viewer knows of the deck of the deal that was played at the table."""
        seat = _seat(viewer)
        known = known_of_view(make_view(tables.games, self.rules, seat, None))
        try:
            return tuple(seen_deck(known))
        except Contradiction as error:
            raise self._wrong(("deals", number, "deck"), f"is wrong: {error}") from None

    def _check_seed(self, seed: int) -> None:
        for number, deck in enumerate(decks_of_seed(self.rules, seed, len(self.deals))):
            if deck != self.deals[number].deck:
                raise self._wrong(
                    ("seed",),
                    f"is {seed}, from which another deck is drawn than that of deal {number}; "
                    "expected the seed of these decks, or none",
                )


def _seat(viewer: int | str | None) -> int | None:
    """Return whose view a viewer has: a seat, or None for what everyone knows."""
    return viewer if isinstance(viewer, int) else None


def _who(viewer: int | str) -> str:
    return EVERYONE if viewer == EVERYONE else f"seat {viewer}"


def record_of(
    rules: Rules,
    played: Sequence[PlayedDeal],
    scores: Sequence[int],
    seed: int | None,
    agents: tuple[str, ...],
    date: datetime.date,
) -> Record:
    """Return the record of deals that were played one after the other, with the match scores
    `scores` now. The seed is left out where the decks are not its."""
    deals = tuple(Deal(deal.deck, deal.dealer, deal.plays, deal.points) for deal in played)
    before = list(scores)
    for deal in deals:
        for side, points in enumerate(deal.scores or ()):
            before[side] -= points
    if seed is not None and decks_of_seed(rules, seed, len(deals)) != [deal.deck for deal in deals]:
        seed = None
    return Record(
        rules=rules, deals=deals, agents=agents, date=date, seed=seed, scores=tuple(before)
    )


def decks_of_seed(rules: Rules, seed: int, number: int) -> list[tuple[int, ...]]:
    """Return the first decks that `raw_env.reset(seed)` and a match after it deal."""
    tables = Tables(rules, 1)
    tables.reseed(seed)
    decks = []
    for deal in range(number):
        if deal == 0:
            tables.start(_ONE)
        else:
            tables.next_deals(_ONE)
        decks.append(tuple(tables.decks[0].tolist()))
    return decks
