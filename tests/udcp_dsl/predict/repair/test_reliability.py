"""Reliability of p: its numbers by hand, that they are of held-out rows, in files, and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.repair import Repair, fit_repair
from udcp_dsl.predict.repair import fit as fitting
from udcp_dsl.predict.repair.log_loss import PenalizedLogLoss, Point, minimum
from udcp_dsl.predict.repair.reliability import Bin, Reliability, ReliabilityCurve

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = size_of("0..5")
BEFORE = ReliabilityCurve((Bin(0.4, 0.7, 100.0), Bin(0.5, 0.9, 100.0)))
AFTER = ReliabilityCurve((Bin(0.7, 0.71, 100.0), Bin(0.9, 0.88, 100.0)))


def drawn(n: int, exponent: float = 0.4, seed: int = 0, K: int = 6) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows whose p is the true one to the power `exponent`: below 1, a classifier that is too unsure."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(K, 0.5), n) + 1e-9
    y = (np.log(true) + rng.gumbel(size=true.shape)).argmax(axis=1)
    return true**exponent / (true**exponent).sum(axis=1, keepdims=True), y


def fit(P: Any, y: Any, **options: Any) -> Repair:
    return fit_repair(P, y, rng=np.random.default_rng(0), **options)


# The numbers --------------------------------------------------------------------------------------------------------


def test_bins_of_equal_counts_by_hand() -> None:
    rng = np.random.default_rng(0)
    highest, right = rng.random(430), rng.random(430) < 0.6
    found = ReliabilityCurve.of(highest, right, np.ones(430))
    order = np.argsort(highest)
    parts = [order[43 * i : 43 * i + 43] for i in range(10)]
    for own, part in zip(found.bins, parts, strict=True):
        assert own == pytest.approx((highest[part].mean(), right[part].mean(), 43), abs=1e-8)
    error = sum(abs(right[part].mean() - highest[part].mean()) for part in parts) / 10
    assert found.error == pytest.approx(error)


def test_weights_count_and_few_rows_have_fewer_bins() -> None:
    highest, right = np.repeat([0.3, 0.6], 30), np.arange(60) % 3 == 0
    weights = np.where(np.arange(60) < 30, 1.0, 0.5)
    found = ReliabilityCurve.of(highest, right, weights)
    assert found.bins == (Bin(0.3, pytest.approx(1 / 3), 30.0), Bin(0.6, pytest.approx(1 / 3), 15.0))
    assert found.error == pytest.approx((30 * (1 / 3 - 0.3) + 15 * (0.6 - 1 / 3)) / 45)
    assert len(ReliabilityCurve.of(np.linspace(0, 1, 60), right, np.ones(60)).bins) == 3
    assert len(ReliabilityCurve.of(np.linspace(0, 1, 5), right[:5], np.ones(5)).bins) == 1


def test_equal_probabilities_share_a_bin_even_with_other_last_bits() -> None:
    highest = np.where(np.arange(400) % 2 == 0, 0.7, np.nextafter(0.7, 1))
    assert [b.n for b in ReliabilityCurve.of(highest, highest > 0, np.ones(400)).bins] == [400.0]
    assert ReliabilityCurve.of(np.full(50, 1 + 1e-7), highest[:50] > 0, np.ones(50)).bins == (Bin(1.0, 1.0, 50.0),)


@pytest.mark.parametrize(
    ("bins", "verdict"),
    [
        ([(0.4, 0.7, 100), (0.5, 0.9, 100)], "underconfident"),
        ([(0.7, 0.4, 100), (1.0, 0.9, 100)], "overconfident"),
        ([(0.3, 0.6, 100), (0.7, 0.4, 100)], "overconfident for some rows and underconfident for others"),
        ([(0.4, 0.45, 100), (0.5, 0.46, 100)], "right as often as they say"),
        ([(1.0, 1.0, 100)], "right as often as they say"),
        ([(0.5, 0.6, 20)], "right as often as they say"),  # as far as 20 rows can show
    ],
)
def test_the_verdict(bins: Any, verdict: str) -> None:
    assert ReliabilityCurve(tuple(Bin(*b) for b in bins)).verdict == verdict


def test_chance_is_what_a_right_p_has(sizes: Sizes) -> None:
    rng = np.random.default_rng(0)
    highest = rng.uniform(0.3, 1, 400)
    curves = [ReliabilityCurve.of(highest, rng.random(400) < highest, np.ones(400)) for _ in range(sizes.draws)]
    errors = [curve.error for curve in curves]
    assert abs(curves[0].chance - np.mean(errors)) < 5 * np.std(errors) / np.sqrt(len(errors))
    right = sum(curve.verdict == "right as often as they say" for curve in curves)
    assert right >= binom(len(curves), 0.95).ppf(1e-5)


# The fit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["auto", "temperature"])
def test_after_is_of_fits_without_the_rows_fold(kind: str, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folds dealt again, each fit on the other four: what the row's p' would be in use."""
    monkeypatch.setattr(fitting, "_ROUGH", 1e-12)  # else a row at the border of two bins may be in the other
    monkeypatch.setattr(fitting, "SMOOTHINGS", (0.0,))
    monkeypatch.setattr(fitting, "PSEUDO_COUNTS", (5.0,))
    P, y = drawn(250)
    P = P * np.exp(np.linspace(-1, 1, 6))  # favours labels
    P /= P.sum(axis=1, keepdims=True)
    weights = np.where(np.arange(250) % 2 == 0, 1.0, 2.0) if weighted else np.ones(250)
    repair = fit(P, y, kind=kind, weights=weights)
    found = repair.reliability
    assert found is not None
    assert found.after is not None
    c = 5.0 if kind == "auto" else None
    assert (repair.offsets is None) == (c is None)
    own = weights * weights.sum() / (weights @ weights)
    folds = np.random.default_rng(0).permutation(250) % fitting.FOLDS
    repaired = np.empty_like(P)
    for fold in range(fitting.FOLDS):
        training, rest = folds != fold, folds == fold
        objective = PenalizedLogLoss(np.log(P[training]), y[training], own[training], c, prior=c is not None)
        at = minimum(objective, Point(0.0, np.zeros(6)), 1e-12)
        repaired[rest] = Repair(at.exponent, at.offsets).apply(P[rest])
    for curve, p in ((found.before, P), (found.after, repaired)):
        by_hand = ReliabilityCurve.of(p.max(axis=1), p.argmax(axis=1) == y, own)
        np.testing.assert_allclose(curve.bins, by_hand.bins, atol=1e-5)
        assert curve.n == pytest.approx(own.sum())


