"""Evaluate prediction sets: coverage with exact intervals, overall and by stratum, and cost.

Marginal coverage can hide strata that are covered too little, so the strata are always part of an `Evaluation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.expression.decisions import HANDED_OVER, KEPT
from udcp_dsl.measure.coverage import MEANS, LeastCovered, Stratum, pooled, share_text, strata_of
from udcp_dsl.measure.limits import LimitMeasure, limit_lines, limit_points, limit_table, measure_limits
from udcp_dsl.predict.calibrate import Level, show_level
from udcp_dsl.predict.calibrate.levels import CONFIDENCE
from udcp_dsl.predict.harm import Harm
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.predict.promise import Promise
from udcp_dsl.predict.row_warnings import warn_of_another_order, warn_of_full_sets, warn_of_shared_draws
from udcp_dsl.predict.sets import PredictionSets
from udcp_dsl.rows.columns import BlockedMatrix, frame_index, joined_columns
from udcp_dsl.rows.rows import Rows
from udcp_dsl.showing import Column, Description, Result, Styled, Table, counted, in_unit, visible, with_unit

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

ENOUGH = 50  # rows that a size bin needs to count for `size_violation`
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)

SIZE_BINS = ("0", "1", "2-4", "5-9", "10-49", "50-99", "100+")
QUARTERS = ("hardest", "second", "third", "easiest")  # of the rows, by their highest probability

_FIRST_SIZES = (0, 1, 2, 5, 10, 50, 100)  # smallest size of each bin
_ROWS_SHOWN = 10


@dataclass(frozen=True)
class Risk:
    """The mean harm of missed truths, its standard error (None for a single row), and alpha, its bound."""

    name: str
    mean: float
    error: float | None
    alpha: float


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """How well sets do on labelled rows: coverage, cost and size, overall and by stratum.

    Strata without rows are left out. All intervals are exact (Clopper-Pearson) 95 % intervals, each by itself.

    Attributes
    ----------
    alpha : Fraction
        Share of true labels that sets may miss.
    oracle, loss : str
        Names of the oracle and of the loss.
    n, covered : int
        Number of rows, and of rows whose set contains the true label.
    coverage : float
        covered / n.
    interval : tuple of float
        Interval for the coverage.
    mean_cost : float
        Mean cost of a set.
    cost_error : float or None
        Standard error of `mean_cost`; None for a single row.
    cost_by_term : dict
        Mean cost of each summand of the loss; they add up to `mean_cost`.
    mean_size : float
        Mean number of labels in a set.
    size_quantiles : dict
        Quantiles of the set size: for each fraction q, the smallest size that a share q of the sets does not exceed.
    size_counts : dict
        Number of sets of each size.
    empty : int
        Number of empty sets.
    by_size : tuple of Stratum
        Rows by the size of their set, in the bins 0, 1, 2-4, 5-9, 10-49, 50-99 and 100+.
    by_difficulty : tuple of Stratum
        Quarters of the rows by their highest probability, hardest first. Equal values stay together.
    by_class, by_group : tuple of Stratum
        Rows by true class, and by group if groups were given.
    by_decision : tuple of Stratum
        For a loss min(L, c), the rows that are handed over and those that are kept; with `conditional="decision"` also
        the rows of each action.
    risk : Risk or None
        Mean harm of missed labels, where harm is bounded.
    conditional : str or None
        Where coverage was promised: "group", "class", "difficulty", "decision" or None.
    unit : str or None
        Unit of the costs, if the spec names one.
    limits : tuple of LimitMeasure
        The limits of the spec, with the mean of each expression and its interval.
    certified : float or None
        Share of the sets that are proved to be the best ones for the given probabilities, at the threshold; None for
        oracles that prove nothing (all but `price` and `ilp`).
    made : PredictionSets or None
        The sets, if `evaluate` made them for rows in memory; see `sets`.
    """

    alpha: Fraction
    oracle: str
    loss: str
    n: int
    covered: int
    coverage: float
    interval: tuple[float, float]
    mean_cost: float
    cost_error: float | None
    cost_by_term: Mapping[str, float]
    mean_size: float
    size_quantiles: Mapping[float, int]
    size_counts: Mapping[int, int]
    empty: int
    by_size: tuple[Stratum, ...]
    by_difficulty: tuple[Stratum, ...]
    by_class: tuple[Stratum, ...]
    by_group: tuple[Stratum, ...]
    by_decision: tuple[Stratum, ...]
    risk: Risk | None = field(default=None, kw_only=True)
    conditional: str | None = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)
    limits: tuple[LimitMeasure, ...] = field(default=(), kw_only=True)
    certified: float | None = field(default=None, kw_only=True)
    made: PredictionSets | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def sets(self) -> PredictionSets:
        """The sets; InputError if they were not kept, as for rows that are read in blocks."""
        if self.made is None:
            raise InputError(
                "the sets were not kept: those of rows that are read in blocks are written by udcp predict, and a "
                "comparison has them in its examples only"
            )
        return self.made

    @property
    def handed_over(self) -> float | None:
        """Share of the rows that are handed over; None unless the loss is min(L, c)."""
        if not self.by_decision or not {KEPT, HANDED_OVER} & {s.name for s in self.by_decision}:
            return None
        return sum(s.n for s in self.by_decision if s.name == HANDED_OVER) / self.n

    @property
    def least_covered(self) -> LeastCovered | None:
        """Which strata are covered least, and which fall short by more than chance; None if harm is bounded."""
        return least_covered([self])

    @property
    def size_violation(self) -> float | None:
        """Largest shortfall of coverage, max(0, 1 - alpha - coverage), over the bins of `by_size` with 50 rows or more.

        Empty sets are not counted here, as they cover nothing; `empty` counts them. None if no bin has 50 rows, or
        if harm is bounded.
        """
        if self.risk is not None:
            return None
        shortfalls = [
            float(1 - self.alpha) - s.coverage for s in self.by_size if s.n >= ENOUGH and s.name != SIZE_BINS[0]
        ]
        return max(0.0, *shortfalls) if shortfalls else None

    def __repr__(self) -> str:
        """A summary: all rows, and the least covered stratum of each kind."""
        at = f"{visible(self.loss)} by {self.oracle}, alpha {show_level(self.alpha)}, {counted(self.n, 'row')}"
        low, high = self.interval
        error = "" if self.cost_error is None else f" (standard error {self.cost_error:.2g})"
        lines = [
            f"{type(self).__name__}: {at}",
            *([] if self.risk is None else [f"  risk        {self.risk.mean:.4g} of {visible(self.risk.name)}"]),
            f"  coverage    {self.coverage:.4f} ({CONFIDENCE:.0%}: {low:.4f} to {high:.4f})",
            f"  mean cost   {with_unit(f'{self.mean_cost:.4g}', self.unit)}{error}",
            f"  mean size   {self.mean_size:.4g}, largest {max(self.size_counts)}, empty {self.empty:,}",
        ]
        for name, title in _STRATA.items():
            strata = [s for s in getattr(self, name) if (name, s.name) != ("by_size", SIZE_BINS[0])]
            if len(strata) > 1:
                worst = min(strata, key=lambda s: s.coverage)
                part = f"{visible(worst.name)[:40]}, {counted(worst.n, 'row')}"
                lines.append(f"  least by {title:<10} {worst.coverage:.4f}: {part}")
        short = "" if self.least_covered is None else self.least_covered.shortfall()
        return "\n".join([*lines, *([f"  {visible(short)}"] if short else []), "  (print it for all strata)"])

    def table(self) -> dict[str, list[Any]]:
        """The measures as columns, with one row for all rows and one per stratum.

        Returns
        -------
        dict of lists
            `by` is the kind of the stratum.
        """
        kinds = {"all": [self._whole], **{name.removeprefix("by_"): getattr(self, name) for name in _STRATA}}
        strata = [(by, s) for by, found in kinds.items() for s in found]
        low, high = zip(*(s.interval for _, s in strata), strict=True)

        def column(name: str) -> list[Any]:
            return [getattr(s, name) for _, s in strata]

        counts = {name: column(name) for name in ("n", "covered", "coverage")}
        named = {"by": [by for by, _ in strata], "stratum": column("name")}
        return {**named, **counts, "low": [*low], "high": [*high], **{name: column(name) for name in MEANS}}

    def plot(self) -> Any:
        """Draw coverage by stratum, with exact intervals.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        from udcp_dsl.report.drawing import plot_evaluation

        return plot_evaluation(self)

    @property
    def _whole(self) -> Stratum:
        """All rows as one stratum."""
        p = sum(s.n * s.mean_true_probability for s in self.by_class) / self.n
        return Stratum("all", self.n, self.covered, self.coverage, self.interval, self.mean_size, self.mean_cost, p)

    def describe(self) -> Description:
        """What is printed: all rows, then each kind of strata; if a kind has many, those that are covered least."""
        least, rows = self.least_covered, "row" if self.n == 1 else "rows"
        return Description(
            title=Styled(f"{self.loss} by {self.oracle}, alpha {show_level(self.alpha)}, {self.n} {rows}", "bold"),
            lines=(*(() if least is None else least.lines()), *limit_lines(self.limits, self.coverage, self.unit)),
            tables=(
                Table(_SUMMARY_COLUMNS, list(self._summary())),
                limit_table(self.limits),
                *(_strata_table(title, name, getattr(self, name), self.unit) for name, title in _STRATA.items()),
            ),
            data={
                **{name: getattr(self, name) for name in _JSON_FIELDS},
                "alpha": float(self.alpha),
                "confidence": CONFIDENCE,
                "certified": self.certified,
                "least_covered": least,
                "size_quantiles": {str(q): size for q, size in self.size_quantiles.items()},
                "size_counts": {str(size): count for size, count in self.size_counts.items()},
            },
        )

    def _summary(self) -> Iterator[tuple[str, str, str]]:
        """The measures over all rows: a name, a value, and a remark."""
        low, high = self.interval
        if self.risk is not None:
            error = "" if self.risk.error is None else f"standard error {self.risk.error:.2g}, "
            about = f"{error}of {self.risk.name}, guaranteed at most {self.risk.alpha:g}"
            yield "mean harm", f"{self.risk.mean:.4g}", about
        yield "coverage", f"{self.coverage:.4f}", f"{CONFIDENCE:.0%} interval {low:.4f} to {high:.4f}"
        error = "" if self.cost_error is None else f"standard error {self.cost_error:.2g}"
        yield in_unit("mean cost", self.unit), f"{self.mean_cost:.6g}", error
        if len(self.cost_by_term) > 1:
            yield from (("", f"{cost:.6g}", f"for {term}") for term, cost in self.cost_by_term.items())
        quantiles = ", ".join(f"{q:.0%} {size}" for q, size in self.size_quantiles.items())
        yield "mean size", f"{self.mean_size:.6g}", f"quantiles {quantiles}"
        yield "empty sets", f"{self.empty}", share_text(self.empty / self.n)
        if self.handed_over is not None:
            yield "handed over", f"{self.handed_over:.1%}", "of the rows: their sets cost as much as all labels"
        if self.size_violation is not None:
            yield (
                "shortfall",
                f"{self.size_violation:.4f}",
                f"of coverage, largest over set sizes with {ENOUGH} rows or more",
            )
        if self.certified is not None:
            yield "proved best", f"{self.certified:.1%}", "of the sets, for the given probabilities"


