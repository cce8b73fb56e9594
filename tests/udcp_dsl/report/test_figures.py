"""The figures: right numbers, nothing cut off, readable on light and dark, the same bytes each time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl import InputError
from udcp_dsl.measure.comparison import Comparison
from udcp_dsl.measure.coverage import Stratum, pooled
from udcp_dsl.measure.evaluate import QUARTERS, SIZE_BINS, pooled_by
from udcp_dsl.predict.calibrate.levels import clopper_pearson
from udcp_dsl.report import drawing, write_figures
from udcp_dsl.report import look as palette
from udcp_dsl.report.browser import tree_of
from udcp_dsl.report.figures import figures
from udcp_dsl.report.look import number

SVG = "{http://www.w3.org/2000/svg}"


# Those that are drawn as files: PDF, with its fonts, takes a third of a second for each.
ON_PAPER = ("headline", "touched-cost-by-coverage", "touched-coverage-by-group-alpha-0.1")


@pytest.fixture
def folder(part: Comparison, tmp_path: Path, draw_only: Callable[..., None]) -> Path:
    draw_only(*ON_PAPER)
    made = tmp_path / "made" / "when needed"
    written = write_figures(made, part)
    assert sorted(written) == sorted(made.iterdir())
    return made


def test_every_figure_is_there_as_svg_and_pdf(folder: Path, part: Comparison, ordinary: Comparison) -> None:
    names = {figure.name for figure in figures(part)}
    assert {file.name for file in folder.iterdir()} == {f"{name}.{end}" for name in names for end in ("svg", "pdf")}
    assert names > set(ON_PAPER)
    every = [figure.name for figure in figures(ordinary)]
    assert len(set(every)) == len(every) == 2 + 2 * (1 + 2 * 9)
    assert names < set(every)
    for name in ON_PAPER:
        check_for_a_paper(folder, name)
    again = next(figure for figure in figures(part) if figure.name == ON_PAPER[1])
    for ending, content in drawing.rendered(again, "pdf", "svg").items():
        assert content == (folder / f"{again.name}.{ending}").read_bytes()


def check_for_a_paper(folder: Path, name: str) -> None:
    pdf, svg = ((folder / f"{name}.{ending}").read_bytes() for ending in ("pdf", "svg"))
    assert pdf.startswith(b"%PDF")
    assert b"/Type3" not in pdf  # which journals refuse
    assert b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf
    root = ElementTree.fromstring(svg)
    assert any(element.text for element in root.iter(f"{SVG}text"))  # text stays text
    assert b"<dc:date>" not in svg
    (paper, *_) = root.iter(f"{SVG}path")
    assert palette.PAPER.light in paper.attrib["style"]


@pytest.mark.slow
def test_all_files_are_for_a_paper_and_the_same_bytes_again(part: Comparison, tmp_path: Path) -> None:
    for file in write_figures(tmp_path / "once", part):
        check_for_a_paper(tmp_path / "once", file.stem)
    for file in write_figures(tmp_path / "again", part):
        assert file.read_bytes() == (tmp_path / "once" / file.name).read_bytes()


@pytest.fixture(scope="session")
def crowded(hostile: Comparison) -> Comparison:
    """More oracles than are likely, one of them with a long name, and more terms than have colours."""
    oracles = ["base", "lac", "raps", "penalized", "ratio", "greedy", "price", "ilp", "my own oracle, a good one"]
    terms = {f"{i} * any(category_{i}) and more, and yet more, and on and on": i - 2.0 for i in range(9)}
    run, (curve, *_) = hostile.runs[0], hostile.along.values()
    measured = replace(run.evaluation, cost_by_term=terms)
    runs = tuple(replace(run, oracle=oracle, evaluation=measured) for oracle in oracles)
    return replace(hostile, runs=runs, along={("l", oracle): curve for oracle in oracles})


# The others have fewer oracles and terms, which are easier to place.
@pytest.mark.parametrize(
    "name", ["crowded", *(pytest.param(x, marks=pytest.mark.slow) for x in ("hostile", "part", "smallest"))]
)
def test_nothing_is_cut_off(name: str, request: pytest.FixtureRequest) -> None:
    from matplotlib.figure import Figure as Canvas

    for figure in figures(request.getfixturevalue(name)):
        with drawing._style():
            canvas: Any = Canvas(figsize=(drawing._WIDTH, figure.height), layout="constrained")
            figure.draw(canvas)
            canvas.get_layout_engine().execute(canvas)  # as it is when it is written
            canvas.set_layout_engine(None)
            drawn = canvas.get_tightbbox()
        assert drawn.x0 >= -0.01, figure.name
        assert drawn.y0 >= -0.01, figure.name
        assert drawn.x1 <= drawing._WIDTH + 0.01, figure.name
        assert drawn.y1 <= figure.height + 0.01, figure.name
        for axes in canvas.axes:
            assert axes.get_position().width > 0.4, figure.name
            assert axes.get_position().height > 0.35 / len(canvas.axes), figure.name


def test_every_colour_of_the_page_is_a_variable(pictures: dict[str, list[str]]) -> None:
    for i, picture in enumerate(pictures["hostile"]):
        last = i == len(pictures["hostile"]) - 1
        prefix = f"first-{i}-" if i < 3 else "repair-0-" if last else f"f0-0-{i - 3}-"
        root = ElementTree.fromstring(picture)
        styles = [element.attrib.get("style", "") for element in root.iter()]
        assert not any("#" in style.replace(f"url(#{prefix}", "") for style in styles), prefix
        assert any("var(--ink)" in style for style in styles)
        ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
        assert ids
        assert all(found.startswith(prefix) for found in ids)


def test_every_mark_says_its_value(ordinary: Comparison, part: Comparison, pictures: dict[str, list[str]]) -> None:
    """Of each mark that is drawn, a title: by it browsers tell a reader who points there."""
    names = {figure.name for figure in figures(part)}
    drawn = {
        figure.name: ElementTree.fromstring(picture)
        for figure, picture in zip(figures(ordinary), pictures["ordinary"], strict=True)
        if figure.name in names
    }
    assert drawn.keys() == names
    for name, root in drawn.items():
        titled = [e for e in root.iter() if e.find("title") is not None]
        assert titled, name
        assert all(e.tag in ("use", "path") for e in titled), name
    said = {name: [e.text or "" for e in root.iter("title")] for name, root in drawn.items()}
    curves = [(o, *point) for (loss, o), points in part.curves.items() if loss == "touched" for point in points]
    assert sorted(said["touched-cost-by-coverage"]) == sorted(
        f"{o}, alpha {a:g}: coverage {c:.3f}, cost {number(x)}" for o, a, c, x in curves
    )
    costs = [(s.oracle, s.cost_mean) for s in ordinary.summaries() if s.alpha == ordinary.alphas[0]]
    assert sorted(said["headline"]) == sorted(f"{o}: {number(c)}" for o, c in costs)
    held = [x.evaluation for x in part.runs if (x.loss, x.oracle, x.alpha) == ("touched", "price", Fraction(1, 10))]
    for stratum in pooled_by(held, "group"):
        told = f"price, {stratum.name}: {stratum.coverage:.3f} ("
        assert any(text.startswith(told) for text in said["touched-coverage-by-group-alpha-0.1"])


def test_what_is_said_of_marks_is_shown_as_it_is(pictures: dict[str, list[str]]) -> None:
    for picture in pictures["hostile"]:
        assert "<title>" in picture
        assert "<script" not in picture


def test_names_of_losses_make_names_of_files(smallest: Comparison) -> None:
    loss = smallest.losses[0]
    names = ("../a b:l", "a-b-l", "c")
    several = replace(
        smallest,
        losses=(loss,) * 3,
        names=names,
        runs=tuple(replace(run, loss=name) for run in smallest.runs for name in names),
        along={},
    )
    stems = [name.partition("-cost-by-term")[0] for f in figures(several) if "cost-by-term" in (name := f.name)]
    assert stems == ["1-a-b-l", "2-a-b-l", "c"]


def test_without_matplotlib(ordinary: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'udcp_dsl\[report\]'"):
        write_figures(tmp_path / "new", ordinary)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(ordinary: Comparison, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        write_figures(tmp_path / "file", ordinary)


# Colours


def luminance(colour: str) -> float:
    """As WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("pick", [lambda c: c.light, lambda c: c.dark], ids=["light", "dark"])
