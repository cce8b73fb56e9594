"""Progress of work in blocks or steps: on stderr, only on a terminal, and only once a second has passed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

_PATIENCE = 1.0  # seconds before anything is worth showing
_COMPILES = "the first time on a machine it compiles, up to a minute; that is cached"


def tracked(blocks: Sequence[T], doing: str) -> Iterator[T]:
    """The blocks one after the other, with a bar that says what is done to them."""
    with _shown(bar=True) as shown:
        task = None if shown is None else shown.add_task(f"{doing} ({_COMPILES})", total=len(blocks))
        for block in blocks:
            yield block
            if shown is not None and task is not None:
                shown.update(task, advance=1, description=doing)


@contextmanager
def waiting(doing: str, *, compiles: bool = True) -> Iterator[None]:
    """Say what takes a while and cannot be counted, and for how long it has; and that it may be compiling."""
    with _shown(bar=False) as shown:
        if shown is not None:
            shown.add_task(f"{doing} ({_COMPILES})" if compiles else doing, total=None)
        yield


@contextmanager
def _shown(*, bar: bool) -> Iterator[Progress | None]:
    """What shows tasks, in time and whether or not one of them moves; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    columns = (BarColumn(), TaskProgressColumn()) if bar else (SpinnerColumn(),)
    text = TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold"))  # else all are cut
    shown = Progress(*columns, TimeElapsedColumn(), text, console=Console(file=sys.stderr), transient=True)
    timer = threading.Timer(_PATIENCE, shown.start)
    timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        timer.join()
        if shown.live.is_started:
            shown.stop()


@contextmanager
def counted(total: int, doing: str) -> Iterator[Callable[[], None]]:
    """A function to call after each of many slow steps; the bar tells their rate and the time that is left."""
    with ExitStack() as shown:
        began = time.monotonic()
        done = 0
        bar, task = None, None

        def advance() -> None:
            nonlocal done, bar, task
            done += 1
            if bar is None and sys.stderr.isatty() and time.monotonic() - began > _PATIENCE:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

                rate = TextColumn("{task.fields[rate]}")
                columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate)
                screen = Console(file=sys.stderr)
                bar = shown.enter_context(Progress(*columns, TimeRemainingColumn(), console=screen, transient=True))
                task = bar.add_task(doing, total=total, rate="")
            if bar is not None and task is not None:
                bar.update(task, completed=done, rate=f"{done / (time.monotonic() - began):.3g}/s")

        yield advance
