"""The oracle protocol, and the look-up of oracles by name.

An oracle gives each label of an instance a score that depends on the spec and on p(x) alone; the prediction set at
threshold tau is {y : s(x, y) <= tau}. Oracles are found through the entry-point group `udcp_dsl.oracles`.
"""

from __future__ import annotations

import inspect
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from udcp_dsl.deprecation import deprecated
from udcp_dsl.diagnostics import InputError, OracleError, Span, did_you_mean, nearest
from udcp_dsl.expression.explain import shown_blame
from udcp_dsl.rows.columns import BlockedMatrix, changed, to_array
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from udcp_dsl.expression.facts import Fact
    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.order import Order

GROUP = "udcp_dsl.oracles"
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Masks = NDArray[np.bool_]
Probabilities = NDArray[np.floating[Any]]
Columns: TypeAlias = "dict[str, Any]"  # columns of rows, by name
Given: TypeAlias = "Rows | ArrayLike | BlockedMatrix"  # rows, or their probabilities alone

S = TypeVar("S", bound=np.generic)

_FIRST_STEP, _MOMENT = 64, 0.3  # with progress listeners: rows of the first step, seconds per later step
# Scores held at once when only a part of them is needed: 32 MiB of float64.
_BLOCK = 1 << 22


class Scorer(Protocol):
    """What a third-party oracle must be: a class called as `cls(loss, **options)`, with these three methods."""

    def scores(self, P: Probabilities, /) -> ArrayLike: ...
    def score_of(self, P: Probabilities, y: Indices, /) -> ArrayLike: ...
    def sets(self, P: Probabilities, tau: Floats, /) -> ArrayLike: ...


