"""The multipliers of limits: nu >= 0, found together with the price, on rows that are used for nothing else.

An oracle that enforces limits scores by L + sum of nu_j E_j. On the tuning rows, each nu has its own sets: those at the
threshold that covers these rows or, if scores have an anchor, the best sets at the price that covers them. So the means
of the E_j are those expected of the final sets, up to sampling error, and the search for nu (`limits.dual`) always
compares sets of the same coverage. Anchors are found on the same rows, at the final nu.

With `confidence`, further rows that no threshold was set on give an upper bound for each mean.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, warn, worded
from udcp_dsl.measure.limits import worth_text
from udcp_dsl.predict.calibrate import CalibrationWarning, show_level
from udcp_dsl.predict.stages.anchor import MIN_ROWS as MIN_ANCHOR_ROWS
from udcp_dsl.predict.stages.anchor import Anchor, PricedRows
from udcp_dsl.predict.stages.dual import Dual, find_multipliers
from udcp_dsl.predict.stages.stage import FitContext, LimitError, Stage, StratumBudget, placed, true_scores
from udcp_dsl.rows.columns import to_array
from udcp_dsl.showing import Column, Table, visible, with_unit

if TYPE_CHECKING:
    from udcp_dsl.expression.limit import Limit
    from udcp_dsl.predict.chain import Fitted
    from udcp_dsl.predict.oracle import Floats, Indices, Masks, Oracle
    from udcp_dsl.predict.promise import Promise
    from udcp_dsl.rows.rows import Rows

# The share of the rows for tuning, and their maximum number; the limit is met up to the sampling error of these rows
# and of those for thresholds.
SHARE, MAX_ROWS = Fraction(1, 3), 4000
# The share of the remaining rows for upper bounds, and their maximum number.
BOUND_SHARE, MAX_BOUND_ROWS = Fraction(1, 4), 1000
# The minimum number of tuning rows.
_MIN_ROWS = 10
_STREAM = 33  # the random stream for the folds, different for each stage
# A mean counts as at its limit if it is below by at most this many standard errors.
_LIMIT_TOLERANCE = 0.05
# A limit with a multiplier is met by far more than needed if its mean is below it by more standard errors than this.
_JUMP_ERRORS = 3.0  # standard errors: chance alone exceeds them in one of 700 limits
# Relative precision of the prices of the best sets.
_PRICE_PRECISION = 1e-3


def check_limits(promise: Promise, oracle: Oracle) -> None:
    """Raise an error for promises that cannot be combined with enforced limits or with anchors."""
    enforced = FitContext(promise, oracle).enforces_limits
    if enforced and promise.by_class:
        raise LimitError(
            f"limits are means over all rows, and {promise.asked} has a threshold for each class, at which sets are "
            "not the best at any price: leave it out, or remove the limits from the spec"
        )
    if promise.randomize and len(promise.alphas) > 1 and (enforced or oracle.wants_anchor):
        what, way_out = ("multipliers of limits", "") if enforced else ("an anchor", ", or an anchor in the options")
        raise InputError(
            f"{oracle.name!r} has {what} for each alpha under this loss, so "
            f"{worded('randomize=True', '--randomize')} needs a single alpha: give "
            f"one{way_out}"
        )


@dataclass(frozen=True)
class Multipliers(Stage):
    """The multipliers of the limits at one alpha, in their order, with their effects on the n tuning rows; and the
    anchor that was found with them, if the oracle needs one."""

    n: int
    effects: LimitEffects
    anchor: Anchor | None

    name: ClassVar[str] = "multipliers"
    article: ClassVar[str] = "the "
    max_rows: ClassVar[int | None] = MAX_ROWS
    by_alpha: ClassVar[bool] = True

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        """A third of the rows of each stratum; with `confidence`, also a quarter of the others for upper bounds."""
        rng = np.random.default_rng([context.promise.seed, _STREAM])
        fold = budget.draw(SHARE, MAX_ROWS, rng)
        if len(fold) < _MIN_ROWS:
            names = ", ".join(repr(limit.name) for limit in context.oracle.loss.limits)
            raise LimitError(
                f"the multipliers of limits ({names}) are found on a third of the rows, and {len(fold)} of "
                f"{len(budget)} are available: give more rows, or remove the limits from the spec"
            )
        if context.promise.confidence is None:
            return (fold,)
        rest = np.delete(np.arange(len(budget)), fold)
        return fold, rest[replace(budget, codes=budget.codes[rest]).draw(BOUND_SHARE, MAX_BOUND_ROWS, rng)]

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Multipliers:
        rows = TuningRows(context, folds[0])
        effects = rows.effects(rows.dual())
        rows.warn_of_jumps(effects)
        limited = replace(context, oracle=context.oracle.with_multipliers(effects.multipliers))
        return cls(len(folds[0]), effects, Anchor.fit(limited, folds[:1]) if context.oracle.wants_anchor else None)

    def report(self, fitted: Fitted, folds: Sequence[Rows]) -> Multipliers:
        """With upper bounds at the final threshold, from rows used neither for it nor for the multipliers."""
        if len(folds) < 2 or not len(folds[1]):
            return self
        context, limits = fitted.context, fitted.context.oracle.loss.limits
        own = placed(context, fitted.stages, folds[1])
        masks = fitted.sets(own)
        error = float(1 - context.promise.confidence) / len(limits)
        bounds = [upper_bound(limit, limit.batch(masks, own.inputs), error) for limit in limits]
        return replace(self, effects=self.effects.with_bounds(bounds, len(masks)))

    @property
    def rows_used(self) -> int:
        return self.n + self.effects.bound_rows

    def update(self, context: FitContext) -> FitContext:
        return replace(context, oracle=context.oracle.with_multipliers(self.effects.multipliers))

    def add_columns(self, context: FitContext, rows: Rows) -> Rows:
        return rows if self.anchor is None else self.anchor.add_columns(context, rows)

    def as_dict(self) -> dict[str, Any]:
        anchor = None if self.anchor is None else self.anchor.as_dict()
        return {"n": self.n, "effects": self.effects.as_dict(), "anchor": anchor}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Multipliers:
        n, limits, anchor = data["n"], context.oracle.loss.limits, data["anchor"]
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError("its multipliers are damaged: calibrate and save again")
        if not context.enforces_limits or context.oracle.wants_anchor != (anchor is not None):
            raise InputError("its multipliers do not match its oracle and limits; save it again")
        effects = LimitEffects.from_dict(data["effects"], limits)
        return cls(n, effects, None if anchor is None else Anchor.from_dict(anchor, context))


class TuningRows:
    """Rows to find multipliers on, at one alpha; `sets` gives the sets that cover these rows for any multipliers."""

    def __init__(self, context: FitContext, own: Rows) -> None:
        self._context, self._own = context, own.with_columns(P=to_array(own.P))
        self._alpha, self._limits, n = context.promise.alphas[0], context.oracle.loss.limits, len(own)
        self._weights = np.ones(n) if own.weights is None else own.weights / own.weights.mean()
        harms = context.harms(own)
        self._row_weights = self._weights if harms is None else self._weights * harms
        self._cells = [(rows, self._level(rows, left)) for _, rows, left in context.cells(own, MIN_ANCHOR_ROWS)]
        self._prices: dict[int, float] = {}  # the last price found for each cell

    def _level(self, rows: Indices, left: int) -> float:
        """The share of the worth of `rows` to cover, so that coverage is as expected of the final threshold, which is
        set on `left` rows."""
        total, many = float(self._weights[rows].sum()), len(rows)
        mean = float(self._row_weights[rows].sum()) / total if total > 0 else 0.0
        covered = self._context.rule.covered(left, self._alpha, mean)
        return covered * left / (left + 1) * (many + 1) / many if covered <= 1 else math.inf

    def sets(self, multipliers: tuple[float, ...]) -> Masks:
        """The sets that cover these rows: at their own threshold, or the best ones at a price."""
        oracle = self._context.oracle.with_multipliers(multipliers)
        masks = self._best_sets(oracle) if self._context.oracle.wants_anchor else self._at_threshold(oracle)
        if self._context.promise.nonempty:
            masks[np.arange(len(masks)), oracle.first(self._own)] = True
        return masks

    def _at_threshold(self, oracle: Oracle) -> Masks:
        scores = true_scores(oracle, self._own, nonempty=self._context.promise.nonempty)
        tau = np.empty((len(scores), 1))
        for rows, level in self._cells:
            order = np.argsort(scores[rows], kind="stable")
            covered = np.cumsum(self._row_weights[rows][order])
            at = int(np.argmin(np.abs(covered - level * covered[-1]))) if level < math.inf else -1
            tau[rows] = scores[rows][order][at] if at >= 0 else np.inf
        return oracle.sets(self._own, tau)

    def _best_sets(self, oracle: Oracle) -> Masks:
        masks = np.ones(self._own.P.shape, dtype=bool)
        for number, (rows, level) in enumerate(self._cells):
            priced = PricedRows(oracle, self._own.take(rows), self._row_weights[rows])
            price = priced.price(level, _PRICE_PRECISION, self._prices.get(number)) if level < math.inf else None
            if price is not None:
                self._prices[number] = price
                masks[rows] = priced.sets(price)
        return masks

    def values(self, masks: Masks) -> Floats:
        """The value of each limit's expression on each set, (n, J)."""
        return np.stack([limit.batch(masks, self._own.inputs) for limit in self._limits], axis=1)

    def dual(self) -> Dual:
        """Find the multipliers on these rows; LimitError if a limit cannot be reached."""
        found = self._dual_of(range(len(self._limits)))
        if found.unreachable:
            self._refuse(found)
        return found

    def _dual_of(self, some: Sequence[int]) -> Dual:
        """The multipliers of some of the limits, as if the spec had no others."""
        without, near, scale = self._start
        chosen = list(some)

        def means(multipliers: tuple[float, ...]) -> Floats:
            if not any(multipliers):
                return without[chosen]
            every = np.zeros(len(self._limits))
            every[chosen] = multipliers
            return self._mean(self.values(self.sets(tuple(every.tolist()))))[chosen]

        at_most = np.array([self._limits[j].at_most for j in chosen])
        return find_multipliers(means, at_most, near[chosen], scale[chosen])

    @cached_property
    def _start(self) -> tuple[Floats, Floats, Floats]:
        """The mean of each limit's expression without limits, by how much a mean may be below its limit and count as at
        it, and the expected size of its multiplier."""
        masks, at_most = self.sets((0.0,) * len(self._limits)), np.array([limit.at_most for limit in self._limits])
        values = self.values(masks)
        without = self._mean(values)
        near = np.maximum(_LIMIT_TOLERANCE * self._error(values), 1e-9 * np.maximum(1.0, np.abs(at_most)))
        cost = self._mean(self._costs(masks)[:, None])[0]
        return without, near, np.array([abs(cost / mean) if cost and mean else 1.0 for mean in without.tolist()])

    def effects(self, found: Dual) -> LimitEffects:
        """The effects of the multipliers on these rows, compared with sets without limits."""
        zero, truth = (0.0,) * len(self._limits), self._own.truth
        both = [self.sets(nu) for nu in (zero, found.multipliers)]
        values = [self.values(masks) for masks in both]
        covered = [masks[np.arange(len(truth)), truth] for masks in both]
        errors = self._error(values[1])
        effects = []
        for j, limit in enumerate(self._limits):
            inside = limit.inside(truth, self._own.inputs)
            before, after = (float(x[inside].mean()) if inside.any() else None for x in covered)
            effects.append(
                LimitEffect(
                    name=limit.name,
                    multiplier=found.multipliers[j],
                    without=float(self._mean(values[0])[j]),
                    mean=float(self._mean(values[1])[j]),
                    error=float(errors[j]),
                    inside=int(inside.sum()),
                    covered_without=before,
                    covered=after,
                )
            )
        without, cost = (float(self._mean(self._costs(masks)[:, None])[0]) for masks in both)
        return LimitEffects(without, cost, tuple(effects))

    def warn_of_jumps(self, effects: LimitEffects) -> None:
        """Warn of limits whose mean jumps past them: of two sides of a step, the one where the limit holds is taken."""
        _, near, _ = self._start
        for limit, effect, error in zip(self._limits, effects.limits, near / _LIMIT_TOLERANCE, strict=True):
            if effect.multiplier and limit.at_most - effect.mean > _JUMP_ERRORS * max(error, effect.error):
                warn(
                    f"limit {_limit_text(limit)} is met by far more than needed at alpha {show_level(self._alpha)}: on "
                    f"{len(self._own):,} tuning rows, the mean of {limit.text} jumps past the limit to "
                    f"{effect.mean:.3g} (no multiplier was found that brings it nearer), and the mean cost rises from "
                    f"{effects.cost_without:.3g} to {effects.cost:.3g}; add small costs that differ between labels to "
                    "the loss, or raise the limit",
                    CalibrationWarning,
                )

    def _refuse(self, found: Dual) -> None:
        """Raise an error with the limits that cannot be reached alone, and the least mean of each; or, if each can,
        with those that exclude each other."""
        several = len(self._limits) > 1
        alone = [self._dual_of([j]) for j in range(len(self._limits))] if several else [found]
        level, even = show_level(self._alpha), ", even without the others" if several else ""
        reasons = [
            f"limit {_limit_text(limit)} cannot be reached at alpha {level}{even}: the smallest reachable mean of "
            f"{limit.text} is {_text_above(by_itself.least[0], limit.at_most)}"
            for limit, by_itself in zip(self._limits, alone, strict=True)
            if by_itself.unreachable
        ]
        named = self._excluding() if not reasons else ()
        if named:
            names = " and ".join(_limit_text(self._limits[j]) for j in named)
            reasons = [f"limits {names} cannot be held together at alpha {level}, although each can alone"]
        which = "one of them" if named else "the limit" if len(reasons) == 1 else "the limits"
        # With `miss`, alpha was found without the limits.
        alpha = "alpha" if self._context.promise.miss is None else "give a smaller miss"
        raise LimitError(
            f"{'; '.join(reasons)} (on {len(self._own):,} tuning rows); raise {which} or {alpha}. "
            "Nothing was calibrated"
        )

    def _excluding(self) -> Sequence[int]:
        """Two limits that cannot be held together; all of them if any two can."""
        every = range(len(self._limits))
        pairs = itertools.combinations(every, 2) if len(every) > 2 else ()
        return next((pair for pair in pairs if self._dual_of(pair).unreachable), every)

    def _costs(self, masks: Masks) -> Floats:
        return self._context.oracle.loss.batch(masks, inputs=self._own.inputs)

    def _mean(self, values: Floats) -> Floats:
        return np.asarray(np.average(values, axis=0, weights=self._weights))

    def _error(self, values: Floats) -> Floats:
        squares = self._mean((values - self._mean(values)) ** 2)
        shares = self._weights / self._weights.sum()
        return np.asarray(np.sqrt(squares * (shares**2).sum()))


