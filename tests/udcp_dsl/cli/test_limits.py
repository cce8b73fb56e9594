"""Limits on the command line: said by every command that shows a predictor, and refused where they cannot be held."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Udcp = Callable[..., Result]
SPEC = """labels { a, b, c, d, e, f, g, h }
category C { b, e, g }
limit slots: any(C) <= 0.45
loss l in hours = size + 0.5 * any(C)
"""
CALIBRATE = ("calibrate", "l.loss", "--probs", "p.npy", "--truth", "y.npy", "--repair", "none", "-o", "l.json")
FRESH = ("--probs", "p2.npy", "--truth", "y2.npy")


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    Path("l.loss").write_text(SPEC)
    for name, seed in (("", 0), ("2", 1)):
        rng = np.random.default_rng(seed)
        q = np.exp(3 * rng.normal(size=(900, 8)))
        P = q / q.sum(axis=1, keepdims=True)
        np.save(f"p{name}.npy", P)
        np.save(f"y{name}.npy", np.array(list("abcdefgh"))[(P.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)])


def said(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_calibrate_show_and_evaluate_say_what_it_is_worth(udcp: Udcp) -> None:
    told = said(udcp(*CALIBRATE))
    assert "600 for thresholds, 300 for the multipliers" in told
    assert "limit slots: mean " in told  # on the rows of the thresholds
    data = json.loads(udcp("show", "l.json", "--json").stdout)
    (limit,) = data["limits"]["0.1"]["limits"]
    worth = f"one more in a hundred rows is worth {limit['multiplier']:.3g} hours"
    assert limit["multiplier"] > 0
    for text in (told, said(udcp("show", "l.json")), said(udcp("evaluate", "l.json", *FRESH))):
        assert worth in text
        assert "rows whose true label counts against the limit: coverage" in text
    assert "without limits)" in said(udcp("show", "l.json"))
    (found,) = json.loads(udcp("evaluate", "l.json", *FRESH, "--json").stdout)["evaluations"]
    (measured,) = found["limits"]
    assert measured["at_most"] == 0.45
    assert measured["interval"][0] < measured["mean"] < measured["interval"][1]


def test_an_upper_bound_with_confidence(udcp: Udcp) -> None:
    Path("l.loss").write_text(SPEC.replace("0.45", "0.55"))
    told = said(udcp(*CALIBRATE, "--alpha", "0.1", "--confidence", "0.9"))
    assert "upper bound" in told
    assert "with the requested confidence" in told


def test_out_of_reach_is_an_error_and_nothing_is_written(udcp: Udcp) -> None:
    Path("l.loss").write_text(SPEC.replace("0.45", "0.05"))
    result = udcp(*CALIBRATE)
    assert result.exit_code == 2
    assert "the smallest reachable mean of any(C) is 0." in " ".join(result.stderr.split())
    assert not Path("l.json").exists()


def test_other_oracles_say_that_they_only_report(udcp: Udcp) -> None:
    result = udcp(*CALIBRATE, "--oracle", "lac")
    assert "warning: limits of the spec are reported, not enforced, by 'lac': use price" in result.stderr
    assert "limit slots: mean 0." in said(result)
    assert "limits of the spec are reported, not enforced, by 'lac': use price" in said(udcp("show", "l.json"))


def test_compare_and_its_report(udcp: Udcp) -> None:
    pytest.importorskip("matplotlib")
    rows = ("--probs", "p.npy", "--truth", "y.npy", "--repair", "none", "--oracle", "price", "--oracle", "lac")
    told = said(udcp("compare", "l.loss", *rows, "--splits", "2", "--report", "l.html"))
    assert "limit slots, any(C) <= 0.45: price 0." in told
    assert "above the limit, which they only report: lac" in told
    assert "price, limit slots: one more in a hundred rows is worth" in told
    assert "coverage of rows whose true label counts against slots: price 0." in told
    assert "above the limit, which they only report: lac" in Path("l.html").read_text(encoding="utf-8")
    data = json.loads(udcp("compare", "l.loss", *rows, "--splits", "2", "--json").stdout)
    by_price, by_lac = data["summaries"]
    assert by_price["limits"][0]["mean"] < by_lac["limits"][0]["mean"]
    assert by_lac["limits"][0]["multiplier"] is None
