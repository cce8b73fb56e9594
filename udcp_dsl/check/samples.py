"""What losses and oracles are tested on: sets of labels, rows of probabilities and inputs, drawn without hypothesis.

With up to 12 labels, all subsets are tried. With more, several cubes are tried: all subsets of 8 labels, some of them
chosen by the atoms and the others at random, with none, some or all of the other labels as the background. There are
also single sets: of every size, and the categories in the loss, exactly or up to one label.

Rows of probabilities are hard for an oracle: ties, zeros, tiny values. Inputs of rows lie within their ranges: the
ends, round numbers (as comparisons use them), and any others. `fewest` shrinks what fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.domain import Bools, Category, CategoryMetric, Family, Ints, TreeMetric, numbered_sets
from udcp_dsl.expression.inputs import RowInput

if TYPE_CHECKING:
    from udcp_dsl.expression.domain import Floats
    from udcp_dsl.loss import Loss

MOST_LABELS = 12
_FREE = 8
_MANY, _LARGEST = 300, 100
T = TypeVar("T")
Probabilities = npt.NDArray[np.floating[Any]]
Row: TypeAlias = Mapping[str, Any] | None  # the inputs of one row; None if there are none


def all_masks(K: int) -> Bools:
    """Every subset of K labels, as a boolean matrix.

    Parameters
    ----------
    K : int
        Number of labels.

    Returns
    -------
    boolean array, shape (2^K, K)
        Row b holds label y if bit y of b is set.

    Examples
    --------
    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if not 0 <= K <= 20:
        raise InputError(f"there are 2^{K} subsets of {K} labels; all_masks takes at most 20")
    return numbered_sets(np.arange(1 << K), K)


def cubes(loss: Loss, rng: np.random.Generator, *, many: int = 12) -> Iterator[Bools]:
    """Masks (2^m, K): row b holds the i-th free label if bit i of b is set. For K <= 12, one cube of all sets."""
    if loss.K <= MOST_LABELS:
        yield all_masks(loss.K)
        return
    telling = np.unique([y for atom in loss.expression.atoms.values() for y in atom.probes()]).astype(np.int64)
    for i in range(many):
        free = _free_labels(loss.K, telling, rng)
        masks = np.zeros((1 << _FREE, loss.K), dtype=bool)
        masks[:] = (False, True, rng.random(loss.K) < 0.5, rng.random(loss.K) < 3 / loss.K)[i % 4]
        masks[:, free] = all_masks(_FREE)
        yield masks


