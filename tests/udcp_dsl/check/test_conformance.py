"""Every installed oracle passes the conformance suite; broken ones fail it, each with its smallest case."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.specs import size_of
from udcp_dsl.check import assert_faces, assert_valid_oracle
from udcp_dsl.check.conformance import usual_losses
from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.predict.oracle import GROUP, Oracle

if TYPE_CHECKING:
    from tests.conftest import Sizes

ORACLES = sorted({entry.name: entry.load for entry in entry_points(group=GROUP)}.items())
SOLVES = ("ilp",)  # a program for each row: tried on few
FEW = [loss for loss in usual_losses() if loss.K <= 4]
# Prices of the last, over 40 labels, take integer programs.
QUICK = [loss for loss in usual_losses() if loss.K <= 4 or loss.facts.submodular or loss.facts.tree_diameter]


@pytest.mark.parametrize(("name", "load"), ORACLES, ids=[name for name, _ in ORACLES])
def test_every_installed_oracle_is_valid(name: str, load: Callable[[], Any], sizes: Sizes) -> None:
    options = {"lam": 0.3} if name == "penalized" else None
    losses = FEW[:4] if name in SOLVES else QUICK
    assert_valid_oracle(load(), options=options, losses=losses, cases=1 if name in SOLVES else sizes.cases)


class Good(Oracle):
    """Minus p."""

    name = "good"

    def __init__(self, loss: Any, *, factor: float = 1.0) -> None:
        super().__init__(loss, factor=factor)
        self.factor = factor

    def _scores(self, P: Any) -> Any:
        return -self.factor * P.astype(np.float64)


class Stranger:
    """No subclass: the three methods alone."""

    def __init__(self, loss: Any) -> None:
        self.good = Good(loss)

    def scores(self, P: Any) -> Any:
        return self.good.scores(P)

    def score_of(self, P: Any, y: Any) -> Any:
        return self.good.score_of(P, y)

    def sets(self, P: Any, tau: Any) -> Any:
        return self.good.sets(P, tau)


@pytest.mark.parametrize("good", [Good, Stranger])
def test_a_good_oracle_passes(good: Callable[..., Any]) -> None:
    assert_valid_oracle(good, cases=2)


class Leaking(Good):
    def _score_of(self, P: Any, y: Any) -> Any:
        return super()._score_of(P, y) - 0.25


class Rounded(Good):
    """One bit off in `score_of`."""

    def _score_of(self, P: Any, y: Any) -> Any:
        return np.nextafter(super()._score_of(P, y), 1.0)


class Strict(Good):
    def _sets(self, P: Any, tau: Any) -> Any:
        return self._scores(P) < tau


class Stale(Good):
    """Gives the last answer again where as many rows are asked for."""

    last: Any = None

    def _scores(self, P: Any) -> Any:
        if self.last is None or len(self.last) != len(P):
            self.last = super()._scores(P)
        return self.last.copy()


class Shared(Good):
    """A memory of rows that all oracles of the class have in common, whatever their loss."""

    known: dict[bytes, Any] = {}  # noqa: RUF012  # the fault

    def _scores(self, P: Any) -> Any:
        if P.tobytes() not in self.known or not P.size:
            self.known[P.tobytes()] = super()._scores(P) - len(self.loss.expression.root.text)
        return self.known[P.tobytes()]


class Mixing(Good):
    """Centred over the rows that come together."""

    def _scores(self, P: Any) -> Any:
        return super()._scores(P) + P.sum()


class Random(Good):
    def _scores(self, P: Any) -> Any:
        return super()._scores(P) + np.random.default_rng().random(P.shape)


class Learning(Good):
    """Favours the labels that it was asked for."""

    asked = 0.0

    def _scores(self, P: Any) -> Any:
        return super()._scores(P) - self.asked

    def _score_of(self, P: Any, y: Any) -> Any:
        scores = super()._score_of(P, y)
        self.asked += 0.5
        return scores


class Writing(Good):
    def _scores(self, P: Any) -> Any:
        scores = super()._scores(P)
        P[:, 0] = 0.0
        return scores


class Nan(Good):
    def _scores(self, P: Any) -> Any:
        scores = super()._scores(P)
        return np.where(P == 1.0, np.nan, scores)


class Wrong(Good):
    def _first(self, P: Any) -> Any:
        return np.full(len(P), P.shape[1] - 1)


class Failing(Good):
    def _scores(self, P: Any) -> Any:
        if (P == 0).any():
            raise ZeroDivisionError("division by zero")
        return super()._scores(P)


class Forgetful(Good):
    """Its options do not make it again."""

    def __init__(self, loss: Any, *, factor: float = 2.0) -> None:
        super().__init__(loss, factor=factor)
        self.options = {"factor": 3 * factor}


class Unsaved(Good):
    def __init__(self, loss: Any) -> None:
        super().__init__(loss)
        self.options = {"factor": object()}


@pytest.mark.parametrize(
    ("broken", "rows", "message"),
    [
        (Leaking, 1, r"score_of: label a has the score -1.0 in scores and -1.25 in score_of"),
        (Rounded, 1, "in scores and .* in score_of"),
        (Strict, 1, r"sets: sets at .* lack label"),
        (Stale, 2, "rows on their own: the scores of a row depend on the other rows"),
        (Mixing, 1, "rows on their own: "),
        (Random, 1, "in scores and .* in score_of"),
        (Learning, 1, "in scores and .* in score_of"),
        (Nan, 1, "scores: a score is NaN"),
        (Wrong, 1, "first: first gives d, but"),
        (Failing, 1, "it raises ZeroDivisionError: division by zero"),
    ],
)
def test_a_broken_oracle_is_shown_with_few_labels_and_rows(broken: type[Good], rows: int, message: str) -> None:
    with pytest.raises(AssertionError, match=message) as shown:
        assert_valid_oracle(broken)
    text = str(shown.value)
    assert "over 1 labels" in text or "over 4 labels" in text
    assert text.count("[") == rows


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Forgetful, "made again from its options {'factor': 6.0} it gives other scores"),
        (Unsaved, "cannot be saved"),
        (Shared, "change once those for 'size' were asked"),
        (Writing, "handed in are changed"),
    ],
)
def test_other_faults_are_told(broken: type[Good], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_valid_oracle(broken, cases=2)


def test_an_oracle_that_takes_no_loss_is_refused() -> None:
    class Picky(Good):
        def __init__(self, loss: Any) -> None:
            raise OracleError("never")

    with pytest.raises(InputError, match="applies to none of the 15 losses"):
        assert_valid_oracle(Picky)
    with pytest.raises(InputError, match=r"give options=\{'lam': 0\.1\}"):
        assert_valid_oracle(dict(ORACLES)["penalized"]())


def test_faces_of_one_oracle_on_given_rows() -> None:
    loss = size_of("0..2")
    P = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    assert_faces(Good(loss), P)
    with pytest.raises(AssertionError, match=r"oracle 'good': sets: .*, for float64 p = \[.*\]$"):
        assert_faces(Strict(loss), P)
