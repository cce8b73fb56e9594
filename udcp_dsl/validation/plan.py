"""The number of rounds of each stage: a given number, or as many as fit into its share of the time.

The cases of a round depend on the seed, the stage and the round alone, so that more rounds only add cases.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

Progress = Callable[[str, float], None]

# What part of the time has passed when each stage ends; what one leaves over goes to those after it.
_UNTIL = {"meaning": 0.12, "facts": 0.2, "oracles": 0.45, "coverage": 0.65, "cost": 1.0, "own rows": 0.92}
_UNTIL["promises"] = 0.88  # last in the table, whose order seeds the cases; it follows the trials of coverage
_MOST_ROUNDS = 200
DEFAULT = "price"  # the default oracle, for which every claim is tried, and first


@dataclass
class Plan:
    """Give `rounds`, or `budget` in seconds. `progress` is called with a stage and the part of it that is done."""

    seed: int
    rounds: int | None
    budget: float | None
    progress: Progress | None = None
    began: float = field(default_factory=lambda: time.monotonic())

    def of(self, stage: str) -> Iterator[np.random.Generator]:
        """A generator for each round of the stage; there is at least one."""
        number = list(_UNTIL).index(stage)
        start = time.monotonic()
        done = 0
        while done == 0 or self._goes_on(stage, done, start):
            self._tell(stage, done, start)
            yield np.random.default_rng([self.seed, number, done])
            done += 1
        self._tell(stage, done, start)

    def now(self) -> float:
        """The clock, in seconds."""
        return time.monotonic()

    def left(self, stage: str) -> float:
        """The seconds that the stage still has: without end where the number of rounds was given."""
        return math.inf if self.rounds is not None else self._end(stage) - time.monotonic()

    def late(self, stage: str, seconds: float = 0.0) -> bool:
        """Whether the time of the stage is over, or would be so many seconds later: then what can be is left out."""
        return self.left(stage) < seconds

    def parts(self, stage: str, cases: int, first: int) -> Iterator[slice]:
        """The first cases, and of the others all or, where time is short, as many as should fit by what those took."""
        start = self.now()
        yield slice(0, min(first, cases))
        each = max(1e-9, (self.now() - start) / first)
        end = first + int(min(cases - first, max(0.0, self.left(stage)) / each))
        if end > first:
            yield slice(first, end)

    def _goes_on(self, stage: str, done: int, start: float) -> bool:
        if self.rounds is not None:
            return done < self.rounds
        now = time.monotonic()
        each = (now - start) / done
        return done < _MOST_ROUNDS and now + each < self._end(stage)

    def _end(self, stage: str) -> float:
        assert self.budget is not None, "a plan has rounds or a budget"
        return self.began + _UNTIL[stage] * self.budget

    def _tell(self, stage: str, done: int, start: float) -> None:
        if self.progress is None:
            return
        if self.rounds is not None:
            part = done / self.rounds
        else:
            part = (time.monotonic() - start) / max(1e-9, self._end(stage) - start)
        self.progress(stage, min(1.0, part))
