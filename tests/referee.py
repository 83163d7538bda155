"""A referee: the rules of Pişti a second time, as naively as they can be written.

Cards are texts ("TD"), hands and piles are lists, and whatever can be counted again is counted
again.  It shares no code with the environment, so the two can be held against each other.

    referee = Referee(complete({"players": 3}), shuffled(complete({"players": 3}), rng), dealer=2)
    referee.play("TD")

A deal that is over stays on the table until `next_deal(deck)`.
"""

from types import SimpleNamespace

SUITS = "CDHS"
RANKS = "A23456789TJQK"

DEFAULTS = {
    "players": 2,
    "packs": None,
    "partners": None,
    "target": None,
    "win_by": 1,
    "tie_at_target": "extra_deal",
    "ace_points": 1,
    "jack_points": 1,
    "two_of_clubs_points": 2,
    "ten_of_diamonds_points": 3,
    "pisti_points": 10,
    "jack_pisti_points": 20,
    "jack_takes_single_points": 0,
    "ten_of_diamonds_pisti_bonus": 0,
    "last_card_pisti": False,
    "majority_points": 3,
    "majority": "most",
    "starter_jack": "pile",
    "starters_seen_by": "capturer",
    "bottom_card_shown": False,
    "leftovers": "sweep",
    "ranks": 13,
    "copies": 4,
    "hand_size": 4,
}


def complete(fields):
    """All option fields as attributes, those not given at their defaults."""
    assert set(fields) <= set(DEFAULTS), fields
    return SimpleNamespace(**{**DEFAULTS, **fields})


def number(card):
    """The card as the environment's int."""
    return SUITS.index(card[1]) * 13 + RANKS.index(card[0])


