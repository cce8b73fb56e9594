"""The published rivals beside `price`: cost at matched coverage, coverage by quarter, time; on the real classifiers of
the repository with a temperature fitted on other rows, and on each rival's own kind of loss.

    python benchmarks/rivals.py [--rows N] [--only NAME] [--output FOLDER]

Every method is given the same rows to tune on, chooses its own options there by the cost that it is judged by, and is
judged on others, at the level at which it covers 1 - alpha of them (two neighbouring levels mixed). A standard error
is that of the paired difference to `price`, by row, each row's cost less what its coverage costs at that method's own
rate. What the libraries have (MAPIE, TorchCP, crepes, puncc) are `lac`, `base` and `raps`: benchmarks/peers.py runs
them. Writes rivals.json and rivals.md to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dominance_cases import DIGITS, FITTED, Case, fitted, probabilities
from rivals import (
    ByScore,
    Family,
    Floats,
    Ints,
    Masks,
    clustered,
    fargion,
    frequencies,
    pas,
    rac,
    same_group,
    socop,
    stratcp,
    structured,
)
from writing import write

import udcp_dsl as udcp
from udcp_dsl import datasets
from udcp_solvers.price import takes_anchor

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
ALPHAS = (0.05, 0.1)
NOISE, ROUNDING = 2.0, 1e-9
METHODS = ("lac", "socop", "pas", "rac", "fargion", "structured", "stratcp", "clustered")
# The kind of loss that a rival is made for.
OWN = {
    "socop": "`(size >= 2) + 0.1 * size`, which is SOCOP's target with lam 0.1",
    "pas": "`sum(prevalence)`, of which PAS is the exact answer",
    "rac": "`worst(route)`, RAC's: the best single action in the worst case",
    "structured": "`size + 20 * (nodes(langs) >= 3)`: fewest labels that two nodes say",
}


class ByPrice(Family):
    """The best sets at a price of mass: what `price` gives at its anchor, also where they are not nested."""

    def __init__(self, oracle: Any, P: Floats) -> None:
        self.oracle, self.P = oracle, P

    def at(self, level: float) -> Masks:
        return np.asarray(self.oracle.best(self.P, np.full(len(self.P), level)))

    def levels(self, y: Ints) -> Floats:
        return np.append(0.0, np.geomspace(1e-2, 1e5, 220))


@dataclass(frozen=True, eq=False)
class Problem:
    """A case, the groups that its labels are in, and a hierarchy or a table of actions where it has one."""

    case: Case
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


# Methods ------------------------------------------------------------------------------------------------------------


def price(problem: Problem, alpha: float) -> Family:
    oracle: Any = udcp.make_oracle("price", problem.case.loss)
    if takes_anchor(problem.case.loss):
        return ByPrice(oracle, problem.case.P)
    return ByScore(oracle.scores(problem.case.P))


def tuned(problem: Problem, alpha: float, make: Callable[[Floats, Any], Family], grid: tuple[Any, ...]) -> Family:
    """The family with the option that is cheapest on the rows of tuning, at the coverage asked."""
    case = problem.case
    assert case.tuning_y is not None
    costs = [matched(make(case.tuning, option), case.loss, case.tuning_y, 1 - alpha).cost for option in grid]
    return make(case.P, grid[int(np.argmin(costs))])


def method(name: str, problem: Problem, alpha: float) -> Family | None:
    """One of METHODS on the rows of a problem; None where it does not apply."""
    case = problem.case
    match name:
        case "lac":
            return ByScore(-np.asarray(case.P, dtype=np.float64))
        case "socop":
            return tuned(problem, alpha, socop.family, (0.01, 0.03, 0.1, 0.3, 1.0))
        case "pas":
            assert case.tuning_y is not None
            return pas.family(case.P, frequencies(case.tuning_y, case.loss.K))
        case "rac":
            return None if problem.losses is None else rac.Rac(case.P, problem.losses)
        case "fargion":
            return tuned(problem, alpha, lambda P, lam: fargion.family(P, problem.similarity, lam), fargion.GRID)
        case "structured":
            if problem.tree is None:
                return None
            return tuned(problem, alpha, lambda P, m: structured.Structured(P, problem.tree, m), (1, 2, 4))
        case "stratcp":
            return stratcp.family(case.P, problem.similarity)
        case _:
            assert case.tuning_y is not None
            return clustered.Clustered(case.P, case.tuning, case.tuning_y, alpha, np.random.default_rng(0))


# At matched coverage ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Matched:
    """By row, coverage and cost at the level of a mean coverage; `rate`: what more coverage costs there."""

    covered: Floats
    costs: Floats
    rate: float

    @property
    def cost(self) -> float:
        return float(self.costs.mean())

    @property
    def adjusted(self) -> Floats:
        return self.costs - self.rate * self.covered


def matched(found: Family, loss: Any, y: Ints, target: float) -> Matched:
    """The two levels around a coverage, mixed to it; where it is never reached, the last level."""
    levels, rows, known = found.levels(y), np.arange(len(y)), dict[int, Masks]()

    def sets(i: int) -> Masks:
        if i not in known:
            known[i] = found.at(float(levels[i]))
        return known[i]

    def around(goal: float) -> tuple[int, int]:
        low, high = -1, len(levels) - 1  # the first level is not held to cover less
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if sets(middle)[rows, y].mean() < goal else (low, middle)
        return max(high - 1, 0), high

    def mean(i: int) -> tuple[float, float]:
        return float(sets(i)[rows, y].mean()), float(loss.batch(sets(i)).mean())

    low, high = around(target)
    covers = [sets(i)[rows, y].astype(np.float64) for i in (low, high)]
    costs = [loss.batch(sets(i)) for i in (low, high)]
    gap = covers[1].mean() - covers[0].mean()
    part = 1.0 if gap <= 0 else float(np.clip((target - covers[0].mean()) / gap, 0.0, 1.0))
    (c0, v0), (c1, v1) = mean(around(target - 0.02)[0]), mean(around(min(target + 0.02, 0.999))[1])
    rate = (v1 - v0) / (c1 - c0) if c1 > c0 else 0.0
    mix = [(1 - part) * a + part * b for a, b in (covers, costs)]
    return Matched(mix[0], mix[1], rate)


def judge(problem: Problem, alpha: float) -> dict[str, Any]:
    """What every method costs at coverage 1 - alpha, beside `price`."""
    case, target = problem.case, 1 - alpha
    assert case.y is not None
    hard = np.argsort(np.argsort(case.P.max(axis=1), kind="stable"), kind="stable") * 4 // len(case.P)
    ours: Matched | None = None
    methods = []
    for name in ("price", *METHODS):
        start = time.perf_counter()
        found = price(problem, alpha) if name == "price" else method(name, problem, alpha)
        if found is None:
            continue
        reached = matched(found, case.loss, case.y, target)
        seconds = time.perf_counter() - start
        ours = reached if ours is None else ours
        error = float((reached.adjusted - ours.adjusted).std() / np.sqrt(len(case.P)))
        noise = NOISE * error + ROUNDING * abs(ours.cost)
        more = reached.cost - ours.cost
        methods.append(
            {
                "method": name,
                "cost": reached.cost,
                "error": error,
                "verdict": "equal" if abs(more) <= noise else "dearer" if more > 0 else "cheaper",
                "coverage": float(reached.covered.mean()),
                "by_quarter": [float(reached.covered[hard == q].mean()) for q in range(4)],
                "ms_a_row": 1000 * seconds / len(case.P),
            }
        )
    return {
        "case": case.name.removesuffix(FITTED),
        "about": case.about,
        "own": problem.own,
        "alpha": alpha,
        "n": len(case.P),
        "temperature": case.temperature,
        "methods": methods,
    }


# Problems -----------------------------------------------------------------------------------------------------------


def problems(n: int) -> Iterator[tuple[str, Callable[[], Problem]]]:
    for classifier in ("languages, normalised", "languages, raw", "texts through torch"):
        for file in ("branches", "diameter"):
            yield f"{classifier}: {file}", partial(_languages, classifier, file, n)
    yield "digits: shapes", partial(_digits, n)
    for loss in ("departments", "entries"):
        yield f"medicine: {loss}", partial(_medicine, loss, n // 3)  # where `structured` takes a minute for 100 rows
    for own in OWN:
        # A step in nodes(h) makes `price` search.
        yield f"languages, own loss of {own}", partial(_own, own, n // 5 if own == "structured" else n)


def _case(name: str, about: str, loss: Any, P: Any, y: Any, n: int) -> Case:
    n = min(n, len(y) // 2)
    return fitted(Case(name, about, loss, P[:n], P[n : 2 * n], y[:n], y[n : 2 * n]))


def _tree(loss: Any) -> tuple[Ints, Any]:
    tree = loss.hierarchies[0]
    return tree.nodes_at(len(tree.levels) or 1), tree


def _languages(classifier: str, file: str, n: int) -> Problem:
    loss = udcp.load(ROOT / "specs" / "languages" / f"{file}.loss")
    about = "count(langs.branch) + 0.01 * size" if file == "branches" else "diameter(langs) + 0.01 * size"
    case = _case(f"{classifier}: {file}", f"`{about}`", loss, probabilities(classifier), datasets.languages().y, n)
    return Problem(case, *_tree(loss))


def _digits(n: int) -> Problem:
    data = datasets.digits()
    loss = udcp.loads(DIGITS)
    case = _case("digits: shapes", "`count(shape) + 0.2 * size`", loss, data.probs, data.y, n)
    return Problem(case, np.array([0, 1, 2, 2, 1, 2, 0, 1, 0, 0]))


def _medicine(name: str, n: int) -> Problem:
    data = datasets.medicine()
    loss = udcp.load(ROOT / "specs" / "medicine" / "blocks.loss", loss=name)
    about = {"departments": "count(icd.chapter) + 0.05 * size", "entries": "nodes(icd) + 0.02 * size"}[name]
    case = _case(f"medicine: {name}", f"`{about}`", loss, data.probs, data.y, n)
    return Problem(case, *_tree(loss))


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
    case = _case(f"languages, own loss of {own}", OWN[own], loss, P, y, n)
    return Problem(case, groups, tree, losses, own)


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


# What is written ----------------------------------------------------------------------------------------------------


def cell(found: dict[str, Any], ours: float) -> str:
    text = f"{found['cost'] / ours:.2f}" if ours > 0 else f"{found['cost'] - ours:+.2g}"
    return {"dearer": text, "equal": f"{text} =", "cheaper": f"**{text}**"}[found["verdict"]]


def table(data: dict[str, Any]) -> str:
    lines = [
        f"| case | n | T | alpha | `price` | {' | '.join(METHODS)} |",
        f"|---|---|---|---|---|{'---|' * len(METHODS)}",
    ]
    for row in data["rows"]:
        found = {one["method"]: one for one in row["methods"]}
        ours = found["price"]["cost"]
        cells = [cell(found[name], ours) if name in found else "" for name in METHODS]
        T, alpha = f"{row['temperature']:.2f}", f"{row['alpha']:g}"
        lines.append(f"| {row['case']} | {row['n']} | {T} | {alpha} | {ours:.3g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def quarters(data: dict[str, Any]) -> str:
    names = ("price", *METHODS)
    lines = [f"| case, alpha 0.1 | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for row in data["rows"]:
        if row["alpha"] == 0.1:
            found = {one["method"]: one["by_quarter"] for one in row["methods"]}
            cells = [" ".join(f"{c:.2f}" for c in found[name]) if name in found else "" for name in names]
            lines.append(f"| {row['case']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def times(data: dict[str, Any]) -> str:
    names = ("price", *METHODS)
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    spent = {name: [m["ms_a_row"] for r in data["rows"] for m in r["methods"] if m["method"] == name] for name in names}
    cells = [f"{np.median(spent[name]):.2g}" if spent[name] else "" for name in names]
    lines.append(f"| median, ms a row | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(data: dict[str, Any]) -> str:
    rows = [row for row in data["rows"] if row["own"] is None]
    held = sum(all(m["verdict"] != "cheaper" for m in row["methods"]) for row in rows)
    said = [
        f"On real classifiers `price` is lowest, or equal within two standard errors, in {held} of {len(rows)} rows "
        "of the table whose loss is no rival's own."
    ]
    for row in data["rows"]:
        for one in row["methods"]:
            if one["verdict"] == "cheaper":
                where = f"{row['case']} at alpha {row['alpha']:g}"
                own = " (its own kind of loss)" if row["own"] == one["method"] else ""
                ours = row["methods"][0]["cost"]
                said.append(
                    f"`{one['method']}` is cheaper on {where}{own}: {one['cost']:.4g} against {ours:.4g} "
                    f"(standard error {one['error']:.1g})."
                )
    return " ".join(said)


FORMULAS = """\
- `lac`: -p, which MAPIE, TorchCP, crepes and puncc have too (benchmarks/peers.py runs them).
- socop (arXiv 2509.24095): slopes of the hull of (mass of the j best labels, 1{j > 1} + lam j). **It is the loss
  `(size >= 2) + lam * size` under `price`**; a test holds the scores equal.