_STRATA = {
    "by_size": "set size",
    "by_difficulty": "highest p",
    "by_class": "class",
    "by_group": "group",
    "by_decision": "decision",
}
_JSON_FIELDS = (
    *("loss", "oracle", "n", "covered", "coverage", "interval", "mean_cost", "cost_error", "cost_by_term", "mean_size"),
    *("empty", "size_violation", "handed_over", "risk", "unit"),
)
_SUMMARY_COLUMNS = (Column("", 0), Column("value", 1, kind="number"), Column("", 2))


def _strata_table(title: str, key: str, strata: Sequence[Stratum], unit: str | None) -> Table:
    columns = (
        Column(title, "name"),
        Column("rows", "n", "d"),
        Column("coverage", "coverage", ".4f", bar=True),
        Column("interval", lambda s: "{:.3f} to {:.3f}".format(*s.interval), kind="number"),
        Column("size", "mean_size", ".4g"),
        Column(in_unit("cost", unit), "mean_cost", ".4g", bar=True),
        Column("p of true label", "mean_true_probability", ".3f"),
    )
    if len(strata) <= _ROWS_SHOWN:
        return Table(columns if strata else (), strata, key=key)
    least = sorted(strata, key=lambda s: (s.coverage, -s.n))[:_ROWS_SHOWN]
    about = Styled(f"by {title}, the {_ROWS_SHOWN} of {len(strata)} that are covered least:", "dim")
    return Table(columns, strata, about, key=key, shown=least)


