"""What a user gave is quoted in messages on one line, and never at length."""

import numpy as np
import pytest

from pisti_env import Rules, pisti_v0
from pisti_env.agents import load
from pisti_env.cards import parse_card
from pisti_env.quote import LONGEST, quote, shorten
from pisti_env.rules import parse_rules
from pisti_env.shuffle import check_seed

LONG = "x" * 10**6


class Unfriendly:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize("value", [7, "TD", [1, 2], None, {"a": 1}, np.int8(3), "two\nlines"])
def test_what_is_short_is_quoted_as_python_writes_it(value):
    assert quote(value) == repr(value)


def test_what_is_long_is_cut_in_its_middle():
    text = shorten(f"begin{LONG}end")
    assert text.startswith("begin") and "end (1000008 characters)" in text
    assert len(text) < LONGEST + 40
    assert shorten("a\n  b\r\nc") == "a b c"
    assert len(shorten(" " * 10**7)) < LONGEST + 40  # at once


def test_what_cannot_be_shown_is_named():
    nested: list = []
    for _ in range(10**5):
        nested = [nested]
    assert quote(nested) == "a list that cannot be shown"
    assert quote(Unfriendly()) == "a Unfriendly that cannot be shown"
    assert quote(-(10**5000)) == "an int of about 5000 digits"


@pytest.mark.parametrize(
    "give",
    [
        lambda: Rules.preset(LONG),
        lambda: Rules(majority=LONG),
        lambda: Rules(target=10**5000),
        lambda: Rules.from_dict({LONG: 1}),
        lambda: parse_rules(f"standard,{LONG}"),
        lambda: parse_card(LONG),
        lambda: check_seed(10**5000),
        lambda: load(LONG),
        lambda: load("greedy", device=LONG),
        lambda: pisti_v0.env(observation=LONG),
        lambda: pisti_v0.raw_env().reset(options={LONG: 1}),
        lambda: pisti_v0.raw_env().reset(options={"deck": [LONG]}),
        lambda: pisti_v0.raw_env().reset(options={"deck": [0] * 10**5}),
    ],
)
def test_errors_do_not_quote_at_length(give):
    with pytest.raises(ValueError) as error:
        give()
    assert len(str(error.value)) < 1000
