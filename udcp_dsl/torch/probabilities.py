"""The probabilities (n, K) of a torch model over a loader, row after row in the loader's order.

p = softmax(logits / T), in float32, or in float64 if that is the dtype; a Monte Carlo average is the mean of such p.
Within `with prepared(...)`, a model is in eval mode and on the device; afterwards it is as it was before. A batch that
does not fit into memory is halved.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.files import atomic_write, growing_array

Model: TypeAlias = Callable[..., Any]

LABEL_KEYS = ("labels", "label", "y", "target", "targets")
_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def unpacked(batch: Any, number: int) -> tuple[Any, Labels | None]:
    """The inputs of the model and the true labels, if any, in a loader's batch.

    A batch is x, (x,), (x, y), or a mapping that may hold labels under one of LABEL_KEYS.
    """
    if isinstance(batch, Tensor | np.ndarray):
        return batch, None
    if isinstance(batch, Mapping):
        keys = [key for key in LABEL_KEYS if key in batch]
        if len(keys) > 1:
            raise InputError(f"batch {number}: {' and '.join(map(repr, keys))} could both be the labels: give one")
        inputs = {key: value for key, value in batch.items() if key not in keys}
        return inputs, _labels(batch[keys[0]]) if keys else None
    if isinstance(batch, tuple | list) and len(batch) in (1, 2):
        return batch[0], _labels(batch[1]) if len(batch) == 2 else None
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


Matrix: TypeAlias = npt.NDArray[np.floating[Any]]
Labels: TypeAlias = npt.NDArray[Any]
Out: TypeAlias = str | os.PathLike[str] | None
Device: TypeAlias = "str | torch.device"  # a text: the documentation is built without torch

_ROWS = 256  # per batch, if one tensor is given instead of batches
_PATIENCE = 1.0  # seconds before a progress bar is shown


def probabilities(
    model: Model,
    loader: Iterable[Any],
    device: Device = "auto",
    temperature: float | None = None,
    dtype: npt.DTypeLike = np.float32,
    out: Out = None,
    progress: bool | None = None,
    *,
    with_labels: bool = False,
) -> Any:
    """The softmax of a model's logits for every row of a loader.

    The model runs in eval and inference mode and is put back as it was. A batch that does not fit into memory is
    halved.

    Parameters
    ----------
    model : torch.nn.Module or callable
        Returns logits (n, K).
    loader : iterable or tensor
        Batches: tensors, (x, y), or dicts of the model's arguments with labels under labels, label, y, target or
        targets.
    device : str or torch.device, default "auto"
        Where to run; "auto" takes cuda, mps or cpu.
    temperature : float, optional
        Logits are divided by it.
    dtype : dtype, default float32
        Type of the result.
    out : str or path, optional
        A `.npy` file to write the rows to as they come; the result is then a read-only memory map.
    progress : bool, optional
        Show a progress bar; by default on a terminal, after one second.
    with_labels : bool, default False
        Return the labels, too.

    Returns
    -------
    array, shape (n, K), or tuple (array, array)
        Probabilities or, with `with_labels`, probabilities and labels.

    Raises
    ------
    InputError
        The loader shuffles and no labels are requested, logits are not finite, or the output is not (n, K).

    Examples
    --------
    >>> import torch, udcp_dsl as udcp
    >>> udcp.torch.probabilities(torch.nn.Identity(), [torch.zeros(2, 4)]).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    place, kind = resolved_device(device), _checked_dtype(dtype)
    soften = _Softmax(temperature, kind)
    with prepared([model], place):
        return _run(lambda x: soften(logits_of(model, x, place)), loader, place, kind, out, progress, with_labels)


