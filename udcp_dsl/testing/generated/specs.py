"""Random well-typed specs, as text with the data files that it reads."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from udcp_dsl.diagnostics import SpecWarning
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import unparse
from udcp_dsl.loss import loads
from udcp_dsl.testing.generated.declarations import Declaring
from udcp_dsl.testing.generated.expressions import Expressing
from udcp_dsl.testing.generated.vocabulary import NOWHERE, named, reference

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@dataclass(frozen=True)
class GeneratedSpec:
    """A spec: its `text`, the `files` that it reads by path, and the `labels` where the text declares none.

    `tree` is the syntax tree that the text was made from.
    """

    text: str
    files: Mapping[str, bytes]
    labels: tuple[str, ...] | None
    tree: ast.Spec = field(repr=False)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What hypothesis prints for a failing example.
        printer.text(repr(self))

    def __repr__(self) -> str:
        """The text as it would stand in a file, and what it reads."""
        parts = [f"text:\n{self.text}"]
        parts += [f"{path}: {data!r}" for path, data in self.files.items()]
        parts += [] if self.labels is None else [f"labels: {list(self.labels)!r}"]
        return "<GeneratedSpec\n" + "\n".join(parts) + ">"

    def compile(self, loss: str | None = None) -> Loss:
        """The compiled loss: the one of that name, else the last."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpecWarning)
            return loads(self.text, labels=self.labels, files=self.files, loss=loss)


@st.composite
def specs(
    draw: st.DrawFn,
    *,
    max_labels: int = 8,
    max_depth: int = 5,
    max_lets: int = 3,
    max_losses: int = 2,
    inputs: bool = False,
) -> GeneratedSpec:
    """Specs that compile, with every kind of declaration, atom and operator, for tests of what reads or runs specs.

    At most `max_labels` (up to 8) labels, and expressions nested at most `max_depth` deep, not counting what a let
    stands for; lets and losses name earlier ones, often several times. With `inputs` they declare numbers and costs
    that come with each row, and most losses read some (`udcp_dsl.testing.drawn_inputs` draws them).

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3, deadline=None)
    ... @given(specs(max_labels=3, max_depth=1))
    ... def test_it_compiles(spec):
    ...     spec.compile()
    >>> test_it_compiles()
    """
    if not 1 <= max_labels <= 8:
        raise ValueError(f"max_labels is {max_labels}; choose 1 to 8, for which every set can be tried")
    declaring = Declaring(draw, max_labels, inputs)
    expressing = Expressing(declaring)
    definitions: list[ast.Declaration] = []
    # Simple ones first, to which examples shrink; deep ones more often.
    depths = (*range(1, max_depth + 1), max_depth, max_depth)
    for i in range(1, 1 + declaring.number(0, max_lets)):
        kind = declaring.pick((expressing.indicator, expressing.of_count, expressing.anything))
        body = kind(declaring.pick(depths))
        definitions.append(ast.Let(named(f"i{i}"), body.expr, span=NOWHERE))
        expressing.define(reference(f"i{i}"), body)
    for i in range(1, 1 + declaring.number(1, max_losses)):
        body = expressing.anything(declaring.pick(depths))
        if inputs and declaring.pick((True, True, False)):
            body = expressing.with_row_number(body)
        definitions.append(ast.LossDecl(named(f"l{i}"), body.expr, span=NOWHERE))
        expressing.define(reference(f"l{i}"), body)
    if declaring.number(0, 3) == 3 and not inputs:  # what is limited may read none
        # It names the set, as no constant may be limited, and holds on every set: others may lie below all values.
        limited = ast.Sum(((1, ast.Call("size", None, span=NOWHERE)), (1, body.expr)), span=NOWHERE)
        bound = ast.Number(1e15, span=NOWHERE)
        held = ast.Comparison("<=", limited, bound, span=NOWHERE)
        definitions.append(ast.Limit(named("m1"), held, span=NOWHERE))
    declarations = declaring.shuffled([*declaring.declarations, *definitions])
    tree = ast.Spec(tuple(declarations), span=NOWHERE)
    return GeneratedSpec(unparse(tree), declaring.files, declaring.given, tree)


def losses(*, max_labels: int = 8, max_depth: int = 5, inputs: bool = False) -> st.SearchStrategy[Loss]:
    """Compiled losses of generated specs; with `inputs`, of specs with numbers that come with each row.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3, deadline=None)
    ... @given(losses(max_labels=3, max_depth=1))
    ... def test_no_set_costs_less_than_is_proved(loss):
    ...     assert loss(set()) >= loss.facts.interval.lo
    >>> test_no_set_costs_less_than_is_proved()
    """
    return specs(max_labels=max_labels, max_depth=max_depth, inputs=inputs).map(GeneratedSpec.compile)
