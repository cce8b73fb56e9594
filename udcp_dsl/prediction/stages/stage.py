"""A stage: one step of calibration, fitted on separate rows and then applied to every row.

No later stage and no threshold uses the rows of a stage. So what it learns is a fixed function of the row for all that
follow, and every guarantee stays exact. To add one: its file, and its line in `STAGES`.
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
class Left:
    """How many rows are left for thresholds, of `total` that were given; and of which groups they are, where thresholds
    are by group."""

    n: int
    groups: npt.NDArray[np.str_] | None = None
    total: int = 0


class Stage(ABC):
    """A fitted stage: a frozen value. What it is before it is fitted are its class methods."""

    name: ClassVar[str]
    # Before its name, where it is said what rows were for.
    article: ClassVar[str] = ""
    # Whether it changes p itself, and so comes before harm weighs p.
    repairs: ClassVar[bool] = False
    # Whether scores depend on alpha by it.
    by_alpha: ClassVar[bool] = False
    # How many rows it is fitted on at most, where somebody else chose them.
    most: ClassVar[int | None] = None

    @classmethod
    @abstractmethod
    def takes_part(cls, setting: Setting) -> bool:
        """Whether the promise or the oracle asks for it."""

    @classmethod
    @abstractmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        """The rows that it wants, as positions in disjoint folds; None where there are too few to do without them.

        Random choices come from a generator of its own, named by the promise's seed.
        """

    @classmethod
    @abstractmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: Left) -> Self:
        """The stage, fitted on the folds that it wanted."""

    @classmethod
    def split_of(cls, halves: tuple[Indices, Indices]) -> tuple[Indices, ...]:
        """Its folds where the rows to tune on were chosen by somebody else, as two halves."""
        return (np.concatenate(halves)[: cls.most],)

    def after_thresholds(self, chain: Chain, folds: Sequence[OracleInput]) -> Stage:
        """The stage with what is known once thresholds are set, from rows of its own; nothing may depend on it."""
        return self

    @property
    @abstractmethod
    def rows_used(self) -> int:
        """How many rows it was fitted on."""

    def repaired(self, P: Matrix) -> Matrix:
        """The probabilities that the following stages see."""
        return P

    def promised(self, setting: Setting) -> Setting:
        """The setting with what it has found out about the promise, or about the cells of rows."""
        return setting

    def placed(self, setting: Setting, given: OracleInput) -> OracleInput:
        """Rows with the cells that it puts them in."""
        return given

    def settled(self, setting: Setting) -> Oracle:
        """The oracle that scores from now on."""
        return setting.oracle

    def at_rows(self, oracle: Oracle, alpha: Fraction, given: OracleInput) -> Oracle:
        """The oracle for these rows, at one alpha."""
        return oracle

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which `from_dict` makes an equal stage."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Setting) -> Self:
        """What `as_dict` gave; refuses what does not belong to the setting."""


class GivenStage(Stage):
    """A stage that is never fitted: it is read from a file, or put into the chain by hand."""

    @classmethod
    def takes_part(cls, setting: Setting) -> bool:
        return False

    @classmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        return None

    @classmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: Left) -> Self:
        raise AssertionError(f"stage {cls.name!r} is given, not fitted")

    @property
    def rows_used(self) -> int:
        return 0
