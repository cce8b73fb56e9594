"""The cases of dominance.py: losses of every class that `price` has a way for, each with rows to judge on.

Synthetic posteriors are true: whoever draws y draws it from p. The real classifiers are those of `udcp_dsl.datasets`,
each in two states: as it is, and repaired as `SetPredictor` repairs p by default, on other rows than those judged.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl import datasets

LANGUAGES = Path(__file__).parent.parent / "specs" / "languages"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """A loss and rows to judge on; `y` None means that p is true. Lambda is tuned on the rows of `tuning` alone.

    `ilp` is judged on the first `ilp_rows` of the rows, beside `price` on the same. `repair` is that of `P` and
    `tuning`, None if the classifier is as it is. `wrong` says that its p are so by design.
    """

    name: str
    about: str
    loss: Any
    P: NDArray[np.floating[Any]]
    tuning: NDArray[np.floating[Any]]
    y: NDArray[np.int64] | None = None
    tuning_y: NDArray[np.int64] | None = None
    ilp_rows: int = 100
    ilp_options: Mapping[str, object] = field(default_factory=dict)
    repair: udcp.Repair | None = None
    wrong: bool = False


# Synthetic posteriors -----------------------------------------------------------------------------------------------


def posteriors(n: int, k: int, rng: np.random.Generator) -> Floats:
    """Softmax of logits that families of labels share in part; rows differ in how sure they are."""
    families = -(-k // 10)
    family = np.arange(k) % families
    logits = rng.normal(size=(n, families))[:, family] + rng.normal(size=(n, k))
    logits *= np.exp(rng.normal(loc=0.8, scale=0.5, size=(n, 1)))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def declarations(k: int) -> str:
    """Labels 0 .. k-1: families of 10, branches of 3 families, a tree of these, overlapping groups, costs."""
    families = -(-k // 10)
    members = [[str(y) for y in range(k) if y % families == f] for f in range(families)]
    branches = [range(b, min(b + 3, families)) for b in range(0, families, 3)]

    def braced(parts: Iterable[str]) -> str:
        return f"{{ {', '.join(parts)} }}"

    def listed(name: str, parts: list[list[str]]) -> str:
        return f"categories {name} {braced(f'c{i}: {braced(part)}' for i, part in enumerate(parts))}"

    tree = braced(f"b{i} {braced(f'f{f} {braced(members[f])}' for f in branch)}" for i, branch in enumerate(branches))
    groups = [[str(y % k) for y in range(start, start + 8)] for start in range(0, k, 5)]
    return "\n".join(
        [
            f"labels 0..{k - 1}",
            listed("family", members),
            listed("branch", [[y for f in branch for y in members[f]] for branch in branches]),
            listed("group", groups),
            f"hierarchy tree {tree}",
            f"costs cost {braced(f'{y}: {0.5 + 7919 * y % 1009 / 1009:.4f}' for y in range(k))}",
            f"category urgent {braced(str(y) for y in range(0, k, 7))}",
        ]
    )


def distances(k: int) -> bytes:
    """A matrix of distances between k points of a plane, as a file."""
    points = np.random.default_rng(1).normal(size=(k, 2))
    data = io.BytesIO()
    np.save(data, np.round(np.abs(points[:, None] - points).sum(axis=-1), 3))
    return data.getvalue()


# name, labels, rows, the loss, rows for ilp
SYNTHETIC: tuple[tuple[str, int, int, str, int], ...] = (
    ("label costs", 100, 4000, "sum(cost)", 40),
    ("disjoint counts", 100, 4000, "count(family)", 2000),
    ("disjoint counts + size", 100, 4000, "count(family) + 0.05 * size", 40),
    ("nested counts + size", 200, 4000, "2 * count(branch) + count(family) + 0.05 * size", 20),
    ("tree diameter", 100, 4000, "diameter(tree)", 2000),
    ("tree diameter + counts + size", 60, 4000, "diameter(tree) + count(family) + 0.05 * size", 50),
    ("overlapping groups + size", 60, 4000, "count(group) + 0.05 * size", 40),
    ("concave of size + label costs", 100, 4000, "2 * sqrt(size) + 0.3 * sum(cost)", 20),
    ("convex of size + label costs", 50, 4000, "0.1 * size ^ 2 + sum(cost)", 50),
    (
        "triage-like mix", 20, 1000,
        "sum(cost) + 2 * count(family) + 3 * any(urgent) + diameter(tree)"
        " + 5 * (any(family.c0) and any(family.c1)) + 0.01 * size",
        100,
    ),
    ("never together", 40, 2000, "8 * (any(family.c0) and any(family.c1)) + sum(cost)", 20),
    ("a step of size", 40, 2000, "8 * (size > 3) + sum(cost) + count(family)", 20),
    ("tree diameter + label costs", 60, 2000, "3 * diameter(tree) + sum(cost)", 20),
    ("convex of counts", 40, 2000, "max(count(group) - 2, 0) ^ 2 + sum(cost)", 20),
    ("diameter of a matrix", 40, 2000, "3 * diameter(far) + 0.2 * sum(cost)", 20),
)  # fmt: skip


def synthetic(quick: bool) -> Iterator[tuple[str, Callable[[], Case]]]:
    for name, *given in SYNTHETIC:
        yield name, partial(_synthetic, quick, name, *given)


def _synthetic(quick: bool, name: str, k: int, n: int, text: str, ilp_rows: int) -> Case:
    n, k, ilp_rows = (60, 12, 2) if quick else (n, k, ilp_rows)
    rng = np.random.default_rng(0)
    loss = udcp.loads(
        f'{declarations(k)}\ndistance far from "far.npy"\nloss l = {text}', files={"far.npy": distances(k)}
    )
    P, tuning = posteriors(n, k, rng), posteriors(max(n // 2, 60), k, rng)
    # Beyond 1 - 2^-8 of the mass, no set at these alphas is asked for.
    levels = {"levels": [1 - 0.5**j for j in range(1, 9)]}
    return Case(name, f"`{text}`, K = {k}", loss, P, tuning, ilp_rows=ilp_rows, ilp_options=levels)


# Real classifiers ---------------------------------------------------------------------------------------------------

DIGITS = """
labels 0..9
categories shape { round: { 0, 6, 8, 9 }, straight: { 1, 4, 7 }, open: { 2, 3, 5 } }
loss shapes = count(shape) + 0.2 * size
"""


CLASSIFIERS = ("languages, normalised", "languages, raw", "texts through torch")
REPAIRED = ", repaired"  # ends the name of such a case
WRONG = "digits, C = 1: shapes"  # as often right as the other, but far less sure than it may be


@cache
def probabilities(classifier: str) -> NDArray[np.floating[Any]]:
    """What one of the classifiers says about the strings of `languages`."""
    data = datasets.languages()
    if classifier == "texts through torch":
        return datasets.texts_through_torch(data).probs
    return data.probs_raw if classifier == "languages, raw" else data.probs_normalised


def real(quick: bool) -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each case as it is, then repaired."""
    makes = {
        "digits: shapes": partial(_digits, "digits: shapes", {}, 3 if quick else 200),
        WRONG: partial(_digits, WRONG, {"C": 1.0}, 3 if quick else 200),
    }
    if not quick:
        for classifier in CLASSIFIERS:
            for file in ("branches", "diameter"):
                name = f"{classifier}: {file}"
                makes[name] = partial(_languages, name, classifier, file)
    for name, make in makes.items():
        yield name, make
        yield name + REPAIRED, partial(lambda make: repaired(make()), make)


