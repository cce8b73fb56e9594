"""Coverage of some of the rows (`Stratum`), and the classes whose coverage is too low by more than chance.

Average coverage can be reached by giving up the labels that cost most. If c of the n rows of a part are covered,
the exact one-sided test of "covered with probability at least 1 - alpha" has the p-value P(Bin(n, 1 - alpha) <= c). The
classes with 20 rows or more and the hardest quarter are tested by Holm's procedure at 5 percent. So with probability at
least 95 percent, no part with sufficient coverage is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.predict.calibrate.levels import clopper_pearson
from udcp_dsl.predict.calibrate.strata import Cellwise
from udcp_dsl.showing import Description, Line, Shown, Styled, listed

Bools: TypeAlias = npt.NDArray[np.bool_]

MIN_ROWS = 20  # rows that a part needs to be tested
LEVEL = 0.05  # significance level of all tests together
FEW = 0.01  # share of empty sets above which the way to avoid them is named
_MAX_NAMED = 5


@dataclass(frozen=True)
class Stratum:
    """Some of the rows, such as a class or the hardest quarter: how many of them are covered, and means over them.

    Over repeated splits, `n` and `covered` are averages per test fold, `seen` is the number of rows of all folds, and
    the interval is that of a single fold. The interval and the means are NaN where only coverage was measured.
    """

    name: str
    n: int
    covered: int
    coverage: float
    interval: tuple[float, float] = (math.nan, math.nan)
    mean_size: float = math.nan
    mean_cost: float = math.nan
    mean_true_probability: float = math.nan
    kind: str = "all"  # "size", "difficulty", "class", "group", "decision", or the hardest "quarter"
    seen: int = field(default=0, repr=False)

    def full_name(self, called: Callable[[str], str] = str) -> str:
        """The name of the stratum, with its kind; `called` maps a label to its displayed name."""
        return f"class '{called(self.name)}'" if self.kind == "class" else f"the {self.name}"

    def as_dict(self) -> dict[str, Any]:
        """Its counts, interval and means as plain data for JSON."""
        counts = {name: getattr(self, name) for name in ("name", "n", "covered", "coverage")}
        return {**counts, "interval": list(self.interval), **{name: getattr(self, name) for name in MEANS}}


MEANS = ("mean_size", "mean_cost", "mean_true_probability")  # of a stratum


def strata_of(
    kind: str, names: Sequence[str], codes: npt.NDArray[np.integer[Any]], covered: Bools, *values: npt.NDArray[Any]
) -> tuple[Stratum, ...]:
    """One stratum per name; `codes` has the position of each row's name. Strata without rows are left out.

    `values` are the size, the cost and the true label's probability of each row, if their means are wanted.

    >>> strata_of("class", ["cat", "dog", "wolf"], np.array([0, 0, 2]), np.array([True, False, True]))[0]
    Stratum(name='cat', n=2, covered=1, coverage=0.5, interval=(nan, nan), mean_size=nan, mean_cost=nan, \
mean_true_probability=nan, kind='class')
    """
    n = np.bincount(codes, minlength=len(names))
    there = np.flatnonzero(n)
    sums = np.stack([np.bincount(codes, weights=x, minlength=len(names))[there] for x in (covered, *values)])
    columns = np.full((6, len(there)), math.nan)
    columns[0] = sums[0] / n[there]
    if values:
        columns[1:3] = clopper_pearson(sums[0], n[there])
        columns[3:] = sums[1:] / n[there]
    return tuple(
        Stratum(names[i], int(n[i]), int(many), c, (low, high), size, cost, p, kind)
        for i, many, (c, low, high, size, cost, p) in zip(there.tolist(), sums[0], columns.T.tolist(), strict=True)
    )


def pooled(strata: Iterable[Stratum]) -> list[Stratum]:
    """The strata of repeated splits by name, in the order in which names first appear.

    The splits draw on the same rows again and again, so their counts are averaged, not added up as if rows were fresh.
    Coverage and means are over all splits, weighted by rows; the interval is the exact one (Clopper-Pearson) of a
    single fold with that coverage and the mean number of rows.

    >>> (found,) = pooled([Stratum("8", 10, 4, 0.4), Stratum("8", 20, 11, 0.55)])
    >>> found.n, found.covered, found.coverage, found.seen
    (15, 8, 0.5, 30)
    """
    found: dict[str, list[Stratum]] = {}
    for stratum in strata:
        found.setdefault(stratum.name, []).append(stratum)
    parts = list(found.values())
    if not parts:
        return []
    seen = np.array([sum(s.n for s in own) for own in parts], dtype=np.float64)
    n = seen / np.array([len(own) for own in parts])
    coverage = np.array([sum(s.covered for s in own) for own in parts]) / seen
    low, high = clopper_pearson(coverage * n, n)
    means = [np.array([sum(s.n * getattr(s, name) for s in own) for own in parts]) / seen for name in MEANS]
    # If the covered count is not an integer, the interval may just miss the coverage itself.
    columns = np.stack([seen, n, coverage, np.minimum(low, coverage), np.maximum(high, coverage), *means], axis=1)
    return [
        Stratum(own[0].name, round(n), round(round(n) * c), c, (low, high), size, cost, p, own[0].kind, int(total))
        for own, (total, n, c, low, high, size, cost, p) in zip(parts, columns.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class LeastCovered(Shown):
    """Coverage of all rows and of the worst class, and the parts that fall `short`, worst first.

    `worst` is chosen among classes of 20 rows or more (over repeated splits, 20 in total). Parts that fall `short` are
    covered less than promised by more than chance. `conditional` says within which parts coverage was promised; `rows`
    says which rows these are, if they are not fresh.
    """

    alpha: Fraction
    overall: Stratum
    worst: Stratum | None
    short: tuple[Stratum, ...]
    conditional: str | None = None
    rows: str = ""

    @classmethod
    def of(
        cls,
        alpha: Fraction,
        overall: Stratum,
        classes: Iterable[Stratum],
        hardest: Stratum | None,
        *,
        conditional: str | None = None,
        rows: str = "",
    ) -> LeastCovered:
        """Test the parts that have enough rows; leave out a quarter that is, by ties, more than half of the rows.

        >>> parts = [
        ...     Stratum("7", 50, 46, 0.92, kind="class"),
        ...     Stratum("8", 50, 28, 0.56, kind="class"),
        ... ]
        >>> LeastCovered.of(Fraction(1, 10), Stratum("", 500, 455, 0.91), parts, None).line()
        "coverage 0.910 (target 0.9); worst class '8' 0.560"
        """
        known = [part for part in classes if max(part.n, part.seen) >= MIN_ROWS]
        worst = min(known, key=lambda part: part.coverage, default=None)
        tested = [part for part in known if part.n >= MIN_ROWS]
        if hardest is not None and MIN_ROWS <= hardest.n <= overall.n / 2:
            tested.append(hardest)
        short = sorted(_below(tested, float(1 - alpha)), key=lambda part: part.coverage)
        return cls(alpha, overall, worst, tuple(short), conditional, rows)

    @classmethod
    def of_rows(
        cls,
        alpha: Fraction,
        labels: Sequence[str],
        truth: npt.NDArray[np.integer[Any]],
        covered: Bools,
        highest: npt.NDArray[np.floating[Any]],
        promised: Cellwise,
        rows: str = "",
    ) -> LeastCovered:
        """From the true label of each row, whether it is covered, and its highest probability."""
        easier = (~hardest_quarter(highest)).astype(np.intp)
        return cls.of(
            alpha,
            strata_of("all", [""], np.zeros(len(truth), dtype=np.intp), covered)[0],
            strata_of("class", labels, truth, covered),
            strata_of("quarter", ["hardest quarter", ""], easier, covered)[0],
            conditional=promised.conditional,
            rows=rows,
        )

    def line(self, called: Callable[[str], str] = str) -> str:
        """Coverage of all rows and of the worst class."""
        where = f" {self.rows}" if self.rows else ""
        worst = self.about_worst(called)
        text = f"coverage {self.overall.coverage:.3f}{where} (target {show_level(1 - self.alpha)})"
        return f"{text}; {worst}" if worst else text

    def about_worst(self, called: Callable[[str], str] = str) -> str:
        """The worst class, in words, or that none is covered less than promised; empty if no class has enough rows.

        >>> most, seven = Stratum("", 80, 76, 0.95), Stratum("7", 40, 38, 0.95, kind="class")
        >>> LeastCovered(Fraction(1, 10), most, seven, ()).about_worst()
        'no class of 20 rows or more below 0.9'
        """
        if self.worst is None:
            return ""
        if self.worst.coverage >= 1 - self.alpha:
            return f"no class of {MIN_ROWS} rows or more below {show_level(1 - self.alpha)}"
        return f"worst {self.worst.full_name(called)} {self.worst.coverage:.3f}"

    def shortfall(self, called: Callable[[str], str] = str) -> str:
        """The parts that fall short, in words; empty if there are none."""
        named = [f"{part.full_name(called)} {part.coverage:.3f} ({part.n:,} rows)" for part in self.short]
        promised = show_level(1 - self.alpha)
        return (
            f"below the target coverage of {promised} by more than chance: {listed(named, _MAX_NAMED)}" if named else ""
        )

    @property
    def ways_out(self) -> str:
        """What to do about the parts that fall short; empty if there are none."""
        if not self.short:
            return ""
        kinds = {"class": "class", "quarter": "difficulty"}
        wanted = [mode for kind, mode in kinds.items() if any(part.kind == kind for part in self.short)]
        within = [f'"{mode}"' for mode in wanted if mode != self.conditional]
        first = f"conditional={' or '.join(within)} (--conditional)" if within else "more calibration rows"
        ways = f"try {first}, a risk of harm (--risk) or another cost"
        if self.conditional not in wanted:
            lowers = self.conditional == "difficulty"  # so a class falls short
            return f"{ways}; coverage by difficulty can lower that of classes: compare with none" if lowers else ways
        return (
            f"{ways}; coverage by {self.conditional} holds on average over draws of the calibration rows, "
            "and confidence=0.95 (--confidence) makes it hold for 95 % of them"
        )

    def lines(self, called: Callable[[str], str] = str) -> tuple[Line, ...]:
        """Coverage, the parts that fall short and what to do about them, in up to three lines."""
        short = self.shortfall(called)
        return (self.line(called), Styled(short, "open"), self.ways_out) if short else (self.line(called),)

    def describe(self) -> Description:
        return Description(lines=self.lines(), data=self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        worst, *short = (
            part and {name: getattr(part, name) for name in ("kind", "name", "n", "covered", "coverage", "seen")}
            for part in (self.worst, *self.short)
        )
        return {"promised": float(1 - self.alpha), "coverage": self.overall.coverage, "worst": worst, "short": short}


def hardest_quarter(highest: npt.NDArray[np.floating[Any]]) -> Bools:
    """Mask of the quarter of the rows whose highest probability is lowest; equal values stay together."""
    return np.asarray(highest <= np.quantile(highest, 0.25, method="inverted_cdf"))


def _below(parts: Sequence[Stratum], promised: float) -> list[Stratum]:
    """The parts that are covered less than promised, by Holm's procedure over exact binomial tests."""
    if not parts:
        return []
    from scipy.special import bdtr  # slow to import

    p = bdtr([part.covered for part in parts], [part.n for part in parts], promised)
    short = []
    for passed, at in enumerate(np.argsort(p, kind="stable").tolist()):
        if p[at] > LEVEL / (len(parts) - passed):
            break
        short.append(parts[at])
    return short


def way_out(share: float) -> str:
    """How to avoid empty sets, if their share is above `FEW`; otherwise an empty text.

    >>> way_out(0.14), way_out(0.001)
    ('calibrate with nonempty=True (--nonempty) to have none', '')
    """
    return "calibrate with nonempty=True (--nonempty) to have none" if share > FEW else ""


def share_text(share: float) -> str:
    """The share of empty sets and, above `FEW`, how to avoid them.

    >>> share_text(0.14), share_text(0.001)
    ('14.0%; calibrate with nonempty=True (--nonempty) to have none', '0.1%')
    """
    return "; ".join(filter(None, (f"{share:.1%}", way_out(share))))
