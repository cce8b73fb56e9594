"""The best set at a price: the least L(S) - mu p(S) over sets that hold some labels and leave out others.

Branch and bound. A node N is a part of these sets; its bound is at most the least L(S) - mu p(S) over S in N. Nodes
wait on a stack, the one that has the set just found on top. A step takes the top one and

- drops it if its bound is no better than the incumbent, the best set known;
- bounds it by the minimum of a minorant, whose lines are moved until it is high; the set that attains the minimum may
  be the next incumbent;
- fixes labels that would raise the bound above the incumbent if they changed sides;
- closes it if the set costs what the minorant says, or else branches: two nodes in its place.

So all sets are covered, whatever the loss. If the budget of nodes is used up, the least bound of the nodes that are
left says how much better another set could be. For min(L, c), nodes are those of L, and there is one more set, all
labels at the ceiling c. docs/engine.md follows an example.

Price 0 is a question of its own: the heaviest of the cheapest sets. The price mu of the question only guides the search
to heavy sets; sets are compared by their costs, then their masses, exactly. If S comes before the incumbent I, then

    L(S) - mu p(S) <= L(I)                if I is not known to be one of the cheapest
    L(S) - mu p(S) <= L(I) - mu p(I)      if it is, since then S costs as much and is not lighter

whatever mu is. Nodes with a higher bound are dropped, others are divided until no set of theirs can come first.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records
from udcp_solvers.numeric.compiled import jit_inlined
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill, order_by, put
from udcp_solvers.search.bound import bounded, may_tie, note_closed, note_root, repeats
from udcp_solvers.search.branching import branch
from udcp_solvers.search.forest_minimum import fix_labels
from udcp_solvers.search.intervals import intervals, net_cost, touch
from udcp_solvers.search.layout import (
    CODE,
    CONSTANTS,
    COSTS,
    FARTHEST,
    FIRST,
    FREE,
    IN,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    LEAST,
    NUMBERS,
    OUT,
    PAIRS,
    TOUCHED,
    WORST,
    Floats,
    Ints,
    Marks,
    ceiling_of,
    counted_of,
    kind_of,
    number_of,
    numbers,
    part,
    sizes_of,
)
from udcp_solvers.search.minorant import next_line, start_moves
from udcp_solvers.search.price_zero import compare_costs, compare_masses, enter_at_zero, exact_cost
from udcp_solvers.search.workspace import NEAR, Node, Question, Workspace, node_at, open_labels

# How many labels `_polish` tries in the first node. For a sum of more labels than the second number, it tries twice as
# many: there a trial is quick, and a better set ends many nodes.
_NEAR_LABELS, _MANY_LABELS = 8, 256
# The most free labels for which a table of their number is minimised number by number.
_MAX_COUNTED = 64
# Up to this many nodes, labels are not fixed after the root, and margins use the bounds of closed nodes
# (`margins_from_closed`).
_FEW_NODES = 8
# The most moves of a line, in the first node and in others.
_FIRST_MOVES, _MOVES = 14, 5

# The outcomes of a node that is bounded (see `_tighten`).
ATTAINED, CUT_OFF, NO_SET, BRANCH = range(4)


@jit
def best_set(ints: Ints, floats: Floats, asked: Question, found: Marks, started: bool, T: Workspace) -> float:
    """Fill `found` (K,) with the best set; if `started`, it holds a set to begin with.

    If two open labels have the same mass, and at price 0, the heaviest of the sets of equal value is found, then the
    smallest, then the first by indices. Returns how much better another set may be, at most: 0 unless the budget of
    nodes was used up. Fills `T.margin` for the labels that are free.
    """
    search = T.search
    fix_by_worth(ints, floats, asked, T)
    _begin_root(ints, floats, asked, T)
    search.ties = repeats(ints, floats, T)
    search.tie_room = search.slack if search.ties or asked.at_zero else -search.slack
    if started and _agrees(found, T.labels):
        search.best = net_cost(ints, floats, found, T)
    while search.top > 0:
        _step(ints, floats, asked, found, T)
    least = min(search.best, search.ceiling_value)
    gap = float(least - min(least, search.unfinished_bound))
    if asked.at_zero and search.unfinished_bound < np.inf:  # it may have a set of the same cost that is heavier
        gap = max(gap, float(search.slack))
    elif gap <= search.slack:
        gap = 0.0
    at_ceiling = ceiling_of(ints) >= 0 and _take_ceiling(ints, floats, asked, found, T)
    _fill_margins(ints, asked, found, gap, at_ceiling, T)
    return gap


@jit
def fix_by_worth(ints: Ints, floats: Floats, asked: Question, T: Workspace) -> None:
    """Fix labels that cost more than they are worth in every set, or whose worth is above the span of the loss.

    The other labels are open. Also fills the margins of the labels that are fixed.
    """
    search, adds, mu = T.search, numbers(ints, floats, LEAST), asked.mu
    scale, count = asked.span, 0
    search.steepest = 0.0
    for y in range(len(asked.p)):
        label, p = T.labels[y], asked.p[y]
        label.p, label.fixed = p, asked.fixed[y]
        if label.fixed == FREE:
            T.margin[y] = adds[y] - mu * p
            if T.margin[y] > 0.0 or (p == 0.0 and adds[y] >= 0.0) or (asked.at_zero and adds[y] > 0.0):
                label.fixed = OUT
            elif not asked.at_zero and mu * p > (1.0 + 1e-9) * asked.span and p > 0.0:
                label.fixed = IN
                T.margin[y] = mu * p - asked.span
        if label.fixed != OUT:
            T.open[count] = y
            count += 1
            # The worth of labels that every set has does not count: beside it small values would lose their digits.
            label.worth = mu * p if label.fixed == FREE else 0.0
            scale += label.worth
            search.steepest = max(search.steepest, label.worth)
    search.open_count, search.ceiling_value = count, np.inf
    i = ceiling_of(ints)
    if i >= 0:
        search.ceiling_value = number_of(numbers(ints, floats, NUMBERS), i)
        for y in range(len(asked.p)):
            if asked.fixed[y] == FREE and T.labels[y].fixed != IN and not asked.at_zero:
                search.ceiling_value -= mu * asked.p[y]
                scale += mu * asked.p[y] if T.labels[y].fixed == OUT else 0.0
    search.slack = NEAR * scale


@jit
def _begin_root(ints: Ints, floats: Floats, asked: Question, T: Workspace) -> None:
    """Begin with a stack of one node, all sets that agree with what is fixed, and no incumbent."""
    search, labels, constants = T.search, T.labels, numbers(ints, floats, CONSTANTS)
    for j in range(len(constants)):
        T.quantities[j].settled = constants[j]
    for c in range(len(T.categories)):
        T.categories[c].settled = 0
    fill(T.marks[0], 0)
    root = node_at(ints, 0, T)
    for y in range(len(labels)):
        root.x[y] = labels[y].fixed
    for y in open_labels(T):
        label = labels[y]
        label.root_with, label.root_without = -np.inf, -np.inf
        label.closed_with, label.closed_without = np.inf, np.inf
    fill(root.low, -np.inf)
    fill(root.high, np.inf)
    put(root.lines, T.warm_lines)
    if ceiling_of(ints) >= 0:
        root.decided[len(root.decided) - 1] = FIRST
    fill(T.chosen, 0)
    _drop_fixed(ints, floats, root, T)
    T.bounds[0] = -np.inf
    search.top, search.node_count = 1, 0
    search.best, search.unfinished_bound, search.shift = np.inf, np.inf, 0.0
    search.cost, search.least_known = np.inf, False
    search.at_zero = asked.at_zero
    search.margins_from_closed, search.is_sum = True, _is_sum(ints)


@jit
def _cutoff(search: Record) -> float:
    """The bound from which on a node is dropped."""
    return float(min(search.best, search.ceiling_value) + search.tie_room)


@jit
def _step(ints: Ints, floats: Floats, asked: Question, found: Marks, T: Workspace) -> None:
    """Take the top node off the stack: drop it, leave it unfinished, close it or put two in its place."""
    search = T.search
    search.top -= 1
    top = search.top
    node, bound = node_at(ints, top, T), T.bounds[top]
    if bound >= _cutoff(T.search):
        if search.margins_from_closed:
            note_closed(bound, -np.inf, node, T)
        return
    if search.node_count >= asked.budget or top + 2 > len(T.bounds):  # used up, or no room on the stack for two nodes
        search.unfinished_bound, search.margins_from_closed = min(search.unfinished_bound, bound), False
        return
    search.node_count += 1
    search.margins_from_closed = search.margins_from_closed and search.node_count <= _FEW_NODES
    if not (enter_at_zero(ints, floats, node, found, T) if asked.at_zero else _enter(ints, floats, node, T)):
        return
    first = search.node_count == 1
    start_moves(_FIRST_MOVES if first else _MOVES, T.move)
    outcome = _tighten(ints, floats, asked, node, top, found, T)
    if first:
        put(T.warm_lines, node.lines)
    if outcome != BRANCH:
        if search.margins_from_closed:
            note_closed(T.bounds[top], search.minimum, node, T)
        return
    if first:
        search.shift = _drop_fixed(ints, floats, node, T)
        search.best += search.shift
        search.ceiling_value += search.shift
        T.bounds[top] += search.shift
    bound = T.bounds[top]
    search.top = branch(ints, floats, top, T)
    if search.margins_from_closed and search.top == top:
        note_closed(bound, -np.inf, node, T)


@jit
def _enter(ints: Ints, floats: Floats, node: Node, T: Workspace) -> bool:
    """Compute the state of a node; False if it has no set."""
    return touch(ints, node, T) and intervals(ints, floats, node, T)


@jit
def _tighten(ints: Ints, floats: Floats, asked: Question, node: Node, top: int, found: Marks, T: Workspace) -> int:
    """Raise the bound of the node at `top`, by moving lines and fixing labels, until its outcome is known.

        ATTAINED    no set of the node is better than the one that attains the bound: the node is closed
        CUT_OFF     the bound is no better than the incumbent: the node is closed
        NO_SET      labels are fixed, and no set that agrees with them touches what must be touched: it is dropped
        BRANCH      none of these, and the bound can be raised no more: two nodes take its place

    Other sets may be as good as the one that attains the bound: if there may be such ties, the node is divided, too.
    """
    search, left = T.search, T.left_over
    left.counted, outcome = _countable(ints, node, T), BRANCH
    # While lines move; in the first node, perhaps once more at the best of them; then perhaps number by number.
    for turn in range(3):
        outcome = _climb(ints, floats, asked, node, top, found, T)
        if outcome != BRANCH or left.counted >= 0:  # without the changes, which `by_count` leaves out, none is fixed
            break
        if search.node_count == 1:
            if turn == 0 and search.minimum < T.bounds[top]:  # the lines are back where the bound was higher
                continue
            if not _fix_root(ints, floats, asked, node, found, T):
                outcome = NO_SET
                break
        # Once labels are fixed, few may be left.
        left.counted = _countable(ints, node, T)
        if left.counted < 0:
            break
    if outcome == ATTAINED and (asked.at_zero or (search.ties and may_tie(ints, floats, node, T))):
        outcome = BRANCH
        if asked.at_zero and left.counted < 0 and not _fix_more(ints, floats, asked, node, found, T):
            outcome = NO_SET
    # The incumbent may have become better since the bound was compared with it.
    return CUT_OFF if outcome == BRANCH and T.bounds[top] >= _cutoff(search) else outcome


@jit_inlined
def _climb(ints: Ints, floats: Floats, asked: Question, node: Node, top: int, found: Marks, T: Workspace) -> int:
    """Bound a node, and move its lines as long as that may raise the bound; returns the outcome.

    Once closed nodes no longer count for the margins, labels are fixed whenever the bound has risen.
    """
    search, moved = T.search, True
    while moved:
        before = T.bounds[top]
        outcome = _bound(ints, floats, asked, node, top, found, T)
        if outcome != BRANCH:
            return outcome
        moved = next_line(ints, floats, node, search.minimum, _cutoff(search), T)
        fixes = search.node_count > 1 and not search.margins_from_closed
        if fixes and search.minimum > before and not _fix(ints, node, T):
            return NO_SET
    return BRANCH


@jit_inlined
def _bound(ints: Ints, floats: Floats, asked: Question, node: Node, top: int, found: Marks, T: Workspace) -> int:
    """Bound a node once, at its lines, and offer the set that attains the bound; returns the outcome."""
    search = T.search
    search.minimum = bounded(ints, floats, node, T)
    T.bounds[top] = max(T.bounds[top], search.minimum)
    if T.bounds[top] >= _cutoff(search):
        return CUT_OFF
    cost = net_cost(ints, floats, T.chosen, T)
    _offer(ints, floats, cost, asked, found, T)
    return ATTAINED if cost <= search.minimum + search.slack else BRANCH


@jit
def _fix_root(ints: Ints, floats: Floats, asked: Question, node: Node, found: Marks, T: Workspace) -> bool:
    """Fix labels in the first node, which then are fixed in all nodes; False if that leaves no set.

    The better the incumbent is, the more labels are fixed: it is improved first.
    """
    if not asked.at_zero:
        _polish(ints, floats, node, found, T)
    note_root(T.search.minimum, T)
    return (not asked.at_zero and _fixes_few(node, T)) or _fix(ints, node, T)


@jit
def _fixes_few(node: Node, T: Workspace) -> bool:
    """Whether fewer than half of the open labels would be fixed: not worth the margins of all labels."""
    room, fixed = _cutoff(T.search) - T.search.minimum, 0
    for y in open_labels(T):
        fixed += node.x[y] == FREE and T.labels[y].change > room
    return bool(2 * fixed < T.search.open_count)


@jit
def _fix_more(ints: Ints, floats: Floats, asked: Question, node: Node, found: Marks, T: Workspace) -> bool:
    """Fix labels in a node whose bound is attained; False if that leaves no set."""
    if T.search.node_count == 1:
        return _fix_root(ints, floats, asked, node, found, T)
    return _fix(ints, node, T)


@jit
def _offer(ints: Ints, floats: Floats, cost: float, asked: Question, found: Marks, T: Workspace) -> None:
    """The chosen set becomes the incumbent if it is better, or as good and comes first."""
    search = T.search
    if asked.at_zero:
        _offer_at_zero(ints, floats, cost, asked, found, T)
        return
    better = cost < search.best - search.slack
    if better or (search.ties and cost <= search.best + search.slack and _comes_first(found, search.best < np.inf, T)):
        search.best = min(search.best, cost)
        put(found, T.chosen)


@jit
def _offer_at_zero(ints: Ints, floats: Floats, cost: float, asked: Question, found: Marks, T: Workspace) -> bool:
    """The chosen set becomes the incumbent if it comes first at price 0; returns whether it does. `cost` is what it
    costs minus its worth."""
    search, sign, own = T.search, -1, T.operations[-1].point
    if own > search.cost + search.slack:
        return False
    high, low = exact_cost(ints, floats, T.chosen, T)
    if search.best < np.inf:
        sign = compare_costs(high, low, search.cost, search.cost_low, asked.span)
        if sign == 0:
            sign = -compare_masses(T.chosen, IN, found, T)
        if sign == 0:
            sign = -1 if _is_smaller_or_first(found, T) else 1
    if sign < 0:
        search.cost, search.cost_low = high, low
        search.least_known = asked.low > -np.inf and compare_costs(high, low, asked.low, 0.0, 0.0) <= 0
        search.best = cost if search.least_known else own
        put(found, T.chosen)
    return sign < 0


@jit
def _fix(ints: Ints, node: Node, T: Workspace) -> bool:
    """Fix the labels of a node whose change would raise its bound above the incumbent; False if that leaves no set."""
    room = _cutoff(T.search) - T.search.minimum
    if T.left_over.max_change > room and fix_labels(ints, node, room, T):
        T.search.margins_from_closed = False
        return touch(ints, node, T)
    return True


@jit
def _take_ceiling(ints: Ints, floats: Floats, asked: Question, found: Marks, T: Workspace) -> bool:
    """For min(L, c): whether the set of all labels, at the ceiling c, is the best one; if so, it becomes the set
    found."""
    search, any_found = T.search, T.search.best < np.inf
    if search.ceiling_value > search.best + search.slack and not asked.at_zero:
        return False
    for y in range(len(found)):
        fixed = asked.fixed[y]
        T.chosen[y] = IN if fixed == IN or (fixed == FREE and asked.p[y] > 0.0) else 0
    if asked.at_zero:
        T.operations[-1].point = search.cost  # so that it is compared exactly
        return _offer_at_zero(ints, floats, search.best, asked, found, T)
    at_ceiling = search.ceiling_value < search.best - search.slack or _comes_first(found, any_found, T)
    if at_ceiling:
        put(found, T.chosen)
    return at_ceiling


@jit
def _fill_margins(ints: Ints, asked: Question, found: Marks, gap: float, at_ceiling: bool, T: Workspace) -> None:
    """Compute the margin of each free label: how much worse than the best set, at least, sets are in which it is
    changed."""
    search, margin = T.search, T.margin
    least, has_ceiling = min(search.best, search.ceiling_value), ceiling_of(ints) >= 0
    if asked.at_zero and has_ceiling:  # its value has no worth in it
        fill(margin, -asked.span)
        return
    for y in range(len(found)):
        if asked.fixed[y] != FREE:
            continue
        label = T.labels[y]
        if label.fixed == FREE:
            at_root = label.root_without if found[y] == IN else label.root_with
            closed = label.closed_without if found[y] == IN else label.closed_with
            lowest = max(at_root, closed if search.margins_from_closed else -np.inf)
            # If labels were dropped at the root, `margins_from_closed` is False, and the bounds that count were noted
            # before: they lack the shift, which `least` has.
            margin[y] = max(lowest - least + search.shift, -gap)
        elif at_ceiling and label.fixed == OUT:
            margin[y] = 0.0
        if has_ceiling:
            worth = asked.mu * asked.p[y] if found[y] == IN else 0.0
            margin[y] = min(margin[y], search.ceiling_value - least + worth)


@jit
def _is_sum(ints: Ints) -> bool:
    """Whether the loss has no hard atom, so that quantities are all that it is made of."""
    code = part(ints, CODE)
    hard = 0
    for i in range(sizes_of(ints)[3]):
        hard += kind_of(code, i) in (WORST, FARTHEST, PAIRS)
    return hard == 0


@jit
def _countable(ints: Ints, node: Node, T: Workspace) -> int:
    """The table that is minimised number by number, if few labels are free; else -1."""
    free = 0
    for y in open_labels(T):
        free += node.x[y] == FREE
    return counted_of(ints) if T.search.is_sum and free <= _MAX_COUNTED else -1


@jit
def _polish(ints: Ints, floats: Floats, node: Node, found: Marks, T: Workspace) -> None:
    """Let free labels into the incumbent, or out of it, one by one, if that makes it better.

    The labels whose value in the minorant is nearest to 0 are tried.
    """
    search, near, free = T.search, T.order, 0
    for y in open_labels(T):
        if node.x[y] == FREE:
            near[free], T.keys[y] = y, abs(T.labels[y].value)
            free += 1
    order_by(T.keys, near[:free], T.spare)
    many = search.is_sum and len(found) > _MANY_LABELS
    tried = min(free, 2 * _NEAR_LABELS if many else _NEAR_LABELS)
    n, since = 0, 0
    while since < tried:
        y = near[n % tried]
        found[y] = IN if found[y] != IN else 0
        cost = net_cost(ints, floats, found, T)
        since += 1
        if cost < search.best - search.slack:
            search.best, since = cost, 0
        else:
            found[y] = IN if found[y] != IN else 0
        n += 1
    net_cost(ints, floats, T.chosen, T)  # restores the values of operations on the chosen set for `branch`


@jit
def _drop_fixed(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """Remove labels that are fixed in the first node from the open ones; note what those that are in cost and touch.
    Returns their worth, which no longer counts."""
    costs = numbers(ints, floats, COSTS)
    starts, of = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    K, count, held, gone = len(node.x), 0, 0, 0.0
    for y in open_labels(T):
        if node.x[y] == FREE:
            T.open[count] = y
            count += 1
            continue
        T.chosen[y] = node.x[y] == IN
        if node.x[y] == IN:
            gone += T.labels[y].worth
            for j in range(len(T.quantities)):
                T.quantities[j].settled += costs[j * K + y]
            for e in range(starts[y], starts[y + 1]):
                T.categories[of[e]].settled = TOUCHED
    put(T.candidates[:count], T.open[:count])
    for y in range(K):
        if node.x[y] == IN:
            T.candidates[count + held] = y
            held += 1
    T.search.open_count, T.search.candidate_count = count, count + held
    return gone


@jit
def _agrees(found: Marks, labels: Records) -> bool:
    """Whether a set agrees with the labels that are fixed before the first node."""
    against = 0
    for y in range(len(found)):
        fixed = labels[y].fixed
        against += fixed != FREE and (fixed == IN) != (found[y] == IN)
    return against == 0


@jit
def _comes_first(found: Marks, any_found: bool, T: Workspace) -> bool:
    """Whether the chosen set comes before the incumbent: it is heavier; or as heavy and smaller; or has the first
    indices."""
    more, total = 0.0, 0.0
    for y in range(len(found)):
        if T.chosen[y] != found[y]:
            p = T.labels[y].p
            more += p if T.chosen[y] == IN else -p
            total += p
    if not any_found or abs(more) > NEAR * total:
        return not any_found or more > 0.0
    return _is_smaller_or_first(found, T)


@jit
def _is_smaller_or_first(found: Marks, T: Workspace) -> bool:
    """Whether the chosen set has fewer labels than the incumbent, or as many and the first indices."""
    size, lead = 0, 0
    for y in range(len(found)):
        if T.chosen[y] != found[y]:
            sign = 1 if T.chosen[y] == IN else -1
            size += sign
            if lead == 0:
                lead = sign
    return size < 0 if size != 0 else lead > 0
