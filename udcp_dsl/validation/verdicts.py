"""What a validation found, as plain values: stages, their verdicts, and the smallest case against each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from udcp_dsl.prediction.calibrate import show_level


@dataclass(frozen=True)
class CounterExample:
    """A case on which a claim fails, in one sentence; and the sets of labels, or the rows of probabilities, in it."""

    text: str
    sets: tuple[tuple[str, ...], ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()

    @property
    def size(self) -> int:
        """How much there is to look at: labels of the largest set, or probabilities."""
        return max([0, *map(len, self.sets)]) + sum(map(len, self.rows))


def counted(many: int, what: str) -> str:
    """
    >>> counted(1, "claim"), counted(2, "claim")
    ('1 claim', '2 claims')
    """
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def raised(error: Exception) -> CounterExample:
    """What an oracle raised on rows that it should take."""
    return CounterExample(f"it raises {type(error).__name__}: {error}")


@dataclass(frozen=True)
class Verdict:
    """Whether one claim held on all its cases; None where it was not tried, and then `note` says why.

    One that does not apply to the loss (of its linear model, where there is none) is not tried either, and not missed.
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
        """What became of it: holds, fails, not tried, does not apply."""
        if self.holds is None:
            return "not tried" if self.applies else "does not apply"
        return "holds" if self.holds else "fails"


@dataclass(frozen=True)
class Stage:
    """A question and its verdicts; `seconds` are kept only where the number of cases depends on time as well."""

    name: str
    question: str
    verdicts: tuple[Verdict, ...]
    seconds: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether all its claims hold; None where none fails, but some are not tried."""
        if any(verdict.holds is False for verdict in self.verdicts):
            return False
        return None if self.untried else True

    @property
    def untried(self) -> int:
        """How many of its claims are not tried."""
        return sum(verdict.untried for verdict in self.verdicts)

    @property
    def cases(self) -> int:
        return sum(verdict.cases for verdict in self.verdicts)


@dataclass(frozen=True)
class MeanCost:
    """What the sets of an oracle cost on generated classifiers (or on rows of the user's), on average."""

    oracle: str
    alpha: str
    classifier: str
    mean_cost: float
    cost_error: float
    mean_size: float
    coverage: float
    sets: int


@dataclass(frozen=True)
class Validation:
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

    @property
    def ok(self) -> bool:
        """Whether nothing failed; what was not tried (`untried`) has not."""
        return all(stage.holds is not False for stage in self.stages)

    @property
    def untried(self) -> tuple[tuple[Stage, Verdict], ...]:
        """The claims that were not tried, for want of time or of a way to, stage by stage."""
        return tuple((stage, v) for stage in self.stages for v in stage.verdicts if v.untried)

    @property
    def conclusion(self) -> str:
        """In a few words: all holds, all that was tried, or not."""
        tried = sum(v.holds is not None for stage in self.stages for v in stage.verdicts)
        untried = f", {len(self.untried):,} not tried" if self.untried else ""
        if not self.ok:
            return f"{counted(len(self.failures), 'failure')} in {counted(tried, 'claim')}{untried}"
        if self.untried:
            return f"what was tried holds, {counted(tried, 'claim')}{untried}"
        return "all holds"

    @property
    def failures(self) -> tuple[tuple[Stage, Verdict], ...]:
        """What failed, stage by stage."""
        return tuple((stage, v) for stage in self.stages for v in stage.verdicts if v.holds is False)

    @property
    def counter_example(self) -> CounterExample | None:
        """The smallest of those of the first stage that failed: later stages may fail for the same reason."""
        for stage in self.stages:
            found = [v.counter_example for v in stage.verdicts if v.holds is False and v.counter_example is not None]
            if found:
                return min(found, key=lambda x: x.size)
        return None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        smallest = self.counter_example
        return {
            "loss": self.loss,
            "file": self.source,
            "labels": self.labels,
            "seed": self.seed,
            "cases": self.rounds,
            "budget": self.budget,
            "alphas": [show_level(alpha) for alpha in self.alphas],
            "oracles": list(self.oracles),
            "slow": list(self.slow),
            "left_out": dict(self.left_out),
            "family_wise_error": self.family_wise,
            "untried": len(self.untried),
            "stages": [
                {
                    "name": stage.name,
                    "holds": stage.holds,
                    "untried": stage.untried,
                    "cases": stage.cases,
                    **({} if stage.seconds is None else {"seconds": stage.seconds}),
                    "verdicts": [asdict(verdict) for verdict in stage.verdicts],
                }
                for stage in self.stages
            ],
            "costs": [asdict(cost) for cost in self.costs],
            "counter_example": None if smallest is None else asdict(smallest),
        }
