"""Faults in what is promised: bins, confidence, harm, weights, temperature, and their folds."""

from __future__ import annotations

from fault import Fault

CELLS = "tests/udcp_dsl/predict/calibrate/test_cells.py"
STRATA = "tests/udcp_dsl/predict/calibrate/test_strata.py"
RULE = "tests/udcp_dsl/predict/calibrate/test_rule.py"
MASSES = "tests/udcp_dsl/predict/calibrate/test_masses.py"
TOGETHER = "tests/udcp_dsl/predict/promises/test_together.py"
HARM = "tests/udcp_dsl/predict/promises/test_harm.py"
TEMPERATURE = "tests/udcp_dsl/predict/stages/test_temperature.py"
REPAIR = "tests/udcp_dsl/predict/stages/test_repair.py"
REPAIR_FIT = "tests/udcp_dsl/predict/test_probability_repair.py"
SHIFT = "tests/udcp_dsl/predict/promises/test_shift.py"
OPTIONS = "tests/udcp_dsl/predict/promises/test_promise.py"
MISS = "tests/udcp_dsl/predict/stages/test_worth_of_miss.py"
DECISION = "tests/udcp_dsl/predict/stages/test_decision.py"
COMPARED = "tests/udcp_dsl/test_comparison_promises.py"


PROMISE_FAULTS = (
    Fault(
        "difficulty: edges one row too high",
        "udcp_dsl/predict/calibrate/strata.py",
        "ordered[b * n // bins - 1]",
        "ordered[b * n // bins]",
        (STRATA,),
    ),
    Fault(
        "difficulty: a small bin joins the larger of its neighbours",
        "udcp_dsl/predict/calibrate/strata.py",
        "counts[small - 1] <= counts[small + 1])",
        "counts[small - 1] > counts[small + 1])",
        (STRATA,),
    ),
    Fault(
        "difficulty: a row on an edge is in the bin above it",
        "udcp_dsl/predict/calibrate/strata.py",
        'np.searchsorted(self.edges, top, side="left")',
        'np.searchsorted(self.edges, top, side="right")',
        (STRATA,),
    ),
    Fault(
        "difficulty: new rows have the threshold of the next bin",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "return self._deciding[codes].reshape(-1, 1)",
        "return self._deciding[(codes + 1) % len(self.cells)].reshape(-1, 1)",
        (STRATA,),
    ),
    Fault(
        "weights: a file with an infinite score is refused",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "((taus[1:] > taus[:-1]) | equal)",
        "(taus[1:] > taus[:-1])",
        (CELLS,),
    ),
    Fault(
        "weights: those of other rows than the strata are taken",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "np.size(weights) if codes is None else len(codes)",
        "np.size(weights)",
        ("tests/udcp_dsl/predict/calibrate/test_calibration.py",),
    ),
    Fault(
        "difficulty: measured by the highest w p instead of the highest p",
        "udcp_dsl/predict/chain.py",
        "top=given.highest_probabilities if rows.P is given.P else highest(rows.P)",
        "top=highest(rows.P if context.harm is None else context.harm.weigh_block(rows.P, context.oracle))",
        ("tests/udcp_dsl/predict/promises/test_together.py", "-k", "difficulty_is"),
    ),
    Fault(
        "confidence: one rank too low",
        "udcp_dsl/predict/calibrate/rule.py",
        "    return n - misses\n",
        "    return n - misses - 1\n",
        (RULE,),
    ),
    Fault(
        "confidence: equality is decided in floating point",
        "udcp_dsl/predict/calibrate/rule.py",
        "if abs(found - float(chance)) > _CLOSE * float(chance):",
        "if True:",
        (RULE,),
    ),
    Fault(
        "confidence: simultaneous is treated as each part by itself",
        "udcp_dsl/predict/promise.py",
        "confidence = 1 - (1 - confidence) / cells",
        "pass",
        (RULE,),
    ),
    Fault(
        "risk: the harm of the new row is left out",
        "udcp_dsl/predict/calibrate/weighted.py",
        "denominator = unit * (b * bound - a * harm_unit)",
        "denominator = unit * b * bound",
        (MASSES,),
    ),
    Fault(
        "risk: harms are read as binary fractions",
        "udcp_dsl/predict/calibrate/weighted.py",
        "    return Fraction(repr(float(x)))",
        "    return Fraction(float(x))",
        (MASSES,),
    ),
    Fault(
        "risk: oracles weigh probability instead of harm",
        "udcp_dsl/predict/chain.py",
        "rows = rows.with_columns(P=context.harm.weigh(rows.P, context.oracle, rows.inputs))",
        "rows = rows.with_columns(P=rows.P)",
        ("tests/udcp_dsl/predict/promises/test_harm.py",),
    ),
    Fault(
        "risk: prices are not comparable between rows",
        "udcp_dsl/predict/harm.py",
        "if oracle.normalized:",
        "if True:",
        (HARM,),
    ),
    Fault(
        "weights: a bound on weights is rounded up",
        "udcp_dsl/predict/calibrate/weighted.py",
        "return math.nextafter(nearest, -math.inf) if p * denominator > numerator * q else nearest",
        "return math.nextafter(nearest, math.inf)",
        (MASSES,),
    ),
    Fault(
        "weights: the new row's own weight is left out",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "out[place] = cell.steps.tau(own[place[0]])",
        "out[place] = cell.steps.tau(0 * own[place[0]])",
        (MASSES,),
    ),
    Fault(
        "weights: full sets are not reported",
        "udcp_dsl/predict/predictor.py",
        "            warn_of_full_sets(made.full, len(rows))\n",
        "            pass\n",
        (SHIFT,),
    ),
    Fault(
        "temperature: the exponent is T instead of 1 / T",
        "udcp_dsl/predict/stages/repair.py",
        "np.power(piece, 1 / temperature, out=piece)",
        "np.power(piece, temperature, out=piece)",
        (TEMPERATURE,),
    ),
    Fault(
        "repair: its rows are also used for the threshold",
        "udcp_dsl/predict/chain.py",
        "        left = np.delete(left, taken)\n",
        "        left = left if stage.repairs else np.delete(left, taken)\n",
        (REPAIR, "-k", "no_other_stage or a_fifth"),
    ),
    Fault(
        "repair: the exponent is not bounded",
        "udcp_dsl/predict/repair/log_loss.py",
        "MAX_EXPONENT = 20.0",
        "MAX_EXPONENT = 1e300",
        (REPAIR_FIT, "-k", "bounded"),
    ),
    Fault(
        "repair: no pseudo-counts",
        "udcp_dsl/predict/repair/log_loss.py",
        "prior, cross = self.c * np.exp(at.offsets), a * cross",
        "prior, cross = 0 * np.exp(at.offsets) + self.c, a * cross",
        (REPAIR_FIT,),
    ),
    Fault(
        "repair: adopted even if it does not help",
        "udcp_dsl/predict/repair/fit.py",
        "    if not losses.is_better:\n",
        "    if False:\n",
        (REPAIR_FIT, REPAIR, "-k", "alone or left or said"),
    ),
    Fault(
        "repair: a group or class keeps fewer rows than its threshold needs",
        "udcp_dsl/predict/stages/stage.py",
        "min(int(fraction * len(rows)), len(rows) - self.need)",
        "int(fraction * len(rows))",
        (
            "tests/udcp_dsl/predict/stages/test_repair.py",
            "tests/udcp_dsl/predict/stages/test_anchors.py",
            "-k",
            "needs or leave_every",
        ),
    ),
    Fault(
        "difficulty: edges computed on every other row",
        "udcp_dsl/predict/stages/bins.py",
        "top = context.spent_top if not folds else folds[0].top",
        "top = context.spent_top if not folds else folds[0].top[::2]",
        ("tests/udcp_dsl/predict/promises/test_together.py", "-k", "difficulty_is"),
    ),
    Fault(
        "saved: the guarantee is not compared with the thresholds",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "if not weighted and n < rule.needed(level) and tau != math.inf:",
        "if False:",
        ("tests/udcp_dsl/predict/promises/test_together.py", "-k", "change_of_what"),
    ),
    Fault(
        "weights and confidence are accepted together",
        "udcp_dsl/predict/promise.py",
        "        if self.confidence is not None:\n            raise InputError(\n",
        "        if False:\n            raise InputError(\n",
        (OPTIONS,),
    ),
    Fault(
        "compare: every row gets the threshold of the hardest bin",
        "udcp_dsl/measure/compare.py",
        "top=data.highest_probabilities, place",
        "top=np.full(len(data), data.highest_probabilities.min()), place",
        ("tests/udcp_dsl/test_comparison_promises.py", "-k", "predictors or covered_beside"),
    ),
    Fault(
        "confidence is ignored when thresholds are set",
        "udcp_dsl/predict/promise.py",
        "return Rule(confidence, ",
        "return Rule(None, ",
        (TOGETHER,),
    ),
    Fault(
        "miss: alpha is chosen on the rows that set the threshold",
        "udcp_dsl/predict/chain.py",
        "fitted = kind.fit(context, [placed(context, every, fold) for fold in own])",
        "fitted = kind.fit(context, [rows] if kind is WorthOfMiss else own)",
        ("tests/udcp_dsl/predict/stages/test_worth_of_miss.py", "-k", "set_no_threshold"),
    ),
    Fault(
        "miss: the rank of alpha is one too high",
        "udcp_dsl/predict/stages/alpha_of_miss.py",
        "k = min(n, max(0, math.ceil(n * (1 - missed) - 1e-9)))",
        "k = min(n, max(0, math.ceil(n * (1 - missed) - 1e-9) + 1))",
        (MISS, "-k", "least_that_misses"),
    ),
    Fault(
        "miss: groups use the alpha of all rows",
        "udcp_dsl/predict/stages/alpha_of_miss.py",
        "strata=replace(context.strata, alphas=own)",
        "strata=context.strata",
        ("tests/udcp_dsl/predict/stages/test_worth_of_miss.py", "-k", "each_group"),
    ),
    Fault(
        "decision: based on the final set",
        "udcp_dsl/predict/sets.py",
        "        if self.decided is not None:\n            return self.decided.handed_over\n",
        "",
        (DECISION, "-k", "never_the_final_one"),
    ),
    Fault(
        "decision: the price is found on the rows that set the threshold",
        "udcp_dsl/predict/chain.py",
        "fitted = kind.fit(context, [placed(context, every, fold) for fold in own])",
        "fitted = kind.fit(context, [rows] if kind is Decision else own)",
        ("tests/udcp_dsl/predict/stages/test_decision.py", "-k", "on_its_own_rows"),
    ),
    Fault(
        "decision: one threshold for all decisions",
        "udcp_dsl/predict/stages/decision.py",
        "found = [code[self.parts.get(name, rest)] for name in decided.names(loss.actions).tolist()]",
        "found = [code[rest] for _ in range(len(rows))]",
        ("tests/udcp_dsl/predict/stages/test_decision.py", "-k", "its_rank"),
    ),
    Fault(
        "decision: the certificate is that of the best action for the final set",
        "udcp_dsl/predict/sets.py",
        "        if self.decided is None:\n            return best_actions(actions, mask)\n",
        "        if True:\n            return best_actions(actions, mask)\n",
        (DECISION, "-k", "certified"),
    ),
)
