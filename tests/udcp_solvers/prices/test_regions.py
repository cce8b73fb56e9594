"""The balls of a hierarchy as kernels hold them: which labels they have, and what these weigh."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_solvers.prices.regions import runs_of, tree_of, weights_of


def nested(rng: np.random.Generator, labels: list[int], name: str) -> str:
    """A random tree over the labels, some of them beside inner nodes, some nodes with one child."""
    if len(labels) < 2 or rng.random() < 0.25:
        return ", ".join(map(str, labels))
    cuts = np.sort(rng.choice(len(labels), int(rng.integers(0, 4)))).tolist()
    parts = [part.tolist() for part in np.split(np.array(labels), cuts) if len(part)]
    texts = [f"{name}{i} {{ {nested(rng, part, f'{name}{i}')} }}" for i, part in enumerate(parts)]
    texts = [t if rng.random() < 0.7 else ", ".join(map(str, p)) for t, p in zip(texts, parts, strict=True)]
    return ", ".join(texts)


def test_labels_and_weights_are_those_by_distances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 25))
    loss = udcp.loads(f"labels 0..{K - 1}\nhierarchy h {{ {nested(rng, list(range(K)), 'n')} }}\nloss l = diameter(h)")
    assert loss.form is not None
    ((_, metric),) = loss.form.diameters.values()
    hierarchy = metric.hierarchy
    tree = tree_of(metric)
    inner = np.setdiff1d(np.arange(len(hierarchy.parent)), hierarchy.leaf)[::-1]
    weight = rng.random(K)
    weights = weights_of(tree, weight)
    distance = node_distances(hierarchy.parent)
    runs = np.empty((len(tree.nodes), 2), dtype=np.int64)
    for b, ball in enumerate(tree.balls):
        centre = int(inner[ball.centre])
        ends = [centre, int(hierarchy.parent[centre])] if ball.on_edge else [centre]
        near = distance[ends][:, hierarchy.leaf].min(axis=0) <= ball.radius
        listed = np.zeros(K, dtype=bool)
        for low, high in runs[: runs_of(b, tree, runs)].tolist():
            listed[tree.labels[low:high]] = True
        assert (listed == near).all()
        assert ball.label_count == near.sum()
        assert weights[b] == pytest.approx(weight[near].sum())


def node_distances(parent: np.ndarray) -> np.ndarray:
    """Edges between all nodes, by their paths to the root."""
    above = [[v] for v in range(len(parent))]
    for v in range(1, len(parent)):
        above[v] += above[parent[v]]
    return np.array([[len(set(a) ^ set(b)) for b in above] for a in above])
