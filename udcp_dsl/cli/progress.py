"""Progress of a computation: the share done, the time so far, the estimated time left, and whether kernels are being
compiled.

On a terminal, one line on stderr appears after a second, is updated, and disappears at the end. Elsewhere, a line is
printed at least every ten seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")

_DELAY_SECONDS = 1.0  # seconds before anything is worth showing
_LINE_SECONDS = 8.0  # seconds between lines without a terminal
_BAR, _SHORTEST = 24, 4  # columns of the bar: at most, and at least if it is shown
_COMPILES = "compiling, once per machine: up to a minute"


class Work:
    """A piece of work and its progress: updated by those who do it, in any thread, and read by the display."""

    def __init__(self, doing: str, total: int | None = None, unit: str = "rows") -> None:
        self.doing, self._unit, self._all = doing, unit, total
        self._done, self._total, self._before, self._first, self._passes = 0.0, total, 0, 0.0, 1
        self._began = self._counted_from = time.monotonic()
        self._elsewhere = 0
        self._lock = threading.Lock()

    def reach(self, done: float, total: int | None = None) -> None:
        """Set how much is done. A count never falls.

        If the total of the work is known, several threads may report their parts, and a part may be gone through
        several times: the highest number counts. Otherwise the work is one pass, or several, over `total` rows each: a
        smaller number begins another pass.
        """
        with self._lock:
            done += self._before
            if self._all is not None:
                done = max(done, self._done)
            elif done < self._done:
                self._passes += 1
                self._counted_from, self._first = time.monotonic(), done
            if not done:
                self._counted_from = time.monotonic()
            self._done, self._total = done, total if self._all is None else self._all

    def advance(self) -> None:
        """One more step is done."""
        self.reach(self._done + 1)

    def at(self, before: int) -> None:
        """Set how much is done of work that comes in blocks, when a block is finished; `reach` counts on from there."""
        with self._lock:
            self._before = before
            self._done = max(self._done, before)

    @contextmanager
    def compiling_elsewhere(self) -> Iterator[None]:
        """In this block other processes compile."""
        self._elsewhere += 1
        try:
            yield
        finally:
            self._elsewhere -= 1

    @property
    def part(self) -> float | None:
        """The share that is done, if it is known."""
        return self._done / self._total if self._total and self._done <= self._total else None

    def line(self) -> str:
        """The progress in one line."""
        with self._lock:
            now, done, part = time.monotonic(), self._done, self.part
            passes, since, first = self._passes, self._counted_from, self._first
        text = self.doing if passes == 1 else f"{self.doing}, pass {passes}"
        if part:
            text += f": {done:,.0f} of {done / part:,.0f} {self._unit}" if self._unit else f": {part:.0%}"
        elif done and self._unit:
            text += f": {done:,.0f} {self._unit}"
        text += f", {_clock(now - self._began)}"
        if part and part < 1 and first < done:
            left = (done / part - done) * (now - since) / (done - first)
            text += f", about {_clock(left)} left" + ("" if self._all is not None else " of this pass")
        return f"{text} ({_COMPILES})" if self._elsewhere or _is_compiling() else text


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _is_compiling() -> bool:
    """Whether another thread compiles a kernel, and so holds numba's lock. Before numba is imported, none does."""
    lock: Any = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if lock is None or not lock._lock.acquire(blocking=False):
        return lock is not None
    lock._lock.release()
    return False


def tracked(blocks: Sequence[T], doing: str, unit: str = "runs") -> Iterator[T]:
    """Yield the blocks one after the other, and show how many are done."""
    with waiting(doing, len(blocks), unit) as work:
        for number, block in enumerate(blocks, start=1):
            yield block
            work.reach(number)


@contextmanager
def waiting(doing: str, total: int | None = None, unit: str = "rows") -> Iterator[Work]:
    """Show the work in this block: for how long it goes on and, if it reports that, how much is done."""
    work, over = Work(doing, total, unit), threading.Event()
    shower = threading.Thread(target=_on_terminal if sys.stderr.isatty() else _in_lines, args=(work, over), daemon=True)
    shower.start()
    try:
        yield work
    finally:
        over.set()
        shower.join()


def _in_lines(work: Work, over: threading.Event) -> None:
    while not over.wait(_LINE_SECONDS):
        print(work.line(), file=sys.stderr, flush=True)


def _on_terminal(work: Work, over: threading.Event) -> None:
    if over.wait(_DELAY_SECONDS):
        return
    from rich.console import Console
    from rich.live import Live

    screen = Console(file=sys.stderr, markup=False, highlight=False)
    # Warnings meanwhile are shown above it; stdout is left alone.
    with Live(
        console=screen,
        transient=True,
        redirect_stdout=False,
        get_renderable=lambda: _renderable(work, screen.width),
        refresh_per_second=8,
    ):
        over.wait()


def _renderable(work: Work, width: int) -> RenderableType:
    """One line: the bar takes the room that the text leaves, and is left out if there is too little."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    line = Text(work.line())
    line.truncate(width, overflow="ellipsis")
    room = min(_BAR, width - line.cell_len - 1)
    if work.part is None or room < _SHORTEST:
        return line
    grid = Table.grid(padding=(0, 1))
    grid.add_row(ProgressBar(total=1.0, completed=work.part, width=room), line)
    return grid
