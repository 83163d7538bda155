"""What an agent thinks of a position: each legal play, how likely it is, and what it is worth."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import check_fit
from pisti_env.agents.hosting import check_agent
from pisti_env.cards import CARD_NAMES, card_names
from pisti_env.checks import is_int
from pisti_env.coach.appraise import MOST_WORLDS, Appraisal, Estimate, appraise
from pisti_env.knowledge import Gain, View, fill_in, known_of_view, make_view
from pisti_env.position import Position, read_position, write_position
from pisti_env.quote import quote, shorten
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed

# What a play gains at once, in public; the rest is known when the deal is scored.
_AT_ONCE = ("cards", "pisti", "ten_of_diamonds", "jack_pisti", "jack_takes_single")
_WIDTH = 92  # columns of the text, which is as wide as the table


@dataclass(frozen=True)
class Choice:
    """A legal play: a card of the hand, and those that no rule tells from it."""

    cards: tuple[int, ...]
    """The lowest first, which is the one that is played out: 3C and 3D are one play, 2C and 2D are
    not."""
    probability: float
    """How likely the agent finds it."""
    captured_size: int
    """How many cards it takes, itself included; 0 if it takes none."""
    gains: tuple[Gain, ...]
    """The public points that it brings at once, and for what."""
    worth: Estimate
    """What the side gains from here to the end of the deal, less the mean of what the others gain,
    if this is played now and the agent plays on in every seat."""
    loss: Estimate
    """How much less that is than the best play's, in the same worlds."""

    @property
    def points(self) -> int:
        """How many those are."""
        return sum(gain.points for gain in self.gains)

    @property
    def is_clearly_worse(self) -> bool:
        """Whether the interval of the loss leaves out 0."""
        return self.loss.mean > self.loss.within

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "cards": [CARD_NAMES[card] for card in self.cards],
            "probability": self.probability,
            "captured_size": self.captured_size,
            "points": self.points,
            "gains": [{"points": gain.points, "reason": gain.reason} for gain in self.gains],
            "worth": self.worth.to_dict(),
            "loss": self.loss.to_dict(),
            "is_clearly_worse": self.is_clearly_worse,
        }


