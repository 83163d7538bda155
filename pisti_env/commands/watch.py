"""`pisti watch`: agents play a deal or a match, play by play on the screen."""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pisti_env.agents import Agent, load
from pisti_env.commands.arguments import add_rules, agent_names, importing_from_here, rules_of
from pisti_env.commands.records import viewer
from pisti_env.commands.screen import check_files, on_terminal, tell, telling_warnings
from pisti_env.record import Record
from pisti_env.results import DEFAULT_TARGET
from pisti_env.rules import Rules
from pisti_env.shuffle import check_seed, derive_seed

DEFAULT_AGENTS = ["pisti-2p", "greedy"]
DEFAULT_PAUSE = 1.0  # seconds
LONGEST_PAUSE = 3600


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, what `add_subparsers` returns."""
    command = commands.add_parser(
        "watch",
        help="see agents play a deal or a match",
        description="Play a deal, or with a target a match, and show it play by play, all hands "
        "face up. The same command shows the same deal.",
    )
    command.add_argument(
        "agents",
        nargs="*",
        default=DEFAULT_AGENTS,
        metavar="AGENT",
        help="one for each side, or for each seat, seat 0 first (default: "
        f"{' '.join(DEFAULT_AGENTS)}): {agent_names()}",
    )
    add_rules(command, default=None, default_text="those of the first policy, else standard")
    command.add_argument(
        "--match",
        action="store_true",
        help=f"play to {DEFAULT_TARGET}, if the rules have no target",
    )
    command.add_argument("--seed", type=int, default=0, help="of the decks (default: %(default)s)")
    command.add_argument(
        "--sample", action="store_true", help="policies draw a card instead of taking their best"
    )
    command.add_argument(
        "--seat",
        type=viewer,
        metavar="SEAT",
        help="show only what this seat knows, or what everyone does (default: all hands)",
    )
    command.add_argument(
        "--pause",
        type=float,
        metavar="SECONDS",
        help=f"after each play (default: {DEFAULT_PAUSE:g} on a terminal, else 0)",
    )
    command.add_argument("--record", type=Path, metavar="FILE", help="keep what is played there")
    command.set_defaults(run=watch)


def watch(options: argparse.Namespace) -> None:
    """Play, perhaps write a record, and show it."""
    from pisti_env import replay
    from pisti_env.kept_deals import name_for_record
    from pisti_env.record import write_records

    pause = (DEFAULT_PAUSE if on_terminal() else 0.0) if options.pause is None else options.pause
    if not 0 <= pause <= LONGEST_PAUSE:
        raise ValueError(f"pause is {pause}; expected seconds from 0 to {LONGEST_PAUSE}")
    check_seed(options.seed)
    check_files(options.record, read=options.agents)
    with importing_from_here(), telling_warnings():
        rules = rules_of(options.rules, options.agents)
        if options.match and rules.target is None:
            rules = dataclasses.replace(rules, target=DEFAULT_TARGET)
        if isinstance(options.seat, int) and not 0 <= options.seat < rules.players:
            raise ValueError(
                f"seat is {options.seat}; expected a number from 0 to {rules.players - 1}"
            )
        names = by_seat(options.agents, rules)
        agents = load_agents(options.agents, rules, options.seed, options.sample or None)
        record = play(
            rules, by_seat(agents, rules), list(map(name_for_record, names)), options.seed
        )
    if options.record is not None:
        write_records(options.record, [record])
    shown = record if options.seat is None else record.seen_by(options.seat)
    tell(replay.title_of(shown))
    for deal in range(len(shown.deals)):
        for moment in replay.moments(shown, deal):
            tell("\n" + replay.text(shown, moment))
            time.sleep(pause)
    if options.record is not None:
        tell(f"\nwritten to {options.record}")


def by_seat(agents: Sequence[Any], rules: Rules) -> list[Any]:
    """Return which of the agents, one for each side or for each seat, sits in each seat."""
    if len(agents) == rules.players:
        return list(agents)
    if len(agents) == rules.sides:
        return [agents[rules.side(seat)] for seat in range(rules.players)]
    sides = "" if rules.sides == rules.players else f"{rules.sides}, one for each side, or "
    raise ValueError(
        f"number of agents is {len(agents)}; expected {sides}{rules.players}, one for each seat"
    )


def load_agents(names: Sequence[str], rules: Rules, seed: int, sample: bool | None) -> list[Agent]:
    """Return agents, of which each draws its own numbers."""
    return [
        load(name, rules, derive_seed(f"agent {number}", seed), sample)
        for number, name in enumerate(names)
    ]


def play(rules: Rules, agents: Sequence[Agent], names: Sequence[str], seed: int) -> Record:
    """Return the record of a deal, or with a target of a match, between the agents of the seats."""
    from pisti_env import pisti_v0
    from pisti_env.agents import ask
    from pisti_env.progress import progress_bar

    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=seed)
    with progress_bar(None if rules.target else rules.num_plays, "plays") as bar:
        while not env.terminations[env.agent_selection]:
            env.step(ask(env, agents[env.possible_agents.index(env.agent_selection)]))
            bar.update()
    return env.record(names)
