"""What is proved about a set function, and how it composes: the rules of curvature of this language.

A fact is proved, refuted or unknown, with the reason. Atoms state theirs; each function below is the rule of one
operator, from the facts of its operands to those of the whole. Nothing here evaluates the loss or guesses.
f is submodular where f(A) + f(B) >= f(A | B) + f(A & B), supermodular where <=, separable (modular) where both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import Span
from udcp_dsl.per_row import as_number, larger, smaller
from udcp_dsl.showing import MARKS, STATES, Column, Description, Shown, Styled, Table

State = Literal["proved", "refuted", "unknown"]

# Values closer than this (relative to max(1, |value|)) are equal, everywhere in the compiler.
TOLERANCE = 1e-9
# A difference smaller than this, relative to its operands, is rounding error: sixteen units in the last place.
ROUNDING = 16 * 2.0**-52


@dataclass(frozen=True)
class Fact:
    """One statement about a loss: proved, refuted or unknown.

    `str(fact)` is its state; `bool(fact)` is true only if it is proved.

    Attributes
    ----------
    state : {"proved", "refuted", "unknown"}
        The state.
    reason : str
        Why.
    blame : Span or None
        The smallest subexpression that prevents the proof.
    sets : tuple of frozenset of str
        For a refuted fact, sets of labels that show it.
    """

    state: State
    reason: str
    blame: Span | None = None
    sets: tuple[frozenset[str], ...] = ()

    def __str__(self) -> str:
        return self.state

    def __bool__(self) -> bool:
        return self.state == "proved"


@dataclass(frozen=True)
class Interval:
    """Every value lies in [lo, hi]."""

    lo: float
    hi: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.lo, self.hi))

    @property
    def constant(self) -> bool:
        return self.lo == self.hi


@dataclass(frozen=True, repr=False)
class Facts(Shown):
    """Everything that is known about a loss, as `loss.facts`; iterate for (name, fact).

    Attributes
    ----------
    normalized : Fact
        The empty set costs nothing.
    nonnegative : Fact
        No set has a negative cost.
    monotone, antitone : Fact
        The cost never falls, or never rises, when a label is added.
    separable : Fact
        The cost is a sum of label costs, plus a constant.
    submodular, supermodular : Fact
        A label adds no more, or no less, to a larger set than to a smaller one.
    laminar : Fact
        A sum of nonnegative weights of categories, any two of which are nested or disjoint, plus label costs.
    cardinality : Fact
        The cost depends on the size of the set alone.
    tree_diameter : Fact
        A positive multiple of the diameter of a hierarchy, plus a laminar part.
    interval : Interval
        Bounds `lo` and `hi` on the cost of any set.
    """

    normalized: Fact
    nonnegative: Fact
    monotone: Fact
    antitone: Fact
    separable: Fact
    submodular: Fact
    supermodular: Fact
    laminar: Fact
    cardinality: Fact
    tree_diameter: Fact
    interval: Interval

    def __iter__(self) -> Iterator[tuple[str, Fact]]:
        """Names and facts, in the order of the reference, without the interval."""
        return iter((name, getattr(self, name)) for name in FACT_NAMES)

    def __repr__(self) -> str:
        """The names of the facts, by state; `rich.print` and notebooks show the reasons."""
        by_state: dict[str, list[str]] = {}
        for name, fact in self:
            by_state.setdefault(fact.state, []).append(name)
        text = "; ".join(f"{state}: {', '.join(names)}" for state, names in by_state.items())
        return f"Facts({text}; values in [{self.interval.lo:.6g}, {self.interval.hi:.6g}])"

    def describe(self) -> Description:
        """Every fact with its state and its reason."""
        states = {"proved": True, "refuted": False, "unknown": None}
        mark = Column("", lambda row: Styled(MARKS[states[row[1].state]], STATES[states[row[1].state]]))
        name = Column("fact", lambda row: row[0].replace("_", " "), kind="word")
        columns = (mark, name, Column("state", lambda row: row[1].state), Column("why", lambda row: row[1].reason))
        ends = f"values in [{self.interval.lo:.6g}, {self.interval.hi:.6g}]"
        return Description(ends, tables=(Table(columns, list(self)),))


FACT_NAMES = tuple(f.name for f in fields(Facts) if f.name != "interval")
COMPOSED = ("monotone", "antitone", "separable", "submodular", "supermodular", "cardinality")


@dataclass(frozen=True)
class Rules:
    """The result of one operator's rule (or of an atom), before `close`."""

    interval: Interval
    facts: Mapping[str, Fact]


