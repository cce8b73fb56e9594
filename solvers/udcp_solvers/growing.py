"""A loss on one growing set, as arrays for compiled kernels: L(S + y) by the additions that `Increments` makes.

Atoms hold a value each, changed when a label enters; a small program then folds the expression over them, operation by
operation as `Expression.evaluate` does. The same floats are added in the same order, so the result has the same bits,
and every path of an oracle may mix with the generic one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from udcp_dsl import ir
from udcp_dsl.atoms.all import All
from udcp_dsl.atoms.any import Any
from udcp_dsl.atoms.atom import Atom
from udcp_dsl.atoms.count import Count
from udcp_dsl.atoms.diameter import Diameter
from udcp_dsl.atoms.empty import Empty
from udcp_dsl.atoms.max import Max
from udcp_dsl.atoms.min import Min
from udcp_dsl.atoms.size import Size
from udcp_dsl.atoms.sum import Sum
from udcp_dsl.atoms.within import Within
from udcp_dsl.domain import DenseMetric, TreeMetric
from udcp_dsl.oracle import Floats, Indices
from udcp_solvers.compiled import jit

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# How an atom goes on: by a number of the label's own (added; the larger; the smaller; added, and 1 if the whole is
# there), by what the label's categories still cost, or by its farthest distance to the set.
PLUS, LARGER, SMALLER, ALL, TOUCH, DENSE, TREE = range(7)

CONSTANT, LEAF, TABLE, ADD, TIMES, MAXIMUM, MINIMUM, AT_LEAST, EQUAL, NOT, IF = range(11)


class Growing(NamedTuple):
    """A atoms over K labels, E entries of labels in categories, and a program of N operations."""

    kind: Indices  # (A,)
    start: Floats  # (A,) the value on the empty set, or what the first label overrides
    number: Floats  # (A, K) a label's own number
    whole: Floats  # (A,) for ALL: how many labels make the whole
    metric: Indices  # (A,) which of the distances below
    entries: Indices  # (K + 1,) where each label's entries begin
    entry_atom: Indices  # (E,)
    entry_category: Indices  # (E,)
    weight: Floats  # what each category costs when first touched
    dense: Floats  # (D, K, K)
    paths: NDArray[np.int32]  # (T, height, K) the node above each label at each depth, or a number of the label's own
    depth: NDArray[np.int32]  # (T, K) of the label's leaf
    edge: Floats  # (T,)
    operation: Indices  # (N,)
    operands: Indices  # (N, 3) earlier operations; of a LEAF the atom, of a TABLE (operand, where it begins)
    constant: Floats  # (N, 2)
    tables: Floats


class Held(NamedTuple):
    """The state of one growing set."""

    value: Floats  # (A,)
    left: Floats  # what each category still costs
    far: Floats  # (A,) the farthest distance of the label in question, filled in by whoever keeps distances
    after: Floats  # (A,) room for the values with one more label
    results: Floats  # (N,) room for the program


def grow(loss: Loss) -> Growing | None:
    """The loss as arrays, or None if it has an atom that only `Increments` knows."""
    K = loss.K
    build = _Builder(K)
    place: dict[tuple[object, ...], int] = {}
    for key, atom in loss.expression.atoms.items():
        if not build.atom(atom):
            return None
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
        self.entries: list[tuple[Indices, int, Indices]] = []  # labels, atom, categories; a label at most once in each
        self.dense: list[Floats] = []
        self.trees: list[TreeMetric] = []
        self.ops: list[tuple[int, tuple[int, ...], float, float]] = []
        self.tables: list[Floats] = []

    def atom(self, atom: Atom) -> bool:
        match atom:
            case Size():
                self._atom(PLUS, number=atom.weights)
            case Sum():
                self._atom(PLUS, number=atom.costs)
            case Max():
                self._atom(LARGER, -np.inf, atom.costs)
            case Min():
                self._atom(SMALLER, np.inf, atom.costs)
            case All():
                self._atom(ALL, number=atom.category.mask.astype(np.float64), whole=len(atom.category.members))
            case Any():
                self._touch(0.0, [atom.category.members], np.ones(1))
            case Within():
                self._touch(1.0, [atom.outside], -np.ones(1))
            case Empty():
                self._touch(1.0, [np.arange(self.K)], -np.ones(1))
            case Count():
                self._count(atom)
            case Diameter(metric=DenseMetric() as metric):
                self._atom(DENSE, metric=len(self.dense))
                self.dense.append(metric.matrix)
            case Diameter(metric=TreeMetric() as metric):
                self._atom(TREE, metric=len(self.trees))
                self.trees.append(metric)
            case _:
                return False
        return True

    def _atom(
        self, kind: int, start: float = 0.0, number: Floats | None = None, whole: float = 0.0, metric: int = -1
    ) -> None:
        self.atoms.append((kind, start, np.zeros(self.K) if number is None else number + 0.0, float(whole), metric))

    def _touch(self, start: float, categories: list[Indices], weights: Floats) -> None:
        first = sum(map(len, self.weights))
        for c, members in enumerate(categories):
            self.entries.append((members, len(self.atoms), np.full(len(members), first + c)))
        self.weights.append(weights)
        self._atom(TOUCH, start)

    def _count(self, atom: Count) -> None:
        # In the order of the slots, in which `Increments` adds them; adding nothing (a weight of 0) may be left out.
        first = sum(map(len, self.weights))
        weights = np.append(atom.weights, 0.0)
        for slot in atom.slots:
            there = np.flatnonzero(weights[slot] != 0)
            self.entries.append((there, len(self.atoms), first + slot[there]))
        self.weights.append(atom.weights)
        self._atom(TOUCH)

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
        operands = np.zeros((len(self.ops), 3), np.int64)
        for i, (_, wanted, _, _) in enumerate(self.ops):
            operands[i, : len(wanted)] = wanted
        return Growing(
            kind=np.array([a[0] for a in self.atoms], np.int64),
            start=np.array([a[1] for a in self.atoms], np.float64),
            number=np.array([a[2] for a in self.atoms], np.float64).reshape(-1, K),
            whole=np.array([a[3] for a in self.atoms], np.float64),
            metric=np.array([a[4] for a in self.atoms], np.int64),
            entries=np.searchsorted(labels[order], np.arange(K + 1)).astype(np.int64),
            entry_atom=atoms[order],
            entry_category=categories[order],
            weight=np.concatenate([np.empty(0), *self.weights]),
            dense=_stacked(self.dense, K),
            paths=np.array([_above(tree, height) for tree in self.trees], np.int32).reshape(len(self.trees), height, K),
            depth=np.array([tree.leaf_depth for tree in self.trees], np.int32).reshape(-1, K),
            edge=np.array([tree.edge for tree in self.trees], np.float64),
            operation=np.array([op[0] for op in self.ops], np.int64),
            operands=operands,
            constant=np.array([op[2:] for op in self.ops], np.float64).reshape(-1, 2),
            tables=np.concatenate([np.empty(0), *self.tables]),
        )


def _stacked(matrices: list[Floats], K: int) -> Floats:
    if len(matrices) == 1:  # no copy
        return np.ascontiguousarray(matrices[0], dtype=np.float64)[None]
    return np.array(matrices, np.float64).reshape(len(matrices), K, K)


def _above(tree: TreeMetric, height: int) -> NDArray[np.int32]:
    """The nodes above each label (height, K), its own leaf left out; where there is none, a number no other has."""
    K = tree.K
    path = tree.hierarchy.path.T.copy()
    path[tree.leaf_depth, np.arange(K)] = -1
    above = np.broadcast_to(-1 - np.arange(K, dtype=np.int32), (height, K)).copy()
    above[: len(path)] = np.where(path >= 0, path, above[: len(path)])
    return above


@jit
def hold(growing: Growing) -> Held:
    """Room for one set, to be emptied by `clear` before use."""
    A = len(growing.kind)
    return Held(
        np.empty(A), np.empty(len(growing.weight)), np.zeros(A), np.empty(A), np.empty(len(growing.operation))
    )


@jit
def clear(growing: Growing, held: Held) -> None:
    """Make the set empty."""
    held.value[:] = growing.start
    held.left[:] = growing.weight


@jit
def cost_with(growing: Growing, held: Held, y: int) -> float:
    """L(S + y); `held.far` holds the distances from y to its farthest member of S."""
    value, after = held.value, held.after
    for a in range(len(growing.kind)):
        after[a] = _with_own(growing.kind[a], value[a], growing.number[a, y], held.far[a])
    for e in range(growing.entries[y], growing.entries[y + 1]):
        after[growing.entry_atom[e]] += held.left[growing.entry_category[e]]
    for a in range(len(growing.kind)):
        if growing.kind[a] == ALL:
            after[a] = 1.0 if after[a] == growing.whole[a] else 0.0
    return _folded(growing, after, held.results)


@jit
def push(growing: Growing, held: Held, y: int) -> None:
    """Add y to S; `held.far` as for `cost_with`."""
    value = held.value
    for a in range(len(growing.kind)):
        value[a] = _with_own(growing.kind[a], value[a], growing.number[a, y], held.far[a])
    for e in range(growing.entries[y], growing.entries[y + 1]):
        value[growing.entry_atom[e]] += held.left[growing.entry_category[e]]
        held.left[growing.entry_category[e]] = 0.0


@jit
def _with_own(kind: int, value: float, number: float, far: float) -> float:
    if kind == PLUS or kind == ALL:
        return value + number
    if kind == LARGER:
        return max(value, number)
    if kind == SMALLER:
        return min(value, number)
    if kind == TOUCH:
        return value
    return max(value, far)


@jit
def _folded(growing: Growing, atoms: Floats, results: Floats) -> float:
    last = len(growing.operation) - 1
    for i in range(last + 1):
        operation = growing.operation[i]
        a = growing.operands[i, 0]
        if operation == CONSTANT:
            results[i] = growing.constant[i, 0]
        elif operation == LEAF:
            results[i] = atoms[a]
        elif operation == TABLE:
            results[i] = growing.tables[growing.operands[i, 1] + int(results[a])]
        elif operation == NOT:
            results[i] = 1.0 - results[a]
        elif operation == AT_LEAST:
            results[i] = 1.0 if results[a] >= growing.constant[i, 0] else 0.0
        elif operation == EQUAL:
            results[i] = 1.0 if abs(results[a] - growing.constant[i, 0]) <= growing.constant[i, 1] else 0.0
        else:
            b = growing.operands[i, 1]
            x, z = results[a], results[b]
            if operation == ADD:
                results[i] = x + z
            elif operation == TIMES:
                results[i] = x * z
            elif operation == MAXIMUM:
                results[i] = max(x, z)
            elif operation == MINIMUM:
                results[i] = min(x, z)
            else:
                results[i] = z if x > 0.5 else results[growing.operands[i, 2]]
    return float(results[last])
