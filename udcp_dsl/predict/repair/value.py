"""`Repair`: p'(y) proportional to p_w(y)^a exp(b_y), p_w = (1 - w) p + w / K, and its held-out loss when fitted."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate.checked import decode, fields
from udcp_dsl.predict.repair.log_loss import MAX_EXPONENT, Floats, blocks
from udcp_dsl.predict.repair.reliability import Reliability
from udcp_dsl.rows.columns import changed, first_repeated, label_names, positions_of_labels

Kind: TypeAlias = Literal["auto", "temperature", "given"]

KINDS: tuple[Kind, ...] = ("auto", "temperature", "given")
MAX_OFFSET = 100.0
_SHIFTED = math.log(1.1)
_FIELDS = ("exponent", "offsets", "smoothing", "kind", "n_rows", "losses", "absent", "reliability", "labels")


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
    labels : sequence of str, optional
        Names of the labels, in the order of the offsets. A predictor matches them with the labels of its loss; without
        names, offsets are in the order of the loss.

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
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", _number(self.exponent, "exponent", 1 / MAX_EXPONENT, MAX_EXPONENT))
        object.__setattr__(self, "smoothing", _number(self.smoothing, "smoothing", 0.0, 1.0))
        if self.offsets is not None:
            object.__setattr__(self, "offsets", _checked_offsets(self.offsets))
        if self.kind not in KINDS:
            raise InputError(f"repair: its kind is {self.kind!r}: give one of {', '.join(KINDS)}")
        if not _is_whole(self.n_rows):
            raise InputError(f"repair: its number of rows is {self.n_rows!r}: give a whole number, 0 or more")
        object.__setattr__(self, "labels", _checked_labels(self.labels, self.offsets))
        K = len(self.labels) or (sys.maxsize if self.offsets is None else len(self.offsets))
        if not all(_is_whole(y) and y < K for y in self.absent) or list(self.absent) != sorted(set(self.absent)):
            raise InputError("repair: absent must be increasing positions of labels")
        if not isinstance(self.reliability, Reliability | None):
            raise InputError(f"repair: its reliability is a {type(self.reliability).__name__}, not a Reliability")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repair) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash((self.exponent, self.smoothing, self.kind, self.n_rows))

    def for_labels(self, labels: Sequence[str]) -> Repair:
        """The repair with its offsets in the order of these labels.

        Parameters
        ----------
        labels : sequence of str
            Names of the labels of a loss.

        Returns
        -------
        Repair
            Offsets are matched by name; if this repair has no names, by position. Without offsets, it is for any
            labels.

        Raises
        ------
        InputError
            It has offsets for other labels, or for another number of them.

        Examples
        --------
        >>> repair = Repair(offsets=[1.0, -1.0], labels=["cold", "flu"])
        >>> repair.for_labels(["flu", "cold"]).offsets.tolist()
        [-1.0, 1.0]
        """
        own, K = self.labels or labels, len(labels)
        offsets = self.offsets
        if offsets is not None and len(offsets) != K:
            raise InputError(f"the repair was made for {len(offsets)} labels, but there are {K}: make it again")
        if offsets is not None:
            offsets = offsets[positions_of_labels(own, labels, "the repair was made for other labels")]
        if self.absent and self.absent[-1] >= len(own):
            raise InputError(f"repair: an absent label is not one of the {K} labels: calibrate and save again")
        missing = {own[y] for y in self.absent}
        absent = tuple(y for y, label in enumerate(labels) if label in missing)
        return replace(self, offsets=offsets, absent=absent, labels=tuple(labels))

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
        from udcp_dsl.report.drawing import plot_repair

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
        found = {
            "exponent": self.exponent,
            "offsets": None if self.offsets is None else self.offsets.tolist(),
            "smoothing": self.smoothing,
            "kind": self.kind,
            "n_rows": self.n_rows,
            "losses": None if losses is None else [losses.before, losses.after, losses.standard_error],
            "absent": list(self.absent),
            "reliability": None if self.reliability is None else self.reliability.as_dict(),
        }
        return {**found, "labels": list(self.labels)} if self.labels else found

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
        optional: dict[str, object] = {"reliability": None, "labels": []}
        d = fields({**optional, **data} if isinstance(data, Mapping) else data, _FIELDS, "repair")
        offsets = None if d["offsets"] is None else np.array(decode(d["offsets"], "repair"), dtype=np.float64)
        losses = None if d["losses"] is None else decode(d["losses"], "repair")
        if losses is not None and not (len(losses) == 3 and all(0 <= x < math.inf for x in losses)):
            raise InputError("repair: its log losses are damaged: calibrate and save again")
        absent, exponent, smoothing, n_rows = d["absent"], d["exponent"], d["smoothing"], d["n_rows"]
        if not isinstance(absent, list) or not all(map(_is_whole, absent)):
            raise InputError("repair: its absent labels are damaged: calibrate and save again")
        if not isinstance(d["labels"], list):
            raise InputError("repair: its labels are damaged: calibrate and save again")
        return cls(
            exponent,  # type: ignore[arg-type]  # each is checked when the value is made
            offsets,
            smoothing,  # type: ignore[arg-type]
            d["kind"],  # type: ignore[arg-type]
            n_rows,  # type: ignore[arg-type]
            None if losses is None else HeldOutLoss(*losses),
            tuple(absent),
            None if d["reliability"] is None else Reliability.from_dict(d["reliability"]),
            tuple(d["labels"]),
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


def _checked_labels(labels: object, offsets: Floats | None) -> tuple[str, ...]:
    names = label_names(labels, "repair: its labels")
    if len(set(names)) < len(names):
        raise InputError(f"repair: its labels name {first_repeated(names)!r} twice")
    if names and offsets is not None and len(names) != len(offsets):
        raise InputError(f"repair: it has {len(offsets)} offsets and {len(names)} labels: give one offset per label")
    return names


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < sys.maxsize
