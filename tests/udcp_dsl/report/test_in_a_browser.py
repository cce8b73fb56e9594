"""The page in headless Chromium: it renders in light and dark, whole; its script runs; no request leaves it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check.run import validate
from udcp_dsl.measure.comparison import Comparison
from udcp_dsl.report import write_report
from udcp_dsl.report.page import verdict_page

pytestmark = pytest.mark.slow
FIXTURES = ("ordinary", "hostile", "smallest", "wide")
SCHEMES = {"light": "1", "dark": "0"}
# Elements that stand out of the page, texts that stand out of their figure, tables with columns out of sight, rows of
# the grid that are not filled, where the table of an instance begins before and after scrolling: told to the frame.
MEASURE = """<script>addEventListener("load", () => {
  const inside = (a, b) =>
    a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const box = (e) => e.getBoundingClientRect();
  const shown = (query) => [...document.querySelectorAll(query)].filter((e) => box(e).width > 0);
  const out = (e) => box(e).right > innerWidth + 1 || box(e).left < -1;
  const style = getComputedStyle(document.body);
  const holes = shown(".figures").filter((grid) => {
    const last = box(grid.lastElementChild), whole = box(grid);
    return Math.abs(last.right - whole.right) > 1;
  });
  const table = document.querySelector(".instance .scroll");
  const corner = () => [box(table.querySelector("thead th")).top - box(table).top,
    ...[...table.querySelectorAll("tbody tr > th:first-child")].map((th) => box(th).left - box(table).left)];
  const oracle = table.querySelector("thead th"), edge = table.clientWidth + box(table).left;
  const first = { name: oracle.textContent, inside: box(oracle).right <= edge };
  const before = corner();
  table.scrollTo(10000, 10000);
  const sticky = { before, after: corner(), down: table.scrollTop, across: table.scrollLeft };
  table.scrollTo(0, 0);
  parent.postMessage(JSON.stringify({
    width: innerWidth,
    wide: document.scrollingElement.scrollWidth,
    cut: shown("body *").filter((e) => !e.closest(".scroll, pre, svg *") && out(e)).map((e) => e.outerHTML),
    texts: shown("svg text").filter((e) => !inside(box(e), box(e.ownerSVGElement))).map((e) => e.textContent),
    hidden: shown(".scroll").filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML),
    holes: holes.length, sticky, first,
    costs: shown("section .scroll thead th").filter((e) => e.textContent == "cost").map((e) => box(e).right),
    printed: getComputedStyle(document.querySelector(".swatch")).printColorAdjust,
    page: style.backgroundColor,
    ink: style.color,
  }), "*");
});</script>"""
FRAME = """<!DOCTYPE html><title>frame</title><body>
<iframe src="{file}" style="border:0;width:{width}px;height:900px"></iframe>
<script>addEventListener("message", (m) => {{ document.body.dataset.found = m.data; }});</script></body>"""


@pytest.fixture(scope="module")
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    comparison: Comparison = request.getfixturevalue(request.param)
    file = tmp_path_factory.mktemp("page") / "page.html"
    write_report(file, comparison)
    return file


each = pytest.mark.parametrize("written", FIXTURES, indirect=True)


@each
def test_nothing_is_cut_off_in_light_and_dark(written: Path, chromium: Callable[..., str]) -> None:
    # In a frame, as windows are never as narrow as telephones; without the policy, which forbids the measuring script.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", written.read_text(encoding="utf-8"))
    measured = written.with_name("measured.html")
    measured.write_text(
        text.replace("</body>", f"{MEASURE}</body>").replace("<details>", "<details open>"), encoding="utf-8"
    )
    shades, scrolled = {}, set()
    for width in (1400, 390):
        frame = written.with_name("frame.html")
        frame.write_text(FRAME.format(file=measured.as_uri(), width=width), encoding="utf-8")
        for scheme, value in SCHEMES.items():
            flags = (f"--blink-settings=preferredColorScheme={value}", "--virtual-time-budget=5000", "--dump-dom")
            dom = chromium(frame, *flags)
            (data,) = re.findall(r'data-found="(.*?)"', dom)
            found = json.loads(unescape(data))
            assert found["width"] == width
            assert found["wide"] <= width
            assert found["cut"] == []
            assert found["texts"] == []
            assert found["holes"] == 0
            assert found["printed"] == "exact"
            assert found["first"]["inside"]
            if "an oracle of our own" not in text:
                assert max(found["costs"]) <= width  # in sight, without scrolling
            if '"price"' in text:  # among the oracles
                assert found["first"]["name"] == "price"
            assert found["sticky"]["after"] == pytest.approx(found["sticky"]["before"], abs=1)
            scrolled.add((width, found["sticky"]["down"] > 0, found["sticky"]["across"] > 0))
            assert not any("Which alpha?" in table for table in found["hidden"])
            if width == 1400:
                assert found["hidden"] == []
            shades[scheme] = tuple(sum(map(int, re.findall(r"\d+", found[part])[:3])) for part in ("page", "ink"))
    if "an oracle of our own" in text:
        assert (390, True, True) in scrolled  # so that keeping in view was tried
    assert shades["light"][0] > 600 > 200 > shades["light"][1]
    assert shades["dark"][0] < 200 < 600 < shades["dark"][1]


@each
def test_the_script_runs_and_shows_the_first_instance(
    written: Path, chromium: Callable[..., str], request: pytest.FixtureRequest
) -> None:
    dom = chromium(written, "--virtual-time-budget=5000", "--dump-dom")
    assert 'id="browser" data-ready="yes"' in dom
    view = dom[dom.index('class="instance"') :]
    assert "<h3>Row " in view or "&lt;i&gt;" in view
    assert 'class="dot"' in view
    assert "<script>alert" not in view
    assert "<b>bold" not in view
    assert "0e+0" not in view  # a probability of zero


USE = """<script>addEventListener("load", () => {
  const view = document.querySelector(".instance"), seen = [];
  const look = () => seen.push(view.querySelector("h3").textContent);
  const press = (button) => button.click();
  const [loss, row] = document.querySelectorAll("select");
  const [back, forth] = document.querySelectorAll(".controls button");
  look(); press(forth); look(); press(back); look();
  loss.value = "1"; loss.dispatchEvent(new Event("change"));
  row.value = "2"; row.dispatchEvent(new Event("change")); look();
  for (let more; (more = view.querySelector(".more")); ) press(more);
  document.body.dataset.seen = JSON.stringify(seen);
  document.body.dataset.labels = view.querySelectorAll("tr:has(.p)").length;
  document.body.dataset.truths = view.querySelectorAll(".tag").length;
});</script>"""


@pytest.mark.parametrize("written", ["ordinary"], indirect=True)
def test_the_instances_can_be_chosen(written: Path, chromium: Callable[..., str], ordinary: Comparison) -> None:
    text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", written.read_text(encoding="utf-8"))
    used = written.with_name("used.html")
    used.write_text(text.replace("</body>", f"{USE}</body>"), encoding="utf-8")
    dom = chromium(used, "--virtual-time-budget=5000", "--dump-dom")
    (seen,) = re.findall(r'data-seen="(.*?)"', dom)
    first, second, *_ = ordinary.examples["touched"]
    other = ordinary.examples["far"][2]
    assert json.loads(unescape(seen)) == [f"Row {e.row}: the truth is {e.truth}" for e in (first, second, first, other)]
    assert f'data-labels="{len(other.probabilities)}"' in dom
    assert 'data-truths="1"' in dom


@each
def test_no_request_leaves_the_page(written: Path, chromium: Callable[..., str]) -> None:
    assert fetched(written, chromium) == set()


def test_a_request_would_have_been_seen(tmp_path: Path, chromium: Callable[..., str]) -> None:
    """The check above can fail."""
    file = tmp_path / "page.html"
    file.write_text('<!DOCTYPE html><title>t</title><img src="http://leak.invalid/x.png">')
    assert fetched(file, chromium) == {"http://leak.invalid/x.png"}


def fetched(file: Path, chromium: Callable[..., str]) -> set[str]:
    """Addresses in the browser's own log of its network that a file's page asked for."""
    log = file.with_name("net.json")
    chromium(file, f"--log-net-log={log}", "--virtual-time-budget=5000", f"--screenshot={file.with_name('x.png')}")
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    started = [event["params"] for event in events if "initiator" in event.get("params", {})]
    return {
        p["url"]
        for p in started
        if p["url"].startswith(("http", "ws", "ftp")) and "not an origin" not in p["initiator"]
    }


@each
def test_both_schemes_are_painted(written: Path, chromium: Callable[..., str]) -> None:
    import matplotlib.image

    means = {}
    for scheme, value in SCHEMES.items():
        image = written.with_name(f"{scheme}.png")
        chromium(written, f"--blink-settings=preferredColorScheme={value}", f"--screenshot={image}")
        pixels = np.asarray(matplotlib.image.imread(image))[..., :3]
        means[scheme] = float(pixels.mean())
        assert pixels.std() > 0.05  # something is there
    assert means["light"] > 0.8
    assert means["dark"] < 0.3


@pytest.mark.parametrize("written", ["ordinary", "hostile"], indirect=True)
def test_axe_finds_nothing_serious(written: Path, judged: Callable[..., Any]) -> None:
    assert judged(written.read_text(encoding="utf-8"), written.with_name("judged.html")) == []


def test_axe_finds_nothing_serious_in_verdicts(tmp_path: Path, judged: Callable[..., Any]) -> None:
    loss = udcp.loads("labels { a, b, c }  costs c { a: 1, b: 2, c: 3 }  loss l = sum(c) + size")
    text = verdict_page(validate(loss, oracles=["lac"], cases=1).describe())
    assert "<h1>l</h1>" in text
    assert judged(text, tmp_path / "verdict.html") == []


def test_a_fault_would_have_been_found(tmp_path: Path, judged: Callable[..., Any]) -> None:
    """The check above can fail."""
    text = (
        '<!DOCTYPE html><html lang="en"><head><title>t</title></head><body><p style="color:#bbb">pale</p></body></html>'
    )
    assert [one[1] for one in judged(text, tmp_path / "x.html")] == ["color-contrast"] * 2


A4 = """<script>addEventListener("load", () => {
  const box = (e) => e.getBoundingClientRect();
  const tables = [...document.querySelectorAll("table")].filter((e) => e.checkVisibility());
  parent.postMessage(JSON.stringify({
    wide: document.scrollingElement.scrollWidth,
    lost: tables.flatMap((table) => [...table.querySelectorAll("th, td")]
      .filter((cell) => box(cell).width > 0 && (box(cell).right > 719 || cell.scrollWidth > cell.clientWidth + 2)))
      .map((cell) => cell.outerHTML),
    cells: tables.map((table) => table.querySelectorAll("th").length),
  }), "*");
});</script>"""


@pytest.mark.parametrize("written", ["ordinary", "wide"], indirect=True)
def test_print_on_a4_loses_no_column(written: Path, chromium: Callable[..., str]) -> None:
    """The rules for print, at the width of A4 between margins of 10 mm: 190 mm are 718 pixels."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", written.read_text(encoding="utf-8"))
    text = text.replace("@media print {", "@media all {").replace("(min-width: 60rem), print", "all")
    text = text.replace("@media (max-width: 40rem) {", "@media not all {")
    laid, frame = written.with_name("a4.html"), written.with_name("a4-frame.html")
    laid.write_text(text.replace("</body>", f"{A4}</body>"), encoding="utf-8")
    frame.write_text(FRAME.format(file=laid.as_uri(), width=718), encoding="utf-8")
    (data,) = re.findall(r'data-found="(.*?)"', chromium(frame, "--virtual-time-budget=5000", "--dump-dom"))
    found = json.loads(unescape(data))
    assert found["lost"] == []
    assert found["wide"] <= 719
    assert max(found["cells"]) >= 8


