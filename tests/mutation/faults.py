"""Known faults, each a small change to one file, and what is to catch it: tests, or `udcp validate` on a spec."""

from __future__ import annotations

from fault import Fault
from honesty_faults import HONESTY_FAULTS
from input_faults import INPUT_FAULTS
from limit_faults import LIMIT_FAULTS
from machine_faults import MACHINE_FAULTS
from order_faults import ORDER_FAULTS
from promise_faults import PROMISE_FAULTS
from row_faults import ROW_FAULTS
from search_faults import SEARCH_FAULTS
from statistics_faults import STATISTICS_FAULTS
from watch_faults import WATCH_FAULTS

CALIBRATE = "tests/udcp_dsl/predict/calibrate/test_calibration.py"
LEVELS = "tests/udcp_dsl/predict/calibrate/test_levels.py"
COVERAGE = "tests/udcp_dsl/predict/calibrate/test_coverage.py"
STRATA = "tests/udcp_dsl/predict/calibrate/test_strata.py"
RANDOMIZED = "tests/udcp_dsl/predict/calibrate/test_randomized.py"
TUNING = "tests/udcp_dsl/predict/calibrate/test_tuning.py"
ATOMS = "tests/udcp_dsl/expression/test_atoms.py"
LOWER = "tests/udcp_dsl/expression/test_lower.py"
LAMINAR = "tests/udcp_solvers/prices/test_laminar.py"
GREEDY = "tests/udcp_solvers/test_greedy.py"
ORDERS = "tests/udcp_solvers/greedy_orders/test_orders.py"
MASS = "tests/udcp_solvers/test_mass_oracles.py"
RATIO = "tests/udcp_solvers/test_ratio.py"
BY_MASS = "tests/udcp_solvers/programs/test_by_mass.py"
SHORTCUTS = "tests/udcp_solvers/programs/test_shortcuts.py"
PREDICTOR = "tests/udcp_dsl/predict/test_predictor.py"
ENUMERATION = "tests/udcp_solvers/prices/test_enumeration.py"
TREES = "tests/udcp_solvers/prices/test_trees.py"


def _validate(spec: str, *more: str) -> tuple[str, ...]:
    return ("validate", f"specs/{spec}", "--cases", "2", "--seed", "0", *more)


