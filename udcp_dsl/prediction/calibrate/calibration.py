"""Thresholds: the k-th smallest calibration score, of all points, of each group or of each class.

A *cell* is the points that share a threshold: all of them (marginal), a group's, or a class's. Coverage of 1 - alpha
holds within every cell by itself, since the points of a cell are exchangeable with a test point that falls in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import InputError, RowFault, warn
from udcp_dsl.prediction.calibrate.arrays import (
    FloatArray,
    Groups,
    IntArray,
    as_classes,
    as_scores,
    group_names,
)
from udcp_dsl.prediction.calibrate.levels import Level, exact_level, levels_of, points_needed, rank, show_level
from udcp_dsl.prediction.calibrate.plain import RESAVE, decode, encode, fields
from udcp_dsl.prediction.containers import flag

Conditional: TypeAlias = Literal["group", "class"] | None

_MODES = (None, "group", "class")
_NAMED_AT_MOST = 10


class CalibrationWarning(UserWarning):
    """Calibration that is valid but says little: too few points for a finite threshold."""


def threshold(scores: ArrayLike, alpha: Level) -> float:
    """The k-th smallest of the true labels' scores, k = ceil((n + 1)(1 - alpha)): sets {y : s(y) <= threshold} cover.

    Infinite scores are legal. Where k > n the threshold is infinite, and a `CalibrationWarning` says how many points
    are needed. Refuses NaN and anything that is not one row of numbers.

    >>> threshold([0.3, 0.1, 0.2], alpha=0.5)
    0.2
    """
    values, level = as_scores(scores), exact_level(alpha)
    if rank(values.size, level) > values.size:
        warn(
            f"{values.size} calibration points are too few: alpha {show_level(level)} needs {points_needed(level)}; "
            "the threshold is infinite, so every prediction set holds every label",
            CalibrationWarning,
        )
    return _kth_smallest(values, (level,))[0]


@dataclass(frozen=True, eq=False)
class Cell:
    """The points that share a threshold: how many, the threshold at each alpha, and, to randomize, sorted scores."""

    n: int
    thresholds: tuple[float, ...]
    scores: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Calibration:
    """Thresholds for one or several alphas, marginal, by group or by class: plain data, made by `calibrate`.

    `cells` holds one cell (marginal), one a group in the order of `groups`, or one a class. `pooled` holds all points
    together if calibrated with pool=True, else None; cells with too few points, and groups never seen, then use it.
    """

    conditional: Conditional
    alphas: tuple[Fraction, ...]
    cells: tuple[Cell, ...]
    groups: tuple[str, ...] = ()
    pooled: Cell | None = None
    randomize: bool = False

    @property
    def n(self) -> int:
        """How many points were used."""
        return sum(cell.n for cell in self.cells)

    def level(self, alpha: Level | None = None) -> Fraction:
        """One of the calibrated alphas; may be left out where there is only one."""
        known = ", ".join(map(show_level, self.alphas))
        if alpha is None:
            if len(self.alphas) > 1:
                raise InputError(f"calibrated for several alphas, so say which one: {known}")
            return self.alphas[0]
        level = exact_level(alpha)
        if level not in self.alphas:
            raise InputError(f"not calibrated for alpha {show_level(level)}: choose from {known}, or calibrate again")
        return level

    def too_few(self, alpha: Level | None = None) -> tuple[str | int, ...]:
        """The groups (by name) or classes (by index) with too few points for a threshold of their own.

        Of a marginal calibration, whose only cell is 0: (0,) or ().
        """
        need = points_needed(self.level(alpha))
        short = [i for i, cell in enumerate(self.cells) if cell.n < need]
        return tuple(self.groups[i] for i in short) if self.conditional == "group" else tuple(short)

    def thresholds(self, alpha: Level | None = None) -> float | dict[str, float] | FloatArray:
        """The threshold (marginal), that of each group by name, or a (K,) array of the classes'."""
        level = self.level(alpha)
        taus = self._taus(level)[self._stand_ins(level)[: len(self.cells)]]
        if self.conditional is None:
            return float(taus[0])
        return taus if self.conditional == "class" else dict(zip(self.groups, taus.tolist(), strict=True))

    def tau(
        self, alpha: Level | None = None, *, groups: Groups | None = None, n: int | None = None
    ) -> float | FloatArray:
        """What an oracle's `sets` takes: a float (marginal), (n, 1) by the rows' groups, or (1, K) by class.

        Refuses rows of a group that was never seen (unless pooled), and `groups` where they are not used.
        """
        level = self.level(alpha)
        taus = self._taus(level)[self.cells_of(level, groups, n)]
        return float(taus[0, 0]) if self.conditional is None else taus

    @property
    def all_cells(self) -> tuple[Cell, ...]:
        """The cells, and after them, if pooled, all points together."""
        return self.cells if self.pooled is None else (*self.cells, self.pooled)

    def cells_of(self, level: Fraction, groups: Groups | None, n: int | None) -> IntArray:
        """Which of `all_cells` decides, to broadcast against (n, K): (1, 1) marginal, (n, 1) group, (1, K) class."""
        if self.conditional != "group":
            if groups is not None:
                raise InputError(
                    'groups= are given, but calibration was not by group: calibrate with conditional="group"'
                )
            return self._stand_ins(level)[: len(self.cells)].reshape(1, -1)
        if groups is None:
            raise InputError("calibrated by group, so prediction needs the group of each row: give groups=")
        index = {name: i for i, name in enumerate(self.groups)}
        names = group_names(groups, n)
        if self.pooled is None:
            for row, name in enumerate(names):
                if name not in index:
                    raise RowFault(
                        row,
                        "",
                        f": group {name!r} was not among the calibration points; known: "
                        f"{_listed(list(map(repr, self.groups)))}; calibrate with points of it, or pool=True",
                    )
        unseen = len(self.cells)
        cells = np.array([index.get(name, unseen) for name in names], dtype=np.intp)
        return self._stand_ins(level)[cells].reshape(-1, 1)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` makes the same calibration, bit for bit."""
        return {
            "conditional": self.conditional,
            "alphas": [str(alpha) for alpha in self.alphas],
            "cells": [_cell_as_dict(cell) for cell in self.cells],
            "groups": list(self.groups),
            "pooled": None if self.pooled is None else _cell_as_dict(self.pooled),
            "randomize": self.randomize,
        }

    @classmethod
    def from_dict(cls, data: object) -> Calibration:
        """What `as_dict` gave; refuses data that no calibration could have given."""
        names = ("conditional", "alphas", "cells", "groups", "pooled", "randomize")
        d = fields(data, names, "calibration")
        mode, randomize, pooled = d["conditional"], d["randomize"], d["pooled"]
        alphas, groups = _texts(d["alphas"], "alphas"), _texts(d["groups"], "groups")
        if mode not in _MODES or not isinstance(randomize, bool) or not isinstance(d["cells"], list):
            raise InputError(f"calibration: conditional, randomize or cells is not what was saved; {RESAVE}")
        levels = levels_of(alphas)
        cells = tuple(_cell_from_dict(cell, levels, randomize) for cell in d["cells"])
        wanted = {None: 1, "group": len(groups), "class": len(cells)}[mode]
        if not cells or len(cells) != wanted or len(set(groups)) < len(groups) or (groups and mode != "group"):
            raise InputError(f"calibration: {len(cells)} cells do not fit conditional {mode!r}; {RESAVE}")
        all_points = None if pooled is None else _cell_from_dict(pooled, levels, randomize)
        if all_points is not None and (mode is None or all_points.n != sum(cell.n for cell in cells)):
            raise InputError(f"calibration: pooled points do not match the cells; {RESAVE}")
        return cls(mode, levels, cells, groups, all_points, randomize)  # type: ignore[arg-type]  # mode: checked above

    def _taus(self, level: Fraction) -> FloatArray:
        at = self.alphas.index(level)
        return np.array([cell.thresholds[at] for cell in self.all_cells], dtype=np.float64)

    def _stand_ins(self, level: Fraction) -> IntArray:
        """For each of `all_cells` the one that decides at this level: itself, or the pooled one if it has too few."""
        cells = np.arange(len(self.all_cells), dtype=np.intp)
        if self.pooled is not None:
            need = points_needed(level)
            cells[[cell.n < need for cell in self.all_cells]] = len(self.cells)
        return cells


def calibrate(
    scores: ArrayLike,
    *,
    alphas: Level | Iterable[Level],
    conditional: Conditional = None,
    groups: Groups | None = None,
    y: ArrayLike | None = None,
    n_classes: int | None = None,
    pool: bool = False,
    randomize: bool = False,
    warned: bool = False,
) -> Calibration:
    """Thresholds from the scores of the true labels, for every alpha at once.

    conditional="group" needs `groups` (names or numbers, one a row; 7, 7.0 and "7" are one group);
    conditional="class" needs `y` (indices of the true labels) and `n_classes`. A group or class with too few points
    gets an infinite threshold, so that it covers by full sets, and one `CalibrationWarning` names them all. With
    pool=True they get the threshold of all points together: smaller sets, but within those groups or classes *no*
    coverage is guaranteed. randomize=True keeps the scores, for `randomized_sets`. warned=True: `warn_of_too_few` was
    asked before there were scores, and says nothing more.

    >>> c = calibrate([1, 2, 3, 4, 5, 6], alphas=0.5, conditional="group", groups=list("aaabbb"))
    >>> c.thresholds()
    {'a': 2.0, 'b': 5.0}
    """
    values, levels = as_scores(scores), levels_of(alphas)
    pool, randomize = flag(pool, "pool"), flag(randomize, "randomize")
    _check_options(conditional, groups, y, n_classes, pool)
    if values.size == 0:
        raise InputError("no calibration scores are given: give at least one point")
    if randomize and bool(np.isneginf(values).any()):
        row = int(np.argmax(np.isneginf(values)))
        raise InputError(
            f"row {row}: a score of -inf is never left out, so it cannot be randomized: use randomize=False"
        )

    names: tuple[str, ...] = ()
    parts = [values]
    if conditional == "group":
        rows = group_names(groups, values.size)
        names = tuple(sorted(set(rows)))
        index = {name: i for i, name in enumerate(names)}
        parts = _split(values, np.array([index[name] for name in rows], dtype=np.intp), len(names))
    elif conditional == "class":
        classes, codes = as_classes(y, n_classes, values.size)
        parts = _split(values, codes, classes)
    calibration = Calibration(
        conditional,
        levels,
        tuple(_cell(part, levels, randomize) for part in parts),
        names,
        _cell(values, levels, randomize) if pool else None,
        randomize,
    )
    sizes = [cell.n for cell in calibration.cells]
    if not warned:
        warn_of_too_few(sizes, levels, conditional=conditional, groups=names, pool=pool, randomize=randomize)
    return calibration


def merged(calibrations: Iterable[Calibration]) -> Calibration:
    """Calibrations of the same rows at different alphas as one.

    >>> merged([calibrate([1, 2, 3], alphas=0.5), calibrate([10, 20, 30], alphas=0.25)]).thresholds(0.25)
    30.0
    """
    first, *others = calibrations
    for other in others:
        cells = tuple(
            Cell(a.n, a.thresholds + b.thresholds, a.scores) for a, b in zip(first.cells, other.cells, strict=True)
        )
        pooled = first.pooled
        if pooled is not None and other.pooled is not None:
            pooled = Cell(pooled.n, pooled.thresholds + other.pooled.thresholds, pooled.scores)
        first = replace(first, alphas=first.alphas + other.alphas, cells=cells, pooled=pooled)
    return first


def _cell(scores: FloatArray, levels: tuple[Fraction, ...], randomize: bool) -> Cell:
    kept = None
    if randomize:
        kept = np.sort(scores)
        kept.flags.writeable = False
    return Cell(scores.size, _kth_smallest(scores, levels), kept)


def _kth_smallest(scores: FloatArray, levels: tuple[Fraction, ...]) -> tuple[float, ...]:
    ranks = [rank(scores.size, level) for level in levels]
    finite = sorted({k - 1 for k in ranks if k <= scores.size})
    ordered = np.partition(scores, finite) if finite else scores
    return tuple(float(ordered[k - 1]) if k <= scores.size else math.inf for k in ranks)


def _split(scores: FloatArray, codes: IntArray, cells: int) -> list[FloatArray]:
    ends = np.cumsum(np.bincount(codes, minlength=cells))[:-1]
    return np.split(scores[np.argsort(codes, kind="stable")], ends)


def warn_of_too_few(
    sizes: Sequence[int],
    levels: Sequence[Fraction],
    *,
    conditional: Conditional = None,
    groups: Sequence[str] = (),
    pool: bool = False,
    randomize: bool = False,
) -> None:
    """Warn where `sizes`, the points of all rows or of each group or class, are too few for a finite threshold."""
    faults = []
    effect = "every prediction set holds every label"
    for level in levels:
        need = points_needed(level)
        if conditional is None or pool:  # pooling was asked for: silent while all together are enough
            short = [f"there are {sum(sizes)}"] if sum(sizes) < need else []
        elif conditional == "group":
            effect = "prediction sets of these groups hold every label"
            short = [f"group {name!r} has {n}" for name, n in zip(groups, sizes, strict=True) if n < need]
        else:
            effect = "these labels are in every prediction set"
            short = [f"class {k} has {n}" for k, n in enumerate(sizes) if n < need]
        if short:
            faults.append(f"alpha {show_level(level)} needs {need}, but {_listed(short)}")
    if not faults:
        return
    if randomize:
        effect += " with a chance of 1 - alpha (n + 1), whatever the scores"
    remedy = "give more points or a larger alpha"
    if conditional is not None and not pool:
        remedy += ", or pool=True (smaller sets, no guarantee within those)"
    warn(f"too few calibration points: {'; '.join(faults)}. So {effect}; {remedy}", CalibrationWarning)


def _listed(items: Sequence[str]) -> str:
    more = len(items) - _NAMED_AT_MOST
    return ", ".join(items[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def _check_options(
    conditional: Conditional, groups: Groups | None, y: ArrayLike | None, n_classes: int | None, pool: bool
) -> None:
    if conditional not in _MODES:
        raise InputError(f'conditional is {conditional!r}: choose None (marginal), "group" or "class"')
    if (groups is not None) != (conditional == "group"):
        raise InputError(f'groups= goes with conditional="group", and only with it (conditional is {conditional!r})')
    if {y is not None, n_classes is not None} != {conditional == "class"}:
        raise InputError(
            f'y= and n_classes= go with conditional="class", and only with it (conditional is {conditional!r})'
        )
    if pool and conditional is None:
        raise InputError(
            'pool=True goes with conditional="group" or "class": marginal calibration pools all points anyway'
        )


def _cell_as_dict(cell: Cell) -> dict[str, object]:
    scores = None if cell.scores is None else encode(cell.scores.tolist())
    return {"n": cell.n, "thresholds": encode(cell.thresholds), "scores": scores}


def _cell_from_dict(data: object, levels: tuple[Fraction, ...], randomize: bool) -> Cell:
    d = fields(data, ("n", "thresholds", "scores"), "calibration cell")
    n, taus = d["n"], tuple(decode(d["thresholds"], "thresholds"))
    if isinstance(n, bool) or not isinstance(n, int) or n < 0 or len(taus) != len(levels):
        raise InputError(f"calibration cell: n is {n!r} with {len(taus)} thresholds for {len(levels)} alphas; {RESAVE}")
    for level, tau in zip(levels, taus, strict=True):
        if n < points_needed(level) and tau != math.inf:
            raise InputError(
                f"calibration cell: {n} points cannot give threshold {tau} at {show_level(level)}; {RESAVE}"
            )
    if not randomize:
        if d["scores"] is not None:
            raise InputError(f"calibration cell: scores are kept for randomize alone; {RESAVE}")
        return Cell(n, taus)
    scores = np.array(decode(d["scores"], "scores"), dtype=np.float64)
    scores.flags.writeable = False
    fits = scores.size == n and _kth_smallest(scores, levels) == taus
    if not fits or bool((scores[1:] < scores[:-1]).any()) or bool(np.isneginf(scores).any()):
        raise InputError(f"calibration cell: the scores do not give its thresholds; {RESAVE}")
    return Cell(n, taus, scores)


def _texts(data: object, what: str) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(x, str) for x in data):
        raise InputError(f"{what}: expected a list of texts, found {data!r}; {RESAVE}")
    return tuple(data)
