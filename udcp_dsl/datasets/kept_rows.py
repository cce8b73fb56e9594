"""Classifiers that come with the package as arrays: what each said of many rows, kept as logits in steps of 1/64.

A softmax in float64 makes them probabilities, so that every row sums to 1; they are within one percent of those that
the classifier gave. Built by benchmarks/classifiers, which needs Node; to read them needs nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError

_FOLDER = Path(__file__).parent / "arrays"
_STEPS = 64


def kept(name: str, K: int, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Probabilities (n, K) and true labels (n,) of a kept classifier; the rows are in another order for each seed."""
    if seed < 0:
        raise InputError(f"seed is {seed}: give 0 or more")
    try:
        with np.load(_FOLDER / f"{name}.npz", allow_pickle=False) as held:
            logits, y = (256.0 * held["high"] + held["low"]) / -_STEPS, held["y"]
    except OSError:
        raise InputError(f"the rows of {name} are not part of this installation: install udcp_dsl again") from None
    if logits.shape[1] != K:
        raise InputError(f"the rows of {name} have {logits.shape[1]} labels, its spec has {K}: install udcp_dsl again")
    powers = np.exp(logits)
    order = np.random.default_rng(seed).permutation(len(y))
    return (powers / powers.sum(axis=1, keepdims=True))[order], y[order].astype(np.int64)
