"""Progress is shown of what takes a while: rows done, time left, and that it compiles only while it does."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cli import progress
from udcp_dsl.cluster import streams as predicting
from udcp_dsl.cluster.folders import open_folder
from udcp_dsl.predict.oracle import Oracle
from udcp_dsl.rows.source import open_rows

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


def counting(work: Callable[[], None]) -> None:
    with progress.waiting("at work", 5) as shown:
        work()
        shown.advance()


WAYS = (tracking, waiting, counting)


@contextmanager
def on(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, patience: float = 0.0, every: float = 60.0
) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setattr(progress, "_DELAY_SECONDS", patience)
        patch.setattr(progress, "_LINE_SECONDS", every)
        yield


def until(shown: Callable[[], bool]) -> None:
    end = time.monotonic() + _LONGEST
    while not shown() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_done_yet_is_shown_with_the_seconds_it_took(
    way: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    with on(stream, monkeypatch):
        way(lambda: until(lambda: "0:00:01" in stream.getvalue()))
    shown = " ".join(ESCAPE.sub(" ", stream.getvalue()).split())
    assert "at work" in shown
    assert "0:00:01" in shown
    assert "compiling" not in shown
    assert stream.getvalue().endswith("\x1b[2K")  # and nothing of it stays


@pytest.mark.parametrize("way", WAYS)
def test_without_a_terminal_there_are_lines(way: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with on(stream, monkeypatch, every=0.02):
        way(lambda: until(lambda: stream.getvalue().count("\n") >= 3))
    lines = stream.getvalue().splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("at work, 0:00:0") for line in lines[:3])
    assert "\x1b" not in stream.getvalue()


def test_they_come_at_least_every_ten_seconds() -> None:
    assert progress._LINE_SECONDS < 10


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_shown_of_quick_work(way: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Terminal(), io.StringIO()):
        with on(stream, monkeypatch, patience=60.0):
            way(lambda: time.sleep(0.05))
        assert stream.getvalue() == ""


def test_blocks_come_in_order_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    seen: list[int] = []
    with on(stream, monkeypatch):
        for block in progress.tracked(range(5), "at work"):
            until(lambda: not seen or f"{len(seen)} of 5 runs" in stream.getvalue())
            seen.append(block)
    assert seen == [0, 1, 2, 3, 4]
    assert re.search(r"at work: 4 of 5 runs, 0:00:0\d, about 0:00:0\d left", ESCAPE.sub("", stream.getvalue()))


def test_the_time_that_is_left_is_by_the_rate_of_this_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    work = progress.Work("scoring")
    assert work.line() == "scoring, 0:00:00"
    now += 60  # something that is not counted
    work.reach(0, 3000)
    now += 10
    work.reach(1000, 3000)
    assert work.line() == "scoring: 1,000 of 3,000 rows, 0:01:10, about 0:00:20 left of this pass"
    work.reach(3000, 3000)
    assert work.line() == "scoring: 3,000 of 3,000 rows, 0:01:10"
    work.reach(0, 50)
    now += 1
    work.reach(10, 50)
    assert work.line() == "scoring, pass 2: 10 of 50 rows, 0:01:11, about 0:00:04 left of this pass"


def test_rows_that_come_in_blocks_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    work = progress.Work("predicting", 100)
    for start in (0, 50):
        work.at(start)
        work.reach(0, 50)
        now += 5
        work.reach(25, 50)
    assert work.line() == "predicting: 75 of 100 rows, 0:00:10, about 0:00:03 left"


def test_a_count_of_which_the_total_is_known_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though several threads report, and each goes through its rows twice: for the scores, then for the sets."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    work = progress.Work("predicting", 100)
    parts, lines = [], []
    for finished in range(0, 100, 10):
        work.at(finished)
        for done in (0, 5, 10, 0, 5, 10, 3):
            work.reach(done, 10)
            parts.append(work.part)
        now += 1
        lines.append(work.line())
    assert parts == sorted(parts, key=float)
    assert lines[4] == "predicting: 50 of 100 rows, 0:00:05, about 0:00:05 left"
    work.at(100)
    assert work.line() == "predicting: 100 of 100 rows, 0:00:10"


def test_more_than_was_expected_has_no_total() -> None:
    work = progress.Work("solving", 10)
    work.reach(11)
    assert work.line() == "solving: 11 rows, 0:00:00"
    assert work.part is None


@pytest.mark.parametrize("parted", [False, True])
def test_rows_are_counted_when_they_are_written(parted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when they are read, which is ahead of that; and no count falls while two threads score."""
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 30)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 95)
    predictor = udcp.SetPredictor(size_of("a b c"), "lac", alpha=0.5).calibrate(P, P.argmax(axis=1))
    (tmp_path / "in").mkdir()
    for at in (0, 50):
        np.save(tmp_path / "in" / f"{at}.npy", P[at : at + 50])
    source = open_rows(tmp_path / "in", predictor.loss.labels)
    written, told, shown = [0], list[tuple[int, int]](), list[float]()
    work = progress.Work("predicting", 95)

    def tell(done: int) -> None:
        work.at(done)
        told.append((done, written[-1]))

    def listen(done: int, total: int) -> None:
        work.reach(done, total)
        shown.append(work.part or 0.0)

    open_sets = predicting.open_sets

    @contextmanager
    def counting(path: Path) -> Iterator[Callable[[predicting.OutputBlock], None]]:
        with open_sets(path) as write:

            def counted(block: predicting.OutputBlock) -> None:
                write(block)
                written.append(written[-1] + len(block.sizes))

            yield counted

    monkeypatch.setattr(predicting, "open_sets", counting)
    level = predictor.alphas[0]
    with predictor.oracle.on_progress(listen):
        if parted:
            parts = open_folder(tmp_path / "out", ".csv", predictor, source, level)
            predicting.predict_parts(predictor, parts, level, tell)
        else:
            predicting.predict_file(predictor, source, tmp_path / "sets.csv", level, tell)
    assert all(done == rows for done, rows in told)
    assert told[-1][0] == 95
    assert len(told) >= 10
    assert shown == sorted(shown)
    assert work.part == 1.0


