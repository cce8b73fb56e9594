"""Thresholds at one alpha: one for all points, or one for each stratum (group, class, bin or decision).

A *cell* is the set of points that share a threshold. The guarantee holds within every cell, since its points are
exchangeable with a test point of the same stratum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import InputError, warn, worded
from udcp_dsl.predict.calibrate.checked import (
    RESAVE,
    FloatArray,
    IntArray,
    as_classes,
    as_scores,
    decode,
    encode,
    fields,
    points_of_cells,
)
from udcp_dsl.predict.calibrate.levels import Level, exact_level, points_needed, rank, show_level
from udcp_dsl.predict.calibrate.rule import Rule
from udcp_dsl.predict.calibrate.strata import Cellwise, Strata, listed
from udcp_dsl.predict.calibrate.weighted import Steps, as_written, steps
from udcp_dsl.rows.columns import as_weights, flag


class CalibrationWarning(UserWarning):
    """Calibration that is valid but says little: too few points for a finite threshold."""


def warn_of_too_few(
    sizes: Sequence[int],
    levels: Sequence[Fraction],
    cells: Cellwise,
    rule: Rule,
    *,
    names: Sequence[str] = (),
    pool: bool = False,
    randomize: bool = False,
) -> None:
    """Warn if `sizes`, the numbers of points (of all rows, or per group, class or bin), allow no finite threshold.

    `names` are those of groups and bins.
    """
    faults = []
    effect = "every prediction set contains all labels"
    for level in levels:
        need = rule.needed(level)
        at = f"alpha {show_level(level)} needs {need}"
        if cells.is_marginal or pool:  # with pool=True, all points together must be enough
            short = [f"there are {sum(sizes)}"] if sum(sizes) < need else []
        elif cells.by_class:
            effect = "these labels are in every prediction set"
            short = [f"class {k} has {n}" for k, n in enumerate(sizes) if n < need]
        else:
            kind = "the bin" if cells.by_difficulty else "group" if cells.by_group else "decision"
            effect = f"prediction sets of these {kind.removeprefix('the ')}s contain all labels"
            short = [f"{kind} {name!r} has {n}" for name, n in zip(names, sizes, strict=True) if n < need]
            at += " in each bin" if cells.by_difficulty else ""
        if short:
            faults.append(f"{at}, but {listed(short)}")
    if not faults:
        return
    if randomize:
        effect += " with a chance of 1 - alpha (n + 1), whatever the scores"
    remedy = "give more rows or a larger alpha"
    if rule.confidence is not None:
        remedy += ", or ask for less confidence"
    if cells.by_difficulty:
        remedy += ", or fewer bins"
    elif (cells.by_group or cells.by_class) and not pool:
        remedy += f", or {worded('pool=True', '--pool')} (smaller sets, no guarantee within those)"
    warn(f"too few calibration rows: {'; '.join(faults)}. So {effect}; {remedy}", CalibrationWarning)


@dataclass(frozen=True, eq=False)
class Cell:
    """The number n of points that share a threshold, and the threshold.

    The sorted scores are kept only to randomize sets or if points are weighted. With weights, the threshold depends on
    the weight of the new point: `steps` gives it, and `threshold` is for a new point of mean weight.
    """

    n: int
    threshold: float
    scores: FloatArray | None = None
    weights: FloatArray | None = None
    harms: FloatArray | None = None
    steps: Steps | None = None


def make_cell(
    scores: FloatArray,
    level: Fraction,
    rule: Rule,
    *,
    weights: FloatArray | None = None,
    harms: FloatArray | None = None,
    keep: bool = False,
) -> Cell:
    """A cell from the scores of the true labels of its points and, if used, the weights and harms of the points."""
    if weights is None and rule.most is None:
        return Cell(scores.size, _kth_smallest(scores, level, rule), _frozen(np.sort(scores)) if keep else None)
    order = np.argsort(scores, kind="stable")
    ordered = _frozen(scores[order])
    own = None if weights is None else _frozen(weights[order])
    harm = None if harms is None else _frozen(harms[order])
    found = steps(ordered, level, weights=own, harms=harm, most=rule.most)
    tau = float(found.tau(np.array([1.0 if own is None or own.size == 0 else float(own.mean())]))[0])
    if own is None:
        return Cell(scores.size, tau, ordered if keep else None)
    return Cell(scores.size, tau, ordered, own, harm, found)


def _frozen(values: FloatArray) -> FloatArray:
    values.flags.writeable = False
    return values


def _kth_smallest(scores: FloatArray, level: Fraction, rule: Rule) -> float:
    k = rule.rank(scores.size, level)
    return float(np.partition(scores, k - 1)[k - 1]) if k <= scores.size else math.inf


def cell_as_dict(cell: Cell) -> dict[str, object]:
    """Plain data for JSON."""
    kept = {name: getattr(cell, name) for name in ("scores", "weights", "harms")}
    plain = {name: None if values is None else encode(values.tolist()) for name, values in kept.items()}
    found = cell.steps and {"limits": encode(cell.steps.weight_limits.tolist()), "taus": encode(cell.steps.taus)}
    return {"n": cell.n, "threshold": encode([cell.threshold])[0], **plain, "steps": found}


def cell_from_dict(data: object, level: Fraction, rule: Rule, *, randomize: bool, weighted: bool) -> Cell:
    """Inverse of `cell_as_dict`; refuses data that no cell could have given."""
    d = fields(data, ("n", "threshold", "scores", "weights", "harms", "steps"), "calibration cell")
    n, (tau,) = d["n"], decode([d["threshold"]], "threshold")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InputError(f"calibration cell: n is {n!r}; {RESAVE}")
    if not weighted and n < rule.needed(level) and tau != math.inf:
        raise InputError(f"calibration cell: {n} rows cannot give threshold {tau} at {show_level(level)}; {RESAVE}")
    if not randomize and not weighted:
        if any(d[name] is not None for name in ("scores", "weights", "harms", "steps")):
            raise InputError(f"calibration cell: scores are kept only for randomize and weights; {RESAVE}")
        return Cell(n, tau)
    scores = _frozen(np.array(decode(d["scores"], "scores"), dtype=np.float64))
    if scores.size != n or bool((scores[1:] < scores[:-1]).any()):
        raise InputError(f"calibration cell: the scores are not {n} in rising order; {RESAVE}")
    if not weighted:
        if _kth_smallest(scores, level, rule) != tau or bool(np.isneginf(scores).any()):
            raise InputError(f"calibration cell: the scores do not give its threshold; {RESAVE}")
        return Cell(n, tau, scores)
    weights = _frozen(np.array(decode(d["weights"], "weights"), dtype=np.float64))
    harms = None if d["harms"] is None else _frozen(np.array(decode(d["harms"], "harms"), dtype=np.float64))
    fits = weights.size == n and (harms is None) == (rule.most is None) and (harms is None or harms.size == n)
    if not fits or bool((weights < 0).any()) or bool(np.isinf(weights).any()):
        raise InputError(f"calibration cell: the weights do not match its scores; {RESAVE}")
    return Cell(n, tau, scores, weights, harms, _steps_from(d["steps"]))


def _steps_from(data: object) -> Steps:
    d = fields(data, ("limits", "taus"), "steps")
    limits, taus = (np.array(decode(d[name], name), dtype=np.float64) for name in ("limits", "taus"))
    # The first step is at minus infinity and the last at infinity, and so may be a score: equal steps are at the ends.
    equal = np.isinf(taus[1:]) & (taus[1:] == taus[:-1])
    rising = bool((limits[1:] >= limits[:-1]).all()) and bool(((taus[1:] > taus[:-1]) | equal).all())
    many = max(np.isposinf(taus).sum(), np.isneginf(taus).sum()) > 2
    if taus.size != limits.size + 1 or not rising or many or taus[-1] != math.inf:
        raise InputError(f"calibration cell: the steps are damaged; {RESAVE}")
    return Steps(_frozen(limits), _frozen(taus))


COVERAGE = Rule()
MARGINAL = Strata()


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
    return make_cell(values, level, Rule()).threshold


@dataclass(frozen=True, eq=False)
class Calibration:
    """Thresholds at one alpha, one for each of the `strata`: plain data, made by `calibrate`.

    `pooled` is the cell of all points if calibrated with pool=True, else None; strata with too few points, and unseen
    groups, then use it. `rule` says what the thresholds guarantee. `label_weights` (K,), if points are weighted by
    label (see `label_weighted`), give each label its own threshold.
    """

    alpha: Fraction
    strata: Strata
    cells: tuple[Cell, ...]
    pooled: Cell | None = None
    randomize: bool = False
    rule: Rule = COVERAGE
    label_weights: FloatArray | None = None

    @property
    def n(self) -> int:
        """The number of calibration points."""
        return sum(cell.n for cell in self.cells)

    @property
    def weighted(self) -> bool:
        """Whether thresholds depend on the weight of the new point."""
        return self.cells[0].weights is not None and self.label_weights is None

    @property
    def too_few(self) -> tuple[str | int, ...]:
        """What the strata with too few points for a threshold of their own are called (see `Strata.shown`)."""
        needed = (self.rule.needed(self.strata.level(i, self.alpha)) for i in range(len(self.cells)))
        shown = self.strata.shown
        return tuple(name for name, cell, need in zip(shown, self.cells, needed, strict=True) if cell.n < need)

    @property
    def thresholds(self) -> float | dict[str, float] | FloatArray:
        """The threshold (marginal), a dict from the names of strata to thresholds, or a (K,) array by class.

        With weighted points, the threshold of a new point whose weight is their mean.
        """
        taus = self._taus[self._deciding[: len(self.cells)]]
        if self.strata.is_marginal:
            return float(taus[0])
        return taus if self.strata.by_class else dict(zip(self.strata.names, taus.tolist(), strict=True))

    def tau(self, codes: IntArray | None = None, *, weights: ArrayLike | None = None) -> float | FloatArray:
        """The thresholds to pass to an oracle's `sets`: a float (marginal), (n, 1) by the stratum of each row
        (`codes`), or (1, K) by class or label.

        `weights` is the weight of each row, if the points had weights; the thresholds are then (n, 1), or (n, K) by
        class. Arguments that the calibration does not use are refused.
        """
        cells = self.cells_of(codes)
        if not self.weighted:
            if weights is not None:
                raise InputError("weights= are given, but calibration had none: calibrate with weights=")
            if self.label_weights is not None:
                assert self.cells[0].steps is not None
                return self.cells[0].steps.tau(self.label_weights).reshape(1, -1)
            taus = self._taus[cells]
            return float(taus[0, 0]) if self.strata.is_marginal else taus
        if weights is None:
            raise InputError("calibrated with weights, so prediction needs the weight of each row: give weights=")
        own = as_weights(weights, np.size(weights) if codes is None else len(codes))
        every = np.broadcast_to(cells, (own.size, cells.shape[1]))
        out = np.empty(every.shape)
        for code, cell in enumerate(self.all_cells):
            place = np.nonzero(every == code)
            assert cell.steps is not None
            out[place] = cell.steps.tau(own[place[0]])
        return out

    @property
    def all_cells(self) -> tuple[Cell, ...]:
        """The cells, followed by the cell of all points if pooled."""
        return self.cells if self.pooled is None else (*self.cells, self.pooled)

    def cells_of(self, codes: IntArray | None) -> IntArray:
        """Indices into `all_cells` of the deciding cells, which broadcast to (n, K): (1, 1) for all rows, (n, 1) by the
        stratum of each row, (1, K) by class."""
        if self.strata.is_marginal or self.strata.by_class:
            if codes is not None:
                raise InputError("strata of rows are given, but calibration had none: calibrate with strata=")
            return self._deciding[: len(self.cells)].reshape(1, -1)
        if codes is None:
            raise InputError("calibrated by stratum, so prediction needs the stratum of each row")
        if self.pooled is None and bool((codes < 0).any()):
            row = int(np.argmax(codes < 0))
            pool = worded("pool=True", "--pool")
            raise InputError(f"row {row}: it has no stratum among the calibration rows; calibrate with {pool}")
        return self._deciding[codes].reshape(-1, 1)  # -1, for an unseen group, is the pooled cell

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` restores the same calibration, bit for bit."""
        return {
            "cells": [cell_as_dict(cell) for cell in self.cells],
            "pooled": None if self.pooled is None else cell_as_dict(self.pooled),
            "weighted": self.cells[0].weights is not None,
            "label_weights": None if self.label_weights is None else encode(self.label_weights.tolist()),
        }

    @classmethod
    def from_dict(cls, data: object, alpha: Fraction, strata: Strata, rule: Rule, *, randomize: bool) -> Calibration:
        """Inverse of `as_dict`, for these strata; refuses data that no calibration could have written."""
        d = fields(data, ("cells", "pooled", "weighted", "label_weights"), "calibration")
        weighted = d["weighted"]
        if not isinstance(weighted, bool) or not isinstance(d["cells"], list) or len(d["cells"]) != len(strata):
            raise InputError(f"calibration: its cells do not fit its strata; {RESAVE}")
        kept = {"randomize": randomize, "weighted": weighted}
        cells = tuple(cell_from_dict(x, strata.level(i, alpha), rule, **kept) for i, x in enumerate(d["cells"]))
        pooled = None if d["pooled"] is None else cell_from_dict(d["pooled"], alpha, rule, **kept)
        if pooled is not None and (strata.is_marginal or pooled.n != sum(cell.n for cell in cells)):
            raise InputError(f"calibration: pooled points do not match the cells; {RESAVE}")
        by_label = None if d["label_weights"] is None else np.array(decode(d["label_weights"], "label weights"))
        if by_label is not None and (not strata.is_marginal or not weighted or not bool((by_label >= 0).all())):
            raise InputError(f"calibration: weights of labels do not fit its strata; {RESAVE}")
        return cls(alpha, strata, cells, pooled, randomize, rule, by_label)

    @property
    def _taus(self) -> FloatArray:
        return np.array([cell.threshold for cell in self.all_cells], dtype=np.float64)

    @property
    def _deciding(self) -> IntArray:
        """For each of `all_cells`, the cell that decides: itself, or the pooled one if it is too small."""
        cells = np.arange(len(self.all_cells), dtype=np.intp)
        if self.pooled is not None:
            need = self.rule.needed(self.alpha)
            cells[[cell.n < need for cell in self.all_cells]] = len(self.cells)
        return cells


