"""Sets by mass, for one instance of `ilp`: a chain S_1, S_2, ... over rising masses.

S_j is the cheapest set that contains S_(j-1) and has a fraction t_j of the row's mass. A set that already has the next
mass is its own successor: a cheaper set that contains it would have been chosen before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Masks
from udcp_solvers.programs.exact import Exact, Tally
from udcp_solvers.programs.mass import has_mass, units


def targets(p: Floats, levels: Sequence[Fraction]) -> Iterator[float]:
    """Yield the masses to reach: fractions of the exact total of the row, rounded down. Most rows need only the first
    few."""
    whole = Fraction(units(p.tolist()), 2**1074)
    for level in levels:
        exact = whole * level
        near = float(exact)
        yield near if Fraction(near) <= exact else math.nextafter(near, 0.0)


def chain(exact: Exact, tally: Tally, p: Floats, levels: Sequence[Fraction]) -> Iterator[Masks]:
    """Yield the sets of the chain, each found only on demand; a set that equals the one before is left out."""
    mask = np.zeros(len(p), dtype=bool)
    first = True
    for t in targets(p, levels):
        if not first and has_mass(p, mask, t):
            continue
        quick = exact.by_shortcut(p, t, mask)
        mask = exact.cheapest(tally, p, t, mask).mask if quick is None else quick
        first = False
        yield mask


def order_of(p: Floats, sets: Sequence[Masks]) -> tuple[Indices, Indices]:
    """Labels block by block, within a block by falling p (ties by lower index); and the block number of each, in this
    order.

    The labels that a set adds to the one before are a block; labels in no set come last, each as a block of its own.
    """
    block = np.full(len(p), len(sets))
    for i in range(len(sets) - 1, -1, -1):
        block[sets[i]] = i
    order = np.lexsort((np.arange(len(p)), -p, block))
    along = block[order]
    new = np.ones(len(p), dtype=np.int64)
    new[1:] = (along[1:] != along[:-1]) | (along[1:] == len(sets))
    return order, new.cumsum() - 1
