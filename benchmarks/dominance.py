"""Mean cost of every oracle against `price` at matched coverage: on synthetic posteriors, where p is true, and on the
real classifiers of the repository, where it is not, as they are and repaired as by default, on other rows.

    python benchmarks/dominance.py [--quick] [--only NAME] [--output FOLDER]

Synthetic: each oracle's threshold is where its sets have the mean mass 1 - alpha, two neighbouring thresholds mixed, so
that coverage is equal exactly and no calibration adds noise. Real: the same with the empirical coverage of the rows
judged. `penalized` has its lambda, and `price` its anchor, from other rows. Standard errors of differences to `price`
are those of a paired bootstrap over rows. Writes dominance.json, .md and .svg to benchmarks/results, and the table into
docs/price-oracle.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from dominance_cases import CLASSIFIERS, LANGUAGES, REPAIRED, Case, probabilities, real, synthetic
from numpy.typing import NDArray
from rich.console import Console
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl.files import atomic_write
from udcp_dsl.predict.calibrate import DEFAULT_GRID
from udcp_dsl.predict.stages.anchor import MAX_ROWS, find_anchor
from udcp_dsl.rows.rows import Rows

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "price-oracle.md"
BEGIN, END = "<!-- dominance: made by benchmarks/dominance.py -->", "<!-- end of dominance -->"

ALPHAS = (0.05, 0.1, 0.2)
RIVALS = ("base", "lac", "raps", "penalized", "greedy", "ilp")
RESAMPLES = 400
# Where a curve of cost against coverage is known, in standard errors of coverage; the bootstrap reads between.
OFFSETS = (-4.0, -2.0, -1.0, 1.0, 2.0, 4.0)
NOISE = 2.0  # standard errors
ROUNDING = 1e-9  # of a mean cost, relatively
NESTED_ROWS = 2000

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]


@dataclass(frozen=True)
class Rival:
    """One oracle against `price`, on the same rows, at the same coverage."""

    oracle: str
    n: int
    cost: float
    price_cost: float
    difference_error: float
    options: dict[str, object]

    @property
    def verdict(self) -> str:
        """dearer, equal within noise, or cheaper than `price`."""
        difference = self.cost - self.price_cost
        noise = NOISE * self.difference_error + ROUNDING * abs(self.price_cost)
        return "equal" if abs(difference) <= noise else "dearer" if difference > 0 else "cheaper"


@dataclass(frozen=True)
class Row:
    case: str
    alpha: float
    price_cost: float
    rivals: tuple[Rival, ...]

    @property
    def holds(self) -> bool:
        """Whether price is lowest, or equal within noise."""
        return all(rival.verdict != "cheaper" for rival in self.rivals)


# The sample: sets of an oracle by threshold -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """Scores of all labels of some rows, and what each label covers: its p, or 1 if it is the true one."""

    loss: Any
    scores: Floats
    weights: Floats

    @staticmethod
    def of(oracle: Any, P: NDArray[np.floating[Any]], y: NDArray[np.int64] | None) -> Sample:
        weights = P.astype(np.float64) if y is None else np.eye(P.shape[1])[y]
        return Sample(oracle.loss, oracle.scores(P), weights)

    def head(self, n: int) -> Sample:
        return Sample(self.loss, self.scores[:n], self.weights[:n])

    @cached_property
    def steps(self) -> tuple[Floats, Floats]:
        """Every threshold at which coverage rises, and the mean coverage there; first the empty sets."""
        some = self.weights > 0
        values, inverse = np.unique(self.scores[some], return_inverse=True)
        gained = np.bincount(inverse, weights=self.weights[some], minlength=len(values)) / len(self.weights)
        return np.append(-np.inf, values), np.append(0.0, np.cumsum(gained))

    def at(self, tau: float) -> tuple[Floats, Floats]:
        """Coverage and cost of each row's set."""
        masks = self.scores <= tau
        return (self.weights * masks).sum(axis=1), self.loss.batch(masks)


def crossing(coverage: Floats, target: float) -> tuple[int, int, float]:
    """The two steps around a coverage, and how much of the second mixes them to it."""
    high = min(int(np.searchsorted(coverage, target * (1 - 1e-12))), len(coverage) - 1)
    low = max(high - 1, 0)
    gap = coverage[high] - coverage[low]
    return low, high, 1.0 if gap <= 0 else min(max(float((target - coverage[low]) / gap), 0.0), 1.0)


