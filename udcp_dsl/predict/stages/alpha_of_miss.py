"""The alpha for a given worth w of a miss: it minimises mean cost + w * miss rate, on separate rows.

For each miss rate r that a threshold has on these rows, nine tenths of them give the threshold that misses r, and the
cost and misses of its sets are measured on the last tenth, each tenth in turn. (Measured on the rows it was set on, the
threshold of a small r looks cheaper than it is, because covering the last few rows costs much. For the same reason,
costs and misses are averaged over the true rates that a threshold may have, by the distribution of its rank.) The r
with the least cost + w * misses is chosen, the smallest of several. Alpha is the level whose threshold, set on the n
remaining rows, misses that share: 1 - k / (n + 1) with k = ceil(n (1 - r)). It lies in [1 / (n + 1), 1/2]. If more
misses would be cheaper still, abstaining is cheapest, and nothing is guaranteed. Coverage is guaranteed at this alpha,
because the rows that it was found on set no threshold. Sets at the price w itself would do if p were right, but not
otherwise.

Limits of the spec are left out, also where only they make anchors necessary.

For an oracle with anchors, the curve runs over prices instead of thresholds, because its sets at an anchor are the best
sets there. For an oracle whose lambda is still to be tuned, the best lambda at each rate counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Rule, exact_level, show_level
from udcp_dsl.predict.oracle import without_limits
from udcp_dsl.predict.promise import LARGEST_FOUND
from udcp_dsl.predict.stages.anchor import PricedRows
from udcp_dsl.predict.stages.stage import FitContext, Stage, StratumBudget, true_scores
from udcp_dsl.rows.columns import BlockedMatrix, to_array
from udcp_dsl.showing import with_unit

if TYPE_CHECKING:
    from udcp_dsl.predict.oracle import Floats, Indices, Masks, Oracle
    from udcp_dsl.rows.rows import Rows

# The share of the rows that is used, and their maximum number. A small alpha depends on the few rows that are missed:
# with fewer of these, the error of alpha costs more than additional rows for the threshold gain.
SHARE, MAX_ROWS = Fraction(1, 2), 2000
# The least number of rows in all, and of a group for its own alpha.
MIN_ROWS, MIN_GROUP_ROWS = 10, 50
# The number of thresholds to try: as many as give this many entries of scores, within these bounds.
_MAX_CELLS, _MIN_TRIED, _MAX_TRIED = 1 << 29, 64, 400
# The prices to try first, as powers of 4 (up to this one) times the worth; then factors around the best price.
_MAX_POWER, _REFINEMENTS = 6, (2.0, 2**0.5, 2**0.25, 2**0.125)
_FOLDS = 10  # each is measured at thresholds set on the others
_STREAM = 7  # the random stream for the folds, different for each stage


class AbstainingIsCheapest(InputError):
    """A miss is worth so little that sets that miss more than half of the truths are cheapest, misses included."""


@dataclass(frozen=True)
class Found:
    """An alpha, and the mean cost and miss rate of its sets, estimated on the rows that it was found on."""

    alpha: Fraction
    cost: float
    missed: float


@dataclass(frozen=True)
class WorthOfMiss(Stage):
    """What was found on n rows: for all of them and, if coverage is by group, for each group."""

    n: int
    overall: Found
    by_group: Mapping[str, Found]

    name: ClassVar[str] = "alpha"
    max_rows: ClassVar[int | None] = MAX_ROWS

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        fold = budget.draw(SHARE, MAX_ROWS, np.random.default_rng([context.promise.seed, _STREAM]))
        if len(fold) < MIN_ROWS:
            raise InputError(
                f"miss finds alpha on half of the rows, and half of {len(budget)} is too few: give "
                f"{int(MIN_ROWS / SHARE)} rows or more, or alpha"
            )
        return (fold,)

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> WorthOfMiss:
        (own,) = folds
        own = own.with_columns(P=to_array(own.P)) if isinstance(own.P, BlockedMatrix) else own
        context = replace(context, oracle=without_limits(context.oracle))
        overall = _find(context, own, context.left, "")
        by_group = dict[str, Found]()
        for i, (group, left) in enumerate(context.left_of.items()):
            rows = np.flatnonzero(own.stratum == i)
            if len(rows) >= MIN_GROUP_ROWS:
                by_group[group] = _find(context, own.take(rows), left, f" in group {group!r}")
            else:  # the alpha of all rows, or the least that its few rows allow
                by_group[group] = replace(overall, alpha=max(overall.alpha, _level(context.rule, left, 0.0)))
        return cls(len(own), overall, by_group)

    @property
    def rows_used(self) -> int:
        return self.n

    @property
    def alpha(self) -> Fraction:
        """The alpha of all rows, or the largest of the groups, so that all rows together are also covered 1 - alpha."""
        return max((found.alpha for found in self.by_group.values()), default=self.overall.alpha)

    def update(self, context: FitContext) -> FitContext:
        own = {group: found.alpha for group, found in self.by_group.items()}
        return replace(context.at(self.alpha), strata=replace(context.strata, alphas=own))

    def sentence(self, context: FitContext) -> str:
        """How alpha was found, in one sentence."""
        worth, unit = context.promise.miss or 0.0, context.oracle.loss.unit
        found = self.overall
        total = with_unit(f"{found.cost + worth * found.missed:.4g}", unit)
        of_groups = ", ".join(f"{show_level(x.alpha)} in {group!r}" for group, x in self.by_group.items())
        return (
            f"alpha {of_groups or show_level(found.alpha)} is where cost + {with_unit(f'{worth:g}', unit)} for each "
            f"miss is least on {self.n:,} other rows: {found.cost:.4g} + {worth:g} * {found.missed:.4g} = {total}"
            + (" over all rows" if of_groups else "")
        )

    def as_dict(self) -> dict[str, Any]:
        groups = {group: _plain(found) for group, found in self.by_group.items()}
        return {"n": self.n, "overall": _plain(self.overall), "by_group": groups}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> WorthOfMiss:
        n, groups = data["n"], data["by_group"]
        wrong = isinstance(n, bool) or not isinstance(n, int) or n < 1 or not isinstance(groups, Mapping)
        if wrong or context.promise.miss is None or (groups and not context.promise.by_group):
            raise InputError("the alpha that was found does not match its promise; save it again")
        return cls(n, _read(data["overall"]), {str(group): _read(found) for group, found in groups.items()})


def _plain(found: Found) -> dict[str, Any]:
    return {"alpha": str(found.alpha), "cost": found.cost, "missed": found.missed}


def _read(data: Any) -> Found:
    alpha, numbers = exact_level(data["alpha"]), (data["cost"], data["missed"])
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in numbers)
    if alpha > LARGEST_FOUND or not plain:
        raise InputError("the alpha that was found is damaged; calibrate and save again")
    return Found(alpha, float(numbers[0]), float(numbers[1]))


class _Point(NamedTuple):
    """The alpha of a miss rate, and the held-out mean cost and miss rate of the sets there."""

    alpha: Fraction
    cost: float
    missed: float


@dataclass(frozen=True, eq=False)
class _Curve:
    """The cost of each row, and whether it is missed, along rising thresholds or prices: (thresholds, rows)."""

    costs: Floats
    missed: Masks
    weights: Floats

    def rates(self, rows: Indices) -> Floats:
        """The miss rate of some rows at each threshold."""
        found: Floats = self.missed[:, rows] @ self.weights[rows] / self.weights[rows].sum()
        return found

    def held_out(self, rates: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Mean cost and miss rate at the threshold of each rate; each row is measured at a threshold set on others."""
        n = self.costs.shape[1]
        cost, missed = np.zeros(len(rates)), np.zeros(len(rates))
        for held in np.array_split(rng.permutation(n), min(_FOLDS, n)):
            known = self.rates(np.setdiff1d(np.arange(n), held))
            # The first threshold that misses at most the rate. Along prices, miss rates need not fall: hence `falling`.
            falling = np.minimum.accumulate(known)
            at = np.minimum(np.searchsorted(-falling, -rates - 1e-12, side="left"), len(known) - 1)
            cost += self.costs[at][:, held] @ self.weights[held]
            missed += self.missed[at][:, held] @ self.weights[held]
        spread = _threshold_chances(rates, n)
        return spread @ cost / self.weights.sum(), spread @ missed / self.weights.sum()


