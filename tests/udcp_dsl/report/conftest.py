"""Small comparisons: an ordinary one, one whose names are hostile to a page, and the smallest there is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import udcp_dsl as udcp
from udcp_dsl.comparison import Comparison, compare

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
        curves={(loss, oracle): ordinary.curves[loss, of(oracle)] for loss in ordinary.names for oracle in names},
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
