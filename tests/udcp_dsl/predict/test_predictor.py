"""`SetPredictor`: the same sets from inputs of every kind, every mode of calibration, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import InputError, OracleError, PredictionSets, SetPredictor
from udcp_dsl.predict.calibrate import DEFAULT_GRID, CalibrationWarning, three_folds
from udcp_dsl.predict.oracle import Oracle

try:
    import torch
except ImportError:
    torch = None  # its cases are left out
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

SPEC = "labels {cat, dog, wolf, lynx}  costs c {wolf: 3, lynx: 2, default: 1}  loss l = sum(c) + 0.1 * size"
LOSS = udcp.loads(SPEC)
LABELS = list(LOSS.labels)
ORACLES = udcp.oracle_names()
every_oracle = pytest.mark.parametrize("oracle", ORACLES)


def points(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities that are right, and true labels by name."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(4), n)
    return P, np.array(LABELS)[np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)]


N, M = 90, 24  # few, for oracles that take their time
P_CAL, Y_CAL = points(N, 1)
P_NEW, Y_NEW = points(M, 2)


def shuffled(P: Any) -> pd.DataFrame:
    """A frame whose columns are not in the order of the labels."""
    return pd.DataFrame(P, columns=LABELS)[["lynx", "cat", "wolf", "dog"]]


KINDS: dict[str, Callable[[Any], Any]] = {
    "list": lambda P: P.tolist(),
    "pandas": shuffled,
    "polars": lambda P: pl.from_pandas(shuffled(P)),
    "by columns": np.asfortranarray,
    "strided": lambda P: np.repeat(P, 2, axis=0)[::2],
}
if torch is not None:
    KINDS |= {
        "torch": torch.from_numpy,
        "torch with a gradient": lambda P: torch.from_numpy(P.copy()).requires_grad_(),
    }


@every_oracle
def test_inputs_of_every_kind_give_the_same_sets(oracle: str) -> None:
    expected = SetPredictor(LOSS, oracle, alpha=0.2).calibrate(P_CAL, Y_CAL).predict_set(P_NEW).mask
    assert expected.any()
    assert not expected.all()
    truths = [Y_CAL.tolist(), pd.Series(Y_CAL), pl.Series(Y_CAL.tolist()), [LABELS.index(y) for y in Y_CAL]]
    if torch is not None:
        truths.append(torch.tensor(truths[-1]))
    for i, kind in enumerate(KINDS.values()):
        predictor = SetPredictor(LOSS, oracle, alpha=0.2).calibrate(kind(P_CAL), truths[i % len(truths)])
        assert np.array_equal(predictor.predict_set(kind(P_NEW)).mask, expected)


@every_oracle
def test_single_precision_of_every_kind(oracle: str) -> None:
    single = P_CAL.astype(np.float32)
    expected = SetPredictor(LOSS, oracle, alpha=0.2).calibrate(single, Y_CAL).predict_set(single).mask
    for kind in KINDS.values():
        predictor = SetPredictor(LOSS, oracle, alpha=0.2).calibrate(kind(single), Y_CAL)
        assert np.array_equal(predictor.predict_set(kind(single)).mask, expected)


@every_oracle
def test_class_names_say_where_the_columns_are(oracle: str) -> None:
    names = ["lynx", "cat", "wolf", "dog"]
    order = [LABELS.index(name) for name in names]
    expected = SetPredictor(LOSS, oracle, alpha=0.2).calibrate(P_CAL, Y_CAL).predict_set(P_NEW)
    predictor = SetPredictor(LOSS, oracle, alpha=0.2, class_names=names).calibrate(P_CAL[:, order], Y_CAL)
    assert np.array_equal(predictor.predict_set(P_NEW[:, order]).mask, expected.mask)
    assert np.array_equal(predictor.predict_set(shuffled(P_NEW)).mask, expected.mask)


def test_positions_beside_class_names_are_called_out() -> None:
    names = ["lynx", "cat", "wolf", "dog"]
    order = [LABELS.index(name) for name in names]
    y = [LABELS.index(y) for y in Y_CAL]
    predictor = SetPredictor(LOSS, "lac", class_names=names)
    with pytest.warns(UserWarning, match=r"positions in loss\.labels; class_names are in another order"):
        predictor.calibrate(P_CAL[:, order], y)
    expected = SetPredictor(LOSS, "lac").calibrate(P_CAL, y).calibrated.thresholds()
    assert predictor.calibrated.thresholds() == expected
    numbers = udcp.loads("labels {10, 20}  loss l = size")
    SetPredictor(numbers, "lac", alpha=0.5, class_names=[20, 10]).calibrate([[0.5, 0.5]], [10])  # a name: no warning


@every_oracle
def test_several_alphas_at_once(oracle: str) -> None:
    options: dict[str, object] = {"lam": 0.1} if oracle == "penalized" else {}
    predictor = SetPredictor(LOSS, oracle, options=options, alpha=[0.3, "1/10", Fraction(1, 20)])
    predictor.calibrate(P_CAL, Y_CAL)
    assert predictor.alphas == (Fraction(3, 10), Fraction(1, 10), Fraction(1, 20))
    masks = [predictor.predict_set(P_NEW, alpha=a).mask for a in (0.3, 0.1, 0.05)]
    assert (masks[0] <= masks[1]).all()
    assert (masks[1] <= masks[2]).all()
    one = SetPredictor(LOSS, oracle, options=options, confidence_level=0.9).calibrate(P_CAL, Y_CAL)
    assert np.array_equal(one.predict_set(P_NEW).mask, masks[1])
    with pytest.raises(InputError, match="calibrated for several alphas: give alpha"):
        predictor.predict_set(P_NEW)
    with pytest.raises(InputError, match=r"not calibrated for alpha 0\.2"):
        predictor.predict_set(P_NEW, alpha=0.2)


@every_oracle
def test_a_group_has_the_threshold_of_its_own_points(oracle: str) -> None:
    options: dict[str, object] = {"lam": 0.1} if oracle == "penalized" else {}
    sites = np.array(["north", "south"])[np.arange(N) % 3 // 2]
    grouped = SetPredictor(LOSS, oracle, options=options, alpha=0.2, conditional="group")
    grouped.calibrate(P_CAL, Y_CAL, groups=sites)
    for site in ("north", "south"):
        own = SetPredictor(LOSS, oracle, options=options, alpha=0.2).calibrate(
            P_CAL[sites == site], Y_CAL[sites == site]
        )
        thresholds: Any = grouped.calibrated.thresholds()
        assert thresholds[site] == own.calibrated.thresholds()
        assert np.array_equal(grouped.predict_set(P_NEW, groups=[site] * M).mask, own.predict_set(P_NEW).mask)


@every_oracle
def test_a_class_has_the_threshold_of_its_own_points(oracle: str) -> None:
    options: dict[str, object] = {"lam": 0.1} if oracle == "penalized" else {}
    by_class = SetPredictor(LOSS, oracle, options=options, alpha=0.2, conditional="class").calibrate(P_CAL, Y_CAL)
    mask = by_class.predict_set(P_NEW).mask
    for i, label in enumerate(LABELS):
        own = SetPredictor(LOSS, oracle, options=options, alpha=0.2)
        members = label == Y_CAL
        own.calibrate(P_CAL[members], Y_CAL[members])
        assert np.array_equal(mask[:, i], own.predict_set(P_NEW).mask[:, i])


def test_groups_and_classes_with_too_few_points() -> None:
    sites = ["north"] * (N - 5) + ["south"] * 5
    predictor = SetPredictor(LOSS, "lac", conditional="group")
    with pytest.warns(CalibrationWarning, match="alpha 0.1 needs 9, but group 'south' has 5"):
        predictor.calibrate(P_CAL, Y_CAL, groups=sites)
    assert predictor.predict_set(P_NEW, groups=["south"] * M).mask.all()
    pooled = SetPredictor(LOSS, "lac", conditional="group", pool=True).calibrate(P_CAL, Y_CAL, groups=sites)
    everyone = SetPredictor(LOSS, "lac").calibrate(P_CAL, Y_CAL).predict_set(P_NEW).mask
    for site in ("south", "never seen"):
        assert np.array_equal(pooled.predict_set(P_NEW, groups=[site] * M).mask, everyone)
    by_class = SetPredictor(LOSS, "lac", conditional="class")
    cats = Y_CAL == "cat"
    with pytest.warns(CalibrationWarning, match="class 1 has 0, class 2 has 0, class 3 has 0"):
        by_class.calibrate(P_CAL[cats], Y_CAL[cats])
    assert by_class.predict_set(P_NEW).mask[:, 1:].all()


@every_oracle
@pytest.mark.parametrize("conditional", [None, "group", "class"])
@pytest.mark.filterwarnings("ignore::udcp_dsl.predict.calibrate.CalibrationWarning")
def test_a_randomized_set_belongs_to_its_row(oracle: str, conditional: Any) -> None:
    """Alone, in a batch, in another order, in another precision, and after calibrating anew: the same set."""
    options: dict[str, object] = {"lam": 0.1} if oracle == "penalized" else {}

    def groups(n: int) -> Any:
        return ["one"] * n if conditional == "group" else None

    def calibrated(seed: int) -> SetPredictor:
        predictor = SetPredictor(
            LOSS, oracle, options=options, alpha=0.3, randomize=True, seed=seed, conditional=conditional
        )
        return predictor.calibrate(P_CAL[:2], Y_CAL[:2], groups=groups(2))  # so few that the draw matters

    predictor = calibrated(7)
    single = P_NEW.astype(np.float32)
    mask = predictor.predict_set(single, groups=groups(M)).mask
    alone = [predictor.predict_set(single[i : i + 1], groups=groups(1)).mask[0] for i in range(M)]
    assert np.array_equal(mask, alone)
    assert np.array_equal(mask[::-1], predictor.predict_set(single[::-1], groups=groups(M)).mask)
    assert np.array_equal(mask, calibrated(7).predict_set(single.astype(float), groups=groups(M)).mask)
    assert not np.array_equal(mask, calibrated(8).predict_set(single, groups=groups(M)).mask)


@every_oracle
def test_nonempty_adds_the_first_label_and_nothing_else(oracle: str) -> None:
    options: dict[str, object] = {"lam": 0.1} if oracle == "penalized" else {}
    predictor = SetPredictor(LOSS, oracle, options=options, alpha=0.7, nonempty=True).calibrate(P_CAL, Y_CAL)
    sets = predictor.predict_set(P_NEW)
    assert sets.sizes.min() == 1
    y = [LABELS.index(label) for label in Y_CAL]
    scores = np.where(predictor.oracle.first(P_CAL) == y, -np.inf, predictor.oracle.score_of(P_CAL, y))
    tau = predictor.calibrated.thresholds()
    assert tau == np.sort(scores)[math.ceil(0.3 * (N + 1)) - 1]
    rest = predictor.oracle.sets(P_NEW, tau)  # type: ignore[arg-type]
    first = predictor.oracle.first(P_NEW)
    extra = sets.mask & ~rest
    assert (extra.sum(axis=1) <= 1).all()
    assert extra[np.arange(M), first].sum() == extra.sum()


def test_an_untuned_penalized_is_tuned_on_folds_of_its_own() -> None:
    predictor = SetPredictor(LOSS, "penalized", alpha=0.1, seed=3).calibrate(P_CAL, Y_CAL)
    folds = three_folds(N, np.random.default_rng(3))
    tuning = predictor.tuning
    assert tuning is not None
    assert (tuning.grid, tuning.n, predictor.calibrated.n) == (DEFAULT_GRID, len(folds[1]), len(folds[2]))
    assert predictor.oracle.options["lam"] == tuning.best
    # Proposition 1, with B the width of the loss's interval, [0, 7.4], and the second fold's rows.
    assert (tuning.lo, tuning.hi) == tuple(LOSS.facts.interval)
    assert tuning.excess == pytest.approx(2 * 7.4 * math.sqrt(math.log(2 * 5 / 0.05) / (2 * 30)), rel=1e-12)
    # Each number of the tuning comes from the fold it should.
    for lam, tau, cost in zip(tuning.grid, tuning.thresholds, tuning.mean_costs, strict=True):
        given = SetPredictor(LOSS, "penalized", options={"lam": lam}).calibrate(P_CAL[folds[0]], Y_CAL[folds[0]])
        assert given.calibrated.thresholds() == tau
        assert given.predict_set(P_CAL[folds[1]]).costs.mean() == pytest.approx(cost, rel=1e-12)
    last = SetPredictor(LOSS, "penalized", options={"lam": tuning.best}).calibrate(P_CAL[folds[2]], Y_CAL[folds[2]])
    assert last.calibrated.thresholds() == predictor.calibrated.thresholds()


def test_a_tuned_lambda_never_sees_the_rows_of_the_threshold() -> None:
    first = SetPredictor(LOSS, "penalized").calibrate(P_CAL, Y_CAL)
    third = three_folds(N, np.random.default_rng(0))[2]
    other = Y_CAL.copy()
    other[third] = "cat"
    second = SetPredictor(LOSS, "penalized").calibrate(P_CAL, other)
    assert second.tuning == first.tuning
    assert second.calibrated.thresholds() != first.calibrated.thresholds()


def test_calibrating_again_tunes_again() -> None:
    """A lambda kept from the first time would have been chosen by rows that may now set the threshold."""
    P, y = points(300, 5)
    again = SetPredictor(LOSS, "penalized", repair=None).calibrate(P_CAL, Y_CAL).calibrate(P, y)
    afresh = SetPredictor(LOSS, "penalized", repair=None).calibrate(P, y)
    assert again.tuning == afresh.tuning
    assert again.calibrated.n == 100
    assert again.calibrated.thresholds() == afresh.calibrated.thresholds()


def test_tuning_needs_three_times_the_points() -> None:
    with pytest.warns(CalibrationWarning) as caught:
        SetPredictor(LOSS, "penalized").calibrate(P_CAL[:12], Y_CAL[:12])
    assert "The 4 rows left for the threshold are too few: alpha 0.1 needs 9. Give 27 rows" in str(caught[0].message)
    assert len(caught) == 2
    with pytest.raises(InputError, match="2 calibration rows cannot be split into three folds"):
        SetPredictor(LOSS, "penalized").calibrate(P_CAL[:2], Y_CAL[:2])
    with pytest.raises(InputError, match="'penalized' tunes its lambda for one alpha"):
        SetPredictor(LOSS, "penalized", alpha=[0.1, 0.2])


def test_prediction_sets() -> None:
    mask = np.array([[True, False, True, False], [False] * 4])
    sets = PredictionSets(LOSS, mask, np.array(["a", "b"]))
    assert len(sets) == 2
    assert sets.labels == [("cat", "wolf"), ()]
    assert sets.sizes.tolist() == [2, 0]
    assert sets.costs.tolist() == pytest.approx([4.2, 0.0])
    frame = sets.to_pandas()
    assert frame.index.tolist() == ["a", "b"]
    assert frame["labels"].tolist() == [("cat", "wolf"), ()]
    assert frame["size"].tolist() == [2, 0]
    predictor = SetPredictor(LOSS, "lac").calibrate(P_CAL, Y_CAL)
    assert predictor.predict_set(P_NEW[:2], ids=[7, "x"]).ids.tolist() == ["7", "x"]  # type: ignore[union-attr]
    assert predictor.predict_set(P_NEW).ids is None
    with pytest.warns(UserWarning, match=r"'b' is the id of rows 1 and 2 .* 2 of 4 rows share"):
        sets = predictor.predict_set(P_NEW[:4], ids=["a", "b", "b", "c"])
    assert sets.ids.tolist() == ["a", "b", "b", "c"]  # type: ignore[union-attr]


def test_logits_and_unnormalized_scores_are_remembered() -> None:
    expected = SetPredictor(LOSS, "lac").calibrate(P_CAL, Y_CAL).predict_set(P_NEW).mask
    logits = SetPredictor(LOSS, "lac").calibrate(np.log(P_CAL) + 5, Y_CAL, logits=True)
    assert np.array_equal(logits.predict_set(np.log(P_NEW) - 3).mask, expected)
    scores = SetPredictor(LOSS, "lac").calibrate(8 * P_CAL, Y_CAL, normalize=True)
    assert np.array_equal(scores.predict_set(0.5 * P_NEW).mask, expected)
    with pytest.raises(InputError, match="logits=True and normalize=True exclude each other"):
        scores.calibrate(P_CAL, Y_CAL, logits=True, normalize=True)


def test_true_labels_of_probability_zero_are_called_out() -> None:
    P = np.eye(4)[np.zeros(100, int)]
    with pytest.warns(CalibrationWarning, match=r"30 of 100 true labels have probability exactly 0.*logits=True"):
        SetPredictor(LOSS, "lac").calibrate(P, ["cat"] * 70 + ["dog"] * 30)


def test_too_few_points_give_full_sets() -> None:
    predictor = SetPredictor(LOSS, "lac", alpha=0.1)
    with pytest.warns(CalibrationWarning, match="alpha 0.1 needs 9, but there are 8"):
        predictor.calibrate(P_CAL[:8], Y_CAL[:8])
    assert predictor.predict_set(P_NEW).mask.all()


def broken(row: int, column: int, value: float) -> Any:
    P = P_NEW.copy()
    P[row, column] = value
    return P


BAD_PROBABILITIES = [
    (broken(3, 1, np.nan), "row 3, label 'dog', is NaN"),
    (broken(3, 1, np.inf), "row 3, label 'dog', is infinite"),
    (broken(3, 1, -0.5), "row 3, label 'dog', is -0.5, which is negative .*logits=True"),
    (broken(3, 1, 1.5), "row 3, label 'dog', is 1.5, which is greater than 1 .*normalize=True"),
    (P_NEW * np.where(np.arange(M) == 3, 0.9, 1)[:, None], "row 3 sums to 0.9, not to 1"),
    (P_NEW[:, :3], "3 columns, but there are 4 labels"),
    (P_NEW[:4, :3], "3 columns, but there are 4 labels; they look transposed: pass probs.T"),
    (P_NEW[0], "a vector of 4; for one instance"),
    (P_NEW[None], r"shape \(1, 24, 4\)"),
    ([[0.5, 0.5, 0.0, 0.0], [1.0]], "ragged: row 1 has 1 entries, row 0 has 4"),
    ([["a"] * 4], "row 0, label 'cat', is 'a', not a number"),
    (P_NEW.astype(complex), "complex numbers"),
    (shuffled(P_NEW).rename(columns={"dog": "dgo"}), "no column for label 'dog'.*did you mean 'dgo'"),
    (shuffled(P_NEW).assign(site=1), "column 'site' is not a label"),
]


@pytest.mark.parametrize(("given", "message"), BAD_PROBABILITIES)
def test_probabilities_that_are_refused(given: Any, message: str) -> None:
    predictor = SetPredictor(LOSS, "base").calibrate(P_CAL, Y_CAL)
    with pytest.raises(InputError, match=message):
        predictor.predict_set(given)
    with pytest.raises(InputError, match=message):
        predictor.calibrate(given, Y_NEW[: len(given)])


BAD_TRUTH = [
    ([4] * M, "row 0 .* is 4, which is out of range; positions run from 0 to 3"),
    ([0] * 5 + [-1] * (M - 5), "row 5 .* is -1, which is negative"),
    (["cat"] * (M - 1) + ["wofl"], "row 23 .* is 'wofl', which is not a label; did you mean 'wolf'"),
    (["cat"] * (M - 1), "23 entries for 24 rows"),
    ([], "0 entries for 24 rows"),
    ([0.0] * M, "row 0 .* is 0.0, a float"),
    ([True] * M, "row 0 .* is True, a truth value"),
    ([None] * M, "row 0 .* is missing"),
    (np.eye(4)[np.zeros(M, int)], r"the shape is \(24, 4\), expected one dimension"),
]


@pytest.mark.parametrize(("given", "message"), BAD_TRUTH)
def test_true_labels_that_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SetPredictor(LOSS, "base").calibrate(P_NEW, given)


def test_groups_and_ids_that_are_refused() -> None:
    plain = SetPredictor(LOSS, "lac").calibrate(P_CAL, Y_CAL)
    with pytest.raises(InputError, match=r"thresholds are not by group .* leave out groups="):
        plain.predict_set(P_NEW, groups=["a"] * M)
    with pytest.raises(InputError, match="sample ids: 2 entries for 24 rows"):
        plain.predict_set(P_NEW, ids=[1, 2])
    grouped = SetPredictor(LOSS, "lac", conditional="group")
    with pytest.raises(InputError, match="by group: give the group of each row, groups="):
        grouped.calibrate(P_CAL, Y_CAL)
    with pytest.raises(InputError, match="groups: 3 entries for 90 rows"):
        grouped.calibrate(P_CAL, Y_CAL, groups=[1, 2, 3])
    with pytest.raises(InputError, match=r"groups: row 1 .* is missing"):
        grouped.calibrate(P_CAL, Y_CAL, groups=["a", None] * 45)
    grouped.calibrate(P_CAL, Y_CAL, groups=["a"] * N)
    with pytest.raises(InputError, match="row 1: group 'b' is not among the calibration rows; known: 'a'"):
        grouped.predict_set(P_NEW, groups=["a"] + ["b"] * (M - 1))


OTHER = udcp.loads(SPEC)
BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"alpha": 0}, InputError, "alpha is 0: give a number strictly between 0 and 1"),
    ({"alpha": 1.0}, InputError, "alpha is 1.0"),
    ({"alpha": -0.1}, InputError, "alpha is -0.1"),
    ({"alpha": float("nan")}, InputError, "alpha is nan"),
    ({"alpha": "a lot"}, InputError, "alpha is 'a lot'"),
    ({"alpha": True}, InputError, "alpha is True"),
    ({"alpha": []}, InputError, "at least one level"),
    ({"alpha": [0.1, "1/10"]}, InputError, "each once"),
    ({"alpha": [0.1, 2]}, InputError, "alpha is 2"),
    ({"confidence_level": 1.5}, InputError, "confidence_level is 1.5"),
    ({"alpha": 0.1, "confidence_level": 0.9}, InputError, "both given"),
    ({"alpha": [0.1], "confidence_level": 0.9}, InputError, "both given"),
    (
        {"conditional": "label"},
        InputError,
        'conditional is \'label\': choose None, "group", "class", "difficulty" or "decision"',
    ),
    ({"randomize": True, "nonempty": True}, InputError, "exclude each other"),
    ({"pool": True}, InputError, 'pool=True needs conditional="group" or "class"'),
    ({"seed": -1}, InputError, "seed is -1"),
    ({"seed": 1.5}, InputError, "seed is 1.5"),
    ({"class_names": ["cat", "dog"]}, InputError, "class_names has 2 names, but there are 4 labels"),
    ({"class_names": ["cat", "dog", "wolf", "wolf"]}, InputError, "class_names: 'wolf' appears twice"),
    ({"class_names": ["cat", "dog", "wolf", "lyxn"]}, InputError, "'lyxn' is not a label; did you mean 'lynx'"),
    ({"oracle": "bass"}, OracleError, "there is no oracle 'bass': did you mean 'base'"),
    ({"oracle": "raps", "options": {"lamb": 1}}, OracleError, "'raps' has no option 'lamb': did you mean 'lam'"),
    ({"oracle": udcp.make_oracle("lac", LOSS), "options": {"lam": 1}}, InputError, "options need the name"),
    ({"oracle": udcp.make_oracle("lac", OTHER)}, InputError, "the oracle was made for another loss"),
    ({"oracle": 7}, TypeError, "oracle is a int: give a name"),
    ({"loss": "size"}, TypeError, "loss is a str, not a Loss: make one with udcp.load"),
    ({"confidences": 0.9}, TypeError, "unexpected keyword argument 'confidences'"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), BAD_SETTINGS)
def test_settings_that_are_refused(settings: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        SetPredictor(**{"loss": LOSS, "oracle": "lac", **settings})


def test_unknown_keywords_are_type_errors() -> None:
    predictor: Any = SetPredictor(LOSS, "lac").calibrate(P_CAL, Y_CAL)
    unknown: dict[str, Any]
    for unknown in ({"group": [1]}, {"alpha": 0.1}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            predictor.calibrate(P_CAL, Y_CAL, **unknown)
    for unknown in ({"tau": 1}, {"logits": True}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            predictor.predict_set(P_NEW, **unknown)


def test_a_refused_calibration_changes_nothing() -> None:
    predictor = SetPredictor(LOSS, "lac").calibrate(P_CAL, Y_CAL)
    before = predictor.fits
    with pytest.raises(InputError):
        predictor.calibrate(np.log(P_CAL), ["?"] * N, logits=True)
    assert predictor.fits is before
    assert not predictor.logits


def test_an_uncalibrated_predictor() -> None:
    predictor = SetPredictor(LOSS, "lac", alpha=0.25)
    assert repr(predictor) == "SetPredictor('l', oracle='lac', alpha=0.25, not calibrated)"
    with pytest.raises(InputError, match="not calibrated"):
        predictor.predict_set(P_NEW)
    with pytest.raises(InputError, match="not calibrated"):
        predictor.save("nowhere.json")
    assert repr(predictor.calibrate(P_CAL, Y_CAL)).endswith("calibrated on 90 rows)")


def test_an_oracle_of_ones_own() -> None:
    class Alphabetical(Oracle):
        name = "alphabetical"

        def _scores(self, P: Any) -> Any:
            return np.broadcast_to([0.0, 1.0, 3.0, 2.0], P.shape)

    predictor = SetPredictor(LOSS, Alphabetical(LOSS), alpha=0.4).calibrate(P_CAL, Y_CAL)
    assert set(predictor.predict_set(P_NEW).labels) == {("cat", "dog", "lynx")}
