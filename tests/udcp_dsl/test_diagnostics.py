"""Which names are offered for one that is not known: near ones, and none rather than a far-fetched one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import did_you_mean, nearest

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
