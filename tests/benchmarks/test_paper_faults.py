"""docs/paper.md is right about the faults that it names: each is written down here in a few lines and shown to fail
where ours does not. (The hierarchy under wrong parents is in test_paper, beside the loader that does it right.)
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl.predict.calibrate import coverage_law, rank, threshold

if TYPE_CHECKING:
    from tests.conftest import Sizes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Masks = NDArray[np.bool_]

TREE = """
labels 0..11
hierarchy tree { a { b { 0, 1 }, c { 2, 3 } }, d { e { 4, 5 }, f { 6, 7 } }, g { h { 8, 9 }, i { 10, 11 } } }
loss l = diameter(tree)
"""
K = 12


@cache
def tree_distance() -> tuple[udcp.Loss, Floats]:
    loss = udcp.loads(TREE)
    return loss, np.array([[loss({a, b}) for b in range(K)] for a in range(K)])


def drawn(weights: Floats, rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Probabilities that are true, and two independent draws of the truth from them."""
    P = weights / weights.sum(axis=1, keepdims=True)
    y, again = ((P.cumsum(axis=1) > rng.random((len(P), 1))).argmax(axis=1) for _ in range(2))
    return P, y, again


def leaking_scores(P: Floats, y: Ints, D: Floats, lam: float) -> Floats:
    """The non-separable penalized score of the authors' code: the distance is that to the *true* label."""
    order = np.argsort(-P, axis=1, kind="stable")
    mass = np.take_along_axis(P, order, axis=1).cumsum(axis=1)
    far = np.maximum.accumulate(np.take_along_axis(D[y], order, axis=1), axis=1)
    scores = np.empty_like(P)
    np.put_along_axis(scores, order, mass + lam * far, axis=1)
    return scores


def z(difference: Floats, variance: Floats) -> float:
    """A sum of independent differences of mean 0, in its standard deviations."""
    return float(difference.sum() / np.sqrt(variance.sum()))


def test_a_score_with_the_true_labels_row_leaks_the_label_and_ours_does_not() -> None:
    """Sets that know p alone tell nothing that p does not: the first label is right as often as p says, whatever the
    set; and of two truths drawn from one p both are covered alike."""
    loss, D = tree_distance()
    rng = np.random.default_rng(0)
    n = 4000
    logits = 10 * rng.normal(size=(2 * n, 3)).repeat(4, axis=1) + 2 * rng.normal(size=(2 * n, 6)).repeat(2, axis=1)
    P, y, again = drawn(np.exp(logits + rng.normal(size=(2 * n, K))), rng)
    scores = leaking_scores(P, y, D, lam=1.0)
    tau = threshold(scores[np.arange(n), y[:n]], 0.1)
    theirs = scores[n:] <= tau
    predictor = udcp.SetPredictor(loss, "penalized", options={"lam": 1.0}, alpha=0.1).calibrate(P[:n], y[:n])
    ours = predictor.predict_set(P[n:]).mask

    top, right = P[n:].max(axis=1), P[n:].argmax(axis=1) == y[n:]
    empty = ~theirs.any(axis=1)
    assert empty.sum() > 200
    assert not right[empty].any()  # an empty set says: the first label is wrong
    assert round(float(top[empty].mean()), 2) == 0.43
    assert z(right[empty] - top[empty], (top * (1 - top))[empty]) < -10
    sizes = ours.sum(axis=1)
    for size in np.unique(sizes):
        rows = sizes == size
        assert abs(z(right[rows] - top[rows], (top * (1 - top))[rows])) < 4

    def apart(sets: Masks) -> float:
        covered = [sets[np.arange(n), truth[n:]].astype(float) for truth in (y, again)]
        return z(covered[0] - covered[1], (covered[0] - covered[1]) ** 2)

    assert apart(theirs) > 5
    assert abs(apart(ours)) < 4
    other = leaking_scores(P, again, D, lam=1.0)[n:] <= tau
    assert (theirs != other).any(axis=1).mean() > 0.05  # the same p, another truth: another set


def farthest_from_truth(mask: Masks, y: int, D: Floats) -> float:
    """What the authors' code reports as maximum distance."""
    return float(np.where(mask, D[y], 0).max())


masks = st.lists(st.booleans(), min_size=K, max_size=K).map(np.array)


@given(masks, st.integers(0, K - 1))
def test_distance_to_the_truth_is_the_diameter_only_where_the_truth_is_covered_in_a_level_tree(
    mask: Masks, y: int
) -> None:
    loss, D = tree_distance()
    inside = np.flatnonzero(mask)
    assert loss(mask) == max((D[a, b] for a in inside for b in inside), default=0)
    if mask[y]:
        assert farthest_from_truth(mask, y, D) == loss(mask)
    elif mask.any():
        assert farthest_from_truth(mask, y, D) >= loss(mask)  # a miss is charged to the diameter