def _free_labels(K: int, telling: Ints, rng: np.random.Generator) -> Ints:
    known = rng.choice(telling, min(len(telling), _FREE // 2), replace=False) if len(telling) else telling
    others = np.setdiff1d(np.arange(K), known)
    return np.concatenate([known, rng.choice(others, _FREE - len(known), replace=False)])


def varied_sets(loss: Loss, rng: np.random.Generator, count: int) -> Bools:
    """`count` sets (count, K): empty, full, then in turn of any size, a category or nearly one, one label, a few.

    Nearly a category means with one label less or more. With more than 300 labels, no set has more than 100, as the
    interpreter may visit all pairs.
    """
    K = loss.K
    most = K if K <= _MANY else _LARGEST
    masks = np.zeros((max(count, 2), K), dtype=bool)
    masks[1, :most] = True
    categories = list(_categories(loss))
    quarter = -(-len(masks) // 4)
    for i in range(2, len(masks)):
        row, kind = masks[i], i % 4
        if kind == 0:  # spread evenly over all sizes
            size = int((i // 4 + rng.random()) / quarter * (most + 1))
            row[rng.choice(K, min(size, most), replace=False)] = True
        elif kind == 1 and categories:
            members = rng.permutation(categories[int(rng.integers(len(categories)))])[:most]
            row[members] = True
            change = int(rng.integers(3))
            if change:
                row[rng.choice(members) if change == 1 else int(rng.integers(K))] ^= True
        else:
            row[rng.choice(K, 1 if kind == 2 else min(K, int(rng.integers(2, 6))), replace=False)] = True
    return masks[:count]


def _categories(loss: Loss) -> Iterator[Ints]:
    """The labels of every category that an atom of the loss refers to."""
    for atom in loss.expression.atoms.values():
        for thing in vars(atom).values():
            if isinstance(thing, Category):
                yield thing.members
            families = [thing] if isinstance(thing, Family) else []
            if isinstance(thing, CategoryMetric):
                families = [thing.family]
            if isinstance(thing, TreeMetric):
                families = [thing.hierarchy.level(depth) for depth in range(1, thing.hierarchy.height + 1)]
            yield from (family.category(i).members for family in families for i in range(len(family)))


def named(loss: Loss, mask: Bools) -> str:
    """A set for messages: its labels in braces."""
    return "{" + ", ".join(loss.labels[y] for y in np.flatnonzero(mask)) + "}"


def fewest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """A minimal selection of the items, in order, for which `fails` still holds: none of them can be left out.

    Large parts are left out first, so that few calls are needed if few items matter.

    >>> fewest(range(100), lambda some: {3, 50} <= set(some))
    [3, 50]
    """
    held = list(items)
    step = len(held)
    while step:
        start, removed = 0, False
        while start < len(held):
            rest = held[:start] + held[start + step :]
            if fails(rest):
                held, removed = rest, True
            else:
                start += step
        if step > 1 or not removed:
            step //= 2
    return held


def hard_rows(rng: np.random.Generator, n: int, K: int) -> Probabilities:
    """Rows (n, K) of one kind, such as ties, zeros and ones, or tiny values, in float16, float32 or float64.

    >>> hard_rows(np.random.default_rng(0), 2, 3).shape
    (2, 3)
    """
    kinds = _kinds(rng, n, K)
    return _distributions(kinds[rng.integers(len(kinds))], rng)


def varied_rows(rng: np.random.Generator, n: int, K: int) -> Probabilities:
    """Rows (n, K) of all kinds of `hard_rows` in turn, in one of its types."""
    kinds, first = _kinds(rng, n, K), rng.integers(6)
    return _distributions(np.array([kinds[(first + i) % len(kinds)][i] for i in range(n)]), rng)


def _kinds(rng: np.random.Generator, n: int, K: int) -> tuple[npt.NDArray[Any], ...]:
    return (
        rng.integers(0, 3, size=(n, K)) + 1e-9,
        rng.random((n, K)),
        np.exp(20 * rng.normal(size=(n, K))),
        np.ones((n, K)),
        np.where(rng.random((n, K)) < 0.1, 1.0, 1e-30),
        np.eye(K)[rng.integers(K, size=n)],
    )


def _distributions(weights: npt.NDArray[Any], rng: np.random.Generator) -> Probabilities:
    P = weights / weights.sum(axis=1, keepdims=True)
    return np.asarray(P.astype((np.float16, np.float32, np.float64)[rng.integers(3)]))


def rows_on(live: npt.NDArray[np.int64], rng: np.random.Generator, n: int, K: int) -> npt.NDArray[np.float64]:
    """Rows (n, K) with all mass on the labels `live`: arbitrary, from few values that often tie, or equal."""
    P = np.zeros((n, K))
    for i in range(n):
        weights = (
            rng.dirichlet(np.full(len(live), 0.7)),
            1.0 + rng.multinomial(16, np.full(len(live), 1 / len(live))),
            np.ones(len(live)),
        )[(i + int(rng.integers(2))) % 3]
        P[i, live] = weights / weights.sum()
    return P


def drawn_inputs(
    declared: Mapping[str, RowInput], n: int, rng: np.random.Generator, *, distinct: int | None = None
) -> dict[str, Floats] | None:
    """Random inputs within their ranges, for tests.

    Parameters
    ----------
    declared : mapping
        The inputs, as `loss.inputs` has them.
    n : int
        Number of rows.
    rng : numpy.random.Generator
        Source of randomness.
    distinct : int, optional
        Number of different rows; by default all are drawn separately.

    Returns
    -------
    dict of arrays or None
        One array per input; None if none are declared.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> text = "labels {a, b}  input km in [0, 9]  costs fee per row in [1, 5]"
    >>> loss = udcp.loads(f"{text}  loss l = km + sum(fee)")
    >>> drawn = drawn_inputs(loss.inputs, 7, np.random.default_rng(0))
    >>> {name: column.shape for name, column in drawn.items()}
    {'km': (7,), 'fee': (7, 2)}
    """
    if not declared:
        return None
    if distinct is not None and distinct < n:
        which = rng.integers(distinct, size=n)
        return {name: column[which] for name, column in (drawn_inputs(declared, distinct, rng) or {}).items()}
    return {name: _column(x, n, rng) for name, x in declared.items()}


def drawn_row(loss: Loss, rng: np.random.Generator) -> dict[str, Any] | None:
    """Random inputs of one row; None if the loss reads none."""
    drawn = drawn_inputs(loss.inputs, 1, rng)
    return None if drawn is None else {name: column[0] for name, column in drawn.items()}


def shown_row(row: Row) -> str:
    """The inputs of a row, as the end of a message."""
    if row is None:
        return ""
    return ", for the inputs " + ", ".join(f"{name} = {np.asarray(value).tolist()}" for name, value in row.items())


def of_a_row(loss: Loss, rng: np.random.Generator) -> Loss:
    """The loss of a row with random inputs; unchanged if it reads none."""
    return loss.at(drawn_row(loss, rng)) if loss.inputs else loss


def _column(x: RowInput, n: int, rng: np.random.Generator) -> Floats:
    shape = (n,) if x.width is None else (n, x.width)
    values = rng.uniform(x.low, x.high, shape)
    kind = rng.random(shape)
    values = np.where(kind < 0.15, x.low, np.where(kind < 0.3, x.high, np.where(kind < 0.6, values.round(), values)))
    if x.width is not None:  # some rows have equal costs
        values = np.where(rng.random((n, 1)) < 0.1, values[:, :1], values)
    found: Floats = np.clip(values, x.low, x.high)
    return found
