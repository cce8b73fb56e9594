"""From declarations to data: every name of a spec becomes arrays over the labels, or a diagnostic.

Errors are collected, not raised, so that one run reports them all. A declaration that could not be built is left out,
and its uses report nothing further (`Declared.broken` has its name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from udcp_dsl.compile.declare.categories import build_categories, build_category
from udcp_dsl.compile.declare.costs import build_actions, build_costs, build_input, build_param, declared_input
from udcp_dsl.compile.declare.declared import CompiledDeclaration, DeclarationCache, DeclarationFailed, Declared
from udcp_dsl.compile.declare.distances import build_distance
from udcp_dsl.compile.declare.hierarchies import build_hierarchy
from udcp_dsl.compile.declare.labels import declare_labels
from udcp_dsl.compile.declare.matching import refuse_column_clauses
from udcp_dsl.compile.sources import FileFault, Files
from udcp_dsl.diagnostics import Related
from udcp_dsl.expression.domain import Costs
from udcp_dsl.language import ast
from udcp_dsl.per_row import PerRow, as_number

__all__ = ["DeclarationCache", "Declared", "declare", "declared_input", "with_inputs", "with_params"]

# Most labels times declarations of one spec (some seconds); those read from a file count _READ times.
_MOST_ENTRIES, _READ = 16_000_000, 8

# In the order of building: later kinds refer to earlier ones.
_BUILDERS: dict[type[ast.Syntax], Callable[[Declared, Any], CompiledDeclaration]] = {
    ast.Input: build_input,
    ast.Hierarchy: build_hierarchy,
    ast.Category: build_category,
    ast.Categories: build_categories,
    ast.Costs: build_costs,
    ast.Distance: build_distance,
    ast.Actions: build_actions,
}
_ORDER = (ast.Param, *_BUILDERS)

Data = ast.Param | ast.Input | ast.Hierarchy | ast.Category | ast.Categories | ast.Costs | ast.Distance | ast.Actions


def declare(
    spec: ast.Spec,
    files: Files,
    labels: Sequence[str] | None,
    params: Mapping[str, float],
    cache: DeclarationCache | None = None,
) -> Declared:
    """Build everything that the spec declares; errors are in `Declared.diagnostics`.

    With `cache`, a declaration is not built again if nothing has changed that it depends on.
    """
    d = Declared(files, broken=set(spec.unread))
    data = _names(d, spec)
    declare_labels(d, spec, labels)
    entries = 0
    for x in sorted(data, key=lambda x: _ORDER.index(type(x))):
        if not isinstance(x, ast.Param | ast.Input):
            entries += d.K * (_READ if isinstance(x.body, ast.File) else 1)
        if entries > _MOST_ENTRIES:
            many = sum(not isinstance(x, ast.Param | ast.Input) for x in data)
            message = (
                f"the spec declares too much: {many:,} hierarchies, categories, costs and the like over {d.K:,} labels"
            )
            d.error("E129", x.name.span, message, "declare those that its losses use, or make several specs")
            d.broken.update(x.name.text for x in data if x.name.text not in d.things)
            break
        try:
            if not d.labels and not isinstance(x, ast.Param | ast.Input):
                raise DeclarationFailed  # there is one diagnostic already: the labels
            if isinstance(body := getattr(x, "body", None), ast.File):
                refuse_column_clauses(body)
            if cache is None or isinstance(x, ast.Param | ast.Input):
                d.things[x.name.text] = _build(d, x, params)
            else:
                d.things[x.name.text] = cache.get_or_build(d, x, lambda x=x: _build(d, x, params))  # type: ignore[misc]
        except DeclarationFailed:
            d.broken.add(x.name.text)
        except FileFault as fault:
            span, fixes = (body.span, fault.fixes(body)) if isinstance(body, ast.File) else (x.span, ())
            d.error(fault.code, span, fault.message, fault.help, fixes=fixes)
            d.broken.add(x.name.text)
    if cache is not None:
        cache.drop_unused()
    return d


def with_params(d: Declared, spec: ast.Spec, params: Mapping[str, float]) -> Declared:
    """The same declarations with other values of the parameters. No data depend on these, so no file is read again."""
    again = replace(d, things=dict(d.things), broken=set(), diagnostics=[])
    for x in spec.declarations:
        if isinstance(x, ast.Param):
            try:
                again.things[x.name.text] = build_param(again, x, params)
            except DeclarationFailed:
                again.broken.add(x.name.text)
    return again


def with_inputs(d: Declared, row: Mapping[str, Any]) -> Declared:
    """The same declarations with the inputs replaced by the numbers of one row, or of many."""
    things = dict(d.things)
    for name, value in row.items():
        thing = things[name]
        if isinstance(thing, Costs):
            costs = value if isinstance(value, PerRow) else np.array(value, dtype=np.float64)
            things[name] = Costs(name, costs, thing.of)  # type: ignore[arg-type]  # a PerRow stands in for an array
        else:
            things[name] = as_number(value)
    return replace(d, things=things, broken=set(), diagnostics=[])


def _names(d: Declared, spec: ast.Spec) -> list[Data]:
    """The declarations of data, the first of each name; lets, losses and limits go to `d`. A duplicate is an error."""
    first: dict[str, ast.Name] = {}
    data: list[Data] = []
    for x in spec.declarations:
        if isinstance(x, ast.Labels):
            continue
        name = x.name
        if name.text in first:
            earlier = first[name.text].span
            line, _ = name.span.source.position(earlier.start)
            way_out = f"it is already declared on line {line}; rename one"
            related = [Related(earlier, "it is declared here first")]
            d.error("E201", name.span, f"{name.text!r} is declared twice", way_out, related=related)
            continue
        first[name.text] = name
        if isinstance(x, ast.Let | ast.LossDecl):
            d.definitions[name.text] = x
        elif isinstance(x, ast.Limit):
            d.limits[name.text] = x
        else:
            data.append(x)
    return data


def _build(d: Declared, x: Data, params: Mapping[str, float]) -> CompiledDeclaration:
    return build_param(d, x, params) if isinstance(x, ast.Param) else _BUILDERS[type(x)](d, x)
