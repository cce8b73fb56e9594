"""What every syntax mistake is told: the code, the sentence, what is underlined, and the way out."""

from __future__ import annotations

import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import Diagnostic, Source, SpecError
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse


def faults_of(text: str) -> list[Diagnostic]:
    return parse(Source("test.loss", text))[1]


MISTAKES = [
    # Characters and strings
    ('labels { "a }', "E103", "this string has no closing quote", '"a }'),
    ('labels { "a\n", b }', "E103", "this string has no closing quote", '"a'),
    ('labels from "data\\skin.csv"', "E104", "'\\s' is not an escape", "\\s"),
    ('labels { "a\tb" }', "E104", "a string cannot contain the character U+0009", "\t"),
    ('labels { "\udc80" }', "E104", "a string cannot contain the character U+DC80", "\udc80"),
    ('labels { "\\ud800" }', "E104", "'\\ud800' is half of a surrogate pair", "\\ud800"),
    ("loss a = size @ 2", "E105", "the character '@' has no meaning here", "@"),
    ("loss a =\u00a0size", "E105", "the character U+00A0 has no meaning here", "\u00a0"),
    ("labels { 'a', b }", "E106", "enclose strings in straight double quotes", "'a'"),
    ("labels { 'a, b }", "E106", "enclose strings in straight double quotes", "'"),
    ("labels { \u201ca b\u201d }", "E106", "enclose strings in straight double quotes", "\u201ca b\u201d"),
    ("loss a = i && j", "E106", "'&&' is not part of this language", "&&"),
    ("loss a = i || j", "E106", "'||' is not part of this language", "||"),
    ("loss a = !i", "E106", "'!' is not part of this language", "!"),
    ("loss a = size != 2", "E106", "'!=' is not part of this language", "!="),
    ("loss a = size ** 2", "E106", "'**' is not part of this language", "**"),
    ("loss a = size \u2265 2", "E106", "'\u2265' is not part of this language", "\u2265"),
    ("loss a = size; let b = 2", "E106", "';' is not part of this language", ";"),
    ("loss a = size // why", "E106", "'//' does not start a comment here", "// why"),
    # Brackets
    ("labels { a, b", "E108", "'{' is never closed", "{"),
    ("labels { a, b\ncosts c { a: 1 }", "E108", "'{' is never closed", "{"),
    ("hierarchy h { a { b, c }, d { e\nloss l = size", "E108", "'{' is never closed", "{"),
    ("loss a = max((size + 1, 2)", "E108", "'(' is never closed", "("),
    ("loss a = any({ x, y)", "E108", "'{' is never closed", "{"),
    ("labels a, b }", "E109", "'}' closes nothing", "}"),
    ("loss a = size)", "E109", "')' closes nothing", ")"),
    # Numbers and labels
    ("loss a = .5 * size", "E110", "'.5' is not a number here", ".5"),
    ("loss a = 1. * size", "E110", "'1.' is not a number here", "1."),
    ("loss a = 1.2.3", "E110", "'1.2.3' is not a number here", "1.2.3"),
    ("costs c { a: 007 }", "E110", "'007' is not a number here", "007"),
    ("costs c { a: 1,5 }", "E110", "'1,5' is not a number here", "1,5"),
    ("param p = 1_000", "E110", "'1_000' is not a number here", "1_000"),
    ("param p = 1e999", "E110", "1e999 is too large for a number", "1e999"),
    ("costs c { a: 1, b: 1e-999, c: 2 }", "E110", "1e-999 is too small for a number", "1e-999"),
    ("labels { 007 }", "E111", "a label with leading zeros must be quoted", "007"),
    ("labels { a, 3px }", "E111", "a label that starts with '3' must be quoted", "3px"),
    ("labels { a, basal-cell, b }", "E111", "a label that contains '-' must be quoted", "basal-cell"),
    ("costs c { b/c: 1 }", "E111", "a label that contains '/' must be quoted", "b/c"),
    ("labels { 0.5, 1.5 }", "E111", "a label that contains '.' must be quoted", "0.5"),
    ("labels { 5., 6 }", "E120", "expected ',' or '}' after '5'", "."),
    ('labels from "f" column skin-type', "E111", "a name that contains '-' must be quoted", "skin-type"),
    # Names and statements
    ("loss sum = size", "E112", "'sum' is the name of an atom and cannot name a declaration", "sum"),
    ("let sqrt = 1", "E112", "'sqrt' is the name of a function and cannot name a declaration", "sqrt"),
    ("category costs { a }", "E112", "'costs' is a word of the language and cannot name a declaration", "costs"),
    ('category "x" { a }', "E112", '"x" cannot name a declaration', '"x"'),
    ("loss my-loss = size", "E112", "a declared name cannot contain '-'", "my-loss"),
    ("labls { a, b }", "E113", "unknown statement 'labls'", "labls"),
    ("coherence = 2", "E113", "unknown statement 'coherence'", "coherence"),
    ("{ a, b }", "E113", "a statement cannot start with '{'", "{"),
    ("let a = size\nlos b = 2", "E113", "unknown statement 'los'", "los"),
    ("loss a = size 2", "E114", "expected an operator or a new statement after 'size'", "2"),
    ('costs c from "f" colum d', "E114", "expected 'column', 'by' or a new statement after '\"f\"'", "colum"),
    ('hierarchy h from "f" levels a b', "E114", "expected ',', 'by' or a new statement after 'a'", "b"),
    ("labels { a } b", "E114", "expected a new statement after '}'", "b"),
    # Operators
    ("loss a = 1 < size < 3", "E115", "comparisons do not chain", "<"),
    ("loss a = size = 3", "E116", "'=' is for declarations", "="),
    ("loss a == size", "E116", "a declaration is written with '=', not '=='", "=="),
    ("param p: 2", "E116", "a declaration is written with '=', not ':'", ":"),
    ("costs c { a = 1 }", "E116", "expected ':' and a cost after 'a'", "="),
    ("labels { basal cell }", "E117", "expected ',' or '}' after 'basal'", "cell"),
    ("costs c { a: 1 b: 2 }", "E117", "expected ',' or '}' after '1'", "b"),
    ("loss a = if i then 1", "E118", "this 'if' has no 'else'", "if"),
    ("loss a = max(if i, 2)", "E118", "this 'if' has no 'then'", "if"),
    ("loss a = 1 if i else 2", "E118", "'if' cannot follow a value", "if"),
    ("loss a = if i then 1 elif j then 2 else 3", "E118", "there is no 'elif' in this language", "elif"),
    ('labels from "f" levels a', "E119", "'labels' from a file takes no 'levels'", "levels"),
    ('distance d from "f" by a', "E119", "'distance' from a file takes no 'by'", "by"),
    ('costs c from "f" by a column b by d', "E119", "a second 'by'", "by"),
    # What was expected
    ("labels { a,, b }", "E120", "expected a label or '}' after ','", ","),
    ("labels a, b", "E120", "expected '{', a range such as 0..99 or 'from' after 'labels'", "a"),
    ("labels from skin.csv", "E120", "expected a file name in double quotes after 'from'", "skin"),
    ('labels from "f" column', "E120", "expected the name of a column after 'column'", "column"),
    ("costs urgency { melanoma }", "E120", "expected ':' and a cost after 'melanoma'", "}"),
    ("costs c { a: x }", "E120", "expected a number after ':'", "x"),
    ("costs c { a: 1, default 0 }", "E120", "expected ':' and a cost after 'default'", "0"),
    ("categories F { a, b }", "E120", "expected ':' and its labels after 'a'", ","),
    ("categories F { a: b }", "E120", "expected '{' after ':'", "b"),
    ("hierarchy { a }", "E120", "expected a name after 'hierarchy'", "{"),
    ("distance d = 3", "E120", "expected 'path(...)' after '='", "3"),
    ("distance d of F = path(h)", "E120", "expected 'from' after 'F'", "="),
    ("distance d of F { a: 1 }", "E120", "expected 'from' after 'F'", "{"),
    ("param p = 2 in 0, 3", "E120", "expected '[' after 'in'", "0"),
    ("loss a =", "E120", "expected an expression after '='", "="),
    ("loss a = size + * 2", "E120", "expected an expression after '+'", "*"),
    ("loss a = size + not i", "E120", "expected an expression after '+'", "not"),
    ("loss a = { x }", "E120", "expected an expression after '='", "{"),
    ("loss a = 0.5(size)", "E120", "expected an operator after '0.5'", "("),
    ("loss a = max(size 2)", "E120", "expected an operator, ',' or ')' after 'size'", "2"),
    ("loss a = any(h.kind.)", "E120", "expected a category, level or node after 'h.kind.'", ")"),
    ("loss a = if i 1 else 2", "E120", "expected an operator or 'then' after 'i'", "1"),
    # Atoms, ranges and the rest
    ("loss a = summ(c)", "E121", "there is no atom or function 'summ'", "summ"),
    ("loss a = path(h)", "E121", "'path' is not an expression", "path"),
    ("loss a = any(node(x))", "E121", "there is no atom or function 'node'", "node"),
    ("category C { }", "E122", "there is nothing between '{' and '}'", "{ }"),
    ("loss a = size()", "E122", "there is nothing between '(' and ')'", "()"),
    ("loss a = any(h.leaf(x))", "E123", "'leaf(...)' is not a part of a reference", "leaf"),
    ("loss a = true", "E124", "there is no 'true' in this language", "true"),
    ("labels { a..c }", "E125", "a range needs whole numbers at both ends", ".."),
    ("labels 00..99", "E125", "a range needs whole numbers at both ends", "00"),
    ("labels { 9..1 }", "E125", "the range 9..1 runs backwards", "9..1"),
    ("labels 0..9999999", "E125", "the range 0..9999999 is too long", "0..9999999"),
    ("costs c { default: 0, a: 1, default: 1 }", "E126", "a second default", "default"),
]

