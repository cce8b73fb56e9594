"""`hierarchy`: a tree over the labels, in place or from a file."""

from __future__ import annotations

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.labels import LISTED_FIRST, expand, report_unknown
from udcp_dsl.compile.declare.matching import ending, listed, require_all_keys, require_ending, rows_of
from udcp_dsl.compile.sources import FileFault, read_json, shown
from udcp_dsl.diagnostics import Related
from udcp_dsl.expression.domain import Hierarchy
from udcp_dsl.language import ast

_ONE_PLACE = "a label has one place in a tree: remove one"


def build_hierarchy(d: Declared, x: ast.Hierarchy) -> Hierarchy:
    levels: tuple[str, ...] = ()
    if isinstance(x.body, ast.File):
        if ending(x.body) == "csv":
            levels, paths = _paths_from_csv(d, x.body)
            return Hierarchy.build(x.name.text, levels, paths, d.labels)
        require_ending(x.body, "a hierarchy", "csv", "json")
        found = _paths_from_json(x.body, read_json(x.body.path, d.files.read(x.body.path)))
        require_all_keys(d, x.body, found, d.labels, "label")
        paths = [found[label] for label in d.labels]
    else:
        paths = _paths_in_place(d, x)
    return Hierarchy.build(x.name.text, levels, paths, d.labels)


def _paths_in_place(d: Declared, x: ast.Hierarchy) -> list[tuple[str, ...]]:
    """The names above each label, in the order of the labels."""
    assert not isinstance(x.body, ast.File)
    above_label: list[tuple[str, ...] | None] = [None] * d.K  # lists, not dicts: there may be a million labels
    listed_at: list[ast.Item | None] = [None] * d.K
    good = _place(d, x.body, above_label, listed_at)
    missing = [label for label, above in zip(d.labels, above_label, strict=True) if above is None]
    if missing and good:
        message = f"hierarchy {x.name.text!r} does not contain {listed(missing, 'label')}"
        d.error("E230", x.name.span, message, "put every label in it")
        good = False
    if not good:
        raise DeclarationFailed
    return [above for above in above_label if above is not None]


def _place(
    d: Declared,
    body: tuple[ast.Branch | ast.Item, ...],
    above_label: list[tuple[str, ...] | None],
    listed_at: list[ast.Item | None],
) -> bool:
    """Fill in where each label is; False if there are errors, which are reported."""
    unknown: list[tuple[ast.Item, str]] = []
    inner: dict[tuple[str, ...], ast.Name] = {}
    good = True
    stack: list[tuple[ast.Branch | ast.Item, tuple[str, ...]]] = [(part, ()) for part in reversed(body)]
    while stack:
        part, above = stack.pop()
        if isinstance(part, ast.Branch):
            path = (*above, part.name.text)
            if path in inner:
                message, other = f"node {part.name.text!r} appears twice under one parent", inner[path]
                d.error("E231", part.name.span, message, "merge the two", related=[Related(other.span, LISTED_FIRST)])
                good = False
            inner.setdefault(path, part.name)
            stack.extend((child, path) for child in reversed(part.children))
            continue
        for name in expand(part):
            y = d.index.get(name)
            if y is None:
                unknown.append((part, name))
                continue
            first = listed_at[y]
            if first is not None:
                message, way_out = f"label {name!r} appears twice in the hierarchy", _ONE_PLACE
                d.error("E231", part.span, message, way_out, related=[Related(first.span, LISTED_FIRST)])
                good = False
            above_label[y], listed_at[y] = above, first or part
    report_unknown(d, unknown, d.labels, filter(None, listed_at), "label")
    return good and not unknown


def _paths_from_csv(d: Declared, file: ast.File) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    if not file.levels:
        raise FileFault("E309", "a hierarchy from CSV needs its levels", "add `levels COARSE, FINE`, names of columns")
    table, rows = rows_of(d, file)
    columns = [table.position(level.text) for level in file.levels]
    if len(set(columns)) < len(columns):
        raise FileFault("E306", "a level is named twice", "name each column once, coarse to fine")
    paths = []
    for row in rows:
        cells = [table.rows[row][at] for at in columns]
        while cells and not cells[-1]:
            cells.pop()
        if not all(cells):
            gap = table.header[columns[cells.index("")]]
            raise FileFault(
                "E303", f"{table.path}:{table.lines[row]}: column {gap!r} is empty, but a finer level is not",
                "fill it in; only the finest levels of a label may be empty",
            )  # fmt: skip
        paths.append(tuple(cells))
    return tuple(level.text for level in file.levels), paths


def _paths_from_json(file: ast.File, value: object) -> dict[str, tuple[str, ...]]:
    """Nested objects with arrays at the leaves; an array may hold objects too, for labels beside inner nodes."""
    found: dict[str, tuple[str, ...]] = {}
    stack: list[tuple[object, tuple[str, ...]]] = [(value, ())]
    while stack:
        part, above = stack.pop()
        if isinstance(part, dict) and part:
            stack.extend((inner, (*above, name)) for name, inner in reversed(part.items()))
        elif isinstance(part, list) and part:
            stack.extend((inner, above) for inner in reversed(part))
        elif isinstance(part, str) or (isinstance(part, int) and not isinstance(part, bool)):
            if str(part) in found:
                raise FileFault("E231", f"{file.path}: label {str(part)!r} appears twice in the hierarchy", _ONE_PLACE)
            found[str(part)] = above
        else:
            where = " > ".join(above) or "the top"
            raise FileFault("E303", f"{file.path}: at {where}: {shown(part)} is not a node or a label",
                            'write {"node": {"node": ["label", ...]}}')  # fmt: skip
    return found
