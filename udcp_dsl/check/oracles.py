"""Is every oracle correct? Its scores and sets must agree to the last bit, follow its definition, and not be beaten.

Brute force tries all sets of up to 12 labels. With more labels, 8 of them get all the mass: if the loss is proved
monotone, no other label can make a set cheaper. On all labels, no set of another oracle may beat an optimal one:
neither S_mu in L - mu p, if the sets are nested, nor the exact set of a given mass in cost.

A score that depended on the true label, on other rows or on earlier calls would void coverage. The definitions are
computed label by label, with masses as exact rationals, and costs from the interpreter, which adds in its own order.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.check.coverage import Problem
from udcp_dsl.check.samples import (
    MOST_LABELS,
    all_masks,
    drawn_inputs,
    fewest,
    named,
    of_a_row,
    rows_on,
    shown_row,
    varied_rows,
)
from udcp_dsl.check.verdicts import DEFAULT, CounterExample, Verdict, raised
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.predict.calibrate.randomized import DRAWS, row_draws
from udcp_dsl.predict.oracle import ExternalOracle, Oracle, SolvingOracle, Way, make_oracle, oracle_names

if TYPE_CHECKING:
    from udcp_dsl.check.verdicts import Plan
    from udcp_dsl.loss import Loss

Probabilities = npt.NDArray[np.floating[Any]]
Make = Callable[[], Oracle]
_LABELS = 8  # labels of a row whose scores are requested one by one; all, if there are no more
QUESTION = "are the oracles correct on it?"
_LAM = 0.3  # weight on cost of a tuned oracle, for scores that are needed before there are rows to tune it on
_FACES, _ACCEPTS_ALL_ROWS = "scores and sets agree, and rows do not affect each other", "it accepts all rows"
_OWN_LOSS, _ROWS = "rows are scored by their own loss", 4
_FORMULA, _BEST = "scores follow the definition", "each label is the best choice at its step"
_UNBEATEN = {
    "price": "no other oracle has a better set at the same price",
    "ilp": "no other oracle has a cheaper set of the same probability",
}
_LIVE_LABELS = 8
_MAX_CHECKED = 300  # if there are more labels, sets or prices, only some are checked
_SCORINGS = 40  # scorings of a row in all consistency checks: too many if one takes seconds
_STEPS = 8  # places of the greedy order that are checked
_SLOW_SECONDS = 5e-3  # seconds per row above which an exact search gets fewer cases
_LEVEL = 0.9
_TOLERANCE = 1e-9  # relative, of costs and prices: rounding from another order of addition
_EXACT = ("base", "lac", "raps")  # scores without costs: equal to the formula to the last bit
Formula = Callable[["Loss", Sequence[float], Mapping[str, object]], list[float]]


@dataclass(frozen=True)
class Chosen:
    """An oracle to validate, a function that makes another instance, and whether it is slow, solving row by row.

    A `tuned` oracle has no weight on cost before it is calibrated; `oracle` then has a fixed weight.
    """

    name: str
    oracle: Oracle
    make: Callable[[], Oracle]
    slow: bool
    tuned: bool = False

    def of(self, loss: Loss) -> Chosen:
        """The same for `loss`, the loss of one row; unchanged if the oracle reads no inputs or is third-party."""
        if not self.oracle.loss.inputs or isinstance(self.oracle, ExternalOracle):
            return self
        make = partial(_make_quietly, self.name, loss, dict(self.oracle.options))
        return Chosen(self.name, make(), make, self.slow, self.tuned)


def _make_quietly(name: str, loss: Loss, options: Mapping[str, object]) -> Oracle:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return make_oracle(name, loss, **options)


def chosen_oracles(loss: Loss, wanted: Sequence[str | Oracle] | None) -> tuple[list[Chosen], dict[str, str]]:
    """The requested oracles, or all installed ones that apply, and why the others do not apply."""
    found, left_out = list[Chosen](), dict[str, str]()
    for item in oracle_names() if wanted is None else dict.fromkeys(wanted):
        if isinstance(item, Oracle):
            found.append(Chosen(item.name, item, partial(_second_instance, item), _is_slow(item)))
            continue
        try:
            found.append(_make_chosen(item, loss))
        except OracleError as error:
            if wanted is not None:
                raise
            left_out[item] = str(error)
    return found, left_out


def _second_instance(oracle: Oracle) -> Oracle:
    """Another instance with the same options; a third-party oracle itself, as its class is not known here."""
    if isinstance(oracle, ExternalOracle):
        return oracle
    return type(oracle)(oracle.loss, **oracle.options)


def _make_chosen(name: str, loss: Loss) -> Chosen:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        oracle = make_oracle(name, loss)
    options: dict[str, object] = {"lam": _LAM} if oracle.untuned else {}

    make = partial(_make_quietly, name, loss, options)
    # An oracle without a declaration that warns when it is made counts as slow.
    slow = _is_slow(oracle) or (oracle.declaration is None and bool(caught))
    return Chosen(name, make() if options else oracle, make, slow, tuned=bool(options))


def _is_slow(oracle: Oracle) -> bool:
    """Whether an oracle solves a program per row, or its exact search takes too long for thousands of rows.

    A search that is not exact stops early, and is faster than declared if sets are small.
    """
    says = oracle.declaration
    if says is None:
        return isinstance(oracle, SolvingOracle)
    way = oracle.way
    return says.solves or (isinstance(way, Way) and way.exact and way.seconds > _SLOW_SECONDS)


def oracles(loss: Loss, chosen: Sequence[Chosen], plan: Plan) -> list[Verdict]:
    """Check each oracle: its consistency, its definition and, on all labels, that no other oracle beats it.

    The default oracle comes first, then the fastest. If time is short, each oracle that is not slow gets one row, and
    more if they are likely to fit.
    """
    verdicts: dict[tuple[str, str], Verdict] = {}
    flat = np.full((1, loss.K), 1.0 / loss.K)
    whole_loss, asked = loss, chosen
    first = [item.of(loss.example) for item in asked]
    fast = {item.name: 0.0 if item.slow else _seconds(item, flat, plan) for item in first}
    for number, rng in enumerate(plan.rounds_of("oracles")):
        loss = of_a_row(whole_loss, rng)  # oracles are checked on the loss of one row
        chosen = [item.of(loss) for item in asked]
        by_speed = sorted(chosen, key=lambda item: (item.name != DEFAULT, item.slow, fast[item.name]))
        for name, example in _own_losses(whole_loss, asked, rng) if whole_loss.inputs else ():
            _add(verdicts, name, _OWN_LOSS, _ROWS, example)
        problem = Problem.generated(loss.K, rng, kind="calibrated")
        whole, _ = problem.draw(3, rng)
        for item in by_speed:
            if item.slow and plan.late("oracles"):
                continue
            P = rows_on(_live_labels(loss, rng, 3), rng, 1, loss.K) if item.slow else varied_rows(rng, 6, loss.K)
            brief = item.slow and (loss.K > _MAX_CHECKED or plan.late("oracles", _SCORINGS * _seconds(item, P, plan)))
            for part in plan.parts("oracles", len(P), 1):
                fault = _faces(item, P[part], 2 * number + part.start, brief)
                _add(verdicts, item.name, _FACES, len(P[part]), fault)
            if plan.late("oracles") and (number > 0 or item.name != DEFAULT):
                continue
            try:
                for claim, cases, example in _definitions(loss, item, rng):
                    _add(verdicts, item.name, claim, cases, example)
            except Exception as error:  # a third-party oracle may raise anything
                _add(verdicts, item.name, _ACCEPTS_ALL_ROWS, 1, raised(error))
        fatal = (_FACES, _ACCEPTS_ALL_ROWS)
        broken = {name for (name, claim), v in verdicts.items() if v.holds is False and claim in fatal}
        late = plan.late("oracles")
        if number == 0 or not late:  # at least once for the default oracle, however late
            whole_ones = [x for x in chosen if x.name not in broken and not (late and x.slow and x.name != DEFAULT)]
            for name, claim, cases, example in _dominance(loss, whole_ones, whole):
                _add(verdicts, name, claim, cases, example)
        if any(verdict.holds is False for verdict in verdicts.values()):
            break
    loss, chosen = whole_loss, asked
    found = [*verdicts.values(), *_not_tried(loss, chosen)]
    return [*found, *_no_time(loss, chosen, {verdict.claim for verdict in found})]


def _own_losses(
    loss: Loss, chosen: Sequence[Chosen], rng: np.random.Generator
) -> Iterator[tuple[str, CounterExample | None]]:
    """Whether rows with inputs are scored as by their own loss, to the last bit, whatever the other rows are."""
    inputs = loss.inputs_of(drawn_inputs(loss.inputs, _ROWS, rng), _ROWS)
    P = varied_rows(rng, _ROWS, loss.K)
    for item in chosen:
        if item.slow or inputs is None:
            continue
        scores, example = item.oracle.scores(P, inputs=inputs), None
        for i in range(_ROWS):
            row = inputs.row(i)
            if item.of(loss.at(row)).oracle.scores(P[i : i + 1])[0].tobytes() != scores[i].tobytes():
                text = f"a row scored together with others gets other scores than by its own loss{shown_row(row)}"
                example = example or CounterExample(text, rows=(tuple(P[i].astype(float).tolist()),))
        yield item.name, example


def _seconds(item: Chosen, p: Any, plan: Plan) -> float:
    """Seconds to score `p`, without compilation; 0 if the number of rounds is fixed."""
    if plan.rounds is not None:
        return 0.0
    began = plan.now()
    with suppress(Exception):  # the consistency checks report it
        for _ in range(1 if item.slow else 2):  # slow oracles compile nothing
            began = plan.now()
            item.oracle.scores(p)
    return plan.now() - began


def _add(
    verdicts: dict[tuple[str, str], Verdict], name: str, claim: str, cases: int, example: CounterExample | None
) -> None:
    before = verdicts.get((name, claim))
    total = cases + (0 if before is None else before.cases)
    if before is not None and before.counter_example is not None:
        return
    verdicts[name, claim] = Verdict(f"{name}: {claim}", example is None, total, "", example)


def _faces(item: Chosen, P: Any, number: int, brief: bool) -> CounterExample | None:
    checks = {"score_of": FACES["score_of"]} if brief else {**FACES, **INDEPENDENCE}
    fault = first_fault(lambda: item.oracle, P, number, checks, anew=item.make)
    if fault is None and number == 0 and not brief:
        fault = first_fault(item.make, P, number, MADE_ALIKE)
    return fault


def _live_labels(loss: Loss, rng: np.random.Generator, most: int) -> Any:
    return np.sort(rng.choice(loss.K, min(most, loss.K), replace=False))


class _FastEvaluatorLoss:
    """A loss with the fast evaluator in place of the interpreter; the stage `meaning` compares the two."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.labels, self.facts, self.K = loss.labels, loss.facts, loss.K

    def interpret_positions(self, positions: Sequence[int]) -> float:
        mask = np.zeros((1, self.K), dtype=bool)
        mask[0, list(positions)] = True
        return float(self.loss.batch(mask)[0])


