"""A mixed-integer linear model as plain data, and the tools with which atoms and operators build it.

The first K variables are binary and say which labels are in the set. An expression lowers to an `Affine` form of the
variables. At every S the *true* assignment of the further variables satisfies all rows and gives each expression its
value; other assignments may deviate from it, but only to the side to which nothing pushes (see `Push`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import OracleError, Span
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.facts import TOLERANCE

if TYPE_CHECKING:
    from udcp_dsl.expression.attainable import Grid


# A solver's rows cannot separate values that are closer than this, relative to the range.
_CLOSEST = 1e-6
# Most further variables beside the labels when a function of a count is added, one for each of its pieces.
_MOST_PIECES = 100_000


class LoweringError(OracleError):
    """A subexpression has no exact linear form."""

    def __init__(self, span: Span, why: str) -> None:
        super().__init__(f"{span}: {span.line!r} has no exact linear form: {why}")
        self.span = span


class NoLinearForm(Exception):
    """Raised by an atom that has no linear form, with the reason."""


class Push(Flag):
    """Where the objective pushes an expression: DOWN, so rows must bound it from below; UP, so they must from above."""

    DOWN = 1
    UP = 2
    NONE = 0
    BOTH = 3

    def through_factor(self, factor: float) -> Push:
        """The push of the operand of factor * e, from the push of the product."""
        if factor > 0:
            return self
        return self.reversed if factor < 0 else Push.NONE

    @property
    def reversed(self) -> Push:
        return (Push.UP if Push.DOWN in self else Push.NONE) | (Push.DOWN if Push.UP in self else Push.NONE)

    def through_function(self, rising: bool, falling: bool) -> Push:
        """The push of a function's argument: BOTH if the function is not monotone, NONE if it is constant."""
        if rising and falling:
            return Push.NONE
        return self if rising else self.reversed if falling else Push.BOTH if self else Push.NONE


@dataclass(frozen=True, eq=False)
class Affine:
    """constant + sum of coefficient * variable."""

    constant: float
    terms: Mapping[int, float]

    def __add__(self, other: Affine | float) -> Affine:
        return total([self, other if isinstance(other, Affine) else Affine(other, {})])

    def __sub__(self, other: Affine | float) -> Affine:
        return self + (other * -1.0 if isinstance(other, Affine) else -other)

    def __mul__(self, factor: float) -> Affine:
        if factor == 0:
            return Affine(0.0, {})
        return Affine(factor * self.constant, {j: factor * a for j, a in self.terms.items()})


def total(parts: Iterable[Affine]) -> Affine:
    """The sum of several forms."""
    constant, terms = 0.0, dict[int, float]()
    for part in parts:
        constant += part.constant
        for j, a in part.terms.items():
            terms[j] = terms.get(j, 0.0) + a
    return Affine(constant, {j: a for j, a in terms.items() if a != 0})


