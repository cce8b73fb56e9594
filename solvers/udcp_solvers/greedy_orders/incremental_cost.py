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
from udcp_solvers.numeric.arrays import Floats, Indices
from udcp_solvers.numeric.compiled import jit_uncounted as jit

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# How a label changes the value of an atom: by the label's own number (the sum; the largest; the smallest; the sum,
# which then gives 1 if it is complete and else 0), by the weights of its untouched categories, or by its largest
# distance to the set (matrix; hierarchy).
PLUS, LARGER, SMALLER, ALL, TOUCH, DENSE, TREE = range(7)

CONSTANT, LEAF, TABLE, ADD, TIMES, MAXIMUM, MINIMUM, AT_LEAST, EQUAL, NOT, IF = range(11)


class Growing(NamedTuple):
    """A atoms over K labels, E entries of labels in categories, and a program of N operations.

    `code` and `data` hold the same again, packed for compiled functions: these count references to every array that
    they receive, which for twenty arrays costs more than the work itself.
    """

    kind: Indices  # (A,)
    start: Floats  # (A,) the value on the empty set, or one that the first label replaces
    number: Floats  # (A, K) a label's own number
    metric: Indices  # (A,) the index of its distances below, or -1
    entries: Indices  # (K + 1,) where each label's entries begin
    entry_atom: Indices  # (E,)
    entry_category: Indices  # (E,)
    weight: Floats  # the cost of touching each category
    point: Indices  # (D, K) the row of each label in the matrix: its own, or one per set of categories
    dense: Floats  # (D, M, M)
    paths: NDArray[np.int32]  # (T, height, K) the ancestor of each label at each depth, or -1
    depth: NDArray[np.int32]  # (T, K) of the label's leaf
    edge: Floats  # (T,)
    code: Indices
    data: Floats


# The header of `code`: how many atoms, labels, categories and operations there are; where the other parts of `code`
# begin (kinds, entries, their atoms and categories, operations with operands); and where the parts of `data` begin
# (numbers, starts, weights, sizes of ALL, constants, tables).
_A, _K, _C, _N, _KIND, _ENTRIES, _ATOM, _CATEGORY, _OPERATION = range(9)
_NUMBER, _START, _WEIGHT, _WHOLE, _CONSTANT, _TABLES, _HEADER = range(9, 16)


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
        labels = np.concatenate([np.empty(0, np.int64), *(y for y, _, _ in self.entries)])
        atoms = np.concatenate([np.empty(0, np.int64), *(np.full(len(y), a) for y, a, _ in self.entries)])
        categories = np.concatenate([np.empty(0, np.int64), *(c for _, _, c in self.entries)])
        order = np.argsort(labels, kind="stable")
        height = max([tree.hierarchy.path.shape[1] for tree in self.trees], default=0)
        kind = np.array([a[0] for a in self.atoms], np.int64)
        start = np.array([a[1] for a in self.atoms], np.float64)
        number = array_of([a[2] for a in self.atoms]) if self.atoms else np.zeros((0, K))
        entries = np.searchsorted(labels[order], np.arange(K + 1)).astype(np.int64)
        weight = np.concatenate([np.empty(0), *self.weights])  # `PerRow` if some weights differ by row
        operations = np.zeros((len(self.ops), 4), np.int64)
        for i, (operation, operands, _, _) in enumerate(self.ops):
            operations[i, : 1 + len(operands)] = (operation, *operands)
        counts = (len(kind), K, len(weight), len(self.ops))
        code, code_at = _joined(_HEADER, kind, entries, atoms[order], categories[order], operations.ravel())
        whole = np.array([a[3] for a in self.atoms], np.float64)
        constant = array_of([x for op in self.ops for x in op[2:]])
        data, data_at = _joined(0, number.ravel(), start, weight, whole, constant, *self.tables)
        code[:_HEADER] = (*counts, *code_at, *data_at[:5], data_at[5] if self.tables else 0)
        return Growing(
            kind=kind,
            start=start,
            number=number,
            metric=np.array([a[4] for a in self.atoms], np.int64),
            entries=entries,
            entry_atom=atoms[order],
            entry_category=categories[order],
            weight=weight,
            point=np.array([point for _, point in self.dense], np.int64).reshape(len(self.dense), K),
            dense=_stacked([matrix for matrix, _ in self.dense]),
            paths=np.array([_above(tree, height) for tree in self.trees], np.int32).reshape(len(self.trees), height, K),
            depth=np.array([tree.leaf_depth for tree in self.trees], np.int32).reshape(len(self.trees), K),
            edge=np.array([tree.edge for tree in self.trees], np.float64),
            code=code,
            data=data,
        )


