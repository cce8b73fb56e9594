"""Random inputs of rows within their ranges: the ends, round numbers (as comparisons use them), and any others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from udcp_dsl.expression.rows.declared import RowInput

if TYPE_CHECKING:
    from udcp_dsl.expression.domain import Floats
    from udcp_dsl.loss import Loss

Row: TypeAlias = Mapping[str, Any] | None  # the inputs of one row; None if there are none

_DISTINCT = 8


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


def few_rows(declared: Mapping[str, RowInput], n: int, rng: np.random.Generator) -> dict[str, Floats] | None:
    """`drawn_inputs` with few distinct rows, so that few oracles have to be made."""
    return drawn_inputs(declared, n, rng, distinct=_DISTINCT)


def _column(x: RowInput, n: int, rng: np.random.Generator) -> Floats:
    shape = (n,) if x.width is None else (n, x.width)
    values = rng.uniform(x.low, x.high, shape)
    kind = rng.random(shape)
    values = np.where(kind < 0.15, x.low, np.where(kind < 0.3, x.high, np.where(kind < 0.6, values.round(), values)))
    if x.width is not None:  # some rows have equal costs
        values = np.where(rng.random((n, 1)) < 0.1, values[:, :1], values)
    found: Floats = np.clip(values, x.low, x.high)
    return found
