"""What sets cost to about 106 bits, as unevaluated sums high + low: equal where it is equal in rationals.

A cost is exact arithmetic on the floats that the loss is made of. Sums of floats are rounded, so that 2 - 0.1 - 2 is
just below 1 - 0.1 - 1, although both are -0.1: whether two sets cost the same is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.expression import ir
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.prove import additive_forms
from udcp_dsl.expression.values import node_values
from udcp_solvers.numeric.arrays import Masks
from udcp_solvers.numeric.double_double_arrays import Doubles, minus, plus, times, two_sum

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# A number of 106 bits, or an array of them, as in `double_double_arrays`; either half may differ by row (`PerRow`).
Exact = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class ExactForm:
    """The constant, label costs and categories of an `Additive` form, whose numbers have 106 bits."""

    constant: Exact
    labels: Exact
    weights: Mapping[bytes, Exact]
    members: Mapping[bytes, Weighted]

    @staticmethod
    def of(form: Additive) -> ExactForm:
        """The form with the numbers as they are."""
        zeros = np.zeros(form.K)
        weights = {key: (part.weight, 0.0) for key, part in form.categories.items()}
        return ExactForm((form.constant, 0.0), (form.label_costs, zeros), weights, form.categories)

    def plus(self, other: ExactForm) -> ExactForm:
        weights = dict(self.weights)
        for key, weight in other.weights.items():
            weights[key] = plus(weights[key], weight) if key in weights else weight
        return ExactForm(
            plus(self.constant, other.constant),
            plus(self.labels, other.labels),
            weights,
            {**self.members, **other.members},
        )

    def times(self, by: Exact) -> ExactForm:
        weights = {key: times(weight, by) for key, weight in self.weights.items()}
        return ExactForm(times(self.constant, by), times(self.labels, by), weights, self.members)

    def lack(self, form: Additive) -> tuple[Any, Any, list[Any]]:
        """What the constant, the label costs and the weights of the same form in floats lack."""
        nothing = (0.0, 0.0)
        return (
            _lack(self.constant, form.constant),
            _lack(self.labels, form.label_costs),
            [_lack(self.weights.get(key, nothing), part.weight) for key, part in form.categories.items()],
        )


def _lack(exact: Exact, rounded: Any) -> Any:
    return (exact[0] - rounded) + exact[1]


def exact_forms(expression: ir.Expression) -> dict[int, ExactForm]:
    """The exact form of every node (by `id`) that has an additive form, diameters and functions of size left out."""
    found: dict[int, ExactForm] = {}
    for node, form in zip(expression.nodes, additive_forms(expression).values(), strict=True):
        if form is None:
            continue
        parts = [found[id(child)] for child in node.children if id(child) in found]
        if isinstance(node, ir.Add):
            found[id(node)] = reduce(ExactForm.plus, parts)
        elif isinstance(node, ir.Scale) and node.factor != 0:
            found[id(node)] = parts[0].times((node.factor, 0.0))
        elif isinstance(node, ir.Table) and len(node.table) > 1 and parts and node.slope is not None:
            # The first step is the factor as it was written; the slope is rounded.
            base = ExactForm.of(Additive.of_constant(node.table[0], node.K))
            found[id(node)] = base.plus(parts[0].times(two_sum(node.table[1], -node.table[0])))
        else:
            found[id(node)] = ExactForm.of(form)
    return found


def exact_costs(loss: Loss, masks: Masks) -> Doubles:
    """The cost of each set, (n,)."""
    root, additive, rounded = loss.expression.root, additive_forms(loss.expression), node_values(loss.expression, masks)
    forms = {
        key: exact
        for key, exact in exact_forms(loss.expression).items()
        if (form := additive[key]) is not None and not form.diameters and form.of_size is None
    }
    needed, stack = set[int](), [root]
    while stack:
        node = stack.pop()
        if id(node) not in needed:
            needed.add(id(node))
            stack.extend(() if id(node) in forms else node.children)
    values: dict[int, Doubles] = {}
    for node in loss.expression.nodes:
        if id(node) not in needed:
            continue
        if id(node) in forms:
            values[id(node)] = _of_form(forms[id(node)], masks)
        elif isinstance(node, ir.Leaf):
            values[id(node)] = (rounded[id(node)] + np.zeros(len(masks)), np.zeros(len(masks)))
        else:
            values[id(node)] = _of_operands(node, [values[id(child)] for child in node.children])
    high, low = values[id(root)]
    return high + 0.0, low  # -0 becomes 0


def _of_form(form: ExactForm, masks: Masks) -> Doubles:
    """The values of an additive form, term by term."""
    high: Any = form.constant[0] + np.zeros(len(masks))
    low: Any = form.constant[1] + np.zeros(len(masks))
    costs, lows = form.labels
    terms: list[tuple[Any, Any, Any]] = [(masks[:, y], costs[y], lows[y]) for y in range(masks.shape[1])]
    for key, (weight, rest) in form.weights.items():
        terms.append((masks[:, form.members[key].members].any(axis=1), weight, rest))
    for there, number, rest in terms:
        high, lost = two_sum(high, there * number)
        low = low + (lost + there * rest)
    return two_sum(high, low)


def _of_operands(node: ir.Node, operands: list[Doubles]) -> Doubles:
    """The value of a node from those of its operands. Comparisons have a tolerance, so that floats decide them."""
    high = operands[0][0]
    match node:
        case ir.Add():
            return reduce(plus, operands)
        case ir.Scale():
            return times(operands[0], (node.factor, 0.0))  # type: ignore[arg-type]  # as arrays are
        case ir.Gate():
            return high * operands[1][0], high * operands[1][1]
        case ir.If():
            (then, then_low), (other, other_low) = operands[1:]
            return np.where(high > 0.5, then, other), np.where(high > 0.5, then_low, other_low)
        case ir.Extremum():
            return reduce(_larger if node.largest else _smaller, operands)
        case _:
            value = node.value(*(x for x, _ in operands))
            return value, 0.0 * value


def _larger(a: Doubles, b: Doubles) -> Doubles:
    first = minus(a, b)[0] >= 0.0
    return np.where(first, a[0], b[0]), np.where(first, a[1], b[1])


def _smaller(a: Doubles, b: Doubles) -> Doubles:
    first = minus(a, b)[0] <= 0.0
    return np.where(first, a[0], b[0]), np.where(first, a[1], b[1])
