"""What users give the learner's environments, checked at the border."""

import copy
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from gymnasium.envs.registration import EnvSpec

from pisti_env.checks import check_dealer, check_deck, check_scores, is_int
from pisti_env.position import check_position
from pisti_env.quote import quote
from pisti_env.rules import Rules

RESET_OPTIONS = ("deck", "dealer", "scores", "seat", "position")


class Arguments(NamedTuple):
    """What both environments are made with, beside the rules. The manual tells what each is."""

    opponent: Any
    partner: Any
    observation: str
    mask_in: str
    rewards: str
    seat: int | None
    illegal: str


def check_arguments(rules: Rules, arguments: Arguments) -> None:
    """Raise `ValueError` for a wrong argument, but of those that others check: the agents, the
    encoding and the rewards."""
    if arguments.mask_in not in ("observation", "info"):
        raise ValueError(f"mask_in is {quote(arguments.mask_in)}; expected 'observation' or 'info'")
    if arguments.illegal not in ("end", "raise"):
        raise ValueError(f"illegal is {quote(arguments.illegal)}; expected 'end' or 'raise'")
    if arguments.seat is not None:
        check_seat(rules, arguments.seat)


def check_seat(rules: Rules, seat: Any) -> int:
    """Return a learner's seat as an int; raise `ValueError` if it is none."""
    if is_int(seat) and 0 <= seat < rules.players:
        return int(seat)
    raise ValueError(
        f"seat is {quote(seat)}; expected None or an int from 0 to {rules.players - 1}"
    )


def read_options(rules: Rules, options: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """Return what `reset` was given, checked, as arguments for `LearnerTables.begin`."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise ValueError(f"options is {quote(options)}; expected a dict or None")
    for name in options:
        if name not in known:
            raise ValueError(f"reset option is {quote(name)}; expected one of {', '.join(known)}")
    checks = (check_deck, check_dealer, check_scores, check_seat, check_position)
    given: dict[str, Any] = {
        name: check(rules, options[name])
        for name, check in zip(RESET_OPTIONS, checks, strict=True)
        if options.get(name) is not None
    }
    if "position" in given:
        for name in ("dealer", "scores"):
            if name in given:
                raise ValueError(f"{name} is {quote(options[name])}; expected none with a position")
        if "deck" in given:
            given["position"].check_deck_fits(given["deck"].tolist())
        if given["position"].view.viewer is not None:
            given.setdefault("seat", given["position"].view.viewer)
    return given


def spec_for_json(spec: EnvSpec | None) -> EnvSpec | None:
    """Return Gymnasium's record of how an environment was made with plain data in place of paths,
    rules and modes, so that it can be written as JSON. Agents stay, and then it cannot."""
    if spec is None:
        return None
    spec = copy.copy(spec)
    spec.kwargs = {name: _plain(value) for name, value in spec.kwargs.items()}
    return spec


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Rules):
        return value.to_dict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