def evaluate(
    predictor: Any,
    probs: Any,
    y: Any = None,
    *,
    alpha: Level | None = None,
    groups: Any = None,
    weights: Any = None,
    inputs: Any = None,
    ids: Any = None,
    ignore: Sequence[str] = (),
    class_names: Sequence[object] | None = None,
) -> Evaluation:
    """Measure coverage and cost of a calibrated predictor on fresh labelled rows.

    Do not use the calibration rows: the guarantee is about new rows.

    Parameters
    ----------
    predictor : SetPredictor or UtilitySetClassifier
        A calibrated predictor.
    probs : array, tensor, frame or nested lists, shape (n, K)
        Probabilities, as for `predict_set`; for a `UtilitySetClassifier`, the features X.
    y : sequence, shape (n,)
        True labels: names or positions.
    alpha : float, optional
        Which alpha to use, if several were calibrated.
    groups : sequence, optional
        Group of each row. Coverage is then reported by group. Required if calibration was by group.
    weights, inputs, ids, ignore, class_names
        As for `predict_set`.

    Returns
    -------
    Evaluation
        Coverage with its interval, mean cost by term, sizes, and all of these by stratum.

    Raises
    ------
    InputError
        The predictor is not calibrated, or the data are invalid. The message names the row.

    Warns
    -----
    UserWarning
        Columns seem to be in another order than the labels, or, with `randomize`, rows without ids share a draw.

    Examples
    --------
    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  loss l = size")
    >>> predictor = udcp.SetPredictor(loss, "lac", alpha=0.5)
    >>> predictor = predictor.calibrate(np.eye(3), ["cat", "dog", "wolf"])
    >>> report = udcp.evaluate(predictor, [[1, 0, 0], [1, 0, 0]], ["cat", "dog"])
    >>> report.coverage, report.mean_cost, report.by_class[0].name
    (0.5, 1.0, 'cat')
    >>> round(report.interval[0], 4)
    0.0126
    """
    if not isinstance(predictor, SetPredictor):
        if isinstance(predictor, type) or not hasattr(predictor, "evaluate_sets"):  # UtilitySetClassifier has it
            raise TypeError(f"predictor is a {type(predictor).__name__}, not a SetPredictor")
        if ignore or class_names is not None:
            name = "ignore" if ignore else "class_names"
            raise InputError(f"{name}= names columns of probabilities, but a classifier takes features: leave it out")
        more = {"groups": groups, "weights": weights, "ids": ids, **({} if inputs is None else {"inputs": inputs})}
        return predictor.evaluate_sets(probs, y, alpha=alpha, **more)  # type: ignore[no-any-return]
    level = predictor.level(alpha)
    own: dict[str, Any] = {"groups": groups, "weights": weights, "inputs": inputs, "ids": ids, "ignore": ignore}
    rows = predictor.rows(probs, y, class_names=class_names, **own)
    warn_of_another_order(rows)
    if predictor.promise.by_group and rows.groups is None:
        raise InputError(
            "calibrated by group, so the evaluation needs the group of each row: give " + worded("groups=", "--group")
        )
    if predictor.randomize:
        warn_of_shared_draws(rows, predictor.seed)
    parts, unproved, full = [], list[int | None](), 0
    sets: PredictionSets | None = None
    for some in rows.blocks():
        made = predictor.make_sets(some, level)
        full += made.full
        unproved.append(made.unproved)
        more = {"given_labels": predictor.given_labels, "inputs": some.inputs, "decided": made.decided}
        more |= {"index": frame_index(probs), "truth": some.truth}
        sets = PredictionSets(predictor.loss, made.mask, rows.ids, **more)
        parts.append(MeasuredRows.of(sets, replace(some, P=predictor.repaired(some.P)), predictor.promise))
    if full:
        warn_of_full_sets(full, len(rows))
    proved = [many for many in unproved if many is not None]
    nu = None if predictor.multipliers is None else predictor.multipliers[level].effects.multipliers
    about: dict[str, Any] = {"alpha": level, "oracle": predictor.oracle.name, "multipliers": nu}
    return replace(
        measure(parts, predictor.loss, predictor.promise, **about),
        made=None if isinstance(rows.P, BlockedMatrix) else sets,
        certified=1 - sum(proved) / len(rows) if len(proved) == len(unproved) else None,
    )


