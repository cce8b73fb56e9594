"""The result of a comparison: a run for each oracle, alpha and split, and summaries over the splits.

The cost that is shown for an oracle is the mean over the splits, and the means of the terms add up to it. A summary
also has the median of means, which is robust against single unlucky splits.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.decisions import HANDED_OVER, KEPT
from udcp_dsl.files import ARROW, PathLike, atomic_write, known_ending, require_pyarrow
from udcp_dsl.loss import Loss
from udcp_dsl.measure.coverage import LeastCovered, way_out
from udcp_dsl.measure.evaluate import QUARTERS, SIZE_BINS, Evaluation, least_covered, pooled_by
from udcp_dsl.measure.limits import LimitSummary, summarise, summary_lines
from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.predict.calibrate.levels import CONFIDENCE
from udcp_dsl.predict.promise import Promise
from udcp_dsl.predict.stages.repair import RepairStage
from udcp_dsl.predict.stages.stage import Stage
from udcp_dsl.rows.writing import as_cell
from udcp_dsl.showing import Column, Description, Line, Result, Styled, Table, counted, in_unit, with_unit
from udcp_dsl.showing.data import records_of

if TYPE_CHECKING:
    import datetime

# The worth of a miss as a predictor gives it: by group, bin or decision, or not at all, too.
Worth: TypeAlias = float | dict[str, float] | None

_ENDINGS = (*ARROW, ".csv")
_BLOCKS = 5  # blocks of runs in a median of means
_ROWS_SHOWN = 12  # rows of a table of strata
_HIGH = 0.975  # quantile of the upper end of a 95 percent interval
_Z_95 = 1.96  # the same quantile of the normal distribution
_MAX_ROWS = 20_000  # rows from which errors are estimated


@dataclass(frozen=True)
class Run:
    """One oracle on one split at one alpha for one loss, measured on the test fold.

    `lam` is the lambda that was tuned for this split and alpha, None for an oracle without one. `seconds` is the time
    to score the rows for its thresholds, sets and tuning: rows are scored once for all splits, and each split counts
    its own rows. Compilation is not included.
    """

    loss: str
    oracle: str
    alpha: Fraction
    split: int
    evaluation: Evaluation
    lam: float | None
    seconds: float


@dataclass(frozen=True)
class Summary:
    """One oracle at one alpha for one loss, over all splits.

    Attributes
    ----------
    loss, oracle : str
        Names of the loss and of the oracle.
    alpha : Fraction
        Share of true labels that sets may miss.
    coverage : float
        Mean over the splits.
    coverage_interval : tuple of float
        95 % prediction interval for the coverage of a new split: mean -+ t s sqrt(1 + 1 / R), with s the standard
        deviation over the R splits and t Student's quantile with R - 1 degrees of freedom. It is not a confidence
        interval of the mean, which would be too narrow because splits of the same rows overlap. For a single split, the
        exact (Clopper-Pearson) interval.
    cost : float
        Median of means: the median of the means of up to 5 blocks of runs.
    cost_mean, cost_error : float
        Mean over the splits, and its standard error as if they were independent (None for a single split).
    cost_by_term, size, seconds
        Means over the splits.
    empty : float
        Share of empty sets.
    by_size, by_group, by_difficulty, by_decision : dict
        For each stratum, its coverage and its share of the rows, over all splits: by set size, by group, by quarter of
        the highest probability (hardest first), and by whether rows are handed over.
    risk : float or None
        Mean harm over the splits, if harm is bounded.
    least_covered : LeastCovered or None
        Which strata are covered least in a typical test fold; None if harm is bounded.
    unit : str or None
        Unit of the costs, if the spec names one.
    limits : tuple
        The limits of the spec: the means of their expressions over the splits.
    alpha_found, total : float or None
        With `miss`: the mean over the splits of the alpha that was found, and of cost plus misses.
    """

    loss: str
    oracle: str
    alpha: Fraction
    coverage: float
    coverage_interval: tuple[float, float]
    cost: float
    cost_mean: float
    cost_error: float | None
    cost_by_term: Mapping[str, float]
    size: float
    empty: float
    seconds: float
    by_size: Mapping[str, tuple[float, float]]
    by_group: Mapping[str, tuple[float, float]]
    by_decision: Mapping[str, tuple[float, float]]
    by_difficulty: Mapping[str, tuple[float, float]]
    risk: float | None
    least_covered: LeastCovered | None
    unit: str | None = None
    limits: tuple[LimitSummary, ...] = ()
    alpha_found: float | None = None
    total: float | None = None

    @property
    def objective(self) -> float:
        """The mean cost and, with `miss`, that of the misses, by which oracles are ranked."""
        return self.cost_mean if self.total is None else self.total


@dataclass(frozen=True)
class Example:
    """One test row of the first split at the first alpha, with the set that each oracle gives it.

    `row` is its position in the given rows, `name` its id, if there are ids. `probabilities` are those of the 12
    likeliest labels and of every label in one of the sets, in decreasing order; sets list their labels in the same
    order. `decisions`, if the loss leads to any, give the action for each set and its worst cost, or say that the row
    is handed over. `p_values` give, for each oracle, the smallest alpha at which it leaves out each of these labels.
    `pair` is `price` (otherwise the oracle that is cheapest overall) and the cheapest other oracle whose set differs,
    None if no set differs; `why` says in words how the two differ.
    """

    row: int
    name: str | None
    truth: str
    probabilities: Mapping[str, float]
    sets: Mapping[str, tuple[str, ...]]
    costs: Mapping[str, float]
    terms: Mapping[str, Mapping[str, float]]
    decisions: Mapping[str, str] = field(default_factory=dict)
    p_values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    pair: tuple[str, str] | None = None
    why: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """What `compare` found; print it for a table, or write it as a page with `report`.

    Attributes
    ----------
    losses : tuple of Loss
        The losses.
    names : tuple of str
        Their names, with the file if two losses share a name.
    alphas : tuple of Fraction
        The values of alpha.
    splits, seed, fractions : int, int, tuple of float
        Number of random splits, their seed, and the shares for thresholds, tuning and test.
    runs : tuple of Run
        One run per loss, oracle, alpha and split, in this order.
    skipped : dict
        Why an oracle was left out, by (loss, oracle).
    examples : dict
        Rows to look at, by loss. In the first, `price` is cheaper and right; in the second, it misses the true label;
        then rows whose sets differ most in cost, and some spread over the rest.
    accuracy : float
        How often the likeliest label is the true one.
    n, K : int
        Number of rows (without those used for the repair), and of labels.
    promise : Promise
        What was guaranteed.
    label_names : dict
        Names of labels for readers.
    about : dict
        The variant of the score that an oracle used, such as "mass before".
    repairs : tuple of Stage
        What changed the probabilities.
    beside : Comparison or None
        The same comparison with coverage guaranteed by difficulty or decision, if requested. It has no curves and
        examples.
    along : dict
        Curves of the first split, row by row, by (loss, oracle): for costs at equal coverage, and what a miss is worth.
    """

    losses: tuple[Loss, ...]
    names: tuple[str, ...]
    alphas: tuple[Fraction, ...]
    splits: int
    seed: int
    fractions: tuple[float, float, float]
    runs: tuple[Run, ...]
    skipped: Mapping[tuple[str, str], str]
    examples: Mapping[str, tuple[Example, ...]]
    accuracy: float
    n: int
    K: int
    promise: Promise
    label_names: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    repairs: tuple[Stage, ...] = ()
    beside: Comparison | None = None
    along: Mapping[tuple[str, str], CostCurve] = field(default_factory=dict)

    @property
    def curves(self) -> dict[tuple[str, str], tuple[tuple[float, float, float], ...]]:
        """Points (alpha, coverage, mean cost) of the first split, by (loss, oracle)."""
        return {key: tuple((x.alpha, x.coverage, x.cost) for x in curve.points) for key, curve in self.along.items()}

    @property
    def worths(self) -> dict[tuple[str, str], list[tuple[float, float]]]:
        """For each oracle with prices, pairs of coverage and the value of a missed truth at that coverage."""
        found = {
            key: [(x.coverage, x.worth) for x in curve.points if x.worth is not None]
            for key, curve in self.along.items()
        }
        return {key: points for key, points in found.items() if points}

    def called(self, label: str) -> str:
        """The name of a label for readers.

        Parameters
        ----------
        label : str
            A label of the spec.

        Returns
        -------
        str
            Its name.
        """
        return self.label_names.get(label, label)

    @property
    def temperature(self) -> float | None:
        """The temperature of all probabilities, if the repair is a temperature alone; else None."""
        return next((x.repair.temperature for x in self.repairs if isinstance(x, RepairStage)), None)

    @property
    def about_p(self) -> str:
        """One sentence on how the probabilities were repaired."""
        if self.repairs:
            return "; ".join(map(str, self.repairs))
        return (
            "probabilities unchanged (no repair requested)"
            if self.promise.repair is None
            else "probabilities unchanged (too few rows to fit a repair)"
        )

    def at(self, alpha: Fraction) -> str:
        """The level of a comparison in words.

        Parameters
        ----------
        alpha : Fraction
            One of the values of alpha.

        Returns
        -------
        str
            "alpha 0.1", or with `miss` what a miss is worth.
        """
        miss = self.promise.miss
        return f"alpha {show_level(alpha)}" if miss is None else f"a miss worth {with_unit(f'{miss:g}', self.unit)}"

    @property
    def unit(self) -> str | None:
        """The unit of all costs, if the losses share one."""
        return self.losses[0].unit if len({loss.unit for loss in self.losses}) == 1 else None

    @property
    def within(self) -> str:
        """The end of a heading that says where coverage is guaranteed; empty if over all rows."""
        return self.promise.within

    @property
    def kind(self) -> str:
        """What is guaranteed, "coverage" or "harm"."""
        return "coverage" if self.promise.risk is None else "harm"

    def summaries(self) -> tuple[Summary, ...]:
        """Summaries over the splits, one per loss, alpha and oracle, in this order.

        Returns
        -------
        tuple of Summary
            Coverage, cost, size and time of each.
        """
        cells: dict[tuple[str, Fraction, str], list[Run]] = {}
        for run in self.runs:
            cells.setdefault((run.loss, run.alpha, run.oracle), []).append(run)
        ranked = sorted(cells, key=lambda cell: (self.names.index(cell[0]), self.alphas.index(cell[1])))
        return tuple(_summary(cells[cell], self.promise.miss) for cell in ranked)

    def table(self) -> dict[str, list[Any]]:
        """The runs as columns, one row per run.

        Returns
        -------
        dict of lists
            `term_1` is the text of the first summand and `term_1_cost` its cost. Runs of `beside` come last and differ
            in `conditional`. `risk` is the mean harm, if it is bounded.
        """
        kept = [(run, self.promise.conditional) for run in self.runs]
        if self.beside is not None:
            kept += [(run, self.beside.promise.conditional) for run in self.beside.runs]
        runs = [run for run, _ in kept]
        columns: dict[str, list[Any]] = {
            "loss": [run.loss for run in runs],
            "oracle": [run.oracle for run in runs],
            "conditional": [conditional for _, conditional in kept],
            "alpha": [float(run.evaluation.alpha) for run in runs],
            "split": [run.split for run in runs],
            "seed": [self.seed] * len(runs),
            "lam": [run.lam for run in runs],
        }
        for name in ("n", "covered", "coverage", "mean_cost", "mean_size", "empty", "handed_over", "size_violation"):
            columns[name] = [getattr(run.evaluation, name) for run in runs]
        columns["risk"] = [None if run.evaluation.risk is None else run.evaluation.risk.mean for run in runs]
        paid = [list(run.evaluation.cost_by_term.items()) for run in runs]
        for i in range(max(map(len, paid))):
            columns[f"term_{i + 1}"] = [run[i][0] if i < len(run) else None for run in paid]
            columns[f"term_{i + 1}_cost"] = [run[i][1] if i < len(run) else None for run in paid]
        columns["seconds"] = [run.seconds for run in runs]
        return columns

    def plot(self, loss: str | None = None) -> Any:
        """Draw mean cost against coverage.

        Parameters
        ----------
        loss : str, optional
            Name of the loss; by default the first.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        from udcp_dsl.report.drawing import plot_comparison

        return plot_comparison(self, loss)

    def report(
        self,
        path: PathLike,
        *,
        title: str | None = None,
        data: str | None = None,
        command: str | None = None,
        date: datetime.date | None = None,
    ) -> None:
        """Write an HTML page that opens offline.

        Parameters
        ----------
        path : str or path
            The file.
        title : str, optional
            Title of the page.
        data : str, optional
            Description of the rows, shown on the page.
        command : str, optional
            The command that made it, for the page.
        date : datetime.date, optional
            Date for the page; by default today.

        Returns
        -------
        None
            Needs the extra `report`.
        """
        from udcp_dsl.report.page import TITLE, write_report

        if self.promise.miss is not None:
            raise InputError("a report compares oracles at one alpha, but miss finds one alpha per oracle: give alphas")

        write_report(path, self, title=TITLE if title is None else title, data=data, command=command, date=date)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.names)}: {self.n} rows, {self.K} labels, {self.splits} splits)"

    def describe(self) -> Description:
        """What is printed: for each loss and alpha, cost and coverage by oracle, and what is covered least."""
        tables = [
            table
            for name in self.names
            for alpha in self.alphas
            for kept in (self, *([] if self.beside is None else [self.beside]))
            for table in kept._tables(name, alpha)
        ]
        runs = Table((), records_of(self.table()), key="runs")
        return Description(tables=(*tables, runs), notes=tuple(self._notes()), data=self._data())

    def _tables(self, name: str, alpha: Fraction) -> Iterator[Table]:
        found = [x for x in self.summaries() if (x.loss, x.alpha) == (name, alpha)]
        drawn = side_by_side(found, (Styled(name, "bold"), f", {self.at(alpha)}{self.within}"))
        lines = self.left_out(found)
        yield replace(drawn, note=tuple(piece for line in lines for piece in ("\n", line))[1:])
        if len(found[0].cost_by_term) > 1:
            terms = {x.oracle: {t: f"{cost:.4g}" for t, cost in x.cost_by_term.items()} for x in found}
            yield _table_by_oracle(f"{in_unit('mean cost', found[0].unit)} of", terms)
        yield _table_by_oracle("coverage by size", {x.oracle: _shown_strata(x.by_size) for x in found}, SIZE_BINS)
        for title, strata, order in (
            ("coverage by difficulty", "by_difficulty", QUARTERS),
            ("coverage by decision", "by_decision", (KEPT, HANDED_OVER)),
            ("coverage by group", "by_group", ()),
        ):
            if getattr(found[0], strata):
                yield _table_by_oracle(title, {x.oracle: _shown_strata(getattr(x, strata)) for x in found}, order)

    def left_out(self, summaries: Sequence[Summary]) -> list[str]:
        """Lines for one loss and alpha: strata that are covered too little, empty sets, remedies, and limits."""
        found = [(x.oracle, x.least_covered) for x in summaries if x.least_covered is not None]
        worst = [
            (oracle, least.worst)
            for oracle, least in found
            if least.worst is not None and least.worst.coverage < 1 - least.alpha
        ]
        named = [f"{oracle} '{self.called(part.name)}' {part.coverage:.3f}" for oracle, part in worst]
        short = [f"{oracle}: {least.shortfall(self.called)}" for oracle, least in found if least.short]
        ways = [max((least.ways_out for _, least in found), key=len)] if short else []
        empty = [f"{x.oracle} {x.empty:.1%}" for x in summaries if way_out(x.empty)]
        none = [f"empty sets: {', '.join(empty)}; {way_out(1.0)}"] if empty else []
        limits = summary_lines({x.oracle: x.limits for x in summaries}, summaries[0].unit)
        return [*([f"worst class: {', '.join(named)}"] if named else []), *short, *ways, *none, *limits]

    def _notes(self) -> Iterator[Line]:
        yield Styled(self.about_p, "dim")
        yield from (Styled(line, "dim") for line in self._worth_lines())
        if self.promise.confidence is not None or self.promise.risk is not None:
            guarantees = (f"alpha {show_level(alpha)} {self.promise.guarantee(alpha)}" for alpha in self.alphas)
            yield Styled("; ".join(guarantees), "dim")
        for about in dict.fromkeys(self.about.values()):
            alike = ", ".join(oracle for oracle, text in self.about.items() if text == about)
            yield Styled(f"{alike}: {about}", "dim")
        for (name, oracle), why in self.skipped.items():
            reason, _, proof = why.partition(": ")
            more = " (udcp check --why shows an example)" if proof else ""
            yield Styled(f"{oracle} is left out for {name}: {reason}{more}", "dim")
        fractions = " : ".join(f"{f:.0%}" for f in self.fractions)
        yield Styled(
            f"{self.n:,} rows, {self.K} labels, accuracy {self.accuracy:.3f}; {counted(self.splits, 'split')} into "
            f"{fractions} (thresholds, tuning, test). * marks the cheapest; compare costs at equal {self.kind} only. "
            + (
                f"Coverage: mean over splits, with a {CONFIDENCE:.0%} prediction interval for a new split. Cost: mean "
                "over splits, with its standard error as if they were independent."
                if self.splits > 1
                else f"Coverage: with its exact {CONFIDENCE:.0%} interval."
            ),
            "dim",
        )

    def _worth_lines(self) -> Iterator[str]:
        """The worth of a miss at two points of the curve, for each oracle with prices."""
        for (name, oracle), points in self.worths.items():
            unit = self.losses[self.names.index(name)].unit
            shown = [points[i] for i in (len(points) // 3, 2 * len(points) // 3)] if len(points) > 2 else points
            worths = " and ".join(f"{with_unit(f'{tau:.4g}', unit)} at coverage {c:.3f}" for c, tau in shown)
            yield f"{name} by {oracle}: a missed true label is valued at {worths}"

    def _data(self) -> dict[str, object]:
        beside = self.beside
        return {
            "n": self.n,
            "K": self.K,
            "accuracy": self.accuracy,
            "alphas": [show_level(alpha) for alpha in self.alphas] if self.promise.miss is None else [],
            "splits": self.splits,
            "seed": self.seed,
            "fractions": self.fractions,
            "repair": self.about_p,
            "temperature": self.temperature,
            "confidence": None if self.promise.confidence is None else show_level(self.promise.confidence),
            "risk": self.promise.risk,
            "miss": self.promise.miss,
            "summaries": [_plain(summary) for summary in self.summaries()],
            "beside": None
            if beside is None
            else {
                "conditional": beside.promise.conditional,
                "bins": beside.promise.bin_count,
                "summaries": [_plain(summary) for summary in beside.summaries()],
            },
            "about": self.about,
            "skipped": [{"loss": loss, "oracle": oracle, "why": why} for (loss, oracle), why in self.skipped.items()],
            "curves": [
                {"loss": loss, "oracle": oracle, "points": points} for (loss, oracle), points in self.curves.items()
            ],
            "worth of a miss": [
                {"loss": loss, "oracle": oracle, "alpha": point.alpha, "worth": point.worth}
                for (loss, oracle), curve in self.along.items()
                for point in curve.points
                if point.worth is not None
            ],
            "examples": self.examples,
        }


def median_of_means(values: npt.ArrayLike) -> float:
    """The median of the means of up to five blocks of successive values; block sizes differ by at most one.

    >>> median_of_means([1, 1, 1, 1, 1, 1, 1, 1, 1, 100])
    1.0
    """
    array = np.asarray(values, dtype=np.float64)
    return float(np.median([block.mean() for block in np.array_split(array, min(_BLOCKS, len(array)))]))


def _summary(runs: Sequence[Run], miss: float | None) -> Summary:
    measured = [run.evaluation for run in runs]
    coverage = np.array([x.coverage for x in measured])
    costs = np.array([x.mean_cost for x in measured])
    mean, many = float(coverage.mean()), len(runs) > 1
    interval = measured[0].interval
    if many:
        from scipy.stats import t  # slow to import

        quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(runs) - 1))
        reach = quantile * float(coverage.std(ddof=1)) * math.sqrt(1 + 1 / len(runs))
        interval = (max(0.0, mean - reach), min(1.0, mean + reach))
    return Summary(
        unit=measured[0].unit,
        total=None if miss is None else float(costs.mean()) + miss * (1 - mean),
        loss=runs[0].loss,
        oracle=runs[0].oracle,
        alpha=runs[0].alpha,
        alpha_found=float(np.mean([float(x.alpha) for x in measured])),
        coverage=mean,
        coverage_interval=interval,
        cost=median_of_means(costs),
        cost_mean=float(costs.mean()),
        cost_error=float(costs.std(ddof=1) / np.sqrt(len(runs))) if many else None,
        cost_by_term={
            term: float(np.mean([x.cost_by_term[term] for x in measured])) for term in measured[0].cost_by_term
        },
        size=float(np.mean([x.mean_size for x in measured])),
        empty=sum(x.empty for x in measured) / sum(x.n for x in measured),
        seconds=float(np.mean([run.seconds for run in runs])),
        by_size=_shares(measured, "size"),
        by_group=_shares(measured, "group"),
        by_decision=_shares(measured, "decision"),
        by_difficulty=_shares(measured, "difficulty"),
        risk=None if measured[0].risk is None else float(np.mean([x.risk.mean for x in measured if x.risk])),
        least_covered=least_covered(measured),
        limits=summarise([x.limits for x in measured]),
    )


