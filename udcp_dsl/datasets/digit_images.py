"""Ten classes in no time: a logistic regression on scikit-learn's handwritten digits, trained on a few of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError


@dataclass(frozen=True, eq=False)
class Digits:
    """The digits that the classifier was not trained on, in random order: any slice is a fair sample.

    `labels` are "0" to "9", so that the integers of `y` are names and positions alike.
    """

    probs: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)


def digits(seed: int = 0, *, training_rows: int = 300, C: float = 30.0) -> Digits:
    """Probabilities for the digits that are left when `training_rows` of the 1,797, drawn by `seed`, train the model.

    Few rows are taken by default, so that there are mistakes to cover. The model is scikit-learn's logistic regression;
    its `C` is about what cross-validation of the likelihood on the training rows picks. With C = 1 it is as often
    right, but far less sure than it may be.
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError("the digits are those of scikit-learn: pip install 'udcp_dsl[sklearn]'") from None
    X, y = load_digits(return_X_y=True)
    if not 50 <= training_rows < len(y):
        raise InputError(f"training_rows is {training_rows}: give 50 to {len(y) - 1}")
    order = np.random.default_rng(seed).permutation(len(y))
    training, rest = order[:training_rows], order[training_rows:]
    if not C > 0:
        raise InputError(f"C is {C}: give a number above 0")
    model = LogisticRegression(C=C, max_iter=1000).fit(X[training] / 16, y[training])
    if len(model.classes_) < 10:
        raise InputError(f"only {len(model.classes_)} digits are among the {training_rows} training rows: give more")
    return Digits(model.predict_proba(X[rest] / 16), y[rest].astype(np.int64), tuple(map(str, model.classes_)))
