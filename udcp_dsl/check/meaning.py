"""Does the compiled loss mean what was written? All ways to compute it agree with the naive interpreter.

With up to 12 labels all sets are tried; with more, sets of all sizes, single labels, categories, and categories with
one label too many or too few. The linear model is checked with the labels fixed to S: its least value must be L(S).
scipy solves it, so that a fault in the solver behind an oracle is not on both sides. A solver keeps integer variables
integral only to within 1e-6, so they are rounded and the rest, a linear program, is solved once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.check.samples import (
    MOST_LABELS,
    Row,
    all_masks,
    drawn_inputs,
    fewest,
    named,
    of_a_row,
    shown_row,
    varied_sets,
)
from udcp_dsl.check.verdicts import CounterExample, Plan, Verdict, assert_verdicts
from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.lower import LinearModel, LoweringError, lower

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# The evaluators add the same numbers in another order, or compute a sum of products as a product of sums. For losses of
# some hundred terms, each of the size of the value, that is a few hundred roundings of 1.1e-16: far below this. The
# language itself uses this tolerance to compare two values.
TOLERANCE = 1e-9
QUESTION = "does the compiled loss mean what was written?"
# With more than 12 labels: the labels pushed, and the labels tried after each push.
_PUSHES, _TRIED = 24, 16
_ROWS, _CALLED = 4, 8  # rows whose inputs are drawn, and sets that are evaluated one by one
_JUDGED = 50  # steps on which increments and batch differ that the interpreter judges
_TRIED_SETS = 48  # per round
_SINGLES = 300  # labels that are tried as sets of one; all, if there are no more
_CELLS = 50_000  # entries of the masks, if there are thousands of labels
_SOLVED = 12  # sets on which the linear model is solved, and as many single labels
_FEWEST = 4  # of these at least, however long they take
# Constraints with a large constant, at a solver's tolerance of 1e-9 to 1e-7, leave errors of a few times that.
LINEAR_TOLERANCE = 1e-7
FACE, _LINEAR = "the linear model", "the linear model agrees with the loss"


@dataclass(frozen=True, eq=False)
class Difference:
    """A set on which a way to compute the loss, its `face`, differs from the interpreter."""

    mask: Bools
    face: str
    got: float
    expected: float
    row: Row = None  # the inputs with which they differ

    def sentence(self, loss: Loss) -> str:
        """The difference in one sentence."""
        S = named(loss, self.mask)
        return f"on {S} the interpreter gives {self.expected!r} and {self.face} gives {self.got!r}{shown_row(self.row)}"


def assert_meaning(loss: Loss, *, seed: int = 0) -> None:
    """Fail if a loss, computed in any way, differs from the naive interpreter.

    Compares `__call__`, `batch`, the terms, the additive form and the increments. Up to 12 labels, all sets are tried;
    beyond that, random and telling ones. If the loss reads inputs, they are random, too.

    Parameters
    ----------
    loss : Loss
        The loss.
    seed : int, default 0
        Random seed for the sets.

    Raises
    ------
    AssertionError
        The values differ; the message shows the smallest such set.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> assert_meaning(udcp.loads("labels {a, b}  loss l = size ^ 2 + 3 * all({a, b})"))
    """
    assert_verdicts(loss.name, meaning(loss, Plan(seed, 1, None), linear=False))


def differences(loss: Loss, masks: Bools, rng: np.random.Generator) -> list[Difference]:
    """Where the evaluators of a loss differ from its interpreter: on these sets (n, K) and while growing them."""
    if loss.inputs:
        return _row_differences(loss, masks, rng)
    expected = np.array([loss.interpret(mask) for mask in masks])
    found: list[Difference] = []
    _compare(found, "batch", masks, loss.batch(masks), expected)
    by_members = Sets(masks, few=1)
    _ = by_members.members
    _compare(found, "batch, by members,", masks, loss.costs_of(by_members), expected)
    _compare(found, "__call__", masks, np.array([loss(mask) for mask in masks]), expected)
    _compare(found, "the sum of terms_batch", masks, np.sum([*loss.terms_batch(masks).values()], axis=0), expected)
    _compare(found, "the sum of terms", masks[-1:], np.array([sum(loss.terms(masks[-1]).values())]), expected[-1:])
    if loss.form is not None:
        of_form = [loss.form(set(np.flatnonzero(mask).tolist())) for mask in masks]
        _compare(found, "the additive form", masks, np.array(of_form), expected)
    if loss.K <= MOST_LABELS and len(masks) == 1 << loss.K:
        bits = 1 << np.arange(loss.K)
        _grow(found, loss, masks, np.arange(loss.K), lambda sets: expected[sets @ bits], rng)
    elif not found:  # batch is then likely right on further sets; where they differ, the interpreter judges
        tried = rng.choice(loss.K, min(_TRIED, loss.K), replace=False)
        unsure: list[Difference] = []
        _grow(unsure, loss, masks, tried, loss.batch, rng)
        for x in sorted(unsure, key=lambda x: int(x.mask.sum()))[:_JUDGED]:
            one, expected = x.mask[None], np.array([loss.interpret(x.mask)])
            _compare(found, "batch", one, loss.batch(one), expected)
            _compare(found, x.face, one, np.array([x.got]), expected)
    return found


def _row_differences(loss: Loss, masks: Bools, rng: np.random.Generator) -> list[Difference]:
    """`differences` with random inputs: for many rows at once, and for the loss of one row, with its numbers."""
    inputs = drawn_inputs(loss.inputs, _ROWS, rng) or {}
    rows = [{name: column[i] for name, column in inputs.items()} for i in range(_ROWS)]
    losses, which = [loss.at(row) for row in rows], np.arange(len(masks)) % _ROWS
    expected = np.array([losses[i].interpret(mask) for i, mask in zip(which, masks, strict=True)])
    given = {name: column[which] for name, column in inputs.items()}
    found: list[Difference] = []
    _compare(found, "batch", masks, loss.batch(masks, inputs=given), expected)
    terms = [*loss.terms_batch(masks, inputs=given).values()]
    _compare(found, "the sum of terms_batch", masks, np.sum(terms, axis=0), expected)
    some = rng.permutation(len(masks))[:_CALLED]
    one_by_one = [loss(masks[i], inputs=rows[which[i]]) for i in some]
    _compare(found, "__call__", masks[some], np.array(one_by_one), expected[some])
    of_row = int(rng.integers(_ROWS))
    return [*found, *(replace(x, row=rows[of_row]) for x in differences(losses[of_row], masks, rng))]


def _smallest(found: Sequence[Difference], again: Callable[[Bools], list[Difference]]) -> Difference:
    """The difference on the smallest set, shrunk as long as `again` gives one on a set without some of its labels."""

    def size(difference: Difference) -> int:
        return int(difference.mask.sum())

    smallest = min(found, key=size)

    def on(labels: list[int]) -> list[Difference]:
        mask = np.zeros_like(smallest.mask)
        mask[labels] = True
        return [x for x in again(mask) if x.face == smallest.face and size(x) <= len(labels)]

    labels = fewest(np.flatnonzero(smallest.mask).tolist(), lambda some: bool(on(some)))
    return min([*on(labels), smallest], key=size)


def _compare(found: list[Difference], face: str, sets: Bools, got: Floats, expected: Floats) -> None:
    near = np.abs(got - expected) <= TOLERANCE * np.maximum(1.0, np.abs(expected))
    for i in np.flatnonzero(~near):  # NaN is not near
        found.append(Difference(sets[i].copy(), face, float(got[i]), float(expected[i])))


def _grow(
    found: list[Difference],
    loss: Loss,
    masks: Bools,
    tried: Ints,
    expected: Callable[[Bools], Floats],
    rng: np.random.Generator,
) -> None:
    """Check increments while a set grows from empty for each of `masks`: its labels first, in random order."""
    n, K = masks.shape
    order = np.argsort(rng.random((n, K)) - masks, axis=1)
    grow = loss.increments(n)
    held = np.zeros((n, K), dtype=bool)
    for step in range(min(K, _PUSHES) + 1):
        _compare(found, "increments(...).value", held, grow.value, expected(held))
        grown = np.repeat(held, len(tried), axis=0)
        grown[np.arange(len(grown)), np.tile(tried, n)] = True
        after = grow.after()[:, tried].ravel()
        _compare(found, "increments(...).after()", grown, after, expected(grown))
        if step < min(K, _PUSHES):
            grow.push(order[:, step])
            held[np.arange(n), order[:, step]] = True


def meaning(loss: Loss, plan: Plan, *, linear: bool = True) -> list[Verdict]:
    """Compare evaluators, increments and terms with the interpreter, and if `linear`, the linear model."""
    every = loss.K <= MOST_LABELS
    found: list[Difference] = []
    wrong: list[Difference] = []
    tried = solved = 0
    no_model = _why_no_model(loss) if linear else ""
    for rng in plan.rounds_of("meaning"):
        masks = varied_sets(loss, rng, max(_SOLVED, min(_TRIED_SETS, _CELLS // loss.K)))
        singles = np.arange(loss.K) == rng.permutation(loss.K)[: max(_SOLVED, min(_SINGLES, _CELLS // loss.K)), None]
        if not every or not tried or loss.inputs:  # all sets are tried only once
            sets = all_masks(loss.K) if every else rng.permutation(masks if tried else np.concatenate([masks, singles]))
            for part in plan.parts("meaning", len(sets), len(sets) if every else _SOLVED):
                found += differences(loss, sets[part], rng)
                tried += len(sets[part])
        if no_model is None:
            some = np.concatenate([masks[rng.choice(len(masks), _SOLVED, replace=False)], singles[:_SOLVED]])
            some = rng.permutation(some)
            for part in plan.parts("meaning", len(some), _FEWEST):
                wrong += linear_differences(of_a_row(loss, rng), some[part])
                solved += len(some[part])
        if found or wrong:
            break
    kinds = "all sets" if every else "all sizes, single labels, categories and nearly categories"
    kinds += ", with random inputs" if loss.inputs else ""
    example = _example(loss, found, lambda mask: differences(loss, mask[None], np.random.default_rng(0)))
    verdicts = [Verdict("all ways to compute the loss agree", not found, tried, kinds, example)]
    if no_model:
        verdicts.append(Verdict(_LINEAR, None, 0, no_model, applies=False))
    elif linear:
        verdicts.append(_of_linear_model(loss, wrong, solved))
    return verdicts


def _why_no_model(loss: Loss) -> str | None:
    try:
        lower(loss.example)
    except LoweringError as error:
        return str(error)
    return None


def _of_linear_model(loss: Loss, wrong: list[Difference], solved: int) -> Verdict:
    example = _example(loss, wrong, lambda mask: linear_differences(loss.example, mask[None]))
    return Verdict(_LINEAR, not wrong, solved, "", example)


def _example(
    loss: Loss, found: Sequence[Difference], again: Callable[[Bools], list[Difference]]
) -> CounterExample | None:
    if not found:
        return None
    smallest = _smallest(found, again)
    labels = tuple(loss.labels[y] for y in np.flatnonzero(smallest.mask))
    return CounterExample(smallest.sentence(loss), sets=(labels,))


class FixedModel:
    """A linear model, minimised over all variables but the labels, which are fixed."""

    def __init__(self, model: LinearModel) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        self.model = model
        shape = (model.rows, model.variables)
        A = csr_array((model.coefficients, model.columns, model.starts), shape=shape)
        self._rows = [LinearConstraint(A, model.row_lower, model.row_upper)] if model.rows else []

    def __call__(self, mask: Bools, expected: float) -> float | None:
        """The least objective on one set: infinite if no assignment is feasible, None if the solver fails.

        The second program is skipped if the value is `expected` and the integer variables are integral.
        """
        m = self.model
        low, high = m.lower.copy(), m.upper.copy()
        low[: m.K] = high[: m.K] = mask
        least, found = self._least(low, high, m.integer)
        if found is None:
            return least
        whole = np.round(found[m.integer])
        value = float(m.constant + m.objective @ found)
        if _near(value, expected) and (whole == found[m.integer]).all():
            return value
        low[m.integer], high[m.integer] = whole, whole
        exact = self._least(low, high, np.zeros_like(m.integer))[1]
        return value if exact is None else float(m.constant + m.objective @ exact)

    def _least(self, low: Floats, high: Floats, integer: Bools) -> tuple[float | None, Floats | None]:
        """The least value, and a point that attains it."""
        from scipy.optimize import Bounds, milp

        infeasible = False
        for presolve in (True, False):  # the solver's own presolve fails on some models
            solved = milp(
                self.model.objective,
                bounds=Bounds(low, high),
                constraints=self._rows,
                integrality=integer.astype(np.int64),
                options={"mip_rel_gap": 0.0, "presolve": presolve},
            )
            if solved.status == 0:
                return float(solved.fun), np.asarray(solved.x, dtype=np.float64)
            infeasible = solved.status == 2
        return (float("inf") if infeasible else None), None


def linear_differences(loss: Loss, masks: Bools) -> list[Difference]:
    """The sets on which the linear model and the interpreter differ. Raises LoweringError if there is no model."""
    fixed = FixedModel(lower(loss))
    expected = [loss.interpret_positions(np.flatnonzero(mask).tolist()) for mask in masks]
    got = [fixed(mask, value) for mask, value in zip(masks, expected, strict=True)]
    return [
        Difference(mask, FACE, g, m)
        for mask, g, m in zip(masks, got, expected, strict=True)
        if g is not None and not _near(g, m)
    ]


def _near(value: float, expected: float) -> bool:
    return abs(value - expected) <= LINEAR_TOLERANCE * max(1.0, abs(expected))


def assert_lowers(loss: Loss, masks: Bools) -> None:
    """Fail if the linear model of a loss has another value than the loss on some sets.

    Parameters
    ----------
    loss : Loss
        The loss.
    masks : boolean array, shape (n, K)
        The sets.

    Raises
    ------
    AssertionError
        The values differ; the message shows where.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b}  loss l = 3 * all({a, b})")
    >>> assert_lowers(loss, np.array([[True, True], [True, False]]))
    """
    assert_verdicts(loss.name, [_of_linear_model(loss, linear_differences(loss, masks), len(masks))])
