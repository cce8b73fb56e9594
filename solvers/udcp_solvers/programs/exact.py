"""Exact answers from a solver of limited precision: the best set under a mass that is checked in exact arithmetic.

The mass constraint is scaled by 1e6 and relaxed by all that rounding may take, so that it never excludes a set that has
the mass. If a set is short in exact arithmetic, a cut excludes it and all others that are short for the same reason,
and the question is asked again. The cost is evaluated by the loss itself and compared with the solver's own value.

Some presolves cut off the optimum. So an answer is also compared with sets found without the solver (by the search, if
it supports the loss; else single labels and the likeliest ones), and if one of those is better, the solver is asked
again without its presolve. If no solver is named, the search itself is asked first, and the solver only for what it
does not finish.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.facts import TOLERANCE
from udcp_dsl.expression.linear import LinearModel
from udcp_solvers.numeric.arrays import Floats, Masks
from udcp_solvers.programs.mass import has_mass, mass_below
from udcp_solvers.programs.shortcuts import shortcut
from udcp_solvers.programs.solver import Answer, Question, Row, Solver, open_solver
from udcp_solvers.search.layout import FREE, IN
from udcp_solvers.search.prices import MASS_BUDGET, MassSearch

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_SCALE = 1e6
# In scaled units: solvers accept a constraint within 1e-6 at worst, read its numbers from files with 12 digits (another
# 1e-6), and drop coefficients below 1e-9.
_RELAXATION, _DROPPED = 4e-6, 1e-9
# By the scale of the costs: how far the solver's value may be from the loss for its proof to count, and how much better
# another set may be.
_VALUE_TOLERANCE, _BEATEN_TOLERANCE = 1e-6, 1e-8
# What rounding may add to equal costs, by their scale: solvers treat larger differences as equal, too.
_ROUNDING_TOLERANCE = 1e-13
_MAX_CUTS = 200
# One objective of powers of 2 orders this many labels by index.
_BLOCK = 20


@dataclass(frozen=True)
class Report:
    """The results for the instances of one call: `proved` of them have a proof of optimality for every set.

    `hit_limit` of them reached a limit of time or nodes, for `failed` the solver gave no answer twice in a row, for
    `doubtful` the loss contradicts the answer; their sets still have the mass, but may cost more than necessary.
    `retried` counts questions that were asked again, `cuts` sets that were short of mass in exact arithmetic.
    """

    instances: int = 0
    proved: int = 0
    hit_limit: int = 0
    failed: int = 0
    doubtful: int = 0
    retried: int = 0
    questions: int = 0
    cuts: int = 0

    def __add__(self, other: Report) -> Report:
        return Report(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Report)))


@dataclass(eq=False)
class Tally:
    """The progress of one instance: its deadline, the node limit per question, and what happened so far."""

    deadline: float = math.inf
    nodes: int | None = None
    happened: set[str] = field(default_factory=set)
    counts: Report = field(default_factory=lambda: Report(instances=1))

    @property
    def seconds(self) -> float | None:
        return None if self.deadline == math.inf else max(0.0, self.deadline - time.monotonic())

    def count(self, **more: int) -> None:
        self.counts += Report(**more)

    def report(self) -> Report:
        """The report on this instance, which is in the class of the worst that happened to it."""
        worst = next((kind for kind in ("failed", "doubtful", "hit_limit") if kind in self.happened), "proved")
        return replace(self.counts, **{worst: 1})


@dataclass(frozen=True, eq=False)
class Found:
    """A set, its cost, and whether it is proved that no other is better."""

    mask: Masks
    cost: float
    proved: bool


class Exact:
    """Answers questions about one loss, such as for the cheapest set that holds certain labels and has a certain
    mass."""

    def __init__(self, loss: Loss, model: LinearModel, solver: object, canonical: bool) -> None:
        self.loss = loss
        self.model = model
        self._solver_option = solver
        self._canonical = canonical
        self._solver: Solver | None = None  # opened by the first question
        self._unit = float(np.abs(model.objective).max(initial=0.0)) or 1.0
        free = solver == "auto" and not canonical
        self._shortcut = shortcut(loss) if free else None
        self._search = MassSearch.of(loss)
        self._search_first = free and self._search is not None

    def by_shortcut(self, p: Floats, t: float, inside: Masks) -> Masks | None:
        """What `cheapest` would find, without a solver; None if the loss has no shortcut."""
        return None if self._shortcut is None or t <= 0 else self._shortcut.cheapest(p, t, inside)

    def cheapest(self, tally: Tally, p: Floats, t: float, inside: Masks) -> Found:
        """The set of least cost among those that hold `inside` and have mass t."""
        known = self._best_known(p, t, inside)
        if known.proved:
            return known
        found = self._checked_against_known(
            tally,
            lambda presolve: self._solve_with_cuts(tally, Question(inside=inside, presolve=presolve), p, t),
            lambda one: (one.cost, self._unit),
            known,
        )
        if not found.proved or not self._canonical:
            return found
        return self.canonical(tally, p, t, inside, found, heaviest=True)

    def at_price(self, tally: Tally, p: Floats, price: float, inside: Masks) -> Found:
        """The set of least cost - price * mass among those that hold `inside`."""
        # A label whose mass is worth more than the loss can ever cost is in. Labels that are in anyway get no price:
        # beside it, the values of other labels would lose their digits.
        interval = self.loss.facts.interval
        inside = inside | (price * p > (1 + 1e-9) * (interval.hi - interval.lo))
        worth = np.where(inside, 0.0, price * p)
        added = _label_objective(self.model, -worth)
        costs = self.model.objective + added

        def value(one: Found) -> tuple[float, float]:
            gained = float(worth[one.mask].sum())
            return one.cost - gained, self._unit + gained

        known = self._with_cost(inside) if self._search is None else self._best_at_price(self._search, p, price, inside)
        if known.proved:
            return known
        return self._checked_against_known(
            tally,
            lambda presolve: self._solve_with_cuts(
                tally, Question(inside=inside, costs=costs, presolve=presolve), p, 0.0, added
            ),
            value,
            known,
        )

    def _best_known(self, p: Floats, t: float, inside: Masks) -> Found:
        """The cheapest set of mass t that is known without the solver."""
        if self._search is not None:
            mask, cost, gap = self._search.cheapest(p, t, inside, MASS_BUDGET if self._search_first else 0)
            if has_mass(p, mask, t):
                return Found(mask, cost, gap == 0.0 and self._search_first)
        masks = np.array([_likeliest(p, t, inside), *(inside | np.eye(len(p), dtype=bool))])
        costs = self.loss.batch(masks)
        i = min((i for i in range(len(masks)) if has_mass(p, masks[i], t)), key=lambda i: float(costs[i]))
        return Found(masks[i], float(costs[i]), False)

    def _best_at_price(self, search: MassSearch, p: Floats, price: float, inside: Masks) -> Found:
        """The best set at a price, found by the search."""
        gaps = np.zeros(1)
        fixed = np.where(inside, IN, FREE).astype(np.int8)
        found = self._with_cost(search.prices.best(p[None, :], np.array([price]), gaps, fixed[None, :])[0])
        return replace(found, proved=self._search_first and gaps[0] == 0.0)

    def _with_cost(self, mask: Masks) -> Found:
        return Found(mask, float(self.loss.batch(mask[None, :])[0]), False)

    def _checked_against_known(
        self,
        tally: Tally,
        ask: Callable[[bool], Found | None],
        value: Callable[[Found], tuple[float, float]],
        known: Found,
    ) -> Found:
        """The solver's answer, compared with a set that is known without it. `value` gives the value of a set and its
        scale.

        If the known set is better, the solver is asked again without presolve; if it is still better, it is the answer,
        not proved.
        """
        least, scale = value(known)
        for presolve in (True, False):
            if not presolve:
                tally.count(retried=1)
            found = ask(presolve)
            if found is None:
                return known
            behind = value(found)[0] - least
            if behind <= _BEATEN_TOLERANCE * scale:
                return found if behind <= 0 else replace(known, proved=found.proved)
            if not found.proved:
                return known
        tally.happened.add("doubtful")
        return known

    def heaviest(self, tally: Tally, p: Floats, inside: Masks, like: Found) -> Found:
        """The heaviest of the sets that cost no more than `like`."""
        if self._search is not None and self._search_first:  # the best at the lowest price
            known = self._best_at_price(self._search, p, 1e-9 * self._search.prices.span, inside)
            if known.proved:
                return known
        costs = _label_objective(self.model, -_SCALE * p)
        return self._break_tie(tally, [self._cost_cap(like)], costs, p, 0.0, inside, like)

    def canonical(
        self, tally: Tally, p: Floats, t: float, inside: Masks, like: Found, *, heaviest: bool = False
    ) -> Found:
        """Of the sets of mass t that cost no more than `like`, the smallest; then the heaviest, if asked for; then the
        first by indices."""
        rows = [self._cost_cap(like)]
        like = self._break_tie(tally, rows, _label_objective(self.model, np.ones(self.model.K)), p, t, inside, like)
        everything = np.arange(self.model.K)
        rows.append(Row(everything, np.ones(self.model.K), -np.inf, float(like.mask.sum())))
        if heaviest:
            like = self._break_tie(tally, rows, _label_objective(self.model, -_SCALE * p), p, t, inside, like)
            t = mass_below(p, like.mask)
        held = inside
        for start in range(0, self.model.K, _BLOCK):
            block = slice(start, min(start + _BLOCK, self.model.K))
            early = np.zeros(self.model.K)
            early[block] = -(2.0 ** np.arange(block.stop - start)[::-1])
            like = self._break_tie(tally, rows, _label_objective(self.model, early), p, t, held, like)
            held = held | (like.mask & (np.arange(self.model.K) < block.stop))
            out = np.flatnonzero(~like.mask[block]) + start
            rows.append(Row(out, np.ones(len(out)), -np.inf, 0.0))
        return like

    def _cost_cap(self, like: Found) -> Row:
        used = np.flatnonzero(self.model.objective)
        most = like.cost + TOLERANCE * max(self._unit, abs(like.cost)) - self.model.constant
        # In units of the largest cost, so that the solver's tolerance is comparatively small.
        return Row(used, self.model.objective[used] / self._unit, -np.inf, most / self._unit)

    def _break_tie(
        self, tally: Tally, rows: list[Row], costs: Floats, p: Floats, t: float, inside: Masks, like: Found
    ) -> Found:
        """The best set by other costs; `like` itself, not proved, if the solver returns none that is as cheap."""
        found = self._solve_with_cuts(tally, Question(rows=rows, inside=inside, costs=costs), p, t)
        if found is not None and found.cost <= like.cost + _ROUNDING_TOLERANCE * max(self._unit, abs(like.cost)):
            return replace(found, proved=found.proved and like.proved)
        if found is not None:
            tally.happened.add("doubtful")
        return replace(like, proved=False)

    def _solve_with_cuts(
        self, tally: Tally, question: Question, p: Floats, t: float, added: Floats | None = None
    ) -> Found | None:
        """Ask the solver, add a cut if its set is short, and ask again. `added`: what the costs of the question add
        to those of the loss."""
        rows = list(question.rows)
        if t > 0:
            rows.insert(0, _mass_row(p, t))
        inside = np.zeros(self.model.K, dtype=bool) if question.inside is None else question.inside
        for _ in range(_MAX_CUTS):
            answer = self._ask(tally, replace(question, rows=rows, seconds=tally.seconds, nodes=tally.nodes))
            if answer.found is None:
                return None
            if has_mass(p, answer.found, t):
                return self._checked(tally, question, answer, added)
            tally.count(cuts=1)
            if answer.status != "optimal":
                return None
            rows.append(mass_cut(p, answer.found, t, inside))
        tally.happened.add("doubtful")
        return None

    def _ask(self, tally: Tally, question: Question) -> Answer:
        tally.count(questions=1)
        if self._solver is None:
            self._solver = open_solver(self.model, self._solver_option)
        answer = self._solver.ask(question)
        # Every question has a solution, so an answer without one is an error of the solver.
        if answer.status in ("failed", "infeasible"):
            tally.count(retried=1)
            self._solver = open_solver(self.model, self._solver_option)
            answer = self._solver.ask(question)
            if answer.status in ("failed", "infeasible"):
                tally.happened.add("failed")
        if answer.status == "limit":
            tally.happened.add("hit_limit")
        return answer

    def _checked(self, tally: Tally, question: Question, answer: Answer, added: Floats | None) -> Found:
        assert answer.found is not None
        cost = float(self.loss.batch(answer.found[None, :])[0])
        agrees = True
        if question.costs is None or added is not None:
            more = 0.0 if added is None else float(added[: self.model.K][answer.found].sum())
            off = answer.value + self.model.constant - more - cost
            agrees = abs(off) <= _VALUE_TOLERANCE * max(self._unit, abs(cost), abs(more))
        if not agrees:
            tally.happened.add("doubtful")
        return Found(answer.found, cost, answer.status == "optimal" and agrees)


def _label_objective(model: LinearModel, costs: Floats) -> Floats:
    """An objective with these costs of labels, and 0 for all other variables."""
    whole = np.zeros(model.variables)
    whole[: model.K] = costs
    return whole


def _likeliest(p: Floats, t: float, inside: Masks) -> Masks:
    mask = inside.copy()
    for y in np.argsort(-p, kind="stable"):
        if has_mass(p, mask, t):
            break
        mask[y] = True
    return mask


def _mass_row(p: Floats, t: float) -> Row:
    scaled = _SCALE * p
    kept = np.flatnonzero(scaled >= _DROPPED)
    dropped = math.fsum(scaled[scaled < _DROPPED].tolist())
    return Row(kept, scaled[kept], _SCALE * t - _RELAXATION - dropped, np.inf)


def mass_cut(p: Floats, short: Masks, t: float, inside: Masks) -> Row:
    """A constraint that excludes a set without mass t, and no set that has it.

    If H is short even with the r heaviest labels outside it, at least r + 1 labels outside H are needed. H starts as
    the set, with r = 0, and gives up its lightest labels as long as this holds: so among many labels of equal p, one
    constraint excludes every choice.
    """
    movable = np.flatnonzero(short & ~inside)
    movable = movable[np.argsort(p[movable], kind="stable")]
    held = short.copy()
    best = held.copy(), 0
    for r, y in enumerate(movable, start=1):
        held[y] = False
        heaviest = np.sort(p[~held])[::-1][:r]
        if math.fsum([*p[held].tolist(), *heaviest.tolist(), -t]) >= 0:
            break
        best = held.copy(), r
    outside = np.flatnonzero(~best[0])
    return Row(outside, np.ones(len(outside)), best[1] + 1.0, np.inf)
