"""Whether what is proved of a loss holds, and what is refuted does not: every fact of every node, on sets of labels.

Nothing here is shared with the prover: each fact is its definition, checked on all subsets of some labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.domain import Bools, Floats, Ints
from udcp_dsl.facts import Fact, Facts
from udcp_dsl.prove import additive_forms
from udcp_dsl.testing.cubes import cubes
from udcp_dsl.testing.meaning import TOLERANCE
from udcp_dsl.values import node_values

if TYPE_CHECKING:
    from udcp_dsl.forms import Additive
    from udcp_dsl.loss import Loss

_SQUARES = {"submodular": (1,), "supermodular": (-1,), "separable": (1, -1), "laminar": (1,)}
_STEPS = {"monotone": 1, "antitone": -1}


@dataclass(frozen=True)
class Finding:
    """What is wrong with a fact, and the labels of the sets that show it."""

    labels: int
    text: str


def assert_facts(loss: Loss, *, seed: int = 0) -> None:
    """Assert of every node of a loss that proved facts hold, refuted ones do not, and the interval holds all values.

    On every set of up to 12 labels, else on sets drawn from `seed`; an AssertionError shows the fact that fails on the
    smallest sets.

    >>> import udcp_dsl as udcp
    >>> assert_facts(udcp.loads("labels {a, b, c}  loss l = max(size - 1, 0) ^ 2 + any({a, b})"))
    """
    rng = np.random.default_rng(seed)
    forms = additive_forms(loss.expression)
    findings: list[Finding] = []
    for masks in cubes(loss, rng):
        cube = _Cube(loss, masks)
        values = node_values(loss.expression, masks)
        for node in loss.expression.nodes:
            f = np.broadcast_to(np.asarray(values[id(node)], dtype=np.float64), len(masks))
            found = cube.judge(f, loss.facts_of(node), forms[id(node)])
            findings.extend(Finding(x.labels, f"{node.text!r} {x.text}") for x in found)
    for node in loss.expression.nodes:
        findings.extend(_refutations(loss, node.text, id(node), loss.facts_of(node)))
    if findings:
        raise AssertionError(f"{loss.name}: {min(findings, key=lambda x: x.labels).text}")


class _Cube:
    """All subsets of m labels: steps are pairs S, S + i, and squares are S, S + i, S + j, S + i + j."""

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

    def judge(self, f: Floats, facts: Facts, form: Additive | None) -> list[Finding]:
        """What is wrong with the facts of a function with the values f."""
        found = [x for name, fact in facts if fact for x in self._counter_example(name, f, form)]
        return found + self._interval(f, facts)

    def _interval(self, f: Floats, facts: Facts) -> list[Finding]:
        lo, hi = facts.interval
        slack = TOLERANCE * np.maximum(1.0, np.abs(f))
        outside = np.flatnonzero(~((f >= lo - slack) & (f <= hi + slack)))
        found = [] if lo <= hi else [Finding(0, f"has the interval [{lo!r}, {hi!r}], which runs backwards")]
        return found + self._shown(outside[:, None], f, f"is outside its interval [{lo!r}, {hi!r}]")

    def _counter_example(self, name: str, f: Floats, form: Additive | None) -> list[Finding]:
        claim = f"is not {name}, which is proved"
        found: list[Finding] = []
        if name == "normalized":
            return self._shown(np.flatnonzero((self.size == 0) & (np.abs(f) > TOLERANCE))[:, None], f, claim)
        if name == "nonnegative":
            return self._shown(np.flatnonzero(f < -TOLERANCE * np.maximum(1.0, np.abs(f)))[:, None], f, claim)
        if name in _STEPS:
            gap = _STEPS[name] * (f[self.steps[:, 1]] - f[self.steps[:, 0]])
            return self._shown(self.steps[gap < -_slack(f, self.steps)], f, claim)
        if name in _SQUARES:
            values = f[self.squares]
            gap = values[:, 0] + values[:, 1] - values[:, 2] - values[:, 3]
            for sign in _SQUARES[name]:
                found += self._shown(self.squares[sign * gap < -_slack(f, self.squares)], f, claim)
        if name == "cardinality":
            for size in np.unique(self.size):
                same = np.flatnonzero(self.size == size)
                ends = np.array([[same[f[same].argmin()], same[f[same].argmax()]]])
                found += self._shown(ends[f[ends[:, 1]] - f[ends[:, 0]] > _slack(f, ends)], f, claim)
        if name == "laminar" and not found and not self._laminar(f):
            found.append(Finding(self.m, f"{claim}: no sum of nested categories has these values"))
        if name == "tree_diameter" and not (form is not None and self._tree_diameter(f, form)):
            found.append(Finding(self.m, f"{claim}: it is not a tree's diameter and a laminar rest"))
        return found

    def _laminar(self, f: Floats) -> bool:
        """Whether f is a constant, label costs and nonnegative weights on nested categories.

        Every set function is, in one way, a constant + a sum of w_C any(C), and the sum of w_C over C inside T is
        f(all) - f(all but T): Moebius inversion gives w.
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
        apart = metric.edges(np.arange(self.loss.K))
        farthest = np.array([apart[np.ix_(mask, mask)].max(initial=0) for mask in self.masks])
        return weight >= 0 and self._laminar(f - weight * farthest)

    def _shown(self, rows: Ints, f: Floats, claim: str) -> list[Finding]:
        """The row of sets with fewest labels, of those that show a claim to be false."""
        if not len(rows):
            return []
        labels = self.size[rows].max(axis=1)
        sets = rows[labels.argmin()]
        shown = ", ".join(f"L({_named(self.loss, self.masks[s])}) = {float(f[s])!r}" for s in sets)
        return [Finding(int(labels.min()), f"{claim}: {shown}")]


