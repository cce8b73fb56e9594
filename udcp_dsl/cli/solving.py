"""How a command computes: in how many processes, on which engine, and how it continues after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from udcp_dsl.cli.progress import waiting
from udcp_dsl.cli.terminal import tell
from udcp_dsl.diagnostics import InputError
from udcp_dsl.threads import available_cores

if TYPE_CHECKING:
    from udcp_dsl.cluster.dask import Cluster
    from udcp_dsl.predict.oracle import Oracle

F = TypeVar("F", bound=Callable[..., Any])

# Fewer rows than this are usually solved before worker processes have started.
_WORTH_WORKERS = 100


@dataclass(frozen=True)
class Computing:
    """How many processes work, the file that keeps finished rows, and the cluster, if there is one."""

    workers: int | None = None
    resume: str | None = None
    dask: bool = False
    scheduler: str | None = None
    wait: float | None = None  # seconds, for workers of the cluster


def computes(verb: F) -> F:
    """Give a command --workers and --resume, as one `computing`."""

    @click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of processes that work in parallel (default: one per core).",
    )
    @click.option(
        "--resume",
        metavar="FILE",
        help="File that keeps finished rows, to continue after an interruption (oracle ilp only).",
    )
    @wraps(verb)
    def command(*args: Any, workers: int | None, resume: str | None, **rest: Any) -> Any:
        return verb(*args, computing=Computing(workers, resume), **rest)

    return cast(F, command)


def chooses_engine(verb: F) -> F:
    """Give a command that `computes` --engine, --scheduler and --wait, too, as part of `computing`."""

    @click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Where to compute: in this process, or on a Dask cluster, one file at a time.",
    )
    @click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Address of the Dask cluster (default: a cluster of --workers processes on this machine).",
    )
    @click.option(
        "--wait",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="How long to wait for workers while the Dask cluster has none (default: as long as it takes; 60 if the "
        "cluster is local).",
    )
    @wraps(verb)
    def command(
        *args: Any, engine: str, scheduler: str | None, wait: float | None, computing: Computing, **rest: Any
    ) -> Any:
        dask = engine == "dask"
        if wait is not None and not dask:
            raise InputError("--wait needs --engine dask: it is how long to wait for workers")
        if dask and computing.resume is not None:
            raise InputError("--resume does not apply to --engine dask, which skips the parts that are done")
        if scheduler is not None and (not dask or computing.workers is not None):
            raise InputError("--scheduler needs --engine dask and excludes --workers: a scheduler has its own workers")
        return verb(*args, computing=replace(computing, dask=dask, scheduler=scheduler, wait=wait), **rest)

    return cast(F, command)


@contextmanager
def solving(
    oracle: Oracle,
    rows: int | None,
    computing: Computing,
    *,
    doing: str = "solving",
    blocks: bool = False,
) -> Iterator[Callable[[int], None] | None]:
    """Show progress in this block; a solving oracle works in several processes, with a checkpoint.

    With `blocks`, the rows of other oracles come in several calls: yields a function to call with the number of rows
    before each call. `rows` is None if their number is not known before they are read.
    """
    from udcp_dsl.predict.oracle import SolvingOracle

    if not isinstance(oracle, SolvingOracle):
        if (computing.workers is not None and not computing.dask) or computing.resume is not None:
            raise InputError(
                f"oracle {oracle.name!r} runs no solver: --workers and --resume are for oracles that do, such as ilp"
            )
        with (
            waiting(doing, rows if blocks else None) as work,
            nullcontext() if blocks and rows is None else oracle.on_progress(work.reach),
        ):
            yield work.at
        return
    most = computing.workers or (available_cores() if rows is None or rows >= _WORTH_WORKERS else 1)
    with (
        waiting(doing, rows) as work,
        oracle.running(workers=most, checkpoint=computing.resume, advance=work.advance),
    ):
        yield None


@contextmanager
def on_cluster(computing: Computing, doing: str, rows: int | None) -> Iterator[tuple[Cluster, Callable[..., None]]]:
    """Compute on a Dask cluster in this block: yields the cluster, and a function to call with the rows done.

    If `rows` is None, there are several passes, and the function is also called with the rows of the pass.
    """
    from udcp_dsl.cluster.dask import Cluster, connected

    def say(text: str) -> None:  # at once, with --json too
        tell("warning:", "yellow", text)

    with waiting(doing, rows) as work, connected(computing.scheduler, computing.workers or available_cores()) as client:
        yield Cluster(client, computing.wait, say), work.reach
