"""The search against all sets: best sets at a price, prices with and without an anchor, gaps where it stops early."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.specs import of_seven
from tests.udcp_solvers.brute_force import anchored_scores, price_scores
from tests.udcp_solvers.prices.price_losses import Remembered, Rounded
from udcp_dsl.check import all_masks, losses
from udcp_solvers.search.layout import FREE, IN, OUT
from udcp_solvers.search.model import searchable
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSSES = [
    "sum(k) + 8 * (any(A) and any(B))",
    "8 * (size >= 2) + sum(k)",
    "3 * diameter(h) + sum(k)",
    "sum(k) + 0.5 * count(u.level(1)) + 4 * (any(A) and any(B)) + diameter(u)",
    "if any(A) then 3 * count(over) else sum(k)",
    "max(sum(k), count(over))",
    "min(sum(k) + 2 * count(over), 3)",
    "min(2, 3 * diameter(h) + sum(k) + (any(A) and any(B)))",
    "min(sum(s) + count(over), 1.5)",
    "min(max(sum(k), count(over)), radius(h) + 1, 2.5)",
    "min(sum(k), 0.25, 0.75)",
    "min(1.5, sum(k) + 0.125 * size ^ 2, 2)",
    "max(min(sum(k), 2, 1), 0.5, count(over) - 2, 0.25)",
    "min(0.25 * size ^ 2 + sum(k), 2.125)",
    "count(over) + 4 * all(B) + 0.125 * size",
    "count(u.level(1)) + 0.25 * size ^ 2 + sum(s)",
    "count(u.level(2)) + 2 * (size(B) > 1) + 0.5 * max(size - 4, 0)",
    "max(count(over) - 2, 0) ^ 2 + 0.25 * size",
    "radius(h) + count(over, w)",
    "0.25 * spread(h) + 0.5 * size - any(A)",
    "max(size - 3, 0) ^ 2 - count(over)",
    "within(A) + min(s) + sqrt(size)",
    "(sum(s) >= 1) + (sum(k) == 1) + (not any(A)) + 0.25 * size",
]


def row(K: int, rng: np.random.Generator, exact: bool) -> np.ndarray:
    """A distribution; `exact`: in sixteenths, so that sums and ties are those of rationals."""
    if exact:
        counts = rng.multinomial(16, rng.dirichlet(np.full(K, 0.7)))
        return np.asarray(counts / 16)
    return np.asarray(rng.dirichlet(np.full(K, rng.choice([0.2, 0.6, 3.0]))))


@cache
def prices_of(text: str) -> tuple[udcp.Loss, SearchPrices]:
    return of_seven(text), SearchPrices(of_seven(text))


@cache
def remembered(text: str) -> Remembered:
    return Remembered(prices_of(text)[0])


@given(losses(), st.integers(0, 2**32 - 1))
def test_no_set_is_better_whatever_the_loss(loss: udcp.Loss, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = loss.facts.interval
    if loss.K > 9 or max(abs(low), abs(high)) > 1e6:
        return
    assert searchable(loss)
    masks = all_masks(loss.K)
    costs, search = loss.batch(masks), SearchPrices(loss)
    for _ in range(3):
        p, mu = row(loss.K, rng, False), float(np.exp(rng.uniform(-3, 3))) * (high - low + 0.1)
        gaps = np.ones(1)
        (found,) = search.best(p[None], np.array([mu]), gaps)
        least = (costs - mu * (masks @ p)).min()
        assert gaps[0] == 0
        assert loss.batch(found[None])[0] - mu * p[found].sum() <= least + 1e-9 * (1 + abs(least) + mu)


@given(losses(), st.integers(0, 2**32 - 1))
def test_labels_may_be_fixed(loss: udcp.Loss, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = loss.facts.interval
    if loss.K > 9 or max(abs(low), abs(high)) > 1e6:
        return
    masks = all_masks(loss.K)
    p, mu = row(loss.K, rng, False), float(np.exp(rng.uniform(-3, 3))) * (high - low + 0.1)
    fixed = rng.choice(np.array([OUT, FREE, FREE, IN], dtype=np.int8), loss.K)
    (chosen,) = SearchPrices(loss, 100_000).best(p[None], np.array([mu]), fixed=fixed[None])
    assert chosen[fixed == IN].all()
    assert not chosen[fixed == OUT].any()
    fits = masks[:, fixed == IN].all(axis=1) & ~masks[:, fixed == OUT].any(axis=1)
    least = (loss.batch(masks) - mu * (masks @ p))[fits].min()
    assert loss.batch(chosen[None])[0] - mu * p[chosen].sum() <= least + 1e-9 * (1 + abs(least) + mu)


@pytest.mark.parametrize("text", LOSSES)
def test_plain_prices_are_those_of_all_sets(text: str) -> None:
    loss, search = prices_of(text)
    rng, known = np.random.default_rng(3), remembered(text)
    P = np.array([row(loss.K, rng, True) for _ in range(8)])
    for p, scores in zip(P, search.scores(P), strict=True):
        np.testing.assert_allclose(scores, price_scores(known, p), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", LOSSES)
def test_anchored_prices_are_those_of_all_sets(text: str, sizes: Sizes) -> None:
    loss, search = prices_of(text)
    rng, known = np.random.default_rng(4), remembered(text)
    P = np.array([row(loss.K, rng, i % 2 == 0) for i in range(sizes.cases)])
    # No price of sixteenths: at one of those, which sets are the best is a matter of the last bit.
    for m in (0.0, 0.7310001, 3.170003, 11.900007):
        scores = search.scores(P, np.full(len(P), m))
        for p, got in zip(P, scores, strict=True):
            want, star = anchored_scores(known, p, m)
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
            assert set(np.flatnonzero(got <= m).tolist()) == set(star)


@pytest.mark.parametrize(
    ("text", "sixteenths", "m"),
    [
        ("8 * (size >= 2) + sum(k)", [10, 0, 5, 1, 0, 0, 0], 1.9206),
        ("3 * diameter(h) + sum(k)", [0, 0, 5, 3, 0, 0, 8], 2.0417),
        ("(sum(s) >= 1) + (sum(k) == 1) + (not any(A)) + 0.25 * size", [0, 0, 5, 6, 2, 0, 3], 4.6189),
    ],
)
def test_beyond_the_anchor_only_supersets_count_if_best_sets_are_not_nested(
    text: str, sixteenths: list[int], m: float
) -> None:
    """A set that is best at a price above the anchor, but lacks a label of the anchor's set, gives no price."""
    p = np.array(sixteenths) / 16
    (got,) = prices_of(text)[1].scores(p[None], np.array([m]))
    np.testing.assert_allclose(got, anchored_scores(remembered(text), p, m)[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "text",
    ["min(c)", "min(c) + max(d)", "min(c) + 0.5 * any({0, 1})", "min(max(d), 1) + min(c)", "min(c) + 0.1 * size"],
)
def test_a_label_of_tiny_mass_that_costs_nothing_is_bought(text: str) -> None:
    """What it is worth at the prices that are asked for is below the rounding of costs."""
    costs = "costs c { 0: -0.23, 1: 0.37, 2: -1.03, 3: 1.1, 4: 0 } costs d { 0: 1, 1: 0.8, 2: 0.6, 3: 1.9, 4: 0 }"
    loss = udcp.loads(f"labels 0..4 {costs} loss l = {text}")
    rng, search, known = np.random.default_rng(5), SearchPrices(loss), Remembered(loss)
    P = rng.dirichlet(np.ones(5), 24)
    for p in P:
        p[rng.choice(5, rng.integers(1, 3), replace=False)] = 10.0 ** rng.uniform(-30, -5)
        p /= p.sum()
    for m in (-1.0, 0.0, 0.3):
        anchor = np.full(len(P), m)
        scores = search.scores(P, anchor)
        want = [price_scores(known, p) if m < 0 else anchored_scores(known, p, m)[0] for p in P]
        np.testing.assert_allclose(scores, want, rtol=1e-9, atol=0)
        for y in range(5):
            assert np.array_equal(search.score_of(P, np.full(len(P), y), anchor), scores[:, y])
        for tau in (0.0, 5e-324, 0.3):
            assert np.array_equal(search.sets(P, np.full(len(P), tau), anchor), scores <= tau)
        assert m < 0 or np.array_equal(search.best(P, anchor), scores <= m)


def test_what_a_label_costs_alone_is_not_what_it_costs_beside_others() -> None:
    """It is remembered, for sets that have no other label."""
    loss = udcp.loads("""
    labels 0..4
    categories F { x: { 0, 2 }, y: { 1, 2, 3 }, z: { 4 } }
    costs d { 0: 1.1, 1: 1.1, 2: 1.4, 3: 1.8, 4: 1.2 }
    loss l = if any({ 0, 1 }) then count(F) else max(d)
    """)
    p = np.array([0.2145, 8e-15, 8e-15, 0.128, 0.6575])
    (scores,) = SearchPrices(loss).scores(p[None])
    np.testing.assert_allclose(scores, price_scores(loss, p), rtol=1e-9, atol=0)
    p, anchor = np.array([0.36, 0.32, 0.21, 0.11, 1.6e-12]), 0.803
    (scores,) = SearchPrices(loss).scores(p[None], np.array([anchor]))
    np.testing.assert_allclose(scores, anchored_scores(loss, p, anchor)[0], rtol=1e-9, atol=0)


def _prices_are_those_of_all_sets(loss: udcp.Loss, seed: int, most: int) -> None:
    """Plain and anchored, against all sets in rationals; ties and zeros included."""
    rng = np.random.default_rng(seed)
    low, high = loss.facts.interval
    if most < loss.K or max(abs(low), abs(high)) > 1e6:
        return
    search, known = SearchPrices(loss, 100_000), Rounded(loss)
    p = row(loss.K, rng, bool(rng.integers(2)))
    near = 1e-9 * (1.0 + high - low)
    (got,) = search.scores(p[None])
    np.testing.assert_allclose(got, price_scores(known, p), rtol=1e-9, atol=near / p[p > 0].min())
    m = float(np.exp(rng.uniform(-3, 3))) * (high - low + 0.1)
    (got,) = search.scores(p[None], np.array([m]))
    want, star = anchored_scores(known, p, m)
    assert set(np.flatnonzero(got <= m).tolist()) == set(star)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=near / p[p > 0].min())


