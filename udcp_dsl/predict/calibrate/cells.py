"""A cell: calibration points that share a threshold, and this threshold under a rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.predict.calibrate.checked import RESAVE, FloatArray, decode, encode, fields
from udcp_dsl.predict.calibrate.levels import show_level
from udcp_dsl.predict.calibrate.rule import Rule
from udcp_dsl.predict.calibrate.weighted import Steps, steps

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
            raise InputError(
                "calibrated by group, so prediction needs the group of each row: give " + worded("groups=", "--group")
            )


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
