"""From rows to sets: the stages, each fitted on rows of its own, and thresholds on the rest.

All calibration goes through `fit`. The repairs are fitted first, since other stages see the probabilities that they
hand on; then the remaining rows are dealt to the other stages, and thresholds are set on what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import (
    Calibration,
    Strata,
    calibrate,
    exact_level,
    label_weighted,
    randomized_sets,
    randomized_tau,
)
from udcp_dsl.predict.calibrate.randomized import DRAWS
from udcp_dsl.predict.calibrate.ranks import RankTable, p_values, tables_of, thinned
from udcp_dsl.predict.calibrate.thresholds import points_of
from udcp_dsl.predict.in_sample import InSample, in_sample
from udcp_dsl.predict.row_warnings import warn_before_fitting, warn_of_wrong_confidence
from udcp_dsl.predict.stages.stage import FitContext, Stage, StratumBudget, placed, true_scores
from udcp_dsl.rows.rows import highest
from udcp_dsl.showing import counted

if TYPE_CHECKING:
    from udcp_dsl.predict.calibrate.checked import FloatArray
    from udcp_dsl.predict.oracle import Indices, Masks, Oracle
    from udcp_dsl.predict.repair import LabelShift
    from udcp_dsl.rows.matrix import Matrix
    from udcp_dsl.rows.rows import Rows

Folds: TypeAlias = "list[tuple[type[Stage], list[Rows]]]"  # stages to fit, each with its rows
Fits: TypeAlias = "dict[Fraction, Fitted]"


@dataclass(frozen=True)
class Entry:
    """A stage: its name in saved files, its place as "module:class" below `stages`, and when it applies.

    A stage without `applies` is never fitted: it is read from a file, or added to a fitted chain.
    """

    name: str
    place: str
    applies: Callable[[FitContext], bool] | None = None

    @property
    def kind(self) -> type[Stage]:
        module, _, name = self.place.partition(":")
        found: type[Stage] = getattr(import_module(f"udcp_dsl.predict.stages.{module}"), name)
        return found


# All stages, in the order in which they get their rows and are fitted; one is imported only where it applies.
STAGES = (
    Entry("repair", "repair:RepairStage", lambda context: context.promise.repair is not None),
    Entry("temperature", "repair:Temperature"),
    Entry("new mix", "repair:NewMix"),
    Entry("alpha", "alpha_of_miss:WorthOfMiss", lambda context: context.promise.miss is not None),
    Entry("bins", "bins:Bins", lambda context: context.promise.by_difficulty),
    Entry("decision", "decision:Decision", lambda context: context.promise.by_decision),
    Entry("lambda", "tuned_lambda:Lambda", lambda context: context.candidates is not None),
    Entry("multipliers", "limits:Multipliers", lambda context: context.enforces_limits),
    Entry("anchor", "anchor:Anchor", lambda context: context.wants_anchor),
)


def applying(context: FitContext, *, repairs: bool) -> list[type[Stage]]:
    """The stages that the promise or the oracle needs: those that change p, or those after them."""
    kinds = [entry.kind for entry in STAGES if entry.applies is not None and entry.applies(context)]
    return [kind for kind in kinds if kind.repairs == repairs]


Draws = npt.NDArray[np.int64] | None
Tables = tuple[RankTable, ...] | None  # the scores of each stratum


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The calibration, and the scores that it was made from, which alphas with the same scores share; None with
    weights, since the calibration then has them."""

    calibration: Calibration
    scores: Tables

    @classmethod
    def fit(cls, context: FitContext, rows: Rows, scores: FloatArray, tables: Tables = None) -> Thresholds:
        """From the scores of the true labels, at the alpha of the context; `tables` are those of another alpha with
        the same scores."""
        promise, harms, codes = context.promise, context.harms(rows), codes_of(context, rows)
        calibration = calibrate(
            scores,
            alpha=promise.alphas[0],
            strata=context.strata,
            codes=codes,
            rule=context.rule,
            harms=harms,
            weights=rows.weights,
            pool=promise.pool,
            randomize=promise.randomize,
            already_warned=not (promise.by_decision or promise.by_difficulty),  # whose sizes are known only now
        )
        if calibration.weighted:
            return cls(calibration, None)
        return cls(calibration, tables or tables_of(scores, points_of(context.strata, codes, len(rows)), harms))

    @classmethod
    def for_mix(
        cls, context: FitContext, alpha: Fraction, rows: Rows, scores: FloatArray, ratios: FloatArray
    ) -> Thresholds:
        """Like `fit`, for a new mix of labels: one threshold per label, from rows that are weighted by the ratios."""
        most = None if context.harm is None else context.harm.max_harm
        return cls(label_weighted(scores, rows.truth, ratios, alpha=alpha, harms=context.harms(rows), most=most), None)

    def tau(self, rows: Rows) -> float | FloatArray:
        """The thresholds of these rows, as an oracle's `sets` takes them."""
        return self.calibration.tau(rows.stratum, weights=rows.weights if self.calibration.weighted else None)

    def sets(self, context: FitContext, rows: Rows, draws: Draws) -> Masks:
        """The sets of rows, (n, K); randomised if there are `draws`, one per row."""
        oracle, by_class = context.oracle, context.promise.by_class
        if draws is not None and by_class:
            return randomized_sets(oracle.scores(rows), self.calibration, draws)
        if draws is not None:
            return oracle.sets(rows, randomized_tau(self.calibration, draws, len(rows), rows.stratum))
        at = self.tau(rows)
        by_both = self.calibration.weighted and by_class  # a threshold for each row and class
        mask = oracle.scores(rows) <= at if by_both else oracle.sets(rows, at)
        if context.promise.nonempty:
            mask[np.arange(len(rows)), oracle.first(rows)] = True
        return mask

    def full(self, rows: Rows) -> int:
        """The number of sets that are full because the row's weight is too large for a finite threshold."""
        if not self.calibration.weighted:
            return 0
        return int(np.isinf(np.asarray(self.tau(rows)).max(axis=1)).sum())

    def p_values(self, context: FitContext, rows: Rows, draws: Draws) -> FloatArray:
        """The smallest alpha at which each label is left out, (n, K)."""
        scores = context.oracle.scores(rows)
        if context.promise.nonempty:
            scores[np.arange(len(rows)), context.oracle.first(rows)] = -np.inf
        shares = None if draws is None else draws / DRAWS
        codes = self.calibration.cells_of(rows.stratum)
        return p_values(scores, self.calibration, self.scores, codes, draws=shares, weights=rows.weights)

    def rank(self, stratum: int) -> int | None:
        """The rank of the threshold among the scores of a stratum, or None if no rank was fixed in advance: if harm is
        bounded, or the stratum has too few points for a threshold of its own."""
        calibration, scores = self.calibration, self.scores
        alpha, rule = calibration.strata.level(stratum, calibration.alpha), calibration.rule
        n = calibration.cells[stratum].n
        if scores is None or rule.most is not None or n < rule.needed(alpha):
            return None
        k = rule.rank(n, alpha)
        return k if k <= n else None

    @staticmethod
    def plain_scores(tables: Tables, sharing: Sequence[Thresholds]) -> Any:
        """The scores as plain data for JSON; if there are many, those at the thresholds of `sharing` and a sample."""
        if tables is None:
            return None
        ranks = [[k for x in sharing if (k := x.rank(i)) is not None] for i in range(len(tables))]
        return [table.as_dict() for table in thinned(tables, ranks)]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], tables: Tables, alpha: Fraction, context: FitContext) -> Thresholds:
        """Inverse of what a saved file has of them; refuses data that do not belong to the context."""
        found = Calibration.from_dict(data, alpha, context.strata, context.rule, randomize=context.promise.randomize)
        if found.weighted or found.label_weights is not None:
            context.promise.refuse_weights()
            if tables is not None:
                raise InputError("its calibration scores do not match its thresholds; save it again")
        harmed = context.rule.most is not None
        counts = [cell.n for cell in found.cells]
        if tables is not None and ([x.n for x in tables] != counts or any((x.harm is None) == harmed for x in tables)):
            raise InputError("its calibration scores do not match its thresholds; save it again")
        return cls(found, tables)


