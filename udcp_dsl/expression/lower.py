"""A loss as a mixed-integer linear model: minimising the model over sets is minimising L.

There are two passes over the expression. From the root down, each node learns in which directions it is pushed (the
loss itself: down). From the leaves up, each node is lowered once, with rows only for these directions. With the labels
fixed to a set S, the least objective of the model is L(S).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import numbered_sets
from udcp_dsl.expression.ir import AtLeast, Equal, Expression, Leaf
from udcp_dsl.expression.linear import Affine, LinearModel, Lowering, LoweringError, Part, Push
from udcp_dsl.expression.values import node_values

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

__all__ = ["LinearModel", "LoweringError", "check_linear", "grids", "lower"]

# Up to this many labels, the values of an expression are found by evaluating all sets.
_FEW = 12
_MOST_POINTS = 400_000  # of all grids of an expression together: a few seconds


def lower(loss: Loss) -> LinearModel:
    """The linear model of a loss; LoweringError names a subexpression without a linear form.

    >>> import udcp_dsl as udcp
    >>> model = lower(udcp.loads("labels 0..3  category C { 0..2 }  loss l = size + 5 * any(C)"))
    >>> model.variables, model.rows, model.objective.tolist()
    (5, 3, [1.0, 1.0, 1.0, 1.0, 5.0])
    """
    model = Lowering(loss.K)
    return model.done(_lowered(loss, model))


def check_linear(loss: Loss) -> None:
    """Raise the LoweringError that `lower` would, but do not lower atoms that always have a linear form."""
    _lowered(loss, Lowering(loss.K), outline=True)


def _lowered(loss: Loss, model: Lowering, *, outline: bool = False) -> Affine:
    """The loss in terms of the model's variables. With `outline`, a variable replaces each atom that is always linear.

    Whether an operator has a linear form depends on the intervals and values of its operands, not on their forms.
    """
    expression = loss.expression
    interval = {id(node): loss.facts_of(node).interval for node in expression.nodes}
    pushed = dict.fromkeys(interval, Push.NONE)
    pushed[id(expression.root)] = Push.DOWN
    of_atom: dict[tuple[object, ...], Push] = {}
    for node in reversed(expression.nodes):
        push = pushed[id(node)]
        if isinstance(node, Leaf):
            of_atom[node.atom.key] = of_atom.get(node.atom.key, Push.NONE) | push
        if not interval[id(node)].constant:
            needs = node.pushes(push, [interval[id(child)] for child in node.children])
            for child, need in zip(node.children, needs, strict=True):
                pushed[id(child)] |= need
    compared = any(isinstance(node, AtLeast | Equal) for node in expression.nodes)
    values = (_all_values(expression) if loss.K <= _FEW else grids(expression)) if compared else {}
    parts: dict[int, Part] = {}
    atoms: dict[tuple[object, ...], Affine] = {}
    for node in expression.nodes:
        lo, hi = interval[id(node)]
        if lo == hi or not pushed[id(node)]:
            form = Affine(lo, {})
        elif isinstance(node, Leaf):
            if node.atom.key not in atoms:
                stands_in = outline and node.atom.always_linear
                atoms[node.atom.key] = (
                    model.continuous(lo, hi) if stands_in else node.lower(model, of_atom[node.atom.key])
                )
            form = atoms[node.atom.key]
        else:
            form = node.lower(model, pushed[id(node)], *(parts[id(child)] for child in node.children))
        parts[id(node)] = Part(form, lo, hi, values.get(id(node)))
    return parts[id(expression.root)].form


def grids(expression: Expression) -> dict[int, Grid | None]:
    """The values that every node can take, by `id`, computed from those of the atoms; None if unknown, or too many."""
    found: dict[int, Grid | None] = {}
    points = 0
    for node in expression.nodes:
        grid = node.grid(*(found[id(child)] for child in node.children)) if points <= _MOST_POINTS else None
        points += 0 if grid is None or grid.points is None else len(grid.points)
        found[id(node)] = grid
    return found


def _all_values(expression: Expression) -> dict[int, Grid | None]:
    K = expression.root.K
    values = node_values(expression, numbered_sets(np.arange(1 << K), K))
    return {node: Grid.of(np.atleast_1d(value)) for node, value in values.items()}
