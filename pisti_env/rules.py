"""Which rules are played: `Rules`, a frozen dataclass of options, and its presets.

Every default gives the standard game. How the rules are played is in `game.py`.
"""

import dataclasses
import difflib
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pisti_env.cards import (
    ACE,
    JACK,
    NUM_RANKS,
    TEN_OF_DIAMONDS,
    TWO_OF_CLUBS,
    pack_cards,
)
from pisti_env.quote import quote

NUM_STARTERS = 4

# Points are summed in 64-bit integers; a value this large keeps every sum of a match exact.
MAX_POINTS = 1_000_000_000
MAX_MATCH_POINTS = 2**60  # far more than any match has, and still an int of 64 bits

PRESETS: dict[str, dict[str, Any]] = {
    "standard": {},
    "text_a": {"last_card_pisti": True, "target": 151},
    "text_b": {"target": 151},
    "loose": {"jack_takes_single_points": 20},
    "istanbul": {"last_card_pisti": True, "target": 151, "ten_of_diamonds_pisti_bonus": 3},
    "short": {"target": 101},
    "bottom_shown": {"bottom_card_shown": True},
}


# The fields that are in every hash, as they were when hashes were first published. Hashes are of
# these for good: add none, and take none away.
FIRST_FIELDS = frozenset(
    "players packs partners target win_by tie_at_target ace_points jack_points two_of_clubs_points "
    "ten_of_diamonds_points pisti_points jack_pisti_points jack_takes_single_points "
    "ten_of_diamonds_pisti_bonus last_card_pisti majority_points majority starter_jack "
    "starters_seen_by bottom_card_shown leftovers ranks copies hand_size".split()
)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Rules:
    """The options of a game of Pişti. Checked when made: a wrong value raises `ValueError`.

    Fields stay as given; what follows from them is in the properties (`num_packs`, `pairs`,
    `sides`, …), so ``dataclasses.replace(rules, players=5)`` does what one expects.
    """

    players: int = 2
    """Seats, 2 to 6, numbered in playing order."""
    packs: int | None = None
    """Packs of 52 shuffled together, 1 or 2; None: 1 for 2-4 players, 2 for 5-6."""
    partners: bool | None = None
    """Seats 0 and 2 against 1 and 3 (4 players only); None: True for 4 players, else False."""
    target: int | None = None
    """Points that win a match (151, 101, …); None: the episode is one deal."""
    win_by: int = 1
    """Lead over the second side that the winner of a match needs."""
    tie_at_target: str = "extra_deal"
    """A shared highest total at the target: "extra_deal" plays on, "shared" shares the win."""
    ace_points: int = 1
    """Card points of each ace."""
    jack_points: int = 1
    """Card points of each jack."""
    two_of_clubs_points: int = 2
    """Card points of the two of clubs."""
    ten_of_diamonds_points: int = 3
    """Card points of the ten of diamonds."""
    pisti_points: int = 10
    """Capturing a lone card by equal rank, jacks apart."""
    jack_pisti_points: int = 20
    """Capturing a lone jack with a jack."""
    jack_takes_single_points: int = 0
    """Capturing a lone card of another rank with a jack; 0 is the strict rule, 20 the loose one."""
    ten_of_diamonds_pisti_bonus: int = 0
    """On top of a pişti by rank in which a card is the ten of diamonds."""
    last_card_pisti: bool = False
    """Whether the very last card of the deal can score a pişti."""
    majority_points: int = 3
    """For the one side that captured most cards; nobody on a tie."""
    majority: str | int = "most"
    """What that side needs: "most", "more_than_half" of the deck, or at least so many cards."""
    starter_jack: str = "pile"
    """A jack turned up goes among the face-down starters ("pile"), under the stock
    ("stock_bottom") or into the middle of it ("stock_middle")."""
    starters_seen_by: str = "capturer"
    """Who learns the face-down starters at their capture: "capturer", "side", "all", "nobody"."""
    bottom_card_shown: bool = False
    """Whether the stock's lowest card that is not a jack lies at its bottom, face up."""
    leftovers: str = "sweep"
    """Stock cards that fill no packet: "sweep" adds them to the table at the end, "burn" not."""
    ranks: int = 13
    """Ranks in a pack, 2 to 13: the jack and the first of the others."""
    copies: int = 4
    """Suits in a pack, 1 to 4: the first of C D H S."""
    hand_size: int = 4
    """Cards of a hand, 1 to 4."""

    def __post_init__(self) -> None:
        self._check_range("players", 2, 6)
        if self.packs is not None:
            self._check_range("packs", 1, 2)
        if self.partners is not None:
            self._check_bool("partners")
            if self.partners and self.players != 4:
                self._refuse("partners", f"False or None with {self.players} players")
        if self.target is not None:
            self._check_range("target", 1, MAX_POINTS)
        self._check_range("win_by", 1, MAX_POINTS)
        self._check_choice("tie_at_target", "extra_deal", "shared")
        for field in dataclasses.fields(self):
            if field.name.endswith(("_points", "_bonus")):
                self._check_range(field.name, 0, MAX_POINTS)
        self._check_bool("last_card_pisti")
        self._check_bool("bottom_card_shown")
        self._check_choice("starter_jack", "pile", "stock_bottom", "stock_middle")
        self._check_choice("starters_seen_by", "capturer", "side", "all", "nobody")
        self._check_choice("leftovers", "sweep", "burn")
        self._check_range("ranks", 2, NUM_RANKS)
        self._check_range("copies", 1, 4)
        self._check_range("hand_size", 1, 4)
        self._check_majority()
        self._check_pack()
        self._check_known_places()
        self._check_target_can_be_reached()

    # What follows from the fields.

    @property
    def num_packs(self) -> int:
        """Packs in force."""
        if self.packs is not None:
            return self.packs
        return 1 if self.players <= 4 else 2

    @property
    def pairs(self) -> bool:
        """Whether partners are in force."""
        return self.players == 4 if self.partners is None else self.partners

    @property
    def sides(self) -> int:
        """How many sides score."""
        return 2 if self.pairs else self.players

    def side(self, seat: int) -> int:
        """Return the side that a seat scores for; seat 0's side is 0."""
        return seat % self.sides

    @property
    def deck_size(self) -> int:
        """Cards of the deck."""
        return self.num_packs * self.ranks * self.copies

    @property
    def packet_size(self) -> int:
        """Cards of a packet: a hand for each seat."""
        return self.players * self.hand_size

    @property
    def num_packets(self) -> int:
        """Packets of a deal."""
        return (self.deck_size - NUM_STARTERS) // self.packet_size

    @property
    def num_plays(self) -> int:
        """Plays of a deal."""
        return self.num_packets * self.packet_size

    @property
    def num_leftovers(self) -> int:
        """Cards of the stock that fill no packet."""
        return (self.deck_size - NUM_STARTERS) % self.packet_size

    def deck_cards(self) -> tuple[int, ...]:
        """Return every card of the deck, sorted."""
        return tuple(sorted(pack_cards(self.ranks, self.copies) * self.num_packs))

    def card_points(self, card: int) -> int:
        """Return what capturing a card is worth."""
        if card == TWO_OF_CLUBS:
            return self.two_of_clubs_points
        if card == TEN_OF_DIAMONDS:
            return self.ten_of_diamonds_points
        rank = card % NUM_RANKS
        return {ACE: self.ace_points, JACK: self.jack_points}.get(rank, 0)

    @property
    def dearest_pisti(self) -> int:
        """The most that one pişti can score."""
        return max(
            self.pisti_points + self.ten_of_diamonds_pisti_bonus,
            self.jack_pisti_points,
            self.jack_takes_single_points,
        )

    @property
    def max_deal_points(self) -> int:
        """A bound on a side's points in a deal: all card points, the majority, and the dearest
        pişti in every second play (one play puts the lone card down, the next takes it)."""
        cards = sum(self.card_points(card) for card in self.deck_cards())
        return cards + self.majority_points + self.dearest_pisti * (self.num_plays // 2)

    # Text, dicts and presets.

    def __repr__(self) -> str:
        """Return the fields that differ from the standard game, as Python: ``Rules(players=4)``."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Rules({', '.join(changed)})"

    @classmethod
    def preset(cls, name: str, /, **fields: Any) -> "Rules":
        """Return a preset, with fields of it overridden."""
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"rules preset is {quote(name)}; expected one of {', '.join(PRESETS)}")
        return cls.from_dict({**PRESETS[name], **fields})

    def to_dict(self) -> dict[str, Any]:
        """Return every field, as given, in a plain dict."""
        return dataclasses.asdict(self)

    def in_force(self) -> dict[str, Any]:
        """Return every field, with packs and partners resolved: equal for the same game."""
        return {**self.to_dict(), "packs": self.num_packs, "partners": self.pairs}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Rules":
        """Return the rules of a dict of fields; what it lacks is as in the standard game."""
        if not isinstance(fields, Mapping):
            raise ValueError(f"rules is {quote(fields)}; expected a dict of fields")
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(str(name) for name in fields if name not in names)
        if unknown:
            raise ValueError(
                f"rules field is {quote(unknown[0])}; expected one of {', '.join(names)}"
            )
        return cls(**fields)

    @property
    def hash(self) -> str:
        """Eight hex digits of the values in force, the same on every machine and in every version:
        an option that came later counts only where it differs from its default."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        hashed = {
            name: value
            for name, value in self.in_force().items()
            if name in FIRST_FIELDS or value != defaults[name]
        }
        text = json.dumps(hashed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    # Checks, each raising with the field, the value and what is allowed.

    def _refuse(self, name: str, allowed: str) -> None:
        raise ValueError(f"{name} is {quote(getattr(self, name))}; allowed: {allowed}")

    def _check_range(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if type(value) is not int or not low <= value <= high:
            self._refuse(name, f"an int from {low} to {high}")

    def _check_bool(self, name: str) -> None:
        if type(getattr(self, name)) is not bool:
            self._refuse(name, "True or False")

    def _check_choice(self, name: str, *choices: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in choices:
            self._refuse(name, ", ".join(repr(choice) for choice in choices))

    def _check_majority(self) -> None:
        value, most = self.majority, self.deck_size
        named = isinstance(value, str) and value in ("most", "more_than_half")
        if not named and not (type(value) is int and 1 <= value <= most):
            self._refuse("majority", f"'most', 'more_than_half' or an int from 1 to {most}")

    def _check_pack(self) -> None:
        needed = NUM_STARTERS + self.packet_size
        if self.deck_size < needed:
            raise ValueError(
                f"ranks is {self.ranks} and copies is {self.copies}, a deck of {self.deck_size} "
                f"cards; allowed: at least {needed}, for {NUM_STARTERS} starters and a packet of "
                f"{self.packet_size} (fewer players, a smaller hand_size or more packs also help)"
            )

    def _check_known_places(self) -> None:
        if self.num_leftovers and self.starter_jack != "pile":
            self._refuse("starter_jack", f"'pile' where {self.num_leftovers} cards are left over")
        if self.num_leftovers and self.bottom_card_shown:
            self._refuse(
                "bottom_card_shown", f"False where {self.num_leftovers} cards are left over"
            )
        if self.bottom_card_shown and self.starter_jack != "pile":
            self._refuse("bottom_card_shown", f"False with starter_jack={self.starter_jack!r}")

    def _check_target_can_be_reached(self) -> None:
        cards = sum(self.card_points(card) for card in self.deck_cards())
        if self.target is not None and cards == 0 and self.majority_points == 0:
            self._refuse("target", "None where no card and no majority is worth a point")


RulesLike: TypeAlias = Rules | str | Mapping[str, Any]
"""Wherever rules are taken: a `Rules`, a preset's name or a dict of fields."""


def resolve_rules(rules: RulesLike = "standard", **fields: Any) -> Rules:
    """Return `Rules` from a `Rules`, a preset's name or a dict, with flat fields overriding it."""
    if isinstance(rules, str):
        return Rules.preset(rules, **fields)
    if isinstance(rules, Rules):
        return Rules.from_dict({**rules.to_dict(), **fields})
    if isinstance(rules, Mapping):
        return Rules.from_dict({**rules, **fields})
    raise ValueError(
        f"rules is {quote(rules)}; expected a Rules, a preset's name or a dict of fields"
    )


class ArgumentError(TypeError, ValueError):
    """An environment does not take this keyword, or not this value of it.

    A `TypeError`, because libraries that try arguments out go on at one; a `ValueError`, as every
    other wrong argument is.
    """


def check_keywords(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise `ArgumentError`, in Python's words, for a keyword that is no field of the rules.

    `given` are the keywords that are no arguments of `function`, whose names are suggested too.
    """
    fields = [field.name for field in dataclasses.fields(Rules)]
    for name in given:
        if name not in fields:
            arguments = list(inspect.signature(function).parameters)[1:-1]  # not self, **fields
            nearest = difflib.get_close_matches(name, [*arguments, *fields], n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise ArgumentError(
                f"{function.__qualname__}() got an unexpected keyword argument {quote(name)}{hint}"
            )


def parse_rules(text: str) -> Rules:
    """Return the rules of a command line: ``"istanbul,players=4"``, ``"players=3,target=101"``."""
    name, fields = "standard", {}
    for position, part in enumerate(part.strip() for part in text.split(",")):
        if "=" in part:
            field, value = part.split("=", 1)
            fields[field.strip()] = _parse_value(value.strip())
        elif position == 0:
            name = part
        else:
            raise ValueError(
                f"rules part is {quote(part)}; expected FIELD=VALUE after the preset's name"
            )
    return Rules.preset(name, **fields)


def rules_text(rules: Rules) -> str:
    """Return the fields that differ from the standard game, as `parse_rules` takes them."""
    standard = Rules().to_dict()
    changed = [
        f"{name}={value}" for name, value in rules.to_dict().items() if value != standard[name]
    ]
    return ",".join(changed) or "standard"


def _parse_value(text: str) -> Any:
    """Return an int, True, False or None where the text is one, else the text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text)
    except ValueError:
        return text
