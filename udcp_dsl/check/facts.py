"""Check every fact of every node of a loss: those that are proved hold, and those that are refuted do not.

Nothing here is shared with the prover: each fact is checked by its definition, on all subsets of some labels.
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
from udcp_dsl.check.verdicts import CounterExample, Verdict
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.facts import Fact, Facts, Interval, with_facts
from udcp_dsl.expression.prove import additive_forms
from udcp_dsl.expression.values import node_values

if TYPE_CHECKING:
    from udcp_dsl.check.verdicts import Plan
    from udcp_dsl.expression.forms import Additive
    from udcp_dsl.expression.ir import Node
    from udcp_dsl.loss import Loss

_CURVATURE_SIGNS = {"submodular": (1,), "supermodular": (-1,), "separable": (1, -1), "laminar": (1,)}
_MONOTONICITY_SIGNS = {"monotone": 1, "antitone": -1}
_REFUTATION = "refutation"
_ROWS = 4  # rows for whose inputs facts are tried
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
    rng = np.random.default_rng(seed)
    rows: list[Row] = [drawn_row(loss, rng) for _ in range(_ROWS)] if loss.inputs else [None]
    found = [x for masks in cubes(loss, rng) for row in rows for x in false_facts(loss, masks, row)]
    found += false_refutations(loss)
    if found:
        raise AssertionError(f"{loss.name}: {smallest_finding(loss, found).sentence(loss)}")


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

    kept = fewest(common.tolist(), lambda some: _violates(smallest.name, *on(some), interval))
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
        found = [x for name, fact in facts if fact for x in self._counter_example(node, name, f, form)]
        lo, hi = facts.interval
        if lo > hi:
            claim = f"has the interval [{lo!r}, {hi!r}], which runs backwards"
            found.append(Finding(node, "interval", claim, self.masks[:0], ()))
        slack = TOLERANCE * np.maximum(1.0, np.abs(f))
        outside = np.flatnonzero(~((f >= lo - slack) & (f <= hi + slack)))
        found += self._shown(node, "interval", outside[:, None], f, f"is outside its interval [{lo!r}, {hi!r}]")
        return found

    def _counter_example(self, node: Node, name: str, f: Floats, form: Additive | None) -> list[Finding]:
        claim = f"is not {name}, which is proved"
        found: list[Finding] = []
        if name == "normalized":
            rows = np.flatnonzero((self.size == 0) & (np.abs(f) > TOLERANCE))[:, None]
            return self._shown(node, name, rows, f, claim)
        if name == "nonnegative":
            rows = np.flatnonzero(f < -TOLERANCE * np.maximum(1.0, np.abs(f)))[:, None]
            return self._shown(node, name, rows, f, claim)
        if name in _MONOTONICITY_SIGNS:
            gap = _MONOTONICITY_SIGNS[name] * (f[self.steps[:, 1]] - f[self.steps[:, 0]])
            return self._shown(node, name, self.steps[gap < -_slack(f, self.steps)], f, claim)
        if name in _CURVATURE_SIGNS:
            values = f[self.squares]
            gap = values[:, 0] + values[:, 1] - values[:, 2] - values[:, 3]
            for sign in _CURVATURE_SIGNS[name]:
                found += self._shown(node, name, self.squares[sign * gap < -_slack(f, self.squares)], f, claim)
        if name == "cardinality":
            for size in np.unique(self.size):
                same = np.flatnonzero(self.size == size)
                ends = np.array([[same[f[same].argmin()], same[f[same].argmax()]]])
                found += self._shown(node, name, ends[f[ends[:, 1]] - f[ends[:, 0]] > _slack(f, ends)], f, claim)
        if name == "laminar" and not found and not self._laminar(f):
            found += self._unlike(node, name, f, f"{claim}: no sum of nested categories has its values")
        if name == "tree_diameter" and not (form is not None and self._tree_diameter(f, form)):
            found += self._unlike(node, name, f, f"{claim}: it is not a tree's diameter and a laminar rest")
        return found

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

    def _shown(self, node: Node, name: str, rows: Ints, f: Floats, claim: str) -> list[Finding]:
        """A finding with the smallest of the counter-examples `rows`; empty if there are none."""
        if not len(rows):
            return []
        sets = rows[self.size[rows].max(axis=1).argmin()]
        return [Finding(node, name, claim, self.masks[sets], tuple(f[sets].tolist()))]


def _without(every: Ints, bits: int, added: Sequence[int]) -> Ints:
    """The sets S without `bits`, as columns: S with each of `added`."""
    S = every[every & bits == 0]
    return np.asarray(S[:, None] | np.array(added))


def _slack(f: Floats, rows: Ints) -> Floats:
    return np.asarray(TOLERANCE * np.maximum(1.0, np.abs(f[rows]).max(axis=1)))


def _violates(name: str, sets: Bools, values: Floats, interval: Interval) -> bool:
    """Whether the values on the sets of a counter-example break a fact."""
    v, slack = values, TOLERANCE * max(1.0, float(np.abs(values).max()))
    if name == "normalized":
        return not sets.any() and abs(v[0]) > TOLERANCE
    if name == "nonnegative":
        return bool(v[0] < -slack)
    if name == "interval":
        return not interval.lo - slack <= v[0] <= interval.hi + slack
    if name in _MONOTONICITY_SIGNS:
        return bool(_MONOTONICITY_SIGNS[name] * (v[1] - v[0]) < -slack)
    if name == "cardinality":
        return bool(v[1] - v[0] > slack)
    return any(sign * (v[0] + v[1] - v[2] - v[3]) < -slack for sign in _CURVATURE_SIGNS[name])


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
    sets, v = fact.sets, values.tolist()
    if len(sets) != _SHOWN_BY.get(name, 4):
        return False
    if name == "normalized":
        return not sets[0] and v[0] != 0
    if name == "nonnegative":
        return bool(v[0] < 0)
    if name in _MONOTONICITY_SIGNS:
        return sets[0] < sets[1] and _MONOTONICITY_SIGNS[name] * (v[1] - v[0]) < 0
    if name == "cardinality":
        return len(sets[0]) == len(sets[1]) and v[0] != v[1]
    if name not in _CURVATURE_SIGNS or sets[2] != sets[0] | sets[1] or sets[3] != sets[0] & sets[1]:
        return False
    gap = v[0] + v[1] - v[2] - v[3]
    return any(sign * gap < 0 for sign in _CURVATURE_SIGNS[name])


# Are the proved facts true? Tries to refute every proved fact of every subexpression, and checks every refutation.
#
# Submodularity is tried on squares S, S + i, S + j, S + i + j, monotonicity on steps S, S + i, and so on, over all
# subsets of some labels. Labels that a counter-example does not need are removed from it.


QUESTION = "is what was proved about it true?"
_CUBES = 3  # per round; one if there are many labels
_MANY_LABELS = 300
_PARTS, _REFUTED = "facts about its parts", "refuted facts"


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
