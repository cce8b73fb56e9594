"""The ticket case: specs/tickets and the rows that benchmarks/tickets.py makes for it."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import udcp_dsl as udcp

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "specs" / "tickets"


@pytest.fixture
def tickets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import tickets

    return tickets


@pytest.fixture(scope="module")
def loss() -> udcp.Loss:
    return udcp.load(FOLDER / "tickets.loss")


def test_the_loss_is_what_its_tables_say(loss: udcp.Loss) -> None:
    with (FOLDER / "queues.csv").open(encoding="utf-8") as queues, (FOLDER / "handover.csv").open() as handover:
        rows = {row["queue"]: row for row in csv.DictReader(queues)}
        apart = {row["team"]: row for row in csv.DictReader(handover)}
    assert [len([q for q in rows.values() if q["team"] == team]) for team in apart] == [5] * 6
    rng = np.random.default_rng(0)
    for size in [0, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 30] * 5:
        S = rng.choice(loss.labels, size, replace=False).tolist()
        teams = {rows[q]["team"] for q in S}
        meant = sum(float(rows[q]["minutes"]) for q in S) + 60 * (len(S) > 5) + 240 * ({"Security", "Billing"} <= teams)
        meant += 2 * max((float(apart[a][b]) for a in teams for b in teams), default=0)
        assert loss(S) == meant


def test_its_rows_are_a_plausible_classifier_in_the_order_of_the_labels(tickets: ModuleType, loss: udcp.Loss) -> None:
    P, y = tickets.rows()
    assert (P.shape, P.dtype, y.shape) == ((2000, loss.K), np.float32, (2000,))
    assert np.abs(P.sum(axis=1) - 1).max() < 1e-5
    team = np.repeat(np.arange(6), 5)
    said = P.argmax(axis=1)
    right, right_team = (said == y).mean(), (team[said] == team[y]).mean()
    assert 0.6 < right < 0.8
    assert right_team > right + 0.1  # queues of one team are mixed up most
    again, other = tickets.rows(), tickets.rows(seed=1)
    assert (again[0] == P).all()
    assert (again[1] == y).all()
    assert not (other[1] == y).all()


def test_the_rows_are_written_as_the_commands_read_them(tickets: ModuleType, loss: udcp.Loss, tmp_path: Path) -> None:
    tickets.main(tmp_path / "rows")
    P, y = (np.load(tmp_path / "rows" / f"{name}.npy") for name in ("probs", "truth"))
    predictor = udcp.SetPredictor(loss, oracle="lac", alpha=0.1).calibrate(P[:1000], y[:1000])
    assert 0.85 < udcp.evaluate(predictor, P[1000:], y[1000:]).coverage < 0.95


def test_price_is_the_cheapest_on_its_rows(tickets: ModuleType, loss: udcp.Loss) -> None:
    P, y = tickets.rows()
    result = udcp.compare(loss, P[:1000], y[:1000], splits=1, oracles=["base", "lac", "penalized", "greedy", "price"])
    cost = {summary.oracle: summary.cost for summary in result.summaries()}
    assert cost["price"] < min(paid for oracle, paid in cost.items() if oracle != "price")


def test_prices_are_those_of_the_integer_programs(tickets: ModuleType, loss: udcp.Loss) -> None:
    P = tickets.rows()[0][:4]
    programs = udcp.make_oracle("ilp", loss, program="price", solver="HiGHS").scores(P)
    assert udcp.make_oracle("price", loss).scores(P) == pytest.approx(programs, rel=1e-6)
