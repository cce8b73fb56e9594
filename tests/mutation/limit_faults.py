"""Faults in limits: multipliers, the rows that they are found on, and bounds."""

from __future__ import annotations

from fault import Fault

DUAL = "tests/udcp_dsl/predict/limits/test_dual.py"
BOUNDS = "tests/udcp_dsl/predict/limits/test_bounds.py"
STAGE = "tests/udcp_dsl/predict/stages/test_multipliers.py"

_MULTIPLIERS = "udcp_dsl/predict/stages/limits.py"

LIMIT_FAULTS = (
    Fault(
        "limits: at a step, the side that exceeds the limit is chosen",
        "udcp_dsl/predict/stages/dual.py",
        "                low = middle\n        return high",
        "                low = middle\n        return low",
        (DUAL,),
    ),
    Fault(
        "limits: a limit that does not bind keeps its multiplier",
        "udcp_dsl/predict/stages/dual.py",
        "if not start and over(0.0) <= 0:\n            return 0.0",
        "if not start and over(0.0) <= 0:\n            return scale",
        (DUAL, STAGE, "-k", "multiplier_0 or holds"),
    ),
    Fault(
        "limits: several multipliers are found in a single round",
        "udcp_dsl/predict/stages/dual.py",
        "_MAX_ROUNDS = 25",
        "_MAX_ROUNDS = 1",
        (DUAL,),
    ),
    Fault(
        "limits: a predictor that enforces limits can be adapted",
        "udcp_dsl/predict/adapt.py",
        "    if predictor.multipliers is not None:\n",
        "    if False:\n",
        (STAGE, "-k", "not_adapted"),
    ),
    Fault(
        "limits: a limit that cannot be reached is accepted",
        _MULTIPLIERS,
        "        if found.unreachable:\n",
        "        if False:\n",
        (STAGE, "-k", "reached or exclude"),
    ),
    Fault(
        "limits: multipliers are not part of the scores",
        "udcp_dsl/predict/stages/limits.py",
        "        return replace(context, oracle=context.oracle.with_multipliers(self.effects.multipliers))",
        "        return context",
        ("tests/udcp_dsl/predict/stages/test_multipliers.py", "-k", "best_under or at_the_limit"),
    ),
    Fault(
        "limits: tuned at alpha / 2",
        "udcp_dsl/predict/stages/limits.py",
        "covered = self._context.rule.covered(left, self._alpha, mean)",
        "covered = self._context.rule.covered(left, self._alpha / 2, mean)",
        ("tests/udcp_dsl/predict/stages/test_multipliers.py", "-k", "at_the_limit"),
    ),
    Fault(
        "limits: the bound is computed on the tuning rows",
        "udcp_dsl/predict/stages/limits.py",
        "own = placed(context, fitted.stages, folds[1])",
        "own = placed(context, fitted.stages, folds[0].take(np.arange(len(folds[1]))))",
        ("tests/udcp_dsl/predict/stages/test_multipliers.py", "-k", "rows_of_its_own"),
    ),
    Fault(
        "limits: the error probability is not divided among limits",
        "udcp_dsl/predict/stages/limits.py",
        "error = float(1 - context.promise.confidence) / len(limits)",
        "error = float(1 - context.promise.confidence) * len(limits)",
        ("tests/udcp_dsl/predict/stages/test_multipliers.py", "-k", "share_the_error"),
    ),
    Fault(
        "limits: means ignore the weights of rows",
        _MULTIPLIERS,
        "np.average(values, axis=0, weights=self._weights)",
        "np.average(values, axis=0)",
        (STAGE, "-k", "weighted"),
    ),
    Fault(
        "limits: the exact bound is one row too low",
        "udcp_dsl/predict/stages/limits.py",
        "float(beta.isf(error, ones + 1, n - ones))",
        "float(beta.isf(error, max(ones, 1), n - ones + 1))",
        (BOUNDS,),
    ),
    Fault(
        "limits: a saved multiplier below 0 is accepted",
        "udcp_dsl/predict/stages/limits.py",
        "0 <= x.multiplier <= _largest(limit)",
        "x.multiplier <= _largest(limit)",
        (STAGE, "-k", "tampered"),
    ),
)
