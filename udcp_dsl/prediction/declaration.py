"""How an oracle describes itself: the class attribute `declaration`, which is read without compiling anything.

Commands, validation, comparison and the README read it; there is no other table of oracles. An oracle without a
declaration is constructed to see whether it applies. Reading a declaration imports neither compiler nor solver, so
`udcp check` is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.explain import shown_blame

if TYPE_CHECKING:
    from udcp_dsl.expression.facts import Fact
    from udcp_dsl.loss import Loss


class Time(StrEnum):
    """The order of magnitude of the time per row, for many rows and without compiling."""

    MICROSECONDS = "microseconds"
    MILLISECONDS = "milliseconds"
    LONGER = "longer"

    @property
    def most(self) -> float:
        """Upper bound in seconds, exclusive."""
        return {Time.MICROSECONDS: 1e-3, Time.MILLISECONDS: 1.0, Time.LONGER: math.inf}[self]

    @property
    def per_row(self) -> str:
        """
        >>> Time.MILLISECONDS.per_row, Time.LONGER.per_row
        ('milliseconds per row', 'longer than milliseconds per row')
        """
        return f"{self} than milliseconds per row" if self is Time.LONGER else f"{self} per row"

    @staticmethod
    def of(seconds: float) -> Time:
        """
        >>> Time.of(2e-5), Time.of(0.3)
        (<Time.MICROSECONDS: 'microseconds'>, <Time.MILLISECONDS: 'milliseconds'>)
        """
        return next(time for time in Time if seconds < time.most or time is Time.LONGER)


@dataclass(frozen=True)
class Way:
    """What an oracle would do with a loss.

    `exact`: its sets are the best ones for the given price or mass; otherwise it is a heuristic. `seconds`: rough time
    per row, for many rows, from the number of steps; infinite if it cannot be estimated, as for integer programs.
    """

    algorithm: str
    exact: bool
    seconds: float

    @property
    def time(self) -> Time:
        return Time.of(self.seconds)


@dataclass(frozen=True)
class Refusal:
    """Why an oracle does not apply to a loss: the missing fact, if one is missing, and the subexpression to blame."""

    why: str
    fact: str | None = None
    blame: Span | None = None


def never(loss: Loss) -> bool:
    """False for every loss: the oracle never wants an anchor."""
    return False


@dataclass(frozen=True)
class Declaration:
    """What an oracle class declares about itself.

    does: by what it orders labels, as a phrase. choose_for: when to choose it. chooses: the way that its constructor
    would choose for a loss, or why it does not apply. needs: facts without which it does not apply. quick_with: facts
    each of which reduces the time per row to microseconds. tuned: it has an option `lam`, its weight on cost; if `lam`
    is None, a predictor tunes it on separate rows. anchored: for which losses it wants an anchor, which a predictor
    finds on separate rows; the class `has_best` sets. solves: it solves a program for each row; the class is a
    `SolvingOracle`. by_cost: the cost influences which labels it adds, so a label that costs nothing is in every set.
    normalized: it uses the mass of a row, so rows must sum to 1; otherwise it takes the worth of each label, on one
    scale for all rows. in_threads: several threads may call it at once.
    """

    does: str
    choose_for: str
    chooses: Callable[[Loss], Way | Refusal]
    needs: tuple[str, ...] = ()
    quick_with: tuple[str, ...] = ()
    tuned: bool = False
    anchored: Callable[[Loss], bool] = never
    solves: bool = False
    by_cost: bool = True
    normalized: bool = True
    in_threads: bool = False

    def way(self, loss: Loss) -> Way | Refusal:
        """The way that it would choose for this loss, or why it does not apply."""
        for name in self.needs:
            fact: Fact = getattr(loss.facts, name)
            if not fact:
                culprit = f": {fact.reason}" if fact.blame is None else f" because of {shown_blame(fact.blame)}"
                return Refusal(f"needs {name}, which is {fact}{culprit}", name, fact.blame)
        return self.chooses(loss.example)
