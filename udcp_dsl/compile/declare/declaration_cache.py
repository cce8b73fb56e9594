"""A cache of compiled declarations, for editors that compile a text after every keystroke.

A declaration depends on its own text, the labels, the bytes of its file and the declaration that it refers to. If all
four are unchanged, so is the result. A declaration with an error is compiled again, because its suggestions name other
things.
"""

from __future__ import annotations

from collections.abc import Callable

from udcp_dsl.compile.declare.declared import CompiledDeclaration, Declared
from udcp_dsl.diagnostics import Diagnostic, Span
from udcp_dsl.language import ast

Data = ast.Hierarchy | ast.Category | ast.Categories | ast.Costs | ast.Distance | ast.Actions


class DeclarationCache:
    """The results of the last run with their warnings, by what they were built from."""

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
