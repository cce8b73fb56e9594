"""Whether the evaluators of a loss mean what its text says: the naive interpreter judges the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.domain import Bools, Floats, Ints
from udcp_dsl.testing.cubes import MOST_LABELS, cubes

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# The faces add the same numbers in another order, or a sum of products as a product of sums. For losses of some
# hundred terms each of the size of the value that is a few hundred roundings of 1.1e-16: far below this. It is also the
# tolerance within which the language itself holds two values to be equal.
TOLERANCE = 1e-9
# Of more than 12 labels: so many sets of each cube, so many labels pushed, and so many tried after each push.
_SETS, _PUSHES, _TRIED = 6, 24, 16


def assert_meaning(loss: Loss, *, seed: int = 0) -> None:
    """Assert that `__call__`, `batch` and the increments of a loss agree with its interpreter.

    On every set of up to 12 labels, else on sets drawn from `seed`; an AssertionError shows the smallest set on which
    they differ.

    >>> import udcp_dsl as udcp
    >>> assert_meaning(udcp.loads("labels {a, b}  loss l = size ^ 2 + 3 * all({a, b})"))
    """
    rng = np.random.default_rng(seed)
    masks = np.concatenate([_some(cube, rng) if loss.K > MOST_LABELS else cube for cube in cubes(loss, rng)])
    expected = np.array([loss.interpret(mask) for mask in masks])
    findings: list[tuple[Bools, str, float, float]] = []
    _compare(findings, "batch", masks, loss.batch(masks), expected)
    _compare(findings, "__call__", masks, np.array([loss(mask) for mask in masks]), expected)
    if loss.K <= MOST_LABELS:
        bits = 1 << np.arange(loss.K)
        _grow(findings, loss, masks, np.arange(loss.K), lambda sets: expected[sets @ bits], rng)
    elif not findings:  # what batch says of further sets may then be believed
        tried = rng.choice(loss.K, min(_TRIED, loss.K), replace=False)
        _grow(findings, loss, masks, tried, loss.batch, rng)
    if findings:
        mask, face, got, meant = min(findings, key=lambda finding: int(finding[0].sum()))
        members = ", ".join(loss.labels[y] for y in np.flatnonzero(mask))
        raise AssertionError(
            f"{loss.name}: on {{{members}}} the interpreter gives {meant!r} and {face} gives {got!r}; "
            f"{len(findings)} of {len(masks)} sets and steps differ"
        )


def _some(cube: Bools, rng: np.random.Generator) -> Bools:
    return cube[[0, *rng.choice(len(cube), _SETS - 2, replace=False).tolist(), -1]]


def _compare(
    findings: list[tuple[Bools, str, float, float]], face: str, sets: Bools, got: Floats, expected: Floats
) -> None:
    near = np.abs(got - expected) <= TOLERANCE * np.maximum(1.0, np.abs(expected))
    for i in np.flatnonzero(~near):  # a value that is not a number is not near
        findings.append((sets[i], face, float(got[i]), float(expected[i])))


def _grow(
    findings: list[tuple[Bools, str, float, float]],
    loss: Loss,
    masks: Bools,
    tried: Ints,
    expected: Callable[[Bools], Floats],
    rng: np.random.Generator,
) -> None:
    """Grow a set from nothing for each of `masks`: its labels first, in any order, then the others."""
    n, K = masks.shape
    order = np.argsort(rng.random((n, K)) - masks, axis=1)
    grow = loss.increments(n)
    held = np.zeros((n, K), dtype=bool)
    for step in range(min(K, _PUSHES) + 1):
        _compare(findings, "increments(...).value", held, grow.value, expected(held))
        grown = np.repeat(held, len(tried), axis=0)
        grown[np.arange(len(grown)), np.tile(tried, n)] = True
        after = grow.after()[:, tried].ravel()
        _compare(findings, "increments(...).after()", grown, after, expected(grown))
        if step < min(K, _PUSHES):
            grow.push(order[:, step])
            held[np.arange(n), order[:, step]] = True
