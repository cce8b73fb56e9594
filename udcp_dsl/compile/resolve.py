"""References: what the argument of an atom names, by the kind that the atom expects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import CompiledDeclaration, DeclarationFailed, Declared
from udcp_dsl.compile.declare.families import categories_named, family_of, is_node, level_of
from udcp_dsl.compile.declare.labels import positions
from udcp_dsl.diagnostics import Fix
from udcp_dsl.expression.domain import Actions, Category, CategoryMetric, Costs, Family, Hierarchy, Metric, TreeMetric
from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import name_text


def argument(
    d: Declared, call: ast.Call, kind: str, expr: ast.Expr | ast.SetLiteral, before: Sequence[object]
) -> CompiledDeclaration | None:
    """The thing that an argument of `call` names, or None with a diagnostic."""
    if isinstance(expr, ast.SetLiteral):
        if kind == "category":
            return _set(d, expr)
        d.error("E406", expr.span, f"{call.name} takes {_KINDS[kind][0]}, not a set of labels", _KINDS[kind][1])
        return None
    if not isinstance(expr, ast.Ref):
        way_out = "put factors before it: 2 * sum(c)" if isinstance(expr, ast.Product) else _instead(call, kind)
        d.error("E406", expr.span, f"{call.name} takes {_KINDS[kind][0]}, not an expression", way_out)
        return None
    if expr.head.text in d.broken:
        return None
    match kind:
        case "category":
            return category_of(d, expr)
        case "family":
            return family_of(d, expr)
        case "costs of family":
            return _weights(d, call, expr, before[0])
        case "distance" | "any distance":
            return _metric(d, call, kind, expr)
        case _:
            return _named(d, call, kind, expr)


# What an argument of each kind is called, and what to write for it.
_DISTANCE = ("a distance or a hierarchy", "declare a `distance` or a `hierarchy`, and give its name")
_KINDS = {
    "category": ("a category", "write { a, b }, a category, F.c or h.level.node"),
    "family": ("a family", "write a family declared by `categories`, or h.level"),
    "costs": ("costs", "declare costs for the labels, and give their name"),
    "costs of family": ("costs of the family", "declare `costs w of F { ... }`, and give its name"),
    "distance": _DISTANCE,
    "any distance": _DISTANCE,
    "hierarchy": ("a hierarchy", "declare a `hierarchy`, and give its name"),
    "actions": ("actions", 'declare `actions u from "file.csv"`, and give its name'),
}


def _instead(call: ast.Call, kind: str) -> str:
    if call.name in ("max", "min"):
        return f"with one argument, {call.name} takes costs; with expressions, it takes two or more"
    return _KINDS[kind][1]


def is_costs(d: Declared, ref: ast.Ref) -> bool:
    return not ref.parts and isinstance(d.things.get(ref.head.text), Costs)


def described(d: Declared, ref: ast.Ref) -> tuple[str, list[str]]:
    """What a name that is not an expression stands for, and some expressions that use it."""
    thing = d.things.get(ref.head.text)
    name = ref.span.text
    match thing:
        case Costs():
            if thing.of is None:
                return "a list of costs", [f"sum({name})", f"max({name})"]
            return "a list of costs of a family", [f"count({thing.of.name}, {name})"]
        case Category():
            return "a category", [f"any({name})", f"size({name})"]
        case Family():
            return ("a category", [f"any({name})"]) if ref.parts else ("a family", [f"count({name})"])
        case Hierarchy():
            if not ref.parts:
                return "a hierarchy", [f"diameter({name})", f"nodes({name})"]
            part = ref.parts[0]
            if isinstance(part, ast.Name) and part.text not in thing.levels and part.text in thing.names:
                return "a node of a hierarchy", [f"any({thing.name}.node({part.span.text}))"]
            if len(ref.parts) == 1 and not is_node(part):
                return "a level of a hierarchy", [f"count({name})"]
            return "a node of a hierarchy", [f"any({name})"]
        case CategoryMetric():
            return "a distance between categories", [f"diameter({name})"]
        case Metric():
            return "a distance", [f"diameter({name})", f"spread({name})", f"radius({name})"]
        case Actions():
            return "a table of actions", [f"worst({name})"]
        case _:
            kind = {float: "a number", RowInput: "a per-row number"}.get(type(thing), "an expression")
            return kind, [ref.head.text]


def write_one_of(ways: Sequence[str]) -> str:
    """`write a, b or c`"""
    return "write " + " or ".join(filter(None, [", ".join(ways[:-1]), ways[-1]]))


def _set(d: Declared, literal: ast.SetLiteral) -> Category | None:
    if not d.labels:
        return None
    try:
        members = positions(d, literal.items)
    except DeclarationFailed:
        return None
    return Category(" ".join(literal.span.text.split()), members, d.K)


def category_of(d: Declared, ref: ast.Ref) -> Category | None:
    """C: a category, F.c, h.level.node or h.node(n)."""
    thing, parts = d.things.get(ref.head.text), ref.parts
    if isinstance(thing, Category) and not parts:
        return thing
    if isinstance(thing, Family) and len(parts) == 1 and isinstance(parts[0], ast.Name):
        name = parts[0].text
        if name not in thing.names:
            suggestion = d.suggest_name(name, thing.names)
            fixes = suggestion.fixes(parts[0].span, name_text)
            d.error("E212", parts[0].span, f"{thing.name!r} has no category {name!r}", suggestion.help, fixes=fixes)
            return None
        return thing.category(thing.names.index(name))
    if isinstance(thing, Hierarchy) and len(parts) == 1 and isinstance(parts[0], ast.Indexed) and is_node(parts[0]):
        return _node(d, thing, parts[0].argument, range(len(thing.names)), "")
    if isinstance(thing, Hierarchy) and len(parts) == 2 and isinstance(parts[1], ast.Name):
        depth = level_of(d, thing, parts[0], "level")
        if depth is None:
            return None
        at = np.unique(thing.nodes_at(depth)).tolist()
        where = f" at level {parts[0].text!r}" if isinstance(parts[0], ast.Name) else f" at {parts[0].span.text}"
        return _node(d, thing, parts[1], at, where)
    if isinstance(thing, Hierarchy) and len(parts) == 1 and level_of(d, thing, parts[0], "node") is None:
        return None
    if thing is None and ref.head.text not in d.definitions:
        if ref.head.text in d.index and not parts:
            message, literal = f"{ref.head.text!r} is a label, not a category", f"{{ {ref.span.text} }}"
            d.error("E406", ref.span, message, f"write {literal}", fixes=[Fix.write(ref.span, literal)])
        else:
            _no_category(d, ref)
        return None
    what = described(d, ref)[0]
    if isinstance(thing, Family):
        way_out = f"name one of its categories: {thing.name}.{name_text(thing.names[0])}"
    elif isinstance(thing, Hierarchy):
        way_out = f"name a node: {thing.name}.node({name_text(thing.names[1])})"
    else:
        way_out = _KINDS["category"][1]
    wrong = "does not name a category" if len(parts) > 1 else f"is {what}, not a category"
    d.error("E406", ref.span, f"{ref.span.text!r} {wrong}", way_out)
    return None


def _no_category(d: Declared, ref: ast.Ref) -> None:
    name, span = ref.head.text, ref.head.span
    if not ref.parts and (found := categories_named(d, name)):
        way_out, fixes = f"write {' or '.join(found)}", tuple(Fix.write(span, category) for category in found)
    else:
        known = (n for n, t in d.things.items() if isinstance(t, Category | Family | Hierarchy))
        suggestion = d.suggest_name(name, known)
        way_out = suggestion.help or "declare it with `category`, or list its labels: { a, b }"
        # A family or hierarchy is no category, but its parts are.
        fixes = suggestion.fixes(span, only=lambda n: isinstance(d.things[n], Category) != bool(ref.parts))
    d.error("E211", span, f"there is no category {name!r}", way_out, fixes=fixes)


def _node(d: Declared, h: Hierarchy, name: ast.Name, among: Sequence[int], where: str) -> Category | None:
    found = [v for v in among if h.names[v] == name.text]
    if not found:
        suggestion = d.suggest_name(name.text, dict.fromkeys(h.names[v] for v in among))
        fixes = suggestion.fixes(name.span, name_text)
        d.error("E214", name.span, f"{h.name!r} has no node {name.text!r}{where}", suggestion.help, fixes=fixes)
        return None
    members = {h.members(v).tobytes() for v in found}
    if len(members) > 1:
        places = " and ".join((" > ".join(h.path_to(v)) or "the root") for v in found[:3])
        d.error(
            "E215", name.span, f"{name.text!r} names {len(found)} nodes of {h.name!r}: {places}", "rename one of them"
        )
        return None
    return Category(f"{h.name}.{name.text}", h.members(found[0]), d.K)


def _weights(d: Declared, call: ast.Call, ref: ast.Ref, family: object) -> Costs | None:
    def of_family(thing: CompiledDeclaration) -> bool:
        if not isinstance(thing, Costs) or thing.of is None or not isinstance(family, Family):
            return False
        return (thing.of.name, thing.of.names) == (family.name, family.names)

    costs = _named(d, call, "costs of family", ref, of_family)
    if not isinstance(costs, Costs) or not isinstance(family, Family):
        return None
    if costs.of is None:
        d.error("E406", ref.span, f"{ref.span.text!r} are costs of labels, not of the family {family.name!r}",
                f"declare `costs {ref.span.text} of {family.name} {{ ... }}`")  # fmt: skip
        return None
    if costs.of.names != family.names or costs.of.name != family.name:
        message = f"{ref.span.text!r} are costs of {costs.of.name!r}, not of {family.name!r}"
        suggestion = f"count({costs.of.name}, {ref.span.text})"
        d.error("E406", ref.span, message, f"write {suggestion}", fixes=[Fix.write(call.span, suggestion)])
        return None
    return costs


def _metric(d: Declared, call: ast.Call, kind: str, ref: ast.Ref) -> Metric | None:
    thing = d.things.get(ref.head.text)
    if isinstance(thing, Hierarchy) and not ref.parts:
        return TreeMetric(thing.name, thing)
    named = _named(d, call, "distance", ref)
    if isinstance(named, CategoryMetric) and kind == "distance":
        name, family = ref.span.text, named.family.name
        d.error(
            "E406", ref.span, f"{call.name} takes a distance between labels; {name!r} is one between categories",
            f"a label may be in several categories of {family}, or in none, so its distances are undefined; "
            f"write diameter({name})", fixes=[Fix.write(call.span, f"diameter({name})")],
        )  # fmt: skip
        return None
    return named if isinstance(named, Metric) else None


_FITS: dict[str, Callable[[object], bool]] = {
    "costs": lambda t: isinstance(t, Costs) and t.of is None,
    "costs of family": lambda t: isinstance(t, Costs),
    "distance": lambda t: isinstance(t, Metric),
    "hierarchy": lambda t: isinstance(t, Hierarchy),
    "actions": lambda t: isinstance(t, Actions),
}


def _named(
    d: Declared,
    call: ast.Call,
    kind: str,
    ref: ast.Ref,
    fits: Callable[[CompiledDeclaration], bool] = lambda thing: True,
) -> CompiledDeclaration | None:
    """A thing by its plain name; the fixes of an unknown name are things that `fits` accepts."""
    name = ref.head.text
    thing = d.things.get(name)
    if thing is not None and not ref.parts and _FITS[kind](thing):
        return thing
    kinds = (n for n, t in d.things.items() if _FITS[kind](t) or (kind == "distance" and isinstance(t, Hierarchy)))
    if thing is None and name not in d.definitions:
        there_is_no = "there is no" if _KINDS[kind][0].startswith("a ") else "there are no"
        what = _KINDS[kind][0].removeprefix("a ").replace(" or a ", " or ")
        suggestion = d.suggest_name(name, kinds)
        fixes = suggestion.fixes(ref.head.span, only=lambda n: not ref.parts and fits(d.things[n]))
        way_out = suggestion.help or _KINDS[kind][1]
        d.error("E211", ref.head.span, f"{there_is_no} {what} {name!r}", way_out, fixes=fixes)
        return None
    what, ways = described(d, ref)
    help = write_one_of(ways)
    alone = len(call.arguments or ()) == 1
    fixes = tuple(Fix.write(call.span, way) for way in ways) if alone else ()
    if name in d.definitions or isinstance(thing, float | RowInput):
        help, fixes = _instead(call, kind), ()
    d.error("E406", ref.span, f"{call.name} takes {_KINDS[kind][0]}; {ref.span.text!r} is {what}", help, fixes=fixes)
    return None