@given(losses(), st.integers(0, 2**32 - 1))
def test_prices_of_generated_specs_are_those_of_all_sets(loss: udcp.Loss, seed: int) -> None:
    _prices_are_those_of_all_sets(loss, seed, 7)


@given(losses(), st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.integers(0, 2**32 - 1))
def test_prices_of_generated_specs_with_a_limit_are_those_of_all_sets(loss: udcp.Loss, share: float, seed: int) -> None:
    """Handing over: the limit is somewhere within what the loss can cost."""
    low, high = loss.facts.interval
    text = f"{loss.source.text}\nloss limited = min({loss.name}, {low + share * (high - low)})"
    _prices_are_those_of_all_sets(udcp.loads(text, labels=loss.labels, loss="limited", files=loss.files), seed, 7)


def test_sets_of_one_cost_are_ties_in_whatever_order_it_is_added() -> None:
    """2 - 0.1 - 2 is just below 1 - 0.1 - 1 in floats: no reason to take in a label that has no mass."""
    costs = "costs c { 0: -1, 1: 1, 2: -1 }"
    loss = udcp.loads(f"labels 0..2 {costs} loss l = size - 0.1 + sum(c)")
    p = [0.0, 0.5, 0.5]
    assert loss.interpret_positions([0, 2]) < loss.interpret_positions([2])
    (scores,) = SearchPrices(loss).scores(np.array([p]))
    assert scores.tolist() == price_scores(Rounded(loss), p)
    assert scores[0] == np.inf


