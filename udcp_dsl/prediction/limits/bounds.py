"""Upper bounds for the mean of a limit's expression over new rows.

A bound from n rows is too low with probability at most `error`. For an indicator, it is exact (Clopper-Pearson): the
largest mean at which so few ones, or fewer, have that probability. For values in [lo, hi], it is that of Hoeffding and
Bentkus (Bates et al. 2021): with h the relative entropy of two coins, a mean r in [0, 1] is refuted by an observed mean
m < r of n values if min(exp(-n h(m, r)), e P(Bin(n, r) <= ceil(n m))) is at most the error; the bound is the least mean
that is refuted together with all means above it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from udcp_dsl.expression.limit import Limit

_HALVINGS = 60


def upper_bound(limit: Limit, values: npt.NDArray[np.float64], error: float) -> float:
    """The bound for the mean of a limit's expression, from its values on rows that were used for no choice."""
    if limit.indicator:
        return clopper_pearson_above(int(np.count_nonzero(values > 0.5)), len(values), error)
    low, high = limit.facts.interval
    if high <= low:
        return high
    shares = (values - low) / (high - low)
    mean = float(np.clip(shares.mean(), 0.0, 1.0))
    return low + (high - low) * hoeffding_bentkus_above(mean, len(values), error)


def clopper_pearson_above(ones: int, n: int, error: float) -> float:
    """The exact upper bound for a proportion, from the number of ones among n.

    >>> round(clopper_pearson_above(0, 10, 0.05), 4), clopper_pearson_above(10, 10, 0.05)
    (0.2589, 1.0)
    """
    from scipy.stats import beta  # slow to import

    return 1.0 if ones == n else float(beta.isf(error, ones + 1, n - ones))


def hoeffding_bentkus_above(mean: float, n: int, error: float) -> float:
    """The upper bound for the mean of values in [0, 1], from their observed mean.

    >>> round(hoeffding_bentkus_above(0.1, 1000, 0.05), 4), hoeffding_bentkus_above(1.0, 5, 0.05)
    (0.1216, 1.0)
    """
    from scipy.stats import binom  # slow to import

    def chance(r: float) -> float:
        entropy = _relative_entropy(mean, r)
        tail = math.e * float(binom.cdf(math.ceil(n * mean - 1e-9), n, r))
        return min(math.exp(-n * entropy), tail)

    low, high = mean, 1.0
    if mean >= 1.0 or chance(1.0) > error:
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if chance(middle) <= error:
            high = middle
        else:
            low = middle
    return high


def _relative_entropy(m: float, r: float) -> float:
    if r <= m:
        return 0.0
    first = m * math.log(m / r) if m > 0 else 0.0
    if r >= 1.0:
        return math.inf
    return first + ((1 - m) * math.log((1 - m) / (1 - r)) if m < 1 else 0.0)
