"""What `udcp validate` tries of the monitor and of cross-conformal p-values: it holds, and it can fail."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import promises as stage
from udcp_dsl.check.oracles import chosen_oracles
from udcp_dsl.check.verdicts import Plan, Verdict
from udcp_dsl.measure import monitored as stream
from udcp_dsl.measure.betting import Bools, Floats, Ints, rank_bets
from udcp_dsl.measure.monitor import Monitor
from udcp_dsl.measure.monitored import Ranks
from udcp_dsl.predict.calibrate.checked import FloatArray, IntArray
from udcp_dsl.predict.calibrate.cross import CrossCalibration

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = udcp.loads("labels { a, b, c, d }  loss l = size + any({ a, b })")
CROSS = "cross-conformal: coverage is as guaranteed"
ALARMS = "monitor: no more false alarms than its level"
RANKS = "monitor: ranks among all rows so far are uniform"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Given promises that are not looked at: they are kept in every trial, which takes no time."""

    def leave_out(*names: str) -> None:
        for name in names:
            monkeypatch.setattr(stage._PromiseTrials, name, lambda self, rng: (1.0, 0.5))

    return leave_out


@pytest.fixture
def only_these(without: Callable[..., None]) -> None:
    """Of all promises the three that are looked at here."""
    without("difficulty", "confidence", "risk", "weights", "temperature", "miss", "decision")


def verdicts(alpha: Fraction = Fraction(1, 10), seed: int = 0) -> dict[str, Verdict]:
    chosen, _ = chosen_oracles(LOSS, ["lac"])
    found = stage.promises(LOSS, chosen, alpha, Plan(seed, 1, None), 1e-6)
    return {verdict.claim: verdict for verdict in found}


@pytest.mark.parametrize(
    "alpha",
    [Fraction(1, 10), *(pytest.param(x, marks=pytest.mark.slow) for x in (Fraction(1, 3), Fraction(1, 100)))],
    ids=str,
)
def test_correct_ones_hold(alpha: Fraction, without: Callable[..., None]) -> None:
    without("miss", "decision")
    found = verdicts(alpha)
    for claim in (CROSS, ALARMS, RANKS):
        assert found[claim].holds, found[claim]
        assert found[claim].cases >= 40
    assert all(verdict.holds is not False for verdict in found.values())
    assert "share without an alarm" in found[ALARMS].note


@pytest.mark.slow
def test_correct_ones_hold_for_every_seed(seed: int) -> None:
    assert all(verdict.holds is not False for verdict in verdicts(seed=seed).values())


def test_what_is_tried_has_the_law_that_it_is_held_to(sizes: Sizes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of trials whose chance is known the mean is within 4.5 standard errors of theirs."""
    monkeypatch.setattr(stage._PromiseTrials, "_cross_learnt", lambda self, rng, m: 1.0)  # of no known chance, and slow
    tried = stage._PromiseTrials(LOSS, udcp.make_oracle("lac", LOSS), Fraction(3, 10))
    rng = np.random.default_rng(1)
    bound = float(1 - 2 * Fraction(3, 10))
    known = np.array(
        [trial for trial in (tried.cross(rng) for _ in range(sizes.draws)) if abs(trial[1] - bound) > 1e-9]
    )
    error = np.sqrt((known[:, 1] * (1 - known[:, 1])).sum()) / len(known)
    assert len(known) > sizes.draws / 2
    assert abs(known[:, 0].mean() - known[:, 1].mean()) < 4.5 * error
    uniform = [tried.ranks(rng) for _ in range(sizes.draws)]
    assert stage._uniform_chance(uniform) > 1e-5


def without_the_new_row(self: CrossCalibration, scores: list[FloatArray]) -> tuple[IntArray, int]:
    """The usual (sum of counts + 1) / (n + 1), as a sum of so many parts."""
    counts = sum(fold.at_least(own) for fold, own in zip(self.folds, scores, strict=True))
    return np.asarray((counts + 1) * len(self.folds)), sum(fold.n for fold in self.folds) + 1


@pytest.mark.usefixtures("only_these")
def test_the_usual_plus_1_of_folds_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CrossCalibration, "_sums", without_the_new_row)
    found = verdicts()
    assert found[CROSS].holds is False
    example = found[CROSS].counter_example
    assert example is not None
    assert example.text.startswith(f"{CROSS}, at alpha 0.1: share covered")
    assert found[ALARMS].holds
    assert found[RANKS].holds


_AFTER = Ranks.after


def fixed(self: Ranks, gaps: Ints, draws: Floats) -> tuple[Ranks, Floats, Bools, Floats]:
    """Among the calibration rows alone, and those of the same batch."""
    return self, *_AFTER(self, gaps, draws)[1:]


def without_its_own_place(self: Ranks, gaps: Ints, draws: Floats) -> tuple[Ranks, Floats, Bools, Floats]:
    ranks, p, missed, chance = _AFTER(self, gaps, draws)
    return ranks, p, missed, chance / 2


@pytest.mark.parametrize("fault", [fixed, without_its_own_place])
@pytest.mark.usefixtures("only_these")
def test_ranks_that_are_not_uniform_are_caught(
    fault: Callable[..., object], without: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    without("cross", "monitor")
    monkeypatch.setattr(Ranks, "after", fault)
    assert verdicts()[RANKS].holds is False


@pytest.mark.usefixtures("only_these")
def test_bets_that_are_not_fair_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "rank_bets", lambda p: rank_bets(p) + 0.1)
    found = verdicts()
    assert found[ALARMS].holds is False
    assert found[RANKS].holds
    assert found[CROSS].holds


@pytest.mark.usefixtures("only_these")
def test_a_level_that_is_not_kept_is_caught(without: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    without("cross", "ranks")
    monkeypatch.setattr(stage, "_LEVEL", Fraction(1, 1000))  # promised, while the monitor raises alarms at 0.9
    monkeypatch.setattr(stage, "Monitor", lambda predictor, level, seed: Monitor(predictor, level="0.9", seed=seed))
    assert verdicts()[ALARMS].holds is False


def test_a_worth_of_a_miss_and_decisions_are_tried(without: Callable[..., None]) -> None:
    without("difficulty", "confidence", "risk", "weights", "temperature", "repair", "cross", "monitor", "ranks")
    miss, decision = "miss: coverage is that of the alpha it finds", "decision: each decision is covered"
    assert verdicts()[decision].applies is False  # the loss leads to none
    capped = udcp.loads("labels { a, b, c, d }  loss l = min(size + any({ a, b }), 3)")
    chosen, _ = chosen_oracles(capped, ["lac"])

    def tried() -> dict[str, Verdict]:
        return {x.claim: x for x in stage.promises(capped, chosen, Fraction(1, 5), Plan(0, 1, None), 1e-6)}

    found = tried()
    for claim in (miss, decision):
        assert found[claim].holds, found[claim]
