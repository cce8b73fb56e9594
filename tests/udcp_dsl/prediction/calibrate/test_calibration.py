"""The calibrator, judged by exact rational arithmetic, by enumeration, and by the law of coverage."""

from __future__ import annotations

import doctest
import importlib
import itertools
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
from udcp_dsl.prediction.calibrate import (
    Calibration,
    CalibrationWarning,
    Parts,
    calibrate,
    exact_level,
    levels_of,
    points_needed,
    rank,
    show_level,
    threshold,
)

Floats = NDArray[np.float64]
ThresholdOf = Callable[[Floats, Fraction], float]

LEVELS = st.fractions(min_value=Fraction(1, 200), max_value=Fraction(199, 200), max_denominator=400)
# Few distinct values, so that ties are common; neighbours, signed zeros and infinity among them.
SCORES = st.sampled_from([-2.0, -0.0, 0.0, 5e-324, 0.1, 0.1 + 2**-56, 1.0, 3.0, math.inf])


pytestmark = pytest.mark.filterwarnings("error::udcp_dsl.prediction.calibrate.CalibrationWarning")


@pytest.mark.parametrize("module", ["levels", "checked_arrays", "calibration", "randomized", "tuning", "plain"])
def test_examples_of_the_docstrings(module: str) -> None:
    found = importlib.import_module(f"udcp_dsl.prediction.calibrate.{module}")
    failed, _ = doctest.testmod(found)
    assert failed == 0


# Levels and ranks


@pytest.mark.parametrize(
    "alpha",
    [0.1, "0.1", " 0.10 ", "1/10", "1e-1", ".1", Decimal("0.1"), Fraction(1, 10)]
    + [kind(0.1) for kind in (np.float64, np.float32, np.float16)],
)
def test_a_level_is_the_decimal_as_written(alpha: Any) -> None:
    assert exact_level(alpha) == Fraction(1, 10)


NO_LEVELS: list[object] = [
    0,
    1,
    0.0,
    1.0,
    -0.1,
    1.5,
    10,
    math.nan,
    math.inf,
    Decimal("NaN"),
    Fraction(0),
    Fraction(3, 2),
]
NO_LEVELS += [True, False, np.True_, None, [0.1], 0.1j, b"0.1", "", "ten", "nan", "1/0", "0.1.2", "10%"]
NO_LEVELS += ["1e-999999999", Decimal("1e-999999999"), "0." + "1" * 10_000, "\u0661/\u0662"]  # too long; other digits


@pytest.mark.parametrize("alpha", NO_LEVELS, ids=lambda alpha: repr(alpha)[:20])
def test_a_level_outside_0_1_or_no_number_is_refused(alpha: Any) -> None:
    with pytest.raises(InputError, match=r"alpha is .*: give a number strictly between 0 and 1, such as 0\.1"):
        exact_level(alpha)


def test_alpha_or_confidence_level() -> None:
    assert levels_of() == (Fraction(1, 10),)
    assert levels_of(0.05) == levels_of(confidence_level=0.95) == (Fraction(1, 20),)
    assert levels_of(confidence_level=np.float32(0.9)) == (Fraction(1, 10),)
    for alpha in (0.1, [0.1]):
        with pytest.raises(InputError, match="both given: give one"):
            levels_of(alpha, 0.9)
    with pytest.raises(InputError, match="confidence_level is 90: give a number strictly between 0 and 1"):
        levels_of(confidence_level=90)


@pytest.mark.parametrize("alpha", [x for x in NO_LEVELS if x not in (None, [0.1])], ids=lambda alpha: repr(alpha)[:20])
def test_one_that_is_no_level_is_refused_alone_and_among_others(alpha: Any) -> None:
    for alphas in (alpha, [0.1, alpha], np.array([alpha], dtype=object)):
        with pytest.raises(InputError, match=r"alpha is .*: give a number strictly between 0 and 1, such as 0\.1"):
            levels_of(alphas)


