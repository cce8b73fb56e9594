"""Label trees: those of real taxonomies, where their files are at hand, and made ones of the same size elsewhere.

A tree is the inner nodes above each label, root excluded, coarse to fine. The categories that the coverage loss counts
are the nodes at depth `level`; `weights` is how often a label occurs.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udcp_dsl import InputError

# Beside the repository; absent elsewhere, and then the trees are made.
FOLDER = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """Labels, the path above each, the depth of the categories, and how often each label occurs."""

    about: str
    labels: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    level: int
    weights: NDArray[np.float64]

    @property
    def K(self) -> int:
        return len(self.labels)


def made(K: int, branches: Sequence[int] = (3, 3)) -> Taxonomy:
    """K labels under a regular tree, in blocks of successive labels, all equally often.

    >>> made(4, (2,)).paths
    (('n0',), ('n0',), ('n1',), ('n1',))
    """
    counts = np.cumprod(branches)
    paths = [tuple(f"n{y * count // K}" for count in counts.tolist()) for y in range(K)]
    about = f"a made tree, {' > '.join(map(str, counts.tolist()))} > {K}"
    return Taxonomy(about, tuple(f"y{y}" for y in range(K)), tuple(paths), len(branches), np.ones(K))


def fitzpatrick(folder: Path | None, least: int = 0) -> Taxonomy:
    """Skin conditions under three and nine partitions, as often as in Fitzpatrick17k; those with `least` images."""
    file = _file(folder, "fitzpatrick_taxonomy.csv")
    if file is None:
        return made(60 if least else 114)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if int(row["n"]) >= least]
    return Taxonomy(
        "Fitzpatrick17k's partitions" + (f", conditions of at least {least} images" if least else ""),
        tuple(row["label"] for row in rows),
        tuple((row["three_partition_label"], row["nine_partition_label"]) for row in rows),
        2,
        np.array([float(row["n"]) for row in rows]),
    )


def inaturalist(folder: Path | None) -> Taxonomy:
    """The 51 taxonomic classes under kingdoms and phyla, each as often as it has species."""
    file = _file(folder, "inaturalist_hierarchy.json")
    if file is None:
        return made(51, (3, 4))
    species: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    classes = Counter(tuple(one["path"][1:4]) for one in species.values())  # kingdom, phylum, class
    return Taxonomy(
        "iNaturalist 2021: kingdom > phylum > class",
        tuple(" ".join(path[1:]) for path in classes),
        tuple(path[:2] for path in classes),
        2,
        np.array(list(classes.values()), float),
    )


def imagenet(folder: Path | None) -> Taxonomy:
    """The synsets of ImageNet-1k in WordNet, at depths 4 to 18; the categories are the nodes at depth 5."""
    file = _file(folder, "imagenet_hierarchy.json")
    if file is None:
        return made(1000, (3, 3, 4))
    synsets: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return Taxonomy(
        "ImageNet-1k in WordNet",
        tuple(synsets),
        tuple(tuple(one["path"][1:-1]) for one in synsets.values()),
        5,
        np.ones(len(synsets)),
    )


def folder_of(given: Path | None) -> Path | None:
    """The folder of taxonomies that was named, or the default one where it exists."""
    if given is not None and not given.is_dir():
        raise InputError(f"{given} is not a folder: give that of the taxonomies, or leave out --taxonomies")
    return given if given is not None else FOLDER if FOLDER.is_dir() else None


def _file(folder: Path | None, name: str) -> Path | None:
    return folder / name if folder is not None and (folder / name).is_file() else None
