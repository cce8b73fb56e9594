"""Warnings about rows that look wrong, most of them before any computation starts; such rows are never refused.

They concern an alpha that may be meant as the coverage, columns or rows in another order than the labels, true labels
that count in an order that is not sorted, rows that share a random draw, labels that cost nothing, costs without an
effect, limits that are not enforced, true labels with probability 0, probabilities far from the accuracy, too few rows
and too large weights.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import SpecWarning, warn, worded
from udcp_dsl.loss import Loss
from udcp_dsl.predict.calibrate import CalibrationWarning, row_draws, show_level, warn_of_too_few
from udcp_dsl.predict.oracle import Oracle
from udcp_dsl.rows.columns import Positions, apply_by_rows
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from udcp_dsl.predict.promise import Promise
    from udcp_dsl.predict.stages.stage import FitContext

# From this alpha on, it is probably meant as the coverage.
_HIGH_ALPHA = Fraction(1, 2)
# Each kind of warning about the order of columns is wrong with at most this probability.
_ERROR_CHANCE = 1e-4
# The mean highest p and the accuracy are far apart if they differ by this much.
_MIN_DISAGREEMENT = 0.1
# Rows, pairings and rows of all but the most frequent label for the test of rows and truth out of step.
_MIN_PAIRED, _MAX_PAIRED, _PAIRINGS, _MIN_OTHERS = 50, 2000, 200, 20
# Rows that share a draw move the coverage by at most their share; a smaller share than this is not reported.
_SHARED = 0.01


def warn_of_high_alpha(promise: Promise) -> None:
    """Warn of an alpha of 0.5 or more, unless it is in the units of a harm."""
    alpha = max(promise.alphas)
    if promise.miss is None and promise.risk is None and alpha >= _HIGH_ALPHA:
        given, rest = show_level(alpha), show_level(1 - alpha)
        share = f"{float(alpha):.4g}"
        share = given if share == "1" else share  # an alpha just below 1
        text = f"alpha is {given}, so sets may miss the true label in {share} of the rows"
        if given != rest:
            text += f": alpha is the share of misses, not the coverage. For coverage {given} give " + worded(
                f"confidence_level={given}, or alpha={rest}", f"--alpha {rest}"
            )
        warn(text, CalibrationWarning)


class Guesses(NamedTuple):
    """The likeliest and the true labels of a stream, without its probabilities; the names are those of `Rows`."""

    labels: tuple[str, ...]
    likeliest: Positions
    truth: Positions
    untied: npt.NDArray[np.bool_]


def warn_of_counted_labels(rows: Rows) -> None:
    """Warn if true labels are positions and labels are not in sorted order, in which classifiers and encoders count."""
    labels, ordered = rows.labels, tuple(sorted(rows.labels))
    if rows.counted and labels != ordered:
        at = next(at for at, pair in enumerate(zip(labels, ordered, strict=True)) if pair[0] != pair[1])
        own, other = (", ".join(f"{i} is {names[i]!r}" for i in sorted({0, at})) for names in (labels, ordered))
        warn(
            f"y contains integers, taken as positions in loss.labels: {own}. Classifiers and encoders count labels in "
            f"sorted order: {other}. Give true labels by name, or "
            + worded("class_names=loss.labels", "name the order of the spec, --class-names,")
            + " if the first is right",
            CalibrationWarning,
        )


def warn_of_wrong_truth(rows: Rows) -> None:
    """Warn if columns or, failing that, rows seem to be in another order than the true labels."""
    if not warn_of_another_order(rows) and _says_nothing(rows):
        warn(
            "the probabilities say almost nothing about these labels: true labels of other rows are as probable as "
            "those given. Are rows and truth in the same order?",
            CalibrationWarning,
        )


def _says_nothing(rows: Rows) -> bool:
    """Whether the mean p of the true labels is among the lower 95 % of its means over random pairings of rows with true
    labels; drawn by a fixed seed, on at most 2,000 rows.

    If rows and truth are out of step, that holds with probability 95 %. Nothing is said of fewer than 50 rows, of
    probabilities whose likeliest label is right more often than any one label would be, by five standard errors, or if
    fewer than 20 of the rows used are of other labels than the most frequent one: then even a good classifier of rare
    events may fail.
    """
    n = len(rows)
    if n < _MIN_PAIRED or rows.hits > np.bincount(rows.truth).max() + 2.5 * math.sqrt(n):
        return False
    some = rows.take(np.linspace(0, n - 1, min(n, _MAX_PAIRED)).astype(np.intp))
    if len(some) - np.bincount(some.truth).max() < _MIN_OTHERS:
        return False
    rng = np.random.default_rng(0)
    paired = np.stack([some.truth, *(rng.permutation(some.truth) for _ in range(_PAIRINGS))], axis=1)
    means = apply_by_rows(some.P, lambda P, y: np.take_along_axis(P, y, axis=1).astype(np.float64), paired).mean(axis=0)
    return bool(means[0] <= np.quantile(means[1:], 0.95) * (1 + 1e-12))


def warn_of_another_order(rows: Rows | Guesses) -> bool:
    """Warn if the columns seem to be in another order than the labels, and return whether they do.

    That is so if the likeliest label is right less often than by chance, 1 / K; if another order, found on one half of
    the rows, makes it right at least twice as often on the other half; or if two columns seem to be exchanged.
    """
    n, hits = len(rows.truth), int((rows.likeliest == rows.truth).sum())
    why, at = None, f"the likeliest label is right in {hits / n:.1%} of the rows"
    if 2 * hits < n:
        why = _better_order(rows)
        if why is None and _below_chance(hits, n, 1 / len(rows.labels)):
            why = ", less often than chance"
    if why is None:
        at, why = "", _exchanged_columns(rows)
    if why is not None:
        other = worded("loss.labels; class_names= gives another", "udcp check lists them; --class-names gives another")
        warn(
            f"{at}{why}: are the columns in the order of the labels ({other}), and the true labels right?",
            CalibrationWarning,
        )
    return why is not None


def warn_of_training_rows(rows: Rows) -> None:
    """Warn if the likeliest label is right in every row, as it often is on training rows, and not by chance.

    If the probabilities were right, all rows would be right with probability prod p <= exp(-sum(1 - p)).
    """
    highest = rows.highest_probabilities
    if rows.hits == len(rows) and float((1 - highest).sum()) > -math.log(_ERROR_CHANCE):
        warn(
            f"the likeliest label is right in all {len(rows):,} rows, although its probability is "
            f"{float(highest.mean()):.2f} on average. If the classifier was trained on these rows, coverage is not "
            "guaranteed: use others",
            CalibrationWarning,
        )


def warn_of_shared_draws(rows: Rows, seed: int) -> None:
    """Warn if rows without ids have equal probabilities (rounded or constant ones), and so share a random draw."""
    if rows.ids is not None:
        return
    draws = apply_by_rows(rows.P, lambda block: row_draws(block, seed))
    _, counts = np.unique(draws, return_counts=True)
    shared = int(counts[counts > 1].sum())
    if shared > _SHARED * len(rows):
        randomize, ids = worded("randomize=True", "--randomize"), worded("ids=", "--id")
        warn(
            f"{randomize}: {shared:,} of {len(rows):,} rows have the same probabilities as another row. Such rows "
            "share a random draw, so coverage is 1 - alpha on average over seeds, but not for this seed. "
            f"Give {ids}, which enter the draw, here and at prediction, or probabilities that are not rounded",
            CalibrationWarning,
        )


def _below_chance(hits: int, n: int, chance: float, tests: int = 1) -> bool:
    """Whether n guesses, each right with probability `chance`, have at most `hits` right with probability below
    1e-4 / `tests`, by Chernoff's bound."""
    share = hits / n
    if share >= chance:
        return False
    divergence = (1 - share) * math.log((1 - share) / (1 - chance))
    if hits:
        divergence += share * math.log(share / chance)
    return n * divergence > math.log(tests / _ERROR_CHANCE)


