"""What each play of a view is worth, as numbers: the part that `explain` and `coach` share."""

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np

from pisti_env.agents import Agent
from pisti_env.agents.hosting import observe
from pisti_env.agents.policy import PolicyAgent
from pisti_env.cards import KIND_OF_CARD
from pisti_env.coach.playouts import play_out
from pisti_env.coach.worlds import all_worlds, random_worlds
from pisti_env.knowledge import View, fill_in, known_of_view
from pisti_env.observation import encoder
from pisti_env.progress import progress_bar
from pisti_env.search import Search, Thoughts
from pisti_env.shuffle import derive_seed

CLOSE_ENOUGH = 0.5  # points: playouts go on until all intervals are below, if no number is given
ROUND = 512  # worlds that are played out before the next look at how close it is
MOST_WORLDS = 16_384
MOST_LISTED = 2_048  # of all worlds there are
NORMAL_95 = 1.959964  # standard deviations on either side of a mean that make a 95 % interval

_ONE = np.zeros(1, np.int64)  # the rows of the only table


class Estimate(NamedTuple):
    """A mean in points a deal, and the half width of its 95 % interval."""

    mean: float
    within: float
    """0 where nothing was left to chance; infinity if a single playout tells nothing of it."""

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.within:.2f}"

    def to_dict(self) -> dict[str, float | None]:
        """Return it as JSON has it, where there is no infinity: the half width is None then."""
        return {"mean": self.mean, "within": self.within if isfinite(self.within) else None}


@dataclass(frozen=True)
class Appraisal:
    """What an agent thinks of the plays of a view, and what they are worth in common worlds."""

    plays: tuple[tuple[int, ...], ...]
    """The cards of the hand, those together that no rule tells apart, the lowest first."""
    probabilities: np.ndarray
    """(plays,) float64: how likely the agent finds each."""
    value: float | None
    """What the agent expects of the rest of the deal, None if it does not tell."""
    worth: np.ndarray
    """(plays, worlds) float64: what each is worth in each world, see `play_out`."""
    weights: np.ndarray | None
    """(worlds,): how likely each world is; None if they were drawn, all equally likely."""
    is_exact: bool = False
    """Whether the worlds are all there are."""

    @property
    def chosen(self) -> int:
        """The number of the play that the agent finds likeliest."""
        return int(self.probabilities.argmax())

    @property
    def best(self) -> int:
        """The number of the play that is worth most."""
        return int(self.means().argmax())

    def means(self) -> np.ndarray:
        """Return what each play is worth on average, (plays,)."""
        return np.asarray(np.average(self.worth, axis=1, weights=self.weights))

    def estimate(self, play: int) -> Estimate:
        """Return what a play is worth."""
        return self._estimate(self.worth[play])

    def loss(self, play: int, than: int) -> Estimate:
        """Return how much less a play is worth than another one, in the same worlds."""
        return self._estimate(self.worth[than] - self.worth[play])

    def _estimate(self, values: np.ndarray) -> Estimate:
        mean = float(np.average(values, weights=self.weights))
        if self.is_exact:
            return Estimate(mean, 0.0)
        if len(values) == 1:
            return Estimate(mean, float("inf"))
        if self.weights is not None:
            error = float(self.weights**2 @ (values - mean) ** 2) ** 0.5
            return Estimate(mean, NORMAL_95 * error)
        return Estimate(mean, NORMAL_95 * float(values.std(ddof=1)) / len(values) ** 0.5)


