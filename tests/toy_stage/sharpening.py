"""A toy stage: p raised to a power that is asked for, less what the mean highest p of 20 rows of its own says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from udcp_dsl.prediction.stages.stage import Stage, ThresholdRows


@dataclass(frozen=True)
class Sharpening(Stage):
    power: float
    rows: int

    name: ClassVar[str] = "sharpening"
    repairs: ClassVar[bool] = True

    @classmethod
    def takes_part(cls, setting: Any) -> bool:
        return setting.promise.sharpen is not None

    @classmethod
    def deal(cls, setting: Any, cells: Any) -> tuple[Any, ...]:
        return (np.random.default_rng([setting.promise.seed, 99]).permutation(len(cells))[:20],)

    @classmethod
    def fit(cls, setting: Any, folds: Sequence[Any], left: ThresholdRows) -> Sharpening:
        (own,) = folds
        return cls(float(setting.promise.sharpen - own.P.max(axis=1).mean()), len(own))

    @property
    def rows_used(self) -> int:
        return self.rows

    def repaired(self, P: Any) -> Any:
        sharp = P**self.power
        return sharp / sharp.sum(axis=1, keepdims=True)

    def as_dict(self) -> dict[str, Any]:
        return {"power": self.power, "rows": self.rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Any) -> Sharpening:
        return cls(data["power"], data["rows"])
