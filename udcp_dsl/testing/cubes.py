"""Sets to judge a loss on: every subset of some labels, on top of a background of others.

Of up to 12 labels all subsets are tried. Of more, several cubes: all subsets of 8 labels, some of them labels on which
the atoms show their character, the rest at random, with none, some or all of the other labels as the background.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.domain import Bools, Ints

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

MOST_LABELS = 12
_FREE = 8
_CUBES = 12


def all_masks(K: int) -> Bools:
    """Every subset of K labels as a boolean matrix (2^K, K): row b holds label y where bit y of b is set.

    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if not 0 <= K <= 20:
        raise InputError(f"there are 2^{K} subsets of {K} labels; all_masks takes at most 20")
    return np.asarray((np.arange(1 << K)[:, None] >> np.arange(K)) & 1 == 1)


def cubes(loss: Loss, rng: np.random.Generator) -> Iterator[Bools]:
    """Masks (2^m, K), row b holding the i-th free label where bit i of b is set; at K <= 12 one cube, of all sets."""
    if loss.K <= MOST_LABELS:
        yield all_masks(loss.K)
        return
    telling = np.unique([y for atom in loss.expression.atoms.values() for y in atom.probes()]).astype(np.int64)
    for i in range(_CUBES):
        free = _free_labels(loss.K, telling, rng)
        masks = np.zeros((1 << _FREE, loss.K), dtype=bool)
        masks[:] = (False, True, rng.random(loss.K) < 0.5, rng.random(loss.K) < 3 / loss.K)[i % 4]
        masks[:, free] = all_masks(_FREE)
        yield masks


def _free_labels(K: int, telling: Ints, rng: np.random.Generator) -> Ints:
    known = rng.choice(telling, min(len(telling), _FREE // 2), replace=False) if len(telling) else telling
    others = np.setdiff1d(np.arange(K), known)
    return np.concatenate([known, rng.choice(others, _FREE - len(known), replace=False)])
