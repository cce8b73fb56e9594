"""Numerics: compiled loops over rows, exact sums, the order of a row by p, scores by the remaining mass.

Terms

- kernel: a compiled loop over the rows start .. stop - 1 (`compiled`).
- limb: 32 bits of an exact sum (`exact_sum`).
- high, low: the two floats whose sum is a number of 106 bits (`double_double`); in a bisection, its ends.
- rest: the exact mass after a label in an order plus a share of its own p, rounded once (`mass`: the order by falling
  p; `remaining`: any order).
"""
