"""What `udcp gap`, `udcp order` and `udcp check` say can be had in Python: the same numbers, as results."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import main

SPEC = """labels { a, b, c }
input km in [0, 100]
loss plain = size
loss far = size + 0.1 * km * any({c})
"""
P = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.34, 0.33, 0.33]])


@pytest.fixture
def spec(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(str(tmp_path))
    with open("s.loss", "w") as file:
        file.write(SPEC)
    np.save("p.npy", P)
    return "s.loss"


def said(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_gap(spec: str) -> None:
    loss = udcp.load(spec, loss="plain")
    found = udcp.gap(loss, P, oracles=["base", "lac"], alpha=0.4)
    data = said(
        "gap", spec, "--loss", "plain", "--probs", "p.npy", "--oracle", "base", "--oracle", "lac", "--alpha", "0.4"
    )
    assert {**found.as_dict(), "ok": True, "diagnostics": [], "warnings": []} == data
    table = found.table()
    assert table["optimum"] == [2.0, 1.0, 2.0]
    assert table["lac"] == table["base"] == table["optimum"]
    assert found.proved.all()
    assert str(found).startswith("plain over 3 rows, sets of mass 0.6: the optimum costs 1.66667 on average")


def test_gap_refuses_an_oracle_without_an_order(spec: str) -> None:
    with pytest.raises(udcp.InputError, match="'penalized' has no order before it is calibrated"):
        udcp.gap(udcp.load(spec, loss="plain"), P, oracles=["penalized"])


def test_order(spec: str) -> None:
    oracle = udcp.make_oracle("price", udcp.load(spec))
    found = oracle.order(P[0], inputs={"km": 50})
    data = said("order", spec, "--probs", "p.npy", "--row", "0", "--input", "km=50")
    assert data["order"] == list(found.steps)
    assert [step["label"] for step in found.steps] == ["a", "b", "c"]
    assert [step["cost"] for step in found.steps] == [1.0, 2.0, 8.0]
    assert data["hull"] == found.as_dict()["hull"]
    assert found.table()["mass"] == [step["mass"] for step in found.steps]


def test_order_takes_one_row_and_its_inputs(spec: str) -> None:
    oracle = udcp.make_oracle("price", udcp.load(spec))
    with pytest.raises(udcp.InputError, match="an order is that of one row, not of 3"):
        oracle.order(P, inputs={"km": 50})
    with pytest.raises(udcp.InputError, match="km"):
        oracle.order(P[0])
    tuned = udcp.make_oracle("penalized", udcp.load(spec, loss="plain"))
    with pytest.raises(udcp.InputError, match="has no lambda before it is calibrated: give one, lam"):
        tuned.order(P[0])


def test_check(spec: str) -> None:
    found = udcp.applicable_oracles(udcp.load(spec, loss="plain"))
    data = said("check", spec, "--loss", "plain")
    assert data["oracles"] == found.as_dict()["oracles"]
    assert "the spec also has far: choose with loss=" in str(found)
    assert "loss.explain() says why" in str(found)
    assert "--" not in str(found).replace("---", "")