def _limit_text(limit: Limit) -> str:
    return f"{limit.name!r} ({limit.text} <= {limit.at_most:g})"


def _text_above(number: float, bound: float) -> str:
    """A number above a bound, in as many digits as show that it is, at least three."""
    texts = (f"{number:.{digits}g}" for digits in range(3, 18))
    return next((text for text in texts if float(text) > bound), f"{number:.3g}")


# Upper bounds for the mean of a limit's expression over new rows.
#
# A bound from n rows is too low with probability at most `error`. For an indicator, it is exact (Clopper-Pearson):
# the largest mean at which so few ones, or fewer, have that probability. For values in [lo, hi], it is that of
# Hoeffding and Bentkus (Bates et al. 2021): with h the relative entropy of two coins, a mean r in [0, 1] is refuted
# by an observed mean m < r of n values if min(exp(-n h(m, r)), e P(Bin(n, r) <= ceil(n m))) is at most the error; the
# bound is the least mean that is refuted together with all means above it.


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


# The effect of limits at one alpha, measured on the tuning rows: multipliers, and sets with and without the limits.


@dataclass(frozen=True)
class LimitEffect:
    """The effect of one limit: its multiplier, and the mean of its expression `without` limits and with them (`mean`),
    with the standard `error` of the latter. `inside` is the number of rows whose true label counts against the limit on
    its own; `covered_without` and `covered` are the shares of these that are covered without limits and with them.
    `bound`, if a confidence was requested, is an upper bound for the mean, from separate rows."""

    name: str
    multiplier: float
    without: float
    mean: float
    error: float
    inside: int
    covered_without: float | None
    covered: float | None
    bound: float | None = None

    def line(self, unit: str | None) -> str:
        """The effect in words."""
        bound = "" if self.bound is None else f"its mean is at most {self.bound:.4g} with the requested confidence"
        parts = (worth_text(self.multiplier, unit), self.on_truths, bound)
        return f"{visible(self.name)}: {'; '.join(x for x in parts if x)}"

    @property
    def on_truths(self) -> str:
        """The effect on the coverage of rows inside, in words; empty if there is none."""
        if self.covered is None or self.covered_without is None:
            return ""
        if self.multiplier == 0 or self.covered == self.covered_without:
            return ""
        both = f"coverage {self.covered:.3f} ({self.covered_without:.3f} without limits)"
        return f"rows whose true label counts against the limit: {both}"