def _definitions(
    loss: Loss, item: Chosen, rng: np.random.Generator
) -> Iterator[tuple[str, int, CounterExample | None]]:
    fast_loss: Any = _FastEvaluatorLoss(loss)
    if item.name in FORMULAS:
        P = np.asarray(varied_rows(rng, 6 if loss.K <= _MAX_CHECKED else 1, loss.K), dtype=np.float64)
        yield _FORMULA, len(P), _formula(fast_loss, item, P)
    elif item.name == "greedy":
        P = rows_on(_live_labels(loss, rng, _LIVE_LABELS), rng, 2, loss.K)
        yield _BEST, len(P), _greedy(fast_loss, item, P)
    elif item.name in _BRUTE and _few_sets_suffice(loss):
        live = _live_labels(loss, rng, (4 if item.slow else _LIVE_LABELS) if loss.K > MOST_LABELS else loss.K)
        P = rows_on(live, rng, 1 if item.slow else 3, loss.K)
        masks = np.zeros((1 << len(live), loss.K), dtype=bool)
        masks[:, live] = all_masks(len(live))
        claim, check = _BRUTE[item.name]
        yield claim, len(P), check(loss, item, P, masks, loss.batch(masks))


def _definition_claims(loss: Loss, item: Chosen) -> list[str]:
    """The claims that `_definitions` tries."""
    if item.name in _BRUTE and _few_sets_suffice(loss):
        return [_BRUTE[item.name][0]]
    return [_FORMULA] if item.name in FORMULAS else [_BEST] if item.name == "greedy" else []


