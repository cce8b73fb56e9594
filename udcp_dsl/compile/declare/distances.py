"""`distance`: a matrix from a file, or the path lengths of a hierarchy."""

from __future__ import annotations

import numpy as np

from udcp_dsl.compile.declare.declared import Declared, Fault
from udcp_dsl.compile.declare.matching import complete, ending, label_array, listed, only
from udcp_dsl.compile.sources import FileFault, finite, read_json, read_npy
from udcp_dsl.expression.domain import DenseMetric, Floats, Hierarchy, Metric, TreeMetric
from udcp_dsl.language import ast


def build_distance(d: Declared, x: ast.Distance) -> Metric:
    if isinstance(x.body, ast.Path):
        hierarchy = d.things.get(x.body.hierarchy.text)
        if not isinstance(hierarchy, Hierarchy):
            if x.body.hierarchy.text not in d.broken:
                known = [name for name, thing in d.things.items() if isinstance(thing, Hierarchy)]
                d.error("E211", x.body.hierarchy.span, f"there is no hierarchy {x.body.hierarchy.text!r}",
                        d.meant(x.body.hierarchy.text, known) or "declare one with `hierarchy`")  # fmt: skip
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
            "E241", f"{path} is not symmetric: from {names[a]} to {names[b]} {matrix[a, b]:g}, back {matrix[b, a]:g}",
            "a distance is the same both ways: make the two equal",
        )  # fmt: skip
    return DenseMetric(x.name.text, np.maximum(matrix, matrix.T))


def _matrix(d: Declared, file: ast.File) -> Floats:
    """A K x K matrix in label order."""
    kind = ending(file)
    if kind == "npy":
        array = read_npy(file.path, d.files.read(file.path))
        if array.shape != (d.K, d.K):
            raise FileFault(
                "E240", f"{file.path} has shape {array.shape}, not ({d.K}, {d.K})", "one row and one column a label"
            )
        return array
    if kind == "csv":
        table = d.files.table(file.path)
        rows = table.keyed(None)[1]
        complete(d, file, rows, d.labels, "label")
        missing = [label for label in d.labels if label not in table.positions]
        if missing:
            raise FileFault(
                "E240", f"{file.path} has no column for {listed(missing, 'label')}", "one row and one column a label"
            )
        columns = [table.positions[label] for label in d.labels]
        return np.array([[table.number(rows[label], at) for at in columns] for label in d.labels])
    only(file, "a distance", "csv", "json", "npy")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict) or set(value) != {"labels", "matrix"}:
        raise FileFault(
            "E303", f"{file.path} is not an object of labels and matrix", 'write {"labels": [...], "matrix": [[...]]}'
        )
    names, rows_given = label_array(value["labels"], f"{file.path}: labels"), value["matrix"]
    complete(d, file, names, d.labels, "label")
    if (
        not isinstance(rows_given, list)
        or any(not isinstance(row, list) or len(row) != len(names) for row in rows_given)
        or len(rows_given) != len(names)
    ):
        raise FileFault(
            "E240", f"{file.path}: the matrix is not {len(names)} x {len(names)}", "one row and one column a label"
        )
    where = {name: i for i, name in enumerate(names)}
    if len(where) < len(names):
        twice = next(name for i, name in enumerate(names) if where[name] != i)
        raise FileFault("E306", f"{file.path}: label {twice!r} is listed twice", "list it once")
    order = [where[label] for label in d.labels]
    return np.array(
        [[finite(rows_given[a][b], f"{file.path}: {names[a]} to {names[b]}") for b in order] for a in order],
        dtype=np.float64,
    )
