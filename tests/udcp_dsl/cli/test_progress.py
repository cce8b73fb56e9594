"""Progress is shown on terminals, of what takes a while, and also while the first piece of it is not done."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from udcp_dsl.cli import progress

_LONGEST = 20.0  # seconds until a test gives up
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tracking(work: Callable[[], None]) -> None:
    for block in progress.tracked(range(5), "at work"):
        if block == 0:
            work()


def waiting(work: Callable[[], None]) -> None:
    with progress.waiting("at work"):
        work()


@contextmanager
def on(stream: io.StringIO, patience: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setattr(progress, "_PATIENCE", patience)
        yield


def until(shown: Callable[[], bool]) -> None:
    end = time.monotonic() + _LONGEST
    while not shown() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("way", [tracking, waiting])
def test_what_is_not_done_yet_is_shown_with_the_seconds_it_took(
    way: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    with on(stream, 0.0, monkeypatch):
        way(lambda: until(lambda: "0:00:01" in stream.getvalue()))
    shown = " ".join(ESCAPE.sub(" ", stream.getvalue()).split())
    assert "at work" in shown
    assert "0:00:01" in shown
    assert "the first time on a machine it compiles" in shown
    assert stream.getvalue().endswith("\x1b[2K")  # and nothing of it stays


@pytest.mark.parametrize("way", [tracking, waiting])
def test_nothing_is_shown_of_quick_work_or_where_there_is_no_terminal(
    way: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream, patience in ((Terminal(), 60.0), (io.StringIO(), 0.0)):
        with on(stream, patience, monkeypatch):
            way(lambda: time.sleep(0.05))
        assert stream.getvalue() == ""


def test_blocks_come_in_order_and_only_the_first_waits_for_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    seen = []
    with on(stream, 0.0, monkeypatch):
        for block in progress.tracked(range(5), "at work"):
            seen.append(block)
            until(lambda: f"{20 * len(seen) - 20}%" in stream.getvalue())
    assert seen == [0, 1, 2, 3, 4]
    last = ESCAPE.sub(" ", stream.getvalue()).rpartition("80%")[0].rpartition("60%")[2]
    assert "at work" in last
    assert "compiles" not in last


@pytest.mark.parametrize("way", [tracking, waiting])
def test_an_error_ends_it(way: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise ZeroDivisionError

    stream = Terminal()
    with on(stream, 60.0, monkeypatch):
        with pytest.raises(ZeroDivisionError):
            way(failing)
        assert stream.getvalue() == ""