def test_contrast(pick: Callable[[palette.Colour], str]) -> None:
    """WCAG asks 4.5 of text and 3 of what a graphic is read by."""
    paper = pick(palette.PAPER)
    assert contrast(pick(palette.INK), paper) >= 7
    assert contrast(pick(palette.MUTED), paper) >= 4.5
    for style in palette.styles([*palette._ORACLES, "a", "b", "c", "d"]).values():
        assert contrast(pick(style.colour), paper) >= 3, style


def test_no_two_roles_share_a_colour_or_variable() -> None:
    assert len({c.light for c in palette.COLOURS}) == len({c.variable for c in palette.COLOURS}) == len(palette.COLOURS)
    markers = [style.marker for style in palette.styles([*palette._ORACLES, "a", "b", "c", "d"]).values()]
    assert len(set(markers)) == len(markers)


def test_an_oracle_keeps_its_colour_in_any_company() -> None:
    assert palette.styles(["price", "mine"])["price"] == palette.styles(["base", "price"])["price"]


# Strata over the splits

counted = st.tuples(st.integers(1, 60), st.floats(0, 1)).map(lambda x: (x[0], round(x[0] * x[1])))


@given(st.lists(counted, min_size=1, max_size=6))
def test_pooled_strata(splits: list[tuple[int, int]]) -> None:
    parts = [Stratum("s", n, covered, covered / n, (0.0, 1.0), 1.0, float(n), covered / n) for n, covered in splits]
    (point,) = pooled(parts)
    n, covered = np.array(splits, dtype=float).T
    assert point.n == round(n.mean())
    assert point.seen == n.sum()
    assert point.coverage == pytest.approx(covered.sum() / n.sum())
    assert point.mean_cost == pytest.approx((n * n).sum() / n.sum())
    assert point.interval[0] <= point.coverage <= point.interval[1]
    if len(set(splits)) == 1:  # repeating one and the same fold teaches nothing
        low, high = clopper_pearson(covered[0], n[0])
        assert point.interval == pytest.approx((float(low), float(high)))