class Oracle(ABC):
    """Scores for the labels of each row under a loss; the base class for your own oracle.

    A subclass takes its options as keyword-only arguments, raises OracleError if it does not apply to the loss, passes
    the resolved options to `super().__init__` (they are saved as JSON), and implements `_scores`. `_score_of` and
    `_sets` may stop early and must agree with `_scores` to the last bit. All three get a checked C-contiguous array of
    float32 or float64. docs/how-to/own-oracle.md has an example.

    Parameters
    ----------
    loss : Loss
        The loss.
    **options
        Options of the subclass.

    Attributes
    ----------
    name : str
        Name of the oracle.
    declaration : Declaration or None
        What it does, how exact and how fast it is; shown by `udcp check`.
    """

    name: str
    declaration: Declaration | None = None
    reads: tuple[str, ...] = ()  # columns of `Rows`, beside P, that its scores depend on; passed to `_scores` by name
    has_best: bool = False  # whether it finds the best set of a row at a price: `best`, `with_multipliers`
    takes_rows: bool = False  # whether it also takes a loss with the numbers of many rows (`udcp_dsl.per_row`)
    settled_by_row: frozenset[str] = frozenset()  # options that, if not given, are set per row of a loss with inputs
    priced: bool = False  # scores are prices in the unit of the loss, so a threshold is the worth of a missed truth

    def __init__(self, loss: Loss, **options: object) -> None:
        self.loss = loss
        self.options: dict[str, object] = options
        self._listeners: list[Callable[[int, int], None]] = []  # shared with oracles derived from this one

    @property
    def about(self) -> str | None:
        """The variant of the score that it uses, such as "mass before"; None if there is only one."""
        return None

    @classmethod
    def of_format(cls, version: int, options: Mapping[str, object]) -> Mapping[str, object]:
        """Convert the options of a predictor saved in format `version` to the current ones."""
        return options

    @cached_property
    def way(self) -> Way | Refusal | None:
        """The algorithm that it uses for its loss; None if it does not declare one."""
        return None if self.declaration is None else self.declaration.way(self.loss)

    @property
    def untuned(self) -> bool:
        """Whether its weight on cost, the option `lam`, still has to be tuned before it has scores."""
        return self.declaration is not None and self.declaration.tuned and self.options.get("lam") is None

    @property
    def wants_anchor(self) -> bool:
        """Whether an anchor would improve its scores and still has to be found."""
        if self.declaration is None or self.options.get("anchor") is not None:
            return False
        return self.declaration.anchored(self.loss.example)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and deep copies are constructed again, since what was compiled for the loss cannot be copied."""
        return _rebuild, (type(self), self.loss, self.options)

    @property
    def by_cost(self) -> bool:
        """Whether the cost influences which labels it adds; True if it has no declaration."""
        return self.declaration is None or self.declaration.by_cost

    @property
    def normalized(self) -> bool:
        """Whether the rows that it takes must sum to 1; True if it has no declaration."""
        return self.declaration is None or self.declaration.normalized

    @property
    def unproved(self) -> int | None:
        """How many sets of the last call are not proved to be the best ones; None if the oracle proves nothing."""
        return None

    @contextmanager
    def on_progress(self, tell: Callable[[int, int], None]) -> Iterator[None]:
        """In this block, calls go through their rows in steps and report `tell(rows done, rows in all)`."""
        self._listeners.append(tell)
        try:
            yield
        finally:
            self._listeners.remove(tell)

    def scores(self, P: Given, *, inputs: Any = None) -> Floats:
        """Scores of all labels; low scores enter the set first.

        Parameters
        ----------
        P : array, shape (n, K), or Rows
            Probabilities.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.

        Returns
        -------
        array of float, shape (n, K)
            The scores.
        """
        return self._in_steps(*self._read(P, inputs), lambda block, own, rows: self._scores(block, **own))

    def score_of(self, P: Given, y: ArrayLike, *, inputs: Any = None) -> Floats:
        """Scores of given labels only; faster than `scores`.

        Parameters
        ----------
        P : array, shape (n, K), or Rows
            Probabilities.
        y : array of int, shape (n,)
            One label per row, as a position.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.

        Returns
        -------
        array of float, shape (n,)
            The scores.
        """
        probabilities, columns = self._read(P, inputs)
        truth = as_indices(y, *probabilities.shape)
        if isinstance(probabilities, BlockedMatrix) and probabilities.is_remote:
            call = RemoteCall(self, "score_of", tuple(columns))
            return probabilities.apply(call, *columns.values(), truth)
        return self._in_steps(
            probabilities, columns, lambda block, own, rows: self._score_of(block, truth[rows], **own)
        )

    def sets(self, P: Given, tau: ArrayLike, *, inputs: Any = None) -> Masks:
        """The labels whose score is at most the threshold; faster than `scores`.

        Parameters
        ----------
        P : array, shape (n, K), or Rows
            Probabilities.
        tau : float or array
            The threshold: one number, one per row (n, 1) or (n,), or one per class (1, K) or (K,).
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.

        Returns
        -------
        boolean array, shape (n, K)
            The sets.
        """
        probabilities, columns = self._read(P, inputs)
        taus = as_thresholds(tau, *probabilities.shape)

        def part(block: Probabilities, own: Columns, rows: slice) -> Masks:
            return self._sets(block, taus[rows] if taus.shape[1] == 1 else taus, **own)

        return self._in_steps(probabilities, columns, part)

    def first(self, P: Given, *, inputs: Any = None) -> Indices:
        """The label that comes first in each row: lowest score, then higher probability, then lower position.

        Parameters
        ----------
        P : array, shape (n, K), or Rows
            Probabilities.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.

        Returns
        -------
        array of int, shape (n,)
            Positions.
        """
        probabilities, columns = self._read(P, inputs)
        if isinstance(probabilities, BlockedMatrix) and probabilities.is_remote:
            return probabilities.apply(RemoteCall(self, "first", tuple(columns)), *columns.values())
        return self._in_steps(probabilities, columns, lambda block, own, rows: self._first(block, **own))

    def order(self, P: ArrayLike, *, inputs: Mapping[str, Any] | None = None) -> Order:
        """The order in which labels enter the set of one row, with the mass and the cost of each prefix.

        Parameters
        ----------
        P : array, shape (K,)
            The probabilities of the row.
        inputs : mapping, optional
            The row's inputs by name, if the loss reads any.

        Returns
        -------
        Order
            One step per label; for `price`, also at which price each label enters.

        Raises
        ------
        InputError
            The row or its inputs are invalid, or the oracle has no order before its lambda is known.

        Examples
        --------
        >>> import udcp_dsl as udcp
        >>> loss = udcp.loads("labels {a, b, c}  loss l = size")
        >>> print(udcp.make_oracle("lac", loss).order([0.5, 0.2, 0.3]))
        l, by lac
        <BLANKLINE>
        rank   label     p   mass   cost   score
        ────────────────────────────────────────
           1   a       0.5    0.5      1    -0.5
           2   c       0.3    0.8      2    -0.3
           3   b       0.2      1      3    -0.2
        mass and cost of the set of all labels up to this one
        """
        from udcp_dsl.predict.order import order_of

        rows = as_probabilities(np.atleast_2d(_numbers("probabilities", P)), self.loss.K)
        if len(rows) != 1:
            raise InputError(f"an order is that of one row, not of {len(rows)}")
        alone = make_oracle(self.name, self.loss.at(inputs), **self.options) if self.loss.inputs else self
        return order_of(alone, rows[0])

    def best(self, P: Given, mu: ArrayLike, *, inputs: Any = None) -> Masks:
        """The set of each row that minimises L - mu p, for an oracle that `has_best`.

        Parameters
        ----------
        P : array, shape (n, K), or Rows
            Probabilities.
        mu : array of float, shape (n,)
            The price of each row.
        inputs : mapping or frame, optional
            Numbers that the loss reads for each row, by name.

        Returns
        -------
        boolean array, shape (n, K)
            The sets.
        """
        probabilities, columns = self._read(P, inputs)
        return self._best(to_array(probabilities), np.asarray(mu, dtype=np.float64), **columns)

    def with_multipliers(self, multipliers: tuple[float, ...]) -> Oracle:
        """The oracle for the loss with its limits as further summands, L + sum of nu_j E_j.

        Parameters
        ----------
        multipliers : tuple of float
            A multiplier nu_j >= 0 for each limit of the spec.

        Returns
        -------
        Oracle
            The oracle itself if all are 0.
        """
        raise OracleError(f"oracle {self.name!r} does not enforce limits")

    def with_inputs(self, inputs: Any) -> Any:
        """Deprecated; give `inputs` to `scores`, `score_of`, `sets` and `first`.

        Parameters
        ----------
        inputs : mapping or frame
            Numbers that the loss reads for each row, by name.
        """
        deprecated("Oracle.with_inputs", "inputs= of scores, score_of, sets and first", as_of="0.4", removed_in="0.6")
        return _WithInputs(self, inputs)

    def _read(self, given: Given, inputs: Any) -> tuple[Probabilities | BlockedMatrix, Columns]:
        """The probabilities as its methods take them, and the columns that it reads, as far as the rows have them."""
        K = len(self.loss.labels)
        rows = given if isinstance(given, Rows) else Rows(self.loss.labels, as_probabilities(given, K))
        if rows.P.shape[1] != K:
            raise InputError(f"the rows have probabilities of {rows.P.shape[1]} labels, but the loss has {K}")
        P = changed(rows.P, np.ascontiguousarray)  # rows have been checked where they were made
        if inputs is not None and "inputs" in self.reads:
            rows = rows.with_columns(inputs=self.loss.inputs_of(inputs, len(P)))
        return P, {name: column for name in self.reads if (column := getattr(rows, name)) is not None}

    def _in_steps(
        self,
        P: Probabilities | BlockedMatrix,
        columns: Columns,
        answer: Callable[[Probabilities, Columns, slice], NDArray[S]],
    ) -> NDArray[S]:
        """Call `answer` for all rows: at once, block by block for a `BlockedMatrix`, and in short steps if there are
        listeners."""
        n = len(P)
        if n == 0 or not (self._listeners or isinstance(P, BlockedMatrix)):
            return answer(to_array(P), columns, slice(0, n))
        out: NDArray[S] | None = None
        for block, rows in self._steps(P):
            part = answer(block, some_of(columns, rows), rows)
            out = np.empty((n, *part.shape[1:]), dtype=part.dtype) if out is None else out
            out[rows] = part
        assert out is not None
        return out

    def _steps(self, P: Probabilities | BlockedMatrix) -> Iterator[tuple[Probabilities, slice]]:
        """Parts of the rows, each with its slice. With listeners, each should take `_MOMENT` seconds, judged by the one
        before; never a single row of several, for which some kernels would be compiled again. Without, whole blocks."""
        n, many = len(P), _FIRST_STEP if self._listeners else len(P)
        for at, block in P.blocks() if isinstance(P, BlockedMatrix) else [(slice(0, n), P)]:
            start = at.start
            while start < at.stop:
                stop = at.stop if at.stop - start < many + 2 else start + many
                self._tell(start, n)
                began = time.monotonic()
                yield block[start - at.start : stop - at.start], slice(start, stop)
                took = max(1e-6, time.monotonic() - began)
                if self._listeners:
                    many = int(min(8 * many, max(many / 4, 2, many * _MOMENT / took)))
                start = stop
        self._tell(n, n)

    def _tell(self, done: int, n: int) -> None:
        for tell in self._listeners:
            tell(done, n)

    @abstractmethod
    def _scores(self, P: Probabilities, *_: Any, **columns: Any) -> Floats:
        """The hooks get checked probabilities and, by name, the columns that it `reads`, as far as rows have them."""

    def _score_of(self, P: Probabilities, y: Indices, *_: Any, **columns: Any) -> Floats:
        out = np.empty(len(P))
        for rows in _blocks(*P.shape):
            scores = self._scores(P[rows], **some_of(columns, rows))
            out[rows] = np.take_along_axis(scores, y[rows, None], axis=1)[:, 0]
        return out

    def _sets(self, P: Probabilities, tau: Floats, *_: Any, **columns: Any) -> Masks:
        """`tau` is (n, 1) or (1, K)."""
        out = np.empty(P.shape, dtype=np.bool_)
        for rows in _blocks(*P.shape):
            scores = self._scores(P[rows], **some_of(columns, rows))
            np.less_equal(scores, tau[rows] if tau.shape[1] == 1 else tau, out=out[rows])
        return out

    def _first(self, P: Probabilities, *_: Any, **columns: Any) -> Indices:
        out = np.empty(len(P), dtype=np.int64)
        for rows in _blocks(*P.shape):
            scores = self._scores(P[rows], **some_of(columns, rows))
            least = scores == scores.min(axis=1, keepdims=True)
            out[rows] = np.where(least, P[rows], -1).argmax(axis=1)
        return out

    def _best(self, P: Probabilities, mu: Floats, *_: Any, **columns: Any) -> Masks:
        raise OracleError(f"oracle {self.name!r} has no best sets at a price")


def some_of(columns: Columns, rows: slice | Indices) -> Columns:
    """The entries of some rows in each column."""
    return {name: column[rows] for name, column in columns.items()}


@dataclass(frozen=True)
class RemoteCall:
    """A call of an oracle's method, for processes that read the rows; the columns that it reads are sent along."""

    oracle: Oracle
    method: str
    reads: tuple[str, ...]

    def __call__(self, P: Probabilities, *columns: Any) -> NDArray[Any]:
        many = len(self.reads)
        rows = Rows(self.oracle.loss.labels, P, **dict(zip(self.reads, columns, strict=False)))
        answer: NDArray[Any] = getattr(self.oracle, self.method)(rows, *columns[many:])
        return answer


