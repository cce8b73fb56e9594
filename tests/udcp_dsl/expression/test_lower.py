"""With the labels fixed to a set S, the least objective of a loss's linear model is L(S), by the interpreter."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

import udcp_dsl as udcp
from udcp_dsl.check import GeneratedSpec, all_masks, assert_lowers, specs
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.atoms import Atom
from udcp_dsl.expression.atoms.spread import Spread
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.linear import Affine, Lowering, NoLinearForm, Push
from udcp_dsl.expression.lower import _FEW, LoweringError, check_linear, grids, lower
from udcp_dsl.expression.values import node_values
from udcp_dsl.loss import Loss
from udcp_dsl.predict.applicability import applicability
from udcp_dsl.predict.oracle import make_oracle

if TYPE_CHECKING:
    from tests.conftest import Sizes


@given(specs(max_labels=6))
def test_the_model_of_any_loss_has_its_value_on_every_set(spec: GeneratedSpec) -> None:
    loss = spec.compile()
    assert_lowers(loss, all_masks(loss.K))
    check_linear(loss)


@given(specs(max_labels=7))
def test_no_value_is_missing_from_a_grid(spec: GeneratedSpec) -> None:
    loss = spec.compile()
    found = grids(loss.expression)
    values = node_values(loss.expression, all_masks(loss.K))
    for node in loss.expression.nodes:
        grid = found[id(node)]
        if grid is None:
            continue
        for value in np.atleast_1d(values[id(node)]):
            near = 1e-9 * max(1.0, abs(value))
            around = grid.neighbours_of(value - near)
            assert around is None or around[1] <= value + near


# More labels than a comparison enumerates; every atom and operator, pushed either way and both.
DECLARED = """
labels 0..13
costs c { 0: 1.5, 1: -2, 2: 0.25, 3: 3, 5: 0.1, 8: -0.5, 11: 2, default: 1 }
costs e { 0: 3, 4: 0, default: 0.7 }
category C { 1, 3..6 }  category D { 0, 6, 13 }
categories F { a: { 0..4 }, b: { 3..8 }, c: { 9 }, d: { 10..13, 0 } }
costs w of F { a: 2, b: -1, c: 0.5, default: 0.25 }
hierarchy h { x { 0..2, xx { 3, 4 } }, y { yy { yyy { 5..7 }, 8 }, 9 }, 10..13 }
hierarchy even { p { 0..4 }, q { 5..8 }, r { 9..13 } }
distance d from "d.npy"
distance t = path(h, edge: 0.5)
distance g of F from "g.json"
actions u from "u.json"
"""
EXPRESSIONS = """
size(C); sum(c); max(c); min(c); max(e); min(e); count(F); count(F, w); any(C); all(C); within(C); empty; worst(u)
diameter(d); spread(d); radius(d); diameter(h); spread(h); radius(h); diameter(even); radius(even); diameter(t)
radius(t); spread(t); (size - 3) ^ 2; sqrt(size + 1); max(size - 3, 0) ^ 2; 1 / (1 + count(F)); size(C) >= 2
size == 4; (count(F) >= 2) * size(D); any(C) * sum(c); any(C) * count(F); all(D) * diameter(h); any(D) * min(c)
max(sum(c), diameter(h), 2); min(spread(d), 3 * size, sum(e)); any(C) and not any(D) and within(F.d)
any(C) or all(D) or empty; sum(c) >= 2.5; sum(c) > 1; diameter(d) <= 2; sum(c) == 1.5; count(F, w) < 1.25
worst(u) >= 1; diameter(h) == 4; max(c) > min(e); spread(h) >= 20; sum(c) >= sum(e); radius(d) < 1.5
if any(C) then sum(c) else diameter(h); if sum(c) >= 2 then 3 else count(F); if all(C) then size + 20 else -sum(e)
diameter(g); all(D) * diameter(g); diameter(g) >= 1
any(C) * any(D) + 2 * (sum(e) >= 3) * max(c); not (sum(c) >= 2) and diameter(h) >= 3
""".replace("\n", ";").split(";")


def hand_written(text: str) -> Loss:
    rng = np.random.default_rng(5)
    d = np.triu(rng.integers(0, 12, (14, 14)) / 4, 1)
    saved = io.BytesIO()
    np.save(saved, d + d.T)
    u = {str(y): {a: float(rng.integers(-4, 9)) / 4 for a in ("wait", "cut", "cool")} for y in range(14)}
    g = {"labels": ["b", "a", "d", "c"], "matrix": [[0, 1.5, 2, 0], [1.5, 0, 1, 0.5], [2, 1, 0, 1], [0, 0.5, 1, 0]]}
    files = {"d.npy": saved.getvalue(), "g.json": json.dumps(g).encode(), "u.json": str(u).replace("'", '"').encode()}
    return udcp.loads(DECLARED + text, files=files)


@pytest.mark.parametrize("text", [text.strip() for text in EXPRESSIONS if text.strip()])
def test_every_form_holds_whichever_way_it_is_pushed(text: str, sizes: Sizes) -> None:
    """On some sets by chance, other ones for each way, and on those of none, of one and of all labels."""
    rng = np.random.default_rng(len(text))
    for number, loss in enumerate(("i", "-i", "i + (if any(D) then -3 * i else 0)")):
        masks = rng.random((sizes.cases, 14)) < rng.random((sizes.cases, 1))
        masks = np.concatenate([masks, np.eye(14, dtype=bool)[[number]], [[False] * 14, [True] * 14]])
        assert_lowers(hand_written(f"let i = {text}  loss l = {loss}"), masks)


def refusal(text: str) -> str:
    rng = np.random.default_rng(0)
    saved = io.BytesIO()
    np.save(saved, rng.random(40))
    loss = udcp.loads(f'labels 0..39 costs c from "c.npy"\n{text}', files={"c.npy": saved.getvalue()})
    with pytest.raises(LoweringError) as refused:
        lower(loss)
    assert isinstance(refused.value, OracleError)
    with pytest.raises(LoweringError, match=re.escape(str(refused.value))):
        check_linear(loss)
    return str(refused.value)


def test_a_comparison_that_has_no_exact_form_is_named_with_its_place() -> None:
    message = refusal("loss l = size + 3 * (sum(c) >= 5)")
    assert message.startswith("<text>:2:21: '(sum(c) >= 5)' has no exact linear form: ")
    assert "decimals" in message


def test_values_too_close_to_tell_apart_are_refused() -> None:
    assert "too close" in refusal("costs e { default: 1 }  loss l = 1e8 * max(e) + any({ 0..5 }) >= 100000000.5")


def test_an_atom_may_say_that_it_has_no_linear_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def declined(self: Spread, model: Lowering, push: Push) -> Affine:
        raise NoLinearForm("its rows have not been found")

    monkeypatch.setattr(Spread, "lower", declined)
    monkeypatch.setattr(Spread, "always_linear", False)
    loss = udcp.loads("labels 0..2  hierarchy h { a { 0, 1 }, 2 }\nlet far = spread(h)  loss l = size + 2 * far")
    message = "<text>:2:11: 'spread(h)' has no exact linear form: its rows have not been found"
    with pytest.raises(LoweringError) as refused:
        lower(loss)
    assert str(refused.value) == message
    with pytest.raises(LoweringError, match=re.escape(message)):
        check_linear(loss)
    with pytest.raises(OracleError, match=re.escape(message)):
        make_oracle("ilp", loss)
    unused = udcp.loads("labels 0..2  hierarchy h { a { 0, 1 }, 2 }  loss l = size + 0 * spread(h)")
    assert lower(unused).rows == 0


def test_with_many_labels_no_model_is_made_to_say_that_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(self: Lowering, *given: object) -> None:
        raise AssertionError("lowered")

    for method in ("any_of", "done"):  # what a count is lowered with, and what makes the model
        monkeypatch.setattr(Lowering, method, made)
    nodes = ", ".join(f"n{i} {{ {20 * i}..{20 * i + 19} }}" for i in range(60))
    text = f"labels 0..1199  hierarchy h {{ {nodes} }}  loss l = diameter(h) * any({{ 0..9 }}) + count(h.level(1))"
    loss = udcp.loads(text)
    for name in ("ilp", "price"):
        found = applicability(name, loss)
        assert found.applies
        assert "variables" not in found.why


def test_what_an_atom_does_not_say_about_its_values_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spread, "grid", Atom.grid)
    loss = udcp.loads(f"labels 0..{_FEW}  hierarchy h {{ a {{ 0, 1 }}, 2..{_FEW} }}  loss l = spread(h) >= 3")
    with pytest.raises(LoweringError, match="it compares"):
        lower(loss)


def test_a_multiple_of_nothing_is_not_lowered() -> None:
    model = lower(udcp.loads("labels 0..9  loss l = size + 0 * (size({0..4}) ^ 2 * any({5..9}))"))
    assert (model.variables, model.rows) == (10, 0)


def test_rows_hold_only_the_sides_to_which_a_form_is_pushed() -> None:
    text = "labels 0..9  category C {0..7}  loss l = "
    down, up = (lower(udcp.loads(f"{text} {sign} any(C) + size")) for sign in ("", "-"))
    assert (down.rows, up.rows) == (8, 1)


def test_what_is_used_twice_is_lowered_once() -> None:
    text = "labels 0..9  category C {0..7}  let i = size ^ 3 - 2 * any(C)  loss l = "
    once, twice = (lower(udcp.loads(text + loss)) for loss in ("i", "i + 2 * i + 3 * any(C)"))
    assert once.variables == twice.variables


@pytest.mark.parametrize("atom", ["diameter", "radius", "spread"])
def test_a_hierarchy_of_many_labels_needs_no_pairs(atom: str) -> None:
    K = 800
    tree = ", ".join(f"n{i} {{ m{i} {{ {4 * i}..{4 * i + 2} }}, {4 * i + 3} }}" for i in range(K // 4))
    loss = udcp.loads(f"labels 0..{K - 1}  hierarchy h {{ {tree} }}  loss l = {atom}(h) - 0.1 * {atom}(h)")
    model = lower(loss)
    assert len(model.columns) < 30 * K


def test_push() -> None:
    assert Push.DOWN.through_factor(-2.0) is Push.UP
    assert Push.BOTH.through_factor(-1.0) is Push.BOTH
    assert Push.UP.through_factor(0.0) is Push.NONE
    assert Push.DOWN.through_function(True, False) is Push.DOWN
    assert Push.DOWN.through_function(False, True) is Push.UP
    assert Push.DOWN.through_function(False, False) is Push.BOTH
    assert Push.NONE.through_function(False, False) is Push.NONE


def test_grids_of_long_sums_keep_their_step() -> None:
    grid = Grid.sums(np.tile([0.1, 0.25, 1 / 3, 0.999], 40))
    assert grid is not None
    assert grid.points is None
    assert float(grid.step) == 1 / 3000
    assert grid.neighbours_of(1.0 - 1e-9) == (2999 / 3000, 1.0)
    assert Grid.sums(np.random.default_rng(0).random(60)) is None


def test_a_value_on_the_edge_of_the_tolerance_is_nobodys() -> None:
    assert Grid.of([0.0, 1.0]).neighbours_of(1.0) is None


def test_a_wrong_sign_is_shown_on_the_smallest_set(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Lowering.any_of
    monkeypatch.setattr(Lowering, "any_of", lambda self, members, push: right(self, members, push) * -1.0)
    loss = udcp.loads("labels 0..14  category C { 3..8 }  loss l = size + 5 * any(C)")
    with pytest.raises(AssertionError, match=r"on \{\} the interpreter gives 0.0 and the linear model gives -5.0"):
        assert_lowers(loss, np.ones((1, 15), dtype=bool))
