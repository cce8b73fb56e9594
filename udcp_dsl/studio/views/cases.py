"""The cases beside the spec, tried on the current loss: which hold, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from udcp_dsl.check.cases import check_case
from udcp_dsl.compile.passes import compile_spec
from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import InputError, Source, SpecError
from udcp_dsl.fit.cases import ENDING, Case, case_text, parse_cases
from udcp_dsl.loss import Loss
from udcp_dsl.studio.spec_folder import SpecFolder

_MOST = 200  # cases that are tried


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
