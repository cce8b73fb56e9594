"""Repair of p, the first stage, for the option `repair`: fitted on a fifth of the rows, but no more than 1,000.

"auto" takes more than a fifth if that is less than 100 rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate.plain import decode
from udcp_dsl.prediction.containers import to_array
from udcp_dsl.prediction.probability_repair import Repair, fit_repair, mean_mix
from udcp_dsl.prediction.rows.value import highest
from udcp_dsl.prediction.stages.stage import FitContext, Stage, StratumBudget
from udcp_dsl.showing import counted, listed

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.prediction.oracle import Floats, Indices
    from udcp_dsl.prediction.rows import Rows
    from udcp_dsl.prediction.rows.probability_matrix import Matrix

SHARE, MIN_ROWS, MAX_ROWS = Fraction(1, 5), 100, 1000
# "auto" needs MIN_ROWS_IN_ALL rows; a temperature needs MIN_TEMPERATURE_ROWS rows to be fitted on.
MIN_ROWS_IN_ALL, MIN_TEMPERATURE_ROWS = 300, 10
_MAX_NAMED = 5  # the maximum number of labels to name
_MAX_CELLS = 1 << 22  # entries of a mask in memory
_STREAM = 5  # the random stream for the folds, different for each stage


@dataclass(frozen=True, eq=False)
class RepairStage(Stage):
    """The repair, and the number of rows (`total`) from which those for its fit were drawn; 0 if the repair was given.

    `mix` is the mix of labels among its rows by repaired p; `adapt` reports that of new rows against it.
    """

    repair: Repair
    total: int
    mix: npt.NDArray[np.float64] | None = None
    top: npt.NDArray[np.float64] | None = None  # the highest repaired p of its rows; not saved

    name: ClassVar[str] = "repair"
    repairs: ClassVar[bool] = True

    @classmethod
    def applies(cls, context: FitContext) -> bool:
        return context.promise.repair is not None

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        requested, n = context.promise.repair, len(budget)
        if isinstance(requested, Repair):
            return ()
        if requested == "auto" and n < MIN_ROWS_IN_ALL:
            return None
        share = max(SHARE, Fraction(MIN_ROWS, n)) if requested == "auto" else SHARE
        fold = budget.draw(share, MAX_ROWS, np.random.default_rng([context.promise.seed, _STREAM]))
        if len(fold) >= (MIN_ROWS // 2 if requested == "auto" else MIN_TEMPERATURE_ROWS):
            return (fold,)
        if requested == "auto":  # the thresholds need the rows
            return None
        raise InputError(
            f"a fifth of {n} rows is too few to fit a temperature: give {int(MIN_TEMPERATURE_ROWS / SHARE)} rows or "
            "more, or a repair that was made before, repair=udcp.Repair(exponent=...)"
        )

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> RepairStage:
        requested = context.promise.repair
        if isinstance(requested, Repair):
            return cls(requested.for_labels(context.oracle.loss.labels), 0)
        (own,) = folds
        rng = np.random.default_rng([context.promise.seed, _STREAM, 1])
        kind: Literal["auto", "temperature"] = "auto" if requested is None else requested
        P = to_array(own.P)
        fitted = fit_repair(P, own.truth, weights=own.weights, kind=kind, rng=rng)
        found = fitted.for_labels(context.oracle.loss.labels)
        repaired = found.apply(P)
        return cls(found, context.total, mean_mix(repaired), highest(repaired))

    def update(self, context: FitContext) -> FitContext:
        return replace(context, spent_top=self.top)

    @property
    def rows_used(self) -> int:
        return self.repair.n_rows if self.total else 0

    def repaired(self, P: Matrix) -> Matrix:
        found: Matrix = self.repair.apply(P)
        return found

    def __str__(self) -> str:
        return self.repair.describe(self.total or None)

    def about_absent(self, context: FitContext) -> str:
        """How many labels do not occur in its fold, and which of them cost, or harm, more than the median label; "" if
        the repair has no offsets or every label occurs."""
        absent = list(self.repair.absent)
        if not absent or self.repair.offsets is None:
            return ""
        values, what = (
            (context.harm.values, "harm") if context.harm else (_costs_of_singletons(context.oracle.loss), "cost")
        )
        above = sorted((y for y in absent if values[y] > np.median(values)), key=lambda y: -values[y])
        text = f"{counted(len(absent), 'label')} without a row there, scaled down"
        if not above:
            return text
        labels = context.oracle.loss.labels
        return f"{text} ({what} above the median: {listed([labels[y] for y in above], _MAX_NAMED)})"

    def as_dict(self) -> dict[str, Any]:
        mix = None if self.mix is None else self.mix.tolist()
        repair = replace(self.repair, labels=())  # those of the loss, which the file has
        return {"repair": repair.as_dict(), "total": self.total, "mix": mix}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> RepairStage:
        total, labels = data["total"], context.oracle.loss.labels
        mix = None if data.get("mix") is None else np.array(decode(data["mix"], "mix"), dtype=np.float64)
        positive = mix is None or (len(mix) == len(labels) and bool((mix > 0).all()))
        if isinstance(total, bool) or not isinstance(total, int) or total < 0 or not positive:
            raise InputError("its repair is damaged: calibrate and save again")
        return cls(Repair.from_dict(data["repair"]).for_labels(labels), total, mix)


def _costs_of_singletons(loss: Loss) -> Floats:
    """The cost of each label alone in a set."""
    found: Floats = np.empty(loss.K)
    step = max(1, _MAX_CELLS // loss.K)
    for start in range(0, loss.K, step):
        alone = np.zeros((min(step, loss.K - start), loss.K), dtype=bool)
        alone[np.arange(len(alone)), start + np.arange(len(alone))] = True
        found[start : start + step] = loss.example.batch(alone)
    return found
