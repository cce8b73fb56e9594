"""`udcp validate` of a loss with inputs: they are drawn within their ranges, or are those of the user's rows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import facts as fact_attacks
from udcp_dsl.check import meaning as meaning_checks
from udcp_dsl.check import oracles
from udcp_dsl.check import run as own_rows
from udcp_dsl.check.run import validate
from udcp_dsl.check.verdicts import Plan
from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.expression.inputs import RowLeaf
from udcp_dsl.predict.oracle_by_row import OracleByRow

TEXT = """labels { a, b, c }
input km in [0, 9]
costs fee per row in [1, 5]
loss l = sum(fee) + km * any({ a, b })
"""


def rows(n: int, seed: int = 0) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    y = np.array([rng.choice(3, p=p) for p in P])
    return P, y, {"km": rng.uniform(0, 9, n), "fee": rng.uniform(1, 5, (n, 3))}


@pytest.mark.slow
def test_all_stages_try_it() -> None:
    P, y, inputs = rows(160)
    found = validate(udcp.loads(TEXT), oracles=["price"], alphas=0.3, cases=1, probs=P, y=y, inputs=inputs)
    assert found.ok, found
    claims = {verdict.claim for stage in found.stages for verdict in stage.verdicts if verdict.holds}
    assert "price: rows are scored by their own loss" in claims
    assert "price on your rows: coverage is what theory predicts" in claims
    assert "all ways to compute the loss agree" in claims
    with pytest.raises(InputError, match="give inputs="):
        validate(udcp.loads(TEXT), cases=1, probs=P, y=y)


def test_a_loss_that_reads_inputs_wrongly_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowLeaf, "read", lambda self, sets, inputs: sets.mask.sum(axis=1).astype(float))
    assert not meaning_checks.meaning(udcp.loads(TEXT), Plan(0, 1, None))[0].holds


def test_rows_that_mix_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault as a cache could have it: every row is scored by the loss of the first one."""

    whole = OracleByRow._own_inputs

    def first(self: OracleByRow, inputs: RowInputs | None, n: int) -> RowInputs:
        return whole(self, inputs, n)[np.zeros(n, dtype=np.int64)]

    monkeypatch.setattr(OracleByRow, "_own_inputs", first)
    assert _wrong(udcp.loads(TEXT)) == ["price: rows are scored by their own loss"]


def _wrong(loss: udcp.Loss) -> list[str]:
    chosen, _ = oracles.chosen_oracles(loss, ["price", "lac"])
    return [x.claim for x in oracles.oracles(loss, chosen, Plan(0, 1, None)) if x.holds is False]


def test_what_is_right_passes_stage_by_stage() -> None:
    loss, plan, own = udcp.loads(TEXT), Plan(0, 1, None), rows(160)
    assert all(verdict.holds for verdict in meaning_checks.meaning(loss, plan))
    assert all(verdict.holds for verdict in fact_attacks.facts(loss, plan))
    assert _wrong(loss) == []
    chosen, _ = oracles.chosen_oracles(loss, ["price"])
    given = own_rows.OwnRows.of(loss, own[0], own[1], [Fraction(3, 10)], own[2])
    assert all(verdict.holds for verdict in own_rows.splits(loss, chosen, [Fraction(3, 10)], given, plan, 1e-6))
    assert own_rows.drift(loss, chosen, given, 0).holds


@pytest.mark.slow
def test_the_command_takes_rows_with_their_inputs(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from udcp_dsl.cli import main

    P, y, inputs = rows(80)
    (tmp_path / "s.loss").write_text(TEXT, encoding="utf-8")
    np.save(tmp_path / "p.npy", P)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "in.npz", **inputs)
    files = ["--probs", str(tmp_path / "p.npy"), "--truth", str(tmp_path / "y.npy")]
    asked = ["validate", str(tmp_path / "s.loss"), "--cases", "1", "--oracle", "lac", "--alpha", "0.4", *files]
    done = CliRunner().invoke(main, [*asked, "--inputs", str(tmp_path / "in.npz")])
    assert done.exit_code == 0, done.output
    assert "as guaranteed for lac" in done.stdout
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 2
    assert "--inputs FILE" in done.stderr
