"""A player that thinks before it plays: `Search`.

In worlds that fit what its seat has seen, each as likely as its policy, with the hand that another
seat would have held there, would have played what that seat played in this packet, every legal play
is tried, and the packet is played on by the policy in every seat, from what each seat would know.
What the policy expects once the next packet is dealt, or the score of a deal that is over, tells
what the play was worth.

It takes for granted that the others play like its policy. Against others this errs, so a play is
left for another only where that one is clearly better.
"""

from typing import Any, NamedTuple

import numpy as np

from pisti_env import loops
from pisti_env.agents.hosting import choose_cards, observe
from pisti_env.agents.player import Player
from pisti_env.agents.policy import PolicyAgent
from pisti_env.cards import KIND_OF_CARD, NUM_KINDS
from pisti_env.checks import is_int
from pisti_env.compile import quick
from pisti_env.compiled_rules import compiled_rules
from pisti_env.observation import encoder
from pisti_env.quote import quote
from pisti_env.rules import Rules
from pisti_env.search.moment import Moments, is_over, moments_of, random_worlds, when_dealt
from pisti_env.shuffle import derive_seed, random_numbers

MOST_SAMPLES = 16_384
WORLDS_AT_ONCE = 1024  # what their playouts take stays small


class Settings(NamedTuple):
    """How a search thinks."""

    samples: int = 64
    """Worlds for each decision."""
    least_gain: float = 0.3
    """Points that another play must gain over the policy's own."""
    least_errors: float = 2.5
    """Standard errors that this gain must be away from none."""
    surprise: float = 0.2
    """How likely it is taken to be that another seat plays any card at all, and not by the policy:
    0 trusts the policy wholly, with 1 all worlds are equally likely."""


RESTRAINED = Settings()
"""Against anybody: what the policy would play is left where that is clearly better."""
TRUSTING = Settings(least_gain=0.1, least_errors=1.5, surprise=0.02)
"""Against one who is known to play as the policy does."""


class Thoughts(NamedTuple):
    """What a search makes of one decision."""

    cards: np.ndarray
    """(plays,) int64: one card of each kind in the hand, the lowest."""
    worth: np.ndarray
    """(plays, worlds) float64: points that the own side gains from here on, less the mean of the
    others, if it is played."""
    weights: np.ndarray
    """(worlds,) float64: how likely each world is."""
    own: int
    """The number of the play that the policy would make."""

    def means(self) -> np.ndarray:
        """Return what each play is worth on average, (plays,) float64."""
        return self.worth @ self.weights

    def choose(self, settings: Settings) -> int:
        """Return the number of the best play, or of the policy's own where that one is not clearly
        better."""
        best = int(self.means().argmax())
        gains = self.worth[best] - self.worth[self.own]
        gain = gains @ self.weights
        error = float(np.sqrt(self.weights**2 @ (gains - gain) ** 2))
        is_clear = gain > settings.least_gain and gain > settings.least_errors * error
        return best if is_clear else self.own