@dataclass(frozen=True)
class Explanation:
    """What an agent thinks of a position."""

    view: View
    """What the seat to play knows: all that this was worked out from."""
    agent: str
    """What the agent is called."""
    choices: tuple[Choice, ...]
    """Every legal play, the best first."""
    value: float | None
    """What the agent itself expects of the rest of the deal, as `Choice.worth`; None if it does not
    tell."""
    worlds: int
    """In how many worlds each play was played out."""
    is_exact: bool
    """Whether these are all worlds there are: then the worths are no estimates."""
    is_weighed: bool
    """Whether they count as much as what the others have played makes them likely: a search has
    them so, and plays on to the end of the packet only, where its policy's value is taken."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "position": write_position(self.view),
            "agent": self.agent,
            "choices": [choice.to_dict() for choice in self.choices],
            "value": self.value,
            "worlds": self.worlds,
            "is_exact": self.is_exact,
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        view = self.view
        yield from textwrap.wrap(
            f"Seat {view.viewer} is to play in packet {view.packet} of {view.rules.num_packets}, "
            f"holds {card_names(view.hand or ())} and sees "
            f"{card_names(view.pile) or 'an empty table'}.",
            _WIDTH,
        )
        drawn = f"{self.worlds:,} deals that fit what it has seen"
        if self.is_weighed:
            drawn += ", each as likely as what the others have played makes it"
        if self.is_exact:
            drawn = "the only deal" if self.worlds == 1 else f"all {self.worlds:,} deals"
            drawn += " that can be so"
        yield from textwrap.wrap(
            f"{shorten(self.agent)} plays on in every seat, in {drawn}; points a deal.", _WIDTH
        )
        yield ""
        yield f"  {'play':<12} {'agent':>6}  {'takes':<18} {'worth':>14}  {'less than best':>14}"
        for choice in self.choices:
            yield f"  {self._row(choice)}".rstrip()
        if self.value is not None:
            yield ""
            yield f"{shorten(self.agent)} itself expects {self.value:+.2f}."

    def _row(self, choice: Choice) -> str:
        """Return a row of the table."""
        loss, mark = self._told(choice.loss), ""
        if choice is self.choices[0]:
            loss = "best" if len(self.choices) > 1 else "the only play"
        elif choice.is_clearly_worse:
            mark = "  clearly worse"
        return (
            f"{card_names(choice.cards):<12} {choice.probability:>6.1%}  {_taken(choice):<18} "
            f"{self._told(choice.worth, '+'):>14}  {loss:>14}{mark}"
        )

    def _told(self, estimate: Estimate, sign: str = "") -> str:
        within = "" if self.is_exact else f" ± {estimate.within:.2f}"
        return f"{estimate.mean:{sign}.2f}{within}"


def _taken(choice: Choice) -> str:
    """Return what a play takes at once, in words: "2 cards, +11 pişti"."""
    if not choice.captured_size:
        return "-"
    points = f", {choice.points:+}" if choice.points else ""
    is_pisti = any(gain.reason in ("pisti", "jack_pisti") for gain in choice.gains)
    return f"{choice.captured_size} cards{points}{' pişti' if is_pisti else ''}"


def explain(
    position: str | Position | View,
    agent: str | Path | Agent,
    samples: int | None = None,
    seed: int = 0,
    *,
    progress: bool = False,
) -> Explanation:
    """Return what an agent thinks of a position: a line as `raw_env.position(seat)` gives it, what
    `read_position` makes of one, or a view; of the seat that is to play.

    `samples`: in how many worlds each play is played out; without a number, in so many that every
    interval is within half a point, 16,384 at most. Late in a deal, where there are fewer worlds
    than that, in all of them. What is drawn depends on `seed` alone. `progress` shows a bar on
    stderr if it takes over two seconds.

    Raises `ValueError` for a position that is none or in which its viewer is not to play, for
    an agent that cannot be loaded or cannot play its rules, and for a wrong number or seed.
    """
    view = read_view(position)
    player, name = read_agent(agent, view.rules)
    appraisal = appraise(view, player, check_samples(samples), check_seed(seed), progress)
    return Explanation(
        view=view,
        agent=name,
        choices=choices_of(view, appraisal),
        value=appraisal.value,
        worlds=appraisal.worth.shape[1],
        is_exact=appraisal.is_exact,
        is_weighed=appraisal.weights is not None and not appraisal.is_exact,
    )


def choices_of(view: View, appraisal: Appraisal) -> tuple[Choice, ...]:
    """Return the plays of a view as they were appraised, the best first."""
    best = appraisal.best
    choices = []
    for play in (-appraisal.means()).argsort(kind="stable").tolist():
        cards = appraisal.plays[play]
        captured_size, gains = what_it_takes(view, cards[0])
        choices.append(
            Choice(
                cards=cards,
                probability=float(appraisal.probabilities[play]),
                captured_size=captured_size,
                gains=gains,
                worth=appraisal.estimate(play),
                loss=appraisal.loss(play, best),
            )
        )
    return tuple(choices)


def what_it_takes(view: View, card: int) -> tuple[int, tuple[Gain, ...]]:
    """Return how many cards a play of the viewer takes, and what it gains at once in public."""
    tables = fill_in(known_of_view(view))
    tables.cards[0] = card
    tables.play()
    last = make_view(tables.games, view.rules, view.viewer, None).last_play
    assert last is not None
    return last.captured_size, tuple(gain for gain in last.gains if gain.reason in _AT_ONCE)


def read_view(position: Any) -> View:
    """Return the view of a position; raise `ValueError` unless its viewer is to play."""
    view = position
    if isinstance(position, str):
        view = read_position(position).view
    elif isinstance(position, Position):
        view = position.view
    if not isinstance(view, View):
        raise ValueError(
            f"position is {quote(position)}; expected a line of text as raw_env.position(seat) "
            "gives it, or a View"
        )
    if view.to_play is None:
        raise ValueError("position is that of a deal that is over; expected one to play on")
    if view.viewer != view.to_play:
        who = "a spectator" if view.viewer is None else f"seat {view.viewer}"
        raise ValueError(
            f"position is what {who} knows, and seat {view.to_play} is to play; expected what seat "
            f"{view.to_play} knows"
        )
    return view


def read_agent(agent: Any, rules: Rules) -> tuple[Agent, str]:
    """Return an agent that can play these rules, and what it is called."""
    if isinstance(agent, (str, Path)):
        return load(agent, rules), str(agent)
    check_agent("agent", agent)
    name = type(agent).__name__
    check_fit(name, agent.rules, rules, agent.observation)
    return agent, name


def check_samples(samples: Any) -> int | None:
    """Return a number of worlds or None; raise `ValueError` for anything else."""
    if samples is None or (is_int(samples) and 1 <= samples <= MOST_WORLDS):
        return samples if samples is None else int(samples)
    raise ValueError(
        f"samples is {quote(samples)}; expected an int from 1 to {MOST_WORLDS}, or None"
    )
