"""A progress bar for work in blocks: on stderr, only on a terminal, and only once a second has passed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
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
