"""A loss on one growing set, as arrays for compiled kernels: L(S + y) by the same additions as `Increments`.

Each atom has a value, which changes when a label enters; a small program then evaluates the expression on these values,
operation by operation as `Expression.evaluate` does. The same floats are added in the same order, so results are equal
to the bit, and an oracle may combine any path with the generic one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.expression import ir
from udcp_dsl.expression.domain import CategoryMetric, DenseMetric, TreeMetric
from udcp_dsl.expression.growth import Adds, Completes, Farthest, Growth, Larger, Smaller, Touches
from udcp_dsl.per_row import array_of, joined
from udcp_solvers.numeric.arrays import Floats, Indices, Records, records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import put

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# How a label changes the value of an atom: by the label's own number (the sum; the largest; the smallest; the sum,
# which then gives 1 if it is complete and else 0), by the weights of its untouched categories, or by its largest
# distance to the set (matrix; hierarchy).
PLUS, LARGER, SMALLER, ALL, TOUCH, DENSE, TREE = range(7)

CONSTANT, LEAF, TABLE, ADD, TIMES, MAXIMUM, MINIMUM, AT_LEAST, EQUAL, NOT, IF = range(11)


ATOM = np.dtype([
    ("kind", "i8"),
    ("metric", "i8"),  # the index of its distances in `Growing`, or -1
    ("start", "f8"),  # the value on the empty set, or one that the first label replaces
    ("whole", "f8"),  # ALL: how many labels complete it
], align=True)  # fmt: skip
# A category of a label, and the atom that this category belongs to.
ENTRY = np.dtype([("atom", "i8"), ("category", "i8")], align=True)
# The operands are earlier operations; but the first of LEAF is an atom, and the second of TABLE is where it begins.
OPERATION = np.dtype([("kind", "i8"), ("first", "i8"), ("second", "i8"), ("third", "i8")], align=True)


class Growing(NamedTuple):
    """A atoms over K labels, E entries of labels in categories, and a program of N operations.

    Numbers that may differ by row are in arrays of their own, all others in records.
    """

    atoms: Records  # (A,) ATOM
    number: Floats  # (A, K) a label's own number
    label_entries: Indices  # (K + 1,) where each label's entries begin
    entries: Records  # (E,) ENTRY
    weight: Floats  # the cost of touching each category
    operations: Records  # (N,) OPERATION
    constant: Floats  # (N,) the number of CONSTANT, AT_LEAST and EQUAL
    tolerance: Floats  # (N,) of EQUAL
    tables: Floats  # one after another
    point: Indices  # (D, K) the row of each label in the matrix: its own, or one per set of categories
    dense: Floats  # (D, M, M)
    paths: NDArray[np.int32]  # (T, height, K) the ancestor of each label at each depth, or -1
    depth: NDArray[np.int32]  # (T, K) of the label's leaf
    edge: Floats  # (T,)


def grow(loss: Loss) -> Growing | None:
    """The loss as arrays, or None if it has an atom or operation that only `Increments` supports."""
    K = loss.K
    build = _Builder(K)
    place: dict[tuple[object, ...], int] = {}
    for key, atom in loss.expression.atoms.items():
        growth = atom.growth()
        if growth is None:
            return None
        build.atom(growth)
        place[key] = len(place)
    at: dict[int, int] = {}
    for node in loss.expression.nodes:
        operands = [at[id(child)] for child in node.children]
        match node:
            case ir.Constant():
                at[id(node)] = build.op(CONSTANT, number=node.number)
            case ir.Leaf():
                at[id(node)] = build.op(LEAF, place[node.atom.key])
            case ir.Table():
                at[id(node)] = build.op(TABLE, operands[0], build.table(node.table))
            case ir.Add():
                at[id(node)] = build.fold(ADD, operands)
            case ir.Scale():
                at[id(node)] = build.op(TIMES, build.op(CONSTANT, number=node.factor), operands[0])
            case ir.Gate():
                at[id(node)] = build.op(TIMES, *operands)
            case ir.Extremum():
                at[id(node)] = build.fold(MAXIMUM if node.largest else MINIMUM, operands)
            case ir.Junction():
                at[id(node)] = build.fold(MINIMUM if node.both else MAXIMUM, operands)
            case ir.AtLeast():
                at[id(node)] = build.op(AT_LEAST, *operands, number=node.k - ir.tolerance(node.k))
            case ir.Equal():
                at[id(node)] = build.op(EQUAL, *operands, number=node.k, slack=ir.tolerance(node.k))
            case ir.Not():
                at[id(node)] = build.op(NOT, *operands)
            case ir.If():
                at[id(node)] = build.op(IF, *operands)
            case _:
                return None
    return build.done()


class _Builder:
    def __init__(self, K: int) -> None:
        self.K = K
        self.atoms: list[tuple[int, float, Floats, float, int]] = []
        self.weights: list[Floats] = []
        self.entries: list[tuple[Indices, int, Indices]] = []  # labels, atom, categories
        self.dense: list[tuple[Floats, Indices]] = []  # a matrix, and each label's row in it
        self.trees: list[TreeMetric] = []
        self.ops: list[tuple[int, tuple[int, ...], float, float]] = []
        self.tables: list[Floats] = []

    def atom(self, growth: Growth) -> None:
        match growth:
            case Adds():
                self._atom(PLUS, number=growth.numbers)
            case Larger():
                self._atom(LARGER, -np.inf, growth.numbers)
            case Smaller():
                self._atom(SMALLER, np.inf, growth.numbers)
            case Completes():
                inside = np.zeros(self.K)
                inside[growth.members] = 1.0
                self._atom(ALL, number=inside, whole=len(growth.members))
            case Touches():
                self._touch(growth)
            case Farthest(metric=DenseMetric() as metric):
                self._atom(DENSE, metric=len(self.dense))
                self.dense.append((metric.matrix, np.arange(self.K)))
            case Farthest(metric=CategoryMetric() as metric):
                self._atom(DENSE, metric=len(self.dense))
                self.dense.append((metric.between_points, metric.point))
            case Farthest(metric=TreeMetric() as metric):
                self._atom(TREE, metric=len(self.trees))
                self.trees.append(metric)
            case _:
                raise AssertionError(f"{growth} is of no kind that is known here")

    def _atom(
        self, kind: int, start: float = 0.0, number: Floats | None = None, whole: float = 0.0, metric: int = -1
    ) -> None:
        self.atoms.append((kind, start, np.zeros(self.K) if number is None else number + 0.0, float(whole), metric))

    def _touch(self, growth: Touches) -> None:
        # By category, so each label has them in the order in which `Increments` adds them. Weights of 0 add nothing and
        # are left out.
        first = sum(map(len, self.weights))
        category = np.repeat(np.arange(len(growth.weights)), np.diff(growth.starts))
        there = np.isin(category, np.flatnonzero(growth.weights))
        self.entries.append((growth.members[there], len(self.atoms), first + category[there]))
        self.weights.append(growth.weights)
        self._atom(TOUCH, growth.start)

    def op(self, operation: int, *operands: int, number: float = 0.0, slack: float = 0.0) -> int:
        self.ops.append((operation, operands, number, slack))
        return len(self.ops) - 1

    def fold(self, operation: int, operands: list[int]) -> int:
        result = operands[0]
        for operand in operands[1:]:
            result = self.op(operation, result, operand)
        return result

    def table(self, values: Floats) -> int:
        start = sum(map(len, self.tables))
        self.tables.append(values)
        return start

    def done(self) -> Growing:
        K = self.K
        height = max([tree.hierarchy.path.shape[1] for tree in self.trees], default=0)
        label_entries, entries = self._entries()
        return Growing(
            atoms=_records_of(ATOM, [(kind, metric, start, whole) for kind, start, _, whole, metric in self.atoms]),
            number=array_of([a[2] for a in self.atoms]) if self.atoms else np.zeros((0, K)),
            label_entries=label_entries,
            entries=entries,
            weight=np.concatenate([np.empty(0), *self.weights]),  # `PerRow` if some weights differ by row
            operations=_records_of(OPERATION, [(op, *(*at, 0, 0, 0)[:3]) for op, at, _, _ in self.ops]),
            constant=array_of([op[2] for op in self.ops]),
            tolerance=array_of([op[3] for op in self.ops]),
            tables=joined([np.empty(0), *self.tables]),
            point=np.array([point for _, point in self.dense], np.int64).reshape(len(self.dense), K),
            dense=_stacked([matrix for matrix, _ in self.dense]),
            paths=np.array([_above(tree, height) for tree in self.trees], np.int32).reshape(len(self.trees), height, K),
            depth=np.array([tree.leaf_depth for tree in self.trees], np.int32).reshape(len(self.trees), K),
            edge=np.array([tree.edge for tree in self.trees], np.float64),
        )

    def _entries(self) -> tuple[Indices, Records]:
        """Where the entries of each label begin, and the entries by label."""
        labels = np.concatenate([np.empty(0, np.int64), *(y for y, _, _ in self.entries)])
        order = np.argsort(labels, kind="stable")
        entries = records(len(labels), ENTRY)
        entries.atom = np.concatenate([np.empty(0, np.int64), *(np.full(len(y), a) for y, a, _ in self.entries)])[order]
        entries.category = np.concatenate([np.empty(0, np.int64), *(c for _, _, c in self.entries)])[order]
        return np.searchsorted(labels[order], np.arange(self.K + 1)).astype(np.int64), entries


def _records_of(fields: np.dtype[Any], values: list[tuple[float, ...]]) -> Records:
    """Records with these values of their fields."""
    found = records(len(values), fields)
    found[:] = np.array(values, fields)
    return found


def _stacked(matrices: list[Floats]) -> Floats:
    if len(matrices) == 1:  # no copy
        return np.ascontiguousarray(matrices[0], dtype=np.float64)[None]
    M = max(map(len, matrices), default=0)
    stack = np.zeros((len(matrices), M, M))
    for filled, matrix in zip(stack, matrices, strict=True):
        filled[: len(matrix), : len(matrix)] = matrix
    return stack


def _above(tree: TreeMetric, height: int) -> NDArray[np.int32]:
    """The ancestors of each label (height, K), from the root down, without its own leaf; -1 where there is none."""
    above = np.full((height, tree.K), -1, np.int32)
    above[: tree.hierarchy.path.shape[1]] = tree.hierarchy.path.T
    above[tree.leaf_depth, np.arange(tree.K)] = -1
    return above


ATOM_STATE = np.dtype([
    ("value", "f8"),  # on the set
    ("far", "f8"),  # the largest distance of a candidate label to the set and to itself, which the caller fills in
    ("value_with", "f8"),  # on the set with the candidate
], align=True)  # fmt: skip


class State(NamedTuple):
    """A growing set."""

    atoms: Records  # (A,) ATOM_STATE
    touch_cost: Floats  # what each category still costs
    results: Floats  # (N,) of the operations


def new_state(growing: Growing) -> State:
    """A state; call `clear` before use."""
    return State(
        atoms=records(len(growing.atoms), ATOM_STATE),
        touch_cost=np.zeros(len(growing.weight)),
        results=np.zeros(len(growing.operations)),
    )


@jit
def clear(growing: Growing, state: State) -> None:
    """Make the set empty."""
    for a in range(len(state.atoms)):
        state.atoms[a].value = growing.atoms[a].start
    put(state.touch_cost, growing.weight)


@jit
def cost_with(growing: Growing, state: State, y: int) -> float:
    """L(S + y)."""
    atoms, touch_cost = state.atoms, state.touch_cost
    _add_own_numbers(growing, atoms, y)
    for e in range(growing.label_entries[y], growing.label_entries[y + 1]):
        entry = growing.entries[e]
        atoms[entry.atom].value_with += touch_cost[entry.category]
    for a in range(len(atoms)):
        if growing.atoms[a].kind == ALL:
            atoms[a].value_with = 1.0 if atoms[a].value_with == growing.atoms[a].whole else 0.0
    return _evaluate(growing, state)


@jit
def push(growing: Growing, state: State, y: int) -> None:
    """Add y to S."""
    atoms, touch_cost = state.atoms, state.touch_cost
    _add_own_numbers(growing, atoms, y)
    for a in range(len(atoms)):
        atoms[a].value = atoms[a].value_with
    for e in range(growing.label_entries[y], growing.label_entries[y + 1]):
        entry = growing.entries[e]
        atoms[entry.atom].value += touch_cost[entry.category]
        touch_cost[entry.category] = 0.0


@jit
def _add_own_numbers(growing: Growing, atoms: Records, y: int) -> None:
    """Set the values of the atoms with y, by its own numbers and distances; its categories are not added yet."""
    for a in range(len(atoms)):
        kind, atom, number = growing.atoms[a].kind, atoms[a], growing.number[a, y]
        if kind in (PLUS, ALL):
            atom.value_with = atom.value + number
        elif kind == LARGER:
            atom.value_with = max(atom.value, number)
        elif kind == SMALLER:
            atom.value_with = min(atom.value, number)
        elif kind == TOUCH:
            atom.value_with = atom.value
        else:
            atom.value_with = max(atom.value, atom.far)


@jit
def _evaluate(growing: Growing, state: State) -> float:
    """The expression on the atoms' values with the candidate."""
    results = state.results
    for i in range(len(results)):
        operation = growing.operations[i]
        kind, x = operation.kind, results[operation.first]
        result = growing.constant[i]
        if kind == LEAF:
            result = state.atoms[operation.first].value_with
        elif kind == TABLE:
            result = growing.tables[operation.second + int(x)]
        elif kind == NOT:
            result = 1.0 - x
        elif kind == AT_LEAST:
            result = 1.0 if x >= growing.constant[i] else 0.0
        elif kind == EQUAL:
            result = 1.0 if abs(x - growing.constant[i]) <= growing.tolerance[i] else 0.0
        elif kind != CONSTANT:
            z = results[operation.second]
            if kind == ADD:
                result = x + z
            elif kind == TIMES:
                result = x * z
            elif kind == MAXIMUM:
                result = max(x, z)
            elif kind == MINIMUM:
                result = min(x, z)
            else:
                result = z if x > 0.5 else results[operation.third]
        results[i] = result
    return float(results[-1])
