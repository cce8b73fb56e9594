"""The page: whole, well-formed, safe with any text, fetching nothing, the same each time."""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import InputError, __version__
from udcp_dsl.measure.comparison import Comparison
from udcp_dsl.predict.stages.repair import RepairStage
from udcp_dsl.report import drawing, write_report
from udcp_dsl.report import page as page_module
from udcp_dsl.report.figures import figures, first_figures
from udcp_dsl.report.look import number, shown
from udcp_dsl.report.page import finding

FIXTURES = ("ordinary", "hostile", "smallest")
VOID = {"meta", "link", "br", "img", "input"}
DAY = datetime.date(2026, 11, 16)
# Of matplotlib: some that the report sets, and one that it leaves at the default.
USERS: dict[str, Any] = {"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": None, "xtick.major.size": 20.0}


class Page(HTMLParser):
    """Elements with their attributes and texts, checked for balance."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.elements)


read = functools.cache(Page)


@pytest.mark.parametrize("name", FIXTURES)
def test_page_is_whole_and_accessible(name: str, pages: dict[str, str], request: pytest.FixtureRequest) -> None:
    page = read(pages[name])
    comparison: Comparison = request.getfixturevalue(name)
    assert page.count("h1") == 1
    assert page.texts["h1"] == ["<i>A</i> title"]
    drawn = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("class") != "swatch"]
    assert page.count("figure") == len(drawn) == page.count("figcaption") == len(figures(comparison)) >= 5
    assert page.count("table") == page.count("caption")
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert max(ids.values()) == 1
    for tag, attributes in page.elements:
        if tag == "svg" and attributes.get("class") != "swatch":
            assert attributes["role"] == "img"
            assert attributes["aria-label"].startswith(("Alpha", "Mean cost", "Reliability"))
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        if (target := attributes.get("href", "")).startswith("#"):
            assert target[1:] in ids
        for used in re.findall(r"url\(#(.*?)\)", attributes.get("clip-path", "") + attributes.get("style", "")):
            assert used in ids
    assert page.elements[0] == ("html", {"lang": "en"})
    assert "What this does not show" in page.texts["h2"]


def test_reliability_stands_beside_what_is_said_of_the_repair(
    ordinary: Comparison, pages: dict[str, str], smallest: Comparison
) -> None:
    (stage,) = ordinary.repairs
    assert isinstance(stage, RepairStage)
    found = stage.repair.reliability
    assert found is not None
    section = pages["ordinary"].split('<section aria-labelledby="repair">')[1].split("</section>")[0]
    page = read(section)
    assert page.texts["p"] == [f"{ordinary.about_p}."]
    assert page.texts["h3"] == [found.finding]
    assert page.count("svg") == 1
    assert f"p as it is: {found.before.error:.3f}, by chance alone {found.before.chance:.3f}" in section
    assert smallest.repairs == ()
    assert 'id="repair"' not in pages["smallest"]
    assert "#repair" not in pages["smallest"]


@pytest.mark.parametrize("name", FIXTURES)
def test_nothing_is_fetched(name: str, pages: dict[str, str]) -> None:
    page = read(pages[name])
    for tag, attributes in page.elements:
        assert not attributes.keys() & {"src", "srcset", "action", "data", "poster", "background", "xlink:href"}
        assert attributes.get("href", "#").startswith(("#", "data:,"))
        assert not any(attribute.startswith("on") for attribute in attributes)
        assert tag not in ("iframe", "object", "embed", "base", "form", "img")
        assert "url(" not in attributes.get("style", "").replace("url(#", "")
    (style,) = page.texts["style"]
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'")
    if name != "hostile":  # whose spec has an address in a comment
        assert "://" not in pages[name]


@pytest.mark.parametrize("name", FIXTURES)
def test_only_our_script_may_run(name: str, pages: dict[str, str]) -> None:
    page = read(pages[name])
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "instances"}, {}]
    digest = base64.b64encode(hashlib.sha256(page.texts["script"][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in pages[name]


def test_hostile_names_are_shown_as_they_are(pages: dict[str, str], hostile: Comparison) -> None:
    page = read(pages["hostile"])
    data = json.loads(page.texts["script"][0])
    (loss,) = data["losses"]
    labels = hostile.losses[0].labels
    assert sorted(loss["labels"]) == sorted(shown(label) for label in labels)
    assert not set("<>&") & set(page.texts["script"][0])
    assert "alert(3)" in page.texts["pre"][0]
    assert any("<script>alert(1)" in text for text in page.texts["text"])  # of a figure
    assert any("日本語" in text for text in page.texts["text"])
    assert {node for node, *_ in loss["tree"]["nodes"]} == {"<b>bold</b>", "other"}
    # The sets come back as they were.
    for plain, example in zip(loss["examples"], hostile.examples["l"], strict=True):
        assert [[loss["labels"][i] for i in held] for held in plain["sets"]] == [
            [shown(label) for label in example.sets[oracle]] for oracle in loss["oracles"]
        ]
        assert loss["labels"][plain["truth"]] == shown(example.truth)
        assert plain["costs"] == pytest.approx([sum(paid) for paid in plain["terms"]])


def test_names_that_do_not_print_are_escaped() -> None:
    assert shown("a\u202eb\nc") == r"'a\u202eb\nc'"
    assert shown("\ud800").isascii()  # half of a character, which no file can hold
    persian = "می\u200cخواهم"  # noqa: RUF001  # whose joiner does not print, and belongs there
    assert shown(persian) == persian


def test_the_same_bytes_whatever_the_users_settings(hostile: Comparison, pictures: dict[str, list[str]]) -> None:
    import matplotlib

    prefixes = [*(f"first-{i}-" for i in range(3)), *(f"f0-0-{i}-" for i in range(len(pictures["hostile"])))]
    with matplotlib.rc_context(USERS):
        for i, figure in list(enumerate(figures(hostile)))[::4]:
            assert drawing.inline_svg(figure, prefixes[i]) == pictures["hostile"][i], figure.name
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.usefixtures("undrawn")
def test_the_same_bytes_again(hostile: Comparison, origin: dict[str, Any], tmp_path: Path) -> None:
    for name in ("once", "again"):
        write_report(tmp_path / name, hostile, **origin)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "once").read_bytes()


@pytest.mark.slow
def test_the_same_page_whatever_the_users_settings(
    hostile: Comparison, pages: dict[str, str], origin: dict[str, Any], tmp_path: Path
) -> None:
    import matplotlib

    with matplotlib.rc_context(USERS):
        write_report(tmp_path / "again.html", hostile, **origin)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == pages["hostile"]


def test_the_table_has_the_summaries_cheapest_first(pages: dict[str, str], ordinary: Comparison) -> None:
    for summary in ordinary.summaries():
        assert f"<td>{number(summary.cost_mean)} " in pages["ordinary"]
        assert f"<td>{summary.coverage:.3f} " in pages["ordinary"]
    head = [text for text in read(pages["ordinary"]).texts["th"] if text.startswith(("lac", "penalized", "price"))]
    first = sorted((s for s in ordinary.summaries()[:3]), key=lambda s: s.cost_mean)
    assert [text.split()[0] for text in head[:3]] == [s.oracle for s in first]
    assert "lambda" in next(text for text in head if text.startswith("penalized"))
    assert "needs a separable loss" in pages["ordinary"]  # why ratio is left out
    assert "with weight = 2" in pages["ordinary"]
    assert "folder/" not in pages["ordinary"]


def test_without_matplotlib(ordinary: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'udcp_dsl\[report\]'"):
        write_report(tmp_path / "out.html", ordinary)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("undrawn")
def test_nothing_partial_is_written(smallest: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.html"
    file.write_text("before")

    def fail(*_: object) -> str:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(page_module, "_footer", fail)
        with pytest.raises(RuntimeError):
            write_report(file, smallest)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
    with pytest.raises(InputError, match="cannot be written"):
        write_report(tmp_path / "absent" / "out.html", smallest)


def test_no_examples_no_browser(smallest: Comparison, draw_only: Callable[..., None]) -> None:
    draw_only("headline", "cost-by-coverage")
    page = Page(page_module.page(replace(smallest, examples={}), "t", page_module.Origin(None, None, DAY)))
    assert page.count("script") == 0
    assert "Instances" not in page.texts["h2"]


# What is at its head


def test_the_title_says_data_command_day_and_version(pages: dict[str, str]) -> None:
    page = read(pages["ordinary"])
    assert page.texts["title"][0] == "<i>A</i> title: rows & <b>rows</b>"
    header = page.texts["header"][0]
    for part in ("rows & <b>rows</b>", "udcp compare '<u>.loss'", "2026-11-16", f"udcp_dsl {__version__}"):
        assert part in header
    assert {"datetime": "2026-11-16"} in [attributes for tag, attributes in page.elements if tag == "time"]


@pytest.mark.usefixtures("undrawn")
def test_what_is_not_known_is_left_out(smallest: Comparison, tmp_path: Path) -> None:
    write_report(tmp_path / "page.html", smallest)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.texts["title"][0] == "Prediction sets compared"
    assert str(datetime.date.today()) in page.texts["header"][0]
    assert "None" not in page.texts["header"][0]


def test_three_figures_come_first(pages: dict[str, str], ordinary: Comparison) -> None:
    head = pages["ordinary"].partition("</header>")[0]
    assert [figure.title for figure in first_figures(ordinary)] == re.findall("<figure><h2>(.*?)</h2>", head)
    assert len(first_figures(ordinary)) == 3
    for summary in ordinary.summaries():
        if summary.alpha == ordinary.alphas[0]:
            assert f">{number(summary.cost_mean)}</text>" in head


def test_one_kind_of_mean_in_table_sentences_and_figures(ordinary: Comparison, draw_only: Callable[..., None]) -> None:
    """Splits whose means and medians differ: one and the same number is shown for an oracle, wherever it is."""
    draw_only("headline", "cost-by-term")
    first = with_costs(ordinary, {"price": [1, 1, 7], "lac": [4, 4, 10], "penalized": [5, 5, 11]})
    runs = tuple(
        replace(r, evaluation=replace(r.evaluation, cost_by_term={"size": r.evaluation.mean_cost})) for r in first.runs
    )
    one = replace(first, runs=runs, names=("touched",), losses=ordinary.losses[:1], alphas=ordinary.alphas[:1])
    text = page_module.page(one, "t", page_module.Origin(None, None, DAY))
    assert "price costs 50 % less than the next cheapest, lac (3 against 6)" in text
    shown_in_table = [cell for cell in Page(text).texts["td"] if cell.startswith(("3 ", "6 ", "7 "))]
    assert len(shown_in_table) == 3
    figures_of_costs = [part for part in text.split("<figure>") if "first-0-" in part or "is paid for" in part]
    assert len(figures_of_costs) == 2
    for drawn in figures_of_costs:
        for mean in ("3", "6", "7"):
            assert f">{mean}</text>" in drawn


# How it looks


def test_it_prints_in_colour(pages: dict[str, str]) -> None:
    (style,) = read(pages["ordinary"]).texts["style"]
    assert re.search(r":root \{[^}]*[ ;]print-color-adjust: exact;", style)


def test_price_stands_first_among_the_oracles_of_an_instance(pages: dict[str, str], ordinary: Comparison) -> None:
    data = json.loads(read(pages["ordinary"]).texts["script"][0])
    for loss in data["losses"]:
        assert loss["oracles"][0] == "price"
        costs = {s.oracle: s.cost_mean for s in ordinary.summaries() if s.loss == loss["name"]}
        assert len(loss["oracles"]) == len(costs)


def test_labels_go_by_the_names_for_readers(ordinary: Comparison, draw_only: Callable[..., None]) -> None:
    draw_only("worst-classes")
    names = {str(i): f"digit {i}" for i in range(8)}
    runs = tuple(run for run in ordinary.runs if (run.loss, run.alpha) == ("touched", Fraction(1, 10)))
    named = replace(ordinary, runs=runs, label_names=names)
    page = Page(page_module.page(named, "t", page_module.Origin(None, None, DAY)))
    for loss in json.loads(page.texts["script"][0])["losses"]:
        assert set(loss["labels"]) == set(names.values())
    (worst,) = [text for text in page.texts["figure"] if text.startswith("The classes covered least")][:1]
    assert "digit 3" in worst


# The finding


def with_costs(comparison: Comparison, costs: dict[str, list[float]], coverage: float = 0.91) -> Comparison:
    """The first loss and level, with these mean costs on the splits."""
    runs = tuple(
        replace(run, evaluation=replace(run.evaluation, mean_cost=costs[run.oracle][run.split], coverage=coverage))
        for run in comparison.runs
        if run.loss == "touched" and run.alpha == Fraction(1, 10) and run.oracle in costs
    )
    return replace(comparison, runs=runs)


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (
            {"price": [1, 2, 3], "lac": [2, 4, 6]},
            "price costs 50 % less than the next cheapest, lac (2 against 4), and is cheaper on 3 of 3 splits",
        ),
        (
            {"price": [1, 2, 3], "lac": [0.9, 2.1, 9]},
            "price costs 50 % less than the next cheapest, lac (2 against 4), but is cheaper on only 2 of 3 splits",
        ),
        ({"price": [1, 2, 3], "lac": [3, 2, 1]}, "lac and price cost the same, 2"),
        ({"price": [-1, -1, -1], "lac": [1, 1, 1]}, "price costs 2 less than the next cheapest, lac (-1 against 1)"),
        ({"lac": [1, 1, 1]}, "lac alone was measured: cost 1"),
    ],
)
def test_finding(costs: dict[str, list[float]], said: str, ordinary: Comparison) -> None:
    text = finding(with_costs(ordinary, costs), "touched", Fraction(1, 10))
    assert text.startswith(f"At alpha 0.1 {said}")
    assert re.search(r"coverage 0\.910 \(target: 0\.9\); worst class '\d' 0\.\d{3}\.$", text)


def test_finding_of_a_worth_of_a_miss_ranks_by_cost_with_misses() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.5] * 4, 400)
    y = [int(rng.choice(4, p=p)) for p in P]
    loss = udcp.loads("labels {a, b, c, d}  category far {c, d}  loss l in hours = size + 2 * any(far)")
    found = udcp.compare(loss, P, y, miss=15, oracles=["lac", "price"], splits=3, repair=None)
    best, other = sorted(found.summaries(), key=lambda summary: summary.total or 0.0)
    text = finding(found, "l", found.alphas[0])
    assert text.startswith(f"With a miss worth 15 hours, {best.oracle} costs ")
    assert f"({best.total:.4g} against {other.total:.4g} hours, misses included)" in text
    assert f"coverage {best.coverage:.3f} (alpha found: {best.alpha_found:.3f})" in text
    assert "0.5" not in text


def test_finding_says_when_coverage_is_missed(ordinary: Comparison) -> None:
    text = finding(
        with_costs(ordinary, {"price": [1, 1, 1], "lac": [2, 2, 2]}, coverage=0.8), "touched", Fraction(1, 10)
    )
    assert "coverage 0.800 (target: 0.9), too low; worst class '" in text
