"""What fitting gives does not change by accident: sets, thresholds and p-values of every promise, stage and oracle.

`python -m tests.test_stored_fits` writes the outcomes anew; do so only where fits are meant to change, and say it in
CHANGELOG.md. `--saved` also writes the predictors, as the files of today's format.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import udcp_dsl as udcp
from tests.fits import CASES, FILES, compared, cross_validated, fitted, outcome

STORED = FILES / "outcomes.json"
SAVED = FILES.parent / "saved"


def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def assert_same(found: Any, stored: Any, where: str = "") -> None:
    """Equal, but for numbers, which may differ in their last digits from machine to machine."""
    if isinstance(stored, dict):
        assert found.keys() == stored.keys(), where
        for key in stored:
            assert_same(found[key], stored[key], f"{where}/{key}")
    elif isinstance(stored, list) and stored and not isinstance(stored[0], str):
        assert len(found) == len(stored), where
        for i, (x, y) in enumerate(zip(found, stored, strict=True)):
            assert_same(x, y, f"{where}/{i}")
    elif isinstance(stored, float):
        assert found == pytest.approx(stored, rel=1e-9, abs=1e-9), where
    else:
        assert found == stored, where


@pytest.mark.parametrize("name", CASES)
def test_a_fit_gives_what_it_gave(name: str) -> None:
    assert_same(outcome(*fitted(name)), expected()["fits"][name], name)


def saved_file(name: str) -> Path:
    return SAVED / f"format3-{re.sub('[^a-z0-9]+', '-', name)}.json"


BY_RANK = ("difficulty", "difficulty, anchored")  # 0.3 had bins by rank: their files have to be calibrated again


@pytest.mark.parametrize("name", [name for name in CASES if name not in BY_RANK])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_of_version_0_3_gives_what_it_gave(name: str, tmp_path: Path) -> None:
    _, new, beside = fitted(name)
    predictor = udcp.SetPredictor.load(saved_file(name))
    assert_same(outcome(predictor, new, beside), expected()["saved"][name], name)
    predictor.save(tmp_path / "again.json")
    assert_same(outcome(udcp.SetPredictor.load(tmp_path / "again.json"), new, beside), expected()["saved"][name], name)


def test_compare_gives_what_it_gave() -> None:
    assert_same(json.loads(json.dumps(compared())), expected()["compared"])


def test_the_scikit_learn_class_gives_what_it_gave() -> None:
    pytest.importorskip("sklearn")
    assert_same(cross_validated(), expected()["cross-validated"])


def write(*, saved: bool) -> None:
    stored = {"fits": {name: outcome(*fitted(name)) for name in CASES}}
    if saved:
        for name in CASES:
            predictor, _, _ = fitted(name)
            predictor.save(saved_file(name))
    stored["saved"] = stored["fits"] if saved else expected()["saved"]
    stored |= {"compared": compared(), "cross-validated": cross_validated()}
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(saved="--saved" in sys.argv)
