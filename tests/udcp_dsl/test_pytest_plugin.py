"""`pytest --udcp` in a fresh folder that holds nothing but specs and their data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """
labels from "pets.csv" column name
costs effort from "pets.csv" column effort
loss plain = size
loss dear = sum(effort) + any({ cat, dog })
"""

# What is told is found by the first stages, with one oracle; tests/udcp_dsl/check tries all of them.
FEW_STAGES = """
from udcp_dsl.check import coverage as coverage_trials
from udcp_dsl.check import oracles
from udcp_dsl.check import promises
coverage_trials.coverage = promises.promises = lambda *asked: []
chosen = oracles.chosen_oracles
oracles.chosen_oracles = lambda loss, wanted: chosen(loss, ["lac"])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pets.loss").write_text(SPEC)
    (tmp_path / "pets.csv").write_text("name,effort\ncat,1\ndog,2.5\nwolf,9\n")
    (tmp_path / "conftest.py").write_text(FEW_STAGES)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    others = "anyio cacheprovider hypothesispytest xdist xdist.looponfail".split()
    without = [f"-pno:{plugin}" for plugin in others]
    command = [sys.executable, "-m", "pytest", *without, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_each_loss_of_each_spec_is_a_test_and_what_fails_is_told_without_a_traceback(folder: Path) -> None:
    """One process for both: a loss that holds, and one whose evaluator is patched."""
    (folder / "conftest.py").write_text(
        f"{FEW_STAGES}"
        "from udcp_dsl.expression.atoms.any import Any\n"
        "Any.batch = lambda self, sets: sets.mask[:, self.category.members].all(axis=1) * 1.0\n"
    )
    done = run(folder, "--udcp", "--udcp-cases", "1", "--udcp-seed", "3", "-v", "pets.loss")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "pets.loss::plain PASSED" in done.stdout
    assert "pets.loss::dear FAILED" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "meaning: all ways to compute the loss agree fails" in done.stdout
    assert "on {cat} the interpreter gives 2.0 and batch gives 1.0" in done.stdout
    assert "Traceback" not in done.stdout
    written = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert written == {"conftest.py", "pets.csv", "pets.loss"}


def test_a_spec_that_does_not_compile_fails_as_a_compiler_says_it(folder: Path) -> None:
    (folder / "conftest.py").unlink()
    (folder / "bad.loss").write_text("labels { a }  loss l = sizee")
    done = run(folder, "--udcp", "bad.loss")
    assert done.returncode == 1
    assert "there is no 'sizee'" in done.stdout
    assert "did you mean 'size'?" in done.stdout
    assert "Traceback" not in done.stdout


def test_nothing_is_done_without_the_option(folder: Path) -> None:
    (folder / "conftest.py").unlink()
    (folder / "test_quiet.py").write_text(
        "import sys\n\ndef test_quiet():\n    assert not {'numpy', 'udcp_dsl.loss', 'hypothesis'} & set(sys.modules)\n"
    )
    done = run(folder)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
