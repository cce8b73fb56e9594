"""The unit of a loss is shown wherever costs are shown, and changes no number."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.report.page import finding

TEXT = "labels {{ cat, dog, wolf }}  costs care {{ wolf: 4, default: 1 }}  loss l{} = sum(care) + size"
PLAIN, IN_HOURS = (udcp.loads(TEXT.format(unit)) for unit in ("", " in hours"))


def rows(n: int = 300) -> tuple[np.ndarray, list[int]]:
    rng = np.random.default_rng(3)
    P = rng.dirichlet([1, 1, 1], n)
    return P, [int(rng.choice(3, p=p)) for p in P]


def test_it_is_a_word_or_a_string_and_changes_no_number() -> None:
    assert (PLAIN.unit, IN_HOURS.unit) == (None, "hours")
    assert udcp.loads(TEXT.format(' in "euro / day"')).unit == "euro / day"
    assert PLAIN(["cat", "wolf"]) == IN_HOURS(["cat", "wolf"])
    assert IN_HOURS.with_params().unit == "hours"


def test_each_loss_has_its_own() -> None:
    text = "labels { a, b }  loss bill in euro = 3 * size  loss triage in hours = size + bill"
    assert [udcp.loads(text, loss=name).unit for name in ("bill", "triage")] == ["euro", "hours"]


def test_a_saved_predictor_keeps_it(tmp_path: Path) -> None:
    P, y = rows()
    udcp.SetPredictor(IN_HOURS, "ratio", repair=None).calibrate(P, y).save(tmp_path / "p.json")
    loaded = udcp.SetPredictor.load(tmp_path / "p.json")
    sets = loaded.predict_set(P[:5])
    assert loaded.loss.unit == "hours"
    assert "cost in hours" in str(sets._repr_html_())
    found = udcp.evaluate(loaded, P, y)
    assert "mean cost in hours" in str(found)
    assert " hours" in repr(found)
    assert found.as_dict()["unit"] == "hours"


@pytest.mark.parametrize(("loss", "unit"), [(PLAIN, None), (IN_HOURS, "hours")])
def test_comparisons_and_plots(loss: udcp.Loss, unit: str | None) -> None:
    P, y = rows(900)
    found = udcp.compare(loss, P, y, oracles=["base", "ratio"], splits=2, repair=None)
    end = "" if unit is None else " in hours"
    assert found.summaries()[0].unit == unit
    assert (" in hours" in str(found)) == (unit is not None)
    assert (" hours" in finding(found, "l", found.alphas[0])) == (unit is not None)
    (axes,) = found.plot().axes
    assert axes.get_ylabel().startswith(f"mean cost{end}")
    sets = udcp.SetPredictor(loss, "ratio", repair=None).calibrate(P, y).predict_set(P)
    assert sets.plot().axes[1].get_xlabel() == f"cost{end}"


def test_commands(tmp_path: Path) -> None:
    spec = tmp_path / "t.loss"
    spec.write_text(TEXT.format(" in hours"))
    np.save(tmp_path / "p.npy", rows()[0])
    run = partial(CliRunner().invoke, main)
    assert "cost in hours" in run(["eval", str(spec), "cat"]).stdout
    assert '"unit": "hours"' in run(["eval", str(spec), "cat", "--json"]).stdout
    assert "costs in hours" in run(["check", str(spec)]).stdout
    order = run(
        ["order", str(spec), "--probs", str(tmp_path / "p.npy"), "--row", "0", "--plot", str(tmp_path / "h.svg")]
    )
    assert "cost in hours" in order.stdout
    assert "hours" in (tmp_path / "h.svg").read_text()
    assert "loss l in hours =" in run(["format", str(spec)]).stdout
