"""The studio in headless Chromium as people use it: by the mouse, by the keyboard alone, in forced colours."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import udcp_dsl as udcp
from udcp_dsl.studio.instances import generated

pytestmark = pytest.mark.slow
Tab = Any  # of conftest.py
AXE = Path(__file__).parents[3] / "udcp_dsl/studio/page/node_modules/axe-core/axe.min.js"


@pytest.fixture
def opened(folder: Path, served: Callable[..., str], tab: Callable[..., Tab]) -> Callable[..., Tab]:
    """The page on the spec of pets, when all is done."""
    address = served("pets.loss", cwd=folder)

    def open_page(*arguments: Any, tour: bool = False, **options: Any) -> Tab:
        page = tab(*arguments, **options)
        page.open(address, tour=tour)
        settle(page)
        return page

    return open_page


def settle(page: Tab) -> None:
    page.until(
        lambda: (
            len(page.texts(".overall tbody tr:not(.muted)")) >= 4
            and page.texts(".doing") == [""]
            and page.js("return document.querySelectorAll('.chart .line').length") >= 4
        )
    )


def alpha(page: Tab) -> str:
    (found,) = page.texts("#strip output")
    return found


def keys(page: Tab, *pressed: str) -> None:
    ActionChains(page.driver).send_keys(*pressed).perform()


def test_the_strip_answers_and_the_row_stays(opened: Callable[..., Tab]) -> None:
    page = opened()
    said = page.texts("#strip .says")[0]
    assert said.startswith("At 90 % coverage price costs ")
    assert " than lac at the same coverage" in said
    assert "of the hardest quarter" in said
    row = page.texts(".row-title")
    assert page.texts(".total .figure") != ["0"]  # its set is loaded
    page.one("#alpha").send_keys(*[Keys.ARROW_RIGHT] * 5)
    page.until(lambda: page.texts("#strip .says")[0].startswith("At 85 % coverage"))
    settle(page)
    assert page.texts(".row-title") == row
    page.one('.slider input[type="range"]').send_keys(*[Keys.ARROW_RIGHT] * 20)
    page.until(lambda: "rows have another set by price" in "".join(page.texts(".changed p")))
    settle(page)
    assert page.texts(".row-title") == row
    assert page.loud() == []


def test_the_curve_and_the_worth_of_a_miss_set_alpha(opened: Callable[..., Tab]) -> None:
    page = opened()
    assert alpha(page) == "0.1"
    worth = float(page.js("return document.getElementById('worth').value"))
    # A mark that is pointed at speaks at once; a click sets its alpha.
    mark = '[data-key="curve price 0.2"]'
    page.js("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", mark)
    ActionChains(page.driver).move_to_element(page.one(mark)).perform()
    page.until(lambda: page.texts(".tip:not([hidden])") and "price, alpha 0.2: covers" in page.texts(".tip")[0])
    assert "a miss is valued at" in page.texts(".tip")[0]
    page.press(mark)
    page.until(lambda: alpha(page) == "0.2")
    page.until(lambda: float(page.js("return document.getElementById('worth').value")) < worth)
    settle(page)
    # Between marks a click sets the alpha of the coverage there.
    chart = "figure:has([data-key^='curve']) svg"
    left, right, low, high = page.js(
        """const svg = document.querySelector(arguments[0]), box = svg.getBoundingClientRect();
        const marks = [...svg.querySelectorAll('.tick.middle')].map(
          (t) => [t.getBoundingClientRect(), Number(t.textContent)]);
        const at = ([r, v]) => [r.left + r.width / 2, v];
        const [[x1, v1], [x2, v2]] = [at(marks[0]), at(marks.at(-1))];
        return [x1, x2, v1, v2];""",
        chart,
    )
    wanted = 0.87
    x = left + (wanted - low) / (high - low) * (right - left)
    box = page.js("const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", chart)  # noqa: E501  # fmt: skip
    dx, dy = x - (box[0] + box[2] / 2), -box[3] / 2 + 20
    ActionChains(page.driver).move_to_element_with_offset(page.one(chart), round(dx), round(dy)).click().perform()
    page.until(lambda: alpha(page) in ("0.12", "0.13", "0.14"))
    settle(page)
    # A worth that is typed asks for the alpha at which a miss is valued so.
    field = page.one("#worth")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(str(worth), Keys.ENTER)
    page.until(lambda: alpha(page) in ("0.09", "0.1", "0.11"))
    # By the keyboard: one stop, arrows from mark to mark, Enter.
    settle(page)
    page.js("document.querySelector(arguments[0]).focus()", "figure:has([data-key^='curve']) .mark[tabindex='0']")
    keys(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    page.until(lambda: alpha(page) == "0.1")
    assert page.loud() == []


def test_stop_is_at_once(opened: Callable[..., Tab]) -> None:
    page = opened()
    page.press('[data-key="oracles"]')
    page.press('[data-key="oracle ilp"]')
    pressed = "const stop = document.querySelector('[data-key=\"stop\"]'); stop?.click(); return stop !== null"
    page.until(lambda: page.js(pressed))
    page.until(lambda: page.texts(".doing") == [""], seconds=5)
    page.until(lambda: any("stopped" in row for row in page.texts(".overall tr")), seconds=5)


def test_nothing_unsaved_is_lost_and_undo_is_of_one_document(opened: Callable[..., Tab]) -> None:
    page = opened()
    page.type_at_end("\n# mine")
    page.until(lambda: page.js("return !document.querySelector('.unsaved').hidden"))
    browse = "return document.querySelector('dialog[open] [data-key=\"example grades/grades\"]') !== null"
    page.press(".tools button")
    page.until(lambda: page.js(browse))
    page.press('[data-key="example grades/grades"]')
    question = page.driver.switch_to.alert
    assert "not saved" in question.text
    question.dismiss()
    assert page.texts("h1") == ["pets.loss"]
    assert "# mine" in page.texts(".cm-line")
    page.press(".tools button")
    page.until(lambda: page.js(browse))
    page.press('[data-key="example grades/grades"]')
    page.driver.switch_to.alert.accept()
    page.until(lambda: page.texts("h1") == ["grades.loss"])
    page.one(".cm-content").click()
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    assert not any("mine" in line or "wolf" in line for line in page.texts(".cm-line"))
    assert page.js("return document.querySelector('.unsaved').hidden")


def test_files_are_dropped_on_the_page(opened: Callable[..., Tab], folder: Path) -> None:
    page = opened()
    rows = generated(udcp.load(folder / "pets.loss"), seed=7).shown
    files = []
    for name, array in {"mine.npy": rows.P, "truth.npy": rows.truth}.items():
        out = io.BytesIO()
        np.save(out, array)
        files.append([name, base64.b64encode(out.getvalue()).decode()])
    page.js(
        """const moved = new DataTransfer();
        for (const [name, content] of arguments[0]) {
          const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
          moved.items.add(new File([bytes], name));
        }
        const drop = new DragEvent("drop", { dataTransfer: moved, bubbles: true, cancelable: true });
        document.body.dispatchEvent(drop);""",
        files,
    )
    page.until(lambda: page.texts("dialog[open] .small"))
    assert page.texts("dialog[open] .small") == ["Probabilities: mine.npy. Truth: truth.npy."]
    page.press('[data-key="load rows"]')
    page.until(lambda: "500 rows of mine.npy" in "".join(page.texts("#rows > p.muted")))
    settle(page)
    assert page.loud() == []


def test_what_is_shown_is_copied(opened: Callable[..., Tab]) -> None:
    page = opened()
    granted = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    page.driver.execute_cdp_cmd("Browser.grantPermissions", granted)
    for key, begins in {"copy command": "udcp compare pets.loss", "copy python": "import numpy as np"}.items():
        page.press('[data-key="copy"]')
        page.press(f'[data-key="{key}"]')
        page.until(lambda: page.texts(".message") == ["Copied."])
        held = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
        assert held.startswith(begins), held
        page.js("document.querySelector('dialog[open]').close(); document.querySelector('.message').textContent = ''")


@pytest.fixture
def expected(folder: Path) -> None:
    (folder / "pets.cases").write_text('case "kin matters": cost { dog, ant } > 4\n', encoding="utf-8")


def test_cases_follow_the_sliders(expected: None, opened: Callable[..., Tab]) -> None:
    page = opened()
    page.until(lambda: page.texts(".cases [role=status]") == ["all 1 hold"])
    page.one('.slider input[type="range"]').send_keys(*[Keys.ARROW_LEFT] * 30)
    page.until(lambda: page.texts(".cases [role=status]") == ["1 of 1 fail"])
    assert "that is not > 4" in page.texts(".cases li")[0]


def test_the_keyboard_gets_everywhere_soon(opened: Callable[..., Tab]) -> None:
    page = opened()

    def tabs_to(holds: str, most: int) -> int:
        for pressed in range(1, most + 1):
            keys(page, Keys.TAB)
            if page.js(f"return {holds}"):
                return pressed
        raise AssertionError(f"not within {most} tabs: {holds}")

    # From the top: the links that skip, each of which leads into its panel.
    page.js("document.activeElement.blur(); window.getSelection().removeAllRanges()")
    tabs_to("document.activeElement.textContent === 'Skip to alpha'", 1)
    keys(page, Keys.ENTER, Keys.TAB)
    assert page.js("return document.getElementById('strip').contains(document.activeElement)")
    page.driver.refresh()
    settle(page)
    tabs_to("document.activeElement.textContent === 'Skip to row'", 4)
    keys(page, Keys.ENTER)
    tabs_to("document.getElementById('rows').contains(document.activeElement)", 1)
    # Tab leaves the editor, and from there a link leads to the rows.
    page.one(".cm-content").click()
    before = page.texts(".cm-line")
    to_row = tabs_to("document.activeElement.textContent === 'Skip to row'", 6)
    assert page.texts(".cm-line") == before
    keys(page, Keys.ENTER)
    assert to_row + tabs_to("document.getElementById('rows').contains(document.activeElement)", 2) <= 8
    assert page.texts(".editor-help")[0].startswith("Tab leaves the editor.")
    # Panels are resized by the arrows.
    width = page.js("return document.getElementById('spec').clientWidth")
    page.js("document.querySelector('.divider').focus()")
    keys(page, *[Keys.ARROW_RIGHT] * 4)
    assert page.js("return document.getElementById('spec').clientWidth") > width + 20


def test_a_tour_of_three_steps_and_words_that_explain_themselves(opened: Callable[..., Tab]) -> None:
    page = opened(tour=True)
    for step in (1, 2, 3):
        assert page.texts(".tour p")[0].startswith(f"{step} of 3.")
        page.press('[data-key="tour next"]')
    assert page.texts(".tour") == []
    page.driver.refresh()
    settle(page)
    assert page.texts(".tour") == []  # once
    for word in ("oracle", "price", "mass", "alpha", "worth of a miss"):
        page.js(f"document.querySelector('[aria-label=\"What is {word}?\"]').click()")
        assert page.texts("dialog[open] dt.asked") == [word]
        page.js("document.querySelector('dialog[open]').close()")


def test_targets_are_24_pixels(opened: Callable[..., Tab]) -> None:
    for width in (390, 1400):
        page = opened(width)
        small = page.js("""
          const kinds = 'button, select, input:not([type=checkbox]), summary, a.button, .pick, .leaf label';
          return [...document.querySelectorAll(kinds)]
            .filter((e) => e.checkVisibility() && !e.closest('.skips, .hidden'))
            .map((e) => [e.getBoundingClientRect(), e])
            .filter(([box, e]) => box.height < 24 && !(e.type === 'range'))
            .map(([box, e]) => `${box.width}x${box.height} ${e.outerHTML.slice(0, 120)}`);""")
        assert small == []


def test_forced_colours_show_sets_and_bars(opened: Callable[..., Tab]) -> None:
    import matplotlib.image

    page = opened(forced=True)
    assert page.js("return matchMedia('(forced-colors: active)').matches")

    def pixels(css: str) -> Any:
        page.js("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", css)
        return matplotlib.image.imread(io.BytesIO(page.one(css).screenshot_as_png))[..., :3]

    inside, outside = pixels(".dot-cell:has(.dot)"), pixels(".dot-cell:has(.out)")
    paper = outside[0, 0]
    drawn = [(np.abs(image - paper).max(axis=2) > 0.3).mean() for image in (inside, outside)]
    assert drawn[0] > 2 * drawn[1] > 0  # a mark is large, an absence small, and neither is blank
    assert (np.abs(pixels(".terms .bar") - paper).max(axis=2) > 0.3).mean() > 0.05
    assert (np.abs(pixels("input.p") - paper).max(axis=2) > 0.3).mean() > 0.05


@pytest.mark.parametrize(
    ("width", "options"), [(1400, {}), (390, {}), (1400, {"dark": True}), (2000, {"forced": True})]
)
def test_axe_finds_nothing_serious(width: int, options: dict[str, bool], opened: Callable[..., Tab]) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in udcp_dsl/studio/page")
    page = opened(width, **options)
    page.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.js(AXE.read_text(encoding="utf-8"))
    page.driver.set_script_timeout(120)
    found = page.driver.execute_async_script("""
      const done = arguments[arguments.length - 1];
      axe.run(document, { resultTypes: ["violations"] }).then((r) => done(r.violations.map(
        (v) => [v.impact, v.id, v.nodes.map((n) => n.target.join(" ")).slice(0, 5)])), (e) => done(String(e)));""")
    assert [one for one in found if one[0] in ("serious", "critical")] == []


def test_an_exported_page_is_whole(opened: Callable[..., Tab], tab: Callable[..., Tab], tmp_path: Path) -> None:
    page = opened()
    page.one('a[href="export"]').click()
    kept = tmp_path / "pets-studio.html"
    page.until(kept.exists)
    page.until(lambda: kept.stat().st_size > 100_000)
    offline = tab(1400)
    offline.open(kept.as_uri())
    # Nothing that unfolds is empty.
    empty = offline.js("""
      const shown = [...document.querySelectorAll('details')].filter((one) => !one.hidden && one.checkVisibility());
      return shown.filter((one) => {
        one.open = true;
        const head = one.querySelector('summary')?.textContent.trim();
        return !head || one.textContent.trim() === head;
      }).map((one) => one.outerHTML.slice(0, 200));""")
    assert empty == []
    assert offline.texts("#strip .says") == page.texts("#strip .says")
    assert offline.loud() == []
