"""`SetPredictor.adapt`: a predictor for new rows whose mix of labels differs from that of calibration.

The new mix is estimated without true labels. The ratios r = new mix / old mix give the probabilities p'' = p' r,
rescaled, and the weights of the calibration rows. If only the mix has changed and r is right, coverage holds exactly;
but r is estimated.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.predict.calibrate import CalibrationWarning, show_level
from udcp_dsl.predict.calibrate.strata import listed
from udcp_dsl.predict.chain import adapted
from udcp_dsl.predict.repair import LabelShift, estimate_label_shift
from udcp_dsl.rows.columns import to_array
from udcp_dsl.rows.rows import input_columns, rows_of

if TYPE_CHECKING:
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.rows.rows import Rows


def report(predictor: SetPredictor, probs: Any, class_names: Any = None) -> LabelShift:
    """How the mix of labels among new rows differs from that of the rows that the repair was fitted on."""
    _refuse_adapted(predictor)
    if isinstance(probs, LabelShift):
        raise InputError(
            "a LabelShift is given and no labelled rows: give calibration=(probs, y) for a predictor for the new mix"
        )
    stage = predictor.fitted.find("repair")
    if stage is None or stage.mix is None:
        raise InputError(
            "the label mix of the calibration rows is unknown, because no repair was fitted: give calibration=(P, y)"
        )
    return _estimated(predictor, stage.mix, probs, class_names)


def adapt(predictor: SetPredictor, probs: Any, calibration: Any, class_names: Any = None) -> SetPredictor:
    """A predictor for the label mix of new rows, estimated or given as a LabelShift; see `SetPredictor.adapt`."""
    _refuse_adapted(predictor)
    _refuse_promise(predictor)
    given = calibration if isinstance(calibration, tuple | list) and len(calibration) in (2, 3) else (calibration,)
    P, y, inputs = (*given, None, None)[:3]
    rows = predictor.rows(P, y, inputs=inputs, class_names=class_names)
    rows.truth  # noqa: B018  # refuses rows without truth before the work
    if isinstance(probs, LabelShift):
        shift = probs.for_labels(predictor.loss.labels)
    else:
        shift = _estimated(predictor, to_array(predictor.repaired(rows.P)), probs, class_names)
    found = copy.copy(predictor)
    found.use(adapted(predictor.fits, shift, _unseen(predictor, rows)))
    _warn_of_labels_in_every_set(found)
    return found


def _estimated(predictor: SetPredictor, old: Any, probs: Any, class_names: Any) -> LabelShift:
    rows = rows_of(  # no sets are made for the new rows, so their inputs are not needed
        probs,
        predictor.loss.labels,
        class_names=predictor.class_names if class_names is None else class_names,
        logits=predictor.logits,
        normalize=predictor.normalize,
        ignore=input_columns(probs, [predictor.loss]),
    )
    predictor.check_columns(rows)
    new = to_array(predictor.repaired(rows.P))
    return replace(estimate_label_shift(old, new), labels=predictor.loss.labels)


def _unseen(predictor: SetPredictor, rows: Rows) -> Rows:
    """The rows that set the thresholds, if `rows` are the calibration rows (recognised by their number); else all."""
    fitted = predictor.fitted
    n = fitted.thresholds.calibration.n
    if len(rows) != n + sum(stage.rows_used for stage in fitted.stages):
        return rows
    left = predictor.threshold_rows(rows)
    return rows.take(left) if len(left) == n else rows


def _refuse_adapted(predictor: SetPredictor) -> None:
    if predictor.fitted.find("new mix") is not None:
        raise InputError("the predictor is already adapted to a new mix: adapt the original predictor")


def _refuse_promise(predictor: SetPredictor) -> None:
    promise = predictor.promise
    if promise.by_class:
        raise InputError(
            f"{promise.asked} covers each class separately, whatever the mix of labels: there is nothing to "
            "adapt; adapt(probs) without calibration reports the mix"
        )
    if not promise.is_marginal:
        raise InputError(
            f"{promise.asked} cannot be adapted: the label mix may have changed differently in each of its parts; "
            "adapt a predictor that covers all rows together"
        )
    if predictor.multipliers is not None:
        names = ", ".join(repr(limit.name) for limit in predictor.loss.limits)
        raise InputError(
            f"limits ({names}) are met on average over the label mix that their multipliers were found for, and "
            "cannot be adapted: remove them from the spec, or calibrate on rows of the new mix"
        )
    if predictor.fitted.thresholds.calibration.weighted:
        raise InputError(
            "calibrated with weights, which correct for another shift, and adapt cannot combine the two: adapt a "
            "predictor that was calibrated without weights"
        )
    if promise.randomize:
        raise InputError("adapt and randomize exclude each other: the randomised rank counts rows, not weights")
    if promise.confidence is not None:
        raise InputError(
            "adapt and confidence exclude each other: under weights, the coverage of one calibration has no Beta "
            "distribution"
        )


def _warn_of_labels_in_every_set(predictor: SetPredictor) -> None:
    for alpha in predictor.alphas:
        names = [
            predictor.loss.labels[i]
            for i in np.flatnonzero(np.isposinf(predictor.at(alpha).thresholds.calibration.tau()))
        ]
        if names:
            warn(
                f"too few calibration rows for the new mix: at alpha {show_level(alpha)} these labels are in every "
                f"prediction set, because they are much more frequent now: {listed(names)}; give more rows",
                CalibrationWarning,
            )
