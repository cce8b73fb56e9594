"""What is shown at a place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from udcp_dsl.language.words import ATOM_NAMES, RESERVED
from udcp_dsl.lsp import Reader, completion, hover
from udcp_dsl.lsp.describe import page
from udcp_dsl.lsp.navigation import symbols


def shown(marked: object, text: str, folder: Path | None = None) -> str:
    document, position = marked(text, folder) if folder is not None else marked(text)  # type: ignore[operator]
    found = hover(document, position)
    return "" if found is None else found["contents"]["value"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("coherence *", "coher|ence *", ["parameter = 2 in [0, 10]"]),
        ("costs workup", "costs work|up", ["costs of 45 labels, 0.2 to 6", "Stevens-Johnson syndrome: 6"]),
        ("hierarchy skin", "hierarchy sk|in", ["hierarchy of 45 labels: kind (4), family (16)", "benign (11)"]),
        ("skin.family", "skin.fam|ily", ["level 2: 16 nodes", "nevi (4)"]),
        ("kind.benign", "kind.ben|ign", ["node of skin, 11 labels", "lipoma"]),
        ("column workup_cost", "column workup|_cost", ["column of skin.csv, 45 rows"]),
        ('"skin.csv" column condition', '"sk|in.csv" column condition', ["45 rows", "workup_cost"]),
        ("loss triage", "loss tri|age", ["loss: set function", "| monotone | proved |", "| submodular | refuted |"]),
        ("let mixed", "let mi|xed", ["let: indicator"]),
        ("sum(workup)\n", "su|m(workup)\n", ["`sum(workup)`: set function", "| separable | proved |", "# sum"]),
        ("10 * mixed", "10 |* mixed", ["`10 * mixed`: set function", "values in [0, 10]"]),
        ("0.01 * size\n", "0.0|1 * size\n", ["number 0.01"]),
        ("distance tree", "distance tr|ee", ["distance along skin, at most 6"]),
    ],
)
def test_hover(marked: object, triage: str, old: str, new: str, expected: list[str]) -> None:
    text = shown(marked, triage.replace(old, new, 1))
    for part in expected:
        assert part in text


def test_the_meaning_comes_before_the_facts(marked: object, triage: str) -> None:
    text = shown(marked, triage.replace("+ diameter(tree)", "+ dia|meter(tree)", 1))
    assert text.startswith("# diameter\n\n`diameter(d)` is the largest distance")
    assert text.index("is the largest distance") < text.index("| monotone |") < text.index("## Mathematics")


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("param coher|ence", "hours for each family in the set"),
        ("let mi|xed", 'The worst answer of all: "it may be harmless, it may be cancer".'),
        ("loss tri|age", "What triage wants: few workups, few protocols, no mixed messages, near relatives."),
    ],
)
def test_the_comment_of_a_declaration_is_its_meaning(marked: object, triage: str, at: str, said: str) -> None:
    first, second, *_ = shown(marked, triage.replace(at.replace("|", ""), at, 1)).split("\n\n")
    assert first.startswith("**")
    assert second == said


def test_a_sign_of_comments_in_a_string_begins_none(marked: object) -> None:
    text = shown(marked, '# Above.\ncategory c| { "a # b" }\nlabels { "a # b", d }\nloss l = any(c)')
    assert text.split("\n\n")[1] == "Above."


def test_a_label_shows_its_costs_and_places(marked: object) -> None:
    text = shown(
        marked,
        "labels { a, b }\ncosts c { a: 3, b: 1 }\ncategories F { x: { a, b }, y: { a } }\n"
        "hierarchy h { n { a }, b }\nloss l = any({ |a })",
    )

    for line in ("- c: 3", "- F: x, y", "- h: n > a"):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    "text", ["a\r\n\r|", "# |", "|", "loss |l =", "lab|els {", 'labels from "|', "loss l = sum(|", "}|{", "\0|"]
)
def test_a_half_typed_text_is_no_trouble(marked: object, text: str) -> None:
    shown(marked, text)


def test_names_in_a_statement_that_does_not_parse(marked: object, triage: str) -> None:
    assert "parameter = 2" in shown(marked, triage + "\nlet y = coher|ence * (3 +\n")


@pytest.mark.parametrize("word", ATOM_NAMES)
def test_every_atom_has_its_page(word: str) -> None:
    assert page(word).startswith(f"# {word}")


def test_pages_link_to_nothing_that_an_editor_would_not_find() -> None:
    linked = (Path(__file__).parents[3] / "specs/reference/distances.md").read_text(encoding="utf-8")
    assert "[`diameter`](diameter.md)" in linked
    assert "`diameter`, `spread` and `radius` take" in page("distance").replace("\n", " ")
    assert [word for word in sorted({*ATOM_NAMES, *RESERVED}) if re.search(r"\]\((?!https?:)", page(word))] == []


def test_words_have_pages_or_none() -> None:
    assert {word for word in RESERVED if not page(word)} <= {"of", "edge", "default", "in", "then", "else"}


ROWS = """labels { a, b, c }
categories team { x: { a, b }, y: { c } }
input km in [0, 200]
costs fee per row in [0, 500]
costs queue of team per row in [0, 600]
limit slots: any(team.x) <= 0.1
let far = km > 50
loss bill in hours = sum(fee) + count(team, queue) + 0.1 * km * size + (if far then 1 else 0) * size
"""


def test_every_place_of_a_spec_with_inputs_and_limits_is_answered() -> None:
    document = Reader().read(ROWS)
    assert [x["name"] for x in symbols(document)] == [
        "labels", "team", "km", "fee", "queue", "slots", "far", "bill"
    ]  # fmt: skip
    found = [hover(document, document.lines.position(offset)) for offset in range(len(ROWS))]
    told = "\n".join(x["contents"]["value"] for x in found if x is not None)
    for said in (
        "**km** input: a number per row in [0, 200]",
        "**fee** costs of 3 labels per row, in [0, 500]",
        "**queue** costs of the 2 categories of team per row, in [0, 600]",
        "**slots** limit: any(team.x) <= 0.1",
    ):
        assert said in told
    at_km = document.lines.position(ROWS.index("km > 50"))
    assert "km" in {x["label"] for x in completion(document, at_km)["items"]}


VISITS = """labels { gp, nurse, ward }
categories team { mobile: { gp, nurse }, hospital: { ward } }
input km in [0, 200]
costs fee per row in [1, 50]
costs queue of team per row in [0, 60]
loss l = sum(fee) + 0.1 * km * any(team.mobile) + count(team, queue) + 2 * (km > 50)
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("input km", "in|put km", ["# input and per row", "a number that is given with each row"]),
        ("input km", "input k|m", ["**km** input: a number per row in [0, 200]", "a column `km` of the table"]),
        ("* km", "* k|m", ["**km** input: a number per row in [0, 200]", "`inputs=` in Python"]),
        ("costs fee", "costs fe|e", ["**fee** costs of 3 labels per row, in [1, 50]", "a column of lists `fee`"]),
        ("sum(fee)", "sum(fe|e)", ["**fee** costs of 3 labels per row, in [1, 50]"]),
        ("costs queue", "costs que|ue", ["**queue** costs of the 2 categories of team per row, in [0, 60]"]),
        ("fee per", "fee pe|r", ["# input and per row"]),
        ("per row", "per ro|w", ["# input and per row"]),
        ("0.1 * km", "0.1 |* km", ["set function", "values in [0, 20]", "| monotone | proved |"]),
        ("km > 50", "km |> 50", ["row indicator"]),
        ("labels { gp", "labels { |gp", ["- fee: given with each row, 1 to 50", "- team: mobile"]),
    ],
)
def test_inputs_are_explained_where_they_stand(marked: object, old: str, new: str, expected: list[str]) -> None:
    text = shown(marked, VISITS.replace(old, new, 1))
    for part in expected:
        assert part in text


def test_a_name_that_is_per_or_row_is_no_word_of_the_language(marked: object) -> None:
    text = shown(marked, "labels { a, b }  param per = 2  loss l = p|er * size")
    assert "parameter = 2" in text
    assert "# input and per row" not in text
