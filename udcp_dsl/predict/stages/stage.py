"""A stage: one step of calibration, fitted on rows of its own and then applied to every row.

No later stage and no threshold uses the rows of a stage. So for all that follows, what it learns is a fixed function of
the row, and every guarantee stays exact. To add a stage, add its file and its entry in `STAGES` (`chain`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import DEFAULT_GRID, Level, Rule, Strata
from udcp_dsl.predict.calibrate.strata import bins_needed
from udcp_dsl.predict.harm import Harm
from udcp_dsl.predict.oracle import Oracle, make_oracle, with_lambda

if TYPE_CHECKING:
    from udcp_dsl.predict.chain import Fitted
    from udcp_dsl.predict.oracle import Floats, Indices
    from udcp_dsl.predict.promise import Promise
    from udcp_dsl.rows.matrix import Matrix
    from udcp_dsl.rows.rows import Rows

DECIDER = "price"  # the name of the oracle by which decisions are made


class LimitError(InputError):
    """A limit that cannot be enforced: at the requested coverage, within classes, or with too few rows."""


@dataclass(frozen=True, eq=False)
class FitContext:
    """What a stage is fitted for: the promise, the oracle whose scores keep it, and the strata that share thresholds.

    `candidates` maps each lambda to an oracle to choose from. `left` counts the rows left for thresholds, `left_of`
    those of each stratum by name, `total` all rows; `spent_top` is the highest p of the rows that the repair was fitted
    on, each repaired by a fit without it.
    """

    promise: Promise
    oracle: Oracle
    candidates: Mapping[float, Oracle] | None = None
    strata: Strata = field(default_factory=Strata)
    left: int = 0
    left_of: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    spent_top: Floats | None = None
    _deciders: list[Oracle] = field(default_factory=list, repr=False)  # shared with all copies

    @classmethod
    def of(cls, promise: Promise, oracle: Oracle, *, tune: bool) -> FitContext:
        """The context of a promise and an oracle; with tune=True, candidates for every lambda of the grid."""
        return cls(
            promise.before_fit, oracle, {lam: with_lambda(oracle, lam) for lam in DEFAULT_GRID} if tune else None
        )

    def at(self, alphas: Level | Sequence[Level]) -> FitContext:
        """The same context at other values of alpha."""
        return replace(self, promise=self.promise.at(alphas))

    def with_rows(self, rows: Rows, total: int = 0) -> FitContext:
        """The context with the counts of these rows, which are left for thresholds; by group, with their groups as
        strata."""
        strata = self.strata
        if self.promise.by_group and rows.groups is not None and not strata.names:
            strata = Strata.of_groups(rows.groups, strata.alphas)
        elif self.promise.by_class:
            strata = Strata("class", n_classes=self.oracle.loss.K)
        return replace(self, strata=strata, left=len(rows), total=total or self.total)

    def counting(self, rows: Rows) -> FitContext:
        """The context with the counts of these rows, whose strata are known."""
        counts = dict[str, int]()
        if rows.stratum is not None:
            found = np.bincount(rows.stratum[rows.stratum >= 0], minlength=len(self.strata))
            counts = dict(zip(self.strata.names, found.tolist(), strict=True))
        return replace(self, left=len(rows), left_of=counts)

    @property
    def decider(self) -> Oracle:
        """The oracle whose best sets make the decisions: `oracle` if it has best sets at a price, else `price`; for the
        loss of the spec, without multipliers, so that it is the same before and after these are found."""
        own, loss = self.oracle, self.oracle.loss.of_spec
        if own.has_best and own.loss is loss:
            return own
        if not self._deciders:
            name, options = (own.name, own.options) if own.has_best else (DECIDER, {})
            self._deciders.append(make_oracle(name, loss, **options))
        return self._deciders[0]

    @property
    def enforces_limits(self) -> bool:
        """Whether the spec has limits that some set breaks and the oracle can enforce; other oracles report them."""
        able = self.candidates is None and self.oracle.has_best
        return able and any(limit.at_most < limit.facts.interval.hi for limit in self.oracle.loss.limits)

    @property
    def wants_anchor(self) -> bool:
        """Whether an anchor is needed; if limits are enforced, it is found together with their multipliers."""
        return self.candidates is None and self.oracle.wants_anchor and not self.enforces_limits

    @cached_property
    def harm(self) -> Harm | None:
        """The harm of missing each label, if the promise bounds it."""
        return self.promise.harm(self.oracle.loss)

    def harms(self, rows: Rows) -> npt.NDArray[np.float64] | None:
        """The harm of missing the true label of each of these rows, if the promise bounds it."""
        return None if self.harm is None else self.harm.of_truth(rows.truth, rows.inputs)

    @property
    def rule(self) -> Rule:
        """What each threshold guarantees."""
        by_bin = self.promise.by_difficulty and not self.strata.names
        return self.promise.rule(self.promise.bin_count if by_bin else max(1, len(self.strata)), self.harm)

    def row_weights(self, rows: Rows) -> Floats | None:
        """What covering each row counts for: its weight times its harm; None if all rows count alike."""
        harms = self.harms(rows)
        if harms is None or rows.weights is None:
            return rows.weights if harms is None else harms
        return rows.weights * harms

    def cells(self, rows: Rows, least: int) -> list[tuple[str | None, Indices, int]]:
        """The rows that share a threshold: the stratum's name, the positions of its rows, and the number of rows left
        for its threshold. Strata of fewer than `least` rows are put together, without a name."""
        every: list[tuple[str | None, Indices, int]] = [(None, np.arange(len(rows)), self.left)]
        if rows.stratum is None:
            return every
        found = [(name, np.flatnonzero(rows.stratum == i)) for i, name in enumerate(self.strata.names)]
        large = [(name, places, self.left_of[name]) for name, places in found if len(places) >= least]
        taken = np.concatenate([np.empty(0, dtype=np.int64), *(places for _, places, _ in large)])
        rest = np.delete(np.arange(len(rows)), taken)
        return [*large, (None, rest, self.left)] if len(rest) else [*large]


@dataclass(frozen=True, eq=False)
class StratumBudget:
    """The stratum of each row, as far as it is known before fitting, and how many rows a stratum needs for its
    threshold.

    By difficulty and by decision, all rows count as one stratum: which one a row is in is known only later.
    """

    codes: Indices
    need: int

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, context: FitContext, rows: Rows, left: Indices) -> StratumBudget:
        """The budget of the rows at the positions `left`."""
        codes: Indices = np.zeros(len(left), dtype=np.int64)
        promise, groups = context.promise, 1
        if promise.by_group and rows.groups is not None:
            names, codes = np.unique(rows.groups[left], return_inverse=True)
            groups = len(names)
        elif promise.by_class:
            codes, groups = rows.truth[left], context.oracle.loss.K
        elif promise.by_difficulty:
            groups = promise.bin_count
        need = promise.rule(groups, context.harm).needed(min(promise.alphas))
        return cls(codes, bins_needed(promise.bin_count, need) if promise.by_difficulty else need)

    def draw(self, share: Fraction, most: int, rng: np.random.Generator) -> Indices:
        """Draw a share of each stratum, at most `most` rows in all, and leave each the rows that it needs."""
        taken = []
        fraction = min(float(share), most / max(len(self), 1))
        for code in np.unique(self.codes):
            rows = rng.permutation(np.flatnonzero(self.codes == code))
            taken.append(rows[: max(0, min(int(fraction * len(rows)), len(rows) - self.need))])
        found: Indices = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *taken]))
        return found


class Stage(ABC):
    """A fitted stage, a frozen value. Its class methods apply before it is fitted."""

    name: ClassVar[str]
    article: ClassVar[str] = ""  # before the name in the text that says what rows were used for
    repairs: ClassVar[bool] = False  # whether it changes p itself, and so comes before p is weighted by harm
    by_alpha: ClassVar[bool] = False  # whether it is fitted for each alpha; scores then depend on alpha
    max_rows: ClassVar[int | None] = None  # the maximum number of rows to fit on, if the caller chose them

    @classmethod
    @abstractmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        """The positions of the rows that it takes, in disjoint folds; None if there are too few rows to spare some.

        Random choices come from a generator of its own, seeded by the promise.
        """

    @classmethod
    @abstractmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Self:
        """The stage, fitted on its folds (see `draw_folds`)."""

    @classmethod
    def folds_from_halves(cls, halves: tuple[Indices, Indices]) -> tuple[Indices, ...]:
        """Its folds, if the caller chose the tuning rows; these come as two halves."""
        return (np.concatenate(halves)[: cls.max_rows],)

    def update(self, context: FitContext) -> FitContext:
        """The context from this stage on: with another promise, oracle or strata."""
        return context

    def add_columns(self, context: FitContext, rows: Rows) -> Rows:
        """The rows with what this stage knows of them: other probabilities, or further columns."""
        return rows.with_columns(P=self.repaired(rows.P)) if self.repairs else rows

    def repaired(self, P: Matrix) -> Matrix:
        """The probabilities that the following stages see."""
        return P

    def report(self, fitted: Fitted, folds: Sequence[Rows]) -> Self:
        """The stage with what its folds show once thresholds are set; no set may depend on that."""
        return self

    @property
    def rows_used(self) -> int:
        """The number of rows that it used."""
        return 0

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which `from_dict` restores an equal stage."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Self:
        """Inverse of `as_dict`; refuses data that do not belong to the context."""


class GivenStage(Stage):
    """A stage that is never fitted: it is read from a file, or added to a fitted chain."""

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        return None

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Self:
        raise AssertionError(f"stage {cls.name!r} is given, not fitted")


def placed(context: FitContext, stages: Sequence[Stage], rows: Rows) -> Rows:
    """The rows with the columns of the stages after the repairs."""
    for stage in stages:
        rows = rows if stage.repairs else stage.add_columns(context, rows)
    return rows


def true_scores(oracle: Oracle, rows: Rows, *, nonempty: bool) -> Floats:
    """The scores of the true labels for calibration; with `nonempty`, -inf if the true label is first in the order."""
    scores = oracle.score_of(rows, rows.truth)
    return np.where(oracle.first(rows) == rows.truth, -np.inf, scores) if nonempty else scores
