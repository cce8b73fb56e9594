"""`Repair`: p'(y) proportional to p_w(y)^a exp(b_y), p_w = (1 - w) p + w / K, and its held-out loss when fitted."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate.plain import decode, fields
from udcp_dsl.prediction.containers import changed
from udcp_dsl.prediction.probability_repair.penalized import MAX_EXPONENT, Floats, blocks
from udcp_dsl.prediction.probability_repair.reliability import Reliability

Kind: TypeAlias = Literal["auto", "temperature", "given"]

KINDS: tuple[Kind, ...] = ("auto", "temperature", "given")
MAX_OFFSET = 100.0
_SHIFTED = math.log(1.1)
_FIELDS = ("exponent", "offsets", "smoothing", "kind", "n_rows", "losses", "absent", "reliability")


@dataclass(frozen=True)
class HeldOutLoss:
    """Mean log loss on held-out folds, of p as it is and of the best candidate, with the standard error of the paired
    difference over rows."""

    before: float
    after: float
    standard_error: float

    @property
    def is_better(self) -> bool:
        """Whether the candidate is better by more than two standard errors."""
        return self.before - self.after > 2 * self.standard_error


@dataclass(frozen=True, eq=False)
class Repair:
    """A correction of p that is applied before any oracle sees p.

    Parameters
    ----------
    exponent : float
        a, from 1/20 to 20. Above 1 it sharpens p, below 1 it flattens p; 1 / a is the temperature.
    offsets : array of K numbers, optional
        b, one per label. None means none.
    smoothing : float
        w, from 0 to 1: the share of p that is replaced by the uniform distribution.
    kind : {"given", "auto", "temperature"}
        How the repair was chosen.
    n_rows : int
        Number of rows it was fitted on; 0 if it was given.
    losses : HeldOutLoss, optional
        Log loss on held-out folds, before and after. If p was left alone, `after` is that of the best
        candidate.
    absent : tuple of int
        Positions of the labels that do not occur in the rows it was fitted on.
    reliability : Reliability, optional
        How often the likeliest label is right on held-out folds, against its probability, before and after; None if
        it was given.

    Examples
    --------
    >>> sharper = Repair(exponent=2.0)
    >>> sharper.apply(np.array([[0.75, 0.25]])).round(6).tolist()
    [[0.9, 0.1]]
    >>> print(sharper)
    probabilities repaired: sharpened (exponent 2)
    """

    exponent: float = 1.0
    offsets: Floats | None = None
    smoothing: float = 0.0
    kind: Kind = "given"
    n_rows: int = 0
    losses: HeldOutLoss | None = None
    absent: tuple[int, ...] = ()
    reliability: Reliability | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", _number(self.exponent, "exponent", 1 / MAX_EXPONENT, MAX_EXPONENT))
        object.__setattr__(self, "smoothing", _number(self.smoothing, "smoothing", 0.0, 1.0))
        if self.offsets is not None:
            object.__setattr__(self, "offsets", _checked_offsets(self.offsets))
        if self.kind not in KINDS:
            raise InputError(f"repair: its kind is {self.kind!r}: give one of {', '.join(KINDS)}")
        if not _is_whole(self.n_rows):
            raise InputError(f"repair: its number of rows is {self.n_rows!r}: give a whole number, 0 or more")
        K = sys.maxsize if self.offsets is None else len(self.offsets)
        if not all(_is_whole(y) and y < K for y in self.absent) or list(self.absent) != sorted(set(self.absent)):
            raise InputError("repair: absent must be increasing positions of labels")
        if not isinstance(self.reliability, Reliability | None):
            raise InputError(f"repair: its reliability is a {type(self.reliability).__name__}, not a Reliability")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repair) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash((self.exponent, self.smoothing, self.kind, self.n_rows))

    def for_labels(self, K: int) -> Repair:
        """The repair, checked to be for K labels.

        Parameters
        ----------
        K : int
            Number of labels.

        Returns
        -------
        Repair
            The same repair.

        Raises
        ------
        InputError
            It has offsets for another number of labels.
        """
        if self.offsets is not None and len(self.offsets) != K:
            raise InputError(f"the repair was made for {len(self.offsets)} labels, but there are {K}: make it again")
        if self.absent and self.absent[-1] >= K:
            raise InputError(f"repair: an absent label is not one of the {K} labels: calibrate and save again")
        return self

    @property
    def adopted(self) -> bool:
        """Whether it changes the probabilities at all."""
        return self.exponent != 1.0 or self.offsets is not None or self.smoothing > 0.0

    @property
    def temperature(self) -> float | None:
        """The temperature 1 / exponent, if nothing else is changed; else None."""
        return 1 / self.exponent if self.offsets is None and self.smoothing == 0 and self.adopted else None

    @property
    def n_shifted(self) -> int:
        """Number of labels whose odds are scaled by more than a tenth."""
        return 0 if self.offsets is None else int((np.abs(self.offsets) > _SHIFTED).sum())

    def apply(self, P: Any) -> Any:
        """Repair probabilities.

        Computed in float64, row by row, so that a row's result does not depend on the others. Without smoothing, a
        probability of 0 stays 0.

        Parameters
        ----------
        P : array, shape (n, K)
            Probabilities, in memory or stored.

        Returns
        -------
        array, shape (n, K)
            The repaired probabilities, with the same dtype; `P` itself if there is nothing to repair.
        """
        if self.offsets is not None and P.shape[1] != len(self.offsets):
            raise InputError(
                f"the repair was fitted for {len(self.offsets)} labels, but the rows have {P.shape[1]}: fit it again"
            )
        return changed(P, self._apply) if self.adopted else P

    def _apply(self, P: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.empty(P.shape, dtype=P.dtype)
        for rows in blocks(*P.shape):
            # Always contiguous: for strided rows, numpy uses other loops, which may round differently.
            piece: Floats = np.array(P[rows], dtype=np.float64, order="C")
            if self.smoothing:
                piece *= 1 - self.smoothing
                piece += self.smoothing / P.shape[1]
            piece /= piece.max(axis=1, keepdims=True)  # the largest stays 1, whatever the exponent
            if self.exponent != 1.0:
                np.power(piece, self.exponent, out=piece)
            if self._factors is not None:
                piece *= self._factors
            piece /= piece.sum(axis=1, keepdims=True)
            out[rows] = piece
        return out

    @cached_property
    def _factors(self) -> Floats | None:
        return None if self.offsets is None else np.exp(self.offsets - self.offsets.max(initial=-MAX_OFFSET))

    def describe(self, n_all: int | None = None) -> str:
        """One sentence on what is changed.

        Parameters
        ----------
        n_all : int, optional
            Number of rows from which those of the repair were taken.

        Returns
        -------
        str
            The sentence.
        """
        share = f"{self.n_rows:,} rows" if n_all is None else f"{self.n_rows:,} of {n_all:,} rows"
        if not self.adopted and self.kind == "auto":
            if self.losses is None:
                return "probabilities unchanged (too few rows to fit a repair)"
            return "probabilities unchanged (no repair was significantly better)"
        parts = [f"probabilities repaired: {self._change}"]
        if self.losses is not None:
            parts.append(f"log loss {self.losses.before:.3g} -> {self.losses.after:.3g} on held-out folds")
        text = "; ".join(parts)
        return f"{text}, fitted on {share}" if self.n_rows else text

    def __str__(self) -> str:
        return self.describe()

    def plot(self) -> Any:
        """Draw reliability on held-out rows, before and after the repair.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        from udcp_dsl.report.views import plot_repair

        return plot_repair(self)

    @property
    def _change(self) -> str:
        shown = f"{self.exponent:.2g}"
        how = "sharpened" if self.exponent > 1 else "flattened"
        changes = [f"{how} (exponent {shown})"] if self.exponent != 1.0 else []
        if self.offsets is not None:
            changes.append(f"{self.n_shifted:,} label{'' if self.n_shifted == 1 else 's'} shifted")
        if self.smoothing:
            changes.append(f"smoothed by {self.smoothing:g}")
        if not changes:
            return "exponent 1 changes nothing"
        return ", ".join(changes[:-1]) + (" and " if len(changes) > 1 else "") + changes[-1]

    def as_dict(self) -> dict[str, object]:
        """The repair as plain data for JSON.

        Returns
        -------
        dict
            `from_dict` makes an equal repair from it.
        """
        losses = self.losses
        return {
            "exponent": self.exponent,
            "offsets": None if self.offsets is None else self.offsets.tolist(),
            "smoothing": self.smoothing,
            "kind": self.kind,
            "n_rows": self.n_rows,
            "losses": None if losses is None else [losses.before, losses.after, losses.standard_error],
            "absent": list(self.absent),
            "reliability": None if self.reliability is None else self.reliability.as_dict(),
        }

    @classmethod
    def from_dict(cls, data: object) -> Repair:
        """A repair from what `as_dict` returned, in this version or an older one.

        Parameters
        ----------
        data : object
            The plain data.

        Returns
        -------
        Repair
            An equal repair.

        Raises
        ------
        InputError
            The data are not those of a repair.
        """
        d = fields({"reliability": None, **data} if isinstance(data, Mapping) else data, _FIELDS, "repair")
        offsets = None if d["offsets"] is None else np.array(decode(d["offsets"], "repair"), dtype=np.float64)
        losses = None if d["losses"] is None else decode(d["losses"], "repair")
        if losses is not None and not (len(losses) == 3 and all(0 <= x < math.inf for x in losses)):
            raise InputError("repair: its log losses are damaged: calibrate and save again")
        absent, exponent, smoothing, n_rows = d["absent"], d["exponent"], d["smoothing"], d["n_rows"]
        if not isinstance(absent, list) or not all(map(_is_whole, absent)):
            raise InputError("repair: its absent labels are damaged: calibrate and save again")
        return cls(
            exponent,  # type: ignore[arg-type]  # each is checked when the value is made
            offsets,
            smoothing,  # type: ignore[arg-type]
            d["kind"],  # type: ignore[arg-type]
            n_rows,  # type: ignore[arg-type]
            None if losses is None else HeldOutLoss(*losses),
            tuple(absent),
            None if d["reliability"] is None else Reliability.from_dict(d["reliability"]),
        )


def _number(value: object, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not low <= value <= high:
        raise InputError(f"repair: its {name} is {value!r}: give a number from {low:g} to {high:g}")
    return float(value)


def _checked_offsets(offsets: object) -> Floats:
    try:
        found = np.array(offsets, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"repair: its offsets are not numbers: {error}") from error
    if found.ndim != 1 or not len(found) or not bool((np.abs(found) <= MAX_OFFSET).all()):  # NaN is not
        raise InputError(f"repair: its offsets are not one number per label, from {-MAX_OFFSET:g} to {MAX_OFFSET:g}")
    found.setflags(write=False)
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < sys.maxsize
