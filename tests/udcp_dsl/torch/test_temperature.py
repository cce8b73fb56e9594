"""The temperature minimises the negative log-likelihood, and scales with the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import udcp_dsl as udcp
from udcp_dsl.torch import fit_temperature, probabilities


def softmax(z: Any, T: float = 1.0) -> Any:
    z = np.asarray(z, np.float64) / T
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def some_logits(n: int = 20, K: int = 5, seed: int = 0) -> Tensor:
    return 3 * torch.randn(n, K, generator=torch.Generator().manual_seed(seed))


def drawn(z: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(z.shape[1], p=p) for p in softmax(z)])


def nll(z: Any, y: Any, T: float) -> float:
    return -float(np.log(softmax(z, T)[np.arange(len(y)), y]).mean())


@given(st.integers(0, 50), st.floats(0.05, 20))
def test_the_temperature_is_best_and_scales_with_the_logits(seed: int, factor: float) -> None:
    z = some_logits(200, 4, seed).double().numpy()
    y = drawn(z, seed)
    T = fit_temperature(z, y)
    assert all(nll(z, y, T) <= nll(z, y, T * other) for other in (0.5, 0.999, 1.001, 2.0))
    assert fit_temperature(factor * z, y) == pytest.approx(factor * T, rel=1e-9)
    assert 0.6 < T < 1.6  # the labels were drawn at temperature 1


def test_temperature_from_tensors_and_with_labels_ruled_out() -> None:
    z = some_logits(300, 4)
    y = drawn(z.numpy(), 0)
    T = fit_temperature(z, torch.from_numpy(y))
    assert fit_temperature(z.double().numpy(), y) == pytest.approx(T, rel=1e-9)
    wider = torch.cat([z, torch.full((300, 1), -torch.inf)], 1)
    assert fit_temperature(wider, y) == pytest.approx(T, rel=1e-9)
    assert probabilities(nn.Identity(), [wider], temperature=T)[:, 4].max() == 0


@pytest.mark.parametrize(
    ("z", "y", "words"),
    [
        ([[2.0, 0.0], [0.0, 2.0]], [0, 1], "right on all rows"),
        ([[2.0, 0.0], [0.0, 2.0]], [1, 0], "no better than chance"),
        ([[2.0, -np.inf]], [1], "row 0: the true label has logit -inf"),
        ([[2.0, 0.0], [np.nan, 0.0]], [0, 0], "row 1"),
        ([2.0, 0.0], [0], "shape"),
        ([[2.0, 0.0]], [2], "label indices run from 0 to 1"),
        ([[2.0, 0.0]], [0, 1], "y must have shape"),
    ],
)
def test_temperature_refusals(z: Any, y: Any, words: str) -> None:
    with pytest.raises(udcp.InputError, match=words):
        fit_temperature(z, y)
