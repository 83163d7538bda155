"""How many there are of each kind, as one number.

Four bits for each of the 15 kinds: copying, clearing and adding are one operation then. No kind has
more than 8 cards, in two packs.
"""

import numpy as np

from pisti_env.cards import KIND_OF_CARD
from pisti_env.compile import inlined

KIND_BITS = 4
KIND_MASK = (1 << KIND_BITS) - 1
# By card; the last one, at NO_CARD, is no card of any kind.
ONE_OF_CARD = np.append(np.left_shift(1, KIND_BITS * KIND_OF_CARD.astype(np.int64)), 0)
# The two counts that a byte holds, the lower kind's first, by the byte.
COUNTS_OF_BYTE = np.array([[byte & KIND_MASK, byte >> KIND_BITS] for byte in range(256)])
COUNTS_OF_BYTE.setflags(write=False)


@inlined
def count_of(kind, kinds):
    """Return how many there are of a kind."""
    return (kinds >> (KIND_BITS * kind)) & KIND_MASK