def test_strata_of_a_comparison(ordinary: Comparison) -> None:
    runs = [run for run in ordinary.runs if (run.loss, run.alpha) == ("far", Fraction(1, 5))]
    for oracle in ("lac", "penalized", "price"):
        held = [run.evaluation for run in runs if run.oracle == oracle]
        assert [p.name for p in pooled_by(held, "difficulty")] == list(QUARTERS)
        assert [p.name for p in pooled_by(held, "group")] == ["a third", "the rest"]
        assert sum(p.seen for p in pooled_by(held, "class")) == len(held) * held[0].n
        sizes = [SIZE_BINS.index(p.name) for p in pooled_by(held, "size")]
        assert sizes == sorted(sizes)
        tied = [replace(split, by_difficulty=split.by_difficulty[:2]) for split in held]
        assert pooled_by(tied, "difficulty") == []


# Categories that sets are drawn into


def test_tree_of_the_hierarchy_that_the_loss_uses() -> None:
    spec = """labels {a, b, c, d}
        hierarchy unused { x { a, b, c, d } }
        hierarchy used { left { l { a }, b }, c, right { d } }"""
    for expression in ("diameter(used)", "count(used.level(1))", "spread(d)"):
        loss = udcp.loads(f"{spec} distance d = path(used, edge: 2) loss l = {expression}")
        tree = tree_of(loss)
        assert tree is not None
        assert (tree.name, tree.names, tree.parent, tree.sizes) == (
            "used", ("left", "l", "right"), (-1, 0, -1), (2, 1, 1),
        )  # fmt: skip
        assert tree.above == ((1,), (0,), (), (2,))


def test_tree_of_other_losses() -> None:
    spec = "labels {a, b, c} categories f { x: { a, b }, y: { b } } hierarchy h { z { a, b, c } }"
    counted = tree_of(udcp.loads(f"{spec} loss l = count(f) + size"))
    assert counted is not None
    assert (counted.names, counted.above) == (("x", "y"), ((0,), (0, 1), ()))
    measured = udcp.loads(
        f'{spec} distance g of f from "g.csv" loss l = diameter(g)', files={"g.csv": b"f,x,y\nx,0,1\ny,1,0\n"}
    )
    assert tree_of(measured) == counted
    declared = tree_of(udcp.loads(f"{spec} loss l = size"))
    assert declared is not None
    assert declared.name == "h"
    assert tree_of(udcp.loads("labels {a, b} loss l = size")) is None