def proved(reason: str) -> Fact:
    return Fact("proved", reason)


def unknown(reason: str, blame: Span | None) -> Fact:
    return Fact("unknown", reason, blame)


def when(reason: str, *needs: Fact) -> Fact:
    """Proved if every need is proved; else unknown, with the reason and blame of the first that is not."""
    for fact in needs:
        if not fact:
            return unknown(fact.reason, fact.blame)
    return proved(reason)


def given(condition: bool, otherwise: str, span: Span | None) -> Fact:
    """A condition on numbers, as a fact for `when`."""
    return proved("") if condition else unknown(otherwise, span)


def either(*ways: Fact) -> Fact:
    """The first way that is proved; else the first."""
    return next((fact for fact in ways if fact), ways[0])


def atom(
    span: Span | None, text: str, interval: Interval, proves: Mapping[str, str], lacks: Mapping[str, str]
) -> Rules:
    """The facts that an atom states: reasons for what it proves and for what it lacks."""
    stated = {
        name: proved(proves[name])
        if name in proves
        else unknown(lacks.get(name, f"{text} is not {_adjective(name)} in general"), span)
        for name in COMPOSED
    }
    return Rules(interval, stated)


def _adjective(name: str) -> str:
    return "a function of size alone" if name == "cardinality" else name


def _expression(name: str) -> str:
    article = "an" if name[0] in "aeiou" else "a"
    return _adjective(name) if name == "cardinality" else f"{article} {name} expression"


def constant(value: float) -> Rules:
    return Rules(Interval(value, value), {name: proved("constant") for name in COMPOSED})


def add(terms: Sequence[Facts]) -> Rules:
    interval = Interval(sum(t.interval.lo for t in terms), sum(t.interval.hi for t in terms))
    return Rules(
        interval,
        {name: when(f"every summand is {_adjective(name)}", *(getattr(t, name) for t in terms)) for name in COMPOSED},
    )


_SWAP = {"monotone": "antitone", "antitone": "monotone", "submodular": "supermodular", "supermodular": "submodular"}


def scale(factor: float, e: Facts) -> Rules:
    if factor == 0:
        return constant(0.0)
    lo, hi = factor * e.interval.lo, factor * e.interval.hi
    if factor > 0:
        return Rules(Interval(lo, hi), {name: getattr(e, name) for name in COMPOSED})
    turned = {}
    for name in COMPOSED:
        source = _SWAP.get(name, name)
        turned[name] = when(f"a negative multiple of {_expression(source)}", getattr(e, source))
    return Rules(Interval(hi, lo), turned)


def negate(e: Facts) -> Facts:
    """The facts of -e, as an operand of another rule (not closed)."""
    return _assume(e, scale(-1.0, e))


def with_facts(facts: Facts, changed: Mapping[str, Fact], interval: Interval | None = None) -> Facts:
    """The same facts, except those in `changed`."""
    kept = {name: changed.get(name, fact) for name, fact in facts}
    return Facts(**kept, interval=facts.interval if interval is None else interval)


def _assume(like: Facts, rules: Rules) -> Facts:
    return with_facts(like, rules.facts, rules.interval)


def table(f: NDArray[np.float64], count: Facts, text: str, span: Span | None) -> Rules:
    """A function of a count, given by its table. A count is monotone and submodular; `size` is also modular."""
    # Relative to neighbouring entries: compared with one huge entry, all others would look flat.
    sizes = np.maximum(np.abs(f[1:]), np.abs(f[:-1]))
    steps = _beyond_rounding(f[1:] - f[:-1], sizes)
    rising, falling = bool((steps >= 0).all()), bool((steps <= 0).all())
    bends = _beyond_rounding(f[:-2] + f[2:] - 2 * f[1:-1], np.maximum(sizes[1:], sizes[:-1]))
    concave, convex = bool((bends <= 0).all()), bool((bends >= 0).all())
    modular = bool(count.separable)
    found = {
        "monotone": given(rising, f"the function of {text} falls somewhere", span),
        "antitone": given(falling, f"the function of {text} rises somewhere", span),
        "separable": given(concave and convex and modular, f"it is not a linear function of {text}", span),
        "submodular": given(
            concave and (rising or modular),
            f"it is not a concave{'' if modular else ' nondecreasing'} function of {text}",
            span,
        ),
        "supermodular": given(
            convex and (falling or modular),
            f"it is not a convex{'' if modular else ' nonincreasing'} function of {text}",
            span,
        ),
        "cardinality": count.cardinality,
    }
    reasons = {
        "monotone": f"nondecreasing in {text}",
        "antitone": f"nonincreasing in {text}",
        "separable": f"linear in {text}",
        "submodular": f"a concave function of {text}",
        "supermodular": f"a convex function of {text}",
        "cardinality": "a function of size",
    }
    ends = Interval(as_number(f.min()), as_number(f.max()))
    return Rules(ends, {name: when(reasons[name], found[name]) for name in COMPOSED})


