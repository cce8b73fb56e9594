"""Thresholds at one alpha, and so sets and p-values, from the scores of the rows that no stage has used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Calibration, calibrate, label_weighted, randomized_sets, randomized_tau
from udcp_dsl.predict.calibrate.randomized import DRAWS
from udcp_dsl.predict.calibrate.ranks import RankTable, p_values, tables_of, thinned
from udcp_dsl.predict.calibrate.thresholds import points_of

if TYPE_CHECKING:
    from udcp_dsl.predict.calibrate.checked import FloatArray
    from udcp_dsl.predict.oracle import Indices, Masks, Oracle
    from udcp_dsl.predict.stages.stage import FitContext
    from udcp_dsl.rows.rows import Rows

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