def _shares(measured: Sequence[Evaluation], kind: str) -> dict[str, tuple[float, float]]:
    """Coverage and share of the rows for each stratum of a kind, pooled over the splits."""
    found = pooled_by(measured, kind)
    n = sum(stratum.seen for stratum in found)
    ordered = sorted(found, key=lambda stratum: stratum.name) if kind in ("group", "decision") else found
    return {stratum.name: (stratum.coverage, stratum.seen / n) for stratum in ordered}


def _plain(summary: Summary) -> dict[str, Any]:
    def named(strata: Mapping[str, tuple[float, float]]) -> dict[str, dict[str, float]]:
        return {name: {"coverage": covered, "share": share} for name, (covered, share) in strata.items()}

    by = {key: named(value) for key, value in vars(summary).items() if key.startswith("by_")}
    return {**vars(summary), **by, "alpha": None if summary.total is not None else show_level(summary.alpha)}


def side_by_side(summaries: Sequence[Summary], title: Line = "") -> Table:
    """A table of the oracles for one loss at one alpha, with the cheapest marked."""
    found = summaries[0].total is not None
    cheapest = min(x.objective for x in summaries)
    columns = (
        Column("oracle", lambda x: f"{x.oracle} *" if x.objective == cheapest else x.oracle),
        *([Column("alpha", "alpha_found", ".4f"), Column("with misses", "total", ".5g")] if found else []),
        *([] if summaries[0].risk is None else [Column("harm", "risk", ".4g")]),
        Column("coverage", "coverage", ".4f"),
        Column("interval", lambda x: "{:.3f} to {:.3f}".format(*x.coverage_interval), kind="number"),
        Column(in_unit("cost", summaries[0].unit), "cost_mean", ".5g", bar=True),
        Column("error", "cost_error", ".2g"),
        Column("size", "size", ".4g"),
        Column("empty", "empty", ".1%"),
        Column("seconds", "seconds", ".3f"),
    )
    return Table(columns, summaries, title, stands_out=lambda x: x.objective == cheapest)


