"""What a seat knows, as numbers: an observation is an ordered list of named pieces.

`pieces` declares them, `encode` says where they are under some rules and fills arrays with them,
and `write` has the compiled functions that do it.
"""

from pisti_env.observation.encode import Encoder, decode, describe, encoder, state_encoder
from pisti_env.observation.pieces import (
    ENCODINGS,
    LAYOUT,
    MAX_NUMBERS,
    PIECES,
    Layout,
    LayoutRow,
    check_encoding,
)

__all__ = [
    "ENCODINGS",
    "LAYOUT",
    "MAX_NUMBERS",
    "PIECES",
    "Encoder",
    "Layout",
    "LayoutRow",
    "check_encoding",
    "decode",
    "describe",
    "encoder",
    "state_encoder",
]
