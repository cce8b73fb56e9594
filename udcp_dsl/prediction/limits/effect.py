"""The effect of limits at one alpha, measured on the tuning rows: multipliers, and sets with and without the limits."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Column, Table, visible, with_unit

if TYPE_CHECKING:
    from udcp_dsl.expression.limit import Limit


@dataclass(frozen=True)
class LimitEffect:
    """The effect of one limit: its multiplier, and the mean of its expression `without` limits and with them (`mean`),
    with the standard `error` of the latter. `inside` is the number of rows whose true label counts against the limit on
    its own; `covered_without` and `covered` are the shares of these that are covered without limits and with them.
    `bound`, if a confidence was requested, is an upper bound for the mean, from separate rows."""

    name: str
    multiplier: float
    without: float
    mean: float
    error: float
    inside: int
    covered_without: float | None
    covered: float | None
    bound: float | None = None

    def line(self, unit: str | None) -> str:
        """The effect in words."""
        bound = "" if self.bound is None else f"its mean is at most {self.bound:.4g} with the requested confidence"
        parts = (worth_text(self.multiplier, unit), self.on_truths, bound)
        return f"{visible(self.name)}: {'; '.join(x for x in parts if x)}"

    @property
    def on_truths(self) -> str:
        """The effect on the coverage of rows inside, in words; empty if there is none."""
        if self.covered is None or self.covered_without is None:
            return ""
        if self.multiplier == 0 or self.covered == self.covered_without:
            return ""
        both = f"coverage {self.covered:.3f} ({self.covered_without:.3f} without limits)"
        return f"rows whose true label counts against the limit: {both}"


def worth_text(multiplier: float, unit: str | None) -> str:
    """A multiplier in words: by how much the mean cost falls if the limit is raised by 0.01, times 100.

    >>> worth_text(12.1, "hours"), worth_text(0.0, None)
    ('one more in a hundred rows is worth 12.1 hours', 'it is met without enforcement and costs nothing')
    """
    if multiplier == 0:
        return "it is met without enforcement and costs nothing"
    return f"one more in a hundred rows is worth {with_unit(f'{multiplier:.3g}', unit)}"


@dataclass(frozen=True)
class LimitEffects:
    """The effect of all limits: the mean cost of sets without them and with them, and the effect of each limit."""

    cost_without: float
    cost: float
    limits: tuple[LimitEffect, ...]
    bound_rows: int = 0

    @property
    def multipliers(self) -> tuple[float, ...]:
        """One multiplier per limit, in their order."""
        return tuple(limit.multiplier for limit in self.limits)

    def with_bounds(self, bounds: Sequence[float], rows: int) -> LimitEffects:
        """The same effects with an upper bound for each mean, from `rows` rows."""
        limits = tuple(replace(x, bound=bound) for x, bound in zip(self.limits, bounds, strict=True))
        return replace(self, limits=limits, bound_rows=rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which `from_dict` restores an equal value."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any, limits: Sequence[Limit]) -> LimitEffects:
        """Inverse of `as_dict`, for these limits; refuses anything else."""
        found = tuple(LimitEffect(**_fields(LimitEffect, x)) for x in _fields(cls, data)["limits"])
        made = cls(**{**_fields(cls, data), "limits": found})
        numbers = [made.cost_without, made.cost, *(getattr(x, f.name) for x in found for f in fields(x)[1:6])]
        shares = [x for limit in found for x in (limit.covered_without, limit.covered, limit.bound) if x is not None]
        counts = [made.bound_rows, *(x.inside for x in found)]
        if not (
            [x.name for x in found] == [limit.name for limit in limits]
            and all(_is_number(x) for x in (*numbers, *shares))
            and all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in counts)
            and all(0 <= x.multiplier <= _largest(limit) for x, limit in zip(found, limits, strict=True))
        ):
            raise InputError("its multipliers are damaged for its limits: calibrate and save again")
        return made


def effect_table(found: Mapping[str, LimitEffects], limits: Sequence[Limit]) -> Table:
    """The effects of limits as a table, one row per alpha and limit; `found` maps the text of each alpha to effects."""
    at_most = {limit.name: limit.at_most for limit in limits}
    rows = [(alpha, x) for alpha, effects in found.items() for x in effects.limits]
    bounded = any(x.bound is not None for _, x in rows)
    columns = (
        Column("alpha", 0, kind="number"),
        Column("limit", lambda row: visible(row[1].name)),
        Column("at most", lambda row: f"{at_most[row[1].name]:g}", kind="number"),
        Column("mean", lambda row: f"{row[1].mean:.4g}", kind="number"),
        Column("error", lambda row: f"{row[1].error:.2g}", kind="number"),
        Column("without limits", lambda row: f"{row[1].without:.4g}", kind="number"),
        Column("multiplier", lambda row: f"{row[1].multiplier:.4g}", kind="number"),
        *([Column("upper bound", lambda row: f"{row[1].bound:.4g}", kind="number")] if bounded else []),
    )
    return Table(columns if rows else (), rows)


def effect_lines(found: Mapping[str, LimitEffects], unit: str | None) -> Iterator[str]:
    """The effects in words, including that on the mean cost of the tuning rows."""
    for alpha, effects in found.items():
        for x in effects.limits:
            yield f"at alpha {alpha}, {x.line(unit)}"
        change = effects.cost - effects.cost_without
        costs = (
            f"{with_unit(f'{effects.cost:.4g}', unit)} on the tuning rows, {effects.cost_without:.4g} without limits"
        )
        yield f"at alpha {alpha}, the mean cost is {costs}" if change else f"at alpha {alpha}, limits change no set"


def _fields(kind: type[Any], data: Any) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    if not isinstance(data, Mapping) or set(data) != names:
        raise InputError("its multipliers are damaged: calibrate and save again")
    return dict(data)


def _largest(limit: Limit) -> float:
    """The largest valid multiplier of a limit; the loss with a larger one might not be finite."""
    lo, hi = limit.facts.interval
    return sys.float_info.max / 1e9 / max(1.0, abs(lo), abs(hi))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
