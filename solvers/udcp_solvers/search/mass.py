"""The cheapest set that has a mass: branch and bound over labels, bounded by prices.

With g(mu) the least L(S) - mu p(S) among the sets that agree with the labels fixed so far, a set of mass t costs at
least g(mu) + mu t, for every price mu >= 0. Each set known is a line L(S) + mu (t - p(S)) above that bound, and the
price asked next is where the lowest of the sets that are short of t meet the lowest of those that are not. A branch
ends where its bound is no better than the cheapest set known that has the mass; else a label is put in or left out,
the heaviest of those in which the two sets that meet differ.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.facts import TOLERANCE
from udcp_solvers.numeric.arrays import Floats, Masks
from udcp_solvers.search.best import NEAR
from udcp_solvers.search.layout import FREE, IN, OUT, Marks
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Branches that one set may take.
BUDGET = 400
# Prices that are asked for in the first branch, and in others.
_FIRST, _LATER = 40, 3


@dataclass(frozen=True, eq=False)
class Set:
    """A set with its cost and its mass less t, negative where it is short."""

    mask: Masks
    cost: float
    over: float


@dataclass(frozen=True, eq=False)
class Cheapest:
    """The cheapest set found, what it costs, and below what no set of the mass costs: the same where it is proved."""

    mask: Masks
    cost: float
    bound: float

    @property
    def proved(self) -> bool:
        return self.cost <= self.bound


class MassSearch:
    """The cheapest sets of one loss by mass; asked about one row after another."""

    def __init__(self, loss: Loss, prices: SearchPrices) -> None:
        self.loss = loss
        self.prices = prices

    @staticmethod
    def of(loss: Loss) -> MassSearch | None:
        """None where the loss has an atom that the search does not know."""
        make = SearchPrices.of(loss)
        return None if make is None else MassSearch(loss, make())

    def cheapest(self, p: Floats, t: float, inside: Masks, budget: int | None = None) -> Cheapest:
        """Among the sets that hold `inside` and have mass t; all labels together have it."""
        return _Search(self.loss, self.prices, p, t, inside).run(BUDGET if budget is None else budget)


class _Search:
    def __init__(self, loss: Loss, prices: SearchPrices, p: Floats, t: float, inside: Masks) -> None:
        self._loss, self._prices, self._p, self._t, self._inside = loss, prices, p, t, inside
        self._best: Set | None = None

    def run(self, budget: int) -> Cheapest:
        fixed = np.where(self._inside, IN, FREE).astype(np.int8)
        waiting: list[tuple[float, int, Marks, list[Set]]] = []
        looked = 0
        root = self._branch(fixed, [], _FIRST)
        if root is not None:
            heapq.heappush(waiting, (root[0], looked, fixed, root[1]))
        while waiting and looked < budget and waiting[0][0] < self._enough():
            _, _, fixed, pair = heapq.heappop(waiting)
            y = self._divides(fixed, pair)
            for side in (IN, OUT):
                looked += 1
                part = fixed.copy()
                part[y] = side
                child = self._branch(part, [self._put(x, y, side == IN) for x in pair], _LATER)
                if child is not None:
                    heapq.heappush(waiting, (child[0], looked, part, child[1]))
        best = self._best
        assert best is not None
        bound = best.cost if not waiting else min(waiting[0][0], best.cost)
        return Cheapest(best.mask, best.cost, best.cost if bound >= self._enough() else bound)

    def _enough(self) -> float:
        """What no branch need go below."""
        return math.inf if self._best is None else self._best.cost - self._near(self._best.cost)

    def _near(self, cost: float) -> float:
        """Costs closer than this are equal."""
        return 0.1 * TOLERANCE * abs(cost) + 10 * NEAR * self._prices.span

    def _branch(self, fixed: Marks, known: list[Set], asks: int) -> tuple[float, list[Set]] | None:
        """The bound of a branch and the two sets that meet there; None where nothing in it is better."""
        least, most = self._set(fixed == IN), self._set(fixed != OUT)
        if most.over < 0:
            return None
        if least.over >= 0:  # every set has the mass
            return self._settled(fixed)
        known = [least, most, *known]
        bound = -math.inf
        for _ in range(asks):
            mu, value, short, whole = self._meet(known)
            found, gap = self._at_price(fixed, mu)
            line = found.cost - mu * found.over
            bound = max(bound, line - gap)
            if bound >= self._enough():
                return None
            if line >= value - self._near(value):
                break
            known.append(found)
        _, _, short, whole = self._meet(known)
        return bound, [short, whole]

    def _settled(self, fixed: Marks) -> tuple[float, list[Set]] | None:
        """A branch in which every set has the mass: its cheapest set is all there is to it."""
        found, gap = self._at_price(fixed, 0.0)
        if gap == 0.0 or (fixed != FREE).all() or found.cost - gap >= self._enough():
            return None
        return found.cost - gap, [found, found]

    def _meet(self, known: list[Set]) -> tuple[float, float, Set, Set]:
        """Where the lowest lines of sets that are short and of sets that are not meet: the price, the height, both."""
        found = None
        for short in known:
            if short.over >= 0:
                continue
            for whole in known:
                if whole.over < 0:
                    continue
                mu = max(0.0, (whole.cost - short.cost) / (whole.over - short.over))
                value = min(whole.cost - mu * whole.over, short.cost - mu * short.over)
                if found is None or value < found[1]:
                    found = mu, value, short, whole
        assert found is not None
        return found

    def _divides(self, fixed: Marks, pair: list[Set]) -> int:
        short, whole = pair
        differ = (short.mask != whole.mask) & (fixed == FREE)
        if not differ.any():
            differ = fixed == FREE
        return int(np.argmax(np.where(differ, self._p, -1.0)))

    def _at_price(self, fixed: Marks, mu: float) -> tuple[Set, float]:
        """The best set at a price, and by how much another may be better; what is left of it may be the cheapest."""
        gaps = np.zeros(1)
        mask = self._prices.best(self._p[None, :], np.array([mu]), gaps, fixed[None, :])[0]
        found = self._set(mask)
        self._pare(found)
        return found, float(gaps[0])

    def _put(self, one: Set, y: int, inside: bool) -> Set:
        if one.mask[y] == inside:
            return one
        mask = one.mask.copy()
        mask[y] = inside
        return self._set(mask)

    def _set(self, mask: Masks) -> Set:
        return self._weighed(mask, float(self._loss.batch(mask[None, :])[0]))

    def _weighed(self, mask: Masks, cost: float) -> Set:
        """A set, kept if it is the cheapest so far that has the mass: the sign of an exact sum is exact."""
        one = Set(mask, cost, math.fsum([*self._p[mask].tolist(), -self._t]))
        if one.over >= 0 and (self._best is None or cost < self._best.cost):
            self._best = one
        return one

    def _pare(self, one: Set) -> None:
        """Leave out labels that a set can do without, each time the one that saves most."""
        while one.over > 0:
            loose = np.flatnonzero(one.mask & ~self._inside & (self._p <= one.over))
            if len(loose) == 0:
                return
            tries = np.repeat(one.mask[None, :], len(loose), axis=0)
            tries[np.arange(len(loose)), loose] = False
            costs = self._loss.batch(tries)
            i = int(np.argmin(costs))
            if costs[i] >= one.cost:
                return
            one = self._weighed(tries[i], float(costs[i]))
