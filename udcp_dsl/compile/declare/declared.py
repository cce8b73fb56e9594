"""The declarations of a spec, compiled, and the errors found on the way."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import Diagnostic, Fix, Related, Span, Suggestion, known_names, suggest
from udcp_dsl.expression.domain import Actions, Category, Costs, Family, Hierarchy, Metric
from udcp_dsl.expression.rows.declared import RowInput
from udcp_dsl.language import ast

# Most names that unknown ones are compared with, per spec: a thousand misspelt labels are one mistake, for which the
# first few suggestions are enough.
_MOST_COMPARED = 50_000

CompiledDeclaration = Category | Family | Costs | Metric | Hierarchy | Actions | RowInput | float


@dataclass
class Declared:
    """The compiled declarations of a spec; `broken` are the names of those with an error."""

    files: Files
    labels: tuple[str, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    label_column: str | None = None
    things: dict[str, CompiledDeclaration] = field(default_factory=dict)
    definitions: dict[str, ast.Let | ast.LossDecl] = field(default_factory=dict)
    limits: dict[str, ast.Limit] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _compared: int = 0

    @property
    def K(self) -> int:
        return len(self.labels)

    def error(
        self,
        code: str,
        span: Span,
        message: str,
        help: str = "",
        *,
        fixes: Iterable[Fix] = (),
        related: Iterable[Related] = (),
    ) -> None:
        found = Diagnostic(code, span, message, help, fixes=tuple(fixes), related=tuple(related))
        self.diagnostics.append(found)

    def suggest_name(self, name: str, known: Iterable[str]) -> Suggestion:
        """Suggest the known names nearest to an unknown one; after too many comparisons, do not search `known`."""
        if self._compared > _MOST_COMPARED:
            way_out = "see the first of these errors for names that are known"
            return Suggestion(known_names(known) if isinstance(known, Collection) else way_out)
        names = list(known)
        self._compared += len(names)
        return suggest(name, names)

    def warn(self, code: str, span: Span, message: str, help: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, span, message, help, "warning"))


class DeclarationFailed(Exception):
    """Raised to give up one declaration, whose error is already reported; the others go on."""