def _beyond_rounding(differences: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(differences) > ROUNDING * sizes, differences, 0.0)


def gate(i: Facts, e: Facts, span: Span | None) -> Rules:
    """i * e with i an indicator."""
    if i.interval.constant:
        return scale(i.interval.lo, e)
    lo, hi = e.interval
    ilo, ihi = i.interval
    products = [a * b for a in (ilo, ihi) for b in (lo, hi)]
    positive = given(lo >= 0, "the factor beside the indicator may be negative", span)
    negative = given(hi <= 0, "the factor beside the indicator may be positive", span)
    up_up = "product of nondecreasing, nonnegative factors"
    nothing = unknown(
        "a product keeps this only for supermodular factors that are both monotone or both antitone", span
    )
    facts = {
        "monotone": either(
            when(up_up, i.monotone, e.monotone, positive),
            when("a falling indicator times a negative factor that rises", i.antitone, e.monotone, negative),
        ),
        "antitone": either(
            when("product of nonincreasing, nonnegative factors", i.antitone, e.antitone, positive),
            when("a rising indicator times a negative factor that falls", i.monotone, e.antitone, negative),
        ),
        "supermodular": either(
            when(
                "product of nonnegative supermodular factors that rise",
                i.supermodular, e.supermodular, i.monotone, e.monotone, positive,
            ),
            when(
                "product of nonnegative supermodular factors that fall",
                i.supermodular, e.supermodular, i.antitone, e.antitone, positive,
            ),
        ),
        "submodular": either(
            when(
                "minus a product of nonnegative supermodular factors that rise",
                i.supermodular, e.submodular, i.monotone, e.antitone, negative,
            ),
            when(
                "minus a product of nonnegative supermodular factors that fall",
                i.supermodular, e.submodular, i.antitone, e.monotone, negative,
            ),
        ),
        "separable": nothing,
        "cardinality": when("both factors are functions of size", i.cardinality, e.cardinality),
    }  # fmt: skip
    return Rules(Interval(smaller(*products), larger(*products)), facts)


def minimum(operands: Sequence[Facts], span: Span | None) -> Rules:
    interval = _least_of(operands)
    # An argument that is never below the least upper bound plays no part.
    least = min(operands, key=lambda f: f.interval.hi)
    operands = [f for f in operands if f is least or f.interval.lo < least.interval.hi]
    if len(operands) == 1:
        return Rules(interval, {name: getattr(least, name) for name in COMPOSED})
    facts = {
        name: when(f"every argument is {_adjective(name)}", *(getattr(f, name) for f in operands))
        for name in ("monotone", "antitone", "cardinality")
    }
    submodular = unknown("a minimum of three or more expressions has no rule", span)
    if len(operands) == 2:
        e, f = operands
        gap = add([e, negate(f)]).facts
        ordered = either(gap["monotone"], gap["antitone"])
        submodular = when(
            "a minimum of submodular functions whose difference is monotone or antitone", e.submodular, f.submodular
        )
        if submodular and not ordered:
            submodular = unknown(
                "a minimum is submodular only if the difference of its arguments is monotone or antitone", span
            )
    facts["submodular"] = submodular
    facts["supermodular"] = unknown("a minimum is not supermodular in general", span)
    facts["separable"] = unknown("a minimum is not separable in general", span)
    return Rules(interval, facts)


def _least_of(operands: Sequence[Facts]) -> Interval:
    return Interval(smaller(*(f.interval.lo for f in operands)), smaller(*(f.interval.hi for f in operands)))


def maximum(operands: Sequence[Facts], span: Span | None) -> Rules:
    """max(e, f) = -min(-e, -f)."""
    most = max(operands, key=lambda f: f.interval.lo)
    operands = [f for f in operands if f is most or f.interval.hi > most.interval.lo]
    turned = minimum([negate(f) for f in operands], span)
    interval = Interval(-turned.interval.hi, -turned.interval.lo)
    if len(operands) == 1:
        return Rules(interval, {name: getattr(most, name) for name in COMPOSED})
    facts = {
        "monotone": turned.facts["antitone"],
        "antitone": turned.facts["monotone"],
        "supermodular": when(
            "a maximum of supermodular functions whose difference is monotone or antitone", turned.facts["submodular"]
        ),
        "submodular": unknown("a maximum is not submodular in general", span),
        "separable": unknown("a maximum is not separable in general", span),
        "cardinality": turned.facts["cardinality"],
    }
    for name in ("monotone", "antitone"):
        facts[name] = when(f"every argument is {name}", *(getattr(f, name) for f in operands))
    return Rules(interval, facts)


