"""Random well-typed specs, as text with the data files that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from udcp_dsl.check.generated.declarations import NOWHERE, DeclarationGenerator, named, reference
from udcp_dsl.check.generated.expressions import ExpressionGenerator
from udcp_dsl.diagnostics import SpecWarning, keeping_warnings
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import unparse
from udcp_dsl.loss import loads

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@dataclass(frozen=True)
class GeneratedSpec:
    """A generated spec.

    Attributes
    ----------
    text : str
        The spec.
    files : mapping of str to bytes
        Data files that it reads, by path.
    labels : tuple of str or None
        The labels, if the text declares none.
    tree : ast.Spec
        The syntax tree that the text was made from.
    """

    text: str
    files: Mapping[str, bytes]
    labels: tuple[str, ...] | None
    tree: ast.Spec = field(repr=False)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What hypothesis prints for a failing example.
        printer.text(repr(self))

    def __repr__(self) -> str:
        """The text as in a file, and the files that it reads."""
        parts = [f"text:\n{self.text}"]
        parts += [f"{path}: {data!r}" for path, data in self.files.items()]
        parts += [] if self.labels is None else [f"labels: {list(self.labels)!r}"]
        return "<GeneratedSpec\n" + "\n".join(parts) + ">"

    def compile(self, loss: str | None = None) -> Loss:
        """Compile the spec.

        Parameters
        ----------
        loss : str, optional
            Name of the loss; by default the last.

        Returns
        -------
        Loss
            The compiled loss.
        """
        with keeping_warnings(SpecWarning):
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
    """A hypothesis strategy for specs that compile, with every kind of declaration, atom and operator.

    Parameters
    ----------
    max_labels : int, default 8
        Largest number of labels, up to 8.
    max_depth : int, default 5
        Largest depth of expressions, not counting what a let stands for.
    max_lets, max_losses : int, default 3 and 2
        Largest numbers of lets and losses. They use earlier ones, often several times.
    inputs : bool, default False
        Whether specs declare inputs and costs per row, which most losses then use (`drawn_inputs` draws values).

    Returns
    -------
    SearchStrategy of GeneratedSpec
        For `@given`.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3, deadline=None)
    ... @given(specs(max_labels=3, max_depth=1))
    ... def test_it_compiles(spec):
    ...     spec.compile()
    >>> test_it_compiles()
    """
    if not 1 <= max_labels <= 8:
        raise ValueError(f"max_labels is {max_labels}; choose 1 to 8, for which every set can be tried")
    declaring = DeclarationGenerator(draw, max_labels, inputs)
    expressing = ExpressionGenerator(declaring)
    definitions: list[ast.Declaration] = []
    # Shallow depths first, as examples shrink towards them; the largest depth more often.
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
    if declaring.number(0, 3) == 3:
        # It reads the set, as no constant may be limited, and holds on every set: other bounds may be below all values.
        limited = ast.Sum(((1, ast.Call("size", None, span=NOWHERE)), (1, body.expr)), span=NOWHERE)
        bound = ast.Number(1e15, span=NOWHERE)
        held = ast.Comparison("<=", limited, bound, span=NOWHERE)
        definitions.append(ast.Limit(named("m1"), held, span=NOWHERE))
    declarations = declaring.shuffled([*declaring.declarations, *definitions])
    tree = ast.Spec(tuple(declarations), span=NOWHERE)
    return GeneratedSpec(unparse(tree), declaring.files, declaring.given, tree)


def losses(*, max_labels: int = 8, max_depth: int = 5, inputs: bool = False) -> st.SearchStrategy[Loss]:
    """A hypothesis strategy for compiled losses of generated specs.

    Parameters
    ----------
    max_labels : int, default 8
        Largest number of labels, up to 8.
    max_depth : int, default 5
        Largest depth of expressions.
    inputs : bool, default False
        Whether specs declare numbers and costs per row.

    Returns
    -------
    SearchStrategy of Loss
        For `@given`.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3, deadline=None)
    ... @given(losses(max_labels=3, max_depth=1))
    ... def test_no_set_costs_less_than_is_proved(loss):
    ...     assert loss(set()) >= loss.facts.interval.lo
    >>> test_no_set_costs_less_than_is_proved()
    """
    return specs(max_labels=max_labels, max_depth=max_depth, inputs=inputs).map(GeneratedSpec.compile)
