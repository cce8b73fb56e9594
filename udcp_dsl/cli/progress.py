"""A progress bar for work in blocks or steps: on stderr, only on a terminal, and only once a second has passed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

T = TypeVar("T")

_PATIENCE = 1.0  # seconds before a bar is worth showing


def tracked(blocks: Sequence[T], doing: str) -> Iterator[T]:
    """The blocks one after the other, with a bar that says what is done to them."""
    with ExitStack() as shown:
        advance = None
        began = time.monotonic()
        for done, block in enumerate(blocks):
            if advance is None and sys.stderr.isatty() and time.monotonic() - began > _PATIENCE:
                from rich.console import Console
                from rich.progress import Progress

                bar = shown.enter_context(Progress(console=Console(file=sys.stderr), transient=True))
                task = bar.add_task(doing, total=len(blocks), completed=done)
                advance = bar.advance
            yield block
            if advance is not None:
                advance(task)


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