@dataclass(frozen=True)
class LimitEffects:
    """The effect of all limits: the mean cost of sets without them and with them, and the effect of each limit."""

    cost_without: float
    cost: float
    limits: tuple[LimitEffect, ...]
    bound_rows: int = 0

    @property
    def multipliers(self) -> tuple[float, ...]:
        """One multiplier per limit, in their order."""
        return tuple(limit.multiplier for limit in self.limits)

    def with_bounds(self, bounds: Sequence[float], rows: int) -> LimitEffects:
        """The same effects with an upper bound for each mean, from `rows` rows."""
        limits = tuple(replace(x, bound=bound) for x, bound in zip(self.limits, bounds, strict=True))
        return replace(self, limits=limits, bound_rows=rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which `from_dict` restores an equal value."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any, limits: Sequence[Limit]) -> LimitEffects:
        """Inverse of `as_dict`, for these limits; refuses anything else."""
        found = tuple(LimitEffect(**_fields(LimitEffect, x)) for x in _fields(cls, data)["limits"])
        made = cls(**{**_fields(cls, data), "limits": found})
        numbers = [made.cost_without, made.cost, *(getattr(x, f.name) for x in found for f in fields(x)[1:6])]
        shares = [x for limit in found for x in (limit.covered_without, limit.covered, limit.bound) if x is not None]
        counts = [made.bound_rows, *(x.inside for x in found)]
        if not (
            [x.name for x in found] == [limit.name for limit in limits]
            and all(_is_number(x) for x in (*numbers, *shares))
            and all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in counts)
            and all(0 <= x.multiplier <= _largest(limit) for x, limit in zip(found, limits, strict=True))
        ):
            raise InputError("its multipliers are damaged for its limits: calibrate and save again")
        return made


