"""Thresholds of weighted points: by coverage under a shift of the rows, by harm, and by both.

Points have scores s_i, weights v_i and harms h_i, at most H; a new point has weight v. Let V = sum of v_i, and M(tau) =
sum of v_i h_i over s_i > tau. The threshold is the least tau, among the scores and minus infinity, with
M(tau) + v H <= alpha (V + v). The mean harm of misses is then at most alpha if the rows are exchangeable (v = 1:
conformal risk control) or shifted by known weights. With h = H = 1, it is weighted split conformal prediction.

The condition on tau reads v <= limit(tau) = (alpha V - M(tau)) / (H - alpha). Each limit is computed in whole numbers
and rounded down to a float; since v is a float, the comparison stays exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from udcp_dsl.predict.calibrate.checked import FloatArray


def as_written(x: float) -> Fraction:
    """A number of a spec as an exact fraction of the decimal that was written: 0.1 is 1/10."""
    return Fraction(repr(float(x)))


@dataclass(frozen=True, eq=False)
class Steps:
    """The threshold as a function of the new point's weight: taus[i] for the first weight_limits[i] >= weight."""

    weight_limits: FloatArray
    taus: FloatArray

    def tau(self, weights: FloatArray) -> FloatArray:
        """The thresholds of new points with these weights; infinite if no score is high enough."""
        return self.taus[np.searchsorted(self.weight_limits, weights, side="left")]


def steps(
    scores: FloatArray,
    alpha: Fraction,
    *,
    weights: FloatArray | None = None,
    harms: FloatArray | None = None,
    most: Fraction | None = None,
) -> Steps:
    """The steps for points in rising order of their scores. Default weights and harms are 1.

    >>> found = steps(np.array([1.0, 2.0, 3.0]), Fraction(1, 2), weights=np.array([1.0, 1.0, 2.0]))
    >>> found.weight_limits.tolist(), found.taus.tolist()
    ([0.0, 4.0], [2.0, 3.0, inf])
    """
    values, first = np.unique(scores, return_index=True)
    own, unit = _whole_weights(weights, scores.size)
    harm_of, bound, harm_unit = _whole_harms(harms, most)
    a, b = alpha.numerator, alpha.denominator
    total = sum(own)
    masses = own if harm_of is None else [v * harm_of[h] for v, h in zip(own, harms.tolist(), strict=True)]  # type: ignore[union-attr]  # harms come with harm_of
    # limit = (a D V - b M) / (unit (b H - a D)), with D the unit of harms; limits rise with tau, because M falls.
    denominator = unit * (b * bound - a * harm_unit)
    allowed = a * harm_unit * total
    starts = [*first.tolist(), scores.size]
    limits, taus = list[float](), list[float]()
    above, place = 0, scores.size
    for k in range(values.size - 1, -2, -1):  # from the highest score down, then minus infinity
        start = starts[k + 1]
        above += sum(masses[start:place])
        place = start
        left = allowed - b * above
        if left < 0:
            break
        limits.append(_floor(left, denominator))
        taus.append(float(values[k]) if k >= 0 else -math.inf)
    return Steps(np.array(limits[::-1]), np.array([*taus[::-1], math.inf]))


def _whole_weights(weights: FloatArray | None, n: int) -> tuple[list[int], int]:
    """The weights as integer multiples of 1 / unit, and the unit."""
    if weights is None:
        return [1] * n, 1
    ratios = [w.as_integer_ratio() for w in weights.tolist()]
    unit = max((q for _, q in ratios), default=1)  # powers of two, so the largest is a multiple of all
    return [p * (unit // q) for p, q in ratios], unit


def _whole_harms(harms: FloatArray | None, most: Fraction | None) -> tuple[dict[float, int] | None, int, int]:
    """A map from each harm to an integer multiple of 1 / unit, the largest harm of any label likewise, and the unit."""
    if harms is None or most is None:
        return None, 1, 1
    exact = {h: as_written(h) for h in np.unique(harms).tolist()}
    unit = math.lcm(most.denominator, *(x.denominator for x in exact.values()))
    return {h: int(x * unit) for h, x in exact.items()}, int(most * unit), unit


def _floor(numerator: int, denominator: int) -> float:
    """The largest float that is at most numerator / denominator, where denominator > 0."""
    try:
        nearest = numerator / denominator  # correctly rounded
    except OverflowError:
        return float(np.finfo(np.float64).max)
    p, q = nearest.as_integer_ratio()
    return math.nextafter(nearest, -math.inf) if p * denominator > numerator * q else nearest