@dataclass(frozen=True)
class _WithInputs:
    """What the deprecated `with_inputs` returns: the oracle, whose methods get these inputs."""

    oracle: Oracle
    given: Any

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.oracle, name)
        return partial(found, inputs=self.given) if name in ("scores", "score_of", "sets", "first", "best") else found


class SolvingOracle(Oracle):
    """An oracle that solves a program for each row: in worker processes, with a checkpoint, and with proofs."""

    @abstractmethod
    def running(
        self,
        *,
        workers: int | None = None,
        checkpoint: str | Path | None = None,
        advance: Callable[[], None] | None = None,
    ) -> AbstractContextManager[None]:
        """In this block, worker processes solve rows, finished rows are saved in the file `checkpoint`, and `advance`
        is called after each row."""

    @abstractmethod
    def optimal(self, P: Given) -> tuple[Masks, Masks]:
        """The cheapest set with the mass of the first level, for each row; and for which rows that is proved."""

    @abstractmethod
    def export(self, path: str) -> None:
        """Write the model, to which each instance adds a constraint on mass, as an .lp or .mps file."""


class ExternalOracle(Oracle):
    """A third-party oracle with the interface of `Oracle`; what it returns is checked."""

    def __init__(self, scorer: Scorer, loss: Loss, name: str, options: Mapping[str, object]) -> None:
        missing = [m for m in ("scores", "score_of", "sets") if not callable(getattr(scorer, m, None))]
        if missing:
            raise OracleError(f"oracle {name!r} has no method {' and no method '.join(missing)}")
        super().__init__(loss, **options)
        self.name = name
        self.__doc__ = scorer.__doc__
        self.declaration = _declared(scorer)
        self._scorer = scorer

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.name, self.loss, self.options)

    def _scores(self, P: Probabilities) -> Floats:
        return self._checked("scores", self._scorer.scores(P), P.shape)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        return self._checked("score_of", self._scorer.score_of(P, y), y.shape)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        masks = np.asarray(self._scorer.sets(P, tau))
        if masks.shape != P.shape or masks.dtype != np.bool_:
            raise OracleError(f"oracle {self.name!r}: sets returned {masks.dtype} {masks.shape}, not bool {P.shape}")
        return masks

    def _checked(self, method: str, answer: ArrayLike, shape: tuple[int, ...]) -> Floats:
        scores = np.asarray(answer, dtype=np.float64)
        if scores.shape != shape:
            raise OracleError(f"oracle {self.name!r}: {method} returned shape {scores.shape}, not {shape}")
        if np.isnan(scores).any():
            raise OracleError(f"oracle {self.name!r}: {method} returned NaN, which cannot be ordered")
        return scores


