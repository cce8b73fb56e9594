"""Results as Markdown, from their JSON alone: the whole of each experiment, and the part that docs/paper.md shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from figures import COSTS, FAULTS, SHAPES
from losses import NAMES

from udcp_dsl.measure.evaluate import SIZE_BINS

Data = dict[str, Any]

TITLES = {
    "separable": "Table 1. Separable loss",
    "max_distance": "Table 2. Maximum distance (diameter; an edge is 1/8)",
    "coverage_loss": "Table 3. Coverage loss (categories touched)",
}
SHOWN_LOSS = "coverage_loss"  # on the page, where showing all three would be long


def between_markers(text: str, name: str, content: str) -> str:
    """A page with the part that belongs to one experiment made anew."""
    begin, end = f"<!-- {name}: made by benchmarks/paper/run.py -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no place for {name}: add the lines {begin} and {end}")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def shown(data: Data) -> str:
    """What the page shows of an experiment."""
    return "\n\n".join([_SHOWN[data["experiment"]](data), settings(data)])


def report(data: Data) -> str:
    """All of an experiment."""
    about = [f"- {name}: {one['about']}; n = {one['n']:,}, K = {one['K']}" for name, one in data["data"].items()]
    parts = [f"# {data['experiment']}", _REPORTS[data["experiment"]](data), settings(data), "\n".join(about)]
    return "\n\n".join(parts) + "\n"


def settings(data: Data) -> str:
    return f"alpha {data['alpha']:g}, {data['splits']} splits of 50-25-25."


# One way a kind of rows ---------------------------------------------------------------------------------------------


def _tables(data: Data) -> str:
    parts = []
    for loss in NAMES:
        oracles = _distinct(row["oracle"] for _, row in _rows(data) if row["loss"] == loss)
        lines = []
        for name, one in data["data"].items():
            found = {row["oracle"]: row for row in one["rows"] if row["loss"] == loss}
            cells = _cheapest_bold({o: found[o]["cost"] for o in oracles})
            cells = [f"{cell} ({found[o]['coverage']:.3f})" for o, cell in zip(oracles, cells, strict=True)]
            lines.append([name, str(one["K"]), f"{one['accuracy']:.2f}", *cells])
        head = ["data", "K", "accuracy", *(f"`{o}`" for o in oracles)]
        parts += [f"**{TITLES[loss]}**: mean cost, and coverage in brackets.", _table(head, lines)]
    return "\n\n".join(parts)


def _beside(data: Data) -> str:
    """The paper's own figures, as multiples of its `base`, and ours as multiples of the same order: mass through."""
    parts = ["### The paper's figures beside ours"]
    for loss, published in COSTS.items():
        special = "ratio" if loss == "separable" else "greedy"
        ours = ("penalized through", special if special == "ratio" else "greedy through", "base", "penalized", "price")
        lines = []
        for name, theirs in published.items():
            if name not in data["data"]:
                continue
            called, K, accuracy = SHAPES[name]
            one = data["data"][name]
            cost = {row["oracle"]: row["cost"] for row in one["rows"] if row["loss"] == loss}
            lines.append(
                [f"{called}, {K}", f"{accuracy:.2f}", f"{theirs['base']:.3g}"]
                + [f"{theirs[oracle] / theirs['base']:.2f}" for oracle in ("penalized", special)]
                + [f"{one['K']}, {one['accuracy']:.2f}", f"{cost['base through']:.3g}"]
                + [f"{cost[oracle] / cost['base through']:.2f}" for oracle in ours]
            )
        head = ["paper: data, K", "accuracy", "base", "x penalized", f"x {special}"]
        head += ["ours: K, accuracy", "`base through`", *(f"x `{oracle}`" for oracle in ours)]
        about = (
            f"**{TITLES[loss].partition('. ')[2]}.** Costs as multiples of `base`, scored by the mass through a label, "
            "as in the paper."
        )
        parts += [f"{about} Known faults of the paper's figures: {FAULTS[loss]}.", _table(head, lines)]
    return "\n\n".join(parts)