def _table_by_oracle(title: str, cells: Mapping[str, Mapping[str, str]], order: Sequence[str] = ()) -> Table:
    """One column per oracle, and one row per key that any of them has; only the first rows if there are many."""
    rows = list(dict.fromkeys((*order, *(row for column in cells.values() for row in column))))
    present = [row for row in rows if any(row in column for column in cells.values())]
    oracles = (Column(oracle, column.get, kind="number") for oracle, column in cells.items())
    more = len(present) - _ROWS_SHOWN
    note = f"and {more} more" if more > 0 else ""
    return Table((Column(title, str), *oracles), present[:_ROWS_SHOWN], note=note)


def _shown_strata(strata: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    return {name: f"{covered:.3f} ({share:.0%})" for name, (covered, share) in strata.items()}


# Cost as a function of coverage, and so the cost at a given coverage, with an error that accounts for both.
#
# Interpolate between the two alphas around a coverage c: a share t of the way, row i has the cost x_i = (1 - t) x_i1
# + t x_i2 and the coverage z_i = (1 - t) z_i1 + t z_i2, so that z has mean c. On other rows, the coverage of the same
# thresholds would differ from c; correcting it along the curve changes the cost by its slope b. So the error of the
# cost at c is that of the mean of x_i - b z_i (the delta method). Two oracles are measured on the same rows, so the
# error of their difference is that of the mean of the row-wise differences.
#
# The slope is an estimate, too, and rests on few rows: those whose coverage changes between c and the coverage that
# these thresholds have in general, c + d, where d has standard deviation s = sqrt(c (1 - c) / n). The change of x_i -
# b z_i over a stretch w of coverage is e_i, with variance v w; summed along the curve, these are a random walk. So
# over a stretch d, the cost is off by a mean with variance v |d| / n, which adds v E|d| / n to the variance, E|d| =
# sqrt(2 / pi) s; or v s^2 / (w n) within one step of the curve, of width w, where the line is straight. The stretches
# of two oracles overlap by (|d| + |d'| - |d - d'|) / 2: a share of 1 - sqrt((1 - r) / 2) on average, if their
# coverage has correlation r.
#
# The standard deviation s rests on the rows that are missed, about n (1 - c), so a cost has Student's quantile. In a
# saving, the coverage of two oracles cancels for the most part, and the normal quantile is wide enough. In simulations
# with 100 to 5,000 rows, intervals held in 93 to 98 percent of draws at coverage 0.8 to 0.95. At 0.98 it was 91 percent
# or more, since the curve bends and few of its points are near.


def single_worth(worth: Worth) -> float | None:
    """The worth of a miss if it is one finite number, else None. It is infinite if every label is in."""
    return worth if isinstance(worth, float) and math.isfinite(worth) else None


@dataclass(frozen=True)
class CurvePoint:
    """One alpha along a curve.

    `worth` is the worth of a missed truth, the threshold of an oracle whose scores are prices. It is None for other
    oracles, where thresholds differ between parts of the rows, and if every label is in.
    """

    alpha: float
    coverage: float
    cost: float
    worth: float | None = None


@dataclass(frozen=True, eq=False)
class MatchedCost:
    """The mean cost at one coverage.

    Of some of the `n` rows, `rows` are the x_i - b z_i, `covered` the z_i, and `steps` the e_i / sqrt(w); `stretch` is
    the mean coverage between the two thresholds.
    """

    mean: float
    rows: npt.NDArray[np.float64] = field(repr=False)
    n: int
    coverage: float
    covered: npt.NDArray[np.float64] = field(repr=False)
    steps: npt.NDArray[np.float64] = field(repr=False)
    stretch: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 percent interval of the mean."""
        from scipy.special import stdtrit  # slow to import

        missed = self.n * min(self.coverage, 1 - self.coverage)
        variance = self.rows.var() + self.stretch * self.steps.var()
        reach = float(stdtrit(max(1.0, missed - 1), _HIGH)) * math.sqrt(float(variance) / self.n)
        return self.mean - reach, self.mean + reach

    def saving(self, other: MatchedCost) -> tuple[float, float, float] | None:
        """The share of the other's cost that this saves, with its interval; None if that cost is not positive."""
        if other.mean <= 0:
            return None
        ratio = self.mean / other.mean
        variance = (self.rows - ratio * other.rows).var() + self._slopes_variance(other, ratio)
        reach = _Z_95 * math.sqrt(float(variance) / self.n) / other.mean
        return 1 - ratio, 1 - ratio - reach, 1 - ratio + reach

    def _slopes_variance(self, other: MatchedCost, ratio: float) -> float:
        """What the two slopes add to the variance of a row's difference."""
        alike = np.cov(self.covered, other.covered)
        spread = math.sqrt(alike[0, 0] * alike[1, 1])
        overlap = 1 - math.sqrt(max(0.0, 1 - alike[0, 1] / spread) / 2) if spread > 0 else 0.0
        (own, both), (_, others) = np.cov(self.steps, other.steps, bias=True)
        shared = overlap * min(self.stretch, other.stretch) * both
        return float(self.stretch * own + ratio**2 * other.stretch * others - 2 * ratio * shared)


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Mean cost and coverage of an oracle's sets at several alphas, on the same n rows; for some rows, one by one."""

    points: tuple[CurvePoint, ...] = ()
    costs: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    covered: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), dtype=bool), repr=False)
    n: int = 0

    @classmethod
    def of(
        cls,
        alphas: Sequence[Fraction],
        costs: Sequence[npt.NDArray[np.float64]],
        covered: Sequence[npt.NDArray[np.bool_]],
        worths: Sequence[Worth],
    ) -> CostCurve:
        """The curve from each row's cost, and whether it is covered, at each alpha."""
        if not alphas:
            return cls()
        n = len(costs[0])
        points = tuple(
            CurvePoint(float(alpha), float(hit.mean()), float(cost.mean()), single_worth(worth))
            for alpha, cost, hit, worth in zip(alphas, costs, covered, worths, strict=True)
        )
        kept = np.unique(np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(np.int64))
        return cls(points, np.stack([cost[kept] for cost in costs]), np.stack([hit[kept] for hit in covered]), n)

    def at(self, coverage: float) -> MatchedCost | None:
        """The cost at a given coverage; None beyond the ends of the curve.

        >>> curve = CostCurve.of(
        ...     [Fraction(1, 2), Fraction(1, 4)],
        ...     [np.array([1.0, 1, 2, 4]), np.array([2.0, 4, 6, 8])],
        ...     [np.array([True, True, False, False]), np.array([True, True, True, False])],
        ...     [None, None],
        ... )
        >>> curve.at(0.625).mean, curve.at(0.9)
        (3.5, None)
        """
        order = sorted(range(len(self.points)), key=lambda i: (self.points[i].coverage, self.points[i].cost))
        reached = [self.points[i].coverage for i in order]
        for place, (low, high) in enumerate(pairwise(reached)):
            if low <= coverage <= high:
                part = (coverage - low) / (high - low) if high > low else 0.0
                first, second = order[place], order[place + 1]
                mean = (1 - part) * self.points[first].cost + part * self.points[second].cost
                rows = (1 - part) * self.costs[first] + part * self.costs[second]
                hits = (1 - part) * self.covered[first] + part * self.covered[second]
                slope, steps = self._slope(order, place)
                away = math.sqrt(coverage * (1 - coverage) / self.n)
                stretch = away * min(math.sqrt(2 / math.pi), away / max(high - low, away / 2))
                return MatchedCost(mean, rows - slope * hits, self.n, coverage, hits, steps, stretch)
        return None

    def _slope(self, order: Sequence[int], place: int) -> tuple[float, npt.NDArray[np.float64]]:
        """The slope of cost against coverage, over one more point on each side, so that it is less noisy; and each
        row's deviation from it, per square root of coverage."""
        low, high = order[max(0, place - 1)], order[min(len(order) - 1, place + 2)]
        width = self.points[high].coverage - self.points[low].coverage
        if width <= 0:
            return 0.0, np.zeros(self.costs.shape[1])
        slope = (self.points[high].cost - self.points[low].cost) / width
        more_covered = self.covered[high].astype(np.float64) - self.covered[low]
        return slope, (self.costs[high] - self.costs[low] - slope * more_covered) / math.sqrt(width)


def runs_ending(path: PathLike) -> str:
    """The ending of a file for `write_runs`; raises an error for those that it cannot write."""
    ending = known_ending(Path(path), _ENDINGS)
    if ending != ".csv":
        require_pyarrow(ending)
    return ending


def write_runs(path: PathLike, comparison: Comparison) -> None:
    """Write the columns of `comparison.table()`; in a .csv, missing values are empty cells."""
    ending = runs_ending(path)
    columns = comparison.table()
    with atomic_write(path) as temporary:
        if ending == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, lineterminator="\n")
                writer.writerow(columns)
                for row in zip(*columns.values(), strict=True):
                    writer.writerow(map(as_cell, row))
        else:
            _write_arrow(temporary, columns, ending)


def _write_arrow(file: Path, columns: dict[str, list[Any]], ending: str) -> None:
    pa = require_pyarrow(ending)
    # An empty column has no type of its own: these would hold numbers, all others text.
    numbers = ("lam", "handed_over", "size_violation", "risk")
    empty = {name: pa.float64() if name in numbers else pa.string() for name, x in columns.items() if set(x) == {None}}
    table = pa.table({name: pa.array(values, empty.get(name)) for name, values in columns.items()})
    writer = pa.parquet.ParquetWriter if ending == ".parquet" else pa.ipc.new_file
    with writer(file, table.schema) as out:
        out.write_table(table)
