"""The exact oracle against brute force over all sets, on any loss; masses in exact arithmetic; what is not proved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.oracle import Floats, Masks
from udcp_dsl.testing import GeneratedSpec, all_masks, specs
from udcp_dsl.testing.brute import price_scores as brute_price_scores
from udcp_solvers.ilp import LEVELS, Ilp
from udcp_solvers.programs import exact as ilp_exact
from udcp_solvers.programs.by_mass import chain, targets
from udcp_solvers.programs.exact import Exact, Tally, short_cut
from udcp_solvers.programs.mass import has_mass
from udcp_solvers.programs.solver import Answer, export, open_solver, solver_name

GENERATED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SOME_LEVELS = [Fraction(x, 100) for x in (30, 50, 75, 90, 99, 100)]
TOLERANCE = 1e-9

GROUPS = """
labels 0..11
categories F { a: { 0..4 }, b: { 3..8 }, c: { 8..11, 0 } }
costs c { 0: 1.5, 3: 0.25, 7: 3, default: 1 }
hierarchy h { x { 0..4 }, y { yy { 5..7 }, 8 }, 9..11 }
loss l = 2 * count(F) + sum(c) + 0.5 * diameter(h)
"""


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


@settings(GENERATED, max_examples=80)
@given(st.data())
def test_each_set_of_the_chain_is_the_cheapest_with_its_mass(data: st.DataObject) -> None:
    spec: GeneratedSpec = data.draw(specs(max_labels=7))
    loss = spec.compile()
    assert_chain(loss, data.draw(rows(loss.K)), "HiGHS")


@settings(GENERATED, max_examples=15)
@given(st.data())
def test_the_same_with_cbc(data: st.DataObject) -> None:
    spec: GeneratedSpec = data.draw(specs(max_labels=6))
    loss = spec.compile()
    assert_chain(loss, data.draw(rows(loss.K)), "CBC")


@settings(GENERATED, max_examples=60)
@given(specs(max_labels=6), st.integers(0, 10**6), st.booleans())
def test_prices_are_those_of_the_hull(spec: GeneratedSpec, seed: int, ties: bool) -> None:
    loss = spec.compile()
    rng = np.random.default_rng(seed)
    p = rng.multinomial(16, np.full(loss.K, 1 / loss.K)) / 16 if ties else rng.dirichlet(np.full(loss.K, 0.5))
    oracle = Ilp(loss, program="price", canonical=True)
    np.testing.assert_allclose(oracle.scores(p[None])[0], brute_price_scores(loss, p.tolist()), rtol=1e-9, atol=1e-9)
    assert oracle.report.proved == 1


def test_prices_with_cbc() -> None:
    loss = udcp.loads(GROUPS)
    p = np.random.default_rng(2).dirichlet(np.full(12, 0.4))
    scores = Ilp(loss, program="price", solver="CBC").scores(p[None])[0]
    np.testing.assert_allclose(scores, brute_price_scores(loss, p.tolist()), rtol=1e-9)


def test_prices_keep_their_digits_where_labels_weigh_next_to_nothing() -> None:
    loss = udcp.loads("labels 0..5  category C {0..2}  loss l = 3 * any(C) + size + 2 * any({3, 4})")
    p = np.array([0.6, 0.4, 1e-12, 1e-20, 1e-100, 1e-300])
    oracle = Ilp(loss, program="price")
    np.testing.assert_allclose(oracle.scores(p[None])[0], brute_price_scores(loss, p.tolist()), rtol=1e-12)
    assert oracle.report.proved == 1


@pytest.mark.parametrize("solver", ["HiGHS", "CBC"])
def test_canonical_sets_do_not_depend_on_the_solver(solver: str) -> None:
    loss = udcp.loads("labels 0..7  categories F { a: {0, 1}, b: {2, 3}, c: {4, 5}, d: {6, 7} }  loss l = count(F)")
    sets = assert_chain(loss, np.full(8, 1 / 8), solver, canonical=True)
    assert [np.flatnonzero(mask).tolist() for mask in sets] == [
        [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6, 7],
    ]  # fmt: skip


# Masses in exact arithmetic


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from(SOME_LEVELS))
def test_a_target_is_its_fraction_of_the_exact_total_rounded_down(p: list[float], level: Fraction) -> None:
    (t,) = targets(np.array(p), [level])
    exact = sum(map(Fraction, p)) * level
    assert Fraction(t) <= exact
    assert Fraction(math.nextafter(t, 2.0**10)) > exact


@settings(GENERATED, max_examples=150)
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
    row = short_cut(p, short, t, inside)
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
    found = Exact(loss, Ilp(loss).model, "auto", canonical=False).cheapest(tally, p, t, np.zeros(24, dtype=bool))
    assert found is not None
    assert found.cost == 13.0
    assert tally.report().cuts == 1


# The oracle


def test_scores_score_of_and_sets_agree_to_the_last_bit() -> None:
    loss = udcp.loads(GROUPS)
    some = np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=4).astype(np.float32)
    for program, P in (("mass", some), ("price", some[:2])):
        oracle = udcp.make_oracle("ilp", loss, program=program)
        scores = oracle.scores(P)
        for y in (0, 7):
            assert (oracle.score_of(P, np.full(len(P), y)) == scores[:, y]).all()
        for tau in (*np.quantile(scores[np.isfinite(scores)], [0.2, 0.7]), scores[1, 5]):
            assert (oracle.sets(P, tau) == (scores <= tau)).all()
        # Nothing that was solved before leaves a trace.
        assert (oracle.scores(P[::-1])[::-1] == scores).all()


def test_the_order_is_block_after_block_and_then_by_mass() -> None:
    loss = udcp.loads("labels 0..5  categories F { a: {0, 1}, b: {2, 3}, c: {4, 5} }  loss l = count(F) + 0.001 * size")
    p = np.array([[0.3, 0.15, 0.05, 0.1, 0.33, 0.07]])
    oracle = Ilp(loss, levels=[0.45, 0.85])
    # {0, 1} has 0.45 in one category; {4, 5} brings it to 0.85; 3 and 2 are in no block.
    assert np.argsort(oracle.scores(p)[0]).tolist() == [0, 1, 4, 5, 3, 2]
    assert oracle.sets(p, -0.15 + 1e-12).tolist() == [[True, True, False, False, True, True]]
    assert oracle.report.instances == oracle.report.proved == 1


def test_default_levels_halve_what_may_remain() -> None:
    assert LEVELS[0] == 0.5
    assert 1 - LEVELS[-1] < 1e-6
    assert udcp.make_oracle("ilp", udcp.loads("labels 0..3 loss l = size")).options["levels"] == list(LEVELS)


def hard() -> tuple[Loss, Floats]:
    """An instance that takes far longer than a millisecond: many groups that overlap."""
    rng = np.random.default_rng(3)
    K = 60
    groups = ", ".join(f"g{i}: {{ {', '.join(map(str, sorted(rng.choice(K, 9, replace=False))))} }}" for i in range(40))
    return udcp.loads(f"labels 0..{K - 1}  categories F {{ {groups} }}  loss l = count(F)"), np.full((2, K), 1 / K)


@pytest.mark.parametrize("program", ["mass", "price"])
def test_what_hits_the_time_limit_is_counted_and_never_called_optimal(program: str) -> None:
    loss, P = hard()
    oracle = Ilp(loss, program=program, time_limit=0.001)
    with pytest.warns(UserWarning, match="2 of 2 instances are not proved optimal"):
        scores = oracle.scores(P)
    assert oracle.report.instances == oracle.report.hit_limit == 2
    assert oracle.report.proved == 0
    if program == "mass":
        assert np.isfinite(scores).all()


class Stumbling:
    """A solver that fails the first few times it is asked."""

    failures = 0

    def __init__(self, model: Any, wanted: object) -> None:
        self.name = "stumbling"
        self._solver = open_solver(model, "HiGHS")

    def ask(self, question: Any) -> Answer:
        if Stumbling.failures:
            Stumbling.failures -= 1
            return Answer("failed")
        return self._solver.ask(question)


def test_a_solver_that_fails_is_tried_once_more_and_then_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ilp_exact, "open_solver", Stumbling)
    loss = udcp.loads(GROUPS)
    P = np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=1)
    good = Ilp(loss, solver="HiGHS").scores(P)
    oracle = Ilp(loss, solver="HiGHS")
    Stumbling.failures = 1
    assert (oracle.scores(P) == good).all()
    assert (oracle.report.proved, oracle.report.retried, oracle.report.failed) == (1, 1, 0)
    Stumbling.failures = 2
    with pytest.warns(UserWarning, match="1 failed"):
        oracle.scores(P)
    assert (oracle.report.proved, oracle.report.retried, oracle.report.failed) == (0, 1, 1)


def test_an_answer_that_the_loss_contradicts_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lying(Stumbling):
        def ask(self, question: Any) -> Answer:
            answer = super().ask(question)
            return Answer(answer.status, answer.found, answer.value - 0.01)

    monkeypatch.setattr(ilp_exact, "open_solver", Lying)
    oracle = Ilp(udcp.loads(GROUPS), solver="HiGHS")
    with pytest.warns(UserWarning, match="1 are in doubt"):
        oracle.scores(np.full((1, 12), 1 / 12))
    assert oracle.report.doubtful == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"program": "maas"}, "program must be 'mass' or 'price', not 'maas'"),
        ({"levels": [0.9, 0.5]}, "levels must be rising numbers"),
        ({"levels": []}, "levels must be rising numbers"),
        ({"levels": [0.5, 1.5]}, "levels must be rising numbers"),
        ({"time_limit": 0}, "time_limit must be a number of seconds above 0, not 0"),
        ({"canonical": 1}, "canonical must be True or False, not 1"),
        ({"solver": "nonesuch"}, "PuLP has no solver 'nonesuch'; it knows "),
        ({"solver": "GUROBI"}, r"solver 'GUROBI' is not installed: pip install 'pulp\[gurobi\]'"),
        ({"solver": 3}, "solver is a name or a PuLP solver, not 3"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OracleError, match=message):
        udcp.make_oracle("ilp", udcp.loads("labels 0..3 loss l = size"), **options)


def test_a_solver_of_pulp_may_be_given_as_it_is() -> None:
    loss = udcp.loads(GROUPS)
    P = np.random.default_rng(1).dirichlet(np.full(12, 0.3), size=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        given_solver = pulp.getSolver(solver_name("CBC"), msg=False, gapRel=0.0)
    oracle = Ilp(loss, solver=given_solver, canonical=True)
    assert oracle.options["solver"] == given_solver.name
    np.testing.assert_array_equal(oracle.scores(P), Ilp(loss, canonical=True).scores(P))


def test_the_model_can_be_written(tmp_path: Any) -> None:
    model = Ilp(udcp.loads(GROUPS)).model
    for name in ("model.lp", "model.mps"):
        export(model, str(tmp_path / name))
        assert "x00" in (tmp_path / name).read_text()
    with pytest.raises(OracleError, match=r"\.lp or \.mps"):
        export(model, str(tmp_path / "model.txt"))


def test_masses_below_what_a_solver_sees_do_not_end_in_a_division_by_zero() -> None:
    """Corners of the hull that differ by such a mass alone come to one set when ties are settled."""
    loss = udcp.loads("labels 0..15  category C { 0, 1 }  category D { 2..9 }  loss l = all(C) + 0.5 * all(D) + size")
    p = np.where(np.arange(16) < 4, 0.25, 2.5e-31)[None, :]
    scores = Ilp(loss, program="price").scores(p)
    assert np.isfinite(scores[0, :4]).all()
    assert not np.isnan(scores).any()
