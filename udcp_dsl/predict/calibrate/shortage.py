"""Warnings of too few calibration rows, which can be issued before any row is scored."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from udcp_dsl.diagnostics import warn, worded
from udcp_dsl.predict.calibrate.cells import Cellwise
from udcp_dsl.predict.calibrate.levels import show_level
from udcp_dsl.predict.calibrate.rule import Rule

_NAMED_AT_MOST = 10


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


def listed(items: Sequence[str]) -> str:
    """The first items of a list as text, and how many more there are."""
    more = len(items) - _NAMED_AT_MOST
    return ", ".join(items[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
