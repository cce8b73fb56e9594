"""The anchor of an oracle that needs one: the price at which its best sets have the required coverage, on separate
rows.

At the anchor, the set of an anchored oracle is exactly the best set, so the nearer the anchor is to the threshold that
calibration will find, the cheaper the sets. Coverage does not depend on the anchor, because the rows on which it is
found are used for nothing else.

These rows are a sample, so the price b at which sets will cover is known only up to an error. Let the anchor be a. If
b > a, sets are grown from S_a: they are S_a | S_b or better, and what that loses to S_b at the price b is the *regret*.
If b < a, sets are cut, to S_a & S_b or better. Where labels leave the best sets as the price rises, one of the two may
be far more expensive than the other; the anchor is then moved to the side where its error costs least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate import Rule, exact_level
from udcp_dsl.prediction.containers import some_rows_of, to_array
from udcp_dsl.prediction.oracle import AnchoredOracle
from udcp_dsl.prediction.stages.stage import Stage, ThresholdRows

if TYPE_CHECKING:
    from udcp_dsl.prediction.oracle import Floats, Indices, Masks, Oracle, Probabilities
    from udcp_dsl.prediction.rows.row_attributes import Names
    from udcp_dsl.prediction.stages.oracle_input import OracleInput
    from udcp_dsl.prediction.stages.setting import Cells, Setting

# The share of the calibration rows that is used for the anchor, and their maximum number.
SHARE, MAX_ROWS = Fraction(1, 4), 1000
# With fewer rows, no anchor is better than one found on them.
_MIN_ROWS = 10
# Relative precision of prices, and the factor between first guesses.
_PRICE_PRECISION, _GUESS_FACTOR = 1e-3, 4.0
# After this many guesses, the level is taken to be out of reach at any price.
_MAX_GUESSES = 40
# Candidate anchors, as offsets in standard errors of the coverage, and the relative precision of their prices.
_CANDIDATE_OFFSETS, _CANDIDATE_PRECISION = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0), 1e-2
# Regret below this share of the cost of the sets is ignored; with fewer rows than this, it cannot be estimated.
_IGNORED_SHARE, _MIN_REGRET_ROWS = 0.02, 250


@dataclass(frozen=True)
class Anchors(Stage):
    """An anchor for each alpha, found on n rows: for all rows and, by group, for each group with enough of the n rows.

    None means that there is no anchor at this alpha: scores are then plain. By difficulty, the groups are *stretches*,
    ranges of the highest probability between `edges`, which come from the n rows. The bins of the thresholds cannot be
    used instead: they depend on the ranks of the new point among the rows of the thresholds.
    """

    n: int
    overall: Mapping[Fraction, float | None]
    by_group: Mapping[str, Mapping[Fraction, float | None]]
    edges: tuple[float, ...] = ()

    name: ClassVar[str] = "anchor"
    article: ClassVar[str] = "the "
    max_rows: ClassVar[int | None] = MAX_ROWS
    by_alpha: ClassVar[bool] = True

    @classmethod
    def takes_part(cls, setting: Setting) -> bool:
        """Whether an anchor is needed here; if limits are enforced, it is found together with their multipliers."""
        return setting.candidates is None and setting.oracle.wants_anchor and not setting.enforces_limits

    @classmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        """A quarter of the rows of each cell; None if that would be too few to find an anchor.

        By difficulty, rows are drawn whatever their difficulty, so that the ranks of the remaining rows and of a new
        row are exchangeable.
        """
        fold = cells.draw(SHARE, MAX_ROWS, np.random.default_rng(setting.promise.seed))
        return (fold,) if len(fold) >= _MIN_ROWS else None

    @classmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: ThresholdRows) -> Anchors:
        (own,) = folds
        groups, left_of, edges = _groups(setting, own, left)
        found = AnchorRows(to_array(own.P), own.truth, groups, setting.harms(own), own.weights)
        rule, alphas = setting.rule(left.groups), setting.promise.alphas
        oracle = setting.oracle.with_inputs(own.inputs)
        assert isinstance(oracle, AnchoredOracle)
        own_alphas = setting.own_alphas
        return find_anchors(
            oracle, found, alphas, rule, left=left.n, left_of=left_of, edges=edges, own_alphas=own_alphas
        )

    @classmethod
    def joined(cls, parts: Sequence[Anchors]) -> Anchors:
        """Join anchors for several alphas that were found on the same rows."""
        first = parts[0]
        overall = {alpha: m for part in parts for alpha, m in part.overall.items()}
        groups = {g: {a: m for part in parts for a, m in part.by_group[g].items()} for g in first.by_group}
        return cls(first.n, overall, groups, first.edges)

    @property
    def rows_used(self) -> int:
        return self.n

    def at_rows(self, oracle: Oracle, alpha: Fraction, given: OracleInput) -> Oracle:
        assert isinstance(oracle, AnchoredOracle)
        return oracle.anchored(self.of_rows(alpha, given.groups, len(given), given.difficulty))

    def of_rows(
        self, alpha: Fraction, groups: Iterable[str] | None, n: int, difficulty: Floats | None = None
    ) -> Floats:
        """The anchor of each of n rows, NaN if it has none; by difficulty, from the rows' highest probabilities."""
        if self.edges and difficulty is not None:
            groups = stretches(difficulty, self.edges)
        if groups is None:
            return np.full(n, _or_nan(self.overall[alpha]))
        return np.array([_or_nan(self.by_group.get(str(g), self.overall)[alpha]) for g in groups], dtype=np.float64)

    def as_dict(self) -> dict[str, Any]:
        groups = {group: _plain(found) for group, found in self.by_group.items()}
        return {"n": self.n, "overall": _plain(self.overall), "by_group": groups, "edges": list(self.edges)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Setting) -> Anchors:
        n, groups, edges = data["n"], data["by_group"], data.get("edges", [])
        rising = isinstance(edges, list) and all(isinstance(x, float) for x in edges) and edges == sorted(edges)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1 or not isinstance(groups, Mapping) or not rising:
            raise InputError("its anchors are damaged: calibrate and save again")
        by_group = {str(group): _read(found) for group, found in groups.items()}
        found = cls(n, _read(data["overall"]), by_group, tuple(edges))
        alphas = set(setting.promise.alphas)
        if not setting.oracle.wants_anchor or any(set(x) != alphas for x in (found.overall, *by_group.values())):
            raise InputError("its anchors do not match its oracle and alphas; save it again")
        return found


