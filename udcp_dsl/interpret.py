"""The meaning of a loss: the naive interpreter, small and slow, the judge of everything else.

It walks the text's own tree on one set of labels, with plain numbers, and takes nothing from the checked expression but
which atom a call names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from udcp_dsl import ast
from udcp_dsl.atoms import Atom
from udcp_dsl.facts import TOLERANCE


class Interpreter:
    """Expressions of one spec, on sets of label positions."""

    def __init__(
        self, definitions: Mapping[str, ast.Expr], numbers: Mapping[str, float], atoms: Mapping[int, Atom]
    ) -> None:
        self.definitions = definitions  # lets and losses
        self.numbers = numbers  # params
        self.atoms = atoms  # by the id of the call

    def __call__(self, expr: ast.Expr, S: frozenset[int]) -> float:
        return self._value(expr, S, {})

    def _value(self, expr: ast.Expr, S: frozenset[int], known: dict[str, float]) -> float:
        def value(e: ast.Expr | ast.SetLiteral) -> float:
            assert not isinstance(e, ast.SetLiteral)
            return self._value(e, S, known)

        match expr:
            case ast.Number():
                return expr.value
            case ast.Ref():
                name = expr.head.text
                if name in self.numbers:
                    return self.numbers[name]
                if name not in known:
                    known[name] = value(self.definitions[name])
                return known[name]
            case ast.Call():
                if id(expr) in self.atoms:
                    return self.atoms[id(expr)].value(S)
                values = [value(e) for e in expr.arguments or ()]
                if expr.name in ("max", "min"):
                    return max(values) if expr.name == "max" else min(values)
                return math.sqrt(values[0]) if expr.name == "sqrt" else math.log1p(values[0])
            case ast.Sum():
                return sum(sign * value(e) for sign, e in expr.terms)
            case ast.Product():
                product = 1.0
                for operator, e in expr.factors:
                    product = product * value(e) if operator == "*" else product / value(e)
                return product
            case ast.Negative():
                return -value(expr.operand)
            case ast.Power():
                return float(value(expr.base) ** value(expr.exponent))
            case ast.Comparison():
                return float(self._compare(expr, value(expr.left), value(expr.right)))
            case ast.And():
                return float(all(value(e) == 1 for e in expr.operands))
            case ast.Or():
                return float(any(value(e) == 1 for e in expr.operands))
            case ast.Not():
                return float(value(expr.operand) == 0)
            case ast.If():
                return value(expr.then) if value(expr.condition) == 1 else value(expr.otherwise)

    def _compare(self, expr: ast.Comparison, left: float, right: float) -> bool:
        """Values within the tolerance are equal; it grows with the side that is a number, if one is."""
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
        """Whether no set can change the value."""
        match expr:
            case ast.Number():
                return True
            case ast.Ref():
                name = expr.head.text
                return name in self.numbers or self._is_number(self.definitions[name])
            case ast.Call():
                return id(expr) not in self.atoms and all(
                    not isinstance(e, ast.SetLiteral) and self._is_number(e) for e in expr.arguments or ()
                )
            case _:
                return all(self._is_number(e) for e in ast.children(expr))
