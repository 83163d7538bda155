"""What a search is called: `search:pisti-2p,samples=128`."""

from pisti_env.quote import quote
from pisti_env.search.player import RESTRAINED, Settings

DEFAULT_POLICY = "counting"
OPTION = ",samples="
MOST_SAMPLES = 16_384


def is_search(name: str) -> bool:
    """Return whether a name is that of a search."""
    return name.partition(":")[0].partition(",")[0] == "search"


def read_name(name: str) -> tuple[str, Settings]:
    """Return the name of the policy that a search thinks with, "counting" if none is named, and how
    it thinks. Raises `ValueError` for a name of another form."""
    named, comma, samples = name.removeprefix("search").partition(OPTION)
    policy = named.removeprefix(":") or DEFAULT_POLICY
    if (named and named[0] != ":") or named == ":":
        raise ValueError(
            f"agent is {quote(name)}; expected search:POLICY or search:POLICY{OPTION}N"
        )
    if is_search(policy):
        raise ValueError(f"agent is {quote(name)}; expected a search with a policy, not a search")
    if not comma:
        return policy, RESTRAINED
    return policy, RESTRAINED._replace(samples=read_samples(samples))


def read_samples(text: str) -> int:
    """Return a number of worlds; raise `ValueError` for any other text."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_SAMPLES:
        return int(text[:9])
    raise ValueError(f"samples is {quote(text)}; expected an int from 1 to {MOST_SAMPLES}")
