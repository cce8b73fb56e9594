"""Prediction sets that are cheap by your own measure of cost, with guaranteed coverage.

Write the cost of a set in a `.loss` file, choose an oracle, calibrate, and predict sets; see the README.
Everything is imported when it is first used, so that `import udcp_dsl` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import InputError, OracleError, SpecError, SpecWarning

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

__version__ = "0.3.0.dev0"

_WHERE = {
    "Comparison": "udcp_dsl.comparison",
    "compare": "udcp_dsl.comparison",
    "Sweep": "udcp_dsl.comparison",
    "sweep": "udcp_dsl.comparison",
    "Evaluation": "udcp_dsl.prediction.evaluation",
    "evaluate": "udcp_dsl.prediction.evaluation",
    "Fit": "udcp_dsl.validation.fitting",
    "fit_params": "udcp_dsl.validation.fitting",
    "Loss": "udcp_dsl.loss",
    "load": "udcp_dsl.loss",
    "loads": "udcp_dsl.loss",
    "Alarm": "udcp_dsl.prediction.monitor",
    "Monitor": "udcp_dsl.prediction.monitor",
    "LabelShift": "udcp_dsl.prediction.probability_repair",
    "make_oracle": "udcp_dsl.prediction.oracle",
    "oracle_names": "udcp_dsl.prediction.oracle",
    "PredictionSets": "udcp_dsl.prediction.sets",
    "Promise": "udcp_dsl.prediction.promises.promise",
    "Repair": "udcp_dsl.prediction.probability_repair",
    "SetPredictor": "udcp_dsl.prediction.predictor",
    "weights_from_classifier": "udcp_dsl.prediction.promises.shift",
}
# Each needs an extra, so that `from udcp_dsl import *` leaves them out.
_MODULES = ("datasets", "sklearn", "torch")

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


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"udcp_dsl.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'udcp_dsl' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_MODULES})


def load_ipython_extension(shell: object) -> None:
    """`%load_ext udcp_dsl`: cells that begin with `%%loss NAME` are specs."""
    from importlib import import_module

    import_module("udcp_dsl.notebook").register(shell)
