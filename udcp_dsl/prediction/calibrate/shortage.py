"""Warnings of too few calibration points, which can be given before anything is scored."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from udcp_dsl.diagnostics import warn
from udcp_dsl.prediction.calibrate.difficulty import bins_needed
from udcp_dsl.prediction.calibrate.levels import show_level
from udcp_dsl.prediction.calibrate.rule import Rule

_NAMED_AT_MOST = 10


class CalibrationWarning(UserWarning):
    """Calibration that is valid but says little: too few points for a finite threshold."""


def warn_of_too_few(
    sizes: Sequence[int],
    levels: Sequence[Fraction],
    *,
    rule: Rule | None = None,
    conditional: str | None = None,
    groups: Sequence[str] = (),
    pool: bool = False,
    randomize: bool = False,
) -> None:
    """Warn where `sizes`, the points of all rows or of each group, class or bin, are too few for a finite threshold.

    `groups` are the names of groups and bins.
    """
    rule = rule or Rule()
    faults = []
    effect = "every prediction set holds every label"
    for level in levels:
        need = rule.needed(level)
        at = f"alpha {show_level(level)} needs {need}"
        if conditional is None or pool:  # pooling was asked for: silent while all together are enough
            short = [f"there are {sum(sizes)}"] if sum(sizes) < need else []
        elif conditional in ("group", "decision"):
            effect = f"prediction sets of these {conditional}s hold every label"
            short = [f"{conditional} {name!r} has {n}" for name, n in zip(groups, sizes, strict=True) if n < need]
        elif conditional == "difficulty":
            effect = "prediction sets of these bins hold every label"
            short = [f"the bin {name!r} has {n}" for name, n in zip(groups, sizes, strict=True) if n < need]
            at += f" in each bin, {bins_needed(len(sizes), need)} in all"
        else:
            effect = "these labels are in every prediction set"
            short = [f"class {k} has {n}" for k, n in enumerate(sizes) if n < need]
        if short:
            faults.append(f"{at}, but {listed(short)}")
    if not faults:
        return
    if randomize:
        effect += " with a chance of 1 - alpha (n + 1), whatever the scores"
    remedy = "give more points or a larger alpha"
    if rule.confidence is not None:
        remedy += ", or ask for less confidence"
    if conditional == "difficulty":
        remedy += ", or fewer bins"
    elif conditional in ("group", "class") and not pool:
        remedy += ", or pool=True (smaller sets, no guarantee within those)"
    warn(f"too few calibration points: {'; '.join(faults)}. So {effect}; {remedy}", CalibrationWarning)


def listed(items: Sequence[str]) -> str:
    """The first of many items."""
    more = len(items) - _NAMED_AT_MOST
    return ", ".join(items[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
