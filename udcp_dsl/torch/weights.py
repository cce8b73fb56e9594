"""Load weights into a model, from files that cannot run code: safetensors, or torch files read with weights_only."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from udcp_dsl.diagnostics import InputError

M = TypeVar("M", bound=nn.Module)

SAFE = (2, 6)  # before, a file could run code with weights_only=True, too (CVE-2025-32434)


def load_weights(model: M, path: str | os.PathLike[str]) -> M:
    """Load saved weights into a model, without running code from the file.

    Parameters
    ----------
    model : torch.nn.Module
        The model; names and shapes must match exactly.
    path : str or path
        A `.safetensors` file (needs the package safetensors), or any file that torch reads with weights_only=True. A
        checkpoint may hold the weights under "state_dict".

    Returns
    -------
    torch.nn.Module
        The model.

    Raises
    ------
    InputError
        The file is a pickled model, or does not match the model; or torch is older than 2.6, in which a file that is
        not safetensors can run code.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}")
    weights = _safetensors(file) if file.suffix == ".safetensors" else _torch(file)
    if isinstance(weights, Mapping) and isinstance(weights.get("state_dict"), Mapping):
        weights = weights["state_dict"]
    if not isinstance(weights, Mapping):
        raise InputError(
            f"{file} holds a {type(weights).__name__}: save the weights with torch.save(model.state_dict())"
        )
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:  # lists every name that is missing, unknown or of another shape
        raise InputError(f"{file} does not fit the model: {error}") from None
    return model


def _safetensors(file: Path) -> Any:
    try:
        safetensors = import_module("safetensors.torch")
    except ImportError:
        raise InputError(f"{file} needs the package safetensors: pip install safetensors") from None
    try:
        return safetensors.load_file(file)
    except Exception as error:  # its own exception type exists only if it is installed
        raise InputError(f"{file} is not a safetensors file: {error}") from error


def _torch(file: Path) -> Any:
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < SAFE:
        raise InputError(
            f"{file} could run code: torch is {torch.__version__}, and only 2.6 and newer read such files safely "
            "(CVE-2025-32434). Upgrade torch, or save the weights as safetensors"
        )
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(
            f"{file} holds more than tensors, or is damaged; loading it could run code. Save the weights alone: "
            "torch.save(model.state_dict(), path)"
        ) from None
    except (RuntimeError, EOFError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
