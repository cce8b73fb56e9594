"""`category` and `categories`: sets of labels, and families of them."""

from __future__ import annotations

import numpy as np

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.labels import LISTED_FIRST, positions
from udcp_dsl.compile.declare.matching import column, ending, known_positions, label_array, require_ending, rows_of
from udcp_dsl.compile.sources import FileFault, read_json
from udcp_dsl.diagnostics import Related
from udcp_dsl.expression.domain import Category, Family, Ints
from udcp_dsl.language import ast


def build_category(d: Declared, x: ast.Category) -> Category:
    members = _category_from(d, x.body) if isinstance(x.body, ast.File) else positions(d, x.body)
    if not len(members):
        d.error("E222", x.span, f"category {x.name.text!r} has no member", "list at least one label")
        raise DeclarationFailed
    return Category(x.name.text, members, d.K)


def _category_from(d: Declared, file: ast.File) -> Ints:
    if ending(file) == "csv":
        table, rows = rows_of(d, file)
        at = column(file, table)
        for row in rows:
            cell = table.rows[row][at]
            if cell not in ("0", "1"):
                where = f"{table.path}:{table.lines[row]}: column {table.header[at]!r}"
                way_out = "a category's column says 1 for its members and 0 for the others"
                raise FileFault("E305", f"{where}: {cell!r} is not 0 or 1", way_out)
        return np.array([y for y, row in enumerate(rows) if table.rows[row][at] == "1"], dtype=np.int64)
    require_ending(file, "a category", "csv", "json")
    return known_positions(d, file, label_array(read_json(file.path, d.files.read(file.path)), file.path))


def build_categories(d: Declared, x: ast.Categories) -> Family:
    name = x.name.text
    if not isinstance(x.body, ast.File):
        parts: list[tuple[str, Ints]] = []
        seen: dict[str, ast.Name] = {}
        good = True
        for member in x.body:
            if member.name.text in seen:
                first = Related(seen[member.name.text].span, LISTED_FIRST)
                message = f"category {member.name.text!r} is listed twice"
                d.error("E205", member.name.span, message, "list it once", related=[first])
                good = False
            seen.setdefault(member.name.text, member.name)
            try:
                parts.append((member.name.text, positions(d, member.items)))
            except DeclarationFailed:
                good = False
        if not good:
            raise DeclarationFailed
    else:
        parts = _categories_from(d, x.body)
    if not parts:
        d.error("E222", x.span, f"the family {name!r} has no category", "give it at least one")
        raise DeclarationFailed
    return Family.of(name, parts, d.K)


def _categories_from(d: Declared, file: ast.File) -> list[tuple[str, Ints]]:
    if ending(file) == "csv":
        table, rows = rows_of(d, file)
        at = column(file, table)
        found: dict[str, list[int]] = {}
        for y, row in enumerate(rows):
            if table.rows[row][at]:
                found.setdefault(table.rows[row][at], []).append(y)
        return [(name, np.array(members, dtype=np.int64)) for name, members in found.items()]
    require_ending(file, "categories", "csv", "json")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict):
        raise FileFault("E303", f"{file.path} is not an object", 'write {"category": ["label", ...], ...}')
    parts = []
    for name, members in value.items():
        inside = known_positions(d, file, label_array(members, f"{file.path}: {name!r}"))
        if not len(inside):
            raise FileFault("E222", f"{file.path}: category {name!r} has no member", "list at least one label")
        parts.append((name, inside))
    return parts
