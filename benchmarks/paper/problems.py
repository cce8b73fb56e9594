"""The data sets: two real ones that any machine can build, and synthetic ones with the shapes of the paper's five.

| data | labels | rows | accuracy | tree |
|---|---|---|---|---|
| languages | 140 | 30,000 | its own | family > branch > language |
| digits | 10 | 1,497 | its own | strokes > digit |
| cifar100 | 100 | 50,000 | 0.75 | clusters of class means, 3 > 9 > 100, as in the paper |
| inaturalist | 51 | 100,000 | 0.85 | kingdom > phylum > class |
| imagenet | 1,000 | 50,000 | 0.76 | WordNet |
| fitzpatrick | 114 | 12,000 | 0.45 | 3 > 9 > 114 partitions |
| fitzpatrick-clean | 60 | 6,000 | 0.60 | the same, conditions of 100 images and more |

Rows of the last five are twice the calibration sizes of the authors' code; labels and trees are those of the data sets
(iNaturalist's labels are the taxonomic classes, as theirs are). The accuracies, and what counts as clean, are chosen
here. A part of the rows is enough: 6,000, of ImageNet 3,000.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import synthetic
import taxonomies
from numpy.typing import NDArray
from taxonomies import Taxonomy

from udcp_dsl import datasets
from udcp_dsl.datasets.kept_rows import digit_losses, language_losses
from udcp_dsl.expression.domain import Hierarchy

SEED = 0
TEMPERATURE = 0.7
CLEAN = 100  # images of a condition
CLUSTERS = (3, 9)  # of the paper's hierarchies for CIFAR-100 and ImageNet


@dataclass(frozen=True, eq=False)
class Problem:
    """Probabilities (n, K), true labels, and the tree of the labels; labels of a block share a cost."""

    name: str
    about: str
    tree: Taxonomy
    probs: NDArray[np.floating[Any]]
    y: NDArray[np.int64]
    blocks: int = 10

    @property
    def accuracy(self) -> float:
        return float((self.probs.argmax(axis=1) == self.y).mean())


@dataclass(frozen=True)
class Shape:
    """A synthetic classifier in the shape of one of the paper's: rows in the original, rows drawn, accuracy."""

    rows: int
    drawn: int
    accuracy: float
    tree: Callable[[Path | None], Taxonomy]
    blocks: int = 10


SHAPES = {
    "cifar100": Shape(50_000, 6000, 0.75, lambda folder: taxonomies.made(100, (20,)), blocks=20),
    "inaturalist": Shape(100_000, 6000, 0.85, taxonomies.inaturalist),
    "imagenet": Shape(50_000, 3000, 0.76, taxonomies.imagenet),
    "fitzpatrick": Shape(12_000, 6000, 0.45, taxonomies.fitzpatrick),
    "fitzpatrick-clean": Shape(6_000, 6000, 0.60, lambda folder: taxonomies.fitzpatrick(folder, CLEAN)),
}

NAMES = ("languages", "digits", *SHAPES)


def problem(name: str, taxonomy_folder: Path | None, *, quick: bool = False) -> Problem:
    """One of `NAMES`; with `quick` few rows, and ten times fewer labels than ImageNet has."""
    if name == "languages":
        data = datasets.languages(rows=6000)
        n = 400 if quick else 6000
        return Problem(name, data.origin, language_tree(), data.probs_normalised[:n], data.y[:n])
    if name == "digits":
        numbers = datasets.digits()
        about = "logistic regression on scikit-learn's digits"
        return Problem(name, about, _tree_of(digit_losses()[0].hierarchies[0], 1), numbers.probs, numbers.y)
    shape = SHAPES[name]
    tree = shape.tree(taxonomy_folder)
    if quick and tree.K > 200:
        tree = Taxonomy(tree.about, tree.labels[::10], tree.paths[::10], tree.level, tree.weights[::10])
    n = 10 * tree.K if quick else shape.drawn  # enough for each label to occur
    drawn = synthetic.draw(tree, n, shape.accuracy, TEMPERATURE, np.random.default_rng(SEED))
    if name == "cifar100":
        tree = clustered(drawn.x, drawn.y, tree.labels)
    about = f"synthetic, {n:,} rows for {shape.rows:,}; {tree.about}"
    return Problem(name, about, tree, drawn.probs, drawn.y, shape.blocks)


def clustered(embeddings: NDArray[Any], y: NDArray[np.int64], labels: tuple[str, ...]) -> Taxonomy:
    """The paper's hierarchy where there is no taxonomy: class means in the network's space, in 3 and in 9 clusters."""
    from udcp_dsl.torch import hierarchy_from_embeddings

    rows = list(csv.DictReader(hierarchy_from_embeddings(embeddings, y, CLUSTERS).splitlines()))
    paths = {int(row["label"]): (row["level_1"], row["level_2"]) for row in rows}
    rare = [label for i, label in enumerate(labels) if i not in paths]
    if rare:
        raise ValueError(f"no row has the label {rare[0]!r}, so that it has no mean to cluster ({len(rare)} such)")
    about = f"clusters of class means, {CLUSTERS[0]} > {CLUSTERS[1]} > {len(labels)}"
    return Taxonomy(about, labels, tuple(paths[i] for i in range(len(labels))), 2, np.ones(len(labels)))


def language_tree() -> Taxonomy:
    """Family > branch > language, as in specs/languages."""
    return _tree_of(language_losses()[1].hierarchies[0], 2)


def _tree_of(tree: Hierarchy, level: int) -> Taxonomy:
    """The tree of a spec that has all its labels at one depth."""
    names = np.array(tree.names, dtype=object)
    about = " > ".join(tree.levels[:level]) or tree.name
    leaves = tuple(names[tree.path[:, level + 1]])
    return Taxonomy(about, leaves, tuple(map(tuple, names[tree.path[:, 1 : level + 1]])), level, np.ones(len(leaves)))
