"""nodes(h) against its definition (fewest nodes whose leaves are the set) on generated trees, and by all its faces."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.check import all_masks, assert_facts, assert_lowers, assert_meaning
from udcp_dsl.expression.atoms.nodes import Nodes
from udcp_dsl.expression.domain import Hierarchy

PATHS = st.lists(st.lists(st.sampled_from("ab"), max_size=3).map(tuple), min_size=1, max_size=6)


def fewest(tree: Hierarchy, S: frozenset[int]) -> int:
    """By trying: no nodes, one, two, ... until some of them have exactly these leaves."""
    inside = [m for v in range(len(tree.names)) if (m := frozenset(tree.members(v).tolist())) <= S]
    return next(
        many
        for many in range(len(S) + 1)
        if any(frozenset().union(*chosen) == S for chosen in combinations(inside, many))
    )


def tree_of(paths: list[tuple[str, ...]]) -> Hierarchy:
    return Hierarchy.build("h", (), paths, [str(y) for y in range(len(paths))])


@given(PATHS)
def test_it_is_the_fewest_nodes_with_exactly_these_leaves(paths: list[tuple[str, ...]]) -> None:
    tree = tree_of(paths)
    atom, masks = Nodes(len(paths), tree), all_masks(len(paths))
    sets = [frozenset(np.flatnonzero(mask).tolist()) for mask in masks]
    expected = [fewest(tree, S) for S in sets]
    assert [atom.value(S) for S in sets] == expected
    assert tree.topmost(masks).sum(axis=1).tolist() == expected
    assert (atom.interval.lo, atom.interval.hi) == (min(expected), max(expected))
    for mask, top in zip(masks, tree.topmost(masks), strict=True):
        leaves = np.zeros(len(paths), dtype=bool)
        for v in np.flatnonzero(top):
            leaves[tree.members(int(v))] = True
        assert (leaves == mask).all()


@pytest.mark.parametrize(
    "tree",
    [
        "{ 0 }",
        "{ 0, 1 }",
        "{ 0..4 }",
        "{ A { 0, 1, 2 }, B { 3, 4 } }",
        "{ A { B { C { 0 } } }, D { 1, E { 2, 3 } }, 4 }",
    ],
)
def test_every_face_agrees_and_every_fact_holds(tree: str) -> None:
    K = 1 + max(int(c) for c in tree if c.isdigit())
    loss = udcp.loads(f"labels 0..{K - 1}  hierarchy h {tree}  loss l = nodes(h) - 0.3 * size")
    for checked in (loss, udcp.loads(f"labels 0..{K - 1}  hierarchy h {tree}  loss l = -2 * nodes(h)")):
        assert_meaning(checked)
        assert_facts(checked)
        assert_lowers(checked, all_masks(K))
    assert loss.facts.submodular
    assert str(udcp.loads(f"labels 0..{K - 1}  hierarchy h {tree}  loss l = nodes(h)").facts.monotone) == (
        "refuted" if K > 2 else "proved"
    )


def test_sets_are_told_by_their_nodes() -> None:
    text = """labels { cat, dog, trout, cod, fish }
        hierarchy life { warm { pets { cat, dog } }, cold { pets { trout, cod }, fish } }
        hierarchy other { x { cat, cod }, dog, trout, fish }
        loss l = size"""
    masks = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 0], [1] * 5, [0] * 5], dtype=bool)
    sets = udcp.PredictionSets(udcp.loads(text.replace("= size", "= nodes(life)")), masks)
    assert sets.nodes == [("warm",), ("cold/pets",), ("warm", "cold/pets"), ("life",), ()]
    assert list(map(len, sets.nodes)) == sets.costs.tolist()
    with pytest.raises(udcp.InputError, match=r"several hierarchies \(life, other\): use one of them"):
        _ = udcp.PredictionSets(udcp.loads(text), masks).nodes
    with pytest.raises(udcp.InputError, match="no hierarchy"):
        _ = udcp.PredictionSets(udcp.loads("labels { a, b }  loss l = size"), masks[:, :2]).nodes
