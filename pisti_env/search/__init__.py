"""Players that think before they play: `load("search:pisti-2p")` makes one, see `Search`."""

from pisti_env.search.name import read_name
from pisti_env.search.player import RESTRAINED, UNRESTRAINED, Search, Settings, Thoughts

__all__ = ["RESTRAINED", "UNRESTRAINED", "Search", "Settings", "Thoughts", "read_name"]