def _better_order(rows: Rows | Guesses) -> str | None:
    """How often another order of the columns would be right, in words, if it is far better; else None.

    The other order is chosen on a random half of the rows and judged on the other half, since with many labels some
    order fits whatever rows it is chosen on. In m of the judged rows, exactly one of the two orders is right. If the
    other order were no better than the given one, it would win each of these rows with probability at most 1/2, and
    have z more wins than losses with probability at most exp(-z^2 / 2m) (Hoeffding). The column that wins most is left
    out of z: a classifier that nearly always predicts one label gains if its column is given another label.
    """
    K, likeliest, truth = len(rows.labels), rows.likeliest, rows.truth
    order = np.random.default_rng(0).permutation(np.flatnonzero(rows.untied))  # in a tie there is no likeliest label
    chosen_on, judged_on = order[: len(order) // 2], order[len(order) // 2 :]
    label_of = _labels_of_columns(likeliest[chosen_on], truth[chosen_on], K)
    columns, y = likeliest[judged_on], truth[judged_on]
    right, other = columns == y, label_of[columns] == y
    differ = np.count_nonzero(right != other)
    gains = np.bincount(columns, weights=other.astype(float) - right, minlength=K)
    z = gains.sum() - max(gains.max(), 0.0)
    twice = np.count_nonzero(other) >= 2 * np.count_nonzero(right)
    if not (twice and z > 0 and z**2 > -2 * differ * math.log(_ERROR_CHANCE)):
        return None
    column = int(gains.argmax())
    return (
        f", and would be in {np.count_nonzero(other) / len(judged_on):.1%} with the columns in another order (that of "
        f"{rows.labels[column]!r} is highest where {rows.labels[label_of[column]]!r} is true)"
    )


def _exchanged_columns(rows: Rows | Guesses) -> str | None:
    """Which two columns seem to be exchanged, in words; None if there are none.

    Of the rows with true label i and likeliest label i or j, fewer than half are right, by more than chance, and
    likewise for j. If one of the two columns were in its place, at least half of its rows would be right, and appear
    not to be with probability at most 1e-4 over all pairs. Both labels must fail the test: a classifier that predicts
    i for most rows of j is no sign of an exchange. After the exchange, at least twice as many rows of the two labels
    must be right.
    """
    K = len(rows.labels)
    pairs, counts = np.unique(rows.truth * K + rows.likeliest, return_counts=True)
    count = dict(zip(pairs.tolist(), counts.tolist(), strict=True))
    enough = counts > math.log(1 / _ERROR_CHANCE) / math.log(2)  # fewer rows are significant for no pair
    best, gain = None, 0
    for i, j in (divmod(pair, K) for pair in pairs[enough].tolist()):
        there, back = count[i * K + j], count.get(j * K + i, 0)
        own, its_own = count.get(i * K + i, 0), count.get(j * K + j, 0)
        if i < j and back and there + back >= 2 * (own + its_own) and there + back - own - its_own > gain:
            tests = K * (K - 1) // 2
            if all(_below_chance(few, few + many, 1 / 2, tests) for few, many in ((own, there), (its_own, back))):
                best, gain = (i, j), there + back - own - its_own
    if best is None:
        return None
    i, j = best
    n = int(np.isin(rows.truth, best).sum())
    right = count.get(i * K + i, 0) + count.get(j * K + j, 0)
    return (
        f"of the {n:,} rows whose true label is {rows.labels[i]!r} or {rows.labels[j]!r} the likeliest label is right "
        f"in {right / n:.1%}, and would be in {(right + gain) / n:.1%} with these two columns exchanged"
    )


def _labels_of_columns(likeliest: Positions, truth: Positions, K: int) -> Positions:
    """A different label for each column: the pairs that occur most often are matched first; -1 for no match."""
    pairs, counts = np.unique(likeliest * K + truth, return_counts=True)
    labels, free = np.full(K, -1), np.ones(K, dtype=bool)
    for pair in pairs[np.argsort(-counts, kind="stable")].tolist():
        column, y = divmod(pair, K)
        if labels[column] < 0 and free[y]:
            labels[column], free[y] = y, False
    return labels


def warn_of_free_labels(loss: Loss) -> None:
    """Warn of labels that cost nothing, or less, on their own (W601)."""
    from udcp_dsl.expression.explain import free_labels_warning

    if (free := free_labels_warning(loss)) is not None:
        warn(free.render(), SpecWarning)


def warn_of_idle_costs(context: FitContext) -> None:
    """Warn of limits and costs of the spec that will have no effect on the sets.

    By class, a label y of cost c(y) > 0 is in the set if c(y) / p(y) is at most the threshold of y, which is c(y) times
    a quantile of 1 / p(y) over the rows of y: c(y) cancels.
    """
    promise, oracle = context.promise, context.oracle
    if unenforced := limits_not_enforced(oracle):
        warn(unenforced, CalibrationWarning)
    loss = oracle.loss
    if promise.by_class and oracle.priced and loss.facts.separable and not loss.inputs and not loss.free_labels:
        warn(
            'the loss is a sum of costs of labels, and conditional="class" has a threshold for each label, which '
            f"absorbs its cost: the sets of {oracle.name!r} are those of 'lac', whatever the labels cost",
            CalibrationWarning,
        )


def limits_not_enforced(oracle: Oracle) -> str:
    """That this oracle does not enforce the limits of the spec; empty if it does, or if there are none."""
    if not oracle.loss.limits or oracle.has_best:
        return ""
    return f"limits of the spec are reported, not enforced, by {oracle.name!r}: use price"


def warn_of_zeros(rows: Rows, alpha: Fraction) -> None:
    """Warn if so many true labels have p = 0 that large sets are needed to cover them."""
    zeros = int((rows.true_probabilities == 0).sum())
    if 2 * zeros > alpha * len(rows):
        warn(
            f"{zeros} of {len(rows)} true labels have probability exactly 0, so large sets are needed to cover "
            "them: the classifier's softmax underflowed, or it is wrong with certainty. Give its logits "
            f"({worded('logits=True', '--logits')}), or probabilities in float64",
            CalibrationWarning,
        )


def warn_of_full_sets(full: int, n: int) -> None:
    """Warn of rows whose weight is too large for the calibration rows, so that no threshold covers them."""
    warn(
        f"{full} of {n} rows have such large weights that only the full set keeps the guarantee: few calibration rows "
        "are like them; give more such rows, or clip the weights (the guarantee then holds for the clipped weights)",
        CalibrationWarning,
    )


def warn_of_wrong_confidence(context: FitContext, rows: Rows) -> None:
    """Warn if the mean highest p is far from the accuracy of the likeliest label, and no repair will correct p."""
    n, accuracy, sure = len(rows), rows.hits / len(rows), float(rows.highest_probabilities.mean())
    error = math.sqrt(max(accuracy * (1 - accuracy), 1 / n) / n)
    if abs(sure - accuracy) < max(_MIN_DISAGREEMENT, 4 * error):
        return
    way_out = worded('leave out repair=None, or give repair="auto"', "leave out --repair none, or give --repair auto")
    if context.promise.repair is not None:
        way_out = (
            "give more calibration rows (a repair takes 300 or more), or fit a single number, which takes 50: "
            + worded('repair="temperature"', "--repair temperature")
        )
    warn(
        f"the highest probability is {sure:.2f} on average, but the likeliest label is right in {accuracy:.2f} of the "
        f"rows: sets are cheap only if the probabilities are right: {way_out}",
        CalibrationWarning,
    )


def warn_before_fitting(context: FitContext, rows: Rows, prepared: Rows) -> None:
    """Warn, before any fitting, of too few rows for thresholds, or of true labels with p = 0; the rows for thresholds
    as given, and as the repairs hand them on."""
    promise, strata = context.promise, context.strata
    need = context.rule.needed(promise.alphas[0])
    if context.candidates is not None and len(rows) < need:
        warn(
            f"two thirds of the {context.total} rows are used to tune lambda. The {len(rows)} rows left for the "
            f"threshold are too few: alpha {show_level(promise.alphas[0])} needs {need}. Give {3 * need} "
            "rows, or lam in the options",
            CalibrationWarning,
        )
    if context.harm is None:
        warn_of_zeros(rows, min(promise.alphas))
    if promise.by_decision or promise.by_difficulty:  # strata that are known only later
        return
    codes = rows.truth if promise.by_class else prepared.stratum
    sizes = [len(rows)] if codes is None else np.bincount(codes, minlength=len(strata)).tolist()
    pool, randomize = promise.pool, promise.randomize
    warn_of_too_few(sizes, promise.alphas, promise, context.rule, names=strata.names, pool=pool, randomize=randomize)
