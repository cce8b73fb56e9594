"""Torch models: their probabilities on any device, temperature, Monte Carlo averages, weights, hierarchies.

The module is imported when it is first used (`udcp.torch`), and torch with it.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401  (only to say how to get it)
except ImportError:
    from udcp_dsl.diagnostics import install_hint

    raise ImportError(f"udcp_dsl.torch needs torch: {install_hint('torch')}") from None

from udcp_dsl.torch.embeddings import hierarchy_from_embeddings
from udcp_dsl.torch.probabilities import logits, mc_probabilities, probabilities
from udcp_dsl.torch.temperature import fit_temperature
from udcp_dsl.torch.weights import load_weights

__all__ = [
    "fit_temperature",
    "hierarchy_from_embeddings",
    "load_weights",
    "logits",
    "mc_probabilities",
    "probabilities",
]
