"""How strong agents are: mirrored deals, with intervals.

`evaluate` plays every deck in all seatings, so that the luck of the deal cancels out, and compares
what each agent made of the same cards:

```python
from pisti_env.arena import evaluate

print(evaluate(["counting", "greedy"], deals=10_000))
```

Decks are numbered, and deck number k of a seed is the same whoever plays: the first deal of table k
of a `DealBatch` with that seed. They are played in blocks of fixed size, so that a policy's sums
are rounded the same way however the blocks are shared out.
"""

import contextlib
import hashlib
import itertools
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pisti_env import loops
from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import check_fit
from pisti_env.agents.hosting import ask_each, check_agent
from pisti_env.checks import is_int
from pisti_env.compiled_rules import compiled_rules
from pisti_env.files import check_can_write
from pisti_env.kept_deals import KeptDeals
from pisti_env.progress import progress_bar
from pisti_env.quote import quote
from pisti_env.results import DEFAULT_TARGET, Evaluation, Result
from pisti_env.rules import Rules, RulesLike, resolve_rules
from pisti_env.shuffle import check_seed, derive_seed, random_numbers
from pisti_env.tables import Tables, warm_up
from pisti_env.vector import DealBatch

BLOCK = 500  # decks
MAX_DECKS = 10**7  # all lie in memory at once, some hundred bytes each

# Powers of two, so that the share of matches won is an exact number and A against B is exactly one
# minus B against A.
MATCHES = 2**14
RESAMPLED_MATCHES = 2**12
RESAMPLES = 100
MAX_DEALS = 200  # of a match; where it is not over by then, who is ahead counts
NORMAL_95 = 1.959964  # standard errors on each side of a 95 % interval


class Played(NamedTuple):
    """Decks that were played in all seatings."""

    points: np.ndarray
    """Of each deck, seating and entrant: (n, sides, sides) int64."""
    plays: np.ndarray
    """The cards that were played, of each deck and seating: (n, sides, num_plays) int8."""

    @classmethod
    def empty(cls, rules: Rules, decks: int) -> "Played":
        """Return arrays to be filled."""
        sides = rules.sides
        return cls(
            np.empty((decks, sides, sides), np.int64),
            np.empty((decks, sides, rules.num_plays), np.int8),
        )

    def put(self, decks: slice, played: "Played") -> None:
        """Fill in some decks."""
        for mine, theirs in zip(self, played, strict=True):
            mine[decks] = theirs