@pytest.mark.slow
@given(losses(), st.integers(0, 2**32 - 1))
def test_prices_of_generated_specs_of_ten_labels_are_those_of_all_sets(loss: udcp.Loss, seed: int) -> None:
    _prices_are_those_of_all_sets(loss, seed, 10)


@pytest.mark.parametrize("text", LOSSES)
def test_the_three_faces_agree_to_the_last_bit(text: str) -> None:
    loss, search = prices_of(text)
    rng = np.random.default_rng(5)
    P = np.array([row(loss.K, rng, i % 2 == 0) for i in range(10)])
    for m in (-1.0, 0.0, 0.9, 4.0):
        anchor = np.full(len(P), m)
        scores = search.scores(P, anchor)
        for y in range(loss.K):
            assert np.array_equal(search.score_of(P, np.full(len(P), y), anchor), scores[:, y])
        finite = scores[np.isfinite(scores)]
        for tau in (0.0, 0.5, 0.9, 1.7, 4.0, 6.3, np.inf, -1.0, *rng.choice(finite, 4)):
            assert np.array_equal(search.sets(P, np.full(len(P), tau), anchor), scores <= tau), (m, tau)


def test_a_budget_leaves_a_gap_that_is_true() -> None:
    rng = np.random.default_rng(6)
    K = 14
    masks = all_masks(K)
    names = ", ".join(f"{y}: {0.05 + 0.9 * x:.3f}" for y, x in enumerate(rng.random(K)))
    families = ", ".join(f"f{i}: {{ {i}, {i + 1}, {(i + 7) % K} }}" for i in range(0, K - 1, 2))
    head = f"labels 0..{K - 1}  costs c {{ {names} }}  categories F {{ {families} }}  "
    opened = 0
    for text in ("max(sum(c), count(F)) + 0.01 * size", "0.02 * size ^ 2 + count(F) + (sum(c) >= 2)"):
        loss = udcp.loads(f"{head} loss l = {text}")
        costs = loss.batch(masks)
        P = rng.dirichlet(np.full(K, 0.8), 12)
        for budget in (1, 3, 10):
            mu, gaps = np.full(len(P), 9.0), np.zeros(len(P))
            found = SearchPrices(loss, budget).best(P, mu, gaps)
            values = loss.batch(found) - 9.0 * (found * P).sum(axis=1)
            least = (costs[:, None] - 9.0 * masks @ P.T).min(axis=0)
            assert (values - gaps <= least + 1e-9).all(), "a set better than the gap allows"
            assert (values >= least - 1e-9).all()
            opened += np.count_nonzero(gaps)
    assert opened, "the budgets were never used up"


