"""What an atom is: one set function of the language, with everything about it in one file.

`value` is its definition, slow and simple, against which the rest is tested; `batch` its value on many sets at once;
`start` its increments, and `growth` their kind, if the compiled orders have it; `proves` and `lacks` its facts;
`additive` its additive form, if it has one; `lower` its linear form, or why it has none.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Actions, Bools, Category, Costs, Floats, Ints, Metric
from udcp_dsl.expression.facts import Interval, Rules, atom
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Entries, Growth
from udcp_dsl.expression.linear import Affine, Lowering, Push

# From this many labels per member of a set on, reading the members is faster than reading the mask.
_FEW = 4


class Sets:
    """Many sets of labels as a boolean matrix (n, K), with the views that several atoms share.

    >>> sets = Sets(np.array([[True, False, True], [False, False, False], [False, True, False]]))
    >>> sets.members, sets.offsets
    (array([0, 2, 1], dtype=int32), array([0, 2, 2, 3]))
    """

    def __init__(self, mask: Bools, few: int = _FEW) -> None:
        self.mask, self._few = mask, few

    @cached_property
    def as_float(self) -> Floats:
        return self.mask.astype(np.float64)

    @cached_property
    def size(self) -> Floats:
        if self.has_member_list:
            return np.diff(self.offsets).astype(np.float64)
        size: Floats = np.count_nonzero(self.mask, axis=1).astype(np.float64)
        return size

    @cached_property
    def _places(self) -> Ints:
        # On the flat mask: in two dimensions numpy takes four times as long.
        return np.asarray(np.flatnonzero(self.mask), dtype=np.int64)

    @cached_property
    def offsets(self) -> Ints:
        """Where each set begins in `members`, and where the last one ends."""
        starts = np.arange(len(self.mask) + 1) * self.mask.shape[1]
        return np.asarray(np.searchsorted(self._places, starts), dtype=np.int64)

    @cached_property
    def members(self) -> npt.NDArray[np.int32]:
        """The positions of the labels of all sets, one set after the other."""
        # This takes a quarter of the time of a remainder.
        starts = np.repeat(np.arange(len(self.mask)) * self.mask.shape[1], np.diff(self.offsets))
        return np.asarray(np.subtract(self._places, starts, dtype=np.int32, casting="unsafe"))

    @property
    def has_member_list(self) -> bool:
        """Whether `members` has been computed already and is short: atoms then read it instead of the mask."""
        return "members" in vars(self) and self._few * len(self.members) <= self.mask.size

    def block(self, start: int, stop: int) -> Sets:
        """The sets from `start` to `stop`, with their members if `has_member_list`."""
        part = Sets(self.mask[start:stop], self._few)
        if self.has_member_list:
            offsets = self.offsets[start : stop + 1]
            part.offsets, part.members = offsets - offsets[0], self.members[offsets[0] : offsets[-1]]
        return part


class Held:
    """One growing set for each of n rows; all increments of a loss share it."""

    def __init__(self, n: int, K: int) -> None:
        self.mask: Bools = np.zeros((n, K), dtype=bool)
        self.size = 0
        self.rows: Ints = np.arange(n)


class Increment(ABC):
    """An atom on growing sets: `value` (n,) at S, `after()` (n, K) at S + y for every y, `push(y)` adds a label."""

    value: Floats

    @abstractmethod
    def after(self) -> Floats:
        """The value at S + y for every label y, (n, K); if y is in S already, the value at S."""

    @abstractmethod
    def push(self, y: Ints) -> None:
        """Add label y[i], which must be new, to the set of row i. The caller updates the shared mask afterwards."""


class Atom(ABC):
    """A set function over K labels."""

    name: ClassVar[str]
    signatures: ClassVar[tuple[tuple[str, ...], ...]]  # the kinds of argument that it takes
    indicator: ClassVar[bool] = False
    # Whether `lower` always succeeds, so that it need not be tried: with 10,000 labels, it takes a second.
    always_linear: ClassVar[bool] = False
    K: int

    @property
    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """A key that is equal for atoms that are the same function."""

    @property
    def most(self) -> int | None:
        """The largest value of a count, to which functions of a count apply; None for other atoms. A count is an
        integer, 0 on the empty set, monotone and submodular."""
        return None

    @abstractmethod
    def value(self, S: frozenset[int]) -> float: ...

    @abstractmethod
    def batch(self, sets: Sets) -> Floats: ...

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        """`batch` with different costs for each set, (n, labels or categories); only for atoms of costs."""
        raise NotImplementedError

    @abstractmethod
    def start(self, held: Held) -> Increment: ...

    @abstractmethod
    def growth(self) -> Growth | None:
        """The kind of its increments, for compiled orders; None if it has only `start`, which is much slower."""

    @property
    @abstractmethod
    def interval(self) -> Interval: ...

    @abstractmethod
    def proves(self) -> Mapping[str, str]:
        """Facts that hold, each with its reason."""

    def lacks(self) -> Mapping[str, str]:
        """Specific reasons for facts that do not hold in general; the others get a default reason."""
        return {}

    def additive(self) -> Additive | None:
        return None

    def probes(self) -> Sequence[int]:
        """A few labels on which counter-examples are likely to be found."""
        return ()

    def rules(self, span: Span | None, text: str) -> Rules:
        return atom(span, text, self.interval, self.proves(), self.lacks())

    def entries(self) -> Entries | None:
        """The table that the search for best sets reads it from; None if it has an additive form, or no table."""
        return None

    @abstractmethod
    def lower(self, model: Lowering, push: Push) -> Affine:
        """The atom in a linear model, bounded where it is pushed; raises NoLinearForm, with the reason, if it has
        none."""

    def grid(self) -> Grid | None:
        """The values that it can take, or None if unknown; by default those of an indicator or a count."""
        most = 1 if self.indicator else self.most
        return None if most is None else Grid.of(np.arange(1.0 + most))

    @property
    def actions(self) -> Actions | None:
        """The table of actions of `worst`; None for other atoms."""
        return None

    def counted(self) -> Ints:
        """For a count, the labels that raise it above 0."""
        return np.flatnonzero(self.batch(Sets(np.eye(self.K, dtype=bool))))


def fingerprint(numbers: Floats | Ints) -> object:
    """A key that is equal for equal arrays: their bytes, or a hash of these if they are many.

    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3)), len(fingerprint(np.arange(10_000)))
    (True, 16)
    """
    data = numbers.tobytes()
    return hashlib.blake2b(data, digest_size=16).digest() if isinstance(data, bytes) and len(data) > 256 else data


class CostAtom(Atom):
    """An atom of the costs of labels."""

    signatures = (("costs",),)
    always_linear = True

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.costs = costs.values

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (self.name, fingerprint(self.costs))


class CategoryAtom(Atom):
    """An indicator that relates a set to one category."""

    signatures = (("category",),)
    always_linear = True
    indicator = True

    def __init__(self, K: int, category: Category) -> None:
        self.K = K
        self.category = category

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (self.name, fingerprint(self.category.members))

    @property
    def interval(self) -> Interval:
        return Interval(0.0, 1.0)

    def probes(self) -> Sequence[int]:
        return self.category.probes()


class DistanceAtom(Atom):
    """An atom of the distances between labels."""

    signatures = (("distance",),)
    always_linear = True

    def __init__(self, K: int, metric: Metric) -> None:
        self.K = K
        self.metric = metric

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, *self.metric.key)

    def probes(self) -> Sequence[int]:
        return self.metric.probes()


class LinearIncrement(Increment):
    """A sum of weights over the set."""

    def __init__(self, held: Held, weights: Floats) -> None:
        self.held = held
        self.weights = weights
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return self.value[:, None] + np.where(self.held.mask, 0.0, self.weights)

    def push(self, y: Ints) -> None:
        self.value = self.value + self.weights[y]


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b rounded, and its exact rounding error (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


class CompensatedIncrement(Increment):
    """A compensated sum of weights over the set, accurate in any order of adding."""

    def __init__(self, held: Held, weights: Floats) -> None:
        self.held = held
        self.weights = weights
        self._total = self._rest = np.zeros(len(held.rows))
        self.value = self._total

    def after(self) -> Floats:
        total, lost = two_sum(self._total[:, None], np.where(self.held.mask, 0.0, self.weights))
        return total + (self._rest[:, None] + lost)

    def push(self, y: Ints) -> None:
        self._total, lost = two_sum(self._total, self.weights[y])
        self._rest = self._rest + lost
        self.value = self._total + self._rest
