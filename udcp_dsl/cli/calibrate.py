"""`udcp calibrate SPEC --probs P --truth Y -o FILE`: set thresholds on labelled rows and save the predictor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish
from udcp_dsl.cli.promise_options import asks
from udcp_dsl.cli.row_options import RowOptions, check_output, chooses_oracle, collect_warnings, reads_rows
from udcp_dsl.cli.solving import Computing, chooses_engine, computes, on_cluster, solving
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.promise import Promise
from udcp_dsl.showing import Styled

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.rows.rows import Rows
    from udcp_dsl.spec_warnings import SpecFinding


@click.command(
    "calibrate",
    epilog="Example:  udcp calibrate pets.loss --probs p.csv --truth label --oracle greedy --alpha 0.1 -o pets.json",
)
@reads_spec
@reads_rows("truth_column", "group_column", "id_column", "column", "weight_column", numbers=True)
@chooses_oracle
@asks()
@computes
@chooses_engine
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to save the predictor, as JSON.")
def command(
    loss: Loss,
    row_options: RowOptions,
    oracle: str,
    options: dict[str, object],
    asked: dict[str, Any],
    computing: Computing,
    output: str,
) -> int:
    """Set thresholds on labelled rows that the classifier was not trained on, and save the predictor."""
    from udcp_dsl.predict.described import calibration_as_data
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.spec_warnings import findings_table

    conditional = asked["conditional"]
    if row_options.by_group and conditional in ("class", "difficulty", "decision"):
        raise InputError(f"--group calibrates by group, but --conditional {conditional} by {conditional}: choose one")
    if not row_options.by_group and conditional == "group":
        raise InputError("--conditional group needs the group of each row: --group COLUMN")
    if row_options.by_group:
        asked["conditional"] = "group"
    check_output(output, ".json")
    diagnostics = diagnostics_of(loss, [oracle])
    with collect_warnings() as warnings:
        predictor = SetPredictor(
            loss, oracle, options=options, promise=Promise(**asked), class_names=row_options.class_names
        )
        source = row_options.source(predictor.promise.reads(loss))
        how: dict[str, Any] = {"logits": row_options.logits, "normalize": row_options.normalize}
        if computing.dask:
            from udcp_dsl.cluster.dask import spread

            with on_cluster(computing, "calibrating", None) as (cluster, reach):
                rows = spread(cluster, source, reach)
                predictor.calibrate(rows, **how)
                accuracy = rows.hits / len(rows)
        else:
            rows = source.read()
            with solving(predictor.oracle, len(rows), computing, doing="calibrating"):
                predictor.calibrate(rows, **how)
            accuracy = rows.hits / len(rows)

    def write() -> list[str]:
        predictor.save(output)
        return [output]

    as_they_are = not computing.dask and not any(how.values())
    findings = _spec_findings(predictor, rows if as_they_are else None)
    diagnostics += [found.diagnostic for found in findings]
    described = predictor.describe()
    shown = f"{loss.name} by {oracle}, alpha {predictor.promise.shown_alphas}"
    described = replace(
        described,
        title=(Styled(output, "bold"), f": {shown}; accuracy of the likeliest label {accuracy:.1%}"),
        tables=(*described.tables, findings_table(findings)),
        data={
            "rows": len(rows),
            "accuracy": accuracy,
            **calibration_as_data(predictor),
            "in_sample": [x.in_sample for x in predictor.fits.values() if x.in_sample is not None],
        },
    )
    return finish(described, {"diagnostics": diagnostics, "warnings": warnings}, write=write, key="file", message="")


def _spec_findings(predictor: SetPredictor, rows: Rows | None) -> tuple[SpecFinding, ...]:
    """Findings W602 to W605 about the spec, for sets on rows like these and for the calibrated price."""
    from udcp_dsl.predict.described import cells
    from udcp_dsl.rows.columns import to_array
    from udcp_dsl.spec_warnings import some_rows, spec_warnings

    promise = predictor.promise
    priced = (
        predictor.oracle.name == "price"
        and promise.risk is None
        and not predictor.fitted.thresholds.calibration.weighted
    )
    taus = [tau for alpha in predictor.alphas for _, _, tau in cells(predictor, alpha)] if priced else []
    P = None if rows is None else to_array(predictor.repaired(rows.take(some_rows(len(rows))).P))
    return spec_warnings(predictor.loss, P, max(taus, default=None))