def calibrate(
    scores: ArrayLike,
    *,
    alpha: Level,
    strata: Strata = MARGINAL,
    codes: ArrayLike | None = None,
    rule: Rule = COVERAGE,
    harms: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    pool: bool = False,
    randomize: bool = False,
    already_warned: bool = False,
) -> Calibration:
    """Thresholds from the scores of the true labels at one alpha.

    Each of the `strata` gets its own threshold; `codes` has the stratum of each point (by class, the true class). A
    stratum with too few points gets an infinite one, so that its sets contain every label, and one
    `CalibrationWarning` names all such strata. With pool=True, they get the threshold of all points together: smaller
    sets, but *no* coverage is guaranteed within those strata.

    `rule` says what each threshold guarantees: coverage on average, or with a confidence over the draw of the points;
    or a bound on the mean harm of misses, from the `harms` of the points and the largest harm of any label. `weights`
    are those of the points, if new points are shifted. randomize=True keeps the scores, for `randomized_sets`.
    already_warned=True: `warn_of_too_few` has already been called, so there is no warning here.

    >>> c = calibrate([1, 2, 3, 4, 5, 6], alpha=0.5, strata=Strata("group", ("a", "b")), codes=[0, 0, 0, 1, 1, 1])
    >>> c.thresholds
    {'a': 2.0, 'b': 5.0}
    """
    values = as_scores(scores)
    level = exact_level(alpha, below=rule.below)
    pool, randomize = flag(pool, "pool"), flag(randomize, "randomize")
    _check_pool(pool, strata)
    _check_scores(values, randomize)
    own, harm = _weights_and_harms(weights, harms, rule, values.size)

    def cell(part: IntArray | slice, at: Fraction) -> Cell:
        return make_cell(
            values[part],
            at,
            rule,
            weights=None if own is None else own[part],
            harms=None if harm is None else harm[part],
            keep=randomize,
        )

    calibration = Calibration(
        level,
        strata,
        tuple(cell(part, strata.level(i, level)) for i, part in enumerate(points_of(strata, codes, values.size))),
        cell(slice(None), level) if pool else None,
        randomize,
        rule,
    )
    if not already_warned:
        sizes = [cell.n for cell in calibration.cells]
        warn_of_too_few(sizes, (level,), strata, rule, names=strata.names, pool=pool, randomize=randomize)
    return calibration