def _without(every: Ints, bits: int, added: Sequence[int]) -> Ints:
    """For the sets without `bits`: each with one of `added` after the other, as columns."""
    S = every[every & bits == 0]
    return np.asarray(S[:, None] | np.array(added))


def _slack(f: Floats, rows: Ints) -> Floats:
    return np.asarray(TOLERANCE * np.maximum(1.0, np.abs(f[rows]).max(axis=1)))


def _named(loss: Loss, mask: Bools) -> str:
    return "{" + ", ".join(loss.labels[y] for y in np.flatnonzero(mask)) + "}"


def _refutations(loss: Loss, text: str, node: int, facts: Facts) -> list[Finding]:
    """Refuted facts whose sets do not refute them."""
    found = []
    for name, fact in facts:
        if fact.state == "refuted":
            masks = np.array([loss.mask(S) for S in fact.sets]).reshape(len(fact.sets), loss.K)
            values = np.broadcast_to(node_values(loss.expression, masks)[node], len(masks))
            if not _refutes(name, fact, values):
                shown = ", ".join(f"L({_named(loss, m)}) = {v!r}" for m, v in zip(masks, values.tolist(), strict=True))
                found.append(Finding(0, f"{text!r}: {name} is refuted, but not by {shown}"))
    return found


def _refutes(name: str, fact: Fact, values: Floats) -> bool:
    """Whether the sets of a refutation and the values there are what the fact forbids, by its definition."""
    sets, v = fact.sets, values.tolist()
    shape: Mapping[str, int] = {"normalized": 1, "nonnegative": 1, "monotone": 2, "antitone": 2, "cardinality": 2}
    if len(sets) != shape.get(name, 4):
        return False
    if name == "normalized":
        return not sets[0] and v[0] != 0
    if name == "nonnegative":
        return bool(v[0] < 0)
    if name in _STEPS:
        return sets[0] < sets[1] and _STEPS[name] * (v[1] - v[0]) < 0
    if name == "cardinality":
        return len(sets[0]) == len(sets[1]) and v[0] != v[1]
    if name not in _SQUARES or sets[2] != sets[0] | sets[1] or sets[3] != sets[0] & sets[1]:
        return False
    gap = v[0] + v[1] - v[2] - v[3]
    return any(sign * gap < 0 for sign in _SQUARES[name])
