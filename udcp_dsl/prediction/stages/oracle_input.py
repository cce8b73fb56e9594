"""What determines the prediction sets: the probabilities that the oracle sees, and the cell of each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.containers import some_rows_of
from udcp_dsl.prediction.rows.value import highest

if TYPE_CHECKING:
    from udcp_dsl.expression.decisions import Decided
    from udcp_dsl.expression.rows.given import RowInputs
    from udcp_dsl.prediction.oracle import Indices
    from udcp_dsl.prediction.rows import Rows
    from udcp_dsl.prediction.rows.probability_matrix import Matrix
    from udcp_dsl.prediction.stages.setting import Setting
    from udcp_dsl.prediction.stages.stage import Stage


@dataclass(frozen=True, eq=False)
class OracleInput:
    """Probabilities after repair and, if harm is bounded, weighted by it; and other attributes, one entry per row."""

    P: Matrix
    y: Indices | None = None
    groups: npt.NDArray[np.str_] | None = None
    difficulty: npt.NDArray[np.float64] | None = None
    weights: npt.NDArray[np.float64] | None = None
    inputs: RowInputs | None = None
    decided: Decided | None = None  # the decision about each row, with conditional="decision"

    def __len__(self) -> int:
        return len(self.P)

    @property
    def truth(self) -> Indices:
        """The true labels; an error if there are none."""
        if self.y is None:
            raise InputError("the true labels are missing: give y")
        return self.y

    def take(self, rows: slice | npt.NDArray[np.integer[Any]]) -> OracleInput:
        """Some of the rows, by their positions."""
        return some_rows_of(self, rows)


def prepare(setting: Setting, stages: Iterable[Stage], rows: Rows, *, weigh: bool = True) -> OracleInput:
    """The rows as the oracle sees them after these stages; weigh=False leaves out the weighting by harm."""
    P = rows.P
    for stage in stages:
        P = stage.repaired(P)
    harm, difficulty = setting.harm if weigh else None, None
    if setting.promise.by_difficulty:  # cached for the rows as given
        difficulty = rows.highest_probabilities if P is rows.P else highest(P)
    return OracleInput(
        P if harm is None else harm.weigh(P, setting.oracle, rows.inputs),
        rows.y,
        rows.groups if setting.promise.by_group else None,
        difficulty,
        rows.weights,
        rows.inputs,
    )
