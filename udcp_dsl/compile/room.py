"""How much a spec may compute: labels times atoms and operators, as each makes arrays of one number per label.

max(c) and min(c) are sums of nested categories, one per different cost, unless that takes too much memory; a comparison
looks for the values between which its sides jump. Both count as many arrays, by the seconds and the memory they take.
"""

from __future__ import annotations

import numpy as np

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.expression import ir
from udcp_dsl.expression.atoms.atom import CostAtom
from udcp_dsl.expression.atoms.max import MOST_MEMBERS, CostExtreme
from udcp_dsl.language import ast

# `udcp check` of a spec at this bound takes seconds and less than 500 MB.
_MOST_ENTRIES = 12_000_000
_OF_A_LEVEL = 100  # entries that a different cost of max(c) or min(c) counts as
_OF_A_COMPARISON = 20_000
_OF_A_VALUE = 60  # and each of the different costs whose sums are compared
_MOST_VALUES = 50_000  # with more, nobody looks for the values of sums


class Room:
    """Counts what the expressions of one spec compute."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._entries = self._computed = self._different = 0
        self._seen: set[tuple[object, ...]] = set()

    def take(self, expr: ast.Expr) -> bool:
        """Whether there is room for one more atom or operator; where there is not for the first time, E129."""
        if isinstance(expr, ast.Number | ast.Ref):
            return True
        self._computed += 1
        return self._take(expr, self._declared.K)

    def take_node(self, expr: ast.Expr, node: ir.Node) -> bool:
        """Whether there is room for the analysis of what an expression was compiled to."""
        if isinstance(expr, ast.Call) and isinstance(node, ir.Leaf) and isinstance(node.atom, CostAtom):
            different = len(np.unique(node.atom.costs))
            self._different = max(self._different, different)
            members = (different - 1) * self._declared.K  # beside one array
            if not isinstance(node.atom, CostExtreme) or members > MOST_MEMBERS:
                return True
            seen = node.atom.key in self._seen
            self._seen.add(node.atom.key)
            return self._take(expr, _OF_A_LEVEL * different + (0 if seen else members // 2))
        if isinstance(node, ir.AtLeast | ir.Equal):
            return self._take(expr, _OF_A_COMPARISON + _OF_A_VALUE * min(self._different, _MOST_VALUES))
        return True

    def _take(self, expr: ast.Expr, entries: int) -> bool:
        K = self._declared.K
        before, self._entries = self._entries, self._entries + entries
        if before <= _MOST_ENTRIES < self._entries:
            self._declared.error(
                "E129", expr.span,
                f"the spec computes too much: more than {self._computed - 1:,} atoms and operators on {K:,} labels",
                f"labels times atoms and operators may be at most {_MOST_ENTRIES:,}, where max(c), min(c) and "
                "comparisons of costs count as many: use fewer terms, costs of labels in place of many categories, or "
                "fewer labels",
            )  # fmt: skip
        return self._entries <= _MOST_ENTRIES
