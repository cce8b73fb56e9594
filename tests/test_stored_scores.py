"""Scores do not change by accident: every oracle, bit for bit, on a stored sample.

`python tests/test_stored_scores.py` writes the sample anew; do so only where scores are meant to change, and say it in
CHANGELOG.md.
"""

from __future__ import annotations

import functools
import json
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).parent / "stored_scores.json"

HEAD = """
labels 0..17
hierarchy even { a { b { 0..2 }, c { 3..5 } }, d { e { 6..8 }, f { 9..11 } }, g { h { 12..14 }, i { 15..17 } } }
hierarchy uneven { a { 0..3 }, b { c { 4..6, d { 7, 8 } }, 9 }, e { f { g { 10..13 } } }, 14..17 }
costs c { 0: 0.5, 1: 2, 2: 0.25, 3: 1, 4: 3, 5: 0.125, 9: 4, 12: 0, default: 1.5 }
categories teams { x: { 0..7 }, y: { 5..12 }, z: { 11..17 } }
category big { 2, 5, 11, 16 }
distance d = path(uneven, edge: 0.75)
"""
LOSSES = {
    "separable": "sum(c)",
    "disjoint": "count(even.level(1)) + 0.01 * size",
    "laminar": "count(even.level(1)) + 0.5 * count(even.level(2)) + 0.1 * sum(c)",
    "tree": "diameter(even) + 0.01 * size",
    "uneven tree": "diameter(d)",
    "tree and counts": "diameter(uneven) + 0.3 * count(uneven.level(1)) + 0.05 * sum(c)",
    "crossing": "count(teams) + 0.02 * size",
    "concave": "sqrt(count(teams)) + 0.05 * sum(c)",
    "size": "0.1 * size ^ 2",
    "size and costs": "3 * (size >= 3) + sum(c)",
    "largest": "max(c) + 0.1 * size",
    "negative": "sum(c) - 2 * any(big)",
}
# Oracles, their options, and the losses on which they are tried (None: all).
ORACLES: dict[str, tuple[str, dict[str, object], tuple[str, ...] | None]] = {
    "lac": ("lac", {}, ("separable",)),
    "ratio": ("ratio", {}, ("separable",)),
    "price": ("price", {}, None),
}
_ILP = {"levels": [0.5, 0.9, 0.99], "solver": "HiGHS", "canonical": True}
for _mass in ("before", "through", "random"):
    _suffix, _given = ("", {}) if _mass == "before" else (f" {_mass}", {"mass": _mass})
    ORACLES |= {
        f"base{_suffix}": ("base", _given, ("separable",)),
        f"raps{_suffix}": ("raps", _given, ("separable",)),
        f"penalized{_suffix}": ("penalized", {"lam": 0.1, **_given}, None),
        f"greedy{_suffix}": ("greedy", _given, None),
        f"ilp{_suffix}": ("ilp", {**_ILP, **_given}, ("laminar", "tree")),
    }


def rows() -> np.ndarray:
    """Sure, unsure, flat and tied rows, zeros among them, each a distribution."""
    rng = np.random.default_rng(20)
    drawn = [rng.dirichlet(np.full(18, a), 3) for a in (0.05, 0.3, 2.0)]
    tied = np.round(rng.dirichlet(np.full(18, 0.5), 3) * 64) / 64
    tied[:, 0] += 1 - tied.sum(axis=1)
    tied = np.abs(tied) / np.abs(tied).sum(axis=1, keepdims=True)
    return np.concatenate([*drawn, tied, np.full((1, 18), 1 / 18), np.eye(18)[[3]]])


def cases() -> Iterator[tuple[str, str, str]]:
    for name, (_, _, wanted) in ORACLES.items():
        for loss in LOSSES if wanted is None else wanted:
            for dtype in ("float64", "float32"):
                yield name, loss, dtype


@functools.cache
def compiled(loss_name: str) -> udcp.Loss:
    return udcp.loads(f"{HEAD} loss l = {LOSSES[loss_name]}")


@functools.cache
def stored() -> dict[str, list[int]]:
    return dict(json.loads(STORED.read_text()))


def scored(name: str, loss_name: str, dtype: str, chosen: slice = slice(None)) -> np.ndarray:
    oracle, options, _ = ORACLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return udcp.make_oracle(oracle, compiled(loss_name), **options).scores(rows()[chosen].astype(dtype))


def _print(scores: np.ndarray) -> list[int]:
    """A checksum a row: which row differs is told, and the file stays small."""
    return [zlib.crc32(np.ascontiguousarray(row + 0.0, dtype="<f8").tobytes()) for row in scores]


@pytest.mark.parametrize(("name", "loss", "dtype"), list(cases()))
def test_scores_are_those_of_the_sample(name: str, loss: str, dtype: str) -> None:
    # Of the rows for which a program is solved, every third; all of them by the slow run.
    chosen = slice(None, None, 3 if name.startswith("ilp") else 1)
    assert _print(scored(name, loss, dtype, chosen)) == stored()[f"{name}, {loss}, {dtype}"][chosen]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "loss", "dtype"), [case for case in cases() if case[0].startswith("ilp")])
def test_scores_by_programs_are_those_of_the_sample(name: str, loss: str, dtype: str) -> None:
    assert _print(scored(name, loss, dtype)) == stored()[f"{name}, {loss}, {dtype}"]


if __name__ == "__main__":
    found = {", ".join(case): _print(scored(*case)) for case in cases()}
    STORED.write_text(json.dumps(found, indent=0, sort_keys=True).replace(",\n", ",") + "\n")
