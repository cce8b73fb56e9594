"""A cell: calibration points that share a threshold, and this threshold under a rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray
from udcp_dsl.prediction.calibrate.levels import show_level
from udcp_dsl.prediction.calibrate.masses import Steps, steps
from udcp_dsl.prediction.calibrate.plain import RESAVE, decode, encode, fields
from udcp_dsl.prediction.calibrate.rule import Rule

Conditional: TypeAlias = Literal["group", "class", "difficulty", "decision"] | None


def asked(part: Conditional) -> str:
    """The argument that asks for one threshold per such part of the rows, as text for messages."""
    return f'conditional="{part}"'


class Cellwise:
    """Base of values with one threshold for all rows or one per group, class, bin or decision (`conditional`)."""

    conditional: Conditional

    @property
    def asked(self) -> str:
        """The argument that asks for such thresholds, as text for messages."""
        return asked(self.conditional)

    @property
    def is_marginal(self) -> bool:
        """Whether one threshold holds for all rows."""
        return self.conditional is None

    @property
    def by_group(self) -> bool:
        """Whether each group has its own threshold."""
        return self.conditional == "group"

    @property
    def by_class(self) -> bool:
        """Whether each class has its own threshold."""
        return self.conditional == "class"

    @property
    def by_difficulty(self) -> bool:
        """Whether each bin of the highest probability has its own threshold."""
        return self.conditional == "difficulty"

    @property
    def by_decision(self) -> bool:
        """Whether each decision, which is a function of the row alone, has its own threshold."""
        return self.conditional == "decision"

    @property
    def by_name(self) -> bool:
        """Whether the parts of the rows have names, as groups and decisions do."""
        return self.conditional in ("group", "decision")

    def check_groups(self, given: bool, *, or_decisions: bool = False) -> None:
        """Raise an error if groups of new rows are given but not used, or needed but not given."""
        used = self.by_name if or_decisions else self.by_group
        if given and not used:
            raise InputError(
                f"groups= is given, but the predictor was not calibrated by group: calibrate with {asked('group')}"
            )
        if used and not given:
            raise InputError("calibrated by group, so prediction needs the group of each row: give groups=")


@dataclass(frozen=True, eq=False)
class Cell:
    """The number n of points that share a threshold, and the threshold at each alpha.

    The sorted scores are kept only to randomize sets or if points are weighted. With weights, the threshold depends on
    the weight of the new point: `steps` gives it at each alpha, and `thresholds` is for a new point of mean weight.
    """

    n: int
    thresholds: tuple[float, ...]
    scores: FloatArray | None = None
    weights: FloatArray | None = None
    harms: FloatArray | None = None
    steps: tuple[Steps, ...] = ()


def make_cell(
    scores: FloatArray,
    levels: Sequence[Fraction],
    rule: Rule,
    *,
    weights: FloatArray | None = None,
    harms: FloatArray | None = None,
    keep: bool = False,
) -> Cell:
    """A cell from the scores of the true labels of its points and, if used, the weights and harms of the points."""
    if weights is None and rule.most is None:
        return Cell(scores.size, _kth_smallest(scores, levels, rule), _frozen(np.sort(scores)) if keep else None)
    order = np.argsort(scores, kind="stable")
    ordered = _frozen(scores[order])
    own = None if weights is None else _frozen(weights[order])
    harm = None if harms is None else _frozen(harms[order])
    found = tuple(steps(ordered, level, weights=own, harms=harm, most=rule.most) for level in levels)
    at = np.array([1.0 if own is None or own.size == 0 else float(own.mean())])
    taus = tuple(float(step.tau(at)[0]) for step in found)
    if own is None:
        return Cell(scores.size, taus, ordered if keep else None)
    return Cell(scores.size, taus, ordered, own, harm, found)


def _frozen(values: FloatArray) -> FloatArray:
    values.flags.writeable = False
    return values


def _kth_smallest(scores: FloatArray, levels: Sequence[Fraction], rule: Rule) -> tuple[float, ...]:
    ranks = [rule.rank(scores.size, level) for level in levels]
    finite = sorted({k - 1 for k in ranks if k <= scores.size})
    ordered = np.partition(scores, finite) if finite else scores
    return tuple(float(ordered[k - 1]) if k <= scores.size else math.inf for k in ranks)


def joined(cells: Sequence[Cell]) -> Cell:
    """Join cells of the same points at several alphas into one; scores, weights and harms are those of the first."""
    first, *others = cells
    thresholds = sum((cell.thresholds for cell in others), first.thresholds)
    found = sum((cell.steps for cell in others), first.steps)
    return Cell(first.n, thresholds, first.scores, first.weights, first.harms, found)


def cell_as_dict(cell: Cell) -> dict[str, object]:
    """Plain data for JSON."""
    kept = {name: getattr(cell, name) for name in ("scores", "weights", "harms")}
    plain = {name: None if values is None else encode(values.tolist()) for name, values in kept.items()}
    # With one anchor per alpha, each alpha has its own scores, and the steps come from these.
    found = [{"limits": encode(x.weight_limits.tolist()), "taus": encode(x.taus.tolist())} for x in cell.steps]
    return {"n": cell.n, "thresholds": encode(cell.thresholds), **plain, "steps": found}


def cell_from_dict(data: object, levels: tuple[Fraction, ...], rule: Rule, *, randomize: bool, weighted: bool) -> Cell:
    """Inverse of `cell_as_dict`; refuses data that no cell could have given."""
    given = {"weights": None, "harms": None, "steps": [], **data} if isinstance(data, dict) else data
    d = fields(given, ("n", "thresholds", "scores", "weights", "harms", "steps"), "calibration cell")
    n, taus = d["n"], tuple(decode(d["thresholds"], "thresholds"))
    if isinstance(n, bool) or not isinstance(n, int) or n < 0 or len(taus) != len(levels):
        raise InputError(f"calibration cell: n is {n!r} with {len(taus)} thresholds for {len(levels)} alphas; {RESAVE}")
    for level, tau in zip(levels, taus, strict=True):
        if not weighted and n < rule.needed(level) and tau != math.inf:
            raise InputError(f"calibration cell: {n} rows cannot give threshold {tau} at {show_level(level)}; {RESAVE}")
    if not randomize and not weighted:
        if any(d[name] is not None for name in ("scores", "weights", "harms")) or d["steps"] != []:
            raise InputError(f"calibration cell: scores are kept only for randomize and weights; {RESAVE}")
        return Cell(n, taus)
    scores = _frozen(np.array(decode(d["scores"], "scores"), dtype=np.float64))
    if scores.size != n or bool((scores[1:] < scores[:-1]).any()):
        raise InputError(f"calibration cell: the scores are not {n} in rising order; {RESAVE}")
    if not weighted:
        if _kth_smallest(scores, levels, rule) != taus or bool(np.isneginf(scores).any()):
            raise InputError(f"calibration cell: the scores do not give its thresholds; {RESAVE}")
        return Cell(n, taus, scores)
    weights = _frozen(np.array(decode(d["weights"], "weights"), dtype=np.float64))
    harms = None if d["harms"] is None else _frozen(np.array(decode(d["harms"], "harms"), dtype=np.float64))
    found = tuple(_steps_from(x) for x in d["steps"]) if isinstance(d["steps"], list) else ()
    fits = weights.size == n and (harms is None) == (rule.most is None) and (harms is None or harms.size == n)
    if not fits or len(found) != len(levels) or bool((weights < 0).any()) or bool(np.isinf(weights).any()):
        raise InputError(f"calibration cell: the weights do not match its scores; {RESAVE}")
    return Cell(n, taus, scores, weights, harms, found)


def _steps_from(data: object) -> Steps:
    d = fields(data, ("limits", "taus"), "steps")
    limits, taus = (np.array(decode(d[name], name), dtype=np.float64) for name in ("limits", "taus"))
    # The last two are both infinite if a calibration score is.
    rising = bool((limits[1:] >= limits[:-1]).all()) and bool((taus[1:-1] > taus[:-2]).all())
    if taus.size != limits.size + 1 or not rising or taus[-1] != math.inf:
        raise InputError(f"calibration cell: the steps are damaged; {RESAVE}")
    return Steps(_frozen(limits), _frozen(taus))
