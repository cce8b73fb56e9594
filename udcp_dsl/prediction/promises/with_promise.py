"""The most used options of a promise, as properties of the predictor."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from udcp_dsl.prediction.calibrate import Conditional
    from udcp_dsl.prediction.promises.promise import Promise


class WithPromise:
    """Something that keeps a promise."""

    promise: Promise

    @property
    def alphas(self) -> tuple[Fraction, ...]:
        """The values of alpha, as exact fractions."""
        return self.promise.alphas

    @property
    def conditional(self) -> Conditional:
        """Where coverage is guaranteed ("group", "class", "difficulty" or "decision"); None means over all rows."""
        return self.promise.conditional

    @property
    def nonempty(self) -> bool:
        """Whether empty sets are ruled out."""
        return self.promise.nonempty

    @property
    def randomize(self) -> bool:
        """Whether sets are randomised at the threshold."""
        return self.promise.randomize

    @property
    def pool(self) -> bool:
        """Whether small groups and classes use the threshold of all rows."""
        return self.promise.pool

    @property
    def seed(self) -> int:
        """Random seed for the folds and for randomised sets."""
        return self.promise.seed
