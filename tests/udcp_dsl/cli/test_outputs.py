"""Outputs that cannot be written are found before the work; where one fails later, results are printed first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import udcp_dsl
from udcp_dsl import InputError, SetPredictor
from udcp_dsl.cli.ending import json_option
from udcp_dsl.cli.row_options import collect_warnings
from udcp_dsl.diagnostics import warn, worded
from udcp_dsl.rows.columns import NamedPositions

Udcp = Callable[..., Result]
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 60)
LABELS = ["cat", "dog", "wolf", "lynx"]
Y = NamedPositions.of(np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1), LABELS)
SOURCE = ("--probs", "p.npy", "--truth", "y.npy")
COMPARE = ("compare", "pets.loss", *SOURCE, "--oracle", "lac", "--splits", "1")
# The command, the option of the output, and the ending that this has.
WRITING = {
    "compare": (COMPARE, "--report", ".html"),
    "runs": (COMPARE, "--out", ".csv"),
    "demo": (("demo", "--rows", "200"), "--report", ".html"),
    "validate": (("validate", "pets.loss", "--oracle", "lac", "--cases", "1"), "--report", ".html"),
    "calibrate": (("calibrate", "pets.loss", *SOURCE, "--oracle", "lac"), "-o", ".json"),
    "predict": (("predict", "saved.json", "--probs", "p.npy"), "-o", ".csv"),
}


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    np.save("p.npy", P)
    np.save("y.npy", Y.names)
    SetPredictor(udcp_dsl.load("pets.loss"), "lac", alpha=0.2).calibrate(P, Y).save("saved.json")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of what takes time may be reached."""

    def reached(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the work was begun")

    for place in ("rows.source.open_rows", "datasets.languages", "check.run.validate"):
        monkeypatch.setattr(f"udcp_dsl.{place}", reached)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", WRITING)
def test_a_place_that_cannot_be_written_to_is_found_before_the_work(udcp: Udcp, folder: Path, name: str) -> None:
    command, option, ending = WRITING[name]
    (folder / f"folder{ending}").mkdir()
    (folder / f"link{ending}").symlink_to(folder / "nowhere" / "file")
    wrong = {
        f"/proc/out{ending}": "/proc/out",  # a folder in which nobody can make a file
        f"absent/out{ending}": "there is no folder 'absent'",
        f"p.npy/out{ending}": "there is no folder 'p.npy'",
        f"folder{ending}": "is a folder, not a file",
        f"link{ending}": "cannot be written",
        f"{'x' * 300}{ending}": "too long",
    }
    for path, message in wrong.items():
        result = udcp(*command, option, path)
        assert result.exit_code == 2, (path, result.output)
        assert message in result.stderr
        assert result.stdout == ""
        assert json.loads(udcp(*command, option, path, "--json").stdout)["ok"] is False


@pytest.mark.usefixtures("no_work")
def test_so_is_a_device_and_a_folder_for_figures(udcp: Udcp) -> None:
    Path("null.csv").symlink_to("/dev/null")
    assert "it is not a regular file" in udcp("predict", "saved.json", "--probs", "p.npy", "-o", "null.csv").stderr
    for path in ("/proc/figures", "/proc"):
        assert "cannot be written" in udcp(*COMPARE, "--figures", path).stderr


def test_looking_leaves_nothing_behind(udcp: Udcp, folder: Path) -> None:
    Path("out.csv").write_text("before")
    before = sorted(folder.iterdir())
    assert udcp(*COMPARE, "--out", "out.csv", "--oracle", "absent").exit_code == 2
    assert sorted(folder.iterdir()) == before
    assert Path("out.csv").read_text() == "before"


@pytest.fixture
def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full by the time that something is written."""

    @contextmanager
    def full(path: Any) -> Iterator[Path]:
        raise InputError(f"{path}: cannot be written: No space left on device")
        yield Path()

    for place in ("report.page", "measure.comparison", "predict.saved", "files"):
        monkeypatch.setattr(f"udcp_dsl.{place}.atomic_write", full)


@pytest.mark.usefixtures("_full", "undrawn", "few_classifiers")
@pytest.mark.parametrize(
    ("name", "printed", "key"),
    [
        ("compare", "lac", "summaries"),
        ("runs", "lac", "summaries"),
        ("validate", "no problem found", "stages"),
        ("calibrate", "threshold", "thresholds"),
    ],
)
def test_results_are_printed_before_what_fails_to_be_written(udcp: Udcp, name: str, printed: str, key: str) -> None:
    if name == "compare":
        pytest.importorskip("matplotlib")
    command, option, ending = WRITING[name]
    result = udcp(*command, option, f"out{ending}")
    assert result.exit_code == 2
    assert printed in result.stdout
    assert "No space left on device" in result.stderr
    data = udcp(*command, option, f"out{ending}", "--json")
    assert data.exit_code == 2
    told = json.loads(data.stdout)
    assert told["ok"] is False
    assert told[key]
    assert "No space left" in told["diagnostics"][-1]["message"]


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_warnings_are_told_when_they_are_raised_and_once(arguments: list[str]) -> None:
    @click.command()
    @json_option
    def command() -> None:
        with collect_warnings() as messages:
            for _ in range(2):
                warn(f"{worded('logits=True', '--logits')} is doubtful")
            click.echo("the work goes on", err=True)
        assert messages == ["--logits is doubtful"]

    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    told = "" if arguments else "warning: --logits is doubtful\n"
    assert result.stderr == told + "the work goes on\n"


def test_they_come_before_the_work(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any, **options: Any) -> None:
        raise InputError("the work was begun")

    monkeypatch.setattr("udcp_dsl.predict.chain.true_scores", fails)
    np.save("y.npy", np.array(LABELS)[P.argmin(axis=1)])
    few = udcp("calibrate", "pets.loss", *SOURCE, "--oracle", "lac", "--alpha", "0.001", "-o", "out.json")
    said = [few.stderr.index(text) for text in ("less often than chance", "too few calibration rows", "was begun")]
    assert said == sorted(said)
