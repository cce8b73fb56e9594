"""Bins by difficulty: ranges of the highest repaired probability, between edges that are fitted on spent rows.

The edges are quantiles over the rows that the repair was fitted on, or over a fifth of the rows if there are none. So
the bin of a row is a function of the row, rows within a bin are exchangeable, and each bin is covered exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.predict.calibrate import CalibrationWarning, Strata, show_level
from udcp_dsl.predict.calibrate.checked import decode
from udcp_dsl.predict.calibrate.strata import SPARE_FACTOR, bin_edges
from udcp_dsl.predict.stages.stage import FitContext, Stage, StratumBudget
from udcp_dsl.showing import counted

if TYPE_CHECKING:
    from udcp_dsl.predict.oracle import Indices
    from udcp_dsl.rows.rows import Rows

SHARE, MAX_ROWS, _MIN_ROWS = Fraction(1, 5), 1000, 2
_STREAM = 9  # the random stream for the folds, different for each stage


@dataclass(frozen=True)
class Bins(Stage):
    """The edges between the bins, and the number of rows that were taken for them alone."""

    edges: tuple[float, ...]
    n: int

    name: ClassVar[str] = "bins"
    article: ClassVar[str] = "the "
    max_rows: ClassVar[int | None] = MAX_ROWS

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        if context.spent_top is not None:
            return ()
        n = len(budget)
        rows = np.random.default_rng([context.promise.seed, _STREAM]).permutation(n)[: min(int(SHARE * n), MAX_ROWS)]
        if len(rows) < _MIN_ROWS:
            raise InputError(
                f"{context.promise.asked} takes the edges of its bins from a fifth of the rows, and a fifth of "
                f"{counted(n, 'row')} is too few: give {int(_MIN_ROWS / SHARE)} rows or more"
            )
        return (np.sort(rows),)

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Bins:
        top = context.spent_top if not folds else folds[0].top
        assert top is not None
        bins, need = context.promise.bin_count, context.rule.needed(min(context.promise.alphas))
        edges = bin_edges(top, bins, SPARE_FACTOR * need * len(top) / max(1, context.left))
        if len(edges) + 1 < bins:
            warn(
                f"{bins} bins by difficulty become {len(edges) + 1}: a bin is kept if {SPARE_FACTOR * need} of the "
                f"{counted(context.left, 'row')} for thresholds are expected in it, twice what alpha "
                f"{show_level(min(context.promise.alphas))} needs, and equal probabilities share a bin; give more "
                "rows, a larger alpha, or fewer bins",
                CalibrationWarning,
            )
        return cls(edges, len(folds[0]) if folds else 0)

    def update(self, context: FitContext) -> FitContext:
        return replace(context, strata=Strata.of_bins(self.edges))

    def add_columns(self, context: FitContext, rows: Rows) -> Rows:
        assert rows.top is not None
        return rows.with_columns(stratum=context.strata.codes_of_bins(rows.top))

    @property
    def rows_used(self) -> int:
        return self.n

    def as_dict(self) -> dict[str, Any]:
        return {"edges": list(self.edges), "n": self.n}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Bins:
        edges, n = decode(data["edges"], "edges of bins"), data["n"]
        rising = sorted(set(edges)) == edges and bool(np.isfinite(edges).all())
        if not rising or isinstance(n, bool) or not isinstance(n, int) or not context.promise.by_difficulty:
            raise InputError("its bins by difficulty are damaged: calibrate and save again")
        return cls(tuple(edges), n)
