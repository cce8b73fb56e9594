"""The state of a search as records: one per label, category, quantity and operation, a stack of nodes, the incumbent.

Every array that a kernel takes makes it slower to compile. So all data of one label or one operation are one record,
and all records are passed as one `Workspace`. A `Node` is a view of one position of the stack.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records, records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.exact_sum import LIMBS
from udcp_solvers.search.layout import CATEGORY_LABELS, IN, Floats, Ints, Marks, size_numbers, sizes_of

# Values closer than this, relative to what they are made of, are equal.
NEAR = 1e-12

LABEL = np.dtype([
    ("p", "f8"),
    ("worth", "f8"),  # mu p, of an open label
    ("value", "f8"), ("entry", "f8"),  # in the minorant
    ("change", "f8"),  # by how much the bound rises if the label changes sides
    ("rest", "f8"), ("rest_in", "?"),  # at price 0, without a threshold: the least value if it does; is it in
    ("root_with", "f8"), ("root_without", "f8"),  # lower bounds of sets with and without the label, by the first node
    ("closed_with", "f8"), ("closed_without", "f8"),  # the same, by all closed nodes
    ("half", "f8"), ("next", "i8"), ("alive", "?"),  # `pairs`: half of what it pays, its next neighbour, is it kept
    ("following", "i8"),  # the next label of the same category in order of value
    ("fixed", "i1"),  # IN, OUT or FREE before the first node (`fix_by_worth`)
], align=True)  # fmt: skip

CATEGORY = np.dtype([
    ("state", "i8"),  # bits MAY and TOUCHED, in the present node
    ("settled", "i8"),  # the bits set by settled labels
    ("touched", "i8"),  # whether the present set touches it
    ("weight", "f8"), ("v", "f8"),  # in the minorant; the least value of its part of the forest
    ("place", "i8"), ("length", "i8"), ("capacity", "i8"),  # `counts`: where its least values begin, how many, at most
    ("head", "i8"), ("enters", "?"), ("to_choose", "i8"),  # its first label; is it entered; how many labels to choose
    ("matters", "i8"),  # at price 0: whether a quantity that matters depends on it
    ("merged", "i8"), ("picks", "i8"),  # in record n: the n-th category merged, and where its picks begin
], align=True)  # fmt: skip

QUANTITY_RECORD = np.dtype([
    ("low", "f8"), ("high", "f8"),  # ends in the present node
    ("settled", "f8"),  # the constant and what settled labels add
    ("point", "f8"),  # the value on the present set
    ("exact", "f8"), ("exact_low", "f8"),  # the same to 106 bits (`exact`)
    ("matters", "i8"),  # at price 0: whether the loss, or what decides the present node, depends on it
])  # fmt: skip
OPERATION = np.dtype([
    ("low", "f8"), ("high", "f8"),  # ends in the present node
    ("factor", "f8"),  # with which the minorant reached it, or 0
    ("point", "f8"),  # the value on the present set
    ("exact", "f8"), ("exact_low", "f8"),  # the same to 106 bits (`exact`)
])  # fmt: skip
# An operation that the walk down the loss has yet to visit, and its factor.
PENDING = np.dtype([("operation", "i8"), ("factor", "f8")])

_SEARCH = [
    ("top", "i8"), ("node_count", "i8"),  # nodes on the stack, and nodes looked at
    ("open_count", "i8"), ("candidate_count", "i8"),  # numbers of open labels and of candidates
    ("best", "f8"),  # of the incumbent: its cost minus its worth
    ("ceiling_value", "f8"),  # of the set of all labels, at the ceiling of the loss: cost minus worth
    ("shift", "f8"),  # the worth of the labels dropped as in: both rose by it, and a bound from before lacks it
    ("unfinished_bound", "f8"),  # the least bound of a node for which the budget did not last
    ("minimum", "f8"),  # of the last minorant: the bound at its lines
    ("slack", "f8"), ("tie_room", "f8"),  # tolerance, and how far above the incumbent nodes are still looked at
    ("steepest", "f8"),  # the largest worth
    ("cost", "f8"), ("cost_low", "f8"),  # at price 0: what the incumbent costs, to 106 bits
    ("least_known", "?"),  # at price 0: whether no set can cost less than the incumbent
    ("margins_from_closed", "?"),  # whether margins can use the bounds of closed nodes
    ("ties", "?"),  # whether sets of equal value are looked for, as open labels have the same mass
    ("is_sum", "?"),  # whether the loss has no hard atom
    ("at_zero", "?"),  # whether the question is the one at price 0
]  # fmt: skip
# The parts of a minorant other than values and weights, each as operation (or -1) and factor.
_LEFT_OVER = [
    ("threshold", "i8"), ("threshold_factor", "f8"),  # a threshold on entries
    ("counted", "i8"), ("count_factor", "f8"),  # a table of a count
    ("pairs", "i8"), ("pairs_factor", "f8"),  # pairs of free labels
    ("max_change", "f8"),  # larger changes of labels count as this much; 0 if no changes are computed
]  # fmt: skip
# A scan of thresholds t by rising entry.
_SCAN = [
    ("held", "i8"), ("forced", "f8"),  # how many labels are in, and their value
    ("rest", "f8"),  # the least value without a threshold
    ("least", "f8"), ("at", "f8"), ("second", "f8"),  # the best value, its t, and the second best value
]  # fmt: skip
_MOVE = [
    ("line", "i8"),  # the line that is moved
    ("moves_left", "i8"), ("moves_each", "i8"),  # how often this line may still be moved; how often each may
    ("best_line", "f8"), ("highest", "f8"),  # where the bound was highest, and that bound
    ("low", "f8"), ("low_bound", "f8"), ("low_slope", "f8"),  # the interval of the line; a slope of 0 is unknown
    ("high", "f8"), ("high_bound", "f8"), ("high_slope", "f8"),
]  # fmt: skip
SEARCH, LEFT_OVER = np.dtype(_SEARCH, align=True), np.dtype(_LEFT_OVER, align=True)
SCAN, MOVE = np.dtype(_SCAN, align=True), np.dtype(_MOVE, align=True)


class Question(NamedTuple):
    """The question for the least L(S) - mu p(S) among the sets that agree with `fixed` (OUT, FREE, IN).

    `span`: the difference between the highest and lowest possible cost; `budget`: the most nodes
    to look at. `at_zero`: the question is that at price 0, the heaviest of the sets
    of least cost, compared exactly; `low`: a cost that no set is below, in exact arithmetic.
    """

    p: Floats
    mu: float
    fixed: Marks
    span: float
    budget: int
    at_zero: bool
    low: float


class Node(NamedTuple):
    """A part of all sets. By label: OUT, FREE or IN; by category: 1 if it must be touched; by operation: how it is
    decided, or 0; by quantity: bounds. `lines` (Q + N): the lines of the minorant, with which its halves begin."""

    x: Marks
    must_touch: Marks
    decided: Marks
    low: Floats
    high: Floats
    lines: Floats


class Workspace(NamedTuple):
    """All arrays for the search in one thread.

    The stack of nodes: `marks` (deep, K + C + N), `reals` (deep, 3 Q + N) and `bounds` (deep,). Records as above;
    category C stands for all labels. Lists of labels: `open`, those free in some node, and `candidates`, these and
    those that are in at the root; `order` and `spare` are scratch for lists, `keys` and `trial` for numbers. `chosen`:
    the set that attains the last bound. `warm_lines`: the lines of the first node of the last question. `margin` (K,):
    how much worse than the best set, at least, sets are in which a label is changed. `single_cost` (K,): what each
    label costs alone, NaN if not yet known. `pool` and `picks`: tables of counts. `limbs`: an exact sum.
    """

    marks: Marks
    reals: Floats
    bounds: Floats
    labels: Records
    categories: Records
    quantities: Records
    operations: Records
    pending: Records
    search: Record
    left_over: Record
    scan: Record
    move: Record
    chosen: Marks
    open: Ints
    candidates: Ints
    order: Ints
    spare: Ints
    keys: Floats
    trial: Floats
    warm_lines: Floats
    margin: Floats
    single_cost: Floats
    pool: Floats
    picks: Ints
    limbs: Ints


def workspace_of(ints: Ints) -> Workspace:
    """The workspace for a model."""
    K, C, Q, N, counted = size_numbers(ints)[:5]
    deep = 2 * K + 2 * C + 64 * (Q + N) + 64
    wide = max(K, C, 3 * (Q + N)) + 2
    counts = counted >= 0
    inside = int(ints[CATEGORY_LABELS + 1] - ints[CATEGORY_LABELS])
    return Workspace(
        marks=np.zeros((deep, K + C + N), np.int8),
        reals=np.zeros((deep, 3 * Q + N)),
        bounds=np.zeros(deep),
        labels=records(K, LABEL),
        categories=records(C + 1, CATEGORY),
        quantities=records(Q, QUANTITY_RECORD),
        operations=records(N, OPERATION),
        pending=records(wide, PENDING),
        search=records(1, SEARCH)[0],
        left_over=records(1, LEFT_OVER)[0],
        scan=records(1, SCAN)[0],
        move=records(1, MOVE)[0],
        chosen=np.zeros(K, np.int8),
        open=np.zeros(K, np.int64),
        candidates=np.zeros(K, np.int64),
        order=np.zeros(wide, np.int64),
        spare=np.zeros(wide, np.int64),
        keys=np.zeros(wide),
        trial=np.zeros(wide),
        warm_lines=np.zeros(Q + N),
        margin=np.zeros(K),
        single_cost=np.full(K, np.nan),
        pool=np.zeros(inside + 2 * C + 2 * K + 4 if counts else 1),
        picks=np.zeros((C + 1) * (K + 1) if counts else 1, np.int64),
        limbs=np.zeros(LIMBS, np.int64),
    )


@jit
def node_at(ints: Ints, place: int, T: Workspace) -> Node:
    """The node at a position of the stack."""
    K, C, Q, _ = sizes_of(ints)
    marks, reals = T.marks[place], T.reals[place]
    return Node(marks[:K], marks[K : K + C], marks[K + C :], reals[:Q], reals[Q : 2 * Q], reals[2 * Q :])


@jit
def open_labels(T: Workspace) -> Ints:
    """The labels that are free in some node."""
    return T.open[: T.search.open_count]


@jit
def candidate_labels(T: Workspace) -> Ints:
    """The open labels and those that are in at the root."""
    return T.candidates[: T.search.candidate_count]


@jit
def visit(operation: int, factor: float, top: int, pending: Records) -> int:
    """Add an operation to those that are pending; returns how many there are then."""
    pending[top].operation, pending[top].factor = operation, factor
    return top + 1


@jit
def same_set(a: Marks, b: Marks) -> bool:
    """Whether two sets have the same labels."""
    differ = 0
    for k in range(len(a)):
        differ += (a[k] == IN) != (b[k] == IN)
    return differ == 0


@jit
def is_within(a: Marks, b: Marks) -> bool:
    """Whether the first set is part of the second."""
    beyond = 0
    for k in range(len(a)):
        beyond += a[k] == IN and b[k] != IN
    return beyond == 0
