"""Options of commands whose oracle may run a solver per row: number of workers, and checkpoint to resume from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from udcp_dsl.cli.progress import Work, counted, waiting
from udcp_dsl.diagnostics import InputError, OracleError

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.prediction.oracle import Oracle, SolvingOracle

F = TypeVar("F", bound=Callable[..., Any])

# Fewer rows than this are usually solved before worker processes have started.
_WORTH_WORKERS = 100


def solves_instances(verb: F) -> F:
    """Give a command --workers and --resume."""
    verb = click.option(
        "--resume",
        metavar="FILE",
        help="File that keeps finished rows, to continue after an interruption (oracle ilp only).",
    )(verb)
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of processes that work in parallel (default: one per core).",
    )(verb)


def chooses_engine(verb: F) -> F:
    """Give a command --engine and --scheduler."""
    verb = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Address of the Dask cluster (default: a cluster of --workers processes on this machine).",
    )(verb)
    return click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Where to compute: in this process, or on a Dask cluster, one file at a time.",
    )(verb)


def check_engine(engine: str, scheduler: str | None, workers: int | None, resume: str | None) -> None:
    """Refuse options that do not go with the engine."""
    if engine == "dask" and resume is not None:
        raise InputError("--resume does not apply to --engine dask, which skips the parts that are done")
    if scheduler is not None and (engine != "dask" or workers is not None):
        raise InputError("--scheduler needs --engine dask and excludes --workers: a scheduler has its own workers")


@contextmanager
def solving(
    oracle: Oracle,
    rows: int | None,
    *,
    workers: int | None,
    resume: str | None,
    doing: str = "solving",
    blocks: bool = False,
) -> Iterator[Work | None]:
    """In this block rows that are done are shown; an oracle that can solves in worker processes, with a checkpoint.

    Gives what shows those of others: with `blocks` the rows come in several calls, of which it has to be told. How many
    rows there are is None where nobody knows before they are read.
    """
    from udcp_dsl.prediction.oracle import SolvingOracle

    if not isinstance(oracle, SolvingOracle):
        if workers is not None or resume is not None:
            raise InputError(
                f"oracle {oracle.name!r} runs no solver: --workers and --resume are for oracles that do, such as ilp"
            )
        with (
            waiting(doing, rows if blocks else None) as work,
            nullcontext() if blocks and rows is None else oracle.on_progress(work.reach),
        ):
            yield work
        return
    most = workers or (cores() if rows is None or rows >= _WORTH_WORKERS else 1)
    with counted(rows, doing) as advance, oracle.running(workers=most, checkpoint=resume, advance=advance):
        yield None


def solving_oracle(loss: Loss, **options: object) -> SolvingOracle:
    """The oracle that is asked for sets of proved cost."""
    from udcp_dsl.prediction.oracle import SolvingOracle, make_oracle

    exact = make_oracle("ilp", loss, **options)
    if not isinstance(exact, SolvingOracle):
        raise OracleError("oracle 'ilp' comes from another package and reports no proved costs: uninstall that package")
    return exact


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
