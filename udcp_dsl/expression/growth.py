"""How a set that grows label by label pays for an atom, as plain values: v(S + y) from v(S) and something of y.

An atom says which of these it is, and compiled orders read it; what is none of them is left to the atom's increments.
Numbers are added in the same order as there, so that both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from udcp_dsl.expression.domain import Floats, Ints, Metric


@dataclass(frozen=True, eq=False)
class Adds:
    """v(S + y) = v(S) + numbers[y], from 0."""

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
    """1 as soon as all of `members` are in, 0 before."""

    members: Ints


@dataclass(frozen=True, eq=False)
class Touches:
    """v(S + y) = v(S) + the weights of the categories that y is the first label of, added in their order; from `start`.

    Category i holds the labels members[starts[i]:starts[i + 1]], each once.
    """

    start: float
    starts: Ints
    members: Ints
    weights: Floats


@dataclass(frozen=True, eq=False)
class Farthest:
    """v(S + y) = the larger of v(S) and the largest distance from y to a label of S or to itself, from 0."""

    metric: Metric


Growth = Adds | Larger | Smaller | Completes | Touches | Farthest
