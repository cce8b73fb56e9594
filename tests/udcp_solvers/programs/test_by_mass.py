"""The chain of sets over rising masses against brute force over all sets, on any loss; masses in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.check import GeneratedSpec, all_masks, specs
from udcp_dsl.loss import Loss
from udcp_dsl.predict.oracle import Floats, Masks
from udcp_solvers.ilp import Ilp
from udcp_solvers.programs.by_mass import chain, targets
from udcp_solvers.programs.exact import Exact, Tally, mass_cut
from udcp_solvers.programs.mass import has_mass

SOME_LEVELS = [Fraction(x, 100) for x in (30, 50, 75, 90, 99, 100)]
TOLERANCE = 1e-9


@st.composite
def rows(draw: st.DrawFn, K: int) -> Floats:
    """Probabilities: any, or such that many sets have the same mass, or with some that are next to nothing."""
    kind = draw(st.sampled_from(("any", "sixteenths", "tiny")))
    if kind == "any":
        p = np.random.default_rng(draw(st.integers(0, 10**6))).dirichlet(np.full(K, 0.5))
    else:
        sizes = (0, 1, 2, 3) if kind == "sixteenths" else (0.0, 5e-324, 1e-300, 1e-17, 1e-9, 0.25, 0.3)
        p = np.array(draw(st.lists(st.sampled_from(sizes), min_size=K, max_size=K)), dtype=np.float64)
    return p / p.sum() if p.sum() > 1e-3 else np.full(K, 1 / K)


def costs_of(loss: Loss) -> Floats:
    return np.array([loss.interpret_positions(np.flatnonzero(mask).tolist()) for mask in all_masks(loss.K)])


def assert_chain(loss: Loss, p: Floats, solver: str, canonical: bool = False) -> list[Masks]:
    """At every level, given the set before, no set that has the mass costs less."""
    oracle = Ilp(loss, solver=solver, canonical=canonical)
    tally = Tally()
    found = iter(chain(oracle._exact, tally, p, SOME_LEVELS))
    masks, costs = all_masks(loss.K), costs_of(loss)
    sets = []
    held = None
    for t in targets(p, SOME_LEVELS):
        before = np.zeros(loss.K, dtype=bool) if held is None else held
        fitting = [i for i, mask in enumerate(masks) if (before <= mask).all() and has_mass(p, mask, t)]
        best = min(costs[i] for i in fitting)
        if held is None or not has_mass(p, held, t):
            held = next(found)
            sets.append(held)
        assert math.fsum([*p[held].tolist(), -t]) >= 0
        assert (before <= held).all()
        cost = loss.interpret_positions(np.flatnonzero(held).tolist())
        assert abs(cost - best) <= TOLERANCE * max(1.0, abs(best))
    assert next(found, None) is None
    assert tally.report().proved == 1
    return sets


@given(st.data())
def test_each_set_of_the_chain_is_the_cheapest_with_its_mass(data: st.DataObject) -> None:
    spec: GeneratedSpec = data.draw(specs(max_labels=7))
    loss = spec.compile()
    assert_chain(loss, data.draw(rows(loss.K)), "HiGHS")


@pytest.mark.slow
@given(st.data())
def test_the_same_with_cbc(data: st.DataObject) -> None:
    spec: GeneratedSpec = data.draw(specs(max_labels=6))
    loss = spec.compile()
    p = data.draw(rows(loss.K))
    assume(p[p > 0].min() > 1e-290)  # with smaller ones CBC may give no answer, which is reported
    assert_chain(loss, p, "CBC")


@pytest.mark.parametrize("solver", ["HiGHS", "CBC"])
def test_canonical_sets_do_not_depend_on_the_solver(solver: str) -> None:
    loss = udcp.loads("labels 0..7  categories F { a: {0, 1}, b: {2, 3}, c: {4, 5}, d: {6, 7} }  loss l = count(F)")
    sets = assert_chain(loss, np.full(8, 1 / 8), solver, canonical=True)
    assert [np.flatnonzero(mask).tolist() for mask in sets] == [
        [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6, 7],
    ]  # fmt: skip


# Masses in exact arithmetic


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from(SOME_LEVELS))
def test_a_target_is_its_fraction_of_the_exact_total_rounded_down(p: list[float], level: Fraction) -> None:
    (t,) = targets(np.array(p), [level])
    exact = sum(map(Fraction, p)) * level
    assert Fraction(t) <= exact
    assert Fraction(math.nextafter(t, 2.0**10)) > exact


@given(st.data())
def test_a_cut_takes_the_short_set_and_no_set_that_has_the_mass(data: st.DataObject) -> None:
    K = data.draw(st.integers(1, 7))
    p = data.draw(rows(K))
    masks = all_masks(K)
    short, inside = (masks[data.draw(st.integers(0, len(masks) - 1))] for _ in range(2))
    inside = inside & short
    some = masks[data.draw(st.integers(0, len(masks) - 1))]
    t = math.fsum([*p[some].tolist(), data.draw(st.sampled_from((0.0, 1e-12)))])
    if has_mass(p, short, t):
        return
    row = mass_cut(p, short, t, inside)
    meets = masks[:, row.columns] @ row.coefficients >= row.low
    assert not meets[(masks == short).all(axis=1)].any()
    for mask in masks[~meets]:
        assert not (inside <= mask).all() or not has_mass(p, mask, t)


def near_subsets(p: Floats) -> Iterator[float]:
    """Masses next to the sums of some subsets, which no solver can tell from them."""
    for mask in all_masks(len(p))[1::7]:
        mass = math.fsum(p[mask].tolist())
        yield from (mass, math.nextafter(mass, 2.0), mass + 1e-12, mass - 1e-12, mass * (1 + 1e-13))


@pytest.mark.parametrize(
    "p",
    [
        np.full(7, 1 / 7),
        np.array([0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1]),
        np.array([0.5, 0.5 - 2e-13, 1e-13, 1e-13, 5e-324, 5e-324, 0.0]),
        np.array([0.3, 0.3, 0.3, 0.1 - 3e-17, 1e-17, 1e-17, 1e-17]),
        np.random.default_rng(0).dirichlet(np.full(7, 0.3)),
    ],
    ids=["equal", "tenths", "tiny", "below an ulp", "any"],
)
def test_a_mass_next_to_that_of_a_set_is_reached_exactly(p: Floats) -> None:
    loss = udcp.loads("labels 0..6  categories F { a: {0..2}, b: {2..4}, c: {5, 6} }  loss l = count(F) + 0.125 * size")
    exact = Exact(loss, Ilp(loss).model, "auto", canonical=False)
    masks, costs = all_masks(7), costs_of(loss)
    nothing = np.zeros(7, dtype=bool)
    total = math.fsum(p.tolist())
    for t in near_subsets(p):
        if t <= 0 or math.fsum([*p.tolist(), -t]) < 0:
            continue
        tally = Tally()
        found = exact.cheapest(tally, p, t, nothing)
        assert found is not None
        assert found.proved
        assert math.fsum([*p[found.mask].tolist(), -t]) >= 0
        best = min(cost for mask, cost in zip(masks, costs, strict=True) if math.fsum([*p[mask].tolist(), -t]) >= 0)
        assert found.cost == best, (t, total)


def test_one_cut_takes_all_choices_among_equal_labels() -> None:
    """12 of 24 equal labels are short by a hair: there are 2.7 million such sets."""
    loss = udcp.loads("labels 0..23  loss l = size + 0.5 * any({0..3})")
    p = np.full(24, 1 / 24)
    t = math.nextafter(math.fsum(p[:12].tolist()), 1.0)
    tally = Tally()
    found = Exact(loss, Ilp(loss).model, "HiGHS", canonical=False).cheapest(tally, p, t, np.zeros(24, dtype=bool))
    assert found is not None
    assert found.cost == 13.0
    assert tally.report().cuts == 1
