"""Arrays of numbers of about 106 bits, each an unevaluated sum high + low: `double_double` for whole arrays, in numpy.

Nothing here is compiled, so that losses of few labels are scored without waiting for a compiler.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Floats

Doubles = tuple[Floats, Floats]

_SPLIT = 134217729.0
# Above this the halves of `two_product` overflow.
LARGE = 2.0**990


def two_sum(a: Floats, b: Floats) -> Doubles:
    """a + b, exactly."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def two_product(a: Floats, b: Floats) -> Doubles:
    """a * b, exactly, by halves of 26 bits."""
    high = a * b
    t = _SPLIT * a
    a1 = t - (t - a)
    a2 = a - a1
    t = _SPLIT * b
    b1 = t - (t - b)
    b2 = b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def plus(x: Doubles, y: Doubles) -> Doubles:
    """The sum of two arrays of such numbers."""
    s, e = two_sum(x[0], y[0])
    t, f = two_sum(x[1], y[1])
    s, e = two_sum(s, e + t)
    return two_sum(s, e + f)


def minus(x: Doubles, y: Doubles) -> Doubles:
    """The difference of two arrays of such numbers."""
    return plus(x, (-y[0], -y[1]))


def times(x: Doubles, y: Doubles) -> Doubles:
    """The product of two arrays of such numbers."""
    p, e = two_product(x[0], y[0])
    return two_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def quotient(x: Doubles, y: Doubles) -> Doubles:
    """The quotient of two arrays of such numbers. Its high part is the quotient rounded to a float, or infinite if too
    large."""
    with np.errstate(over="ignore", invalid="ignore"):
        first = x[0] / y[0]
        large = np.abs(first) > LARGE
        near = np.where(large, 0.0, first)
        rest = minus(x, times(y, (near, np.zeros_like(near))))
        more = (rest[0] + rest[1]) / y[0]
        high, low = two_sum(near, np.where(large | ~np.isfinite(more), 0.0, more))
    return np.where(large, first, high), np.where(large, 0.0, low)
