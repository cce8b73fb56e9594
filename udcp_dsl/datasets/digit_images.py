"""A quick example with ten classes: a logistic regression on scikit-learn's handwritten digits, trained on a few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import TrueRows
from udcp_dsl.diagnostics import InputError, install_hint


@dataclass(frozen=True, eq=False)
class Digits(TrueRows):
    """Probabilities for handwritten digits that the classifier was not trained on, in random order.

    Attributes
    ----------
    probs : array, shape (n, 10)
        Probabilities.
    y : array of int, shape (n,)
        True labels.
    labels : tuple of str
        "0" to "9", so that integers in `y` are names and positions alike.
    """

    probs: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]


def digits(seed: int = 0, *, training_rows: int = 300, C: float = 30.0) -> Digits:
    """A logistic regression on scikit-learn's digits, trained on few rows so that it makes mistakes.

    Parameters
    ----------
    seed : int, default 0
        Random seed for the choice of training rows.
    training_rows : int, default 300
        Number of training rows, of 1,797; the others are returned.
    C : float, default 30
        Inverse strength of the regularisation. With 1 the model is right as often, but much less sure.

    Returns
    -------
    Digits
        Probabilities and true labels.

    Raises
    ------
    InputError
        scikit-learn is not installed, or a number is out of range.
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(f"the digits come from scikit-learn: {install_hint('sklearn')}") from None
    X, y = load_digits(return_X_y=True)
    if not 50 <= training_rows < len(y):
        raise InputError(f"training_rows is {training_rows}: give 50 to {len(y) - 1}")
    order = np.random.default_rng(seed).permutation(len(y))
    training, rest = order[:training_rows], order[training_rows:]
    if not C > 0:
        raise InputError(f"C is {C}: give a number above 0")
    model = LogisticRegression(C=C, max_iter=1000).fit(X[training] / 16, y[training])
    if len(model.classes_) < 10:
        raise InputError(f"the {training_rows} training rows have only {len(model.classes_)} of the digits: give more")
    return Digits(model.predict_proba(X[rest] / 16), y[rest].astype(np.int64), tuple(map(str, model.classes_)))
