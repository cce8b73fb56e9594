"""Published methods beside ours, written from their papers: one file each, its formula on top.

A method is a `Family`: sets of the judged rows by a level that makes them larger, after whatever it tunes on rows of
its own. So all are compared alike, at the level at which they cover as often as asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Masks = NDArray[np.bool_]


class Family(ABC):
    """Sets of some rows by level."""

    @abstractmethod
    def at(self, level: float) -> Masks:
        """The sets (n, K) at a level."""

    @abstractmethod
    def levels(self, y: Ints) -> Floats:
        """Levels, rising, among which coverage of the true labels y goes from its least to its most."""


class ByScore(Family):
    """{y : s(x, y) <= level}: split conformal prediction's own. A level at each true label's score."""

    def __init__(self, scores: Floats) -> None:
        self.scores = scores

    def at(self, level: float) -> Masks:
        return self.scores <= level

    def levels(self, y: Ints) -> Floats:
        return np.append(-np.inf, np.unique(self.scores[np.arange(len(y)), y]))


def frequencies(y: Ints, K: int) -> Floats:
    """How frequent each label is; every label is counted once more than it was seen, so that none is 0."""
    counts = np.bincount(y, minlength=K) + 1.0
    return np.asarray(counts / counts.sum())


def same_group(groups: Ints) -> Floats:
    """1 where two labels are in one group, else 0."""
    return np.asarray(groups[:, None] == groups, dtype=np.float64)


def as_rows(P: Any) -> Floats:
    return np.asarray(P, dtype=np.float64)
