"""Distances between categories: the largest over the pairs of categories that a set touches, in every face."""

from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import all_masks, assert_facts, assert_lowers, assert_meaning
from udcp_dsl.expression.atoms.diameter import Diameter, DiameterIncrement
from udcp_dsl.expression.domain import CategoryMetric
from udcp_dsl.expression.lower import lower
from udcp_dsl.loss import Loss

Members = dict[str, set[int]]


def drawn(rng: np.random.Generator, K: int, C: int) -> tuple[Members, np.ndarray]:
    """Categories that overlap, leave labels out and may be equal; distances with ties and zeros."""
    share = rng.choice([0.15, 0.4, 0.7])
    members = {f"c{g}": {int(rng.integers(K)), *np.flatnonzero(rng.random(K) < share).tolist()} for g in range(C)}
    d = np.triu(rng.integers(0, 9, (C, C)) / 4, 1)
    return members, d + d.T


def compiled(members: Members, d: np.ndarray, K: int, loss: str) -> Loss:
    saved = io.BytesIO()
    np.save(saved, d)
    listed = ", ".join(f"{name}: {{ {', '.join(map(str, sorted(inside)))} }}" for name, inside in members.items())
    text = f'labels 0..{K - 1}  categories F {{ {listed} }}  distance g of F from "g.npy"  loss l = {loss}'
    return udcp.loads(text, files={"g.npy": saved.getvalue()})


def meant(members: Members, d: np.ndarray, S: set[int]) -> float:
    """The definition, from what was declared."""
    touched = [g for g, inside in enumerate(members.values()) if inside & S]
    return max((float(d[a, b]) for a, b in combinations(touched, 2)), default=0.0)


def metric_of(loss: Loss) -> CategoryMetric:
    (atom,) = (atom for atom in loss.expression.atoms.values() if isinstance(atom, Diameter))
    assert isinstance(atom.metric, CategoryMetric)
    return atom.metric


def test_every_face_is_the_largest_distance_of_touched_categories(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, C = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    members, d = drawn(rng, K, C)
    loss = compiled(members, d, K, "diameter(g)")
    masks = all_masks(K)
    values = [meant(members, d, set(np.flatnonzero(mask).tolist())) for mask in masks]
    assert loss.batch(masks).tolist() == values
    assert [loss.interpret(mask) for mask in masks] == values
    assert_meaning(loss)  # call, terms and increments like the interpreter
    assert_facts(loss)
    assert loss.facts.monotone
    assert loss.facts.normalized
    assert loss.facts.nonnegative
    assert (loss.facts.interval.lo, loss.facts.interval.hi) == (0.0, float(d.max()))


def test_the_linear_model_has_its_value_whichever_way_it_is_pushed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, C = 5, int(rng.integers(1, 5))
    members, d = drawn(rng, K, C)
    for text in ("diameter(g) + count(F)", "size - diameter(g)", "(diameter(g) >= 1) * size - 2 * (diameter(g) > 0.5)"):
        assert_lowers(compiled(members, d, K, text), all_masks(K))


def test_seen_from_the_labels_it_is_a_matrix_whose_diagonal_may_be_positive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    members, d = drawn(rng, K, 4)
    metric = metric_of(compiled(members, d, K, "diameter(g)"))
    every = np.arange(K)
    seen = np.array([[meant(members, d, {a, b}) for b in every] for a in every])
    matrix = metric.row(every)
    # Two labels may be nearer to each other than one of them is to itself: the pair alone says what lies between them.
    assert (np.maximum(np.maximum(matrix, np.diag(matrix)[:, None]), np.diag(matrix)) == seen).all()
    assert (matrix == matrix.T).all()
    assert metric.own.tolist() == np.diag(matrix).tolist() == [meant(members, d, {y}) for y in range(K)]
    assert [[metric.between(a, b) for b in range(K)] for a in range(K)] == matrix.tolist()
    assert metric.row(every[1:2]).tolist() == matrix[1:2].tolist()


def test_a_label_in_two_categories_touches_both_and_one_in_none_touches_none() -> None:
    members: Members = {"a": {0, 1}, "b": {1, 2}, "c": {3}}
    d = np.array([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    loss = compiled(members, d, 6, "diameter(g)")
    assert loss(set()) == 0
    assert loss({"1"}) == 3
    assert loss({"0"}) == loss({"4"}) == loss({"4", "5"}) == loss({"4", "3"}) == 0
    assert loss({"0", "3"}) == 1


def test_the_model_has_rows_for_pairs_of_categories_not_of_labels() -> None:
    members: Members = {f"c{g}": set(range(20 * g, 20 * g + 20)) for g in range(5)}
    loss = compiled(members, 1.0 - np.eye(5), 100, "diameter(g)")
    assert lower(loss).rows == 100 + 10
    assert lower(compiled(members, 1.0 - np.eye(5), 100, "diameter(g) + count(F)")).rows == 100 + 10


def test_a_label_alone_that_is_taken_to_cost_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a distance between labels, where nothing is far from itself."""
    started = DiameterIncrement.__init__

    def from_zero(self: DiameterIncrement, *arguments: object) -> None:
        started(self, *arguments)  # type: ignore[arg-type]
        self.far[:] = 0.0

    monkeypatch.setattr(DiameterIncrement, "__init__", from_zero)
    loss = compiled({"a": {0, 1}, "b": {1, 2}}, np.array([[0.0, 3.0], [3.0, 0.0]]), 3, "diameter(g)")
    with pytest.raises(AssertionError, match=r"on \{1\} the interpreter gives 3.0"):
        assert_meaning(loss)
