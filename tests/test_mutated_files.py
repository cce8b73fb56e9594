"""Files of probabilities, truths and saved predictors with bytes dropped, swapped, doubled and replaced.

What comes out is either read, and then has the right shape and no hole, or refused with an InputError that names the
file; nothing else ever. The corpus holds a good file of each kind, made here, and inputs that once went wrong, kept in
tests/corpus under the name of their kind. Some thousand in every run, the same ones; the slow run tries new ones.
"""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import udcp_dsl as udcp
from udcp_dsl.rows import columns as row_attributes
from udcp_dsl.rows import source as reading

if TYPE_CHECKING:
    from tests.conftest import Sizes

Mutate = Callable[[Sequence[Any], Sequence[Any], random.Random], list[Any]]

LABELS = ("ham", "spam", "eggs")
_P = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.125, 0.125, 0.75]])
_TOKENS = [
    b"",
    b",",
    b"\n",
    b'"',
    b"nan",
    b"1e999",
    b"-1",
    b"0.5",
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"null",
    b"ham",
    b"1" * 400,
]
KINDS = ("npy", "npz", "csv", "parquet", "arrow", "truth.csv", "truth.json", "saved")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("good")
    table = pa.table({"id": ["a", "b", "c"], **{name: _P[:, k] for k, name in enumerate(LABELS)}})
    np.save(folder / "f.npy", _P.astype(np.float32))
    np.savez(folder / "f.npz", p=_P)
    pa.csv.write_csv(table, folder / "f.csv")
    pa.parquet.write_table(table, folder / "f.parquet")
    pa.feather.write_feather(table, folder / "f.arrow", compression="uncompressed")
    (folder / "f.truth.csv").write_text("id,truth\na,ham\nb,spam\nc,eggs\n")
    (folder / "f.truth.json").write_text('["ham", "spam", "eggs"]')
    loss = udcp.loads("labels { ham, spam, eggs }  loss l = size + 2 * any({ ham, spam })", name="mail.loss")
    predictor = udcp.SetPredictor(loss, "price", alpha=[0.1, 0.3], conditional="class")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor.calibrate(np.tile(_P, (20, 1)), np.tile([0, 1, 2], 20))
    predictor.save(folder / "f.saved")
    return {kind: (folder / f"f.{kind}").read_bytes() for kind in KINDS}


def _judge(kind: str, data: bytes, folder: Path) -> str:
    path = folder / f"f.{kind.rpartition('.')[2]}"
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            if kind == "saved":
                sets = udcp.SetPredictor.load(path).predict_set(_P, alpha=0.3)
                assert sets.mask.shape == _P.shape
            elif kind.startswith("truth"):
                column = "truth" if kind.endswith("csv") else None
                y = row_attributes.truth(reading.read_column(path, column), LABELS, 3)
                assert y.shape == (3,)
                assert ((y >= 0) & (y < 3)).all()
            else:
                has_ids = kind in ("csv", "parquet", "arrow")
                P = reading.read_rows(path, LABELS, id_column="id" if has_ids else None).P
                assert P.shape[1] == 3
                assert np.isfinite(P).all()
        return "read"
    except (udcp.InputError, udcp.SpecError, udcp.OracleError):
        return "refused"
    finally:
        assert path.read_bytes() == data


def _mutant(good: dict[str, bytes], kind: str, rng: random.Random, mutate: Mutate) -> bytes:
    data = good[kind]
    if kind == "saved" and rng.random() < 0.7:
        return _resealed(data, rng, mutate)
    pieces = [data[i : i + 1] for i in range(len(data))]
    return b"".join(mutate(pieces, _TOKENS if rng.random() < 0.5 else [bytes([b]) for b in range(256)], rng))


def _resealed(data: bytes, rng: random.Random, mutate: Mutate) -> bytes:
    """A saved predictor that was changed and given a hash that fits, so that more than the hash must refuse it."""
    from udcp_dsl.predict.saved import _hash

    content = json.loads(data)
    target: Any = content
    while isinstance(target, dict | list) and target:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = rng.choice(keys)
        if not isinstance(target[key], dict | list) or rng.random() < 0.2:
            values: list[Any] = [None, -1, 0, 1.5, "x", "", [], {}, True, "nan", 10**30, [0.1], "price"]
            target[key] = rng.choice(values)
            break
        target = target[key]
    content["sha256"] = _hash(content)
    return json.dumps(content).encode()


def _try(good: dict[str, bytes], kind: str, seeds: Sequence[str], folder: Path, mutate: Mutate) -> Counter[str]:
    became: Counter[str] = Counter()
    for seed in seeds:
        data = _mutant(good, kind, random.Random(seed), mutate)
        try:
            became[_judge(kind, data, folder)] += 1
        except Exception as error:
            raise AssertionError(f"mutant {seed!r} of {kind}: {type(error).__name__}: {error}\n{data!r}") from error
    return became


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_is_read(kind: str, good: dict[str, bytes], tmp_path: Path) -> None:
    assert _judge(kind, good[kind], tmp_path) == "read"


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_is_read_or_refused(
    kind: str, good: dict[str, bytes], tmp_path: Path, mutate: Mutate, sizes: Sizes
) -> None:
    became = _try(good, kind, [f"{kind}/{i}" for i in range(sizes.mutants)], tmp_path, mutate)
    assert became["refused"] > 0.15 * sizes.mutants


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_new_mutants_in_every_run(
    kind: str, good: dict[str, bytes], tmp_path: Path, mutate: Mutate, sizes: Sizes
) -> None:
    fresh = random.SystemRandom().getrandbits(64)
    _try(good, kind, [f"{fresh}/{i}" for i in range(sizes.mutants)], tmp_path, mutate)


def test_what_once_went_wrong_is_refused(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """A file of the corpus is named NAME.KIND."""
    kept = sorted((pytestconfig.rootpath / "tests" / "corpus").glob("*.*"))
    assert kept
    for path in kept:
        kind = next(kind for kind in sorted(KINDS, key=len, reverse=True) if path.name.endswith(f".{kind}"))
        assert _judge(kind, path.read_bytes(), tmp_path) == "refused", path.name
