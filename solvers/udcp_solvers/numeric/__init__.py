"""Numbers: compiled loops over rows, exact sums, orders of a row, scores by the mass that remains.

Terms

- kernel: a compiled loop over the rows start .. stop - 1 (`compiled`).
- limb: 32 bits of an exact sum (`exact_sum`).
- high, low: the two floats whose sum is a number of 106 bits (`double_double`); in a bisection, its ends.
- rem: the exact mass of the labels after one in an order, rounded once (`mass`, by falling p; `remaining`, any order).
"""
