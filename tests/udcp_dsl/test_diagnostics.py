"""Which names are offered for one that is not known, and how diagnostics are rendered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.diagnostics import Diagnostic, Source, Span, SpecError, did_you_mean, nearest

NEAR = [
    ("chek", "check"),  # a letter left out
    ("wolff", "wolf"),  # one too many
    ("sise", "size"),  # another
    ("wieght", "weight"),  # two exchanged
    ("pest", "pets"),
    ("malingant", "malignant"),
    ("MELANOMA", "melanoma"),
    ("C", "c"),
    ("cc", "c"),
    ("log", "log1p"),  # cut short
    ("bba", "baba"),  # letters that repeat
    ("axaa", "aaaa"),
    ("cat", "p_cat"),  # with something before it
    ("prob.npy", "probs.npy"),
    ("basal cell carcinomas", "Basal-cell carcinoma"),
]

FAR = [
    ("weihgt", "within"),
    ("skn.csv", "fees.csv"),
    ("model", "help"),
    ("price", "spire"),
    ("cat", "act up"),
    ("dog", "god"),
    ("b", "a"),
    ("10", "1"),  # of numbers no other is nearly the one that was meant
    ("107", "17"),
    ("2024", "2023"),
]


@pytest.mark.parametrize(("name", "known"), NEAR)
def test_a_near_name_is_offered(name: str, known: str) -> None:
    assert nearest(name, ["frobnicate", known, "42"]) == [known]
    assert did_you_mean(name, ["frobnicate", known]) == f"did you mean {known!r}?"


@pytest.mark.parametrize(("name", "known"), FAR)
def test_a_far_fetched_name_is_not_offered(name: str, known: str) -> None:
    assert nearest(name, [known]) == []
    assert did_you_mean(name, [known]) == f"known: {known}"


@given(st.text("abcdefgh", min_size=4, max_size=12), st.data())
def test_one_slip_of_the_pen_is_forgiven(meant: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(meant) - 1))
    slip = data.draw(st.sampled_from(["", "x", meant[at] + "x"]))
    assert nearest(meant[:at] + slip + meant[at + 1 :], [meant, "1" * 12]) == [meant]


def test_the_likeliest_come_first_and_they_are_few() -> None:
    known = ["size4", "size3", "size2", "size1", "size"]
    assert nearest("sizes", known)[0] == "size"
    assert len(nearest("sizes", known)) == 3
    assert did_you_mean("sizes", []) == ""


def test_a_long_line_is_cut_around_the_fault() -> None:
    names = " ".join(f"x{i}," for i in range(2000))
    source = Source("long.loss", f"labels {{ {names} }}")
    start = source.text.index("x1000,")
    rows = Diagnostic("E210", Span(source, start, start + 5), "unknown").render().split("\n")
    excerpt, mark = rows[2].partition("| ")[2], rows[3].partition("| ")[2]
    assert len(excerpt) == 120
    assert (excerpt[:3], excerpt[-3:]) == ("...", "...")
    assert excerpt[mark.index("^") : mark.rindex("^") + 1] == "x1000"
    whole = Diagnostic("E210", Span(source, 0, len(source.text)), "unknown").render()
    assert max(map(len, whole.split("\n"))) < 140


def test_ends_of_a_long_line_are_marked_where_they_are() -> None:
    source = Source("long.loss", "a" + " " * 500 + "b")
    for at, name in ((0, "a"), (501, "b")):
        rows = Diagnostic("E210", Span(source, at, at + 1), "unknown").render().split("\n")
        assert rows[2][rows[3].index("^")] == name


def test_thousands_of_faults_on_one_line_give_a_short_message() -> None:
    names = ", ".join(f"unknown{i}" for i in range(8000))
    with pytest.raises(SpecError) as caught:
        udcp.loads(f"labels {{ a, b }}\nloss l = any({{ {names} }})")
    assert len(caught.value.diagnostics) == 8000
    assert len(str(caught.value)) < 30_000
    assert str(caught.value).endswith("... and 7,950 more")


def test_fixes_and_related_places_are_plain_data() -> None:
    with pytest.raises(SpecError) as caught:
        udcp.loads("labels { a, b }\nlet x = 1\nlet x = 2\nloss l = sizee")
    twice, unknown = (x.as_dict() for x in caught.value.diagnostics)
    place = {"line": 2, "column": 5, "end_line": 2, "end_column": 6}
    assert twice["related"] == [{**place, "message": "it is declared here first"}]
    edit = {"line": 4, "column": 10, "end_line": 4, "end_column": 15, "text": "size"}
    assert unknown["fixes"] == [{"title": "Write size", "edits": [edit]}]
