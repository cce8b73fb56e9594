"""A compiled loss: what `load` and `loads` give, and what oracles and predictors are built on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.diagnostics import (
    Diagnostic,
    InputError,
    Source,
    SpecWarning,
    did_you_mean,
    keeping_warnings,
    warn,
)
from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.decisions import actions_of, ceiling_of
from udcp_dsl.expression.domain import WHOLE_NUMBER, Actions, Bools, Costs, Floats, Hierarchy
from udcp_dsl.expression.facts import Facts
from udcp_dsl.expression.ir import Expression
from udcp_dsl.expression.values import Increments, batch
from udcp_dsl.showing import Column, Description, Shown, Table

if TYPE_CHECKING:
    from udcp_dsl.compile.passes import Compiled
    from udcp_dsl.expression.forms import Additive
    from udcp_dsl.expression.linear import LinearModel


class Loss(Shown):
    """The cost of a set of labels, compiled from a spec by `load` or `loads`.

    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  category wild {wolf}  loss l = size + 5 * any(wild)")
    >>> loss({"cat", "wolf"}), loss.terms(["dog"]), loss.labels
    (7.0, {'size': 1.0, '5 * any(wild)': 0.0}, ('cat', 'dog', 'wolf'))
    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self.name: str = compiled.name
        self.losses: tuple[str, ...] = compiled.losses  # of the spec, this one among them
        self.labels: tuple[str, ...] = compiled.labels
        self.params: Mapping[str, float] = compiled.params
        self.source: Source = compiled.source
        self.files: Mapping[str, bytes] = compiled.files
        self.warnings: tuple[Diagnostic, ...] = compiled.warnings
        self.hierarchies: tuple[Hierarchy, ...] = compiled.hierarchies  # that the spec declares
        self.costs: tuple[Costs, ...] = compiled.costs  # likewise, of labels and of families
        self.expression: Expression = compiled.expression
        self._terms: Mapping[str, Expression] = compiled.terms

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: y for y, label in enumerate(self.labels)}

    @cached_property
    def _integers_are(self) -> str:
        numbers = sum(WHOLE_NUMBER.fullmatch(label) is not None for label in self.labels)
        return "names" if numbers == self.K else "ambiguous" if numbers else "positions"

    @property
    def K(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def with_params(self, **params: float) -> Loss:
        """The same loss with other values of some parameters. No file is read again; SpecError outside their ranges.

        >>> import udcp_dsl as udcp
        >>> loss = udcp.loads("labels {a, b}  param k = 1 in [0, 9]  loss l = k * size")
        >>> loss({"a", "b"}), loss.with_params(k=3)({"a", "b"})
        (2.0, 6.0)
        """
        from udcp_dsl.compile.passes import with_params

        return Loss(with_params(self._compiled, params))

    def __reduce__(self) -> tuple[Callable[..., Loss], tuple[object, ...]]:
        """A copy, pickled or deep, is compiled anew from the text and the data that it carries."""
        params, files = dict(self.params), dict(self.files)
        return _recompiled, (self.source.text, self.labels, params, self.name, files, self.source.name)

    def __repr__(self) -> str:
        return f"Loss({self.name!r}, {self.K} labels, {self.source.name!r})"

    def describe(self) -> Description:
        """What its summands come to, what is proved of it, and the spec."""
        ends = self.terms_batch(np.array([[False] * self.K, [True] * self.K]))
        columns = (Column("summand", 0), Column("of no label", 1, ".4g"), Column("of all", 2, ".4g"))
        known = [name.replace("_", " ") for name, fact in self.facts if fact]
        return Description(
            title=f"Loss {self.name}, {self.K:,} labels, {self.source.name}",
            tables=(Table(columns, [(term, *costs) for term, costs in ends.items()]),),
            notes=(f"Proved: {', '.join(known)}." if known else "Nothing is proved of it.",),
            folded={"The spec": self.source.text},
        )

    # Values

    def __call__(self, labels: Collection[str] | Collection[int] | Bools) -> float:
        """The cost of one set: names, positions, or a boolean mask of length K."""
        return float(self.costs_of(Sets(self.mask(labels)[None, :]))[0])

    def batch(self, masks: Bools) -> Floats:
        """The cost of each row of a boolean matrix (n, K)."""
        return self.costs_of(self._sets(masks))

    def costs_of(self, sets: Sets) -> Floats:
        """The same of sets of which more may be known than the matrix."""
        return batch(self.expression, sets)

    def _sets(self, masks: Bools) -> Sets:
        array = np.asarray(masks)
        if array.ndim != 2 or array.shape[1] != self.K:
            raise InputError(f"masks have shape {array.shape}; expected (n, {self.K}), one column a label")
        if array.dtype != np.bool_:
            raise InputError(f"masks are {array.dtype}, not bool; for 0 and 1 write masks.astype(bool)")
        return Sets(array)

    def terms(self, labels: Collection[str] | Collection[int] | Bools) -> dict[str, float]:
        """What each summand of the loss pays for one set, by its text."""
        one = Sets(self.mask(labels)[None, :])
        return {text: float(batch(term, one)[0]) for text, term in self._terms.items()}

    def terms_batch(self, masks: Bools) -> dict[str, Floats]:
        """What each summand pays for each row of a boolean matrix (n, K)."""
        checked = self._sets(masks)
        return {text: batch(term, checked) for text, term in self._terms.items()}

    def increments(self, n: int) -> Increments:
        """n growing sets, all empty, with the cost of every one-label extension."""
        return Increments(self.expression, n)

    def interpret(self, labels: Collection[str] | Collection[int] | Bools) -> float:
        """The cost of one set by the naive interpreter, which defines the meaning: slow, for checking."""
        return self.interpret_positions(np.flatnonzero(self.mask(labels)).tolist())

    def interpret_positions(self, positions: Iterable[int]) -> float:
        """The same, for a set given by positions whatever the labels are called."""
        return self._compiled.interpreter(self._compiled.body, frozenset(positions))

    def mask(self, labels: Collection[str] | Collection[int] | Bools) -> Bools:
        """A set of names, positions or a boolean mask as a boolean mask.

        Whole numbers are positions, unless the labels are numbers: then they are names. A label that is given twice is
        refused: more likely than not it is a mask of 0 and 1.
        """
        if isinstance(labels, np.ndarray) and labels.dtype == np.bool_:
            if labels.shape != (self.K,):
                raise InputError(f"the mask has shape {labels.shape}, expected ({self.K},)")
            return labels
        if isinstance(labels, str):
            raise InputError(f"a set of labels is expected, not one string: write {{{labels!r}}}")
        positions = [self._position(label) for label in labels]
        mask = np.zeros(self.K, dtype=bool)
        mask[positions] = True
        if len(positions) > mask.sum():
            twice = next(y for y, many in Counter(positions).items() if many > 1)
            zero_one = isinstance(labels, np.ndarray) and labels.shape == (self.K,) and np.isin(labels, (0, 1)).all()
            way_out = "a mask of 0 and 1 is made boolean by .astype(bool)" if zero_one else "a set holds a label once"
            raise InputError(f"label {self.labels[twice]!r} is given twice; {way_out}")
        return mask

    def _position(self, label: Any) -> int:
        if isinstance(label, bool | np.bool_):
            raise InputError("a boolean mask must be a numpy array: write np.array([...])")
        if isinstance(label, int | np.integer) and self._integers_are == "ambiguous":
            raise InputError(f"{label} could be a position or a label, as some labels are numbers: give names, as text")
        if isinstance(label, int | np.integer) and self._integers_are == "positions":
            if not 0 <= label < self.K:
                raise InputError(f"position {label} is out of range: positions run from 0 to {self.K - 1}")
            return int(label)
        name = str(label)
        if name not in self._index:
            raise InputError(f"unknown label {name!r}; {did_you_mean(name, self.labels)}")
        return self._index[name]

    # What is known about it

    @cached_property
    def _facts(self) -> dict[int, Facts]:
        from udcp_dsl.expression.prove import prove

        return prove(self.expression, self.labels)

    @property
    def facts(self) -> Facts:
        """What is proved, refuted or unknown about the loss, with reasons."""
        return self._facts[id(self.expression.root)]

    @cached_property
    def form(self) -> Additive | None:
        """The loss as label costs, weighted categories, tree diameters and a function of size, where it is one."""
        from udcp_dsl.expression.prove import additive_forms

        return additive_forms(self.expression)[id(self.expression.root)]

    @cached_property
    def actions(self) -> Mapping[str, Actions]:
        """The actions that it asks `worst` of, by name."""
        return actions_of(self.expression)

    @property
    def ceiling(self) -> float | None:
        """c, if the loss is min(..., c): what is paid where a case is handed over, whatever it may be."""
        return ceiling_of(self.expression)

    @cached_property
    def linear_model(self) -> LinearModel:
        """The loss as a mixed-integer linear model; LoweringError names a subexpression that has none."""
        from udcp_dsl.expression.lower import lower

        return lower(self)

    def explain(self) -> str:
        """Every fact with its reason, for the loss and below it for each summand, as text."""
        from udcp_dsl.expression.explain import explain

        return explain(self)

    def facts_of(self, node: Any) -> Facts:
        """The facts of one node of `expression`."""
        return self._facts[id(node)]

    @cached_property
    def free_labels(self) -> tuple[str, ...]:
        """Labels that cost nothing on their own and so flood the sets of cost-directed oracles."""
        grow = self.increments(1)
        return tuple(self.labels[y] for y in np.flatnonzero(grow.after()[0] <= grow.value[0]))


def load(
    path: str | Path,
    *,
    params: Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
    loss: str | None = None,
    allow_outside: bool = False,
) -> Loss:
    """Compile the loss of a `.loss` file.

    `params` sets parameters, `labels` gives the labels of a spec that declares none, `loss` chooses among several (the
    last by default), `allow_outside` lets it read files outside its folder. Raises SpecError with every fault found.
    """
    from udcp_dsl.compile.passes import compile_spec
    from udcp_dsl.compile.sources import Files
    from udcp_dsl.language.parse import read_source

    files = Files(Path(path).parent, allow_outside=allow_outside)
    return _finish(compile_spec(read_source(Path(path)), files, params, labels, loss))


def loads(
    text: str,
    labels: Sequence[str] | None = None,
    folder: str | Path | None = None,
    *,
    params: Mapping[str, float] | None = None,
    loss: str | None = None,
    allow_outside: bool = False,
    files: Mapping[str, bytes] | None = None,
    name: str = "<text>",
) -> Loss:
    """Compile the loss of a text. Files that it names are read below `folder`, or taken from `files` (path -> bytes).

    >>> import udcp_dsl as udcp
    >>> udcp.loads("loss l = size", labels=["a", "b"])(["a"])
    1.0
    """
    from udcp_dsl.compile.passes import compile_spec
    from udcp_dsl.compile.sources import Files

    below = Files(None if folder is None else Path(folder), allow_outside=allow_outside, contents=files)
    return _finish(compile_spec(Source(name, text), below, params, labels, loss))


def _finish(compiled: Compiled) -> Loss:
    for warning in compiled.warnings:
        warn(warning.render(), SpecWarning)
    return Loss(compiled)


def _recompiled(
    text: str, labels: tuple[str, ...], params: dict[str, float], loss: str, files: dict[str, bytes], name: str
) -> Loss:
    with keeping_warnings(SpecWarning):  # said when it was first compiled
        return loads(text, labels, params=params, loss=loss, files=files, name=name)
