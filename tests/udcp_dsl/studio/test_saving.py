"""What is kept, and what the editor is told: saving, cases, the page that is exported, completion, hover, fixes."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import udcp_dsl as udcp
from udcp_dsl.check.cases import check_case
from udcp_dsl.diagnostics import Source
from udcp_dsl.fit.cases import cases_beside, parse_cases

TOKEN = "secret-of-this-test"


def test_the_spec_is_saved_as_it_is_with_its_line_ends(page: Any) -> None:
    text = page.studio.state.text.replace("0.5 * size", "size")
    page.change(text={"text": text, "by": "me"})
    assert page.post("save", {}).json()["written"] == ["pets.loss"]
    assert (page.folder / "pets.loss").read_text(encoding="utf-8") == text


def test_a_spec_with_the_line_ends_of_windows_keeps_them(page: Any) -> None:
    from udcp_dsl.studio.spec_folder import open_spec

    path = page.folder / "windows.loss"
    path.write_bytes(b"labels { a }\r\nloss l = size\r\n")
    place, text = open_spec(path)
    assert text == "labels { a }\nloss l = size\n"
    place.save(text + "# more\n")
    assert path.read_bytes() == b"labels { a }\r\nloss l = size\r\n# more\r\n"


def test_a_case_about_costs_is_kept_under_the_slider_that_is_moved(page: Any) -> None:
    page.change(param=["coherence", 4.0, 2.0])
    page.until(lambda v: v["spec"]["params"][0]["value"] == 4.0)
    answer = page.post("case", {"name": "two kinds are dear", "cost": [["cat", "ant"], ">", ["cat", "dog"]]}).json()
    assert (answer["holds"], answer["cases"], answer["written"]) == (True, 1, "pets.cases")
    answer = page.post("case", {"name": "never", "cost": [["cat"], ">", 100]}).json()
    assert (answer["holds"], answer["cases"]) == (False, 2)
    assert "costs 4.5: that is not > 100" in answer["why"]
    first, second = cases_beside(page.folder / "pets.loss")
    assert first.params == second.params == {"coherence": 4.0}
    loss = udcp.load(page.folder / "pets.loss")
    assert [check_case(loss, case).holds for case in (first, second)] == [True, False]


@pytest.mark.parametrize("oracle", ["price", "lac"])
def test_a_case_about_a_row_says_of_the_spec_what_the_page_shows(page: Any, oracle: str) -> None:
    page.change(row=5)
    row = page.until(lambda v: v["row"]["row"] == 5 and len(v["row"]["sets"]) == 2)["row"]
    labels = udcp.load(page.folder / "pets.loss").labels
    shown = next(x for x in row["sets"] if x["oracle"] == oracle)
    inside = [labels[y] for y in shown["members"]]
    outside = [label for label in labels if label not in inside]
    for members, holds in ((inside, True), (outside, False)):
        body = {"name": "as shown", "row": {"oracle": oracle, "holds": holds, "members": members}}
        assert page.post("case", body).json()["holds"] is True
    wrong = {"name": "not so", "row": {"oracle": oracle, "holds": False, "members": inside}}
    assert page.post("case", wrong).json()["holds"] is False
    loss = udcp.load(page.folder / "pets.loss")
    assert [check_case(loss, case).holds for case in cases_beside(page.folder / "pets.loss")] == [True, True, False]


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"name": " ", "cost": [[], ">", 1]},
        {"name": "x"},
        {"name": "x", "cost": [["cat"], "!", 1]},
        {"name": "x", "cost": ["cat", ">", 1]},
        {"name": "x", "cost": [["cat"], ">", True]},
        {"name": "x", "row": {"oracle": ["a"]}},
        {"name": "x", "row": {"oracle": "ilp", "members": ["cat"]}},
        {"name": "x", "row": {"oracle": "lac", "members": "cat"}},
    ],
    ids=lambda x: json.dumps(x)[:40],
)
def test_what_is_no_case_is_refused_and_nothing_is_written(page: Any, body: object) -> None:
    page.until(lambda v: len(v["row"]["sets"]) == 2)
    assert page.post("case", body).status_code == 400
    assert not (page.folder / "pets.cases").exists()


def test_cases_that_cannot_be_read_are_not_written_over(page: Any) -> None:
    page.until(lambda v: v["spec"]["ok"])
    (page.folder / "pets.cases").write_text("case: mine, half done")
    answer = page.post("case", {"name": "x", "cost": [["cat"], ">", 1]})
    assert answer.status_code == 400
    assert "pets.cases:1:" in answer.json()["error"]
    assert (page.folder / "pets.cases").read_text() == "case: mine, half done"


def test_the_exported_page_holds_all_that_is_shown_and_can_run_nothing_else(page: Any) -> None:
    page.until(lambda v: len(v["row"]["sets"]) == 2)
    answer = page.client.get(f"/{TOKEN}/export")
    assert 'filename="pets-studio.html"' in answer.headers["content-disposition"]
    (data,) = re.findall(r'<script type="application/json" id="snapshot">(.*?)</script>', answer.text, re.DOTALL)
    assert json.loads(data)["row"] == page.studio.board.get("row")
    assert TOKEN not in answer.text
    assert "default-src 'none'" in answer.text


def test_the_editor_is_helped_by_the_language_server(page: Any) -> None:
    text = page.studio.state.text + " + coun"
    at = {"line": text.count("\n"), "character": len(" + coun")}
    items = page.post("complete", {"text": text, "at": at}).json()["items"]
    assert "count" in [item["label"] for item in items]
    wrong = text + "tt(kin.level(1))"
    fixes = page.post("fixes", {"text": wrong, "at": {"line": at["line"], "character": 5}}).json()["fixes"]
    assert fixes[0]["edits"][0]["newText"] == "count"
    line = text.splitlines().index("param coherence = 2 in [0, 10]")
    told = page.post("hover", {"text": text, "at": {"line": line, "character": 8}}).json()["text"]
    assert "coherence" in told
    for body in (
        [],
        {},
        {"text": 1, "at": at},
        {"text": "x", "at": 3},
        {"text": "x", "at": {"line": -1, "character": 0}},
    ):
        for path in ("complete", "hover", "fixes"):
            assert page.post(path, body).status_code == 400


def test_a_spec_that_somebody_else_changed_is_not_written_over(page: Any) -> None:
    file = page.folder / "pets.loss"
    text = file.read_text()
    page.change(text={"text": text + "# ours\n", "by": "page"})
    file.write_text(text + "# theirs\n")
    answer = page.post("save", {})
    assert answer.status_code == 400
    assert "changed on disk" in answer.json()["error"]
    assert file.read_text() == text + "# theirs\n"
    file.unlink()
    assert page.post("save", {}).status_code == 200
    assert page.post("save", {}).status_code == 200  # what was saved here is known
    assert file.read_text() == text + "# ours\n"


def test_cases_that_come_at_once_are_all_kept(page: Any) -> None:
    page.until(lambda views: views["spec"]["ok"])

    def keep(i: int) -> int:
        return int(page.post("case", {"name": f"case {i}", "cost": [["cat"], "<", ["cat", "dog"]]}).status_code)

    with ThreadPoolExecutor(30) as pool:
        assert set(pool.map(keep, range(30))) == {200}
    kept = parse_cases(Source("pets.cases", (page.folder / "pets.cases").read_text()))
    assert sorted(case.name for case in kept) == sorted(f"case {i}" for i in range(30))
