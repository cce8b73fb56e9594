"""Greedy orders, one label per step: pick the list with the best ratio, take its head, update what the others cost.

A list holds labels that the loss cannot tell apart, so only its likeliest label (its head) can come next. If the loss
is a sum, L(S + y) = common(|S| + 1) + spent + extra + sum over a of w_a max(v_a, far_a), up to an error of `slack`:
`extra` belongs to the class of the list, v_a is the value of an atom (a diameter or a largest cost), and far_a is the
distance of the list to the set, or its cost.

- pick: one vectorised pass over the lists bounds the best ratio from below, a second finds the lists that may reach it,
  and `incremental_cost`, which decides every tie, evaluates these. A loss that is not a sum has infinite slack: all
  lists reach the bound, and each is evaluated.
- take: the label enters the order, and the next label of its list becomes the head.
- update: lists whose categories are now touched change class, and distances to the set grow.

A step takes O(lists); with a distance matrix it reads one row of the matrix, at memory speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.greedy_orders.candidate_heads import Ranked, assign_lists, placed_limit, rank, ranks_for, ratio
from udcp_solvers.greedy_orders.incremental_cost import (
    DENSE,
    LARGER,
    TREE,
    Growing,
    State,
    clear,
    new_state,
    push,
)
from udcp_solvers.greedy_orders.lists import Lists, SumModel
from udcp_solvers.numeric.arrays import Floats, Indices, Ints32, Probabilities
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.falling import falling_orders

_ROUNDING = 2.0**-50
# The maximum is taken in each lane separately, which vectorises; arrays over the lists are padded to whole lanes.
_LANES = 32


class Problem(NamedTuple):
    """The data that all rows share."""

    cost: Growing
    lists: Lists
    model: SumModel
    M: float
    eps: float


class Rows(NamedTuple):
    """Rows P (n, K), and how far to order each: until label `wanted` is placed or less mass than `floor` remains.
    `orders` (n, K) holds the orders by falling p and gets the greedy ones; `counts` (n,) gets how many labels are
    placed."""

    P: Probabilities
    wanted: Indices
    floor: Floats
    orders: Indices
    counts: Indices


class Candidates(NamedTuple):
    """The G lists of one row, and scratch arrays; an axis G+ is padded to whole lanes."""

    state: State  # of `incremental_cost`
    head: Indices  # (G,) the rank of the label that may come next, K if the list is used up
    following: Indices  # (K,) the next rank of the same list
    touched: Indices  # (G,) which categories of the list are touched, as bits
    current_class: Indices  # (G,) the present class of the list
    above: Ints32  # (T, height, G) the ancestors of the list's labels
    common_depth: Ints32  # (G,) depth of the deepest common ancestor with the label taken last
    far: Floats  # (A, G+) the distance that is compared with the value of atom a
    extra: Floats  # (G+) what the list costs beyond what every list costs; infinite if it is used up
    inverse: Floats  # (G+) 1 / (max(1 - p, 0) + eps) of the head
    gain: Floats  # (G+) M - L(S + head), up to slack
    lanes: Floats  # (_LANES,)


def orders_by_steps(
    start: int,
    stop: int,
    P: Probabilities,
    wanted: Indices,
    floor: Floats,
    problem: Problem,
    orders: Indices,
    counts: Indices,
) -> None:
    """The labels of each row in greedy order, until label `wanted` is placed or less mass than `floor` remains."""
    falling_orders(P[start:stop], orders[start:stop])
    ranks, candidates = ranks_for(P.shape[1]), _candidates_for(problem)
    _fill(start, stop, Rows(P, wanted, floor, orders, counts), problem, ranks, candidates)


def _candidates_for(problem: Problem) -> Candidates:
    cost, member = problem.cost, problem.lists.member
    A, G = len(cost.atoms), len(member)
    padded = -(-G // _LANES) * _LANES
    return Candidates(
        state=new_state(cost),
        head=np.empty(G, np.int64),
        following=np.empty(cost.number.shape[1], np.int64),
        touched=np.empty(G, np.int64),
        current_class=np.empty(G, np.int64),
        above=np.ascontiguousarray(cost.paths[:, :, member]),
        common_depth=np.empty(G, np.int32),
        far=np.zeros((A, padded)),
        extra=np.full(padded, np.inf),
        inverse=np.ones(padded),
        gain=np.empty(padded),
        lanes=np.empty(_LANES),
    )


@jit
def _fill(start: int, stop: int, rows: Rows, problem: Problem, ranks: Ranked, candidates: Candidates) -> None:
    """Replace each row's order by falling p, which stands in `orders`, by its greedy order."""
    for i in range(start, stop):
        rank(rows.P[i], rows.orders[i], problem.eps, ranks)
        _begin(problem, ranks, candidates)
        rows.counts[i] = _order(problem, ranks, candidates, rows.wanted[i], rows.floor[i], rows.orders[i])


