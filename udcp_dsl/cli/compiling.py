"""Compile the kernels of several oracles in parallel processes, into the cache on disk.

Compiling takes most of the first minute of a new installation, and one process compiles one kernel at a time.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.predict.calibrate import DEFAULT_GRID
from udcp_dsl.predict.oracle import Oracle, Probabilities, make_oracle, with_lambda
from udcp_dsl.threads import available_cores

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

T = TypeVar("T")

_COMPILED_ALREADY = 1.0  # two rows take fewer seconds if nothing has to be compiled


def compile_kernels(
    losses: Sequence[Loss],
    oracles: Sequence[str],
    P: Probabilities,
    compiling: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Compile the kernels that score rows such as P, unless the first oracle shows that this was done before.

    Other processes compile, within `compiling()`. Errors are ignored here: they are raised again when the oracle is
    used.
    """
    tasks = [(loss, oracle) for loss in losses for oracle in oracles]
    if available_cores() < 2 or len(tasks) < 2 or _seconds(*tasks[0], P) < _COMPILED_ALREADY:
        return
    with compiling():
        side_by_side(_seconds, [(loss, oracle, P) for loss, oracle in reversed(tasks[1:])])


def side_by_side(function: Callable[..., T], tasks: Sequence[tuple[object, ...]]) -> list[T | BaseException]:
    """Call a function with the arguments of each task, in parallel processes; returns its results or exceptions.

    An interrupt kills the processes: otherwise it would wait for LLVM, which cannot be interrupted.
    """
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(min(available_cores(), len(tasks)), context, _ignore_interrupts) as pool:
        try:
            running = [pool.submit(function, *task) for task in tasks]
            wait(running)
            return [done.exception() or done.result() for done in running]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
            raise


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a process of the pool: its parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _seconds(loss: Loss, name: str, P: Probabilities) -> float:
    """The seconds to score the rows, without importing the oracle; 0 if it does not apply."""
    try:
        oracle: Oracle = make_oracle(name, loss)
        if oracle.untuned:
            oracle = with_lambda(oracle, DEFAULT_GRID[0])
    except OracleError:
        return 0.0
    began = time.monotonic()
    oracle.scores(P)
    return time.monotonic() - began
