"""`fit_params`: fit the parameters of a loss to comparisons of sets.

If the loss is affine in them, linear programs find the exact solution. Otherwise a bounded search tries points spread
over the ranges, then ever shorter steps from the best point. A solution that it finds is valid, since every point is
evaluated; finding none proves nothing, and the ranges cover only the points found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.fit.cases import ENDING, Case, CostCase, at_values, cases_of, parse_cases
from udcp_dsl.fit.comparisons import (
    AffineCosts,
    Comparison,
    Ranges,
    both_sides,
    comparisons_of,
    fitted_ranges,
    not_affine,
    params_read,
)
from udcp_dsl.fit.polytope import Polytope, comparison_scores
from udcp_dsl.fit.result import Fit, FittedCase, FittedParam
from udcp_dsl.fit.suggestions import Suggestion, sampled, suggested
from udcp_dsl.language.parse import read_source
from udcp_dsl.loss import Loss

#: "The first set costs more than the second", and the like; or a case.
Claim: TypeAlias = Case | tuple[Collection[str], str, Collection[str] | float]

_SAMPLES_SEARCHED = 60  # solutions of a search that are used to suggest a comparison
_LOSS_OF_MARGIN = 1e-3  # largest relative loss of margin by rounding the values
_SPREAD, _STEPS = 250, 250
_SHORTEST = 1e-4  # size of the last steps, in units of the ranges


def fit_params(
    loss: Loss, cases: Sequence[Claim] | str | Path | None = None, *, suggest: bool = True, seed: int = 0
) -> Fit:
    """Fit the parameters of a loss to comparisons such as "this set costs more than that one".

    Parameters that have a range get the values that satisfy all comparisons with the largest relative margin: the
    largest t with L(A) - L(B) >= t (L(A) + L(B)) / 2 for each strict comparison. `>=` and `==` need no margin. Of
    equally good values, those nearest to the current ones are taken. If the loss is affine in its parameters, linear
    programs find the exact solution; otherwise a bounded search is used.

    Parameters
    ----------
    loss : Loss
        The loss; its own values are the starting point.
    cases : sequence of cases, str, path or None, default None
        Cases, tuples (set, sign, set or number), or a file of cases. By default the file NAME.cases beside the spec.
        Cases about other losses, and those about rows, are left out.
    suggest : bool, default True
        Look for the comparison that would be most informative.
    seed : int, default 0
        Random seed for the search and for the suggestion.

    Returns
    -------
    Fit
        Values, margins, ranges over all solutions, contradictions, and a suggestion.

    Raises
    ------
    InputError
        The spec has no parameter with a range, no case compares costs, or a case names an unknown label.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads(
    ...     "labels {cat, dog, wolf}  param fear = 1 in [0, 10]"
    ...     "  loss l = size + fear * any({wolf})"
    ... )
    >>> worse = ({"wolf"}, ">", {"cat", "dog"})
    >>> fit = udcp.fit_params(loss, [worse, ({"wolf"}, "<=", 4)])
    >>> fit.values, [param.solutions for param in fit.params]
    ({'fear': 3.0}, [(1.0, 3.0)])
    >>> udcp.fit_params(loss, [worse, ({"wolf"}, "<", {"cat"})]).ok
    False
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"a loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
    ranges = fitted_ranges(loss)
    comparisons = comparisons_of(loss, cases_of(loss, _cases(loss, cases)), ranges)
    rng = np.random.default_rng(seed)
    blamed = not_affine(loss, tuple(ranges))
    if blamed is None:
        return _fit_affine(loss, comparisons, ranges, rng if suggest else None)
    return _fit_by_search(loss, comparisons, ranges, blamed.span.line, rng, suggest)


def contradictions(loss: Loss, cases: Sequence[Case]) -> tuple[tuple[Case, ...], ...]:
    """Groups of cases that no values of the parameters satisfy together; empty if none are known."""
    try:
        ranges = fitted_ranges(loss)
        comparisons = comparisons_of(loss, cases_of(loss, cases), ranges)
    except InputError:
        return ()
    if not_affine(loss, tuple(ranges)) is not None:
        return ()
    polytope = Polytope(comparisons, ranges, *both_sides(loss, comparisons, ranges))
    return tuple(tuple(comparisons[i].case for i in group) for group in polytope.contradictions())


def _cases(loss: Loss, cases: Sequence[Claim] | str | Path | None) -> tuple[Case, ...]:
    if cases is None:
        path = Path(loss.source.name).with_suffix(ENDING)
        if not path.is_file():
            raise InputError(
                f"there are no cases beside the spec: write some into {path}, or name another file (cases=, --cases)"
            )
        return parse_cases(read_source(path))
    if isinstance(cases, str | Path):
        return parse_cases(read_source(cases))
    if not isinstance(cases, Iterable):
        raise InputError(f"cases is {cases!r}: give a list of comparisons, or the path of a file of cases")
    return tuple(_case(i, claim, loss.name) for i, claim in enumerate(cases))


