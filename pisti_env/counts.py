"""How many there are of each kind, as one number; and such counts as numbers of an observation.

Four bits for each of the 15 kinds: copying, clearing and adding are one operation then. No kind has
more than 8 cards, in two packs.
"""

from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from pisti_env.cards import KIND_OF_CARD, NUM_KINDS
from pisti_env.compile import at, inlined

KIND_BITS = 4
KIND_MASK = (1 << KIND_BITS) - 1
ONE_OF_EACH = sum(1 << (KIND_BITS * kind) for kind in range(NUM_KINDS))
# By card; the last one, at NO_CARD, is no card of any kind.
ONE_OF_CARD = np.append(np.left_shift(1, KIND_BITS * KIND_OF_CARD.astype(np.int64)), 0)


@inlined
def count_of(kind, kinds):
    """Return how many there are of a kind."""
    return (kinds >> (KIND_BITS * kind)) & KIND_MASK


@inlined
def present(kinds):
    """Return 1 for each kind of which there are any."""
    kinds |= kinds >> 2
    return (kinds | (kinds >> 1)) & ONE_OF_EACH


@inlined
def number(count, scale, row):
    """Return a count, 0 or more, as a number of `row`: for float32 times the scale."""
    return row.dtype.type(count) * scale


@inlined
def write_eight(kinds, scale, row, start):
    """Set `row[start : start + 8]` to the `number` of each of the eight lowest kinds."""
    for kind in range(8):
        row[at(start + kind)] = number(count_of(kind, kinds), scale, row)


@intrinsic
def _number(typing, count, scale, row):
    """`number` in LLVM's words, since Numba cannot say that ints need no scale."""

    def write(context, builder, signature, arguments):
        count, scale, _ = arguments
        if isinstance(signature.return_type, types.Float):
            return builder.fmul(builder.sitofp(count, scale.type), scale)
        return context.cast(builder, count, signature.args[0], signature.return_type)

    return scale(count, scale, row), write


@intrinsic
def _write_eight(typing, kinds, scale, row, start):
    """`write_eight` in LLVM's words: of the loop above it makes ten times what is needed. Does not
    look whether it writes within the row."""
    if row.dtype != scale or row.layout != "C":
        return None

    def write(context, builder, signature, arguments):
        kinds, scale, row, start = arguments
        byte, word = ir.IntType(8), ir.IntType(32)
        pairs = builder.bitcast(builder.trunc(kinds, word), ir.VectorType(byte, 4))
        evens = builder.and_(pairs, _vector(byte, [KIND_MASK] * 4))
        odds = builder.lshr(pairs, _vector(byte, [KIND_BITS] * 4))
        eight = builder.shuffle_vector(evens, odds, _vector(word, [0, 4, 1, 5, 2, 6, 3, 7]))
        if isinstance(signature.args[1], types.Float):
            eight = builder.uitofp(eight, ir.VectorType(scale.type, 8))
            nothing = ir.Constant(eight.type, ir.Undefined)
            scales = builder.insert_element(nothing, scale, word(0))
            scales = builder.shuffle_vector(scales, nothing, _vector(word, [0] * 8))
            eight = builder.fmul(eight, scales)
        array = context.make_array(signature.args[2])(context, builder, row)
        place = builder.bitcast(builder.gep(array.data, [start]), eight.type.as_pointer())
        builder.store(eight, place, align=1)

    return types.void(types.int64, scale, row, types.int64), write


def _vector(element: ir.Type, numbers: Sequence[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(element, len(numbers)), numbers)


# Compiled functions alone can call these.
if not (config.DISABLE_JIT or config.BOUNDSCHECK):  # type: ignore[attr-defined]
    number, write_eight = _number, _write_eight


@inlined
def write_fifteen(kinds, scale, row, start):
    """Set `row[start : start + 15]` to the `number` of every kind: the first eight, the last."""
    second = NUM_KINDS - 8
    write_eight(kinds, scale, row, start)
    write_eight(kinds >> (KIND_BITS * second), scale, row, start + second)
