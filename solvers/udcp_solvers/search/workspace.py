"""The state of a search as records: one per label, category, quantity and operation, a stack of nodes, the incumbent.

A kernel is slower to compile for every array that it is handed, so what belongs to one label or one operation is one
record, and all records travel as one `Workspace`. A `Node` is a view of one place of the stack.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records, records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.search.layout import CATEGORY_LABELS, Floats, Ints, Marks, size_numbers, sizes_of

# Values closer than this, relative to what they are made of, are equal.
NEAR = 1e-12

LABEL = np.dtype([
    ("p", "f8"),
    ("worth", "f8"),  # mu p, of an open label
    ("value", "f8"), ("entry", "f8"),  # in the minorant
    ("change", "f8"),  # by how much the bound rises if the label changes sides
    ("root_with", "f8"), ("root_without", "f8"),  # bounds below the sets with the label and without: of the first node
    ("closed_with", "f8"), ("closed_without", "f8"),  # the same, of all nodes that were closed
    ("half", "f8"), ("next", "i8"), ("alive", "?"),  # sums of pairs: half of what it pays, whom it pays next, if at all
    ("following", "i8"),  # the next label of the same category in order of value
    ("root", "i1"),  # IN, OUT or FREE, by `fix_at_root`; what the first node fixes is not noted here
], align=True)  # fmt: skip

CATEGORY = np.dtype([
    ("state", "i8"),  # bits MAY and TOUCHED, in the node at hand
    ("root", "i8"),  # the bits by labels that are in at the root
    ("touched", "i8"),  # whether the set at hand touches it
    ("weight", "f8"), ("v", "f8"),  # in the minorant, and the least value of its part of the forest
    ("place", "i8"), ("length", "i8"), ("room", "i8"),  # `counts`: its least values, how many there are and may be
    ("head", "i8"), ("enters", "?"), ("left", "i8"),  # its first label; is it entered; labels it is left to choose
    ("merged", "i8"), ("picks", "i8"),  # of record n: the n-th category that was merged, and where its choices are
], align=True)  # fmt: skip

QUANTITY_RECORD = np.dtype([
    ("low", "f8"), ("high", "f8"),  # ends in the node at hand
    ("root", "f8"),  # the value without open labels
    ("point", "f8"),  # the value on the set at hand
])  # fmt: skip
OPERATION = np.dtype([
    ("low", "f8"), ("high", "f8"),  # ends in the node at hand
    ("factor", "f8"),  # with which the minorant reached it, else 0
    ("point", "f8"),  # the value on the set at hand
])  # fmt: skip
# An operation that a walk down the loss has still to visit, and its factor there.
PENDING = np.dtype([("operation", "i8"), ("factor", "f8")])

_SEARCH = [
    ("top", "i8"), ("looked", "i8"),  # nodes on the stack, and nodes looked at
    ("open", "i8"), ("candidates", "i8"),  # how many labels are open, and with those that are in
    ("best", "f8"),  # of the incumbent: what it costs less what it is worth
    ("ceiling", "f8"),  # the same of all labels at the limit of the loss
    ("shift", "f8"),  # by how much both rose when labels were dropped
    ("open_bound", "f8"),  # the least bound of a node that the budget left open
    ("slack", "f8"), ("tie_room", "f8"),  # tolerance, and how far above the incumbent nodes are still looked at
    ("steepest", "f8"),  # the largest worth
    ("tells", "?"),  # whether the bounds of closed nodes are known for every label
    ("is_sum", "?"),  # whether no hard atom is in the loss
]  # fmt: skip
# What is left of a minorant beside values and weights, as operation (or -1) and factor.
_LEFT_OVER = [
    ("threshold", "i8"), ("threshold_factor", "f8"),  # a threshold on entries
    ("counted", "i8"), ("count_factor", "f8"),  # a table of a count
    ("pairs", "i8"), ("pairs_factor", "f8"),  # pairs of free labels
    ("cap", "f8"),  # changes of labels are known up to this
]  # fmt: skip
# Thresholds t by rising entry.
_SCAN = [
    ("held", "i8"), ("forced", "f8"),  # how many labels are in, and their value
    ("rest", "f8"),  # the least value without a threshold
    ("least", "f8"), ("at", "f8"), ("second", "f8"),  # the best value and its t, and the least beside it
]  # fmt: skip
_LINE = [
    ("line", "i8"),  # the line that is moved
    ("moves", "i8"), ("moves_each", "i8"),  # how often it may still be moved, and each line may be
    ("best_line", "f8"), ("highest", "f8"),  # where the bound was highest, and that bound
    ("low", "f8"), ("low_bound", "f8"), ("low_slope", "f8"),  # the interval of lines; a slope of 0 is not known
    ("high", "f8"), ("high_bound", "f8"), ("high_slope", "f8"),
]  # fmt: skip
SEARCH, LEFT_OVER = np.dtype(_SEARCH, align=True), np.dtype(_LEFT_OVER, align=True)
SCAN, LINE = np.dtype(_SCAN, align=True), np.dtype(_LINE, align=True)


class Question(NamedTuple):
    """What is asked for: the least L(S) - mu p(S) among the sets that agree with `fixed` (OUT, FREE, IN).

    `span` is how much the loss may vary. With `ties`, sets of equal value are looked for too. `budget`: nodes that may
    be looked at.
    """

    p: Floats
    mu: float
    fixed: Marks
    span: float
    budget: int
    ties: bool


class Node(NamedTuple):
    """A part of all sets. By label: OUT, FREE or IN; by category: 1 if it must be touched; by operation: how it is
    decided, or 0; by quantity: bounds. `lines` (Q + N): slopes of the minorant, which its halves begin with."""

    x: Marks
    must_touch: Marks
    decided: Marks
    low: Floats
    high: Floats
    lines: Floats


class Workspace(NamedTuple):
    """Room for the search of one thread.

    The stack: `marks` (deep, K + C + N), `reals` (deep, 3 Q + N) and `bounds` (deep,) of nodes. Records as above;
    category C stands for all labels. Lists of labels: `open`, which are free in some node, and `candidates`, these and
    those that are in at the root; `order` and `spare` are room for lists, `keys` and `trial` for numbers. `chosen`: the
    set that attains the last bound. `warm`: the lines of the first node of the question before. `margin` (K,): how much
    worse than the best set, at least, one is in which a label is changed. `alone` (K,): what each label costs alone,
    NaN where that is not known yet. `pool` and `picks`: tables of counts.
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
    line: Record
    chosen: Marks
    open: Ints
    candidates: Ints
    order: Ints
    spare: Ints
    keys: Floats
    trial: Floats
    warm: Floats
    margin: Floats
    alone: Floats
    pool: Floats
    picks: Ints