def measure(
    parts: Sequence[MeasuredRows],
    loss: Loss,
    promise: Promise,
    *,
    alpha: Fraction,
    oracle: str,
    multipliers: Sequence[float] | None = None,
) -> Evaluation:
    """The measures of all rows together, including harm if alpha bounds it; `multipliers` are those of the limits, if
    they are enforced."""
    found, harm = MeasuredRows.joined(parts), promise.harm(loss)
    n, groups = len(found.truth), found.groups
    (whole,) = found.strata("all", ["all"], np.zeros(n, dtype=np.intp))
    sizes, counts = np.unique(found.sizes, return_counts=True)
    quantiles = np.quantile(found.sizes, QUANTILES, method="inverted_cdf").astype(int).tolist()
    group_names, group_of = np.unique(np.empty(0, np.str_) if groups is None else groups, return_inverse=True)
    return Evaluation(
        alpha=alpha,
        oracle=oracle,
        loss=loss.name,
        n=n,
        covered=whole.covered,
        coverage=whole.coverage,
        interval=whole.interval,
        mean_cost=whole.mean_cost,
        cost_error=float(found.costs.std(ddof=1) / np.sqrt(n)) if n > 1 else None,
        cost_by_term={term: float(paid.mean()) for term, paid in zip(loss.summands, found.paid.T, strict=True)},
        mean_size=whole.mean_size,
        size_quantiles=dict(zip(QUANTILES, quantiles, strict=True)),
        size_counts=dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        empty=int(np.count_nonzero(found.sizes == 0)),
        by_size=found.strata("size", SIZE_BINS, np.searchsorted(_FIRST_SIZES, found.sizes, side="right") - 1),
        by_difficulty=found.strata("difficulty", *_difficulty(found.highest_probabilities)),
        by_class=found.strata("class", loss.labels, found.truth),
        by_group=() if groups is None else found.strata("group", group_names.tolist(), group_of),
        by_decision=found.by_decision,
        risk=None if harm is None or found.harms is None else risk_of(harm, found.covered, found.harms, alpha),
        conditional=promise.conditional,
        unit=loss.unit,
        limits=measure_limits(loss.limits, (found.limit_values, found.inside), found.covered, multipliers),
    )


