"""Oracles speak for themselves: without a compiler, by the decision that they take, and in the time that they say."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cli.check import seconds_per_row
from udcp_dsl.predict.oracle import (
    Declaration,
    ExternalOracle,
    Refusal,
    SolvingOracle,
    Time,
    Way,
    declaration_of,
    make_oracle,
    oracle_names,
    with_lambda,
)

SPECS = sorted((Path(__file__).parents[3] / "specs").glob("*/*.loss"))
OURS = ("base", "greedy", "ilp", "lac", "penalized", "price", "raps", "ratio")
EVERY = [(spec, name) for spec in SPECS for name in udcp.load(spec).losses]


def declared(name: str) -> Declaration:
    says = declaration_of(name)
    assert says is not None, name
    return says


def test_all_of_ours_are_declared() -> None:
    assert set(OURS) <= set(oracle_names())
    for name in OURS:
        assert declared(name).does
        assert declared(name).choose_for


def test_asking_every_oracle_about_every_spec_imports_no_compiler_and_no_solver() -> None:
    program = (
        "import sys, udcp_dsl as udcp\n"
        "from udcp_dsl.predict.oracle import declaration_of\n"
        f"for spec in {[str(spec) for spec in SPECS]}:\n"
        "    first = udcp.load(spec)\n"
        "    for name in first.losses:\n"
        "        loss = first if name == first.name else udcp.load(spec, loss=name)\n"
        f"        for oracle in {OURS}:\n"
        "            declaration_of(oracle).way(loss)\n"
        "print([m for m in 'numba llvmlite scipy pulp highspy torch'.split() if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_orders_of_magnitude() -> None:
    assert [Time.of(s) for s in (0, 9e-4, 1e-3, 0.99, 1, np.inf)] == [
        "microseconds", "microseconds", "milliseconds", "milliseconds", "longer", "longer",
    ]  # fmt: skip


def test_a_refusal_names_the_fact_and_the_place() -> None:
    loss = udcp.loads("labels {a, b, c}  loss l = size + 2 * any({a, b})")
    refusal = declared("ratio").way(loss)
    assert isinstance(refusal, Refusal)
    assert refusal.fact == "separable"
    assert refusal.blame == loss.facts.separable.blame
    assert refusal.why == "needs separable, which is refuted because of any({a, b}) (line 1)"


MANY = """
labels 0..29
category C { 0..9 }
categories O { o: { 0..19 }, q: { 10..29 } }
hierarchy h { x { 0..9 }, 10..29 }
costs k { 0: 1, default: 2 }
loss l =
"""


@pytest.mark.parametrize(
    ("body", "price", "greedy"),
    [
        ("size + any(C)", "entry prices of nested categories", "a bound per group of equal labels"),
        ("diameter(h) + sum(k)", "the best set in every ball of the tree", "a bound per group of equal labels"),
        ("size ^ 2", "the best set of every size", "a bound per group of equal labels"),
        ("count(O) + size", "minimum cuts", "a bound per group of equal labels"),
        ("2 * (any({0}) and any({1})) + sum(k)", "branch and bound", "the cost per group of equal labels"),
        ("spread(h)", "branch and bound", "the cost of every label"),
    ],
)
def test_the_way_is_the_one_that_is_taken(body: str, price: str, greedy: str) -> None:
    loss = udcp.loads(MANY + body)
    for name, words in (("price", price), ("greedy", greedy)):
        way = declared(name).way(loss)
        assert isinstance(way, Way)
        assert way.algorithm.startswith(words)
        assert way.exact == (name == "price")


def test_what_solves_and_what_is_tuned_is_so_by_its_class() -> None:
    loss = size_of("a b c")
    for name in OURS:
        oracle = make_oracle(name, loss)
        assert isinstance(oracle, SolvingOracle) == declared(name).solves
        assert oracle.untuned == declared(name).tuned
    tuned = with_lambda(make_oracle("penalized", loss), 0.5)
    assert (tuned.untuned, tuned.options) == (False, {"lam": 0.5, "mass": "before"})


def test_a_stranger_declares_the_same_way() -> None:
    class Tuned:
        declaration = Declaration("nothing", "nobody", lambda loss: Way("none", False, 0.0), tuned=True)

        def __init__(self, loss: Any, lam: float | None = None) -> None:
            self.options = {"lam": lam}

        def scores(self, P: Any) -> Any:
            return -P

        score_of = sets = scores

    loss: Any = SimpleNamespace(labels=("a", "b"))
    assert ExternalOracle(Tuned(loss), loss, "tuned", {"lam": None}).untuned
    assert not ExternalOracle(Tuned(loss, 1.0), loss, "tuned", {"lam": 1.0}).untuned


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "name"), EVERY, ids=[f"{spec.stem}-{name}" for spec, name in EVERY])
def test_the_time_is_as_declared(spec: Path, name: str) -> None:
    """The class, not a number: a row stays below its bound, and is not a twentieth of what its class begins with. No
    time is declared where a solver may have to be asked."""
    loss = udcp.load(spec, loss=name)
    for oracle in OURS:
        way = declared(oracle).way(loss)
        if isinstance(way, Refusal):
            continue
        seconds = seconds_per_row(oracle, loss)
        assert seconds is not None
        begins = {Time.MICROSECONDS: 0.0, Time.MILLISECONDS: 1e-3, Time.LONGER: 1e-2}[way.time]
        least = 0.0 if math.isinf(way.seconds) else begins / 20
        assert least <= seconds < way.time.most, (oracle, way, seconds)
