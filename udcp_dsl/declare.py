"""Declarations to data: every name of a spec becomes arrays over the labels, or a diagnostic.

Faults are collected, not raised, so that one run reports them all; what could not be built is left out, and uses of it
are silent (`broken` knows their names).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from udcp_dsl import ast
from udcp_dsl.diagnostics import Diagnostic, Span, did_you_mean
from udcp_dsl.domain import Actions, Category, Costs, DenseMetric, Family, Floats, Hierarchy, Ints, Metric, TreeMetric
from udcp_dsl.sources import FileFault, Files, Table, finite, read_json, read_npy, shown

MOST_LABELS = 1_000_000

Thing = Category | Family | Costs | Metric | Hierarchy | Actions | float
T = TypeVar("T")


@dataclass
class Declared:
    """What the declarations of a spec came to."""

    files: Files
    labels: tuple[str, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    label_column: str | None = None
    things: dict[str, Thing] = field(default_factory=dict)
    definitions: dict[str, ast.Let | ast.LossDecl] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def K(self) -> int:
        return len(self.labels)

    def error(self, code: str, span: Span, message: str, help: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, span, message, help))

    def warn(self, code: str, span: Span, message: str, help: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, span, message, help, "warning"))


class Fault(Exception):
    """A fault of one declaration, already reported: the declaration is given up, the others go on."""


def declare(spec: ast.Spec, files: Files, labels: Sequence[str] | None, params: Mapping[str, float]) -> Declared:
    """Build everything that the spec declares; see `Declared.diagnostics` for what is wrong with it."""
    d = Declared(files)
    named = _names(d, spec)
    _labels(d, spec, labels)
    order: tuple[type, ...] = (
        ast.Param,
        ast.Hierarchy,
        ast.Category,
        ast.Categories,
        ast.Costs,
        ast.Distance,
        ast.Actions,
    )
    for kind in order:
        for declaration in named:
            if not isinstance(declaration, kind) or isinstance(declaration, ast.Let | ast.LossDecl):
                continue
            name = declaration.name.text
            if not d.labels and kind is not ast.Param:
                d.broken.add(name)
                continue
            try:
                d.things[name] = _build(d, declaration, params)
            except Fault:
                d.broken.add(name)
            except FileFault as fault:
                body = declaration.body if not isinstance(declaration, ast.Param) else declaration
                d.error(fault.code, getattr(body, "span", declaration.span), fault.message, fault.help)
                d.broken.add(name)
    return d


Named = (
    ast.Hierarchy
    | ast.Costs
    | ast.Distance
    | ast.Category
    | ast.Categories
    | ast.Actions
    | ast.Param
    | ast.Let
    | ast.LossDecl
)


def _names(d: Declared, spec: ast.Spec) -> list[Named]:
    """The declarations that have names, the first of each; names declared twice are faults."""
    first: dict[str, Named] = {}
    for declaration in spec.declarations:
        if isinstance(declaration, ast.Labels):
            continue
        name = declaration.name
        if name.text in first:
            line = first[name.text].name.span.source.position(first[name.text].name.span.start)[0]
            d.error(
                "E201",
                name.span,
                f"{name.text!r} is declared twice",
                f"it is declared on line {line} already; rename one",
            )
            continue
        first[name.text] = declaration
        if isinstance(declaration, ast.Let | ast.LossDecl):
            d.definitions[name.text] = declaration
    return list(first.values())


# Labels --------------------------------------------------------------------------------------------------------------


def _labels(d: Declared, spec: ast.Spec, given: Sequence[str] | None) -> None:
    declared = [x for x in spec.declarations if isinstance(x, ast.Labels)]
    for second in declared[1:]:
        d.error("E202", second.span, "labels are declared a second time", "a spec has one list of labels")
    if not declared:
        if given is None:
            d.error(
                "E203", Span(spec.span.source, 0, 0), "the spec declares no labels, and none were given",
                "write `labels { a, b }` or `labels 0..9`, or give labels= to load",
            )  # fmt: skip
        else:
            _take_labels(d, [str(x) for x in given], Span(spec.span.source, 0, 0))
        return
    declaration = declared[0]
    try:
        names = _declared_labels(d, declaration)
    except Fault:
        return
    except FileFault as fault:
        d.error(fault.code, declaration.span, fault.message, fault.help)
        return
    if given is not None and [str(x) for x in given] != names:
        d.error("E204", declaration.span, "the labels given from outside differ from the spec's own",
                "leave them out, or leave out the spec's `labels`")  # fmt: skip
        return
    _take_labels(d, names, declaration.span)


def _declared_labels(d: Declared, declaration: ast.Labels) -> list[str]:
    body = declaration.body
    if isinstance(body, ast.File):
        names = _labels_from(d, body)
    else:
        names = []
        seen: set[str] = set()
        for item in body:
            for name in _expand(d, item):
                if name in seen:
                    d.error("E205", item.span, f"label {name!r} is listed twice", "list it once")
                    raise Fault
                seen.add(name)
                names.append(name)
    if not names:
        d.error("E206", declaration.span, "there are no labels", "list at least one")
        raise Fault
    return names


def _labels_from(d: Declared, file: ast.File) -> list[str]:
    if _ending(file) == "csv":
        table = d.files.table(file.path)
        d.label_column = file.column.text if file.column else table.header[0]
        return list(table.keyed(d.label_column)[1])
    _only(file, "labels", "csv", "json")
    value = read_json(file.path, d.files.read(file.path))
    names = _strings(value, file.path)
    twice = (
        next((n for i, n in enumerate(names) if n in set(names[:i])), None) if len(set(names)) < len(names) else None
    )
    if twice is not None:
        raise FileFault("E306", f"{file.path}: label {twice!r} is listed twice")
    return names


def _take_labels(d: Declared, names: list[str], span: Span) -> None:
    blank = next((i for i, name in enumerate(names) if not name), None)
    if blank is not None:
        d.error("E207", span, f"label number {blank + 1} is empty", "give every label a name")
        return
    d.labels = tuple(names)
    d.index = {name: y for y, name in enumerate(names)}
    if len(d.index) != len(names):
        twice = next(name for y, name in enumerate(names) if d.index[name] != y)
        d.error("E205", span, f"label {twice!r} is listed twice", "list it once")


def _expand(d: Declared, item: ast.Item) -> Iterable[str]:
    """The names that a name or a range stands for."""
    if isinstance(item, ast.Name):
        return (item.text,)
    if item.last < item.first:
        d.error(
            "E208", item.span, f"the range {item.first}..{item.last} runs backwards", f"write {item.last}..{item.first}"
        )
        raise Fault
    if item.last - item.first >= MOST_LABELS:
        d.error("E208", item.span, f"the range holds more than {MOST_LABELS:,} labels", "use fewer labels")
        raise Fault
    return (str(i) for i in range(item.first, item.last + 1))


def positions(d: Declared, items: Sequence[ast.Item]) -> Ints:
    """The positions of listed labels; every unknown or repeated one is reported before giving up."""
    found: dict[int, None] = {}
    good = True
    for item in items:
        for name in _expand(d, item):
            y = d.index.get(name)
            if y is None:
                d.error("E210", item.span, f"unknown label {name!r}", did_you_mean(name, d.labels))
                good = False
                break
            if y in found:
                d.error("E205", item.span, f"label {name!r} is listed twice", "list it once")
                good = False
                break
            found[y] = None
    if not good:
        raise Fault
    return np.array(sorted(found), dtype=np.int64)


# The other declarations ----------------------------------------------------------------------------------------------


def _build(d: Declared, x: Named, params: Mapping[str, float]) -> Thing:
    match x:
        case ast.Param():
            return _param(d, x, params)
        case ast.Hierarchy():
            return _hierarchy(d, x)
        case ast.Category():
            return _category(d, x)
        case ast.Categories():
            return _categories(d, x)
        case ast.Costs():
            return _costs(d, x)
        case ast.Distance():
            return _distance(d, x)
        case ast.Actions():
            return _actions(d, x)
        case _:
            raise AssertionError(x)


def _param(d: Declared, x: ast.Param, params: Mapping[str, float]) -> float:
    name, written = x.name.text, x.value.value
    value = params.get(name, written)
    low = -math.inf if x.low is None else x.low.value
    high = math.inf if x.high is None else x.high.value
    if x.low is not None and x.high is not None and low > high:
        d.error(
            "E251", x.low.span.to(x.high.span), f"the range [{low:g}, {high:g}] is empty", "write the smaller end first"
        )
        raise Fault
    for number, span in ((written, x.value.span), (value, x.name.span)):
        if not low <= number <= high:
            d.error("E250", span, f"parameter {name} = {number:g} is outside [{low:g}, {high:g}]",
                    "choose a value in the range, or widen it")  # fmt: skip
            raise Fault
    return float(value)


def _category(d: Declared, x: ast.Category) -> Category:
    if isinstance(x.body, ast.File):
        members = _category_from(d, x.body)
    else:
        members = positions(d, x.body)
    if not len(members):
        d.error("E222", x.span, f"category {x.name.text!r} has no member", "list at least one label")
        raise Fault
    return Category(x.name.text, members, d.K)


def _category_from(d: Declared, file: ast.File) -> Ints:
    if _ending(file) == "csv":
        table, rows = _rows(d, file)
        at = table.position(_column(file))
        for row in rows:
            if table.rows[row][at] not in ("0", "1"):
                raise FileFault(
                    "E305", f"{table.path}:{table.lines[row]}: column {table.header[at]!r}: {table.rows[row][at]!r} is not 0 or 1",
                    "a category's column says 1 for its members and 0 for the others",
                )  # fmt: skip
        return np.array([y for y, row in enumerate(rows) if table.rows[row][at] == "1"], dtype=np.int64)
    _only(file, "a category", "csv", "json")
    return _known(d, file, _strings(read_json(file.path, d.files.read(file.path)), file.path))


def _categories(d: Declared, x: ast.Categories) -> Family:
    name = x.name.text
    if not isinstance(x.body, ast.File):
        parts: list[tuple[str, Ints]] = []
        seen: set[str] = set()
        good = True
        for member in x.body:
            if member.name.text in seen:
                d.error("E205", member.name.span, f"category {member.name.text!r} is listed twice", "list it once")
                good = False
            seen.add(member.name.text)
            try:
                inside = positions(d, member.items)
            except Fault:
                good = False
                continue
            if not len(inside):
                d.error("E222", member.span, f"category {member.name.text!r} has no member", "list at least one label")
                good = False
            parts.append((member.name.text, inside))
        if not good:
            raise Fault
    else:
        parts = _categories_from(d, x.body)
    if not parts:
        d.error("E222", x.span, f"the family {name!r} has no category", "give it at least one")
        raise Fault
    return Family.of(name, parts, d.K)


def _categories_from(d: Declared, file: ast.File) -> list[tuple[str, Ints]]:
    if _ending(file) == "csv":
        table, rows = _rows(d, file)
        at = table.position(_column(file))
        found: dict[str, list[int]] = {}
        for y, row in enumerate(rows):
            if table.rows[row][at]:
                found.setdefault(table.rows[row][at], []).append(y)
        return [(name, np.array(members, dtype=np.int64)) for name, members in found.items()]
    _only(file, "categories", "csv", "json")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict):
        raise FileFault("E303", f"{file.path} is not an object", 'write {"category": ["label", ...], ...}')
    parts = []
    for name, members in value.items():
        inside = _known(d, file, _strings(members, f"{file.path}: {name!r}"))
        if not len(inside):
            raise FileFault("E222", f"{file.path}: category {name!r} has no member", "list at least one label")
        parts.append((name, inside))
    return parts


def _costs(d: Declared, x: ast.Costs) -> Costs:
    family = None
    keys: Sequence[str] = d.labels
    if x.of is not None:
        found = family_of(d, x.of)
        if found is None:
            raise Fault
        family, keys = found, found.names
    what = "label" if family is None else "category"
    if isinstance(x.body, ast.File):
        return Costs(x.name.text, _costs_from(d, x.body, keys, what, family is not None), family)
    index = d.index if family is None else {name: i for i, name in enumerate(keys)}
    values = np.full(len(keys), np.nan if x.default is None else x.default.value)
    given = np.zeros(len(keys), dtype=bool)
    good = True
    for entry in x.body:
        for key in _expand(d, entry.key):
            i = index.get(key)
            if i is None:
                d.error("E210", entry.key.span, f"unknown {what} {key!r}", did_you_mean(key, keys))
                good = False
                break
            if given[i]:
                d.error("E205", entry.key.span, f"{what} {key!r} has a cost already", "give it one cost")
                good = False
                break
            given[i] = True
            values[i] = entry.value.value
    missing = [keys[i] for i in np.flatnonzero(~given)] if x.default is None else []
    if missing and good:
        d.error("E220", x.name.span, f"no cost for {_listed(missing, what)}", "add them, or `default: 0`")
        good = False
    if not good:
        raise Fault
    return Costs(x.name.text, values, family)


def _costs_from(d: Declared, file: ast.File, keys: Sequence[str], what: str, of_family: bool) -> Floats:
    ending = _ending(file)
    if ending == "csv":
        table, rows = _rows(d, file, None if not of_family else keys, what)
        at = table.position(_column(file))
        return np.array([table.number(row, at) for row in rows])
    if ending == "npy":
        array = read_npy(file.path, d.files.read(file.path))
        if array.shape != (len(keys),):
            raise FileFault(
                "E307", f"{file.path} has shape {array.shape}, not ({len(keys)},)", f"one number a {what}, in order"
            )
        return array
    _only(file, "costs", "csv", "json", "npy")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict):
        raise FileFault("E303", f"{file.path} is not an object", 'write {"name": 1.5, ...}')
    _complete(d, file, value, keys, what)
    return np.array([finite(value[key], f"{file.path}: {key!r}") for key in keys])


def _distance(d: Declared, x: ast.Distance) -> Metric:
    if isinstance(x.body, ast.Path):
        hierarchy = d.things.get(x.body.hierarchy.text)
        if not isinstance(hierarchy, Hierarchy):
            if x.body.hierarchy.text not in d.broken:
                known = [name for name, thing in d.things.items() if isinstance(thing, Hierarchy)]
                d.error("E211", x.body.hierarchy.span, f"there is no hierarchy {x.body.hierarchy.text!r}",
                        did_you_mean(x.body.hierarchy.text, known) or "declare one with `hierarchy`")  # fmt: skip
            raise Fault
        edge = 1.0 if x.body.edge is None else x.body.edge.value
        if x.body.edge is not None and edge <= 0:
            d.error("E244", x.body.edge.span, f"an edge is {edge:g} long", "give it a positive length")
            raise Fault
        return TreeMetric(x.name.text, hierarchy, edge)
    matrix, names = _matrix(d, x.body), d.labels
    path = x.body.path
    if (matrix < 0).any():
        a, b = (int(i) for i in np.argwhere(matrix < 0)[0])
        raise FileFault(
            "E242", f"{path}: the distance of {names[a]} and {names[b]} is {matrix[a, b]:g}, which is negative"
        )
    if np.diag(matrix).any():
        a = int(np.flatnonzero(np.diag(matrix))[0])
        raise FileFault("E243", f"{path}: the distance of {names[a]} to itself is {matrix[a, a]:g}, not 0")
    skew = np.abs(matrix - matrix.T) > 1e-9 * np.maximum(1.0, np.abs(matrix))
    if skew.any():
        a, b = (int(i) for i in np.argwhere(skew)[0])
        raise FileFault(
            "E241", f"{path} is not symmetric: from {names[a]} to {names[b]} {matrix[a, b]:g}, back {matrix[b, a]:g}",
            "a distance is the same both ways",
        )  # fmt: skip
    return DenseMetric(x.name.text, np.maximum(matrix, matrix.T))


def _matrix(d: Declared, file: ast.File) -> Floats:
    """A K x K matrix in label order."""
    ending = _ending(file)
    if ending == "npy":
        array = read_npy(file.path, d.files.read(file.path))
        if array.shape != (d.K, d.K):
            raise FileFault(
                "E240", f"{file.path} has shape {array.shape}, not ({d.K}, {d.K})", "one row and one column a label"
            )
        return array
    if ending == "csv":
        table, rows = _rows(d, file)
        missing = [label for label in d.labels if label not in table.positions]
        if missing:
            raise FileFault(
                "E240", f"{file.path} has no column for {_listed(missing, 'label')}", "one row and one column a label"
            )
        columns = [table.positions[label] for label in d.labels]
        return np.array([[table.number(row, at) for at in columns] for row in rows])
    _only(file, "a distance", "csv", "json", "npy")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict) or set(value) != {"labels", "matrix"}:
        raise FileFault(
            "E303", f"{file.path} is not an object of labels and matrix", 'write {"labels": [...], "matrix": [[...]]}'
        )
    names, listed = _strings(value["labels"], f"{file.path}: labels"), value["matrix"]
    _complete(d, file, names, d.labels, "label")
    if (
        not isinstance(listed, list)
        or any(not isinstance(row, list) or len(row) != len(names) for row in listed)
        or len(listed) != len(names)
    ):
        raise FileFault(
            "E240", f"{file.path}: the matrix is not {len(names)} x {len(names)}", "one row and one column a label"
        )
    where = {name: i for i, name in enumerate(names)}
    order = [where[label] for label in d.labels]
    return np.array(
        [[finite(listed[a][b], f"{file.path}: {names[a]} to {names[b]}") for b in order] for a in order],
        dtype=np.float64,
    )


def _actions(d: Declared, x: ast.Actions) -> Actions:
    file = x.body
    if _ending(file) == "csv":
        table, rows = _rows(d, file)
        key = table.keyed(_key(d, file, table))[0]
        columns = [i for i in range(len(table.header)) if i != key]
        actions = tuple(table.header[i] for i in columns)
        values = [[table.number(row, i) for i in columns] for row in rows]
    else:
        _only(file, "actions", "csv", "json")
        value = read_json(file.path, d.files.read(file.path))
        if not isinstance(value, dict) or not all(isinstance(row, dict) for row in value.values()):
            raise FileFault(
                "E303", f"{file.path} is not an object of objects", 'write {"label": {"action": 1.5, ...}, ...}'
            )
        _complete(d, file, value, d.labels, "label")
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


def _hierarchy(d: Declared, x: ast.Hierarchy) -> Hierarchy:
    levels: tuple[str, ...] = ()
    if isinstance(x.body, ast.File):
        if _ending(x.body) == "csv":
            levels, paths = _paths_from_csv(d, x.body)
            return Hierarchy.build(x.name.text, levels, paths, d.labels)
        _only(x.body, "a hierarchy", "csv", "json")
        found = _paths_from_json(x.body, read_json(x.body.path, d.files.read(x.body.path)))
        _complete(d, x.body, [name for name, _ in found], d.labels, "label")
    else:
        found = _paths_in_place(d, x)
    above = dict(found)
    missing = [label for label in d.labels if label not in above]
    if missing:
        d.error(
            "E230",
            x.name.span,
            f"hierarchy {x.name.text!r} misses {_listed(missing, 'label')}",
            "put every label in it",
        )
        raise Fault
    return Hierarchy.build(x.name.text, levels, [above[label] for label in d.labels], d.labels)


def _paths_in_place(d: Declared, x: ast.Hierarchy) -> list[tuple[str, tuple[str, ...]]]:
    assert not isinstance(x.body, ast.File)
    found: dict[str, tuple[str, ...]] = {}
    inner: set[tuple[str, ...]] = set()
    good = True
    stack: list[tuple[ast.Branch | ast.Item, tuple[str, ...]]] = [(part, ()) for part in reversed(x.body)]
    while stack:
        part, above = stack.pop()
        if isinstance(part, ast.Branch):
            path = (*above, part.name.text)
            if path in inner:
                d.error(
                    "E231", part.name.span, f"node {part.name.text!r} stands twice under one parent", "merge the two"
                )
                good = False
            elif not part.children:
                d.error(
                    "E222", part.span, f"node {part.name.text!r} has no label below it", "give it one, or leave it out"
                )
                good = False
            inner.add(path)
            stack.extend((child, path) for child in reversed(part.children))
            continue
        for name in _expand(d, part):
            if name not in d.index:
                d.error("E210", part.span, f"unknown label {name!r}", did_you_mean(name, d.labels))
                good = False
            elif name in found:
                d.error(
                    "E231",
                    part.span,
                    f"label {name!r} stands twice in the hierarchy",
                    "a label has one place in a tree",
                )
                good = False
            found[name] = above
    if not good:
        raise Fault
    return list(found.items())


def _paths_from_csv(d: Declared, file: ast.File) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    if not file.levels:
        raise FileFault("E309", "a hierarchy from CSV needs its levels", "add `levels COARSE, FINE`, names of columns")
    table, rows = _rows(d, file)
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


def _paths_from_json(file: ast.File, value: object) -> list[tuple[str, tuple[str, ...]]]:
    """Nested objects with arrays at the leaves; an array may hold objects too, for labels beside inner nodes."""
    found: dict[str, tuple[str, ...]] = {}
    stack: list[tuple[object, tuple[str, ...]]] = [(value, ())]
    while stack:
        part, above = stack.pop()
        if isinstance(part, dict) and part:
            stack.extend((inner, (*above, name)) for name, inner in reversed(part.items()))
        elif isinstance(part, list) and part:
            stack.extend((inner, above) for inner in reversed(part))
        elif isinstance(part, str):
            if part in found:
                raise FileFault(
                    "E231",
                    f"{file.path}: label {part!r} stands twice in the hierarchy",
                    "a label has one place in a tree",
                )
            found[part] = above
        else:
            where = " > ".join(above) or "the top"
            raise FileFault("E303", f"{file.path}: at {where}: {shown(part)} is not a node or a label",
                            'write {"node": {"node": ["label", ...]}}')  # fmt: skip
    return list(found.items())


# What several declarations need --------------------------------------------------------------------------------------


def family_of(d: Declared, ref: ast.Ref) -> Family | None:
    """The family that a reference names: F, h.level or h.level(d); None, with a diagnostic, if there is none."""
    thing = d.things.get(ref.head.text)
    if ref.head.text in d.broken:
        return None
    if isinstance(thing, Family) and not ref.parts:
        return thing
    if isinstance(thing, Hierarchy) and len(ref.parts) == 1:
        part = ref.parts[0]
        depth = level_of(d, thing, part)
        return None if depth is None else thing.level(depth)
    if isinstance(thing, Hierarchy) and not ref.parts:
        d.error("E406", ref.span, f"{ref.head.text!r} is a hierarchy; a family is one of its levels",
                f"write {_level_example(thing)}")  # fmt: skip
        return None
    known = [name for name, t in d.things.items() if isinstance(t, Family | Hierarchy)]
    if thing is None and ref.head.text not in d.definitions:
        d.error("E211", ref.head.span, f"there is no family {ref.head.text!r}", did_you_mean(ref.head.text, known))
    else:
        d.error(
            "E406",
            ref.span,
            f"{ref.span.text!r} is not a family",
            "a family is declared by `categories`, or is h.level",
        )
    return None


def _level_example(h: Hierarchy) -> str:
    return f"{h.name}.{h.levels[0]}" if h.levels else f"{h.name}.level(1)"


def level_of(d: Declared, h: Hierarchy, part: ast.Name | ast.Indexed) -> int | None:
    """The depth of a level named after the dot."""
    if isinstance(part, ast.Indexed) and part.kind == "level":
        depth = int(part.argument.text) if part.argument.text.isdecimal() else -1
        if 0 <= depth <= h.height:
            return depth
        d.error(
            "E213",
            part.span,
            f"{h.name!r} has no level {part.argument.text}",
            f"levels run from 0 (the root) to {h.height}",
        )
        return None
    if isinstance(part, ast.Name) and part.text in h.levels:
        return h.levels.index(part.text) + 1
    text = part.text if isinstance(part, ast.Name) else part.span.text
    help = (
        did_you_mean(text, h.levels)
        if h.levels
        else "its levels have no names: write level(1), the root being level(0)"
    )
    d.error("E213", part.span, f"{h.name!r} has no level {text!r}", help)
    return None


def _rows(
    d: Declared, file: ast.File, keys: Sequence[str] | None = None, what: str = "label"
) -> tuple[Table, list[int]]:
    """The table, and the row of each key (of each label, if none are given)."""
    table = d.files.table(file.path)
    by = _key(d, file, table) if keys is None or file.by is not None else None
    rows = table.keyed(by)[1]
    wanted = d.labels if keys is None else keys
    _complete(d, file, rows, wanted, what)
    return table, [rows[key] for key in wanted]


def _key(d: Declared, file: ast.File, table: Table) -> str | None:
    """The column whose cells are labels: `by`, else the one that `labels` named, else the first."""
    if file.by is not None:
        return file.by.text
    return d.label_column if d.label_column in table.positions else None


def _complete(d: Declared, file: ast.File, found: Iterable[str], wanted: Sequence[str], what: str) -> None:
    """Every wanted key must be there; others are only worth a warning."""
    there = set(found)
    missing = [key for key in wanted if key not in there]
    if missing:
        raise FileFault("E308", f"{file.path} has no entry for {_listed(missing, what)}",
                        f"add {'it' if len(missing) == 1 else 'them'}; rows are matched by `by COLUMN`, "
                        "else by the column of the labels, else by the first")  # fmt: skip
    extra = there.difference(wanted)
    if extra:
        d.warn(
            "W501",
            file.span,
            f"{file.path} has entries for {_listed(sorted(extra), what)}, which the spec does not know",
        )


def _known(d: Declared, file: ast.File, names: Sequence[str]) -> Ints:
    for i, name in enumerate(names):
        if name not in d.index:
            raise FileFault("E210", f"{file.path}: unknown label {name!r}", did_you_mean(name, d.labels))
        if name in names[:i]:
            raise FileFault("E205", f"{file.path}: label {name!r} is listed twice", "list it once")
    return np.array(sorted(d.index[name] for name in names), dtype=np.int64)


def _strings(value: object, where: str) -> list[str]:
    """An array of labels: strings, or whole numbers that stand for themselves."""
    if not isinstance(value, list):
        raise FileFault("E303", f"{where} is not an array", 'write ["label", ...]')
    for item in value:
        if not isinstance(item, str) and (isinstance(item, bool) or not isinstance(item, int)):
            raise FileFault("E303", f"{where}: {shown(item)} is not a label", "labels are strings or whole numbers")
    return [str(item) for item in value]


def _ending(file: ast.File) -> str:
    return file.path.rpartition(".")[2].lower()


def _only(file: ast.File, what: str, *endings: str) -> None:
    if _ending(file) not in endings:
        listed = ", ".join(f".{e}" for e in endings)
        raise FileFault("E307", f"{what} cannot be read from {file.path!r}", f"known endings: {listed}")


def _column(file: ast.File) -> str:
    if file.column is None:
        raise FileFault("E309", f"which column of {file.path}?", "add `column NAME`")
    return file.column.text


def _listed(names: Sequence[str], what: str) -> str:
    many = len(names)
    shown_names = ", ".join(repr(n) for n in names[:3])
    if many == 1:
        return f"{what} {shown_names}"
    plural = "categories" if what == "category" else f"{what}s"
    return f"{many} {plural}: {shown_names}" + (", ..." if many > 3 else "")


def visible(d: Declared, kinds: Callable[[Thing], bool]) -> list[str]:
    """The names of declared things of a kind, for `did you mean`."""
    return [name for name, thing in d.things.items() if kinds(thing)]
