"""Fit parameters to comparisons such as "this set costs more than that one"."""

from udcp_dsl.validation.fitting.fit import contradictions, fit_params
from udcp_dsl.validation.fitting.result import Fit, FittedCase, FittedParam
from udcp_dsl.validation.fitting.suggestions import Suggestion

__all__ = ["Fit", "FittedCase", "FittedParam", "Suggestion", "contradictions", "fit_params"]
