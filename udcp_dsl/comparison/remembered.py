"""The scores of all rows, computed once; every split selects from them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.prediction.oracle import Oracle

if TYPE_CHECKING:
    from udcp_dsl.expression.rows.given import RowInputs
    from udcp_dsl.prediction.oracle import Floats, Indices, Masks, Probabilities
    from udcp_dsl.prediction.rows.probability_matrix import Matrix


class RememberedScores(Oracle):
    """An oracle that has scored the rows of a matrix, and takes their *positions* in place of probabilities.

    If all scores would take too much memory, only those of the true labels are kept, and others are computed again.
    """

    def __init__(self, oracle: Oracle, P: Matrix, y: npt.NDArray[np.int64], *, hold: bool) -> None:
        super().__init__(oracle.loss)
        self.name, self.priced = oracle.name, oracle.priced
        self._oracle, self._P, self._y = oracle, P, y
        self._inputs: RowInputs | None = None
        self._compute(slice(0, 2), hold)  # compiles the kernels, which no run's time should include
        began = time.perf_counter()
        self._all, self._true = self._compute(slice(0, len(P)), hold)
        self.seconds_per_row = (time.perf_counter() - began) / len(P)

    def _compute(self, rows: slice, hold: bool) -> tuple[Floats | None, Floats]:
        oracle, P, y = self._oracle.take(rows), self._P[rows], self._y[rows]
        if not hold:
            return None, oracle.score_of(P, y)
        scores = oracle.scores(P)
        return scores, scores[np.arange(len(y)), y]

    def scores(self, P: Any) -> Floats:
        return self._oracle.take(P).scores(self._P[P]) if self._all is None else self._all[P]

    def with_inputs(self, inputs: RowInputs | None) -> Oracle:
        """The same for rows with these inputs, which only costs need: scores are already known."""
        other = object.__new__(type(self))  # copying would make it anew
        other.__dict__.update(self.__dict__, _inputs=inputs)
        return other

    def costs(self, masks: Masks) -> Floats:
        return self.loss.batch(masks, inputs=self._inputs)

    def score_of(self, P: Any, y: Any) -> Floats:
        found: Floats = self._true[P]  # of the true labels: calibration needs no others
        return found

    def sets(self, P: Any, tau: Any) -> Masks:
        if self._all is None:
            return self._oracle.take(P).sets(self._P[P], tau)
        found: Masks = self._all[P] <= tau
        return found

    def first(self, P: Any) -> Indices:
        return self._oracle.take(P).first(self._P[P])

    def _scores(self, P: Probabilities) -> Floats:
        raise AssertionError("positions are taken, not probabilities")
