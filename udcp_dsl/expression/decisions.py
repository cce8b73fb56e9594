"""What is decided once there is a set: which action is taken, or whether the case is handed over.

worst(u) is what the best single action costs in the worst case: the action that attains it is the one to take, and that
cost holds whenever the truth is in the set. min(L, c) is capped: where L reaches c, any set costs as much as all labels
together, and the case may as well go, at price c, to someone else.
"""

from __future__ import annotations

import numpy as np

from udcp_dsl.expression.domain import Actions, Bools, Floats, Ints
from udcp_dsl.expression.ir import Constant, Expression, Extremum, Leaf, Table


def actions_of(expression: Expression) -> dict[str, Actions]:
    """The actions that the expression asks `worst` of, by the name of their declaration."""
    found = [node.atom.actions for node in expression.nodes if isinstance(node, Leaf)]
    return {actions.name: actions for actions in found if actions is not None}


def best_actions(actions: Actions, mask: Bools) -> tuple[Ints, Floats]:
    """For each set of `mask` (n, K) the position of the action whose worst loss over the set is least, and that loss.

    Of equal ones the first. An empty set says nothing: for it the best one for all labels, with its loss.

    >>> treat = Actions("treat", ("wait", "cut"), np.array([[0.0, 3.0], [9.0, 1.0]]))
    >>> [x.tolist() for x in best_actions(treat, np.array([[True, False], [True, True], [False, False]]))]
    [[0, 1, 1], [0.0, 3.0, 3.0]]
    """
    sets = mask | ~mask.any(axis=1, keepdims=True)
    action, least = np.zeros(len(sets), dtype=np.int64), np.full(len(sets), np.inf)
    for a, losses in enumerate(actions.values.T):
        worst = np.where(sets, losses, -np.inf).max(axis=1, initial=-np.inf)
        better = worst < least
        action[better], least[better] = a, worst[better]
    return action, least


def ceiling_of(expression: Expression) -> float | None:
    """c, if the expression is min(..., c)."""
    match expression.root:
        case Extremum(largest=False, operands=parts):
            return min((part.number for part in parts if isinstance(part, Constant)), default=None)
        case Table(cap=cap):
            return cap
    return None
