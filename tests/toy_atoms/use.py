"""Everything that a new atom is good for, with no word about it anywhere but in its own file, line and page.

    python use.py NAME ...

Run by tests/test_toy_atom.py in a folder of its own, on a copy of the package to which the atoms were added.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings

import udcp_dsl as udcp
from udcp_dsl.check import (
    GeneratedSpec,
    all_masks,
    assert_facts,
    assert_lowers,
    assert_meaning,
    coverage,
    promises,
    specs,
)
from udcp_dsl.check.oracles import FORMULAS, greedy_fault
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.atoms import ATOMS
from udcp_dsl.expression.lower import lower
from udcp_dsl.predict.oracle import make_oracle
from udcp_solvers.greedy_orders.incremental_cost import grow

NAMES = sys.argv[1:]
promises.promises = lambda *asked: []  # they know nothing of atoms, and have tests of their own
coverage.TRIED = ("overconfident",)  # likewise
# As tests/conftest.py does it: hypothesis would read the source of all modules that are loaded.
with contextlib.suppress(ImportError, AttributeError):
    from hypothesis.internal.conjecture import providers

    vars(providers)["_get_local_constants"] = providers.Constants
# Whether it has a linear form, and whether compiled orders know how it grows.
KINDS = {"gravest": (True, True), "swing": (False, False)}


def spec(name: str) -> str:
    return f"labels 0..7  costs c {{ 1: 3, 4: -2, 5: 0.5, 6: 2.5, default: 1 }}\nloss toy = {name}(c) + 0.1 * size\n"


def parse(name: str, loss: udcp.Loss) -> None:
    assert name in list(ATOMS)[-len(NAMES) :]
    assert loss(["1", "4"]) == loss.interpret(["1", "4"])
    with pytest.raises(udcp.SpecError, match=f"did you mean '{name}'?"):
        udcp.loads(spec(name).replace(name, f"{name}s"))


def prove(name: str, loss: udcp.Loss) -> None:
    assert loss.facts.monotone
    assert bool(loss.facts.laminar) == KINDS[name][1]
    assert_meaning(loss)
    assert_facts(loss)


def order(name: str, loss: udcp.Loss) -> None:
    assert (grow(loss) is not None) == KINDS[name][1]
    P = np.random.default_rng(0).dirichlet(np.full(loss.K, 0.5), size=5)
    greedy = make_oracle("greedy", loss)
    penalized = make_oracle("penalized", loss, lam=0.1)
    for p, found, scores in zip(P, greedy.scores(P), penalized.scores(P), strict=True):
        order = np.lexsort((-p, found)).tolist()
        assert greedy_fault(loss, p.tolist(), order, loss.facts.interval.hi, 1e-12, steps=4) is None
        assert np.allclose(scores, FORMULAS["penalized"](loss, p.tolist(), {"lam": 0.1}))


def lower_or_decline(name: str, loss: udcp.Loss) -> None:
    Path("toy.loss").write_text(spec(name), encoding="utf-8")
    shown = CliRunner().invoke(main, ["check", "toy.loss", "--ilp"])
    if KINDS[name][0]:
        assert_lowers(loss, all_masks(loss.K)[::10])
        assert shown.exit_code == 0, shown.output
        assert lower(loss).rows > 0
        return
    why = f"2:12: '{name}(c)' has no exact linear form: nobody has written the rows of {name}"
    assert shown.exit_code == 1
    assert f"ilp: toy.loss:{why}" in " ".join(shown.output.split()), shown.output
    for use in (lower, lambda loss: make_oracle("ilp", loss)):
        with pytest.raises(OracleError) as declined:
            use(loss)
        assert str(declined.value) == f"<text>:{why}"


class Enough(Exception):
    """To end the search."""


@functools.cache
def generated() -> dict[str, list[udcp.Loss]]:
    """By name of the atom, the first two losses of generated specs that have it."""
    found: dict[str, list[udcp.Loss]] = {name: [] for name in NAMES}

    # Many small losses a spec: what it declares takes longer to draw than they do.
    @settings(max_examples=200, derandomize=True, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(specs(max_labels=4, max_depth=2, max_lets=0, max_losses=16))
    def collect(spec: GeneratedSpec) -> None:
        for loss, body in re.findall(r"^loss (\w+) =((?:.|\n )*)", spec.text, re.MULTILINE):
            for name, having in found.items():
                if f"{name}(" in body and len(having) < 2:
                    having.append(spec.compile(loss))
        if all(len(having) == 2 for having in found.values()):
            raise Enough

    with contextlib.suppress(Enough):
        collect()
    return found


def generate(name: str, loss: udcp.Loss) -> None:
    assert len(generated()[name]) == 2, f"{len(generated()[name])} losses of 200 generated specs have it"
    for having in generated()[name]:
        assert_meaning(having)
        assert_facts(having)


def validate(name: str, loss: udcp.Loss) -> None:
    shown = CliRunner().invoke(main, ["validate", "toy.loss", "--cases", "1", "--oracle", "greedy"])
    assert shown.exit_code == 0, shown.output


for added in NAMES:
    for step in (parse, prove, order, lower_or_decline, generate, validate):
        step(added, udcp.loads(spec(added)))
        print(step.__name__, flush=True)

# The manual, in the process that has all imported.
chosen = " or ".join([*NAMES, "page", "index", "links"])
sys.exit(pytest.main(["-rA", "-q", "-p", "no:cacheprovider", "tests/test_reference.py", "-k", chosen]))