def codes_of(context: FitContext, rows: Rows) -> Indices | None:
    """The stratum of each row at calibration: by class, its true label."""
    return rows.truth if context.promise.by_class else rows.stratum


def worth_of(oracle: Oracle, thresholds: Thresholds) -> float | dict[str, float] | None:
    """What a missed truth is worth by the thresholds of an oracle with prices; a dict by group, bin or decision. None
    if thresholds are not prices of coverage: for other oracles, and with harm, classes or weights.

    A label is bought if its price is at most the threshold: so that is what a miss is worth, in the unit of the loss.
    """
    calibration = thresholds.calibration
    unlike = calibration.strata.by_class or calibration.weighted or calibration.label_weights is not None
    if not oracle.priced or unlike or calibration.rule.most is not None:
        return None
    found = calibration.thresholds
    return found if isinstance(found, dict) else float(found)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fitted stages and thresholds at one alpha, and the context with the oracle that the stages settled on.

    `in_sample` has the results on the rows of the thresholds. It is set by fitting, and not saved.
    """

    alpha: Fraction
    context: FitContext
    stages: tuple[Stage, ...]
    thresholds: Thresholds
    in_sample: InSample | None = None

    @property
    def rows_used(self) -> str:
        """The number of rows it was fitted on and, if stages used some of them, for what."""
        n, used = self.thresholds.calibration.n, [stage for stage in self.stages if stage.rows_used]
        total = counted(n + sum(stage.rows_used for stage in used), "row")
        others = (f", {stage.rows_used:,} for {stage.article}{stage.name}" for stage in used)
        return f"{total}: {n:,} for thresholds{''.join(others)}" if used else total

    def find(self, name: str) -> Any:
        """The stage of this name (see `STAGES`); None if there is none."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def repaired(self, P: Matrix) -> Matrix:
        """The probabilities as the oracle sees them, before they are weighted by harm."""
        for stage in self.stages:
            P = stage.repaired(P) if stage.repairs else P
        return P

    @property
    def about_p(self) -> str:
        """What was done to p, in one sentence."""
        mix = self.find("new mix")
        return self._about_repair if mix is None else f"{self._about_repair}; {mix}"

    @property
    def _about_repair(self) -> str:
        stage = self.find("repair")
        if stage is not None:
            absent = stage.about_absent(self.context)
            return f"{stage}; {absent}" if absent else str(stage)
        old = self.find("temperature")
        if old is not None:
            return str(old)
        if self.context.promise.repair is None:
            return "probabilities unchanged (no repair requested)"
        from udcp_dsl.predict.stages.repair import MIN_ROWS_IN_ALL

        if self.thresholds.calibration.n + sum(stage.rows_used for stage in self.stages) >= MIN_ROWS_IN_ALL:
            return "probabilities unchanged (the thresholds need the rows that a repair would take)"
        return f"probabilities unchanged (a repair needs {MIN_ROWS_IN_ALL} calibration rows)"

    @property
    def guarantee(self) -> str:
        """The guarantee at this alpha and its condition, as a clause."""
        text, mix, worth = self.context.promise.guarantee(self.alpha), self.find("new mix"), self.find("alpha")
        if worth is not None and worth.by_group:
            own = ", ".join(f"{float(1 - x.alpha):.10g} in {group!r}" for group, x in worth.by_group.items())
            text = f"{text}: {own}"
        return text if mix is None else f"{text}, {mix.condition}"

    def prepare(self, rows: Rows) -> Rows:
        """The rows as the oracle sees them, with their strata and all other columns."""
        unseen = not self.context.promise.by_group or self.context.promise.pool
        return placed(self.context, self.stages, seen(self.context, self.stages, rows, unseen=unseen))

    def true_scores(self, rows: Rows) -> FloatArray:
        """The scores of the true labels of prepared rows, as used for thresholds."""
        return true_scores(self.context.oracle, rows, nonempty=self.context.promise.nonempty)

    def sets(self, rows: Rows, draws: Draws = None) -> Masks:
        """The sets of prepared rows, (n, K) bool."""
        return self.thresholds.sets(self.context, rows, draws)

    def p_values(self, rows: Rows, draws: Draws = None) -> FloatArray:
        """The smallest alpha at which each label of prepared rows is left out, (n, K)."""
        return self.thresholds.p_values(self.context, rows, draws)


