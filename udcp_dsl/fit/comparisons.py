"""Cases that compare costs, as functions of the parameters: L(A) and L(B) for each "A costs more than B".

If the loss is affine, then L(S; x) = k + c . x for each set; k and c follow, exact up to rounding, from the costs at
corners of the ranges. Whether it is affine is decided by rules over the syntax tree, never by trying values: sums and
negatives of affine expressions are affine; so are products with at most one factor that depends on a parameter,
quotients by what depends on none, and `if` whose condition depends on none. Anything else that depends on a parameter
(min, max, powers, comparisons) counts as not affine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.fit.cases import Case, CostCase, at_values, case_text
from udcp_dsl.language import ast
from udcp_dsl.loss import Loss

#: A parameter and the range in which it may lie.
Ranges: TypeAlias = Mapping[str, tuple[float, float]]


class Dependence(IntEnum):
    """How the value of an expression on a set depends on the parameters."""

    NONE = 0
    AFFINE = 1
    OTHER = 2


def params_read(loss: Loss) -> frozenset[str]:
    """The parameters that the loss reads, directly or through lets and other losses."""
    definitions = {x.name.text: x.body for x in loss.spec.declarations if isinstance(x, ast.Let | ast.LossDecl)}
    seen, waiting = {loss.name}, [definitions[loss.name]]
    while waiting:
        expr = waiting.pop()
        waiting += ast.children(expr)
        if isinstance(expr, ast.Ref) and expr.head.text not in seen:
            seen.add(expr.head.text)
            waiting += [definitions[expr.head.text]] if expr.head.text in definitions else []
    return frozenset(seen & set(loss.params))


def not_affine(loss: Loss, params: Collection[str]) -> ast.Expr | None:
    """The smallest part of the loss that is not known to be affine in these parameters; None if the loss is affine.

    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b}  param k = 1 in [0, 9]  loss l = k * size + min(size, k)")
    >>> not_affine(loss, ["k"]).span.text
    'min(size, k)'
    """
    definitions = {x.name.text: x.body for x in loss.spec.declarations if isinstance(x, ast.Let | ast.LossDecl)}
    known: dict[int, Dependence] = {}
    stack = [definitions[loss.name]]
    while stack:  # no recursion: a chain of lets can have any length
        expr = stack[-1]
        named = expr.head.text if isinstance(expr, ast.Ref) else None
        parts = [definitions[named]] if named in definitions else [*ast.children(expr)]
        waiting = [part for part in parts if id(part) not in known]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        found = [known[id(part)] for part in parts]
        composed = Dependence.AFFINE if named in params else _composed(expr, found)
        if composed is Dependence.OTHER:
            return expr
        known[id(expr)] = composed
    return None


def _composed(expr: ast.Expr, parts: list[Dependence]) -> Dependence:
    most = max(parts, default=Dependence.NONE)
    if most is not Dependence.AFFINE:
        return most
    match expr:
        case ast.Ref() | ast.Sum() | ast.Negative():
            return most
        case ast.Product(factors):
            dependent = [sign for (sign, _), part in zip(factors, parts, strict=True) if part is Dependence.AFFINE]
            return most if dependent == ["*"] else Dependence.OTHER
        case ast.If():
            return most if parts[0] is Dependence.NONE else Dependence.OTHER
        case _:
            return Dependence.OTHER


@dataclass(frozen=True)
class Comparison:
    """`higher` costs more than `lower` (`>`), at least as much (`>=`), or the same (`==`).

    Each side is a set or a number. `params` are the values that the case fixes, for parameters and inputs.
    """

    case: Case
    higher: Bools | float
    lower: Bools | float
    sign: str
    params: Mapping[str, float]

    @property
    def text(self) -> str:
        """The claim as written, without the name of the case."""
        return case_text(self.case).partition(": ")[2]

    @property
    def place(self) -> str:
        """The file and line of the case; empty if it is not from a file."""
        return _place(self.case)


def fitted_ranges(loss: Loss) -> dict[str, tuple[float, float]]:
    """The parameters to fit, those that the loss reads and that have a range. Raises InputError if there are none."""
    read = params_read(loss)
    declared = [x for x in loss.spec.declarations if isinstance(x, ast.Param) and x.name.text in read]
    if not declared:
        of = "spec has" if not loss.params else f"loss {loss.name!r} reads"
        raise InputError(f"the {of} no parameters to fit: declare one, such as `param weight = 1 in [0, 10]`")
    ranges = {x.name.text: (x.low.value, x.high.value) for x in declared if x.low is not None and x.high is not None}
    wide = {name: (low, high) for name, (low, high) in ranges.items() if low < high}
    if not wide:
        names = ", ".join(x.name.text for x in declared)
        raise InputError(f"no parameter has a range to be fitted in ({names}): write `param weight = 1 in [0, 10]`")
    return wide


def comparisons_of(loss: Loss, cases: Sequence[Case], ranges: Ranges) -> tuple[Comparison, ...]:
    """The cases of the loss that compare costs. Raises InputError if there are none or a label is unknown."""
    found = [_comparison(loss, case) for case in cases if isinstance(case.claim, CostCase)]
    if not found:
        raise InputError(
            f"no case compares costs of the loss {loss.name!r}: "
            'write some, such as case "why": cost { a } > cost { b, c }'
        )
    return tuple(found)


def _comparison(loss: Loss, case: Case) -> Comparison:
    claim = case.claim
    assert isinstance(claim, CostCase)
    named = f"case {case.name!r}" + (f" ({_place(case)})" if case.span else "")
    try:
        at_values(loss, case.params)
        left = loss.mask(claim.members)
        right = claim.other if isinstance(claim.other, float) else loss.mask(claim.other)
    except InputError as error:
        raise InputError(f"{named}: {error}") from None
    except SpecError as error:
        raise InputError(f"{named}: {error.diagnostics[0].message}") from None
    if claim.sign in ("<", "<="):
        return Comparison(case, right, left, claim.sign.replace("<", ">"), case.params)
    return Comparison(case, left, right, claim.sign, case.params)


def _place(case: Case) -> str:
    span = case.span
    return "" if span is None else f"{span.source.name}:{span.source.position(span.start)[0]}"


@dataclass(frozen=True)
class AffineCosts:
    """The costs of some sets, L(S; x) = constant + slopes . x, with x in the order of the ranges."""

    constant: Floats
    slopes: Floats

    @classmethod
    def of(cls, loss: Loss, masks: Bools, ranges: Ranges, params: Mapping[str, float] | None = None) -> AffineCosts:
        """The costs of sets (n, K); `params` fixes the values of some parameters and of inputs."""
        held = dict(params or {})
        free = {name: ends for name, ends in ranges.items() if name not in held}
        corner = {**held, **{name: low for name, (low, _) in free.items()}}
        base = at_values(loss, corner).batch(masks)
        slopes = np.zeros((len(masks), len(ranges)))
        for i, (name, (low, high)) in enumerate(ranges.items()):
            if name in free:
                raised = at_values(loss, {**corner, name: high}).batch(masks)
                slopes[:, i] = (raised - base) / (high - low)
        lows = np.array([low for low, _ in ranges.values()])
        return cls(base - slopes @ lows, slopes)

    def at(self, x: Floats) -> Floats:
        """The costs at x (d,), or at several (m, d): (n,) or (n, m)."""
        return self.constant + self.slopes @ x if x.ndim == 1 else self.constant[:, None] + self.slopes @ x.T


def both_sides(loss: Loss, comparisons: Sequence[Comparison], ranges: Ranges) -> tuple[AffineCosts, AffineCosts]:
    """The costs of the higher and of the lower side of each comparison, for an affine loss."""
    sides = []
    for side in ("higher", "lower"):
        constant, slopes = np.zeros(len(comparisons)), np.zeros((len(comparisons), len(ranges)))
        groups: dict[tuple[tuple[str, float], ...], list[int]] = {}
        for i, x in enumerate(comparisons):
            if isinstance(value := getattr(x, side), float):
                constant[i] = value
            else:
                groups.setdefault(tuple(sorted(x.params.items())), []).append(i)
        for held, members in groups.items():
            found = AffineCosts.of(loss, np.stack([getattr(comparisons[i], side) for i in members]), ranges, dict(held))
            constant[members], slopes[members] = found.constant, found.slopes
        sides.append(AffineCosts(constant, slopes))
    return sides[0], sides[1]
