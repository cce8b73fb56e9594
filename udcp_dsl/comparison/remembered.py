"""The scores of all rows, computed once; every split selects from them by the column `place`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.prediction.oracle import Oracle
from udcp_dsl.prediction.rows.value import Rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from udcp_dsl.prediction.oracle import Floats, Given, Indices, Masks, Probabilities


class RememberedScores(Oracle):
    """An oracle that has scored all rows of a comparison, and looks up those at the `place` of the rows it is given;
    these need no probabilities.

    If all scores would take too much memory, only those of the true labels are kept, and others are computed again.
    """

    reads = ("place",)

    def __init__(self, oracle: Oracle, rows: Rows, *, hold: bool) -> None:
        super().__init__(oracle.loss)
        self.name, self.priced = oracle.name, oracle.priced
        self._oracle, self._rows = oracle, rows
        self._compute(slice(0, 2), hold)  # compiles the kernels, which no run's time should include
        began = time.perf_counter()
        self._all, self._true = self._compute(slice(0, len(rows)), hold)
        self.seconds_per_row = (time.perf_counter() - began) / len(rows)

    def _compute(self, part: slice, hold: bool) -> tuple[Floats | None, Floats]:
        rows = self._rows.take(part)
        if not hold:
            return None, self._oracle.score_of(rows, rows.truth)
        scores = self._oracle.scores(rows)
        return scores, scores[np.arange(len(rows)), rows.truth]

    def scores(self, P: Given, *, inputs: object = None) -> Floats:
        place = _places(P)
        return self._oracle.scores(self._rows.take(place)) if self._all is None else self._all[place]

    def score_of(self, P: Given, y: object, *, inputs: object = None) -> Floats:
        found: Floats = self._true[_places(P)]  # of the true labels: calibration needs no others
        return found

    def sets(self, P: Given, tau: ArrayLike, *, inputs: object = None) -> Masks:
        place = _places(P)
        if self._all is None:
            return self._oracle.sets(self._rows.take(place), tau)
        found: Masks = self._all[place] <= np.asarray(tau)
        return found

    def first(self, P: Given, *, inputs: object = None) -> Indices:
        return self._oracle.first(self._rows.take(_places(P)))

    def _scores(self, P: Probabilities) -> Floats:
        raise AssertionError("it looks scores up by place")


def _places(rows: Given) -> Indices:
    assert isinstance(rows, Rows)
    assert rows.place is not None
    return rows.place
