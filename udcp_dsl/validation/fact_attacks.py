"""Are the proved facts true? Tries to refute every proved fact of every subexpression, and checks every refutation.

Submodularity is tried on squares S, S + i, S + j, S + i + j, monotonicity on steps S, S + i, and so on, over all
subsets of some labels. Labels that a counter-example does not need are removed from it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.testing.proofs import Finding, false_facts, false_refutations, smallest_finding
from udcp_dsl.testing.row_inputs import drawn_row
from udcp_dsl.testing.subset_lattices import MOST_LABELS, cubes
from udcp_dsl.validation.verdicts import CounterExample, Verdict

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.validation.plan import Plan

QUESTION = "is what was proved about it true?"
_CUBES = 3  # per round; one if there are many labels
_MANY_LABELS = 300
_PARTS, _REFUTED = "facts about its parts", "refuted facts"


def facts(loss: Loss, plan: Plan) -> list[Verdict]:
    """A verdict per proved fact of the loss, and for its interval, the facts of its parts, and the refutations."""
    found: list[Finding] = []
    sets = 0
    for rng in plan.rounds_of("facts"):
        for masks in cubes(loss, rng, many=_CUBES if loss.K <= _MANY_LABELS else 1):
            found += false_facts(loss, masks, drawn_row(loss, rng))
            sets += len(masks)
        if found or (loss.K <= MOST_LABELS and not loss.inputs):  # then all sets were tried
            break
    root = loss.expression.root
    against: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        against[finding.name if finding.node is root else _PARTS].append(finding)
    proved = {name: f"it is {name}" for name, fact in loss.facts if fact}
    claims = {**proved, "interval": "all costs are within its bounds", _PARTS: _PARTS}
    verdicts = [
        Verdict(claim, not against[name], sets, _note(loss, name), _shown(loss, against[name]))
        for name, claim in claims.items()
    ]
    wrong = false_refutations(loss)
    refuted = sum(fact.state == "refuted" for node in loss.expression.nodes for _, fact in loss.facts_of(node))
    return [*verdicts, Verdict(_REFUTED, not wrong, refuted, "", _shown(loss, wrong))]


def _note(loss: Loss, name: str) -> str:
    return f"{len(loss.expression.nodes)} parts" if name == _PARTS else ""


def _shown(loss: Loss, found: list[Finding]) -> CounterExample | None:
    if not found:
        return None
    smallest = smallest_finding(loss, found)
    sets = tuple(tuple(loss.labels[y] for y in np.flatnonzero(mask)) for mask in smallest.sets)
    return CounterExample(smallest.sentence(loss), sets=sets)
