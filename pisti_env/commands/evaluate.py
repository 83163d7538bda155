"""`pisti evaluate`: agents measured against each other."""

import argparse
import contextlib
import warnings
from pathlib import Path
from typing import Any

from pisti_env.commands.arguments import (
    add_json,
    add_rules,
    agent_names,
    importing_from_here,
    rules_of,
)
from pisti_env.commands.screen import check_files, tell, tell_and_write, warn
from pisti_env.rules import rules_text


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, what `add_subparsers` returns."""
    command = commands.add_parser(
        "evaluate",
        help="measure agents against each other on mirrored deals",
        description="Play every deck in all seatings and print points a deal with a 95 % interval, "
        "deals won, drawn and lost, and the chance to win a match. As many agents as sides play at "
        "one table; of any other number every pair plays, the first on one side, the second on all "
        "others.",
    )
    command.add_argument("agents", nargs="+", metavar="AGENT", help=agent_names())
    command.add_argument(
        "--first-only",
        action="store_true",
        help="play the first agent against each of the others, and not those against each other",
    )
    command.add_argument("--deals", type=int, default=10_000, help="decks (default: %(default)s)")
    add_rules(command, default=None, default_text="those of the first policy, else standard")
    command.add_argument("--seed", type=int, default=0, help="of the decks (default: %(default)s)")
    command.add_argument(
        "--sample", action="store_true", help="policies draw a card instead of taking their best"
    )
    command.add_argument(
        "--strict", action="store_true", help="refuse a policy that was trained under other rules"
    )
    command.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="play on a Ray cluster: the one at HOST:PORT; without ADDRESS that of RAY_ADDRESS, or "
        "all cores of this machine",
    )
    command.add_argument(
        "--record", type=Path, metavar="FILE", help="keep the deals there, as pisti replay reads"
    )
    command.add_argument(
        "--record-every",
        type=int,
        default=1,
        metavar="N",
        help="keep every N-th deck, in all its seatings (default: %(default)s)",
    )
    add_json(command)
    command.set_defaults(run=evaluate)


def evaluate(options: argparse.Namespace) -> None:
    """Measure agents; print the results and perhaps write them."""
    from pisti_env import arena
    from pisti_env.cluster import playing_on_ray

    check_files(options.json, options.record, read=options.agents)
    with contextlib.ExitStack() as stack:
        stack.enter_context(importing_from_here())
        rules = rules_of(options.rules, options.agents)
        play = None
        if options.ray is not None:
            play = stack.enter_context(playing_on_ray(options.ray or None))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", UserWarning)  # they are in `evaluation.notes` too
        try:
            evaluation = arena.evaluate(
                options.agents,
                rules,
                options.deals,
                options.seed,
                sample=options.sample or None,
                strict=options.strict,
                first_only=options.first_only,
                progress=True,
                play=play,
                record=options.record,
                record_every=options.record_every,
            )
        except OSError as error:  # of the records, which are written last: the results are its note
            for note in getattr(error, "__notes__", ()):
                tell(note)
            raise
    for note in evaluation.notes:
        warn(note)
    text = (
        f"{evaluation.deals:,} decks, each in {rules.sides} seatings; "
        f"rules {rules_text(rules)} ({rules.hash}); seed {evaluation.seed}\n\n{evaluation}"
    )
    if options.record is not None:
        text += f"\n\ndeals written to {options.record}"
    tell_and_write(text, options.json, evaluation.to_dict())
