"""A stage: one step of calibration, fitted on separate rows and then applied to every row.

No later stage and no threshold uses the rows of a stage. So for all that follows, what it learns is a fixed function of
the row, and every guarantee stays exact. To add a stage, add its file and its entry in `STAGES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from udcp_dsl.prediction.oracle import Indices, Oracle
    from udcp_dsl.prediction.rows.probability_matrix import Matrix
    from udcp_dsl.prediction.stages.chain import Chain
    from udcp_dsl.prediction.stages.oracle_input import OracleInput
    from udcp_dsl.prediction.stages.setting import Cells, Setting


@dataclass(frozen=True, eq=False)
class ThresholdRows:
    """The number of rows left for thresholds, of `total` in all, and their groups if thresholds are by group."""

    n: int
    groups: npt.NDArray[np.str_] | None = None
    total: int = 0


class Stage(ABC):
    """A fitted stage, a frozen value. Its class methods apply before it is fitted."""

    name: ClassVar[str]
    # Comes before the name in the text that says what rows were used for.
    article: ClassVar[str] = ""
    # Whether it changes p itself, and so comes before p is weighted by harm.
    repairs: ClassVar[bool] = False
    # Whether it makes scores depend on alpha.
    by_alpha: ClassVar[bool] = False
    # The maximum number of rows to fit on, if the caller chose the tuning rows (see `split_of`).
    max_rows: ClassVar[int | None] = None

    @classmethod
    @abstractmethod
    def takes_part(cls, setting: Setting) -> bool:
        """Whether the promise or the oracle needs this stage."""

    @classmethod
    @abstractmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        """The positions of the rows that it takes, in disjoint folds; None if there are too few rows to spare some.

        Random choices come from a generator of its own, seeded by the promise.
        """

    @classmethod
    @abstractmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: ThresholdRows) -> Self:
        """The stage, fitted on its folds (see `deal`)."""

    @classmethod
    def split_of(cls, halves: tuple[Indices, Indices]) -> tuple[Indices, ...]:
        """Its folds, if the caller chose the tuning rows; these come as two halves."""
        return (np.concatenate(halves)[: cls.max_rows],)

    def after_thresholds(self, chain: Chain, folds: Sequence[OracleInput]) -> Stage:
        """The stage with what its folds show once thresholds are set; no set may depend on that."""
        return self

    @property
    @abstractmethod
    def rows_used(self) -> int:
        """The number of rows that it used."""

    def repaired(self, P: Matrix) -> Matrix:
        """The probabilities that the following stages see."""
        return P

    def promised(self, setting: Setting) -> Setting:
        """The setting with what this stage has found: alphas of the promise, or cells of rows."""
        return setting

    def placed(self, setting: Setting, given: OracleInput) -> OracleInput:
        """The rows with the cells that this stage assigns to them."""
        return given

    def settled(self, setting: Setting) -> Oracle:
        """The oracle that gives the scores from this stage on."""
        return setting.oracle

    def at_rows(self, oracle: Oracle, alpha: Fraction, given: OracleInput) -> Oracle:
        """The oracle for these rows, at one alpha."""
        return oracle

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which `from_dict` restores an equal stage."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Setting) -> Self:
        """Inverse of `as_dict`; refuses data that do not belong to the setting."""


class GivenStage(Stage):
    """A stage that is never fitted: it is read from a file, or added to a fitted chain."""

    @classmethod
    def takes_part(cls, setting: Setting) -> bool:
        return False

    @classmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        return None

    @classmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: ThresholdRows) -> Self:
        raise AssertionError(f"stage {cls.name!r} is given, not fitted")

    @property
    def rows_used(self) -> int:
        return 0
