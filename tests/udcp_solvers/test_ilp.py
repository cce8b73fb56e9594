"""The exact oracle: its faces and options, its solvers, and what is not proved."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.specs import TWELVE, hard_to_solve, size_of
from udcp_dsl.check import probabilities, specs
from udcp_dsl.check.oracles import block_scores, own_share
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.predict.oracle import Floats, Masks
from udcp_solvers.ilp import LEVELS, Ilp
from udcp_solvers.programs import exact as ilp_exact
from udcp_solvers.programs.by_mass import chain
from udcp_solvers.programs.exact import Exact, Tally
from udcp_solvers.programs.solver import Answer, export, open_solver, solver_name


@pytest.mark.parametrize(
    "options",
    [{}, {"mass": "through"}, {"mass": "random", "seed": 2}, {"program": "price"}],
    ids=["before", "through", "random", "price"],
)
def test_scores_score_of_and_sets_agree_to_the_last_bit(options: dict[str, object]) -> None:
    loss = TWELVE
    n = 2 if "program" in options else 4
    P = np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=n).astype(np.float32)
    oracle = udcp.make_oracle("ilp", loss, **options)
    scores = oracle.scores(P)
    for y in (0, 7):
        assert (oracle.score_of(P, np.full(len(P), y)) == scores[:, y]).all()
    for tau in (-2.0, -1.0, *np.quantile(scores[np.isfinite(scores)], [0.2, 0.7]), scores[1, 5]):
        assert (oracle.sets(P, tau) == (scores <= tau)).all()
    # Nothing that was solved before leaves a trace.
    assert (oracle.scores(P[::-1])[::-1] == scores).all()


def test_the_order_is_block_after_block_and_then_by_mass() -> None:
    loss = udcp.loads("labels 0..5  categories F { a: {0, 1}, b: {2, 3}, c: {4, 5} }  loss l = count(F) + 0.001 * size")
    p = np.array([[0.3, 0.15, 0.05, 0.1, 0.33, 0.07]])
    # {0, 1} has 0.45 in one category; {4, 5} brings it to 0.85; 3 and 2 are in no block.
    oracle = Ilp(loss, levels=[0.45, 0.85], mass="through")
    assert np.argsort(oracle.scores(p)[0]).tolist() == [0, 1, 4, 5, 3, 2]
    assert oracle.sets(p, -0.15 + 1e-12).tolist() == [[True, True, False, False, True, True]]
    assert oracle.report.instances == oracle.report.proved == 1
    blocks = [[0, 1], [4, 5], [3], [2]]
    for options in ({}, {"mass": "random", "seed": 1}):
        oracle = Ilp(loss, levels=[0.45, 0.85], **options)
        meant = block_scores(p[0].tolist(), blocks, own_share(p[0], oracle.options))
        assert oracle.scores(p)[0].tolist() == meant
        assert meant[0] == meant[1] < meant[4] == meant[5] < meant[3] < meant[2]
        assert oracle.sets(p, meant[4]).tolist() == [[True, True, False, False, True, True]]
        assert oracle.sets(p, np.nextafter(meant[4], -1)).tolist() == [[True, True, False, False, False, False]]


@given(data=st.data())
def test_scores_by_mass_are_the_formula_on_generated_specs(data: st.DataObject) -> None:
    """Blocks are what the chain adds, each holding the cheapest set (judged in `programs/test_by_mass.py`)."""
    spec = data.draw(specs(max_labels=6))
    loss = spec.compile()
    P = data.draw(probabilities(loss.K, max_rows=2))
    for mass in ("before", "through", "random"):
        oracle = Ilp(loss, solver="HiGHS", canonical=True, levels=[0.3, 0.8, 0.99], mass=mass)
        for row, found in zip(P, oracle.scores(P), strict=True):
            p = row.astype(np.float64)
            held, blocks = np.zeros(loss.K, dtype=bool), []
            for mask in chain(oracle._exact, Tally(), p, oracle._settings.levels):
                blocks.append(by_falling_p(p, mask & ~held))
                held = mask
            singles = [[y] for y in by_falling_p(p, ~held)]
            if mass == "through":
                blocks = [[y] for block in blocks for y in block]
            assert found.tolist() == block_scores(
                row, [*filter(None, blocks), *singles], own_share(row, oracle.options)
            )


def test_the_mass_before_a_block_is_rounded_once() -> None:
    """The sum of the last three is rounded down; it would be rounded up if the second block were rounded before."""
    p = np.array([8, 8, 8, 4, 7]) / 35
    scores = Ilp(size_of("0..4"), levels=[0.3, 0.8, 0.99]).scores([p])[0]
    blocks = [[0, 1], [2, 4], [3]]
    rests = [1, math.fsum([p[2], p[4], p[3]]), p[3]]
    assert scores.tolist() == [-next(r for r, b in zip(rests, blocks, strict=True) if y in b) for y in range(5)]
    assert scores.tolist() == block_scores(p.tolist(), blocks, 1.0)


def by_falling_p(p: Floats, mask: Masks) -> list[int]:
    return sorted(np.flatnonzero(mask).tolist(), key=lambda y: (-p[y], y))


def test_default_levels_halve_what_may_remain() -> None:
    assert LEVELS[0] == 0.5
    assert 1 - LEVELS[-1] < 1e-6
    assert udcp.make_oracle("ilp", size_of("0..3")).options["levels"] == list(LEVELS)


@pytest.mark.parametrize("program", ["mass", "price"])
def test_what_hits_the_time_limit_is_counted_and_never_called_optimal(program: str) -> None:
    loss, P = hard_to_solve(), np.full((2, 60), 1 / 60)
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
    loss = TWELVE
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
    oracle = Ilp(TWELVE, solver="HiGHS")
    with pytest.warns(UserWarning, match="1 are doubtful"):
        oracle.scores(np.full((1, 12), 1 / 12))
    assert oracle.report.doubtful == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"program": "maas"}, "program must be 'mass' or 'price', not 'maas'"),
        ({"mass": "price"}, "mass must be 'before', 'through' or 'random', not 'price'"),
        ({"program": "price", "mass": "through"}, "with program='price' labels are scored by prices: leave out mass"),
        ({"levels": [0.9, 0.5]}, "levels must be increasing numbers"),
        ({"levels": []}, "levels must be increasing numbers"),
        ({"levels": [0.5, 1.5]}, "levels must be increasing numbers"),
        ({"time_limit": 0}, "time_limit must be a number of seconds above 0, not 0"),
        ({"canonical": 1}, "canonical must be True or False, not 1"),
        ({"solver": "nonesuch"}, "PuLP has no solver 'nonesuch'; it knows "),
        ({"solver": "GUROBI"}, r"solver 'GUROBI' is not installed: pip install 'pulp\[gurobi\]'"),
        ({"solver": 3}, "solver is a name or a PuLP solver, not 3"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OracleError, match=message):
        udcp.make_oracle("ilp", size_of("0..3"), **options)


def test_a_solver_of_pulp_may_be_given_as_it_is() -> None:
    loss = TWELVE
    P = np.random.default_rng(1).dirichlet(np.full(12, 0.3), size=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        given_solver = pulp.getSolver(solver_name("CBC"), msg=False, gapRel=0.0)
    oracle = Ilp(loss, solver=given_solver, canonical=True)
    assert oracle.options["solver"] == given_solver.name
    np.testing.assert_array_equal(oracle.scores(P), Ilp(loss, canonical=True).scores(P))


def test_the_model_can_be_written(tmp_path: Any) -> None:
    model = Ilp(TWELVE).model
    for name in ("model.lp", "model.mps"):
        export(model, str(tmp_path / name))
        assert "x00" in (tmp_path / name).read_text()
    with pytest.raises(OracleError, match=r"\.lp or \.mps"):
        export(model, str(tmp_path / "model.txt"))


@pytest.mark.parametrize(("unit", "gap"), [(1.0, 5e-10), (1e-10, 0.5), (1e6, 1e-10)])
def test_costs_that_differ_little_are_not_called_equal(unit: float, gap: float) -> None:
    """One label that costs a little more than two: the cheapest set is the two, proved or not."""
    costs = f"costs c {{ a: {unit / 2!r}, b: {unit / 2!r}, d: {unit * (1 + gap)!r} }}"
    loss = udcp.loads(f"labels {{ a, b, d }}\n{costs}\nloss l = sum(c)")
    tally = Tally()
    exact = Exact(loss, Ilp(loss).model, "HiGHS", canonical=True)
    found = exact.cheapest(tally, np.array([0.3, 0.3, 0.4]), 0.35, np.zeros(3, dtype=bool))
    assert found.mask.tolist() == [True, True, False]
    assert found.proved == (not tally.happened)


def test_costs_that_are_equal_are_called_so() -> None:
    loss = udcp.loads("labels { a, b, d }\ncosts c { a: 0.1, b: 0.2, d: 0.3 }\nloss l = sum(c)")
    exact = Exact(loss, Ilp(loss).model, "HiGHS", canonical=True)
    found = exact.cheapest(Tally(), np.array([0.3, 0.3, 0.4]), 0.35, np.zeros(3, dtype=bool))
    assert (found.mask.tolist(), found.proved) == ([False, False, True], True)