_MATHEMATICS = (
    Fault(
        "all sets: a free label with mass below 106-bit precision is left out",
        "solvers/udcp_solvers/prices/enumeration.py",
        "return (*self.left_out, *self.tiny)",
        "return self.left_out",
        ("tests/udcp_solvers/prices/test_enumeration.py", "-k", "tiny"),
    ),
    Fault(
        "all sets: sums of floats are taken as exact costs",
        "solvers/udcp_solvers/prices/enumeration.py",
        "for x in exact_costs(loss, self.members))",
        "for x in (loss.batch(self.members), np.zeros(len(sets))))",
        (ENUMERATION, "-k", "whatever_order"),
    ),
    Fault(
        "trees: the two costs of a category of one label are taken as one number",
        "solvers/udcp_solvers/prices/region_choice.py",
        "cost_low += error + (lows[i] if taken[i] else 0.0)",
        "cost_low += error",
        (TREES, "-k", "share_a_category"),
    ),
    Fault(
        "price: costs that are too large to be compared are accepted",
        "solvers/udcp_solvers/price.py",
        "_LARGEST_COST = 1e250",
        "_LARGEST_COST = 1e308",
        ("tests/udcp_solvers/test_price.py", "-k", "too_large"),
    ),
    Fault(
        "quantile: n instead of n + 1",
        "udcp_dsl/predict/calibrate/levels.py",
        'math.ceil((_count(n, "n") + 1) * (1 - exact_level(alpha)))',
        'math.ceil(_count(n, "n") * (1 - exact_level(alpha)))',
        (LEVELS,),
    ),
    Fault(
        "quantile: k is computed in floating point",
        "udcp_dsl/predict/calibrate/levels.py",
        'math.ceil((_count(n, "n") + 1) * (1 - exact_level(alpha)))',
        'math.ceil((_count(n, "n") + 1) * (1 - float(exact_level(alpha))))',
        (LEVELS,),
    ),
    Fault(
        "quantile: the score before the k-th",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "return float(np.partition(scores, k - 1)[k - 1]) if",
        "return float(np.sort(scores)[k - 2]) if",
        _validate("grades/grades.loss", "--oracle", "lac"),
    ),
    Fault(
        "quantile: the largest score if n is too small",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "if k <= scores.size else math.inf",
        "if k <= scores.size else float(scores.max(initial=-math.inf))",
        (CALIBRATE, COVERAGE),
    ),
    Fault(
        "groups: the threshold of the next group",
        "udcp_dsl/predict/calibrate/strata.py",
        "index = {name: i for i, name in enumerate(self.names)}",
        "index = {name: (i + 1) % len(self) for i, name in enumerate(self.names)}",
        (STRATA,),
    ),
    Fault(
        "groups: a row of no known group has the threshold of the last group",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "if self.pooled is None and bool((codes < 0).any()):",
        "if False:",
        (CALIBRATE,),
    ),
    Fault(
        "classes: the scores of another class",
        "udcp_dsl/predict/calibrate/thresholds.py",
        "return [*points_of_cells(as_classes(codes, len(strata), n, **names)[1], len(strata))]",
        "return [*points_of_cells((as_classes(codes, len(strata), n, **names)[1] + 1) % len(strata), len(strata))]",
        (CALIBRATE,),
    ),
    Fault(
        "randomize: ties are not counted",
        "udcp_dsl/predict/calibrate/randomized.py",
        "math.floor(DRAWS * (t - g) / (1 + e))",
        "math.floor(DRAWS * (t - g) / max(1, e))",
        (RANDOMIZED,),
    ),
    Fault(
        "randomize: one random number for all rows",
        "udcp_dsl/predict/calibrate/randomized.py",
        "(block * odd).sum(axis=1, dtype=np.uint64) + offset",
        "offset",
        (RANDOMIZED,),
    ),
    Fault(
        "folds: rows are not shuffled",
        "udcp_dsl/predict/calibrate/tuning.py",
        "np.array_split(rng.permutation(n), 3)",
        "np.array_split(np.arange(n), 3)",
        (TUNING,),
    ),
    Fault(
        "tuning: chooses the most expensive lambda",
        "udcp_dsl/predict/calibrate/tuning.py",
        "return min(zip(self.mean_costs, self.grid, strict=True))[1]",
        "return max(zip(self.mean_costs, self.grid, strict=True))[1]",
        (TUNING,),
    ),
    Fault(
        "tuning: the final threshold uses a fold that lambda was tuned on",
        "udcp_dsl/predict/chain.py",
        "dealt.append((stage, tuple(left[fold] for fold in folds)))\n",
        "dealt.append((stage, tuple(left[fold] for fold in folds)))\n        taken = folds[0] if folds else taken\n",
        (PREDICTOR, "-k", "folds or never_sees"),
    ),
    Fault(
        "label leak: true labels are scored as if they were the likeliest",
        "udcp_dsl/predict/stages/stage.py",
        "    scores = oracle.score_of(rows, rows.truth)\n",
        "    own = np.arange(rows.P.shape[1]) == rows.truth[:, None]\n"
        "    leak = np.where(own, rows.P.max(axis=1, keepdims=True), rows.P)\n"
        "    scores = oracle.score_of(rows.with_columns(P=leak), rows.truth)\n",
        ("validate", "specs/hospital/tests.loss", "--cases", "2", "--seed", "0", "--oracle", "lac"),
    ),
    Fault(
        "nonempty: the first label keeps its score",
        "udcp_dsl/predict/stages/stage.py",
        "return np.where(oracle.first(rows) == rows.truth, -np.inf, scores) if nonempty else scores",
        "return scores",
        ("tests/udcp_dsl/predict/test_predictor.py", "-k", "nonempty"),
    ),
    Fault(
        "columns: class_names permuted the wrong way",
        "udcp_dsl/rows/matrix.py",
        "    positions = check_class_names(class_names, labels)\n    return ",
        "    positions = np.argsort(check_class_names(class_names, labels)).tolist()\n    return ",
        (
            "tests/udcp_dsl/rows/test_row_attributes.py",
            "tests/udcp_dsl/rows/test_probability_matrix.py",
        ),
    ),
    Fault(
        "evaluate: the interval is one row too low",
        "udcp_dsl/predict/calibrate/levels.py",
        "beta.ppf(tail, np.maximum(k, 1), m - k + 1)",
        "beta.ppf(tail, np.maximum(k, 1), m - k + 2)",
        ("tests/udcp_dsl/predict/test_evaluation.py",),
    ),
    Fault(
        "< for <= in the sets of an oracle",
        "udcp_dsl/predict/oracle.py",
        "np.less_equal(scores, tau[rows]",
        "np.less(scores, tau[rows]",
        ("validate", "specs/grades/grades.loss", "--cases", "2", "--seed", "0"),
    ),
    Fault(
        "< for <= in the sets of `lac`",
        "solvers/udcp_solvers/lac.py",
        "0.0 - np.float64(P[i, j]) <= tau[i, j]",
        "0.0 - np.float64(P[i, j]) < tau[i, j]",
        _validate("grades/grades.loss", "--oracle", "lac"),
    ),
    Fault(
        "diameter: the increment forgets the diameter so far",
        "udcp_dsl/expression/atoms/diameter.py",
        "self.value = np.maximum(self.value, self.far[self.held.rows, y])",
        "self.value = self.far[self.held.rows, y]",
        _validate("grades/grades.loss", "--oracle", "lac"),
    ),
    Fault(
        "diameter: the increment forgets earlier labels",
        "udcp_dsl/expression/atoms/diameter.py",
        "np.maximum(self.far, self.metric.row(y), out=self.far)",
        "self.far = self.metric.row(y)",
        _validate("grades/grades.loss", "--oracle", "lac"),
    ),
    Fault(
        "diameter: claimed to be submodular",
        "udcp_dsl/expression/atoms/diameter.py",
        'return {"monotone": "a larger set has no fewer pairs"}',
        'return {"monotone": "a larger set has no fewer pairs", "submodular": "so it seems"}',
        (ATOMS,),
    ),
    Fault(
        "count: a category is paid for each label",
        "udcp_dsl/expression/atoms/count.py",
        "            self.left[self.held.rows, category] = 0.0\n",
        "",
        _validate("languages/branches.loss", "--oracle", "lac"),
    ),
    Fault(
        "count: only the first category of each label is counted",
        "udcp_dsl/expression/atoms/count.py",
        "for slot in self.slots:\n            category = slot[sets.members]",
        "for slot in self.slots[:1]:\n            category = slot[sets.members]",
        ("tests/udcp_dsl/expression/test_members.py",),
    ),
    Fault(
        "count: claimed to be monotone with negative weights",
        "udcp_dsl/expression/atoms/count.py",
        '        if (self.weights >= 0).all():\n            facts["monotone"]',
        '        if (self.weights >= 0).any():\n            facts["monotone"]',
        (ATOMS,),
    ),
    Fault(
        "within: 0 on the empty set",
        "udcp_dsl/expression/atoms/within.py",
        "self.value = np.ones(len(held.rows))",
        "self.value = np.zeros(len(held.rows))",
        (ATOMS,),
    ),
    Fault(
        "max: negative costs are treated as 0",
        "udcp_dsl/expression/atoms/max.py",
        "np.where(sets.size > 0, largest, 0.0)",
        "np.maximum(largest, 0.0)",
        (ATOMS,),
    ),
    Fault(
        "spread: every pair is counted twice",
        "udcp_dsl/expression/atoms/spread.py",
        "return 0.5 * both_ways",
        "return both_ways",
        (ATOMS,),
    ),
    Fault(
        "comparison: > for >=",
        "udcp_dsl/expression/ir.py",
        "1.0 * (operands[0] >= self.k - tolerance(self.k))",
        "1.0 * (operands[0] > self.k + tolerance(self.k))",
        (ATOMS,),
    ),
    Fault(
        "lowering: wrong sign in the rows of a category",
        "udcp_dsl/expression/linear.py",
        "                self.at_most(self.label(y), g)\n",
        "                self.at_most(g, self.label(y))\n",
        _validate("languages/branches.loss", "--oracle", "lac"),
    ),
    Fault(
        "lowering: only one direction is constrained",
        "udcp_dsl/expression/linear.py",
        "        if Push.UP in push & ~done:\n            self.at_most(g, total",
        "        if Push.UP in done:\n            self.at_most(g, total",
        (LOWER, "-k", "any_loss or whichever"),
    ),
    Fault(
        "lowering: `within` pushed to the wrong side",
        "udcp_dsl/expression/atoms/within.py",
        "model.any_of(self.outside, push.reversed)",
        "model.any_of(self.outside, push)",
        (LOWER, "-k", "any_loss or whichever"),
    ),
    Fault(
        "hierarchy: nodes from JSON are placed under the root",
        "udcp_dsl/compile/declare/hierarchies.py",
        "(inner, (*above, name)) for name, inner",
        "(inner, (name,)) for name, inner",
        ("tests/test_reference.py", "tests/udcp_dsl/test_loss.py"),
    ),
    Fault(
        "hierarchy: levels from CSV are read from fine to coarse",
        "udcp_dsl/compile/declare/hierarchies.py",
        "cells = [table.rows[row][at] for at in columns]",
        "cells = [table.rows[row][at] for at in columns[::-1]]",
        ("tests/test_reference.py", "tests/udcp_dsl/test_loss.py"),
    ),
    Fault(
        "greedy: ties are broken by index",
        "solvers/udcp_solvers/greedy.py",
        "y = np.where(best, p, -1.0).argmax(axis=1)",
        "y = best.argmax(axis=1)",
        (ORDERS, "-k", "generated"),
    ),
    Fault(
        "greedy: the cost of S instead of S + y",
        "solvers/udcp_solvers/greedy.py",
        "ratio = np.maximum(M - growth.after(), 0.0) / denominator",
        "ratio = np.maximum(M - growth.value[:, None], 0.0) / denominator",
        (ORDERS, "-k", "generated"),
    ),
    Fault(
        "greedy: uses the categories of the previous row",
        "solvers/udcp_solvers/greedy_orders/incremental_cost.py",
        "    put(state.touch_cost, growing.weight)\n",
        "",
        (GREEDY, ORDERS, "-k", "one_another or many_labels"),
    ),
    Fault(
        "order: equal scores if a label is too small to change the sum",
        "solvers/udcp_solvers/numeric/remaining.py",
        "return score if score > before else float(np.nextafter(before, np.inf))",
        "return score if score > before else before",
        (GREEDY, "-k", "too_small"),
    ),
    Fault(
        "mass before: the first label gets minus the total of the row",
        "solvers/udcp_solvers/numeric/remaining.py",
        "    if share == 1.0 and (k == 1 or rest >= 0.5):\n",
        "    if share == 1.0 and k > 1 and rest >= 0.5:\n",
        (MASS, "-k", "empty_by_default"),
    ),
    Fault(
        "mass at random: reuses the random numbers of `randomize`",
        "solvers/udcp_solvers/mass_rule.py",
        "row_draws(P, (self.seed, _STREAM))",
        "row_draws(P, self.seed)",
        (MASS, "-k", "formula or draws"),
    ),
    Fault(
        "ilp: the labels of a block are scored one by one",
        "solvers/udcp_solvers/ilp.py",
        'if self._mass_rule.mass == "through":',
        "if True:",
        ("tests/udcp_solvers/test_ilp.py", "-k", "block"),
    ),
    Fault(
        "falling order: ties are broken by the higher index",
        "solvers/udcp_solvers/numeric/falling.py",
        "while k > 0 and row[index[k - 1]] < x:",
        "while k > 0 and row[index[k - 1]] <= x:",
        ("tests/udcp_solvers/numeric/test_falling.py",),
    ),
    Fault(
        "ratio: a label of probability 0 is free",
        "solvers/udcp_solvers/ratio.py",
        "return cost / p if p > 0.0 else np.inf",
        "return cost / p if p > 0.0 else 0.0",
        (RATIO,),
    ),
    Fault(
        "price: a category costs nothing",
        "solvers/udcp_solvers/prices/laminar.py",
        "        cost, mass = weight[c], 0.0\n",
        "        cost, mass = 0.0, 0.0\n",
        _validate("languages/branches.loss", "--oracle", "price"),
    ),
    Fault(
        "price: a label of probability 0 is added for free",
        "solvers/udcp_solvers/prices/laminar.py",
        "(cost == 0.0 and p > 0.0)",
        "cost == 0.0",
        (LAMINAR, "-k", "brute_force"),
    ),
    Fault(
        "ilp: a mass missed by 1e-9 counts as reached",
        "solvers/udcp_solvers/programs/mass.py",
        "math.fsum([*p[mask].tolist(), -t]) >= 0",
        "math.fsum([*p[mask].tolist(), -t]) >= -1e-9",
        (BY_MASS, "-k", "mass"),
    ),
    Fault(
        "ilp: a set does not contain the previous one",
        "solvers/udcp_solvers/programs/by_mass.py",
        "mask = exact.cheapest(tally, p, t, mask).mask if",
        "mask = exact.cheapest(tally, p, t, np.zeros_like(mask)).mask if",
        (BY_MASS, "-k", "cheapest_with_its_mass"),
    ),
    Fault(
        "ilp: the lightest categories first",
        "solvers/udcp_solvers/programs/shortcuts.py",
        "sorted(masses, key=lambda c: -masses[c])",
        "sorted(masses, key=lambda c: masses[c])",
        (SHORTCUTS, "-k", "fewest or solver_says"),
    ),
    Fault(
        "facts: sums are trusted despite rounding errors",
        "udcp_dsl/expression/prove.py",
        "_ROUNDING * smaller(up, down) > TOLERANCE",
        "_ROUNDING * smaller(up, down) > 1e300 * TOLERANCE",
        ("tests/udcp_dsl/expression/test_facts.py",),
    ),
)

KINDS = {
    "Meaning, scores and calibration": _MATHEMATICS,
    "The search": SEARCH_FAULTS,
    "Guarantees": PROMISE_FAULTS,
    "Estimates and comparisons": STATISTICS_FAULTS,
    "Limits": LIMIT_FAULTS,
    "Orders that nobody said": ORDER_FAULTS,
    "Inputs per row": ROW_FAULTS,
    "Monitoring, p-values and decisions": WATCH_FAULTS,
    "Input": INPUT_FAULTS,
    "Messages to users, and hostile input": HONESTY_FAULTS,
    "Files, processes and clusters": MACHINE_FAULTS,
}
FAULTS = tuple(fault for kind in KINDS.values() for fault in kind)
