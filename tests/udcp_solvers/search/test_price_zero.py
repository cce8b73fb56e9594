"""Price 0: the heaviest of the sets of least cost, then the smallest, then the first, against all sets, exactly."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_solvers.prices.enumeration import Enumeration
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from tests.conftest import Sizes

# Under each of these several sets cost the least, for costs (c, of both signs) and families that are drawn.
LOSSES = [
    "8 * (any(a) and any(b))",
    "8 * (any(a) and any(b)) + 0.1 * (any(b) and any(d))",
    "5 * max(count(t) - 1, 0)",
    "(5 * max(count(t) - 1, 0)) ^ 2",
    "0.1 * max(count(F) - 2, 0)",
    "max(count(F) - 1, 0) + 0.3 * (size(a) >= 2)",
    "if any(a) then 3 * any(b) else 0.1 * any(d)",
    "sum(c) + 8 * (any(a) and any(b))",
    "sum(c) + 0.2 * (any(a) and any(d))",
    "sum(k) + 0.1 * max(count(t) - 1, 0)",
    "0.1 * size + 5 * empty + 0.3 * (any(a) and any(b))",
    "100 * (size < 2) + 0.1 * count(F) + 0.1 * (any(a) and not any(b))",
    "diameter(h) + 2 * (any(a) and any(b))",
    "radius(h) + 0.1 * (any(a) and any(d))",
    "0.1 * spread(h) + 5 * empty",
    "max(sum(c), 0.1 * count(F))",
    "min(sum(k) + 2 * (any(a) and any(b)), 0.3)",
    "min(0.5 + sum(k), 0.5)",
    "min(count(F), 2) + 0.1 * all(b)",
    "(sum(k) >= 0.3) + (sum(k) == 0.2)",
    "(count(F) == 1) + 0.7 * (not any(a))",
    "max(size - 3, 0) ^ 2 - count(F)",
    "max(size - 4, 0) ^ 2 + 3 * (any(a) and not within(a))",
    "-0.3 * any(a) + 0.1 * size(a) + 0.2 * (any(b) and any(d))",
    "-0.3 * (any(a) and any(d)) - 0.1 * any(b) - 0.2 * (any(b) and any(a))",
]
# How far logits spread: from nearly all mass on one label to nearly uniform rows and equal masses.
SPREADS = (40.0, 20.0, 3.0, 1.0, 1e-3, 1e-13, 0.0)


def rows(K: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of every spread; some have labels without mass."""
    found = []
    for i in range(n):
        z = SPREADS[i % len(SPREADS)] * rng.normal(size=K)
        p = np.exp(z - z.max())
        if i % 5 == 4:
            p[rng.choice(np.flatnonzero(p < p.max()) if (p < p.max()).any() else [0], 1)] = 0.0
        found.append(p / p.sum())
    return np.array(found)


def drawn(K: int, text: str, rng: np.random.Generator) -> udcp.Loss:
    """A loss of K labels over drawn costs and families."""

    def costs(values: list[float]) -> str:
        return ", ".join(f"{y}: {rng.choice(values):g}" for y in range(K))

    def labels(some: np.ndarray) -> str:
        return f"{{ {', '.join(map(str, sorted(some.tolist())))} }}"

    families = ", ".join(f"f{i}: {labels(rng.choice(K, rng.integers(1, 5), replace=False))}" for i in range(4))
    parts = ", ".join(f"t{i}: {labels(np.arange(i, K, 4))}" for i in range(4))
    return udcp.loads(f"""
    labels 0..{K - 1}
    costs c {{ {costs([0, 0, 0.1, 0.2, 0.3, -0.1, -0.3, 1, 0.37])} }}
    costs k {{ {costs([0, 0, 0.1, 0.2, 0.3, 1, 0.37])} }}
    categories F {{ {families} }}
    categories t {{ {parts} }}
    category a {{ 0..2 }}
    category b {{ 3..5 }}
    category d {{ 2, 3, 6, 7 }}
    hierarchy h {{ u {{ v {{ 0..3 }}, w {{ 4..6 }} }}, x {{ 7..{K - 1} }} }}
    loss l = {text}
    """)


