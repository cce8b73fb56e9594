"""`compare`: choose the oracles that take part, and run them on all splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from udcp_dsl.comparison.examples import examples
from udcp_dsl.comparison.results import Comparison, Example, Run
from udcp_dsl.comparison.splits import (
    FRACTIONS,
    Contender,
    Folds,
    Places,
    PreparedContender,
    SplitResult,
    deal,
    run_split,
    warn_of_too_few,
)
from udcp_dsl.diagnostics import InputError, OracleError, did_you_mean, keeping_warnings
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.calibrate import DEFAULT_GRID, CalibrationWarning, Level
from udcp_dsl.prediction.input_warnings import (
    warn_of_counted_labels,
    warn_of_free_labels,
    warn_of_high_alpha,
    warn_of_training_rows,
    warn_of_wrong_truth,
    warn_of_zeros,
)
from udcp_dsl.prediction.oracle import Oracle, declaration_of, make_oracle, oracle_names, with_lambda
from udcp_dsl.prediction.probability_repair import Repair
from udcp_dsl.prediction.promises.promise import COMPARED, OPTIONS, Promise, Temperature, promise_from
from udcp_dsl.prediction.rows import Rows, rows_of
from udcp_dsl.prediction.stages.chain import fit_repairs
from udcp_dsl.prediction.stages.decision import check_decides
from udcp_dsl.prediction.stages.stage import Stage
from udcp_dsl.prediction.stages.worth_of_miss import AbstainingIsCheapest

# Called with the units of work and a description of the work, it yields the units one after the other.
Progress: TypeAlias = Callable[[Sequence[Any], str], Iterable[Any]]
Within: TypeAlias = Literal["difficulty", "decision"] | None
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
    asked = compared_promise(promise_from(promise, {**locals(), "alpha": alphas}))
    compared = (losses,) if isinstance(losses, Loss) else tuple(losses)
    names = _names(compared)
    _check(asked, compared, {"splits": splits, "workers": workers})
    called = _checked_label_names(compared[0], label_names)
    contenders, skipped = _contenders(compared, names, oracles)
    _warn_of_free_labels(compared, contenders)
    given = {"y": y, "groups": groups, "inputs": inputs, "ids": ids, "ignore": ignore, "class_names": class_names}
    data = rows_of(probs, compared[0].labels, loss=[*map(asked.reads, compared)], **given)
    warn_of_counted_labels(data)
    warn_of_wrong_truth(data)
    warn_of_training_rows(data)
    repairs, numbers, data = _repaired(contenders[0], asked, data)
    folds = deal(len(data), fractions, asked.seed, int(splits))
    overall = replace(asked, conditional=None, bins=None)
    promises = (overall,) if asked.is_marginal else (overall, asked)
    _warn_of_few_rows(folds[0], promises, compared, tuned=any(contender.tuned for contender in contenders))
    if asked.risk is None:
        warn_of_zeros(data, min(asked.alphas))
    results, abstaining = _results(contenders, data, folds, promises, workers, progress)
    skipped |= abstaining
    for name in names:
        if all(of != name for of, _ in results):
            raise AbstainingIsCheapest(next(why for (of, _), why in reversed(skipped.items()) if of == name))
    first = {key: found[0][0] for key, found in results.items()}
    comparison = Comparison(
        losses=compared,
        names=names,
        alphas=asked.alphas,
        splits=int(splits),
        seed=asked.seed,
        fractions=fractions,
        runs=_runs(results, 0),
        skipped=skipped,
        curves={key: tuple((x.alpha, x.coverage, x.cost) for x in found.curve.points) for key, found in first.items()},
        examples={
            name: _examples(loss, data, folds[0].test, _of_loss(name, first), called, numbers)
            for name, loss in zip(names, compared, strict=True)
        },
        accuracy=data.hits / len(data),
        n=len(data),
        K=compared[0].K,
        promise=overall,
        label_names=called,
        about={x.oracle_name: x.score_variant for x in contenders if x.score_variant is not None},
        repairs=repairs,
        along={key: result.curve for key, result in first.items()},
    )
    if asked.is_marginal:
        return comparison
    beside = replace(comparison, promise=asked, runs=_runs(results, 1), curves={}, along={}, examples={})
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
        raise InputError(f"label_names: {unknown[0]!r} is not a label; {did_you_mean(unknown[0], loss.labels)}")
    return called


def _warn_of_free_labels(losses: Sequence[Loss], contenders: Sequence[Contender]) -> None:
    for loss in losses:
        if any(x.by_cost for contender in contenders if contender.loss is loss for x in contender.oracles.values()):
            warn_of_free_labels(loss)


def _warn_of_few_rows(folds: Folds, promises: Sequence[Promise], losses: Sequence[Loss], *, tuned: bool) -> None:
    """Warn once for each promise and rule: losses with one rule need equally many rows."""
    for each in promises:
        for loss in {each.rule(1, each.harm(loss)): loss for loss in losses}.values():
            warn_of_too_few(folds, each, loss, tuned=tuned)


def _of_loss(name: str, results: Mapping[tuple[str, str], SplitResult]) -> dict[str, SplitResult]:
    """The results for one loss, by oracle."""
    return {oracle: result for (of, oracle), result in results.items() if of == name}


def _examples(
    loss: Loss,
    data: Rows,
    test: Places,
    results: Mapping[str, SplitResult],
    called: Mapping[str, str],
    numbers: Places,
) -> tuple[Example, ...]:
    """Instructive test rows with the sets of each oracle; `numbers` are the positions of `data` among all rows."""
    masks = {oracle: x.mask for oracle, x in results.items() if x.mask is not None}
    p_values = {oracle: x.p_values for oracle, x in results.items() if x.p_values is not None}
    return examples(loss, data, test, masks, lambda label: called.get(label, label), p_values, numbers)


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
                variants = [(prepared.unscored() if each.by_decision else prepared, each) for each in promises]
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
                contenders.append(Contender(name, shown, loss, _make_by_lambda(oracle, loss, options)))
            except OracleError as error:
                if oracle not in installed:
                    raise
                skipped[name, shown] = str(error)
        if not any(contender.loss_name == name for contender in contenders):
            reasons = "; ".join(why for (of, _), why in skipped.items() if of == name)
            raise OracleError(f"no oracle is left for the loss {name!r}: {reasons or 'none is named'}")
    return contenders, skipped


def _make_by_lambda(name: str, loss: Loss, options: Mapping[str, object]) -> dict[float | None, Oracle]:
    oracle = make_oracle(name, loss, **options)
    return {lam: with_lambda(oracle, lam) for lam in DEFAULT_GRID} if oracle.untuned else {None: oracle}