def evaluate(
    agents: Sequence[Agent | str | Path],
    rules: RulesLike = "standard",
    deals: int = 10_000,
    seed: int = 0,
    *,
    names: Sequence[str] | None = None,
    first_only: bool = False,
    sample: bool | None = None,
    match: bool = True,
    strict: bool = False,
    progress: bool = False,
    play: Callable[..., Played] | None = None,
    record: str | Path | None = None,
    record_every: int = 1,
) -> Evaluation:
    """Play `deals` decks, each in all seatings, and compare the agents.

    As many agents as sides play at one table, in every rotation. Of any other number every pair
    plays: the first has one side, the second all others. `first_only` plays pairs alone, and of
    those the ones with the first agent.

    What is played comes first; what one seldom needs is given by name. `agents` are agents, or
    names for `load`, which gets `seed` and `sample`; `names` is what to call them. With a target
    the deals are first deals of a match. `match=False` leaves out the chances to win a match, whose
    deals are drawn again and again from those played, to the rules' target or 151. An agent that
    was made for other rules, but can play these, is noted; `strict` refuses it. `progress` shows a
    bar on stderr if it takes over two seconds. `play` is what plays the decks, in place of
    `play_decks`: `cluster.playing_on_ray` gives one. `record` is a file that is to have the deals
    of every `record_every`-th deck, in all its seatings, as `read_records` reads them.

    Raises `ValueError` for what is wrong: rules, agents, deals, seed, or an agent's illegal card;
    `OSError` if the file cannot be written, before anything is played where that can be told. If it
    fails in the end, the exception's note has the results.
    """
    rules = resolve_rules(rules)
    check_seed(seed)
    if not is_int(deals) or not 1 <= deals <= MAX_DECKS:
        raise ValueError(f"deals is {quote(deals)}; expected an int from 1 to {MAX_DECKS}")
    if isinstance(agents, (str, Path)):
        raise ValueError(f"agents is {quote(agents)}; expected a list of two or more")
    if len(agents) < 2:
        raise ValueError(f"number of agents is {len(agents)}; expected two or more to compare")
    names = tuple(_name(agent) for agent in agents) if names is None else tuple(names)
    if len(names) != len(agents):
        raise ValueError(f"names are {len(names)}; expected one for each of {len(agents)} agents")
    players = [
        load(agent, rules, seed, sample, strict=strict) if isinstance(agent, (str, Path)) else agent
        for agent in agents
    ]
    for player in players:
        check_agent("agent", player)
    fits = [
        check_fit(name, player.rules, rules, player.observation, strict)
        for name, player in zip(names, players, strict=True)
    ]
    lineups = list(find_lineups(len(players), rules.sides, first_only))
    kept = None
    if record is not None:
        check_can_write(record)
        kept = KeptDeals(rules, seed, deals, names, len(lineups), record_every)
    decks, dealers = random_decks(rules, seed, deals)
    results: list[Result] = []
    with progress_bar(
        len(lineups) * deals * rules.sides * rules.num_plays, "plays", progress
    ) as bar:
        for lineup in lineups:
            entrants = [players[agent] for agent in lineup]
            played = (play or play_decks)(entrants, rules, decks, dealers, seed, on_play=bar.update)
            if kept is not None:
                kept.add(lineup, decks, dealers, played.points, played.plays)
            results += compare(played.points, lineup, names, rules, seed, match)
    evaluation = Evaluation(
        agents=names,
        rules=rules,
        deals=deals,
        seed=seed,
        deck_hash=hash_decks(decks, dealers),
        revision=revision(),
        results=tuple(results),
        notes=tuple(note for note in dict.fromkeys(fits) if note is not None),
    )
    if kept is not None and record is not None:
        try:
            kept.write(record, progress)
        except OSError as error:
            error.add_note(str(evaluation))
            raise
    return evaluation


def _name(agent: Agent | str | Path) -> str:
    return str(agent) if isinstance(agent, (str, Path)) else type(agent).__name__


# Decks.


