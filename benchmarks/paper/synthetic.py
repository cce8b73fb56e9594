"""Classifiers of a given accuracy whose confusions follow a tree.

The mean of a class is a Gaussian walk down the tree, m_k = sum of g(node) over its path, so that classes of one branch
are near each other. An instance is x = m_y + sigma * noise, and the logits are those of Bayes' rule,
z_k = (m_k . x - |m_k|^2 / 2) / sigma^2 + log weight_k. sigma is found by bisection, so that the accuracy is met on the
very rows drawn; softmax(z / T) with T below 1 is overconfident, as trained networks are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from taxonomies import Taxonomy

Floats = NDArray[np.float64]

DIMENSIONS = 32
STEPS = 40  # of the bisection: sigma to within 1e-9 of its range


@dataclass(frozen=True, eq=False)
class Drawn:
    """Instances x (n, d), their labels, and the classifier's probabilities (n, K)."""

    x: Floats
    y: NDArray[np.int64]
    probs: NDArray[np.float32]


def draw(tree: Taxonomy, n: int, accuracy: float, temperature: float, rng: np.random.Generator) -> Drawn:
    """n rows of a classifier with this accuracy, as near as n rows allow."""
    prior = tree.weights / tree.weights.sum()
    means = class_means(tree, rng)
    y = rng.choice(tree.K, size=n, p=prior)
    noise = rng.normal(size=(n, DIMENSIONS))

    def logits(sigma: float) -> tuple[Floats, Floats]:
        x = means[y] + sigma * noise
        return x, (x @ means.T - (means**2).sum(axis=1) / 2) / sigma**2 + np.log(prior)

    low, high = 1e-3, 1e3
    for _ in range(STEPS):
        middle = float(np.sqrt(low * high))
        right = float((logits(middle)[1].argmax(axis=1) == y).mean())
        low, high = (middle, high) if right > accuracy else (low, middle)
    x, z = logits(low)
    z /= temperature
    weights = np.exp(z - z.max(axis=1, keepdims=True))
    return Drawn(x, y, (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32))


def class_means(tree: Taxonomy, rng: np.random.Generator) -> Floats:
    """One row a label: the sum of a Gaussian step for each node on its path, itself included."""
    steps: dict[tuple[str, ...], Floats] = {}
    means = np.empty((tree.K, DIMENSIONS))
    for y, (label, path) in enumerate(zip(tree.labels, tree.paths, strict=True)):
        nodes = [path[: d + 1] for d in range(len(path))]
        for node in (*nodes, (*path, label)):
            if node not in steps:
                steps[node] = rng.normal(size=DIMENSIONS)
        means[y] = sum((steps[node] for node in nodes), steps[*path, label])
    return means