def least_covered(folds: Sequence[Evaluation]) -> LeastCovered | None:
    """The strata covered least, in one test fold or averaged over several that share rows; None if harm is bounded."""
    first = folds[0]
    if first.risk is not None:
        return None
    hardest = [replace(fold.by_difficulty[0], name=f"{QUARTERS[0]} quarter", kind="quarter") for fold in folds]
    (overall,), (quarter,) = pooled(fold._whole for fold in folds), pooled(hardest)
    alpha = max(fold.alpha for fold in folds)
    return LeastCovered.of(alpha, overall, pooled_by(folds, "class"), quarter, conditional=first.conditional)


def pooled_by(folds: Sequence[Evaluation], kind: str) -> list[Stratum]:
    """The strata of one kind over repeated splits: sizes in rising order, all others as they first appear.

    Quarters are matched by place, as their bounds differ; splits in which ties leave fewer than four are left out.
    """
    splits: list[Sequence[Stratum]] = [getattr(fold, f"by_{kind}") for fold in folds]
    if kind == "difficulty":
        splits = [
            [replace(stratum, name=name) for stratum, name in zip(quarters, QUARTERS, strict=True)]
            for quarters in splits
            if len(quarters) == len(QUARTERS)
        ]
    found = pooled(stratum for split in splits for stratum in split)
    return sorted(found, key=lambda stratum: SIZE_BINS.index(stratum.name)) if kind == "size" else found


