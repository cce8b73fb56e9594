"""The cheapest ball of a hierarchy that contains a set (`domain.Balls`), in a linear model.

Lower bound: s picks one ball, x_y <= sum of s over the balls that contain y. Upper bound: q picks a ball of two
members. Both sums are built along the tree, so rows stay short and there is no row per pair of labels.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.expression.domain import Balls
from udcp_dsl.expression.linear import Affine, Lowering, Push, total

NOTHING = Affine(0.0, {})


def least_ball(balls: Balls, model: Lowering, costs: NDArray[np.floating[Any]], push: Push) -> Affine:
    """The least cost of a ball that contains the set, for costs that rise with the ball."""
    cost = NOTHING
    if Push.DOWN in push:
        # Balls of cost 0 have one label and need no binary: a label can be in only if the s that cover it sum to 1.
        picked = [model.binary() if c > 0 else model.continuous(0.0, 1.0) for c in costs]
        model.at_most(total(picked), 1.0)
        _cover(balls, model, picked)
        cost = total(s * float(c) for s, c in zip(picked, costs, strict=True))
    if Push.UP in push:
        held = _held(balls, model, costs)
        cost = cost if Push.DOWN in push else model.continuous(0.0, float(costs.max()))
        model.at_most(cost, held)
    return cost


def _cover(balls: Balls, model: Lowering, picked: list[Affine]) -> None:
    """x_y <= the sum of s over the balls that contain y.

    inside(v, r) sums the balls around v or below it that reach exactly r beyond v; covers(v, r) all balls that
    reach r or more beyond v: those of inside(v, r), inside(v, r + 1) and the edge above v, and, seen from the
    parent, all that reach r + 1 beyond it (which includes those from below v that reach r + 2 beyond v).
    """
    tree = balls.tree
    keys = zip(balls.node.tolist(), balls.on_edge.tolist(), balls.reach.tolist(), strict=True)
    at: dict[tuple[int, int, int], Affine] = dict(zip(keys, picked, strict=True))
    children = tree.children
    farthest = int(balls.reach.max()) + 1

    @cache
    def inside(v: int, r: int) -> Affine:
        if r >= farthest:
            return NOTHING
        parts = [at.get((v, 0, r), NOTHING)]
        parts += [part for u in children[v] for part in (inside(u, r + 1), at.get((u, 1, r), NOTHING))]
        return model.named(total(parts), 0.0, 1.0)

    @cache
    def covers(v: int, r: int) -> Affine:
        if v == 0:
            return model.named(total(inside(0, beyond) for beyond in range(r, farthest)), 0.0, 1.0)
        here = [inside(v, r), inside(v, r + 1), at.get((v, 1, r), NOTHING)]
        return model.named(total([*here, covers(int(tree.parent[v]), r + 1)]), 0.0, 1.0)

    for y, leaf in enumerate(tree.leaf.tolist()):
        model.at_most(model.label(y), covers(leaf, 0))


def _held(balls: Balls, model: Lowering, costs: NDArray[np.floating[Any]]) -> Affine:
    """The cost of a ball that two members span: at distance r in two branches of its node, or on both sides of its
    edge. below(v, r) counts the members below v at distance r, beyond(v, r) those elsewhere."""
    tree = balls.tree
    children, K = tree.children, float(tree.K)
    label = {leaf: model.label(y) for y, leaf in enumerate(tree.leaf.tolist())}

    @cache
    def below(v: int, r: int) -> Affine:
        if v in label:
            return label[v] if r == 0 else NOTHING
        return model.named(total(below(u, r - 1) for u in children[v]), 0.0, K) if r > 0 else NOTHING

    @cache
    def beyond(v: int, r: int) -> Affine:
        if v == 0 or r < 2:
            return NOTHING
        parent = int(tree.parent[v])
        siblings = below(parent, r - 1) - below(v, r - 2)
        return model.named(siblings + beyond(parent, r - 1), 0.0, K)

    parts, spanned = [], []
    for v, on_edge, r, cost in zip(
        balls.node.tolist(), balls.on_edge.tolist(), balls.reach.tolist(), costs.tolist(), strict=True
    ):
        if cost == 0:
            continue
        q = model.binary()
        sides = [below(v, r), beyond(v, r + 1)] if on_edge else [*(below(u, r - 1) for u in children[v]), beyond(v, r)]
        sides = [side for side in sides if side.terms]
        if len(sides) > 2:
            touched = [model.continuous(0.0, 1.0) for _ in sides]
            for side, z in zip(sides, touched, strict=True):
                model.at_most(z, side)
            model.at_most(q * 2.0, total(touched))
        else:
            for side in sides:
                model.at_most(q, side)
        spanned.append(q)
        parts.append(q * cost)
    model.at_most(total(spanned), 1.0)
    return total(parts)
