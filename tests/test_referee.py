"""The environment against the referee, play by play, under random rules.

The turn, the legal cards and the rewards are compared after every play, the scores after every
deal, the pile and public points after a share of the plays, and all that the seats know after every
play of a share of the deals.
"""

import dataclasses
import random

import numba
import pytest
from referee import (
    DEFAULTS,
    Referee,
    complete,
    full_deck,
    left_over,
    number,
    numbers,
    random_deck,
    random_rules,
    random_scores,
    text,
)

from pisti_env import Rules, pisti_v0

INTERPRETED = bool(numba.config.DISABLE_JIT)
CASES = 16  # so that the work can be spread
DEALS = 400 if INTERPRETED else 20_000
MATCHES = 16 if INTERPRETED else 512
DEALS_PER_TABLE = 5 if INTERPRETED else 20  # deals played under the same rules
MOST_DEALS = 40  # of a match: then it is left unfinished
LOOKS = 0.25  # after how many of the plays the table is compared: a view takes its time


class Comparison:
    """One environment and one referee at the same table."""

    def __init__(self, fields, reward, seed):
        self.fields, self.reward, self.seed = fields, reward, seed
        self.rules = complete(fields)
        self.rng = random.Random(seed)
        self.env = pisti_v0.raw_env(rules=dict(fields), observation="basic", rewards=reward)
        self.agents = self.env.possible_agents
        self.referee = None

    def same(self, what, got, expected):
        if got == expected:
            return
        referee = self.referee
        raise AssertionError(
            f"{what}: environment {got!r}, referee {expected!r}\n"
            f"rules {self.fields}, rewards {self.reward!r}, table seed {self.seed}\n"
            f"dealer {referee.dealer}, deal {len(referee.deals)}, scores {self.scores}\n"
            f"deck {' '.join(referee.deck)}\n"
            f"plays {[f'{seat}:{card}' for seat, card in referee.plays]}"
        )

    def reset(self):
        """The same deck for both; False if neither can turn up a card that is not a jack."""
        rules, rng = self.rules, self.rng
        deck = random_deck(rules, rng)
        dealer = rng.randrange(rules.players)
        options = {"deck": rng.choice([list(deck), list(numbers(deck))]), "dealer": dealer}
        self.scores = None
        if rules.target is not None and rng.random() < 0.5:
            self.scores = options["scores"] = random_scores(rules, rng)
        try:
            self.referee = Referee(rules, deck, dealer, self.scores)
        except ValueError:
            with pytest.raises(ValueError):
                self.env.reset(seed=rng.randrange(2**31), options=options)
            return False
        self.env.reset(seed=rng.randrange(2**31), options=options)
        return True

    def choose(self):
        """Mostly a capture if there is one: more happens than under random play."""
        hand, pile = self.referee.hands[self.referee.to_play], self.referee.pile
        captures = [card for card in hand if pile and card[0] in (pile[-1][0], "J")]
        if captures and self.rng.random() < self.eagerness:
            return self.rng.choice(captures)
        return self.rng.choice(hand)

    def episode(self, everything):
        """Plays and compares one episode; returns the number of finished deals."""
        if not self.reset():
            return 0
        self.eagerness = self.rng.choice([0, 0.5, 0.9, 1])
        self.compare(everything)
        while not self.referee.match_over and len(self.referee.deals) < MOST_DEALS:
            card = self.choose()
            self.env.step(number(card))
            self.referee.play(card)
            rewards = self.referee.rewards(self.reward)  # paid by the step that ends the deal
            if self.referee.deal_over:
                self.compare_end_of_deal()
            self.compare_rewards(rewards)
            self.compare(everything)
        return len(self.referee.deals)

    def compare_end_of_deal(self):
        env, referee = self.env, self.referee
        self.same("deals", [list(deal) for deal in env.unwrapped.deals], referee.deals)
        ends = [referee.match_over] * len(self.agents)
        self.same("terminations", [env.terminations[agent] for agent in self.agents], ends)
        if not referee.match_over:  # the next deal has been dealt in the same step
            referee.next_deal([text(card) for card in env.unwrapped.deck])

    def compare_rewards(self, expected):
        for seat, agent in enumerate(self.agents):
            got = self.env.rewards[agent]
            side = self.referee.side(seat)
            if abs(got - expected[side]) > 1e-4:
                self.same(f"reward of {agent}", got, expected[side])

    def compare(self, everything):
        env, referee = self.env, self.referee
        if not referee.match_over:
            agent = self.agents[referee.to_play]
            self.same("agent_selection", env.agent_selection, agent)
            mask = env.infos[agent]["action_mask"]
            hand = sorted(set(numbers(referee.hands[referee.to_play])))
            self.same("legal cards", mask.nonzero()[0].tolist(), hand)
        if everything or self.rng.random() < LOOKS:
            self.compare_table()
        if everything:
            self.compare_everything()

    def compare_table(self):
        referee, public = self.referee, self.env.unwrapped.view(None)
        points = tuple(referee.public_points(side) for side in range(referee.sides))
        self.same("to_play", public.to_play, referee.to_play)
        self.same("pile", public.pile, numbers(referee.pile))
        self.same("public points", public.public_points, points)

    def compare_everything(self):
        env, referee = self.env, self.referee
        self.same("dealer", env.unwrapped.dealer, referee.dealer)
        self.same("deck", tuple(env.unwrapped.deck), numbers(referee.deck))
        self.same("score", env.unwrapped.score(), referee.score())
        # All seats after a capture, else one of them: each view takes its time.
        seats = range(self.rules.players)
        for seat in (None, *([self.rng.choice(seats)] if referee.pile else seats)):
            view = env.unwrapped.view(seat)
            expected = referee.view(seat)
            fields = {field.name for field in dataclasses.fields(view)}
            self.same("fields of a view", fields - {"rules", "viewer", "last_play"}, set(expected))
            for field in expected:
                self.same(f"view({seat}).{field}", getattr(view, field), expected[field])
            self.same("rules and viewer", (view.rules, view.viewer), (env.unwrapped.rules, seat))
            self.compare_last_play(view.last_play)
        for seat, agent in enumerate(self.agents):
            if seat != referee.to_play:
                self.same("idle mask", int(env.observe(agent)["action_mask"].sum()), 0)

    def compare_last_play(self, last):
        """What it says that the play was, captured and brought; who sees which of the captured
        cards is in the tests of knowledge."""
        if last is None:
            self.same("plays", self.referee.plays, [])
            return
        self.same("last play", (last.seat, text(last.card)), self.referee.plays[-1])
        gained = [0] * self.referee.sides
        for side, points, _ in last.gains:
            gained[side] += points
        self.same("gains of the last play", gained, self.referee.gain)