def random_decks(rules: Rules, seed: int, deals: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a seed's first `deals` decks (n, deck_size) int8, and their dealers (n,) int64."""
    warm_up()
    decks = np.empty((deals, rules.deck_size), np.int8)
    dealers = np.empty(deals, np.int64)
    for block in blocks(deals):
        numbers = np.arange(block.start, block.stop)
        tables = Tables(rules, len(numbers), numbers=numbers)
        tables.reseed(seed)
        tables.start(np.arange(len(tables.games)))
        decks[block] = tables.decks
        dealers[block] = tables.games["dealer"]
    return decks, dealers


def blocks(deals: int) -> Iterator[slice]:
    """Yield the blocks that decks are played in."""
    for first in range(0, deals, BLOCK):
        yield slice(first, min(first + BLOCK, deals))


def hash_decks(decks: np.ndarray, dealers: np.ndarray) -> str:
    """Return sixteen hex digits of decks and dealers."""
    digest = hashlib.sha256(decks.tobytes())
    digest.update(dealers.astype(np.int8).tobytes())
    return digest.hexdigest()[:16]


# Seatings. As many entrants as sides sit down; in seating r, entrant e plays side (e + r) % sides.


def find_lineups(
    num_agents: int, sides: int, first_only: bool = False
) -> Iterator[tuple[int, ...]]:
    """Yield which agent each entrant is, for all tables that are to be played."""
    if num_agents == sides and not first_only:
        yield tuple(range(sides))
    else:
        for first, second in itertools.combinations(range(num_agents), 2):
            if first == 0 or not first_only:
                yield (first, *[second] * (sides - 1))


def play_decks(
    entrants: Sequence[Agent],
    rules: Rules,
    decks: np.ndarray,
    dealers: np.ndarray,
    seed: int,
    first: int = 0,
    on_play: Callable[[int], Any] = lambda tables: None,
) -> Played:
    """Play `decks` (n, deck_size), dealt by `dealers` (n,), in all seatings.

    The first deck has the number `first`, a multiple of BLOCK. `on_play` is told of every play, at
    how many tables it was made.
    """
    played = Played.empty(rules, len(decks))
    for block in blocks(len(decks)):
        numbers = first + np.arange(block.start, block.stop)
        part = play_block(entrants, rules, decks[block], dealers[block], numbers, seed, on_play)
        played.put(block, part)
    return played


def play_block(
    entrants: Sequence[Agent],
    rules: Rules,
    decks: np.ndarray,
    dealers: np.ndarray,
    numbers: np.ndarray,
    seed: int,
    on_play: Callable[[int], Any],
) -> Played:
    """Play the decks with these `numbers` (n,), all seatings side by side; see `play_decks`."""
    sides = rules.sides
    batch = DealBatch(len(decks) * sides, rules, observation="basic", seed=0)
    batch.reset(decks=np.repeat(decks, sides, axis=0), dealers=np.repeat(dealers, sides))
    cards = np.empty(batch.num_envs, np.int64)
    plays = np.empty((batch.num_envs, rules.num_plays), np.int8)
    numbers = np.repeat(numbers, sides)
    seatings = np.tile(np.arange(sides), len(decks))
    for play in range(rules.num_plays):
        to_play = (batch.seats % sides - seatings) % sides  # the entrant at each table
        ask_each(entrants, batch, to_play, cards, decision_seeds(seed, numbers, play))
        batch.step(cards)
        plays[:, play] = cards
        on_play(batch.num_envs)
    by_side = batch.final_scores.reshape(len(decks), sides, sides)
    entrant_sides = np.add.outer(np.arange(sides), np.arange(sides)) % sides
    return Played(
        np.take_along_axis(by_side, entrant_sides[np.newaxis], axis=2),
        plays.reshape(len(decks), sides, -1),
    )


# Comparing.


def compare(
    points: np.ndarray,
    lineup: tuple[int, ...],
    names: Sequence[str],
    rules: Rules,
    seed: int,
    with_matches: bool,
) -> list[Result]:
    """Return a result for each pair of agents of a lineup, from its `points` (see `Played`)."""
    finals = MatchFinals(points, rules, seed) if with_matches else None
    results = []
    for a, b in itertools.combinations(dict.fromkeys(lineup), 2):
        of_a = lineup.index(a)
        of_b = [entrant for entrant, agent in enumerate(lineup) if agent == b]
        lead = points[..., of_a] - points[..., of_b].mean(axis=-1)
        over_best = points[..., of_a] - points[..., of_b].max(axis=-1)
        mean, low, high = mean_with_interval(lead.mean(axis=1))
        chance, chance_low, chance_high = (
            (None, None, None) if finals is None else finals.chance(of_a, of_b)
        )
        results.append(
            Result(
                a=names[a],
                b=names[b],
                mean=mean,
                low=low,
                high=high,
                wins=int((over_best > 0).sum()),
                draws=int((over_best == 0).sum()),
                losses=int((over_best < 0).sum()),
                match_win=chance,
                match_win_low=chance_low,
                match_win_high=chance_high,
            )
        )
    return results


def mean_with_interval(values: np.ndarray) -> tuple[float, float | None, float | None]:
    """Return the mean of independent values (n,) and its 95 % interval, None for one value."""
    mean = float(values.mean())
    if len(values) == 1:
        return mean, None, None
    half = NORMAL_95 * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean, mean - half, mean + half


class MatchFinals:
    """The final points of matches whose deals are drawn from those that were played.

    Once from all decks, MATCHES times, and for the interval RESAMPLES times from as many decks
    drawn anew with repeats, RESAMPLED_MATCHES times each. Every match is also played with all
    seatings moved on by one, two, …: what one agent owes to its seat, the other has as often.
    """

    def __init__(self, points: np.ndarray, rules: Rules, seed: int):
        match_rules = Rules(  # all that decides a match; what a deal scores is in `points`
            players=rules.players,
            partners=rules.partners,
            target=rules.target or DEFAULT_TARGET,
            win_by=rules.win_by,
            tie_at_target=rules.tie_at_target,
        )
        num_decks = len(points)
        self._finals = play_matches(points, match_rules, np.arange(num_decks), MATCHES, seed, 0)
        self._resampled = []
        if num_decks > 1:
            for sample in range(1, RESAMPLES + 1):
                key = derive_seed(f"decks {sample}", seed)
                decks = random_indices(num_decks, key, np.arange(num_decks), 0)
                self._resampled.append(
                    play_matches(points, match_rules, decks, RESAMPLED_MATCHES, seed, sample)
                )

    def chance(self, of_a: int, of_b: list[int]) -> tuple[float, float | None, float | None]:
        """Return how often entrant `of_a` is ahead of the entrants `of_b`, and the interval."""
        shares = share_of_win(self._finals, of_a, of_b)
        chance = float(shares.mean())
        if not self._resampled:
            return chance, None, None
        resampled = [share_of_win(finals, of_a, of_b) for finals in self._resampled]
        # What scatters the resampled chances beyond the chance of their matches is the decks.
        scatter = np.var([shares.mean() for shares in resampled], ddof=1)
        of_matches = np.mean([shares.var() for shares in resampled]) / RESAMPLED_MATCHES
        variance = max(0.0, scatter - of_matches) + shares.var() / MATCHES
        half = round(NORMAL_95 * variance**0.5 * MATCHES) / MATCHES  # exact, as the chance is
        return chance, max(0.0, chance - half), min(1.0, chance + half)


def share_of_win(finals: np.ndarray, of_a: int, of_b: list[int]) -> np.ndarray:
    """Return the share of the win that entrant `of_a` has over `of_b` in each of `finals`
    (matches, seatings, entrants), mean over seatings: 1 if ahead, its part of a tie, else 0."""
    mine, theirs = finals[..., of_a], finals[..., of_b]
    ahead = mine > theirs.max(axis=-1)
    level = mine == theirs.max(axis=-1)
    tied = 1 + (theirs == mine[..., np.newaxis]).sum(axis=-1)
    return (ahead + level / tied).mean(axis=1)


def play_matches(
    points: np.ndarray, rules: Rules, decks: np.ndarray, num_matches: int, seed: int, sample: int
) -> np.ndarray:
    """Return the final points (matches, seatings, entrants) int64 of matches whose deals are drawn
    from `points` (n, seatings, entrants) of the decks with numbers `decks` (m,)."""
    seatings, entrants = points.shape[1:]
    key = derive_seed(f"matches {sample}", seed)
    rows = points.reshape(-1, entrants)
    finals = np.empty((num_matches * seatings, entrants), np.int64)
    going_on = np.arange(len(finals))
    totals = np.zeros_like(finals)
    for deal in range(MAX_DEALS):  # two draws each: the deck, the seating
        matches, shift = np.divmod(going_on, seatings)
        deck = decks[random_indices(len(decks), key, matches, 2 * deal)]
        seating = (random_indices(seatings, key, matches, 2 * deal + 1) + shift) % seatings
        totals += rows.take(deck * seatings + seating, axis=0)
        over = np.zeros(len(totals), np.bool_)
        loops.find_decided(totals, compiled_rules(rules), over)
        finals[going_on[over]] = totals[over]
        going_on, totals = going_on[~over], totals[~over]
        if not len(going_on):
            break
    finals[going_on] = totals
    return finals.reshape(num_matches, seatings, entrants)


# Chance.


def random_indices(size: int, key: int, firsts: np.ndarray, second: int) -> np.ndarray:
    """Return a random index of `size` things for each of `firsts` (n,) ints and `second`."""
    high_half = random_numbers(key, firsts, second) >> np.uint64(32)
    return (high_half * np.uint64(size) >> np.uint64(32)).astype(np.int64)


def decision_seeds(seed: int, decks: np.ndarray, play: int) -> np.ndarray:
    """Return what agents draw with, (n,) uint64, at play number `play` of the decks with these
    numbers (n,): the same in all seatings, so that mirrored deals mirror chance too."""
    return random_numbers(derive_seed("decisions", seed), decks, play)


# Where the code is from.


def revision() -> str:
    """Return the git revision of the checkout that this runs from, else the package's version."""
    root = Path(__file__).resolve().parents[1]
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return subprocess.run(
                [*command, "--exclude=*"], check=True, capture_output=True, text=True
            ).stdout.strip()
    from pisti_env import __version__  # it imports what lies below, so not at the top

    return __version__
