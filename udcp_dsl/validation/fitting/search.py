"""Fit parameters by a bounded search, if the loss is not affine in them.

It tries points spread over the ranges, then ever shorter steps from the best point. A solution that it finds is valid,
since every point is evaluated; finding none proves nothing, and the ranges cover only the points found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udcp_dsl.diagnostics import SpecError
from udcp_dsl.expression.domain import Floats
from udcp_dsl.loss import Loss
from udcp_dsl.validation.cases import at_values
from udcp_dsl.validation.fitting.comparisons import Comparison, Ranges
from udcp_dsl.validation.fitting.polytope import comparison_scores

_SPREAD, _STEPS = 250, 250
_SHORTEST = 1e-4  # size of the last steps, in units of the ranges


@dataclass(frozen=True)
class Searched:
    """The best point, its smallest score (a relative margin, above 0 where all hold), and the points where all hold."""

    x: Floats
    score: float
    solutions: Floats  # (m, d)


def searched(
    loss: Loss, comparisons: Sequence[Comparison], ranges: Ranges, start: Floats, rng: np.random.Generator
) -> Searched:
    """Maximise the smallest margin; of equally good points, take the one nearest to the start."""
    lows, highs = (np.array(ends) for ends in zip(*ranges.values(), strict=True))
    widths = highs - lows
    points: list[Floats] = []
    scores: list[float] = []

    def try_at(x: Floats) -> float:
        points.append(x)
        scores.append(score_at(loss, comparisons, ranges, x))
        return scores[-1]

    best, best_x = try_at(start), start
    strata = np.stack([rng.permutation(_SPREAD) for _ in ranges], axis=1)  # one point in each slice of each range
    for u in (strata + rng.random(strata.shape)) / _SPREAD:
        if (score := try_at(lows + widths * u)) > best:
            best, best_x = score, points[-1]
    for step in np.geomspace(0.3, _SHORTEST, _STEPS):
        moved = rng.random(len(ranges)) < 0.5
        moved[rng.integers(len(ranges))] = True
        x = np.clip(best_x + step * widths * rng.standard_normal(len(ranges)) * moved, lows, highs)
        if (score := try_at(x)) > best:
            best, best_x = score, x
    found, scored = np.stack(points), np.array(scores)
    tied = np.flatnonzero(scored >= best - 1e-12)
    nearest = tied[np.argmin((np.abs(found[tied] - start) / widths).sum(axis=1))]
    return Searched(found[nearest], best, found[scored > 0])


def sides_at(loss: Loss, comparisons: Sequence[Comparison], params: dict[str, float]) -> tuple[Floats, Floats]:
    """The costs of the higher and of the lower side of each comparison at these parameters."""
    made: dict[tuple[tuple[str, float], ...], Loss] = {}

    def cost(x: Comparison, side: object) -> float:
        if isinstance(side, float):
            return side
        key = tuple(sorted(x.params.items()))
        if key not in made:
            made[key] = at_values(loss, {**params, **x.params})
        return made[key](side)  # type: ignore[arg-type]

    pairs = [(cost(x, x.higher), cost(x, x.lower)) for x in comparisons]
    a, b = np.array(pairs).T
    return a, b


def score_at(loss: Loss, comparisons: Sequence[Comparison], ranges: Ranges, x: Floats) -> float:
    """The smallest score of the comparisons at x."""
    try:
        a, b = sides_at(loss, comparisons, dict(zip(ranges, x.tolist(), strict=True)))
    except SpecError:  # a table that is not finite at these values
        return -np.inf
    return float(comparison_scores(comparisons, a, b).min())