def logits(
    model: Model,
    loader: Iterable[Any],
    device: Device = "auto",
    dtype: npt.DTypeLike = np.float32,
    out: Out = None,
    progress: bool | None = None,
    *,
    with_labels: bool = False,
) -> Any:
    """A model's logits for every row of a loader, for `fit_temperature` and `calibrate(..., logits=True)`.

    Parameters
    ----------
    model, loader, device, dtype, out, progress, with_labels
        As for `probabilities`.

    Returns
    -------
    array, shape (n, K), or tuple (array, array)
        Logits or, with `with_labels`, logits and labels.
    """
    place, kind = resolved_device(device), _checked_dtype(dtype)
    computed = torch.float64 if kind == np.float64 else torch.float32
    with prepared([model], place):
        step = lambda x: logits_of(model, x, place).cpu().to(computed)  # noqa: E731
        return _run(step, loader, place, kind, out, progress, with_labels)


def mc_probabilities(
    model: Model | Sequence[Model],
    loader: Iterable[Any],
    samples: int = 100,
    device: Device = "auto",
    temperature: float | None = None,
    dtype: npt.DTypeLike = np.float32,
    out: Out = None,
    progress: bool | None = None,
    *,
    seed: int = 0,
    with_labels: bool = False,
) -> Any:
    """Mean probabilities over several passes with dropout, or over the models of an ensemble.

    Parameters
    ----------
    model : torch.nn.Module or sequence of them
        One model, whose dropout modules are set to training mode; or several models, each run once in eval mode.
    loader : iterable or tensor
        Batches, as for `probabilities`.
    samples : int, default 100
        Number of passes of a single model.
    device, temperature, dtype, out, progress, with_labels
        As for `probabilities`.
    seed : int, default 0
        Random seed for the dropout; torch's own generator is left as it was.

    Returns
    -------
    array, shape (n, K), or tuple (array, array)
        Probabilities or, with `with_labels`, probabilities and labels.
    """
    if samples < 1:
        raise InputError(f"samples is {samples}: give 1 or more")
    ensemble = isinstance(model, Sequence | nn.ModuleList)
    models: list[Model] = list(model) if isinstance(model, Sequence | nn.ModuleList) else [model] * samples
    if not models:
        raise InputError("the ensemble has no models")
    place, kind = resolved_device(device), _checked_dtype(dtype)
    soften = _Softmax(temperature, kind)

    def mean(x: Any) -> Tensor:
        total = soften(logits_of(models[0], x, place)).double()
        for one in models[1:]:
            total += soften(logits_of(one, x, place))
        return total / len(models)

    cuda = [place] if place.type == "cuda" else []
    with prepared(models if ensemble else models[:1], place, dropout=not ensemble), torch.random.fork_rng(cuda):
        torch.manual_seed(seed)
        return _run(mean, loader, place, kind, out, progress, with_labels)


class _Softmax:
    """softmax(logits / T), on the cpu. Warns if the logits seem to be probabilities already."""

    def __init__(self, temperature: float | None, dtype: np.dtype[Any]) -> None:
        self.temperature = 1.0 if temperature is None else float(temperature)
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise InputError(f"the temperature is {temperature}: give a finite number above 0")
        self.double = dtype == np.float64
        self.normalised: bool | None = None  # whether all rows of the first batch are: no chance

    def __call__(self, z: Tensor) -> Tensor:
        z = z.cpu().double() if self.double else z.float()  # there is no float64 on mps
        if self.normalised is None and len(z):
            self.normalised = bool(z.min() >= 0 and (z.sum(1) - 1).abs().max() < 1e-3)
            if self.normalised:
                warn(
                    "the model seems to return probabilities, and softmax would be applied twice: remove its own "
                    "softmax, or return log-probabilities"
                )
        return torch.softmax(z / self.temperature, 1).cpu()