def made(K: int, text: str) -> udcp.Loss:
    """A loss over K labels with overlapping families, costs and a matrix of distances."""
    rng = np.random.default_rng(8)
    costs = ", ".join(f"{y}: {0.05 + 0.9 * x:.3f}" for y, x in enumerate(rng.random(K)))
    families = ", ".join(f"f{i}: {{ {i}, {i + 1}, {(i + 7) % K} }}" for i in range(0, K - 1, 2))
    points = rng.normal(size=(K, 2))
    d = np.round(np.abs(points[:, None] - points).sum(axis=-1), 3)
    rows = "\n".join(f"{y},{','.join(map(str, row))}" for y, row in enumerate(d))
    files = {"d.csv": f"label,{','.join(map(str, range(K)))}\n{rows}\n".encode()}
    head = f'''labels 0..{K - 1}  costs c {{ {costs} }}  categories F {{ {families} }}  category few {{ 0..2 }}
    distance d from "d.csv"'''
    return udcp.loads(f"{head}  loss l = {text}", files=files)


UNPROVED = [
    "max(sum(c), count(F)) + 0.01 * size",
    "diameter(d) + sum(c)",
    "0.1 * spread(d) + count(F) + 0.01 * size",
    "min(max(sum(c), count(F)) + 0.01 * size, 4)",
]


@pytest.mark.parametrize("text", UNPROVED)
def test_the_three_faces_agree_where_nothing_is_proved(text: str) -> None:
    """Coverage rests on it: what calibrates and what predicts is one score, however early the search stops."""
    K = 14
    loss, rng = made(K, text), np.random.default_rng(9)
    P = rng.dirichlet(np.full(K, 0.8), 8)
    ended = 0
    for budget in (1, 4, 15):
        search = SearchPrices(loss, budget)
        for m in (-1.0, 0.0, 4.0, 15.0):
            anchor, gaps = np.full(len(P), m), np.zeros(len(P))
            scores = search.scores(P, anchor, gaps)
            ended += np.count_nonzero(gaps)
            for y in range(K):
                assert np.array_equal(search.score_of(P, np.full(len(P), y), anchor), scores[:, y])
            around = [m * (1 - 1e-10), m, m * (1 + 1e-10), 1.03 * m, *rng.choice(scores[np.isfinite(scores)], 8)]
            for tau in (0.0, *around, 1e3):
                assert np.array_equal(search.sets(P, np.full(len(P), tau), anchor), scores <= tau), (budget, m, tau)
            if m > 0:
                assert np.array_equal(search.best(P, anchor), scores <= m)
    assert ended, "the budgets were never used up"


