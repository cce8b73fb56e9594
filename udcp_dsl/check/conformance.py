"""The conformance suite: the rules for every oracle, ours or third-party, on losses and rows of every kind."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.check.coverage import CLASSIFIERS, Problem, coverage_trials, judged
from udcp_dsl.check.oracles import FACES, INDEPENDENCE, MADE_ALIKE, first_fault
from udcp_dsl.check.samples import hard_rows, varied_rows
from udcp_dsl.check.verdicts import assert_verdicts
from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.loss import loads
from udcp_dsl.predict.oracle import ExternalOracle, Oracle
from udcp_dsl.predict.predictor import SetPredictor

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_FEW_LABELS = """
labels { a, b, c, d }
costs k { a: 1, b: 0.5, c: 2.25, d: 0 }
hierarchy h { x { a, b }, y { c, d } }
categories F { p: { a, b, c }, q: { c, d } }
loss l =
"""
_MANY_LABELS = """
labels 0..39
costs k { 0..9: 0.5, 10..19: 2, default: 1 }
hierarchy h { x { xx { 0..9 }, 10..14 }, y { 15..29 }, 30..39 }
categories F { p: { 0..19 }, q: { 10..29 }, r: { 25..39 } }
loss l =
"""
# One of each class of losses that oracles distinguish.
_BODIES = (
    "size",
    "sum(k) + 0.25 * size",
    "count(h.level(1)) + 0.125 * size",
    "count(F) + 0.125 * size",
    "diameter(h) + 0.125 * size",
    "max(size - 2, 0) ^ 2 + size",
    "2 * all({ {0}, {1} }) + max(k) + 0.5 * any({ {0} })",
)
_ROWS = 7


def assert_valid_oracle(
    oracle_class: Callable[..., Any],
    *,
    options: Mapping[str, object] | None = None,
    losses: Sequence[Loss] | None = None,
    cases: int = 12,
    seed: int = 0,
    chance: float = 1e-6,
) -> None:
    """Fail if an oracle class breaks the rules that coverage relies on; use it to test your own oracle.

    `scores`, `score_of`, `sets` and `first` must agree to the last bit, with ties, zeros and ones, in every precision.
    The scores of a row must depend on the loss and on that row alone: not on other rows, their order, or earlier calls.
    Options must survive JSON and make the same oracle again. Coverage must follow its exact distribution.

    Parameters
    ----------
    oracle_class : callable
        Called as `oracle_class(loss, **options)`. Losses that it refuses with OracleError are skipped.
    options : mapping, optional
        Options of the oracle.
    losses : sequence of Loss, optional
        Losses to try, if the class needs others than the usual ones.
    cases : int, default 12
        Number of batches of rows per loss.
    seed : int, default 0
        Random seed.
    chance : float, default 1e-6
        Probability that a correct oracle fails.

    Raises
    ------
    AssertionError
        A rule is broken; the message shows the case with the fewest labels and rows.

    Examples
    --------
    >>> from udcp_dsl.check import assert_valid_oracle
    >>> class LeastProbable(Oracle):
    ...     name = "least probable"
    ...     def _scores(self, P):
    ...         return P.astype(float)
    >>> assert_valid_oracle(LeastProbable, cases=2)
    """
    chosen = dict(options or {})
    name = str(getattr(oracle_class, "name", getattr(oracle_class, "__name__", "oracle")))
    usual = usual_losses() if losses is None else losses
    taken = [loss for loss in sorted(usual, key=lambda loss: loss.K) if _applies(oracle_class, name, loss, chosen)]
    if not taken:
        raise InputError(
            f"oracle {name!r} applies to none of the {len(usual)} losses: give losses=[...] to which it applies"
        )
    for loss in taken:
        _assert_on(oracle_class, name, loss, chosen, cases, seed)
    made = [adopted(oracle_class, name, loss, chosen) for loss in taken]
    for one, other in pairwise(made):
        _assert_apart(one, other, name, seed)
    _assert_coverage(made, name, cases, seed, chance)


def usual_losses() -> list[Loss]:
    """Losses of the classes that oracles distinguish, over 4 and 40 labels, and one over a single label."""
    one = loads("labels { a }  loss l = size")
    few = [loads(_FEW_LABELS + body.replace("{0}", "a").replace("{1}", "b")) for body in _BODIES]
    many = [loads(_MANY_LABELS + body.replace("{0}", "3").replace("{1}", "17")) for body in _BODIES]
    return [one, *few, *many]


def adopted(oracle_class: Callable[..., Any], name: str, loss: Loss, options: Mapping[str, object]) -> Oracle:
    """An oracle of the class, as `make_oracle` would return it if the class were installed under this name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # slow, or a low bound: warnings for users
        made = oracle_class(loss, **options)
    return made if isinstance(made, Oracle) else ExternalOracle(made, loss, name, getattr(made, "options", options))


