"""The time to score a row, measured on a few generated rows after a first call that compiles the kernels."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.check.coverage import Problem
from udcp_dsl.check.samples import drawn_inputs
from udcp_dsl.predict.calibrate import DEFAULT_GRID
from udcp_dsl.predict.oracle import Oracle, make_oracle, with_lambda
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_ROWS, _REPEATS = 32, 3
_ENOUGH = 1.0  # seconds per oracle above which fewer rows and one measurement suffice


def seconds_per_row(name: str, loss: Loss) -> float | None:
    """The least time of a few measurements on rows of a generated classifier; None if the oracle fails."""
    rng = np.random.default_rng(0)
    P, _ = Problem.generated(loss.K, rng, kind="calibrated").draw(_ROWS, rng)
    inputs = loss.inputs_of(drawn_inputs(loss.inputs, _ROWS, rng), _ROWS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # shown when it is used
            oracle = make_oracle(name, loss)
            oracle = with_lambda(oracle, DEFAULT_GRID[0]) if oracle.untuned else oracle

            def seconds(rows: slice) -> float:
                return _seconds(oracle, Rows(loss.labels, P[rows], inputs=None if inputs is None else inputs[rows]))

            seconds(slice(1))  # compiles
            alone = seconds(slice(1))
            many = max(1, int(min(_ROWS, _ENOUGH / alone)))
            return min(seconds(slice(many)) for _ in range(_REPEATS if alone < _ENOUGH / _ROWS else 1)) / many
    except Exception:  # a third-party oracle may raise anything; `udcp validate` reports it
        return None


def _seconds(oracle: Oracle, rows: Rows) -> float:
    began = time.perf_counter()
    oracle.scores(rows)
    return time.perf_counter() - began
