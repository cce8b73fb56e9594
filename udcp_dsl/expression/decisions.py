"""The decision that a set leads to: which action is taken, or whether the row is handed over.

worst(u) is the worst-case cost of the best single action: this is the action to take, and it costs no more whenever the
true label is in the set. min(L, c) is capped: if L reaches c, the set may as well contain all labels, and the row is
handed to someone else at cost c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udcp_dsl.expression.domain import Actions, Bools, Floats, Ints
from udcp_dsl.expression.ir import Constant, Expression, Extremum, Leaf, Table

KEPT, HANDED_OVER = "kept", "handed over"


@dataclass(frozen=True, eq=False)
class Decided:
    """The decisions for n rows: whether each is handed over (None for a loss that is not min(L, c)), and for each table
    of actions the position of the action taken."""

    handed_over: Bools | None
    actions: Mapping[str, Ints] = field(default_factory=dict)

    def __getitem__(self, rows: Any) -> Decided:
        """The decisions for some of the rows."""
        handed = None if self.handed_over is None else self.handed_over[rows]
        return Decided(handed, {name: chosen[rows] for name, chosen in self.actions.items()})

    @staticmethod
    def joined(parts: Sequence[Decided]) -> Decided:
        """Concatenate the decisions for several blocks of rows."""
        first, every = parts[0], [part.handed_over for part in parts if part.handed_over is not None]
        actions = {name: np.concatenate([part.actions[name] for part in parts]) for name in first.actions}
        return Decided(np.concatenate(every) if every else None, actions)

    def names(self, actions: Mapping[str, Actions]) -> np.typing.NDArray[np.str_]:
        """The decision for each row as text: its actions, separated by commas, or "kept" or "handed over".

        >>> treat = Actions("treat", ("wait", "cut"), np.zeros((2, 2)))
        >>> Decided(np.array([True, False]), {"treat": np.array([0, 1])}).names({"treat": treat}).tolist()
        ['handed over', 'cut']
        """
        columns = [np.array(actions[name].actions)[chosen].tolist() for name, chosen in self.actions.items()]
        found = [", ".join(row) for row in zip(*columns, strict=True)]
        if self.handed_over is not None:
            found = found or [KEPT] * len(self.handed_over)
            found = [HANDED_OVER if handed else name for handed, name in zip(self.handed_over, found, strict=True)]
        return np.array(found, dtype=np.str_)


def worst_of(actions: Actions, mask: Bools, chosen: Ints) -> Floats:
    """The worst loss of each set's chosen action over the labels of the set; for an empty set, over all labels."""
    sets = mask | ~mask.any(axis=1, keepdims=True)
    found: Floats = np.where(sets, actions.values.T[chosen], -np.inf).max(axis=1, initial=-np.inf)
    return found


def actions_of(expression: Expression) -> dict[str, Actions]:
    """The tables of actions that the expression uses in `worst`, by the name of their declaration."""
    found = [node.atom.actions for node in expression.nodes if isinstance(node, Leaf)]
    return {actions.name: actions for actions in found if actions is not None}


def best_actions(actions: Actions, mask: Bools) -> tuple[Ints, Floats]:
    """For each set of `mask` (n, K) the position of the action whose worst loss over the set is least, and that loss.

    Ties go to the first action. For an empty set, the best action for the set of all labels.

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