@jit
def _begin(problem: Problem, ranks: Ranked, candidates: Candidates) -> None:
    """Start with the empty set: every list has its likeliest label as head."""
    cost, lists = problem.cost, problem.lists
    clear(cost, candidates.state)
    assign_lists(lists.list_of, ranks.label, candidates.head, candidates.following)
    for a in range(len(cost.atoms)):
        kind, metric, far = cost.atoms[a].kind, cost.atoms[a].metric, candidates.far[a]
        for g in range(len(lists.member)):
            y = lists.member[g]
            if kind == LARGER:
                far[g] = cost.number[a, y]
            elif kind == DENSE:
                far[g] = lists.distance[metric, cost.point[metric, y], g]
            else:
                far[g] = 0.0
    for g in range(len(lists.member)):
        candidates.touched[g] = 0
        candidates.current_class[g] = lists.class_of[g, 0]
        candidates.extra[g] = problem.model.extra[candidates.current_class[g]]
        candidates.inverse[g] = ranks.inverse[candidates.head[g]]


@jit
def _order(problem: Problem, ranks: Ranked, candidates: Candidates, wanted: int, floor: float, order: Indices) -> int:
    """Fill the order of one row; returns how many labels are placed."""
    common, list_of, label, p = problem.model.common, problem.lists.list_of, ranks.label, ranks.p
    most = placed_limit(p, floor)
    spent, placed = 0.0, 0.0
    for count in range(len(order)):
        r = _pick(problem, ranks, candidates, problem.M - common[count + 1] - spent)
        y = label[r]
        order[count] = y
        placed += p[r]
        if y == wanted or placed > most:
            return count + 1
        spent += candidates.extra[list_of[y]]
        _take(problem, ranks, candidates, r)
        _touch(problem, candidates, y)
        _update_distances(problem, candidates, y)
    return len(order)


# Pick ----------------------------------------------------------------------------------------------------------------


@jit
def _pick(problem: Problem, ranks: Ranked, candidates: Candidates, left: float) -> int:
    """The rank of the next label; `left` is M minus the cost common to all lists."""
    gain, inverse, weight = candidates.gain, candidates.inverse, problem.model.far_weight
    _subtract_extra(gain, candidates.extra, left)
    for a in range(len(weight)):
        if weight[a] != 0.0:
            _subtract_distances(gain, candidates.far[a], candidates.state.atoms[a].value, weight[a])
    slack = problem.model.slack
    lower = _best_lower(gain.reshape(-1, _LANES), inverse.reshape(-1, _LANES), candidates.lanes, slack)
    # If no ratio is certainly above 0, all may be 0, and p decides.
    lower = lower * (1.0 - _ROUNDING) if lower > 0.0 else -np.inf
    return _best(problem, ranks, candidates, lower)


@jit
def _subtract_extra(gain: Floats, extra: Floats, left: float) -> None:
    for g in range(len(gain)):
        gain[g] = left - extra[g]


@jit
def _subtract_distances(gain: Floats, far: Floats, value: float, weight: float) -> None:
    for g in range(len(gain)):
        gain[g] -= weight * max(value, far[g])


@jit
def _best_lower(gain: Floats, inverse: Floats, lanes: Floats, slack: float) -> float:
    """A lower bound of the best ratio, up to rounding."""
    lanes[:] = -np.inf
    for b in range(len(gain)):
        for j in range(_LANES):
            lanes[j] = max(lanes[j], (gain[b, j] - slack) * inverse[b, j])
    best = -np.inf
    for x in lanes:
        best = max(best, x)
    return best


@jit
def _best(problem: Problem, ranks: Ranked, candidates: Candidates, lower: float) -> int:
    """The rank with the best ratio among the lists that may reach `lower`; ties go to the lower rank.

    Lists that cost the same are compared by rank alone, so that most steps evaluate nothing.
    """
    gain, inverse, head, slack = candidates.gain, candidates.inverse, candidates.head, problem.model.slack
    K = len(ranks.label)
    best, best_list, best_ratio, evaluated = K, 0, 0.0, False
    for g in range(len(head)):
        r = head[g]
        if (gain[g] + slack) * inverse[g] * (1.0 + _ROUNDING) < lower or r == K:
            continue
        same = _cost_alike(problem, candidates, g, best_list)
        if best == K or (same and r < best):
            best, best_list, evaluated = r, g, False
        elif not same:
            if not evaluated:
                best_ratio, evaluated = _ratio(problem, ranks, candidates, best_list), True
            found = _ratio(problem, ranks, candidates, g)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_list, best_ratio = r, g, found
    return best