def _lambdas(data: Data) -> str:
    grid = _distinct(f"{row['lam']:g}" for _, row in _rows(data))
    lines = []
    for name, one in data["data"].items():
        for loss in NAMES:
            costs = {f"{row['lam']:g}": row["cost"] for row in one["rows"] if row["loss"] == loss}
            lines.append([name, loss, *_cheapest_bold(costs)])
    return _table(["data", "loss", *(f"lambda {lam}" for lam in grid)], lines)


def _sizes(data: Data) -> str:
    return _by_oracle(data, lambda row: f"{row['mean']:.3g} ({row['q0.5']:g}, {row['q0.95']:g})")


def _conditional(data: Data, only: str | None = None) -> str:
    return _by_bin(data, lambda cell: f"{cell['coverage']:.2f} ({cell['share']:.0%})", only)


def _softmax(data: Data, only: str | None = None) -> str:
    return _by_bin(data, lambda p: f"{p:.2f}", only)


def _accuracy(data: Data) -> str:
    rows = [row for _, row in _rows(data)]
    oracles = _distinct(row["oracle"] for row in rows)
    lines = []
    for loss in NAMES[1:]:
        for reached in _distinct(row["accuracy"] for row in rows):
            found = {r["oracle"]: r for r in rows if (r["loss"], r["accuracy"]) == (loss, reached)}
            cells = _cheapest_bold({o: found[o]["cost"] for o in oracles})
            cells = [f"{cell} ({found[o]['coverage']:.3f})" for o, cell in zip(oracles, cells, strict=True)]
            lines.append([loss, f"{reached:.2f}", *cells])
    return _table(["loss", "accuracy", *(f"`{o}`" for o in oracles)], lines)


def _bayes(data: Data) -> str:
    lines = []
    rows = [row for _, row in _rows(data)]
    for word, calibrated in zip(rows[::2], rows[1::2], strict=True):
        cells = [f"{row[key]:.3f}" for row in (word, calibrated) for key in ("coverage", "cost")]
        lines.append([word["posterior"], f"{word['accuracy']:.3f}", word["loss"], f"`{word['oracle']}`", *cells])
    return _table(
        ["posterior", "accuracy", "loss", "oracle", "its word: coverage", "cost", "calibrated: coverage", "cost"], lines
    )


_REPORTS: dict[str, Callable[[Data], str]] = {
    "tables": _tables,
    "lambdas": _lambdas,
    "sizes": _sizes,
    "conditional": _conditional,
    "softmax": _softmax,
    "accuracy": _accuracy,
    "bayes": _bayes,
}
_SHOWN: dict[str, Callable[[Data], str]] = {
    **_REPORTS,
    "tables": lambda data: f"{_tables(data)}\n\n{_beside(data)}",
    "conditional": lambda data: _conditional(data, SHOWN_LOSS),
    "softmax": lambda data: _softmax(data, SHOWN_LOSS),
}


# Tables -------------------------------------------------------------------------------------------------------------


def _by_oracle(data: Data, cell: Callable[[Data], str]) -> str:
    oracles = _distinct(row["oracle"] for _, row in _rows(data))
    lines = []
    for name, one in data["data"].items():
        for loss in NAMES:
            found = {row["oracle"]: cell(row) for row in one["rows"] if row["loss"] == loss}
            lines.append([name, loss, *(found.get(oracle, "") for oracle in oracles)])
    return _table(["data", "loss", *(f"`{oracle}`" for oracle in oracles)], lines)


def _by_bin(data: Data, cell: Callable[[Any], str], only: str | None) -> str:
    lines = []
    for name, row in _rows(data):
        if only in (None, row["loss"]):
            start = [name, *([] if only else [row["loss"]]), f"`{row['oracle']}`"]
            lines.append([*start, *(cell(row["bins"][b]) if b in row["bins"] else "" for b in SIZE_BINS)])
    return _table(["data", *([] if only else ["loss"]), "oracle", *SIZE_BINS], lines)


def _rows(data: Data) -> Iterable[tuple[str, Data]]:
    return ((name, row) for name, one in data["data"].items() for row in one["rows"])


def _cheapest_bold(costs: dict[str, float]) -> list[str]:
    least = f"{min(costs.values()):.3g}"
    texts = [f"{cost:.3g}" for cost in costs.values()]
    return [f"**{text}**" if text == least else text for text in texts]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))
