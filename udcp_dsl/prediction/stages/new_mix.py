"""A new mix of labels: p''(y) proportional to p'(y) r_y, r = new mix / old mix. Only `adapt` adds it to a chain.

It uses no labelled rows: the new mix is known, or estimated on new rows without true labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from udcp_dsl.prediction.calibrate.plain import decode
from udcp_dsl.prediction.probability_repair import LabelShift, Repair
from udcp_dsl.prediction.stages.stage import FitContext, GivenStage

if TYPE_CHECKING:
    from udcp_dsl.prediction.rows.probability_matrix import Matrix


@dataclass(frozen=True, eq=False)
class NewMix(GivenStage):
    """How the mix has changed; scores and the weights of labels depend on it."""

    shift: LabelShift

    name: ClassVar[str] = "new mix"
    repairs: ClassVar[bool] = True

    @cached_property
    def _repair(self) -> Repair:
        return self.shift.adapted(Repair())

    def repaired(self, P: Matrix) -> Matrix:
        found: Matrix = self._repair.apply(P)
        return found

    def __str__(self) -> str:
        n = self.shift.n_rows
        how = f"estimated on {n:,} rows without true labels" if n else "as given"
        return f"adapted to a new mix of labels, {how}: {self.shift.moved()}"

    @property
    def condition(self) -> str:
        """The condition under which the guarantee holds, as the end of a clause."""
        condition = "as far as the estimated ratios are right" if self.shift.n_rows else "if the given ratios are right"
        return f"for the new mix of labels, and only {condition}"

    def as_dict(self) -> dict[str, Any]:
        return {"old": self.shift.old.tolist(), "new": self.shift.new.tolist(), "rows": self.shift.n_rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> NewMix:
        labels, old, new = context.oracle.loss.labels, decode(data["old"], "old mix"), decode(data["new"], "new mix")
        return cls(LabelShift(old, new, data["rows"], tuple(labels)))  # type: ignore[arg-type]  # checked there
