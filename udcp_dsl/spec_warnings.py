"""Where a spec says something other than its author is likely to mean (W602 to W605), or rewards sets (W606 to W608).

What a part N of a loss (a summand, a condition) adds to a set is

    effect_N(S) = L(S) - L(S with N held at its value on the empty set),

which is N(S) - N({}) for a summand of a sum, and takes a cap min(L, c) above N into account. A label costs own(y) =
L({y}) - L({}) by itself, and at least c(y) = min of own(y) and L({b, y}) - L({b}) over all labels b. A typical label
costs the lower median m of the positive own(y). A set is realistic up to s = max(10, sqrt K) labels, at most 50; where
rows are known, up to the number of likeliest labels that have 0.99 of the mass in 99 of 100 rows.

W602  A single label triggers a penalty for combinations. N is an `and` of indicators without `not`, or a function f of
      a count with f(0) = f(1). Some pair {a, b} pays effect_N > 0 while neither a nor b does; y pays it alone; and the
      labels that pay it alone are no more than those in such pairs.
W603  A label is hardly ever in a set: c(y) > 20 m. Price buys a typical label from probability m / price on, and sets
      that cover 0.9 take labels down to about 0.05: there the price is 20 m, too little for y even where p(y) = 1. A
      price that was calibrated takes the place of 20 m.
W604  No set of realistic size changes N: effect_N(S) = 0 for all sets that were tried. These are all single labels and
      pairs, and all one-label extensions of sets that grow, label by label, such that the value of a node within N
      becomes largest, or smallest. A part with weight 0, or with a parameter that is 0, was switched off on purpose.
W605  A penalty is too small to matter: some label does not pay it alone, and no realistic set pays more than m / 100.
W606  A drop that is not meant: of the smallest S for which one was found, the largest. A drop is a set S, not empty,
      and a label y with L(S + y) < L(S). It is meant if it comes from what falls by design when a set grows (`within`,
      `all`, `nodes`, `min`, `empty`, `not any`), or from a label of negative cost, which W601 names: with these held
      at their values on S, S + y is no cheaper than S. Sets are tried in the order of their size: single labels, all
      sets of a few labels that the atoms suggest, and sets that grow such that the cost becomes least, or largest.
W607  L({}) < 0.
W608  L(S) < 0 <= L({}), although no label costs less than nothing and there is no other drop.

Inputs take the lower end, the middle and the upper end of their ranges; a finding is reported if all three have it.
Beyond 1,000 labels, pairs are tried for some labels b only, evenly spaced in the order of what single labels cost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import Diagnostic, Span
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.explain import first_names, written
from udcp_dsl.expression.growth import Completes
from udcp_dsl.expression.ir import (
    Add,
    Constant,
    Expression,
    Extremum,
    If,
    Junction,
    Leaf,
    Node,
    Not,
    Scale,
    Table,
    postorder,
)
from udcp_dsl.expression.prove import probed_labels
from udcp_dsl.expression.values import Increments
from udcp_dsl.loss import Loss
from udcp_dsl.showing import Column, Styled
from udcp_dsl.showing import Table as ShownTable

_FALL_BY_DESIGN = ("within", "all", "nodes", "min", "empty", "sum")
_PROBED = 6  # labels whose sets are all tried
_BLOCK, _MOST_OF_ONE_SIZE = 1 << 18, 1 << 20  # sets times labels, at a time

Values = dict[int, Floats]  # of nodes on sets, by the `id` of the node


@dataclass(frozen=True)
class Reward:
    """A set that is cheaper than it should be, with its cost, and the set of one label fewer with its cost."""

    labels: Ints
    cost: float
    smaller: Ints
    smaller_cost: float
    changes: dict[int, float]  # of each node from the smaller set to the larger one, by `id`


def rewards(
    expression: Expression, singles: Ints, most: int, own_costs: Floats, count_work: Callable[[int], None]
) -> tuple[Reward | None, Reward | None]:
    """The first drop that is not meant, and the first set below zero; sets have up to `most` labels."""
    grow = Increments(expression, 1)
    empty = float(np.ravel(grow.value)[0])
    negative = own_costs < -_slack(own_costs) if empty <= 0 else np.zeros(len(own_costs), dtype=bool)
    below: Reward | None = None
    for grown in _sets_by_size(expression, singles, most, count_work):
        now, after = grown.nodes_now(), grown.nodes_after()
        before, root = np.asarray(grown.value)[:, None], grown.after()
        free = ~grown.mask & ~negative
        drops = free & (root - before < -_slack(root))
        if drops.any():
            held = _without_design(expression, now, after, root)
            drops &= held - before < -_slack(root)
        if drops.any():
            return _reward(grown, now, after, np.where(drops, root - before, np.inf)), below
        if below is None and empty >= 0 and not negative.any() and (free & (root < -_slack(root))).any():
            below = _reward(grown, now, after, np.where(free, root, np.inf))
    return None, below


def _slack(values: Floats) -> float:
    return 1e-9 * max(1.0, float(np.abs(values).max()))


def _sets_by_size(
    expression: Expression, singles: Ints, most: int, count_work: Callable[[int], None]
) -> Iterator[Increments]:
    """Sets of 1, 2, ... labels, of which all extensions by one label are to be tried."""
    K = expression.root.K
    step = max(1, _BLOCK // K)
    for block in (singles[start : start + step] for start in range(0, len(singles), step)):
        count_work(len(block) * K)
        grow = Increments(expression, len(block))
        grow.push(block)
        yield grow
    probed = probed_labels(expression, min(_PROBED, K))
    grown = Increments(expression, 2)
    for held in range(1, min(most, K - 1)):
        costs = grown.after()
        lowest = np.where(grown.mask[0], np.inf, costs[0]).argmin()
        grown.push(np.array([lowest, np.where(grown.mask[1], -np.inf, costs[1]).argmax()]))
        if held >= 2:
            count_work(2 * K)
            yield grown
            chosen = list(combinations(probed.tolist(), held)) if held < len(probed) else []
            if chosen and len(chosen) * K <= _MOST_OF_ONE_SIZE:
                count_work(len(chosen) * K)
                yield _grown(expression, chosen)


def _grown(expression: Expression, sets: Sequence[tuple[int, ...]]) -> Increments:
    grow = Increments(expression, len(sets))
    for labels in np.array(sets).T:
        grow.push(labels)
    return grow


def _without_design(expression: Expression, now: Values, after: Values, root: Floats) -> Floats:
    """L(S + y) with the leaves that fall by design, and do so here, held at their values on S."""
    leaves = [node for node in expression.nodes if _falls_by_design(node)]
    lowering: list[tuple[Node, Bools]] = []
    for leaf in leaves:
        falls = _held(expression, now, after, [(leaf, np.ones(root.shape, dtype=bool))]) > root
        lowering.append((leaf, np.broadcast_to(falls, root.shape)))
    return np.broadcast_to(_held(expression, now, after, lowering), root.shape)


def _falls_by_design(node: Node) -> bool:
    if isinstance(node, Not):  # not any(C) is within(all labels but C)
        return isinstance(node.operand, Leaf) and node.operand.atom.name == "any"
    return isinstance(node, Leaf) and node.atom.name in _FALL_BY_DESIGN


def _held(expression: Expression, now: Values, after: Values, leaves: Sequence[tuple[Node, Bools]]) -> Floats:
    """The loss after one more label, with the leaves held where they are to be."""
    held: Values = {
        id(leaf): np.where(where, np.asarray(now[id(leaf)])[:, None], after[id(leaf)]) for leaf, where in leaves
    }
    for node in expression.nodes:
        if id(node) not in held and any(id(child) in held for child in node.children):
            held[id(node)] = node.value(*(held.get(id(child), after[id(child)]) for child in node.children))
    return held.get(id(expression.root), after[id(expression.root)])


def _reward(grown: Increments, now: Values, after: Values, rank: Floats) -> Reward:
    """The pair that ranks first."""
    row, y = divmod(int(rank.argmin()), rank.shape[1])
    smaller = np.flatnonzero(grown.mask[row])
    changes = {
        node: float(np.broadcast_to(value, rank.shape)[row, y]) - float(np.broadcast_to(now[node], len(rank))[row])
        for node, value in after.items()
    }
    return Reward(
        np.sort(np.append(smaller, y)), float(grown.after()[row, y]), smaller, float(grown.value[row]), changes
    )


HARDLY_EVER = 20.0  # times what a typical label costs
TOO_SMALL = 0.01  # of what a typical label costs
_MASS_SHARE, _ROW_SHARE = 0.99, 0.99  # shares of the mass of a row, and of the rows, that define the realistic size
_MIN_SIZE, _MAX_SIZE = 10, 50  # labels of a set of realistic size, if no rows are known
_MAX_PAIRS = 1_000_000  # most pairs that are tried
_BLOCK = 1 << 18  # entries per array
_MAX_CELLS = 1 << 24  # entries of the arrays of all nodes together
_MIN_WORK = 10_000  # a smaller array takes as long as one of so many entries
_MAX_WORK = 5e8  # entries, in one review: two seconds
_MAX_REVIEWED = 1 << 22  # labels times nodes of a spec that is reviewed
_MAX_OBJECTIVES = 40  # most sets that grow at the same time
_MAX_ROWS = 1000  # from which the realistic size is found

Measure = Callable[[Node, Values, tuple[int, ...]], Floats]


@dataclass(frozen=True)
class SpecFinding:
    """Something in a spec that is probably not meant: a code, the part that it is about, the labels, and an amount."""

    code: str
    part: str
    labels: tuple[str, ...]
    amount: float
    diagnostic: Diagnostic

    @property
    def key(self) -> tuple[object, ...]:
        return self.code, self.part, frozenset(self.labels)


def spec_warnings(loss: Loss, probs: Any = None, price: float | None = None) -> tuple[SpecFinding, ...]:
    """What a spec says that its author probably does not mean; an empty tuple if nothing was found.

    Parameters
    ----------
    loss : Loss
        A loss of the spec.
    probs : array (n, K), optional
        Probabilities of rows, in the order of the labels; the realistic size of sets is then taken from them.
    price : float, optional
        The threshold of a calibrated `price`, instead of a guess.

    Returns
    -------
    tuple of SpecFinding
        In the order of the spec.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> spec = "labels {a, b, c}  category A {a, b}  category B {b, c}  loss l = size + 9 * (any(A) and any(B))"
    >>> loss = udcp.loads(spec)
    >>> [(found.code, found.labels) for found in spec_warnings(loss)]
    [('W602', ('b',))]
    """
    size = None if probs is None else realistic_size(probs)
    found: list[tuple[SpecFinding, ...]] = []
    for one in _at_several_inputs(loss.of_spec):
        found.append(_Review(one, size, price).findings())
        if not found[-1]:
            return ()
    everywhere = set.intersection(*({x.key for x in one} for one in found))
    return tuple(x for x in found[len(found) // 2] if x.key in everywhere)


def realistic_size(probs: Any) -> int:
    """How many labels hold 0.99 of the mass in 99 of 100 rows; at least 2."""
    P = np.asarray(probs)
    P = P[some_rows(len(P))].astype(np.float64)
    held = np.cumsum(-np.sort(-P, axis=1), axis=1)
    needed = 1 + (held < _MASS_SHARE * held[:, -1:]).sum(axis=1)
    return max(2, int(np.quantile(needed, _ROW_SHARE, method="inverted_cdf")))


def some_rows(n: int) -> Ints:
    """The positions of at most 1,000 of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(np.int64)