- pas (2507.06867): -p / prevalence. **It is `sum(prevalence)` under `ratio` or `price`**; a test holds the sets equal.
- rac (2502.02561): for a table of actions, the level of utility that is worth its probability. **It is `worst(u)` under
  `price`**; with sets for actions it is `price` for any loss. A test holds the sets equal, but for labels without mass.
- fargion (2511.19359): 1 - p + lam (1 - similarity to the likeliest label).
- structured (2410.06296): the fewest labels of a given mass that at most m nodes say. In our language `nodes(h)`.
- stratcp: cumulative mass along an order that goes by similarity among the three likeliest labels left.
- clustered (2306.09335): 1 - p with a threshold for each cluster of classes that look alike."""


WHY_PAS = (
    "The loss of PAS asks for labels by their prevalence, and 61 of the 140 languages never occur in these rows: they "
    "cost next to nothing, the classifier gives them 16 percent of the probability all the same, and no temperature "
    "takes it away. Where p is wrong in this way, `price`, and PAS with it, buys labels that cover nothing."
)


def report(data: dict[str, Any]) -> str:
    parts = [
        "# The published rivals beside `price`",
        "Mean cost at matched coverage: of `price`, then of each rival as a multiple of it. `=`: equal within two "
        "standard errors; bold: cheaper than `price`. T: the temperature, fitted on rows that are not judged. Every "
        "method tunes its options on n rows and is judged on n others. Standard errors are large where n is small.",
        table(data),
        verdict(data),
        WHY_PAS,
        "Coverage by quarter of the rows, from those in which the highest probability is lowest to the surest:",
        quarters(data),
        "Time, options tuned and level found included (rivals in plain numpy, `price` compiled; one busy machine, for "
        "the order of magnitude alone):",
        times(data),
        "## What they are",
        FORMULAS,
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1500, help="to judge on, and as many to tune on")
    parser.add_argument("--only", help="cases whose name holds this; the others stay as they were measured before")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # labels that cost nothing, rows beyond the budget of the search
    rows = []
    for name, make in problems(arguments.rows):
        if arguments.only and arguments.only not in name:
            continue
        problem = make()
        for alpha in ALPHAS:
            rows.append(judge(problem, alpha))
            shown = " ".join(f"{m['method']} {cell(m, rows[-1]['methods'][0]['cost'])}" for m in rows[-1]["methods"])
            print(f"{name}, alpha {alpha:g}: {shown}", file=sys.stderr, flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    file = arguments.output / "rivals.json"
    before = json.loads(file.read_text(encoding="utf-8"))["rows"] if arguments.only and file.is_file() else []
    fresh = {(row["case"], row["alpha"]): row for row in [*before, *rows]}
    order = [(name, alpha) for name, _ in problems(arguments.rows) for alpha in ALPHAS]
    data = {"rows": [fresh[key] for key in order if key in fresh]}
    write(file, json.dumps(data, indent=1) + "\n")
    write(arguments.output / "rivals.md", report(data))
    print(table(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
