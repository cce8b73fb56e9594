"""The compiled declarations: arrays over the K labels.

Labels are positions 0..K-1 from here on. A hierarchy is stored in depth-first order, in which the leaves below a node
are contiguous, so it never needs a K x K matrix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# A label that is written like this may be given as an integer.
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
_TABLED = 256  # largest number of labels for which a tree keeps the lengths of all paths


def numbered_sets(numbers: Ints, K: int) -> Bools:
    """Sets of K labels as masks, one per row: the set of number b contains label y if bit y of b is set.

    >>> numbered_sets(np.array([0, 1, 6]), 3).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 1]]
    """
    return np.asarray((numbers[:, None] >> np.arange(K)) & 1 == 1)


@dataclass(frozen=True, eq=False)
class Category:
    """A set of labels: `members` are their positions, sorted."""

    name: str
    members: Ints
    K: int

    @cached_property
    def mask(self) -> Bools:
        mask = np.zeros(self.K, dtype=bool)
        mask[self.members] = True
        return mask

    def probes(self) -> list[int]:
        """Two members and two other labels, if there are so many."""
        return [*self.members[:2].tolist(), *np.flatnonzero(~self.mask)[:2].tolist()]


@dataclass(frozen=True, eq=False)
class Family:
    """Categories, which may overlap; category i holds `members[starts[i]:starts[i + 1]]`."""

    name: str
    names: tuple[str, ...]
    starts: Ints
    members: Ints
    K: int

    @staticmethod
    def of(name: str, categories: Sequence[tuple[str, Sequence[int] | Ints]], K: int) -> Family:
        """A family from names and members."""
        # Not np.unique: it imports numpy.ma, which is a tenth of the time of a small check.
        parts = [np.array(sorted({int(y) for y in members}), dtype=np.int64) for _, members in categories]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        members = np.concatenate([*parts, np.empty(0, dtype=np.int64)])
        return Family(name, tuple(n for n, _ in categories), starts, members, K)

    @staticmethod
    def partition(name: str, names: Sequence[str], category_of: Ints) -> Family:
        """A family in which every label is in exactly one category."""
        order = np.argsort(category_of, kind="stable")
        starts = np.searchsorted(category_of[order], np.arange(len(names) + 1))
        return Family(name, tuple(names), starts.astype(np.int64), order.astype(np.int64), len(category_of))

    def __len__(self) -> int:
        return len(self.names)

    def category(self, index: int) -> Category:
        members = self.members[self.starts[index] : self.starts[index + 1]]
        return Category(f"{self.name}.{self.names[index]}", members, self.K)

    @cached_property
    def disjoint(self) -> bool:
        return len(np.unique(self.members)) == len(self.members)

    @cached_property
    def singletons(self) -> bool:
        return bool((np.diff(self.starts) == 1).all())

    @cached_property
    def by_label(self) -> tuple[Ints, Ints]:
        """The transpose: label y is in the categories `of[starts[y]:starts[y + 1]]`."""
        category = np.repeat(np.arange(len(self)), np.diff(self.starts))
        order = np.argsort(self.members, kind="stable")
        starts = np.searchsorted(self.members[order], np.arange(self.K + 1))
        return starts.astype(np.int64), category[order]


@dataclass(frozen=True, eq=False)
class Costs:
    """A number for each label, or for each category of the family `of`."""

    name: str
    values: Floats
    of: Family | None = None


@dataclass(frozen=True, eq=False)
class Actions:
    """The loss of each action (columns) under each truth (rows)."""

    name: str
    actions: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A rooted tree whose leaves are the labels.

    Nodes are numbered in depth-first order, the root 0. The leaves below node v are
    `order[low[v]:high[v]]`; `path[y, d]` is the ancestor of label y at depth d, or -1 below its own leaf.
    """

    name: str
    levels: tuple[str, ...]
    names: tuple[str, ...]
    parent: Ints
    depth: Ints
    low: Ints
    high: Ints
    order: Ints
    path: npt.NDArray[np.int32]

    @staticmethod
    def build(
        name: str, levels: Sequence[str], paths: Sequence[tuple[str, ...]], leaf_names: Sequence[str]
    ) -> Hierarchy:
        """Build the tree from the names of the nodes above each label, coarse to fine, without the root."""
        K = len(paths)
        children: dict[tuple[str, ...], list[tuple[str, ...] | int]] = {(): []}
        for y, above in enumerate(paths):
            if above not in children:
                for d in range(len(above)):
                    if above[: d + 1] not in children:
                        children[above[: d + 1]] = []
                        children[above[:d]].append(above[: d + 1])
            children[above].append(y)
        names: list[str] = []
        parent: list[int] = []
        depth: list[int] = []
        low: list[int] = []
        high: list[int] = []
        order: list[int] = []
        path = np.full((K, max(len(p) for p in paths) + 2), -1, dtype=np.int32)
        # An explicit stack: a tree may be too deep for recursion. An inner node is visited twice, on entry and on exit.
        stack: list[tuple[tuple[str, ...] | int, int]] = [((), -1)]
        while stack:
            what, above_node = stack.pop()
            if isinstance(what, int) and what < 0:
                high[~what] = len(order)
                continue
            node = len(names)
            parent.append(above_node)
            depth.append(depth[above_node] + 1 if above_node >= 0 else 0)
            low.append(len(order))
            high.append(len(order) + 1)
            if isinstance(what, int):
                names.append(leaf_names[what])
                order.append(what)
                path[what, depth[node]] = node
                continue
            names.append(what[-1] if what else "root")
            stack.append((~node, node))
            stack.extend((child, node) for child in reversed(children[what]))
        parents = np.array(parent, dtype=np.int64)
        for d in range(path.shape[1] - 2, -1, -1):
            below = path[:, d + 1]
            path[:, d] = np.where(below >= 0, parents[below], path[:, d])
        depths, lows, highs, orders = (np.array(numbers, dtype=np.int64) for numbers in (depth, low, high, order))
        return Hierarchy(name, tuple(levels), tuple(names), parents, depths, lows, highs, orders, path)

    @property
    def K(self) -> int:
        return len(self.order)

    @cached_property
    def height(self) -> int:
        """The depth of the deepest leaf."""
        return int(self.depth.max())

    @cached_property
    def leaf(self) -> Ints:
        """The node of each label."""
        leaf: Ints = self.path.max(axis=1).astype(np.int64)
        return leaf

    @cached_property
    def position(self) -> Ints:
        """The place of each label in depth-first order."""
        position = np.empty(self.K, dtype=np.int64)
        position[self.order] = np.arange(self.K)
        return position

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each node."""
        below: list[list[int]] = [[] for _ in self.names]
        for v, above in enumerate(self.parent[1:].tolist(), start=1):
            below[above].append(v)
        return below

    @cached_property
    def node_names(self) -> list[str]:
        """The names of nodes: parent/name for inner nodes whose name is not unique, the tree's name for the root."""
        shown = [self.name, *self.names[1:]]
        many = Counter(shown)
        for v in range(1, len(shown)):
            if many[self.names[v]] > 1 and self.child_counts[v]:
                shown[v] = f"{shown[int(self.parent[v])]}/{self.names[v]}"
        return shown

    @cached_property
    def child_counts(self) -> Ints:
        return np.bincount(self.parent[1:], minlength=len(self.names))

    def complete_nodes(self, mask: Bools) -> Bools:
        """Which nodes lie wholly inside each set of `mask` (n, K): (n, nodes)."""
        before = np.zeros((len(mask), self.K + 1), dtype=np.int64)
        np.cumsum(mask[:, self.order], axis=1, out=before[:, 1:])
        whole: Bools = before[:, self.high] - before[:, self.low] == self.high - self.low
        return whole

    def topmost(self, mask: Bools) -> Bools:
        """The fewest nodes whose leaves together are exactly each set: nodes wholly inside it whose parents are not."""
        whole = self.complete_nodes(mask)
        top = whole.copy()
        top[:, 1:] &= ~whole[:, self.parent[1:]]
        return top

    def members(self, node: int) -> Ints:
        """The labels below a node, sorted."""
        return np.sort(self.order[self.low[node] : self.high[node]])

    def path_to(self, node: int) -> list[str]:
        """The names of the nodes from below the root down to a node."""
        names = []
        while node > 0:
            names.append(self.names[node])
            node = int(self.parent[node])
        return names[::-1]

    def nodes_at(self, depth: int) -> Ints:
        """The ancestor of each label at a depth; the leaf itself, if it is less deep."""
        if depth >= self.path.shape[1]:
            return self.leaf
        return np.where(self.path[:, depth] >= 0, self.path[:, depth], self.leaf)

    def level(self, depth: int) -> Family:
        """The categories at a depth."""
        nodes, category_of = np.unique(self.nodes_at(depth), return_inverse=True)
        label = self.levels[depth - 1] if 0 < depth <= len(self.levels) else f"level({depth})"
        return Family.partition(f"{self.name}.{label}", [self.names[v] for v in nodes], category_of)

    def common_depth(self, s: Ints) -> Ints:
        """For labels s (m,): the depth of the deepest common ancestor of s and every label, (m, K).

        In depth-first order the labels below each ancestor of s are contiguous, so each ancestor adds a step up and
        a step down, and a running sum gives the depth: O(K + height) per row.
        """
        m = len(s)
        steps = np.zeros((m, self.K + 1), dtype=np.int32)
        rows = np.arange(m)
        for d in range(1, self.path.shape[1]):
            node = self.path[s, d]
            there = node >= 0
            steps[rows[there], self.low[node[there]]] += 1
            steps[rows[there], self.high[node[there]]] -= 1
        return np.cumsum(steps[:, :-1], axis=1)[:, self.position].astype(np.int64)


