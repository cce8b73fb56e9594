"""The values that an expression can take, so that a comparison knows the nearest ones on both sides of its threshold.

A grid is a finite list of values, or all values offset + integer * step. It contains all values that are taken, and
possibly others. Numbers of a spec are close to fractions with a small denominator (0.1, 2.5, 1/3), and the grid uses
these fractions: sums of them have an exact step, sums of floats only nearly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import ceil, gcd, isfinite

import numpy as np

from udcp_dsl.expression.domain import Floats

# Longer lists are replaced by offset + integer * step.
_LONGEST = 1 << 13
_DENOMINATOR = 10**6
_MOST_FRACTIONS = 50_000  # different values whose common step is looked for, at about ten microseconds each
# Relative to max(1, |value|): far above the rounding error of a sum, far below the tolerance of comparisons, 1e-9.
ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Grid:
    """`points`, sorted; if that is None, all values offset + integer * step."""

    points: Floats | None
    offset: Fraction = Fraction(0)
    step: Fraction = Fraction(0)

    @staticmethod
    def of(points: Iterable[float] | Floats) -> Grid:
        return Grid(_distinct(np.asarray(points, dtype=np.float64)))

    @staticmethod
    def multiples(step: float, most: int) -> Grid | None:
        """0, step, 2 step, ..., most * step; if these are too many, all multiples of step."""
        return Grid.of(step * np.arange(most + 1)) if most < _LONGEST else _stepped(Fraction(0), [step])

    @staticmethod
    def sums(weights: Floats) -> Grid | None:
        """The sums of all subsets of the weights."""
        points = np.zeros(1)
        for weight in weights[weights != 0]:
            points = _distinct(np.concatenate([points, points + weight]))
            if len(points) > _LONGEST:
                return _stepped(Fraction(0), weights.tolist())
        return Grid(points)

    def plus(self, other: Grid) -> Grid | None:
        a, b = self.points, other.points
        if a is not None and b is not None and len(a) * len(b) <= _LONGEST:
            return Grid(_distinct(np.add.outer(a, b).ravel()))
        left, right = self.steps(), other.steps()
        if left is None or right is None:
            return None
        return Grid(None, left.offset + right.offset, _common([left.step, right.step]))

    def times(self, factor: float) -> Grid | None:
        if self.points is not None:
            return Grid.of(factor * self.points)
        exact = _fraction(factor)
        if exact is None:
            return None
        return Grid(None, self.offset * exact, abs(self.step * exact)) if exact else Grid.of([0.0])

    def union(self, other: Grid) -> Grid | None:
        """A grid that contains the values of both."""
        a, b = self.points, other.points
        if a is not None and b is not None and len(a) + len(b) <= _LONGEST:
            return Grid(_distinct(np.concatenate([a, b])))
        left, right = self.steps(), other.steps()
        if left is None or right is None:
            return None
        return Grid(None, left.offset, _common([left.step, right.step, right.offset - left.offset]))

    def neighbours_of(self, cut: float) -> tuple[float, float] | None:
        """The largest value below the cut and the smallest above it (infinite where there is none).

        None if a value is so near to the cut that rounding decides on which side it is.
        """
        if self.points is None:
            high = self.offset + self.step * ceil((Fraction(cut) - self.offset) / self.step)
            below, above = float(high - self.step), float(high)
        else:
            i = int(np.searchsorted(self.points, cut))
            below = float(self.points[i - 1]) if i else -np.inf
            above = float(self.points[i]) if i < len(self.points) else np.inf
        near = ROUNDING * max(1.0, abs(cut))
        return (below, above) if above - cut > near and cut - below > near else None

    def steps(self) -> Grid | None:
        """The grid as offset and step; None if the values have no common step."""
        if self.points is None:
            return self
        first = _fraction(float(self.points[0]))
        return None if first is None else _stepped(first, self.points.tolist())


def _stepped(offset: Fraction, values: Iterable[float]) -> Grid | None:
    different = dict.fromkeys(values)
    if len(different) > _MOST_FRACTIONS:
        return None
    known = [x for x in map(_fraction, different) if x is not None]
    step = _common(x - offset for x in known) if len(known) == len(different) else Fraction(0)
    return Grid(None, offset, step) if step else None


def _fraction(value: float) -> Fraction | None:
    """The fraction with a small denominator that the float stands for, if there is one."""
    if not isfinite(value):
        return None
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if abs(float(near) - value) <= 4e-16 * abs(value) else None


def _common(steps: Iterable[Fraction]) -> Fraction:
    """The largest step that all are multiples of; 0 if all are 0."""
    return reduce(lambda a, b: Fraction(gcd(a.numerator * b.denominator, b.numerator * a.denominator), 1)
                  / (a.denominator * b.denominator), steps, Fraction(0))  # fmt: skip


def _distinct(values: Floats) -> Floats:
    """Sorted, without duplicates; most values that differ only by rounding count as one."""
    rising: Floats = np.unique(np.round(values, 12))
    return rising
