"""`udcp validate SPEC`: is this spec safe to use? Reports on the spec first, then on tests with generated cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import FAILED, finish
from udcp_dsl.cli.progress import waiting
from udcp_dsl.cli.row_options import RowOptions, alpha_option, check_output, collect_warnings, reads_rows
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from udcp_dsl.check.verdicts import Validation
    from udcp_dsl.loss import Loss

_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_UNTRIED = 3  # exit status


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
    "--oracle",
    "names",
    multiple=True,
    metavar="NAME",
    help="Oracle to test; may be repeated (default: all that apply).",
)
@alpha_option
@click.option("--budget", callback=_budget, metavar="TIME", help="Approximate running time: 60s (default), 2m, 1h.")
@click.option(
    "--cases",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of rounds, instead of --budget; makes the output repeatable.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed for the cases.")
@reads_rows(
    "truth_column",
    numbers=True,
    optional="Your own probabilities, to test coverage and drift on your rows; needs --truth.",
)
@click.option("--report", "report_file", metavar="FILE", help="Write the result as an HTML page.")
@click.option("--why", is_flag=True, help="List every test of the package, with its number of cases.")
@click.option("--strict", is_flag=True, help="Exit with status 3 if nothing failed, but something was not tested.")
def command(
    loss: Loss,
    names: tuple[str, ...],
    alphas: tuple[Fraction, ...],
    row_options: RowOptions | None,
    report_file: str | None,
    why: bool,
    strict: bool,
    **amounts: Any,
) -> int:
    """Test whether a spec is safe to use: costs of labels, your cases, coverage on your rows, and generated cases.

    Cases in NAME.cases beside the spec are tried first. With --probs and --truth, coverage is tested on your rows. The
    rest tests this package on your spec: the compiler, the oracles and the coverage of generated classifiers; --why
    lists these tests. Exit status 0 if nothing failed, 1 with the smallest counter-example if something did, 2 for
    invalid input, and 3 with --strict if something was not tested.
    """
    from udcp_dsl.check.run import validate
    from udcp_dsl.fit.cases import cases_beside
    from udcp_dsl.predict.oracle import oracle_names

    if amounts["budget"] is not None and amounts["cases"] is not None:
        raise InputError("--budget and --cases: give one of them; --cases makes the output repeatable")
    if report_file is not None:
        check_output(report_file, ".html", ".htm")
    expected = cases_beside(loss.source.name)
    diagnostics = diagnostics_of(loss, names or oracle_names())
    with collect_warnings() as warnings:
        rows = None if row_options is None else row_options.read(loss)
        with _bar() as progress:
            more = {"probs": rows, "progress": progress, "own_cases": expected, **amounts}
            validation = validate(loss, oracles=names or None, alphas=alphas, **more)
    diagnostics += [found.diagnostic for found in validation.findings]
    return finish(
        validation.describe() if why else validation.brief(),
        {"diagnostics": diagnostics, "warnings": warnings},
        status=FAILED if not validation.ok else _UNTRIED if strict and validation.untried else 0,
        write=lambda: _write(report_file, validation),
        message="written to {}",
    )


def _write(path: str | None, validation: Validation) -> list[str]:
    """Write the page, if it was requested."""
    if path is None:
        return []
    from udcp_dsl.files import atomic_write
    from udcp_dsl.report.page import verdict_page

    with atomic_write(path) as temporary:
        Path(temporary).write_text(verdict_page(validation.describe()), encoding="utf-8")
    return [path]


@contextmanager
def _bar() -> Iterator[Callable[[str, float], None]]:
    """A function to call with a stage and the fraction of it that is done; what is shown is that of all stages."""
    from udcp_dsl.check.verdicts import share_done

    with waiting("validating", 100, unit="") as work:

        def progress(stage: str, part: float) -> None:
            work.doing = f"validating, {stage}"
            work.reach(100 * share_done(stage, part))

        yield progress