def _few_sets_suffice(loss: Loss) -> bool:
    return loss.K <= MOST_LABELS or bool(loss.facts.monotone)


def _formula(loss: Any, item: Chosen, P: Floats) -> CounterExample | None:
    scores = item.oracle.scores(P)
    for p, got in zip(P, scores, strict=True):
        expected = np.array(FORMULAS[item.name](loss, p.tolist(), item.oracle.options))
        slack = 0.0 if item.name in _EXACT else _TOLERANCE * np.maximum(1.0, np.abs(expected))
        with np.errstate(invalid="ignore"):  # inf - inf, where both are infinite
            wrong = np.flatnonzero(~((got == expected) | (np.abs(got - expected) <= slack)))
        if wrong.size:
            y = int(wrong[0])
            score, right = float(got[y]), float(expected[y])
            text = f"label {loss.labels[y]} has the score {score!r}, where the formula gives {right!r}"
            return CounterExample(text, rows=(tuple(p.tolist()),))
    return None


def _greedy(loss: Any, item: Chosen, P: Floats) -> CounterExample | None:
    M, eps = (float(str(item.oracle.options[name])) for name in ("M", "eps"))
    for p, scores in zip(P, item.oracle.scores(P), strict=True):
        order = scores.argsort(kind="stable").tolist()
        steps = _STEPS if loss.K <= _MAX_CHECKED else 2
        fault = greedy_fault(loss, p.tolist(), order, M, eps, steps=steps, rounding=1e-12)
        if fault is not None:
            return CounterExample(fault, rows=(tuple(p.tolist()),))
    return None