def mixed(sample: Sample, target: float) -> tuple[Floats, Floats]:
    """By row, coverage and cost where the mean coverage is `target`."""
    taus, coverage = sample.steps
    low, high, part = crossing(coverage, target)
    (covered, costs), (more_covered, more_costs) = (sample.at(tau) for tau in taus[[low, high]])
    return (1 - part) * covered + part * more_covered, (1 - part) * costs + part * more_costs


def cost_at(sample: Sample, target: float) -> float:
    return float(mixed(sample, target)[1].mean())


@dataclass(frozen=True, eq=False)
class Curve:
    """By row, coverage and cost at some thresholds around the one of coverage `target`, rising."""

    target: float
    covered: Floats
    costs: Floats

    @staticmethod
    def around(sample: Sample, target: float) -> Curve:
        taus, coverage = sample.steps
        low, high, _ = crossing(coverage, target)
        error = float(sample.at(taus[high])[0].std()) / np.sqrt(len(sample.scores))
        wanted = np.clip(target + error * np.array(OFFSETS), 0.0, coverage[-1] * (1 - 1e-12))
        places = np.unique([low, high, *np.searchsorted(coverage, wanted)])
        covered, costs = zip(*(sample.at(tau) for tau in taus[places]), strict=True)
        return Curve(target, np.stack(covered, axis=1), np.stack(costs, axis=1))

    def resampled(self, weights: Floats) -> Floats:
        """The cost at the target in each resample, read off the line between known points."""
        covered, costs = weights @ self.covered, weights @ self.costs
        return np.array([np.interp(self.target, c, v) for c, v in zip(covered, costs, strict=True)])


# Judging a case -----------------------------------------------------------------------------------------------------


def judge(case: Case, rng: np.random.Generator) -> Iterator[Row]:
    """One row an alpha."""
    samples = {name: Sample.of(udcp.make_oracle(name, case.loss), case.P, case.y) for name in RIVALS[:3]}
    samples["greedy"] = Sample.of(udcp.make_oracle("greedy", case.loss), case.P, case.y)
    penalized = [
        (lam, Sample.of(udcp.make_oracle("penalized", case.loss, lam=lam), case.tuning, case.tuning_y))
        for lam in DEFAULT_GRID
    ]
    n, few = len(case.P), case.ilp_rows
    exact = udcp.make_oracle("ilp", case.loss, **case.ilp_options)
    samples["ilp"] = Sample.of(exact, case.P[:few], None if case.y is None else case.y[:few])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
    few_weights = rng.multinomial(few, np.full(few, 1 / few), size=RESAMPLES) / few
    truths = case.tuning_y if case.tuning_y is not None else drawn(case.tuning, rng)
    for alpha in ALPHAS:
        target = 1 - alpha
        samples["price"] = Sample.of(anchored(case, truths, target), case.P, case.y)
        few_of_price = samples["price"].head(few)
        lam = min((cost_at(sample, target), lam) for lam, sample in penalized)[1]
        samples["penalized"] = Sample.of(udcp.make_oracle("penalized", case.loss, lam=lam), case.P, case.y)
        on_all, on_few = (
            (cost_at(ours, target), Curve.around(ours, target).resampled(draws), draws)
            for ours, draws in ((samples["price"], weights), (few_of_price, few_weights))
        )
        rivals = []
        for name in RIVALS:
            price_cost, price_costs, draws = on_few if name == "ilp" else on_all
            theirs = samples[name]
            error = float((Curve.around(theirs, target).resampled(draws) - price_costs).std(ddof=1))
            options: dict[str, object] = {"lam": lam} if name == "penalized" else {}
            rivals.append(Rival(name, draws.shape[1], cost_at(theirs, target), price_cost, error, options))
        yield Row(case.name, alpha, on_all[0], tuple(rivals))


def anchored(case: Case, truths: NDArray[np.int64], target: float) -> Any:
    """`price` with its anchor from as many rows of `tuning` as calibration would take for it."""
    oracle: Any = udcp.make_oracle("price", case.loss)
    if not oracle.wants_anchor:
        return oracle
    rows = Rows(case.loss.labels, case.tuning[:MAX_ROWS].astype(np.float64), truths[:MAX_ROWS])
    anchor = find_anchor(oracle, rows, target)
    return oracle if anchor is None else udcp.make_oracle("price", case.loss, anchor=anchor)


