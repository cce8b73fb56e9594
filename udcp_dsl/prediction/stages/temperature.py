"""`temperature`: repair of p by one number T, p(y)^(1/T) divided by its row's sum; of logits z that is softmax(z / T).

Fitted on rows of their own by the likelihood of the true labels: with b = 1/T the mean of log sum exp(b log p) -
b log p(y) is convex in b, and its derivative, the mean over the rows of E_b[log p] - log p(y), rises through 0 at the
best b. A label with p = 0 keeps it, whatever T is, so a row whose truth has p = 0 says nothing about T.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.prediction.containers import changed, to_array
from udcp_dsl.prediction.oracle import Floats, Indices, Probabilities
from udcp_dsl.prediction.promises.promise import as_temperature
from udcp_dsl.prediction.stages.stage import Left, Stage

if TYPE_CHECKING:
    from udcp_dsl.prediction.rows.probability_matrix import Matrix
    from udcp_dsl.prediction.stages.oracle_input import OracleInput
    from udcp_dsl.prediction.stages.setting import Cells, Setting

# Of the rows that are calibrated with, a fifth is for the temperature, but no more than this many.
SHARE, MOST = 5, 1000
LOWEST, HIGHEST = 0.05, 20.0
_FEWEST = 10
_PIECE = 1 << 20  # entries that are worked on at a time


@dataclass(frozen=True)
class Temperature(Stage):
    """The temperature that is used: as given, or fitted on a fifth of the rows, at most 1,000."""

    value: float
    rows: int

    name: ClassVar[str] = "temperature"
    article: ClassVar[str] = "the "
    repairs: ClassVar[bool] = True

    @classmethod
    def takes_part(cls, setting: Setting) -> bool:
        return setting.promise.temperature is not None

    @classmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        if setting.promise.temperature != "fit":
            return ()
        return (temperature_fold(len(cells), setting.promise.seed),)

    @classmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: Left) -> Temperature:
        if not folds:
            return cls(float(setting.promise.temperature), 0)  # type: ignore[arg-type]  # a number, or there are folds
        (fold,) = folds
        return cls(fit_temperature(to_array(fold.P), fold.truth), len(fold))

    def repaired(self, P: Matrix) -> Matrix:
        return tempered(P, self.value)

    @property
    def rows_used(self) -> int:
        return self.rows

    def as_dict(self) -> dict[str, Any]:
        return {"temperature": self.value, "rows": self.rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Setting) -> Temperature:
        value = as_temperature(data["temperature"])
        if value in (None, "fit") or setting.promise.temperature not in ("fit", value):
            raise InputError("its temperature is not what was asked for; save it again")
        return cls(float(value), int(data["rows"]))


def temperature_fold(n: int, seed: int) -> Indices:
    """The rows for the temperature, rising: by `seed`, by a generator that no other fold draws from."""
    many = min(n // SHARE, MOST)
    if many < _FEWEST:
        raise InputError(
            f"a fifth of {n} calibration rows is too few to fit a temperature: give {SHARE * _FEWEST} rows or more, or "
            "a number as temperature"
        )
    return np.sort(np.random.default_rng([seed, SHARE]).permutation(n)[:many])


def fit_temperature(P: Probabilities, y: Indices) -> float:
    """The temperature under which the true labels are likeliest; one at an end of its range is warned of.

    >>> P = np.array([[0.9, 0.1]] * 4)
    >>> round(fit_temperature(P, np.array([0, 0, 0, 1])), 6)
    2.0
    """
    from scipy.optimize import brentq  # slow to import

    known = P[np.arange(len(P)), y] > 0
    if not known.any():
        raise InputError("no temperature can be fitted: every true label of its rows has probability 0")
    with np.errstate(divide="ignore"):
        logs = np.log(P[known].astype(np.float64))
    truth, alive = logs[np.arange(len(logs)), y[known]], np.isfinite(logs)

    def slope(inverse: float) -> float:
        odds = np.where(alive, inverse * logs, -np.inf)
        p = np.exp(odds - odds.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return float((np.where(alive, p * np.where(alive, logs, 0.0), 0.0).sum(axis=1) - truth).mean())

    coldest, warmest = 1 / LOWEST, 1 / HIGHEST
    low, high = slope(warmest), slope(coldest)  # it never falls
    if low < 0 < high:
        return float(1 / brentq(slope, warmest, coldest, xtol=1e-12))
    found = 1.0 if low == high == 0 else HIGHEST if low >= 0 else LOWEST
    warn(
        f"the temperature is set to {found:g}, as far as it goes: on the {len(P)} rows that it is fitted on the "
        "likeliest label is always right, or p says nothing"
    )
    return found


def tempered(P: Probabilities, temperature: float | None) -> Probabilities:
    """The probabilities at a temperature, of the same type; at 1, or none, the same array."""
    if temperature is None or temperature == 1.0:
        return P
    repaired: Probabilities = changed(P, partial(_tempered, temperature))
    return repaired


def _tempered(temperature: float, P: Probabilities) -> Probabilities:
    out = np.empty_like(P)
    for rows in _pieces(*P.shape):
        piece: Floats = P[rows].astype(np.float64)
        piece /= piece.max(axis=1, keepdims=True)  # so that the largest stays, whatever the others come to
        np.power(piece, 1 / temperature, out=piece)
        out[rows] = piece / piece.sum(axis=1, keepdims=True)
    return out


def _pieces(n: int, K: int) -> Iterator[slice]:
    step = max(1, _PIECE // K)
    return (slice(start, start + step) for start in range(0, n, step))
