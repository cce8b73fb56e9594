"""What a predictor says of its promise: the options that are asked for most, by their names."""

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
        """The levels that it is calibrated for."""
        return self.promise.alphas

    @property
    def conditional(self) -> Conditional:
        """Within what coverage is promised: groups, classes, bins by difficulty, decisions, or None."""
        return self.promise.conditional

    @property
    def nonempty(self) -> bool:
        """Whether no set is empty."""
        return self.promise.nonempty

    @property
    def randomize(self) -> bool:
        """Whether sets are randomised."""
        return self.promise.randomize

    @property
    def pool(self) -> bool:
        """Whether small groups and classes take the threshold of all rows."""
        return self.promise.pool

    @property
    def seed(self) -> int:
        """The seed of folds and of randomised sets."""
        return self.promise.seed
