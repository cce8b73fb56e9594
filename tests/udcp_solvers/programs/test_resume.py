"""The exact oracle over many instances: in worker processes, with a checkpoint, stopped at any moment and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pulp
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.predict.oracle import Floats
from udcp_solvers.ilp import Ilp
from udcp_solvers.programs.checkpoint import Checkpoint
from udcp_solvers.programs.exact import Report
from udcp_solvers.programs.instance import ChainGoal, Instances, Outcome

SPEC = "labels 0..5  categories F { a: {0..2}, b: {2, 3}, c: {3..5} }  loss l = count(F) + 0.1 * size"
LEVELS = [0.9]
MANY = 200

RUN = """
import sys
import numpy as np
import udcp_dsl as udcp
from udcp_solvers.ilp import Ilp

if __name__ == "__main__":
    spec, probs, checkpoint, workers = sys.argv[1:]
    oracle = Ilp(udcp.loads(spec), levels=[0.9], solver="HiGHS", checkpoint=checkpoint, workers=int(workers))
    oracle.scores(np.load(probs))
"""


def rows(n: int) -> Floats:
    return np.random.default_rng(0).dirichlet(np.full(6, 0.5), size=n)


@pytest.fixture(scope="module")
def uninterrupted() -> tuple[bytes, Report]:
    oracle = Ilp(udcp.loads(SPEC), levels=LEVELS, solver="HiGHS")
    return oracle.scores(rows(MANY)).tobytes(), oracle.report


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[ChainGoal]:
    """What was asked of each instance that this process solved."""
    asked: list[ChainGoal] = []
    solve = Instances.solve

    def counted(self: Instances, p: Floats, goal: ChainGoal) -> Outcome:
        asked.append(goal)
        return solve(self, p, goal)

    monkeypatch.setattr(Instances, "solve", counted)
    return asked


def records(file: Path) -> int:
    """Whole lines but the first."""
    return max(0, file.read_bytes().count(b"\n") - 1) if file.exists() else 0


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize(
    ("workers", "how"),
    [
        (2, signal.SIGKILL),
        # tests/udcp_dsl/cli/test_solving.py interrupts a command, whose workers end and whose file is kept
        pytest.param(2, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(1, signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_was_stopped_goes_on_with_the_same_bytes(
    tmp_path: Path, uninterrupted: tuple[bytes, Report], solved: list[ChainGoal], workers: int, how: signal.Signals
) -> None:
    P = rows(MANY)
    np.save(tmp_path / "p.npy", P)
    (tmp_path / "run.py").write_text(RUN)
    file = tmp_path / "run.checkpoint"
    process = subprocess.Popen(
        [sys.executable, "run.py", SPEC, "p.npy", str(file), str(workers)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # A suite that runs in the background of a script has SIGINT ignored, and hands that on.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    while records(file) < 40 and process.poll() is None:
        time.sleep(0.002)
    if how == signal.SIGINT:  # a terminal sends it to all
        os.killpg(process.pid, how)
    else:
        process.kill()
    assert process.wait() != 0
    for _ in range(1000):  # the workers end by themselves
        if not alive(process.pid):
            break
        time.sleep(0.02)
    assert not alive(process.pid)

    kept = records(file)
    assert 40 <= kept < MANY
    oracle = Ilp(udcp.loads(SPEC), levels=LEVELS, solver="HiGHS", checkpoint=file)
    assert oracle.scores(P).tobytes() == uninterrupted[0]
    assert len(solved) == MANY - kept
    assert oracle.report == uninterrupted[1]
    assert records(file) >= MANY
    solved.clear()
    assert Ilp(udcp.loads(SPEC), levels=LEVELS, solver="HiGHS", checkpoint=file).scores(P).tobytes() == uninterrupted[0]
    assert not solved


@pytest.mark.parametrize("program", ["mass", pytest.param("price", marks=pytest.mark.slow)])
def test_workers_change_nothing(program: str) -> None:
    loss = udcp.loads(SPEC)
    P, y = rows(4), np.arange(4)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1

    alone, many = (Ilp(loss, program=program, solver="HiGHS", levels=[0.6, 0.9]) for _ in range(2))
    with many.running(workers=2, advance=advance):
        assert many.scores(P).tobytes() == alone.scores(P).tobytes()
        assert many.report == alone.report
        assert many.score_of(P, y).tobytes() == alone.score_of(P, y).tobytes()
        assert (many.sets(P, -0.2) == alone.sets(P, -0.2)).all()
        assert (many.first(P) == alone.first(P)).all()
    assert done == 4 * 4


def test_every_face_resumes_what_it_was_asked(tmp_path: Path, solved: list[ChainGoal]) -> None:
    loss = udcp.loads(SPEC)
    P, y = rows(5), np.array([0, 1, 2, 3, 4])
    first = Ilp(loss, checkpoint=tmp_path / "c")
    answers = [first.scores(P), first.score_of(P, y), first.sets(P, -0.2), first.first(P), *first.optimal(P)]
    assert len(solved) == 5 * 4  # `first` and `optimal` ask for the same
    solved.clear()
    again = Ilp(loss, checkpoint=tmp_path / "c")
    for answer, same in zip(
        answers,
        [again.scores(P), again.score_of(P, y), again.sets(P, -0.2), again.first(P), *again.optimal(P)],
        strict=True,
    ):
        assert answer.tobytes() == same.tobytes()
    assert not solved
    again.score_of(P, y + 1)
    again.sets(P, -0.3)
    assert solved == [ChainGoal("label", v) for v in (1, 2, 3, 4, 5)] + [ChainGoal("threshold", -0.3)] * 5


def test_first_is_the_label_of_least_score() -> None:
    P = rows(20)
    for mass in ("before", "through", "random"):
        oracle = Ilp(udcp.loads(SPEC), mass=mass)
        scores = oracle.scores(P)
        least = scores == scores.min(axis=1, keepdims=True)
        assert (oracle.first(P) == np.where(least, P, -1).argmax(axis=1)).all()


def test_optimal_is_the_first_set_of_the_chain() -> None:
    loss = udcp.loads("labels 0..3  category C {0, 1}  loss l = any(C) + 0.6 * size")
    P = np.array([[0.3, 0.3, 0.35, 0.05], [0.9, 0.05, 0.05, 0.0]])
    masks, proved = Ilp(loss, levels=[0.6]).optimal(P)
    # {0, 1} and {0, 2} both cost 2.2; {0} has the mass of the second row.
    assert proved.all()
    assert loss.batch(masks).tolist() == [2.2, 1.6]
    assert masks[1].tolist() == [True, False, False, False]
    with pytest.raises(OracleError, match="no levels"):
        Ilp(loss, program="price").optimal(P)


def test_what_is_not_whole_is_solved_again(tmp_path: Path, solved: list[ChainGoal]) -> None:
    loss, P, file = udcp.loads(SPEC), rows(4), tmp_path / "c"
    whole = Ilp(loss, checkpoint=file).scores(P)
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    flipped = lines[2].replace(b"1", b"2", 1)
    for damaged, again in (
        (content[:-1], 0),  # only the end of the line is missing
        (content[:-9], 1),
        (b"".join([*lines[:2], flipped, *lines[3:]]), 1),
        (b"".join(lines[:1])[:-5], 4),
        (b"", 4),
    ):
        file.write_bytes(damaged)
        solved.clear()
        assert Ilp(loss, checkpoint=file).scores(P).tobytes() == whole.tobytes()
        assert len(solved) == again
        solved.clear()
        assert Ilp(loss, checkpoint=file).scores(P).tobytes() == whole.tobytes()
        assert not solved


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    loss, P, file = udcp.loads(SPEC), rows(1), tmp_path / "c"
    Ilp(loss, checkpoint=file).scores(P)
    content = file.read_bytes()
    other = udcp.loads(SPEC.replace("0.1", "0.2"))
    for oracle in (Ilp(other, checkpoint=file), Ilp(loss, checkpoint=file, time_limit=9)):
        with pytest.raises(OracleError, match="belongs to another loss, other options or another version"):
            oracle.scores(P)
    assert file.read_bytes() == content
    file.write_text("my thesis")
    with pytest.raises(OracleError, match="is not a checkpoint: give another file"):
        Ilp(loss, checkpoint=file).scores(P)
    assert file.read_text() == "my thesis"
    with pytest.raises(OracleError, match=r"checkpoint .*nowhere"):
        Ilp(loss, checkpoint=tmp_path / "nowhere" / "c").scores(P)


def test_records_keep_every_bit(tmp_path: Path) -> None:
    p = np.array([0.1, 5e-324, 1 / 3])
    scores = np.array([np.inf, -0.0, 0.1 + 0.2])
    kept = Checkpoint(tmp_path / "c", "it")
    kept.add(p, ChainGoal(), Outcome(Report(1, 1, questions=3), scores=scores))
    kept.close()
    found = Checkpoint(tmp_path / "c", "it").find(p, ChainGoal())
    assert found is not None
    assert found.scores is not None
    assert found.scores.tobytes() == scores.tobytes()
    assert found.report == Report(1, 1, questions=3)
    assert Checkpoint(tmp_path / "c", "it").find(p, ChainGoal("first")) is None


CRASHING = """
import os
import pulp

