"""What is drawn for other suites is what they need; what is shrunk cannot be smaller; brute force raises no alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
import udcp_dsl.check as testing
from tests.udcp_solvers.brute_force import price_scores
from udcp_dsl.check import (
    Problem,
    all_masks,
    assert_coverage,
    classification_problems,
    losses,
    probabilities,
)
from udcp_dsl.check.coverage import CLASSIFIERS
from udcp_dsl.check.oracles import price_fault
from udcp_dsl.check.samples import fewest, varied_sets
from udcp_dsl.expression.domain import Floats

if TYPE_CHECKING:
    from tests.conftest import SeenAmong, Sizes

PETS = udcp.loads("labels {cat, dog, wolf, lynx}  category wild {wolf, lynx}  loss l = size + 5 * any(wild)")


def test_every_public_name_is_there() -> None:
    assert sorted(testing.__all__) == testing.__all__
    assert all(getattr(testing, name).__doc__ for name in testing.__all__)


@given(classification_problems(PETS))
def test_coverage_holds_on_generated_problems(sizes: Sizes, problem: Problem) -> None:
    assert_coverage(udcp.SetPredictor(PETS, "price", alpha=0.2), problem, repeats=sizes.seeds)


def test_problems_of_every_kind_are_drawn(seen_among: SeenAmong) -> None:
    every = set(CLASSIFIERS)
    assert seen_among(classification_problems(PETS), lambda problem: [problem.kind], every) == every


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("K", [1, 2, 30])
def test_every_kind_gives_distributions(kind: str, K: int) -> None:
    rng = np.random.default_rng(0)
    P, y = Problem.generated(K, rng, kind=kind).draw(200, rng)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert set(y.tolist()) <= set(range(K))
    if K == 30:
        tied = (np.sort(P, axis=1)[:, 1:] == np.sort(P, axis=1)[:, :-1]).any(axis=1).all()
        assert tied or kind not in ("tied", "top three", "one label alive", "certain", "ignorant")
        assert {"one label alive": 1, "certain": 1, "top three": 3}.get(kind, 0) in (0, (P > 0).sum(axis=1).max())


@given(st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_what_is_left_cannot_be_left_out(needed: set[int], more: int) -> None:
    items = range(max([more, *needed]) + 1)
    assert fewest(items, lambda some: needed <= set(some)) == sorted(needed)


@given(st.data())
def test_right_prices_raise_no_alarm_whatever_ties(data: st.DataObject) -> None:
    loss = data.draw(losses(max_labels=5))
    p: Floats = data.draw(probabilities(loss.K, max_rows=1))[0].astype(np.float64)
    p[p < 1e-4] = 0.0
    masks = all_masks(loss.K)
    scores = np.array(price_scores(loss, p.tolist()))
    assert price_fault(scores, p, masks, loss.batch(masks)) is None
    bought = np.flatnonzero((p > 0) & np.isfinite(scores) & (scores > 0.01))
    if bought.size:
        # Of two labels that are alike either may come first; above all prices there is no such choice.
        wrong = scores.copy()
        wrong[bought[0]] = 2 * scores[bought].max() + 2
        assert price_fault(wrong, p, masks, loss.batch(masks)) is not None


def test_varied_sets_have_all_sizes_and_categories() -> None:
    loss = udcp.loads("labels 0..39  categories F { a: {0..9}, b: {10..39} }  loss l = count(F)")
    masks = varied_sets(loss, np.random.default_rng(0), 200)
    assert not masks[0].any()
    assert masks[1].all()
    sizes = set(masks.sum(axis=1).tolist())
    assert {1, 9, 10, 11, 29, 30, 31} <= sizes
    assert len(sizes) > 30
    assert (masks == (np.arange(40) < 10)).all(axis=1).any()
