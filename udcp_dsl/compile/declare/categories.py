"""`category`, `categories` and families of them; `param`; and `actions`, the loss of each action under each truth."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.labels import LISTED_FIRST, positions
from udcp_dsl.compile.declare.matching import (
    column,
    ending,
    key_column,
    known_positions,
    label_array,
    require_all_keys,
    require_ending,
    rows_of,
)
from udcp_dsl.compile.sources import FileFault, finite, read_json
from udcp_dsl.diagnostics import Related
from udcp_dsl.expression.domain import Actions, Category, Family, Ints
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


def build_param(d: Declared, x: ast.Param, params: Mapping[str, float]) -> float:
    name, written = x.name.text, x.value.value
    value = params.get(name, written)
    low = -math.inf if x.low is None else x.low.value
    high = math.inf if x.high is None else x.high.value
    if x.low is not None and x.high is not None and low > high:
        d.error(
            "E251", x.low.span.to(x.high.span), f"the range [{low:g}, {high:g}] is empty", "write the smaller end first"
        )
        raise DeclarationFailed
    for number, span in ((written, x.value.span), (value, x.name.span)):
        if not low <= number <= high:
            message = f"parameter {name} = {number:g} is outside [{low:g}, {high:g}]"
            ends = [] if x.low is None or x.high is None else [Related(x.low.span.to(x.high.span), "its range")]
            d.error("E250", span, message, "choose a value in the range, or widen it", related=ends)
            raise DeclarationFailed
    return float(value)


def build_actions(d: Declared, x: ast.Actions) -> Actions:
    file = x.body
    if ending(file) == "csv":
        table, rows = rows_of(d, file)
        key = table.keyed(key_column(d, file, table))[0]
        columns = [i for i in range(len(table.header)) if i != key]
        actions = tuple(table.header[i] for i in columns)
        values = [[table.number(row, i) for i in columns] for row in rows]
    else:
        require_ending(file, "actions", "csv", "json")
        value = read_json(file.path, d.files.read(file.path))
        if not isinstance(value, dict) or not all(isinstance(row, dict) for row in value.values()):
            raise FileFault(
                "E303", f"{file.path} is not an object of objects", 'write {"label": {"action": 1.5, ...}, ...}'
            )
        require_all_keys(d, file, value, d.labels, "label")
        actions = tuple(value[d.labels[0]])
        for label in d.labels:
            if set(value[label]) != set(actions):
                raise FileFault(
                    "E303",
                    f"{file.path}: {label!r} has other actions than {d.labels[0]!r}",
                    "give each label all actions",
                )
        values = [[finite(value[label][a], f"{file.path}: {label!r}: {a!r}") for a in actions] for label in d.labels]
    if not actions:
        raise FileFault("E303", f"{file.path} has no action", "give at least one column of losses")
    return Actions(x.name.text, actions, np.array(values, dtype=np.float64))
