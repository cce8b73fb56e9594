"""What the declarations of a spec come to, and the faults found on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import Diagnostic, Span
from udcp_dsl.expression.domain import Actions, Category, Costs, Family, Hierarchy, Metric
from udcp_dsl.language import ast

Thing = Category | Family | Costs | Metric | Hierarchy | Actions | float


@dataclass
class Declared:
    """What the declarations of a spec came to; `broken` are the names of those that came to nothing."""

    files: Files
    labels: tuple[str, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    label_column: str | None = None
    things: dict[str, Thing] = field(default_factory=dict)
    definitions: dict[str, ast.Let | ast.LossDecl] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def K(self) -> int:
        return len(self.labels)

    def error(self, code: str, span: Span, message: str, help: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, span, message, help))

    def warn(self, code: str, span: Span, message: str, help: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, span, message, help, "warning"))


class Fault(Exception):
    """A fault of one declaration, already reported: the declaration is given up, the others go on."""
