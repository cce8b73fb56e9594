"""Probabilities from torch models: the numbers, the batches, the model afterwards, memory, files; weights."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import udcp_dsl as udcp
from udcp_dsl.torch import load_weights, logits, mc_probabilities, probabilities

IDENTITY = nn.Identity()


def softmax(z: Any, T: float = 1.0) -> Any:
    z = np.asarray(z, np.float64) / T
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def some_logits(n: int = 20, K: int = 5, seed: int = 0) -> Tensor:
    return 3 * torch.randn(n, K, generator=torch.Generator().manual_seed(seed))


def network(*, dropout: float = 0.5) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 4))


Z = some_logits()


class Keywords(nn.Module):
    """Called as models of text are: several arguments, and an output with attributes."""

    def forward(self, ids: Tensor, mask: Tensor) -> Any:
        return SimpleNamespace(logits=ids * mask)


# The numbers


@given(st.data())
def test_batches_do_not_matter(data: st.DataObject) -> None:
    n, K = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 6))
    z = some_logits(n, K, data.draw(st.integers(0, 99)))
    T = data.draw(st.floats(0.1, 10))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    ends = np.minimum(np.cumsum([0, *sizes]), n)
    batches = [z[a:b] for a, b in pairwise(ends) if b > a]
    P = probabilities(IDENTITY, batches, temperature=T)
    assert P.dtype == np.float32
    np.testing.assert_allclose(P, softmax(z, T), rtol=2e-5, atol=1e-7)
    np.testing.assert_array_equal(P, probabilities(IDENTITY, iter([z]), temperature=T))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 1e-3), (np.float32, 2e-6), (np.float64, 1e-14)])
def test_dtypes(dtype: Any, tolerance: float) -> None:
    z = some_logits().double()
    P = probabilities(IDENTITY, [z], dtype=dtype)
    assert P.dtype == dtype
    np.testing.assert_allclose(P, softmax(z), rtol=tolerance, atol=tolerance)


def test_half_precision_logits_are_softened_in_float32() -> None:
    z = some_logits(50, 200).bfloat16()
    np.testing.assert_allclose(probabilities(IDENTITY, [z]), softmax(z.float()), rtol=1e-5, atol=1e-8)


def test_every_form_of_a_batch() -> None:
    z, y = some_logits(), torch.arange(20)
    expected = probabilities(IDENTITY, [z])
    ones = torch.ones_like(z)
    for model, batches in (
        (IDENTITY, [(z[:7], y[:7]), [z[7:], y[7:]]]),
        (IDENTITY, [{"image": z[:7], "label": y[:7]}, {"image": z[7:], "label": y[7:]}]),
        (
            Keywords(),
            [{"mask": ones[:7], "ids": z[:7], "labels": y[:7]}, {"mask": ones[7:], "ids": z[7:], "labels": y[7:]}],
        ),
        (Keywords(), [((z[:7], ones[:7]), y[:7]), ((z[7:], ones[7:]), y[7:])]),
        (lambda x: (x, "more"), [(z.numpy(), y.numpy())]),
        (lambda x: {"logits": x}, [(z, y.tolist())]),
        (IDENTITY, DataLoader(TensorDataset(z, y), batch_size=6)),
    ):
        P, labels = probabilities(model, batches, with_labels=True)
        np.testing.assert_array_equal(P, expected)
        np.testing.assert_array_equal(labels, np.arange(20))
    for loader in (z, z.numpy(), DataLoader(TensorDataset(z), batch_size=6), (batch for batch in [z])):
        np.testing.assert_array_equal(probabilities(IDENTITY, loader), expected)
    np.testing.assert_array_equal(
        probabilities(IDENTITY, [(z[:2], ["cat", "dog"])], with_labels=True)[1], ["cat", "dog"]
    )


def test_rows_go_to_the_predictor() -> None:
    rng = np.random.default_rng(0)
    z = some_logits(300, 3)
    y = [int(rng.choice(3, p=p)) for p in softmax(z)]
    P, labels = probabilities(IDENTITY, [(z, torch.tensor(y))], with_labels=True)
    loss = udcp.loads("loss l = size", labels=["a", "b", "c"])
    sets = udcp.SetPredictor(loss, "lac", alpha=0.1, repair=None).calibrate(P, labels).predict_set(P)
    assert sets.mask[np.arange(300), y].mean() >= 0.9


def test_logits() -> None:
    z = some_logits()
    z[0, 0] = -torch.inf  # a label that is ruled out
    found, y = logits(IDENTITY, [(z, torch.arange(20))], with_labels=True)
    np.testing.assert_array_equal(found, z.numpy())
    np.testing.assert_array_equal(y, np.arange(20))
    assert logits(IDENTITY, [z], dtype=np.float64).dtype == np.float64


def test_a_loader_that_shuffles_needs_its_labels() -> None:
    z, y = some_logits(), torch.arange(20)
    loader = DataLoader(TensorDataset(z, y), batch_size=6, shuffle=True)
    P, labels = probabilities(IDENTITY, loader, with_labels=True)
    np.testing.assert_array_equal(P, probabilities(IDENTITY, [z])[labels])
    with pytest.raises(udcp.InputError, match="shuffles"):
        probabilities(IDENTITY, loader)


# The model afterwards


def test_the_model_is_as_it_was() -> None:
    model = network().train()
    model[1].eval()  # frozen, as in fine-tuning
    modes = [module.training for module in model.modules()]
    running = model[1].running_mean.clone()
    x = some_logits(64)
    P = probabilities(model, x)
    np.testing.assert_array_equal(P, probabilities(model, x))  # no dropout
    assert [module.training for module in model.modules()] == modes
    torch.testing.assert_close(model[1].running_mean, running, rtol=0, atol=0)
    model(x).sum().backward()  # inference mode has left no trace
    assert all(p.grad is not None for p in model.parameters())


def test_the_model_is_as_it_was_after_a_fault() -> None:
    model = network().train()
    with pytest.raises(RuntimeError, match="shapes"):
        probabilities(model, [torch.zeros(3, 7)])
    assert all(module.training for module in model.modules())


# Memory and files


class Small(nn.Module):
    """A model that runs out of memory on more than `room` rows."""

    def __init__(self, room: int, error: Exception) -> None:
        super().__init__()
        self.room, self.error, self.seen = room, error, list[int]()

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        self.seen.append(len(x))
        if len(x) > self.room:
            raise self.error
        return x * scale


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("MPS backend out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_batches_are_halved_until_they_fit(error: Exception) -> None:
    model = Small(3, error)
    z = some_logits(25)
    P = probabilities(model, [{"x": z[:20], "scale": 1.0}, {"x": z[20:], "scale": 1.0}])
    np.testing.assert_array_equal(P, probabilities(IDENTITY, [z]))
    assert model.seen == [20, 10, 5, *[2] * 10, 2, 2, 1]  # the limit is remembered


def test_what_halving_cannot_mend() -> None:
    with pytest.raises(RuntimeError, match="out of memory"):
        probabilities(Small(0, RuntimeError("out of memory")), [some_logits()])
    other = Small(3, RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        probabilities(other, [some_logits()])
    assert other.seen == [20]
    uneven = Small(3, RuntimeError("out of memory"))  # which rows belong together is not known
    with pytest.raises(RuntimeError, match="out of memory"):
        probabilities(uneven, [{"x": some_logits(20), "scale": torch.ones(1)}])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_are_written_as_they_come(tmp_path: Path, dtype: Any) -> None:
    z = some_logits(1000, 7)
    file = tmp_path / "probs.npy"
    batches = ((z[start : start + 33], torch.arange(1000)[start : start + 33]) for start in range(0, 1000, 33))
    P, y = probabilities(IDENTITY, batches, dtype=dtype, out=file, with_labels=True)
    assert isinstance(P, np.memmap)
    assert (P.shape, P.dtype, y.tolist()) == ((1000, 7), dtype, list(range(1000)))
    np.testing.assert_array_equal(P, probabilities(IDENTITY, [z], dtype=dtype))
    np.testing.assert_array_equal(np.load(file), P)
    assert file.stat().st_size == 128 + P.nbytes
    assert [path.name for path in tmp_path.iterdir()] == ["probs.npy"]


def test_nothing_partial_is_written(tmp_path: Path) -> None:
    file = tmp_path / "probs.npy"
    file.write_bytes(b"before")
    for batches in ([some_logits(), torch.full((1, 5), torch.nan)], []):
        with pytest.raises(udcp.InputError):
            probabilities(IDENTITY, batches, out=file)
        assert [path.name for path in tmp_path.iterdir()] == ["probs.npy"]
        assert file.read_bytes() == b"before"
    with pytest.raises(udcp.InputError, match=r"\.npy"):
        probabilities(IDENTITY, [some_logits()], out=tmp_path / "probs.bin")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    probabilities(IDENTITY, [Z] * 3, progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TERM", "xterm")
    for loader, progress, end in (
        ([Z] * 4, True, "100%"),
        ((Z for _ in range(4)), True, "probabilities"),
        ([Z], None, ""),
        ([Z], False, ""),
    ):
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        probabilities(IDENTITY, loader, progress=progress)
        assert end in screen.getvalue()
        assert bool(end) == ("probabilities" in screen.getvalue())
    assert capsys.readouterr().out == ""


# Refusals


@pytest.mark.parametrize(
    ("model", "batches", "options", "words"),
    [
        (IDENTITY, [Z, torch.full((3, 5), torch.nan)], {}, "row 20: .* NaN or infinite .3 such rows"),
        (IDENTITY, [torch.tensor([[0.0, torch.inf]])], {}, "row 0"),
        (IDENTITY, [torch.tensor([[-torch.inf, -torch.inf]])], {}, "row 0"),
        (IDENTITY, [Z[:, :1]], {}, "one logit per row"),
        (IDENTITY, [Z[0]], {}, r"shape \(5,\)"),
        (IDENTITY, [Z[None]], {}, r"shape \(1, 20, 5\)"),
        (IDENTITY, [Z, Z[:, :4]], {}, "batch 1: 4 columns, but 5"),
        (IDENTITY, [], {}, "no batches"),
        (IDENTITY, [(Z, Z, Z)], {}, "batch 0 is a tuple of 3"),
        (IDENTITY, ["text"], {}, "batch 0 is a str"),
        (IDENTITY, [{"x": Z, "y": Z[:, 0], "label": Z[:, 0]}], {}, "'label' and 'y' could both be"),
        (IDENTITY, [Z], {"with_labels": True}, "batch 0 has no labels"),
        (IDENTITY, [(Z, torch.arange(3))], {"with_labels": True}, "3 labels for 20 rows"),
        (IDENTITY, [(Z, Z)], {"with_labels": True}, "one label per row"),
        (lambda x: "text", [Z], {}, "returns a str"),
        (lambda x: {"scores": x}, [Z], {}, "returns a NoneType"),
        (IDENTITY, [Z], {"temperature": 0.0}, "temperature is 0"),
        (IDENTITY, [Z], {"temperature": float("nan")}, "temperature is nan"),
        (IDENTITY, [Z], {"dtype": np.int64}, "dtype is int64"),
    ],
)
def test_refusals(model: Any, batches: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(udcp.InputError, match=words):
        probabilities(model, batches, **options)


def test_a_second_softmax_is_noticed() -> None:
    with pytest.warns(UserWarning, match="softmax would be applied twice") as caught:
        probabilities(nn.Softmax(1), [Z])
    assert caught[0].filename == __file__
    np.testing.assert_allclose(probabilities(nn.LogSoftmax(1), [Z]), softmax(Z), rtol=1e-5)


# Monte Carlo


def test_monte_carlo_is_the_mean_of_passes_with_dropout() -> None:
    model = nn.Sequential(nn.BatchNorm1d(5, affine=False), nn.Dropout(0.5)).train()
    x = some_logits(6)
    P = mc_probabilities(model, [x], samples=3, seed=7)
    scaled = x.double() / np.sqrt(1 + 1e-5)  # batch norm in eval mode, with its initial statistics
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        kept = [nn.functional.dropout(torch.ones(6, 5), 0.5) for _ in range(3)]
    expected = np.mean([softmax(scaled * mask) for mask in kept], axis=0)
    np.testing.assert_allclose(P, expected, rtol=1e-5)
    assert model.training
    assert model[0].num_batches_tracked == 0


def test_monte_carlo_repeats_and_leaves_the_generator_alone() -> None:
    model, x = network(), some_logits(40)
    state = torch.get_rng_state()
    P = mc_probabilities(model, [x], samples=5)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(P, mc_probabilities(model, iter([x]), samples=5))
    assert not np.array_equal(P, mc_probabilities(model, [x], samples=5, seed=1))
    plain = probabilities(model, [x])
    assert np.abs(mc_probabilities(model, [x], samples=100) - plain).mean() < np.abs(P - plain).mean()


def test_an_ensemble_is_the_mean_of_its_members() -> None:
    models = [nn.Linear(5, 4) for _ in range(3)]
    x = some_logits(10)
    expected = np.mean([probabilities(model, [x], dtype=np.float64) for model in models], axis=0)
    for given_models in (models, nn.ModuleList(models)):
        P, y = mc_probabilities(given_models, [(x, torch.arange(10))], dtype=np.float64, with_labels=True)
        np.testing.assert_allclose(P, expected, rtol=1e-12)
        np.testing.assert_array_equal(y, np.arange(10))


def test_monte_carlo_refusals() -> None:
    with pytest.raises(udcp.InputError, match="no dropout"):
        mc_probabilities(nn.Linear(5, 4).train(), [Z])
    with pytest.raises(udcp.InputError, match="no dropout"):
        mc_probabilities(network(dropout=0.0), [Z])
    with pytest.raises(udcp.InputError, match="no models"):
        mc_probabilities([], [Z])
    with pytest.raises(udcp.InputError, match="samples is 0"):
        mc_probabilities(network(), [Z], samples=0)


# Weights


def test_weights_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    for name, content in (("plain.pt", one.state_dict()), ("deep.ckpt", {"state_dict": one.state_dict(), "epoch": 3})):
        torch.save(content, tmp_path / name)
        nn.init.zeros_(other.weight)
        assert load_weights(other, tmp_path / name) is other
        torch.testing.assert_close(other.weight, one.weight, rtol=0, atol=0)

    safetensors = ModuleType("safetensors.torch")
    safetensors.load_file = lambda file: {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "safetensors", ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", safetensors)
    (tmp_path / "w.safetensors").touch()
    assert load_weights(other, str(tmp_path / "w.safetensors")).weight.sum() == 6


def test_weights_that_could_run_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(3, 2)
    torch.save(model, tmp_path / "model.pt")
    with pytest.raises(udcp.InputError, match="could run code"):
        load_weights(model, tmp_path / "model.pt")
    torch.save(torch.ones(3), tmp_path / "tensor.pt")
    with pytest.raises(udcp.InputError, match="holds a Tensor"):
        load_weights(model, tmp_path / "tensor.pt")
    torch.save(nn.Linear(4, 2).state_dict(), tmp_path / "other.pt")
    with pytest.raises(udcp.InputError, match="does not fit the model"):
        load_weights(model, tmp_path / "other.pt")
    with pytest.raises(udcp.InputError, match="no file"):
        load_weights(model, tmp_path / "absent.pt")
    for content in (b"", b"neither zip nor pickle"):
        (tmp_path / "noise.pt").write_bytes(content)
        with pytest.raises(udcp.InputError, match=r"noise\.pt"):
            load_weights(model, tmp_path / "noise.pt")
    (tmp_path / "w.safetensors").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(udcp.InputError, match="pip install safetensors"):
        load_weights(model, tmp_path / "w.safetensors")


# The house


def test_torch_is_imported_when_it_is_used(tmp_path: Path) -> None:
    """A stand-in for torch: the real one takes two seconds to import."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(
        "import sys\nfrom unittest.mock import MagicMock\n"
        "sys.modules['torch.utils'] = sys.modules['torch.utils.data'] = MagicMock()\n"
        "__getattr__ = lambda name: MagicMock()\n"
    )
    code = (
        f"import sys, udcp_dsl; sys.path.insert(0, {str(tmp_path)!r}); assert 'torch' not in sys.modules;"
        "ours = udcp_dsl.torch; import torch; assert ours is not torch;"
        "print(torch.__file__, ours.probabilities.__module__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == (f"{tmp_path / 'torch/__init__.py'} udcp_dsl.torch.probabilities\n", "")
    assert udcp.torch is not torch
    assert udcp.torch.probabilities(IDENTITY, torch.zeros(1, 2)).tolist() == [[0.5, 0.5]]


def test_the_missing_package_is_named() -> None:
    code = "import sys; sys.modules['torch'] = None; import udcp_dsl; udcp_dsl.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'udcp_dsl[torch]'" in run.stderr


@pytest.mark.parametrize("version", ["2.5.1+cpu", "1.13.1"])
def test_a_torch_that_reads_weights_unsafely_reads_none(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "w.pt")
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(udcp.InputError, match=r"w\.pt could run code: torch is .*Upgrade torch, or .*safetensors"):
        load_weights(nn.Linear(3, 2), tmp_path / "w.pt")
    monkeypatch.setattr(torch, "__version__", "2.6.0")
    load_weights(nn.Linear(3, 2), tmp_path / "w.pt")


def test_the_package_asks_for_a_torch_that_reads_weights_safely() -> None:
    from udcp_dsl.torch.weights import SAFE

    project = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert '"torch>={}.{}"'.format(*SAFE) in project