def oracle_names() -> tuple[str, ...]:
    """Names of all installed oracles, including those of other packages.

    Returns
    -------
    tuple of str
        The names that `make_oracle` and `SetPredictor` accept.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> "price" in udcp.oracle_names()
    True
    """
    return tuple(sorted({entry.name for entry in _registered(tuple(sys.path))}))


@cache
def _registered(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The oracles that packages on this path register; cached, as reading them takes 15 ms."""
    return tuple(entry_points(group=GROUP))


def make_oracle(name: str, loss: Loss, **options: object) -> Oracle:
    """Make an oracle for a loss.

    Parameters
    ----------
    name : str
        One of `oracle_names()`.
    loss : Loss
        The loss.
    **options
        Options of the oracle, such as `lam` of `penalized`; docs/oracles.md lists them.

    Returns
    -------
    Oracle
        It gives scores to the labels of each row.

    Raises
    ------
    OracleError
        The name or an option is unknown, or the oracle does not apply to this loss.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b, c}  loss l = size")
    >>> udcp.make_oracle("lac", loss).scores([[0.7, 0.2, 0.1]]).tolist()
    [[-0.7, -0.2, -0.1]]
    """
    from udcp_dsl.predict.oracle_by_row import by_row

    factory = _load(name)
    _check_options(name, factory, loss, options)

    def make(one: Loss) -> Oracle:
        made = factory(one, **options)
        own = found if isinstance(found := getattr(made, "options", None), Mapping) else options
        return made if isinstance(made, Oracle) else ExternalOracle(made, one, name, own)

    return by_row(make, loss, options) if loss.inputs else make(loss)


def as_oracle(loss: Loss, oracle: str | Oracle, options: Mapping[str, object] | None) -> Oracle:
    """The oracle with this name and options, made for the loss; or the given oracle, which must be made for it."""
    if isinstance(oracle, str):
        return make_oracle(oracle, loss, **(options or {}))
    if not isinstance(oracle, Oracle):
        raise TypeError(f"oracle is a {type(oracle).__name__}: give a name, or an oracle made by udcp.make_oracle")
    if options:
        raise InputError("options need the name of an oracle; this oracle already has its options")
    if oracle.loss is not loss:
        raise InputError("the oracle was made for another loss: make it for this one")
    return oracle


def default_options(name: str) -> dict[str, object]:
    """The defaults of the options of the oracle called `name`; empty if its factory does not say."""
    try:
        parameters = inspect.signature(_load(name)).parameters.values()
    except ValueError:
        return {}
    return {x.name: x.default for x in parameters if x.default is not x.empty}


def declaration_of(name: str) -> Declaration | None:
    """The declaration of the oracle called `name`, or None; OracleError for an unknown name. Compiles nothing."""
    return _declared(_load(name))


def _declared(oracle: object) -> Declaration | None:
    found = getattr(oracle, "declaration", None)  # a third-party class need not have one
    return found if isinstance(found, Declaration) else None


def migrate_options(name: str, version: int, options: Mapping[str, object]) -> Mapping[str, object]:
    """Convert oracle options of a predictor saved in format `version` to the current ones."""
    factory = _load(name)
    known = isinstance(factory, type) and issubclass(factory, Oracle)
    return factory.of_format(version, options) if known else options


def with_lambda(oracle: Oracle, lam: float) -> Oracle:
    """The same oracle with this weight on cost."""
    made = make_oracle(oracle.name, oracle.loss, **{**oracle.options, "lam": lam})
    made._listeners = oracle._listeners
    return made


def without_limits(oracle: Oracle) -> Oracle:
    """The same oracle as if the spec had no limits, because of which it may need an anchor."""
    if not oracle.loss.limits or not oracle.wants_anchor:
        return oracle
    rebuild, (kind, _, *rest) = oracle.__reduce__()
    made: Oracle = rebuild(kind, oracle.loss.without_limits, *rest)
    made._listeners = oracle._listeners
    return made


def _rebuild(kind: str | type[Oracle], loss: Loss, options: Mapping[str, object]) -> Oracle:
    return make_oracle(kind, loss, **options) if isinstance(kind, str) else kind(loss, **options)


def _load(name: str) -> Any:
    if name not in oracle_names():
        _registered.cache_clear()  # it may have been installed since
    # An editable install beside a wheel lists the same object twice; two objects of one name are a conflict.
    found = {entry.value: entry for entry in _registered(tuple(sys.path)) if entry.name == name}
    if not found:
        known = oracle_names()
        raise OracleError(f"there is no oracle {name!r}: {did_you_mean(name, known)} (all: {', '.join(known)})")
    if len(found) > 1:
        raise OracleError(f"oracle {name!r} is claimed by {' and '.join(sorted(found))}: uninstall one of them")
    ((value, entry),) = found.items()
    try:
        return entry.load()
    except Exception as error:  # a third-party module may raise anything on import
        raise OracleError(f"oracle {name!r} ({value}) cannot be loaded: {type(error).__name__}: {error}") from error


def _check_options(name: str, factory: Any, loss: Loss, options: Mapping[str, object]) -> None:
    try:
        signature = inspect.signature(factory)
    except ValueError:  # compiled classes may have none; their constructor checks options
        return
    parameters = list(signature.parameters.values())[1:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    listed = f"its options: {', '.join(known)}" if known else "it takes no options"
    for option in options:
        if option not in known:
            help_text = f": {did_you_mean(option, known)} ({listed})" if nearest(option, known) else f"; {listed}"
            raise OracleError(f"oracle {name!r} has no option {option!r}{help_text}")
    try:
        signature.bind(loss, **options)
    except TypeError as error:
        raise OracleError(f"oracle {name!r}: {error} ({listed})") from error


def is_number(value: object) -> TypeGuard[float]:
    """Whether an option is a finite number; an integer too large for a float is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def as_probabilities(P: ArrayLike | BlockedMatrix, K: int) -> Probabilities:
    """P as a C-contiguous float32 or float64 array (n, K), copied only if needed; refuses what is no probability.

    The blocks of a `BlockedMatrix` are converted when they are read.
    """
    if isinstance(P, BlockedMatrix):
        return cast(Probabilities, P.map(lambda block: as_probabilities(block, K)))
    array = _numbers("probabilities", P)
    if array.ndim != 2 or array.shape[1] != K:
        raise InputError(f"probabilities must have shape (n, {K}), one column per label, not {array.shape}")
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    array = np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)
    # NaN fails every comparison, and min and max propagate it; 1.001 leaves room for a rounded softmax.
    if array.size and not (array.min() >= 0 and array.max() <= 1.001):
        row, column = np.argwhere(~((array >= 0) & (array <= 1.001)))[0]
        raise InputError(f"row {row}, column {column}: {array[row, column]} is not a probability")
    return array