@pytest.mark.parametrize("text", [*UNPROVED, "count(F) + 3 * (any(few) and not within(few)) + 0.1 * size"])
def test_an_answer_does_not_depend_on_what_was_asked_before(text: str) -> None:
    """Rows in another order, one label after another, thresholds at random: each answer is that of all scores, which
    ask most, even if most searches are stopped."""
    K = 26
    loss, rng = made(K, text), np.random.default_rng(13)
    P = rng.gamma(0.2, size=(8, K)).astype(np.float32)
    P = (P / P.sum(axis=1, keepdims=True)).astype(np.float64)
    P[:, -3:] = P[:, [0]]  # masses that repeat
    P /= P.sum(axis=1, keepdims=True)
    ended = 0
    for budget in (1, 3, 12, 200):
        search = SearchPrices(loss, budget)
        for m in (-1.0, 6.0, 30.0):
            anchor, gaps = np.full(len(P), m), np.zeros(len(P))
            scores = search.scores(P, anchor, gaps)
            ended += np.count_nonzero(gaps)
            for _ in range(6):
                order, y = rng.permutation(len(P)), rng.integers(0, K, len(P))
                tau = scores[np.arange(len(P)), rng.integers(0, K, len(P))] * rng.choice([0.98, 1.0, 1.02], len(P))
                tau = np.where(np.isfinite(tau), tau, 2.0 * abs(m))
                one = search.score_of(P[order], y[order], anchor)
                assert np.array_equal(one, scores[order, y[order]]), (budget, m)
                sets = search.sets(P[order], tau[order], anchor)
                assert np.array_equal(sets, scores[order] <= tau[order, None]), (budget, m)
                i = int(rng.integers(len(P)))
                assert np.array_equal(search.scores(P[[i]], anchor[[i]]), scores[[i]]), (budget, m)
    assert ended, "the budgets were never used up"


def test_rows_of_a_thousand_labels_with_equal_masses_in_the_tail_are_proved() -> None:
    """Labels that are out at a price, and labels that cannot change sides, are no ties."""
    K, rng = 1000, np.random.default_rng(14)
    families = ", ".join(f"f{i}: {{ {', '.join(map(str, range(i, K, 31)))} }}" for i in range(31))
    head = f"labels 0..{K - 1}  categories F {{ {families} }}  category hot {{ 0..99 }}"
    loss = udcp.loads(f"{head}  loss l = count(F) + 3 * (any(hot) and not within(hot)) + 0.1 * size")
    P = rng.gamma(0.05, size=(6, K)).astype(np.float32)
    P[P < 1e-6] = 1e-6
    P = (P / P.sum(axis=1, keepdims=True)).astype(np.float64)
    y = P.argsort(axis=1)[:, -20]
    search, anchor, gaps = SearchPrices(loss, 50), np.full(len(P), 60.0), np.ones(len(P))
    search.score_of(P, y, anchor, gaps)
    assert not gaps.any()
    for share in (0.97, 1.03):
        gaps = np.ones(len(P))
        search.sets(P, share * anchor, anchor, gaps)
        assert not gaps.any()


@pytest.mark.parametrize("text", UNPROVED)
def test_gaps_are_true(text: str) -> None:
    K = 14
    loss, masks, rng = made(K, text), all_masks(K), np.random.default_rng(10)
    costs, P = loss.batch(masks), rng.dirichlet(np.full(K, 0.8), 12)
    for budget in (1, 3, 10, 40):
        for price in (3.0, 12.0):
            gaps = np.zeros(len(P))
            found = SearchPrices(loss, budget).best(P, np.full(len(P), price), gaps)
            values = loss.batch(found) - price * (found * P).sum(axis=1)
            least = (costs[:, None] - price * masks @ P.T).min(axis=0)
            assert (values - gaps <= least + 1e-9).all(), "a set better than the gap allows"


def test_large_losses_agree_with_integer_programs() -> None:
    """K = 30: the best set at a price by the search and by a solver."""
    from udcp_dsl.expression.lower import lower
    from udcp_solvers.programs.exact import Exact, Tally

    rng = np.random.default_rng(7)
    K = 30
    head = f"""labels 0..{K - 1}
    hierarchy h {{ a {{ p {{ 0..4 }}, q {{ 5..9 }} }}, b {{ r {{ 10..14 }}, s {{ 15..19 }} }}, c {{ 20..29 }} }}
    costs c {{ {", ".join(f"{y}: {0.05 + x:.2f}" for y, x in enumerate(rng.random(K)))} }}
    categories F {{ x: {{ 0, 7, 13, 22, 29 }}, y: {{ 1, 7, 9, 15, 24 }}, z: {{ 2, 3, 14, 26, 27 }} }}
    """
    for text in (
        "sum(c) + count(F) + 6 * (any(F.x) and any(F.y)) + diameter(h)",
        "if any(F.x) then 3 * count(F) + 0.1 * size else sum(c)",
        "count(h.level(2)) + 0.05 * size ^ 2 + all({ 0, 1 })",
    ):
        loss = udcp.loads(f"{head} loss l = {text}")
        solver, search = Exact(loss, lower(loss), "auto", False), SearchPrices(loss)
        for p in rng.dirichlet(np.full(K, 0.3), 2):
            for mu in (3.0, 12.0):
                (mine,) = search.best(p[None], np.array([mu]))
                found = solver.at_price(Tally(), p, mu, np.zeros(K, dtype=bool))
                assert found is not None
                costs = loss.batch(np.array([mine, found.mask]))
                mine_net, solved_net = costs[0] - mu * p[mine].sum(), costs[1] - mu * p[found.mask].sum()
                assert mine_net == pytest.approx(solved_net, abs=1e-6)


