"""What a seat knows of a deal, and what it does not know dealt at random.

- `View`: all that a seat, or a spectator, knows, as plain data. Every display is drawn from one.
- `Known`: the part of a view that all else follows from, which an observation of the encoding
  `"history"` tells too; `fill_in` makes a table of it.
- `deal_unknown`: tables at which everything that a seat does not know is dealt anew, in compiled
  code; `unknown.py` shows how a player that searches uses it.
"""

from pisti_env.knowledge.known import (
    Contradiction,
    Known,
    before_turning_up,
    deck_of,
    exposed_places,
    fill_in,
    fill_in_deck,
    known_of_history,
    known_of_view,
    lay_out,
    seen_deck,
    start_from,
)
from pisti_env.knowledge.unknown import deal_unknown
from pisti_env.knowledge.view import Gain, LastPlay, View, hand_of, make_view

__all__ = [
    "Contradiction",
    "Gain",
    "Known",
    "LastPlay",
    "View",
    "before_turning_up",
    "deal_unknown",
    "deck_of",
    "exposed_places",
    "fill_in",
    "fill_in_deck",
    "hand_of",
    "known_of_history",
    "known_of_view",
    "lay_out",
    "make_view",
    "seen_deck",
    "start_from",
]
