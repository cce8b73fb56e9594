"""The front end: what parses, what every syntax mistake is told, and that no input whatever makes it fail."""

from __future__ import annotations

import doctest
import hashlib
import json
import pkgutil
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udcp_dsl.parse
from udcp_dsl import ast
from udcp_dsl.diagnostics import Diagnostic, Source, Span, SpecError
from udcp_dsl.parse import parse, read_source
from udcp_dsl.scan import STATEMENTS

NOWHERE = Span(Source("", ""), 0, 0)


def faults_of(text: str) -> list[Diagnostic]:
    return parse(Source("test.loss", text))[1]


def declared(text: str) -> tuple[ast.Declaration, ...]:
    spec, faults = parse(Source("test.loss", text))
    assert faults == []
    return spec.declarations


def body_of(expression: str) -> ast.Expr:
    (let,) = declared(f"let x = {expression}")
    assert isinstance(let, ast.Let)
    return let.body


def name(text: str) -> ast.Name:
    return ast.Name(text, span=NOWHERE)


def number(value: float) -> ast.Number:
    return ast.Number(value, span=NOWHERE)


def ref(head: str, *parts: ast.Name | ast.Indexed) -> ast.Ref:
    return ast.Ref(name(head), parts, span=NOWHERE)


def signed(value: float) -> ast.Signed:
    return ast.Signed(value, span=NOWHERE)


# What parses ---------------------------------------------------------------------------------------------------------


def test_every_kind_of_declaration() -> None:
    text = """
        labels from "skin.csv" column "the condition"   # a comment, with "quotes" and { braces
        hierarchy h { benign { nevus, 7, "7 b" }, 0..9, melanoma, }
        hierarchy g from "skin.csv" levels kind, 2, "a b" by condition
        costs c { a: 1, "b": -2.5, 0..9: +1e-3, "default": 3, default: 0 }
        costs w of h.kind from "w.json"
        distance d from "d.npy"
        distance t = path(h, edge: 0.5)
        distance u = path(h)
        category C { a }
        categories F { c: { a, b }, "d e": { 3..4 }, }
        actions u2 from "u.csv" by label
        param p = -2.0 in [-10, 1e1]
        param q = 3
        let i = any(C)
        loss l = i
    """
    assert declared(text) == (
        ast.Labels(ast.File("skin.csv", name("the condition"), span=NOWHERE), span=NOWHERE),
        ast.Hierarchy(
            name("h"),
            (
                ast.Branch(name("benign"), (name("nevus"), name("7"), name("7 b")), span=NOWHERE),
                ast.Range(0, 9, span=NOWHERE),
                name("melanoma"),
            ),
            span=NOWHERE,
        ),
        ast.Hierarchy(
            name("g"),
            ast.File("skin.csv", None, name("condition"), (name("kind"), name("2"), name("a b")), span=NOWHERE),
            span=NOWHERE,
        ),
        ast.Costs(
            name("c"),
            None,
            (
                ast.CostEntry(name("a"), signed(1), span=NOWHERE),
                ast.CostEntry(name("b"), signed(-2.5), span=NOWHERE),
                ast.CostEntry(ast.Range(0, 9, span=NOWHERE), signed(1e-3), span=NOWHERE),
                ast.CostEntry(name("default"), signed(3), span=NOWHERE),
            ),
            signed(0),
            span=NOWHERE,
        ),
        ast.Costs(name("w"), ref("h", name("kind")), ast.File("w.json", span=NOWHERE), span=NOWHERE),
        ast.Distance(name("d"), ast.File("d.npy", span=NOWHERE), span=NOWHERE),
        ast.Distance(name("t"), ast.Path(name("h"), signed(0.5), span=NOWHERE), span=NOWHERE),
        ast.Distance(name("u"), ast.Path(name("h"), None, span=NOWHERE), span=NOWHERE),
        ast.Category(name("C"), (name("a"),), span=NOWHERE),
        ast.Categories(
            name("F"),
            (
                ast.Member(name("c"), (name("a"), name("b")), span=NOWHERE),
                ast.Member(name("d e"), (ast.Range(3, 4, span=NOWHERE),), span=NOWHERE),
            ),
            span=NOWHERE,
        ),
        ast.Actions(name("u2"), ast.File("u.csv", None, name("label"), span=NOWHERE), span=NOWHERE),
        ast.Param(name("p"), signed(-2), signed(-10), signed(10), span=NOWHERE),
        ast.Param(name("q"), signed(3), span=NOWHERE),
        ast.Let(name("i"), ast.Call("any", (ref("C"),), span=NOWHERE), span=NOWHERE),
        ast.LossDecl(name("l"), ref("i"), span=NOWHERE),
    )