def _at_several_inputs(loss: Loss) -> Iterator[Loss]:
    if not loss.inputs:
        yield loss
        return
    for share in (0.0, None, 1.0):
        row: dict[str, Any] = {}
        for name, x in loss.inputs.items():
            end = x.low if share == 0 else x.high
            row[name] = x.example if share is None else end if x.width is None else np.full(x.width, end)
        yield loss.at(row)


class _TooMuchWork(Exception):
    """The spec is too large, such as one of thousands of terms: the review ends with what was found so far."""


class _Review:
    """One loss without inputs, and what its parts add to sets."""

    def __init__(self, loss: Loss, size: int | None, price: float | None) -> None:
        self.loss, self.price = loss, price
        self.expression, self.K = _as_written(loss), loss.K
        self.from_rows = size is not None
        guess = min(_MAX_SIZE, max(_MIN_SIZE, math.ceil(math.sqrt(self.K))))
        self.size = min(self.K, guess if size is None else size)
        self._work = 0

    def findings(self) -> tuple[SpecFinding, ...]:
        if self.K < 2 or self.cells_per_set > _MAX_REVIEWED:
            return ()
        found: list[SpecFinding] = []
        with suppress(_TooMuchWork):
            for search in (self._triggered_alone, self._hardly_ever, self._unchanged):
                found.extend(search())
            found.extend(self._too_small({x.part for x in found if x.code == "W604"}))
        with suppress(_TooMuchWork):
            found.extend(self._rewards())
        return tuple(sorted(found, key=lambda x: (x.diagnostic.span.start, x.code)))

    @property
    def cells_per_set(self) -> int:
        """Entries of one array per node, for one set and its extensions."""
        return self.K * len(self.expression.nodes)

    def _count_work(self, entries: int) -> None:
        """Count the work of one array of so many entries per node; _TooMuchWork if the limit is exceeded."""
        self._work += len(self.expression.nodes) * max(entries, _MIN_WORK)
        if self._work > _MAX_WORK:
            raise _TooMuchWork

    # What parts add

    @cached_property
    def empty_set(self) -> Values:
        grow = Increments(self.expression, 1)
        return {node: np.ravel(value)[0] for node, value in grow.nodes_now().items()}

    @cached_property
    def single_labels(self) -> Values:
        return Increments(self.expression, 1).nodes_after()

    def effect(self, part: Node, values: Values, shape: tuple[int, ...]) -> Floats:
        """What the part adds to the sets on which nodes have these values; rounding errors become 0."""
        self._count_work(math.prod(shape))
        held: Values = {id(part): self.empty_set[id(part)]}
        for node in self.expression.nodes:
            if id(node) not in held and any(id(child) in held for child in node.children):
                held[id(node)] = node.value(*(held.get(id(child), values[id(child)]) for child in node.children))
        root = id(self.expression.root)
        added = np.broadcast_to(values[root] - held[root], shape)
        return np.asarray(np.where(np.abs(added) <= 1e-9 * np.maximum(1.0, np.abs(values[root])), 0.0, added))

    def cost_alone(self, part: Node) -> Floats:
        """effect_N({y}) for each label y."""
        return np.asarray(self.effect(part, self.single_labels, (1, self.K))[0])

    @cached_property
    def companions(self) -> Ints:
        """The labels b whose pairs {b, y} are tried; the choice does not depend on names or positions of labels."""
        if self.K * self.K <= _MAX_PAIRS:
            return np.arange(self.K)
        chosen = np.linspace(0, self.K - 1, max(1, _MAX_PAIRS // self.K)).astype(np.int64)
        return self.in_order[chosen]

    @cached_property
    def in_order(self) -> Ints:
        """Labels sorted by the values of all nodes on each label alone."""
        values = [np.broadcast_to(self.single_labels[id(node)], (1, self.K))[0] for node in self.expression.nodes]
        return np.lexsort(values)

    def pairs(self) -> Iterator[tuple[Ints, Floats, Values]]:
        """Blocks of labels b, L({b}), and the values of nodes on {b, y} for every y."""
        step = max(1, min(_BLOCK // self.K, _MAX_CELLS // self.cells_per_set))
        for start in range(0, len(self.companions), step):
            block = self.companions[start : start + step]
            self._count_work(len(block) * self.K)
            grow = Increments(self.expression, len(block))
            grow.push(block)
            yield block, grow.value, grow.nodes_after()

    @cached_property
    def own_costs(self) -> Floats:
        """own(y) of each label."""
        root = id(self.expression.root)
        return np.asarray(np.broadcast_to(self.single_labels[root] - self.empty_set[root], (1, self.K))[0])

    @cached_property
    def typical_cost(self) -> float:
        """The lower median of the positive own(y); 0 if there are none."""
        positive = np.sort(self.own_costs[self.own_costs > 0])
        return float(positive[(len(positive) - 1) // 2]) if len(positive) else 0.0

    @cached_property
    def summands(self) -> tuple[Node, ...]:
        """The summands, also those within a cap min(L, c), without those that were switched off."""
        zeros = [name for name, value in self.loss.params.items() if value == 0]
        off = re.compile(rf"\b(?:{'|'.join(map(re.escape, zeros))})\b") if zeros else None
        parts = _summands(self.expression.root)
        return tuple(
            x for x in parts if not (isinstance(x, Scale) and x.factor == 0) and not (off and off.search(x.text))
        )

    def largest(self, part: Node, enough: float, of: Measure | None = None) -> float:
        """The largest |effect| of the part on the sets of realistic size that are tried; stops above `enough`."""
        of = of or self.effect
        best = 0.0
        for values, shape in self._sets_to_try(part):
            best = max(best, float(np.abs(of(part, values, shape)).max()))
            if best > enough:
                return best
        return best

    def change(self, part: Node, values: Values, shape: tuple[int, ...]) -> Floats:
        """N(S) - N({}): the change of the part itself, whether or not the cost changes with it."""
        return np.broadcast_to(values[id(part)] - self.empty_set[id(part)], shape)

    def _sets_to_try(self, part: Node) -> Iterator[tuple[Values, tuple[int, int]]]:
        """Values of nodes on sets of realistic size: single labels, pairs, and sets that grow."""
        yield self.single_labels, (1, self.K)
        if self.size >= 2:
            yield from ((values, (len(block), self.K)) for block, _, values in self.pairs())
        yield from self._grown_sets(part)

    def _grown_sets(self, part: Node) -> Iterator[tuple[Values, tuple[int, int]]]:
        """All one-label extensions of sets that grow such that a node within the part becomes largest, or smallest."""
        below = [node for node in postorder(part) if not isinstance(node, Constant)]
        objectives: list[Callable[[Values, int], Floats]] = []
        for node in reversed(below):
            objectives += [_objective_of_value(node, 1.0), _objective_of_value(node, -1.0)]
            if isinstance(node, Leaf) and isinstance(growth := node.atom.growth(), Completes):
                objectives.insert(0, _objective_of_members(growth.members, self.K))
        objectives = objectives[: min(_MAX_OBJECTIVES, _MAX_CELLS // self.cells_per_set)]
        place = np.empty(self.K)
        place[self.in_order] = np.arange(self.K)
        grow, shape = Increments(self.expression, len(objectives)), (len(objectives), self.K)
        for held in range(self.size):
            self._count_work(math.prod(shape))
            values = grow.nodes_after()
            yield values, shape
            if held == self.size - 1:
                return
            everything = sum(_rescaled(np.broadcast_to(values[id(node)], shape)) for node in below)
            objective = np.stack(
                [_rescaled(np.broadcast_to(w(values, i), shape[1:])[None])[0] for i, w in enumerate(objectives)]
            )
            order = objective + 1e-4 * everything / len(below) - 1e-9 * place / self.K
            grow.push(np.argmax(np.where(grow.mask, -np.inf, order), axis=1))

    # The findings

    def _triggered_alone(self) -> Iterator[SpecFinding]:
        """W602."""
        for part in self.expression.nodes:
            if not _is_for_combinations(part):
                continue
            alone = self.cost_alone(part) > 0
            if not alone.any() or alone.all():
                continue
            paired = np.zeros(self.K, dtype=bool)
            for block, _, values in self.pairs():
                pays = (self.effect(part, values, (len(block), self.K)) > 0) & ~alone & ~alone[block, None]
                paired |= pays.any(axis=0)
                paired[block] |= pays.any(axis=1)
            if not 0 < alone.sum() <= paired.sum():
                continue
            labels = self._names(alone)
            one = len(labels) == 1
            paid = f"{'pays' if one else 'pay'} {self.loss_unit(self.cost_alone(part).max())}"
            message = f"{first_names(labels)} alone {paid} for {part.text}, a penalty for labels that are open together"
            way_out = (
                f"is {'it' if one else 'each'} meant to belong to more than one of these categories? Take "
                f"{'it' if one else 'them'} out of all but one, or leave it if the cost is meant"
            )
            yield self._found("W602", part, labels, float(self.cost_alone(part).max()), message, way_out)

    def _hardly_ever(self) -> Iterator[SpecFinding]:
        """W603."""
        if not self.typical_cost:
            return
        most = HARDLY_EVER * self.typical_cost if self.price is None else self.price
        if not (self.own_costs > most).any():
            return
        least = self.own_costs.copy()
        root = id(self.expression.root)
        for block, value, values in self.pairs():
            more = np.broadcast_to(values[root] - value[:, None], (len(block), self.K)).copy()
            more[np.arange(len(block)), block] = np.inf
            least = np.minimum(least, more.min(axis=0))
        costly = least > most
        if not costly.any():
            return
        labels, amount = self._names(costly), float(least[costly].min())
        many = len(labels) > 1
        cost = f"{first_names(labels)} cost{'' if many else 's'} {'at least ' if many else ''}{amount:.4g}"
        if self.price is None:
            message = f"{cost}, a typical label {self.typical_cost:.4g}: "
            message += f"{'they' if many else 'it'} will hardly ever be in a set"
        else:
            message = f"{cost}, more than a missed true label is worth ({most:.4g}, the threshold): no set contains "
            message += "them" if many else "it"
        way_out = (
            'is the number right? Otherwise conditional="class" covers each label, and `risk` bounds the harm of misses'
        )
        yield self._found("W603", self.expression.root, labels, amount, message, way_out)

    def _unchanged(self) -> Iterator[SpecFinding]:
        """W604."""
        for part in self.summands:
            conditions = [node.condition for node in postorder(part) if isinstance(node, If)]
            for tried in (part, *conditions):
                if isinstance(tried, Constant) or self.largest(tried, 0.0) > 0:
                    continue
                sets = f"up to {self.size} labels" + (", as many as these rows need" if self.from_rows else "")
                cap, way_out = self.loss.ceiling, "is that meant? If so, it can be left out"
                message = f"{tried.text} is the same for every set of {sets}: it changes no cost"
                if cap is not None and self.largest(tried, 0.0, self.change) > 0:
                    message = (
                        f"{tried.text} changes the cost of no set of {sets}: where it would, the cap of {cap:.4g} is "
                    )
                    message, way_out = message + "reached without it", "is the cap right? If so, it can be left out"
                yield self._found("W604", tried, (), float(self.size), message, way_out)
                break

    def _too_small(self, unchanged: set[str]) -> Iterator[SpecFinding]:
        """W605."""
        enough = TOO_SMALL * self.typical_cost
        for part in self.summands:
            if not enough or part.text in unchanged or (self.cost_alone(part) != 0).all():
                continue
            amount = self.largest(part, enough)
            if 0 < amount <= enough:
                message = (
                    f"{part.text} adds at most {amount:.4g} to a set of up to {self.size} labels, under a hundredth "
                    f"of what a typical label costs ({self.typical_cost:.4g}): it will change hardly any set"
                )
                yield self._found("W605", part, (), amount, message, "is its weight right? If so, it can be left out")

    def _rewards(self) -> Iterator[SpecFinding]:
        """W606 to W608."""
        root = id(self.expression.root)
        empty = float(self.empty_set[root])
        if empty < 0:
            part = min(self.summands, key=lambda x: float(self.empty_set[id(x)]), default=self.expression.root)
            message = f"the empty set costs {self.loss_unit(empty)}, less than nothing"
            if part is not self.expression.root and not all(isinstance(x, Scale | Constant) for x in postorder(part)):
                message += f": {written(part)} is {float(self.empty_set[id(part)]):.4g} there"
            way_out = "is that meant? If not, keep it at 0 there: max(..., 0)"
            yield self._found("W607", part, (), empty, message, way_out)
        drop, below = rewards(self.expression, self.companions, self.size, self.own_costs, self._count_work)
        if drop is not None:
            part = min(self.summands, key=lambda x: drop.changes[id(x)], default=self.expression.root)
            message = (
                f"{written(part)} makes a larger set cheaper: {self._set(drop.labels)} costs "
                f"{self.loss_unit(drop.cost)}, {self._set(drop.smaller)} costs {self.loss_unit(drop.smaller_cost)}"
            )
            way_out = "is the sign right? To let no set cost more than c, write min(..., c)"
            amount = drop.cost - drop.smaller_cost
            labels = tuple(self.loss.labels[y] for y in drop.labels)
            yield self._found("W606", part, labels, amount, message, way_out)
        elif below is not None:
            message = f"{self._set(below.labels)} costs {self.loss_unit(below.cost)}, less than nothing"
            way_out = "is that meant? If not, let the discount be smaller than what its labels cost"
            labels = tuple(self.loss.labels[y] for y in below.labels)
            yield self._found("W608", self.expression.root, labels, below.cost, message, way_out)

    def _set(self, labels: Ints) -> str:
        return f"{{ {', '.join(self.loss.labels[y] for y in labels[:6])}{', ...' if len(labels) > 6 else ''} }}"

    def loss_unit(self, amount: float) -> str:
        return f"{amount:.4g}" + ("" if self.loss.unit is None else f" {self.loss.unit}")

    def _names(self, chosen: Bools) -> tuple[str, ...]:
        return tuple(self.loss.labels[y] for y in np.flatnonzero(chosen))

    def _found(
        self, code: str, part: Node, labels: tuple[str, ...], amount: float, message: str, help: str
    ) -> SpecFinding:
        span: Span = part.span
        return SpecFinding(code, part.text, labels, amount, Diagnostic(code, span, message, help, "warning"))


def _as_written(loss: Loss) -> Expression:
    """The loss with its summands kept apart, even if the compiler has merged them into one function of a count."""
    root = loss.expression.root
    if isinstance(root, Add) or len(loss.written_terms) == 1:
        return loss.expression
    return Expression(Add(root.span, root.K, tuple(term.root for term in loss.written_terms.values())))


def _summands(node: Node) -> Iterator[Node]:
    if isinstance(node, Constant):
        return
    inside: Sequence[Node] = ()
    if isinstance(node, Add):
        inside = node.terms
    elif isinstance(node, Scale) and isinstance(node.operand, Add | Extremum):
        inside = (node.operand,)
    elif isinstance(node, Extremum):
        inside = [x for x in node.operands if not isinstance(x, Constant)]
        inside = inside if len(inside) == 1 else ()
    if not inside:
        yield node
    for part in inside:
        yield from _summands(part)


def _is_for_combinations(node: Node) -> bool:
    """Whether the form of the node shows that it is meant for several labels together."""
    if isinstance(node, Junction):
        return node.both and not any(isinstance(x, Not) for x in postorder(node))
    if isinstance(node, Table):
        f = node.table
        return len(f) > 2 and bool(f[0] == f[1]) and bool((f != f[0]).any())
    return False


def _objective_of_value(node: Node, sign: float) -> Callable[[Values, int], Floats]:
    def objective(values: Values, row: int) -> Floats:
        value = values[id(node)]
        return sign * (value if np.ndim(value) == 0 else value[row])

    return objective


def _objective_of_members(members: Ints, K: int) -> Callable[[Values, int], Floats]:
    inside = np.zeros(K)
    inside[members] = 1.0
    return lambda values, row: inside


def _rescaled(values: Floats) -> Floats:
    """Each row rescaled to [0, 1]."""
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    return np.asarray((values - low) / np.where(high > low, high - low, 1.0))


def findings_table(found: Sequence[SpecFinding]) -> ShownTable:
    """The findings as a table to show; empty if there are none."""
    columns = (
        Column(
            "", lambda x: f"{x.code}, line {x.diagnostic.span.source.position(x.diagnostic.span.start)[0]}", kind="word"
        ),
        Column("", lambda x: (x.diagnostic.message, "\n", Styled(x.diagnostic.help, "dim"))),
    )
    return ShownTable(columns if found else (), found, "Is it what you meant?" if found else "")
