"""What a name stands for: one line for completions and hovers, and the pages of the language manual.

A wheel has the pages in this package, a checkout in specs/reference.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from udcp_dsl.compile.declare.declared import CompiledDeclaration
from udcp_dsl.compile.type_checker import Value
from udcp_dsl.expression.domain import Actions, Category, CategoryMetric, Costs, Family, Hierarchy, Metric, TreeMetric
from udcp_dsl.expression.inputs import RowCosts, RowInput
from udcp_dsl.language import ast
from udcp_dsl.lsp.document import Document


def described(document: Document, name: str) -> str:
    """What a declared name stands for, or only its kind if its declaration has an error."""
    known, declaration = document.last_good_declarations, document.declarations.get(name)
    if name in known.definitions:
        word = "loss" if isinstance(known.definitions[name], ast.LossDecl) else "let"
        value = document.checked.checker.values.get(name)
        return word if value is None else f"{word}: {type_of(value)}"
    if name in known.limits:
        return f"limit: {known.limits[name].body.span.line}"
    thing = known.things.get(name)
    if isinstance(thing, float):
        return f"parameter = {thing:.10g}{_limits(declaration)}"
    if thing is not None:
        return described_thing(thing)
    return "not understood" if declaration is None else f"{type(declaration).__name__.lower()} with a fault"


def described_thing(thing: CompiledDeclaration) -> str:
    match thing:
        case RowInput():
            return f"input: {str(thing).partition(': ')[2]}"
        case RowCosts(_, values, of):
            what = f"the {len(values)} categories of {of.name}" if of is not None else _many(len(values), "label")
            return f"costs of {what} per row, in [{thing.low:.10g}, {thing.high:.10g}]"
        case Costs(_, values, of):
            what = f"the {len(values)} categories of {of.name}" if of is not None else _many(len(values), "label")
            return f"costs of {what}, {values.min():.10g} to {values.max():.10g}"
        case Category():
            return f"category of {_many(len(thing.members), 'label')}"
        case Family():
            kind = "disjoint" if thing.disjoint else "that overlap"
            return f"family of {len(thing)} categories" + ("" if len(thing) == 1 else f", {kind}")
        case Hierarchy():
            levels = (f"{name} ({len(set(thing.nodes_at(i + 1).tolist()))})" for i, name in enumerate(thing.levels))
            shown = ", ".join(levels) or f"{thing.height} levels"
            return f"hierarchy of {_many(thing.K, 'label')}: {shown}"
        case CategoryMetric():
            return f"distance between the categories of {thing.family.name}, at most {thing.largest:.10g}"
        case TreeMetric():
            return f"distance along {thing.hierarchy.name}, at most {thing.largest:.10g}"
        case Metric():
            return f"distance between labels, at most {thing.largest:.10g}"
        case Actions():
            return f"{_many(len(thing.actions), 'action')}: {', '.join(thing.actions[:6])}" + ", ..." * (
                len(thing.actions) > 6
            )
        case _:
            return f"parameter = {thing:.10g}"


def type_of(value: Value) -> str:
    """The type of an expression, as specs/reference/types.md calls it."""
    if value.by_row:
        return "row indicator" if value.indicator else "row number"
    if value.indicator:
        return "indicator"
    if value.number is not None:
        return f"number {value.number:.10g}"
    return "count function" if value.table is not None else "set function"


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _limits(declaration: ast.Declaration | None) -> str:
    if not isinstance(declaration, ast.Param) or declaration.low is None or declaration.high is None:
        return ""
    return f" in [{declaration.low.value:.10g}, {declaration.high.value:.10g}]"


_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "reference", _HERE.parents[1] / "specs" / "reference")

# A link to another page, which an editor would look for in the user's folder.
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")

# Pages that explain words of the language that are not atoms.
_WORDS = {
    "labels": "labels",
    "hierarchies": "hierarchy levels",
    "costs": "costs",
    "distances": "distance path",
    "categories": "category categories",
    "actions": "actions",
    "params-and-lets": "param let loss",
    "inputs": "input per row",
    "limits": "limit",
    "files": "from column by",
    "operators": "sqrt log1p if and or not",
}
_PAGES = {word: name for name, words in _WORDS.items() for word in words.split()}


@cache
def page(word: str) -> str:
    """The manual page of an atom or another word, up to its examples; "" if there is none.

    >>> page("size").splitlines()[0], page("no such word")
    ('# size', '')
    """
    name = _PAGES.get(word, word)
    if not name.replace("-", "").isalnum():
        return ""
    for folder in _FOLDERS:
        if (folder / f"{name}.md").is_file():
            text = (folder / f"{name}.md").read_text(encoding="utf-8")
            return _LINK.sub(r"\1", text.partition("\n## Examples")[0].partition("\n```")[0].strip())
    return ""