def _threshold_chances(rates: Floats, n: int) -> Floats:
    """In row i, the probabilities that a threshold that misses rates[i] of n rows has each of the rising `rates` in
    truth, by the Beta distribution of a rank. A rate of 1 is certain: there every set is empty."""
    from scipy.special import betainc  # slow to import

    middles = (rates[1:] + rates[:-1]) / 2
    below = betainc(n * rates[:, None] + 1, n * (1 - rates[:, None]) + 1, middles[None, :])
    found: Floats = np.diff(np.pad(below, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))), axis=1)
    found[rates == 1.0] = rates == 1.0
    return found


def _find(context: FitContext, own: Rows, left: int, where: str) -> Found:
    """The alpha of these rows, if `left` rows are left for the threshold; an error if abstaining is cheapest."""
    worth = context.promise.miss
    assert worth is not None
    rng, every = np.random.default_rng([context.promise.seed, _STREAM, 1]), np.arange(len(own))
    points = list[_Point]()
    for curve in _curves(context, own, worth):
        rates = np.unique(curve.rates(every))
        levels = [_level(context.rule, left, rate) for rate in rates.tolist()]
        points += map(_Point, levels, *(x.tolist() for x in curve.held_out(rates, rng)))
    within = [point for point in points if point.alpha <= LARGEST_FOUND]
    beyond = [point for point in points if point.alpha > LARGEST_FOUND]
    nothing = _Point(Fraction(1), math.inf, 1.0)
    best = min(within, key=lambda point: (_total(point, worth), point.alpha), default=nothing)
    if any(_total(point, worth) < _total(best, worth) for point in beyond):
        unit = context.oracle.loss.unit
        enough = _least_worth(within, beyond)
        larger = f"miss of about {with_unit(f'{enough:.3g}', unit)} or more" if enough < math.inf else "larger miss"
        raise AbstainingIsCheapest(
            f"a miss is worth {with_unit(f'{worth:g}', unit)}, less than it costs to avoid it{where}: missing more "
            f"than half of the true labels would be cheapest, so calibration stops; give a {larger}, or alpha"
        )
    return Found(best.alpha, best.cost, best.missed)