def drawn(P: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """A true label of each row, by its p."""
    return np.array([rng.choice(len(p), p=p) for p in P], dtype=np.int64)


def share_not_nested(loss: Any, P: NDArray[np.floating[Any]]) -> float:
    """The share of rows in which a label leaves S_mu while the price rises."""
    oracle: Any = udcp.make_oracle("price", loss)
    return float(np.mean([any(step.left for step in oracle.explain(p)) for p in P]))


# What is written ----------------------------------------------------------------------------------------------------


def as_data(case: Case, row: Row) -> dict[str, Any]:
    rivals = [{**asdict(rival), "verdict": rival.verdict} for rival in row.rivals]
    return {
        **asdict(row),
        "about": case.about,
        "true_p": case.y is None,
        "repair": None if case.repair is None else brief(case.repair),
        "wrong": case.wrong,
        "n": len(case.P),
        "holds": row.holds,
        "rivals": rivals,
    }


def brief(repair: udcp.Repair) -> str:
    """Exponent a, smoothing w and number of labels shifted."""
    if not repair.adopted:
        return "none"
    smoothing = f"w {repair.smoothing:g}, " if repair.smoothing else ""
    return f"a {repair.exponent:.2f}, {smoothing}{repair.n_shifted} shifted"


def against_price(rival: dict[str, Any]) -> str:
    """What is paid, as a multiple of what `price` pays, or as a difference where that pays nothing."""
    ours, theirs = rival["price_cost"], rival["cost"]
    text = f"{theirs / ours:.2f}" if ours > 0 else f"{theirs - ours:+.2g}"
    return {"dearer": text, "equal": f"{text} =", "cheaper": f"**{text}**"}[rival["verdict"]]


def table(data: dict[str, Any], alphas: tuple[float, ...]) -> list[str]:
    """In Markdown, one line a case and an alpha."""
    lines = [
        f"| loss | repair | alpha | `price` | {' | '.join(f'`{name}`' for name in RIVALS)} | lowest or equal |",
        f"|---|---|---|---|{'---|' * len(RIVALS)}---|",
    ]
    for row in data["rows"]:
        if row["alpha"] in alphas:
            others = " | ".join(against_price(rival) for rival in row["rivals"])
            held = "yes" if row["holds"] else "no"
            start = f"| {row['case']} | {row['repair'] or ''} | {row['alpha']:g} | {row['price_cost']:.3g}"
            lines.append(f"{start} | {others} | {held} |")
    return lines


# By whether p is true, whether it was repaired, and whether it is wrong by design.
STATES = {
    (True, False, False): "With true p",
    (False, False, False): "On real classifiers as they are",
    (False, True, False): "On real classifiers, repaired on other rows,",
    (False, False, True): "On the digits with C = 1, whose p are wrong by design,",
}


def verdict(data: dict[str, Any]) -> list[str]:
    """For each state of p the count of rows that hold, and each row that does not, by name."""
    found = []
    for state, where in STATES.items():
        rows = [row for row in data["rows"] if (row["true_p"], row["repair"] is not None, row["wrong"]) == state]
        if rows:
            held = sum(row["holds"] for row in rows)
            found.append(f"{where} `price` is lowest, or equal within noise, in {held} of {len(rows)} rows.")
        for row in rows:
            for rival in row["rivals"]:
                if rival["verdict"] == "cheaper":
                    found.append(
                        f"`{rival['oracle']}` is cheaper on {row['case']} at alpha {row['alpha']:g}: "
                        f"{rival['cost']:.4g} against {rival['price_cost']:.4g} "
                        f"(standard error {rival['difference_error']:.1g})."
                    )
    return found


def effect(data: dict[str, Any]) -> str:
    """What the repair does to the cost of `price` itself, on the same rows at the same coverage."""
    costs = {(row["case"], row["alpha"]): row["price_cost"] for row in data["rows"]}
    repaired = [key for key in costs if key[0].endswith(REPAIRED)]
    changes = [costs[name, alpha] / costs[name.removesuffix(REPAIRED), alpha] - 1 for name, alpha in repaired]
    lowered = sum(change < 0 for change in changes)
    return (
        f"The repair lowers the mean cost of `price` itself in {lowered} of {len(changes)} rows; "
        f"it changes by {min(changes):+.1%} to {max(changes):+.1%}."
    )


def not_nested_lines(data: dict[str, Any]) -> list[str]:
    lines = ["| classifier | loss | rows | rows whose S_mu are not nested |", "|---|---|---|---|"]
    for part in data["not_nested"]:
        lines.append(f"| {part['classifier']} | `{part['loss']}` | {part['n']} | {part['share']:.2%} |")
    return lines


LEGEND = (
    "Mean cost at matched coverage: of `price` itself, then of the others as multiples of it (`ilp`: on fewer rows, "
    "beside `price` on the same rows). `=`: equal within two standard errors; bold: cheaper than `price`. *Repair* "
    "is fitted on rows that are not used for testing. It shows the exponent a, the smoothing w, and the number of "
    "labels shifted; none: p was left as it is."
)


def page(data: dict[str, Any]) -> str:
    """What stands between the markers of the page, from the results alone."""
    parts = [
        LEGEND,
        "\n".join(table(data, (0.1,))),
        " ".join([*verdict(data), effect(data)]),
        "\n".join(not_nested_lines(data)),
    ]
    return "\n\n".join(parts)


def report(data: dict[str, Any]) -> str:
    about = [f"- {row['case']}: {row['about']}, {row['n']} rows" for row in data["rows"] if row["alpha"] == ALPHAS[0]]
    parts = [
        "# Cost at matched coverage",
        LEGEND,
        "\n".join(table(data, ALPHAS)),
        "\n\n".join([*verdict(data), effect(data)]),
        "\n".join(about),
    ]
    return "\n\n".join([*parts, "\n".join(not_nested_lines(data))]) + "\n"


def plot(data: dict[str, Any], path: Path, alpha: float = 0.1) -> None:
    """Cost relative to `price`, one line of dots a case."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    rows = [row for row in data["rows"] if row["alpha"] == alpha and row["price_cost"] > 0][::-1]
    colours = dict(zip(RIVALS, ("#7f7f7f", "#1f77b4", "#17becf", "#2ca02c", "#ff7f0e", "#9467bd"), strict=True))
    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.32 * len(rows)), layout="constrained")
    axes.axvline(1, color="#d62728", linewidth=1.5, label="price")
    for i, name in enumerate(RIVALS):
        of = [next(r for r in row["rivals"] if r["oracle"] == name) for row in rows]
        x = [r["cost"] / r["price_cost"] for r in of]
        axes.plot(x, range(len(rows)), "osD^vx"[i], color=colours[name], label=name, markersize=5, alpha=0.85)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row["case"] for row in rows])
    axes.grid(axis="x", which="both", alpha=0.25)
    axes.set_xlabel(f"mean cost at coverage {1 - alpha:g}, relative to price")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(RIVALS) + 1, frameon=False)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def not_nested(quick: bool) -> list[dict[str, Any]]:
    """Tree diameters on the real classifiers of languages."""
    if quick:
        return []
    declared = (LANGUAGES / "diameter.loss").read_text(encoding="utf-8").split("\nloss ")[0]
    found = []
    for classifier in CLASSIFIERS:
        for text in ("diameter(langs)", "diameter(langs) + 0.01 * size"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = udcp.loads(f"{declared}\nloss l = {text}", folder=LANGUAGES)
            share = share_not_nested(loss, probabilities(classifier)[:NESTED_ROWS])
            found.append({"classifier": classifier, "loss": text, "n": NESTED_ROWS, "share": share})
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few rows of each synthetic case and of the digits")
    parser.add_argument("--only", default="", help="cases whose name holds this; writes nothing")
    parser.add_argument("--output", type=Path, help="a folder for the results; the page is then left as it is")
    options = parser.parse_args(arguments)
    if options.quick and options.output is None and not options.only:
        parser.error("--quick is no result to keep: give a folder, --output FOLDER")
    console = Console(width=160)
    start = time.perf_counter()
    rows: list[dict[str, Any]] = []
    with console.status("measuring") as status:
        for name, make in (*synthetic(options.quick), *real(options.quick)):
            if options.only in name:
                status.update(name)
                case = make()
                began = time.perf_counter()
                rows += [as_data(case, row) for row in judge(case, np.random.default_rng(1))]
                console.print(f"{name}: {time.perf_counter() - began:.1f} s")
        status.update("labels that leave")
        nested = [] if options.only else not_nested(options.quick)
    data: dict[str, Any] = {
        "seconds": round(time.perf_counter() - start, 1),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "numba", "highspy")},
        "rows": rows,
        "not_nested": nested,
    }
    console.print("\n".join(table(data, ALPHAS)), *verdict(data), sep="\n", markup=False)
    if options.only:
        return 0
    folder = options.output or RESULTS
    write(folder / "dominance.json", json.dumps(data, indent=1) + "\n")
    write(folder / "dominance.md", report(data))
    plot(data, folder / "dominance.svg")
    if options.output is None:
        write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, page(data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
