"""Hierarchies from embeddings: nested, as many clusters as asked for, and read by a spec."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.torch import hierarchy_from_embeddings


@given(st.data())
def test_clusters_are_nested_and_as_many_as_asked(data: st.DataObject) -> None:
    K = data.draw(st.integers(4, 20))
    coordinates = st.lists(st.integers(0, 3), min_size=2, max_size=2)  # many ties
    X = np.array(data.draw(st.lists(coordinates, min_size=K, max_size=K)), float)
    levels = sorted(data.draw(st.sets(st.integers(2, K), min_size=1, max_size=3)))
    text = hierarchy_from_embeddings(X, [f"label {i}" for i in range(K)], levels)
    rows = [line.split(",") for line in text.splitlines()]
    assert rows[0] == ["label", *(f"level_{i + 1}" for i in range(len(levels)))]
    columns = list(zip(*rows[1:], strict=True))
    assert list(columns[0]) == [f"label {i}" for i in range(K)]
    assert [len(set(column)) for column in columns[1:]] == levels
    for coarse, fine in pairwise(columns[1:]):
        assert len(set(zip(coarse, fine, strict=True))) == len(set(fine))


def test_a_spec_reads_the_hierarchy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [0, 1], [9, 0], [9, 1], [50, 50]])
    y = rng.integers(0, 5, 500)
    names = np.array(["oak", "elm", "cat", "dog", "sun"])
    X = torch.from_numpy(centres[y] + 0.1 * rng.standard_normal((500, 2)))
    text = hierarchy_from_embeddings(X, names[y], (2, 3), tmp_path / "h.csv")
    assert (tmp_path / "h.csv").read_text() == text
    spec = 'labels from "h.csv" column label  hierarchy h from "h.csv" levels level_1, level_2  loss l = diameter(h)'
    loss = udcp.loads(spec, folder=tmp_path)
    assert loss.labels == ("cat", "dog", "elm", "oak", "sun")
    assert [loss({"cat", "dog"}), loss({"cat", "elm"}), loss({"cat", "sun"})] == [2, 4, 6]
    assert hierarchy_from_embeddings(np.arange(12.0)[:, None], list(range(12))[::-1]).split("\n")[1].startswith("11,")


@pytest.mark.parametrize(
    ("X", "labels", "levels", "words"),
    [
        (np.eye(4), list("abcd"), (3, 9), "from 2 to 4"),
        (np.eye(4), list("abcd"), (3, 2), "give increasing numbers"),
        (np.eye(4), list("abcd"), (), "give increasing numbers"),
        (np.eye(4), list("abc"), (2,), "3 labels"),
        (np.full((2, 2), np.nan), list("ab"), (2,), "row 0"),
        (np.eye(2), [1, "1"], (2,), "written alike"),
    ],
)
def test_hierarchy_refusals(X: Any, labels: Any, levels: Any, words: str) -> None:
    with pytest.raises(udcp.InputError, match=words):
        hierarchy_from_embeddings(X, labels, levels)
    with pytest.raises(udcp.InputError, match="method"):
        hierarchy_from_embeddings(np.eye(4), list("abcd"), (2,), method="warp")
