"""Are the proved facts true? Every proved fact of every node of a loss holds, and every refutation refutes.

Nothing here is shared with the prover: each fact is checked by its definition (`_excess`) on all subsets of some
labels: submodularity on squares S + i, S + j, S + i + j, S, monotonicity on steps S, S + i, and so on. Labels that a
counter-example does not need are removed from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.check.meaning import TOLERANCE
from udcp_dsl.check.samples import MOST_LABELS, Row, cubes, drawn_row, fewest, named, shown_row
from udcp_dsl.check.verdicts import CounterExample, Plan, Verdict, assert_verdicts
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.facts import Fact, Facts, Interval, with_facts
from udcp_dsl.expression.prove import additive_forms
from udcp_dsl.expression.values import node_values

if TYPE_CHECKING:
    from udcp_dsl.expression.forms import Additive
    from udcp_dsl.expression.ir import Node
    from udcp_dsl.loss import Loss

_CURVATURE_SIGNS = {"submodular": (1,), "supermodular": (-1,), "separable": (1, -1), "laminar": (1,)}
_MONOTONICITY_SIGNS = {"monotone": 1, "antitone": -1}
_REFUTATION = "refutation"
_ROUNDS, _ROUNDS_OF_ROWS = 4, 8  # of `assert_facts`: each draws cubes, and inputs of a row for each
QUESTION = "is what was proved about it true?"
_CUBES = 3  # per round; one if there are many labels
_MANY_LABELS = 300
_PARTS, _REFUTED = "facts about its parts", "refuted facts"
# The number of sets in a counter-example to a fact; 4 for the facts not listed.
_SHOWN_BY = {"normalized": 1, "nonnegative": 1, "interval": 1, "monotone": 2, "antitone": 2, "cardinality": 2}


@dataclass(frozen=True, eq=False)
class Finding:
    """A claim about a node that does not hold, the sets (k, K) that show it, and the node's values there."""

    node: Node
    name: str  # of the fact, or "interval", or "refutation"
    claim: str
    sets: Bools
    values: tuple[float, ...]
    row: Row = None  # the inputs for which the claim fails

    @property
    def labels(self) -> int:
        """The number of labels in the largest set."""
        return int(self.sets.sum(axis=1).max(initial=0))

    def sentence(self, loss: Loss) -> str:
        """The finding in one sentence."""
        pairs = zip(self.sets, self.values, strict=True)
        shown = ", ".join(f"L({named(loss, mask)}) = {value!r}" for mask, value in pairs)
        return f"{self.node.text!r} {self.claim}" + (f": {shown}" if shown else "") + shown_row(self.row)


def assert_facts(loss: Loss, *, seed: int = 0) -> None:
    """Fail if a fact about a loss, or about a part of it, is wrong: proved but false, or refuted but true.

    With up to 12 labels all sets are tried, otherwise random ones. Inputs are drawn from their ranges.

    Parameters
    ----------
    loss : Loss
        The loss.
    seed : int, default 0
        Random seed for the sets.

    Raises
    ------
    AssertionError
        A fact is wrong; the message shows the smallest sets on which it fails.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> text = "labels {a, b, c}  loss l = max(size - 1, 0) ^ 2 + any({a, b})"
    >>> assert_facts(udcp.loads(text))
    """
    assert_verdicts(loss.name, facts(loss, Plan(seed, _ROUNDS_OF_ROWS if loss.inputs else _ROUNDS, None)))


