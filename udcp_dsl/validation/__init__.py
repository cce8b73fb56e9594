"""Check on generated cases whether a spec is safe to use; `udcp validate` runs this.

from udcp_dsl.validation import validate
validation = validate(udcp.load("triage.loss"), cases=2)
assert validation.ok, validation.counter_example
"""

from udcp_dsl.validation.run import validate
from udcp_dsl.validation.verdicts import CounterExample, MeanCost, Stage, Validation, Verdict

__all__ = ["CounterExample", "MeanCost", "Stage", "Validation", "Verdict", "validate"]
