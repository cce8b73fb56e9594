"""Fixes are data of the diagnostics: each is applied, and the fault that it was for is gone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from udcp_dsl.compile.passes import check_spec, choose
from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import Diagnostic, Fix, Source
from udcp_dsl.expression.explain import free_labels_warning
from udcp_dsl.loss import Loss

if TYPE_CHECKING:
    from tests.conftest import Sizes

SPECS = Path(__file__).parents[2] / "specs"

HEAD = "labels { a, b }\n"
COSTS = HEAD + "costs c { a: 1, b: 2 }\n"
FAMILY = HEAD + "categories F { x: { a }, y: { b } }\ncategories G { u: { a }, v: { b } }\n"
WEIGHTS = FAMILY + "costs w of F { x: 1, y: 2 }\n"
TREE = 'labels from "pets.csv" column name\nhierarchy h from "pets.csv" levels kind, "sub kind"\n'

PETS = "name,kind,sub kind,cost\na,dog,small dog,1\nb,cat,big cat,2\n"


def diagnostics(text: str, folder: Path | None = None) -> tuple[Diagnostic, ...]:
    """The faults and warnings of a text, that of free labels too."""
    checked = check_spec(Source("spec.loss", text), Files(folder))
    if not checked.sound:
        return checked.diagnostics
    free = (free_labels_warning(Loss(choose(checked, x.name.text))) for x in checked.losses)
    return (*checked.diagnostics, *(x for x in free if x is not None))


def left_of(text: str, fault: Diagnostic, fix: Fix, folder: Path | None, more: bool = True) -> str:
    """What is left of a fault after a fix, or if `more` is asked what is wrong with the text that was written."""
    mended = fix.applied(text)
    longer = sum(len(e.text) - (e.span.end - e.span.start) for e in fix.edits if e.span.end <= fault.span.start)
    start, end = min(e.span.start for e in fix.edits), max(e.span.end for e in fix.edits)
    end += len(mended) - len(text)
    for x in diagnostics(mended, folder):
        same_place = x.span.start == fault.span.start + longer or (start <= x.span.start and x.span.end <= end)
        if same_place and (x.code, x.message) == (fault.code, fault.message):
            return f"still there: {x.message}"
        if more and x.severity == "error" and start <= x.span.start < x.span.end <= end and end > start:
            return f"wrong in what was written: {x.code} {x.message}"
    return ""


CASES = [
    # Characters and brackets
    (HEAD + "loss l = size ** 2", "E106", [HEAD + "loss l = size ^ 2"]),
    (HEAD + "loss l = any({a})&&empty", "E106", [HEAD + "loss l = any({a}) and empty"]),
    (HEAD + "loss l = if !empty then 1 else 0", "E106", [HEAD + "loss l = if not empty then 1 else 0"]),
    (HEAD + "loss l = size;", "E106", [HEAD + "loss l = size"]),
    (HEAD + "// sizes\nloss l = size", "E106", [HEAD + "# sizes\nloss l = size"]),
    ("labels { a; b }\nloss l = size", "E106", ["labels { a, b }\nloss l = size"]),
    ("labels { 'a b', c }\nloss l = size", "E106", ['labels { "a b", c }\nloss l = size']),
    ("labels { Tax & VAT, b }\nloss l = size", "E111", ['labels { "Tax & VAT", b }\nloss l = size']),
    (HEAD + "loss l = size\u00a0+ 1", "E105", None),
    (HEAD + "loss l = size § + 1", "E105", [HEAD + "loss l = size  + 1"]),
    (HEAD + "loss l = size\0", "E102", [HEAD + "loss l = size"]),
    (HEAD + "let ﬁle = 2\nloss l = size", "E127", [HEAD + "let file = 2\nloss l = size"]),
    ("labels { a, b\nloss l = size", "E108", ["labels { a, b }\nloss l = size"]),
    (HEAD + "loss l = any({ a, b)", "E108", [HEAD + "loss l = any({ a, b })"]),
    (HEAD + "loss l = size)", "E109", [HEAD + "loss l = size"]),
    # Words and numbers
    (HEAD + "loss l = size + .5", "E110", [HEAD + "loss l = size + 0.5"]),
    (HEAD + "loss l = 1. * size", "E110", [HEAD + "loss l = 1 * size", HEAD + "loss l = 1.0 * size"]),
    (HEAD + "costs c { a: 1,5, b: 2 }\nloss l = sum(c)", "E110", [HEAD + "costs c { a: 1.5, b: 2 }\nloss l = sum(c)"]),
    (HEAD + "param p = 1e-999\nloss l = size + p", "E110", [HEAD + "param p = 0\nloss l = size + p"]),
    ("labels { a, basal-cell }\nloss l = size", "E111", ['labels { a, "basal-cell" }\nloss l = size']),
    ("labels { 007, b }\nloss l = size", "E111", ['labels { "007", b }\nloss l = size']),
    (HEAD + "let my-x = 2\nloss l = size", "E112", [HEAD + "let my_x = 2\nloss l = size"]),
    ("lables { a, b }\nloss l = size", "E113", ["labels { a, b }\nloss l = size"]),
    (HEAD + "lss l = size", "E113", [HEAD + "loss l = size"]),
    (HEAD + "loss l = if size = 2 then 1 else 0", "E116", [HEAD + "loss l = if size == 2 then 1 else 0"]),
    (HEAD + "costs c { a = 1, b: 2 }\nloss l = sum(c)", "E116", [HEAD + "costs c { a : 1, b: 2 }\nloss l = sum(c)"]),
    (HEAD + "loss l == size", "E116", [HEAD + "loss l = size"]),
    ("labels { a b }\nloss l = size", "E117", ["labels { a, b }\nloss l = size", 'labels { "a b" }\nloss l = size']),
    (
        HEAD + "loss l = if empty then 1 elif size > 1 then 2 else 3",
        "E118",
        [HEAD + "loss l = if empty then 1 else if size > 1 then 2 else 3"],
    ),
    (HEAD + "loss l = size + (if empty then 1)", "E118", [HEAD + "loss l = size + (if empty then 1 else 0)"]),
    (HEAD + "loss l = 2(size)", "E120", [HEAD + "loss l = 2 * (size)"]),
    (HEAD + "distance d frm d.npy\nloss l = size", "E120", [HEAD + "distance d from d.npy\nloss l = size"]),
    ("labels from pets.csv column name\nloss l = size", "E120", ['labels from "pets.csv" column name\nloss l = size']),
    (HEAD + "loss l = sizee({ a })", "E121", [HEAD + "loss l = size({ a })"]),
    ("labels 9..0\nloss l = size", "E125", ["labels 0..9\nloss l = size"]),
    # Names
    (HEAD + "loss l = any({ a, bb })", "E210", None),
    ("labels { apple, pear }\nloss l = any({ paer })", "E210", ["labels { apple, pear }\nloss l = any({ pear })"]),
    ("labels { apple, pear }\nloss l = any({ pear, paer })", "E210", []),
    (HEAD + "loss l = sizee", "E211", [HEAD + "loss l = size"]),
    (HEAD + "loss l = maxx", "E211", []),  # `max` does not stand alone
    (HEAD + "loss l = a", "E211", [HEAD + "loss l = any({ a })"]),
    (FAMILY + "loss l = x", "E211", [FAMILY + "loss l = any(F.x)"]),
    (FAMILY + "loss l = any(x)", "E211", [FAMILY + "loss l = any(F.x)"]),
    (COSTS + "costs other { a: 1, b: 2 }\nloss l = sum(othr)", "E211", [
        COSTS + "costs other { a: 1, b: 2 }\nloss l = sum(other)"
    ]),
    (HEAD + "category urgent { a }\nloss l = any(urgnt)", "E211", [
        HEAD + "category urgent { a }\nloss l = any(urgent)"
    ]),
    (HEAD + "categories kinds { x: { a }, y: { b } }\nloss l = count(kindss)", "E211", [
        HEAD + "categories kinds { x: { a }, y: { b } }\nloss l = count(kinds)"
    ]),
    (HEAD + "hierarchy tree { x { a }, b }\ndistance d = path(tre)\nloss l = diameter(d)", "E211", [
        HEAD + "hierarchy tree { x { a }, b }\ndistance d = path(tree)\nloss l = diameter(d)"
    ]),
    (HEAD + "categories F { cats: { a }, y: { b } }\nloss l = any(F.cat)", "E212", [
        HEAD + "categories F { cats: { a }, y: { b } }\nloss l = any(F.cats)"
    ]),
    (TREE + "loss l = count(h.knd)", "E213", [TREE + "loss l = count(h.kind)"]),
    (TREE + 'loss l = count(h."sub kid")', "E213", [TREE + 'loss l = count(h."sub kind")']),
    (TREE + "loss l = any(h.dog)", "E213", [TREE + "loss l = any(h.node(dog))"]),
    (TREE + "loss l = count(h.dog)", "E213", [TREE + "loss l = count(h.kind)"]),
    (TREE + "loss l = any(h.node(dgo))", "E214", [TREE + "loss l = any(h.node(dog))"]),
    (TREE + "loss l = count(h)", "E406", [TREE + "loss l = count(h.kind)"]),
    # Files
    ('labels from "pet.csv" column name\nloss l = size', "E301", ['labels from "pets.csv" column name\nloss l = size']),
    ('labels from "pets.csv" column nam\nloss l = size', "E304", ['labels from "pets.csv" column name\nloss l = size']),
    (TREE + 'costs c from "pets.csv" column cst\nloss l = sum(c)', "E304", [
        TREE + 'costs c from "pets.csv" column cost\nloss l = sum(c)'
    ]),
    # Costs that are missing, and types
    (HEAD + "costs c { a: 1 }\nloss l = sum(c)", "E220", [HEAD + "costs c { a: 1, default: 0 }\nloss l = sum(c)"]),
    (HEAD + "costs c { a: 1, }\nloss l = sum(c)", None, None),
    (COSTS + "loss l = if size then 1 else 0", "E401", [COSTS + "loss l = if size >= 1 then 1 else 0"]),
    (COSTS + "loss l = if sum(c) then 1 else 0", "E401", [COSTS + "loss l = if sum(c) > 0 then 1 else 0"]),
    (COSTS + "loss l = if not size then 1 else 0", "E401", [COSTS + "loss l = if not size >= 1 then 1 else 0"]),
    (HEAD + "loss l = sqrt({ a })", "E406", [HEAD + "loss l = sqrt(size({ a }))"]),
    (HEAD + "loss l = max(size, { a })", "E406", [
        HEAD + "loss l = max(size, size({ a }))", HEAD + "loss l = max(size, any({ a }))"
    ]),
    (HEAD + "loss l = any(a)", "E406", [HEAD + "loss l = any({ a })"]),
    (COSTS + "loss l = diameter(c)", "E406", [COSTS + "loss l = sum(c)", COSTS + "loss l = max(c)"]),
    (WEIGHTS + "loss l = count(G, w)", "E406", [WEIGHTS + "loss l = count(F, w)"]),
    (WEIGHTS + "loss l = count(G, ww)", "E211", []),
    (HEAD + "loss l = empty({ a })", "E407", [HEAD + "loss l = empty"]),
    (
        COSTS + "costs d { a: 1, b: 2 }\nloss l = max(c, d)",
        "E408",
        [COSTS + "costs d { a: 1, b: 2 }\nloss l = max(max(c), max(d))"],
    ),
    (COSTS + "loss l = c", "E409", [COSTS + "loss l = sum(c)", COSTS + "loss l = max(c)"]),
    (HEAD + "param p = 2\nloss l = p.x * size", "E409", [HEAD + "param p = 2\nloss l = p * size"]),
    # Warnings
    (HEAD + "category C { a }\nloss l = any(C)", "W601", [HEAD + "category C { a }\nloss l = any(C) + 0.01 * size"]),
    (HEAD + "loss l = size > 1", "W601", [HEAD + "loss l = (size > 1) + 0.01 * size"]),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "code", "right"), CASES)
def test_a_fix_mends_what_it_is_for(wrong: str, code: str | None, right: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text(PETS)
    faults = diagnostics(wrong, tmp_path)
    if code is None:
        return
    fault = next(x for x in faults if x.code == code)
    if right is not None:
        assert [fix.applied(wrong) for fix in fault.fixes] == right
    for fix in fault.fixes:
        assert left_of(wrong, fault, fix, tmp_path) == ""


def test_a_fix_says_what_it_does() -> None:
    titles = [fix.title for text, _, _ in CASES for fault in diagnostics(text) for fix in fault.fixes]
    assert all(title.split()[0] in ("Write", "Add", "Remove") and title.split()[1:] for title in titles)


SHORT = [path for path in sorted(SPECS.glob("*/*.loss")) if len(path.read_text(encoding="utf-8")) <= 3000]


@pytest.mark.parametrize("spec", SHORT, ids=lambda path: path.stem)
def test_fixes_of_mutated_specs_mend_them(spec: Path, sizes: Sizes) -> None:
    """One character taken out, doubled or exchanged, many times: whatever is offered works."""
    text = spec.read_text(encoding="utf-8")
    draw = random.Random(spec.stem)
    offered = 0
    for _ in range(sizes.mutants // len(SHORT)):
        at = draw.randrange(len(text) - 1)
        new = draw.choice(["", text[at] * 2, text[at + 1], draw.choice("()x;=,-_")])
        wrong = text[:at] + new + text[at + 1 :]
        for fault in diagnostics(wrong, spec.parent):
            for fix in fault.fixes:
                offered += 1
                assert left_of(wrong, fault, fix, spec.parent, more=False) == "", (
                    wrong[at - 30 : at + 30],
                    fault.render(),
                    fix,
                )
    assert offered
