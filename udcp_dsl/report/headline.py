"""The finding of a comparison in one sentence per loss and level, computed from the runs and no stronger than they."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.report.wording import number, percent, shown, target
from udcp_dsl.showing import with_unit

if TYPE_CHECKING:
    from udcp_dsl.comparison import Comparison, Summary


def finding(comparison: Comparison, loss: str, alpha: Fraction) -> str:
    """Which oracle is cheapest, by how much, on how many of the splits, and at what coverage."""
    ranked = sorted(
        (s for s in comparison.summaries() if s.loss == loss and s.alpha == alpha),
        key=lambda summary: summary.objective,
    )
    level = "With" if comparison.promise.miss is not None else "At"
    within = f"{comparison.within}," if comparison.within or comparison.promise.miss is not None else ""
    at = f"{level} {comparison.at(alpha)}{within}"
    if not ranked:
        return f"{at} no oracle was measured."
    best = ranked[0]
    name = shown(best.oracle)
    if len(ranked) == 1:
        cost = with_unit(number(best.objective), best.unit)
        return f"{at} {name} alone was measured: cost {cost}{_included(best)}, {_covered(comparison, best)}."
    return f"{at} {_against(comparison, best, ranked[1])}; {_covered(comparison, best)}."


def _against(comparison: Comparison, best: Summary, next_best: Summary) -> str:
    name, other = shown(best.oracle), shown(next_best.oracle)
    ours, theirs = best.objective, next_best.objective
    if ours == theirs:
        return f"{name} and {other} cost the same, {with_unit(number(ours), best.unit)}{_included(best)}"
    miss = comparison.promise.miss or 0.0
    costs = {
        (run.oracle, run.split): run.evaluation.mean_cost + miss * (1 - run.evaluation.coverage)
        for run in comparison.runs
        if run.loss == best.loss and run.alpha == best.alpha
    }
    cheaper = sum(costs[best.oracle, i] < costs[next_best.oracle, i] for i in range(comparison.splits))
    by = percent((theirs - ours) / theirs) if theirs > 0 and ours >= 0 else number(theirs - ours)
    more = with_unit(number(theirs), best.unit)
    figures = f"{number(ours)} against {more}{_included(best)}"
    text = f"{name} costs {by} less than the next cheapest, {other} ({figures})"
    if comparison.splits == 1:
        return f"{text}, on a single split"
    but = "and is cheaper on" if cheaper == comparison.splits else "but is cheaper on only"
    return f"{text}, {but} {cheaper} of {comparison.splits} splits"


def _covered(comparison: Comparison, summary: Summary) -> str:
    if summary.risk is not None:
        return f"mean harm {number(summary.risk)} (at most: {show_level(summary.alpha)})"
    if summary.total is None:
        goal, least = f"target: {target(summary.alpha)}", float(1 - summary.alpha)
    else:  # each split has found an alpha of its own
        least = 1 - (summary.alpha_found or 0.0)
        goal = f"alpha found: {1 - least:.3f}"
    text = f"coverage {summary.coverage:.3f} ({goal})"
    low = ", too low" if summary.coverage_interval[1] < least else ""
    worst = "" if summary.least_covered is None else shown(summary.least_covered.about_worst(comparison.called))
    return f"{text}{low}{f'; {worst}' if worst else ''}"


def _included(summary: Summary) -> str:
    return "" if summary.total is None else ", misses included"
