"""Tables from which the search for the best set computes atoms that are not sums; one class per kind of atom.

An atom declares its kind. Tables may be large, so they are built on demand; `cells` is the number of entries. Atoms
with an additive form need no table; atoms with neither are left to integer programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from udcp_dsl.expression.domain import Floats, Ints


@dataclass(frozen=True, eq=False)
class MinMaxTable:
    """v(S) = min over a of max over y in S of table()[a, y]; 0 for the empty set. `table()` is (A, K)."""

    cells: int
    table: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class FarthestPair:
    """v(S) = max over a, b in S (a = b included) of table()[a, b]; 0 for the empty set. `table()` is (K, K)."""

    cells: int
    table: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class PairSum:
    """v(S) = the sum of the entries of all pairs of labels in S. `table()` is (K, K), symmetric."""

    cells: int
    table: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class CompletedCategories:
    """v(S) = the sum of `numbers` (K,) over S + the sum of the weights of those `members` that lie wholly in S."""

    numbers: Floats
    members: Sequence[Ints]
    weights: Floats

    @property
    def cells(self) -> int:
        return len(self.numbers) * (1 + len(self.members))


Entries = MinMaxTable | FarthestPair | PairSum | CompletedCategories
