"""The calibrator, judged by exact rational arithmetic, by enumeration, and by the law of coverage."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import udcp_dsl
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import (
    Calibration,
    CalibrationWarning,
    Rule,
    Strata,
    calibrate,
    exact_level,
    points_needed,
    rank,
    threshold,
    warn_of_too_few,
)

Floats = NDArray[np.float64]
ThresholdOf = Callable[[Floats, Fraction], float]

LEVELS = st.fractions(min_value=Fraction(1, 200), max_value=Fraction(199, 200), max_denominator=400)
# Few distinct values, so that ties are common; neighbours, signed zeros and infinity among them.
SCORES = st.sampled_from([-2.0, -0.0, 0.0, 5e-324, 0.1, 0.1 + 2**-56, 1.0, 3.0, math.inf])


pytestmark = pytest.mark.filterwarnings("error::udcp_dsl.predict.calibrate.CalibrationWarning")


@pytest.mark.parametrize("module", "levels checked thresholds randomized strata tuning".split())
def test_examples_of_the_docstrings(module: str) -> None:
    found = importlib.import_module(f"udcp_dsl.predict.calibrate.{module}")
    failed, _ = doctest.testmod(found)
    assert failed == 0


# Thresholds


@given(st.lists(st.floats(allow_nan=False), max_size=60), LEVELS)
def test_threshold_is_the_kth_of_the_sorted_scores(scores: list[float], alpha: Fraction) -> None:
    k = rank(len(scores), alpha)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = threshold(scores, alpha)
    assert found == (sorted(scores)[k - 1] if k <= len(scores) else math.inf)
    assert len(caught) == (k > len(scores))


def test_too_few_points_for_a_threshold() -> None:
    with pytest.warns(
        CalibrationWarning, match=r"8 calibration rows are too few: alpha 0\.1 needs 9; .* contains all labels"
    ):
        assert threshold(range(8), 0.1) == math.inf
    assert threshold(range(9), 0.1) == 8.0


def test_threshold_leaves_its_input_as_it_was_and_takes_infinities() -> None:
    scores = np.array([3.0, math.inf, -math.inf, 1.0])
    assert threshold(scores, "1/2") == 3.0
    assert threshold(scores, "1/5") == math.inf  # a score, not a lack of points: no warning
    assert threshold(scores, "4/5") == -math.inf
    assert scores.tolist() == [3.0, math.inf, -math.inf, 1.0]
    assert threshold(np.array([0.1, 0.2], dtype=np.float32), 0.5) == float(np.float32(0.2))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.0, math.nan], "row 1: the score is NaN"),
        ([[0.0, 1.0]], r"shape \(1, 2\): give the scores of the true labels, one number per row"),
        (["a"], "one number per row"),
        ([True], "one number per row"),
        (0.5, "one number per row"),
        ([[1.0], [1.0, 2.0]], "ragged"),
    ],
)
def test_bad_scores(scores: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        threshold(scores, 0.1)
    with pytest.raises(InputError, match=message):
        calibrate(scores, alpha=0.1)


# Calibrations


@pytest.mark.parametrize(
    ("alpha", "tau"), [(0.1, 90.0), ("0.05", 95.0), (Fraction(1, 2), 50.0), (Decimal("0.1"), 90.0)]
)
def test_marginal(alpha: Any, tau: float) -> None:
    c = calibrate(np.arange(100)[::-1], alpha=alpha)
    assert (c.tau(), c.thresholds) == (tau, tau)
    assert (c.n, c.alpha, c.strata, c.too_few) == (100, exact_level(alpha), Strata(), ())


@pytest.mark.parametrize(
    "alpha", [0, 1, 1.5, math.nan, True, None, "ten", [0.1], [0.1, 0.2], (), np.array([0.1])], ids=repr
)
def test_a_calibration_is_at_one_level(alpha: Any) -> None:
    with pytest.raises(InputError, match=r"alpha is .*: give a number strictly between 0 and 1, such as 0\.1"):
        calibrate(np.arange(9), alpha=alpha)


@given(st.lists(st.tuples(SCORES, st.sampled_from("abc")), min_size=1, max_size=40), LEVELS)
def test_groups_and_classes_against_their_own_thresholds(rows: list[tuple[float, str]], alpha: Fraction) -> None:
    warnings.simplefilter("ignore")
    scores, groups = [s for s, _ in rows], [g for _, g in rows]
    y = ["abcd".index(g) for g in groups]
    parts = {g: [s for s, h in rows if h == g] for g in sorted(set(groups))}
    strata = Strata.of_groups(groups)
    codes = strata.codes_of_groups(groups, unseen=False)
    for pool in (False, True):
        by_group = calibrate(scores, alpha=alpha, strata=strata, codes=codes, pool=pool)
        by_class = calibrate(scores, alpha=alpha, strata=Strata("class", n_classes=4), codes=y, pool=pool)
        short = threshold(scores, alpha) if pool else math.inf
        few = {g for g in "abcd" if len(parts.get(g, [])) < points_needed(alpha)}
        expected = {g: short if g in few else threshold(p, alpha) for g, p in parts.items()}
        assert by_group.thresholds == expected
        assert by_group.tau(codes).tolist() == [[expected[g]] for g in groups]  # type: ignore[union-attr]
        assert by_class.tau().tolist() == [[expected.get(g, short) for g in "abcd"]]  # type: ignore[union-attr]
        assert by_class.thresholds.tolist() == [expected.get(g, short) for g in "abcd"]  # type: ignore[union-attr]
        assert by_group.too_few == tuple(sorted(few & set(parts)))
        assert by_class.too_few == tuple(k for k, g in enumerate("abcd") if g in few)


def test_groups_with_alphas_of_their_own() -> None:
    strata = Strata("group", ("a", "b"), alphas={"b": Fraction(1, 2)})
    with pytest.warns(CalibrationWarning, match="alpha 0.05 needs 19, but group 'a' has 10, group 'b' has 10"):
        c = calibrate(np.arange(20), alpha=0.05, strata=strata, codes=np.repeat([0, 1], 10))
    assert c.thresholds == {"a": math.inf, "b": 15.0}
    assert c.too_few == ("a",)
    loaded = Calibration.from_dict(c.as_dict(), c.alpha, strata, c.rule, randomize=False)
    assert loaded.thresholds == c.thresholds
    with pytest.raises(InputError, match=r"10 rows cannot give threshold 15\.0 at 0\.05"):
        Calibration.from_dict(c.as_dict(), c.alpha, Strata("group", ("a", "b")), c.rule, randomize=False)


def test_short_groups_are_named_once_with_what_they_need() -> None:
    strata = Strata("group", ("a", "b", "c d"))
    levels, sizes = (Fraction(1, 10), Fraction(1, 20)), (4, 30, 18)
    with pytest.warns(CalibrationWarning) as caught:
        warn_of_too_few(sizes, levels, strata, Rule(), names=strata.names)
    remedy = (
        "So prediction sets of these groups contain all labels; give more rows or a larger alpha, "
        "or pool=True (smaller sets, no guarantee within those)"
    )
    assert [str(w.message) for w in caught] == [
        "too few calibration rows: alpha 0.1 needs 9, but group 'a' has 4; alpha 0.05 needs 19, but group 'a' has 4, "
        f"group 'c d' has 18. {remedy}"
    ]
    with pytest.warns(CalibrationWarning) as caught:
        c = calibrate(np.arange(52), alpha=0.05, strata=strata, codes=np.repeat([0, 1, 2], sizes))
    assert [str(w.message) for w in caught] == [
        f"too few calibration rows: alpha 0.05 needs 19, but group 'a' has 4, group 'c d' has 18. {remedy}"
    ]
    assert c.thresholds == {"a": math.inf, "b": 33.0, "c d": math.inf}
    assert c.too_few == ("a", "c d")


def test_short_classes_are_named_once() -> None:
    with pytest.warns(CalibrationWarning) as caught:
        c = calibrate(np.arange(10), alpha=0.1, strata=Strata("class", n_classes=14), codes=[1] * 10)
    (message,) = [str(w.message) for w in caught]
    assert "alpha 0.1 needs 9, but class 0 has 0, class 2 has 0," in message
    assert "class 10 has 0 and 3 more. So these labels are in every prediction set; give more" in message
    assert c.tau().tolist() == [[math.inf, 9.0] + [math.inf] * 12]  # type: ignore[union-attr]


def test_decisions_without_points_have_a_threshold_too() -> None:
    with pytest.warns(CalibrationWarning, match="alpha 0.1 needs 9, but decision 'cut' has 0. So prediction sets of"):
        c = calibrate(np.arange(9), alpha=0.1, strata=Strata("decision", ("cut", "wait")), codes=[1] * 9)
    assert c.tau(np.array([0, 1])).tolist() == [[math.inf], [8.0]]  # type: ignore[union-attr]


def test_marginal_and_pooled_warnings() -> None:
    with pytest.warns(
        CalibrationWarning, match=r"needs 9, but there are 5\. So every prediction set contains all labels"
    ):
        c = calibrate(np.arange(5), alpha=0.1)
    assert (c.tau(), c.too_few) == (math.inf, ("",))
    with pytest.warns(CalibrationWarning, match=r"needs 9, but there are 2\. So every prediction set .*larger alpha$"):
        calibrate([1, 2], alpha=0.1, strata=Strata("group", ("a", "b")), codes=[0, 1], pool=True)
    with pytest.warns(
        CalibrationWarning, match=r"contains all labels with a chance of 1 - alpha \(n \+ 1\), whatever the scores"
    ):
        calibrate([1, 2], alpha=0.1, randomize=True)


def test_rows_without_a_stratum_have_the_threshold_of_all_points_only_if_pooled() -> None:
    strata, codes = Strata("group", ("a", "b")), np.repeat([0, 1], 9)
    pooled = calibrate(np.arange(18), alpha=0.1, strata=strata, codes=codes, pool=True)
    assert pooled.tau(np.array([-1, 1, 0])).tolist() == [[17.0], [17.0], [8.0]]  # type: ignore[union-attr]
    assert pooled.tau(np.array([], dtype=np.intp)).shape == (0, 1)  # type: ignore[union-attr]
    weights = np.arange(1.0, 19.0)
    weighted = calibrate(np.arange(18), alpha=0.1, weights=weights, strata=strata, codes=codes, pool=True)
    marginal = calibrate(np.arange(18), alpha=0.1, weights=weights)
    assert np.array_equal(weighted.tau(np.array([-1]), weights=[1.0]), marginal.tau(weights=[1.0]))
    several: list[dict[str, Any]] = [{}, {"randomize": True}, {"weights": weights}]
    for options in several:
        alone = calibrate(np.arange(18), alpha=0.1, strata=strata, codes=codes, **options)
        with pytest.raises(InputError, match="row 2: it has no stratum"):
            alone.tau(np.array([0, 1, -1]), weights=[1.0] * 3 if alone.weighted else None)


GROUPS, CLASSES = Strata("group", ("a", "b")), Strata("class", n_classes=2)
BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"strata": GROUPS}, "codes is an array of object, .*: give the index of the stratum of each of the 2 scores"),
    ({"codes": [0, 1]}, "codes= are given, but there are no strata"),
    ({"strata": CLASSES}, "y is an array of object, .*: give the index of the true label of each of the 2 scores"),
    ({"pool": True}, "pool=True needs"),
    ({"pool": 1}, "pool is 1"),
    ({"randomize": "yes"}, "randomize is 'yes'"),
    ({"strata": GROUPS, "codes": [0]}, r"codes is an array of int64, shape \(1,\): give the index of the stratum"),
    ({"strata": GROUPS, "codes": [0, 2]}, "row 1: codes is 2, outside 0 to 1: give the index of the stratum"),
    ({"strata": GROUPS, "codes": [0, -1]}, "row 1: codes is -1, outside 0 to 1"),
    ({"strata": GROUPS, "codes": ["a", "b"]}, "give the index of the stratum"),
    ({"strata": CLASSES, "codes": [0, 2]}, "row 1: y is 2, outside 0 to 1: give the index of the true label"),
    ({"strata": CLASSES, "codes": [-1, 0]}, "row 0: y is -1, outside 0 to 1"),
    ({"strata": CLASSES, "codes": [0.0, 1.0]}, "give the index of the true label of each of the 2"),
    ({"strata": CLASSES, "codes": [0]}, r"shape \(1,\): give the index"),
    ({"strata": Strata("class", n_classes=0), "codes": [0, 1]}, "give the number of labels"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate([0.0, 1.0], alpha=0.5, **options)


def test_bad_use() -> None:
    with pytest.raises(InputError, match="no calibration scores"):
        calibrate([], alpha=0.1)
    codes = np.zeros(9, dtype=np.intp)
    marginal = calibrate(np.arange(9), alpha=0.1)
    by_class = calibrate(np.arange(9), alpha=0.1, strata=Strata("class", n_classes=1), codes=codes)
    for c in (marginal, by_class):
        with pytest.raises(InputError, match="strata of rows are given, but calibration had none"):
            c.tau(codes)
    for strata in (Strata("group", ("a",)), Strata("decision", ("a",)), Strata.of_bins(())):
        c = calibrate(np.arange(9), alpha=0.1, strata=strata, codes=codes)
        with pytest.raises(InputError, match="needs the stratum of each row"):
            c.tau()
        weighted = calibrate(np.arange(9), alpha=0.1, strata=strata, codes=codes, weights=np.ones(9))
        for rows in (0, 1, 3):
            with pytest.raises(InputError, match=rf"shape \(2,\): give a number for each of {rows} rows"):
                weighted.tau(codes[:rows], weights=[1.0, 1.0])


# Saved and loaded


def bits(data: object) -> object:
    """The data with every float as its bits, so that == tells -0.0 from 0.0 and 1 from 1.0."""
    if isinstance(data, dict):
        return {key: bits(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [bits(value) for value in data]
    return struct.pack("<d", data) if isinstance(data, float) else data


MODES: list[tuple[Strata, list[int] | None]] = [
    (Strata(), None),
    (Strata("group", ("a", "b", "c")), [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]),
    (Strata("class", n_classes=4), [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]),
    (Strata("decision", ("keep", "hand over", "never")), [0] * 8 + [1] * 2),
    (Strata.of_bins((0.25, 0.5)), [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]),
]


@given(
    st.lists(st.floats(allow_nan=False).filter(lambda x: x > -math.inf), min_size=10, max_size=10),
    st.sampled_from(MODES),
    st.sampled_from(["0.1", "1/3", "0.5"]),
    st.booleans(),
    st.booleans(),
)
@example([-0.0] * 10, MODES[0], "0.5", False, True)
@example([5e-324, 0.1, 1 / 3, math.pi, 1e308, math.inf, 2**53 + 2.0, -1e-310, -0.0, 0.0], MODES[1], "1/3", True, True)
def test_round_trip_bit_for_bit(
    scores: list[float], mode: tuple[Strata, list[int] | None], alpha: str, pool: bool, randomize: bool
) -> None:
    warnings.simplefilter("ignore")
    strata, codes = mode
    pool = pool and not strata.is_marginal and not strata.by_difficulty
    c = calibrate(scores, alpha=alpha, strata=strata, codes=codes, pool=pool, randomize=randomize)
    plain = json.loads(json.dumps(c.as_dict(), allow_nan=False))
    loaded = Calibration.from_dict(plain, c.alpha, strata, c.rule, randomize=randomize)
    assert bits(loaded.as_dict()) == bits(c.as_dict())
    assert (loaded.alpha, loaded.strata, loaded.rule, loaded.randomize) == (c.alpha, strata, c.rule, randomize)
    assert (loaded.pooled is None) == (c.pooled is None) == (not pool)
    for mine, theirs in zip(c.all_cells, loaded.all_cells, strict=True):
        assert bits(mine.threshold) == bits(theirs.threshold)
        assert (mine.scores is None) == (theirs.scores is None) == (not randomize)
        if mine.scores is not None and theirs.scores is not None:
            assert mine.scores.tobytes() == theirs.scores.tobytes()


def saved() -> dict[str, Any]:
    c = calibrate(np.arange(20), alpha=0.1, strata=GROUPS, codes=[0, 1] * 10, pool=True, randomize=True)
    data: dict[str, Any] = json.loads(json.dumps(c.as_dict()))
    return data


def load(data: object, alpha: Fraction = Fraction(1, 10), strata: Strata = GROUPS, randomize: bool = True) -> None:
    Calibration.from_dict(data, alpha, strata, Rule(), randomize=randomize)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("cells"),
        lambda d: d.update(more=1),
        lambda d: d.update(cells={}),
        lambda d: d.update(cells=[]),
        lambda d: d.update(cells=d["cells"][:1]),
        lambda d: d.update(weighted=True),
        lambda d: d.update(weighted=0),
        lambda d: d.update(label_weights=[1.0, 1.0]),
        lambda d: d.update(label_weights=1.0),
        lambda d: d["pooled"].update(d["cells"][0]),
        lambda d: d["cells"][0].update(n=11),
        lambda d: d["cells"][0].update(n=True),
        lambda d: d["cells"][0].update(n=-1),
        lambda d: d["cells"][0]["scores"].reverse(),
        lambda d: d["cells"][0]["scores"].append("nan"),
        lambda d: d["cells"][0]["scores"].append(math.nan),
        lambda d: d["cells"][0]["scores"].append(10**400),
        lambda d: d["cells"][0]["scores"].__setitem__(0, "-inf"),
        lambda d: d["cells"][0].update(threshold=16.0),
        lambda d: d["cells"][0].update(threshold=[18.0]),
        lambda d: d["cells"][0].update(threshold=None),
        lambda d: d["cells"][0].update(scores=None),
        lambda d: d["cells"][0].pop("steps"),
        lambda d: d["cells"].__setitem__(0, 3),
    ],
)
def test_damaged_data_are_refused(change: Callable[[dict[str, Any]], object]) -> None:
    data = saved()
    load(data)
    change(data)
    with pytest.raises(InputError):
        load(data)


@pytest.mark.parametrize(
    "other",
    [
        {"alpha": Fraction(1, 2)},
        {"alpha": Fraction(1, 20)},
        {"strata": Strata()},
        {"strata": Strata("group", ("a",))},
        {"strata": Strata("class", n_classes=3)},
        {"strata": Strata.of_bins((0.2, 0.5))},
        {"randomize": False},
    ],
)
def test_data_of_another_calibration_are_refused(other: dict[str, Any]) -> None:
    load(saved())
    with pytest.raises(InputError, match="calibrate and save again"):
        load(saved(), **other)


def test_pooled_points_of_one_threshold_for_all_rows_are_refused() -> None:
    data = calibrate(np.arange(9), alpha=0.1).as_dict()
    load(data, strata=Strata(), randomize=False)
    with pytest.raises(InputError, match="pooled points do not match the cells"):
        load({**data, "pooled": data["cells"][0]}, strata=Strata(), randomize=False)  # type: ignore[index]


def test_a_finite_threshold_of_too_few_points_is_refused() -> None:
    data = calibrate(np.arange(9), alpha=0.1).as_dict()
    data["cells"][0]["n"] = 8  # type: ignore[index]
    with pytest.raises(
        InputError, match=r"8 rows cannot give threshold 8\.0 at 0\.1; the saved calibration is damaged"
    ):
        load(data, strata=Strata(), randomize=False)
    with pytest.raises(InputError, match="expected the keys"):
        load([1])


def test_importing_the_calibrator_is_light() -> None:
    code = (
        "import sys, udcp_dsl.predict.calibrate as c; "
        "print(sorted({'scipy', 'numba', 'pulp', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(udcp_dsl.__file__).parents[1]
    )
    assert done.stdout.strip() == "[]"
