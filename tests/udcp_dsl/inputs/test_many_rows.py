"""Rows of a loss with inputs are scored together, with the bits of the oracle of each row's own loss."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.udcp_dsl.inputs.test_language import LOSSES, loss_of
from tests.udcp_solvers.brute_force import price_scores
from udcp_dsl.check import GeneratedSpec, drawn_inputs, specs
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.per_row import NotVectorised, Patched, PerRow, Split, joined
from udcp_dsl.predict import oracle_by_row
from udcp_dsl.predict.oracle import Oracle
from udcp_dsl.predict.oracle_by_row import OracleByRow
from udcp_dsl.rows.rows import Rows
from udcp_solvers.prices import enumeration

OPTIONS: dict[str, dict[str, Any]] = {"penalized": {"lam": 0.1}}
ORACLES = ("base", "lac", "raps", "penalized", "ratio", "greedy", "price")


def rows(K: int, n: int, seed: int) -> Any:
    """Rows with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.6), n)
    P[: n // 3] = np.eye(K)[rng.integers(0, K, n // 3)] * 0.5 + 0.5 / K
    return P


def together(loss: udcp.Loss, name: str) -> OracleByRow | None:
    try:
        made = udcp.make_oracle(name, loss, **OPTIONS.get(name, {}))
    except OracleError:
        return None
    return made if isinstance(made, OracleByRow) else None


def assert_bits(loss: udcp.Loss, name: str, inputs: Any, P: Any, seed: int) -> int:
    """All faces of the rows together against the oracle of each row's own loss; how many rows were scored together."""
    made = together(loss, name)
    if made is None:
        return 0
    n, K = P.shape
    every, checked = np.arange(n), loss.inputs_of(inputs, n)
    assert checked is not None
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    singles = [udcp.make_oracle(name, loss._at(checked.row(i)), **OPTIONS.get(name, {})) for i in range(n)]
    rows = Rows(loss.labels, P, inputs=checked)
    assert_faces(made, singles, rows, y)
    if made.has_best:
        anchors = np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 6, n))
        assert_faces(made, singles, rows.with_columns(anchor=anchors), y)
        mu = rng.uniform(0, 6, n)
        best = [one.best(P[i : i + 1], mu[i : i + 1])[0] for i, one in enumerate(singles)]
        np.testing.assert_array_equal(made.best(rows, mu), best)
    groups = made._oracle_groups(checked)
    return sum(len(every[some]) for some, oracle in groups if len(every[some]) > 1 and oracle is not None)


def assert_faces(many: Oracle, singles: Any, rows: Rows, y: Any) -> None:
    alone = [rows.take(slice(i, i + 1)).with_columns(inputs=None) for i in range(len(rows))]
    scores = np.array([one.scores(row)[0] for one, row in zip(singles, alone, strict=True)])
    np.testing.assert_array_equal(many.scores(rows), scores)
    np.testing.assert_array_equal(many.score_of(rows, y), scores[np.arange(len(rows)), y])
    tau = float(np.median(scores[np.isfinite(scores)])) if np.isfinite(scores).any() else 0.0
    np.testing.assert_array_equal(many.sets(rows, tau), scores <= tau)
    np.testing.assert_array_equal(
        many.first(rows), [one.first(row)[0] for one, row in zip(singles, alone, strict=True)]
    )


