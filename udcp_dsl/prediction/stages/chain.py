"""The chain from rows to sets: stages, each fitted on separate rows, and thresholds on the rest.

All calibration goes through `fit_chain`: it assigns rows to the stages in order, fits the stages, and sets thresholds
on the remaining rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.input_warnings import warn_before_fitting, warn_of_wrong_confidence
from udcp_dsl.prediction.stages.anchors import Anchors
from udcp_dsl.prediction.stages.decision import Decision
from udcp_dsl.prediction.stages.in_sample import InSample, in_sample
from udcp_dsl.prediction.stages.lambda_tuning import Lambda, true_scores
from udcp_dsl.prediction.stages.multipliers import Multipliers
from udcp_dsl.prediction.stages.new_mix import NewMix
from udcp_dsl.prediction.stages.oracle_input import OracleInput, prepare
from udcp_dsl.prediction.stages.repair import MIN_ROWS_IN_ALL, RepairStage
from udcp_dsl.prediction.stages.setting import Cells, Setting
from udcp_dsl.prediction.stages.stage import Stage, ThresholdRows
from udcp_dsl.prediction.stages.temperature import Temperature
from udcp_dsl.prediction.stages.thresholds import Draws, Thresholds
from udcp_dsl.prediction.stages.worth_of_miss import WorthOfMiss
from udcp_dsl.showing import counted

if TYPE_CHECKING:
    from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray
    from udcp_dsl.prediction.oracle import Indices, Masks, Oracle
    from udcp_dsl.prediction.probability_repair import LabelShift
    from udcp_dsl.prediction.rows import Rows
    from udcp_dsl.prediction.rows.probability_matrix import Matrix

S = TypeVar("S", bound=Stage)
Dealt: TypeAlias = "list[tuple[type[Stage], tuple[Indices, ...]]]"

# All stages, in the order in which they get their rows and are fitted.
STAGES: tuple[type[Stage], ...] = (
    RepairStage, Temperature, NewMix, WorthOfMiss, Decision, Lambda, Multipliers, Anchors
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Chain:
    """Fitted stages and thresholds, and the setting they were fitted for, with the oracle that the stages settled on.

    `in_sample` has, for each alpha, the results on the rows of the thresholds. It is set by fitting, and not saved.
    """

    setting: Setting
    stages: tuple[Stage, ...]
    thresholds: Thresholds
    in_sample: Mapping[Fraction, InSample] = field(default_factory=dict)

    @property
    def rows_used(self) -> str:
        """The number of rows it was fitted on and, if stages used some of them, for what."""
        n, used = self.thresholds.calibration.n, [stage for stage in self.stages if stage.rows_used]
        total = counted(n + sum(stage.rows_used for stage in used), "row")
        others = (f", {stage.rows_used:,} for {stage.article}{stage.name}" for stage in used)
        return f"{total}: {n:,} for thresholds{''.join(others)}" if used else total

    @property
    def parts(self) -> tuple[tuple[Stage, ...], Thresholds]:
        """The fitted stages and thresholds, without the oracle."""
        return self.stages, self.thresholds

    def find(self, kind: type[S]) -> S | None:
        """The stage of this kind, if it is part of the chain."""
        return next((stage for stage in self.stages if isinstance(stage, kind)), None)

    def repaired(self, P: Matrix) -> Matrix:
        """The probabilities as the oracle sees them, before they are weighted by harm."""
        for stage in self.stages:
            P = stage.repaired(P)
        return P

    @property
    def about_p(self) -> str:
        """What was done to p, in one sentence."""
        mix = self.find(NewMix)
        return self._about_repair if mix is None else f"{self._about_repair}; {mix}"

    @property
    def _about_repair(self) -> str:
        stage = self.find(RepairStage)
        if stage is not None:
            absent = stage.about_absent(self.setting)
            return f"{stage}; {absent}" if absent else str(stage)
        old = self.find(Temperature)
        if old is not None:
            return str(old)
        if self.setting.promise.repair is None:
            return "probabilities unchanged (no repair requested)"
        return f"probabilities unchanged (a repair needs {MIN_ROWS_IN_ALL} calibration rows)"

    def guarantee(self, alpha: Fraction) -> str:
        """The guarantee at one alpha and its condition, as a clause."""
        text, mix, worth = self.setting.promise.guarantee(alpha), self.find(NewMix), self.find(WorthOfMiss)
        if worth is not None and worth.by_group:
            own = ", ".join(f"{float(1 - x.alpha):.10g} in {group!r}" for group, x in worth.by_group.items())
            text = f"{text}: {own}"
        return text if mix is None else f"{text}, {mix.condition}"

    def prepare(self, rows: Rows) -> OracleInput:
        """The rows as the oracle sees them, with their cells."""
        return placed(self.setting, self.stages, prepare(self.setting, self.stages, rows))

    def oracle(self, given: OracleInput, alpha: Fraction) -> Oracle:
        """The oracle for these rows, at one alpha."""
        return oracle_at(self.setting.oracle, self.stages, given, alpha)

    def true_scores(self, given: OracleInput, alpha: Fraction) -> FloatArray:
        """The scores of the true labels, as used for thresholds."""
        return true_scores(self.oracle(given, alpha), given, nonempty=self.setting.promise.nonempty)

    def sets(self, given: OracleInput, level: Fraction, draws: Draws = None) -> Masks:
        """The sets of rows, (n, K) bool."""
        return self.thresholds.sets(self.setting, self.oracle(given, level), given, level, draws)

    def p_values(self, given: OracleInput, level: Fraction, draws: Draws = None) -> FloatArray:
        """The smallest alpha at which each label is left out, (n, K)."""
        return self.thresholds.p_values(self.setting, self.oracle(given, level), given, level, draws)

    def as_list(self) -> list[dict[str, Any]]:
        """Plain data for JSON, from which `read_chain` restores the same chain."""
        named = [{"stage": stage.name, **stage.as_dict()} for stage in self.stages]
        return [*named, {"stage": "thresholds", **self.thresholds.as_dict()}]


def fit_chain(setting: Setting, rows: Rows) -> Chain:
    """Assign rows to the stages, fit the stages one after the other, and set thresholds on the remaining rows."""
    dealt, left = deal(setting, rows, STAGES)
    own = rows.take(left) if len(left) < len(rows) else rows
    repairs = fit_repairs(setting, [x for x in dealt if x[0].repairs], rows, left)
    threshold_rows = prepare(setting, repairs, own)
    warn_before_fitting(setting, own, threshold_rows, len(rows))
    if not repairs and setting.oracle.by_cost:
        warn_of_wrong_confidence(setting, rows)
    tuned = [
        (stage, [prepare(setting, repairs, rows.take(fold)) for fold in folds])
        for stage, folds in dealt
        if not stage.repairs
    ]
    chain, threshold_rows, scores = _fit_tuned(setting, repairs, tuned, threshold_rows)
    return replace(chain, in_sample=in_sample(chain, own, threshold_rows, scores))


def deal(setting: Setting, rows: Rows, stages: Sequence[type[Stage]]) -> tuple[Dealt, Indices]:
    """Assign disjoint folds of rows to the stages that take part; return these with their folds, and the rows left."""
    left = np.arange(len(rows))
    dealt = []
    for stage in stages:
        folds = stage.deal(setting, Cells.of(setting, rows, left)) if stage.takes_part(setting) else None
        if folds is None:
            continue
        taken = np.concatenate([np.empty(0, dtype=np.int64), *folds])
        if len(np.unique(taken)) < len(taken):
            raise InputError(f"stage {stage.name!r} uses a row twice, which breaks coverage: give it disjoint folds")
        dealt.append((stage, tuple(left[fold] for fold in folds)))
        left = np.delete(left, taken)
    return dealt, left


def fit_repairs(setting: Setting, dealt: Dealt, rows: Rows, left: Indices) -> tuple[Stage, ...]:
    """Fit the stages that change p, each on its rows as changed by the stages before it."""
    by_group = setting.promise.by_group and rows.groups is not None
    remaining = ThresholdRows(len(left), rows.groups[left] if by_group and rows.groups is not None else None, len(rows))
    fitted: tuple[Stage, ...] = ()
    for stage, folds in dealt:
        given = [prepare(setting, fitted, rows.take(fold), weigh=False) for fold in folds]
        fitted = (*fitted, stage.fit(setting, given, remaining))
    return fitted


def fit_tuned(
    setting: Setting,
    repairs: Sequence[Stage],
    tuned: Sequence[tuple[type[Stage], Sequence[OracleInput]]],
    threshold_rows: OracleInput,
) -> Chain:
    """Fit the stages after the repairs on their folds, then the thresholds; return the chain."""
    return _fit_tuned(setting, repairs, tuned, threshold_rows)[0]


def _fit_tuned(
    setting: Setting,
    repairs: Sequence[Stage],
    tuned: Sequence[tuple[type[Stage], Sequence[OracleInput]]],
    threshold_rows: OracleInput,
) -> tuple[Chain, OracleInput, list[FloatArray]]:
    """The chain of `fit_tuned`, the threshold rows with their cells, and the scores of their true labels: one array for
    all alphas, or one per alpha."""
    left, stages = ThresholdRows(len(threshold_rows), threshold_rows.groups), list(repairs)
    for stage, folds in tuned:
        stages.append(stage.fit(setting, [placed(setting, stages, fold) for fold in folds], left))
        candidates = None if stage is Lambda else setting.candidates
        setting = replace(stages[-1].promised(setting), oracle=stages[-1].settled(setting), candidates=candidates)
        threshold_rows = stages[-1].placed(setting, threshold_rows)
        left = ThresholdRows(len(threshold_rows), threshold_rows.groups)
    by_alpha, nonempty = any(stage.by_alpha for stage in stages), setting.promise.nonempty
    scores = [
        true_scores(oracle_at(setting.oracle, stages, threshold_rows, alpha), threshold_rows, nonempty=nonempty)
        for alpha in (setting.promise.alphas if by_alpha else setting.promise.alphas[:1])
    ]
    chain = Chain(setting, tuple(stages), Thresholds.fit(setting, threshold_rows, scores, by_alpha=by_alpha))
    fitted = zip(stages[len(repairs) :], tuned, strict=True)
    after = [stage.after_thresholds(chain, folds) for stage, (_, folds) in fitted]
    return replace(chain, stages=(*repairs, *after)), threshold_rows, scores


def placed(setting: Setting, stages: Sequence[Stage], given: OracleInput) -> OracleInput:
    """The rows with the cells that these stages assign to them."""
    for stage in stages:
        given = stage.placed(setting, given)
    return given


def oracle_at(oracle: Oracle, stages: Sequence[Stage], given: OracleInput, alpha: Fraction) -> Oracle:
    """The oracle for rows, at one alpha, after these stages."""
    oracle = oracle.with_inputs(given.inputs)
    for stage in stages:
        oracle = stage.at_rows(oracle, alpha, given)
    return oracle


def restored(setting: Setting, stages: Sequence[Stage], thresholds: Thresholds) -> Chain:
    """A chain of parts that were fitted before; `setting` has the promise as it was before calibration."""
    for stage in stages:
        setting = stage.promised(setting)
    return Chain(setting, tuple(stages), thresholds)


def read_chain(data: Any, setting: Setting) -> Chain:
    """Inverse of `Chain.as_list`, for the same promise and oracle; refuses anything else."""
    known, fitted = {stage.name: stage for stage in STAGES}, list[Stage]()
    *stages, last = data
    for saved in stages:
        name = saved["stage"]
        if name not in known:
            raise InputError(f"it has a stage {name!r}, which is not known here: upgrade udcp_dsl, or save it again")
        fitted.append(known[name].from_dict(_without_name(saved), setting))
        setting = fitted[-1].promised(setting)
    if last["stage"] != "thresholds" or [s.name for s in fitted] != [n for n in known if n in {s.name for s in fitted}]:
        raise InputError("its stages are in the wrong order; save it again")
    by_alpha = any(stage.by_alpha for stage in fitted)
    chain = Chain(setting, tuple(fitted), Thresholds.from_dict(_without_name(last), setting, by_alpha=by_alpha))
    mix, weights = chain.find(NewMix), chain.thresholds.calibration.label_weights
    if not np.array_equal([] if mix is None else mix.shift.ratios, [] if weights is None else weights):
        raise InputError("its thresholds were made for another mix of labels; save it again")
    return chain


def adapted(chain: Chain, shift: LabelShift, rows: Rows) -> Chain:
    """The chain for another mix of labels, with thresholds from rows of the old mix that no stage was fitted on."""
    before = [stage for stage in chain.stages if stage.repairs]
    after = [stage for stage in chain.stages if not stage.repairs]
    new = replace(chain, stages=(*before, NewMix(shift), *after))
    given, by_alpha, alphas = new.prepare(rows), any(stage.by_alpha for stage in after), chain.setting.promise.alphas
    scores = [new.true_scores(given, alpha) for alpha in (alphas if by_alpha else alphas[:1])]
    thresholds = Thresholds.for_mix(chain.setting, given, scores, shift.ratios, by_alpha=by_alpha)
    return replace(new, thresholds=thresholds)


def _without_name(saved: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in saved.items() if key != "stage"}
