"""The naive interpreter, which defines the meaning of a loss. It is small and slow; everything else is compared with
it.

It walks the syntax tree for one set of labels, with plain numbers. From the checked expression it takes only which atom
a call names. Operands are evaluated before the operations that use them, so any depth of nesting works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from udcp_dsl.expression.atoms import Atom
from udcp_dsl.expression.facts import TOLERANCE
from udcp_dsl.language import ast
from udcp_dsl.language.words import FUNCTION_NAMES

_FUNCTIONS: Mapping[str, Callable[..., float]] = {"max": max, "min": min} | {
    name: getattr(math, name) for name in FUNCTION_NAMES
}


class Interpreter:
    """Evaluates expressions of one spec on sets of label positions.

    `definitions` are its lets and losses, each after those that it uses; `numbers` its params, and its inputs if they
    are known; `atoms` the atom of each call, by the id of the call.
    """

    def __init__(
        self, definitions: Mapping[str, ast.Expr], numbers: Mapping[str, float], atoms: Mapping[int, Atom]
    ) -> None:
        self.definitions = definitions
        self.numbers = numbers
        self.atoms = atoms
        self._fixed = set(numbers)  # names whose value does not depend on the set
        for name, body in definitions.items():
            if self._is_number(body):
                self._fixed.add(name)

    def __call__(self, expr: ast.Expr, S: frozenset[int]) -> float:
        known = dict(self.numbers)
        needed = self._needed(expr)
        for name, body in self.definitions.items():
            if name in needed:
                known[name] = self._value(body, S, known)
        return self._value(expr, S, known)

    def _needed(self, expr: ast.Expr) -> set[str]:
        """The lets and losses that an expression uses, directly or through others."""
        needed: set[str] = set()
        bodies = [expr]
        while bodies:
            for e in self._order(bodies.pop()):
                if isinstance(e, ast.Ref) and e.head.text in self.definitions and e.head.text not in needed:
                    needed.add(e.head.text)
                    bodies.append(self.definitions[e.head.text])
        return needed

    def _operands(self, expr: ast.Expr) -> tuple[ast.Expr, ...]:
        return () if id(expr) in self.atoms else ast.children(expr)

    def _order(self, body: ast.Expr) -> list[ast.Expr]:
        """All subexpressions, operands before the operations that use them."""
        order: list[ast.Expr] = []
        stack = [body]
        while stack:
            expr = stack.pop()
            order.append(expr)
            stack.extend(self._operands(expr))
        return order[::-1]

    def _value(self, body: ast.Expr, S: frozenset[int], known: Mapping[str, float]) -> float:
        values: dict[int, float] = {}
        for expr in self._order(body):
            operands = [values[id(e)] for e in self._operands(expr)]
            values[id(expr)] = self._step(expr, operands, S, known)
        return values[id(body)]

    def _step(self, expr: ast.Expr, v: list[float], S: frozenset[int], known: Mapping[str, float]) -> float:
        match expr:
            case ast.Number():
                return expr.value
            case ast.Ref():
                return known[expr.head.text]
            case ast.Call():
                if id(expr) in self.atoms:
                    return self.atoms[id(expr)].value(S)
                return float(_FUNCTIONS[expr.name](*v))
            case ast.Sum():
                return sum(sign * x for (sign, _), x in zip(expr.terms, v, strict=True))
            case ast.Product():
                product = 1.0
                for (operator, _), x in zip(expr.factors, v, strict=True):
                    product = product * x if operator == "*" else product / x
                return product
            case ast.Negative():
                return -v[0]
            case ast.Power():
                return float(v[0] ** v[1])
            case ast.Comparison():
                return float(self._holds(expr, v[0], v[1]))
            case ast.And():
                return float(all(x == 1 for x in v))
            case ast.Or():
                return float(any(x == 1 for x in v))
            case ast.Not():
                return float(v[0] == 0)
            case ast.If():
                return v[1] if v[0] == 1 else v[2]

    def _holds(self, expr: ast.Comparison, left: float, right: float) -> bool:
        """Compare; values within the tolerance are equal. It grows with the side that is a number, if one is."""
        k = right if self._is_number(expr.right) else left if self._is_number(expr.left) else 0.0
        gap = left - right
        same = abs(gap) <= TOLERANCE * max(1.0, abs(k))
        return {
            "==": same,
            ">=": same or gap > 0,
            "<=": same or gap < 0,
            ">": not same and gap > 0,
            "<": not same and gap < 0,
        }[expr.operator]

    def _is_number(self, expr: ast.Expr) -> bool:
        """Whether the value does not depend on the set: it contains no atom, directly or through a name."""
        return all(
            id(e) not in self.atoms and (not isinstance(e, ast.Ref) or e.head.text in self._fixed)
            for e in self._order(expr)
        )
