"""One figure of a result as a matplotlib figure, drawn in the style of the report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.prediction.evaluation import QUARTERS, Measures, Stratum
from udcp_dsl.prediction.sets import PredictionSets
from udcp_dsl.report import plots
from udcp_dsl.report.drawing import drawn, require_matplotlib
from udcp_dsl.report.figures import Figure, asked_for, figures_at, figures_over_alpha, reliability_figure
from udcp_dsl.report.palette import styles
from udcp_dsl.report.strata import FEWEST, Point
from udcp_dsl.report.wording import shown

if TYPE_CHECKING:
    from udcp_dsl.comparison import Comparison, Sweep
    from udcp_dsl.prediction.monitor import Monitor
    from udcp_dsl.prediction.probability_repair import Repair

_WORST = 8  # classes and groups that are shown
_TITLE = 64  # characters per line of a title
_WATCHED = 5  # cells of a monitor that are shown


def plot_sets(sets: PredictionSets) -> Any:
    """The sizes and the costs of sets, as histograms."""
    if not len(sets):
        raise InputError("there are no sets to be drawn")
    draw = partial(plots.sizes_and_costs, sizes=sets.sizes, costs=sets.costs, unit=sets.loss.unit)
    return _plotted(draw, 2.9, f"{len(sets):,} sets: how large they are, what they cost under {sets.loss.name}")


def plot_evaluation(evaluation: Measures) -> Any:
    """Coverage by stratum, with exact intervals; only the least covered classes and groups with enough points."""
    points = [_point("size", stratum) for stratum in evaluation.by_size if stratum.name != "0"]
    quarters = evaluation.by_difficulty
    if len(quarters) == len(QUARTERS):  # ties may leave fewer
        quarters = tuple(replace(stratum, name=name) for stratum, name in zip(quarters, QUARTERS, strict=True))
    points += [_point("by top p:", stratum) for stratum in quarters]
    for kind, strata in (("class", evaluation.by_class), ("group", evaluation.by_group)):
        enough = [stratum for stratum in strata if stratum.n >= FEWEST]
        points += [_point(kind, stratum) for stratum in sorted(enough, key=lambda s: s.coverage)[:_WORST]]
    draw = partial(
        plots.listed_coverage,
        found={evaluation.oracle: points},
        order=[point.name for point in points],
        looks=styles([evaluation.oracle]),
        level=None if evaluation.risk is not None else float(1 - evaluation.alpha),
    )
    title = f"Coverage of {evaluation.loss} by {evaluation.oracle}, alpha {show_level(evaluation.alpha)}"
    return _plotted(draw, plots.listed_height(len(points), 1) + 0.3, title)


def plot_repair(repair: Repair) -> Any:
    """Reliability on held-out rows, before and after the repair."""
    if repair.reliability is None:
        raise InputError(f"there is no reliability to draw: it is measured when a repair is fitted: {repair}")
    figure = reliability_figure(repair.reliability)
    return _plotted(figure.draw, figure.height, figure.title)


def plot_monitor(monitor: Monitor) -> Any:
    """Evidence and coverage over the rows seen so far, for all rows and for the cells with most evidence."""
    if not monitor.rows:
        raise InputError("the monitor has seen no row yet, so there is nothing to draw")
    cells = sorted((s for s in monitor.streams[1:] if s.seen), key=lambda s: (s.alarm is None, -s.log_most))[:_WATCHED]
    draw = partial(plots.evidence_and_coverage, streams=[monitor.streams[0], *cells], alpha=float(monitor.alpha))
    title = f"Does coverage at alpha {show_level(monitor.alpha)} still hold? {monitor.rows:,} rows"
    return _plotted(draw, 4.9, title)


def plot_comparison(comparison: Comparison, loss: str | None = None) -> Any:
    """Mean cost against coverage of each oracle for a loss; with too few rows for that, mean cost by term."""
    name = comparison.names[0] if loss is None else loss
    if name not in comparison.names:
        raise InputError(f"there is no loss {name!r} here; {did_you_mean(name, comparison.names)}")
    figures = figures_over_alpha(comparison, name) or figures_at(comparison, name, comparison.alphas[0])
    return _plotted(figures[0].draw, figures[0].height + 0.3, f"{figures[0].title}: {name}")


def plot_sweep(sweep: Sweep) -> Any:
    """The cost (above) and the coverage (below) of each oracle against the parameter, at the first alpha."""
    alpha = sweep.comparisons[0].alphas[0]
    found = [(value, s) for value, s in sweep.summaries() if s.alpha == alpha]
    lines = {
        oracle: [(value, s.cost_mean, s.coverage) for value, s in found if s.oracle == oracle]
        for oracle in dict.fromkeys(s.oracle for _, s in found)
    }
    level = asked_for(sweep.comparisons[0], alpha)
    draw = partial(
        plots.cost_and_coverage, lines=lines, looks=styles(lines), along=sweep.param, level=level, unit=sweep.unit
    )
    return _plotted(draw, 4.9, f"{sweep.loss} against {sweep.param}, alpha {show_level(alpha)}")


def _point(kind: str, stratum: Stratum) -> Point:
    low, high = stratum.interval
    name = f"{kind} {stratum.name}"
    return Point(name, stratum.n, stratum.coverage, low, high, stratum.mean_cost, stratum.mean_true_probability)


def _plotted(draw: Any, height: float, title: str) -> Any:
    require_matplotlib()
    from matplotlib.figure import Figure as Canvas

    class Plot(Canvas):
        """A figure that a notebook shows even if pyplot is not imported."""

        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=144)
            return out.getvalue()

    canvas = drawn(Figure("plot", title, "", "", height, draw), Plot)
    canvas.suptitle(fill(shown(title), _TITLE), x=0.01, ha="left", fontsize=9.5, fontweight="bold")
    for legend in canvas.legends:  # constrained layout does not stack a legend below a title
        legend.set_loc("outside lower left")
    return canvas
