"""How the value of an atom is read off a table of entries; the search for the best set needs this for atoms that are
not sums.

An atom declares which kind it is. Tables may be large, so they are made on demand. Atoms with an additive form need no
table; other atoms are left to integer programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from udcp_dsl.expression.domain import Floats, Ints


@dataclass(frozen=True, eq=False)
class Columns:
    """v(S) = the least over columns of the largest entry of a label in S; 0 for the empty set. `table()` is (A, K)."""

    cells: int
    table: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class FarthestPair:
    """v(S) = the largest entry of two labels in S, which may be the same one; 0 for the empty set. (K, K)."""

    cells: int
    table: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class PairSum:
    """v(S) = the sum of the entries of all pairs of labels in S. `table()` is (K, K), symmetric."""

    cells: int
    table: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class Wholes:
    """v(S) = the sum of `numbers` (K,) over S + the sum of the weights of the `members` that lie wholly in S."""

    numbers: Floats
    members: Sequence[Ints]
    weights: Floats

    @property
    def cells(self) -> int:
        return len(self.numbers) * (1 + len(self.members))


Entries = Columns | FarthestPair | PairSum | Wholes
