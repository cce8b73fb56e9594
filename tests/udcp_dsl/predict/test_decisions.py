"""Actions with certificates, and handing over: of prediction sets, in files, in evaluation and in comparison."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.predict.sets import PredictionSets
from udcp_dsl.rows.writing import write_sets

TREAT = b"label,wait,scan,cut\na,0,2,5\nb,1,2,5\nc,9,3,1\nd,9,3,2\n"
STAY = b"label,home,ward\na,0,1\nb,0,1\nc,8,2\nd,4,2\n"
LABELS = "labels { a, b, c, d }  "
ONE = LABELS + 'actions treat from "treat.csv"  loss l = worst(treat) + 0.01 * size'
TWO = (
    LABELS + 'actions treat from "treat.csv"  actions stay from "stay.csv"  loss l = worst(treat) + worst(stay) + size'
)
MASK = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
FILES = {"treat.csv": TREAT, "stay.csv": STAY}


def one() -> udcp.Loss:
    return udcp.loads(ONE, files=FILES)


def rows(n: int, seed: int, K: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def test_actions_and_certificates_by_hand() -> None:
    sets = PredictionSets(one(), MASK)
    assert isinstance(sets.actions, np.ndarray)
    assert sets.actions.tolist() == ["wait", "cut", "scan", "scan"]  # an empty set: for all labels
    assert isinstance(sets.certificates, np.ndarray)
    assert sets.certificates.tolist() == [1.0, 1.0, 3.0, 3.0]
    assert sets[1:3].certificates.tolist() == [1.0, 3.0]  # type: ignore[union-attr]
    assert sets[:0].actions.shape == (0,)  # type: ignore[union-attr]


def test_of_several_actions_there_is_a_mapping() -> None:
    sets = PredictionSets(udcp.loads(TWO, files=FILES), MASK)
    assert isinstance(sets.actions, dict)
    assert isinstance(sets.certificates, dict)
    assert {name: found.tolist() for name, found in sets.actions.items()} == {
        "treat": ["wait", "cut", "scan", "scan"],
        "stay": ["home", "ward", "ward", "ward"],
    }
    assert sets.certificates["stay"].tolist() == [0.0, 2.0, 2.0, 2.0]
    assert list(sets.decisions) == ["action:treat", "certificate:treat", "action:stay", "certificate:stay"]


def test_a_loss_without_actions_refuses() -> None:
    sets = PredictionSets(udcp.loads(LABELS + "loss l = size"), MASK)
    for name in ("actions", "certificates"):
        with pytest.raises(udcp.InputError, match=r"has no actions: declare actions .* worst"):
            getattr(sets, name)
    assert sets.handed_over is None
    assert sets.decisions == {}


def test_many_sets_are_decided_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = np.random.default_rng(0).random((50, 4)) < 0.4
    whole = PredictionSets(one(), mask)
    expected = whole.actions, whole.certificates
    monkeypatch.setattr("udcp_dsl.predict.sets._BLOCK", 12)
    parts = PredictionSets(one(), mask)
    assert np.array_equal(parts.actions, expected[0])
    assert np.array_equal(parts.certificates, expected[1])


@pytest.mark.parametrize("oracle", ["price", "lac"])
def test_the_action_costs_no_more_than_its_certificate_as_often_as_is_promised(oracle: str) -> None:
    """Wherever the truth is in the set, exactly; so in 1 - alpha of all rows. With probability one part in 10^6 fewer:
    the coverage of 400 calibration rows has mean 0.9 and a standard deviation of 0.015; 3,000 test rows add 0.0055."""
    loss = one()
    predictor = udcp.SetPredictor(loss, oracle, alpha=0.1).calibrate(*rows(400, 0))
    P, y = rows(3000, 1)
    sets = predictor.predict_set(P)
    losses = loss.actions["treat"].values
    paid = losses[y, [loss.actions["treat"].actions.index(a) for a in sets.actions]]
    held = sets.mask[np.arange(len(y)), y]
    assert isinstance(sets.certificates, np.ndarray)
    assert (paid <= sets.certificates)[held].all()
    assert (paid <= sets.certificates).mean() >= 0.9 - 5 * np.hypot(0.015, 0.0055)
    assert (paid > sets.certificates).any()  # a certificate says something
    # It is what `worst` costs, so that a set is paid for by what it leads to.
    worst = [
        max(losses[s, a] for s in np.flatnonzero(m)) for m, a in zip(sets.mask[:50], _index(sets)[:50], strict=True)
    ]
    assert worst == sets.certificates[:50].tolist()


def _index(sets: PredictionSets) -> list[int]:
    return [sets.loss.actions["treat"].actions.index(a) for a in sets.actions]


CAPPED = LABELS + "costs c { a: 1, b: 2, c: 3, d: 4 }  loss l = min(sum(c) + 0.5 * size, 5)"


def test_handed_over_is_where_the_cost_is_the_ceiling() -> None:
    sets = PredictionSets(
        udcp.loads(CAPPED), np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]], dtype=bool)
    )
    assert sets.costs.tolist() == [4.0, 5.0, 4.5, 5.0]
    assert sets.handed_over is not None
    assert sets.handed_over.tolist() == [False, True, False, True]
    assert sets.to_pandas()["handed_over"].tolist() == [False, True, False, True]


def test_evaluation_shows_the_kept_and_the_handed_over_apart() -> None:
    loss = udcp.loads(CAPPED)
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.2).calibrate(*rows(300, 2))
    P, y = rows(500, 3)
    report = udcp.evaluate(predictor, P, y)
    handed = report.sets.costs >= 5
    covered = report.sets.mask[np.arange(500), y]
    assert [s.name for s in report.by_decision] == ["kept", "handed over"]
    assert [s.n for s in report.by_decision] == [(~handed).sum(), handed.sum()]
    assert [s.covered for s in report.by_decision] == [covered[~handed].sum(), covered[handed].sum()]
    assert report.handed_over == handed.mean()
    assert report.as_dict()["handed_over"] == handed.mean()
    assert "handed over" in str(report)
    plain = udcp.evaluate(udcp.SetPredictor(udcp.loads(LABELS + "loss l = size"), "lac").calibrate(P, y), P, y)
    assert plain.handed_over is None
    assert plain.by_decision == ()
    assert "handed over" not in str(plain)


@pytest.mark.usefixtures("undrawn")
def test_comparison_shows_them_for_each_oracle(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = udcp.compare(udcp.loads(CAPPED), *rows(400, 4), oracles=["lac", "price"], splits=2)
    for summary in found.summaries():
        assert set(summary.by_decision) == {"kept", "handed over"}
        assert sum(share for _, share in summary.by_decision.values()) == pytest.approx(1)
    assert "coverage by decision" in str(found)
    assert all(0 < share < 1 for share in found.table()["handed_over"])
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "coverage of the kept" in page
    example = found.examples["l"][0]
    assert any(said == "handed over" for x in found.examples["l"] for said in x.decisions.values())
    assert set(example.decisions) == {"lac", "price"}


def test_the_report_browses_actions() -> None:
    found = udcp.compare(one(), *rows(200, 5), oracles=["lac", "price"], splits=1)
    assert all("at worst" in said for x in found.examples["l"] for said in x.decisions.values())


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_files_have_actions_certificates_and_handing_over(tmp_path: Path, ending: str) -> None:
    text = LABELS + 'actions treat from "treat.csv"  loss l = min(worst(treat) + 0.25 * size, 3)'
    sets = PredictionSets(udcp.loads(text, files=FILES), MASK)
    path = tmp_path / f"sets{ending}"
    write_sets(path, mask=sets.mask, labels=sets.loss.labels, costs=sets.costs, more=sets.decisions)
    if ending == ".csv":
        with path.open(newline="") as file:
            found = [[row["action"], row["certificate"], row["handed_over"]] for row in csv.DictReader(file)]
        assert found[2:] == [["scan", "3.0", "true"], ["scan", "3.0", "false"]]
        return
    if ending == ".jsonl":
        table = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    assert [row["action"] for row in table] == ["wait", "cut", "scan", "scan"]
    assert [row["certificate"] for row in table] == [1.0, 1.0, 3.0, 3.0]
    assert [row["handed_over"] for row in table] == [False, False, True, False]
    assert [row["cost"] for row in table] == sets.costs.tolist()


def test_a_column_of_another_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(udcp.InputError, match="action: 3 entries for 4 sets"):
        write_sets(tmp_path / "s.csv", mask=MASK, labels=list("abcd"), more={"action": np.array(["x"] * 3)})
    assert not list(tmp_path.iterdir())
