"""The one place where loss, oracle and calibrator meet: `SetPredictor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from udcp_dsl.deprecation import deprecated
from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.expression.decisions import Decided
from udcp_dsl.loss import Loss
from udcp_dsl.predict.calibrate import Conditional, Level, Tuning, exact_level, row_draws, show_level
from udcp_dsl.predict.chain import Fits, Fitted, applying, deal, fit, worth_of
from udcp_dsl.predict.described import DescribedPredictor
from udcp_dsl.predict.oracle import Oracle, as_oracle
from udcp_dsl.predict.promise import Promise, promise_from
from udcp_dsl.predict.row_warnings import (
    warn_of_counted_labels,
    warn_of_free_labels,
    warn_of_full_sets,
    warn_of_high_alpha,
    warn_of_idle_costs,
    warn_of_shared_draws,
    warn_of_training_rows,
    warn_of_wrong_truth,
)
from udcp_dsl.predict.sets import MadeSets, PredictionSets
from udcp_dsl.predict.stages.stage import FitContext
from udcp_dsl.rows.columns import flag, frame_index, labels_as_given
from udcp_dsl.rows.matrix import Matrix, check_class_names, names_of_classes
from udcp_dsl.rows.roles import Columns
from udcp_dsl.rows.rows import Rows, rows_of

if TYPE_CHECKING:
    from udcp_dsl.expression.inputs import RowInput
    from udcp_dsl.measure.coverage import LeastCovered
    from udcp_dsl.predict.calibrate import Calibration
    from udcp_dsl.predict.calibrate.ranks import RankTable
    from udcp_dsl.predict.repair import LabelShift, Repair
    from udcp_dsl.predict.stages.anchor import Anchor
    from udcp_dsl.predict.stages.decision import Decision
    from udcp_dsl.predict.stages.limits import Multipliers


# Entries held at a time if sets need all scores, or a second matrix beside the probabilities.
_BLOCK = 1 << 22
_NAMED = 4  # labels that a message names to show an order


class SetPredictor(DescribedPredictor):
    """Prediction sets that contain the true label with probability at least 1 - alpha, at low cost.

    Parameters
    ----------
    loss : Loss
        What a set costs; see `udcp.load`.
    oracle : str or Oracle, default "price"
        How the labels of a row are ordered: a name (`udcp.oracle_names()`) or an oracle made by `make_oracle`.
    promise : Promise, optional
        All guarantees as one value, instead of the keywords below.
    options : mapping, optional
        Options of the oracle, if it is given by name, such as `{"lam": 0.1}`.
    alpha : float or sequence of float, default 0.1
        Share of true labels that sets may miss. With several values, `predict_set` selects one. With `risk`, the
        largest mean harm.
    confidence_level : float, optional
        The same as `alpha=1 - confidence_level`.
    miss : float, optional
        Cost of a missed true label, in the unit of the loss. Replaces alpha, which is then chosen where cost and misses
        together are lowest.
    conditional : {"group", "class", "difficulty", "decision"}, optional
        Guarantee coverage in each group, in each true class, in each of `bins` bins of the rows by their highest
        probability, or within each decision that the loss leads to, instead of over all rows. Groups and classes
        with too few rows get full sets; see `pool`.
    bins : int, default 4
        Number of bins for `conditional="difficulty"`.
    confidence : float, optional
        With this probability over the draw of the calibration rows, this predictor covers at least 1 - alpha. Without
        it, coverage holds on average over calibrations.
    simultaneous : bool, default False
        Apply `confidence` to all groups, classes or bins jointly instead of to each separately.
    risk : str, optional
        Name of nonnegative costs in the spec: the harm of missing a label. Alpha then bounds the mean harm.
    repair : {"auto", "temperature"}, Repair or None, default "auto"
        Correct the probabilities first. "auto" fits the correction on a fifth of the calibration rows (100 to 1,000
        rows; none if there are fewer than 300) and uses it only if it helps. "temperature" fits one number. None leaves
        the probabilities unchanged.
    temperature : float or "fit", optional
        Deprecated; use `repair`.
    nonempty : bool, default False
        Never return an empty set.
    randomize : bool, default False
        Cover exactly 1 - alpha by randomising labels at the threshold. The draws depend on `seed` and on the row's
        probabilities and id; without ids, rows with equal probabilities share a draw.
    seed : int, default 0
        Random seed for the folds and for `randomize`.
    class_names : sequence, optional
        Names of the columns of `probs`, if they are not in the order of `loss.labels`. Integers in `y` remain positions
        in `loss.labels`, so give true labels by name; `class_names=loss.labels` confirms that order.
    pool : bool, default False
        Groups or classes with too few rows use the threshold of all rows.

    Raises
    ------
    InputError
        An option is invalid, or two options exclude each other.
    OracleError
        The oracle does not exist, or does not apply to this loss.

    See Also
    --------
    UtilitySetClassifier : the same as a scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads(
    ...     "labels {cat, dog, wolf}  category wild {wolf}  loss l = size + 5 * any(wild)"
    ... )
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], 100)
    >>> y = [rng.choice(3, p=p) for p in probs]
    >>> predictor = udcp.SetPredictor(loss, oracle="price", alpha=0.1).calibrate(probs, y)
    >>> predictor.predict_set([[0.9, 0.1, 0.0]]).labels
    [('cat', 'dog')]
    """

    def __init__(
        self,
        loss: Loss,
        oracle: str | Oracle = "price",
        *,
        promise: Promise | None = None,
        options: Mapping[str, object] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        miss: float | None = None,
        confidence_level: Level | None = None,
        conditional: Literal["group", "class", "difficulty", "decision"] | None = None,
        bins: int | None = None,
        confidence: Level | None = None,
        simultaneous: bool = False,
        risk: str | None = None,
        repair: Literal["auto", "temperature"] | Repair | None = "auto",
        temperature: Literal["fit"] | float | None = None,
        nonempty: bool = False,
        randomize: bool = False,
        seed: int = 0,
        class_names: Sequence[object] | None = None,
        pool: bool = False,
    ) -> None:
        if not isinstance(loss, Loss):
            raise TypeError(f"loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
        self.promise = promise_from(promise, locals())
        self.loss = loss
        self._class_names = class_names  # as given; `class_names` are their texts
        self.class_names = None if class_names is None else names_of_classes(class_names)
        if self.class_names is not None:
            check_class_names(self.class_names, loss.labels)
        self.promise.harm(loss)  # refuses costs that the loss does not have
        if self.promise.by_decision:
            from udcp_dsl.predict.stages.decision import check_decides

            check_decides(loss)
        self.oracle: Oracle = as_oracle(loss, oracle, options)
        self._tune = self.oracle.untuned
        if loss.limits or self.promise.randomize:
            from udcp_dsl.predict.stages.limits import check_limits

            check_limits(self.promise, self.oracle)
        if self._tune and len(self.alphas) > 1:
            raise InputError(
                f"{self.oracle.name!r} tunes its lambda for one alpha: give one alpha, or lam in the options"
            )
        self.given_labels: tuple[Any, ...] | None = None  # the labels in the type they were given in, if not as texts
        self.columns: tuple[str, ...] | None = None  # of calibration, if matched by name and not in the spec's order
        self.fits: Fits = {}  # the fitted stages and thresholds at each alpha, once it is calibrated
        self.file_hash: tuple[Fits, str] | None = None  # the hash of its file, valid for those fits
        self.logits = False
        self.normalize = False

    def __repr__(self) -> str:
        alphas = self.promise.shown_alphas
        state = f"calibrated on {self.fitted.rows_used}" if self.fits else "not calibrated"
        return f"SetPredictor({self.loss.name!r}, oracle={self.oracle.name!r}, alpha={alphas}, {state})"

    def calibrate(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        logits: bool = False,
        normalize: bool = False,
    ) -> SetPredictor:
        """Set the threshold on labelled rows that the classifier was not trained on.

        Calibrating again starts afresh. Some rows are set apart first, chosen at random by `seed`: a fifth for the
        repair of the probabilities, then a quarter (at most 1,000) for the anchor if `price` needs one, or two thirds
        for lambda if the oracle has to be tuned. The others set the threshold.

        Parameters
        ----------
        probs : array, tensor, frame or nested lists, shape (n, K)
            Probabilities, columns in the order of `loss.labels` or of `class_names`; columns of frames are matched by
            name.
        y : sequence, shape (n,)
            True labels: names or positions. If the labels are numbers, integers are names.
        groups : sequence, optional
            Group of each row, for `conditional="group"`.
        weights : sequence of float, optional
            How much more likely each row is among new rows than here; see `weights_from_classifier`.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.
        ids : sequence, optional
            Name of each row, for messages and for the draws of `randomize`.
        ignore : sequence of str, optional
            Columns of a frame to leave unread.
        logits : bool, default False
            The numbers are logits, here and at prediction; they go through a softmax.
        normalize : bool, default False
            Rows need not sum to 1, here and at prediction; they are divided by their sum.

        Returns
        -------
        SetPredictor
            The predictor itself.

        Raises
        ------
        InputError
            The data are invalid. The message names the row.

        Warns
        -----
        UserWarning
            Alpha is 0.5 or more, labels cost nothing, columns or rows seem to be in another order than the labels, `y`
            counts labels that are not sorted, the oracle does not enforce the limits of the spec, costs have no effect,
            or rows without ids share a draw of `randomize`.
        """
        logits, normalize = flag(logits, "logits"), flag(normalize, "normalize")
        warn_of_high_alpha(self.promise)
        if self.oracle.by_cost:
            warn_of_free_labels(self.loss)
        beside = {"y": y, "groups": groups, "ids": ids, "weights": weights, "inputs": inputs, "ignore": ignore}
        rows = self._rows_of(probs, beside, class_names=self.class_names, logits=logits, normalize=normalize)
        self._check_groups(rows, groups)
        warn_of_counted_labels(rows)
        warn_of_wrong_truth(rows)
        warn_of_training_rows(rows)
        if self.randomize:
            warn_of_shared_draws(rows, self.seed)
        if rows.weights is not None:
            self.promise.refuse_weights()
        context = FitContext.of(self.promise, self.oracle, tune=self._tune)
        warn_of_idle_costs(context)
        self.use(fit(context, rows))
        self.given_labels = labels_as_given(self.loss.labels, y, self._class_names)
        named_otherwise = self.class_names is None and rows.columns != rows.labels
        self.columns = rows.columns if named_otherwise else None
        self.logits, self.normalize = logits, normalize
        return self

    def predict_set(
        self,
        probs: Any,
        *,
        alpha: Level | None = None,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        class_names: Sequence[object] | None = None,
    ) -> PredictionSets:
        """Predict sets for new rows; zero rows are allowed.

        Parameters
        ----------
        probs : array, tensor, frame or nested lists, shape (n, K)
            Probabilities, as for `calibrate`.
        alpha : float, optional
            Which alpha to use, if several were calibrated.
        groups : sequence, optional
            Group of each row; required if calibration was by group.
        weights : sequence of float, optional
            Weight of each row; required if calibration had weights. A row whose weight is too large gets the full set,
            and a warning counts such rows.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.
        ids : sequence, optional
            Name of each row, kept in the result. Repeated ids give a warning.
        ignore : sequence of str, optional
            Columns of a frame to leave unread.
        class_names : sequence, optional
            Names of the columns of `probs`, if they have none; by default those of the predictor. Required for an array
            if calibration matched columns by name and their order was not that of the spec.

        Returns
        -------
        PredictionSets
            One set per row. The index of a pandas frame is kept.

        Raises
        ------
        InputError
            The predictor is not calibrated, or the data are invalid. The message names the row.
        """
        level = self.level(alpha)
        more: dict[str, Any] = {"groups": groups, "weights": weights, "inputs": inputs, "ids": ids, "ignore": ignore}
        rows = self.rows(probs, class_names=class_names, **more, empty=True)
        self._check_groups(rows, groups)
        if self.randomize:
            warn_of_shared_draws(rows, self.seed)
        made = self.make_sets_and_warn(rows, level)
        own: dict[str, Any] = {"given_labels": self.given_labels, "inputs": rows.inputs, "decided": made.decided}
        return PredictionSets(self.loss, made.mask, rows.ids, index=frame_index(probs), **own)

    def predict_batches(
        self,
        batches: Iterable[Any],
        *,
        alpha: Level | None = None,
        column: str | None = None,
        id_column: str | None = None,
        group_column: str | None = None,
        weight_column: str | None = None,
        carry: Sequence[str] = (),
        ignore: Sequence[str] = (),
        only_labels: bool = False,
        class_names: Sequence[object] | None = None,
    ) -> Iterator[Any]:
        """Predict sets for a stream of batches, with no more than one batch in memory.

        This is the function to give to Spark's `mapInArrow`, or to batches of Ray and Dask.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Rows with one column per label, or with one column of lists.
        alpha : float, optional
            Which alpha to use, if several were calibrated.
        column : str, optional
            Name of the list column with the probabilities, if there are several.
        id_column, group_column, weight_column : str, optional
            Columns with ids, groups and weights. Rows without ids are numbered.
        carry : sequence of str, optional
            Further columns to copy to the output.
        ignore : sequence of str, optional
            Columns to leave unread.
        only_labels : bool, default False
            Ignore all columns that are not labels.
        class_names : sequence, optional
            Names of the entries of lists, as for `predict_set`.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            Columns id, labels (a list), size, cost and, where they apply, action, certificate and handed_over.

        Raises
        ------
        InputError
            A batch is invalid. The message names the batch and the row in it, both counted from 0.

        Examples
        --------
        >>> import numpy as np, pyarrow as pa, udcp_dsl as udcp
        >>> loss = udcp.loads("labels {cat, dog, wolf}  loss l = size")
        >>> predictor = udcp.SetPredictor(loss, "lac", alpha=0.5)
        >>> predictor = predictor.calibrate(np.eye(3), ["cat", "dog", "wolf"])
        >>> batch = pa.record_batch(
        ...     {"photo": ["a", "b"], "p": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]}
        ... )
        >>> found = predictor.predict_batches([batch], id_column="photo")
        >>> [answer.to_pydict() for answer in found]
        [{'id': ['a', 'b'], 'labels': [['cat'], ['wolf']], 'size': [1, 1], 'cost': [1.0, 1.0]}]
        """
        from udcp_dsl.cluster.streams import predict_batches

        columns = Columns(
            column=column,
            id_column=id_column,
            group_column=group_column,
            weight_column=weight_column,
            ignore=ignore,
            only_labels=only_labels,
            carry=carry,
        )
        return predict_batches(self, batches, alpha, columns, class_names)

    @overload
    def adapt(
        self, probs: Any, *, calibration: None = None, class_names: Sequence[object] | None = None
    ) -> LabelShift: ...
    @overload
    def adapt(self, probs: Any, *, calibration: Any, class_names: Sequence[object] | None = None) -> SetPredictor: ...
    def adapt(
        self, probs: Any, *, calibration: Any = None, class_names: Sequence[object] | None = None
    ) -> SetPredictor | LabelShift:
        """Adapt to new rows in which labels are more or less frequent than before, without their truth.

        Coverage is 1 - alpha only as far as the estimated frequencies are right; see docs/label-shift.md.

        Parameters
        ----------
        probs : array, tensor, frame, nested lists or LabelShift
            Probabilities of new rows, or the old and new frequencies of the labels, if they are known. Those of a
            LabelShift with label names are matched by name.
        calibration : tuple (probs, y) or (probs, y, inputs), optional
            Labelled rows of the old kind: those that this predictor was calibrated with, in the same order (recognised
            by their number; rows used for repair, lambda and anchor are left out), or others.
        class_names : sequence, optional
            Names of the columns of both, as for `predict_set`.

        Returns
        -------
        SetPredictor or LabelShift
            A new predictor or, without `calibration`, how the frequencies have changed.
        """
        from udcp_dsl.predict import adapt as adapting

        if calibration is None:
            return adapting.report(self, probs, class_names)
        return adapting.adapt(self, probs, calibration, class_names)

    def p_values(
        self,
        probs: Any,
        *,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        class_names: Sequence[object] | None = None,
    ) -> npt.NDArray[np.float64]:
        """The smallest alpha at which each label is left out.

        The set at alpha consists of the labels whose p-value is above alpha.

        Parameters
        ----------
        probs, groups, weights, inputs, ids, ignore, class_names
            As for `predict_set`.

        Returns
        -------
        array of float, shape (n, K)
            With anchors or pooled groups, p-values are those at the smallest alpha. Where a saved file holds only part
            of the calibration scores, they are rounded up, but never past a calibrated alpha. With `risk`, they are
            mean harms.
        """
        fitted = self.at(min(self.alphas))
        more: dict[str, Any] = {"groups": groups, "weights": weights, "inputs": inputs, "ids": ids, "ignore": ignore}
        rows = self.rows(probs, class_names=class_names, **more, empty=True)
        self._check_groups(rows, groups)
        out = np.empty(rows.P.shape)
        step = max(1, _BLOCK // self.loss.K)
        for start in range(0, len(rows), step):
            part = rows.take(slice(start, start + step))
            out[start : start + step] = fitted.p_values(fitted.prepare(part), self._draws(part))
        return out

    def plot(self) -> Any:
        """Draw how far the probabilities can be trusted, before and after their repair, on held-out rows.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        about_p = self.fitted.about_p
        if self.repair is None:
            raise InputError(f"there is no repair to draw: {about_p}")
        return self.repair.plot()

    @property
    def alphas(self) -> tuple[Fraction, ...]:
        """The values of alpha, as exact fractions."""
        return self.promise.alphas

    @property
    def conditional(self) -> Conditional:
        """Where coverage is guaranteed ("group", "class", "difficulty" or "decision"); None means over all rows."""
        return self.promise.conditional

    @property
    def nonempty(self) -> bool:
        """Whether empty sets are ruled out."""
        return self.promise.nonempty

    @property
    def randomize(self) -> bool:
        """Whether sets are randomised at the threshold."""
        return self.promise.randomize

    @property
    def pool(self) -> bool:
        """Whether small groups and classes use the threshold of all rows."""
        return self.promise.pool

    @property
    def seed(self) -> int:
        """Random seed for the folds and for randomised sets."""
        return self.promise.seed

    @property
    def fitted(self) -> Fitted:
        """The fitted stages and thresholds at the first alpha; InputError before calibration."""
        if not self.fits:
            raise InputError("the predictor is not calibrated: call calibrate(probs, y) first")
        return next(iter(self.fits.values()))

    def level(self, alpha: Level | None = None) -> Fraction:
        """The calibrated alpha that is meant, as an exact fraction.

        Parameters
        ----------
        alpha : float, optional
            One of the calibrated values; may be left out if there is only one.
        """
        first, known = self.fitted, ", ".join(map(show_level, self.fits))
        if alpha is None:
            if len(self.fits) > 1:
                raise InputError(f"calibrated for several alphas: give {worded('alpha', '--alpha')}, one of {known}")
            return first.alpha
        level = exact_level(alpha, below=first.context.rule.below)
        if level not in self.fits:
            raise InputError(f"not calibrated for alpha {show_level(level)}: choose from {known}, or calibrate again")
        return level

    def at(self, alpha: Level | None = None) -> Fitted:
        """The fitted stages and thresholds at one alpha.

        Parameters
        ----------
        alpha : float, optional
            One of the calibrated values; may be left out if there is only one.
        """
        return self.fits[self.level(alpha)]

    def thresholds(self, alpha: Level | None = None) -> Any:
        """The threshold at one alpha: a number, or one for each group, bin or decision by name, or for each class.

        Parameters
        ----------
        alpha : float, optional
            Which alpha to use, if several were calibrated.

        Returns
        -------
        float, dict or array (K,)
            With weights, the threshold of a row of mean weight.
        """
        return self.at(alpha).thresholds.calibration.thresholds

    @property
    def calibrated(self) -> Calibrations:
        """The thresholds at all alphas; InputError before calibration."""
        return Calibrations({alpha: fitted.thresholds.calibration for alpha, fitted in self.fits.items()}, self)

    @property
    def calibration(self) -> Calibrations | None:
        """The thresholds at all alphas, or None before calibration."""
        return self.calibrated if self.fits else None

    @property
    def calibration_scores(self) -> tuple[RankTable, ...] | None:
        """The scores behind the thresholds at the first alpha, for each group, class or bin; None before calibration
        and with weights."""
        return self.fitted.thresholds.scores if self.fits else None

    def worth(self, alpha: Level | None = None) -> float | dict[str, float] | None:
        """The value that the threshold places on a missed truth, in the unit of the loss.

        Parameters
        ----------
        alpha : float, optional
            Which alpha to use, if several were calibrated.

        Returns
        -------
        float, dict or None
            For oracles whose scores are prices (`price`, `ratio`), else None. With groups, bins by difficulty or
            decisions, one value each, by name.
        """
        return worth_of(self.oracle, self.at(alpha).thresholds)

    def least_covered(self, alpha: Level | None = None) -> LeastCovered | None:
        """The classes and the quarter of the rows that are covered least on the calibration rows.

        Use `evaluate` for fresh rows.

        Parameters
        ----------
        alpha : float, optional
            Which alpha to use, if several were calibrated.

        Returns
        -------
        LeastCovered or None
            None for a predictor that was loaded from a file, and with `weights` or `risk`.
        """
        found = self.at(alpha).in_sample
        return None if found is None else found.least_covered

    @property
    def tuning(self) -> Tuning | None:
        """How lambda was chosen, or None if it was not tuned."""
        stage = self._stage("lambda")
        return None if stage is None else stage.tuning

    @property
    def anchors(self) -> dict[Fraction, Anchor] | None:
        """The anchor of the oracle at each alpha, or None if it has none."""
        if self.multipliers is not None:
            own = {alpha: x.anchor for alpha, x in self.multipliers.items() if x.anchor is not None}
            return own or None
        found: dict[Fraction, Anchor] | None = self._stages("anchor")
        return found

    @property
    def multipliers(self) -> dict[Fraction, Multipliers] | None:
        """The multipliers of the spec's limits at each alpha, for an oracle that enforces them."""
        found: dict[Fraction, Multipliers] | None = self._stages("multipliers")
        return found

    @property
    def decision(self) -> Decision | None:
        """The rule that decides what is done with a row, with `conditional="decision"`."""
        found: Decision | None = self._stage("decision")
        return found

    @property
    def repair(self) -> Repair | None:
        """The correction of the probabilities; None before calibration or if there is none."""
        stage = self._stage("repair")
        return None if stage is None else stage.repair

    @property
    def temperature(self) -> float | None:
        """The temperature, if the repair is a temperature alone; else None."""
        old = self._stage("temperature")
        return old.value if old is not None else None if self.repair is None else self.repair.temperature

    def _stage(self, name: str) -> Any:
        """The stage of this name, which all alphas share; None if there is none."""
        return self.fitted.find(name) if self.fits else None

    def _stages(self, name: str) -> Any:
        """The stages of this name, one for each alpha; None if there are none."""
        found = {alpha: stage for alpha, fitted in self.fits.items() if (stage := fitted.find(name)) is not None}
        return found or None

    @property
    def promises(self) -> Promise:
        """Deprecated name of `promise`."""
        deprecated("SetPredictor.promises", "SetPredictor.promise", as_of="0.3", removed_in="0.5")
        return self.promise

    @property
    def kept(self) -> tuple[RankTable, ...] | None:
        """Deprecated name of `calibration_scores`."""
        deprecated("SetPredictor.kept", "SetPredictor.calibration_scores", as_of="0.3", removed_in="0.5")
        return self.calibration_scores

    def rows(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        class_names: Sequence[object] | None = None,
        empty: bool = False,
    ) -> Rows:
        """The rows that `predict_set` and `evaluate` make of their arguments."""
        beside = {"y": y, "groups": groups, "ids": ids, "weights": weights, "inputs": inputs, "ignore": ignore}
        names = self.class_names if class_names is None else class_names
        how = {"class_names": names, "logits": self.logits, "normalize": self.normalize, "empty": empty}
        rows = self._rows_of(probs, beside, **how)
        self.check_columns(rows)
        self._check_weights(rows)
        return rows

    def check_columns(self, rows: Rows) -> None:
        """Refuse columns without names if calibration matched names in another order than that of the spec."""
        if rows.columns is None and self.columns is not None:
            came, own = (", ".join(names[:_NAMED]) for names in (self.columns, self.loss.labels))
            raise InputError(
                f"the columns have no names, and calibration matched them by name, in another order ({came} ...) than "
                f"that of the spec ({own} ...): name their order, "
                + worded(
                    "class_names=[...] (class_names=loss.labels for that of the spec)",
                    "--class-names (udcp check lists the labels)",
                )
                + f", or give {worded('a frame or table', 'a table')} whose columns are labels"
            )

    def _rows_of(self, probs: Any, beside: Mapping[str, Any], **how: Any) -> Rows:
        read = self.promise.reads(self.loss)
        return rows_of(probs, read.labels, loss=read, **beside, **how)

    @property
    def inputs(self) -> Mapping[str, RowInput]:
        """The inputs that each row needs, for the loss and for a harm that is given per row."""
        return self.promise.reads(self.loss).inputs

    def _check_weights(self, rows: Rows) -> None:
        if rows.weights is not None and not self.fitted.thresholds.calibration.weighted:
            raise InputError("weights= are given, but calibration had none: calibrate with weights=")

    def save(self, path: str | Path) -> None:
        """Save everything that is needed to predict elsewhere into one JSON file.

        Parameters
        ----------
        path : str or path
            The file. It is written under a temporary name first, so it is never left half-written.
        """
        from udcp_dsl.predict.saved import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> SetPredictor:
        """Load a predictor saved by `save`.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        SetPredictor
            It gives the same sets as the one that was saved.

        Raises
        ------
        InputError
            The file was changed, is damaged, or was written by a newer version.
        """
        from udcp_dsl.predict.saved import load

        return load(path)

    def use(self, fits: Fits) -> None:
        """Use these fits from now on; if they tuned the oracle, the next calibration tunes it again."""
        first = next(iter(fits.values()))
        self.fits, self.promise = fits, first.context.promise
        self._tune = self._tune or first.find("lambda") is not None
        if first.find("lambda") is not None:
            self.oracle = first.context.oracle

    def _check_groups(self, rows: Rows, given: Any) -> None:
        """Refuse missing groups, and a groups argument that is not used; unused groups within `Rows` are allowed."""
        by_group = self.promise.by_group
        if rows.groups is None and by_group:
            raise InputError("thresholds are by group: give the group of each row, " + worded("groups=", "--group"))
        if given is not None and not by_group:
            way_out = worded(
                'leave out groups=, or calibrate with conditional="group"', "leave out --group, or calibrate with it"
            )
            raise InputError(f"thresholds are not by group (conditional is {self.conditional!r}): {way_out}")

    def true_scores(self, rows: Rows, alpha: Fraction | None = None) -> npt.NDArray[np.float64]:
        """The scores of true labels, as in calibration, at one alpha (anchors depend on it; the first by default)."""
        fitted = self.fitted if alpha is None else self.at(alpha)
        return fitted.true_scores(fitted.prepare(rows))

    def threshold_rows(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The positions of the rows that set the thresholds in the calibration with these rows."""
        context = FitContext(self.promise.before_fit, self.oracle, {} if self._tune else None)
        left = np.arange(len(rows))
        for repairs in (True, False):
            dealt, left = deal(context, rows, left, applying(context, repairs=repairs))
            if any(len(fold) for _, folds in dealt for fold in folds):  # bins need no rows of their own then
                context = replace(context, spent_top=np.empty(0))
        return left

    def repaired(self, P: Matrix) -> Matrix:
        """The repaired probabilities, before they are weighted by harm."""
        return self.fitted.repaired(P)

    def sets(self, rows: Rows, level: Fraction) -> npt.NDArray[np.bool_]:
        """The sets of rows, (n, K) bool, at one alpha; `predict_set` wraps them."""
        return self.make_sets_and_warn(rows, level).mask

    def make_sets_and_warn(self, rows: Rows, level: Fraction) -> MadeSets:
        """The sets of rows as `MadeSets`, with a warning about full ones (zero rows are allowed)."""
        made = self.make_sets(rows, level)
        if made.full:
            warn_of_full_sets(made.full, len(rows))
        return made

    def make_sets(self, rows: Rows, level: Fraction) -> MadeSets:
        """The sets of rows as `MadeSets`, without that warning."""
        fitted = self.at(level)
        if rows.weights is None and fitted.thresholds.calibration.weighted:
            raise InputError("calibrated with weights, so new rows need weights, too: give weights=")
        self._check_weights(rows)
        step = max(1, _BLOCK // self.loss.K)
        if not self._in_blocks or len(rows) <= step:
            return self._make_sets_at_once(fitted, rows)
        mask, full, unproved = np.empty(rows.P.shape, dtype=bool), 0, list[int | None]()
        decided = list[Decided]()
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            made = self._make_sets_at_once(fitted, rows.take(part))
            mask[part], full = made.mask, full + made.full
            unproved.append(made.unproved)
            decided += [] if made.decided is None else [made.decided]
        proved = None if None in unproved else sum(filter(None, unproved))
        return MadeSets(mask, full, proved, Decided.joined(decided) if decided else None)

    @property
    def _in_blocks(self) -> bool:
        """Whether sets are made in several calls of the oracle, because they need further matrices of this size."""
        other = self.promise.risk is not None or any(stage.repairs for stage in self.fitted.stages)
        weighted = self.fitted.thresholds.calibration.weighted
        return other or (self.promise.by_class and (self.randomize or weighted))

    def _make_sets_at_once(self, fitted: Fitted, rows: Rows) -> MadeSets:
        prepared = fitted.prepare(rows)
        mask = fitted.sets(prepared, self._draws(rows))
        return MadeSets(mask, fitted.thresholds.full(prepared), fitted.context.oracle.unproved, prepared.decided)

    def _draws(self, rows: Rows) -> npt.NDArray[Any] | None:
        return row_draws(rows.P, self.seed, rows.ids) if self.randomize else None


class Calibrations:
    """The thresholds of a predictor at its alphas: the attributes of each `Calibration` by its alpha."""

    def __init__(self, by_alpha: Mapping[Fraction, Calibration], predictor: SetPredictor) -> None:
        self._predictor, self._by_alpha = predictor, by_alpha
        self._first = predictor.fitted.thresholds.calibration

    def __getattr__(self, name: str) -> Any:
        return getattr(self._first, name)

    @property
    def alphas(self) -> tuple[Fraction, ...]:
        return tuple(self._by_alpha)

    def level(self, alpha: Level | None = None) -> Fraction:
        return self._predictor.level(alpha)

    def thresholds(self, alpha: Level | None = None) -> Any:
        return self._by_alpha[self.level(alpha)].thresholds
