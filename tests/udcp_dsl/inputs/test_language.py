"""Numbers that come with each row: what may be written, what it means, what is proved of it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.expression.facts import FACT_NAMES
from udcp_dsl.expression.prove import prove

if TYPE_CHECKING:
    from tests.conftest import Sizes

DECLARED = """labels { a, b, c, d, e }
categories team { x: { a, b }, y: { c, d }, z: { d, e } }
hierarchy tree { p { a, b }, q { c, d, e } }
costs fixed { a: 1, b: 2, c: 0.5, d: 3, e: 1 }
category wide { a, b, c }
input km in [0, 200]
input turn in [-3, 4]
costs fee per row in [0.5, 50]
costs gain per row in [-5, 5]
costs queue of team per row in [0, 60]
param k = 2
"""
LOSSES = [
    "sum(fee)",
    "sum(gain)",
    "max(fee)",
    "max(gain)",
    "min(gain)",
    "count(team, queue)",
    "0.8 * km * any({ a, b })",
    "turn * any({ a, b })",
    "(turn - 1) * size",
    "km * size + 2 * size",
    "sum(fee) + km * (any({ a }) and any({ d, e })) + size",
    "if km > 50 then 20 * size else diameter(tree)",
    "min(km, 3 * size + sum(fee))",
    "max(km - 100, 0) * count(team)",
    "5 * (size >= turn)",
    "5 * (sum(fee) > km) + 1",
    "5 * (size == turn)",
    "if size > turn then km else 0",
    "2 * (turn == 1 and any({ c })) + 3 * (km > 20 or all(wide))",
    "km * diameter(tree) + k * turn * size",
    "(km >= 10) * (size ^ 2) - turn",
    "sum(fixed) + max(turn, size)",
    "(not (km > 3)) * empty + within(wide) * km",
    "0.1 * km * 3 * turn * size / 7",
]


def loss_of(text: str) -> udcp.Loss:
    return udcp.loads(f"{DECLARED}loss l = {text}")


def draw(loss: udcp.Loss, n: int, seed: int = 0) -> dict[str, Any]:
    """Inputs within their ranges, some of them round, so that comparisons meet equal values."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, x in loss.inputs.items():
        values = rng.uniform(x.low, x.high, (n,) if x.width is None else (n, x.width))
        round_ones = rng.random(values.shape) < 0.5
        found[name] = np.clip(np.where(round_ones, values.round(), values), x.low, x.high)
    return found


def row_of(inputs: dict[str, Any], i: int) -> dict[str, Any]:
    return {name: column[i] for name, column in inputs.items()}


EVERY = np.array(list(itertools.product([False, True], repeat=5)))


