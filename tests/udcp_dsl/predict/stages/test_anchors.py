"""The anchor of `price`: where it is taken, what it saves, that coverage holds, and that it is saved."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.predict.calibrate import Rule
from udcp_dsl.predict.stages.anchor import MAX_ROWS, SHARE, Anchor, PricedRows, find_anchor
from udcp_dsl.predict.stages.stage import FitContext, StratumBudget
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from tests.conftest import Sizes

HEAD = """
labels { a, b, c, d, e, f }
costs w { a: 0.05, b: 0.05, default: 1 }
hierarchy h { x { a, b }, y { c, d }, z { e, f } }
"""
MIXED = HEAD + "loss l = 8 * (any({a, b}) and any({c, d, e, f})) + sum(w)"
NESTED = HEAD + "loss l = count(h.level(1)) + sum(w)"


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose probabilities are true."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(6, 0.1), n)
    return P, (P.cumsum(axis=1) > rng.random((n, 1)) * P.sum(axis=1, keepdims=True)).argmax(axis=1)


def test_the_optimum_and_not_the_union_of_what_was_bought_on_the_way() -> None:
    """ANCHOR: {a} is bought at 0.1, {c} at 1.1, and the union costs 9.01 where {c} costs 1."""
    loss = udcp.loads("labels {a, c}  loss l = 8 * (any({a}) and any({c})) + 0.01 * any({a}) + any({c})")
    P = np.array([[0.1, 0.9]])
    plain, anchored = udcp.make_oracle("price", loss), udcp.make_oracle("price", loss, anchor=1.5)
    assert plain.sets(P, 1.5).tolist() == [[True, True]]
    assert anchored.sets(P, 1.5).tolist() == [[False, True]]


def test_sets_cost_less_than_without_and_than_others() -> None:
    loss = udcp.loads(MIXED)
    P, y = drawn(9000, 0)
    cal, new = slice(0, 5000), slice(5000, None)
    predictor = udcp.SetPredictor(loss, alpha=0.2, repair=None).calibrate(P[cal], y[cal])
    assert predictor.anchors is not None
    assert [anchor.n for anchor in predictor.anchors.values()] == [1000]
    assert predictor.calibrated.n == 4000
    measured = udcp.evaluate(predictor, P[new], y[new])
    assert abs(measured.coverage - 0.8) < 0.03
    # An anchor beyond all prices leaves scores as they are without one.
    for oracle, options in (("lac", {}), ("greedy", {}), ("price", {"anchor": 1e6})):
        other = udcp.SetPredictor(loss, oracle, options=options, alpha=0.2).calibrate(P[cal], y[cal])
        assert measured.mean_cost < 0.9 * udcp.evaluate(other, P[new], y[new]).mean_cost, oracle


def test_losses_that_are_proved_nested_give_up_no_row() -> None:
    loss = udcp.loads(NESTED)
    P, y = drawn(300, 1)
    predictor = udcp.SetPredictor(loss, alpha=0.2, repair=None).calibrate(P, y)
    assert predictor.anchors is None
    assert predictor.calibrated.n == 300


def test_few_rows_are_kept_for_the_threshold() -> None:
    """With alpha 0.1 nine rows are needed: of twelve, none can be given up for the anchor."""
    P, y = drawn(12, 2)
    predictor = udcp.SetPredictor(udcp.loads(MIXED), alpha=0.1).calibrate(P, y)
    assert predictor.anchors is None
    assert predictor.calibrated.n == 12


@pytest.mark.parametrize("conditional", [None, "group", "class"])
def test_saved_and_loaded_predict_the_same(conditional: str | None, tmp_path: Path) -> None:
    loss = udcp.loads(MIXED)
    P, y = drawn(800, 3)
    groups = {"groups": np.where(P[:, 0] > 0.1, "one", "two")} if conditional == "group" else {}
    predictor = udcp.SetPredictor(loss, alpha=[0.1, 0.3], conditional=conditional, pool=conditional is not None)
    predictor.calibrate(P, y, **groups)
    assert predictor.anchors is not None
    for anchor in predictor.anchors.values():
        assert set(anchor.by_stratum) == ({"one", "two"} if conditional == "group" else set())
    predictor.save(tmp_path / "saved.json")
    loaded = udcp.SetPredictor.load(tmp_path / "saved.json")
    assert loaded.anchors == predictor.anchors
    for alpha in (0.1, 0.3):
        mine = predictor.predict_set(P, alpha=alpha, **groups).mask
        assert np.array_equal(loaded.predict_set(P, alpha=alpha, **groups).mask, mine)


def test_coverage_is_that_of_its_law(sizes: Sizes) -> None:
    """Mean coverage over many small calibrations: k / (n + 1) of the rows that are left for the threshold."""
    loss = udcp.loads(MIXED)
    covered = []
    for seed in range(sizes.repeats):
        P, y = drawn(60 + 400, 100 + seed)
        predictor = udcp.SetPredictor(loss, alpha=0.2).calibrate(P[:60], y[:60])
        covered.append(predictor.predict_set(P[60:]).mask[np.arange(400), y[60:]].mean())
    n = predictor.calibrated.n
    k = -(-(n + 1) * 4 // 5)
    error = np.std(covered) / np.sqrt(len(covered))
    assert k / (n + 1) - 4 * error < np.mean(covered)


def test_the_anchor_is_the_price_at_which_best_sets_cover() -> None:
    loss = udcp.loads(MIXED)
    P, y = drawn(2000, 4)
    oracle, rows = udcp.make_oracle("price", loss), Rows(loss.labels, P, y)
    m = PricedRows(oracle, rows, None).price(0.8, 1e-3)
    assert m is not None

    def cover(mu: float) -> float:
        return float(oracle.best(P, np.full(len(P), mu))[np.arange(len(P)), y].mean())

    assert cover(m) <= 0.8 < cover(m * 1.002)
    assert find_anchor(oracle, rows, 1.0) is None
    free = udcp.loads(HEAD + "loss l = 8 * (any({a, b}) and any({c, d, e, f})) - size")
    assert find_anchor(udcp.make_oracle("price", free), rows, 0.01) == 0.0


def mean_cost_at(loss: udcp.Loss, scores: np.ndarray, P: np.ndarray, level: float) -> float:
    """The mean cost of the sets of the least threshold at which their mean mass reaches the level."""
    order = np.argsort(scores, axis=None)
    rank = int(np.searchsorted(np.cumsum(P.ravel()[order]), level * len(P)))
    return float(loss.batch(scores <= scores.ravel()[order][rank]).mean())


@pytest.mark.parametrize(
    ("text", "gain"),
    [(MIXED, 0.04), pytest.param("labels 0..5  loss l = size * any({ 0, 1 })", 0.01, marks=pytest.mark.slow)],
)
def test_the_anchor_errs_to_the_side_where_that_costs_less(text: str, gain: float) -> None:
    """Sets of cheap labels cannot grow by dear ones but at many times their price, while sets of these can be cut: on
    other rows, at the same mass, an anchor that is put higher costs less than the price that covers."""
    loss = udcp.loads(text)
    oracle = udcp.make_oracle("price", loss)
    others, _ = drawn(2000, 0)
    costs = []
    for seed in range(8):
        P, y = drawn(500, 1 + seed)
        rows = Rows(loss.labels, P, y)
        anchors = PricedRows(oracle, rows, None).price(0.8, 1e-3), find_anchor(oracle, rows, 0.8)
        scores = [oracle.scores(Rows(loss.labels, others, anchor=np.full(len(others), m))) for m in anchors]
        costs.append([mean_cost_at(loss, each, others, 0.8) for each in scores])
    covering, found = np.mean(costs, axis=0)
    assert found < (1 - gain) * covering


def test_few_rows_do_not_move_the_anchor() -> None:
    """Nor do constants in the loss, or its scale."""
    P, y = drawn(1000, 0)
    found = []
    for text in ("size * any({ 0, 1 })", "100 + size * any({ 0, 1 })", "100 * size * any({ 0, 1 })"):
        oracle = udcp.make_oracle("price", udcp.loads(f"labels 0..5  loss l = {text}"))
        rows = Rows(oracle.loss.labels, P, y)
        few = rows.take(slice(200))
        assert find_anchor(oracle, few, 0.8) == PricedRows(oracle, few, None).price(0.8, 1e-3)
        found.append(find_anchor(oracle, rows, 0.8))
    assert found == pytest.approx([found[0], found[0], 100 * found[0]], rel=0.02)


def test_folds_leave_every_stratum_what_it_needs() -> None:
    rng = np.random.default_rng(0)
    cells = np.repeat([0, 1, 2, 3], [1000, 10, 40, 5])  # a quarter of the second would leave 8
    fold = StratumBudget(cells, 9).draw(SHARE, MAX_ROWS, rng)
    left = np.delete(cells, fold)
    assert [int((left == c).sum()) for c in range(4)] == [750, 9, 30, 5]
    assert len(StratumBudget(np.zeros(100_000, dtype=np.int64), 9).draw(SHARE, MAX_ROWS, rng)) == 1000
    assert Rule().covered(99, Fraction(1, 10)) == pytest.approx(90 / 99)


def test_several_alphas_and_randomized_sets_exclude_each_other() -> None:
    with pytest.raises(udcp.InputError, match="randomize=True needs a single alpha"):
        udcp.SetPredictor(udcp.loads(MIXED), alpha=[0.1, 0.2], randomize=True)


@pytest.mark.parametrize("anchor", [-1, "high", True, float("nan")])
def test_an_anchor_is_a_price(anchor: object) -> None:
    with pytest.raises(udcp.OracleError, match="anchor must be a price"):
        udcp.make_oracle("price", udcp.loads(MIXED), anchor=anchor)


def test_anchors_that_were_tampered_with_are_refused() -> None:
    context = FitContext(udcp.Promise(), udcp.make_oracle("price", udcp.loads(MIXED)))
    for overall, by_stratum in ((-1.0, {}), (True, {}), ("1", {}), (1.0, {"north": float("inf")})):
        with pytest.raises(udcp.InputError, match="not a price"):
            Anchor.from_dict({"n": 10, "overall": overall, "by_stratum": by_stratum}, context)
    with pytest.raises(udcp.InputError, match="damaged"):
        Anchor.from_dict({"n": 0, "overall": 1.0, "by_stratum": {}}, context)
    without = FitContext(udcp.Promise(), udcp.make_oracle("lac", udcp.loads(MIXED)))
    with pytest.raises(udcp.InputError, match="do not match"):
        Anchor.from_dict({"n": 10, "overall": 1.0, "by_stratum": {}}, without)
    assert Anchor.from_dict({"n": 10, "overall": 1.0, "by_stratum": {}}, context).rows_used == 10
