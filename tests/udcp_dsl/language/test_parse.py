"""The front end: what parses, how deep and how long it may be, and that no input whatever makes it fail."""

from __future__ import annotations

import doctest
import hashlib
import json
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl.language.parse
from udcp_dsl.diagnostics import Diagnostic, Source, Span, SpecError
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse, read_source
from udcp_dsl.language.scan import STATEMENTS
from udcp_dsl.language.words import CALLED, RESERVED

if TYPE_CHECKING:
    from tests.conftest import Sizes

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
        distance v of F from "v.csv"
        distance w2 of h.level(1) from "w.json"
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
        ast.Distance(name("d"), None, ast.File("d.npy", span=NOWHERE), span=NOWHERE),
        ast.Distance(name("t"), None, ast.Path(name("h"), signed(0.5), span=NOWHERE), span=NOWHERE),
        ast.Distance(name("u"), None, ast.Path(name("h"), None, span=NOWHERE), span=NOWHERE),
        ast.Distance(name("v"), ref("F"), ast.File("v.csv", span=NOWHERE), span=NOWHERE),
        ast.Distance(
            name("w2"),
            ref("h", ast.Indexed("level", name("1"), span=NOWHERE)),
            ast.File("w.json", span=NOWHERE),
            span=NOWHERE,
        ),
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


@pytest.mark.parametrize("word", sorted(RESERVED))
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
    text = f'costs c from "f" column {word}\nhierarchy h from "f" levels a, {word}\n'
    text += f'labels from "f" column {word}\nlet x = 1\n'
    text += f'category C from "f" column {word}\nlimit m: size <= 1\n'
    text += f'category D from "f" column {word}\ninput km in [0, 1]'
    kinds = [ast.Costs, ast.Hierarchy, ast.Labels, ast.Let, ast.Category, ast.Limit, ast.Category, ast.Input]
    assert [type(d) for d in declared(text)] == kinds


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
def test_nesting_is_bounded(nested: object, sizes: Sizes) -> None:
    assert callable(nested)
    assert faults_of(nested(200)) == []
    for n in (202, 300, sizes.terms):
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
def test_length_is_not_depth(between: str, operand: str, kind: type, sizes: Sizes) -> None:
    body = body_of(between.join([operand] * sizes.terms))
    assert type(body) is kind
    operands = next(getattr(body, field) for field in ("terms", "factors", "operands") if hasattr(body, field))
    assert len(operands) == sizes.terms


def test_ten_thousand_labels() -> None:
    branches = ", ".join(f"b{i} {{ " + ", ".join(f"x{i}_{j}" for j in range(100)) + " }" for i in range(100))
    (hierarchy,) = declared(f"hierarchy h {{ {branches} }}")
    assert isinstance(hierarchy, ast.Hierarchy)
    assert not isinstance(hierarchy.body, ast.File)
    leaves = [leaf for branch in hierarchy.body if isinstance(branch, ast.Branch) for leaf in branch.children]
    assert len(leaves) == 10_000
    assert leaves[-1] == name("x99_99")


# No input makes it fail ----------------------------------------------------------------------------------------------

WELL_FORMED = [
    'labels from "skin.csv" column condition\nhierarchy skin from "skin.csv" levels kind, family by c # why',
    'labels { a, b, 3, "d e", 5..9, }\ncosts c { a: 1, b: -2.5, 5..9: 1e-3, "default": 4, default: 0 }',
    "hierarchy h { a { b, c { d, 0..3 } }, e }\ndistance t = path(h, edge: 1)\nparam p = 2.0 in [-1, 10]",
    'costs w of h.level(2) { "x y": 1, z: 2 }\ncategory C { a }\ncategories F { c: { a, b }, d: { b } }',
    'actions u from "u.csv" by y\nlet i = any(h.kind."x y") and not all({ a, 3 }) or size(h.node(n)) >= 2',
    "loss l = 2 * max(c) + p ^ -2 * diameter(t) - if i then sqrt(size) else min(size, 3) / 4",
]
PIECES = r"""{ } ( ) [ , : = == . .. - ^ if not else let loss x labels from of size 0 007 1e9 " "s" ' && \ #""".split()
PIECES += ["\n", "\0", "\ufeff", "é"]


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


@given(mutated())
def test_mutated_specs_are_never_a_traceback(text: str) -> None:
    check_robust(text)


@given(st.lists(st.sampled_from([*PIECES, *STATEMENTS, "a", "h", "1", "sum", "then", "+", "<", " "]), max_size=30))
def test_word_salad_is_never_a_traceback(words: list[str]) -> None:
    check_robust(" ".join(words))


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
    assert declared("\ufefflabels { a }") == declared("labels { a }")
    path.write_bytes(b"\xef\xbb\xbflabels { a,\r\n b }\r\nloss l = 2 size\r\n")
    source = read_source(path)
    spec, (fault,) = parse(source)
    assert spec.declarations == (ast.Labels((name("a"), name("b")), span=NOWHERE),)
    assert str(fault.span) == f"{path}:3:12"


def test_what_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.loss"
    path.write_bytes(b"labels { a }\n# caf\xe9 { b }")
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
    (tmp_path / "triage.loss").write_text("labels { a }  loss l = size")
    assert refusal(tmp_path / "triag.loss").help == f"did you mean {str(tmp_path / 'triage.loss')!r}?"
    assert refusal(tmp_path / "other.loss").help == "check the path"
    assert refusal(Path("a\0.loss")).help == "check the path"


# The grammar's tables ------------------------------------------------------------------------------------------------


def test_the_tables_are_those_of_the_grammar() -> None:
    grammar, tables = (pkgutil.get_data("udcp_grammars", f"loss.{kind}") for kind in ("lark", "json"))
    assert grammar is not None
    assert tables is not None
    hashed = hashlib.sha256(grammar).hexdigest()
    assert json.loads(tables)["made_from"].endswith(hashed), "stale: run `python -m udcp_dsl.language.parse`"


def test_without_tables_the_grammar_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    udcp_dsl.language.parse._parser.cache_clear()
    monkeypatch.setattr(udcp_dsl.language.parse, "_made_from", lambda: "another grammar")
    try:
        for text in WELL_FORMED:
            declared(text)
        assert [fault.message for fault in faults_of("labels { a,, b }")] == ["expected a label or '}' after ','"]
    finally:
        udcp_dsl.language.parse._parser.cache_clear()


def test_a_new_word_needs_no_new_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(grammar: str) -> None:
        raise AssertionError("the tables are not used")

    udcp_dsl.language.parse._parser.cache_clear()
    monkeypatch.setattr(udcp_dsl.language.parse, "CALLED", (*CALLED, "novel"))
    monkeypatch.setattr(udcp_dsl.language.parse, "RESERVED", RESERVED | {"novel"})
    monkeypatch.setattr(udcp_dsl.language.parse, "_build", never)
    try:
        assert body_of("novel(x)") == ast.Call("novel", (ref("x"),), span=NOWHERE)
        assert body_of("novels + a_novel") == ast.Sum(((1, ref("novels")), (1, ref("a_novel"))), span=NOWHERE)
        assert [fault.code for fault in faults_of("let novel = 1")] == ["E112"]
    finally:
        udcp_dsl.language.parse._parser.cache_clear()


@pytest.mark.parametrize("word", CALLED)
def test_no_word_is_unknown_and_proposed_at_once(word: str) -> None:
    assert body_of(f"{word}(x)") == ast.Call(word, (ref("x"),), span=NOWHERE)


def test_the_docstring() -> None:
    assert doctest.testmod(udcp_dsl.language.parse).failed == 0
