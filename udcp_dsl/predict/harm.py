"""`risk`: the harm w(y) of missing a true label y (a `costs` of the spec), and the probabilities weighted by it.

The guarantee bounds E[w(Y) 1{Y not in C(X)}]; so a label is worth w(y) p(y), not p(y). Oracles that compare prices
across rows (`price`, `ratio`, `lac`) use w(y) p(y) as it is; those that use the mass of a row normalise it to sum 1.
Either way scores are a function of p and the spec, so the bound holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.expression.inputs import RowCosts
from udcp_dsl.predict.calibrate.weighted import as_written
from udcp_dsl.predict.oracle import Floats, Indices, Oracle, Probabilities
from udcp_dsl.rows.columns import BlockedMatrix, changed

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@dataclass(frozen=True, eq=False)
class Harm:
    """The harm of missing each label, `values` (K,) from 0, and the largest of them, `max_harm`, which is above 0.

    With costs per row, the harm differs by row: `max_harm` and all `values` are then the upper end of the range.
    """

    name: str
    values: Floats
    max_harm: Fraction
    per_row: bool = False
    inputs: RowInputs | None = None  # of the rows to evaluate, if they are known already

    @classmethod
    def of(cls, loss: Loss, name: object) -> Harm:
        """The harm from the costs of this name in the spec; refuses unknown names, and costs below 0."""
        known = {costs.name: costs for costs in loss.costs if costs.of is None}
        if not isinstance(name, str) or name not in known:
            if not known:
                raise InputError(
                    f"risk is {name!r}, but the spec declares no costs: add `costs {name} {{ ... }}` to it"
                )
            if any(costs.name == name for costs in loss.costs):
                raise InputError(f"risk is {name!r}, but these are costs of a family: name costs of labels")
            raise InputError(
                f"risk is {name!r}, but the spec has no such costs; {did_you_mean(str(name), list(known))}"
            )
        found = known[name]
        values, per_row = found.values, isinstance(found, RowCosts)
        if isinstance(found, RowCosts) and found.low < 0:
            raise InputError(
                f"risk {name!r} has the range [{found.low:g}, {found.high:g}], but a harm cannot be below 0"
            )
        if (values < 0).any():
            y = int(values.argmin())
            raise InputError(f"risk {name!r}: label {loss.labels[y]!r} has {values[y]:g}, but a harm cannot be below 0")
        if not values.any():
            raise InputError(f"risk {name!r} is 0 for every label, so there is nothing to control")
        return cls(name, values, as_written(float(values.max())), per_row)

    def weigh(self, P: Any, oracle: Oracle, inputs: RowInputs | None) -> Any:
        """The matrix that the oracle gets instead of the probabilities P, in memory or in blocks; see `weigh_block`."""
        if not self.per_row:
            return changed(P, lambda block: self.weigh_block(block, oracle))
        own = self._given(inputs)
        if not isinstance(P, BlockedMatrix):
            return self.weigh_block(P, oracle, own)
        if P.is_remote:
            raise InputError(f"risk {self.name!r} is a row input, which Dask does not support: use one process")
        return BlockedMatrix(P.shape, lambda: (self.weigh_block(block, oracle, own[at]) for at, block in P.blocks()))

    def weigh_block(self, P: Probabilities, oracle: Oracle, own: Floats | None = None) -> Probabilities:
        """w p for rows of probabilities (n, K): scaled by a power of two to stay below 1 or, for oracles that use the
        mass of a row, divided by the row's sum; a row without harm stays 0. The dtype is that of P. `own` is w, if it
        is given per row."""
        scale = math.ldexp(1.0, -math.frexp(float(self.values.max()))[1])
        values = self.values if own is None else own
        weighted: npt.NDArray[Any] = np.multiply(P, (values * scale).astype(P.dtype), dtype=P.dtype)
        if oracle.normalized:
            sums = weighted.sum(axis=1, dtype=np.float64)  # not by BLAS, which sums a single row in another order
            weighted /= np.where(sums > 0, sums, 1.0).astype(P.dtype)[:, None]
        return weighted

    def of_truth(self, y: Indices, inputs: RowInputs | None = None) -> Floats:
        """The harm of missing each of these labels, one per row."""
        found: Floats = self._given(inputs)[np.arange(len(y)), y] if self.per_row else self.values[y]
        return found

    def _given(self, inputs: RowInputs | None) -> Floats:
        inputs = self.inputs if inputs is None else inputs
        if inputs is None or self.name not in inputs:
            raise InputError(f"risk {self.name!r} is a row input: give inputs={{{self.name!r}: ...}}")
        own: Floats = inputs[self.name]
        return own
