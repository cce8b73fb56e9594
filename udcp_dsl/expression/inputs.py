"""Numbers that come with each row: `input km in [0, 200]`, `costs fee per row in [0, 500]`, and nodes that read them.

A spec with inputs is checked with these nodes: from them, facts are proved for all values in the ranges, and many rows
are evaluated at once. Oracles never see them: they get the expression of a row, in which all numbers are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from udcp_dsl.expression import facts as rules
from udcp_dsl.expression.atoms import Atom, Sets
from udcp_dsl.expression.domain import Costs, Family, Floats
from udcp_dsl.expression.facts import COMPOSED, TOLERANCE, Facts, Interval, Rules, at_least, equal, proved, scale, when
from udcp_dsl.expression.forms import Additive, Range, Weighted
from udcp_dsl.expression.ir import Add, AtLeast, Equal, Expression, Extremum, Gate, If, Junction, Leaf, Node, Not, Scale


@dataclass(frozen=True)
class RowInput:
    """An input of a loss: its name, its range, and its entries.

    `entries` is None for one number per row; for costs, it has the labels or the categories of the family `of`.
    """

    name: str
    low: float
    high: float
    entries: tuple[str, ...] | None = None
    of: str | None = None

    @property
    def width(self) -> int | None:
        """The number of entries per row; None for one number per row."""
        return None if self.entries is None else len(self.entries)

    def shape(self, n: int | str = "n") -> str:
        """The shape of the array for n rows, as text."""
        return f"({n},)" if self.width is None else f"({n}, {self.width})"

    def __str__(self) -> str:
        what = "a number" if self.width is None else f"{self.width} costs of {self.of or 'labels'}"
        return f"{self.name}: {what} per row in [{self.low:g}, {self.high:g}]"

    @property
    def entry_columns(self) -> tuple[str, ...]:
        """The columns of a table that has one column per entry instead of a column of lists: fee.gp, fee.nurse."""
        return tuple(f"{self.name}.{entry}" for entry in self.entries or ())

    @property
    def example(self) -> Floats:
        """An example of one row: the middle of the range, or for costs distinct numbers from the range."""
        shares = np.array(0.5) if self.width is None else (1 + np.arange(self.width)) / (1 + self.width)
        return np.asarray(self.low * (1 - shares) + self.high * shares)


@dataclass(frozen=True, eq=False)
class RowCosts(Costs):
    """Costs that come with each row; `values` is a placeholder, with all costs at the upper end of the range."""

    low: float = 0.0
    high: float = 0.0

    @staticmethod
    def of_range(name: str, many: int, of: Family | None, low: float, high: float) -> RowCosts:
        return RowCosts(name, np.full(many, high), of, low, high)

    def extreme_costs(self) -> tuple[Costs, Costs, Costs]:
        """Costs at the lower end, at the upper end, and alternating: what is proved for all three holds for any."""
        many = len(self.values)
        alternating = np.where(np.arange(many) % 2 == 0, self.low, self.high)
        return (
            Costs(self.name, np.full(many, self.low), self.of),
            Costs(self.name, np.full(many, self.high), self.of),
            Costs(self.name, alternating, self.of),
        )


def row_multiple(factor: Interval, e: Facts) -> Rules:
    """e times a number from a range."""
    if factor.constant:
        return scale(factor.lo, e)
    products = [a * b for a in factor for b in e.interval]
    interval = Interval(min(products), max(products))
    up, down = scale(1.0, e).facts, scale(-1.0, e).facts
    if factor.lo >= 0 or factor.hi <= 0:
        return Rules(interval, up if factor.lo >= 0 else down)
    either_sign = {name: when("so are its multiples of either sign", up[name], down[name]) for name in COMPOSED}
    return Rules(interval, either_sign)


Given = Mapping[str, Floats]  # the inputs of n rows, by name: (n,) or (n, entries)


@dataclass(frozen=True, eq=False)
class RowNumber(Node):
    """A number that comes with each row, within its interval; an input, or arithmetic of inputs and numbers."""

    interval: Interval

    def rules(self, *operands: Facts) -> Rules:
        return Rules(self.interval, {name: proved("no set changes it") for name in COMPOSED})

    def additive(self, *operands: Additive | None) -> Additive:
        return Additive(Range(*self.interval), np.zeros(self.K))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class InputNode(RowNumber):
    """An input itself."""

    name: str

    @property
    def given(self) -> tuple[object, ...]:  # type: ignore[override]
        return ("input", self.name)

    def value(self, *operands: Floats) -> Floats:
        raise AssertionError("the values of inputs are handed in")

    def read(self, sets: Sets, inputs: Given) -> Floats:
        return inputs[self.name]


@dataclass(frozen=True, eq=False)
class RowArithmetic(RowNumber):
    """A function of row numbers and numbers; it may be an indicator, which depends on the row alone."""

    function: Callable[..., Floats]
    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def value(self, *operands: Floats) -> Floats:
        return np.asarray(self.function(*operands), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RowLeaf(Node):
    """An atom of costs that come with each row; `low`, `high` and `alternating` are of `RowCosts.extreme_costs`."""

    low: Atom
    high: Atom
    alternating: Atom
    name: str
    _FORMS: ClassVar[frozenset[str]] = frozenset(("sum", "count"))  # whose form always has the same parts

    @property
    def given(self) -> tuple[object, ...]:  # type: ignore[override]
        return ("costs", self.name, *self.high.key[:-1])

    def value(self, *operands: Floats) -> Floats:
        raise AssertionError("the values of atoms are handed in")

    def read(self, sets: Sets, inputs: Given) -> Floats:
        return self.alternating.batch_by_row(sets, inputs[self.name])

    @property
    def interval(self) -> Interval:
        ends = [*self.low.interval, *self.high.interval]
        return Interval(min(ends), max(ends))

    def rules(self, *operands: Facts) -> Rules:
        variants = (self.low, self.high, self.alternating)
        proves = {
            name: reason
            for name, reason in self.alternating.proves().items()
            if all(name in variant.proves() for variant in variants)
        }
        lacks = {name: f"for some rows {why}" for name, why in self.alternating.lacks().items()}
        return rules.atom(self.span, self.text, self.interval, proves, lacks)

    def additive(self, *operands: Additive | None) -> Additive | None:
        if self.alternating.name not in self._FORMS:
            return None
        low, high, names = self.low.additive(), self.high.additive(), self.alternating.additive()
        assert low is not None
        assert high is not None
        assert names is not None
        parts = {**low.categories, **high.categories, **names.categories}
        weights = [
            [form.categories[key].weight if key in form.categories else 0.0 for form in (low, high)] for key in parts
        ]
        return Additive(
            0.0,
            Range(low.label_costs, high.label_costs),  # type: ignore[arg-type]
            {
                key: Weighted(Range(*weight), part.members, part.name)  # type: ignore[arg-type]
                for (key, part), weight in zip(parts.items(), weights, strict=True)
            },
        )


@dataclass(frozen=True, eq=False)
class RowScale(Node):
    """A row number, or an indicator of the row, times an expression."""

    number: Node
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.number, self.operand)

    def value(self, *operands: Floats) -> Floats:
        return operands[0] * operands[1]

    def rules(self, *operands: Facts) -> Rules:
        return row_multiple(operands[0].interval, operands[1])

    def additive(self, *operands: Additive | None) -> Additive | None:
        number, form = operands
        assert number is not None, "a number has a form"
        return None if form is None else form.times(number.constant)


@dataclass(frozen=True, eq=False)
class RowChoice(Node):
    """`if i then e else f` by an indicator of the row."""

    condition: Node
    then: Node
    otherwise: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.condition, self.then, self.otherwise)

    def value(self, *operands: Floats) -> Floats:
        return np.where(operands[0] > 0.5, operands[1], operands[2])

    def rules(self, *operands: Facts) -> Rules:
        branches = operands[1:]
        interval = Interval(min(f.interval.lo for f in branches), max(f.interval.hi for f in branches))
        named = {name: [getattr(f, name) for f in branches] for name in COMPOSED}
        return Rules(interval, {name: when("every branch is", *needs) for name, needs in named.items()})

    def additive(self, *operands: Additive | None) -> Additive | None:
        """i * e + (1 - i) * f, with ranges for i and 1 - i: the form does not know that only one of them is 1."""
        _, e, f = operands
        some: Any = Range(0.0, 1.0)
        return None if e is None or f is None else e.times(some).plus(f.times(some))


@dataclass(frozen=True, eq=False)
class RowComparison(Node):
    """left >= right, or left == right, where one side is a row number k; values within the tolerance are equal."""

    left: Node
    right: Node
    operator: str
    k: RowNumber

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def value(self, *operands: Floats) -> Floats:
        left, right = operands
        slack = TOLERANCE * np.maximum(1.0, np.abs(right if self.k is self.right else left))
        holds = np.abs(left - right) <= slack if self.operator == "==" else left - right >= -slack
        return np.asarray(holds, dtype=np.float64)

    def rules(self, *operands: Facts) -> Rules:
        left, right = operands
        gap = rules.add([left, rules.negate(right)])
        facts = rules.with_facts(left, gap.facts, gap.interval)
        slack = TOLERANCE * max(1.0, *map(abs, self.k.interval))
        return (equal if self.operator == "==" else at_least)(facts, 0.0, slack, self.span)


def has_row_numbers(expression: Expression) -> bool:
    """Whether some numbers of the expression come with each row."""
    return any(isinstance(node, RowNumber | RowLeaf) for node in expression.nodes)


def ends_on(expression: Expression, members: np.typing.NDArray[np.bool_]) -> dict[int, Interval]:
    """The interval of every node, by `id`, on the set of a mask (K,)."""
    one = Sets(members[None, :])
    found: dict[int, Interval] = {}
    for node in expression.nodes:
        if isinstance(node, RowNumber):
            found[id(node)] = node.interval
        elif isinstance(node, RowLeaf):
            found[id(node)] = _spanned([float(atom.batch(one)[0]) for atom in (node.low, node.high)])
        elif isinstance(node, Leaf):
            found[id(node)] = _exactly(float(node.atom.batch(one)[0]))
        else:
            found[id(node)] = _ends(node, [found[id(part)] for part in node.children])
    return found


def _ends(node: Node, parts: Sequence[Interval]) -> Interval:
    lows, highs = [part.lo for part in parts], [part.hi for part in parts]
    if all(part.constant for part in parts):
        return _exactly(float(np.asarray(node.value(*(np.array([low]) for low in lows))).reshape(-1)[0]))
    match node:
        case Add():
            return Interval(sum(lows), sum(highs))
        case Scale():
            return _spanned([node.factor * lows[0], node.factor * highs[0]])
        case Gate() | RowScale():
            return _spanned([a * b for a in parts[0] for b in parts[1]])
        case Extremum() | Junction() | AtLeast():  # these never fall when an operand rises
            return Interval(*(float(np.asarray(node.value(*map(np.asarray, side)))) for side in (lows, highs)))
        case Not():
            return Interval(1 - highs[0], 1 - lows[0])
        case If() | RowChoice():
            return parts[1 if lows[0] else 2] if parts[0].constant else _spanned([*parts[1], *parts[2]])
        case Equal() | RowComparison():
            return Interval(0.0, 1.0)
        case _:
            raise TypeError(f"{type(node).__name__} has no interval on one set")


def _exactly(value: float) -> Interval:
    return Interval(value, value)


def _spanned(values: Sequence[float]) -> Interval:
    return Interval(min(values), max(values))
