"""`udcp order SPEC --probs P --row 7`: one instance's ordering, with mass and cost at each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.rows import chooses_oracle, heeding_warnings, id_option, numbers_options, read_rows, reads_rows
from udcp_dsl.cli.spec import reads_spec
from udcp_dsl.cli.terminal import emit, plain_table, show, visible
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.oracle import Oracle

_SHOWN = 20


@click.command("order", epilog="Example:  udcp order pets.loss --probs p.csv --row 7 --oracle greedy --top 5")
@reads_spec
@reads_rows(id_option, *numbers_options)
@click.option("--row", type=click.IntRange(min=0), required=True, metavar="N", help="Which row, counted from 0.")
@chooses_oracle
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help=f"How many labels (default: {_SHOWN}; with --json all)."
)
def command(
    loss: Loss,
    probs_file: str,
    class_names: list[str] | None,
    ignore: tuple[str, ...],
    id_source: str | None,
    logits: bool,
    normalize: bool,
    row: int,
    oracle: str,
    options: dict[str, object],
    top: int | None,
    as_json: bool,
) -> None:
    """Print the order in which an oracle adds the labels of one row, and what each prefix holds and costs."""
    from udcp_dsl import inputs
    from udcp_dsl.oracle import make_oracle

    with heeding_warnings(as_json) as warnings:
        made = make_oracle(oracle, loss, **options)
        if made.options.get("lam", 0.0) is None:
            raise InputError(f"oracle {oracle!r} has no lambda before it is calibrated: give one, --option lam=0.1")
        rows = read_rows(probs_file, loss.labels, class_names=class_names, ignore=ignore, id_source=id_source)
        if row >= len(rows):
            raise InputError(f"{probs_file}: there is no row {row}: rows are counted from 0, and there are {len(rows)}")
        part = rows.table.values[row : row + 1]
        P = inputs.probabilities(part, loss.labels, logits=logits, normalize=normalize).values
        steps = ordering(made, P, loss.K if top is None and as_json else min(loss.K, top or _SHOWN))
    name = None if rows.ids is None else str(rows.ids[row])
    if as_json:
        emit(
            {
                "diagnostics": [x.as_dict() for x in loss.warnings],
                "warnings": warnings,
                "loss": loss.name,
                "oracle": made.name,
                "options": made.options,
                "row": row,
                "id": name,
                "labels": loss.K,
                "order": steps,
            }
        )
        return
    from rich.text import Text

    which = f"row {row}" if name is None else f"row {row}, {visible(name)}"
    table = plain_table()
    for column in ("rank", "label", "p", "mass", "cost", "score"):
        table.add_column(column, justify="left" if column == "label" else "right", overflow="fold")
    for step in steps:
        table.add_row(
            str(step["rank"]),
            Text(visible(step["label"])),
            f"{step['p']:.4g}",
            f"{step['mass']:.6g}",
            f"{step['cost']:.6g}",
            step["score"] if isinstance(step["score"], str) else f"{step['score']:.6g}",
        )
    more = f"the first {len(steps)} of {loss.K} labels; " if len(steps) < loss.K else ""
    show(
        Text.assemble((visible(loss.name), "bold"), f", {which}, by {made.name}"),
        "",
        table,
        "",
        Text(f"{more}mass and cost are those of the set of all labels down to this one", "dim"),
    )


def ordering(oracle: Oracle, P: Any, count: int) -> list[dict[str, Any]]:
    """The first labels of one row in rising order of score (ties: higher p, then lower index), and their prefixes."""
    import numpy as np

    scores, p = oracle.scores(P)[0], P[0].astype(np.float64)
    order = np.lexsort((np.arange(p.size), -p, scores))[:count]
    grow = oracle.loss.increments(1)
    steps = []
    for rank, y in enumerate(order.tolist(), start=1):
        grow.push([y])
        score = float(scores[y])
        steps.append(
            {
                "rank": rank,
                "label": oracle.loss.labels[y],
                "p": float(p[y]),
                "mass": math.fsum(p[order[:rank]]),
                "cost": float(grow.value[0]) + 0.0,
                "score": score if math.isfinite(score) else str(score),
            }
        )
    return steps
