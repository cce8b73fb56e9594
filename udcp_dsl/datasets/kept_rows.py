"""Classifiers that come with the package as arrays: what each said of many rows, kept as logits in steps of 1/64.

A softmax in float64 makes them probabilities, so that every row sums to 1; they are within one percent of those that
the classifier gave. Built by benchmarks/classifiers, which needs Node; to read them needs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.example_specs import example_specs
from udcp_dsl.diagnostics import InputError
from udcp_dsl.loss import load

_FOLDER = Path(__file__).parent / "arrays"
_STEPS = 64


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows that come with the package, in random order, so that any slice is a fair sample.

    Attributes
    ----------
    probs : array, shape (n, K)
        Probabilities.
    y : array of int, shape (n,)
        True labels, as positions.
    labels : tuple of str
        The labels, in the order of the example's spec.
    origin : str
        What classified what.
    """

    probs: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    origin: str

    def __len__(self) -> int:
        return len(self.y)


def kept(name: str, spec: str, origin: str, seed: int) -> KeptRows:
    """What a kept classifier said, over the labels of an example; the rows are in another order for each seed."""
    if seed < 0:
        raise InputError(f"seed is {seed}: give 0 or more")
    labels = load(example_specs()[spec]).labels
    try:
        with np.load(_FOLDER / f"{name}.npz", allow_pickle=False) as held:
            logits, y = (256.0 * held["high"] + held["low"]) / -_STEPS, held["y"]
    except OSError:
        raise InputError(f"the rows of {name} are not part of this installation: install udcp_dsl again") from None
    if logits.shape[1] != len(labels):
        raise InputError(
            f"the rows of {name} have {logits.shape[1]} labels, its spec has {len(labels)}: install udcp_dsl again"
        )
    powers = np.exp(logits)
    order = np.random.default_rng(seed).permutation(len(y))
    probs = (powers / powers.sum(axis=1, keepdims=True))[order]
    return KeptRows(probs, y[order].astype(np.int64), labels, origin)
