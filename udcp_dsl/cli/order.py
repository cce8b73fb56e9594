"""`udcp order SPEC --probs P --row 7`: the order of labels in one row, with mass and cost at each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish, wants_json
from udcp_dsl.cli.input_options import takes_inputs
from udcp_dsl.cli.progress import waiting
from udcp_dsl.cli.row_options import RowOptions, check_output, chooses_oracle, collect_warnings, reads_rows
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.diagnostics import InputError, RowFault
from udcp_dsl.showing import Column, Description, Styled, Table, in_unit, visible

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.oracle import Floats, Oracle
    from udcp_dsl.report.hull import Vertex

_SHOWN = 20
_WIDEST = 40  # columns of a list of labels


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

    if plot is not None:
        from udcp_dsl.report.hull import check_figure

        check_figure(plot)
        check_output(plot)
    diagnostics = diagnostics_of(loss, [oracle])
    with collect_warnings() as warnings:
        made = make_oracle(oracle, loss, **options)
        if made.untuned:
            raise InputError(f"oracle {oracle!r} has no lambda before it is calibrated: give one, --option lam=0.1")
        rows = replace(row_options, inputs_given=frozenset(inputs or ())).read(loss, row)
        if loss.inputs or inputs:  # from here on, the loss of this row
            loss = _of_row(loss, {**({} if rows.inputs is None else rows.inputs.row(0)), **(inputs or {})}, row)
            made = make_oracle(oracle, loss, **options)
        P = rows.P
        count = loss.K if top is None and wants_json() else min(loss.K, top or _SHOWN)
        with waiting(f"scoring row {row}"):
            (scores,) = made.scores(P)
        every = ordering(loss, P[0], scores, count if plot is None else loss.K)
        hull = _explained(made, P[0], scores)
    steps = every[:count]
    name = None if rows.ids is None else str(rows.ids[0])
    which = f", row {row}{'' if name is None else f', {name}'}, by {made.name}" + (
        f", {made.about}" if made.about else ""
    )

    def write() -> list[str]:
        if plot is None:
            return []
        from udcp_dsl.report.hull import Point, write_hull

        points = [Point(0.0, loss(())), *(Point(step["mass"], step["cost"]) for step in every)]
        write_hull(plot, visible(f"{loss.name}{which}"), made.name, points, hull, loss.unit)
        return [plot]

    more = f"the first {len(steps)} of {loss.K} labels; " if len(steps) < loss.K else ""
    note = Styled(f"{more}mass and cost of the set of all labels up to this one", "dim")
    by = {"oracle": made.name, "about": made.about, "options": made.options}
    described = Description(
        title=(Styled(loss.name, "bold"), which),
        tables=(
            _order_table(steps, loss.unit, note),
            *([] if hull is None else [_hull_table(hull, min(len(hull), top or _SHOWN), loss.unit)]),
        ),
        data={"loss": loss.name, "unit": loss.unit, **by, "row": row, "id": name, "labels": loss.K, "hull": None},
    )
    fields = {"diagnostics": diagnostics, "warnings": warnings}
    return finish(described, fields, write=write, key="plot", message="figure written to {}")


def _of_row(loss: Loss, inputs: dict[str, Any], row: int) -> Loss:
    try:
        return loss.at(inputs)
    except RowFault as fault:
        raise fault.moved(row) from fault


def _order_table(steps: Sequence[dict[str, Any]], unit: str | None, note: Styled) -> Table:
    columns = (
        Column("rank", "rank", "d"),
        Column("label", "label"),
        Column("p", "p", ".4g"),
        Column("mass", "mass", ".6g"),
        Column(in_unit("cost", unit), "cost", ".6g"),
        Column("score", "score", ".6g"),
    )
    return Table(columns, steps, note=note, key="order")


def _hull_table(hull: Sequence[Vertex], count: int, unit: str | None) -> Table:
    """The set at each price, one line per vertex; labels that left have a column only if there are any."""
    leaving = any(vertex.left for vertex in hull)
    columns = (
        Column("price", "price", ".6g"),
        Column("enter", lambda vertex: ", ".join(vertex["entered"]), width=_WIDEST),
        *([Column("left", lambda vertex: ", ".join(vertex["left"]), width=_WIDEST)] if leaving else []),
        Column("labels", "labels", "d"),
        Column("mass", "mass", ".6g"),
        Column(in_unit("cost", unit), "cost", ".6g"),
    )
    vertices = [_as_data(vertex) for vertex in hull]
    sizes = accumulate(len(vertex.entered) for vertex in hull)
    shown = [{**vertex, "labels": size} for vertex, size in zip(vertices, sizes, strict=True)][:count]
    more = f"the first {count} of {len(hull)} prices; " if count < len(hull) else ""
    note = (
        "sets are unions of the best sets up to their price; labels in the column 'left' are no longer in the best set"
        if leaving
        else "mass and cost of the best set at each price"
    )
    title = Styled("the hull: what each price of probability buys", "bold")
    return Table(columns, vertices, title, Styled(more + note, "dim"), "hull", shown)


def _as_data(vertex: Vertex) -> dict[str, Any]:
    return {
        "price": vertex.price,
        "entered": list(vertex.entered),
        "left": list(vertex.left),
        "mass": vertex.mass,
        "cost": vertex.cost + 0.0,
    }


def _explained(oracle: Oracle, p: Any, scores: Floats) -> Sequence[Vertex] | None:
    """The hull of one row, if the oracle has one; it gets the known scores, if it takes them."""
    from inspect import signature

    explain = getattr(oracle, "explain", None)
    if explain is None:
        return None
    hull: Sequence[Vertex] = explain(p, scores) if "scores" in signature(explain).parameters else explain(p)
    return hull


def ordering(loss: Loss, row: Any, scores: Floats, count: int) -> list[dict[str, Any]]:
    """The first labels of one row by increasing score (ties: higher p, then lower index), and their prefixes."""
    import numpy as np

    p = row.astype(np.float64)
    order = np.lexsort((np.arange(p.size), -p, scores))[:count]
    grow = loss.increments(1)
    steps = []
    for rank, y in enumerate(order.tolist(), start=1):
        grow.push([y])
        score = float(scores[y])
        steps.append(
            {
                "rank": rank,
                "label": loss.labels[y],
                "p": float(p[y]),
                "mass": math.fsum(p[order[:rank]]),
                "cost": float(grow.value[0]) + 0.0,
                "score": score if math.isfinite(score) else str(score),
            }
        )
    return steps