def effect_table(found: Mapping[str, LimitEffects], limits: Sequence[Limit]) -> Table:
    """The effects of limits as a table, one row per alpha and limit; `found` maps the text of each alpha to effects."""
    at_most = {limit.name: limit.at_most for limit in limits}
    rows = [(alpha, x) for alpha, effects in found.items() for x in effects.limits]
    bounded = any(x.bound is not None for _, x in rows)
    columns = (
        Column("alpha", 0, kind="number"),
        Column("limit", lambda row: visible(row[1].name)),
        Column("at most", lambda row: f"{at_most[row[1].name]:g}", kind="number"),
        Column("mean", lambda row: f"{row[1].mean:.4g}", kind="number"),
        Column("error", lambda row: f"{row[1].error:.2g}", kind="number"),
        Column("without limits", lambda row: f"{row[1].without:.4g}", kind="number"),
        Column("multiplier", lambda row: f"{row[1].multiplier:.4g}", kind="number"),
        *([Column("upper bound", lambda row: f"{row[1].bound:.4g}", kind="number")] if bounded else []),
    )
    return Table(columns if rows else (), rows)


def effect_lines(found: Mapping[str, LimitEffects], unit: str | None) -> Iterator[str]:
    """The effects in words, including that on the mean cost of the tuning rows."""
    for alpha, effects in found.items():
        for x in effects.limits:
            yield f"at alpha {alpha}, {x.line(unit)}"
        change = effects.cost - effects.cost_without
        costs = (
            f"{with_unit(f'{effects.cost:.4g}', unit)} on the tuning rows, {effects.cost_without:.4g} without limits"
        )
        yield f"at alpha {alpha}, the mean cost is {costs}" if change else f"at alpha {alpha}, limits change no set"


def _fields(kind: type[Any], data: Any) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    if not isinstance(data, Mapping) or set(data) != names:
        raise InputError("its multipliers are damaged: calibrate and save again")
    return dict(data)


def _largest(limit: Limit) -> float:
    """The largest valid multiplier of a limit; the loss with a larger one might not be finite."""
    lo, hi = limit.facts.interval
    return sys.float_info.max / 1e9 / max(1.0, abs(lo), abs(hi))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