@pytest.mark.parametrize("text", LOSSES)
def test_many_rows_one_row_and_terms_mean_what_the_interpreter_says(text: str) -> None:
    loss = loss_of(text)
    inputs = draw(loss, len(EVERY))
    expected = [loss.interpret(mask, inputs=row_of(inputs, i)) for i, mask in enumerate(EVERY)]
    np.testing.assert_allclose(loss.batch(EVERY, inputs=inputs), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sum(loss.terms_batch(EVERY, inputs=inputs).values()), expected, rtol=1e-12, atol=1e-12)
    for i in (0, 9, 31):
        row = row_of(inputs, i)
        assert loss(EVERY[i], inputs=row) == pytest.approx(expected[i], rel=1e-12, abs=1e-12)
        assert loss.at(row)(EVERY[i]) == pytest.approx(expected[i], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("text", LOSSES)
def test_what_is_proved_holds_for_every_row_and_the_interval_covers_it(text: str, sizes: Sizes) -> None:
    loss = loss_of(text)
    lows = {n: np.full(() if x.width is None else x.width, x.low) for n, x in loss.inputs.items()}
    highs = {n: np.full(() if x.width is None else x.width, x.high) for n, x in loss.inputs.items()}
    inputs = draw(loss, sizes.examples, 1)
    for row in [lows, highs, *(row_of(inputs, i) for i in range(sizes.examples))]:
        one = loss.at(row)
        refuted = prove(one.expression, one.labels)[id(one.expression.root)]
        for name in FACT_NAMES:
            assert not (getattr(loss.facts, name) and getattr(refuted, name).state == "refuted"), (name, row)
        costs = one.batch(EVERY)
        lo, hi = loss.facts.interval
        assert lo - 1e-9 * max(1, abs(lo)) <= costs.min()
        assert costs.max() <= hi + 1e-9 * max(1, abs(hi))
        assert one.facts.interval.lo >= lo - 1e-9 * max(1, abs(lo))
        assert one.facts.interval.hi <= hi + 1e-9 * max(1, abs(hi))


@pytest.mark.parametrize(
    ("text", "proved"),
    [
        ("sum(fee) + km * size", {"separable", "monotone", "submodular", "laminar", "nonnegative", "normalized"}),
        ("sum(gain)", {"separable", "submodular", "supermodular", "laminar", "normalized"}),
        ("count(team, queue) + sum(fee)", {"monotone", "submodular", "nonnegative", "normalized"}),
        ("0.8 * km * any({ a, b }) + sum(fee)", {"laminar", "monotone", "submodular", "nonnegative", "normalized"}),
        ("km * size ^ 2", {"cardinality", "supermodular", "monotone", "nonnegative", "normalized"}),
        ("km * diameter(tree)", {"tree_diameter", "monotone", "nonnegative", "normalized"}),
        ("turn * size", {"cardinality", "separable", "submodular", "supermodular", "laminar", "normalized"}),
        ("turn * any({ a, b })", {"normalized"}),
        ("max(fee)", {"monotone", "submodular", "nonnegative", "normalized"}),
        ("if km > 3 then size else 2 * size", {"cardinality", "separable", "monotone", "nonnegative", "normalized"}),
    ],
)
def test_facts_over_ranges(text: str, proved: set[str]) -> None:
    found = {name for name, fact in loss_of(text).facts if fact}
    assert proved <= found
    for name in ("separable", "laminar", "monotone", "submodular", "cardinality", "tree_diameter"):
        assert (name in found) == (name in proved | _implied(proved)), name


def _implied(proved: set[str]) -> set[str]:
    more = {"submodular", "supermodular"} if "separable" in proved else set()
    return more | ({"laminar"} if "separable" in proved else set())


def test_a_fact_that_one_row_refutes_is_refuted_with_its_sets() -> None:
    fact = loss_of("sum(fee) + km * (any({ a }) and any({ d, e }))").facts.submodular
    assert str(fact) == "refuted"
    assert fact.sets
    assert "middle of their ranges" in fact.reason


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("size ^ km", "E404", "per-row"),
        ("km ^ 2", "E404", "per-row"),
        ("sqrt(km) * size", "E404", "per-row"),
        ("(km * size) ^ 2", "E404", "one count"),
        ("size / km", "E403", "per-row"),
        ("sum(km)", "E406", "per-row"),
        ("km.x * size", "E409", "per-row"),
        ("kn * size", "E211", "kn"),
        ("km and any(wide)", "E401", "not an indicator"),
        ("count(team, fee)", "E406", "costs of labels"),
        ("sum(queue)", "E406", "family"),
        ("sum(fee) * sum(fee)", "E402", "two functions"),
    ],
)
def test_what_may_not_be_written(text: str, code: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        loss_of(text)
    assert [x.code for x in error.value.diagnostics] == [code]
    assert says in error.value.diagnostics[0].message


FEES = np.full((2, 5), 1.0)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        (None, "give inputs="),
        ({}, "input 'km' is missing"),
        ({"km": [1, 2]}, "input 'fee' is missing"),
        ({"km": [1, np.nan], "fee": FEES}, "row 1: input 'km' is not a finite number"),
        ({"km": [1, None], "fee": FEES}, "row 1: input 'km' is not a finite number"),
        ({"km": [np.inf, 1], "fee": FEES}, "row 0: input 'km' is not a finite number"),
        ({"km": [1, 201], "fee": FEES}, "row 1: input 'km' is 201, outside [0, 200]"),
        ({"km": [1, "far"], "fee": FEES}, "row 1: input 'km' is 'far', not a number"),
        ({"km": [1, 2, 3], "fee": FEES}, "shape (3,), expected (2,)"),
        ({"km": [1, 2], "fee": FEES[:, :4]}, "shape (2, 4), expected (2, 5)"),
        ({"km": [1, 2], "fee": FEES.T}, "expected (2, 5)"),
        ({"km": [1, 2], "fee": [[1, 1, 1, 1, 1], [1, 1]]}, "row 1: input 'fee' has 2, expected 5 numbers"),
        ({"km": [1, 2], "fee": [[1] * 5, [1, 1, 1, 99, 1]]}, "row 1: input 'fee' of 'd' is 99, outside [0.5, 50]"),
        ({"km": [1, 2], "fee": FEES, "fea": 1}, "no input 'fea'; did you mean 'fee'"),
        ([1, 2], "inputs are a list"),
    ],
)
def test_wrong_inputs_are_named_with_their_row(inputs: Any, says: str) -> None:
    loss = loss_of("sum(fee) + km * size")
    with pytest.raises(InputError) as error:
        loss.batch(np.zeros((2, 5), dtype=bool), inputs=inputs)
    assert says in str(error.value)