def false_facts(loss: Loss, masks: Bools, row: Row = None) -> list[Finding]:
    """The proved facts of nodes that fail on a cube of sets, as given by `cubes`.

    For a loss with inputs, facts are tried at the inputs of one row: those proved for all rows, and those proved for
    the loss of that row, in which all numbers are known.
    """
    cube = _Cube(loss, masks)
    forms = {} if loss.inputs else additive_forms(loss.expression)
    values = _values(loss, masks, row)
    found: list[Finding] = []
    for node in loss.expression.nodes:
        f = np.broadcast_to(np.asarray(values[id(node)], dtype=np.float64), len(masks))
        facts = loss.facts_of(node)
        if loss.inputs:  # its form has ranges for numbers: checked in the loss of the row
            facts = with_facts(facts, {"tree_diameter": replace(facts.tree_diameter, state="unknown")})
        found += cube.judge(node, f, facts, forms.get(id(node)))
    if loss.inputs:
        found += false_facts(loss.at(row), masks)
    return [replace(x, row=row) for x in found] if loss.inputs else found


def _values(loss: Loss, masks: Bools, row: Row) -> dict[int, Floats]:
    """The values of every node; with inputs, at those of `row`, or at the example that refutations use."""
    if not loss.inputs:
        return node_values(loss.expression, masks)
    one = {name: x.example for name, x in loss.inputs.items()} if row is None else row
    given = {name: np.repeat(np.asarray(one[name])[None], len(masks), axis=0) for name in loss.inputs}
    return node_values(loss.expression, masks, given)


def smallest_finding(loss: Loss, found: Sequence[Finding]) -> Finding:
    """The finding with the smallest sets, without the common labels that it does not need."""
    smallest = min(found, key=lambda x: x.labels)
    if len(smallest.sets) != _SHOWN_BY.get(smallest.name, 4) or smallest.name == _REFUTATION:
        return smallest
    if not any(node is smallest.node for node in loss.expression.nodes):  # it belongs to the loss of a row
        return smallest
    node, interval = smallest.node, loss.facts_of(smallest.node).interval
    common = np.flatnonzero(smallest.sets.all(axis=0))

    def on(kept: list[int]) -> tuple[Bools, Floats]:
        sets = smallest.sets.copy()
        sets[:, common] = False
        sets[:, kept] = True
        values = np.broadcast_to(_values(loss, sets, smallest.row)[id(node)], len(sets))
        return sets, np.asarray(values, dtype=np.float64)

    def still(sets: Bools, values: Floats) -> bool:
        empty_only = smallest.name == "normalized" and bool(sets.any())
        return not empty_only and bool(_breaks(smallest.name, values[None], interval)[0])

    kept = fewest(common.tolist(), lambda some: still(*on(some)))
    sets, values = on(kept)
    return Finding(node, smallest.name, smallest.claim, sets, tuple(values.tolist()), smallest.row)


