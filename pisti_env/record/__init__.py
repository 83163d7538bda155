"""Deals and matches as files: kept, checked, and replayed to any play.

A `Record` is an episode as data: the rules, who sat where, and of every deal the deck, the dealer,
the plays and the score. Many of them are one file, in TOML; `docs/records.md` describes it.

- `read_records`, `write_records`; `parse_records` and `records_text` for text.
- `record.check()` plays everything anew by the rules.
- `record.view(deal, play, seat)` is what a seat knew then, `record.replay(deal, play)` an
  environment that goes on from there.
- `record.seen_by(seat)` leaves out what a seat did not know.
- `raw_env.record()` is the record of an environment's episode so far.
"""

from pisti_env.record.fields import EVERYONE, Comment, Deal
from pisti_env.record.read import parse_records, read_records
from pisti_env.record.record import Record, record_of
from pisti_env.record.write import records_text, write_records

__all__ = [
    "EVERYONE",
    "Comment",
    "Deal",
    "Record",
    "parse_records",
    "read_records",
    "record_of",
    "records_text",
    "write_records",
]