def mixed(K: int, rng: np.random.Generator) -> str:
    """A sum of conjunctions and tables that are 0 on many sets."""
    names = ("a", "b", "d", "F.f0", "F.f1", "t.t2")
    terms = []
    for _ in range(int(rng.integers(2, 5))):
        one, other = rng.choice(names, 2, replace=False)
        weight = rng.choice([0.1, 0.3, 1.0, 8.0])
        terms.append(
            str(
                rng.choice(
                    [
                        f"{weight} * (any({one}) and any({other}))",
                        f"{weight} * (any({one}) and not within({other}))",
                        f"{weight} * max(count({rng.choice(['F', 't'])}) - {rng.integers(1, 3)}, 0)",
                        f"{weight} * (size({one}) >= 2)",
                        f"{weight} * (if any({one}) then size({other}) else 0)",
                    ]
                )
            )
        )
    return " + ".join(terms)


def assert_best_at_zero(loss: udcp.Loss, P: np.ndarray) -> None:
    """The best set, the set at threshold 0 and the labels of score 0, as by all sets; all proved."""
    search, every, gaps = SearchPrices(loss), Enumeration(loss), np.zeros(len(P))
    mu = np.zeros(len(P))
    want = every.best(P, mu)
    np.testing.assert_array_equal(search.best(P, mu, gaps), want, err_msg=loss.source.text)
    assert not gaps.any(), loss.source.text
    assert np.array_equal(every.scores(P) <= 0, want)
    assert np.array_equal(search.sets(P, mu), want)
    assert np.array_equal(search.scores(P) <= 0, want)


@pytest.mark.parametrize("text", LOSSES)
def test_the_best_set_at_price_0_is_that_of_all_sets(text: str, sizes: Sizes) -> None:
    rng = np.random.default_rng(20)
    for K in (10, 13):
        assert_best_at_zero(drawn(K, text, rng), rows(K, max(14, sizes.cases), rng))


def test_the_best_set_at_price_0_under_drawn_losses(sizes: Sizes) -> None:
    rng = np.random.default_rng(21)
    for i in range(max(12, sizes.cases)):
        K = 10 + i % 5
        assert_best_at_zero(drawn(K, mixed(K, rng), rng), rows(K, 14, rng))


def two(K: int, text: str = "8 * (any(a) and any(b))") -> udcp.Loss:
    parts = ", ".join(f"t{i}: {{ {', '.join(map(str, range(i, K, 4)))} }}" for i in range(4))
    head = f"labels 0..{K - 1} category a {{ 0, 1, 2 }} category b {{ 3, 4, 5 }} categories t {{ {parts} }}"
    return udcp.loads(f"{head} loss l = {text}")


@pytest.mark.parametrize("K", [12, 13, 20, 60])
def test_of_two_categories_that_may_not_meet_the_lighter_is_left_out(K: int) -> None:
    P = rows(K, 70, np.random.default_rng(22))
    oracle = udcp.make_oracle("price", two(K))
    found = oracle.scores(P) <= 0
    for p, S in zip(P, found, strict=True):
        a, b = (sorted(p[part].tolist()) for part in (slice(0, 3), slice(3, 6)))
        want = p > 0
        if sum(a) != sum(b):  # else the last bits decide, and fewer labels
            want[slice(3, 6) if sum(a) > sum(b) else slice(0, 3)] = False
            assert np.array_equal(S, want)
        assert oracle.loss.batch(S[None])[0] == 0


@pytest.mark.parametrize("text", ["5 * max(count(t) - 1, 0)", "(5 * max(count(t) - 1, 0)) ^ 2"])
@pytest.mark.parametrize("K", [12, 13, 20, 60])
def test_of_categories_of_which_one_is_free_the_heaviest_is_bought(K: int, text: str) -> None:
    rng, oracle = np.random.default_rng(23), udcp.make_oracle("price", two(K, text))
    P = rows(K, 28, rng)
    best = oracle.best(P, np.zeros(len(P)))
    for p, S in zip(P, best, strict=True):
        masses = [p[i::4].sum() for i in range(4)]
        first, second = np.sort(masses)[::-1][:2]
        if first - second > 1e-15:
            want = np.zeros(K, dtype=bool)
            want[int(np.argmax(masses)) :: 4] = True
            assert np.array_equal(S, want & (p > 0))


