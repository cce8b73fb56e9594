"""What a calibrated predictor holds, as data and as a table: thresholds, anchors, and how its lambda was tuned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from udcp_dsl.cli.terminal import plain_table, visible

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from udcp_dsl.prediction.calibrate import Tuning
    from udcp_dsl.prediction.predictor import SetPredictor

_SHOWN = 12


def cells(predictor: SetPredictor, alpha: Fraction) -> list[tuple[str | None, int, float]]:
    """The name, number of points and threshold of all rows, or of each group or class."""
    calibration = predictor.calibrated
    thresholds: Any = calibration.thresholds(alpha)
    if predictor.conditional is None:
        return [(None, calibration.n, thresholds)]
    named = calibration.named_cells
    if predictor.conditional == "class":
        named = tuple((name, cell) for name, (_, cell) in zip(predictor.loss.labels, named, strict=True))
        return [(name, cell.n, tau) for (name, cell), tau in zip(named, thresholds.tolist(), strict=True)]
    return [(name, cell.n, thresholds[name]) for name, cell in named]


def calibration_as_data(predictor: SetPredictor) -> dict[str, Any]:
    """The loss, the oracle, the thresholds and the tuning of a predictor, for `--json`."""
    from udcp_dsl.prediction.calibrate import show_level

    tuning = predictor.tuning
    return {
        "loss": predictor.loss.name,
        "oracle": predictor.oracle.name,
        "options": predictor.oracle.options,
        "n": predictor.calibrated.n,
        "conditional": predictor.conditional,
        "thresholds": [
            {
                "alpha": show_level(alpha),
                "cells": [
                    {"name": name, "n": n, "threshold": tau if math.isfinite(tau) else str(tau)}
                    for name, n, tau in cells(predictor, alpha)
                ],
            }
            for alpha in predictor.alphas
        ],
        "tuning": None if tuning is None else {**tuning.as_dict(), "best": tuning.best, "excess": tuning.excess},
    }


def threshold_table(predictor: SetPredictor) -> Table:
    """The thresholds; of many groups or classes the first."""
    from rich.text import Text

    from udcp_dsl.prediction.calibrate import show_level

    table = plain_table()
    kind = predictor.conditional
    for column in ("alpha", *([] if kind is None else [kind]), "points", "threshold"):
        table.add_column(column, justify="left" if column == kind else "right", overflow="fold")
    for alpha in predictor.alphas:
        found = cells(predictor, alpha)
        for cell, points, tau in found[:_SHOWN]:
            named = [] if cell is None else [Text(visible(cell))]
            table.add_row(show_level(alpha), *named, f"{points:,}", f"{tau:.10g}")
        if len(found) > _SHOWN:
            table.add_row(show_level(alpha), f"and {len(found) - _SHOWN} more", "", "")
    return table


def tuning_text(tuning: Tuning) -> str:
    """Which lambda was chosen, of which, by what they cost, and what the choice may have missed."""
    grid = ", ".join(f"{lam:g}" for lam in tuning.grid)
    costs = ", ".join(f"{cost:.4g}" for cost in tuning.mean_costs)
    return (
        f"lambda {tuning.best:g} of {grid}, which cost {costs} on {tuning.n:,} other rows;\nbut for a chance of "
        f"{tuning.delta:.0%}, at most {tuning.excess:.4g} above the best of these (costs lie in "
        f"[{tuning.lo:.6g}, {tuning.hi:.6g}])"
    )
