"""`udcp calibrate SPEC --probs P --truth Y -o FILE`: thresholds from labelled rows, saved with all that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from udcp_dsl.cli.row_options import (
    RowOptions,
    check_output,
    chooses_oracle,
    heeding_warnings,
    reads_rows,
    temperature_of,
    written_or_why,
)
from udcp_dsl.cli.solving import check_engine, chooses_engine, cores, solves_instances, solving
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.cli.terminal import emit, show, visible
from udcp_dsl.cli.thresholds import calibration_as_data, threshold_table, tuning_text
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from udcp_dsl.loss import Loss
    from udcp_dsl.prediction.predictor import SetPredictor


@click.command(
    "calibrate",
    epilog="Example:  udcp calibrate pets.loss --probs p.csv --truth label --oracle greedy --alpha 0.1 -o pets.json",
)
@reads_spec
@reads_rows("truth_column", "group_column", "id_column", "column", "weight_column", numbers=True)
@chooses_oracle
@click.option(
    "--alpha",
    "alphas",
    multiple=True,
    metavar="LEVEL",
    help="Miscoverage (default 0.1), or with --risk the mean harm to stay below; may be repeated.",
)
@click.option(
    "--conditional",
    type=click.Choice(["group", "class", "difficulty"]),
    help="Coverage within each group (implied by --group), each class, or each of --bins by the highest probability.",
)
@click.option("--bins", type=click.IntRange(min=2), help="How many bins by difficulty (default 4).")
@click.option("--confidence", metavar="LEVEL", help="Cover with this probability over the draw of these very rows.")
@click.option("--simultaneous", is_flag=True, help="That confidence for all groups, classes or bins at once.")
@click.option("--risk", metavar="COSTS", help="Costs of the spec, the harm of missing a label: alpha bounds its mean.")
@click.option("--temperature", metavar="fit|NUMBER", help="Repair the probabilities first: fitted, or by a number.")
@click.option("--pool", is_flag=True, help="Groups or classes with too few points take the threshold of all.")
@click.option("--nonempty", is_flag=True, help="Never give an empty set.")
@click.option("--randomize", is_flag=True, help="Cover 1 - alpha exactly, by chance at the boundary.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of folds and of --randomize.")
@solves_instances
@chooses_engine
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to save the predictor, as JSON.")
def command(
    loss: Loss,
    row_options: RowOptions,
    oracle: str,
    options: dict[str, object],
    alphas: tuple[str, ...],
    conditional: Literal["group", "class", "difficulty"] | None,
    bins: int | None,
    confidence: str | None,
    simultaneous: bool,
    risk: str | None,
    temperature: str | None,
    pool: bool,
    nonempty: bool,
    randomize: bool,
    seed: int,
    workers: int | None,
    resume: str | None,
    engine: str,
    scheduler: str | None,
    output: str,
    as_json: bool,
) -> int:
    """Set thresholds from rows with known truth, which the classifier was not trained on, and save the predictor."""
    from udcp_dsl.prediction.predictor import SetPredictor

    if row_options.by_group and conditional in ("class", "difficulty"):
        raise InputError(f"--group calibrates by group and --conditional {conditional} by {conditional}: choose one")
    if not row_options.by_group and conditional == "group":
        raise InputError("--conditional group needs the group of each row: --group COLUMN")
    check_output(output, ".json")
    check_engine(engine, scheduler, workers, resume)
    diagnostics = diagnostics_of(loss, [oracle], as_json)
    with heeding_warnings(as_json) as warnings:
        predictor = SetPredictor(
            loss,
            oracle,
            options=options,
            alpha=alphas or None,
            conditional="group" if row_options.by_group else conditional,
            bins=bins,
            confidence=confidence,
            simultaneous=simultaneous,
            risk=risk,
            temperature=temperature_of(temperature),
            pool=pool,
            nonempty=nonempty,
            randomize=randomize,
            seed=seed,
            class_names=row_options.class_names,
        )
        source = row_options.source(loss.labels)
        if engine == "dask":
            from udcp_dsl.cli.progress import waiting
            from udcp_dsl.dask import connected, spread

            with waiting("calibrating", source.rows) as work, connected(scheduler, workers or cores()) as client:
                rows = spread(client, source, work.reach)
                predictor.calibrate(rows, logits=row_options.logits, normalize=row_options.normalize)
                accuracy = rows.hits / len(rows)
        else:
            rows = source.read()
            with solving(predictor.oracle, len(rows), workers=workers, resume=resume, doing="calibrating"):
                predictor.calibrate(rows, logits=row_options.logits, normalize=row_options.normalize)
            accuracy = rows.hits / len(rows)

    def write() -> list[str]:
        predictor.save(output)
        return [output]

    if as_json:
        written, faults = written_or_why(write)
        spec = {"diagnostics": diagnostics + faults, "warnings": warnings, "file": output if written else None}
        emit({**spec, "rows": len(rows), "accuracy": accuracy, **calibration_as_data(predictor)}, ok=not faults)
        return 2 if faults else 0
    show(*_shown(predictor, output, accuracy))
    write()
    return 0


def _shown(predictor: SetPredictor, output: str, accuracy: float) -> list[RenderableType]:
    from rich.text import Text

    n, tuning = predictor.calibrated.n, predictor.tuning
    name = predictor.oracle.name
    heading = Text.assemble(
        (visible(output), "bold"), f": {visible(predictor.loss.name)} by {name}, calibrated on {n:,} rows"
    )
    heading.append(f" (accuracy of the likeliest label {accuracy:.1%})")
    heading.append("".join(f"\n{predictor.promises.told(alpha)}" for alpha in predictor.alphas))
    if predictor.temperature is not None:
        heading.append(f"\nat temperature {predictor.temperature:.6g}")
    if predictor.anchors is not None:
        heading.append(f"\nby anchors, found on {predictor.anchors.n:,} other rows: udcp show {visible(output)}")
    settings = [f"{key} = {value}" for key, value in predictor.oracle.options.items() if value is not None]
    if settings:
        heading.append("\nwith " + ", ".join(settings))
    shown: list[RenderableType] = [heading, "", threshold_table(predictor)]
    if tuning is not None:
        shown += ["", tuning_text(tuning)]
    return shown