def _price(loss: Loss, item: Chosen, P: Floats, masks: Bools, costs: Floats) -> CounterExample | None:
    for p, scores in zip(P, item.oracle.scores(P), strict=True):
        fault = price_fault(scores, p, masks, costs)
        if fault is not None:
            return CounterExample(f"label {loss.labels[fault[0]]} {fault[1]}", rows=(tuple(p.tolist()),))
    return None


def _optimal(loss: Loss, item: Chosen, P: Floats, masks: Bools, costs: Floats) -> CounterExample | None:
    found, proved = _optima(loss, item, P)
    for p, mask, cost in zip(P[proved], found[proved], loss.batch(found)[proved], strict=True):
        mass, target = masks @ p, _LEVEL * p.sum()
        # A set whose mass is the target up to rounding may count as either.
        best, at_least = (float(costs[mass >= target + slack].min(initial=np.inf)) for slack in (1e-12, -1e-12))
        slack = _TOLERANCE * max(1.0, abs(cost))
        if not at_least - slack <= cost <= best + slack or p[mask].sum() < target - 1e-12:
            cheaper = masks[np.where(mass >= target + 1e-12, costs, np.inf).argmin()]
            text = (
                f"of mass {_LEVEL} it gives {named(loss, mask)}, which costs {cost!r}; {named(loss, cheaper)} {best!r}"
            )
            return CounterExample(text, rows=(tuple(p.tolist()),))
    return None


_BRUTE: Mapping[str, tuple[str, Callable[..., CounterExample | None]]] = {
    "price": ("prices agree with brute force over all sets", _price),
    "ilp": ("no set of the same probability is cheaper, by brute force", _optimal),
}


