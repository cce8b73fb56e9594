"""RAC, risk-averse calibration (arXiv 2502.02561): sets for a decision maker who takes the action of best worst case.

With utilities u(act, y): theta(x, t) is the largest utility that some action reaches with probability >= t under p,
and g(x, b) = argmax over t of theta(x, t) + b t. C(x; b) = {y : u(act, y) >= theta} at t = g, b calibrated to
coverage. The certificate is max over actions of min over C of u.

With losses -u it is `worst(u)` under `price`: an action and a level c have the set {y : loss <= c} and the cost c, so
that C(x; b) minimises worst - b * mass, which is S_b. And if the actions are all sets S, with u = -L(S) where y is in
S and else minus infinity, C(x; b) is the S_b of any loss L: RAC is the decision-theoretic reading of `price`.
"""

from __future__ import annotations

import numpy as np

from rivals import Family, Floats, Ints, Masks, as_rows


class Rac(Family):
    """`losses` (K, A): of an action under a truth, minus its utility."""

    def __init__(self, P: Floats, losses: Floats) -> None:
        self.P, self.losses = as_rows(P), losses
        # Of every action, the labels by rising loss, and where a level of loss ends.
        self.order = np.argsort(losses, axis=0, kind="stable")

    def at(self, level: float) -> Masks:
        """C(x; b) at b = `level`; of equally good ones the largest mass, then the empty set last."""
        n, K = self.P.shape
        best, mass = np.zeros(n), np.zeros(n)
        sets = np.zeros((n, K), dtype=bool)
        for a in range(self.losses.shape[1]):
            order = self.order[:, a]
            cost = self.losses[order, a]
            reached = np.cumsum(self.P[:, order], axis=1)
            for k in np.flatnonzero(np.append(cost[1:] > cost[:-1], True)):
                value = cost[k] - level * reached[:, k]
                slack = 1e-12 * (np.abs(cost[k]) + level)
                better = (value < best - slack) | ((value <= best + slack) & (reached[:, k] > mass + 1e-15))
                best, mass = np.where(better, value, best), np.where(better, reached[:, k], mass)
                sets[better] = False
                sets[np.ix_(better, order[: k + 1])] = True
        return sets

    def levels(self, y: Ints) -> Floats:
        return np.append(0.0, np.geomspace(1e-3, 1e4, 160) * np.ptp(self.losses))


def certificate(losses: Floats, mask: Masks) -> float:
    """What the best single action costs in the worst case over the set."""
    return float(losses[mask].max(axis=0).min()) if mask.any() else 0.0
