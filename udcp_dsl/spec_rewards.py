"""Where a loss rewards what it should punish: W606 to W608, with the smallest sets that show it.

A drop is a set S, not empty, and a label y with L(S + y) < L(S). It is meant, and not reported, if it comes from what
falls by design when a set grows (`within`, `all`, `nodes`, `min`, `empty`, `not any`), or from a label of negative
cost, which W601 names: with these held at their values on S, S + y is no cheaper than S. A function of size that is
high on the empty set alone is no reward, as S is not empty.

W606  A drop that is not meant: of the smallest S for which one was found, the largest.
W607  L({}) < 0.
W608  L(S) < 0 <= L({}), although no label costs less than nothing and there is no other drop.

Sets are tried in the order of their size: single labels, all sets of a few labels that the atoms suggest, and sets that
grow, label by label, such that the cost becomes least, or largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.ir import Expression, Leaf, Node, Not
from udcp_dsl.expression.prove import probed_labels
from udcp_dsl.expression.values import Increments

_FALL_BY_DESIGN = ("within", "all", "nodes", "min", "empty", "sum")
_PROBED = 6  # labels whose sets are all tried
_BLOCK, _MOST_OF_ONE_SIZE = 1 << 18, 1 << 20  # sets times labels, at a time

Values = dict[int, Floats]  # by the `id` of the node


@dataclass(frozen=True)
class Reward:
    """A set that is cheaper than it should be, with its cost, and the set of one label fewer with its cost."""

    labels: Ints
    cost: float
    smaller: Ints
    smaller_cost: float
    changes: dict[int, float]  # of each node from the smaller set to the larger one, by `id`


def rewards(
    expression: Expression, singles: Ints, most: int, own_costs: Floats, count_work: Callable[[int], None]
) -> tuple[Reward | None, Reward | None]:
    """The first drop that is not meant, and the first set below zero; sets have up to `most` labels."""
    grow = Increments(expression, 1)
    empty = float(np.ravel(grow.value)[0])
    negative = own_costs < -_slack(own_costs) if empty <= 0 else np.zeros(len(own_costs), dtype=bool)
    below: Reward | None = None
    for grown in _sets_by_size(expression, singles, most, count_work):
        now, after = grown.nodes_now(), grown.nodes_after()
        before, root = np.asarray(grown.value)[:, None], grown.after()
        free = ~grown.mask & ~negative
        drops = free & (root - before < -_slack(root))
        if drops.any():
            held = _without_design(expression, now, after, root)
            drops &= held - before < -_slack(root)
        if drops.any():
            return _reward(grown, now, after, np.where(drops, root - before, np.inf)), below
        if below is None and empty >= 0 and not negative.any() and (free & (root < -_slack(root))).any():
            below = _reward(grown, now, after, np.where(free, root, np.inf))
    return None, below


def _slack(values: Floats) -> float:
    return 1e-9 * max(1.0, float(np.abs(values).max()))


def _sets_by_size(
    expression: Expression, singles: Ints, most: int, count_work: Callable[[int], None]
) -> Iterator[Increments]:
    """Sets of 1, 2, ... labels, of which all extensions by one label are to be tried."""
    K = expression.root.K
    step = max(1, _BLOCK // K)
    for block in (singles[start : start + step] for start in range(0, len(singles), step)):
        count_work(len(block) * K)
        grow = Increments(expression, len(block))
        grow.push(block)
        yield grow
    probed = probed_labels(expression, min(_PROBED, K))
    grown = Increments(expression, 2)
    for held in range(1, min(most, K - 1)):
        costs = grown.after()
        lowest = np.where(grown.mask[0], np.inf, costs[0]).argmin()
        grown.push(np.array([lowest, np.where(grown.mask[1], -np.inf, costs[1]).argmax()]))
        if held >= 2:
            count_work(2 * K)
            yield grown
            chosen = list(combinations(probed.tolist(), held)) if held < len(probed) else []
            if chosen and len(chosen) * K <= _MOST_OF_ONE_SIZE:
                count_work(len(chosen) * K)
                yield _grown(expression, chosen)


def _grown(expression: Expression, sets: Sequence[tuple[int, ...]]) -> Increments:
    grow = Increments(expression, len(sets))
    for labels in np.array(sets).T:
        grow.push(labels)
    return grow


def _without_design(expression: Expression, now: Values, after: Values, root: Floats) -> Floats:
    """L(S + y) with the leaves that fall by design, and do so here, held at their values on S."""
    leaves = [node for node in expression.nodes if _falls_by_design(node)]
    lowering: list[tuple[Node, Bools]] = []
    for leaf in leaves:
        falls = _held(expression, now, after, [(leaf, np.ones(root.shape, dtype=bool))]) > root
        lowering.append((leaf, np.broadcast_to(falls, root.shape)))
    return np.broadcast_to(_held(expression, now, after, lowering), root.shape)


def _falls_by_design(node: Node) -> bool:
    if isinstance(node, Not):  # not any(C) is within(all labels but C)
        return isinstance(node.operand, Leaf) and node.operand.atom.name == "any"
    return isinstance(node, Leaf) and node.atom.name in _FALL_BY_DESIGN


def _held(expression: Expression, now: Values, after: Values, leaves: Sequence[tuple[Node, Bools]]) -> Floats:
    """The loss after one more label, with the leaves held where they are to be."""
    held: Values = {
        id(leaf): np.where(where, np.asarray(now[id(leaf)])[:, None], after[id(leaf)]) for leaf, where in leaves
    }
    for node in expression.nodes:
        if id(node) not in held and any(id(child) in held for child in node.children):
            held[id(node)] = node.value(*(held.get(id(child), after[id(child)]) for child in node.children))
    return held.get(id(expression.root), after[id(expression.root)])


def _reward(grown: Increments, now: Values, after: Values, rank: Floats) -> Reward:
    """The pair that ranks first."""
    row, y = divmod(int(rank.argmin()), rank.shape[1])
    smaller = np.flatnonzero(grown.mask[row])
    changes = {
        node: float(np.broadcast_to(value, rank.shape)[row, y]) - float(np.broadcast_to(now[node], len(rank))[row])
        for node, value in after.items()
    }
    return Reward(
        np.sort(np.append(smaller, y)), float(grown.after()[row, y]), smaller, float(grown.value[row]), changes
    )
