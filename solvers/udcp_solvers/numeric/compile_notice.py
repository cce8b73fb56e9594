"""Print one line on stderr, once per process, if compiling kernels takes longer than a second.

The line is a warning of the logger "udcp_dsl.compiling", which Python prints to stderr unless logging is configured
otherwise. `UDCP_QUIET=1` switches it off; the command line sets it, since its progress line says the same.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from functools import cache
from typing import Any

_PATIENCE = 1.0  # seconds
_NOTICE = (
    "udcp_dsl: compiling kernels for this kind of loss, once per machine: up to a minute (UDCP_QUIET=1 hides this line)"
)


@cache
def announce_compilation() -> None:
    """From now on, announce the first slow compilation in this process. Needs numba.

    Compilations are followed by events of numba that are not part of its public interface: if they have changed,
    nothing is announced.
    """
    if os.environ.get("UDCP_QUIET"):
        return
    with suppress(ImportError, AttributeError):
        _follow_compilations()


def _follow_compilations() -> None:
    from numba.core import event

    events: Any = event

    class Listener(events.Listener):  # type: ignore[misc]  # numba is only partly typed
        """Starts a timer when a compilation begins (the outermost, if they are nested) and cancels it at the end."""

        def __init__(self) -> None:
            self._depth, self._clock, self._said = 0, threading.Timer(0, lambda: None), False

        def on_start(self, started: object) -> None:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._clock = threading.Timer(_PATIENCE, self._say)
                self._clock.daemon = True
                self._clock.start()

        def on_end(self, ended: object) -> None:
            self._depth = max(0, self._depth - 1)
            if not self._depth:
                self._clock.cancel()

        def _say(self) -> None:
            self._said = True
            logging.getLogger("udcp_dsl.compiling").warning(_NOTICE)

    events.register("numba:compile", Listener())
