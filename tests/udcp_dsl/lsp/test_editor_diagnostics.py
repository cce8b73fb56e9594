"""Faults while one types: the same as the command line's, with related places and quick fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

import udcp_dsl as udcp
from udcp_dsl.lsp import Document, Reader, code_actions, diagnostics

HEAD = "labels { a, b }\n"


def applied(document: Document, action: dict[str, object]) -> str:
    """The text after an action."""
    (edit,) = action["edit"]["changes"][document.uri]  # type: ignore[index]
    start, end = (document.offset(edit["range"][side]) for side in ("start", "end"))
    return document.text[:start] + str(edit["newText"]) + document.text[end:]


def fixes(text: str, folder: Path | None = None) -> dict[str, str]:
    """For each quick fix of the first fault, its title and the text that it gives."""
    document = Reader().read(text, folder)
    first = diagnostics(document)[0]["range"]
    return {x["title"]: applied(document, x) for x in code_actions(document, first["start"], first["end"])}


def test_a_quick_fix_is_that_of_the_diagnostic() -> None:
    """That each mends its fault is shown in test_fixes.py."""
    wrong = HEAD + "costs c { a: 1, b: 2 }\nloss l = c"
    assert fixes(wrong) == {
        "Write sum(c)": wrong.replace("= c", "= sum(c)"),
        "Write max(c)": wrong.replace("= c", "= max(c)"),
    }


def test_a_file_and_a_column_are_mended_inside_the_clause(tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text("name,cost\na,1\nb,2\n")
    text = 'labels from "pet.csv" column name\nloss l = size'
    assert list(fixes(text, tmp_path).values()) == [text.replace("pet.csv", "pets.csv")]
    text = 'labels from "pets.csv" column nam\nloss l = size'
    assert list(fixes(text, tmp_path).values()) == [text.replace("nam\n", "name\n")]


def test_a_way_out_that_leads_nowhere_is_no_fix() -> None:
    assert fixes(HEAD + "loss l = size size") == {}
    assert fixes("loss l = size") == {}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (HEAD + "let x = size\nlet x = 2\nloss l = x", (1, 4), "it is declared here first"),
        (HEAD + "labels { c }\nloss l = size", (0, 0), "the labels are declared here first"),
        ("labels { a, b, a }\nloss l = size", (0, 9), "it is listed here first"),
        (HEAD + "param p = 11 in [0, 10]\nloss l = p * size", (1, 17), "its range"),
        (HEAD + "let x = y\nlet y = x\nloss l = x", (1, 4), "part of the cycle"),
    ],
)
def test_related_places(text: str, place: tuple[int, int], message: str) -> None:
    fault = diagnostics(Reader().read(text))[0]
    related = fault["relatedInformation"][0]
    start = related["location"]["range"]["start"]
    assert ((start["line"], start["character"]), related["message"]) == (place, message)


def test_they_are_those_of_the_compiler(triage: str) -> None:
    text = triage.replace("skin.family", "skin.famly").replace("any(urgent)", "any(urgnt)")
    found = diagnostics(Reader().read(text, Path(__file__).parents[3] / "specs" / "dermatology"))
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(text, folder=Path(__file__).parents[3] / "specs" / "dermatology")
    assert [(x["code"], x["data"]["help"]) for x in found] == [(x.code, x.help) for x in caught.value.diagnostics]


def test_positions_are_in_units_of_utf_16() -> None:
    (fault,) = diagnostics(Reader().read('labels { "🙂", b }  loss l = any({ "🙂", c })\n'))
    assert fault["range"]["start"] == {"line": 0, "character": len('labels { "**", b }  loss l = any({ "**", ')}