def at_least(e: Facts, k: float, tolerance: float, span: Span | None) -> Rules:
    """The indicator e >= k."""
    if e.interval.lo >= k:
        return constant(1.0)
    if e.interval.hi < k - 2 * tolerance:
        return constant(0.0)
    facts = _indicator_lacks("a comparison keeps monotone and antitone alone", span)
    facts["monotone"] = when("a threshold on a monotone expression", e.monotone)
    facts["antitone"] = when("a threshold on an antitone expression", e.antitone)
    facts["cardinality"] = when("a threshold of a function of size", e.cardinality)
    return Rules(Interval(0.0, 1.0), facts)


def equal(e: Facts, k: float, tolerance: float, span: Span | None) -> Rules:
    """The indicator e == k."""
    if not e.interval.lo - 2 * tolerance <= k <= e.interval.hi + 2 * tolerance:
        return constant(0.0)
    if e.interval.constant and abs(e.interval.lo - k) <= tolerance:
        return constant(1.0)
    if e.interval.hi <= k + tolerance / 2:
        return at_least(e, k, tolerance, span)
    if e.interval.lo >= k - tolerance / 2:
        return at_least(negate(e), -k, tolerance, span)
    facts = _indicator_lacks("an equality is neither rising nor falling in general", span)
    facts["cardinality"] = when("an equality of a function of size", e.cardinality)
    return Rules(Interval(0.0, 1.0), facts)


def _indicator_lacks(reason: str, span: Span | None) -> dict[str, Fact]:
    return {name: unknown(reason, span) for name in COMPOSED}


def complement(i: Facts) -> Rules:
    """not i = 1 - i."""
    turned = scale(-1.0, i)
    facts = dict(turned.facts)
    for name, source in _SWAP.items():
        facts[name] = when(f"the complement of {_expression(source)}", getattr(i, source))
    return Rules(Interval(1 - i.interval.hi, 1 - i.interval.lo), facts)


def conjunction(operands: Sequence[Facts], span: Span | None) -> Rules:
    interval = _least_of(operands)
    if any(f.interval.hi == 0 for f in operands):
        return constant(0.0)
    live = [f for f in operands if not f.interval.constant]
    facts = {
        name: when(f"every part is {_adjective(name)}", *(getattr(f, name) for f in live))
        for name in ("monotone", "antitone", "cardinality")
    }
    rising = [need for f in live for need in (f.supermodular, f.monotone)]
    falling = [need for f in live for need in (f.supermodular, f.antitone, _full_at_empty(f, span))]
    facts["supermodular"] = either(
        when("all of several monotone supermodular indicators", *rising),
        when("none of several normalized monotone submodular indicators", *falling),
    )
    facts["submodular"] = unknown("`and` is not submodular in general", span)
    facts["separable"] = unknown("`and` is not separable in general", span)
    if len(live) == 1:
        facts.update({name: getattr(live[0], name) for name in COMPOSED})
    return Rules(interval, facts)


def _full_at_empty(f: Facts, span: Span | None) -> Fact:
    """Whether a falling indicator is 1 on the empty set (if it is 0 there, it is constant)."""
    return given(not f.normalized, "an indicator that falls from 0 is constant", span)


def disjunction(operands: Sequence[Facts], span: Span | None) -> Rules:
    """i or j = not (not i and not j)."""
    turned = [_assume(f, complement(f)) for f in operands]
    turned = [
        replace(t, normalized=given(f.normalized.state == "refuted", "it is 0 on the empty set", span))
        for t, f in zip(turned, operands, strict=True)
    ]
    both = conjunction(turned, span)
    lo, hi = both.interval
    facts = dict(both.facts)
    for name, source in _SWAP.items():
        facts[name] = both.facts[source]
    live = [f for f in operands if not f.interval.constant]
    for name in ("monotone", "antitone"):
        facts[name] = when(f"every part is {name}", *(getattr(f, name) for f in live))
    if facts["submodular"]:
        facts["submodular"] = proved("any of several submodular indicators that are all monotone or all antitone")
    elif len(live) > 1:
        facts["supermodular"] = unknown("`or` is not supermodular in general", span)
        facts["separable"] = unknown("`or` is not separable in general", span)
    return Rules(Interval(1 - hi, 1 - lo), facts)


