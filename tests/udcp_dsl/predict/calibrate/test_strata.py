"""Strata: bins between fixed edges by brute force and by the exact law of coverage in each; groups by their names."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import betabinom

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Calibration, Strata, calibrate, rank
from udcp_dsl.predict.calibrate.strata import as_bins, bin_edges, bin_names, bins_needed

if TYPE_CHECKING:
    from tests.conftest import Sizes

FIFTH = Fraction(1, 5)
EDGES = st.lists(st.floats(0, 1), unique=True, max_size=8).map(lambda edges: tuple(sorted(edges)))


# Bins by difficulty


def brute_edges(top: list[float], bins: int, least: float) -> tuple[float, ...]:
    """Parts of the rows, each with the edge above it, of which the smallest joins its smaller neighbour."""
    ordered = sorted(top)
    cuts = sorted({ordered[b * len(top) // bins - 1] for b in range(1, bins) if b * len(top) // bins > 0})
    uppers = [*cuts, math.inf]
    parts = [[x for x in top if low < x <= high] for low, high in zip([-math.inf, *cuts], uppers, strict=True)]
    while len(parts) > 1 and min(map(len, parts)) < least:
        i = min(range(len(parts)), key=lambda i: len(parts[i]))
        neighbours = [j for j in (i - 1, i + 1) if 0 <= j < len(parts)]
        j = min(neighbours, key=lambda j: len(parts[j]))
        parts[min(i, j)] = parts.pop(max(i, j)) + parts[min(i, j)]
        del uppers[min(i, j)]
    return tuple(uppers[:-1])


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(2, 6), st.integers(0, 24).map(lambda x: x / 2))
@example([7] * 9, 4, 0.5)
@example([0, 1, 1, 1, 2, 2, 3, 4, 5, 6], 5, 2.5)
def test_edges_are_those_of_brute_force(values: list[int], bins: int, least: float) -> None:
    top = np.array(values, dtype=np.float64)
    edges = bin_edges(top, bins, least)
    assert edges == brute_edges(top.tolist(), bins, least)
    assert list(edges) == sorted(set(edges))
    counts = np.bincount(Strata.of_bins(edges).codes_of_bins(top), minlength=len(edges) + 1)
    assert len(counts) == len(edges) + 1 <= bins
    assert len(edges) == 0 or counts.min() >= least


@given(st.integers(2, 8), st.integers(0, 60))
def test_bins_of_distinct_values_have_equal_sizes_and_are_kept(bins: int, n: int) -> None:
    top = np.random.default_rng(n).permutation(np.arange(float(n)))
    edges = bin_edges(top, bins, n // bins)
    counts = np.bincount(Strata.of_bins(edges).codes_of_bins(top), minlength=len(edges) + 1)
    if n >= bins:
        assert len(counts) == bins
        assert counts.max() - counts.min() <= 1


def test_equal_edges_are_merged() -> None:
    assert bin_edges(np.array([0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.0]), 4, 1) == (0.9,)
    assert bin_edges(np.ones(8), 4, 1) == ()
    assert bin_edges(np.array([]), 4, 1) == ()


@given(st.integers(2, 6), st.integers(1, 30), st.integers(1, 20))
def test_bins_of_equal_size_are_kept_with_the_rows_needed(bins: int, points: int, size: int) -> None:
    """A bin is kept if twice the points that its threshold needs are expected among the rows left."""
    top, left = np.arange(float(size * bins)), bins_needed(bins, points)
    assert left == 2 * bins * points
    assert len(bin_edges(top, bins, 2 * points * len(top) / left)) == bins - 1
    assert len(bin_edges(top, bins, 2 * points * len(top) / (left - 1))) < bins - 1


@given(EDGES, st.lists(st.floats(0, 1), max_size=8))
def test_a_row_on_an_edge_is_in_the_bin_below_it(edges: tuple[float, ...], others: list[float]) -> None:
    top = np.array([*edges, *others])
    assert Strata.of_bins(edges).codes_of_bins(top).tolist() == [sum(x > e for e in edges) for x in top.tolist()]


def drawn(rng: np.random.Generator, n: int, difficulty: str) -> np.ndarray:
    return rng.random(n) if difficulty == "smooth" else np.minimum(rng.integers(0, 8, n) / 4, 1.0)


def check_bins(n: int, repeats: int, difficulty: str) -> None:
    """A new point is covered with probability k / (m + 1), given the m points in its bin: edges are from other rows."""
    rng = np.random.default_rng(n)
    hits, expected, variance = np.zeros(4), np.zeros(4), np.zeros(4)
    for _ in range(repeats):
        strata = Strata.of_bins(bin_edges(drawn(rng, 24, difficulty), 4, 1))
        v = drawn(rng, n + 1, difficulty)
        scores = rng.normal(size=n + 1) - 3 * v  # hard rows have high scores
        codes = strata.codes_of_bins(v)
        c = calibrate(scores[:-1], alpha=FIFTH, strata=strata, codes=codes[:-1], already_warned=True)
        b, m = codes[-1], int((codes[:-1] == codes[-1]).sum())
        assert c.cells[b].n == m
        chance = min(1.0, rank(m, FIFTH) / (m + 1))
        hits[b] += scores[-1] <= np.asarray(c.tau(codes[-1:]))[0, 0]
        expected[b] += chance
        variance[b] += chance * (1 - chance)
    assert (np.abs(hits - expected) <= 4 * np.sqrt(variance)).all()
    assert (variance > 0).sum() >= 3


@pytest.mark.parametrize("difficulty", ["smooth", "tied"])
@pytest.mark.parametrize("n", [39, *(pytest.param(n, marks=pytest.mark.slow) for n in (23, 80, 203))])
def test_every_bin_is_covered_exactly(n: int, difficulty: str, sizes: Sizes) -> None:
    check_bins(n, sizes.draws, difficulty)


def test_coverage_in_a_bin_is_beta_binomial(sizes: Sizes) -> None:
    """The points between two edges are independent: the number covered of m fresh ones has its law."""
    rng, m, repeats, total = np.random.default_rng(5), 20, sizes.draws, 0
    strata = Strata.of_bins((0.3, 0.5))
    codes = np.repeat([0, 1, 2], [5, 9, 25])
    for _ in range(repeats):
        scores = rng.normal(size=39) + 2 * codes
        c = calibrate(scores, alpha=FIFTH, strata=strata, codes=codes, already_warned=True)
        fresh = strata.codes_of_bins(rng.uniform(np.nextafter(0.3, 1), 0.5, m))
        total += int((rng.normal(size=m) + 2 <= np.asarray(c.tau(fresh))[:, 0]).sum())
    law = betabinom(m, 8, 2)  # 9 points: the 8th of them
    z = (total - repeats * law.mean()) / np.sqrt(repeats * law.var())
    assert abs(z) < 4


@given(EDGES)
@example((0.90001, 0.90002, 0.90003))
@example((0.5, float(np.nextafter(0.5, 1))))
def test_names_of_bins_differ(edges: tuple[float, ...]) -> None:
    strata = Strata.of_bins(edges)
    assert strata.names == bin_names(edges)
    assert len(set(strata.names)) == len(strata) == len(edges) + 1
    assert strata.edges == edges


@pytest.mark.parametrize("bins", [1, 0, -4, True, 4.0, "4", None])
def test_what_is_no_number_of_bins_is_refused(bins: Any) -> None:
    with pytest.raises(InputError, match=r"bins is .*: give a whole number from 2, such as 4"):
        as_bins(bins)
    assert as_bins(np.int64(3)) == 3


def test_too_few_rows_in_a_bin_are_told() -> None:
    strata, codes = Strata.of_bins((0.5,)), np.repeat([0, 1], [8, 12])
    with pytest.warns(
        UserWarning,
        match=r"alpha 0\.1 needs 9 in each bin, but the bin 'highest p up to 0\.5' has 8\. So prediction sets of these "
        "bins contain all labels; give more rows or a larger alpha, or fewer bins$",
    ):
        c = calibrate(np.arange(20.0), alpha=0.1, strata=strata, codes=codes)
    assert np.asarray(c.tau(np.array([0, 1]))).tolist() == [[math.inf], [19.0]]
    assert c.thresholds == {"highest p up to 0.5": math.inf, "above 0.5": 19.0}
    assert c.too_few == ("highest p up to 0.5",)


def test_bins_are_not_pooled() -> None:
    with pytest.raises(InputError, match="use fewer bins"):
        calibrate([1.0, 2.0], alpha=0.5, strata=Strata.of_bins((0.5,)), codes=[0, 1], pool=True)


@pytest.mark.filterwarnings("ignore::udcp_dsl.predict.calibrate.CalibrationWarning")
@given(EDGES, st.lists(st.tuples(st.floats(0, 1), st.floats(allow_nan=False)), min_size=1, max_size=40))
def test_bins_are_saved_whole(edges: tuple[float, ...], rows: list[tuple[float, float]]) -> None:
    top, scores = np.array([v for v, _ in rows]), [s for _, s in rows]
    strata = Strata.of_bins(edges)
    c = calibrate(scores, alpha=FIFTH, strata=strata, codes=strata.codes_of_bins(top))
    data = json.loads(json.dumps({"edges": edges, "calibration": c.as_dict()}, allow_nan=False))
    again = Strata.of_bins(tuple(data["edges"]))
    assert again == strata
    loaded = Calibration.from_dict(data["calibration"], c.alpha, again, c.rule, randomize=False)
    assert loaded.as_dict() == c.as_dict()
    assert loaded.n == len(rows)
    found, expected = (np.asarray(x.tau(x.strata.codes_of_bins(top))) for x in (loaded, c))
    assert found.tobytes() == expected.tobytes()


# Groups


@given(st.lists(st.integers(0, 12), max_size=20), st.lists(st.integers(0, 14), max_size=20))
def test_groups_become_codes_in_the_order_of_their_names(known: list[int], new: list[int]) -> None:
    strata = Strata.of_groups(known)
    assert strata.names == tuple(sorted({str(g) for g in known}))
    expected = [strata.names.index(str(g)) if g in known else -1 for g in new]
    assert strata.codes_of_groups(new, unseen=True).tolist() == expected
    if -1 not in expected:
        assert strata.codes_of_groups(new, unseen=False).tolist() == expected


def test_groups_never_seen() -> None:
    strata = Strata.of_groups(["b", "a", "b"])
    for groups, row in ((["a", "b", "z"], 2), (["z", "y"], 0), (["a", "z", "y", "b"], 1)):
        message = f"row {row}: group 'z' is not among the calibration rows; known: 'a', 'b'; calibrate with rows of it"
        with pytest.raises(InputError, match=message):
            strata.codes_of_groups(groups, unseen=False)
    assert strata.codes_of_groups(["z", "b", "a"], unseen=True).tolist() == [-1, 1, 0]
    for unseen in (False, True):
        assert strata.codes_of_groups([], unseen=unseen).shape == (0,)
    many = Strata.of_groups(range(30))
    with pytest.raises(InputError, match=r"known: '0', '1', '10', .* and 20 more; calibrate with rows of it, or pool="):
        many.codes_of_groups([30], unseen=False)


def test_names_of_groups() -> None:
    """Whole numbers and their text are one group, in whatever container they come."""
    ones = [1, "1", 1.0, "1.0", "1.00", 1, 1, 1, 1]
    strata = Strata.of_groups([*ones, *[True] * 9])
    assert strata.names == ("1", "True")
    assert strata.codes_of_groups([*ones, True], unseen=False).tolist() == [0] * 9 + [1]
    for groups in (["1"], [1], (1,), np.array([1]), np.array(["1"]), np.array([1.0], np.float32), [np.int8(1)]):
        assert strata.codes_of_groups(groups, unseen=False).tolist() == [0]


def test_groups_from_frames() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["a", "b"] * 9
    for column in (pd.Series(names), pd.Series(names, dtype="category"), pl.Series(names), np.array(names)):
        strata = Strata.of_groups(column)
        assert strata.names == ("a", "b")
        assert strata.codes_of_groups(column, unseen=False).tolist() == [0, 1] * 9
    missing = [pd.Series(["a", None]), pl.Series(["a", None]), pd.Series(["a", pd.NA], dtype="string")]
    for column in (*missing, ["a", None], ["a", math.nan]):
        for use in (Strata.of_groups, lambda column: strata.codes_of_groups(column, unseen=True)):
            with pytest.raises(InputError, match=r"groups: row 1 \(counted from 0\) is missing"):
                use(column)


def test_alphas_of_groups() -> None:
    strata = Strata.of_groups(["b", "a"], {"a": FIFTH, "z": Fraction(1, 3)})
    assert strata.alphas == {"a": FIFTH}
    assert [strata.level(i, Fraction(1, 10)) for i in range(2)] == [FIFTH, Fraction(1, 10)]


# All kinds


@pytest.mark.parametrize("conditional", ["label", "", ["group"], True, 0])
def test_a_kind_that_is_not_known_is_refused(conditional: Any) -> None:
    with pytest.raises(
        InputError,
        match=r'conditional is .*: choose None .marginal., "group", "class", "difficulty" or "decision"',
    ):
        Strata(conditional)


def test_what_strata_are_called() -> None:
    every = [Strata(), Strata("class", n_classes=3), Strata("decision", ("keep", "hand over")), Strata.of_bins(())]
    assert [x.shown for x in every] == [[""], [0, 1, 2], ["keep", "hand over"], ["all rows"]]
    assert [len(x) for x in every] == [1, 3, 2, 1]