def seen(context: FitContext, stages: Sequence[Stage], rows: Rows, *, unseen: bool = True) -> Rows:
    """The rows with repaired probabilities, weighted by harm if that is bounded, and with the stratum of their group.

    With unseen=False, a group without a stratum is an error.
    """
    given = rows
    for stage in stages:
        rows = stage.add_columns(context, rows) if stage.repairs else rows
    if context.promise.by_difficulty:  # cached for the rows as given
        rows = rows.with_columns(top=given.highest_probabilities if rows.P is given.P else highest(rows.P))
    if context.harm is not None:
        rows = rows.with_columns(P=context.harm.weigh(rows.P, context.oracle, rows.inputs))
    if context.promise.by_group and rows.groups is not None and context.strata.names:
        rows = rows.with_columns(stratum=context.strata.codes_of_groups(rows.groups, unseen=unseen))
    return rows


def fit(context: FitContext, rows: Rows) -> Fits:
    """Fit the stages on rows of their own, and thresholds on the rest; one `Fitted` for each alpha."""
    repairs, context, left = fit_repairs(context, rows)
    folds, left = deal(context, rows, left, applying(context, repairs=False))
    own = rows.take(left) if len(left) < len(rows) else rows
    context = context.with_rows(own, len(rows))
    threshold_rows = seen(context, repairs, own)
    context = context.counting(threshold_rows)
    warn_before_fitting(context, own, threshold_rows)
    if not repairs and context.oracle.by_cost:
        warn_of_wrong_confidence(context, rows)
    tuned = [(stage, [seen(context, repairs, rows.take(fold)) for fold in own_folds]) for stage, own_folds in folds]
    return fit_folds(context, repairs, tuned, threshold_rows, report=own)