class Metric:
    """A symmetric distance between labels; `own` is that of each label to itself, which may be above zero."""

    name: str
    K: int
    largest: float

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal if the distance is the same."""
        return (id(self),)

    @property
    def own(self) -> Floats:
        """The distance of each label to itself, (K,)."""
        return np.zeros(self.K)

    def row(self, s: Ints) -> Floats:
        """Distances from labels s (m,) to every label, (m, K)."""
        raise NotImplementedError

    def between(self, a: int, b: int) -> float:
        """The distance of two labels, computed independently of `row`, for the naive interpreter."""
        raise NotImplementedError

    def probes(self) -> list[int]:
        """A far pair, and labels near its first end."""
        a = int(self.row(np.zeros(1, dtype=np.int64))[0].argmax())
        away = self.row(np.array([a]))[0]
        return [a, int(away.argmax()), *np.argsort(away, kind="stable")[1:3].tolist()]


class DenseMetric(Metric):
    """A K x K matrix, read from a file."""

    def __init__(self, name: str, matrix: Floats) -> None:
        self.name = name
        self.matrix = matrix
        self.K = len(matrix)
        self.largest = float(matrix.max())

    def row(self, s: Ints) -> Floats:
        return self.matrix[s]

    def between(self, a: int, b: int) -> float:
        return float(self.matrix[a, b])


class CategoryMetric(Metric):
    """Distances between the categories of a family (C x C), as distances between labels: d(a, b) is the largest
    distance of a category of a to one of b, and 0 if either label is in none.

    So a label in several categories has a distance to itself, and the largest d(a, b) over a and b in S (a = b
    included) is the largest distance between categories that S touches. Labels in the same categories are one *point*.
    """

    def __init__(self, name: str, family: Family, matrix: Floats) -> None:
        self.name = name
        self.family = family
        self.matrix = matrix
        self.K = family.K
        self.largest = float(matrix.max())

    @cached_property
    def _points(self) -> tuple[Ints, list[Ints]]:
        starts, category = self.family.by_label
        number: dict[bytes, int] = {}
        categories: list[Ints] = []
        point = np.empty(self.K, dtype=np.int64)
        for y in range(self.K):
            those = category[starts[y] : starts[y + 1]]
            point[y] = number.setdefault(those.tobytes(), len(number))
            if len(number) > len(categories):
                categories.append(those)
        return point, categories

    @property
    def point(self) -> Ints:
        """The point of each label, (K,)."""
        return self._points[0]

    @cached_property
    def between_points(self) -> Floats:
        """The distance of every two points; of a point to itself, too, as its labels may be in several categories."""
        categories = self._points[1]
        to_category = np.array([self.matrix[those].max(axis=0, initial=0.0) for those in categories])
        return np.stack([to_category[:, those].max(axis=1, initial=0.0) for those in categories])

    @property
    def own(self) -> Floats:
        return np.diag(self.between_points)[self.point]

    def row(self, s: Ints) -> Floats:
        return self.between_points[self.point[s]][:, self.point]

    def between(self, a: int, b: int) -> float:
        starts, category = self.family.by_label
        of_a, of_b = (category[starts[y] : starts[y + 1]] for y in (a, b))
        return max((float(self.matrix[g, h]) for g in of_a for h in of_b), default=0.0)

    def touched(self, mask: Bools) -> Bools:
        """Which categories each set (n, K) touches, (n, C)."""
        parts = (self.family.category(g).members for g in range(len(self.family)))
        return np.stack([mask[:, members].any(axis=1) for members in parts], axis=1)

    def probes(self) -> list[int]:
        """One label of each of the two categories farthest apart, a second one of the first category, and one more."""
        g, h = np.unravel_index(self.matrix.argmax(), self.matrix.shape)
        first, second = self.family.category(int(g)).members, self.family.category(int(h)).members
        far = [int(first[0]), int(second[-1]), *first[1:2].tolist()]
        return [*far, *[y for y in self.family.members.tolist() if y not in far][:1]]


@dataclass(frozen=True, eq=False)
class Balls:
    """The largest sets of leaves of each diameter and each radius in a hierarchy.

    If a and b are the ends of a longest path between members, a set lies in the ball around the middle of that path: a
    node if the path has 2 r edges, the middle of an edge if it has 2 r + 1, with radius r from the node or from the
    nearer end of the edge. Only balls of some pair are listed. If all leaves have one depth, they are the subtrees.

    Ball i is around `node[i]`, or around the edge above it where `on_edge[i]`; `reach[i]` is its r.
    """

    tree: Hierarchy
    node: Ints
    on_edge: Ints
    reach: Ints
    diameters: Ints
    radii: Ints  # from the leaf nearest to the middle


class TreeMetric(Metric):
    """The length of the path between two leaves of a hierarchy, every edge being `edge` long."""

    def __init__(self, name: str, hierarchy: Hierarchy, edge: float = 1.0) -> None:
        self.name = name
        self.hierarchy = hierarchy
        self.edge = edge
        self.K = hierarchy.K
        self.leaf_depth: Ints = hierarchy.depth[hierarchy.leaf]
        self.largest = float(self.diameter_of(np.ones((1, self.K), dtype=bool))[0])

    @property
    def key(self) -> tuple[object, ...]:
        return (id(self.hierarchy), self.edge)

    def edges(self, s: Ints) -> Ints:
        """Path lengths in edges from labels s (m,) to every label, (m, K)."""
        return self._edges_of(s) if self.K > _TABLED else self._all_edges[s]

    @cached_property
    def _all_edges(self) -> Ints:
        return self._edges_of(np.arange(self.K))

    def _edges_of(self, s: Ints) -> Ints:
        return self.leaf_depth[s][:, None] + self.leaf_depth - 2 * self.hierarchy.common_depth(s)

    def row(self, s: Ints) -> Floats:
        return np.multiply(self.edges(s), self.edge, dtype=np.float64)

    def between(self, a: int, b: int) -> float:
        up = [set(path[path >= 0].tolist()) for path in self.hierarchy.path[[a, b]]]
        return self.edge * len(up[0] ^ up[1])

    def endpoints(self, mask: Bools) -> tuple[Ints, Ints, Ints]:
        """Two members at the largest distance for each set, and that distance in edges (0, 0, 0 for the empty set).

        In a tree the member farthest from any member is an end of a longest path: two sweeps find it.
        """
        a = np.where(mask, self.edges(mask.argmax(axis=1)), -1).argmax(axis=1)
        away = np.where(mask, self.edges(a), -1)
        b = away.argmax(axis=1)
        return a, b, np.maximum(away[np.arange(len(mask)), b], 0)

    def diameter_of(self, mask: Bools) -> Floats:
        return np.multiply(self.endpoints(mask)[2], self.edge, dtype=np.float64)

    @cached_property
    def middles(self) -> int:
        """The number of points that are a leaf or may be the middle of a path between two leaves."""
        inner = len(self.hierarchy.names) - self.K
        return self.K + (inner if self._one_depth else 2 * inner - 1)

    @cached_property
    def _one_depth(self) -> bool:
        return bool((self.leaf_depth == self.leaf_depth[0]).all())

    def from_middles(self) -> Floats:
        """The distance of each such point to every label, in edges, (middles, K): inner nodes, leaves, middles of edges
        above inner nodes. (If all leaves have one depth, middles are nodes; no middle is just above a leaf.)"""
        tree = self.hierarchy
        away = np.empty((len(tree.names), self.K))
        for v in range(len(tree.names)):
            common = np.zeros(self.K, dtype=np.int64)
            u = v
            while u > 0:
                below = tree.order[tree.low[u] : tree.high[u]]
                common[below] = np.maximum(common[below], tree.depth[u])
                u = int(tree.parent[u])
            away[v] = tree.depth[v] + self.leaf_depth - 2 * common
        inner = np.setdiff1d(np.arange(len(tree.names)), tree.leaf)
        found = [away[inner], away[tree.leaf]]
        if not self._one_depth:
            found.append((away[inner[1:]] + away[tree.parent[inner[1:]]]) / 2)
        return np.concatenate(found)

    @cached_property
    def nearest_leaf(self) -> Ints:
        """The distance of each node to its nearest leaf, in edges."""
        tree = self.hierarchy
        near = np.full(len(tree.names), len(tree.names), dtype=np.int64)
        near[tree.leaf] = 0
        nodes = range(1, len(tree.names))
        for v in reversed(nodes):
            near[tree.parent[v]] = min(near[tree.parent[v]], near[v] + 1)
        for v in nodes:
            near[v] = min(near[v], near[tree.parent[v]] + 1)
        return near

    @cached_property
    def balls(self) -> Balls:
        """All balls, single leaves included."""
        tree, near = self.hierarchy, self.nearest_leaf
        down, up = _leaf_distances(tree)
        found = []
        for v in range(len(tree.names)):
            # How many branches of v have a leaf r edges away; a leaf is a ball by itself.
            branches = down[v] + Counter(dict.fromkeys(up[v], 1))
            found += [(v, 0, r) for r, many in branches.items() if many >= 2 or r == 0]
            if v:
                found += [(v, 1, r) for r in down[v] if r + 1 in up[v]]
        node, on_edge, reach = np.array(found, dtype=np.int64).T
        middle = np.where(on_edge == 1, np.minimum(near[node], near[tree.parent[node]]), near[node])
        return Balls(tree, node, on_edge, reach, 2 * reach + on_edge, reach + on_edge + middle)

    def radius_of(self, a: Ints, b: Ints, long: Ints) -> Floats:
        """The radius of sets, from the ends a, b of a longest path and its length in edges; arrays of one shape."""
        tree = self.hierarchy
        deep = np.where(self.leaf_depth[a] >= self.leaf_depth[b], a, b)
        below = tree.path[deep, self.leaf_depth[deep] - long // 2]
        above = np.where(long % 2 == 1, tree.parent[below], below)
        half_up = (long + 1) // 2
        reach: Ints = half_up + np.minimum(self.nearest_leaf[below], self.nearest_leaf[above])
        return np.asarray(reach * self.edge, dtype=np.float64)


def _leaf_distances(tree: Hierarchy) -> tuple[list[Counter[int]], list[set[int]]]:
    """For each node: through how many children a leaf is r edges away, by r; and the distances of all other leaves."""
    nodes = len(tree.names)
    down: list[Counter[int]] = [Counter() for _ in range(nodes)]
    for leaf in tree.leaf.tolist():
        down[leaf][0] = 1
    for v in range(nodes - 1, 0, -1):
        down[tree.parent[v]].update(r + 1 for r in down[v])
    up: list[set[int]] = [set()]
    for v in range(1, nodes):
        parent = int(tree.parent[v])
        siblings = {r + 1 for r, many in down[parent].items() if many > (r - 1 in down[v])}
        up.append({r + 1 for r in up[parent]} | siblings)
    return down, up
