"""What a predictor does with calibration rows before their thresholds, each on rows of its own: the temperature, then
the anchors or lambda of its oracle. And what of rows decides: as the oracle takes them, and in which cell they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import warn
from udcp_dsl.prediction.anchors import Anchors, Tuned, anchor_fold, find_anchors, stretch_edges, stretches
from udcp_dsl.prediction.calibrate import CalibrationWarning, Rule, Tuning, make_cell, show_level, warn_of_too_few
from udcp_dsl.prediction.calibrate.difficulty import bin_names, bins_needed, rank_bin_sizes
from udcp_dsl.prediction.containers import changed, to_array
from udcp_dsl.prediction.input_warnings import warn_of_zeros
from udcp_dsl.prediction.lambda_tuning import tuned
from udcp_dsl.prediction.oracle import AnchoredOracle, Oracle
from udcp_dsl.prediction.promises.options import Promises
from udcp_dsl.prediction.promises.temperature import fit_temperature, temperature_fold, tempered
from udcp_dsl.prediction.rows import Rows
from udcp_dsl.prediction.rows.probability_matrix import Matrix
from udcp_dsl.prediction.rows.value import highest


@dataclass(frozen=True, eq=False)
class Seen:
    """What of some rows decides: what the oracle takes for their probabilities, at the temperature and weighted by
    harm, and, where they count, groups, highest probabilities and weights."""

    P: Matrix
    groups: npt.NDArray[np.str_] | None
    difficulty: npt.NDArray[np.float64] | None
    weights: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.P)


@dataclass(frozen=True, eq=False)
class Fitting:
    """The steps before the thresholds, for what is promised and an oracle."""

    promises: Promises
    oracle: Oracle
    seed: int

    def seen(self, rows: Rows, temperature: float | None) -> Seen:
        P = tempered(rows.P, temperature)
        harm, difficulty = self.promises.harm, None
        if self.promises.conditional == "difficulty":  # rows as they are may have been looked at before
            difficulty = rows.highest_probabilities if P is rows.P else highest(P)
        return Seen(
            P if harm is None else changed(P, lambda block: harm.bought(block, self.oracle)),
            rows.groups if self.promises.conditional == "group" else None,
            difficulty,
            rows.weights,
        )

    def repaired(self, rows: Rows) -> tuple[float | None, Rows]:
        """The temperature, fitted on rows of their own where it is to be, and the rows that are left."""
        asked = self.promises.temperature
        if asked != "fit":
            return asked, rows
        own = temperature_fold(len(rows), self.seed)
        left = np.setdiff1d(np.arange(len(rows)), own)
        fold = rows.take(own)
        return fit_temperature(to_array(fold.P), fold.truth), rows.take(left)

    def rule(self, seen: Seen) -> Rule:
        """What each threshold keeps, once it is known how many groups there are."""
        cells = {None: 1, "class": self.oracle.loss.K, "difficulty": self.promises.bins}
        many = len(np.unique(seen.groups)) if seen.groups is not None else cells[self.promises.conditional]
        return self.promises.rule(many)

    def warn(self, rows: Rows, seen: Seen, every: Rows, rule: Rule, *, tuned_anew: bool) -> None:
        """Warn of what can be seen before the work: rows for the threshold, of all that are given, too few or p = 0."""
        names, need = tuple[str, ...](), rule.needed(self.promises.alphas[0])
        sizes = [len(rows)]
        if seen.groups is not None:
            names, sizes = (x.tolist() for x in np.unique(seen.groups, return_counts=True))
        elif self.promises.conditional == "class":
            sizes = np.bincount(rows.truth, minlength=self.oracle.loss.K).tolist()
        elif seen.difficulty is not None:
            edges, sizes = rank_bin_sizes(seen.difficulty, self.promises.bins)
            names = bin_names(edges)
        if tuned_anew and len(rows) < need:
            warn(
                f"two thirds of the {len(every)} rows are used to tune lambda, and {len(rows)} are left for the "
                f"threshold, too few: alpha {show_level(self.promises.alphas[0])} needs {need} there. Give {3 * need} "
                "rows, or lam among the options",
                CalibrationWarning,
            )
        if self.promises.harm is None:
            warn_of_zeros(rows, min(self.promises.alphas))
        warn_of_too_few(
            sizes,
            self.promises.alphas,
            rule=rule,
            conditional=self.promises.conditional,
            groups=names,
            pool=self.promises.pool,
            randomize=self.promises.randomize,
        )

    def anchor_fold(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The rows that are given up for the anchor, a quarter of them by `seed`; none, where they are too few.

        By difficulty they are dealt whatever their difficulty: the ranks of those that are left and of a new row must
        be exchangeable.
        """
        groups = rows.groups if self.promises.conditional == "group" else None
        cells, many = np.zeros(len(rows), dtype=np.int64), 1
        if groups is not None:
            names, cells = np.unique(groups, return_inverse=True)
            many = len(names)
        elif self.promises.conditional == "class":
            cells, many = rows.truth, self.oracle.loss.K
        elif self.promises.conditional == "difficulty":
            many = self.promises.bins
        need = self.promises.rule(many).needed(min(self.promises.alphas))
        if self.promises.conditional == "difficulty":
            need = bins_needed(many, need)
        return anchor_fold(cells, need, np.random.default_rng(self.seed))

    def anchors(self, own: Rows, temperature: float | None, left: int, seen: Seen, rule: Rule) -> Anchors:
        """The anchors, on rows of their own; the others, `seen`, are left for the threshold."""
        assert isinstance(self.oracle, AnchoredOracle)
        tuning, harm = self.seen(own, temperature), self.promises.harm
        groups, left_of, edges = None, None, tuple[float, ...]()
        if tuning.groups is not None and seen.groups is not None:
            groups, left_of = tuning.groups.tolist(), Counter(seen.groups.tolist())
        elif tuning.difficulty is not None:
            edges = stretch_edges(tuning.difficulty, self.promises.bins)
            groups = stretches(tuning.difficulty, edges)
            left_of = Counter({str(b): left // self.promises.bins for b in range(len(edges) + 1)})
        harms = None if harm is None else harm.values[own.truth]
        found = Tuned(to_array(tuning.P), own.truth, groups, harms, own.weights)
        return find_anchors(self.oracle, found, self.promises.alphas, rule, left=left, left_of=left_of, edges=edges)

    def tune(
        self,
        grid: Mapping[float, Oracle],
        rows: Rows,
        temperature: float | None,
        folds: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]],
        rule: Rule,
    ) -> Tuning:
        """Choose lambda on two folds, at the threshold of all rows; those of the third are left for the threshold."""
        harm, y = self.promises.harm, rows.truth
        harms = None if harm is None else harm.values[y]

        def threshold(scores: npt.NDArray[np.float64], part: npt.NDArray[np.intp]) -> float:
            own, weights = (None if x is None else x[part] for x in (harms, rows.weights))
            return make_cell(scores, self.promises.alphas[:1], rule, weights=weights, harms=own).thresholds[0]

        P = self.seen(rows, temperature).P
        return tuned(grid, P, y, folds, threshold=threshold, nonempty=self.promises.nonempty)


def anchored(oracle: Oracle, anchors: Anchors | None, alpha: Fraction, seen: Seen) -> Oracle:
    """The oracle at the anchors of rows, where there are any."""
    if anchors is None:
        return oracle
    assert isinstance(oracle, AnchoredOracle)
    return oracle.anchored(anchors.of_rows(alpha, seen.groups, len(seen), seen.difficulty))
