"""Thresholds: one for all points, or one per group, class, difficulty bin or decision.

A *cell* is the set of points that share a threshold: all points (marginal), or those of a group, a class or a bin.
Decisions are groups whose names are known beforehand, so a decision without points has a cell, too. The guarantee holds
within every cell, since its points are exchangeable with a test point in the same cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import InputError, RowFault, warn
from udcp_dsl.prediction.calibrate.cells import (
    Cell,
    Cellwise,
    Conditional,
    asked,
    cell_as_dict,
    cell_from_dict,
    joined,
    make_cell,
)
from udcp_dsl.prediction.calibrate.checked_arrays import (
    FloatArray,
    Groups,
    IntArray,
    as_classes,
    as_scores,
    as_weights,
    group_names,
    points_of_cells,
)
from udcp_dsl.prediction.calibrate.difficulty import as_bins, as_difficulty, bin_cells, bin_names, rank_bins
from udcp_dsl.prediction.calibrate.levels import Level, exact_level, levels_of, points_needed, rank, show_level
from udcp_dsl.prediction.calibrate.masses import as_written
from udcp_dsl.prediction.calibrate.plain import RESAVE, decode, encode, fields
from udcp_dsl.prediction.calibrate.rule import Rule
from udcp_dsl.prediction.calibrate.shortage import CalibrationWarning, listed, warn_of_too_few
from udcp_dsl.prediction.containers import flag

COVERAGE = Rule()
MODES = (None, "group", "class", "difficulty", "decision")


def threshold(scores: ArrayLike, alpha: Level) -> float:
    """The k-th smallest score of the true labels, k = ceil((n + 1)(1 - alpha)): sets {y : s(y) <= threshold} cover.

    Infinite scores are legal. If k > n, the threshold is infinite, and a `CalibrationWarning` says how many points are
    needed. Refuses NaN and anything but a one-dimensional array of numbers.

    >>> threshold([0.3, 0.1, 0.2], alpha=0.5)
    0.2
    """
    values, level = as_scores(scores), exact_level(alpha)
    if rank(values.size, level) > values.size:
        warn(
            f"{values.size} calibration rows are too few: alpha {show_level(level)} needs {points_needed(level)}; "
            "the threshold is infinite, so every prediction set contains all labels",
            CalibrationWarning,
        )
    return make_cell(values, (level,), Rule()).thresholds[0]


@dataclass(frozen=True, eq=False)
class Parts(Cellwise):
    """Which points share a threshold; by default, all of them.

    By group: `groups` has one name or number per row (7, 7.0 and "7" are one group), and `own_alphas` the alphas of
    groups that have their own. By decision: `groups` as well, and `decisions`, the names of all decisions. By class:
    `y`, the indices of the true labels, each below `n_classes`. By difficulty: `difficulty`, the highest probability of
    each row, and the number of `bins`.
    """

    conditional: Conditional = None
    groups: Groups | None = None
    decisions: Sequence[str] = ()
    own_alphas: Mapping[str, Fraction] = field(default_factory=dict)
    y: ArrayLike | None = None
    n_classes: int | None = None
    difficulty: ArrayLike | None = None
    bins: int = 4

    def __post_init__(self) -> None:
        given = f"(conditional is {self.conditional!r})"
        if self.conditional not in MODES:
            modes = 'choose None (marginal), "group", "class", "difficulty" or "decision"'
            raise InputError(f"conditional is {self.conditional!r}: {modes}")
        if (self.groups is not None) != self.by_name:
            raise InputError(f"groups= and {asked('group')} must be given together {given}")
        if (self.difficulty is not None) != self.by_difficulty:
            raise InputError(f"difficulty= and {asked('difficulty')} must be given together {given}")
        if {self.y is not None, self.n_classes is not None} != {self.by_class}:
            raise InputError(f"y=, n_classes= and {asked('class')} must be given together {given}")

    def divide(self, n: int) -> tuple[tuple[str, ...], tuple[float, ...], list[IntArray]]:
        """The names of groups or decisions, the edges between bins, and the indices of the points in each cell."""
        names, edges = tuple[str, ...](), tuple[float, ...]()
        parts = [np.arange(n)]
        if self.by_name:
            rows = group_names(self.groups, n)
            names = tuple(sorted({*rows, *self.decisions}))
            index = {name: i for i, name in enumerate(names)}
            parts = points_of_cells(np.array([index[name] for name in rows], dtype=np.intp), len(names))
        elif self.by_class:
            classes, codes = as_classes(self.y, self.n_classes, n)
            parts = points_of_cells(codes, classes)
        elif self.by_difficulty:
            edges, parts = rank_bins(as_difficulty(self.difficulty, n), as_bins(self.bins))
        return names, edges, parts


MARGINAL = Parts()


@dataclass(frozen=True, eq=False)
class Calibration(Cellwise):
    """Thresholds for one or several alphas, marginal, by group, class or difficulty: plain data, made by `calibrate`.

    `cells` holds one cell (marginal), one per group in the order of `groups`, one per class, or two per bin: inside it
    and on the edge above it, for the bins between `edges` (see `difficulty`). `pooled` is the cell of all points if
    calibrated with pool=True, else None; cells with too few points, and unseen groups, then use it. `rule` says what
    the thresholds guarantee. `label_weights` (K,), if points are weighted by label (see `label_weighted`), give each
    label its own threshold. `own_alphas` maps groups to the alphas that replace the single alpha.
    """

    conditional: Conditional
    alphas: tuple[Fraction, ...]
    cells: tuple[Cell, ...]
    groups: tuple[str, ...] = ()
    pooled: Cell | None = None
    randomize: bool = False
    rule: Rule = COVERAGE
    edges: tuple[float, ...] = ()
    points: int | None = None  # the number of points, by difficulty only: the cells of a bin overlap
    label_weights: FloatArray | None = None
    own_alphas: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of calibration points."""
        return sum(cell.n for cell in self.cells) if self.points is None else self.points

    @property
    def weighted(self) -> bool:
        """Whether thresholds depend on the weight of the new point."""
        return self.cells[0].weights is not None and self.label_weights is None

    @property
    def named_cells(self) -> tuple[tuple[str | None, Cell], ...]:
        """The cells with their names, None for all points and for classes; of each bin, only the inside."""
        if self.by_difficulty:
            return tuple(zip(bin_names(self.edges), self.cells[::2], strict=True))
        names = self.groups if self.by_name else [None] * len(self.cells)
        return tuple(zip(names, self.cells, strict=True))

    def level(self, alpha: Level | None = None) -> Fraction:
        """The calibrated alpha that is meant; `alpha` may be left out if there is only one."""
        known = ", ".join(map(show_level, self.alphas))
        if alpha is None:
            if len(self.alphas) > 1:
                raise InputError(f"calibrated for several alphas: choose one of {known}")
            return self.alphas[0]
        level = exact_level(alpha, below=self.rule.below)
        if level not in self.alphas:
            raise InputError(f"not calibrated for alpha {show_level(level)}: choose from {known}, or calibrate again")
        return level

    def too_few(self, alpha: Level | None = None) -> tuple[str | int, ...]:
        """The groups and bins (by name) or classes (by index) with too few points for a threshold of their own.

        For a marginal calibration, whose only cell is 0: (0,) or ().
        """
        level = self.level(alpha)
        named = enumerate(self.named_cells)
        return tuple(i if x is None else x for i, (x, c) in named if c.n < self.rule.needed(self.own_level(x, level)))

    def own_level(self, name: str | None, level: Fraction) -> Fraction:
        """The alpha of a group: its own, if it has one, else `level`."""
        return level if name is None else self.own_alphas.get(name, level)

    def thresholds(self, alpha: Level | None = None) -> float | dict[str, float] | FloatArray:
        """The threshold (marginal), a dict from the names of groups or bins to thresholds, or a (K,) array by class.

        With weighted points, the threshold of a new point whose weight is their mean.
        """
        level = self.level(alpha)
        taus = self._taus(level)[self._deciding_cells(level)[: len(self.cells)]]
        if self.is_marginal:
            return float(taus[0])
        if self.by_difficulty:
            return dict(zip(bin_names(self.edges), taus[::2].tolist(), strict=True))
        return taus if self.by_class else dict(zip(self.groups, taus.tolist(), strict=True))

    def tau(
        self,
        alpha: Level | None = None,
        *,
        groups: Groups | None = None,
        difficulty: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        n: int | None = None,
    ) -> float | FloatArray:
        """The thresholds to pass to an oracle's `sets`: a float (marginal), (n, 1) by group or bin of each row, or
        (1, K) by class or label.

        `difficulty` is the highest probability of each row. `weights` is the weight of each row, if the points had
        weights; the thresholds are then (n, 1), or (n, K) by class. Refuses unseen groups (unless pooled) and
        arguments that the calibration does not use.
        """
        level = self.level(alpha)
        codes = self.cells_of(level, groups, n, difficulty)
        if not self.weighted:
            if weights is not None:
                raise InputError("weights= are given, but calibration had none: calibrate with weights=")
            if self.label_weights is not None:
                return self.cells[0].steps[self.alphas.index(level)].tau(self.label_weights).reshape(1, -1)
            taus = self._taus(level)[codes]
            return float(taus[0, 0]) if self.is_marginal else taus
        if weights is None:
            raise InputError("calibrated with weights, so prediction needs the weight of each row: give weights=")
        rows = len(codes) if codes.shape[0] > 1 or n is None else n
        own = as_weights(weights, np.size(weights) if codes.shape[0] == 1 and n is None else rows)
        at, every = self.alphas.index(level), np.broadcast_to(codes, (own.size, codes.shape[1]))
        out = np.empty(every.shape)
        for code, cell in enumerate(self.all_cells):
            place = np.nonzero(every == code)
            out[place] = cell.steps[at].tau(own[place[0]])
        return out

    @property
    def all_cells(self) -> tuple[Cell, ...]:
        """The cells, followed by the cell of all points if pooled."""
        return self.cells if self.pooled is None else (*self.cells, self.pooled)

    def cells_of(
        self, level: Fraction, groups: Groups | None, n: int | None, difficulty: ArrayLike | None = None
    ) -> IntArray:
        """Indices into `all_cells` of the deciding cells, which broadcast to (n, K): (1, 1); group or bin (n, 1);
        class (1, K)."""
        self.check_groups(groups is not None, or_decisions=True)
        if self.by_difficulty:
            if difficulty is None:
                raise InputError("calibrated by difficulty, so prediction needs the highest probability of each row")
            return bin_cells(as_difficulty(difficulty, n), self.edges).reshape(-1, 1)
        if groups is None:
            return self._deciding_cells(level)[: len(self.cells)].reshape(1, -1)
        index = {name: i for i, name in enumerate(self.groups)}
        names = group_names(groups, n)
        if self.pooled is None:
            for row, name in enumerate(names):
                if name not in index:
                    raise RowFault(
                        row,
                        "",
                        f": group {name!r} is not among the calibration rows; known: "
                        f"{listed(list(map(repr, self.groups)))}; calibrate with rows of it, or pool=True",
                    )
        unseen = len(self.cells)
        cells = np.array([index.get(name, unseen) for name in names], dtype=np.intp)
        return self._deciding_cells(level)[cells].reshape(-1, 1)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` restores the same calibration, bit for bit."""
        return {
            "conditional": self.conditional,
            "alphas": [str(alpha) for alpha in self.alphas],
            "cells": [cell_as_dict(cell) for cell in self.cells],
            "groups": list(self.groups),
            "pooled": None if self.pooled is None else cell_as_dict(self.pooled),
            "randomize": self.randomize,
            "rule": self.rule.as_dict(),
            "edges": encode(self.edges),
            "points": self.points,
            "weighted": self.cells[0].weights is not None,
            "label_weights": None if self.label_weights is None else encode(self.label_weights.tolist()),
            "own_alphas": {name: str(alpha) for name, alpha in self.own_alphas.items()},
        }

    @classmethod
    def from_dict(cls, data: object) -> Calibration:
        """Inverse of `as_dict`, also for data written by 0.1.0; refuses data that no calibration could have written."""
        names = ("conditional", "alphas", "cells", "groups", "pooled", "randomize")
        later: dict[str, object] = {"rule": Rule().as_dict(), "edges": [], "points": None, "weighted": False}
        later |= {"label_weights": None, "own_alphas": {}}
        d = fields({**later, **data} if isinstance(data, dict) else data, (*names, *later), "calibration")
        mode, randomize, pooled, weighted = d["conditional"], d["randomize"], d["pooled"], d["weighted"]
        alphas, groups = _texts(d["alphas"], "alphas"), _texts(d["groups"], "groups")
        rule, edges, points = Rule.from_dict(d["rule"]), tuple(decode(d["edges"], "edges")), d["points"]
        flags = isinstance(randomize, bool) and isinstance(weighted, bool)
        if mode not in MODES or not flags or not isinstance(d["cells"], list):
            raise InputError(f"calibration: conditional, randomize or cells is damaged; {RESAVE}")
        levels = levels_of(alphas, below=rule.below)
        kept = {"randomize": bool(randomize), "weighted": bool(weighted)}
        own = _own_alphas(d["own_alphas"], groups, levels, rule)
        at = [(own.get(name, levels[0]), *levels[1:]) for name in groups] or [levels] * len(d["cells"])
        if len(at) != len(d["cells"]):
            raise InputError(f"calibration: {len(d['cells'])} cells for {len(groups)} groups; {RESAVE}")
        cells = tuple(cell_from_dict(x, own, rule, **kept) for x, own in zip(d["cells"], at, strict=True))
        bins, by_name = 2 * len(edges) + 1, mode in ("group", "decision")
        wanted = {None: 1, "class": len(cells), "difficulty": bins}.get(mode, len(groups))
        if not cells or len(cells) != wanted or len(set(groups)) < len(groups) or (groups and not by_name):
            raise InputError(f"calibration: {len(cells)} cells do not fit conditional {mode!r}; {RESAVE}")
        by_rank = isinstance(points, int) and not isinstance(points, bool) and points > 0 and sorted(edges) == [*edges]
        if (mode == "difficulty") != by_rank or (edges and mode != "difficulty"):
            raise InputError(f"calibration: edges or points do not fit conditional {mode!r}; {RESAVE}")
        all_points = None if pooled is None else cell_from_dict(pooled, levels, rule, **kept)
        if all_points is not None and (mode is None or all_points.n != sum(cell.n for cell in cells)):
            raise InputError(f"calibration: pooled points do not match the cells; {RESAVE}")
        number = points if isinstance(points, int) else None
        by_label = None if d["label_weights"] is None else np.array(decode(d["label_weights"], "label weights"))
        if by_label is not None and (mode is not None or not weighted or not bool((by_label >= 0).all())):
            raise InputError(f"calibration: weights of labels do not fit conditional {mode!r}; {RESAVE}")
        return cls(mode, levels, cells, groups, all_points, kept["randomize"], rule, edges, number, by_label, own)  # type: ignore[arg-type]  # mode: checked above

    def _taus(self, level: Fraction) -> FloatArray:
        at = self.alphas.index(level)
        return np.array([cell.thresholds[at] for cell in self.all_cells], dtype=np.float64)

    def _deciding_cells(self, level: Fraction) -> IntArray:
        """For each of `all_cells`, the cell that decides at this level: itself, or the pooled one if too small."""
        cells = np.arange(len(self.all_cells), dtype=np.intp)
        if self.pooled is not None:
            need = self.rule.needed(level)
            cells[[cell.n < need for cell in self.all_cells]] = len(self.cells)
        return cells


def calibrate(
    scores: ArrayLike,
    *,
    alphas: Level | Iterable[Level],
    parts: Parts = MARGINAL,
    rule: Rule = COVERAGE,
    harms: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    pool: bool = False,
    randomize: bool = False,
    already_warned: bool = False,
) -> Calibration:
    """Thresholds from the scores of the true labels, for every alpha at once.

    Each of the `parts` gets its own threshold. A cell with too few points gets an infinite one, so that its sets
    contain every label, and one `CalibrationWarning` names all such cells. With pool=True, they get the threshold of
    all points together: smaller sets, but *no* coverage is guaranteed within those cells.

    `rule` says what each threshold guarantees: coverage on average, or with a confidence over the draw of the points;
    or a bound on the mean harm of misses, from the `harms` of the points and the largest harm of any label. `weights`
    are those of the points, if new points are shifted. randomize=True keeps the scores, for `randomized_sets`.
    already_warned=True: `warn_of_too_few` has already been called, so there is no warning here.

    >>> c = calibrate([1, 2, 3, 4, 5, 6], alphas=0.5, parts=Parts("group", groups=list("aaabbb")))
    >>> c.thresholds()
    {'a': 2.0, 'b': 5.0}
    """
    values = as_scores(scores)
    levels = levels_of(alphas, below=rule.below)
    pool, randomize = flag(pool, "pool"), flag(randomize, "randomize")
    _check_pool(pool, parts)
    _check_scores(values, randomize)
    own, harm = _weights_and_harms(weights, harms, rule, values.size)
    names, edges, cells = parts.divide(values.size)
    own_levels = {name: parts.own_alphas[name] for name in names if name in parts.own_alphas}

    def cell(part: IntArray | slice, name: str = "") -> Cell:
        return make_cell(
            values[part],
            (own_levels.get(name, levels[0]), *levels[1:]),
            rule,
            weights=None if own is None else own[part],
            harms=None if harm is None else harm[part],
            keep=randomize,
        )

    calibration = Calibration(
        parts.conditional,
        levels,
        tuple(cell(points, name) for points, name in zip(cells, names or [""] * len(cells), strict=True)),
        names,
        cell(slice(None)) if pool else None,
        randomize,
        rule,
        edges,
        values.size if parts.by_difficulty else None,
        own_alphas=own_levels,
    )
    if not already_warned:
        named_cells = calibration.named_cells
        of_parts = [name for name, _ in named_cells if name is not None]
        sizes = [cell.n for _, cell in named_cells]
        warn_of_too_few(sizes, levels, calibration, rule, names=of_parts, pool=pool, randomize=randomize)
    return calibration


def _check_pool(pool: bool, parts: Parts) -> None:
    if pool and parts.is_marginal:
        raise InputError('pool=True needs conditional="group" or "class": marginal calibration pools all rows anyway')
    if pool and parts.by_difficulty:
        raise InputError("pool=True does not apply to difficulty bins, which have equal sizes: use fewer bins")


def _check_scores(scores: FloatArray, randomize: bool) -> None:
    if scores.size == 0:
        raise InputError("no calibration scores are given: give at least one")
    if randomize and bool(np.isneginf(scores).any()):
        row = int(np.argmax(np.isneginf(scores)))
        raise InputError(f"row {row}: the score is -inf, which cannot be randomized: use randomize=False")


def _weights_and_harms(
    weights: ArrayLike | None, harms: ArrayLike | None, rule: Rule, n: int
) -> tuple[FloatArray | None, FloatArray | None]:
    """The weights and harms of the n points as arrays, if there are any and the rule can use them."""
    if (harms is None) != (rule.most is None):
        raise InputError("harms= and a rule with most= (the largest harm of any label) must be given together")
    if rule.confidence is not None and (harms is not None or weights is not None):
        raise InputError("confidence= works for coverage only; with harms= or weights= the distribution is unknown")
    own = None if weights is None else as_weights(weights, n)
    harm = None if harms is None else as_weights(harms, n, "harms")
    if own is not None and not own.any():
        raise InputError("the weights are all 0: no calibration row is like the new rows")
    if harm is not None and rule.most is not None and as_written(float(harm.max())) > rule.most:
        raise InputError(f"a harm is {harm.max():g}, above {float(rule.most):g}, the largest of any label")
    return own, harm


def label_weighted(
    scores: FloatArray,
    y: IntArray,
    label_weights: FloatArray,
    *,
    alphas: Level | Iterable[Level],
    harms: ArrayLike | None = None,
    most: Fraction | None = None,
) -> Calibration:
    """Thresholds, one per label, for new points with another mix of labels, from the scores of the true labels `y`.

    `label_weights` r(y) say how many times as likely each label is among new points. A new point with candidate label y
    has weight r(y), so the threshold of y is the least tau with (Podkopaev and Ramdas, 2021)

        sum over points with s_i > tau of r(y_i) + r(y)  <=  alpha (sum over points of r(y_i) + r(y)).

    Sets {y : s(y) <= tau_y} cover with probability at least 1 - alpha if r is right up to a factor and the score does
    not depend on the calibration points. If harm is bounded, each r on the left is multiplied by the harm of its point;
    that of the new point, by the largest harm of any label.

    >>> c = label_weighted(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([1.0, 2.0]), alphas=0.5)
    >>> c.tau().tolist()
    [[3.0, 3.0]]
    """
    own = label_weights[as_classes(y, len(label_weights), len(scores))[1]]
    found = calibrate(scores, alphas=alphas, weights=own, harms=harms, rule=Rule(None, most), already_warned=True)
    return replace(found, label_weights=label_weights)


def merged(calibrations: Iterable[Calibration]) -> Calibration:
    """Merge calibrations of the same rows at different alphas into one.

    >>> merged([calibrate([1, 2, 3], alphas=0.5), calibrate([10, 20, 30], alphas=0.25)]).thresholds(0.25)
    30.0
    """
    every = list(calibrations)
    if len(every) == 1:
        return every[0]
    first, pooled = every[0], [c.pooled for c in every if c.pooled is not None]
    return replace(
        first,
        alphas=sum((c.alphas for c in every[1:]), first.alphas),
        cells=tuple(joined(cells) for cells in zip(*(c.cells for c in every), strict=True)),
        pooled=joined(pooled) if pooled else None,
    )


def _texts(data: object, what: str) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(x, str) for x in data):
        raise InputError(f"{what}: expected a list of texts, found {data!r}; {RESAVE}")
    return tuple(data)


def _own_alphas(data: object, groups: Sequence[str], levels: Sequence[Fraction], rule: Rule) -> dict[str, Fraction]:
    texts = isinstance(data, dict) and all(isinstance(x, str) for x in data.values())
    if not texts or not set(data) <= set(groups) or (data and len(levels) > 1):  # type: ignore[call-overload]  # a dict
        raise InputError(f"calibration: the alphas of groups are damaged; {RESAVE}")
    return {name: exact_level(x, below=rule.below) for name, x in data.items()}  # type: ignore[attr-defined]
