"""Expectations that the user saves, as cases in NAME.cases beside the spec, which validation runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.check.cases import check_case
from udcp_dsl.diagnostics import InputError, Source
from udcp_dsl.fit.cases import ENDING, Case, CostCase, RowCase, at_values, case_text, parse_cases
from udcp_dsl.studio.state import finite_number

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.studio.spec_folder import SpecFolder
    from udcp_dsl.studio.studio import Studio

_LEAST = 1e-12  # probabilities up to this are left out of a case


def save_case(studio: Studio, body: Any) -> Any:
    """Add a case to those of the spec; answers whether it holds now, and how many cases there are.

    {name, cost: [set, sign, set or number]} or {name, row: {oracle, holds, members}}. The case fixes the parameters
    that sliders have moved; with `at`, {input: number}, it fixes no parameters and is about a row with these inputs.
    """
    if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"].strip():
        raise InputError("a case has a name, which says what is expected")
    loss, state = studio.loss, studio.state
    if loss is None:
        raise InputError("the spec does not compile: fix it first")
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
    shown = studio.shown_row()
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
