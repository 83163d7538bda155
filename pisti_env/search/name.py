"""What a search is called: `search@128:pisti-2p`."""

import re

from pisti_env.quote import quote
from pisti_env.search.player import MOST_SAMPLES, RESTRAINED, Settings

DEFAULT_POLICY = "counting"

_FORM = re.compile(r"search(?:@(?P<samples>[^:]*))?(?::(?P<policy>.+))?", re.DOTALL)


def is_search(name: str) -> bool:
    """Return whether a name is that of a search."""
    return re.match(r"search(?![^@:])", name) is not None


def read_name(name: str) -> tuple[str, Settings]:
    """Return the name of the policy that a search thinks with, "counting" if none is named, and how
    it thinks. Raises `ValueError` for a name of another form."""
    found = _FORM.fullmatch(name)
    if found is None:
        raise ValueError(f"agent is {quote(name)}; expected search:POLICY or search@N:POLICY")
    policy = found["policy"] or DEFAULT_POLICY
    if is_search(policy):
        raise ValueError(f"agent is {quote(name)}; expected a search with a policy, not a search")
    if found["samples"] is None:
        return policy, RESTRAINED
    return policy, RESTRAINED._replace(samples=read_samples(found["samples"]))


def read_samples(text: str) -> int:
    """Return a number of worlds; raise `ValueError` for any other text."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_SAMPLES:
        return int(text[:9])
    raise ValueError(f"samples is {quote(text)}; expected an int from 1 to {MOST_SAMPLES}")