def compare_episodes(case, episodes, with_target):
    """So many episodes, a few each under random rules. What is compared raises if it differs."""
    rng = random.Random(f"{case} {with_target}")
    compared = 0
    while compared < episodes:
        fields = random_rules(rng)
        fields.pop("target", None)
        if with_target:
            fields["target"] = rng.randint(1, 60)
        reward = rng.choice(["difference", "terminal", "win"])
        table = Comparison(fields, reward, seed=rng.randrange(2**31))
        for number_at_table in range(4 if with_target else DEALS_PER_TABLE):
            deals = table.episode(everything=number_at_table == 0)
            compared += deals > 0  # 0: a deck that both refuse


@pytest.mark.parametrize("case", range(CASES))
def test_random_deals(case):
    compare_episodes(case, DEALS // CASES, with_target=False)


@pytest.mark.parametrize("case", range(CASES))
def test_random_matches(case):
    compare_episodes(case, MATCHES // CASES, with_target=True)


@pytest.mark.parametrize("reward", ["difference", "terminal", "win"])
@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_default_rules(players, reward):
    table = Comparison({"players": players}, reward, seed=players)
    for _ in range(1 if INTERPRETED else 8):
        table.episode(everything=True)
    # Matches that start anywhere below the target, so that later deals are compared too.
    table = Comparison({"players": players, "target": 101}, reward, seed=players)
    deals = 0
    while deals < (2 if INTERPRETED else 6):
        deals += table.episode(everything=True)


def test_both_know_the_same_fields_and_defaults():
    assert Rules().to_dict() == DEFAULTS


def test_random_rules_reach_every_option():
    """The generator is worth something only if nothing stays at its default."""
    rng = random.Random(0)
    seen = {field: set() for field in DEFAULTS}
    for _ in range(2000):
        rules = complete(random_rules(rng))
        Rules(**vars(rules))  # raises if the environment takes it for invalid
        assert len(full_deck(rules)) >= 4 + rules.players * rules.hand_size
        for field in DEFAULTS:
            seen[field].add(getattr(rules, field))
        seen["leftovers"].add((rules.leftovers, left_over(rules) > 0))
    assert all(len(values) > 1 for values in seen.values())
    assert seen["starter_jack"] == {"pile", "stock_bottom", "stock_middle"}
    assert seen["starters_seen_by"] == {"capturer", "side", "all", "nobody"}
    assert {("sweep", True), ("burn", True)} <= seen["leftovers"]
