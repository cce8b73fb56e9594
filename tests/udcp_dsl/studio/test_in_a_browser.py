"""The studio in headless Chromium: a fault, a slider, a bar that is dragged, a case, a page that opens offline."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

Tab = Any  # of conftest.py

EXAMPLES = Path(__file__).parents[3] / "specs"


def test_a_fault_is_underlined_as_one_types(folder: Path, served: Callable[..., str], tab: Callable[..., Tab]) -> None:
    page = tab()
    page.open(served("pets.loss", cwd=folder))
    assert page.until(lambda: page.texts(".cm-line"))[0].startswith("# Pets")
    page.settle()
    page.type_at_end("\n + 3 * countt(kin.level(1))")
    page.until(lambda: page.texts(".cm-lintRange-error") == ["countt"])
    assert "did you mean 'count'" in page.texts(".faults li")[0]

    def undone() -> bool:
        """Letters that were typed slowly, on a busy machine, are undone one after the other."""
        ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
        return not any("countt" in line for line in page.texts(".cm-line"))

    page.until(undone)
    page.until(lambda: not page.texts(".cm-lintRange-error"))
    assert page.loud() == []


@pytest.mark.slow
def test_an_afternoon_in_the_studio(
    folder: Path, served: Callable[..., str], tab: Callable[..., Tab], tmp_path: Path
) -> None:
    page = tab()
    page.open(served("pets.loss", cwd=folder))
    page.settle()
    assert len(page.texts(".overall tbody tr")) >= 4

    # A slider moves the sets of rows, and says what has changed.
    coverage = page.texts(".overall tbody tr:first-child")
    slider = page.one('.slider input[type="range"]')
    slider.send_keys(*[Keys.ARROW_RIGHT] * 40)
    page.until(lambda: page.texts(".overall tbody tr:first-child") != coverage)
    page.until(lambda: "rows have another set by price" in "".join(page.texts(".changed p")))
    assert page.js("return document.querySelector('.slider .exact').value") == "4"

    # A set is clicked together, and its cost follows.
    page.press(".chosen button")
    page.until(lambda: page.texts(".total .figure") == ["0"])
    page.press('[data-key="label 0"]')
    page.until(lambda: page.texts(".total .figure") == ["4.5"])
    page.press('[data-key="label 4"]', Keys.SPACE)
    page.until(lambda: page.texts(".total .figure") == ["9"])
    assert page.texts(".terms td:last-child") == ["8", "1"]

    # A probability is dragged with the mouse, and the dots move.
    bar = page.one('input.p[data-key="p 5"]')
    dots = page.js("return document.querySelectorAll('tr[data-label=\"5\"] .dot').length")
    ActionChains(page.driver).move_to_element_with_offset(
        bar, -bar.size["width"] // 2 + 4, 0
    ).click_and_hold().move_by_offset(bar.size["width"] - 8, 0).release().perform()
    page.until(lambda: "dragged" in "".join(page.texts(".row-title")))
    page.until(lambda: page.js("return document.querySelectorAll('tr[data-label=\"5\"] .dot').length") > dots)
    assert float(page.texts('tr[data-label="5"] .says')[0]) > 0.9

    # Why is it in?
    page.press('[data-key="why 5"]')
    page.until(lambda: "Why is bee in" in "".join(page.texts(".why h3")))
    assert "bought at a price of" in "".join(page.texts(".why li"))

    # Two cases, which pytest runs.
    page.press('[data-key="expect"]')
    page.press('[data-key="keep set"]')
    page.press('[data-key="label 4"]')
    page.until(lambda: page.texts(".total .figure") == ["4.5"])
    page.js("document.querySelector('[data-key=\"case sign\"]').value = '<'")
    page.press('[data-key="case name"]', "one kind is cheaper than two")
    page.press('[data-key="make case"]')
    page.until(lambda: "pets.cases: 1 case. It holds" in "".join(page.texts(".message")))
    page.press('[data-key="row expect"]')
    page.js(
        "document.querySelectorAll('.picks input').forEach((x) => { if (x.checked !== (x.value === '5')) x.click(); })"
    )
    page.press('[data-key="make row case"]')
    page.until(lambda: "pets.cases: 2 cases. It holds" in "".join(page.texts(".message")))
    cases = (folder / "pets.cases").read_text(encoding="utf-8")
    assert "with coherence = 4.0: cost { cat } < cost { cat, ant }" in cases
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--udcp", "-v", "pets.cases"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "case one kind is cheaper than two PASSED" in ran.stdout

    # The number is written into the spec, and saved by the keyboard.
    page.js("[...document.querySelectorAll('.slider button')].find((b) => b.textContent.startsWith('Write')).click()")
    page.until(lambda: any("coherence = 4" in line for line in page.texts(".cm-line")))
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("s").key_up(Keys.CONTROL).perform()
    page.until(lambda: "Saved: pets.loss" in "".join(page.texts(".message")))
    assert "coherence = 4 in" in (folder / "pets.loss").read_text(encoding="utf-8")

    # The whole is exported, and opens offline.
    page.settle()
    page.one('a[href="export"]').click()
    kept = tmp_path / "pets-studio.html"
    page.until(kept.exists)
    time.sleep(0.5)
    assert page.loud() == []
    offline = tab(1000)
    offline.open(kept.as_uri())
    assert any("coherence = 4" in line for line in offline.texts(".cm-line"))
    assert offline.texts(".total .figure") == ["4.5"]
    assert len(offline.texts(".overall tbody tr")) == len(page.texts(".overall tbody tr"))
    assert offline.js("return document.querySelectorAll('input:not(:disabled):not([type=search])').length") == 0
    assert offline.loud() == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 800, 1400, 2000])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off(
    width: int, dark: bool, tmp_path: Path, served: Callable[..., str], tab: Callable[..., Tab]
) -> None:
    page = tab(width, dark=dark)
    page.open(served(cwd=tmp_path))
    page.settle()
    assert len(page.texts(".overall tbody tr")) >= 5
    assert page.js("return document.documentElement.scrollWidth") <= width
    out = page.js("""
      return [...document.querySelectorAll('body *')].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width > 1 && !e.closest('.scroll, .editor, svg *, .hidden, .tree')
          && (box.right > innerWidth + 1 || box.left < -1);
      }).map((e) => e.outerHTML.slice(0, 200));""")
    assert out == []
    # Every column is in sight: what sets cost and which rows are covered too rarely, and what of a row is in the sets.
    hidden = page.js("""
      return ['.overall', '.sets'].map((table) => document.querySelector(table).parentElement)
        .map((box) => box.scrollWidth - box.clientWidth);""")
    assert max(hidden) <= 0
    nameless = page.js("""
      return [...document.querySelectorAll('button, input, select, a')].filter((e) => e.checkVisibility() &&
        !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length || e.title))
        .map((e) => e.outerHTML);""")
    assert nameless == []
    paper, ink = page.js("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    assert (paper == "rgb(15, 18, 20)") == dark, (paper, ink)
    assert page.loud() == []


@pytest.mark.slow
def test_the_gallery_opens_every_example(tmp_path: Path, served: Callable[..., str], tab: Callable[..., Tab]) -> None:
    page = tab()
    page.open(served(cwd=tmp_path))
    names = sorted(f"{x.parent.name}/{x.stem}" for x in EXAMPLES.glob("*/*.loss"))
    for name in names:
        page.one(".tools button").click()
        page.until(lambda: sorted(page.texts("dialog[open] .gallery button > .muted code")) == names)
        page.press(f'[data-key="example {name}"]')
        page.until(lambda name=name: page.texts("h1") == [name.rpartition("/")[2] + ".loss"])
        page.until(lambda: page.texts(".faults .error") == [] and page.texts(".terms tr"))
    page.one(".tools .strong").click()
    page.until(lambda: "Saved: " in "".join(page.texts(".message")))
    assert (tmp_path / names[-1].rpartition("/")[2]).is_dir()
    assert page.loud() == []
