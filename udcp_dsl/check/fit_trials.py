"""Does `udcp fit` find values that agree with comparisons? A hidden expert answers, with parameters within the ranges.

The fitted values must satisfy every answer, with a margin no smaller than the expert's own, and the ranges over all
solutions must contain the expert's values. Not tried if the loss is not affine in its parameters: the search used then
proves nothing and takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.check.verdicts import CounterExample, Verdict
from udcp_dsl.diagnostics import InputError
from udcp_dsl.fit import fit_params
from udcp_dsl.fit.cases import at_values
from udcp_dsl.fit.comparisons import fitted_ranges, not_affine
from udcp_dsl.fit.polytope import relative_margins
from udcp_dsl.fit.suggestions import candidate_sets

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_ANSWERS = 12
_NEAR = 1e-6  # the solver's tolerance, for ranges and margins


def fits(loss: Loss, seed: int) -> list[Verdict]:
    """One verdict; empty if there is no parameter to fit or the loss reads inputs."""
    try:
        ranges = fitted_ranges(loss)
    except InputError:
        return []
    if loss.inputs:
        return []
    claim = "fit agrees with the comparisons of a hidden expert"
    if (blamed := not_affine(loss, tuple(ranges))) is not None:
        why = f"a search would be needed, which proves nothing: {blamed.span.line}"
        return [Verdict(claim, None, 0, why, applies=False)]
    rng = np.random.default_rng([seed, 33])
    hidden = {name: float(rng.uniform(low, high)) for name, (low, high) in ranges.items()}
    expert = at_values(loss, hidden)
    pool = candidate_sets(loss, rng)
    claims, margins = [], [2.0]
    for first, second in rng.integers(len(pool), size=(_ANSWERS, 2)).tolist():
        a, b = expert.batch(pool[[first, second]])
        margin = float(np.abs(relative_margins(np.array([a]), np.array([b])))[0])
        if margin > 1e-4:  # an expert would not order near-ties
            sets = [tuple(np.array(loss.labels)[pool[i]].tolist()) for i in (first, second)]
            claims.append((sets[0], ">" if a > b else "<", sets[1]))
            margins.append(margin)
    if not claims:
        return [Verdict(claim, None, 0, "all small sets cost the same", applies=False)]
    fit = fit_params(loss, claims, suggest=False, seed=seed)
    against = None
    if not fit.ok:
        against = f"it finds no values, but {_shown(hidden)} satisfies all comparisons"
    elif wrong := [case.claim for case in fit.cases if not case.holds]:
        against = f"its values {_shown(fit.values)} do not satisfy {wrong[0]}"
    else:
        slack = {name: _NEAR * (high - low) for name, (low, high) in ranges.items()}
        outside = [
            x.name
            for x in fit.params
            if x.solutions is not None
            and not x.solutions[0] - slack[x.name] <= hidden[x.name] <= x.solutions[1] + slack[x.name]
        ]
        if outside:
            against = f"its range of {outside[0]} over all solutions does not contain {_shown(hidden)}, which is one"
        elif fit.margin is not None and fit.margin < 0.998 * min(margins) - _NEAR:
            against = f"its margin is {fit.margin:.4g}, and that of {_shown(hidden)} is {min(margins):.4g}"
    example = None if against is None else CounterExample(against)
    return [Verdict(claim, against is None, len(claims), counter_example=example)]


def _shown(values: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
