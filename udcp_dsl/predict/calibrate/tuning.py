"""Choose lambda on separate folds, so that the final threshold keeps its coverage.

Thresholds come from a first fold, mean costs at these thresholds from a second, and the caller sets the final threshold
on a third fold that was not used for any choice. Functions of the caller compute the thresholds and the mean costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate.checked import RESAVE, IntArray, decode, encode, fields

DEFAULT_GRID = (0.001, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Tuning:
    """The mean cost of each lambda of the grid on the second fold (n rows), and the best lambda.

    `lo` and `hi` bound the cost of every set; `delta` is the probability with which the bound `excess` may fail.
    """

    grid: tuple[float, ...]
    thresholds: tuple[float, ...]
    mean_costs: tuple[float, ...]
    n: int
    lo: float
    hi: float
    delta: float = 0.05

    def __post_init__(self) -> None:
        if not self.grid or len(set(self.grid)) < len(self.grid) or not all(map(math.isfinite, self.grid)):
            raise InputError(
                f"the grid of lambda is {list(self.grid)}: give at least one finite number, each only once"
            )
        if not len(self.grid) == len(self.thresholds) == len(self.mean_costs):
            raise InputError("a tuning needs a threshold and a mean cost for each lambda of its grid")
        if self.n < 1 or not 0 < self.delta < 1 or not self.lo <= self.hi:
            raise InputError(
                f"n is {self.n}, delta {self.delta}, costs from {self.lo} to {self.hi}: give at least one row, delta "
                "strictly between 0 and 1, and costs in rising order"
            )
        slack = 1e-9 * max([1.0, *(abs(x) for x in (self.lo, self.hi) if math.isfinite(x))])  # a mean is rounded
        for lam, cost in zip(self.grid, self.mean_costs, strict=True):
            if not (math.isfinite(cost) and self.lo - slack <= cost <= self.hi + slack):
                raise InputError(
                    f"the mean cost at lambda {lam} is {cost}, outside [{self.lo}, {self.hi}]: "
                    "give the true range of the cost"
                )

    @property
    def best(self) -> float:
        """The lambda with the lowest mean cost; the smallest of several."""
        return min(zip(self.mean_costs, self.grid, strict=True))[1]

    @property
    def excess(self) -> float:
        """By how much `best` may exceed the grid's least expected cost, with probability 1 - delta (Proposition 1 of
        arXiv 2410.01767).

        Fix the first fold, so that every lambda has its threshold. The costs C_1 .. C_n of its sets on the second fold
        are independent draws from [lo, hi]; let B = hi - lo. By Hoeffding, their mean is within e of the expectation
        except with probability 2 exp(-2 n e^2 / B^2); for all m lambdas at once, except with probability delta, if
        e = B sqrt(log(2m / delta) / (2n)). Then, with * the lambda of least expected cost,
        E[best] <= mean(best) + e <= mean(*) + e <= E[*] + 2e, so `excess` = 2e.

        The bound concerns the *choice*, at the thresholds of the first fold: not the cost at the final threshold of the
        third fold, nor a lambda off the grid. Above B it says nothing.
        """
        return 2 * (self.hi - self.lo) * math.sqrt(math.log(2 * len(self.grid) / self.delta) / (2 * self.n))

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` restores an equal value."""
        return {
            "grid": list(self.grid),
            "thresholds": encode(self.thresholds),
            "mean_costs": list(self.mean_costs),
            "n": self.n,
            "range": encode((self.lo, self.hi)),
            "delta": self.delta,
        }

    @classmethod
    def from_dict(cls, data: object) -> Tuning:
        """Inverse of `as_dict`; refuses anything else."""
        d = fields(data, ("grid", "thresholds", "mean_costs", "n", "range", "delta"), "tuning")
        grid, thresholds, costs, bounds, delta = (
            decode(x, "tuning") for x in (d["grid"], d["thresholds"], d["mean_costs"], d["range"], [d["delta"]])
        )
        if isinstance(d["n"], bool) or not isinstance(d["n"], int) or len(bounds) != 2:
            raise InputError(f"tuning: n or range is damaged; {RESAVE}")
        return cls(tuple(grid), tuple(thresholds), tuple(costs), d["n"], bounds[0], bounds[1], delta[0])


def tune(
    grid: Sequence[float],
    threshold_of: Callable[[float], float],
    mean_cost_of: Callable[[float, float], float],
    *,
    n: int,
    cost_range: tuple[float, float],
    delta: float = 0.05,
) -> Tuning:
    """Mean cost of each lambda: `threshold_of(lam)` on a first fold, `mean_cost_of(lam, tau)` on n rows of a second.

    Set the final threshold, with `.best`, on a third fold that neither function has used. `cost_range` is [lo, hi], the
    range of the cost of a set.

    >>> t = tune([0.1, 1], lambda lam: lam, lambda lam, tau: 1 - lam / 2, n=10, cost_range=(0, 1))
    >>> t.best, t.n, t.mean_costs
    (1.0, 10, (0.95, 0.5))
    """
    lambdas = tuple(float(lam) for lam in grid)
    thresholds = tuple(float(threshold_of(lam)) for lam in lambdas)
    costs = tuple(float(mean_cost_of(lam, tau)) for lam, tau in zip(lambdas, thresholds, strict=True))
    return Tuning(lambdas, thresholds, costs, n, float(cost_range[0]), float(cost_range[1]), float(delta))


def three_folds(n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Split the rows 0 .. n-1 into three random folds whose sizes differ by at most one; each is in rising order.

    >>> [fold.size for fold in three_folds(11, np.random.default_rng(0))]
    [4, 4, 3]
    """
    if n < 3:
        raise InputError(f"{n} calibration rows cannot be split into three folds: give more rows, or a fixed lambda")
    a, b, c = (np.sort(fold) for fold in np.array_split(rng.permutation(n), 3))
    return a, b, c
