"""The problems of rivals.py: real classifiers, each under losses that a user of it would write, and under those that a
rival is made for. The rivals are given p at a temperature fitted on other rows; `price` has its default, the repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dominance_cases import DIGITS, Case, probabilities
from rivals import Floats, Ints, frequencies, same_group
from scipy.special import softmax

import udcp_dsl as udcp
from udcp_dsl import datasets
from udcp_dsl.predict.repair import fit_repair
from udcp_dsl.predict.stages.repair import MAX_ROWS, MIN_ROWS, SHARE

ROOT = Path(__file__).parent.parent
LANGUAGES = ("languages, normalised", "languages, raw", "texts through torch")
SPECS = {"medicine": "medicine/blocks.loss", "source_code": "code/languages.loss", "icons": "icons/icons.loss"}
ABOUT = {
    "medicine": {"departments": "count(icd.chapter) + 0.05 * size", "entries": "nodes(icd) + 0.02 * size"},
    "source_code": {
        "parsers": "count(code.family) + 0.2 * size",
        "languages": "count(code.family) + 0.2 * size + 3 * (any(runs) and not within(runs))",
    },
    "icons": {
        "spoken": "count(icon.meaning) + count(icon.kind) + 0.05 * size",
        "icons": "count(icon.meaning) + 0.05 * size + 4 * (any(final) and not within(final))",
    },
}
# The kind of loss that a rival is made for.
OWN = {
    "socop": "`(size >= 2) + 0.1 * size`, which is SOCOP's target with lam 0.1",
    "pas": "`sum(prevalence)`, of which PAS is the exact answer",
    "rac": "`worst(route)`, RAC's: the best single action in the worst case",
    "structured": "`size + 20 * (nodes(langs) >= 3)`: fewest labels that two nodes say",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A case, the groups that its labels are in, and a hierarchy or a table of actions where it has one. Problems of
    one `classifier` have the same rows and the same likeness of labels.

    `case` has p as the rivals are given them, at a fitted `temperature`; `repaired` as `price` has them by default.
    """

    case: Case
    repaired: Case
    temperature: float
    classifier: str
    groups: Ints
    tree: Any = None
    losses: Floats | None = None
    own: str | None = None
    similarity: Floats = field(init=False)

    def __post_init__(self) -> None:
        likeness = same_group(self.groups)
        if self.tree is not None:
            likeness = self.tree.common_depth(np.arange(self.tree.K)) / max(self.tree.height, 1)
        object.__setattr__(self, "similarity", np.asarray(likeness, dtype=np.float64))

    def all_repaired(self) -> Problem:
        """The rivals given the same p as `price`."""
        return replace(self, case=self.repaired)


def problems(n: int) -> Iterator[tuple[str, Callable[[], Problem]]]:
    """By name; n rows to tune on, or half of the rows if there are fewer than 2 n."""
    for classifier in LANGUAGES:
        for file in ("branches", "diameter"):
            yield f"{classifier}: {file}", partial(_languages, classifier, file, n)
    yield "digits: shapes", partial(_digits, n)
    for classifier, losses in ABOUT.items():
        for loss in losses:
            yield f"{classifier}: {loss}", partial(_of_spec, classifier, loss, n)
    for own in OWN:
        yield f"languages, own loss of {own}", partial(_own, own, n)


