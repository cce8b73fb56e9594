"""Random calls of atoms: every atom of the table, in each of its signatures, on the declarations of a spec.

The atom that the compiler makes of a call tells whether it is an indicator or a count and how large it can be, so a new
atom needs no change here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from udcp_dsl.check.generated.declarations import DeclarationGenerator
from udcp_dsl.check.generated.vocabulary import NOWHERE, named
from udcp_dsl.compile.declare import declare
from udcp_dsl.compile.sources import Files
from udcp_dsl.compile.type_checker import Checker
from udcp_dsl.expression.atoms import ATOMS, Atom
from udcp_dsl.language import ast

T = TypeVar("T")

Argument = ast.Ref | ast.SetLiteral


@dataclass(frozen=True)
class Form:
    """One signature of an atom."""

    name: str
    kinds: tuple[str, ...]


class CallGenerator:
    """Draws calls of atoms over the declarations of a spec."""

    def __init__(self, declaring: DeclarationGenerator) -> None:
        self._declaring = declaring
        self._vocabulary = declaring.vocabulary
        spec = ast.Spec(tuple(declaring.declarations), span=NOWHERE)
        self._checker = Checker(declare(spec, Files(contents=declaring.files), declaring.given, {}))
        every = [Form(name, kinds) for name, atom in ATOMS.items() for kinds in atom.signatures]
        self.forms = [form for form in every if all(map(self._known, form.kinds))]
        self.indicators = [form for form in self.forms if ATOMS[form.name].indicator]
        self.counts = [form for form in self.forms if self.atom(self._first(form)).most is not None]

    def pick(self, options: Sequence[T]) -> T:
        return self._declaring.pick(options)

    def call(self, form: Form) -> ast.Call:
        """A call of that form."""
        paired = dict[str, Argument]()
        if "costs of family" in form.kinds:
            paired["family"], paired["costs of family"] = self.pick(self._vocabulary.family_costs)
        return _call(form, [paired.get(kind) or self._argument(kind) for kind in form.kinds])

    def _first(self, form: Form) -> ast.Call:
        """A call of that form without a draw: whether it is a count does not depend on its arguments."""
        v = self._vocabulary
        one = ast.SetLiteral((named(v.labels[0]),), span=NOWHERE)
        paired = dict(zip(("family", "costs of family"), v.family_costs[0], strict=True)) if v.family_costs else {}
        return _call(form, [paired.get(k) or (one if k == "category" else self._named(k)[0]) for k in form.kinds])

    def atom(self, call: ast.Call) -> Atom:
        """The atom that the compiler makes of a call."""
        self._checker.check(call)
        return self._checker.atoms[id(call)]

    def _argument(self, kind: str) -> Argument:
        if kind != "category":
            return self.pick(self._named(kind))
        known = self._vocabulary.categories
        return self.pick(known) if known and self._declaring.coin() else self._declaring.members()

    def _known(self, kind: str) -> bool:
        return kind == "category" or bool(self._named(kind))

    def _named(self, kind: str) -> Sequence[ast.Ref]:
        v = self._vocabulary
        return {
            "family": [family for family, _ in v.families],
            "costs": v.costs,
            "costs of family": [costs for _, costs in v.family_costs],
            "distance": v.metrics,
            "any distance": [*v.metrics, *v.family_metrics],
            "hierarchy": v.hierarchies,
            "actions": v.actions,
        }[kind]


def _call(form: Form, arguments: Sequence[Argument]) -> ast.Call:
    return ast.Call(form.name, tuple(arguments) or None, span=NOWHERE)
