"""A hierarchy of labels from a network's embeddings: agglomerative clustering of class means, cut at given sizes.

All levels are cuts of one tree of merges, so that they are nested: root > level_1 > level_2 > ... > label.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.files import atomic_write


def hierarchy_from_embeddings(
    embeddings: Any,
    labels: Sequence[object] | npt.NDArray[Any],
    levels: Sequence[int] = (3, 9),
    path: str | os.PathLike[str] | None = None,
    *,
    method: str = "ward",
) -> str:
    """Cluster embeddings into a hierarchy file for a spec.

    A spec reads the file by `labels from "h.csv" column label` and `hierarchy h from "h.csv" levels level_1, level_2`.

    Parameters
    ----------
    embeddings : array or tensor, shape (n, d)
        Embeddings of instances or of classes.
    labels : sequence, shape (n,)
        Label of each row. If each occurs once, the file has them in this order; otherwise they are sorted.
    levels : sequence of int, default (3, 9)
        Number of clusters of each level, coarse to fine.
    path : str or path, optional
        Where to write the file.
    method : str, default "ward"
        A linkage of scipy.cluster.hierarchy.

    Returns
    -------
    str
        The CSV text, with the columns label, level_1, level_2 and so on.

    Examples
    --------
    >>> rows = [[0.0], [0.1], [5.0], [9.0]]
    >>> print(hierarchy_from_embeddings(rows, ["a", "b", "c", "d"], levels=[2, 3]), end="")
    label,level_1,level_2
    a,g1,g1_1
    b,g1,g1_1
    c,g2,g2_1
    d,g2,g2_2
    """
    X = embeddings.detach().cpu().double().numpy() if hasattr(embeddings, "detach") else np.asarray(embeddings, float)
    given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if X.ndim != 2 or len(X) != len(given):
        raise InputError(f"embeddings of shape {X.shape} and {len(given)} labels: expected (n, d) and n")
    if not np.isfinite(X).all():
        raise InputError(f"row {np.argwhere(~np.isfinite(X))[0, 0]}: the embedding is NaN or infinite")
    names = _classes(given)
    index = {name: i for i, name in enumerate(names)}
    if list(levels) != sorted(set(levels)) or not levels or levels[0] < 2 or levels[-1] > len(names):
        raise InputError(
            f"levels are {list(levels)}: give increasing numbers of clusters, from 2 to {len(names)} (the labels)"
        )
    from scipy.cluster.hierarchy import linkage

    members = np.array([index[name] for name in given])
    means = np.zeros((len(names), X.shape[1]))
    np.add.at(means, members, X)
    means /= np.bincount(members)[:, None]
    try:
        merges = linkage(means, method)
    except ValueError as error:
        raise InputError(f"method {method!r}: {error}") from None
    text = _as_csv(names, [_cut(merges[:, :2].astype(int), len(names), count) for count in levels])
    if path is not None:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")
    return text


def _classes(given: list[Any]) -> list[Any]:
    distinct = list(dict.fromkeys(given))
    if len({str(name) for name in distinct}) < len(distinct):
        raise InputError("two labels are written alike, such as 1 and '1': give all as numbers or all as text")
    if len(distinct) == len(given):
        return distinct
    return sorted(distinct, key=str if any(isinstance(name, str) for name in distinct) else None)


def _cut(merges: npt.NDArray[np.int64], leaves: int, clusters: int) -> list[int]:
    """The cluster of each leaf when `clusters` are left. (scipy's own cut_tree miscounts if heights are equal.)"""
    root = list(range(leaves + len(merges)))
    for new, pair in enumerate(merges[: leaves - clusters], leaves):
        for old in pair:
            root[old] = new
    for node in reversed(range(len(root))):  # a node's parent has a higher number
        root[node] = root[root[node]]
    return root[:leaves]


def _as_csv(names: list[Any], cuts: list[list[int]]) -> str:
    """The CSV text. Clusters are named by their path (g1, g1_2, ...), numbered by their first label: valid names."""
    clusters = ["g"] * len(names)
    columns = []
    for level, cut in enumerate(cuts):
        numbers: dict[str, dict[int, int]] = {}  # within each parent, from 1
        for parent, cluster in zip(clusters, cut, strict=True):
            within = numbers.setdefault(parent, {})
            within.setdefault(cluster, len(within) + 1)
        joint = "_" if level else ""
        clusters = [f"{p}{joint}{numbers[p][c]}" for p, c in zip(clusters, cut, strict=True)]
        columns.append(clusters)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["label", *(f"level_{i}" for i in range(1, len(columns) + 1))])
    writer.writerows(zip(names, *columns, strict=True))
    return out.getvalue()
