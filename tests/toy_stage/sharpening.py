"""A toy stage: p raised to a power that is asked for, less what the mean highest p of 20 rows of its own says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from udcp_dsl.predict.stages.stage import Stage


@dataclass(frozen=True)
class Sharpening(Stage):
    power: float
    rows: int

    name: ClassVar[str] = "sharpening"
    repairs: ClassVar[bool] = True

    @classmethod
    def draw_folds(cls, context: Any, budget: Any) -> tuple[Any, ...]:
        return (np.random.default_rng([context.promise.seed, 99]).permutation(len(budget))[:20],)

    @classmethod
    def fit(cls, context: Any, folds: Sequence[Any]) -> Sharpening:
        (own,) = folds
        return cls(float(context.promise.sharpen - own.P.max(axis=1).mean()), len(own))

    @property
    def rows_used(self) -> int:
        return self.rows

    def repaired(self, P: Any) -> Any:
        sharp = P**self.power
        return sharp / sharp.sum(axis=1, keepdims=True)

    def as_dict(self) -> dict[str, Any]:
        return {"power": self.power, "rows": self.rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: Any) -> Sharpening:
        return cls(data["power"], data["rows"])
