"""`udcp validate SPEC`: is this spec safe to use? Answered by generated cases, with the smallest one against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.progress import Work, showing
from udcp_dsl.cli.row_options import (
    RowOptions,
    alpha_option,
    check_output,
    heeding_warnings,
    reads_rows,
    written_or_why,
)
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.cli.terminal import emit, plain_table, show, symbols, visible
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from udcp_dsl.loss import Loss
    from udcp_dsl.validation import Stage, Validation

_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_COLOURS = {True: "green", False: "bold red", None: "yellow"}
_STATES = {True: "proved", False: "refuted", None: "unknown"}
_FAILED, _NOT_WRITTEN, _UNTRIED = 1, 2, 3  # exit status


def _budget(ctx: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    match = _SECONDS.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise click.BadParameter(f"{text!r} is not a time: write 60s, 2m or 1h", ctx, parameter)
    return float(match[1]) * _UNITS[match[2]]


@click.command("validate", epilog="Example:  udcp validate pets.loss --alpha 0.05 --budget 30s --report pets.html")
@reads_spec
@click.option(
    "--oracle", "names", multiple=True, metavar="NAME", help="Which oracle; may be repeated (all that apply)."
)
@alpha_option
@click.option("--budget", callback=_budget, metavar="TIME", help="About how long: 60s (default), 2m, 1h.")
@click.option(
    "--cases", type=click.IntRange(min=1), metavar="N", help="Rounds of cases instead: the same seed, the same output."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all that is generated.")
@reads_rows(
    "truth_column", numbers=True, optional="Your own probabilities, for splits and a test for drift; goes with --truth."
)
@click.option("--report", "report_file", metavar="FILE", help="Write the verdicts as an HTML page.")
@click.option("--strict", is_flag=True, help="Exit status 3 where nothing fails, but a claim was not tried.")
def command(
    loss: Loss,
    names: tuple[str, ...],
    alphas: tuple[Fraction, ...],
    budget: float | None,
    cases: int | None,
    seed: int,
    row_options: RowOptions | None,
    report_file: str | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Is this spec safe to use? What it means, what is proved, its oracles and coverage, on generated cases.

    Exit status 0 if all that was tried holds, 1 with the smallest counter-example if not; with --strict 3 if all that
    was tried holds, but some claims were not tried, for want of time (a larger --budget) or of a way to. They are
    counted in the last line. 2 is wrong input. Cases that lie beside the spec, in NAME.cases, are tried first.
    """
    from udcp_dsl.prediction.oracle import oracle_names
    from udcp_dsl.validation import validate
    from udcp_dsl.validation.cases import cases_beside

    if budget is not None and cases is not None:
        raise InputError("--budget and --cases: give one of them; --cases makes the output repeatable")
    if report_file is not None:
        check_output(report_file, ".html", ".htm")
    expected = cases_beside(loss.source.name)
    diagnostics = diagnostics_of(loss, names or oracle_names(), as_json)
    with heeding_warnings(as_json) as warnings:
        rows = None if row_options is None else row_options.read(loss.labels)
        with _bar() as progress:
            validation = validate(
                loss,
                oracles=names or None,
                alphas=alphas,
                budget=budget,
                cases=cases,
                seed=seed,
                probs=rows,
                progress=progress,
                own_cases=expected,
            )
    if as_json:
        _, faults = written_or_why(lambda: _write(report_file, validation))
        told = {"diagnostics": diagnostics + faults, "warnings": warnings}
        emit({**told, **validation.as_dict()}, ok=validation.ok and not faults)
        if faults:
            return _NOT_WRITTEN
    else:
        show(*_shown(validation))
        for name in _write(report_file, validation):
            show(f"written to {visible(name)}")
    if not validation.ok:
        return _FAILED
    return _UNTRIED if strict and validation.untried else 0


def _write(path: str | None, validation: Validation) -> list[str]:
    """The page, where it is wanted."""
    if path is None:
        return []
    from udcp_dsl.prediction.files import atomic_write
    from udcp_dsl.validation.validation_page import page

    with atomic_write(path) as temporary:
        Path(temporary).write_text(page(validation), encoding="utf-8")
    return [path]


@contextmanager
def _bar() -> Iterator[Callable[[str, float], None]]:
    """A function that is told a stage and what part of it is done; the time that is left is that of the stage."""
    with showing(Work("validating", 100, unit="")) as work:

        def progress(stage: str, part: float) -> None:
            work.doing = f"validating, {stage}"
            work.reach(100 * part)

        yield progress


def _shown(validation: Validation) -> list[RenderableType]:
    from rich.text import Text

    from udcp_dsl.prediction.calibrate import show_level

    v = validation
    alphas = ", ".join(map(show_level, v.alphas))
    heading = Text.assemble((visible(v.loss), "bold"), f" in {visible(v.source)}: {v.labels:,} labels, alpha {alphas}")
    amount = f"--cases {v.rounds}" if v.rounds is not None else f"--budget {v.budget:g}s"
    heading.append(f"\nseed {v.seed}, {amount}; a correct spec fails with a chance of at most {v.family_wise:g}")
    shown: list[RenderableType] = [heading]
    for stage in v.stages:
        shown += ["", _heading(stage), _verdicts(stage)]
    if v.costs:
        shown += ["", _costs(v)]
    if v.slow:
        shown += ["", Text(f"fewer cases for {', '.join(v.slow)}: they solve each row on their own")]
    shown += [Text(f"{name} does not apply: {visible(why)}") for name, why in v.left_out.items()]
    return [*shown, "", _conclusion(v)]


def _heading(stage: Stage) -> Text:
    from rich.text import Text

    mark = symbols()[_STATES[stage.holds]]
    seconds = "" if stage.seconds is None else f", {stage.seconds:.1f} s"
    text = Text.assemble((f"{mark} {stage.name}", _COLOURS[stage.holds]), f": {stage.question}")
    untried = f", {stage.untried:,} not tried" if stage.untried else ""
    return text.append(f" ({stage.cases:,} cases{seconds}{untried})", "dim")


def _verdicts(stage: Stage) -> Table:
    from rich.text import Text

    table = plain_table()
    for column in ("claim", "verdict"):
        table.add_column(column, overflow="fold")
    table.add_column("cases", justify="right")
    table.add_column("", overflow="fold")
    for verdict in stage.verdicts:
        word = Text(verdict.word, _COLOURS[verdict.holds] if verdict.applies else "dim")
        table.add_row(Text(visible(verdict.claim)), word, f"{verdict.cases:,}", Text(visible(verdict.note)))
    return table


def _costs(validation: Validation) -> Table:
    table = plain_table()
    for column in ("classifier", "alpha", "oracle"):
        table.add_column(column)
    for column in ("mean cost", "error", "mean size", "coverage"):
        table.add_column(column, justify="right")
    for x in validation.costs:
        numbers = (f"{x.mean_cost:.4g}", f"{x.cost_error:.2g}", f"{x.mean_size:.4g}", f"{x.coverage:.3f}")
        table.add_row(x.classifier, x.alpha, x.oracle, *numbers)
    return table


def _conclusion(validation: Validation) -> Text:
    from rich.text import Text

    if validation.ok:
        return Text(validation.conclusion, "yellow" if validation.untried else "green")
    text = Text(f"not safe to use: {validation.conclusion}", "bold red")
    for stage, verdict in validation.failures:
        example = verdict.counter_example
        text.append(f"\n{stage.name}, {visible(verdict.claim)}", "bold")
        if example is not None:
            text.append(f"\n  {visible(example.text)}", "")
    return text
