"""`lac`: the score of y is -p(y); sets are the smallest on average if p is the true probability. For any loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.predict.oracle import Declaration, Floats, Indices, Masks, Oracle, Probabilities, Way
from udcp_solvers.numeric.compiled import jit, over_rows

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class Lac(Oracle):
    """The baseline with the smallest sets."""

    name = "lac"
    declaration = Declaration(
        does="probability above one threshold",
        choose_for="the smallest sets on average",
        chooses=lambda loss: Way("one comparison per label", exact=False, seconds=2e-9 * loss.K),
        by_cost=False,
        normalized=False,
        in_threads=True,
    )

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss)

    def _scores(self, P: Probabilities) -> Floats:
        return np.subtract(0.0, P, dtype=np.float64)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        return np.subtract(0.0, P[np.arange(len(P)), y], dtype=np.float64)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        over_rows(_sets, *P.shape, P, np.broadcast_to(tau, P.shape), out)
        return out

    def _first(self, P: Probabilities) -> Indices:
        return np.asarray(np.argmax(P, axis=1), dtype=np.int64)


# Compiled, since numpy would compare in float32 or hold a float64 copy of P.
@jit
def _sets(start: int, stop: int, P: Probabilities, tau: Floats, out: Masks) -> None:
    for i in range(start, stop):
        for j in range(P.shape[1]):
            out[i, j] = 0.0 - np.float64(P[i, j]) <= tau[i, j]
