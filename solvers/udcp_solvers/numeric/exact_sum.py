"""Exact sums of nonnegative floats, rounded once at the end: what `math.fsum` gives, compiled.

A sum is stored as integers: limb i counts units of 2^(32 (i - 2) - 1074), and 2^-1074 divides every float64. Each value
adds three pieces of at most 32 bits, so 2^31 values fit before a limb overflows. Exact sums do not depend on the order
of summation: labels may be summed in any order, and an oracle may stop early and still give the same bits.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.arrays import Ints
from udcp_solvers.numeric.compiled import jit

# Every finite float64 fits: the highest starts at limb 2045 // 32 + 2 = 65, and carries go 3 further. Two limbs of
# zeros lie below the lowest, so that rounding can always read three.
LIMBS = 72
_LOW32 = 0xFFFFFFFF

Limbs = Ints


@jit
def limb_of(x: float) -> int:
    """The lowest limb that x touches; the highest that a sum of such x reaches is 3 above."""
    exponent = int(np.float64(x).view(np.int64) >> 52) & 0x7FF
    return ((max(exponent, 1) - 1) >> 5) + 2


@jit
def add(total: Limbs, x: float, times: int) -> None:
    """total += times * x, for finite x >= 0."""
    bits = int(np.float64(x).view(np.int64))
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent > 0:
        mantissa |= 1 << 52
        exponent -= 1
    limb = (exponent >> 5) + 2
    offset = exponent & 31
    high = mantissa >> (32 - offset)
    total[limb] += ((mantissa << offset) & _LOW32) * times
    total[limb + 1] += (high & _LOW32) * times
    total[limb + 2] += (high >> 32) * times


@jit
def rounded(total: Limbs, low: int, high: int) -> float:
    """The float64 nearest to the total (ties to even), whose limbs lie in low .. high; propagates carries in place."""
    carry = 0
    for i in range(low, high + 1):
        value = total[i] + carry
        total[i] = value & _LOW32
        carry = value >> 32
    top = high
    while top > low and total[top] == 0:
        top -= 1
    # 96 bits: the first 52 are exact in `head`; the next 44 and one bit for all that lies below are exact in `tail`.
    # The top limb is not zero, so `head` has more than 20 bits, the last bit lies far below where rounding happens,
    # and the one addition rounds correctly. A result below 2^-1022 is a multiple of 2^-1074, hence exact.
    middle = total[top - 1]
    rest = 0
    for i in range(low, top - 2):
        rest |= total[i]
    head = (total[top] << 20) | (middle >> 12)
    tail = ((middle & 0xFFF) << 32 | total[top - 2]) << 1 | (1 if rest != 0 else 0)
    return math.ldexp(np.float64(head) * 2.0**45 + np.float64(tail), 32 * (top - 4) - 1075)
