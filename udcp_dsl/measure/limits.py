"""The limits of a spec, measured on prediction sets for labelled rows, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.predict.calibrate.levels import clopper_pearson
from udcp_dsl.showing import Column, Table, visible, with_unit

if TYPE_CHECKING:
    from udcp_dsl.expression.given import RowInputs
    from udcp_dsl.expression.limit import Limit

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_NORMAL = 1.959963984540054  # the 97.5 percent quantile of the normal distribution


@dataclass(frozen=True)
class LimitMeasure:
    """One limit on n sets: the mean of its expression with a 95 percent interval (exact for an indicator, by the normal
    approximation otherwise); its multiplier, None for an oracle that only reports limits; and how many of the truths
    inside (true labels that count against the limit on their own) are covered, with the exact interval of that share.
    """

    name: str
    text: str
    at_most: float
    mean: float
    interval: tuple[float, float]
    multiplier: float | None
    inside: int
    inside_covered: int
    inside_interval: tuple[float, float]

    @property
    def inside_coverage(self) -> float | None:
        """The share of the truths inside that are covered; None if there are none."""
        return self.inside_covered / self.inside if self.inside else None

    @property
    def verdict(self) -> str:
        """The limit, and whether the interval is above it, below it or contains it."""
        low, high = self.interval
        where = "is above" if low > self.at_most else "is below" if high < self.at_most else "contains"
        return f"limit {self.at_most:g}; the interval {where} it"


def limit_points(
    limits: Sequence[Limit], masks: Bools, truth: npt.NDArray[np.int64], inputs: RowInputs | None
) -> tuple[Floats, Bools]:
    """For each set and limit, (n, J): the value of the limit's expression, and whether the row's true label counts
    against the limit on its own. `inputs` are those of the rows, if the limits read any."""
    shape = len(limits), len(masks)
    values = np.array([limit.batch(masks, inputs) for limit in limits], dtype=np.float64).reshape(shape).T
    inside = np.array([limit.inside(truth, inputs) for limit in limits], dtype=np.bool_).reshape(shape).T
    return values, inside


def measure_limits(
    limits: Sequence[Limit], points: tuple[Floats, Bools], covered: Bools, multipliers: Sequence[float] | None
) -> tuple[LimitMeasure, ...]:
    """The measures of limits from the `limit_points` of sets; `multipliers` if the oracle enforces them, else None."""
    found = []
    for j, limit in enumerate(limits):
        values, inside = points[0][:, j], points[1][:, j]
        many, held = int(inside.sum()), int(covered[inside].sum())
        low, high = clopper_pearson(held, many) if many else (np.zeros(()), np.ones(()))
        found.append(
            LimitMeasure(
                name=limit.name,
                text=limit.text,
                at_most=limit.at_most,
                mean=float(values.mean()),
                interval=_interval(limit, values),
                multiplier=None if multipliers is None else float(multipliers[j]),
                inside=many,
                inside_covered=held,
                inside_interval=(float(low), float(high)),
            )
        )
    return tuple(found)


def _interval(limit: Limit, values: Floats) -> tuple[float, float]:
    n, mean = len(values), float(values.mean())
    if limit.indicator:
        low, high = clopper_pearson(int(np.count_nonzero(values > 0.5)), n)
        return float(low), float(high)
    ends = limit.facts.interval
    reach = _NORMAL * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return max(ends.lo, mean - reach), min(ends.hi, mean + reach)


@dataclass(frozen=True)
class LimitSummary:
    """One limit over several splits: the mean of the means, their least and largest, the mean multiplier (None for an
    oracle that only reports limits), and the share of truths inside that are covered (None if there are none)."""

    name: str
    text: str
    at_most: float
    mean: float
    least: float
    largest: float
    multiplier: float | None
    inside_coverage: float | None


def summary_lines(found: Mapping[str, Sequence[LimitSummary]], unit: str | None) -> Iterator[str]:
    """Each limit by oracle: its means over splits, the oracles that exceed it, the meaning of its multiplier, and how
    often truths inside are covered."""
    for own in zip(*found.values(), strict=True):
        first, by = own[0], dict(zip(found, own, strict=True))
        means = ", ".join(f"{name} {x.mean:.3g} ({x.least:.3g} to {x.largest:.3g})" for name, x in by.items())
        yield f"limit {visible(first.name)}, {visible(first.text)} <= {first.at_most:g}: {means}"
        reported = [name for name, x in by.items() if x.multiplier is None and x.mean > x.at_most]
        if reported:
            yield f"above the limit, which they only report: {', '.join(reported)}"
        for name, x in by.items():
            if x.multiplier:
                yield f"{name}, limit {visible(first.name)}: {worth_text(x.multiplier, unit)}"
        covered = [f"{name} {x.inside_coverage:.3f}" for name, x in by.items() if x.inside_coverage is not None]
        if any(x.multiplier for x in own) and covered:
            yield f"coverage of rows whose true label counts against {visible(first.name)}: {', '.join(covered)}"


def summarise(splits: Sequence[Sequence[LimitMeasure]]) -> tuple[LimitSummary, ...]:
    """Summarise the limits of a spec over splits; each split has the measures of all limits."""
    found = []
    for own in zip(*splits, strict=True):
        means = [x.mean for x in own]
        numbers = [x.multiplier for x in own if x.multiplier is not None]
        inside = sum(x.inside for x in own)
        found.append(
            LimitSummary(
                own[0].name,
                own[0].text,
                own[0].at_most,
                float(np.mean(means)),
                min(means),
                max(means),
                float(np.mean(numbers)) if numbers else None,
                sum(x.inside_covered for x in own) / inside if inside else None,
            )
        )
    return tuple(found)


def limit_table(measures: Sequence[LimitMeasure]) -> Table:
    """One row per limit; an empty table if there is none."""
    columns = (
        Column("limit", lambda x: f"{visible(x.name)}: {visible(x.text)}"),
        Column("at most", "at_most", "g"),
        Column("mean", "mean", ".4g"),
        Column("interval", lambda x: "{:.4g} to {:.4g}".format(*x.interval), kind="number"),
        Column(
            "multiplier", lambda x: "reported only" if x.multiplier is None else f"{x.multiplier:.4g}", kind="number"
        ),
        Column("true labels inside", "inside", "d"),
        Column("covered", lambda x: "" if x.inside_coverage is None else f"{x.inside_coverage:.4f}", kind="number"),
    )
    return Table(columns if measures else (), measures, key="limits")


def limit_lines(measures: Sequence[LimitMeasure], coverage: float, unit: str | None) -> Iterator[str]:
    """A line per limit: how well it holds, what its multiplier means, and how often truths inside are covered."""
    for x in measures:
        about = [f"{visible(x.name)}: mean {x.mean:.4g} ({x.verdict})"]
        if x.multiplier is not None:
            about.append(worth_text(x.multiplier, unit))
        if x.inside_coverage is not None and (x.multiplier or x.inside_interval[1] < coverage):
            change = x.inside_coverage - coverage
            than = f"{abs(change):.3f} {'more' if change > 0 else 'less'} than over all rows"
            about.append(f"rows whose true label counts against the limit: coverage {x.inside_coverage:.3f}, {than}")
        yield "; ".join(about)


def worth_text(multiplier: float, unit: str | None) -> str:
    """A multiplier in words: by how much the mean cost falls if the limit is raised by 0.01, times 100.

    >>> worth_text(12.1, "hours"), worth_text(0.0, None)
    ('one more in a hundred rows is worth 12.1 hours', 'it is met without enforcement and costs nothing')
    """
    if multiplier == 0:
        return "it is met without enforcement and costs nothing"
    return f"one more in a hundred rows is worth {with_unit(f'{multiplier:.3g}', unit)}"