def test_a_repair_says_what_it_mended() -> None:
    found = fit(*drawn(1000)).reliability
    assert found is not None
    assert found.finding == "probabilities were underconfident; after repair they are right as often as they say"
    assert found.after is not None
    assert found.after.error < found.before.error / 2


def test_where_nothing_is_adopted_p_is_shown_as_it_is() -> None:
    P, y = drawn(500, 1.0)
    repair = fit(P, y)
    assert not repair.adopted
    expected = ReliabilityCurve.of(P.max(axis=1), P.argmax(axis=1) == y, np.ones(500))
    assert repair.reliability == Reliability(expected)
    assert repair.reliability.finding == "probabilities are right as often as they say, and unchanged"


@pytest.mark.parametrize("kind", ["auto", "temperature"])
def test_too_few_rows_have_none(kind: str) -> None:
    P, y = drawn(9)
    assert fit(P, y, kind=kind).reliability is None


# In files -----------------------------------------------------------------------------------------------------------


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    P, y = drawn(1000)
    predictor = udcp.SetPredictor(LOSS, "lac").calibrate(P, [LOSS.labels[k] for k in y])
    predictor.save(tmp_path / "saved.json")
    assert predictor.repair is not None
    again = udcp.SetPredictor.load(tmp_path / "saved.json").repair
    assert again is not None
    assert again.reliability == predictor.repair.reliability is not None
    plain = Repair(2.0, reliability=Reliability(BEFORE)).as_dict()
    assert Repair.from_dict(json.loads(json.dumps(plain))).reliability == Reliability(BEFORE)