@given(masks, st.integers(0, K - 1))
def test_for_other_distances_it_may_be_half_the_diameter(mask: Masks, y: int) -> None:
    line = np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float)
    diameter = float(line[np.ix_(mask, mask)].max(initial=0))
    if mask[y]:
        assert farthest_from_truth(mask, y, line) <= diameter <= 2 * farthest_from_truth(mask, y, line)


def test_distance_to_the_truth_misreports() -> None:
    loss, D = tree_distance()
    single = np.eye(K, dtype=bool)[0]
    assert (loss(single), farthest_from_truth(single, 11, D)) == (0, 6)  # one label that is wrong
    line = np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float)
    ends = np.isin(np.arange(K), [0, 4, 8])
    assert farthest_from_truth(ends, 4, line) == 4  # the diameter is 8


def their_ratio_quantile(conformity: Floats, alpha: float) -> float:
    """The threshold of the authors' separable method, from p / penalty: labels at least as conforming are in."""
    n = len(conformity)
    return float(np.quantile(conformity, np.ceil((n + 1) * alpha) / n, method="higher"))


@pytest.mark.parametrize(("n", "alpha"), [(19, 0.1), (25, 0.1), (50, 0.1), (99, 0.05), (40, 0.2), (500, 0.1)])
def test_the_separable_quantile_is_one_or_two_ranks_too_high(n: int, alpha: float) -> None:
    ranks = np.arange(1.0, n + 1)
    valid = n + 1 - rank(n, alpha)  # from below: at most (n + 1) alpha of the n + 1 points may lie under it
    assert their_ratio_quantile(ranks, alpha) - valid == (1 if valid == math.ceil(round((n + 1) * alpha, 9)) else 2)


def test_the_separable_quantile_undercovers_and_ours_does_not(sizes: Sizes) -> None:
    """20 points at a time, the last of them new: P(covered) is 17/20 by their rank and 18/20 by ours, exactly."""
    from scipy.stats import binomtest

    loss = udcp.loads(f"labels 0..{K - 1}  costs c {{ 0: 3, 5: 2, default: 1 }}  loss l = sum(c)")
    trials, n = sizes.draws, 19
    rng = np.random.default_rng(2)
    P, y, _ = drawn(rng.exponential(size=(trials * (n + 1), K)), rng)
    scores = udcp.make_oracle("ratio", loss).score_of(P, y).reshape(trials, n + 1)
    theirs = sum(1 / row[n] >= their_ratio_quantile(1 / row[:n], 0.1) for row in scores)
    ours = sum(row[n] <= threshold(row[:n], 0.1) for row in scores)
    assert binomtest(theirs, trials, 0.85).pvalue > 1e-5
    assert binomtest(ours, trials, 0.9).pvalue > 1e-5
    assert binomtest(ours - theirs, trials, 0.05).pvalue > 1e-5  # ours hold theirs


def dropping_sets(order: Ints, P: Floats, q: float) -> Masks:
    """The authors' greedy sets: labels are added until their mass meets q, and then the last one is taken out."""
    sets = np.zeros(P.shape, dtype=bool)
    for row, (labels, p) in enumerate(zip(order, P, strict=True)):
        k = int(np.argmax(p[labels].cumsum() >= q))
        sets[row, labels[:k]] = True
    return sets


def test_greedy_sets_that_drop_the_label_that_meets_the_threshold_undercover() -> None:
    """On probabilities of few distinct values, as a tree or a saturated network gives them."""
    loss, _ = tree_distance()
    rng = np.random.default_rng(3)
    n, m = 4000, 2000
    coarse = np.array([0.25] * 4 + [0.0] * 8)  # sums are exact
    P = rng.permuted(np.tile(coarse, (n, 1)), axis=1)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    scores = udcp.make_oracle("greedy", loss).scores(P)
    order = np.lexsort((np.tile(np.arange(K), (n, 1)), -P, scores))
    mass = np.empty_like(P)
    np.put_along_axis(mass, order, np.take_along_axis(P, order, axis=1).cumsum(axis=1), axis=1)
    q = threshold(mass[np.arange(m), y[:m]], 0.1)
    rows = np.arange(n - m)
    dropped = dropping_sets(order[m:], P[m:], q)
    kept = scores[m:] <= threshold(scores[np.arange(m), y[:m]], 0.1)
    law = coverage_law(m, 0.1, n - m)
    assert kept[rows, y[m:]].sum() >= law.ppf(1e-4)
    assert law.cdf(dropped[rows, y[m:]].sum()) < 1e-9


def test_a_saturated_classifier_gets_only_empty_sets_by_that_rule() -> None:
    loss, _ = tree_distance()
    y = np.arange(400) % K
    P = np.eye(K)[y]
    order = np.argsort(-P, axis=1, kind="stable")
    assert not dropping_sets(order, P, threshold(np.ones(400), 0.1)).any()
    ours = udcp.SetPredictor(loss, "greedy", alpha=0.1).calibrate(P, y).predict_set(P).mask
    assert ours[np.arange(400), y].all()
