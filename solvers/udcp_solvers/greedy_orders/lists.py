"""Labels that a loss cannot tell apart, and what one more of each would cost.

Labels with the same numbers and categories (and, for a hierarchy, the same parent; for another distance, the same row
of its matrix) form a *list*: L(S + y) is the same float for all of them, so of each list only the label of highest p
can come next. Lists can also cost the same at a given moment: those with equal numbers and equal weights of untouched
categories form one *class*.

If the loss is a sum, L(S + y) = common(|S| + 1) + what was added so far + extra[class of y] + sum of w max(value, far),
up to an error of `slack`. This rules out most labels; `incremental_cost` decides among the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.expression import ir
from udcp_dsl.expression.domain import numbered_sets
from udcp_dsl.expression.growth import Adds
from udcp_dsl.per_row import PerRow, array_of, as_number, as_rows, from_rows
from udcp_solvers.greedy_orders.incremental_cost import ALL, DENSE, LARGER, PLUS, SMALLER, TOUCH, TREE, Growing
from udcp_solvers.numeric.arrays import Floats, Indices, Masks

if TYPE_CHECKING:
    from udcp_dsl.expression.atoms import Atom
    from udcp_dsl.loss import Loss

# The most categories of a label: which of them are touched is stored as bits, and each combination is a state.
MOST_CATEGORIES = 6


class Lists(NamedTuple):
    """K labels in G lists; a list in state b (bit j: its j-th category is touched) is in class `class_of[list, b]`."""

    list_of: Indices  # (K,)
    member: Indices  # (G,) one label of each list
    class_of: Indices  # (G, 2^m)
    unpaid: Masks  # (C,) whether the lists of a class have a category that is not touched
    category_start: Indices  # where the lists of each category begin in the next two
    category_list: Indices
    category_bit: Indices
    distance: Floats  # (D, M, G) the distance from each row of a matrix to each list


class SumModel(NamedTuple):
    """The loss as a sum; `slack` is infinite if it is not a sum."""

    common: Floats  # (K + 1,) the constant and the function of size
    extra: Floats  # (C,)
    far_weight: Floats  # (A,) the coefficient of atoms that are max(value, a number of the list), else 0
    slack: float


def list_labels(growing: Growing) -> Lists | None:
    """The lists and classes of a loss, or None where labels have too many categories."""
    K = growing.number.shape[1]
    counts = np.diff(growing.label_entries)
    m = int(counts.max(initial=0))
    if m > MOST_CATEGORIES:
        return None
    category = np.full((K, m), -1)
    category[np.repeat(np.arange(K), counts), _index_in_run(counts)] = growing.entries.category
    own = np.zeros(K, np.int64)
    for kind, number in zip(growing.atoms.kind, growing.number, strict=True):
        if kind in (PLUS, LARGER, SMALLER, ALL):
            own = _pair_ids(own, _value_ids(number))
    ids = own
    for column in category.T:
        ids = _pair_ids(ids, column + 1)
    for kind, metric in zip(growing.atoms.kind, growing.atoms.metric, strict=True):
        if kind == DENSE:
            ids = _pair_ids(growing.point[metric], ids)  # labels of a matrix stay in their order
        elif kind == TREE:
            depth = growing.depth[metric].astype(np.int64)
            parent = growing.paths[metric, depth - 1, np.arange(K)].astype(np.int64)
            ids = _pair_ids(ids, parent)
    _, member, list_of = np.unique(ids, return_index=True, return_inverse=True)
    class_of, unpaid = _classes(growing, own[member], category[member])
    start, lists, bit = _by_category(category[member], len(growing.weight))
    return Lists(
        list_of=list_of.astype(np.int64),
        member=member.astype(np.int64),
        class_of=class_of,
        unpaid=unpaid,
        category_start=start,
        category_list=lists,
        category_bit=bit,
        distance=_distances_to_lists(growing, member),
    )


def _distances_to_lists(growing: Growing, member: Indices) -> Floats:
    at = growing.point[:, member]
    if at.shape[1] == growing.dense.shape[1] and (at == np.arange(at.shape[1])).all():  # no copy
        return growing.dense
    distance = np.empty((*growing.dense.shape[:2], len(member)))
    for found, matrix, point in zip(distance, growing.dense, at, strict=True):
        found[:] = matrix[:, point]
    return distance


def _value_ids(numbers: Floats) -> Indices:
    """Small integers, equal where the numbers are equal; all different if the numbers differ by row."""
    if isinstance(numbers, PerRow):
        return np.arange(len(numbers))
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.int64)


def _index_in_run(counts: Indices) -> Indices:
    """0, 1, ... within each run of the given lengths."""
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(starts, counts)


def _pair_ids(a: Indices, b: Indices) -> Indices:
    """Small integers, equal where both a and b are equal; b >= 0."""
    ids: Indices = np.unique(a * (int(b.max(initial=0)) + 1) + b, return_inverse=True)[1].astype(np.int64)
    return ids


def _classes(growing: Growing, own: Indices, category: Indices) -> tuple[Indices, Masks]:
    """`class_of` and `unpaid`. Unpaid weights are compared as sequences: in another order their float sum may
    differ."""
    G, m = category.shape
    worth = _value_ids(growing.weight)
    code = np.append(_pair_ids(_atom_of_category(growing), worth) + 1, 0)  # the last one is for category -1: none
    states = np.arange(1 << m)
    untouched = ~numbered_sets(states, m)
    left = np.where(untouched[None, :, :], code[category][:, None, :], 0).reshape(G << m, m)
    left = np.take_along_axis(left, np.argsort(left == 0, axis=1, kind="stable"), axis=1)
    ids = np.repeat(own, len(states))
    for column in left.T:
        ids = _pair_ids(ids, column)
    _, one, classes = np.unique(ids, return_index=True, return_inverse=True)
    return classes.astype(np.int64).reshape(G, len(states)), np.asarray(left[one].any(axis=1))


def _atom_of_category(growing: Growing) -> Indices:
    atom = np.zeros(len(growing.weight), np.int64)
    atom[growing.entries.category] = growing.entries.atom
    return atom


def _by_category(category: Indices, many: int) -> tuple[Indices, Indices, Indices]:
    lists, bit = np.nonzero(category >= 0)
    of = category[lists, bit]
    order = np.argsort(of, kind="stable")
    start = np.searchsorted(of[order], np.arange(many + 1))
    return start.astype(np.int64), lists[order].astype(np.int64), bit[order].astype(np.int64)


@dataclass(frozen=True)
class _Sum:
    """of_size(|S|), constants included, + sum of coefficients times atoms. `magnitude` bounds the sum of the absolute
    values of all that is added, and `off` bounds how far the sum is from the expression."""

    coefficients: dict[tuple[object, ...], float]
    of_size: Floats
    magnitude: float
    off: float = 0.0

    def times(self, factor: float) -> _Sum:
        scaled = {key: factor * c for key, c in self.coefficients.items()}
        return _Sum(scaled, factor * self.of_size, abs(factor) * self.magnitude, abs(factor) * self.off)

    def plus(self, other: _Sum) -> _Sum:
        coefficients = dict(self.coefficients)
        for key, c in other.coefficients.items():
            coefficients[key] = coefficients.get(key, 0.0) + c
        magnitude = self.magnitude + other.magnitude
        return _Sum(coefficients, self.of_size + other.of_size, magnitude, self.off + other.off)


def sum_model(loss: Loss, growing: Growing, lists: Lists, M: float) -> SumModel | None:
    """The loss as a sum, or None if it is not a sum of atoms that the model supports."""
    total = _as_sum(loss, growing)
    if total is None:
        return None
    K, G = loss.K, len(lists.member)
    # The first axis of these arrays is the row; its length is 1 if rows do not differ.
    coefficient = as_rows(array_of([total.coefficients.get(key, 0.0) for key in loss.expression.atoms]))
    known = np.isin(growing.atoms.kind, (PLUS, LARGER, TOUCH, DENSE, TREE))
    if (coefficient[:, ~known] != 0).any():
        return None
    plus = np.where(growing.atoms.kind == PLUS, coefficient, 0.0)
    label = (plus[:, None, :] @ as_rows(growing.number)[:, :, lists.member])[:, 0]
    weight = as_rows(growing.weight) * coefficient[:, _atom_of_category(growing)]
    states = lists.class_of.shape[1]
    category = np.repeat(np.arange(weight.shape[1]), np.diff(lists.category_start))
    extra = np.zeros((max(len(label), len(weight)), len(lists.unpaid)))
    for state in range(states):
        left = (state >> lists.category_bit) & 1 == 0
        unpaid = [np.bincount(lists.category_list[left], own[category[left]], minlength=G) for own in weight]
        extra[:, lists.class_of[:, state]] = label + np.array(unpaid)
    start = coefficient @ np.where(growing.atoms.kind == TOUCH, growing.atoms.start, 0.0)
    far_weight = np.where(np.isin(growing.atoms.kind, (LARGER, DENSE, TREE)), coefficient, 0.0)
    steps = K + len(loss.expression.nodes) + 16
    slack = total.off + 2.0**-48 * steps * (total.magnitude + abs(M))
    common = as_rows(total.of_size) + start[:, None]
    return SumModel(from_rows(common), from_rows(extra), from_rows(far_weight), as_number(slack))


def no_sum_model(loss: Loss, growing: Growing, lists: Lists) -> SumModel:
    """A model of infinite slack, which rules out no label."""
    return SumModel(np.zeros(loss.K + 1), np.zeros(len(lists.unpaid)), np.zeros(len(growing.atoms)), np.inf)


def _as_sum(loss: Loss, growing: Growing) -> _Sum | None:
    K = loss.K
    nothing = np.zeros(K + 1)
    sizes = dict(zip(loss.expression.atoms, _sizes(growing), strict=True))
    sums: dict[int, _Sum | None] = {}
    for node in loss.expression.nodes:
        parts = [sums[id(child)] for child in node.children]
        found: _Sum | None = None
        match node, parts:
            case ir.Constant(), _:
                found = _Sum({}, nothing + node.number, abs(node.number))
            case ir.Leaf(), _:
                found = _Sum({node.atom.key: 1.0}, nothing, sizes[node.atom.key])
            case ir.Table(), _ if _is_size(node.count.atom):
                found = _Sum({}, node.table, as_number(np.abs(node.table).max()))
            case ir.Table(), _:
                found = _linear_table(node, nothing)
            case ir.Add(), [_Sum() as first, *rest]:
                found = first
                for part in rest:
                    found = None if found is None or part is None else found.plus(part)
            case ir.Scale(), [_Sum() as part]:
                found = part.times(node.factor)
            case ir.Not(), [_Sum() as part]:
                found = _Sum({}, nothing + 1.0, 1.0).plus(part.times(-1.0))
        sums[id(node)] = found
    return sums[id(loss.expression.root)]


def _is_size(count: Atom) -> bool:
    growth = count.growth()
    return isinstance(growth, Adds) and bool((growth.numbers == 1).all())


def _sizes(growing: Growing) -> list[float]:
    """For each atom, a bound over all rows on the absolute values that it adds up."""
    number, weight = np.abs(as_rows(growing.number)).max(axis=0), np.abs(as_rows(growing.weight)).max(axis=0)
    largest = number.max(axis=1, initial=0.0)
    sizes = np.where(np.isin(growing.atoms.kind, (LARGER, SMALLER)), largest, number.sum(axis=1))
    sizes[growing.atoms.kind == TOUCH] = np.abs(growing.atoms.start[growing.atoms.kind == TOUCH])
    np.add.at(sizes, _atom_of_category(growing), weight)
    for a, (kind, metric) in enumerate(zip(growing.atoms.kind, growing.atoms.metric, strict=True)):
        if kind == DENSE:
            sizes[a] = growing.dense[metric].max()
        elif kind == TREE:
            sizes[a] = 2.0 * growing.edge[metric] * growing.depth[metric].max()
    return [float(size) for size in sizes]


def _linear_table(node: ir.Table, nothing: Floats) -> _Sum | None:
    """A table of a count that is linear up to rounding; None for other tables."""
    f, slope = node.table, node.slope
    if slope is None:
        return None
    off = as_number(np.abs(f - (f[0] + slope * np.arange(len(f)))).max())
    return _Sum({node.count.atom.key: slope}, nothing + f[0], as_number(np.abs(f).max()), off)
