"""Does the compiled loss mean what was written? Compares all ways to compute it with the naive interpreter.

With up to 12 labels all sets are tried; with more, sets of all sizes, single labels, categories, and categories with
one label too many or too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.lower import LoweringError, lower
from udcp_dsl.testing.lowering import linear_differences
from udcp_dsl.testing.meaning import Difference, differences, first_difference, smallest_difference
from udcp_dsl.testing.row_inputs import of_a_row
from udcp_dsl.testing.subset_lattices import MOST_LABELS, all_masks, varied_sets
from udcp_dsl.validation.verdicts import CounterExample, Verdict

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.validation.plan import Plan

QUESTION = "does the compiled loss mean what was written?"
_SETS = 48  # per round
_SINGLES = 300  # labels that are tried as sets of one; all, if there are no more
_CELLS = 50_000  # entries of the masks, if there are thousands of labels
_SOLVED = 12  # sets on which the linear model is solved, and as many single labels
_FEWEST = 4  # of these at least, however long they take


def meaning(loss: Loss, plan: Plan) -> list[Verdict]:
    """Compare evaluators, increments, terms and the linear model with the interpreter."""
    every = loss.K <= MOST_LABELS
    found: list[Difference] = []
    linear: list[Difference] = []
    tried = solved = 0
    no_model = _why_no_model(loss)
    for rng in plan.rounds_of("meaning"):
        masks = varied_sets(loss, rng, max(_SOLVED, min(_SETS, _CELLS // loss.K)))
        singles = np.arange(loss.K) == rng.permutation(loss.K)[: max(_SOLVED, min(_SINGLES, _CELLS // loss.K)), None]
        if not every or not tried or loss.inputs:  # all sets are tried only once
            sets = all_masks(loss.K) if every else rng.permutation(masks if tried else np.concatenate([masks, singles]))
            for part in plan.parts("meaning", len(sets), len(sets) if every else _SOLVED):
                found += differences(loss, sets[part], rng)
                tried += len(sets[part])
        if no_model is None:
            some = np.concatenate([masks[rng.choice(len(masks), _SOLVED, replace=False)], singles[:_SOLVED]])
            some = rng.permutation(some)
            for part in plan.parts("meaning", len(some), _FEWEST):
                linear += linear_differences(of_a_row(loss, rng), some[part])
                solved += len(some[part])
        if found or linear:
            break
    kinds = "all sets" if every else "all sizes, single labels, categories and nearly categories"
    kinds += ", with random inputs" if loss.inputs else ""
    verdicts = [Verdict("all ways to compute the loss agree", not found, tried, kinds, _shown(loss, found))]
    if no_model is not None:
        return [*verdicts, Verdict("the linear model agrees with the loss", None, 0, no_model, applies=False)]
    example = None
    if linear:
        smallest = first_difference(linear, lambda mask: linear_differences(loss.example, mask[None]))
        example = _example(loss, smallest)
    return [*verdicts, Verdict("the linear model agrees with the loss", not linear, solved, "", example)]


def _why_no_model(loss: Loss) -> str | None:
    try:
        lower(loss.example)
    except LoweringError as error:
        return str(error)
    return None


def _shown(loss: Loss, found: list[Difference]) -> CounterExample | None:
    return _example(loss, smallest_difference(loss, found)) if found else None


def _example(loss: Loss, difference: Difference) -> CounterExample:
    labels = tuple(loss.labels[y] for y in np.flatnonzero(difference.mask))
    return CounterExample(difference.sentence(loss), sets=(labels,))
