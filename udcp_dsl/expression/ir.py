"""The checked expression: a graph of few kinds of node, each with its value, its facts and its additive form.

A `let` that is used twice is one node with two parents, so every pass goes over `postorder`, which has each node once.
`value` works on arrays of any common shape: values on many sets, or after one more label. `lower` gives the form of a
node in a linear model, `pushes` in which directions that pushes its operands, `grid` the values that it can take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

import numpy as np

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression import facts as rules
from udcp_dsl.expression.atoms import Atom
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.facts import ROUNDING, TOLERANCE, Facts, Interval, Rules
from udcp_dsl.expression.forms import Additive, Weighted, touched
from udcp_dsl.expression.linear import Affine, Lowering, LoweringError, NoLinearForm, Part, Push, total
from udcp_dsl.per_row import as_number, as_rows, from_rows, larger


def tolerance(k: float) -> float:
    """How far a value may be from k and still be equal to it."""
    return TOLERANCE * larger(1.0, abs(k))  # type: ignore[no-any-return]  # of a number or of one per row


@dataclass(frozen=True, eq=False)
class Node(ABC):
    span: Span
    K: int
    given: ClassVar[tuple[object, ...] | None] = None  # the key of a value that the caller of `evaluate` passes in

    @property
    def children(self) -> tuple[Node, ...]:
        """Its operands: the nodes among its fields, in their order."""
        values = (value if isinstance(value, tuple) else (value,) for value in vars(self).values())
        return tuple(node for group in values for node in group if isinstance(node, Node))

    @property
    def text(self) -> str:
        return self.span.line

    @abstractmethod
    def value(self, *operands: Floats) -> Floats: ...

    @abstractmethod
    def rules(self, *operands: Facts) -> Rules: ...

    def additive(self, *operands: Additive | None) -> Additive | None:
        return None

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        """The push of each operand: where rows must bound it, so that this node is bounded where it is pushed."""
        return (push,) * len(operands)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        raise NotImplementedError

    def grid(self, *operands: Grid | None) -> Grid | None:
        """The values that it can take, or None if unknown; by default those of an indicator."""
        return Grid.of([0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Constant(Node):
    number: float

    def value(self, *operands: Floats) -> Floats:
        return np.float64(1.0) * self.number  # type: ignore[return-value]  # a scalar broadcasts like an array

    def rules(self, *operands: Facts) -> Rules:
        return rules.constant(self.number)

    def additive(self, *operands: Additive | None) -> Additive:
        return Additive.of_constant(self.number, self.K)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        return Affine(self.number, {})

    def grid(self, *operands: Grid | None) -> Grid:
        return Grid.of([self.number])


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    atom: Atom

    @property
    def given(self) -> tuple[object, ...]:  # type: ignore[override]
        return self.atom.key

    def value(self, *operands: Floats) -> Floats:
        return operands[0]

    def rules(self, *operands: Facts) -> Rules:
        return self.atom.rules(self.span, self.text)

    def additive(self, *operands: Additive | None) -> Additive | None:
        return self.atom.additive()

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        try:
            return self.atom.lower(model, push)
        except NoLinearForm as declined:
            raise LoweringError(self.span, str(declined)) from None

    def grid(self, *operands: Grid | None) -> Grid | None:
        return self.atom.grid()


@dataclass(frozen=True, eq=False)
class Table(Node):
    """A function of a count: `table[k]` where the count is k."""

    count: Leaf
    table: Floats
    cap: float | None = None  # c, if it was written as min(..., c)

    @property
    def slope(self) -> float | None:
        """The slope of the table if it is linear, else None."""
        f = self.table
        step = as_number(f[-1] - f[0]) / max(1, len(f) - 1)
        rows, line = as_rows(f), np.multiply.outer(as_rows(step), np.arange(len(f)))  # in place: it may be large
        line += rows[:, :1]
        off = np.abs(np.subtract(rows, line, out=line), out=line).max(axis=1)
        straight = off <= ROUNDING * np.maximum(np.abs(rows.max(axis=1)), np.abs(rows.min(axis=1)))
        return step if from_rows(straight) else None

    def value(self, *operands: Floats) -> Floats:
        return self.table[operands[0].astype(np.int64)]

    def rules(self, *operands: Facts) -> Rules:
        return rules.table(self.table, operands[0], self.count.text, self.span)

    def additive(self, *operands: Additive | None) -> Additive | None:
        counted, f = operands[0], self.table
        base = Additive.of_constant(as_number(f[0]), self.K)
        if counted is None or len(f) == 1:
            return None if counted is None else base
        if (slope := self.slope) is not None:
            return base.plus(counted.times(slope))
        steps = np.diff(f)
        if (steps[1:] == 0).all():
            touched = [part.members for part in counted.categories.values()]
            everything = np.unique(np.concatenate([np.flatnonzero(counted.label_costs), *touched]))
            once = Weighted(as_number(steps[0]), everything, f"touched by {self.count.text}")
            return base.plus(Additive.of_categories([once], self.K))
        if self.count.atom.most == self.K and (counted.label_costs == 1).all():
            return Additive(as_number(f[0]), np.zeros(self.K), of_size=f - f[0])
        return None

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        steps = np.diff(self.table)
        if (steps[1:] == 0).all():
            return (Push.NONE,)
        return (push.through_function(bool((steps >= 0).all()), bool((steps <= 0).all())),)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        f, count = self.table, operands[0].form
        steps = np.diff(f)
        if (steps[1:] == 0).all():
            return model.any_of(self.count.atom.counted(), push.through_factor(steps[0])) * float(steps[0]) + float(
                f[0]
            )
        if np.ptp(steps) <= 1e-12 * np.abs(f).max():
            return count * float(steps[0]) + float(f[0])
        try:
            return model.broken_line(f, count, push)
        except NoLinearForm as declined:
            raise LoweringError(self.span, str(declined)) from None

    def grid(self, *operands: Grid | None) -> Grid:
        return Grid.of(self.table)


@dataclass(frozen=True, eq=False)
class Add(Node):
    terms: tuple[Node, ...]

    def value(self, *operands: Floats) -> Floats:
        return reduce(np.add, operands)

    def rules(self, *operands: Facts) -> Rules:
        return rules.add(operands)

    def additive(self, *operands: Additive | None) -> Additive | None:
        total = Additive.of_constant(0.0, self.K)
        for part in operands:
            if part is None:
                return None
            total = total.plus(part)
        return total

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        return total(part.form for part in operands)

    def grid(self, *operands: Grid | None) -> Grid | None:
        return reduce(lambda a, b: None if a is None or b is None else a.plus(b), operands)


@dataclass(frozen=True, eq=False)
class Scale(Node):
    factor: float
    operand: Node

    def value(self, *operands: Floats) -> Floats:
        return self.factor * operands[0]

    def rules(self, *operands: Facts) -> Rules:
        return rules.scale(self.factor, operands[0])

    def additive(self, *operands: Additive | None) -> Additive | None:
        if self.factor == 0:
            return Additive.of_constant(0.0, self.K)
        return None if operands[0] is None else operands[0].times(self.factor)

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        return (push.through_factor(self.factor),)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        return operands[0].form * self.factor

    def grid(self, *operands: Grid | None) -> Grid | None:
        return None if operands[0] is None else operands[0].times(self.factor)


@dataclass(frozen=True, eq=False)
class Gate(Node):
    """An indicator times an expression."""

    indicator: Node
    operand: Node

    def value(self, *operands: Floats) -> Floats:
        return operands[0] * operands[1]

    def rules(self, *operands: Facts) -> Rules:
        return rules.gate(operands[0], operands[1], self.span)

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        lo, hi = operands[1]
        return (push.through_function(lo >= 0, hi <= 0), push)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        return model.product(operands[0].form, operands[1], push)

    def grid(self, *operands: Grid | None) -> Grid | None:
        return None if operands[1] is None else operands[1].union(Grid.of([0.0]))


@dataclass(frozen=True, eq=False)
class Extremum(Node):
    """max or min of two or more expressions."""

    largest: bool
    operands: tuple[Node, ...]

    def value(self, *operands: Floats) -> Floats:
        return reduce(np.maximum if self.largest else np.minimum, operands)

    def rules(self, *operands: Facts) -> Rules:
        return (rules.maximum if self.largest else rules.minimum)(operands, self.span)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        if self.largest:
            return model.maximum(operands, push)
        turned = [Part(part.form * -1.0, -part.hi, -part.lo) for part in operands]
        return model.maximum(turned, push.reversed) * -1.0

    def grid(self, *operands: Grid | None) -> Grid | None:
        return reduce(lambda a, b: None if a is None or b is None else a.union(b), operands)


@dataclass(frozen=True, eq=False)
class AtLeast(Node):
    """operand >= k; values within the tolerance are equal."""

    operand: Node
    k: float

    def value(self, *operands: Floats) -> Floats:
        return 1.0 * (operands[0] >= self.k - tolerance(self.k))  # type: ignore[return-value]

    def rules(self, *operands: Facts) -> Rules:
        return rules.at_least(operands[0], self.k, tolerance(self.k), self.span)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        part = operands[0]
        below, above = part.neighbours_of(self.k - tolerance(self.k), self.span)
        if above == np.inf or below == -np.inf:
            return Affine(0.0 if above == np.inf else 1.0, {})
        holds = model.binary()
        # Rows are scaled by the gap, so that a solver's tolerance is small relative to it.
        unit = 1.0 / (above - below)
        if Push.DOWN in push:
            model.at_most((part.form - below) * unit, holds * (unit * (part.hi - below)))
        if Push.UP in push:
            model.at_most(holds * (unit * (above - part.lo)), (part.form - part.lo) * unit)
        return holds


@dataclass(frozen=True, eq=False)
class Equal(Node):
    operand: Node
    k: float

    def value(self, *operands: Floats) -> Floats:
        return 1.0 * (np.abs(operands[0] - self.k) <= tolerance(self.k))  # type: ignore[return-value]

    def rules(self, *operands: Facts) -> Rules:
        return rules.equal(operands[0], self.k, tolerance(self.k), self.span)

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        return (Push.BOTH if push else Push.NONE,)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        """One of three cases: below, equal, above; each bounds the operand on both sides."""
        part = operands[0]
        below, first = part.neighbours_of(self.k - tolerance(self.k), self.span)
        last, above = part.neighbours_of(self.k + tolerance(self.k), self.span)
        if first > last:
            return Affine(0.0, {})
        cases = [(model.binary(), first, last)]
        cases += [(model.binary(), part.lo, below)] if below > -np.inf else []
        cases += [(model.binary(), above, part.hi)] if above < np.inf else []
        unit = 1.0 / min(first - below, above - last, 1.0)
        model.equal(total(case for case, _, _ in cases), 1.0)
        model.at_most(total(case * (unit * least) for case, least, _ in cases), part.form * unit)
        model.at_most(part.form * unit, total(case * (unit * most) for case, _, most in cases))
        return cases[0][0]


@dataclass(frozen=True, eq=False)
class Not(Node):
    operand: Node

    def value(self, *operands: Floats) -> Floats:
        return 1.0 - operands[0]

    def rules(self, *operands: Facts) -> Rules:
        return rules.complement(operands[0])

    def additive(self, *operands: Additive | None) -> Additive | None:
        return None if operands[0] is None else Additive.of_constant(1.0, self.K).plus(operands[0].times(-1.0))

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        return (push.reversed,)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        return Affine(1.0, {}) - operands[0].form


@dataclass(frozen=True, eq=False)
class Junction(Node):
    """`and` or `or` of indicators."""

    both: bool
    operands: tuple[Node, ...]

    def value(self, *operands: Floats) -> Floats:
        return reduce(np.minimum if self.both else np.maximum, operands)

    def rules(self, *operands: Facts) -> Rules:
        return (rules.conjunction if self.both else rules.disjunction)(operands, self.span)

    def additive(self, *operands: Additive | None) -> Additive | None:
        """any(A) or any(B) = any(A | B); within(A) and within(B) = 1 - any(labels that are not in both)."""
        one = Additive.of_constant(1.0, self.K)
        turned = [one.plus(f.times(-1.0)) if self.both and f is not None else f for f in operands]
        members = [touched(f) for f in turned]
        found = [m for m in members if m is not None]
        if len(found) < len(members):
            return None
        union = Additive.of_categories([Weighted(1.0, np.unique(np.concatenate(found)), self.text)], self.K)
        return one.plus(union.times(-1.0)) if self.both else union

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        if self.both:
            return model.all_of([part.form for part in operands], push)
        one = Affine(1.0, {})
        return one - model.all_of([one - part.form for part in operands], push.reversed)


@dataclass(frozen=True, eq=False)
class If(Node):
    condition: Node
    then: Node
    otherwise: Node

    def value(self, *operands: Floats) -> Floats:
        return np.where(operands[0] > 0.5, operands[1], operands[2])

    def rules(self, *operands: Facts) -> Rules:
        return rules.choice(operands[0], operands[1], operands[2], self.span)

    def additive(self, *operands: Additive | None) -> Additive | None:
        condition = operands[0]
        if condition is None or not isinstance(self.then, Constant) or not isinstance(self.otherwise, Constant):
            return None
        step = condition.times(self.then.number - self.otherwise.number)
        return step.plus(Additive.of_constant(self.otherwise.number, self.K))

    def pushes(self, push: Push, operands: Sequence[Interval]) -> tuple[Push, ...]:
        _, then, otherwise = operands
        return (push.through_function(then.lo >= otherwise.hi, then.hi <= otherwise.lo), push, push)

    def lower(self, model: Lowering, push: Push, *operands: Part) -> Affine:
        """k + c (e - k) + (1 - c) (f - k), with k between e and f if one is always above the other: then both products
        move in the same direction with c, and c needs a bound on one side only."""
        condition, then, otherwise = operands
        k = 0.0
        if then.lo >= otherwise.hi or then.hi <= otherwise.lo:
            k = otherwise.hi if then.lo >= otherwise.hi else otherwise.lo
        e, f = (Part(part.form - k, part.lo - k, part.hi - k) for part in (then, otherwise))
        return model.product(condition.form, e, push) + model.product(Affine(1.0, {}) - condition.form, f, push) + k

    def grid(self, *operands: Grid | None) -> Grid | None:
        return None if operands[1] is None or operands[2] is None else operands[1].union(operands[2])


def postorder(root: Node) -> list[Node]:
    """Every node once, operands before the nodes that use them."""
    done: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if ready:
            done[id(node)] = node
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children) if id(child) not in done)
    return list(done.values())


@dataclass(frozen=True, eq=False)
class Expression:
    """A checked expression, with its nodes in postorder; atoms that are the same function are evaluated once."""

    root: Node
    nodes: tuple[Node, ...] = field(init=False)
    atoms: Mapping[tuple[object, ...], Atom] = field(init=False)

    def __post_init__(self) -> None:
        nodes = tuple(postorder(self.root))
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "atoms", {node.atom.key: node.atom for node in nodes if isinstance(node, Leaf)})

    def evaluate(self, atom_values: Mapping[tuple[object, ...], Floats]) -> dict[int, Floats]:
        """The value of every node, by `id`, from the values of the atoms."""
        values: dict[int, Floats] = {}
        for node in self.nodes:
            given, parts = node.given, (values[id(child)] for child in node.children)
            values[id(node)] = node.value(*parts) if given is None else atom_values[given]
        return values


def summands(root: Node) -> Iterable[Node]:
    """The terms of the outermost sum as written; the whole, if it is not a sum."""
    return root.terms if isinstance(root, Add) else (root,)
