"""`udcp calibrate SPEC --probs P --truth Y -o FILE`: thresholds from labelled rows, saved with all that they need."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

import click

from udcp_dsl.cli.progress import waiting
from udcp_dsl.cli.row_options import (
    alpha_option,
    check_output,
    chooses_oracle,
    group_option,
    heeding_warnings,
    id_option,
    numbers_options,
    reads_rows,
    rows_from,
    truth_option,
)
from udcp_dsl.cli.solving import solves_instances, solving
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.cli.terminal import emit, plain_table, show, visible
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.console import RenderableType

    from udcp_dsl.loss import Loss
    from udcp_dsl.prediction.predictor import SetPredictor

_SHOWN = 12


@click.command(
    "calibrate",
    epilog="Example:  udcp calibrate pets.loss --probs p.csv --truth label --oracle greedy --alpha 0.1 -o pets.json",
)
@reads_spec
@reads_rows(truth_option, group_option, id_option, *numbers_options)
@chooses_oracle
@alpha_option
@click.option(
    "--conditional",
    type=click.Choice(["group", "class"]),
    help="Coverage within each group (implied by --group) or each class.",
)
@click.option("--pool", is_flag=True, help="Groups or classes with too few points take the threshold of all.")
@click.option("--nonempty", is_flag=True, help="Never give an empty set.")
@click.option("--randomize", is_flag=True, help="Cover 1 - alpha exactly, by chance at the boundary.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of folds and of --randomize.")
@solves_instances
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to save the predictor, as JSON.")
def command(
    loss: Loss,
    probs_file: str,
    truth_source: str,
    group_source: str | None,
    id_source: str | None,
    class_names: list[str] | None,
    ignore: tuple[str, ...],
    logits: bool,
    normalize: bool,
    oracle: str,
    options: dict[str, object],
    alphas: tuple[Fraction, ...],
    conditional: Literal["group", "class"] | None,
    pool: bool,
    nonempty: bool,
    randomize: bool,
    seed: int,
    workers: int | None,
    resume: str | None,
    output: str,
    as_json: bool,
) -> None:
    """Set thresholds from rows with known truth, which the classifier was not trained on, and save the predictor."""
    from udcp_dsl.prediction.predictor import SetPredictor

    if group_source is not None and conditional == "class":
        raise InputError("--group calibrates by group and --conditional class by class: choose one")
    if group_source is None and conditional == "group":
        raise InputError("--conditional group needs the group of each row: --group COLUMN")
    check_output(output, ".json")
    diagnostics = diagnostics_of(loss, [oracle], as_json)
    with heeding_warnings(as_json) as warnings:
        predictor = SetPredictor(
            loss,
            oracle,
            options=options,
            alpha=alphas,
            conditional="group" if group_source is not None else conditional,
            pool=pool,
            nonempty=nonempty,
            randomize=randomize,
            seed=seed,
            class_names=class_names,
        )
        rows = rows_from(
            probs_file,
            loss.labels,
            class_names=class_names,
            ignore=ignore,
            id_source=id_source,
            group_source=group_source,
            truth_source=truth_source,
            logits=logits,
            normalize=normalize,
        )
        with (
            solving(predictor.oracle, len(rows), workers=workers, resume=resume) as bar_shown,
            nullcontext() if bar_shown else waiting("calibrating"),
        ):
            predictor.calibrate(rows, logits=logits, normalize=normalize)
        predictor.save(output)
    accuracy = rows.hits / len(rows)
    if as_json:
        spec = {"diagnostics": diagnostics, "warnings": warnings}
        emit({**spec, "file": output, "rows": len(rows), "accuracy": accuracy, **_summary(predictor)})
    else:
        show(*_shown(predictor, output, accuracy))


def _summary(predictor: SetPredictor) -> dict[str, Any]:
    from udcp_dsl.prediction.calibrate import show_level

    calibration, tuning = predictor.calibrated, predictor.tuning
    return {
        "loss": predictor.loss.name,
        "oracle": predictor.oracle.name,
        "options": predictor.oracle.options,
        "n": calibration.n,
        "conditional": predictor.conditional,
        "thresholds": [
            {
                "alpha": show_level(alpha),
                "cells": [
                    {"name": name, "n": n, "threshold": tau if math.isfinite(tau) else str(tau)}
                    for name, n, tau in _cells(predictor, alpha)
                ],
            }
            for alpha in predictor.alphas
        ],
        "tuning": None if tuning is None else {**tuning.as_dict(), "best": tuning.best, "excess": tuning.excess},
    }


def _cells(predictor: SetPredictor, alpha: Any) -> list[tuple[str | None, int, float]]:
    """The name, number of points and threshold of all rows, or of each group or class."""
    calibration = predictor.calibrated
    thresholds: Any = calibration.thresholds(alpha)
    if predictor.conditional is None:
        return [(None, calibration.n, thresholds)]
    names = calibration.groups if predictor.conditional == "group" else predictor.loss.labels
    taus = [thresholds[name] for name in names] if predictor.conditional == "group" else thresholds.tolist()
    return [(name, cell.n, tau) for name, cell, tau in zip(names, calibration.cells, taus, strict=True)]


def _shown(predictor: SetPredictor, output: str, accuracy: float) -> list[RenderableType]:
    from rich.text import Text

    from udcp_dsl.prediction.calibrate import show_level

    n, tuning = predictor.calibrated.n, predictor.tuning
    name = predictor.oracle.name
    heading = Text.assemble(
        (visible(output), "bold"), f": {visible(predictor.loss.name)} by {name}, calibrated on {n:,} rows"
    )
    heading.append(f" (accuracy of the likeliest label {accuracy:.1%})")
    if predictor.oracle.options:
        heading.append("\nwith " + ", ".join(f"{key} = {value}" for key, value in predictor.oracle.options.items()))
    table = plain_table()
    kind = predictor.conditional
    for column in ("alpha", *([] if kind is None else [kind]), "points", "threshold"):
        table.add_column(column, justify="left" if column == kind else "right", overflow="fold")
    for alpha in predictor.alphas:
        cells = _cells(predictor, alpha)
        for cell, points, tau in cells[:_SHOWN]:
            named = [] if cell is None else [Text(visible(cell))]
            table.add_row(show_level(alpha), *named, f"{points:,}", f"{tau:.10g}")
        if len(cells) > _SHOWN:
            table.add_row(show_level(alpha), f"and {len(cells) - _SHOWN} more", "", "")
    shown: list[RenderableType] = [heading, "", table]
    if tuning is not None:
        grid = ", ".join(f"{lam:g}" for lam in tuning.grid)
        costs = ", ".join(f"{cost:.4g}" for cost in tuning.mean_costs)
        shown += [
            "",
            f"lambda {tuning.best:g} of {grid}, which cost {costs} on {tuning.n:,} other rows;\nbut for a chance of "
            f"{tuning.delta:.0%}, at most {tuning.excess:.4g} above the best of these (costs lie in "
            f"[{tuning.lo:.6g}, {tuning.hi:.6g}])",
        ]
    return shown
