"""What a notebook shows: bars behind numbers, the verdict first, whether a set holds the truth; nothing endless."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.showing import Column, Description, Styled, Table
from udcp_dsl.showing.html import as_html

SPEC = "labels { cat, dog, wolf }  costs c { cat: 1, dog: 2, wolf: 9 }  loss care in hours = sum(c) + 0.1 * size"


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 400)
    return P, np.array([rng.choice(3, p=p) for p in P])


def cells(html: str) -> list[list[str]]:
    found = re.findall(r"<tr.*?</tr>", html, re.S)
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)] for row in found]


def test_facts_are_short_and_show_their_reasons() -> None:
    facts = udcp.load("specs/dermatology/triage.loss").facts
    assert len(repr(facts)) < 250
    assert repr(facts).startswith("Facts(proved: normalized, nonnegative, monotone; refuted: antitone,")
    _, *shown = cells(facts._repr_html_())
    assert [row[1].replace(" ", "_") for row in shown] == [name for name, _ in facts]
    assert [(row[0], row[2], row[3]) for row in shown] == [
        ({"proved": "✓", "refuted": "✗", "unknown": "?"}[fact.state], fact.state, fact.reason) for _, fact in facts
    ]


def test_a_predictor_says_what_it_guarantees_and_what_a_miss_is_worth(rows: tuple[Any, Any]) -> None:
    loss = udcp.loads(SPEC)
    made = udcp.SetPredictor(loss, "price", alpha=[0.1, 0.2], repair=None)
    assert "not calibrated: call calibrate(probs, y)" in made._repr_html_()
    made.calibrate(*rows)
    html = made._repr_html_()
    assert "covers the true label with probability at least 0.9;" in html
    assert f"at alpha 0.1 a missed true label is valued at {made.worth(0.1):.4g} hours" in html
    *_, head, first, second = cells(html)
    assert head == ["alpha", "rows", "threshold"]
    assert [first, second] == [[at, "400", f"{made.calibrated.thresholds(at):.10g}"] for at in ("0.1", "0.2")]
    assert "on the calibration rows (target 0.9)" in html
    by_class = udcp.SetPredictor(loss, "lac", alpha=0.2, conditional="class", repair=None).calibrate(*rows)
    assert "within each class" in by_class._repr_html_()
    few = udcp.SetPredictor(loss, "lac", alpha=0.1, repair=None).calibrate(rows[0][:5], rows[1][:5])
    assert "none: all labels" in few._repr_html_()


def test_sets_with_a_known_truth_say_whether_they_hold_it(rows: tuple[Any, Any]) -> None:
    P, y = rows
    predictor = udcp.SetPredictor(udcp.loads(SPEC), "lac", alpha=0.4, repair=None).calibrate(P[:200], y[:200])
    sets = udcp.evaluate(predictor, P[200:], y[200:]).sets
    head, *shown = cells(sets[5:30]._repr_html_())
    assert head[-1] == "truth"
    for row, labels, truth in zip(shown, sets[5:15], y[205:215], strict=True):
        name = predictor.loss.labels[truth]
        assert row[-1] == f"{'✓' if name in labels else '✗'} {name}"
    assert {row[-1][0] for row in shown} == {"✓", "✗"}
    assert "truth" not in predictor.predict_set(P)._repr_html_()


def test_bars_are_as_long_as_their_numbers() -> None:
    columns = (Column("name", 0), Column("cost", 1, ".1f", bar=True))
    html = as_html(Description(tables=(Table(columns, [("a", 4.0), ("b", 1.0), ("c", None), ("d", float("inf"))]),)))
    assert re.findall(r"transparent\) ([0-9.]+)%", html) == ["100.0", "25.0"]


def test_the_verdict_stands_above_the_tables_in_a_colour_of_its_own() -> None:
    table = Table((Column("x", 0),), [("in the table",)])
    html = as_html(Description("subject", tables=(table,), verdict=(Styled("it fails", "bad"),)))
    assert html.index("subject") < html.index("it fails") < html.index("in the table")
    assert re.search(r'<span class="bad" style="color: #[0-9a-f]{6}; font-weight: bold">it fails', html)


def test_plots_have_titles_and_units(rows: tuple[Any, Any]) -> None:
    pytest.importorskip("matplotlib")
    P, y = rows
    loss = udcp.loads(SPEC)
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.4).calibrate(P[:300], y[:300])
    evaluation = udcp.evaluate(predictor, P[300:], y[300:])
    comparison = udcp.compare(loss, P, y, oracles=["lac"], splits=1)
    sweep = udcp.sweep(udcp.loads(SPEC.replace("0.1 * size", "k * size  param k = 1")), P, y, param="k", values=[1, 2], oracles=["lac"], splits=1)  # fmt: skip  # noqa: E501
    plots = [evaluation.sets.plot(), evaluation.plot(), comparison.plot(), sweep.plot()]
    for plot in plots:
        assert len(plot.get_suptitle()) > 10
    for plot in (plots[0], plots[2], plots[3]):
        assert any("in hours" in axes.get_xlabel() + axes.get_ylabel() for axes in plot.axes)
