"""Random specs that read inputs of each row, and inputs for them: numbers of a generated spec become inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from udcp_dsl.diagnostics import SpecError
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import unparse
from udcp_dsl.testing.generated.specs import GeneratedSpec, specs
from udcp_dsl.testing.generated.vocabulary import NOWHERE, named, reference

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Ranges around a number of the spec: from it on, on both sides of it, itself alone, around 0 and 1.
_REACH = ((0.0, 2.0), (-1.0, 1.5), (0.0, 0.0), (-2.0, 0.0))
# Numbers of bodies that become inputs at most.
_MOST = 3


@st.composite
def specs_with_inputs(draw: st.DrawFn, /, **how: Any) -> GeneratedSpec:
    """Specs whose last loss reads inputs; `how` as for `specs`.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3, deadline=None)
    ... @given(specs_with_inputs(max_labels=3, max_depth=2))
    ... def test_it_reads_inputs(spec):
    ...     assert spec.compile().inputs
    >>> test_it_reads_inputs()
    """
    spec: GeneratedSpec = draw(specs(**how))
    for change in (_param, _costs):
        for at, x in enumerate(spec.tree.declarations):
            made = change(draw, x)
            if made is not None:
                spec = _compiling(spec, _with(spec.tree, at, made)) or spec
    for number in range(1, _MOST + 1):
        at, places = draw(st.sampled_from(_numbers(spec.tree)))
        if not places:
            break
        low, high = _range(draw, draw(st.sampled_from(places)).value)
        body = spec.tree.declarations[at]
        place = draw(st.integers(0, len(places) - 1))
        name = f"in{number}"
        changed = _mapped(body, _replacing(places[place], reference(name)))
        tree = _with(spec.tree, at, changed)
        declared = ast.Input(named(name), low, high, span=NOWHERE)
        spec = _compiling(spec, replace(tree, declarations=(declared, *tree.declarations))) or spec
    assume(spec.compile().inputs)
    return spec


def row_inputs(loss: Loss, n: int, seed: int) -> dict[str, Any]:
    """Inputs of n rows within their ranges, many of them round or 0, so that comparisons meet equal values."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, x in loss.inputs.items():
        values = rng.uniform(x.low, x.high, (n,) if x.width is None else (n, x.width))
        round_ones = rng.random(values.shape) < rng.choice([0.0, 0.3, 1.0])
        found[name] = np.clip(np.where(round_ones, values.round(), values), x.low, x.high)
    return found


def _compiling(spec: GeneratedSpec, tree: ast.Spec) -> GeneratedSpec | None:
    """The spec of a tree, where it is one: an input may stand in no exponent, and two in no product with a set."""
    made = replace(spec, text=unparse(tree), tree=tree)
    try:
        made.compile()
    except SpecError:
        return None
    return made


def _with(tree: ast.Spec, at: int, changed: Any) -> ast.Spec:
    return replace(tree, declarations=(*tree.declarations[:at], changed, *tree.declarations[at + 1 :]))


def _range(draw: st.DrawFn, value: float) -> tuple[ast.Signed, ast.Signed]:
    below, above = draw(st.sampled_from(_REACH))
    return ast.Signed(value + below, span=NOWHERE), ast.Signed(value + above, span=NOWHERE)


def _param(draw: st.DrawFn, x: object) -> ast.Input | None:
    if not isinstance(x, ast.Param):
        return None
    return ast.Input(x.name, *_range(draw, x.value.value), span=NOWHERE)


def _costs(draw: st.DrawFn, x: object) -> ast.Costs | None:
    if not isinstance(x, ast.Costs) or not draw(st.booleans()):
        return None
    per_row = ast.PerRow(*_range(draw, draw(st.sampled_from((0.0, 1.0)))), span=NOWHERE)
    return ast.Costs(x.name, x.of, per_row, span=NOWHERE)


def _numbers(tree: ast.Spec) -> list[tuple[int, list[ast.Number]]]:
    """The numbers in the bodies of lets and losses, by declaration."""
    found: list[tuple[int, list[ast.Number]]] = []
    for at, x in enumerate(tree.declarations):
        if isinstance(x, ast.Let | ast.LossDecl):
            numbers: list[ast.Number] = []
            _mapped(x, lambda node, numbers=numbers: numbers.append(node) if isinstance(node, ast.Number) else None)  # type: ignore[misc]
            found.append((at, numbers))
    return sorted(found, key=lambda pair: not pair[1])


def _replacing(number: ast.Number, by: ast.Ref) -> Callable[[Any], Any]:
    return lambda node: by if node is number else None


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree with some of its nodes changed: where `change` gives None, a node stays."""
    changed = change(node)
    if changed is not None:
        return changed
    if isinstance(node, tuple):
        return tuple(_mapped(part, change) for part in node)
    if is_dataclass(node) and not isinstance(node, type) and type(node).__module__ == ast.__name__:
        parts = {f.name: _mapped(getattr(node, f.name), change) for f in fields(node) if f.name != "span"}
        return replace(node, **parts)
    return node
