"""What results look like in a notebook and at a prompt: escaped, whole, short; as frames; as figures."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import InputError, PredictionSets, SetPredictor

pd = pytest.importorskip("pandas")

LABELS = ["<script>alert(1)</script>", "a & b", "c\x1b[31m", "d"]
QUOTED = [json.dumps(label) for label in LABELS]
LOSS = udcp.loads(
    f"# </code><script>alert(2)</script>\ncategory wild {{ {QUOTED[0]} }}  loss l = size + 5 * any(wild)",
    labels=LABELS, name="<i>pets</i>.loss",
)  # fmt: skip
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), 400)
Y = [LABELS[RNG.choice(4, p=p)] for p in P]
GROUPS = [f"<em>{i % 15}</em>" for i in range(200)]


# Made when they are asked for: kernels are compiled for them, which nobody should wait for who only collects tests.


@functools.cache
def predictor() -> SetPredictor:
    return SetPredictor(LOSS, "lac").calibrate(P[:200], Y[:200])


@functools.cache
def sets() -> PredictionSets:
    return predictor().predict_set(P[200:], ids=[f"<u>{i}</u>" for i in range(200)])


@functools.cache
def evaluation() -> udcp.Evaluation:
    return udcp.evaluate(predictor(), P[200:], Y[200:], groups=GROUPS)


@functools.cache
def comparison() -> udcp.Comparison:
    return udcp.compare(LOSS, P, Y, oracles=["base", "lac"], splits=2, repair=None)


class Elements(HTMLParser):
    """The tags of a fragment that is balanced, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "shown", [lambda: LOSS, sets, evaluation, comparison], ids=["loss", "sets", "evaluation", "comparison"]
)
def test_a_notebook_shows_it_escaped(shown: Callable[[], Any]) -> None:
    found = Elements(shown()._repr_html_())
    assert not {"script", "i", "u", "em", "img"} & set(found.tags)
    assert "table" in found.tags
    assert "\x1b" not in found.text


def test_what_a_notebook_shows() -> None:
    loss = Elements(LOSS._repr_html_()).text
    for part in ("5 * any(wild)", "4 labels", "monotone", "<i>pets</i>.loss", "alert(2)"):
        assert part in loss
    some = Elements(sets()._repr_html_())
    assert some.tags.count("tr") == 1 + 10
    assert "200 sets of 4 labels" in some.text
    assert "and 190 more" in some.text
    assert "<u>9</u>" in some.text
    assert "<u>10</u>" not in some.text
    many = udcp.loads("labels 0..99  loss l = size")
    long = Elements(PredictionSets(many, np.ones((1, 100), bool))._repr_html_()).text
    assert "8 and 91 more" in long
    assert Elements(sets()[:0]._repr_html_()).tags.count("tr") <= 1
    worst = min(evaluation().by_group, key=lambda s: s.coverage)
    measured = Elements(evaluation()._repr_html_()).text
    for part in (f"{evaluation().coverage:.4f}", worst.name, "by group, the 10 of 15 that are covered least"):
        assert part in measured
    compared = Elements(comparison()._repr_html_()).text
    for summary in comparison().summaries():
        assert f"{summary.cost_mean:.5g}" in compared
    assert "400 rows, 4 labels" in compared


def test_an_evaluation_at_a_prompt_has_ten_lines_at_most() -> None:
    lines = repr(evaluation()).split("\n")
    assert 6 <= len(lines) <= 10
    assert max(map(len, lines)) <= 100
    assert lines[0] == "Evaluation: l by lac, alpha 0.1, 200 rows"
    worst = min(evaluation().by_group, key=lambda s: s.coverage)
    for part in (f"{evaluation().coverage:.4f}", f"{evaluation().mean_cost:.4g}", f"{worst.coverage:.4f}", worst.name):
        assert part in repr(evaluation())
    assert "\x1b" not in repr(evaluation())
    assert repr(udcp.evaluate(predictor(), P[:1], Y[:1])).startswith("Evaluation: l by lac, alpha 0.1, 1 row")
    assert repr(comparison().runs[0].evaluation).startswith("Evaluation: l by base, alpha 0.1, 100 rows")


def test_as_frames() -> None:
    frame = evaluation().to_pandas()
    assert frame.columns.tolist() == [
        "by", "stratum", "n", "covered", "coverage", "low", "high", "mean_size", "mean_cost", "mean_true_probability",
    ]  # fmt: skip
    whole = frame.iloc[0]
    assert (whole["by"], whole["stratum"], whole["n"], whole["coverage"]) == ("all", "all", 200, evaluation().coverage)
    assert whole["mean_true_probability"] == pytest.approx(
        np.mean([p[LABELS.index(y)] for p, y in zip(P[200:], Y[200:], strict=True)])
    )
    for by, strata in (
        ("size", evaluation().by_size),
        ("group", evaluation().by_group),
        ("class", evaluation().by_class),
    ):
        part = frame[frame["by"] == by]
        assert part["stratum"].tolist() == [s.name for s in strata]
        assert part["low"].tolist() == [s.interval[0] for s in strata]
        assert part["n"].sum() == 200
    runs = comparison().to_pandas()
    assert {name: column.tolist() for name, column in runs[["oracle", "mean_cost"]].items()} == {
        name: comparison().table()[name] for name in ("oracle", "mean_cost")
    }


@pytest.mark.parametrize("shown", [sets, evaluation, comparison])
def test_as_figures(shown: Callable[[], Any], tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    drawn = shown().plot()
    assert isinstance(drawn, figure.Figure)
    assert drawn._repr_png_().startswith(b"\x89PNG")  # what a notebook asks for
    drawn.savefig(tmp_path / "figure.svg")
    assert len(drawn.axes) >= 1


def test_what_figures_show() -> None:
    pytest.importorskip("matplotlib")
    sizes, costs = sets().plot().axes
    heights = [bar.get_height() for bar in sizes.patches]
    assert sum(heights) == len(sets())
    assert heights[1] == np.count_nonzero(sets().sizes == 1)
    assert sum(bar.get_height() for bar in costs.patches) == len(sets())
    names = [text.get_text() for text in evaluation().plot().axes[0].get_yticklabels()]
    assert "size 1" in names
    assert "by top p: hardest" in names
    assert any(name.startswith("group <em>") for name in names)
    assert "cost" in comparison().plot().axes[0].get_ylabel()
    with pytest.raises(InputError, match="there is no loss 'm'"):
        comparison().plot(loss="m")
    with pytest.raises(InputError, match="there are no sets"):
        sets()[:0].plot()


@pytest.mark.usefixtures("undrawn")
def test_a_comparison_writes_its_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    comparison().report(tmp_path / "page.html", title="Pets", data="our pets")
    assert "<title>Pets: our pets</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("shown", [sets, evaluation, comparison])
def test_what_is_missing_is_named(shown: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = shown()
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match="to_pandas needs pandas: pip install pandas"):
        made.to_pandas()
    with pytest.raises(InputError, match=r"pip install 'udcp_dsl\[report\]'"):
        made.plot()
