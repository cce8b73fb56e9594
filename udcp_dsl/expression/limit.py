"""A limit of a spec: the mean of a set function over rows is to be at most a number.

With a multiplier nu_j >= 0 for each limit, the Lagrangian of the costs is L(S) + sum of nu_j E_j(S).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.expression.facts import Facts
from udcp_dsl.expression.ir import Add, Expression, Scale
from udcp_dsl.expression.values import batch


@dataclass(frozen=True, eq=False)
class Limit:
    """`limit name: EXPR <= at_most`: `text` is EXPR as written; `indicator`, whether it is 0 or 1 on every set."""

    name: str
    text: str
    at_most: float
    indicator: bool
    expression: Expression
    labels: tuple[str, ...]

    def batch(self, masks: Bools) -> Floats:
        """The value on each row of a boolean matrix (n, K)."""
        return batch(self.expression, Sets(masks))

    @cached_property
    def facts(self) -> Facts:
        """What is proved, refuted or unknown about EXPR."""
        from udcp_dsl.expression.prove import prove

        return prove(self.expression, self.labels)[id(self.expression.root)]

    @cached_property
    def inside(self) -> Bools:
        """The labels that count against it on their own, (K,): the set of this one label is above the empty set."""
        K = len(self.labels)
        values = self.batch(np.concatenate([np.zeros((1, K), dtype=bool), np.eye(K, dtype=bool)]))
        found: Bools = values[1:] > values[0]
        return found


def weighted(expression: Expression, limits: Sequence[Limit], multipliers: Sequence[float]) -> Expression:
    """L + sum of nu_j E_j; a multiplier of 0 leaves its limit out."""
    root = expression.root
    own = root.children if isinstance(root, Add) else (root,)
    more = tuple(
        Scale(limit.expression.root.span, root.K, float(nu), limit.expression.root)
        for limit, nu in zip(limits, multipliers, strict=True)
        if nu
    )
    return Expression(Add(root.span, root.K, (*own, *more))) if more else expression