def lost_in_print(page: str, file: Path, chromium: Callable[..., str], css: str = "") -> list[str]:
    """The rows of tables (heads too) whose text, cell by cell, does not stand in the PDF on A4; spaces do not count."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    file.write_text(page.replace("</style>", f"@page {{ size: A4 }} {css}</style>", 1), encoding="utf-8")
    dom = chromium(file, "--virtual-time-budget=5000", "--dump-dom")
    pdf = file.with_suffix(".pdf")
    chromium(file, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    pages = pypdf.PdfReader(pdf).pages
    assert round(float(pages[0].mediabox.width)) == 595  # points: 210 mm
    # NFKC, as fonts join "fi" into one glyph.
    printed = "".join(unicodedata.normalize("NFKC", "".join(one.extract_text() for one in pages)).split())
    tables = re.findall("<table.*?</table>", dom[dom.index("<body") :], re.S)
    rows = re.findall("<tr.*?</tr>", "".join(tables), re.S)
    texts = [unescape(re.sub("<svg.*?</svg>|<[^>]*>", "", row, flags=re.S)) for row in rows]
    assert len(tables) > 2
    return [text for text in texts if "".join(text.split()) not in printed]


@pytest.mark.parametrize("written", ["ordinary", "wide"], indirect=True)
def test_a_printed_page_has_all_columns(written: Path, chromium: Callable[..., str]) -> None:
    text = written.read_text(encoding="utf-8")
    assert lost_in_print(text, written.with_name("printed.html"), chromium) == []


@pytest.mark.parametrize("written", ["wide"], indirect=True)
@pytest.mark.parametrize(
    "css",
    [
        "tr > :nth-child(3) { display: none }",
        "tr > :nth-child(3) { visibility: hidden }",
        ".scroll { overflow: hidden } th, td { white-space: nowrap }",
        "table { min-width: 400mm }",
    ],
    ids=["hidden", "invisible", "cut by its box", "cut by the paper"],
)
def test_a_column_lost_in_print_would_have_been_seen(written: Path, chromium: Callable[..., str], css: str) -> None:
    """The check above can fail."""
    text, file = written.read_text(encoding="utf-8"), written.with_name("lost.html")
    lost = lost_in_print(text, file, chromium, f"@media print {{ {css.replace(' }', ' !important }')} }}")
    assert any("cost at coverage" in row for row in lost)  # a head
    assert any(row.startswith("an oracle of our own") for row in lost)