WIDE = [
    "if any(F.f0) then 3 * count(F) else sum(c)",
    "max(sum(c), count(F)) + 0.01 * size",
    "count(F) + 5 * (size > 5) + 0.01 * size",
    "count(F) + 0.02 * size ^ 2",
    "sum(c) + count(F) + 10 * (any(F.f0) and any(F.f4)) + diameter(h)",
    "radius(h) + count(F)",
    "min(sum(c) + count(F) + diameter(h), 8)",
    "min(max(sum(c), count(F)) + 0.01 * size, 6)",
]


def wide(K: int, text: str) -> udcp.Loss:
    """A loss over K labels in 12 families across 12 groups."""
    rng, many = np.random.default_rng(11), K // 12
    costs = ", ".join(f"{y}: {0.05 + 0.9 * x:.3f}" for y, x in enumerate(rng.random(K)))
    families = ", ".join(f"f{i}: {{ {', '.join(map(str, range(i, K, 12)))} }}" for i in range(12))
    tree = ", ".join(f"g{i} {{ {many * i}..{many * (i + 1) - 1} }}" for i in range(12))
    head = f"labels 0..{K - 1}  costs c {{ {costs} }}  categories F {{ {families} }}  hierarchy h {{ {tree} }}"
    return udcp.loads(f"{head}  loss l = {text}")


@pytest.mark.parametrize("text", WIDE)
def test_what_is_fixed_between_two_sets_is_so_in_every_best_set(text: str) -> None:
    """Along a hull, labels that cannot change there are left out of the questions: a search that is asked afresh at
    each price knows nothing of it, and must find the same sets."""
    K = 120
    loss, rng = wide(K, text), np.random.default_rng(11)
    search = SearchPrices(loss)
    P = rng.dirichlet(np.full(K, 0.5), 3)
    scores = search.scores(P)
    for p, got in zip(P, scores, strict=True):
        prices = np.unique(got[np.isfinite(got)])
        # Half-way between two prices, where the best set is one alone.
        between = 0.5 * (prices[1:] + prices[:-1])[np.diff(prices) > 1e-6 * prices[1:]]
        asked = between[:: max(1, len(between) // 40)]
        best = search.best(np.repeat(p[None], len(asked), axis=0), asked)
        for mu, mask in zip(asked, best, strict=True):
            assert (got[mask] < mu).all(), "a best set holds a label that the hull has not bought"
        # Every label is in the best set just above its price, or no set of the hull begins with it.
        rise = prices[1:] * (1 + 1e-7)
        new = search.best(np.repeat(p[None], len(rise), axis=0), rise)
        for price, mask in zip(prices[1:], new, strict=True):
            assert mask[got == price].all()


@pytest.mark.slow
@pytest.mark.parametrize("text", WIDE)
@pytest.mark.parametrize("K", [36, 96])
def test_prices_are_those_of_a_chain_of_programs(text: str, K: int) -> None:
    loss, rng = wide(K, text), np.random.default_rng(12)
    P = rng.dirichlet(np.full(K, 0.3), 2)
    y = P.argsort(axis=1)[:, -4]
    programs = udcp.make_oracle("ilp", loss, program="price", solver="HiGHS")
    np.testing.assert_allclose(SearchPrices(loss).score_of(P, y), programs.score_of(P, y), rtol=1e-6)


def test_a_table_too_large_is_left_to_programs() -> None:
    loss = udcp.loads("labels 0..5999  hierarchy h { a { 0..2999 }, b { 3000..5999 } }  loss l = spread(h)")
    assert not searchable(loss)