@jit
def _cost_alike(problem: Problem, candidates: Candidates, g: int, h: int) -> bool:
    """Whether L(S + y) is the same float for both lists: one class, and no distance tells them apart."""
    if candidates.current_class[g] != candidates.current_class[h]:
        return False
    far = candidates.far
    for a in range(len(problem.cost.atoms)):
        value = candidates.state.atoms[a].value
        if problem.cost.atoms[a].metric >= 0 and max(value, far[a, g]) != max(value, far[a, h]):
            return False
    return True


@jit
def _ratio(problem: Problem, ranks: Ranked, candidates: Candidates, g: int) -> float:
    """The greedy ratio of a list's head, to the bit, so that ties are decided correctly."""
    _load_distances(problem, candidates, g)
    r = candidates.head[g]
    return ratio(problem.cost, candidates.state, ranks.label, ranks.denominator, r, problem.M)


@jit
def _load_distances(problem: Problem, candidates: Candidates, g: int) -> None:
    """Copy the distances of a list to the state of `incremental_cost`."""
    for a in range(len(candidates.far)):
        candidates.state.atoms[a].far = candidates.far[a, g]


# Take and update -----------------------------------------------------------------------------------------------------


@jit
def _take(problem: Problem, ranks: Ranked, candidates: Candidates, r: int) -> None:
    """Add the label of rank r, the head of its list, to the set."""
    y = ranks.label[r]
    g = problem.lists.list_of[y]
    _load_distances(problem, candidates, g)
    push(problem.cost, candidates.state, y)
    following = candidates.following[r]
    candidates.head[g] = following
    if following == len(ranks.label):
        candidates.extra[g] = np.inf
    else:
        candidates.inverse[g] = ranks.inverse[following]


@jit
def _touch(problem: Problem, candidates: Candidates, y: int) -> None:
    """For each category that y is the first to touch, move its lists to their new classes."""
    lists, cost = problem.lists, problem.cost
    of_y = lists.list_of[y]
    if not lists.unpaid[candidates.current_class[of_y]]:
        return
    before = candidates.touched[of_y]
    first = cost.label_entries[y]
    for e in range(cost.label_entries[y + 1] - first):
        if (before >> e) & 1 == 1:
            continue
        category = cost.entries[first + e].category
        for j in range(lists.category_start[category], lists.category_start[category + 1]):
            g = lists.category_list[j]
            candidates.touched[g] |= 1 << lists.category_bit[j]
            candidates.current_class[g] = lists.class_of[g, candidates.touched[g]]
            if candidates.extra[g] != np.inf:
                candidates.extra[g] = problem.model.extra[candidates.current_class[g]]


@jit
def _update_distances(problem: Problem, candidates: Candidates, y: int) -> None:
    """Update the distances of all lists to the set, which now contains y."""
    cost, lists = problem.cost, problem.lists
    for a in range(len(cost.atoms)):
        kind, metric = cost.atoms[a].kind, cost.atoms[a].metric
        if kind == DENSE:
            _update_by_matrix(candidates.far[a], lists.distance[metric, cost.point[metric, y]])
        elif kind == TREE:
            _update_by_tree(problem, candidates, a, lists.list_of[y])


@jit
def _update_by_matrix(far: Floats, row: Floats) -> None:
    for g in range(len(row)):
        far[g] = max(far[g], row[g])


@jit
def _update_by_tree(problem: Problem, candidates: Candidates, a: int, of_y: int) -> None:
    """Update tree distances. Two labels share 1 + d ancestors if their deepest common ancestor has depth d (the root:
    0)."""
    tree = problem.cost.atoms[a].metric
    far, common, above = candidates.far[a], candidates.common_depth, candidates.above[tree]
    depth, edge, member = problem.cost.depth[tree], problem.cost.edge[tree], problem.lists.member
    common[:] = -1
    for level in above:
        node = level[of_y]
        if node < 0:
            break
        for g in range(len(common)):
            common[g] += 1 if level[g] == node else 0
    for g in range(len(common)):
        far[g] = max(far[g], edge * (depth[member[g]] + depth[member[of_y]] - 2 * common[g]))
