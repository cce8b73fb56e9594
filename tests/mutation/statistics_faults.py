"""Faults in estimates: weights of a shift, costs at equal coverage, folds, and numbers at infinite scores."""

from __future__ import annotations

from fault import Fault

P_VALUES = "tests/udcp_dsl/predict/calibrate/test_p_values.py"
MASSES = "tests/udcp_dsl/predict/calibrate/test_masses.py"
CROSS = "tests/udcp_dsl/predict/calibrate/test_cross.py"
ESTIMATED = "tests/udcp_dsl/predict/promises/test_shift.py"
CURVES = "tests/udcp_dsl/measure/test_curves.py"
ROUTED = "tests/udcp_dsl/inputs/test_sklearn.py"
PLAN = "tests/udcp_dsl/check/test_plan.py"
COMPARISON = "tests/udcp_dsl/test_comparison.py"

STATISTICS_FAULTS = (
    Fault(
        "worth of a miss: another oracle's in the data of a comparison",
        "udcp_dsl/measure/comparison.py",
        '{"loss": loss, "oracle": oracle, "alpha": point.alpha',
        '{"loss": loss, "oracle": "ratio", "alpha": point.alpha',
        (COMPARISON, "-k", "worth"),
    ),
    Fault(
        "validate: classifiers that the budget leaves untried are not named",
        "udcp_dsl/check/coverage.py",
        "                untried.get(key, {}).pop(kind, None)\n",
        "                untried.get(key, {}).clear()\n",
        (PLAN, "-k", "named"),
    ),
    Fault(
        "metadata routing: what the estimator requests is dropped",
        "udcp_dsl/sklearn.py",
        "_safe_indexing(y, rows), **params)",
        "_safe_indexing(y, rows))",
        (ROUTED, "-k", "requests"),
    ),
    Fault(
        "metadata routing: the first rows' values for the rows that train",
        "udcp_dsl/sklearn.py",
        "params=routed, indices=rows)",
        "params=routed, indices=np.arange(len(rows)))",
        (ROUTED, "-k", "requests"),
    ),
    Fault(
        "cost at equal coverage: the slope is treated as known",
        "udcp_dsl/measure/comparison.py",
        "stretch = away * min(",
        "stretch = 0.0 * min(",
        (CURVES, "-k", "by_hand"),
    ),
    Fault(
        "saving: the slopes of two oracles are treated as one",
        "udcp_dsl/measure/comparison.py",
        "overlap = 1 - math.sqrt(max(0.0, 1 - alike[0, 1] / spread) / 2) if spread > 0 else 0.0",
        "overlap = 1.0",
        (CURVES, "-k", "overlap"),
    ),
    Fault(
        "cost at equal coverage: the normal quantile, however few rows are missed",
        "udcp_dsl/measure/comparison.py",
        "stdtrit(max(1.0, missed - 1), _HIGH)",
        "stdtrit(1e6, _HIGH)",
        (CURVES, "-k", "by_hand"),
    ),
    Fault(
        "estimated weights: the odds of rows that the classifier was fitted on",
        "udcp_dsl/predict/shift_weights.py",
        "own, others = fold == j, fold != j",
        "own, others = fold == j, fold >= 0",
        (ESTIMATED, "-k", "not_seen"),
    ),
    Fault(
        "estimated weights: a classifier draws its own random state",
        "udcp_dsl/predict/shift_weights.py",
        '    if hasattr(classifier, "get_params"):',
        "    if False:",
        (ESTIMATED, "-k", "forest"),
    ),
    Fault(
        "cv: folds are counted as large enough by the usual formula",
        "udcp_dsl/predict/calibrate/cross.py",
        "    return (Fraction(k - larger, m + 1) + Fraction(larger, m + 2)) / k\n",
        "    return Fraction(1, n + 1)\n",
        (CROSS, "-k", "folds_that_do"),
    ),
    Fault(
        "p-values: infinite scores count as above an infinite score",
        "udcp_dsl/predict/calibrate/ranks.py",
        "    above[np.isposinf(scores)] = 0  # the float after infinity is infinity\n",
        "",
        (P_VALUES, "-k", "infinite"),
    ),
    Fault(
        "strata: the rows of repeated splits count as fresh ones",
        "udcp_dsl/measure/coverage.py",
        "    n = seen / np.array([len(own) for own in parts])\n",
        "    n = seen.copy()\n",
        ("tests/udcp_dsl/report/test_figures.py", "-k", "pooled_strata"),
    ),
)