def check(spec: GeneratedSpec, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_by_row, "_MIN_STRUCTURE_ROWS", 2)
    loss = spec.compile()
    inputs, P = drawn_inputs(loss.inputs, 10, np.random.default_rng(seed)), rows(loss.K, 10, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ORACLES:
            assert_bits(loss, name, inputs, P, seed)
        if loss.limits:
            limited = loss.with_multipliers([0.7] * len(loss.limits))
            for name in ("price", "greedy"):
                assert_bits(limited, name, drawn_inputs(limited.inputs, 10, np.random.default_rng(seed)), P, seed)
        monkeypatch.setattr(enumeration, "MOST", 0)  # by the search, where all sets of few labels were looked at
        assert_bits(loss, "price", inputs, P, seed)
        monkeypatch.undo()


@pytest.mark.slow
@given(spec=specs(inputs=True), seed=st.integers(0, 99))
def test_rows_together_have_the_bits_of_rows_alone(spec: GeneratedSpec, seed: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(spec, seed, monkeypatch)


# Some losses, with more labels --------------------------------------------------------------------------------------

K = 24
MANY = f"""labels 0..{K - 1}
categories team {{ t0: {{ 0..5 }}, t1: {{ 6..11 }}, t2: {{ 12..17 }}, t3: {{ 18..23 }} }}
categories cross {{ c0: {{ 0, 7, 14 }}, c1: {{ 3, 8, 20 }}, c2: {{ 1, 2, 6, 21 }} }}
hierarchy tree {{ p {{ 0..9 }}, q {{ 10..15 }}, r {{ 16..23 }} }}
category A {{ 0..4 }}
category B {{ 8..13 }}
input km in [0, 200]
input turn in [-3, 4]
costs fee per row in [0.5, 50]
costs gain per row in [-5, 5]
costs queue of team per row in [0, 60]
"""
# By oracle, whether rows are scored together.
TOGETHER = {
    "sum(fee) + 0.1 * km * size": ("price", "ratio", "penalized", "greedy"),
    "sum(fee) + count(team, queue) + 0.1 * km * any(A)": ("price", "penalized", "greedy"),
    "sum(fee) + count(team, queue) + count(cross)": ("price", "penalized", "greedy"),
    "sum(gain) + min(km, count(team, queue))": ("price", "penalized", "greedy"),
    "0.01 * km * max(size - 3, 0) ^ 2 + sum(fee)": ("price", "penalized", "greedy"),
    "sum(fee) + km * (any(A) and any(B)) + count(team, queue)": ("price", "penalized", "greedy"),
    "min(km, sum(fee) + 3 * (any(A) and any(B)))": ("price", "penalized", "greedy"),
    "if km > 100 then sum(fee) + 5 * (any(A) and any(B)) else 3 * size + 2 * any(B)": ("price", "penalized", "greedy"),
    "5 * (sum(fee) > km) + size": ("price", "penalized", "greedy"),
    "0.1 * km * max(count(team) - 1, 0) ^ 2 + size + (turn > 0) * 3 * (size >= 2)": ("price", "penalized", "greedy"),
    "km * diameter(tree) + sum(fee)": ("penalized", "greedy"),
    "max(fee) + 0.5 * size": (),
}


def inputs_of(loss: udcp.Loss, n: int, seed: int) -> dict[str, Any]:
    """Inputs without round numbers: rows have one structure, but for comparisons of the row."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.uniform(x.low, x.high, (n,) if x.width is None else (n, x.width)) for name, x in loss.inputs.items()
    }


@pytest.mark.parametrize("text", TOGETHER)
def test_rows_of_one_structure_are_scored_together(text: str) -> None:
    loss = udcp.loads(f"{MANY}loss l = {text}")
    inputs, P = inputs_of(loss, 24, 1), rows(K, 24, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: assert_bits(loss, name, inputs, P, 2) for name in ("price", "ratio", "penalized", "greedy")}
    assert {name for name, many in found.items() if many >= 16} == set(TOGETHER[text])


def test_rows_that_differ_in_structure_are_parted() -> None:
    """A weight of 0 leaves a category out, and costs that tie make labels interchangeable."""
    loss = udcp.loads(f"{MANY}loss l = sum(fee) + km * (any(A) and any(B)) + count(team, queue)")
    inputs, P = inputs_of(loss, 40, 3), rows(K, 40, 3)
    inputs["km"][::3] = 0.0
    inputs["queue"][10:20, 1] = 0.0
    inputs["fee"][5:30] = inputs["fee"][5:30].clip(6, 45).round(-1)
    assert assert_bits(loss, "price", inputs, P, 4) >= 20
    assert assert_bits(loss, "greedy", inputs, P, 4) >= 20


def test_an_oracle_may_be_asked_for_other_rows() -> None:
    """What is kept of a batch belongs to its inputs."""
    loss, P = udcp.loads(f"{MANY}loss l = sum(fee) + count(team, queue) + count(cross)"), rows(K, 20, 6)
    made = together(loss, "price")
    assert made is not None
    first, other = (loss.inputs_of(inputs_of(loss, 20, seed), 20) for seed in (7, 8))
    scores = [made.scores(P, inputs=inputs) for inputs in (first, other, first)]
    np.testing.assert_array_equal(scores[0], scores[2])
    assert (scores[0] != scores[1]).any()


def test_rows_with_the_same_inputs_share_the_oracle_of_one() -> None:
    loss = udcp.loads(f"{MANY}loss l = sum(fee) + 0.1 * km * size")
    row = {name: x[0] for name, x in inputs_of(loss, 1, 5).items()}
    given = loss.inputs_of({name: np.repeat(np.asarray(x)[None], 40, axis=0) for name, x in row.items()}, 40)
    made = together(loss, "price")
    assert made is not None
    assert given is not None
    (group,) = made._oracle_groups(given)
    assert not group[1].loss.of_rows
    assert len(group[0]) == 40


def test_an_oracle_that_takes_one_row_at_a_time_is_made_for_each() -> None:
    """A stranger's, which was not told of losses of many rows, sees numbers."""
    loss = loss_of("sum(fee) + km * any({ a, b })")
    made = together(loss, "ilp")
    assert made is not None
    assert not made._model.takes_rows


def test_only_what_takes_one_row_at_a_time_is_left_for_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other error of an oracle that is made for many rows is a fault, and is not hidden by the slow way."""
    monkeypatch.setattr(oracle_by_row, "_MIN_STRUCTURE_ROWS", 2)
    loss = udcp.loads(f"{MANY}loss l = sum(fee) + 0.1 * km * size")
    given, P = loss.inputs_of(inputs_of(loss, 12, 5), 12), rows(K, 12, 5)
    made = together(loss, "ratio")
    assert made is not None
    scores, make = made.scores(P, inputs=given), made._make

    def failing(error: Exception) -> OracleByRow:
        def fails(one: udcp.Loss) -> Oracle:
            if one.of_rows:
                raise error
            return make(one)

        return OracleByRow(made._model, loss, {}, fails)

    np.testing.assert_array_equal(failing(NotVectorised("here")).scores(P, inputs=given), scores)
    for error in (TypeError("a fault"), ValueError("a fault"), AttributeError("a fault")):
        with pytest.raises(type(error), match="a fault"):
            failing(error).scores(P, inputs=given)


def test_batches_share_no_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that do not fit into one batch, and batches of which all but a few numbers are the same."""
    monkeypatch.setattr(oracle_by_row, "_BATCH_CELLS", 16 * oracle_by_row._MIN_LABELS)
    loss = udcp.loads(f"{MANY}loss l = sum(fee) + count(team, queue) + count(cross)")
    inputs, P = inputs_of(loss, 40, 6), rows(K, 40, 6)
    made = together(loss, "price")
    assert made is not None
    for column in inputs.values():
        column[16:32] = column[:16]
    inputs["queue"][31, 3] += 1.0
    given = loss.inputs_of(inputs, 40)
    assert given is not None
    assert [len(np.arange(40)[some]) for some, _ in made._oracle_groups(given)] == [16, 16, 8]
    assert assert_bits(loss, "price", inputs, P, 6) == 40


@pytest.mark.parametrize("text", LOSSES)
def test_prices_of_rows_together_are_those_of_brute_force(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_by_row, "_MIN_STRUCTURE_ROWS", 2)
    monkeypatch.setattr(enumeration, "MOST", 0)
    loss = loss_of(text)
    inputs, P = drawn_inputs(loss.inputs, 9, np.random.default_rng(11)), rows(loss.K, 9, 11)
    assert inputs is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = udcp.make_oracle("price", loss).scores(P, inputs=inputs)
    for i, p in enumerate(P):
        expected = price_scores(loss.at({name: column[i] for name, column in inputs.items()}), p)
        np.testing.assert_allclose(scores[i], [float(x) for x in expected], rtol=1e-9, atol=1e-9)


# Numbers of rows ----------------------------------------------------------------------------------------------------


def test_numbers_of_rows_decide_where_all_agree() -> None:
    km = PerRow(np.array([1.0, 0.0, 2.0]))
    assert km >= 0
    assert not km < 0
    with pytest.raises(Split) as split:
        bool(km == 0)
    assert split.value.holds.tolist() == [False, True, False]
    with pytest.raises(NotVectorised):
        np.asarray(km)
    with pytest.raises(NotVectorised):
        float(km)  # type: ignore[arg-type]  # that is the point


@given(seed=st.integers(0, 10**6), K=st.integers(1, 300))
def test_sums_of_rows_have_the_bits_of_sums_of_one(seed: int, K: int) -> None:
    values = np.random.default_rng(seed).normal(size=(7, K)) * 10.0 ** np.arange(-3, 4)[:, None]
    together = PerRow(values).sum()
    assert [together.row(i) for i in range(7)] == [float(row.sum()) for row in values]


def test_arrays_of_rows_are_joined_with_those_of_all() -> None:
    made = joined([np.arange(3.0), PerRow(np.array([[5.0, 6.0], [7.0, 8.0]])), np.ones(1)])
    assert isinstance(made, Patched)
    assert [made.row(i).tolist() for i in range(2)] == [[0, 1, 2, 5, 6, 1], [0, 1, 2, 7, 8, 1]]
    assert made.take([1]).row(0).tolist() == [0, 1, 2, 7, 8, 1]


def test_categories_of_one_label_have_costs_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their cost is a label's: a single place of an array gets a number of each row."""
    monkeypatch.setattr(oracle_by_row, "_MIN_STRUCTURE_ROWS", 2)
    head = "labels { a, b, c, d }  categories F { x: { a }, y: { b, c }, z: { d } }  costs w of F per row in [1, 5]"
    for body in ("count(F, w) + size", "count(F, w) + 3 * (any(F.x) and any(F.y)) + size"):
        loss = udcp.loads(f"{head}  loss l = {body}")
        inputs = {"w": np.random.default_rng(0).uniform(1, 5, (12, 3))}
        for name in ("price", "greedy", "penalized"):
            assert assert_bits(loss, name, inputs, rows(4, 12, 0), 0) == 12
