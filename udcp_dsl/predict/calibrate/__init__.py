"""Calibration: from the scores of the true labels to thresholds for prediction sets with guaranteed coverage.

Split conformal prediction: if calibration and test points are exchangeable, {y : s(x, y) <= tau} contains the true
label with probability at least 1 - alpha. Arrays in, arrays out: this package knows no cost, oracle or solver.
"""

from udcp_dsl.predict.calibrate.levels import (
    Level,
    coverage_law,
    exact_level,
    levels_of,
    points_needed,
    rank,
    show_level,
)
from udcp_dsl.predict.calibrate.randomized import randomized_sets, randomized_tau, row_draws
from udcp_dsl.predict.calibrate.rule import Rule
from udcp_dsl.predict.calibrate.strata import Conditional, Strata
from udcp_dsl.predict.calibrate.thresholds import (
    Calibration,
    CalibrationWarning,
    Cell,
    calibrate,
    label_weighted,
    make_cell,
    threshold,
    warn_of_too_few,
)
from udcp_dsl.predict.calibrate.tuning import DEFAULT_GRID, Tuning, three_folds, tune

__all__ = [
    "DEFAULT_GRID",
    "Calibration",
    "CalibrationWarning",
    "Cell",
    "Conditional",
    "Level",
    "Rule",
    "Strata",
    "Tuning",
    "calibrate",
    "coverage_law",
    "exact_level",
    "label_weighted",
    "levels_of",
    "make_cell",
    "points_needed",
    "randomized_sets",
    "randomized_tau",
    "rank",
    "row_draws",
    "show_level",
    "three_folds",
    "threshold",
    "tune",
    "warn_of_too_few",
]
