"""Losses that are cuts of a graph: label costs of any sign + nonnegative weights on categories + capped sums.

A capped sum is w min(count, k), where the count is of labels, touched categories, or weights on them. A concave
function of a count is a sum of capped sums and a linear term; for a count of labels its slope may be negative, since it
is added to the label costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.facts import ROUNDING
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.ir import Add, Constant, Extremum, Node, Scale, Table
from udcp_dsl.expression.prove import additive_forms
from udcp_dsl.per_row import as_number, smaller
from udcp_solvers.numeric.arrays import Floats

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@dataclass
class Capped:
    """weight * min(the sum of label units in the set + of units of touched categories, cap)."""

    weight: float
    cap: float
    labels: Floats
    categories: list[tuple[float, tuple[int, ...]]]


@dataclass
class Cut:
    """The parts of the loss, while they are collected; categories are keyed by their members."""

    costs: Floats
    categories: dict[tuple[int, ...], float] = field(default_factory=dict)
    capped: list[Capped] = field(default_factory=list)

    @staticmethod
    def of(loss: Loss) -> Cut | None:
        """The parts of a loss; None if it is not recognised as a cut."""
        cut = Cut(np.zeros(loss.K))
        return cut if cut._collect(loss.expression.root, 1.0, additive_forms(loss.expression)) else None

    def _collect(self, node: Node, factor: float, forms: dict[int, Additive | None]) -> bool:
        """Add factor * node to the parts; False if it is not a cut."""
        form = forms[id(node)]
        if form is not None and not form.diameters and form.of_size is None:
            if all(factor * part.weight >= 0 for part in form.categories.values()):
                self._add(form.times(factor))
                return True
            return False
        if isinstance(node, Add):
            return all(self._collect(term, factor, forms) for term in node.terms)
        if isinstance(node, Scale):
            return self._collect(node.operand, factor * node.factor, forms)
        if isinstance(node, Table):
            return self._concave(factor * node.table, forms[id(node.count)])
        if isinstance(node, Extremum) and not node.largest and factor >= 0:
            return self._least(node, factor, forms)
        return False

    def _add(self, form: Additive) -> None:
        self.costs = self.costs + form.label_costs
        for part in form.categories.values():
            members = tuple(part.members.tolist())
            self.categories[members] = self.categories.get(members, 0.0) + part.weight

    def _concave(self, f: Floats, counted: Additive | None) -> bool:
        """Add f(count) for concave f: the sum of the bends * min(count, k) + the last slope * count; False for other
        f."""
        if counted is None:
            return False
        steps = np.diff(f)
        bends = steps[:-1] - steps[1:]
        bends = np.where(np.abs(bends) <= ROUNDING * np.abs(f).max(), 0.0, bends)
        if (bends < 0).any() or (counted.categories and steps[-1] < 0):
            return False
        self._add(counted.times(as_number(steps[-1])))
        for k in np.flatnonzero(bends):
            self.capped.append(_capped(as_number(bends[k]), float(k + 1), counted))
        return True

    def _least(self, node: Extremum, factor: float, forms: dict[int, Additive | None]) -> bool:
        """Add factor * min(e, k), where e is a sum of nonnegative parts; False for other minima."""
        constants = [e.number for e in node.operands if isinstance(e, Constant)]
        others = [forms[id(e)] for e in node.operands if not isinstance(e, Constant)]
        if len(others) != 1 or not constants or (e := others[0]) is None or e.diameters or e.of_size is not None:
            return False
        weights = [part.weight for part in e.categories.values()]
        cap, least = smaller(*constants) - e.constant, smaller(*weights, *e.label_costs.tolist())
        if cap <= 0 or least < 0:
            return bool(cap <= 0) and bool(least >= 0)
        self.capped.append(_capped(factor, cap, e))
        return True


def _capped(weight: float, cap: float, units: Additive) -> Capped:
    parts = [(part.weight, tuple(part.members.tolist())) for part in units.categories.values()]
    return Capped(weight, cap, units.label_costs, parts)
