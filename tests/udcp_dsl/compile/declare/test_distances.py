"""Distances between labels and between categories: the file of one is told from that of the other."""

from __future__ import annotations

import pytest

import udcp_dsl as udcp
from tests.udcp_dsl.compile.test_ways_out import FILES, HEAD


@pytest.mark.parametrize("file", ["between.csv", "between.json"])
def test_a_matrix_between_categories_is_told_from_one_between_labels(file: str) -> None:
    contents = {
        "between.csv": b"team,Security,Front desk\nSecurity,0,1\nFront desk,1,0\n",
        "between.json": b'{"labels": ["Security", "Front desk"], "matrix": [[0, 1], [1, 0]]}',
    }
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(f'{HEAD} distance d from "{file}"  loss l = diameter(d)', files={**FILES, **contents})
    (fault,) = caught.value.diagnostics
    assert fault.code == "E308"
    assert fault.help.startswith("these are the categories of 'team': costs and distances may be `of team`; ")
    meant = f'{HEAD} distance d of team from "{file}"  loss l = diameter(d)'
    assert udcp.loads(meant, files={**FILES, **contents})(["a", "c"]) == 1


def test_a_distance_is_not_told_of_clauses_that_it_does_not_take() -> None:
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(f'{HEAD} distance d from "d.csv"  loss l = 1', files={**FILES, "d.csv": b"l,a,b\na,0,1\nb,1,0\n"})
    assert caught.value.diagnostics[0].help == "add it"
