"""Players that think before they play: `load("search:pisti-2p")` makes one, see `Search`."""

from pisti_env.search.name import read_name
from pisti_env.search.player import (
    RESTRAINED,
    TRUSTING,
    Search,
    Settings,
    Thoughts,
    best_response,
)

__all__ = [
    "RESTRAINED",
    "TRUSTING",
    "Search",
    "Settings",
    "Thoughts",
    "best_response",
    "read_name",
]
