"""Sets to test a loss on: every subset of some labels, on top of a background of other labels.

With up to 12 labels, all subsets are tried. With more, several cubes are tried: all subsets of 8 labels, some of them
chosen by the atoms and the others at random, with none, some or all of the other labels as the background. There are
also single sets: of every size, and the categories in the loss, exactly or up to one label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.domain import Bools, Category, CategoryMetric, Family, Ints, TreeMetric, numbered_sets

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

MOST_LABELS = 12
_FREE = 8
_MANY, _LARGEST = 300, 100


def all_masks(K: int) -> Bools:
    """Every subset of K labels, as a boolean matrix.

    Parameters
    ----------
    K : int
        Number of labels.

    Returns
    -------
    boolean array, shape (2^K, K)
        Row b holds label y if bit y of b is set.

    Examples
    --------
    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if not 0 <= K <= 20:
        raise InputError(f"there are 2^{K} subsets of {K} labels; all_masks takes at most 20")
    return numbered_sets(np.arange(1 << K), K)


def cubes(loss: Loss, rng: np.random.Generator, *, many: int = 12) -> Iterator[Bools]:
    """Masks (2^m, K): row b holds the i-th free label if bit i of b is set. For K <= 12, one cube of all sets."""
    if loss.K <= MOST_LABELS:
        yield all_masks(loss.K)
        return
    telling = np.unique([y for atom in loss.expression.atoms.values() for y in atom.probes()]).astype(np.int64)
    for i in range(many):
        free = _free_labels(loss.K, telling, rng)
        masks = np.zeros((1 << _FREE, loss.K), dtype=bool)
        masks[:] = (False, True, rng.random(loss.K) < 0.5, rng.random(loss.K) < 3 / loss.K)[i % 4]
        masks[:, free] = all_masks(_FREE)
        yield masks


def _free_labels(K: int, telling: Ints, rng: np.random.Generator) -> Ints:
    known = rng.choice(telling, min(len(telling), _FREE // 2), replace=False) if len(telling) else telling
    others = np.setdiff1d(np.arange(K), known)
    return np.concatenate([known, rng.choice(others, _FREE - len(known), replace=False)])


def varied_sets(loss: Loss, rng: np.random.Generator, count: int) -> Bools:
    """`count` sets (count, K): empty, full, then in turn of any size, a category or nearly one, one label, a few.

    Nearly a category means with one label less or more. With more than 300 labels, no set has more than 100, as the
    interpreter may visit all pairs.
    """
    K = loss.K
    most = K if K <= _MANY else _LARGEST
    masks = np.zeros((max(count, 2), K), dtype=bool)
    masks[1, :most] = True
    categories = list(_categories(loss))
    quarter = -(-len(masks) // 4)
    for i in range(2, len(masks)):
        row, kind = masks[i], i % 4
        if kind == 0:  # spread evenly over all sizes
            size = int((i // 4 + rng.random()) / quarter * (most + 1))
            row[rng.choice(K, min(size, most), replace=False)] = True
        elif kind == 1 and categories:
            members = rng.permutation(categories[int(rng.integers(len(categories)))])[:most]
            row[members] = True
            change = int(rng.integers(3))
            if change:
                row[rng.choice(members) if change == 1 else int(rng.integers(K))] ^= True
        else:
            row[rng.choice(K, 1 if kind == 2 else min(K, int(rng.integers(2, 6))), replace=False)] = True
    return masks[:count]


def _categories(loss: Loss) -> Iterator[Ints]:
    """The labels of every category that an atom of the loss refers to."""
    for atom in loss.expression.atoms.values():
        for thing in vars(atom).values():
            if isinstance(thing, Category):
                yield thing.members
            families = [thing] if isinstance(thing, Family) else []
            if isinstance(thing, CategoryMetric):
                families = [thing.family]
            if isinstance(thing, TreeMetric):
                families = [thing.hierarchy.level(depth) for depth in range(1, thing.hierarchy.height + 1)]
            yield from (family.category(i).members for family in families for i in range(len(family)))


def named(loss: Loss, mask: Bools) -> str:
    """A set for messages: its labels in braces."""
    return "{" + ", ".join(loss.labels[y] for y in np.flatnonzero(mask)) + "}"
