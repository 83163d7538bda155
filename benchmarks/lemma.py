"""Whether what the coach says of an agent's plays comes to what the arena says of its deals.

    python -m benchmarks.lemma --deals 500

An agent that plays a deal against a policy loses, against what the policy would have won in its
seat, the sum over its own plays of what each is worth less than the policy's own play there, with
the policy playing on in every seat (Kakade and Langford, "Approximately optimal approximate
reinforcement learning", 2002, lemma 6.1). Two sums are taken over the same plays:

- in the true deal, which nobody sees: it comes to the margin exactly, deal by deal;
- in deals that fit what the seat has seen, as the coach has them. These are equally likely there,
  and conclude nothing from what the others have played: where the sum differs from the margin, it
  is by what the policy's plays tell of its hand.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from pisti_env.agents import Agent, load
from pisti_env.arena import mean_with_interval, play_decks, random_decks
from pisti_env.coach.appraise import ask, tell_apart
from pisti_env.coach.playouts import play_out
from pisti_env.coach.worlds import random_worlds
from pisti_env.progress import progress_bar
from pisti_env.record import Deal, Record
from pisti_env.rules import Rules
from pisti_env.shuffle import derive_seed


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
    seen, true = np.zeros_like(margins), np.zeros_like(margins)
    with progress_bar(margins.size, "deals") as bar:
        for deal, seating in np.ndindex(*margins.shape):
            record = _record(rules, decks[deal], int(dealers[deal]), versus.plays[deal, seating])
            sums = [(0.0, 0.0), *_losses(record, seating, policy, options.samples, options.seed)]
            seen[deal, seating], true[deal, seating] = np.sum(sums, axis=0)
            bar.update()
    print(f"{options.agent} against {options.policy}, {options.deals:,} decks in both seatings, ")
    print(f"{options.samples} playouts of a play, seed {options.seed}; points a deal")
    print(f"  margin, over the policy in the same seat  {_told(margins)}")
    print(f"  sum of its plays in the true deals        {_told(-true)}")
    print(f"    less the margin                         {_told(-true - margins)}")
    print(f"  sum of its plays in deals that fit        {_told(-seen)}")
    print(f"    less the margin                         {_told(-seen - margins)}")


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
) -> Iterator[tuple[float, float]]:
    """Yield what each play of a seat is worth less than the policy's own, in deals that fit and in
    the true one."""
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
        cards = [chosen[0], deal.plays[play]]
        own_seed = derive_seed(f"{deal.deck} {play}", seed)
        games = random_worlds(view, samples, own_seed)
        true, _ = record.replay(0, play).moment()
        losses = []
        for worlds in (games, true):
            worth = play_out(policy, rules, worlds, cards, own_seed).mean(axis=1)
            losses.append(float(worth[0] - worth[1]))
        yield losses[0], losses[1]


if __name__ == "__main__":
    main()