def _case(i: int, claim: Claim, loss: str) -> Case:
    if isinstance(claim, Case):
        return claim
    try:
        members, sign, other = claim
    except (TypeError, ValueError):
        raise InputError(
            f"comparison {i} is {claim!r}: give (set, sign, set), such as ({{'a'}}, '>', {{'b'}})"
        ) from None
    if sign not in (">", ">=", "<", "<=", "=="):
        raise InputError(f"comparison {i}: {sign!r} is not a comparison; give one of > >= < <= ==")
    if isinstance(members, str) or isinstance(other, str):
        raise InputError(f"comparison {i}: a set is a collection of labels, not a string")
    if not isinstance(members, Iterable) or not isinstance(other, Iterable | int | float):
        raise InputError(f"comparison {i} is {claim!r}: give (set, sign, set) or (set, sign, number), in this order")
    if isinstance(other, int | float) and not math.isfinite(other):
        raise InputError(f"comparison {i}: {other!r} is not a finite number")
    right = float(other) if isinstance(other, int | float) else tuple(map(str, other))
    return Case(f"comparison {i}", CostCase(tuple(map(str, members)), sign, right), loss)


# By linear programs --------------------------------------------------------------------------------------------------


def _fit_affine(
    loss: Loss, comparisons: tuple[Comparison, ...], ranges: Ranges, rng: np.random.Generator | None
) -> Fit:
    polytope = Polytope(comparisons, ranges, *both_sides(loss, comparisons, ranges))
    start = np.array([loss.params[name] for name in ranges])
    groups = polytope.contradictions()
    if groups:
        return _fit(loss, comparisons, ranges, start, contradictions=groups)
    t = polytope.largest_margin()
    x = polytope.nearest(start, t)
    while x is None:  # the bisection ends at the edge of what the solver accepts as feasible
        t *= 1 - 1e-6
        x = polytope.nearest(start, t if t > 1e-12 else 0.0)
    x = _rounded(polytope.score, ranges, x, start)
    suggestion = None
    if rng is not None:
        solutions = sampled(polytope, rng)

        def costs(masks: Bools, row: Mapping[str, float]) -> Floats:
            return AffineCosts.of(loss, masks, ranges, row).at(solutions)

        suggestion = suggested(loss, costs, solutions, polytope.widths, rng)
    return _fit(loss, comparisons, ranges, x, solutions=polytope.solution_ranges(), suggestion=suggestion)


def _rounded(score: Callable[[Floats], float], ranges: Ranges, x: Floats, start: Floats) -> Floats:
    """Values with few digits that satisfy all comparisons with nearly the same smallest margin; `start`, if it does."""
    least = (1 - _LOSS_OF_MARGIN) * max(score(x), 1e-300)
    if score(start) >= least:
        return start
    lows, highs = (np.array(ends) for ends in zip(*ranges.values(), strict=True))
    kept = np.abs(x - start) <= 1e-9 * (highs - lows)
    decimals = -np.floor(np.log10(highs - lows)).astype(int)
    for digits in range(1, 14):
        short = np.array([round(float(v), int(n) + digits) for v, n in zip(x, decimals, strict=True)])
        short = np.where(kept, start, np.clip(short, lows, highs))
        if score(short) >= least:
            return short
    return x


# By a search ---------------------------------------------------------------------------------------------------------


def _fit_by_search(
    loss: Loss,
    comparisons: tuple[Comparison, ...],
    ranges: Ranges,
    why: str,
    rng: np.random.Generator,
    suggest: bool,
) -> Fit:
    start = np.array([loss.params[name] for name in ranges])
    found = searched(loss, comparisons, ranges, start, rng)
    if found.score <= 0:
        return _fit(loss, comparisons, ranges, start, tried=found.x, why=why)
    x = _rounded(partial(score_at, loss, comparisons, ranges), ranges, found.x, start)
    met = np.vstack([found.solutions, x])
    solutions = {name: (float(met[:, i].min()), float(met[:, i].max())) for i, name in enumerate(ranges)}
    suggestion = None
    if suggest:
        some = rng.permutation(met)[:_SAMPLES_SEARCHED]
        widths = np.array([high - low for low, high in ranges.values()])

        def costs(masks: Bools, row: Mapping[str, float]) -> Floats:
            made = [at_values(loss, {**row, **dict(zip(ranges, values.tolist(), strict=True))}) for values in some]
            return np.stack([one.batch(masks) for one in made], axis=1)

        suggestion = suggested(loss, costs, some, widths, rng)
    return _fit(loss, comparisons, ranges, x, solutions=solutions, suggestion=suggestion, why=why)


