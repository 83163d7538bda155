"""Whether what the coach says of an agent's plays comes to what the arena says of its deals.

    python -m benchmarks.lemma --deals 500

An agent that plays a deal against a policy loses, against what the policy would have won in its
seat, the sum over its own plays of what each is worth less than the policy's own play there, with
the policy playing on in every seat (Kakade and Langford, "Approximately optimal approximate
reinforcement learning", 2002, lemma 6.1). Three sums are taken over the same plays:

- in the true deal, which nobody sees: it comes to the margin exactly, deal by deal;
- in deals that fit what the seat has seen, as the coach has them. All of these are equally likely
  there: nothing is concluded from what the others have played;
- in those of them in which the policy would have played all that it has played. Where the second
  sum differs from the margin and this one does not, it is by what plays tell of the hands that they
  came from.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from pisti_env.agents import Agent, load
from pisti_env.agents.hosting import choose_cards
from pisti_env.arena import mean_with_interval, play_decks, random_decks
from pisti_env.cards import KIND_OF_CARD
from pisti_env.coach.appraise import ask, tell_apart
from pisti_env.coach.playouts import play_out
from pisti_env.coach.worlds import random_worlds
from pisti_env.knowledge import View, deck_of
from pisti_env.observation import encoder
from pisti_env.progress import progress_bar
from pisti_env.record import Deal, Record
from pisti_env.rules import Rules
from pisti_env.shuffle import derive_seed
from pisti_env.tables import Tables

SUMS = ("the true deals", "deals that fit", "deals in which the policy plays so")
ROUND = 256  # worlds that are drawn before it is looked how many of them are explained
MOST_ROUNDS = 32


def main() -> None:
    """Measure, and print the three figures."""
    parser = argparse.ArgumentParser(description="The coach's sums, against the arena's margin.")
    parser.add_argument("--agent", default="greedy", help="who is coached (default: %(default)s)")
    parser.add_argument("--policy", default="pisti-2p", help="who coaches (default: %(default)s)")
    parser.add_argument("--deals", type=int, default=500, help="decks, in both seatings")
    parser.add_argument("--samples", type=int, default=64, help="playouts of a play")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    policy = load(options.policy)
    agent, rules = load(options.agent, policy.rules), policy.rules
    decks, dealers = random_decks(rules, options.seed, options.deals)
    versus = play_decks([agent, policy], rules, decks, dealers, options.seed)
    itself = play_decks([policy, policy], rules, decks, dealers, options.seed)
    margins = _margins(versus.points) - _margins(itself.points)
    sums = np.zeros((*margins.shape, len(SUMS)))
    with progress_bar(margins.size, "deals") as bar:
        for deal, seating in np.ndindex(*margins.shape):
            record = _record(rules, decks[deal], int(dealers[deal]), versus.plays[deal, seating])
            for losses in _losses(record, seating, policy, options.samples, options.seed):
                sums[deal, seating] += losses
            bar.update()
    print(f"{options.agent} against {options.policy}, {options.deals:,} decks in both seatings, ")
    print(f"{options.samples} playouts of a play, seed {options.seed}; points a deal")
    print(f"  {'margin over the policy in the same seat':<60}{_told(margins)}")
    for number, told in enumerate(SUMS):
        lost = -sums[..., number]
        print(f"  {f'sum over its plays, in {told}':<60}{_told(lost)}")
        print(f"  {'  less the margin':<60}{_told(lost - margins)}")


def _margins(points: np.ndarray) -> np.ndarray:
    """Return by how much the first entrant was ahead, (decks, seatings) float64."""
    return np.asarray(points[..., 0] - points[..., 1], np.float64)


def _told(values: np.ndarray) -> str:
    mean, low, high = mean_with_interval(values.mean(axis=1))
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _record(rules: Rules, deck: np.ndarray, dealer: int, plays: np.ndarray) -> Record:
    deal = Deal(tuple(deck.tolist()), dealer, tuple(plays.tolist()))
    return Record(rules=rules, deals=(deal,))


def _losses(
    record: Record, seat: int, policy: Agent, samples: int, seed: int
) -> Iterator[list[float]]:
    """Yield what each play of a seat is worth less than the policy's own, in the order of SUMS."""
    rules, deal = record.rules, record.deals[0]
    for play in range(len(deal.plays)):
        if (deal.dealer + 1 + play) % rules.players != seat:
            continue
        view = record.view(0, play, seat)
        plays = tell_apart(view)
        probabilities, _ = ask(policy, view, plays)
        chosen = plays[int(probabilities.argmax())]
        if deal.plays[play] in chosen:
            continue
        own_seed = derive_seed(f"{deal.deck} {play}", seed)
        true, _ = record.replay(0, play).moment()
        fitting = random_worlds(view, samples, own_seed)
        losses = []
        for worlds in (true, fitting, _explained(view, policy, samples, own_seed)):
            worth = play_out(policy, rules, worlds, [chosen[0], deal.plays[play]], own_seed)
            losses.append(float((worth[0] - worth[1]).mean()))
        yield losses


def _explained(view: View, policy: Agent, samples: int, seed: int) -> np.ndarray:
    """Return up to so many worlds in which the policy plays what the other seats have played; if
    none is found among many, worlds that fit."""
    found = []
    for number in range(MOST_ROUNDS):
        worlds = random_worlds(view, ROUND, derive_seed(f"round {number}", seed))
        found.append(worlds[_plays_so(view, policy, worlds)])
        if sum(map(len, found)) >= samples:
            break
    worlds = np.concatenate(found)[:samples]
    return worlds if len(worlds) else random_worlds(view, samples, seed)


def _plays_so(view: View, policy: Agent, worlds: np.ndarray) -> np.ndarray:
    """Return in which worlds (n,) the policy plays what the other seats have played, (n,) bool."""
    rules, number = view.rules, len(worlds)
    decks = [deck_of(worlds[world : world + 1], rules) for world in range(number)]
    tables, fits = Tables(rules, number), np.ones(number, np.bool_)
    tables.start(tables.all_rows, np.array(decks, np.int8), np.full(number, view.dealer))
    own, cards = encoder(policy.observation, rules), np.zeros(number, np.int64)
    for seat, card in view.plays:
        rows = np.flatnonzero(fits)
        if seat != view.viewer and len(rows):
            choose_cards(policy, own, tables.games, rows, None, cards)
            fits[rows] = KIND_OF_CARD[cards[rows]] == KIND_OF_CARD[card]
        tables.cards[:] = card
        tables.play()
    return fits


if __name__ == "__main__":
    main()
