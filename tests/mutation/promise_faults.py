"""Faults in what is promised: bins, confidence, harm, weights, temperature, and their folds."""

from __future__ import annotations

from fault import Fault

DIFFICULTY = "tests/udcp_dsl/prediction/calibrate/test_difficulty.py"
RULE = "tests/udcp_dsl/prediction/calibrate/test_rule.py"
MASSES = "tests/udcp_dsl/prediction/calibrate/test_masses.py"
TOGETHER = "tests/udcp_dsl/prediction/promises/test_together.py"
HARM = "tests/udcp_dsl/prediction/promises/test_harm.py"
TEMPERATURE = "tests/udcp_dsl/prediction/promises/test_temperature.py"
SHIFT = "tests/udcp_dsl/prediction/promises/test_shift.py"
OPTIONS = "tests/udcp_dsl/prediction/promises/test_options.py"
COMPARED = "tests/udcp_dsl/test_comparison_promises.py"

_CALIBRATE = "udcp_dsl/prediction/calibrate"
_PROMISES = "udcp_dsl/prediction/promises"

PROMISE_FAULTS = (
    Fault(
        "difficulty: bins by rank among n points, not n + 1",
        f"{_CALIBRATE}/difficulty.py",
        "ends = [b * (n + 1) // bins for b in range(bins + 1)]",
        "ends = [*(b * n // bins for b in range(bins)), n + 1]",
        (DIFFICULTY,),
    ),
    Fault(
        "difficulty: the point at the border stays in its bin",
        f"{_CALIBRATE}/difficulty.py",
        "(smallest(low), smallest(high - 1), smallest(high))",
        "(smallest(low), smallest(high), smallest(high))",
        (DIFFICULTY,),
    ),
    Fault(
        "difficulty: tied points are torn apart",
        f"{_CALIBRATE}/difficulty.py",
        "    bounds = _bounds(np.sort(difficulty), bins)\n",
        '    difficulty = np.argsort(np.argsort(difficulty, kind="stable")).astype(float)\n'
        "    bounds = _bounds(np.sort(difficulty), bins)\n",
        (DIFFICULTY,),
    ),
    Fault(
        "difficulty: a row on an edge is taken for one inside",
        f"{_CALIBRATE}/difficulty.py",
        "cells += above if edge == before else difficulty >= edge",
        "cells += above",
        (DIFFICULTY,),
    ),
    Fault(
        "difficulty: the highest w p instead of the highest p",
        "udcp_dsl/prediction/fitting.py",
        "rows.highest_probabilities if P is rows.P else highest(P)",
        "highest(P if harm is None else harm.bought(P, self.oracle))",
        (TOGETHER, "-k", "difficulty_is"),
    ),
    Fault(
        "confidence: one rank too low",
        f"{_CALIBRATE}/rule.py",
        "    return n - misses\n",
        "    return n - misses - 1\n",
        (RULE,),
    ),
    Fault(
        "confidence: equality decided in floats",
        f"{_CALIBRATE}/rule.py",
        "if abs(found - float(chance)) > _CLOSE * float(chance):",
        "if True:",
        (RULE,),
    ),
    Fault(
        "confidence: all at once is taken for each by itself",
        f"{_CALIBRATE}/calibration.py",
        'many if flag(simultaneous, "simultaneous") else 1',
        "1",
        (RULE,),
    ),
    Fault(
        "risk: the new point's harm is forgotten",
        f"{_CALIBRATE}/masses.py",
        "denominator = unit * (b * bound - a * harm_unit)",
        "denominator = unit * b * bound",
        (MASSES,),
    ),
    Fault(
        "risk: harms as binary fractions",
        f"{_CALIBRATE}/masses.py",
        "    return Fraction(repr(float(x)))",
        "    return Fraction(float(x))",
        (MASSES,),
    ),
    Fault(
        "risk: oracles buy probability",
        "udcp_dsl/prediction/fitting.py",
        "P if harm is None else changed(P, lambda block: harm.bought(block, self.oracle)),",
        "P,",
        (HARM,),
    ),
    Fault(
        "risk: prices are not comparable across rows",
        f"{_PROMISES}/harm.py",
        "if oracle.normalized:",
        "if True:",
        (HARM,),
    ),
    Fault(
        "weights: a limit is rounded up",
        f"{_CALIBRATE}/masses.py",
        "return math.nextafter(nearest, -math.inf) if p * denominator > numerator * q else nearest",
        "return math.nextafter(nearest, math.inf)",
        (MASSES,),
    ),
    Fault(
        "weights: the new row's own weight is left out",
        f"{_CALIBRATE}/calibration.py",
        "out[place] = cell.steps[at].tau(own[place[0]])",
        "out[place] = cell.steps[at].tau(0 * own[place[0]])",
        (MASSES,),
    ),
    Fault(
        "weights: full sets are not told of",
        "udcp_dsl/prediction/predictor.py",
        "            warn_of_full_sets(full, len(rows))\n",
        "            pass\n",
        (SHIFT,),
    ),
    Fault(
        "temperature: multiplied instead of divided",
        f"{_PROMISES}/temperature.py",
        "np.power(piece, 1 / temperature, out=piece)",
        "np.power(piece, temperature, out=piece)",
        (TEMPERATURE,),
    ),
    Fault(
        "temperature: its rows set the threshold too",
        "udcp_dsl/prediction/fitting.py",
        "return fit_temperature(to_array(fold.P), fold.truth), rows.take(left)",
        "return fit_temperature(to_array(fold.P), fold.truth), rows",
        (TEMPERATURE,),
    ),
    Fault(
        "anchor by difficulty: the bins of the thresholds enter the scores",
        "udcp_dsl/prediction/fitting.py",
        "edges = stretch_edges(tuning.difficulty, self.promises.bins)",
        "edges = rank_bin_sizes(seen.difficulty, self.promises.bins)[0] if seen.difficulty is not None else ()",
        (TOGETHER, "-k", "anchors_by_difficulty"),
    ),
    Fault(
        "saved: what is promised is not held against the thresholds",
        "udcp_dsl/prediction/saved.py",
        "if calibration.rule != asked.rule(cells) or",
        "if",
        (TOGETHER, "-k", "change_of_what"),
    ),
    Fault(
        "weights and confidence are taken together",
        f"{_PROMISES}/options.py",
        '    if promises.confidence is not None:\n        raise InputError(\n            "weights and confidence',
        '    if False:\n        raise InputError(\n            "weights and confidence',
        (OPTIONS,),
    ),
    Fault(
        "compare: beside, every row has the threshold of the hardest bin",
        "udcp_dsl/comparison/splits.py",
        "return calibration.tau(level, difficulty=self._tested, n=len(self.folds.test))",
        "return float(np.ravel(calibration.tau(level, difficulty=self._tested, n=len(self.folds.test)))[0])",
        (COMPARED, "-k", "predictors or covered_beside"),
    ),
    Fault(
        "compare: confidence is left out of the thresholds",
        "udcp_dsl/comparison/splits.py",
        "confidence=self.promises.confidence,",
        "confidence=None,",
        (COMPARED, "-k", "predictors"),
    ),
)
