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
    from udcp_dsl.fit import Fit, fit_params
    from udcp_dsl.loss import Loss, load, loads
    from udcp_dsl.measure.compare import compare
    from udcp_dsl.measure.comparison import Comparison
    from udcp_dsl.measure.evaluate import Evaluation, evaluate
    from udcp_dsl.measure.gap import Gap, gap
    from udcp_dsl.measure.monitor import Monitor
    from udcp_dsl.measure.monitored import Alarm
    from udcp_dsl.measure.sweep import Sweep, sweep
    from udcp_dsl.predict.applicability import Applicable, applicable_oracles
    from udcp_dsl.predict.oracle import make_oracle, oracle_names
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.predict.promise import Promise
    from udcp_dsl.predict.repair import LabelShift, Repair
    from udcp_dsl.predict.sets import PredictionSets
    from udcp_dsl.predict.shift_weights import weights_from_classifier

__version__ = "0.4.0.dev0"

__all__ = [
    "Alarm",
    "Applicable",
    "Comparison",
    "Evaluation",
    "Fit",
    "Gap",
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
    "applicable_oracles",
    "compare",
    "evaluate",
    "fit_params",
    "gap",
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
        "fit": "Fit fit_params",
        "loss": "Loss load loads",
        "measure.evaluate": "Evaluation evaluate",
        "measure.gap": "Gap gap",
        "measure.compare": "compare",
        "measure.comparison": "Comparison",
        "measure.monitor": "Monitor",
        "measure.monitored": "Alarm",
        "measure.sweep": "Sweep sweep",
        "predict.applicability": "Applicable applicable_oracles",
        "predict.oracle": "make_oracle oracle_names",
        "predict.predictor": "SetPredictor",
        "predict.repair": "LabelShift Repair",
        "predict.promise": "Promise",
        "predict.shift_weights": "weights_from_classifier",
        "predict.sets": "PredictionSets",
    },
    modules=("datasets", "sklearn", "torch"),  # each needs an extra, so that `from udcp_dsl import *` leaves them out
)


def load_ipython_extension(shell: object) -> None:
    """`%load_ext udcp_dsl`: cells that begin with `%%loss NAME` are specs."""
    from importlib import import_module

    import_module("udcp_dsl.notebook").register(shell)
