"""Who knows what lies at which place of the deck: a model of knowledge by places, not by cards.

Two equal cards of two packs are different places, so what is known of one and not of the other
stays apart. Shares no code with the environment, but that it takes a `Rules`. Also what the tests
of knowledge and of observations have in common: random tables at random moments, and the numbers
of an observation turned back into counts.
"""

import functools
import random
from dataclasses import dataclass, field

import numpy as np
from referee import (
    complete,
    match_winners,
    numbers,
    plays_in_pairs,
    random_deck,
    random_rules,
    random_scores,
)

from pisti_env import Rules, pisti_v0

ENCODINGS = ("basic", "full", "kinds", "history", "kinds_history")
JACK = 10
STARTER = 3  # the place of the turned-up starter; the three before it lie face down


def rank(card):
    return card % 13


def is_jack(card):
    return rank(card) == JACK


@dataclass
class Places:
    """One deal, dealt and played in parallel to the environment's.

    `cards` are the starters and the stock by place, once the starter has been turned up.
    """

    rules: Rules
    deck: list
    dealer: int
    cards: list = field(default_factory=list)
    shown: list = field(default_factory=list)  # cards turned up before the starter, in order
    exposed: set = field(default_factory=set)  # places of the stock that everyone knows
    bottom: int | None = None  # the place of the shown bottom card
    played: list = field(default_factory=list)  # places, in order
    hands: list = field(default_factory=list)  # of each seat: places
    dealt: int = STARTER + 1  # how many places are no longer stock
    pile: list = field(default_factory=list)  # its face-up places
    starters_down: bool = True
    taker: int | None = None  # the seat that captured the starters

    def __post_init__(self):
        cards = list(enumerate(self.deck))  # each with a number of its own
        down, stock = cards[:STARTER], cards[STARTER + 1 :]
        turned, jacks = cards[STARTER], []
        while is_jack(turned[1]):
            jacks.append(turned)
            if self.rules.starter_jack == "pile":
                turned = down.pop(STARTER - len(jacks))
                down.insert(STARTER - len(jacks), jacks[-1])
            else:
                turned, next_turned = stock.pop(0), turned
                middle = self.rules.starter_jack == "stock_middle"
                stock.insert(len(stock) // 2 if middle else len(stock), next_turned)
        if self.rules.bottom_card_shown:
            others = [place for place, (_, card) in enumerate(stock) if not is_jack(card)]
            if others:
                stock.append(stock.pop(others[-1]))
                self.bottom = len(cards) - 1
                self.exposed.add(self.bottom)
        layout = [*down, turned, *stock]
        self.cards = [card for _, card in layout]
        self.shown = [card for _, card in jacks]
        self.exposed |= {layout.index(jack) for jack in jacks}
        self.pile = [STARTER]
        self.deal_packet()

    @property
    def leader(self):
        return (self.dealer + 1) % self.rules.players

    def deal_packet(self):
        players, size = self.rules.players, self.rules.hand_size
        self.hands = [set() for _ in range(players)]
        for turn in range(players):
            seat = (self.leader + turn) % players
            self.hands[seat] = set(range(self.dealt, self.dealt + size))
            self.dealt += size

    @property
    def over(self):
        return not any(self.hands)

    @property
    def to_play(self):
        return (self.leader + len(self.played)) % self.rules.players

    def legal(self):
        return sorted({self.cards[place] for place in self.hands[self.to_play]})

    def play(self, card):
        seat = self.to_play
        # Of two equal cards the known one counts as played first.
        place = min(
            (place for place in self.hands[seat] if self.cards[place] == card),
            key=lambda place: (place not in self.exposed, place),
        )
        self.hands[seat].remove(place)
        self.played.append(place)
        top = self.cards[self.pile[-1]] if self.pile else None
        self.pile.append(place)
        if top is not None and (is_jack(card) or rank(card) == rank(top)):
            if self.starters_down:
                self.taker = seat
            self.pile, self.starters_down = [], False
        if self.over and len(self.cards) - self.dealt >= self.rules.packet_size:
            self.deal_packet()

    def knows_starters(self, seat):
        """Before the deal is scored; seat None is a spectator."""
        seen_by = self.rules.starters_seen_by
        if self.taker is None or seen_by == "nobody":
            return False
        if seen_by == "all":
            return True
        if seen_by == "side" and plays_in_pairs(self.rules):
            return seat is not None and seat % 2 == self.taker % 2
        return seat == self.taker

    def known(self, seat):
        """The places whose cards a seat (None: a spectator) knows before the deal is scored."""
        known = {STARTER, *self.played} | self.exposed
        if seat is not None:
            known |= self.hands[seat]
        if self.knows_starters(seat):
            known |= set(range(STARTER))
        return known

    def hidden(self, seat):
        hidden = set(range(len(self.cards))) - self.known(seat)
        if self.rules.bottom_card_shown and self.bottom is None:
            # No card shown: everyone knows that the stock is all jacks. Keep it so.
            hidden -= set(range(STARTER))
        return sorted(hidden)

    def deck_of(self, cards):
        """The deck that is laid out as `cards` after the same jacks have been turned up."""
        down, turned, stock = list(cards[:STARTER]), cards[STARTER], list(cards[STARTER + 1 :])
        for nth, jack in reversed(list(enumerate(self.shown))):
            if self.rules.starter_jack == "pile":
                assert down.pop(STARTER - 1 - nth) == jack
                down.insert(STARTER - 1 - nth, turned)
            else:
                middle = self.rules.starter_jack == "stock_middle"
                place = (len(stock) - 1) // 2 if middle else len(stock) - 1
                assert stock.pop(place) == jack
                stock.insert(0, turned)
            turned = jack
        return [*down, turned, *stock]

    def twin(self, seat, rng):
        """A deck that is the same to a seat so far; what it does not know is dealt anew."""
        cards, hidden = list(self.cards), self.hidden(seat)
        mixed = hidden[:]
        rng.shuffle(mixed)
        for place, other in zip(hidden, mixed, strict=True):
            cards[place] = self.cards[other]
        return self.deck_of(cards)


def choose(places, rng, eagerness):
    """A legal card; with some probability one that captures, so that more happens."""
    legal = places.legal()
    if places.pile and rng.random() < eagerness:
        top = places.cards[places.pile[-1]]
        captures = [card for card in legal if is_jack(card) or rank(card) == rank(top)]
        legal = captures or legal
    return rng.choice(legal)


# Where everyone knows cards of the stock and of hands: wholly random rules are seldom like that.
KNOWN_PLACES = (
    {"starter_jack": "stock_bottom"},
    {"starter_jack": "stock_middle"},
    {"bottom_card_shown": True},
    {"players": 4, "starter_jack": "stock_bottom", "starters_seen_by": "side"},
    {"players": 3, "starter_jack": "stock_middle", "jack_takes_single_points": 20},
    {"players": 5, "starter_jack": "stock_middle", "starters_seen_by": "all"},
    {"players": 5, "bottom_card_shown": True, "target": 60},
    {"packs": 2, "ranks": 3, "starter_jack": "stock_bottom", "hand_size": 2},
    {"packs": 2, "ranks": 3, "bottom_card_shown": True, "hand_size": 2},
    {"ranks": 3, "starter_jack": "stock_middle"},
)


def jacks_first(deck, places):
    """Put jacks at these places of a deck of texts, as far as there are any."""
    others = [at for at, card in enumerate(deck) if card[0] == "J" and at not in places]
    for place in places:
        if deck[place][0] != "J" and others:
            at = others.pop()
            deck[place], deck[at] = deck[at], deck[place]


def random_table(rng, deals=1, fields=None, **kwargs):
    """A raw environment under random (or the given) rules with a deal begun, and its `Places`.

    With `deals` = 2 and a target, sometimes the first deal has been played already.
    """
    given = fields
    while True:
        fields = given or (random_rules(rng) if rng.random() < 0.7 else rng.choice(KNOWN_PLACES))
        rules = Rules(**fields)
        deck = random_deck(complete(fields), rng)
        if rng.random() < (0.3 if rules.starter_jack == "pile" else 0.8):
            turned_next = 2 if rules.starter_jack == "pile" else 4
            jacks_first(deck, [3, turned_next][: rng.choice([1, 2])])
        options = {"deck": numbers(deck), "dealer": rng.randrange(rules.players)}
        if rules.target is not None and rng.random() < 0.7:
            options["scores"] = random_scores(complete(fields), rng)
        env = pisti_v0.raw_env(rules=rules, **kwargs)
        try:
            env.reset(seed=rng.randrange(2**31), options=options)
        except ValueError as error:
            if "that is not a jack" in str(error):  # nothing but jacks to turn up
                continue
            raise
        if deals == 2 and rules.target is not None and rng.random() < 0.7:
            places = Places(rules, env.deck, env.dealer)
            while not places.over:
                card = choose(places, rng, 0.5)
                env.step(card)
                places.play(card)
            if match_winners(complete(fields), env.view(None).match_scores):
                continue
        return env, Places(rules, env.deck, env.dealer)


def random_moments(rng, tables, moments, **kwargs):
    """Yield (env, places) at some random moments of deals at random tables."""
    for _ in range(tables):
        env, places = random_table(rng, **kwargs)
        plays = places.rules.num_plays
        # Half of them in the last packet, where cards that everyone knows are in somebody's hand.
        earliest = [rng.choice([0, plays - places.rules.packet_size]) for _ in range(moments)]
        stops = {rng.randrange(first, plays) for first in earliest}
        eagerness = rng.choice([0, 0.5, 1])
        for number in range(max(stops) + 1):
            if number in stops:
                yield env, places
            card = choose(places, rng, eagerness)
            env.step(card)
            places.play(card)


def unit(scale, rules):
    """What 1.0 stands for, from the words of `describe`."""
    units = {
        "1": 1,
        "packs": rules.num_packs,
        "packs * copies": rules.num_packs * rules.copies,
        "52": 52,
        "15": 15,
        "players": rules.players,
        "hand_size": rules.hand_size,
        "deck": rules.deck_size,
        "packets": rules.num_packets,
        "plays // 2": max(1, rules.num_plays // 2),
        "max_deal_points": max(1, rules.max_deal_points),
        "target + max_deal_points": max(1, (rules.target or 0) + rules.max_deal_points),
    }
    return units[scale]


@functools.cache
def layout_of(encoding, rules):
    """The layout of an encoding, and what 1.0 stands for in each of its numbers."""
    layout = pisti_v0.describe(encoding, rules)
    sizes = [row.slice.stop - row.slice.start for row in layout]
    return layout, np.repeat([float(unit(row.scale, rules)) for row in layout], sizes)


def decode(observation, encoding, rules):
    """The counts of an observation, or a state, by name of the piece: lists of ints."""
    layout, units = layout_of(encoding, rules)
    counted = observation.astype(np.float64) * units
    counts = np.rint(counted).astype(int)
    assert np.abs(counted - counts).max() < 0.02, (encoding, rules)
    return {row.name: counts[row.slice].tolist() for row in layout}


def kind(card):
    return {1: 13, 22: 14}.get(card, rank(card))


def counted(cards, classes):
    """How many there are of each class, faces (52) or kinds (15)."""
    counts = [0] * classes
    for card in cards:
        counts[card if classes == 52 else kind(card)] += 1
    return counts


def seeded(*names):
    return random.Random(" ".join(map(str, names)))