def points_of(strata: Strata, codes: ArrayLike | None, n: int) -> list[IntArray | slice]:
    """The points of each stratum, in the order of their codes."""
    if strata.is_marginal:
        if codes is not None:
            raise InputError("codes= are given, but there are no strata: give strata=, too")
        return [slice(None)]
    names = {} if strata.by_class else {"what": "codes", "of": "stratum"}
    return [*points_of_cells(as_classes(codes, len(strata), n, **names)[1], len(strata))]


def _check_pool(pool: bool, strata: Strata) -> None:
    if pool and strata.is_marginal:
        needs = worded('pool=True needs conditional="group" or "class"', "--pool needs --group or --conditional class")
        raise InputError(f"{needs}: marginal calibration pools all rows anyway")
    if pool and strata.by_difficulty:
        merged = "does not apply to difficulty bins, which are merged if too small: use fewer bins"
        raise InputError(f"{worded('pool=True', '--pool')} {merged}")


def _check_scores(scores: FloatArray, randomize: bool) -> None:
    if scores.size == 0:
        raise InputError("no calibration scores are given: give at least one")
    if randomize and bool(np.isneginf(scores).any()):
        row = int(np.argmax(np.isneginf(scores)))
        way_out = worded("use randomize=False", "leave out --randomize")
        raise InputError(f"row {row}: the score is -inf, which cannot be randomized: {way_out}")


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
        raise InputError(
            "the weights of the rows left for thresholds are all 0, so none of them is like the new rows: give more "
            "rows with a weight above 0"
        )
    if harm is not None and rule.most is not None and as_written(float(harm.max())) > rule.most:
        raise InputError(f"a harm is {harm.max():g}, above {float(rule.most):g}, the largest of any label")
    return own, harm


def label_weighted(
    scores: FloatArray,
    y: IntArray,
    label_weights: FloatArray,
    *,
    alpha: Level,
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

    >>> c = label_weighted(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([1.0, 2.0]), alpha=0.5)
    >>> c.tau().tolist()
    [[3.0, 3.0]]
    """
    own = label_weights[as_classes(y, len(label_weights), len(scores))[1]]
    found = calibrate(scores, alpha=alpha, weights=own, harms=harms, rule=Rule(None, most), already_warned=True)
    return replace(found, label_weights=label_weights)
