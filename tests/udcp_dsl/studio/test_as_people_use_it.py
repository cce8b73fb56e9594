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
from tests.specs import hard_to_solve
from udcp_dsl.studio.instances import generated

pytestmark = pytest.mark.slow
Tab = Any  # of conftest.py
SPECS = Path(__file__).parents[3] / "specs"
AXE = SPECS.parent / "udcp_dsl/studio/page/node_modules/axe-core/axe.min.js"


@pytest.fixture
def opened(folder: Path, served: Callable[..., str], tab: Callable[..., Tab]) -> Callable[..., Tab]:
    """The page on the spec of pets, when all is done."""
    address = served("pets.loss", cwd=folder)

    def open_page(*arguments: Any, tour: bool = False, **options: Any) -> Tab:
        page = tab(*arguments, **options)
        page.open(address, tour=tour)
        page.settle()
        return page

    return open_page


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
    page.settle()
    assert page.texts(".row-title") == row
    page.one('.slider input[type="range"]').send_keys(*[Keys.ARROW_RIGHT] * 20)
    page.until(lambda: "rows have another set by price" in "".join(page.texts(".changed p")))
    page.settle()
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
    page.settle()
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
    page.settle()
    # A worth that is typed asks for the alpha at which a miss is valued so.
    field = page.one("#worth")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(str(worth), Keys.ENTER)
    page.until(lambda: alpha(page) in ("0.09", "0.1", "0.11"))
    # By the keyboard: one stop, arrows from mark to mark, Enter.
    page.settle()
    page.js("document.querySelector(arguments[0]).focus()", "figure:has([data-key^='curve']) .mark[tabindex='0']")
    keys(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    page.until(lambda: alpha(page) == "0.1")
    assert page.loud() == []


def test_stop_is_at_once(tmp_path: Path, served: Callable[..., str], tab: Callable[..., Tab]) -> None:
    """Of work that takes the better part of a minute: integer programs of 40 overlapping categories."""
    spec = tmp_path / "hard.loss"
    spec.write_text(hard_to_solve().source.text)
    page = tab()
    page.open(served(spec.name, cwd=spec.parent))
    page.settle()
    page.press('[data-key="oracles"]')
    page.press('[data-key="oracle ilp"]')
    page.until(lambda: any("ilp: " in said for said in page.texts(".doing")))
    page.press('[data-key="stop"]')
    page.until(lambda: page.texts(".doing") == [""], seconds=5)
    page.until(lambda: any("stopped" in row for row in page.texts(".overall tr")), seconds=5)
    # What comes next is worked out, but for what was stopped.
    page.one("#alpha").send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: page.texts("#strip .says")[0].startswith("At 89 % coverage"))
    assert page.loud() == []


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
    assert page.texts("dialog[open] .small") == ["Probabilities: mine.npy. True labels: truth.npy."]
    page.press('[data-key="load rows"]')
    page.until(lambda: "500 rows of mine.npy" in "".join(page.texts("#rows > p.muted")))
    page.settle()
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
    page.settle()
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
    page.settle()
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

    # Without the rule below the row, which is of both.
    inside, outside = pixels(".dot-cell:has(.dot)")[:-2], pixels(".dot-cell:has(.out)")[:-2]
    paper = outside[0, 0]
    drawn = [(np.abs(image - paper).max(axis=2) > 0.3).sum() for image in (inside, outside)]
    assert drawn[0] > 3 * drawn[1] > 0  # a mark is large, an absence small, and neither is blank
    assert (np.abs(pixels(".terms .bar") - paper).max(axis=2) > 0.3).mean() > 0.05
    assert (np.abs(pixels("input.p") - paper).max(axis=2) > 0.3).mean() > 0.05