def risk_of(harm: Harm, covered: Bools, harms: Floats, alpha: Fraction) -> Risk:
    """The mean harm of missed labels, and its bound alpha; `harms` has the harm of missing each row's true label."""
    missed = np.where(covered, 0.0, harms)
    error = float(missed.std(ddof=1) / np.sqrt(len(missed))) if len(missed) > 1 else None
    return Risk(harm.name, float(missed.mean()), error, float(alpha))


@dataclass(frozen=True)
class MeasuredRows:
    """What is measured of each set and its row: columns with one entry per row; `paid` has one column per summand of
    the loss, `limit_values` and `inside` (see `limit_points`) one per limit."""

    covered: Bools
    sizes: npt.NDArray[np.int64]
    costs: Floats
    paid: Floats
    decision: npt.NDArray[np.str_] | None
    truth: npt.NDArray[np.int64]
    true_probabilities: Floats
    highest_probabilities: Floats
    groups: npt.NDArray[np.str_] | None
    harms: Floats | None
    limit_values: Floats
    inside: Bools

    @classmethod
    def of(cls, sets: PredictionSets, rows: Rows, promise: Promise) -> MeasuredRows:
        """Sets, measured on the labelled rows that they were made for."""
        harm = promise.harm(sets.loss)
        return cls(
            sets.mask[np.arange(len(rows)), rows.truth],
            sets.sizes,
            sets.costs,
            np.stack(list(sets.paid.values()), axis=1),
            sets.decision_names,
            rows.truth,
            rows.true_probabilities,
            rows.highest_probabilities,
            rows.groups,
            None if harm is None else harm.of_truth(rows.truth, rows.inputs),
            *limit_points(sets.loss.limits, sets.mask, rows.truth, sets.inputs),
        )

    @classmethod
    def joined(cls, parts: Sequence[MeasuredRows]) -> MeasuredRows:
        """The rows of several parts, joined."""
        return cls(*joined_columns(vars(part).values() for part in parts))

    @property
    def by_decision(self) -> tuple[Stratum, ...]:
        """Strata by decision: kept, handed over, then actions by name; empty if nothing is decided."""
        if self.decision is None:
            return ()
        names = list(dict.fromkeys((KEPT, HANDED_OVER, *np.unique(self.decision).tolist())))
        return self.strata(
            "decision", names, np.array([names.index(name) for name in self.decision.tolist()], dtype=np.intp)
        )

    def strata(self, kind: str, names: Sequence[str], codes: npt.NDArray[np.integer[Any]]) -> tuple[Stratum, ...]:
        """One stratum per name; `codes` has the position of each row's name."""
        return strata_of(kind, names, codes, self.covered, self.sizes, self.costs, self.true_probabilities)


def _difficulty(top: Floats) -> tuple[list[str], npt.NDArray[np.intp]]:
    cuts = np.quantile(top, [0.25, 0.5, 0.75], method="inverted_cdf")
    a, b, c = (f"{cut:.4g}" for cut in cuts)
    names = [f"to {a}", f"above {a} to {b}", f"above {b} to {c}", f"above {c}"]
    return names, np.searchsorted(cuts, top, side="left")
