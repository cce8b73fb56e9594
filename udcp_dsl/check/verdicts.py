"""The result of a validation as plain values: stages, their verdicts, and counter-examples.

A plan tells how many rounds each stage runs: a fixed number, or as many as fit into its share of the time. The cases of
a round depend only on the seed, the stage and the round, so more rounds only add cases.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.showing import MARKS, STATES, Column, Description, Line, Result, Styled, Table, counted
from udcp_dsl.spec_warnings import SpecFinding, findings_table

# Claims that more than one module uses.
COVERAGE = "coverage is what theory predicts"
ON_YOUR_ROWS = "on your rows"
DRIFT = "your rows do not drift along the file"
CONSISTENT = "cases that do not contradict each other"
Progress = Callable[[str, float], None]
# Fraction of the budget that has passed when each stage ends; later stages get the time that a stage leaves over.
_STAGE_DEADLINES = {"meaning": 0.12, "facts": 0.2, "oracles": 0.45, "coverage": 0.65, "cost": 1.0, "own rows": 0.92}
# Last, since positions in the table seed the cases; it runs after the coverage trials.
_STAGE_DEADLINES["promises"] = 0.88
_MOST_ROUNDS = 200
DEFAULT = "price"  # the default oracle: tried first, and on every claim


@dataclass(frozen=True)
class CounterExample:
    """A case on which a claim fails: one sentence, and the sets of labels or rows of probabilities in it."""

    text: str
    sets: tuple[tuple[str, ...], ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()

    @property
    def size(self) -> int:
        """The number of labels in the largest set, plus the number of probabilities."""
        return max([0, *map(len, self.sets)]) + sum(map(len, self.rows))


def raised(error: Exception) -> CounterExample:
    """The counter-example for an error that an oracle raised on valid rows."""
    return CounterExample(f"it raises {type(error).__name__}: {error}")


@dataclass(frozen=True)
class Verdict:
    """Whether one claim held on all its cases; None if it was not tried, for the reason in `note`.

    A claim that does not apply (such as one about the linear model of a loss that has none) does not count as untried.
    """

    claim: str
    holds: bool | None
    cases: int
    note: str = ""
    counter_example: CounterExample | None = None
    applies: bool = True

    @property
    def untried(self) -> bool:
        return self.holds is None and self.applies

    @property
    def word(self) -> str:
        """The verdict in words: holds, fails, not run, or does not apply."""
        if self.holds is None:
            return "not run" if self.applies else "does not apply"
        return "holds" if self.holds else "fails"


def assert_verdicts(name: str, verdicts: Iterable[Verdict]) -> None:
    """Raise AssertionError with the counter-example of the first claim about `name` that fails."""
    for verdict in verdicts:
        if verdict.holds is False:
            against = verdict.claim if verdict.counter_example is None else verdict.counter_example.text
            raise AssertionError(f"{name}: {against}")


_CLAIM = (
    Column("claim", "claim"),
    Column("verdict", lambda v: Styled(v.word, STATES[v.holds] if v.applies else "dim")),
    Column("cases", "cases", ",d"),
    Column("", "note"),
)
_SPEC = (Column("", 0, kind="word"), Column("", 1))
_COST = (
    Column("classifier", "classifier"),
    Column("alpha", "alpha"),
    Column("oracle", "oracle"),
    Column("mean cost", "mean_cost", ".4g"),
    Column("error", "cost_error", ".2g"),
    Column("mean size", "mean_size", ".4g"),
    Column("coverage", "coverage", ".3f"),
)


@dataclass(frozen=True)
class Stage:
    """A question and its verdicts; `seconds` is set only if the number of cases depends on time."""

    name: str
    question: str
    verdicts: tuple[Verdict, ...]
    seconds: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether all claims hold; None if none fails but some were not tried."""
        if any(verdict.holds is False for verdict in self.verdicts):
            return False
        return None if self.untried else True

    @property
    def untried(self) -> int:
        """The number of claims that were not tried."""
        return sum(verdict.untried for verdict in self.verdicts)

    @property
    def cases(self) -> int:
        return sum(verdict.cases for verdict in self.verdicts)

    @property
    def title(self) -> Line:
        """The title line: whether the stage holds, its question, and the number of cases."""
        seconds = "" if self.seconds is None else f", {self.seconds:.1f} s"
        untried = f", {self.untried:,} not run" if self.untried else ""
        named = Styled(f"{MARKS[self.holds]} {self.name}", STATES[self.holds])
        return named, f": {self.question}", Styled(f" ({self.cases:,} cases{seconds}{untried})", "dim")


@dataclass(frozen=True)
class MeanCost:
    """The mean cost of an oracle's sets, on generated classifiers or on the user's rows."""

    oracle: str
    alpha: str
    classifier: str
    mean_cost: float
    cost_error: float
    mean_size: float
    coverage: float
    sets: int


