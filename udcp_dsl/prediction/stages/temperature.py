"""The temperature T of a predictor that 0.2.0 saved: p(y)^(1/T), normalised per row; of logits, softmax(z / T).

Since 0.3, a temperature is a repair (`repair="temperature"`). This stage is only read from files, and applied with the
arithmetic with which it was calibrated.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.containers import changed
from udcp_dsl.prediction.stages.stage import FitContext, GivenStage

if TYPE_CHECKING:
    from udcp_dsl.prediction.oracle import Floats, Probabilities
    from udcp_dsl.prediction.rows.probability_matrix import Matrix

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