def as_indices(y: ArrayLike, n: int, K: int) -> Indices:
    """y as n label indices, 0 to K - 1."""
    array = _numbers("y", y)
    if array.shape != (n,):
        raise InputError(f"y must have shape ({n},), one label index per row, not {array.shape}")
    if array.dtype.kind not in "iu" and n:
        raise InputError(f"y must contain label indices (integers), not {array.dtype}")
    outside = np.flatnonzero((array < 0) | (array >= K)) if n else array
    if len(outside):
        raise InputError(f"row {outside[0]}: y is {array[outside[0]]}, but label indices run from 0 to {K - 1}")
    return array.astype(np.int64, copy=False)


def as_thresholds(tau: ArrayLike, n: int, K: int) -> Floats:
    """tau as (n, 1), by row (a single number applies to every row), or (1, K), by class."""
    array = _numbers("tau", tau).astype(np.float64, copy=False)
    if np.isnan(array).any():
        raise InputError("tau is NaN")
    if array.ndim == 1 and n == K > 1 and len(array) == n:
        raise InputError(f"tau of shape ({n},) could be by row or by class: give ({n}, 1) or (1, {K})")
    if array.shape in {(), (1, 1), (n,), (n, 1)}:
        return np.broadcast_to(array if array.ndim == 2 else array.reshape(-1, 1), (n, 1))
    if array.shape in {(K,), (1, K)}:
        return array.reshape(1, K)
    raise InputError(f"tau must be a number, or have shape ({n}, 1) or (1, {K}), not {array.shape}")


