"""Inputs per row in the studio: sliders for the chosen set, and rows whose inputs are theirs or drawn."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.rows import rows_of
from udcp_dsl.studio.fitting import fit, sets_of
from udcp_dsl.studio.instances import generated, own
from udcp_dsl.studio.state import State, changed
from udcp_dsl.studio.views.chosen_set import set_data
from udcp_dsl.studio.views.overall import change
from udcp_dsl.studio.views.row import row_data

TEXT = """labels { gp, nurse, ward }
input km in [0, 200]
input unread in [3, 4]
costs fee per row in [10, 50]
loss visit = sum(fee) + 0.5 * km * any({ gp, nurse })
"""


def spec() -> udcp.Loss:
    return udcp.loads(TEXT)


def test_a_set_costs_what_the_sliders_say() -> None:
    loss, fees = spec(), {"gp": 20.0, "nurse": 30.0, "ward": 40.0}
    found = set_data(loss, ["gp"])
    assert [(x["name"], x["value"]) for x in found["inputs"]] == [("km", 100.0), ("fee", None)]
    assert found["total"] == 20 + 50
    moved = set_data(loss, ["gp"], {"km": 12.0})
    assert moved["total"] == loss({"gp"}, inputs={"km": 12, "fee": fees}) == 26
    assert moved["adds"][1] == 30
    assert dict(moved["terms"])["0.5 * km * any({ gp, nurse })"] == 6
    assert set_data(loss, ["gp"], {"km": 1e9})["total"] == 120  # the range has become smaller since
    assert set_data(udcp.loads("labels { a, b }  loss l = size"), ["a"], {"km": 1.0})["inputs"] == []


def test_a_slider_changes_the_state() -> None:
    state = State(None, TEXT)  # type: ignore[arg-type]
    assert changed(state, {"input": ["km", 12]}).inputs == {"km": 12.0}
    for wrong in ("km", ["km"], ["km", "far"], ["km", float("nan")], [3, 3], ["km", True]):
        with pytest.raises(InputError):
            changed(state, {"input": wrong})


def test_generated_rows_have_inputs_within_their_ranges() -> None:
    loss = spec()
    rows = generated(loss).shown
    assert rows.inputs is not None
    assert set(rows.inputs) == {"km", "unread", "fee"}
    assert rows.inputs["fee"].shape == (len(rows), 3)
    assert 3 <= rows.inputs["unread"].min() <= rows.inputs["unread"].max() <= 4


def test_own_rows_keep_their_inputs_and_say_which_are_drawn() -> None:
    loss, rng = spec(), np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 60)
    inputs = {"km": np.full(60, 7.0), "fee": np.full((60, 3), 11.0)}
    rows = rows_of(P, loss.labels, y=np.arange(60) % 3, loss=loss, inputs=inputs)
    found = own(rows, "60 rows of mine")(loss)
    assert found.about == "60 rows of mine"
    assert found.shown.inputs is not None
    assert (found.shown.inputs["km"] == 7).all()
    bare = rows_of(P, loss.labels, y=np.arange(60) % 3)
    assert own(bare, "60 rows")(loss).about == "60 rows, with inputs that are drawn: fee, km"


@pytest.mark.parametrize("oracle", ["lac", "price"])
def test_a_row_is_shown_by_its_own_loss(oracle: str) -> None:
    from fractions import Fraction

    loss = spec()
    instances = generated(loss)
    fitted = fit(loss, oracle, Fraction(1, 5), instances, lambda *a, **k: None)
    p = instances.shown.P[3].astype(float)
    found = row_data({oracle: fitted}, instances, 3, p, None, False)
    assert instances.shown.inputs is not None
    row = {name: instances.shown.inputs[name][3] for name in loss.inputs}
    mask = fitted.evaluation.sets.mask[3]
    assert found["sets"][0]["members"] == np.flatnonzero(mask).tolist()
    assert found["sets"][0]["cost"] == pytest.approx(loss(mask, inputs=row))
    assert found["inputs"]["km"] == row["km"]
    assert (found["hull"] is not None) == (oracle == "price")
    _, scores = sets_of(fitted, p, instances.shown.inputs[[3, 3]])
    assert ((scores <= fitted.tau) == mask).all()
    assert change(fitted, fitted, instances)["changed"] == 0


def test_a_table_that_is_dropped_on_the_page_brings_its_inputs() -> None:
    from udcp_dsl.studio.instances import load_rows

    class Shown:
        loss = spec()
        given: Any = None

        def use_rows(self, supply: Any) -> None:
            self.given = supply

    rng, out = np.random.default_rng(0), io.StringIO()
    P = rng.dirichlet(np.ones(3), 40)
    out.write("gp,nurse,ward,truth,km,unread,fee.gp,fee.nurse,fee.ward\n")
    for i, p in enumerate(P):
        out.write(
            f"{p[0]!r},{p[1]!r},{p[2]!r},{('gp', 'nurse', 'ward')[i % 3]},{i},3.5,{10 + i},20,30\n".replace(
                "np.float64(", ""
            ).replace(")", "")
        )
    content = base64.b64encode(out.getvalue().encode()).decode()
    studio = Shown()
    load_rows(studio, {"probs": {"name": "rows.csv", "content": content}, "truth": {"column": "truth"}})  # type: ignore[arg-type]
    found = studio.given(studio.loss)
    km = np.concatenate([found.calibration.inputs["km"], found.shown.inputs["km"]])
    assert sorted(km.tolist()) == list(range(40))