def choice(i: Facts, e: Facts, f: Facts, span: Span | None) -> Rules:
    """if i then e else f."""
    if i.interval.constant:
        chosen = e if i.interval.lo == 1 else f
        return Rules(chosen.interval, {name: getattr(chosen, name) for name in COMPOSED})
    if e.interval.constant and f.interval.constant:
        low = f.interval.lo
        step = scale(e.interval.lo - low, i)
        return Rules(Interval(low + step.interval.lo, low + step.interval.hi), step.facts)
    above = given(e.interval.lo >= f.interval.hi, "the `then` branch may lie below the `else` branch", span)
    below = given(e.interval.hi <= f.interval.lo, "the `then` branch may lie above the `else` branch", span)
    facts = {name: unknown("`if` keeps this only with constant branches", span) for name in COMPOSED}
    # A monotone submodular indicator is any(C). Once the set touches C, a further label changes e, which falls, and no
    # longer f, which rises; the step e - f >= 0 is paid only once. For a falling one, 1 - any(C), e and f swap roles.
    once = "a step that is paid for once, above a submodular expression"
    facts["submodular"] = either(
        when(once, i.submodular, i.monotone, e.submodular, e.antitone, f.submodular, f.monotone, above),
        when(once, i.supermodular, i.antitone, e.submodular, e.monotone, f.submodular, f.antitone, below),
    )
    gained = "a step that is gained once, below a supermodular expression"
    facts["supermodular"] = either(
        when(gained, i.submodular, i.monotone, e.supermodular, e.monotone, f.supermodular, f.antitone, below),
        when(gained, i.supermodular, i.antitone, e.supermodular, e.antitone, f.supermodular, f.monotone, above),
    )
    for name in ("submodular", "supermodular"):
        if not facts[name]:
            facts[name] = unknown("`if` keeps this only where a branch is constant and lies beyond the other", span)
    facts["monotone"] = either(
        when("it rises, and steps up", i.monotone, e.monotone, f.monotone, above),
        when("it rises, and steps up", i.antitone, e.monotone, f.monotone, below),
    )
    facts["antitone"] = either(
        when("it falls, and steps down", i.monotone, e.antitone, f.antitone, below),
        when("it falls, and steps down", i.antitone, e.antitone, f.antitone, above),
    )
    facts["cardinality"] = when(
        "condition and branches are functions of size", i.cardinality, e.cardinality, f.cardinality
    )
    interval = Interval(smaller(e.interval.lo, f.interval.lo), larger(e.interval.hi, f.interval.hi))
    return Rules(interval, facts)


def close(
    rules: Rules,
    more: Mapping[str, Fact],
    tight: Interval | None,
    at_empty: Interval,
    at_full: Interval,
) -> Facts:
    """Apply the rules that hold for any set function: constants, modularity, the interval of a monotone function.

    `more` and `tight` are the facts and the interval that follow from the additive form of the expression.
    """
    facts = {**rules.facts, **more}
    lo, hi = rules.interval
    if tight is not None:
        lo, hi = larger(lo, tight.lo), smaller(hi, tight.hi)
    for way in ("submodular", "supermodular"):
        facts[way] = either(facts[way], when("it is separable", facts["separable"]))
    if facts["submodular"] and facts["supermodular"]:
        facts["separable"] = either(facts["separable"], proved("both submodular and supermodular"))
    if facts["monotone"]:
        lo, hi = at_empty.lo, at_full.hi
    elif facts["antitone"]:
        lo, hi = at_full.lo, at_empty.hi
    lo, hi = smaller(lo, hi), larger(lo, hi)  # rounding may have crossed them
    if lo == hi:
        facts.update({name: proved("constant") for name in COMPOSED})
    if larger(*map(abs, at_empty)) <= TOLERANCE:
        facts["normalized"] = proved("it is 0 on the empty set")
    elif at_empty.constant:
        facts["normalized"] = Fact("refuted", f"it is {at_empty.lo:g} on the empty set", sets=(frozenset(),))
    else:
        facts["normalized"] = unknown(f"on the empty set it is in [{at_empty.lo:g}, {at_empty.hi:g}], by row", None)
    if lo >= 0:
        facts["nonnegative"] = proved(f"its least value is {'at least ' if lo else ''}{lo:g}")
    else:
        facts["nonnegative"] = unknown(f"its value may be as low as {lo:g}", None)
    return Facts(**facts, interval=Interval(lo, hi))
