"""Strata: the parts of the rows that have a threshold of their own, as one integer per row with a name for each.

Groups, bins by difficulty and decisions are functions of the row, so calibration points and new points in the same
stratum are exchangeable, and coverage holds within it. The true class is not a function of the row: by class, label k
has the threshold of stratum k, whatever the row.

Bins by difficulty are ranges of the highest probability between edges that were fitted on other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError, RowFault, worded
from udcp_dsl.predict.calibrate.checked import FloatArray, IntArray
from udcp_dsl.rows.columns import Groups, group_names

LEAST_BINS = 2
# A bin is kept if at least this many times the rows that a threshold needs are expected in it.
SPARE_FACTOR = 2
MODES = (None, "group", "class", "difficulty", "decision")

Conditional: TypeAlias = Literal["group", "class", "difficulty", "decision"] | None


def asked(part: Conditional) -> str:
    """The argument that asks for one threshold per such part of the rows, as text for messages."""
    return f'conditional="{part}"'


class Cellwise:
    """Base of values with one threshold for all rows or one per group, class, bin or decision (`conditional`)."""

    conditional: Conditional

    @property
    def asked(self) -> str:
        """The argument that asks for such thresholds, as text for messages."""
        return asked(self.conditional)

    @property
    def is_marginal(self) -> bool:
        """Whether one threshold holds for all rows."""
        return self.conditional is None

    @property
    def by_group(self) -> bool:
        """Whether each group has its own threshold."""
        return self.conditional == "group"

    @property
    def by_class(self) -> bool:
        """Whether each class has its own threshold."""
        return self.conditional == "class"

    @property
    def by_difficulty(self) -> bool:
        """Whether each bin of the highest probability has its own threshold."""
        return self.conditional == "difficulty"

    @property
    def by_decision(self) -> bool:
        """Whether each decision, which is a function of the row alone, has its own threshold."""
        return self.conditional == "decision"

    @property
    def by_name(self) -> bool:
        """Whether the parts of the rows have names, as groups and decisions do."""
        return self.conditional in ("group", "decision")

    def check_groups(self, given: bool, *, or_decisions: bool = False) -> None:
        """Raise an error if groups of new rows are given but not used, or needed but not given."""
        used = self.by_name if or_decisions else self.by_group
        if given and not used:
            raise InputError(
                f"groups= is given, but the predictor was not calibrated by group: calibrate with {asked('group')}"
            )
        if used and not given:
            raise InputError(
                "calibrated by group, so prediction needs the group of each row: give " + worded("groups=", "--group")
            )


_NAMED_AT_MOST = 10


def listed(items: Sequence[str]) -> str:
    """The first items of a list as text, and how many more there are."""
    more = len(items) - _NAMED_AT_MOST
    return ", ".join(items[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Strata(Cellwise):
    """The strata of one kind: all rows, groups, classes, bins by difficulty or decisions.

    `names` are those of groups, bins and decisions, in the order of their codes; `n_classes` is the number of classes;
    `edges` are those between bins, and `alphas` the alphas of groups that have their own.
    """

    conditional: Conditional = None
    names: tuple[str, ...] = ()
    n_classes: int = 0
    edges: tuple[float, ...] = ()
    alphas: Mapping[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.conditional not in MODES:
            modes = 'choose None (marginal), "group", "class", "difficulty" or "decision"'
            raise InputError(f"conditional is {self.conditional!r}: {modes}")

    def __len__(self) -> int:
        return self.n_classes if self.by_class else len(self.names) if self.conditional else 1

    @classmethod
    def of_groups(cls, groups: Groups, alphas: Mapping[str, Fraction] | None = None) -> Strata:
        """One stratum for each of these groups, in the order of their names."""
        names = tuple(sorted(set(group_names(groups, None))))
        return cls("group", names, alphas={x: a for x, a in (alphas or {}).items() if x in names})

    @classmethod
    def of_bins(cls, edges: tuple[float, ...]) -> Strata:
        """One stratum for each bin between these edges."""
        return cls("difficulty", bin_names(edges), edges=edges)

    def codes_of_groups(self, groups: Groups, *, unseen: bool) -> IntArray:
        """The code of each row's group, -1 for one that has no stratum; with unseen=False that is an error."""
        index = {name: i for i, name in enumerate(self.names)}
        names = group_names(groups, None)
        codes = np.array([index.get(name, -1) for name in names], dtype=np.intp)
        if not unseen and bool((codes < 0).any()):
            row = int(np.argmin(codes))
            raise RowFault(
                row,
                "",
                f": group {names[row]!r} is not among the calibration rows; known: "
                f"{listed(list(map(repr, self.names)))}; calibrate with rows of it, or "
                + worded("pool=True", "--pool"),
            )
        return codes

    def codes_of_bins(self, top: FloatArray) -> IntArray:
        """The bin of each row from its highest probability; a row on an edge belongs to the bin below it."""
        return np.searchsorted(self.edges, top, side="left").astype(np.intp)

    def level(self, stratum: int, alpha: Fraction) -> Fraction:
        """The alpha of a stratum: its own, if it has one."""
        return self.alphas.get(self.names[stratum], alpha) if self.alphas else alpha

    @property
    def shown(self) -> list[str | int]:
        """What each stratum is called: a group, bin or decision by its name, a class by its position, all rows ""."""
        return list(range(self.n_classes)) if self.by_class else list(self.names) if self.conditional else [""]


