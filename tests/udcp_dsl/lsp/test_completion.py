"""What is offered at a place, in statements that are only half there."""

from __future__ import annotations

from pathlib import Path

import pytest

from udcp_dsl.language.scan import STATEMENTS
from udcp_dsl.language.words import ATOM_NAMES, FUNCTION_NAMES
from udcp_dsl.lsp import Reader, completion, diagnostics


def offered(marked: object, text: str, folder: Path | None = None) -> list[str]:
    document, position = marked(text, folder) if folder is not None else marked(text)  # type: ignore[operator]
    return [x["label"] for x in completion(document, position)["items"]]


EXPRESSIONS = ["mixed", "bill", "triage", "coherence", *ATOM_NAMES, *FUNCTION_NAMES]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("loss x = |", [*EXPRESSIONS, "if", "not"]),
        ("loss x = sum(|", ["workup"]),
        ("loss x = sum(|) + size", ["workup"]),
        ("loss x = any(|", ["urgent", "skin", "{ }"]),
        ("loss x = any(skin.|", ["kind", "family", "node", "level"]),
        ("loss x = any(skin.kind.|", ["benign", "malignant", "inflammatory", "infectious"]),
        ("loss x = any(skin.kind.mal|) * 3", ["malignant"]),
        ("loss x = count(|", ["skin.kind", "skin.family"]),
        ("loss x = diameter(|", ["skin", "tree"]),
        ("loss x = nodes(|", ["skin"]),
        ("loss x = nodes(skin|) + size", ["skin"]),
        ("loss x = any(skin.node(melanom|", ["melanoma", '"superficial spreading melanoma"', '"nodular melanoma"',
                                             '"acral melanoma"']),
        ("loss x = count(skin.level(|", ["0", "1", "2", "3"]),
        ("category C { lipom|", ["lipoma"]),
        ("loss x = size({ lipom|", ["lipoma"]),
        ("costs c { lipom|", ["lipoma"]),
        ("costs c of |", ["skin.kind", "skin.family"]),
        ("costs c of skin.kind { |", ["benign", "malignant", "inflammatory", "infectious", "default"]),
        ("costs c of skin.kind { benign: 1, |", ["malignant", "inflammatory", "infectious", "default"]),
        ('costs c from "|', ["skin.csv"]),
        ('costs c from "skin.csv" |', ["by", "column"]),
        ('costs c from "skin.csv" column |', ["condition", "kind", "family", "workup_cost", "urgent"]),
        ('costs c from "skin.csv" column work|', ["workup_cost"]),
        ('hierarchy h from "skin.csv" levels kind, fam|', ["family"]),
        ("distance d = |", ["path"]),
        ("distance d = path(|", ["skin"]),
        ("distance d = path(skin, |", ["edge"]),
        ("param p = 3 |", ["in"]),
        ("loss x = if any(urgent) |", ["and", "or", "then"]),
        ("loss |", []),
        ("# loss x = |", []),
    ],
)  # fmt: skip
def test_completion(marked: object, triage: str, typed: str, expected: list[str]) -> None:
    found = offered(marked, f"{triage}\n{typed}")
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("atom", ATOM_NAMES)
def test_arguments_are_offered_inside_every_atom(marked: object, triage: str, atom: str) -> None:
    declares_no_actions = atom == "worst"
    assert (offered(marked, f"{triage}\nloss x = {atom}(|") == []) == declares_no_actions


def test_statements_start_a_text_and_a_line(marked: object, triage: str) -> None:
    assert offered(marked, "|") == list(STATEMENTS)
    assert offered(marked, "cat|") == ["category", "categories"]
    assert set(offered(marked, triage + "\n|")) >= set(STATEMENTS)
    assert "labels" not in offered(marked, triage.rstrip() + " |")


def test_the_other_statements_may_be_half_typed_too(marked: object, triage: str) -> None:
    text = triage.replace("let mixed = any(skin.kind.benign)", "let mixed = any(skin.kind.")
    assert offered(marked, text + "\nloss x = sum(|") == ["workup"]
    assert "coherence" in offered(marked, text + "\nloss x = 3 + + |")


def test_many_labels_are_offered_in_part(marked: object) -> None:
    document, position = marked("labels 0..999\nloss l = any({ | })")  # type: ignore[operator]
    answer = completion(document, position)
    assert (len(answer["items"]), answer["isIncomplete"]) == (200, True)
    document, position = marked("labels 0..999\nloss l = any({ 77| })")  # type: ignore[operator]
    answer = completion(document, position)
    assert [x["label"] for x in answer["items"]][:3] == ["77", "770", "771"]
    assert not answer["isIncomplete"]


@pytest.mark.parametrize("typed", ["loss x = sum(|)", "loss x = |", "category C { | }", "loss x = any(skin.family.|)"])
def test_what_is_offered_can_be_written(marked: object, triage: str, typed: str) -> None:
    """Names of data and of things by themselves make a spec that parses; atoms still want their arguments."""
    document, position = marked(f"{triage}\n{typed}")  # type: ignore[operator]
    for item in completion(document, position)["items"]:
        new, at = item["textEdit"]["newText"], document.offset(position)
        if item["kind"] not in (3, 14):
            text = document.text[:at] + new + document.text[at:]
            found = diagnostics(Reader().read(text, document.folder))
            assert not [x for x in found if x["severity"] == 1], new


VISITS = """labels { gp, ward }
categories team { mobile: { gp }, hospital: { ward } }
input km in [0, 200]
costs fee per row in [1, 50]
costs queue of team per row in [0, 60]
loss l = sum(fee) + km * size + count(team, queue)
"""


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("inp|", ["input"]),
        ("input far |", ["in"]),
        ("costs c |", ["from", "per", "of"]),
        ("costs c per |", ["row"]),
        ("costs c per row |", ["in"]),
        ("costs c of team per |", ["row"]),
        ("loss x = sum(|", ["fee"]),
        ("loss x = count(team, |", ["queue"]),
        ("loss x = k|", ["km"]),
        ("loss x = if k|", ["km"]),
    ],
)
def test_inputs_are_offered(marked: object, typed: str, expected: list[str]) -> None:
    assert sorted(offered(marked, VISITS + typed)) == sorted(expected)


def test_inputs_are_found_where_they_are_declared_and_outlined(marked: object) -> None:
    from udcp_dsl.lsp.navigation import definition, symbols

    for old, new, line in (("km * size", "k|m * size", 2), ("sum(fee)", "sum(fe|e)", 3), (", queue", ", que|ue", 4)):
        document, position = marked(VISITS.replace(old, new, 1))  # type: ignore[operator]
        (place,) = definition(document, position)
        assert place["range"]["start"]["line"] == line
    outline = {x["name"]: x["detail"] for x in symbols(document)}
    assert outline["km"] == "input: a number per row in [0, 200]"
    assert outline["fee"] == "costs of 2 labels per row, in [1, 50]"
