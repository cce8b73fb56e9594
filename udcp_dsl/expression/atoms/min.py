"""min(c) = the smallest c(y) in S, 0 on the empty set.

It is minus the max of -c.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import Held, Increment, Sets
from udcp_dsl.expression.atoms.max import CostExtreme, ExtremeIncrement, nested
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Smaller
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Min(CostExtreme):
    name = "min"

    def value(self, S: frozenset[int]) -> float:
        return float(min((self.costs[y] for y in S), default=0.0))

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        smallest = np.where(sets.mask, costs, np.inf).min(axis=1)
        return np.where(sets.size > 0, smallest, 0.0)

    def start(self, held: Held) -> Increment:
        return ExtremeIncrement(held, self.costs, np.minimum)

    def growth(self) -> Smaller:
        return Smaller(self.costs)

    def proves(self) -> Mapping[str, str]:
        if (self.costs <= 0).all():
            return {
                "antitone": "no cost is positive, so the empty set's 0 is the largest",
                "supermodular": "the smallest of nonpositive costs is minus a sum of nested categories",
            }
        return {}

    def additive(self) -> Additive | None:
        turned = nested(-self.costs)
        return None if turned is None else turned.times(-1.0)

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.largest(-self.costs, push.reversed) * -1.0
