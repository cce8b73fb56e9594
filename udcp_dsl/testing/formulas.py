"""The scores of the oracles straight from their definitions: label by label, with masses as exact rationals.

Costs come from the interpreter, which adds in its own order: the oracles' scores must equal these up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.prediction.calibrate.randomized import DRAWS, row_draws

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

Formula = Callable[["Loss", Sequence[float], Mapping[str, object]], list[float]]


def falling(p: Sequence[float]) -> list[int]:
    """The labels by decreasing p; ties in the order of labels."""
    return sorted(range(len(p)), key=lambda y: (-p[y], y))


def own_share(p: Sequence[float], options: Mapping[str, object]) -> float:
    """The share of a label's own mass that counts as remaining, by the option `mass`; 1 - U for the row's draw U."""
    mass = options.get("mass", "before")
    if mass == "random":
        (draw,) = row_draws(np.array([p], dtype=np.float64), (int(str(options["seed"])), 1))[:, 0]
        return float(1 - Fraction(int(draw), DRAWS))
    return {"before": 1.0, "through": 0.0}[str(mass)]


def block_scores(p: Sequence[float], blocks: Sequence[Sequence[int]], share: float) -> list[float]:
    """Minus the mass that remains, after each block and with a share of the block's own; scores strictly increase.

    If nothing remains, the score is the place in the order times 1e-300, less than any sum of masses. With share 1, the
    first block has the score -1, whatever the probabilities of the row sum to.
    """
    scores = [0.0] * len(p)
    last = -math.inf
    after = sum((Fraction(float(x)) for x in p), Fraction(0))
    for place, block in enumerate(blocks, 1):
        own = sum((Fraction(float(p[y])) for y in block), Fraction(0))
        after -= own
        rest = after + (own if share == 1 else Fraction(share * float(own)))  # all of a block's mass is not rounded
        value = -1.0 if place == 1 and share == 1 else -float(rest) if rest else place * 1e-300
        last = max(value, math.nextafter(last, math.inf))
        for y in block:
            scores[y] = last
    return scores


def order_scores(p: Sequence[float], order: Sequence[int], share: float) -> list[float]:
    """`block_scores` of labels one by one."""
    return block_scores(p, [[y] for y in order], share)


def _with_penalties(scores: Sequence[float], order: Sequence[int], penalties: Sequence[float]) -> list[float]:
    """The scores plus penalties, which are given along the order; scores strictly increase along it."""
    found, last = list(scores), -math.inf
    for y, penalty in zip(order, penalties, strict=True):
        last = found[y] = max(penalty + scores[y], math.nextafter(last, math.inf))
    return found


def base(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """Minus the mass that remains, in the order of decreasing p."""
    return order_scores(p, falling(p), own_share(p, options))


def lac(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """Minus p(y)."""
    return [0.0 - float(x) for x in p]


def raps(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """`base` plus lam for each place beyond the k-th."""
    lam, k = float(str(options["lam"])), int(str(options["k"]))
    penalties = [lam * max(place - k, 0) for place in range(1, len(p) + 1)]
    return _with_penalties(base(loss, p, options), falling(p), penalties)


def penalized(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """`base` plus lam times the cost of the labels up to y, less that of the empty set."""
    lam, order = float(str(options["lam"])), falling(p)
    nothing = loss.interpret_positions([])
    costs = [loss.interpret_positions(order[:k]) - nothing for k in range(1, len(p) + 1)]
    return _with_penalties(base(loss, p, options), order, [lam * cost for cost in costs])


def ratio(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """The cost of y alone, less that of the empty set, divided by p(y)."""
    nothing = loss.interpret_positions([])
    costs = [loss.interpret_positions([y]) - nothing for y in range(len(p))]
    return [cost / float(x) if x > 0 else math.inf for cost, x in zip(costs, p, strict=True)]


def greedy_fault(
    loss: Loss,
    p: Sequence[float],
    order: Sequence[int],
    M: float,
    eps: float,
    *,
    steps: int | None = None,
    rounding: float = 1e-14,
) -> str | None:
    """Where an order (or its first steps) breaks the greedy rule; None if it does not.

    Labels that differ only by rounding, relative to the largest cost, may come in any order.
    """
    lo, hi = loss.facts.interval
    rounding *= max(1.0, abs(lo), abs(hi), abs(M))
    for k, chosen in enumerate(order[:steps]):
        gains = {y: M - loss.interpret_positions([*order[:k], y]) for y in order[k:]}
        least = {y: max(gain - rounding, 0) / (max(1 - p[y], 0) + eps) for y, gain in gains.items()}
        better = max(least, key=lambda y: least[y])
        if max(gains[chosen] + rounding, 0) / (max(1 - p[chosen], 0) + eps) < least[better]:
            return f"{loss.labels[better]} is better than {loss.labels[chosen]} at place {k + 1}"
    return None


FORMULAS: Mapping[str, Formula] = {"base": base, "lac": lac, "penalized": penalized, "raps": raps, "ratio": ratio}
