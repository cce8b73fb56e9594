"""`udcp check SPEC`: errors and warnings, the oracles that apply and their time; with --why, all facts."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import FAILED, finish, wants_json
from udcp_dsl.cli.row_options import check_output
from udcp_dsl.cli.spec import reads_spec
from udcp_dsl.cli.terminal import show_diagnostics
from udcp_dsl.diagnostics import naming_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.applicability import Applicability
    from udcp_dsl.predict.oracle import Oracle
    from udcp_dsl.rows.rows import Rows

_ROWS, _REPEATS = 32, 3
_ENOUGH = 1.0  # seconds per oracle above which fewer rows and one measurement suffice


@click.command("check", epilog="Example:  udcp check pets.loss --param coherence=3")
@reads_spec
@click.option("--ilp", "sized", is_flag=True, help="Show the size of the mixed-integer model, or why there is none.")
@click.option(
    "--export",
    "model_file",
    metavar="FILE",
    help="Write the mixed-integer model as .lp or .mps; variables x0, x1, ... are the labels.",
)
@click.option("--why", is_flag=True, help="Show what is proved about the loss, with reasons.")
@click.option("--time", "timed", is_flag=True, help="Measure the time per row, on a few generated rows.")
def command(loss: Loss, sized: bool, model_file: str | None, why: bool, timed: bool) -> int:
    """Find errors in a spec, and list the oracles that apply: algorithm, whether it is exact, and time per row.

    Exact means that an oracle finds the best set at its price, or at its probability. Times are orders of
    magnitude for one row among many; --time measures them. --why adds what is proved about the loss, with reasons.
    """
    from udcp_dsl.expression.explain import free_labels_warning
    from udcp_dsl.predict.applicability import applicable_oracles
    from udcp_dsl.spec_warnings import findings_table, spec_warnings

    if model_file is not None:
        from udcp_dsl.measure.gap import solving_oracle

        check_output(model_file)
        solving_oracle(loss).export(model_file)
    size, no_model = _model_size(loss) if sized or model_file is not None else (None, None)
    free, findings = free_labels_warning(loss), spec_warnings(loss)
    found = applicable_oracles(loss)
    if timed:
        found = replace(found, seconds=_measured(loss, found.oracles))
    if free and not wants_json():
        show_diagnostics([free])
    diagnostics = [*loss.warnings, *([free] if free else []), *(found.diagnostic for found in findings)]
    fields: dict[str, object] = {"diagnostics": diagnostics, "file": loss.source.name}
    verdict = [] if size is None else ["ilp: " + ", ".join(f"{count:,} {what}" for what, count in size.items())]
    verdict += [] if no_model is None else [f"ilp: {no_model}"]
    verdict += [] if model_file is None else [f"written to {model_file}"]
    fields |= {"ilp": size, "why_not_ilp": no_model} if sized or model_file is not None else {}
    fields |= {} if model_file is None else {"exported": model_file}
    with naming_options():
        described = found.describe(why=why)
    described = replace(described, tables=(*described.tables, findings_table(findings)), verdict=tuple(verdict))
    return finish(described, fields, status=0 if no_model is None else FAILED)


def _model_size(loss: Loss) -> tuple[dict[str, int] | None, str | None]:
    """How large the linear model is, or why there is none."""
    from udcp_dsl.expression.lower import LoweringError

    try:
        return loss.linear_model.size, None
    except LoweringError as error:
        return None, str(error)


def _measured(loss: Loss, applicable: Sequence[Applicability]) -> dict[str, float | None]:
    from udcp_dsl.cli.progress import waiting

    found = dict[str, float | None]()
    for oracle in applicable:
        if oracle.applies:
            with waiting(f"measuring {oracle.name}"):
                found[oracle.name] = seconds_per_row(oracle.name, loss)
    return found


def seconds_per_row(name: str, loss: Loss) -> float | None:
    """The least time of a few measurements on rows of a generated classifier; None if the oracle fails.

    The first call compiles its kernels.
    """
    import numpy as np

    from udcp_dsl.check.coverage import Problem
    from udcp_dsl.check.samples import drawn_inputs
    from udcp_dsl.predict.calibrate import DEFAULT_GRID
    from udcp_dsl.predict.oracle import make_oracle, with_lambda
    from udcp_dsl.rows.rows import Rows

    rng = np.random.default_rng(0)
    P, _ = Problem.generated(loss.K, rng, kind="calibrated").draw(_ROWS, rng)
    inputs = loss.inputs_of(drawn_inputs(loss.inputs, _ROWS, rng), _ROWS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # shown when it is used
            oracle = make_oracle(name, loss)
            oracle = with_lambda(oracle, DEFAULT_GRID[0]) if oracle.untuned else oracle

            def seconds(rows: slice) -> float:
                return _seconds(oracle, Rows(loss.labels, P[rows], inputs=None if inputs is None else inputs[rows]))

            seconds(slice(1))  # compiles
            alone = seconds(slice(1))
            many = max(1, int(min(_ROWS, _ENOUGH / alone)))
            return min(seconds(slice(many)) for _ in range(_REPEATS if alone < _ENOUGH / _ROWS else 1)) / many
    except Exception:  # a third-party oracle may raise anything; `udcp validate` reports it
        return None


def _seconds(oracle: Oracle, rows: Rows) -> float:
    began = time.perf_counter()
    oracle.scores(rows)
    return time.perf_counter() - began
