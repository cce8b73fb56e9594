"""A newcomer's job: digits, where an "8" costs three times as much. Every command says that it is abandoned."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Udcp = Callable[..., Result]
COSTS = ", ".join(f'"{digit}": {3 if digit == 8 else 1}' for digit in range(10))
LABELS = ", ".join(f'"{digit}"' for digit in range(10))
SPEC = f"labels {{ {LABELS} }}\ncosts price {{ {COSTS} }}\nloss digits = sum(price)\n"


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and truths of 1,197 digits that a forest was not trained on."""
    datasets, ensemble = pytest.importorskip("sklearn.datasets"), pytest.importorskip("sklearn.ensemble")
    X, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    forest = ensemble.RandomForestClassifier(20, random_state=0).fit(X[:600], y[:600])
    return forest.predict_proba(X[600:]), y[600:].astype(str)


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    P, y = digits()
    Path("digits.loss").write_text(SPEC)
    for name, rows in (("first", slice(593)), ("second", slice(593, None)), ("all", slice(None))):
        np.save(f"{name}.npy", P[rows])
        np.save(f"{name}-y.npy", y[rows])


def run(udcp: Udcp, *arguments: str) -> str:
    result = udcp(*arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def calibrate(udcp: Udcp, *arguments: str) -> str:
    source = ("--probs", "first.npy", "--truth", "first-y.npy", "--alpha", "0.1", "-o", "out.json")
    return run(udcp, "calibrate", "digits.loss", *source, *arguments)


NAMED = "by more than chance: class '8' 0."
TRY = 'try conditional="class" or "difficulty" (--conditional)'


def test_calibrate_names_it(udcp: Udcp) -> None:
    told = calibrate(udcp)
    assert re.search(r"coverage 0\.9\d\d on the calibration rows \(target 0\.9\); worst class '8' 0\.[123]", told)
    assert "593 rows: 475 for thresholds, 118 for repair" in told
    assert NAMED in told
    assert TRY in told
    assert re.search(r"empty sets on the calibration rows: \d\.\d%; calibrate with nonempty=True \(--nonempty\)", told)
    (data,) = json.loads(calibrate(udcp, "--json"))["in_sample"]
    assert data["worst"]["name"] == data["short"][0]["name"] == "8"
    assert 0.01 < data["empty"] < 0.1


def test_evaluate_names_it(udcp: Udcp) -> None:
    calibrate(udcp)
    source = ("--probs", "second.npy", "--truth", "second-y.npy")
    told = run(udcp, "evaluate", "out.json", *source)
    assert re.search(r"coverage 0\.\d{3} \(target 0\.9\); worst class '8' 0\.[123]", told)
    assert NAMED in told
    assert TRY in told
    (data,) = json.loads(run(udcp, "evaluate", "out.json", *source, "--json"))["evaluations"]
    assert [part["name"] for part in data["least_covered"]["short"]] == ["8", "hardest quarter"]


def test_the_way_out_is_one(udcp: Udcp) -> None:
    calibrate(udcp, "--conditional", "class", "--nonempty")
    told = run(udcp, "evaluate", "out.json", "--probs", "second.npy", "--truth", "second-y.npy")
    assert "class '8' 0.2" not in told
    assert "nonempty" not in told


def test_predict_counts_empty_sets(udcp: Udcp) -> None:
    calibrate(udcp)
    told = run(udcp, "predict", "out.json", "--probs", "second.npy", "-o", "sets.csv")
    assert re.search(r" \d\d empty \(\d\.\d%; calibrate with nonempty=True \(--nonempty\) to have none\)", told)


@pytest.mark.parametrize("output", ["sets.csv", "sets/"])
def test_predict_names_it_where_truth_is_known(udcp: Udcp, output: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    P, y = digits()
    columns = {str(k): P[593:, k] for k in range(10)} | {"digit": y[593:]}
    pq.write_table(pa.table(columns), "second.parquet")
    calibrate(udcp)
    source = ("--probs", "second.parquet", "--truth", "digit")
    told = run(udcp, "predict", "out.json", *source, "-o", output)
    assert re.search(r"coverage 0\.\d{3} \(target 0\.9\); worst class '8' 0\.[123]", told)
    assert NAMED in told
    assert TRY in told
    (judged,) = json.loads(run(udcp, "evaluate", "out.json", *source, "--json"))["evaluations"]
    again = json.loads(run(udcp, "predict", "out.json", *source, "-o", "again.csv", "--json"))
    for found in (again, judged):
        assert [part["name"] for part in found["least_covered"]["short"]] == ["8", "hardest quarter"]
        assert found["least_covered"]["coverage"] == judged["least_covered"]["coverage"]
        assert found["least_covered"]["worst"]["covered"] == judged["least_covered"]["worst"]["covered"]
    if output == "sets/":  # truth changes no set, so the folder is gone on with without it
        assert "already existed" in run(udcp, "predict", "out.json", *source[:2], "--ignore", "digit", "-o", output)


def test_predict_tells_the_mean_harm_where_that_was_promised(udcp: Udcp) -> None:
    calibrate(udcp, "--risk", "price")
    told = run(udcp, "predict", "out.json", "--probs", "second.npy", "--truth", "second-y.npy", "-o", "sets.csv")
    assert re.search(r"mean harm 0\.\d+ \(at most 0\.1 guaranteed; standard error 0\.0\d+\)", told)


def test_compare_and_its_report_name_it(udcp: Udcp, undrawn: None) -> None:
    pytest.importorskip("matplotlib")
    source = ("--probs", "all.npy", "--truth", "all-y.npy", "--splits", "3", "--report", "r.html")
    told = run(udcp, "compare", "digits.loss", *source, "--oracle", "price", "--oracle", "lac")
    for text in (told, unescape(Path("r.html").read_text(encoding="utf-8"))):
        assert "worst class: price '8' 0." in text
        assert f"price: below the target coverage of 0.9 {NAMED}" in text
        assert TRY in text
        assert "; calibrate with nonempty=True (--nonempty)" in text
    assert re.search(r"<p>At alpha 0\.1 price .* \(target: 0\.9\)(, too low)?; worst class '8' 0\.[123]", text)
