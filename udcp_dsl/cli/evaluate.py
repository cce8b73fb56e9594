"""`udcp evaluate FILE --probs P --truth Y`: coverage, cost and size of a saved predictor's sets on fresh rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import finish, json_option, show
from udcp_dsl.cli.row_options import RowOptions, collect_warnings, reads_rows
from udcp_dsl.cli.solving import Computing, computes, solving
from udcp_dsl.showing import Description

if TYPE_CHECKING:
    from fractions import Fraction

    from udcp_dsl.measure.evaluate import Evaluation
    from udcp_dsl.predict.predictor import SetPredictor


@click.command("evaluate", epilog="Example:  udcp evaluate pets.json --probs fresh.csv --truth label")
@click.argument("predictor_file", metavar="FILE", type=click.Path())
@reads_rows("truth_column", "group_column", "id_column", "column", "weight_column")
@click.option("--alpha", metavar="LEVEL", help="Alpha to evaluate, if several were calibrated (default: all).")
@computes
@json_option
def command(
    predictor_file: str,
    row_options: RowOptions,
    alpha: str | None,
    computing: Computing,
) -> int:
    """Measure coverage and cost of a saved predictor, on labelled rows that neither training nor calibration used.

    Coverage is reported with exact intervals, over all rows and by set size, difficulty, class and, with --group,
    group. A predictor that was calibrated by group needs --group.
    """
    from udcp_dsl.measure.evaluate import evaluate
    from udcp_dsl.predict.predictor import SetPredictor

    with collect_warnings() as warnings:
        predictor = SetPredictor.load(predictor_file)
        levels = predictor.alphas if alpha is None else (predictor.level(alpha),)
        rows = row_options.source_for(predictor).read()
        with solving(predictor.oracle, len(levels) * len(rows), computing, doing="evaluating"):
            found = [evaluate(predictor, rows, alpha=level) for level in levels]
    show(*(replace(x.describe(), notes=(_promise(predictor, x.alpha, x),)) for x in found))
    data = {
        "file": predictor_file,
        "conditional": predictor.conditional,
        "accuracy": rows.hits / len(rows),
        "promises": [predictor.at(x.alpha).guarantee for x in found],
        "evaluations": [{**x.as_dict(), "promised": None if x.risk else float(1 - x.alpha)} for x in found],
    }
    return finish(Description(data=data), {"warnings": warnings})


def _promise(predictor: SetPredictor, alpha: Fraction, evaluation: Evaluation) -> str:
    """What was promised, compared with what was measured."""
    guarantee, n = predictor.at(alpha).guarantee, predictor.calibrated.n
    low, high = evaluation.interval
    if evaluation.risk is not None:
        risk = evaluation.risk
        low, high, promised = risk.mean - 2 * (risk.error or 0.0), risk.mean + 2 * (risk.error or 0.0), risk.alpha
        what = "the measured mean harm, within two standard errors,"
    else:
        promised, what = float(1 - alpha), "the measured interval"
    place = "is below" if high < promised else "is above" if low > promised else "contains"
    where = f"{what} {place} {float(promised):g}"
    over = "" if predictor.promise.confidence is not None else ", on average over calibrations"
    return f"guaranteed: {guarantee}{over} ({n:,} rows); {where}"