class Search(Player):
    """Plays what its policy would, unless a search finds a play that is clearly better.

    `policy` is an agent for these rules, and plays in every seat of what is tried. One that tells
    no value, such as a baseline, plays on to the end of the deal. What it draws, the worlds, comes
    from `seeds`.
    """

    observation = "history"
    draws = True

    def __init__(self, policy: Any, rules: Rules, seed: int = 0, settings: Settings = RESTRAINED):
        super().__init__(rules, seed)
        self.policy = policy.with_32_bits() if isinstance(policy, PolicyAgent) else policy
        self.settings = settings
        self._encoder = encoder(policy.observation, rules)
        kinds = np.zeros((self._encoder.num_actions, NUM_KINDS))
        kinds[self._encoder.action_of_card, KIND_OF_CARD] = 1
        self._kinds = kinds  # which kind each action of the policy is
        self._estimates = self._tells_value()

    def in_worlds(self, samples: int) -> "Search":
        """Return the same player, which thinks in so many worlds. Raises `ValueError` for a number
        that is none."""
        if not is_int(samples) or not 1 <= samples <= MOST_SAMPLES:
            raise ValueError(
                f"samples is {quote(samples)}; expected an int from 1 to {MOST_SAMPLES}"
            )
        return Search(self.policy, self.rules, self.seed, self.settings._replace(samples=samples))

    def _tells_value(self) -> bool:
        """Return whether the policy estimates what a position is worth."""
        if not hasattr(self.policy, "value"):
            return False
        value = self.policy.value(np.zeros(self._encoder.size, np.float32))
        return value is not None and bool(np.isfinite(value))

    def _choose(
        self, rows: np.ndarray, masks: np.ndarray, seeds: np.ndarray | None, actions: np.ndarray
    ) -> None:
        seeds = self._draw(len(rows), seeds)
        actions[:] = masks.argmax(axis=1)
        kinds = _kinds_of(masks)
        undecided = np.flatnonzero(kinds.sum(axis=1) > 1)
        at_once = max(1, WORLDS_AT_ONCE // self.settings.samples)
        for first in range(0, len(undecided), at_once):
            block = undecided[first : first + at_once]
            for row, thoughts in zip(
                block, self.think(rows[block], masks[block], seeds[block]), strict=True
            ):
                actions[row] = thoughts.cards[thoughts.choose(self.settings)]

    def think(
        self, observations: np.ndarray, masks: np.ndarray, seeds: np.ndarray
    ) -> list[Thoughts]:
        """Return what the search makes of decisions: of `observations` (n, d) and masks (n, 52),
        with worlds drawn from `seeds` (n,) uint64."""
        moments = moments_of(observations, self.rules)
        if (moments.games["to_play"] != 0).any():
            raise ValueError("observation is not of a seat to play; expected one of a seat's turn")
        number, samples = len(seeds), self.settings.samples
        worlds = self._deal(moments, seeds)
        weights = self._weigh(moments, worlds).reshape(number, samples)
        own = self._own_plays(moments.games, seeds)
        cards = [_lowest_of_each_kind(mask) for mask in masks]
        tables = np.repeat(np.arange(number), [len(plays) for plays in cards])
        tried = (tables[:, np.newaxis] * samples + np.arange(samples)).ravel()
        worth = self._play_out(
            worlds[tried],
            np.repeat(np.concatenate(cards), samples),
            random_numbers(0, seeds)[tried // samples] + (tried % samples).astype(np.uint64),
        ).reshape(len(tables), samples)
        return [
            Thoughts(
                cards[table],
                worth[tables == table],
                weights[table],
                int((KIND_OF_CARD[cards[table]] == KIND_OF_CARD[own[table]]).argmax()),
            )
            for table in range(number)
        ]

    def _deal(self, moments: Moments, seeds: np.ndarray) -> np.ndarray:
        """Return worlds, `samples` for each moment one after the other."""
        return random_worlds(moments.games, self.rules, self.settings.samples, seeds)

    def _own_plays(self, games: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """Return the cards (n,) that the policy would play."""
        cards = np.empty(len(games), np.int64)
        choose_cards(self.policy, self._encoder, games, np.arange(len(games)), seeds, cards)
        return cards

    def _weigh(self, moments: Moments, worlds: np.ndarray) -> np.ndarray:
        """Return how likely each of `worlds` is, (worlds,), 1 in all for each moment: by what the
        others have played in this packet."""
        samples, rules = self.settings.samples, self.rules
        logs = np.zeros(len(worlds))
        games = when_dealt(np.repeat(moments.begun, samples), worlds, rules)
        ends = worlds["num_plays"].astype(np.int64)
        cards = np.zeros(len(worlds), np.int64)
        played = _played(len(worlds), rules)
        while self.settings.surprise < 1:
            numbers = games["num_plays"].astype(np.int64)
            rows = np.flatnonzero(numbers < ends)
            if not len(rows):
                break
            cards[rows] = worlds["plays"][rows, numbers[rows]]
            others = rows[games["to_play"][rows] != 0]
            if len(others):
                logs[others] += np.log(self._likelihood(games, others, cards[others]))
            quick(loops.play_rows)(games, compiled_rules(rules), rows, cards, played)
        of_moments = logs.reshape(-1, samples)
        weights = np.exp(of_moments - of_moments.max(axis=1, keepdims=True))
        return np.asarray((weights / weights.sum(axis=1, keepdims=True)).ravel())

    def _likelihood(self, games: np.ndarray, rows: np.ndarray, cards: np.ndarray) -> np.ndarray:
        """Return how likely the seats to play at the tables `rows` (k,) of `games` play a card of
        the kind of `cards` (k,), (k,) float64."""
        observations, masks = observe(self._encoder, games, rows)
        if hasattr(self.policy, "probabilities"):
            chances = np.asarray(self.policy.probabilities(observations, masks), np.float64)
        else:
            chances = np.eye(masks.shape[1])[self.policy.act(observations, masks)]
        kinds = KIND_OF_CARD[cards]
        by_policy = (chances @ self._kinds)[np.arange(len(rows)), kinds]
        number = ((masks @ self._kinds) > 0).sum(axis=1)
        surprise = self.settings.surprise
        return np.asarray((1 - surprise) * np.maximum(by_policy, 1e-9) + surprise / number)

    def _play_out(self, games: np.ndarray, cards: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """Return what comes of `cards` (n,) at the tables `games` (n,), which are played on, with
        `seeds` (n,) for what the policy draws: the points of the side of seat 0, less the mean of
        the others', (n,)."""
        rules, rows = self.rules, np.arange(len(games))
        played = _played(len(games), rules)
        before = games["public_points"][:, : rules.sides].copy()
        last = games["packet"].copy() if self._estimates else rules.num_packets
        cards, play = cards.copy(), 0
        while len(rows):
            quick(loops.play_rows)(games, compiled_rules(rules), rows, cards, played)
            rows = np.flatnonzero(~is_over(games) & (games["packet"] <= last))
            play += 1
            if len(rows):
                numbers = random_numbers(derive_seed("replies", 0), seeds[rows], play)
                choose_cards(self.policy, self._encoder, games, rows, numbers, cards)
        gains = games["public_points"][:, : rules.sides] - before
        worth = gains[:, 0] - gains[:, 1:].mean(axis=1)
        rows = np.flatnonzero(~is_over(games))
        if len(rows):
            observations, _ = observe(self._encoder, games, rows)
            values = np.asarray(self.policy.value(observations), np.float64)
            is_own = games["to_play"][rows] % rules.sides == 0
            worth[rows] += np.where(is_own, values, -values / (rules.sides - 1))
        return np.asarray(worth)

    def _probabilities(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return (n, a): 1 for what is played with the worlds of its seed."""
        actions = np.empty(len(rows), np.int64)
        self._choose(rows, masks, np.full(len(rows), self.seed, np.uint64), actions)
        return np.eye(self._num_actions)[actions]

    def _value(self, rows: np.ndarray) -> np.ndarray | None:
        """Return what the policy expects, which tells of no search."""
        if not self._estimates:
            return None
        games = moments_of(rows, self.rules).games
        observations = np.empty((len(rows), self._encoder.size), np.float32)
        self._encoder.encode(games, np.arange(len(rows)), np.zeros(len(rows)), observations)
        return np.asarray(self.policy.value(observations), np.float64)

    def _scores(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        scores = np.full(masks.shape, -np.inf)
        seeds = np.full(len(rows), self.seed, np.uint64)
        for row, thoughts in enumerate(self.think(rows, masks, seeds)):
            of_kind = np.full(NUM_KINDS, -np.inf)
            of_kind[KIND_OF_CARD[thoughts.cards]] = thoughts.means()
            scores[row] = np.where(masks[row], of_kind[KIND_OF_CARD], -np.inf)
        return scores


def best_response(agent: Any, rules: Rules, seed: int = 0, samples: int = 64) -> Search:
    """Return a search that trusts the other seats to play as the agent does. For one that searches
    itself its policy stands, which mostly plays the same."""
    known = agent.policy if isinstance(agent, Search) else agent
    return Search(known, rules, seed, TRUSTING._replace(samples=samples))


def _kinds_of(masks: np.ndarray) -> np.ndarray:
    """Return which kinds can be played, (n, 15) bool, by masks (n, 52)."""
    kinds = np.zeros((len(masks), NUM_KINDS), np.bool_)
    rows, cards = np.nonzero(masks)
    kinds[rows, KIND_OF_CARD[cards]] = True
    return kinds


def _lowest_of_each_kind(mask: np.ndarray) -> np.ndarray:
    """Return the lowest legal card of each kind, (plays,) int64."""
    cards = np.flatnonzero(mask)
    _, first = np.unique(KIND_OF_CARD[cards], return_index=True)
    return np.asarray(cards[first], np.int64)


def _played(number: int, rules: Rules) -> loops.Played:
    """Return arrays for `play_rows` to write in."""
    return loops.Played(
        gains=np.zeros((number, rules.sides), np.int64),
        margins=np.zeros((number, rules.sides), np.float32),
        scored=np.zeros(number, np.bool_),
        over=np.zeros(number, np.bool_),
        shares=np.zeros((number, rules.sides)),
    )
