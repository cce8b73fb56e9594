"""The paper's three losses on a tree of labels, in the language.

separable: label costs of 1, 2 or 3, drawn for blocks of successive labels; max_distance: the longest path between two
labels, an edge being 1/8; coverage_loss: the categories that a set touches. The last two carry a small weight of the
size, which decides between labels that cost nothing more: tables show the first term alone.
"""

from __future__ import annotations

import json

import numpy as np
from taxonomies import Taxonomy

import udcp_dsl as udcp
from udcp_dsl import Loss

NAMES = ("separable", "max_distance", "coverage_loss")
COSTS = (1, 2, 3)


def paper_losses(tree: Taxonomy, blocks: int, seed: int = 0) -> tuple[Loss, ...]:
    """The losses of `NAMES`, in this order.

    >>> from taxonomies import made
    >>> [loss({"y0", "y3"}) for loss in paper_losses(made(4, (2,)), 2, seed=2)]
    [4.0, 0.502, 2.02]
    """
    text = spec(tree, blocks, seed)
    return tuple(udcp.loads(text, loss=name, name="paper.loss") for name in NAMES)


def spec(tree: Taxonomy, blocks: int, seed: int = 0) -> str:
    """The text of the spec."""
    of_block = np.random.default_rng(seed).choice(COSTS, size=blocks)
    cost = of_block[np.arange(tree.K) * blocks // tree.K].tolist()
    labels = [json.dumps(label, ensure_ascii=False) for label in tree.labels]
    return "\n".join(
        [
            f"labels {{ {', '.join(labels)} }}",
            f"hierarchy tree {_nested(tree.paths, labels)}",
            f"costs cost {{ {', '.join(f'{label}: {c}' for label, c in zip(labels, cost, strict=True))} }}",
            "loss separable = sum(cost)",
            "loss max_distance = 0.125 * diameter(tree) + 0.001 * size",
            f"loss coverage_loss = count(tree.level({tree.level})) + 0.01 * size",
        ]
    )


def _nested(paths: tuple[tuple[str, ...], ...], labels: list[str]) -> str:
    parts: dict[str, list[int]] = {}
    leaves = []
    for i, path in enumerate(paths):
        if path:
            parts.setdefault(path[0], []).append(i)
        else:
            leaves.append(labels[i])
    inner = []
    for name, rows in parts.items():
        below = _nested(tuple(paths[i][1:] for i in rows), [labels[i] for i in rows])
        inner.append(f"{json.dumps(name, ensure_ascii=False)} {below}")
    return f"{{ {', '.join(inner + leaves)} }}"