def test_a_repair_of_before_has_none() -> None:
    old = {key: value for key, value in Repair(2.0).as_dict().items() if key != "reliability"}
    assert Repair.from_dict(old).reliability is None


GOOD = [[0.4, 0.7, 100.0], [0.5, 0.9, 100.0]]


@pytest.mark.parametrize(
    "fault",
    [
        [],
        "text",
        {"before": GOOD},
        {"before": None, "after": None},
        {"before": GOOD, "after": [], "more": 1},
        {"before": [], "after": None},
        {"before": GOOD, "after": []},
        {"before": GOOD, "after": [0.4, 0.7, 100.0]},
        {"before": GOOD, "after": {"bins": GOOD}},
        {"before": GOOD[::-1], "after": None},
        {"before": [GOOD[0]] * 2, "after": None},
        {"before": [[i / 20, 0.5, 1.0] for i in range(11)], "after": None},
        {"before": [[0.4, 0.7]], "after": None},
        {"before": [[0.4, 0.7, 100.0, 1.0]], "after": None},
        *(
            {"before": [bin_], "after": None}
            for bin_ in (
                [1.1, 0.7, 100.0],
                [-0.1, 0.7, 100.0],
                [0.4, 1.1, 100.0],
                [0.4, 0.7, 0.0],
                [0.4, 0.7, "inf"],
                [0.4, float("nan"), 100.0],
                [0.4, True, 100.0],
                [0.4, "0.7", 100.0],
                [0.4, 0.7, 10**400],
            )
        ),
    ],
    ids=str,
)
def test_a_file_that_was_changed_is_refused(fault: object) -> None:
    good = Repair(2.0, reliability=Reliability(BEFORE, AFTER)).as_dict()
    assert Repair.from_dict(good).reliability == Reliability(BEFORE, AFTER)
    with pytest.raises(InputError):
        Repair.from_dict(good | {"reliability": fault})


def test_what_is_no_reliability_is_refused() -> None:
    with pytest.raises(InputError, match="not a Reliability"):
        Repair(reliability=0.5)  # type: ignore[arg-type]


# Drawn --------------------------------------------------------------------------------------------------------------


def marks(figure: Any) -> list[Any]:
    """Those of each curve, as drawn."""
    return [np.asarray(c.get_offsets()) for c in figure.axes[0].collections if len(c.get_offsets()) > 1]


def test_a_predictor_draws_before_and_after() -> None:
    P, y = drawn(1000)
    predictor = udcp.SetPredictor(LOSS, "lac").calibrate(P, [LOSS.labels[k] for k in y])
    assert predictor.repair is not None
    found = predictor.repair.reliability
    assert found is not None
    assert found.after is not None
    figure = predictor.plot()
    for points, curve in zip(marks(figure), (found.before, found.after), strict=True):
        np.testing.assert_allclose(points, [b[:2] for b in curve.bins])
    assert figure.get_suptitle().replace("\n", " ") == found.finding
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [
        f"p as it is: calibration error {found.before.error:.3f}",
        f"after repair: calibration error {found.after.error:.3f}",
    ]
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_what_is_left_as_it_is_is_drawn_alone() -> None:
    assert len(marks(Repair(kind="auto", n_rows=200, reliability=Reliability(BEFORE)).plot())) == 1


def test_what_cannot_be_drawn_is_refused_with_its_reason() -> None:
    P, y = drawn(400)
    truth = [LOSS.labels[k] for k in y]
    with pytest.raises(InputError, match="not calibrated"):
        udcp.SetPredictor(LOSS, "lac").plot()
    with pytest.raises(InputError, match="no repair requested"):
        udcp.SetPredictor(LOSS, "lac", repair=None).calibrate(P, truth).plot()
    with pytest.raises(InputError, match="a repair needs 300 calibration rows"):
        udcp.SetPredictor(LOSS, "lac").calibrate(P[:200], truth[:200]).plot()
    with pytest.raises(InputError, match=r"when a repair is fitted: probabilities repaired: sharpened \(exponent 2\)"):
        udcp.SetPredictor(LOSS, "lac", repair=Repair(2.0)).calibrate(P, truth).plot()
