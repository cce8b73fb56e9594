"""Random well-typed specs: all faces of a loss mean the same, text and tree are inverse, and what is proved is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import find, given

import udcp_dsl as udcp
from udcp_dsl.check import (
    GeneratedSpec,
    all_masks,
    assert_facts,
    assert_meaning,
    label_sets,
    losses,
    probabilities,
    specs,
)
from udcp_dsl.diagnostics import Source
from udcp_dsl.expression import prove
from udcp_dsl.expression.atoms import ATOMS
from udcp_dsl.expression.atoms.count import Count
from udcp_dsl.expression.atoms.diameter import Diameter, DiameterIncrement
from udcp_dsl.expression.atoms.max import Max
from udcp_dsl.expression.atoms.min import Min
from udcp_dsl.expression.atoms.spread import Spread
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.facts import Interval
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.language.unparse import unparse
from udcp_dsl.rows.matrix import probabilities as checked_probabilities

if TYPE_CHECKING:
    from tests.conftest import SeenAmong


# What every spec must keep ------------------------------------------------------------------------------------------


def assert_inverse(spec: GeneratedSpec) -> None:
    tree, faults = parse(Source("generated", spec.text))
    assert not faults
    assert tree == spec.tree
    assert unparse(tree) == spec.text


def losses_of(spec: GeneratedSpec) -> list[udcp.Loss]:
    return [spec.compile(x.name.text) for x in spec.tree.declarations if isinstance(x, ast.LossDecl)]


def assert_parts(loss: udcp.Loss) -> None:
    """Oracles that need a laminar loss or a tree diameter read them from the additive form; terms have two faces."""
    assert loss.form is not None or not (loss.facts.laminar or loss.facts.tree_diameter)
    full = np.ones((1, loss.K), dtype=bool)
    of_full = {text: values[0] for text, values in loss.terms_batch(full).items()}
    assert loss.terms(full[0]) == pytest.approx(of_full, 1e-9, 1e-9)


@given(specs())
def test_all_faces_and_parts_agree_on_every_set(spec: GeneratedSpec) -> None:
    for loss in losses_of(spec):
        assert_meaning(loss)
        assert_parts(loss)


@given(specs())
def test_every_fact_of_every_node_holds_on_every_set(spec: GeneratedSpec) -> None:
    for loss in losses_of(spec):
        assert_facts(loss)


@given(specs())
def test_unparse_and_parse_are_inverse(spec: GeneratedSpec) -> None:
    assert_inverse(spec)


# What is generated --------------------------------------------------------------------------------------------------


def _features(spec: GeneratedSpec) -> set[str]:
    found = {"labels from outside"} if spec.labels is not None else set()
    for x in spec.tree.declarations:
        kind = type(x).__name__
        body = getattr(x, "body", None)
        form = body.path.rpartition(".")[2] if isinstance(body, ast.File) else type(body).__name__
        found.add(f"{kind} {form}" if isinstance(body, ast.File | tuple | ast.Path) else kind)
        if isinstance(x, ast.Costs) and x.of is not None:
            found.add("costs of a level" if x.of.parts else "costs of a family")
        if isinstance(x, ast.Distance) and x.of is not None:
            found.add(f"distance of a {'level' if x.of.parts else 'family'}")
            found.add(f"distance of categories {form}")
        if isinstance(x, ast.Let | ast.LossDecl):
            found |= _features_of(x.body)
    return found


def _features_of(body: ast.Expr) -> set[str]:
    found: set[str] = set()
    stack: list[ast.Expr] = [body]
    while stack:
        e = stack.pop()
        stack.extend(ast.children(e))
        match e:
            case ast.Call():
                found.add(f"{e.name}/{len(e.arguments or ())}")
            case ast.Comparison():
                found.add(e.operator)
            case ast.Product():
                found |= {operator for operator, _ in e.factors}
            case ast.Sum():
                found |= {"+" if sign > 0 else "-" for sign, _ in e.terms[1:]}
            case ast.Ref() if not e.parts:
                found.add(f"name {e.head.text[0]}")
            case _:
                found.add(type(e).__name__)
    return found


def test_every_declaration_atom_and_operator_is_generated(seen_among: SeenAmong) -> None:
    forms = {
        "Labels": "csv json tuple",
        "Hierarchy": "csv json tuple",
        "Costs": "csv json npy tuple",
        "Distance": "csv json npy Path",
        "Category": "csv json tuple",
        "Categories": "csv json tuple",
        "Actions": "csv json",
    }
    expected = {f"{kind} {form}" for kind, several in forms.items() for form in several.split()}
    expected |= {
        "distance of a family",
        "distance of a level",
        *(f"distance of categories {form}" for form in "csv json npy".split()),
    }
    expected |= {"Param", "Let", "LossDecl", "labels from outside", "costs of a family", "costs of a level"}
    expected |= {f"{name}/{len(s)}" for name, atom in ATOMS.items() for s in atom.signatures}
    expected |= {"max/2", "min/2", "max/3", "min/3", "sqrt/1", "log1p/1"}
    expected |= set("+ - * / >= > <= < ==".split()) | {"Negative", "Power", "And", "Or", "Not", "If", "Number"}
    expected |= {"name p", "name i", "name l"}  # params, lets, other losses
    seen = seen_among(specs(), _features, expected)
    assert expected <= seen, sorted(expected - seen)


@given(losses(max_labels=4, max_depth=2))
def test_generated_losses_keep_their_limits(loss: udcp.Loss) -> None:
    assert 1 <= loss.K <= 4


def test_too_many_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="max_labels is 9"):
        find(specs(max_labels=9), lambda spec: True)


def test_all_masks_are_all_sets_once() -> None:
    masks = all_masks(5)
    assert masks.shape == (32, 5)
    assert len({row.tobytes() for row in masks}) == 32
    with pytest.raises(udcp.InputError, match="at most 20"):
        all_masks(21)


_PETS = udcp.loads("labels {cat, dog, wolf, 7}  loss l = size")


@given(label_sets(_PETS))
def test_label_sets_are_sets_of_labels(S: frozenset[str]) -> None:
    assert _PETS(S) == len(S)


@given(probabilities(3))
def test_probabilities_are_what_every_command_accepts(P: Floats) -> None:
    assert checked_probabilities(P, ["a", "b", "c"]).shape == P.shape


def test_probabilities_have_ties_zeros_ones_and_all_types(seen_among: SeenAmong) -> None:
    expected = {"float16", "float32", "float64", "zero", "one", "tie"}

    def features(P: Floats) -> set[str]:
        hits = {"zero": P == 0, "one": P == 1, "tie": P[:, 0] == P[:, 1]}
        return {P.dtype.name, *(name for name, hit in hits.items() if hit.any())}

    assert seen_among(probabilities(3), features, expected) == expected


# The assertions can fail --------------------------------------------------------------------------------------------

_LINE = """
labels { a, b, c, d }
costs k { a: 1, b: -2, c: 3, d: 0 }
categories F { x: { a, b }, y: { c, d } }
hierarchy h { p { r { a } }, q { s { b } }, c, d }
"""


def _loss(body: str) -> udcp.Loss:
    return udcp.loads(f"{_LINE} loss l = {body}")


def test_a_wrong_batch_is_shown_on_the_smallest_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Max, "batch", lambda self, sets: np.where(sets.mask, self.costs, 0.0).max(axis=1))
    with pytest.raises(AssertionError, match=r"on \{b\} the interpreter gives -2.0 and batch gives 0.0"):
        assert_meaning(_loss("max(k)"))


def test_a_wrong_increment_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiameterIncrement, "after", lambda self: self.far)  # forgets the diameter so far
    with pytest.raises(AssertionError, match=r"on \{a, b, [cd]\} .* 6.0 and increments\(...\).after\(\) gives 4.0"):
        assert_meaning(_loss("diameter(h)"))


def test_a_state_that_is_not_pushed_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiameterIncrement, "push", lambda self, y: None)
    with pytest.raises(AssertionError, match=r"on \{., .\} .* and increments\(...\).after\(\) gives 0.0"):
        assert_meaning(_loss("diameter(h)"))


@pytest.mark.parametrize(
    ("atom", "body", "claim"),
    [
        (Count, "count(F)", "separable"),
        (Diameter, "diameter(h)", "supermodular"),
        (Count, "count(F)", "antitone"),
        (Count, "count(F)", "cardinality"),
        (Min, "2 * min(k)", "monotone"),
        (Diameter, "2 * diameter(h)", "submodular"),
    ],
)
def test_a_false_fact_is_shown(atom: type, body: str, claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atom, "proves", lambda self: {claim: "it is said so"})
    with pytest.raises(AssertionError, match=f"is not {claim}, which is proved: L"):
        assert_facts(_loss(body))


def test_a_false_interval_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spread, "interval", Interval(0.0, 3.0))
    monkeypatch.setattr(Spread, "proves", lambda self: {})
    with pytest.raises(AssertionError, match=r"outside its interval \[0.0, 3.0\]: L\(\{a, b\}\) = 6.0"):
        assert_facts(_loss("spread(h)"))


def test_a_false_laminar_form_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udcp_dsl.expression.forms.nesting", lambda form: ([], []))
    with pytest.raises(AssertionError, match="is not laminar, which is proved"):
        assert_facts(_loss("any({a, b}) + any({b, c})"))


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("nonnegative", (1,)),
        ("monotone", (0, 1)),
        ("antitone", (1, 0)),
        ("separable", (0, 0, 0, 0)),
        ("submodular", (1, 2, 3, 0)),
        ("supermodular", (1, 2, 2, 0)),
        ("laminar", (1, 2, 3, 0)),
        ("cardinality", (1, 3)),
    ],
)
def test_a_refutation_by_the_wrong_sets_is_shown(
    name: str, sets: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(prove._VIOLATIONS, name, lambda f, m, slack: (sets, "these"))
    bodies = {"monotone": "size - 2 * min(k)", "laminar": "diameter(h) * all({a, d})", "nonnegative": "max(k) + size"}
    with pytest.raises(AssertionError, match=f"{name} is refuted, but not by"):
        assert_facts(_loss(bodies.get(name, "diameter(h) + min(k)")))


# Specs of more labels than can be tried one by one -------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        *("languages/branches", "dermatology/triage", "referral/teams", "tickets/tickets"),
        pytest.param("languages/diameter", marks=pytest.mark.slow),  # the interpreter looks at all pairs of 140 labels
    ],
)
def test_example_specs_with_many_labels(spec: str, pytestconfig: pytest.Config) -> None:
    loss = udcp.load(pytestconfig.rootpath / "specs" / f"{spec}.loss")
    assert_meaning(loss)
    assert_facts(loss)


def test_a_fault_among_many_labels_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = udcp.loads("labels 0..29  loss l = size + 3 * all({3, 4})")
    assert_meaning(loss)
    monkeypatch.setattr(Max, "batch", lambda self, sets: sets.size)
    with pytest.raises(AssertionError, match="batch gives"):
        assert_meaning(udcp.loads("labels 0..29  costs c {5: 2, default: 1}  loss l = max(c)"))
