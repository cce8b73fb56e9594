"""Whether the scores of the price oracle can be right, by looking at all sets that there are to choose from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udcp_dsl.expression.domain import Bools, Floats


def price_fault(
    scores: Sequence[float] | Floats, p: Floats, masks: Bools, costs: Floats, *, tolerance: float = 1e-9
) -> tuple[int, str] | None:
    """A label whose price cannot be right, whichever of several minimisers is taken, and why; None where all may be.

    `masks` (m, K) are all the sets to choose from, `costs` what they cost. A label's price is wrong if no set with it
    is a minimiser there, or if at a lower price every minimiser has it. Sets whose values differ by less than rounding
    are all minimisers, so ties and decimals raise no alarm.
    """
    mass = masks @ p
    prices = np.array([0.0, *_breakpoints(mass, costs)])
    between = np.append((prices[:-1] + prices[1:]) / 2, 2 * prices[-1] + 1)

    def least(at: float, sets: Bools) -> float:
        return float((costs[sets] - at * mass[sets]).min(initial=np.inf))

    def slack(at: float) -> float:
        return tolerance * max(1.0, float(np.abs(costs).max()), at)

    for y in np.flatnonzero(p > 0).tolist():
        inside, score = masks[:, y], float(scores[y])
        if np.isfinite(score) and least(score, inside) > least(score, ~inside) + slack(score):
            return y, f"is bought at {score!r}, where no set of least cost has it"
        lower = between[between < score * (1 - tolerance)]
        if np.isfinite(score):  # rounding may make a change of price far above all others, and a wide gap below it
            lower = np.append(lower, (prices[prices < score * (1 - tolerance)].max(initial=0.0) + score) / 2)
        for at in lower[lower < score * (1 - tolerance)]:
            if least(at, inside) < least(at, ~inside) - slack(at):
                return y, f"is bought at {score!r}, but every set of least cost has it at {float(at)!r} already"
    return None


def _breakpoints(mass: Floats, costs: Floats) -> list[float]:
    """The prices at which the set of least cost - price * mass changes, rising from 0."""
    cheapest = np.flatnonzero(costs <= costs.min())
    at = cheapest[mass[cheapest].argmax()]
    found: list[float] = []
    while (heavier := np.flatnonzero(mass > mass[at])).size:
        slopes = (costs[heavier] - costs[at]) / (mass[heavier] - mass[at])
        steepest = heavier[slopes <= slopes.min()]
        at = steepest[mass[steepest].argmax()]
        found.append(max(float(slopes.min()), *found[-1:], 0.0))
    return found
