"""Every oracle that applies to a loss, side by side, over repeated splits of the same rows.

A split deals the rows into three folds: thresholds come from the first, the same rows for every oracle; lambda is tuned
on the two halves of the second (thresholds on one, mean costs on the other); everything is measured on the third.
"""

from udcp_dsl.comparison.curves import CostCurve, CurvePoint, MatchedCost
from udcp_dsl.comparison.export import runs_ending, write_runs
from udcp_dsl.comparison.results import Comparison, Example, Run, Summary, median_of_means, side_by_side
from udcp_dsl.comparison.running import compare, compared_promise, solves
from udcp_dsl.comparison.splits import CURVE, FRACTIONS
from udcp_dsl.comparison.sweeping import Sweep, sweep

__all__ = [
    "CURVE",
    "FRACTIONS",
    "Comparison",
    "CostCurve",
    "CurvePoint",
    "Example",
    "MatchedCost",
    "Run",
    "Summary",
    "Sweep",
    "compare",
    "compared_promise",
    "median_of_means",
    "runs_ending",
    "side_by_side",
    "solves",
    "sweep",
    "write_runs",
]
