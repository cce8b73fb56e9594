"""Background work: a thread that handles the latest request, and a board of results by version.

A page asks for what is newer than what it has; if there is nothing yet, it waits without holding a thread.
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Worker:
    """Calls `run` after one `poke` or several, in a thread of its own, and `on_idle` after each run."""

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        on_error: Callable[[BaseException], None],
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._run, self._on_error, self._on_idle = run, on_error, on_idle
        self._asked = threading.Condition()
        self._wanted = self._ended = False
        self._busy = False
        self._thread = threading.Thread(target=self._loop, name=f"studio {name}", daemon=True)
        self._thread.start()

    def poke(self) -> None:
        with self._asked:
            self._wanted = True
            self._asked.notify_all()

    def end(self) -> None:
        with self._asked:
            self._ended = True
            self._asked.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing is requested or under way."""
        with self._asked:
            return not (self._wanted or self._busy)

    def _loop(self) -> None:
        while True:
            with self._asked:
                while not (self._wanted or self._ended):
                    self._asked.wait()
                if self._ended:
                    return
                self._wanted, self._busy = False, True
            try:
                self._run()
            except BaseException as error:  # the thread must live: what is wrong is shown in the page
                self._on_error(error)
            with self._asked:
                self._busy = False
            self._on_idle()


class Board:
    """The results: views by name, each with the version at which it was put."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: dict[str, tuple[int, Any]] = {}
        self._version = 0
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def put(self, name: str, data: Any) -> None:
        with self._lock:
            self._version += 1
            self._views[name] = (self._version, data)
            waiting = tuple(self._waiting)
        for loop, event in waiting:
            loop.call_soon_threadsafe(event.set)

    def put_new(self, name: str, data: Any) -> None:
        """Put a view if it differs from the present one."""
        if self.get(name) != data:
            self.put(name, data)

    def since(self, version: int) -> tuple[int, dict[str, Any]]:
        """The version now, and the views that are newer than `version`."""
        with self._lock:
            return self._version, {name: data for name, (at, data) in self._views.items() if at > version}

    def get(self, name: str) -> Any:
        with self._lock:
            return self._views.get(name, (0, None))[1]

    async def news(self, version: int, seconds: float) -> tuple[int, dict[str, Any]]:
        """Like `since`, after waiting at most `seconds` for something new."""
        event = asyncio.Event()
        entry = (asyncio.get_running_loop(), event)
        with self._lock:
            self._waiting.add(entry)
        try:
            if not self.since(version)[1]:
                with suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), seconds)
            return self.since(version)
        finally:
            with self._lock:
                self._waiting.discard(entry)


def error_text(error: BaseException) -> str:
    """The text of an internal error with the place where it arose, for a bug report."""
    place = traceback.extract_tb(error.__traceback__)[-1:] if error.__traceback__ else []
    where = f" ({place[0].filename.rpartition('/')[2]}:{place[0].lineno})" if place else ""
    return f"{type(error).__name__}: {error}{where}"
