"""`pisti rules` and `pisti describe`: the options, and what an observation's numbers mean."""

import argparse
import ast
import dataclasses
import inspect
import itertools
from typing import Any

from pisti_env.commands.arguments import add_rules
from pisti_env.commands.screen import tell
from pisti_env.observation import ENCODINGS, describe
from pisti_env.rules import PRESETS, Rules, parse_rules, rules_text


def add_parser(commands: Any) -> None:
    """Add both commands to `commands`, what `add_subparsers` returns."""
    command = commands.add_parser(
        "rules",
        help="list presets and options",
        description="List the presets, and every option with its value under --rules.",
    )
    add_rules(command)
    command.set_defaults(run=list_rules)

    command = commands.add_parser(
        "describe",
        help="print the layout of an observation",
        description="Print what each number of an observation means, as a table.",
    )
    command.add_argument("encoding", help=f"{', '.join(ENCODINGS)}, or state")
    add_rules(command)
    command.set_defaults(run=print_layout)


def list_rules(options: argparse.Namespace) -> None:
    """Print presets, options and what follows from them."""
    rules = parse_rules(options.rules)
    lines = ["Presets:"]
    lines += [f"  {name:<13} {rules_text(Rules.preset(name))}" for name in PRESETS]
    lines += ["", f"Options, as in {options.rules}:"]
    meanings = option_meanings()
    for name, value in rules.to_dict().items():
        lines.append(f"  {name:<27} {value!s:<11} {meanings[name]}")
    lines += [
        "",
        f"{rules.players} players, {rules.sides} sides, a deck of {rules.deck_size} cards, "
        f"{rules.num_plays} plays a deal, hash {rules.hash}",
    ]
    tell("\n".join(lines))


def option_meanings() -> dict[str, str]:
    """Return the sentence under each field of `Rules`, read from its source."""
    [definition] = ast.parse(inspect.getsource(Rules)).body
    assert isinstance(definition, ast.ClassDef)
    meanings = dict.fromkeys((field.name for field in dataclasses.fields(Rules)), "")
    for field, below in itertools.pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                meanings[name] = " ".join(text.split())
    return meanings


def print_layout(options: argparse.Namespace) -> None:
    """Print the layout of an encoding."""
    tell(str(describe(options.encoding, parse_rules(options.rules))))
