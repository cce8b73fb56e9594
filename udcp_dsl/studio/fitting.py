"""One oracle, calibrated on half of the rows and evaluated on the others, as by `udcp calibrate` and `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import keeping_warnings
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.loss import Loss
from udcp_dsl.measure.comparison import CostCurve, single_worth
from udcp_dsl.measure.evaluate import Evaluation, evaluate
from udcp_dsl.predict.calibrate import points_needed
from udcp_dsl.predict.oracle import Oracle, SolvingOracle, make_oracle
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.predict.stages.stage import LimitError
from udcp_dsl.studio.instances import Instances

# Called with the number of rows that are done, their total, and the stage; raises to end the work.
OnStep = Callable[..., None]

# The alphas of the curves of cost against coverage.
CURVE = tuple(Fraction(k, 100) for k in (2, 5, 10, 15, 20, 30, 40))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A calibrated predictor, its evaluation on the shown rows, and its warnings."""

    predictor: SetPredictor
    evaluation: Evaluation
    warnings: tuple[str, ...]

    @property
    def loss(self) -> Loss:
        return self.predictor.loss

    @property
    def tau(self) -> float:
        tau = self.predictor.thresholds()
        assert isinstance(tau, float)
        return tau

    @property
    def worth(self) -> float | None:
        """The worth of a missed truth, in the unit of costs: the threshold of an oracle whose scores are prices."""
        return single_worth(self.predictor.worth())

    @cached_property
    def scorer(self) -> Oracle:
        """The oracle whose scores the predictor cuts: with its lambda, its anchor and the multipliers of limits."""
        made, limits = make_oracle(self.predictor.oracle.name, self.loss, **self.options), self.predictor.multipliers
        return made if limits is None else made.with_multipliers(limits[self.predictor.alphas[0]].effects.multipliers)

    @cached_property
    def options(self) -> dict[str, object]:
        """The options that make `scorer` from the oracle's name."""
        options = dict(self.predictor.oracle.options)
        anchors = self.predictor.anchors
        if anchors is not None:
            options["anchor"] = anchors[self.predictor.alphas[0]].overall
        return options


def fit(loss: Loss, oracle: str, alpha: Fraction, instances: Instances, on_step: OnStep) -> Fitted:
    """Calibrate and evaluate. OracleError if the oracle does not apply, InputError if the rows do not suffice."""
    with keeping_warnings() as messages:
        predictor = SetPredictor(loss, oracle, alpha=alpha)
        with reporting_steps(predictor.oracle, partial(on_step, stage="calibrating")):
            predictor.calibrate(instances.calibration)
        with reporting_steps(predictor.oracle, partial(on_step, stage="predicting")):
            evaluation = evaluate(predictor, instances.shown)
    shown = (message for message in messages if "W601" not in message)
    return Fitted(predictor, evaluation, tuple(dict.fromkeys(shown)))


def curve(fitted: Fitted, instances: Instances, on_step: OnStep) -> CostCurve:
    """Cost and coverage at the alphas of the grid for which the rows suffice, with the lambda of `fitted`."""
    predictor, n = fitted.predictor, fitted.predictor.fitted.thresholds.calibration.n
    grid = [alpha for alpha in CURVE if points_needed(alpha) <= n]
    if not grid:
        return CostCurve()
    options = dict(predictor.oracle.options)
    with keeping_warnings():  # shown when it was fitted
        made = SetPredictor(fitted.loss, predictor.oracle.name, options=options, alpha=grid)
        with reporting_steps(made.oracle, on_step):
            try:
                made.calibrate(instances.calibration)
            except LimitError:  # at some of these alphas a limit cannot be reached
                return CostCurve()
            found = [made.predict_set(instances.shown, alpha=alpha) for alpha in grid]
    places = np.arange(len(instances.shown)), instances.shown.truth
    worths = [made.worth(alpha) for alpha in grid]
    return CostCurve.of(grid, [sets.costs for sets in found], [sets.mask[places] for sets in found], worths)


def sets_of(fitted: Fitted, p: Any, inputs: RowInputs | None = None) -> tuple[Any, Any]:
    """The set and the scores of one row, (K,) each; `inputs` holds the inputs of the row twice."""
    rows = np.repeat(np.asarray(p, dtype=np.float64)[None, :], 2, axis=0)  # for one row, kernels are compiled again
    scores = fitted.scorer.scores(fitted.predictor.repaired(rows), inputs=inputs)[0]
    given = inputs if fitted.loss.inputs else None
    return fitted.predictor.predict_set(rows, inputs=given, class_names=fitted.loss.labels).mask[0], scores


@contextmanager
def reporting_steps(oracle: Oracle, on_step: OnStep) -> Iterator[None]:
    """In this block, `on_step` is called at each step of the oracle's work, and ends the work by raising."""
    with ExitStack() as stack:
        stack.enter_context(oracle.on_progress(on_step))
        if isinstance(oracle, SolvingOracle):
            solved = iter(range(1, 1 << 62))
            stack.enter_context(oracle.running(advance=lambda: on_step(next(solved), 0)))
        yield
