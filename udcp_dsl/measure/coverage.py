"""Classes, and the hardest quarter of the rows, whose coverage is below 1 - alpha by more than chance.

Average coverage can be reached by giving up the labels that cost most. If c of the n rows of a part are covered,
the exact one-sided test of "covered with probability at least 1 - alpha" has the p-value P(Bin(n, 1 - alpha) <= c). The
classes with 20 rows or more and the hardest quarter are tested by Holm's procedure at 5 percent. So with probability at
least 95 percent, no part with sufficient coverage is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.predict.calibrate.strata import Cellwise
from udcp_dsl.showing import Description, Line, Shown, Styled, listed

MIN_ROWS = 20  # rows that a part needs to be tested
LEVEL = 0.05  # significance level of all tests together
_MAX_NAMED = 5


@dataclass(frozen=True)
class Part:
    """Some of the rows, and how many of them are covered: a class, the hardest quarter by highest probability, or all.

    Over repeated splits, `n` and `covered` are averages per test fold, and `coverage` is the mean.
    """

    kind: Literal["class", "quarter", "all"]
    name: str
    n: int
    covered: int
    coverage: float
    seen: int = field(default=0, repr=False)  # rows over all splits, if there are several

    @classmethod
    def mean(cls, kind: Literal["class", "quarter", "all"], name: str, folds: Sequence[tuple[int, int]]) -> Part:
        """From (n, covered) of the same part in each test fold; folds share rows, so counts are averaged, not added.

        >>> Part.mean("class", "8", [(10, 4), (20, 11)])
        Part(kind='class', name='8', n=15, covered=8, coverage=0.5)
        """
        total, covered = map(sum, zip(*folds, strict=True))
        n = round(total / len(folds))
        return cls(kind, name, n, round(n * covered / total), covered / total, total)

    @classmethod
    def of(cls, kind: Literal["class", "quarter", "all"], name: str, covered: npt.NDArray[np.bool_]) -> Part:
        """From a mask that says which of its rows are covered."""
        many = int(np.count_nonzero(covered))
        return cls(kind, name, len(covered), many, many / max(len(covered), 1))

    def full_name(self, called: Callable[[str], str] = str) -> str:
        """The name of the part, with its kind; `called` maps a label to its displayed name."""
        return f"class '{called(self.name)}'" if self.kind == "class" else f"the {self.name}"


@dataclass(frozen=True)
class LeastCovered(Shown):
    """Coverage of all rows and of the worst class, and the parts that fall `short`, worst first.

    `worst` is chosen among classes of 20 rows or more (over repeated splits, 20 in total). Parts that fall `short` are
    covered less than promised by more than chance. `conditional` says within which parts coverage was promised; `rows`
    says which rows these are, if they are not fresh.
    """

    alpha: Fraction
    overall: Part
    worst: Part | None
    short: tuple[Part, ...]
    conditional: str | None = None
    rows: str = ""

    @classmethod
    def of(
        cls,
        alpha: Fraction,
        overall: Part,
        classes: Iterable[Part],
        hardest: Part | None,
        *,
        conditional: str | None = None,
        rows: str = "",
    ) -> LeastCovered:
        """Test the parts that have enough rows; leave out a quarter that is, by ties, more than half of the rows.

        >>> parts = [Part("class", "7", 50, 46, 0.92), Part("class", "8", 50, 28, 0.56)]
        >>> LeastCovered.of(Fraction(1, 10), Part("all", "", 500, 455, 0.91), parts, None).line()
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
        covered: npt.NDArray[np.bool_],
        highest: npt.NDArray[np.floating[Any]],
        promised: Cellwise,
        rows: str = "",
    ) -> LeastCovered:
        """From the true label of each row, whether it is covered, and its highest probability."""
        seen = np.bincount(truth, minlength=len(labels)).tolist()
        hits = np.bincount(truth[covered], minlength=len(labels)).tolist()
        return cls.of(
            alpha,
            Part.of("all", "", covered),
            [Part("class", y, n, k, k / max(n, 1)) for y, n, k in zip(labels, seen, hits, strict=True)],
            Part.of("quarter", "hardest quarter", covered[hardest_quarter(highest)]),
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

        >>> most, seven = Part("all", "", 80, 76, 0.95), Part("class", "7", 40, 38, 0.95)
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
        return {
            "promised": float(1 - self.alpha),
            "coverage": self.overall.coverage,
            "worst": None if self.worst is None else vars(self.worst),
            "short": [vars(part) for part in self.short],
        }


def hardest_quarter(highest: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Mask of the quarter of the rows whose highest probability is lowest; equal values stay together."""
    return np.asarray(highest <= np.quantile(highest, 0.25, method="inverted_cdf"))


def _below(parts: Sequence[Part], promised: float) -> list[Part]:
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


# Empty sets, which are often the cheapest: report their share, and how to avoid them.


FEW = 0.01  # share of empty sets above which the way to avoid them is named


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
