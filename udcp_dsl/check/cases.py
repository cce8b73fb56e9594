"""Whether the cases of a spec hold, which its author wrote beside it (`udcp_dsl.fit.cases`)."""

from __future__ import annotations

import warnings
from collections.abc import Collection

import numpy as np

from udcp_dsl.check.verdicts import CounterExample, Verdict
from udcp_dsl.diagnostics import InputError, OracleError, SpecError
from udcp_dsl.expression.domain import Bools
from udcp_dsl.fit.cases import COMPARED, NEAR, Case, CostCase, RowCase, at_values, set_text
from udcp_dsl.loss import Loss

QUESTION = "Does it say what its author expects?"


def check_case(loss: Loss, case: Case) -> Verdict:
    """Whether a case holds. A case that cannot be tried (unknown label, oracle that does not apply) fails."""
    try:
        return _check_claim(at_values(loss, case.params), case)
    except (InputError, OracleError, SpecError) as error:
        return _verdict(case, str(error))


def _check_claim(loss: Loss, case: Case) -> Verdict:
    claim = case.claim
    if isinstance(claim, CostCase):
        cost = loss(claim.members)
        other = claim.other if isinstance(claim.other, float) else loss(claim.other)
        equal = abs(cost - other) <= NEAR * max(1.0, abs(other))
        holds = claim.sign in (">=", "<=", "==") if equal else COMPARED[claim.sign](cost, other)
        beside = "" if isinstance(claim.other, float) else f", and {set_text(claim.other)} costs {other:.10g}"
        against = (
            f"{set_text(claim.members)} costs {cost:.10g}{beside}: that is not {claim.sign}{_other_text(claim.other)}"
        )
        sets = (claim.members,) if isinstance(claim.other, float) else (claim.members, claim.other)
        return _verdict(case, None if holds else against, sets)
    mask = row_set(loss, claim)
    inside = {label for label, within in zip(loss.labels, mask, strict=True) if within}
    _ = loss.mask(claim.members)  # raises an error for an unknown label
    wrong = [label for label in claim.members if (label in inside) != claim.holds]
    found = set_text(label for label in loss.labels if label in inside)
    what = "lacks" if claim.holds else "holds"
    return _verdict(
        case, f"the set of the row is {found}: it {what} {set_text(wrong)}" if wrong else None, (tuple(inside),)
    )


def row_set(loss: Loss, claim: RowCase) -> Bools:
    """The set of the row of a case, as a mask."""
    from udcp_dsl.predict.oracle import make_oracle
    from udcp_dsl.rows.rows import rows_of

    p = np.zeros(loss.K)
    for label, value in claim.p.items():
        p[loss.mask([label])] = value
    rows = rows_of(np.repeat(p[None, :], 2, axis=0), loss.labels)  # for a single row, kernels would be compiled again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about options that were chosen elsewhere
        oracle = make_oracle(claim.oracle, loss, **claim.options)
        if oracle.untuned:
            raise OracleError(f"oracle {claim.oracle!r} has no lambda: write {claim.oracle} {{ lam: 0.1 }}")
        mask: Bools = oracle.sets(rows.P, claim.tau)[0]
    return mask


def _other_text(other: tuple[str, ...] | float) -> str:
    return f" {other:.10g}" if isinstance(other, float) else " that"


def _verdict(case: Case, against: str | None, sets: Collection[tuple[str, ...]] = ()) -> Verdict:
    example = None if against is None else CounterExample(against, tuple(sets))
    return Verdict(f"case {case.name}", against is None, 1, counter_example=example)