def fit_repairs(context: FitContext, rows: Rows) -> tuple[tuple[Stage, ...], FitContext, Indices]:
    """Fit the stages that change p; return them, the context after them, and the positions of the rows left."""
    dealt, left = deal(context, rows, np.arange(len(rows)), applying(context, repairs=True))
    context, fitted = replace(context, total=len(rows)), tuple[Stage, ...]()
    for stage, folds in dealt:
        own = [rows.take(fold) for fold in folds]
        for before in fitted:
            own = [before.add_columns(context, fold) for fold in own]
        fitted = (*fitted, stage.fit(context, own))
        context = fitted[-1].update(context)
    return fitted, context, left


def deal(
    context: FitContext, rows: Rows, left: Indices, stages: Sequence[type[Stage]]
) -> tuple[list[tuple[type[Stage], tuple[Indices, ...]]], Indices]:
    """Assign disjoint folds of the rows at the positions `left` to stages; return the stages that got their folds, with
    these, and the positions of the rows that are left then."""
    dealt = []
    for stage in stages:
        folds = stage.draw_folds(context, StratumBudget.of(context, rows, left))
        if folds is None:
            continue
        taken = np.concatenate([np.empty(0, dtype=np.int64), *folds])
        if len(np.unique(taken)) < len(taken):
            raise InputError(f"stage {stage.name!r} uses a row twice, which breaks coverage: give it disjoint folds")
        dealt.append((stage, tuple(left[fold] for fold in folds)))
        left = np.delete(left, taken)
    return dealt, left


def fit_folds(
    context: FitContext, repairs: Sequence[Stage], folds: Folds, rows: Rows, *, report: Rows | None = None
) -> Fits:
    """Fit the stages after the repairs on their folds, then thresholds on `rows`, at each alpha; all rows as the
    repairs hand them on. `report` are the threshold rows as given, on which results are then measured."""
    shared = [x for x in folds if not x[0].by_alpha]
    context, stages, rows = _fit_stages(context, list(repairs), shared, rows)
    by_alpha, scores, found = [x for x in folds if x[0].by_alpha], None, dict[Fraction, Fitted]()
    for alpha in context.promise.alphas:
        own, every, columns = _fit_stages(context.at(alpha), stages, by_alpha, rows)
        if scores is None or by_alpha:
            scores = true_scores(own.oracle, columns, nonempty=own.promise.nonempty)
            tables = None
        thresholds = Thresholds.fit(own, columns, scores, tables)
        tables = thresholds.scores
        fitted = Fitted(alpha, replace(own, promise=context.promise), tuple(every), thresholds)
        reported = [
            stage.report(fitted, next((own_folds for kind, own_folds in folds if isinstance(stage, kind)), []))
            for stage in every
        ]
        fitted = replace(fitted, stages=tuple(reported))
        measured = None if report is None else in_sample(fitted, report, columns, scores)
        found[alpha] = replace(fitted, in_sample=measured)
    return found


def _fit_stages(
    context: FitContext, stages: Sequence[Stage], folds: Folds, rows: Rows
) -> tuple[FitContext, list[Stage], Rows]:
    """Fit further stages one after the other; return the context, all stages, and the rows with their columns."""
    every = list(stages)
    for kind, own in folds:
        fitted = kind.fit(context, [placed(context, every, fold) for fold in own])
        context = fitted.update(context)
        rows = fitted.add_columns(context, rows)
        context = context.counting(rows)
        every.append(fitted)
    return context, every, rows


