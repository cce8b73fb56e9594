"""Scorers of prediction sets for scikit-learn's `cross_validate` and `GridSearchCV`, with inputs per row.

A scorer requests its metadata as an estimator does: `set_scorer("neg_cost").set_score_request(inputs=True)`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from udcp_dsl.diagnostics import InputError
from udcp_dsl.measure.evaluate import Evaluation
from udcp_dsl.predict.calibrate import Level

Measure = Literal["coverage", "neg_cost", "neg_size"]


# scikit-learn ships no types, so that its classes are Any to mypy.
class SetScorer(BaseEstimator):  # type: ignore[misc]
    """Scores the prediction sets of a `UtilitySetClassifier`, or of a pipeline that ends in one; see `set_scorer`."""

    __metadata_request__score: ClassVar[dict[str, Any]] = {"estimator": UNUSED}

    def __init__(self, measure: Measure = "coverage", alpha: Level | None = None) -> None:
        self.measure = measure
        self.alpha = alpha

    def __call__(self, estimator: Any, X: Any, y: Any, **given: Any) -> float:
        return self.score(estimator, X, y, **given)

    def score(
        self, estimator: Any, X: Any, y: Any, *, groups: Any = None, weights: Any = None, inputs: Any = None
    ) -> float:
        """Coverage, minus the mean cost, or minus the mean size, of the sets for rows with known classes."""
        if hasattr(estimator, "steps"):  # a pipeline
            X, estimator = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X, estimator[-1]
        if not hasattr(estimator, "evaluate_sets"):
            raise InputError(f"{type(estimator).__name__} predicts no sets: score a UtilitySetClassifier")
        given = {"groups": groups, "weights": weights, "inputs": inputs}
        found: Evaluation = estimator.evaluate_sets(X, y, alpha=self.alpha, **given)
        if self.measure == "coverage":
            return found.coverage
        return -found.mean_cost if self.measure == "neg_cost" else -found.mean_size


def set_scorer(measure: Measure = "coverage", *, alpha: Level | None = None) -> SetScorer:
    """A scorer of prediction sets: `coverage`, `neg_cost` (minus the mean cost) or `neg_size`, the higher the better.

    If the classifier has several alphas, `alpha` selects one. With scikit-learn's metadata routing, its
    `set_score_request` says which of `groups`, `weights` and `inputs` are passed to it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from udcp_dsl.sklearn import UtilitySetClassifier, set_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UtilitySetClassifier(LogisticRegression(max_iter=1000), alpha=0.1)
    >>> found = cross_validate(model, X, y, scoring={"coverage": set_scorer(), "cost": set_scorer("neg_cost")}, cv=3)
    >>> found["test_coverage"].shape
    (3,)
    """
    if measure not in get_args(Measure):
        raise InputError(f"measure is {measure!r}: give one of {', '.join(get_args(Measure))}")
    return SetScorer(measure, alpha)
