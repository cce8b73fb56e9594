"""Prediction sets for any scikit-learn classifier: split, fit on one part, calibrate on the other.

The columns of `predict_proba` are in the order of `classes_`, which is sorted; those of a loss are in the order of its
spec. This module matches the two by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.model_selection import train_test_split
    from sklearn.utils import _safe_indexing, check_random_state, indexable
    from sklearn.utils.metadata_routing import (
        MetadataRouter,
        MethodMapping,
        _routing_enabled,
        get_routing_for_object,
        process_routing,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, column_or_1d
except ImportError:
    from udcp_dsl.diagnostics import install_hint

    raise ImportError(f"udcp_dsl.sklearn needs scikit-learn: {install_hint('sklearn')}") from None

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.loss import Loss, load, loads
from udcp_dsl.measure.evaluate import Evaluation, MeasuredRows, evaluate, measure
from udcp_dsl.predict.calibrate import Level, exact_level, show_level
from udcp_dsl.predict.calibrate.cross import CrossCalibration, equal_folds, warn_of_many_folds
from udcp_dsl.predict.chain import plain, read
from udcp_dsl.predict.oracle import Oracle, make_oracle
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.predict.promise import OPTIONS, Promise, Temperature
from udcp_dsl.predict.repair import Repair
from udcp_dsl.predict.row_warnings import warn_of_high_alpha
from udcp_dsl.predict.sets import PredictionSets
from udcp_dsl.predict.stages.anchor import find_anchor
from udcp_dsl.predict.stages.stage import FitContext
from udcp_dsl.rows.columns import are_positions, as_weights, refuse_another_index, truth
from udcp_dsl.rows.matrix import check_class_names, names_of_classes
from udcp_dsl.rows.rows import Rows, indexed_inputs, rows_of
from udcp_dsl.sklearn_scoring import SetScorer, set_scorer

__all__ = ["SetScorer", "UtilitySetClassifier", "set_scorer"]

_NAMED = 4  # labels that a message names to show an order

LossLike: TypeAlias = Loss | str | os.PathLike[str] | Callable[[npt.NDArray[Any]], Loss] | None


# scikit-learn ships no types, so that its classes are Any to mypy.
class UtilitySetClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that also predicts sets with guaranteed coverage and low cost.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        Cloned by `fit`; used as it is by `calibrate`.
    loss : Loss, path, callable or None, default None
        What a set costs: a Loss, the path of a `.loss` file, or a function from the classes to a Loss. None means the
        size of the set. Classes and labels are matched by name.
    class_names : sequence, optional
        The label that each integer class stands for, required if classes are integers and labels are names:
        `encoder.classes_` of a LabelEncoder, or `loss.labels` if they count in the order of the spec.
    oracle : str, default "price"
        Name of the oracle.
    options : mapping, optional
        Options of the oracle.
    alpha : float or sequence of float, default 0.1
        Share of true classes that sets may miss. With several values, `predict_set` selects one. With `risk`, the
        largest mean harm.
    miss : float, optional
        Cost of a missed true label, in the unit of the loss. Replaces alpha, which is then chosen for you.
    calibration_size : float or int, default 0.25
        Share or number of the rows that `fit` keeps for calibration.
    cv : int, optional
        Number of folds, for small data: every row trains and calibrates (cross-conformal prediction). Coverage is then
        at least 1 - 2 alpha, and close to 1 - alpha in practice. Only coverage over all rows is available, lambda must
        be given, and `repair="auto"` means none.
    conditional, bins, confidence, simultaneous, risk, repair, nonempty, randomize, pool
        As for `SetPredictor`; the rows of a repair are taken from the calibration rows.
    temperature : float or "fit", optional
        Deprecated; use `repair`.
    random_state : int, RandomState or None, default 0
        Random seed for the split, the folds and `randomize`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : array
        The classes, sorted.
    loss_ : Loss
        The compiled loss.
    predictor_ : SetPredictor
        The calibrated predictor; not there with `cv`.
    cross_ : CrossCalibration
        With `cv`, the scores of each fold by an estimator fitted on the others.
    n_features_in_, feature_names_in_
        As in `estimator_`, if it has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from udcp_dsl.sklearn import UtilitySetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UtilitySetClassifier(LogisticRegression(max_iter=1000), alpha=0.1)
    >>> model.fit(X, y).predict_set(X[:2]).labels
    [(0,), (0,)]
    """

    def __init__(
        self,
        estimator: Any,
        loss: LossLike = None,
        *,
        oracle: str = "price",
        options: Mapping[str, object] | None = None,
        alpha: Level | Sequence[Level] = 0.1,
        calibration_size: float | int = 0.25,
        cv: int | None = None,
        miss: float | None = None,
        conditional: Literal["group", "class", "difficulty", "decision"] | None = None,
        bins: int | None = None,
        confidence: Level | None = None,
        simultaneous: bool = False,
        risk: str | None = None,
        repair: Literal["auto", "temperature"] | Repair | None = "auto",
        temperature: Temperature = None,
        nonempty: bool = False,
        randomize: bool = False,
        pool: bool = False,
        class_names: Sequence[object] | None = None,
        random_state: Any = 0,
    ) -> None:
        given = locals()
        for name in self._get_param_names():  # scikit-learn wants every parameter as it was given
            setattr(self, name, given[name])

    def fit(
        self, X: Any, y: Any, *, groups: Any = None, weights: Any = None, inputs: Any = None, **fit_params: Any
    ) -> UtilitySetClassifier:
        """Fit a clone of the estimator on one part of the rows, and calibrate on the rest.

        The split is random and not stratified by class, so that the calibration rows are like new ones. A class without
        a training row gets probability 0. With `cv`, k + 1 clones are fitted (one on all rows for `predict`), and k
        more if the oracle needs an anchor.

        Parameters
        ----------
        X : array or frame, shape (n, d)
            Features.
        y : array, shape (n,)
            True classes.
        groups : array, optional
            Group of each row, for `conditional="group"`.
        weights : array, optional
            How much more likely each row is among new rows than here. Used for calibration, not passed to the
            estimator; `predict_set` then needs the weights of the new rows.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row. Costs per label are in the order of the labels of the spec.
            `set_fit_request(inputs=True, groups=True)` lets pipelines and `cross_validate` pass them on.
        **fit_params
            What the estimator's `fit` requests by scikit-learn's metadata routing, such as `sample_weight`. It gets
            the values of the rows that it is fitted on; they do not affect calibration.

        Returns
        -------
        UtilitySetClassifier
            The classifier itself.
        """
        X, y, groups = indexable(X, y, groups)
        _check_rows(X, inputs, y=y, groups=groups, weights=weights)
        routed = self._routed(fit_params, groups=groups, weights=weights, inputs=inputs)
        given = None if weights is None else as_weights(weights, _num_samples(X))
        target = _checked_target(y)
        loss = self._compiled_loss(np.unique(target))
        rng = check_random_state(self.random_state)
        for name in ("cross_", "predictor_"):
            self.__dict__.pop(name, None)
        if self.cv is not None:
            _refuse_with_cv(groups=groups, weights=weights)
            return self._fit_cross(X, y, target, loss, rng, inputs, routed)
        # Of all rows, so that errors name the user's rows, and those that train are checked, too.
        numbers = self._promise().reads(loss).inputs_of(inputs, _num_samples(X))
        training, held_out = train_test_split(
            np.arange(_num_samples(X)), test_size=self.calibration_size, random_state=rng
        )
        _require_probabilities(self.estimator)
        self.estimator_ = self._fitted(X, y, training, routed)
        self.classes_, self._prefit = np.unique(target), False
        kept = None if groups is None else _safe_indexing(groups, held_out)
        own = None if given is None else given[held_out]
        some = None if numbers is None else numbers[held_out]
        return self._calibrate(_safe_indexing(X, held_out), target[held_out], loss, kept, own, rng, some)

    def calibrate(
        self, X: Any, y: Any, *, groups: Any = None, weights: Any = None, inputs: Any = None
    ) -> UtilitySetClassifier:
        """Calibrate on rows that the estimator was not fitted on: after `fit`, or with an estimator that is already
        fitted.

        Parameters
        ----------
        X, y, groups, weights, inputs
            As for `fit`.

        Returns
        -------
        UtilitySetClassifier
            The classifier itself.
        """
        if getattr(self, "_prefit", True):
            _require_probabilities(self.estimator)
            check_is_fitted(self.estimator)
            self.estimator_, self._prefit = self.estimator, True
            self.classes_ = np.unique(self.estimator.classes_)
        _check_rows(X, inputs, y=y, groups=groups, weights=weights)
        rng = check_random_state(self.random_state)
        loss = self._compiled_loss(self.classes_)
        return self._calibrate(X, _checked_target(y), loss, groups, weights, rng, inputs)

    def _calibrate(
        self, X: Any, y: npt.NDArray[Any], loss: Loss, groups: Any, weights: Any, rng: Any, inputs: Any
    ) -> UtilitySetClassifier:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.loss_ = loss
        # By name, as positions would be taken for names if the labels are numbers.
        classes, rows = np.unique(y, return_inverse=True)
        names = [self.loss_.labels[i] for i in self._positions(classes, "y")]
        self._seed = int(rng.randint(1 << 31))
        self.predictor_ = self._new_predictor(self.oracle, self.options)
        truth = [names[row] for row in rows]
        self.predictor_.calibrate(self._probabilities(X), truth, groups=groups, weights=weights, inputs=inputs)
        self.predictor_.given_labels = self._given_labels()
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict one class per row, as the estimator does.

        Parameters
        ----------
        X : array or frame, shape (n, d)
            Features.

        Returns
        -------
        array, shape (n,)
            The classes.
        """
        check_is_fitted(self, "loss_")
        predicted: npt.NDArray[Any] = self.estimator_.predict(X)
        return predicted

    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """The probabilities of the estimator.

        Parameters
        ----------
        X : array or frame, shape (n, d)
            Features.

        Returns
        -------
        array, shape (n, K)
            One column per class in `classes_`.
        """
        check_is_fitted(self, "loss_")
        given: npt.NDArray[Any] = self.estimator_.predict_proba(X)
        out = np.zeros((len(given), len(self.classes_)), given.dtype)
        out[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = given
        return out

    def predict_set(
        self,
        X: Any,
        *,
        alpha: Level | None = None,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
    ) -> PredictionSets:
        """Predict sets of classes.

        Parameters
        ----------
        X : array or frame, shape (n, d)
            Features.
        alpha : float, optional
            Which alpha to use, if several were calibrated.
        groups, weights, inputs, ids
            As for `SetPredictor.predict_set`.

        Returns
        -------
        PredictionSets
            `.labels` hold classes of the type that `predict` gives; columns of `.mask` are in the order of
            `loss_.labels`.
        """
        check_is_fitted(self, "loss_")
        _check_rows(X, inputs, groups=groups, weights=weights, ids=ids)
        if hasattr(self, "cross_"):
            _refuse_with_cv(groups=groups, weights=weights)
            return self._cross_sets(X, alpha, ids, inputs)
        more = {"groups": groups, "weights": weights, "inputs": inputs, "ids": ids}
        sets: PredictionSets = self.predictor_.predict_set(self._probabilities(X), alpha=alpha, **more)
        return sets

    def p_values(
        self, X: Any, *, groups: Any = None, weights: Any = None, inputs: Any = None
    ) -> npt.NDArray[np.float64]:
        """The smallest alpha at which each label is left out; with `cv`, the mean over the folds.

        Parameters
        ----------
        X : array or frame, shape (n, d)
            Features.
        groups, weights, inputs
            As for `predict_set`.

        Returns
        -------
        array of float, shape (n, K)
            Columns in the order of `loss_.labels`.
        """
        check_is_fitted(self, "loss_")
        _check_rows(X, inputs, groups=groups, weights=weights)
        if hasattr(self, "cross_"):
            _refuse_with_cv(groups=groups, weights=weights)
            found: npt.NDArray[np.float64] = self.cross_.p_values(self._cross_scores(X, self._given_inputs(X, inputs)))
            return found
        more = {"groups": groups, "weights": weights, "inputs": inputs}
        own: npt.NDArray[np.float64] = self.predictor_.p_values(self._probabilities(X), **more)
        return own

    def evaluate_sets(
        self,
        X: Any,
        y: Any,
        *,
        alpha: Level | None = None,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
    ) -> Evaluation:
        """Measure coverage and cost on rows that neither `fit` nor `calibrate` has seen.

        `udcp.evaluate(model, X, y)` is the same.

        Parameters
        ----------
        X : array or frame, shape (n, d)
            Features.
        y : array, shape (n,)
            True classes.
        alpha : float, optional
            Which alpha to use, if several were calibrated.
        groups, weights, inputs, ids
            As for `predict_set`.

        Returns
        -------
        Evaluation
            Coverage, cost and size, overall and by stratum.
        """
        check_is_fitted(self, "loss_")
        _check_rows(X, inputs, y=y, groups=groups, weights=weights, ids=ids)
        classes, rows = np.unique(_checked_target(y), return_inverse=True)
        truth = np.array(self.loss_.labels, dtype=object)[self._positions(classes, "y")[rows]]
        P = self._probabilities(X)
        if not hasattr(self, "cross_"):
            more = {"groups": groups, "weights": weights, "inputs": inputs, "ids": ids}
            return evaluate(self.predictor_, P, truth, alpha=alpha, **more)
        _refuse_with_cv(weights=weights)
        sets = self._cross_sets(X, alpha, ids, inputs)
        level = self._levels[0] if alpha is None else exact_level(alpha)
        given = rows_of(P, self.loss_.labels, y=truth, groups=groups)
        promise = Promise(alpha=level)
        parts = [MeasuredRows.of(sets, given, promise)]
        found = measure(parts, self.loss_, promise, alpha=level, oracle=self.oracle)
        return replace(found, made=sets)

    def get_metadata_routing(self) -> Any:
        """What `fit` and `score` request for themselves, and what `fit` passes on to the estimator.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The requests of the classifier and of its estimator.
        """
        passed_on = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=passed_on)

    def _routed(self, fit_params: Mapping[str, Any], **own: Any) -> Mapping[str, Any]:
        """What the estimator's `fit` requests, of `fit_params` and of our own arguments."""
        if not _routing_enabled():
            if fit_params:
                name = next(iter(fit_params))
                raise InputError(
                    f"fit got {name}, which reaches the estimator only by metadata routing: call "
                    f"sklearn.set_config(enable_metadata_routing=True) and estimator.set_fit_request({name}=True)"
                )
            return {}
        given = {name: x for name, x in own.items() if x is not None}
        also = get_routing_for_object(self.estimator).consumes("fit", given)
        routed = process_routing(self, "fit", **fit_params, **{name: given[name] for name in also})
        found: Mapping[str, Any] = routed.estimator.fit
        return found

    def _fitted(self, X: Any, y: Any, rows: npt.NDArray[np.intp], routed: Mapping[str, Any]) -> Any:
        """A clone of the estimator, fitted on some rows with their share of what it requests."""
        params = _check_method_params(X, params=routed, indices=rows)
        return clone(self.estimator).fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **params)

    def _positions(self, classes: npt.NDArray[Any], what: str) -> npt.NDArray[np.int64]:
        return _positions(classes, self.loss_.labels, what, self.class_names)

    def _probabilities(self, X: Any, estimator: Any = None) -> npt.NDArray[Any]:
        """The estimator's probabilities in the order of the loss; 0 for labels that it does not know."""
        fitted = self.estimator_ if estimator is None else estimator
        given = fitted.predict_proba(X)
        out = np.zeros((len(given), self.loss_.K), given.dtype)
        out[:, self._positions(fitted.classes_, "the estimator's classes")] = given
        return out

    # Every row trains and calibrates

    def _fit_cross(
        self, X: Any, y: Any, target: npt.NDArray[Any], loss: Loss, rng: Any, inputs: Any, routed: Mapping[str, Any]
    ) -> UtilitySetClassifier:
        names = ("miss", "conditional", "bins", "confidence", "simultaneous", "risk", "randomize", "pool")
        _refuse_with_cv(**{name: getattr(self, name) for name in names})
        promise = self._promise()
        warn_of_high_alpha(promise)
        if promise.repair == "temperature":
            raise InputError("cv leaves no rows to fit a temperature on: give a Repair, or leave out cv")
        _require_probabilities(self.estimator)
        self._levels, self._repair = promise.alphas, promise.repair if isinstance(promise.repair, Repair) else None
        n = _num_samples(X)
        given = loss.inputs_of(inputs, n)
        self._seed = int(rng.randint(1 << 31))
        folds = equal_folds(n, self.cv, np.random.default_rng(self._seed))
        warn_of_many_folds(n, len(folds), self._levels)

        def fitted(rows: npt.NDArray[np.intp]) -> Any:
            return self._fitted(X, y, rows, routed)

        self.classes_, self._prefit = np.unique(target), False
        self.estimator_ = fitted(np.arange(n))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.loss_ = loss
        classes, of = np.unique(target, return_inverse=True)
        truth = self._positions(classes, "y")[of]
        oracle = self._cross_oracle
        if oracle.untuned:
            raise InputError(f"cv leaves no rows to tune the lambda of {oracle.name!r} on: give lam in the options")
        if FitContext(promise, oracle).enforces_limits:
            raise InputError("cv leaves no rows to find the multipliers of limits on: leave out cv, or the limits")
        own, scores = [], []
        for j, fold in enumerate(folds):
            others = np.setdiff1d(np.arange(n), fold)
            estimator, anchor = fitted(others), None
            if oracle.wants_anchor and len(folds) > 2:
                inner = folds[(j + 1) % len(folds)]  # one of the training folds, with an estimator that has not seen it
                inputs = None if given is None else given[inner]
                rows = self._cross_rows(_safe_indexing(X, inner), fitted(np.setdiff1d(others, inner)), inputs)
                anchor = find_anchor(oracle, rows.with_columns(y=truth[inner]), float(1 - min(self._levels)))
            own.append((estimator, anchor))
            rows = self._cross_rows(_safe_indexing(X, fold), estimator, None if given is None else given[fold], anchor)
            scores.append(oracle.score_of(rows, truth[fold]))
        self._folds, self.cross_ = own, CrossCalibration.of(scores)
        return self

    @property
    def _cross_oracle(self) -> Oracle:
        """The oracle for the loss, made once; a copy of the classifier makes its own."""
        if self.__dict__.get("_made", (None,))[0] is not self.loss_:
            if not isinstance(self.oracle, str):
                raise TypeError(f"oracle is a {type(self.oracle).__name__}: give its name, and its options as options=")
            self._made = self.loss_, make_oracle(self.oracle, self.loss_, **(self.options or {}))
        oracle: Oracle = self._made[1]
        return oracle

    def _cross_rows(self, X: Any, estimator: Any, inputs: RowInputs | None, anchor: float | None = None) -> Rows:
        """The rows by the estimator of a fold, checked, repaired if a repair is given, and at the anchor of the fold,
        if there is one."""
        rows = rows_of(self._probabilities(X, estimator), self.loss_.labels, empty=True).with_columns(inputs=inputs)
        if self._repair is not None:
            rows = rows.with_columns(P=self._repair.for_labels(self.loss_.labels).apply(rows.P))
        return rows if anchor is None else rows.with_columns(anchor=np.full(len(rows), anchor))

    def _given_inputs(self, X: Any, inputs: Any) -> RowInputs | None:
        """The inputs that the loss reads for each row, checked."""
        return self.loss_.inputs_of(inputs, _num_samples(X))

    def _cross_scores(self, X: Any, inputs: RowInputs | None) -> list[npt.NDArray[np.float64]]:
        """The scores of all labels, by the estimator of each fold."""
        oracle = self._cross_oracle
        return [oracle.scores(self._cross_rows(X, estimator, inputs, anchor)) for estimator, anchor in self._folds]

    def _cross_sets(self, X: Any, alpha: Level | None, ids: Any, inputs: Any) -> PredictionSets:
        if alpha is None and len(self._levels) > 1:
            raise InputError("fitted for several alphas: give alpha")
        level = self._levels[0] if alpha is None else exact_level(alpha)
        if level not in self._levels:
            raise InputError(
                f"not fitted for alpha {show_level(level)}: choose from {list(map(show_level, self._levels))}"
            )
        given = self._given_inputs(X, inputs)
        scores = self._cross_scores(X, given)
        mask = self.cross_.sets(scores, level)
        if self.nonempty:
            mask[np.arange(len(mask)), self.cross_.p_values(scores).argmax(axis=1)] = True
        names = None if ids is None else np.array([str(name) for name in ids])
        return PredictionSets(self.loss_, mask, names, given_labels=self._given_labels(), inputs=given)

    def _given_labels(self) -> tuple[Any, ...] | None:
        """The class of each label of the loss; None if the classes are the labels themselves.

        A label that is no class keeps its name; if classes are numbers, it gets its own number or else its position,
        in `class_names`.
        """
        labels, classes = self.loss_.labels, [c.item() if hasattr(c, "item") else c for c in self.classes_]
        positions = self._positions(self.classes_, "the classes").tolist()
        given: list[Any] = list(labels)
        if (kind := type(classes[0])) in (int, float):
            numbers = all(map(WHOLE_NUMBER.fullmatch, labels))
            place = {str(name): i for i, name in enumerate(labels if self.class_names is None else self.class_names)}
            given = [kind(label if numbers else place[label]) for label in labels]
        for position, own in zip(positions, classes, strict=True):
            given[position] = own
        return None if tuple(given) == labels else tuple(given)

    def _compiled_loss(self, classes: npt.NDArray[Any]) -> Loss:
        """The loss, whose labels the classes have been checked to belong to."""
        loss = self._loss_for(classes)
        if self.class_names is not None:
            check_class_names(self.class_names, loss.labels)
        elif are_positions([_plain(c) for c in classes], loss.labels):
            own, encoded = (", ".join(names[:_NAMED]) for names in (loss.labels, sorted(loss.labels)))
            raise InputError(
                f"the classes are integers, and the labels of the loss are names, in the order {own} ...; encoders "
                f"number names in sorted order, {encoded} ...: fit on names, encoder.inverse_transform(y), or say what "
                "the integers stand for, class_names=encoder.classes_ (class_names=loss.labels for the order of the "
                "spec)"
            )
        return loss

    def _loss_for(self, classes: npt.NDArray[Any]) -> Loss:
        if self.loss is None:
            return loads("loss size_of_set = size", labels=[str(_plain(c)) for c in classes])
        if isinstance(self.loss, Loss):
            return self.loss
        if isinstance(self.loss, str | os.PathLike):
            return load(os.fspath(self.loss))
        if not callable(self.loss):
            raise TypeError(f"loss is a {type(self.loss).__name__}: give a Loss, a path, or a function of the classes")
        made = self.loss(classes)
        if not isinstance(made, Loss):
            raise TypeError(f"the function given as loss returned a {type(made).__name__}, not a Loss")
        return made

    def _new_predictor(self, oracle: Any, options: Mapping[str, object] | None) -> SetPredictor:
        if not isinstance(oracle, str):
            raise TypeError(f"oracle is a {type(oracle).__name__}: give its name, and its options as options={{...}}")
        return SetPredictor(self.loss_, oracle, options=options, promise=self._promise())

    def _promise(self) -> Promise:
        """The promise that the parameters describe; its seed is drawn from `random_state`."""
        asked = {name: getattr(self, name) for name in OPTIONS if name != "seed"}
        if self.miss is not None and self.alpha == 0.1:  # the default in the signature
            asked["alpha"] = None
        return Promise(**asked, seed=getattr(self, "_seed", 0))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_made", None)
        predictor: SetPredictor | None = state.pop("predictor_", None)
        if predictor is not None:  # compiled oracles are constructed again
            state["_saved"] = predictor.oracle.name, predictor.oracle.options, predictor.fits and plain(predictor.fits)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        saved = rest.pop("_saved", None)
        super().__setstate__(rest)
        if saved is not None:
            oracle, options, fits = saved
            predictor = self._new_predictor(oracle, options)
            predictor.use(read(fits, FitContext(predictor.promise, predictor.oracle)))
            predictor.given_labels = self._given_labels()
            self.predictor_ = predictor


