"""The declarations that expressions of a generated spec can use, as references."""

from __future__ import annotations

from dataclasses import dataclass, field

from udcp_dsl.diagnostics import Source, Span
from udcp_dsl.language import ast

# Generated trees have no position in a text: the text is made from them.
NOWHERE = Span(Source("<generated>", ""), 0, 0)


def named(text: str) -> ast.Name:
    return ast.Name(text, span=NOWHERE)


def reference(head: str, *parts: ast.Name | ast.Indexed) -> ast.Ref:
    return ast.Ref(named(head), parts, span=NOWHERE)


def indexed(kind: str, argument: str) -> ast.Indexed:
    return ast.Indexed(kind, named(argument), span=NOWHERE)


@dataclass
class Vocabulary:
    """References to the declarations of a spec, filled while these are drawn."""

    labels: tuple[str, ...]
    categories: list[ast.Ref] = field(default_factory=list)
    families: list[tuple[ast.Ref, tuple[str, ...]]] = field(default_factory=list)  # with the names of the categories
    costs: list[ast.Ref] = field(default_factory=list)
    family_costs: list[tuple[ast.Ref, ast.Ref]] = field(default_factory=list)  # the family, its costs
    metrics: list[ast.Ref] = field(default_factory=list)
    family_metrics: list[ast.Ref] = field(default_factory=list)  # between the categories of a family
    hierarchies: list[ast.Ref] = field(default_factory=list)
    actions: list[ast.Ref] = field(default_factory=list)
    params: list[tuple[ast.Ref, float]] = field(default_factory=list)
    inputs: list[tuple[ast.Ref, float]] = field(default_factory=list)  # numbers per row, with their upper ends
