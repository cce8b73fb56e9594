"""The most informative next comparison: two sets whose order splits the remaining solutions.

Solutions are sampled (by hit-and-run if they form a polytope). An answer to "which of A and B costs more?" keeps some
of them; the suggested pair is the one whose answer explains most of the variance of the parameters, in units of their
ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.fit.polytope import Polytope
from udcp_dsl.loss import Loss

_SETS, _PAIRS, _SAMPLES = 300, 3000, 400
_LARGEST_SET = 4
_NEAR = 1e-9  # costs this close are equal, as in a comparison
_ALL_SINGLES = 60


@dataclass(frozen=True)
class Suggestion:
    """Two sets that are worth comparing; `share` is the share of solutions in which the first costs more.

    `inputs` are the inputs of the row to compare them for, in the middle of their ranges, if the loss reads any.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    share: float
    inputs: Mapping[str, float] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """The suggestion as a sentence."""
        first, second = (", ".join(x) for x in (self.first, self.second))
        row = ", ".join(f"{name} = {value:g}" for name, value in self.inputs.items())
        return f"does {{ {first} }} cost more than {{ {second} }}{f' with {row}' if row else ''}?"


def sampled(polytope: Polytope, rng: np.random.Generator, count: int = _SAMPLES) -> Floats:
    """Sample solutions (count, d) by hit-and-run from the mean of the extreme ones, within their span."""
    A, b, _, _ = polytope.rows(None)
    d = len(polytope.ranges)
    A, b = np.vstack([A, np.eye(d), -np.eye(d)]), np.concatenate([b, np.ones(d), np.zeros(d)])
    corners = polytope.extremes
    at = corners.mean(axis=0)
    found = np.empty((count, d))
    for i in range(3 * count):
        direction = rng.standard_normal(len(corners)) @ (corners - corners.mean(axis=0))
        along, room = A @ direction, np.maximum(b - A @ at, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = room / along
        forth = steps[along > 1e-14].min(initial=np.inf)
        back = steps[along < -1e-14].max(initial=-np.inf)
        if np.isfinite(forth) and np.isfinite(back):
            at = at + direction * rng.uniform(back, forth)
        found[i // 3] = at
    return polytope.lows + polytope.widths * np.clip(found, 0.0, 1.0)


def candidate_sets(loss: Loss, rng: np.random.Generator) -> Bools:
    """Small sets to compare: single labels, and some sets of two to four."""
    singles = rng.permutation(loss.K)[:_ALL_SINGLES]
    masks = np.zeros((len(singles) + _SETS, loss.K), dtype=bool)
    masks[np.arange(len(singles)), singles] = True
    for i in range(len(singles), len(masks)):
        size = min(loss.K, int(rng.integers(2, _LARGEST_SET + 1)))
        masks[i, rng.choice(loss.K, size, replace=False)] = True
    return np.unique(masks, axis=0)


def suggested(
    loss: Loss,
    costs: Callable[[Bools, Mapping[str, float]], Floats],
    solutions: Floats,
    widths: Floats,
    rng: np.random.Generator,
) -> Suggestion | None:
    """The most informative pair; None if all solutions order all candidates alike, or no case can give the inputs.

    `costs` maps sets (n, K) and the inputs of a row to the costs in each solution, (n, m).
    """
    if any(x.width is not None for x in loss.inputs.values()):  # a list of costs
        return None
    inputs = {name: float(x.example) for name, x in loss.inputs.items()}
    masks = candidate_sets(loss, rng)
    paid = costs(masks, inputs)
    pairs = rng.integers(len(masks), size=(_PAIRS, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    difference = paid[pairs[:, 0]] - paid[pairs[:, 1]]
    difference[np.abs(difference) <= _NEAR * np.maximum(1.0, np.abs(paid[pairs[:, 1]]))] = 0.0  # ties up to rounding
    dearer = (difference > 0).astype(np.float64)
    share = dearer.mean(axis=1)
    open_pairs = (difference > 0).any(axis=1) & (difference < 0).any(axis=1)
    if not open_pairs.any():
        return None
    pairs, dearer, share = pairs[open_pairs], dearer[open_pairs], share[open_pairs]
    x = (solutions - solutions.mean(axis=0)) / widths
    mean_if_dearer = dearer @ x / (len(x) * share)[:, None]
    explained = (share / (1 - share))[:, None] * mean_if_dearer**2  # p m1^2 + (1 - p) m0^2, with p m1 + (1 - p) m0 = 0
    sizes = masks.sum(axis=1)[pairs].sum(axis=1)
    best = np.lexsort((sizes, -explained.sum(axis=1)))[0]
    first, second = (tuple(np.array(loss.labels)[masks[i]].tolist()) for i in pairs[best])
    return Suggestion(first, second, float(share[best]), inputs)