def contrast(one: Any, other: Any) -> float:
    """As WCAG defines it, of two colours from 0 to 1."""

    def luminance(colour: Any) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in map(float, colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast([0x77 / 255] * 3, (1, 1, 1)) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("options", [{}, {"dark": True}, {"forced": True}], ids=["light", "dark", "forced"])
def test_what_is_not_text_has_a_contrast_of_3(options: dict[str, bool], opened: Callable[..., Tab]) -> None:
    """Axe looks at text alone. Of each, the colour that stands out most from the pixel beside its box."""
    import matplotlib.image

    page = opened(**options)

    def pixels(css: str, beside: int) -> Any:
        page.js("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", css)
        find = "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        x, y, width, height = page.js(f"{find} return [b.x, b.y, b.width, b.height]", css)
        clip = {"x": x - beside, "y": y - beside, "width": width + 2 * beside, "height": height + 2 * beside}
        shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip | {"scale": 1}})["data"]
        return matplotlib.image.imread(io.BytesIO(base64.b64decode(shot)))[..., :3]

    page.press('[data-key="questions"]')
    page.until(lambda: page.texts('[data-key="answer A"]'))
    low = {}
    for css in (
        "#worth", "#strip input[type=range]", ".which", "#sets input[type=search]", "#sets input[type=checkbox]",
        ".out", ".dot .swatch", ".terms .bar", ".span", "[data-key='answer A']", ".help", ".tag", ".badge.proved",
        ".badge.refuted", ".tools button", ".chart .mark",
    ):  # fmt: skip
        found = pixels(css, 3)
        low[css] = max(contrast(colour, found[0, 0]) for colour in np.unique(found.reshape(-1, 3), axis=0))
    # The thumb of a bar that is dragged, on its track.
    page.js("const bar = document.querySelector('input.p'); bar.value = 0.5; bar.style.setProperty('--v', '0%')")
    bar = pixels("input.p", 0)
    middle = bar.shape[0] // 2
    low["thumb"] = contrast(bar[middle, bar.shape[1] // 2], bar[middle, bar.shape[1] * 3 // 4])
    assert {css: round(found, 2) for css, found in low.items() if found < 3} == {}


def test_a_or_b_narrows_the_parameters(folder: Path, opened: Callable[..., Tab]) -> None:
    """Somebody for whom one more kind of animal costs 0.8 answers by that; a label costs 0.5, so that pairs of sets
    tell on which side of 0.5 and of 1 it is."""
    page = opened()
    wanted = udcp.load(folder / "pets.loss", params={"coherence": 0.8})
    page.press('[data-key="questions"]')
    left = [100.0]
    for answers in range(1, 6):
        said = page.until(lambda n=answers - 1: [x for x in page.texts(".questions > p") if x.startswith(f"{n} comp")])
        if "Which" not in said[0]:
            break
        a, b = (page.texts(f"[data-key='answer {x}'] bdi") for x in "AB")
        gap = wanted(a) - wanted(b)
        key = "same" if abs(gap) < 1e-9 else "A" if gap > 0 else "B"
        page.press(f'[data-key="answer {key}"]')
        count = f"{answers} comparison" + ("" if answers == 1 else "s")
        page.until(lambda count=count: page.texts(".questions > p")[0].startswith(count))
        if page.texts('[data-key="answer A"]'):  # the keyboard is where the answers are, so that one can go on
            assert page.js("return document.activeElement.dataset.key") == f"answer {key}"
        found = page.texts(".fitted td .muted")[0]
        left.append(0.0 if found == "determined" else float(found.split(" %")[0]))
    assert left == sorted(left, reverse=True)
    assert left[-1] <= 5
    # No answer holds a slider fast, and the best values agree with all of them.
    assert " with " not in (folder / "pets.cases").read_text(encoding="utf-8").split("\n", 1)[1]
    page.press('[data-key="use fitted"]')
    page.settle()
    page.until(lambda: page.texts(".cases [role=status]")[0].startswith("all "))
    value = float(page.js("return document.querySelector('.slider .exact').value"))
    low, high = (float(x) for x in page.texts(".fitted tbody td")[0].partition(" to ")[::2] for x in [x.split()[0]])
    assert low <= value <= high
    assert low <= 0.8 <= high
    assert page.loud() == []


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


VISITS = """labels { gp, nurse, ward }
input km in [0, 200]
costs fee per row in [10, 50]
param pace = 0.5 in [0, 2]  # minutes for each km
loss visit in minutes = sum(fee) + pace * km * any({ gp, nurse })
"""


def test_inputs_have_sliders_which_begin_at_the_row(
    tmp_path: Path, served: Callable[..., str], tab: Callable[..., Tab]
) -> None:
    (tmp_path / "visits.loss").write_text(VISITS, encoding="utf-8")
    page = tab()
    page.open(served("visits.loss", cwd=tmp_path))
    page.settle()
    of_row = page.until(lambda: page.texts('[data-key="take price"]'))
    assert page.texts(".total .figure") == [f"{of_row[0]} minutes"]  # the set of the row costs the same in both panels
    slider = '[data-key="input km"]'
    assert "as in the row" in page.texts("#sets .slider .muted")[0]
    assert "as in the row: gp " in page.texts("#sets .slider .muted")[1]
    page.js("document.querySelector('#sets input[value=gp], [data-key=\"label 0\"]').scrollIntoView()")
    if not page.js("return document.querySelector('[data-key=\"label 0\"]').checked"):
        page.press('[data-key="label 0"]')
    before = page.until(lambda: float(page.texts(".total .figure")[0].split()[0]))
    page.press(slider, *[Keys.ARROW_RIGHT] * 10)
    page.until(lambda: "the row has" in page.texts("#sets .slider .muted")[0])
    page.until(lambda: float(page.texts(".total .figure")[0].split()[0]) > before)
    # Another row brings its own.
    page.press('[aria-label="Previous row"], [aria-label="Next row"]')
    page.until(lambda: "as in the row" in page.texts("#sets .slider .muted")[0])
    # What a parameter is for stands beside it, and what a move of it did.
    assert page.texts("#spec .slider .muted") == ["minutes for each km"]
    page.one('#spec .slider input[type="range"]').send_keys(*[Keys.ARROW_RIGHT] * 30)
    page.until(lambda: "have another set by price. Mean cost" in page.texts(".effect")[0])
    assert page.loud() == []
