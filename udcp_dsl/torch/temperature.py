"""Temperature scaling: the T that minimises the negative log-likelihood of softmax(z / T).

As a function of b = 1 / T, the mean NLL is convex; its derivative is the mean over rows of (E_p[z] - z_y), with
p = softmax(b z). The root of the derivative is found by Brent's method over log T.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.oracle import as_indices

_RANGE = (1e-4, 1e4)


def fit_temperature(logits: Any, y: Any) -> float:
    """Fit a temperature to logits.

    Use rows that are not used for training, calibration or test: a temperature fitted on the calibration rows makes
    them look different from new ones.

    Parameters
    ----------
    logits : array or tensor, shape (n, K)
        Logits.
    y : sequence of int, shape (n,)
        True labels, as positions 0 to K - 1.

    Returns
    -------
    float
        The temperature with the highest likelihood.

    Raises
    ------
    InputError
        No temperature is best, for example because all rows are right.

    Examples
    --------
    >>> rows = [[2.0, 0.0]] * 3 + [[0.0, 2.0]]
    >>> round(fit_temperature(rows, [0, 0, 0, 0]), 4)
    1.8205
    """
    z = _array(logits)
    if z.ndim != 2 or not z.size:
        raise InputError(f"the logits have shape {z.shape}: expected (n, K), with at least one row")
    truth = as_indices(_array(y, whole=True), *z.shape)
    rows = np.flatnonzero(np.isnan(z).any(axis=1) | (z == np.inf).any(axis=1) | (z == -np.inf).all(axis=1))
    if rows.size:
        raise InputError(f"row {rows[0]}: the logits are NaN or infinite ({rows.size} such rows)")
    z = z - z.max(axis=1, keepdims=True)
    of_truth = z[np.arange(len(z)), truth]
    if (of_truth == -np.inf).any():
        raise InputError(f"row {np.argmin(of_truth)}: the true label has logit -inf, which no temperature makes likely")

    def slope(log_T: float) -> float:
        with np.errstate(invalid="ignore", over="ignore"):
            p = np.exp(z * math.exp(-log_T))
        p /= p.sum(axis=1, keepdims=True)
        return float((np.multiply(p, z, out=np.zeros_like(z), where=p > 0).sum(axis=1) - of_truth).mean())

    low, high = (math.log(T) for T in _RANGE)
    if slope(low) <= 0:
        raise InputError("the classifier is right on all rows, so no temperature is best: add rows")
    if slope(high) >= 0:
        raise InputError("the classifier is no better than chance on these rows: check the order of columns and labels")
    from scipy.optimize import brentq

    return math.exp(float(brentq(slope, low, high, xtol=1e-12)))


def _array(values: Any, whole: bool = False) -> npt.NDArray[Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.numpy() if whole else values.double().numpy()
    return np.asarray(values) if whole else np.asarray(values, dtype=np.float64)