def _numbers(what: str, given: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError as error:  # nested lists of unequal lengths
        raise InputError(f"{what} must be an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} must contain numbers, not {array.dtype}")
    return array


def _blocks(n: int, K: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(K, 1))
    return (slice(start, start + step) for start in range(0, n, step))


# How an oracle describes itself: the class attribute `declaration`, which is read without compiling anything.
#
# Commands, validation, comparison and the README read it; there is no other table of oracles. An oracle without a
# declaration is constructed to see whether it applies. Reading a declaration imports neither compiler nor solver, so
# `udcp check` is fast.


class Time(StrEnum):
    """The order of magnitude of the time per row, for many rows and without compiling."""

    MICROSECONDS = "microseconds"
    MILLISECONDS = "milliseconds"
    LONGER = "longer"

    @property
    def most(self) -> float:
        """Upper bound in seconds, exclusive."""
        return {Time.MICROSECONDS: 1e-3, Time.MILLISECONDS: 1.0, Time.LONGER: math.inf}[self]

    @property
    def per_row(self) -> str:
        """
        >>> Time.MILLISECONDS.per_row, Time.LONGER.per_row
        ('milliseconds per row', 'longer than milliseconds per row')
        """
        return f"{self} than milliseconds per row" if self is Time.LONGER else f"{self} per row"

    @staticmethod
    def of(seconds: float) -> Time:
        """
        >>> Time.of(2e-5), Time.of(0.3)
        (<Time.MICROSECONDS: 'microseconds'>, <Time.MILLISECONDS: 'milliseconds'>)
        """
        return next(time for time in Time if seconds < time.most or time is Time.LONGER)


@dataclass(frozen=True)
class Way:
    """What an oracle would do with a loss.

    `exact`: its sets are the best ones for the given price or mass; otherwise it is a heuristic. `seconds`: rough time
    per row, for many rows, from the number of steps; infinite if it cannot be estimated, as for integer programs.
    """

    algorithm: str
    exact: bool
    seconds: float

    @property
    def time(self) -> Time:
        return Time.of(self.seconds)


@dataclass(frozen=True)
class Refusal:
    """Why an oracle does not apply to a loss: the missing fact, if one is missing, and the subexpression to blame."""

    why: str
    fact: str | None = None
    blame: Span | None = None


def never(loss: Loss) -> bool:
    """False for every loss: the oracle never wants an anchor."""
    return False


@dataclass(frozen=True)
class Declaration:
    """What an oracle class declares about itself.

    does: by what it orders labels, as a phrase. choose_for: when to choose it. chooses: the way that its constructor
    would choose for a loss, or why it does not apply. needs: facts without which it does not apply. quick_with: facts
    each of which reduces the time per row to microseconds. tuned: it has an option `lam`, its weight on cost; if `lam`
    is None, a predictor tunes it on separate rows. anchored: for which losses it wants an anchor, which a predictor
    finds on separate rows; the class `has_best` sets. solves: it solves a program for each row; the class is a
    `SolvingOracle`. by_cost: the cost influences which labels it adds, so a label that costs nothing is in every set.
    normalized: it uses the mass of a row, so rows must sum to 1; otherwise it takes the worth of each label, on one
    scale for all rows. in_threads: several threads may call it at once.
    """

    does: str
    choose_for: str
    chooses: Callable[[Loss], Way | Refusal]
    needs: tuple[str, ...] = ()
    quick_with: tuple[str, ...] = ()
    tuned: bool = False
    anchored: Callable[[Loss], bool] = never
    solves: bool = False
    by_cost: bool = True
    normalized: bool = True
    in_threads: bool = False

    def way(self, loss: Loss) -> Way | Refusal:
        """The way that it would choose for this loss, or why it does not apply."""
        for name in self.needs:
            fact: Fact = getattr(loss.facts, name)
            if not fact:
                culprit = f": {fact.reason}" if fact.blame is None else f" because of {shown_blame(fact.blame)}"
                return Refusal(f"needs {name}, which is {fact}{culprit}", name, fact.blame)
        return self.chooses(loss.example)
