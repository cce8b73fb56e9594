"""One batch through one model: unpack it, move it to the device, halve it while memory runs out, take the logits.

Within `with prepared(...)`, the model is in eval mode and on the device; afterwards it is as it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from udcp_dsl.diagnostics import InputError

Model: TypeAlias = Callable[..., Any]

LABEL_KEYS = ("labels", "label", "y", "target", "targets")
_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


@dataclass(frozen=True)
class Batch:
    """The inputs of the model, and the true labels that came with them."""

    inputs: Any
    labels: npt.NDArray[Any] | None


def unpacked(batch: Any, number: int) -> Batch:
    """Unpack a loader's batch: x, (x,), (x, y), or a mapping that may hold labels under one of LABEL_KEYS."""
    if isinstance(batch, Tensor | np.ndarray):
        return Batch(batch, None)
    if isinstance(batch, Mapping):
        keys = [key for key in LABEL_KEYS if key in batch]
        if len(keys) > 1:
            raise InputError(f"batch {number}: {' and '.join(map(repr, keys))} could both be the labels: give one")
        inputs = {key: value for key, value in batch.items() if key not in keys}
        return Batch(inputs, _labels(batch[keys[0]]) if keys else None)
    if isinstance(batch, tuple | list) and len(batch) in (1, 2):
        return Batch(batch[0], _labels(batch[1]) if len(batch) == 2 else None)
    what = type(batch).__name__ + (f" of {len(batch)}" if isinstance(batch, tuple | list) else "")
    raise InputError(
        f"batch {number} is a {what}: give a tensor, (x, y), or a dict of the model's arguments and labels"
    )


def _labels(y: Any) -> npt.NDArray[Any]:
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.ndim != 1:
        raise InputError(f"labels of shape {labels.shape}: give one label per row; for one-hot rows, their argmax(1)")
    return labels


def resolved_device(device: str | torch.device) -> torch.device:
    """The device of that name; "auto" is cuda, else mps, else the cpu."""
    if device != "auto":
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


@contextmanager
def prepared(models: Sequence[Model], device: torch.device, *, dropout: bool = False) -> Iterator[None]:
    """Move models to the device and into eval mode, with active dropout on request; restore them afterwards."""
    with ExitStack() as restore:
        for model in models:
            if not isinstance(model, nn.Module):
                continue
            modules = list(model.modules())
            restore.callback(_set_modes, modules, [module.training for module in modules])
            homes = {tensor.device for tensor in chain(model.parameters(), model.buffers())}
            # A model that is spread over several devices is not moved. Moving happens outside of inference mode, in
            # which the parameters would turn into tensors that can never be trained again.
            if len(homes) == 1 and device not in homes:
                restore.callback(model.to, homes.pop())
                model.to(device)
            model.eval()
            if dropout:
                active = [module for module in modules if isinstance(module, _DROPOUT) and module.p > 0]
                if not active:
                    raise InputError(
                        "the model has no dropout modules, so every pass would give the same: give an ensemble "
                        "(a list of models), or use probabilities"
                    )
                _set_modes(active, [True] * len(active))
        yield


def _set_modes(modules: Sequence[nn.Module], training: Sequence[bool]) -> None:
    # Not by train(), which also sets the children, whose flags may differ.
    for module, flag in zip(modules, training, strict=True):
        module.training = flag


def logits_of(model: Model, inputs: Any, device: torch.device) -> Tensor:
    """The logits (n, K) of the inputs, on the device."""
    moved = _mapped(inputs, lambda tensor: _to(tensor, device))
    if isinstance(moved, dict):
        output = model(*moved.values()) if len(moved) == 1 else model(**moved)
    else:
        output = model(*moved) if isinstance(moved, tuple) else model(moved)
    if isinstance(output, Mapping):
        output = output.get("logits")
    output = getattr(output, "logits", output)
    if isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise InputError(f"the model returns a {type(output).__name__}: it must return logits, a tensor (n, K)")
    if output.ndim != 2:
        raise InputError(f"the model returns shape {tuple(output.shape)}: logits must be (n, K), one column per label")
    if output.shape[1] < 2:
        raise InputError(
            "the model returns one logit per row, whose softmax is always 1; for a binary classifier give two: "
            "torch.cat([torch.zeros_like(z), z], 1)"
        )
    return output


class Halving:
    """Applies a function to inputs, in pieces of at most `limit` rows; `limit` is halved when memory runs out."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.limit: int | None = None

    def __call__(self, function: Callable[[Any], Tensor], inputs: Any) -> Tensor:
        rows = _rows(inputs)
        while True:
            size = rows if self.limit is None or rows is None else min(rows, self.limit)
            try:
                if size is None or size == rows:
                    return function(inputs)
                pieces = (slice(start, start + size) for start in range(0, rows or 0, size))
                return torch.cat([function(_mapped(inputs, itemgetter(piece))) for piece in pieces])
            except RuntimeError as error:
                if size is None or size <= 1 or not _is_out_of_memory(error):
                    raise
            # Outside of the handler: its traceback keeps the tensors alive that did not fit.
            self.limit = size // 2
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            elif self.device.type == "mps":
                torch.mps.empty_cache()


def _is_out_of_memory(error: RuntimeError) -> bool:
    text = str(error).lower()  # only cuda has its own exception type
    return isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in text or "can't allocate memory" in text


def _to(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type != "cuda":  # on mps, non-blocking copies have returned incomplete data
        return tensor.to(device)
    pinned = tensor.pin_memory() if tensor.device.type == "cpu" and not tensor.is_pinned() else tensor
    return pinned.to(device, non_blocking=True)


def _mapped(inputs: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The inputs with every tensor in them changed; mappings become dicts, lists and tuples become tuples."""
    if isinstance(inputs, Tensor | np.ndarray):
        return change(torch.as_tensor(inputs))
    if isinstance(inputs, Mapping):
        return {key: _mapped(value, change) for key, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        return tuple(_mapped(value, change) for value in inputs)
    return inputs


def _rows(inputs: Any) -> int | None:
    """The number of rows of all tensors in the inputs; None if they differ, so that the batch cannot be halved."""
    counts: set[int] = set()

    def count(tensor: Tensor) -> Tensor:
        counts.add(len(tensor) if tensor.ndim else 0)
        return tensor

    _mapped(inputs, count)
    return counts.pop() if len(counts) == 1 else None
