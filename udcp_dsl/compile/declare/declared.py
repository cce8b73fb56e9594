"""The declarations of a spec, compiled, and the errors found on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import Diagnostic, Fix, Related, Span, Suggestion, known_names, suggest
from udcp_dsl.expression.domain import Actions, Category, Costs, Family, Hierarchy, Metric
from udcp_dsl.expression.inputs import RowInput
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


Data = ast.Hierarchy | ast.Category | ast.Categories | ast.Costs | ast.Distance | ast.Actions


class DeclarationCache:
    """The results of the last run with their warnings, for editors that compile a text after every keystroke.

    A declaration depends on its own text, the labels, the bytes of its file and the declaration that it refers to. If
    all four are unchanged, so is the result. A declaration with an error is compiled again, because its suggestions
    name other things.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[object, ...], tuple[CompiledDeclaration, Span, list[Diagnostic]]] = {}
        self._now: dict[tuple[object, ...], tuple[CompiledDeclaration, Span, list[Diagnostic]]] = {}

    def get_or_build(self, d: Declared, x: Data, build: Callable[[], CompiledDeclaration]) -> CompiledDeclaration:
        """The kept result for `x`, with its warnings moved to their present places; else the result of `build`."""
        key = self._key(d, x)
        found = self._before.get(key)
        if found is None:
            many = len(d.diagnostics)
            thing = build()
            made = d.diagnostics[many:]
            if any(diagnostic.severity == "error" for diagnostic in made):
                return thing
            found = thing, x.span, made
        else:
            thing, span, made = found
            d.diagnostics += [y.moved(x.span.source, x.span.start - span.start) for y in made]
        self._now[key] = found
        return thing

    def drop_unused(self) -> None:
        """Keep only the results that this run used."""
        self._before, self._now = self._now, {}

    @staticmethod
    def _key(d: Declared, x: Data) -> tuple[object, ...]:
        # By id: what this declaration refers to is kept as well, so that no other object gets its id.
        of = x.of.head.text if isinstance(x, ast.Costs | ast.Distance) and x.of is not None else None
        if isinstance(x, ast.Distance) and isinstance(x.body, ast.Path):
            of = x.body.hierarchy.text
        data = d.files.read(x.body.path) if isinstance(x.body, ast.File) else None
        return x.span.text, d.labels, d.label_column, data, None if of is None else id(d.things.get(of))
