"""`with_params` and `sweep`: another value of a parameter is another loss, on the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.compile import sources

SPEC = """
labels from "pets.csv" column name
costs c from "pets.csv" column cost
param fear = 1 in [0, 9]
param each = 0.5
let dear = fear * any({ wolf })
loss l = each * size + sum(c) + dear
"""
RNG = np.random.default_rng(3)
P = RNG.dirichlet([1, 1, 1], 300)
Y = np.array([RNG.choice(3, p=p) for p in P])


@pytest.fixture
def loss(tmp_path: Path) -> udcp.Loss:
    (tmp_path / "pets.csv").write_text("name,cost\ncat,1\ndog,2\nwolf,3\n")
    (tmp_path / "l.loss").write_text(SPEC)
    return udcp.load(tmp_path / "l.loss")


def test_with_params_is_what_load_gives_and_reads_nothing(
    loss: udcp.Loss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = udcp.load(tmp_path / "l.loss", params={"fear": 4})
    for file in ("l.loss", "pets.csv"):
        (tmp_path / file).unlink()
    monkeypatch.setattr(sources, "read_csv", None)  # not even what was read is parsed again
    other = loss.with_params(fear=4)
    masks = np.array([[i >> y & 1 for y in range(3)] for i in range(8)], dtype=bool)
    np.testing.assert_array_equal(other.batch(masks), expected.batch(masks))
    assert dict(other.params) == {"fear": 4, "each": 0.5}
    assert other.interpret({"wolf"}) == other({"wolf"}) == 7.5
    assert loss({"wolf"}) == 4.5
    assert other.files == loss.files
    twice = other.with_params(each=0)
    assert dict(twice.params) == {"fear": 4, "each": 0}
    assert dict(loss.with_params().params) == dict(loss.params)
    assert str(other.facts.monotone) == str(expected.facts.monotone)


def test_with_params_refuses_what_load_refuses(loss: udcp.Loss) -> None:
    with pytest.raises(udcp.SpecError, match=r"fear = 11 is outside \[0, 9\]"):
        loss.with_params(fear=11)
    with pytest.raises(udcp.InputError, match="did you mean 'fear'"):
        loss.with_params(fea=1)
    with pytest.raises(udcp.InputError, match="is not a number"):
        loss.with_params(fear="1")  # type: ignore[arg-type]


def test_a_copy_and_a_saved_predictor_keep_the_value(loss: udcp.Loss, tmp_path: Path) -> None:
    other = loss.with_params(fear=4)
    predictor = udcp.SetPredictor(other, oracle="lac", alpha=0.2).calibrate(P, Y)
    predictor.save(tmp_path / "saved.json")
    assert udcp.SetPredictor.load(tmp_path / "saved.json").loss({"wolf"}) == other({"wolf"})


def test_a_sweep_is_a_comparison_for_each_value(loss: udcp.Loss) -> None:
    found = udcp.sweep(loss, P, Y, param="fear", values=[0, 5], oracles=["lac", "price"], splits=3, seed=1)
    alone = udcp.compare(loss.with_params(fear=5), P, Y, oracles=["lac", "price"], splits=3, seed=1)
    assert [s.cost_mean for v, s in found.summaries() if v == 5] == [s.cost_mean for s in alone.summaries()]
    table = found.table()
    assert table["fear"] == [0, 5, 0, 5]
    assert table["oracle"] == ["lac", "lac", "price", "price"]
    # `lac` does not look at the cost: the same sets, so the same coverage and size, whatever the parameter.
    assert table["coverage"][0] == table["coverage"][1]
    assert table["size"][0] == table["size"][1]
    assert list(found.to_pandas().columns) == list(table)
    assert "fear" in str(found)
    assert "<table" in found._repr_html_()
    assert found.as_dict()["rows"][0]["oracle"] == "lac"


def test_the_figure_has_the_numbers(loss: udcp.Loss) -> None:
    pytest.importorskip("matplotlib")
    found = udcp.sweep(loss, P, Y, param="fear", values=[0, 1, 5], oracles=["lac"], splits=2)
    cost, coverage = found.plot().axes
    line = cost.get_lines()[0]
    assert list(line.get_xdata()) == [0, 1, 5]
    assert list(line.get_ydata()) == found.table()["cost"]
    assert list(coverage.get_lines()[0].get_ydata()) == found.table()["coverage"]


@pytest.mark.parametrize(
    ("param", "values", "why"),
    [
        ("fea", [1], "did you mean 'fear'"),
        ("fear", [], "give a list"),
        ("fear", "12", "give a list"),
        ("fear", 1, "values is 1: give a list"),
        ("fear", [1, 1.0], "given twice"),
        ("fear", [1, 99], "outside"),
    ],
)
def test_what_a_sweep_refuses(loss: udcp.Loss, param: str, values: list[float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        udcp.sweep(loss, P, Y, param=param, values=values, oracles=["lac"])
