"""Solves one instance of the `ilp` oracle, from its probabilities to its outcome, in this process or in a worker.

An outcome is plain data and depends only on the loss, the options and what was asked: so it can be stored in a file.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from udcp_dsl.expression.lower import lower
from udcp_dsl.loss import loads
from udcp_solvers.numeric.arrays import Floats, Indices, Masks
from udcp_solvers.programs.by_mass import chain, order_of
from udcp_solvers.programs.by_price import price_scores
from udcp_solvers.programs.exact import Exact, Report, Tally

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class ChainGoal(NamedTuple):
    """How far a chain must go: to its first set, until it holds a label, until its scores pass a threshold, or to its
    end."""

    until: Literal["first", "label", "threshold", "end"] = "end"
    value: float = 0.0

    def met(self, p: Floats, mask: Masks) -> bool:
        if self.until == "label":
            return bool(mask[int(self.value)])
        # The labels after a block (with mass="through", also its last label) score at least minus the mass after the
        # block.
        return self.until == "first" or (self.until == "threshold" and -math.fsum(p[~mask].tolist()) > self.value)


@dataclass(frozen=True, eq=False)
class Outcome:
    """All labels in order and their blocks; the first `count` labels are final. With program="price", scores
    instead."""

    report: Report
    order: Indices | None = None
    blocks: Indices | None = None
    count: int = 0
    scores: Floats | None = None

    def as_data(self) -> list[Any]:
        """The outcome as data for JSON, exact to the last bit."""
        order, blocks, scores = (x if x is None else x.tolist() for x in (self.order, self.blocks, self.scores))
        return [astuple(self.report), order, blocks, self.count, scores]

    @staticmethod
    def of_data(data: Sequence[Any]) -> Outcome:
        report, order, blocks, count, scores = data
        order, blocks = (x if x is None else np.array(x, dtype=np.int64) for x in (order, blocks))
        return Outcome(
            Report(*report), order, blocks, count, None if scores is None else np.array(scores, dtype=np.float64)
        )


@dataclass(frozen=True)
class Settings:
    """The options that an outcome depends on."""

    program: str
    levels: Sequence[Fraction]
    limit: float
    nodes: int | None
    canonical: bool


class Instances:
    """Solves the instances of one loss, one after the other."""

    def __init__(self, exact: Exact, settings: Settings) -> None:
        self._exact = exact
        self._settings = settings

    def solve(self, p: Floats, goal: ChainGoal) -> Outcome:
        tally = Tally(time.monotonic() + self._settings.limit, self._settings.nodes)
        if self._settings.program == "price":
            scores = price_scores(self._exact, tally, p, self._settings.canonical)
            return Outcome(tally.report(), scores=scores)
        sets: list[Masks] = []
        count = len(p)
        for mask in chain(self._exact, tally, p, self._settings.levels):
            sets.append(mask)
            if mask.any() and goal.met(p, mask):
                count = int(mask.sum())
                break
        return Outcome(tally.report(), *order_of(p, sets), count)


def given_up(p: Floats, program: str) -> Outcome:
    """The outcome of an instance that crashed its process twice: the labels by falling p, reported as failed."""
    report = Report(instances=1, failed=1, retried=1)
    if program == "price":
        with np.errstate(divide="ignore", over="ignore"):
            return Outcome(report, scores=1 / p)
    return Outcome(report, *order_of(p, []), len(p))


@dataclass(frozen=True)
class Recipe:
    """What another process needs to build the same `Instances`."""

    text: str
    name: str
    labels: tuple[str, ...]
    params: Mapping[str, float]
    loss: str
    files: Mapping[str, bytes]
    solver: object
    settings: Settings

    @staticmethod
    def of(loss: Loss, solver: object, settings: Settings) -> Recipe:
        source = loss.source
        return Recipe(
            source.text, source.name, loss.labels, dict(loss.params), loss.name, dict(loss.files), solver, settings
        )

    def build(self) -> Instances:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parent process has warned already
            loss = loads(self.text, self.labels, params=self.params, loss=self.loss, files=self.files, name=self.name)
        exact = Exact(loss, lower(loss), self.solver, self.settings.canonical)
        return Instances(exact, self.settings)
