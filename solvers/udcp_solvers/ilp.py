"""`ilp`: sets proved optimal by mixed-integer programming. For any loss that has an exact linear form.

`program="mass"`: the cheapest sets that reach given masses, each containing the one before. The labels that a set adds
are a block, and a label's score is minus the mass of its block and of all blocks after it, so prediction sets are whole
blocks. (With mass="through", as in the paper, the score is minus the mass after the label, within a block by falling
p.) `program="price"`: the score of y is the lowest price mu at which y is in the set that minimises L(S) - mu p(S). See
`programs`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl import __version__
from udcp_dsl.diagnostics import OracleError, warn
from udcp_dsl.expression.lower import LoweringError, check_linear
from udcp_dsl.predict.oracle import (
    Declaration,
    Floats,
    Given,
    Indices,
    Masks,
    Probabilities,
    Refusal,
    SolvingOracle,
    Way,
    is_number,
)
from udcp_dsl.rows.columns import to_array
from udcp_solvers.mass_rule import ByMass, checked_mass
from udcp_solvers.numeric.blocks import block_scores
from udcp_solvers.programs.exact import Exact, Report
from udcp_solvers.programs.instance import ChainGoal, Instances, Outcome, Recipe, Settings
from udcp_solvers.programs.shortcuts import shortcut
from udcp_solvers.programs.solver import counts_nodes, export, solver_name
from udcp_solvers.search.model import searchable

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_solvers.programs.checkpoint import Checkpoint
    from udcp_solvers.programs.workers import Workers

# Each level halves the mass left out, down to 1e-6. Whatever a classifier's probabilities are worth, the threshold that
# calibration finds lies between two levels, and the set on either side is optimal for a mass that differs by at most a
# factor of two in what it leaves out. Most sets reach several levels at once, so far fewer questions are asked.
LEVELS = tuple(1 - 0.5**j for j in range(1, 21))

# The most labels for which the size of the linear model is reported beforehand.
_MAX_SIZED_LABELS = 1000


@dataclass(frozen=True)
class _Run:
    """Where instances are solved and stored: workers or this process; a checkpoint or none."""

    workers: Workers | None = None
    checkpoint: Checkpoint | None = None
    advance: Callable[[], None] | None = None


def _way(loss: Loss) -> Way | Refusal:
    """The algorithm of program="mass"; how long integer programs take is not known in advance.

    With very many labels, the linear model, which takes seconds, is built only on request (`udcp check --ilp`).
    """
    try:
        check_linear(loss)
    except LoweringError as error:
        return Refusal(str(error), blame=error.span)
    found = shortcut(loss)
    if found is not None:
        return Way(f"{found.description}, without a solver", exact=True, seconds=max(1e-3, 2e-4 * loss.K))
    program = "integer programs"
    if loss.K <= _MAX_SIZED_LABELS:
        program += f" ({loss.linear_model.variables:,} variables, {loss.linear_model.rows:,} rows)"
    if searchable(loss):
        program = f"a search and, if it does not finish, {program}"
    return Way(f"{program}, at each of up to {len(LEVELS)} masses", exact=True, seconds=math.inf)


class Ilp(ByMass, SolvingOracle):
    """Sets proved optimal by mixed-integer programming.

    program: mass or price; mass, seed: as for `base`, only for program="mass"; solver: auto, a name that PuLP knows, or
    a solver object of PuLP; levels: the masses to reach, as rising fractions of the row's total; node_limit: the most
    nodes of a solver's tree per question; time_limit: seconds per instance, which makes answers depend on the machine,
    unless a checkpoint keeps them; canonical: among sets of equal cost the smallest, then the heaviest, then the first
    by indices, whatever the solver finds first. workers: the number of processes that solve instances at the same time;
    checkpoint: a file that keeps finished instances, from which a stopped run resumes. These two change no answer and
    are not saved with a predictor.

    With solver="auto", the search of `search` is asked first, and a solver only for what it does not finish.

    After each call `report` says how many instances were proved optimal, and how many were not.
    """

    name = "ilp"
    declaration = Declaration(
        does="the cheapest set at each mass, proved by a search or a solver",
        choose_for="small label sets, and to judge the others (`udcp gap`)",
        chooses=_way,
        solves=True,
    )

    def __init__(
        self,
        loss: Loss,
        *,
        program: str = "mass",
        mass: str = "before",
        seed: int | None = None,
        solver: object = "auto",
        levels: Sequence[float] = LEVELS,
        node_limit: int | None = None,
        time_limit: float | None = None,
        canonical: bool = False,
        workers: int = 1,
        checkpoint: str | Path | None = None,
    ) -> None:
        if program not in ("mass", "price"):
            raise OracleError(f"oracle 'ilp': program must be 'mass' or 'price', not {program!r}")
        self._mass_rule = checked_mass(self.name, mass, seed)
        if program == "price" and mass != "before":
            raise OracleError("oracle 'ilp': with program='price' labels are scored by prices: leave out mass")
        if not isinstance(canonical, bool):
            raise OracleError(f"oracle 'ilp': canonical must be True or False, not {canonical!r}")
        limit, nodes = _checked_limit(time_limit), _checked_nodes(node_limit)
        self._settings = Settings(
            program, _checked_levels(levels), math.inf if limit is None else limit, nodes, canonical
        )
        self._workers = _checked_workers(workers)
        self._checkpoint = checkpoint
        chosen = solver_name(solver)
        if nodes is not None and not counts_nodes(chosen):
            raise OracleError(
                f"oracle 'ilp': {chosen} does not support node_limit here: use HiGHS or CBC, or time_limit"
            )
        super().__init__(
            loss, program=program, solver=solver if isinstance(solver, str) else chosen,
            levels=[float(x) for x in levels], node_limit=nodes, time_limit=limit, canonical=canonical,
            **(self._mass_rule.options if program == "mass" else {}),
        )  # fmt: skip
        self.model = loss.linear_model
        self.report = Report()
        self._solver = solver
        self._exact = Exact(loss, self.model, solver, canonical)
        self._run: _Run | None = None

    @property
    def about(self) -> str:
        return super().about if self._settings.program == "mass" else "program price"

    @classmethod
    def of_format(cls, version: int, options: Mapping[str, object]) -> Mapping[str, object]:
        return options if options.get("program") == "price" else super().of_format(version, options)

    def export(self, path: str) -> None:
        """Write the model as an .lp or .mps file, without the mass constraint that each instance adds."""
        export(self.model, path)

    @contextmanager
    def running(
        self,
        *,
        workers: int | None = None,
        checkpoint: str | Path | None = None,
        advance: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        """A context in which worker processes solve instances and stay alive from call to call, and finished instances
        are kept in the file `checkpoint`; `advance` is called after each instance. Arguments not given are as in the
        options.

        Leaving the context, by Ctrl-C as well, ends the workers; what was finished stays in the file.
        """
        from udcp_solvers.programs.checkpoint import Checkpoint
        from udcp_solvers.programs.workers import Workers

        max_workers = self._workers if workers is None else _checked_workers(workers)
        file = self._checkpoint if checkpoint is None else checkpoint
        before = self._run
        with ExitStack() as stack:
            kept = Checkpoint(file, self._identity()) if file is not None else None
            if kept is not None:
                stack.callback(kept.close)
            processes = None
            if max_workers > 1:
                processes = Workers(Recipe.of(self.loss, self._solver, self._settings), max_workers)
                stack.callback(processes.close)
            self._run = _Run(processes, kept, advance)
            try:
                yield
            finally:
                self._run = before

    def optimal(self, P: Given) -> tuple[Masks, Masks]:
        """For each row, the cheapest set that has the mass of the first level; and whether it is proved to be that."""
        P = to_array(self._read(P, None)[0])
        if self._settings.program != "mass":
            raise OracleError("oracle 'ilp': under program='price' there are no levels: use program='mass'")
        masks = np.zeros(P.shape, dtype=bool)
        proved = np.zeros(len(P), dtype=bool)
        for i, outcome in self._outcomes(P, lambda i: ChainGoal("first")):
            assert outcome.order is not None
            masks[i, outcome.order[: outcome.count]] = True
            proved[i] = outcome.report.proved == 1
        return masks, proved

    def _scores(self, P: Probabilities) -> Floats:
        if self._settings.program == "price":
            out = np.empty(P.shape)
            for i, outcome in self._outcomes(P, lambda i: ChainGoal()):
                out[i] = outcome.scores
            return out
        return self._by_mass(P, lambda i: ChainGoal())[0]

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        if self._settings.program == "price":
            out = np.empty(len(P))
            for i, outcome in self._outcomes(P, lambda i: ChainGoal()):
                assert outcome.scores is not None
                out[i] = outcome.scores[y[i]]
            return out
        scores, _ = self._by_mass(P, lambda i: ChainGoal("label", float(y[i])))
        return np.take_along_axis(scores, y[:, None], axis=1)[:, 0]

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if self._settings.program == "price" or tau.shape[1] > 1:  # thresholds by class: sets are not prefixes
            masks: Masks = self._scores(P) <= tau
            return masks
        scores, final = self._by_mass(P, lambda i: ChainGoal("threshold", float(tau[i, 0])))
        return final & (scores <= tau)

    def _first(self, P: Probabilities) -> Indices:
        if self._settings.program == "price":
            return super()._first(P)
        first = np.empty(len(P), dtype=np.int64)
        for i, outcome in self._outcomes(P, lambda i: ChainGoal("first")):
            assert outcome.order is not None
            first[i] = outcome.order[0]
        return first

    def _by_mass(self, P: Probabilities, goal_of: Callable[[int], ChainGoal]) -> tuple[Floats, Masks]:
        """Scores, and which of them are final. A chain may stop early; all labels after its end are out, and not
        final."""
        orders = np.empty(P.shape, dtype=np.int64)
        blocks = np.empty(P.shape, dtype=np.int64)
        final = np.zeros(P.shape, dtype=np.bool_)
        for i, outcome in self._outcomes(P, goal_of):
            assert outcome.order is not None
            assert outcome.blocks is not None
            orders[i], blocks[i] = outcome.order, outcome.blocks
            final[i, outcome.order[: outcome.count]] = True
        if self._mass_rule.mass == "through":  # each label is a block of its own, by falling p
            blocks[:] = np.arange(P.shape[1])
        return block_scores(P, self._mass_rule.own_shares(P), orders, blocks), final

    @property
    def unproved(self) -> int | None:
        return self.report.instances - self.report.proved

    def _outcomes(self, P: Probabilities, goal_of: Callable[[int], ChainGoal]) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcome of each row as it is finished; at the end, set `report` and warn if rows are not proved."""
        if self._run is None:
            with self.running():
                yield from self._outcomes(P, goal_of)
            return
        run, total = self._run, Report()
        for i, outcome in _solve_rows(run, P, goal_of, Instances(self._exact, self._settings)):
            total += outcome.report
            if run.advance is not None:
                run.advance()
            yield i, outcome
        self.report = total
        if total.proved < total.instances:
            timed = total.hit_limit > 0 and self._settings.limit < math.inf
            what = (
                "and coverage is not guaranteed: the answer under a time limit depends on the machine, so scores "
                "differ from run to run; use node_limit, or keep the answers in a checkpoint"
                if timed and run.checkpoint is None
                else "coverage does not depend on it, but the cost may"
            )
            warn(
                f"oracle 'ilp': {total.instances - total.proved} of {total.instances} instances are not proved optimal "
                f"({total.hit_limit} hit their limit, {total.failed} failed, {total.doubtful} are doubtful); {what}"
            )

    def _identity(self) -> str:
        """A fingerprint of everything that an outcome depends on, which a checkpoint must match."""
        from udcp_solvers.programs.checkpoint import fingerprint

        loss = self.loss
        files = {name: hashlib.sha256(data).hexdigest() for name, data in loss.files.items()}
        spec = [loss.source.text, loss.name, loss.labels, dict(loss.params), files]
        return fingerprint([__version__, spec, self.options, solver_name(self._solver)])