def _applies(oracle_class: Callable[..., Any], name: str, loss: Loss, options: Mapping[str, object]) -> bool:
    try:
        adopted(oracle_class, name, loss, options)
    except OracleError:
        return False
    return True


def _assert_on(
    oracle_class: Callable[..., Any], name: str, loss: Loss, options: Mapping[str, object], cases: int, seed: int
) -> None:
    about = f"oracle {name!r} on {loss.expression.root.text!r} over {loss.K} labels"
    oracle = adopted(oracle_class, name, loss, options)
    if oracle.untuned:
        raise InputError(f"oracle {name!r} has no scores before it is tuned: give options={{'lam': 0.1}}")
    try:
        saved = json.loads(json.dumps(dict(oracle.options)))
        again = adopted(oracle_class, name, loss, saved)
    except (TypeError, ValueError) as error:  # OracleError is a ValueError
        raise AssertionError(f"{about}: its options {dict(oracle.options)!r} cannot be saved: {error}") from error
    for case in range(cases):
        rows = varied_rows if case % 2 else hard_rows
        P = rows(np.random.default_rng([seed, case]), _ROWS, loss.K)
        anew = partial(adopted, oracle_class, name, loss, options)
        fault = first_fault(lambda: oracle, P, seed, {**FACES, **INDEPENDENCE}, anew=anew)
        fault = fault or first_fault(anew, P, seed, MADE_ALIKE)
        if fault is not None:
            raise AssertionError(f"{about}: {fault.text}")
        if oracle.scores(P).tobytes() != again.scores(P).tobytes():
            raise AssertionError(f"{about}: made again from its options {saved!r} it gives other scores")


def _assert_apart(one: Oracle, other: Oracle, name: str, seed: int) -> None:
    """Calls of an oracle for one loss must not affect an oracle for another loss with as many labels."""
    if one.loss.K == other.loss.K:
        P = hard_rows(np.random.default_rng(seed), 2, one.loss.K)
        one.scores(P)
        after = other.scores(P)
        # No oracle has scored these rows together before.
        if after.tobytes() != other.scores(np.concatenate([P[::-1], P]))[len(P) :].tobytes():
            text = f"the scores for {other.loss.expression.root.text!r} change once those for "
            raise AssertionError(
                f"oracle {name!r}: {text}{one.loss.expression.root.text!r} were asked on the same rows"
            )


def _assert_coverage(oracles: Sequence[Oracle], name: str, cases: int, seed: int, chance: float) -> None:
    rng = np.random.default_rng([seed, cases])
    every = []
    for case, kind in enumerate(CLASSIFIERS):
        oracle = oracles[case % len(oracles)]
        predictor = SetPredictor(oracle.loss, oracle, alpha=Fraction(1, 5))
        problem = Problem.generated(oracle.loss.K, rng, kind=kind)
        about = f"oracle {name!r} over {oracle.loss.K} labels, {kind} classifier"
        repeats = min(20, 2 * cases)
        every.append(coverage_trials(predictor, problem, n_cal=19, repeats=repeats, n_test=20, rng=rng, name=about))
    assert_verdicts("coverage", judged({f"oracle {name!r}": every}, chance))
