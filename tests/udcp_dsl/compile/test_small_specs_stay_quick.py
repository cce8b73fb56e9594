"""A short text cannot ask for long work: what grows is counted, and refused or left out beyond a bound."""

from __future__ import annotations

import pytest

import udcp_dsl as udcp
from udcp_dsl import diagnostics
from udcp_dsl.compile.declare import declared
from udcp_dsl.compile.sources import FileFault, read_csv
from udcp_dsl.diagnostics import nearest


def _faults(text: str) -> list[diagnostics.Diagnostic]:
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(text)
    return list(caught.value.diagnostics)


@pytest.mark.parametrize(
    "body",
    [
        "category C {{ {} }}  loss l = size(C)",
        "costs c {{ {}: 1, default: 0 }}  loss l = sum(c)",
        "hierarchy h {{ {} }}  loss l = diameter(h)",
        "loss l = any({{ {} }})",
    ],
)
def test_of_many_misspelt_names_the_first_are_looked_for(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "_MOST_COMPARED", 3_000)
    labels = ", ".join(f"label_{i}" for i in range(240))
    separator = ": 1, " if "costs" in body else ", "
    unknown = separator.join(f"lable_{i}" for i in range(100))
    faults = [fault for fault in _faults(f"labels {{ {labels} }}  {body.format(unknown)}") if fault.code == "E210"]
    offered = [fault.help.startswith("did you mean 'label_") for fault in faults]
    assert len(faults) == 100
    assert 5 <= sum(offered) <= 20
    assert offered == sorted(offered, reverse=True)
    assert faults[-1].help == (
        "known: label_0, label_1, label_2, label_3, label_4, label_5, label_6, label_7, ... (240 in all)"
    )


def test_unknown_names_of_expressions_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    monkeypatch.setattr(diagnostics, "nearest", lambda name, known: compared.append(len(list(known))) or [])
    lets = "  ".join(f"let name_{i} = size" for i in range(500))
    faults = _faults(f"labels {{ a }}  {lets}  loss l = {' + '.join(f'nmae_{i}' for i in range(500))}")
    assert len(faults) == 500
    assert sum(compared) <= 100_000


def test_among_very_many_names_those_alike_at_an_end_are_compared() -> None:
    names = [f"{kind}{i}" for i in range(10_000) for kind in ("fox", "owl", "elk")]
    assert nearest("fox123x", names)[0] == "fox123"
    assert nearest("fxo4321", names)[0] == "fox4321"


def test_ranges_are_counted_over_the_whole_spec() -> None:
    many = [f"{i}000000..{i}999999" for i in range(1, 21)]
    (fault,) = _faults(f"labels {{ {', '.join(many)} }}  loss l = size")
    assert (fault.code, fault.span.text) == ("E125", many[2])
    assert fault.message == "with the range 3000000..3999999, the ranges of the spec are too long"
    (fault,) = _faults(f"labels {{ {many[0]}, 7..8 }}  loss l = size")
    assert (fault.code, fault.message) == ("E125", "these ranges have 1,000,002 labels")
    categories = "  ".join(f"category c{i} {{ 0..99999 }}" for i in range(20))
    (fault,) = _faults(f"labels 0..99999  {categories}  loss l = size")
    assert (fault.code, fault.span.start) == ("E125", len(f"labels 0..99999  {categories}") - len("0..99999 }"))


def test_a_wide_header_is_read_in_one_pass() -> None:
    names = [f"column{i}" for i in range(200_000)]  # each compared with all would take minutes
    assert len(read_csv("wide.csv", ",".join(names).encode()).header) == len(names)
    with pytest.raises(FileFault, match="column 'column199999' appears twice in the header"):
        read_csv("wide.csv", ",".join([*names, names[-1]]).encode())
