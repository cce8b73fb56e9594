"""The checked expression: a graph of few kinds of node, each with its value, its facts and its additive form.

A `let` that is used twice is one node with two parents, so every walk goes over `postorder`, once a node and without
recursion. `value` works on arrays of any one shape: values on many sets, or after one more label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from udcp_dsl import facts as rules
from udcp_dsl.atoms import Atom
from udcp_dsl.diagnostics import Span
from udcp_dsl.domain import Floats
from udcp_dsl.facts import TOLERANCE, Facts, Rules
from udcp_dsl.forms import Additive, Weighted


def tolerance(k: float) -> float:
    """How far a value may be from k and still be equal to it."""
    return TOLERANCE * max(1.0, abs(k))


@dataclass(frozen=True, eq=False)
class Node(ABC):
    span: Span
    K: int

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    @property
    def text(self) -> str:
        return self.span.line

    @abstractmethod
    def value(self, *operands: Floats) -> Floats: ...

    @abstractmethod
    def rules(self, *operands: Facts) -> Rules: ...

    def additive(self, *operands: Additive | None) -> Additive | None:
        return None


@dataclass(frozen=True, eq=False)
class Constant(Node):
    number: float

    def value(self, *operands: Floats) -> Floats:
        return np.float64(self.number)  # type: ignore[return-value]  # a scalar broadcasts like an array

    def rules(self, *operands: Facts) -> Rules:
        return rules.constant(self.number)

    def additive(self, *operands: Additive | None) -> Additive:
        return Additive.of_constant(self.number, self.K)


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    """An atom; its value is handed in by whoever evaluates."""

    atom: Atom

    def value(self, *operands: Floats) -> Floats:
        return operands[0]

    def rules(self, *operands: Facts) -> Rules:
        return self.atom.rules(self.span, self.text)

    def additive(self, *operands: Additive | None) -> Additive | None:
        return self.atom.additive()


@dataclass(frozen=True, eq=False)
class Table(Node):
    """A function of a count: `table[k]` where the count is k."""

    count: Leaf
    table: Floats

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.count,)

    def value(self, *operands: Floats) -> Floats:
        return self.table[operands[0].astype(np.int64)]

    def rules(self, *operands: Facts) -> Rules:
        return rules.table(self.table.tolist(), operands[0], self.count.text, self.span)

    def additive(self, *operands: Additive | None) -> Additive | None:
        counted, f = operands[0], self.table
        base = Additive.of_constant(float(f[0]), self.K)
        if counted is None or len(f) == 1:
            return None if counted is None else base
        steps = np.diff(f)
        if np.abs(steps - steps[0]).max() <= 1e-12 * np.abs(f).max():
            return base.plus(counted.times(float(steps[0])))
        if (steps[1:] == 0).all():
            touched = [part.members for part in counted.categories.values()]
            everything = np.unique(np.concatenate([np.flatnonzero(counted.label_costs), *touched]))
            once = Weighted(float(steps[0]), everything, f"touched by {self.count.text}")
            return base.plus(Additive.of_categories([once], self.K))
        if self.count.atom.most == self.K and (counted.label_costs == 1).all():
            return Additive(float(f[0]), np.zeros(self.K), of_size=f - f[0])
        return None


@dataclass(frozen=True, eq=False)
class Add(Node):
    terms: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.terms

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


@dataclass(frozen=True, eq=False)
class Scale(Node):
    factor: float
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def value(self, *operands: Floats) -> Floats:
        return self.factor * operands[0]

    def rules(self, *operands: Facts) -> Rules:
        return rules.scale(self.factor, operands[0])

    def additive(self, *operands: Additive | None) -> Additive | None:
        if self.factor == 0:
            return Additive.of_constant(0.0, self.K)
        return None if operands[0] is None else operands[0].times(self.factor)


@dataclass(frozen=True, eq=False)
class Gate(Node):
    """An indicator times an expression."""

    indicator: Node
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.indicator, self.operand)

    def value(self, *operands: Floats) -> Floats:
        return operands[0] * operands[1]

    def rules(self, *operands: Facts) -> Rules:
        return rules.gate(operands[0], operands[1], self.span)


@dataclass(frozen=True, eq=False)
class Extremum(Node):
    """max or min of two or more expressions."""

    largest: bool
    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def value(self, *operands: Floats) -> Floats:
        return reduce(np.maximum if self.largest else np.minimum, operands)

    def rules(self, *operands: Facts) -> Rules:
        return (rules.maximum if self.largest else rules.minimum)(operands, self.span)


@dataclass(frozen=True, eq=False)
class AtLeast(Node):
    """operand >= k, equal values included."""

    operand: Node
    k: float

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def value(self, *operands: Floats) -> Floats:
        return np.asarray(operands[0] >= self.k - tolerance(self.k), dtype=np.float64)

    def rules(self, *operands: Facts) -> Rules:
        return rules.at_least(operands[0], self.k, tolerance(self.k), self.span)


@dataclass(frozen=True, eq=False)
class Equal(Node):
    operand: Node
    k: float

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def value(self, *operands: Floats) -> Floats:
        return np.asarray(np.abs(operands[0] - self.k) <= tolerance(self.k), dtype=np.float64)

    def rules(self, *operands: Facts) -> Rules:
        return rules.equal(operands[0], self.k, tolerance(self.k), self.span)


@dataclass(frozen=True, eq=False)
class Not(Node):
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def value(self, *operands: Floats) -> Floats:
        return 1.0 - operands[0]

    def rules(self, *operands: Facts) -> Rules:
        return rules.complement(operands[0])

    def additive(self, *operands: Additive | None) -> Additive | None:
        return None if operands[0] is None else Additive.of_constant(1.0, self.K).plus(operands[0].times(-1.0))


@dataclass(frozen=True, eq=False)
class Junction(Node):
    """`and` or `or` of indicators."""

    both: bool
    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def value(self, *operands: Floats) -> Floats:
        return reduce(np.minimum if self.both else np.maximum, operands)

    def rules(self, *operands: Facts) -> Rules:
        return (rules.conjunction if self.both else rules.disjunction)(operands, self.span)


@dataclass(frozen=True, eq=False)
class If(Node):
    condition: Node
    then: Node
    otherwise: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.condition, self.then, self.otherwise)

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


def postorder(root: Node) -> list[Node]:
    """Every node once, operands before what uses them."""
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
    """A checked expression with its nodes in order; atoms that are the same function are evaluated once."""

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
            if isinstance(node, Leaf):
                values[id(node)] = node.value(atom_values[node.atom.key])
            else:
                values[id(node)] = node.value(*(values[id(child)] for child in node.children))
        return values


def summands(root: Node) -> Iterable[Node]:
    """The terms that the loss pays, as written: those of the outermost sum, else the whole."""
    return root.terms if isinstance(root, Add) else (root,)