def text(card):
    """The environment's int as the card."""
    return RANKS[card % 13] + SUITS[card // 13]


def numbers(cards):
    return tuple(number(card) for card in cards)


def number_of_packs(rules):
    if rules.packs is None:
        return 2 if rules.players >= 5 else 1
    return rules.packs


def plays_in_pairs(rules):
    if rules.partners is None:
        return rules.players == 4
    return rules.partners


def full_deck(rules):
    """Every card of the deck, in no special order."""
    kept = ["J"] + [rank for rank in RANKS if rank != "J"][: rules.ranks - 1]
    pack = [rank + suit for suit in SUITS[: rules.copies] for rank in kept]
    return pack * number_of_packs(rules)


def left_over(rules):
    """How many cards of the stock fill no packet."""
    return (len(full_deck(rules)) - 4) % (rules.players * rules.hand_size)


def shuffled(rules, rng):
    deck = full_deck(rules)
    rng.shuffle(deck)
    return deck


def match_winners(rules, totals):
    """The sides that win a match at these totals; none if another deal is played."""
    first, second = sorted(totals, reverse=True)[:2]
    if first < rules.target:
        return []
    if first == second:
        if rules.tie_at_target == "extra_deal":
            return []
        return [side for side, total in enumerate(totals) if total == first]
    if first - second < rules.win_by:
        return []
    return [totals.index(first)]


def random_rules(rng):
    """Valid fields for `Rules`, of every sort, by a `random.Random`."""
    while True:
        fields = {"players": rng.randint(2, 6)}
        if rng.random() < 0.4:
            fields["packs"] = rng.choice([1, 2])
        if rng.random() < 0.3:
            fields["partners"] = fields["players"] == 4 and rng.random() < 0.5
        if rng.random() < 0.7:
            fields["ranks"] = rng.randint(2, 13)
            fields["copies"] = rng.randint(1, 4)
            fields["hand_size"] = rng.randint(1, 4)
        rules = complete(fields)
        size = len(full_deck(rules))
        if size < 4 + rules.players * rules.hand_size:
            continue
        if len({card for card in full_deck(rules) if card[0] != "J"}) == 0:
            continue
        break
    choices = {
        "ace_points": [0, 1, 2],
        "jack_points": [1, 2, 3],  # at least 1, so that a match can end
        "two_of_clubs_points": [0, 2, 3],
        "ten_of_diamonds_points": [0, 3, 4],
        "pisti_points": [0, 5, 10],
        "jack_pisti_points": [10, 20, 30],
        "jack_takes_single_points": [0, 7, 20],
        "ten_of_diamonds_pisti_bonus": [0, 3],
        "last_card_pisti": [False, True],
        "majority_points": [0, 3, 4],
        "majority": ["most", "more_than_half", rng.randint(1, size), max(1, size // 3)],
        "starters_seen_by": ["capturer", "side", "all", "nobody"],
        "leftovers": ["sweep", "burn"],
        "tie_at_target": ["extra_deal", "shared"],
        "win_by": [1, 2, 5],
    }
    for field, values in choices.items():
        if rng.random() < 0.5:
            fields[field] = rng.choice(values)
    if not left_over(complete(fields)):  # where it is known who gets the last card
        special = rng.choice(["nothing", "stock_bottom", "stock_middle", "bottom_card"])
        if special == "bottom_card":
            fields["bottom_card_shown"] = True
        elif special != "nothing":
            fields["starter_jack"] = special
    if rng.random() < 0.5:
        fields["target"] = rng.randint(1, 60)
    return fields


def random_scores(rules, rng):
    """Scores of a match under way, often about to end, sometimes tied beyond the target."""
    sides = 2 if plays_in_pairs(rules) else rules.players
    while True:
        scores = [rng.randint(0, rules.target + 3) for _ in range(sides)]
        if rng.random() < 0.3:
            scores[0] = scores[-1]
        if not match_winners(rules, scores):
            return scores


def random_deck(rules, rng):
    """Shuffled; a third of the decks with jacks where they matter, or with ranks in clusters."""
    deck = shuffled(rules, rng)
    twist = rng.random()
    if twist < 0.02:  # nothing but jacks on top
        deck.sort(key=lambda card: card[0] != "J")
    elif twist < 0.2:  # jacks among the starters and next to them
        jacks = [card for card in deck if card[0] == "J"][: rng.randint(1, 4)]
        for jack in jacks:
            deck.remove(jack)
            deck.insert(rng.randint(0, 6), jack)
    elif twist < 0.35:  # equal ranks close together: piştis
        deck.sort(key=lambda card: (RANKS.index(card[0]) + rng.random() * 3) % 13)
    return deck


def card_points(rules, card):
    if card == "2C":
        return rules.two_of_clubs_points
    if card == "TD":
        return rules.ten_of_diamonds_points
    if card[0] == "A":
        return rules.ace_points
    if card[0] == "J":
        return rules.jack_points
    return 0


class Referee:
    """One match (or one deal, without a target).

    Raises ValueError if the deck has no card to turn up that is not a jack.
    """

    def __init__(self, rules, deck, dealer, scores=None):
        self.rules = rules
        self.worth = {card: card_points(rules, card) for card in full_deck(rules)}
        self.pairs = plays_in_pairs(rules)
        self.sides = 2 if self.pairs else rules.players
        self.match_points = list(scores) if scores else [0] * self.sides
        self.deals = []  # the score of every finished deal
        self.match_over = False
        self.winners = []  # sides
        self.gained = [0] * self.sides  # what the sides have won since the episode began
        self.deal(deck, dealer)

    def side(self, seat):
        return seat % 2 if self.pairs else seat

    # ---- the deal

    def next_deal(self, deck):
        """The next seat deals."""
        assert self.deal_over and not self.match_over
        self.deal(deck, (self.dealer + 1) % self.rules.players)

    def deal(self, deck, dealer):
        assert sorted(deck) == sorted(full_deck(self.rules))
        self.deck = list(deck)
        self.dealer = dealer
        self.to_play = (dealer + 1) % self.rules.players
        self.plays = []  # (seat, card)
        self.packet = 0
        self.hands = [[] for _ in range(self.rules.players)]
        self.shown_jacks = []
        self.bottom_card = None
        self.turn_up()
        self.show_bottom_card()
        self.seen_starters = []  # the seats that have seen the face-down starters
        self.last_capturer = None
        self.captured = [[] for _ in range(self.sides)]
        self.captured_face_down = [[] for _ in range(self.sides)]
        self.pistis = [0] * self.sides
        self.jack_pistis = [0] * self.sides
        self.pisti_points = [0] * self.sides
        self.majority_points = [0] * self.sides
        self.deal_over = False
        self.paid = [0] * self.sides  # the points of this deal that have been paid
        self.gain = [0] * self.sides  # those that the last play paid
        self.deal_packet()

    def turn_up(self):
        """Four starters, the last one turned up; and another one if it is a jack."""
        starters, self.stock = self.deck[:4], self.deck[4:]
        if self.rules.starter_jack == "pile":
            place = 3
            while starters[place][0] == "J":
                self.shown_jacks.append(starters[place])
                place -= 1
                if place < 0:
                    raise ValueError("all four starters are jacks")
            self.pile = [starters.pop(place)]
            self.face_down = starters
            self.starters = list(starters)
            self.starter = self.pile[0]
            return
        # Cards carry their number in the deck here: two packs have every jack twice, and a jack
        # that comes up again is not the same as its twin coming up.
        stock = list(enumerate(self.stock))
        turned, seen = ("starter", starters[3]), []
        while turned[1][0] == "J":
            if turned in seen or not stock:
                raise ValueError("no card to turn up that is not a jack")
            seen.append(turned)
            self.shown_jacks.append(turned[1])
            replacement = stock.pop(0)
            if self.rules.starter_jack == "stock_bottom":
                stock.append(turned)
            else:
                stock.insert(len(stock) // 2, turned)
            turned = replacement
        self.stock = [card for _, card in stock]
        self.pile = [turned[1]]
        self.face_down = starters[:3]
        self.starters = starters[:3]
        self.starter = self.pile[0]

    def show_bottom_card(self):
        """The lowest card of the stock that is not a jack moves to its bottom, face up."""
        if not self.rules.bottom_card_shown:
            return
        for place in reversed(range(len(self.stock))):
            if self.stock[place][0] != "J":
                self.bottom_card = self.stock.pop(place)
                self.stock.append(self.bottom_card)
                return

    def packet_is_left(self):
        return len(self.stock) >= self.rules.players * self.rules.hand_size

    def deal_packet(self):
        self.packet += 1
        for i in range(self.rules.players):
            seat = (self.dealer + 1 + i) % self.rules.players
            for _ in range(self.rules.hand_size):
                self.hands[seat].append(self.stock.pop(0))

    # ---- a turn

    def legal(self):
        """Any card of the hand."""
        return set() if self.deal_over else set(self.hands[self.to_play])

    def play(self, card):
        assert not self.deal_over
        seat = self.to_play
        self.hands[seat].remove(card)
        self.plays.append((seat, card))
        if self.pile and (card[0] == "J" or card[0] == self.pile[-1][0]):
            self.capture(seat, card)
        else:
            self.pile.append(card)
        self.to_play = (seat + 1) % self.rules.players
        if not any(self.hands):
            if self.packet_is_left():
                self.deal_packet()
            else:
                self.end_of_deal()
        before, self.paid = self.paid, [self.public_points(side) for side in range(self.sides)]
        self.gain = [b - a for a, b in zip(before, self.paid, strict=True)]
        self.gained = [a + b for a, b in zip(self.gained, self.gain, strict=True)]

    def capture(self, seat, card):
        side = self.side(seat)
        if len(self.face_down) + len(self.pile) == 1:
            self.score_pisti(side, card, self.pile[0])
        if self.face_down:
            self.show_starters(seat)
        self.captured[side] += self.pile + [card]
        self.captured_face_down[side] += self.face_down
        self.pile, self.face_down = [], []
        self.last_capturer = seat

    def is_last_card(self):
        """Called while a card is being played: none is left to play after it."""
        return not any(self.hands) and not self.packet_is_left()

    def score_pisti(self, side, card, lone):
        if self.is_last_card() and not self.rules.last_card_pisti:
            return
        if card[0] == lone[0] == "J":
            self.jack_pistis[side] += 1
            self.pisti_points[side] += self.rules.jack_pisti_points
        elif card[0] == lone[0]:
            self.pistis[side] += 1
            self.pisti_points[side] += self.rules.pisti_points
            if "TD" in (card, lone):
                self.pisti_points[side] += self.rules.ten_of_diamonds_pisti_bonus
        else:  # a jack takes a lone card of another rank
            self.pisti_points[side] += self.rules.jack_takes_single_points

    def show_starters(self, seat):
        everybody = range(self.rules.players)
        self.seen_starters = {
            "capturer": [seat],
            "side": [other for other in everybody if self.side(other) == self.side(seat)],
            "all": list(everybody),
            "nobody": [],
        }[self.rules.starters_seen_by]

    # ---- the end of the deal and of the match

    def end_of_deal(self):
        table = self.face_down + self.pile
        if self.rules.leftovers == "sweep":
            table += self.stock
            self.stock = []
        taker = self.dealer if self.last_capturer is None else self.last_capturer
        self.captured[self.side(taker)] += table
        self.pile, self.face_down = [], []
        self.score_majority()
        self.deal_over = True
        self.to_play = None
        self.match_points = [
            total + self.points(side) for side, total in enumerate(self.match_points)
        ]
        self.deals.append(self.score())
        self.decide_match()

    def cards(self, side):
        return len(self.captured[side] + self.captured_face_down[side])

    def score_majority(self):
        counts = [self.cards(side) for side in range(self.sides)]
        most = max(counts)
        if counts.count(most) > 1:
            return
        if self.rules.majority == "more_than_half":
            enough = 2 * most > len(self.deck)
        elif self.rules.majority == "most":
            enough = True
        else:
            enough = most >= self.rules.majority
        if enough:
            self.majority_points[counts.index(most)] = self.rules.majority_points

    def decide_match(self):
        if self.rules.target is None:  # the deal alone decides
            points = [self.points(side) for side in range(self.sides)]
            self.winners = [side for side in range(self.sides) if points[side] == max(points)]
        else:
            self.winners = match_winners(self.rules, self.match_points)
        self.match_over = bool(self.winners)

    # ---- points and rewards

    def points(self, side):
        """This deal's points so far, all captured cards counted."""
        cards = self.captured_face_down[side] + self.captured[side]
        card_points = sum(self.worth[card] for card in cards)
        return card_points + self.pisti_points[side] + self.majority_points[side]

    def public_points(self, side):
        """The same without the face-down starters, until the deal has been scored."""
        if self.deal_over:
            return self.points(side)
        hidden = sum(self.worth[card] for card in self.captured_face_down[side])
        return self.points(side) - hidden

    def score(self):
        return [
            {
                "points": self.points(side),
                "cards": self.cards(side),
                "pistis": self.pistis[side],
                "jack_pistis": self.jack_pistis[side],
                "match_points": self.match_points[side],
            }
            for side in range(self.sides)
        ]

    def rewards(self, kind):
        """The reward of the last play for each side."""
        gains = [0] * self.sides
        if kind == "difference":
            gains = self.gain
        elif kind == "terminal" and self.match_over:
            gains = self.gained
        elif kind == "win" and self.match_over:
            share = 1 / len(self.winners)
            gains = [share if side in self.winners else 0 for side in range(self.sides)]
        return [gain - (sum(gains) - gain) / (self.sides - 1) for gain in gains]

    # ---- what is known

    def view(self, seat):
        """What the seat knows (None: what everybody knows), cards as ints."""
        sides = range(self.sides)
        everybody = all(other in self.seen_starters for other in range(self.rules.players))
        knows_starters = self.deal_over or seat in self.seen_starters or everybody
        return {
            "hand": None if seat is None else tuple(sorted(numbers(self.hands[seat]))),
            "pile": numbers(self.pile),
            "pile_size": len(self.face_down) + len(self.pile),
            "stock_size": len(self.stock),
            "hand_sizes": tuple(len(hand) for hand in self.hands),
            "captured": tuple(self.cards(side) for side in sides),
            "public_points": tuple(self.public_points(side) for side in sides),
            "pistis": tuple(self.pistis),
            "jack_pistis": tuple(self.jack_pistis),
            "known_starters": numbers(self.starters) if knows_starters else (),
            "starter": number(self.starter),
            "shown_jacks": numbers(self.shown_jacks),
            "bottom_card": None if self.bottom_card is None else number(self.bottom_card),
            "last_capturer": self.last_capturer,
            "dealer": self.dealer,
            "to_play": self.to_play,
            "packet": self.packet,
            "plays": tuple((player, number(card)) for player, card in self.plays),
            "match_scores": tuple(self.match_points),
            "last_deal": tuple(self.deals[-1]) if self.deals else None,
        }
