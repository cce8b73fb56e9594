"""Check the linear model of a loss: with the labels fixed to S, its least value must be L(S).

scipy solves it, so that a fault in the solver behind an oracle is not on both sides. A solver keeps integer variables
integral only to within 1e-6, so they are rounded and the rest, a linear program, is solved once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.expression.lower import LinearModel, lower
from udcp_dsl.testing.meaning import Difference, first_difference

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Constraints with a large constant, at a solver's tolerance of 1e-9 to 1e-7, leave errors of a few times that.
LINEAR_TOLERANCE = 1e-7
FACE = "the linear model"


class FixedModel:
    """A linear model, minimised over all variables but the labels, which are fixed."""

    def __init__(self, model: LinearModel) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        self.model = model
        shape = (model.rows, model.variables)
        A = csr_array((model.coefficients, model.columns, model.starts), shape=shape)
        self._rows = [LinearConstraint(A, model.row_lower, model.row_upper)] if model.rows else []

    def __call__(self, mask: Bools, expected: float) -> float | None:
        """The least objective on one set: infinite if no assignment is feasible, None if the solver fails.

        The second program is skipped if the value is `expected` and the integer variables are integral.
        """
        m = self.model
        low, high = m.lower.copy(), m.upper.copy()
        low[: m.K] = high[: m.K] = mask
        least, found = self._least(low, high, m.integer)
        if found is None:
            return least
        whole = np.round(found[m.integer])
        value = float(m.constant + m.objective @ found)
        if _near(value, expected) and (whole == found[m.integer]).all():
            return value
        low[m.integer], high[m.integer] = whole, whole
        exact = self._least(low, high, np.zeros_like(m.integer))[1]
        return value if exact is None else float(m.constant + m.objective @ exact)

    def _least(self, low: Floats, high: Floats, integer: Bools) -> tuple[float | None, Floats | None]:
        """The least value, and a point that attains it."""
        from scipy.optimize import Bounds, milp

        infeasible = False
        for presolve in (True, False):  # the solver's own presolve fails on some models
            solved = milp(
                self.model.objective,
                bounds=Bounds(low, high),
                constraints=self._rows,
                integrality=integer.astype(np.int64),
                options={"mip_rel_gap": 0.0, "presolve": presolve},
            )
            if solved.status == 0:
                return float(solved.fun), np.asarray(solved.x, dtype=np.float64)
            infeasible = solved.status == 2
        return (float("inf") if infeasible else None), None


def linear_differences(loss: Loss, masks: Bools) -> list[Difference]:
    """The sets on which the linear model and the interpreter differ. Raises LoweringError if there is no model."""
    fixed = FixedModel(lower(loss))
    expected = [loss.interpret_positions(np.flatnonzero(mask).tolist()) for mask in masks]
    got = [fixed(mask, value) for mask, value in zip(masks, expected, strict=True)]
    return [
        Difference(mask, FACE, g, m)
        for mask, g, m in zip(masks, got, expected, strict=True)
        if g is not None and not _near(g, m)
    ]


def _near(value: float, expected: float) -> bool:
    return abs(value - expected) <= LINEAR_TOLERANCE * max(1.0, abs(expected))


def assert_lowers(loss: Loss, masks: Bools) -> None:
    """Fail if the linear model of a loss has another value than the loss on some sets.

    Parameters
    ----------
    loss : Loss
        The loss.
    masks : boolean array, shape (n, K)
        The sets.

    Raises
    ------
    AssertionError
        The values differ; the message shows where.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b}  loss l = 3 * all({a, b})")
    >>> assert_lowers(loss, np.array([[True, True], [True, False]]))
    """
    found = linear_differences(loss, masks)
    if found:
        smaller = first_difference(found, lambda mask: linear_differences(loss, mask[None]))
        raise AssertionError(f"{loss.name}: {smaller.sentence(loss)}")
