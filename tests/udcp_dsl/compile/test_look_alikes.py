"""Names that look alike, and characters that change the order of a text, are warnings that name the code points."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import Diagnostic


def _warnings(text: str, **how: object) -> tuple[Diagnostic, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return udcp.loads(text, **how).warnings  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ("cat", "c\u0430t", "(U+0061 LATIN SMALL LETTER A) and 'c\u0430t' (U+0430 CYRILLIC SMALL LETTER A)"),
        ("cat", "cat\u200b", "'cat' and 'cat\\u200b' (U+200B ZERO WIDTH SPACE)"),
        ("caf\u00e9", "cafe\u0301", "(U+00E9 LATIN SMALL LETTER E WITH ACUTE) and 'cafe\u0301' (U+0065"),
        ("a-b", "a\u2013b", "(U+2013 EN DASH)"),
        ("a b", "a\u00a0b", "(U+00A0 NO-BREAK SPACE)"),
        ("A", "\uff21", "(U+FF21 FULLWIDTH LATIN CAPITAL LETTER A)"),
        ("\u0430", "a", "(U+0430 CYRILLIC SMALL LETTER A)"),
    ],
)
def test_labels_that_look_alike(first: str, second: str, named: str, tmp_path: Path) -> None:
    text = f'labels {{ "{first}", "{second}", dog }}  loss l = size'
    (found,) = _warnings(text)
    assert (found.code, found.severity) == ("W208", "warning")
    assert found.message.startswith("the labels '")
    assert found.message.endswith("look alike")
    assert named in found.message
    assert found.span.text in (f'"{first}"', f'"{second}"')
    (given,) = _warnings("loss l = size", labels=[first, second])
    (tmp_path / "x.csv").write_text(f"name\n{first}\n{second}\n", encoding="utf-8")
    (read,) = _warnings('labels from "x.csv"  loss l = size', folder=tmp_path)
    assert given.message == found.message
    if "\xa0" not in second:
        assert (read.message, read.span.text) == (found.message, 'labels from "x.csv"')


@pytest.mark.parametrize(
    "labels",
    ["a, A", "l, I, 1", "na\u00efve, naive", "m\u00b2, m2", "\u00e9, \u00e8", "\u0430, b", "\u03b1, \u03b2", "O, 0"],
)
def test_labels_that_do_not(labels: str) -> None:
    quoted = ", ".join(f'"{label}"' for label in labels.split(", "))
    assert _warnings(f"labels {{ {quoted} }}  loss l = size") == ()


def test_params_that_look_alike() -> None:
    (found,) = _warnings("labels { a, b }  param cost = 1  param c\u043est = 2  loss l = cost * c\u043est * size")
    assert (found.code, found.span.text) == ("W208", "c\u043est")
    assert found.message.startswith("the names 'cost' (U+006F LATIN SMALL LETTER O) and 'c\u043est' (U+043E CYRILLIC")


def test_characters_that_change_the_order() -> None:
    text = 'labels { a, "b\u202ec" }  # \u2066\nloss l = size'
    found = _warnings(text)
    assert [(x.code, x.span.text) for x in found] == [("W131", "\u202e"), ("W131", "\u2066")]
    assert found[0].message == "U+202E RIGHT-TO-LEFT OVERRIDE changes the order in which this text is shown"
    many = _warnings("labels { a }  # " + "\u202e" * 1000 + "\nloss l = size")
    assert len(many) == 20
