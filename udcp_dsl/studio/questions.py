"""Informative questions, "which of these two sets costs more?", from the cases beside the spec.

An answer is saved as a case (`saving.save_case`), and the next question takes it into account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError, Source
from udcp_dsl.fit import fit_params
from udcp_dsl.fit.cases import ENDING, Case, CostCase, cases_of, parse_cases

if TYPE_CHECKING:
    from udcp_dsl.studio.studio import Studio


def ask_pair(studio: Studio, body: Any) -> Any:
    """The most informative pair, the values that agree with the cases so far, and how far they are determined.

    {seed: a whole number} asks for another pair. `pair` is None if no pair of small sets is informative, and if
    `contradictions` has cases that no values satisfy together.
    """
    seed = body.get("seed", 0) if isinstance(body, dict) else None
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError("seed is a whole number, 0 or more")
    loss, state = studio.loss, studio.state
    if loss is None:
        raise InputError("the spec does not compile: fix it first")
    text = state.place.read_beside(ENDING) or ""
    kept = [
        x for x in cases_of(loss, parse_cases(Source(state.place.stem + ENDING, text))) if isinstance(x.claim, CostCase)
    ]
    # Without a comparison all values agree: a case that always holds stands in for none.
    row = {name: x.low for name, x in loss.inputs.items()}
    fit = fit_params(loss, kept or [Case("none", CostCase((), ">=", ()), loss.name, row)], seed=seed)
    pair = fit.suggestion
    return {
        "cases": len(kept),
        "agrees": fit.ok,
        "exact": fit.exact,
        "margin": fit.margin,
        "params": [
            {
                "name": x.name,
                "now": x.before,
                "value": x.value,
                "range": list(x.range),
                "solutions": None if x.solutions is None else list(x.solutions),
                "determined": x.determined,
            }
            for x in fit.params
        ],
        "pair": None
        if pair is None
        else {
            "first": list(pair.first),
            "second": list(pair.second),
            "inputs": dict(pair.inputs),
            "text": pair.question,
        },
        "per_row": [name for name, x in loss.inputs.items() if x.width is not None],  # for these no pair is suggested
        "contradictions": [[f"{x.name}: {x.claim}" for x in group] for group in fit.contradictions],
    }
