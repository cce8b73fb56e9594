"""The result of a fit, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from udcp_dsl.fit.suggestions import Suggestion
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.language.unparse import signed_text
from udcp_dsl.loss import Loss
from udcp_dsl.showing import MARKS, STATES, Column, Description, Line, Result, Styled, Table, counted, in_unit


@dataclass(frozen=True)
class FittedParam:
    """One parameter: its value in the spec, its fitted value, its declared range, and its range over all solutions."""

    name: str
    before: float
    value: float
    range: tuple[float, float]
    solutions: tuple[float, float] | None

    @property
    def determined(self) -> float | None:
        """The share of the declared range that solutions still cover: 0 is determined, 1 is open."""
        if self.solutions is None:
            return None
        return (self.solutions[1] - self.solutions[0]) / (self.range[1] - self.range[0])


@dataclass(frozen=True)
class FittedCase:
    """One comparison: the costs of its sides at the fitted values, the higher one first, and its relative margin.

    `margin` is None for `>=` and `==`, which require none.
    """

    name: str
    claim: str
    place: str
    higher: float
    lower: float
    margin: float | None
    holds: bool


@dataclass(frozen=True, repr=False)
class Fit(Result):
    """What `fit_params` found.

    Attributes
    ----------
    loss : Loss
        The loss with the fitted values; unchanged if cases contradict each other.
    ok : bool
        Whether all comparisons can hold at once.
    params : tuple of FittedParam
        Each parameter before and after, with its range and its values over all solutions.
    cases : tuple of FittedCase
        Each comparison with the costs of its sides.
    margin : float or None
        Smallest relative margin of the strict comparisons.
    contradictions : tuple of tuples of FittedCase
        Groups of comparisons of which at least one has to go.
    suggestion : Suggestion or None
        The comparison that would narrow the parameters most.
    exact : bool
        Whether linear programs found the values, as they do if the loss is affine in its parameters. Otherwise a search
        did, which proves neither that the margin is the largest nor that there is no solution.
    why_not_exact : str
        Which part of the loss is not affine.
    held : dict or None
        Values that were held fixed.
    """

    loss: Loss
    ok: bool
    params: tuple[FittedParam, ...]
    cases: tuple[FittedCase, ...]
    margin: float | None
    contradictions: tuple[tuple[FittedCase, ...], ...]
    suggestion: Suggestion | None
    exact: bool
    why_not_exact: str = ""
    held: Mapping[str, float] | None = None

    @property
    def values(self) -> dict[str, float]:
        """Fitted values by name."""
        return {param.name: param.value for param in self.params}

    def spec_text(self) -> str:
        """The text of the spec with the fitted values.

        Returns
        -------
        str
            Comments and layout are unchanged.
        """
        text = self.loss.source.text
        declared = [x for x in self.loss.spec.declarations if isinstance(x, ast.Param) and x.name.text in self.values]
        for x in sorted(declared, key=lambda x: -x.value.span.start):
            value = self.values[x.name.text]
            if value != x.value.value:
                span = x.value.span
                text = text[: span.start] + signed_text(ast.Signed(value, span=span)) + text[span.end :]
        return text

    def table(self) -> dict[str, list[Any]]:
        """The parameters as columns, one row per parameter.

        Returns
        -------
        dict of lists
            Name, value before and after, range, and the smallest and largest value over all solutions.
        """
        ends = [param.solutions or (None, None) for param in self.params]
        return {
            "param": [param.name for param in self.params],
            "before": [param.before for param in self.params],
            "value": [param.value for param in self.params],
            "low": [param.range[0] for param in self.params],
            "high": [param.range[1] for param in self.params],
            "least": [low for low, _ in ends],
            "largest": [high for _, high in ends],
        }

    def __repr__(self) -> str:
        if not self.ok:
            return f"Fit({self.loss.name}: {counted(len(self.cases), 'comparison')}, no values agree with all of them)"
        values = ", ".join(f"{name} = {value:.6g}" for name, value in self.values.items())
        return f"Fit({self.loss.name}: {values}; {counted(len(self.cases), 'comparison')})"

    def describe(self) -> Description:
        """What is printed: parameters, comparisons, contradictions, and what to compare next."""
        of = f"{counted(len(self.params), 'parameter')} from {counted(len(self.cases), 'comparison')}"
        return Description(
            title=(Styled(self.loss.name, "bold"), f": {of}"),
            lines=tuple(self._lines()),
            tables=(Table(_PARAMS if self.ok else (), self.params, key="params"), self._cases()),
            notes=tuple(self._notes()),
            verdict=tuple(self._verdict()),
            data={
                "loss": self.loss.name,
                "agrees": self.ok,
                "margin": self.margin,
                "exact": self.exact,
                "why_not_exact": self.why_not_exact,
                "contradictions": self.contradictions,
                "suggestion": self.suggestion,
            },
        )

    def _lines(self) -> Iterator[Line]:
        if self.held:
            held = ", ".join(f"{name} = {value:.6g}" for name, value in self.held.items())
            yield Styled(f"fixed, because they have no range: {held}", "dim")
        if not self.exact:
            yield Styled(f"by a search, because the loss is not affine in its parameters: {self.why_not_exact}", "dim")

    def _cases(self) -> Table:
        columns = (
            Column("case", lambda x: Styled(f"{MARKS[x.holds]} {x.name}", STATES[x.holds]), width=40),
            Column(in_unit("higher", self.loss.unit), "higher", ".5g"),
            Column("lower", "lower", ".5g"),
            Column("margin", lambda x: x.margin, ".1%"),
        )
        return Table(columns, self.cases, key="cases")

    def _notes(self) -> Iterator[Line]:
        if self.ok and self.margin is not None:
            yield f"The smallest margin is {self.margin:.2%} of the mean of the two costs."
        if self.ok and not self.exact:
            yield "The ranges are those of the solutions that the search found: the true ones may be wider."
        at_end = [x for x in self.params if x.value in x.range] if self.ok else []
        if at_end:
            named = ", ".join(f"{x.name} = {x.value:g}{' (no effect)' if x.value == 0 else ''}" for x in at_end)
            yield f"At the end of the range: {named}. If you did not mean that, add a comparison that rules it out."
        if self.suggestion is not None:
            yield f"Worth asking next: {self.suggestion.question}"
        elif self.ok:
            yield "No comparison of small sets would narrow the ranges; a numeric cost might: cost { a } == 5."

    def _verdict(self) -> Iterator[Line]:
        if self.ok:
            yield Styled(f"{MARKS[True]} the values agree with all comparisons", "good")
            return
        if not self.exact:
            wrong = [x.name for x in self.cases if not x.holds]
            yield Styled(f"{MARKS[False]} the search found no values that agree with all comparisons", "bad")
            yield f"  the best values that it found violate: {', '.join(wrong)}"
            return
        yield Styled(f"{MARKS[False]} no values within the ranges agree with all comparisons", "bad")
        for group in self.contradictions:
            yield (
                "  this one cannot hold:"
                if len(group) == 1
                else "  these contradict each other; leave one of them out:"
            )
            for x in group:
                yield f"    {x.name}: {x.claim}{f'  ({x.place})' if x.place else ''}"


def _solutions(param: FittedParam) -> str:
    return "" if param.solutions is None else "{:.4g} to {:.4g}".format(*param.solutions)


_PARAMS = (
    Column("parameter", "name"),
    Column("before", "before", ".6g"),
    Column("fitted", "value", ".6g"),
    Column("range", lambda x: "{:g} to {:g}".format(*x.range), kind="number"),
    Column("all solutions", _solutions, kind="number"),
    Column("of range", "determined", ".1%"),
)


def check_text(fit: Fit, text: str) -> None:
    """Assert that a text declares the fitted values, before it is written."""
    from udcp_dsl.diagnostics import Source

    spec, faults = parse(Source(fit.loss.source.name, text))
    found = {x.name.text: x.value.value for x in spec.declarations if isinstance(x, ast.Param)}
    right = not faults and all(found[name] == value for name, value in fit.values.items())
    assert right, "the values are not in the text"