@dataclass(frozen=True)
class Validation(Result):
    """All stages, in order. `family_wise` bounds the chance that a correct spec fails in any of them."""

    loss: str
    source: str
    labels: int
    seed: int
    rounds: int | None
    budget: float | None
    alphas: tuple[Fraction, ...]
    oracles: tuple[str, ...]
    slow: tuple[str, ...]
    left_out: Mapping[str, str]
    family_wise: float
    stages: tuple[Stage, ...]
    costs: tuple[MeanCost, ...] = ()
    spec: tuple[tuple[str, str], ...] = ()  # questions about the spec, with their answers
    findings: tuple[SpecFinding, ...] = ()  # what the spec likely does not mean: not a failure

    @property
    def ok(self) -> bool:
        """Whether nothing failed; claims that were not tried (`untried`) do not count as failures."""
        return all(stage.holds is not False for stage in self.stages)

    @property
    def untried(self) -> tuple[tuple[Stage, Verdict], ...]:
        """The claims that were not tried, for lack of time or of a method, stage by stage."""
        return tuple((stage, v) for stage in self.stages for v in stage.verdicts if v.untried)

    @property
    def conclusion(self) -> str:
        """A short summary: the number of tests, of failures, and of claims that were not run."""
        tried = sum(v.holds is not None for stage in self.stages for v in stage.verdicts)
        untried = f", {len(self.untried):,} not run" if self.untried else ""
        if not self.ok:
            return f"{counted(len(self.failures), 'failure')} in {counted(tried, 'test')}{untried}"
        return f"no problem found in {counted(tried, 'test')}{untried}"

    @property
    def failures(self) -> tuple[tuple[Stage, Verdict], ...]:
        """The claims that failed, stage by stage."""
        return tuple((stage, v) for stage in self.stages for v in stage.verdicts if v.holds is False)

    @property
    def counter_example(self) -> CounterExample | None:
        """The smallest counter-example of the first stage that failed: later stages may fail for the same reason."""
        for stage in self.stages:
            found = [v.counter_example for v in stage.verdicts if v.holds is False and v.counter_example is not None]
            if found:
                return min(found, key=lambda x: x.size)
        return None

    def table(self) -> dict[str, list[Any]]:
        """The claims as columns, one row per claim."""
        tried = [(stage.name, verdict) for stage in self.stages for verdict in stage.verdicts]
        names = ("claim", "word", "cases", "note")
        return {"stage": [s for s, _ in tried], **{name: [getattr(v, name) for _, v in tried] for name in names}}

    def brief(self) -> Description:
        """What concerns the user: the spec, mean costs, and failures; the tests of this package in one line."""
        described = self.describe()
        spec, findings, *_, costs = described.tables
        stages = [stage.name for stage in self.stages if stage.name != "cases"]
        own = [v for stage in self.stages if stage.name != "cases" for v in stage.verdicts]
        passed, cases = sum(v.holds is True for v in own), sum(v.cases for v in own)
        line = f"tests of udcp_dsl on this spec ({', '.join(stages)}): {passed} passed in {cases:,} cases"
        rest = [f"{sum(v.holds is False for v in own)} failed", f"{sum(v.untried for v in own)} not run"]
        line += "".join(f", {part}" for part in rest if not part.startswith("0 "))
        return replace(described, tables=(spec, findings, costs), notes=(f"{line} (--why lists them)",))

    def describe(self) -> Description:
        """The spec, the claims of each stage, what sets cost, and whether the spec is safe to use."""
        alphas = ", ".join(map(show_level, self.alphas))
        amount = f"--cases {self.rounds}" if self.rounds is not None else f"--budget {self.budget:g}s"
        slow = f"fewer cases for {', '.join(self.slow)}, which is slow" if self.slow else ""
        return Description(
            title=(Styled(self.loss, "bold"), f" in {self.source}: {self.labels:,} labels, alpha {alphas}"),
            lines=(
                f"oracles: {', '.join(self.oracles)}",
                f"seed {self.seed}, {amount}; probability of a false alarm: at most {self.family_wise:g}",
            ),
            tables=(
                Table(_SPEC if self.spec else (), self.spec, Styled("your spec", "bold")),
                findings_table(self.findings),
                *(Table(_CLAIM, stage.verdicts, stage.title) for stage in self.stages),
                Table(
                    _COST if self.costs else (),
                    self.costs,
                    "mean cost of a set, for generated classifiers",
                    key="costs",
                ),
            ),
            notes=(slow, *(f"{name} does not apply: {why}" for name, why in self.left_out.items())),
            verdict=tuple(self._verdict()),
            data=self._data(),
        )

    def _verdict(self) -> Iterator[Line]:
        if self.ok:
            yield Styled(self.conclusion, "open" if self.untried else "good")
            return
        yield Styled(f"not safe to use: {self.conclusion}", "bad")
        for stage, verdict in self.failures:
            yield Styled(f"{stage.name}, {verdict.claim}", "bold")
            if verdict.counter_example is not None:
                yield f"  {verdict.counter_example.text}"

    def _data(self) -> dict[str, object]:
        return {
            "loss": self.loss,
            "file": self.source,
            "labels": self.labels,
            "seed": self.seed,
            "cases": self.rounds,
            "budget": self.budget,
            "alphas": [show_level(alpha) for alpha in self.alphas],
            "oracles": self.oracles,
            "slow": self.slow,
            "left_out": self.left_out,
            "spec": dict(self.spec),
            "family_wise_error": self.family_wise,
            "untried": len(self.untried),
            "stages": [
                {
                    "name": stage.name,
                    "holds": stage.holds,
                    "untried": stage.untried,
                    "cases": stage.cases,
                    **({} if stage.seconds is None else {"seconds": stage.seconds}),
                    "verdicts": stage.verdicts,
                }
                for stage in self.stages
            ],
            "counter_example": self.counter_example,
        }


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