def _run(
    step: Callable[[Any], Tensor],
    loader: Iterable[Any],
    device: torch.device,
    dtype: np.dtype[Any],
    out: Out,
    progress: bool | None,
    with_labels: bool,
) -> Matrix | tuple[Matrix, Labels]:
    """Apply `step` to the inputs of every batch, and join the results."""
    if _shuffles(loader) and not with_labels:
        raise InputError(
            "the loader shuffles, so rows cannot be matched to their labels: make it with shuffle=False, or request "
            "the labels in the same order, with_labels=True"
        )
    if isinstance(loader, Tensor | np.ndarray):
        loader = torch.split(torch.as_tensor(loader), _ROWS)
    labels: list[Labels] = []
    halving = Halving(device)

    def blocks() -> Iterator[Matrix]:
        done, K = 0, None
        for number, given in enumerate(_tracked(loader, progress)):
            inputs, true = unpacked(given, number)
            with torch.inference_mode():
                values: Matrix = halving(step, inputs).numpy().astype(dtype, copy=False)
            if with_labels:
                labels.append(_labels_of(true, number, len(values)))
            if K not in (None, values.shape[1]):
                raise InputError(f"batch {number}: {values.shape[1]} columns, but {K} in earlier batches")
            bad = np.flatnonzero((np.isnan(values) | (values == np.inf)).any(axis=1))
            if bad.size:
                raise InputError(f"row {done + bad[0]}: the model's logits are NaN or infinite ({bad.size} such rows)")
            done, K = done + len(values), values.shape[1]
            yield values

    gathered = _gathered(blocks()) if out is None else _streamed(blocks(), Path(out), dtype)
    return (gathered, np.concatenate(labels)) if with_labels else gathered


def _labels_of(labels: Labels | None, number: int, rows: int) -> Labels:
    if labels is None:
        raise InputError(
            f"batch {number} has no labels: give (x, y), or a dict with one of {', '.join(LABEL_KEYS)}; or leave out "
            "with_labels"
        )
    if len(labels) != rows:
        raise InputError(f"batch {number}: {len(labels)} labels for {rows} rows of logits")
    return labels


def _gathered(blocks: Iterator[Matrix]) -> Matrix:
    """Join the blocks into one array. Each is freed once it is copied, so memory hardly exceeds that of the array."""
    held = deque(blocks)
    if not held:
        raise InputError("the loader gave no batches")
    whole = np.empty((sum(map(len, held)), held[0].shape[1]), held[0].dtype)
    start = 0
    while held:
        block = held.popleft()
        whole[start : start + len(block)] = block
        start += len(block)
    return whole


def _streamed(blocks: Iterator[Matrix], path: Path, dtype: np.dtype[Any]) -> Matrix:
    """Write the blocks to a .npy file, and return it as a memory map."""
    if path.suffix != ".npy":
        raise InputError(f"out is {str(path)!r}: give a name that ends in .npy")
    rows = 0
    with atomic_write(path) as temporary, growing_array(temporary, dtype) as append:
        for block in blocks:
            append(block)
            rows += len(block)
        if not rows:
            raise InputError("the loader gave no batches")
    mapped: Matrix = np.load(path, mmap_mode="r")
    return mapped


def _tracked(loader: Iterable[Any], progress: bool | None) -> Iterator[Any]:
    """The batches, with a progress bar if stderr is a terminal."""
    wanted = progress is not False and sys.stderr.isatty()
    began = time.monotonic()
    with ExitStack() as shown:
        advance: Callable[[], None] | None = None
        for done, batch in enumerate(loader):
            if wanted and advance is None and (progress or time.monotonic() - began > _PATIENCE):
                from rich.console import Console
                from rich.progress import Progress

                total = len(loader) if isinstance(loader, Sized) else None
                bar = shown.enter_context(Progress(console=Console(file=sys.stderr), transient=True))
                task = bar.add_task("probabilities", total=total, completed=done)
                advance = lambda bar=bar, task=task: bar.advance(task)  # noqa: E731
            yield batch
            if advance is not None:
                advance()


def _shuffles(loader: Iterable[Any]) -> bool:
    if not isinstance(loader, DataLoader):
        return False
    samplers = loader.sampler, getattr(loader.batch_sampler, "sampler", None)
    return any(isinstance(s, RandomSampler | SubsetRandomSampler | WeightedRandomSampler) for s in samplers)


def _checked_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind not in (np.float16, np.float32, np.float64):
        raise InputError(f"dtype is {kind}: give float16, float32 or float64")
    return kind