@dataclass(frozen=True, eq=False)
class Part:
    """A lowered operand: its form, the interval of its values, and (if the loss compares) its possible values."""

    form: Affine
    lo: float
    hi: float
    grid: Grid | None = None

    @property
    def constant(self) -> bool:
        return not self.form.terms

    def neighbours_of(self, cut: float, span: Span) -> tuple[float, float]:
        """The nearest values below and above the cut, infinite if there is none; LoweringError if unknown."""
        if self.grid is None:
            raise LoweringError(span, "it compares sums of too many kinds; round the numbers to at most 6 decimals")
        found = self.grid.neighbours_of(cut)
        if found is None:
            raise LoweringError(span, "a value lies so near to the tolerance of the comparison that rounding decides")
        slack = TOLERANCE * max(1.0, abs(self.lo), abs(self.hi))
        below = found[0] if found[0] >= self.lo - slack else -np.inf
        above = found[1] if found[1] <= self.hi + slack else np.inf
        if above - below < _CLOSEST * max(1.0, self.hi - self.lo):
            raise LoweringError(span, f"it must tell {below:.12g} from {above:.12g}, too close for a solver")
        return below, above


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Minimise constant + objective @ v, where lower <= v <= upper, row_lower <= A v <= row_upper, some v integer.

    A is stored by rows: row i has `coefficients[starts[i]:starts[i + 1]]` in the columns `columns[...]`. The first K
    variables say which labels are in the set.
    """

    K: int
    lower: Floats
    upper: Floats
    integer: Bools
    objective: Floats
    constant: float
    starts: Ints
    columns: Ints
    coefficients: Floats
    row_lower: Floats
    row_upper: Floats

    @property
    def variables(self) -> int:
        return len(self.lower)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    @property
    def size(self) -> dict[str, int]:
        """The size of the model, as solvers report it."""
        whole = int(self.integer.sum())
        rest = self.variables - whole
        return {"binaries": whole, "continuous": rest, "rows": self.rows, "nonzeros": len(self.columns)}

    @property
    def names(self) -> list[str]:
        """x0, x1, ... for labels and z0, z1, ... for the rest, padded to one width: sorting by name keeps the order."""
        wide = len(str(self.variables))
        labels = [f"x{y:0{wide}d}" for y in range(self.K)]
        return labels + [f"z{j:0{wide}d}" for j in range(self.variables - self.K)]

    def row(self, i: int) -> tuple[Ints, Floats]:
        """Columns and coefficients of a row."""
        span = slice(self.starts[i], self.starts[i + 1])
        return self.columns[span], self.coefficients[span]


class Lowering:
    """A model under construction: variables, rows, and the forms that several atoms share."""

    def __init__(self, K: int) -> None:
        self.K = K
        self._lower = [0.0] * K
        self._upper = [1.0] * K
        self._integer = [True] * K
        self._rows: list[tuple[Mapping[int, float], float, float]] = []
        self._touched: dict[bytes, tuple[Affine, Push]] = {}

    def done(self, objective: Affine) -> LinearModel:
        """The finished model."""
        cost = np.zeros(len(self._lower))
        cost[list(objective.terms)] = list(objective.terms.values())
        sizes = [len(terms) for terms, _, _ in self._rows]
        return LinearModel(
            K=self.K,
            lower=np.array(self._lower),
            upper=np.array(self._upper),
            integer=np.array(self._integer),
            objective=cost,
            constant=objective.constant,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            columns=np.fromiter((j for terms, _, _ in self._rows for j in terms), np.int64, sum(sizes)),
            coefficients=np.fromiter((a for terms, _, _ in self._rows for a in terms.values()), np.float64, sum(sizes)),
            row_lower=np.array([low for _, low, _ in self._rows], dtype=np.float64),
            row_upper=np.array([high for _, _, high in self._rows], dtype=np.float64),
        )

    # Variables and rows

    def label(self, y: int | np.integer[Any]) -> Affine:
        """1 if label y is in the set."""
        return Affine(0.0, {int(y): 1.0})

    def labels(self, weights: NDArray[np.floating[Any]]) -> Affine:
        """The sum of weights over the set."""
        return Affine(0.0, {int(y): float(weights[y]) for y in np.flatnonzero(weights)})

    def binary(self) -> Affine:
        return self._variable(0.0, 1.0, True)

    def continuous(self, lo: float, hi: float) -> Affine:
        return self._variable(lo, hi, False)

    def _variable(self, lo: float, hi: float, integer: bool) -> Affine:
        self._lower.append(lo)
        self._upper.append(hi)
        self._integer.append(integer)
        return Affine(0.0, {len(self._lower) - 1: 1.0})

    def at_most(self, left: Affine, right: Affine | float) -> None:
        """left <= right."""
        row = left - right
        self._rows.append((row.terms, -np.inf, -row.constant))

    def equal(self, left: Affine, right: Affine | float) -> None:
        row = left - right
        self._rows.append((row.terms, -row.constant, -row.constant))

    def named(self, form: Affine, lo: float, hi: float, *, longest: int = 8) -> Affine:
        """The form itself if it is short, else a new variable equal to it; this keeps recurrences sparse."""
        if len(form.terms) <= longest:
            return form
        variable = self.continuous(lo, hi)
        self.equal(variable, form)
        return variable

    # Forms that several atoms share

    def any_of(self, members: Ints, push: Push) -> Affine:
        """1 if the set touches `members`: x_y <= g for each y (one row for their sum is weaker); g <= their sum."""
        if len(members) <= 1:
            return self.label(members[0]) if len(members) else Affine(0.0, {})
        key = members.tobytes()
        g, done = self._touched.get(key) or (self.binary(), Push.NONE)
        self._touched[key] = (g, done | push)
        if Push.DOWN in push & ~done:
            for y in members:
                self.at_most(self.label(y), g)
        if Push.UP in push & ~done:
            self.at_most(g, total(map(self.label, members)))
        return g

    def largest(self, costs: Floats, push: Push) -> Affine:
        """The largest cost in the set, 0 if it is empty: with the distinct costs c1 < c2 < ..., the sum of
        (c_i - c_(i-1)) any({y : c(y) >= c_i}), the first weighted c1. The indicators nest, which keeps rows short."""
        values, rank = np.unique(costs, return_inverse=True)
        first = float(values[0])
        parts = [self.any_of(np.arange(self.K), push.through_factor(first)) * first]
        above = Affine(0.0, {})
        for i in range(len(values) - 1, 0, -1):
            here = [self.label(y) for y in np.flatnonzero(rank == i)]
            reached = self.continuous(0.0, 1.0)
            if Push.DOWN in push:
                for form in [*here, above] if above.terms else here:
                    self.at_most(form, reached)
            if Push.UP in push:
                self.at_most(reached, total([above, *here]))
            parts.append(reached * float(values[i] - values[i - 1]))
            above = reached
        return total(parts)

    def best_of_worst(self, losses: Floats, push: Push) -> Affine:
        """min over columns a of max over y in S of losses[y, a]; 0 on the empty set.

        Lower bound: one row per label, t >= sum of losses[y, a] w_a if y is in S, where w picks a column. (One row per
        level of the losses would be tighter but, as measured, ten times slower.) Upper bound: t is at most the largest
        loss of the set in each column.
        """
        low = min(0.0, float(losses.min()))
        high = max(0.0, float(losses.max(axis=0).min()))
        t = self.continuous(low, high)
        if Push.DOWN in push:
            picked = [self.binary() for _ in range(losses.shape[1])]
            self.equal(total(picked), 1.0)
            for y, row in enumerate(losses):
                paid = total(w * float(loss) for w, loss in zip(picked, row, strict=True))
                self.at_most(paid - (Affine(1.0, {}) - self.label(y)) * (float(row.max()) - low), t)
            if low < 0:
                self.at_most(self.any_of(np.arange(self.K), Push.UP) * low, t)
        if Push.UP in push:
            for column in losses.T:
                self.at_most(t, self.largest(column, Push.UP))
        return t

    def product(self, indicator: Affine, part: Part, push: Push) -> Affine:
        """indicator * part, by McCormick's rows."""
        if part.constant:
            return indicator * part.form.constant
        if not indicator.terms:
            return part.form * indicator.constant
        off = Affine(1.0, {}) - indicator
        v = self.continuous(min(0.0, part.lo), max(0.0, part.hi))
        if Push.DOWN in push:
            self.at_most(indicator * part.lo, v)
            self.at_most(part.form - off * part.hi, v)
        if Push.UP in push:
            self.at_most(v, indicator * part.hi)
            self.at_most(v, part.form - off * part.lo)
        return v

    def all_of(self, indicators: Sequence[Affine], push: Push) -> Affine:
        """1 if all indicators are 1."""
        if len(indicators) == 1:
            return indicators[0]
        whole = self.continuous(0.0, 1.0)
        if Push.DOWN in push:
            self.at_most(total(indicators) - (len(indicators) - 1.0), whole)
        if Push.UP in push:
            for indicator in indicators:
                self.at_most(whole, indicator)
        return whole

    def maximum(self, parts: Sequence[Part], push: Push) -> Affine:
        """The largest of several forms; the upper bound is the form that a binary variable picks."""
        least = max(part.lo for part in parts)
        live = [part for part in parts if part.hi > least or part.lo == least]
        if len(live) == 1:
            return live[0].form
        v = self.continuous(least, max(part.hi for part in live))
        if Push.DOWN in push:
            for part in live:
                self.at_most(part.form, v)
        if Push.UP in push:
            highest = max(part.hi for part in live)
            picked = [self.binary() for _ in live]
            self.equal(total(picked), 1.0)
            for part, pick in zip(live, picked, strict=True):
                self.at_most(v, part.form + (Affine(1.0, {}) - pick) * (highest - part.lo))
        return v

    def broken_line(self, f: Floats, count: Affine, push: Push) -> Affine:
        """f(count), linear between its kinks: f(0) + sum of slope * filled, where pieces are filled in order.

        A binary between two pieces forces the first to be full before the second starts. At a kink that is convex under
        DOWN, or concave under UP, filling in order is cheapest anyway, and no binary is needed.
        """
        steps = np.diff(f)
        bends = np.diff(steps)
        slack = 1e-12 * float(np.abs(f).max())
        kinks = np.flatnonzero(np.abs(bends) > slack) + 1
        if len(self._lower) - self.K + len(kinks) > _MOST_PIECES:
            raise NoLinearForm(f"functions of counts have more than {_MOST_PIECES:,} pieces, too many for a solver")
        ends = [*kinks.tolist(), len(steps)]
        binds = {int(k): Push.UP in push if bends[k - 1] > 0 else Push.DOWN in push for k in kinks}
        parts, group = [Affine(float(f[0]), {})], list[Affine]()
        filled, start, opened = list[Affine](), 0, 0
        allowed: Affine | None = None
        for end in ends:
            piece = self.continuous(0.0, float(end - start))
            if allowed is not None:
                self.at_most(piece, allowed * float(end - start))
            parts.append(piece * (float(f[end] - f[start]) / (end - start)))
            filled.append(piece)
            group.append(piece)
            if binds.get(end):
                allowed = self.binary()
                self.at_most(allowed * float(end - opened), total(group))
                group, opened = [], end
            start = end
        self.equal(total(filled), count)
        return total(parts)