def _groups(
    setting: Setting, own: OracleInput, left: ThresholdRows
) -> tuple[Names | None, Counter[str] | None, tuple[float, ...]]:
    """The group or stretch of each row, the number of rows that are left for the threshold of each, and the edges of
    the stretches. None, None, () if all rows share a threshold."""
    if own.groups is not None and left.groups is not None:
        return own.groups, Counter(left.groups.tolist()), ()
    if own.difficulty is None:
        return None, None, ()
    bins = setting.promise.bin_count
    edges = stretch_edges(own.difficulty, bins)
    left_of = Counter({str(b): left.n // bins for b in range(len(edges) + 1)})
    return stretches(own.difficulty, edges), left_of, edges


def threshold_cells(setting: Setting, own: OracleInput, left: ThresholdRows) -> list[tuple[Indices, int]]:
    """The positions of the rows that share a threshold, by group or stretch, each with the number of rows on which the
    threshold is set. Groups that are too small are put together."""
    groups, left_of, _ = _groups(setting, own, left)
    if groups is None or left_of is None:
        return [(np.arange(len(own)), left.n)]
    cells = [(np.flatnonzero(groups == name), left_of[str(name)]) for name in np.unique(groups)]
    rest = [rows for rows, _ in cells if len(rows) < _MIN_ROWS]
    found = [(rows, many) for rows, many in cells if len(rows) >= _MIN_ROWS]
    return [*found, (np.concatenate(rest), left.n)] if rest else found


def stretches(difficulty: Floats, edges: Sequence[float]) -> Names:
    """The number of each row's stretch, as text: up to the first edge, up to the second, and so on."""
    return np.searchsorted(edges, difficulty, side="left").astype(np.str_)


def stretch_edges(difficulty: Floats, bins: int) -> tuple[float, ...]:
    """Edges that split the rows into stretches of about equal size, at most `bins`; equal edges are merged."""
    ordered = np.sort(difficulty)
    return tuple(
        sorted({float(ordered[b * len(ordered) // bins - 1]) for b in range(1, bins) if b * len(ordered) >= bins})
    )


def _or_nan(anchor: float | None) -> float:
    return math.nan if anchor is None else anchor


def _plain(found: Mapping[Fraction, float | None]) -> dict[str, float | None]:
    return {str(alpha): anchor for alpha, anchor in found.items()}


def _read(found: object) -> dict[Fraction, float | None]:
    if not isinstance(found, Mapping):
        raise InputError("its anchors are damaged: calibrate and save again")
    for anchor in found.values():
        number = isinstance(anchor, int | float) and not isinstance(anchor, bool) and 0 <= anchor < math.inf
        if anchor is not None and not number:
            raise InputError(f"an anchor is {anchor!r}, not a price: calibrate and save again")
    return {
        exact_level(alpha, below=None): None if anchor is None else float(anchor) for alpha, anchor in found.items()
    }


@dataclass(frozen=True, eq=False)
class AnchorRows:
    """Separate rows for finding anchors: the probabilities as the oracle sees them, the true labels and, if used, the
    group, harm and weight of each row."""

    P: Probabilities
    y: Indices
    groups: Names | None = None
    harms: Floats | None = None
    weights: Floats | None = None

    def take(self, rows: Indices) -> AnchorRows:
        return some_rows_of(self, rows)

    def anchor(self, oracle: AnchoredOracle, rule: Rule, alpha: Fraction, left: int) -> float | None:
        """The anchor at one alpha, if `left` rows are left for the threshold."""
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        row_weights = weights if self.harms is None else weights * self.harms
        total = float(weights.sum())
        level = rule.covered(left, alpha, float(row_weights.sum()) / total if total > 0 else 0.0)
        plain = self.harms is None and self.weights is None
        return find_anchor(oracle, self.P, self.y, level, None if plain else row_weights)


def find_anchors(
    oracle: AnchoredOracle,
    rows: AnchorRows,
    alphas: Sequence[Fraction],
    rule: Rule,
    *,
    left: int,
    left_of: Mapping[str, int] | None = None,
    edges: tuple[float, ...] = (),
    own_alphas: Mapping[str, Fraction] | None = None,
) -> Anchors:
    """Find an anchor for each alpha on separate `rows`. `left` rows are left for thresholds, `left_of` per group.

    `own_alphas` are the alphas of groups that have their own.
    """
    overall = {alpha: rows.anchor(oracle, rule, alpha, left) for alpha in alphas}
    by_group = {}
    if rows.groups is not None and left_of is not None:
        for group, many in left_of.items():
            own = np.flatnonzero(rows.groups == group)
            if len(own) >= _MIN_ROWS:
                part = rows.take(own)
                level = (own_alphas or {}).get(group)
                by_group[group] = {
                    alpha: part.anchor(_take_rows(oracle, own), rule, level or alpha, many) for alpha in alphas
                }
    return Anchors(len(rows.y), overall, by_group, edges)


def find_anchor(
    oracle: AnchoredOracle, P: Probabilities, y: Indices, level: float, row_weights: Floats | None = None
) -> float | None:
    """The highest price, to a thousandth, at which the best sets cover at most a share `level` of the labels y, each
    weighted by its `row_weights`; or a price nearby, if its expected regret is clearly less.

    0 if the sets at price 0 already cover more; None if no price is high enough, so that there is no anchor.
    """
    rows = PricedRows(oracle, P, y, row_weights)
    anchor = rows.price(level, _PRICE_PRECISION)
    return anchor if anchor is None or len(y) < _MIN_REGRET_ROWS else rows.least_regret(level, anchor)


def _take_rows(oracle: AnchoredOracle, rows: Indices) -> AnchoredOracle:
    """The oracle for some of its rows."""
    some = oracle.take(rows)
    assert isinstance(some, AnchoredOracle)
    return some


class PricedRows:
    """The best sets of rows at all prices asked for so far. A row with the same set at two prices has it at every price
    between them, and is not solved again."""

    def __init__(self, oracle: AnchoredOracle, P: Probabilities, y: Indices, row_weights: Floats | None) -> None:
        self._oracle, self._P, self._y = oracle, P, y
        self._row_weights = np.ones(len(y)) if row_weights is None else row_weights
        self._known: dict[float, NDArray[np.uint8]] = {}  # the sets, eight labels per byte
        self._covers: dict[float, float] = {}

    def cover(self, mu: float) -> float:
        """The share of the labels y, weighted, that the best sets at a price contain."""
        if mu not in self._covers:
            masks, total = self._sets(mu), float(self._row_weights.sum())
            covered = masks[np.arange(len(self._y)), self._y]
            self._known[mu] = np.packbits(masks, axis=1)
            self._covers[mu] = float(self._row_weights[covered].sum()) / total if total > 0 else 1.0
        return self._covers[mu]

    @property
    def highest(self) -> float:
        """The highest price asked for so far."""
        return max(self._known)

    def sets(self, mu: float) -> Masks:
        """The best sets of all rows at a price."""
        self.cover(mu)
        return self._best_sets(mu, np.arange(len(self._P)))

    def price(self, level: float, near: float, guess: float | None = None) -> float | None:
        """The highest price at which the best sets cover at most the level, to a relative precision `near`; None if
        all prices do. `guess` is a price that may be close."""
        if guess:  # if the result lies between these two prices, the search is narrow at once
            self.cover(guess * (1 - _CANDIDATE_PRECISION * 4)), self.cover(guess * (1 + _CANDIDATE_PRECISION * 4))
        if self.cover(0.0) > level:
            return 0.0
        beyond = min((mu for mu in self._known if self.cover(mu) > level), default=None)
        below = max(mu for mu in self._known if beyond is None or mu < beyond)
        low, high = self._oracle.loss.facts.interval
        for _ in range(_MAX_GUESSES):
            if beyond is not None and below > 0:
                break
            mu = beyond / _GUESS_FACTOR if beyond is not None else below * _GUESS_FACTOR or max(high - low, 1e-9)
            if self.cover(mu) > level:
                beyond = mu
            else:
                below = mu
        if beyond is None:
            return None
        while below > 0 and beyond > below * (1 + near):
            middle = float(np.sqrt(below * beyond))
            if self.cover(middle) > level:
                beyond = middle
            else:
                below = middle
        return below

    def least_regret(self, level: float, anchor: float) -> float:
        """The anchor within two standard errors that has the least expected regret."""
        total = float(self._row_weights.sum())
        error = math.sqrt(level * (1 - level) * float((self._row_weights**2).sum())) / total if total > 0 else 0.0
        prices = {0.0: anchor}
        for off in sorted(
            _CANDIDATE_OFFSETS, key=abs, reverse=True
        ):  # farthest first: if they do not matter, none does
            if (
                off
                and level + off * error < 1
                and (mu := self.price(level + off * error, _CANDIDATE_PRECISION)) is not None
            ):
                prices[off] = mu
            if off == _CANDIDATE_OFFSETS[-1] and max(
                self._regret(anchor, mu) for mu in prices.values()
            ) <= self._ignored_regret(anchor):
                return anchor
        likely = {off: math.exp(-(off**2) / 2) for off in prices}
        regrets = {
            off: sum(likely[other] * self._regret(mu, prices[other]) for other in prices) / sum(likely.values())
            for off, mu in prices.items()
        }
        if regrets[0.0] <= self._ignored_regret(anchor):
            return anchor
        return prices[min(prices, key=lambda off: (regrets[off], abs(off)))]

    def _regret(self, anchor: float, mu: float) -> float:
        """The mean loss per row, at price mu, of sets grown or cut from those at the anchor against the best at mu."""
        start, end = self._known[anchor], self._known[mu]
        rows = np.flatnonzero(((start & ~end) if anchor < mu else (end & ~start)).any(axis=1))
        if not len(rows):
            return 0.0
        first, best = self._best_sets(anchor, rows), self._best_sets(mu, rows)
        near = first | best if anchor < mu else first & best
        mass = (self._P[rows] * (near.astype(np.int8) - best.astype(np.int8))).sum(axis=1)
        oracle = _take_rows(self._oracle, rows)
        lost = oracle.costs(near) - oracle.costs(best) - mu * mass
        return max(0.0, float(lost.sum())) / len(self._P)

    def _ignored_regret(self, anchor: float) -> float:
        """The regret to ignore: a small share of what sets at the anchor cost more than those at price 0."""
        every = np.arange(len(self._P))
        costs = [float(self._oracle.costs(self._best_sets(mu, every)).mean()) for mu in (anchor, 0.0)]
        return _IGNORED_SHARE * (costs[0] - costs[1])

    def _best_sets(self, mu: float, rows: Indices) -> Masks:
        """The best sets of some rows at a price that was already asked for."""
        return np.unpackbits(self._known[mu][rows], axis=1, count=self._P.shape[1]).view(np.bool_)

    def _sets(self, mu: float) -> Masks:
        masks = np.zeros(self._P.shape, dtype=bool)
        open_rows = np.ones(len(self._P), dtype=bool)
        below = max((price for price in self._known if price < mu), default=None)
        beyond = min((price for price in self._known if price > mu), default=None)
        if below is not None and beyond is not None:
            open_rows = (self._known[below] != self._known[beyond]).any(axis=1)
            masks[~open_rows] = self._best_sets(below, np.flatnonzero(~open_rows))
        asked = np.flatnonzero(open_rows)
        prices: Floats = np.full(len(asked), mu)
        masks[asked] = _take_rows(self._oracle, asked).best(self._P[asked], prices)
        return masks
