"""Known faults of numbers that come with each row: at their doors, in facts over ranges, in a harm per row."""

from __future__ import annotations

from fault import Fault

GIVEN = "udcp_dsl/expression/given.py"
HARM = "udcp_dsl/predict/harm.py"
DOORS = "tests/udcp_dsl/inputs/test_doors.py"
ERRORS = "tests/udcp_dsl/inputs/test_input_errors.py"
OF_HARM = "tests/udcp_dsl/inputs/test_harm.py"
GENERATED = "tests/udcp_dsl/inputs/test_generated_inputs.py"
SKLEARN = "tests/udcp_dsl/inputs/test_sklearn.py"

ROW_FAULTS = (
    Fault(
        "rows: named entries are ordered by the class names",
        GIVEN,
        "x.of is None and not by_name:",
        "x.of is None:",
        (DOORS, "-k", "class_names"),
    ),
    Fault(
        "rows: a polars struct loses the names of its entries",
        GIVEN,
        '.startswith("Struct")',
        '.startswith("No")',
        (DOORS, "-k", "holds_its_inputs"),
    ),
    Fault(
        "rows: NaN is accepted as within the range of an input",
        GIVEN,
        "wrong = ~((array >= x.low) & (array <= x.high))  # NaN is nowhere",
        "wrong = (array < x.low) | (array > x.high)",
        (ERRORS, "-k", "nan"),
    ),
    Fault(
        "rows: inputs with another index are joined by position",
        "udcp_dsl/rows/rows.py",
        ", **beside, **indexed_inputs(inputs)})",
        ", **beside})",
        (DOORS, "-k", "another_index"),
    ),
    Fault(
        "rows: a rule for nonnegative factors is applied to all factors",
        "udcp_dsl/expression/inputs.py",
        "    if factor.lo >= 0 or factor.hi <= 0:\n",
        "    if factor.hi >= 0 or factor.hi <= 0:\n",
        (GENERATED, "-k", "ranges"),
    ),
    Fault(
        "rows: the harm of a row is replaced by the upper end of its range",
        HARM,
        "self._given(inputs)[np.arange(len(y)), y] if self.per_row else self.values[y]",
        "self.values[y]",
        (OF_HARM, "-k", "least"),
    ),
    Fault(
        "rows: an oracle uses the upper end of a harm instead of the row's own",
        HARM,
        "values = self.values if own is None else own",
        "values = self.values",
        (OF_HARM, "-k", "constant_columns"),
    ),
    Fault(
        "rows: scikit-learn calibration rows get the inputs of other rows",
        "udcp_dsl/sklearn.py",
        "numbers[held_out]",
        "numbers[training[: len(held_out)]]",
        (SKLEARN, "-k", "own_inputs"),
    ),
    Fault(
        "rows: inputs of another index are joined by position, through scikit-learn",
        "udcp_dsl/sklearn.py",
        ", **others, **indexed_inputs(inputs)})",
        ", **others})",
        (SKLEARN, "-k", "another_index"),
    ),
    Fault(
        "rows: those that are given again with class names keep what stages added",
        "udcp_dsl/rows/rows.py",
        "rows = replace(rows, columns=rows.columns or class_names",
        "rows = replace(given, columns=given.columns or class_names",
        ("tests/udcp_dsl/rows/test_value.py", "-k", "given_again"),
    ),
)
