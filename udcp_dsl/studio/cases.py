"""The cases beside the spec, in NAME.cases: tried on the current loss, saved for the user, and what to ask next.

Validation runs them, too. A question is "which of these two sets costs more?"; an answer is saved as a case, and the
next question takes it into account.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.check.cases import check_case
from udcp_dsl.compile.passes import compile_spec
from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import InputError, Source, SpecError
from udcp_dsl.fit import fit_params
from udcp_dsl.fit.cases import ENDING, Case, CostCase, RowCase, at_values, case_text, cases_of, parse_cases
from udcp_dsl.loss import Loss
from udcp_dsl.studio.spec_folder import SpecFolder
from udcp_dsl.studio.state import finite_number

if TYPE_CHECKING:
    from udcp_dsl.studio.studio import Studio

_MOST = 200  # cases that are tried
_LEAST = 1e-12  # probabilities up to this are left out of a case


def cases_data(loss: Loss, place: SpecFolder) -> dict[str, Any]:
    """One entry per case of NAME.cases. A case about another loss of the spec is tried on that one."""
    name = place.stem + ENDING
    try:
        cases = parse_cases(Source(name, place.read_beside(ENDING) or ""))
    except (InputError, SpecError) as error:
        return {"file": name, "fault": str(error), "more": 0, "cases": []}
    found = list(_checked_cases(loss, cases[:_MOST]))
    return {"file": name, "fault": None, "more": len(cases) - len(found), "cases": found}


def _checked_cases(loss: Loss, cases: tuple[Case, ...]) -> Iterator[dict[str, Any]]:
    losses = {loss.name: loss}
    for case in cases:
        about = case.loss or loss.losses[-1]
        why = None
        try:
            if about not in losses:
                losses[about] = _other(loss, about)
            example = check_case(losses[about], case).counter_example
            why = None if example is None else example.text
        except (InputError, SpecError) as error:  # the loss it is about is gone
            why = str(error)
        yield {"name": case.name, "loss": about, "holds": why is None, "why": why, "text": case_text(case)}


def _other(loss: Loss, name: str) -> Loss:
    """Another loss of the same spec, with the same parameters."""
    if name not in loss.losses:
        raise InputError(f"the spec has no loss {name!r}")
    return Loss(compile_spec(loss.source, Files(None, contents=loss.files), loss.params, loss.labels, name))


def _compiled(studio: Studio) -> Loss:
    if studio.loss is None:
        raise InputError("the spec does not compile: fix it first")
    return studio.loss


def save_case(studio: Studio, body: Any) -> Any:
    """Add a case to those of the spec; answers whether it holds now, and how many cases there are.

    {name, cost: [set, sign, set or number]} or {name, row: {oracle, holds, members}}. The case fixes the parameters
    that sliders have moved; with `at`, {input: number}, it fixes no parameters and is about a row with these inputs.
    """
    if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"].strip():
        raise InputError("a case has a name, which says what is expected")
    loss, state = _compiled(studio), studio.state
    claim = _cost_claim(body["cost"]) if "cost" in body else _row_claim(studio, body.get("row"))
    given = _numbers(body["at"]) if "at" in body else {**_moved(studio), **_inputs(studio, loss, claim)}
    case = Case(body["name"].strip()[:200], claim, None if loss.name == loss.losses[-1] else loss.name, given)
    at_values(loss, given)  # raises an error for names that are neither parameters nor inputs
    verdict = check_case(loss, case)
    with studio.writing:  # nobody else adds one between reading and writing
        name, count = _add(state.place, case)
    studio.try_cases()
    example = verdict.counter_example
    return {
        "written": name,
        "cases": count,
        "holds": verdict.holds,
        "why": None if example is None else example.text,
        "text": case_text(case),
    }


def _add(place: SpecFolder, case: Case) -> tuple[str, int]:
    """Append a case to the file of cases; returns its name and the number of cases in it."""
    before = place.read_beside(ENDING)
    cases = parse_cases(Source(place.stem + ENDING, before or ""))
    lead = (
        before
        if before is not None
        else f"# What {place.name} should say; run by `udcp validate` and `pytest --udcp`.\n"
    )
    text = lead + ("" if lead.endswith("\n") else "\n") + case_text(case) + "\n"
    parse_cases(Source(place.stem + ENDING, text))
    return place.write_beside(ENDING, text.encode("utf-8")), len(cases) + 1


def _moved(studio: Studio) -> dict[str, float]:
    sliders = (studio.board.get("spec") or {}).get("params", [])
    return {slider["name"]: slider["value"] for slider in sliders if slider["value"] != slider["default"]}


def _inputs(studio: Studio, loss: Loss, claim: CostCase | RowCase) -> dict[str, float]:
    """The inputs of the shown row; for a set, those of its sliders. InputError if a case cannot give them."""
    if not loss.inputs:
        return {}
    lists = [name for name, x in loss.inputs.items() if x.width is not None]
    if lists:
        raise InputError(
            f"the loss reads costs per row ({', '.join(lists)}), and a case gives one number for all of them: "
            f"write it yourself, such as `with {lists[0]} = {loss.inputs[lists[0]].low:g}`"
        )
    if isinstance(claim, RowCase):
        shown = (studio.board.get("row") or {}).get("inputs") or {}
    else:
        shown = {x["name"]: x["value"] for x in (studio.board.get("set") or {}).get("inputs", [])}
    return {name: float(shown[name]) for name in loss.inputs if name in shown}


def _numbers(given: Any) -> dict[str, float]:
    if not isinstance(given, dict):
        raise InputError("at is an object of inputs and their numbers")
    return {str(name): finite_number(value, "at") for name, value in given.items()}


def _cost_claim(given: Any) -> CostCase:
    if not isinstance(given, list) or len(given) != 3 or given[1] not in (">", ">=", "<", "<=", "=="):
        raise InputError("cost is a list of a set, a comparison, and a set or a number")
    members, sign, other = given
    if isinstance(other, int | float) and not isinstance(other, bool):
        return CostCase(_labels(members), sign, finite_number(other, "cost"))
    return CostCase(_labels(members), sign, _labels(other))


def _row_claim(studio: Studio, given: Any) -> RowCase:
    """The shown row by the named oracle, at its threshold, with exact probabilities."""
    if not isinstance(given, dict):
        raise InputError("a case has cost or row")
    shown = studio.shown_row
    if shown is None:
        raise InputError("there is no row yet")
    fitted, p = shown
    oracle = given.get("oracle")
    if not isinstance(oracle, str) or oracle not in fitted:
        raise InputError(f"oracle {str(oracle)[:80]!r} has no set of this row")
    one = fitted[oracle]
    members = _labels(given.get("members"))
    options = {name: value for name, value in one.options.items() if value is not None}
    return RowCase(_written_row(one.loss, p), oracle, options, one.tau, members, given.get("holds", True) is not False)


def _written_row(loss: Loss, p: Any) -> dict[str, float]:
    return {loss.labels[y]: float(p[y]) for y in np.argsort(-p, kind="stable").tolist() if p[y] > _LEAST}


def _labels(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(label, str) for label in given):
        raise InputError("a set is a list of labels")
    return tuple(given)


def ask_pair(studio: Studio, body: Any) -> Any:
    """The most informative pair, the values that agree with the cases so far, and how far they are determined.

    {seed: a whole number} asks for another pair. `pair` is None if no pair of small sets is informative, and if
    `contradictions` has cases that no values satisfy together.
    """
    seed = body.get("seed", 0) if isinstance(body, dict) else None
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError("seed is a whole number, 0 or more")
    loss, state = _compiled(studio), studio.state
    text = state.place.read_beside(ENDING) or ""
    kept = [
        x for x in cases_of(loss, parse_cases(Source(state.place.stem + ENDING, text))) if isinstance(x.claim, CostCase)
    ]
    # Without a comparison all values agree: a case that always holds stands in for none.
    row = {name: x.low for name, x in loss.inputs.items()}
    fit = fit_params(loss, kept or [Case("none", CostCase((), ">=", ()), loss.name, row)], seed=seed)
    pair = fit.suggestion
    return {
        "cases": len(kept),
        "agrees": fit.ok,
        "exact": fit.exact,
        "margin": fit.margin,
        "params": [
            {
                "name": x.name,
                "now": x.before,
                "value": x.value,
                "range": list(x.range),
                "solutions": None if x.solutions is None else list(x.solutions),
                "determined": x.determined,
            }
            for x in fit.params
        ],
        "pair": None
        if pair is None
        else {
            "first": list(pair.first),
            "second": list(pair.second),
            "inputs": dict(pair.inputs),
            "text": pair.question,
        },
        "per_row": [name for name, x in loss.inputs.items() if x.width is not None],  # for these no pair is suggested
        "contradictions": [[f"{x.name}: {x.claim}" for x in group] for group in fit.contradictions],
    }