class _Cube:
    """All subsets of m labels: steps are pairs (S, S + i), and squares are (S + i, S + j, S + i + j, S)."""

    def __init__(self, loss: Loss, masks: Bools) -> None:
        self.loss = loss
        self.masks = masks
        self.m = m = len(masks).bit_length() - 1
        every = np.arange(len(masks))
        self.size = masks.sum(axis=1)
        self.steps = np.concatenate([_without(every, 1 << i, (0, 1 << i)) for i in range(m)])
        pairs = [(1 << i, 1 << j) for i, j in combinations(range(m), 2)]
        squares = [_without(every, a | b, (a, b, a | b, 0)) for a, b in pairs]
        self.squares = np.concatenate([*squares, np.empty((0, 4), dtype=np.int64)])

    def judge(self, node: Node, f: Floats, facts: Facts, form: Additive | None) -> list[Finding]:
        """The findings against the facts of a node with the values f."""
        lo, hi = facts.interval
        found: list[Finding] = []
        if lo > hi:
            claim = f"has the interval [{lo!r}, {hi!r}], which runs backwards"
            found.append(Finding(node, "interval", claim, self.masks[:0], ()))
        claims = {name: f"is not {name}, which is proved" for name, fact in facts if fact}
        for name, about in {**claims, "interval": f"is outside its interval [{lo!r}, {hi!r}]"}.items():
            rows = self._tried(name, f)
            against = rows[_breaks(name, f[rows], facts.interval)]
            if len(against):  # the smallest
                sets = against[self.size[against].max(axis=1).argmin()]
                found.append(Finding(node, name, about, self.masks[sets], tuple(f[sets].tolist())))
            elif name == "laminar" and not self._laminar(f):
                found += self._unlike(node, name, f, f"{about}: no sum of nested categories has its values")
            elif name == "tree_diameter" and not (form is not None and self._tree_diameter(f, form)):
                found += self._unlike(node, name, f, f"{about}: it is not a tree's diameter and a laminar rest")
        return found

    def _tried(self, name: str, f: Floats) -> Ints:
        """The numbers of the sets (n, k) on which a fact is tried; a counter-example has k of them."""
        if name == "cardinality":
            same = [np.flatnonzero(self.size == size) for size in np.unique(self.size)]
            return np.array([[x[f[x].argmin()], x[f[x].argmax()]] for x in same])
        if name == "normalized":
            return np.flatnonzero(self.size == 0)[:, None]
        if name in _CURVATURE_SIGNS:
            return self.squares
        return self.steps if name in _MONOTONICITY_SIGNS else np.arange(len(self.masks))[:, None]

    def _unlike(self, node: Node, name: str, f: Floats, claim: str) -> list[Finding]:
        """A finding that only the whole cube shows, not a few of its sets."""
        return [Finding(node, name, claim, self.masks[-1:], (float(f[-1]),))]

    def _laminar(self, f: Floats) -> bool:
        """Whether f is a constant plus label costs plus nonnegative weights of nested or disjoint categories.

        Every set function is uniquely a constant plus a sum of w_C any(C), and the sum of w_C over C inside T is
        f(all) - f(all but T), so Moebius inversion gives w.
        """
        w = (f[-1] - f[::-1]).copy()
        every = np.arange(len(f))
        for i in range(self.m):
            inside = (every >> i) & 1 == 1
            w[inside] -= w[every[inside] ^ (1 << i)]
        bits = every[np.abs(w) > TOLERANCE * max(1.0, float(np.abs(f).max()))]
        several = [int(c) for c in bits if int(c).bit_count() > 1]
        nested = len(several) <= 2 * self.m and all(a & b in (0, a, b) for a, b in combinations(several, 2))
        return nested and bool((w[several] >= 0).all())

    def _tree_diameter(self, f: Floats, form: Additive) -> bool:
        if len(form.diameters) != 1:
            return False
        ((weight, metric),) = form.diameters.values()
        common = np.flatnonzero(self.masks.all(axis=0))
        free = np.flatnonzero(self.masks.any(axis=0) & ~self.masks.all(axis=0))
        held = max((int(metric.edges(common[i : i + 1])[0, common].max()) for i in range(len(common))), default=0)
        to_any = metric.edges(free)
        to_common, to_free = to_any[:, common].max(axis=1, initial=0), to_any[:, free]
        inside = self.masks[:, free]
        pairs = np.where(inside[:, :, None] & inside[:, None, :], to_free, 0).max(axis=(1, 2), initial=0)
        farthest = np.maximum(np.maximum(pairs, np.where(inside, to_common, 0).max(axis=1, initial=0)), held)
        return weight >= 0 and self._laminar(f - weight * farthest)


def _without(every: Ints, bits: int, added: Sequence[int]) -> Ints:
    """The sets S without `bits`, as columns: S with each of `added`."""
    S = every[every & bits == 0]
    return np.asarray(S[:, None] | np.array(added))


def _excess(name: str, v: Floats, interval: Interval) -> Floats:
    """By how much values (n, k) on the sets of counter-examples break a fact; it holds where this is not above 0."""
    if name == "normalized":
        return np.abs(v[:, 0])
    if name == "nonnegative":
        return -v[:, 0]
    if name == "interval":
        return np.maximum(interval.lo - v[:, 0], v[:, 0] - interval.hi)
    if name in _MONOTONICITY_SIGNS:
        return _MONOTONICITY_SIGNS[name] * (v[:, 0] - v[:, 1])
    if name == "cardinality":
        return np.abs(v[:, 1] - v[:, 0])
    if name not in _CURVATURE_SIGNS:
        return np.full(len(v), -np.inf)
    gap = v[:, 0] + v[:, 1] - v[:, 2] - v[:, 3]
    return np.max([-sign * gap for sign in _CURVATURE_SIGNS[name]], axis=0)  # type: ignore[no-any-return]