def _case(name: str, about: str, loss: Any, P: Any, y: Any, n: int, judged: int | None = None) -> Case:
    """n rows to tune on, and as many others to judge on, or `judged` of these."""
    n = min(n, len(y) // 2)
    rows = slice(min(n, judged or n))
    return Case(name, about, loss, P[rows], P[n : 2 * n], y[rows], y[n : 2 * n])


def _problem(case: Case, *about: Any) -> Problem:
    at_temperature, T = fitted(case)
    return Problem(at_temperature, repaired(case), T, *about)


def repaired(case: Case) -> Case:
    """The case with p repaired as by default: on as many rows of `tuning` as calibration spares for it of so many."""
    assert case.tuning_y is not None
    fold = min(max(int(SHARE * len(case.tuning)), MIN_ROWS), MAX_ROWS)
    repair = fit_repair(case.tuning[:fold], case.tuning_y[:fold], rng=np.random.default_rng(0))
    return replace(case, P=repair.apply(case.P), tuning=repair.apply(case.tuning), repair=repair)


def fitted(case: Case) -> tuple[Case, float]:
    """The case at the temperature that fits the rows of `tuning`: log p are logits, and what is 0 stays 0."""
    from udcp_dsl.torch import fit_temperature

    with np.errstate(divide="ignore"):
        P, tuning = (np.log(p.astype(np.float64)) for p in (case.P, case.tuning))
    T = fit_temperature(tuning, case.tuning_y)
    return replace(case, P=softmax(P / T, axis=1), tuning=softmax(tuning / T, axis=1)), T


def _tree(loss: Any) -> tuple[Ints, Any]:
    tree = loss.hierarchies[0]
    return tree.nodes_at(len(tree.levels) or 1), tree


def _languages(classifier: str, file: str, n: int) -> Problem:
    loss = udcp.load(ROOT / "specs" / "languages" / f"{file}.loss")
    about = "count(langs.branch) + 0.01 * size" if file == "branches" else "diameter(langs) + 0.01 * size"
    case = _case(f"{classifier}: {file}", f"`{about}`", loss, probabilities(classifier), datasets.languages().y, n)
    return _problem(case, f"{classifier}, {n} rows", *_tree(loss))


def _digits(n: int) -> Problem:
    data = datasets.digits()
    loss = udcp.loads(DIGITS)
    case = _case("digits: shapes", "`count(shape) + 0.2 * size`", loss, data.probs, data.y, n)
    return _problem(case, "digits", np.array([0, 1, 2, 2, 1, 2, 0, 1, 0, 0]))


def _of_spec(classifier: str, name: str, n: int) -> Problem:
    """A classifier whose labels are those of a spec."""
    data = getattr(datasets, classifier)()
    loss = udcp.load(ROOT / "specs" / SPECS[classifier], loss=name)
    case = _case(f"{classifier}: {name}", f"`{ABOUT[classifier][name]}`", loss, data.probs, data.y, n)
    return _problem(case, classifier, *_tree(loss))


def _own(own: str, n: int) -> Problem:
    """A rival's own kind of loss, over the languages."""
    y = datasets.languages().y
    P = probabilities("languages, normalised")
    folder = ROOT / "specs" / "languages"
    head = (
        'labels from "languages.csv" column code\nhierarchy langs from "languages.csv" levels family, branch\n'
        f"costs prevalence {{ {_listed(frequencies(y[n : 2 * n], 140), folder)} }}\n"
    )
    text = {
        "socop": "(size >= 2) + 0.1 * size",
        "pas": "sum(prevalence)",
        "structured": "size + 20 * (nodes(langs) >= 3)",
    }
    losses = None
    if own == "rac":
        loss, losses = _routes(folder)
    else:
        loss = udcp.loads(f"{head}loss own = {text[own]}\n", folder=folder)
    groups, tree = _tree(udcp.load(folder / "branches.loss"))
    judged = n // 25 if own == "structured" else n  # a step in nodes(h) makes `price` search
    case = _case(f"languages, own loss of {own}", OWN[own], loss, P, y, n, judged)
    return _problem(case, f"{LANGUAGES[0]}, {judged} rows", groups, tree, losses, own)


def _listed(costs: Floats, folder: Path) -> str:
    labels = udcp.load(folder / "branches.loss").labels
    return ", ".join(f'"{label}": {cost!r}' for label, cost in zip(labels, costs.tolist(), strict=True))


def _routes(folder: Path) -> tuple[Any, Floats]:
    """Whom to send a text to: a translator of its family (right 1, wrong 6), or a panel that reads all (3)."""
    from tempfile import TemporaryDirectory

    tree = udcp.load(folder / "branches.loss").hierarchies[0]
    families = tree.nodes_at(1)
    names = np.unique(families)
    losses = np.where(families[:, None] == names, 1.0, 6.0)
    losses = np.append(losses, np.full((len(losses), 1), 3.0), axis=1)
    labels = udcp.load(folder / "branches.loss").labels
    with TemporaryDirectory() as made:
        acts = [f"a{i}" for i in range(losses.shape[1])]
        table = {y: dict(zip(acts, row, strict=True)) for y, row in zip(labels, losses.tolist(), strict=True)}
        (Path(made) / "route.json").write_text(json.dumps(table), encoding="utf-8")
        spec = 'actions route from "route.json"  loss own = worst(route)'
        return udcp.loads(spec, labels=list(labels), folder=Path(made)), losses