def _total(point: _Point, worth: float) -> float:
    return point.cost + worth * point.missed


def _least_worth(within: Sequence[_Point], beyond: Sequence[_Point]) -> float:
    """The least worth of a miss at which, for each point in `beyond`, some point in `within` has no larger total."""
    needed = [
        min(
            (max(0.0, x.cost - y.cost) / (y.missed - x.missed) for x in within if y.missed > x.missed), default=math.inf
        )
        for y in beyond
    ]
    return max(needed, default=0.0)


def _level(rule: Rule, n: int, missed: float) -> Fraction:
    """The smallest alpha with a finite threshold on n rows that misses at least this share of them, rounded down to
    whole rows; in as many decimals as distinguish n ranks."""
    k = min(n, max(0, math.ceil(n * (1 - missed) - 1e-9)))
    digits = len(str(n + 1)) + (rule.confidence is not None)
    low, high = 0, 10**digits  # `high` stands for alpha = 1
    while high - low > 1:
        middle = (low + high) // 2
        if rule.rank(n, Fraction(middle, 10**digits)) <= k:
            high = middle
        else:
            low = middle
    return Fraction(high, 10**digits)


def _curves(context: FitContext, own: Rows, worth: float) -> Iterator[_Curve]:
    """The costs and misses of sets on these rows, along thresholds or prices: for the oracle, or each candidate."""
    oracle = context.oracle
    if context.candidates is not None:
        yield from (_by_threshold(context, candidate, own) for candidate in context.candidates.values())
    elif oracle.wants_anchor:
        yield _by_price(context, oracle, own, worth)
    else:
        yield _by_threshold(context, oracle, own)


def _by_threshold(context: FitContext, oracle: Oracle, own: Rows) -> _Curve:
    """The curve along thresholds: the scores of true labels, and minus infinity, where every set is empty or holds only
    its first label."""
    nonempty = context.promise.nonempty
    true, scores = true_scores(oracle, own, nonempty=nonempty), oracle.scores(own)
    if nonempty:
        scores = scores.copy()
        scores[np.arange(len(scores)), oracle.first(own)] = -np.inf
    taus = np.unique(np.append(true, -np.inf))
    tried = min(_MAX_TRIED, max(_MIN_TRIED, _MAX_CELLS // max(1, scores.size)))
    if len(taus) > tried:  # dense where few rows are missed: relative steps matter
        taus = taus[-np.unique(np.geomspace(1, len(taus), tried).round().astype(np.intp))[::-1]]
    costs, sizes = np.empty((len(taus), len(scores))), np.full(len(scores), -1)
    for t, tau in enumerate(taus.tolist()):
        mask = scores <= tau
        now = np.count_nonzero(mask, axis=1)
        changed = np.flatnonzero(now != sizes)  # sets only grow
        costs[t] = costs[t - 1]
        costs[t, changed], sizes = _costs(oracle, own, changed, mask[changed]), now
    return _Curve(costs, true > taus[:, None], _weights(own))


def _by_price(context: FitContext, oracle: Oracle, own: Rows, worth: float) -> _Curve:
    """The curve along prices around the worth; farthest first, as rows with equal sets there are not solved again."""
    own = own.with_columns(P=to_array(own.P))
    P, truth, rows, weights = own.P, own.truth, np.arange(len(own)), _weights(own)
    best = PricedRows(oracle, own, None)
    found: dict[float, tuple[Floats, Masks]] = {}

    def try_price(mu: float) -> None:
        if mu not in found:
            mask = best.sets(mu)
            if context.promise.nonempty:
                bare = np.flatnonzero(~mask.any(axis=1))
                mask[bare, P[bare].argmax(axis=1)] = True
            found[mu] = _costs(oracle, own, rows, mask), ~mask[rows, truth]

    def total(mu: float) -> float:
        costs, missed = found[mu]
        return float(weights @ (costs + worth * missed))

    ends = sorted(range(-_MAX_POWER, _MAX_POWER + 1), key=lambda power: (-abs(power), power))
    for mu in (0.0, *(worth * 4.0**power for power in ends)):
        try_price(mu)
    for step in _REFINEMENTS:
        middle = min(found, key=lambda mu: (total(mu), -mu))
        for mu in (middle / step, middle * step):
            try_price(mu)
    rising = [found[mu] for mu in sorted(found)]
    return _Curve(np.array([costs for costs, _ in rising]), np.array([missed for _, missed in rising]), weights)


def _costs(oracle: Oracle, own: Rows, rows: Indices, masks: Masks) -> Floats:
    return oracle.loss.batch(masks, inputs=None if own.inputs is None else own.inputs[rows])


def _weights(own: Rows) -> Floats:
    return np.ones(len(own)) if own.weights is None or not own.weights.any() else own.weights
