"""Check the scores of the price oracle by brute force over all sets to choose from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udcp_dsl.expression.domain import Bools, Floats


def price_fault(
    scores: Sequence[float] | Floats, p: Floats, masks: Bools, costs: Floats, *, tolerance: float = 1e-9
) -> tuple[int, str] | None:
    """A label whose price is wrong, whichever minimisers the oracle takes, and why; None if all prices can be right.

    `masks` (m, K) are all the sets to choose from, `costs` their costs. A label's price is wrong if no minimiser at
    that price contains the label, or if every minimiser at a lower price does. Sets whose values differ by less than
    rounding are all minimisers, so ties and decimals raise no alarm.
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
        if np.isfinite(score):  # rounding may add a breakpoint far above all others, after a wide gap
            lower = np.append(lower, (prices[prices < score * (1 - tolerance)].max(initial=0.0) + score) / 2)
        for at in lower[lower < score * (1 - tolerance)]:
            if least(at, inside) < least(at, ~inside) - slack(at):
                return y, f"is bought at {score!r}, but every set of least cost has it at {float(at)!r} already"
    return None


def _breakpoints(mass: Floats, costs: Floats) -> list[float]:
    """The prices, in ascending order, at which the minimiser of cost - price * mass changes."""
    cheapest = np.flatnonzero(costs <= costs.min())
    at = cheapest[mass[cheapest].argmax()]
    found: list[float] = []
    while (heavier := np.flatnonzero(mass > mass[at])).size:
        slopes = (costs[heavier] - costs[at]) / (mass[heavier] - mass[at])
        steepest = heavier[slopes <= slopes.min()]
        at = steepest[mass[steepest].argmax()]
        found.append(max(float(slopes.min()), *found[-1:], 0.0))
    return found