WAYS_OUT = [
    ("loss a = .5", "write 0.5"),
    ("loss a = 1.", "write 1 or 1.0"),
    ("param p = 1_000", "write 1000"),
    ("costs c { a: 1,5 }", "write 1.5"),
    ("labels { 007 }", 'write "007"'),
    ("labels { a-b }", 'write "a-b"'),
    ("labels { 'a b' }", 'write "a b"'),
    ("labels { a b }", 'put a comma between them, or quotes around a label of several words: "a b"'),
    ("labels { a\n b }", "put a comma between them"),
    ("labels from skin.csv column c", 'write from "skin.csv"'),
    ("labels form skin.csv", "did you mean 'from'?"),
    ("labls { a }", "did you mean 'labels'?"),
    ("p = 2", "declare it: param p = ... for a number, let p = ... for an expression"),
    ("loss a = 1 < 2 < 3", "write a < b and b < c"),
    ("loss a = b = c", "compare with '=='"),
    ("loss a = b != c", "write not (a == b) for 'not equal'"),
    ("loss a = b && c", "write 'and'"),
    ("loss a = !b", "write 'not'"),
    ("loss a = b ** 2", "write '^' for a power"),
    ("loss a = b // c", "start comments with '#'"),
    ("loss a = size()", "write what it applies to between them, or leave them out if it applies to the whole set"),
    ("loss a = log(size)", "did you mean 'log1p'?"),
    ("loss a = b + not c", "put it in parentheses: (not ...)"),
    ("loss my-loss = 1", "write my_loss"),
    ("labels { a\nlet b = 1", "add '}' before the 'let' of line 2"),
    ("loss a = if b then c", "write: if i then e else f; 'else 0' adds nothing"),
    ('costs c from "f" levels a', "it takes 'column' and 'by'"),
]


