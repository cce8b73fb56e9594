"""References to families: F, h.level, h.level(d)."""

from __future__ import annotations

import re
from typing import Literal

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.diagnostics import Fix
from udcp_dsl.expression.domain import Family, Hierarchy
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import name_text


def family_of(d: Declared, ref: ast.Ref) -> Family | None:
    """The family that a reference names: F, h.level or h.level(d); None, with a diagnostic, if there is none."""
    thing = d.things.get(ref.head.text)
    if ref.head.text in d.broken:
        return None
    if isinstance(thing, Family) and not ref.parts:
        return thing
    if isinstance(thing, Hierarchy) and len(ref.parts) == 1 and not is_node(ref.parts[0]):
        depth = level_of(d, thing, ref.parts[0], "family")
        return None if depth is None else thing.level(depth)
    if isinstance(thing, Hierarchy) and not ref.parts:
        message, level = f"{ref.head.text!r} is a hierarchy; a family is one of its levels", _level_example(thing)
        d.error("E406", ref.span, message, f"write {level}", fixes=[Fix.write(ref.span, level)])
        return None
    known = (name for name, t in d.things.items() if isinstance(t, Family | Hierarchy))
    if thing is None and ref.head.text not in d.definitions:
        suggestion, kind = d.suggest_name(ref.head.text, known), Hierarchy if ref.parts else Family
        way_out = suggestion.help or "declare one with `categories`, or use a level of a hierarchy"
        fixes = suggestion.fixes(ref.head.span, only=lambda name: isinstance(d.things[name], kind))
        levels = [f"{n}.{name_text(ref.head.text)}" for n, t in _hierarchies(d) if ref.head.text in t.levels]
        if levels and not ref.parts:
            way_out = f"write {' or '.join(levels)}"
            fixes = tuple(Fix.write(ref.head.span, level) for level in levels)
        d.error("E211", ref.head.span, f"there is no family {ref.head.text!r}", way_out, fixes=fixes)
    else:
        way_out = "a family is declared by `categories`, or is a level of a hierarchy: h.level"
        if isinstance(thing, Hierarchy) and is_node(ref.parts[-1]):
            way_out = f"a node is one category: write any({ref.span.text})"
        d.error("E406", ref.span, f"{ref.span.text!r} is not a family", way_out)
    return None


def is_node(part: ast.Name | ast.Indexed) -> bool:
    return isinstance(part, ast.Indexed) and part.kind == "node"


def _level_example(h: Hierarchy) -> str:
    return f"{h.name}.{name_text(h.levels[0])}" if h.levels else f"{h.name}.level(1)"


def _hierarchies(d: Declared) -> list[tuple[str, Hierarchy]]:
    return [(name, thing) for name, thing in d.things.items() if isinstance(thing, Hierarchy)]


def categories_named(d: Declared, name: str) -> list[str]:
    """References to the categories of families and the nodes of hierarchies that have this name."""
    families = [f"{n}.{name_text(name)}" for n, t in d.things.items() if isinstance(t, Family) and name in t.names]
    return families + [f"{n}.node({name_text(name)})" for n, t in _hierarchies(d) if name in t.names[1:]]


def level_of(
    d: Declared, h: Hierarchy, part: ast.Name | ast.Indexed, wanted: Literal["family", "level", "node"]
) -> int | None:
    """The depth of the level named after the dot, or None with a diagnostic. `wanted`, for the message, is what should
    be there: a family, the level of a node that follows, or a node."""
    if isinstance(part, ast.Indexed) and part.kind == "level":
        depth = int(part.argument.text[:20]) if re.fullmatch("[0-9]+", part.argument.text) else -1
        if 0 <= depth <= h.height:
            return depth
        way_out = f"levels run from 0 (the root) to {h.height}"
        d.error("E213", part.span, f"{h.name!r} has no level {part.argument.text}", way_out)
        return None
    if isinstance(part, ast.Name) and part.text in h.levels:
        return h.levels.index(part.text) + 1
    text = part.text if isinstance(part, ast.Name) else part.span.text
    suggestion = d.suggest_name(text, h.levels)
    way_out = suggestion.help or f"its levels have no names: write {_level_example(h)}"
    fixes = suggestion.fixes(part.span, name_text)
    if isinstance(part, ast.Name) and text in h.names:
        node = f"node({part.span.text})"
        way_out = f"{text!r} is a node: write {h.name}.{node}"
        fixes = (Fix.write(part.span, node),) if wanted == "node" else ()
        if wanted == "family":
            depth = int(h.depth[h.names.index(text)])
            level = name_text(h.levels[depth - 1]) if 0 < depth <= len(h.levels) else f"level({depth})"
            way_out = f"{text!r} is a node, and a family is a whole level: write {h.name}.{level}"
            fixes = (Fix.write(part.span, level),)
    d.error("E213", part.span, f"{h.name!r} has no level {text!r}", way_out, fixes=fixes)
    return None
