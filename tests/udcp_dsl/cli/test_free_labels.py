"""Labels that cost nothing, or less, are warned of before the work, by every command that scores led by cost."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl as udcp

Udcp = Callable[..., Result]

_ROWS = np.random.default_rng(0).dirichlet([1, 1, 1, 1], 60)
_TRUTH = np.arange(60) % 4


@pytest.fixture
def rows(folder: Path) -> None:
    (folder / "gain.loss").write_text("labels { a, b, c, d }\nloss l = 0 - size\n")
    np.save("p.npy", _ROWS)
    np.save("y.npy", _TRUTH)


_SCORING = [
    "calibrate gain.loss --probs p.npy --truth y.npy -o s.json --oracle price",
    "order gain.loss --probs p.npy --row 0 --oracle greedy",
    "gap gain.loss --probs p.npy --sample 2 --oracle price",
    "compare gain.loss --probs p.npy --truth y.npy --oracle lac --oracle price --splits 1",
    "validate gain.loss --cases 1 --oracle base --oracle price",
]


@pytest.mark.parametrize("line", _SCORING)
def test_every_command_says_it_once_and_first(rows: None, udcp: Udcp, line: str) -> None:
    told = udcp(*line.split()).stderr
    assert told.startswith("gain.loss:2:10: warning[W601]: labels of negative cost: 'a', 'b', 'c' and 1 more;")
    assert told.count("W601") == 1
    data = json.loads(udcp(*line.split(), "--json").stdout)
    assert [x["code"] for x in data["diagnostics"]] == ["W601"]
    assert "W601" not in "".join(data["warnings"])


@pytest.mark.parametrize("line", [_SCORING[0].replace("price", "lac"), _SCORING[1].replace("greedy", "raps")])
def test_not_where_cost_has_no_say(rows: None, udcp: Udcp, line: str) -> None:
    assert "W601" not in udcp(*line.split()).stderr
    assert json.loads(udcp(*line.split(), "--json").stdout)["diagnostics"] == []


def test_in_python_calibrate_and_compare_warn_at_the_users_line() -> None:
    loss = udcp.loads("labels { a, b, c, d }  loss l = 0 - size")
    with pytest.warns(udcp.SpecWarning, match="W601") as caught:
        udcp.SetPredictor(loss, "price", alpha=0.2).calibrate(_ROWS, _TRUTH)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(udcp.SpecWarning, match="W601") as caught:
        udcp.compare(loss, _ROWS, _TRUTH, oracles=["base", "price"], splits=2)
    assert sum("W601" in str(warning.message) for warning in caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", udcp.SpecWarning)
        udcp.SetPredictor(loss, "base", alpha=0.2).calibrate(_ROWS, _TRUTH)
        udcp.compare(loss, _ROWS, _TRUTH, oracles=["base", "lac"], splits=1)
        paid = udcp.loads("labels { a, b, c, d }  loss l = size")
        udcp.SetPredictor(paid, "price", alpha=0.2).calibrate(_ROWS, _TRUTH)
