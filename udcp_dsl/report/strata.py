"""Strata over repeated splits: one point for each stratum, and an interval that repetition does not shrink.

The splits draw on the same rows again and again, so their strata must not be added up as if they were fresh points.
The coverage shown is the mean over the splits, weighted by points; its interval is the exact one (Clopper-Pearson) of a
single test fold with that coverage and the mean number of points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.measure.evaluate import QUARTERS, Measures, Stratum
from udcp_dsl.predict.calibrate.levels import clopper_pearson

if TYPE_CHECKING:
    from udcp_dsl.measure.comparison import Comparison

FEWEST = 5  # fewest points of a fold for a coverage worth drawing


@dataclass(frozen=True)
class Point:
    """A stratum over the splits; `n` is the mean number of its points in a test fold."""

    name: str
    n: float
    coverage: float
    low: float
    high: float
    cost: float
    true_probability: float


def evaluations(comparison: Comparison, loss: str, alpha: Fraction) -> dict[str, list[Measures]]:
    """The measures by oracle, one per split."""
    found: dict[str, list[Measures]] = {}
    for run in comparison.runs:
        if run.loss == loss and run.alpha == alpha:
            found.setdefault(run.oracle, []).append(run.evaluation)
    return found


def by_size(splits: Sequence[Measures]) -> list[Point]:
    """The bins of set size, smallest first."""
    found = _pooled(split.by_size for split in splits)
    return sorted(found, key=lambda point: first_size(point.name))


def first_size(bin: str) -> int:
    """The smallest size in a bin such as 10-49 or 100+."""
    return int(re.split(r"\D", bin)[0])


def by_difficulty(splits: Sequence[Measures]) -> list[Point]:
    """The quarters by highest probability, hardest first, matched by place, as bounds differ from split to split.

    Splits in which ties leave fewer than four quarters are left out.
    """
    whole = [split.by_difficulty for split in splits if len(split.by_difficulty) == len(QUARTERS)]
    return _pooled(whole, lambda place, stratum: QUARTERS[place])


def by_class(splits: Sequence[Measures]) -> list[Point]:
    return _pooled(split.by_class for split in splits)


def by_group(splits: Sequence[Measures]) -> list[Point]:
    return _pooled(split.by_group for split in splits)


def _pooled(
    splits: Iterable[Sequence[Stratum]], name: Callable[[int, Stratum], str] = lambda place, stratum: stratum.name
) -> list[Point]:
    found: dict[str, list[Stratum]] = {}
    for split in splits:
        for place, stratum in enumerate(split):
            found.setdefault(name(place, stratum), []).append(stratum)
    groups = list(found.values())
    total = np.array([sum(s.n for s in parts) for parts in groups], dtype=np.float64)
    n = total / np.array([len(parts) for parts in groups])
    coverage = np.array([sum(s.covered for s in parts) for parts in groups]) / total
    low, high = clopper_pearson(coverage * n, n)
    cost = np.array([sum(s.n * s.mean_cost for s in parts) for parts in groups]) / total
    p = np.array([sum(s.n * s.mean_true_probability for s in parts) for parts in groups]) / total
    # If the covered count is not an integer, the interval may just miss the coverage itself.
    columns = (n, coverage, np.minimum(low, coverage), np.maximum(high, coverage), cost, p)
    return [Point(key, *row) for key, row in zip(found, np.stack(columns, axis=1).tolist(), strict=True)]
