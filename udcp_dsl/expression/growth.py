"""What an atom declares of itself for the compiled orders and for the search, as plain values; others use increments.

`Growth`: its incremental cost, v(S + y) from v(S) and numbers of y. Increments add numbers in the same order, so both
give the same bits. `Entries`: a table from which the search computes an atom that is not a sum. Tables may be large, so
they are built on demand; `cells` is the number of entries. Atoms with an additive form need no table; atoms with
neither are left to integer programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from udcp_dsl.expression.domain import Floats, Ints, Metric


@dataclass(frozen=True, eq=False)
class Adds:
    """v(S + y) = v(S) + numbers[y], starting at 0."""

    numbers: Floats


@dataclass(frozen=True, eq=False)
class Larger:
    """v(S + y) = the larger of v(S) and numbers[y]; numbers[y] itself for the first label."""

    numbers: Floats


@dataclass(frozen=True, eq=False)
class Smaller:
    """v(S + y) = the smaller of v(S) and numbers[y]; numbers[y] itself for the first label."""

    numbers: Floats


@dataclass(frozen=True, eq=False)
class Completes:
    """v(S) = 1 if all of `members` are in S, else 0."""

    members: Ints


@dataclass(frozen=True, eq=False)
class Touches:
    """v(S + y) = v(S) + the weights of the categories that y touches first, in their order; starting at `start`.

    Category i holds the labels members[starts[i]:starts[i + 1]], each once.
    """

    start: float
    starts: Ints
    members: Ints
    weights: Floats


@dataclass(frozen=True, eq=False)
class Farthest:
    """v(S + y) = the larger of v(S) and the largest distance from y to a label of S or to itself; starting at 0."""

    metric: Metric


Growth = Adds | Larger | Smaller | Completes | Touches | Farthest


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
