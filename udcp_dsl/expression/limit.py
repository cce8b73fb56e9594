"""A limit of a spec: the mean of a set function over rows must be at most a number.

With a multiplier nu_j >= 0 for each limit, the Lagrangian of the costs is L(S) + sum of nu_j E_j(S).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.facts import Facts, with_facts
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.expression.inputs import InputNode, RowLeaf
from udcp_dsl.expression.ir import Add, Expression, Scale
from udcp_dsl.expression.values import batch


@dataclass(frozen=True, eq=False)
class Limit:
    """`limit name: EXPR <= at_most`: `text` is EXPR as written; `indicator`, whether it is 0 or 1 on every set.

    If EXPR has the numbers of one row in place of inputs, `whole` is the limit over all rows, whose facts it keeps.
    """

    name: str
    text: str
    at_most: float
    indicator: bool
    expression: Expression
    labels: tuple[str, ...]
    whole: Limit | None = None

    def batch(self, masks: Bools, inputs: RowInputs | None = None) -> Floats:
        """The value on each row of a boolean matrix (n, K); `inputs` are those of the rows, if it reads any."""
        return batch(self.expression, Sets(masks), inputs)

    @cached_property
    def facts(self) -> Facts:
        """What is proved, refuted or unknown about EXPR."""
        from udcp_dsl.expression.prove import prove

        found = prove(self.expression, self.labels, refute=self.whole is None)[id(self.expression.root)]
        return found if self.whole is None else with_facts(self.whole.facts, {}, found.interval)

    def inside(self, truth: Ints, inputs: RowInputs | None = None) -> Bools:
        """Whether each label counts against the limit: EXPR is higher on {label} than on the empty set."""
        by_row = any(isinstance(node, InputNode | RowLeaf) for node in self.expression.nodes)
        labels, rows = (truth, np.arange(len(truth))) if by_row else np.unique(truth, return_inverse=True)
        inputs = inputs if by_row else None
        alone = np.zeros((len(labels), len(self.labels)), dtype=bool)
        nothing = self.batch(alone, inputs)
        alone[np.arange(len(labels)), labels] = True
        found: Bools = (self.batch(alone, inputs) > nothing)[rows]
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
