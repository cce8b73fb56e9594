"""Compare all oracles that apply to a loss, over repeated splits of the same rows.

Each split has three folds. Thresholds come from the first, with the same rows for every oracle. Lambda is tuned on the
two halves of the second (thresholds on one, mean costs on the other). Everything is measured on the third.
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