def _solve_rows(
    run: _Run, P: Probabilities, goal_of: Callable[[int], ChainGoal], here: Instances
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcome of each row: those in the checkpoint first, the others as they are finished and stored."""
    from udcp_solvers.programs.workers import Task

    tasks = [Task(i, row.astype(np.float64), goal_of(i)) for i, row in enumerate(P)]
    waiting = tasks
    if run.checkpoint is not None:
        waiting = []
        for task in tasks:
            known = run.checkpoint.find(task.p, task.goal)
            if known is None:
                waiting.append(task)
            else:
                yield task.i, known
    solved_here = ((task, here.solve(task.p, task.goal)) for task in waiting)
    for task, outcome in solved_here if run.workers is None else run.workers.solve(waiting):
        if run.checkpoint is not None:
            run.checkpoint.add(task.p, task.goal, outcome)
        yield task.i, outcome


def _checked_workers(workers: object) -> int:
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise OracleError(f"oracle 'ilp': workers must be a whole number of at least 1, not {workers!r}")
    return workers


def _checked_levels(levels: object) -> list[Fraction]:
    """Levels as exact decimals: 0.9 means nine tenths."""
    if isinstance(levels, Sequence) and not isinstance(levels, str) and levels:
        numbers = [x for x in levels if isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= 1]
        if len(numbers) == len(levels) and all(a < b for a, b in pairwise(numbers)):
            return [Fraction(repr(float(x))) for x in numbers]
    raise OracleError(f"oracle 'ilp': levels must be increasing numbers above 0 and up to 1, not {levels!r}")


def _checked_nodes(nodes: object) -> int | None:
    if nodes is not None and (isinstance(nodes, bool) or not isinstance(nodes, int) or not 0 < nodes < 2**31):
        raise OracleError(f"oracle 'ilp': node_limit must be a whole number of at least 1, not {nodes!r}")
    return nodes


def _checked_limit(limit: object) -> float | None:
    if limit is None:
        return None
    if not is_number(limit) or limit <= 0:
        raise OracleError(f"oracle 'ilp': time_limit must be a number of seconds above 0, not {limit!r}")
    return float(limit)
