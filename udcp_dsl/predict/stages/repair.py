"""Repair of p, the first stage, for the option `repair`: fitted on a fifth of the rows, but no more than 1,000.

"auto" takes more than a fifth if that is less than 100 rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.predict.calibrate.checked import decode
from udcp_dsl.predict.repair import LabelShift, Repair, fit_repair, mean_mix
from udcp_dsl.predict.stages.stage import FitContext, GivenStage, Stage, StratumBudget
from udcp_dsl.rows.columns import changed, to_array
from udcp_dsl.rows.rows import highest
from udcp_dsl.showing import counted, listed

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.oracle import Floats, Indices, Probabilities
    from udcp_dsl.rows.matrix import Matrix
    from udcp_dsl.rows.rows import Rows

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
            "more" + worded(", or a repair that was made before, repair=udcp.Repair(exponent=...)", "")
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


# The temperature T of a predictor that 0.2.0 saved: p(y)^(1/T), normalised per row; of logits, softmax(z / T).
#
# Since 0.3, a temperature is a repair (`repair="temperature"`). This stage is only read from files, and applied with
# the arithmetic with which it was calibrated.


_PIECE = 1 << 20  # entries per block


@dataclass(frozen=True)
class Temperature(GivenStage):
    """The temperature; the number of rows that it was fitted on was not saved."""

    value: float

    name: ClassVar[str] = "temperature"
    article: ClassVar[str] = "the "
    repairs: ClassVar[bool] = True

    def repaired(self, P: Matrix) -> Matrix:
        return tempered(P, self.value)

    def __str__(self) -> str:
        return f"probabilities repaired: temperature {self.value:.6g}"

    def as_dict(self) -> dict[str, Any]:
        return {"temperature": self.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Temperature:
        value = data["temperature"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise InputError(f"its temperature is {value!r}, not a number above 0; save it again")
        return cls(float(value))


def tempered(P: Probabilities, temperature: float | None) -> Probabilities:
    """The probabilities at a temperature, with the same dtype; the same array at 1 or None."""
    if temperature is None or temperature == 1.0:
        return P
    repaired: Probabilities = changed(P, partial(_tempered, temperature))
    return repaired


def _tempered(temperature: float, P: Probabilities) -> Probabilities:
    out = np.empty_like(P)
    step = max(1, _PIECE // P.shape[1])
    for start in range(0, len(P), step):
        rows = slice(start, start + step)
        piece: Floats = P[rows].astype(np.float64)
        piece /= piece.max(axis=1, keepdims=True)  # the largest is 1, so it never underflows
        np.power(piece, 1 / temperature, out=piece)
        out[rows] = piece / piece.sum(axis=1, keepdims=True)
    return out


# A new mix of labels: p''(y) proportional to p'(y) r_y, r = new mix / old mix. Only `adapt` adds it to a chain.
#
# It uses no labelled rows: the new mix is known, or estimated on new rows without true labels.


@dataclass(frozen=True, eq=False)
class NewMix(GivenStage):
    """How the mix has changed; scores and the weights of labels depend on it."""

    shift: LabelShift

    name: ClassVar[str] = "new mix"
    repairs: ClassVar[bool] = True

    @cached_property
    def _repair(self) -> Repair:
        return self.shift.adapted(Repair())

    def repaired(self, P: Matrix) -> Matrix:
        found: Matrix = self._repair.apply(P)
        return found

    def __str__(self) -> str:
        n = self.shift.n_rows
        how = f"estimated on {n:,} rows without true labels" if n else "as given"
        return f"adapted to a new mix of labels, {how}: {self.shift.moved()}"

    @property
    def condition(self) -> str:
        """The condition under which the guarantee holds, as the end of a clause."""
        condition = "as far as the estimated ratios are right" if self.shift.n_rows else "if the given ratios are right"
        return f"for the new mix of labels, and only {condition}"

    def as_dict(self) -> dict[str, Any]:
        return {"old": self.shift.old.tolist(), "new": self.shift.new.tolist(), "rows": self.shift.n_rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> NewMix:
        labels, old, new = context.oracle.loss.labels, decode(data["old"], "old mix"), decode(data["new"], "new mix")
        return cls(LabelShift(old, new, data["rows"], tuple(labels)))  # type: ignore[arg-type]  # checked there