def _fit(
    loss: Loss,
    comparisons: tuple[Comparison, ...],
    ranges: Ranges,
    x: Floats,
    *,
    solutions: dict[str, tuple[float, float]] | None = None,
    contradictions: Sequence[Sequence[int]] = (),
    suggestion: Suggestion | None = None,
    tried: Floats | None = None,
    why: str = "",
) -> Fit:
    """The result at x. Without solutions, x are the current values and `tried` the best that a search found."""
    values = dict(zip(ranges, x.tolist(), strict=True))
    shown = values if tried is None else dict(zip(ranges, tried.tolist(), strict=True))
    a, b = sides_at(loss, comparisons, shown)
    scores = comparison_scores(comparisons, a, b)
    cases = tuple(
        FittedCase(
            name=c.case.name,
            claim=c.text,
            place=c.place,
            higher=float(a[i]),
            lower=float(b[i]),
            margin=float(scores[i]) if c.sign == ">" else None,
            holds=bool(scores[i] > 0),
        )
        for i, c in enumerate(comparisons)
    )
    margins = [case.margin for case in cases if case.margin is not None]
    params = tuple(
        FittedParam(name, loss.params[name], values[name], (low, high), None if solutions is None else solutions[name])
        for name, (low, high) in ranges.items()
    )
    return Fit(
        loss=loss.with_params(**values),
        ok=solutions is not None,
        params=params,
        cases=cases,
        margin=min(margins) if margins and solutions is not None else None,
        contradictions=tuple(tuple(cases[i] for i in group) for group in contradictions),
        suggestion=suggestion,
        exact=not why,
        why_not_exact=why,
        held={name: loss.params[name] for name in loss.params if name in params_read(loss) and name not in ranges},
    )


@dataclass(frozen=True)
class Searched:
    """The best point, its smallest score (a relative margin, above 0 where all hold), and the points where all hold."""

    x: Floats
    score: float
    solutions: Floats  # (m, d)


def searched(
    loss: Loss, comparisons: Sequence[Comparison], ranges: Ranges, start: Floats, rng: np.random.Generator
) -> Searched:
    """Maximise the smallest margin; of equally good points, take the one nearest to the start."""
    lows, highs = (np.array(ends) for ends in zip(*ranges.values(), strict=True))
    widths = highs - lows
    points: list[Floats] = []
    scores: list[float] = []

    def try_at(x: Floats) -> float:
        points.append(x)
        scores.append(score_at(loss, comparisons, ranges, x))
        return scores[-1]

    best, best_x = try_at(start), start
    strata = np.stack([rng.permutation(_SPREAD) for _ in ranges], axis=1)  # one point in each slice of each range
    for u in (strata + rng.random(strata.shape)) / _SPREAD:
        if (score := try_at(lows + widths * u)) > best:
            best, best_x = score, points[-1]
    for step in np.geomspace(0.3, _SHORTEST, _STEPS):
        moved = rng.random(len(ranges)) < 0.5
        moved[rng.integers(len(ranges))] = True
        x = np.clip(best_x + step * widths * rng.standard_normal(len(ranges)) * moved, lows, highs)
        if (score := try_at(x)) > best:
            best, best_x = score, x
    found, scored = np.stack(points), np.array(scores)
    tied = np.flatnonzero(scored >= best - 1e-12)
    nearest = tied[np.argmin((np.abs(found[tied] - start) / widths).sum(axis=1))]
    return Searched(found[nearest], best, found[scored > 0])


def sides_at(loss: Loss, comparisons: Sequence[Comparison], params: dict[str, float]) -> tuple[Floats, Floats]:
    """The costs of the higher and of the lower side of each comparison at these parameters."""
    made: dict[tuple[tuple[str, float], ...], Loss] = {}

    def cost(x: Comparison, side: object) -> float:
        if isinstance(side, float):
            return side
        key = tuple(sorted(x.params.items()))
        if key not in made:
            made[key] = at_values(loss, {**params, **x.params})
        return made[key](side)  # type: ignore[arg-type]

    pairs = [(cost(x, x.higher), cost(x, x.lower)) for x in comparisons]
    a, b = np.array(pairs).T
    return a, b


def score_at(loss: Loss, comparisons: Sequence[Comparison], ranges: Ranges, x: Floats) -> float:
    """The smallest score of the comparisons at x."""
    try:
        a, b = sides_at(loss, comparisons, dict(zip(ranges, x.tolist(), strict=True)))
    except SpecError:  # a table that is not finite at these values
        return -np.inf
    return float(comparison_scores(comparisons, a, b).min())