def repaired(case: Case) -> Case:
    """The case with p as a predictor with its defaults sees them, calibrated on the rows of `tuning`."""
    predictor = udcp.SetPredictor(case.loss, "lac").calibrate(case.tuning, case.tuning_y)
    P, tuning = (predictor.repaired(p) for p in (case.P, case.tuning))
    return replace(case, name=case.name + REPAIRED, P=P, tuning=tuning, repair=predictor.repair, wrong=False)


def _digits(name: str, options: dict[str, float], ilp_rows: int) -> Case:
    data = datasets.digits(**options)
    case = _in_halves(name, "count(shape) + 0.2 * size", udcp.loads(DIGITS), data.probs, data.y, ilp_rows)
    return replace(case, wrong=name == WRONG)


def _languages(name: str, classifier: str, file: str) -> Case:
    loss = udcp.load(LANGUAGES / f"{file}.loss")
    text = "count(langs.branch) + 0.01 * size" if file == "branches" else "diameter(langs) + 0.01 * size"
    return _in_halves(name, text, loss, probabilities(classifier), datasets.languages().y, 60)


def _in_halves(name: str, text: str, loss: Any, P: Any, y: Any, ilp_rows: int) -> Case:
    """The rows are in random order: some to judge on, as many others to tune on."""
    n = min(5000, len(y) // 2)
    about = f"`{text}`, K = {loss.K}"
    return Case(name, about, loss, P[:n], P[n : 2 * n], y[:n], y[n : 2 * n], ilp_rows=ilp_rows)
