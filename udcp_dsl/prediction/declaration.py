"""The description that an oracle gives of itself: the value `declaration` of its class, which is read without compiling
anything.

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
    """The order of magnitude of the time of one row among many, compiling aside."""

    MICROSECONDS = "microseconds"
    MILLISECONDS = "milliseconds"
    LONGER = "longer"

    @property
    def most(self) -> float:
        """The seconds below which it stays."""
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

    `exact`: its sets are the best there are for what they are asked for, a price or a mass; else they are, as far as
    the cost is concerned, a rule of thumb. `seconds`: what one row among many takes, roughly, by the number of steps;
    infinite where that cannot be said, as of integer programs.
    """

    algorithm: str
    exact: bool
    seconds: float

    @property
    def time(self) -> Time:
        return Time.of(self.seconds)


@dataclass(frozen=True)
class Refusal:
    """Why an oracle does not take a loss: the fact that is missing, if it is one, and the subexpression to blame."""

    why: str
    fact: str | None = None
    blame: Span | None = None


def never(loss: Loss) -> bool:
    """Of no loss."""
    return False


@dataclass(frozen=True)
class Declaration:
    """What an oracle class says of itself.

    does: in one sentence, what it adds labels by; choose_for: when to take it. chooses: the way that it would take for
    a loss, by the same decision as its constructor's, or why it takes none. needs: the facts without which it does not
    apply; quick_with: facts each of which would make a row a matter of microseconds. tuned: it has an option `lam`, its
    weight on cost, which a predictor tunes on rows of their own where it is None. anchored: for which losses it wants
    an anchor, which a predictor finds on rows of their own; it is an `AnchoredOracle`. solves: it solves a program for
    each row, and is a `SolvingOracle`. by_cost: the cost has a say in which labels it adds, so that one which costs
    nothing is in every set. normalized: it goes by the mass of a row, so that rows must sum to 1; one that is not takes
    what each label is worth, on one scale for all rows. in_threads: it may be asked by several threads at once.
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
        """What it would do with this loss, or why it does not apply."""
        for name in self.needs:
            fact: Fact = getattr(loss.facts, name)
            if not fact:
                culprit = f": {fact.reason}" if fact.blame is None else f" because of {shown_blame(fact.blame)}"
                return Refusal(f"needs {name}, which is {fact}{culprit}", name, fact.blame)
        return self.chooses(loss.example)
