"""`udcp predict FILE --probs P -o sets.parquet`: the prediction sets of new rows by a saved predictor."""

from __future__ import annotations

import click

from udcp_dsl.cli.row_options import check_table, group_option, heeding_warnings, id_option, reads_rows, rows_from
from udcp_dsl.cli.solving import solves_instances, solving
from udcp_dsl.cli.spec import json_option
from udcp_dsl.cli.terminal import STDOUT, emit, visible, written_to
from udcp_dsl.diagnostics import InputError

_BLOCK = 1 << 22  # entries of the matrix that are worked on at a time


@click.command("predict", epilog="Example:  udcp predict pets.json --probs new.csv --id photo -o sets.csv")
@click.argument("predictor_file", metavar="FILE", type=click.Path())
@reads_rows(id_option, group_option)
@click.option("--alpha", metavar="LEVEL", help="Which of the calibrated levels, where there are several.")
@solves_instances
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where to write the sets: .parquet, .csv, .jsonl or .npy; - for standard output.",
)
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), help="What standard output gets (default: csv).")
@json_option
def command(
    predictor_file: str,
    probs_file: str,
    class_names: list[str] | None,
    ignore: tuple[str, ...],
    id_source: str | None,
    group_source: str | None,
    alpha: str | None,
    workers: int | None,
    resume: str | None,
    output: str,
    form: str | None,
    as_json: bool,
) -> None:
    """Write the prediction sets of new rows, one a line: id, labels, size and cost (as .npy: the boolean mask).

    Of a loss with worst(...) also the best action for the set and what it costs at worst, over the labels of the set;
    of a loss min(L, c) whether the case is handed over, that is, costs c.
    """
    import numpy as np

    from udcp_dsl.prediction.calibrate import show_level
    from udcp_dsl.prediction.predictor import SetPredictor
    from udcp_dsl.prediction.sets import PredictionSets
    from udcp_dsl.prediction.writing import sets_ending, write_sets

    check_table(output, sets_ending, as_json)
    if form is not None and output != STDOUT:
        raise InputError("--format is for standard output (-o -): of a file the ending says it")
    with heeding_warnings(as_json) as warnings:
        predictor = SetPredictor.load(predictor_file)
        labels = predictor.loss.labels
        level = predictor.calibrated.level(alpha)
        rows = rows_from(
            probs_file,
            labels,
            class_names=class_names or predictor.class_names,
            ignore=ignore,
            id_source=id_source,
            group_source=group_source,
            logits=predictor.logits,
            normalize=predictor.normalize,
        )
        # All at once, so that a fault is named by its row in the file.
        predictor.calibrated.cells_of(level, rows.groups, len(rows))
        step = max(1, _BLOCK // len(labels))
        mask, costs = np.empty(rows.P.shape, dtype=bool), np.empty(len(rows))
        with solving(
            predictor.oracle, len(rows), workers=workers, resume=resume, doing="predicting", blocks=True
        ) as work:
            for start in range(0, len(rows), step):
                if work is not None:
                    work.at(start)
                part = slice(start, start + step)
                mask[part] = predictor.sets(rows.take(part), level)
                costs[part] = predictor.loss.batch(mask[part])
        sets = PredictionSets(predictor.loss, mask)
        sizes, handed = sets.sizes, sets.handed_over
        with written_to(output, f".{form or 'csv'}") as file:
            write_sets(file, mask=mask, labels=labels, ids=rows.ids, costs=costs, sizes=sizes, more=sets.decisions)
    empty = int((sizes == 0).sum())
    if as_json:
        emit(
            {
                "warnings": warnings,
                "file": output,
                "loss": predictor.loss.name,
                "oracle": predictor.oracle.name,
                "alpha": show_level(level),
                "n": len(rows),
                "mean_size": float(sizes.mean()),
                "mean_cost": float(costs.mean()),
                "empty": empty,
                "handed_over": None if handed is None else float(handed.mean()),
            }
        )
        return
    where = "standard output" if output == STDOUT else visible(output)
    click.echo(
        f"{where}: {len(rows):,} sets at alpha {show_level(level)}, mean size {sizes.mean():.4g}, mean cost "
        f"{costs.mean():.6g}"
        + (f", {empty:,} empty" if empty else "")
        + ("" if handed is None else f", {handed.mean():.1%} handed over"),
        err=output == STDOUT,
    )
