"""A loss as arrays for the search: quantities that are easy to optimise, and operations over them.

A *quantity* is a constant, label costs and weights on categories. Each largest node of the loss that has such an
additive form is one. What is left are operations over quantities, tables of counts, and three kinds of hard atoms: min
over columns of the largest entry (`worst`, a radius, the diameter of a hierarchy: its sets lie in balls), the largest
and the sum of an entry for each pair (diameter of a matrix, spread). Some categories form a *forest*, for which one
pass finds an optimum under fixed labels; the others cross it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.expression import ir
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import CompletedCategories, Entries, FarthestPair, MinMaxTable, PairSum
from udcp_dsl.expression.prove import additive_forms
from udcp_dsl.per_row import PerRow, add_at, array_of, joined
from udcp_solvers.numeric.double_double_arrays import plus
from udcp_solvers.numeric.exact_costs import Exact, ExactForm, exact_forms
from udcp_solvers.search.layout import (
    ADD,
    AT_LEAST,
    CONSTANT,
    CROSSING,
    EQUAL,
    FARTHEST,
    GATE,
    IF,
    INDICATOR,
    LARGER,
    NOT,
    PAIRS,
    QUANTITY,
    SCALE,
    SMALLER,
    TABLE,
    WORST,
    Floats,
    Ints,
    pack,
)

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


# The most cells of the table of an atom: 256 MiB.
_MAX_CELLS = 1 << 25


class Model(NamedTuple):
    """The two arrays of a model; see `layout`."""

    ints: Ints
    floats: Floats


def searchable(loss: Loss) -> bool:
    """Whether the search supports every atom of the loss, and no table is too large."""
    return _entries(loss) is not None


def model_of(loss: Loss) -> Model:
    """The arrays of a loss that is `searchable`."""
    entries = _entries(loss)
    assert entries is not None
    build = _Builder(loss, entries)
    build.operation(loss.expression.root)
    return build.done()


def _entries(loss: Loss) -> dict[int, Entries] | None:
    """The tables of the atoms without an additive form, by the `id` of their leaf; None if one is missing or too
    large."""
    found: dict[int, Entries] = {}
    for node in loss.expression.nodes:
        if not isinstance(node, ir.Leaf) or _as_quantity(node.atom.additive()) is not None:
            continue
        entries = node.atom.entries()
        if entries is None or entries.cells > _MAX_CELLS:
            return None
        found[id(node)] = entries
    return found


def _as_quantity(form: Additive | None) -> Additive | None:
    """The form if it is a quantity, else None."""
    return None if form is None or form.diameters or form.of_size is not None else form


_WEIGHTS: WeakKeyDictionary[Loss, dict[bytes, float]] = WeakKeyDictionary()


def _weights(loss: Loss) -> dict[bytes, float]:
    """The total weight of each category in all quantities of a loss; cached, since all rows ask for that of one
    loss."""
    if loss not in _WEIGHTS:
        entries = _entries(loss)
        quantities: list[Additive] = []
        if entries is not None:
            build = _Builder(loss, entries)
            build.operation(loss.expression.root)
            quantities = build.quantities
        _WEIGHTS[loss] = _weights_in(quantities)
    return _WEIGHTS[loss]


def _weights_in(quantities: list[Additive]) -> dict[bytes, float]:
    found: dict[bytes, float] = {}
    for form in quantities:
        for key, part in form.categories.items():
            found[key] = found.get(key, 0.0) + abs(part.weight)
    return found


class _Categories(NamedTuple):
    """The categories of all quantities, largest first: the labels of each (`members`), the innermost category of the
    forest around each label (`home`) and each category (`above`), and for each quantity its categories with their
    weights."""

    members: list[Ints]
    home: Ints
    above: Ints
    weighed: list[list[tuple[int, Any]]]


class _Prefixes(NamedTuple):
    """The first labels of each column by rising entry, up to the last prefix that no other column has at a lower entry:
    where those of each column begin, the labels, and their entries."""

    starts: Ints
    labels: Ints
    entries: Floats


class _Builder:
    def __init__(self, loss: Loss, entries: Mapping[int, Entries]) -> None:
        self.loss = loss
        self.entries = entries
        self.K = loss.K
        self.forms = additive_forms(loss.expression)
        self.at: dict[int, int] = {}
        self.code: list[tuple[int, int, int, int]] = []
        self.number: list[tuple[float, float]] = []
        self.tables: list[float] = []
        self.exact_forms = exact_forms(loss.expression)
        self.quantities: list[Additive] = []
        self.exact_quantities: list[ExactForm] = []
        self.columns: list[Floats] = []
        self.far: list[Floats] = []
        self.pairs: list[Floats] = []
        self.hard = {
            MinMaxTable: (WORST, self.columns),
            FarthestPair: (FARTHEST, self.far),
            PairSum: (PAIRS, self.pairs),
        }

    def operation(self, root: ir.Node) -> int:
        """The operation of a node; without recursion, as an expression may be deep."""
        stack = [root]
        while stack:
            node = stack[-1]
            if id(node) in self.at:
                stack.pop()
                continue
            waiting = [] if self._as_quantity(node) is not None else [c for c in node.children if id(c) not in self.at]
            if isinstance(node, ir.Table):
                waiting = []
            if waiting:
                stack.extend(waiting)
                continue
            self.at[id(node)] = self._placed(node)
            stack.pop()
        return self.at[id(root)]

    def _as_quantity(self, node: ir.Node) -> Additive | None:
        return _as_quantity(self.forms[id(node)])

    def _op(self, kind: int, *operands: int, number: float = 0.0, slack: float = 0.0) -> int:
        a, b, c = (*operands, -1, -1, -1)[:3]
        self.code.append((kind, a, b, c))
        self.number.append((number, slack))
        return len(self.code) - 1

    def _fold(self, kind: int, places: Sequence[int], third: int = -1) -> int:
        total = places[0]
        for place in places[1:]:
            total = self._op(kind, total, place, third)
        return total

    def _quantity(self, form: Additive, exact: ExactForm | None = None) -> int:
        self.quantities.append(form)
        self.exact_quantities.append(ExactForm.of(form) if exact is None else exact)
        return len(self.quantities) - 1

    def _placed(self, node: ir.Node) -> int:
        form = self._as_quantity(node)
        if isinstance(node, ir.Constant):
            return self._op(CONSTANT, number=node.number)
        if form is not None:
            if form.separable and not form.label_costs.any():
                lack, _, _ = self.exact_forms[id(node)].lack(form)
                return self._op(CONSTANT, number=form.constant, slack=lack)
            return self._op(QUANTITY, self._quantity(form, self.exact_forms[id(node)]))
        places = [self.at[id(child)] for child in node.children] if not isinstance(node, ir.Table) else []
        match node:
            case ir.Leaf():
                return self._atom(node)
            case ir.Table():
                counted = self._as_quantity(node.count)
                assert counted is not None, "counts are sums"
                return self._table(counted, node.table)
            case ir.Add():
                return self._sum(node)
            case ir.Scale():
                return self._op(SCALE, places[0], number=node.factor)
            case ir.Gate():
                return self._op(GATE, *places)
            case ir.Extremum():
                # Of several constants, one decides; it comes last: see `_ceiling`.
                constants = [place for place in places if self.code[place][0] == CONSTANT]
                others = [place for place in places if self.code[place][0] != CONSTANT]
                decides = max if node.largest else min
                last = [decides(constants, key=lambda place: self.number[place][0])] if constants else []
                return self._fold(LARGER if node.largest else SMALLER, [*others, *last])
            case ir.Junction():
                return self._fold(SMALLER if node.both else LARGER, places, INDICATOR)
            case ir.AtLeast():
                return self._op(AT_LEAST, places[0], number=node.k - ir.tolerance(node.k))
            case ir.Equal():
                return self._op(EQUAL, places[0], number=node.k, slack=ir.tolerance(node.k))
            case ir.Not():
                return self._op(NOT, places[0])
            case ir.If():
                return self._op(IF, *places)
            case _:
                raise TypeError(f"the search does not support {type(node).__name__}")

    def _sum(self, node: ir.Add) -> int:
        """A sum; its easy terms together are one quantity."""
        easy = [form for term in node.terms if (form := self._as_quantity(term)) is not None]
        exact = [self.exact_forms[id(term)] for term in node.terms if self._as_quantity(term) is not None]
        hard = [self.at[id(term)] for term in node.terms if self._as_quantity(term) is None]
        if easy:
            total = Additive.of_constant(0.0, self.K)
            for form in easy:
                total = total.plus(form)
            hard.insert(0, self._op(QUANTITY, self._quantity(total, reduce(ExactForm.plus, exact))))
        return self._fold(ADD, hard)

    def _table(self, counted: Additive, table: Floats) -> int:
        start = len(self.tables)
        self.tables.extend(table.tolist())
        return self._op(TABLE, self._quantity(counted), start, len(table))

    def _atom(self, leaf: ir.Leaf) -> int:
        found = self.entries[id(leaf)]
        if isinstance(found, CompletedCategories):
            return self._wholes(found)
        kind, tables = self.hard[type(found)]
        tables.append(found.table())
        ends = leaf.atom.interval
        return self._op(kind, len(tables) - 1, number=ends.hi, slack=ends.lo)

    def _wholes(self, found: CompletedCategories) -> int:
        """Each whole is a table of how many of its labels are in: its weight if all are, else 0."""
        parts = []
        if found.numbers.any():
            parts.append(self._op(QUANTITY, self._quantity(Additive.of_labels(found.numbers))))
        for members, weight in zip(found.members, found.weights, strict=True):
            table = np.zeros(len(members) + 1)
            table[-1] = weight
            inside = np.zeros(self.K)
            inside[members] = 1.0
            parts.append(self._table(Additive.of_labels(inside), table))
        return self._fold(ADD, parts)

    def done(self) -> Model:
        K, categories = self.K, self._categories()
        members, above = categories.members, categories.above
        label_categories: list[list[int]] = [[] for _ in range(K)]
        for c, labels in enumerate(members):
            for y in labels.tolist():
                label_categories[y].append(c)
        # Larger categories come first, so the reverse order goes from inner to outer ones.
        rising = [c for c in range(len(members) - 1, -1, -1) if above[c] != CROSSING]
        columns = np.concatenate(self.columns) if self.columns else np.zeros((0, K))
        prefixes = self._prefixes(columns)
        costs = [form.label_costs for form in self.quantities]
        lacks = [exact.lack(form) for exact, form in zip(self.exact_quantities, self.quantities, strict=True)]
        flat = np.zeros(0)
        ints, floats = pack(
            [
                categories.home,
                above,
                np.array(rising, dtype=np.int64),
                _starts(label_categories),
                _flat(label_categories),
                _starts(members),
                _flat([m.tolist() for m in members]),
                _starts(categories.weighed),
                _flat([[c for c, _ in own] for own in categories.weighed]),
                np.array(self.code, dtype=np.int64).ravel(),
                _starts(self.columns),
                prefixes.starts,
                prefixes.labels,
                self._twins(costs, members, columns),
                np.concatenate([flat, *(np.argsort(d, axis=1, kind="stable").ravel() for d in self.pairs)]),
            ],
            [K, len(members), len(self.quantities), len(self.code), self._counted(), self._ceiling()],
            [
                array_of([form.constant for form in self.quantities]),
                joined([flat, *costs]),
                array_of([weight for own in categories.weighed for _, weight in own]),
                array_of([x for pair in self.number for x in pair]),
                array_of(self.tables),
                columns.ravel(),
                np.concatenate([flat, *(d.ravel() for d in self.far)]),
                np.concatenate([flat, *(d.ravel() for d in self.pairs)]),
                self._least(),
                prefixes.entries,
                array_of([constant for constant, _, _ in lacks]),
                joined([flat, *(labels for _, labels, _ in lacks)]),
                array_of([weight for _, _, weights in lacks for weight in weights]),
            ],
        )
        return Model(ints, floats)

    def _categories(self) -> _Categories:
        parts: dict[bytes, Weighted] = {}
        for form in self.quantities:
            for key, part in form.categories.items():
                parts.setdefault(key, part)
        weight = _weights_in(self.quantities)
        if self.loss.whole is not None:  # the order must not depend on the row
            typical = _weights(self.loss.whole.example)
            weight = {key: typical.get(key, 0.0) for key in weight}
        keys = sorted(parts, key=lambda key: (-len(parts[key].members), -weight[key]))
        index = {key: c for c, key in enumerate(keys)}
        members = [parts[key].members for key in keys]
        home, above = _forest(members, [weight[key] for key in keys], self.K)
        weighed = [[(index[key], part.weight) for key, part in form.categories.items()] for form in self.quantities]
        return _Categories(members, home, above, weighed)

    def _prefixes(self, columns: Floats) -> _Prefixes:
        orders = np.argsort(columns, axis=1, kind="stable")
        entries = np.take_along_axis(columns, orders, axis=1)
        ends = np.concatenate([np.zeros(0), *(_ends(table) for table in self.columns)])
        offered = entries <= ends[:, None]
        return _Prefixes(np.cumsum([0, *offered.sum(axis=1)]), orders[offered], entries[offered])

    def _ceiling(self) -> int:
        """For a loss min(L, c), the operation that is the ceiling c; -1 for other losses."""
        kind, _, last, third = self.code[-1]
        is_ceiling = kind == SMALLER and third != INDICATOR and self.code[last][0] == CONSTANT
        return last if is_ceiling else -1

    def _counted(self) -> int:
        """Of the tables of a number of labels in the outermost sum, the one that can cost most; -1 if there is none."""
        most, found = 0.0, -1
        waiting = [len(self.code) - 1 if self._ceiling() < 0 else self.code[-1][1]]
        factor = {waiting[0]: 1.0}
        while waiting:
            i = waiting.pop()
            kind, a, b, c = self.code[i]
            if kind == ADD:
                waiting += [a, b]
                factor |= {a: factor[i], b: factor[i]}
            elif kind == SCALE:
                waiting.append(a)
                factor[a] = factor[i] * self.number[i][0]
            elif kind == TABLE:
                form = self.quantities[a]
                size = abs(factor[i]) * np.ptp(array_of(self.tables[b : b + c]))
                ones = (form.label_costs == 0) | (form.label_costs == 1)
                if not form.categories and form.constant == 0 and ones.all():
                    most, found = max((most, found), (size, i))
        return found

    def _least(self) -> Floats:
        """The least that each label adds to any set: its cost in the outermost sum, if all other terms are monotone;
        else -inf."""
        root = self.loss.expression.root
        if self._ceiling() >= 0:
            others = [child for child in root.children if self.code[self.at[id(child)]][0] != CONSTANT]
            root = others[0] if len(others) == 1 else root
        terms = root.terms if isinstance(root, ir.Add) else (root,)
        least: Exact = (np.zeros(self.K), np.zeros(self.K))
        for term in terms:
            if self._as_quantity(term) is not None:
                form = self.exact_forms[id(term)]
                least = plus(least, form.labels)
                for key, (weight, low) in form.weights.items():
                    if weight < 0:
                        members = form.members[key].members
                        nothing = np.zeros(self.K)
                        least = plus(least, (add_at(nothing, members, weight), add_at(nothing, members, low)))
            elif not self.loss.facts_of(term).monotone:
                return np.full(self.K, -np.inf)
        return least[0]  # type: ignore[no-any-return]  # rounded once: its sign is exact

    def _twins(self, costs: list[Floats], members: list[Ints], columns: Floats) -> Ints:
        """One number for labels with the same costs in every quantity, the same categories, columns and distances to
        others."""
        K = self.K
        roles = np.zeros((len(members), K))
        for c, labels in enumerate(members):
            roles[c, labels] = 1.0
        if any(isinstance(own, PerRow) for own in costs):
            return self._twins_by_row(costs, np.concatenate([roles, columns]))  # type: ignore[no-any-return]
        return self._alike_in(np.concatenate([np.array(costs).reshape(-1, K), roles, columns]).T)

    def _alike_in(self, table: Floats) -> Ints:
        _, twin = np.unique(table, axis=0, return_inverse=True)
        twin = twin.reshape(-1).astype(np.int64)
        for entries in (*self.far, *self.pairs):
            twin = _alike(entries, twin)
        return twin

    def _twins_by_row(self, costs: list[Any], others: Floats) -> Any:
        """`_twins` for each row; most rows have none, since all costs differ."""
        of_rows = [own.values for own in costs if isinstance(own, PerRow)]
        n = len(of_rows[0])
        differ = np.any([(np.diff(np.sort(own, axis=1), axis=1) != 0).all(axis=1) for own in of_rows], axis=0)
        twins = np.tile(np.arange(self.K, dtype=np.int64), (n, 1))
        for i in np.flatnonzero(~differ).tolist():
            own = [cost.row(i) if isinstance(cost, PerRow) else cost for cost in costs]
            twins[i] = self._alike_in(np.concatenate([np.array(own), others]).T)
        return PerRow(twins)


def _ends(columns: Floats) -> Floats:
    """For each column of an atom, the last entry at which no other column has the same labels at less; -inf if there is
    none.

    The labels up to an entry are identified by a sum of random numbers of 128 bits, as columns of a hierarchy share
    most of these sets.
    """
    A, K = columns.shape
    marks = np.random.default_rng(0).integers(0, 2**64, (2, K), dtype=np.uint64)
    orders = np.argsort(columns, axis=1, kind="stable")
    entries = np.take_along_axis(columns, orders, axis=1)
    last = np.ones((A, K), dtype=bool)
    last[:, :-1] = entries[:, 1:] > entries[:, :-1]
    first, second = (np.cumsum(mark[orders], axis=1, dtype=np.uint64)[last] for mark in marks)
    column, entry = np.nonzero(last)[0], entries[last]
    order = np.lexsort([column, entry, second, first])
    least = np.ones(len(order), dtype=bool)
    least[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    ends = np.full(A, -np.inf)
    np.maximum.at(ends, column[order][least], entry[order][least])
    return ends


def _alike(d: Floats, group: Ints) -> Ints:
    """Groups, divided: labels stay together if they are as far from every other label, by a symmetric d (K, K)."""
    # Only labels with the same sorted distances can stay together.
    _, rows = np.unique(np.column_stack([group, np.sort(d, axis=1)]), axis=0, return_inverse=True)
    rows = rows.reshape(-1)
    found = np.arange(len(d))
    for y in range(len(d)):
        if found[y] != y:
            continue
        for z in np.flatnonzero((rows == rows[y]) & (found == np.arange(len(d))) & (found > y)):
            differ = np.flatnonzero(d[y] != d[z])
            if d[y, y] == d[z, z] and ((differ == y) | (differ == z)).all():
                found[z] = y
    return found


def _starts(parts: Sequence[Sequence[object] | Floats | Ints]) -> Ints:
    return np.cumsum([0, *map(len, parts)]).astype(np.int64)


def _flat(parts: Sequence[Sequence[int]]) -> Ints:
    return np.array([x for part in parts for x in part], dtype=np.int64)


def _forest(members: list[Ints], weights: list[float], K: int) -> tuple[Ints, Ints]:
    """Choose categories that are nested or disjoint, heavy ones first: the innermost around each label, and around
    each.

    `members` come large ones first.
    """
    chosen: list[int] = []
    masks: list[NDArray[np.bool_]] = []
    for c in sorted(range(len(members)), key=lambda c: -weights[c]):
        mask = np.zeros(K, dtype=bool)
        mask[members[c]] = True
        if all(not (mask & m).any() or (mask <= m).all() or (m <= mask).all() for m in masks):
            chosen.append(c)
            masks.append(mask)
    home = np.full(K, -1, dtype=np.int64)
    above = np.full(len(members), CROSSING, dtype=np.int64)
    for c in sorted(chosen):  # large ones first
        above[c] = home[members[c][0]]
        home[members[c]] = c
    return home, above
