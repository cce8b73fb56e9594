"""Everything that a new atom is good for, with no word about it anywhere but in its own file, line and page.

    python use.py NAME

Run by tests/test_toy_atom.py in a folder of its own, on a copy of the package to which the atom NAME was added.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.atoms import ATOMS
from udcp_dsl.expression.lower import lower
from udcp_dsl.prediction.oracle import make_oracle
from udcp_dsl.testing import GeneratedSpec, all_masks, assert_facts, assert_lowers, assert_meaning, specs
from udcp_dsl.testing.formulas import FORMULAS, greedy_fault
from udcp_solvers.growth.growing import grow

NAME = sys.argv[1]
HAS_FORM, IS_COMPILED = {"gravest": (True, True), "swing": (False, False)}[NAME]
TEXT = f"labels 0..9  costs c {{ 1: 3, 4: -2, 5: 0.5, 8: 2.5, default: 1 }}\nloss toy = {NAME}(c) + 0.1 * size\n"
loss = udcp.loads(TEXT)


def parse() -> None:
    assert list(ATOMS)[-1] == NAME
    assert loss(["1", "4"]) == loss.interpret(["1", "4"])
    with pytest.raises(udcp.SpecError, match=f"did you mean '{NAME}'?"):
        udcp.loads(TEXT.replace(NAME, f"{NAME}s"))


def prove() -> None:
    assert loss.facts.monotone
    assert bool(loss.facts.laminar) == IS_COMPILED
    assert_meaning(loss)
    assert_facts(loss)


def order() -> None:
    assert (grow(loss) is not None) == IS_COMPILED
    P = np.random.default_rng(0).dirichlet(np.full(loss.K, 0.5), size=5)
    greedy = make_oracle("greedy", loss)
    penalized = make_oracle("penalized", loss, lam=0.1)
    for p, found, scores in zip(P, greedy.scores(P), penalized.scores(P), strict=True):
        order = np.lexsort((-p, found)).tolist()
        assert greedy_fault(loss, p.tolist(), order, loss.facts.interval.hi, 1e-12, steps=4) is None
        assert np.allclose(scores, FORMULAS["penalized"](loss, p.tolist(), {"lam": 0.1}))


def lower_or_decline() -> None:
    Path("toy.loss").write_text(TEXT, encoding="utf-8")
    shown = CliRunner().invoke(main, ["check", "toy.loss", "--ilp"])
    if HAS_FORM:
        assert_lowers(loss, all_masks(loss.K)[::40])
        assert shown.exit_code == 0, shown.output
        assert lower(loss).rows > 0
        return
    why = f"2:12: '{NAME}(c)' has no exact linear form: nobody has written the rows of {NAME}"
    assert shown.exit_code == 1
    assert f"ilp: toy.loss:{why}" in " ".join(shown.output.split()), shown.output
    for use in (lower, lambda loss: make_oracle("ilp", loss)):
        with pytest.raises(OracleError) as declined:
            use(loss)
        assert str(declined.value) == f"<text>:{why}"


def generate() -> None:
    found: list[GeneratedSpec] = []

    @settings(max_examples=150, derandomize=True, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(specs(max_labels=4))
    def collect(spec: GeneratedSpec) -> None:
        if f"{NAME}(" in spec.text:
            found.append(spec)

    collect()
    assert len(found) >= 3, f"{len(found)} of 150 generated specs have it"
    for spec in found[:3]:
        assert_meaning(spec.compile())
        assert_facts(spec.compile())


def validate() -> None:
    arguments = ["toy.loss", "--cases", "1", "--oracle", "greedy", "--oracle", "penalized"]
    shown = CliRunner().invoke(main, ["validate", *arguments])
    assert shown.exit_code == 0, shown.output


for step in (parse, prove, order, lower_or_decline, generate, validate):
    step()
    print(step.__name__)
