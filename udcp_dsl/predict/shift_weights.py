"""`weights`: how many times as likely a row is among the new rows as among the old, estimated by a classifier.

With q(x) the probability that a row is new rather than old, the ratio of the densities is q / (1 - q) times n_old /
n_new. Most classifiers are too sure of the rows that they were fitted on: a forest says q near 0 for old rows and near
1 for new ones even if nothing has shifted. So each row gets the odds of a copy that was fitted on other rows. (The
default, a penalised logistic regression, has few parameters; its odds are nearer to the truth if it is fitted on all
rows.) With the true ratio, weighted calibration covers the new rows exactly. With an estimate, coverage is not exact,
and a warning says so.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.predict.oracle import Floats

CLIP = 20.0
_FOLDS = 5
# On the squared slopes of standardised features: keeps them finite if old and new rows can be separated.
_PENALTY = 1.0


@dataclass(frozen=True, eq=False)
class ShiftWeights:
    """Weights for a covariate shift, made by `weights_from_classifier`.

    Attributes
    ----------
    old : array of float, shape (n,)
        Weights of the calibration rows, for `calibrate`.
    new : array of float, shape (m,)
        Weights of the new rows, for `predict_set`.
    effective_size : float
        Number of equally weighted rows that the calibration rows are worth: (sum of w)^2 / sum of w^2.
    """

    old: Floats
    new: Floats
    effective_size: float


def weights_from_classifier(old: Any, new: Any, *, classifier: Any = None, clip: float = CLIP) -> ShiftWeights:
    """Estimate weights for rows that differ from those of calibration (covariate shift).

    A classifier learns to tell old rows from new ones; its odds are the weights. It warns that coverage is exact only
    for the true weights, and reports the effective number of calibration rows, how many old and new rows there are, and
    the mean weight of the old rows, which is 1 for the true weights.

    Parameters
    ----------
    old : array, shape (n, d)
        Features of the calibration rows, or the probabilities that they were given.
    new : array, shape (m, d)
        The same features of the new rows.
    classifier : object, optional
        A classifier with `fit(X, y)` and `predict_proba(X)`, as in scikit-learn. The odds of a row come from a copy of
        it that was fitted without this row (in five folds, the same in every call; copies without a `random_state` get
        one). By default, a logistic regression, fitted on all rows.
    clip : float, default 20
        Weights are kept between 1 / clip and clip.

    Returns
    -------
    ShiftWeights
        Weights of both kinds of rows.

    Raises
    ------
    InputError
        The two arrays have different columns, or the classifier lacks `fit` or `predict_proba` or has too few rows.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(0, 1, (500, 1)), rng.normal(1, 1, (500, 1))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     found = weights_from_classifier(old, new)
    >>> bool(found.new.mean() > found.old.mean()), bool(found.effective_size < 500)
    (True, True)
    """
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 1 <= clip < np.inf:
        raise InputError(f"clip is {clip!r}: give the largest ratio to accept, 1 or more")
    a, b = _features(old, "old"), _features(new, "new")
    if a.shape[1] != b.shape[1]:
        raise InputError(f"old rows have {a.shape[1]} columns, new rows {b.shape[1]}: give the same features for both")
    X, kind = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
    odds = _logistic(X, kind) if classifier is None else _out_of_fold(classifier, X, kind)
    with np.errstate(over="ignore"):
        ratios = np.clip(np.exp(odds) * (len(a) / len(b)), 1 / clip, clip)
    own = ratios[: len(a)]
    effective = float(own.sum() ** 2 / (own**2).sum())
    warn(
        "the weights are estimated, and coverage is exact only for the true ratio of new to old rows; they leave an "
        f"effective sample of {effective:.0f} of the {len(a)} old rows ({len(a)} old and {len(b)} new rows were told "
        f"apart; the mean weight of old rows, 1 for the true ratio, is {own.mean():.2f})"
    )
    return ShiftWeights(own, ratios[len(a) :], effective)


def _features(rows: Any, name: str) -> Floats:
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the {name} rows are not numbers: {error}") from error
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"the {name} rows have shape {values.shape}: give one row of features per instance, (n, d)")
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(f"the {name} rows: row {int(bad.argmax())} (counted from 0) contains NaN or infinity")
    return values


def _out_of_fold(classifier: Any, X: Floats, kind: Any) -> Floats:
    """The log-odds of each row by a copy fitted on the other folds; each fold has its share of old and of new rows."""
    if not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InputError(f"classifier is a {type(classifier).__name__}: give one with fit and predict_proba")
    n_old, n_new = np.bincount(kind).tolist()
    if min(n_old, n_new) < 2:
        raise InputError(f"there are {n_old} old and {n_new} new rows: a classifier needs 2 or more of both")
    rng, folds, fold = np.random.default_rng(0), min(_FOLDS, n_old, n_new), np.empty(len(X), dtype=np.int64)
    for each in (0, 1):
        own = np.flatnonzero(kind == each)
        fold[rng.permutation(own)] = np.arange(own.size) % folds
    odds = np.empty(len(X))
    for j in range(folds):
        own, others = fold == j, fold != j
        q = np.asarray(_copy_of(classifier).fit(X[others], kind[others]).predict_proba(X[own]), dtype=np.float64)
        if q.shape != (own.sum(), 2) or np.isnan(q).any():
            raise InputError(f"the classifier's predict_proba returned shape {q.shape}, or NaN: expected two columns")
        with np.errstate(divide="ignore"):
            odds[own] = np.log(q[:, 1]) - np.log(q[:, 0])
    return odds


def _copy_of(classifier: Any) -> Any:
    """A copy to fit; where scikit-learn would draw a random state, it is 0."""
    copied = deepcopy(classifier)
    if hasattr(classifier, "get_params"):
        params = classifier.get_params()
        copied.set_params(**{x: 0 for x in params if x.rpartition("__")[2] == "random_state" and params[x] is None})
    return copied


def _logistic(X: Floats, kind: Any) -> Floats:
    """The log-odds of each row by logistic regression on standardised features."""
    from scipy.optimize import minimize  # slow to import
    from scipy.special import expit

    scale = X.std(axis=0)
    Z = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)])
    sign = np.where(kind == 1, 1.0, -1.0)

    def objective(slopes: Floats) -> tuple[float, Floats]:
        margins = sign * (Z @ slopes)
        penalised = np.append(0.0, slopes[1:])
        value = np.logaddexp(0.0, -margins).sum() + _PENALTY / 2 * (penalised @ penalised)
        return float(value), _PENALTY * penalised - Z.T @ (sign * expit(-margins))

    found = minimize(objective, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(Z @ found.x)