def bin_edges(top: FloatArray, bins: int, least: float) -> tuple[float, ...]:
    """Edges that cut the rows into `bins` bins of about equal size by their highest probability.

    Equal edges are merged, and so is a bin of fewer than `least` of these rows with the smaller of its neighbours.

    >>> bin_edges(np.arange(1, 9) / 10, 4, least=0), bin_edges(np.arange(1, 9) / 10, 4, least=3)
    ((0.2, 0.4, 0.6), (0.4,))
    """
    ordered, n = np.sort(top), len(top)
    edges = sorted({float(ordered[b * n // bins - 1]) for b in range(1, bins) if b * n >= bins})
    while edges:
        counts = np.diff([0, *np.searchsorted(ordered, edges, side="right").tolist(), n])
        small = int(np.argmin(counts))
        if counts[small] >= least:
            break
        before = small == len(edges) or (small > 0 and counts[small - 1] <= counts[small + 1])
        del edges[small - 1 if before else small]
    return tuple(edges)


def bin_names(edges: tuple[float, ...]) -> tuple[str, ...]:
    """The names of the bins, the hardest first.

    >>> bin_names((0.5, 0.75)), bin_names(())
    (('highest p up to 0.5', 'above 0.5 up to 0.75', 'above 0.75'), ('all rows',))
    """
    if not edges:
        return ("all rows",)
    words = _distinct_words(edges)
    between = (f"above {low} up to {high}" for low, high in pairwise(words))
    return f"highest p up to {words[0]}", *between, f"above {words[-1]}"


def _distinct_words(edges: Sequence[float]) -> list[str]:
    """The edges in four significant digits, or as many as distinguish them."""
    written = ([f"{edge:.{digits}g}" for edge in edges] for digits in range(4, 18))
    return next(words for words in written if len(set(words)) == len(edges))


def as_bins(bins: object) -> int:
    """Return the number of bins if it is a whole number from 2; raise an error otherwise."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < LEAST_BINS:
        raise InputError(f"bins is {bins!r}: give a whole number from {LEAST_BINS}, such as 4")
    return int(bins)


def bins_needed(bins: int, points: int) -> int:
    """The number of rows for thresholds with which bins of equal size are all kept, if each needs this many points.

    >>> bins_needed(4, 9)
    72
    """
    return SPARE_FACTOR * bins * points