@pytest.mark.parametrize(
    ("written", "grouped"),
    [
        ("-a ^ 2", "-(a ^ 2)"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("2 ^ -1", "2 ^ (-1)"),
        ("2 ^ -a ^ b", "2 ^ (-(a ^ b))"),
        ("a * -b", "a * (-b)"),
        ("-a * b", "(-a) * b"),
        ("a + b * c", "a + (b * c)"),
        ("a < b + c", "a < (b + c)"),
        ("not a < b", "not (a < b)"),
        ("not a and b", "(not a) and b"),
        ("a or b and c", "a or (b and c)"),
        ("1 + if a then b else c", "1 + (if a then b else c)"),
        ("if a then b else c + d", "if a then b else (c + d)"),
        ("if a then b else c or d", "if a then b else (c or d)"),
        ("1 - if a then b else c - d", "1 - (if a then b else (c - d))"),
        ("if a then if b then c else d else e", "if a then (if b then c else d) else e"),
        ("if a or b then c else if d then e else f", "if (a or b) then c else (if d then e else f)"),
        ("-if a then b else c ^ 2", "-(if a then b else (c ^ 2))"),
        ("not if a then b else c and d", "not (if a then b else (c and d))"),
    ],
)
def test_precedence(written: str, grouped: str) -> None:
    assert body_of(written) == body_of(grouped)


def test_parentheses_are_kept_apart_from_length() -> None:
    assert body_of("(a + b) + c") != body_of("a + b + c")
    assert body_of("a - (b - c)") == ast.Sum(
        ((1, ref("a")), (-1, ast.Sum(((1, ref("b")), (-1, ref("c"))), span=NOWHERE))), span=NOWHERE
    )
    assert body_of("a / b * c") == ast.Product((("*", ref("a")), ("/", ref("b")), ("*", ref("c"))), span=NOWHERE)


def test_references() -> None:
    node = ast.Indexed("node", name("x y"), span=NOWHERE)
    level = ast.Indexed("level", name("2"), span=NOWHERE)
    assert body_of('h.node("x y")') == ref("h", node)
    assert body_of("h . level ( 2 )") == ref("h", level)
    assert body_of("F.1") == ref("F", name("1"))
    assert body_of("h.1.2") == ref("h", name("1"), name("2"))
    assert body_of('h."Kind of lesion"."basal cell"') == ref("h", name("Kind of lesion"), name("basal cell"))
    assert body_of("h.node.level") == ref("h", name("node"), name("level"))


def test_words_end_at_word_boundaries() -> None:
    assert body_of("sizes + android") == ast.Sum(((1, ref("sizes")), (1, ref("android"))), span=NOWHERE)
    assert body_of("size+2") == ast.Sum(((1, ast.Call("size", None, span=NOWHERE)), (1, number(2))), span=NOWHERE)
    assert declared("labels { fromage, byte, älter, _x1 }") == (
        ast.Labels((name("fromage"), name("byte"), name("älter"), name("_x1")), span=NOWHERE),
    )
    assert [f.message for f in faults_of("let x = a andb")] == ["expected an operator or a new statement after 'a'"]


@pytest.mark.parametrize("word", sorted(ast.RESERVED))
def test_reserved_words_name_data_but_not_declarations(word: str) -> None:
    quoted = '"default"' if word == "default" else word
    text = f"""
        labels {{ {word}, a }}   labels from "f" column {word}
        hierarchy h {{ {word} {{ a }}, {word} }}   hierarchy g from "f" levels {word}, a, {word} by {word}
        costs c {{ {quoted}: 1, a: 2 }}   costs w of h.{word} {{ {quoted}: 1 }}
        category C {{ a, {word} }}   categories F {{ {word}: {{ {word} }} }}
        let x = count(h.{word}) + any(h.kind.{word}) + any(h.node({word})) + any({{ {word}, a }})
    """
    assert len(declared(text)) == 9
    for keyword, rest in (
        ("loss", "= 1"),
        ("let", "= 1"),
        ("param", "= 1"),
        ("category", "{ a }"),
        ("actions", "from 1"),
    ):
        (fault,) = faults_of(f"{keyword} {word} {rest}")
        assert (fault.code, fault.span.text) == ("E112", word)


@pytest.mark.parametrize("word", [*STATEMENTS, "column", "by"])
def test_a_column_may_have_any_name_at_the_end_of_a_statement(word: str) -> None:
    text = f'costs c from "f" column {word}\nhierarchy h from "f" levels a, {word}\nlabels from "f" column {word}\nlet x = 1'
    assert [type(d) for d in declared(text)] == [ast.Costs, ast.Hierarchy, ast.Labels, ast.Let]


def test_positions() -> None:
    text = "labels { a, b,\r\n c }\r\nloss l = 2 * (size + sum(c)) # done"
    labels, loss = declared(text)
    assert isinstance(labels, ast.Labels)
    assert isinstance(loss, ast.LossDecl)
    assert not isinstance(labels.body, ast.File)
    assert isinstance(loss.body, ast.Product)
    assert labels.span.text == "labels { a, b,\r\n c }"
    assert [item.span.text for item in labels.body] == ["a", "b", "c"]
    assert loss.span.text == "loss l = 2 * (size + sum(c))"
    assert str(loss.name.span) == "test.loss:3:6"
    assert [factor.span.text for _, factor in loss.body.factors] == ["2", "(size + sum(c))"]


@pytest.mark.parametrize("keys", [["a", "b7", "12", "loss", "ä"], ["a"], ["a", "default", "x y", "b", "c"]])
@pytest.mark.parametrize("between", [" ", "", "\n", " # why\n"])
def test_lists_in_runs_and_one_by_one_agree(keys: list[str], between: str) -> None:
    bare = re.compile(r"(?!default$)\w+")
    written = [key if bare.fullmatch(key) else f'"{key}"' for key in keys]
    comma = between + "," + between
    text = "labels {" + comma.join(written) + "}  costs c {" + comma.join(f"{k}{between}: -0.5" for k in written) + ",}"
    labels, costs = declared(text)
    assert labels == ast.Labels(tuple(map(name, keys)), span=NOWHERE)
    entries = tuple(ast.CostEntry(name(key), signed(-0.5), span=NOWHERE) for key in keys)
    assert costs == ast.Costs(name("c"), None, entries, span=NOWHERE)
    assert isinstance(costs, ast.Costs)
    assert not isinstance(costs.body, ast.File)
    assert [entry.key.span.text for entry in costs.body] == written
    assert {entry.value.span.text for entry in costs.body} == {"-0.5"}


# What does not -------------------------------------------------------------------------------------------------------

MISTAKES = [
    # Characters and strings
    ('labels { "a }', "E103", "this string has no closing quote", '"a }'),
    ('labels { "a\n", b }', "E103", "this string has no closing quote", '"a'),
    ('labels from "data\\skin.csv"', "E104", "'\\s' is not an escape", "\\s"),
    ('labels { "a\tb" }', "E104", "a string cannot hold the control character U+0009", "\t"),
    ('labels { "\\ud800" }', "E104", "'\\ud800' is half a character", "\\ud800"),
    ("loss a = size @ 2", "E105", "the character '@' has no meaning here", "@"),
    ("loss a =\u00a0size", "E105", "the character U+00A0 has no meaning here", "\u00a0"),
    ("labels { 'a', b }", "E106", "strings stand between straight double quotes", "'a'"),
    ("labels { \u201ca b\u201d }", "E106", "strings stand between straight double quotes", "\u201ca b\u201d"),
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
    ("labels { 007 }", "E111", "a label with leading zeros is quoted", "007"),
    ("labels { a, 3px }", "E111", "a label that starts with '3' is quoted", "3px"),
    ("labels { a, basal-cell, b }", "E111", "a label with '-' is quoted", "basal-cell"),
    ("costs c { b/c: 1 }", "E111", "a label with '/' is quoted", "b/c"),
    ("labels { 0.5, 1.5 }", "E111", "a label with '.' is quoted", "0.5"),
    ('labels from "f" column skin-type', "E111", "a name with '-' is quoted", "skin-type"),
    # Names and statements
    ("loss sum = size", "E112", "'sum' is the name of an atom and cannot name a declaration", "sum"),
    ("let sqrt = 1", "E112", "'sqrt' is the name of a function and cannot name a declaration", "sqrt"),
    ("category costs { a }", "E112", "'costs' is a word of the language and cannot name a declaration", "costs"),
    ('category "x" { a }', "E112", '"x" cannot name a declaration', '"x"'),
    ("loss my-loss = size", "E112", "a declared name cannot hold '-'", "my-loss"),
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
    ("loss a = 1 if i else 2", "E118", "'if' stands before its value", "if"),
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
    ("labels { a..c }", "E125", "a range runs between whole numbers", ".."),
    ("labels 00..99", "E125", "a range runs between whole numbers", "00"),
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
    ("loss a = size()", "write size alone"),
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
lss three = 3
category D { a }
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
        ("test.loss:8:1", "E113"),
    ]
    assert [getattr(d, "name", name("")).text for d in spec.declarations] == ["ok", "D"]


def test_a_statement_before_an_unknown_one_is_kept() -> None:
    spec, faults = parse(Source("test.loss", "let a = size\nlos b = 2\nlet c = 3"))
    assert [f.code for f in faults] == ["E113"]
    assert [type(d) for d in spec.declarations] == [ast.Let, ast.Let]


def test_a_declared_true_is_a_name() -> None:
    assert len(declared("let true = size >= 0   loss l = true")) == 2


def test_nothing_is_an_empty_spec() -> None:
    assert declared("") == ()
    assert declared(" \r\n # nothing\n") == ()


# Depth and length ----------------------------------------------------------------------------------------------------

NESTED = {
    "parentheses": lambda n: "let x = " + "(" * n + "a" + ")" * n,
    "calls": lambda n: "let x = " + "max(1, " * n + "a" + ")" * n,
    "not": lambda n: "let x = " + "not " * n + "a",
    "minus": lambda n: "let x = " + "-" * n + "a",
    "powers": lambda n: "let x = a" + " ^ 1e-3" * n,
    "signed powers": lambda n: "let x = a" + " ^ -b" * (n // 2),
    "else if": lambda n: "let x = " + "if a then b else " * n + "c",
    "then if": lambda n: "let x = " + "if a then " * n + "b" + " else c" * n,
    "if if": lambda n: "let x = " + "if " * n + "a" + " then b else c" * n,
    "if in sums": lambda n: "let x = " + "1 + if a then b else " * n + "c",
    "braces": lambda n: "hierarchy h " + "{ a " * (n - 1) + "{ b" + " }" * n,
}


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED.keys())
def test_nesting_is_bounded(nested: object) -> None:
    assert callable(nested)
    assert faults_of(nested(200)) == []
    for n in (202, 300, 20_000):
        (fault,) = faults_of(nested(n) + "\nlet ok = 1")
        assert (fault.code, fault.message) == ("E107", "this is nested more than 200 deep")


@pytest.mark.parametrize(
    ("between", "operand", "kind"),
    [
        (" + ", "a ^ -2", ast.Sum),
        (" - ", "-b ^ 2", ast.Sum),
        (" * ", "(c + 1)", ast.Product),
        (" and ", "not d", ast.And),
        (" or ", "-a < e", ast.Or),
        (" + ", "(if a then b else c)", ast.Sum),
    ],
)
def test_length_is_not_depth(between: str, operand: str, kind: type) -> None:
    body = body_of(between.join([operand] * 5000))
    assert type(body) is kind
    operands = next(getattr(body, field) for field in ("terms", "factors", "operands") if hasattr(body, field))
    assert len(operands) == 5000


def test_ten_thousand_labels() -> None:
    branches = ", ".join(f"b{i} {{ " + ", ".join(f"x{i}_{j}" for j in range(100)) + " }" for i in range(100))
    (hierarchy,) = declared(f"hierarchy h {{ {branches} }}")
    assert isinstance(hierarchy, ast.Hierarchy)
    assert sum(len(branch.children) for branch in hierarchy.body if isinstance(branch, ast.Branch)) == 10_000


# No input makes it fail ----------------------------------------------------------------------------------------------

WELL_FORMED = [
    'labels from "skin.csv" column condition\nhierarchy skin from "skin.csv" levels kind, family by c # why',
    'labels { a, b, 3, "d e", 5..9, }\ncosts c { a: 1, b: -2.5, 5..9: 1e-3, "default": 4, default: 0 }',
    "hierarchy h { a { b, c { d, 0..3 } }, e }\ndistance t = path(h, edge: 1)\nparam p = 2.0 in [-1, 10]",
    'costs w of h.level(2) { "x y": 1, z: 2 }\ncategory C { a }\ncategories F { c: { a, b }, d: { b } }',
    'actions u from "u.csv" by y\nlet i = any(h.kind."x y") and not all({ a, 3 }) or size(h.node(n)) >= 2',
    "loss l = 2 * max(c) + p ^ -2 * diameter(t) - if i then sqrt(size) else min(size, 3) / 4",
]
PIECES = ["{", "}", "(", ")", "[", ",", ":", "=", "==", ".", "..", "-", "^", "if", "not", "else", "let", "loss", "x"]
PIECES += [
    "labels",
    "from",
    "of",
    "size",
    "0",
    "007",
    "1e9",
    '"',
    '"s"',
    "'",
    "&&",
    "#",
    "\\",
    "\n",
    "\0",
    "\ufeff",
    "é",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = "\n".join(draw(st.lists(st.sampled_from(WELL_FORMED), min_size=1, max_size=3)))
    by_tokens = draw(st.booleans())
    parts = re.findall(r"\w+|\s+|.", text) if by_tokens else list(text)
    for _ in range(draw(st.integers(1, 4))):
        i = draw(st.integers(0, max(len(parts) - 1, 0)))
        change = draw(st.sampled_from(["drop", "double", "swap", "insert", "cut"]))
        if change == "drop":
            del parts[i : i + 1]
        elif change == "double":
            parts[i:i] = parts[i : i + draw(st.integers(1, 5))]
        elif change == "swap":
            parts[i : i + 3] = parts[i : i + 3][::-1]
        elif change == "insert":
            parts.insert(i, draw(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"])))
        else:
            del parts[i:]
    return "".join(parts)


def check_robust(text: str) -> None:
    spec, faults = parse(Source("test.loss", text))
    for fault in faults:
        assert re.fullmatch(r"E1[0-2]\d", fault.code)
        assert 0 <= fault.span.start <= fault.span.end <= len(text)
        assert fault.help
        spoken = re.sub(r"'.*'|\".*\"|U\+\w+|NUL", "", f"{fault.message} {fault.help}", flags=re.DOTALL)
        assert not re.search(r"_[A-Z]|[A-Z]{3}|\$END", spoken.replace("JSON", "")), "a terminal's name in a message"
        fault.render()
    for declaration in spec.declarations:
        assert 0 <= declaration.span.start < declaration.span.end <= len(text)


@settings(max_examples=600, deadline=None)
@given(mutated())
def test_mutated_specs_are_never_a_traceback(text: str) -> None:
    check_robust(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, *STATEMENTS, "a", "h", "1", "sum", "then", "+", "<", " "]), max_size=30))
def test_word_salad_is_never_a_traceback(words: list[str]) -> None:
    check_robust(" ".join(words))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_never_a_traceback(text: str) -> None:
    check_robust(text)


# Files ---------------------------------------------------------------------------------------------------------------


def refusal(path: Path) -> Diagnostic:
    with pytest.raises(SpecError) as caught:
        read_source(path)
    (fault,) = caught.value.diagnostics
    return fault


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.loss"
    path.write_bytes(b"\xef\xbb\xbflabels { a,\r\n b }\r\nloss l = 2 size\r\n")
    source = read_source(path)
    spec, (fault,) = parse(source)
    assert spec.declarations == (ast.Labels((name("a"), name("b")), span=NOWHERE),)
    assert str(fault.span) == f"{path}:3:12"


def test_what_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.loss"
    path.write_bytes("labels { a }\n# caf".encode() + b"\xe9 { b }")
    fault = refusal(path)
    assert (fault.code, fault.message) == ("E101", "the byte 0xe9 is not UTF-8")
    assert str(fault.span) == f"{path}:2:6"
    path.write_bytes(b"\xef\xbb\xbf\xff")
    assert str(refusal(path).span) == f"{path}:1:1"
    path.write_bytes("labels { a }".encode("utf-16"))
    assert refusal(path).code == "E101"


def test_a_nul_character(tmp_path: Path) -> None:
    path = tmp_path / "a.loss"
    path.write_bytes(b"labels { a } # \0")
    fault = refusal(path)
    assert (fault.code, str(fault.span)) == ("E102", f"{path}:1:16")


def test_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent.loss").message.endswith("absent.loss: No such file or directory")
    assert refusal(tmp_path).code == "E100"


# The grammar's tables ------------------------------------------------------------------------------------------------


def test_the_tables_are_those_of_the_grammar() -> None:
    grammar, tables = (pkgutil.get_data("udcp_grammars", f"loss.{kind}") for kind in ("lark", "json"))
    assert grammar is not None
    assert tables is not None
    hashed = hashlib.sha256(grammar).hexdigest()
    assert json.loads(tables)["made_from"].endswith(hashed), "stale: run `python -m udcp_dsl.parse`"


def test_without_tables_the_grammar_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    udcp_dsl.parse._parser.cache_clear()
    monkeypatch.setattr(udcp_dsl.parse, "_made_from", lambda: "another grammar")
    try:
        assert [f.code for text, *_ in MISTAKES for f in faults_of(text)] == [code for _, code, *_ in MISTAKES]
        for text in WELL_FORMED:
            declared(text)
    finally:
        udcp_dsl.parse._parser.cache_clear()


def test_the_docstring() -> None:
    assert doctest.testmod(udcp_dsl.parse).failed == 0
