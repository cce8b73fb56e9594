"""`udcp gap SPEC --probs P`: compare the sets of oracles, row by row, with sets that are proved optimal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import FAILED, finish
from udcp_dsl.cli.row_options import RowOptions, collect_warnings, reads_rows
from udcp_dsl.cli.solving import Computing, computes, solving
from udcp_dsl.cli.spec import diagnostics_of, reads_spec

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@click.command("gap", epilog="Example:  udcp gap pets.loss --probs p.csv --sample 50 --alpha 0.05 --oracle greedy")
@reads_spec
@reads_rows("id_column", numbers=True)
@click.option(
    "--oracle",
    "names",
    multiple=True,
    metavar="NAME",
    help="Oracle to examine; may be repeated (default: greedy and price).",
)
@click.option(
    "--alpha", default="0.1", show_default=True, metavar="LEVEL", help="Sets have a probability of at least 1 - alpha."
)
@click.option("--sample", type=click.IntRange(min=1), default=200, show_default=True, help="Number of rows to sample.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed for the sample.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Time limit for the optimum of each row.")
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Solver, by its name in PuLP.",
)
@computes
def command(
    loss: Loss,
    row_options: RowOptions,
    names: tuple[str, ...],
    alpha: str,
    sample: int,
    seed: int,
    time_limit: float | None,
    solver: str,
    computing: Computing,
) -> int:
    """Compare the sets of oracles with the cheapest sets of the same probability: is `ilp` worth its time?

    The comparison is row by row. An oracle such as `price`, which covers more where that is cheap, may cost more in one
    row and less overall. Exit status 1 if the optimum of some row could not be proved.
    """
    from udcp_dsl.measure.gap import USUAL, gap

    diagnostics = diagnostics_of(loss, names or USUAL)
    with collect_warnings() as warnings:
        found = gap(
            loss,
            row_options.read(loss),
            oracles=names or None,
            alpha=alpha,
            sample=sample,
            seed=seed,
            options={"solver": solver, "time_limit": time_limit},
            running=lambda exact, rows: solving(exact, rows, computing),
        )
    fields = {"diagnostics": diagnostics, "warnings": warnings}
    return finish(found, fields, status=0 if found.proved.all() else FAILED)
