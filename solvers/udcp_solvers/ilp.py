"""`ilp`: sets proved optimal by mixed-integer programming. For any loss that has an exact linear form.

`program="mass"`: the cheapest set that has a mass, at rising masses, each holding the one before; a label's score is
minus the mass that remains after it in the order of these blocks. `program="price"`: the score of y is the least price
mu at which y is in the set that minimises L(S) - mu p(S). See `ilp_programs`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.lower import lower
from udcp_dsl.oracle import Floats, Indices, Masks, Oracle, Probabilities
from udcp_solvers.ilp_exact import Exact, Report, Tally
from udcp_solvers.ilp_programs import chain, order_of, price_scores
from udcp_solvers.ilp_solver import solver_name
from udcp_solvers.remaining import remaining_score_of, remaining_scores, remaining_sets

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Each level halves the mass that may remain, down to 1e-6: whatever a classifier's masses are worth, the threshold that
# calibration picks lies between two levels, and the set on either side is optimal for a mass that differs by at most a
# factor of two in what it leaves out. Most rows have the mass of several levels at once and ask far fewer questions.
LEVELS = tuple(1 - 0.5**j for j in range(1, 21))


class Ilp(Oracle):
    """program: mass or price; solver: auto, a name that PuLP knows, or a solver of PuLP; levels: the masses to reach,
    rising fractions of the row's total; time_limit: seconds for each instance; canonical: among sets of equal cost the
    smallest, then the heaviest, then the first by indices, whatever the solver finds first.

    After each call `report` says how many instances were proved optimal, and how many were not.
    """

    name = "ilp"

    def __init__(
        self,
        loss: Loss,
        *,
        program: str = "mass",
        solver: object = "auto",
        levels: Sequence[float] = LEVELS,
        time_limit: float | None = None,
        canonical: bool = False,
    ) -> None:
        if program not in ("mass", "price"):
            raise OracleError(f"oracle 'ilp': program must be 'mass' or 'price', not {program!r}")
        if not isinstance(canonical, bool):
            raise OracleError(f"oracle 'ilp': canonical must be True or False, not {canonical!r}")
        fractions = _checked_levels(levels)
        limit = _checked_limit(time_limit)
        chosen = solver_name(solver)
        super().__init__(
            loss, program=program, solver=solver if isinstance(solver, str) else chosen,
            levels=[float(x) for x in levels], time_limit=limit, canonical=canonical,
        )  # fmt: skip
        self.model = lower(loss)
        self.report = Report()
        self._program = program
        self._levels = fractions
        self._limit = math.inf if limit is None else limit
        self._canonical = canonical
        self._exact = Exact(loss, self.model, solver, canonical)

    def _scores(self, P: Probabilities) -> Floats:
        if self._program == "price":
            out = np.empty(P.shape)
            self._each(P, lambda i, tally, p: self._priced(tally, p, out[i]))
            return out
        orders, _ = self._orders(P, lambda i, p, blocks: False)
        return remaining_scores(P, orders)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        if self._program == "price":
            return super()._score_of(P, y)
        orders, counts = self._orders(P, lambda i, p, mask: bool(mask[y[i]]))
        return remaining_score_of(P, orders, counts, y)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if self._program == "price" or tau.shape[1] > 1:  # by class: sets are not prefixes of the order
            return super()._sets(P, tau)
        # The last label of a block has as its score minus what remains after the block, or more.
        orders, counts = self._orders(P, lambda i, p, mask: -math.fsum(p[~mask].tolist()) > tau[i, 0])
        return remaining_sets(P, orders, counts, tau[:, 0])

    def _priced(self, tally: Tally, p: Floats, out: Floats) -> None:
        out[:] = price_scores(self._exact, tally, p, self._canonical)

    def _orders(self, P: Probabilities, enough: Callable[[int, Floats, Masks], bool]) -> tuple[Indices, Indices]:
        """The labels of each row in order, and how many of them are final: the chain ends once there is enough."""
        orders = np.empty(P.shape, dtype=np.int64)
        counts = np.empty(len(P), dtype=np.int64)

        def order(i: int, tally: Tally, p: Floats) -> None:
            blocks: list[Masks] = []
            counts[i] = len(p)
            for mask in chain(self._exact, tally, p, self._levels):
                blocks.append(mask)
                if mask.any() and enough(i, p, mask):
                    counts[i] = mask.sum()
                    break
            orders[i] = order_of(p, blocks)

        self._each(P, order)
        return orders, counts

    def _each(self, P: Probabilities, work: Callable[[int, Tally, Floats], None]) -> None:
        """Do the work of every row, and report on all of them."""
        total = Report()
        for i, row in enumerate(P):
            tally = Tally(time.monotonic() + self._limit)
            work(i, tally, row.astype(np.float64))
            total += tally.report()
        self.report = total
        if total.proved < total.instances:
            warnings.warn(
                f"oracle 'ilp': {total.instances - total.proved} of {total.instances} instances are not proved optimal "
                f"({total.hit_limit} hit the time limit, {total.failed} failed, {total.doubtful} are in doubt); "
                "coverage does not depend on it, the cost may",
                stacklevel=4,
            )


def _checked_levels(levels: object) -> list[Fraction]:
    """Levels as the decimals that they are written as: 0.9 means nine tenths."""
    if isinstance(levels, Sequence) and not isinstance(levels, str) and levels:
        numbers = [x for x in levels if isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= 1]
        if len(numbers) == len(levels) and all(a < b for a, b in pairwise(numbers)):
            return [Fraction(repr(float(x))) for x in numbers]
    raise OracleError(f"oracle 'ilp': levels must be rising numbers above 0 and up to 1, not {levels!r}")


def _checked_limit(limit: object) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
        raise OracleError(f"oracle 'ilp': time_limit must be a number of seconds above 0, not {limit!r}")
    return float(limit)
