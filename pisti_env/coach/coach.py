"""What each play of a record cost: every decision of a seat, held against the best one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pisti_env.agents import Agent
from pisti_env.cards import CARD_NAMES, card_names
from pisti_env.checks import check_viewer, is_int
from pisti_env.coach.appraise import Appraisal, Estimate, appraise
from pisti_env.coach.explain import check_samples, read_agent
from pisti_env.progress import progress_bar
from pisti_env.quote import quote, shorten
from pisti_env.record import EVERYONE, Record
from pisti_env.shuffle import check_seed, derive_seed

SAMPLES = 400  # worlds for each play: about two seconds a deal


@dataclass(frozen=True)
class Judgement:
    """A play of the seat that is coached, and what it cost."""

    deal: int
    """The number of the deal in the record, from 0."""
    play: int
    """How many plays had been made: `record.view(deal, play, seat)` is what the seat knew."""
    card: int
    """What was played."""
    best: tuple[int, ...]
    """The cards of the play that is worth most; the first is the one that was played out."""
    chosen: tuple[int, ...]
    """The cards of the play that the agent finds likeliest."""
    worth: Estimate
    """What the play is worth, see `Choice.worth`."""
    loss: Estimate
    """How much less that is than the best play's."""
    loss_to_agent: Estimate
    """How much less than that of the play that the agent would have made; below 0 if it is more."""

    @property
    def is_clearly_worse(self) -> bool:
        """Whether the interval of the loss leaves out 0."""
        return self.loss.mean > self.loss.within

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "deal": self.deal,
            "play": self.play,
            "card": CARD_NAMES[self.card],
            "best": [CARD_NAMES[card] for card in self.best],
            "chosen": [CARD_NAMES[card] for card in self.chosen],
            "worth": self.worth.to_dict(),
            "loss": self.loss.to_dict(),
            "loss_to_agent": self.loss_to_agent.to_dict(),
            "is_clearly_worse": self.is_clearly_worse,
        }


@dataclass(frozen=True)
class Coaching:
    """What each play of a seat cost."""

    seat: int
    """Who is coached."""
    who: str
    """What that seat is called in the record."""
    agent: str
    """Whose policy it is held against."""
    plays: tuple[Judgement, ...]
    """Every play of the seat, the one that cost most first."""
    samples: int
    """In how many worlds each was played out, or fewer where there are no more."""

    @property
    def loss(self) -> Estimate:
        """What all plays cost against the best ones. It is too high by a little: the best of
        several estimates is one of those that luck made better."""
        return _sum([judgement.loss for judgement in self.plays])

    @property
    def loss_to_agent(self) -> Estimate:
        """What all plays cost against those of the agent."""
        return _sum([judgement.loss_to_agent for judgement in self.plays])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "seat": self.seat,
            "who": self.who,
            "agent": self.agent,
            "samples": self.samples,
            "loss": self.loss.to_dict(),
            "loss_to_agent": self.loss_to_agent.to_dict(),
            "plays": [judgement.to_dict() for judgement in self.plays],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        agent = shorten(self.agent)
        yield (
            f"{shorten(self.who)}, {len(self.plays)} play{'' if len(self.plays) == 1 else 's'}, "
            f"the one that cost most first; in points a deal, with {agent} playing on."
        )
        yield ""
        yield f"  deal play  card  {'loses':<15} {'best':<12} agent's"
        for judgement in self.plays:
            loss = _told(judgement.loss) if judgement.loss.mean else "-"
            mark = "clearly worse" if judgement.is_clearly_worse else ""
            yield (
                f"  {judgement.deal:>4} {judgement.play:>4}  {CARD_NAMES[judgement.card]:<5} "
                f"{loss:<15} {card_names(judgement.best):<12} {card_names(judgement.chosen):<12} "
                f"{mark}"
            ).rstrip()
        yield ""
        yield (
            f"In all it loses {_told(self.loss)} against the best plays, and "
            f"{_told(self.loss_to_agent)} against those of {agent}."
        )


def coach(
    record: Record,
    seat: int,
    agent: str | Path | Agent,
    samples: int = SAMPLES,
    seed: int = 0,
    *,
    deal: int | None = None,
    progress: bool = False,
) -> Coaching:
    """Return what each play of a seat cost against the best one, and against the agent's.

    Of a match, all deals, or only number `deal`. Each play is judged by what the seat knew when it
    made it, in `samples` worlds. What is drawn depends on `seed` alone. `progress` shows a bar on
    stderr if it takes over two seconds.

    Raises `ValueError` for a record whose viewer is not that seat, for a record that is against the
    rules, and as `explain` does.
    """
    seat = _check_seat(record, seat)
    player, name = read_agent(agent, record.rules)
    samples, seed = check_samples(samples) or SAMPLES, check_seed(seed)
    if deal is not None and (not is_int(deal) or not 0 <= deal < len(record.deals)):
        raise ValueError(
            f"deal is {quote(deal)}; expected an int from 0 to {len(record.deals) - 1}, or None"
        )
    moments = [
        (number, play)
        for number in range(len(record.deals))
        if deal in (None, number)
        for play in range(len(record.deals[number].plays))
        if (record.deals[number].dealer + 1 + play) % record.rules.players == seat
    ]
    judgements = []
    with progress_bar(len(moments), "plays", progress) as bar:
        for number, play in moments:
            own_seed = derive_seed(f"play {play} of deal {number}", seed)
            appraisal = appraise(record.view(number, play, seat), player, samples, own_seed)
            card = record.deals[number].plays[play]
            judgements.append(judge(number, play, card, appraisal))
            bar.update()
    return Coaching(
        seat=seat,
        who=record.agents[seat] if record.agents else f"seat {seat}",
        agent=name,
        plays=tuple(sorted(judgements, key=lambda judgement: -judgement.loss.mean)),
        samples=samples,
    )


def judge(deal: int, play: int, card: int, appraisal: Appraisal) -> Judgement:
    """Return what a card cost that was played where these plays were appraised."""
    made = next(k for k, cards in enumerate(appraisal.plays) if card in cards)
    best, chosen = appraisal.best, appraisal.chosen
    return Judgement(
        deal=deal,
        play=play,
        card=card,
        best=appraisal.plays[best],
        chosen=appraisal.plays[chosen],
        worth=appraisal.estimate(made),
        loss=appraisal.loss(made, best),
        loss_to_agent=appraisal.loss(made, chosen),
    )


def _check_seat(record: Any, seat: Any) -> int:
    if not isinstance(record, Record):
        raise ValueError(
            f"record is {quote(record)}; expected a Record, of which read_records gives a list"
        )
    record.check()
    if seat is None or check_viewer(record.rules, seat) is None:
        raise ValueError(f"seat is None; expected an int from 0 to {record.rules.players - 1}")
    if record.viewer not in (None, seat):
        who = EVERYONE if record.viewer == EVERYONE else f"seat {record.viewer}"
        raise ValueError(
            f"seat is {seat}, and the record has only what {who} saw; expected a record of what "
            f"seat {seat} saw"
        )
    return int(seat)


def _told(estimate: Estimate) -> str:
    return f"{estimate.mean:.2f} ± {estimate.within:.2f}"


def _sum(estimates: list[Estimate]) -> Estimate:
    """Return the sum of estimates, whose errors are independent."""
    within = sum(estimate.within**2 for estimate in estimates) ** 0.5
    return Estimate(sum(estimate.mean for estimate in estimates), within)
