"""Prediction sets that are cheap by your own measure of cost, with guaranteed coverage.

Write the cost of a set in a `.loss` file, choose an oracle, calibrate, and predict sets; see the README.
Everything is imported when it is first used, so that `import udcp_dsl` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import InputError, OracleError, SpecError, SpecWarning
from udcp_dsl.lazy_imports import on_first_use

if TYPE_CHECKING:
    from udcp_dsl import datasets as datasets
    from udcp_dsl import sklearn as sklearn
    from udcp_dsl import torch as torch
    from udcp_dsl.comparison import Comparison, Sweep, compare, sweep
    from udcp_dsl.loss import Loss, load, loads
    from udcp_dsl.prediction.evaluation import Evaluation, evaluate
    from udcp_dsl.prediction.monitor import Alarm, Monitor
    from udcp_dsl.prediction.oracle import make_oracle, oracle_names
    from udcp_dsl.prediction.predictor import SetPredictor
    from udcp_dsl.prediction.probability_repair import LabelShift, Repair
    from udcp_dsl.prediction.promises.promise import Promise
    from udcp_dsl.prediction.promises.shift import weights_from_classifier
    from udcp_dsl.prediction.sets import PredictionSets
    from udcp_dsl.validation.fitting import Fit, fit_params

__version__ = "0.4.0.dev0"

__all__ = [
    "Alarm",
    "Comparison",
    "Evaluation",
    "Fit",
    "InputError",
    "LabelShift",
    "Loss",
    "Monitor",
    "OracleError",
    "PredictionSets",
    "Promise",
    "Repair",
    "SetPredictor",
    "SpecError",
    "SpecWarning",
    "Sweep",
    "compare",
    "evaluate",
    "fit_params",
    "load",
    "loads",
    "make_oracle",
    "oracle_names",
    "sweep",
    "weights_from_classifier",
]


__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "comparison": "Comparison Sweep compare sweep",
        "loss": "Loss load loads",
        "prediction.evaluation": "Evaluation evaluate",
        "prediction.monitor": "Alarm Monitor",
        "prediction.oracle": "make_oracle oracle_names",
        "prediction.predictor": "SetPredictor",
        "prediction.probability_repair": "LabelShift Repair",
        "prediction.promises.promise": "Promise",
        "prediction.promises.shift": "weights_from_classifier",
        "prediction.sets": "PredictionSets",
        "validation.fitting": "Fit fit_params",
    },
    modules=("datasets", "sklearn", "torch"),  # each needs an extra, so that `from udcp_dsl import *` leaves them out
)


def load_ipython_extension(shell: object) -> None:
    """`%load_ext udcp_dsl`: cells that begin with `%%loss NAME` are specs."""
    from importlib import import_module

    import_module("udcp_dsl.notebook").register(shell)
