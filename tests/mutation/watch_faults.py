"""Faults of what is said once there are sets: actions, handing over, and whether the promise still holds."""

from __future__ import annotations

from fault import Fault

RANKS = "tests/udcp_dsl/measure/monitor/test_ranks.py"
BETTING = "tests/udcp_dsl/measure/monitor/test_betting.py"
WATCHING = "tests/udcp_dsl/measure/monitor/test_watching.py"
KEPT = "tests/udcp_dsl/predict/calibrate/test_calibration_scores.py"
P_VALUES = "tests/udcp_dsl/predict/calibrate/test_p_values.py"
CROSS = "tests/udcp_dsl/predict/calibrate/test_cross.py"
DECISIONS = "tests/udcp_dsl/expression/test_decisions.py"
DECIDED = "tests/udcp_dsl/predict/test_decisions.py"
VALIDATED = ("validate", "specs/grades/grades.loss", "--cases", "1", "--seed", "0", "--oracle", "lac")

WATCH_FAULTS = (
    Fault(
        "monitor: ranks among the fixed calibration rows",
        "udcp_dsl/measure/monitored.py",
        "counts += np.bincount(part, minlength=m)",
        "counts += 0 * np.bincount(part, minlength=m)",
        (RANKS,),
    ),
    Fault(
        "monitor: the probability of a miss ignores the new row",
        "udcp_dsl/measure/monitored.py",
        "missing_places = upto[-1] - upto[self.first_miss_gap] + np.cumsum(missed) - missed",
        "missing_places = upto[-1] - upto[self.first_miss_gap] - 1 + np.cumsum(missed) - missed",
        (RANKS,),
    ),
    Fault(
        "monitor: ties are not broken",
        "udcp_dsl/measure/monitored.py",
        "np.where(tied, draws, 0.0)",
        "np.where(tied, 0.0 * draws, 0.0)",
        (RANKS, "-k", "uniform"),
    ),
    Fault(
        "monitor: the bet is not fair",
        "udcp_dsl/measure/betting.py",
        "12 * (p - 0.5) ** 2 - 1",
        "12 * (p - 0.5) ** 2 - 0.9",
        (BETTING,),
    ),
    Fault(
        "monitor: bets that have not started are counted twice",
        "udcp_dsl/measure/betting.py",
        "np.logaddexp(mean, np.log(held[1:]))",
        "np.logaddexp(mean, np.log(held[:-1]))",
        (BETTING,),
    ),
    Fault(
        "monitor: every test gets the full level",
        "udcp_dsl/measure/monitor.py",
        "share = self.level / 2 if parts else self.level",
        "share = self.level",
        (WATCHING, "-k", "another_day"),
    ),
    Fault(
        "monitor: the same random numbers for every batch",
        "udcp_dsl/measure/monitor.py",
        "bits.advance(2 * self.rows)",
        "bits.advance(0 * self.rows)",
        (WATCHING, "-k", "another_day"),
    ),
    Fault(
        "calibration scores: equal scores do not count as at or above",
        "udcp_dsl/predict/calibrate/ranks.py",
        "np.where(equal, below[at], upto[at]), dtype=np.intp)",
        "np.where(equal, np.append(self.upto, self.n)[at], upto[at]), dtype=np.intp)",
        (KEPT,),
    ),
    Fault(
        "p-values: the new row is not counted",
        "udcp_dsl/predict/calibrate/ranks.py",
        "np.asarray((count + 1) / (n + 1), dtype=np.float64)",
        "np.asarray(count / n, dtype=np.float64)",
        (P_VALUES,),
    ),
    Fault(
        "p-values: from the scores of another bin",
        "udcp_dsl/predict/calibrate/ranks.py",
        "else [kept[code]]",
        "else [kept[code - 1]]",
        (P_VALUES, "-k", "difficulty"),
    ),
    Fault(
        "cross-conformal: + 1 in total instead of + 1 per fold",
        "udcp_dsl/predict/calibrate/cross.py",
        "(fold.at_least(own) + 1) * (unit // (fold.n + 1))",
        "(fold.at_least(own) + 1 / len(self.folds)).astype(np.intp) * (unit // (fold.n + 1))",
        (CROSS,),
    ),
    Fault(
        "cross-conformal: the estimator has seen the fold",
        "udcp_dsl/sklearn.py",
        "estimator, anchor = fitted(others), None",
        "estimator, anchor = fitted(np.arange(n)), None",
        ("tests/udcp_dsl/test_sklearn.py", "-k", "has_not_seen_it"),
    ),
    Fault(
        "actions: the best case is used instead of the worst case",
        "udcp_dsl/expression/decisions.py",
        "np.where(sets, losses, -np.inf).max(axis=1, initial=-np.inf)",
        "np.where(sets, losses, np.inf).min(axis=1, initial=np.inf)",
        (DECISIONS,),
    ),
    Fault(
        "handing over: only above the ceiling, not at it",
        "udcp_dsl/predict/sets.py",
        "self.costs >= self.loss.ceiling",
        "self.costs > self.loss.ceiling",
        (DECIDED, "-k", "ceiling"),
    ),
    Fault(
        "monitor: ranks among the fixed calibration rows, seen by `udcp validate`",
        "udcp_dsl/measure/monitored.py",
        "return replace(self, counts=counts), p, missed, chance",
        "return self, p, missed, chance",
        VALIDATED,
    ),
    Fault(
        "cross-conformal: nothing added for the new row, seen by `udcp validate`",
        "udcp_dsl/predict/calibrate/cross.py",
        "(fold.at_least(own) + 1) * (unit // (fold.n + 1))",
        "fold.at_least(own) * (unit // (fold.n + 1))",
        VALIDATED,
    ),
)
