"""`udcp monitor FILE --probs P --truth Y`: does the guarantee of a saved predictor still hold on new rows?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import FAILED, finish, json_option
from udcp_dsl.cli.row_options import RowOptions, check_output, collect_warnings, reads_rows
from udcp_dsl.cli.solving import Computing, computes, solving
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from udcp_dsl.measure.monitor import Monitor

_FIGURES = (".svg", ".pdf", ".png")


@click.command("monitor", epilog="Example:  udcp monitor pets.json --probs july.csv --truth label --state watch.json")
@click.argument("predictor_file", metavar="FILE", type=click.Path())
@reads_rows("truth_column", "group_column", "id_column", "column")
@click.option("--alpha", metavar="LEVEL", help="Alpha to watch, if several were calibrated.")
@click.option(
    "--level",
    default=None,
    metavar="LEVEL",
    help="Largest probability of ever raising a false alarm (default 0.05, or that of --state).",
)
@click.option(
    "--watch",
    type=click.Choice(["both", "misses", "ranks"]),
    help="What to watch: missed true labels, ranks of scores (any shift), or both (default).",
)
@click.option("--state", metavar="FILE", help="File that holds the state between runs; created if it does not exist.")
@click.option("--plot", metavar="FILE", help="Draw evidence and coverage over time: .svg, .pdf or .png.")
@computes
@json_option
def command(
    predictor_file: str,
    row_options: RowOptions,
    alpha: str | None,
    level: str | None,
    watch: str | None,
    state: str | None,
    plot: str | None,
    computing: Computing,
) -> int:
    """Test whether new rows, in the order in which they came, are still like the calibration rows.

    If they are, the probability of ever raising an alarm is at most --level, however long you watch and however often
    you look. (Comparing the share of misses with alpha would not work: it is above alpha for half of all correct
    predictors.) An alarm says when and where: in all rows, or in a group, class or bin. The exit status is then 1.
    """
    from udcp_dsl.files import known_ending
    from udcp_dsl.measure.monitor import Monitor
    from udcp_dsl.predict.predictor import SetPredictor

    if plot is not None:
        from udcp_dsl.report.drawing import require_matplotlib

        require_matplotlib()
        known_ending(Path(plot), _FIGURES)
        check_output(plot)
    if state is not None:
        check_output(state)
    with collect_warnings() as warnings:
        predictor = SetPredictor.load(predictor_file)
        if state is not None and Path(state).exists():
            monitor = Monitor.load(state, predictor)
            _refuse_others(monitor, alpha, level, watch)
        else:
            monitor = Monitor(predictor, level=level or "0.05", alpha=alpha, watch=watch or "both")  # type: ignore[arg-type]  # a choice
        rows = row_options.source_for(predictor).read()
        with solving(predictor.oracle, len(rows), computing, doing="watching"):
            new = monitor.update(rows)
    if plot is not None:
        _draw(monitor, plot)
    if state is not None:
        monitor.save(state)
    alarms = monitor.alarms
    described = monitor.describe()
    if alarms:
        lines = (f"{'ALARM' if alarm in new else 'alarm before'}: {alarm}" for alarm in alarms)
        described = replace(described, verdict=tuple(lines))
    about = {"warnings": warnings, "file": predictor_file, "state": state, "plot": plot}
    return finish(described, about, status=FAILED if alarms else 0)


def _refuse_others(monitor: Monitor, alpha: str | None, level: str | None, watch: str | None) -> None:
    """Raise InputError if options differ from those of the saved monitor, which keeps its own."""
    from udcp_dsl.predict.calibrate import exact_level

    others = {
        "--alpha": alpha is not None and monitor.predictor.level(alpha) != monitor.alpha,
        "--level": level is not None and float(exact_level(level, "level")) != monitor.level,
        "--watch": watch is not None and watch != monitor.watch,
    }
    for option, differs in others.items():
        if differs:
            raise InputError(f"{option} differs from the monitor in --state: leave it out, or start a new state file")


def _draw(monitor: Monitor, plot: str) -> None:
    from udcp_dsl.files import atomic_write

    with atomic_write(plot) as temporary:
        monitor.plot().savefig(temporary, format=Path(plot).suffix[1:].lower())