def _joined(header: int, *parts: NDArray[Any]) -> tuple[NDArray[Any], list[int]]:
    """The parts in one array after a header, and where each part begins."""
    starts = np.cumsum([header, *map(len, parts)])[:-1].tolist()
    return joined([np.zeros(header, np.int64), *parts]), starts


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


# The state of a growing set is one array: the values of the atoms; what each category still costs; for a candidate
# label and each atom, the largest distance to the set and to itself, which the caller fills in; and scratch space.


def new_state(code: Indices) -> Floats:
    """A state; call `clear` before use."""
    return np.zeros(3 * code[_A] + code[_C] + code[_N])


@jit
def clear(code: Indices, data: Floats, state: Floats) -> None:
    """Make the set empty."""
    A, C = code[_A], code[_C]
    for a in range(A):
        state[a] = data[code[_START] + a]
    for c in range(C):
        state[A + c] = data[code[_WEIGHT] + c]


@jit
def distance_offset(code: Indices) -> int:
    """Where in a state the caller puts the largest distances of a candidate label."""
    return int(code[_A] + code[_C])


@jit
def cost_with(code: Indices, data: Floats, state: Floats, y: int) -> float:
    """L(S + y)."""
    A, left, far = code[_A], code[_A], code[_A] + code[_C]
    after = far + A
    for a in range(A):
        number = data[code[_NUMBER] + a * code[_K] + y]
        state[after + a] = _with_own(code[code[_KIND] + a], state[a], number, state[far + a])
    for e in range(code[code[_ENTRIES] + y], code[code[_ENTRIES] + y + 1]):
        state[after + code[code[_ATOM] + e]] += state[left + code[code[_CATEGORY] + e]]
    for a in range(A):
        if code[code[_KIND] + a] == ALL:
            state[after + a] = 1.0 if state[after + a] == data[code[_WHOLE] + a] else 0.0
    return _folded(code, data, state, after, after + A)


@jit
def push(code: Indices, data: Floats, state: Floats, y: int) -> None:
    """Add y to S."""
    A, left, far = code[_A], code[_A], code[_A] + code[_C]
    for a in range(A):
        number = data[code[_NUMBER] + a * code[_K] + y]
        state[a] = _with_own(code[code[_KIND] + a], state[a], number, state[far + a])
    for e in range(code[code[_ENTRIES] + y], code[code[_ENTRIES] + y + 1]):
        category = left + code[code[_CATEGORY] + e]
        state[code[code[_ATOM] + e]] += state[category]
        state[category] = 0.0


@jit
def _with_own(kind: int, value: float, number: float, far: float) -> float:
    if kind in (PLUS, ALL):
        return value + number
    if kind == LARGER:
        return max(value, number)
    if kind == SMALLER:
        return min(value, number)
    if kind == TOUCH:
        return value
    return max(value, far)


@jit
def _folded(code: Indices, data: Floats, state: Floats, atoms: int, results: int) -> float:
    """Evaluate the expression on the atoms' values from state[atoms] on; results of operations go to state[results]
    on."""
    last = code[_N] - 1
    for i in range(last + 1):
        at = code[_OPERATION] + 4 * i
        operation, a = code[at], code[at + 1]
        x = state[results + a]
        number = data[code[_CONSTANT] + 2 * i]
        result = number
        if operation == LEAF:
            result = state[atoms + a]
        elif operation == TABLE:
            result = data[code[_TABLES] + code[at + 2] + int(x)]
        elif operation == NOT:
            result = 1.0 - x
        elif operation == AT_LEAST:
            result = 1.0 if x >= number else 0.0
        elif operation == EQUAL:
            result = 1.0 if abs(x - number) <= data[code[_CONSTANT] + 2 * i + 1] else 0.0
        elif operation != CONSTANT:
            z = state[results + code[at + 2]]
            if operation == ADD:
                result = x + z
            elif operation == TIMES:
                result = x * z
            elif operation == MAXIMUM:
                result = max(x, z)
            elif operation == MINIMUM:
                result = min(x, z)
            else:
                result = z if x > 0.5 else state[results + code[at + 3]]
        state[results + i] = result
    return float(state[results + last])