def workspace_of(ints: Ints) -> Workspace:
    """Room for a model."""
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
        line=records(1, LINE)[0],
        chosen=np.zeros(K, np.int8),
        open=np.zeros(K, np.int64),
        candidates=np.zeros(K, np.int64),
        order=np.zeros(wide, np.int64),
        spare=np.zeros(wide, np.int64),
        keys=np.zeros(wide),
        trial=np.zeros(wide),
        warm=np.zeros(Q + N),
        margin=np.zeros(K),
        alone=np.full(K, np.nan),
        pool=np.zeros(inside + 2 * C + 2 * K + 4 if counts else 1),
        picks=np.zeros((C + 1) * (K + 1) if counts else 1, np.int64),
    )


@jit
def node_at(ints: Ints, place: int, T: Workspace) -> Node:
    """The node at a place of the stack."""
    K, C, Q, _ = sizes_of(ints)
    marks, reals = T.marks[place], T.reals[place]
    return Node(marks[:K], marks[K : K + C], marks[K + C :], reals[:Q], reals[Q : 2 * Q], reals[2 * Q :])


@jit
def listed(room: Ints, many: int) -> Ints:
    """A list of labels: the first so many entries of its room."""
    return room[:many]


@jit
def visit(operation: int, factor: float, top: int, pending: Records) -> int:
    """Put an operation on the list of those to visit; how many there are then."""
    pending[top].operation, pending[top].factor = operation, factor
    return top + 1
