"""What a name is, is decided once: the grammar, the declarations and canonical text agree with `is_name`."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.diagnostics import Source
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.language.unparse import name_text, unparse
from udcp_dsl.language.words import CALLED, KEYWORDS, RESERVED, is_bare, is_name

# Word characters of all kinds, and a few of each kind of sign and space.
WORDS = st.text(st.characters(categories=("L", "M", "N", "Pc")), min_size=1, max_size=5)
TEXTS = st.text(min_size=1, max_size=4)

NAMES = ["a", "_", "größe", "हिन्दी", "தமிழ்", "a٣", "漢字", "K", "size", "loss", "default", "size\u093f", "true"]
NO_NAMES = [
    "²",  # found by hypothesis: a word character of re, but no identifier
    "x²",
    "½",
    "٣",  # a digit of another script
    "٣a",
    "\u00aa",  # found by hypothesis: an identifier, but NFKC makes it a
    "\u2167",
    "\ufb01le",
    "\u212a",  # the sign of Kelvin, which looks like K
    "e\u0301",  # two characters for é
    "\uff53\uff49\uff5a\uff45",
    "\u0301",
    "\u0301a",
    "\u037a",
    "a\u00b7b",
    "\u00b7",
    "a\u200db",
    "→",
    "\ufeff",
    "\u202ea",
    "3px",
]


def with_examples(texts: list[str]):  # type: ignore[no-untyped-def]
    def add(test):  # type: ignore[no-untyped-def]
        for text in texts:
            test = example(text)(test)
        return test

    return add


def declarations(text: str) -> tuple[ast.Declaration, ...] | None:
    spec, faults = parse(Source("test.loss", text))
    return None if faults else spec.declarations


@pytest.mark.parametrize("text", NAMES)
def test_names(text: str) -> None:
    assert is_name(text)
    assert is_bare(text)


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_is_no_name(text: str) -> None:
    assert not is_name(text)
    assert not is_bare(text)


@with_examples([*NAMES, *NO_NAMES])
@given(WORDS | TEXTS | st.sampled_from(sorted(RESERVED)))
def test_the_grammar_agrees(text: str) -> None:
    if "\ufeff" in text or "#" in text or text.strip(" \t\r\n\f") != text:
        return  # not a text of its own: a byte-order mark, a comment, blanks
    found = declarations(f"let {text} = 1")
    named = found is not None and len(found) == 1 and getattr(found[0], "name", None) == _name(text)
    assert named == (is_name(text) and text not in RESERVED)
    found = declarations(f"category C {{ {text} }}")
    assert (found == (ast.Category(_name("C"), (_name(text),), span=_NOWHERE),)) == is_bare(text)


@with_examples([*NAMES, *NO_NAMES])
@given(WORDS | TEXTS)
def test_every_text_is_a_label_once_it_is_written(text: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in text):
        return
    (labels,) = declarations(f"labels {{ first, {name_text(text)}, last }}") or (None,)
    assert isinstance(labels, ast.Labels)
    assert labels.body == (_name("first"), _name(text), _name("last"))
    assert unparse(ast.Spec((labels,), span=_NOWHERE)) == f"labels {{ first, {name_text(text)}, last }}\n"


@given(st.tuples(WORDS, WORDS))
def test_names_that_differ_do_not_look_alike(pair: tuple[str, str]) -> None:
    one, other = (unicodedata.normalize("NFKC", text) for text in pair)
    if is_name(pair[0]) and is_name(pair[1]):
        assert (pair[0] == pair[1]) == (one == other)


@pytest.mark.parametrize("word", sorted({*CALLED, *KEYWORDS}))
def test_a_reserved_word_in_other_letters_is_no_way_round(word: str) -> None:
    wide = "".join(chr(ord(c) - 0x20 + 0xFF00) for c in word)
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(f"labels {{ a }}  let {wide} = 1  loss l = size")
    fault = caught.value.diagnostics[0]
    assert fault.code == "E127"
    assert fault.help == f"write {word}; quote a label or column that has this spelling"


def test_a_declaration_with_a_wrong_name_is_still_one() -> None:
    # It was "unknown statement 'hierarchy'; did you mean 'hierarchy'?"
    _, faults = parse(Source("test.loss", 'labels { a }\ncosts c from "c.csv" by k hierarchy ² from "h.csv" levels a'))
    assert [(fault.code, fault.span.text) for fault in faults] == [("E105", "²")]


_NOWHERE = parse(Source("", ""))[0].span


def _name(text: str) -> ast.Name:
    return ast.Name(text, span=_NOWHERE)
