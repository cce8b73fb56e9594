"""`udcp order SPEC --probs P --row 7`: the order of labels in one row, with mass and cost at each step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish, wants_json
from udcp_dsl.cli.progress import waiting
from udcp_dsl.cli.row_options import RowOptions, check_output, chooses_oracle, collect_warnings, reads_rows
from udcp_dsl.cli.spec import diagnostics_of, reads_spec, takes_inputs
from udcp_dsl.diagnostics import RowFault

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_SHOWN = 20


@click.command(
    "order", epilog="Example:  udcp order pets.loss --probs p.csv --row 7 --oracle price --top 5 --plot hull.svg"
)
@reads_spec
@reads_rows("id_column", numbers=True)
@takes_inputs
@click.option("--row", type=click.IntRange(min=0), required=True, metavar="N", help="Row to show, counted from 0.")
@chooses_oracle
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Number of labels and prices to show (default: {_SHOWN}; all with --json).",
)
@click.option(
    "--plot",
    "plot",
    metavar="FILE",
    help="Draw probability and cost: .svg, .png or .pdf (needs the extra report).",
)
def command(
    loss: Loss,
    row_options: RowOptions,
    row: int,
    oracle: str,
    options: dict[str, object],
    inputs: dict[str, Any] | None,
    top: int | None,
    plot: str | None,
) -> int:
    """Print the order in which an oracle adds the labels of one row, with probability and cost of each prefix.

    Inputs per row come from the table or from --inputs; --input km=12 replaces one of them, to see what another number
    would change. For price, also print at which price each label enters.
    """
    from udcp_dsl.predict.oracle import make_oracle
    from udcp_dsl.predict.order import order_of

    if plot is not None:
        from udcp_dsl.report.hull import check_figure

        check_figure(plot)
        check_output(plot)
    diagnostics = diagnostics_of(loss, [oracle])
    with collect_warnings() as warnings:
        made = make_oracle(oracle, loss, **options)
        rows = replace(row_options, inputs_given=frozenset(inputs or ())).read(loss, row)
        if loss.inputs or inputs:  # from here on, the loss of this row
            loss = _of_row(loss, {**({} if rows.inputs is None else rows.inputs.row(0)), **(inputs or {})}, row)
            made = make_oracle(oracle, loss, **options)
        count = top or (None if wants_json() else _SHOWN)
        with waiting(f"scoring row {row}"):
            every = order_of(made, rows.P[0], count if plot is None else None)
    every = replace(every, row=row, id=None if rows.ids is None else str(rows.ids[0]))

    def write() -> list[str]:
        if plot is None:
            return []
        from udcp_dsl.report.hull import write_hull

        write_hull(plot, every)
        return [plot]

    described = replace(every, steps=every.steps[:count]).describe(top or _SHOWN)
    fields = {"diagnostics": diagnostics, "warnings": warnings}
    return finish(described, fields, write=write, key="plot", message="figure written to {}")


def _of_row(loss: Loss, inputs: dict[str, Any], row: int) -> Loss:
    try:
        return loss.at(inputs)
    except RowFault as fault:
        raise fault.moved(row) from fault
