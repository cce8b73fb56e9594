"""Asks a solver about a linear model: the one module that uses PuLP.

For HiGHS, the solver object that PuLP builds is kept, and only what differs between questions is changed: costs, bounds
of labels, additional constraints. For any other solver of PuLP, the problem is built again. Every question restarts the
solver, so an answer never depends on earlier questions.

PuLP is imported on first use: the import takes longer than all else that `udcp check` asks of an oracle.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.linear import LinearModel
from udcp_dsl.files import atomic_write
from udcp_solvers.numeric.arrays import Floats, Indices, Masks

# Zero gap, one thread, tolerances as tight as solvers allow: what `exact` means.
_TOLERANCE = 1e-9
_CBC_OPTIONS = [f"primalTolerance {_TOLERANCE}", f"integerTolerance {_TOLERANCE}"]

_NO_LIMIT = 2**31 - 1

Status = Literal["optimal", "limit", "infeasible", "failed"]


class Row(NamedTuple):
    """An additional constraint: low <= coefficients @ v[columns] <= high."""

    columns: Indices
    coefficients: Floats
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Question:
    """Minimise `costs` (None: the model's own objective) over sets that hold `inside`, under additional constraints
    `rows`.

    `seconds` and `nodes` of the solver's tree are limits; `presolve`: the solver's own choice, or off.
    """

    rows: Sequence[Row] = ()
    inside: Masks | None = None
    costs: Floats | None = None
    seconds: float | None = None
    nodes: int | None = None
    presolve: bool = True


@dataclass(frozen=True, eq=False)
class Answer:
    """`found` (K,) is the best set known, or None; `value` is its value in the solver's own arithmetic."""

    status: Status
    found: Masks | None = None
    value: float = np.inf


class Solver(Protocol):
    """One linear model, ready for questions."""

    name: str

    def ask(self, question: Question) -> Answer: ...


def solver_name(wanted: object) -> str:
    """PuLP's name of a solver that is given by name (`HiGHS`, `CBC`, `GUROBI`) or as an object of PuLP.

    Raises OracleError if there is no such solver or it is not installed.
    """
    import pulp

    if isinstance(wanted, pulp.LpSolver):
        wanted = wanted.name
    if not isinstance(wanted, str):
        raise OracleError(f"oracle 'ilp': solver is a name or a PuLP solver, not {wanted!r}")
    known = pulp.listSolvers()
    here = _quietly(pulp.listSolvers, onlyAvailable=True)
    if wanted == "auto":
        if here:
            return "HiGHS" if "HiGHS" in here else str(here[0])
        raise OracleError("oracle 'ilp': no solver is installed; pip install highspy")
    # PuLP 3 includes CBC as PULP_CBC_CMD, PuLP 4 calls it COIN_CMD.
    spellings = [wanted, f"{wanted}_CMD", f"PULP_{wanted}_CMD", *(["COIN_CMD"] if wanted.upper() == "CBC" else [])]
    fitting = [name for spelt in spellings for name in known if name.upper() == spelt.upper()]
    for name in fitting:
        if name in here:
            return str(name)
    if fitting:
        package = "highspy" if "HIGHS" in fitting[0].upper() else f"'pulp[{wanted.lower()}]'"
        raise OracleError(
            f"oracle 'ilp': solver {wanted!r} is not installed: pip install {package}, or choose one of "
            f"{', '.join(here) or 'none'}"
        )
    raise OracleError(f"oracle 'ilp': PuLP has no solver {wanted!r}; it knows {', '.join(known)}")


def _quietly(make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    # PuLP 3.3 warns about its own CBC whenever it creates one.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*arguments, **options)


def open_solver(model: LinearModel, wanted: object) -> Solver:
    """A new solver for a model, chosen as in `solver_name`; a solver object of PuLP keeps its options."""
    import pulp

    name = solver_name(wanted)
    given = wanted if isinstance(wanted, pulp.LpSolver) else None
    return _Highs(model) if name == "HiGHS" and given is None else _Rebuilt(model, name, given)


def export(model: LinearModel, path: str) -> None:
    """Write the model as an .lp or .mps file, completely or not at all."""
    if not path.lower().endswith((".lp", ".mps")):
        raise OracleError(f"a model is written as .lp or .mps, not {path!r}")
    problem, _ = _problem(model, Question())
    with atomic_write(path) as temporary:
        (problem.writeLP if path.lower().endswith(".lp") else problem.writeMPS)(str(temporary))


def _problem(model: LinearModel, question: Question) -> tuple[Any, list[Any]]:
    """The PuLP problem of a question, and its variables in the model's order."""
    import pulp

    problem = pulp.LpProblem("loss", pulp.LpMinimize)
    lower = model.lower.copy()
    if question.inside is not None:
        lower[: model.K] = question.inside
    v = [
        problem.add_variable(name, low, high, cat="Integer" if whole else "Continuous")
        for name, low, high, whole in zip(
            model.names, lower.tolist(), model.upper.tolist(), model.integer.tolist(), strict=True
        )
    ]
    costs = model.objective if question.costs is None else question.costs
    problem += pulp.lpSum(float(c) * x for c, x in zip(costs, v, strict=True))
    own = (Row(*model.row(i), model.row_lower[i], model.row_upper[i]) for i in range(model.rows))
    for row in (*own, *question.rows):
        form = pulp.lpSum(float(a) * v[j] for j, a in zip(row.columns, row.coefficients, strict=True))
        if row.low == row.high:
            problem += form == float(row.low)
            continue
        if row.low > -np.inf:
            problem += form >= float(row.low)
        if row.high < np.inf:
            problem += form <= float(row.high)
    return problem, v


def _scaled(costs: Floats) -> tuple[Floats, float]:
    """The costs divided by a power of two, so that the largest is near 1; and this power.

    A solver's tolerances are absolute: next to costs of 1e9 they are negligible, and all costs near 1e-8 are equal
    within them.
    """
    largest = float(np.abs(costs).max(initial=0.0))
    if largest == 0.0:
        return costs, 1.0
    scale = 2.0 ** math.floor(math.log2(largest))
    return costs / scale, scale


def counts_nodes(name: str) -> bool:
    """Whether a solver supports a limit of nodes."""
    return name == "HiGHS" or _is_cbc(name)


def _is_cbc(name: str) -> bool:
    return "CBC" in name.upper() or "COIN" in name.upper()


def _options(kind: type, question: Question) -> dict[str, Any]:
    """The options of an exact, quiet, single-threaded solve, as far as this solver supports them."""
    wanted: dict[str, Any] = {"msg": False, "gapRel": 0.0, "gapAbs": 0.0, "threads": 1, "timeLimit": question.seconds}
    if _is_cbc(kind.__name__):
        wanted["options"] = _CBC_OPTIONS if question.presolve else [*_CBC_OPTIONS, "preprocess off", "presolve off"]
        wanted["maxNodes"] = question.nodes
    taken = inspect.signature(kind).parameters
    return {name: value for name, value in wanted.items() if name in taken and value is not None}


class _Rebuilt:
    """Any solver of PuLP; the problem is built again for each question."""

    def __init__(self, model: LinearModel, name: str, given: Any) -> None:
        import pulp

        self.name = name
        self._model = model
        self._given = given
        self._kind = type(_quietly(pulp.getSolver, name))

    def ask(self, question: Question) -> Answer:
        import pulp

        costs = self._model.objective if question.costs is None else question.costs
        problem, v = _problem(self._model, replace(question, costs=_scaled(costs)[0]))
        solver = self._given or _quietly(self._kind, **_options(self._kind, question))
        if question.seconds is not None:
            solver.timeLimit = question.seconds
        try:
            status, found = _outcome(problem, problem.solve(solver))
        except (pulp.PulpError, OSError):  # the solver's program crashed or left no answer
            return Answer("failed")
        if not found:
            return Answer(status)
        # A variable without cost and constraint gets no value: its lower bound will do.
        values = np.array([x.lowBound if x.varValue is None else x.varValue for x in v])
        return Answer(status, values[: self._model.K] > 0.5, float(costs @ values))


def _outcome(problem: Any, answer: Any) -> tuple[Status, bool]:
    """The status, and whether a set was found. PuLP 4 says in its answer why a solver stopped; PuLP 3 says it in
    `sol_status`, while its `status` calls a limit optimal."""
    if hasattr(answer, "has_solution"):
        code, proved, found = int(answer.status), answer.status == 1, bool(answer.has_solution)
    else:
        code, proved, found = int(problem.status), problem.sol_status == 1, problem.sol_status in (1, 2)
    if found:
        return ("optimal" if proved else "limit"), True
    return ("infeasible" if code == -1 else "limit" if code in (0, -4) else "failed"), False


class _Highs:
    """HiGHS in this process; PuLP builds its solver object once."""

    name = "HiGHS"

    def __init__(self, model: LinearModel) -> None:
        import pulp

        self._model = model
        # PuLP leaves out variables without cost and constraint; so here all have a cost, and `ask` sets the actual
        # ones.
        self._costs, self._scale = np.ones(model.variables), 1.0
        problem, _ = _problem(model, Question(costs=self._costs))
        tight = {f"{kind}_feasibility_tolerance": _TOLERANCE for kind in ("primal", "dual", "mip")}
        # With a time limit of 0, PuLP builds the object and solves nothing.
        problem.solve(pulp.HiGHS(msg=False, gapRel=0.0, gapAbs=0.0, threads=1, timeLimit=0.0, **tight))
        self._highs: Any = problem.solverModel
        if [x.name for x in problem.variables()] != model.names or self._highs.getNumCol() != model.variables:
            raise OracleError("oracle 'ilp': this version of PuLP orders variables in an unsupported way")
        self._rows = int(self._highs.getNumRow())
        self._columns = np.arange(model.variables, dtype=np.int32)
        self._inside = np.zeros(model.K, dtype=bool)

    def ask(self, question: Question) -> Answer:
        highs, K = self._highs, self._model.K
        highs.clearSolver()
        extra = int(highs.getNumRow()) - self._rows
        if extra:
            highs.deleteRows(extra, np.arange(self._rows, self._rows + extra, dtype=np.int32))
        for row in question.rows:
            highs.addRow(row.low, row.high, len(row.columns), row.columns.astype(np.int32), row.coefficients)
        inside = np.zeros(K, dtype=bool) if question.inside is None else question.inside
        if (inside != self._inside).any():
            highs.changeColsBounds(K, self._columns[:K], inside.astype(np.float64), np.ones(K))
            self._inside = inside.copy()
        costs = self._model.objective if question.costs is None else question.costs
        if costs is not self._costs:
            scaled, self._scale = _scaled(costs)
            highs.changeColsCost(len(costs), self._columns, scaled)
            self._costs = costs
        highs.setOptionValue("time_limit", np.inf if question.seconds is None else max(question.seconds, 1e-6))
        highs.setOptionValue("mip_max_nodes", _NO_LIMIT if question.nodes is None else question.nodes)
        highs.setOptionValue("presolve", "choose" if question.presolve else "off")
        highs.run()
        stopped = highs.getModelStatus().name
        if stopped == "kInfeasible":
            return Answer("infeasible")
        # Limits of time, solutions, iterations and the like; any other status is an error of the solver.
        status: Status = "optimal" if stopped == "kOptimal" else "limit" if stopped.endswith("Limit") else "failed"
        info = highs.getInfo()
        if status == "failed" or info.primal_solution_status != 2:
            return Answer("failed" if status == "optimal" else status)
        found = np.array(highs.getSolution().col_value[:K]) > 0.5
        return Answer(status, found, self._scale * float(info.objective_function_value))
