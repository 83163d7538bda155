"""The run with bounds checks really has them.

Compiled code without checks would be taken from a shared cache in silence, so the kernel here is
cached, and every run compiles it.
"""

import numba
import numpy as np
import pytest

from pisti_env.compile import compiled


@compiled
def read(array: np.ndarray, index: int) -> int:
    return array[index]


def test_a_read_within_bounds():
    assert read(np.arange(3), 2) == 2


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="only in `make test-bounds`")
def test_a_read_beyond_the_end_raises():
    with pytest.raises(IndexError):
        read(np.arange(3), 3)
