"""`pisti explain` and `pisti coach`: what a policy thinks of a position, and what plays cost."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from pisti_env.agents import load, shipped_checkpoints
from pisti_env.agents.checkpoint import check_fit
from pisti_env.commands.arguments import add_json, agent_names, importing_from_here
from pisti_env.commands.records import read_one
from pisti_env.commands.screen import check_files, tell_and_write, telling_warnings
from pisti_env.files import read_file
from pisti_env.position import FORMAT, MAX_LINE, read_position
from pisti_env.rules import Rules

MOST_BYTES = 4 * MAX_LINE  # of a file with a position


def add_parser(commands: Any) -> None:
    """Add the commands to `commands`, what `add_subparsers` returns."""
    command = commands.add_parser(
        "explain",
        help="say what a policy thinks of a position",
        description="Print every legal play of a position: how likely the agent finds it, what it "
        "takes at once, and what it is worth in points a deal, by playouts of the rest with the "
        "agent in every seat, in deals that fit what the seat to play has seen.",
    )
    command.add_argument(
        "position",
        metavar="POSITION",
        help="a line, as env.unwrapped.position(seat) gives it, a file with one, or - for standard "
        "input",
    )
    _add_agent(command)
    command.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="playouts of each play (default: until all are within half a point)",
    )
    _add_seed_and_json(command)
    command.set_defaults(run=explain)

    command = commands.add_parser(
        "coach",
        help="say what each play of a record cost",
        description="Print the plays of a seat in a record, the one first that lost most against "
        "the best play, by playouts as `pisti explain` has them.",
    )
    command.add_argument("file", metavar="FILE", help="of records, as `pisti watch` writes them")
    command.add_argument("--seat", type=int, required=True, metavar="SEAT", help="whose, from 0")
    _add_agent(command)
    command.add_argument(
        "--record", type=int, default=0, metavar="N", help="its number in the file, from 0"
    )
    command.add_argument(
        "--deal", type=int, metavar="N", help="its number in the record, from 0 (default: all)"
    )
    command.add_argument(
        "--play", type=int, metavar="N", help="explain this play of the deal, the first column"
    )
    command.add_argument("--samples", type=int, metavar="N", help="playouts of each play")
    _add_seed_and_json(command)
    command.set_defaults(run=coach)


def _add_agent(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--agent",
        metavar="AGENT",
        help=f"who thinks and plays on (default: a policy that comes with the package and can play "
        f"these rules): {agent_names()}",
    )


def _add_seed_and_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, default=0, help="of the playouts (default: 0)")
    add_json(command)


def explain(options: argparse.Namespace) -> None:
    """Explain a position; print it and perhaps write it."""
    from pisti_env import coach

    check_files(options.json, read=[options.position, options.agent])
    view = read_position(_read_line(options.position)).view
    agent = options.agent or _default_agent(view.rules)
    with importing_from_here(), telling_warnings():
        explanation = coach.explain(view, agent, options.samples, options.seed, progress=True)
    tell_and_write(str(explanation), options.json, explanation.to_dict())


def coach(options: argparse.Namespace) -> None:
    """Coach a seat of a record; print what its plays cost and perhaps write it."""
    from pisti_env.coach import SAMPLES
    from pisti_env.coach import coach as judge_plays
    from pisti_env.coach import explain as explain_play

    check_files(options.json, read=[options.file, options.agent])
    record = read_one(options.file, options.record)
    agent = options.agent or _default_agent(record.rules)
    found: Any
    with importing_from_here(), telling_warnings():
        if options.play is not None:
            view = record.view(options.deal or 0, options.play, options.seat)
            found = explain_play(view, agent, options.samples, options.seed, progress=True)
        else:
            samples = SAMPLES if options.samples is None else options.samples
            found = judge_plays(
                record,
                options.seat,
                agent,
                samples,
                options.seed,
                deal=options.deal,
                progress=True,
            )
    tell_and_write(str(found), options.json, found.to_dict())


def _read_line(position: str) -> str:
    """Return the line of a position that is given itself, in a file or on standard input."""
    if position == "-":
        return sys.stdin.read(MOST_BYTES).strip()
    if " " in position.strip() or not Path(position).is_file():
        return position.strip()
    text = _read_text(position)
    if "\n" in text or not text.startswith(FORMAT):
        raise ValueError(
            f"{position} has no position; expected a file with one line as "
            "env.unwrapped.position(seat) gives it (a play of a file of records is explained by "
            "pisti coach FILE --seat SEAT --play N)"
        )
    return text


def _read_text(path: str) -> str:
    """Return the text of a small file without the blanks around it, nothing if it has none."""
    try:
        return read_file(path, MOST_BYTES).decode("utf-8-sig").strip()
    except ValueError:  # it is no plain file, has too many bytes, or no UTF-8
        return ""


def _default_agent(rules: Rules) -> str:
    """Return the name of a shipped policy that can play these rules, of one that was trained with
    them if there is one; a baseline's if none can."""
    able = []
    for name in sorted(shipped_checkpoints()):
        policy = load(name)
        with contextlib.suppress(ValueError):
            note = check_fit(name, policy.rules, rules, policy.observation)
            able.append((note is not None, name))
    return min(able)[1] if able else "counting"