class Crashing(pulp.HiGHS):
    '''Takes its process along the first few times that it is asked.'''

    def __init__(self, marks, times):
        super().__init__(msg=False, gapRel=0.0, gapAbs=0.0)
        self.marks, self.times = marks, times

    def actualSolve(self, problem, **options):
        with open(self.marks, "a") as file:
            file.write("x")
        if os.path.getsize(self.marks) <= self.times:
            os._exit(3)
        return super().actualSolve(problem, **options)
"""


@pytest.mark.parametrize(("crashes", "failed"), [pytest.param(1, 0, marks=pytest.mark.slow), (2, 1)])
def test_an_instance_that_ends_its_worker_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashes: int, failed: int
) -> None:
    (tmp_path / "crashing_solver.py").write_text(CRASHING)
    monkeypatch.syspath_prepend(str(tmp_path))
    from crashing_solver import Crashing  # type: ignore[import-not-found]

    P = rows(1)
    loss = udcp.loads(SPEC)
    oracle = Ilp(loss, solver=Crashing(str(tmp_path / "marks"), crashes), workers=2, canonical=True)
    if failed:
        with pytest.warns(UserWarning, match="1 of 1 instances are not proved optimal .*1 failed"):
            oracle.scores(P)
    else:
        assert oracle.scores(P).tobytes() == Ilp(loss, canonical=True).scores(P).tobytes()
    assert (oracle.report.failed, oracle.report.proved) == (failed, 1 - failed)


def test_a_solver_that_cannot_travel_is_refused() -> None:
    solver = pulp.HiGHS(msg=False)
    solver.hook = lambda: None
    with pytest.raises(OracleError, match="cannot be sent to worker processes"):
        Ilp(udcp.loads(SPEC), solver=solver, workers=2).scores(rows(1))


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "all"])
def test_wrong_numbers_of_workers(workers: Any) -> None:
    with pytest.raises(OracleError, match="workers must be a whole number of at least 1"):
        Ilp(udcp.loads(SPEC), workers=workers)


def test_neither_workers_nor_checkpoint_are_saved(tmp_path: Path) -> None:
    oracle = Ilp(udcp.loads(SPEC), workers=2, checkpoint=tmp_path / "c")
    assert set(oracle.options) == {"program", "solver", "levels", "node_limit", "time_limit", "canonical", "mass"}