def test_several_levels_stay_in_order() -> None:
    expected = (Fraction(1, 5), Fraction(1, 10))
    for several in ([0.2, "0.1"], ("1/5", 0.1), np.array([0.2, 0.1], np.float32), iter([0.2, 0.1])):
        assert levels_of(several) == expected


def test_levels_in_messages() -> None:
    shown = [show_level(exact_level(a)) for a in ("0.10", "1/3", "0.1000000000000000000001", "1e-5")]
    assert shown == ["0.1", "1/3", "1000000000000000000001/10000000000000000000000", "1e-05"]


def brute_rank(n: int, p: int, q: int) -> int:
    """The least k with k / (n + 1) >= 1 - p/q, found by counting."""
    return next(k for k in itertools.count() if k * q >= (n + 1) * (q - p))


def test_rank_and_points_needed_against_counting() -> None:
    for p in range(1, 40):
        alpha = Fraction(p, 40)
        ranks = [brute_rank(n, p, 40) for n in range(130)]
        assert [rank(n, alpha) for n in range(130)] == [rank(n, float(alpha)) for n in range(130)] == ranks
        assert points_needed(alpha) == next(n for n in range(130) if ranks[n] <= n)


@pytest.mark.parametrize(
    ("n", "alpha", "k", "in_floats"),
    [(9, 0.7, 3, 4), (249, 0.172, 207, 208), (999, 0.059, 941, 942), (9, 0.09999999999999999, 10, 9)],
)
def test_rank_where_floats_are_one_off(n: int, alpha: float, k: int, in_floats: int) -> None:
    assert math.ceil((n + 1) * (1 - alpha)) == in_floats
    assert rank(n, alpha) == k


