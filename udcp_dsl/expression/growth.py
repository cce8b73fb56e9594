"""The incremental cost of an atom, as plain values: v(S + y) from v(S) and numbers of y.

An atom declares which kind it is, for the compiled greedy orders; other atoms use their increments. Both add numbers in
the same order, so they give the same bits.
"""

from __future__ import annotations

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
