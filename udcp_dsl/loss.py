"""The compiled loss that `load` and `loads` return; oracles and predictors are built on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import Diagnostic, InputError, Source, SpecWarning, did_you_mean, keeping_warnings, warn
from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.decisions import actions_of, ceiling_of
from udcp_dsl.expression.domain import WHOLE_NUMBER, Actions, Bools, Costs, Floats, Hierarchy
from udcp_dsl.expression.facts import Fact, Facts, with_facts
from udcp_dsl.expression.given import RowInputs, column_names, inputs_of, one_row, possible_columns
from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.expression.ir import Expression
from udcp_dsl.expression.limit import Limit, weighted
from udcp_dsl.expression.values import Increments, batch
from udcp_dsl.language import ast
from udcp_dsl.language.ast import Comparison
from udcp_dsl.per_row import PerRow
from udcp_dsl.showing import Column, Description, Shown, Table, in_unit

if TYPE_CHECKING:
    from udcp_dsl.compile.passes import Compiled
    from udcp_dsl.expression.forms import Additive
    from udcp_dsl.expression.linear import LinearModel

LabelSet: TypeAlias = Collection[str] | Collection[int] | Bools  # names, positions, or a mask


class Loss(Shown):
    """The cost of a set of labels, compiled from a spec by `load` or `loads`.

    A loss is a function of sets; it is called with names, positions or a boolean mask.

    Attributes
    ----------
    name : str
        Name of the loss in the spec.
    labels : tuple of str
        The labels, in the order of the spec. Columns of probabilities follow this order.
    params : dict
        Values of the parameters.
    unit : str or None
        Unit of the costs, if the spec names one.
    inputs : dict
        Numbers that the loss reads for each row, with their shapes and ranges.
    limits : tuple of Limit
        Limits that the spec declares.
    losses : tuple of str
        All losses of the spec.
    warnings : tuple of Diagnostic
        Warnings of the compiler.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads(
    ...     "labels {cat, dog, wolf}  category wild {wolf}  loss l = size + 5 * any(wild)"
    ... )
    >>> loss({"cat", "wolf"}), loss.terms(["dog"])
    (7.0, {'size': 1.0, '5 * any(wild)': 0.0})
    >>> loss.labels
    ('cat', 'dog', 'wolf')
    """

    whole: Loss | None = None  # for the loss of a row, the loss of which `at` has fixed the inputs
    fixed_inputs: Mapping[str, Any] | None = None  # the numbers that `at` has put in place of the inputs
    of_rows = False  # whether this stands for the losses of many rows (`udcp_dsl.per_row`)

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self.name: str = compiled.name
        self.unit: str | None = compiled.unit  # in which costs are shown: `loss triage in hours = ...`
        named, things = compiled.declared.definitions.items(), compiled.declared.things.values()
        self.losses = tuple(name for name, x in named if isinstance(x, ast.LossDecl))  # of the spec, including this one
        self.labels: tuple[str, ...] = compiled.declared.labels
        self.params: Mapping[str, float] = compiled.params
        self.source: Source = compiled.source
        self.spec: ast.Spec = compiled.spec
        self.files: Mapping[str, bytes] = compiled.files
        self.warnings: tuple[Diagnostic, ...] = compiled.warnings
        self.hierarchies = tuple(x for x in things if isinstance(x, Hierarchy))  # that the spec declares
        self.costs = tuple(x for x in things if isinstance(x, Costs))  # that the spec declares, for labels and families
        self.expression: Expression = compiled.expression
        self.inputs: Mapping[str, RowInput] = {n: x for n, x in compiled.inputs.items() if n in compiled.read}
        self.written_terms: Mapping[str, Expression] = compiled.terms  # the summands by their text
        self.limits: tuple[Limit, ...] = compiled.limits  # of the spec; they apply to each of its losses
        self.multipliers: tuple[float, ...] = compiled.multipliers  # of the limits, if these are summands of this loss
        self.declared_inputs: Mapping[str, RowInput] = compiled.inputs  # also of the spec's other losses
        self._of_spec: Loss | None = None

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: y for y, label in enumerate(self.labels)}

    @cached_property
    def _integers_are(self) -> str:
        numbers = sum(WHOLE_NUMBER.fullmatch(label) is not None for label in self.labels)
        return "names" if numbers == self.K else "ambiguous" if numbers else "positions"

    @property
    def K(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def with_params(self, **params: float) -> Loss:
        """The same loss with other values of some parameters; no file is read again.

        Parameters
        ----------
        **params : float
            New values by name.

        Returns
        -------
        Loss
            A new loss.

        Raises
        ------
        SpecError
            A parameter does not exist, or its value is outside its range.

        Examples
        --------
        >>> import udcp_dsl as udcp
        >>> loss = udcp.loads("labels {a, b}  param k = 1 in [0, 9]  loss l = k * size")
        >>> loss({"a", "b"}), loss.with_params(k=3)({"a", "b"})
        (2.0, 6.0)
        """
        from udcp_dsl.compile.passes import with_params

        return Loss(with_params(self._compiled, params))

    def at(self, inputs: Mapping[str, Any] | None = None) -> Loss:
        """The loss of one row: its inputs are replaced by the numbers of that row.

        The facts of the result hold for all values of the inputs; its interval is for this row only.

        Parameters
        ----------
        inputs : mapping, optional
            The row's inputs by name.

        Returns
        -------
        Loss
            A loss without inputs; the loss itself if it reads none.

        Raises
        ------
        InputError
            An input is missing, unknown or outside its range.

        Examples
        --------
        >>> import udcp_dsl as udcp
        >>> loss = udcp.loads(
        ...     "labels {a, b}  input km in [0, 200]  loss l = size + 0.5 * km * any({b})"
        ... )
        >>> loss.at({"km": 12})({"b"}), loss({"b"}, inputs={"km": 12})
        (7.0, 7.0)
        >>> str(loss.inputs["km"])
        'km: a number per row in [0, 200]'
        """
        row = self._one_row(inputs)
        return self if row is None else self._at(row.row(0))

    def _at(self, row: Mapping[str, Any]) -> LossOfRow:
        from udcp_dsl.compile.passes import with_inputs

        if not self.multipliers:
            return LossOfRow(self, row, with_inputs(self._compiled, row))
        one = self.of_spec._at(row)
        expression = weighted(one.expression, one.limits_of_row, self.multipliers)
        made = LossOfRow(self, row, replace(one._compiled, expression=expression, multipliers=self.multipliers))
        made._of_spec = one
        return made

    @cached_property
    def example(self) -> Loss:
        """The loss of one possible row, with inputs in the middle of their ranges; the loss itself if it reads none."""
        return self._at({name: x.example for name, x in self.inputs.items()}) if self.inputs else self

    def inputs_of(self, inputs: Any, n: int, *, others: Sequence[str] = (), **how: Any) -> RowInputs | None:
        """The inputs of n rows, checked; None if the loss reads none. `others` are inputs of other specs, allowed."""
        return inputs_of(self.inputs, inputs, n, known=(*self.declared_inputs, *others), **how)

    def _one_row(self, inputs: Any) -> RowInputs | None:
        """The inputs of one row, checked; None if the loss reads none."""
        return one_row(self.inputs, inputs, tuple(self.declared_inputs))

    def reading(self, *names: str) -> Loss:
        """The same loss, which also requires other inputs of the spec, such as a harm that it does not read itself.

        Parameters
        ----------
        *names : str
            Names of inputs; others are ignored.

        Returns
        -------
        Loss
            A new loss, or the loss itself if it reads them already.
        """
        more = {name for name in names if name in self._compiled.inputs} - self._compiled.read
        return Loss(replace(self._compiled, read=self._compiled.read | more)) if more else self

    def with_multipliers(self, multipliers: Sequence[float]) -> Loss:
        """The loss with each of its limits as a further summand: L + nu_1 E_1 + nu_2 E_2 + ...

        Parameters
        ----------
        multipliers : sequence of float
            One multiplier nu_j >= 0 per limit.

        Returns
        -------
        Loss
            A new loss.

        Examples
        --------
        >>> import udcp_dsl as udcp
        >>> loss = udcp.loads(
        ...     "labels {a, b}  category C {b}  limit slots: any(C) <= 0.1  loss l = size"
        ... )
        >>> loss({"a", "b"}), loss.with_multipliers([5.0])({"a", "b"})
        (2.0, 7.0)
        >>> loss.limits[0].at_most
        0.1
        """
        numbers = tuple(map(float, multipliers))
        if len(numbers) != len(self.limits) or not all(0 <= nu < np.inf for nu in numbers):
            raise InputError(f"multipliers are {numbers}: give one per limit ({len(self.limits)}), each 0 or more")
        if self.multipliers:
            raise InputError("the loss has multipliers already: set them on the loss of the spec")
        if not any(numbers):
            return self
        expression = weighted(self.expression, self.limits, numbers)
        made = Loss(replace(self._compiled, expression=expression, multipliers=numbers))
        made._of_spec = self
        return made

    @property
    def without_limits(self) -> Loss:
        """The loss as if the spec had no limits; the loss itself if it has none."""
        return Loss(replace(self._compiled, limits=())) if self.limits else self

    @property
    def of_spec(self) -> Loss:
        """The loss without multipliers; costs that are shown are its costs."""
        return self if self._of_spec is None else self._of_spec

    def __reduce__(self) -> tuple[Callable[..., Loss], tuple[object, ...]]:
        """Pickled and deep copies are compiled again from the text and the data: the graphs are keyed by identity."""
        how = {"labels": self.labels, "params": dict(self.params), "loss": self.name, "files": dict(self.files)}
        return _recompiled, (self.source.text, {**how, "name": self.source.name}, self.multipliers)

    def __repr__(self) -> str:
        return f"Loss({self.name!r}, {self.K} labels, {self.source.name!r})"

    def describe(self) -> Description:
        """What a notebook shows: the cost of each summand, what is proved, and the spec."""
        ends = self.example.terms_batch(np.array([[False] * self.K, [True] * self.K]))
        columns = (Column("summand", 0), Column("of no label", 1, ".4g"), Column("of all", 2, ".4g", bar=True))
        known = [name.replace("_", " ") for name, fact in self.facts if fact]
        return Description(
            title=f"Loss {in_unit(self.name, self.unit)}, {self.K:,} labels, {self.source.name}",
            tables=(Table(columns, [(term, *costs) for term, costs in ends.items()]),),
            notes=(
                f"Proved: {', '.join(known)}." if known else "Nothing is proved of it.",
                *(f"Input {x}; the table has it in the middle of its range." for x in self.inputs.values()),
            ),
            folded={"The spec": self.source.text},
        )

    # Values

    def __call__(self, labels: LabelSet, *, inputs: Mapping[str, Any] | None = None) -> float:
        """The cost of one set.

        Parameters
        ----------
        labels : collection of str or int, or boolean mask of length K
            The set: names, positions, or a mask.
        inputs : mapping, optional
            The row's inputs by name, if the loss reads any.

        Returns
        -------
        float
            The cost.

        Raises
        ------
        InputError
            A label is unknown or given twice, or an input is invalid.
        """
        row = self._one_row(inputs)
        return float(self.costs_of(Sets(self.mask(labels)[None, :]), row)[0])

    def batch(self, masks: Bools, *, inputs: Any = None) -> Floats:
        """The cost of many sets.

        Parameters
        ----------
        masks : boolean array, shape (n, K)
            One set per row.
        inputs : mapping or frame, optional
            Inputs of each row by name, if the loss reads any.

        Returns
        -------
        array of float, shape (n,)
            The costs.
        """
        sets = self._sets(masks)
        return self.costs_of(sets, self.inputs_of(inputs, len(sets.mask)))

    def costs_of(self, sets: Sets, inputs: RowInputs | None = None) -> Floats:
        """The cost of sets that are already checked; uses what they have cached."""
        return batch(self.expression, sets, inputs)

    def _sets(self, masks: Bools) -> Sets:
        array = np.asarray(masks)
        if array.ndim != 2 or array.shape[1] != self.K:
            raise InputError(f"masks have shape {array.shape}; expected (n, {self.K}), one column per label")
        if array.dtype != np.bool_:
            raise InputError(f"masks are {array.dtype}, not bool; for 0 and 1 write masks.astype(bool)")
        return Sets(array)

    def terms(self, labels: LabelSet, *, inputs: Mapping[str, Any] | None = None) -> dict[str, float]:
        """The cost of one set, summand by summand.

        Parameters
        ----------
        labels : collection of str or int, or boolean mask of length K
            The set: names, positions, or a mask.
        inputs : mapping, optional
            The row's inputs by name, if the loss reads any.

        Returns
        -------
        dict
            Cost of each summand, by its text in the spec.
        """
        one, row = Sets(self.mask(labels)[None, :]), self._one_row(inputs)
        return {text: float(batch(term, one, row)[0]) for text, term in self.written_terms.items()}

    @property
    def summands(self) -> tuple[str, ...]:
        """The texts of the summands of the loss."""
        return tuple(self.written_terms)

    def terms_batch(self, masks: Bools, *, inputs: Any = None) -> dict[str, Floats]:
        """The cost of many sets, summand by summand.

        Parameters
        ----------
        masks : boolean array, shape (n, K)
            One set per row.
        inputs : mapping or frame, optional
            Inputs of each row by name, if the loss reads any.

        Returns
        -------
        dict of arrays, shape (n,)
            Costs of each summand, by its text in the spec.
        """
        checked = self._sets(masks)
        rows = self.inputs_of(inputs, len(checked.mask))
        return {text: batch(term, checked, rows) for text, term in self.written_terms.items()}

    def increments(self, n: int) -> Increments:
        """Grow n sets from empty ones, with the cost of every one-label extension; for oracles.

        Parameters
        ----------
        n : int
            Number of sets.

        Returns
        -------
        Increments
            The growing sets.
        """
        if self.inputs:
            raise InputError("the loss reads inputs: grow sets under the loss of one row, loss.at(inputs)")
        return Increments(self.expression, n)

    def interpret(self, labels: LabelSet, *, inputs: Mapping[str, Any] | None = None) -> float:
        """The cost of one set by the naive interpreter, which defines the meaning; slow, for checking.

        Parameters
        ----------
        labels : collection of str or int, or boolean mask of length K
            The set: names, positions, or a mask.
        inputs : mapping, optional
            The row's inputs by name, if the loss reads any.

        Returns
        -------
        float
            The cost.
        """
        return self.interpret_positions(np.flatnonzero(self.mask(labels)).tolist(), inputs=inputs)

    def interpret_positions(self, positions: Iterable[int], *, inputs: Mapping[str, Any] | None = None) -> float:
        """The same as `interpret`, for a set of positions, whatever the labels are called."""
        compiled, chosen = self.at(inputs)._compiled, frozenset(positions)
        limits = [x.body.left for x in compiled.declared.limits.values() if isinstance(x.body, Comparison)]
        paid = zip(self.multipliers, limits, strict=False)  # without multipliers, limits cost nothing
        return compiled.interpreter(compiled.body, chosen) + sum(nu * compiled.interpreter(e, chosen) for nu, e in paid)

    def mask(self, labels: LabelSet) -> Bools:
        """A set as a boolean mask.

        Parameters
        ----------
        labels : collection of str or int, or boolean mask of length K
            The set. Whole numbers are positions, unless the labels are numbers: then they are names.

        Returns
        -------
        boolean array, shape (K,)
            True for each label in the set.

        Raises
        ------
        InputError
            A label is unknown, or given twice (0 and 1 repeated are more likely meant as a mask).
        """
        if isinstance(labels, np.ndarray) and labels.dtype == np.bool_:
            if labels.shape != (self.K,):
                raise InputError(f"the mask has shape {labels.shape}, expected ({self.K},)")
            return labels
        if isinstance(labels, str):
            raise InputError(f"a set of labels is expected, not one string: write {{{labels!r}}}")
        if not isinstance(labels, Iterable):
            way_out = "for the empty set pass set()" if labels is None else f"write {{{labels!r}}}"
            raise InputError(f"a set of labels is expected, not a {type(labels).__name__}: {way_out}")
        positions = [self._position(label) for label in labels]
        mask = np.zeros(self.K, dtype=bool)
        mask[positions] = True
        if len(positions) > mask.sum():
            twice = next(y for y, many in Counter(positions).items() if many > 1)
            zero_one = isinstance(labels, np.ndarray) and labels.shape == (self.K,) and np.isin(labels, (0, 1)).all()
            way_out = (
                "a mask of 0 and 1 is made boolean by .astype(bool)" if zero_one else "a set contains a label once"
            )
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

    # Facts

    @cached_property
    def _facts(self) -> dict[int, Facts]:
        from udcp_dsl.expression.prove import prove

        known = prove(self.expression, self.labels)
        if self.inputs:  # what is refuted for one row is refuted
            expression, root = self.example.expression, id(self.expression.root)
            row = dict(prove(expression, self.labels)[id(expression.root)])
            examples = {name: _of_example(row[name]) for name, fact in known[root] if not fact and row[name].sets}
            known[root] = with_facts(known[root], examples)
        return known

    @property
    def facts(self) -> Facts:
        """What is proved, refuted or unknown about the loss, with reasons."""
        return self._facts[id(self.expression.root)]

    def fact(self, name: str) -> Fact:
        """One fact; for the loss of a row, this avoids computing the interval, which takes longer."""
        found: Fact = getattr(self.facts, name)
        return found

    @cached_property
    def form(self) -> Additive | None:
        """The loss as a sum of label costs, weighted categories, tree diameters and a function of size, or None."""
        from udcp_dsl.expression.prove import additive_forms

        form = additive_forms(self.expression)[id(self.expression.root)]
        return None if form is None or form.by_row else form

    @cached_property
    def actions(self) -> Mapping[str, Actions]:
        """The action tables that the loss uses in `worst`, by name."""
        return actions_of(self.expression)

    @property
    def ceiling(self) -> float | None:
        """The c of a loss min(L, c), the cost of handing a row over; None for other losses."""
        return ceiling_of(self.expression)

    @cached_property
    def linear_model(self) -> LinearModel:
        """The loss as a mixed-integer linear model; LoweringError names the part of the loss that has none."""
        from udcp_dsl.expression.lower import lower

        return lower(self.example)

    def explain(self) -> str:
        """Every fact with its reason, for the loss and for each summand.

        Returns
        -------
        str
            Text for a terminal.
        """
        from udcp_dsl.expression.explain import explain

        return explain(self)

    def facts_of(self, node: Any) -> Facts:
        """The facts of one node of `expression`."""
        return self._facts[id(node)]

    @cached_property
    def free_labels(self) -> tuple[str, ...]:
        """Labels that cost nothing by themselves; cost-directed oracles would put them into every set."""
        return tuple(self.labels[y] for y in np.flatnonzero(self._own_costs <= 0).tolist())

    @cached_property
    def negative_labels(self) -> tuple[str, ...]:
        """The free labels that cost less than nothing."""
        return tuple(self.labels[y] for y in np.flatnonzero(self._own_costs < 0).tolist())

    @property
    def _own_costs(self) -> Floats:
        """L({y}) - L({}). If the empty set has a cost, a first label saves it, which makes no label free: then what the
        label adds to the cheapest other label, where that is more."""
        grow = self.example.increments(1)
        own = grow.after()[0] - grow.value[0]
        if grow.value[0] <= 0 or (own > 0).all():
            return np.asarray(own)
        if self.K == 1:
            return np.asarray(grow.after()[0])
        first, second = np.argsort(own, kind="stable")[:2].tolist()
        beside = self.example.increments(2)
        beside.push([first, second])
        added = beside.after() - beside.value[:, None]
        return np.asarray(np.maximum(own, np.where(np.arange(self.K) == first, added[1], added[0])))


class LossOfRow(Loss):
    """The loss of one row, whose inputs are replaced by numbers; its facts hold for every row.

    If the numbers are those of many rows (`PerRow`), it stands for the losses of all of them.
    """

    def __init__(self, whole: Loss, row: Mapping[str, Any], compiled: Compiled) -> None:
        super().__init__(compiled)
        self.whole: Loss = whole
        self.fixed_inputs: Mapping[str, Any] = row
        self.of_rows = any(isinstance(x, PerRow) for x in row.values())
        self.limits_of_row = self.limits
        pairs = zip(self.limits, whole.limits, strict=True)
        self.limits = whole.limits if self.of_rows else tuple(replace(limit, whole=of_all) for limit, of_all in pairs)

    @cached_property
    def _facts(self) -> dict[int, Facts]:
        from udcp_dsl.expression.prove import prove

        known, root = prove(self.expression, self.labels, refute=False), id(self.expression.root)
        return {**known, root: with_facts(self.whole.facts, {}, known[root].interval)}

    def fact(self, name: str) -> Fact:
        return self.whole.fact(name)

    def with_params(self, **params: float) -> Loss:
        return self.whole.with_params(**params)._at(self.fixed_inputs)

    def with_multipliers(self, multipliers: Sequence[float]) -> Loss:
        return self.whole.with_multipliers(multipliers)._at(self.fixed_inputs)

    @property
    def without_limits(self) -> Loss:
        return self.whole.without_limits._at(self.fixed_inputs) if self.limits else self

    def inputs_of(self, inputs: Any, n: int, *, others: Sequence[str] = (), **how: Any) -> RowInputs | None:
        if not set(self.fixed_inputs) & set(others):  # which another loss reads
            self._refuse_fixed(inputs)
        return super().inputs_of(inputs, n, others=others, **how)

    def _one_row(self, inputs: Any) -> RowInputs | None:
        self._refuse_fixed(inputs)
        return super()._one_row(inputs)

    def _refuse_fixed(self, inputs: Any) -> None:
        """Refuse inputs that have numbers already."""
        if inputs is None or isinstance(inputs, RowInputs):
            return
        names = column_names(inputs) or ()
        if not self.declared_inputs or any(possible_columns(x, names) for x in self.whole.inputs.values()):
            fixed = " and ".join(map(repr, self.fixed_inputs))
            raise InputError(
                f"inputs= are given, but loss.at(...) has fixed {fixed}: leave them out, or use the loss without at"
            )

    def __reduce__(self) -> tuple[Callable[..., Loss], tuple[object, ...]]:
        return _of_row, (self.whole, self.fixed_inputs)

    def __repr__(self) -> str:
        return f"{self.whole!r}.at({self.fixed_inputs!r})"


def _of_row(whole: Loss, row: Mapping[str, Any]) -> Loss:
    return whole._at(row)


def _of_example(fact: Fact) -> Fact:
    return Fact(fact.state, f"with inputs in the middle of their ranges {fact.reason}", fact.blame, fact.sets)


def load(
    path: str | Path,
    *,
    params: Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
    loss: str | None = None,
    allow_outside: bool = False,
) -> Loss:
    """Compile the loss in a `.loss` file.

    Parameters
    ----------
    path : str or path
        The file. Data files that it names are read from its folder.
    params : mapping, optional
        Values of parameters, in place of those in the file.
    labels : sequence of str, optional
        The labels, if the spec declares none.
    loss : str, optional
        Name of the loss, if the file has several; by default the last.
    allow_outside : bool, default False
        Let the spec read files outside its folder.

    Returns
    -------
    Loss
        The compiled loss.

    Raises
    ------
    SpecError
        The spec has errors. All of them are listed, each with its place and a suggested fix.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.load("specs/dermatology/triage.loss")  # doctest: +SKIP
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
    """Compile the loss in a text.

    Parameters
    ----------
    text : str
        The spec.
    labels : sequence of str, optional
        The labels, if the spec declares none.
    folder : str or path, optional
        Where to read the data files that the spec names.
    params : mapping, optional
        Values of parameters, in place of those in the text.
    loss : str, optional
        Name of the loss, if the spec has several; by default the last.
    allow_outside : bool, default False
        Let the spec read files outside `folder`.
    files : mapping of str to bytes, optional
        Contents of data files by path, in place of a folder.
    name : str, default "<text>"
        Name of the text in messages.

    Returns
    -------
    Loss
        The compiled loss.

    Raises
    ------
    SpecError
        The spec has errors. All of them are listed, each with its place and a suggested fix.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> udcp.loads("loss l = size", labels=["a", "b"])(["a"])
    1.0
    """
    from udcp_dsl.compile.passes import compile_spec
    from udcp_dsl.compile.sources import Files

    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}, not a str: decode bytes, and read files with load")
    if text.endswith(".loss") and not text.split()[1:]:
        raise InputError(f"{text!r} is a path, not the text of a spec: read it with udcp.load")
    below = Files(None if folder is None else Path(folder), allow_outside=allow_outside, contents=files)
    return _finish(compile_spec(Source(name, text), below, params, labels, loss))


def _finish(compiled: Compiled) -> Loss:
    for warning in compiled.warnings:
        warn(warning.render(), SpecWarning)
    return Loss(compiled)


def _recompiled(text: str, how: Mapping[str, Any], multipliers: tuple[float, ...]) -> Loss:
    with keeping_warnings(SpecWarning):  # shown when it was first compiled
        made = loads(text, **how)
    return made.with_multipliers(multipliers) if multipliers else made