def _breaks(name: str, v: Floats, interval: Interval) -> Bools:
    """Where values (n, k) break a fact by more than rounding."""
    slack = TOLERANCE * np.maximum(1.0, np.abs(v).max(axis=1, initial=0.0))
    return np.asarray(~(_excess(name, v, interval) <= slack))  # NaN breaks all


def false_refutations(loss: Loss) -> list[Finding]:
    """The refuted facts of nodes whose counter-examples do not refute them."""
    found = []
    for node in loss.expression.nodes:
        for name, fact in loss.facts_of(node):
            if fact.state != "refuted":
                continue
            masks = np.array([loss.mask(S) for S in fact.sets]).reshape(len(fact.sets), loss.K)
            values = np.broadcast_to(_values(loss, masks, None)[id(node)], len(masks))
            if not _refutes(name, fact, values):
                claim = f"is misjudged: {name} is refuted, but not by"
                found.append(Finding(node, _REFUTATION, claim, masks, tuple(values.tolist())))
    return found


def _refutes(name: str, fact: Fact, values: Floats) -> bool:
    """Whether the sets of a refutation and their values contradict the definition of the fact."""
    sets = fact.sets
    if len(sets) != _SHOWN_BY.get(name, 4):
        return False
    if name == "normalized":
        related = not sets[0]
    elif name in _MONOTONICITY_SIGNS:
        related = sets[0] < sets[1]
    elif name == "cardinality":
        related = len(sets[0]) == len(sets[1])
    elif name in _CURVATURE_SIGNS:
        related = sets[2] == sets[0] | sets[1] and sets[3] == sets[0] & sets[1]
    else:
        related = name == "nonnegative"
    return related and bool(_excess(name, values[None], Interval(-np.inf, np.inf))[0] > 0)


def facts(loss: Loss, plan: Plan) -> list[Verdict]:
    """A verdict per proved fact of the loss, and for its interval, the facts of its parts, and the refutations."""
    found: list[Finding] = []
    sets = 0
    for rng in plan.rounds_of("facts"):
        for masks in cubes(loss, rng, many=_CUBES if loss.K <= _MANY_LABELS else 1):
            found += false_facts(loss, masks, drawn_row(loss, rng))
            sets += len(masks)
        if found or (loss.K <= MOST_LABELS and not loss.inputs):  # then all sets were tried
            break
    root = loss.expression.root
    against: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        against[finding.name if finding.node is root else _PARTS].append(finding)
    proved = {name: f"it is {name}" for name, fact in loss.facts if fact}
    claims = {**proved, "interval": "all costs are within its bounds", _PARTS: _PARTS}
    verdicts = [
        Verdict(claim, not against[name], sets, _note(loss, name), _shown(loss, against[name]))
        for name, claim in claims.items()
    ]
    wrong = false_refutations(loss)
    refuted = sum(fact.state == "refuted" for node in loss.expression.nodes for _, fact in loss.facts_of(node))
    return [*verdicts, Verdict(_REFUTED, not wrong, refuted, "", _shown(loss, wrong))]


def _note(loss: Loss, name: str) -> str:
    return f"{len(loss.expression.nodes)} parts" if name == _PARTS else ""


def _shown(loss: Loss, found: list[Finding]) -> CounterExample | None:
    if not found:
        return None
    smallest = smallest_finding(loss, found)
    sets = tuple(tuple(loss.labels[y] for y in np.flatnonzero(mask)) for mask in smallest.sets)
    return CounterExample(smallest.sentence(loss), sets=sets)
