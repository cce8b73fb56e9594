"""Canonical text: it parses back to the same tree, it is stable, and it holds no needless quote or parenthesis."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import Source, Span
from udcp_dsl.language import ast
from udcp_dsl.language.layout import formatted
from udcp_dsl.language.parse import parse
from udcp_dsl.language.scan import comments, scan
from udcp_dsl.language.unparse import expression, unparse
from udcp_dsl.language.words import CALLED, RESERVED, WORD, is_name

NOWHERE = Span(Source("", ""), 0, 0)


def parsed(text: str) -> ast.Spec:
    spec, faults = parse(Source("test.loss", text))
    assert faults == [], "\n".join(fault.render() for fault in faults)
    return spec


def body_of(text: str) -> ast.Expr:
    (let,) = parsed(f"let x = {text}").declarations
    assert isinstance(let, ast.Let)
    return let.body


def build(node: Any, *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(node, *fields, span=st.just(NOWHERE))


def some(strategy: st.SearchStrategy[Any], least: int = 1, most: int = 4) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


TRUTHS = ("true", "True", "TRUE", "false", "False")

# Every tree that can be written --------------------------------------------------------------------------------------

WORDS = st.sampled_from(["a", "b", "x1", "_", "Ärger", "größe", "sizes", "true", "node", "level", "quite_a_long_one"])
LETTERS = st.characters(categories=("L", "M", "N", "Pc"))
ANY_WORD = st.text(LETTERS, min_size=1, max_size=6).filter(is_name)
ODD = [
    "0",
    "7",
    "007",
    "1.5",
    "-1",
    "1e3",
    "",
    " ",
    "basal cell",
    "a-b",
    '"',
    "\\",
    "\n",
    "\0",
    "\u00b2",
    "\u0663",
    "\u2028",
]
DECLARED = build(ast.Name, WORDS | ANY_WORD.filter(lambda word: word not in RESERVED))
NAMES = build(ast.Name, WORDS | st.sampled_from([*sorted(RESERVED), *ODD]) | st.text(max_size=6))
RANGES = st.tuples(st.integers(0, 10**9), st.integers(0, 9_999)).map(
    lambda pair: ast.Range(pair[0], pair[0] + pair[1], span=NOWHERE)
)
ITEMS = NAMES | RANGES
MAGNITUDES = st.floats(0, allow_nan=False, allow_infinity=False) | st.integers(0, 2000).map(float)
SIGNED = build(ast.Signed, MAGNITUDES | MAGNITUDES.map(lambda value: 0.0 - value))
REFS = build(ast.Ref, DECLARED, some(NAMES | build(ast.Indexed, st.sampled_from(["node", "level"]), NAMES), 0, 3))
LEAVES = build(ast.Number, MAGNITUDES) | REFS | build(ast.Call, st.sampled_from(["size", "empty", "sum"]), st.none())
OPERATORS = st.sampled_from([">=", ">", "<=", "<", "=="])


def _expressions(with_if: bool) -> st.SearchStrategy[Any]:
    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        functions = st.sampled_from(sorted(CALLED))
        signs, operators = st.sampled_from([1, -1]), st.sampled_from(["*", "/"])
        kinds = [
            build(ast.Call, functions, some(inner | build(ast.SetLiteral, some(ITEMS)), 1, 3)),
            build(ast.Sum, st.tuples(inner, some(st.tuples(signs, inner))).map(lambda t: ((1, t[0]), *t[1]))),
            build(ast.Product, st.tuples(inner, some(st.tuples(operators, inner))).map(lambda t: (("*", t[0]), *t[1]))),
            build(ast.Negative, inner),
            build(ast.Not, inner),
            build(ast.Power, inner, inner),
            build(ast.Comparison, OPERATORS, inner, inner),
            build(ast.And, some(inner, 2)),
            build(ast.Or, some(inner, 2)),
        ]
        return st.one_of(*kinds, *([build(ast.If, inner, inner, inner)] if with_if else []))

    return st.recursive(LEAVES, larger, max_leaves=12)


EXPRESSIONS = _expressions(with_if=True)
BRANCHES = st.recursive(ITEMS, lambda inner: build(ast.Branch, NAMES, some(inner, 1, 6)), max_leaves=12)


def files(*clauses: str) -> st.SearchStrategy[Any]:
    levels = some(NAMES, 0, 3) if "levels" in clauses else st.just(())
    column, by = (st.none() | NAMES if clause in clauses else st.none() for clause in ("column", "by"))
    return build(ast.File, st.text(max_size=8), column, by, levels)


def _limits(values: tuple[Any, Any, Any, bool, Any]) -> ast.Param:
    name, value, low, limited, high = values
    return ast.Param(name, value, low if limited else None, high if limited else None, span=NOWHERE)


ENTRIES = build(ast.CostEntry, ITEMS, SIGNED)
DECLARATIONS = st.one_of(
    build(ast.Labels, some(ITEMS, 1, 12) | files("column")),
    build(ast.Hierarchy, DECLARED, some(BRANCHES) | files("levels", "by")),
    build(ast.Costs, DECLARED, st.none() | REFS, some(ENTRIES, 1, 12), st.none() | SIGNED),
    build(ast.Costs, DECLARED, st.none() | REFS, st.just(()), SIGNED),
    build(ast.Costs, DECLARED, st.none() | REFS, files("column", "by"), st.none()),
    build(ast.Distance, DECLARED, st.none() | REFS, files()),
    build(ast.Distance, DECLARED, st.none(), build(ast.Path, DECLARED, st.none() | SIGNED)),
    build(ast.Category, DECLARED, some(ITEMS, 1, 12) | files("column", "by")),
    build(ast.Categories, DECLARED, some(build(ast.Member, NAMES, some(ITEMS))) | files("column", "by")),
    build(ast.Actions, DECLARED, files("by")),
    st.tuples(DECLARED, SIGNED, SIGNED, st.booleans(), SIGNED).map(_limits),
    build(ast.Let, DECLARED, EXPRESSIONS),
    build(ast.LossDecl, DECLARED, EXPRESSIONS, st.none() | NAMES.filter(lambda name: bool(name.text.strip()))),
)


@given(some(DECLARATIONS, 0, 5))
def test_parse_reads_back_what_unparse_writes(declarations: tuple[ast.Declaration, ...]) -> None:
    # `true` may be any name, but where nothing of that name is declared it is taken for a constant.
    constants = [ast.Let(ast.Name(word, span=NOWHERE), ast.Number(1.0, span=NOWHERE), span=NOWHERE) for word in TRUTHS]
    spec = ast.Spec((*declarations, *constants), span=NOWHERE)
    text = unparse(spec)
    again = parsed(text)
    assert again.declarations == spec.declarations
    assert unparse(again) == text
    assert all(character.isprintable() or character == "\n" for character in text)


# What may stand between two tokens: the comments are numbered, so that none is lost unseen.
GAPS = [" ", " ", "\n", "\r\n", "\n\n\n", " # {}\n", "\n# {}\n", "  \t# {}  \n\n", '\n\n      # {} "#\n    # {}\n']
CONSTANTS = tuple(ast.Let(ast.Name(x, span=NOWHERE), ast.Number(1.0, span=NOWHERE), span=NOWHERE) for x in TRUTHS)


@given(some(DECLARATIONS, 1, 4), st.data())
def test_comments_may_stand_anywhere_and_formatting_keeps_them(
    declarations: tuple[ast.Declaration, ...], data: st.DataObject
) -> None:
    canonical = Source("", unparse(ast.Spec((*declarations, *CONSTANTS), span=NOWHERE)))
    assert formatted(canonical, parsed(canonical.text)) == canonical.text
    tokens = [token for statement in scan(canonical) for token in statement.tokens]
    rare = st.sampled_from([" "] * data.draw(st.sampled_from([0, 10, 60])) + GAPS)
    gaps = data.draw(st.lists(rare, min_size=len(tokens) + 1, max_size=len(tokens) + 1))
    written = "".join(f"{gap}{token.text}" for gap, token in zip(gaps, tokens, strict=False)) + gaps[-1]
    for i in range(written.count("{} ") + written.count("{}\n")):
        written = re.sub(r"(# )\{\}", rf"\g<1>{i}", written, count=1)
    source = Source("", written)
    spec, faults = parse(source)
    assume(not faults)  # a line break changes what the word `labels` is taken for, in the odd place
    text = formatted(source, spec)
    again = parsed(text)
    assert again.declarations == spec.declarations
    assert formatted(Source("", text), again) == text
    assert sorted(c.text.rstrip() for c in comments(Source("", text))) == sorted(
        c.text.rstrip() for c in comments(source)
    )
    assert "\n\n\n" not in text
    assert text == "" or (text[0] != "\n" and not text.endswith("\n\n"))


@given(_expressions(with_if=False))
def test_no_parenthesis_is_needless(expr: ast.Expr) -> None:
    tree = ast.Let(ast.Name("true", span=NOWHERE), expr, span=NOWHERE)
    text = unparse(ast.Spec((tree,), span=NOWHERE)).rstrip("\n")
    strings = [match.span() for match in re.finditer(r'"(?:[^"\\]|\\.)*"', text)]
    opened: list[int] = []
    for i, character in enumerate(text):
        if any(start <= i < end for start, end in strings):
            continue
        if character == "(":
            opened.append(i)
        elif character == ")":
            start = opened.pop()
            if not re.search(rf"[{WORD}]$", text[:start]):  # not those of an atom or of node(n)
                without = text[:start] + " " + text[start + 1 : i] + " " + text[i + 1 :]
                spec, faults = parse(Source("test.loss", without))
                assert faults or spec.declarations != (tree,)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("((a))", "a"),
        ("(a * b) + (c ^ 2)", "a * b + c ^ 2"),
        ("a * (b + c)", "a * (b + c)"),
        ("a - (b + c)", "a - (b + c)"),
        ("a / (b * c)", "a / (b * c)"),
        ("(a ^ b) ^ c", "(a ^ b) ^ c"),
        ("a ^ (b ^ c)", "a ^ b ^ c"),
        ("2 ^ (-1)", "2 ^ -1"),
        ("(-a) ^ 2", "(-a) ^ 2"),
        ("-(a ^ 2)", "-a ^ 2"),
        ("-(-a)", "--a"),
        ("not (a < b)", "not a < b"),
        ("(not a) < b", "(not a) < b"),
        ("(a < b) == c", "(a < b) == c"),
        ("(a and b) or c", "a and b or c"),
        ("a and (b or c)", "a and (b or c)"),
        ("1 + if a then b else c", "1 + (if a then b else c)"),
        ("if (a) then (b) else (if c then d else e)", "if a then b else if c then d else e"),
        ("max( size,{a,3..5} )", "max(size, { a, 3..5 })"),
        ('h."kind"."basal cell".node("7")', 'h.kind."basal cell".node(7)'),
        ("2.0 * 0.50 + 1000000 * 1e-3", "2 * 0.5 + 1000000 * 0.001"),
        ("1e22 + 1e-7 + 0.1e-6 + 12345678901234567890", "1e22 + 1e-7 + 1e-7 + 1.2345678901234567e19"),
    ],
)
def test_canonical_expressions(written: str, canonical: str) -> None:
    assert expression(body_of(written)) == canonical


def test_canonical_declarations() -> None:
    text = """
    loss l=2*size  let i=any(C) labels{0..9}
    labels { "a", "b c", "007", "default" , "loss" }
    costs c { default:0, "default" : -1.50, "7": 2 } costs w of h."kind" from "a\\u0062\\u0000" by "k" column "a b"
    distance d=path(h,edge:1.0) distance g of h . "kind" from "g.csv" hierarchy h from "f" by c levels a,b
    param p=-0 in[-1,+2]
    """
    assert unparse(parsed(text)) == (
        "loss l = 2 * size\n"
        "\n"
        "let i = any(C)\n"
        "\n"
        "labels 0..9\n"
        'labels { a, "b c", "007", default, loss }\n'
        "\n"
        'costs c { "default": -1.5, 7: 2, default: 0 }\n'
        'costs w of h.kind from "ab\\u0000" column "a b" by k\n'
        "\n"
        "distance d = path(h, edge: 1)\n"
        'distance g of h.kind from "g.csv"\n'
        "\n"
        'hierarchy h from "f" levels a, b by c\n'
        "\n"
        "param p = 0 in [-1, 2]\n"
    )


def test_long_lists_are_wrapped() -> None:
    labels = ", ".join(f"label_{i}" for i in range(60))
    branches = f"first {{ {labels} }}, alone, other, second {{ a, b }}"
    terms = " + ".join(f"{i} * count(h.level({i}))" for i in range(12))
    text = unparse(
        parsed(f"labels {{ {labels} }} hierarchy h {{ {branches} }} loss l = {terms} - (if a then b else c)")
    )
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("labels {\n    label_0, label_1, ")
    assert "\n    first {\n        label_0, label_1, " in text
    assert "\n    },\n    alone, other,\n    second { a, b },\n}\n" in text
    assert "\nloss l =\n    0 * count(h.level(0))\n  + 1 * count(h.level(1))\n" in text
    assert text.endswith("  - (if a then b else c)\n")
    assert unparse(parsed(text)) == text


def test_deep_trees() -> None:
    # As many operators as can stand between two of the 200 brackets: the text is made without recursion.
    text = "a or b and 1 < 2 + 3 * sqrt(" * 199 + "c" + ")" * 199
    assert expression(body_of(text)) == text
    deep = "hierarchy h " + "{ a " * 199 + "{ b }" + " }" * 199
    assert unparse(parsed(unparse(parsed(deep)))) == unparse(parsed(deep))


@pytest.mark.parametrize("name", ["\u00b2", "\u0663", "\u00aa", "\ufb01le", "e\u0301", "a b", "", "7", "size", "loss"])
def test_what_cannot_name_a_declaration_is_refused(name: str) -> None:
    named = ast.Name(name, span=NOWHERE)
    for tree in (
        ast.Let(named, ast.Number(1.0, span=NOWHERE), span=NOWHERE),
        ast.Hierarchy(named, ast.File("", span=NOWHERE), span=NOWHERE),
        ast.LossDecl(ast.Name("l", span=NOWHERE), ast.Ref(named, (), span=NOWHERE), span=NOWHERE),
    ):
        with pytest.raises(ValueError, match="cannot name a declaration"):
            unparse(ast.Spec((tree,), span=NOWHERE))


@pytest.mark.parametrize("value", [-1.0, -0.0, float("inf"), float("nan")])
def test_what_no_number_can_say_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        expression(ast.Number(value, span=NOWHERE))
