"""--workers and --resume of the commands whose oracle solves instances, and the bar that goes with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Udcp = Callable[..., Result]


@pytest.fixture
def data(folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(4, 0.6), size=25)
    np.save(folder / "p.npy", P)
    np.save(folder / "y.npy", np.array([rng.choice(4, p=p) for p in P]))
    return ["--probs", "p.npy", "--truth", "y.npy"]


def test_calibrate_and_predict_go_on_from_a_file(udcp: Udcp, data: list[str], folder: Path) -> None:
    calibrate = ["calibrate", "pets.loss", *data, "--oracle", "ilp"]
    predict = ["predict", "--probs", "p.npy"]
    assert udcp(*calibrate, "-o", "plain.json").exit_code == 0
    assert udcp(*predict, "plain.json", "-o", "plain.csv").exit_code == 0
    for workers in ("1", "2"):  # the second time nothing is left to solve
        assert udcp(*calibrate, "-o", "kept.json", "--resume", "run.c", "--workers", workers).exit_code == 0
        assert (folder / "run.c").read_bytes().count(b"\n") == 1 + 25
        assert udcp(*predict, "kept.json", "-o", "kept.csv", "--resume", "more.c", "--workers", workers).exit_code == 0
        assert (folder / "more.c").read_bytes().count(b"\n") == 1 + 25
        assert (folder / "kept.json").read_bytes() == (folder / "plain.json").read_bytes()
        assert (folder / "kept.csv").read_bytes() == (folder / "plain.csv").read_bytes()


def test_what_solves_nothing_has_nothing_to_resume(udcp: Udcp, data: list[str], folder: Path) -> None:
    for option in (["--resume", "run.c"], ["--workers", "2"]):
        result = udcp("calibrate", "pets.loss", *data, "--oracle", "greedy", "-o", "out.json", *option)
        assert result.exit_code == 2
        assert (
            "oracle 'greedy' runs no solver: --workers and --resume are for oracles that do, such as ilp"
            in result.stderr
        )
    assert not (folder / "run.c").exists()
    assert not (folder / "out.json").exists()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_ctrl_c_ends_all_processes_and_keeps_what_was_solved(folder: Path) -> None:
    np.save(folder / "p.npy", np.random.default_rng(0).dirichlet(np.full(4, 0.6), size=5000))
    kept = folder / "run.c"
    command = "gap pets.loss --probs p.npy --sample 5000 --oracle base --solver HiGHS --workers 2 --resume run.c"
    arguments = command.split()
    process = subprocess.Popen(
        [sys.executable, "-m", "udcp_dsl.cli", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A suite that runs in the background of a script has SIGINT ignored, and hands that on.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and not (kept.exists() and kept.read_bytes().count(b"\n") > 20):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    stdout, stderr = process.communicate()
    # On a busy machine a line of progress may come first.
    assert (process.returncode, stdout, stderr.split()[-1]) == (130, "", "interrupted")
    assert 20 < kept.read_bytes().count(b"\n") < 5000
    for _ in range(500):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.02)
    else:
        pytest.fail("a worker outlives the command")
