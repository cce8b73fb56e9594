"""Facts of every node of an expression: rules from the leaves up, then a search for sets that refute the rest.

The search evaluates all subsets of a few informative labels, alone and together with all others. It never proves
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, zip_longest

import numpy as np

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.domain import Bools, Floats, Ints, numbered_sets
from udcp_dsl.expression.facts import TOLERANCE, Fact, Facts, Interval, Rules, close, unknown, with_facts
from udcp_dsl.expression.forms import Additive, structure
from udcp_dsl.expression.inputs import ends_on, has_row_numbers
from udcp_dsl.expression.ir import Add, Expression, Node
from udcp_dsl.expression.values import node_values
from udcp_dsl.per_row import larger, smaller

# Rounding error of the four values f(S+i), f(S+j), f(S+i+j), f(S) together, relative to the terms that cancel in them.
_ROUNDING = 4 * 2.0**-52
_CANCELS = "terms so large may cancel that rounding changes what is left of them"
# All subsets of this many labels are tried: of _PROBED, or of _PROBED_OF_MANY if there are more than _MANY in all, and
# of fewer where sets times labels times atoms would exceed _MOST_PROBED; so many entries are evaluated at a time.
_PROBED, _PROBED_OF_MANY, _MANY = 10, 7, 200
_MOST_PROBED, _BLOCK = 1 << 25, 1 << 20
# Labels and members of all additive forms of a loss, 128 MB; a category takes as long as so many of them.
_MOST_LISTED, _CATEGORY = 1 << 24, 100
_MOST_REFUTED = 2000  # nodes: with more of them, only the facts of the loss itself are refuted
_MOST_NAMED = 1 << 20  # labels times nodes: beyond, nearly full sets are not tried, as each refutation lists its sets


def additive_forms(expression: Expression) -> dict[int, Additive | None]:
    """The additive form of every node, by `id`; None if it has none, or if the forms would take too much memory."""
    forms: dict[int, Additive | None] = {}
    listed: dict[int, Ints] = {}  # the members of categories, by `id`: forms share them
    entries = 0
    for node in expression.nodes:
        parts = [forms[id(part)] for part in node.children]
        form = node.additive(*parts) if entries <= _MOST_LISTED else None
        forms[id(node)] = form
        for part in () if form is None else form.categories.values():
            entries += _CATEGORY + (0 if id(part.members) in listed else len(part.members))
            listed[id(part.members)] = part.members
        entries += 0 if form is None else node.K
    return forms


def prove(expression: Expression, labels: Sequence[str], *, refute: bool = True) -> dict[int, Facts]:
    """The facts of every node, by `id`.

    If numbers come with each row, facts hold for all rows, and none is refuted, because a refutation is of one row.
    """
    by_row = has_row_numbers(expression)
    ends = _ends(expression, by_row)
    forms = additive_forms(expression)
    known: dict[int, Facts] = {}
    blames: dict[int, Span] = {}
    rounded: set[int] = set()  # nodes whose values differ from their additive form by rounding
    for node in expression.nodes:
        parts = node.children
        blames[id(node)] = next((blames[id(part)] for part in parts if forms[id(part)] is None), node.span)
        rules = node.rules(*(known[id(part)] for part in parts))
        more, tight = structure(forms[id(node)], rules.facts, blames[id(node)])
        cancels = _cancels(node, known)
        if cancels:
            rules = _drop_curvature_facts(rules, node.span)
        if cancels or any(id(part) in rounded for part in parts):
            rounded.add(id(node))
            more, tight = dict.fromkeys(("laminar", "tree_diameter"), unknown(_CANCELS, blames[id(node)])), None
        known[id(node)] = close(rules, more, tight, *ends[id(node)])
    return _refute(expression, known, labels) if refute and not by_row else known


def _ends(expression: Expression, by_row: bool) -> dict[int, tuple[Interval, Interval]]:
    """The interval of every node, by `id`, on the empty set and on the set of all labels."""
    mask = np.zeros((2, expression.root.K), dtype=bool)
    mask[1] = True
    if by_row:
        empty, full = (ends_on(expression, members) for members in mask)
        return {node: (empty[node], full[node]) for node in empty}
    values = node_values(expression, mask)
    pairs = {node: np.broadcast_to(value, 2).tolist() for node, value in values.items()}
    return {node: (Interval(a, a), Interval(b, b)) for node, (a, b) in pairs.items()}


def _cancels(node: Node, known: dict[int, Facts]) -> bool:
    """Whether rounding is visible in a sum whose terms cancel, as in sum(c) - 1e16 * any(C) with a cost of 1e16."""
    if not isinstance(node, Add):
        return False
    ends = [known[id(part)].interval for part in node.children]
    up, down = sum(larger(end.hi, 0.0) for end in ends), sum(larger(-end.lo, 0.0) for end in ends)
    return bool(_ROUNDING * smaller(up, down) > TOLERANCE)


def _drop_curvature_facts(rules: Rules, span: Span) -> Rules:
    """Drop the facts that compare four values. Rounding spares the others: a sum of monotone terms stays monotone."""
    lost = unknown(_CANCELS, span)
    return Rules(rules.interval, {**rules.facts, **dict.fromkeys(("separable", "submodular", "supermodular"), lost)})


def _refute(expression: Expression, known: dict[int, Facts], labels: Sequence[str]) -> dict[int, Facts]:
    """Try to refute unknown facts, first with small sets, then with nearly full ones."""
    K = expression.root.K
    room = max(4, _MOST_PROBED // (K * max(1, len(expression.atoms))))
    probed = probed_labels(expression, _PROBED if K <= _MANY else min(_PROBED_OF_MANY, room.bit_length() - 1))
    m = len(probed)
    subsets = numbered_sets(np.arange(1 << m), m)
    others = np.delete(np.arange(K), probed)
    full = len(others) > 0 and K * len(expression.nodes) <= _MOST_NAMED
    for background in (others[:0], others) if full else (others[:0],):
        mask = np.zeros((len(subsets), K), dtype=bool)
        mask[:, background] = True
        mask[:, probed] = subsets
        values = _values_on(expression, mask)
        for node in expression.nodes if len(expression.nodes) <= _MOST_REFUTED else (expression.root,):
            facts = known[id(node)]
            open_facts = [name for name, fact in facts if fact.state == "unknown" and name in _VIOLATIONS]
            if open_facts:
                f = values[id(node)]
                found = {name: _refutation(name, f, m, mask, labels) for name in open_facts}
                shown = {
                    name: replace(refuted, blame=getattr(facts, name).blame)
                    for name, refuted in found.items()
                    if refuted is not None
                }
                known[id(node)] = with_facts(facts, shown)
    return known


def _values_on(expression: Expression, mask: Bools) -> dict[int, Floats]:
    """The value of every node, by `id`, on each of the sets."""
    rows = max(1, _BLOCK // mask.shape[1])
    values = np.empty((len(expression.nodes), len(mask)))
    for start in range(0, len(mask), rows):
        found = node_values(expression, mask[start : start + rows])
        for row, node in zip(values, expression.nodes, strict=True):
            row[start : start + rows] = found[id(node)]
    return {id(node): row for row, node in zip(values, expression.nodes, strict=True)}


def probed_labels(expression: Expression, most: int) -> Ints:
    """The labels to probe: those that the atoms suggest, taken in turns, then the first of the rest."""
    K = expression.root.K
    turns = zip_longest(*(atom.probes() for atom in expression.atoms.values()))
    wanted = [y for turn in turns for y in turn if y is not None]
    return np.array(list(dict.fromkeys([*wanted, *range(min(K, most))]))[: min(most, K)], dtype=np.int64)


def _refutation(name: str, f: Floats, m: int, mask: Bools, labels: Sequence[str]) -> Fact | None:
    hit = _VIOLATIONS[name](f, m, TOLERANCE * max(1.0, float(np.abs(f).max())))
    if hit is None:
        return None
    sets, reason = hit
    shown = reason.format(*(_named(mask[s], labels) for s in sets), *(f"{f[s] + 0.0:g}" for s in sets))
    return Fact("refuted", shown, sets=tuple(_members(mask[s], labels) for s in sets))


def _members(row: Bools, labels: Sequence[str]) -> frozenset[str]:
    return frozenset(labels[y] for y in np.flatnonzero(row).tolist())


def _named(row: Bools, labels: Sequence[str]) -> str:
    many = int(row.sum())
    if many <= 6 or 2 * many <= len(row):
        return "{" + ", ".join(labels[y] for y in np.flatnonzero(row).tolist()) + "}"
    if many == len(row):
        return "{all labels}"
    return "{all but " + ", ".join(labels[y] for y in np.flatnonzero(~row).tolist()) + "}"


Hit = tuple[tuple[int, ...], str]


@cache
def _sizes(m: int) -> Ints:
    """The size of each subset of m labels; sets are bit patterns."""
    return np.array([s.bit_count() for s in range(1 << m)], dtype=np.int64)


@cache
def _without(m: int, many: int) -> tuple[Ints, Ints]:
    """For each choice of `many` of m labels: their bits, and all sets that contain none of them."""
    bits = np.array([[1 << y for y in choice] for choice in combinations(range(m), many)], dtype=np.int64)
    every = np.arange(1 << m)
    return bits, np.array([every[every & chosen.sum() == 0] for chosen in bits], dtype=np.int64)


def _smallest(bad: Bools, sets: Ints, m: int) -> tuple[int, int] | None:
    """The bad set with the fewest labels and its row, if any; `bad` and `sets` have one row per choice of labels."""
    if not bad.any():
        return None
    rank = np.where(bad, _sizes(m)[sets] << m | sets, np.iinfo(np.int64).max).min(axis=1)
    row = int((rank >> m).argmin())
    return row, int(rank[row]) & ((1 << m) - 1)


def _find_negative(f: Floats, m: int, slack: float) -> Hit | None:
    hit = _smallest(f[None] < -slack, np.arange(len(f))[None], m)
    return None if hit is None else ((hit[1],), "L({0}) = {1}")


def _monotonicity_search(sign: int) -> Callable[[Floats, int, float], Hit | None]:
    def search(f: Floats, m: int, slack: float) -> Hit | None:
        bits, S = _without(m, 1)
        hit = _smallest(sign * (f[S | bits] - f[S]) < -slack, S, m)
        if hit is None:
            return None
        row, s = hit
        return (s, s | int(bits[row, 0])), f"L({{0}}) = {{2}} {'>' if sign > 0 else '<'} {{3}} = L({{1}})"

    return search


def _curvature_search(kinds: tuple[int, ...]) -> Callable[[Floats, int, float], Hit | None]:
    """Compare f(S+i) + f(S+j) with f(S+i+j) + f(S); a difference whose sign is in `kinds` is a violation."""

    def search(f: Floats, m: int, slack: float) -> Hit | None:
        if m < 2:
            return None
        bits, S = _without(m, 2)
        i, j = bits[:, :1], bits[:, 1:]
        gap = f[S | i] + f[S | j] - f[S | i | j] - f[S]
        bad = np.stack([kind * gap > slack for kind in kinds], axis=1)
        hit = _smallest(bad.reshape(-1, S.shape[1]), S.repeat(len(kinds), axis=0), m)
        if hit is None:
            return None
        (row, which), s = divmod(hit[0], len(kinds)), hit[1]
        sign = ">" if kinds[which] > 0 else "<"
        a, b = (s | int(bit) for bit in bits[row])
        return (a, b, a | b, s), f"L({{0}}) + L({{1}}) = {{4}} + {{5}} {sign} {{6}} + {{7}} = L({{2}}) + L({{3}})"

    return search


def _find_size_violation(f: Floats, m: int, slack: float) -> Hit | None:
    for size in range(1, m):
        S = np.flatnonzero(_sizes(m) == size)
        low, high = int(S[f[S].argmin()]), int(S[f[S].argmax()])
        if f[high] - f[low] > slack:
            return (low, high), "L({0}) = {2} but L({1}) = {3}, of the same size"
    return None


# The search that refutes each fact. A laminar loss is submodular, so one that is not submodular is not laminar.
_VIOLATIONS: dict[str, Callable[[Floats, int, float], Hit | None]] = {
    "nonnegative": _find_negative,
    "monotone": _monotonicity_search(+1),
    "antitone": _monotonicity_search(-1),
    "separable": _curvature_search((+1, -1)),
    "submodular": _curvature_search((-1,)),
    "supermodular": _curvature_search((+1,)),
    "laminar": _curvature_search((-1,)),
    "cardinality": _find_size_violation,
}
