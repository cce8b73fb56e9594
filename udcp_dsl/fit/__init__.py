"""Fit parameters to comparisons such as "this set costs more than that one"."""

from udcp_dsl.fit.fit import contradictions, fit_params
from udcp_dsl.fit.result import Fit, FittedCase, FittedParam
from udcp_dsl.fit.suggestions import Suggestion

__all__ = ["Fit", "FittedCase", "FittedParam", "Suggestion", "contradictions", "fit_params"]
