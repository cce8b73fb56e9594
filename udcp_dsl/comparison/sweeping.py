"""`sweep`: what a parameter of the loss does to cost and coverage, on the same splits of the same rows.

Each value makes a loss of its own, by which its sets are built *and* priced: a dearer loss has a higher cost without
any set being worse. What the sets do is seen in their size and in what each summand pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from udcp_dsl.comparison.results import Comparison, Summary
from udcp_dsl.comparison.running import compare
from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.showing import Column, Description, Result, Table, counted, in_unit
from udcp_dsl.showing.plain_data import records_of


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """What `sweep` found: for each of the `values` of `param` a comparison of the oracles."""

    loss: str
    param: str
    values: tuple[float, ...]
    comparisons: tuple[Comparison, ...]

    def summaries(self) -> tuple[tuple[float, Summary], ...]:
        """Each value with the summary of each oracle and alpha, in the order of oracles, alphas, values."""
        found = [(v, s) for v, c in zip(self.values, self.comparisons, strict=True) for s in c.summaries()]
        keys = list(dict.fromkeys((s.oracle, s.alpha) for _, s in found))
        return tuple((v, s) for key in keys for v, s in found if (s.oracle, s.alpha) == key)

    def table(self) -> dict[str, list[Any]]:
        """A column each for the parameter, oracle, alpha, coverage, cost, size, and what each summand pays."""
        rows = self.summaries()
        terms = list(dict.fromkeys(term for _, s in rows for term in s.cost_by_term))
        return {
            self.param: [value for value, _ in rows],
            "oracle": [s.oracle for _, s in rows],
            "alpha": [show_level(s.alpha) if s.total is None else f"{s.alpha_found:.4g}" for _, s in rows],
            "coverage": [s.coverage for _, s in rows],
            "cost": [s.cost_mean for _, s in rows],
            "cost_error": [s.cost_error for _, s in rows],
            "size": [s.size for _, s in rows],
            **({} if rows[0][1].total is None else {"with misses": [s.total for _, s in rows]}),
            **{f"cost of {term}": [s.cost_by_term.get(term) for _, s in rows] for term in terms},
        }

    @property
    def unit(self) -> str | None:
        """In which costs are shown."""
        return self.comparisons[0].losses[0].unit

    def plot(self) -> Any:
        """Cost and coverage against the parameter, at the first alpha, as a figure of matplotlib."""
        from udcp_dsl.report.views import plot_sweep

        return plot_sweep(self)

    def __repr__(self) -> str:
        return f"Sweep({self.loss}: {self.param} = {', '.join(f'{value:g}' for value in self.values)})"

    def describe(self) -> Description:
        """The rows of `table`: for each value what the oracles cost and cover."""
        first = self.comparisons[0]
        columns = (
            Column(self.param, self.param, "g", kind="text"),
            Column("oracle", "oracle"),
            Column("alpha", "alpha", kind="number"),
            Column("coverage", "coverage", ".4f"),
            Column(in_unit("cost", self.unit), "cost", ".5g"),
            Column("size", "size", ".4g"),
            *([] if first.promise.miss is None else [Column("with misses", "with misses", ".5g")]),
        )
        counts = {"n": first.n, "labels": first.K, "splits": first.splits, "seed": first.seed}
        same = f"the same {counted(first.splits, 'split')} for each value"
        about = f"{self.loss}: {first.n:,} rows, {first.K} labels, {same}."
        return Description(
            tables=(Table(columns, records_of(self.table()), key="rows"),),
            notes=(f"{about} The cost is that of the loss with this value.",),
            data={"loss": self.loss, "unit": self.unit, "param": self.param, "values": self.values, **counts},
        )


def sweep(loss: Loss, probs: Any, y: Any = None, *, param: str, values: Sequence[float], **options: Any) -> Sweep:
    """Compare oracles for several values of one parameter; `options` are those of `compare`.

    Files are not read again, and all values see the same splits. Refuses a parameter that the loss does not have, a
    value outside its range, `conditional`, as nothing stands beside a sweep, and what `compare` refuses.

    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  param fear = 1  loss l = size + fear * any({wolf})")
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], 400)
    >>> Y = [rng.choice(3, p=p) for p in P]
    >>> found = udcp.sweep(loss, P, Y, param="fear", values=[0, 5], oracles=["price"], splits=3)
    >>> [(value, round(s.size, 2)) for value, s in found.summaries()]
    [(0.0, 1.96), (5.0, 2.29)]
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"a loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
    if param not in loss.params:
        known = did_you_mean(param, loss.params) or "it declares none"
        raise InputError(f"the spec has no parameter {param!r}; {known}")
    if isinstance(values, str) or not len(values):
        raise InputError(f"values is {values!r}: give a list of numbers")
    if getattr(options.get("promise"), "conditional", options.get("conditional")) is not None:
        raise InputError("a sweep shows one promise: leave out conditional=, or compare at one value")
    losses = [loss.with_params(**{param: value}) for value in values]
    numbers = tuple(made.params[param] for made in losses)
    if len(set(numbers)) < len(numbers):
        raise InputError(f"a value of {param} is given twice: give each once")
    if hasattr(probs, "__next__"):
        raise InputError("probs is an iterator, and every value needs all rows: give an array")
    return Sweep(loss.name, param, numbers, tuple(compare(made, probs, y, **options) for made in losses))
