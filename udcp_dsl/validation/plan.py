"""How many rounds each stage runs: a fixed number, or as many as fit into its share of the time.

The cases of a round depend only on the seed, the stage and the round, so more rounds only add cases.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

Progress = Callable[[str, float], None]

# Fraction of the budget that has passed when each stage ends; later stages get the time that a stage leaves over.
_STAGE_DEADLINES = {"meaning": 0.12, "facts": 0.2, "oracles": 0.45, "coverage": 0.65, "cost": 1.0, "own rows": 0.92}
# Last, since positions in the table seed the cases; it runs after the coverage trials.
_STAGE_DEADLINES["promises"] = 0.88
_MOST_ROUNDS = 200
DEFAULT = "price"  # the default oracle: tried first, and on every claim


def share_done(stage: str, part: float) -> float:
    """The fraction of a validation that is done when this part of a stage is, as far as it is known beforehand.

    >>> share_done("facts", 0.5)
    0.16
    """
    end = _STAGE_DEADLINES[stage]
    begin = max((other for other in _STAGE_DEADLINES.values() if other < end), default=0.0)
    return begin + part * (end - begin)


@dataclass
class Plan:
    """Set `rounds`, or `budget` in seconds. `progress` is called with a stage and the fraction of it that is done."""

    seed: int
    rounds: int | None
    budget: float | None
    progress: Progress | None = None
    began: float = field(default_factory=lambda: time.monotonic())

    def rounds_of(self, stage: str) -> Iterator[np.random.Generator]:
        """A random generator per round of the stage; there is at least one round."""
        number = list(_STAGE_DEADLINES).index(stage)
        start = time.monotonic()
        done = 0
        while done == 0 or self._fits_another(stage, done, start):
            self._report(stage, done, start)
            yield np.random.default_rng([self.seed, number, done])
            done += 1
        self._report(stage, done, start)

    def now(self) -> float:
        """The monotonic clock, in seconds."""
        return time.monotonic()

    def left(self, stage: str) -> float:
        """The seconds left for the stage; infinite if the number of rounds is fixed."""
        return math.inf if self.rounds is not None else self._end(stage) - time.monotonic()

    def late(self, stage: str, seconds: float = 0.0) -> bool:
        """Whether less than `seconds` are left for the stage, so that optional work should be skipped."""
        return self.left(stage) < seconds

    def parts(self, stage: str, cases: int, first: int) -> Iterator[slice]:
        """Slices of the cases: the first ones, then all others or, if time is short, as many as are likely to fit."""
        start = self.now()
        yield slice(0, min(first, cases))
        each = max(1e-9, (self.now() - start) / first)
        end = first + int(min(cases - first, max(0.0, self.left(stage)) / each))
        if end > first:
            yield slice(first, end)

    def _fits_another(self, stage: str, done: int, start: float) -> bool:
        if self.rounds is not None:
            return done < self.rounds
        now = time.monotonic()
        each = (now - start) / done
        return done < _MOST_ROUNDS and now + each < self._end(stage)

    def _end(self, stage: str) -> float:
        assert self.budget is not None, "a plan has rounds or a budget"
        return self.began + _STAGE_DEADLINES[stage] * self.budget

    def _report(self, stage: str, done: int, start: float) -> None:
        if self.progress is None:
            return
        if self.rounds is not None:
            part = done / self.rounds
        else:
            part = (time.monotonic() - start) / max(1e-9, self._end(stage) - start)
        self.progress(stage, min(1.0, part))
