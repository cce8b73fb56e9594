"""Numbers of about 106 bits as unevaluated sums of two floats: high + low, |low| <= ulp(high) / 2.

Sums of probabilities and costs are exact in them (unless their range is extreme), and so are products of two floats.
Comparisons of prices by cross-multiplication are then as good as in rationals.
"""

from __future__ import annotations

from udcp_solvers.numeric.compiled import jit

# A difference below this, relative to its terms, is only rounding: the values are equal.
EQUAL = 2.0**-96

# Above this the halves of `two_product` overflow.
LARGE = 2.0**990

Double = tuple[float, float]


@jit
def two_sum(a: float, b: float) -> Double:
    """a + b, exactly."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


@jit
def two_product(a: float, b: float) -> Double:
    """a * b, exactly (by halves of 26 bits, as there may be no fused multiply-add)."""
    high = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@jit
def plus(high: float, low: float, x: float) -> Double:
    """(high + low) + x for a float x."""
    s, e = two_sum(high, x)
    return two_sum(s, e + low)


@jit
def minus(a: float, a_low: float, b: float, b_low: float) -> Double:
    """The difference of two numbers of 106 bits."""
    s, e = two_sum(a, -b)
    t, f = two_sum(a_low, -b_low)
    s, e = two_sum(s, e + t)
    return two_sum(s, e + f)


@jit
def times(a: float, a_low: float, b: float, b_low: float) -> Double:
    """The product of two numbers of 106 bits."""
    p, e = two_product(a, b)
    return two_sum(p, e + (a * b_low + a_low * b))


@jit
def ratio(a: float, a_low: float, b: float, b_low: float) -> float:
    """a / b, rounded to a float."""
    q = a / b
    if abs(q) > LARGE:
        return q
    p, p_low = times(b, b_low, q, 0.0)
    rest, rest_low = minus(a, a_low, p, p_low)
    return q + (rest + rest_low) / b


@jit
def sign_of_cross(
    a: float, a_low: float, b: float, b_low: float, c: float, c_low: float, d: float, d_low: float
) -> int:
    """The sign of a b - c d; 0 where they are equal."""
    p, p_low = times(a, a_low, b, b_low)
    q, q_low = times(c, c_low, d, d_low)
    gap, _ = minus(p, p_low, q, q_low)
    if abs(gap) <= EQUAL * (abs(p) + abs(q)):
        return 0
    return 1 if gap > 0.0 else -1
