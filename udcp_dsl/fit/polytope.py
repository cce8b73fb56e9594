"""The parameters that agree with all comparisons: a polytope, explored by linear programs.

The relative margin of "A costs more than B" is t = (L(A) - L(B)) / (|L(A) + L(B)| / 2), at most 2 for costs >= 0. For
a given t, L(A) - L(B) >= t |L(A) + L(B)| / 2 is linear in the parameters and becomes stricter as t grows, so bisection
finds the largest t that all strict comparisons reach together. The variables of the programs are u in [0, 1], the place
of each parameter in its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.fit.comparisons import AffineCosts, Comparison, Ranges

LARGEST = 2.0
# Least distance of a strict comparison from a tie, in units of the largest change by one parameter.
_GAP = 1e-8
_STEPS = 30
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Polytope:
    """Comparisons over the ranges, for an affine loss."""

    comparisons: tuple[Comparison, ...]
    ranges: Ranges
    higher: AffineCosts
    lower: AffineCosts

    def _scaled(self, constant: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Rewrite k + c . x as k' + c' . u."""
        lows, widths = self.lows, self.widths
        return constant + slopes @ lows, slopes * widths

    @cached_property
    def lows(self) -> Floats:
        return np.array([low for low, _ in self.ranges.values()])

    @cached_property
    def widths(self) -> Floats:
        return np.array([high - low for low, high in self.ranges.values()])

    @cached_property
    def strict(self) -> Bools:
        return np.array([x.sign == ">" for x in self.comparisons])

    def score(self, x: Floats) -> float:
        """The smallest score of the comparisons at x."""
        return float(comparison_scores(self.comparisons, self.higher.at(x), self.lower.at(x)).min())

    def rows(self, t: float | None, kept: Sequence[int] | None = None) -> tuple[Floats, Floats, Floats, Floats]:
        """Constraints A_ub u <= b_ub and A_eq u = b_eq of the comparisons `kept` (default: all) at margin t.

        With t None, strict comparisons may be ties: the closure of the set of solutions.
        """
        index = np.arange(len(self.comparisons)) if kept is None else np.asarray(kept, dtype=int)
        a, b = self.higher, self.lower
        k, c = self._scaled(a.constant[index] - b.constant[index], a.slopes[index] - b.slopes[index])
        k_sum, c_sum = self._scaled(a.constant[index] + b.constant[index], a.slopes[index] + b.slopes[index])
        strict, equal = self.strict[index], np.array([self.comparisons[i].sign == "==" for i in index], dtype=bool)
        size = np.abs(c).max(axis=1, initial=0.0)
        unit = np.where(size > 0, size, 1.0)
        # A comparison that no parameter affects is off by rounding only, or wrong.
        slack = np.where(size > 0, 0.0, 1e-9 * np.maximum(1.0, np.abs(k_sum)))
        gap = np.where(size > 0, _GAP * unit, slack)
        above = np.where(strict & (t is not None), gap, -slack)
        least = [(k[~equal] - above[~equal], c[~equal], unit[~equal])]
        for sign in (1.0, -1.0) if t else ():
            assert t is not None
            relative = (k - sign * t / 2 * k_sum)[strict], (c - sign * t / 2 * c_sum)[strict]
            least.append(
                (relative[0], relative[1], np.maximum(unit[strict], np.abs(relative[1]).max(axis=1, initial=0)))
            )
        A_ub = np.concatenate([-part / scale[:, None] for _, part, scale in least])
        b_ub = np.concatenate([part / scale for part, _, scale in least])
        fixed = equal & (size == 0)  # two constants: equal or not, without a program
        wrong = fixed & (np.abs(k) > slack)
        if wrong.any():
            A_ub, b_ub = np.vstack([A_ub, np.zeros((1, len(self.ranges)))]), np.append(b_ub, -1.0)
        of_params = equal & ~fixed
        return A_ub, b_ub, c[of_params] / unit[of_params, None], -k[of_params] / unit[of_params]

    def solve(self, objective: Floats, t: float | None = 0.0, kept: Sequence[int] | None = None) -> Floats | None:
        """The u that minimises the objective; None if nothing satisfies the comparisons."""
        A_ub, b_ub, A_eq, b_eq = self.rows(t, kept)
        return minimised(objective, A_ub, b_ub, A_eq, b_eq, [(0.0, 1.0)] * len(self.ranges))

    def feasible(self, t: float = 0.0, kept: Sequence[int] | None = None) -> bool:
        return self.solve(np.zeros(len(self.ranges)), t, kept) is not None

    def x(self, u: Floats) -> Floats:
        """The values of the parameters at the places u in their ranges."""
        return self.lows + self.widths * np.clip(u, 0.0, 1.0)

    def largest_margin(self) -> float:
        """The largest t that all strict comparisons reach together; the comparisons must be feasible."""
        if not self.strict.any():
            return 0.0
        low, high = 0.0, LARGEST
        if self.feasible(high):
            return high
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.feasible(middle) else (low, middle)
        return low

    def nearest(self, x: Floats, t: float) -> Floats | None:
        """The values at margin t nearest to x, by the sum of differences in units of the ranges; None if infeasible."""
        d = len(self.ranges)
        at = (x - self.lows) / self.widths
        A_ub, b_ub, A_eq, b_eq = self.rows(t)
        eye, none = np.eye(d), np.zeros((len(A_ub), d))
        A = np.vstack([np.hstack([A_ub, none]), np.hstack([eye, -eye]), np.hstack([-eye, -eye])])
        found = minimised(
            np.concatenate([np.zeros(d), np.ones(d)]),
            A,
            np.concatenate([b_ub, at, -at]),
            np.hstack([A_eq, np.zeros((len(A_eq), d))]),
            b_eq,
            [(0.0, 1.0)] * d + [(0.0, None)] * d,
        )
        return None if found is None else self.x(found[:d])

    @cached_property
    def extremes(self) -> Floats:
        """For each parameter, a solution that minimises it and one that maximises it, as u (2 d, d)."""
        found = []
        for row in np.eye(len(self.ranges)):
            for sign in (1.0, -1.0):
                u = self.solve(sign * row, None)
                assert u is not None, "the comparisons are feasible"
                found.append(np.clip(u, 0.0, 1.0))
        return np.stack(found)

    def solution_ranges(self) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each parameter over all solutions."""
        u = self.extremes
        return {
            name: (float(self.x(u[2 * i])[i]), float(self.x(u[2 * i + 1])[i])) for i, name in enumerate(self.ranges)
        }

    def contradictions(self, most: int = 5) -> list[list[int]]:
        """At most `most` minimal groups of comparisons that cannot hold together: each group could without any member.

        A deletion filter removes a comparison if the rest still contradicts itself. The groups are disjoint.
        """
        groups: list[list[int]] = []
        left = list(range(len(self.comparisons)))
        while len(groups) < most and not self.feasible(0.0, left):
            group = list(left)
            for i in left:
                rest = [j for j in group if j != i]
                if not self.feasible(0.0, rest):
                    group = rest
            groups.append(group)
            left = [j for j in left if j not in group]
        return groups


def relative_margins(a: Floats, b: Floats) -> Floats:
    """(a - b) / (|a + b| / 2), clipped to [-2, 2]; 0 if a = b."""
    middle = np.abs(a + b) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(a == b, 0.0, (a - b) / middle)
    return np.clip(found, -LARGEST, LARGEST)


def comparison_scores(comparisons: Sequence[Comparison], a: Floats, b: Floats) -> Floats:
    """Scores that are above 0 if a comparison holds: the margin for a strict one, infinity for others."""
    margin = relative_margins(a, b)
    near = np.abs(a - b) <= 1e-9 * np.maximum(1.0, np.abs(b))
    signs = np.array([x.sign for x in comparisons])
    strict = np.where(near, 0.0, margin)
    weak = np.where(near | (margin > 0), np.inf, margin)
    equal = np.where(near, np.inf, -np.abs(margin))
    return np.where(signs == ">", strict, np.where(signs == ">=", weak, equal))


def minimised(
    objective: Floats,
    A_ub: Floats,
    b_ub: Floats,
    A_eq: Floats,
    b_eq: Floats,
    bounds: Sequence[tuple[float, float | None]],
) -> Floats | None:
    """A minimiser of a linear program, by HiGHS; None if it is infeasible."""
    from scipy.optimize import linprog  # slow to import

    found = linprog(objective, A_ub, b_ub, A_eq, b_eq, bounds, method="highs", options=_OPTIONS)
    if found.status not in (0, 2):
        raise RuntimeError(f"the linear program could not be solved: {found.message}")
    x: Floats | None = None if found.x is None or found.status == 2 else np.asarray(found.x)
    return x