def _check_rows(X: Any, inputs: Any, **others: Any) -> None:
    """Refuse inputs with another number of rows than X, and pandas objects with different indexes."""
    refuse_another_index({"X": X, **others, **indexed_inputs(inputs)})
    if inputs is None or isinstance(inputs, RowInputs):  # RowInputs know their rows
        return
    n, columns = _num_samples(X), list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    wrong = [
        len(x) for x in columns if hasattr(x, "__len__") and np.ndim(x) and not isinstance(x, Mapping) and len(x) != n
    ]
    if wrong:
        # scikit-learn splits what has one row per row of X, but not a mapping.
        help = (
            " scikit-learn cannot split a mapping: for cross_validate and the like give a frame, "
            "pandas.DataFrame({'km': km, 'fee': list(fee)})"
        )
        mapping = isinstance(inputs, Mapping)
        raise InputError(f"inputs have {wrong[0]} rows, but X has {n}: give one per row.{help if mapping else ''}")


def _refuse_with_cv(**asked: Any) -> None:
    """Refuse other promises with `cv`: a mean of p-values guarantees only coverage over all rows."""
    wrong = [name for name, given in asked.items() if given is not None and given is not False]
    if wrong:
        raise InputError(
            f"cv supports coverage over all rows and no other promise: leave out {', '.join(wrong)}, or cv"
        )


def _checked_target(y: Any) -> npt.NDArray[Any]:
    target: npt.NDArray[Any] = column_or_1d(y, warn=True)
    check_classification_targets(target)
    return target


def _require_probabilities(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"{type(estimator).__name__} has no predict_proba: wrap it in sklearn.calibration.CalibratedClassifierCV"
        )


def _plain(value: Any) -> str | int:
    """A class as an entry of true labels: a string, or an integer if it is a whole number (of any type)."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _positions(
    classes: npt.NDArray[Any], labels: Sequence[str], what: str, class_names: Sequence[object] | None
) -> npt.NDArray[np.int64]:
    """The position of the label of each class; integers, unless labels are numbers, are positions in `class_names`."""
    entries = [_plain(c) for c in classes]
    try:
        if class_names is None or not are_positions(entries, labels):
            return truth(entries, labels)
        names = names_of_classes(class_names)
        return truth([names[i] for i in truth(entries, names)], labels)
    except InputError as error:
        raise InputError(f"{what} and the labels of the loss do not match: {error}") from None
