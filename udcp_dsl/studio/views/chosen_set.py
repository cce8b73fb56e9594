"""The labels as a tree, and one set of them: its cost term by term, and what each label adds to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.loss import Loss
from udcp_dsl.report.browser import tree_of

_ENTRIES = 40  # costs per row that are shown
_HELD = 1 << 22  # entries of masks in memory at once


def _value(x: RowInput, moved: float | None, of_row: Any) -> Any:
    """An input within its range: as moved, otherwise as in the row, otherwise around the middle of the range."""
    fits = of_row is not None and np.shape(of_row) == np.shape(x.example)
    value = np.clip(of_row if fits else x.example, x.low, x.high)
    if x.entries is not None:
        return value
    return min(max(float(value) if moved is None else moved, x.low), x.high)


def labels_data(loss: Loss) -> dict[str, Any]:
    """The labels, and the nodes above them: [name, parent or -1, labels below]."""
    tree = tree_of(loss)
    return {
        "labels": list(loss.labels),
        "tree": None
        if tree is None
        else {
            "name": tree.name,
            "nodes": [list(node) for node in zip(tree.names, tree.parent, tree.sizes, strict=True)],
            "above": [list(nodes) for nodes in tree.above],
        },
    }


def set_data(
    loss: Loss,
    members: Collection[str],
    moved: Mapping[str, float] | None = None,
    of_row: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The cost of a set.

    `adds` gives, for every label, how much more the set would cost with it; for a member, how much more it costs than
    without it. Members that are not labels (those of another spec) are left out. Inputs of the row are those that were
    moved, otherwise those of the shown row, `of_row`.
    """
    moved, of_row = moved or {}, of_row or {}
    row = {name: _value(x, moved.get(name), of_row.get(name)) for name, x in loss.inputs.items()}
    inputs = [
        {
            "name": name,
            "low": x.low,
            "high": x.high,
            "value": None if x.entries else row[name],
            "row": of_row.get(name),
            "entries": [[entry, float(row[name][i])] for i, entry in enumerate((x.entries or ())[:_ENTRIES])],
        }
        for name, x in loss.inputs.items()
    ]
    loss = loss.at(row) if row else loss
    known = {label: y for y, label in enumerate(loss.labels)}
    inside = sorted(known[label] for label in members if label in known)
    mask = np.zeros(loss.K, dtype=bool)
    mask[inside] = True
    grow = loss.increments(1)
    for y in inside:
        grow.push([y])
    total = float(loss(mask))
    adds = np.asarray(grow.after()[0] - grow.value[0], dtype=np.float64)
    step = max(1, _HELD // loss.K)
    for start in range(0, len(inside), step):
        part = inside[start : start + step]
        without = np.repeat(mask[None, :], len(part), axis=0)
        without[np.arange(len(part)), part] = False
        adds[part] = total - loss.batch(without)
    return {
        "members": inside,
        "inputs": inputs,
        "total": total + 0.0,
        "terms": [[text, cost + 0.0] for text, cost in loss.terms(mask).items()],
        "adds": [float(f"{value:.8g}") + 0.0 for value in adds.tolist()],
    }