@pytest.mark.parametrize("K", [12, 13, 20, 60])
def test_a_predictor_pays_nothing_where_free_sets_cover(K: int) -> None:
    """Sharp rows: 90 percent are covered by sets that cost nothing."""
    rng = np.random.default_rng(0)

    def drawn_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        z = 20 * rng.normal(size=(n, K))
        P = np.exp(z - z.max(1, keepdims=True))
        P /= P.sum(1, keepdims=True)
        return P, (P.cumsum(1) > rng.random((n, 1))).argmax(1)

    predictor = udcp.SetPredictor(two(K), alpha=0.1, repair=None).calibrate(*drawn_rows(1500))
    report = udcp.evaluate(predictor, *drawn_rows(1000))
    assert report.mean_cost == 0
    assert report.certified == 1


def test_masses_are_compared_in_full() -> None:
    """Beside a mass of 1, floats and even 106 bits do not tell 1e-40 from 2e-40."""
    p = np.full(13, 0.0)
    p[[0, 3, 6]] = 1e-40, 2e-40, 1.0
    (found,) = SearchPrices(two(13)).best(p[None], np.zeros(1))
    assert np.flatnonzero(found).tolist() == [3, 6]
    p[[0, 1, 3, 4]] = 0.25, 1e-40, 0.25, 2e-40
    (found,) = SearchPrices(two(13)).best(p[None], np.zeros(1))
    assert np.flatnonzero(found).tolist() == [3, 4, 6]


def test_costs_are_those_of_the_floats() -> None:
    """0.1 + 0.2 is more than 0.3, by 3e-17: two labels that save it are better than one, however likely that is."""
    costs = ", ".join(f"{y}: {c}" for y, c in enumerate([-0.1, -0.2, -0.3, *[1.0] * 10]))
    text = f"labels 0..12 costs k {{ {costs} }} loss l = sum(k) + 5 * (any({{ 0, 1 }}) and any({{ 2 }}))"
    p = np.array([0.1, 0.1, 0.8, *[0.0] * 10])
    gaps = np.zeros(1)
    (found,) = SearchPrices(udcp.loads(text)).best(p[None], np.zeros(1), gaps)
    assert np.flatnonzero(found).tolist() == [0, 1]
    assert gaps[0] == 0


def test_costs_that_are_sums_are_not_rounded() -> None:
    """0.1 + 0.2 is 0.30000000000000004 as a float, but less in full."""
    costs = "costs k { 0: -0.1, default: 0 } costs m { 0: -0.2, 1: -0.30000000000000004, default: 1 }"
    text = f"labels 0..12 {costs} loss l = sum(k) + sum(m) + 5 * (any({{ 0 }}) and any({{ 1 }}))"
    p = np.array([0.8, 0.2, *[0.0] * 11])
    (found,) = SearchPrices(udcp.loads(text)).best(p[None], np.zeros(1))
    assert np.flatnonzero(found).tolist() == [1]


def test_what_is_not_proved_is_said() -> None:
    """Nearly uniform rows and far too few nodes: the set found costs least, but a heavier one may be free, too."""
    loss, rng = two(40, "5 * max(count(t) - 1, 0) + 0.1 * (any(a) and any(b))"), np.random.default_rng(24)
    P, gaps = rng.dirichlet(np.full(40, 1e6), 5), np.zeros(5)
    found = SearchPrices(loss, 2).best(P, np.zeros(5), gaps)
    assert gaps.any()
    proved = gaps == 0
    assert np.array_equal(found[proved], SearchPrices(loss).best(P, np.zeros(5))[proved])


def test_no_label_outside_the_best_set_at_price_0_has_the_score_0() -> None:
    loss = two(13, "1e-20 * any(a) + (any(b) and any(t.t0))")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = udcp.make_oracle("price", loss).scores(rows(13, 14, np.random.default_rng(25)))
    assert (scores[:, :3][np.isfinite(scores[:, :3])] > 0).all()
