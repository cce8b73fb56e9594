"""Strategies for the inputs of losses and oracles: sets of labels, probabilities, sources of labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from udcp_dsl.check.coverage import CLASSIFIERS, Problem

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

Probabilities = npt.NDArray[np.floating[Any]]


def label_sets(loss: Loss) -> st.SearchStrategy[frozenset[str]]:
    """A hypothesis strategy for sets of the labels of a loss, by name.

    Parameters
    ----------
    loss : Loss
        The loss.

    Returns
    -------
    SearchStrategy of frozenset of str
        For `@given`.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> from hypothesis import find
    >>> loss = udcp.loads("labels {a, b, c}  loss l = size")
    >>> sorted(find(label_sets(loss), lambda S: len(S) == 3))
    ['a', 'b', 'c']
    """
    some = st.frozensets(st.sampled_from(loss.labels))
    return st.one_of(some, some.map(frozenset(loss.labels).difference))


def probabilities(K: int, *, max_rows: int = 6) -> st.SearchStrategy[Probabilities]:
    """A hypothesis strategy for probability matrices as difficult as real classifiers make them.

    Rows have ties, zeros, all mass on one label, or are uniform or equal. Each sums to 1 as exactly as its type allows.

    Parameters
    ----------
    K : int
        Number of labels.
    max_rows : int, default 6
        Largest number of rows.

    Returns
    -------
    SearchStrategy of array, shape (n, K)
        In float16, float32 or float64.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(probabilities(2), lambda P: P[0, 1] == 0.5).tolist()
    [[0.5, 0.5]]
    """
    if K < 1:
        raise ValueError(f"K is {K}; there must be at least one label")
    few = st.sampled_from((0.0, 1.0, 2.0, 3.0))
    weights = st.lists(few, min_size=K, max_size=K).map(lambda w: w if any(w) else [1.0] * K)
    sure = st.tuples(st.integers(0, K - 1), st.sampled_from((0.0, 1e-12, 1e-6, 1e-3))).map(lambda t: _sure(K, *t))
    uneven = st.lists(st.floats(1e-6, 1.0), min_size=K, max_size=K)
    row = st.one_of(weights, sure, uneven).map(_distribution)
    rows = st.lists(row, min_size=1, max_size=max_rows)
    repeated = st.tuples(row, st.integers(1, max_rows)).map(lambda t: [t[0]] * t[1])
    return st.builds(
        lambda matrix, dtype: np.array(matrix, dtype=dtype),
        st.one_of(rows, repeated),
        st.sampled_from((np.float64, np.float32, np.float16)),
    )


def classification_problems(loss: Loss) -> st.SearchStrategy[Problem]:
    """A hypothesis strategy for sources of labelled rows, for `assert_coverage`.

    Classifiers are calibrated, over- and underconfident, shifted, noisy, tied, certain and so on; labels are equally
    frequent or very rare; probabilities are float16, float32 or float64.

    Parameters
    ----------
    loss : Loss
        Its labels are those of the rows.

    Returns
    -------
    SearchStrategy of Problem
        For `@given`.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> from hypothesis import find
    >>> loss = udcp.loads("labels {a, b, c}  loss l = size")
    >>> problem = find(classification_problems(loss), lambda x: x.kind == "tied")
    >>> problem.draw(4, np.random.default_rng(0))[0].shape
    (4, 3)
    """
    return st.builds(
        lambda kind, seed, dtype: Problem.generated(loss.K, np.random.default_rng(seed), kind=kind, dtype=dtype),
        st.sampled_from(sorted(CLASSIFIERS)),
        st.integers(0, 2**16),
        st.sampled_from((np.float64, np.float32, np.float16)),
    )


def _sure(K: int, label: int, rest: float) -> list[float]:
    return [1.0 if y == label else rest for y in range(K)]


def _distribution(weights: list[float]) -> npt.NDArray[np.float64]:
    raw = np.array(weights, dtype=np.float64)
    return np.asarray(raw / raw.sum())
