"""How much a spec may compute: labels times atoms and operators, as each makes arrays of one number per label."""

from __future__ import annotations

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.language import ast

# `udcp check` of a spec at this bound takes seconds and less than 500 MB.
_MOST_ENTRIES = 12_000_000


class Room:
    """Counts what the expressions of one spec compute."""

    def __init__(self, declared: Declared) -> None:
        self._declared, self._entries = declared, 0

    def take(self, expr: ast.Expr) -> bool:
        """Whether there is room for one more atom or operator; where there is not for the first time, E129."""
        if isinstance(expr, ast.Number | ast.Ref):
            return True
        K = self._declared.K
        before, self._entries = self._entries, self._entries + K
        if before <= _MOST_ENTRIES < self._entries:
            self._declared.error(
                "E129", expr.span,
                f"the spec computes too much: more than {_MOST_ENTRIES // K:,} atoms and operators on {K:,} labels",
                f"labels times atoms and operators may be at most {_MOST_ENTRIES:,}: use fewer terms, costs of labels "
                "in place of many categories, or fewer labels",
            )  # fmt: skip
        return self._entries <= _MOST_ENTRIES