@pytest.mark.parametrize(("text", "code", "message", "underlined"), MISTAKES)
def test_mistakes(text: str, code: str, message: str, underlined: str) -> None:
    (fault,) = faults_of(text)
    assert (fault.code, fault.message, fault.span.text) == (code, message, underlined)
    assert fault.help
    fault.render()


@pytest.mark.parametrize(("text", "way_out"), WAYS_OUT)
def test_ways_out(text: str, way_out: str) -> None:
    assert [fault.help for fault in faults_of(text)] == [way_out]


def test_all_faults_of_a_file_in_one_run_and_in_order() -> None:
    text = """labls { a, b }
let i = any(C
costs c { a: 1, b 2 }
loss one = size +
let ok = size
hierarchy h { a { b } c }
loss two = 'x' && size
category D { a }
lss three = 3
"""
    spec, faults = parse(Source("test.loss", text))
    assert [(str(f.span), f.code) for f in faults] == [
        ("test.loss:1:1", "E113"),
        ("test.loss:2:12", "E108"),
        ("test.loss:3:19", "E120"),
        ("test.loss:4:17", "E120"),
        ("test.loss:6:23", "E117"),
        ("test.loss:7:12", "E106"),
        ("test.loss:7:16", "E106"),
        ("test.loss:9:1", "E113"),
    ]
    assert [d.name.text for d in spec.declarations if not isinstance(d, ast.Labels)] == ["ok", "D"]


def test_a_statement_before_an_unknown_one_is_kept() -> None:
    spec, faults = parse(Source("test.loss", "let a = size\nlos b = 2\nlet c = 3"))
    assert [f.code for f in faults] == ["E113"]
    assert [type(d) for d in spec.declarations] == [ast.Let, ast.Let]


@pytest.mark.parametrize(
    "text",
    [
        "loss l = size\nforbid any({ a })",
        "loss l = size\nforbid { a, b }",
        "labels { a, b }\nforbid a",
        "param p = 2\nforbid a, b",
        'labels from "pets.csv" column name\nforbid "x"',
    ],
)
def test_an_unknown_statement_is_named_with_those_there_are(text: str) -> None:
    (fault,) = faults_of(text)
    assert (fault.code, fault.message, fault.span.text) == ("E113", "unknown statement 'forbid'", "forbid")
    assert fault.help.startswith("statements start with labels, hierarchy,")


@pytest.mark.parametrize(
    "text", ["loss l = size\nany({ a })", "loss l = size\n  c * 2", 'labels from "a.csv"\ncolum k']
)
def test_an_operand_and_a_clause_on_a_new_line_are_no_statement(text: str) -> None:
    assert [x.code for x in faults_of(text)] == ["E114"]


def test_an_unknown_function_does_not_hide_other_faults() -> None:
    text = "labels { a, b }\nhierarchy h { x { a }, b }\n"
    text += "loss l = foo(h.x, (2)) + count(h.famly) + 2 * bar(1) + any({ c }) * foo"
    with pytest.raises(SpecError) as caught:
        udcp.loads(text)
    assert [x.code for x in caught.value.diagnostics] == ["E121", "E213", "E121", "E210"]


def test_many_unknown_functions_are_not_parsed_one_by_one() -> None:
    found = faults_of("labels { a }\nloss l = " + " + ".join(f"f{i}(2)" for i in range(200)))
    assert [x.code for x in found] == ["E121"] * 20
