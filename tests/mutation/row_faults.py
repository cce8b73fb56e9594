"""Known faults of numbers that come with each row: at their doors, in facts over ranges, in a harm per row."""

from __future__ import annotations

from fault import Fault

GIVEN = "udcp_dsl/expression/rows/given.py"
HARM = "udcp_dsl/prediction/promises/harm.py"
DOORS = "tests/udcp_dsl/inputs/test_doors.py"
ERRORS = "tests/udcp_dsl/inputs/test_input_errors.py"
OF_HARM = "tests/udcp_dsl/inputs/test_harm.py"
GENERATED = "tests/udcp_dsl/inputs/test_generated_inputs.py"
SKLEARN = "tests/udcp_dsl/inputs/test_sklearn.py"

ROW_FAULTS = (
    Fault(
        "rows: entries that are named follow the class names",
        GIVEN,
        "x.of is None and not by_name:",
        "x.of is None:",
        (DOORS, "-k", "class_names"),
    ),
    Fault(
        "rows: a struct of polars loses the names of its entries",
        GIVEN,
        '.startswith("Struct")',
        '.startswith("No")',
        (DOORS, "-k", "holds_its_inputs"),
    ),
    Fault(
        "rows: an input that is NaN is within its range",
        GIVEN,
        "wrong = ~((array >= x.low) & (array <= x.high))  # NaN is nowhere",
        "wrong = (array < x.low) | (array > x.high)",
        (ERRORS, "-k", "nan"),
    ),
    Fault(
        "rows: inputs of another index are joined by position",
        "udcp_dsl/prediction/rows/value.py",
        ", **_indexed(inputs)}",
        "}",
        (DOORS, "-k", "another_index"),
    ),
    Fault(
        "rows: what is proved for factors from 0 is claimed for all",
        "udcp_dsl/expression/rows/rules.py",
        "    if factor.lo >= 0 or factor.hi <= 0:\n",
        "    if factor.hi >= 0 or factor.hi <= 0:\n",
        (GENERATED, "-k", "ranges"),
    ),
    Fault(
        "rows: the harm of a row is the upper end of the range",
        HARM,
        "self._given(inputs)[np.arange(len(y)), y] if self.per_row else self.values[y]",
        "self.values[y]",
        (OF_HARM, "-k", "least"),
    ),
    Fault(
        "rows: an oracle buys the upper end of a harm, not the row's own",
        HARM,
        "values = self.values if own is None else own",
        "values = self.values",
        (OF_HARM, "-k", "constant_columns"),
    ),
    Fault(
        "rows: calibration rows of scikit-learn have the inputs of others",
        "udcp_dsl/sklearn.py",
        "_inputs_at(inputs, held_out)",
        "_inputs_at(inputs, training[: len(held_out)])",
        (SKLEARN, "-k", "own_inputs"),
    ),
)
