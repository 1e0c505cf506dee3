"""Bit patterns of doubles and fused multiply-add inside numba kernels."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["bits_to_float", "float_to_bits", "fma"]

WORD = 64


@intrinsic
def float_to_bits(typingctx, x):
    """Return the 64 bits of a double as an int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(WORD))

    return types.int64(types.float64), codegen


@intrinsic
def bits_to_float(typingctx, x):
    """Return the double whose 64 bits are those of an int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def fma(typingctx, a, b, c):
    """Return a * b + c with one rounding, on every processor: the result never depends on how a loop was compiled."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen
