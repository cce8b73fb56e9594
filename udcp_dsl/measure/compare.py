"""`compare`: choose the oracles that take part, run them on all splits, and pick rows to look at.

The score of a row depends on that row alone, so all rows are scored once, and splits select from the scores. Oracles
with an anchor are the exception: their scores depend on the split.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, OracleError, did_you_mean, keeping_warnings, warn, worded
from udcp_dsl.expression.decisions import best_actions
from udcp_dsl.loss import Loss
from udcp_dsl.measure.comparison import Comparison, CostCurve, Example, Run, Worth
from udcp_dsl.measure.evaluate import MeasuredRows, measure
from udcp_dsl.predict.calibrate import DEFAULT_GRID, CalibrationWarning, Level, show_level
from udcp_dsl.predict.calibrate.strata import bins_needed
from udcp_dsl.predict.chain import Fitted, applying, fit_folds, fit_repairs, seen, worth_of
from udcp_dsl.predict.oracle import (
    Floats,
    Given,
    Indices,
    Masks,
    Oracle,
    Probabilities,
    declaration_of,
    make_oracle,
    oracle_names,
    with_lambda,
)
from udcp_dsl.predict.promise import COMPARED, OPTIONS, Promise, Temperature, promise_from
from udcp_dsl.predict.repair import Repair
from udcp_dsl.predict.row_warnings import (
    warn_of_counted_labels,
    warn_of_free_labels,
    warn_of_high_alpha,
    warn_of_training_rows,
    warn_of_wrong_truth,
    warn_of_zeros,
)
from udcp_dsl.predict.sets import PredictionSets
from udcp_dsl.predict.stages.alpha_of_miss import AbstainingIsCheapest
from udcp_dsl.predict.stages.decision import check_decides
from udcp_dsl.predict.stages.stage import FitContext, LimitError, Stage, placed
from udcp_dsl.rows.rows import Rows, rows_of

# Called with the units of work and a description of the work, it yields the units one after the other.
Progress: TypeAlias = Callable[[Sequence[Any], str], Iterable[Any]]
Within: TypeAlias = Literal["difficulty", "decision"] | None
Places: TypeAlias = npt.NDArray[np.intp]  # positions of rows

FRACTIONS = (0.5, 0.25, 0.25)  # shares of the folds for thresholds, tuning and test
# The alphas of the curves of cost against coverage; those that need more points than a fold has are left out.
CURVE = tuple(Fraction(k, 200) for k in (2, 4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80))

_MAX_SCORES_IN_MEMORY = 1 << 26  # most scores that are kept in memory: 512 MiB
_OURS = "price"
_EXAMPLES = 40
_COMPETING = 3
_TOP = 12  # likeliest labels of an example, kept whatever the sets
_READABLE = 9  # most labels of a set that is easy to read


@dataclass(frozen=True, eq=False)
class Folds:
    """Positions of rows in disjoint folds, each in ascending order; `halves` are those of the fold for tuning."""

    split: int
    calibration: Places
    halves: tuple[Places, Places]
    test: Places


def deal(n: int, fractions: Sequence[float], seed: int, splits: int) -> list[Folds]:
    """The folds of every split of n rows; a split does not depend on the number of splits."""
    if len(fractions) != 3 or not all(0 < f < 1 for f in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise InputError(f"fractions are {fractions}: give three above 0 that sum to 1 (thresholds, tuning, test)")
    calibrated, tuned = round(n * fractions[0]), round(n * (fractions[0] + fractions[1]))
    half = (calibrated + tuned + 1) // 2
    if not 0 < calibrated < half < tuned < n:
        raise InputError(f"{n} rows are too few to split into {fractions}, with the tuning part halved: give more rows")
    folds = []
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(n)
        calibration, first, second, test = (np.sort(part) for part in np.split(order, (calibrated, half, tuned)))
        folds.append(Folds(split, calibration, (first, second), test))
    return folds


def warn_of_too_few(folds: Folds, promise: Promise, loss: Loss, *, tuned: bool) -> None:
    """Warn if a fold has too few rows for a finite threshold."""
    alpha, by_bin = min(promise.alphas), promise.by_difficulty
    need = promise.rule(promise.bin_count if by_bin else 1, promise.harm(loss)).needed(alpha)
    needed = f"alpha {show_level(alpha)} needs {need}"
    faults = []
    if not by_bin and tuned and len(folds.halves[0]) < need:
        half = len(folds.halves[0])
        faults.append((f"half the fold for tuning has {half} row{'' if half == 1 else 's'}", "lambda cannot be tuned"))
    if by_bin:
        need = bins_needed(promise.bin_count, need)
        needed += f" in each of {promise.bin_count} bins by difficulty, {need} in all to keep these apart"
    if len(folds.calibration) < need:
        effect = "bins are merged" if by_bin else "all sets contain all labels"
        faults.insert(0, (f"the fold for thresholds has {len(folds.calibration)} rows", effect))
    remedy = "give more rows or a larger alpha" + (", or fewer bins" if by_bin else "")
    for fold, effect in faults:
        warn(f"{fold}, and {needed}, so {effect}: {remedy}", CalibrationWarning)


@dataclass(frozen=True, eq=False)
class Contender:
    """An oracle made for a loss; if it is to be tuned, one for every lambda of the grid."""

    loss_name: str
    oracle_name: str
    loss: Loss
    oracles: Mapping[float | None, Oracle]

    @property
    def tuned(self) -> bool:
        """Whether there is a lambda to choose."""
        return None not in self.oracles

    @property
    def oracle(self) -> Oracle:
        """The oracle, or the first of the candidates."""
        return next(iter(self.oracles.values()))

    def context(self, promise: Promise) -> FitContext:
        """What its stages are fitted for."""
        candidates = {lam: oracle for lam, oracle in self.oracles.items() if lam is not None}
        return FitContext(promise, self.oracle, candidates or None)


@dataclass(frozen=True, eq=False)
class PreparedContender:
    """A contender with all rows as its oracles take them: already scored, or as probabilities."""

    contender: Contender  # its oracles look scores up, if the rows are scored
    data: Rows
    seen: Rows
    unscored: PreparedContender | None = None  # the same with probabilities, which decisions need

    @classmethod
    def of(cls, contender: Contender, data: Rows, promise: Promise) -> PreparedContender:
        """Score all rows, unless scores depend on an anchor or on multipliers of limits, which differ by split."""
        context = contender.context(promise)
        rows = seen(context, (), data).with_columns(top=data.highest_probabilities, place=np.arange(len(data)))
        if context.oracle.wants_anchor or context.enforces_limits:
            context.oracle.best(rows.take(slice(0, 2)), np.zeros(2))  # compiles kernels, which no run should include
            return cls(contender, data, rows)
        hold = rows.P.size * len(contender.oracles) <= _MAX_SCORES_IN_MEMORY
        scored = {lam: RememberedScores(oracle, rows, hold=hold) for lam, oracle in contender.oracles.items()}
        empty = rows.with_columns(P=np.empty((len(rows), 0)))
        plain = cls(contender, data, rows.with_columns(P=data.P))
        return cls(replace(contender, oracles=scored), data, empty, plain)

    def seconds(self, folds: Folds) -> float | None:
        """The seconds that scoring the rows of a split took; None if each split scores its own rows."""
        scored = [x for x in self.contender.oracles.values() if isinstance(x, RememberedScores)]
        if not scored:
            return None
        tuning = sum(map(len, folds.halves)) * sum(x.seconds_per_row for x in scored) if self.contender.tuned else 0.0
        return tuning + scored[0].seconds_per_row * (len(folds.calibration) + len(folds.test))


@dataclass(frozen=True, eq=False)
class SplitResult:
    """A contender on one split: its run at each alpha.

    On the first split, if the promise is marginal, also the cost curve (with the worth of a miss, if the oracle has
    prices), the sets at the first alpha, and the p-values of all labels as a function of places in the test fold.
    """

    runs: tuple[Run, ...]
    curve: CostCurve
    mask: Masks | None
    p_values: Callable[[Places], Floats] | None


def run_split(prepared: PreparedContender, folds: Folds, promise: Promise) -> SplitResult:
    """Calibrate, tune and measure a contender on a split, at every alpha and, on the first split, along the curve."""
    test, alphas, contender = folds.test, promise.alphas, prepared.contender
    first = folds.split == 0 and promise.is_marginal
    grid = _grid(promise, contender.loss, folds) if first else []
    tested = prepared.data.take(test)
    runs, points = dict[Fraction, Run](), dict[Fraction, tuple[Fraction, Floats, Masks, Worth]]()
    fixed = promise if promise.miss is None else promise.at_alpha
    first_mask, first_p = None, None
    for level in dict.fromkeys((*alphas, *grid)):
        began = time.perf_counter()
        try:
            fitted = _fit(prepared, folds, promise if promise.miss and level in alphas else fixed.at(level))
        except LimitError:
            if level in alphas:
                raise
            continue  # the curve lacks this point
        shown = placed(fitted.context, fitted.stages, prepared.seen.take(test))
        mask = fitted.sets(shown)
        took, known = time.perf_counter() - began, prepared.seconds(folds)
        sets = PredictionSets(contender.loss, mask, inputs=tested.inputs, decided=shown.decided)
        if level in grid:
            covered = mask[np.arange(len(test)), tested.truth]
            worth = worth_of(fitted.context.oracle, fitted.thresholds)
            points[level] = (level, sets.costs, covered, worth)
        if level in alphas:
            key, tuned = (contender.loss_name, contender.oracle_name), fitted.find("lambda")
            limited = fitted.find("multipliers")
            nu = None if limited is None else limited.effects.multipliers
            parts = [MeasuredRows.of(sets, tested, promise)]
            measures = measure(parts, sets.loss, promise, alpha=fitted.alpha, oracle=key[1], multipliers=nu)
            lam = None if tuned is None else tuned.tuning.best
            runs[level] = Run(*key, level, folds.split, measures, lam, took if known is None else known)
        if first and level == alphas[0]:
            first_mask, first_p = mask, _p_values(prepared, fitted, folds)
    found = [points[level] for level in grid if level in points]
    curve = CostCurve.of(*zip(*found, strict=True)) if found else CostCurve()
    return SplitResult(tuple(runs[level] for level in alphas), curve, first_mask, first_p)


def _fit(prepared: PreparedContender, folds: Folds, promise: Promise) -> Fitted:
    """The fit at one alpha: tuned on the halves of the second fold, thresholds from the first."""
    rows = prepared.seen.take(folds.calibration)
    context = prepared.contender.context(promise).with_rows(rows)
    tuned = [
        (stage, [prepared.seen.take(fold) for fold in stage.folds_from_halves(folds.halves)])
        for stage in applying(context, repairs=False)
    ]
    (fitted,) = fit_folds(context, (), tuned, rows).values()
    return fitted


def _p_values(prepared: PreparedContender, fitted: Fitted, folds: Folds) -> Callable[[Places], Floats]:
    return lambda places: fitted.p_values(placed(fitted.context, fitted.stages, prepared.seen.take(folds.test[places])))


def _grid(promise: Promise, loss: Loss, folds: Folds) -> list[Fraction]:
    """The levels of the curve; if harm is bounded, as shares of the largest harm."""
    rule, smallest = promise.rule(1, promise.harm(loss)), min(len(folds.calibration), len(folds.halves[0]))
    return [level for level in (share * rule.below for share in CURVE) if rule.needed(level) <= smallest]


class RememberedScores(Oracle):
    """An oracle that has scored all rows of a comparison, and looks up those at the `place` of the rows it is given;
    these need no probabilities.

    If all scores would take too much memory, only those of the true labels are kept, and others are computed again.
    """

    reads = ("place",)

    def __init__(self, oracle: Oracle, rows: Rows, *, hold: bool) -> None:
        super().__init__(oracle.loss)
        self.name, self.priced = oracle.name, oracle.priced
        self._oracle, self._rows = oracle, rows
        self._compute(slice(0, 2), hold)  # compiles the kernels, which no run's time should include
        began = time.perf_counter()
        self._all, self._true = self._compute(slice(0, len(rows)), hold)
        self.seconds_per_row = (time.perf_counter() - began) / len(rows)

    def _compute(self, part: slice, hold: bool) -> tuple[Floats | None, Floats]:
        rows = self._rows.take(part)
        if not hold:
            return None, self._oracle.score_of(rows, rows.truth)
        scores = self._oracle.scores(rows)
        return scores, scores[np.arange(len(rows)), rows.truth]

    def _read(self, given: Given, inputs: object) -> tuple[Probabilities, dict[str, Any]]:
        assert isinstance(given, Rows)
        return np.broadcast_to(0.0, (len(given), self.loss.K)), {"place": given.place}

    def _scores(self, P: Probabilities, place: Indices) -> Floats:
        return self._oracle.scores(self._rows.take(place)) if self._all is None else self._all[place]

    def _score_of(self, P: Probabilities, y: Indices, place: Indices) -> Floats:
        found: Floats = self._true[place]  # of the true labels: calibration needs no others
        return found

    def _sets(self, P: Probabilities, tau: Floats, place: Indices) -> Masks:
        if self._all is None:
            return self._oracle.sets(self._rows.take(place), tau)
        found: Masks = self._all[place] <= tau
        return found

    def _first(self, P: Probabilities, place: Indices) -> Indices:
        return self._oracle.first(self._rows.take(place))


_Results: TypeAlias = dict[tuple[str, str], list[list[SplitResult]]]


def compare(
    losses: Loss | Sequence[Loss],
    probs: Any,
    y: Any = None,
    *,
    promise: Promise | None = None,
    alphas: Level | Sequence[Level] | None = None,
    miss: float | None = None,
    oracles: Sequence[str] | Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
    splits: int = 10,
    fractions: tuple[float, float, float] = FRACTIONS,
    seed: int = 0,
    groups: Any = None,
    inputs: Any = None,
    ids: Any = None,
    ignore: Sequence[str] = (),
    class_names: Sequence[object] | None = None,
    label_names: Mapping[str, str] | None = None,
    conditional: Within = None,
    bins: int | None = None,
    confidence: Level | None = None,
    risk: str | None = None,
    repair: Literal["auto", "temperature"] | Repair | None = "auto",
    temperature: Temperature = None,
    workers: int = 2,
    progress: Progress | None = None,
) -> Comparison:
    """Compare what oracles cost and cover, on random splits of labelled rows.

    The rows must not be those that the classifier was trained on. The same seed gives the same result, except for
    times.

    Parameters
    ----------
    losses : Loss or sequence of Loss
        The losses. They must have the same labels in the same order.
    probs : array, tensor, frame or nested lists, shape (n, K)
        Probabilities, as for `SetPredictor.calibrate`.
    y : sequence, shape (n,)
        True labels.
    promise : Promise, optional
        All guarantees as one value, instead of `alphas`, `conditional`, `bins`, `confidence`, `risk` and `repair`.
    alphas : float or sequence of float, default 0.1
        Share of true labels that sets may miss.
    oracles : sequence of str, or mapping, optional
        Oracles by name. By default all that apply, except `ilp`, which solves a program for every row. A mapping gives
        them names of your own, each with an oracle and its options: `{"paper": ("greedy", {"mass": "through"})}`.
    splits : int, default 10
        Number of random splits.
    fractions : tuple of float, default (0.5, 0.25, 0.25)
        Shares of the rows for thresholds, tuning and test.
    seed : int, default 0
        Random seed for the splits.
    groups : sequence, optional
        Group of each row. Coverage is reported by group; thresholds are those of all rows.
    inputs : mapping or frame, optional
        Numbers that the losses read for each row, by name.
    ids : sequence, optional
        Names of the rows, for the examples.
    ignore : sequence of str, optional
        Columns of a frame to leave unread.
    class_names : sequence, optional
        Names of the columns of `probs`, if they are not in the order of the labels.
    label_names : mapping, optional
        Names of labels for readers, if the labels are codes.
    miss : float, optional
        Cost of a missed true label, in the unit of the loss. Replaces `alphas`: each oracle finds its own alpha on
        each split.
    conditional : {"difficulty", "decision"}, optional
        Add a second comparison on the same splits, `beside`, with coverage guaranteed in each part by difficulty, or
        within each decision.
    bins : int, default 4
        Number of parts by difficulty.
    confidence, risk
        Guarantees, as for `SetPredictor`.
    repair : {"auto", "temperature"}, Repair or None, default "auto"
        Correction of the probabilities, fitted on a fifth of the rows (at most 1,000), which are in no split.
    temperature : float or "fit", optional
        Deprecated; use `repair`.
    workers : int, default 2
        Number of threads that share the splits.
    progress : callable, optional
        Called after each oracle and split.

    Returns
    -------
    Comparison
        Costs, coverage and times of every run.

    Raises
    ------
    InputError
        The data or the options are invalid.
    OracleError
        An oracle that was named does not apply.

    Examples
    --------
    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads(
    ...     "labels {cat, dog, wolf}  category wild {wolf}  loss l = size + 5 * any(wild)"
    ... )
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], 400)
    >>> y = [rng.choice(3, p=p) for p in P]
    >>> found = udcp.compare(loss, P, y, oracles=["lac", "price"], splits=5)
    >>> {x.oracle: round(x.cost, 2) for x in found.summaries()}
    {'lac': 5.15, 'price': 4.56}
    """
    requested = compared_promise(promise_from(promise, {**locals(), "alpha": alphas}))
    compared = (losses,) if isinstance(losses, Loss) else tuple(losses)
    names = _names(compared)
    _check(requested, compared, {"splits": splits, "workers": workers})
    called = _checked_label_names(compared[0], label_names)
    contenders, skipped = _contenders(compared, names, oracles)
    for loss in compared:
        if any(x.by_cost for contender in contenders if contender.loss is loss for x in contender.oracles.values()):
            warn_of_free_labels(loss)
    given = {"y": y, "groups": groups, "inputs": inputs, "ids": ids, "ignore": ignore, "class_names": class_names}
    data = rows_of(probs, compared[0].labels, loss=[*map(requested.reads, compared)], **given)
    warn_of_counted_labels(data)
    warn_of_wrong_truth(data)
    warn_of_training_rows(data)
    repairs, numbers, data = _repaired(contenders[0], requested, data)
    folds = deal(len(data), fractions, requested.seed, int(splits))
    overall = replace(requested, conditional=None, bins=None)
    promises = (overall,) if requested.is_marginal else (overall, requested)
    tuned = any(contender.tuned for contender in contenders)
    for each in promises:  # losses with one rule need equally many rows
        for loss in {each.rule(1, each.harm(loss)): loss for loss in compared}.values():
            warn_of_too_few(folds[0], each, loss, tuned=tuned)
    if requested.risk is None:
        warn_of_zeros(data, min(requested.alphas))
    results, abstaining = _results(contenders, data, folds, promises, workers, progress)
    skipped |= abstaining
    for name in names:
        if all(of != name for of, _ in results):
            raise AbstainingIsCheapest(next(why for (of, _), why in reversed(skipped.items()) if of == name))
    first = {key: found[0][0] for key, found in results.items()}
    by_loss = {name: {oracle: x for (of, oracle), x in first.items() if of == name} for name in names}
    comparison = Comparison(
        losses=compared,
        names=names,
        alphas=requested.alphas,
        splits=int(splits),
        seed=requested.seed,
        fractions=fractions,
        runs=_runs(results, 0),
        skipped=skipped,
        examples={
            name: examples(loss, data, folds[0].test, by_loss[name], called, numbers)
            for name, loss in zip(names, compared, strict=True)
        },
        accuracy=data.hits / len(data),
        n=len(data),
        K=compared[0].K,
        promise=overall,
        label_names=called,
        about={x.oracle_name: variant for x in contenders if (variant := x.oracle.about) is not None},
        repairs=repairs,
        along={key: result.curve for key, result in first.items()},
    )
    if requested.is_marginal:
        return comparison
    beside = replace(comparison, promise=requested, runs=_runs(results, 1), along={}, examples={})
    return replace(comparison, beside=beside)


def _check(promise: Promise, losses: Sequence[Loss], counts: Mapping[str, int]) -> None:
    """Refuse what cannot be compared, and warn of a high alpha."""
    warn_of_high_alpha(promise)
    for loss in losses:
        promise.harm(loss)  # in the unit of each loss's spec, so that alpha must be valid for each
        if promise.by_decision:
            check_decides(loss)
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} is {value!r}: give a whole number, 1 or more")


def _checked_label_names(loss: Loss, label_names: Mapping[str, str] | None) -> dict[str, str]:
    """The names of labels for readers; InputError for what is not a label."""
    called = dict(label_names or {})
    unknown = sorted(set(called) - set(loss.labels))
    if unknown:
        near = did_you_mean(unknown[0], loss.labels)
        raise InputError(f"{worded('label_names', '--names')}: {unknown[0]!r} is not a label; {near}")
    return called


def _results(
    contenders: Sequence[Contender],
    data: Rows,
    folds: Sequence[Folds],
    promises: Sequence[Promise],
    workers: int,
    progress: Progress | None,
) -> tuple[_Results, dict[tuple[str, str], str]]:
    """The results by loss and oracle, for each split under each promise; and why some oracles have none."""
    tasks = [(contender, split) for contender in contenders for split in range(len(folds))]
    results, without = _Results(), dict[tuple[str, str], str]()
    with keeping_warnings(CalibrationWarning), ThreadPoolExecutor(workers) as pool:  # warned before, once
        running: list[list[Future[SplitResult]]] = []
        for contender, split in tasks if progress is None else progress(tasks, f"comparing over {len(folds)} splits"):
            if split == 0:
                prepared = PreparedContender.of(contender, data, promises[0])
                plain = prepared.unscored or prepared
                variants = [(plain if each.by_decision else prepared, each) for each in promises]
                running = [
                    [pool.submit(copy_context().run, run_split, own, fold, each) for own, each in variants]
                    for fold in folds
                ]
            key = contender.loss_name, contender.oracle_name
            try:
                results.setdefault(key, []).append([one.result() for one in running[split]])
            except AbstainingIsCheapest as error:  # only for this oracle: its sets miss too much for their cost
                without[key] = str(error)
    return {key: found for key, found in results.items() if key not in without}, without


def _runs(results: _Results, place: int) -> tuple[Run, ...]:
    """The runs under the promise at `place`, in the order of losses, oracles, alphas, splits."""
    by_split = ([split[place].runs for split in found] for found in results.values())
    return tuple(run for runs in by_split for of_alpha in zip(*runs, strict=True) for run in of_alpha)


def compared_promise(promise: Promise) -> Promise:
    """The promise, if a comparison can show it; raises InputError otherwise."""
    if promise.conditional not in (None, "difficulty", "decision"):
        raise InputError(
            f'conditional is {promise.conditional!r}: give None, "difficulty" or "decision"; for groups use groups='
        )
    others = [name for name, own in OPTIONS.items() if name not in COMPARED and getattr(promise, name) != own.default]
    if others:
        raise InputError(f"a comparison cannot use {others[0]}: leave it out")
    return promise


def _repaired(contender: Contender, promise: Promise, data: Rows) -> tuple[tuple[Stage, ...], Places, Rows]:
    """Fit the stages that change p, once, on rows that are then in no split.

    Returns the stages, the positions of all other rows, and these rows with repaired probabilities.
    """
    context = contender.context(replace(promise, conditional=None, bins=None))
    repairs, _, left = fit_repairs(context, data)
    data = data.take(left) if len(left) < len(data) else data
    for stage in repairs:
        data = stage.add_columns(context, data)
    return repairs, left, data


def solves(oracle: str) -> bool:
    """Whether an oracle declares that it solves a program per row; it then takes part only if it is named."""
    try:
        says = declaration_of(oracle)
    except OracleError:  # raised again when the oracle is made
        return False
    return says is not None and says.solves


def _names(losses: Sequence[Loss]) -> tuple[str, ...]:
    if not losses:
        raise InputError("no loss is given: give at least one")
    for loss in losses:
        if not isinstance(loss, Loss):
            raise TypeError(f"a loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
        if loss.labels != losses[0].labels:
            raise InputError(
                f"the losses {losses[0].name!r} ({losses[0].source.name}) and {loss.name!r} ({loss.source.name}) have "
                "different labels, or the same in another order: compare them one by one"
            )
    names = [loss.name for loss in losses]
    if len(set(names)) < len(names):
        names = [f"{loss.source.name}:{loss.name}" for loss in losses]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the loss {twice!r} is given twice: give each once")
    return tuple(names)


def _contenders(
    losses: Sequence[Loss],
    names: Sequence[str],
    oracles: Sequence[str] | Mapping[str, tuple[str, Mapping[str, object]]] | None,
) -> tuple[list[Contender], dict[tuple[str, str], str]]:
    """The oracles that take part, and why others do not, by (loss, oracle). OracleError if a loss has none left."""
    installed = oracle_names()
    wanted: Mapping[str, tuple[str, Mapping[str, object]]]
    if isinstance(oracles, Mapping):
        wanted = oracles
    else:
        wanted = {oracle: (oracle, {}) for oracle in (installed if oracles is None else oracles)}
    contenders, skipped = [], dict[tuple[str, str], str]()
    for name, loss in zip(names, losses, strict=True):
        for shown, (oracle, options) in wanted.items():
            if oracles is None and solves(oracle):
                skipped[name, shown] = (
                    "it solves a program for every row, so it takes part only if it is named among the oracles"
                )
                continue
            try:
                made = make_oracle(oracle, loss, **options)
                grid: dict[float | None, Oracle] = {None: made}
                if made.untuned:
                    grid = {lam: with_lambda(made, lam) for lam in DEFAULT_GRID}
                contenders.append(Contender(name, shown, loss, grid))
            except OracleError as error:
                if oracle not in installed:
                    raise
                skipped[name, shown] = str(error)
        if not any(contender.loss_name == name for contender in contenders):
            reasons = "; ".join(why for (of, _), why in skipped.items() if of == name)
            raise OracleError(f"no oracle is left for the loss {name!r}: {reasons or 'none is named'}")
    return contenders, skipped


def examples(
    loss: Loss, data: Rows, test: Places, results: Mapping[str, SplitResult], called: Mapping[str, str], numbers: Places
) -> tuple[Example, ...]:
    """Rows of the test fold with the set of each oracle: first two instructive ones, then those whose sets differ most
    in cost, then some of the rest.

    In each row, one oracle (`price` if it is compared, otherwise the cheapest overall) is compared with a rival: the
    cheapest other oracle whose set differs. In the first of the two instructive rows, the oracle is cheaper and right.
    In the second, it misses a truth that is in the rival's set, and the row shows what including the truth would have
    cost. `called` has names of labels for readers, and `numbers` the positions of `data` among all rows.

    Rows are ranked by the difference in cost among the three oracles that are cheapest overall, relative to the size of
    their sets: a very uncertain row has large, expensive sets under every oracle and shows little.
    """
    inputs = None if data.inputs is None else data.inputs[test]
    masks = {name: result.mask for name, result in results.items() if result.mask is not None}
    decides = bool(loss.actions) or loss.ceiling is not None
    costs = {name: loss.batch(mask, inputs=inputs) for name, mask in masks.items()}
    order = sorted(costs, key=lambda name: costs[name].mean())
    ours = _OURS if _OURS in masks else order[0]
    others = [name for name in order if name != ours]
    cheapest = order[:_COMPETING]
    sizes = np.max([np.count_nonzero(masks[name], axis=1) for name in cheapest], axis=0)
    ranked = np.argsort(-np.ptp([costs[name] for name in cheapest], axis=0) / (1 + sizes), kind="stable")
    taught = _instructive(data.truth[test], masks, costs, ours, others)
    differing = [i for i in ranked.tolist() if i not in taught]
    head, rest = differing[: _EXAMPLES // 2 - len(taught)], differing[_EXAMPLES // 2 - len(taught) :]
    places = np.unique(np.linspace(0, max(0, len(rest) - 1), _EXAMPLES // 2).astype(int)).tolist()
    found = []
    chosen = [*taught, *head, *(rest[place] for place in places[: len(rest)])]
    of_oracle = {name: x.p_values(np.array(chosen, dtype=np.intp)) for name, x in results.items() if x.p_values}
    for at, i in enumerate(chosen):
        row = int(test[i])
        one = loss if inputs is None or not loss.inputs else loss.at({name: inputs[name][i] for name in loss.inputs})
        likeliest = np.argsort(-data.P[row], kind="stable").tolist()
        kept = np.any([mask[i] for mask in masks.values()], axis=0)
        kept[likeliest[:_TOP]] = True
        rival = next((name for name in others if not np.array_equal(masks[name][i], masks[ours][i])), None)
        example = Example(
            row=int(numbers[row]),
            name=None if data.ids is None else str(data.ids[row]),
            truth=loss.labels[data.truth[row]],
            probabilities={loss.labels[y]: float(data.P[row, y]) for y in likeliest if kept[y]},
            sets={name: tuple(loss.labels[y] for y in likeliest if mask[i, y]) for name, mask in masks.items()},
            costs={name: float(cost[i]) for name, cost in costs.items()},
            terms={name: one.terms(mask[i]) for name, mask in masks.items()},
            p_values={
                name: {loss.labels[y]: float(p[at, y]) for y in likeliest if kept[y]} for name, p in of_oracle.items()
            },
            decisions={name: _decision(one, mask[i]) for name, mask in masks.items()} if decides else {},
            pair=None if rival is None else (ours, rival),
            why="" if rival is None else _why(one, masks, i, data.P[row], int(data.truth[row]), ours, rival, called),
        )
        found.append(example)
    return tuple(found)


def _decision(loss: Loss, mask: npt.NDArray[np.bool_]) -> str:
    """The decision that one set leads to, in words."""
    sets = PredictionSets(loss, mask[None, :])
    if sets.handed_over is not None and sets.handed_over[0]:
        return "handed over"
    named = {name: best_actions(actions, sets.mask) for name, actions in loss.actions.items()}
    several = len(named) > 1
    return "; ".join(
        f"{f'{name}: ' if several else ''}{loss.actions[name].actions[chosen[0]]}, at worst {worst[0]:.4g}"
        for name, (chosen, worst) in named.items()
    )


def _instructive(
    truth: npt.NDArray[np.int64],
    masks: Mapping[str, Masks],
    costs: Mapping[str, Floats],
    ours: str,
    others: Sequence[str],
) -> list[int]:
    """The places of the instructive rows: one of each kind, if any, preferably with sets that are easy to read."""
    if not others:
        return []
    rows = np.arange(len(truth))
    differ = np.array([(masks[name] != masks[ours]).any(axis=1) for name in others])
    rival = differ.argmax(axis=0)  # the first that differs
    held, paid, sized = (
        np.array([value(name) for name in others])[rival, rows]
        for value in (
            lambda name: masks[name][rows, truth],
            lambda name: costs[name],
            lambda name: np.count_nonzero(masks[name], axis=1),
        )
    )
    size, cost, holds = np.count_nonzero(masks[ours], axis=1), costs[ours], masks[ours][rows, truth]
    cheaper = differ.any(axis=0) & held & (cost < paid)
    readable = (size >= 1) & (size <= _READABLE) & (sized <= _READABLE)
    saved = (paid - cost) / (1 + np.maximum(size, sized))
    found = []
    for kind in (cheaper & holds, cheaper & ~holds):
        for wanted in (kind & readable, kind):
            if wanted.any():
                found.append(int(np.argmax(np.where(wanted, saved, -np.inf))))
                break
    return found


def _why(
    loss: Loss,
    masks: Mapping[str, Masks],
    i: int,
    p: npt.NDArray[np.floating],
    truth: int,
    ours: str,
    rival: str,
    called: Mapping[str, str],
) -> str:
    """In words: how the sets of two oracles for a row differ, what that costs, and which of them holds the truth."""
    here, there = masks[ours][i], masks[rival][i]
    paid = {term: (loss.terms(there)[term], cost) for term, cost in loss.terms(here).items()}
    term = max(paid, key=lambda term: abs(paid[term][0] - paid[term][1]))
    paid_for = f"{paid[term][0]:.4g} for {term} instead of {paid[term][1]:.4g}"
    labels = [called.get(label, label) for label in loss.labels]
    name = labels[truth]
    if there[truth] and not here[truth]:
        fuller = here.copy()
        fuller[truth] = True
        return (
            f"{ours} misses the true label, {name}: its probability is {p[truth]:.2g}, and with it the set would cost "
            f"{loss(fuller):.4g} instead of {loss(here):.4g}. {rival} contains it and costs {paid_for}."
        )
    likeliest = np.argsort(-p, kind="stable")
    more, less = ([labels[y] for y in likeliest if mask[y]] for mask in (there & ~here, here & ~there))
    deeds = [f"takes {_listed(more)}, which {ours} leaves out"] if more else []
    deeds += [f"leaves out {_listed(less)}, which {ours} takes"] if less else []
    holds = [oracle for oracle, mask in ((ours, here), (rival, there)) if mask[truth]]
    held = {0: "Neither contains", 2: "Both contain"}.get(len(holds)) or f"Only {holds[0]} contains"
    return f"{rival} {', and '.join(deeds)}: {paid_for}. {held} the true label, {name}."


def _listed(labels: Sequence[str]) -> str:
    more = len(labels) - _READABLE
    return ", ".join(labels[:_READABLE]) + (f" and {more} more" if more > 0 else "")
