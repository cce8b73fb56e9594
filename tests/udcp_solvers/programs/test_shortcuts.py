"""What needs no solver, held equal to brute force over all sets and to the solver."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.check import all_masks, losses
from udcp_dsl.loss import Loss
from udcp_dsl.predict.oracle import Floats
from udcp_solvers.ilp import Ilp
from udcp_solvers.programs.by_mass import chain, targets
from udcp_solvers.programs.exact import Exact, Tally
from udcp_solvers.programs.mass import has_mass
from udcp_solvers.programs.shortcuts import Balls, Disjoint, Few, shortcut

LEVELS = [Fraction(x, 100) for x in (10, 30, 50, 75, 90, 99, 100)]


@st.composite
def disjoint(draw: st.DrawFn) -> Loss:
    """Labels in some of five categories or in none, each paid the same."""
    K = draw(st.integers(2, 8))
    where = draw(st.lists(st.integers(-1, 4), min_size=K, max_size=K))
    groups = {c: [y for y in range(K) if where[y] == c] for c in sorted(set(where) - {-1})}
    family = ", ".join(f"g{c}: {{ {', '.join(map(str, members))} }}" for c, members in groups.items())
    weight = draw(st.sampled_from(("", "0.3 * ")))
    return udcp.loads(f"labels 0..{K - 1}  categories F {{ {family or 'g: { 0 }'} }}  loss l = {weight}count(F) + 2")


@st.composite
def trees(draw: st.DrawFn) -> Loss:
    """A diameter over a tree of any shape, leaves at any depth."""
    K = draw(st.integers(2, 8))
    nodes: list[object] = list(range(K))
    while len(nodes) > 1 and draw(st.booleans()):
        first = draw(st.integers(0, len(nodes) - 1))
        last = draw(st.integers(first + 1, len(nodes)))
        nodes[first:last] = [nodes[first:last]]

    def text(node: object, path: str) -> str:
        if not isinstance(node, list):
            return str(node)
        return f"n{path} {{ {', '.join(text(child, f'{path}_{i}') for i, child in enumerate(node))} }}"

    body = ", ".join(text(node, str(i)) for i, node in enumerate(nodes))
    cost = draw(st.sampled_from(("diameter(h)", "0.7 * diameter(d) + 1")))
    return udcp.loads(f"labels 0..{K - 1}  hierarchy h {{ {body} }}  distance d = path(h, edge: 3)  loss l = {cost}")


@st.composite
def rows(draw: st.DrawFn, K: int) -> Floats:
    kind = draw(st.sampled_from(("any", "equal", "tiny")))
    if kind == "any":
        p = np.random.default_rng(draw(st.integers(0, 10**6))).dirichlet(np.full(K, 0.5))
    else:
        sizes = (1.0, 2.0, 3.0) if kind == "equal" else (0.0, 5e-324, 1e-17, 0.1, 0.2, 0.3)
        p = np.array(draw(st.lists(st.sampled_from(sizes), min_size=K, max_size=K)))
    return p / p.sum() if p.sum() > 1e-3 else np.full(K, 1 / K)


def assert_as_brute_force(loss: Loss, p: Floats) -> None:
    """At every level, given the set before, no set that has the mass costs less; and no question was asked."""
    tally = Tally()
    exact = Exact(loss, Ilp(loss).model, "auto", canonical=False)
    masks = all_masks(loss.K)
    costs = np.array([loss.interpret_positions(np.flatnonzero(mask).tolist()) for mask in masks])
    found = chain(exact, tally, p, LEVELS)
    held = np.zeros(loss.K, dtype=bool)
    for i, t in enumerate(targets(p, LEVELS)):
        best = min(c for mask, c in zip(masks, costs, strict=True) if (held <= mask).all() and has_mass(p, mask, t))
        if i == 0 or not has_mass(p, held, t):
            after = next(found)
            assert (held <= after).all()
            held = after
        assert math.fsum([*p[held].tolist(), -t]) >= 0
        assert loss.interpret_positions(np.flatnonzero(held).tolist()) == pytest.approx(best, abs=1e-12)
    assert (tally.report().questions, tally.report().proved) == (0, 1)


@given(st.data())
def test_fewest_categories_by_mass(data: st.DataObject) -> None:
    loss = data.draw(disjoint())
    assert isinstance(shortcut(loss), Disjoint)
    assert_as_brute_force(loss, data.draw(rows(loss.K)))


@given(st.data())
def test_smallest_ball_with_the_mass(data: st.DataObject) -> None:
    loss = data.draw(trees())
    assert isinstance(shortcut(loss), Balls)
    assert_as_brute_force(loss, data.draw(rows(loss.K)))


@given(st.data())
def test_all_sets_of_few_labels(data: st.DataObject) -> None:
    loss = data.draw(losses())
    assume(isinstance(shortcut(loss), Few))
    assert_as_brute_force(loss, data.draw(rows(loss.K)))


def many(body: str) -> Loss:
    """60 labels: 10 categories of 5 labels, 10 labels without; a tree of three levels."""
    family = ", ".join(f"g{c}: {{ {5 * c}..{5 * c + 4} }}" for c in range(10))
    inner = [", ".join(f"m{i}_{j} {{ {20 * i + 5 * j}..{20 * i + 5 * j + 4} }}" for j in range(4)) for i in range(3)]
    tree = ", ".join(f"n{i} {{ {nodes} }}" for i, nodes in enumerate(inner))
    return udcp.loads(f"labels 0..59  categories F {{ {family} }}  hierarchy h {{ {tree} }}  loss l = {body}")


@pytest.mark.parametrize("body", ["count(F)", "diameter(h)"])
def test_the_solver_says_the_same_of_many_labels(body: str) -> None:
    loss = many(body)
    P = np.random.default_rng(0).dirichlet(np.full(60, 0.3), size=3)
    for level in (0.3, 0.6, 0.9, 0.99):
        quick, solver = (Ilp(loss, levels=[level], solver=name) for name in ("auto", "HiGHS"))
        costs = [loss.batch(oracle.optimal(P)[0]).tolist() for oracle in (quick, solver)]
        assert costs[0] == costs[1]
        assert (quick.report.questions, quick.report.proved) == (0, 3)
        assert solver.report.questions >= 3


@pytest.mark.parametrize(
    "body",
    [
        "count(F) + size",
        "count(F) + diameter(h)",
        "diameter(h) + 0.1 * size",
        "-diameter(h)",
        "-count(F)",
        "count(F) + any({0..4})",
        "count(F) + any({0})",
        "count(F) + any({4, 5})",
        "count(F) ^ 2",
        "count(h.level(1)) + count(h.level(2))",
    ],
)
def test_anything_else_goes_to_the_solver(body: str) -> None:
    assert shortcut(many(body)) is None


@pytest.mark.parametrize("options", [{"solver": "HiGHS"}, {"canonical": True}])
def test_a_solver_that_is_named_is_used(options: dict[str, object]) -> None:
    oracle = Ilp(many("count(F)"), levels=[0.5], **options)  # type: ignore[arg-type]
    oracle.optimal(np.full((1, 60), 1 / 60))
    assert oracle.report.questions > 0
