"""Small comparisons: an ordinary one, one whose names are hostile to a page, and the smallest there is; their pages."""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import udcp_dsl as udcp
from udcp_dsl.measure.compare import compare
from udcp_dsl.measure.comparison import Comparison
from udcp_dsl.report import drawing, write_report
from udcp_dsl.report.figures import Figure

ORIGIN: dict[str, Any] = {
    "title": "<i>A</i> title",
    "data": "rows & <b>rows</b>",
    "command": "udcp compare '<u>.loss'",
    "date": datetime.date(2026, 11, 16),
}
EMPTY = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=http://x.invalid onerror=alert(2)>",
    "&quot; & \"quoted\" 'single'",
    '<!-- $x_1$ ]]> #0b62a8 style="fill: #0b62a8" url(#a)',
    "עברית ו־العربية",  # noqa: RUF001  # right to left
    "日本語のラベル",
    "a\u202eb\nc\x07",
    "melanoma of a kind whose name goes on and on, " * 4,
)


def rows(n: int, K: int, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Probabilities, and truths drawn by them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.3), n)
    return P, np.array([rng.choice(K, p=p) for p in P])


@pytest.fixture(scope="session")
def ordinary() -> Comparison:
    """Two losses of one spec with a hierarchy, two levels, groups."""
    spec = """
        labels 0..7
        hierarchy h { low { odd { 1, 3 }, even { 0, 2 } }, high { 4, 5, 6, 7 } }
        param weight = 2 in [0, 9]
        loss touched = weight * count(h.level(1)) + 0.1 * size
        loss far = diameter(h) + 0.1 * size
    """
    P, y = rows(600, 8)
    losses = [udcp.loads(spec, loss=name, name="folder/digits.loss") for name in ("touched", "far")]
    groups = np.where(np.arange(len(y)) % 3 == 0, "a third", "the rest")
    return compare(
        losses, P, y, alphas=("0.1", "0.2"), oracles=["lac", "penalized", "price", "ratio"], splits=3, groups=groups
    )


@pytest.fixture(scope="session")
def part(ordinary: Comparison) -> Comparison:
    """One loss of it at one level."""
    runs = tuple(run for run in ordinary.runs if run.loss == "touched" and run.alpha == ordinary.alphas[0])
    return replace(ordinary, losses=ordinary.losses[:1], names=("touched",), alphas=ordinary.alphas[:1], runs=runs)


@pytest.fixture(scope="session")
def wide(ordinary: Comparison) -> Comparison:
    """As many oracles as there are, and one more: their numbers are those of `lac` but for `price`'s."""
    names = ("base", "greedy", "ilp", "lac", "an oracle of our own", "penalized", "price", "raps", "ratio")

    def spread(held: Mapping[str, Any]) -> dict[str, Any]:
        return {name: held["price" if name == "price" else "lac"] for name in names}

    def of(oracle: str) -> str:
        return "price" if oracle == "price" else "lac"

    by_cell = {(run.loss, run.oracle, run.alpha, run.split): run for run in ordinary.runs}
    return replace(
        ordinary,
        runs=tuple(
            replace(by_cell[loss, of(oracle), alpha, split], oracle=oracle)
            for loss in ordinary.names for oracle in names for alpha in ordinary.alphas for split in range(3)
        ),
        along={(loss, oracle): ordinary.along[loss, of(oracle)] for loss in ordinary.names for oracle in names},
        examples={
            loss: tuple(
                replace(x, sets=spread(x.sets), costs=spread(x.costs), terms=spread(x.terms)) for x in examples
            )
            for loss, examples in ordinary.examples.items()
        },
    )  # fmt: skip


@pytest.fixture(scope="session")
def hostile() -> Comparison:
    """Labels, groups, categories and ids that are no plain words; a cost that is negative; categories that overlap."""
    quoted = [json.dumps(label, ensure_ascii=False) for label in HOSTILE]
    loss = udcp.loads(
        f"""# see https://example.invalid </code></pre><script>alert(3)</script>
        costs c {{ {quoted[0]}: -1, default: 1 }}
        categories f {{ "<b>bold</b>": {{ {", ".join(quoted[:6])} }}, other: {{ {", ".join(quoted[4:7])} }} }}
        loss l = sum(c) + count(f)""",
        labels=HOSTILE,
    )
    P, y = rows(500, len(HOSTILE), 1)
    names = np.array(HOSTILE)[np.arange(len(y)) % len(HOSTILE)]
    return compare(
        loss, P, y, oracles=["base", "price"], splits=2, groups=names, ids=[f"<i>{i}</i>" for i in range(len(y))]
    )


@pytest.fixture(scope="session")
def smallest() -> Comparison:
    """Two labels, one oracle, one split, no groups, no categories, few rows."""
    P, y = rows(40, 2, 2)
    return compare(udcp.loads("labels {no, yes} loss l = size"), P, y, oracles=["lac"], splits=1)


@pytest.fixture(scope="session")
def origin() -> dict[str, Any]:
    """What the pages say of where they come from."""
    return ORIGIN


@pytest.fixture(scope="session")
def pages(
    ordinary: Comparison, hostile: Comparison, smallest: Comparison, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The page of each. The pictures of the ordinary one are those of its first loss and level: to draw each loss and
    level anew takes seconds, and ids of pictures that are the same are the likeliest to be given twice."""
    folder = tmp_path_factory.mktemp("pages")
    made = {"ordinary": ordinary, "hostile": hostile, "smallest": smallest}
    draw = drawing._rendered
    for name, comparison in made.items():
        kinds: dict[str, Any] = {}

        def of_its_kind(figure: Figure, formats: Sequence[str], kinds: dict[str, Any] = kinds) -> Any:
            kind = re.sub(r"^(touched|far)-|-alpha-.*", "", figure.name)
            if kind not in kinds:
                kinds[kind] = draw(figure, formats)
            return kinds[kind]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawing, "_rendered", of_its_kind)
            write_report(folder / name, comparison, **ORIGIN)
    return {name: (folder / name).read_text(encoding="utf-8") for name in made}


@pytest.fixture(scope="session")
def pictures(pages: dict[str, str]) -> dict[str, list[str]]:
    """Those of each page, in its order, which is that of `figures`."""
    return {name: re.findall('<svg (?!class="swatch").*?</svg>', page, re.S) for name, page in pages.items()}


@pytest.fixture
def draw_only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Given what is in their names: of all others the pictures are empty from here on."""
    draw = drawing._rendered

    def some(parts: Sequence[str], figure: Figure, formats: Sequence[str]) -> Any:
        wanted = any(part in figure.name for part in parts)
        return draw(figure, formats) if wanted else (dict.fromkeys(formats, EMPTY), {})

    return lambda *parts: monkeypatch.setattr(drawing, "_rendered", functools.partial(some, parts))
