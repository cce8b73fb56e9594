"""`raps`: the score of `base` + lam * max(rank - k, 0), a penalty on labels beyond rank k. For any loss.

Regularized adaptive prediction sets (Angelopoulos et al., ICLR 2021): `penalized` with a cost that depends only on the
size. The published method uses mass="random". The defaults of `lam` and `k` are common for ImageNet; if you tune them,
use rows other than those for calibration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.predict.oracle import Declaration, is_number
from udcp_solvers.base import MassOracle, by_sorting

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class Raps(MassOracle):
    """lam: 0, or from 1e-9 to 1e9 (outside, rounding would merge neighbouring scores); k: number of ranks without a
    penalty.

    mass, seed: as for `base`.
    """

    name = "raps"
    declaration = Declaration(
        does="`base` with a penalty on ranks",
        choose_for="small sets with fewer outliers",
        chooses=by_sorting,
        by_cost=False,
        in_threads=True,
    )

    def __init__(
        self, loss: Loss, *, lam: float = 0.01, k: int = 5, mass: str = "before", seed: int | None = None
    ) -> None:
        if not is_number(lam) or not (lam == 0 or 1e-9 <= lam <= 1e9):
            raise OracleError(f"oracle 'raps': lam must be 0 or a number from 1e-9 to 1e9, not {lam!r}")
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise OracleError(f"oracle 'raps': k must be a whole number, 0 or more, not {k!r}")
        super().__init__(loss, mass, seed, lam=float(lam), k=k)
        self._lam, self._free = float(lam), min(k, len(loss.labels))
