"""`distance`: a matrix from a file, between labels or between the categories of a family, or a hierarchy's paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.families import family_of
from udcp_dsl.compile.declare.matching import ending, label_array, listed, require_all_keys, require_ending
from udcp_dsl.compile.sources import FileFault, finite, read_json, read_npy
from udcp_dsl.expression.domain import CategoryMetric, DenseMetric, Floats, Hierarchy, Metric, TreeMetric
from udcp_dsl.language import ast


def build_distance(d: Declared, x: ast.Distance) -> Metric:
    if isinstance(x.body, ast.Path):
        return _path(d, x.name.text, x.body)
    if x.of is None:
        return DenseMetric(x.name.text, _checked(x.body.path, d.labels, _matrix(d, x.body, d.labels, "label")))
    family = family_of(d, x.of)
    if family is None:
        raise DeclarationFailed
    several = [name for name, many in Counter(family.names).items() if many > 1]
    if several and ending(x.body) != "npy":
        way_out = "rename one of them, or give the distances in order, as .npy"
        raise FileFault("E215", f"{several[0]!r} names several categories of {family.name!r}", way_out)
    matrix = _matrix(d, x.body, family.names, "category")
    return CategoryMetric(x.name.text, family, _checked(x.body.path, family.names, matrix))


def _path(d: Declared, name: str, path: ast.Path) -> TreeMetric:
    hierarchy = d.things.get(path.hierarchy.text)
    if not isinstance(hierarchy, Hierarchy):
        if path.hierarchy.text not in d.broken:
            known = [name for name, thing in d.things.items() if isinstance(thing, Hierarchy)]
            suggestion = d.suggest_name(path.hierarchy.text, known)
            d.error(
                "E211", path.hierarchy.span, f"there is no hierarchy {path.hierarchy.text!r}",
                suggestion.help or "declare one with `hierarchy`", fixes=suggestion.fixes(path.hierarchy.span),
            )  # fmt: skip
        raise DeclarationFailed
    edge = 1.0 if path.edge is None else path.edge.value
    if path.edge is not None and edge <= 0:
        d.error("E244", path.edge.span, f"the length of an edge is {edge:g}", "make it positive")
        raise DeclarationFailed
    return TreeMetric(name, hierarchy, edge)


def _checked(path: str, names: Sequence[str], matrix: Floats) -> Floats:
    """Check that a matrix is a distance; if rounding makes it asymmetric, take the larger entries."""
    if (matrix < 0).any():
        a, b = (int(i) for i in np.argwhere(matrix < 0)[0])
        raise FileFault("E242", f"{path}: the distance of {names[a]} and {names[b]} is negative: {matrix[a, b]:g}",
                        "make it 0 or more")  # fmt: skip
    if np.diag(matrix).any():
        a = int(np.flatnonzero(np.diag(matrix))[0])
        raise FileFault("E243", f"{path}: the distance of {names[a]} to itself is {matrix[a, a]:g}, not 0",
                        "put 0 on the diagonal")  # fmt: skip
    skew = np.abs(matrix - matrix.T) > 1e-9 * np.maximum(1.0, np.abs(matrix))
    if skew.any():
        a, b = (int(i) for i in np.argwhere(skew)[0])
        raise FileFault(
            "E241",
            f"{path} is not symmetric: {names[a]} to {names[b]} is {matrix[a, b]:g}, "
            f"{names[b]} to {names[a]} is {matrix[b, a]:g}",
            "a distance is the same in both directions: make the two equal",
        )  # fmt: skip
    return np.maximum(matrix, matrix.T)


def _matrix(d: Declared, file: ast.File, keys: Sequence[str], what: str) -> Floats:
    """A matrix with a row and a column for each key, in their order."""
    kind, each = ending(file), f"give one row and one column per {what}"
    if kind == "npy":
        array = read_npy(file.path, d.files.read(file.path))
        if array.shape != (len(keys), len(keys)):
            shape = (len(keys), len(keys))
            raise FileFault("E240", f"{file.path} has shape {array.shape}, not {shape}", each)
        return array
    if kind == "csv":
        table = d.files.table(file.path)
        rows = table.keyed(None)[1]
        require_all_keys(d, file, rows, keys, what)
        missing = [key for key in keys if key not in table.positions]
        if missing:
            raise FileFault("E240", f"{file.path} has no column for {listed(missing, what)}", each)
        columns = [table.positions[key] for key in keys]
        return np.array([[table.number(rows[key], at) for at in columns] for key in keys])
    require_ending(file, "a distance", "csv", "json", "npy")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict) or set(value) != {"labels", "matrix"}:
        raise FileFault(
            "E303", f"{file.path} is not an object of labels and matrix", 'write {"labels": [...], "matrix": [[...]]}'
        )
    names, rows_given = label_array(value["labels"], f"{file.path}: labels"), value["matrix"]
    require_all_keys(d, file, names, keys, what)
    if (
        not isinstance(rows_given, list)
        or any(not isinstance(row, list) or len(row) != len(names) for row in rows_given)
        or len(rows_given) != len(names)
    ):
        raise FileFault("E240", f"{file.path}: the matrix is not {len(names)} x {len(names)}", each)
    where = {name: i for i, name in enumerate(names)}
    if len(where) < len(names):
        twice = next(name for i, name in enumerate(names) if where[name] != i)
        raise FileFault("E306", f"{file.path}: {what} {twice!r} is listed twice", "list it once")
    order = [where[key] for key in keys]
    return np.array(
        [[finite(rows_given[a][b], f"{file.path}: {names[a]} to {names[b]}") for b in order] for a in order],
        dtype=np.float64,
    )
