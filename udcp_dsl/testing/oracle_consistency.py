"""Whether an oracle is consistent on given rows: scores and sets agree to the last bit, and rows are independent.

A score that depended on the true label, on other rows or on earlier calls would void the guarantee of coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.prediction.oracle import Oracle
from udcp_dsl.testing.shrinking import fewest

Probabilities = npt.NDArray[np.floating[Any]]
Make = Callable[[], Oracle]

_LABELS = 8  # labels of a row whose scores are requested one by one; all, if there are no more


@dataclass(frozen=True, eq=False)
class Fault:
    """What an oracle does wrong, and the fewest rows that show it."""

    check: str
    P: Probabilities
    text: str

    def __str__(self) -> str:
        rows = "; ".join(f"[{', '.join(f'{float(x):.17g}' for x in row)}]" for row in self.P)
        return f"{self.check}: {self.text}, for {self.P.dtype} p = {rows}"


def assert_faces(oracle: Oracle, P: Probabilities, *, seed: int = 0) -> None:
    """Fail if `scores`, `score_of`, `sets` and `first` of an oracle disagree, in the last bit, on some rows.

    Parameters
    ----------
    oracle : Oracle
        The oracle.
    P : array, shape (n, K)
        Probabilities.
    seed : int, default 0
        Random seed for the labels and thresholds that are tried.

    Raises
    ------
    AssertionError
        They disagree; the message shows where.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels 0..2  loss l = size")
    >>> assert_faces(udcp.make_oracle("base", loss), np.full((2, 3), 1 / 3))
    """
    fault = first_fault(lambda: oracle, P, seed, FACES)
    if fault is not None:
        raise AssertionError(f"oracle {oracle.name!r}: {fault}")


def first_fault(
    make: Make, P: Probabilities, seed: int, checks: Mapping[str, Check], *, anew: Make | None = None
) -> Fault | None:
    """The first check that fails on the rows, and the fewest of them on which it still does.

    `make` returns the oracle; `anew`, if given, makes an unused one for each try with fewer rows.
    """
    for name, check in checks.items():
        if _fault_text(check, make, P, seed) is not None:
            return _smallest(name, check, anew or make, P, seed)
    return None


def _smallest(name: str, check: Check, make: Make, P: Probabilities, seed: int) -> Fault:
    rows = fewest(range(len(P)), lambda some: bool(some) and _fault_text(check, make, P[some], seed) is not None)
    return Fault(name, P[rows], _fault_text(check, make, P[rows], seed) or "it fails now and then")


def _fault_text(check: Check, make: Make, P: Probabilities, seed: int) -> str | None:
    try:
        return check(make, P.copy(), np.random.default_rng(seed))
    except Exception as error:  # a third-party oracle may raise anything on valid rows
        return f"it raises {type(error).__name__}: {error}"


Check = Callable[[Make, Probabilities, np.random.Generator], str | None]


def _scores(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    given = P.copy()
    scores = make().scores(P)
    if not np.array_equal(P, given):
        return "the probabilities that were handed in are changed"
    if scores.shape != P.shape or scores.dtype != np.float64:
        return f"scores are {scores.dtype} {scores.shape}, not float64 {P.shape}"
    return "a score is NaN" if np.isnan(scores).any() else None


def _score_of(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    oracle = make()
    scores, (n, K) = oracle.scores(P), P.shape
    labels = np.arange(K) if K <= _LABELS else rng.choice(K, _LABELS, replace=False)
    asked: list[npt.NDArray[np.int64]] = [np.full(n, label, dtype=np.int64) for label in labels]
    asked.append(rng.integers(K, size=(n,)))
    for y in asked:
        got, expected = oracle.score_of(P, y), scores[np.arange(n), y]
        if got.shape != (n,):
            return f"score_of gives shape {got.shape}, not ({n},)"
        if (wrong := np.flatnonzero(got.view(np.int64) != expected.view(np.int64))).size:
            i = wrong[0]
            label = oracle.loss.labels[y[i]]
            return f"label {label} has the score {float(expected[i])!r} in scores and {float(got[i])!r} in score_of"
    return None


def _sets(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    oracle = make()
    scores, (n, K) = oracle.scores(P), P.shape
    some = scores[np.arange(n), (rng.permutation(n) + rng.integers(K)) % K][
        :, None
    ]  # one per row, of different labels where possible
    one = float(rng.choice(scores.ravel()))
    by_class = rng.choice(scores.ravel(), size=(1, K))
    thresholds = [-np.inf, np.inf, 0.0, one, np.nextafter(one, -np.inf), some, by_class]
    # At, just below and just above scores of each row: where a single bit decides.
    thresholds += [np.nextafter(some, -np.inf), np.nextafter(some, np.inf)]
    for tau in thresholds:
        got, expected = oracle.sets(P, tau), scores <= tau
        if got.shape != P.shape or got.dtype != np.bool_:
            return f"sets are {got.dtype} {got.shape}, not bool {P.shape}"
        if (got != expected).any():
            i, y = np.argwhere(got != expected)[0]
            at = float(np.broadcast_to(tau, P.shape)[i, y])
            verb = "hold" if got[i, y] else "lack"
            return f"sets at {at!r} {verb} label {oracle.loss.labels[y]}, whose score is {float(scores[i, y])!r}"
    return None


def _first(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    oracle = make()
    scores = oracle.scores(P)
    least = scores == scores.min(axis=1, keepdims=True)
    expected, got = np.where(least, P, -1.0).argmax(axis=1), oracle.first(P)
    if (wrong := np.flatnonzero(got != expected)).size:
        mine, right = (oracle.loss.labels[labels[wrong[0]]] for labels in (got, expected))
        return f"first gives {mine}, but {right} has the least score, then the highest p, then the lowest index"
    return None


def _repeated(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    oracle = make()
    scores = oracle.scores(P)
    y = rng.integers(P.shape[1], size=len(P))
    oracle.score_of(P, y)
    oracle.sets(P, scores[np.arange(len(P)), y][:, None])
    return _same(oracle, scores, oracle.scores(P), "scores change once score_of and sets were asked")


def _alone(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    oracle = make()
    scores = oracle.scores(P)
    order = rng.permutation(len(P))
    shuffled = oracle.scores(P[order])
    alone = np.concatenate([oracle.scores(row[None]) for row in P])
    twice = oracle.scores(np.repeat(P, 2, axis=0))
    return (
        _same(oracle, scores, alone, "the scores of a row depend on the other rows")
        or _same(oracle, scores[order], shuffled, "scores change with the order of the rows")
        or _same(oracle, scores, twice[::2], "scores change where rows are repeated")
        or _same(oracle, scores, oracle.scores(P), "scores change after other rows were scored")
    )


def _fresh(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    one = make()
    scores = one.scores(P)
    other = make()
    turned = _same(one, scores[::-1], other.scores(P[::-1]), "two oracles that were made alike give different scores")
    return turned or _same(one, scores, one.scores(P), "scores change after another oracle was made and asked")


def _no_rows(make: Make, P: Probabilities, rng: np.random.Generator) -> str | None:
    oracle, none = make(), P[:0]
    shapes = oracle.scores(none).shape, oracle.score_of(none, np.zeros(0, np.int64)).shape, oracle.sets(none, 0.0).shape
    K = P.shape[1]
    return None if shapes == ((0, K), (0,), (0, K)) else f"of no rows it gives shapes {shapes}"


def _same(oracle: Oracle, expected: npt.NDArray[Any], got: npt.NDArray[Any], what: str) -> str | None:
    if got.shape == expected.shape and np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(expected).tobytes():
        return None
    if got.shape != expected.shape:
        return f"{what}: shape {got.shape}, not {expected.shape}"
    wrong = np.argwhere(np.ascontiguousarray(got).view(np.int64) != np.ascontiguousarray(expected).view(np.int64))
    i, y = wrong[0]
    return f"{what}: {float(got[i, y])!r}, not {float(expected[i, y])!r}, of label {oracle.loss.labels[y]}"


FACES: Mapping[str, Check] = {"scores": _scores, "score_of": _score_of, "sets": _sets, "first": _first}
# A score may depend only on the spec and on p(x).
INDEPENDENCE: Mapping[str, Check] = {"repeated calls": _repeated, "rows on their own": _alone, "no rows": _no_rows}
MADE_ALIKE: Mapping[str, Check] = {"oracles made alike": _fresh}