def appraise(
    view: View, agent: Agent, samples: int | None, seed: int, progress: bool = False
) -> Appraisal:
    """Return what an agent thinks of the plays of a view, whose viewer is to play.

    Where all worlds there are can be listed and the agent plays without chance, they are played out
    all. Else as many as `samples` are drawn, or without a number so many that every interval is
    within CLOSE_ENOUGH, MOST_WORLDS at most. A search tells what it makes of as many worlds itself,
    of ROUND without a number: how likely each is, and what its policy expects after the packet.
    `progress` shows a bar on stderr if it takes over two seconds.
    """
    plays = tell_apart(view)
    cards = [same[0] for same in plays]
    probabilities, value = ask(agent, view, plays)
    if isinstance(agent, Search):
        thoughts = _think(agent, view, samples or ROUND, seed)
        of_kind = {KIND_OF_CARD[card]: row for row, card in enumerate(thoughts.cards)}
        worth = thoughts.worth[[of_kind[KIND_OF_CARD[card]] for card in cards]]
        return Appraisal(plays, probabilities, value, worth, thoughts.weights)
    worlds = None
    if not getattr(agent, "draws", True):
        worlds = all_worlds(view, min(MOST_LISTED, samples or MOST_LISTED))
    if worlds is not None:
        games, weights = worlds
        worth = play_out(agent, view.rules, games, cards, seed)
        return Appraisal(plays, probabilities, value, worth, weights, is_exact=True)
    quick = agent.with_32_bits() if isinstance(agent, PolicyAgent) else agent
    rounds: list[np.ndarray] = []
    done, needed = 0, samples or ROUND
    with progress_bar(samples or MOST_WORLDS, "deals", progress) as bar:
        while done < needed:
            number = min(ROUND, needed - done)
            own_seed = derive_seed(f"round {len(rounds)} of playouts", seed)
            games = random_worlds(view, number, own_seed)
            rounds.append(play_out(quick, view.rules, games, cards, own_seed))
            appraisal = Appraisal(plays, probabilities, value, np.hstack(rounds), None)
            done += number
            if samples is None:
                needed = bar.total = worlds_needed(appraisal)
            bar.update(number)
    return appraisal


def _think(search: Search, view: View, samples: int, seed: int) -> Thoughts:
    """Return what a search makes of a view in so many worlds."""
    games = fill_in(known_of_view(view)).games
    observations, masks = observe(encoder(search.observation, view.rules), games, _ONE)
    [thoughts] = search.in_worlds(samples).think(observations, masks, np.array([seed], np.uint64))
    return thoughts


def worlds_needed(appraisal: Appraisal) -> int:
    """Return how many worlds, whole rounds of them, bring every interval within CLOSE_ENOUGH, as
    far as these tell; MOST_WORLDS at most."""
    done = appraisal.worth.shape[1]
    widest = max(appraisal.estimate(play).within for play in range(len(appraisal.plays)))
    if widest < CLOSE_ENOUGH:
        return done
    rounds = done * (widest / CLOSE_ENOUGH) ** 2 / ROUND
    return min(MOST_WORLDS, max(done + ROUND, ROUND * int(np.ceil(rounds))))


def tell_apart(view: View) -> tuple[tuple[int, ...], ...]:
    """Return the cards of the viewer's hand, those together that no rule tells apart."""
    assert view.hand is not None
    kinds: dict[int, list[int]] = {}
    for card in view.hand:
        kinds.setdefault(int(KIND_OF_CARD[card]), []).append(card)
    return tuple(tuple(cards) for cards in kinds.values())


def ask(
    agent: Agent, view: View, plays: tuple[tuple[int, ...], ...]
) -> tuple[np.ndarray, float | None]:
    """Return how likely an agent finds each of the plays, (plays,), and what it expects of the rest
    of the deal. One that does not tell is asked what it plays."""
    own = encoder(agent.observation, view.rules)
    [observation], [mask] = observe(own, fill_in(known_of_view(view)).games, _ONE)
    if hasattr(agent, "probabilities"):
        by_action = np.asarray(agent.probabilities(observation, mask), np.float64)
    else:
        by_action = np.zeros(own.num_actions)
        by_action[int(np.asarray(agent.act(observation, mask)))] = 1
    actions = [sorted({int(own.action_of_card[card]) for card in cards}) for cards in plays]
    value = agent.value(observation) if hasattr(agent, "value") else None
    probabilities = np.array([by_action[same].sum() for same in actions])
    return probabilities, None if value is None else float(value)