def adapted(fits: Mapping[Fraction, Fitted], shift: LabelShift, rows: Rows) -> Fits:
    """The fits for another mix of labels, with thresholds from rows of the old mix that no stage was fitted on."""
    from udcp_dsl.predict.stages.repair import NewMix

    def one(fitted: Fitted) -> Fitted:
        before = [stage for stage in fitted.stages if stage.repairs]
        after = [stage for stage in fitted.stages if not stage.repairs]
        new = replace(fitted, stages=(*before, NewMix(shift), *after), in_sample=None)
        own = new.prepare(rows)
        thresholds = Thresholds.for_mix(fitted.context, fitted.alpha, own, new.true_scores(own), shift.ratios)
        return replace(new, thresholds=thresholds)

    return {alpha: one(fitted) for alpha, fitted in fits.items()}


def plain(fits: Mapping[Fraction, Fitted]) -> dict[str, Any]:
    """The fits as plain data for JSON, from which `read` restores them: what all alphas share is there once."""
    every = list(fits.values())
    tables = [fitted.thresholds.scores for fitted in every]
    distinct = [table for i, table in enumerate(tables) if all(table is not other for other in tables[:i])]
    return {
        "stages": [_named(stage) for stage in every[0].stages if not stage.by_alpha],
        "strata": {"names": list(every[0].context.strata.names)},
        "fits": [
            {
                "alpha": str(fitted.alpha),
                "stages": [_named(stage) for stage in fitted.stages if stage.by_alpha],
                "calibration": fitted.thresholds.calibration.as_dict(),
                "scores": next(i for i, table in enumerate(distinct) if table is fitted.thresholds.scores),
            }
            for fitted in every
        ],
        "scores": [
            Thresholds.plain_scores(table, [x.thresholds for x in every if x.thresholds.scores is table])
            for table in distinct
        ],
    }


def _named(stage: Stage) -> dict[str, Any]:
    return {"stage": stage.name, **stage.as_dict()}


def read(data: Mapping[str, Any], context: FitContext) -> Fits:
    """Inverse of `plain`, for the same promise and oracle; refuses anything else."""
    names = data["strata"]["names"]
    if not isinstance(names, list) or not all(isinstance(x, str) for x in names) or len(set(names)) < len(names):
        raise InputError("its groups are damaged; save it again")
    if context.promise.by_group:
        context = replace(context, strata=Strata("group", tuple(names)))
    elif context.promise.by_class:
        context = replace(context, strata=Strata("class", n_classes=context.oracle.loss.K))
    context, shared = _read_stages(data["stages"], context, ())
    if context.strata.names != tuple(names):
        raise InputError("its thresholds do not match its groups, bins or decisions; save it again")
    tables = [None if x is None else tuple(map(RankTable.from_dict, x)) for x in data["scores"]]
    found = dict[Fraction, Fitted]()
    for saved in data["fits"]:
        alpha = exact_level(saved["alpha"], below=context.rule.below)
        own, stages = _read_stages(saved["stages"], context.at(alpha), shared)
        at = saved["scores"]
        if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(tables):
            raise InputError("its calibration scores are damaged; save it again")
        thresholds = Thresholds.from_dict(saved["calibration"], tables[at], alpha, own)
        found[alpha] = Fitted(alpha, replace(own, promise=context.promise), stages, thresholds)
        _check_mix(found[alpha])
    if tuple(found) != context.promise.alphas:
        raise InputError("its thresholds do not match its alphas; save it again")
    return found


def _read_stages(
    data: Sequence[Any], context: FitContext, before: tuple[Stage, ...]
) -> tuple[FitContext, tuple[Stage, ...]]:
    """Further stages of a saved file, and the context after them."""
    known, stages = {entry.name: entry for entry in STAGES}, list(before)
    for saved in data:
        name = saved["stage"]
        if name not in known:
            raise InputError(f"it has a stage {name!r}, which is not known here: upgrade udcp_dsl, or save it again")
        stages.append(known[name].kind.from_dict({key: x for key, x in saved.items() if key != "stage"}, context))
        context = stages[-1].update(context)
    if [x.name for x in stages] != [name for name in known if name in {x.name for x in stages}]:
        raise InputError("its stages are in the wrong order; save it again")
    return context, tuple(stages)


def _check_mix(fitted: Fitted) -> None:
    """Refuse thresholds that were made for another mix of labels."""
    mix, weights = fitted.find("new mix"), fitted.thresholds.calibration.label_weights
    if not np.array_equal([] if mix is None else mix.shift.ratios, [] if weights is None else weights):
        raise InputError("its thresholds were made for another mix of labels; save it again")
