"""`sweep`: cost and coverage for several values of a parameter, on the same splits of the same rows.

Each value gives another loss, which determines the sets *and* their cost. So a higher cost does not mean that the sets
are worse; their sizes and the cost of each summand show how they change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.loss import Loss
from udcp_dsl.measure.compare import compare
from udcp_dsl.measure.comparison import Comparison, Summary
from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.showing import Column, Description, Result, Table, counted, in_unit
from udcp_dsl.showing.data import records_of


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """What `sweep` found: a comparison of the oracles for each value of one parameter.

    Attributes
    ----------
    loss, param : str
        Names of the loss and of the parameter.
    values : tuple of float
        Values of the parameter.
    comparisons : tuple of Comparison
        One comparison per value.
    """

    loss: str
    param: str
    values: tuple[float, ...]
    comparisons: tuple[Comparison, ...]

    def summaries(self) -> tuple[tuple[float, Summary], ...]:
        """Summaries over the splits, in the order of oracles, alphas and values.

        Returns
        -------
        tuple of (float, Summary)
            Each value of the parameter with the summary of one oracle at one alpha.
        """
        found = [(v, s) for v, c in zip(self.values, self.comparisons, strict=True) for s in c.summaries()]
        keys = list(dict.fromkeys((s.oracle, s.alpha) for _, s in found))
        return tuple((v, s) for key in keys for v, s in found if (s.oracle, s.alpha) == key)

    def table(self) -> dict[str, list[Any]]:
        """The sweep as columns, one row per oracle, alpha and value.

        Returns
        -------
        dict of lists
            The parameter, oracle, alpha, coverage, cost, size, and the cost of each summand.
        """
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
        """Unit of the costs, if the spec names one."""
        return self.comparisons[0].losses[0].unit

    def plot(self) -> Any:
        """Draw cost and coverage against the parameter, at the first alpha.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        from udcp_dsl.report.drawing import plot_sweep

        return plot_sweep(self)

    def __repr__(self) -> str:
        return f"Sweep({self.loss}: {self.param} = {', '.join(f'{value:g}' for value in self.values)})"

    def describe(self) -> Description:
        """What is printed: cost and coverage of each oracle at each value."""
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
    """Compare oracles for several values of one parameter of the loss.

    All values see the same splits, and no file is read again.

    Parameters
    ----------
    loss : Loss
        The loss.
    probs : array, tensor, frame or nested lists, shape (n, K)
        Probabilities, as for `compare`.
    y : sequence, shape (n,)
        True labels.
    param : str
        Name of the parameter.
    values : sequence of float
        Values to try.
    **options
        Further arguments of `compare`, except `conditional`.

    Returns
    -------
    Sweep
        A comparison per value.

    Raises
    ------
    SpecError
        The loss has no such parameter, or a value is outside its range.
    InputError
        The data or the options are invalid.

    Examples
    --------
    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads(
    ...     "labels {cat, dog, wolf}  param fear = 1  loss l = size + fear * any({wolf})"
    ... )
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], 400)
    >>> Y = [rng.choice(3, p=p) for p in P]
    >>> options = {"oracles": ["price"], "splits": 3}
    >>> found = udcp.sweep(loss, P, Y, param="fear", values=[0, 5], **options)
    >>> [(value, round(s.size, 2)) for value, s in found.summaries()]
    [(0.0, 1.96), (5.0, 2.29)]
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"a loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
    if param not in loss.params:
        known = did_you_mean(param, loss.params) or "it declares none"
        raise InputError(f"the spec has no parameter {param!r}; {known}")
    wanted = [] if isinstance(values, str) or np.ndim(values) == 0 else list(values)
    if not wanted:
        raise InputError(f"values is {values!r}: give a list of numbers")
    if getattr(options.get("promise"), "conditional", options.get("conditional")) is not None:
        raise InputError("a sweep shows one guarantee: leave out conditional=, or compare at one value")
    losses = [loss.with_params(**{param: value}) for value in wanted]
    numbers = tuple(made.params[param] for made in losses)
    if len(set(numbers)) < len(numbers):
        raise InputError(f"a value of {param} is given twice: give each once")
    if hasattr(probs, "__next__"):
        raise InputError("probs is an iterator, and every value needs all rows: give an array")
    return Sweep(loss.name, param, numbers, tuple(compare(made, probs, y, **options) for made in losses))