def _optima(loss: Loss, item: Chosen, P: Floats) -> tuple[Bools, Bools]:
    """The exact oracle's cheapest sets of mass `_LEVEL`, and which of them are proved optimal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exact = make_oracle(item.name, loss, levels=[_LEVEL])
        assert isinstance(exact, SolvingOracle), f"{item.name} is not part of udcp_dsl"
        return exact.optimal(np.ascontiguousarray(P, dtype=np.float64))


def _dominance(
    loss: Loss, chosen: Sequence[Chosen], P: Floats
) -> Iterator[tuple[str, str, int, CounterExample | None]]:
    """Whether, on all labels, sets of the other oracles beat those of `price` or `ilp`."""
    by_name = {item.name: item for item in chosen}
    rivals = {item.name: item for item in chosen if not item.slow and item.name != "price"}
    ilp, price = by_name.get("ilp"), by_name.get("price")
    prefixes = [_prefixes(list(rivals.values()), p[None]) for p in P]
    nested = bool(loss.facts.submodular or loss.facts.cardinality)
    if price is not None and nested and rivals:
        rows = range(1 if price.slow else len(P))
        found = (_cheaper_at_a_price(loss, price, P[i], prefixes[i]) for i in rows)
        yield "price", _UNBEATEN["price"], len(rows), next(filter(None, found), None)
    if ilp is not None and rivals:
        optima, proved = _optima(loss, ilp, P[:1])
        example = _cheaper_of_the_mass(loss, P[0], optima[0], prefixes[0]) if proved[0] else None
        yield "ilp", _UNBEATEN["ilp"], 1, example


def _prefixes(rivals: Sequence[Chosen], p: Floats) -> list[tuple[str, Bools]]:
    """For each oracle, the prefixes of its order as sets (m, K), at most `_MAX_CHECKED` of them."""
    found = []
    for item in rivals:
        place = item.oracle.scores(p)[0].argsort(kind="stable").argsort()
        lengths = np.unique(np.linspace(0, len(place), _MAX_CHECKED).astype(np.int64))
        masks = place < lengths[:, None]
        found.append((item.name, masks))
    return found


def _cheaper_at_a_price(
    loss: Loss, price: Chosen, p: Floats, prefixes: Sequence[tuple[str, Bools]]
) -> CounterExample | None:
    scores = price.oracle.scores(p[None])[0]
    prices = np.unique(scores[np.isfinite(scores)])
    prices = prices[:: -(-len(prices) // _MAX_CHECKED) or 1]
    sets = scores <= prices[:, None]
    values = loss.batch(sets) - prices * (sets @ p)
    for name, masks in prefixes:
        costs, mass = loss.batch(masks), masks @ p
        others = (costs - prices[:, None] * mass).min(axis=1, initial=np.inf)
        beaten = np.flatnonzero(others < values - _TOLERANCE * np.maximum(np.maximum(1.0, np.abs(values)), prices))
        if beaten.size:
            i = beaten[0]
            best = masks[(costs - prices[i] * mass).argmin()]
            text = (
                f"at price {float(prices[i])!r} its set {named(loss, sets[i])} has L - mu p = "
                f"{float(values[i])!r}, and {named(loss, best)} of {name} has {float(others[i])!r}"
            )
            return CounterExample(text, rows=(tuple(p.tolist()),))
    return None


def _cheaper_of_the_mass(
    loss: Loss, p: Floats, optimum: Bools, prefixes: Sequence[tuple[str, Bools]]
) -> CounterExample | None:
    cost = float(loss.batch(optimum[None])[0])
    for name, masks in prefixes:
        costs = np.where(masks @ p >= _LEVEL * p.sum() + 1e-12, loss.batch(masks), np.inf)
        if costs.min() < cost - _TOLERANCE * max(1.0, abs(cost)):
            mine, other = named(loss, optimum), named(loss, masks[costs.argmin()])
            text = f"of mass {_LEVEL} it gives {mine}, which costs {cost!r}; {other} of {name} {float(costs.min())!r}"
            return CounterExample(text, rows=(tuple(p.tolist()),))
    return None


def _no_time(loss: Loss, chosen: Sequence[Chosen], tried: Set[str]) -> Iterator[Verdict]:
    rivals = any(not item.slow and item.name != "price" for item in chosen)
    for item in chosen:
        if f"{item.name}: {_ACCEPTS_ALL_ROWS}" in tried:
            continue
        unbeaten = [_UNBEATEN[item.name]] if rivals and item.name in _UNBEATEN else []
        claims = [_FACES, *_definition_claims(loss, item), *unbeaten]
        for claim in (f"{item.name}: {claim}" for claim in claims):
            if claim not in tried:
                why = "it is slow, and there was no time" if item.slow else "there was no time"
                yield Verdict(claim, None, 0, f"{why}: give a larger budget")


def _not_tried(loss: Loss, chosen: Sequence[Chosen]) -> Iterator[Verdict]:
    for item in chosen:
        if item.name in _BRUTE and not _few_sets_suffice(loss):
            why = f"{loss.K} labels are too many for all sets, and it is not proved that fewer suffice (monotone)"
            yield Verdict(f"{item.name}: {_BRUTE[item.name][0]}", None, 0, why)
        if item.name == "price" and not (loss.facts.submodular or loss.facts.cardinality):
            why = "its sets are not proved to be nested, so other sets may be better"
            yield Verdict(f"price: {_UNBEATEN['price']}", None, 0, why, applies=False)


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
        raise AssertionError(f"oracle {oracle.name!r}: {fault.text}")


def first_fault(
    make: Make, P: Probabilities, seed: int, checks: Mapping[str, Check], *, anew: Make | None = None
) -> CounterExample | None:
    """The first check that fails on the rows, and the fewest of them on which it still does.

    `make` returns the oracle; `anew`, if given, makes an unused one for each try with fewer rows.
    """
    for name, check in checks.items():
        if _fault_text(check, make, P, seed) is not None:
            return _smallest(name, check, anew or make, P, seed)
    return None


def _smallest(name: str, check: Check, make: Make, P: Probabilities, seed: int) -> CounterExample:
    rows = fewest(range(len(P)), lambda some: bool(some) and _fault_text(check, make, P[some], seed) is not None)
    text = _fault_text(check, make, P[rows], seed) or "it fails now and then"
    shown = "; ".join(f"[{', '.join(f'{float(x):.17g}' for x in row)}]" for row in P[rows])
    return CounterExample(f"{name}: {text}, for {P.dtype} p = {shown}", rows=tuple(map(tuple, P[rows].tolist())))


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


def price_fault(
    scores: Sequence[float] | Floats, p: Floats, masks: Bools, costs: Floats, *, tolerance: float = 1e-9
) -> tuple[int, str] | None:
    """A label whose price is wrong, whichever minimisers the oracle takes, and why; None if all prices can be right.

    `masks` (m, K) are all the sets to choose from, `costs` their costs. A label's price is wrong if no minimiser at
    that price contains the label, or if every minimiser at a lower price does. Sets whose values differ by less than
    rounding are all minimisers, so ties and decimals raise no alarm.
    """
    mass = masks @ p
    prices = np.array([0.0, *_breakpoints(mass, costs)])
    between = np.append((prices[:-1] + prices[1:]) / 2, 2 * prices[-1] + 1)

    def least(at: float, sets: Bools) -> float:
        return float((costs[sets] - at * mass[sets]).min(initial=np.inf))

    def slack(at: float) -> float:
        return tolerance * max(1.0, float(np.abs(costs).max()), at)

    for y in np.flatnonzero(p > 0).tolist():
        inside, score = masks[:, y], float(scores[y])
        if np.isfinite(score) and least(score, inside) > least(score, ~inside) + slack(score):
            return y, f"is bought at {score!r}, where no set of least cost has it"
        lower = between[between < score * (1 - tolerance)]
        if np.isfinite(score):  # rounding may add a breakpoint far above all others, after a wide gap
            lower = np.append(lower, (prices[prices < score * (1 - tolerance)].max(initial=0.0) + score) / 2)
        for at in lower[lower < score * (1 - tolerance)]:
            if least(at, inside) < least(at, ~inside) - slack(at):
                return y, f"is bought at {score!r}, but every set of least cost has it at {float(at)!r} already"
    return None


def _breakpoints(mass: Floats, costs: Floats) -> list[float]:
    """The prices, in ascending order, at which the minimiser of cost - price * mass changes."""
    cheapest = np.flatnonzero(costs <= costs.min())
    at = cheapest[mass[cheapest].argmax()]
    found: list[float] = []
    while (heavier := np.flatnonzero(mass > mass[at])).size:
        slopes = (costs[heavier] - costs[at]) / (mass[heavier] - mass[at])
        steepest = heavier[slopes <= slopes.min()]
        at = steepest[mass[steepest].argmax()]
        found.append(max(float(slopes.min()), *found[-1:], 0.0))
    return found


def falling(p: Sequence[float]) -> list[int]:
    """The labels by decreasing p; ties in the order of labels."""
    return sorted(range(len(p)), key=lambda y: (-p[y], y))


def own_share(p: Sequence[float], options: Mapping[str, object]) -> float:
    """The share of a label's own mass that counts as remaining, by the option `mass`; 1 - U for the row's draw U."""
    mass = options.get("mass", "before")
    if mass == "random":
        (draw,) = row_draws(np.array([p], dtype=np.float64), (int(str(options["seed"])), 1))[:, 0]
        return float(1 - Fraction(int(draw), DRAWS))
    return {"before": 1.0, "through": 0.0}[str(mass)]


def block_scores(p: Sequence[float], blocks: Sequence[Sequence[int]], share: float) -> list[float]:
    """Minus the mass that remains, after each block and with a share of the block's own; scores strictly increase.

    If nothing remains, the score is the place in the order times 1e-300, less than any sum of masses. With share 1, the
    first block has the score -1, whatever the probabilities of the row sum to.
    """
    scores = [0.0] * len(p)
    last = -math.inf
    after = sum((Fraction(float(x)) for x in p), Fraction(0))
    for place, block in enumerate(blocks, 1):
        own = sum((Fraction(float(p[y])) for y in block), Fraction(0))
        after -= own
        rest = after + (own if share == 1 else Fraction(share * float(own)))  # all of a block's mass is not rounded
        value = -1.0 if place == 1 and share == 1 else -float(rest) if rest else place * 1e-300
        last = max(value, math.nextafter(last, math.inf))
        for y in block:
            scores[y] = last
    return scores


def order_scores(p: Sequence[float], order: Sequence[int], share: float) -> list[float]:
    """`block_scores` of labels one by one."""
    return block_scores(p, [[y] for y in order], share)


def _with_penalties(scores: Sequence[float], order: Sequence[int], penalties: Sequence[float]) -> list[float]:
    """The scores plus penalties, which are given along the order; scores strictly increase along it."""
    found, last = list(scores), -math.inf
    for y, penalty in zip(order, penalties, strict=True):
        last = found[y] = max(penalty + scores[y], math.nextafter(last, math.inf))
    return found


def base(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """Minus the mass that remains, in the order of decreasing p."""
    return order_scores(p, falling(p), own_share(p, options))


def lac(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """Minus p(y)."""
    return [0.0 - float(x) for x in p]


def raps(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """`base` plus lam for each place beyond the k-th."""
    lam, k = float(str(options["lam"])), int(str(options["k"]))
    penalties = [lam * max(place - k, 0) for place in range(1, len(p) + 1)]
    return _with_penalties(base(loss, p, options), falling(p), penalties)


def penalized(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """`base` plus lam times the cost of the labels up to y, less that of the empty set."""
    lam, order = float(str(options["lam"])), falling(p)
    nothing = loss.interpret_positions([])
    costs = [loss.interpret_positions(order[:k]) - nothing for k in range(1, len(p) + 1)]
    return _with_penalties(base(loss, p, options), order, [lam * cost for cost in costs])


def ratio(loss: Loss, p: Sequence[float], options: Mapping[str, object]) -> list[float]:
    """The cost of y alone, less that of the empty set, divided by p(y)."""
    nothing = loss.interpret_positions([])
    costs = [loss.interpret_positions([y]) - nothing for y in range(len(p))]
    return [cost / float(x) if x > 0 else math.inf for cost, x in zip(costs, p, strict=True)]


def greedy_fault(
    loss: Loss,
    p: Sequence[float],
    order: Sequence[int],
    M: float,
    eps: float,
    *,
    steps: int | None = None,
    rounding: float = 1e-14,
) -> str | None:
    """Where an order (or its first steps) breaks the greedy rule; None if it does not.

    Labels that differ only by rounding, relative to the largest cost, may come in any order.
    """
    lo, hi = loss.facts.interval
    rounding *= max(1.0, abs(lo), abs(hi), abs(M))
    for k, chosen in enumerate(order[:steps]):
        gains = {y: M - loss.interpret_positions([*order[:k], y]) for y in order[k:]}
        least = {y: max(gain - rounding, 0) / (max(1 - p[y], 0) + eps) for y, gain in gains.items()}
        better = max(least, key=lambda y: least[y])
        if max(gains[chosen] + rounding, 0) / (max(1 - p[chosen], 0) + eps) < least[better]:
            return f"{loss.labels[better]} is better than {loss.labels[chosen]} at place {k + 1}"
    return None


FORMULAS: Mapping[str, Formula] = {"base": base, "lac": lac, "penalized": penalized, "raps": raps, "ratio": ratio}
