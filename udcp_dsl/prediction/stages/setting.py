"""What a chain of stages is fitted for (`Setting`), and what a stage knows of rows before it draws some (`Cells`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from udcp_dsl.prediction.calibrate import DEFAULT_GRID, Parts, Rule
from udcp_dsl.prediction.calibrate.difficulty import bins_needed
from udcp_dsl.prediction.oracle import AnchoredOracle, Oracle, make_oracle, with_lambda
from udcp_dsl.prediction.promises.harm import Harm

if TYPE_CHECKING:
    from udcp_dsl.prediction.oracle import Indices
    from udcp_dsl.prediction.promises.promise import Promise
    from udcp_dsl.prediction.rows import Rows
    from udcp_dsl.prediction.stages.oracle_input import OracleInput

DECIDER = "price"  # the name of the oracle by which decisions are made


@dataclass(frozen=True, eq=False)
class Setting:
    """A promise, and the oracle whose scores keep it; `candidates` maps each lambda to an oracle to choose from.

    Filled in by stages: `own_alphas`, the alphas of groups, and `decisions`, the names of the parts by decision.
    """

    promise: Promise
    oracle: Oracle
    candidates: Mapping[float, Oracle] | None = None
    own_alphas: Mapping[str, Fraction] = field(default_factory=dict)
    decisions: tuple[str, ...] = ()
    _deciders: list[AnchoredOracle] = field(default_factory=list, repr=False)  # shared with all copies

    @classmethod
    def of(cls, promise: Promise, oracle: Oracle, *, tune: bool) -> Setting:
        """The setting of a promise and an oracle; with tune=True, candidates for every lambda of the grid."""
        return cls(promise.as_asked, oracle, {lam: with_lambda(oracle, lam) for lam in DEFAULT_GRID} if tune else None)

    @property
    def decider(self) -> AnchoredOracle:
        """The oracle whose best sets make the decisions: `oracle` if it has best sets at a price, else `price`; for the
        loss of the spec, without multipliers, so that it is the same before and after these are found."""
        own, loss = self.oracle, self.oracle.loss.of_spec
        if isinstance(own, AnchoredOracle) and own.loss is loss:
            return own
        if not self._deciders:
            named = (own.name, own.options) if isinstance(own, AnchoredOracle) else (DECIDER, {})
            made = make_oracle(named[0], loss, **named[1])
            assert isinstance(made, AnchoredOracle)
            self._deciders.append(made)
        return self._deciders[0]

    @property
    def enforces_limits(self) -> bool:
        """Whether the spec has limits that some set breaks and the oracle can enforce; other oracles report them."""
        able = self.candidates is None and isinstance(self.oracle, AnchoredOracle)
        return able and any(limit.at_most < limit.facts.interval.hi for limit in self.oracle.loss.limits)

    @cached_property
    def harm(self) -> Harm | None:
        """The harm of missing each label, if the promise bounds it."""
        return self.promise.harm(self.oracle.loss)

    def harms(self, given: OracleInput) -> npt.NDArray[np.float64] | None:
        """The harm of missing the true label of each of these rows, if the promise bounds it."""
        return None if self.harm is None else self.harm.of_truth(given.truth, given.inputs)

    def parts(self, given: OracleInput) -> Parts:
        """Which of these rows share a threshold."""
        promise, by_class = self.promise, self.promise.by_class
        y, K = (given.truth, self.oracle.loss.K) if by_class else (None, None)
        named = promise.conditional, given.groups, self.decisions, self.own_alphas
        return Parts(*named, y, K, given.difficulty, promise.bin_count)

    def rule(self, groups: npt.NDArray[np.str_] | None) -> Rule:
        """What each threshold guarantees, if the rows for thresholds have these groups."""
        return self.promise.rule(self.cell_count(groups), self.harm)

    def cell_count(self, groups: npt.NDArray[np.str_] | None) -> int:
        """The number of thresholds: one for all rows, or one per group, class, bin or decision."""
        if self.decisions:
            return len(self.decisions)
        if groups is not None:
            return len(np.unique(groups))
        return (
            self.oracle.loss.K if self.promise.by_class else self.promise.bin_count if self.promise.by_difficulty else 1
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of each row (rows that share a threshold), and the number of rows that a cell needs for its threshold.

    By difficulty, all rows are one cell, because the bin of a row depends on the ranks of the rows that are left.
    """

    codes: Indices
    need: int

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, setting: Setting, rows: Rows, left: Indices) -> Cells:
        """The cells of the rows at the positions `left`."""
        codes: Indices = np.zeros(len(left), dtype=np.int64)
        promise = setting.promise
        groups = rows.groups[left] if promise.by_group and rows.groups is not None else None
        if groups is not None:
            codes = np.unique(groups, return_inverse=True)[1]
        elif promise.by_class:
            codes = rows.truth[left]
        need = setting.rule(groups).needed(min(promise.alphas))
        return cls(codes, bins_needed(promise.bin_count, need) if promise.by_difficulty else need)

    def draw(self, share: Fraction, most: int, rng: np.random.Generator) -> Indices:
        """Draw a share of each cell, at most `most` rows in all, and leave each cell the rows that it needs."""
        taken = []
        fraction = min(float(share), most / max(len(self), 1))
        for cell in np.unique(self.codes):
            rows = rng.permutation(np.flatnonzero(self.codes == cell))
            taken.append(rows[: max(0, min(int(fraction * len(rows)), len(rows) - self.need))])
        found: Indices = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *taken]))
        return found