THIRD = (10**18, "1/3", (2 * 10**18 + 4) // 3)


@pytest.mark.parametrize(
    ("n", "alpha", "k"), [(9, 0.1, 9), (99, 0.05, 95), (99, 0.1, 90), (8, 0.1, 9), (0, 0.1, 1), THIRD]
)
def test_known_ranks(n: int, alpha: Any, k: int) -> None:
    assert rank(n, alpha) == k


@pytest.mark.parametrize("n", [-1, 1.5, True, "9"])
def test_rank_refuses_what_is_no_count(n: Any) -> None:
    with pytest.raises(InputError, match="whole number of rows"):
        rank(n, 0.1)


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
        calibrate(scores, alphas=0.1)


# Calibrations


def test_marginal_with_several_alphas() -> None:
    c = calibrate(np.arange(100)[::-1], alphas=[0.1, "0.05", Fraction(1, 2)])
    assert (c.tau(0.1), c.tau(0.05), c.tau("1/2")) == (90.0, 95.0, 50.0)
    assert (c.n, c.conditional, c.thresholds("0.5")) == (100, None, 50.0)
    with pytest.raises(InputError, match=r"not calibrated for alpha 0\.2: choose from 0\.1, 0\.05, 0\.5"):
        c.tau(0.2)
    with pytest.raises(InputError, match="several alphas: choose one"):
        c.tau()
    assert calibrate(np.arange(9), alphas=Decimal("0.1")).tau() == 8.0
    with pytest.raises(InputError, match=r"alpha is 0\.1, 0\.1: give at least one level, each once"):
        calibrate(np.arange(9), alphas=[0.1, "0.10"])
    with pytest.raises(InputError, match="alpha is an empty list: give at least one level"):
        calibrate(np.arange(9), alphas=[])


@given(
    st.lists(st.tuples(SCORES, st.sampled_from("abc")), min_size=1, max_size=40),
    st.lists(LEVELS, min_size=1, unique=True),
)
def test_groups_and_classes_against_their_own_thresholds(rows: list[tuple[float, str]], alphas: list[Fraction]) -> None:
    warnings.simplefilter("ignore")
    scores, groups = [s for s, _ in rows], [g for _, g in rows]
    y = ["abcd".index(g) for g in groups]
    parts = {g: [s for s, h in rows if h == g] for g in sorted(set(groups))}
    for pool in (False, True):
        by_group = calibrate(scores, alphas=alphas, parts=Parts("group", groups), pool=pool)
        by_class = calibrate(scores, alphas=alphas, parts=Parts("class", y=y, n_classes=4), pool=pool)
        for alpha in alphas:
            short = threshold(scores, alpha) if pool else math.inf
            expected = {g: threshold(p, alpha) if len(p) >= points_needed(alpha) else short for g, p in parts.items()}
            assert by_group.thresholds(alpha) == expected
            assert by_group.tau(alpha, groups=groups, n=len(rows)).tolist() == [[expected[g]] for g in groups]  # type: ignore[union-attr]
            assert by_class.tau(alpha).tolist() == [[expected.get(g, short) for g in "abcd"]]  # type: ignore[union-attr]
            assert by_class.thresholds(alpha).tolist() == [expected.get(g, short) for g in "abcd"]  # type: ignore[union-attr]
            assert set(by_group.too_few(alpha)) == {g for g, p in parts.items() if len(p) < points_needed(alpha)}


def test_short_groups_are_named_once_with_what_they_need() -> None:
    groups = ["a"] * 4 + ["b"] * 30 + ["c d"] * 18
    with pytest.warns(CalibrationWarning) as caught:
        c = calibrate(np.arange(52), alphas=[0.1, 0.05], parts=Parts("group", groups))
    assert [str(w.message) for w in caught] == [
        "too few calibration rows: alpha 0.1 needs 9, but group 'a' has 4; alpha 0.05 needs 19, but group 'a' has 4, "
        "group 'c d' has 18. So prediction sets of these groups contain all labels; give more rows or a larger alpha, "
        "or pool=True (smaller sets, no guarantee within those)"
    ]
    assert c.thresholds(0.05) == {"a": math.inf, "b": 33.0, "c d": math.inf}
    assert (c.too_few(0.1), c.too_few(0.05)) == (("a",), ("a", "c d"))


def test_short_classes_are_named_once() -> None:
    with pytest.warns(CalibrationWarning) as caught:
        c = calibrate(np.arange(10), alphas=0.1, parts=Parts("class", y=[1] * 10, n_classes=14))
    (message,) = [str(w.message) for w in caught]
    assert "alpha 0.1 needs 9, but class 0 has 0, class 2 has 0," in message
    assert "class 10 has 0 and 3 more. So these labels are in every prediction set; give more" in message
    assert c.tau().tolist() == [[math.inf, 9.0] + [math.inf] * 12]  # type: ignore[union-attr]


def test_marginal_and_pooled_warnings() -> None:
    with pytest.warns(
        CalibrationWarning, match=r"needs 9, but there are 5\. So every prediction set contains all labels"
    ):
        assert calibrate(np.arange(5), alphas=0.1).tau() == math.inf
    with pytest.warns(CalibrationWarning, match=r"needs 9, but there are 2\. So every prediction set .*larger alpha$"):
        calibrate([1, 2], alphas=0.1, parts=Parts("group", ["a", "b"]), pool=True)
    with pytest.warns(
        CalibrationWarning, match=r"contains all labels with a chance of 1 - alpha \(n \+ 1\), whatever the scores"
    ):
        calibrate([1, 2], alphas=0.1, randomize=True)


def test_groups_never_seen() -> None:
    groups = ["a"] * 9 + ["b"] * 9
    c = calibrate(np.arange(18), alphas=0.1, parts=Parts("group", groups))
    with pytest.raises(InputError, match="row 2: group 'z' is not among the calibration rows; known: 'a', 'b'; calib"):
        c.tau(groups=["a", "b", "z"])
    pooled = calibrate(np.arange(18), alphas=0.1, parts=Parts("group", groups), pool=True)
    assert pooled.tau(groups=["z", "b", "a"]).tolist() == [[17.0], [17.0], [8.0]]  # type: ignore[union-attr]
    assert pooled.tau(groups=[]).shape == (0, 1)  # type: ignore[union-attr]


def test_names_of_groups() -> None:
    """Whole numbers and their text are one group, in whatever container they come."""
    scores, ones = np.arange(18), [1, "1", 1.0, "1.0", "1.00", 1, 1, 1, 1]
    c = calibrate(scores, alphas=0.1, parts=Parts("group", [*ones, *[True] * 9]))
    assert c.thresholds() == {"1": 8.0, "True": 17.0}
    for groups in (["1"], [1], (1,), np.array([1]), np.array(["1"]), np.array([1.0], np.float32), [np.int8(1)]):
        assert c.tau(groups=groups).tolist() == [[8.0]]  # type: ignore[union-attr]


def test_groups_from_frames() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["a", "b"] * 9
    expected = {"a": 16.0, "b": 17.0}
    for column in (pd.Series(names), pd.Series(names, dtype="category"), pl.Series(names), np.array(names)):
        assert calibrate(np.arange(18), alphas=0.1, parts=Parts("group", column)).thresholds() == expected
    for missing in (pd.Series(["a", None]), pl.Series(["a", None]), pd.Series(["a", pd.NA], dtype="string")):
        with pytest.raises(InputError, match=r"groups: row 1 \(counted from 0\) is missing"):
            calibrate([1, 2], alphas=0.5, parts=Parts("group", missing))


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"conditional": "label"},
        'conditional is \'label\': choose None .marginal., "group", "class", "difficulty" or "decision"',
    ),
    ({"conditional": "group"}, "groups= and conditional="),
    ({"groups": ["a", "b"]}, "groups= and conditional="),
    ({"conditional": "class", "y": [0, 1]}, "y=, n_classes= and conditional="),
    ({"y": [0, 1], "n_classes": 2}, "y=, n_classes= and conditional="),
    ({"pool": True}, "pool=True needs"),
    ({"conditional": "group", "groups": ["a"]}, "groups: 1 entries for 2 rows"),
    ({"conditional": "group", "groups": ["a", None]}, r"groups: row 1 \(counted from 0\) is missing"),
    ({"conditional": "group", "groups": ["a", math.nan]}, r"groups: row 1 \(counted from 0\) is missing"),
    ({"conditional": "class", "y": [0, 2], "n_classes": 2}, "row 1: y is 2, outside 0 to 1"),
    ({"conditional": "class", "y": [-1, 0], "n_classes": 2}, "row 0: y is -1, outside 0 to 1"),
    ({"conditional": "class", "y": [0.0, 1.0], "n_classes": 2}, "give the index of the true label of each of the 2"),
    ({"conditional": "class", "y": [0], "n_classes": 2}, r"shape \(1,\): give the index"),
    ({"conditional": "class", "y": [0, 1], "n_classes": 0}, "give the number of labels"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    parts = {name: option for name, option in options.items() if name != "pool"}
    with pytest.raises(InputError, match=message):
        calibrate([0.0, 1.0], alphas=0.5, parts=Parts(**parts), pool="pool" in options)


def test_bad_use() -> None:
    with pytest.raises(InputError, match="no calibration scores"):
        calibrate([], alphas=0.1)
    marginal = calibrate(np.arange(9), alphas=0.1)
    with pytest.raises(InputError, match='calibrate with conditional="group"'):
        marginal.tau(groups=["a"])
    by_group = calibrate(np.arange(9), alphas=0.1, parts=Parts("group", ["a"] * 9))
    with pytest.raises(InputError, match="needs the group of each row"):
        by_group.tau()
    with pytest.raises(InputError, match="groups: 1 entries for 2 rows"):
        by_group.tau(groups=["a"], n=2)


# Saved and loaded


def bits(data: object) -> object:
    """The data with every float as its bits, so that == tells -0.0 from 0.0 and 1 from 1.0."""
    if isinstance(data, dict):
        return {key: bits(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [bits(value) for value in data]
    return struct.pack("<d", data) if isinstance(data, float) else data


MODES: list[dict[str, Any]] = [
    {},
    {"conditional": "group", "groups": list("abbbcccccc")},
    {"conditional": "class", "y": [0, 1, 1, 1, 2, 2, 2, 2, 2, 2], "n_classes": 4},
]


@given(
    st.lists(st.floats(allow_nan=False).filter(lambda x: x > -math.inf), min_size=10, max_size=10),
    st.sampled_from(MODES),
    st.booleans(),
    st.booleans(),
)
@example([-0.0] * 10, {}, False, True)
@example([5e-324, 0.1, 1 / 3, math.pi, 1e308, math.inf, 2**53 + 2.0, -1e-310, -0.0, 0.0], MODES[1], True, True)
def test_round_trip_bit_for_bit(scores: list[float], mode: dict[str, Any], pool: bool, randomize: bool) -> None:
    warnings.simplefilter("ignore")
    c = calibrate(scores, alphas=[0.1, "1/3", 0.5], parts=Parts(**mode), pool=pool and bool(mode), randomize=randomize)
    loaded = Calibration.from_dict(json.loads(json.dumps(c.as_dict(), allow_nan=False)))
    assert bits(loaded.as_dict()) == bits(c.as_dict())
    for mine, theirs in zip(c.all_cells, loaded.all_cells, strict=True):
        assert bits(mine.thresholds) == bits(theirs.thresholds)
        assert (mine.scores is None) == (theirs.scores is None) == (not randomize)
        if mine.scores is not None and theirs.scores is not None:
            assert mine.scores.tobytes() == theirs.scores.tobytes()


def saved() -> dict[str, Any]:
    c = calibrate(np.arange(20), alphas=[0.1, 0.5], parts=Parts("group", list("ab") * 10), pool=True, randomize=True)
    data: dict[str, Any] = json.loads(json.dumps(c.as_dict()))
    return data


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("alphas"),
        lambda d: d.update(more=1),
        lambda d: d.update(conditional="none"),
        lambda d: d.update(conditional=["group"]),
        lambda d: d.update(conditional=None),
        lambda d: d.update(conditional="class"),
        lambda d: d.update(alphas=["1/10"]),
        lambda d: d.update(alphas=[0.1, 0.5]),
        lambda d: d.update(alphas=["1/10", "3/2"]),
        lambda d: d.update(groups=["a"]),
        lambda d: d.update(groups=["a", "a"]),
        lambda d: d.update(cells={}),
        lambda d: d.update(cells=d["cells"][:1]),
        lambda d: d.update(randomize=False),
        lambda d: d.update(randomize=1),
        lambda d: d["pooled"].update(d["cells"][0]),
        lambda d: d["cells"][0].update(n=11),
        lambda d: d["cells"][0].update(n=True),
        lambda d: d["cells"][0]["scores"].reverse(),
        lambda d: d["cells"][0]["scores"].append("nan"),
        lambda d: d["cells"][0]["scores"].append(math.nan),
        lambda d: d["cells"][0]["scores"].append(10**400),
        lambda d: d["cells"][0]["thresholds"].__setitem__(0, 17.0),
        lambda d: d["cells"][0]["thresholds"].append(1.0),
        lambda d: d["cells"][0].update(scores=None),
        lambda d: d["cells"].__setitem__(0, 3),
    ],
)
def test_damaged_data_are_refused(change: Callable[[dict[str, Any]], object]) -> None:
    data = saved()
    Calibration.from_dict(data)
    change(data)
    with pytest.raises(InputError):
        Calibration.from_dict(data)


def test_a_finite_threshold_of_too_few_points_is_refused() -> None:
    data = calibrate(np.arange(9), alphas=0.1).as_dict()
    data["cells"][0]["n"] = 8  # type: ignore[index]
    with pytest.raises(
        InputError, match=r"8 rows cannot give threshold 8\.0 at 0\.1; the saved calibration is damaged"
    ):
        Calibration.from_dict(data)
    with pytest.raises(InputError, match="expected the keys"):
        Calibration.from_dict([1])


def test_importing_the_calibrator_is_light() -> None:
    code = (
        "import sys, udcp_dsl.prediction.calibrate as c; "
        "print(sorted({'scipy', 'numba', 'pulp', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(udcp_dsl.__file__).parents[1]
    )
    assert done.stdout.strip() == "[]"