def test_inputs_where_none_are_declared_are_refused() -> None:
    loss = udcp.loads("labels { a, b }  loss l = size")
    with pytest.raises(InputError, match="declares none"):
        loss({"a"}, inputs={"km": 1})
    with pytest.raises(InputError, match="declares none"):
        loss.batch(np.zeros((1, 2), dtype=bool), inputs={"km": [1]})


def test_inputs_that_at_has_fixed_are_refused() -> None:
    loss = loss_of("km * size").at({"km": 3})
    for refused in (
        lambda: loss({"a"}, inputs={"km": 3}),
        lambda: loss.terms({"a"}, inputs={"km": 3}),
        lambda: loss.at({"km": 3}),
        lambda: loss.batch(np.zeros((1, 5), dtype=bool), inputs={"km": [3]}),
        lambda: udcp.SetPredictor(loss, "lac").calibrate(np.eye(5), range(5), inputs={"km": np.ones(5)}),
    ):
        with pytest.raises(InputError, match=r"loss\.at\(\.\.\.\) has fixed 'km': leave them out, or use"):
            refused()
    assert loss({"a"}, inputs={"turn": 3}) == 3  # the spec declares it, and the loss does not read it
    alone = udcp.loads("labels { a, b }  input km in [0, 9]  loss l = km * size").at({"km": 3})
    with pytest.raises(InputError, match="has fixed 'km'"):
        alone({"a"}, inputs={"kn": 3})


def test_the_loss_of_one_row_keeps_its_numbers_when_params_change() -> None:
    loss = loss_of("km * size + k").at({"km": 3})
    changed = loss.with_params(k=5)
    assert changed({"a"}) == 8
    assert changed.fixed_inputs == {"km": 3}
    assert loss_of("km * size").fixed_inputs is None


def test_entries_may_be_named_by_numbers() -> None:
    loss = udcp.loads("labels 0..2  costs fee per row in [0, 9]  loss l = sum(fee)")
    row = {0: 1, 1: 2, 2: 3}
    assert loss({0, 2}, inputs={"fee": row}) == loss({0, 2}, inputs={"fee": {"0": 1, "1": 2, "2": 3}}) == 4
    masks = np.ones((2, 3), dtype=bool)
    assert loss.batch(masks, inputs={"fee": [row, {2: 0, 1: 0, 0: 1}]}).tolist() == [6, 1]
    with pytest.raises(InputError, match="input 'fee' has no entry '3'"):
        loss({0}, inputs={"fee": {0: 1, 1: 2, 3: 3}})


def test_frames_and_tensors_and_lists_are_inputs() -> None:
    pd, pl, torch = (pytest.importorskip(name) for name in ("pandas", "polars", "torch"))
    loss = loss_of("sum(fee) + km * size")
    fees, km = np.arange(1.0, 11).reshape(2, 5), np.array([3.0, 4.0])
    masks = np.array([[True] * 5, [False, True] * 2 + [True]])
    expected = loss.batch(masks, inputs={"km": km, "fee": fees})
    columns = {"km": km.tolist(), "fee": fees.tolist(), "other": ["x", "y"]}
    named = pd.DataFrame(fees, columns=list("abcde"))[list("edcba")]
    for given in (pd.DataFrame(columns), pl.DataFrame(columns), {"km": torch.tensor(km), "fee": torch.tensor(fees)},
                  {"km": pd.Series(km), "fee": named}, {"km": km.tolist(), "fee": fees.tolist()}):  # fmt: skip
        np.testing.assert_array_equal(loss.batch(masks, inputs=given), expected)


def test_a_loss_without_inputs_is_what_it_was() -> None:
    """The expression has the same nodes, and one row of a loss with inputs has those of the constant loss."""
    constant = udcp.loads(f"{DECLARED.replace('input km in [0, 200]', 'param km = 3')}loss l = km * size + 2 * size")
    row = loss_of("km * size + 2 * size").at({"km": 3})
    assert [type(x) for x in row.expression.nodes] == [type(x) for x in constant.expression.nodes]
    assert not constant.inputs
    assert constant.example is constant