class Slow(Oracle):
    """lac, row by row."""

    name = "slow"

    def __init__(self, loss: udcp.Loss) -> None:
        super().__init__(loss)
        self.parts: list[int] = []

    def _scores(self, P: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        self.parts.append(len(P))
        return -P.astype(np.float64)


@pytest.mark.parametrize("n", [1, 2, 65, 66, 500])
def test_an_oracle_tells_rows_and_answers_the_same(n: int) -> None:
    P = np.random.default_rng(0).dirichlet([1, 1, 1], n)
    y, oracle, told = np.zeros(n, dtype=np.int64), Slow(size_of("a b c")), list[tuple[int, int]]()
    calls = {
        "scores": lambda: oracle.scores(P),
        "score_of": lambda: oracle.score_of(P, y),
        "sets by row": lambda: oracle.sets(P, -P.max(axis=1)[:, None]),
        "sets by class": lambda: oracle.sets(P, np.array([[-0.1, -0.2, -0.3]])),
        "sets": lambda: oracle.sets(P, -0.3),
        "first": lambda: oracle.first(P),
    }
    plain = {name: call() for name, call in calls.items()}
    for name, call in calls.items():
        oracle.parts.clear()
        told.clear()
        with oracle.on_progress(lambda done, total: told.append((done, total))):
            stepwise = call()
        assert stepwise.dtype == plain[name].dtype
        assert np.array_equal(stepwise, plain[name])
        assert told[0] == (0, n)
        assert told[-1] == (n, n)
        assert sorted(told) == told
        assert min(oracle.parts) > 1 or n == 1
        assert len(oracle.parts) > 1 or n < 66
    told.clear()
    oracle.scores(P)
    assert told == []  # nobody listens any more


_COMPILING = """
import sys, threading, time
from udcp_dsl.cli import progress

lines = []
with progress.waiting("at work") as work:
    lines.append(work.line())
    import numba
    time.sleep(0.5)
    lines.append(work.line())
    over = threading.Event()
    def look():
        while not over.wait(0.01):
            lines.append(work.line())
    thread = threading.Thread(target=look)
    thread.start()
    @numba.njit
    def f(x):
        total = 0.0
        for i in range(len(x)):
            for j in range(i):
                total += x[i] * x[j]
        return total
    import numpy as np
    f(np.ones(3))
    over.set()
    thread.join()
    lines.append(work.line())
said = ["compiling" in line for line in lines]
print(said[0], said[1], any(said), said[-1])
"""


def test_it_is_said_to_compile_only_while_it_does(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _COMPILING], capture_output=True, text=True, check=True)
    assert done.stdout == "False False True False\n"


def test_so_it_is_of_other_processes() -> None:
    work = progress.Work("at work")
    with work.compiling_elsewhere():
        assert "compiling" in work.line()
    assert "compiling" not in work.line()


@pytest.mark.parametrize("way", WAYS)
def test_an_error_ends_it(way: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise ZeroDivisionError

    stream = Terminal()
    with on(stream, monkeypatch, patience=60.0):
        with pytest.raises(ZeroDivisionError):
            way(failing)
        assert stream.getvalue() == ""


@pytest.mark.parametrize("width", [30, 60, 80, 100, 200])
@pytest.mark.parametrize("doing", ["scoring", "comparing over 2 splits", "validating, coverage of every oracle of it"])
def test_the_bar_gives_way_so_that_it_is_one_line(width: int, doing: str) -> None:
    from rich.console import Console

    work = progress.Work(doing, 12, "runs")
    work.reach(2)
    work.reach(6)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system="256", markup=False, highlight=False)
    console.print(progress._renderable(work, width))
    (line,) = out.getvalue().rstrip("\n").split("\n")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert len(shown) <= width
    words = work.line()
    assert ("━" in shown) == (width - len(words) - 1 >= 4)
    if width >= len(words):
        assert words.partition(",")[0] in shown
